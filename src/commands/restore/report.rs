//! Prints the report of a restore.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use serde_json::{Value, json};

use super::{
    head,
    planned::{MISSING, PlannedRestore},
    show::{lacks_text, plan_json, words},
    unchanged::{arguments, at_most, first, losing_lines, names, outside_left_text, remaining},
};
use crate::{
    apply::ApplyOutcome,
    commands::{Project, print_json, print_text, say},
    error::Result,
    model::Completeness,
    plan::{Action, KeepReason, PlanStep, RestorePlan},
    process::{Exit, Process},
    restore::{Prepared, Restore, RestoreReport},
    store::{RepositoryStep, StepKind, repository::LostRepository},
    ui,
};

/// What came of a restore.
pub(super) struct Came<'a> {
    pub(super) shown: PlannedRestore<'a>,
    pub(super) report: RestoreReport,
    /// The command that takes it back.
    pub(super) way_back: &'static str,
    /// Whether the user has seen the plan, and agreed to it.
    pub(super) was_shown: bool,
}

/// Says what came of a restore.
pub(super) fn report(process: &mut Process<'_>, came: Came<'_>, json: bool) -> Result<Exit> {
    let project = came.shown.restore.project;
    let index_said =
        came.report.index.as_ref().and_then(|index| head::index_words(index.as_ref().ok()?));
    if json {
        let value = came_json(&came, index_said.as_deref());
        print_json(process, "restore", value)?;
    } else {
        let cd_prefix = came.shown.restore.project.cd_prefix();
        print_text(process, &came_text(&came, index_said.as_deref(), &cd_prefix))?;
    }
    missed(process, project, &came.report.outcome);
    if let Some(note) = names_note(&came.report.outcome.had_names) {
        say(process, &note);
    }
    if let Some(note) = attributes_note(&came.report.outcome.lost_attributes) {
        say(process, &note);
    }
    let barred = barred(&came.shown.prepared.plan);
    for (path, why) in &barred {
        let path = ui::escape_path(path);
        say(process, &format!("warning: not restored: {path}: {why}"));
    }
    if !came.report.is_settled {
        say(process, TRY_AGAIN);
    }
    for left in &came.report.refs_left {
        let refs: Vec<String> = left.refs.iter().map(|gone| gone.short().to_owned()).collect();
        let named = names(&refs, left.stashes.len()).join(", ");
        let id = came.shown.restore.checkpoint.id.short();
        let cd_prefix = project.cd_prefix();
        say(
            process,
            &format!(
                "warning: not made again: {named}: its name is taken, or the repository is locked; \
                 `{cd_prefix}beforehand restore {id} --repository` brings it back"
            ),
        );
    }
    if came.report.head_stayed {
        say(process, "warning: branch not moved: HEAD changed during the restore");
        return Ok(Exit::Failed);
    }
    if let Some(Err(err)) = came.report.index {
        return Err(err);
    }
    let is_whole = came.report.outcome.missed.is_empty()
        && barred.is_empty()
        && came.report.refs_left.is_empty();
    let Prepared { plan, others_versions, others_left, damaged, marked, .. } = came.shown.prepared;
    let is_exact = came.shown.restore.request.options.exact;
    let is_inner = !(is_exact || others_versions.is_empty() && others_left.is_empty());
    let is_clean =
        conflicts(plan).is_empty() && !is_inner && damaged.is_empty() && marked.is_empty();
    let is_known = came.shown.restore.checkpoint.completeness != Completeness::RecordLost
        && back(&came).all(|step| step.damaged_files(&project.state) == 0);
    Ok(match (is_whole, is_clean && is_known) {
        (false, _) => Exit::Failed,
        (true, false) => Exit::Conflicts,
        (true, true) => Exit::Ok,
    })
}

/// What can be done about paths that could not be restored.
pub(super) const TRY_AGAIN: &str = "`beforehand restore --continue` retries what was not restored, \
                         `beforehand restore --abort` undoes the whole restore";

fn came_json(came: &Came<'_>, index: Option<&str>) -> Value {
    let outcome = &came.report.outcome;
    let mut value = plan_json(came.shown, &BTreeMap::new());
    value["is_plan"] = json!(false);
    value["done"] = json!(done(came));
    value["missed"] = missed_json(outcome);
    let linked = outcome.had_names.iter();
    value["had_other_names"] = linked.map(|path| path.to_string_lossy().into_owned()).collect();
    value["set_aside"] = set_aside_json(outcome);
    value["held_in"] = json!(came.report.held.map(|id| id.to_string()));
    value["index"] = json!(index);
    value
}

/// How many paths were changed, as a list names them.
fn done(came: &Came<'_>) -> usize {
    let PlannedRestore { restore, prepared, .. } = came.shown;
    let missed = came.report.outcome.missed_paths();
    prepared.count_but(&missed, restore.project.root.path())
}

