//! Paths of what a checkpoint holds of a repository, and the names of refs in it.

use std::{
    collections::BTreeSet,
    ffi::OsStr,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use super::Held;
use crate::{fs::without_dots, store::record::Record};

/// The path of a held repository. Absolute.
pub(super) fn place_of(root: &Path, held: &Held) -> PathBuf {
    root.join(OsStr::from_bytes(&held.path))
}

/// Where the root's own repository was and those below it, with the `.git` files that led to them.
/// Absolute.
pub(super) fn places_inside(root: &Path, record: &Record) -> BTreeSet<PathBuf> {
    let is_own = |held: &&Held| record.store.as_deref() == Some(&held.store);
    let own = record.repositories.iter().filter(is_own).map(|held| place_of(root, held));
    let all = record.repositories.iter().map(|held| &held.path);
    let all = all.chain(record.pointers().map(|(path, _)| path));
    let below = all.map(|path| root.join(OsStr::from_bytes(path)));
    own.chain(below.filter(|path| path.starts_with(root))).collect()
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
