//! Paths that an undo would change and that cannot be read.
//!
//! An undo that is done in part counts as done, and no command would undo the rest. So if a path may be readable
//! in a moment, the whole undo waits. If the system forbids it for good, the undo names the
//! path and leaves it.

use std::{
    io,
    path::{Path, PathBuf},
};

use super::RestoreRequest;
use crate::{
    error::{Error, Result},
    fs::{Dir, c_name},
    model::Kind,
    plan::RestorePlan,
    project::Project,
    ui,
};

/// Refuses an undo or redo that would have to leave something for a reason that may pass.
pub(super) fn refuse(
    project: &Project,
    plan: &RestorePlan,
    request: &RestoreRequest,
) -> Result<()> {
    if matches!(request.verb, "restore" | "revert" | "keep") {
        return Ok(());
    }
    let below = plan.unseen().map(|(step, _)| project.root.join(&step.path));
    let outside = plan.outside.steps.iter().filter(|step| step.unseen().is_some());
    let unseen = below.chain(outside.map(|step| step.path.at_top()));
    let Some(path) = may_pass(unseen, is_forbidden) else { return Ok(()) };
    let path = path.strip_prefix(project.root.path()).unwrap_or(&path);
    let (path, id) = (ui::escape_path(path), plan.of.short());
    Err(Error::other(
        format!("cannot look at what is at `{path}` now"),
        format!(
            "nothing was changed; run this again, or `beforehand restore {id}` for the rest of it"
        ),
    ))
}

/// The first path that cannot be looked at just now.
fn may_pass(
    mut unseen: impl Iterator<Item = PathBuf>,
    is_forbidden: impl Fn(&Path) -> bool,
) -> Option<PathBuf> {
    unseen.find(|path| !is_forbidden(path))
}

/// Whether the system's permissions are what keeps us from looking.
fn is_forbidden(path: &Path) -> bool {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { return false };
    let open = || -> io::Result<()> {
        let (parent, name) = (Dir::open(parent)?, c_name(name.as_encoded_bytes())?);
        match parent.stat_child(&name)?.kind() {
            Some(Kind::Directory) => parent.open_child(&name).map(|_| ()),
            Some(Kind::File) => parent.open_file(&name).map(|_| ()),
            _ => Ok(()),
        }
    };
    open().is_err_and(|err| err.kind() == io::ErrorKind::PermissionDenied)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_forbidden_for_good_may_stay() {
        let unseen = || ["a", "b"].map(PathBuf::from).into_iter();
        assert_eq!(may_pass(unseen(), |_| true), None);
        assert_eq!(may_pass(unseen(), |path| path == Path::new("a")), Some("b".into()));
    }
}
