//! Whose is what is there now? Decided from the log alone. Pure.

use std::collections::{BTreeMap, HashMap};

use super::{Line, State, What, path_of};
use crate::{
    model::{Checkpoint, CheckpointId, RelPath},
    plan::Author,
};

/// What the log knows of the time since a checkpoint.
#[derive(Debug, Default)]
pub struct Knowledge {
    /// Whether the agent did anything that was noticed.
    active: bool,
    /// What the agent left last, by path, and how many lines had been written by then.
    left: BTreeMap<RelPath, Vec<Noted>>,
    /// Calls whose end nobody saw.
    open: HashMap<String, Open>,
    /// Those of them that had ended when a later call began.
    ended: Vec<Open>,
    /// The newest checkpoint that was taken when calls before it had ended unseen.
    pub likely: Option<CheckpointId>,
}

#[derive(Debug)]
struct Open {
    /// The checkpoint that covers it.
    of: String,
    /// What it can change; `None` for anything.
    paths: Option<Vec<RelPath>>,
}

#[derive(Debug)]
struct Noted {
    ours: bool,
    state: Option<State>,
}

/// What is at a path now, as far as it can be compared.
pub trait Here {
    /// Whether it is just this.
    fn is(&self, state: &State) -> bool;

    /// Whether it is what the checkpoint [`Knowledge::likely`] has there.
    fn is_likely(&self) -> bool;
}

impl Knowledge {
    /// Reads the log for what happened since `checkpoint`. The agent is the session the checkpoint
    /// was taken for; where there is none, every session. `name` is that session's in the log.
    pub fn since(checkpoint: &Checkpoint, name: Option<&str>, lines: &[Line]) -> Self {
        let id = checkpoint.id.to_string();
        let taken_at = checkpoint.taken_at.timestamp_nanos_opt().unwrap_or(0);
        let is_since = |line: &Line| match &line.what {
            What::Began { of, .. } if *of == id => true,
            What::Began { .. }
            | What::Left { .. }
            | What::Done { .. }
            | What::Head { .. }
            | What::Void { .. }
            | What::Merged { .. } => line.at >= taken_at,
        };
        let begin = lines.iter().position(is_since).unwrap_or(lines.len());
        let mut known = Self::default();
        for line in &lines[begin..] {
            known.add(line, name.is_none_or(|name| name == line.by), &id);
        }
        known
    }

    fn add(&mut self, line: &Line, ours: bool, since: &str) {
        match &line.what {
            What::Left { path, state } => {
                if let Some(path) = path_of(path) {
                    self.left.entry(path).or_default().push(Noted { ours, state: state.clone() });
                }
            }
            What::Began { of, call, paths } if ours => {
                self.active = true;
                let (same, ended): (HashMap<_, _>, HashMap<_, _>) =
                    self.open.drain().partition(|(_, open)| open.of == *of);
                self.open = same;
                if !ended.is_empty() && of != since {
                    // What was there when this one began is what those before it had left, as far
                    // as they could.
                    self.likely = CheckpointId::parse(of);
                    self.ended.extend(ended.into_values());
                }
                let paths = paths
                    .as_ref()
                    .map(|paths| paths.iter().filter_map(|path| path_of(path)).collect());
                self.open.insert(call.clone(), Open { of: of.clone(), paths });
            }
            What::Done { call } if ours => drop(self.open.remove(call)),
            What::Began { .. }
            | What::Done { .. }
            | What::Head { .. }
            | What::Void { .. }
            | What::Merged { .. } => (),
        }
    }

    /// Whose is what is at `path` now?
    pub fn author(&self, path: &RelPath, here: &dyn Here) -> Author {
        let noted = self.left.get(path).map(Vec::as_slice).unwrap_or_default();
        let is_here = |noted: &&Noted| noted.state.as_ref().is_some_and(|state| here.is(state));
        // Who had it first made it; others only saw it.
        match noted.iter().find(is_here) {
            Some(first) if first.ours => Author::Agent,
            Some(_) => Author::SomebodyElse,
            None if !self.active || self.may_have_changed(path) => Author::Unknown,
            None if self.likely.is_some() && reaches(&self.ended, path) && here.is_likely() => {
                Author::Agent
            }
            None => Author::SomebodyElse,
        }
    }

    /// Whether something that the agent made was at `path`, or in it, when it was last seen.
    pub fn was_made_by_agent(&self, path: &RelPath) -> bool {
        let below = self.left.range(path.clone()..).take_while(|(at, _)| at.is_within(path));
        let mut last = below.filter_map(|(_, noted)| noted.last());
        last.any(|noted| noted.ours && noted.state.is_some())
    }

    /// Whether the agent left something at just this `path`, or saw it.
    pub fn was_left(&self, path: &RelPath) -> bool {
        let noted = self.left.get(path).map(Vec::as_slice).unwrap_or_default();
        noted.iter().any(|noted| noted.ours && noted.state.is_some())
    }

