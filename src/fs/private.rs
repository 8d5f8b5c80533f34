//! Files in the state directory: created private whatever the umask, and replaced atomically.

use std::{
    ffi::{CStr, OsString},
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, Read, Write},
    os::unix::{
        ffi::OsStrExt,
        fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt},
    },
    path::Path,
};

use rustix::{
    fs::{Access, AtFlags, CWD, Mode, OFlags, RenameFlags, accessat, renameat_with},
    io::Errno,
    process::{Pid, geteuid, test_kill_process},
};

use super::{Dir, PathResolver, PendingFile, hand_over, pending::beside};
use crate::{
    error::{Error, Result},
    model::{Kind, Stamp},
};

/// Creates a directory and its parents. New ones get mode 0700 whatever the umask; existing ones
/// are left as they are.
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

/// Options to open a file by its path: a symlink is not followed, and a pipe that was put there does
/// not block.
pub fn open_options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.custom_flags((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed());
    options
}

/// Opens a file for reading as [`open_options`] does, in one system call. With musl, the standard library makes two,
/// which a hook has no time for.
///
/// # Errors
///
/// Fails if it cannot be opened.
pub fn open_to_read(path: &Path) -> io::Result<File> {
    open_in_one_call(path, OFlags::RDONLY)
}

/// Opens a file for appending, as [`open_to_read`] does; if it may be made, with mode 0600.
///
/// # Errors
///
/// Fails if it cannot be opened.
pub fn open_to_append(path: &Path, makes: bool) -> io::Result<File> {
    let makes = if makes { OFlags::CREATE } else { OFlags::empty() };
    open_in_one_call(path, OFlags::WRONLY | OFlags::APPEND | makes)
}

fn open_in_one_call(path: &Path, flags: OFlags) -> io::Result<File> {
    let flags = flags | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let open = || rustix::fs::openat(CWD, path, flags, Mode::RUSR | Mode::WUSR);
    Ok(rustix::io::retry_on_intr(open)?.into())
}

/// Whether a file or directory belongs to the user we run as.
pub fn is_own(found: &fs::Metadata) -> bool {
    found.uid() == geteuid().as_raw()
}

/// Whether names can be created in `dir`, as far as permissions and the file system say.
///
/// # Errors
///
/// Fails if they cannot.
pub fn may_write(dir: &Path) -> io::Result<()> {
    Ok(accessat(CWD, dir, Access::WRITE_OK | Access::EXEC_OK, AtFlags::EACCESS)?)
}

/// Size of the file system at `path`, and what of it is free for this user, in bytes.
///
/// # Errors
///
/// Fails if the system does not tell.
pub fn space(path: &Path) -> io::Result<(u64, u64)> {
    let found = rustix::fs::statvfs(path)?;
    let bytes = |blocks: u64| blocks.saturating_mul(found.f_frsize);
    Ok((bytes(found.f_blocks), bytes(found.f_bavail)))
}

/// Whether files can be created in `dir`, or in the directory above that [`create_private_dirs`]
/// would start from. False on a read-only file system too, whatever the permissions say.
pub fn can_make_files(dir: &Path) -> bool {
    let there = dir.ancestors().find(|above| above.symlink_metadata().is_ok());
    there.is_some_and(|there| there.is_dir() && may_write(there).is_ok())
}

/// Makes a new directory accessible to its owner only.
pub fn protect_dir(path: &Path) -> io::Result<()> {
    let flags = (OFlags::DIRECTORY | OFlags::NOFOLLOW).bits().cast_signed();
    hand_over(&OpenOptions::new().read(true).custom_flags(flags).open(path)?, path);
    Ok(())
}

/// Replaces the file `path` with `bytes`, with mode 0600. Readers see the old file or the new one.
/// After a power cut it may be either, or empty, so use it only for data that can be rebuilt.
pub fn replace(path: &Path, bytes: &[u8]) -> Result<()> {
    write_beside(path, bytes, false, 0o600)
}

/// Replaces a file as [`replace`] does with what `write` writes.
pub fn replace_by(path: &Path, write: impl FnOnce(&File) -> io::Result<()>) -> Result<()> {
    write_beside_by(path, write, false, 0o600)
}

/// Overwrites the file `path` in place with what `write` writes, if it has exactly `size` bytes;
/// returns whether it had. A crash can leave half of each, so the content must carry a checksum.
pub fn overwrite_by(
    path: &Path,
    size: u64,
    write: impl FnOnce(&File) -> io::Result<()>,
) -> io::Result<bool> {
    let file = match open_options().write(true).open(path) {
        Ok(file) => file,
        Err(err) if err.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(err) => return Err(err),
    };
    let found = file.metadata()?;
    let fits = found.is_file() && found.nlink() == 1 && found.len() == size;
    if fits {
        write(&file)?;
    }
    Ok(fits)
}

