//! Other processes: those we start and go on without, those we wait for, and those that started us.

use std::{
    collections::BTreeMap,
    env,
    ffi::{OsStr, OsString},
    io::{self, BufRead, Write},
    os::unix::process::{CommandExt, ExitStatusExt},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::OnceLock,
    time::{Duration, Instant},
};

#[cfg(target_os = "linux")]
use std::{
    io::Read,
    os::unix::{ffi::OsStringExt, fs::MetadataExt},
};

use uzers::os::unix::UserExt;

use super::{
    signals::Signals,
    watch::{LateAnswer, Watch},
};

/// Starts processes of ours that go on when this one is done, and asks the system about processes and
/// their user.
pub trait Aside {
    /// Starts this very program with `args` and nothing but `env`: nice, in `/`, without streams,
    /// and not waited for.
    ///
    /// # Errors
    ///
    /// Fails if the system starts none.
    fn start(&self, args: &[OsString], env: &BTreeMap<OsString, OsString>) -> io::Result<()>;

    /// Watches this process as [`Process::watch`](super::Process::watch) does; where that is a part of another
    /// one, nothing is watched.
    fn watch(&self, _: Instant, _: Box<dyn FnOnce() -> LateAnswer + Send>) -> Watch {
        Watch::default()
    }

    /// The process `pid`, or without one the one that started us; `None` where the system does not tell.
    fn ancestor(&self, _: Option<u32>) -> Option<Ancestor> {
        None
    }

    /// The home of this user in the user database; `None` where that has none.
    fn home(&self) -> Option<&Path> {
        None
    }

    /// The running processes of this user, as far as the system tells.
    fn own_processes(&self) -> Vec<OwnProcess> {
        Vec::new()
    }

    /// The root of the file system, below which are settings of the whole machine.
    fn system(&self) -> &Path {
        Path::new("/")
    }

    /// Runs a program to its end as an agent runs a hook, and tells how long that took.
    ///
    /// # Errors
    ///
    /// Fails if it cannot be run, does not end in time, or fails itself; `Unsupported` where
    /// nothing is run at all.
    fn time(&self, _: &HookCall<'_>) -> io::Result<Duration> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Runs a program on our own streams and terminal, to its end, and passes on what is sent to us to
    /// end it. Returns its exit code, or 128 and the number of the signal that ended it.
    ///
    /// # Errors
    ///
    /// Fails if it cannot be started; `Unsupported` where nothing is run at all.
    fn run(&self, _: &[OsString], _: RunPlace<'_>) -> io::Result<u8> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Starts a program in `dir`, and tells the first word it prints that begins with `wanted`.
    ///
    /// # Errors
    ///
    /// Fails if it cannot be started or says no such word in time; `Unsupported` where nothing is
    /// run at all.
    fn listen(
        &self,
        _: &[&OsStr],
        _dir: &Path,
        _wanted: &str,
    ) -> io::Result<(RunningProgram, String)> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// A hook as an agent calls it.
#[derive(Clone, Copy, Debug)]
pub struct HookCall<'a> {
    /// The program and its arguments.
    pub words: &'a [OsString],
    /// Where it runs; `None` for where we do.
    pub place: Option<HookPlace<'a>>,
    /// The payload.
    pub input: &'a [u8],
}

/// Where a hook runs.
#[derive(Clone, Copy, Debug)]
pub struct HookPlace<'a> {
    /// The directory.
    pub dir: &'a Path,
    /// The whole environment.
    pub env: &'a BTreeMap<OsString, OsString>,
}

/// Where a program runs that a person started through us.
#[derive(Clone, Copy, Debug, Default)]
pub struct RunPlace<'a> {
    /// The directory; without one, ours. What git's variables say of another one does not hold there.
    pub dir: Option<&'a Path>,
    /// Whether our standard output is for something else: its goes to standard error.
    pub is_quiet: bool,
}

/// Variables that lead git to another repository than that of its directory.
const GIT_PLACES: [&str; 7] = [
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_COMMON_DIR",
    "GIT_PREFIX",
];

/// A program that was started, until this is dropped.
#[derive(Debug, Default)]
pub struct RunningProgram(Option<std::process::Child>);

impl Drop for RunningProgram {
    fn drop(&mut self) {
        let Some(child) = &mut self.0 else { return };
        // It may have started the one that matters: its group goes with it.
        if let Some(pid) = i32::try_from(child.id()).ok().and_then(rustix::process::Pid::from_raw) {
            let _gone = rustix::process::kill_process_group(pid, rustix::process::Signal::TERM);
        }
        let _gone = child.wait();
    }
}

/// A process that we descend from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ancestor {
    /// Its number.
    pub pid: u32,
    /// The number of the one that started it.
    pub parent: u32,
    /// When it started, in the system's own words: numbers are used again.
    pub start: String,
    /// The name of its program.
    pub name: String,
}

