//! The state of a root at a checkpoint: the files it holds, and files that only a later checkpoint holds
//! and that had not changed before.
//!
//! An ignored file over the budget is held only when a call names it. Until then the agent had not
//! touched it, so its bytes are also those of the earlier checkpoint. Within a turn that is certain enough
//! for every restore. Across turns the user may have changed the file, so it is used only if the file
//! is gone: old bytes are better than none.

use std::{
    cell::OnceCell,
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
};

use super::Project;
use crate::{
    attribution::{self, LogEvent, PathSide},
    error::Result,
    fs::stat_path,
    ledger,
    model::{Checkpoint, CheckpointId, DirPath, Entry, Reason, RelPath, Skipped, Tree},
    plan::ByPath,
    store::{
        self, ContentSource,
        record::{self, Record},
        repository,
    },
};

/// What counts of the turns after a checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LaterTurns {
    /// Everything they held.
    All,
    /// What is there no more.
    Gone,
}

/// What was there at a checkpoint.
#[derive(Clone)]
pub(crate) struct Then {
    /// Its files.
    pub(crate) tree: Tree,
    /// Later checkpoints that may hold more of them, and are damaged.
    pub(crate) damaged: BTreeSet<CheckpointId>,
}

/// What was found in a tree that may be damaged.
pub(crate) struct AsFar<T> {
    /// What was found; `None` if nothing of the tree can be read.
    pub(crate) found: Option<T>,
    /// Whether all of it could be read.
    pub(crate) is_whole: bool,
}

/// Which checkpoint something was held by, seen from the one it is wanted for.
#[derive(Clone, Copy)]
struct HeldBy<'a> {
    then: &'a Checkpoint,
    left_out: &'a ByPath<'a>,
    by: &'a Checkpoint,
    /// Whether both are of one turn.
    in_turn: bool,
}

impl Project {
    /// What was there before the turn of a checkpoint. What the first look would have seen, and did
    /// not see, was made since: some agents write files that only their owner may read, and those are
    /// held for their own sake too.
    ///
    /// # Errors
    ///
    /// Fails if the checkpoint cannot be read. Of later ones, what can be read counts.
    pub(crate) fn tree_of(&self, checkpoint: &Checkpoint, later: LaterTurns) -> Result<Then> {
        let mut all = self.store.list()?;
        ledger::adopt(&mut all, &ledger::uses(&self.state));
        self.tree_among(&all, checkpoint, later)
    }

    /// Does this for a caller that has listed `all` checkpoints, newest first, each with the turn that uses it.
    ///
    /// # Errors
    ///
    /// As [`Self::tree_of`].
    pub(crate) fn tree_among(
        &self,
        all: &[Checkpoint],
        checkpoint: &Checkpoint,
        later: LaterTurns,
    ) -> Result<Then> {
        let mut tree = self.store.tree(checkpoint.id)?;
        let mut damaged = BTreeSet::new();
        let then = all.iter().find(|one| one.id == checkpoint.id).unwrap_or(checkpoint);
        let is_whole = then.skipped.is_empty() && then.completeness.is_whole();
        let left_out = ByPath::of(&then.skipped);
        let touched = OnceCell::new();
        for by in all.iter().rev().filter(|other| other.sequence > then.sequence) {
            let in_turn = then.is_same_turn(by);
            let held = HeldBy { then, left_out: &left_out, by, in_turn };
            let is_call = by.cause.reason == Reason::Call;
            // What no call had named before, later turns hold as it was before them.
            let has_more =
                is_call && by.outside.iter().any(|path| !tree.outside.contains_key(path));
            if !in_turn && (is_whole || !is_call) && !has_more {
                continue;
            }
            let later_one = self.as_far_as_it_can_be_read(by.id, |step| {
                let missing =
                    if is_whole { Ok(Vec::new()) } else { self.missing(&tree, step, held) };
                Ok((missing?, step.outside.clone()))
            });
            let counts_if_gone = || then.skipped.iter().any(|skipped| self.is_gone(skipped));
            if !later_one.is_whole && (in_turn || counts_if_gone()) {
                damaged.insert(by.id);
            }
            let Some((mut missing, mut outside)) = later_one.found else { continue };
            missing.retain(|(path, _)| {
                let is_gone = || stat_path(&self.root.join(path)).is_err();
                let counts = in_turn || later == LaterTurns::All || is_gone();
                counts
                    && !touched.get_or_init(|| Touched::of(self)).between(
                        PathSide::Root,
                        path,
                        held,
                    )
            });
            tree.listed.extend(missing.iter().map(|(path, _)| path.clone()));
            tree.overlay.extend(missing);
            if in_turn || has_more {
                outside.retain(|path, _| {
                    let is_known = tree.outside.contains_key(path);
                    let touched = touched.get_or_init(|| Touched::of(self));
                    let was_made = |path| touched.between(PathSide::Outside, &path, held);
                    !is_known && !RelPath::from_top(path).is_ok_and(was_made)
                });
                tree.outside.extend(outside);
            }
        }
        Ok(Then { tree, damaged })
    }

    /// What `look` finds in the tree of a checkpoint, or in what is left of it if it is damaged.
    pub(crate) fn as_far_as_it_can_be_read<T>(
        &self,
        id: CheckpointId,
        look: impl Fn(&Tree) -> Result<T>,
    ) -> AsFar<T> {
        let Ok(tree) = self.store.tree(id) else { return AsFar { found: None, is_whole: false } };
        if let Ok(found) = look(&tree) {
            return AsFar { found: Some(found), is_whole: true };
        }
        let rest = store::readable(self.store.as_ref(), tree);
        AsFar { found: look(&rest).ok(), is_whole: false }
    }

