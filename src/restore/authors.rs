//! Attributes each current path to the agent, to the restore that is undone, or to another author, and
//! finds what that author changed afterwards.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    Restore,
    content::{Present, digest_now, entry_at},
};
use crate::{
    attribution::{self, AgentHistory, CurrentState, PathSide, PathState},
    error::{Error, Result},
    ledger,
    model::{By, Checkpoint, CheckpointId, Entry, RelPath, Skipped, Tree},
    plan::{Author, Change, SessionTag},
    project::Project,
    store::{ContentSource, with_stored_id},
};

/// Another session that made something.
pub(crate) struct OtherSession {
    /// Its agent, and what the user asked for.
    pub(crate) by: By,
    /// Its first call in one line.
    pub(crate) summary: Option<String>,
}

/// The other sessions that made something, as far as checkpoints tell of them. None are looked for if none
/// of the authors is one.
pub(super) fn sessions(
    project: &Project,
    mut authors: impl Iterator<Item = Author>,
) -> Result<BTreeMap<SessionTag, OtherSession>> {
    if !authors.any(|author| matches!(author, Author::Session(_))) {
        return Ok(BTreeMap::new());
    }
    let all = project.store.list()?;
    let of = |by: &By| attribution::tag(&attribution::session_name(by.agent, &by.session));
    let used = ledger::uses(&project.state).into_iter().map(|used| (used.by, used.summary));
    let held = all.into_iter().filter_map(|it| Some((it.cause.by?, it.cause.summary)));
    Ok(used.chain(held).map(|(by, summary)| (of(&by), OtherSession { by, summary })).collect())
}

/// The author of the current state of each path.
#[derive(Default)]
pub(super) struct Authorship {
    pub(super) authors: BTreeMap<RelPath, Author>,
    /// New files that the turn or restore to undo has made, and that another author changed afterwards.
    pub(super) edited: BTreeSet<RelPath>,
    /// Paths that another author changed and that the turn or restore to undo never touched.
    pub(super) others: BTreeSet<RelPath>,
}

impl Authorship {
    fn of(
        authors: BTreeMap<RelPath, Author>,
        changes: &[Change],
        was_made: impl Fn(&Change) -> bool,
    ) -> Self {
        let is_new_file = |change: &&Change| {
            change.before.is_none() && change.after.is_some_and(|now| !now.is_directory())
        };
        let is_theirs =
            |change: &&Change| authors.get(&change.path).is_some_and(|author| author.is_another());
        let theirs = changes.iter().filter(is_new_file).filter(is_theirs);
        let edited = theirs.filter(|it| was_made(it)).map(|change| change.path.clone()).collect();
        Self { authors, edited, others: BTreeSet::new() }
    }
}

/// What the log says of the time since a checkpoint.
pub(super) fn agent_history(
    checkpoint: &Checkpoint,
    lines: &[attribution::LogLine],
    side: PathSide,
) -> AgentHistory {
    let by = checkpoint.cause.by.as_ref();
    let name = by.map(|by| attribution::session_name(by.agent, &by.session));
    AgentHistory::since(checkpoint, name.as_deref(), lines, side)
}

/// What the log of the agents says of the paths that changed.
pub(super) struct Authors {
    pub(super) knowledge: AgentHistory,
    likely: BTreeMap<RelPath, Entry>,
    /// The trees of [`AgentHistory::checkpoints_of_open_calls`] that can be read.
    looks: BTreeMap<CheckpointId, Tree>,
    side: PathSide,
}

impl Authors {
    pub(super) fn of(
        restore: Restore<'_>,
        changes: &[Change],
        then: &Tree,
        side: PathSide,
    ) -> Result<Self> {
        let Restore { project, checkpoint, .. } = restore;
        let lines = attribution::read(&project.place());
        let knowledge = agent_history(checkpoint, &lines, side);
        let mut likely = BTreeMap::new();
        if let Some(tree) = knowledge.likely.and_then(|id| project.store.tree(id).ok()) {
            let store = project.store.as_ref();
            for change in changes {
                let path = &change.path;
                let before = entry_at(project, then, path, side)?;
                // What cannot be read is no likelihood.
                let there = entry_at(project, &tree, path, side).ok().flatten();
                let there =
                    there.map(|it| with_stored_id(store, path, it, before, ContentSource::Saved));
                // What had not changed by then is not the agent's.
                if there != before {
                    likely.extend(there.map(|there| (path.clone(), there)));
                }
            }
        }
        let mut looks = BTreeMap::new();
        for id in knowledge.checkpoints_of_open_calls() {
            looks.extend(project.store.tree(id).ok().map(|tree| (id, tree)));
        }
        Ok(Self { knowledge, likely, looks, side })
    }

