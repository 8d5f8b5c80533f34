//! Words for an interrupted restore: the note, and the result of continuing or aborting it.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::{Consent, head, report};
use crate::{
    commands::{Project, print_json, print_text, say},
    config,
    error::Result,
    fs::PathResolver,
    process::{Exit, Process},
    restore::{self, InterruptedRestore, RestoreRequest, Settled, Toward},
    restore_log::{self, RestoreLog},
    ui,
};

/// `restore --continue` and `restore --abort`.
pub(super) fn run(
    process: &mut Process<'_>,
    project: &Project,
    toward: Toward,
    json: bool,
) -> Result<Exit> {
    let (log, settled) = restore::resume(process, project, toward)?;
    if json {
        print_json(process, "settled", settled_json(&log.verb, &settled, toward))?;
    } else {
        print_text(process, &settled_words(&log, &settled, toward))?;
    }
    let exit = say_settled(process, project, &settled);
    if !settled.is_over {
        say(process, report::TRY_AGAIN);
    }
    Ok(exit)
}

/// What came of an interrupted restore, for scripts.
fn settled_json(verb: &str, settled: &Settled, toward: Toward) -> Value {
    json!({
        "command": verb,
        "action": match toward {
            Toward::After => "finished",
            Toward::Before => "taken-back",
        },
        "over": settled.is_over,
        "done": settled.outcome.done,
        "kept": kept(settled).iter().map(|path| path.to_string_lossy()).collect::<Vec<_>>(),
        "missed": report::missed_json(&settled.outcome),
        "set_aside": report::set_aside_json(&settled.outcome),
    })
}

fn settled_words(log: &RestoreLog, settled: &Settled, toward: Toward) -> String {
    let (verb, id) = (&log.verb, log.of.short());
    let to = if verb == "revert" { "of" } else { "to" };
    let what = match &log.brings {
        Some(brings) => {
            let name = brings.fork.file_name().unwrap_or_default();
            format!("{verb} of the fork {}", ui::escape(name.as_encoded_bytes()))
        }
        None => format!("{verb} {to} {id}"),
    };
    let missed = ui::count(settled.outcome.missed.len() as u64, "path");
    let back = if verb == "undo" { "redo" } else { "undo" };
    match (toward, settled.is_over, settled.outcome.missed.is_empty()) {
        (Toward::After, true, true) => {
            format!("finished the {what}\n{back} with: beforehand {back}\n")
        }
        (Toward::After, true, false) => {
            let whole = format!("finished the {what}, but for {missed}");
            format!("{whole}\n{back} with: beforehand {back}\n")
        }
        (Toward::After, false, _) => {
            format!("the {what} is not finished: {missed} not restored\n")
        }
        (Toward::Before, _, true) => format!("aborted the interrupted {verb}\n"),
        (Toward::Before, _, false) => {
            format!("aborted the interrupted {verb}, but for {missed}\n")
        }
    }
}

/// Before any other restore: an interrupted one is taken back, if the user need not be asked. The
/// exit if that was all there is to do.
pub(super) fn before(
    process: &mut Process<'_>,
    project: &Project,
    request: &RestoreRequest,
    consent: Consent,
) -> Result<Option<Exit>> {
    match restore::before(process, project, request, consent.dry_run, consent.yes)? {
        InterruptedRestore::Nothing => Ok(None),
        InterruptedRestore::Left { verb, is_all: true } => {
            say(process, &format!("this aborts the interrupted {verb}, and does nothing else"));
            Ok(Some(Exit::Ok))
        }
        InterruptedRestore::Left { verb, is_all: false } => {
            say(process, &format!("note: {}", restore_log::LEFT));
            say(process, &format!("note: the interrupted {verb} is aborted first"));
            Ok(None)
        }
        InterruptedRestore::TookBack { verb, settled, is_all } => {
            let missed = match settled.outcome.missed.len() {
                0 => String::new(),
                missed => format!(", but for {}", ui::count(missed as u64, "path")),
            };
            let first = if is_all { "" } else { " first" };
            say(process, &format!("note: aborted the interrupted {verb}{first}{missed}"));
            if consent.json && is_all {
                print_json(process, "settled", settled_json(&verb, &settled, Toward::Before))?;
            }
            let exit = say_settled(process, project, &settled);
            if !settled.is_over {
                let id = settled.plan.of.short();
                let back = format!("`beforehand restore {id}` retries what was not restored");
                say(process, &back);
            }
            Ok(is_all.then_some(exit))
        }
    }
}

/// What stays because it was changed since: relative to the root, or absolute if it is outside it.
fn kept(settled: &Settled) -> Vec<PathBuf> {
    report::paths_of(&settled.plan, |step| !step.is_deed())
}

fn say_settled(process: &mut Process<'_>, project: &Project, settled: &Settled) -> Exit {
    let kept = kept(settled);
    for path in &kept {
        let path = ui::escape_path(path);
        say(process, &format!("warning: kept, changed since: {path}"));
    }
    report::missed(process, project, &settled.outcome);
    if let Some(words) = settled.index.as_ref().and_then(head::index_words) {
        say(process, &words);
    }
    match (settled.outcome.missed.is_empty(), kept.first()) {
        (false, _) => Exit::Failed,
        (true, Some(_)) => Exit::Conflicts,
        (true, None) => Exit::Ok,
    }
}

/// Says on standard error that a restore was interrupted here, before any other command.
pub(crate) fn say_if_interrupted(process: &mut Process<'_>) {
    let Ok(state) = config::state(process, None) else { return };
    let Some(cwd) = process.cwd.as_deref().and_then(|cwd| PathResolver::default().of(cwd).ok())
    else {
        return;
    };
    if let Some(root) = restore_log::left_around(&state, Path::new(&cwd)) {
        let root = ui::escape_path(&root).into_owned();
        say(process, &format!("note: {} ({root})", restore_log::LEFT));
    }
}
