//! Files of our own: made private whatever the umask, replaced whole or not at all.

use std::{
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, Read, Write},
    os::unix::{
        ffi::OsStrExt,
        fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt, PermissionsExt},
    },
    path::{Path, PathBuf},
    sync::atomic::{AtomicU32, Ordering},
};

use rustix::{
    fs::{Access, AtFlags, CWD, Mode, OFlags, RenameFlags, accessat, renameat_with},
    io::Errno,
    process::{Pid, test_kill_process},
};

use super::PathResolver;
use super::hand_over;
use crate::{
    error::{Error, Result},
    model::{Kind, Stamp},
};

/// Makes a directory and its parents. Those it makes have mode 0700, whatever the umask; those
/// that exist are left as they are.
pub fn create_private_dirs(path: &Path) -> Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    if let Some(parent) = path.parent() {
        create_private_dirs(parent)?;
    }
    match DirBuilder::new().mode(0o700).create(path) {
        Ok(()) => protect_dir(path).map_err(Error::io("protect", path)),
        Err(err) if err.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
        Err(err) => Err(Error::io("make the directory", path)(err)),
    }
}

/// Whether files can be made in `dir`, which [`create_private_dirs`] would make if it is not there.
/// Also false on a read-only file system, where the permissions alone would allow it.
pub fn can_make_files(dir: &Path) -> bool {
    let there = dir.ancestors().find(|above| above.symlink_metadata().is_ok());
    there.is_some_and(|there| {
        let wanted = Access::WRITE_OK | Access::EXEC_OK;
        there.is_dir() && accessat(CWD, there, wanted, AtFlags::EACCESS).is_ok()
    })
}

/// Gives a directory that was just made to its owner alone.
pub fn protect_dir(path: &Path) -> io::Result<()> {
    let flags = (OFlags::DIRECTORY | OFlags::NOFOLLOW).bits().cast_signed();
    // One that an odd umask has closed cannot be opened yet.
    fs::set_permissions(path, fs::Permissions::from_mode(0o700))?;
    hand_over(&OpenOptions::new().read(true).custom_flags(flags).open(path)?, path);
    Ok(())
}

/// Replaces the file `path` with `bytes`, readable by its owner alone. A reader sees the old file
/// or the new one. After a power cut it may be either, or empty: for what can be made again.
pub fn replace(path: &Path, bytes: &[u8]) -> Result<()> {
    write_beside(path, bytes, false, 0o600)
}

/// Writes `bytes` over those of the file `path` of ours, if it has just as many; tells whether it
/// had. Not for what must never be half of one and half of the other: a checksum has to tell.
pub fn overwrite(path: &Path, bytes: &[u8]) -> io::Result<bool> {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
    let file = match OpenOptions::new().write(true).custom_flags(flags).open(path) {
        Ok(file) => file,
        Err(err) if err.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(err) => return Err(err),
    };
    let found = file.metadata()?;
    let fits = found.is_file() && found.nlink() == 1 && found.len() == bytes.len() as u64;
    if fits {
        file.write_all_at(bytes, 0)?;
    }
    Ok(fits)
}

/// Replaces the file `path`, which is not ours, with `bytes` and `permissions`, or makes it; on the
/// disk when it returns.
pub fn replace_with(path: &Path, bytes: &[u8], permissions: u32) -> Result<()> {
    write_beside(path, bytes, true, permissions)?;
    path.parent().map_or(Ok(()), sync_dir)
}

/// As [`replace`], and on the disk when it returns.
pub fn replace_synced(path: &Path, bytes: &[u8]) -> Result<()> {
    write_beside(path, bytes, true, 0o600)?;
    path.parent().map_or(Ok(()), sync_dir)
}

/// Makes the file `path`, which must not exist, of `bytes`; on the disk when it returns. No
/// process sees half of it.
pub fn create_new_synced(path: &Path, bytes: &[u8]) -> Result<()> {
    let beside = beside(path);
    let made = write_new(&beside, bytes, true, 0o600).and_then(|()| rename_new(&beside, path));
    if made.is_err() {
        // Ours alone: what is at `path` was never touched.
        let _gone = fs::remove_file(&beside);
    }
    made.map_err(Error::io("make", path))?;
    path.parent().map_or(Ok(()), sync_dir)
}

