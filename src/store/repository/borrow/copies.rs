//! Copies object files: under a temporary name first, and as reflinks where the file system has them.

use std::{
    fs::{self, File, OpenOptions},
    io,
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use crate::{
    error::{Error, Result},
    fs::{hand_over, open_options, protect_dir, reflink},
};

pub(super) fn make_dirs(top: &Path, dir: &Path) -> Result<()> {
    if dir.is_dir() {
        return Ok(());
    }
    if let Some(above) = dir.parent().filter(|above| above.starts_with(top)) {
        make_dirs(top, above)?;
    }
    match fs::DirBuilder::new().mode(0o700).create(dir) {
        Err(err) if err.kind() != io::ErrorKind::AlreadyExists => {
            Err(Error::io("make the directory", dir)(err))
        }
        Ok(()) => protect_dir(dir).map_err(Error::io("protect", dir)),
        Err(_) => Ok(()),
    }
}

/// Creates `to` as a reflink of `from`; returns whether the file system supports that.
pub(super) fn share(from: &Path, to: &Path) -> io::Result<bool> {
    let beside = beside(to);
    let _left_by_a_killed_process = fs::remove_file(&beside);
    let source = open(from)?;
    let copy = OpenOptions::new().write(true).create_new(true).mode(0o400).open(&beside)?;
    hand_over(&copy, &beside);
    let shared =
        reflink(&source, &copy) && copy.sync_data().and_then(|()| fs::rename(&beside, to)).is_ok();
    if !shared {
        let _gone = fs::remove_file(&beside);
    }
    Ok(shared)
}

/// Opens a file that was just seen to be a regular file.
fn open(path: &Path) -> io::Result<File> {
    let file = open_options().read(true).open(path)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(io::ErrorKind::PermissionDenied.into()) }
}

fn beside(to: &Path) -> PathBuf {
    let mut beside = to.as_os_str().to_owned();
    beside.push(format!(".tmp-{}-0", std::process::id()));
    beside.into()
}

/// Copies a file under a temporary name and renames it. Uses a reflink where the file system
/// supports that.
pub(in crate::store::repository) fn copy_whole(from: &Path, to: &Path) -> io::Result<()> {
    let beside = beside(to);
    let _left_by_a_killed_process = fs::remove_file(&beside);
    let copied = open(from).and_then(|mut source| {
        let mut copy = OpenOptions::new().write(true).create_new(true).mode(0o400).open(&beside)?;
        hand_over(&copy, &beside);
        if !reflink(&source, &copy) {
            io::copy(&mut source, &mut copy)?;
        }
        copy.sync_data()?;
        fs::rename(&beside, to)
    });
    if copied.is_err() {
        let _gone = fs::remove_file(&beside);
    }
    copied
}
