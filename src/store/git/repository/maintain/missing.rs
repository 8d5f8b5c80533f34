//! Since when borrowed files are missing in the user's repository, as far as maintenance has seen.
//!
//! No time of the file itself says so: that of a copy is when it was copied.

use std::{
    collections::BTreeMap,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use crate::{
    error::Result,
    fs::{now_ns, read_small, replace},
    store::escape::{escape, unescape},
};

/// A million files.
const SIZE_MAX_BYTES: u64 = 128 << 20;

/// The file `missing` in a directory of borrowed objects: lines of a time, in nanoseconds since 1970,
/// and a path.
pub(super) struct Missing {
    linked: PathBuf,
    known: BTreeMap<Vec<u8>, i64>,
    /// Those that are still missing.
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

    /// Since when a file is missing at the latest; from now on if it was not known to be.
    pub(super) fn since(&mut self, path: &Path) -> i64 {
        let path = path.strip_prefix(&self.linked).unwrap_or(path).as_os_str().as_bytes();
        let since = self.known.get(path).copied().unwrap_or_else(now_ns);
        *self.now.entry(path.to_owned()).or_insert(since)
    }

    /// Says that a file has what another had, and is missing as long as that one.
    pub(super) fn inherit(&mut self, path: &Path, of: &Path) {
        let since = self.since(of);
        let path = path.strip_prefix(&self.linked).unwrap_or(path).as_os_str().as_bytes();
        self.now.insert(path.to_owned(), since);
    }

    /// Writes down which are missing now.
    ///
    /// # Errors
    ///
    /// Fails if that cannot be written.
    pub(super) fn write(self) -> Result<()> {
        if self.now == self.known {
            return Ok(());
        }
        let line = |(path, since): (&Vec<u8>, &i64)| format!("{since} {}\n", escape(path));
        let text: String = self.now.iter().map(line).collect();
        replace(&self.linked.join("missing"), text.as_bytes())
    }
}