    /// Whether what a checkpoint left out is gone, or was changed after it: only then is it worth a
    /// word.
    pub(crate) fn has_changed(&self, checkpoint: &Checkpoint, skipped: &Skipped) -> bool {
        attribution::has_changed(&self.root, checkpoint, skipped)
    }

    /// Whether what a checkpoint left out, and what has changed since, is gone: there is nothing, or a
    /// symlink stands in its place.
    pub(crate) fn is_gone(&self, skipped: &Skipped) -> bool {
        attribution::is_gone(&self.root, skipped)
    }

    /// The files of a checkpoint as a restore goes to them, also of one that is in no list.
    ///
    /// # Errors
    ///
    /// Fails if the checkpoint cannot be read.
    pub(crate) fn tree_by_id(&self, id: CheckpointId) -> Result<Tree> {
        match self.store.list()?.iter().find(|checkpoint| checkpoint.id == id) {
            Some(checkpoint) => self.tree_of(checkpoint, LaterTurns::All).map(|then| then.tree),
            None => self.store.tree(id),
        }
    }

    /// The record of a checkpoint, with the repositories outside the root that later calls of its turn
    /// reached: until then the agent had left them alone.
    ///
    /// # Errors
    ///
    /// Fails if it cannot be read. Of later ones, what can be read counts.
    pub(crate) fn record_of(&self, id: CheckpointId) -> Result<Record> {
        let place = self.place();
        let mut record = record::read(&place, id)?;
        let mut all = self.store.list()?;
        ledger::adopt(&mut all, &ledger::uses(&self.state));
        let Some(then) = all.iter().find(|one| one.id == id) else { return Ok(record) };
        let is_later = |by: &&Checkpoint| by.sequence > then.sequence && then.is_same_turn(by);
        for by in all.iter().rev().filter(is_later) {
            let Ok(later) = record::read(&place, by.id) else { continue };
            let is_new = |held: &store::Held| {
                let is_outside = held.path.starts_with(b"/");
                is_outside && record.repositories.iter().all(|known| known.path != held.path)
            };
            let reached: Vec<_> = later.repositories.into_iter().filter(is_new).collect();
            record.repositories.extend(reached);
        }
        Ok(record)
    }

    /// The repositories of a checkpoint in the root, and files that lead to one, that are gone or not
    /// the same any more, with the reason: now, or at a `later` checkpoint. Of a record that cannot be
    /// read nothing is known.
    pub(crate) fn other_repositories(
        &self,
        id: CheckpointId,
        later: Option<CheckpointId>,
    ) -> BTreeMap<PathBuf, Option<String>> {
        let place = self.place();
        let record = record::read(&place, id);
        let later = later.map(|later| record::read(&place, later)).transpose();
        record.and_then(|record| Ok((record, later?))).map_or_else(
            |_| BTreeMap::new(),
            |(then, later)| {
                repository::others(&self.state, self.root.path(), &then, later.as_ref())
            },
        )
    }

    /// What a later checkpoint holds of what the first one left out: named by a call, or within the
    /// budget by then.
    fn missing(&self, tree: &Tree, step: &Tree, held: HeldBy<'_>) -> Result<Vec<(RelPath, Entry)>> {
        let changes = store::changes(self.store.as_ref(), tree, step, ContentSource::Saved)?;
        let new = changes.into_iter().filter(|change| change.before.is_none());
        let new = new.filter_map(|change| Some((change.path, change.after?)));
        Ok(new.filter(|(path, entry)| held.was_left_out(path, entry, step)).collect())
    }
}

impl HeldBy<'_> {
    /// Whether a look at the root would not have seen what is at `path` then: the checkpoint says
    /// that it was left out, or was not finished and a call named it. A directory counts if all of it
    /// is held by now.
    fn was_left_out(&self, path: &RelPath, entry: &Entry, step: &Tree) -> bool {
        let is_whole = || {
            let mut skipped = self.by.skipped.iter();
            !skipped.any(|it| DirPath(path.as_bytes().to_vec()).contains(&it.path))
        };
        let is_named = || {
            self.in_turn && !self.then.completeness.is_whole() && step.overlay.contains_key(path)
        };
        let is_left_out = self.left_out.covering(path).is_some() || is_named();
        is_left_out && (!entry.is_directory() || entry.content.is_none() || is_whole())
    }
}

/// When agents were seen to have left something at a path, by path.
struct Touched(BTreeMap<String, Vec<i64>>);

impl Touched {
    fn of(project: &Project) -> Self {
        let mut touched: BTreeMap<String, Vec<i64>> = BTreeMap::new();
        for line in attribution::read(&project.place()) {
            if let LogEvent::Left { path, state: Some(_) } = line.what {
                touched.entry(path).or_default().push(line.at);
            }
        }
        Self(touched)
    }

    /// Whether an agent had changed what is at `path` before it was held.
    fn between(&self, side: PathSide, path: &RelPath, held: HeldBy<'_>) -> bool {
        let meanwhile = held.then.taken_ns()..held.by.taken_ns();
        self.0
            .get(&side.text(path))
            .is_some_and(|times| times.iter().any(|time| meanwhile.contains(time)))
    }
}
