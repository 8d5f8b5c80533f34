//! The paths that git tracks. A tracked file is captured even if it is ignored or excluded.

use std::{panic::catch_unwind, path::Path};

use gix::{
    bstr::ByteSlice,
    hash::Kind as HashKind,
    index::{Entry, decode::Options, entry::Mode},
};
use sha2::{Digest, Sha256};

use crate::{
    fs::stat_path,
    model::{ContentId, Kind, Stamp},
};

/// Enough for a million files. A larger index is more likely an attack than a project.
const INDEX_MAX_BYTES: u64 = 512 << 20;
/// A smaller index, of some ten thousand files, is decoded in a millisecond.
const BYTES_FOR_TWO: u64 = 2 << 20;

/// The index of one repository; empty by default.
#[derive(Default)]
pub(super) struct Tracked {
    index: Option<gix::index::File>,
    /// How many leading bytes of a path below the root the index does not have.
    skip: usize,
}

impl Tracked {
    /// Reads the index at `path` of a repository whose worktree begins `skip` bytes into a path.
    ///
    /// A missing, hostile or damaged index tracks nothing: every file then counts as untracked, and
    /// is captured unless it is ignored.
    pub(super) fn read(path: &Path, hash: HashKind, skip: usize) -> Self {
        let is_sane =
            |stamp: &Stamp| stamp.kind() == Some(Kind::File) && stamp.size <= INDEX_MAX_BYTES;
        let Some(stamp) = stat_path(path).ok().filter(is_sane) else {
            return Self { index: None, skip };
        };
        // The bytes may come from anywhere. Without a thread count the decoder would read six files
        // to find the number of cores.
        let threads = if stamp.size > BYTES_FOR_TWO { 2 } else { 1 };
        let options = Options { thread_limit: Some(threads), ..Options::default() };
        let read = || gix::index::File::at(path, hash, true, options).ok();
        Self { index: catch_unwind(read).ok().flatten(), skip }
    }

    /// Whether the file at `path` is tracked. `hint` is the position of the last path found:
    /// lookups in index order find the next one beside it.
    pub(super) fn has(&self, path: &[u8], hint: &mut usize) -> bool {
        self.entry(path, hint).is_some()
    }

    /// Whether a file below the directory at `path` is tracked, or that directory is a submodule.
    pub(super) fn has_below(&self, path: &[u8], hint: &mut usize) -> bool {
        let is_submodule = |entry: &Entry| entry.mode.contains(Mode::COMMIT);
        if self.entry(path, hint).is_some_and(is_submodule) {
            return true;
        }
        let (Some(index), Some(path)) = (&self.index, path.get(self.skip..)) else { return false };
        let below = [path, b"/"].concat();
        let at = index.entries().partition_point(|entry| entry.path(index) < below.as_bstr());
        let first = index.entries().get(at).filter(|first| first.path(index).starts_with(&below));
        // The next lookups will be for its files.
        *hint = if first.is_some() { at } else { *hint };
        first.is_some()
    }

    /// The first entry with exactly this path.
    fn entry(&self, path: &[u8], hint: &mut usize) -> Option<&Entry> {
        let (index, path) = (self.index.as_ref()?, path.get(self.skip..)?);
        let entries = index.entries();
        let is_at = |at: usize| entries.get(at).is_some_and(|entry| entry.path(index) == path);
        let near = [*hint, hint.wrapping_add(1)].into_iter().find(|&at| is_at(at));
        let at = near
            .unwrap_or_else(|| entries.partition_point(|entry| entry.path(index) < path.as_bstr()));
        if !is_at(at) {
            return None;
        }
        *hint = at;
        entries.get(at)
    }

    /// A digest of the set of paths.
    pub(super) fn digest(&self) -> ContentId {
        let mut hash = Sha256::new();
        for entry in self.index.iter().flat_map(|index| index.entries()) {
            let path = self.index.as_ref().map(|index| entry.path(index)).unwrap_or_default();
            hash.update(path);
            hash.update([0]);
        }
        ContentId::new(&hash.finalize())
    }
}
