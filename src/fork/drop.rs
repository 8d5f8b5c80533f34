//! Drops a fork: all that is in it is held first, and then only what has not changed since is removed.

use std::{
    fs, io,
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use super::{
    clear::{clear, would_leave},
    make::hold,
};
use crate::{
    crash,
    error::{Error, Result},
    forked::ForkEntry,
    fs::{Dir, now_ns, remove_if_there},
    model::{
        Checkpoint, Kind, RelPath, SkipReason, Skipped, Stamp, is_beside_repository, names_in_git,
    },
    process::Process,
    project::Project,
    restore,
    scan::{TEMPORARY_PREFIX, is_racy, is_temporary},
    state::RootState,
};

/// Longer than a tick of a file system's clock, so that stamps distinguish what was written before from what is
/// written while the fork is being held.
const TICK: Duration = Duration::from_millis(25);

/// A fork after its content was saved.
pub(crate) struct Dropping {
    /// What holds it; `None` if nothing is there.
    pub(crate) held: Option<Checkpoint>,
    /// When it began to be held, in nanoseconds since 1970.
    since_ns: i64,
}

impl Dropping {
    /// Holds what is in a fork.
    ///
    /// # Errors
    ///
    /// Fails if it cannot be held; nothing is changed then.
    pub(crate) fn begin(process: &Process<'_>, fork: &ForkEntry) -> Result<Self> {
        if !fork.is_there() {
            return Ok(Self { held: None, since_ns: 0 });
        }
        thread::sleep(TICK);
        let since_ns = now_ns();
        settle(process, &fork.dir)?;
        let held = Some(hold(process, &fork.dir, "before the fork was dropped")?);
        crash::point("drop-held");
        Ok(Self { held, since_ns })
    }

    /// What is in a fork and would not be held, and what would stay because no checkpoint ever holds it. Holds
    /// nothing.
    ///
    /// # Errors
    ///
    /// Fails if it cannot be read.
    pub(crate) fn look(
        process: &Process<'_>,
        fork: &ForkEntry,
    ) -> Result<(Vec<Skipped>, Vec<PathBuf>)> {
        if !fork.is_there() {
            return Ok((Vec::new(), Vec::new()));
        }
        let project = Project::open(process, Some(&fork.dir))?;
        let unheld = restore::left_out_now(process, &project)?;
        let goes = |path: &RelPath, stamp: &Stamp| {
            stamp.kind() == Some(Kind::Directory) || !stays(fork, path)
        };
        let left = would_leave(&fork.dir, &goes).map_err(Error::io("list", &fork.dir))?;
        Ok((unheld, left))
    }

    /// What is in the fork and not held.
    pub(crate) fn unheld(&self) -> Vec<Skipped> {
        let is_empty =
            |skipped: &Skipped| skipped.reason == SkipReason::GitPrivate && skipped.size == 0;
        let skipped = self.held.iter().flat_map(|held| &held.skipped);
        skipped.filter(|skipped| !is_empty(skipped)).cloned().collect()
    }

    /// Removes the fork's directory and its entry. Returns what stays, because it has changed since it was
    /// held, or because no checkpoint ever holds it, unless `force` takes that too; the entry stays then, too.
    ///
    /// # Errors
    ///
    /// Fails if something cannot be removed.
    pub(crate) fn finish(
        &self,
        fork: &ForkEntry,
        own: &RootState,
        force: bool,
    ) -> Result<Vec<PathBuf>> {
        if self.held.is_some() {
            let goes = |path: &RelPath, stamp: &Stamp| {
                let is_directory = stamp.kind() == Some(Kind::Directory);
                is_directory || (force || !stays(fork, path)) && self.is_as_held(path, stamp)
            };
            let left = clear(&fork.dir, &goes).map_err(Error::io("remove", &fork.dir))?;
            if !left.is_empty() {
                return Ok(left);
            }
            crash::point("drop-cleared");
        }
        // A directory that was made and not entered before the process was killed has nothing in it.
        if fork.is_there() || fork.identity.is_none() {
            match fs::remove_dir(&fork.dir) {
                Err(err)
                    if err.kind() == io::ErrorKind::DirectoryNotEmpty && self.held.is_some() =>
                {
                    return Ok(vec![PathBuf::from(".")]);
                }
                Err(err) if self.held.is_some() => {
                    return Err(Error::io("remove", &fork.dir)(err));
                }
                Ok(()) | Err(_) => (),
            }
        }
        crash::point("drop-removed");
        let path = own.fork();
        fs::remove_file(&path).map_err(Error::io("remove", &path))?;
        Ok(Vec::new())
    }

    /// Whether something other than a directory was there as it is when the fork was held.
    fn is_as_held(&self, path: &RelPath, stamp: &Stamp) -> bool {
        let mut names = path.names().skip_while(|name| *name != b".git");
        // To hold a repository is to link its objects, which never change.
        let is_object = names.next().is_some() && names.any(|name| name == b"objects");
        let mut stamp = *stamp;
        if is_object {
            stamp.ctime_ns = stamp.mtime_ns;
        }
        !is_racy(&stamp, self.since_ns)
    }
}

/// Makes sure that what is held is what is there. A write through a shared memory mapping sets a new ctime only if the
/// page was clean; so what is dirty is written first, and everything is read again, whatever its stamp was when it was
/// read last.
fn settle(process: &Process<'_>, dir: &Path) -> Result<()> {
    let synced = Dir::open(dir).and_then(|dir| dir.sync_below());
    synced.map_err(Error::io("sync", dir))?;
    let project = Project::open(process, Some(dir))?;
    let cache = project.place().cache();
    remove_if_there(&cache).map(drop)
}

/// Whether a file is never held, and may be of more worth than a copy that was not finished.
fn stays(fork: &ForkEntry, path: &RelPath) -> bool {
    let is_copy = !fork.is_finished() && path.names().any(is_temporary);
    !is_copy && is_never_held(path)
}

/// Whether no checkpoint holds a file, by its path: what we write ourselves under a temporary name, and in a
/// git directory what is no part of a repository.
fn is_never_held(path: &RelPath) -> bool {
    path.names().any(|name| name.starts_with(TEMPORARY_PREFIX.as_bytes()))
        || names_in_git(path.as_bytes()).is_some_and(|names| is_beside_repository(&names))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_checkpoint_has_is_told_by_its_path() {
        let is = |path: &str| is_never_held(&RelPath::from_bytes(path.as_bytes()).unwrap());
        for path in [
            ".beforehand-tmp-repository/x",
            "sub/.beforehand-tmp-ab-cd",
            ".git/index.lock",
            ".git/objects/pack/tmp_pack_1",
            "nest/.git/objects/notes",
        ] {
            assert!(is(path), "{path}");
        }
        for path in ["src/index.lock", "objects/notes", ".git/config"] {
            assert!(!is(path), "{path}");
        }
    }
}
