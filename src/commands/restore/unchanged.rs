//! Words for what a restore leaves as it is, and for what a repository replaces.

use std::{
    borrow::Borrow,
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

use super::planned::PlannedRestore;
use crate::{
    commands::Project,
    model::{Checkpoint, CheckpointId, Completeness, RelPath, Skipped},
    restore::Prepared,
    store::repository,
    ui,
};

/// So many digits of an id almost always name one checkpoint only.
const ID_DIGITS: usize = 8;
/// More of one kind are counted, not named.
pub(super) const NAMED_MAX: usize = 5;

/// What is not as it was and no restore changes, a line each.
pub(super) fn remaining(shown: PlannedRestore<'_>) -> Vec<String> {
    let word =
        |path: &RelPath| format!("left: {}, a repository made since", ui::escape(path.as_bytes()));
    let made_since = shown.prepared.plan.repositories_left().map(word);
    made_since.chain(unchanged(shown)).collect()
}

/// The same without the repositories made since, for which a plan has rows.
pub(super) fn unchanged(shown: PlannedRestore<'_>) -> Vec<String> {
    let PlannedRestore { restore, prepared, .. } = shown;
    let project = restore.project;
    let cd_prefix = &project.cd_prefix();
    let inner = prepared.inner_roots.iter().map(|path| {
        let (path, quoted) = (ui::escape(path.as_bytes()), project.argument(path.as_path()));
        format!(
            "left: {path}/, a root of its own; add `-- {quoted}` to put back what is held of it"
        )
    });
    let repositories = prepared.repositories_left.iter().map(|place| {
        let place = place.strip_prefix(project.root.path()).unwrap_or(place);
        let id = prepared.plan.of.short();
        let (named, quoted) = (ui::path(place, project.home.as_deref()), project.argument(place));
        format!(
            "left: {named}, a repository that is gone or another one since; `{cd_prefix}beforehand \
             restore {id} -- {quoted}` brings it back"
        )
    });
    let unheld = unheld_lines(project, &prepared.plan.not_covered, &prepared.moved).into_iter();
    let head = shown.head().filter(|_| prepared.head.is_lost()).into_iter();
    let new = at_most(ui::left_out(&prepared.new_unheld)).into_iter();
    let new = new.map(|line| format!("left: made since, and not held: {line}"));
    let steps = others_versions_line(shown).into_iter().chain(others_left_lines(project, prepared));
    inner
        .chain(repositories)
        .chain(head)
        .chain(steps)
        .chain(record_lost_line(restore.checkpoint))
        .chain(damaged_lines(&prepared.damaged))
        .chain(unheld)
        .chain(new)
        .chain(lost_lines(project, prepared))
        .chain(shown.fork_lines())
        .collect()
}

/// A line for a checkpoint whose record is lost.
pub(super) fn record_lost_line(checkpoint: &Checkpoint) -> Option<String> {
    let lacks = checkpoint.completeness.lacks()?;
    let is_lost = checkpoint.completeness == Completeness::RecordLost;
    is_lost.then(|| {
        format!("not restored: checkpoint {} is incomplete: {lacks}", checkpoint.id.short())
    })
}

/// Later checkpoints that may hold more of what was there, and are damaged: a line for each.
pub(super) fn damaged_lines(damaged: &BTreeSet<CheckpointId>) -> impl Iterator<Item = String> {
    damaged.iter().map(|id| {
        let id = id.short();
        format!("not restored: what only checkpoint {id} held, which is damaged; `beforehand check` says more")
    })
}

/// Files that go back to what others made of them since.
fn others_versions_line(shown: PlannedRestore<'_>) -> Option<String> {
    let prepared = shown.prepared;
    let paths: Vec<&RelPath> = prepared.others_versions.keys().collect();
    if paths.is_empty() {
        return None;
    }
    let named = first(paths.iter().map(|path| ui::escape(path.as_bytes())));
    let project = shown.restore.project;
    let picked = arguments(project, paths.iter().map(|path| path.as_path()));
    let (id, cd_prefix) = (prepared.plan.of.short(), project.cd_prefix());
    Some(format!(
        "not further back than to the work of others since: {named} \
         (`{cd_prefix}beforehand restore {id} --force -- {picked}` goes all the way)"
    ))
}

/// The work of others that does not come back: a line for each later checkpoint that holds it.
fn others_left_lines(project: &Project, prepared: &Prepared) -> Vec<String> {
    let mut by_step: BTreeMap<CheckpointId, Vec<&RelPath>> = BTreeMap::new();
    for (path, id) in &prepared.others_left {
        by_step.entry(*id).or_default().push(path);
    }
    let cd_prefix = &project.cd_prefix();
    let line = |(id, paths): (CheckpointId, Vec<&RelPath>)| {
        let id = id.to_string();
        let id = id.get(..ID_DIGITS).unwrap_or(&id);
        let picked = arguments(project, paths.iter().map(|path| path.as_path()));
        let named = first(paths.iter().map(|path| ui::escape(path.as_bytes())));
        format!(
            "what others made of it since is not restored, and is held: {named}; \
             `{cd_prefix}beforehand restore {id} -- {picked}`"
        )
    };
    by_step.into_iter().map(line).collect()
}

/// Paths of a plan as arguments of the next command, if they are not too many to be written there.
pub(super) fn arguments<'a>(
    project: &Project,
    paths: impl ExactSizeIterator<Item = &'a Path>,
) -> String {
    match paths.len() {
        0..=NAMED_MAX => paths.map(|path| project.argument(path)).collect::<Vec<_>>().join(" "),
        _ => "PATH…".to_owned(),
    }
}

