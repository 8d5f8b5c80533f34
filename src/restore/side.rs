//! The two sides of a restore: the root, and the paths outside it, which start at `/`.

use std::path::Path;

use crate::{
    attribution::PathSide,
    error::Result,
    model::{Entry, RelPath, Tree},
    project::Project,
    store,
};

/// What a checkpoint holds at a path of one side.
pub(super) fn entry_at(
    project: &Project,
    tree: &Tree,
    path: &RelPath,
    side: PathSide,
) -> Result<Option<Entry>> {
    match side {
        PathSide::Root => store::entry_at(project.store.as_ref(), tree, path),
        PathSide::Outside => Ok(tree.outside.get(&path.at_top()).copied()),
    }
}

/// Where the paths of a side begin.
pub(super) fn top(project: &Project, side: PathSide) -> &Path {
    match side {
        PathSide::Root => project.root.path(),
        PathSide::Outside => Path::new("/"),
    }
}
