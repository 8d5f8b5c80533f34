//! Random work of agents and users in a project and in a fork of it: the project changes by nothing but
//! `fork --keep`; that comes to a three-way merge of each file; an undo of it is the identity; a dropped fork comes
//! back byte for byte.
//!
//! `BEFOREHAND_CASES`, `BEFOREHAND_FIRST` and `BEFOREHAND_SEED` as in `revert_random`.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use serde_json::{Value, json};

use crate::support::{
    dice::{Dice, wished},
    temp::{Files, chmod, link, on_disk, write},
    world::World,
};

/// A text: its name, the value of each of its places, its mode.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Text {
    name: usize,
    places: [usize; PLACES],
    mode: u32,
}

/// Anything else, which is merged as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Whole {
    Nothing,
    Bytes(usize),
    Link(usize),
    /// A directory with one file in it.
    Directory(usize),
}

/// What is in a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Side {
    texts: Vec<Text>,
    wholes: Vec<Whole>,
}

const PLACES: usize = 5;
const NAMES: [[&str; 3]; 3] =
    [["a.txt", "d/a.txt", "A"], ["d/b.txt", "b.txt", "new/b"], ["c.txt", "new/c", "d/c"]];
const WHOLES: [&str; 6] = ["w0", "w1", "d/w2", "new/dir/w3", "ignored.env", "d/w5"];
/// A change of everything at once is less likely to show what is wrong than a few.
const CHANGES: usize = 3;
/// Which of the wholes is ignored.
const IGNORED: usize = 4;
/// More of them tell no more.
const FAULTS_MAX: usize = 3;

impl Side {
    fn first() -> Self {
        let text = |_| Text { name: 0, places: [0; PLACES], mode: 0o644 };
        let whole = |n| if n == 3 { Whole::Nothing } else { Whole::Bytes(n + 1) };
        Self {
            texts: (0..NAMES.len()).map(text).collect(),
            wholes: (0..WHOLES.len()).map(whole).collect(),
        }
    }

    /// Something that was never there.
    fn change(&mut self, dice: &mut Dice, next: &mut usize) {
        *next += 1;
        match dice.below(10) {
            0..=3 => {
                let text = dice.below(NAMES.len());
                self.texts[text].places[dice.below(PLACES)] = *next;
            }
            4 => {
                let modes = [0o600, 0o644, 0o755, 0o700];
                self.texts[dice.below(NAMES.len())].mode = modes[dice.below(4)];
            }
            5 => self.texts[dice.below(NAMES.len())].name = dice.below(3),
            _ => {
                let whole = dice.below(WHOLES.len());
                self.wholes[whole] = match dice.below(6) {
                    0 => Whole::Nothing,
                    1 => Whole::Link(*next),
                    2 | 3 if whole != IGNORED => Whole::Directory(*next),
                    _ => Whole::Bytes(*next),
                }
            }
        }
    }

    /// Brings a directory from `was` to this.
    fn put(&self, dir: &Path, was: Option<&Self>) {
        for (n, text) in self.texts.iter().enumerate() {
            let old = was.map(|was| &was.texts[n]);
            if let Some(old) = old.filter(|old| old.name != text.name) {
                let (from, to) = (dir.join(NAMES[n][old.name]), dir.join(NAMES[n][text.name]));
                fs::create_dir_all(to.parent().unwrap()).unwrap();
                fs::rename(from, to).unwrap();
            }
            if old != Some(text) {
                let path = dir.join(NAMES[n][text.name]);
                write(&path, text.bytes(n));
                chmod(&path, text.mode);
            }
        }
        for (n, whole) in self.wholes.iter().enumerate() {
            if was.is_some_and(|was| was.wholes[n] == *whole) {
                continue;
            }
            let path = dir.join(WHOLES[n]);
            match path.symlink_metadata() {
                Ok(there) if there.is_dir() => {
                    fs::remove_file(path.join("in")).unwrap();
                    fs::remove_dir(&path).unwrap();
                }
                Ok(_) => fs::remove_file(&path).unwrap(),
                Err(_) => (),
            }
            match whole {
                Whole::Nothing => (),
                Whole::Directory(value) => write(&path.join("in"), bytes_of(*value)),
                Whole::Link(value) => {
                    fs::create_dir_all(path.parent().unwrap()).unwrap();
                    link(&path, &format!("to {value}"));
                }
                Whole::Bytes(value) => write(&path, bytes_of(*value)),
            }
        }
    }

