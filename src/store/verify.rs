//! Verifies every byte of the files with objects, a share at a time. A save compares stamps only, so it does not
//! notice a byte that flipped on the disk.
//!
//! Damaged files are set aside: no save relies on it, and the next save of a root holds its files anew.

use std::{
    fs,
    path::{Path, PathBuf},
};

use super::{objects::Objects, repository::PrivateRepository};
use crate::{error::Result, state::StateDir};

/// Object directories of git extensions are not nested deeper.
const DEPTH_MAX: usize = 100;

/// The result of verifying a share.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct VerifiedShare {
    /// The last file of the share, relative to the state directory; empty if it is the last of all.
    pub last: String,
    /// The damaged files, relative to the state directory.
    pub damaged: Vec<String>,
}

/// Verifies the files after `last`, in the order of their paths, until they have one part in `parts` of all bytes.
///
/// # Errors
///
/// Fails if the private repositories cannot be listed.
pub fn verify_share(state: &StateDir, last: &str, parts: u64) -> Result<VerifiedShare> {
    let repositories = PrivateRepository::all(state)?;
    let dirs = repositories.iter().flat_map(PrivateRepository::object_dirs);
    let mut files = Vec::new();
    for dir in dirs.chain([state.objects()]) {
        list(&dir, 0, &mut files);
    }
    files.sort();
    let total: u64 = files.iter().map(|(_, size)| size).sum();
    let mut share = VerifiedShare::default();
    let mut left = total / parts;
    let mut rest = files.iter().filter(|(path, _)| *name_of(state, path) > *last).peekable();
    while let Some((path, size)) = rest.next() {
        let is_damaged = match repositories.iter().find(|one| path.starts_with(one.dir())) {
            Some(one) => one.set_aside_if_damaged(path),
            None => Objects::new(state.objects()).set_aside_if_damaged(path)?,
        };
        if is_damaged {
            share.damaged.push(name_of(state, path));
        }
        left = left.saturating_sub(*size);
        if left == 0 && rest.peek().is_some() {
            share.last = name_of(state, path);
            break;
        }
    }
    Ok(share)
}

/// The path of a file relative to the state directory.
fn name_of(state: &StateDir, path: &Path) -> String {
    path.strip_prefix(state.dir()).unwrap_or(path).to_string_lossy().into_owned()
}

/// Adds the regular files below a directory, with their sizes.
fn list(dir: &Path, depth: usize, found: &mut Vec<(PathBuf, u64)>) {
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        match entry.metadata() {
            Ok(data) if data.is_dir() && depth < DEPTH_MAX => list(&entry.path(), depth + 1, found),
            Ok(data) if data.is_file() => found.push((entry.path(), data.len())),
            Ok(_) | Err(_) => (),
        }
    }
}
