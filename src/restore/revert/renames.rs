//! Finds where a file is now that was renamed by the turn to revert, or after it.
//!
//! | what happened | what the revert does | |
//! |---|---|---|
//! | the turn left a file, others changed it, then the turn renamed it | takes the turn's changes out of it, and moves it back to its first name | `follow_renames_on` |
//! | the turn renamed a file, then others changed it | the same | `follow_own_renames` |
//! | the turn changed a file, then others renamed it | takes the turn's changes out of it; it keeps its new name | `follow_later_renames` |
//!
//! Where that cannot be merged, the file stays as it is, at every name that it has or had.

use std::collections::{BTreeMap, BTreeSet};

use super::{PathOutcome, Revert, Stays};
use crate::{
    attribution::{Doer, PathSide, Sight},
    model::{Kind, RelPath},
    plan::Change,
    restore::{
        history::Deed,
        version::{COMPARED_MAX, Clash, Version, VersionEntry},
    },
};

impl Revert<'_> {
    /// Brings together what was renamed.
    pub(super) fn follow_renames(
        &self,
        changes: &[Change],
        outcomes: &mut BTreeMap<RelPath, PathOutcome>,
    ) {
        if self.side == PathSide::Root {
            self.follow_renames_on(outcomes);
            self.follow_own_renames(outcomes);
            self.follow_later_renames(changes, outcomes);
        }
    }

    /// The turn made or renamed a file, others changed it, and the turn renamed it on.
    fn follow_renames_on(&self, outcomes: &mut BTreeMap<RelPath, PathOutcome>) {
        let is_left_behind = |outcome: &PathOutcome| match &outcome.deeds[..] {
            [_, .., last] => last.after.is_none() && outcome.now.is_none(),
            _ => false,
        };
        let all = outcomes.iter().filter(|(_, outcome)| is_left_behind(outcome));
        let behind: BTreeSet<RelPath> = all.map(|(path, _)| path.clone()).collect();
        let next: BTreeMap<RelPath, RelPath> = behind
            .iter()
            .filter_map(|path| Some((path.clone(), self.moved_on(path, outcomes)?)))
            .collect();
        let later: BTreeSet<&RelPath> = next.values().collect();
        for first in behind.iter().filter(|path| !later.contains(path)) {
            // Two files may have changed their names with each other.
            let names = std::iter::successors(Some(first), |path| next.get(path));
            let names: Vec<RelPath> = names.take(behind.len() + 1).cloned().collect();
            self.follow_chain(&names, outcomes);
        }
    }

    /// Where the turn made what it had removed last at a path.
    fn moved_on(
        &self,
        path: &RelPath,
        outcomes: &BTreeMap<RelPath, PathOutcome>,
    ) -> Option<RelPath> {
        let last = outcomes.get(path)?.deeds.last()?.before.clone()?;
        let made = outcomes.iter().filter(|(other, _)| *other != path);
        let made = made.filter_map(|(other, PathOutcome { deeds, now, .. })| {
            let first = deeds.first()?;
            // Where something was, the turn may have put it in its place.
            let deed = if first.before.is_some() && now.is_some() { deeds.last()? } else { first };
            Some((other.clone(), deed.after.clone()?))
        });
        let made: Vec<(RelPath, VersionEntry)> = made.collect();
        self.history.source().most_alike((path, &last), &made).map(|(path, _)| path.clone())
    }

    /// Takes back what the turn did to one file that it renamed along `names`. The file has the last of them now.
    /// `None` if it is not there any more: then nothing is to be done.
    fn follow_chain(
        &self,
        names: &[RelPath],
        outcomes: &mut BTreeMap<RelPath, PathOutcome>,
    ) -> Option<()> {
        let (new, behind) = names.split_last().filter(|(_, behind)| !behind.is_empty())?;
        let now = outcomes.get(new)?.now.map(VersionEntry::here);
        now.as_ref()?;
        let is_over_another = |name: &RelPath| {
            let first = outcomes.get(name).and_then(|outcome| outcome.deeds.first());
            first.is_some_and(|first| first.before.is_some())
        };
        if names.iter().any(is_over_another) {
            // The replaced file and what others did to the renamed one would have to be merged into one file.
            set(outcomes, new, Err(Stays::Clash(Clash::Touches)));
            return Some(());
        }
        let first_left = outcomes.get(&names[0])?.deeds.first()?.after.clone();
        let gone = gone_files(outcomes);
        let old = first_left
            .as_ref()
            .and_then(|left| self.history.source().most_alike((&names[0], left), &gone));
        let mut before = old.and_then(|(path, before)| {
            self.history.source().with_bytes(path, Some(before.clone()))
        });
        // From what was there before the turn to what it left, name by name: what others did is between them.
        let mut deeds = Vec::new();
        for name in names {
            let own = &outcomes.get(name)?.deeds;
            let after = if name == new { own.last()? } else { own.first()? }.after.clone();
            let after = self.history.source().with_bytes(name, after);
            deeds.push(Deed { before: before.take(), after });
            before = self.history.source().with_bytes(name, own.last()?.before.clone());
        }
        // `with_bytes` gives `None` for bytes that cannot be read, and then no merge is possible.
        let is_known = deeds.iter().all(|deed| deed.after.is_some());
        let taken = if is_known {
            self.take_back(new, &deeds, &now, self.markers)
        } else {
            Err(Clash::Unheld)
        };
        let taken = taken.and_then(|(wanted, is_marked)| match (wanted, old) {
            (Some(wanted), Some(_)) => Ok((
                self.history.source().with_bytes(new, Some(wanted)).ok_or(Clash::Unheld)?,
                is_marked,
            )),
            _ => Err(Clash::Touches),
        });
        match taken {
            Ok((wanted, is_marked)) => {
                set(outcomes, &old?.0, Ok((Some(wanted), is_marked)));
                set(outcomes, new, Ok((None, false)));
            }
            // Leave both paths as they are. Otherwise the file would exist twice.
            Err(clash) => {
                for path in old.map(|(path, _)| path).into_iter().chain([new]) {
                    set(outcomes, path, Err(Stays::Clash(clash)));
                }
            }
        }
        outcomes.retain(|path, _| !behind.contains(path));
        Some(())
    }

    /// The turn renamed a file, and what is at its new name was changed since.
    fn follow_own_renames(&self, outcomes: &mut BTreeMap<RelPath, PathOutcome>) {
        let deed = |outcome: &PathOutcome| match &outcome.deeds[..] {
            [only] => Some(only.clone()),
            _ => None,
        };
        let gone = gone_files(outcomes);
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
            let found = self.history.source().most_alike((&new, &after), &from);
            let Some((old, before)) = found else { continue };
            let now = outcomes[&new].now.map(VersionEntry::here);
            let sides = [&Some(after), &now, &Some(before.clone())];
            let merged = self.history.source().merge_back(&new, sides, self.markers);
            let merged = merged.and_then(|(wanted, is_marked)| {
                Ok((
                    self.history.source().with_bytes(&new, wanted).ok_or(Clash::Unheld)?,
                    is_marked,
                ))
            });
            match merged {
                Ok((wanted, is_marked)) => {
                    set(outcomes, old, Ok((Some(wanted), is_marked)));
                    set(outcomes, &new, Ok((None, false)));
                }
                // Leave both paths as they are. Otherwise the file would exist twice.
                Err(clash) => set(outcomes, old, Err(Stays::Clash(clash))),
            }
        }
    }

    /// A file that the turn left was renamed since.
    fn follow_later_renames(
        &self,
        changes: &[Change],
        outcomes: &mut BTreeMap<RelPath, PathOutcome>,
    ) {
        let lost: Vec<(RelPath, Version, VersionEntry)> = outcomes
            .iter()
            .filter_map(|(path, outcome)| match (&outcome.deeds[..], outcome.now) {
                ([Deed { before, after: Some(after) }], None) if after.kind == Kind::File => {
                    Some((path.clone(), before.clone(), after.clone()))
                }
                _ => None,
            })
            .collect();
        if lost.is_empty() {
            return;
        }
        let touched = self.history.touched_by(&self.turns);
        let is_others = |change: &&Change| {
            change.after.is_some_and(|now| now.kind == Kind::File)
                && !touched.contains(&change.path)
        };
        let others = changes.iter().filter(is_others);
        let others = others.map(|change| (change.path.clone(), change)).collect();
        for (old, before, after) in lost {
            self.follow_later_rename(LostFile { old, before, after }, &others, outcomes);
        }
    }

    /// The same for one file; the `others` are files that the turn did not touch and that have changed since. `None` if
    /// it is not found among them: it counts as removed.
    fn follow_later_rename(
        &self,
        LostFile { old, before, after }: LostFile,
        others: &BTreeMap<RelPath, &Change>,
        outcomes: &mut BTreeMap<RelPath, PathOutcome>,
    ) -> Option<()> {
        let renamed = self.renamed_by_call(&old);
        let by = renamed.as_ref().map(|(_, by)| *by);
        let found = || {
            let new = new_files(others);
            let equal = || self.equal_of(&old, &after, &new).filter(|_| before.is_none());
            let alike = self.history.source().most_alike((&old, &after), &new);
            alike.map(|(path, _)| path.clone()).or_else(equal)
        };
        let path = renamed.map(|(path, _)| path).or_else(found)?;
        let other = others.get(&path).filter(|_| !outcomes.contains_key(&path))?;
        let now = other.after?;
        // What was there before is gone for it.
        let is_over_another = other.before.is_some();
        let here = self.history.source().with_bytes(&path, Some(VersionEntry::here(now)))?;
        let after = self.history.source().with_bytes(&old, Some(after));
        let own = before.is_none().then(|| self.own_rename(&after, outcomes)).flatten();
        let sides = [&after, &Some(here), &before];
        let wanted = match (&before, by) {
            // The turn had itself renamed it to `old`, or it now replaces another file.
            _ if own.is_some() || is_over_another => Err(Stays::Renamed(by)),
            // What the turn made may have been copied: another name of it is not the turn's.
            (None, None) => Err(Stays::Renamed(None)),
            _ => match self.history.source().merge_back(&old, sides, self.markers) {
                Ok(merged) => Ok(merged),
                Err(clash) if by.is_some() => Err(Stays::Clash(clash)),
                // It may be another file.
                Err(_) => return None,
            },
        };
        outcomes.remove(&old);
        outcomes.retain(|path, _| Some(path) != own.as_ref());
        let deeds = vec![Deed { before, after }];
        outcomes.insert(path, PathOutcome { deeds, now: Some(now), wanted });
        Some(())
    }

    /// The only one of some files that is the same. It may be so by chance.
    fn equal_of(
        &self,
        old: &RelPath,
        after: &VersionEntry,
        new: &[(RelPath, VersionEntry)],
    ) -> Option<RelPath> {
        let bytes = self.history.source().read(old, after).filter(|bytes| !bytes.is_empty())?;
        let is_equal = |(path, here): &&(RelPath, VersionEntry)| {
            here.kind == after.kind
                && self.history.source().read(path, here).as_ref() == Some(&bytes)
        };
        let mut equal = new.iter().take(COMPARED_MAX).filter(is_equal);
        let (path, _) = equal.next()?;
        equal.next().is_none().then(|| path.clone())
    }

    /// The path from which the turn itself had renamed the file that it left as `after`, if it did.
    fn own_rename(
        &self,
        after: &Version,
        outcomes: &BTreeMap<RelPath, PathOutcome>,
    ) -> Option<RelPath> {
        let after = after.as_ref()?;
        let from = gone_files(outcomes);
        let (first, _) = from.first()?;
        self.history.source().most_alike((first, after), &from).map(|(path, _)| path.clone())
    }

    /// Where later calls have renamed a file to, and the last of them.
    fn renamed_by_call(&self, old: &RelPath) -> Option<(RelPath, usize)> {
        /// Longer than any that people make.
        const RENAMES_MAX: usize = 20;
        let next = |(path, _): &(RelPath, usize)| self.renamed_once(path);
        std::iter::successors(self.renamed_once(old), next).take(RENAMES_MAX).last()
    }

    /// The call of another turn that was the last one to leave nothing at a path, and where it left what had
    /// been there.
    fn renamed_once(&self, old: &RelPath) -> Option<(RelPath, usize)> {
        let sights = self.history.sights(old);
        let gone = sights.iter().rposition(|sight| !sight.there.is_any())?;
        let Doer::Call(Some(by)) = sights[gone].by else { return None };
        let was = VersionEntry::seen(&sights[..gone].last()?.there);
        // All empty files are the same.
        let is_empty = self.history.source().read(old, was.as_ref()?)?.is_empty();
        if is_empty || self.history.is_of(&sights[gone], &self.turns) {
            return None;
        }
        let is_it = |sight: &Sight| {
            let there = VersionEntry::seen(&sight.there);
            sight.by == Doer::Call(Some(by)) && self.history.source().is_same(old, &was, &there)
        };
        let mut to =
            self.history.all_sights().filter(|(path, all)| *path != old && all.iter().any(is_it));
        let (path, _) = to.next()?;
        to.next().is_none().then(|| (path.clone(), by))
    }
}

