//! Whether what is on the disk is what somebody else has another name for.

use std::{io::Read, path::Path};

use super::outside::top;
use crate::{
    left::{self, Here, Side, State},
    model::{Entry, Kind, RelPath},
    project::Desk,
    store::{self, Source, naming},
};

/// Larger files are not read to find out whose they are.
const READ_MAX_BYTES: u64 = 32 << 20;

/// The bytes of the file at `path`, unless it is large.
pub(crate) fn bytes_now(desk: &Desk, path: &RelPath) -> Option<Vec<u8>> {
    small(desk.root.path(), path, Kind::File)
}

fn small(top: &Path, path: &RelPath, kind: Kind) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let file = naming::on_disk(top, path, kind)?;
    file.take(READ_MAX_BYTES + 1).read_to_end(&mut bytes).ok()?;
    Some(bytes).filter(|bytes| bytes.len() as u64 <= READ_MAX_BYTES)
}

/// The bytes of a file of a checkpoint, unless it is large.
pub(crate) fn bytes_then(desk: &Desk, entry: &Entry) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let content = entry.content.filter(|_| entry.kind == Kind::File)?;
    desk.store.open(&content).ok()?.take(READ_MAX_BYTES + 1).read_to_end(&mut bytes).ok()?;
    Some(bytes).filter(|bytes| bytes.len() as u64 <= READ_MAX_BYTES)
}

/// What is at a path now, to be compared with what an agent left there.
pub(super) struct Present<'a> {
    pub(super) desk: &'a Desk,
    pub(super) path: &'a RelPath,
    pub(super) side: Side,
    pub(super) now: Entry,
    /// What a later checkpoint of the same session has there.
    pub(super) likely: Option<Entry>,
}

impl Here for Present<'_> {
    fn is(&self, state: &State) -> bool {
        if state.kind() != Some(self.now.kind) || state.permissions != self.now.permissions {
            return false;
        }
        match (self.now.kind, self.now.content, state.id(), &state.sha) {
            (Kind::Directory, ..) => true,
            // The store that named it may have been one of another kind.
            (kind, Some(content), Some(id), _) => {
                let bytes = || small(top(self.desk, self.side), self.path, kind);
                content.id == id || bytes().is_some_and(|bytes| naming::is_name_of(&id, &bytes))
            }
            (Kind::File, _, _, Some(sha)) => {
                let bytes = small(top(self.desk, self.side), self.path, Kind::File);
                bytes.is_some_and(|bytes| left::digest(&bytes) == *sha)
            }
            (_, _, _, _) => false,
        }
    }

    fn is_directory(&self) -> bool {
        self.now.kind == Kind::Directory
    }

    fn is_likely(&self) -> bool {
        let store = self.desk.store.as_ref();
        let now = store::named_as(store, self.path, self.now, self.likely, Source::Disk);
        self.likely.is_some_and(|likely| {
            let contents = [likely, now].map(|entry| entry.content.map(|content| content.id));
            likely.kind == now.kind && (now.kind == Kind::Directory || contents[0] == contents[1])
        })
    }
}
