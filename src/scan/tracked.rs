//! The paths that git tracks. A tracked file is captured even if it is ignored or excluded.

use std::{panic::catch_unwind, path::Path};

use gix::{
    hash::Kind as HashKind,
    index::{File, decode::Options, entry::Mode},
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

/// The paths in the index of one repository, in its order; empty by default.
///
/// Only the paths: everything else in an index takes three times their memory, for as long as a walk does.
#[derive(Default)]
pub(super) struct Tracked {
    /// One after the other.
    paths: Vec<u8>,
    entries: Vec<TrackedEntry>,
    /// How many leading bytes of a path below the root the index does not have.
    skip: usize,
}

/// Where the path of an entry ends, and so where the next one begins.
struct TrackedEntry {
    end: u32,
    is_submodule: bool,
}

impl Tracked {
    /// Reads the index at `path` of a repository with a worktree that begins `skip` bytes into a path.
    ///
    /// A missing, hostile or damaged index tracks nothing: every file then counts as untracked, and
    /// is captured unless it is ignored.
    pub(super) fn read(path: &Path, hash: HashKind, skip: usize) -> Self {
        let is_sane =
            |stamp: &Stamp| stamp.kind() == Some(Kind::File) && stamp.size <= INDEX_MAX_BYTES;
        let none = Self { skip, ..Self::default() };
        let Some(stamp) = stat_path(path).ok().filter(is_sane) else { return none };
        // The bytes may come from anywhere. Without a thread count the decoder would read six files
        // to find the number of cores.
        let threads = if stamp.size > BYTES_FOR_TWO { 2 } else { 1 };
        let options = Options { thread_limit: Some(threads), ..Options::default() };
        let read = || {
            let index = File::at(path, hash, true, options).ok()?;
            Some(Self { skip, ..Self::of(&index)? })
        };
        catch_unwind(read).ok().flatten().unwrap_or(none)
    }

    /// `None` if the paths take more than 4 GiB, which no index that is read has.
    fn of(index: &File) -> Option<Self> {
        let mut tracked = Self::default();
        tracked.entries.reserve_exact(index.entries().len());
        tracked.paths.reserve_exact(index.path_backing().len());
        for entry in index.entries() {
            tracked.paths.extend_from_slice(entry.path(index));
            let end = u32::try_from(tracked.paths.len()).ok()?;
            let is_submodule = entry.mode.contains(Mode::COMMIT);
            tracked.entries.push(TrackedEntry { end, is_submodule });
        }
        Some(tracked)
    }

    /// The path of the entry with this number; it must exist.
    fn path(&self, number: usize) -> &[u8] {
        let end = |number: usize| self.entries[number].end as usize;
        &self.paths[number.checked_sub(1).map_or(0, end)..end(number)]
    }

    /// The number of the first entry that does not come before `path`.
    fn position(&self, path: &[u8]) -> usize {
        let (mut low, mut high) = (0, self.entries.len());
        while low < high {
            let middle = low + (high - low) / 2;
            if self.path(middle) < path { low = middle + 1 } else { high = middle }
        }
        low
    }

    /// Whether the file at `path` is tracked. `hint` is the position of the last path found:
    /// lookups in index order find the next one beside it.
    pub(super) fn has(&self, path: &[u8], hint: &mut usize) -> bool {
        self.entry(path, hint).is_some()
    }

    /// Whether a file below the directory at `path` is tracked, or that directory is a submodule.
    pub(super) fn has_below(&self, path: &[u8], hint: &mut usize) -> bool {
        if self.entry(path, hint).is_some_and(|at| self.entries[at].is_submodule) {
            return true;
        }
        let Some(path) = path.get(self.skip..) else { return false };
        let below = [path, b"/"].concat();
        let at = self.position(&below);
        let is_first = at < self.entries.len() && self.path(at).starts_with(&below);
        // The next lookups will be for its files.
        *hint = if is_first { at } else { *hint };
        is_first
    }

    /// The number of the first entry with exactly this path.
    fn entry(&self, path: &[u8], hint: &mut usize) -> Option<usize> {
        let path = path.get(self.skip..)?;
        let is_at = |at: usize| at < self.entries.len() && self.path(at) == path;
        let near = [*hint, hint.wrapping_add(1)].into_iter().find(|&at| is_at(at));
        let at = near.unwrap_or_else(|| self.position(path));
        if !is_at(at) {
            return None;
        }
        *hint = at;
        Some(at)
    }

    /// A digest of the set of paths.
    pub(super) fn digest(&self) -> ContentId {
        let mut hash = Sha256::new();
        for number in 0..self.entries.len() {
            hash.update(self.path(number));
            hash.update([0]);
        }
        ContentId::new(&hash.finalize())
    }
}
