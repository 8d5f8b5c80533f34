//! Compares two trees of a root even if their content ids are of different kinds.
//!
//! A root that became a git repository, or stopped being one, has checkpoints with git's blob ids
//! and others with our own. Ids of different kinds cannot be compared, so the contents are compared
//! instead. No other module does this.

use std::{
    io::{BufRead, BufReader, Cursor, Read},
    path::Path,
};

use gix::hash::Kind as HashKind;

use super::{Store, directory_of, objects::id_of, plumbing::repo::blob_name};
use crate::{
    error::Result,
    fs::{Dir, c_name},
    model::{ContentId, Entry, Kind, RelPath, Tree},
    plan::{self, Change},
};

/// Where the content of an entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContentSource {
    /// In the store.
    Saved,
    /// On the disk: the entry comes from a scan.
    Disk,
}

/// Finds every path that differs between a checkpoint and `after`, as [`plan::changes`] does.
///
/// # Errors
///
/// Fails if a directory cannot be read.
pub fn changes(
    store: &dyn Store,
    before: &Tree,
    after: &Tree,
    source: ContentSource,
) -> Result<Vec<Change>> {
    let mut read = |tree: &Tree, id: &_| directory_of(store, tree, id);
    let mut changes = plan::changes(before, after, &mut read)?;
    changes.retain_mut(|change| {
        let Change { path, before, after } = change;
        *after = after.map(|after| with_stored_id(store, path, after, *before, source));
        !change.is_none()
    });
    Ok(changes)
}

/// Returns `entry` with the id of `stored`, an entry of a checkpoint, if both have the same
/// content.
pub fn with_stored_id(
    store: &dyn Store,
    path: &RelPath,
    entry: Entry,
    stored: Option<Entry>,
    source: ContentSource,
) -> Entry {
    let Some(stored) = stored.filter(|it| it.kind == entry.kind && it.kind.has_content()) else {
        return entry;
    };
    let (Some(here), Some(there)) = (entry.content, stored.content) else { return entry };
    let is_same = || {
        let here = match source {
            ContentSource::Saved => store.open(&here).ok(),
            ContentSource::Disk => on_disk(store.root().path(), path, entry.kind),
        };
        here.zip(store.open(&there).ok()).is_some_and(|(a, b)| has_same_bytes(a, b))
    };
    if here.is_comparable_to(&there) || !is_same() {
        return entry;
    }
    Entry { content: Some(there), ..entry }
}

/// Whether `id` is the id of `bytes`, of either kind.
pub fn is_name_of(id: &ContentId, bytes: &[u8]) -> bool {
    let kinds = [HashKind::Sha1, HashKind::Sha256];
    *id == id_of(bytes)
        || kinds.into_iter().any(|hash| blob_name(hash, bytes).is_ok_and(|it| it == *id))
}

/// The name that git gives a blob with these bytes, in hex and by SHA-1.
///
/// # Errors
///
/// Fails for bytes of a known SHA-1 collision attack.
pub fn git_name(bytes: &[u8]) -> Result<String> {
    crate::store::plumbing::repo::name(HashKind::Sha1, gix::objs::Kind::Blob, bytes)
        .map(|id| id.to_string())
}

/// Opens the file at `path` below `root`, if it is of type `kind`.
pub fn on_disk(root: &Path, path: &RelPath, kind: Kind) -> Option<Box<dyn Read>> {
    let (parent, name) = (Dir::open(root).ok()?.parent_of(path).ok()?, c_name(path.name()).ok()?);
    match kind {
        Kind::File => Some(Box::new(parent.open_file(&name).ok()?.0)),
        Kind::Link => Some(Box::new(Cursor::new(parent.read_link(&name).ok()?))),
        _ => None,
    }
}

/// Whether two sources yield the same bytes, as far as both can be read.
pub fn has_same_bytes(a: impl Read, b: impl Read) -> bool {
    let (mut a, mut b) = (BufReader::new(a), BufReader::new(b));
    loop {
        let (Ok(left), Ok(right)) = (a.fill_buf(), b.fill_buf()) else { return false };
        let length = left.len().min(right.len());
        if left[..length] != right[..length] || left.is_empty() != right.is_empty() {
            return false;
        }
        if length == 0 {
            return true;
        }
        a.consume(length);
        b.consume(length);
    }
}
