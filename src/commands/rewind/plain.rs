//! The same in lines, for terminals that can do no more: a list, a number, a question.

use super::can_fork;
use crate::{
    commands::{Project, diff, error_text, list, restore, revert},
    error::Result,
    model::Checkpoint,
    process::{Exit, Process},
    restore::find_checkpoint,
    ui::{self, Style},
};

pub(super) fn run(process: &mut Process<'_>, project: &Project) -> Result<Exit> {
    list::run(process, &list::ListArgs::default())?;
    if project.store.list()?.is_empty() {
        return Ok(Exit::Ok);
    }
    while let Some(given) = ui::answer(process, "Back to which one? A number; Enter leaves:") {
        match find_checkpoint(project, &given) {
            Ok(checkpoint) => {
                if let Some(exit) = choose(process, &checkpoint)? {
                    return Ok(exit);
                }
            }
            Err(err) => {
                let text = error_text(&err, Style::stderr(process));
                let _ignored = process.stderr.write_all(text.as_bytes());
            }
        }
    }
    Ok(Exit::Ok)
}

/// The choices for one checkpoint. `None` if another is to be named.
fn choose(process: &mut Process<'_>, checkpoint: &Checkpoint) -> Result<Option<Exit>> {
    let id = checkpoint.id.to_string();
    let talks = can_fork(checkpoint.cause.by.as_ref());
    let talk = if talks { "c: files and conversation · t: conversation only · " } else { "" };
    let question = format!(
        "f: files only · {talk}p: hunk by hunk · v: this turn alone\nd: view the diff · Enter: another one"
    );
    while let Some(choice) = ui::answer(process, &question) {
        let mut args = restore::RestoreArgs { checkpoint: Some(id.clone()), ..Default::default() };
        match &choice.to_lowercase()[..] {
            // Each shows what it would do, and asks.
            "f" => (),
            "c" if talks => args.conversation = true,
            "t" if talks => args.conversation_only = true,
            "p" => args.patch = true,
            "v" => {
                let args = revert::RevertArgs { turn: id, ..Default::default() };
                return revert::run(process, &args).map(Some);
            }
            "d" => {
                let args = diff::DiffArgs { from: id.clone(), ..diff::DiffArgs::default() };
                diff::run(process, &args)?;
                continue;
            }
            _ => continue,
        }
        return restore::run(process, &args).map(Some);
    }
    Ok(None)
}
