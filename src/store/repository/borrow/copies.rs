//! Copies object files, as reflinks where the file system has them. A copy gets a temporary name
//! first, and its own when it is on the disk.

use std::{
    fs::{self, File, OpenOptions},
    io, mem,
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

use crate::fs::{all_at_once, hand_over, open_options, reflink};

/// A copy under its temporary name, which is removed on drop.
#[derive(Debug)]
pub(super) struct Unnamed {
    file: File,
    beside: PathBuf,
    to: PathBuf,
}

impl Drop for Unnamed {
    fn drop(&mut self) {
        if !self.beside.as_os_str().is_empty() {
            let _gone = fs::remove_file(&self.beside);
        }
    }
}

impl Unnamed {
    /// An empty file beside `to`.
    fn create(to: &Path) -> io::Result<Self> {
        let mut beside = to.as_os_str().to_owned();
        beside.push(format!(".tmp-{}-0", std::process::id()));
        let beside = PathBuf::from(beside);
        let _left_by_a_killed_process = fs::remove_file(&beside);
        let file = OpenOptions::new().write(true).create_new(true).mode(0o400).open(&beside)?;
        hand_over(&file, &beside);
        Ok(Self { file, beside, to: to.to_owned() })
    }

    /// Makes it a clone of `source`, if the file system can.
    fn is_clone_of(&mut self, source: &File) -> bool {
        reflink(source, &mut self.file, &self.beside)
    }
}

/// Syncs copies at the same time, and then gives them their names, in this order.
pub(super) fn give_names(copies: Vec<Unnamed>) -> io::Result<()> {
    let files: Vec<&File> = copies.iter().map(|copy| &copy.file).collect();
    all_at_once(&files, |file| file.sync_data())?;
    for mut copy in copies {
        fs::rename(&copy.beside, &copy.to)?;
        mem::take(&mut copy.beside);
    }
    Ok(())
}

/// A reflink of `from`, to be called `to`; `None` if the file system does not support that.
pub(super) fn share(from: &Path, to: &Path) -> io::Result<Option<Unnamed>> {
    let source = open(from)?;
    let mut copy = Unnamed::create(to)?;
    Ok(copy.is_clone_of(&source).then_some(copy))
}

/// A copy of `from`, to be called `to`; a reflink where the file system supports that.
pub(super) fn copy(from: &Path, to: &Path) -> io::Result<Unnamed> {
    let mut source = open(from)?;
    let mut copy = Unnamed::create(to)?;
    if !copy.is_clone_of(&source) {
        io::copy(&mut source, &mut copy.file)?;
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
