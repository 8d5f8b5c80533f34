//! Finds where files that a checkpoint left out have been moved. Only their size is known, so a match
//! is a guess.

use std::{
    collections::BTreeMap,
    ffi::OsStr,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use super::left_out::{has_changed, is_gone};
use crate::{
    fs::stat_path,
    model::{Checkpoint, DirPath, Kind, RelPath, Root, Skipped, Stamp, Tree},
    plan::ByPath,
    scan::Scan,
    store::{self, Store},
};

/// What a checkpoint left out and is gone from its place since.
pub(super) fn gone<'a>(root: &Root, then: &'a Checkpoint) -> Vec<&'a Skipped> {
    let is_gone =
        |it: &&Skipped| it.reason.matters() && is_gone(root, it) && has_changed(root, then, it);
    then.skipped.iter().filter(is_gone).collect()
}

/// Where each of `gone`, which `checkpoint` left out, probably is now: a file of the same size that was not
/// modified since, and that was not at its path in `then`. A file of the same name is preferred. Outside the
/// root, only paths that the scan looked at are found; these are absolute.
pub fn moved<'a>(
    store: &dyn Store,
    scan: &Scan,
    (checkpoint, then): (&Checkpoint, &Tree),
    gone: impl Iterator<Item = &'a Skipped>,
) -> BTreeMap<Vec<u8>, PathBuf> {
    let gone: Vec<&Skipped> = gone.filter(|gone| gone.size > 0).collect();
    let (mut found, mut moved) = (Vec::new(), BTreeMap::new());
    if gone.is_empty() {
        return moved;
    }
    let taken_at = checkpoint.taken_ns();
    let fits = |stamp: &Stamp| {
        let is_old = stamp.kind() == Some(Kind::File) && stamp.mtime_ns <= taken_at;
        is_old && gone.iter().any(|gone| gone.size == stamp.size)
    };
    let left_out = ByPath::of(&checkpoint.skipped);
    let is_new = |path: &RelPath, size: u64| {
        let was = checkpoint.skipped.iter().find(|it| it.path == path.as_bytes());
        let is_other = was.is_some_and(|was| was.size != size);
        (is_other || left_out.covering(path).is_none())
            && store::entry_at(store, then, path).is_ok_and(|entry| entry.is_none())
    };
    scan.each(|dir, row| {
        if fits(&row.stamp) {
            let path = RelPath::from_bytes(&DirPath(dir.to_vec()).join(row.name)).ok();
            let path = path.filter(|path| is_new(path, row.stamp.size));
            found.extend(path.map(|path| (row.stamp.size, path.as_path().to_owned())));
        }
    });
    let unheld = scan.unheld.iter().map(|it| Path::new(OsStr::from_bytes(&it.path)));
    let outside = scan.victims.iter().filter_map(|victim| victim.path.outside());
    for path in outside.chain(unheld.filter(|path| path.is_absolute())) {
        let stamp = stat_path(path).ok().filter(|_| !then.outside.contains_key(path));
        found.extend(stamp.filter(&fits).map(|stamp| (stamp.size, path.to_owned())));
    }
    for is_named in [true, false] {
        for gone in &gone {
            let name = gone.path.rsplit(|byte| *byte == b'/').next();
            let fits = |(size, path): &(u64, PathBuf)| {
                let is_same = path.file_name().map(OsStr::as_bytes) == name;
                *size == gone.size && (!is_named || is_same)
            };
            let at = found.iter().position(fits).filter(|_| !moved.contains_key(&gone.path));
            moved.extend(at.map(|at| (gone.path.clone(), found.remove(at).1)));
        }
    }
    moved
}
