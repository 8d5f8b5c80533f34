//! Whether something that a checkpoint left out still exists, judged by its name and times.

use std::{
    ffi::OsStr,
    io::{self, ErrorKind},
    os::unix::ffi::OsStrExt,
};

use crate::{
    fs::stat_path,
    model::{Checkpoint, Kind, Root, Skipped, Stamp},
};

/// Whether what a checkpoint left out is gone, or was changed after it: only then is it worth a
/// word.
pub fn has_changed(root: &Root, checkpoint: &Checkpoint, skipped: &Skipped) -> bool {
    let taken_at = checkpoint.taken_ns();
    match there(root, skipped) {
        // What was elsewhere until now may be older.
        Ok(stamp) if is_link(&stamp) || stamp.kind() == Some(Kind::File) => {
            stamp.mtime_ns > taken_at || skipped.size > 0 && stamp.size != skipped.size
        }
        Ok(stamp) => stamp.mtime_ns > taken_at,
        Err(_) => true,
    }
}

/// Whether what a checkpoint left out, and what has changed since, is gone: there is nothing, or a
/// symlink stands in its place.
pub fn is_gone(root: &Root, skipped: &Skipped) -> bool {
    match there(root, skipped) {
        Ok(stamp) => is_link(&stamp),
        Err(err) => matches!(err.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory),
    }
}

fn there(root: &Root, skipped: &Skipped) -> io::Result<Stamp> {
    stat_path(&root.path().join(OsStr::from_bytes(&skipped.path)))
}

fn is_link(stamp: &Stamp) -> bool {
    stamp.kind() == Some(Kind::Link)
}
