//! The refs of all checkpoints, read once.

use std::collections::HashMap;

use gix::ObjectId;

use super::{CHECKPOINTS, PRIVATE, Refs, read_all};
use crate::{error::Result, model::CheckpointId, store::plumbing::repo::Repo};

/// The trees that the refs of one checkpoint point at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::store) struct RefPair {
    /// Its tree; `None` if there is no such ref.
    pub(in crate::store) public: Option<RefTarget>,
    /// Its private part.
    pub(in crate::store) private: Option<RefTarget>,
}

/// The tree that a ref points at; `None` if the ref is malformed.
type RefTarget = Option<ObjectId>;

/// The refs of all checkpoints, read once.
#[derive(Default)]
pub(in crate::store) struct CheckpointRefs {
    own: HashMap<CheckpointId, RefPair>,
    elsewhere: HashMap<CheckpointId, RefPair>,
}

impl CheckpointRefs {
    /// The checkpoints of this worktree that have a ref.
    pub(in crate::store) fn own(&self) -> impl Iterator<Item = CheckpointId> {
        self.own.keys().copied()
    }

    /// The refs of a checkpoint, wherever they are: a worktree that was moved had another name.
    pub(in crate::store) fn of(&self, id: CheckpointId) -> RefPair {
        let own = self.own.get(&id).copied().unwrap_or_default();
        let elsewhere = self.elsewhere.get(&id).copied().unwrap_or_default();
        RefPair {
            public: own.public.or(elsewhere.public),
            private: own.private.or(elsewhere.private),
        }
    }
}

impl Refs {
    /// Reads the refs of all checkpoints.
    ///
    /// # Errors
    ///
    /// Fails if they cannot be read.
    pub(in crate::store) fn of_checkpoints(&self, repo: &Repo) -> Result<CheckpointRefs> {
        let mut found = CheckpointRefs::default();
        for (name, target) in read_all(repo)? {
            let Some((dir, id)) = name.rsplit_once('/') else { continue };
            let Some(id) = CheckpointId::parse(id) else { continue };
            let (is_private, worktree) =
                match (dir.strip_prefix(CHECKPOINTS), dir.strip_prefix(PRIVATE)) {
                    (Some(worktree), _) => (false, worktree),
                    (None, Some(worktree)) => (true, worktree),
                    (None, None) => continue,
                };
            let is_own = worktree == self.worktree;
            let pairs = if is_own { &mut found.own } else { &mut found.elsewhere };
            let pair = pairs.entry(id).or_default();
            *(if is_private { &mut pair.private } else { &mut pair.public }) = Some(target);
        }
        Ok(found)
    }

    /// The refs of one checkpoint, as [`CheckpointRefs::of`] returns them.
    pub(in crate::store) fn pair(&self, repo: &Repo, id: CheckpointId) -> RefPair {
        RefPair {
            public: target(&self.checkpoint(repo, id)),
            private: target(&self.private(repo, id)),
        }
    }
}

fn target(read: &Result<Option<ObjectId>>) -> Option<RefTarget> {
    match read {
        Ok(Some(id)) => Some(Some(*id)),
        Ok(None) => None,
        Err(_) => Some(None),
    }
}
