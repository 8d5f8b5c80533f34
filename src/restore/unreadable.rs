//! Paths that an undo would change and that cannot be looked at.
//!
//! An undo is a step along a line: done in part it would count as done, and nothing would lead back
//! to the rest. So what may be looked at in a moment keeps all of it waiting. Where the system
//! forbids it for good, waiting would not help, and the path is left and named.

use std::io;

use super::Request;
use crate::{
    error::{Error, Result},
    fs::{Dir, c_name},
    model::{Kind, RelPath},
    plan::RestorePlan,
    project::Project,
    ui,
};

/// Refuses an undo or redo that would have to leave something for a reason that may pass.
pub(super) fn refuse(project: &Project, plan: &RestorePlan, request: &Request) -> Result<()> {
    if request.verb == "restore" {
        return Ok(());
    }
    let Some(path) = may_pass(plan, |path| is_forbidden(project, path)) else { return Ok(()) };
    let (path, id) = (ui::escape(path.as_bytes()), plan.of.short());
    Err(Error::other(
        format!("cannot look at what is at `{path}` now"),
        format!(
            "nothing was changed; run this again, or `beforehand restore {id}` for the rest of it"
        ),
    ))
}

/// The first path that cannot be looked at just now.
fn may_pass(plan: &RestorePlan, is_forbidden: impl Fn(&RelPath) -> bool) -> Option<&RelPath> {
    plan.unseen().map(|(step, _)| &step.path).find(|path| !is_forbidden(path))
}

/// Whether the system's permissions are what keeps us from looking.
fn is_forbidden(project: &Project, path: &RelPath) -> bool {
    let open = || -> io::Result<()> {
        let (parent, name) =
            (Dir::open(project.root.path())?.parent_of(path)?, c_name(path.name())?);
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
    use std::collections::BTreeMap;

    use super::*;
    use crate::{
        model::{CheckpointId, SkipReason},
        plan::{Action, Author, Kept, OutsidePlan, Step},
    };

    #[test]
    fn only_what_is_forbidden_for_good_may_stay() {
        let step = |path: &str| Step {
            path: RelPath::from_bytes(path.as_bytes()).unwrap(),
            action: Action::Keep(Kept::Unseen(SkipReason::Unreadable)),
            then: None,
            now: None,
            author: Author::Agent,
        };
        let plan = RestorePlan {
            of: CheckpointId::from_bits(1),
            steps: vec![step("a"), step("b")],
            outside: OutsidePlan::default(),
            left: Vec::new(),
            merges: BTreeMap::new(),
        };
        assert_eq!(may_pass(&plan, |_| true), None);
        let other = may_pass(&plan, |path| path.as_bytes() == b"a");
        assert_eq!(other.map(RelPath::as_bytes), Some(&b"b"[..]));
    }
}
