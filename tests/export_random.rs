//! Random histories of two sessions and their user, with undos: what `export` writes leads each file through the
//! states that the turns left, in their order; git takes the patches; and whatever is not in it is named.
//!
//! `BEFOREHAND_CASES` and `BEFOREHAND_SEED` run more of them, or one again; `BEFOREHAND_FIRST` begins at
//! another seed.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use serde_json::{Value, json};

use crate::{
    evidence::{begins, ends, event, ours},
    export::{as_git_has_it, change, in_git_at, known_to_git},
    support::{
        dice::{Dice, wished},
        real::git,
        temp::{chmod, link, write},
        world::World,
    },
};

/// A file as git has it.
type File = Option<(u32, Vec<u8>)>;
type Files = BTreeMap<String, (u32, Vec<u8>)>;

/// A state of a file, and the turn that led to it; `None` for others.
#[derive(Clone, Debug, PartialEq, Eq)]
struct State {
    by: Option<String>,
    file: File,
    /// When it came about.
    at: usize,
}

/// What is known of a file: the states that count, and those that were taken back, newest first.
#[derive(Clone, Debug, Default)]
struct Course {
    standing: Vec<State>,
    taken_back: Vec<State>,
    /// Whether it cannot be told who made it what it is.
    is_loose: bool,
    /// Whether it cannot be told what a restore went back to.
    is_ambiguous: bool,
}

/// How much was exported, and how.
#[derive(Default)]
struct Tally {
    cases: usize,
    commits: usize,
    files: usize,
    loose: usize,
    torn: usize,
    mixed: usize,
    unheld: usize,
    conflicts: usize,
    taken_back: usize,
}

struct History {
    world: World,
    is_git: bool,
    courses: BTreeMap<String, Course>,
    last: Files,
    /// The current turn of each session.
    turns: [String; 2],
    /// What was there when each turn began its first call, and when its last one ended.
    spans: BTreeMap<String, (usize, Files, usize)>,
    at: usize,
    next: usize,
    script: Vec<String>,
}

impl History {
    fn new(is_git: bool, dice: &mut Dice) -> Self {
        let mut world = if is_git { World::with_git() } else { World::new() };
        known_to_git(&world);
        world.write("plain", "one\ntwo\n");
        (0..dice.below(8)).for_each(|_| change(&world, dice));
        if is_git {
            git(&world, &world.root(), "git add -A && git commit -q --allow-empty -m first");
            (0..dice.below(3)).for_each(|_| change(&world, dice));
        }
        let turns = ["s/zero".to_owned(), "t/zero".to_owned()];
        begins(&mut world, "s/zero", "make nothing");
        ends(&mut world, "s/zero", "make nothing");
        let (courses, spans, script) = Default::default();
        let last = as_git_has_it(&world);
        let mut history =
            Self { world, is_git, courses, last, turns, spans, at: 0, next: 0, script };
        history.turns = [history.new_turn(0), history.new_turn(1)];
        history
    }

    fn new_turn(&mut self, session: usize) -> String {
        self.next += 1;
        format!("{}/turn{}", ["s", "t"][session], self.next)
    }

    /// Notes what changed since the last look.
    fn note(&mut self, by: Option<&str>, is_loose: bool) {
        self.at += 1;
        let now = as_git_has_it(&self.world);
        let paths: BTreeSet<String> = self.last.keys().chain(now.keys()).cloned().collect();
        for path in paths {
            let (was, file) = (self.last.get(&path).cloned(), now.get(&path).cloned());
            if was == file {
                continue;
            }
            self.script
                .push(format!("  {path:?}: {}", file.as_ref().map_or("gone", |_| "changed")));
            let course = self.courses.entry(path).or_default();
            if course.standing.is_empty() {
                course.standing.push(State { by: None, file: was, at: 0 });
            }
            course.is_loose |= is_loose;
            // As if a restore had done it, and not come to note it.
            let all = course.standing.iter().chain(&course.taken_back);
            let is_as_before = all.filter(|state| state.file == file).count() > 0;
            course.is_ambiguous |= by.is_none() && is_as_before;
            course.taken_back.clear();
            course.standing.push(State { by: by.map(str::to_owned), file, at: self.at });
        }
        self.last = now;
    }

