//! Everything in a `.git` but its objects: a listing, and in it the bytes of the small files. One
//! private object, so that a sync or two put all of it on the disk.
//!
//! Hides what is small: most of a `.git` is hooks, refs and a line or two in each of its files.

use std::{
    collections::BTreeMap,
    fs::{File, OpenOptions},
    io::{self, Cursor, Read},
    os::unix::fs::OpenOptionsExt,
    path::Path,
};

use rustix::fs::OFlags;

use crate::{
    error::Result,
    model::{Content, ContentId, Place},
    store::{
        listing::{self, Line, Listing},
        objects::{Batch, Objects, id_of},
    },
};

/// A hook or a ref. What is larger has an object of its own, which the next state may share.
const SMALL_MAX_BYTES: u64 = 8 << 10;

/// What there is in repositories but their objects, by paths below the root.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::store) struct GitState {
    /// Every file, link and directory.
    pub(in crate::store) listing: Listing,
    /// The bytes of the small ones.
    small: BTreeMap<ContentId, Vec<u8>>,
}

impl GitState {
    /// Reads the one stored as `id`.
    pub(in crate::store) fn read(objects: &Objects, id: &ContentId) -> Result<Self> {
        Self::parse(id, &objects.read(id)?)
    }

    /// Reads the text stored as `id`.
    pub(in crate::store) fn parse(id: &ContentId, text: &[u8]) -> Result<Self> {
        let (listing, small) = listing::parse_with(id, text)?;
        Ok(Self { listing, small })
    }

    fn to_text(&self) -> String {
        listing::to_text_with(&self.listing, &self.small)
    }

    /// The id it has once it is stored.
    pub(in crate::store) fn id(&self) -> ContentId {
        id_of(self.to_text().as_bytes())
    }

    pub(super) fn put_into(&self, batch: &mut Batch<'_>) -> Result<ContentId> {
        batch.put_bytes(self.to_text().as_bytes())
    }

    /// The objects it needs beside its own.
    pub(in crate::store) fn objects(&self) -> impl Iterator<Item = ContentId> {
        let contents = self.listing.values().filter_map(|line| line.entry.content);
        contents.map(|content| content.id).filter(|id| !self.small.contains_key(id))
    }

    pub(super) fn add(&mut self, name: &[u8], line: Line) {
        self.listing.insert(name.to_vec(), line);
    }

    /// Keeps bytes that are few.
    pub(super) fn keep(&mut self, bytes: Vec<u8>) -> Content {
        let id = id_of(&bytes);
        self.small.insert(id, bytes);
        Content { id, place: Place::Private }
    }

    /// Keeps the bytes of a file, in `batch` if they are many. `None` if it cannot be read.
    pub(super) fn keep_file(
        &mut self,
        batch: &mut Batch<'_>,
        path: &Path,
        size: u64,
    ) -> Result<Option<(Content, u64)>> {
        let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
        let Ok(file) = OpenOptions::new().read(true).custom_flags(flags).open(path) else {
            return Ok(None);
        };
        if size <= SMALL_MAX_BYTES
            && let Some(bytes) = read_small(&file).ok().flatten()
        {
            let size = bytes.len() as u64;
            return Ok(Some((self.keep(bytes), size)));
        }
        // It may have grown; then it was read in part.
        let Ok(file) = OpenOptions::new().read(true).custom_flags(flags).open(path) else {
            return Ok(None);
        };
        let taken = batch.put_file(&file, size)?.ok();
        Ok(taken.map(|(id, size)| (Content { id, place: Place::Private }, size)))
    }

    /// The bytes of one of its files or links.
    pub(super) fn open(&self, objects: &Objects, id: &ContentId) -> Result<Box<dyn Read>> {
        match self.small.get(id) {
            Some(bytes) => Ok(Box::new(Cursor::new(bytes.clone()))),
            None => objects.open(id),
        }
    }
}

/// The bytes of a file; `None` if they are many.
fn read_small(file: &File) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    file.take(SMALL_MAX_BYTES + 1).read_to_end(&mut bytes)?;
    Ok(Some(bytes).filter(|bytes| bytes.len() as u64 <= SMALL_MAX_BYTES))
}
