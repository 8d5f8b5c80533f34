//! Writes a cache file from front to back.

use std::{
    collections::BTreeMap,
    hash::{BuildHasher, RandomState},
    io::{self, BufWriter, Cursor, Seek, SeekFrom, Write},
    path::Path,
};

use super::{
    DIR_BYTES, ENTRY_BYTES, Facts, HEADER_BYTES, MAGIC, RACY, TableCounts, TableRow,
    lookup::{self, PathHashes},
    put_known, put_stamp,
};
use crate::{
    error::Result,
    fs,
    model::{DirPath, Fresh, Stamp},
};

/// How much is written at once.
pub(super) const BUFFER_BYTES: usize = 64 << 10;
/// Where the checksum is.
const SUM_AT: u64 = MAGIC.len() as u64;

/// Receives one directory: its path, its stamp, whether that is racy, and its entries by name.
pub type DirVisitor<'v, 'a> =
    dyn FnMut(&'a [u8], Stamp, bool, &mut dyn Iterator<Item = TableRow<'a>>) + 'v;

/// Directories that a table can be written of.
pub trait TableDirs {
    /// Visits every directory in tree order. Each visit shows the same.
    fn visit<'a>(&'a self, each: &mut DirVisitor<'_, 'a>);
}

impl TableDirs for BTreeMap<DirPath, Fresh> {
    fn visit<'a>(&'a self, each: &mut DirVisitor<'_, 'a>) {
        for (path, fresh) in self {
            each(&path.0, fresh.stamp, fresh.racy, &mut fresh.found.iter().map(TableRow::from));
        }
    }
}

/// A cache file to be written: every directory, every entry, every name, and the index.
///
/// Each part is a visit of its own, and no part is in memory as a whole but the index: in a large root, the
/// file is as large as all that a scan knows.
pub struct NewTable<'d, D> {
    dirs: &'d D,
    facts: &'d Facts,
    counts: TableCounts,
}

impl<'d, D: TableDirs> NewTable<'d, D> {
    /// The table of `dirs`.
    pub fn new(dirs: &'d D, facts: &'d Facts) -> Self {
        Self::seeded(dirs, facts, RandomState::new().hash_one(0))
    }

    pub(super) fn seeded(dirs: &'d D, facts: &'d Facts, seed: u64) -> Self {
        let mut counts = TableCounts { dirs: 0, entries: 0, names: 0, seed };
        dirs.visit(&mut |path, _, _, rows| {
            counts.dirs += 1;
            counts.names += path.len();
            for row in rows {
                counts.entries += 1;
                counts.names += row.name.len();
            }
        });
        Self { dirs, facts, counts }
    }

    /// What the hashes of paths start with.
    #[cfg(test)]
    pub(super) fn seed(&self) -> u64 {
        self.counts.seed
    }

    /// Writes the cache file `path`. The caller holds the root's lock. Not synced: losing it costs only a slow
    /// scan. A file of the same size is overwritten in place, because renaming over a file makes ext4
    /// write it out at once, which would cost more than the rest of the save.
    ///
    /// # Errors
    ///
    /// Fails if it cannot be written.
    pub fn write(&self, path: &Path) -> Result<()> {
        let size = self.counts.end().map_or(u64::MAX, |size| size as u64);
        match fs::overwrite_by(path, size, |file| self.write_to(file)) {
            Ok(true) => Ok(()),
            Ok(false) | Err(_) => fs::replace_by(path, |file| self.write_to(file)),
        }
    }

