//! A repository in a temporary directory, and what happens to it between two runs.

use std::{
    fmt, fs, io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    str::FromStr,
    time::{Duration, Instant},
};

use crate::system::{BEFOREHAND, COPY, GIT, System};

/// Past the tick of the file system's clock, so that stamps prove something.
const TICK: Duration = Duration::from_millis(30);
/// How many files lie in one directory.
const PER_DIRECTORY: usize = 25;

/// What sort of tree it is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// So many small files, all committed.
    Files(usize),
    /// 1,000 of those, and 5,000 that git does not track.
    Untracked,
    /// 1,000 of those, and 40,000 that are ignored.
    Ignored,
    /// 1,000 of those, and one of 2 GB that git does not track.
    Large,
    /// 10,000 without a repository.
    Plain,
}

impl FromStr for Kind {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        match text {
            "untracked" => Ok(Self::Untracked),
            "ignored" => Ok(Self::Ignored),
            "large" => Ok(Self::Large),
            "plain" => Ok(Self::Plain),
            other => other.parse().map(Self::Files).map_err(drop),
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Files(count) => write!(f, "{count} files"),
            Self::Untracked => f.write_str("1000 files and 5000 untracked"),
            Self::Ignored => f.write_str("1000 files and 40000 ignored"),
            Self::Large => f.write_str("1000 files and one of 2 GB"),
            Self::Plain => f.write_str("10000 files, no repository"),
        }
    }
}

/// What something takes on the disk.
#[derive(Clone, Copy, Default)]
pub(crate) struct Room {
    pub(crate) bytes: u64,
    pub(crate) inodes: u64,
}

impl Room {
    pub(crate) fn since(self, before: Self) -> Self {
        Self {
            bytes: self.bytes.saturating_sub(before.bytes),
            inodes: self.inodes.saturating_sub(before.inodes),
        }
    }

    fn add(&mut self, dir: &Path) -> io::Result<()> {
        for entry in fs::read_dir(dir)? {
            let entry = entry?;
            let found = entry.metadata()?;
            self.bytes += found.blocks() * 512;
            self.inodes += 1;
            if found.is_dir() {
                self.add(&entry.path())?;
            }
        }
        Ok(())
    }
}

pub(crate) struct Place {
    top: PathBuf,
    kind: Kind,
    pub(crate) tree: PathBuf,
    /// Where the system at work keeps what is its own.
    pub(crate) store: PathBuf,
    /// The id of the last snapshot.
    pub(crate) id: String,
    /// What beforehand is run by, if anything.
    pub(crate) watcher: String,
    files: Vec<PathBuf>,
    turns: usize,
    is_ours: bool,
    filled: [bool; 2],
}

impl Drop for Place {
    fn drop(&mut self) {
        let _left = fs::remove_dir_all(&self.top);
    }
}

impl Place {
    /// Makes a tree. What git tracks is committed and packed.
    pub(crate) fn make(kind: Kind) -> io::Result<Self> {
        let top = std::env::temp_dir().join(format!("beforehand-paired-{}", std::process::id()));
        let (tree, store) = (top.join("tree"), top.join("git"));
        for dir in [&tree, &store, &top.join("beforehand"), &top.join("cp -a")] {
            fs::create_dir_all(dir)?;
        }
        let count = match kind {
            Kind::Files(count) => count,
            Kind::Plain => 10_000,
            Kind::Untracked | Kind::Ignored | Kind::Large => 1_000,
        };
        let files: Vec<PathBuf> = (0..count).map(|number| tree.join(name("src", number))).collect();
        let (id, watcher, filled) = (String::new(), String::new(), [false; 2]);
        let (turns, is_ours) = (0, false);
        let mut place = Self { top, kind, tree, store, id, watcher, files, turns, is_ours, filled };
        for number in 0..place.files.len() {
            place.write(number)?;
        }
        if kind != Kind::Plain {
            fs::write(place.tree.join(".gitignore"), "/out/\n")?;
            let commit = "git init -q -b main && git add -A && git commit -q -m base &&
                git repack -adq && sleep 0.1 && git status >$STORE/out";
            place.time(&GIT, commit)?;
        }
        place.add_more()?;
        Ok(place)
    }

    /// Adds what git does not track.
    fn add_more(&self) -> io::Result<()> {
        let (dir, count) = match self.kind {
            Kind::Untracked => ("new", 5_000),
            Kind::Ignored => ("out", 40_000),
            Kind::Large => return fs::File::create(self.tree.join("large"))?.set_len(2 << 30),
            Kind::Files(_) | Kind::Plain => return Ok(()),
        };
        for number in 0..count {
            let path = self.tree.join(name(dir, number));
            fs::create_dir_all(path.parent().unwrap_or(&self.tree))?;
            fs::write(path, format!("more {number}\n").repeat(20))?;
        }
        Ok(())
    }

