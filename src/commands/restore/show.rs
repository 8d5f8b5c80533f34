//! What people see of a restore: the plan before it, the outcome after it.

use std::path::Path;

use serde_json::{Value, json};

use super::{Consent, Order, planned::Planned};
use crate::{
    apply::Outcome,
    commands::{Desk, print, print_json},
    error::{Error, Result},
    model::{Checkpoint, CheckpointId, Kind},
    plan::{Action, Kept, RestorePlan, Step},
    process::{Exit, Process},
    store::IndexOutcome,
    ui,
};

pub(super) fn heading(
    desk: &Desk,
    checkpoint: &Checkpoint,
    order: &Order,
    clock: &ui::Clock,
) -> String {
    let id = checkpoint.id.short();
    let when = clock.when(checkpoint.taken_at);
    let root = ui::path(desk.root.path(), desk.home.as_deref());
    match order.verb {
        "undo" => format!("undoing: back to checkpoint {id} ({when}) in {root}"),
        "redo" => format!("redoing: forward to checkpoint {id} ({when}) in {root}"),
        _ => format!("restoring checkpoint {id} ({when}) in {root}"),
    }
}

/// Prints a plan.
pub(super) fn plan(
    process: &mut Process<'_>,
    desk: &Desk,
    planned: &Planned,
    heading: &str,
    json: bool,
) -> Result<()> {
    if json {
        return print_json(process, &plan_json(&planned.plan));
    }
    let mut text = format!("{heading}\n\n");
    if planned.plan.is_empty() && planned.plan.kept().next().is_none() {
        text.push_str("everything is as it was; there is nothing to do\n");
        return print(process, &text);
    }
    let home = desk.home.as_deref();
    for step in &planned.plan.steps {
        text.push_str(&step_line(step));
    }
    for step in &planned.plan.outside {
        let path = ui::path(&step.path, home);
        text.push_str(&format!("  outside   {path}   (needs --outside)\n"));
    }
    for skipped in &planned.plan.left {
        let why = skipped.reason.words();
        text.push_str(&format!(
            "  leave     {}   not in this checkpoint: {why}\n",
            ui::escape(&skipped.path)
        ));
    }
    let kept = planned.plan.kept().count() as u64;
    text.push_str(&format!(
        "\n{} would change",
        ui::count(planned.plan.deeds().count() as u64, "path")
    ));
    if kept > 0 {
        text.push_str(&format!(", {} kept", ui::number(kept)));
    }
    text.push('\n');
    print(process, &text)
}

fn step_line(step: &Step) -> String {
    let path = ui::escape(step.path.as_bytes());
    let slash = if is_directory(step) { "/" } else { "" };
    let (verb, why) = words(step.action);
    let why = if why.is_empty() { String::new() } else { format!("   {why}") };
    format!("  {verb:<9} {path}{slash}{why}\n")
}

fn is_directory(step: &Step) -> bool {
    step.then.or(step.now).is_some_and(|entry| entry.kind == Kind::Directory)
}

fn words(action: Action) -> (&'static str, String) {
    match action {
        Action::Restore => ("restore", String::new()),
        Action::Recreate => ("recreate", String::new()),
        Action::Remove => ("remove", "created since; held first".to_owned()),
        Action::Merge => ("merge", String::new()),
        Action::Keep(Kept::Edited) => ("keep", "edited by someone".to_owned()),
        Action::Keep(Kept::New) => ("keep", "created since (--exact removes it)".to_owned()),
        Action::Keep(Kept::Ignored) => ("keep", "was ignored then".to_owned()),
        Action::Keep(Kept::NotCovered(why)) => ("leave", format!("not covered: {}", why.words())),
        Action::Keep(Kept::InTheWay) => ("keep", "something in it stays".to_owned()),
        Action::Keep(Kept::GitPrivate) => ("keep", "git's own".to_owned()),
        Action::Keep(Kept::Changed) => ("keep", "changed since".to_owned()),
    }
}

