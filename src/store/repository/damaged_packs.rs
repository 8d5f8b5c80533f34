//! Packs and loose objects, borrowed ones and our own, that were overwritten, truncated or replaced. No save
//! relies on them. The readable rest of a pack is used to read, and to rebuild a repository.

use std::{
    ffi::OsStr,
    fs, io,
    os::unix::{ffi::OsStrExt, fs::FileExt},
    path::{Path, PathBuf},
};

use super::{intact::file_fits, names_of};
use crate::fs::{clear_away, is_gone, is_in_the_way, open_options};

/// Suffix for the index of a damaged pack.
const DAMAGED_SUFFIX: &str = ".unsound";

/// The indexes of packs in these directories of objects that were overwritten, truncated or replaced.
pub(super) fn damaged_indexes(dirs: &[PathBuf]) -> Vec<PathBuf> {
    let paths = dirs.iter().flat_map(|dir| {
        let dir = dir.join("pack");
        let names = names_of(&dir).unwrap_or_default();
        names.into_iter().map(move |name| dir.join(name))
    });
    let is_index = |path: &PathBuf| path.extension().is_some_and(|end| end == "idx");
    paths.filter(|path| is_index(path) && !is_sound(path)).collect()
}

/// The packs in a directory that have the suffix on their index.
pub(super) fn packs(dir: &Path) -> Vec<PathBuf> {
    let names = names_of(dir).unwrap_or_default();
    let indexes = names.iter().filter(|name| name.as_bytes().ends_with(DAMAGED_SUFFIX.as_bytes()));
    indexes.map(|name| dir.join(original_name(name)).with_extension("pack")).collect()
}

/// Renames the indexes of damaged packs, so that no save relies on their objects. Removes whatever is not a
/// regular file: to open it could block.
pub(super) fn set_aside(damaged_indexes: &[PathBuf]) {
    for path in damaged_indexes {
        for file in [path.clone(), path.with_extension("pack")] {
            if is_in_the_way(&file) {
                // If this fails, no object can be read, and nothing is saved.
                let _still_there = clear_away(&file);
            }
        }
        // If this fails, the objects are still relied on.
        let _still_there = fs::rename(path, marked_damaged(path));
    }
}

/// Makes sure that nothing relies on those of the files `changed` of an object directory that are damaged. Packs
/// are left to [`set_aside`]; files below `linked` are borrowed.
pub(super) fn set_files_aside(changed: &[PathBuf], linked: &Path) {
    for path in changed {
        let is_loose = path.parent().is_some_and(|dir| !dir.ends_with("pack"));
        if is_in_the_way(path) {
            if !path.is_dir() || names_object(path) {
                // If this fails, reading the object fails.
                let _still_there = clear_away(path);
            }
        } else if is_loose && matches!(file_fits(path), Ok(false)) {
            set_aside_file(path, linked);
        }
    }
}

/// Renames a damaged pack's index, or a damaged loose object. A borrowed one is removed: it is borrowed again
/// if the user's repository has it intact.
pub(super) fn set_aside_file(path: &Path, linked: &Path) {
    let done = match path.extension() {
        Some(end) if end == "pack" || end == "idx" => {
            return set_aside(&[path.with_extension("idx")]);
        }
        Some(_) | None if path.starts_with(linked) => fs::remove_file(path),
        Some(_) | None => fs::rename(path, marked_damaged(path)),
    };
    // If this fails, reading the object fails.
    done.ok();
}

/// Whether a path is that of a loose object.
fn names_object(path: &Path) -> bool {
    let fan = path.parent().and_then(Path::file_name);
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    fan.is_some_and(|fan| fan.len() == 2) && name.len() >= 38
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
        let found = file.metadata()?;
        let from = found.len().checked_sub(width as u64).filter(|_| found.is_file());
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
        Err(err) => err.kind() != io::ErrorKind::UnexpectedEof && !is_gone(&err),
    }
}
