//! The plan of a restore: what happens to each path, and whether that can be done.

use std::collections::{BTreeMap, BTreeSet};

use crate::model::{CheckpointId, Entry, RelPath, SkipReason, Skipped, Stamp};

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
    /// Another author changed it, and what is undone did not.
    OfOthers,
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
    /// It seems to be what the turn that is reverted left, by another name.
    Renamed,
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
pub struct PlanStep {
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

impl PlanStep {
    /// Whether it changes the path.
    pub fn is_deed(&self) -> bool {
        !matches!(self.action, Action::Keep(_))
    }

    /// Whether it becomes what the checkpoint has there.
    pub fn comes_back(&self) -> bool {
        matches!(self.action, Action::Restore | Action::Recreate)
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
                | KeepReason::Renamed
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
    pub steps: Vec<PlanStep>,
    /// What the system says is there now.
    pub seen: BTreeMap<RelPath, Stamp>,
}

impl OutsidePlan {
    /// The paths that would change.
    pub fn deeds(&self) -> impl Iterator<Item = &PlanStep> {
        self.steps.iter().filter(|step| step.is_deed())
    }
}

/// What a restore would do. What is shown is this very value, and so is what is carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RestorePlan {
    /// The checkpoint.
    pub of: CheckpointId,
    /// Every path that differs, parents before what is in them.
    pub steps: Vec<PlanStep>,
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
    /// A plan of nothing but these steps.
    pub fn of(of: CheckpointId, steps: Vec<PlanStep>) -> Self {
        let (outside, not_covered, merges) = Default::default();
        Self { of, steps, outside, not_covered, merges }
    }

    /// The paths that would change.
    pub fn deeds(&self) -> impl Iterator<Item = &PlanStep> {
        self.steps.iter().filter(|step| step.is_deed())
    }

    /// The paths that would change, as a list names them: without directories that come or go only
    /// with what is in them.
    pub fn listed(&self) -> impl Iterator<Item = &PlanStep> {
        self.deeds().filter(|step| !self.is_implied(step))
    }

    /// Whether a directory comes or goes only with what is in it.
    pub fn is_implied(&self, step: &PlanStep) -> bool {
        let is_directory = step.then.or(step.now).is_some_and(Entry::is_directory);
        let is_bare = matches!(step.action, Action::Recreate | Action::Remove) && is_directory;
        let at = self.steps.partition_point(|other| other.path <= step.path);
        let next = self.steps.get(at);
        let is_in_it =
            |next: &PlanStep| next.path.is_within(&step.path) && next.action == step.action;
        is_bare && next.is_some_and(is_in_it)
    }

    /// The paths that differ and stay.
    pub fn kept(&self) -> impl Iterator<Item = &PlanStep> {
        self.steps.iter().filter(|step| !step.is_deed())
    }

    /// The paths that stay because another author changed them.
    pub fn conflicts(&self) -> impl Iterator<Item = &PlanStep> {
        self.steps.iter().filter(|step| step.is_conflict())
    }

    /// The repositories that were made since, which stay.
    pub fn repositories_left(&self) -> impl Iterator<Item = &RelPath> {
        let is_left = |step: &&PlanStep| step.action == Action::Keep(KeepReason::Repository);
        self.steps.iter().filter(is_left).map(|step| &step.path)
    }

    /// A step that cannot be carried out, because its path lies below one that does not end as a directory.
    pub fn misplaced(&self) -> Option<&PlanStep> {
        misplaced(&self.steps).or_else(|| misplaced(&self.outside.steps))
    }

    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.deeds().next().is_none() && self.outside.deeds().next().is_none()
    }
}

/// Keeps what cannot be done because of other steps, so that all that is left of a plan can.
pub fn keep_executable(steps: &mut [PlanStep]) {
    keep_parents(steps);
    keep_below_obstacles(steps);
}

/// What was in a directory cannot come back where something else stays in its place, or nothing.
fn keep_below_obstacles(steps: &mut [PlanStep]) {
    let (mut kept_files, mut obstacles) = (BTreeSet::new(), BTreeSet::new());
    for step in steps {
        let is_below = |all: &BTreeSet<RelPath>| step.path.above().any(|dir| all.contains(&dir));
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
pub(super) fn misplaced(steps: &[PlanStep]) -> Option<&PlanStep> {
    let obstacles: BTreeSet<&RelPath> =
        steps.iter().filter(|step| !ends_as_directory(step)).map(|step| &step.path).collect();
    let is_below = |step: &&PlanStep| step.path.above().any(|dir| obstacles.contains(&dir));
    steps.iter().filter(|step| is_put(step)).find(is_below)
}

/// Whether a step puts something at its path.
fn is_put(step: &PlanStep) -> bool {
    step.comes_back() || step.action == Action::Merge
}

/// Whether a directory is at the path of a step when it is done.
fn ends_as_directory(step: &PlanStep) -> bool {
    let end = match step.action {
        Action::Restore | Action::Recreate => step.then,
        Action::Keep(_) => step.now,
        Action::Merge | Action::Remove => None,
    };
    end.is_some_and(Entry::is_directory)
}

/// A directory stays if something in it stays, or is put there; and where a directory stays that was a file,
/// the file cannot come back.
pub fn keep_parents(steps: &mut [PlanStep]) {
    let mut kept: BTreeSet<RelPath> = BTreeSet::new();
    for step in steps.iter_mut().rev() {
        let is_directory = step.now.is_some_and(Entry::is_directory);
        let holds_kept = is_directory
            && kept
                .range(step.path.clone()..)
                .next()
                .is_some_and(|path| path.is_within(&step.path) && *path != step.path);
        let becomes_directory = step.then.is_some_and(Entry::is_directory);
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
