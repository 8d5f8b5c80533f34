//! A tree in a temporary directory, what is run in it, and what happens to it between two runs.

use std::{
    fs, io,
    os::unix::{ffi::OsStrExt as _, fs::MetadataExt as _},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use crate::{
    floors,
    tree::{self, Tree, environment},
};

/// Past the tick of the file system's clock, so that stamps prove something.
const TICK: Duration = Duration::from_millis(30);
/// What is started in the background is waited for this long.
const ASIDE_MAX: Duration = Duration::from_secs(300);
/// Files that an operation changes: ten, fifty that are deleted, and fifty that are rewritten.
const PICKED: usize = 120;

/// Git plumbing in a git directory of its own, so that what it adds is not seen by beforehand. Its index is
/// kept, and nothing is recorded if nothing changed. These are the lines of a shell script.
const GIT_PREPARE: &str = "mkdir -p $STORE && git init -q &&
    echo $WT/.git/objects >$GIT_DIR/objects/info/alternates && cp $WT/.git/index $GIT_INDEX_FILE";
const GIT_SNAPSHOT: &str = "git add -A && t=$(git write-tree) &&
    if [ \"$t\" = \"$(cat $STORE/last 2>/dev/null)\" ]; then cat $STORE/id
    else c=$(git commit-tree $t -m s) && git update-ref refs/paired/$c $c &&
    echo $t >$STORE/last && echo $c | tee $STORE/id; fi";
const GIT_COLD: &str = "git add -A && t=$(git write-tree) && c=$(git commit-tree $t -m s) &&
    git update-ref refs/paired/$c $c";
const GIT_RESTORE: &str = "git add -A && git read-tree --reset -u $(cat $STORE/id)";
const GIT_LIST: &str = "git for-each-ref --sort=-creatordate --count=50 refs/paired/";

/// What something takes on the disk.
#[derive(Clone, Copy, Default)]
pub(crate) struct Usage {
    pub(crate) bytes: u64,
    pub(crate) inodes: u64,
    /// Names of files that have another name elsewhere: they take no space while that one is there.
    pub(crate) links: u64,
}

impl Usage {
    pub(crate) fn since(self, before: Self) -> Self {
        Self {
            bytes: self.bytes.saturating_sub(before.bytes),
            inodes: self.inodes.saturating_sub(before.inodes),
            links: self.links.saturating_sub(before.links),
        }
    }

    fn add(&mut self, dir: &Path) -> io::Result<()> {
        for entry in fs::read_dir(dir)? {
            let entry = entry?;
            let found = entry.metadata()?;
            if found.is_file() && found.nlink() > 1 {
                self.links += 1;
                continue;
            }
            self.bytes += found.blocks() * 512;
            self.inodes += 1;
            if found.is_dir() {
                self.add(&entry.path())?;
            }
        }
        Ok(())
    }
}

/// A tree, and the stores of beforehand and git beside it.
pub(crate) struct Place {
    top: PathBuf,
    pub(crate) tree: Tree,
    /// The program that is measured.
    program: PathBuf,
    dir: PathBuf,
    files: Vec<PathBuf>,
    /// What the files have that a restore puts back.
    expected: Vec<(PathBuf, Vec<u8>)>,
    is_filled: bool,
    turns: usize,
}

impl Drop for Place {
    fn drop(&mut self) {
        let _left = fs::remove_dir_all(&self.top);
    }
}

impl Place {
    pub(crate) fn make(tree: Tree, program: &Path) -> io::Result<Self> {
        let top = std::env::temp_dir().join(format!("beforehand-paired-{}", std::process::id()));
        let dir = top.join("tree");
        fs::create_dir_all(&dir)?;
        let (program, files) = (program.to_owned(), Vec::new());
        let (expected, is_filled, turns) = (Vec::new(), false, 0);
        let mut place = Self { top, tree, program, dir, files, expected, is_filled, turns };
        let all = tree::make(tree, &place.dir)?;
        place.files = (0..PICKED).map(|number| all[number * all.len() / PICKED].clone()).collect();
        place.write_lists()?;
        if tree.is_git() {
            place.git_prepare()?;
        }
        Ok(place)
    }

    /// Lists for the floors: every path that a scan stats, and every file that it reads.
    fn write_lists(&self) -> io::Result<()> {
        let (mut known, mut files, mut new) = (Vec::new(), Vec::new(), 0);
        self.list(&self.dir, &mut known, &mut files)?;
        let loose = match self.tree {
            Tree::Plain => Some("src"),
            Tree::Untracked => Some("new"),
            Tree::Held => Some("notes"),
            Tree::Large => Some("model.bin"),
            _ => None,
        };
        // What no pack of the repository has yet must be written.
        for path in files.split(|&byte| byte == 0).filter(|path| !path.is_empty()) {
            if loose.is_some_and(|top| path.starts_with(top.as_bytes())) {
                new += fs::metadata(self.dir.join(as_path(path)))?.len();
            }
        }
        fs::write(self.top.join("known"), known)?;
        fs::write(self.top.join("files"), files)?;
        fs::write(self.top.join("new"), new.to_string())
    }

    fn list(&self, dir: &Path, known: &mut Vec<u8>, files: &mut Vec<u8>) -> io::Result<()> {
        for entry in fs::read_dir(dir)? {
            let entry = entry?;
            let (path, is_dir) = (entry.path(), entry.file_type()?.is_dir());
            let name = path.strip_prefix(&self.dir).unwrap_or(&path).as_os_str().as_bytes();
            if name == b".git" {
                continue;
            }
            for list in if is_dir { vec![&mut *known] } else { vec![&mut *known, &mut *files] } {
                list.extend_from_slice(name);
                list.push(0);
            }
            if is_dir && name != b"node_modules" {
                self.list(&path, known, files)?;
            }
        }
        Ok(())
    }

    /// A floor, as a process.
    pub(crate) fn floor(&self, args: &[&str]) -> io::Result<f64> {
        let mut command = Command::new(std::env::current_exe()?);
        environment(&mut command, &self.dir).arg(floors::WORD).args(args).stdin(Stdio::null());
        self.sync()?;
        self.time(&mut command)
    }

    /// Writes what is dirty to the disk, so that the next process does not wait for it.
    pub(crate) fn sync(&self) -> io::Result<()> {
        Ok(rustix::fs::syncfs(fs::File::open(&self.top)?)?)
    }

    /// The path of a file that a floor reads or writes.
    pub(crate) fn beside(&self, name: &str) -> String {
        self.top.join(name).to_string_lossy().into_owned()
    }

    /// beforehand, with a program that watches it in front.
    pub(crate) fn beforehand(&self, watcher: &[String], args: &[&str]) -> Command {
        let program = self.program.to_string_lossy();
        let mut words = watcher.iter().map(String::as_str).chain([&*program]);
        let mut command = Command::new(words.next().unwrap_or(&program));
        environment(&mut command, &self.dir).args(words).args(args).stdin(Stdio::null());
        command.env("HOME", self.top.join("home"));
        command
            .env("BEFOREHAND_HOME", self.top.join("ours"))
            .envs(self.tree.settings().iter().copied());
        command
    }

    /// What the last command printed.
    pub(crate) fn printed(&self) -> io::Result<String> {
        fs::read_to_string(self.top.join("out"))
    }

    /// What the last command said.
    pub(crate) fn said(&self) -> io::Result<String> {
        fs::read_to_string(self.top.join("err"))
    }

    /// Runs a whole process, with its output in a file, and waits for what it left in the background.
    /// Returns the wall milliseconds of the first.
    pub(crate) fn time(&self, command: &mut Command) -> io::Result<f64> {
        command.stdout(fs::File::create(self.top.join("out"))?);
        command.stderr(fs::File::create(self.top.join("err"))?);
        let begin = Instant::now();
        let status = command.status()?;
        let wall = begin.elapsed().as_secs_f64() * 1e3;
        if status.success() {
            return Ok(wall);
        }
        let (program, said) = (command.get_program().to_string_lossy(), self.said()?);
        Err(io::Error::other(format!("{program}, {status}: {said}")))
    }

    /// A script with git, less what the shell takes.
    pub(crate) fn git(&self, script: &str) -> io::Result<f64> {
        let shell = self.time(&mut self.shell(":"))?;
        Ok(self.time(&mut self.shell(script))? - shell)
    }

    fn shell(&self, script: &str) -> Command {
        let mut command = Command::new("/bin/sh");
        let store = self.top.join("git");
        environment(&mut command, &self.dir).args(["-c", script]).stdin(Stdio::null());
        command.env("WT", &self.dir).env("STORE", &store).env("COPY", self.top.join("copy"));
        command.env("GIT_DIR", store.join("repository")).env("GIT_WORK_TREE", &self.dir);
        command.env("GIT_INDEX_FILE", store.join("index"));
        command
    }

    pub(crate) fn git_snapshot(&self) -> io::Result<f64> {
        self.git(GIT_SNAPSHOT)
    }

    pub(crate) fn git_restore(&self) -> io::Result<f64> {
        self.git(GIT_RESTORE)
    }

    pub(crate) fn git_list(&self) -> io::Result<f64> {
        self.git(GIT_LIST)
    }

    /// Git's store is as new.
    fn git_prepare(&self) -> io::Result<()> {
        self.put_aside("git")?;
        self.git(GIT_PREPARE).map(drop)
    }

    /// A first snapshot with git, beginning with the repository's own index.
    pub(crate) fn git_first(&self) -> io::Result<f64> {
        self.git_prepare()?;
        self.git_snapshot()
    }

    /// The same with no index: every file is read. What it has added stays, so that the next snapshot
    /// need not add it again.
    pub(crate) fn git_cold(&self) -> io::Result<f64> {
        self.git_prepare()?;
        fs::remove_file(self.top.join("git/index"))?;
        self.git(GIT_COLD)
    }

    pub(crate) fn copy(&self) -> io::Result<f64> {
        let copied = self.git("cp -a $WT $COPY");
        self.put_aside("copy")?;
        copied
    }

    /// Moves a directory out of the way, to be removed at the end: for minutes after inodes were freed, ext4
    /// without a journal looks at each before it gives out another, which would count as the next one's time.
    fn put_aside(&self, name: &str) -> io::Result<()> {
        let dir = self.top.join(name);
        if !dir.exists() {
            return Ok(());
        }
        if matches!(self.tree, Tree::Synthetic | Tree::Large) {
            // Several of them may not fit.
            return fs::remove_dir_all(dir);
        }
        let aside = self.top.join("aside");
        fs::create_dir_all(&aside)?;
        let number = fs::read_dir(&aside)?.count();
        fs::rename(dir, aside.join(number.to_string()))
    }

    /// beforehand has no checkpoint.
    pub(crate) fn forget(&mut self) -> io::Result<()> {
        self.wait_aside();
        self.put_aside("ours")?;
        self.put_aside("home")?;
        self.is_filled = false;
        pause();
        Ok(())
    }

    /// Both have the state that is there now.
    pub(crate) fn settle(&self) -> io::Result<()> {
        pause();
        if self.tree.is_git() {
            self.git_snapshot()?;
        }
        self.time(&mut self.beforehand(&[], &["create"]))?;
        self.wait_aside();
        pause();
        Ok(())
    }

    /// Waits until what was started in the background is done.
    pub(crate) fn wait_aside(&self) {
        let until = Instant::now() + ASIDE_MAX;
        while self.is_running() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Whether a process of the measured program runs.
    fn is_running(&self) -> bool {
        let Ok(processes) = fs::read_dir("/proc") else { return false };
        processes.flatten().any(|entry| {
            fs::read_link(entry.path().join("exe")).is_ok_and(|exe| exe == self.program)
        })
    }

    pub(crate) fn change_ten(&mut self) -> io::Result<()> {
        self.rewrite(0..10)?;
        pause();
        Ok(())
    }

    fn rewrite(&mut self, range: std::ops::Range<usize>) -> io::Result<()> {
        for number in range {
            self.turns += 1;
            let line = format!("line {number} of turn {}\n", self.turns);
            fs::write(&self.files[number], line.repeat(40 + number))?;
        }
        Ok(())
    }

    /// The bytes of the ten files.
    pub(crate) fn ten_bytes(&self) -> io::Result<u64> {
        let lengths = self.files[..10].iter().map(|path| Ok(fs::metadata(path)?.len()));
        lengths.sum()
    }

    /// Fifty files are gone, fifty are others, five are new.
    pub(crate) fn ruin(&mut self) -> io::Result<()> {
        self.expected.clear();
        let (mut contents, mut removed) = (Vec::new(), Vec::new());
        for path in &self.files[10..110] {
            let bytes = fs::read(path)?;
            let name = path.strip_prefix(&self.dir).unwrap_or(path).as_os_str().as_bytes();
            contents
                .extend([name, b"\0", bytes.len().to_string().as_bytes(), b"\0", &bytes].concat());
            self.expected.push((path.clone(), bytes));
        }
        for path in &self.files[10..60] {
            fs::remove_file(path)?;
        }
        self.rewrite(60..110)?;
        for path in self.new_files() {
            fs::write(&path, "made by an agent\n")?;
            let name = path.strip_prefix(&self.dir).unwrap_or(&path);
            removed.extend([name.as_os_str().as_bytes(), b"\0"].concat());
        }
        fs::write(self.top.join("contents"), contents)?;
        fs::write(self.top.join("removed"), removed)?;
        pause();
        Ok(())
    }

    fn new_files(&self) -> Vec<PathBuf> {
        (60..65).map(|number| self.files[number].with_extension("new")).collect()
    }

    /// Fails unless a restore has put everything back.
    pub(crate) fn verify(&self) -> io::Result<()> {
        let wrong = self
            .expected
            .iter()
            .filter(|(path, bytes)| !fs::read(path).is_ok_and(|now| now == *bytes));
        let left = self.new_files().iter().filter(|path| path.exists()).count();
        match wrong.count() {
            0 if left == 0 => Ok(()),
            wrong => Err(io::Error::other(format!("{wrong} files are wrong, {left} are left"))),
        }
    }

    /// There are as many snapshots as the tree wants, fifty of them git's as well.
    pub(crate) fn fill(&mut self) -> io::Result<()> {
        if !std::mem::replace(&mut self.is_filled, true) {
            for number in 0..self.tree.checkpoints() {
                self.rewrite(0..1)?;
                if number < 50 {
                    self.settle()?;
                } else {
                    self.time(&mut self.beforehand(&[], &["create"]))?;
                }
            }
            self.wait_aside();
            self.time(&mut self.beforehand(&[], &["list"]))?;
            let records = self.printed()?;
            // As much as fifty records take.
            fs::write(self.top.join("records"), records.repeat(20_000 / records.len().max(1) + 1))?;
            pause();
        }
        Ok(())
    }

    /// There are many checkpoints, if the tree is about that.
    pub(crate) fn fill_if_many(&mut self) -> io::Result<()> {
        if self.tree == Tree::Many { self.fill() } else { Ok(()) }
    }

    /// The payload of a call, as Claude Code sends it, in a file.
    pub(crate) fn payload(&self, tool: &str) -> io::Result<fs::File> {
        let file = self.files[0].to_string_lossy();
        let text = serde_json::json!({
            "session_id": "c3ce197b-2e38-48ae-90d5-2345f3b2f201",
            "transcript_path": "/home/dev/.claude/projects/p/c3ce197b.jsonl",
            "cwd": self.dir,
            "prompt_id": "38e6dfc4-13e6-4907-80c7-acb1ab7471bf",
            "permission_mode": "acceptEdits",
            "hook_event_name": "PreToolUse",
            "tool_name": tool,
            "tool_input": { "file_path": file, "old_string": "line", "new_string": "word" },
            "tool_use_id": "toolu_0005",
        });
        fs::write(self.top.join("payload"), text.to_string())?;
        fs::File::open(self.top.join("payload"))
    }

    /// What beforehand's state takes. It adds nothing elsewhere.
    pub(crate) fn usage(&self) -> io::Result<Usage> {
        let (mut usage, dir) = (Usage::default(), self.top.join("ours"));
        if dir.is_dir() {
            usage.add(&dir)?;
        }
        Ok(usage)
    }
}

fn pause() {
    std::thread::sleep(TICK);
}

fn as_path(bytes: &[u8]) -> &Path {
    Path::new(std::ffi::OsStr::from_bytes(bytes))
}
