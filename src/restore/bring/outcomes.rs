//! What is to be at each path that a fork has changed.

use std::collections::{BTreeMap, BTreeSet};

use super::{Brings, fork_side::ForkSide};
use crate::{
    error::Result,
    fs::stat_path,
    model::{Entry, Kind, RelPath},
    plan::{Author, Change, KeepReason, Merged},
    project::Project,
    restore::{
        comparison::CurrentRoot,
        merge::Merges,
        version::{Clash, Version, VersionBytes, VersionEntry, VersionSource},
    },
    store,
};

/// A fork that is about to be merged into its project.
pub(super) struct Bring<'a> {
    pub(super) project: &'a Project,
    pub(super) fork: &'a Project,
    pub(super) side: &'a ForkSide,
    pub(super) here: &'a CurrentRoot,
    pub(super) source: VersionSource<'a>,
    pub(super) markers: bool,
}

/// What is to be at a path, or why it stays.
pub(super) struct BringOutcome {
    pub(super) base: Version,
    pub(super) theirs: Version,
    pub(super) ours: Option<Entry>,
    /// With whether conflicts are marked in it.
    pub(super) wanted: Result<(Version, bool), Clash>,
}

pub(super) type BringOutcomes = BTreeMap<RelPath, BringOutcome>;

/// What the plan is made of.
#[derive(Default)]
pub(super) struct BringChanges {
    /// From what is wanted to what is there.
    pub(super) changes: Vec<Change>,
    pub(super) authors: BTreeMap<RelPath, Author>,
    pub(super) merges: Merges,
    pub(super) kept: BTreeMap<RelPath, KeepReason>,
    /// What the fork has by another name, and keeps by that one.
    pub(super) old_names: BTreeSet<RelPath>,
}

impl<'a> Bring<'a> {
    pub(super) fn new(
        project: &'a Project,
        brings: &'a Brings,
        side: &'a ForkSide,
        here: &'a CurrentRoot,
        markers: bool,
    ) -> Self {
        let fork = &brings.fork;
        let source = VersionSource::with_fork(project, fork);
        Self { project, fork, side, here, source, markers }
    }

    pub(super) fn all(&self) -> Result<BringChanges> {
        let mut outcomes = BringOutcomes::new();
        for (path, theirs) in &self.side.theirs {
            outcomes.insert(path.clone(), self.outcome(path, *theirs)?);
        }
        let old_names = self.follow_renames(&mut outcomes)?;
        let mut found = BringChanges { old_names, ..BringChanges::default() };
        for (path, outcome) in &outcomes {
            self.add(&mut found, path, outcome);
        }
        self.keep_around_others(&mut found)?;
        found.changes.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(found)
    }

    fn outcome(&self, path: &RelPath, theirs: Option<Entry>) -> Result<BringOutcome> {
        let theirs = theirs.map(VersionEntry::fork_here);
        let ours = self.ours(path)?;
        let here = ours.map(VersionEntry::here);
        let base = self.base(path)?;
        let wanted = if ours.is_none() && stat_path(&self.project.root.join(path)).is_ok() {
            // Something is there, and cannot be looked at.
            Err(Clash::Unheld)
        } else {
            self.merge_back(path, [&base, &here, &theirs])
        };
        Ok(BringOutcome { base, theirs, ours, wanted })
    }

    pub(super) fn ours(&self, path: &RelPath) -> Result<Option<Entry>> {
        store::entry_at(self.project.store.as_ref(), &self.here.now, path)
    }

    /// From where both went on at a path: what was brought of the fork last, or else its beginning.
    fn base(&self, path: &RelPath) -> Result<Version> {
        let began = self.side.base.get(path).copied().flatten().map(VersionEntry::fork_held);
        let last = self.side.brought.iter().find(|(it, _)| !it.stayed.contains(path));
        match last {
            Some((_, tree)) => {
                let entry = store::entry_at(self.fork.store.as_ref(), tree, path)?;
                Ok(entry.map(VersionEntry::fork_held))
            }
            None => Ok(began),
        }
    }