    /// Whether a directory is so.
    fn is_at(&self, dir: &Path) -> Result<(), String> {
        let there = on_disk(dir);
        for (n, text) in self.texts.iter().enumerate() {
            for (name, path) in NAMES[n].iter().enumerate() {
                let found = there.get(path.as_bytes());
                if name != text.name {
                    if found.is_some() {
                        return Err(format!("{path} is there, and text {n} at {text:?}"));
                    }
                    continue;
                }
                let found = found.ok_or_else(|| format!("{path} is not there"))?;
                let bytes = fs::read(dir.join(path)).unwrap();
                if bytes != text.bytes(n) || found.permissions != text.mode {
                    let bytes = String::from_utf8_lossy(&bytes).into_owned();
                    return Err(format!(
                        "{path} ({:o}) is not {text:?}\n{bytes}",
                        found.permissions
                    ));
                }
            }
        }
        for (n, whole) in self.wholes.iter().enumerate() {
            let path = dir.join(WHOLES[n]);
            let names =
                there.keys().filter(|it| it.starts_with(format!("{}/", WHOLES[n]).as_bytes()));
            let (names, inner) = (names.count(), fs::read(path.join("in")));
            let is = match (whole, fs::read_link(&path), fs::read(&path)) {
                (Whole::Directory(value), Err(_), Err(_)) => {
                    names == 1 && inner.is_ok_and(|bytes| bytes == bytes_of(*value))
                }
                (Whole::Link(value), Ok(text), _) => text == Path::new(&format!("to {value}")),
                (Whole::Bytes(value), Err(_), Ok(bytes)) => bytes == bytes_of(*value),
                (Whole::Nothing, Err(_), Err(_)) => path.symlink_metadata().is_err(),
                _ => false,
            };
            if !is {
                return Err(format!("{} is not {whole:?}", WHOLES[n]));
            }
        }
        Ok(())
    }
}

impl Text {
    fn bytes(&self, n: usize) -> Vec<u8> {
        let place = |(place, value): (usize, &usize)| {
            let between = |line| format!("between {n} {place} {line}\n");
            (0..3).map(between).collect::<String>() + &format!("value {value}\n")
        };
        self.places.iter().enumerate().map(place).collect::<String>().into_bytes()
    }
}

/// Some of them are no text.
fn bytes_of(value: usize) -> Vec<u8> {
    let text = format!("value {value}\n");
    if value.is_multiple_of(2) { text.into_bytes() } else { [b"\0", text.as_bytes()].concat() }
}

/// Three values made one; `None` where that conflicts.
fn three<T: PartialEq + Clone>(base: &T, ours: &T, theirs: &T) -> Option<T> {
    match ours {
        _ if ours == base => Some(theirs.clone()),
        _ if ours == theirs || base == theirs => Some(ours.clone()),
        _ => None,
    }
}

fn three_texts(base: &Text, ours: &Text, theirs: &Text) -> Option<Text> {
    let mut merged = Text {
        name: three(&base.name, &ours.name, &theirs.name)?,
        mode: three(&base.mode, &ours.mode, &theirs.mode)?,
        ..ours.clone()
    };
    for place in 0..PLACES {
        merged.places[place] =
            three(&base.places[place], &ours.places[place], &theirs.places[place])?;
    }
    Some(merged)
}

/// A time the fork was brought back: what it had, and the texts and wholes that conflicted.
#[derive(Clone)]
struct Kept {
    theirs: Side,
    texts: BTreeSet<usize>,
    wholes: BTreeSet<usize>,
}

struct Case {
    world: World,
    fork: PathBuf,
    began: Side,
    ours: Side,
    theirs: Side,
    kept: Vec<Kept>,
    next: usize,
    script: Vec<String>,
}

impl Case {
    fn new(is_git: bool, dice: &mut Dice) -> Self {
        let mut world = if is_git { World::with_git() } else { World::new() };
        write(&world.settings(), "deadline = \"60s\"\n");
        let (mut next, mut began) = (100, Side::first());
        world.write(".gitignore", "ignored.env\n");
        for _ in 0..dice.below(3) {
            began.change(dice, &mut next);
        }
        began.put(&world.root(), None);
        let fork = world.root().with_file_name("shop-fork-1");
        let (ours, theirs) = (began.clone(), began.clone());
        let (kept, script) = (Vec::new(), Vec::new());
        call(&mut world, None, || ());
        let mut case = Self { world, fork, began, ours, theirs, kept, next, script };
        if dice.is(2) {
            case.work(dice, false);
        }
        let before = on_disk(&case.world.root());
        let made = case.run(&["fork", "1", "--no-conversation"], false);
        assert!(made.0 == 0 && on_disk(&case.world.root()) == before, "{}", made.1);
        assert_eq!(case.began.is_at(&case.fork), Ok(()));
        case
    }