    /// Notes what a restore put back.
    fn note_restore(&mut self) {
        self.at += 1;
        let now = as_git_has_it(&self.world);
        let paths: BTreeSet<String> = self.last.keys().chain(now.keys()).cloned().collect();
        for path in paths {
            let file = now.get(&path).cloned();
            if self.last.get(&path) == file.as_ref() {
                continue;
            }
            // A directory above it may have come or gone, and then the restore left no file there.
            for (at, _) in path.match_indices('/') {
                if let Some(above) = self.courses.get_mut(&path[..at]) {
                    above.is_ambiguous = true;
                }
            }
            // Nor is what was below it meanwhile among what the restore says it put back.
            let below = format!("{path}/");
            let below = self.courses.iter_mut().filter(|(other, _)| other.starts_with(&below));
            below.for_each(|(_, course)| course.is_ambiguous = true);
            let course = self.courses.entry(path).or_default();
            let is_it = |state: &State| state.file == file;
            let all = course.standing.iter().chain(&course.taken_back);
            course.is_ambiguous |= all.filter(|state| is_it(state)).count() != 1;
            if let Some(at) = course.standing.iter().rposition(is_it) {
                course.taken_back.extend(course.standing.drain(at + 1..).rev());
            } else if let Some(at) = course.taken_back.iter().rposition(is_it) {
                course.standing.extend(course.taken_back.drain(at..).rev());
            } else {
                course.taken_back.clear();
                course.standing.push(State { by: None, file, at: self.at });
            }
        }
        self.last = now;
    }

    fn changes(&mut self, dice: &mut Dice) {
        for _ in 0..=dice.below(3) {
            change(&self.world, dice);
        }
    }

    fn begin(&mut self, session: usize, command: &str) -> String {
        let turn = self.turns[session].clone();
        self.script.push(format!("{turn} runs {command}"));
        let (at, there) = (self.at, as_git_has_it(&self.world));
        self.spans.entry(turn.clone()).or_insert((at, there, at));
        begins(&mut self.world, &turn, command);
        turn
    }

    fn end(&mut self, turn: &str, command: &str) {
        ends(&mut self.world, turn, command);
        // What it did is noted right after.
        self.spans.get_mut(turn).unwrap().2 = self.at + 1;
    }

    /// A command of one session, or of both at once.
    fn call(&mut self, dice: &mut Dice) {
        self.next += 1;
        let (session, command) = (dice.below(2), format!("make {}", self.next));
        let turn = self.begin(session, &command);
        let mut is_loose = false;
        if dice.is(6) {
            is_loose = true;
            self.changes(dice);
            self.note(None, true);
            let other = self.begin(1 - session, &format!("{command} more"));
            self.changes(dice);
            self.end(&other, &format!("{command} more"));
            self.note(None, true);
        }
        self.changes(dice);
        self.end(&turn, &command);
        self.note(Some(&turn), is_loose);
        if dice.is(3) {
            event(&mut self.world, "Stop", &turn, "", &json!({}), "");
            self.world.run_started();
        }
    }

    fn step(&mut self, dice: &mut Dice) {
        match dice.below(12) {
            0..=6 => self.call(dice),
            7 | 8 => {
                self.script.push("by hand".to_owned());
                self.changes(dice);
                self.note(None, false);
            }
            9 | 10 => {
                let session = dice.below(2);
                self.turns[session] = self.new_turn(session);
            }
            _ => {
                let verb = dice.pick(&["undo", "undo", "redo"]);
                self.script.push(verb.to_owned());
                self.world.wait(1);
                self.world.run(&[verb, "--yes", "--force"]);
                self.note_restore();
            }
        }
    }

    /// The turns of the list, newest first; `None` for a row that is of none.
    fn listed(&mut self) -> Vec<Option<String>> {
        let out = ours(&mut self.world, &["list", "--json"], 0).stdout;
        let listed: Value = serde_json::from_str(&out).unwrap();
        let name = |it: &Value| {
            let name = format!("{}/{}", it["session"].as_str()?, it["turn"].as_str()?);
            self.spans.contains_key(&name).then_some(name)
        };
        listed.as_array().unwrap().iter().map(name).collect()
    }

    /// A repository with what the series begins with.
    fn base(&self, there: &Files) -> String {
        let (clone, root) = (self.world.root().join("../clone"), self.world.root());
        let _none = beforehand::fs::remove_tree(&clone);
        if self.is_git {
            git(
                &self.world,
                &root,
                "git clone -q . ../clone && cd ../clone && git checkout -q main",
            );
        } else {
            fs::create_dir_all(&clone).unwrap();
            for (path, (mode, bytes)) in there {
                let path = clone.join(path);
                if *mode == 0o120_000 {
                    fs::create_dir_all(path.parent().unwrap()).unwrap();
                    link(&path, std::str::from_utf8(bytes).unwrap());
                } else {
                    write(&path, bytes);
                    chmod(&path, mode & 0o777);
                }
            }
            git(
                &self.world,
                &clone,
                "git init -q . && git add -Af . && git commit -q --allow-empty -m base",
            );
        }
        git(&self.world, &clone, "git rev-parse HEAD")
    }

