//! Turns the sightings of a path into the sequence of states that it went through, each with its possible writers.

use std::{collections::BTreeSet, ops::Range, rc::Rc};

use super::{
    super::version::{Version, VersionBytes},
    FileHistory, LineWriter, PastCall, WriterCandidates,
    events::{SeenState, SeenWhen},
    lines::anything,
};
use crate::model::{Checkpoint, Reason, RelPath};

/// A state of a path, and how it came about: after [`Self::known_until`], and no later than [`Self::order`].
#[derive(Clone, Debug)]
pub(super) struct PastState {
    pub(super) there: Version,
    pub(super) origin: StateOrigin,
    /// The place in the log up to which the previous state is known to have lasted.
    pub(super) known_until: usize,
    /// The place in the log at which it was first seen.
    pub(super) order: usize,
}

/// How a state came about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum StateOrigin {
    /// It was the first that was seen.
    First,
    /// It was written.
    By(LineWriter),
    /// A restore put it there.
    Restored,
}

impl StateOrigin {
    /// Whether a process that a call of the turn left in the background may have written it, as the user may.
    pub(super) fn may_be_in_background(&self, turn: usize) -> bool {
        let Self::By(writer) = self else { return false };
        let candidates = WriterCandidates::of(writer);
        candidates.user && candidates.turns.contains(&turn)
    }

    /// Whether one writer may have made both.
    pub(super) fn may_be_one_with(&self, other: &Self) -> bool {
        let (Self::By(one), Self::By(other)) = (self, other) else { return false };
        let [one, other] = [one, other].map(WriterCandidates::of);
        one.turns.intersection(&other.turns).next().is_some()
            || one.user && other.user
            || one.any
            || other.any
    }
}

