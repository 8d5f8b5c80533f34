//! How much of the repository is there for nothing of ours but some checkpoints.

use std::collections::HashSet;

use gix::{ObjectId, objs::tree::EntryKind, odb::pack::Find as _};

use super::{
    GitStore,
    repo::{Odb, Repo},
    tree,
};
use crate::{error::Result, model::CheckpointId, store::record};

/// The bytes of what `ids` alone need: as they lie on the disk. What the user's own commits need
/// as well is among it, so it is no more than an estimate.
pub(super) fn bytes(store: &GitStore, ids: &[CheckpointId]) -> Result<u64> {
    let repo = store.repo.refreshed();
    // Places in packs are only told while the packs stay open.
    let mut odb = repo.odb()?.clone();
    odb.prevent_pack_unload();
    let there = store.there(&repo, &record::read_all(&store.state)?)?;
    let mut needed: HashSet<ObjectId> = HashSet::new();
    for id in there.iter().map(|there| there.id).filter(|id| !ids.contains(id)) {
        if let Some(tree) = store.refs.checkpoint(&repo, id)? {
            below(&repo, tree, &mut needed, &mut |_| ());
        }
    }
    if let Some(anchor) = store.refs.anchor(&repo)? {
        below(&repo, anchor, &mut needed, &mut |_| ());
    }
    let mut bytes = 0;
    for id in ids {
        if let Some(tree) = store.refs.checkpoint(&repo, *id)? {
            below(&repo, tree, &mut needed, &mut |id| bytes += room(&repo, &odb, id));
        }
    }
    Ok(bytes)
}

/// Shows `each` object of a tree that was not seen yet. What cannot be read is for `check` to say.
fn below(repo: &Repo, top: ObjectId, seen: &mut HashSet<ObjectId>, each: &mut dyn FnMut(ObjectId)) {
    let mut unread = vec![top];
    while let Some(id) = unread.pop() {
        if !seen.insert(id) {
            continue;
        }
        each(id);
        for (_, kind, id) in tree::entries(repo, &id).unwrap_or_default() {
            match kind {
                EntryKind::Tree => unread.push(id),
                EntryKind::Commit => (),
                EntryKind::Blob | EntryKind::BlobExecutable | EntryKind::Link => {
                    if seen.insert(id) {
                        each(id);
                    }
                }
            }
        }
    }
}

/// The room of one object: its file, or its part of a pack.
fn room(repo: &Repo, odb: &Odb, id: ObjectId) -> u64 {
    let hex = id.to_hex().to_string();
    let loose = repo.objects().join(&hex[..2]).join(&hex[2..]);
    if let Ok(found) = std::fs::symlink_metadata(loose) {
        return std::os::unix::fs::MetadataExt::blocks(&found) * 512;
    }
    let found = odb.location_by_oid(&id, &mut Vec::new());
    found.ok().flatten().map_or(0, |location| location.entry_size as u64)
}
