//! The trees: what they are called, what is in them, and how they are made. The bytes are the same in
//! every run.

use std::{
    fmt, fs,
    io::{self, BufWriter, Write},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    str::FromStr,
    time::Duration,
};

/// How many files lie in one directory of a work tree, about.
const PER_DIRECTORY: usize = 14;
/// Commits after the first, each of which changes some files: the history is packed with its deltas.
const COMMITS: usize = 20;
const CHANGES: usize = 30;

/// What git is told about the files, as real repositories do: it then opens them to see their line ends.
const ATTRIBUTES: &str = "* text=auto\n*.sh text eol=lf\n*.bat text eol=crlf\n*.png binary\n\
    *.svg -text\n*.c diff=cpp\n*.h diff=cpp\n/vendor/** linguist-vendored\n";

/// A tree that the bench makes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Tree {
    /// A repository like real ones: so many files of varied size, attributes, a packed history.
    Real(usize),
    /// 500,000 small files in a repository without attributes.
    Synthetic,
    /// `Real(1000)` and 5,000 files that git does not track.
    Untracked,
    /// `Real(1000)` and 40,000 ignored files in `node_modules`.
    Ignored,
    /// `Real(1000)` and 2,000 ignored files that a checkpoint holds.
    Held,
    /// `Real(1000)` and 5,000 loose objects.
    Loose,
    /// `Real(1000)` and 20,000 refs.
    Refs,
    /// 10,000 files without a repository.
    Plain,
    /// `Real(1000)` and an untracked file of 2 GB.
    Large,
    /// `Real(1000)` with 5,000 checkpoints.
    Many,
}

impl Tree {
    /// Every tree, in the order of the table.
    pub(crate) const ALL: [Self; 12] = [
        Self::Real(1_000),
        Self::Real(10_000),
        Self::Real(79_000),
        Self::Synthetic,
        Self::Untracked,
        Self::Ignored,
        Self::Held,
        Self::Loose,
        Self::Refs,
        Self::Plain,
        Self::Large,
        Self::Many,
    ];
    /// Those that take a few minutes together.
    pub(crate) const USUAL: [Self; 5] =
        [Self::Real(1_000), Self::Real(10_000), Self::Untracked, Self::Loose, Self::Plain];

    /// The name on the command line.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Real(1_000) => "1k",
            Self::Real(10_000) => "10k",
            Self::Real(_) => "79k",
            Self::Synthetic => "500k",
            Self::Untracked => "untracked",
            Self::Ignored => "ignored",
            Self::Held => "held",
            Self::Loose => "loose",
            Self::Refs => "refs",
            Self::Plain => "plain",
            Self::Large => "large",
            Self::Many => "many",
        }
    }

    pub(crate) fn is_git(self) -> bool {
        self != Self::Plain
    }

    /// How many files git tracks, or a plain directory has.
    fn tracked(self) -> usize {
        match self {
            Self::Real(count) => count,
            Self::Synthetic => 500_000,
            Self::Plain => 10_000,
            _ => 1_000,
        }
    }

    /// The settings without which the tree would exceed a limit.
    pub(crate) fn settings(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::Synthetic => &[("BEFOREHAND_MAX_FILES", "1000000")],
            Self::Large => {
                &[("BEFOREHAND_MAX_FILE_SIZE", "4 GB"), ("BEFOREHAND_MAX_TOTAL_SIZE", "40 GB")]
            }
            Self::Many => &[("BEFOREHAND_AUTO_PRUNE", "false")],
            _ => &[],
        }
    }

    /// How many checkpoints there are where they are listed.
    pub(crate) fn checkpoints(self) -> usize {
        if self == Self::Many { 5_000 } else { 50 }
    }

    /// How often each operation is run. Large trees vary less, and take long.
    pub(crate) fn rounds(self) -> usize {
        match self {
            Self::Large => 1,
            Self::Synthetic => 3,
            Self::Real(count) if count > 20_000 => 5,
            _ => 7,
        }
    }
}

impl fmt::Display for Tree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Real(1_000) => "1,000 files",
            Self::Real(10_000) => "10,000 files",
            Self::Real(_) => "79,000 files",
            Self::Synthetic => "500,000 files, synthetic",
            Self::Untracked => "1,000 and 5,000 untracked",
            Self::Ignored => "1,000 and 40,000 in `node_modules`",
            Self::Held => "1,000 and 2,000 ignored, held",
            Self::Loose => "1,000 and 5,000 loose objects",
            Self::Refs => "1,000 and 20,000 refs",
            Self::Plain => "10,000 files, no repository",
            Self::Large => "1,000 and one of 2 GB, untracked",
            Self::Many => "1,000 files, 5,000 checkpoints",
        })
    }
}

