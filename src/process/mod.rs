//! What this process was given: arguments, directory, environment, clock, and streams.
//!
//! The only module that asks the operating system about any of these, so a test
//! can run the whole program inside itself with a [`Process`] of its own making.
#![expect(clippy::disallowed_methods, reason = "this is the module the rest must go through")]

mod aside;
mod signals;
mod watch;

use std::{
    collections::BTreeMap,
    env,
    ffi::{OsStr, OsString},
    io::{self, Read, Write},
    mem::{self, ManuallyDrop},
    os::{
        fd::OwnedFd,
        unix::{ffi::OsStrExt, fs::PermissionsExt},
    },
    path::{Path, PathBuf},
    process::ExitCode,
    sync::{Arc, atomic::AtomicBool},
    time::{Duration, Instant, SystemTime},
};

use chrono::{DateTime, Utc};

use aside::OsAside;
pub use aside::{Ancestor, Aside, HookCall, HookPlace, OwnProcess, RunPlace, RunningProgram};
pub use watch::{LateAnswer, Watch};

/// The world as one invocation sees it.
pub struct Process<'a> {
    /// Arguments after the program's name.
    pub args: Vec<OsString>,
    /// Absolute path, without symlinks, of the directory we were started in; `None` if it no longer exists.
    pub cwd: Option<PathBuf>,
    /// The environment, read once.
    pub env: BTreeMap<OsString, OsString>,
    /// The moment we started. A short-lived process has only one.
    pub now: DateTime<Utc>,
    /// The same moment on the clock that never runs backwards; deadlines count from it.
    pub started: Instant,
    /// Where a hook payload comes from.
    pub stdin: &'a mut dyn Stdin,
    /// Where results go, and nothing else.
    pub stdout: &'a mut dyn Write,
    /// Where everything said to a person goes.
    pub stderr: &'a mut dyn Write,
    /// What kind of place stdin, stdout and stderr are.
    pub terminal: Terminal,
    /// Starts processes of ours that go on when this one is done, and asks the system about others.
    pub aside: &'a dyn Aside,
}

/// Which streams are a terminal, and how wide it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Terminal {
    /// A person can type at stdin.
    pub stdin: bool,
    /// A person reads stdout.
    pub stdout: bool,
    /// A person reads stderr.
    pub stderr: bool,
    /// How many columns the terminal has, if stdout or stderr is one and the system knows it.
    pub columns: Option<u16>,
}

impl Terminal {
    /// How many columns a line on stdout may have; `None` for any number.
    pub fn stdout_columns(self) -> Option<u16> {
        self.columns.filter(|_| self.stdout)
    }

    /// How many columns a line on stderr may have; `None` for any number.
    pub fn stderr_columns(self) -> Option<u16> {
        self.columns.filter(|_| self.stderr)
    }
}

/// Where input comes from: bytes, and a way to wait for them with a limit.
pub trait Stdin: Read {
    /// Waits until something can be read (end of input included) or `limit` has passed; tells
    /// whether it can be read.
    fn ready(&mut self, limit: Duration) -> bool;

    /// The terminal it is, to be read byte by byte as keys; `None` if it is none.
    fn keys(&self) -> Option<OwnedFd> {
        None
    }
}

/// A terminal to read keys from and to draw on.
#[derive(Debug)]
pub struct Tty {
    /// Where keys come from.
    pub input: OwnedFd,
    /// What is drawn on.
    pub output: OwnedFd,
}

impl Stdin for &[u8] {
    fn ready(&mut self, _: Duration) -> bool {
        true
    }
}

/// The real standard input.
struct OsStdin(io::Stdin);

impl Read for OsStdin {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        // Around the lock and buffer of std: `ready` asks the system, not a buffer.
        Ok(rustix::io::read(&self.0, buffer)?)
    }
}

impl Stdin for OsStdin {
    fn ready(&mut self, limit: Duration) -> bool {
        let mut fds = [rustix::event::PollFd::new(&self.0, rustix::event::PollFlags::IN)];
        let limit = rustix::event::Timespec::try_from(limit).ok();
        !matches!(rustix::event::poll(&mut fds, limit.as_ref()), Ok(0))
    }

    fn keys(&self) -> Option<OwnedFd> {
        let is_terminal = rustix::termios::isatty(&self.0);
        is_terminal.then(|| rustix::io::dup(&self.0).ok()).flatten()
    }
}

