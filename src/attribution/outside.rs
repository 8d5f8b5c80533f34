//! Compares what a checkpoint holds outside the root with the current state.
//!
//! The rules are those for paths below the root. Such a path is absolute in the log, and relative to `/`
//! elsewhere.

use std::{
    collections::{BTreeMap, BTreeSet},
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use crate::{
    fs::names_in,
    model::{Entry, RelPath, Skipped},
    plan::Change,
    scan::is_made_again,
};

/// As many as a checkpoint holds of one call. What more there is in a directory is not looked at.
const FILES_MAX: usize = 10_000;

/// What is looked at outside a root.
#[derive(Clone, Copy, Debug)]
pub struct Outside<'a> {
    /// What the checkpoint holds there.
    pub then: &'a BTreeMap<PathBuf, Entry>,
    /// What it left out. Absolute where it lies outside.
    pub skipped: &'a [Skipped],
    /// Where nothing was, and a call may have made something.
    pub absent: &'a BTreeSet<PathBuf>,
    /// Directories that are looked at for themselves: the root, and our own files.
    pub apart: &'a [&'a Path],
}

impl Outside<'_> {
    /// Everything that is worth a look: what the checkpoint holds, and what is in its directories
    /// now.
    pub fn paths(&self) -> BTreeSet<PathBuf> {
        let mut paths: BTreeSet<PathBuf> = self.then.keys().cloned().collect();
        paths.extend(self.absent.iter().filter(|path| self.is_worth_a_look(path)).cloned());
        // What was a file may be a directory now.
        let mut open: Vec<PathBuf> =
            paths.iter().filter(|path| is_directory(path)).cloned().collect();
        let left_out: BTreeSet<&[u8]> = self.skipped.iter().map(|it| &it.path[..]).collect();
        while let Some(dir) = open.pop() {
            let is_left_out = left_out.contains(dir.as_os_str().as_bytes());
            let names = if is_left_out { Vec::new() } else { names_in(&dir) };
            // A repository is held as a whole.
            for name in names.into_iter().filter(|name| !name.eq_ignore_ascii_case(".git")) {
                let path = dir.join(name);
                let is_left_out = left_out.contains(path.as_os_str().as_bytes());
                let is_apart = self.apart.iter().any(|apart| *apart == path);
                if paths.contains(&path) || is_left_out || is_apart || paths.len() >= FILES_MAX {
                    continue;
                }
                let is_directory = is_directory(&path);
                if is_directory && !is_worth_a_walk(&path) {
                    continue;
                }
                if is_directory {
                    open.push(path.clone());
                }
                paths.insert(path);
            }
        }
        paths
    }

    /// Whether something new at `path` can be told of.
    fn is_worth_a_look(&self, path: &Path) -> bool {
        let is_apart = self.apart.iter().any(|apart| path.starts_with(apart));
        !is_apart && (!is_directory(path) || is_worth_a_walk(path))
    }
}

/// What differs at `paths` outside a root, as seen from the top of the file system.
pub fn outside_changes(
    paths: &BTreeSet<PathBuf>,
    then: &BTreeMap<PathBuf, Entry>,
    now: &BTreeMap<PathBuf, Entry>,
) -> Vec<Change> {
    let change = |path: &PathBuf| {
        let (before, after) = (then.get(path).copied(), now.get(path).copied());
        let path = RelPath::from_top(path).ok()?;
        (before != after).then_some(Change { path, before, after })
    };
    paths.iter().filter_map(change).collect()
}

/// Whether a new directory is looked at file by file. A repository is left as a whole, and so is what a
/// tool can make again.
fn is_worth_a_walk(dir: &Path) -> bool {
    !is_made_again(dir) && dir.join(".git").symlink_metadata().is_err()
}

fn is_directory(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|found| found.is_dir())
}
