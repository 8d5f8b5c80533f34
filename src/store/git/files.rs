//! Files among a repository's objects: written under a temporary name that git's own gc sweeps,
//! made durable, then given their name.

use std::{
    fs::{self, DirBuilder, File, OpenOptions},
    io,
    os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
    sync::atomic::{AtomicU32, Ordering},
};

use rustix::fs::Mode;

/// A file that is removed unless it gets its name.
pub(super) struct Temporary(At);

enum At {
    /// Under a name that git's gc knows for a temporary one.
    Path(PathBuf),
    /// Nowhere yet; only this descriptor has it.
    Unseen(File),
    /// Under its own name.
    Done,
}

impl Temporary {
    /// Makes one in `dir`, readable by whoever may list the directory, and writable by nobody
    /// once it is closed, as git's own are.
    pub(super) fn create(dir: &Path, prefix: &str) -> io::Result<(Self, File)> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let readable = fs::metadata(dir)?.permissions().mode() & 0o444;
        loop {
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let path = dir.join(format!("{prefix}turnback-{}-{number}", std::process::id()));
            match OpenOptions::new().read(true).write(true).create_new(true).mode(0o400).open(&path)
            {
                Ok(file) => {
                    let temporary = Self(At::Path(path));
                    rustix::fs::fchmod(&file, Mode::from_raw_mode(readable | 0o400))?;
                    return Ok((temporary, file));
                }
                // Left by a killed process of the same number.
                Err(err) if err.kind() == io::ErrorKind::AlreadyExists => (),
                Err(err) => return Err(err),
            }
        }
    }

    /// Makes one as [`Temporary::create`] does, or, if it is to be `unseen`, one without a name
    /// where there can be such a thing: a `git gc --prune=now` removes temporary files, too.
    pub(super) fn create_as(dir: &Path, prefix: &str, unseen: bool) -> io::Result<(Self, File)> {
        if unseen && let Some(file) = crate::fs::create_unnamed(dir) {
            let readable = fs::metadata(dir)?.permissions().mode() & 0o444;
            rustix::fs::fchmod(&file, Mode::from_raw_mode(readable | 0o400))?;
            return Ok((Self(At::Unseen(file.try_clone()?)), file));
        }
        Self::create(dir, prefix)
    }

    /// Gives it its name, unless that is taken: the same object is there already.
    pub(super) fn rename(mut self, to: &Path) -> io::Result<()> {
        if fs::symlink_metadata(to).is_ok() {
            return Ok(());
        }
        match &self.0 {
            At::Path(path) => fs::rename(path, to)?,
            At::Unseen(file) => crate::fs::name_unnamed(file, to)?,
            At::Done => (),
        }
        self.0 = At::Done;
        Ok(())
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if let At::Path(path) = &self.0 {
            // Git's gc takes what we cannot.
            let _swept_later = fs::remove_file(path);
        }
    }
}

/// The directory `name` in the object directory, made with the same permissions if it is missing.
pub(super) fn subdir(objects: &Path, name: &str) -> io::Result<PathBuf> {
    let path = objects.join(name);
    if !path.is_dir() {
        let mode = fs::metadata(objects)?.permissions().mode() & 0o7777;
        match DirBuilder::new().mode(mode).create(&path) {
            Ok(()) => fs::set_permissions(&path, fs::Permissions::from_mode(mode))?,
            Err(err) if err.kind() == io::ErrorKind::AlreadyExists => (),
            Err(err) => return Err(err),
        }
    }
    Ok(path)
}

/// Puts the names in `dir` on the disk.
pub(super) fn durable_rename(dir: &Path) -> io::Result<()> {
    File::open(dir)?.sync_all()
}