    /// The bytes of the file.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Cursor::new(Vec::new());
        self.write_to(&mut bytes).expect("memory takes every write");
        bytes.into_inner()
    }

    pub(super) fn write_to(&self, to: impl Write + Seek) -> io::Result<()> {
        let mut to = BufWriter::with_capacity(BUFFER_BYTES, to);
        to.write_all(MAGIC)?;
        to.write_all(&[0; 8])?;
        let mut table = SummingWriter { to, sum: crc32fast::Hasher::new(), result: Ok(()) };
        table.put(&self.header());
        self.put_dirs(&mut table);
        let slots = self.put_entries(&mut table);
        self.put_names(&mut table);
        let SummingWriter { mut to, sum, result } = table;
        result?;
        to.write_all(&lookup::build(&slots, &self.counts))?;
        to.seek(SeekFrom::Start(SUM_AT))?;
        to.write_all(&u64::from(sum.finalize()).to_le_bytes())?;
        to.flush()
    }

    /// What follows the checksum and is no row.
    fn header(&self) -> Vec<u8> {
        let TableCounts { dirs, entries, names, seed } = self.counts;
        let mut header = Vec::with_capacity(HEADER_BYTES);
        for count in [dirs as u64, entries as u64, names as u64, seed] {
            header.extend_from_slice(&count.to_le_bytes());
        }
        self.facts.write(&mut header);
        header
    }

    fn put_dirs(&self, to: &mut SummingWriter<impl Write>) {
        let (mut names, mut first) = (0, 0);
        let mut bytes = Vec::with_capacity(DIR_BYTES);
        self.dirs.visit(&mut |path, stamp, racy, rows| {
            let (mut count, mut below) = (0, 0);
            for row in rows {
                count += 1;
                below += row.name.len();
            }
            bytes.clear();
            put_stamp(&mut bytes, &stamp);
            for number in [names, path.len(), first, count] {
                put_u32(&mut bytes, number);
            }
            bytes.extend_from_slice(&[if racy { RACY } else { 0 }, 0, 0, 0]);
            to.put(&bytes);
            names += path.len() + below;
            first += count;
        });
    }

    /// Writes every entry; returns where the path of each is in the index.
    fn put_entries(&self, to: &mut SummingWriter<impl Write>) -> Vec<u32> {
        let (mut names, mut slots) = (0, Vec::with_capacity(self.counts.entries));
        let mut bytes = Vec::with_capacity(ENTRY_BYTES);
        self.dirs.visit(&mut |path, _, _, rows| {
            names += path.len();
            let hashes = PathHashes::of(self.counts.seed, path);
            for row in rows {
                let hashes = hashes.entry(row.name);
                put_entry(&mut bytes, &row, names, &hashes);
                to.put(&bytes);
                slots.push(hashes.slot());
                names += row.name.len();
            }
        });
        slots
    }

    fn put_names(&self, to: &mut SummingWriter<impl Write>) {
        self.dirs.visit(&mut |path, _, _, rows| {
            to.put(path);
            rows.for_each(|row| to.put(row.name));
        });
    }
}

/// Makes `bytes` the row of an entry, the name of which is at `name` among the names.
fn put_entry(bytes: &mut Vec<u8>, row: &TableRow<'_>, name: usize, hashes: &PathHashes) {
    let length = u16::try_from(row.name.len()).expect("no file system has names over 64 KiB");
    bytes.clear();
    put_stamp(bytes, &row.stamp);
    put_u32(bytes, name);
    bytes.extend_from_slice(&length.to_le_bytes());
    put_known(bytes, row);
    let checksum = hashes.checksum(bytes);
    bytes.extend_from_slice(&checksum.to_le_bytes());
}

fn put_u32(bytes: &mut Vec<u8>, number: usize) {
    let number = u32::try_from(number).expect("a root has fewer than 4 GiB of names");
    bytes.extend_from_slice(&number.to_le_bytes());
}

/// Sums what it writes. A failure is kept until the end, because a visit cannot fail.
struct SummingWriter<W> {
    to: W,
    sum: crc32fast::Hasher,
    result: io::Result<()>,
}

impl<W: Write> SummingWriter<W> {
    fn put(&mut self, bytes: &[u8]) {
        self.sum.update(bytes);
        if self.result.is_ok() {
            self.result = self.to.write_all(bytes);
        }
    }
}
