//! What people see of a restore: the plan before it, the outcome after it.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use super::remains::{NAMED_MAX, left, losing_lines, outside_left_text, some, unchanged};
use crate::{
    apply::Outcome,
    commands::{Project, print, print_json},
    error::{Error, Result},
    model::{Checkpoint, Kind, RelPath, SkipReason},
    plan::{Action, Author, Kept, Picked, RestorePlan, Step},
    process::{Exit, Process},
    restore::{Advice, Prepared, Report, Request, bytes_now, bytes_then},
    store::{IndexOutcome, RepositoryStep, StepKind},
    ui::{self, Align, Change, Lines, Side},
};

/// The first line of a plan, and a second one where the user may mean less.
pub(super) fn heading(
    process: &Process<'_>,
    project: &Project,
    checkpoint: &Checkpoint,
    request: &Request,
) -> String {
    let id = checkpoint.id.short();
    let when = ui::Clock::local(process.now).when(checkpoint.taken_at);
    let root = ui::path(project.root.path(), project.home.as_deref());
    let mut text = match request.verb {
        "undo" => format!("undoing: back to checkpoint {id} ({when}) in {root}"),
        "redo" => format!("redoing: forward to checkpoint {id} ({when}) in {root}"),
        _ => format!("restoring checkpoint {id} ({when}) in {root}"),
    };
    let here = process.cwd.as_deref().and_then(|cwd| std::fs::canonicalize(cwd).ok());
    if request.picked == Picked::All && here.is_some_and(|here| here != project.root.path()) {
        text.push_str("\nthat is the whole of it, not only this directory; `-- .` means this one");
    }
    text
}

/// Prints a plan.
pub(super) fn plan(
    process: &mut Process<'_>,
    project: &Project,
    prepared: &Prepared,
    heading: &str,
    json: bool,
) -> Result<()> {
    if json {
        let facts = Facts::of(project, prepared);
        return print_json(process, &plan_json(prepared, &facts));
    }
    print(process, &format!("{heading}\n\n{}", plan_text(project, prepared)))
}

/// A plan in words, without a heading.
pub(super) fn plan_text(project: &Project, prepared: &Prepared) -> String {
    let facts = Facts::of(project, prepared);
    let plan = &prepared.plan;
    let mut text = repositories_text(project, &prepared.repositories);
    text.push_str(&losing_lines(&prepared.losing));
    if plan.steps.is_empty() && plan.outside.steps.is_empty() {
        if text.is_empty() && !prepared.stages {
            text.push_str(match (&prepared.outside_left[..], &unchanged(project, prepared)[..]) {
                ([], []) => "everything is as it was; there is nothing to do\n",
                ([], [_, ..]) => "everything else is as it was; there is nothing to do\n",
                ([_, ..], _) => {
                    "everything in the project is as it was; there is nothing to do in it\n"
                }
            });
        }
        text.push_str(&outside_text(project, prepared));
    } else {
        text.push_str(&rows_text(prepared, &facts));
        text.push_str(&outside_text(project, prepared));
        text.push_str(&summary(prepared));
    }
    if prepared.stages {
        text.push_str("git's index goes back to what was staged\n");
    }
    for line in unchanged(project, prepared) {
        text.push_str(&format!("{line}\n"));
    }
    if let Some(commits) = prepared.commits.as_ref().filter(|_| !prepared.is_head_lost) {
        text.push_str(&format!("{commits}\n"));
    }
    text
}

/// What happens to repositories, a row each.
fn repositories_text(project: &Project, steps: &[RepositoryStep]) -> String {
    let mut text = String::new();
    for step in steps {
        let place = step.place.strip_prefix(project.root.path()).unwrap_or(&step.place);
        let place = ui::path(place, project.home.as_deref());
        let row = match &step.kind {
            StepKind::Recreate => format!("  recreate  {place}/   the repository"),
            StepKind::Replace(why) => {
                let why = ui::escape_line(why.as_bytes());
                format!("  restore   {place}/   the repository: {why}; held first")
            }
            StepKind::Part(below) => {
                let below = ui::escape(below.as_os_str().as_encoded_bytes());
                let whose = if below.starts_with("modules") { "submodule" } else { "worktree" };
                format!("  recreate  {place}/{below}/   the {whose}'s part of it")
            }
            StepKind::Pointer(_) => format!("  recreate  {place}   leads to the repository"),
            StepKind::Remove(why) => format!("  remove    {place}   {why}; held first"),
        };
        text.push_str(&row);
        text.push_str(&lacks_text(project, step));
        text.push('\n');
    }
    text
}

