//! Whether what is on the disk is what somebody else has another name for.

use std::io::{BufRead, BufReader, Read};

use crate::{
    commands::Desk,
    fs::{Dir, c_name},
    left::{self, Here, State},
    model::{Content, Entry, Kind, Place, RelPath},
};

/// Larger files are not read to find out whose they are.
const READ_MAX_BYTES: u64 = 32 << 20;

/// What is there, by the name that one of `ends` has for the same bytes: the private store and the
/// repository name them differently, and which of the two has them may have changed.
pub(super) fn named_alike(
    desk: &Desk,
    path: &RelPath,
    now: Entry,
    ends: [Option<Entry>; 2],
) -> Entry {
    let Some(content) = now.content.filter(|_| now.kind == Kind::File) else { return now };
    let elsewhere = |end: &Entry| {
        end.kind == Kind::File && end.content.is_some_and(|end| end.place != content.place)
    };
    let mut ends = ends.into_iter().flatten().filter(elsewhere);
    let alike = ends.find(|end| end.content.is_some_and(|end| is_there(desk, path, &end)));
    alike.map_or(now, |end| Entry { content: end.content, ..now })
}

/// Whether the file at `path` has just these bytes.
fn is_there(desk: &Desk, path: &RelPath, content: &Content) -> bool {
    let (Some(here), Ok(held)) = (open(desk, path), desk.store.open(content)) else { return false };
    let (mut here, mut held) = (BufReader::new(here), BufReader::new(held));
    loop {
        let (Ok(a), Ok(b)) = (here.fill_buf(), held.fill_buf()) else { return false };
        let length = a.len().min(b.len());
        if a[..length] != b[..length] || a.is_empty() != b.is_empty() {
            return false;
        }
        if length == 0 {
            return true;
        }
        here.consume(length);
        held.consume(length);
    }
}

fn open(desk: &Desk, path: &RelPath) -> Option<std::fs::File> {
    let parent = Dir::open(desk.root.path()).ok()?.parent_of(path).ok()?;
    Some(parent.open_file(&c_name(path.name()).ok()?).ok()?.0)
}

/// The bytes of the file at `path`, unless it is large.
pub(super) fn bytes_now(desk: &Desk, path: &RelPath) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    open(desk, path)?.take(READ_MAX_BYTES + 1).read_to_end(&mut bytes).ok()?;
    Some(bytes).filter(|bytes| bytes.len() as u64 <= READ_MAX_BYTES)
}

/// The bytes of a file of a checkpoint, unless it is large.
pub(super) fn bytes_then(desk: &Desk, entry: &Entry) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let content = entry.content.filter(|_| entry.kind == Kind::File)?;
    desk.store.open(&content).ok()?.take(READ_MAX_BYTES + 1).read_to_end(&mut bytes).ok()?;
    Some(bytes).filter(|bytes| bytes.len() as u64 <= READ_MAX_BYTES)
}

/// What is at a path now, to be compared with what an agent left there.
pub(super) struct Present<'a> {
    pub(super) desk: &'a Desk,
    pub(super) path: &'a RelPath,
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
            (_, Some(content), Some(id), _) if content.place == Place::Store => content.id == id,
            (Kind::File, _, _, Some(sha)) => {
                bytes_now(self.desk, self.path).is_some_and(|bytes| left::digest(&bytes) == *sha)
            }
            (_, _, _, _) => false,
        }
    }

    fn is_likely(&self) -> bool {
        self.likely.is_some_and(|likely| {
            let contents = [likely, self.now].map(|entry| entry.content.map(|content| content.id));
            likely.kind == self.now.kind
                && (self.now.kind == Kind::Directory || contents[0] == contents[1])
        })
    }
}
