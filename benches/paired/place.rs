//! A repository in a temporary directory, and what happens to it between two runs.

use std::{
    fs, io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    time::Duration,
};

use crate::system::{GIT, System, TURNBACK};

/// Past the tick of the file system's clock, so that stamps prove something.
const TICK: Duration = Duration::from_millis(30);
/// How many files lie in one directory.
const PER_DIRECTORY: usize = 25;

pub(crate) struct Place {
    top: PathBuf,
    pub(crate) tree: PathBuf,
    /// Where the system at work keeps what is its own.
    pub(crate) store: PathBuf,
    /// The id of the last snapshot.
    pub(crate) id: String,
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
    /// Makes a repository of so many files, all committed and packed.
    pub(crate) fn make(files: usize) -> io::Result<Self> {
        let top = std::env::temp_dir().join(format!("turnback-paired-{}", std::process::id()));
        let (tree, store) = (top.join("tree"), top.join("git"));
        for dir in [&tree, &store, &top.join("turnback")] {
            fs::create_dir_all(dir)?;
        }
        let paths = (0..files).map(|number| {
            let dir = number / PER_DIRECTORY;
            tree.join(format!("src/m{:02}/m{:02}/f{number}.txt", dir % 20, dir / 20))
        });
        let files: Vec<PathBuf> = paths.collect();
        let (id, filled) = (String::new(), [false; 2]);
        let mut place = Self { top, tree, store, id, files, turns: 0, is_ours: false, filled };
        for number in 0..place.files.len() {
            place.write(number)?;
        }
        let commit = "git init -q -b main && git add -A && git commit -q -m base &&
            git repack -adq && sleep 0.1 && git status >$STORE/out";
        GIT.time(&mut place, commit)?;
        Ok(place)
    }

    /// Makes everything as `system` left it.
    pub(crate) fn turn_to(&mut self, system: &System) -> io::Result<()> {
        self.store = self.top.join(system.name);
        self.is_ours = system.name == TURNBACK.name;
        self.settle()
    }

    fn system(&self) -> &'static System {
        if self.is_ours { &TURNBACK } else { &GIT }
    }

    /// No snapshot was ever taken.
    pub(crate) fn forget(&mut self) -> io::Result<()> {
        let refs = if self.is_ours { "refs/turnback" } else { "refs/paired" };
        let forget = format!(
            "git for-each-ref --format='delete %(refname)' {refs} | git update-ref --stdin
rm -rf $STORE && mkdir $STORE && git prune --expire=now"
        );
        self.system().time(self, &forget)?;
        pause();
        Ok(())
    }

    /// The last snapshot is of what is there now.
    pub(crate) fn settle(&mut self) -> io::Result<()> {
        pause();
        self.system().time(self, self.system().snapshot)?;
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
            self.system().time(self, self.system().list)?;
        }
        Ok(())
    }

    /// The bytes that the repository and the store take.
    pub(crate) fn bytes(&self) -> io::Result<u64> {
        Ok(room(&self.tree.join(".git"))? + room(&self.store)?)
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

fn room(dir: &Path) -> io::Result<u64> {
    let mut bytes = 0;
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let found = entry.metadata()?;
        bytes += found.blocks() * 512;
        if found.is_dir() {
            bytes += room(&entry.path())?;
        }
    }
    Ok(bytes)
}