fn rename_new(from: &Path, to: &Path) -> io::Result<()> {
    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        // The file system has no such rename, but perhaps links.
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {
            fs::hard_link(from, to).and_then(|()| fs::remove_file(from))
        }
        renamed => Ok(renamed?),
    }
}

/// Removes a directory of ours and everything in it, following nothing. One that is not there is
/// no error.
pub fn remove_tree(path: &Path) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Err(err) if err.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(err) => return Err(err),
        Ok(data) if !data.is_dir() => return fs::remove_file(path),
        Ok(_) => (),
    }
    let entries = match fs::read_dir(path) {
        Err(err) if err.kind() == io::ErrorKind::PermissionDenied => {
            fs::set_permissions(path, fs::Permissions::from_mode(0o700))?;
            fs::read_dir(path)?
        }
        entries => entries?,
    };
    for entry in entries {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            remove_tree(&entry.path())?;
        } else {
            fs::remove_file(entry.path())?;
        }
    }
    fs::remove_dir(path)
}

/// Whether something is at the place of a file of ours that is no regular file.
pub fn is_in_the_way(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| !found.is_file())
}

/// Takes what is no regular file away from the place of a file of ours, and says what it did. A
/// directory with something in it gets another name.
///
/// # Errors
///
/// Fails if it is still there.
pub fn clear_away(path: &Path) -> Result<String> {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let is_dir = fs::symlink_metadata(path).map_err(Error::io("look at", path))?.is_dir();
    let removed = if is_dir { fs::remove_dir(path) } else { fs::remove_file(path) };
    match removed {
        Ok(()) => Ok(format!("removed {name}, which was not a regular file")),
        Err(err) if err.kind() == io::ErrorKind::DirectoryNotEmpty => {
            let aside = (1..u32::MAX)
                .map(|number| path.with_file_name(format!("{name}.aside-{number}")))
                .find(|aside| aside.symlink_metadata().is_err())
                .expect("there are more numbers than files");
            fs::rename(path, &aside).map_err(Error::io("rename", path))?;
            let aside = aside.file_name().unwrap_or_default().to_string_lossy().into_owned();
            Ok(format!("renamed the directory {name} to {aside}"))
        }
        Err(err) => Err(Error::io("remove", path)(err)),
    }
}

/// Puts the names in a directory on the disk.
pub fn sync_dir(path: &Path) -> Result<()> {
    File::open(path).and_then(|dir| dir.sync_all()).map_err(Error::io("sync", path))
}

fn write_beside(path: &Path, bytes: &[u8], sync: bool, permissions: u32) -> Result<()> {
    let beside = beside(path);
    let written = write_new(&beside, bytes, sync, permissions).and_then(|()| {
        crate::crash::point("replace-file");
        fs::rename(&beside, path)
    });
    crate::crash::point("replaced-file");
    if written.is_err() {
        // Ours alone, and only half of something.
        let _gone = fs::remove_file(&beside);
    }
    written.map_err(Error::io("write", path))
}

/// A name in the same directory that no other process uses.
fn beside(path: &Path) -> PathBuf {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".tmp-{}-{number}", std::process::id()));
    path.with_file_name(name)
}

/// Removes what killed processes have left of a [`replace`] of `path` beside it.
pub fn remove_left_beside(path: &Path) {
    let (Some(dir), Some(name)) = (path.parent(), path.file_name()) else { return };
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let found = entry.file_name();
        let rest = found.as_bytes().strip_prefix(name.as_bytes());
        let numbers = rest.and_then(|rest| str::from_utf8(rest.strip_prefix(b".tmp-")?).ok());
        let process = numbers.and_then(|numbers| {
            let (process, number) = numbers.split_once('-')?;
            number.parse::<u32>().ok()?;
            Pid::from_raw(process.parse().ok()?)
        });
        // Files of a running process stay, also if another process has that number by now.
        if process.is_some_and(|process| test_kill_process(process).is_err()) {
            let _next_time = fs::remove_file(entry.path());
        }
    }
}