/// What was not done, and why, for scripts.
pub(super) fn missed_json(outcome: &ApplyOutcome) -> Value {
    let missed = outcome.missed.iter();
    missed.map(|it| json!({ "path": it.path.to_string_lossy(), "why": it.why })).collect()
}

/// Which repositories were moved aside, for scripts.
pub(super) fn set_aside_json(outcome: &ApplyOutcome) -> Value {
    let json = |(path, now): &(PathBuf, PathBuf)| json!({ "path": path.to_string_lossy(), "now": now.to_string_lossy() });
    outcome.set_aside.iter().map(json).collect()
}

fn came_text(came: &Came<'_>, index: Option<&str>, cd_prefix: &str) -> String {
    let PlannedRestore { restore: Restore { project, .. }, prepared, .. } = came.shown;
    let plan = &prepared.plan;
    let conflicts = conflicts(plan);
    let is_whole = came.report.outcome.missed.is_empty() && barred(plan).is_empty();
    let is_same = conflicts.is_empty() && is_whole;
    let done = done(came);
    let mut text = headline(came.shown, done, is_same);
    if !conflicts.is_empty() {
        let count = ui::count(conflicts.len() as u64, "conflict");
        let named = first(conflicts.iter().map(|path| ui::path(path, project.home.as_deref())));
        text.push_str(&format!("; {count} kept: {named}"));
    }
    text.push('\n');
    text.push_str(&repositories_text(came));
    text.push_str(&refs_text("made again", &prepared.refs_again, &came.report.refs_left));
    text.push_str(&refs_text("removed", &prepared.refs_gone, &came.report.refs_stay));
    text.push_str(&refs_text("made again before, and stays", &came.report.refs_stay, &[]));
    text.push_str(&clashes_text(came));
    text.push_str(&forced_text(came, &conflicts));
    text.push_str(&kept_text(came));
    text.push_str(&losing_lines(&prepared.losing, came.way_back));
    for line in remaining(came.shown) {
        text.push_str(&format!("{line}\n"));
    }
    text.push_str(&outside_left_text(project, &prepared.outside_left));
    let head = came.shown.head();
    let head = head.filter(|_| !prepared.head.is_lost() && !came.report.head_stayed);
    let nested: Vec<String> = came.shown.nested_heads().collect();
    let nested = nested.iter().map(String::as_str);
    for line in [index, head.as_deref()].into_iter().flatten().chain(nested) {
        text.push_str(&format!("{line}\n"));
    }
    // What is not over is tried again or taken back, and no step of undo and redo.
    let is_any = done > 0
        || prepared.stages()
        || prepared.head.moves.is_some()
        || !prepared.refs_again.is_empty()
        || !prepared.refs_gone.is_empty();
    if came.report.held.is_some() && came.report.is_settled && is_any {
        let back = came.way_back;
        text.push_str(&format!("{back} with: {cd_prefix}beforehand {back}\n"));
        if came.shown.brings().is_some() {
            let name = came.shown.quoted_fork_name();
            let drop = format!("{cd_prefix}beforehand fork --drop {name}");
            text.push_str(&format!("the fork is still there; remove it with: {drop}\n"));
        }
    }
    text
}

/// What was done, and whether everything is as it was. `is_same` if nothing stays that should not.
fn headline(shown: PlannedRestore<'_>, done: usize, is_same: bool) -> String {
    let PlannedRestore { restore, prepared, .. } = shown;
    let id = restore.checkpoint.id.short();
    let step = restore
        .request
        .step()
        .map(|step| format!("before step {}.{}", step.number.0, step.number.1));
    let from = step.as_ref().map_or_else(|| format!("from {id}"), |step| format!("to {step}"));
    let at = step.unwrap_or_else(|| format!("at {id}"));
    let plan = &prepared.plan;
    match (done, is_same) {
        (0, true) if shown.is_revert() || shown.brings().is_some() => {
            shown.nothing_left_words().unwrap_or_default()
        }
        (0, false) if shown.is_revert() => "nothing was reverted".to_owned(),
        (done, _) if shown.is_revert() => {
            format!(
                "reverted {} of turn {}",
                ui::count(done as u64, "path"),
                shown.restore.turn_number()
            )
        }
        (0, false) if shown.brings().is_some() => "nothing was brought".to_owned(),
        (done, _) if shown.brings().is_some() => {
            format!("brought {} from {}", ui::count(done as u64, "path"), shown.fork_name())
        }
        (0, true) if restore.request.undoes.is_some() && !prepared.is_empty() => {
            let undoes = restore.request.undoes.as_deref().unwrap_or_default();
            format!("undid {undoes}; its files are as they were {at}")
        }
        (0, true) if !remaining(shown).is_empty() || keeps_quietly(plan) => {
            format!("everything else is as it was {at}")
        }
        (0, true) if prepared.stages() => format!("all files are as they were {at}"),
        (0, true) if prepared.outside_left.is_empty() => {
            format!("everything is as it was {at}")
        }
        (0, true) => format!("everything in the project is as it was {at}"),
        (0, false) => "nothing was restored".to_owned(),
        (done, _) => {
            let undoes = restore.request.undoes.as_deref();
            let undoes = undoes.map(|what| format!("undid {what}: ")).unwrap_or_default();
            format!("{undoes}restored {} {from}", ui::count(done as u64, "path"))
        }
    }
}