    /// Three versions made one.
    pub(super) fn merge_back(
        &self,
        path: &RelPath,
        [base, ours, theirs]: [&Version; 3],
    ) -> Result<(Version, bool), Clash> {
        if self.source.is_same(path, base, theirs) {
            return Ok((ours.clone(), false));
        }
        self.source.merge_back(path, [base, ours, theirs], self.markers)
    }

    /// Adds to the plan what is to become of a path.
    fn add(&self, found: &mut BringChanges, path: &RelPath, outcome: &BringOutcome) {
        let ours = outcome.ours;
        let here = ours.map(VersionEntry::here);
        let Ok((wanted, is_marked)) = &outcome.wanted else {
            return found.keep_both(path, outcome);
        };
        if self.source.is_same(path, wanted, &here) {
            return;
        }
        let Some(wanted) = wanted else {
            return found.put(path, None, ours, Author::Agent);
        };
        let permissions = wanted.permissions.unwrap_or(0o755);
        let their_permissions = outcome.theirs.as_ref().and_then(|theirs| theirs.permissions);
        let as_theirs = Some(permissions) == their_permissions || wanted.kind == Kind::Link;
        let VersionEntry { kind, device, .. } = *wanted;
        if let VersionBytes::ForkHere(content) = wanted.bytes
            && as_theirs
        {
            let entry = Entry { kind, permissions, content, device };
            return found.put(path, Some(entry), ours, Author::Agent);
        }
        let bytes = (kind == Kind::File).then(|| self.source.read(path, wanted)).flatten();
        match bytes {
            Some(bytes) => {
                found.merges.files.insert(path.clone(), Merged { bytes, permissions });
                found.merges.marked.extend(is_marked.then(|| path.clone()));
                let entry = Entry { kind, permissions, content: None, device };
                found.put(path, Some(entry), ours, Author::Other);
            }
            None => found.keep(path, ours, KeepReason::BothChanged),
        }
    }

    /// A directory that the fork removed, or put something else in place of, stays with what the project
    /// has put in it.
    fn keep_around_others(&self, found: &mut BringChanges) -> Result<()> {
        let dirs = found.directories_that_go();
        if dirs.is_empty() {
            return Ok(());
        }
        let known: BTreeSet<RelPath> =
            found.changes.iter().map(|change| change.path.clone()).collect();
        let is_in_one = |path: &RelPath| dirs.iter().any(|dir| path.is_within(dir));
        let all = store::manifest(self.project.store.as_ref(), &self.here.now)?;
        for (path, entry) in all {
            if is_in_one(&path) && !known.contains(&path) {
                found.keep(&path, Some(entry), KeepReason::New);
            }
        }
        Ok(())
    }
}

impl BringChanges {
    fn put(&mut self, path: &RelPath, to: Option<Entry>, now: Option<Entry>, author: Author) {
        self.authors.insert(path.clone(), author);
        self.changes.push(Change { path: path.clone(), before: to, after: now });
    }

    fn keep(&mut self, path: &RelPath, now: Option<Entry>, kept: KeepReason) {
        self.kept.insert(path.clone(), kept);
        self.put(path, now, now, Author::Other);
    }

    /// Keeps what the project and the fork have both changed. What the fork has removed is nothing there.
    fn keep_both(&mut self, path: &RelPath, outcome: &BringOutcome) {
        self.kept.insert(path.clone(), KeepReason::BothChanged);
        let then = outcome.ours.filter(|_| outcome.theirs.is_some());
        self.put(path, then, outcome.ours, Author::Other);
    }

    /// The directories of the project that would go, or become something else.
    pub(super) fn directories_that_go(&self) -> Vec<RelPath> {
        let goes =
            |change: &&Change| change.made_directory() && !self.kept.contains_key(&change.path);
        self.changes.iter().filter(goes).map(|change| change.path.clone()).collect()
    }
}