/// Replaces or creates the user's file `path` with `bytes` and `permissions`; on the disk when it
/// returns.
pub fn replace_with(path: &Path, bytes: &[u8], permissions: u32) -> Result<()> {
    write_beside(path, bytes, true, permissions)?;
    path.parent().map_or(Ok(()), sync_dir)
}

/// Replaces a file as [`replace`] does; on the disk when it returns.
pub fn replace_synced(path: &Path, bytes: &[u8]) -> Result<()> {
    replace_with(path, bytes, 0o600)
}

/// Renames `from` to `to`, which must not exist.
///
/// # Errors
///
/// Fails if it does, or as [`is_unsupported`] if the file system cannot rename so.
pub fn rename_exclusive(from: &Path, to: &Path) -> io::Result<()> {
    Ok(renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE)?)
}

/// Exchanges two names in one step.
///
/// # Errors
///
/// Fails as [`is_unsupported`] if the file system cannot do that.
pub fn exchange(one: &Path, other: &Path) -> io::Result<()> {
    Ok(renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE)?)
}

/// Whether an error means that a file system, or the system, lacks an operation.
pub fn is_unsupported(err: &io::Error) -> bool {
    matches!(Errno::from_io_error(err), Some(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP))
}

/// Whether an error means that nothing is at a path, or nothing that can be reached.
pub fn is_gone(err: &io::Error) -> bool {
    matches!(Errno::from_io_error(err), Some(Errno::NOENT | Errno::NOTDIR | Errno::LOOP))
}

/// Whether an error means that this process or the system ran out of descriptors or memory. It says
/// nothing about the file.
pub fn is_short_of_means(err: &io::Error) -> bool {
    let means = [Errno::MFILE, Errno::NFILE, Errno::NOMEM, Errno::INTR];
    Errno::from_io_error(err).is_some_and(|errno| means.contains(&errno))
}

/// Removes a directory of ours with everything in it, following no symlink. A missing one is not an
/// error.
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

/// Removes a file; returns whether there was one.
pub fn remove_if_there(path: &Path) -> Result<bool> {
    match fs::remove_file(path) {
        Ok(()) => Ok(true),
        Err(err) if is_absent(&err) => Ok(false),
        Err(err) => Err(Error::io("remove", path)(err)),
    }
}

/// The names in a directory of ours, in no order; none if there is no directory.
pub fn list_names(path: &Path) -> Result<Vec<OsString>> {
    let names = fs::read_dir(path).and_then(|all| all.map(|it| Ok(it?.file_name())).collect());
    match names {
        Err(err) if is_absent(&err) => Ok(Vec::new()),
        names => names.map_err(Error::io("list", path)),
    }
}

/// Whether an error means that there is nothing of that name, or no directory to have it.
pub fn is_absent(err: &io::Error) -> bool {
    matches!(err.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// Whether something other than a regular file occupies the path of one of our files.
pub fn is_in_the_way(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| !found.is_file())
}

/// Removes something that occupies the path of one of our files, and says what it did. A directory
/// that is not empty is renamed instead.
///
/// # Errors
///
/// Fails if it could not be removed or renamed.
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

/// Renames something that occupies the path of one of our files, and deletes nothing. A process that does the same
/// at this moment may have made the file already; then that stays.
///
/// # Errors
///
/// Fails if it cannot be renamed.
pub fn set_aside(path: &Path) -> Result<()> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    for number in 1..ASIDE_MAX {
        let aside = path.with_file_name(format!("{name}.aside-{number}"));
        match rename_exclusive(path, &aside) {
            Err(err) if err.kind() == io::ErrorKind::AlreadyExists => (),
            Err(err) if err.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(err) => return Err(Error::io("rename", path)(err)),
            Ok(()) if is_in_the_way(&aside) => return Ok(()),
            Ok(()) => return rename_exclusive(&aside, path).map_err(Error::io("rename", &aside)),
        }
    }
    Err(Error::io("rename", path)(io::ErrorKind::AlreadyExists.into()))
}

/// More than a person leaves in the way.
const ASIDE_MAX: u32 = 1000;

/// Syncs a directory, so that the names in it survive a power cut.
pub fn sync_dir(path: &Path) -> Result<()> {
    File::open(path).and_then(|dir| dir.sync_all()).map_err(Error::io("sync", path))
}

