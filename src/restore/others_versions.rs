//! Other authors' work that only a later checkpoint holds.
//!
//! A restore goes back to the beginning of a turn. What the user wrote since, between two calls or two
//! turns, and a later call deleted or replaced, did not exist at the beginning: only a checkpoint in
//! between holds it. The restore brings back that version, unless it is told to overwrite the work of others.

use std::{
    cell::LazyCell,
    collections::{BTreeMap, BTreeSet},
};

use super::{
    Restore,
    authors::{Authors, Authorship},
    content::{CheckpointSide, digest_then},
};
use chrono::DateTime;

use crate::{
    attribution::{self, AgentHistory, PathSide},
    error::Result,
    fs::stat_path,
    ledger,
    model::{Checkpoint, CheckpointId, Entry, Reason, RelPath, Tree},
    plan::{Author, Change, RestorePlan},
    project::Project,
    store::{self, ContentSource},
};

/// The work of others that only later checkpoints hold, by path.
#[derive(Default)]
pub(super) struct OthersVersions {
    /// What the restore goes back to, with the checkpoint that holds it.
    pub(super) back_to: BTreeMap<RelPath, OthersVersion>,
    /// The SHA-256 of its content, in hex: as if it had been merged.
    pub(super) digests: BTreeMap<RelPath, String>,
    /// What the restore does not bring back, with the newest checkpoint that holds it.
    pub(super) left: BTreeMap<RelPath, CheckpointId>,
    /// Checkpoints that may hold more of it, and are damaged.
    pub(super) damaged: BTreeSet<CheckpointId>,
}

/// A version of a file that another author left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OthersVersion {
    /// A checkpoint that holds it.
    pub(crate) checkpoint: CheckpointId,
    /// Who left it, or may have.
    pub(crate) author: Author,
}

impl OthersVersions {
    /// Leaves out what the plan does not replace.
    pub(super) fn retain_in(&mut self, project: &Project, plan: &RestorePlan) {
        let deeds: BTreeSet<&RelPath> = plan.deeds().map(|step| &step.path).collect();
        self.back_to.retain(|path, _| deeds.contains(path));
        self.digests.retain(|path, _| deeds.contains(path));
        let is_gone = |path: &RelPath| stat_path(&project.root.join(path)).is_err();
        self.left.retain(|path, _| deeds.contains(path) || is_gone(path));
    }
}

/// Finds it, and makes `changes` lead from there.
pub(super) fn go_to(
    restore: Restore<'_>,
    changes: &mut Vec<Change>,
    (log, authorship): (&Authors, &Authorship),
    (then, now): (&Tree, &Tree),
) -> Result<OthersVersions> {
    let Restore { project, request, .. } = restore;
    let mut inner = OthersVersions::default();
    let goes = !request.options.force && !request.options.exact;
    let OthersWork { found, damaged } =
        OthersSearch { restore, changes, log, authorship, then, now }.run()?;
    inner.damaged = damaged;
    for (path, (version, entry)) in found {
        let step = version.checkpoint;
        let digest = digest_then(project, &entry).filter(|_| goes);
        let was_directory = || {
            let was = store::entry_at(project.store.as_ref(), then, &path)?;
            Ok::<_, crate::error::Error>(was.is_some_and(Entry::is_directory))
        };
        match digest {
            Some(digest) if !was_directory()? => {
                let tree = project.store.tree(step)?;
                lead_from(project, changes, (&tree, now), &path)?;
                inner.digests.insert(path.clone(), digest);
                inner.back_to.insert(path, version);
            }
            Some(_) | None => drop(inner.left.insert(path, step)),
        }
    }
    changes.retain(|change| !change.is_none());
    changes.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(inner)
}

/// Makes changes lead from what `tree` has at a path, and on the way there.
fn lead_from(
    project: &Project,
    changes: &mut Vec<Change>,
    (tree, now): (&Tree, &Tree),
    path: &RelPath,
) -> Result<()> {
    let there = store::entry_at(project.store.as_ref(), now, path)?;
    let is_directory = there.is_some_and(Entry::is_directory);
    if there.is_some() && !is_directory && changes.iter().all(|change| change.path != *path) {
        changes.push(Change { path: path.clone(), before: there, after: there });
    }
    for path in path.with_above() {
        let before = store::entry_at(project.store.as_ref(), tree, &path)?;
        match changes.iter_mut().find(|change| change.path == path) {
            Some(change) => change.before = before,
            None if stat_path(&project.root.join(&path)).is_err() => {
                changes.push(Change { path, before, after: None });
            }
            None => (),
        }
    }
    Ok(())
}