impl FromStr for Tree {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        Self::ALL.into_iter().find(|tree| tree.name() == text).ok_or(())
    }
}

/// Makes the tree in an empty directory; returns the files that change later, without the ones added.
pub(crate) fn make(tree: Tree, dir: &Path) -> io::Result<Vec<PathBuf>> {
    let mut source = Source::new(tree == Tree::Synthetic);
    let names: Vec<PathBuf> = (0..tree.tracked()).map(|number| name("src", number)).collect();
    if tree.is_git() {
        commit(dir, &names, &mut source, tree)?;
    } else {
        write(dir, &names, &mut source)?;
    }
    let below = |top: &str, count: usize| (0..count).map(|number| name(top, number)).collect();
    let more: Vec<PathBuf> = match tree {
        Tree::Untracked => below("new", 5_000),
        Tree::Ignored => below("node_modules", 40_000),
        Tree::Held => below("notes", 2_000),
        _ => Vec::new(),
    };
    write(dir, &more, &mut source)?;
    match tree {
        Tree::Ignored => fs::write(dir.join("package.json"), "{}\n")?,
        Tree::Loose => loose(dir)?,
        Tree::Refs => refs(dir)?,
        Tree::Large => large(&dir.join("model.bin"), &mut source.random)?,
        _ => (),
    }
    if tree.is_git() {
        // Past the tick of the file system's clock, so that the index knows every file for sure.
        std::thread::sleep(Duration::from_millis(50));
        git(dir, &["status"], &[])?;
    }
    Ok(names.into_iter().filter(|name| is_text(name)).map(|name| dir.join(name)).collect())
}

/// Whether git leaves the bytes as they are.
fn is_text(name: &Path) -> bool {
    name.extension().is_none_or(|extension| extension != "bat" && extension != "png")
}

/// Where the file of a number lies.
fn name(top: &str, number: usize) -> PathBuf {
    const KINDS: [&str; 16] = [
        "c", "h", "rs", "rs", "md", "ts", "ts", "json", "py", "c", "h", "txt", "sh", "svg", "bat",
        "png",
    ];
    let (mut path, mut rest) = (PathBuf::from(top), number / PER_DIRECTORY);
    loop {
        path.push(format!("{}{:02}", ["core", "net", "util", "test"][rest % 4], rest % 24));
        rest /= 24;
        if rest == 0 {
            break;
        }
    }
    path.join(format!(
        "{}_{number}.{}",
        ["index", "parse_options", "io"][number % 3],
        KINDS[number % 16]
    ))
}

fn write(dir: &Path, names: &[PathBuf], source: &mut Source) -> io::Result<()> {
    for name in names {
        let path = dir.join(name);
        fs::create_dir_all(path.parent().unwrap_or(dir))?;
        fs::write(&path, source.content(name))?;
    }
    Ok(())
}

/// Commits the files and a history, and checks them out: git itself writes the work tree, so that its
/// line ends are what the attributes say.
fn commit(dir: &Path, names: &[PathBuf], source: &mut Source, tree: Tree) -> io::Result<()> {
    git(dir, &["init", "-q", "-b", "main"], &[])?;
    let mut import = Command::new("git");
    let mut child = environment(&mut import, dir)
        .args(["fast-import", "--quiet"])
        .stdin(Stdio::piped())
        .spawn()?;
    let mut to = BufWriter::new(child.stdin.take().expect("it is piped"));
    let all: Vec<&Path> = names.iter().map(PathBuf::as_path).collect();
    let rules = ["/node_modules/\n/notes/\n*.log\n", ATTRIBUTES];
    let rules = if tree == Tree::Synthetic { &rules[..1] } else { &rules[..] };
    begin(&mut to, 0)?;
    for (name, rule) in [".gitignore", ".gitattributes"].iter().zip(rules) {
        put(&mut to, Path::new(name), rule.as_bytes())?;
    }
    files(&mut to, &all, source)?;
    for number in 1..=COMMITS {
        begin(&mut to, number)?;
        let some: Vec<&Path> =
            (0..CHANGES).map(|at| all[(number * 7_919 + at * 104_729) % all.len()]).collect();
        files(&mut to, &some, source)?;
    }
    drop(to);
    if !child.wait()?.success() {
        return Err(io::Error::other("git fast-import failed"));
    }
    git(dir, &["reset", "-q", "--hard"], &[])?;
    if tree == Tree::Synthetic {
        return Ok(());
    }
    git(dir, &["repack", "-adq"], &[])
}

fn begin(to: &mut impl Write, number: usize) -> io::Result<()> {
    let at = 1_700_000_000 + number;
    write!(to, "commit refs/heads/main\ncommitter b <b@example.org> {at} +0000\ndata 5\nstate\n")
}

