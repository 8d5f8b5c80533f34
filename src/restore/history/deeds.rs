//! The changes of some turns at a path: the base of a revert.

use std::collections::BTreeSet;

use super::{
    super::version::{Version, VersionSource},
    FileHistory, LineWriter, PastState, StateOrigin,
};
use crate::{
    attribution::{self, Doer, LoggedCall, Sight},
    model::RelPath,
};

/// A change that calls of the turns made, without changes by others in between.
#[derive(Clone, Debug)]
pub(crate) struct Deed {
    /// The state right before the calls.
    pub(in crate::restore) before: Version,
    /// The state that they left.
    pub(in crate::restore) after: Version,
}

/// All deeds at a path.
#[derive(Debug, Default)]
pub(crate) struct PathDeeds {
    /// Oldest first, with changes by others between one and the next.
    pub(crate) deeds: Vec<Deed>,
    /// Whether a change may be of the turns, and may be of others: then the deeds may be incomplete.
    pub(crate) is_unknown: bool,
}

/// The share of some turns in a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Share {
    All,
    Perhaps,
    None,
}

impl FileHistory<'_> {
    /// The turn with a number in the list, by its places in [`FileHistory::turns`]: more than one if its calls
    /// are known without an identity.
    pub(crate) fn turns_numbered(&self, number: usize) -> BTreeSet<usize> {
        let numbers = self.turns.iter().map(|turn| turn.number).enumerate();
        numbers.filter(|(_, found)| *found == Some(number)).map(|(turn, _)| turn).collect()
    }

    /// The turns of the session with a name in the log, by their places in [`FileHistory::turns`].
    pub(crate) fn turns_of_session(&self, name: &str) -> BTreeSet<usize> {
        let logged = self.log.logged_calls.iter().zip(&self.calls);
        let logged = logged.filter(|(call, _)| call.by == name).map(|(_, ran)| ran.turn);
        let unlogged = self.calls.iter().filter(|ran| ran.caller.is_none()).map(|ran| ran.turn);
        let is_its = |turn: &usize| {
            let by = self.turns[*turn].by.as_ref();
            by.is_some_and(|by| attribution::session_name(by.agent, &by.session) == name)
        };
        logged.chain(unlogged.filter(is_its)).collect()
    }

    /// The changes of some turns at a path, as far as no restore has taken them back.
    pub(in crate::restore) fn deeds(&self, path: &RelPath, turns: &BTreeSet<usize>) -> PathDeeds {
        let states = self.standing(path, &self.states(path));
        let mut found = PathDeeds::default();
        let mut is_deed = false;
        for pair in states.windows(2) {
            let share = self.share(&pair[1], turns);
            found.is_unknown |= share == Share::Perhaps;
            if share != Share::All {
                is_deed = false;
                continue;
            }
            let after = pair[1].there.clone();
            match found.deeds.last_mut().filter(|_| is_deed) {
                Some(last) => last.after = after,
                None => found.deeds.push(Deed { before: pair[0].there.clone(), after }),
            }
            is_deed = true;
        }
        // A change that the turn itself took back is no deed.
        found.deeds.retain(|deed| !self.source.is_same(path, &deed.before, &deed.after));
        found
    }

    /// The share of some turns in the change that led to a state.
    fn share(&self, state: &PastState, turns: &BTreeSet<usize>) -> Share {
        let StateOrigin::By(writer) = &state.origin else { return Share::None };
        match writer {
            LineWriter::Turn(turn) if turns.contains(turn) => Share::All,
            LineWriter::Turn(_) | LineWriter::User | LineWriter::Before => Share::None,
            LineWriter::Unknown(candidates) => {
                let is_known = !candidates.user && !candidates.any;
                if is_known && candidates.turns.is_subset(turns) {
                    Share::All
                } else if !candidates.turns.is_disjoint(turns)
                    || candidates.any && self.is_in_time_of(state, turns)
                {
                    Share::Perhaps
                } else {
                    Share::None
                }
            }
        }
    }

    /// Whether a state can have come about while a call of the turns, or its background process, ran.
    fn is_in_time_of(&self, state: &PastState, turns: &BTreeSet<usize>) -> bool {
        self.calls.iter().filter(|ran| turns.contains(&ran.turn)).any(|ran| {
            let until = ran.background_until.unwrap_or(ran.over).max(ran.over);
            ran.began < state.order && until > state.known_until
        })
    }

    /// The paths that a call of the turns left something at, or removed.
    pub(in crate::restore) fn touched_by(&self, turns: &BTreeSet<usize>) -> BTreeSet<RelPath> {
        let mut touched = BTreeSet::new();
        for (path, sights) in &self.log.sights {
            if sights.iter().any(|sight| self.is_of(sight, turns)) {
                touched.insert(path.clone());
            }
        }
        touched
    }

    /// Whether a sight is of a state that a call of the turns left.
    pub(in crate::restore) fn is_of(&self, sight: &Sight, turns: &BTreeSet<usize>) -> bool {
        let Doer::Call(Some(caller)) = sight.by else { return false };
        turns.contains(&self.calls[caller].turn)
    }

    /// Whether a call of the turns can have changed a path without a look after it.
    pub(in crate::restore) fn may_have_changed_unseen(
        &self,
        path: &RelPath,
        turns: &BTreeSet<usize>,
    ) -> bool {
        self.logged_calls_of(turns).any(|call| {
            (call.done.is_none() || call.background_until.is_some()) && call.reaches(path)
        })
    }

    /// The calls of the turns that the log has.
    pub(in crate::restore) fn logged_calls_of(
        &self,
        turns: &BTreeSet<usize>,
    ) -> impl Iterator<Item = &LoggedCall> {
        let its = self.calls.iter().filter(|ran| turns.contains(&ran.turn));
        its.filter_map(|ran| Some(&self.log.logged_calls[ran.caller?]))
    }

    /// The number in the list of the turn of a logged call, by the call's place in the log.
    pub(in crate::restore) fn turn_number_of(&self, caller: usize) -> Option<usize> {
        self.turns[self.calls[caller].turn].number
    }

    /// A call of the log, by its place there.
    pub(in crate::restore) fn logged_call(&self, caller: usize) -> &LoggedCall {
        &self.log.logged_calls[caller]
    }

    /// The sights at a path, oldest first.
    pub(in crate::restore) fn sights(&self, path: &RelPath) -> &[Sight] {
        self.log.seen_at(path)
    }

    /// The sights at every path, oldest first.
    pub(in crate::restore) fn all_sights(&self) -> impl Iterator<Item = (&RelPath, &Vec<Sight>)> {
        self.log.sights.iter()
    }

    /// Where the bytes of versions are found.
    pub(in crate::restore) fn source(&self) -> &VersionSource<'_> {
        &self.source
    }
}
