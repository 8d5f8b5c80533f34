//! The anchor of the file store: the directory that the cache was written for, and a hint which
//! checkpoint is the newest, so that a save need not read them all.
//!
//! Two lines: the directory's id; then how many records there were, the greatest sequence number
//! and the checkpoint that had it. Whoever adds a record without the root's lock makes the number
//! wrong; whoever removes one drops the hint. Written by whoever holds the lock.

use super::{Record, record};
use crate::{
    error::Result,
    fs,
    model::{Checkpoint, CheckpointId, ContentId},
    state::RootState,
};

/// Longer than any we write.
const SIZE_MAX_BYTES: u64 = 200;

/// The newest checkpoint of a root.
pub(super) struct Newest {
    /// Its record, if there is one that can be read.
    pub(super) record: Option<Record>,
    /// The greatest sequence number; 0 if there is none.
    pub(super) sequence: u64,
}

/// The anchor of a root; `None` if there is none that can be believed.
pub(in crate::store) fn read(state: &RootState) -> Option<ContentId> {
    ContentId::parse(text(state)?.split_once('\n')?.0)
}

/// Writes the anchor after `newest` was saved, or found to be the newest.
pub(super) fn write(state: &RootState, top: ContentId, newest: &Checkpoint) -> Result<()> {
    let count = record::ids(state)?.len();
    let Checkpoint { sequence, id, .. } = newest;
    fs::replace(&state.anchor(), format!("{top}\n{count} {sequence} {id}\n").as_bytes())
}

/// Leaves only the directory.
pub(in crate::store) fn drop_hint(state: &RootState) -> Result<()> {
    match read(state) {
        Some(top) => fs::replace(&state.anchor(), format!("{top}\n").as_bytes()),
        None => Ok(()),
    }
}

/// The newest checkpoint, by the hint if it is still right.
pub(super) fn newest(state: &RootState) -> Result<Newest> {
    if let Some(hinted) = hinted(state) {
        return Ok(hinted);
    }
    let mut kept = record::read_all(state)?;
    let sequence = kept.first().map_or(0, record::RecordEntry::sequence);
    let newest = (!kept.is_empty()).then(|| kept.swap_remove(0));
    Ok(Newest { record: newest.and_then(|newest| newest.record.ok()), sequence })
}

fn hinted(state: &RootState) -> Option<Newest> {
    let text = text(state)?;
    let mut fields = text.lines().nth(1)?.split(' ');
    let (count, sequence): (usize, u64) =
        (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
    let id = CheckpointId::parse(fields.next()?)?;
    if record::ids(state).ok()?.len() != count {
        return None;
    }
    let record = record::read(state, id).ok().filter(|it| it.checkpoint.sequence == sequence)?;
    Some(Newest { record: Some(record), sequence })
}

fn text(state: &RootState) -> Option<String> {
    String::from_utf8(fs::read_small(&state.anchor(), SIZE_MAX_BYTES).ok()??).ok()
}
