//! Finds the root that contains a directory, and decides whether it may be walked.

use std::{
    fs, io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use crate::{
    fs::{PathResolver, is_pseudo},
    model::{Root, RootKind, ScanScope},
    root::{self, GitDirs},
    state::StateDir,
};

/// What the user's own directories are, for which other rules hold.
#[derive(Clone, Debug)]
pub struct Surroundings<'a> {
    /// The home directory.
    pub home: Option<&'a Path>,
    /// Our own state, which is never a part of a root; `None` if there is no place for one.
    pub state: Option<&'a StateDir>,
    /// Where paths lead.
    pub real: &'a PathResolver,
}

/// Finds the root that a session working in `start` has: the git worktree around it, or else that
/// very directory. `None` if there is no such directory.
pub fn root_around(start: &Path, surroundings: &Surroundings<'_>) -> Option<(Root, ScanScope)> {
    root_around_real(&surroundings.real.of(start).ok()?, surroundings)
}

/// The same for a path that is canonical already.
pub(super) fn root_around_real(
    start: &Path,
    surroundings: &Surroundings<'_>,
) -> Option<(Root, ScanScope)> {
    look_around_real(start, surroundings).map(|(root, scope, _)| (root, scope))
}

/// The same, with what was found of its repository, for a caller that opens it at once.
pub fn look_around_real(
    start: &Path,
    surroundings: &Surroundings<'_>,
) -> Option<(Root, ScanScope, Option<GitDirs>)> {
    let (path, has_git) = around(start, surroundings)?;
    let (kind, dirs) =
        if has_git { root::look(&path) } else { (RootKind::Plain { why: None }, None) };
    let is_worktree = matches!(kind, RootKind::Git { .. });
    let is_walked = !is_home(&path, surroundings) && is_walked(&path, is_worktree, surroundings);
    let scope = if is_walked { ScanScope::Whole } else { ScanScope::Named };
    Some((Root::new(path, kind), scope, dirs))
}

/// The path of the root that `root_around_real` finds. Nothing of its repository is opened.
pub fn path_around(start: &Path, surroundings: &Surroundings<'_>) -> Option<PathBuf> {
    Some(around(start, surroundings)?.0)
}

/// The worktree that a directory lies in, if any.
pub(super) fn worktree_around(dir: &Path, surroundings: &Surroundings<'_>) -> Option<PathBuf> {
    let (path, is_worktree) = around(&surroundings.real.of(dir).ok()?, surroundings)?;
    is_worktree.then_some(path)
}

/// Where a root is, and whether it has something called `.git`.
fn around(start: &Path, surroundings: &Surroundings<'_>) -> Option<(PathBuf, bool)> {
    // What cannot be looked at is not taken for a file: the root would be one directory too high.
    let is_file = !surroundings.real.is_plain(start)
        && fs::metadata(start).is_ok_and(|found| !found.is_dir());
    let start = if is_file { start.parent()? } else { start };
    let worktree = start
        .ancestors()
        // A repository over the whole home is for its dot files; a directory in it is no part.
        .take_while(|dir| *dir == start || !is_home(dir, surroundings))
        .find(|dir| may_be_there(&dir.join(".git")));
    Some((worktree.unwrap_or(start).to_owned(), worktree.is_some()))
}

/// Whether a directory is the home directory, or around it.
fn is_home(dir: &Path, surroundings: &Surroundings<'_>) -> bool {
    let home = surroundings.home.and_then(|home| surroundings.real.of(home).ok());
    home.is_some_and(|home| home.starts_with(dir))
}

/// Whether there is such a name, or no telling: only a plain "no" sends the search further up.
fn may_be_there(path: &Path) -> bool {
    use io::ErrorKind::{NotADirectory, NotFound};
    path.symlink_metadata()
        .map_or_else(|err| !matches!(err.kind(), NotFound | NotADirectory), |_| true)
}

/// Whether a root that is neither the home directory nor anything around it may be walked: not `/`,
/// not a place of the kernel's, not a mount point unless it is a worktree (a container often mounts
/// just that), and nothing that our own state is a part of.
fn is_walked(path: &Path, is_worktree: bool, surroundings: &Surroundings<'_>) -> bool {
    let is_ours = surroundings.state.is_some_and(|state| {
        let state = surroundings.real.of(state.dir()).unwrap_or_else(|_| state.dir().to_owned());
        path.starts_with(&state) || state.starts_with(path)
    });
    path.parent().is_some()
        && !is_ours
        && !is_of_the_kernel(path)
        && (is_worktree || !is_mount_point(path))
}

fn device(path: &Path) -> Option<u64> {
    fs::symlink_metadata(path).ok().map(|found| found.dev())
}

fn is_mount_point(path: &Path) -> bool {
    path.parent().is_none_or(|parent| device(path) != device(parent))
}

/// Whether a path lies in a file system that shows the kernel and its devices, and not files. What is
/// mounted below such a one, as `/dev/shm` is, holds files like any other.
pub(super) fn is_of_the_kernel(path: &Path) -> bool {
    let devices =
        device(Path::new("/dev")).filter(|devices| Some(*devices) != device(Path::new("/")));
    devices.is_some() && device(path) == devices || is_pseudo(path)
}

#[cfg(test)]
mod tests {
    #[cfg(target_os = "linux")]
    #[test]
    fn what_the_kernel_shows_is_told_by_its_file_system() {
        use super::*;

        let of_the_kernel = |path| is_of_the_kernel(Path::new(path));
        assert!(of_the_kernel("/proc/self") && !of_the_kernel("/") && !of_the_kernel("/usr"));
        // Where it is mounted, it holds files.
        if is_mount_point(Path::new("/dev/shm")) {
            assert!(of_the_kernel("/dev") && !of_the_kernel("/dev/shm"));
        }
    }
}
