//! What a revert makes of each path: a turn is taken back, and what came after it stays.
//!
//! The deeds of a turn at a path lead from what was there before its calls to what they left. Three-way merges
//! remove them from the current file. The result becomes a plan, which is executed like that of any restore.

mod renames;

use std::collections::{BTreeMap, BTreeSet};

use super::{
    Restore,
    content::digest_then,
    content::{entry_at, top},
    history::{Deed, FileHistory, PathDeeds},
    merge::{Merges, WithoutCalls},
    prepared::BuiltOn,
    version::{Clash, Version, VersionEntry},
};
use crate::{
    attribution::{self, Doer, PathSide},
    error::{Error, Result},
    fs::stat_path,
    model::{CheckpointId, Entry, Kind, RelPath, Tree},
    plan::{Author, Change, KeepReason, Merged},
};

/// What a revert comes to.
#[derive(Default)]
pub(super) struct Reverted {
    /// From what is wanted to what is there, of what the turn changed.
    pub(super) changes: Vec<Change>,
    pub(super) authors: BTreeMap<RelPath, Author>,
    pub(super) merges: Merges,
    /// The SHA-256 of what is put back, and is not what the restore's checkpoint has there.
    pub(super) digests: BTreeMap<RelPath, String>,
    /// What stays, and why.
    pub(super) kept: BTreeMap<RelPath, KeepReason>,
    /// The later turns that build on the turn, by path.
    pub(super) built_on: BTreeMap<RelPath, BuiltOn>,
    /// What the turn was seen to change.
    pub(super) touched: BTreeSet<RelPath>,
}

/// Takes back the turn with a number in the list; the restore's checkpoint is its first. `changes` lead from
/// `ends.then`, the state before it, to `ends.now`.
pub(super) fn revert(
    restore: Restore<'_>,
    number: usize,
    changes: &[Change],
    ends: TurnEnds<'_>,
    side: PathSide,
) -> Result<Reverted> {
    let history = FileHistory::since_checkpoint(restore.project, restore.checkpoint, side)?;
    let turns = history.turns_numbered(number);
    let revert = Revert { restore, ends, side, history, turns, markers: restore.request.markers };
    if revert.history.logged_calls_of(&revert.turns).next().is_none() {
        let id = restore.checkpoint.id.short();
        return Err(Error::other(
            "what the turn did is not known: no call of it is in the log",
            format!(
                "`{}beforehand restore {id}` goes back to before it",
                restore.project.cd_prefix()
            ),
        ));
    }
    revert.all(changes)
}

/// The files before a turn, and those that are there now.
#[derive(Clone, Copy)]
pub(super) struct TurnEnds<'a> {
    pub(super) then: &'a Tree,
    pub(super) now: &'a Tree,
}

/// A revert under way.
pub(super) struct Revert<'a> {
    restore: Restore<'a>,
    ends: TurnEnds<'a>,
    side: PathSide,
    history: FileHistory<'a>,
    /// The turns that are taken back, by their places in [`FileHistory::turns`].
    turns: BTreeSet<usize>,
    markers: bool,
}

/// What is to be at a path, or why it stays.
struct PathOutcome {
    /// What the turn did there, oldest first.
    deeds: Vec<Deed>,
    now: Option<Entry>,
    /// With whether conflicts are marked in it.
    wanted: Result<(Version, bool), Stays>,
}

/// Why a path stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stays {
    /// What the turn did and what is there do not come to one.
    Clash(Clash),
    /// It seems to be what the turn left by another name: this call of the log renamed it, or no call was seen to.
    Renamed(Option<usize>),
}

impl<'a> Revert<'a> {
    /// Takes back all that the session of the checkpoint has done since; `None` if it was taken for none.
    ///
    /// # Errors
    ///
    /// Fails if the checkpoints cannot be listed.
    pub(super) fn of_session(restore: Restore<'a>, ends: TurnEnds<'a>) -> Result<Option<Self>> {
        let Some(by) = &restore.checkpoint.cause.by else { return Ok(None) };
        let name = attribution::session_name(by.agent, &by.session);
        let side = PathSide::Root;
        let history = FileHistory::since_checkpoint(restore.project, restore.checkpoint, side)?;
        let turns = history.turns_of_session(&name);
        let markers = restore.request.markers;
        Ok(Some(Self { restore, ends, side, history, turns, markers }))
    }

    /// A file without what the calls did, if others changed it between two of their changes; `None` if nothing did.
    pub(super) fn between_others(&self, change: &Change) -> Option<WithoutCalls> {
        let PathDeeds { deeds, .. } = self.history.deeds(&change.path, &self.turns);
        if deeds.len() < 2 {
            return None;
        }
        let now = change.after?;
        let here = Some(VersionEntry::here(now));
        let merge = || {
            let taken = self.take_back(&change.path, &deeds, &here, self.markers);
            let (wanted, is_marked) = taken.ok()?;
            let wanted = wanted.filter(|wanted| wanted.kind == Kind::File)?;
            let bytes = self.history.source().read(&change.path, &wanted)?;
            let permissions = wanted.permissions.unwrap_or(now.permissions);
            Some((Merged { bytes, permissions }, is_marked))
        };
        Some(WithoutCalls { merged: merge() })
    }
}

