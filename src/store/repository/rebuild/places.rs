//! Where what is held of a repository lies, and how refs are named.

use std::{
    ffi::OsStr,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use super::Held;
use crate::fs::without_dots;

/// The path of a held repository. Absolute.
pub(super) fn place_of(root: &Path, held: &Held) -> PathBuf {
    root.join(OsStr::from_bytes(&held.path))
}

/// The path that the text of a `.git` file points to.
pub(super) fn led_to(pointer: &Path, text: &[u8]) -> PathBuf {
    let target = text.strip_prefix(b"gitdir: ").unwrap_or(text).trim_ascii_end();
    let above = pointer.parent().unwrap_or(Path::new("/"));
    without_dots(&above.join(OsStr::from_bytes(target)))
}

/// The path of a linked worktree's or submodule's git directory, relative to its repository.
pub(super) fn part_at(place: &Path, target: &Path) -> Option<PathBuf> {
    let is_worktree = target.parent().is_some_and(|above| above.ends_with("worktrees"));
    match target.strip_prefix(place) {
        Ok(below) if !below.as_os_str().is_empty() => Some(below.to_owned()),
        // The repository's path may be spelled differently.
        _ => Some(Path::new("worktrees").join(target.file_name()?)).filter(|_| is_worktree),
    }
}

/// Whether a ref is the user's own, not a remote-tracking ref.
pub(super) fn is_of_the_user(name: &str) -> bool {
    name.starts_with("refs/heads/") || name.starts_with("refs/tags/") || name == "refs/stash"
}

/// The name of a branch or tag as git shows it.
pub(super) fn short(name: &str) -> &str {
    name.strip_prefix("refs/heads/").or(name.strip_prefix("refs/tags/")).unwrap_or(name)
}
