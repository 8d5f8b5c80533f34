//! Finds where files are now that a checkpoint left out and that are gone from their places. Of what
//! was not held only the size is known, so it can only seem so.

use std::collections::BTreeMap;

use super::left_out::{has_changed, is_gone};
use crate::{
    model::{Checkpoint, DirPath, Kind, RelPath, Root, Skipped, Tree},
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

/// Where each of `gone`, which `checkpoint` left out, seems to be: in a file of its size that was not
/// modified since and that was not there then, as far as `then` tells. One of the same name is
/// preferred.
pub fn moved<'a>(
    store: &dyn Store,
    scan: &Scan,
    (checkpoint, then): (&Checkpoint, &Tree),
    gone: impl Iterator<Item = &'a Skipped>,
) -> BTreeMap<Vec<u8>, RelPath> {
    let gone: Vec<&Skipped> = gone.filter(|gone| gone.size > 0).collect();
    let (mut found, mut moved) = (Vec::new(), BTreeMap::new());
    if gone.is_empty() {
        return moved;
    }
    let taken_at = checkpoint.taken_at.timestamp_nanos_opt().unwrap_or(0);
    let left_out = ByPath::of(&checkpoint.skipped);
    let is_new = |path: &RelPath| {
        left_out.covering(path).is_none()
            && store::entry_at(store, then, path).is_ok_and(|entry| entry.is_none())
    };
    scan.each(|dir, row| {
        let is_old = row.kind() == Some(Kind::File) && row.stamp.mtime_ns <= taken_at;
        if is_old && gone.iter().any(|gone| gone.size == row.stamp.size) {
            let path = RelPath::from_bytes(&DirPath(dir.to_vec()).join(row.name)).ok();
            found.extend(path.filter(&is_new).map(|path| (row.stamp.size, path)));
        }
    });
    for is_named in [true, false] {
        for gone in &gone {
            let name = gone.path.rsplit(|byte| *byte == b'/').next();
            let fits = |(size, path): &(u64, RelPath)| {
                *size == gone.size && (!is_named || Some(path.name()) == name)
            };
            let at = found.iter().position(fits).filter(|_| !moved.contains_key(&gone.path));
            moved.extend(at.map(|at| (gone.path.clone(), found.remove(at).1)));
        }
    }
    moved
}
