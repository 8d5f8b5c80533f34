//! How object files get here: as reflinks, hard links or copies, whichever the file systems allow.

use std::{
    ffi::{CStr, OsStr},
    io,
    os::unix::ffi::OsStrExt,
    path::Path,
    sync::{
        OnceLock,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use super::{
    super::damaged_packs::{is_sound, marked_damaged},
    copies::{copy, share},
};
use crate::fs::{Dir, PendingFile, c_name, is_overlay};

/// What is known of the file systems, and how much may still be copied. Threads share it.
pub(super) struct Transfer {
    /// Whether everything is copied, because it is little.
    pub(super) is_small: bool,
    /// How many bytes may be copied where hard links are impossible.
    budget: AtomicU64,
    /// Whether there are reflinks; unknown before the first try.
    has_reflinks: OnceLock<bool>,
    /// Whether this is overlayfs, which copies a file whole before it links it.
    is_overlay: OnceLock<bool>,
    /// Whether the files turned out to be on another file system.
    is_elsewhere: AtomicBool,
}

/// A directory that files come from, and the one of ours that they go to.
pub(super) struct Route<'a> {
    pub(super) from: &'a Dir,
    pub(super) from_path: &'a Path,
    pub(super) to: &'a Dir,
    pub(super) to_path: &'a Path,
}

/// What became of a file.
pub(super) enum Arrival {
    /// It was here.
    Known,
    /// It is here, linked.
    Linked,
    /// It is here but has no name yet.
    Copied(PendingFile),
}

impl Transfer {
    /// Allows `budget_bytes` to be copied where hard links are impossible.
    pub(super) fn new(budget_bytes: u64) -> Self {
        Self {
            is_small: false,
            budget: AtomicU64::new(budget_bytes),
            has_reflinks: OnceLock::new(),
            is_overlay: OnceLock::new(),
            is_elsewhere: AtomicBool::new(false),
        }
    }

    /// Links or copies the file `name`, unless it is here.
    ///
    /// # Errors
    ///
    /// [`io::ErrorKind::FileTooLarge`] if it would have to be copied and is over the budget.
    pub(super) fn bring(&self, route: &Route<'_>, name: &CStr, size: u64) -> io::Result<Arrival> {
        let is_index = name.to_bytes().ends_with(b".idx");
        // A hard link tells by itself that the file is here already.
        let links = self.has_reflinks.get() == Some(&false) && self.can_link(route);
        if (is_index || !links) && route.to.stat_child(name).is_ok() {
            return Ok(Arrival::Known);
        }
        if is_index && !is_sound(&route.from_path.join(path_of(name))) {
            let marked = marked_damaged(path_of(name));
            return self.bring_as(route, name, &c_name(marked.as_os_str().as_bytes())?, size);
        }
        self.bring_as(route, name, name, size)
    }

    fn bring_as(
        &self,
        route: &Route<'_>,
        name: &CStr,
        to: &CStr,
        size: u64,
    ) -> io::Result<Arrival> {
        let paths = || (route.from_path.join(path_of(name)), route.to_path.join(path_of(to)));
        // A reflink is better than a hard link: with a hard link, a write in place changes both.
        if !self.is_small && self.has_reflinks.get() != Some(&false) {
            let (from, to) = paths();
            let shared = share(&from, &to)?;
            self.has_reflinks.get_or_init(|| shared.is_some());
            if let Some(copy) = shared {
                return Ok(Arrival::Copied(copy));
            }
        }
        if self.can_link(route) {
            match route.from.link(name, route.to, to) {
                Ok(()) => return Ok(Arrival::Linked),
                Err(err) if err.kind() == io::ErrorKind::AlreadyExists => {
                    return Ok(Arrival::Known);
                }
                Err(err) if !is_unlinkable(&err) => return Err(err),
                Err(err) => {
                    let is_elsewhere = err.kind() == io::ErrorKind::CrossesDevices;
                    self.is_elsewhere.fetch_or(is_elsewhere, Ordering::Relaxed);
                }
            }
        }
        self.spend(size)?;
        let (from, to) = paths();
        copy(&from, &to).map(Arrival::Copied)
    }

    fn can_link(&self, route: &Route<'_>) -> bool {
        !self.is_small
            && !self.is_elsewhere.load(Ordering::Relaxed)
            && !self.is_overlay.get_or_init(|| is_overlay(route.from_path))
    }

    fn spend(&self, bytes: u64) -> io::Result<()> {
        let left = |left: u64| left.checked_sub(bytes);
        match self.budget.fetch_update(Ordering::Relaxed, Ordering::Relaxed, left) {
            Ok(_) => Ok(()),
            Err(_) => Err(io::ErrorKind::FileTooLarge.into()),
        }
    }
}

fn path_of(name: &CStr) -> &Path {
    Path::new(OsStr::from_bytes(name.to_bytes()))
}

/// Whether an error means that a file, which may belong to another user, cannot be linked there.
fn is_unlinkable(err: &io::Error) -> bool {
    matches!(
        err.kind(),
        io::ErrorKind::CrossesDevices
            | io::ErrorKind::PermissionDenied
            | io::ErrorKind::Unsupported
            | io::ErrorKind::TooManyLinks
    )
}
