//! Reads the ledgers of all sessions without their locks: an answer that is a moment old will do.

use std::{
    collections::{BTreeSet, HashMap},
    ffi::OsStr,
    path::{Path, PathBuf},
};

use chrono::{DateTime, TimeDelta, Utc};

use super::{
    Use, file_of,
    wire::{Lazily, LedgerFile, LedgerWire, OLDER, SIZE_MAX_BYTES, look, parse, read, read_all},
};
use crate::{
    error::Result,
    fs::{is_lost, read_small, remove_if_there},
    model::{Cause, Checkpoint, CheckpointId, Reason},
    state::StateDir,
};

/// Every use of a checkpoint that any session's ledger knows of, newest first.
pub fn uses(state: &StateDir) -> Vec<Use> {
    let ledgers = ledgers(state).into_iter().filter_map(|path| read_all(&path));
    let mut uses: Vec<Use> = ledgers.flat_map(LedgerWire::into_uses).collect();
    uses.sort_by_key(|used| std::cmp::Reverse(used.at));
    uses
}

/// Whether a turn in the ledger at `path` uses one of `checkpoints`, as far as the ledger can be read.
pub fn names_any(path: &Path, checkpoints: &BTreeSet<CheckpointId>) -> bool {
    let uses = read_all(path).map(LedgerWire::into_uses).unwrap_or_default();
    uses.iter().any(|used| checkpoints.contains(&used.checkpoint))
}

/// Removes a ledger and the files beside it, except its lock.
///
/// # Errors
///
/// Fails if one cannot be removed.
pub fn remove(path: &Path) -> Result<()> {
    remove_if_there(path)?;
    remove_if_there(&path.with_extension(OLDER))?;
    Ok(())
}

/// The newest use of each checkpoint, of `uses` with the newest first.
pub fn newest_uses(uses: &[Use]) -> HashMap<CheckpointId, &Use> {
    // A later entry replaces an earlier one.
    uses.iter().rev().map(|used| (used.checkpoint, used)).collect()
}

/// Gives each checkpoint to the newest turn that uses it: that turn found nothing changed, so it is
/// what was there before that turn changed anything, and what has changed since is its doing.
pub fn adopt(checkpoints: &mut [Checkpoint], uses: &[Use]) {
    let is_a_turns = |checkpoint: &&mut Checkpoint| match checkpoint.cause.reason {
        Reason::Call | Reason::Net => true,
        Reason::Asked | Reason::BeforeRestore => false,
    };
    let newest = newest_uses(uses);
    for checkpoint in checkpoints.iter_mut().filter(is_a_turns) {
        let own = checkpoint.turn_key();
        let other =
            newest.get(&checkpoint.id).filter(|used| own.is_none() || used.by.turn_key() != own);
        if let Some(used) = other {
            checkpoint.cause = Cause {
                reason: Reason::Call,
                by: Some(used.by.clone()),
                tool: used.tool.clone(),
                summary: used.summary.clone(),
                of: None,
            };
        }
    }
}

/// Longer than a call runs: one that seems to is of an agent that died.
const RUNS_MAX: TimeDelta = TimeDelta::hours(24);

/// The checkpoints that cover calls which began and were not seen to end.
pub fn running(state: &StateDir, now: DateTime<Utc>) -> BTreeSet<CheckpointId> {
    all(state).flat_map(|wire| wire.running(now - RUNS_MAX)).collect()
}

/// A turn that has used a checkpoint this long ago is over.
const TURN_MAX: TimeDelta = TimeDelta::hours(24);

/// Whether a turn of another session than this one uses a checkpoint, and may go on with no other.
pub fn is_used_elsewhere(
    state: &StateDir,
    now: DateTime<Utc>,
    checkpoint: &Checkpoint,
    (agent, session): (&str, &str),
) -> bool {
    let own = file_of(state, agent, session);
    let is_recent = |at: DateTime<Utc>| at > now - TURN_MAX;
    // The other session's ledger may not have it yet.
    let by = checkpoint.cause.by.as_ref().filter(|_| is_recent(checkpoint.taken_at));
    if by.is_some_and(|by| by.session.0 != session) {
        return true;
    }
    let mut others = ledgers(state);
    others.retain(|path| *path != own);
    let mut uses =
        others.into_iter().filter_map(|path| read(&path)).flat_map(LedgerWire::into_uses);
    uses.any(|used| used.checkpoint == checkpoint.id && is_recent(used.at))
}

/// The ledgers of all sessions that can be read.
pub(super) fn all(state: &StateDir) -> impl Iterator<Item = LedgerWire> {
    ledgers(state).into_iter().filter_map(|path| read(&path))
}

/// The files of all sessions.
fn ledgers(state: &StateDir) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(state.sessions()) else { return Vec::new() };
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    paths.filter(|path| path.extension() == Some(OsStr::new("json"))).collect()
}

/// Where the server of the agent of a session listened when it was last heard of.
pub fn server(state: &StateDir, agent: &str, session: &str) -> Option<String> {
    read(&file_of(state, agent, session))?.server
}

/// The path of the transcript that the agent of a session last reported.
pub fn transcript(state: &StateDir, agent: &str, session: &str) -> Option<PathBuf> {
    read(&file_of(state, agent, session))?.transcript?.to_path()
}

/// Whether the turn that runs in a session has had a checkpoint of `root` since then.
pub fn covered_since(
    state: &StateDir,
    agent: &str,
    session: &str,
    root: &Path,
    since: DateTime<Utc>,
) -> bool {
    let Some(wire) = read(&file_of(state, agent, session)) else { return false };
    let Some(turn) = &wire.turn else { return false };
    let mut uses = wire.uses.iter().filter_map(Lazily::read);
    uses.any(|used| used.turn == turn.id && used.at >= since && used.root.is(root))
}

/// The ledgers that cannot be read. A newer beforehand's is none of them.
pub fn damaged(state: &StateDir) -> Vec<PathBuf> {
    let is_lost = |path: &PathBuf| {
        let bytes = read_small(path, SIZE_MAX_BYTES).ok().flatten();
        bytes.is_some_and(|bytes| is_lost(&bytes))
    };
    let is_damaged = |path: &PathBuf| match look(path) {
        LedgerFile::Ours(wire) => !wire.is_whole(),
        LedgerFile::Damaged => true,
        LedgerFile::Nothing | LedgerFile::Newer => false,
    };
    ledgers(state).into_iter().filter(|path| is_damaged(path) && !is_lost(path)).collect()
}

/// Reads bytes as a ledger and everything in it; for fuzz/.
pub(crate) fn parse_any(bytes: &[u8]) {
    if let LedgerFile::Ours(mut wire) = parse(bytes) {
        wire.mend();
        assert!(wire.is_whole());
        wire.into_uses();
    }
}
