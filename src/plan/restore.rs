//! What a restore does to each path, decided from what was, what is, and what the user said.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
};

use super::diff::Change;
use crate::model::{CheckpointId, Entry, Kind, RelPath, SkipReason, Skipped, Stamp};

/// What the user said about a restore.
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Remove what was created since, whoever did it.
    pub exact: bool,
    /// Keep what was created since, even by the agent.
    pub keep_new: bool,
    /// Overwrite what somebody else changed since.
    pub force: bool,
    /// Bring together what the agent did not do with what was there before it.
    pub merge: bool,
}

/// Whose is what is at a path now?
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Author {
    /// The agent's, or that of the restore that is being taken back.
    Agent,
    /// A person's, or another session's.
    SomebodyElse,
    /// Nobody knows.
    #[default]
    Unknown,
}

/// The part of a root a restore is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Picked {
    /// Everything.
    All,
    /// These files and directories, with what is in them.
    Paths(Vec<Pick>),
}

/// A path, or a pattern with `*`, `?` or `[…]` in it. A `*` stays within a name; `**` does not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pick(RelPath);

impl Pick {
    /// Takes a path as the user wrote it. If one is there by that very name, it is meant as well.
    pub fn of(path: RelPath) -> Self {
        Self(path)
    }

    fn has(&self, path: &RelPath) -> bool {
        use gix::glob::{wildmatch, wildmatch::Mode};
        if path.is_within(&self.0) {
            return true;
        }
        let pattern = self.0.as_bytes();
        if !pattern.iter().any(|byte| matches!(byte, b'*' | b'?' | b'[')) {
            return false;
        }
        let fits = |path: &RelPath| {
            wildmatch(pattern.into(), path.as_bytes().into(), Mode::NO_MATCH_SLASH_LITERAL)
        };
        let above = std::iter::successors(Some(path.clone()), RelPath::parent);
        above.into_iter().any(|path| fits(&path))
    }
}

impl Picked {
    /// Whether `path` is part of it.
    pub fn has(&self, path: &RelPath) -> bool {
        match self {
            Self::All => true,
            Self::Paths(picks) => picks.iter().any(|pick| pick.has(path)),
        }
    }
}

/// What happens to one path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// It was changed, and becomes what it was.
    Restore,
    /// It was deleted, and comes back.
    Recreate,
    /// It was created since, and goes.
    Remove,
    /// It becomes what it was, with what somebody else changed since.
    Merge,
    /// It stays as it is.
    Keep(Kept),
}

/// Why something stays as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    /// It was created since, and nobody said to remove it.
    New,
    /// Somebody else changed it after the agent: a conflict.
    Edited,
    /// It was ignored then, and so is nobody's to remove.
    Ignored,
    /// It is not in the checkpoint, which left it out.
    NotCovered(SkipReason),
    /// The system would not let us look at what is there now.
    Unseen(SkipReason),
    /// It lies in something that stays.
    InTheWay,
    /// It is a place of git's own.
    GitPrivate,
    /// Somebody changed it while a restore lay interrupted.
    Changed,
}

/// One path of a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// Which path.
    pub path: RelPath,
    /// What happens to it.
    pub action: Action,
    /// What the checkpoint has there.
    pub then: Option<Entry>,
    /// What is there now.
    pub now: Option<Entry>,
    /// Whose that is.
    pub author: Author,
}

/// A path outside the root that a checkpoint holds and that is not as it was. Nothing outside is
/// ever removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutsideStep {
    /// Which path. Absolute.
    pub path: PathBuf,
    /// What the checkpoint has there.
    pub then: Entry,
    /// What the system says is there now.
    pub seen: Option<Stamp>,
}

/// What a restore would do. What is shown is this very value, and so is what is carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RestorePlan {
    /// The checkpoint.
    pub of: CheckpointId,
    /// Every path that differs, parents before what is in them.
    pub steps: Vec<Step>,
    /// What differs outside the root. Nothing happens to it unless the user says so.
    pub outside: Vec<OutsideStep>,
    /// What the checkpoint did not cover, and what so stays as it is. Only what matters.
    pub left: Vec<Skipped>,
    /// The bytes of what is merged.
    pub merges: BTreeMap<RelPath, Vec<u8>>,
}

impl RestorePlan {
    /// The paths that would change.
    pub fn deeds(&self) -> impl Iterator<Item = &Step> {
        self.steps.iter().filter(|step| !matches!(step.action, Action::Keep(_)))
    }

    /// The paths that differ and stay.
    pub fn kept(&self) -> impl Iterator<Item = &Step> {
        self.steps.iter().filter(|step| matches!(step.action, Action::Keep(_)))
    }

