//! Detects borrowed loose objects that were rewritten in place, which git never does.
//!
//! A file that changed after its creation is suspect. Git updates the mtime of an object that it
//! would write again, so the bytes decide. This does not detect a rewrite that resets the times,
//! nor any on a file system without birth times.

#[cfg(not(target_os = "linux"))]
use std::fs;
use std::{
    io,
    path::{Path, PathBuf},
    sync::OnceLock,
};

use gix::ObjectId;

use super::{super::repo::Repo, borrow, names_of};

/// Git takes no longer to write most objects, and most file system clocks are no finer.
const WRITING_NS: i64 = 20_000_000;

/// The borrowed loose objects of a private repository.
pub(in crate::store::git) struct LooseObjects {
    linked: PathBuf,
    /// The directories `ab` with them, by first byte; listed on first use.
    fans: OnceLock<Vec<Vec<PathBuf>>>,
}

impl LooseObjects {
    /// The borrowed loose objects of `repo`.
    pub(in crate::store::git) fn borrowed_by(repo: &Repo) -> Self {
        Self { linked: repo.common_dir.join("linked"), fans: OnceLock::new() }
    }

    /// Whether an object is one of them and was changed after its creation.
    pub(in crate::store::git) fn is_rewritten(&self, id: &ObjectId) -> bool {
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
    for dir in borrow::borrowed_dirs(linked) {
        for name in names_of(&dir).unwrap_or_default() {
            let byte = name.to_str().filter(|name| name.len() == 2);
            if let Some(byte) = byte.and_then(|byte| usize::from_str_radix(byte, 16).ok()) {
                fans[byte].push(dir.join(name));
            }
        }
    }
    fans
}

#[cfg(target_os = "linux")]
fn is_changed(path: &Path) -> io::Result<bool> {
    use rustix::fs::{AtFlags, CWD, StatxFlags, statx};
    let wanted = StatxFlags::MTIME | StatxFlags::BTIME;
    // Not `Metadata::created`: std does not use statx with musl, which releases link to.
    let found = statx(CWD, path, AtFlags::SYMLINK_NOFOLLOW, wanted)?;
    let ns = |time: rustix::fs::StatxTimestamp| {
        time.tv_sec.saturating_mul(1_000_000_000).saturating_add(i64::from(time.tv_nsec))
    };
    let knows = found.stx_mask & StatxFlags::BTIME.bits() != 0 && found.stx_btime.tv_sec > 0;
    Ok(knows && ns(found.stx_mtime) > ns(found.stx_btime).saturating_add(WRITING_NS))
}

#[cfg(not(target_os = "linux"))]
fn is_changed(path: &Path) -> io::Result<bool> {
    let found = fs::symlink_metadata(path)?;
    let age = found.modified()?.duration_since(found.created()?);
    Ok(age.is_ok_and(|age| age.as_nanos() > WRITING_NS.unsigned_abs().into()))
}
