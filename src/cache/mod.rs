//! The cache of a root's last scan, and its file format.
//!
//! The cache only saves time: if anything is wrong with it, it counts as absent. The table in the file is
//! read whole and used in place; a [`TableRow`] borrows from it. Single paths are looked up without reading it
//! ([`Lookup`]).

mod lookup;
mod write;

use std::{
    fs::File,
    io::{Read, Seek},
    os::unix::fs::FileExt,
    path::Path,
    sync::Arc,
};

pub use lookup::Lookup;
use lookup::PathHashes;
pub use write::{DirVisitor, NewTable, TableDirs};

use crate::{
    fs,
    model::{
        CheckpointId, ContentId, DefaultModes, DirPath, Fresh, Kind, Marks, ScanEntry, SkipReason,
        Stamp, in_tree_order,
    },
};

/// Changes with every change of the layout. An older cache is not migrated; the next scan writes a
/// new one.
const MAGIC: &[u8; 8] = b"bhcache2";
/// Mtime, ctime, inode, size, mode.
const STAMP_BYTES: usize = 36;
const ID_BYTES: usize = 32;
/// Magic, checksum and padding, three counts, seed.
const COUNTS_BYTES: usize = 8 + 8 + 4 * 8;
/// The same, then [`Facts`].
const HEADER_BYTES: usize = COUNTS_BYTES + FACTS_BYTES;
const FACTS_BYTES: usize = 6 * ID_BYTES + STAMP_BYTES + 3 * 4 + 3 * 8;
/// Stamp, path offset, path length, first entry, number of entries, marks and padding.
const DIR_BYTES: usize = STAMP_BYTES + 4 * 4 + 4;
/// Stamp, name offset, name length, marks, skip reason, id, checksum of the path and of all these.
const ENTRY_BYTES: usize = STAMP_BYTES + 4 + 2 + 1 + 1 + ID_BYTES + CHECKSUM_BYTES;
const CHECKSUM_BYTES: usize = 4;
/// No scanned root comes near it. It limits what a damaged length can make us allocate.
const SIZE_MAX_BYTES: u64 = 2 << 30;

const TRACKED: u8 = 1;
const PRIVATE: u8 = 2;
const RACY: u8 = 4;
const IGNORED: u8 = 8;

/// What a table stores besides its rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// The anchor of the store when the table was written.
    pub anchor: Option<ContentId>,
    /// The id of the root's directory.
    pub top: Option<ContentId>,
    /// A digest of everything outside the root's own ignore files that decides what is captured.
    pub rules: Option<ContentId>,
    /// A digest of the set of tracked paths.
    pub tracked: Option<ContentId>,
    /// The tree of git's index, as the store names it.
    pub staged: Option<ContentId>,
    /// The stamp of git's index when it was read.
    pub index: Stamp,
    /// The permissions most files have.
    pub default_modes: DefaultModes,
    /// How many files are held.
    pub files: u64,
    /// Whether anything was left out for lack of time.
    pub partial: bool,
    /// The checkpoint that holds what the rows say, and a digest of what else it depends on.
    pub latest: Option<(CheckpointId, ContentId)>,
}

/// The table of a cache file, parsed but not copied, not even by `clone`.
#[derive(Clone)]
pub struct ScanTable {
    bytes: Arc<Vec<u8>>,
    facts: Facts,
    counts: TableCounts,
    /// Where the names begin.
    names_at: usize,
}

/// How much of everything a cache file has, and so where it is.
#[derive(Clone, Copy, Debug)]
struct TableCounts {
    dirs: usize,
    entries: usize,
    /// In bytes.
    names: usize,
    /// What the hashes of paths start with.
    seed: u64,
}

impl TableCounts {
    /// Reads the beginning of a cache file; `None` if it is of another format.
    fn read(start: &[u8]) -> Option<Self> {
        let mut start = NumberReader(start.get(..COUNTS_BYTES)?);
        if start.take(8) != MAGIC {
            return None;
        }
        start.take(8);
        let mut count = || usize::try_from(start.u64()).ok();
        let (dirs, entries, names) = (count()?, count()?, count()?);
        Some(Self { dirs, entries, names, seed: start.u64() })
    }

    /// Where an entry begins.
    fn entry_at(&self, number: usize) -> usize {
        dir_at(self.dirs) + number * ENTRY_BYTES
    }

