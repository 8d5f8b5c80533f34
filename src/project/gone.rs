//! Finds the root of a project in the store, if its `.git` or its directory is gone.

use std::path::{Path, PathBuf};

use crate::{
    fs::PathResolver,
    model::{Root, RootKind},
    state::StateDir,
    store::record,
};

/// The root at or around `start` that we know and that is gone, or has no `.git` any more.
pub(super) fn root_around(start: &Path, state: &StateDir, real: &PathResolver) -> Option<Root> {
    let start = canonical(start, real);
    for dir in start.ancestors() {
        let has_git = dir.join(".git").symlink_metadata().is_ok();
        let place = record::read_location(&state.root_at(dir)).ok().flatten();
        match place {
            // Whatever is there now is looked at as usual.
            _ if has_git => return None,
            None => (),
            Some(place) => {
                let is_lost = place.git_dir.is_some() || !dir.is_dir();
                let kind = RootKind::Plain { why: None };
                return is_lost.then(|| Root::new(dir.to_owned(), kind));
            }
        }
    }
    None
}

/// The path without links, as far as it exists, and without `.` and `..` behind that.
fn canonical(path: &Path, real: &PathResolver) -> PathBuf {
    for above in path.ancestors() {
        if let Ok(found) = real.of(above) {
            let rest = path.strip_prefix(above).unwrap_or(Path::new(""));
            let mut whole = found;
            for component in rest.components() {
                match component {
                    std::path::Component::ParentDir => drop(whole.pop()),
                    std::path::Component::CurDir => (),
                    other => whole.push(other),
                }
            }
            return whole;
        }
    }
    path.to_owned()
}
