//! What a restore does to each path, decided from what was, what is, and what the user said.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    diff::{Change, is_same},
    left_out::ByPath,
    picked::Picked,
};
use crate::model::{CheckpointId, Entry, Kind, RelPath, SkipReason, Skipped, Stamp, is_gits_own};

/// What the user said about a restore.
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Remove what was created since, also by others than the agent.
    pub exact: bool,
    /// Keep what was created since, even by the agent.
    pub keep_new: bool,
    /// Overwrite what another author changed since, and remove what they changed of the agent's.
    pub force: bool,
    /// Bring together what the agent did not do with what was there before it.
    pub merge: bool,
}

/// Which session made something: the beginning of its name in the log, or 0 if one of several did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct SessionTag(pub u64);

/// Who made what is at a path now?
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Author {
    /// The agent's.
    Agent,
    /// A restore put it there: the one that is being taken back, or one to before the checkpoint.
    Restore,
    /// Another session of an agent was seen to make it.
    Session(SessionTag),
    /// A person's, or that of a program of theirs.
    Other,
    /// The agent's or a person's: a call was cut off, or refused, and what it did was not seen.
    Unclear,
    /// It is not known.
    #[default]
    Unknown,
}

impl Author {
    /// Whether it is known that neither the agent nor a restore made it.
    pub fn is_another(self) -> bool {
        matches!(self, Self::Session(_) | Self::Other)
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
    /// It becomes what it was, with what another author changed since.
    Merge,
    /// It stays as it is.
    Keep(KeepReason),
}

/// Why something stays as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeepReason {
    /// It was created since, and the user did not say to remove it.
    New,
    /// Another author changed it after the agent: a conflict.
    Edited,
    /// Another author changed it, and nothing of the agent's is left in it.
    Merged,
    /// It was created since and is ignored, and nothing shows that the agent made it.
    Ignored,
    /// It is not in the checkpoint, which left it out.
    NotCovered(SkipReason),
    /// The system would not let us look at what is there now.
    Unseen(SkipReason),
    /// What the checkpoint has there is in the store no more.
    Missing,
    /// It lies in something that stays.
    InTheWay,
    /// It seems to be a file that the checkpoint left out, and that was moved since.
    Moved,
    /// It is a place of git's own.
    GitPrivate,
    /// It is a repository that was made since.
    Repository,
    /// It was changed while a restore lay interrupted.
    Changed,
    /// What came after the turn that is reverted changed the same lines, or all of it.
    BuiltOn,
    /// It was changed after the turn that is reverted, and what that turn left there is not held.
    AfterUnheld,
    /// It is not known what the turn that is reverted left there.
    AfterUnknown,
    /// The project and the fork that is brought back have both changed it.
    BothChanged,
    /// Whether it was changed before the step that is gone back to, or after it, is not known.
    BeforeUnknown,
    /// What was there before the step that is gone back to is not held.
    BeforeUnheld,
    /// The user chose other parts of the plan.
    NotChosen,
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
    /// Who made that.
    pub author: Author,
}

impl Step {
    /// Whether it changes the path.
    pub fn is_deed(&self) -> bool {
        !matches!(self.action, Action::Keep(_))
    }

    /// Whether the path stays because another author changed it, or put something into it.
    pub fn is_conflict(&self) -> bool {
        match self.action {
            Action::Keep(
                KeepReason::Edited
                | KeepReason::Changed
                | KeepReason::BuiltOn
                | KeepReason::BothChanged
                | KeepReason::AfterUnheld
                | KeepReason::AfterUnknown
                | KeepReason::BeforeUnknown
                | KeepReason::BeforeUnheld,
            ) => true,
            // Of what lies below, the directory says it.
            Action::Keep(KeepReason::InTheWay) => {
                self.then.zip(self.now).is_some_and(|(then, now)| then.kind != now.kind)
            }
            _ => false,
        }
    }

    /// Why what is there now cannot be looked at, if that is why it stays.
    pub fn unseen(&self) -> Option<SkipReason> {
        match self.action {
            Action::Keep(KeepReason::Unseen(reason)) => Some(reason),
            _ => None,
        }
    }
}

/// What happens outside the root, by the same rules as in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OutsidePlan {
    /// Every path that differs, as seen from the top of the file system, parents before what is in
    /// them.
    pub steps: Vec<Step>,
    /// What the system says is there now.
    pub seen: BTreeMap<RelPath, Stamp>,
}