/// A running process of the user's own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OwnProcess {
    /// Its number.
    pub pid: u32,
    /// The program as it was called, and its arguments.
    pub args: Vec<OsString>,
    /// The directory it works in.
    pub dir: Option<PathBuf>,
}

impl Ancestor {
    /// Whether it is a shell, which an agent may put between itself and a hook.
    pub(super) fn is_shell(&self) -> bool {
        matches!(&*self.name, "sh" | "bash" | "dash" | "zsh" | "ash" | "ksh" | "fish" | "busybox")
    }
}

/// Starts nothing: for a world that ends with its process.
impl Aside for () {
    fn start(&self, _: &[OsString], _: &BTreeMap<OsString, OsString>) -> io::Result<()> {
        Ok(())
    }
}

/// Starts them with the real system.
pub(super) struct OsAside;

impl Aside for OsAside {
    fn watch(&self, until: Instant, late: Box<dyn FnOnce() -> LateAnswer + Send>) -> Watch {
        Watch::begin(until, late)
    }

    fn start(&self, args: &[OsString], env: &BTreeMap<OsString, OsString>) -> io::Result<()> {
        let mut command = Command::new(env::current_exe()?);
        command.args(args).env_clear().envs(env).current_dir("/");
        // An agent that waits until its pipes are closed must not wait for it, and what an agent
        // does to the group of its hook is not meant for it.
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
        // We end first; the process that inherits it waits for it.
        command.spawn().map(drop)
    }

    fn ancestor(&self, pid: Option<u32>) -> Option<Ancestor> {
        let parent = || rustix::process::getppid()?.as_raw_pid().try_into().ok();
        system_process(pid.or_else(parent)?)
    }

    fn home(&self) -> Option<&Path> {
        static HOME: OnceLock<Option<PathBuf>> = OnceLock::new();
        HOME.get_or_init(registered_home).as_deref()
    }

    fn own_processes(&self) -> Vec<OwnProcess> {
        own_processes()
    }

    fn time(&self, call: &HookCall<'_>) -> io::Result<Duration> {
        /// As long as agents wait, by the timeout that `install` registers.
        const LIMIT: Duration = Duration::from_secs(30);
        const PAUSE: Duration = Duration::from_micros(200);
        let started = Instant::now();
        let (program, args) = call.words.split_first().ok_or(io::ErrorKind::InvalidInput)?;
        let mut command = Command::new(program);
        command.args(args).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        if let Some(place) = call.place {
            command.current_dir(place.dir).env_clear().envs(place.env);
        }
        let mut running = command.spawn()?;
        if let Some(mut stdin) = running.stdin.take() {
            // One that does not listen may still end well.
            let _ignored = stdin.write_all(call.input);
        }
        loop {
            match running.try_wait()? {
                Some(status) if status.success() => return Ok(started.elapsed()),
                Some(status) => return Err(io::Error::other(format!("it ended with {status}"))),
                None if started.elapsed() > LIMIT => {
                    running.kill()?;
                    running.wait()?;
                    return Err(io::ErrorKind::TimedOut.into());
                }
                None => std::thread::sleep(PAUSE),
            }
        }
    }

    fn run(&self, command: &[OsString], place: RunPlace<'_>) -> io::Result<u8> {
        let (program, args) = command.split_first().ok_or(io::ErrorKind::InvalidInput)?;
        let mut command = Command::new(program);
        command.args(args);
        if let Some(dir) = place.dir {
            command.current_dir(dir).env("PWD", dir).env_remove("OLDPWD");
            for name in GIT_PLACES {
                command.env_remove(name);
            }
        }
        if place.is_quiet {
            command.stdout(rustix::io::dup(io::stderr())?);
        }
        // From before it is there: none of them may end us while it runs.
        let signals = Signals::pass_on()?;
        let mut child = command.spawn()?;
        signals.until_end(child.id())?;
        let status = child.wait()?;
        let code = status.code().or_else(|| Some(128 + status.signal()?));
        Ok(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1))
    }

    fn listen(
        &self,
        command: &[&OsStr],
        dir: &Path,
        wanted: &str,
    ) -> io::Result<(RunningProgram, String)> {
        /// Agents are large programs, and look for updates first: on a slow network, for most of a minute.
        const LIMIT: Duration = Duration::from_secs(60);
        let (program, args) = command.split_first().ok_or(io::ErrorKind::InvalidInput)?;
        let mut command = Command::new(program);
        command.args(args).current_dir(dir).process_group(0);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn()?;
        let stdout = child.stdout.take();
        let running = RunningProgram(Some(child));
        let (teller, told) = std::sync::mpsc::channel();
        let wanted = wanted.to_owned();
        // It ends with the program, and reads its output to the end.
        std::thread::spawn(move || {
            let lines = stdout.into_iter().flat_map(|out| io::BufReader::new(out).lines());
            for line in lines.map_while(Result::ok) {
                let word = line.split_whitespace().find(|word| word.starts_with(&wanted));
                let _ignored = word.map(|word| teller.send(word.to_owned()));
            }
        });
        let said = told.recv_timeout(LIMIT);
        said.map(|word| (running, word)).map_err(|_| io::Error::other("it did not say where"))
    }
}