fn files(to: &mut impl Write, names: &[&Path], source: &mut Source) -> io::Result<()> {
    for name in names {
        put(to, name, &source.content(name))?;
    }
    Ok(())
}

fn put(to: &mut impl Write, name: &Path, bytes: &[u8]) -> io::Result<()> {
    write!(to, "M 100644 inline {}\ndata {}\n", name.display(), bytes.len())?;
    to.write_all(bytes)?;
    to.write_all(b"\n")
}

/// Objects that nothing refers to, as every `git add` leaves some.
fn loose(dir: &Path) -> io::Result<()> {
    let aside = dir.with_extension("loose");
    fs::create_dir(&aside)?;
    let mut list = Vec::new();
    for number in 0..5_000 {
        let path = aside.join(number.to_string());
        fs::write(&path, format!("object {number}\n").repeat(20))?;
        writeln!(list, "{}", path.display())?;
    }
    git(dir, &["hash-object", "-w", "--no-filters", "--stdin-paths"], &list)?;
    fs::remove_dir_all(aside)
}

fn refs(dir: &Path) -> io::Result<()> {
    let mut list = Vec::new();
    for number in 0..20_000 {
        writeln!(list, "create refs/changes/{:02}/{number} HEAD", number % 100)?;
    }
    git(dir, &["update-ref", "--stdin"], &list)
}

fn large(path: &Path, random: &mut Random) -> io::Result<()> {
    let mut to = BufWriter::with_capacity(1 << 20, fs::File::create(path)?);
    for _ in 0..1usize << 28 {
        to.write_all(&random.next().to_le_bytes())?;
    }
    to.flush()
}

/// Runs git in a work tree, with this on its standard input.
fn git(dir: &Path, args: &[&str], input: &[u8]) -> io::Result<()> {
    let mut command = Command::new("git");
    environment(&mut command, dir).args(args).stdin(Stdio::piped()).stdout(Stdio::null());
    let mut child = command.spawn()?;
    child.stdin.take().expect("it is piped").write_all(input)?;
    if child.wait()?.success() { Ok(()) } else { Err(io::Error::other(format!("git {args:?}"))) }
}

/// No settings but ours.
pub(crate) fn environment<'a>(command: &'a mut Command, dir: &Path) -> &'a mut Command {
    let fixture = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/empty.gitconfig");
    command.current_dir(dir).env_clear().env("HOME", dir.parent().unwrap_or(dir));
    command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command.env("GIT_CONFIG_GLOBAL", fixture).env("GIT_CONFIG_SYSTEM", fixture);
    for role in ["AUTHOR", "COMMITTER"] {
        command.env(format!("GIT_{role}_NAME"), "b");
        command.env(format!("GIT_{role}_EMAIL"), "b@example.org");
    }
    command
}

/// Contents of files: text that compresses like code, some of it binary.
pub(crate) struct Source {
    random: Random,
    text: Vec<u8>,
    median: f64,
    made: usize,
}

impl Source {
    fn new(is_small: bool) -> Self {
        let mut random = Random(0x9e37_79b9_7f4a_7c15);
        let words: Vec<String> = (0..4_000)
            .map(|_| {
                (0..2 + random.below(9))
                    .map(|_| char::from(b'a' + random.below(26) as u8))
                    .collect()
            })
            .collect();
        let mut text = Vec::new();
        while text.len() < 1 << 20 {
            text.extend_from_slice(words[random.below(words.len())].as_bytes());
            text.push(if random.below(7) == 0 { b'\n' } else { b' ' });
        }
        Self { random, text, median: if is_small { 1_000.0 } else { 2_500.0 }, made: 0 }
    }

    /// The next content of a file: it is never the same twice.
    pub(crate) fn content(&mut self, name: &Path) -> Vec<u8> {
        self.made += 1;
        let size = self.size();
        let mut bytes = format!("// {} {}\n", self.made, name.display()).into_bytes();
        if name.extension().is_some_and(|extension| extension == "png") {
            bytes.push(0);
            bytes.extend((0..size / 8).flat_map(|_| self.random.next().to_le_bytes()));
            return bytes;
        }
        let from = self.random.below(self.text.len() - size);
        bytes.extend_from_slice(&self.text[from..from + size]);
        bytes.push(b'\n');
        bytes
    }

    /// Log-normal, as sizes of files are.
    fn size(&mut self) -> usize {
        let normal = (0..12).map(|_| self.random.fraction()).sum::<f64>() - 6.0;
        ((self.median * (1.2 * normal).exp()) as usize).min(1 << 19)
    }
}

/// xorshift64*.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn below(&mut self, limit: usize) -> usize {
        ((self.next() >> 33) as usize) % limit
    }

    fn fraction(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }
}
