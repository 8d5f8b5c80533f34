//! A real terminal for a test: tmux with a server of its own, which goes away with it.

use std::{
    fmt::Write as _,
    path::PathBuf,
    process::Command,
    time::{Duration, Instant},
};

use super::{temp::TempDir, world::World};

/// Longer than any machine takes to draw; only a failing test waits so long.
const PATIENCE: Duration = Duration::from_secs(60);

/// A terminal, and what runs in it.
pub(crate) struct Tmux {
    dir: TempDir,
}

/// Whether a program is there. Where it was promised, it must be.
#[expect(clippy::print_stderr, reason = "a test that is skipped says so")]
pub(crate) fn has(program: &str) -> bool {
    let is_there = ["/usr/local/bin", "/usr/bin", "/bin"]
        .iter()
        .any(|dir| PathBuf::from(dir).join(program).exists());
    #[expect(clippy::disallowed_methods, reason = "a wish of `.ci/run`, not of users")]
    let is_required = std::env::var_os("BEFOREHAND_REQUIRE_TERMINALS").is_some();
    assert!(is_there || !is_required, "there is no {program} to test with");
    if !is_there {
        eprintln!("skipped: no {program} program");
    }
    is_there
}

impl Tmux {
    /// A terminal of this size in the world's project, with `shell` in it; `None` where there is no
    /// tmux.
    pub(crate) fn start(world: &World, size: (u16, u16), shell: &str) -> Option<Self> {
        if !has("tmux") {
            return None;
        }
        let tmux = Self { dir: TempDir::new() };
        let mut words =
            "exec env -u TMUX -u TMUX_PANE -u NO_COLOR -u RUST_BACKTRACE PS1='$ ' ".to_owned();
        for (name, value) in &world.env {
            let (name, value) = (name.to_str().unwrap(), value.to_str().unwrap());
            write!(words, "{name}={} ", shell_words::quote(value)).unwrap();
        }
        let program = PathBuf::from(env!("CARGO_BIN_EXE_beforehand"));
        let path = format!("{}:/usr/local/bin:/usr/bin:/bin", program.parent().unwrap().display());
        write!(words, "PATH={} {shell}", shell_words::quote(&path)).unwrap();
        let (columns, rows) = (size.0.to_string(), size.1.to_string());
        let root = world.root();
        let at = ["-x", &columns, "-y", &rows, "-c", root.to_str().unwrap(), &words];
        tmux.run(&[&["-f", "/dev/null", "new-session", "-d"][..], &at].concat());
        tmux.run(&["set-option", "-g", "escape-time", "0"]);
        Some(tmux)
    }

    /// The same with a plain `sh`, which has shown its prompt.
    pub(crate) fn with_sh(world: &World, size: (u16, u16)) -> Option<Self> {
        let tmux = Self::start(world, size, "sh -i")?;
        tmux.until("a prompt", |screen| screen.contains('$'));
        Some(tmux)
    }

    fn run(&self, args: &[&str]) -> String {
        let output = Command::new("tmux")
            .arg("-S")
            .arg(self.dir.path().join("socket"))
            .args(args)
            .env_remove("TMUX")
            // tmux runs its command with the user's login shell, which may be `nologin`.
            .env("SHELL", "/bin/sh")
            .env("LC_ALL", "C.UTF-8")
            .output()
            .unwrap();
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// Presses keys, by the names tmux has for them.
    pub(crate) fn press(&self, keys: &[&str]) {
        self.run(&[&["send-keys"][..], keys].concat());
    }

    /// Sends these very bytes, all at once.
    pub(crate) fn bytes(&self, bytes: &[u8]) {
        let hex: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        let hex: Vec<&str> = hex.iter().map(String::as_str).collect();
        self.run(&[&["send-keys", "-H"][..], &hex].concat());
    }

    /// Types a line.
    pub(crate) fn line(&self, text: &str) {
        self.run(&["send-keys", "-l", text]);
        self.press(&["Enter"]);
    }

    /// Makes the terminal another size.
    pub(crate) fn resize(&self, columns: u16, rows: u16) {
        let (columns, rows) = (columns.to_string(), rows.to_string());
        self.run(&["resize-window", "-x", &columns, "-y", &rows]);
    }

    /// What is on the screen.
    pub(crate) fn screen(&self) -> String {
        self.run(&["capture-pane", "-p"])
    }

    /// Waits until the screen is so; what is on it then.
    pub(crate) fn until(&self, what: &str, is_so: impl Fn(&str) -> bool) -> String {
        let begun = Instant::now();
        loop {
            let screen = self.screen();
            if is_so(&screen) {
                return screen;
            }
            assert!(begun.elapsed() < PATIENCE, "never saw {what}:\n{screen}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Waits until the screen has this text.
    pub(crate) fn sees(&self, text: &str) -> String {
        self.until(text, |screen| screen.contains(text))
    }
}

impl Drop for Tmux {
    /// Ends the server, and waits for the shell in it: it may write a history on its way out.
    fn drop(&mut self) {
        let tmux = |args: &[&str]| {
            let socket = self.dir.path().join("socket");
            Command::new("tmux").arg("-S").arg(socket).args(args).output()
        };
        let shell = tmux(&["display-message", "-p", "#{pane_pid}"]).ok();
        let shell = shell.and_then(|said| String::from_utf8(said.stdout).ok()?.trim().parse().ok());
        let _gone = tmux(&["kill-server"]);
        let Some(shell) = shell.and_then(rustix::process::Pid::from_raw) else { return };
        let begun = Instant::now();
        while rustix::process::test_kill_process(shell).is_ok() && begun.elapsed() < PATIENCE {
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}
