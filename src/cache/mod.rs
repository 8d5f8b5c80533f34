//! The cache of a root's last scan, and its file format.
//!
//! The cache only saves time: if anything is wrong with it, it counts as absent. The file is read
//! whole and used in place; a [`Row`] borrows from it.

use std::{path::Path, sync::Arc};

use crate::{
    error::Result,
    fs,
    model::{
        CheckpointId, ContentId, DirPath, Found, Fresh, Kind, Marks, SkipReason, Stamp, Usual,
        in_tree_order,
    },
};

/// Changes with every change of the layout. An older cache is not migrated; the next scan writes a
/// new one.
const MAGIC: &[u8; 8] = b"bhcache1";
/// Mtime, ctime, inode, size, mode.
const STAMP_BYTES: usize = 36;
const ID_BYTES: usize = 32;
/// Magic, checksum and padding, four counts, then [`Facts`].
const HEADER_BYTES: usize = 8 + 8 + 4 * 8 + FACTS_BYTES;
const FACTS_BYTES: usize = 6 * ID_BYTES + STAMP_BYTES + 3 * 4 + 3 * 8;
/// Stamp, path offset, path length, first entry, number of entries, marks and padding.
const DIR_BYTES: usize = STAMP_BYTES + 4 * 4 + 4;
/// Stamp, name offset, name length, marks, skip reason, id.
const ENTRY_BYTES: usize = STAMP_BYTES + 4 + 2 + 1 + 1 + ID_BYTES;
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
    pub usual: Usual,
    /// How many files are held.
    pub files: u64,
    /// Whether anything was left out for lack of time.
    pub partial: bool,
    /// The checkpoint that holds what the rows say, and a digest of what else it depends on.
    pub latest: Option<(CheckpointId, ContentId)>,
}

/// A cache file, parsed but not copied, not even by `clone`.
#[derive(Clone)]
pub struct Table {
    bytes: Arc<Vec<u8>>,
    facts: Facts,
    dirs: usize,
    entries: usize,
    /// Where the names begin.
    names_at: usize,
}

/// One name in a directory, from a table or a scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row<'a> {
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
    table: &'a Table,
    first: usize,
    count: usize,
}

impl Row<'_> {
    /// What sort of file it is.
    pub fn kind(&self) -> Option<Kind> {
        self.stamp.kind()
    }

    /// The same, with a name of its own.
    pub fn to_found(&self) -> Found {
        Found {
            name: self.name.to_vec(),
            stamp: self.stamp,
            content: self.content,
            marks: self.marks,
            skipped: self.skipped,
        }
    }
}

impl<'a> From<&'a Found> for Row<'a> {
    fn from(found: &'a Found) -> Self {
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
    pub fn rows(&self) -> impl ExactSizeIterator<Item = Row<'a>> + use<'a> {
        let table = self.table;
        (self.first..self.first + self.count).map(|number| table.row(number))
    }

    /// The entry called `name`.
    pub fn row(&self, name: &[u8]) -> Option<Row<'a>> {
        let numbers = self.first..self.first + self.count;
        let at = partition(numbers, |number| self.table.row(number).name < name);
        (at < self.first + self.count).then(|| self.table.row(at)).filter(|row| row.name == name)
    }
}

impl std::fmt::Debug for Table {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Table({} directories, {} entries)", self.dirs, self.entries)
    }
}

impl Table {
    /// Reads the cache at `path`. `None` if it is missing or damaged.
    pub fn load(path: &Path) -> Option<Self> {
        let read = || Some(Self::parse(fs::read_small(path, SIZE_MAX_BYTES).ok()??));
        // Another process may have been writing it, so it is read once more.
        read()?.or_else(|| read()?)
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
        let mut header = Reader(header.get(..HEADER_BYTES)?);
        if header.take(8) != MAGIC {
            return None;
        }
        header.take(8 + 4 * 8);
        Some(Facts::read(&mut header))
    }

    /// Parses a cache file; `None` unless it is complete and undamaged.
    pub fn parse(bytes: Vec<u8>) -> Option<Self> {
        let mut header = Reader(bytes.get(..HEADER_BYTES)?);
        if header.take(8) != MAGIC {
            return None;
        }
        let checksum = header.u64();
        if checksum != u64::from(crc32fast::hash(&bytes[16..])) {
            return None;
        }
        let mut count = || usize::try_from(header.u64()).ok();
        let (dirs, entries, names, _) = (count()?, count()?, count()?, count()?);
        let facts = Facts::read(&mut header);
        let rows = dirs.checked_mul(DIR_BYTES)?.checked_add(entries.checked_mul(ENTRY_BYTES)?)?;
        let names_at = HEADER_BYTES.checked_add(rows)?;
        let whole = names_at.checked_add(names)? == bytes.len();
        whole.then_some(Self { bytes: Arc::new(bytes), facts, dirs, entries, names_at })
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
        self.dirs
    }

    /// How many entries it has.
    pub fn entry_count(&self) -> usize {
        self.entries
    }

