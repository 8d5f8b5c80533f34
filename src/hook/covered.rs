//! Whether a turn already holds what a call can change.
//!
//! Fast path: an edit whose files this turn already holds. It returns true, or falls through to the
//! full check. It reads the session's ledger without its lock, so no call waits for it. That is safe:
//! a ledger names a checkpoint only once it exists, and the cache is written after its checkpoint. A
//! call that saves at the same moment can only cause a needless full check.

use std::{
    cell::LazyCell,
    io::{self, ErrorKind},
    path::{Path, PathBuf},
};

use super::Hook;
use crate::{
    attribution,
    fs::stat_path,
    ledger::{self, Ledger},
    model::{
        Agent, Checkpoint, CheckpointId, Dedupe, Effect, Intent, Kind, Reach, Reason, Root,
        RootKind, ScanScope, Stamp,
    },
    policy::{self, Coverage, HookAction},
    reach,
    snapshot::LastCheckpoint,
    state::{RootState, StateDir},
    store::record,
    transcript,
};

impl Hook<'_, '_> {
    /// Whether the call is a plain edit that needs no checkpoint, and there is nothing to say or to
    /// remember. If so it is noted for restores. To know as much takes the ledger, the
    /// files it names and the cache of their root; of the repository nothing is opened, and of a
    /// root that nothing is saved of neither kind nor scope matters.
    pub(super) fn is_covered(&self, state: &StateDir) -> bool {
        let Effect::Touches(_) = &self.effect else { return false };
        let (agent, session) = (self.dialect.name, &self.call.context.session.0);
        let Some(mut ledger) = Ledger::peek(&self.real, state, agent, session) else {
            return false;
        };
        let start = self.start(&ledger.home(&self.cwd));
        let Some(root) = reach::path_around(&start, &self.surroundings(state)) else {
            return false;
        };
        self.note_turn(&mut ledger);
        let root = Root::new(root, RootKind::Plain { why: None });
        let place = state.root(&root);
        let Some(of) = covering(&ledger, &root, &place) else { return false };
        let dedupe = self.settings().dedupe;
        let has = match dedupe {
            Dedupe::Turn => self.has_all(&ledger, &start, &root, &place),
            Dedupe::Strict | Dedupe::Call => None,
        };
        let coverage = if has.is_some() { Coverage::Covered } else { Coverage::Begun };
        let is_said = |line: &String| ledger.has_said(line);
        let has_news = ledger.is_changed()
            || ledger.waits_for_ends()
            || !self.loaded.notes.iter().all(is_said);
        if has_news || policy::decide(&self.effect, coverage, dedupe) == HookAction::Save {
            return false;
        }
        let reach = Reach { root, scope: ScanScope::Whole, victims: Vec::new() };
        let is_edit = !matches!(self.call.intent, Intent::Run { .. });
        let begins = self.begins(&place, &reach, &ledger, of);
        let begins =
            attribution::Begins { is_held: is_edit && has == Some(HeldPart::All), ..begins };
        // What is not noted has no known author.
        let _noted = begins.note_again(self.process);
        true
    }

    /// What the turn already has of what this call can change.
    pub(super) fn coverage(
        &self,
        ledger: Option<&mut Ledger>,
        reach: &Reach,
        state: &StateDir,
    ) -> Coverage {
        let Some(ledger) = ledger else { return Coverage::Bare };
        self.note_turn(ledger);
        let place = state.root(&reach.root);
        if covering(ledger, &reach.root, &place).is_none() {
            return Coverage::Bare;
        }
        let Effect::Touches(_) = &self.effect else { return Coverage::Begun };
        let held = LastCheckpoint::of(&reach.root, &place);
        let is_covered = |path: &PathBuf| has(ledger, &held, path, stat_path(path));
        if reach.victims.iter().all(is_covered) { Coverage::Covered } else { Coverage::Begun }
    }

    /// Sees to it that the ledger knows the turn this call belongs to.
    fn note_turn(&self, ledger: &mut Ledger) {
        let last_prompt = match self.call.context.turn {
            Some(_) => None,
            None if ledger.counts_turns() => None,
            None => self.call.context.transcript.as_deref().and_then(transcript::last_prompt),
        };
        ledger.turn_of(&self.call.context, last_prompt.as_ref());
    }

    /// Whether a checkpoint that the turn does not use yet is no beginning for it, although nothing in
    /// the root has changed since: a person asked for it, a restore took it, this is a program that a
    /// person runs, or what a turn of another session does, or what was done outside the root since,
    /// would count as this turn's.
    pub(super) fn is_anothers(
        &self,
        ledger: Option<&Ledger>,
        checkpoint: &Checkpoint,
        reach: &Reach,
        state: &StateDir,
    ) -> bool {
        let is_used = ledger.and_then(|ledger| ledger.covering(reach.root.path()));
        if is_used == Some(checkpoint.id) {
            return false;
        }
        let is_program = self.dialect.agent == Agent::Program;
        match checkpoint.cause.reason {
            Reason::Asked | Reason::BeforeRestore => return true,
            Reason::Call | Reason::Net if is_program => return true,
            Reason::Call | Reason::Net => (),
        }
        let (agent, session) = (self.dialect.name, &self.call.context.session.0);
        attribution::is_left_outside(&state.root(&reach.root), checkpoint.id)
            || ledger::is_used_elsewhere(state, self.process.now, checkpoint, (agent, session))
    }

    /// How much is there of what an edit may mean, if all of that is held, or the agent's own. What
    /// a link leads to is for the whole way to find.
    fn has_all(
        &self,
        ledger: &Ledger,
        start: &Path,
        root: &Root,
        place: &RootState,
    ) -> Option<HeldPart> {
        let Effect::Touches(paths) = &self.effect else { return None };
        let places = reach::edited(paths, start, &self.call.context, root);
        let held = LazyCell::new(|| LastCheckpoint::of(root, place));
        let mut there = HeldPart::All;
        for path in &places {
            let stamp = stat_path(path);
            let is_link = stamp.as_ref().is_ok_and(|stamp| stamp.kind() == Some(Kind::Link));
            if stamp.is_err() {
                there = HeldPart::Some;
            }
            if is_link || !has(ledger, &held, path, stamp) {
                return None;
            }
        }
        Some(there)
    }
}

/// How much is there of what an edit names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HeldPart {
    All,
    Some,
}

/// The checkpoint that the turn has of a root, if it was not dropped since.
fn covering(ledger: &Ledger, root: &Root, place: &RootState) -> Option<CheckpointId> {
    let of = ledger.covering(root.path())?;
    record::path_of(place, of).exists().then_some(of)
}

/// Whether what an edit finds at `path` is held, or the agent's own. The stamp of a directory says
/// nothing of what is in it.
fn has(ledger: &Ledger, held: &LastCheckpoint, path: &Path, stamp: io::Result<Stamp>) -> bool {
    match stamp {
        Ok(stamp) if stamp.kind() == Some(Kind::Directory) => false,
        Ok(stamp) => ledger.is_own(path, &stamp) || held.has(path, &stamp),
        // Nothing is there that could be lost.
        Err(err) => err.kind() == ErrorKind::NotFound,
    }
}
