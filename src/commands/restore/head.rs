//! HEAD in words: how a restore moves it, or what happened to it since.

use crate::{
    model::Checkpoint,
    restore::{HeadPlan, HeadSince},
    store::HeadMove,
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
        HeadSince::Switched { then, now } => {
            let (then, now) = (short(then.as_deref()), short(now.as_deref()));
            format!("HEAD is on {now} now and was on {then} then; it stays there")
        }
        HeadSince::Ahead(count) => format!(
            "{} made since: git reset --soft {id} takes {} back",
            ui::count(*count, "commit"),
            if *count == 1 { "it" } else { "them" },
        ),
        HeadSince::Lost => format!(
            "HEAD was at {id} then, which is not below it now; `beforehand restore {} --head` \
             takes it back",
            checkpoint.id.short()
        ),
    })
}

fn short(branch: Option<&str>) -> String {
    let name = branch.map(|name| name.strip_prefix("refs/heads/").unwrap_or(name));
    ui::escape(name.unwrap_or("no branch").as_bytes()).into_owned()
}