    /// Every directory, in tree order.
    pub fn dirs(&self) -> impl ExactSizeIterator<Item = DirRow<'_>> {
        (0..self.dirs).map(|number| self.dir(number))
    }

    /// The directory with this number, from 0 for the root.
    pub fn dir(&self, number: usize) -> DirRow<'_> {
        let mut row = self.dir_reader(number);
        let stamp = row.stamp();
        let (offset, length, first, count) = (row.u32(), row.u32(), row.u32(), row.u32());
        let racy = row.take(1)[0] & RACY != 0;
        let path = self.name(offset, length);
        // A damaged row must not point at entries that do not exist.
        let first = (first as usize).min(self.entries);
        let count = (count as usize).min(self.entries - first);
        DirRow { path, stamp, racy, table: self, first, count }
    }

    /// The directory at `path`.
    pub fn find_dir(&self, path: &[u8]) -> Option<DirRow<'_>> {
        let at = self.position(path);
        (at < self.dirs).then(|| self.dir(at)).filter(|dir| dir.path == path)
    }

    /// The number of the first directory that does not come before `path`.
    pub fn position(&self, path: &[u8]) -> usize {
        partition(0..self.dirs, |number| in_tree_order(self.dir(number).path, path).is_lt())
    }

    /// The entry with this number.
    #[inline]
    pub fn row(&self, number: usize) -> Row<'_> {
        let mut row = self.entry_reader(number);
        let stamp = row.stamp();
        let (offset, length) = (row.u32(), row.u16());
        let (marks, reason) = (row.take(1)[0], row.take(1)[0]);
        Row {
            name: self.name(offset, u32::from(length)),
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

    /// The bytes of this table with other facts and with `fresh` in place of the directories at
    /// those paths; `None` if the names in one have changed. The cost depends on what changed only.
    pub fn patched<'f>(
        &self,
        facts: &Facts,
        fresh: impl Iterator<Item = (&'f DirPath, &'f Fresh)>,
    ) -> Option<Vec<u8>> {
        let mut bytes = self.bytes.to_vec();
        let mut header = Vec::with_capacity(FACTS_BYTES);
        facts.write(&mut header);
        bytes[HEADER_BYTES - FACTS_BYTES..HEADER_BYTES].copy_from_slice(&header);
        let mut row = Vec::with_capacity(ENTRY_BYTES);
        for (path, fresh) in fresh {
            let number = self.position(&path.0);
            let dir = self.find_dir(&path.0)?;
            let is_same = dir.count == fresh.found.len()
                && dir.rows().zip(&fresh.found).all(|(row, found)| row.name == found.name);
            if !is_same {
                return None;
            }
            let at = HEADER_BYTES + number * DIR_BYTES;
            row.clear();
            put_stamp(&mut row, &fresh.stamp);
            bytes[at..at + STAMP_BYTES].copy_from_slice(&row);
            bytes[at + DIR_BYTES - 4] = if fresh.racy { RACY } else { 0 };
            for (number, found) in (dir.first..).zip(&fresh.found) {
                let at = HEADER_BYTES + self.dirs * DIR_BYTES + number * ENTRY_BYTES;
                row.clear();
                put_stamp(&mut row, &found.stamp);
                // The name reference in between stays.
                row.extend_from_slice(&bytes[at + STAMP_BYTES..at + STAMP_BYTES + 6]);
                put_known(&mut row, &Row::from(found));
                bytes[at..at + ENTRY_BYTES].copy_from_slice(&row);
            }
        }
        seal(&mut bytes);
        Some(bytes)
    }

    /// Empty if a damaged row points past the end.
    #[inline]
    fn name(&self, offset: u32, length: u32) -> &[u8] {
        let begin = self.names_at + offset as usize;
        self.bytes.get(begin..begin + length as usize).unwrap_or_default()
    }

    fn dir_reader(&self, number: usize) -> Reader<'_> {
        let at = HEADER_BYTES + number * DIR_BYTES;
        Reader(&self.bytes[at..at + DIR_BYTES])
    }

    fn entry_reader(&self, number: usize) -> Reader<'_> {
        let at = HEADER_BYTES + self.dirs * DIR_BYTES + number * ENTRY_BYTES;
        Reader(&self.bytes[at..at + ENTRY_BYTES])
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

/// Builds a table: each directory, then its entries, in tree order.
#[derive(Default)]
pub struct Builder {
    dirs: Vec<u8>,
    entries: Vec<u8>,
    names: Vec<u8>,
    entry_count: u32,
    /// The directory being filled: its row without the count, and its first entry.
    open: Option<(Vec<u8>, u32, bool)>,
}

impl Builder {
    /// Begins the directory at `path`.
    pub fn directory(&mut self, path: &[u8], stamp: Stamp, racy: bool) {
        self.close();
        let mut row = Vec::with_capacity(DIR_BYTES);
        put_stamp(&mut row, &stamp);
        self.put_name(&mut row, path);
        put_u32(&mut row, path.len());
        row.extend_from_slice(&self.entry_count.to_le_bytes());
        self.open = Some((row, self.entry_count, racy));
    }

