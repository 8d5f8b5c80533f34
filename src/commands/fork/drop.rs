//! `beforehand fork --drop`: holds what is in a fork, and removes it.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::{ForkArgs, find, quoted};
use crate::{
    commands::{Project, print_json, print_text, rows::skipped_json, say},
    error::{Error, Result},
    fork::Dropping,
    forked::ForkEntry,
    model::{CheckpointId, SkipReason, Skipped},
    process::{Exit, Process},
    ui,
};

/// So many of what stays are named.
const NAMED_MAX: usize = 10;

pub(super) fn run(
    process: &mut Process<'_>,
    project: &Project,
    name: &Path,
    args: &ForkArgs,
) -> Result<Exit> {
    let (fork, own) = find(process, project, name)?;
    let dir = ui::path(&fork.dir, project.home.as_deref()).into_owned();
    if args.dry_run {
        return tell_plan(process, &fork, &dir, args.json);
    }
    if !args.yes && !asks(process, &fork, &dir)? {
        say(process, "nothing was changed; --yes does it without a question");
        return Ok(Exit::Failed);
    }
    let dropping = Dropping::begin(process, &fork)?;
    let unheld = dropping.unheld();
    refuse_unheld(process, &unheld, args.force)?;
    let left = dropping.finish(&fork, &own, args.force)?;
    let held = dropping.held.as_ref().map(|held| held.id);
    if args.json {
        let value = as_json(&fork, held, (&unheld, &left), false);
        print_json(process, "dropped", value)?;
    } else if left.is_empty() {
        print_text(process, &dropped_words(&fork, &dir, held.map(CheckpointId::short)))?;
    }
    for path in left.iter().take(NAMED_MAX) {
        let path = ui::escape_path(path).into_owned();
        say(
            process,
            &format!("warning: kept, changed while the fork was dropped, or never held: {path}"),
        );
    }
    if left.is_empty() {
        return Ok(Exit::Ok);
    }
    say(process, "the fork is still there; run this again when no process uses it, or use --force");
    Ok(Exit::Failed)
}

/// Names what would be gone for good, and asks.
fn asks(process: &mut Process<'_>, fork: &ForkEntry, dir: &str) -> Result<bool> {
    let (unheld, _) = Dropping::look(process, fork)?;
    for line in ui::left_out(&unheld).iter().take(NAMED_MAX) {
        say(process, &format!("warning: would be removed, and is not held: {line}"));
    }
    let what = if unheld.is_empty() { "what is in" } else { "the rest of" };
    Ok(ui::ask(process, &format!("Hold {what} {dir}, and remove it?")))
}

/// What would be done: what is not held, and what stays.
fn tell_plan(
    process: &mut Process<'_>,
    fork: &ForkEntry,
    dir: &str,
    is_json: bool,
) -> Result<Exit> {
    let (unheld, left) = Dropping::look(process, fork)?;
    if is_json {
        print_json(process, "dropped", as_json(fork, None, (&unheld, &left), true))?;
        return Ok(Exit::Ok);
    }
    let what = if fork.is_there() { "hold what is in" } else { "forget" };
    let mut text = format!("would {what} {dir}, and drop the fork\n");
    for line in ui::left_out(&unheld).iter().take(NAMED_MAX) {
        text.push_str(&format!("  not held: {line}\n"));
    }
    for path in left.iter().take(NAMED_MAX) {
        let path = ui::escape_path(path);
        text.push_str(&format!("  stays with the fork, for it is never held: {path} (--force)\n"));
    }
    print_text(process, &text)?;
    say(process, "nothing was removed; without --dry-run this asks first");
    Ok(Exit::Ok)
}

fn as_json(
    fork: &ForkEntry,
    held: Option<CheckpointId>,
    (unheld, left): (&[Skipped], &[PathBuf]),
    is_dry: bool,
) -> Value {
    let left: Vec<_> = left.iter().map(|path| path.to_string_lossy()).collect();
    let unheld: Vec<_> = unheld.iter().map(skipped_json).collect();
    let held = held.map(|held| held.to_string());
    json!({
        "dir": fork.dir.to_string_lossy(),
        "held_in": held,
        "unheld": unheld,
        "left": left,
        "is_dry_run": is_dry,
    })
}

fn dropped_words(fork: &ForkEntry, dir: &str, held: Option<String>) -> String {
    match held {
        Some(held) => format!(
            "dropped the fork {dir}\nbring it back with: beforehand restore {held} --root {}\n",
            quoted(&fork.dir)
        ),
        None => format!("dropped the fork {dir}; its directory was already gone\n"),
    }
}

/// What cannot be held goes only if the user says so, having seen it.
fn refuse_unheld(process: &mut Process<'_>, unheld: &[Skipped], force: bool) -> Result<()> {
    let lines = ui::left_out(unheld);
    for line in lines.iter().take(NAMED_MAX) {
        say(process, &format!("warning: not held: {line}"));
    }
    // What a program makes again has been named, which is enough.
    let is_lost =
        |one: &&Skipped| !matches!(one.reason, SkipReason::MadeAgain | SkipReason::Output);
    let lost = unheld.iter().filter(is_lost).count() as u64;
    if lost == 0 || force || ui::ask(process, "Remove also what is not held?") {
        return Ok(());
    }
    Err(Error::other(
        format!("{} in the fork cannot be held", ui::count(lost, "path")),
        "nothing was removed; move it away, or use --force to remove it too",
    ))
}
