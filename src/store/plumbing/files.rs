//! Directories of objects.

use std::{
    fs::File,
    io,
    path::{Path, PathBuf},
};

use crate::{error::Error, fs::create_private_dirs};

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
