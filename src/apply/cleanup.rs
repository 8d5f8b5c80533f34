//! Work around a restore: temporary files of an interrupted one, and directories that are not
//! writable.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use super::make::unfinished;
use crate::{
    fs::Dir,
    model::{CheckpointId, Kind, RelPath, Root},
    plan::RestorePlan,
};

/// Removes the temporary files that the interrupted restore `id` left next to `paths`.
pub fn sweep(root: &Root, paths: &[RelPath], outside: &[PathBuf], id: CheckpointId) {
    let litter = |top: &Dir, path: &RelPath| {
        let parent = top.parent_of(path)?;
        parent.remove_file(&unfinished(id, path.as_bytes())?)
    };
    if let Ok(top) = Dir::open(root.path()) {
        for path in paths {
            let _gone = litter(&top, path);
        }
    }
    for path in outside {
        if let (Ok(top), Ok(path)) = (Dir::open(Path::new("/")), RelPath::from_top(path)) {
            let _gone = litter(&top, &path);
        }
    }
}

/// The directories above planned changes that are not writable, with their permissions.
pub fn closed(root: &Root, plan: &RestorePlan) -> Vec<(RelPath, u32)> {
    let mut looked_at = BTreeSet::new();
    let mut closed = Vec::new();
    for step in plan.deeds() {
        let mut above = step.path.parent();
        while let Some(dir) = above.filter(|dir| looked_at.insert(dir.clone())) {
            if let Ok(stamp) = crate::fs::stat_path(&root.join(&dir)) {
                let is_closed = stamp.permissions() & 0o700 != 0o700;
                if stamp.kind() == Some(Kind::Directory) && is_closed {
                    closed.push((dir.clone(), stamp.permissions()));
                }
            }
            above = dir.parent();
        }
    }
    closed
}
