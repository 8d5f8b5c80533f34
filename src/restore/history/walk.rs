//! Turns the sightings of a path into the sequence of states that it went through, each with its possible writers.

use std::ops::Range;

use super::{
    super::version::{Version, VersionBytes},
    FileHistory, LineWriter, PastCall, WriterCandidates,
    events::{SeenState, SeenWhen},
    lines::anything,
};
use crate::model::{Checkpoint, Reason, RelPath};

/// A state of a path, and how it came about.
#[derive(Clone, Debug)]
pub(super) struct PastState {
    pub(super) there: Version,
    pub(super) made: StateOrigin,
    /// The place in the log up to which the previous state is known to have lasted.
    pub(super) known: usize,
    /// Its place in the log.
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
    pub(super) fn steps(&self, path: &RelPath) -> Vec<PastState> {
        let mut steps: Vec<PastState> = Vec::new();
        let (mut known, all) = (0, self.seen(path));
        for (at, seen) in all.iter().enumerate() {
            if self.is_belated(path, &steps, (seen, all.get(at + 1))) {
                continue;
            }
            let SeenState { order, there, how } = seen.clone();
            let Some(last) = steps.last_mut() else {
                steps.push(PastState { there, made: StateOrigin::First, known: order, order });
                known = self.known_from(order, how);
                continue;
            };
            let is_same = self.source.is_same(path, &last.there, &there);
            if how == SeenWhen::NotBefore {
                // Another state came about later than that; the next look tells when.
                if is_same {
                    prefer(&mut last.there, there);
                    known = known.max(order);
                }
                continue;
            }
            if is_same {
                prefer(&mut last.there, there);
            } else {
                let made = self.made(path, (known, order), how, &there);
                steps.push(PastState { there, made, known, order });
            }
            known = self.known_from(order, how);
        }
        steps
    }

    /// Whether a sighting is out of date: it shows the state before a call, but another call had changed the
    /// path before it was noted, as the next sighting confirms. Not if its call began after that change was noted.
    fn is_belated(
        &self,
        path: &RelPath,
        steps: &[PastState],
        (seen, next): (&SeenState, Option<&SeenState>),
    ) -> bool {
        let ([.., before, last], Some(next)) = (steps, next) else { return false };
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

    /// How a state came about that was seen at `order`, while another one was known until `known`.
    fn made(
        &self,
        path: &RelPath,
        (known, order): (usize, usize),
        how: SeenWhen,
        there: &Version,
    ) -> StateOrigin {
        if self.log.is_lost {
            return StateOrigin::By(anything());
        }
        let running = self
            .calls
            .iter()
            .filter(|ran| self.reaches(ran, path) && ran.began < order && ran.over > known);
        let mut candidates = WriterCandidates { user: true, ..WriterCandidates::default() };
        candidates.turns.extend(running.map(|ran| ran.turn));
        match how {
            SeenWhen::After(Some(caller)) => {
                // Whether it is known what was there right before the call.
                let caller = &self.log.logged_calls[caller];
                candidates.user = known < caller.first_before || caller.may_be_anothers(path);
            }
            SeenWhen::After(None) => candidates.any = true,
            SeenWhen::Back => {
                if candidates.turns.is_empty() {
                    return StateOrigin::Restored;
                }
                candidates.any = true;
            }
            SeenWhen::Before | SeenWhen::BeforeRestore | SeenWhen::NotBefore => {
                // A state that a restore found is not one that it put there.
                let until =
                    if how == SeenWhen::BeforeRestore { order } else { order.saturating_add(1) };
                if candidates.turns.is_empty() && self.was_restored(path, known..until, there) {
                    return StateOrigin::Restored;
                }
            }
        }
        if candidates.user {
            // What goes on in the background is seen as little as the user.
            let background = self.calls.iter().filter(|ran| {
                let is_then =
                    ran.over < order && ran.background_until.is_some_and(|over| over > known);
                is_then && self.reaches(ran, path)
            });
            candidates.turns.extend(background.map(|ran| ran.turn));
        }
        candidates.any |= candidates.user && !self.sees_all();
        StateOrigin::By(candidates.writer())
    }

    /// Whether a call can have changed what is at a path.
    fn reaches(&self, ran: &PastCall, path: &RelPath) -> bool {
        ran.caller.is_none_or(|caller| self.log.logged_calls[caller].reaches(path))
    }

    /// Whether a restore at one of these places went to exactly this state, but was stopped before it noted so.
    fn was_restored(&self, path: &RelPath, places: Range<usize>, there: &Version) -> bool {
        let is_meanwhile = |one: &&Checkpoint| {
            one.cause.reason == Reason::BeforeRestore
                && places.contains(&self.log.position_of(one).order)
        };
        self.checkpoints.iter().filter(is_meanwhile).any(|held| {
            let target = held.cause.of.and_then(|of| self.checkpoint(of));
            let then = target.and_then(|target| self.held(target, path));
            then.is_some_and(|then| self.source.is_same(path, &then, there))
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
