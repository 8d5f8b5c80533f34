//! What a fork has changed since it began, and what of that stays in it.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
};

use super::Brings;
use crate::{
    error::{Error, Result},
    forked::BroughtBack,
    fs::{is_no_directory, stat_path},
    model::{Entry, RelPath, SkipReason, Skipped, Tree},
    plan::{self, ByPath, Change, Pick, Picked},
    process::Process,
    project::{LaterTurns, Project},
    restore::{
        brought::{StayReason, StaysInFork},
        comparison::{RootComparison, see},
        left_out::new_unheld,
    },
    store::{self, ContentSource},
    ui,
};

/// What a fork has changed.
pub(super) struct ForkSide {
    /// What it began with, at each path that it has changed.
    pub(super) base: BTreeMap<RelPath, Option<Entry>>,
    /// What it has there now.
    pub(super) theirs: BTreeMap<RelPath, Option<Entry>>,
    /// All that it began with.
    pub(super) base_tree: Tree,
    /// The times it was brought back that were not undone since, newest first, with what it had then.
    pub(super) brought: Vec<(BroughtBack, Tree)>,
    pub(super) stays: Vec<StaysInFork>,
    pub(super) unpicked: BTreeSet<RelPath>,
}

impl ForkSide {
    /// Finds out what the fork has changed of what is picked.
    pub(super) fn look(
        process: &Process<'_>,
        origin: &Project,
        brings: &Brings,
        picked: &Picked,
    ) -> Result<Self> {
        let fork = &brings.fork;
        let base_tree = fork.tree_of(&brings.base, LaterTurns::Gone)?.tree;
        let seen = see(process, fork, &base_tree, None, &named_files(fork, picked))?;
        let brought = in_effect(origin, brings)?;
        let changes = all_changes(fork, &seen, &brought)?;
        refuse_unchanged(picked, &changes)?;
        let left_out = ByPath::of(&seen.skipped);
        let repositories = new_repositories(brings, &seen)?;
        let mut side = Self {
            base: BTreeMap::new(),
            theirs: BTreeMap::new(),
            base_tree,
            brought,
            stays: Vec::new(),
            unpicked: BTreeSet::new(),
        };
        for (path, theirs) in changes {
            if !picked.has(&path) {
                side.unpicked.insert(path);
                continue;
            }
            let base = store::entry_at(fork.store.as_ref(), &side.base_tree, &path)?;
            let is_ignored = || seen.scan.find(&path).is_some_and(|row| row.marks.ignored);
            let why = if repositories.iter().any(|dir| path.is_within(dir)) {
                Some(StayReason::Repository)
            } else if base.is_none() && *picked == Picked::All && is_ignored() {
                Some(StayReason::Ignored)
            } else if theirs.is_none() && is_hidden(fork, &path) {
                let reason = left_out.covering(&path).map(|left| left.reason);
                Some(StayReason::LeftOut(reason.unwrap_or(SkipReason::Unreadable)))
            } else {
                None
            };
            if let Some(why) = why {
                side.stays.push(StaysInFork { path, why });
            } else {
                side.base.insert(path.clone(), base);
                side.theirs.insert(path, theirs);
            }
        }
        let unheld = new_unheld(fork, &seen.scan, &side.base_tree, &brings.base, picked)?;
        let unheld = unheld.iter().filter_map(stays_unheld);
        side.stays.extend(unheld.filter(|it| !side.theirs.contains_key(&it.path)));
        side.stays.sort_by(|a, b| a.path.cmp(&b.path));
        keep_outermost(&mut side.stays);
        Ok(side)
    }

    /// The paths at which something other than a directory is in `project`, absolute.
    pub(super) fn there_in(&self, project: &Project) -> Vec<PathBuf> {
        let places = self.theirs.keys().map(|path| project.root.join(path));
        places.filter(|place| is_no_directory(place)).collect()
    }
}

/// The files that the user named: they are looked at whatever their size.
fn named_files(fork: &Project, picked: &Picked) -> BTreeSet<PathBuf> {
    let Picked::Paths(picks) = picked else { return BTreeSet::new() };
    let places = picks.iter().filter_map(Pick::literal).map(|path| fork.root.join(path));
    places.filter(|place| is_no_directory(place)).collect()
}