    /// Who made the changes. An undo of the turn drops those that are not its own to take back.
    pub(super) fn attribute(
        &self,
        restore: Restore<'_>,
        changes: &mut Vec<Change>,
        unscanned: &BTreeSet<RelPath>,
        skipped: &[Skipped],
    ) -> Authorship {
        let mut authorship = self.by_path(restore.project, changes, unscanned, skipped);
        if restore.request.verb == "undo" {
            self.drop_restored(restore.project, &mut authorship, changes);
            authorship.others = self.others(&authorship.authors);
        }
        authorship
    }

    /// Drops changes that a restore to an older checkpoint made: to undo this turn must not undo another undo.
    /// Keeps changes by a restore to this turn's own checkpoint, because it may have restored only a part.
    fn drop_restored(
        &self,
        project: &Project,
        authorship: &mut Authorship,
        changes: &mut Vec<Change>,
    ) {
        let authors = &mut authorship.authors;
        changes.retain(|change| {
            let path = &change.path;
            let is_restored = match change.after {
                Some(_) => {
                    let is_part = || {
                        self.knowledge.was_put_back_by_restore(path, &self.present(project, change))
                    };
                    authors.get(path) == Some(&Author::Restore) && !is_part()
                }
                None => self.knowledge.was_removed_by_restore(path),
            };
            if is_restored {
                authors.remove(path);
            }
            !is_restored
        });
    }

    /// What another author changed and the agent of the turn was never seen to touch.
    fn others(&self, authors: &BTreeMap<RelPath, Author>) -> BTreeSet<RelPath> {
        let is_others = |(path, author): &(&RelPath, &Author)| {
            author.is_another() && !self.knowledge.agent_touched(path)
        };
        authors.iter().filter(is_others).map(|(path, _)| path.clone()).collect()
    }

    /// What is there now at a path that changed.
    pub(super) fn present<'a>(&'a self, project: &'a Project, change: &'a Change) -> Present<'a> {
        let Self { side, looks, .. } = self;
        let (path, now) = (&change.path, change.after);
        let likely = self.likely.get(path).copied();
        Present { project, path, side: *side, now, likely, looks }
    }

    fn by_path(
        &self,
        project: &Project,
        changes: &[Change],
        unscanned: &BTreeSet<RelPath>,
        skipped: &[Skipped],
    ) -> Authorship {
        let (there, gone): (Vec<_>, Vec<_>) =
            changes.iter().partition(|change| change.after.is_some());
        let authors = there.into_iter().map(|change| {
            let path = &change.path;
            let author = self.knowledge.author(path, &self.present(project, change));
            // After a command the tree is looked at, and what is ignored is not in it.
            let is_blind = author == Author::Other && unscanned.contains(path);
            (path.clone(), if is_blind { Author::Unknown } else { author })
        });
        // What cannot be looked at is still the agent's if it made something there last.
        let unseen = skipped.iter().filter_map(|it| RelPath::from_bytes(&it.path).ok());
        let made = unseen.filter(|path| self.knowledge.was_made_by_agent(path));
        let gone = gone.into_iter().filter_map(|change| {
            let author = self.knowledge.removed_by(&change.path, &self.present(project, change))?;
            Some((change.path.clone(), author)).filter(|_| !unscanned.contains(&change.path))
        });
        let authors = authors.chain(made.map(|path| (path, Author::Agent))).chain(gone).collect();
        Authorship::of(authors, changes, |change| {
            self.knowledge.agent_left_something_else(&change.path, &self.present(project, change))
        })
    }
}

/// What a restore went to; `None` if the checkpoint was pruned meanwhile.
pub(super) fn target_tree(project: &Project, of: CheckpointId) -> Result<Option<Tree>> {
    match project.tree_by_id(of) {
        Err(Error::NoSuchCheckpoint { .. }) => Ok(None),
        // On any other error, what the restore made is unknown. An undo that then changed nothing would look
        // like a success.
        tree => tree.map(Some),
    }
}

/// Whether what is here is what a restore left: also nothing, where it removed something.
fn is_same(restored: Option<&Entry>, here: Option<&Entry>) -> bool {
    match (restored, here) {
        (Some(restored), Some(here)) => {
            restored.kind == here.kind && (here.is_directory() || restored.content == here.content)
        }
        (restored, here) => restored.is_none() && here.is_none(),
    }
}

