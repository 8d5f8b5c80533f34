//! A file that was renamed, by the turn that is reverted or since, is looked for where it is now.

use std::collections::{BTreeMap, BTreeSet};

use super::{PathOutcome, Revert, story::Deed};
use crate::{
    attribution::PathSide,
    model::{Kind, RelPath},
    plan::Change,
    restore::version::{Clash, Version, VersionEntry},
};

impl Revert<'_> {
    /// Brings together what was renamed.
    pub(super) fn follow_renames(
        &self,
        changes: &[Change],
        outcomes: &mut BTreeMap<RelPath, PathOutcome>,
    ) {
        if self.side == PathSide::Root {
            self.follow_own(outcomes);
            self.follow_later(changes, outcomes);
        }
    }

    /// The turn renamed a file, and what is at its new name was changed since.
    fn follow_own(&self, outcomes: &mut BTreeMap<RelPath, PathOutcome>) {
        let deed = |outcome: &PathOutcome| match &outcome.deeds[..] {
            [only] => Some(only.clone()),
            _ => None,
        };
        let gone: Vec<(RelPath, VersionEntry)> = outcomes
            .iter()
            .filter(|(_, outcome)| outcome.now.is_none())
            .filter_map(|(path, outcome)| match deed(outcome)? {
                Deed { before: Some(before), after: None } => Some((path.clone(), before)),
                Deed { .. } => None,
            })
            .collect();
        let made: Vec<(RelPath, VersionEntry)> = outcomes
            .iter()
            .filter(|(_, outcome)| outcome.wanted.is_err() && outcome.now.is_some())
            .filter_map(|(path, outcome)| match deed(outcome)? {
                Deed { before: None, after: Some(after) } => Some((path.clone(), after)),
                Deed { .. } => None,
            })
            .collect();
        for (new, after) in made {
            let from: Vec<(RelPath, VersionEntry)> = gone
                .iter()
                .filter(|(old, _)| outcomes.get(old).is_some_and(|it| it.wanted.is_ok()))
                .cloned()
                .collect();
            let Some(at) = self.source.most_alike((&new, &after), &from) else { continue };
            let (old, before) = &from[at];
            let now = outcomes[&new].now.map(VersionEntry::here);
            let sides = [&Some(after), &now, &Some(before.clone())];
            let merged = self.source.three(&new, sides, self.markers);
            let merged = merged.and_then(|(wanted, is_marked)| {
                Ok((self.source.apart(&new, wanted).ok_or(Clash::Unheld)?, is_marked))
            });
            match merged {
                Ok((wanted, is_marked)) => {
                    set(outcomes, old, Ok(Some(wanted)), is_marked);
                    set(outcomes, &new, Ok(None), false);
                }
                // Both stay, or there would be two of it.
                Err(clash) => set(outcomes, old, Err(clash), false),
            }
        }
    }

    /// A file that the turn changed was renamed since.
    fn follow_later(&self, changes: &[Change], outcomes: &mut BTreeMap<RelPath, PathOutcome>) {
        let is_file = |found: &Version| found.as_ref().is_some_and(|it| it.kind == Kind::File);
        let lost: Vec<(RelPath, Deed)> = outcomes
            .iter()
            .filter_map(|(path, outcome)| match (&outcome.deeds[..], outcome.now) {
                // What the turn made may have been copied: another name of it is not the turn's.
                ([only], None) if is_file(&only.before) && is_file(&only.after) => {
                    Some((path.clone(), only.clone()))
                }
                _ => None,
            })
            .collect();
        if lost.is_empty() {
            return;
        }
        let touched: BTreeSet<&RelPath> = self.log.touched().collect();
        let is_new = |change: &&Change| {
            change.before.is_none()
                && change.after.is_some_and(|now| now.kind == Kind::File)
                && !touched.contains(&change.path)
        };
        let new: Vec<(RelPath, VersionEntry)> = changes
            .iter()
            .filter(is_new)
            .filter_map(|change| Some((change.path.clone(), VersionEntry::here(change.after?))))
            .collect();
        for (old, Deed { before, after }) in lost {
            let Some(after) = after else { continue };
            let Some(at) = self.source.most_alike((&old, &after), &new) else { continue };
            let (path, here) = &new[at];
            if outcomes.contains_key(path) {
                continue;
            }
            let Some(here) = self.source.apart(path, Some(here.clone())) else { continue };
            let after = self.source.apart(&old, Some(after));
            let sides = [&after, &Some(here), &before];
            let now = changes.iter().find(|change| change.path == *path);
            let now = now.and_then(|change| change.after);
            // Where it does not fit, it may be another file.
            let merged = self.source.three(&old, sides, self.markers);
            let Ok((wanted, is_marked)) = merged.map(|(it, is_marked)| (Ok(it), is_marked)) else {
                continue;
            };
            let deeds = vec![Deed { before: before.clone(), after: after.clone() }];
            outcomes.remove(&old);
            outcomes.insert(path.clone(), PathOutcome { deeds, now, wanted, is_marked });
        }
    }
}

fn set(
    outcomes: &mut BTreeMap<RelPath, PathOutcome>,
    path: &RelPath,
    wanted: Result<Version, Clash>,
    is_marked: bool,
) {
    if let Some(outcome) = outcomes.get_mut(path) {
        outcome.wanted = wanted;
        outcome.is_marked = is_marked;
    }
}
