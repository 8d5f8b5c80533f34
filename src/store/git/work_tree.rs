//! What only a store of a git work tree has: the index that a checkpoint holds, the position of
//! HEAD since then, and upkeep of the private repository.

use gix::{ObjectId, objs::Kind as ObjectKind};

use super::{GitStore, IndexEntry, branch, reset_branch};
use crate::{
    cache::ScanTable,
    error::Result,
    model::{CheckpointId, ContentId, Directory, Head, Stamp, StoreChoice},
    store::{
        HeadDistance, HeadMove, IndexOutcome, Store,
        plumbing::{
            head, index,
            repo::{Repo, content_id},
            restore_index, tree,
        },
    },
};

/// The mode of an index entry that stands for a commit of another repository.
const GITLINK: u32 = 0o160_000;

impl GitStore {
    /// Whether new checkpoints go to the private repository.
    pub fn is_in_repository(&self) -> bool {
        self.choice == StoreChoice::Auto
    }

    /// The tree of git's index that a checkpoint holds, if it holds one.
    ///
    /// # Errors
    ///
    /// Fails if the checkpoint does not exist or is damaged.
    pub fn staged(&self, id: CheckpointId) -> Result<Option<ContentId>> {
        let located = self.locate(id);
        if located.is_copy() {
            return Ok(None);
        }
        let (parts, _) = self.parts(&located)?;
        Ok(parts.index.map(|id| content_id(&id)))
    }

    /// One directory of that tree, but for its gitlinks: what they lead to is no part of it.
    ///
    /// # Errors
    ///
    /// Fails if it cannot be read.
    pub fn staged_directory(&self, id: &ContentId) -> Result<Directory> {
        self.read_from_any(id, |repo| tree::read_staged(repo, id), || self.copies.directory(id))
    }

    /// The index entries in a checkpoint, in git's order; `None` if it has no index.
    ///
    /// # Errors
    ///
    /// Fails if the checkpoint does not exist or is damaged.
    pub fn staged_entries(&self, id: CheckpointId) -> Result<Option<Vec<IndexEntry>>> {
        let located = self.locate(id);
        let (parts, _) = self.parts(&located)?;
        match parts.index {
            Some(tree) => index::kept_entries(&located.repo, tree, parts.extra).map(Some),
            None => Ok(None),
        }
    }

    /// Restores the index of a checkpoint. Leaves the files alone.
    ///
    /// # Errors
    ///
    /// Fails if the index cannot be read or written, or if another git process has locked it. It is
    /// unchanged then.
    pub fn restore_index(&self, id: CheckpointId) -> Result<IndexOutcome> {
        let Some(user) = self.user().filter(|_| !self.locate(id).is_copy()) else {
            return Ok(IndexOutcome::NotKept);
        };
        restore_index::sweep(&user)?;
        match self.staged_then(&user, id)? {
            Ok(entries) => {
                branch::add_blobs(&user, &self.blobs_lost(&user, id, &entries))?;
                restore_index::write(&user, &entries)
            }
            Err(left) => Ok(left),
        }
    }

    /// The same to finish or take back an interrupted restore between two checkpoints: what was staged since is
    /// held by neither, and stays.
    ///
    /// # Errors
    ///
    /// As [`GitStore::restore_index`].
    pub fn settle_index(&self, to: CheckpointId, ends: [CheckpointId; 2]) -> Result<IndexOutcome> {
        let Some(user) = self.user() else { return Ok(IndexOutcome::NotKept) };
        let mut is_changed = false;
        for end in ends.into_iter().filter(|end| !self.locate(*end).is_copy()) {
            // One that holds no index says nothing of this one.
            let Some(then) = self.staged_entries(end)? else { continue };
            if !restore_index::differs(&user, &then) {
                return self.restore_index(to);
            }
            is_changed = true;
        }
        if is_changed { Ok(IndexOutcome::Changed) } else { self.restore_index(to) }
    }