fn plan_json(plan: &RestorePlan) -> Value {
    let step = |step: &Step| {
        let (action, why) = words(step.action);
        json!({ "path": String::from_utf8_lossy(step.path.as_bytes()), "action": action, "why": why })
    };
    json!({
        "checkpoint": plan.of.to_string(),
        "steps": plan.steps.iter().map(step).collect::<Vec<_>>(),
        "outside": plan.outside.iter().map(|step| step.path.to_string_lossy()).collect::<Vec<_>>(),
        "left": plan.left.iter().map(crate::commands::show::skipped_json).collect::<Vec<_>>(),
    })
}

/// Says what came of a restore.
#[expect(clippy::too_many_arguments, reason = "all that came of it is said in one place")]
pub(super) fn report(
    process: &mut Process<'_>,
    desk: &Desk,
    plan: &RestorePlan,
    outcome: &Outcome,
    index: Option<Result<IndexOutcome>>,
    safety: Option<CheckpointId>,
    checkpoint: &Checkpoint,
    consent: Consent,
) -> Result<Exit> {
    let index_said = index.as_ref().and_then(index_words);
    if consent.json {
        let missed: Vec<_> = outcome
            .missed
            .iter()
            .map(|(path, why)| json!({ "path": path.to_string_lossy(), "why": why }))
            .collect();
        let mut value = plan_json(plan);
        value["done"] = json!(outcome.done);
        value["missed"] = json!(missed);
        value["held_in"] = json!(safety.map(|id| id.to_string()));
        value["index"] = json!(index_said);
        print_json(process, &value)?;
    } else {
        let kept = plan.kept().filter(|step| step.action == Action::Keep(Kept::New)).count() as u64;
        let mut text = match outcome.done {
            0 => format!("everything is as it was at {}\n", checkpoint.id.short()),
            done => format!(
                "restored {} from {}\n",
                ui::count(done as u64, "path"),
                checkpoint.id.short()
            ),
        };
        if kept > 0 {
            text.push_str(&format!(
                "{} created since kept (--exact removes them)\n",
                ui::count(kept, "path")
            ));
        }
        if let Some(said) = index_said {
            text.push_str(&format!("{said}\n"));
        }
        if safety.is_some() {
            text.push_str("undo with: turnback undo\n");
        }
        print(process, &text)?;
    }
    missed(process, desk, outcome);
    if let Some(Err(err)) = index {
        return Err(err);
    }
    Ok(if outcome.missed.is_empty() { Exit::Ok } else { Exit::Failed })
}

/// Names what could not be done.
pub(super) fn missed(process: &mut Process<'_>, desk: &Desk, outcome: &Outcome) {
    for (path, why) in &outcome.missed {
        let path = ui::path(path, desk.home.as_deref());
        let why = ui::escape_line(why.as_bytes());
        let _nobody = writeln!(process.stderr, "warning: not restored: {path}: {why}");
    }
}

fn index_words(index: &Result<IndexOutcome>) -> Option<String> {
    match index {
        Ok(IndexOutcome::Restored(entries)) => Some(format!(
            "staged as it was: {}",
            ui::count(*entries as u64, "entry").replace("entrys", "entries")
        )),
        Ok(IndexOutcome::HeadMoved) => {
            Some("the index stays as it is: HEAD has moved since".to_owned())
        }
        Ok(IndexOutcome::InProgress(what)) => {
            Some(format!("the index stays as it is: a {what} is in progress, or was then"))
        }
        Ok(IndexOutcome::Unchanged | IndexOutcome::NotKept) | Err(_) => None,
    }
}

pub(super) fn say(process: &mut Process<'_>, text: &str) -> Result<()> {
    writeln!(process.stderr, "{text}").map_err(Error::io("write to", Path::new("standard error")))
}

pub(super) fn capitalized(word: &str) -> String {
    let mut chars = word.chars();
    chars.next().map(|first| first.to_uppercase().chain(chars).collect()).unwrap_or_default()
}
