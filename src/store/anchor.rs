//! The anchor file of a root: the directory that the cache was written for, and a hint that tells
//! the newest checkpoint, so that a save need not read all records. Written by the file store. The
//! git store has its anchor in a ref, and only drops the hint when it forgets checkpoints.
//!
//! Two lines: the directory's id; then the number of records, the greatest sequence number and its
//! checkpoint. A save without the root's lock makes the number wrong, which invalidates the hint;
//! removing a record drops it. Only the holder of the lock writes the file.

use super::record::{self, Record};
use crate::{
    error::Result,
    fs,
    model::{Checkpoint, CheckpointId, ContentId},
    state::RootState,
};

/// Longer than any anchor.
const SIZE_MAX_BYTES: u64 = 200;

/// The newest checkpoint of a root.
pub(in crate::store) struct Newest {
    /// Its record, if there is a readable one.
    pub(in crate::store) record: Option<Record>,
    /// The greatest sequence number; 0 if there is none.
    pub(in crate::store) sequence: u64,
}

/// The anchor of a root; `None` if it is missing or damaged.
pub(in crate::store) fn read(state: &RootState) -> Option<ContentId> {
    ContentId::parse(text(state)?.split_once('\n')?.0)
}

/// Writes the anchor for `newest`, which was just saved or confirmed.
pub(in crate::store) fn write(
    state: &RootState,
    top: ContentId,
    newest: &Checkpoint,
) -> Result<()> {
    let count = record::ids(state)?.len();
    let Checkpoint { sequence, id, .. } = newest;
    fs::replace(&state.anchor(), format!("{top}\n{count} {sequence} {id}\n").as_bytes())
}

/// Removes the hint and keeps the directory's id.
pub(in crate::store) fn drop_hint(state: &RootState) -> Result<()> {
    match read(state) {
        Some(top) => fs::replace(&state.anchor(), format!("{top}\n").as_bytes()),
        None => Ok(()),
    }
}

/// The newest checkpoint: from the hint if that is valid, else from all records.
pub(in crate::store) fn newest(state: &RootState) -> Result<Newest> {
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
