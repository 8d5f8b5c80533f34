//! The anchor file of a root: the directory that the cache was written for. Written by the file store; the git
//! store has its anchor in a ref. Only the holder of the root's lock writes the file.

use crate::{error::Result, fs, model::ContentId, state::RootState};

/// Longer than any anchor.
const SIZE_MAX_BYTES: u64 = 200;

/// The anchor of a root; `None` if it is missing or damaged.
pub(in crate::store) fn read(state: &RootState) -> Option<ContentId> {
    let bytes = fs::read_small(&state.anchor(), SIZE_MAX_BYTES).ok()??;
    ContentId::parse(str::from_utf8(&bytes).ok()?.strip_suffix('\n')?)
}

/// Writes the anchor for the directory `top`.
pub(in crate::store) fn write(state: &RootState, top: ContentId) -> Result<()> {
    fs::replace(&state.anchor(), format!("{top}\n").as_bytes())
}
