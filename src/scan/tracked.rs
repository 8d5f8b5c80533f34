//! The paths that git tracks. A tracked file is captured even if it is ignored or excluded.

use std::path::Path;

use gix::{hash::Kind as HashKind, index::entry::Mode};
use sha2::{Digest, Sha256};

use crate::{git_index::GitIndex, model::ContentId};

/// Enough for five million files. More is more likely an attack than a project: an index can name long paths shortly.
const PATHS_MAX_BYTES: u32 = 512 << 20;

/// The paths in the index of one repository, in its order; empty by default.
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
        let entries = Self::read_all(path, hash).unwrap_or_default();
        Self { skip, ..entries }
    }

    fn read_all(path: &Path, hash: HashKind) -> Result<Self, String> {
        let index = GitIndex::open_unverified(path, hash)?;
        let (mut tracked, mut entries) = (Self::default(), index.entries()?);
        while let Some(entry) = entries.read_next()? {
            tracked.paths.extend_from_slice(entry.path);
            let end = u32::try_from(tracked.paths.len()).ok().filter(|&end| end <= PATHS_MAX_BYTES);
            let end = end.ok_or("its paths are too long")?;
            let is_submodule = entry.mode.contains(Mode::COMMIT);
            tracked.entries.push(TrackedEntry { end, is_submodule });
        }
        Ok(tracked)
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
