//! The fast path of a save: decides without opening an object whether anything has changed.

use sha2::{Digest, Sha256};

use super::{StoredParts, own, repository};
use crate::{
    cache::ScanTable,
    model::{Checkpoint, CheckpointId, ContentId, Stamp},
    scan::Scan,
    store::{
        Draft, Store,
        git::GitStore,
        object_stamps::{self, StampScope},
        record,
        repository::Administration,
    },
};

impl GitStore {
    /// The newest checkpoint, if it already holds exactly what `draft` would. The last save stored
    /// in the cache its checkpoint and a digest of everything else that matters. In any doubt this
    /// returns `None` and the full save decides.
    pub(super) fn unchanged(&self, draft: &Draft) -> Option<Checkpoint> {
        let scan = &draft.scan;
        let is_quiet = scan.is_unchanged()
            && !scan.refreshed
            && !scan.partial
            && scan.victims.is_empty()
            && scan.repositories.is_empty()
            && scan.unheld.is_empty();
        if draft.always || !is_quiet || !is_index_known(scan) {
            return None;
        }
        let (id, digest) = scan.base.as_ref()?.facts().latest?;
        let administration = match &self.user {
            Some(user) if self.private.is_quiet(&user.common_dir) => {
                let index = own(user, "index");
                Some(repository::unchanged(&self.repo, &user.common_dir, &index)?)
            }
            Some(_) => return None,
            None if self.root.path().join(".git").symlink_metadata().is_ok() => return None,
            None => None,
        };
        let stands = self.anchor() == scan.anchor
            && digest == surroundings(administration.as_ref(), scan.index);
        if !stands
            || !self.refs.has(&self.repo, id)
            || !object_stamps::stand(&self.state, StampScope::All)
        {
            return None;
        }
        record::read(&self.state, id).ok().map(|record| record.checkpoint)
    }
}

/// Whether the index is the one for which the cache has the tree.
fn is_index_known(scan: &Scan) -> bool {
    let facts = scan.base.as_ref().map(ScanTable::facts);
    facts.is_some_and(|facts| {
        facts.index == scan.index && (facts.staged.is_some() || scan.index == Stamp::default())
    })
}

/// The value for the cache: the checkpoint, and a digest. `None` if the checkpoint holds victims as
/// well: the next scan does not look at those, and they may have changed.
pub(super) fn latest(
    scan: &Scan,
    checkpoint: &Checkpoint,
    made: &StoredParts,
) -> Option<(CheckpointId, ContentId)> {
    let administration = made.own.as_ref().map(|own| own.held_repository.administration());
    let latest = (checkpoint.id, surroundings(administration, scan.index));
    scan.victims.is_empty().then_some(latest)
}

/// A digest of everything besides the files that a checkpoint depends on.
fn surroundings(administration: Option<&Administration>, index: Stamp) -> ContentId {
    let mut hash = Sha256::new();
    if let Some(administration) = administration {
        hash.update(administration.digest.to_string());
    }
    for number in [index.mtime_ns, index.ctime_ns] {
        hash.update(number.to_le_bytes());
    }
    for number in [index.inode, index.size, u64::from(index.mode)] {
        hash.update(number.to_le_bytes());
    }
    ContentId::new(&hash.finalize())
}