    /// The paths that stay because somebody else changed them.
    pub fn conflicts(&self) -> impl Iterator<Item = &Step> {
        let is_conflict =
            |step: &&Step| matches!(step.action, Action::Keep(Kept::Edited | Kept::Changed));
        self.steps.iter().filter(is_conflict)
    }

    /// The paths of the checkpoint that stay because what is there now cannot be looked at.
    pub fn unseen(&self) -> impl Iterator<Item = (&Step, SkipReason)> {
        self.steps.iter().filter_map(|step| match step.action {
            Action::Keep(Kept::Unseen(reason)) => Some((step, reason)),
            _ => None,
        })
    }

    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.deeds().next().is_none() && self.outside.is_empty()
    }
}

/// What is known about the time between.
#[derive(Clone, Copy, Debug)]
pub struct Past<'a> {
    /// Whose is what is there now. Unknown where it says nothing.
    pub authors: &'a BTreeMap<RelPath, Author>,
    /// What can be merged, and what comes of it.
    pub merges: &'a BTreeMap<RelPath, Vec<u8>>,
    /// What was ignored then.
    pub ignored: &'a BTreeSet<RelPath>,
    /// What the checkpoint left out.
    pub skipped_then: &'a [Skipped],
    /// What cannot be looked into now.
    pub skipped_now: &'a [Skipped],
}

/// Plans a restore: `changes` lead from the checkpoint to what is there now.
///
/// `skipped_then` is what the checkpoint left out, `skipped_now` what the present scan did: of
/// neither can we say what it was, so both are left alone.
pub fn restore(
    of: CheckpointId,
    changes: Vec<Change>,
    options: Options,
    picked: &Picked,
    past: &Past<'_>,
) -> RestorePlan {
    let among = |all: &[Skipped], path: &RelPath| {
        let counts = |skipped: &&Skipped| skipped.reason != SkipReason::KeptChanging;
        let mut all = all.iter().filter(counts);
        all.find(|skipped| is_within(path, &skipped.path)).map(|skipped| skipped.reason)
    };
    let picked_changes = changes.into_iter().filter(|change| picked.has(&change.path));
    let mut steps: Vec<Step> = picked_changes
        .map(|Change { path, before: then, after: now }| {
            let known = Known {
                author: past.authors.get(&path).copied().unwrap_or_default(),
                was_ignored: past.ignored.contains(&path),
                uncovered: among(past.skipped_then, &path),
                unseen: among(past.skipped_now, &path),
                merges: past.merges.contains_key(&path),
            };
            let action = decide(&path, then.as_ref(), now.as_ref(), options, known);
            Step { path, action, then, now, author: known.author }
        })
        .collect();
    remove_emptied(&mut steps);
    keep_parents(&mut steps);
    keep_below_files(&mut steps);
    let matters = |skipped: &&Skipped| skipped.reason.matters();
    let left = past.skipped_then.iter().filter(matters).cloned().collect();
    let is_merged = |step: &&Step| step.action == Action::Merge;
    let merges = steps
        .iter()
        .filter(is_merged)
        .filter_map(|step| Some((step.path.clone(), past.merges.get(&step.path)?.clone())));
    let merges = merges.collect();
    RestorePlan { of, steps, outside: Vec::new(), left, merges }
}

/// What is known of a path besides what it was and is.
#[derive(Clone, Copy)]
struct Known {
    author: Author,
    was_ignored: bool,
    uncovered: Option<SkipReason>,
    unseen: Option<SkipReason>,
    merges: bool,
}

fn decide(
    path: &RelPath,
    then: Option<&Entry>,
    now: Option<&Entry>,
    options: Options,
    known: Known,
) -> Action {
    if path.names().any(|name| name == b".git") {
        return Action::Keep(Kept::GitPrivate);
    }
    match (then, now) {
        (Some(_), Some(_)) => match known.author {
            Author::Agent | Author::Unknown => Action::Restore,
            Author::SomebodyElse if options.force => Action::Restore,
            Author::SomebodyElse if options.merge && known.merges => Action::Merge,
            Author::SomebodyElse => Action::Keep(Kept::Edited),
        },
        (Some(_), None) => match (known.unseen, known.uncovered) {
            // The present scan saw that something is there, and could not look into it.
            (Some(reason), _) => Action::Keep(Kept::Unseen(reason)),
            (None, Some(reason)) => Action::Keep(Kept::NotCovered(reason)),
            (None, None) => Action::Recreate,
        },
        (None, _) => match known.uncovered.or(known.unseen) {
            Some(reason) => Action::Keep(Kept::NotCovered(reason)),
            None if known.was_ignored => Action::Keep(Kept::Ignored),
            None if options.keep_new => Action::Keep(Kept::New),
            None if options.exact || known.author == Author::Agent => Action::Remove,
            None => Action::Keep(Kept::New),
        },
    }
}

