//! Random turns of edits, commands and a person's own edits, with a record of what was there before each step:
//! wherever a step claims to be held, `restore N.K` gives just that; elsewhere it names the file.
//!
//! `BEFOREHAND_CASES` and `BEFOREHAND_SEED` run more of them, or one again; `BEFOREHAND_FIRST` begins at
//! another seed.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    os::unix::fs::PermissionsExt,
    path::Path,
};

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::{Value, json};

use crate::{
    evidence::event,
    support::{
        dice::{Dice, wished},
        temp::{noise, write},
        world::World,
    },
};

const FILES: [&str; 6] = ["a", "b", "d/c", "d/e/f", "g/h", "big"];

/// What is there: by path, permissions and the beginning of the text, or a digest.
type Files = BTreeMap<String, (u32, String)>;

struct History {
    world: World,
    turns: usize,
    /// What was there before each step of the last turn, in the order of the steps.
    before: Vec<Files>,
    /// What was changed in the last turn where no look of its own follows.
    unseen: BTreeSet<&'static str>,
    next: usize,
    script: Vec<String>,
}

/// What the steps of all cases were said to be.
#[derive(Default)]
struct Tally {
    whole: usize,
    partly: usize,
    refused: usize,
    gaps: usize,
}

#[expect(clippy::disallowed_methods, reason = "what a restore notes has the machine's time")]
fn now() -> DateTime<Utc> {
    Utc::now()
}

fn files_below(dir: &Path, above: &str, files: &mut Files) {
    for entry in fs::read_dir(dir).unwrap() {
        let entry = entry.unwrap();
        let name = format!("{above}{}", entry.file_name().to_str().unwrap());
        let found = entry.metadata().unwrap();
        if found.is_dir() {
            if name != ".git" {
                files_below(&entry.path(), &format!("{name}/"), files);
            }
        } else {
            let bytes = fs::read(entry.path()).unwrap();
            let text = match String::from_utf8(bytes) {
                Ok(text) => text,
                Err(noise) => beforehand::attribution::digest(noise.as_bytes()),
            };
            files.insert(name, (found.permissions().mode() & 0o777, text));
        }
    }
}

impl History {
    fn new(is_git: bool) -> Self {
        let world = if is_git { World::with_git() } else { World::new() };
        write(&world.settings(), "deadline = \"60s\"\n");
        let (before, unseen, script) = Default::default();
        let mut history = Self { world, turns: 0, before, unseen, next: 0, script };
        for file in &FILES[..4] {
            let text = history.text("before");
            history.world.write(file, text);
        }
        history
    }

    fn files(&self) -> Files {
        let mut files = Files::new();
        files_below(&self.world.root(), "", &mut files);
        files
    }

    /// Bytes that never were.
    fn text(&mut self, writer: &str) -> Vec<u8> {
        self.next += 1;
        format!("{writer} {}\n", self.next).repeat(1 + self.next % 5).into_bytes()
    }

    fn event(&mut self, name: &str, tool: &str, input: &Value, id: &str) {
        self.world.now = now() - TimeDelta::seconds(1);
        let turn = format!("t{}", self.turns);
        event(&mut self.world, name, &turn, tool, input, id);
    }

    /// The agent or a person changes something.
    fn changes(&mut self, dice: &mut Dice, writer: &str) {
        let file = dice.pick(&FILES);
        self.unseen.insert(file);
        let path = self.world.root().join(file);
        match dice.below(8) {
            0 => drop(fs::remove_file(&path)),
            1 if path.exists() => {
                let bits = if dice.is(2) { 0o755 } else { 0o644 };
                fs::set_permissions(&path, fs::Permissions::from_mode(bits)).unwrap();
            }
            2 => {
                let to = dice.pick(&FILES);
                self.unseen.insert(to);
                let to = self.world.root().join(to);
                fs::create_dir_all(to.parent().unwrap()).unwrap();
                let _renamed = fs::rename(&path, to);
            }
            _ => {
                let text = self.text(writer);
                write(&path, text);
            }
        }
        self.script.push(format!("  {writer} changes {file}"));
    }

    fn edits(&mut self, dice: &mut Dice) {
        let file = dice.pick(&FILES);
        let input = json!({ "file_path": self.world.root().join(file), "content": "" });
        self.next += 1;
        let id = format!("call {}", self.next);
        self.before.push(self.files());
        self.script.push(format!("step {}: edit {file}", self.before.len()));
        self.event("PreToolUse", "Write", &input, &id);
        let text =
            if file == "big" { noise(self.next as u64, 300 << 10) } else { self.text("agent") };
        self.world.write(file, text);
        // Now and then a person writes before the agent says that it is done.
        if dice.is(12) {
            self.changes(dice, "meanwhile");
        }
        if !dice.is(25) {
            self.event("PostToolUse", "Write", &input, &id);
        }
    }

    fn command(&mut self, dice: &mut Dice) {
        self.next += 1;
        let input = json!({ "command": format!("make {}", self.next) });
        let id = format!("call {}", self.next);
        self.before.push(self.files());
        self.script.push(format!("step {}: command", self.before.len()));
        self.event("PreToolUse", "Bash", &input, &id);
        for _ in 0..dice.below(4) {
            self.changes(dice, "command");
        }
        if !dice.is(10) {
            self.event("PostToolUse", "Bash", &input, &id);
        }
    }