/// Where and when a process runs. Unlike its streams, another thread can have it.
#[derive(Clone, Debug)]
pub struct ProcessContext {
    /// As in [`Process::cwd`].
    pub cwd: Option<PathBuf>,
    /// As in [`Process::env`].
    pub env: BTreeMap<OsString, OsString>,
    /// As in [`Process::now`].
    pub now: DateTime<Utc>,
}

/// What a command printed.
#[derive(Clone, Debug)]
pub struct Printed {
    /// On stdout.
    pub stdout: String,
    /// On stderr.
    pub stderr: String,
}

impl ProcessContext {
    /// Runs `act` as a process of its own would, which reads `input`. Returns its result, and what
    /// it printed.
    pub fn run<T>(
        self,
        mut input: &[u8],
        terminal: Terminal,
        aside: &dyn Aside,
        act: impl FnOnce(&mut Process<'_>) -> T,
    ) -> (T, Printed) {
        let Self { cwd, env, now } = self;
        let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
        let result = act(&mut Process {
            args: Vec::new(),
            cwd,
            env,
            now,
            started: Instant::now(),
            stdin: &mut input,
            stdout: &mut stdout,
            stderr: &mut stderr,
            terminal,
            aside,
        });
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (result, Printed { stdout: text(&stdout), stderr: text(&stderr) })
    }
}

impl Process<'_> {
    /// Runs `act` without arguments, input and terminal. Returns its result, and what it printed.
    pub fn quietly<T>(&mut self, act: impl FnOnce(&mut Process<'_>) -> T) -> (T, Printed) {
        let (cwd, env) = (self.cwd.take(), mem::take(&mut self.env));
        let context = ProcessContext { cwd, env, now: self.now };
        context.run(b"", Terminal::default(), self.aside, |quiet| {
            let result = act(quiet);
            (self.cwd, self.env) = (quiet.cwd.take(), mem::take(&mut quiet.env));
            result
        })
    }

    /// An environment variable, unless it is unset or empty.
    pub fn var(&self, name: &str) -> Option<&OsStr> {
        self.env.get(OsStr::new(name)).map(OsString::as_os_str).filter(|value| !value.is_empty())
    }

    /// The user's home, an absolute path: as `HOME` has it, or the user database if that says nothing
    /// that can be used.
    pub fn home(&self) -> Option<PathBuf> {
        self.home_dir().map(Path::to_owned)
    }

    /// [`Process::home`], borrowed.
    pub fn home_dir(&self) -> Option<&Path> {
        let said = self.var("HOME").map(Path::new).filter(|home| home.is_absolute());
        said.or_else(|| self.aside.home())
    }

    /// The text that a shell puts in place of `~`: that of `HOME`, even if it is empty or relative, or
    /// the home in the user database if it is unset.
    pub fn shell_home(&self) -> Option<&OsStr> {
        let said = self.env.get(OsStr::new("HOME")).map(OsString::as_os_str);
        said.or_else(|| self.aside.home().map(Path::as_os_str))
    }

    /// The absolute path of the program that runs. Its name on `PATH` is preferred: it stays when
    /// what it links to is replaced by a newer version.
    ///
    /// # Errors
    ///
    /// Fails if the system does not say.
    pub fn program(&self) -> io::Result<PathBuf> {
        let program = env::current_exe()?;
        let is_it = |path: &PathBuf| {
            path.is_absolute() && path.canonicalize().is_ok_and(|real| real == program)
        };
        let name = program.file_name().unwrap_or_default();
        let dirs = self.var("PATH").map(env::split_paths);
        let named =
            dirs.into_iter().flatten().flat_map(|dir| [dir.join("beforehand"), dir.join(name)]);
        Ok(named.into_iter().find(is_it).unwrap_or(program.clone()))
    }

    /// The first program called `name` on `PATH`.
    pub fn which(&self, name: &str) -> Option<PathBuf> {
        let dirs = env::split_paths(self.var("PATH")?);
        let is_program = |path: &PathBuf| {
            let found = path.metadata();
            found.is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
        };
        dirs.filter(|dir| dir.is_absolute()).map(|dir| dir.join(name)).find(is_program)
    }

    /// Starts `beforehand ARGS`, which goes on when we are done. It gets what our settings and
    /// places depend on, and nothing else of our environment.
    ///
    /// # Errors
    ///
    /// Fails if the system starts none.
    pub fn start_aside(&self, args: &[OsString]) -> io::Result<()> {
        let is_needed = |name: &OsStr| {
            matches!(name.as_bytes(), b"HOME" | b"XDG_STATE_HOME" | b"XDG_CONFIG_HOME")
                || name.as_bytes().starts_with(b"BEFOREHAND")
        };
        let needed = self.env.iter().filter(|(name, _)| is_needed(name));
        self.aside.start(args, &needed.map(|(k, v)| (k.clone(), v.clone())).collect())
    }

    /// The processes that we descend from, nearest first.
    pub fn ancestors(&self) -> impl Iterator<Item = Ancestor> {
        /// People nest shells a few levels deep.
        const DEPTH_MAX: usize = 64;
        let above = |below: &Ancestor| {
            (below.parent > 0).then(|| self.aside.ancestor(Some(below.parent))).flatten()
        };
        std::iter::successors(self.aside.ancestor(None), above).take(DEPTH_MAX)
    }

    /// The processes that called this hook: the nearest that is no shell, and the shells before it.
    pub fn logged_calls(&self) -> Vec<Ancestor> {
        /// An agent's own shell, a wrapper of ours, and the agent: what is above is a person's.
        const CALLERS_MAX: usize = 3;
        let mut logged_calls = Vec::new();
        for ancestor in self.ancestors().take(CALLERS_MAX) {
            let is_shell = ancestor.is_shell();
            logged_calls.push(ancestor);
            if !is_shell {
                break;
            }
        }
        logged_calls
    }

    /// The terminal a person sits at, if one does: stdin and stdout, or, with `behind_stdout`, stdin
    /// and the terminal of this session, whatever stdout is.
    ///
    /// # Errors
    ///
    /// Fails if the system does not let us have it.
    pub fn tty(&self, behind_stdout: bool) -> io::Result<Option<Tty>> {
        let Some(input) = self.stdin.keys() else { return Ok(None) };
        let output = if self.terminal.stdout {
            rustix::io::dup(io::stdout())?
        } else if behind_stdout {
            std::fs::OpenOptions::new().read(true).write(true).open("/dev/tty")?.into()
        } else {
            return Ok(None);
        };
        Ok(Some(Tty { input, output }))
    }

    /// What says that the user has pressed Ctrl-C, from now on: long work ends with what it has.
    /// The second time it ends us, as always.
    pub fn heed_interrupt(&self) -> Arc<AtomicBool> {
        let seen = Arc::new(AtomicBool::new(false));
        if self.terminal.stdin && self.stdin.keys().is_some() {
            let interrupt = signal_hook::consts::SIGINT;
            // Without them it ends us at once, and nothing else changes.
            let _first = signal_hook::flag::register_conditional_default(interrupt, seen.clone());
            let _second = signal_hook::flag::register(interrupt, seen.clone());
        }
        seen
    }

    /// The same for what tells us to end in any way, for work that has something to remove first.
    pub fn heed_end(&self) -> Arc<AtomicBool> {
        let seen = self.heed_interrupt();
        if self.stdin.keys().is_some() {
            let end = signal_hook::consts::SIGTERM;
            let _heeded = signal_hook::flag::register(end, seen.clone());
        }
        seen
    }

    /// Runs a program on our own streams and terminal, to its end. The clock goes on meanwhile.
    ///
    /// # Errors
    ///
    /// Fails if it cannot be started; `Unsupported` where nothing is run at all.
    pub fn run_program(&mut self, command: &[OsString], place: RunPlace<'_>) -> io::Result<u8> {
        let begin = Instant::now();
        let code = self.aside.run(command, place)?;
        self.now += begin.elapsed();
        self.started = Instant::now();
        Ok(code)
    }

    /// Gives the answer that `late` makes, and ends, unless the result is dropped or claimed before `until`.
    /// `late` must not touch a file system.
    pub fn watch(
        &self,
        until: Instant,
        late: impl FnOnce() -> LateAnswer + Send + 'static,
    ) -> Watch {
        // A hook that runs inside another command does not end that one.
        let is_hook = self.args.first().is_some_and(|first| first == "hook");
        if is_hook { self.aside.watch(until, Box::new(late)) } else { Watch::default() }
    }

    /// How long we have been running.
    pub fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }
}