/// A new directory goes with the last of what was in it: an edit does not say that it made one.
fn remove_emptied(steps: &mut [Step]) {
    for at in (0..steps.len()).rev() {
        let step = &steps[at];
        let is_directory = step.now.is_some_and(|now| now.kind == Kind::Directory);
        if !is_directory || step.action != Action::Keep(Kept::New) {
            continue;
        }
        let below = steps[at + 1..].iter().take_while(|below| below.path.is_within(&step.path));
        let mut actions = below.map(|below| below.action).peekable();
        if actions.peek().is_some() && actions.all(|action| action == Action::Remove) {
            steps[at].action = Action::Remove;
        }
    }
}

/// What was in a directory cannot come back where something else stays in its place.
fn keep_below_files(steps: &mut [Step]) {
    let stays = |step: &Step| {
        let is_directory = step.now.is_none_or(|now| now.kind == Kind::Directory);
        matches!(step.action, Action::Keep(_)) && !is_directory
    };
    let mut in_the_way: BTreeSet<RelPath> = BTreeSet::new();
    for step in steps {
        let mut above = step.path.parent();
        while let Some(dir) = above {
            if in_the_way.contains(&dir) {
                step.action = Action::Keep(Kept::InTheWay);
            }
            above = dir.parent();
        }
        if stays(step) {
            in_the_way.insert(step.path.clone());
        }
    }
}

/// A directory stays if something in it stays; and where a directory stays that was a file, the
/// file cannot come back.
pub(super) fn keep_parents(steps: &mut [Step]) {
    let mut kept: BTreeSet<RelPath> = BTreeSet::new();
    for step in steps.iter_mut().rev() {
        let is_directory = step.now.is_some_and(|now| now.kind == Kind::Directory);
        let holds_kept = is_directory
            && kept
                .range(step.path.clone()..)
                .next()
                .is_some_and(|path| path.is_within(&step.path) && *path != step.path);
        let becomes_directory = step.then.is_some_and(|then| then.kind == Kind::Directory);
        match step.action {
            Action::Remove if holds_kept => step.action = Action::Keep(Kept::InTheWay),
            Action::Restore if holds_kept && !becomes_directory => {
                step.action = Action::Keep(Kept::InTheWay);
            }
            Action::Restore
            | Action::Recreate
            | Action::Remove
            | Action::Merge
            | Action::Keep(_) => (),
        }
        if matches!(step.action, Action::Keep(_)) {
            kept.insert(step.path.clone());
        }
    }
}

