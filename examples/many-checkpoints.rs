//! A state with as many checkpoints as years of use leave: each turn changes one file of three hundred.
//!
//! `cargo run --example many-checkpoints -- DIR COUNT [plain]` makes `DIR/project`, a git repository or with `plain`
//! a plain directory, and `DIR/home`, with the state in it. Maintenance runs as often as the hooks start it, and
//! nothing is pruned. On a file system in memory it takes a fraction of the time.

#![expect(clippy::disallowed_methods, reason = "it plays the user, the agent and the clock")]

use std::{
    cell::RefCell,
    collections::BTreeMap,
    error::Error,
    ffi::OsString,
    fs, io,
    path::{Path, PathBuf},
    process::Command,
    time::Instant,
};

use beforehand::process::{Aside, Exit, Process, Terminal};
use chrono::{DateTime, TimeDelta, Utc};
use serde_json::json;

/// As in the repository that the figures of `docs/PERFORMANCE.md` are of.
const FILES: usize = 300;
/// Turns of one session.
const SESSION: usize = 50;
/// The time between two turns.
const STEP: TimeDelta = TimeDelta::minutes(20);

/// Records what is started in the background, to run it once the call is answered.
#[derive(Default)]
struct Started(RefCell<Vec<Vec<OsString>>>);

impl Aside for Started {
    fn start(&self, args: &[OsString], _: &BTreeMap<OsString, OsString>) -> io::Result<()> {
        self.0.borrow_mut().push(args.to_vec());
        Ok(())
    }
}

struct World {
    root: PathBuf,
    home: PathBuf,
    now: DateTime<Utc>,
    aside: Started,
}

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [dir, count, kind @ ..] = &args[..] else {
        return Err("usage: many-checkpoints DIR COUNT [plain]".into());
    };
    let count: usize = count.parse()?;
    fs::create_dir_all(dir)?;
    let dir = fs::canonicalize(dir)?;
    let begin = Utc::now() - STEP * i32::try_from(count)?;
    let (root, home) = (dir.join("project"), dir.join("home"));
    let mut world = World { root, home, now: begin, aside: Started::default() };
    world.make(kind.is_empty())?;
    for turn in 0..count {
        world.turn(turn)?;
    }
    Ok(())
}

impl World {
    fn make(&self, is_git: bool) -> Result<(), Box<dyn Error>> {
        for number in 0..FILES {
            write(&self.file(number), &text(number, 0))?;
        }
        write(&self.home.join(".config/beforehand/config.toml"), "auto_prune = false\n")?;
        if is_git {
            self.git(&["init", "-q", "-b", "main"])?;
            self.git(&["add", "-A"])?;
            let user = ["-c", "user.name=u", "-c", "user.email=u@example.invalid"];
            self.git(&[&user[..], &["commit", "-qm", "begin"]].concat())?;
        }
        Ok(())
    }

    /// A prompt, and one call that changes a file.
    fn turn(&mut self, turn: usize) -> Result<(), Box<dyn Error>> {
        self.now += STEP;
        let call = json!({
            "session_id": format!("s{}", turn / SESSION),
            "cwd": self.root,
            "prompt_id": format!("t{turn}"),
            "prompt": format!("change file {}", turn % FILES),
            "tool_name": "Bash",
            "tool_input": { "command": format!("./build {turn}") },
            "tool_use_id": turn.to_string(),
            "tool_response": {},
        });
        self.event("UserPromptSubmit", &call)?;
        self.event("PreToolUse", &call)?;
        write(&self.file(turn % FILES), &text(turn % FILES, turn + 1))?;
        self.event("PostToolUse", &call)
    }

    fn event(&self, name: &str, call: &serde_json::Value) -> Result<(), Box<dyn Error>> {
        let mut payload = call.clone();
        payload["hook_event_name"] = name.into();
        self.run(
            &self.root,
            &["hook", "--agent", "claude-code"].map(Into::into),
            &payload.to_string(),
        )?;
        for args in self.aside.0.take() {
            self.run(Path::new("/"), &args, "")?;
        }
        Ok(())
    }

    fn run(&self, cwd: &Path, args: &[OsString], stdin: &str) -> Result<(), Box<dyn Error>> {
        let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
        let exit = beforehand::run(&mut Process {
            args: args.to_vec(),
            cwd: Some(cwd.to_owned()),
            env: BTreeMap::from([("HOME".into(), self.home.clone().into_os_string())]),
            now: self.now,
            started: Instant::now(),
            stdin: &mut stdin.as_bytes(),
            stdout: &mut stdout,
            stderr: &mut stderr,
            terminal: Terminal::default(),
            aside: &self.aside,
        });
        if exit == Exit::Ok {
            return Ok(());
        }
        let output = [stdout, stderr].concat();
        Err(format!("{args:?}: {exit:?} {}", String::from_utf8_lossy(&output)).into())
    }

    fn git(&self, args: &[&str]) -> Result<(), Box<dyn Error>> {
        let output = Command::new("git")
            .current_dir(&self.root)
            .args(args)
            .env("HOME", &self.home)
            .output()?;
        if output.status.success() {
            return Ok(());
        }
        Err(format!("git {args:?}: {}", String::from_utf8_lossy(&output.stderr)).into())
    }

    fn file(&self, number: usize) -> PathBuf {
        self.root.join(format!("src/d{}/f{number}", number / 20))
    }
}

fn text(number: usize, version: usize) -> String {
    let lines = (0..60).map(|line| format!("file {number}, version {version}, line {line}\n"));
    lines.collect::<Vec<_>>().concat()
}

fn write(path: &Path, text: &str) -> io::Result<()> {
    fs::create_dir_all(path.parent().unwrap_or(path))?;
    fs::write(path, text)
}