/// What a repository lacks when it is back.
fn lacks_text(project: &Project, step: &RepositoryStep) -> String {
    let lacks = matches!(step.kind, StepKind::Recreate | StepKind::Replace(_))
        .then(|| step.lacks(&project.state))
        .flatten();
    lacks.map_or_else(String::new, |lacks| format!("; {}", ui::escape(lacks.as_bytes())))
}

/// What takes reading to know, and is only shown.
struct Facts {
    lines: BTreeMap<RelPath, Lines>,
    commits: Option<String>,
    repositories: Vec<RepositoryStep>,
}

/// Counting lines must not keep anybody waiting for the plan.
const COUNTING: Duration = Duration::from_millis(300);

impl Facts {
    fn of(project: &Project, prepared: &Prepared) -> Self {
        let deadline = Instant::now() + COUNTING;
        let mut lines = BTreeMap::new();
        for step in prepared.plan.deeds() {
            if Instant::now() >= deadline {
                break;
            }
            let counted = count(project, &prepared.plan, step, deadline);
            lines.extend(counted.map(|counted| (step.path.clone(), counted)));
        }
        let (commits, repositories) = (prepared.commits.clone(), prepared.repositories.clone());
        Self { lines, commits, repositories }
    }
}

/// How many lines come and go when a step is done.
fn count(project: &Project, plan: &RestorePlan, step: &Step, deadline: Instant) -> Option<Lines> {
    let (then, now) = (step.then?, step.now?);
    let old = bytes_now(project, &step.path)?;
    let new = match plan.merges.get(&step.path) {
        Some(merged) => merged.bytes.clone(),
        None => bytes_then(project, &then)?,
    };
    let change = Change {
        path: step.path.as_bytes(),
        old: Side::File { bytes: &old, permissions: now.permissions },
        new: Side::File { bytes: &new, permissions: then.permissions },
    };
    change.lines(Some(deadline)).filter(|lines| lines.added + lines.removed > 0)
}

/// More of one kind are counted, not listed; `--json` has them all.
const ROWS_MAX: usize = 200;

/// The plan in groups: what changes, what comes back, what goes, what stays.
fn rows_text(prepared: &Prepared, facts: &Facts) -> String {
    let plan = &prepared.plan;
    let shown: Vec<&Step> = plan.steps.iter().filter(|step| !plan.is_implied(step)).collect();
    let name = |step: &Step| {
        let slash = if is_directory(step) { "/" } else { "" };
        format!("{}{slash}", ui::escape(step.path.as_bytes()))
    };
    let width = shown.iter().map(|step| ui::cells(&name(step))).max().unwrap_or(0).min(WIDTH_MAX);
    let mut text = String::new();
    for verb in ["restore", "merge", "recreate", "remove", "keep", "leave"] {
        let rows: Vec<&&Step> =
            shown.iter().filter(|step| words(step, prepared).0 == verb).collect();
        for step in rows.iter().take(ROWS_MAX) {
            let lines = facts.lines.get(&step.path).map(ToString::to_string);
            let said = lines
                .into_iter()
                .chain(Some(words(step, prepared).1))
                .filter(|said| !said.is_empty());
            let said = said.collect::<Vec<_>>().join("   ");
            let row = format!("  {verb:<9} {}   {said}", ui::pad(&name(step), width, Align::Left));
            text.push_str(row.trim_end());
            text.push('\n');
        }
        if rows.len() > ROWS_MAX {
            let more = ui::number((rows.len() - ROWS_MAX) as u64);
            text.push_str(&format!("  {verb:<9} … and {more} more\n"));
        }
    }
    text
}

/// What differs outside the project: what is put back, then what is not.
fn outside_text(project: &Project, prepared: &Prepared) -> String {
    let row = |path: &Path, verb: &str, why: &str| {
        format!("  {verb:<9} {}   {why}\n", ui::path(path, project.home.as_deref()))
    };
    let outside = prepared.plan.outside.steps.iter().map(|step| {
        let (verb, why) = words(step, prepared);
        let why = if why.is_empty() { why } else { format!("; {why}") };
        row(&step.path.at_top(), verb, &format!("outside the project{why}"))
    });
    let stays = prepared.outside_left.iter();
    let stays = stays.map(|path| row(path, "leave", "outside the project; needs --outside"));
    outside.chain(stays).collect()
}

