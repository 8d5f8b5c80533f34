//! Prints a plan before it is executed.

use std::{
    collections::BTreeMap,
    path::Path,
    time::{Duration, Instant},
};

use chrono::DateTime;
use serde_json::{Value, json};

use super::{
    brought::fork_name,
    head,
    planned::{MISSING, PlannedRestore},
    unchanged::{losing_lines, unchanged},
};
use crate::{
    commands::{Project, print_json, print_text},
    error::Result,
    model::{Kind, RelPath},
    plan::{Action, Author, KeepReason, Picked, PlanStep},
    process::Process,
    restore::{Prepared, Restore, StepGap, bytes_now},
    store::{
        RepositoryStep, StepKind,
        repository::{LostRef, LostRepository},
    },
    ui::{self, Align, DiffSide, FileDiff, LineCounts},
};

/// The first line of a plan, and a second one where the user may mean less.
pub(super) fn heading(process: &Process<'_>, restore: Restore<'_>) -> String {
    let Restore { project, checkpoint, request } = restore;
    let id = checkpoint.id.short();
    let when = ui::Clock::local(process.now).when(checkpoint.taken_at);
    let root = ui::path(project.root.path(), project.home.as_deref());
    let mut text = match request.verb {
        "undo" => {
            let what = request.undoes.as_deref().map(|what| format!(" {what}"));
            let what = what.unwrap_or_default();
            format!("undoing{what}: back to checkpoint {id} ({when}) in {root}")
        }
        "revert" => format!(
            "reverting turn {} ({id}, {when}) in {root}; what came after it stays",
            restore.turn_number()
        ),
        "keep" => format!("bringing what {} has changed into {root}", fork_name(restore)),
        "redo" => format!("redoing: forward to checkpoint {id} ({when}) in {root}"),
        _ => match request.step() {
            Some(step) => {
                let (turn, number) = step.number;
                let when =
                    ui::Clock::local(process.now).when(DateTime::from_timestamp_nanos(step.at));
                format!("restoring to before step {turn}.{number} ({when}) in {root}")
            }
            None => format!("restoring checkpoint {id} ({when}) in {root}"),
        },
    };
    let here = process.cwd.as_deref().and_then(|cwd| std::fs::canonicalize(cwd).ok());
    let is_below = here
        .is_some_and(|here| here.starts_with(project.root.path()) && here != project.root.path());
    if request.verb == "restore" && request.picked == Picked::All && is_below {
        text.push_str("\nthat is the whole of it, not only this directory; `-- .` means this one");
    }
    text
}

/// Prints a plan.
pub(super) fn plan(process: &mut Process<'_>, shown: PlannedRestore<'_>, json: bool) -> Result<()> {
    if json {
        let value = plan_json(shown, &lines_of(shown));
        return print_json(process, "restore", value);
    }
    let heading = heading(process, shown.restore);
    let columns = process.terminal.stdout_columns().map(usize::from);
    let text = plan_text(PlannedRestore { columns, ..shown });
    print_text(process, &format!("{heading}\n\n{text}"))
}

/// The branches and tags of some repositories, as git shows their names.
fn short_names(lost: &[LostRepository]) -> Vec<&str> {
    lost.iter().flat_map(|lost| &lost.refs).map(LostRef::short).collect()
}

/// The branches, tags and stashes that are made again, and those that go, a row each.
fn refs_text(prepared: &Prepared) -> String {
    let mut text = String::new();
    for lost in &prepared.refs_again {
        for gone in &lost.refs {
            let kind = gone.kind();
            let name = ui::escape(gone.short().as_bytes());
            let id = gone.id.get(..7).unwrap_or_default();
            text.push_str(&format!("  recreate  {name}   the {kind}, at {id}\n"));
        }
        for id in &lost.stashes {
            let id = id.get(..7).unwrap_or_default();
            text.push_str(&format!("  recreate  stash   the entry {id}\n"));
        }
    }
    for gone in &prepared.refs_gone {
        for gone in &gone.refs {
            let name = ui::escape(gone.short().as_bytes());
            text.push_str(&format!(
                "  remove    {name}   the {}, made again before\n",
                gone.kind()
            ));
        }
    }
    text
}