    /// Where the names begin; `None` if no file is that large.
    fn names_at(&self) -> Option<usize> {
        let dirs = self.dirs.checked_mul(DIR_BYTES)?;
        let entries = self.entries.checked_mul(ENTRY_BYTES)?;
        HEADER_BYTES.checked_add(dirs)?.checked_add(entries)
    }

    /// Where the table ends and the index begins.
    fn names_end(&self) -> Option<usize> {
        self.names_at()?.checked_add(self.names)
    }

    /// The size of the file.
    fn end(&self) -> Option<usize> {
        self.names_end()?.checked_add(lookup::index_bytes(self.entries)?)
    }
}

/// Where a directory begins in the file.
fn dir_at(number: usize) -> usize {
    HEADER_BYTES + number * DIR_BYTES
}

/// One name in a directory, from a table or a scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableRow<'a> {
    /// The name.
    pub name: &'a [u8],
    /// What the system said.
    pub stamp: Stamp,
    /// Its bytes, or its directory, as the store names them.
    pub content: Option<ContentId>,
    /// What is known of it.
    pub marks: Marks,
    /// Why it is left out, if it is.
    pub skipped: Option<SkipReason>,
}

/// One directory of a table.
#[derive(Clone, Copy)]
pub struct DirRow<'a> {
    /// Its path below the root; empty for the root.
    pub path: &'a [u8],
    /// Its stamp before it was listed.
    pub stamp: Stamp,
    /// Whether that stamp is racy and proves nothing.
    pub racy: bool,
    table: &'a ScanTable,
    first: usize,
    count: usize,
}

impl TableRow<'_> {
    /// What sort of file it is.
    pub fn kind(&self) -> Option<Kind> {
        self.stamp.kind()
    }

    /// The same, with a name of its own.
    pub fn to_found(&self) -> ScanEntry {
        ScanEntry {
            name: self.name.to_vec(),
            stamp: self.stamp,
            content: self.content,
            marks: self.marks,
            skipped: self.skipped,
        }
    }
}

impl<'a> From<&'a ScanEntry> for TableRow<'a> {
    fn from(found: &'a ScanEntry) -> Self {
        Self {
            name: &found.name,
            stamp: found.stamp,
            content: found.content,
            marks: found.marks,
            skipped: found.skipped,
        }
    }
}

impl<'a> DirRow<'a> {
    /// The number of its first entry in the table.
    pub fn first(&self) -> usize {
        self.first
    }

    /// What is in it, by the bytes of the names.
    pub fn rows(&self) -> impl ExactSizeIterator<Item = TableRow<'a>> + use<'a> {
        let table = self.table;
        (self.first..self.first + self.count).map(|number| table.row(number))
    }

    /// The entry called `name`.
    pub fn row(&self, name: &[u8]) -> Option<TableRow<'a>> {
        let numbers = self.first..self.first + self.count;
        let at = partition(numbers, |number| self.table.row(number).name < name);
        (at < self.first + self.count).then(|| self.table.row(at)).filter(|row| row.name == name)
    }
}

impl std::fmt::Debug for ScanTable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ScanTable({} directories, {} entries)", self.counts.dirs, self.counts.entries)
    }
}

impl ScanTable {
    /// Reads the cache at `path`. `None` if it is missing or damaged.
    pub fn load(path: &Path) -> Option<Self> {
        let (file, stamp) = fs::open_regular(path).ok()?;
        let read = || read_table(&file, stamp.size).and_then(Self::parse);
        // Another process may have been writing into it, so it is read once more.
        read().or_else(read)
    }

    /// Whether the cache at `path` has this format and is damaged. A cache of another format counts
    /// as absent.
    pub fn is_damaged(path: &Path) -> bool {
        match fs::read_small(path, SIZE_MAX_BYTES) {
            Ok(Some(bytes)) if bytes.starts_with(b"bhcache") && !bytes.starts_with(MAGIC) => false,
            Ok(Some(bytes)) => !fs::is_lost(&bytes) && Self::parse(bytes).is_none(),
            Ok(None) => false,
            Err(_) => true,
        }
    }

    /// Reads only the facts of the cache at `path`, without verifying the checksum.
    pub fn facts_of(path: &Path) -> Option<Facts> {
        let header = fs::read_start(path, HEADER_BYTES).ok()?;
        TableCounts::read(&header)?;
        Some(Facts::read(&mut NumberReader(header.get(COUNTS_BYTES..HEADER_BYTES)?)))
    }

