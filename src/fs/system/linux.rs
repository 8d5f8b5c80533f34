//! Linux.

use std::{
    ffi::CStr,
    fs::File,
    io,
    mem::MaybeUninit,
    os::{
        fd::{AsFd, AsRawFd, OwnedFd},
        unix::{ffi::OsStrExt, fs::MetadataExt},
    },
    path::{Path, PathBuf},
};

use rustix::{
    fs::{
        AtFlags, CWD, FileType, Mode, OFlags, RawDir, ResolveFlags, Stat, StatxFlags, makedev,
        mknodat, openat, openat2, readlinkat, statx,
    },
    io::Errno,
};

use super::{Nature, nanoseconds};

/// Where Visual Studio Code keeps its user's settings, below the home directory.
pub(crate) const VSCODE_SETTINGS: &str = ".config/Code/User/settings.json";

/// Opens a directory as a base for other calls: needs no read permission. A symlink is an error.
pub(in crate::fs) fn path_only() -> OFlags {
    OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC
}

/// The same for a path that is known to have no symlinks in it.
pub(in crate::fs) fn path_only_resolved() -> OFlags {
    OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC
}

/// Permissions for a system call.
pub(in crate::fs) fn mode_of(permissions: u32) -> Mode {
    Mode::from_raw_mode(permissions)
}

/// The device a file is on.
pub(in crate::fs) fn device_of(stat: &Stat) -> u64 {
    stat.st_dev
}

/// The process that holds a lock on an open file, as far as the system tells.
pub(in crate::fs) fn lock_holder(file: &File) -> Option<u32> {
    let found = rustix::fs::fstat(file).ok()?;
    let major = rustix::fs::major(found.st_dev);
    let minor = rustix::fs::minor(found.st_dev);
    let place = format!("{major:02x}:{minor:02x}:{}", found.st_ino);
    let locks = std::fs::read_to_string("/proc/locks").ok()?;
    for line in locks.lines() {
        // 1: FLOCK  ADVISORY  WRITE 4711 fd:00:1234 0 EOF
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        let Some(at) = words.iter().position(|word| *word == place) else { continue };
        let pid = words.get(at.wrapping_sub(1)).and_then(|word| word.parse().ok());
        // A process outside of our namespace has the number 0, and one that waits is no holder.
        if let Some(pid) = pid.filter(|pid| *pid > 0 && !words.contains(&"->")) {
            return Some(pid);
        }
    }
    None
}

/// Lists the names in a directory, with what the listing says they are.
pub(in crate::fs) fn list(dir: &OwnedFd, mut each: impl FnMut(&CStr, FileType)) -> io::Result<()> {
    let mut buffer = [MaybeUninit::<u8>::uninit(); 16 << 10];
    let mut entries = RawDir::new(dir, &mut buffer);
    while let Some(entry) = entries.next() {
        let entry = entry?;
        each(entry.file_name(), entry.file_type());
    }
    Ok(())
}

/// Creates a pipe, socket or device with mode 0600.
pub(in crate::fs) fn make_special(
    dir: &OwnedFd,
    name: &CStr,
    kind: FileType,
    device: u64,
) -> io::Result<()> {
    Ok(mknodat(dir, name, kind, mode_of(0o600), device)?)
}

/// Whether an attribute of a file is its user's, as its access list is. Others belong to the system.
pub(in crate::fs) fn is_users_attribute(name: &[u8]) -> bool {
    name.starts_with(b"user.") || name == b"system.posix_acl_access"
}

/// Whether one call waits for all data of a file system.
pub(crate) const SYNCS_FILE_SYSTEMS: bool = true;

/// Waits until all data of the file system of `dir` is on the disk.
pub(in crate::fs) fn sync_file_system(dir: &OwnedFd, _deep: bool) -> io::Result<()> {
    Ok(rustix::fs::syncfs(dir)?)
}

