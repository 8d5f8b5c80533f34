//! Random histories of two sessions and their user: reverting a turn leaves what all others did, wherever
//! they touched other lines, and reports a conflict wherever they did not; an undo of it is the identity.
//!
//! `BEFOREHAND_CASES` and `BEFOREHAND_SEED` run more of them, or one again; `BEFOREHAND_FIRST` begins at
//! another seed.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use beforehand::process::Exit;
use serde_json::{Value, json};

use crate::{
    evidence::event,
    retention::thin,
    support::{
        dice::{Dice, wished},
        temp::{chmod, link, on_disk, write},
        world::World,
    },
};

/// What is changed as one: a place in a text, the mode of one, or a file as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Atom {
    Lines(usize, usize),
    Mode(usize),
    Whole(usize),
}

/// What an atom is at some time.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Is {
    Nothing,
    Lines(Vec<String>),
    Mode(u32),
    Bytes(Vec<u8>),
    Link(String),
}

const TEXTS: [&str; 2] = ["a.txt", "d/b.txt"];
const WHOLES: [&str; 4] = ["w0", "w1", "d/w2", "new/dir/w3"];
/// Places of a text that can be changed each for itself.
const PLACES: usize = 5;

/// One change of an atom, and in which turn; `None` for one by others.
#[derive(Clone, Debug)]
struct Write {
    turn: Option<usize>,
    is: Is,
}

impl Atom {
    fn path(self) -> &'static str {
        match self {
            Self::Lines(text, _) | Self::Mode(text) => TEXTS[text],
            Self::Whole(whole) => WHOLES[whole],
        }
    }

    fn any(dice: &mut Dice) -> Self {
        match dice.below(10) {
            0..=5 => Self::Lines(dice.below(TEXTS.len()), dice.below(PLACES)),
            6 => Self::Mode(dice.below(TEXTS.len())),
            _ => Self::Whole(dice.below(WHOLES.len())),
        }
    }
}

/// A history, and the world it happens in.
struct History {
    world: World,
    /// What each atom became, oldest first; the first is what it was.
    writes: BTreeMap<Atom, Vec<Write>>,
    /// The names of turns, by session.
    turns: Vec<String>,
    running: [usize; 2],
    /// Whether checkpoints between others were dropped.
    is_thin: bool,
    /// The turns that were taken back, and in which file.
    taken_back: BTreeSet<(usize, &'static str)>,
    script: Vec<String>,
    next: usize,
}

impl History {
    fn new(is_git: bool) -> Self {
        let world = if is_git { World::with_git() } else { World::new() };
        write(&world.settings(), "deadline = \"60s\"\n");
        let mut writes = BTreeMap::new();
        let first = |is| vec![Write { turn: None, is }];
        for text in 0..TEXTS.len() {
            writes.insert(Atom::Mode(text), first(Is::Mode(0o644)));
            for place in 0..PLACES {
                let is = Is::Lines(vec![format!("first {text} {place}")]);
                writes.insert(Atom::Lines(text, place), first(is));
            }
        }
        for whole in 0..WHOLES.len() {
            let is = if whole < 3 { Is::Bytes(vec![0, 1, 2]) } else { Is::Nothing };
            writes.insert(Atom::Whole(whole), first(is));
        }
        let turns = vec!["s0/t0".to_owned(), "s1/t1".to_owned()];
        let script = Vec::new();
        let (running, taken_back) = ([0, 1], BTreeSet::new());
        let is_thin = false;
        let mut history =
            Self { world, writes, turns, running, is_thin, taken_back, script, next: 10 };
        let all: Vec<Atom> = history.writes.keys().copied().collect();
        for atom in all {
            history.put(atom);
        }
        for session in 0..2 {
            history.command(session, |_| ());
        }
        history
    }

    fn now(&self, atom: Atom) -> &Is {
        &self.writes[&atom].last().unwrap().is
    }

    /// Brings the file of an atom on the disk.
    fn put(&self, atom: Atom) {
        let path = self.world.root().join(atom.path());
        match atom {
            Atom::Whole(_) => put_whole(&path, self.now(atom)),
            Atom::Lines(text, _) | Atom::Mode(text) => {
                let now = |atom| self.now(atom).clone();
                let (bytes, mode) = Self::text(text, now);
                write(&path, bytes);
                chmod(&path, mode);
            }
        }
    }

