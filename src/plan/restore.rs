//! What a restore does to each path, decided from what was, what is, and what the user said.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    diff::{Change, is_same},
    left_out::ByPath,
    picked::Picked,
    restore_plan::{Action, Author, KeepReason, Merged, PlanStep, RestorePlan, keep_executable},
};
use crate::model::{CheckpointId, Entry, Kind, RelPath, SkipReason, Skipped, is_gits_own};

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
    /// Also take back the changes that an interrupted call may have made.
    pub unclear: bool,
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
    /// What another author changed, and what is undone did not.
    pub others: &'a BTreeSet<RelPath>,
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
    let left_out_then = ByPath::of(past.skipped_then);
    let left_out_now = ByPath::of(past.skipped_now);
    let planner = Planner { options, picked, past, left_out_then, left_out_now };
    let plan = |change| planner.step(change);
    let mut steps: Vec<PlanStep> = picked_changes.into_iter().map(plan).collect();
    let in_the_way = in_the_way_of(&steps, others);
    if !in_the_way.is_empty() {
        steps.extend(in_the_way.into_iter().map(plan));
        steps.sort_by(|a, b| a.path.cmp(&b.path));
    }
    planner.add_unseen(&mut steps);
    planner.add_repositories(&mut steps);
    keep_executable(&mut steps);
    let is_wanted = |skipped: &&Skipped| {
        let path = RelPath::from_bytes(&skipped.path);
        path.map_or(*picked == Picked::All, |path| picked.has(&path))
    };
    let not_covered = past.skipped_then.iter().filter(is_wanted).cloned().collect();
    let is_merged = |step: &&PlanStep| step.action == Action::Merge;
    let merges = steps
        .iter()
        .filter(is_merged)
        .filter_map(|step| Some((step.path.clone(), past.merges.get(&step.path)?.clone())));
    let merges = merges.collect();
    RestorePlan { not_covered, merges, ..RestorePlan::of(of, steps) }
}

/// Those of `others`, which the user did not pick, that stand where a directory was in which something
/// comes back.
fn in_the_way_of(steps: &[PlanStep], others: Vec<Change>) -> Vec<Change> {
    if others.is_empty() {
        return others;
    }
    let come_back = steps.iter().filter(|step| step.comes_back());
    let needed: BTreeSet<RelPath> = come_back.flat_map(|step| step.path.above()).collect();
    let stands_there = |change: &Change| {
        needed.contains(&change.path)
            && change.before.is_some_and(Entry::is_directory)
            && change.after.is_some_and(|now| !now.is_directory())
    };
    others.into_iter().filter(stands_there).collect()
}

/// Whether a path lies in a directory that something else is to replace.
fn is_in_replaced(steps: &[PlanStep], path: &RelPath) -> bool {
    path.above().any(|above| {
        let at = steps.binary_search_by(|step| step.path.cmp(&above));
        let step = at.ok().map(|at| &steps[at]).filter(|step| step.action == Action::Restore);
        step.is_some_and(|step| {
            step.now.is_some_and(Entry::is_directory) && !step.then.is_some_and(Entry::is_directory)
        })
    })
}

/// What the steps of a plan are decided by.
struct Planner<'a> {
    options: Options,
    picked: &'a Picked,
    past: &'a Past<'a>,
    left_out_then: ByPath<'a>,
    left_out_now: ByPath<'a>,
}