    /// Exports some turns, and holds what comes of it against what was done.
    fn check(&mut self, dice: &mut Dice, tally: &mut Tally) {
        let listed = self.listed();
        let numbers: Vec<usize> =
            listed.iter().enumerate().filter(|it| it.1.is_some()).map(|it| it.0 + 1).collect();
        if numbers.is_empty() {
            return;
        }
        let mut pick = || numbers[dice.below(numbers.len())];
        let (one, other) = (pick(), pick());
        let (newest, oldest) = (one.min(other), one.max(other));
        let turns: Vec<&String> = listed[newest - 1..oldest].iter().flatten().collect();
        let range = format!("{oldest}..{newest}");
        self.script.push(format!("export {range}: {turns:?}"));
        let _none = beforehand::fs::remove_tree(&self.world.root().join("../out"));
        let done = self.world.run(&["export", &range, "--patches", "../out", "--json"]);
        let script = self.script.join("\n");
        let told: Value = serde_json::from_str(&done.stdout)
            .unwrap_or_else(|_| panic!("{script}\n{}", done.stderr));
        let commits = told["commits"].as_array().unwrap();
        let spans = turns.iter().map(|turn| &self.spans[*turn]);
        let first = spans.clone().min_by_key(|span| span.0).unwrap();
        let (start, there) = (first.0, first.1.clone());
        let end = spans.map(|span| span.2).max().unwrap();
        let states = self.exported(&there, commits, &listed, &script);
        let named = |list: &str| -> BTreeMap<String, String> {
            let list = told[list].as_array().unwrap().iter();
            let text = |it: &Value| it.as_str().unwrap_or_default().to_owned();
            list.map(|it| (text(&it["path"]), text(&it["reason"]))).collect()
        };
        let (left, mixed) = (named("left_out"), named("mixed"));
        tally.cases += 1;
        tally.commits += commits.len();
        tally.files += states.len();
        tally.mixed += mixed.len();
        let count = |reason: &str| left.values().filter(|it| *it == reason).count();
        tally.unheld += count("unheld");
        tally.conflicts += count("conflict");
        tally.taken_back += count("taken-back");
        for path in left.iter().filter(|it| it.1 == "conflict").map(|it| it.0) {
            assert!(self.is_in_conflict(path, &left), "{path:?}\n{script}\n{told:#}");
        }
        for (path, course) in &self.courses {
            let tell = || format!("{path:?}\n{script}\n{course:#?}\n{told:#}");
            let is_in = |by: &Option<String>| by.as_ref().filter(|by| turns.contains(by)).cloned();
            let begin = course.standing.iter().rposition(|it| it.at <= start).unwrap_or(0);
            let span: Vec<&State> =
                course.standing[begin + 1..].iter().filter(|it| it.at <= end).collect();
            let Some(came) = states.get(path) else {
                let is_of_turns = span.iter().any(|it| is_in(&it.by).is_some());
                let back = span.last().is_none_or(|last| last.file == course.standing[begin].file);
                assert!(
                    !is_of_turns
                        || back
                        || left.contains_key(path)
                        || course.is_loose
                        || course.is_ambiguous,
                    "{}",
                    tell()
                );
                continue;
            };
            assert!(!left.contains_key(path), "{}", tell());
            if course.is_ambiguous {
                continue;
            }
            let last = span.last().map_or(&course.standing[begin], |last| last);
            assert_eq!(came.last().unwrap().1, last.file, "{}", tell());
            if course.is_loose {
                tally.loose += 1;
                continue;
            }
            let mut wanted = vec![(None, course.standing[begin].file.clone())];
            wanted.extend(span.iter().map(|it| (is_in(&it.by), it.file.clone())));
            let base = came[0].1.clone();
            if !mixed.contains_key(path) {
                assert_eq!(runs(base.clone(), &came[1..]), runs(base, &wanted), "{}", tell());
            }
        }
        let by: Vec<&Value> = commits.iter().map(|it| &it["turn"]).collect();
        // A symlink that becomes a directory goes first.
        let only_removes = |commit: &Value| {
            commit["files"].as_array().unwrap().iter().all(|it| it["change"] == "removed")
        };
        let is_apart =
            |pair: &[Value]| pair[0]["turn"] != pair[1]["turn"] || only_removes(&pair[0]);
        assert!(commits.windows(2).all(is_apart), "{script}\n{told:#}");
        let all: BTreeSet<u64> = by.iter().filter_map(|it| it.as_u64()).collect();
        tally.torn += by.iter().filter(|it| !it.is_null()).count() - all.len();
        if self.is_git && !commits.is_empty() {
            let trees = |dir: &Path, range: &str| {
                git(&self.world, dir, &format!("git log --format='%T %an <%ae> %ad %B' {range}"))
            };
            let taken = trees(&self.world.root().join("../clone"), "origin/main..HEAD");
            ours(&mut self.world, &["export", &range, "--branch", "turns"], 0);
            assert_eq!(taken, {
                let root = self.world.root();
                git(&self.world, &root, "git log --format='%T %an <%ae> %ad %B' main..turns")
            });
        }
    }

