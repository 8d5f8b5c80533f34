//! The user, the agent, their files and their clock.

use std::{
    cell::RefCell,
    collections::BTreeMap,
    error::Error,
    ffi::OsString,
    fs, io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    process::Command,
    time::{Instant, SystemTime},
};

use beforehand::process::{Aside, Exit, Process, Terminal};
use chrono::{DateTime, TimeDelta, Utc};
use serde_json::{Value, json};

use crate::chart::Sample;

type Done = Result<(), Box<dyn Error>>;

/// Files in the repository, and in the plain directory.
const FILES: [usize; 2] = [2_000, 400];
/// How often the user commits, in calls.
const COMMIT: usize = 40;
/// How often the user's git collects its garbage, in days.
const GC_DAYS: i64 = 7;

/// Notes what is started in the background, for it to run when the call has been answered.
#[derive(Default)]
struct Started(RefCell<Vec<Vec<OsString>>>);

impl Aside for Started {
    fn start(&self, args: &[OsString], _: &BTreeMap<OsString, OsString>) -> io::Result<()> {
        self.0.borrow_mut().push(args.to_vec());
        Ok(())
    }
}

pub(crate) struct World {
    dir: PathBuf,
    now: DateTime<Utc>,
    begin: DateTime<Utc>,
    step: TimeDelta,
    aside: Started,
    session: usize,
    collected: i64,
    /// Numbers that look like chance and are the same every time.
    seed: u64,
    /// What calls that can change files took since the last look, in microseconds.
    calls: Vec<u64>,
    /// What went on in the background, in microseconds.
    background: u64,
}

impl World {
    pub(crate) fn new(hooks: usize, days: i64) -> Result<Self, Box<dyn Error>> {
        let dir = std::env::temp_dir().join(format!("beforehand-long-run-{}", std::process::id()));
        fs::create_dir_all(dir.join("home"))?;
        let dir = fs::canonicalize(dir)?;
        let begin = Utc::now();
        let step = TimeDelta::days(days) / i32::try_from(hooks)?;
        let (aside, calls) = (Started::default(), Vec::new());
        let (now, seed, session, collected, background) = (begin, 1, 0, 0, 0);
        let mut world =
            Self { dir, now, begin, step, aside, session, collected, seed, calls, background };
        for (root, files) in world.roots().into_iter().zip(FILES) {
            for n in 0..files {
                let text = world.text();
                write(&root.join(format!("d{}/f{n}", n / 20)), &text)?;
            }
        }
        world.git(&["init", "-q"])?;
        for setting in [["user.name", "u"], ["user.email", "u@example.invalid"], ["gc.auto", "0"]] {
            world.git(&["config", setting[0], setting[1]])?;
        }
        world.git(&["add", "-A"])?;
        world.git(&["commit", "-qm", "begin"])?;
        Ok(world)
    }

    fn roots(&self) -> [PathBuf; 2] {
        ["repo", "plain"].map(|name| self.dir.join(name))
    }

