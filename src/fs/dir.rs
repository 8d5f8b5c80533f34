//! An open directory, and all operations on the names in it.
//!
//! Wraps the `*at` system calls. Nothing here follows a symlink except [`Dir::open`], which takes a
//! path that the caller trusts.

use std::{
    ffi::{CStr, CString, OsStr, OsString},
    fs::File,
    io,
    os::{fd::OwnedFd, unix::ffi::OsStrExt},
    path::Path,
};

use rustix::{
    fs::{
        AtFlags, CWD, FileType, Mode, OFlags, RenameFlags, Stat, linkat, mkdirat, openat,
        readlinkat, renameat, renameat_with, statat, symlinkat, unlinkat,
    },
    path::Arg,
};

use super::system::{self, mode_of, path_only};
use crate::model::{Kind, RelPath, Stamp};

/// A directory held open.
#[derive(Debug)]
pub struct Dir(pub(super) OwnedFd);

/// One name found by [`Dir::list`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// The name. Never `.` or `..`, never with `/` or NUL.
    pub name: CString,
    /// What the listing says it is; `None` if only a stat can tell.
    pub kind: Option<Kind>,
}

const OPEN_DIR: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

impl Dir {
    /// Opens a directory by path. Follows symlinks: only for a path that the user gave.
    pub fn open(path: &Path) -> io::Result<Self> {
        Ok(Self(openat(CWD, path, OPEN_DIR, Mode::empty())?))
    }

    /// Opens the directory `name` in this one, for listing. A symlink is an error.
    pub fn open_child(&self, name: &CStr) -> io::Result<Self> {
        Ok(Self(openat(&self.0, name, OPEN_DIR | OFlags::NOFOLLOW, Mode::empty())?))
    }

    /// Opens the directory `name` in this one as a base for other calls: needs no read permission
    /// and costs less. It cannot be listed.
    pub fn enter_child(&self, name: &CStr) -> io::Result<Self> {
        Ok(Self(openat(&self.0, name, path_only(), Mode::empty())?))
    }

    /// Opens the directory that `path` lies in, below this one, through no symlink.
    pub fn parent_of(&self, path: &RelPath) -> io::Result<Self> {
        match path.parent() {
            Some(parent) => self.enter_path(parent.as_bytes()),
            None => self.reopen(),
        }
    }

    fn enter_path(&self, path: &[u8]) -> io::Result<Self> {
        if path.split(|&byte| byte == b'/').any(|name| matches!(name, b"" | b"." | b"..")) {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a name"));
        }
        let mut dir = self.reopen()?;
        for name in path.split(|&byte| byte == b'/') {
            dir = dir.enter_child(&c_name(name)?)?;
        }
        Ok(dir)
    }

    /// Opens the same directory again, as [`Dir::enter_child`] does.
    pub fn reopen(&self) -> io::Result<Self> {
        Ok(Self(openat(&self.0, c".", path_only(), Mode::empty())?))
    }

    /// Opens the same directory again, for listing.
    pub fn listable(&self) -> io::Result<Self> {
        Ok(Self(openat(&self.0, c".", OPEN_DIR, Mode::empty())?))
    }

    /// The stamp of this directory, and the device it is on.
    pub fn stat(&self) -> io::Result<(Stamp, u64)> {
        let stat = rustix::fs::fstat(&self.0)?;
        Ok((stamp(&stat), system::device_of(&stat)))
    }

    /// The stamp of `name`. A symlink is not followed.
    pub fn stat_child(&self, name: impl Arg) -> io::Result<Stamp> {
        Ok(stamp(&statat(&self.0, name, AtFlags::SYMLINK_NOFOLLOW)?))
    }

