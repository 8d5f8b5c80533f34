//! `beforehand create`: takes a checkpoint because a person asks for one.

use serde_json::json;

use super::{Project, print, print_json, say};
use crate::{
    error::{Error, Result},
    model::{Cause, Checkpoint, Reason, ScanScope},
    process::{Exit, Process},
    ui,
};

/// So many of what is not held are named; an unreadable directory can have thousands.
const NAMED_MAX: usize = 20;

/// Take a checkpoint of this project now, and print its id.
///
/// Without a message, and with nothing changed since the newest checkpoint, that one's id is
/// printed and nothing is stored.
#[derive(clap::Args)]
pub(crate) struct CreateArgs {
    /// A message, shown in the list; every command takes it as the name of the checkpoint
    #[arg(short, long, value_name = "MESSAGE")]
    pub(crate) message: Option<String>,
    /// A message, as with --message
    #[arg(value_name = "NAME", conflicts_with = "message")]
    pub(crate) name: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

pub(crate) fn run(process: &mut Process<'_>, args: &CreateArgs) -> Result<Exit> {
    let project = Project::open(process, None)?.into_present()?;
    if project.scope == ScanScope::Named {
        let path = ui::path(project.root.path(), project.home.as_deref());
        return Err(Error::other(
            format!("`{path}` is never held as a whole"),
            "change to a project's own directory",
        ));
    }
    let message = args.message.as_ref().or(args.name.as_ref());
    let take = |always| project.hold(process, Cause::asked(message.cloned()), always);
    let mut saved = take(message.is_some())?;
    if !saved.is_new && saved.checkpoint.cause.reason == Reason::Net {
        // One that was taken in the background is in no list; this one shall be.
        saved = take(true)?;
    }
    let checkpoint = &saved.checkpoint;
    warn_of(process, checkpoint);
    if args.json {
        let skipped: Vec<_> = checkpoint.skipped.iter().map(super::rows::skipped_json).collect();
        let id = checkpoint.id.to_string();
        let partial = !checkpoint.completeness.is_whole();
        let body = json!({ "id": id, "new": saved.is_new, "partial": partial, "skipped": skipped });
        print_json(process, "create", body)?;
    } else {
        print(process, &format!("{}\n", checkpoint.id))?;
    }
    Ok(Exit::Ok)
}

/// Says what is not held: the first of it by name, and where the rest is named.
fn warn_of(process: &mut Process<'_>, checkpoint: &Checkpoint) {
    let matters = checkpoint.skipped.iter().filter(|skipped| skipped.reason.matters());
    let lines = ui::left_out(&matters.cloned().collect::<Vec<_>>());
    let more = |more| {
        let (more, id) = (ui::number(more), checkpoint.id);
        format!("{more} more; `beforehand show {id} --json` names them all")
    };
    for line in ui::at_most(lines, NAMED_MAX, more) {
        say(process, &format!("warning: not held: {line}"));
    }
}