    /// Adds an entry to the directory begun last.
    ///
    /// # Panics
    ///
    /// Panics if its name is longer than any file system allows.
    pub fn entry(&mut self, row: &Row<'_>) {
        let mut bytes = std::mem::take(&mut self.entries);
        put_stamp(&mut bytes, &row.stamp);
        self.put_name(&mut bytes, row.name);
        let length = u16::try_from(row.name.len()).expect("no file system has names over 64 KiB");
        bytes.extend_from_slice(&length.to_le_bytes());
        put_known(&mut bytes, row);
        self.entries = bytes;
        self.entry_count += 1;
    }

    /// The bytes of the whole table.
    pub fn finish(mut self, facts: &Facts) -> Vec<u8> {
        self.close();
        let counts = [self.dirs.len() / DIR_BYTES, self.entry_count as usize, self.names.len(), 0];
        let whole = HEADER_BYTES + self.dirs.len() + self.entries.len() + self.names.len();
        let mut bytes = Vec::with_capacity(whole);
        bytes.extend_from_slice(MAGIC);
        bytes.extend_from_slice(&[0; 8]);
        for count in counts {
            bytes.extend_from_slice(&(count as u64).to_le_bytes());
        }
        facts.write(&mut bytes);
        bytes.extend_from_slice(&self.dirs);
        bytes.extend_from_slice(&self.entries);
        bytes.extend_from_slice(&self.names);
        seal(&mut bytes);
        bytes
    }

    fn close(&mut self) {
        if let Some((row, first, racy)) = self.open.take() {
            self.dirs.extend_from_slice(&row);
            self.dirs.extend_from_slice(&(self.entry_count - first).to_le_bytes());
            self.dirs.extend_from_slice(&[if racy { RACY } else { 0 }, 0, 0, 0]);
        }
    }

    fn put_name(&mut self, row: &mut Vec<u8>, name: &[u8]) {
        put_u32(row, self.names.len());
        self.names.extend_from_slice(name);
    }
}

impl Facts {
    fn write(&self, bytes: &mut Vec<u8>) {
        for id in [self.anchor, self.top, self.rules, self.tracked, self.staged] {
            put_id(bytes, id);
        }
        put_stamp(bytes, &self.index);
        let usual = self.usual;
        for mode in [usual.file, usual.executable, usual.directory] {
            bytes.extend_from_slice(&mode.to_le_bytes());
        }
        bytes.extend_from_slice(&self.files.to_le_bytes());
        bytes.extend_from_slice(&u64::from(self.partial).to_le_bytes());
        let (id, digest) = self.latest.unzip();
        bytes.extend_from_slice(&id.map_or(0, CheckpointId::number).to_le_bytes());
        put_id(bytes, digest);
    }

    fn read(from: &mut Reader<'_>) -> Self {
        Self {
            anchor: from.id(),
            top: from.id(),
            rules: from.id(),
            tracked: from.id(),
            staged: from.id(),
            index: from.stamp(),
            usual: Usual { file: from.u32(), executable: from.u32(), directory: from.u32() },
            files: from.u64(),
            partial: from.u64() != 0,
            latest: CheckpointId::from_number(from.u64()).zip(from.id()),
        }
    }
}

/// Writes the checksum of everything that follows it.
fn seal(bytes: &mut [u8]) {
    let checksum = u64::from(crc32fast::hash(&bytes[16..]));
    bytes[8..16].copy_from_slice(&checksum.to_le_bytes());
}

/// Writes what is known of an entry besides its name and stamp.
fn put_known(bytes: &mut Vec<u8>, row: &Row<'_>) {
    let mark = |set, mark| if set { mark } else { 0 };
    let marks = row.marks;
    let (tracked, ignored) = (mark(marks.tracked, TRACKED), mark(marks.ignored, IGNORED));
    bytes.push(tracked | ignored | mark(marks.private, PRIVATE) | mark(marks.racy, RACY));
    bytes.push(row.skipped.map_or(0, |reason| reason as u8));
    put_id(bytes, row.content);
}

fn put_u32(bytes: &mut Vec<u8>, number: usize) {
    let number = u32::try_from(number).expect("a root's names are less than 4 GiB");
    bytes.extend_from_slice(&number.to_le_bytes());
}

fn put_stamp(bytes: &mut Vec<u8>, stamp: &Stamp) {
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
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
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
    fn u32(&mut self) -> u32 {
        u32::from_le_bytes(self.array())
    }

    #[inline]
    fn u64(&mut self) -> u64 {
        u64::from_le_bytes(self.array())
    }

    #[inline]
    fn stamp(&mut self) -> Stamp {
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

/// Writes a cache file. The caller holds the root's lock. Not synced: losing it costs only a slow
/// scan. A file of the same size is overwritten in place, because renaming over a file makes ext4
/// write it out at once, which would cost more than the rest of the save.
pub fn write(path: &Path, table: &[u8]) -> Result<()> {
    match fs::overwrite(path, table) {
        Ok(true) => Ok(()),
        Ok(false) | Err(_) => fs::replace(path, table),
    }
}

#[cfg(test)]
mod tests;