impl FileHistory<'_> {
    /// The states of a path since the oldest checkpoint that tells, oldest first.
    pub(super) fn states(&self, path: &RelPath) -> Rc<Vec<PastState>> {
        if let Some(known) = self.states.borrow().get(path) {
            return Rc::clone(known);
        }
        let states = Rc::new(self.states_seen(path));
        self.states.borrow_mut().insert(path.clone(), Rc::clone(&states));
        states
    }

    fn states_seen(&self, path: &RelPath) -> Vec<PastState> {
        let mut states: Vec<PastState> = Vec::new();
        let mut known_until = 0;
        let all = self.seen(path);
        for (at, seen) in all.iter().enumerate() {
            if self.is_belated(path, &states, (seen, all.get(at + 1))) {
                continue;
            }
            let SeenState { order, there, how } = seen.clone();
            let last = states.last_mut();
            let is_same =
                last.as_ref().is_some_and(|last| self.source.is_same(path, &last.there, &there));
            if how == SeenWhen::NotBefore && !is_same && last.is_some() {
                // Another state came about later than that; the next look tells when.
                continue;
            }
            match last {
                Some(last) if is_same => prefer(&mut last.there, there),
                Some(_) => {
                    let origin = self.origin(path, known_until, seen);
                    states.push(PastState { there, origin, known_until, order });
                }
                None => {
                    let origin = StateOrigin::First;
                    states.push(PastState { there, origin, known_until: order, order });
                }
            }
            let known = self.known_from(order, how);
            known_until = if how == SeenWhen::NotBefore { known_until.max(known) } else { known };
        }
        states
    }

    /// Whether a sighting is out of date: it shows the state before a call, but another call had changed the
    /// path before it was noted, as the next sighting confirms. Not if its call began after that change was noted.
    fn is_belated(
        &self,
        path: &RelPath,
        states: &[PastState],
        (seen, next): (&SeenState, Option<&SeenState>),
    ) -> bool {
        let ([.., before, last], Some(next)) = (states, next) else { return false };
        let began = |place| self.log.time_at(place);
        seen.how == SeenWhen::Before
            && began(seen.order) <= began(last.order)
            && self.source.is_same(path, &before.there, &seen.there)
            && self.source.is_same(path, &last.there, &next.there)
    }

    /// The place in the log from which on a state that was seen at `order` is settled. If a call left it,
    /// that is where everything the call left had been noted.
    fn known_from(&self, order: usize, how: SeenWhen) -> usize {
        match how {
            SeenWhen::After(Some(caller)) => {
                self.log.logged_calls[caller].done.unwrap_or(order).max(order)
            }
            SeenWhen::After(None)
            | SeenWhen::Before
            | SeenWhen::BeforeRestore
            | SeenWhen::Back
            | SeenWhen::NotBefore => order,
        }
    }

    /// How the state came about that was `seen`, while the previous one is known to have lasted up to `known_until`.
    fn origin(&self, path: &RelPath, known_until: usize, seen: &SeenState) -> StateOrigin {
        if self.log.is_lost {
            return StateOrigin::By(anything());
        }
        let mut candidates = WriterCandidates { user: true, ..WriterCandidates::default() };
        candidates.turns.extend(self.running(path, known_until..seen.order));
        match seen.how {
            SeenWhen::After(Some(caller)) => {
                let call = &self.log.logged_calls[caller];
                // Only if it is known what was there right before the call, the user did not write it.
                let is_known_before = known_until >= call.first_before;
                candidates.user = !is_known_before || call.may_be_anothers(path);
                // An edit is taken for the writer of the path that it names, whatever command runs beside it.
                if is_known_before && call.paths.is_some() {
                    candidates.turns = BTreeSet::from([self.calls[caller].turn]);
                }
            }
            SeenWhen::After(None) => candidates.any = true,
            SeenWhen::Back if candidates.turns.is_empty() => return StateOrigin::Restored,
            SeenWhen::Back => candidates.any = true,
            SeenWhen::Before | SeenWhen::BeforeRestore | SeenWhen::NotBefore => {
                if candidates.turns.is_empty() && self.was_restored(path, known_until, seen) {
                    return StateOrigin::Restored;
                }
                candidates.user = !self.is_seen_by_next_call(path, known_until..seen.order);
            }
        }
        if candidates.user {
            // What goes on in the background is seen as little as the user.
            candidates.turns.extend(self.in_background(path, known_until..seen.order));
        }
        candidates.any |= candidates.user && !self.sees_all();
        StateOrigin::By(candidates.writer())
    }

    /// Whether a look at the end of a part of the log, which follows calls of one session alone, is that of the
    /// session's next call, and its agent reports no ends of calls: then no look right after a call exists, and
    /// by declaration the user made none of the changes.
    fn is_seen_by_next_call(&self, path: &RelPath, part: Range<usize>) -> bool {
        let mut calls = self.log.logged_calls.iter();
        let next = calls.find(|call| (call.first_before..=call.began).contains(&part.end));
        let Some(next) = next.filter(|next| !self.log.reports_ends(&next.by)) else {
            return false;
        };
        let mut running = self.running_calls(path, part).peekable();
        running.peek().is_some()
            && running.all(|ran| {
                let call = ran.caller.map(|caller| &self.log.logged_calls[caller]);
                call.is_some_and(|call| call.by == next.by && call.began < next.began)
            })
    }

    /// The turns of the calls that ran in a part of the log and can have changed what is at a path.
    fn running(&self, path: &RelPath, part: Range<usize>) -> impl Iterator<Item = usize> {
        self.running_calls(path, part).map(|ran| ran.turn)
    }

    fn running_calls(&self, path: &RelPath, part: Range<usize>) -> impl Iterator<Item = &PastCall> {
        self.calls.iter().filter(move |ran| {
            ran.began < part.end && ran.over > part.start && self.reaches(ran, path)
        })
    }

    /// The same of calls that were over, but for what they had started in the background.
    fn in_background(&self, path: &RelPath, part: Range<usize>) -> impl Iterator<Item = usize> {
        let is_then = move |ran: &&PastCall| {
            ran.over < part.end && ran.background_until.is_some_and(|over| over > part.start)
        };
        let calls = self.calls.iter().filter(is_then);
        calls.filter(|ran| self.reaches(ran, path)).map(|ran| ran.turn)
    }

    /// Whether a call can have changed what is at a path.
    fn reaches(&self, ran: &PastCall, path: &RelPath) -> bool {
        ran.caller.is_none_or(|caller| self.log.logged_calls[caller].reaches(path))
    }

    /// Whether a restore after `known_until` went to exactly this state, but was stopped before it noted so.
    fn was_restored(&self, path: &RelPath, known_until: usize, seen: &SeenState) -> bool {
        // A state that a restore found is not one that it put there.
        let until = match seen.how {
            SeenWhen::BeforeRestore => seen.order,
            _ => seen.order.saturating_add(1),
        };
        let is_meanwhile = |one: &&Checkpoint| {
            one.cause.reason == Reason::BeforeRestore
                && (known_until..until).contains(&self.log.position_of(one))
        };
        self.checkpoints.iter().filter(is_meanwhile).any(|held| {
            let target = held.cause.of.and_then(|of| self.checkpoint(of));
            let then = target.and_then(|target| self.held(target, path));
            then.is_some_and(|then| self.source.is_same(path, &then, &seen.there))
        })
    }
}

/// Of two equal versions, keeps the one whose bytes are stored and not only noted in the log.
fn prefer(known: &mut Version, other: Version) {
    let is_noted = |version: &Version| {
        version.as_ref().is_some_and(|found| matches!(found.bytes, VersionBytes::Noted { .. }))
    };
    if is_noted(known) && !is_noted(&other) {
        *known = other;
    }
}
