//! A path at which two states differ.

use std::{os::unix::ffi::OsStrExt, path::PathBuf};

use crate::model::{Entry, Kind, RelPath};

/// One path that differs.
pub(crate) struct Differing {
    pub(super) place: Where,
    pub(super) before: Option<Entry>,
    pub(super) after: Option<Entry>,
}

/// Where it is.
pub(super) enum Where {
    Below(RelPath),
    Outside(PathBuf),
    /// A repository, or a file that led to one: relative if it was below the root, or else absolute.
    /// Why it is not the same, unless it is gone.
    Repository(PathBuf, Option<String>),
}

impl Differing {
    /// Its path, if it is a file below the root.
    pub(crate) fn below(&self) -> Option<&RelPath> {
        match &self.place {
            Where::Below(path) => Some(path),
            Where::Outside(_) | Where::Repository(_, _) => None,
        }
    }

    /// Its path: below the root, or absolute. Not escaped.
    pub(crate) fn name(&self) -> Vec<u8> {
        match &self.place {
            Where::Below(path) => path.as_bytes().to_vec(),
            Where::Outside(path) | Where::Repository(path, _) => {
                path.as_os_str().as_bytes().to_vec()
            }
        }
    }

    /// What became of it, in a word.
    pub(crate) fn word(&self) -> &'static str {
        match (&self.before, &self.after) {
            (None, _) => "added",
            (Some(_), None) => "removed",
            (Some(_), Some(_)) if matches!(self.place, Where::Repository(..)) => "changed",
            (Some(before), Some(after)) if before.kind != after.kind => "type",
            (Some(before), Some(after)) if before.content == after.content => "mode",
            (Some(_), Some(_)) => "changed",
        }
    }

    /// Whether it is a repository, or a file that led to one.
    pub(crate) fn is_repository(&self) -> bool {
        matches!(self.place, Where::Repository(..))
    }

    /// Whether it is more than a directory.
    pub(crate) fn is_file(&self) -> bool {
        let sides = [self.before, self.after];
        sides.iter().flatten().any(|entry| entry.kind != Kind::Directory)
    }
}

/// A directory that came or went with something in it is told by what is in it.
pub(super) fn drop_full_directories(found: &mut Vec<Differing>) {
    let mut keep = Vec::with_capacity(found.len());
    for (n, differing) in found.iter().enumerate() {
        let is_one_sided = differing.before.is_none() || differing.after.is_none();
        let next = found.get(n + 1);
        let is_full = match (&differing.place, next.map(|next| &next.place)) {
            (Where::Below(path), Some(Where::Below(next))) => next.is_within(path),
            (_, _) => false,
        };
        keep.push(differing.is_file() || !is_one_sided || !is_full);
    }
    let mut keep = keep.into_iter();
    found.retain(|_| keep.next().unwrap_or(true));
}