    fn run(&mut self, args: &[&str], is_in_fork: bool) -> (u8, String, String) {
        self.world.wait(1);
        let dir = if is_in_fork { self.fork.clone() } else { self.world.root() };
        let done = self.world.run_in(&dir, args, "");
        (done.exit.code(), format!("{}{}", done.stdout, done.stderr), done.stdout)
    }

    /// A user, or an agent in a turn, changes one of the two.
    fn work(&mut self, dice: &mut Dice, is_fork: bool) {
        let (dir, side) = if is_fork {
            (self.fork.clone(), &mut self.theirs)
        } else {
            (self.world.root(), &mut self.ours)
        };
        let was = side.clone();
        for _ in 0..=dice.below(CHANGES) {
            side.change(dice, &mut self.next);
        }
        let now = side.clone();
        let is_agent = dice.is(2);
        self.script.push(format!("fork {is_fork}, agent {is_agent}: {was:?}\n  -> {now:?}"));
        if is_agent {
            let place = is_fork.then(|| self.fork.clone());
            call(&mut self.world, place.as_deref(), || now.put(&dir, Some(&was)));
        } else {
            now.put(&dir, Some(&was));
        }
    }

    /// What a keep comes to, and what conflicts.
    fn merged(&self) -> (Side, Kept) {
        let mut side = self.ours.clone();
        let mut kept =
            Kept { theirs: self.theirs.clone(), texts: BTreeSet::new(), wholes: BTreeSet::new() };
        for n in 0..NAMES.len() {
            let last = self.kept.iter().rev().find(|kept| !kept.texts.contains(&n));
            let base = last.map_or(&self.began, |kept| &kept.theirs);
            match three_texts(&base.texts[n], &self.ours.texts[n], &self.theirs.texts[n]) {
                Some(text) => side.texts[n] = text,
                None => drop(kept.texts.insert(n)),
            }
        }
        for n in 0..WHOLES.len() {
            // What is new and ignored stays in the fork.
            if n == IGNORED && self.began.wholes[n] == Whole::Nothing {
                continue;
            }
            let last = self.kept.iter().rev().find(|kept| !kept.wholes.contains(&n));
            let base = last.map_or(&self.began, |kept| &kept.theirs);
            match three(&base.wholes[n], &self.ours.wholes[n], &self.theirs.wholes[n]) {
                Some(whole) => side.wholes[n] = whole,
                None => drop(kept.wholes.insert(n)),
            }
        }
        (side, kept)
    }

    fn keep(&mut self, dice: &mut Dice) -> Result<(), String> {
        let (before, there) = (on_disk(&self.world.root()), on_disk(&self.fork));
        let is_in_fork = dice.is(2);
        let plan = self.run(&["fork", "--keep", "--dry-run", "--json"], is_in_fork);
        if on_disk(&self.world.root()) != before || on_disk(&self.fork) != there {
            return Err(format!("a dry run changed something\n{}", plan.1));
        }
        let (wanted, kept) = self.merged();
        let done = self.run(&["fork", "--keep", "--yes", "--json"], is_in_fork);
        let said = done.1;
        let conflicts = conflicts(&done.2).ok_or_else(|| said.clone())?;
        if conflicts != self::conflicts(&plan.2).ok_or_else(|| plan.1.clone())? {
            return Err(format!("the plan is not the deed\n{}\n{said}", plan.1));
        }
        if done.0 != if conflicts.is_empty() { 0 } else { 3 } {
            return Err(format!("exit {}\n{said}", done.0));
        }
        let has_conflict = !kept.texts.is_empty() || !kept.wholes.is_empty();
        if has_conflict == conflicts.is_empty() {
            return Err(format!(
                "conflicts {conflicts:?}, not {:?} {:?}\n{said}",
                kept.texts, kept.wholes
            ));
        }
        wanted.is_at(&self.world.root()).map_err(|why| format!("{why}\n{said}"))?;
        if on_disk(&self.fork) != there {
            return Err("the fork was changed".to_owned());
        }
        let after = on_disk(&self.world.root());
        self.script.push(format!("kept, conflicts {conflicts:?}"));
        let was = std::mem::replace(&mut self.ours, wanted.clone());
        if before == after {
            return Ok(());
        }
        self.kept.push(kept.clone());
        if dice.is(2) {
            self.step("undo", &before)?;
            self.ours = was;
            self.kept.pop();
            if dice.is(2) {
                self.step("redo", &after)?;
                self.ours = wanted;
                self.kept.push(kept);
            }
        }
        Ok(())
    }