/// The work of others that later checkpoints hold.
#[derive(Default)]
struct OthersWork {
    /// By path, with the newest checkpoint that holds it.
    found: BTreeMap<RelPath, (OthersVersion, Entry)>,
    /// Checkpoints that may hold more of it, and are damaged.
    damaged: BTreeSet<CheckpointId>,
}

/// The checkpoints after one, newest first. What a restore found may be anything.
fn since(project: &Project, of: CheckpointId) -> Result<Vec<Checkpoint>> {
    let mut all = project.store.list()?;
    ledger::adopt(&mut all, &ledger::uses(&project.state));
    let Some(first) = all.iter().find(|it| it.id == of).cloned() else { return Ok(Vec::new()) };
    all.retain(|it| it.sequence > first.sequence);
    all.retain(|it| it.cause.reason != Reason::BeforeRestore);
    Ok(all)
}

/// What is compared to find the work of others in later checkpoints.
struct OthersSearch<'a> {
    restore: Restore<'a>,
    /// What differs between `then` and `now`, in the order of the paths.
    changes: &'a [Change],
    log: &'a Authors,
    authorship: &'a Authorship,
    /// The beginning of the turn.
    then: &'a Tree,
    now: &'a Tree,
}

/// How a later checkpoint differs from what was there at the beginning and from what is there now, by path.
struct StepDifferences {
    tree: Tree,
    /// Whether all of the tree could be read.
    is_whole: bool,
    /// From the checkpoint to now.
    since: BTreeMap<RelPath, Change>,
    /// From the beginning to the checkpoint.
    made: BTreeMap<RelPath, Change>,
}

impl StepDifferences {
    /// The same of an older checkpoint, with the changes from it to this one; `None` if contents of two stores
    /// would have to be compared.
    fn at_older(mut self, tree: Tree, delta: Vec<Change>) -> Option<Self> {
        for Change { path, before, after } in delta {
            let begin = self.made.get(&path).map_or(after, |made| made.before);
            let end = self.since.get(&path).map_or(after, |since| since.after);
            if !(is_comparable(before, begin) && is_comparable(before, end)) {
                return None;
            }
            put(&mut self.made, Change { path: path.clone(), before: begin, after: before });
            put(&mut self.since, Change { path, before, after: end });
        }
        Some(Self { tree, ..self })
    }
}

fn is_comparable(one: Option<Entry>, other: Option<Entry>) -> bool {
    let contents = one.and_then(|it| it.content).zip(other.and_then(|it| it.content));
    contents.is_none_or(|(one, other)| one.is_comparable_to(&other))
}

fn put(changes: &mut BTreeMap<RelPath, Change>, change: Change) {
    if change.is_none() {
        changes.remove(&change.path);
    } else {
        changes.insert(change.path.clone(), change);
    }
}

fn by_path(changes: Vec<Change>) -> BTreeMap<RelPath, Change> {
    changes.into_iter().map(|change| (change.path.clone(), change)).collect()
}

