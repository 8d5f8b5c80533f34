//! A world of its own for one test: a project, a home, a clock, streams. The whole program runs in
//! this process.

use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    fs, io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::Mutex,
    time::Instant,
};

use beforehand::process::{
    Ancestor, Aside, Exit, OwnProcess, Process, RunPlace, RunningProgram, Stdin, Terminal,
};
use chrono::{DateTime, TimeDelta, Utc};

use super::{
    contract,
    temp::{TempDir, write},
};

/// A project with a home beside it.
pub(crate) struct World {
    dir: TempDir,
    pub(crate) now: DateTime<Utc>,
    pub(crate) env: BTreeMap<OsString, OsString>,
    /// Whether a person sits there.
    pub(crate) terminal: Terminal,
    /// What was started to go on in the background.
    aside: Others,
    /// Where the state directory is, unless it is at home.
    away: Option<TempDir>,
    /// Ids in the order they were seen, so that every run shows the same.
    ids: Vec<String>,
}

/// The other processes of a world, and its machine. What is started is noted, and not run.
#[derive(Debug, Default)]
struct Others {
    started: Mutex<Vec<Vec<String>>>,
    /// Who started us, the nearest first.
    ancestors: Vec<Ancestor>,
    /// Where a program listens that is started to listen.
    address: Option<String>,
    editor: Option<Editor>,
    /// The user's running processes.
    running: Vec<OwnProcess>,
    /// Where settings of the whole machine are.
    system: PathBuf,
}

/// The deadline of hooks where a test sets none: the usual one can pass before a busy machine is done,
/// and then a checkpoint is partial or the effect of a call unknown.
pub(crate) const PATIENT: (&str, &str) = ("BEFOREHAND_DEADLINE", "20s");

/// What an editor makes of a file.
type Editor = fn(&str) -> String;

impl Aside for Others {
    fn ancestor(&self, pid: Option<u32>) -> Option<Ancestor> {
        let is_it = |one: &&Ancestor| pid.is_none_or(|pid| one.pid == pid);
        self.ancestors.iter().find(is_it).cloned()
    }

    fn own_processes(&self) -> Vec<OwnProcess> {
        self.running.clone()
    }

    fn system(&self) -> &Path {
        &self.system
    }

    fn start(&self, args: &[OsString], _: &BTreeMap<OsString, OsString>) -> io::Result<()> {
        let args = args.iter().map(|arg| arg.to_str().unwrap().to_owned());
        self.started.lock().unwrap().push(args.collect());
        Ok(())
    }

    fn run(&self, command: &[OsString], place: RunPlace<'_>) -> io::Result<u8> {
        if let Some(dir) = place.dir {
            let mut program = Command::new(&command[0]);
            program.args(&command[1..]).current_dir(dir).stdout(Stdio::null());
            return Ok(u8::try_from(program.status()?.code().unwrap()).unwrap());
        }
        if let (Some(edit), [_, .., file]) = (self.editor, command) {
            let text = fs::read_to_string(file)?;
            write(Path::new(file), edit(&text));
        }
        self.start(command, &BTreeMap::new()).map(|()| 0)
    }

    fn listen(
        &self,
        command: &[&OsStr],
        _: &Path,
        _: &str,
    ) -> io::Result<(RunningProgram, String)> {
        let address = self.address.clone().ok_or(io::ErrorKind::Unsupported)?;
        let words = command.iter().map(|word| word.to_str().unwrap().to_owned());
        self.started.lock().unwrap().push(words.collect());
        Ok((RunningProgram::default(), address))
    }
}

