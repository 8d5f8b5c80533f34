//! The same in lines, for terminals that can do no more: a list, a number, a question.

use crate::{
    agent::transcript,
    commands::{Project, diff, error_text, list, restore},
    error::Result,
    model::Checkpoint,
    process::{Exit, Process},
    ui::{self, Style},
};

pub(super) fn run(process: &mut Process<'_>, project: &Project) -> Result<Exit> {
    list::run(process, &list::ListArgs::default())?;
    if project.store.list()?.is_empty() {
        return Ok(Exit::Ok);
    }
    while let Some(given) = ui::answer(process, "Back to which one? A number; Enter leaves:") {
        match project.find(&given) {
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
    let by = checkpoint.cause.by.as_ref();
    let talks = by.is_some_and(|by| transcript::can_fork(by.agent));
    let both = if talks { "c: files and conversation · " } else { "" };
    let question = format!("f: files only · {both}d: view the diff · Enter: another one");
    while let Some(choice) = ui::answer(process, &question) {
        match &choice.to_lowercase()[..] {
            // It shows the plan and asks.
            key @ ("f" | "c") if talks || key == "f" => {
                let (checkpoint, conversation) = (Some(id.clone()), key == "c");
                let args = restore::RestoreArgs {
                    checkpoint,
                    conversation,
                    ..restore::RestoreArgs::default()
                };
                return restore::run(process, &args).map(Some);
            }
            "d" => {
                let args = diff::DiffArgs { from: id.clone(), ..diff::DiffArgs::default() };
                diff::run(process, &args)?;
            }
            _ => (),
        }
    }
    Ok(None)
}