impl OthersSearch<'_> {
    fn run(&self) -> Result<OthersWork> {
        let Restore { project, checkpoint, request } = self.restore;
        let mut held = OthersWork::default();
        let Some(by) = &checkpoint.cause.by else { return Ok(held) };
        let name = attribution::session_name(by.agent, &by.session);
        let lines = LazyCell::new(|| attribution::read(&project.place()));
        // Between a checkpoint and a step that is told from it, all is as the step found it.
        let from = request.step().map(|step| DateTime::from_timestamp_nanos(step.at));
        let is_later = |it: &Checkpoint| from.is_none_or(|from| it.taken_at > from);
        let mut newer: Option<StepDifferences> = None;
        for step in since(project, checkpoint.id)?.into_iter().filter(is_later) {
            let known_then = || {
                let before = attribution::before(&lines, &step);
                AgentHistory::since(checkpoint, Some(&name), &before, PathSide::Root)
            };
            newer = self.differences(step.id, newer, &mut held.damaged);
            if let Some(differences) = &newer {
                self.add_step((&step, differences), &LazyCell::new(known_then), &mut held);
            }
        }
        // A directory comes with what is in it.
        let full: BTreeSet<RelPath> = held.found.keys().flat_map(RelPath::above).collect();
        held.found.retain(|path, (_, entry)| !entry.is_directory() || !full.contains(path));
        Ok(held)
    }

    /// How a checkpoint differs from both ends: from how the next newer one does, if that can be told, since
    /// most of a tree is the same in both.
    fn differences(
        &self,
        step: CheckpointId,
        newer: Option<StepDifferences>,
        damaged: &mut BTreeSet<CheckpointId>,
    ) -> Option<StepDifferences> {
        let project = self.restore.project;
        let store = project.store.as_ref();
        let differences = |tree: &Tree| {
            let since = store::changes(store, tree, self.now, ContentSource::Disk)?;
            let made = store::changes(store, self.then, tree, ContentSource::Saved)?;
            let (since, made) = (by_path(since), by_path(made));
            Ok(StepDifferences { tree: tree.clone(), is_whole: true, since, made })
        };
        let older = newer.filter(|newer| newer.is_whole).and_then(|newer| {
            let tree = store.tree(step).ok()?;
            let delta = store::changes(store, &tree, &newer.tree, ContentSource::Saved).ok()?;
            newer.at_older(tree, delta)
        });
        if older.is_some() {
            return older;
        }
        let looked = project.as_far_as_it_can_be_read(step, differences);
        if !looked.is_whole {
            damaged.insert(step);
        }
        looked.found.map(|found| StepDifferences { is_whole: looked.is_whole, ..found })
    }

    /// Adds what only this checkpoint holds of the work of others. `known_then` is what was known of the authors
    /// when it was taken.
    fn add_step(
        &self,
        (step, differences): (&Checkpoint, &StepDifferences),
        known_then: &LazyCell<AgentHistory, impl FnOnce() -> AgentHistory>,
        held: &mut OthersWork,
    ) {
        let project = self.restore.project;
        let store = project.store.as_ref();
        let likely = LazyCell::new(|| store.tree(known_then.likely?).ok());
        for Change { path, before, after } in differences.made.values() {
            let Some(entry) = *after else { continue };
            let is_there = || before.is_some() || stat_path(&project.root.join(path)).is_ok();
            let is_old_directory = entry.is_directory() && is_there();
            let is_wanted = self.restore.request.picked.has(path) && !held.found.contains_key(path);
            let is_lost = || differences.since.contains_key(path) && self.is_replaced(path, step);
            if is_wanted && !is_old_directory && is_lost() {
                let likely =
                    likely.as_ref().and_then(|tree| store::entry_at(store, tree, path).ok());
                let likely = likely.flatten();
                let there = CheckpointSide { project, entry, likely };
                let author = known_then.author(path, &there);
                // It may have read what a call left after it began.
                let may_be_late = step.cause.reason == Reason::Net
                    && self.log.knowledge.agent_left_this(path, &there);
                if is_others(author) && !may_be_late {
                    let version = OthersVersion { checkpoint: step.id, author };
                    held.found.insert(path.clone(), (version, entry));
                }
            }
        }
    }

    /// Whether the agent removed or replaced what a step holds at a path. What an undo has put back since
    /// is older than the step.
    fn is_replaced(&self, path: &RelPath, step: &Checkpoint) -> bool {
        let Self { restore: Restore { project, request, .. }, log, .. } = self;
        let time = step.taken_ns();
        let was_before = |here| log.knowledge.was_before(path, here, time);
        let change = self.changes.binary_search_by(|change| change.path.cmp(path));
        let here = change.ok().map(|at| log.present(project, &self.changes[at]));
        match (stat_path(&project.root.join(path)), here) {
            (Err(_), _) => log.knowledge.agent_removed(path) && !was_before(None),
            // It is as it was at the beginning: that may be what the agent made of it.
            (Ok(_), None) => log.knowledge.agent_left_last(path),
            (Ok(_), Some(here)) => {
                let author = self.authorship.authors.get(path).copied().unwrap_or_default();
                (request.options.force || !is_others(author)) && !was_before(Some(&here))
            }
        }
    }
}

/// Whether a change is, or may be, the work of another author.
fn is_others(author: Author) -> bool {
    author.is_another() || author == Author::Unclear
}
