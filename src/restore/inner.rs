//! What inner steps of a turn hold and a restore of the turn does not bring back.
//!
//! A turn goes back to its beginning. What the user made or changed between two calls of the turn,
//! and a later call deleted or replaced, was not there at the beginning: only an inner step holds it.

use std::{
    cell::LazyCell,
    collections::{BTreeMap, BTreeSet},
};

use super::{Restore, content::Saved};
use crate::{
    error::Result,
    fs::stat_path,
    ledger, left,
    model::{CheckpointId, Kind, RelPath, Tree},
    plan::{Action, Author, RestorePlan},
    project::Project,
    store::{self, Source},
};

/// The user's work that only inner steps hold.
#[derive(Default)]
pub(super) struct Inner {
    /// By path, with the newest step that holds it.
    pub(super) held: BTreeMap<RelPath, CheckpointId>,
    /// Steps that may hold more of it, and are damaged.
    pub(super) damaged: BTreeSet<CheckpointId>,
}

/// The user's work that only inner steps hold.
pub(super) fn held(
    restore: Restore<'_>,
    plan: &RestorePlan,
    then: &Tree,
    now: &Tree,
) -> Result<Inner> {
    let Restore { project, checkpoint, .. } = restore;
    let mut found = Inner::default();
    let Some(by) = &checkpoint.cause.by else { return Ok(found) };
    let mut all = project.store.list()?;
    ledger::adopt(&mut all, &ledger::uses(&project.state));
    all.retain(|it| it.sequence > checkpoint.sequence && it.is_same_turn(checkpoint));
    if all.is_empty() {
        return Ok(found);
    }
    let name = left::author(by.agent, &by.session);
    let lines = left::read(&project.state.root(&project.root));
    let since =
        |lines: &[_]| left::Knowledge::since(checkpoint, Some(&name), lines, left::Side::Root);
    let known = since(&lines);
    for step in &all {
        let known_then = LazyCell::new(|| since(&left::before(&lines, step)));
        let store = project.store.as_ref();
        let looked = project.as_far_as_it_can_be_read(step.id, |tree| {
            let other = store::changes(store, tree, now, Source::Disk)?;
            Ok((other, store::changes(store, then, tree, Source::Saved)?))
        });
        if !looked.is_whole {
            found.damaged.insert(step.id);
        }
        let Some((other, changes)) = looked.found else { continue };
        let other: BTreeSet<RelPath> = other.into_iter().map(|change| change.path).collect();
        for change in changes {
            let path = change.path;
            let Some(entry) = change.after.filter(|it| it.kind != Kind::Directory) else {
                continue;
            };
            let is_users = || {
                let author = known_then.author(&path, &Saved { project, entry });
                author.is_another() || author == Author::Unclear
            };
            let is_lost = other.contains(&path) && is_replaced(project, plan, &known, &path);
            if is_lost && !found.held.contains_key(&path) && is_users() {
                found.held.insert(path, step.id);
            }
        }
    }
    Ok(found)
}

/// Whether the agent removed what was at a path, or what the restore replaces is the agent's.
fn is_replaced(
    project: &Project,
    plan: &RestorePlan,
    known: &left::Knowledge,
    path: &RelPath,
) -> bool {
    if stat_path(&project.root.join(path)).is_err() {
        return known.was_removed(path);
    }
    let at = plan.steps.binary_search_by(|step| step.path.cmp(path));
    at.is_ok_and(|at| !matches!(plan.steps[at].action, Action::Keep(_)))
}
