//! Which paths git tracks: an ignored or excluded file that is tracked is captured all the same.

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

/// A million files' worth. A larger index is more likely an attack than a project.
const INDEX_MAX_BYTES: u64 = 512 << 20;
/// An index of some ten thousand files is decoded in a millisecond.
const BYTES_FOR_TWO: u64 = 2 << 20;

/// The index of one repository, or nothing.
#[derive(Default)]
pub(super) struct Tracked {
    index: Option<gix::index::File>,
    /// How many bytes of a path below the root come before the part the index knows.
    skip: usize,
}

impl Tracked {
    /// Reads the index at `path` of a repository whose worktree begins `skip` bytes into a path.
    ///
    /// One that is missing, hostile or damaged tracks nothing: then every file counts as
    /// untracked, and is captured unless it is ignored.
    pub(super) fn read(path: &Path, hash: HashKind, skip: usize) -> Self {
        let is_sane =
            |stamp: &Stamp| stamp.kind() == Some(Kind::File) && stamp.size <= INDEX_MAX_BYTES;
        let Some(stamp) = stat_path(path).ok().filter(is_sane) else {
            return Self { index: None, skip };
        };
        // The decoder is given bytes from anywhere.
        // Left alone, the decoder reads six files to find how many cores there are.
        let threads = if stamp.size > BYTES_FOR_TWO { 2 } else { 1 };
        let options = Options { thread_limit: Some(threads), ..Options::default() };
        let read = || gix::index::File::at(path, hash, true, options).ok();
        Self { index: catch_unwind(read).ok().flatten(), skip }
    }

    /// Whether the file at `path` is tracked. `hint` is where the last path was found: whoever
    /// asks in the index's order finds the next one beside it.
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
        // Its files are asked for next.
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
