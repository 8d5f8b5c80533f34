//! The same in lines, for terminals that can do no more: a list, a number, a question.

use crate::{
    commands::{Desk, diff, error_text, list, restore},
    error::Result,
    process::{Exit, Process},
    ui::{self, Style},
};

pub(super) fn run(process: &mut Process<'_>, desk: &Desk) -> Result<Exit> {
    list::run(process, &list::Args::default())?;
    if desk.store.list()?.is_empty() {
        return Ok(Exit::Ok);
    }
    while let Some(given) = ui::answer(process, "Back to which one? A number; Enter leaves:") {
        match desk.find(&given) {
            Ok(checkpoint) => {
                let id = checkpoint.id.to_string();
                if let Some(exit) = choose(process, &id)? {
                    return Ok(exit);
                }
            }
            Err(err) => {
                let text = error_text(&err, Style::stderr(process));
                let _nobody = process.stderr.write_all(text.as_bytes());
            }
        }
    }
    Ok(Exit::Ok)
}

/// The choices for one checkpoint. `None` if another is to be named.
fn choose(process: &mut Process<'_>, id: &str) -> Result<Option<Exit>> {
    let question = "f: the files only · d: view the diff · Enter: another one";
    while let Some(choice) = ui::answer(process, question) {
        match &choice.to_lowercase()[..] {
            // It shows the plan and asks.
            "f" | "files" => {
                let checkpoint = Some(id.to_owned());
                let args = restore::Args { checkpoint, ..restore::Args::default() };
                return restore::run(process, &args).map(Some);
            }
            "d" | "diff" => {
                let args = diff::Args { from: id.to_owned(), ..diff::Args::default() };
                diff::run(process, &args)?;
            }
            _ => (),
        }
    }
    Ok(None)
}
