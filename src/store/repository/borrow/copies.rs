//! Copies object files, as reflinks where the file system has them. A copy gets a temporary name
//! first, and its own when it is on the disk.

use std::{fs::File, io, path::Path};

use crate::fs::{PendingFile, all_at_once, open_options};

/// A file for a copy to be called `to`.
fn create(to: &Path) -> io::Result<PendingFile> {
    let mut beside = to.as_os_str().to_owned();
    beside.push(format!(".tmp-{}-0", std::process::id()));
    PendingFile::create(beside.into(), to, 0o400)
}

/// Syncs copies at the same time, and then gives them their names, in this order.
pub(super) fn give_names(copies: Vec<PendingFile>) -> io::Result<()> {
    all_at_once(&copies, |copy| copy.file().sync_data())?;
    copies.into_iter().try_for_each(PendingFile::replace)
}

/// A reflink of `from`, to be called `to`; `None` if the file system does not support that.
pub(super) fn share(from: &Path, to: &Path) -> io::Result<Option<PendingFile>> {
    let source = open(from)?;
    let mut copy = create(to)?;
    Ok(copy.is_clone_of(&source).then_some(copy))
}

/// A copy of `from`, to be called `to`; a reflink where the file system supports that.
pub(super) fn copy(from: &Path, to: &Path) -> io::Result<PendingFile> {
    let mut source = open(from)?;
    let mut copy = create(to)?;
    if !copy.is_clone_of(&source) {
        io::copy(&mut source, &mut copy.file())?;
    }
    Ok(copy)
}

/// Copies a file; it is on the disk under its name when this returns.
pub(in crate::store::repository) fn copy_whole(from: &Path, to: &Path) -> io::Result<()> {
    give_names(vec![copy(from, to)?])
}

/// Opens a file that was just seen to be a regular file.
fn open(path: &Path) -> io::Result<File> {
    let file = open_options().read(true).open(path)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(io::ErrorKind::PermissionDenied.into()) }
}