/// The files that the turn removed, as they were before it.
fn gone_files(outcomes: &BTreeMap<RelPath, PathOutcome>) -> Vec<(RelPath, VersionEntry)> {
    let gone = outcomes.iter().filter_map(|(path, outcome)| match &outcome.deeds[..] {
        [Deed { before: Some(before), after: None }] if outcome.now.is_none() => {
            Some((path.clone(), before.clone()))
        }
        _ => None,
    });
    gone.collect()
}

/// The files that are there and were not before the turn.
fn new_files(others: &BTreeMap<RelPath, &Change>) -> Vec<(RelPath, VersionEntry)> {
    let new = others.iter().filter(|(_, change)| change.before.is_none());
    let here = |(path, change): (&RelPath, &&Change)| {
        Some((path.clone(), VersionEntry::here(change.after?)))
    };
    new.filter_map(here).collect()
}

/// A file that the turn left, and that is not there any more.
struct LostFile {
    old: RelPath,
    before: Version,
    after: VersionEntry,
}

fn set(
    outcomes: &mut BTreeMap<RelPath, PathOutcome>,
    path: &RelPath,
    wanted: Result<(Version, bool), Stays>,
) {
    if let Some(outcome) = outcomes.get_mut(path) {
        outcome.wanted = wanted;
    }
}
