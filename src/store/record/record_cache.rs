//! A cache of all records of a root in one file, so that a list reads one file instead of fifty. An
//! entry is valid only for the record's id and stamp; a record that has changed is read again. The
//! file can be deleted at any time.
//!
//! It is binary, and used as it was read: a header, a row of fixed size for each record in the order of
//! the ids, and the packed records. Anything wrong with it, and it counts as absent.

use super::{
    Record, SIZE_MAX_BYTES,
    packed::{pack, unpack},
};
use crate::{
    cache::{NumberReader, put_stamp},
    fs::{Dir, c_name, now_ns, read_small, replace},
    model::{CheckpointId, Stamp},
    scan::is_racy,
    state::RootState,
};

/// Changes with every change of the layout; an older cache is not migrated.
const MAGIC: &[u8; 8] = b"bhrecor3";
/// Magic, checksum of the rest, and the number of rows.
const HEADER_BYTES: usize = 8 + 4 + 4;
/// Id, mtime, ctime, inode, size, mode, and where the packed record begins and how long it is.
const ROW_BYTES: usize = 5 * 8 + 3 * 4;
/// A larger record, with thousands of skipped paths, is not cached.
const RECORD_MAX_BYTES: usize = 16 << 10;
/// The cache is rewritten once more records than this are missing from it; each save adds one.
pub(super) const UNKNOWN_MAX: usize = 8;

/// The cached records of one root.
pub(super) struct RecordCache {
    bytes: Vec<u8>,
    dir: Option<Dir>,
    /// The entries of the next cache file, in any order.
    stands: Vec<(CheckpointId, Stamp, PackedBytes)>,
    now_ns: i64,
}

/// A packed record: a range of the old file, or new bytes.
enum PackedBytes {
    Old(std::ops::Range<usize>),
    New(Vec<u8>),
}

/// A row of the file: the range of one record, and its stamp.
struct CachedRecord {
    id: CheckpointId,
    stamp: Stamp,
    packed: std::ops::Range<usize>,
}

impl RecordCache {
    /// Reads the cache of a root; an unreadable one counts as empty.
    pub(super) fn load(state: &RootState) -> Self {
        let bytes = read_small(&state.records(), SIZE_MAX_BYTES).ok().flatten();
        let bytes = bytes.filter(|bytes| is_whole(bytes)).unwrap_or_default();
        let dir = Dir::open(&state.checkpoints()).ok();
        Self { bytes, dir, stands: Vec::new(), now_ns: now_ns() }
    }

    /// The record `id`, if it is cached and its stamp is unchanged.
    pub(super) fn find(&mut self, id: CheckpointId) -> Option<Record> {
        let known = row_of(&self.bytes, id)?;
        if self.stamp(id)? != known.stamp {
            return None;
        }
        let record = unpack(self.bytes.get(known.packed.clone())?);
        let record = record.filter(|record| record.checkpoint.id == id)?;
        self.stands.push((id, known.stamp, PackedBytes::Old(known.packed)));
        Some(record)
    }

    /// The stamp of a record. Take it before reading the record.
    pub(super) fn stamp(&self, id: CheckpointId) -> Option<Stamp> {
        let name = c_name(format!("{id}.json").as_bytes()).ok()?;
        self.dir.as_ref()?.stat_child(&name).ok()
    }

    /// Adds a record that was read from its file, with its stamp from before.
    pub(super) fn add(&mut self, id: CheckpointId, stamp: Option<Stamp>, record: &Record) {
        let Some(stamp) = stamp.filter(|stamp| !is_racy(stamp, self.now_ns)) else { return };
        let mut packed = Vec::new();
        pack(record, &mut packed);
        if packed.len() <= RECORD_MAX_BYTES {
            self.stands.push((id, stamp, PackedBytes::New(packed)));
        }
    }

    /// Writes the cache. It can be rebuilt, so a failure is harmless.
    pub(super) fn save(mut self, state: &RootState) {
        self.stands.sort_by_key(|(id, _, _)| *id);
        let (mut rows, mut records) = (Vec::new(), Vec::new());
        let first = HEADER_BYTES + self.stands.len() * ROW_BYTES;
        for (id, stamp, packed) in &self.stands {
            let packed = match packed {
                PackedBytes::Old(range) => &self.bytes[range.clone()],
                PackedBytes::New(bytes) => bytes,
            };
            push_row(&mut rows, *id, stamp, first + records.len(), packed.len());
            records.extend_from_slice(packed);
        }
        let count = u32::try_from(self.stands.len()).unwrap_or(u32::MAX).to_le_bytes();
        let rest = [&count, &*rows, &records].concat();
        let sum = crc32fast::hash(&rest).to_le_bytes();
        let _again_next_time = replace(&state.records(), &[MAGIC, &sum[..], &rest].concat());
    }
}

fn push_row(rows: &mut Vec<u8>, id: CheckpointId, stamp: &Stamp, from: usize, length: usize) {
    rows.extend(id.number().to_le_bytes());
    put_stamp(rows, stamp);
    // A file of more than 64 MB is not read, so that a range that was cut off is never used.
    for number in [from, length] {
        rows.extend(u32::try_from(number).unwrap_or(u32::MAX).to_le_bytes());
    }
}

/// Whether bytes are a cache as it was written.
fn is_whole(bytes: &[u8]) -> bool {
    let Some((head, rest)) = bytes.split_at_checked(HEADER_BYTES - 4) else { return false };
    head.starts_with(MAGIC) && head[8..] == crc32fast::hash(rest).to_le_bytes()
}