    /// The digests of what the agent left at `path`, the newest first.
    pub fn bases<'a>(&'a self, path: &RelPath) -> impl Iterator<Item = &'a str> {
        let noted = self.left.get(path).map(Vec::as_slice).unwrap_or_default();
        let ours = noted.iter().rev().filter(|noted| noted.ours);
        ours.filter_map(|noted| noted.state.as_ref()?.sha.as_deref())
    }

    fn may_have_changed(&self, path: &RelPath) -> bool {
        reaches(self.open.values(), path)
    }
}

/// Whether one of these calls can change what is at `path`.
fn reaches<'o>(open: impl IntoIterator<Item = &'o Open>, path: &RelPath) -> bool {
    open.into_iter().any(|open| match &open.paths {
        None => true,
        Some(paths) => paths.iter().any(|open| path.is_within(open) || open.is_within(path)),
    })
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;

    use super::*;
    use crate::model::Cause;

    struct Is(&'static str);

    impl Here for Is {
        fn is(&self, state: &State) -> bool {
            state.sha.as_deref() == Some(self.0)
        }

        fn is_likely(&self) -> bool {
            self.0 == "likely"
        }
    }

    fn checkpoint() -> Checkpoint {
        Checkpoint {
            id: CheckpointId::from_bits(1),
            sequence: 1,
            taken_at: DateTime::from_timestamp_nanos(100),
            cause: Cause::asked(None),
            top: None,
            files: 0,
            partial: false,
            skipped: Vec::new(),
            outside: Vec::new(),
            head: None,
            staged: None,
        }
    }

    fn began(by: &str, call: &str, of: u64, paths: Option<&[&str]>) -> Line {
        let paths = paths.map(|paths| paths.iter().map(|&path| path.to_owned()).collect());
        let of = CheckpointId::from_bits(of).to_string();
        Line { at: 200, by: by.to_owned(), what: What::Began { of, call: call.to_owned(), paths } }
    }

    fn left(by: &str, path: &str, sha: &str) -> Line {
        let sha = Some(sha.to_owned());
        let state = Some(State { kind: 0o100_000, permissions: 0o644, id: None, sha });
        Line { at: 200, by: by.to_owned(), what: What::Left { path: path.to_owned(), state } }
    }

    fn done(by: &str, call: &str) -> Line {
        Line { at: 200, by: by.to_owned(), what: What::Done { call: call.to_owned() } }
    }

    #[test]
    fn whose_it_is() {
        use Author::{Agent, SomebodyElse, Unknown};
        let edit = |by| vec![began(by, "1", 1, Some(&["a"])), left(by, "a", "x"), done(by, "1")];
        let mut two = edit("me");
        two.extend([began("you", "2", 1, None), left("you", "b", "y"), done("you", "2")]);
        two.extend([began("me", "3", 1, None), left("me", "b", "y"), done("me", "3")]);
        let shell = vec![began("me", "1", 1, None)];
        let later = vec![began("me", "1", 1, None), began("me", "2", 2, None), done("me", "2")];
        let covered = vec![began("me", "1", 2, None), began("me", "2", 2, Some(&["a"]))];
        let cases: [(&str, &[Line], &str, &'static str, Author); 11] = [
            ("nothing is known", &[], "a", "x", Unknown),
            ("the agent's, untouched", &edit("me"), "a", "x", Agent),
            ("the agent's, edited since", &edit("me"), "a", "z", SomebodyElse),
            ("the agent never touched it", &edit("me"), "b", "z", SomebodyElse),
            ("another session's", &two, "b", "y", SomebodyElse),
            ("a call that nobody saw end", &shell, "b", "z", Unknown),
            ("an edit that nobody saw end", &edit("me")[..1], "a", "z", Unknown),
            ("another path of such an edit", &edit("me")[..1], "b", "z", SomebodyElse),
            ("seen at the next call", &later, "a", "likely", Agent),
            ("the next call took no checkpoint", &covered, "b", "z", Unknown),
            ("changed after the next call", &later, "a", "z", SomebodyElse),
        ];
        for (case, lines, path, sha, expected) in cases {
            let path = RelPath::from_bytes(path.as_bytes()).unwrap();
            let known = Knowledge::since(&checkpoint(), Some("me"), lines);
            assert_eq!(known.author(&path, &Is(sha)), expected, "{case}");
        }
    }

    #[test]
    fn what_came_before_the_checkpoint_says_nothing() {
        let mut lines = vec![began("me", "1", 7, None)];
        lines[0].at = 99;
        let known = Knowledge::since(&checkpoint(), Some("me"), &lines);
        let path = RelPath::from_bytes(b"a").unwrap();
        assert_eq!(known.author(&path, &Is("x")), Author::Unknown);
    }
}
