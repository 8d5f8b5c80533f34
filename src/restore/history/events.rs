//! What was seen at a path: before calls, after them, after restores, and now.

use super::{
    super::{
        content::{entry_at, small, top},
        version::{Version, VersionBytes, VersionEntry},
    },
    FileHistory,
};
use crate::{
    attribution::{Doer, LoggedCall, PathSide, Sight},
    fs::stat_path,
    model::{Checkpoint, CheckpointId, Entry, Kind, Reason, RelPath},
    plan::ByPath,
};

/// Something that was seen at a path.
#[derive(Clone)]
pub(super) struct SeenState {
    /// Its place in the log.
    pub(super) order: usize,
    pub(super) there: Version,
    pub(super) how: SeenWhen,
}

/// When it was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SeenWhen {
    /// Right before a call, or now.
    Before,
    /// Right before a restore.
    BeforeRestore,
    /// Right after a call; `None` for one of which nothing else is known.
    After(Option<usize>),
    /// Right after a restore had put it there.
    Back,
    /// After what is noted at that place, or somewhat later, while calls may have begun.
    NotBefore,
}

impl FileHistory<'_> {
    /// What was seen at a path since the oldest checkpoint, oldest first.
    pub(super) fn seen(&self, path: &RelPath) -> Vec<SeenState> {
        let mut seen = self.in_checkpoints(path);
        let base = self.base_order();
        let sights = self.log.seen_at(path);
        for (at, caller) in self.log.logged_calls.iter().enumerate() {
            if caller.began >= base && caller.reaches(path) {
                seen.extend(self.before_call(path, caller, sights));
                seen.extend(self.unchanged_by(path, at, sights));
            }
        }
        seen.extend(sights.iter().filter(|sight| sight.order >= base).map(|it| self.sight(it)));
        let rank = |seen: &SeenState| match seen.how {
            SeenWhen::BeforeRestore => 0,
            SeenWhen::Before => 1,
            SeenWhen::After(_) | SeenWhen::Back => 2,
            SeenWhen::NotBefore => 3,
        };
        seen.sort_by_key(|seen| (seen.order, rank(seen)));
        seen.extend(self.now(path));
        keep_where_restored(&mut seen);
        seen
    }

    /// Where the oldest checkpoint stands.
    pub(super) fn base_order(&self) -> usize {
        self.orders.iter().copied().min().unwrap_or(0)
    }

    /// What the checkpoints tell. The oldest one, those right before a call, and those right before a
    /// restore stand at a certain place.
    fn in_checkpoints(&self, path: &RelPath) -> Vec<SeenState> {
        let base = self.base_order();
        let mut seen = Vec::new();
        for (one, order) in self.checkpoints.iter().zip(self.orders.iter().copied()) {
            let (order, how) = match one.cause.reason {
                _ if order == base || self.log.is_before_call(one) => (order, SeenWhen::Before),
                Reason::BeforeRestore => (order, SeenWhen::BeforeRestore),
                Reason::Call | Reason::Net | Reason::Asked => (order - 1, SeenWhen::NotBefore),
            };
            seen.extend(self.held(one, path).map(|there| SeenState { order, there, how }));
        }
        seen
    }

    /// What a checkpoint has at a path; `None` if it does not tell.
    pub(super) fn held(&self, checkpoint: &Checkpoint, path: &RelPath) -> Option<Version> {
        if !checkpoint.completeness.is_whole() {
            return None;
        }
        let tree = self.source.tree(checkpoint.id)?;
        let entry = entry_at(self.project, &tree, path, self.side).ok()?;
        let is_told = || match self.side {
            PathSide::Root => ByPath::of(&checkpoint.skipped).covering(path).is_none(),
            // Only the one before a restore names what was not there.
            PathSide::Outside => {
                checkpoint.cause.reason == Reason::BeforeRestore
                    && checkpoint.outside.contains(&path.at_top())
            }
        };
        match entry {
            None if !is_told() => None,
            entry => Some(entry.map(VersionEntry::held)),
        }
    }

    /// One of the checkpoints.
    pub(super) fn checkpoint(&self, id: CheckpointId) -> Option<&Checkpoint> {
        self.places.get(&id).map(|at| &self.checkpoints[*at])
    }

    /// Whether a checkpoint was taken, or found as it was, right before a call.
    pub(super) fn is_exact(&self, caller: &LoggedCall, checkpoint: &Checkpoint) -> bool {
        caller.compared || self.log.position_of(checkpoint) == caller.began
    }

    /// What was there right before a call. What an edit names and finds as it was last seen is not noted
    /// again.
    fn before_call(
        &self,
        path: &RelPath,
        caller: &LoggedCall,
        sights: &[Sight],
    ) -> Option<SeenState> {
        let is_its = |sight: &&Sight| {
            sight.by == Doer::Other && (caller.first_before..=caller.began).contains(&sight.order)
        };
        if sights.iter().any(|sight| is_its(&sight)) {
            return None;
        }
        let checkpoint = self.checkpoint(caller.of);
        let exact = checkpoint.filter(|one| self.is_exact(caller, one));
        let held = exact.and_then(|checkpoint| self.held(checkpoint, path));
        let is_told = exact.is_some() && self.side == PathSide::Root;
        let there = match held {
            Some(held) => held,
            None if is_told => return None,
            None if caller.paths.is_some() && self.looks_again() => {
                self.last_known(path, caller, sights)?
            }
            None => return None,
        };
        Some(SeenState { order: caller.first_before, there, how: SeenWhen::Before })
    }

    /// Where in the log each checkpoint had been read, and its place among the checkpoints; in that order.
    fn read_orders(&self) -> &[(usize, usize)] {
        self.read_orders.get_or_init(|| {
            let taken = self.checkpoints.iter().enumerate();
            let mut read: Vec<_> = taken.map(|(at, one)| (self.log.was_read(one), at)).collect();
            read.sort_by_key(|(order, at)| (*order, self.checkpoints[*at].sequence));
            read
        })
    }

    /// What the session itself left last at a path before a call, or what a checkpoint holds since.
    fn last_known(&self, path: &RelPath, caller: &LoggedCall, sights: &[Sight]) -> Option<Version> {
        let is_own = |sight: &&Sight| match sight.by {
            Doer::Call(Some(by)) => {
                sight.order < caller.began && self.log.logged_calls[by].by == caller.by
            }
            Doer::Call(None) | Doer::Other | Doer::Restore => false,
        };
        let own = sights.iter().rfind(is_own);
        let read = self.read_orders();
        let last = read.partition_point(|(order, _)| *order <= caller.began).checked_sub(1)?;
        let (order, newest) = read[last];
        let held = self.held(&self.checkpoints[newest], path);
        // Outside the root a checkpoint may tell nothing of a path, and the log all that restores did there.
        let last = sights.iter().rfind(|sight| sight.order < caller.began);
        let is_last = |own: &Sight| last.is_some_and(|last| last.order == own.order);
        let is_outside = self.side == PathSide::Outside && held.is_none();
        // A checkpoint that was taken since may have been read until after the call.
        let since = last.map_or(order, |last| last.order.max(order));
        let taken = self.checkpoints.iter().zip(&self.orders).rev();
        let mut later =
            taken.filter(|(_, at)| (since..=caller.began).contains(*at) && **at > order);
        let late = later.next();
        if let Some((one, _)) = late
            && let Some(found) = self.held_while_read(path, caller, one)
        {
            return Some(found);
        }
        let Some(own) = own.filter(|own| own.order >= order || is_outside && is_last(own)) else {
            // Something was left there since, and the checkpoint does not have it.
            return held.filter(|_| since == order && late.is_none());
        };
        let there = VersionEntry::seen(&own.there);
        // Of a large file it is not known whether it was looked at.
        let is_small = match &there {
            Some(found) => self.source.read(path, found).is_some(),
            None => true,
        };
        is_small.then_some(there)
    }

    /// The state right before a call in a checkpoint that was taken before it and may have been read until after
    /// it; `None` if the call may have left it.
    fn held_while_read(
        &self,
        path: &RelPath,
        caller: &LoggedCall,
        checkpoint: &Checkpoint,
    ) -> Option<Version> {
        let held = self.held(checkpoint, path)?;
        let call = caller.began..=caller.done?;
        let left = self.log.seen_at(path).iter().find(|it| call.contains(&it.order));
        let is_left = left
            .is_some_and(|left| self.source.is_same(path, &VersionEntry::seen(&left.there), &held));
        (!is_left).then_some(held)
    }

    /// That a call left a path as it was: a command that was seen to leave others and not this one, or an
    /// edit that was refused.
    fn unchanged_by(&self, path: &RelPath, at: usize, sights: &[Sight]) -> Option<SeenState> {
        let caller = &self.log.logged_calls[at];
        let done = caller.done?;
        let how = SeenWhen::After(Some(at));
        if caller.paths.is_some() {
            let last = sights.iter().rfind(|it| it.order < done);
            let last = last.filter(|_| caller.cut_off == Some(done))?;
            return Some(SeenState { order: done, there: VersionEntry::seen(&last.there), how });
        }
        // What another call left there meanwhile is not noted again by the look after this one.
        let is_meanwhile = |sight: &Sight| (caller.began..=done).contains(&sight.order);
        if sights.iter().any(is_meanwhile) || self.log.is_cut_short(done) {
            return None;
        }
        let checkpoint = self.checkpoint(caller.of)?;
        let there = self.is_exact(caller, checkpoint).then(|| self.held(checkpoint, path))??;
        Some(SeenState { order: done, there, how })
    }

    fn sight(&self, sight: &Sight) -> SeenState {
        let is_its = |by: &usize| {
            let caller = &self.log.logged_calls[*by];
            caller.began <= sight.order && caller.done.is_some_and(|done| sight.order <= done)
        };
        let how = match sight.by {
            Doer::Other => SeenWhen::Before,
            Doer::Restore => SeenWhen::Back,
            Doer::Call(by) => SeenWhen::After(by.filter(is_its)),
        };
        SeenState { order: sight.order, there: VersionEntry::seen(&sight.there), how }
    }

    /// What is there now. What cannot be read is not known.
    fn now(&self, path: &RelPath) -> Option<SeenState> {
        let top = top(self.project, self.side);
        let there = match stat_path(&top.join(path.as_path())) {
            Err(_) => None,
            Ok(stamp) => {
                let kind = stamp.kind()?;
                let permissions = if kind == Kind::Link { 0o777 } else { stamp.permissions() };
                let device = if kind.has_content() { 0 } else { stamp.size };
                let entry = Entry { kind, permissions, content: None, device };
                let bytes = small(top, path, kind);
                let here = VersionEntry::here(entry);
                Some(match bytes {
                    Some(bytes) => VersionEntry { bytes: VersionBytes::These(bytes), ..here },
                    None => here,
                })
            }
        };
        Some(SeenState { order: usize::MAX, there, how: SeenWhen::Before })
    }
}

/// What was there right before a restore counts where that restore put something back, or where nothing
/// ran since: elsewhere a call may have begun while it was looked at.
fn keep_where_restored(seen: &mut Vec<SeenState>) {
    let is_restore = |how: SeenWhen| matches!(how, SeenWhen::BeforeRestore | SeenWhen::Back);
    let keeps: Vec<bool> = (0..seen.len())
        .map(|at| {
            let next = seen.get(at + 1);
            let is_last = next.is_none_or(|next| next.order == usize::MAX);
            seen[at].how != SeenWhen::BeforeRestore
                || at == 0
                || is_last
                || next.is_some_and(|next| is_restore(next.how))
        })
        .collect();
    let mut keeps = keeps.into_iter();
    seen.retain(|_| keeps.next().unwrap_or(true));
}