impl OutsidePlan {
    /// The paths that would change.
    pub fn deeds(&self) -> impl Iterator<Item = &Step> {
        self.steps.iter().filter(|step| step.is_deed())
    }
}

/// What a restore would do. What is shown is this very value, and so is what is carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RestorePlan {
    /// The checkpoint.
    pub of: CheckpointId,
    /// Every path that differs, parents before what is in them.
    pub steps: Vec<Step>,
    /// What happens outside the root. Nothing does unless the user says so.
    pub outside: OutsidePlan,
    /// What the checkpoint did not cover, and what so stays as it is.
    pub not_covered: Vec<Skipped>,
    /// What is merged.
    pub merges: BTreeMap<RelPath, Merged>,
}

/// A file that has the changes of two authors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Merged {
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// Its permission bits.
    pub permissions: u32,
}

impl RestorePlan {
    /// The paths that would change.
    pub fn deeds(&self) -> impl Iterator<Item = &Step> {
        self.steps.iter().filter(|step| step.is_deed())
    }

    /// The paths that would change, as a list names them: without directories that come or go only
    /// with what is in them.
    pub fn listed(&self) -> impl Iterator<Item = &Step> {
        self.deeds().filter(|step| !self.is_implied(step))
    }

    /// Whether a directory comes or goes only with what is in it.
    pub fn is_implied(&self, step: &Step) -> bool {
        let is_directory = step.then.or(step.now).is_some_and(|it| it.kind == Kind::Directory);
        let is_bare = matches!(step.action, Action::Recreate | Action::Remove) && is_directory;
        let at = self.steps.partition_point(|other| other.path <= step.path);
        let next = self.steps.get(at);
        let is_in_it = |next: &Step| next.path.is_within(&step.path) && next.action == step.action;
        is_bare && next.is_some_and(is_in_it)
    }

    /// The paths that differ and stay.
    pub fn kept(&self) -> impl Iterator<Item = &Step> {
        self.steps.iter().filter(|step| !step.is_deed())
    }

    /// The paths that stay because another author changed them.
    pub fn conflicts(&self) -> impl Iterator<Item = &Step> {
        self.steps.iter().filter(|step| step.is_conflict())
    }

    /// The paths that would change and stay, because what is there now cannot be looked at.
    pub fn unseen(&self) -> impl Iterator<Item = (&Step, SkipReason)> {
        self.steps.iter().filter_map(|step| Some((step, step.unseen()?)))
    }

    /// The repositories that were made since, which stay.
    pub fn repositories_left(&self) -> impl Iterator<Item = &RelPath> {
        let is_left = |step: &&Step| step.action == Action::Keep(KeepReason::Repository);
        self.steps.iter().filter(is_left).map(|step| &step.path)
    }

    /// A step that cannot be carried out, because its path lies below one that does not end as a directory.
    pub fn misplaced(&self) -> Option<&Step> {
        misplaced(&self.steps).or_else(|| misplaced(&self.outside.steps))
    }

    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.deeds().next().is_none() && self.outside.deeds().next().is_none()
    }
}

/// What is known about the time between.
#[derive(Clone, Copy, Debug)]
pub struct Past<'a> {
    /// Who made what is there now. Unknown where it says nothing.
    pub authors: &'a BTreeMap<RelPath, Author>,
    /// What can be merged, and what comes of it.
    pub merges: &'a BTreeMap<RelPath, Merged>,
    /// What the agent made, and another author changed after it.
    pub edited: &'a BTreeSet<RelPath>,
    /// What is new since, and ignored now.
    pub ignored: &'a BTreeSet<RelPath>,
    /// What the checkpoint left out.
    pub skipped_then: &'a [Skipped],
    /// What cannot be looked into now.
    pub skipped_now: &'a [Skipped],
    /// Repositories that were made since and stay.
    pub repositories: &'a BTreeMap<RelPath, Kind>,
    /// What stays for a reason that is known already.
    pub kept: &'a BTreeMap<RelPath, KeepReason>,
}