    fn chance(&mut self, below: u64) -> u64 {
        self.seed = self.seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.seed >> 33) % below
    }

    fn text(&mut self) -> Vec<u8> {
        let lines = 10 + self.chance(150);
        (0..lines).flat_map(|_| format!("line {}\n", self.chance(1 << 30)).into_bytes()).collect()
    }

    pub(crate) fn session_begins(&mut self, number: usize) -> Done {
        self.session = number;
        self.event("SessionStart", &json!({ "source": "startup" }))
    }

    pub(crate) fn session_ends(&mut self) -> Done {
        self.event("SessionEnd", &json!({ "reason": "exit" }))
    }

    /// One call of the agent, with what it then does; now and then the user does something too.
    pub(crate) fn call(&mut self, n: usize) -> Done {
        self.now += self.step;
        let turn = json!({ "prompt_id": format!("t{}", n / 5), "prompt": "go on" });
        if n.is_multiple_of(5) {
            self.event("UserPromptSubmit", &turn)?;
        }
        let root = self.root();
        let at = self.chance(if root.ends_with("repo") { 2_300 } else { 450 });
        let file = root.join(format!("d{}/f{at}", at / 20));
        let text = self.text();
        let (tool, input) = match self.chance(10) {
            0..5 => ("Read", json!({ "file_path": file })),
            5..8 => ("Write", json!({ "file_path": file, "content": "" })),
            8 => ("Bash", json!({ "command": "make all" })),
            _ => ("Bash", json!({ "command": format!("rm -f {}", file.display()) })),
        };
        let mut call =
            json!({ "tool_name": tool, "tool_input": input, "tool_use_id": n.to_string() });
        merge(&mut call, &turn);
        let begin = Instant::now();
        self.event("PreToolUse", &call)?;
        if tool != "Read" {
            self.calls.push(micros(begin));
        }
        match (tool, input["command"].as_str()) {
            ("Write", _) => write(&file, &text)?,
            (_, Some("make all")) => write(&root.join(format!("made/m{}", at % 40)), &text)?,
            (_, Some(_)) => drop(fs::remove_file(&file)),
            (_, None) => (),
        }
        call["tool_response"] = json!({});
        self.event("PostToolUse", &call)?;
        if n % COMMIT == COMMIT - 1 {
            self.git(&["add", "-A"])?;
            self.git(&["commit", "-q", "--allow-empty", "-m", "work"])?;
        }
        let week = (self.now - self.begin).num_days() / GC_DAYS;
        if week > self.collected {
            self.collected = week;
            self.git(&["gc", "-q", "--prune=now"])?;
        }
        Ok(())
    }

    /// Every fourth session works in the plain directory.
    fn root(&self) -> PathBuf {
        let [repo, plain] = self.roots();
        if self.session % 4 == 3 { plain } else { repo }
    }

    fn event(&mut self, name: &str, more: &Value) -> Done {
        let root = self.root();
        let mut payload = json!({
            "session_id": format!("s{}", self.session), "cwd": root, "hook_event_name": name,
        });
        merge(&mut payload, more);
        self.run(&root, &["hook", "--agent", "claude-code"].map(Into::into), &payload.to_string())?;
        let begin = Instant::now();
        for args in self.aside.0.take() {
            self.run(Path::new("/"), &args, "")?;
        }
        self.background += micros(begin);
        self.age()
    }

    fn run(&self, cwd: &Path, args: &[OsString], stdin: &str) -> Done {
        let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
        let env = BTreeMap::from([("HOME".into(), self.dir.join("home").into_os_string())]);
        let exit = beforehand::run(&mut Process {
            args: args.to_vec(),
            cwd: Some(cwd.to_owned()),
            env,
            now: self.now,
            started: Instant::now(),
            stdin: &mut stdin.as_bytes(),
            stdout: &mut stdout,
            stderr: &mut stderr,
            terminal: Terminal::default(),
            aside: &self.aside,
        });
        let said = String::from_utf8_lossy(&stdout);
        // Nothing may be said but what a command did.
        if exit != Exit::Ok || !stderr.is_empty() || said.contains("NOT protected") {
            return Err(
                format!("{args:?}: {exit:?} {said} {}", String::from_utf8_lossy(&stderr)).into()
            );
        }
        Ok(())
    }

    /// What is written gets the time of this world, where housekeeping goes by it.
    fn age(&self) -> Done {
        let sessions = self.state().join("sessions");
        let name = beforehand::state::hash_name(&[
            b"claude-code",
            format!("s{}", self.session).as_bytes(),
        ]);
        for kind in ["json", "lock"] {
            if let Ok(file) =
                fs::File::options().write(true).open(sessions.join(&name).with_extension(kind))
            {
                file.set_modified(SystemTime::from(self.now))?;
            }
        }
        Ok(())
    }

    fn state(&self) -> PathBuf {
        self.dir.join("home/.local/state/beforehand")
    }

    pub(crate) fn look(&mut self, n: usize) -> Result<Sample, Box<dyn Error>> {
        let begin = Instant::now();
        self.git(&["status", "--porcelain"])?;
        let status_ms = milliseconds(micros(begin));
        let mut calls = std::mem::take(&mut self.calls);
        calls.sort_unstable();
        let at = |share: usize| calls.get(calls.len() * share / 100).copied().unwrap_or_default();
        let (state_bytes, state_inodes) = usage(&self.state());
        let (git_bytes, git_inodes) = usage(&self.dir.join("repo/.git"));
        let roots = self.state().join("roots");
        let checkpoints =
            names(&roots).iter().map(|root| names(&root.join("checkpoints")).len()).sum();
        let ours = names(&self.state().join("repositories"));
        let packs: Vec<PathBuf> =
            ours.iter().flat_map(|dir| names(&dir.join("objects/pack"))).collect();
        Ok(Sample {
            hook: n,
            day: (self.now - self.begin).num_days(),
            state_bytes,
            state_inodes,
            git_bytes,
            git_inodes,
            packs: packs
                .iter()
                .filter(|path| path.extension().is_some_and(|it| it == "pack"))
                .count(),
            checkpoints,
            call_ms: milliseconds(at(50)),
            call_slow_ms: milliseconds(at(95)),
            status_ms,
            background_ms: milliseconds(std::mem::take(&mut self.background)),
        })
    }

    fn git(&self, args: &[&str]) -> Done {
        let mut git = Command::new("git");
        git.current_dir(self.dir.join("repo")).args(args).env("HOME", self.dir.join("home"));
        let output = git.env_remove("GIT_CONFIG_GLOBAL").output()?;
        if output.status.success() {
            return Ok(());
        }
        Err(format!("git {args:?}: {}", String::from_utf8_lossy(&output.stderr)).into())
    }

    pub(crate) fn close(self) -> Done {
        self.git(&["fsck", "--strict", "--no-dangling"])?;
        self.run(&self.dir.join("repo"), &["check", "--read-data"].map(Into::into), "")?;
        self.run(&self.dir.join("plain"), &["check", "--read-data"].map(Into::into), "")?;
        Ok(fs::remove_dir_all(&self.dir)?)
    }
}

fn merge(value: &mut Value, more: &Value) {
    if let (Some(value), Some(more)) = (value.as_object_mut(), more.as_object()) {
        value.extend(more.clone());
    }
}

fn write(path: &Path, bytes: &[u8]) -> Done {
    fs::create_dir_all(path.parent().ok_or("a file is in a directory")?)?;
    Ok(fs::write(path, bytes)?)
}

fn names(dir: &Path) -> Vec<PathBuf> {
    fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
}

/// Bytes and inodes of everything below a directory. What has other names is shared with those.
fn usage(dir: &Path) -> (u64, u64) {
    let (mut bytes, mut inodes) = (0, 0);
    for path in names(dir) {
        let Ok(found) = fs::symlink_metadata(&path) else { continue };
        if found.is_dir() {
            let (below, more) = usage(&path);
            bytes += below;
            inodes += more + 1;
        } else {
            bytes += found.blocks() * 512 / found.nlink();
            inodes += 1;
        }
    }
    (bytes, inodes)
}

fn micros(begin: Instant) -> u64 {
    u64::try_from(begin.elapsed().as_micros()).unwrap_or(u64::MAX)
}

#[expect(clippy::cast_precision_loss, reason = "nothing here takes centuries")]
fn milliseconds(micros: u64) -> f64 {
    micros as f64 / 1000.0
}
