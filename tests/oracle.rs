//! The tables against the truth: whatever is judged read-only is run in a sandbox, and may change
//! nothing. `cargo test oracle -- --ignored --nocapture`; `BEFOREHAND_ORACLE_LINES` says how many
//! random lines are tried.
//!
//! The sandbox is a user, mount, process and network namespace of its own, in which nothing but a
//! small project, a home and a directory for temporary files can be written.

#![expect(clippy::disallowed_methods, reason = "a place of its own, and wishes of whoever runs it")]
#![expect(clippy::print_stderr, reason = "it says how much it really ran")]

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
    fs,
    io::{BufRead, BufReader, Write as _},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
};

use crate::support::{
    dice::{Dice, wished},
    sandbox::confined,
};
use beforehand::{
    model::{Language, Level},
    shell::{self, ShellContext},
};

/// Runs the lines of its input.
const WORKER: &str = r#"
shopt -s nullglob
echo ready
while IFS= read -r line; do
    cd "$area/project"
    for left in "$area"/tmp/*; do rm -rf "$area/tmp"; mkdir "$area/tmp"; break; done
    timeout -s KILL 1 "$2" -c "$line" <"$area/input" >/dev/null 2>&1
    echo "done $?"
done
"#;

/// What is in the project, and how it is made. Nothing in it is younger than the index.
const PROJECT: &str = r#"
set -e
mkdir -p project/src project/docs project/data home tmp
cd project
printf 'foo\nbar foo\n' >a.txt; printf 'bar\nfoo\n' >b.txt; printf 'c\nb\na\nb\n' >c.txt
printf 'def foo():\n    return 1\n' >src/a.py; printf 'x = 1\n' >src/b.py
printf '# guide\nTODO\n' >docs/guide.md; printf 'id,name\n1,ann\n2,bob\n' >data/users.csv
printf '{"name": "shop", "version": "1.0.0"}\n' >package.json; printf 'all:\n\ttrue\n' >Makefile
printf '[package]\nname = "shop"\nversion = "0.1.0"\nedition = "2021"\n' >Cargo.toml
printf 'fn main() {\n    println!("hi");\n}\n' >src/main.rs; printf '[ -n "$x" ]\n' >run.sh
printf 'ignored.log\n' >.gitignore; echo log >ignored.log
tar czf archive.tar.gz a.txt b.txt; gzip -k c.txt; ln -s a.txt link
md5sum a.txt >sums
git init -q -b main; git add -A; git commit -qm one; echo more >>b.txt; git commit -qam two
git tag v1; git branch feature; echo stashed >>a.txt; git stash -q
git notes add -m note; git remote add origin "$PWD/../remote.git"; git init -q --bare ../remote.git
git push -q origin main
echo changed >>docs/guide.md; echo new >untracked.txt; git diff >fix.patch
git update-index -q --refresh || true
"#;

/// Commands that end processes, reach for a terminal, or never end; nothing is told by running them.
const NOT_RUN: &[&str] =
    &["kill", "pkill", "killall", "reset", "clear", "tput", "stty", "tabs", "yes", "sleep", "top"];

struct Sandbox {
    area: PathBuf,
    worker: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    before: Print,
    entries: String,
}

/// Everything that can be told of each file.
type Print = BTreeMap<PathBuf, (u32, i64, i64, Vec<u8>)>;

fn print(dir: &Path, found: &mut Print) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let data = fs::symlink_metadata(&path).unwrap();
        let content = if data.is_file() {
            fs::read(&path).unwrap_or_default()
        } else if data.is_symlink() {
            fs::read_link(&path).unwrap().into_os_string().into_encoded_bytes()
        } else {
            Vec::new()
        };
        found.insert(path.clone(), (data.mode(), data.mtime(), data.mtime_nsec(), content));
        if data.is_dir() {
            print(&path, found);
        }
    }
}

fn sh(dir: &Path, script: &str, home: &Path) -> String {
    let output = Command::new("bash")
        .args(["-c", script])
        .current_dir(dir)
        .env("HOME", home)
        .envs(["AUTHOR", "COMMITTER"].map(|who| (format!("GIT_{who}_NAME"), "a")))
        .envs(["AUTHOR", "COMMITTER"].map(|who| (format!("GIT_{who}_EMAIL"), "a@b")))
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

impl Sandbox {
    fn new(shell: &str) -> Self {
        let area =
            std::env::temp_dir().join(format!("beforehand-oracle-{}-{shell}", std::process::id()));
        fs::create_dir_all(&area).unwrap();
        let area = fs::canonicalize(area).unwrap();
        sh(&area, PROJECT, &area.join("home"));
        fs::write(area.join("input"), "foo\nbar\nfoo bar\n").unwrap();
        let keep = format!("cp -a . {}.pristine", area.display());
        sh(&area, &keep, &area.join("home"));
        let mut worker = confined(&area, &area.join("home"), WORKER)
            .arg(shell)
            .env("TMPDIR", area.join("tmp"))
            // rustup would have no toolchain in this home; terraform asks for its own updates.
            .env("RUSTUP_HOME", rustup_home())
            .env("CHECKPOINT_DISABLE", "1")
            // npm keeps a log of each call.
            .env("NPM_CONFIG_CACHE", area.join("tmp/npm"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let input = worker.stdin.take().unwrap();
        let mut output = BufReader::new(worker.stdout.take().unwrap());
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n", "no sandbox");
        let mut sandbox =
            Self { area, worker, input, output, before: Print::new(), entries: String::new() };
        sandbox.look();
        sandbox
    }

    fn pristine(&self) -> PathBuf {
        self.area.with_extension("pristine")
    }

    fn put_back(&mut self) {
        let script =
            format!("rm -rf project home remote.git; cp -a {}/. .", self.pristine().display());
        sh(&self.area, &script, &self.area.join("home"));
        self.look();
    }

    fn look(&mut self) {
        self.before = self.now();
        self.entries = self.entries();
    }

    fn now(&self) -> Print {
        let mut found = Print::new();
        for part in ["project", "home", "remote.git"] {
            print(&self.area.join(part), &mut found);
        }
        found
    }

    fn entries(&self) -> String {
        // Without locks, or it would refresh the index itself.
        sh(
            &self.area.join("project"),
            "git --no-optional-locks ls-files -s",
            &self.area.join("home"),
        )
    }

    /// Runs lines, and says which of them changed what.
    fn run_all<'a>(&mut self, lines: &'a [String]) -> Vec<(&'a String, Vec<String>)> {
        for (at, line) in lines.iter().enumerate() {
            let begun = std::time::Instant::now();
            self.tell(line);
            if at == 0 && begun.elapsed().as_millis() > 900 {
                // It waits for something; the others would as well.
                break;
            }
        }
        if self.changed().is_empty() {
            return Vec::new();
        }
        lines.iter().map(|line| (line, self.run(line))).filter(|(_, it)| !it.is_empty()).collect()
    }

    /// Runs a line, and says what it changed.
    fn run(&mut self, line: &str) -> Vec<String> {
        self.tell(line);
        self.changed()
    }

    fn tell(&mut self, line: &str) {
        assert!(!line.contains('\n'), "a line is a line");
        writeln!(self.input, "{line}").unwrap();
        let mut done = String::new();
        self.output.read_line(&mut done).unwrap();
        assert!(done.starts_with("done"), "the worker died of {line:?}");
    }

    /// What has changed, which is put back.
    fn changed(&mut self) -> Vec<String> {
        let now = self.now();
        if now == self.before {
            return Vec::new();
        }
        let paths: BTreeSet<&PathBuf> = now.keys().chain(self.before.keys()).collect();
        let changed: Vec<PathBuf> = paths
            .into_iter()
            .filter(|path| now.get(*path) != self.before.get(*path))
            .cloned()
            .collect();
        let git = self.area.join("project/.git");
        let only_refreshed = changed.iter().all(|path| *path == git || *path == git.join("index"));
        if only_refreshed && self.entries() == self.entries {
            self.look();
            return Vec::new();
        }
        self.put_back();
        changed
            .iter()
            .map(|path| path.strip_prefix(&self.area).unwrap().display().to_string())
            .collect()
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        let _ended = self.worker.kill();
        let _waited = self.worker.wait();
        let _removed = fs::remove_dir_all(&self.area);
        let _removed = fs::remove_dir_all(self.pristine());
    }
}

fn rustup_home() -> PathBuf {
    let told = std::env::var_os("RUSTUP_HOME").map(PathBuf::from);
    told.unwrap_or_else(|| {
        PathBuf::from(std::env::var_os("HOME").unwrap_or_default()).join(".rustup")
    })
}

fn reads(line: &str) -> bool {
    shell::classify(line, Language::Shell, &ShellContext::default()).level == Level::ReadOnly
}

fn is_installed(program: &str) -> bool {
    let dirs = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&dirs).any(|dir| dir.join(program).is_file())
}

/// The options of a list as they are written on a line.
fn listed(flags: &str) -> Vec<String> {
    let mut found = Vec::new();
    let single = flags.split_ascii_whitespace().any(|word| word == "@");
    for word in flags.split_ascii_whitespace().filter(|word| word.len() > 1) {
        let word = word.trim_start_matches(['>', '+', '!', '%', '~']);
        let name = word.trim_end_matches([':', '=', '?']);
        if word == "-#" {
            found.push("-3".to_owned());
        } else if name.starts_with("--") || single {
            found.push(name.to_owned());
        } else {
            found.extend(name.chars().skip(1).map(|letter| format!("-{letter}")));
        }
    }
    found
}

/// The options that a program's own help names.
fn documented(sandbox: &mut Sandbox, command: &str) -> Vec<String> {
    let (file, asks) =
        (sandbox.area.join("tmp/help"), [format!("{command} --help"), format!("{command} -h")]);
    let ask = if command.starts_with("git ") { &asks[1] } else { &asks[0] };
    if !reads(ask) {
        return Vec::new();
    }
    sandbox.run(&format!("{ask} >{} 2>&1", file.display()));
    let help = fs::read(&file).unwrap_or_default();
    let mut found = BTreeSet::new();
    for word in String::from_utf8_lossy(&help)
        .split(|char: char| !(char.is_ascii_alphanumeric() || "-_".contains(char)))
    {
        let is_long =
            word.strip_prefix("--").is_some_and(|name| name.len() > 1 && !name.starts_with('-'));
        let is_short = word.len() == 2 && word.starts_with('-') && word != "--";
        if is_long || is_short {
            found.insert(word.trim_end_matches('-').to_owned());
        }
    }
    found.into_iter().collect()
}

/// An option with operands, and with values, that mean something to many programs.
fn lines(command: &str, option: &str) -> Vec<String> {
    let operands = ["", "foo a.txt", "new.txt a.txt", "HEAD", "a.txt new.txt", "1 a.txt"];
    let mut lines: Vec<String> =
        operands.iter().map(|operands| format!("{command} {option} {operands}")).collect();
    if option.starts_with("--") {
        lines.push(format!("{command} {option}=new.txt a.txt"));
        lines.push(format!("{command} {option}=1"));
    }
    lines
}

#[test]
#[ignore = "takes minutes; .ci/run does it with BEFOREHAND_REQUIRE_ORACLE=1"]
fn what_the_tables_say_only_reads_changes_nothing() {
    let mut sandbox = Sandbox::new("sh");
    let (mut rows, mut options, mut runs) = (0, 0, 0);
    let mut wrong = String::new();
    let only = std::env::var("BEFOREHAND_ORACLE_ONLY").ok();
    for (command, flags) in shell::known_commands() {
        let program = command.split(' ').next().unwrap();
        let is_wanted = only.as_ref().is_none_or(|only| program == only);
        if NOT_RUN.contains(&program) || !is_installed(program) || !is_wanted {
            continue;
        }
        let mut tried: BTreeSet<String> = listed(flags).into_iter().collect();
        tried.extend(documented(&mut sandbox, &command));
        tried.insert(String::new());
        let (options_before, runs_before) = (options, runs);
        for option in tried {
            let mut lines = lines(&command, &option);
            lines.retain(|line| reads(line));
            let ran = lines.len();
            for (line, changed) in sandbox.run_all(&lines) {
                writeln!(wrong, "{line}: {changed:?}").unwrap();
                eprintln!("changed {changed:?}: {line}");
            }
            runs += ran;
            options += usize::from(ran > 0 && !option.is_empty());
        }
        rows += usize::from(runs > runs_before);
        eprintln!("{command}: {} options, {} lines", options - options_before, runs - runs_before);
    }
    eprintln!("{rows} commands, {options} options and {runs} lines were run");
    assert!(wrong.is_empty(), "{wrong}");
    assert!(rows > 0 || only.is_some(), "nothing was run");
}

/// Programs with options and operands, some of which lose data.
const COMMANDS: &[&str] = &[
    "cat",
    "ls -la",
    "grep foo",
    "grep -c",
    "head -2",
    "tail -n 1",
    "wc -l",
    "sort",
    "sort -u",
    "sort -o",
    "uniq",
    "uniq -c",
    "cut -c1",
    "tr a b <",
    "sed -n 1p",
    "sed s/foo/x/",
    "sed -i s/foo/x/",
    "sed 's/f/w/w new.txt'",
    "sed -n '/a/w b.txt'",
    "rm",
    "rm -f",
    "cp a.txt",
    "mv a.txt",
    "tee",
    "touch",
    "find . -name",
    "find . -type f -exec cat {} + ;",
    "find . -newer",
    "find . -name '*.txt' -delete;",
    "xargs cat <",
    "xargs rm <",
    "git status",
    "git diff",
    "git log -1",
    "git show HEAD",
    "git checkout --",
    "git stash list",
    "git stash",
    "git grep foo",
    "git ls-files",
    "git branch",
    "git branch -D",
    "git tag",
    "git rm -n",
    "git rm",
    "git clean -n",
    "git clean -fd",
    "git add -n",
    "git blame",
    "diff a.txt",
    "cmp a.txt",
    "stat",
    "file",
    "du -s",
    "md5sum",
    "od -c",
    "xxd",
    "base64",
    "tar tf",
    "tar czf new.tgz",
    "gzip -c",
    "gzip",
    "jq .",
    "awk 1",
    "echo hi",
    "printf x",
    "test -f",
    "[ -e a.txt ] #",
    "env",
    "env X=1 cat",
    "bash -c ls",
    "bash -c 'rm a.txt'",
    "sh run.sh",
    "eval cat",
    "eval rm",
    "command cat",
    "time cat",
    "nice cat",
    "timeout 1 cat",
    "sudo cat",
    "dd of=new.txt if=",
    "truncate -s 0",
    "chmod 600",
    "ln -s",
    "mkdir",
    "split",
    "true",
    "cd src; cat",
    "cd nowhere; rm",
    "cd docs && ls",
    "exec cat",
    "trap 'rm a.txt' EXIT; cat",
    "read x <",
    "x=rm; $x",
    "x=cat; $x",
    "alias cat=rm; cat",
    "cat() { rm \"$@\"; }; cat",
    "patch --dry-run -p1 <",
    "tree",
    "less",
    "more",
    "nl",
    "tac",
    "comm a.txt",
    "join a.txt",
    "basename",
    "realpath",
    "sqlite3",
    "ed -s",
];
const OPERANDS_RANDOM: &[&str] = &[
    "", "a.txt", "b.txt c.txt", "src", "docs/guide.md", "*.txt", "\"$x\"", "$x", "$(ls)",
    "`echo b.txt`", "-- a.txt", "-o b.txt a.txt", "new.txt", "../project/a.txt", "~", "-r a.txt",
    "-f b.txt", "--output=b.txt a.txt", "-i a.txt", "-w a.txt", "{a,b}.txt", "-", "$'a.txt'",
    "\"a\".txt", "archive.tar.gz", "data/users.csv", "HEAD",
];
const JOINTS: &[&str] = &[
    " | ", "; ", " && ", " || ", " & ", " |& ", " > /dev/null; ", " 2>&1 | ", " > new.txt; ",
    " >> a.txt; ",
];
const FRAMES: &[&str] = &[
    "@",
    "@",
    "@",
    "@",
    "(@)",
    "{ @; }",
    "if true; then @; fi",
    "for x in a.txt b.txt; do @; done",
    "while read x; do @; done < a.txt",
    "echo \"$(@)\"",
    "echo \"${x:-'$(@)'}\"",
    "cat <(@)",
    "! @",
    "x=b.txt; @",
    "case a in a) @;; esac",
    "bash -c '@'",
    "x=-o; @",
    "find . -name a.txt | xargs @",
    "[[ -n $(@) ]]",
    "ls -A | xargs @",
    "set -e; @",
    "export X=1; @",
    "PAGER=cat @",
    "PATH=.:$PATH; @",
    "f() { @; }; f",
    "ls | while read x; do @; done",
    "echo $((1 + $(@)))",
];

fn random(dice: &mut Dice) -> String {
    let mut line = String::new();
    for part in 0..=dice.below(3) {
        if part > 0 {
            line += dice.pick(JOINTS);
        }
        line += dice.pick(COMMANDS);
        line += " ";
        line += dice.pick(OPERANDS_RANDOM);
    }
    dice.pick(FRAMES).replace('@', line.trim_end())
}

#[test]
#[ignore = "takes minutes; .ci/run does it with BEFOREHAND_REQUIRE_ORACLE=1"]
fn random_lines_that_are_judged_read_only_change_nothing() {
    let mut sandbox = Sandbox::new("bash");
    let wanted = wished("BEFOREHAND_ORACLE_LINES").unwrap_or(2000);
    let mut dice = Dice::new(1);
    let (mut runs, mut made) = (0_u64, 0_u64);
    let mut wrong = String::new();
    while runs < wanted && made < wanted * 100 {
        let line = random(&mut dice);
        made += 1;
        if !reads(&line) {
            continue;
        }
        runs += 1;
        let changed = sandbox.run(&line);
        if !changed.is_empty() {
            eprintln!("changed {changed:?}: {line}");
            writeln!(wrong, "{line}: {changed:?}").unwrap();
        }
    }
    eprintln!("{runs} of {made} random lines are judged read-only and were run");
    assert!(wrong.is_empty(), "{wrong}");
}