/// Runs `f` with the real process.
pub fn with_os<T>(f: impl FnOnce(&mut Process<'_>) -> T) -> T {
    let started = Instant::now();
    outlive_size_limit();
    let args: Vec<OsString> = env::args_os().skip(1).collect();
    // No person sits before a hook: what an agent gives it is no terminal.
    let is_hook = args.first().is_some_and(|first| first == "hook");
    let terminal = if is_hook { Terminal::default() } else { terminal() };
    let mut stdin = OsStdin(io::stdin());
    let mut stdout = io::stdout();
    let mut stderr = io::stderr();
    // The system takes memory back faster than we could give it, variable by variable.
    let mut process = ManuallyDrop::new(Process {
        args,
        cwd: env::current_dir().ok(),
        env: env::vars_os().collect(),
        now: utc_of(SystemTime::now()),
        started,
        stdin: &mut stdin,
        stdout: &mut stdout,
        stderr: &mut stderr,
        terminal,
        aside: &OsAside,
    });
    f(&mut process)
}

/// A time of the system clock, which can be before 1970: `Utc::now` would panic.
fn utc_of(time: SystemTime) -> DateTime<Utc> {
    let ns = match time.duration_since(SystemTime::UNIX_EPOCH) {
        Ok(since) => i64::try_from(since.as_nanos()).unwrap_or(i64::MAX),
        Err(before) => i64::try_from(before.duration().as_nanos()).map_or(i64::MIN, |ns| -ns),
    };
    DateTime::from_timestamp_nanos(ns)
}

/// Takes the owner's own permissions out of the umask: a file made without them could not be opened
/// again. Those of the group and of others stay in it.
pub fn unmask_owner() {
    use rustix::{fs::Mode, process::umask};
    let mask = umask(Mode::RWXG | Mode::RWXO);
    umask(mask - Mode::RWXU);
}

/// Lets every other process go first, for the rest of this one's life.
pub fn be_nice() {
    // As nice as it was will do.
    let _as_before = rustix::process::nice(NICENESS);
}

/// Half of what there is: behind everything a person waits for, before what is only for idle time.
const NICENESS: i32 = 10;

/// A limit on the size of files must be an error we can report, not our death.
fn outlive_size_limit() {
    use rustix::process::{Resource, getrlimit};
    if getrlimit(Resource::Fsize).current.is_none() {
        return;
    }
    let seen = Arc::new(AtomicBool::new(false));
    // Without it such a limit kills us, and nothing else changes.
    let _registered = signal_hook::flag::register(signal_hook::consts::SIGXFSZ, seen);
}

fn terminal() -> Terminal {
    use rustix::termios::{isatty, tcgetwinsize};
    // It fails for what is no terminal.
    let size = tcgetwinsize(io::stdout()).or_else(|_| tcgetwinsize(io::stderr()));
    Terminal {
        stdin: isatty(io::stdin()),
        stdout: isatty(io::stdout()),
        stderr: isatty(io::stderr()),
        columns: size.ok().map(|size| size.ws_col).filter(|&columns| columns > 0),
    }
}

/// How the process ends. Documented for scripts; never renumbered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// Done.
    Ok,
    /// It could not be done; stderr says why.
    Failed,
    /// An agent's way to be told no, for those that have no other. Only a deny ends so.
    Denied,
    /// Done, but for files that were kept because others had changed them.
    Conflicts,
    /// The command line makes no sense. Not 2: several agents read 2 as "block the tool call".
    Usage,
    /// A bug in beforehand.
    Bug,
    /// What a program that was run through us ended with.
    Program(u8),
}

impl Exit {
    /// The number that a shell sees.
    pub fn code(self) -> u8 {
        match self {
            Self::Ok => 0,
            Self::Failed => 1,
            Self::Denied => 2,
            Self::Conflicts => 3,
            Self::Usage => 64,
            Self::Bug => 70,
            Self::Program(code) => code,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_can_stand_before_1970() {
        let epoch = SystemTime::UNIX_EPOCH;
        let seconds = Duration::from_secs(5000);
        assert_eq!(utc_of(epoch + seconds).timestamp(), 5000);
        assert_eq!(utc_of(epoch - seconds).timestamp(), -5000);
    }
}