    /// The stamp of `path` below this directory, and its number of names. A symlink is not followed.
    #[expect(clippy::allow_attributes, reason = "which casts are needless depends on the platform")]
    #[allow(
        clippy::unnecessary_cast,
        clippy::cast_lossless,
        reason = "the fields of a stat have other widths elsewhere"
    )]
    pub fn stat_child_and_links(&self, path: impl Arg) -> io::Result<(Stamp, u64)> {
        let found = statat(&self.0, path, AtFlags::SYMLINK_NOFOLLOW)?;
        Ok((stamp(&found), found.st_nlink as u64))
    }

    /// Opens the directory `path` below this one as [`Dir::enter_child`] does. Only for a directory of ours.
    pub fn enter_below(&self, path: impl Arg) -> io::Result<Self> {
        Ok(Self(openat(&self.0, path, path_only(), Mode::empty())?))
    }

    /// Opens the directory `path` below this one, for listing. Only for a directory of ours.
    pub fn open_below(&self, path: impl Arg) -> io::Result<Self> {
        Ok(Self(openat(&self.0, path, OPEN_DIR | OFlags::NOFOLLOW, Mode::empty())?))
    }

    /// Lists the names in it, in no order.
    pub fn list(&self, mut each: impl FnMut(Listed)) -> io::Result<()> {
        system::list(&self.0, |name, kind| {
            if !matches!(name.to_bytes(), b"." | b"..") {
                each(Listed { name: name.to_owned(), kind: listed_kind(kind) });
            }
        })
    }

    /// Opens `name` for reading if it is a regular file. Anything else is an error; a pipe or
    /// device does not block. The stamp is that of the open file.
    pub fn open_file(&self, name: &CStr) -> io::Result<(File, Stamp)> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = File::from(openat(&self.0, name, flags | OFlags::NOCTTY, Mode::empty())?);
        let stamp = stamp_of(&file)?;
        if stamp.kind() != Some(Kind::File) {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
        }
        Ok((file, stamp))
    }

    /// The text of the symlink `name`.
    pub fn read_link(&self, name: &CStr) -> io::Result<Vec<u8>> {
        Ok(readlinkat(&self.0, name, Vec::new())?.into_bytes())
    }

    /// Creates the file `name`, which must not exist, with mode 0600 (less if the umask removes
    /// bits). `set_permissions` sets the final mode.
    pub fn create_file(&self, name: &CStr) -> io::Result<File> {
        let flags =
            OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(openat(&self.0, name, flags, mode_of(0o600))?.into())
    }

    /// Creates the directory `name` with `permissions`, whatever the umask.
    pub fn create_dir(&self, name: &CStr, permissions: u32) -> io::Result<()> {
        mkdirat(&self.0, name, mode_of(0o700))?;
        self.set_permissions(name, Kind::Directory, permissions)
    }

    /// Creates the symlink `name` with the given target text.
    pub fn create_link(&self, name: &CStr, text: &[u8]) -> io::Result<()> {
        Ok(symlinkat(c_name(text)?, &self.0, name)?)
    }

    /// Creates the pipe, socket or device `name`.
    pub fn create_special(&self, name: &CStr, kind: Kind, device: u64) -> io::Result<()> {
        let kind = match kind {
            Kind::Fifo => FileType::Fifo,
            Kind::Socket => FileType::Socket,
            Kind::CharDevice => FileType::CharacterDevice,
            Kind::BlockDevice => FileType::BlockDevice,
            Kind::File | Kind::Link | Kind::Directory => {
                return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a special file"));
            }
        };
        system::make_special(&self.0, name, kind, device)
    }

    /// Sets the permissions of `name`, which must be of type `kind`; nothing else is followed or
    /// changed.
    pub fn set_permissions(&self, name: &CStr, kind: Kind, permissions: u32) -> io::Result<()> {
        let mode = mode_of(permissions);
        let opened = match kind {
            Kind::Link => return Ok(()),
            Kind::Directory => self.open_child(name).map(|dir| dir.0),
            Kind::File => self.open_file(name).map(|(file, _)| file.into()),
            Kind::Fifo | Kind::Socket | Kind::CharDevice | Kind::BlockDevice => {
                Err(io::ErrorKind::Unsupported.into())
            }
        };
        match opened {
            Ok(fd) => Ok(rustix::fs::fchmod(fd, mode)?),
            // It may be unreadable, or of a type that cannot be opened. The type is checked first.
            // Only the owner of this directory could swap something in between, and only one name
            // in it.
            Err(_) if self.stat_child(name)?.kind() == Some(kind) => {
                Ok(rustix::fs::chmodat(&self.0, name, mode, AtFlags::empty())?)
            }
            Err(_) => Err(io::Error::new(io::ErrorKind::InvalidInput, "its type has changed")),
        }
    }

    /// Gives the file `from` in this directory a second name, `to` in `other`. A symlink is not
    /// followed.
    pub fn link(&self, from: &CStr, other: &Self, to: &CStr) -> io::Result<()> {
        Ok(linkat(&self.0, from, &other.0, to, AtFlags::empty())?)
    }

    /// Renames `from` in this directory to `to` in `other`, replacing what is there.
    pub fn rename(&self, from: &CStr, other: &Self, to: &CStr) -> io::Result<()> {
        Ok(renameat(&self.0, from, &other.0, to)?)
    }

    /// Renames `from` to `to`, both in this directory, and fails if `to` exists.
    pub fn rename_new(&self, from: &CStr, to: &CStr) -> io::Result<()> {
        Ok(renameat_with(&self.0, from, &self.0, to, RenameFlags::NOREPLACE)?)
    }

    /// Removes the file `name`.
    pub fn remove_file(&self, name: &CStr) -> io::Result<()> {
        Ok(unlinkat(&self.0, name, AtFlags::empty())?)
    }

    /// Removes the empty directory `name`.
    pub fn remove_dir(&self, name: &CStr) -> io::Result<()> {
        Ok(unlinkat(&self.0, name, AtFlags::REMOVEDIR)?)
    }

    /// Waits until the files in this directory are on the disk; where a call can do it, all data of its
    /// file system is.
    pub fn sync_files(&self) -> io::Result<()> {
        system::sync_file_system(&self.listable()?.0, false)
    }

    /// The same for everything below it.
    pub fn sync_below(&self) -> io::Result<()> {
        system::sync_file_system(&self.listable()?.0, true)
    }

    /// Tells which directories one [`Dir::sync_files`] does for: all of a file system, or this alone.
    pub fn sync_scope(&self) -> io::Result<(u64, u64)> {
        let (stamp, device) = self.stat()?;
        Ok((device, if system::SYNCS_FILE_SYSTEMS { 0 } else { stamp.inode }))
    }
}

