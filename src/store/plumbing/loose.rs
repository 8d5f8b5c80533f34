//! Detects borrowed loose objects that were rewritten in place, which git never does.
//!
//! A file that changed after its creation is suspect. Git updates the mtime of an object that it
//! would write again, so the bytes decide. This does not detect a rewrite that resets the times,
//! nor any on a file system without birth times.

use std::{
    io,
    path::{Path, PathBuf},
    sync::OnceLock,
};

use gix::ObjectId;

use super::{
    borrowed::{borrowed_dirs, names_of},
    repo::Repo,
};
use crate::fs::nature;

/// Git takes no longer to write most objects, and most file system clocks are no finer.
const WRITING_NS: i64 = 20_000_000;

/// The borrowed loose objects of a private repository.
pub(in crate::store) struct LooseObjects {
    linked: PathBuf,
    /// The directories `ab` with them, by first byte; listed on first use.
    fans: OnceLock<Vec<Vec<PathBuf>>>,
}

impl LooseObjects {
    /// The borrowed loose objects of `repo`.
    pub(in crate::store) fn borrowed_by(repo: &Repo) -> Self {
        Self { linked: repo.common_dir.join("linked"), fans: OnceLock::new() }
    }

    /// Whether an object is one of them and was changed after its creation.
    pub(in crate::store) fn is_rewritten(&self, id: &ObjectId) -> bool {
        let fans = self.fans.get_or_init(|| fans(&self.linked));
        let dirs = &fans[usize::from(id.first_byte())];
        if dirs.is_empty() {
            return false;
        }
        let hex = id.to_string();
        dirs.iter().any(|dir| is_changed(&dir.join(&hex[2..])).unwrap_or(false))
    }
}

fn fans(linked: &Path) -> Vec<Vec<PathBuf>> {
    let mut fans = vec![Vec::new(); 256];
    for dir in borrowed_dirs(linked) {
        for name in names_of(&dir).unwrap_or_default() {
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
