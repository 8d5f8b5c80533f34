//! Any other system, by means of POSIX and the standard library, and macOS by a little more. Compiled by `.ci/run`, and
//! run by none of its tests; `RUSTFLAGS="--cfg portable" cargo test` runs them on Linux.

use std::{
    ffi::CStr,
    fs::File,
    io,
    os::{fd::OwnedFd, unix::fs::MetadataExt},
    path::Path,
    time::UNIX_EPOCH,
};

use rustix::{
    fs::{FileType, Mode, OFlags, RawMode, Stat, fsync, openat},
    io::Errno,
};

use super::{Nature, nanoseconds};

const OPEN_DIR: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// Where Visual Studio Code keeps its user's settings, below the home directory.
pub(crate) const VSCODE_SETTINGS: &str = "Library/Application Support/Code/User/settings.json";

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

/// The process that holds a lock on an open file: the system does not tell.
pub(in crate::fs) fn lock_holder(_: &File) -> Option<u32> {
    None
}

/// The device a file is on.
pub(in crate::fs) fn device_of(stat: &Stat) -> u64 {
    device_number(stat.st_dev)
}

#[cfg(target_vendor = "apple")]
fn device_number(device: i32) -> u64 {
    u64::from(device.cast_unsigned())
}

#[cfg(not(target_vendor = "apple"))]
fn device_number(device: u64) -> u64 {
    device
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

/// Every attribute of a file is its user's: names say nothing of that, and on macOS the resource fork has one.
pub(in crate::fs) fn is_users_attribute(_: &[u8]) -> bool {
    true
}

/// Whether one call waits for all data of a file system.
pub(crate) const SYNCS_FILE_SYSTEMS: bool = false;

/// Waits until the files in the directory are on the disk, and if `deep` those below it: no call waits
/// for a whole file system. A file that may not be read is left to the system.
pub(in crate::fs) fn sync_file_system(dir: &OwnedFd, deep: bool) -> io::Result<()> {
    write_out(dir, deep)?;
    flush(dir)
}

/// Hands what is in a directory to the drive, which may keep it in a cache of its own.
fn write_out(dir: &OwnedFd, deep: bool) -> io::Result<()> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    for entry in rustix::fs::Dir::read_from(dir)? {
        let entry = entry?;
        let (name, kind) = (entry.file_name(), entry.file_type());
        let is_dir = kind == FileType::Directory;
        let is_wanted = deep || !is_dir;
        if matches!(name.to_bytes(), b"." | b"..") || !is_wanted {
            continue;
        }
        if !matches!(kind, FileType::RegularFile | FileType::Directory | FileType::Unknown) {
            continue;
        }
        match openat(dir, name, flags, Mode::empty()) {
            Ok(below) if is_dir => write_out(&below, deep)?,
            Ok(file) => fsync(&file)?,
            Err(Errno::ACCESS | Errno::PERM | Errno::NOENT | Errno::LOOP) => (),
            Err(err) => return Err(err.into()),
        }
    }
    Ok(fsync(dir)?)
}

/// Empties the cache of the drive, as `File::sync_all` does there.
#[cfg(target_vendor = "apple")]
fn flush(dir: &OwnedFd) -> io::Result<()> {
    match rustix::fs::fcntl_fullfsync(dir) {
        // A file system of a server has no drive.
        Err(Errno::NOTSUP | Errno::NOTTY | Errno::INVAL) => Ok(fsync(dir)?),
        done => Ok(done?),
    }
}

/// Elsewhere `fsync` has done so.
#[cfg(not(target_vendor = "apple"))]
#[expect(clippy::unnecessary_wraps, reason = "as on macOS")]
fn flush(_: &OwnedFd) -> io::Result<()> {
    Ok(())
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

/// Clones a file so that both share their blocks until one is written. A clone is always a new file, so it
/// replaces the empty one `to` at `path`, with its owner and permissions. `to` is as it was if that fails.
#[cfg(target_vendor = "apple")]
pub(crate) fn reflink(from: &File, to: &mut File, path: &Path) -> bool {
    let mut beside = path.as_os_str().to_owned();
    beside.push(".clone");
    let beside = Path::new(&beside);
    let _left_by_a_killed_process = std::fs::remove_file(beside);
    let cloned = clone_to(from, to, beside);
    if let Ok(file) = cloned.and_then(|file| std::fs::rename(beside, path).map(|()| file)) {
        *to = file;
        return true;
    }
    let _gone = std::fs::remove_file(beside);
    false
}

#[cfg(target_vendor = "apple")]
fn clone_to(from: &File, to: &File, beside: &Path) -> io::Result<File> {
    use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};

    /// `UF_IMMUTABLE`, `UF_APPEND`, `SF_IMMUTABLE`, `SF_APPEND`: a clone has these flags as well, and could
    /// neither be renamed nor removed.
    const LOCKED: u32 = 0x2 | 0x4 | 0x2_0000 | 0x4_0000;
    if rustix::fs::fstat(from)?.st_flags & LOCKED != 0 {
        return Err(io::ErrorKind::Unsupported.into());
    }
    let flags = rustix::fs::CloneFlags::NOFOLLOW | rustix::fs::CloneFlags::NOOWNERCOPY;
    rustix::fs::fclonefileat(from, rustix::fs::CWD, beside, flags)?;
    std::fs::set_permissions(beside, std::fs::Permissions::from_mode(0o600))?;
    let mut options = std::fs::OpenOptions::new();
    let nofollow = i32::try_from(OFlags::NOFOLLOW.bits()).unwrap_or_default();
    let file = options.read(true).write(true).custom_flags(nofollow).open(beside)?;
    let (wanted, found) = (to.metadata()?, file.metadata()?);
    if (wanted.uid(), wanted.gid()) != (found.uid(), found.gid()) {
        std::os::unix::fs::fchown(&file, Some(wanted.uid()), Some(wanted.gid()))?;
    }
    file.set_permissions(wanted.permissions())?;
    Ok(file)
}

/// No file is cloned.
#[cfg(not(target_vendor = "apple"))]
pub(crate) fn reflink(_: &File, _: &mut File, _: &Path) -> bool {
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
