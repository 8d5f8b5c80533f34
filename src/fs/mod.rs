//! File operations that the standard library lacks: directory handles, atomic replacement, locks
//! with a deadline, and private files whatever the umask.
//!
//! Below a user's directory, every path is resolved name by name from an open directory and without
//! following symlinks, so that a symlink swapped in meanwhile cannot redirect us.

mod attributes;
mod dir;
mod dir_cursor;
mod file_buffer;
mod holes;
mod lock;
mod path_resolver;
mod pending;
mod private;
mod sync;
mod system;

use std::{
    os::unix::fs::MetadataExt,
    path::{Component, Path, PathBuf},
};

pub use attributes::{Owner, hand_over, is_another_users};
pub use dir::{Dir, Listed, is_no_directory, link_count, names_in, stat_path};
pub(crate) use dir::{c_name, set_permissions, stamp_of};
pub use dir_cursor::DirCursor;
pub use file_buffer::FileBuffer;
pub use holes::Holes;
pub use lock::Lock;
pub use path_resolver::PathResolver;
pub use pending::{PendingFile, TemporaryName, create_new_synced};
pub use private::{
    Small, can_make_files, clear_away, create_private_dirs, exchange, is_absent, is_gone,
    is_in_the_way, is_lost, is_own, is_short_of_means, is_unsupported, list_names, may_write,
    open_options, open_regular, open_to_append, open_to_read, overwrite_by, protect_dir,
    read_small, read_start, remove_if_there, remove_left_beside, remove_tree, rename_exclusive,
    replace, replace_by, replace_synced, replace_with, set_aside, space, sync_dir,
};
pub(crate) use sync::{all_at_once, in_halves, two_can_work};
pub(crate) use system::{
    SYNCS_FILE_SYSTEMS, VSCODE_SETTINGS, is_overlay, is_pseudo, nature, reflink,
};

/// No system takes a longer path (`PATH_MAX` of Linux), so there is never anything at one.
pub(crate) const PATH_MAX_BYTES: usize = 4096;

/// A path without `.` and `..`, resolved as text only, because the files may not exist.
pub fn without_dots(path: &Path) -> PathBuf {
    let mut plain = PathBuf::with_capacity(path.as_os_str().len());
    for component in path.components() {
        match component {
            Component::ParentDir => drop(plain.pop()),
            Component::CurDir => (),
            Component::RootDir | Component::Normal(_) | Component::Prefix(_) => {
                plain.push(component);
            }
        }
    }
    plain
}

/// Nothing of ours is nested deeper.
const DEPTH_MAX: usize = 32;

/// The disk usage of everything below a directory of ours. A file with another hard link belongs to
/// the user as well and does not count.
pub fn own_bytes(dir: &Path) -> u64 {
    own_bytes_in(dir, 0)
}

fn own_bytes_in(dir: &Path, depth: usize) -> u64 {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let each = entries.map(|entry| match entry.metadata() {
        Ok(found) if found.is_dir() && depth < DEPTH_MAX => {
            found.blocks() * 512 + own_bytes_in(&entry.path(), depth + 1)
        }
        Ok(found) if found.nlink() > 1 => 0,
        Ok(found) => found.blocks() * 512,
        Err(_) => 0,
    });
    each.sum()
}

/// The system clock in nanoseconds since 1970, for comparison with file stamps.
#[expect(clippy::disallowed_methods, reason = "stamps are judged by this moment, not our start")]
pub fn now_ns() -> i64 {
    // Not through `rustix`: its direct vDSO call fails under valgrind, which counts our
    // instructions.
    match std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH) {
        Ok(since) => i64::try_from(since.as_nanos()).unwrap_or(i64::MAX),
        Err(before) => i64::try_from(before.duration().as_nanos()).map_or(i64::MIN, |ns| -ns),
    }
}