/// A plan in words, without a heading.
pub(super) fn plan_text(shown: PlannedRestore<'_>) -> String {
    let PlannedRestore { restore: Restore { project, .. }, prepared, .. } = shown;
    let plan = &prepared.plan;
    let mut text = repositories_text(project, &prepared.repositories);
    text.push_str(&refs_text(prepared));
    let losing = losing_lines(&prepared.losing, shown.way_back());
    if plan.steps.is_empty() && plan.outside.steps.is_empty() {
        if text.is_empty()
            && losing.is_empty()
            && !prepared.stages()
            && prepared.head.moves.is_none()
        {
            let nothing_left = shown.nothing_left_words().map(|words| format!("{words}\n"));
            text.push_str(match (&prepared.outside_left[..], &unchanged(shown)[..]) {
                ([], []) if nothing_left.is_some() => nothing_left.as_deref().unwrap_or_default(),
                ([], []) => "everything is as it was; there is nothing to do\n",
                ([], [_, ..]) => "everything else is as it was; there is nothing to do\n",
                ([_, ..], _) => {
                    "everything in the project is as it was; there is nothing to do in it\n"
                }
            });
        }
        text.push_str(&outside_text(shown));
    } else {
        text.push_str(&rows_text(shown, &lines_of(shown)));
        text.push_str(&outside_text(shown));
        text.push_str(&summary(prepared));
    }
    text.push_str(&losing);
    text.push_str(&head::index_plan(prepared));
    for line in unchanged(shown) {
        text.push_str(&format!("{line}\n"));
    }
    if let Some(head) = shown.head().filter(|_| !prepared.head.is_lost()) {
        text.push_str(&format!("{head}\n"));
    }
    for head in shown.nested_heads() {
        text.push_str(&format!("{head}\n"));
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
                let kind = if below.starts_with("modules") { "submodule" } else { "worktree" };
                format!("  recreate  {place}/{below}/   the {kind}'s part of it")
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
pub(super) fn lacks_text(project: &Project, step: &RepositoryStep) -> String {
    let lacks = step.brings_objects().then(|| step.lacks(&project.state)).flatten();
    let mut text =
        lacks.map_or_else(String::new, |lacks| format!("; {}", ui::escape(lacks.as_bytes())));
    let damaged = step.damaged_files(&project.state);
    if damaged > 0 {
        let files = ui::count(damaged as u64, "file");
        text.push_str(&format!(
            "; {files} with its objects damaged (see `beforehand check --read-data`)"
        ));
    }
    text
}

/// How long the plan may wait for the counts of lines.
const COUNTING: Duration = Duration::from_millis(300);

/// How many lines of which files come and go, as far as they are soon counted.
pub(super) fn lines_of(shown: PlannedRestore<'_>) -> BTreeMap<RelPath, LineCounts> {
    let prepared = shown.prepared;
    let deadline = Instant::now() + COUNTING;
    let mut lines = BTreeMap::new();
    for step in prepared.plan.deeds() {
        if Instant::now() >= deadline {
            break;
        }
        let counted = count(shown, step, deadline);
        lines.extend(counted.map(|counted| (step.path.clone(), counted)));
    }
    lines
}

/// How many lines come and go when a step is done.
fn count(shown: PlannedRestore<'_>, step: &PlanStep, deadline: Instant) -> Option<LineCounts> {
    let (then, now) = (step.then?, step.now?);
    let old = bytes_now(shown.restore.project, &step.path)?;
    let new = match shown.prepared.plan.merges.get(&step.path) {
        Some(merged) => merged.bytes.clone(),
        None => shown.restore.bytes_put(&then)?,
    };
    let change = FileDiff {
        path: step.path.as_bytes(),
        old: DiffSide::File { bytes: &old, permissions: now.permissions },
        new: DiffSide::File { bytes: &new, permissions: then.permissions },
    };
    change.lines(Some(deadline)).filter(|lines| lines.added + lines.removed > 0)
}

/// More of one kind are counted, not listed; `--json` has them all.
const ROWS_MAX: usize = 200;

/// The plan in groups: what changes, what comes back, what goes, what stays.
fn rows_text(shown: PlannedRestore<'_>, lines: &BTreeMap<RelPath, LineCounts>) -> String {
    let plan = &shown.prepared.plan;
    let steps: Vec<&PlanStep> = plan.steps.iter().filter(|step| !plan.is_implied(step)).collect();
    let name = |step: &PlanStep| {
        let slash = if is_directory(step) { "/" } else { "" };
        format!("{}{slash}", ui::escape(step.path.as_bytes()))
    };
    let width = steps.iter().map(|step| ui::cells(&name(step))).max().unwrap_or(0).min(WIDTH_MAX);
    let mut text = String::new();
    for verb in ["restore", "merge", "recreate", "remove", "keep", "leave"] {
        let rows: Vec<&&PlanStep> =
            steps.iter().filter(|step| words(step, shown).0 == verb).collect();
        for step in rows.iter().take(ROWS_MAX) {
            let counted = lines.get(&step.path).map(ToString::to_string);
            let said = counted
                .into_iter()
                .chain(turned(step))
                .chain(Some(words(step, shown).1))
                .filter(|said| !said.is_empty());
            let said = said.collect::<Vec<_>>().join("   ");
            let shown_verb = verb_shown(verb, shown);
            let row =
                format!("  {shown_verb:<9} {}   {said}", ui::pad(&name(step), width, Align::Left));
            let is_wide = |columns: &usize| ui::cells(row.trim_end()) > *columns;
            let row = match shown.columns.filter(is_wide) {
                // The name stays whole.
                Some(columns) => {
                    let said = ui::wrap(&said, columns, SAID_AT);
                    format!("  {shown_verb:<9} {}\n{:SAID_AT$}{said}", name(step), "")
                }
                None => row,
            };
            text.push_str(row.trim_end());
            text.push('\n');
        }
        if rows.len() > ROWS_MAX {
            let more = ui::number((rows.len() - ROWS_MAX) as u64);
            let verb = verb_shown(verb, shown);
            text.push_str(&format!("  {verb:<9} … and {more} more\n"));
        }
    }
    text
}

/// The verb of a row. What a fork has made is not restored.
fn verb_shown<'v>(verb: &'v str, shown: PlannedRestore<'_>) -> &'v str {
    match (shown.brings(), verb) {
        (Some(_), "restore") => "change",
        (Some(_), "recreate") => "add",
        (_, verb) => verb,
    }
}

/// What differs outside the project: what is put back, then what is not.
fn outside_text(shown: PlannedRestore<'_>) -> String {
    let PlannedRestore { restore: Restore { project, .. }, prepared, .. } = shown;
    let row = |path: &Path, verb: &str, why: &str| {
        format!("  {verb:<9} {}   {why}\n", ui::path(path, project.home.as_deref()))
    };
    let outside = prepared.plan.outside.steps.iter().map(|step| {
        let (verb, why) = words(step, shown);
        let said = [Some("outside the project".to_owned()), turned(step), Some(why)];
        let said = said.into_iter().flatten().filter(|said| !said.is_empty());
        row(&step.path.at_top(), verb, &said.collect::<Vec<_>>().join("; "))
    });
    let stays = prepared.outside_left.iter();
    let stays = stays.map(|path| row(path, "leave", "outside the project; needs --outside"));
    outside.chain(stays).collect()
}

/// Where the words on a path begin that have a line of their own.
const SAID_AT: usize = 14;
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

fn is_directory(step: &PlanStep) -> bool {
    step.then.or(step.now).is_some_and(|entry| entry.kind == Kind::Directory)
}

/// What else changes than lines, if the path becomes what it was: its type or its permissions.
fn turned(step: &PlanStep) -> Option<String> {
    let (now, then) = (step.now?, step.then?);
    if step.action != Action::Restore {
        return None;
    }
    if now.kind != then.kind {
        return Some(format!("{} → {}", now.kind.words(), then.kind.words()));
    }
    let is_mode = now.permissions != then.permissions && now.kind != Kind::Link;
    is_mode.then(|| format!("mode {:o} → {:o}", now.permissions, then.permissions))
}

/// What happens to a path, and a word on why.
pub(super) fn words(step: &PlanStep, shown: PlannedRestore<'_>) -> (&'static str, String) {
    match (step.action, shown.others_words(&step.path)) {
        (Action::Restore, Some(others)) => return ("restore", format!("to what was {others}")),
        (Action::Recreate, Some(others)) => return ("recreate", others),
        _ => (),
    }
    let (verb, why) = match (step.action, step.author) {
        (Action::Restore | Action::Remove, Author::Agent) if shown.is_ref(&step.path) => {
            ("restore", "a ref goes back; its commits stay")
        }
        (Action::Restore, Author::Agent | Author::Restore) => ("restore", ""),
        (Action::Restore, Author::Unknown) => ("restore", "not known who changed it; held first"),
        (Action::Restore, author @ (Author::Session(_) | Author::Other)) => {
            return ("restore", format!("changed since{}; held first", shown.not_by(author)));
        }
        (Action::Restore, Author::Unclear) => {
            ("restore", "changed since, perhaps by an interrupted or concurrent call; held first")
        }
        (Action::Recreate, author @ (Author::Session(_) | Author::Other)) => {
            return ("recreate", format!("deleted since{}", shown.not_by(author)));
        }
        (Action::Recreate, _) => ("recreate", ""),
        (Action::Merge, _) if shown.prepared.parts.contains(&step.path) => {
            ("merge", "in part, as you chose")
        }
        (Action::Merge, _) if shown.prepared.marked.contains(&step.path) => {
            return ("merge", format!("{}; conflicts are marked", shown.merged_words()));
        }
        (Action::Merge, _) => return ("merge", shown.merged_words()),
        (Action::Remove, _) if shown.brings().is_some() => {
            ("remove", "removed in the fork; held first")
        }
        (Action::Remove, Author::Agent) => {
            return ("remove", format!("made by {}; held first", shown.doer()));
        }
        (Action::Remove, Author::Restore) => ("remove", "put there by a restore; held first"),
        (Action::Remove, _) => ("remove", "made since; held first"),
        (Action::Keep(kept), author) => return kept_words(step, (kept, author), shown),
    };
    (verb, why.to_owned())
}

/// The same of what stays.
fn kept_words(
    step: &PlanStep,
    (kept, author): (KeepReason, Author),
    shown: PlannedRestore<'_>,
) -> (&'static str, String) {
    let (verb, why) = match (kept, author) {
        (KeepReason::BuiltOn, _) => return ("keep", shown.built_on_words(step)),
        (KeepReason::AfterUnheld, _) => return ("keep", shown.unheld_words(step)),
        (KeepReason::AfterUnknown, _) => {
            ("keep", "not known what the turn left: one of its calls was not examined")
        }
        (KeepReason::Renamed, _) => return ("keep", shown.renamed_words(step)),
        (KeepReason::BothChanged, _) => return ("keep", shown.both_changed_words(step)),
        // Where nothing is, nothing is kept.
        (KeepReason::BeforeUnknown, _) if step.now.is_none() => ("leave", StepGap::When.words()),
        (KeepReason::BeforeUnheld, _) if step.now.is_none() => ("leave", StepGap::Bytes.words()),
        (KeepReason::BeforeUnknown, _) => ("keep", StepGap::When.words()),
        (KeepReason::BeforeUnheld, _) => ("keep", StepGap::Bytes.words()),
        (KeepReason::Ignored, _) => ("keep", "ignored, and not known who made it"),
        (KeepReason::Edited, Author::Unclear) if step.then.is_none() => (
            "keep",
            "made since, perhaps by an interrupted or concurrent call (--force removes it)",
        ),
        (KeepReason::Edited, _) if step.then.is_none() => {
            ("keep", "made since, then changed (--force removes it)")
        }
        (KeepReason::Edited, Author::Unclear) => {
            ("keep", "changed since, perhaps by an interrupted or concurrent call (use --force)")
        }
        (KeepReason::OfOthers, author) => {
            return ("keep", format!("changed since{}", shown.not_by(author)));
        }
        (KeepReason::Edited, author) => return ("keep", shown.edited_words(author)),
        (KeepReason::Merged, _) => {
            return (
                "keep",
                format!("changed since; {}'s changes are no longer in it", shown.doer()),
            );
        }
        (KeepReason::New, author) => {
            return ("keep", format!("{}{}", shown.made_words(author), shown.exact_words()));
        }
        (KeepReason::InTheWay, _) => ("keep", "something in it, or in its place, is kept"),
        (KeepReason::GitPrivate, _) => {
            ("keep", "git's own: HEAD, branches and commits of a repository stay")
        }
        (KeepReason::Changed, _) => ("keep", "changed since"),
        (KeepReason::NotChosen, _) => ("keep", "not chosen"),
        (KeepReason::Repository, _) => ("leave", "a repository made since"),
        (KeepReason::Moved, _) => ("keep", "probably a file that no checkpoint holds"),
        (KeepReason::Missing, _) => ("leave", MISSING),
        (KeepReason::Unseen(why), _) => {
            return ("leave", format!("its present content {}", why.predicate()));
        }
        (KeepReason::NotCovered(why), _) => {
            return ("leave", format!("not covered: {}", why.words()));
        }
    };
    (verb, why.to_owned())
}

pub(super) fn plan_json(shown: PlannedRestore<'_>, lines: &BTreeMap<RelPath, LineCounts>) -> Value {
    let prepared = shown.prepared;
    let plan = &prepared.plan;
    let step = |step: &PlanStep| step_json(step, shown, lines.get(&step.path));
    let outside = |step: &PlanStep| step.path.at_top().to_string_lossy().into_owned();
    let named = |path: &RelPath| String::from_utf8_lossy(path.as_bytes()).into_owned();
    json!({
        "command": shown.restore.request.verb,
        "is_plan": true,
        "checkpoint": plan.of.to_string(),
        "repositories": prepared.repositories.iter().map(repository_json).collect::<Vec<_>>(),
        "steps": plan.steps.iter().map(step).collect::<Vec<_>>(),
        "outside": plan.outside.deeds().map(outside).collect::<Vec<_>>(),
        "outside_kept": plan.outside.steps.iter().filter(|step| !step.is_deed()).map(outside).collect::<Vec<_>>(),
        "outside_left":
            prepared.outside_left.iter().map(|path| path.to_string_lossy()).collect::<Vec<_>>(),
        "repositories_left":
            prepared.repositories_left.iter().map(|path| path.to_string_lossy()).collect::<Vec<_>>(),
        "lost_refs": short_names(&prepared.lost),
        "refs_again": short_names(&prepared.refs_again),
        "refs_gone": short_names(&prepared.refs_gone),
        "undoes": shown.restore.request.undoes,
        "left": plan.not_covered.iter().map(crate::commands::rows::skipped_json).collect::<Vec<_>>(),
        "left_new":
            prepared.new_unheld.iter().map(crate::commands::rows::skipped_json).collect::<Vec<_>>(),
        "moved": prepared.moved.iter().map(|(from, to)| {
            json!({ "from": String::from_utf8_lossy(from), "to": to.to_string_lossy() })
        }).collect::<Vec<_>>(),
        "inner_roots": prepared.inner_roots.iter().map(named).collect::<Vec<_>>(),
        "mid_turn": prepared.others_versions.iter().map(|(path, version)| {
            json!({ "path": named(path), "checkpoint": version.checkpoint.to_string() })
        }).collect::<Vec<_>>(),
        "inner_steps": prepared.others_left.iter().map(|(path, id)| {
            json!({ "path": named(path), "checkpoint": id.to_string() })
        }).collect::<Vec<_>>(),
        "damaged": prepared.damaged.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "step": shown.restore.request.step().map(|step| {
            format!("{}.{}", step.number.0, step.number.1)
        }),
        "reverts": shown.restore.request.turn().map(|turn| turn.number),
        "fork": shown.fork_json(),
        "built_on": prepared.built_on.iter().map(|(path, by)| {
            json!({ "path": named(path), "turn": by.turn, "checkpoint": by.checkpoint.to_string() })
        }).collect::<Vec<_>>(),
        "marked": prepared.marked.iter().map(named).collect::<Vec<_>>(),
        "commits": shown.head(),
        "nested_commits": shown.nested_heads().collect::<Vec<_>>(),
    })
}

fn step_json(step: &PlanStep, shown: PlannedRestore<'_>, lines: Option<&LineCounts>) -> Value {
    let (action, why) = words(step, shown);
    let author = match step.author {
        _ if shown.brings().is_some() => "unknown",
        Author::Agent => "agent",
        Author::Restore => "restore",
        Author::Session(_) => "session",
        Author::Other => "other",
        Author::Unclear | Author::Unknown => "unknown",
    };
    json!({
        "path": String::from_utf8_lossy(step.path.as_bytes()),
        "action": action,
        "why": why,
        "author": author,
        "conflict": step.is_conflict(),
        "lines": lines.map(|lines| json!({ "added": lines.added, "removed": lines.removed })),
    })
}

fn repository_json(step: &RepositoryStep) -> Value {
    let (action, why) = match &step.kind {
        StepKind::Recreate | StepKind::Part(_) | StepKind::Pointer(_) => ("recreate", ""),
        StepKind::Replace(why) => ("restore", &why[..]),
        StepKind::Remove(why) => ("remove", *why),
    };
    json!({ "path": step.place.to_string_lossy(), "action": action, "why": why })
}

pub(super) fn capitalized(word: &str) -> String {
    let mut chars = word.chars();
    chars.next().map(|first| first.to_uppercase().chain(chars).collect()).unwrap_or_default()
}