/// The rows of a whole cache, in the order of the ids.
fn rows_of(bytes: &[u8]) -> Option<&[[u8; ROW_BYTES]]> {
    let (head, rest) = bytes.split_at_checked(HEADER_BYTES)?;
    let count = u32::from_le_bytes(head[12..].try_into().ok()?) as usize;
    rest.get(..count.checked_mul(ROW_BYTES)?).map(|rows| rows.as_chunks().0)
}

fn row_of(bytes: &[u8], id: CheckpointId) -> Option<CachedRecord> {
    let rows = rows_of(bytes)?;
    let at = rows.binary_search_by_key(&Some(id), id_in).ok()?;
    parse_row(&rows[at])
}

fn id_in(row: &[u8; ROW_BYTES]) -> Option<CheckpointId> {
    CheckpointId::from_number(u64::from_le_bytes(*row.first_chunk()?))
}

fn parse_row(row: &[u8; ROW_BYTES]) -> Option<CachedRecord> {
    let mut numbers = NumberReader(&row[8..]);
    let stamp = numbers.stamp();
    let (from, length) = (numbers.u32() as usize, numbers.u32() as usize);
    Some(CachedRecord { id: id_in(row)?, stamp, packed: from..from.checked_add(length)? })
}

/// Parses bytes as a cache, and all of it; for fuzz/. The checksum is not what keeps it safe.
pub(super) fn parse_any(bytes: &[u8]) {
    let _is_whole = is_whole(bytes);
    for known in rows_of(bytes).unwrap_or_default().iter().filter_map(parse_row) {
        let _found = row_of(bytes, known.id);
        let _record = bytes.get(known.packed).and_then(unpack);
    }
    let _record = unpack(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        state::StateDir,
        store::record::{
            Record, ids, path_of, read_all, version::from_json, wire::RecordFile, write,
        },
    };

    /// A root with `count` records, old enough that their stamps are not racy.
    fn place(name: &str, count: u64) -> RootState {
        let dir =
            std::env::temp_dir().join(format!("beforehand-recall-{name}-{}", std::process::id()));
        let place = StateDir::new(dir).root_at(std::path::Path::new("/x"));
        for number in 0..count {
            write(&place, &record(number)).unwrap();
        }
        std::thread::sleep(std::time::Duration::from_millis(30));
        place
    }

    fn record(number: u64) -> Record {
        let id = CheckpointId::from_bits(number);
        let json = format!(
            r#"{{"version": 1, "id": "{id}", "keeper": "git", "sequence": {number}, "files": 7,
            "taken_at": "2026-01-02T03:04:05Z", "reason": "asked", "summary": "a \"word\""}}"#
        );
        from_json::<RecordFile>("x", json.as_bytes()).unwrap().into_record().unwrap()
    }

    /// Overwrites a file in place.
    fn put(path: &std::path::Path, bytes: &[u8]) {
        let open = std::fs::OpenOptions::new().write(true).truncate(true).open(path);
        std::io::Write::write_all(&mut open.unwrap(), bytes).unwrap();
    }

    fn sequences(place: &RootState) -> Vec<u64> {
        read_all(place).unwrap().iter().map(super::super::RecordEntry::sequence).collect()
    }

    #[test]
    fn what_was_read_once_is_not_opened_again() {
        let place = place("once", 12);
        assert_eq!(sequences(&place), (0..12).rev().collect::<Vec<_>>());
        let cache = RecordCache::load(&place);
        assert_eq!(rows_of(&cache.bytes).unwrap().len(), 12);
        let mut cache = RecordCache::load(&place);
        let all = ids(&place).unwrap();
        let found = all.iter().filter_map(|id| cache.find(*id));
        let mut numbers: Vec<u64> = found.map(|found| found.checkpoint.sequence).collect();
        numbers.sort_unstable();
        assert_eq!(numbers, (0..12).collect::<Vec<_>>());
        crate::fs::remove_tree(place.state().dir()).unwrap();
    }

    #[test]
    fn a_record_that_changed_or_went_is_not_what_it_was() {
        let place = place("changed", 12);
        sequences(&place);
        std::fs::remove_file(path_of(&place, CheckpointId::from_bits(3))).unwrap();
        let path = path_of(&place, CheckpointId::from_bits(4));
        let text = std::fs::read_to_string(&path).unwrap();
        let longer = text.replace("\"sequence\": 4", "\"sequence\": 444");
        put(&path, longer.as_bytes());
        let expected = [444, 11, 10, 9, 8, 7, 6, 5, 2, 1, 0];
        assert_eq!(sequences(&place), expected);
        // Same length, a moment later: only the ctime differs.
        put(&path, longer.replace("444", "555").as_bytes());
        assert_eq!(sequences(&place)[0], 555);
        crate::fs::remove_tree(place.state().dir()).unwrap();
    }

    #[test]
    fn a_damaged_cache_is_not_trusted() {
        let place = place("damaged", 12);
        let all = || -> Vec<_> {
            read_all(&place).unwrap().into_iter().map(|kept| kept.record.unwrap()).collect()
        };
        let expected = all();
        let whole = std::fs::read(place.records()).unwrap();
        for at in (0..whole.len()).step_by(43) {
            let mut bytes = whole.clone();
            bytes[at] ^= 1;
            put(&place.records(), &bytes);
            assert_eq!(all(), expected, "at {at}");
            put(&place.records(), &whole[..at]);
            assert_eq!(all(), expected, "cut at {at}");
        }
        crate::fs::remove_tree(place.state().dir()).unwrap();
    }
}