    /// What a text is when its atoms are so.
    fn text(text: usize, is: impl Fn(Atom) -> Is) -> (String, u32) {
        let mut bytes = String::new();
        for place in 0..PLACES {
            for n in 0..3 {
                bytes.push_str(&format!("between {text} {place} {n}\n"));
            }
            let Is::Lines(lines) = is(Atom::Lines(text, place)) else { unreachable!() };
            for line in lines {
                bytes.push_str(&format!("{line}\n"));
            }
        }
        let Is::Mode(mode) = is(Atom::Mode(text)) else { unreachable!() };
        (bytes, mode)
    }

    /// Something that it never was.
    fn change(&mut self, dice: &mut Dice, atom: Atom, turn: Option<usize>) {
        self.next += 1;
        let next = self.next;
        let is = match atom {
            Atom::Lines(..) => {
                Is::Lines((0..=dice.below(3)).map(|n| format!("value {next} {n}")).collect())
            }
            Atom::Mode(_) => {
                let modes = [0o600, 0o644, 0o755, 0o700];
                Is::Mode(modes[dice.below(modes.len())])
            }
            Atom::Whole(_) => match dice.below(5) {
                0 => Is::Nothing,
                1 => Is::Link(format!("to {next}")),
                2 => Is::Bytes(format!("text {next}\n").into_bytes()),
                _ => Is::Bytes(vec![
                    0,
                    u8::try_from(next % 256).unwrap(),
                    u8::try_from(next / 256).unwrap(),
                ]),
            },
        };
        if is == *self.now(atom) {
            return;
        }
        self.script.push(format!("{turn:?} makes {atom:?} {is:?}"));
        self.writes.get_mut(&atom).unwrap().push(Write { turn, is });
        self.put(atom);
    }

    /// A call of the turn that runs in a session.
    fn call(&mut self, session: usize, tool: &str, input: &Value, does: impl FnOnce(&mut Self)) {
        self.next += 1;
        let id = format!("call {}", self.next);
        let turn = self.turns[self.running[session]].clone();
        event(&mut self.world, "PreToolUse", &turn, tool, input, &id);
        does(self);
        event(&mut self.world, "PostToolUse", &turn, tool, input, &id);
    }

    fn command(&mut self, session: usize, does: impl FnOnce(&mut Self)) {
        self.script.push(format!("session {session} runs a command"));
        self.call(session, "Bash", &json!({ "command": "make" }), does);
    }

    fn step(&mut self, dice: &mut Dice) {
        let session = dice.below(3) / 2;
        let turn = Some(self.running[session]);
        match dice.below(12) {
            0..=2 => {
                let text = dice.below(TEXTS.len());
                let path = self.world.root().join(TEXTS[text]);
                let input = json!({ "file_path": path, "content": "" });
                self.script.push(format!("session {session} edits {}", TEXTS[text]));
                self.call(session, "Write", &input, |history| {
                    for _ in 0..=dice.below(2) {
                        let atom = Atom::Lines(text, dice.below(PLACES));
                        history.change(dice, atom, turn);
                    }
                });
            }
            3..=5 => self.command(session, |history| {
                for _ in 0..=dice.below(4) {
                    let atom = Atom::any(dice);
                    history.change(dice, atom, turn);
                }
            }),
            6 | 7 => {
                let atom = Atom::any(dice);
                self.change(dice, atom, None);
                // Or all might be as it was, and a turn take the checkpoint of one before it.
                self.world.write("clock", self.next.to_string());
            }
            8 => {
                self.script.push(format!("session {session} stops"));
                let turn = self.turns[self.running[session]].clone();
                event(&mut self.world, "Stop", &turn, "", &json!({}), "");
                self.world.run_started();
            }
            9 => drop(self.world.started()),
            _ => {
                self.begin_turn(session);
                if dice.is(2) {
                    self.world.run_started();
                }
            }
        }
    }

    fn begin_turn(&mut self, session: usize) {
        let name = format!("s{session}/t{}", self.turns.len());
        self.script.push(format!("{name} begins"));
        self.running[session] = self.turns.len();
        self.turns.push(name.clone());
        event(&mut self.world, "UserPromptSubmit", &name, "", &json!({}), "");
    }

    /// The turns that can be reverted, each with its number in the list.
    fn listed(&mut self) -> Vec<(usize, String)> {
        let listed = self.world.run(&["list", "--json"]).stdout;
        let listed: Value = serde_json::from_str(&listed).unwrap();
        let rows = listed.as_array().unwrap().iter().enumerate();
        let turn = |(row, it): (usize, &Value)| {
            let name = format!("{}/{}", it["session"].as_str()?, it["turn"].as_str()?);
            let turn = self.turns.iter().position(|turn| *turn == name)?;
            Some((turn, (row + 1).to_string()))
        };
        rows.filter_map(turn).collect()
    }

