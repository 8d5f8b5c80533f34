//! Durable creation of files in an object directory: under a temporary name that git's own gc
//! cleans up, synced, then renamed.

use std::{
    fs::{self, File, OpenOptions},
    io,
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    sync::atomic::{AtomicU32, Ordering},
};

use crate::{
    error::Error,
    fs::{create_private_dirs, hand_over},
};

/// A file that is removed unless it is renamed.
pub(in crate::store) struct Temporary(Option<PathBuf>);

impl Temporary {
    /// Creates a file in `dir`, private to its owner and read-only once it is closed.
    pub(in crate::store) fn create(dir: &Path, prefix: &str) -> io::Result<(Self, File)> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        loop {
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let path = dir.join(format!("{prefix}{}-{number}", std::process::id()));
            match OpenOptions::new().read(true).write(true).create_new(true).mode(0o400).open(&path)
            {
                Ok(file) => {
                    let temporary = Self(Some(path.clone()));
                    hand_over(&file, &path);
                    crate::fs::set_permissions(&file, 0o400)?;
                    return Ok((temporary, file));
                }
                // A killed process with the same id left it.
                Err(err) if err.kind() == io::ErrorKind::AlreadyExists => (),
                Err(err) => return Err(err),
            }
        }
    }

    /// Renames the file, unless the name is taken: the same object exists then.
    pub(in crate::store) fn rename(mut self, to: &Path) -> io::Result<()> {
        if fs::symlink_metadata(to).is_ok() {
            return Ok(());
        }
        if let Some(path) = &self.0 {
            fs::rename(path, to)?;
        }
        self.0 = None;
        Ok(())
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if let Some(path) = &self.0 {
            // If it cannot be removed, maintenance will do it.
            let _swept_later = fs::remove_file(path);
        }
    }
}

/// The subdirectory `name` of the object directory; created if missing.
pub(in crate::store) fn subdir(objects: &Path, name: &str) -> io::Result<PathBuf> {
    let path = objects.join(name);
    match create_private_dirs(&path) {
        Ok(()) => Ok(path),
        Err(Error::Io { source, .. }) => Err(source),
        Err(other) => Err(io::Error::other(other.to_string())),
    }
}

/// Syncs `dir`, so that renames in it are durable.
pub(in crate::store) fn durable_rename(dir: &Path) -> io::Result<()> {
    File::open(dir)?.sync_all()
}
