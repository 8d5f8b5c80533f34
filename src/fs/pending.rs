//! New files under temporary names. No process sees a partial file under its own name, and a file
//! that does not get it is removed.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write as _},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    sync::atomic::{AtomicU32, Ordering},
};

use super::{hand_over, is_unsupported, rename_exclusive, set_permissions, sync_dir};
use crate::error::{Error, Result};

/// The temporary name of a file, which is removed unless it gets another.
#[derive(Debug)]
pub struct TemporaryName(PathBuf);

impl TemporaryName {
    /// Creates a file in `dir`, private to its owner and read-only once it is closed. Its name begins with
    /// `prefix`.
    pub fn create(dir: &Path, prefix: &str) -> io::Result<(Self, File)> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        loop {
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let path = dir.join(format!("{prefix}{}-{number}", std::process::id()));
            match OpenOptions::new().read(true).write(true).create_new(true).mode(0o400).open(&path)
            {
                Ok(file) => {
                    let name = Self(path);
                    hand_over(&file, &name.0);
                    set_permissions(&file, 0o400)?;
                    return Ok((name, file));
                }
                // Another process with the same id: a dead one, or one in another container.
                Err(err) if err.kind() == io::ErrorKind::AlreadyExists => (),
                Err(err) => return Err(err),
            }
        }
    }

    /// The whole path.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Gives the file its own name, in place of what has it.
    pub fn rename(mut self, to: &Path) -> io::Result<()> {
        fs::rename(&self.0, to)?;
        self.0 = PathBuf::new();
        Ok(())
    }

    /// The same, unless the name is taken: the file is removed then.
    pub fn rename_unless_taken(self, to: &Path) -> io::Result<()> {
        if fs::symlink_metadata(to).is_ok() { Ok(()) } else { self.rename(to) }
    }
}

impl Drop for TemporaryName {
    fn drop(&mut self) {
        if !self.0.as_os_str().is_empty() {
            // If it cannot be removed, maintenance does it later. The file's own name was never touched.
            let _swept_later = fs::remove_file(&self.0);
        }
    }
}

/// A new file beside its own name.
#[derive(Debug)]
pub struct PendingFile {
    file: File,
    beside: TemporaryName,
    path: PathBuf,
}

impl PendingFile {
    /// An empty file called `beside`, to be called `path`.
    pub fn create(beside: PathBuf, path: &Path, permissions: u32) -> io::Result<Self> {
        let beside = TemporaryName(beside);
        // A killed process with the same id may have left one.
        let _gone = fs::remove_file(&beside.0);
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&beside.0)?;
        hand_over(&file, &beside.0);
        set_permissions(&file, permissions)?;
        Ok(Self { file, beside, path: path.to_owned() })
    }

    /// Writes `bytes` beside `path`, with mode 0600.
    pub fn write(path: &Path, bytes: &[u8]) -> Result<Self> {
        Self::write_as(beside(path), path, bytes)
    }

    /// The same to the file `beside`.
    pub fn write_as(beside: PathBuf, path: &Path, bytes: &[u8]) -> Result<Self> {
        let new = Self::create(beside, path, 0o600);
        let written = new.and_then(|mut new| new.file.write_all(bytes).map(|()| new));
        written.map_err(Error::io("make", path))
    }

    /// What it is to be called.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The open file.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Makes it a clone of `source`, if the file system can.
    pub fn is_clone_of(&mut self, source: &File) -> bool {
        super::reflink(source, &mut self.file, &self.beside.0)
    }

    /// Waits until its bytes are on the disk.
    pub fn sync(&self) -> Result<()> {
        self.file.sync_data().map_err(Error::io("make", &self.path))
    }

    /// Gives it its name, which must not be taken.
    pub fn publish(mut self) -> Result<()> {
        rename_new(&self.beside.0, &self.path).map_err(Error::io("make", &self.path))?;
        self.beside.0 = PathBuf::new();
        Ok(())
    }

    /// Gives it its name, in place of what has it.
    pub fn replace(self) -> io::Result<()> {
        self.beside.rename(&self.path)
    }
}

/// Creates the file `path`, which must not exist, with `bytes`; on the disk when it returns. No
/// process sees a partial file.
pub fn create_new_synced(path: &Path, bytes: &[u8]) -> Result<()> {
    let new = PendingFile::write(path, bytes)?;
    new.sync()?;
    new.publish()?;
    path.parent().map_or(Ok(()), sync_dir)
}

fn rename_new(from: &Path, to: &Path) -> io::Result<()> {
    match rename_exclusive(from, to) {
        // It may support hard links.
        Err(err) if is_unsupported(&err) => {
            fs::hard_link(from, to).and_then(|()| fs::remove_file(from))
        }
        renamed => renamed,
    }
}

/// A temporary name in the same directory that no other process uses.
pub(super) fn beside(path: &Path) -> PathBuf {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".tmp-{}-{number}", std::process::id()));
    path.with_file_name(name)
}