/// Longer names push their words aside.
const WIDTH_MAX: usize = 48;

fn summary(prepared: &Prepared) -> String {
    let deeds = prepared.count() as u64;
    let kept_outside = prepared.plan.outside.steps.iter().filter(|step| !step.is_deed());
    let kept = (prepared.plan.kept().count() + kept_outside.count()) as u64;
    let mut text = format!("\n{} would change", ui::count(deeds, "path"));
    if kept > 0 {
        text.push_str(&format!(", {} kept", ui::number(kept)));
    }
    text.push('\n');
    text
}

fn is_directory(step: &Step) -> bool {
    step.then.or(step.now).is_some_and(|entry| entry.kind == Kind::Directory)
}

/// What happens to a path, and a word on why.
fn words(step: &Step, prepared: &Prepared) -> (&'static str, String) {
    let advice = prepared.advice;
    let (verb, why) = match (step.action, step.author) {
        (Action::Restore, Author::Agent | Author::Restore) => ("restore", ""),
        (Action::Restore, Author::Unknown) => ("restore", "not known who changed it; held first"),
        (Action::Restore, Author::Other) => {
            ("restore", "changed since, not by the agent; held first")
        }
        (Action::Restore, Author::Unclear) => {
            ("restore", "changed since, perhaps by a call that was cut off; held first")
        }
        (Action::Recreate, Author::Other) => ("recreate", "deleted since, not by the agent"),
        (Action::Recreate, _) => ("recreate", ""),
        (Action::Merge, _) if prepared.marked.contains(&step.path) => {
            ("merge", "with what was changed after the agent; conflicts are marked")
        }
        (Action::Merge, _) => ("merge", "with what was changed after the agent"),
        (Action::Remove, Author::Agent) => ("remove", "made by the agent; held first"),
        (Action::Remove, Author::Restore) => ("remove", "put there by a restore; held first"),
        (Action::Remove, _) => ("remove", "made since; held first"),
        (Action::Keep(Kept::Ignored), _) => ("keep", "ignored, and not known who made it"),
        (Action::Keep(Kept::Edited), Author::Unclear) if step.then.is_none() => {
            ("keep", "made since, perhaps by a call that was cut off (--force removes it)")
        }
        (Action::Keep(Kept::Edited), _) if step.then.is_none() => {
            ("keep", "made since, then changed (--force removes it)")
        }
        (Action::Keep(Kept::Edited), Author::Unclear) => {
            ("keep", "changed since, perhaps by a call that was cut off (use --force)")
        }
        (Action::Keep(Kept::Edited), _) => ("keep", edited_words(advice)),
        (Action::Keep(Kept::New), Author::Agent) => ("keep", "made by the agent"),
        (Action::Keep(Kept::New), Author::Restore) => ("keep", "put there by a restore"),
        (Action::Keep(Kept::New), _) if advice.is_restore => {
            ("keep", "not made by the agent (--exact removes it)")
        }
        (Action::Keep(Kept::New), _) => ("keep", "not made by the agent"),
        (Action::Keep(Kept::InTheWay), _) => ("keep", "something in it, or in its place, stays"),
        (Action::Keep(Kept::GitPrivate), _) => ("keep", "git's own"),
        (Action::Keep(Kept::Changed), _) => ("keep", "changed since"),
        (Action::Keep(Kept::Repository), _) => ("leave", "a repository made since"),
        (Action::Keep(Kept::Unseen(why)), _) => {
            return ("leave", format!("what is there now {}", why.words()));
        }
        (Action::Keep(Kept::NotCovered(why)), _) => {
            return ("leave", format!("not covered: {}", why.words()));
        }
    };
    (verb, why.to_owned())
}

/// What can be done about a file that the user changed after the agent.
fn edited_words(advice: Advice) -> &'static str {
    match (advice.is_restore, advice.merges, advice.marks) {
        (false, ..) => "changed since, not by the agent (use --force)",
        (true, false, _) => "changed since, not by the agent (use --merge or --force)",
        (true, true, false) => {
            "changed since, not by the agent, and conflicts with it (use --markers or --force)"
        }
        (true, true, true) => "changed since, not by the agent, and cannot be merged (use --force)",
    }
}