    /// What beforehand is compared with.
    pub(crate) fn other(&self) -> &'static System {
        if self.kind == Kind::Plain { &COPY } else { &GIT }
    }

    /// What a watcher writes down about one run of beforehand; `None` if there is no such program.
    pub(crate) fn watched(
        &mut self,
        watcher: &str,
        before: fn(&mut Self) -> io::Result<()>,
        script: &str,
    ) -> io::Result<Option<String>> {
        self.turn_to(&BEFOREHAND)?;
        before(self)?;
        let said = self.top.join("watched");
        self.watcher = format!("{watcher} {} ", said.display());
        let ran = self.time(&BEFOREHAND, script);
        self.watcher.clear();
        if ran.is_err() {
            return Ok(None);
        }
        fs::read_to_string(said).map(Some)
    }

    /// Makes everything as `system` left it.
    pub(crate) fn turn_to(&mut self, system: &System) -> io::Result<()> {
        self.store = self.top.join(system.name);
        self.is_ours = system.name == BEFOREHAND.name;
        self.settle()
    }

    fn system(&self) -> &'static System {
        if self.is_ours { &BEFOREHAND } else { self.other() }
    }

    /// No snapshot was ever taken.
    pub(crate) fn forget(&mut self) -> io::Result<()> {
        let from_git = "git for-each-ref --format='delete %(refname)' refs/paired | \
                        git update-ref --stdin\ngit prune --expire=now";
        // What is ours lies in the store alone.
        let from_git = if self.kind == Kind::Plain || self.is_ours { "" } else { from_git };
        // A round of maintenance may still be writing there.
        let forget = format!(
            "{from_git}\nfor n in $(seq 50); do rm -rf \"$STORE\" && mkdir \"$STORE\" && exit; sleep 0.1; done; false"
        );
        self.time(self.system(), &forget)?;
        pause();
        Ok(())
    }

    /// The last snapshot is of what is there now.
    pub(crate) fn settle(&mut self) -> io::Result<()> {
        pause();
        if self.kind == Kind::Plain && !self.is_ours {
            // Each copy is a whole one, beside nothing.
            let _none = fs::remove_dir_all(self.store.join("copy"));
            return Ok(());
        }
        self.time(self.system(), self.system().snapshot)?;
        pause();
        Ok(())
    }

    pub(crate) fn change_ten(&mut self) -> io::Result<()> {
        for number in 0..10 {
            self.write(number * 97 % self.files.len())?;
        }
        pause();
        Ok(())
    }

    /// Fifty files are gone, fifty are others, five are new.
    pub(crate) fn ruin(&mut self) -> io::Result<()> {
        self.settle()?;
        for number in 0..50 {
            fs::remove_file(&self.files[number * 2])?;
            self.write(number * 2 + 1)?;
        }
        for number in 0..5 {
            fs::write(self.files[number].with_extension("new"), "new\n")?;
        }
        pause();
        Ok(())
    }

    /// There are fifty snapshots.
    pub(crate) fn fill(&mut self) -> io::Result<()> {
        if !std::mem::replace(&mut self.filled[usize::from(self.is_ours)], true) {
            for _ in 0..50 {
                self.write(3)?;
                self.settle()?;
            }
            self.time(self.system(), self.system().list)?;
        }
        Ok(())
    }

    /// What the repository and the store take.
    pub(crate) fn room(&self) -> io::Result<Room> {
        let mut room = Room::default();
        if self.kind != Kind::Plain {
            room.add(&self.tree.join(".git"))?;
        }
        room.add(&self.store)?;
        Ok(room)
    }

    fn write(&mut self, number: usize) -> io::Result<()> {
        self.turns += 1;
        let path = &self.files[number];
        fs::create_dir_all(path.parent().unwrap_or(&self.tree))?;
        let line = format!("line {number} of turn {}\n", self.turns);
        fs::write(path, line.repeat(20 + number % 60))
    }
}

fn pause() {
    std::thread::sleep(TICK);
}

/// Where the file of a number lies below a directory.
fn name(dir: &str, number: usize) -> String {
    let parts = number / PER_DIRECTORY;
    format!("{dir}/m{:02}/m{:02}/f{number}.txt", parts % 20, parts / 20)
}

impl Place {
    /// Runs a script of `system` and tells how long it took, in milliseconds. Keeps the id it
    /// printed.
    pub(crate) fn time(&mut self, system: &System, script: &str) -> io::Result<f64> {
        let mut command = shell(self, script);
        let begin = Instant::now();
        let output = command.output()?;
        let wall = begin.elapsed().as_secs_f64() * 1e3;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            return Err(io::Error::other(format!("{}: {said}", system.name)));
        }
        let text = String::from_utf8_lossy(&output.stdout);
        self.id = text.trim_end().lines().last().map_or(self.id.clone(), str::to_owned);
        Ok(wall)
    }
}

/// What the shell and a program that does nothing take, in milliseconds.
pub(crate) fn floor(place: &Place) -> io::Result<f64> {
    let mut command = shell(place, "/bin/true; echo");
    let begin = Instant::now();
    command.output()?;
    Ok(begin.elapsed().as_secs_f64() * 1e3)
}

fn shell(place: &Place, script: &str) -> Command {
    let mut command = Command::new("/bin/sh");
    let fixture = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/empty.gitconfig");
    command.args(["-c", script]).current_dir(&place.tree).stdin(Stdio::null()).env_clear();
    command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
    for (name, value) in [("WT", &place.tree), ("STORE", &place.store), ("HOME", &place.store)] {
        command.env(name, value);
    }
    command.env("BEFOREHAND_HOME", place.store.join("home")).env("ID", &place.id);
    command.env("BEFOREHAND", format!("{}{}", place.watcher, env!("CARGO_BIN_EXE_beforehand")));
    command.env("GIT_CONFIG_GLOBAL", fixture).env("GIT_CONFIG_SYSTEM", fixture);
    for who in ["AUTHOR", "COMMITTER"] {
        command
            .env(format!("GIT_{who}_NAME"), "b")
            .env(format!("GIT_{who}_EMAIL"), "b@example.org");
    }
    command
}
