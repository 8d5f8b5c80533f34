//! A copy of a project in which a program is tried: no entry, no checkpoint of its own, and removed with its
//! owner, or by the next command if that was killed.

use std::{
    ffi::OsStr,
    fs,
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
    time::Instant,
};

use super::{clear, make::write_copy};
use crate::{
    crash,
    error::{Error, Result},
    fs::{Lock, create_private_dirs, names_in, now_ns},
    model::Checkpoint,
    project::Project,
    state::StateDir,
};

/// The end of the name of the lock that its owner holds.
const LOCK_SUFFIX: &str = ".lock";

/// A sweep may take what is not locked yet. It takes longer than to make it again.
const TRIES: usize = 8;

/// A directory in the state directory, and a project in it.
pub(crate) struct ScratchFork {
    top: PathBuf,
    /// Where the copy is: called as the project, for programs that go by it.
    pub(crate) dir: PathBuf,
    lock_path: PathBuf,
    _lock: Lock,
}

impl ScratchFork {
    /// Makes the place for a copy of a project.
    ///
    /// # Errors
    ///
    /// Fails if the state directory cannot be written.
    pub(crate) fn begin(project: &Project) -> Result<Self> {
        for _ in 1..TRIES {
            if let Ok(scratch) = Self::place(project) {
                return Ok(scratch);
            }
        }
        Self::place(project)
    }

    fn place(project: &Project) -> Result<Self> {
        let above = project.state.scratch();
        create_private_dirs(&above)?;
        let name = format!("{}-{}", std::process::id(), now_ns());
        let lock_path = above.join(format!("{name}{LOCK_SUFFIX}"));
        let lock = Lock::acquire(&lock_path, Instant::now())?;
        let top = above.join(name);
        let made = fs::DirBuilder::new().mode(0o700).create(&top);
        made.map_err(Error::io("make the directory", &top))?;
        let name = project.root.path().file_name().unwrap_or(OsStr::new("project"));
        let dir = top.join(name);
        Ok(Self { top, dir, lock_path, _lock: lock })
    }

    /// Makes the copy what the project was at a checkpoint, whatever was done to it.
    ///
    /// # Errors
    ///
    /// Fails if the checkpoint cannot be read, or not all of it be written.
    pub(crate) fn fill(&self, project: &Project, checkpoint: &Checkpoint) -> Result<()> {
        empty(&self.top).map_err(Error::io("clear", &self.top))?;
        crash::point("scratch-cleared");
        write_copy(project, checkpoint, &self.dir)
    }
}

impl Drop for ScratchFork {
    fn drop(&mut self) {
        // What a program goes on writing there is removed by the next command.
        let _left = remove(&self.top, &self.lock_path);
    }
}

/// Removes the copies that their owners left behind.
pub(crate) fn sweep(state: &StateDir) {
    let above = state.scratch();
    if above.symlink_metadata().is_err() {
        return;
    }
    for name in names_in(&above) {
        let name = name.to_string_lossy().into_owned();
        let Some(name) = name.strip_suffix(LOCK_SUFFIX) else { continue };
        let lock_path = above.join(format!("{name}{LOCK_SUFFIX}"));
        if let Ok(_lock) = Lock::acquire(&lock_path, Instant::now()) {
            let _next_time = remove(&above.join(name), &lock_path);
        }
    }
    let _others_are_there = fs::remove_dir(&above);
}

fn remove(top: &Path, lock: &Path) -> std::io::Result<()> {
    empty(top)?;
    match fs::remove_dir(top) {
        Err(err) if err.kind() != std::io::ErrorKind::NotFound => return Err(err),
        Ok(()) | Err(_) => (),
    }
    fs::remove_file(lock)
}

fn empty(top: &Path) -> std::io::Result<()> {
    match clear(top, &|_, _| true) {
        Err(err) if err.kind() == std::io::ErrorKind::NotFound => Ok(()),
        cleared => cleared.map(drop),
    }
}
