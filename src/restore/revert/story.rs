//! What a turn did at one path, from all that was seen there: by its calls, by those of others, and by
//! the checkpoints that were taken meanwhile.

use super::Revert;
use crate::{
    attribution::{Doer, LoggedCall, PathSide, SeenCheckpoint, Sight},
    error::Result,
    model::{Checkpoint, Reason, RelPath},
    plan::{ByPath, Change},
    restore::{
        content::entry_at,
        version::{Version, VersionEntry},
    },
};

/// A change that calls of the turn made.
#[derive(Clone, Debug)]
pub(super) struct Deed {
    /// What was there right before them.
    pub(super) before: Version,
    /// What they left.
    pub(super) after: Version,
}

/// What a turn did at a path.
#[derive(Debug, Default)]
pub(super) struct PathDeeds {
    /// Oldest first, with something by others between one and the next.
    pub(super) deeds: Vec<Deed>,
    /// Whether there may have been more, or something else.
    pub(super) is_unknown: bool,
}

/// A story as far as it has been told.
struct PathDeedsBuilder {
    story: PathDeeds,
    /// What was there last.
    here: Version,
    /// Whether that is what the last deed left.
    is_deed: bool,
}

impl PathDeedsBuilder {
    /// Something is there that others left.
    fn others(&mut self, there: Version) {
        self.here = there;
        self.is_deed = false;
    }

    /// What is there is held.
    fn holds(&mut self, there: Version) {
        if let Some(last) = self.story.deeds.last_mut().filter(|_| self.is_deed) {
            last.after.clone_from(&there);
        }
        self.here = there;
    }

    /// A call of the turn left something.
    fn turn(&mut self, there: Version) {
        let before = std::mem::replace(&mut self.here, there.clone());
        match self.story.deeds.last_mut().filter(|_| self.is_deed) {
            Some(last) => last.after = there,
            None => self.story.deeds.push(Deed { before, after: there }),
        }
        self.is_deed = true;
    }
}