fn plan_json(prepared: &Prepared, facts: &Facts) -> Value {
    let plan = &prepared.plan;
    let step = |step: &Step| {
        let (action, why) = words(step, prepared);
        let author = match step.author {
            Author::Agent => "agent",
            Author::Restore => "restore",
            Author::Other => "other",
            Author::Unclear | Author::Unknown => "unknown",
        };
        let lines = facts.lines.get(&step.path);
        json!({
            "path": String::from_utf8_lossy(step.path.as_bytes()),
            "action": action,
            "why": why,
            "author": author,
            "conflict": step.is_conflict(),
            "lines": lines.map(|lines| json!({ "added": lines.added, "removed": lines.removed })),
        })
    };
    let outside = |step: &Step| step.path.at_top().to_string_lossy().into_owned();
    let named = |path: &RelPath| String::from_utf8_lossy(path.as_bytes()).into_owned();
    let repository = |step: &RepositoryStep| {
        let (action, why) = match &step.kind {
            StepKind::Recreate | StepKind::Part(_) | StepKind::Pointer(_) => ("recreate", ""),
            StepKind::Replace(why) => ("restore", &why[..]),
            StepKind::Remove(why) => ("remove", *why),
        };
        json!({ "path": step.place.to_string_lossy(), "action": action, "why": why })
    };
    json!({
        "checkpoint": plan.of.to_string(),
        "repositories": facts.repositories.iter().map(repository).collect::<Vec<_>>(),
        "steps": plan.steps.iter().map(step).collect::<Vec<_>>(),
        "outside": plan.outside.deeds().map(outside).collect::<Vec<_>>(),
        "outside_kept": plan.outside.steps.iter().filter(|step| !step.is_deed()).map(outside).collect::<Vec<_>>(),
        "outside_left":
            prepared.outside_left.iter().map(|path| path.to_string_lossy()).collect::<Vec<_>>(),
        "lost_refs": prepared.lost.iter().flat_map(|lost| &lost.refs).collect::<Vec<_>>(),
        "left": plan.left.iter().map(crate::commands::show::skipped_json).collect::<Vec<_>>(),
        "left_new":
            prepared.new_unheld.iter().map(crate::commands::show::skipped_json).collect::<Vec<_>>(),
        "inner_roots": prepared.inner_roots.iter().map(named).collect::<Vec<_>>(),
        "inner_steps": prepared.inner_steps.iter().map(|(path, id)| {
            json!({ "path": named(path), "checkpoint": id.to_string() })
        }).collect::<Vec<_>>(),
        "marked": prepared.marked.iter().map(named).collect::<Vec<_>>(),
        "commits": facts.commits,
    })
}

/// What came of a restore.
pub(super) struct Came<'a> {
    pub(super) checkpoint: &'a Checkpoint,
    pub(super) prepared: &'a Prepared,
    pub(super) report: Report,
    /// The command that takes it back.
    pub(super) way_back: &'static str,
}

/// Says what came of a restore.
pub(super) fn report(
    process: &mut Process<'_>,
    project: &Project,
    came: Came<'_>,
    json: bool,
) -> Result<Exit> {
    let index_said = came.report.index.as_ref().and_then(index_words);
    if json {
        let value = came_json(&came, index_said.as_deref());
        print_json(process, &value)?;
    } else {
        print(process, &came_text(project, &came, index_said.as_deref()))?;
    }
    missed(process, project, &came.report.outcome);
    if let Some(note) = names_note(&came.report.outcome.had_names) {
        say(process, &note)?;
    }
    let unseen = unseen(&came.prepared.plan);
    for (path, why) in &unseen {
        let (path, why) = (ui::escape_path(path), why.words());
        say(process, &format!("warning: not restored: {path}: what is there now {why}"))?;
    }
    if let Some(Err(err)) = came.report.index {
        return Err(err);
    }
    if !came.report.is_settled {
        say(process, TRY_AGAIN)?;
    }
    if came.report.head_stayed {
        say(process, "warning: HEAD stays where it is: it has moved in this very moment")?;
        return Ok(Exit::Failed);
    }
    let is_whole = came.report.outcome.missed.is_empty() && unseen.is_empty();
    let Prepared { plan, inner_steps, marked, .. } = came.prepared;
    let is_clean = conflicts(plan).is_empty() && inner_steps.is_empty() && marked.is_empty();
    Ok(match (is_whole, is_clean) {
        (false, _) => Exit::Failed,
        (true, false) => Exit::Conflicts,
        (true, true) => Exit::Ok,
    })
}

