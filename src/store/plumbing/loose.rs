//! Detects borrowed loose objects that were rewritten in place, which git never does, and whatever has the name
//! of a loose object without being a regular file: opening a pipe would block.
//!
//! A file that changed after its creation is suspect. Git updates the mtime of an object that it
//! would write again, so the bytes decide. This does not detect a rewrite that resets the times,
//! nor any on a file system without birth times.

use std::{
    io,
    path::{Path, PathBuf},
    sync::OnceLock,
};

use gix::hash::oid;

use super::borrowed::{borrowed_dirs, names_of};
use crate::fs::{is_in_the_way, nature};

/// Git takes no longer to write most objects, and most file system clocks are no finer.
const WRITING_NS: i64 = 20_000_000;

/// The loose objects in some object directories.
pub(in crate::store) struct LooseObjects {
    dirs: Vec<PathBuf>,
    /// The directories `ab` with them, by first byte; listed on first use.
    fans: OnceLock<Vec<Vec<PathBuf>>>,
}

impl LooseObjects {
    /// The borrowed loose objects of the private repository in the directory `private`.
    pub(in crate::store) fn borrowed_by(private: &Path) -> Self {
        Self::below(borrowed_dirs(&private.join("linked")))
    }

    /// The loose objects in the object directories `dirs`.
    pub(in crate::store) fn below(dirs: Vec<PathBuf>) -> Self {
        Self { dirs, fans: OnceLock::new() }
    }

    /// Whether an object is one of them and was changed after its creation.
    pub(in crate::store) fn is_rewritten(&self, id: &oid) -> bool {
        self.any(id, |path| is_changed(path).unwrap_or(false))
    }

    /// Whether something other than a regular file has the name of an object.
    pub(in crate::store) fn is_blocked(&self, id: &oid) -> bool {
        self.any(id, is_in_the_way)
    }

    fn any(&self, id: &oid, is_such: impl Fn(&Path) -> bool) -> bool {
        let fans = self.fans.get_or_init(|| fans(&self.dirs));
        let dirs = &fans[usize::from(id.first_byte())];
        if dirs.is_empty() {
            return false;
        }
        let hex = id.to_string();
        dirs.iter().any(|dir| is_such(&dir.join(&hex[2..])))
    }
}

fn fans(dirs: &[PathBuf]) -> Vec<Vec<PathBuf>> {
    let mut fans = vec![Vec::new(); 256];
    for dir in dirs {
        for name in names_of(dir).unwrap_or_default() {
            let byte = name.to_str().filter(|name| name.len() == 2);
            if let Some(byte) = byte.and_then(|byte| usize::from_str_radix(byte, 16).ok()) {
                fans[byte].push(dir.join(name));
            }
        }
    }
    fans
}

fn is_changed(path: &Path) -> io::Result<bool> {
    let found = nature(path, false)?;
    let written = |born: i64| found.mtime_ns > born.saturating_add(WRITING_NS);
    Ok(found.birth_ns.is_some_and(written))
}