    /// Parses a cache file, or its table alone; `None` unless the table is complete and undamaged.
    pub fn parse(mut bytes: Vec<u8>) -> Option<Self> {
        let counts = TableCounts::read(&bytes)?;
        let (names_at, names_end) = (counts.names_at()?, counts.names_end()?);
        let is_whole = bytes.len() == names_end || Some(bytes.len()) == counts.end();
        if !is_whole {
            return None;
        }
        bytes.truncate(names_end);
        if bytes[8..16] != u64::from(crc32fast::hash(&bytes[16..])).to_le_bytes() {
            return None;
        }
        let facts = Facts::read(&mut NumberReader(&bytes[COUNTS_BYTES..HEADER_BYTES]));
        Some(Self { bytes: Arc::new(bytes), facts, counts, names_at })
    }

    /// What the table stores besides its rows.
    pub fn facts(&self) -> &Facts {
        &self.facts
    }

    /// The id of the root's directory.
    pub fn top(&self) -> Option<ContentId> {
        self.facts.top
    }

    /// How many directories it has.
    pub fn dir_count(&self) -> usize {
        self.counts.dirs
    }

    /// How many entries it has.
    pub fn entry_count(&self) -> usize {
        self.counts.entries
    }

    /// Every directory, in tree order.
    pub fn dirs(&self) -> impl ExactSizeIterator<Item = DirRow<'_>> {
        (0..self.counts.dirs).map(|number| self.dir(number))
    }

    /// The directory with this number, from 0 for the root.
    pub fn dir(&self, number: usize) -> DirRow<'_> {
        let mut row = self.dir_reader(number);
        let stamp = row.stamp();
        let (offset, length, first, count) = (row.u32(), row.u32(), row.u32(), row.u32());
        let racy = row.take(1)[0] & RACY != 0;
        let path = self.name(offset, length);
        // A damaged row must not point at entries that do not exist.
        let first = (first as usize).min(self.counts.entries);
        let count = (count as usize).min(self.counts.entries - first);
        DirRow { path, stamp, racy, table: self, first, count }
    }

    /// The directory at `path`.
    pub fn find_dir(&self, path: &[u8]) -> Option<DirRow<'_>> {
        let at = self.position(path);
        (at < self.counts.dirs).then(|| self.dir(at)).filter(|dir| dir.path == path)
    }

    /// The number of the first directory that does not come before `path`.
    pub fn position(&self, path: &[u8]) -> usize {
        partition(0..self.counts.dirs, |number| in_tree_order(self.dir(number).path, path).is_lt())
    }

    /// The entry with this number.
    #[inline]
    pub fn row(&self, number: usize) -> TableRow<'_> {
        let at = self.counts.entry_at(number);
        read_entry(&self.bytes[at..at + ENTRY_BYTES], |offset, length| self.name(offset, length))
    }

    /// Writes other facts into the cache at `path`, and `fresh` in place of the directories at those
    /// paths. Returns false, and writes nothing, if the file there is not this table or if the names in a directory
    /// have changed. The cost depends on what changed, but for the checksum.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be written; it may be damaged then.
    pub fn patch<'f>(
        &self,
        path: &Path,
        facts: &Facts,
        fresh: impl Iterator<Item = (&'f DirPath, &'f Fresh)>,
    ) -> std::io::Result<bool> {
        let Some(patches) = self.patches(facts, fresh) else { return Ok(false) };
        let file = fs::open_options().read(true).write(true).open(path)?;
        let mut start = [0; 16];
        if file.read_exact_at(&mut start, 0).is_err() || start != self.bytes[..16] {
            return Ok(false);
        }
        for (at, bytes) in patches {
            file.write_all_at(&bytes, at as u64)?;
        }
        Ok(true)
    }

    /// What [`ScanTable::patch`] writes, and where. The checksum is last.
    fn patches<'f>(
        &self,
        facts: &Facts,
        fresh: impl Iterator<Item = (&'f DirPath, &'f Fresh)>,
    ) -> Option<Vec<(usize, Vec<u8>)>> {
        let mut header = Vec::with_capacity(FACTS_BYTES);
        facts.write(&mut header);
        let (mut dirs, mut entries) = (vec![(COUNTS_BYTES, header)], Vec::new());
        for (path, fresh) in fresh {
            let number = self.position(&path.0);
            let dir = self.find_dir(&path.0)?;
            let is_same = dir.count == fresh.found.len()
                && dir.rows().zip(&fresh.found).all(|(row, found)| row.name == found.name);
            if !is_same {
                return None;
            }
            let at = dir_at(number);
            let mut row = Vec::with_capacity(DIR_BYTES);
            put_stamp(&mut row, &fresh.stamp);
            row.extend_from_slice(&self.bytes[at + STAMP_BYTES..at + DIR_BYTES - 4]);
            row.extend_from_slice(&[if fresh.racy { RACY } else { 0 }, 0, 0, 0]);
            dirs.push((at, row));
            entries.push((self.counts.entry_at(dir.first), self.rows_again(&dir, &fresh.found)));
        }
        // Directories are in tree order, and all of them before all entries.
        dirs.append(&mut entries);
        let checksum = self.checksum_with(&dirs)?;
        dirs.push((8, checksum.to_le_bytes().to_vec()));
        Some(dirs)
    }

    /// The rows of a directory with what was `found` in it; the names are the same.
    fn rows_again(&self, dir: &DirRow<'_>, found: &[ScanEntry]) -> Vec<u8> {
        let mut rows = Vec::with_capacity(found.len() * ENTRY_BYTES);
        let hashes = PathHashes::of(self.counts.seed, dir.path);
        for (number, found) in (dir.first..).zip(found) {
            let (at, begin) = (self.counts.entry_at(number), rows.len());
            put_stamp(&mut rows, &found.stamp);
            rows.extend_from_slice(&self.bytes[at + STAMP_BYTES..at + STAMP_BYTES + 6]);
            put_known(&mut rows, &TableRow::from(found));
            let checksum = hashes.entry(&found.name).checksum(&rows[begin..]);
            rows.extend_from_slice(&checksum.to_le_bytes());
        }
        rows
    }

    /// The checksum of the table with `patches` in it. `None` if they overlap, which only those of a
    /// damaged table do.
    fn checksum_with(&self, patches: &[(usize, Vec<u8>)]) -> Option<u64> {
        let (mut hasher, mut done) = (crc32fast::Hasher::new(), 16);
        for (at, bytes) in patches {
            hasher.update(self.bytes.get(done..*at)?);
            hasher.update(bytes);
            done = at + bytes.len();
        }
        hasher.update(self.bytes.get(done..)?);
        Some(u64::from(hasher.finalize()))
    }

    /// Empty if a damaged row points past the end.
    #[inline]
    fn name(&self, offset: u32, length: u32) -> &[u8] {
        let begin = self.names_at + offset as usize;
        self.bytes.get(begin..begin + length as usize).unwrap_or_default()
    }

    fn dir_reader(&self, number: usize) -> NumberReader<'_> {
        let at = dir_at(number);
        NumberReader(&self.bytes[at..at + DIR_BYTES])
    }
}