fn write_beside(path: &Path, bytes: &[u8], sync: bool, permissions: u32) -> Result<()> {
    write_beside_by(path, |mut file| file.write_all(bytes), sync, permissions)
}

fn write_beside_by(
    path: &Path,
    write: impl FnOnce(&File) -> io::Result<()>,
    sync: bool,
    permissions: u32,
) -> Result<()> {
    let replace = || {
        let new = PendingFile::create(beside(path), path, permissions)?;
        write(new.file())?;
        if sync {
            new.file().sync_data()?;
        }
        crate::crash::point("replace-file");
        new.replace()
    };
    let written = replace();
    crate::crash::point("replaced-file");
    written.map_err(Error::io("write", path))
}

/// Removes the temporary files that killed processes left next to `path`.
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
        // Files of a running process stay, even if it only reuses the process id.
        if process.is_some_and(|process| test_kill_process(process).is_err()) {
            let _next_time = fs::remove_file(entry.path());
        }
    }
}

/// Reads a small file that another program may have put there: a regular file of at most `size_max`
/// bytes, without blocking on a pipe. `None` if it does not exist.
///
/// # Errors
///
/// Fails if something else is there, or if it cannot be read.
pub fn read_small(path: &Path, size_max: u64) -> Result<Option<Vec<u8>>> {
    match read_checked(path, size_max) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(err) if err.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(err) => Err(Error::io("read", path)(err)),
    }
}

/// Whether an unsynced file of ours lost its content in a power cut: it is empty or all zeros, and
/// counts as missing.
pub fn is_lost(bytes: &[u8]) -> bool {
    bytes.iter().all(|byte| *byte == 0)
}

/// Reads at most the first `size_max` bytes of a regular file and ignores the rest.
///
/// # Errors
///
/// Fails if the file is missing or cannot be read.
pub fn read_start(path: &Path, size_max: usize) -> io::Result<Vec<u8>> {
    let (file, stamp) = open_regular(path)?;
    let size = usize::try_from(stamp.size).unwrap_or(size_max).min(size_max);
    let mut bytes = Vec::with_capacity(size_max);
    loop {
        let count = rustix::io::retry_on_intr(|| {
            rustix::io::read(&file, rustix::buffer::spare_capacity(&mut bytes))
        })?;
        if count == 0 || bytes.len() >= size {
            return Ok(bytes);
        }
    }
}

/// A small file of another program: found, but not read yet.
#[derive(Debug)]
pub enum Small {
    /// An open file; its own name is not a symlink.
    Open(File),
    /// A symlink, or something that could not be opened; reading it will tell.
    Link,
}

impl Small {
    /// Opens what is at `path`; `None` if nothing is, not even a dangling symlink.
    pub fn open(path: &Path, real: &PathResolver) -> Option<Self> {
        match real.open(path, nonblocking() | OFlags::NOFOLLOW, Mode::empty()) {
            Ok(file) => Some(Self::Open(file)),
            Err(err) if err.kind() == io::ErrorKind::NotFound => None,
            Err(_) => Some(Self::Link),
        }
    }

    /// Whether its own name may be a symlink.
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

/// Flags for reading that never block on a pipe.
fn nonblocking() -> OFlags {
    OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY
}

/// Opens a regular file for reading, without blocking on a pipe.
///
/// # Errors
///
/// Fails if it is missing or not a regular file.
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

impl Dir {
    /// Reads the regular file `name` of at most `size_max` bytes; `None` if there is nothing. A symlink is an
    /// error.
    pub fn read_small(&self, name: &CStr, size_max: u64) -> io::Result<Option<Vec<u8>>> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        match rustix::fs::openat(&self.0, name, flags | OFlags::NOCTTY, Mode::empty()) {
            Ok(file) => read_regular(file.into(), size_max).map(Some),
            Err(Errno::NOENT) => Ok(None),
            Err(err) => Err(err.into()),
        }
    }
}

fn read_regular(file: File, size_max: u64) -> io::Result<Vec<u8>> {
    let stamp = regular(&file)?;
    if stamp.size > size_max {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, "larger than such a file can be"));
    }
    let size = usize::try_from(stamp.size).unwrap_or(0);
    // One byte more than the size: a read that returns exactly the size is then the end of the
    // file.
    let mut bytes = Vec::with_capacity(size + 1);
    let count = rustix::io::read(&file, rustix::buffer::spare_capacity(&mut bytes));
    if count == Ok(size) {
        return Ok(bytes);
    }
    // The file changed meanwhile, or is a kernel file without a size.
    let rest = (size_max + 1).saturating_sub(bytes.len() as u64);
    file.take(rest).read_to_end(&mut bytes)?;
    Ok(bytes)
}