/// Asks the C library, as shells do: `/etc/passwd` does not list the users of a directory service, and
/// on macOS none at all.
fn registered_home() -> Option<PathBuf> {
    let user = uzers::get_user_by_uid(uzers::get_current_uid())?;
    Some(user.home_dir().to_owned()).filter(|home| home.is_absolute())
}

/// The running processes of this user. One that ends meanwhile is left out.
#[cfg(target_os = "linux")]
fn own_processes() -> Vec<OwnProcess> {
    /// A user with more has a machine that is busy with something else.
    const PROCESSES_MAX: usize = 5_000;
    let user = rustix::process::geteuid().as_raw();
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.take(PROCESSES_MAX).filter_map(|pid| own_process(pid, user)).collect()
}

/// One process, if it is of this user and has a command line.
#[cfg(target_os = "linux")]
fn own_process(pid: u32, user: u32) -> Option<OwnProcess> {
    let place = PathBuf::from(format!("/proc/{pid}"));
    if std::fs::metadata(&place).ok()?.uid() != user {
        return None;
    }
    let args = command_line(&place.join("cmdline")).ok()?;
    let dir = std::fs::read_link(place.join("cwd")).ok();
    (!args.is_empty()).then_some(OwnProcess { pid, args, dir })
}

/// Reads `/proc/PID/cmdline`: words that each end with a zero byte.
#[cfg(target_os = "linux")]
fn command_line(path: &Path) -> io::Result<Vec<OsString>> {
    /// A prompt can be an argument.
    const SIZE_MAX_BYTES: u64 = 256 << 10;
    let mut bytes = Vec::new();
    std::fs::File::open(path)?.take(SIZE_MAX_BYTES).read_to_end(&mut bytes)?;
    let words = bytes.split(|&byte| byte == 0).map(|word| OsString::from_vec(word.to_vec()));
    let mut words: Vec<_> = words.collect();
    if words.last().is_some_and(|word| word.is_empty()) {
        words.pop();
    }
    Ok(words)
}

/// Elsewhere no process is looked at.
#[cfg(not(target_os = "linux"))]
fn own_processes() -> Vec<OwnProcess> {
    Vec::new()
}

/// What the system tells of a process.
#[cfg(target_os = "linux")]
fn system_process(pid: u32) -> Option<Ancestor> {
    process_of(pid, &std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// Reads a line of `/proc/PID/stat`. The name, in brackets, may itself hold brackets and blanks.
#[cfg(target_os = "linux")]
fn process_of(pid: u32, stat: &str) -> Option<Ancestor> {
    /// The start time, counted from the state, which follows the name.
    const START: usize = 19;
    let (before, after) = stat.rsplit_once(')')?;
    let name = before.split_once('(')?.1.to_owned();
    let fields: Vec<&str> = after.split_ascii_whitespace().collect();
    let parent = fields.get(1)?.parse().ok()?;
    Some(Ancestor { pid, parent, start: (*fields.get(START)?).to_owned(), name })
}

/// The same where there is no `/proc`.
#[cfg(not(target_os = "linux"))]
fn system_process(pid: u32) -> Option<Ancestor> {
    let wanted = pid.to_string();
    let args = ["-o", "ppid=,lstart=,comm=", "-p", &wanted];
    let told = Command::new("/bin/ps").args(args).env("LC_ALL", "C").output().ok()?;
    let told = String::from_utf8(told.stdout).ok()?;
    let words: Vec<&str> = told.split_ascii_whitespace().collect();
    // As in `312 Mon Nov 22 08:04:06 2026 /bin/zsh`.
    let (parent, start) = (words.first()?.parse().ok()?, words.get(1..6)?.join(" "));
    let name = words.get(6..)?.join(" ");
    let name = name.rsplit('/').next().unwrap_or_default().to_owned();
    Some(Ancestor { pid, parent, start, name })
}

#[cfg(test)]
mod tests {
    #[cfg(target_os = "linux")]
    use super::*;

    #[cfg(target_os = "linux")]
    #[test]
    fn a_process_is_read_whatever_its_name_is() {
        let line = "42 (a (b) c) S 7 42 42 34816 42 4194304 1 2 3 4 5 6 7 8 20 0 1 0 998877 1 2 3";
        let found = process_of(42, line).unwrap();
        assert_eq!((found.parent, &*found.start, &*found.name), (7, "998877", "a (b) c"));
        assert_eq!(process_of(42, "42 (a"), None);
        let own = system_process(std::process::id()).unwrap();
        assert_eq!(
            Some(own.parent),
            rustix::process::getppid().and_then(|pid| pid.as_raw_pid().try_into().ok())
        );
    }
}
