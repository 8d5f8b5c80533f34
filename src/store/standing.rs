//! Whether a root is still where it was, and everything that is to be had of its checkpoints.

use std::{
    fs, io,
    os::unix::fs::MetadataExt,
    path::Path,
    time::{Duration, Instant},
};

use super::{
    CopyStore, GitStore, Store, copy, git,
    record::{self, Keeper, RootPlace},
};
use crate::{
    error::Result,
    fs::Lock,
    model::{CheckpointId, Root, RootKind},
    root,
    state::{RootState, State},
};

/// How long a removal waits for those who save.
const PATIENCE: Duration = Duration::from_secs(30);

/// Whether a root is still where it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It is there.
    Live,
    /// It is gone, and the directory it was in is the one it was: somebody removed it.
    Gone,
    /// It cannot be seen, and neither can where it was: perhaps a disk that is not plugged in.
    Unreachable,
}

impl Standing {
    /// Looks.
    pub fn of(place: &RootPlace) -> Self {
        match fs::metadata(&place.path) {
            Ok(found) if found.is_dir() => return Self::Live,
            Err(err) if err.kind() == io::ErrorKind::NotFound => (),
            Ok(_) | Err(_) => return Self::Unreachable,
        }
        let above = place.path.parent().unwrap_or(Path::new("/"));
        let is_same = |data: fs::Metadata| (data.dev(), data.ino()) == place.parent;
        if fs::metadata(above).is_ok_and(is_same) { Self::Gone } else { Self::Unreachable }
    }
}

/// The stores that may have checkpoints of a root which is there: its repository's, if it can be
/// used, and turnback's own.
///
/// # Errors
///
/// Fails if turnback's own cannot be opened.
pub fn open_all(path: &Path, state: &State) -> Result<Vec<Box<dyn Store>>> {
    let root = Root::new(path.to_owned(), root::kind_of(path));
    let mut stores: Vec<Box<dyn Store>> = Vec::new();
    if let RootKind::Git { .. } = root.kind()
        && let Ok(store) = GitStore::open(&root, state)
    {
        stores.push(Box::new(store));
    }
    stores.push(Box::new(CopyStore::open(&root, state)?));
    Ok(stores)
}

/// Forgets checkpoints of a root that cannot be seen. Those in a repository that is out of sight
/// are left alone, unless the root is gone for good; then a repository it was a linked worktree of
/// loses their refs.
///
/// # Errors
///
/// Fails if somebody saves all the while, or something cannot be removed.
pub fn forget_unseen(
    root: &RootState,
    place: &RootPlace,
    standing: Standing,
    ids: &[CheckpointId],
) -> Result<usize> {
    let _lock = Lock::acquire(&root.lock(), Instant::now() + PATIENCE)?;
    if standing == Standing::Gone {
        // Whoever cannot be asked any more keeps what it has.
        let _kept = git::drop_refs_of_gone(place, ids);
    }
    copy::drop_hint(root)?;
    let is_ours = |id: &CheckpointId| {
        standing == Standing::Gone
            || record::read(root, *id).is_ok_and(|record| record.keeper == Keeper::Copy)
    };
    record::forget(root, ids.iter().copied().filter(is_ours))
}