/// What was seen.
enum SeenEvent<'e> {
    Look(SeenCheckpoint, &'e Checkpoint),
    Sight(&'e Sight),
}

impl Revert<'_> {
    /// The first checkpoint that was taken after a call began.
    pub(super) fn first_look_after(&self, call: &LoggedCall) -> Option<SeenCheckpoint> {
        let mut looks = self.since.iter().map(|checkpoint| self.log.position_of(checkpoint));
        let since = call.done.unwrap_or(call.began);
        looks.find(|look| look.order > since)
    }

    /// What the turn did at a path that is not as it was.
    pub(super) fn story(&self, change: &Change) -> Result<PathDeeds> {
        let path = &change.path;
        let then = entry_at(self.restore.project, self.then, path, self.side)?;
        let here = then.map(VersionEntry::held);
        let mut teller = PathDeedsBuilder { story: PathDeeds::default(), here, is_deed: false };
        let unseen: Vec<&LoggedCall> =
            self.log.unseen().filter(|call| call.reaches(path)).collect();
        let after: Vec<Option<SeenCheckpoint>> =
            unseen.iter().map(|call| self.first_look_after(call)).collect();
        for event in self.events(path, &after) {
            match event {
                SeenEvent::Sight(sight) => self.see(&mut teller, path, sight),
                SeenEvent::Look(look, checkpoint) => {
                    let is_after_unseen = after.contains(&Some(look));
                    self.look_at(&mut teller, path, (look, checkpoint), is_after_unseen)?;
                }
            }
        }
        let now = change.after.map(VersionEntry::here);
        if after.contains(&None) && !self.source.is_same(path, &teller.here, &now) {
            teller.story.is_unknown = true;
        }
        // What the turn took back itself is none of its deeds.
        let is_none = |deed: &Deed| self.source.is_same(path, &deed.before, &deed.after);
        teller.story.deeds.retain(|deed| !is_none(deed));
        if self.is_taken_back(path, &teller.story.deeds) {
            teller.story.deeds.clear();
        }
        Ok(teller.story)
    }

    /// Whether a restore has put back what was there before the turn, and none since what the turn made.
    fn is_taken_back(&self, path: &RelPath, deeds: &[Deed]) -> bool {
        let Some((first, last)) = deeds.first().zip(deeds.last()) else { return false };
        let sights = self.log.seen_at(path);
        let since = sights.iter().rposition(|sight| sight.by == Doer::Turn).map_or(0, |at| at + 1);
        let is = |a: &Version, b: &Version| self.source.is_same(path, a, b);
        let mut was_taken_back = false;
        let mut known: Vec<(Version, bool)> = Vec::new();
        for sight in &sights[since..] {
            let there = VersionEntry::seen(&sight.there);
            if sight.by == Doer::Restore {
                let earlier = known.iter().rfind(|(earlier, _)| is(earlier, &there));
                let [is_before, is_after] = [&first.before, &last.after].map(|end| is(&there, end));
                was_taken_back = match earlier {
                    _ if is_before && !is_after => true,
                    _ if is_after && !is_before => false,
                    Some((_, was_taken_back)) => *was_taken_back,
                    // The revert of another turn says nothing of this one.
                    None => was_taken_back && self.is_by_revert(sight),
                };
            }
            known.push((there, was_taken_back));
        }
        was_taken_back
    }

    /// Whether a revert put something there.
    fn is_by_revert(&self, sight: &Sight) -> bool {
        let restore = self.log.restore_at(sight.order);
        let held = self.since.iter().find(|one| Some(one.id) == restore);
        held.is_some_and(|held| held.cause.tool.as_deref() == Some("revert"))
    }

    /// What was seen at a path until its turn was over, oldest first.
    fn events(&self, path: &RelPath, after: &[Option<SeenCheckpoint>]) -> Vec<SeenEvent<'_>> {
        let sights = self.log.seen_at(path);
        let last = sights.iter().rev().find(|sight| sight.by == Doer::Turn);
        let ends = after.iter().flatten().map(|look| look.order);
        let end = last.map(|sight| sight.order).into_iter().chain(ends).max();
        let Some(end) = end else { return Vec::new() };
        let looks = self.since.iter().map(|it| SeenEvent::Look(self.log.position_of(it), it));
        let order = |event: &SeenEvent<'_>| match event {
            SeenEvent::Look(look, _) => (look.order, false),
            SeenEvent::Sight(sight) => (sight.order, true),
        };
        let mut events: Vec<SeenEvent<'_>> = looks
            .chain(sights.iter().map(SeenEvent::Sight))
            .filter(|it| order(it).0 <= end)
            .collect();
        // Those of one place stay in the order they were taken.
        events.sort_by_key(order);
        events
    }

    fn see(&self, teller: &mut PathDeedsBuilder, path: &RelPath, sight: &Sight) {
        let there = VersionEntry::seen(&sight.there);
        if self.source.is_same(path, &teller.here, &there) {
            return;
        }
        teller.story.is_unknown |= sight.is_shared;
        match sight.by {
            Doer::Turn => teller.turn(there),
            Doer::Call(_) | Doer::Other | Doer::Restore => teller.others(there),
        }
    }

    fn look_at(
        &self,
        teller: &mut PathDeedsBuilder,
        path: &RelPath,
        (look, checkpoint): (SeenCheckpoint, &Checkpoint),
        is_after_unseen: bool,
    ) -> Result<()> {
        let Some(tree) = self.source.tree(look.id) else {
            teller.story.is_unknown |= look.is_of_session || is_after_unseen;
            return Ok(());
        };
        let entry = entry_at(self.restore.project, &tree, path, self.side)?;
        if entry.is_none() && self.may_have_left_out(checkpoint, path) {
            return Ok(());
        }
        let there = entry.map(VersionEntry::held);
        if self.source.is_same(path, &teller.here, &there) {
            teller.holds(there);
            return Ok(());
        }
        if !is_after_unseen && self.may_be_late(path, (look, checkpoint), &there) {
            return Ok(());
        }
        if is_after_unseen && (self.log.tells || !look.is_of_session) {
            teller.story.is_unknown = true;
        }
        let is_in_call = self.log.calls().any(|call| call.is_during(&look) && call.reaches(path));
        if is_after_unseen {
            teller.turn(there);
        } else if !is_in_call {
            teller.others(there);
        }
        Ok(())
    }

    /// Whether a checkpoint may have read what the next call of the turn left: if it was not taken right before
    /// a call or a restore, it is only known when it began.
    fn may_be_late(
        &self,
        path: &RelPath,
        (look, checkpoint): (SeenCheckpoint, &Checkpoint),
        there: &Version,
    ) -> bool {
        let is_placed =
            self.log.is_before_call(checkpoint) || checkpoint.cause.reason == Reason::BeforeRestore;
        let sights = self.log.seen_at(path);
        let is_next = |sight: &&Sight| sight.by == Doer::Turn && sight.order >= look.order;
        let next = sights.iter().find(is_next).filter(|_| !is_placed);
        next.is_some_and(|it| self.source.is_same(path, there, &VersionEntry::seen(&it.there)))
    }

    /// Whether a checkpoint says nothing of a path that it does not have.
    fn may_have_left_out(&self, checkpoint: &Checkpoint, path: &RelPath) -> bool {
        self.side == PathSide::Outside
            || !checkpoint.completeness.is_whole()
            || ByPath::of(&checkpoint.skipped).covering(path).is_some()
    }
}
