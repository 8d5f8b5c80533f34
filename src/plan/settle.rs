//! What finishes an interrupted restore, or takes it back.

use std::collections::BTreeMap;

use super::{
    diff::is_same,
    restore::{Action, Author, KeepReason, OutsidePlan, RestorePlan, Step, keep_parents},
};
use crate::model::{CheckpointId, Entry, Kind, RelPath};

/// One path that an interrupted restore was to change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unsettled {
    /// Which path.
    pub path: RelPath,
    /// What it is to be.
    pub to: Option<Entry>,
    /// What it was to be, or was, otherwise.
    pub from: Option<Entry>,
    /// What is there now.
    pub now: Option<Entry>,
}

/// Plans to make every path what it is to be.
///
/// What is there now must be one end or the other of the restore, or nothing at all: both ends are
/// held. Anything else was put there since, is held nowhere, and stays.
pub fn settle(of: CheckpointId, paths: Vec<Unsettled>) -> RestorePlan {
    let differs = |path: &Unsettled| {
        // A directory made only to hold something is in neither tree.
        (path.to.is_some() || path.from.is_some()) && !is_same(path.to.as_ref(), path.now.as_ref())
    };
    let mut steps: Vec<Step> = paths
        .into_iter()
        .filter(differs)
        .map(|Unsettled { path, to, from, now }| {
            let action = decide(to.as_ref(), from.as_ref(), now.as_ref());
            Step { path, action, then: to, now, author: Author::Unknown }
        })
        .collect();
    steps.sort_by(|a, b| a.path.cmp(&b.path));
    keep_parents(&mut steps);
    let outside = OutsidePlan::default();
    RestorePlan { of, steps, outside, not_covered: Vec::new(), merges: BTreeMap::new() }
}

fn decide(to: Option<&Entry>, from: Option<&Entry>, now: Option<&Entry>) -> Action {
    let is_directory = now.is_some_and(|now| now.kind == Kind::Directory);
    match (to, now) {
        (Some(_), None) => Action::Recreate,
        (_, Some(_)) if !is_directory && !is_same(from, now) => Action::Keep(KeepReason::Changed),
        (Some(_), Some(_)) => Action::Restore,
        (None, _) => Action::Remove,
    }
}