    fn turn(&mut self, dice: &mut Dice) {
        self.turns += 1;
        self.before.clear();
        self.unseen.clear();
        self.script.push(format!("turn {}", self.turns));
        // A turn in which an agent does nothing is in no list.
        self.edits(dice);
        for _ in 0..=dice.below(7) {
            match dice.below(10) {
                0 | 1 => self.command(dice),
                2 | 3 => self.changes(dice, "person"),
                _ => self.edits(dice),
            }
        }
    }

    fn run(&mut self, args: &[&str]) -> (u8, String, String) {
        self.world.now = now();
        let done = self.world.run(args);
        (done.exit.code(), done.stdout, done.stderr)
    }

    /// Whether a path had become something else before a step and was taken back after it, which leaves no trace
    /// where nothing looks meanwhile.
    fn was_unseen(&self, path: &str, step: usize, here: &Files, now: &Files) -> bool {
        let is_it = |files: &Files| files.get(path) == here.get(path);
        let (earlier, later) = (&self.before[..step], &self.before[step + 1..]);
        self.unseen.contains(path)
            && earlier.iter().any(is_it)
            && later.iter().chain([now]).any(is_it)
    }

    /// Goes to before each step of a turn, and back.
    fn check(&mut self, tally: &mut Tally, number: usize) {
        let told = self.run(&["list", "--json", "--steps", &number.to_string()]);
        assert_eq!((told.0, &*told.2), (0, ""), "{}", self.script.join("\n"));
        let told: Vec<Value> = serde_json::from_str(&told.1).unwrap();
        let before = self.before.clone();
        assert_eq!(told.len(), before.len(), "{}\n{told:#?}", self.script.join("\n"));
        for (at, (step, then)) in told.iter().zip(&before).enumerate() {
            let now = self.files();
            let name = format!("{number}.{}", at + 1);
            let (exit, said, err) =
                self.run(&["restore", &name, "--yes", "--exact", "--force", "--json"]);
            let tell = |what: &str| {
                format!("{what} at {name}\n{}\n{step:#}\n{said}{err}", self.script.join("\n"))
            };
            if step["why"].is_string() {
                tally.refused += 1;
                assert_eq!((exit, self.files()), (1, now), "{}", tell("refused"));
                continue;
            }
            let gaps: BTreeSet<&str> = step["not_held"]
                .as_array()
                .unwrap()
                .iter()
                .map(|gap| gap["path"].as_str().unwrap())
                .collect();
            let is_whole = step["held"] == true;
            assert_eq!(is_whole, gaps.is_empty(), "{}", tell("held"));
            if is_whole {
                tally.whole += 1;
            } else {
                tally.partly += 1;
            }
            tally.gaps += gaps.len();
            // Work of a person's in the middle of the turn that goes again is told as well.
            let is_told = said.contains("\"inner_steps\": [\n");
            assert!(exit == 3 || exit == 0 && is_whole, "{}", tell("exit"));
            assert!(exit == 0 || !is_whole || is_told, "{}", tell("exit"));
            let here = self.files();
            let all: BTreeSet<&String> = then.keys().chain(here.keys()).collect();
            for path in all {
                let is_named = gaps.iter().any(|gap| Path::new(path).starts_with(gap));
                if is_named {
                    assert_eq!(here.get(path), now.get(path), "{}", tell(path));
                } else if !self.was_unseen(path, at, &here, &now) {
                    assert_eq!(here.get(path), then.get(path), "{}", tell(path));
                }
            }
            if here != now {
                let (exit, said, err) = self.run(&["undo", "--yes", "--force"]);
                assert_eq!(
                    self.files(),
                    now,
                    "undo of {name}: {exit} {said}{err}\n{}",
                    self.script.join("\n")
                );
            }
        }
    }
}

#[test]
#[expect(clippy::print_stdout, reason = "how much is held is worth knowing")]
fn a_restore_to_a_step_gives_what_was_there_or_names_it() {
    let cases = wished("BEFOREHAND_CASES").unwrap_or(10);
    let first = wished("BEFOREHAND_FIRST").unwrap_or(1);
    let seeds = match wished("BEFOREHAND_SEED") {
        Some(seed) => seed..seed + 1,
        None => first..first + cases,
    };
    let mut tally = Tally::default();
    for seed in seeds {
        let mut dice = Dice::new(seed);
        let mut history = History::new(seed % 2 == 0);
        history.script.push(format!("seed {seed}"));
        for _ in 0..=dice.below(2) {
            history.turn(&mut dice);
        }
        // A turn after it takes its number, and sees what it left.
        let mut number = 1;
        if dice.is(2) {
            let before = history.before.clone();
            history.turn(&mut dice);
            (history.before, number) = (before, 2);
        }
        history.check(&mut tally, number);
    }
    let Tally { whole, partly, refused, gaps } = tally;
    println!("{whole} held, {partly} in part ({gaps} files not), {refused} not at all");
    let is_one = wished("BEFOREHAND_SEED").is_some();
    assert!(is_one || whole > partly + refused, "{whole} of {}", whole + partly + refused);
}