/// Plans a restore: `changes` lead from the checkpoint to what is there now.
///
/// What the checkpoint left out, and what cannot be looked into now, is kept: neither says what was
/// there.
pub fn restore(
    of: CheckpointId,
    changes: Vec<Change>,
    options: Options,
    picked: &Picked,
    past: &Past<'_>,
) -> RestorePlan {
    let (picked_changes, others): (Vec<_>, Vec<_>) =
        changes.into_iter().partition(|change| picked.has(&change.path));
    let left_out =
        LeftOutSides { then: ByPath::of(past.skipped_then), now: ByPath::of(past.skipped_now) };
    let plan = |change| plan_change(change, options, past, &left_out);
    let mut steps: Vec<Step> = picked_changes.into_iter().map(plan).collect();
    let in_the_way = in_the_way_of(&steps, others);
    if !in_the_way.is_empty() {
        steps.extend(in_the_way.into_iter().map(plan));
        steps.sort_by(|a, b| a.path.cmp(&b.path));
    }
    add_unseen(&mut steps, options, picked, past, &left_out);
    add_repositories(&mut steps, picked, past, &left_out);
    keep_executable(&mut steps);
    let is_wanted = |skipped: &&Skipped| {
        let path = RelPath::from_bytes(&skipped.path);
        path.map_or(*picked == Picked::All, |path| picked.has(&path))
    };
    let not_covered = past.skipped_then.iter().filter(is_wanted).cloned().collect();
    let is_merged = |step: &&Step| step.action == Action::Merge;
    let merges = steps
        .iter()
        .filter(is_merged)
        .filter_map(|step| Some((step.path.clone(), past.merges.get(&step.path)?.clone())));
    let merges = merges.collect();
    RestorePlan { of, steps, outside: OutsidePlan::default(), not_covered, merges }
}

/// What the checkpoint left out, and what the present scan did.
struct LeftOutSides<'a> {
    then: ByPath<'a>,
    now: ByPath<'a>,
}

fn plan_change(
    change: Change,
    options: Options,
    past: &Past<'_>,
    left_out: &LeftOutSides<'_>,
) -> Step {
    let Change { path, before: then, after: now } = change;
    let known = PathFacts {
        author: past.authors.get(&path).copied().unwrap_or_default(),
        was_edited: past.edited.contains(&path),
        is_ignored: past.ignored.contains(&path),
        uncovered: left_out.then.over(&path),
        unseen: left_out.now.over(&path),
        merges: past.merges.contains_key(&path),
        kept: past.kept.get(&path).copied(),
    };
    let action = decide(&path, then.as_ref(), now.as_ref(), options, known);
    Step { path, action, then, now, author: known.author }
}

/// Those of `others`, which the user did not pick, that stand where a directory was in which something
/// comes back.
fn in_the_way_of(steps: &[Step], others: Vec<Change>) -> Vec<Change> {
    if others.is_empty() {
        return others;
    }
    let comes_back = |step: &&Step| matches!(step.action, Action::Restore | Action::Recreate);
    let needed: BTreeSet<RelPath> =
        steps.iter().filter(comes_back).flat_map(|step| above(&step.path)).collect();
    let is_directory = |entry: &Entry| entry.kind == Kind::Directory;
    let stands_there = |change: &Change| {
        needed.contains(&change.path)
            && change.before.as_ref().is_some_and(is_directory)
            && change.after.as_ref().is_some_and(|now| !is_directory(now))
    };
    others.into_iter().filter(stands_there).collect()
}

/// What was made since and would go, but cannot be looked at, is in neither tree. It stays, and
/// has to be named: else it would pass for gone. The same for what lies in a directory that was
/// something else then.
fn add_unseen(
    steps: &mut Vec<Step>,
    options: Options,
    picked: &Picked,
    past: &Past<'_>,
    left_out: &LeftOutSides<'_>,
) {
    let mut unseen = Vec::new();
    for Skipped { path, reason, .. } in past.skipped_now {
        let Ok(path) = RelPath::from_bytes(path) else { continue };
        let author = past.authors.get(&path).copied().unwrap_or_default();
        let goes = !options.keep_new && (options.exact || is_undone(author));
        let goes = goes || is_in_replaced(steps, &path);
        let is_known = steps.binary_search_by(|step| step.path.cmp(&path)).is_ok();
        let is_left = left_out.then.over(&path).is_some();
        if goes && !is_known && !is_left && *reason != SkipReason::KeptChanging && picked.has(&path)
        {
            let action = Action::Keep(KeepReason::Unseen(*reason));
            unseen.push(Step { path, action, then: None, now: None, author });
        }
    }
    if !unseen.is_empty() {
        steps.append(&mut unseen);
        steps.sort_by(|a, b| a.path.cmp(&b.path));
        steps.dedup_by(|a, b| a.path == b.path);
    }
}