/// What can be done about paths that could not be restored.
const TRY_AGAIN: &str = "`beforehand restore --continue` tries again what was not restored, \
                         `beforehand restore --abort` takes back all of it";

fn came_json(came: &Came<'_>, index: Option<&str>) -> Value {
    let missed = came.report.outcome.missed.iter();
    let missed: Vec<_> =
        missed.map(|(path, why)| json!({ "path": path.to_string_lossy(), "why": why })).collect();
    let (lines, commits) = (BTreeMap::new(), came.prepared.commits.clone());
    let facts = Facts { lines, commits, repositories: came.prepared.repositories.clone() };
    let mut value = plan_json(came.prepared, &facts);
    value["done"] = json!(came.report.outcome.done + came.prepared.repositories.len());
    value["missed"] = json!(missed);
    let linked = came.report.outcome.had_names.iter();
    value["had_other_names"] = linked.map(|path| path.to_string_lossy().into_owned()).collect();
    let aside = came.report.outcome.set_aside.iter();
    let aside = aside.map(
        |(place, now)| json!({ "path": place.to_string_lossy(), "now": now.to_string_lossy() }),
    );
    value["set_aside"] = aside.collect();
    value["held_in"] = json!(came.report.held.map(|id| id.to_string()));
    value["index"] = json!(index);
    value
}

fn came_text(project: &Project, came: &Came<'_>, index: Option<&str>) -> String {
    let plan = &came.prepared.plan;
    let id = came.checkpoint.id.short();
    let conflicts = conflicts(plan);
    let is_whole = came.report.outcome.missed.is_empty() && unseen(plan).is_empty();
    let is_same = conflicts.is_empty() && is_whole;
    let missed = came.report.outcome.missed.iter().map(|(path, _)| path.as_path()).collect();
    let done = came.prepared.count_but(&missed, project.root.path());
    let mut text = match (done, is_same) {
        (0, true) if !left(project, came.prepared).is_empty() || keeps_ignored(plan) => {
            format!("everything else is as it was at {id}")
        }
        (0, true) if came.prepared.stages => format!("all files are as they were at {id}"),
        (0, true) if came.prepared.outside_left.is_empty() => {
            format!("everything is as it was at {id}")
        }
        (0, true) => format!("everything in the project is as it was at {id}"),
        (0, false) => "nothing was restored".to_owned(),
        (done, _) => format!("restored {} from {id}", ui::count(done as u64, "path")),
    };
    if !conflicts.is_empty() {
        let count = ui::count(conflicts.len() as u64, "conflict");
        let named = conflicts.iter().take(NAMED_MAX);
        let named = named.map(|path| ui::path(path, project.home.as_deref())).collect::<Vec<_>>();
        let more = if conflicts.len() > NAMED_MAX { ", …" } else { "" };
        text.push_str(&format!("; {count} kept: {}{more}", named.join(", ")));
    }
    text.push('\n');
    let repositories = &came.prepared.repositories;
    // What only made way is back in another form.
    let makes_way = |step: &RepositoryStep| {
        let is_pointer = |it: &RepositoryStep| matches!(it.kind, StepKind::Pointer(_));
        step.is_removal() && repositories.iter().any(|it| is_pointer(it) && it.place == step.place)
    };
    for step in repositories.iter().filter(|step| !makes_way(step)) {
        let what = if step.is_removal() { "gone again" } else { "back" };
        let thing = match &step.kind {
            StepKind::Part(below) if below.starts_with("modules") => "the submodule's repository",
            StepKind::Part(_) => "the worktree's part of the repository",
            _ => "the repository",
        };
        let lacks = lacks_text(project, step);
        let place = ui::escape(step.target().as_os_str().as_encoded_bytes()).into_owned();
        text.push_str(&format!("{thing} is {what}: {place}{lacks}\n"));
    }
    text.push_str(&kept_text(came));
    text.push_str(&losing_lines(&came.prepared.losing));
    for line in left(project, came.prepared) {
        text.push_str(&format!("{line}\n"));
    }
    text.push_str(&outside_left_text(project, &came.prepared.outside_left));
    let commits = came.prepared.commits.as_deref().filter(|_| !came.prepared.is_head_lost);
    for line in [index, commits].into_iter().flatten() {
        text.push_str(&format!("{line}\n"));
    }
    if came.report.held.is_some() {
        let back = came.way_back;
        text.push_str(&format!("{back} with: beforehand {back}\n"));
    }
    text
}