    /// What becomes of an atom when a turn is taken back; `None` where that conflicts.
    fn without(&self, atom: Atom, turn: usize) -> Option<Is> {
        if self.taken_back.contains(&(turn, atom.path())) {
            return Some(self.now(atom).clone());
        }
        let writes = &self.writes[&atom];
        let mut deeds: Vec<(&Is, &Is)> = Vec::new();
        for at in 1..writes.len() {
            if writes[at].turn != Some(turn) {
                continue;
            }
            let is_more = writes[at - 1].turn == Some(turn) && at > 1;
            match deeds.last_mut().filter(|_| is_more) {
                Some(last) => last.1 = &writes[at].is,
                None => deeds.push((&writes[at - 1].is, &writes[at].is)),
            }
        }
        deeds.retain(|(before, after)| before != after);
        let Some((first, last)) = deeds.first().zip(deeds.last()) else {
            return Some(self.now(atom).clone());
        };
        let now = self.now(atom);
        let mut newest_first = deeds.iter().rev();
        let one_by_one = newest_first.try_fold(now, |here, deed| three(deed.1, here, deed.0));
        let at_once = || {
            let mut pairs = deeds.windows(2);
            let without =
                pairs.try_fold(first.0, |without, pair| three(pair[0].1, pair[1].0, without))?;
            three(last.1, now, without)
        };
        one_by_one.or_else(at_once).cloned()
    }

    /// What an atom would be if a turn had never been.
    fn replayed(&self, atom: Atom, turn: usize) -> Is {
        let mut others = self.writes[&atom].iter().rev().filter(|it| it.turn != Some(turn));
        others.next().unwrap().is.clone()
    }

    /// Reverts a turn and judges what comes of it.
    fn revert(&mut self, turn: usize, number: &str, is_first: bool) -> Result<(), String> {
        let atoms: Vec<Atom> = self.writes.keys().copied().collect();
        let becomes: BTreeMap<Atom, Option<Is>> =
            atoms.iter().map(|atom| (*atom, self.without(*atom, turn))).collect();
        let clashes: BTreeSet<&str> = becomes
            .iter()
            .filter(|(_, becomes)| becomes.is_none())
            .map(|(atom, _)| atom.path())
            .collect();
        let before = on_disk(&self.world.root());
        self.world.wait(1);
        let done = self.world.run(&["revert", number, "--yes", "--json"]);
        let said = format!("{}{}", done.stdout, done.stderr);
        if self.is_thin && said.contains("what the turn did is not known") {
            return if on_disk(&self.world.root()) == before { Ok(()) } else { Err(said) };
        }
        let came: Value = serde_json::from_str(&done.stdout).map_err(|_| said.clone())?;
        let kept = came["steps"].as_array().unwrap().iter().filter(|step| step["conflict"] == true);
        let kept: BTreeSet<&str> = kept.map(|step| step["path"].as_str().unwrap()).collect();
        // After another revert a file may be a conflict as a whole where none of its lines is one.
        let is_right = kept == clashes || !is_first && kept.is_superset(&clashes);
        let code = if kept.is_empty() { 0 } else { 3 };
        if !is_right || done.exit.code() != code {
            return Err(format!("conflicts in {kept:?} instead of {clashes:?}\n{said}"));
        }
        let after = on_disk(&self.world.root());
        let files = atoms.iter().map(|atom| atom.path());
        let taken_back: Vec<&str> = files.filter(|path| !kept.contains(path)).collect();
        for (atom, is) in becomes {
            let Some(is) = is.filter(|_| !kept.contains(atom.path())) else { continue };
            // What has few values may be one of others and one of the turn's by chance.
            let is_by_chance = matches!(atom, Atom::Mode(_)) || *self.now(atom) == Is::Nothing;
            if is_first && !is_by_chance && is != self.replayed(atom, turn) {
                return Err(format!("{atom:?} would be {:?}", self.replayed(atom, turn)));
            }
            if is != *self.now(atom) {
                // What this revert brings back of an earlier turn can be taken back with that turn again.
                let writes = self.writes.get_mut(&atom).unwrap();
                let earlier = writes.iter().take_while(|it| it.turn != Some(turn));
                let made_it: BTreeSet<usize> =
                    earlier.filter(|it| it.is == is).filter_map(|it| it.turn).collect();
                writes.push(Write { turn: None, is });
                let is_it = |path: &str| matches!(atom, Atom::Whole(_)) && path == atom.path();
                self.taken_back.retain(|(other, path)| {
                    *other == turn || !made_it.contains(other) || !is_it(path)
                });
            }
        }
        let is_changed = |path: &&str| before.get(path.as_bytes()) != after.get(path.as_bytes());
        self.taken_back.extend(taken_back.into_iter().filter(is_changed).map(|path| (turn, path)));
        self.script.push(format!("revert {number}: conflicts {kept:?}"));
        self.is_as_told().map_err(|why| format!("{why}\n{said}"))?;
        if before == after {
            return Ok(());
        }
        for (verb, wanted) in [("undo", &before), ("redo", &after)] {
            self.world.wait(1);
            let done = self.world.run(&[verb, "--yes"]);
            if done.exit.code() != 0 || on_disk(&self.world.root()) != *wanted {
                return Err(format!("{verb} is not exact\n{}{}\n{said}", done.stdout, done.stderr));
            }
        }
        Ok(())
    }

