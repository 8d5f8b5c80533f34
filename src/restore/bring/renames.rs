//! A file that the fork or the project renamed is one file with what the other has made of it.

use std::collections::BTreeSet;

use super::outcomes::{Bring, BringOutcome, BringOutcomes};
use crate::{
    error::Result,
    model::{Kind, RelPath},
    restore::version::{Clash, Version, VersionEntry},
    store,
};

impl Bring<'_> {
    /// Brings together what was renamed. Returns the old names of what stays in the fork by its new one.
    pub(super) fn follow_renames(&self, outcomes: &mut BringOutcomes) -> Result<BTreeSet<RelPath>> {
        let new_here = self.new_here(outcomes)?;
        let old_names = self.follow_theirs(outcomes, &new_here);
        self.follow_ours(outcomes, &new_here)?;
        Ok(old_names)
    }

    /// The fork renamed a file. What the project has made of it comes along.
    fn follow_theirs(
        &self,
        outcomes: &mut BringOutcomes,
        new_here: &[(RelPath, VersionEntry)],
    ) -> BTreeSet<RelPath> {
        let mut stay = BTreeSet::new();
        let gone: Vec<(RelPath, VersionEntry)> = outcomes
            .iter()
            .filter(|(_, outcome)| outcome.theirs.is_none())
            .filter_map(|(path, outcome)| Some((path.clone(), file(&outcome.base)?)))
            .collect();
        let made: Vec<(RelPath, VersionEntry)> = outcomes
            .iter()
            .filter(|(_, outcome)| outcome.base.is_none())
            .filter_map(|(path, outcome)| Some((path.clone(), file(&outcome.theirs)?)))
            .collect();
        if gone.is_empty() {
            return stay;
        }
        for (new, theirs) in made {
            let found = self.source.most_alike((&new, &theirs), &gone);
            let Some((old, base)) = found else { continue };
            self.follow_one(outcomes, (old, base), (&new, theirs), new_here);
            stay.extend(outcomes[&new].wanted.is_err().then(|| old.clone()));
        }
        stay
    }

    fn follow_one(
        &self,
        outcomes: &mut BringOutcomes,
        (old, base): (&RelPath, &VersionEntry),
        (new, theirs): (&RelPath, VersionEntry),
        new_here: &[(RelPath, VersionEntry)],
    ) {
        let [at_old, at_new] = [old, new].map(|path| outcomes[path].ours.map(VersionEntry::here));
        let base = self.source.with_bytes(old, Some(base.clone()));
        let theirs = self.source.with_bytes(new, Some(theirs));
        match (at_old, at_new) {
            // It was taken away as it was, or has been renamed the same way.
            (Some(at_old), None) if outcomes[old].wanted.is_err() => {
                let ours = self.source.with_bytes(old, Some(at_old));
                match self.merged(new, [&base, &ours, &theirs]) {
                    Ok(merged) => {
                        set(outcomes, new, Ok(merged));
                        set(outcomes, old, Ok((None, false)));
                    }
                    // Both stay, or there would be two of it.
                    Err(clash) => set(outcomes, new, Err(clash)),
                }
            }
            (None, Some(at_new)) if outcomes[new].wanted.is_err() => {
                let ours = self.source.with_bytes(new, Some(at_new));
                if let Ok(merged) = self.merged(new, [&base, &ours, &theirs]) {
                    set(outcomes, new, Ok(merged));
                }
            }
            (None, None) => {
                let is_elsewhere = base
                    .as_ref()
                    .is_some_and(|base| self.source.most_alike((old, base), new_here).is_some());
                let is_as_it_was = self.source.is_same(new, &base, &theirs);
                // Renamed there, and here renamed to another name, or deleted.
                if is_elsewhere || !is_as_it_was {
                    set(outcomes, new, Err(Clash::Touches));
                }
            }
            (_, _) => (),
        }
    }

    /// The project renamed a file that the fork changed.
    fn follow_ours(
        &self,
        outcomes: &mut BringOutcomes,
        new_here: &[(RelPath, VersionEntry)],
    ) -> Result<()> {
        let lost: Vec<RelPath> = outcomes
            .iter()
            .filter(|(_, outcome)| outcome.wanted.is_err() && outcome.ours.is_none())
            .filter(|(_, it)| file(&it.base).is_some() && file(&it.theirs).is_some())
            .map(|(path, _)| path.clone())
            .collect();
        for old in lost {
            let BringOutcome { base, theirs, .. } = &outcomes[&old];
            let Some(was) = file(base) else { continue };
            let found = self.source.most_alike((&old, &was), new_here);
            let Some((path, here)) = found else { continue };
            if outcomes.contains_key(path) {
                continue;
            }
            let [base, theirs] =
                [base, theirs].map(|version| self.source.with_bytes(&old, version.clone()));
            let ours = self.source.with_bytes(path, Some(here.clone()));
            // Where it does not fit, it may be another file.
            let Ok(merged) = self.merged(path, [&base, &ours, &theirs]) else {
                continue;
            };
            let now = self.ours(path)?;
            outcomes.remove(&old);
            let outcome = BringOutcome { base, theirs, ours: now, wanted: Ok(merged) };
            outcomes.insert(path.clone(), outcome);
        }
        Ok(())
    }

    /// Three versions that stand by themselves made one.
    fn merged(
        &self,
        path: &RelPath,
        sides @ [base, ours, theirs]: [&Version; 3],
    ) -> Result<(Version, bool), Clash> {
        if [base, ours, theirs].iter().any(|version| version.is_none()) {
            return Err(Clash::Unheld);
        }
        self.merge_back(path, sides)
    }

    /// The files that the project has and the fork neither began with nor has changed. Looked for only
    /// where one of them may have been renamed.
    fn new_here(&self, outcomes: &BringOutcomes) -> Result<Vec<(RelPath, VersionEntry)>> {
        let is_lost =
            |outcome: &BringOutcome| outcome.ours.is_none() && file(&outcome.base).is_some();
        if !outcomes.values().any(is_lost) {
            return Ok(Vec::new());
        }
        let mut new = Vec::new();
        for (path, entry) in store::manifest(self.project.store.as_ref(), &self.here.now)? {
            if entry.kind != Kind::File || outcomes.contains_key(&path) {
                continue;
            }
            let began = store::entry_at(self.fork.store.as_ref(), &self.side.base_tree, &path)?;
            if began.is_none() {
                new.push((path, VersionEntry::here(entry)));
            }
        }
        Ok(new)
    }
}

fn file(version: &Version) -> Option<VersionEntry> {
    version.clone().filter(|it| it.kind == Kind::File)
}

fn set(outcomes: &mut BringOutcomes, path: &RelPath, wanted: Result<(Version, bool), Clash>) {
    if let Some(outcome) = outcomes.get_mut(path) {
        outcome.wanted = wanted;
    }
}