/// Whether a path lies in a directory that something else is to replace.
fn is_in_replaced(steps: &[Step], path: &RelPath) -> bool {
    let is_directory = |entry: Option<Entry>| entry.is_some_and(|it| it.kind == Kind::Directory);
    std::iter::successors(path.parent(), RelPath::parent).any(|above| {
        let at = steps.binary_search_by(|step| step.path.cmp(&above));
        let step = at.ok().map(|at| &steps[at]).filter(|step| step.action == Action::Restore);
        step.is_some_and(|step| is_directory(step.now) && !is_directory(step.then))
    })
}

/// A repository is in no tree. What it lies in stays with it.
fn add_repositories(
    steps: &mut Vec<Step>,
    picked: &Picked,
    past: &Past<'_>,
    left_out: &LeftOutSides<'_>,
) {
    let is_made_since = |path: &RelPath| left_out.then.over(path).is_none();
    let left = past.repositories.iter().filter(|(path, _)| picked.has(path) && is_made_since(path));
    steps.extend(left.map(|(path, kind)| Step {
        path: path.clone(),
        action: Action::Keep(KeepReason::Repository),
        then: None,
        now: Some(Entry { kind: *kind, permissions: 0, content: None, device: 0 }),
        author: Author::Unknown,
    }));
    steps.sort_by(|a, b| a.path.cmp(&b.path));
}

/// What is known of a path besides what it was and is.
#[derive(Clone, Copy)]
struct PathFacts {
    author: Author,
    was_edited: bool,
    is_ignored: bool,
    uncovered: Option<SkipReason>,
    unseen: Option<SkipReason>,
    merges: bool,
    kept: Option<KeepReason>,
}

fn decide(
    path: &RelPath,
    then: Option<&Entry>,
    now: Option<&Entry>,
    options: Options,
    known: PathFacts,
) -> Action {
    if is_gits_own(path.as_bytes()) {
        return Action::Keep(KeepReason::GitPrivate);
    }
    if let Some(kept) = known.kept {
        return Action::Keep(kept);
    }
    match (then, now) {
        (Some(_), Some(_)) => match known.author {
            Author::Agent | Author::Restore | Author::Unknown => Action::Restore,
            Author::Session(_) | Author::Other | Author::Unclear if options.force => {
                Action::Restore
            }
            Author::Session(_) | Author::Other if options.merge && known.merges => Action::Merge,
            Author::Session(_) | Author::Other | Author::Unclear => {
                Action::Keep(KeepReason::Edited)
            }
        },
        (Some(_), None) => match known.unseen {
            // The present scan saw that something is there, and could not look into it.
            Some(reason) => Action::Keep(KeepReason::Unseen(reason)),
            // It was renamed since, or by what is taken back.
            None if options.merge && known.merges => Action::Merge,
            // What the checkpoint itself left out is known from a later call, which held it.
            None => Action::Recreate,
        },
        (None, _) => match known.uncovered.or(known.unseen) {
            Some(reason) => Action::Keep(KeepReason::NotCovered(reason)),
            None if options.keep_new => Action::Keep(KeepReason::New),
            None if is_undone(known.author) => Action::Remove,
            // A call that was cut off may have made it, or a person.
            None if known.author == Author::Unclear && options.force => Action::Remove,
            None if known.author == Author::Unclear && !options.exact => {
                Action::Keep(KeepReason::Edited)
            }
            // A build or a server makes such files all the time, and a person may want them.
            None if known.is_ignored && !known.was_edited => Action::Keep(KeepReason::Ignored),
            None if options.exact => Action::Remove,
            None if known.was_edited && options.force => Action::Remove,
            None if known.was_edited => Action::Keep(KeepReason::Edited),
            None => Action::Keep(KeepReason::New),
        },
    }
}

/// Whether a restore takes back what is theirs.
fn is_undone(author: Author) -> bool {
    match author {
        Author::Agent | Author::Restore => true,
        Author::Session(_) | Author::Other | Author::Unclear | Author::Unknown => false,
    }
}

/// Keeps what cannot be done because of other steps, so that all that is left of a plan can.
pub fn keep_executable(steps: &mut [Step]) {
    keep_parents(steps);
    keep_below_obstacles(steps);
}

