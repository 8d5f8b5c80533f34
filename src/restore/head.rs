//! HEAD and the commits made since: what is said of them, and when the branch goes back as well.

use super::Request;
use crate::{
    error::{Error, Result},
    fs::now_ns,
    left::{self, Line, What},
    model::{Checkpoint, CheckpointId, Head},
    project::Project,
    store::HeadMove,
    ui,
};

/// How the branch moves: back, if the user says so; and if a restore that moved it is taken back,
/// to where it stood before that.
pub(super) fn plan(
    project: &Project,
    checkpoint: &Checkpoint,
    request: &Request,
) -> Result<Option<HeadMove>> {
    if request.head {
        let refuse = |why: &str| {
            let hint = "without --head the files alone are restored";
            Error::other(format!("HEAD stays where it is: {}", ui::escape(why.as_bytes())), hint)
        };
        let then = checkpoint.head.as_ref();
        let then = then.ok_or_else(|| refuse("the checkpoint does not say where it stood"))?;
        return project.store.plan_head(then).map_err(|why| refuse(&why));
    }
    if request.of_restore.is_none() {
        return Ok(None);
    }
    let moved = left::head_moved(&project.state.root(&project.root), checkpoint.id);
    // Where it has been moved again since, it stays.
    Ok(moved.map(reversed).filter(|back| {
        let (branch, commit) = (Some(back.branch.clone()), Some(back.from.clone()));
        let there = Head { branch, commit, in_progress: None };
        let since = project.store.commits_since(&there);
        since.is_some_and(|since| since.count == Some(0) && since.branch == there.branch)
    }))
}

/// The same way in the other direction.
pub(super) fn reversed(there: HeadMove) -> HeadMove {
    HeadMove { from: there.to, to: there.from, count: 0, ..there }
}

/// What the user hears of a move.
pub(super) fn words(head: &HeadMove) -> String {
    let branch = short(Some(&head.branch));
    let to = head.to.get(..7).unwrap_or_default();
    match head.count {
        0 => format!("{branch} goes to {to}"),
        count => format!(
            "{branch} goes back to {to}, behind {}; its reflog keeps {}",
            ui::count(count, "commit"),
            if count == 1 { "it" } else { "them" },
        ),
    }
}

/// Notes a move, so that taking the restore back moves it back.
pub(super) fn note(project: &Project, there: &HeadMove, held: CheckpointId) -> Result<()> {
    let HeadMove { branch, from, to, .. } = there.clone();
    let what = What::Head { held: held.to_string(), branch, from, to };
    let line = Line { at: now_ns(), by: String::new(), what };
    left::append(&project.state.root(&project.root), &[line])
}

/// What to say of the commits made since: no restore takes them back.
pub(super) fn commits(project: &Project, of: CheckpointId, then: &Head) -> Option<String> {
    let since = project.store.commits_since(then)?;
    let id = then.commit.as_deref()?.get(..7)?;
    if since.branch != then.branch {
        let (then, now) = (short(then.branch.as_deref()), short(since.branch.as_deref()));
        return Some(format!("HEAD is on {now} now and was on {then} then; it stays there"));
    }
    match since.count {
        Some(0) => None,
        Some(count) => Some(format!(
            "{} made since: git reset --soft {id} takes {} back",
            ui::count(count, "commit"),
            if count == 1 { "it" } else { "them" },
        )),
        None => Some(format!(
            "HEAD was at {id} then, which is not below it now; `beforehand restore {} --head` \
             takes it back",
            of.short()
        )),
    }
}

/// Whether the branch is the same, and the commit HEAD was at is not below it any more.
pub(super) fn is_lost(project: &Project, then: &Head) -> bool {
    let since = project.store.commits_since(then);
    since.is_some_and(|since| since.branch == then.branch && since.count.is_none())
}

fn short(branch: Option<&str>) -> String {
    let name = branch.map(|name| name.strip_prefix("refs/heads/").unwrap_or(name));
    ui::escape(name.unwrap_or("no branch").as_bytes()).into_owned()
}