fn write_new(path: &Path, bytes: &[u8], sync: bool, permissions: u32) -> io::Result<()> {
    // A killed process of the same number may have left one.
    let _gone = fs::remove_file(path);
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    hand_over(&file, path);
    rustix::fs::fchmod(&file, Mode::from_raw_mode(permissions))?;
    file.write_all(bytes)?;
    if sync {
        file.sync_data()?;
    }
    Ok(())
}

/// Reads a small file of configuration that someone else may have put there: a regular file of at
/// most `size_max` bytes, never waiting for a pipe. `None` if there is none.
///
/// # Errors
///
/// Anything else that is there.
pub fn read_small(path: &Path, size_max: u64) -> Result<Option<Vec<u8>>> {
    match read_checked(path, size_max) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(err) if err.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(err) => Err(Error::io("read", path)(err)),
    }
}

/// Whether a file of ours that was not synced lost what was in it to a power cut: it is empty then,
/// or zeros, and as good as not there.
pub fn is_lost(bytes: &[u8]) -> bool {
    bytes.iter().all(|byte| *byte == 0)
}

/// Reads at most the first `size_max` bytes of a regular file, whatever comes after them.
///
/// # Errors
///
/// Fails if there is none, or if it cannot be read.
pub fn read_start(path: &Path, size_max: usize) -> io::Result<Vec<u8>> {
    let (file, _) = open_regular(path)?;
    let mut bytes = Vec::with_capacity(size_max);
    file.take(size_max as u64).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// A small file that is not ours, found and not read yet.
#[derive(Debug)]
pub enum Small {
    /// Open; its own name is no link.
    Open(File),
    /// A link, or what cannot be opened: reading it will tell.
    Link,
}

impl Small {
    /// Opens what is at `path`; `None` if nothing is, not even a link.
    pub fn open(path: &Path, real: &PathResolver) -> Option<Self> {
        match real.open(path, nonblocking() | OFlags::NOFOLLOW, Mode::empty()) {
            Ok(file) => Some(Self::Open(file)),
            Err(err) if err.kind() == io::ErrorKind::NotFound => None,
            Err(_) => Some(Self::Link),
        }
    }

    /// Whether its own name may be a link.
    pub fn is_link(&self) -> bool {
        matches!(self, Self::Link)
    }

    /// As [`read_small`]; `path` is where it was found.
    ///
    /// # Errors
    ///
    /// As [`read_small`].
    pub fn read(self, path: &Path, size_max: u64) -> Result<Option<Vec<u8>>> {
        match self {
            Self::Open(file) => {
                read_regular(file, size_max).map(Some).map_err(Error::io("read", path))
            }
            Self::Link => read_small(path, size_max),
        }
    }
}

/// Never waits for a pipe.
fn nonblocking() -> OFlags {
    OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY
}

/// Opens a regular file to read it, never waiting for a pipe.
///
/// # Errors
///
/// Fails if there is none, or something else.
pub fn open_regular(path: &Path) -> io::Result<(File, Stamp)> {
    let flags = nonblocking().bits().cast_signed();
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    let stamp = regular(&file)?;
    Ok((file, stamp))
}

fn regular(file: &File) -> io::Result<Stamp> {
    let stamp = super::dir::stamp_of(file)?;
    if stamp.kind() != Some(Kind::File) {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
    }
    Ok(stamp)
}

fn read_checked(path: &Path, size_max: u64) -> io::Result<Vec<u8>> {
    let flags = nonblocking().bits().cast_signed();
    read_regular(OpenOptions::new().read(true).custom_flags(flags).open(path)?, size_max)
}

fn read_regular(file: File, size_max: u64) -> io::Result<Vec<u8>> {
    let stamp = regular(&file)?;
    if stamp.size > size_max {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, "larger than such a file can be"));
    }
    let size = usize::try_from(stamp.size).unwrap_or(0);
    // Room for all of it and a byte more: less than that is all there is.
    let mut bytes = Vec::with_capacity(size + 1);
    let count = rustix::io::read(&file, rustix::buffer::spare_capacity(&mut bytes));
    if count == Ok(size) {
        return Ok(bytes);
    }
    // It has changed meanwhile, or is one of the kernel's.
    let rest = (size_max + 1).saturating_sub(bytes.len() as u64);
    file.take(rest).read_to_end(&mut bytes)?;
    Ok(bytes)
}