/// The branches, tags and stashes to which something was done, but for those that are `left`: a line for each
/// repository.
fn refs_text(done: &str, refs: &[LostRepository], left: &[LostRepository]) -> String {
    let mut text = String::new();
    for lost in refs {
        let mut lost = lost.clone();
        lost.retain_but(left);
        if lost.has_all_refs() {
            continue;
        }
        let refs: Vec<String> = lost.refs.iter().map(|gone| gone.short().to_owned()).collect();
        let named = names(&refs, lost.stashes.len()).join(", ");
        text.push_str(&format!("{done}: {named}\n"));
    }
    text
}

/// What became of repositories, a line each.
fn repositories_text(came: &Came<'_>) -> String {
    let PlannedRestore { restore: Restore { project, .. }, prepared, .. } = came.shown;
    let mut text = String::new();
    let repositories = &prepared.repositories;
    // What only made way is back in another form.
    let makes_way = |step: &RepositoryStep| {
        let is_pointer = |it: &RepositoryStep| matches!(it.kind, StepKind::Pointer(_));
        step.is_removal() && repositories.iter().any(|it| is_pointer(it) && it.place == step.place)
    };
    for step in back(came).filter(|step| !makes_way(step)) {
        let what = if step.is_removal() { "gone again" } else { "back" };
        let thing = match &step.kind {
            StepKind::Part(below) if below.parent().is_some_and(|it| it.ends_with("worktrees")) => {
                "the worktree's part of the repository"
            }
            StepKind::Part(_) => "the submodule's repository",
            _ => "the repository",
        };
        let lacks = lacks_text(project, step);
        let place = ui::escape(step.target().as_os_str().as_encoded_bytes()).into_owned();
        text.push_str(&format!("{thing} is {what}: {place}{lacks}\n"));
    }
    text
}

/// The repositories that were made or removed.
fn back<'a>(came: &'a Came<'_>) -> impl Iterator<Item = &'a RepositoryStep> {
    let missed = &came.report.outcome.missed;
    let steps = came.shown.prepared.repositories.iter();
    steps.filter(move |step| missed.iter().all(|missed| missed.path != step.target()))
}

/// Why files stay that another author changed, a line each.
fn clashes_text(came: &Came<'_>) -> String {
    if came.shown.takes_options() && came.was_shown {
        return String::new();
    }
    let line = |step: &PlanStep| {
        let (path, (_, why)) = (ui::escape(step.path.as_bytes()), words(step, came.shown));
        format!("  {path}: {why}")
    };
    let lines = came.shown.prepared.plan.conflicts().map(line).collect();
    at_most(lines).into_iter().map(|line| line + "\n").collect()
}

/// How to restore what an undo kept. The same command with `--force` would go one turn further now.
fn forced_text(came: &Came<'_>, conflicts: &[PathBuf]) -> String {
    let is_step = !came.shown.takes_options() && !came.shown.is_revert();
    let is_advised = is_step && came.shown.brings().is_none();
    let Restore { project, checkpoint, .. } = came.shown.restore;
    // What stays only because of something in it, force does not restore either.
    let steps = came.shown.prepared.plan.steps.iter();
    let is_around = keeps(KeepReason::InTheWay);
    let around: Vec<&Path> =
        steps.filter(|step| is_around(step)).map(|step| step.path.as_path()).collect();
    let forced: Vec<&Path> =
        conflicts.iter().map(PathBuf::as_path).filter(|path| !around.contains(path)).collect();
    if forced.is_empty() || !is_advised {
        return String::new();
    }
    let picked = arguments(project, forced.into_iter());
    let id = checkpoint.id.short();
    let cd_prefix = project.cd_prefix();
    format!("to restore what was kept: {cd_prefix}beforehand restore {id} --force -- {picked}\n")
}

/// What stays because another author changed it.
pub(super) fn conflicts(plan: &RestorePlan) -> Vec<PathBuf> {
    paths_of(plan, PlanStep::is_conflict)
}