/// Sets the permissions of an open file, whatever the umask.
pub(crate) fn set_permissions(file: &File, permissions: u32) -> io::Result<()> {
    Ok(rustix::fs::fchmod(file, mode_of(permissions))?)
}

/// The stamp of an open file.
pub(crate) fn stamp_of(file: &File) -> io::Result<Stamp> {
    Ok(stamp(&rustix::fs::fstat(file)?))
}

/// Converts a name, or the text of a symlink, for a system call.
pub(crate) fn c_name(name: &[u8]) -> io::Result<CString> {
    CString::new(name)
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidInput, "a name with a NUL in it"))
}

/// The stamp of `path`. A symlink is not followed.
pub fn stat_path(path: &Path) -> io::Result<Stamp> {
    if path.as_os_str().as_bytes().contains(&0) {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "a name with a NUL in it"));
    }
    Ok(stamp(&statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW)?))
}

/// Whether something other than a directory is at `path`. A symlink is not followed.
pub fn is_no_directory(path: &Path) -> bool {
    stat_path(path).is_ok_and(|stamp| stamp.kind() != Some(Kind::Directory))
}

/// How many names the file at `path` has; `None` if that cannot be told. A symlink is not followed.
#[expect(clippy::allow_attributes, reason = "which casts are needless depends on the platform")]
#[allow(
    clippy::unnecessary_cast,
    clippy::cast_lossless,
    reason = "the fields of a stat have other widths elsewhere"
)]
pub fn link_count(path: &Path) -> Option<u64> {
    Some(statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW).ok()?.st_nlink as u64)
}

/// The names in the directory at `path`; none where it is no directory, or is one by a symlink.
pub fn names_in(path: &Path) -> Vec<OsString> {
    let mut names = Vec::new();
    let is_directory = stat_path(path).is_ok_and(|stamp| stamp.kind() == Some(Kind::Directory));
    let open = is_directory.then(|| Dir::open(path).and_then(|dir| dir.listable()));
    let _unread = open.map(|open| {
        open?.list(|listed| names.push(OsStr::from_bytes(listed.name.to_bytes()).to_owned()))
    });
    names
}

#[expect(clippy::allow_attributes, reason = "which casts are needless depends on the platform")]
#[allow(
    clippy::unnecessary_cast,
    clippy::cast_lossless,
    clippy::cast_sign_loss,
    clippy::cast_possible_wrap,
    reason = "the fields of a stat have other widths elsewhere"
)]
fn stamp(stat: &Stat) -> Stamp {
    let kind = Kind::of_mode(stat.st_mode as u32);
    let is_device = matches!(kind, Some(Kind::CharDevice | Kind::BlockDevice));
    let ns = |seconds: i64, rest: i64| seconds.saturating_mul(1_000_000_000).saturating_add(rest);
    Stamp {
        mtime_ns: ns(stat.st_mtime as i64, stat.st_mtime_nsec as i64),
        ctime_ns: ns(stat.st_ctime as i64, stat.st_ctime_nsec as i64),
        inode: stat.st_ino as u64,
        size: if is_device { stat.st_rdev as u64 } else { stat.st_size as u64 },
        mode: stat.st_mode as u32,
    }
}

fn listed_kind(kind: FileType) -> Option<Kind> {
    Some(match kind {
        FileType::RegularFile => Kind::File,
        FileType::Directory => Kind::Directory,
        FileType::Symlink => Kind::Link,
        FileType::Fifo => Kind::Fifo,
        FileType::Socket => Kind::Socket,
        FileType::CharacterDevice => Kind::CharDevice,
        FileType::BlockDevice => Kind::BlockDevice,
        FileType::Unknown => return None,
    })
}