/// Reads the table of a cache file of `size` bytes, without the index behind it; `None` if it has another format.
fn read_table(mut file: &File, size: u64) -> Option<Vec<u8>> {
    let mut start = [0; COUNTS_BYTES];
    file.read_exact_at(&mut start, 0).ok()?;
    let counts = TableCounts::read(&start)?;
    let length = counts.names_end()?;
    if counts.end()? as u64 != size || size > SIZE_MAX_BYTES {
        return None;
    }
    let mut bytes = Vec::with_capacity(length);
    file.rewind().ok()?;
    file.take(length as u64).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

#[inline]
fn read_entry<'n>(row: &[u8], name: impl FnOnce(u32, u32) -> &'n [u8]) -> TableRow<'n> {
    let mut row = NumberReader(row);
    let stamp = row.stamp();
    let (offset, length) = (row.u32(), row.u16());
    let (marks, reason) = (row.take(1)[0], row.take(1)[0]);
    TableRow {
        name: name(offset, u32::from(length)),
        stamp,
        content: row.id(),
        marks: Marks {
            tracked: marks & TRACKED != 0,
            ignored: marks & IGNORED != 0,
            private: marks & PRIVATE != 0,
            racy: marks & RACY != 0,
        },
        skipped: SkipReason::from_number(reason),
    }
}

