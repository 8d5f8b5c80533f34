//! The bytes of a repository's `packed-refs`, read again only if the file is another one: nobody changes it in place.

use std::{
    path::Path,
    sync::{Arc, Mutex, PoisonError},
};

use crate::{
    error::Result,
    fs::{now_ns, read_small, stat_path},
    model::Stamp,
    scan::is_racy,
};

/// Enough for five million refs.
const SIZE_MAX_BYTES: u64 = 512 << 20;

/// The list as it was read last.
#[derive(Clone, Default)]
pub(in crate::store) struct PackedRefs(Arc<Mutex<Option<ReadList>>>);

struct ReadList {
    /// The stamp of its file before it was read.
    stamp: Stamp,
    bytes: Arc<Vec<u8>>,
}

impl PackedRefs {
    /// The bytes of the list at `path`; none if there is no such file.
    ///
    /// # Errors
    ///
    /// Fails if it cannot be read.
    pub(in crate::store) fn read(&self, path: &Path) -> Result<Arc<Vec<u8>>> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let stamp = stat_path(path).ok();
        if let Some(known) = known.as_ref().filter(|known| stamp == Some(known.stamp)) {
            return Ok(known.bytes.clone());
        }
        let looked_at = now_ns();
        let bytes = Arc::new(read_small(path, SIZE_MAX_BYTES)?.unwrap_or_default());
        // A file that takes its place at once could have the same stamp.
        let stamp = stamp.filter(|stamp| !is_racy(stamp, looked_at));
        *known = stamp.map(|stamp| ReadList { stamp, bytes: bytes.clone() });
        Ok(bytes)
    }
}
