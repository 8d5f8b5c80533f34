//! Records since when borrowed files have been missing in the user's repository.
//!
//! The files' own times do not tell: a copy has the time of its copying.

use std::{
    collections::BTreeMap,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use crate::{
    error::Result,
    fs::{now_ns, read_small, replace},
    model::escape::{escape, unescape},
};

/// Enough for a million files.
const SIZE_MAX_BYTES: u64 = 128 << 20;

/// The file `missing` in a borrowed object directory. Each line has a time, in nanoseconds since
/// 1970, and a path.
pub(super) struct Missing {
    linked: PathBuf,
    known: BTreeMap<Vec<u8>, i64>,
    /// Files that are still missing.
    now: BTreeMap<Vec<u8>, i64>,
}

impl Missing {
    pub(super) fn load(linked: &Path) -> Self {
        let text = read_small(&linked.join("missing"), SIZE_MAX_BYTES).ok().flatten();
        let text = text.and_then(|bytes| String::from_utf8(bytes).ok()).unwrap_or_default();
        let parse = |line: &str| {
            let (since, path) = line.split_once(' ')?;
            Some((unescape(path)?, since.parse().ok()?))
        };
        let known = text.lines().filter_map(parse).collect();
        Self { linked: linked.to_owned(), known, now: BTreeMap::new() }
    }

    /// Since when a file has been missing; from now on if it was not known to be.
    pub(super) fn since(&mut self, path: &Path) -> i64 {
        let path = path.strip_prefix(&self.linked).unwrap_or(path).as_os_str().as_bytes();
        let since = self.known.get(path).copied().unwrap_or_else(now_ns);
        *self.now.entry(path.to_owned()).or_insert(since)
    }

    /// Records that a file replaces another and takes over its time.
    pub(super) fn inherit(&mut self, path: &Path, of: &Path) {
        let since = self.since(of);
        let path = path.strip_prefix(&self.linked).unwrap_or(path).as_os_str().as_bytes();
        self.now.insert(path.to_owned(), since);
    }

    /// Writes the file.
    ///
    /// # Errors
    ///
    /// Fails if it cannot be written.
    pub(super) fn write(self) -> Result<()> {
        if self.now == self.known {
            return Ok(());
        }
        let line = |(path, since): (&Vec<u8>, &i64)| format!("{since} {}\n", escape(path));
        let text: String = self.now.iter().map(line).collect();
        replace(&self.linked.join("missing"), text.as_bytes())
    }
}