impl Planner<'_> {
    fn author(&self, path: &RelPath) -> Author {
        match self.past.authors.get(path).copied().unwrap_or_default() {
            Author::Unclear if self.options.unclear => Author::Agent,
            author => author,
        }
    }

    fn step(&self, change: Change) -> PlanStep {
        let action = self.action(&change);
        let Change { path, before: then, after: now } = change;
        let author = self.author(&path);
        PlanStep { path, action, then, now, author }
    }

    fn action(&self, Change { path, before, after }: &Change) -> Action {
        let Self { options, past, .. } = self;
        if is_gits_own(path.as_bytes()) {
            return Action::Keep(KeepReason::GitPrivate);
        }
        if let Some(kept) = past.kept.get(path) {
            return Action::Keep(*kept);
        }
        let merges = options.merge && past.merges.contains_key(path);
        match (before, after) {
            (Some(_), Some(_)) => match self.author(path) {
                Author::Agent | Author::Restore | Author::Unknown => Action::Restore,
                Author::Session(_) | Author::Other | Author::Unclear if options.force => {
                    Action::Restore
                }
                Author::Session(_) | Author::Other if merges => Action::Merge,
                Author::Session(_) | Author::Other if past.others.contains(path) => {
                    Action::Keep(KeepReason::OfOthers)
                }
                Author::Session(_) | Author::Other | Author::Unclear => {
                    Action::Keep(KeepReason::Edited)
                }
            },
            (Some(_), None) => match self.left_out_now.over(path) {
                // The present scan saw that something is there, and could not look into it.
                Some(reason) => Action::Keep(KeepReason::Unseen(reason)),
                // It was renamed since, or by what is taken back.
                None if merges => Action::Merge,
                // What the checkpoint itself left out is known from a later call, which held it.
                None => Action::Recreate,
            },
            (None, _) => self.action_on_new(path),
        }
    }

    fn action_on_new(&self, path: &RelPath) -> Action {
        let Self { options, past, .. } = self;
        let (author, was_edited) = (self.author(path), past.edited.contains(path));
        match self.left_out_then.over(path).or_else(|| self.left_out_now.over(path)) {
            Some(reason) => Action::Keep(KeepReason::NotCovered(reason)),
            None if options.keep_new => Action::Keep(KeepReason::New),
            None if is_undone(author) => Action::Remove,
            // A call that was cut off may have made it, or a person.
            None if author == Author::Unclear && options.force => Action::Remove,
            None if author == Author::Unclear && !options.exact => Action::Keep(KeepReason::Edited),
            // A build or a server makes such files all the time, and a person may want them.
            None if past.ignored.contains(path) && !was_edited => Action::Keep(KeepReason::Ignored),
            None if options.exact => Action::Remove,
            None if was_edited && options.force => Action::Remove,
            None if was_edited => Action::Keep(KeepReason::Edited),
            None => Action::Keep(KeepReason::New),
        }
    }

    /// What was made since and would go, but cannot be looked at, is in neither tree. It stays, and
    /// has to be named: else it would pass for gone. The same for what lies in a directory that was
    /// something else then.
    fn add_unseen(&self, steps: &mut Vec<PlanStep>) {
        let Self { options, picked, .. } = self;
        let mut unseen = Vec::new();
        for Skipped { path, reason, .. } in self.past.skipped_now {
            let Ok(path) = RelPath::from_bytes(path) else { continue };
            let author = self.author(&path);
            let goes = !options.keep_new && (options.exact || is_undone(author));
            let goes = goes || is_in_replaced(steps, &path);
            let is_step = steps.binary_search_by(|step| step.path.cmp(&path)).is_ok();
            let is_known = is_step
                || *reason == SkipReason::KeptChanging
                || self.left_out_then.over(&path).is_some();
            if goes && !is_known && picked.has(&path) {
                let action = Action::Keep(KeepReason::Unseen(*reason));
                unseen.push(PlanStep { path, action, then: None, now: None, author });
            }
        }
        if !unseen.is_empty() {
            steps.append(&mut unseen);
            steps.sort_by(|a, b| a.path.cmp(&b.path));
            steps.dedup_by(|a, b| a.path == b.path);
        }
    }

    /// A repository is in no tree. What it lies in stays with it, whatever the user said.
    fn add_repositories(&self, steps: &mut Vec<PlanStep>) {
        let is_left =
            |path: &RelPath| self.picked.has(path) && self.left_out_then.over(path).is_none();
        let left = self.past.repositories.iter().filter(|(path, _)| is_left(path));
        let left: Vec<_> = left.collect();
        let is_around = |dir: &RelPath| left.iter().any(|(path, _)| path.is_within(dir));
        for step in steps.iter_mut() {
            if step.action == Action::Keep(KeepReason::New) && is_around(&step.path) {
                step.action = Action::Keep(KeepReason::InTheWay);
            }
        }
        steps.extend(left.into_iter().map(|(path, kind)| PlanStep {
            path: path.clone(),
            action: Action::Keep(KeepReason::Repository),
            then: None,
            now: Some(Entry { kind: *kind, permissions: 0, content: None, device: 0 }),
            author: Author::Unknown,
        }));
        steps.sort_by(|a, b| a.path.cmp(&b.path));
    }
}

/// Whether a restore takes back what is theirs.
fn is_undone(author: Author) -> bool {
    match author {
        Author::Agent | Author::Restore => true,
        Author::Session(_) | Author::Other | Author::Unclear | Author::Unknown => false,
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
    let mut steps: Vec<PlanStep> = paths
        .into_iter()
        .filter(differs)
        .map(|Unsettled { path, to, from, now }| {
            let action = settle_one(to.as_ref(), from.as_ref(), now.as_ref());
            PlanStep { path, action, then: to, now, author: Author::Unknown }
        })
        .collect();
    steps.sort_by(|a, b| a.path.cmp(&b.path));
    keep_executable(&mut steps);
    RestorePlan::of(of, steps)
}

/// What happens to one path.
fn settle_one(to: Option<&Entry>, from: Option<&Entry>, now: Option<&Entry>) -> Action {
    let is_directory = now.is_some_and(|now| now.is_directory());
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