/// When a restore is taken back: what it left is its own, the rest is another author's.
pub(super) fn attribute_restore(
    restore: Restore<'_>,
    of: CheckpointId,
    side: PathSide,
    changes: &[Change],
    skipped: &[Skipped],
) -> Result<Authorship> {
    let project = restore.project;
    let Some(past) = PastRestore::of(project, of, restore.checkpoint.id, side)? else {
        return Ok(Authorship::default());
    };
    let (mut authors, mut made, mut others) = (BTreeMap::new(), BTreeSet::new(), BTreeSet::new());
    for change in changes {
        let path = &change.path;
        let then = entry_at(project, &past.target, path, side)?;
        let is_its = past.has_left(change, then);
        authors.insert(path.clone(), if is_its { Author::Restore } else { Author::Other });
        // Where the restore changed nothing, the path does not belong to it.
        if !is_its && is_same(then.as_ref(), change.before.as_ref()) {
            others.insert(path.clone());
        }
        if then.is_some() {
            made.insert(path.clone());
        }
    }
    if side == PathSide::Root {
        for path in skipped.iter().filter_map(|it| RelPath::from_bytes(&it.path).ok()) {
            if entry_at(project, &past.target, &path, side)?.is_some() {
                authors.insert(path, Author::Restore);
            }
        }
    }
    let of_files = Authorship::of(authors, changes, |change| made.contains(&change.path));
    Ok(Authorship { others, ..of_files })
}

/// What is known of a restore that is taken back.
struct PastRestore<'a> {
    project: &'a Project,
    side: PathSide,
    /// What it went to.
    target: Tree,
    /// The digests of what it merged in the root.
    merged: BTreeMap<RelPath, String>,
    /// What it put back outside the root for a step, where calls before the step had left something else than the
    /// target has.
    put_back: BTreeMap<RelPath, Option<PathState>>,
}

impl<'a> PastRestore<'a> {
    /// `held` is its before-restore checkpoint. `None` if its target was pruned meanwhile.
    fn of(
        project: &'a Project,
        target: CheckpointId,
        held: CheckpointId,
        side: PathSide,
    ) -> Result<Option<Self>> {
        let Some(target) = target_tree(project, target)? else { return Ok(None) };
        let state = project.place();
        let (merged, put_back) = match side {
            PathSide::Root => {
                (attribution::merged(&state, held).into_iter().collect(), BTreeMap::new())
            }
            PathSide::Outside => (BTreeMap::new(), attribution::put_back_outside(&state, held)),
        };
        Ok(Some(Self { project, side, target, merged, put_back }))
    }

    /// Whether it left what is at a path now. `then` is what its target has there.
    fn has_left(&self, change: &Change, then: Option<Entry>) -> bool {
        match self.side {
            PathSide::Root => {
                let store = self.project.store.as_ref();
                let name =
                    |now| with_stored_id(store, &change.path, now, then, ContentSource::Disk);
                is_same(then.as_ref(), change.after.map(name).as_ref())
                    || self.has_merged(change)
                    || self.is_parent_of_merged(change)
            }
            PathSide::Outside => {
                is_same(then.as_ref(), change.after.as_ref())
                    || self.has_put_back(change)
                    || self.is_parent_of_outside(change)
            }
        }
    }

    fn has_merged(&self, Change { path, after, .. }: &Change) -> bool {
        let digest = || digest_now(self.project, path, (*after)?.kind);
        self.merged.get(path).is_some_and(|merged| digest().is_some_and(|now| now == *merged))
    }

    fn has_put_back(&self, Change { path, after, .. }: &Change) -> bool {
        match (self.put_back.get(path), after) {
            (Some(Some(state)), Some(now)) => {
                let (project, side, looks) = (self.project, self.side, &BTreeMap::new());
                Present { project, path, side, now: Some(*now), likely: None, looks }.is(state)
            }
            (Some(state), now) => state.is_none() && now.is_none(),
            (None, _) => false,
        }
    }

    /// Whether a directory is one that it made for what it merged, or put in the place of that.
    fn is_parent_of_merged(&self, change: &Change) -> bool {
        let mut below = self.merged.range(change.path.clone()..);
        change.after.is_some_and(Entry::is_directory)
            && below.next().is_some_and(|(at, _)| at.is_within(&change.path))
    }

    /// Whether a directory outside is one that it had to make for what it put back in it.
    fn is_parent_of_outside(&self, change: &Change) -> bool {
        let (place, outside) = (change.path.at_top(), &self.target.outside);
        let mut below = outside.range(place.clone()..);
        change.after.is_some_and(Entry::is_directory)
            && !outside.contains_key(&place)
            && below.next().is_some_and(|(at, _)| at.starts_with(&place))
    }
}