/// The first of `numbers` for which `before` does not hold, given that it holds for a prefix.
fn partition(numbers: std::ops::Range<usize>, before: impl Fn(usize) -> bool) -> usize {
    let (mut low, mut high) = (numbers.start, numbers.end);
    while low < high {
        let middle = low + (high - low) / 2;
        if before(middle) { low = middle + 1 } else { high = middle }
    }
    low
}

impl Facts {
    fn write(&self, bytes: &mut Vec<u8>) {
        for id in [self.anchor, self.top, self.rules, self.tracked, self.staged] {
            put_id(bytes, id);
        }
        put_stamp(bytes, &self.index);
        let default_modes = self.default_modes;
        for mode in [default_modes.file, default_modes.executable, default_modes.directory] {
            bytes.extend_from_slice(&mode.to_le_bytes());
        }
        bytes.extend_from_slice(&self.files.to_le_bytes());
        bytes.extend_from_slice(&u64::from(self.partial).to_le_bytes());
        let (id, digest) = self.latest.unzip();
        bytes.extend_from_slice(&id.map_or(0, CheckpointId::number).to_le_bytes());
        put_id(bytes, digest);
    }

    fn read(from: &mut NumberReader<'_>) -> Self {
        Self {
            anchor: from.id(),
            top: from.id(),
            rules: from.id(),
            tracked: from.id(),
            staged: from.id(),
            index: from.stamp(),
            default_modes: DefaultModes {
                file: from.u32(),
                executable: from.u32(),
                directory: from.u32(),
            },
            files: from.u64(),
            partial: from.u64() != 0,
            latest: CheckpointId::from_number(from.u64()).zip(from.id()),
        }
    }
}

/// Writes what is known of an entry besides its name and stamp.
fn put_known(bytes: &mut Vec<u8>, row: &TableRow<'_>) {
    let mark = |set, mark| if set { mark } else { 0 };
    let marks = row.marks;
    let (tracked, ignored) = (mark(marks.tracked, TRACKED), mark(marks.ignored, IGNORED));
    bytes.push(tracked | ignored | mark(marks.private, PRIVATE) | mark(marks.racy, RACY));
    bytes.push(row.skipped.map_or(0, |reason| reason as u8));
    put_id(bytes, row.content);
}

/// Writes a stamp as [`NumberReader::stamp`] reads it.
pub(crate) fn put_stamp(bytes: &mut Vec<u8>, stamp: &Stamp) {
    bytes.extend_from_slice(&stamp.mtime_ns.to_le_bytes());
    bytes.extend_from_slice(&stamp.ctime_ns.to_le_bytes());
    bytes.extend_from_slice(&stamp.inode.to_le_bytes());
    bytes.extend_from_slice(&stamp.size.to_le_bytes());
    bytes.extend_from_slice(&stamp.mode.to_le_bytes());
}

fn put_id(bytes: &mut Vec<u8>, id: Option<ContentId>) {
    bytes.extend_from_slice(id.unwrap_or(ContentId::new(&[])).hash(ID_BYTES));
}

/// Reads numbers from the front of a row. Its length was checked before.
pub(crate) struct NumberReader<'a>(pub(crate) &'a [u8]);

impl<'a> NumberReader<'a> {
    #[inline]
    fn take(&mut self, length: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(length);
        self.0 = rest;
        taken
    }

    #[inline]
    fn array<const N: usize>(&mut self) -> [u8; N] {
        self.take(N).try_into().expect("take gives as many bytes as it is asked for")
    }

    #[inline]
    fn u16(&mut self) -> u16 {
        u16::from_le_bytes(self.array())
    }

    #[inline]
    pub(crate) fn u32(&mut self) -> u32 {
        u32::from_le_bytes(self.array())
    }

    #[inline]
    fn u64(&mut self) -> u64 {
        u64::from_le_bytes(self.array())
    }

    #[inline]
    pub(crate) fn stamp(&mut self) -> Stamp {
        Stamp {
            mtime_ns: i64::from_le_bytes(self.array()),
            ctime_ns: i64::from_le_bytes(self.array()),
            inode: self.u64(),
            size: self.u64(),
            mode: self.u32(),
        }
    }

    #[inline]
    fn id(&mut self) -> Option<ContentId> {
        Some(ContentId::new(self.take(ID_BYTES))).filter(|id| !id.is_null())
    }
}

#[cfg(test)]
mod tests;
