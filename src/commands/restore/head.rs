//! Words for HEAD and git's index: how a restore moves them, and what happened to HEAD since the checkpoint.

use std::path::Path;

use crate::{
    commands::Project,
    model::Checkpoint,
    plan::Picked,
    restore::{self, HeadPlan, HeadSince, NestedHead, Prepared},
    store::{HeadMove, IndexOutcome},
    ui,
};

/// What the user is told of HEAD.
pub(super) fn words(head: &HeadPlan, checkpoint: &Checkpoint) -> Option<String> {
    match (&head.moves, &head.since) {
        (Some(moves), _) => Some(of_move(moves)),
        (None, Some(since)) => of_since(since, checkpoint),
        (None, None) => None,
    }
}

/// What happened since a checkpoint to HEAD of the root and of the repositories nested in it, a line
/// each.
pub(crate) fn commits(project: &Project, checkpoint: &Checkpoint, picked: &Picked) -> Vec<String> {
    let plan = HeadPlan { moves: None, since: restore::head_since(project, checkpoint) };
    let own = words(&plan, checkpoint).filter(|_| *picked == Picked::All);
    let nested = restore::nested_heads(project, checkpoint);
    let is_picked = |head: &NestedHead| {
        let below = project.root.relative(&head.worktree);
        below.is_ok_and(|below| picked.has(&below))
    };
    let nested = nested.iter().filter(|head| *picked == Picked::All || is_picked(head));
    own.into_iter().chain(nested.map(|head| nested_words(project, head, checkpoint))).collect()
}

/// What the user is told of HEAD in a repository nested in the root of `project`.
pub(super) fn nested_words(
    project: &Project,
    head: &NestedHead,
    checkpoint: &Checkpoint,
) -> String {
    let NestedHead { worktree, place, commit, since } = head;
    let below = |path: &Path| path.strip_prefix(project.root.path()).unwrap_or(path).to_owned();
    let name = ui::escape_path(&below(worktree)).into_owned();
    let id = commit.get(..7).unwrap_or_default();
    match since {
        HeadSince::Switched { then, now } => {
            format!("{name}: {}", switched_words(then.as_deref(), now.as_deref()))
        }
        HeadSince::Ahead(count) => {
            let git = format!("git -C {}", project.argument(&below(worktree)));
            format!("{name}: {}", ahead_words(*count, &git, id))
        }
        HeadSince::Lost | HeadSince::Gone => format!(
            "{name}: HEAD was at {id} then, which is not below it now; `{}beforehand \
             restore {} --repository -- {}` takes it back",
            project.cd_prefix(),
            checkpoint.id.short(),
            project.argument(&below(place))
        ),
    }
}

fn switched_words(then: Option<&str>, now: Option<&str>) -> String {
    let (then, now) = (short(then), short(now));
    format!("HEAD is on {now} now and was on {then} then; it stays there")
}

fn ahead_words(count: u64, git: &str, id: &str) -> String {
    let them = if count == 1 { "it" } else { "them" };
    let commits = ui::count(count, "commit");
    format!("{commits} made since: {git} reset --soft {id} takes {them} back")
}

fn of_move(head: &HeadMove) -> String {
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

fn of_since(since: &HeadSince, checkpoint: &Checkpoint) -> Option<String> {
    let id = checkpoint.head.as_ref()?.commit.as_deref()?.get(..7)?;
    Some(match since {
        HeadSince::Switched { then, now } => switched_words(then.as_deref(), now.as_deref()),
        HeadSince::Ahead(count) => ahead_words(*count, "git", id),
        HeadSince::Lost => format!(
            "HEAD was at {id} then, which is not below it now; `beforehand restore {} --head` \
             takes it back",
            checkpoint.id.short()
        ),
        HeadSince::Gone => format!(
            "HEAD was at {id} then, a commit that is gone; `beforehand restore {} --repository` \
             brings it back",
            checkpoint.id.short()
        ),
    })
}

fn short(branch: Option<&str>) -> String {
    let name = branch.map(|name| name.strip_prefix("refs/heads/").unwrap_or(name));
    ui::escape(name.unwrap_or("no branch").as_bytes()).into_owned()
}

/// What a plan says of git's index.
pub(super) fn index_plan(prepared: &Prepared) -> String {
    let moves_head = prepared.head.moves.is_some();
    // The branch goes back before the index does.
    if prepared.stages() || moves_head && prepared.index == IndexOutcome::HeadMoved {
        return "git's index goes back to what was staged\n".to_owned();
    }
    let is_here = !moves_head && prepared.repositories.is_empty();
    let stays = is_here.then(|| index_words(&prepared.index)).flatten();
    stays.map_or_else(String::new, |why| format!("{why}\n"))
}

/// What became of git's index, if that is worth a word.
pub(super) fn index_words(index: &IndexOutcome) -> Option<String> {
    match index {
        IndexOutcome::Restored(entries) => {
            Some(format!("staged as it was: {}", ui::count(*entries as u64, "entry")))
        }
        IndexOutcome::HeadMoved => {
            Some("the index stays as it is: HEAD has moved since".to_owned())
        }
        IndexOutcome::InProgress(what) => {
            let why = format!("a {what} is in progress, or was then");
            Some(format!("the index stays as it is: {why}; --repository takes back both"))
        }
        IndexOutcome::Changed => Some(
            "the index stays as it is: it has changed since the restore was interrupted".to_owned(),
        ),
        IndexOutcome::Unchanged | IndexOutcome::NotKept => None,
    }
}
