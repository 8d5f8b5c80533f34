//! Borrowed packs that were overwritten or truncated in place. No save relies on them, and a
//! rebuild uses what can still be read.

use std::{
    ffi::OsStr,
    fs, io,
    os::unix::{ffi::OsStrExt, fs::FileExt},
    path::{Path, PathBuf},
};

use super::names_of;
use crate::fs::open_options;

/// Suffix for the index of a damaged pack.
const DAMAGED_SUFFIX: &str = ".unsound";

/// The indexes of packs in these directories of objects that were overwritten or truncated.
pub(super) fn damaged_indexes(dirs: &[PathBuf]) -> Vec<PathBuf> {
    let paths = dirs.iter().flat_map(|dir| {
        let dir = dir.join("pack");
        let names = names_of(&dir).unwrap_or_default();
        names.into_iter().map(move |name| dir.join(name))
    });
    let is_index = |path: &PathBuf| path.extension().is_some_and(|end| end == "idx");
    paths.filter(|path| is_index(path) && path.is_file() && !is_sound(path)).collect()
}

/// The packs in a directory that have the suffix on their index.
pub(super) fn packs(dir: &Path) -> Vec<PathBuf> {
    let names = names_of(dir).unwrap_or_default();
    let indexes = names.iter().filter(|name| name.as_bytes().ends_with(DAMAGED_SUFFIX.as_bytes()));
    indexes.map(|name| dir.join(original_name(name)).with_extension("pack")).collect()
}

/// Renames the indexes of damaged packs, so that no save relies on their objects.
pub(super) fn set_aside(damaged_indexes: &[PathBuf]) {
    for path in damaged_indexes {
        // If this fails, the objects are still relied on.
        let _still_there = fs::rename(path, marked_damaged(path));
    }
}

/// The name for the index of a damaged pack. A rebuild gives it its original name again, because
/// part of the pack may be readable.
pub(super) fn marked_damaged(index: &Path) -> PathBuf {
    let mut name = index.as_os_str().to_owned();
    name.push(DAMAGED_SUFFIX);
    name.into()
}

/// The name that a borrowed file had in the user's repository.
pub(super) fn original_name(name: &OsStr) -> &OsStr {
    OsStr::from_bytes(
        name.as_bytes().strip_suffix(DAMAGED_SUFFIX.as_bytes()).unwrap_or(name.as_bytes()),
    )
}

/// Whether the pack ends in the checksum that its index has for it.
pub(super) fn is_sound(index: &Path) -> bool {
    let pack = index.with_extension("pack");
    let width = pack.file_stem().map_or(0, |stem| stem.len().saturating_sub("pack-".len())) / 2;
    let tail = |path: &Path, width: usize| -> io::Result<Vec<u8>> {
        let file = open_options().read(true).open(path)?;
        let from = file.metadata()?.len().checked_sub(width as u64);
        let mut bytes = vec![0; width];
        file.read_exact_at(&mut bytes, from.ok_or(io::ErrorKind::UnexpectedEof)?)?;
        Ok(bytes)
    };
    // An unknown hash function: nothing can be said.
    if width != 20 && width != 32 {
        return true;
    }
    let told = tail(index, 2 * width).map(|tail| tail[..width].to_vec());
    match told.and_then(|told| Ok(told == tail(&pack, width)?)) {
        Ok(is_sound) => is_sound,
        // A pack without read permission, or with an I/O error, may be intact.
        Err(err) => !matches!(err.kind(), io::ErrorKind::UnexpectedEof | io::ErrorKind::NotFound),
    }
}
