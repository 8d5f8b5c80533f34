//! `--into`: writes a checkpoint's files to another directory. It overwrites nothing, so it holds
//! nothing.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use serde_json::{Value, json};

use super::{
    report,
    unchanged::{damaged_lines, record_lost_line},
};
use crate::{
    apply::{self, ApplyOutcome},
    commands::{Project, print_json, print_text, rows::skipped_json, say},
    error::{Error, Result},
    model::{Checkpoint, CheckpointId, Content, Kind, RelPath, Root, RootKind, Skipped},
    plan::PlanStep,
    process::{Exit, Process},
    project::{LaterTurns, Then},
    restore::{Restore, elsewhere, left_out, refuse_unknown},
    store, ui,
};

/// How it is done and told.
#[derive(Clone, Copy)]
pub(super) struct IntoOptions {
    /// Whether nothing is written.
    pub(super) is_dry: bool,
    /// Whether it is told as JSON.
    pub(super) is_json: bool,
}

/// Writes what is picked of a checkpoint to `dir`, which must be empty or not there.
pub(super) fn run(
    process: &mut Process<'_>,
    restore: Restore<'_>,
    dir: &Path,
    how: IntoOptions,
) -> Result<Exit> {
    let Restore { project, checkpoint, request } = restore;
    if request.picked.names_outside() {
        return Err(Error::usage(
            "`--into` writes files of the project alone",
            "restore what is outside where it was, without `--into`",
        ));
    }
    let written = WrittenCopies::of(process, restore, dir, how.is_dry)?;
    if how.is_json {
        print_json(process, "into", written.json(checkpoint, how))?;
    } else {
        let told = written.words(project, checkpoint, how);
        print_text(process, &told)?;
    }
    say_missing(process, &written.missing);
    for (path, why) in request.step().into_iter().flat_map(|step| &step.gaps) {
        let path = ui::escape(path.as_bytes());
        say(process, &format!("note: {path} left out: {}", why.words()));
    }
    let lost = record_lost_line(checkpoint);
    for line in lost.iter().cloned().chain(damaged_lines(&written.damaged)) {
        say(process, &format!("note: {line}"));
    }
    if !checkpoint.outside.is_empty() {
        let count = ui::count(checkpoint.outside.len() as u64, "path");
        say(process, &format!("note: {count} outside the project left out"));
    }
    report::missed(process, project, &written.outcome);
    Ok(match (written.outcome.missed.is_empty(), lost) {
        (false, _) => Exit::Failed,
        (true, Some(_)) => Exit::Conflicts,
        (true, None) => Exit::Ok,
    })
}

/// What was written where, or would be.
struct WrittenCopies {
    place: PathBuf,
    /// How many files.
    count: usize,
    /// What the checkpoint does not hold.
    missing: Vec<Skipped>,
    /// Later checkpoints that may hold more of it, and are damaged.
    damaged: BTreeSet<CheckpointId>,
    outcome: ApplyOutcome,
}

impl WrittenCopies {
    fn of(process: &Process<'_>, restore: Restore<'_>, dir: &Path, is_dry: bool) -> Result<Self> {
        let Restore { project, checkpoint, request } = restore;
        let place = elsewhere::place(process, project, dir)?;
        let Then { tree: then, damaged } = match request.step() {
            Some(step) => step.then.clone(),
            None => project.tree_of(checkpoint, LaterTurns::All)?,
        };
        refuse_unknown(project, &request.picked, &[(checkpoint, &then)])?;
        let mut files = store::manifest(project.store.as_ref(), &then)?;
        files.retain(|path, _| request.step().is_none_or(|it| !it.gaps.contains_key(path)));
        let plan = elsewhere::plan(checkpoint.id, &request.picked, &files);
        let mut missing = left_out(checkpoint, &then);
        missing.retain(|skipped| match RelPath::from_bytes(&skipped.path) {
            Ok(path) => skipped.reason.matters() && request.picked.has(&path),
            Err(_) => false,
        });
        let count = plan.steps.iter().filter(|step| !is_directory(step)).count();
        let mut outcome = ApplyOutcome::default();
        elsewhere::refuse_full(&place)?;
        if !is_dry {
            elsewhere::make(&place)?;
            let root = Root::new(place.clone(), RootKind::Plain { why: None });
            let open = |content: &Content| project.store.open(content);
            outcome = apply::run(&root, &plan, &open, &|_| None, checkpoint.id)?;
        }
        Ok(Self { place, count, missing, damaged, outcome })
    }

    fn json(&self, checkpoint: &Checkpoint, how: IntoOptions) -> Value {
        json!({
            "checkpoint": checkpoint.id.to_string(),
            "into": self.place.to_string_lossy(),
            "files": self.count,
            "is_dry_run": how.is_dry,
            "missing": self.missing.iter().map(skipped_json).collect::<Vec<_>>(),
            "missed": report::missed_json(&self.outcome),
            "damaged": self.damaged.iter().map(ToString::to_string).collect::<Vec<_>>(),
        })
    }

    fn words(&self, project: &Project, checkpoint: &Checkpoint, how: IntoOptions) -> String {
        let files = ui::count(self.count as u64, "file");
        let place = ui::path(&self.place, project.home.as_deref());
        let id = checkpoint.id.short();
        if how.is_dry {
            format!("{files} of {id} would be written to {place}\n")
        } else {
            format!("wrote {files} of {id} to {place}\n")
        }
    }
}

/// Names what the checkpoint does not hold.
fn say_missing(process: &mut Process<'_>, missing: &[Skipped]) {
    for line in super::unchanged::at_most(ui::left_out(missing)) {
        say(process, &format!("note: missing, because it was not held: {line}"));
    }
}

fn is_directory(step: &PlanStep) -> bool {
    step.then.is_some_and(|then| then.kind == Kind::Directory)
}