/// Every path that the fork has changed since it began, or since it was brought back, with what it has now.
fn all_changes(
    fork: &Project,
    seen: &RootComparison,
    brought: &[(BroughtBack, Tree)],
) -> Result<BTreeMap<RelPath, Option<Entry>>> {
    let pair = |change: Change| (change.path, change.after);
    let mut all: BTreeMap<RelPath, Option<Entry>> =
        seen.changes.iter().cloned().map(pair).collect();
    for (_, tree) in brought {
        let since = store::changes(fork.store.as_ref(), tree, &seen.now, ContentSource::Disk)?;
        // What only seems to be gone has been looked at above, or is not held.
        let since = since.into_iter().filter(|it| it.after.is_some() || !is_hidden(fork, &it.path));
        for (path, after) in since.map(pair) {
            all.entry(path).or_insert(after);
        }
    }
    all.retain(|path, _| !path.names().any(|name| name == b".git"));
    Ok(all)
}

/// Whether something is at a path where no scan finds it.
fn is_hidden(project: &Project, path: &RelPath) -> bool {
    stat_path(&project.root.join(path)).is_ok()
}

fn stays_unheld(skipped: &Skipped) -> Option<StaysInFork> {
    let path = RelPath::from_bytes(&skipped.path).ok()?;
    Some(StaysInFork { path, why: StayReason::LeftOut(skipped.reason) })
}

/// What stays is named once, by the outermost directory.
fn keep_outermost(stays: &mut Vec<StaysInFork>) {
    let mut outermost: Option<StaysInFork> = None;
    stays.retain(|it| {
        let is_named = outermost
            .as_ref()
            .is_some_and(|above| above.why == it.why && it.path.is_within(&above.path));
        if !is_named {
            outermost = Some(it.clone());
        }
        !is_named
    });
}

/// The worktrees of repositories that were made in the fork.
fn new_repositories(brings: &Brings, seen: &RootComparison) -> Result<Vec<RelPath>> {
    let fork = &brings.fork;
    let record = fork.record_of(brings.base.id)?;
    let pointers = record.pointers().map(|(path, _)| path.as_slice());
    let known: BTreeSet<&[u8]> =
        record.repositories.iter().map(|held| held.path.as_slice()).chain(pointers).collect();
    let places = seen.scan.repositories.iter().filter_map(|git| fork.root.relative(git).ok());
    let new = places.filter(|git| !known.contains(git.as_bytes()));
    Ok(new.filter_map(|git| git.parent()).collect())
}

/// The times the fork was brought back that are still in effect, newest first.
fn in_effect(origin: &Project, brings: &Brings) -> Result<Vec<(BroughtBack, Tree)>> {
    let all = origin.store.list()?;
    let undone = plan::undone(&all);
    let is_done = |it: &&BroughtBack| {
        !undone.contains(&it.held) && all.iter().any(|checkpoint| checkpoint.id == it.held)
    };
    let brought = brings.entry.brought.iter().rev().filter(is_done);
    // Without its tree the fork's beginning is the base, and what was brought may conflict.
    let with_tree = |it: &BroughtBack| Some((it.clone(), brings.fork.store.tree(it.of).ok()?));
    Ok(brought.filter_map(with_tree).collect())
}

/// Refuses a path that the user named and the fork has not changed: it is a slip.
fn refuse_unchanged(picked: &Picked, changes: &BTreeMap<RelPath, Option<Entry>>) -> Result<()> {
    let Picked::Paths(picks) = picked else { return Ok(()) };
    let is_outside = picks.iter().find_map(Pick::literal_outside);
    if let Some(path) = is_outside {
        let path = ui::escape_path(&path.at_top()).into_owned();
        return Err(Error::usage(
            format!("`{path}` is outside of the fork and of the project"),
            "name files as seen from the current directory",
        ));
    }
    for path in picks.iter().filter_map(Pick::literal) {
        let is_changed = |changed: &RelPath| changed.is_within(path) || path.is_within(changed);
        if !changes.keys().any(is_changed) {
            let path = ui::escape(path.as_bytes()).into_owned();
            return Err(Error::other(
                format!("the fork has not changed `{path}`"),
                "nothing was changed; `beforehand fork --keep --dry-run` lists what it has changed",
            ));
        }
    }
    Ok(())
}
