//! Any other system, by what POSIX and the standard library offer.

use std::{
    ffi::CStr,
    fs::File,
    io,
    os::{fd::OwnedFd, unix::fs::MetadataExt},
    path::Path,
    time::UNIX_EPOCH,
};

use rustix::{
    fs::{FileType, Mode, OFlags, RawMode, Stat},
    io::Errno,
};

use super::{Nature, nanoseconds};

const OPEN_DIR: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// Opens a directory as a base for other calls. A symlink is an error.
pub(in crate::fs) fn path_only() -> OFlags {
    OPEN_DIR | OFlags::NOFOLLOW
}

/// The same for a path that is known to have no symlinks in it.
pub(in crate::fs) fn path_only_resolved() -> OFlags {
    OPEN_DIR
}

/// Permissions for a system call.
pub(in crate::fs) fn mode_of(permissions: u32) -> Mode {
    Mode::from_raw_mode((permissions & 0o7777) as RawMode)
}

/// The device a file is on.
pub(in crate::fs) fn device_of(stat: &Stat) -> u64 {
    u64::from(stat.st_dev.cast_unsigned())
}

/// Lists the names in a directory, with what the listing says they are.
pub(in crate::fs) fn list(dir: &OwnedFd, mut each: impl FnMut(&CStr, FileType)) -> io::Result<()> {
    for entry in rustix::fs::Dir::read_from(dir)? {
        let entry = entry?;
        each(entry.file_name(), entry.file_type());
    }
    Ok(())
}

/// There is no call that creates a pipe, socket or device below an open directory.
pub(in crate::fs) fn make_special(_: &OwnedFd, _: &CStr, _: FileType, _: u64) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Waits until the directory itself is on the disk: there is no call for its file system.
pub(in crate::fs) fn sync_file_system(dir: &OwnedFd) -> io::Result<()> {
    Ok(rustix::fs::fsync(dir)?)
}

/// Opening a path proves nothing about its symlinks here.
pub(in crate::fs) fn open_plain(_: &Path, _: OFlags, _: Mode) -> Result<File, Errno> {
    Err(Errno::NOSYS)
}

/// Looks at `path`, through a symlink if `follows`.
pub(crate) fn nature(path: &Path, follows: bool) -> io::Result<Nature> {
    let found = if follows { path.metadata()? } else { path.symlink_metadata()? };
    let since = found.created().ok().and_then(|at| at.duration_since(UNIX_EPOCH).ok());
    Ok(Nature {
        device: found.dev(),
        inode: found.ino(),
        birth_ns: since.and_then(|since| i64::try_from(since.as_nanos()).ok()),
        mtime_ns: nanoseconds(found.mtime(), found.mtime_nsec()),
    })
}

/// No file is cloned.
pub(crate) fn reflink(_: &File, _: &File) -> bool {
    false
}

/// No file system shows the kernel.
pub(crate) fn is_pseudo(_: &Path) -> bool {
    false
}

/// There is no overlayfs.
pub(crate) fn is_overlay(_: &Path) -> bool {
    false
}

/// How many cores this process may run on.
pub(crate) fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}