/// The steps of a plan with their paths: relative to the root, or absolute if they are outside it.
fn all_steps(plan: &RestorePlan) -> impl Iterator<Item = (PathBuf, &PlanStep)> {
    let below = plan.steps.iter().map(|step| (step.path.as_path().to_owned(), step));
    below.chain(plan.outside.steps.iter().map(|step| (step.path.at_top(), step)))
}

/// The paths of some steps.
pub(super) fn paths_of(plan: &RestorePlan, is_meant: impl Fn(&PlanStep) -> bool) -> Vec<PathBuf> {
    all_steps(plan).filter(|(_, step)| is_meant(step)).map(|(path, _)| path).collect()
}

/// What stays because what is there now, or was then, cannot be read, and why.
pub(super) fn barred(plan: &RestorePlan) -> Vec<(PathBuf, String)> {
    let why = |step: &PlanStep| match step.action {
        Action::Keep(KeepReason::Unseen(why)) => {
            Some(format!("its present content {}", why.predicate()))
        }
        Action::Keep(KeepReason::Missing) => Some(MISSING.to_owned()),
        _ => None,
    };
    all_steps(plan).filter_map(|(path, step)| Some((path, why(step)?))).collect()
}

/// What was made since and stays, and where conflicts are marked.
fn kept_text(came: &Came<'_>) -> String {
    let Prepared { plan, marked, .. } = came.shown.prepared;
    let mut text = String::new();
    if !marked.is_empty() {
        let named = first(marked.iter().map(|path| ui::escape(path.as_bytes())));
        text.push_str(&format!("conflicts marked in: {named}\n"));
    }
    let Restore { project, checkpoint, request, .. } = came.shown.restore;
    let is_new = keeps(KeepReason::New);
    let is_outside = plan.outside.steps.iter().any(&is_new);
    let outside = if is_outside { " --outside" } else { "" };
    let how = match (request.options.keep_new, came.shown.takes_options()) {
        (true, _) => String::new(),
        (false, _) if came.shown.is_revert() || came.shown.brings().is_some() => String::new(),
        (false, true) => " (--exact removes them)".to_owned(),
        (false, false) => {
            let id = checkpoint.id.short();
            let cd_prefix = project.cd_prefix();
            format!(" (`{cd_prefix}beforehand restore {id} --exact{outside}` removes them)")
        }
    };
    for (paths, thing, why, how) in [
        (paths_of(plan, is_new), "path", "made since", &*how),
        (paths_of(plan, keeps(KeepReason::OfOthers)), "path", "changed by others", ""),
        (paths_of(plan, keeps(KeepReason::Ignored)), "ignored path", "made since", ""),
        (paths_of(plan, keeps(KeepReason::GitPrivate)), "path", "of git's own", ""),
    ] {
        if !paths.is_empty() {
            let (count, named) = (ui::count(paths.len() as u64, thing), escaped(&paths));
            text.push_str(&format!("{count} {why} kept: {named}{how}\n"));
        }
    }
    text
}

fn escaped(paths: &[PathBuf]) -> String {
    first(paths.iter().map(|path| ui::escape_path(path)))
}

/// Whether a step keeps what is there for this reason.
fn keeps(reason: KeepReason) -> impl Fn(&PlanStep) -> bool {
    move |step| step.action == Action::Keep(reason)
}

/// Whether something stays that is not as it was and is no conflict.
fn keeps_quietly(plan: &RestorePlan) -> bool {
    use KeepReason::{GitPrivate, Ignored, Merged, OfOthers};
    let quiet = [OfOthers, Ignored, GitPrivate, Merged].map(keeps);
    all_steps(plan).any(|(_, step)| quiet.iter().any(|is_it| is_it(step)))
}

/// What is worth knowing of files that were hard links.
fn names_note(paths: &[PathBuf]) -> Option<String> {
    (!paths.is_empty()).then(|| {
        format!("note: had other names (hard links), which keep what was in it: {}", escaped(paths))
    })
}

/// What is worth knowing of files with attributes that only the system gives.
fn attributes_note(paths: &[PathBuf]) -> Option<String> {
    (!paths.is_empty())
        .then(|| format!("note: lost extended attributes that are not kept: {}", escaped(paths)))
}

/// Names what could not be done.
pub(super) fn missed(process: &mut Process<'_>, project: &Project, outcome: &ApplyOutcome) {
    for missed in &outcome.missed {
        let path = ui::path(&missed.path, project.home.as_deref());
        let why = ui::escape_line(missed.why.as_bytes());
        say(process, &format!("warning: not restored: {path}: {why}"));
    }
    for (place, now) in &outcome.set_aside {
        let place = ui::path(place, project.home.as_deref());
        let now = ui::path(now, project.home.as_deref());
        say(
            process,
            &format!(
                "warning: the replaced {place} has content that no checkpoint holds: it is now {now}"
            ),
        );
    }
}
