//! Attributes each current path to the agent, to the restore that is undone, or to another author, and
//! finds what that author changed afterwards.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    Restore,
    content::entry_at,
    content::{Present, digest_now},
};
use crate::{
    attribution::{self, AgentHistory, CurrentState, PathSide},
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
    /// The trees of [`AgentHistory::looks`] that can be read.
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
        let lines = attribution::read(&project.state.root(&project.root));
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
pub(super) fn restored(project: &Project, of: CheckpointId) -> Result<Option<Tree>> {
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
    let Restore { project, checkpoint, .. } = restore;
    let Some(restored) = restored(project, of)? else { return Ok(Authorship::default()) };
    let merged: BTreeMap<_, _> =
        attribution::merged(&project.state.root(&project.root), checkpoint.id)
            .into_iter()
            .collect();
    // Before a step, its calls had left something else there than the checkpoint has.
    let back = match side {
        PathSide::Root => BTreeMap::new(),
        PathSide::Outside => {
            attribution::put_back_outside(&project.state.root(&project.root), checkpoint.id)
        }
    };
    let looks = BTreeMap::new();
    let (mut authors, mut made, mut others) = (BTreeMap::new(), BTreeSet::new(), BTreeSet::new());
    for change in changes {
        let (path, here) = (&change.path, change.after);
        let then = entry_at(project, &restored, path, side)?;
        let here = here.map(|here| match side {
            PathSide::Root => {
                with_stored_id(project.store.as_ref(), path, here, then, ContentSource::Disk)
            }
            PathSide::Outside => here,
        });
        let is_merged = || {
            let digest = || digest_now(project, path, here?.kind);
            merged.get(path).is_some_and(|merged| digest().is_some_and(|now| now == *merged))
        };
        let is_back = || match (back.get(path), here) {
            (Some(Some(state)), now @ Some(_)) => {
                Present { project, path, side, now, likely: None, looks: &looks }.is(state)
            }
            (Some(state), here) => state.is_none() && here.is_none(),
            (None, _) => false,
        };
        let is_ours = is_same(then.as_ref(), here.as_ref())
            || is_back()
            || side == PathSide::Root && (is_merged() || is_on_the_way_to(&merged, change))
            || side == PathSide::Outside && is_on_the_way(&restored, change);
        let author = if is_ours { Author::Restore } else { Author::Other };
        // Where the restore changed nothing, the path does not belong to it.
        others.extend(
            (!is_ours && is_same(then.as_ref(), change.before.as_ref())).then(|| path.clone()),
        );
        authors.insert(path.clone(), author);
        made.extend(then.map(|_| path.clone()));
    }
    if side == PathSide::Root {
        for path in skipped.iter().filter_map(|it| RelPath::from_bytes(&it.path).ok()) {
            if entry_at(project, &restored, &path, side)?.is_some() {
                authors.insert(path, Author::Restore);
            }
        }
    }
    let of_restore = Authorship::of(authors, changes, |change| made.contains(&change.path));
    Ok(Authorship { others, ..of_restore })
}

/// Whether `change` is a directory that a restore created: for a merged path below it, or as a merged path itself.
fn is_on_the_way_to(merged: &BTreeMap<RelPath, String>, change: &Change) -> bool {
    let mut below = merged.range(change.path.clone()..);
    change.after.is_some_and(Entry::is_directory)
        && below.next().is_some_and(|(at, _)| at.is_within(&change.path))
}

/// Whether a restore had to make a directory outside for what it put back in it.
fn is_on_the_way(restored: &Tree, change: &Change) -> bool {
    let place = change.path.at_top();
    let mut below = restored.outside.range(place.clone()..);
    change.after.is_some_and(Entry::is_directory)
        && !restored.outside.contains_key(&place)
        && below.next().is_some_and(|(at, _)| at.starts_with(&place))
}