/// What stays because another author changed it.
fn conflicts(plan: &RestorePlan) -> Vec<PathBuf> {
    let outside = plan.outside.steps.iter().filter(|step| step.is_conflict());
    let below = plan.conflicts().map(|step| step.path.as_path().to_owned());
    below.chain(outside.map(|step| step.path.at_top())).collect()
}

/// What stays because nothing can be said of what is there now.
fn unseen(plan: &RestorePlan) -> Vec<(PathBuf, SkipReason)> {
    let below = plan.unseen().map(|(step, why)| (step.path.as_path().to_owned(), why));
    let outside = plan.outside.steps.iter();
    let outside = outside.filter_map(|step| Some((step.path.at_top(), step.unseen()?)));
    below.chain(outside).collect()
}

/// What was made since and stays, and where conflicts are marked.
fn kept_text(came: &Came<'_>) -> String {
    let Prepared { plan, marked, advice, .. } = came.prepared;
    let mut text = String::new();
    if !marked.is_empty() {
        text.push_str(&format!("conflicts marked in: {}\n", some(marked.iter())));
    }
    let is_new = |step: &&Step| step.action == Action::Keep(Kept::New);
    let below = plan.kept().filter(is_new).map(|step| step.path.as_path().to_owned());
    let outside = plan.outside.steps.iter().filter(is_new).map(|step| step.path.at_top());
    let new: Vec<PathBuf> = below.chain(outside).collect();
    if !new.is_empty() {
        let named = new.iter().take(NAMED_MAX).map(|path| ui::escape_path(path));
        let more = if new.len() > NAMED_MAX { ", …" } else { "" };
        let named = named.collect::<Vec<_>>().join(", ") + more;
        let count = ui::count(new.len() as u64, "path");
        let id = came.checkpoint.id.short();
        let how = if advice.is_restore {
            "--exact removes them".to_owned()
        } else {
            format!("`beforehand restore {id} --exact` removes them")
        };
        text.push_str(&format!("{count} made since kept: {named} ({how})\n"));
    }
    let ignored: Vec<_> =
        plan.kept().filter(|step| is_ignored(step)).map(|step| &step.path).collect();
    if !ignored.is_empty() {
        let (count, named) =
            (ui::count(ignored.len() as u64, "ignored path"), some(ignored.into_iter()));
        text.push_str(&format!("{count} made since kept: {named}\n"));
    }
    text
}

fn is_ignored(step: &Step) -> bool {
    step.action == Action::Keep(Kept::Ignored)
}

/// Whether something stays that was made since and is ignored.
fn keeps_ignored(plan: &RestorePlan) -> bool {
    plan.kept().any(is_ignored)
}

/// What is worth knowing of files that were hard links.
fn names_note(paths: &[PathBuf]) -> Option<String> {
    let named = paths.iter().take(NAMED_MAX).map(|path| ui::escape_path(path));
    let named = named.collect::<Vec<_>>().join(", ");
    let more = if paths.len() > NAMED_MAX { ", …" } else { "" };
    (!paths.is_empty()).then(|| {
        format!("note: had other names (hard links), which keep what was in it: {named}{more}")
    })
}

/// Names what could not be done.
pub(super) fn missed(process: &mut Process<'_>, project: &Project, outcome: &Outcome) {
    for (path, why) in &outcome.missed {
        let path = ui::path(path, project.home.as_deref());
        let why = ui::escape_line(why.as_bytes());
        let _ignored = writeln!(process.stderr, "warning: not restored: {path}: {why}");
    }
    for (place, now) in &outcome.set_aside {
        let place = ui::path(place, project.home.as_deref());
        let now = ui::path(now, project.home.as_deref());
        let _ignored = writeln!(
            process.stderr,
            "warning: {place} was changed after it was held: what was there is now {now}"
        );
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
            let why = format!("a {what} is in progress, or was then");
            Some(format!("the index stays as it is: {why}; --repository takes back both"))
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
