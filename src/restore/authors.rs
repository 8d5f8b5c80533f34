//! Whose is what is there now: the agent's, or that of the restore that is taken back, or somebody
//! else's. And what of it somebody else changed after them.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    Order,
    content::{Present, bytes_now},
    interrupted,
};
use crate::{
    error::{Error, Result},
    left,
    model::{Checkpoint, CheckpointId, Entry, Kind, RelPath, Skipped, Tree},
    plan::{self, Author, Change},
    project::Desk,
    store::{self, Source, named_as},
};

/// Whose is what is at each path.
#[derive(Default)]
pub(super) struct Whose {
    pub(super) authors: BTreeMap<RelPath, Author>,
    /// What was made since and then changed by somebody else.
    pub(super) edited: BTreeSet<RelPath>,
}

impl Whose {
    fn of(
        authors: BTreeMap<RelPath, Author>,
        changes: &[Change],
        was_made: impl Fn(&RelPath) -> bool,
    ) -> Self {
        let is_new_file = |change: &&Change| {
            change.before.is_none() && change.after.is_some_and(|now| now.kind != Kind::Directory)
        };
        let new = changes.iter().filter(is_new_file).map(|change| &change.path);
        let theirs = new.filter(|path| authors.get(*path) == Some(&Author::SomebodyElse));
        let edited = theirs.filter(|path| was_made(path)).cloned().collect();
        Self { authors, edited }
    }
}

/// What the log of the agents says of the paths that changed.
pub(super) struct Authors {
    pub(super) knowledge: left::Knowledge,
    likely: BTreeMap<RelPath, Entry>,
}

impl Authors {
    pub(super) fn of(
        desk: &Desk,
        checkpoint: &Checkpoint,
        order: &Order,
        changes: &[Change],
        then: &Tree,
    ) -> Result<Self> {
        let by = checkpoint.cause.by.as_ref();
        let name = by.map(|by| left::author(by.agent, &by.session));
        let lines = match order.of_restore {
            Some(_) => Vec::new(),
            None => left::read(&desk.state.root(&desk.root)),
        };
        let knowledge = left::Knowledge::since(checkpoint, name.as_deref(), &lines);
        let mut likely = BTreeMap::new();
        if let Some(tree) = knowledge.likely.and_then(|id| desk.store.tree(id).ok()) {
            let store = desk.store.as_ref();
            let mut read = |tree: &Tree, id: &_| store::directory_of(store, tree, id);
            for change in changes {
                let path = &change.path;
                let before = plan::entry_at(then, path, &mut read)?;
                let there = plan::entry_at(&tree, path, &mut read)?;
                let there = there.map(|it| named_as(store, path, it, before, Source::Saved));
                // What had not changed by then is not the agent's.
                if there != before {
                    likely.extend(there.map(|there| (path.clone(), there)));
                }
            }
        }
        Ok(Self { knowledge, likely })
    }

    pub(super) fn by_path(
        &self,
        desk: &Desk,
        changes: &[Change],
        unwalked: &BTreeSet<RelPath>,
        skipped: &[Skipped],
    ) -> Whose {
        let there = changes.iter().filter_map(|change| Some((&change.path, change.after?)));
        let authors = there.map(|(path, now)| {
            let likely = self.likely.get(path).copied();
            let author = self.knowledge.author(path, &Present { desk, path, now, likely });
            // After a command the tree is looked at, and what is ignored is not in it.
            let is_blind = author == Author::SomebodyElse && unwalked.contains(path);
            (path.clone(), if is_blind { Author::Unknown } else { author })
        });
        // What cannot be looked at is still the agent's if it made something there last.
        let unseen = skipped.iter().filter_map(|it| RelPath::from_bytes(&it.path).ok());
        let made = unseen.filter(|path| self.knowledge.was_made_by_agent(path));
        let authors = authors.chain(made.map(|path| (path, Author::Agent))).collect();
        Whose::of(authors, changes, |path| self.knowledge.was_left(path))
    }
}

/// When a restore is taken back: what it left is its own, the rest is somebody else's.
pub(super) fn of_restore(
    desk: &Desk,
    of: CheckpointId,
    held: CheckpointId,
    changes: &[Change],
    now: &Tree,
    skipped: &[Skipped],
) -> Result<Whose> {
    let restored = match interrupted::tree(desk, of) {
        Ok(restored) => restored,
        // It was pruned meanwhile.
        Err(Error::NoSuchCheckpoint { .. }) => return Ok(Whose::default()),
        // Then nobody knows what that restore made, and to leave all of it would pass for having
        // taken it back.
        Err(err) => return Err(err),
    };
    let merged: BTreeMap<_, _> =
        left::merged(&desk.state.root(&desk.root), held).into_iter().collect();
    let store = desk.store.as_ref();
    let mut read = |tree: &Tree, id: &_| store::directory_of(store, tree, id);
    let (mut authors, mut made) = (BTreeMap::new(), BTreeSet::new());
    for change in changes {
        let left = plan::entry_at(&restored, &change.path, &mut read)?;
        let here = plan::entry_at(now, &change.path, &mut read)?;
        let here = here.map(|here| named_as(store, &change.path, here, left, Source::Disk));
        let is_left = left.zip(here).is_some_and(|(left, here)| {
            let is_dir = here.kind == Kind::Directory;
            left.kind == here.kind && (is_dir || left.content == here.content)
        });
        let is_merged = merged.get(&change.path).is_some_and(|sha| {
            bytes_now(desk, &change.path).is_some_and(|bytes| left::digest(&bytes) == *sha)
        });
        let is_ours = is_left || is_merged;
        let author = if is_ours { Author::Agent } else { Author::SomebodyElse };
        authors.insert(change.path.clone(), author);
        if left.is_some() {
            made.insert(change.path.clone());
        }
    }
    for path in skipped.iter().filter_map(|it| RelPath::from_bytes(&it.path).ok()) {
        if plan::entry_at(&restored, &path, &mut read)?.is_some() {
            authors.insert(path, Author::Agent);
        }
    }
    Ok(Whose::of(authors, changes, |path| made.contains(path)))
}