    /// Whether a file can be in conflict: another above or below it is left out for a reason of its own, or it
    /// cannot be told which of them came first.
    fn is_in_conflict(&self, path: &str, left: &BTreeMap<String, String>) -> bool {
        let is_below = |one: &str, other: &str| {
            one.strip_prefix(other).is_some_and(|rest| rest.starts_with('/'))
        };
        let is_near = |other: &str| is_below(path, other) || is_below(other, path);
        let is_unsure = |path: &str| {
            self.courses.get(path).is_some_and(|course| course.is_loose || course.is_ambiguous)
        };
        left.iter()
            .filter(|(other, _)| is_near(other))
            .any(|(other, why)| why != "conflict" || is_unsure(path) || is_unsure(other))
    }

    /// The states that each file goes through where git takes the patches, each with its turn.
    fn exported(
        &self,
        there: &Files,
        commits: &[Value],
        listed: &[Option<String>],
        script: &str,
    ) -> BTreeMap<String, Vec<(Option<String>, File)>> {
        let base = self.base(there);
        let mut states: BTreeMap<String, Vec<(Option<String>, File)>> = BTreeMap::new();
        if commits.is_empty() {
            return states;
        }
        let clone = self.world.root().join("../clone");
        let took = crate::support::real::try_git(&self.world, &clone, "git am -q ../out/*.patch");
        assert!(took.is_ok(), "{script}\n{took:?}\n{commits:#?}");
        let made = git(&self.world, &clone, &format!("git rev-list --reverse {base}..HEAD"));
        let made: Vec<&str> = made.lines().collect();
        assert_eq!(made.len(), commits.len(), "{script}");
        for (id, commit) in made.iter().zip(commits) {
            let number = commit["turn"].as_u64().map(|it| usize::try_from(it).unwrap());
            let turn = number.and_then(|number| listed[number - 1].clone());
            for file in commit["files"].as_array().unwrap() {
                let path = file["path"].as_str().unwrap();
                let first = || vec![(None, in_git_at(&self.world, &clone, &base, path))];
                let states = states.entry(path.to_owned()).or_insert_with(first);
                states.push((turn.clone(), in_git_at(&self.world, &clone, id, path)));
            }
        }
        states
    }
}

/// The last state of each owner in turn, from a first one; without what comes to nothing.
fn runs(mut here: File, states: &[(Option<String>, File)]) -> Vec<(Option<String>, File)> {
    let mut runs: Vec<(Option<String>, File, File)> = Vec::new();
    for (by, file) in states {
        match runs.last_mut().filter(|last| last.0 == *by) {
            Some(last) => last.2.clone_from(file),
            None => runs.push((by.clone(), here.clone(), file.clone())),
        }
        here.clone_from(file);
        while runs.last().is_some_and(|last| last.1 == last.2) {
            runs.pop();
        }
    }
    runs.into_iter().map(|(by, _, file)| (by, file)).collect()
}

/// Seeds that found something once.
const FAILED_ONCE: [u64; 1] = [1_300_644];

#[test]
#[expect(clippy::print_stderr, reason = "how much is exported is worth knowing")]
fn git_makes_of_the_patches_what_two_sessions_made() {
    let (first, cases) = (wished("BEFOREHAND_FIRST").unwrap_or(0), wished("BEFOREHAND_CASES"));
    let seeds: Vec<u64> = match wished("BEFOREHAND_SEED") {
        Some(seed) => vec![seed],
        None => (first..first + cases.unwrap_or(8)).chain(FAILED_ONCE).collect(),
    };
    let mut tally = Tally::default();
    for seed in seeds {
        let mut dice = Dice::new(seed);
        let mut history = History::new(!seed.is_multiple_of(3), &mut dice);
        history.script.push(format!("seed {seed}"));
        for _ in 0..6 + dice.below(10) {
            history.step(&mut dice);
        }
        history.check(&mut dice, &mut tally);
    }
    let Tally { cases, commits, files, loose, torn, mixed, unheld, conflicts, taken_back } = tally;
    eprintln!(
        "{cases} cases, {commits} commits, {files} files, {loose} loose, {torn} turns cut, {mixed} mixed; \
         left out: {unheld} unheld, {conflicts} in conflict, {taken_back} taken back"
    );
}