/// What was in a directory cannot come back where something else stays in its place, or nothing.
fn keep_below_obstacles(steps: &mut [Step]) {
    let (mut kept_files, mut obstacles) = (BTreeSet::new(), BTreeSet::new());
    for step in steps {
        let is_below = |all: &BTreeSet<RelPath>| above(&step.path).any(|dir| all.contains(&dir));
        if is_below(&kept_files) || is_put(step) && is_below(&obstacles) {
            step.action = Action::Keep(KeepReason::InTheWay);
        }
        if !ends_as_directory(step) {
            obstacles.insert(step.path.clone());
            if !step.is_deed() && step.now.is_some() {
                kept_files.insert(step.path.clone());
            }
        }
    }
}

/// The first step that puts something below a path that does not end as a directory.
fn misplaced(steps: &[Step]) -> Option<&Step> {
    let obstacles: BTreeSet<&RelPath> =
        steps.iter().filter(|step| !ends_as_directory(step)).map(|step| &step.path).collect();
    let is_below = |step: &&Step| above(&step.path).any(|dir| obstacles.contains(&dir));
    steps.iter().filter(|step| is_put(step)).find(is_below)
}

fn above(path: &RelPath) -> impl Iterator<Item = RelPath> {
    std::iter::successors(path.parent(), RelPath::parent)
}

/// Whether a step puts something at its path.
fn is_put(step: &Step) -> bool {
    matches!(step.action, Action::Restore | Action::Recreate | Action::Merge)
}

/// Whether a directory is at the path of a step when it is done.
fn ends_as_directory(step: &Step) -> bool {
    let end = match step.action {
        Action::Restore | Action::Recreate => step.then,
        Action::Keep(_) => step.now,
        Action::Merge | Action::Remove => None,
    };
    end.is_some_and(|end| end.kind == Kind::Directory)
}

/// A directory stays if something in it stays, or is put there; and where a directory stays that was a file,
/// the file cannot come back.
pub fn keep_parents(steps: &mut [Step]) {
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
            Action::Remove if holds_kept => step.action = Action::Keep(KeepReason::InTheWay),
            Action::Restore if holds_kept && !becomes_directory => {
                step.action = Action::Keep(KeepReason::InTheWay);
            }
            Action::Restore
            | Action::Recreate
            | Action::Remove
            | Action::Merge
            | Action::Keep(_) => (),
        }
        if !step.is_deed() || is_put(step) {
            kept.insert(step.path.clone());
        }
    }
}

/// One path that an interrupted restore was to change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unsettled {
    /// Which path.
    pub path: RelPath,
    /// What it is to be.
    pub to: Option<Entry>,
    /// What it was to be, or was, otherwise.
    pub from: Option<Entry>,
    /// What is there now.
    pub now: Option<Entry>,
}

/// Plans to make every path what it is to be.
///
/// What is there now must be one end or the other of the restore, or nothing at all: both ends are
/// held. Anything else was put there since, is held nowhere, and stays.
pub fn settle(of: CheckpointId, paths: Vec<Unsettled>) -> RestorePlan {
    let differs = |path: &Unsettled| {
        // A directory made only to hold something is in neither tree.
        (path.to.is_some() || path.from.is_some()) && !is_same(path.to.as_ref(), path.now.as_ref())
    };
    let mut steps: Vec<Step> = paths
        .into_iter()
        .filter(differs)
        .map(|Unsettled { path, to, from, now }| {
            let action = settle_one(to.as_ref(), from.as_ref(), now.as_ref());
            Step { path, action, then: to, now, author: Author::Unknown }
        })
        .collect();
    steps.sort_by(|a, b| a.path.cmp(&b.path));
    keep_executable(&mut steps);
    let outside = OutsidePlan::default();
    RestorePlan { of, steps, outside, not_covered: Vec::new(), merges: BTreeMap::new() }
}

/// What happens to one path.
fn settle_one(to: Option<&Entry>, from: Option<&Entry>, now: Option<&Entry>) -> Action {
    let is_directory = now.is_some_and(|now| now.kind == Kind::Directory);
    match (to, now) {
        (Some(_), None) => Action::Recreate,
        (_, Some(_)) if !is_directory && !is_same(from, now) => Action::Keep(KeepReason::Changed),
        (Some(_), Some(_)) => Action::Restore,
        (None, _) => Action::Remove,
    }
}

#[cfg(test)]
#[path = "restore_tests.rs"]
mod tests;
