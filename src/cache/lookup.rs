//! Finds the row of one path in a cache file without reading the rest of it.
//!
//! Behind the table, the file has an index: a hash table of the paths of all entries. A look-up reads
//! the counts, a window of the index and one row. The checksum of a row covers its path, so a row
//! that is damaged, half written or another path's is not believed; the index only says where to
//! look. All hashes start with a random number in the file, so names cannot be chosen to collide.

use std::{
    fs::File,
    hash::{DefaultHasher, Hasher},
    os::unix::fs::FileExt,
    path::Path,
};

use super::{
    CHECKSUM_BYTES, COUNTS_BYTES, ENTRY_BYTES, NumberReader, TableCounts, TableRow, read_entry,
};
use crate::{fs, model::split_path};

/// The hash of a path and the number of its entry plus one; all zeros in a free slot.
pub(super) const SLOT_BYTES: usize = 8;
/// How many slots a look-up reads, which limits how far from its own slot an entry can be: by a hundred
/// or two in the largest table. One that were pushed further would not be in the index.
const WINDOW: usize = 512;
/// How many rows are tried. Of 500,000 paths, some thirty share their hash with one other.
const TRIES: usize = 4;

/// A cache file in which single paths are looked up.
#[derive(Debug)]
pub struct Lookup {
    file: File,
    counts: TableCounts,
}

impl Lookup {
    /// Opens the cache at `path`. `None` if it is missing or of another format.
    pub fn open(path: &Path) -> Option<Self> {
        // That it is a regular file need not be asked: nothing else can be read at an offset and
        // begins like a cache.
        let file = fs::open_to_read(path).ok()?;
        let mut start = [0; COUNTS_BYTES];
        file.read_exact_at(&mut start, 0).ok()?;
        Some(Self { file, counts: TableCounts::read(&start)? })
    }

    /// The entry at `path` below the root. `None` also in any doubt.
    pub fn row<'p>(&self, path: &'p [u8]) -> Option<TableRow<'p>> {
        let (dir, name) = split_path(path);
        let hashes = PathHashes::of(self.counts.seed, dir).entry(name);
        let mut window = [0; WINDOW * SLOT_BYTES];
        let (first, count) = window_of(hashes.slot(), &self.counts)?;
        let window = &mut window[..count * SLOT_BYTES];
        let at = self.counts.names_end()?.checked_add(first * SLOT_BYTES)?;
        self.file.read_exact_at(window, at as u64).ok()?;
        let slots = window.chunks_exact(SLOT_BYTES).map(read_slot);
        let taken = slots.map_while(|(hash, number)| Some((hash, number.checked_sub(1)?)));
        let candidates = taken.filter(|(hash, _)| *hash == hashes.slot()).take(TRIES);
        let mut rows = candidates.filter_map(|(_, number)| self.entry(number as usize));
        let row = rows.find(|row| {
            let (known, checksum) = row.split_at(ENTRY_BYTES - CHECKSUM_BYTES);
            hashes.checksum(known).to_le_bytes() == *checksum
        })?;
        Some(read_entry(&row, |_, _| name))
    }

    /// The bytes of an entry.
    fn entry(&self, number: usize) -> Option<[u8; ENTRY_BYTES]> {
        let mut row = [0; ENTRY_BYTES];
        let at = (number < self.counts.entries).then(|| self.counts.entry_at(number))?;
        self.file.read_exact_at(&mut row, at as u64).ok()?;
        Some(row)
    }
}

/// What all hashes of one path, or of all paths in one directory, begin with. The algorithm may change with the
/// compiler; then nothing is found until the next scan writes the file anew.
#[derive(Clone)]
pub(super) struct PathHashes(DefaultHasher);

impl PathHashes {
    /// Of the entries of `dir`.
    pub(super) fn of(seed: u64, dir: &[u8]) -> Self {
        let mut hasher = DefaultHasher::new();
        hasher.write_u64(seed);
        hasher.write(dir);
        hasher.write_u8(b'/');
        Self(hasher)
    }

    /// Of the entry called `name`.
    pub(super) fn entry(&self, name: &[u8]) -> Self {
        let mut hasher = self.0.clone();
        hasher.write(name);
        Self(hasher)
    }

    /// Where the path is in the index.
    pub(super) fn slot(&self) -> u32 {
        (self.0.finish() >> 32) as u32
    }

    /// The checksum of the path and of what its row says.
    pub(super) fn checksum(&self, row: &[u8]) -> u32 {
        let mut hasher = self.0.clone();
        hasher.write(row);
        (hasher.finish() >> 32) as u32
    }
}

/// How many slots the index of a table with so many entries has, and how many of them are some
/// entry's own.
fn slots_of(entries: usize) -> Option<(usize, usize)> {
    let own = entries.checked_add(entries / 4)?.checked_add(1)?;
    Some((own.checked_add(entries.min(WINDOW))?, own))
}

/// The size of the index of a table with so many entries.
pub(super) fn index_bytes(entries: usize) -> Option<usize> {
    slots_of(entries)?.0.checked_mul(SLOT_BYTES)
}

/// The first slot in which an entry can be, and in how many.
fn window_of(hash: u32, counts: &TableCounts) -> Option<(usize, usize)> {
    let (slots, own) = slots_of(counts.entries)?;
    let first = usize::try_from((u128::from(hash) * own as u128) >> 32).ok()?;
    Some((first, WINDOW.min(slots - first)))
}

fn read_slot(slot: &[u8]) -> (u32, u32) {
    let mut slot = NumberReader(slot);
    (slot.u32(), slot.u32())
}

/// The index of a table, from the hashes of the paths of its entries in their order.
pub(super) fn build(hashes: &[u32], counts: &TableCounts) -> Vec<u8> {
    let mut index = vec![0; index_bytes(hashes.len()).unwrap_or(0)];
    for (number, hash) in (1u32..).zip(hashes) {
        let Some((first, count)) = window_of(*hash, counts) else { continue };
        let window = &mut index[first * SLOT_BYTES..][..count * SLOT_BYTES];
        let mut slots = window.chunks_exact_mut(SLOT_BYTES);
        if let Some(slot) = slots.find(|slot| slot[4..] == [0; 4]) {
            slot[..4].copy_from_slice(&hash.to_le_bytes());
            slot[4..].copy_from_slice(&number.to_le_bytes());
        }
    }
    index
}