    /// Whether every file is what the model has.
    fn is_as_told(&self) -> Result<(), String> {
        let root = self.world.root();
        for (text, name) in TEXTS.iter().enumerate() {
            let path = root.join(name);
            let (bytes, mode) = Self::text(text, |atom| self.now(atom).clone());
            let here = fs::read_to_string(&path).map_err(|err| err.to_string())?;
            if here != bytes {
                return Err(format!("{name} is\n{here}and not\n{bytes}"));
            }
            let here = &on_disk(&root)[name.as_bytes()];
            if here.permissions != mode {
                return Err(format!("{name} is {:o} and not {mode:o}", here.permissions));
            }
        }
        for (whole, path) in WHOLES.iter().enumerate() {
            let at = root.join(path);
            let here = match (fs::read_link(&at), fs::read(&at)) {
                (Ok(text), _) => Is::Link(text.to_str().unwrap().to_owned()),
                (Err(_), Ok(bytes)) => Is::Bytes(bytes),
                (Err(_), Err(_)) => Is::Nothing,
            };
            if here != *self.now(Atom::Whole(whole)) {
                return Err(format!("{path} is {here:?}, not {:?}", self.now(Atom::Whole(whole))));
            }
        }
        Ok(())
    }
}

/// Takes back what led from `theirs` to `base`; `None` if it cannot be.
fn three<'i>(base: &Is, ours: &'i Is, theirs: &'i Is) -> Option<&'i Is> {
    match ours {
        _ if ours == base => Some(theirs),
        _ if ours == theirs || base == theirs => Some(ours),
        _ => None,
    }
}

fn put_whole(path: &Path, is: &Is) {
    if path.symlink_metadata().is_ok() {
        fs::remove_file(path).unwrap();
    }
    match is {
        Is::Bytes(bytes) => write(path, bytes),
        Is::Link(text) => {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            link(path, text);
        }
        Is::Nothing | Is::Lines(_) | Is::Mode(_) => (),
    }
}

fn case(seed: u64) {
    let mut dice = Dice::new(seed);
    let is_git = dice.is(2);
    let mut history = History::new(is_git);
    let steps = 10 + dice.below(15);
    // Of turns from which checkpoints are dropped, nothing is known. Of later ones all is.
    history.is_thin = seed % 4 == 3;
    for n in 0..steps {
        if history.is_thin && n == steps / 2 {
            (0..2).for_each(|session| history.begin_turn(session));
            assert_eq!(history.world.run(&["create"]).exit, Exit::Ok);
            thin(&mut history.world, is_git);
        }
        history.step(&mut dice);
    }
    for session in 0..2 {
        let turn = history.turns[history.running[session]].clone();
        event(&mut history.world, "Stop", &turn, "", &json!({}), "");
    }
    for n in 0..3 {
        let listed = history.listed();
        if listed.is_empty() {
            return;
        }
        let (turn, number) = &listed[dice.below(listed.len())];
        if let Err(why) = history.revert(*turn, number, n == 0 && !history.is_thin) {
            let script = history.script.join("\n");
            let name = &history.turns[*turn];
            panic!(
                "BEFOREHAND_SEED={seed}, git {is_git}\n{script}\nrevert {number}, {turn} {name}: {why}"
            );
        }
    }
}

/// Seeds that found something once.
const FAILED_ONCE: [u64; 2] = [6_000_100, 7_200_109];

#[test]
fn reverting_a_turn_is_as_if_it_had_never_been() {
    if let Some(seed) = wished("BEFOREHAND_SEED") {
        return case(seed);
    }
    let first = wished("BEFOREHAND_FIRST").unwrap_or(0);
    let cases = wished("BEFOREHAND_CASES").unwrap_or(25);
    (first..first + cases).chain(FAILED_ONCE).for_each(case);
}
