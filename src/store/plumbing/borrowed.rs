//! Directories of borrowed objects: those in the `linked` directory of a private repository, and the
//! alternates of a user's repository.

use std::{
    ffi::{OsStr, OsString},
    fs, io,
    os::unix::{ffi::OsStrExt, fs::PermissionsExt},
    path::{Path, PathBuf},
};

use crate::fs::read_small;

/// Longer than any real list of alternates.
pub(in crate::store) const ALTERNATES_MAX_BYTES: u64 = 1 << 20;
/// How deep alternates of alternates are followed; git's own limit.
const DEPTH_MAX: usize = 5;

/// The object directories in `linked`, for an object database that reads from them.
pub(in crate::store) fn borrowed_dirs(linked: &Path) -> Vec<PathBuf> {
    let mut dirs = vec![linked.join("objects")];
    let alternates = linked.join("alternates");
    dirs.extend(names_of(&alternates).unwrap_or_default().iter().map(|it| alternates.join(it)));
    dirs
}

/// Adds the object directories that `objects` borrows from, each once.
fn follow_alternates(objects: &Path, depth: usize, found: &mut Vec<PathBuf>) {
    if depth >= DEPTH_MAX {
        return;
    }
    let list = read_small(&objects.join("info/alternates"), ALTERNATES_MAX_BYTES).ok().flatten();
    for line in list.unwrap_or_default().split(|&byte| byte == b'\n') {
        if line.is_empty() || line[0] == b'#' || line[0] == b'"' {
            continue;
        }
        let Ok(path) = fs::canonicalize(objects.join(OsStr::from_bytes(line))) else { continue };
        if path.is_dir() && !found.contains(&path) {
            found.push(path.clone());
            follow_alternates(&path, depth + 1, found);
        }
    }
}

/// The alternates of an object directory, with the names under which they are borrowed.
pub(in crate::store) fn alternates_of(objects: &Path) -> Vec<(String, PathBuf)> {
    let mut found = Vec::new();
    follow_alternates(objects, 0, &mut found);
    let hash = |path: &PathBuf| crate::state::hash_name(&[path.as_os_str().as_bytes()]);
    found.into_iter().map(|path| (hash(&path), path)).collect()
}

/// Makes unreadable files in `dir` readable for their owner; returns whether there were any.
pub(in crate::store) fn open_up(dir: &Path) -> bool {
    let mut is_any = false;
    for name in names_of(dir).unwrap_or_default() {
        let path = dir.join(name);
        match fs::symlink_metadata(&path) {
            Ok(found) if found.is_dir() => is_any |= open_up(&path),
            Ok(found) if found.is_file() && found.permissions().mode() & 0o400 == 0 => {
                // A hard link shares the mode, so other users must not gain access to the user's
                // file.
                let mode = fs::Permissions::from_mode(found.permissions().mode() | 0o400);
                is_any |= fs::set_permissions(&path, mode).is_ok();
            }
            Ok(_) | Err(_) => (),
        }
    }
    is_any
}

/// The names in a directory, sorted.
pub(in crate::store) fn names_of(dir: &Path) -> io::Result<Vec<OsString>> {
    let names: io::Result<Vec<OsString>> =
        fs::read_dir(dir)?.map(|entry| Ok(entry?.file_name())).collect();
    let mut names = names?;
    names.sort();
    Ok(names)
}