impl Revert<'_> {
    fn all(&self, changes: &[Change]) -> Result<Reverted> {
        let touched = self.history.touched_by(&self.turns);
        let again = self.as_before(changes, &touched)?;
        let mut reverted = Reverted { touched, ..Reverted::default() };
        let mut outcomes = BTreeMap::new();
        for change in changes.iter().chain(&again) {
            let path = &change.path;
            let may_be_its = reverted.touched.contains(path)
                || self.history.may_have_changed_unseen(path, &self.turns);
            if !may_be_its {
                continue;
            }
            let PathDeeds { deeds, is_unknown } = self.history.deeds(path, &self.turns);
            if is_unknown || self.history.is_lost() {
                if !change.is_none() {
                    self.keep(&mut reverted, change, KeepReason::AfterUnknown, None);
                }
            } else if !deeds.is_empty() {
                outcomes.insert(path.clone(), self.outcome(change, deeds));
            }
        }
        self.follow_renames(changes, &mut outcomes);
        for (path, outcome) in &outcomes {
            self.add(&mut reverted, path, outcome)?;
        }
        keep_around_others(changes, &mut reverted);
        reverted.changes.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(reverted)
    }

    /// The paths that the turn touched and that are as they were before it: others may have changed them too.
    fn as_before(&self, changes: &[Change], touched: &BTreeSet<RelPath>) -> Result<Vec<Change>> {
        let project = self.restore.project;
        let known = paths(changes);
        let mut again = Vec::new();
        for path in touched.iter().filter(|path| !known.contains(path)) {
            let before = entry_at(project, self.ends.then, path, self.side)?;
            let after = entry_at(project, self.ends.now, path, self.side)?;
            let is_directory = after.is_some_and(Entry::is_directory);
            // What is ignored now only seems to be gone.
            let is_there = stat_path(&top(project, self.side).join(path.as_path())).is_ok();
            if !is_directory && is_there == after.is_some() {
                again.push(Change { path: path.clone(), before, after });
            }
        }
        Ok(again)
    }

    fn outcome(&self, change: &Change, deeds: Vec<Deed>) -> PathOutcome {
        let now = change.after.map(VersionEntry::here);
        let wanted = self.take_back(&change.path, &deeds, &now, self.markers);
        PathOutcome { deeds, now: change.after, wanted: wanted.map_err(Stays::Clash) }
    }

    /// Takes the deeds of the turn back from `from`: one by one, the newest first. If that conflicts, all at once,
    /// against the state that the path would have had without the turn: the state before the first deed, plus what
    /// others did between the deeds.
    fn take_back(
        &self,
        path: &RelPath,
        deeds: &[Deed],
        from: &Version,
        markers: bool,
    ) -> Result<(Version, bool), Clash> {
        let one_by_one = deeds.iter().rev().try_fold(from.clone(), |here, deed| {
            let sides = [&deed.after, &here, &deed.before];
            self.history.source().merge_back(path, sides, false).map(|(version, _)| version)
        });
        let (first, last) = match (one_by_one, deeds) {
            (Ok(version), _) => return Ok((version, false)),
            (Err(clash), []) => return Err(clash),
            (Err(_), [first, .., last]) => (first, last),
            (Err(_), [only]) => (only, only),
        };
        let without = deeds.windows(2).try_fold(first.before.clone(), |without, pair| {
            let sides = [&pair[0].after, &pair[1].before, &without];
            self.history.source().merge_back(path, sides, false).map(|(version, _)| version)
        })?;
        self.history.source().merge_back(path, [&last.after, from, &without], markers)
    }

    /// Adds to the plan what is to become of a path.
    fn add(&self, reverted: &mut Reverted, path: &RelPath, outcome: &PathOutcome) -> Result<()> {
        let then = entry_at(self.restore.project, self.ends.then, path, self.side)?;
        let now = outcome.now;
        let change = Change { path: path.clone(), before: then, after: now };
        let (wanted, is_marked) = match &outcome.wanted {
            Err(stays) => {
                let built_on = || self.built_on(path, &outcome.deeds);
                let (kept, by) = match *stays {
                    Stays::Clash(Clash::Touches) => (KeepReason::BuiltOn, built_on()),
                    Stays::Clash(Clash::Unheld) => (KeepReason::AfterUnheld, built_on()),
                    Stays::Renamed(by) => (KeepReason::Renamed, by),
                };
                self.keep(reverted, &change, kept, by);
                return Ok(());
            }
            Ok(wanted) => wanted,
        };
        let now_version = now.map(VersionEntry::here);
        if self.history.source().is_same(path, wanted, &now_version) {
            return Ok(());
        }
        let Some(wanted) = wanted else {
            reverted.put(Change { before: None, ..change }, Author::Agent);
            return Ok(());
        };
        let permissions = wanted.permissions.unwrap_or(0o755);
        let held = then.map(VersionEntry::held);
        let is_held =
            held.is_some_and(|then| self.history.source().has_same_bytes(path, &then, wanted));
        if let Some(then) = then.filter(|_| is_held) {
            let before = Some(Entry { permissions, ..then });
            reverted.put(Change { before, ..change }, Author::Agent);
            return Ok(());
        }
        let VersionEntry { kind, device, .. } = *wanted;
        let entry = Entry { kind, permissions, content: None, device };
        let bytes = (kind == Kind::File && self.side == PathSide::Root)
            .then(|| self.history.source().read(path, wanted))
            .flatten();
        match bytes {
            Some(bytes) => {
                reverted.merges.files.insert(path.clone(), Merged { bytes, permissions });
                reverted.merges.marked.extend(is_marked.then(|| path.clone()));
                reverted.put(Change { before: Some(entry), ..change }, Author::Other);
            }
            None if kind == Kind::Directory => {
                // An undo knows it for the revert's own by that.
                let digest = digest_then(self.restore.project, &entry);
                reverted.digests.extend(digest.map(|digest| (path.clone(), digest)));
                reverted.put(Change { before: Some(entry), ..change }, Author::Agent);
            }
            None => match self.held_elsewhere(wanted) {
                Some((held, digest)) => {
                    reverted.digests.insert(path.clone(), digest);
                    let before = Some(Entry { permissions, ..held });
                    reverted.put(Change { before, ..change }, Author::Agent);
                }
                None => self.keep(reverted, &change, KeepReason::AfterUnheld, None),
            },
        }
        Ok(())
    }

    /// What a later checkpoint of the turn holds, and the digest by which an undo knows it again.
    fn held_elsewhere(&self, wanted: &VersionEntry) -> Option<(Entry, String)> {
        let content = wanted.held_content().filter(|_| self.side == PathSide::Root)?;
        let VersionEntry { kind, device, .. } = *wanted;
        let entry = Entry { kind, permissions: 0, content: Some(content), device };
        Some((entry, digest_then(self.restore.project, &entry)?))
    }

    /// The later call that touched what the turn did at a path, if one was seen to, by its place in the log.
    fn built_on(&self, path: &RelPath, deeds: &[Deed]) -> Option<usize> {
        let clashes = |there: &Version| self.take_back(path, deeds, there, false).is_err();
        let sights = self.history.sights(path);
        let last = sights.iter().rposition(|sight| self.history.is_of(sight, &self.turns));
        let first = sights[last.map_or(0, |last| last + 1)..]
            .iter()
            .find(|sight| clashes(&VersionEntry::seen(&sight.there)))?;
        let Doer::Call(Some(caller)) = first.by else { return None };
        // What clashed before the call began is another author's, and was not seen.
        let was = self.held_at(path, self.history.logged_call(caller).of);
        (!was.is_some_and(|was| clashes(&was))).then_some(caller)
    }

    /// Adds to the plan that a path stays, and the later call for which it does, by its place in the log.
    fn keep(&self, reverted: &mut Reverted, change: &Change, kept: KeepReason, by: Option<usize>) {
        let path = &change.path;
        reverted.kept.insert(path.clone(), kept);
        let mut author = Author::Other;
        if let Some(caller) = by {
            let call = self.history.logged_call(caller);
            author = Author::Session(attribution::tag(&call.by));
            let turn = self.history.turn_number_of(caller);
            reverted.built_on.insert(path.clone(), BuiltOn { checkpoint: call.of, turn });
        }
        reverted.put(change.clone(), author);
    }

    /// What a checkpoint has at a path; `None` if that cannot be read.
    fn held_at(&self, path: &RelPath, checkpoint: CheckpointId) -> Option<Version> {
        let project = self.restore.project;
        let tree = project.tree_by_id(checkpoint).ok()?;
        let entry = entry_at(project, &tree, path, self.side).ok()?;
        Some(entry.map(VersionEntry::held))
    }
}

impl Reverted {
    fn put(&mut self, change: Change, author: Author) {
        self.authors.insert(change.path.clone(), author);
        self.changes.push(change);
    }
}

fn paths(changes: &[Change]) -> BTreeSet<&RelPath> {
    changes.iter().map(|change| &change.path).collect()
}

/// A directory that the turn made stays with what others have put in it.
fn keep_around_others(changes: &[Change], reverted: &mut Reverted) {
    let goes = reverted.changes.iter().filter(|change| change.made_directory());
    let dirs: Vec<RelPath> = goes.map(|change| change.path.clone()).collect();
    let known: BTreeSet<RelPath> = paths(&reverted.changes).into_iter().cloned().collect();
    let is_others = |change: &&Change| {
        let path = &change.path;
        change.after.is_some()
            && !known.contains(path)
            && dirs.iter().any(|dir| path.is_within(dir))
    };
    for change in changes.iter().filter(is_others) {
        reverted.kept.insert(change.path.clone(), KeepReason::New);
        reverted.put(change.clone(), Author::Other);
    }
}
