//! Borrowed packs that were overwritten or cut short where they are: no save relies on what their
//! indexes list, and a rebuild takes what can still be read of them.

use std::{
    ffi::OsStr,
    fs::{self, File},
    io,
    os::unix::{
        ffi::OsStrExt,
        fs::{FileExt, OpenOptionsExt},
    },
    path::{Path, PathBuf},
};

use super::{
    borrow::{NONBLOCK, borrowed_dirs},
    names_of,
};

/// What the name of an index ends in whose pack is damaged.
const DAMAGED_SUFFIX: &str = ".unsound";

/// The indexes among the borrowed packs whose packs have been overwritten or cut short.
pub(super) fn damaged_indexes(linked: &Path) -> Vec<PathBuf> {
    let dirs = borrowed_dirs(linked).into_iter().map(|dir| dir.join("pack"));
    let paths = dirs.flat_map(|dir| {
        let names = names_of(&dir).unwrap_or_default();
        names.into_iter().map(move |name| dir.join(name))
    });
    let is_index = |path: &PathBuf| path.extension().is_some_and(|end| end == "idx");
    paths.filter(|path| is_index(path) && path.is_file() && !is_sound(path)).collect()
}

/// The packs in a directory whose indexes have lost their names.
pub(super) fn packs(dir: &Path) -> Vec<PathBuf> {
    let names = names_of(dir).unwrap_or_default();
    let indexes = names.iter().filter(|name| name.as_bytes().ends_with(DAMAGED_SUFFIX.as_bytes()));
    indexes.map(|name| dir.join(original_name(name)).with_extension("pack")).collect()
}

/// Takes the names from damaged indexes, so that no save takes what they list for held.
pub(super) fn set_aside(damaged_indexes: &[PathBuf]) {
    for path in damaged_indexes {
        // If that fails the objects are relied on as if nothing was wrong.
        let _still_there = fs::rename(path, marked_damaged(path));
    }
}

/// The name under which an index is kept whose pack is damaged: a rebuild gives it its own again,
/// for what can still be read of the pack.
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

/// Whether the pack of an index ends in the checksum that the index has for it.
pub(super) fn is_sound(index: &Path) -> bool {
    let pack = index.with_extension("pack");
    let width = pack.file_stem().map_or(0, |stem| stem.len().saturating_sub("pack-".len())) / 2;
    let tail = |path: &Path, width: usize| -> io::Result<Vec<u8>> {
        let file = File::options().read(true).custom_flags(NONBLOCK).open(path)?;
        let from = file.metadata()?.len().checked_sub(width as u64);
        let mut bytes = vec![0; width];
        file.read_exact_at(&mut bytes, from.ok_or(io::ErrorKind::UnexpectedEof)?)?;
        Ok(bytes)
    };
    // One that has no checksum for its name is nobody's we know.
    if width != 20 && width != 32 {
        return true;
    }
    let told = tail(index, 2 * width).map(|tail| tail[..width].to_vec());
    match told.and_then(|told| Ok(told == tail(&pack, width)?)) {
        Ok(is_sound) => is_sound,
        // One that is closed to us, or that the disk does not give now, may be whole.
        Err(err) => !matches!(err.kind(), io::ErrorKind::UnexpectedEof | io::ErrorKind::NotFound),
    }
}
