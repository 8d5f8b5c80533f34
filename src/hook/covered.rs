//! Whether a turn already holds what a call can change.
//!
//! Fast path: an edit of files that this turn already holds. It returns true, or falls through to the
//! full check. It reads the session's ledger without its lock, so no call waits for it. That is safe:
//! a ledger names a checkpoint only once it exists, and the cache is written after its checkpoint. A
//! call that saves at the same moment can only cause a needless full check.

use std::{
    cell::LazyCell,
    io::{self, ErrorKind},
    path::{Path, PathBuf},
};

use super::{judged::JudgedCall, site::EventSite, targets::start};
use crate::{
    attribution::Begins,
    fs::stat_path,
    ledger::Ledger,
    model::{
        CallContext, Checkout, CheckpointId, Dedupe, Effect, Kind, Reach, Root, RootKind,
        ScanScope, Stamp,
    },
    policy::{self, Coverage, HookAction},
    reach,
    snapshot::LastCheckpoint,
    state::{RootState, StateDir},
    store::record,
    transcript,
};

/// Whether the call is a plain edit that needs no checkpoint, and there is nothing to say or to
/// remember. If so it is noted for restores. To know as much takes the ledger, the
/// files it names and the cache of their root; of the repository nothing is opened, and of a
/// root that nothing is saved of neither kind nor scope matters.
pub(super) fn is_covered(
    site: &EventSite<'_, '_>,
    judged: &JudgedCall<'_>,
    state: &StateDir,
) -> bool {
    let Effect::Touches(paths) = &judged.effect else { return false };
    let (agent, session) = site.session();
    let Some(mut ledger) = Ledger::peek(&site.real, state, agent, session) else { return false };
    let start = start(&site.cwd, ledger.home(&site.cwd));
    let Some(root) = reach::path_around(&start, &site.surroundings(state)) else { return false };
    if ledger.may_be_rewritten() == Some(true) {
        return false;
    }
    note_turn(&mut ledger, site.context);
    let root = Root::new(root, RootKind::Plain { why: None });
    let place = state.root(&root);
    let Some(of) = covering(&ledger, &root, &place) else { return false };
    let dedupe = site.settings().dedupe;
    let has = match dedupe {
        Dedupe::Turn => {
            has_all(&ledger, &reach::edited(paths, &start, site.context, &root), &root, &place)
        }
        Dedupe::Strict | Dedupe::Call => None,
    };
    let coverage = if has.is_some() { Coverage::Covered } else { Coverage::Begun };
    let is_said = |line: &String| ledger.has_said(line);
    let has_news =
        ledger.is_changed() || ledger.waits_for_ends() || !judged.setting_notes.iter().all(is_said);
    if has_news || policy::decide(&judged.effect, coverage, dedupe) == HookAction::Save {
        return false;
    }
    let (victims, checkout) = (Vec::new(), Checkout::default());
    let reach = Reach { root, scope: ScanScope::Whole, victims, checkout };
    let is_held = judged.call.intent.edited().is_some() && has == Some(HeldPart::All);
    let begins = judged.begins(&site.cwd, (&place, &reach), &ledger, of);
    // What is not noted has no known author.
    let _noted = Begins { is_held, ..begins }.note_again(site.process);
    true
}

/// What the turn already has of what the call can change.
pub(super) fn coverage(
    ledger: &mut Ledger,
    context: &CallContext,
    effect: &Effect,
    reach: &Reach,
    state: &StateDir,
) -> Coverage {
    note_turn(ledger, context);
    let place = state.root(&reach.root);
    if covering(ledger, &reach.root, &place).is_none() {
        return Coverage::Bare;
    }
    let Effect::Touches(_) = effect else { return Coverage::Begun };
    // The call may run with other paths than these.
    if ledger.may_be_rewritten() == Some(true) {
        return Coverage::Begun;
    }
    let held = LastCheckpoint::intact(&reach.root, &place);
    let is_covered = |path: &PathBuf| has(ledger, &held, path, stat_path(path));
    if reach.victims.iter().all(is_covered) { Coverage::Covered } else { Coverage::Begun }
}

/// Sees to it that the ledger knows the turn this call belongs to.
fn note_turn(ledger: &mut Ledger, context: &CallContext) {
    let last_prompt = match context.turn {
        Some(_) => None,
        None if ledger.counts_turns() => None,
        None => context.transcript.as_deref().and_then(transcript::last_prompt),
    };
    ledger.turn_of(context, last_prompt.as_ref());
}

/// How much is there of what an edit may mean, if all of that is held, or the agent's own. What
/// a link leads to is for the whole way to find.
fn has_all(
    ledger: &Ledger,
    places: &[PathBuf],
    root: &Root,
    place: &RootState,
) -> Option<HeldPart> {
    let held = LazyCell::new(|| LastCheckpoint::intact(root, place));
    let mut there = HeldPart::All;
    for path in places {
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
