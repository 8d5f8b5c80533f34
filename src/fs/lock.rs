//! A lock between processes that the system releases when its owner dies.

use std::{
    fs::{File, TryLockError},
    os::unix::fs::MetadataExt,
    path::Path,
    thread,
    time::{Duration, Instant},
};

use rustix::fs::{Mode, OFlags};

use super::{PathResolver, hand_over, is_in_the_way, set_aside, system::lock_holder};
use crate::error::{Error, Result};

/// A lock on a file of its own, exclusive unless said otherwise. Dropping it releases it, and so
/// does the death of its owner, so a stale lock never needs manual cleanup.
#[derive(Debug)]
pub struct Lock(File);

/// The longest pause between two attempts: short enough not to be noticed, and at most 50 attempts
/// a second.
const PAUSE_MAX: Duration = Duration::from_millis(20);

impl Lock {
    /// Takes the lock on `path`, waiting for other holders until `deadline`.
    ///
    /// # Errors
    ///
    /// [`Error::Busy`] at the deadline; [`Error::Io`] if the file cannot be created.
    pub fn acquire(path: &Path, deadline: Instant) -> Result<Self> {
        Self::acquire_by(&PathResolver::default(), path, deadline)
    }

    /// Takes the lock as [`Lock::acquire`] does; `None` if others hold it until `deadline`.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] if the file cannot be created.
    pub fn acquire_if_free(path: &Path, deadline: Instant) -> Result<Option<Self>> {
        match Self::acquire(path, deadline) {
            Err(Error::Busy { .. }) => Ok(None),
            lock => lock.map(Some),
        }
    }

    /// As [`Lock::acquire`], for a caller that also resolves paths.
    ///
    /// # Errors
    ///
    /// As [`Lock::acquire`].
    pub fn acquire_by(real: &PathResolver, path: &Path, deadline: Instant) -> Result<Self> {
        wait_for(real, path, deadline, File::try_lock)
    }

    /// Takes the lock as [`Lock::acquire`] does, but shares it with other shared holders.
    ///
    /// # Errors
    ///
    /// As [`Lock::acquire`].
    pub fn share(path: &Path, deadline: Instant) -> Result<Self> {
        wait_for(&PathResolver::default(), path, deadline, File::try_lock_shared)
    }

    /// Whether the locked file still has this name. A lock on a removed file excludes no process.
    pub fn is_at(&self, path: &Path) -> bool {
        let (held, found) = (self.0.metadata(), std::fs::symlink_metadata(path));
        held.is_ok_and(|held| {
            found.is_ok_and(|found| (held.dev(), held.ino()) == (found.dev(), found.ino()))
        })
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Closing is not enough: a child process that another thread is forking right now has a
        // copy of the descriptor until it calls exec.
        let _closed_anyway = self.0.unlock();
    }
}

fn wait_for(
    real: &PathResolver,
    path: &Path,
    deadline: Instant,
    try_lock: fn(&File) -> Result<(), TryLockError>,
) -> Result<Lock> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let mode = Mode::from_raw_mode(0o600);
    let file = match real.open(path, flags, mode) {
        Err(_) if is_in_the_way(path) => {
            set_aside(path)?;
            real.open(path, flags, mode)
        }
        file => file,
    };
    let file = file.map_err(Error::io("open the lock", path))?;
    hand_over(&file, path);
    let mut pause = Duration::from_micros(200);
    loop {
        match try_lock(&file) {
            Ok(()) => return Ok(Lock(file)),
            Err(TryLockError::WouldBlock) if Instant::now() < deadline => thread::sleep(pause),
            Err(TryLockError::WouldBlock) => {
                return Err(Error::Busy { path: path.to_owned(), holder: lock_holder(&file) });
            }
            Err(TryLockError::Error(source)) => return Err(Error::io("lock", path)(source)),
        }
        pause = (pause * 2).min(PAUSE_MAX);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_waits_and_gives_up_at_its_deadline() {
        let path = std::env::temp_dir().join(format!("beforehand-lock-{}", std::process::id()));
        let soon = || Instant::now() + Duration::from_millis(5);
        let first = Lock::acquire(&path, soon()).unwrap();
        assert!(matches!(Lock::acquire(&path, soon()), Err(Error::Busy { .. })));
        drop(first);
        let shared = [Lock::share(&path, soon()).unwrap(), Lock::share(&path, soon()).unwrap()];
        assert!(matches!(Lock::acquire(&path, soon()), Err(Error::Busy { .. })));
        drop(shared);
        drop(Lock::acquire(&path, soon()).unwrap());
        std::fs::remove_file(&path).unwrap();
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_lock_that_is_held_names_its_holder() {
        let path = std::env::temp_dir().join(format!("beforehand-holder-{}", std::process::id()));
        let _held = Lock::acquire(&path, Instant::now()).unwrap();
        let Err(Error::Busy { holder, .. }) = Lock::acquire(&path, Instant::now()) else {
            panic!("it is held")
        };
        assert_eq!(holder, Some(std::process::id()));
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn a_child_that_inherits_the_descriptor_does_not_hold_the_lock() {
        let path =
            std::env::temp_dir().join(format!("beforehand-inherited-{}", std::process::id()));
        let first = Lock::acquire(&path, Instant::now()).unwrap();
        // What a process forked meanwhile has: the same open file under another descriptor.
        let inherited = first.0.try_clone().unwrap();
        drop(first);
        drop(Lock::acquire(&path, Instant::now()).unwrap());
        drop(inherited);
        std::fs::remove_file(&path).unwrap();
    }
}