/// Whether a path is `dir`, or lies below it.
pub fn is_within(path: &RelPath, dir: &[u8]) -> bool {
    path.as_bytes().strip_prefix(dir).is_some_and(|rest| matches!(rest, [] | [b'/', ..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> RelPath {
        RelPath::from_bytes(text.as_bytes()).unwrap()
    }

    fn file(id: u8, permissions: u32) -> Entry {
        let id = crate::model::ContentId::new(&[id; 20]);
        let content = Some(crate::model::Content { id, place: crate::model::Place::Store });
        Entry { kind: Kind::File, permissions, content, device: 0 }
    }

    const DIRECTORY: Entry =
        Entry { kind: Kind::Directory, permissions: 0o755, content: None, device: 0 };

    #[test]
    fn patterns_pick_files_and_what_is_in_directories() {
        let has = |pick: &str, at: &str| Picked::Paths(vec![Pick::of(path(pick))]).has(&path(at));
        assert!(has("src", "src/a/b.rs") && has("src/a", "src/a") && !has("src", "srcs"));
        assert!(has("src/*.rs", "src/a.rs") && !has("src/*.rs", "src/a/b.rs"));
        assert!(has("src/**/*.rs", "src/a/b.rs") && has("s*", "src/a/b.rs"));
        assert!(has("a[1]", "a[1]") && has("a[1]", "a1") && !has("a[1]", "a2"));
    }

    /// One row of the table in the design: what was, what is, whose that is, what was said.
    fn action(
        then: Option<Entry>,
        now: Option<Entry>,
        author: Author,
        said: &str,
        past: &str,
    ) -> Action {
        let options = Options {
            exact: said == "exact",
            keep_new: said == "keep-new",
            force: said == "force",
            merge: said == "merge",
        };
        let at = path("a");
        let skipped = [Skipped { path: b"a".to_vec(), reason: SkipReason::TooLarge, size: 9 }];
        let none: [Skipped; 0] = [];
        let set = |is: bool| -> BTreeSet<RelPath> { is.then(|| at.clone()).into_iter().collect() };
        let merges: BTreeMap<_, _> =
            (past == "merges").then(|| (at.clone(), b"x".to_vec())).into_iter().collect();
        let known = Past {
            authors: &BTreeMap::from([(at.clone(), author)]),
            merges: &merges,
            ignored: &set(past == "ignored"),
            skipped_then: if past == "not covered" { &skipped } else { &none },
            skipped_now: if past == "unseen" { &skipped } else { &none },
        };
        let changes = vec![Change { path: at, before: then, after: now }];
        let plan = restore(CheckpointId::from_bits(1), changes, options, &Picked::All, &known);
        plan.steps[0].action
    }

    #[test]
    fn every_row_of_the_table() {
        use Action::{Keep, Merge, Recreate, Remove, Restore};
        use Author::{Agent, SomebodyElse, Unknown};
        let (old, new) = (Some(file(1, 0o644)), Some(file(2, 0o644)));
        let rows = [
            (old, new, Agent, "", "", Restore),
            (old, new, Unknown, "", "", Restore),
            (old, new, SomebodyElse, "", "", Keep(Kept::Edited)),
            (old, new, SomebodyElse, "force", "", Restore),
            (old, new, SomebodyElse, "merge", "merges", Merge),
            (old, new, SomebodyElse, "merge", "", Keep(Kept::Edited)),
            (old, new, SomebodyElse, "exact", "", Keep(Kept::Edited)),
            (None, new, Agent, "", "", Remove),
            (None, new, Agent, "keep-new", "", Keep(Kept::New)),
            (None, new, SomebodyElse, "", "", Keep(Kept::New)),
            (None, new, Unknown, "", "", Keep(Kept::New)),
            (None, new, SomebodyElse, "exact", "", Remove),
            (None, new, Agent, "exact", "ignored", Keep(Kept::Ignored)),
            (
                None,
                new,
                Agent,
                "exact",
                "not covered",
                Keep(Kept::NotCovered(SkipReason::TooLarge)),
            ),
            (old, None, Unknown, "", "", Recreate),
            (old, None, SomebodyElse, "", "", Recreate),
            (old, None, Unknown, "", "unseen", Keep(Kept::Unseen(SkipReason::TooLarge))),
            (Some(DIRECTORY), new, Agent, "", "", Restore),
            (old, Some(DIRECTORY), Agent, "", "", Restore),
            (None, Some(DIRECTORY), Agent, "", "", Remove),
            (old, Some(file(1, 0o755)), Agent, "", "", Restore),
        ];
        for (then, now, author, said, past, expected) in rows {
            let found = action(then, now, author, said, past);
            assert_eq!(found, expected, "{then:?} {now:?} {author:?} {said:?} {past:?}");
        }
    }

    #[test]
    fn a_directory_goes_only_with_all_that_is_in_it() {
        let plan = |other: Author| {
            let change = |at: &str, after| Change { path: path(at), before: None, after };
            let changes = vec![
                change("d", Some(DIRECTORY)),
                change("d/a", Some(file(1, 0o644))),
                change("d/b", Some(file(2, 0o644))),
            ];
            let past = Past {
                authors: &BTreeMap::from([(path("d/a"), Author::Agent), (path("d/b"), other)]),
                merges: &BTreeMap::new(),
                ignored: &BTreeSet::new(),
                skipped_then: &[],
                skipped_now: &[],
            };
            let id = CheckpointId::from_bits(1);
            let plan = restore(id, changes, Options::default(), &Picked::All, &past);
            plan.steps.into_iter().map(|step| step.action).collect::<Vec<_>>()
        };
        let (gone, kept) = (Action::Remove, Action::Keep(Kept::New));
        assert_eq!(plan(Author::Agent), [gone, gone, gone], "an edit does not say it made one");
        assert_eq!(plan(Author::SomebodyElse), [kept, gone, kept]);
    }

    #[test]
    fn what_stays_in_a_directorys_place_keeps_it_away() {
        let changes = vec![
            Change { path: path("d"), before: Some(DIRECTORY), after: Some(file(1, 0o644)) },
            Change { path: path("d/a"), before: Some(file(2, 0o644)), after: None },
        ];
        let past = Past {
            authors: &BTreeMap::from([(path("d"), Author::SomebodyElse)]),
            merges: &BTreeMap::new(),
            ignored: &BTreeSet::new(),
            skipped_then: &[],
            skipped_now: &[],
        };
        let id = CheckpointId::from_bits(1);
        let plan = restore(id, changes, Options::default(), &Picked::All, &past);
        assert_eq!(plan.steps[1].action, Action::Keep(Kept::InTheWay));
    }
}