/// Opens `path` if no component of it is a symlink.
pub(in crate::fs) fn open_plain(path: &Path, flags: OFlags, mode: Mode) -> Result<File, Errno> {
    if flags.contains(OFlags::CREATE) {
        return openat2(CWD, path, flags, mode, ResolveFlags::NO_SYMLINKS).map(File::from);
    }
    // This costs one call more than `openat2`, but tracers do not decode the flags of that: they would count
    // it as a write.
    let file = File::from(openat(CWD, path, flags, mode)?);
    match readlinkat(CWD, path_of(&file), Vec::new()) {
        Ok(resolved) if resolved.as_bytes() == path.as_os_str().as_bytes() => Ok(file),
        Ok(_) => Err(Errno::LOOP),
        // Without `/proc` the kernel must follow the path again. Where it cannot do that either, the
        // error says no more than that this is no proof: a file that exists must not pass for missing.
        Err(_) => openat2(CWD, path, flags, mode, ResolveFlags::NO_SYMLINKS)
            .map(File::from)
            .map_err(|_| Errno::LOOP),
    }
}

/// The name under which the system shows the path of an open file.
fn path_of(file: &File) -> PathBuf {
    format!("/proc/self/fd/{}", file.as_raw_fd()).into()
}

/// Looks at `path`, through a symlink if `follows`.
pub(crate) fn nature(path: &Path, follows: bool) -> io::Result<Nature> {
    let flags = if follows { AtFlags::empty() } else { AtFlags::SYMLINK_NOFOLLOW };
    // Not `Metadata::created`: std does not use statx with musl, which releases link to.
    match statx(CWD, path, flags, StatxFlags::BASIC_STATS | StatxFlags::BTIME) {
        Ok(found) => {
            let (birth, written) = (found.stx_btime, found.stx_mtime);
            let knows = found.stx_mask & StatxFlags::BTIME.bits() != 0 && birth.tv_sec > 0;
            Ok(Nature {
                device: makedev(found.stx_dev_major, found.stx_dev_minor),
                inode: found.stx_ino,
                birth_ns: knows.then(|| nanoseconds(birth.tv_sec, birth.tv_nsec.into())),
                mtime_ns: nanoseconds(written.tv_sec, written.tv_nsec.into()),
            })
        }
        // An old kernel, or a sandbox that forbids new system calls.
        Err(Errno::NOSYS | Errno::PERM) => {
            let found = if follows { path.metadata()? } else { path.symlink_metadata()? };
            Ok(Nature {
                device: found.dev(),
                inode: found.ino(),
                birth_ns: None,
                mtime_ns: nanoseconds(found.mtime(), found.mtime_nsec()),
            })
        }
        Err(err) => Err(err.into()),
    }
}

/// Clones a file so that both share their blocks until one is written, where the file system can. `to` is the
/// empty file at `path`.
pub(crate) fn reflink(from: &File, to: &mut File, _path: &Path) -> bool {
    rustix::fs::ioctl_ficlone(to.as_fd(), from.as_fd()).is_ok()
}

/// Whether a file system shows the kernel and its devices, and not files.
pub(crate) fn is_pseudo(path: &Path) -> bool {
    /// proc, sysfs, debugfs, tracefs, cgroup, cgroup2, devpts, securityfs, pstore, bpf.
    const MAGICS: [u64; 10] = [
        0x9fa0, 0x6265_6572, 0x6462_6720, 0x7472_6163, 0x0027_e0eb, 0x6367_7270, 0x1cd1,
        0x7363_6673, 0x6165_676c, 0xcafe_4a11,
    ];
    magic(path).is_some_and(|magic| MAGICS.contains(&magic))
}

/// Whether a path is on overlayfs, which copies a file that gets a second name.
pub(crate) fn is_overlay(path: &Path) -> bool {
    magic(path) == Some(0x794c_7630)
}

fn magic(path: &Path) -> Option<u64> {
    rustix::fs::statfs(path).ok().map(|found| found.f_type.cast_unsigned())
}

/// How many cores this process may run on.
pub(crate) fn cores() -> usize {
    rustix::thread::sched_getaffinity(None)
        .map_or(1, |cores| usize::try_from(cores.count()).unwrap_or(1))
}