/// What of repositories is gone, or staged otherwise, and no restore of files brings back, a line
/// each.
fn lost_lines(project: &Project, prepared: &Prepared) -> Vec<String> {
    let root = project.root.path();
    let named = |place: &Path| {
        ui::path(place.strip_prefix(root).unwrap_or(place), project.home.as_deref()).into_owned()
    };
    let mut lines = Vec::new();
    for lost in &prepared.lost {
        let option = if lost.place.starts_with(root) { "" } else { " --outside" };
        let id = prepared.plan.of.short();
        let cd_prefix = project.cd_prefix();
        let back =
            format!("`{cd_prefix}beforehand restore {id} --repository{option}` brings it back");
        let refs: Vec<String> = lost.refs.iter().map(|gone| gone.short().to_owned()).collect();
        let gone = names(&refs, lost.stashes.len());
        let is_own = lost.place == root.join(".git");
        let from = if is_own { String::new() } else { format!(" from {}", named(&lost.place)) };
        if !gone.is_empty() {
            lines.push(format!("gone since{from}: {}; {back}", gone.join(", ")));
        }
        for place in &lost.staged {
            lines.push(format!("staged differently then: {}; {back}", named(place)));
        }
    }
    lines
}

/// Branches, tags and stashes, each by a word.
pub(super) fn names(refs: &[String], stashes: usize) -> Vec<String> {
    let names = refs.iter().map(|name| ui::escape(name.as_bytes()).into());
    let mut names = at_most(names.collect());
    match stashes {
        0 => (),
        1 => names.push("1 stash".to_owned()),
        many => names.push(format!("{many} stashes")),
    }
    names
}

/// What goes with replaced repositories, a line each.
pub(super) fn losing_lines(losing: &[repository::Losing], way_back: &str) -> String {
    let mut text = String::new();
    for losing in losing {
        for (branch, commits) in &losing.commits {
            let named = commits.iter().map(|(id, subject)| {
                let short = id.get(..7).unwrap_or_default();
                format!("{short} {}", ui::escape_line(subject.as_bytes()))
            });
            let named = first(named);
            let branch = ui::escape(branch.as_bytes());
            let count = ui::count(commits.len() as u64, "commit");
            text.push_str(&format!("{branch} loses {count} made since: {named}\n"));
        }
        let mut names = names(&losing.refs, losing.stashes);
        if losing.is_staged {
            names.push("what is staged".to_owned());
        }
        if !names.is_empty() {
            let back = format!("`beforehand {way_back}` brings it back");
            text.push_str(&format!("made since, and removed: {}; {back}\n", names.join(", ")));
        }
        let changed = losing.changed.iter().map(|path| ui::escape(path.as_bytes()).into_owned());
        if !losing.changed.is_empty() {
            let paths = at_most(changed.collect()).join(", ");
            text.push_str(&format!("changed since in the repository, and replaced: {paths}\n"));
        }
    }
    text
}

/// What is held, differs, and was left as it is because it lies outside the project.
pub(super) fn outside_left_text(project: &Project, left: &[PathBuf]) -> String {
    if left.is_empty() {
        return String::new();
    }
    let named = first(left.iter().map(|path| ui::path(path, project.home.as_deref())));
    let count = ui::count(left.len() as u64, "path");
    format!("{count} outside the project not restored (--outside does it): {named}\n")
}

/// The first lines of a list, and how many more there are.
pub(super) fn at_most(lines: Vec<String>) -> Vec<String> {
    ui::at_most(lines, NAMED_MAX, |more| format!("{more} more"))
}

/// The first names of a list.
pub(super) fn first<T: Borrow<str>>(names: impl ExactSizeIterator<Item = T>) -> String {
    let more = if names.len() > NAMED_MAX { ", …" } else { "" };
    names.take(NAMED_MAX).collect::<Vec<_>>().join(", ") + more
}

/// What was not held and is not as it was, a line each. What is gone from its place may have `moved`.
pub(crate) fn unheld_lines(
    project: &Project,
    left: &[Skipped],
    moved: &BTreeMap<Vec<u8>, PathBuf>,
) -> Vec<String> {
    let (gone, there): (Vec<_>, Vec<_>) = left.iter().partition(|it| project.is_gone(it));
    let lines = |what: &'static str, left: Vec<&Skipped>| {
        let left: Vec<Skipped> = left.into_iter().cloned().collect();
        let lines = at_most(ui::left_out(&left)).into_iter();
        lines.map(move |line| format!("{what}, and was not held: {line}"))
    };
    let (elsewhere, gone): (Vec<_>, Vec<_>) =
        gone.into_iter().partition(|it| moved.contains_key(&it.path));
    let elsewhere = elsewhere.into_iter().filter_map(|it| {
        let (from, to) = (ui::escape(&it.path), moved.get(&it.path)?);
        let to = ui::path(to, project.home.as_deref());
        Some(format!("{from} ({}), now {to}", ui::size(it.size)))
    });
    let elsewhere = at_most(elsewhere.collect()).into_iter();
    let elsewhere = elsewhere.map(|line| format!("probably moved since, and not held: {line}"));
    lines("changed", there).chain(elsewhere).chain(lines("gone", gone)).collect()
}