    /// What was staged in a checkpoint and the user's repository has no more: git keeps a blob only as long as
    /// something leads to it.
    fn blobs_lost(&self, user: &Repo, id: CheckpointId, entries: &[IndexEntry]) -> Vec<Vec<u8>> {
        let repo = self.locate(id).repo;
        let blobs = entries.iter().filter(|entry| entry.mode != GITLINK);
        let lost = blobs.filter(|entry| !user.has(&entry.id));
        lost.filter_map(|entry| repo.read(&entry.id, ObjectKind::Blob).ok()).collect()
    }

    /// What [`GitStore::restore_index`] would do.
    ///
    /// # Errors
    ///
    /// Fails if the checkpoint cannot be read.
    pub fn plan_index(&self, id: CheckpointId) -> Result<IndexOutcome> {
        let Some(user) = self.user().filter(|_| !self.locate(id).is_copy()) else {
            return Ok(IndexOutcome::NotKept);
        };
        Ok(match self.staged_then(&user, id)? {
            Ok(entries) if restore_index::differs(&user, &entries) => {
                IndexOutcome::Restored(entries.len())
            }
            Ok(_) => IndexOutcome::Unchanged,
            Err(left) => left,
        })
    }

    /// The position of HEAD relative to `then`; `None` if it cannot be determined.
    pub fn commits_since(&self, then: &Head) -> Option<HeadDistance> {
        head::since(&self.user()?, then)
    }

    /// Plans a reset of the current branch to the commit of `then`; `None` if it is there already.
    ///
    /// # Errors
    ///
    /// Why the branch must not be reset, as a message fragment.
    pub fn plan_head(&self, then: &Head) -> Result<Option<HeadMove>, String> {
        match self.user() {
            Some(user) => reset_branch::plan(&user, then),
            None => Err("there is no repository".to_owned()),
        }
    }

    /// Where HEAD stands; `None` if there is no repository.
    pub fn head(&self) -> Option<Head> {
        self.user().map(|user| head::read(&user))
    }

    /// Whether the user's repository has a commit.
    pub fn has_commit(&self, commit: &str) -> bool {
        let id = ObjectId::from_hex(commit.as_bytes()).ok();
        let read = |id: ObjectId| {
            self.user().is_some_and(|user| user.read(&id, ObjectKind::Commit).is_ok())
        };
        id.is_some_and(read)
    }

    /// Resets the current branch, unless it has moved since the plan was made; returns whether it
    /// did. Files and index stay as they are.
    ///
    /// # Errors
    ///
    /// Fails if the repository cannot be written; nothing is changed then.
    pub fn move_head(&self, to: &HeadMove, why: &str) -> Result<bool> {
        self.user().map_or(Ok(false), |user| reset_branch::execute(&user, to, why))
    }

    /// Removes the locks of a move of the branch that was killed.
    pub fn remove_locks(&self, of: &HeadMove) {
        if let Some(user) = self.user() {
            reset_branch::remove_locks(&user, of);
        }
    }

    /// The index entries of a checkpoint, or why they need not or must not be restored.
    fn staged_then(
        &self,
        user: &Repo,
        id: CheckpointId,
    ) -> Result<Result<Vec<IndexEntry>, IndexOutcome>> {
        let located = self.locate(id);
        let (parts, meta) = self.parts(&located)?;
        let Some(index) = parts.index else { return Ok(Err(IndexOutcome::NotKept)) };
        let then = match &located.record {
            Some(record) => record.checkpoint.head.clone(),
            None => super::public_checkpoint(&located.repo, id, &parts, &meta).head,
        };
        if let Some(refusal) = then.and_then(|then| restore_index::refusal(user, &then)) {
            return Ok(Err(refusal));
        }
        if parts.extra.is_none() && self.is_staged(user, index) {
            return Ok(Err(IndexOutcome::Unchanged));
        }
        index::kept_entries(&located.repo, index, parts.extra).map(Ok)
    }

    /// Whether the cache proves that the index has exactly this tree.
    fn is_staged(&self, user: &Repo, tree: ObjectId) -> bool {
        let stamp = index::stamp(user);
        let facts = ScanTable::facts_of(&self.state.cache());
        facts.is_some_and(|facts| {
            facts.index == stamp
                && stamp != Stamp::default()
                && facts.staged == Some(content_id(&tree))
        })
    }
}