/// What a command said.
#[derive(Debug)]
pub(crate) struct Output {
    pub(crate) exit: Exit,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl World {
    /// A plain directory with nothing in it.
    pub(crate) fn new() -> Self {
        let dir = TempDir::new();
        fs::create_dir(dir.path().join("home")).unwrap();
        fs::create_dir_all(dir.path().join("code/shop")).unwrap();
        let now = DateTime::from_timestamp(1_795_183_331, 0).unwrap();
        let mut world = Self {
            dir,
            now,
            env: BTreeMap::new(),
            terminal: Terminal::default(),
            aside: Others::default(),
            away: None,
            ids: Vec::new(),
        };
        world.aside.system = world.dir.path().join("machine");
        let home = world.dir.path().join("home");
        world.set("HOME", &home.to_string_lossy());
        world
    }

    /// The same in a git repository, made without git.
    pub(crate) fn with_git() -> Self {
        let world = Self::new();
        let options = gix::create::Options::default();
        gix::create::into(world.root(), gix::create::Kind::WithWorktree, options).unwrap();
        world
    }

    /// The same with the state on another file system, where nothing can be linked to; `None`, and
    /// said so, if there is none to be had.
    #[expect(clippy::print_stderr, reason = "a test that did not run must not look as if it had")]
    pub(crate) fn without_links() -> Option<Self> {
        let mut world = Self::new();
        let elsewhere = Path::new("/dev/shm");
        let device = |path: &Path| fs::metadata(path).map(|found| found.dev()).ok();
        if device(elsewhere).is_none_or(|it| Some(it) == device(world.dir.path())) {
            // Said once more loudly where one was promised.
            #[expect(clippy::disallowed_methods, reason = "a wish of `.ci/run`, not of users")]
            let is_required = std::env::var_os("BEFOREHAND_REQUIRE_SECOND_FILE_SYSTEM").is_some();
            assert!(!is_required, "there is no second file system");
            eprintln!("skipped: there is no second file system at {}", elsewhere.display());
            return None;
        }
        let away = TempDir::below(elsewhere);
        world.set("XDG_STATE_HOME", &away.path().to_string_lossy());
        world.away = Some(away);
        Some(world)
    }

    /// The project.
    pub(crate) fn root(&self) -> PathBuf {
        self.dir.path().join("code/shop")
    }

    /// The state directory.
    pub(crate) fn state(&self) -> PathBuf {
        match &self.away {
            Some(away) => away.path().join("beforehand"),
            None => self.dir.path().join("home/.local/state/beforehand"),
        }
    }

    /// The home directory.
    pub(crate) fn home(&self) -> PathBuf {
        self.dir.path().join("home")
    }

    /// Our private repository for the project's own.
    pub(crate) fn private(&self) -> PathBuf {
        self.private_of(&self.root().join(".git"))
    }

    /// Our private repository for one of the user's.
    pub(crate) fn private_of(&self, git_dir: &Path) -> PathBuf {
        let name = beforehand::state::hash_name(&[git_dir.as_os_str().as_encoded_bytes()]);
        self.state().join("repositories").join(name)
    }

    /// The settings file.
    pub(crate) fn settings(&self) -> PathBuf {
        self.dir.path().join("home/.config/beforehand/config.toml")
    }

    /// Says which processes we descend from, nearest first: their numbers and programs.
    pub(crate) fn started_by(&mut self, ancestors: &[(u32, &str)]) {
        let parents = ancestors.iter().skip(1).map(|(pid, _)| *pid).chain([0]);
        let one = |((pid, name), parent): (&(u32, &str), u32)| Ancestor {
            pid: *pid,
            parent,
            start: "100".to_owned(),
            name: (*name).to_owned(),
        };
        self.aside.ancestors = ancestors.iter().zip(parents).map(one).collect();
    }

    /// Says which agents run in the project now, by their command lines.
    pub(crate) fn runs(&mut self, lines: &[&str]) {
        let process = |(pid, line): (u32, &&str)| OwnProcess {
            pid,
            args: shell_words::split(line).unwrap().into_iter().map(Into::into).collect(),
            dir: Some(self.root()),
        };
        self.aside.running = (1..).zip(lines).map(process).collect();
    }

    /// A file of the whole machine, as in `etc/NAME`.
    pub(crate) fn system_file(&self, name: &str) -> PathBuf {
        self.aside.system.join(name)
    }

    /// Says what comes of a file that a program is run on.
    pub(crate) fn edits(&mut self, edit: Editor) {
        self.aside.editor = Some(edit);
    }

    /// Says where a program listens that is started to listen.
    pub(crate) fn listens_at(&mut self, address: &str) {
        self.aside.address = Some(address.to_owned());
    }

    /// Sets an environment variable.
    pub(crate) fn set(&mut self, name: &str, value: &str) {
        self.env.insert(name.into(), value.into());
    }

    /// Writes a file of the project.
    pub(crate) fn write(&self, path: &str, text: impl AsRef<[u8]>) {
        write(&self.root().join(path), text);
    }

    /// Reads a file of the project.
    pub(crate) fn read(&self, path: &str) -> String {
        fs::read_to_string(self.root().join(path)).unwrap()
    }

    /// The time it is there.
    pub(crate) fn now(&self) -> DateTime<Utc> {
        self.now
    }

    /// Lets time pass.
    pub(crate) fn wait(&mut self, seconds: i64) {
        self.now += TimeDelta::seconds(seconds);
    }

    /// Runs one command in the project.
    pub(crate) fn run(&mut self, args: &[&str]) -> Output {
        self.run_in(&self.root(), args, "")
    }

    /// Runs one command somewhere with something on stdin.
    pub(crate) fn run_in(&self, cwd: &Path, args: &[&str], stdin: &str) -> Output {
        self.run_with(cwd, args, &mut stdin.as_bytes(), self.terminal)
    }

    /// Runs one command in the project with a person at the terminal, who answers as `stdin` says.
    pub(crate) fn run_asked(&self, args: &[&str], stdin: &mut dyn Stdin) -> Output {
        let terminal = Terminal { stdin: true, ..self.terminal };
        self.run_with(&self.root(), args, stdin, terminal)
    }

    fn run_with(
        &self,
        cwd: &Path,
        args: &[&str],
        stdin: &mut dyn Stdin,
        terminal: Terminal,
    ) -> Output {
        let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
        let mut env = self.env.clone();
        if args.first() == Some(&"hook") {
            env.entry(PATIENT.0.into()).or_insert_with(|| PATIENT.1.into());
        }
        let exit = beforehand::run(&mut Process {
            args: args.iter().map(Into::into).collect(),
            cwd: Some(cwd.to_owned()),
            env,
            now: self.now,
            started: Instant::now(),
            stdin,
            stdout: &mut stdout,
            stderr: &mut stderr,
            terminal,
            aside: &self.aside,
        });
        let text = |bytes| String::from_utf8(bytes).unwrap();
        let output = Output { exit, stdout: text(stdout), stderr: text(stderr) };
        contract::check(args, &output.stdout);
        output
    }

    /// What was started in the background since the last look, by its arguments.
    pub(crate) fn started(&self) -> Vec<Vec<String>> {
        std::mem::take(&mut *self.aside.started.lock().unwrap())
    }

    /// Runs what was started in the background, as far as it starts nothing more.
    pub(crate) fn run_started(&self) {
        for args in self.started() {
            let args: Vec<&str> = args.iter().map(String::as_str).collect();
            let output = self.run_in(Path::new("/"), &args, "");
            assert_eq!((output.exit, &*output.stdout, &*output.stderr), (Exit::Ok, "", ""));
        }
    }

    /// Runs one command and gives everything it said and how it ended, without what differs from
    /// run to run.
    pub(crate) fn see(&mut self, args: &[&str]) -> String {
        let output = self.run(args);
        let told = format!("{}--- {:?}\n{}", output.stdout, output.exit, output.stderr);
        self.redact(&told)
    }

    /// Answers one call of Claude Code before a tool runs.
    pub(crate) fn hook(&mut self, turn: &str, tool: &str, input: &serde_json::Value) -> String {
        let payload = serde_json::json!({
            "session_id": "s1",
            "cwd": self.root(),
            "prompt_id": turn,
            "hook_event_name": "PreToolUse",
            "tool_name": tool,
            "tool_input": input,
            "tool_use_id": "x",
        });
        let args = ["hook", "--agent", "claude-code"];
        let output = self.run_in(&self.root(), &args, &payload.to_string());
        assert_eq!((output.exit, &*output.stderr), (Exit::Ok, ""));
        output.stdout
    }

    /// The agent runs a command line, as far as the hook is concerned.
    pub(crate) fn before_bash(&mut self, turn: &str, command: &str) -> String {
        self.hook(turn, "Bash", &serde_json::json!({ "command": command }))
    }

    /// The agent writes a file of the project: the hook is asked, and then it is written.
    pub(crate) fn agent_writes(&mut self, turn: &str, path: &str, text: &str) -> String {
        let file = self.root().join(path);
        let input = serde_json::json!({ "file_path": file, "content": text });
        let answer = self.hook(turn, "Write", &input);
        self.write(path, text);
        answer
    }

    /// Ids become letters in the order they come; the world's own place becomes a word.
    pub(crate) fn redact(&mut self, text: &str) -> String {
        let mut text = text.replace(&*self.dir.path().to_string_lossy(), "/world");
        // Named after the place of the world.
        let private = regex::Regex::new("repositories/[0-9a-f]{32}").unwrap();
        text = private.replace_all(&text, "repositories/HASH").into_owned();
        // Local time is another one elsewhere.
        let moment = regex::Regex::new(r"\d{4}-\d\d-\d\d \d\d:\d\d(:\d\d)?").unwrap();
        text = moment.replace_all(&text, "DATE TIME").into_owned();
        let time = regex::Regex::new(r"(?m)(^|\s)\d\d:\d\d(\s|$)").unwrap();
        text = time.replace_all(&text, "${1}HH:MM${2}").into_owned();
        for id in ids_in(&text) {
            if !self.ids.iter().any(|known| known.starts_with(&id)) {
                self.ids.push(id.clone());
            }
        }
        // The long ones first, for the short are their beginnings.
        let mut found = ids_in(&text);
        found.sort_by_key(|id| std::cmp::Reverse(id.len()));
        for id in found {
            let number = self.ids.iter().position(|known| known[..4] == id[..4]).unwrap();
            let name = format!("id-{}", number + 1);
            text = text.replace(&id, &name);
        }
        text
    }
}

/// Words that look like ids: 16 hex digits, or 4 with a letter first that stand alone.
fn ids_in(text: &str) -> Vec<String> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric());
    let is_id = |word: &&str| {
        matches!(word.len(), 4 | 16)
            && word.starts_with(|c| matches!(c, 'a'..='f'))
            && word.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    };
    words.filter(is_id).map(str::to_owned).collect()
}
