//! The seam to the operating system, below the methods of [`Dir`](super::Dir). Another system is one more file with
//! the same functions.
//!
//! With `--cfg portable`, Linux uses the functions of other systems too, so that they can be run by the tests.

#[cfg(all(target_os = "linux", not(portable)))]
mod linux;
#[cfg(any(not(target_os = "linux"), portable))]
mod other;

#[cfg(all(target_os = "linux", not(portable)))]
use linux as current;
#[cfg(any(not(target_os = "linux"), portable))]
use other as current;

pub(crate) use current::{
    SYNCS_FILE_SYSTEMS, VSCODE_SETTINGS, cores, is_overlay, is_pseudo, nature, reflink,
};
pub(super) use current::{
    device_of, is_users_attribute, list, lock_holder, make_special, mode_of, open_plain, path_only,
    path_only_resolved, sync_file_system,
};

/// What tells one file from any other that ever had its path, and when it was last written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Nature {
    /// The device it is on.
    pub(crate) device: u64,
    /// Its inode.
    pub(crate) inode: u64,
    /// When it was made, in nanoseconds since 1970, if the file system records it.
    pub(crate) birth_ns: Option<i64>,
    /// When its content changed last, in nanoseconds since 1970.
    pub(crate) mtime_ns: i64,
}

fn nanoseconds(seconds: i64, rest: i64) -> i64 {
    seconds.saturating_mul(1_000_000_000).saturating_add(rest)
}