    fn step(&mut self, verb: &str, wanted: &Files) -> Result<(), String> {
        let done = self.run(&[verb, "--yes"], false);
        self.script.push(verb.to_owned());
        let is_it = done.0 == 0 && on_disk(&self.world.root()) == *wanted;
        if is_it { Ok(()) } else { Err(format!("{verb} is not exact\n{}", done.1)) }
    }

    fn drop_fork(&mut self) -> Result<(), String> {
        let (before, there) = (on_disk(&self.world.root()), files(&self.fork));
        let done = self.run(&["fork", "--drop", "shop-fork-1", "--yes"], false);
        if done.0 != 0 || self.fork.exists() || on_disk(&self.world.root()) != before {
            return Err(format!("not dropped\n{}", done.1));
        }
        let fork = self.fork.to_str().unwrap().to_owned();
        let back = self.run(&["restore", "latest", "--root", &fork, "--yes"], false);
        if files(&self.fork) != there {
            return Err(format!("the fork does not come back\n{}", back.1));
        }
        Ok(())
    }

    fn all(&mut self, dice: &mut Dice) -> Result<(), String> {
        for _ in 0..2 + dice.below(6) {
            match dice.below(5) {
                0 | 1 => self.work(dice, true),
                2 => self.work(dice, false),
                _ => self.keep(dice)?,
            }
        }
        self.keep(dice)?;
        self.drop_fork()
    }
}

/// A call of an agent in the project, or in the fork.
fn call(world: &mut World, fork: Option<&Path>, does: impl FnOnce()) {
    let dir = fork.map_or_else(|| world.root(), Path::to_owned);
    let session = if fork.is_some() { "f" } else { "s" };
    world.wait(1);
    let at = world.now.timestamp();
    let payload = |name: &str| {
        json!({
            "session_id": session, "cwd": dir, "hook_event_name": name, "tool_name": "Bash",
            "tool_input": { "command": "make" }, "tool_use_id": format!("{at}"),
            "prompt_id": format!("turn {at}"), "tool_response": {},
        })
    };
    let args = ["hook", "--agent", "claude-code"];
    world.run_in(&dir, &args, &payload("PreToolUse").to_string());
    does();
    world.run_in(&dir, &args, &payload("PostToolUse").to_string());
}

/// What is in a directory, git's own aside.
fn files(dir: &Path) -> Files {
    let mut files = on_disk(dir);
    files.retain(|path, _| path.split(|byte| *byte == b'/').all(|name| name != b".git"));
    files
}

fn conflicts(report: &str) -> Option<BTreeSet<String>> {
    let report: Value = serde_json::from_str(report).ok()?;
    let steps = report["steps"].as_array()?.iter().filter(|step| step["conflict"] == true);
    Some(steps.map(|step| step["path"].as_str().unwrap().to_owned()).collect())
}

#[test]
fn a_fork_comes_back_as_a_three_way_merge_and_the_project_changes_by_nothing_else() {
    let (first, cases) = (wished("BEFOREHAND_FIRST").unwrap_or(1), wished("BEFOREHAND_CASES"));
    let seeds = match wished("BEFOREHAND_SEED") {
        Some(seed) => seed..seed + 1,
        None => first..first + cases.unwrap_or(12),
    };
    let mut faults = BTreeMap::new();
    for seed in seeds {
        let mut dice = Dice::new(seed);
        let mut case = Case::new(seed % 2 == 0, &mut dice);
        if let Err(why) = case.all(&mut dice) {
            faults.insert(seed, format!("{}\n{why}", case.script.join("\n")));
        }
        if faults.len() == FAULTS_MAX {
            break;
        }
    }
    let first = faults.iter().next().map(|(seed, why)| format!("seed {seed}: {why}"));
    assert!(faults.is_empty(), "{} wrong: {:?}\n{}", faults.len(), faults.keys(), first.unwrap());
}
