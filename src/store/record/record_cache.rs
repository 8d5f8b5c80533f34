//! A cache of all records of a root in one file, so that a list reads one file instead of fifty. An
//! entry is valid only for the record's id and stamp; a record that has changed is read again. The
//! file can be deleted at any time.

use std::collections::HashMap;

use super::{RecordFile, SIZE_MAX_BYTES, from_json};
use crate::{
    fs::{Dir, c_name, now_ns, read_small, replace},
    model::{CheckpointId, Stamp},
    scan::is_racy,
    state::RootState,
};

/// The first line; the checksum of the rest follows.
const MAGIC: &str = "beforehand-records-1";
/// A larger record, with thousands of skipped paths, is not cached.
const RECORD_MAX_BYTES: usize = 16 << 10;
/// The cache is rewritten once more records than this are missing from it; each save adds one.
pub(super) const UNKNOWN_MAX: usize = 8;

/// The cached records of one root.
pub(super) struct RecordCache {
    bytes: Vec<u8>,
    known: HashMap<CheckpointId, CachedRecord>,
    dir: Option<Dir>,
    /// The entries of the next cache file, in any order.
    stands: Vec<(CheckpointId, Stamp, Json)>,
    now_ns: i64,
}

/// The text of a record: a range of the old file, or new bytes.
enum Json {
    Known(std::ops::Range<usize>),
    New(Vec<u8>),
}

/// The range of one record in the file, and its stamp.
struct CachedRecord {
    stamp: Stamp,
    json: std::ops::Range<usize>,
}

impl RecordCache {
    /// Reads the cache of a root; an unreadable one counts as empty.
    pub(super) fn load(state: &RootState) -> Self {
        let bytes = read_small(&state.records(), SIZE_MAX_BYTES).ok().flatten().unwrap_or_default();
        let known = parse(&bytes).unwrap_or_default();
        let dir = Dir::open(&state.checkpoints()).ok();
        Self { bytes, known, dir, stands: Vec::new(), now_ns: now_ns() }
    }

    /// The record `id`, if it is cached and its stamp is unchanged.
    pub(super) fn find(&mut self, id: CheckpointId) -> Option<RecordFile> {
        let known = self.known.get(&id)?;
        if self.stamp(id)? != known.stamp {
            return None;
        }
        let record = from_json::<RecordFile>("records", &self.bytes[known.json.clone()]).ok()?;
        self.stands.push((id, known.stamp, Json::Known(known.json.clone())));
        Some(record)
    }

    /// The stamp of a record. Take it before reading the record.
    pub(super) fn stamp(&self, id: CheckpointId) -> Option<Stamp> {
        let name = c_name(format!("{id}.json").as_bytes()).ok()?;
        self.dir.as_ref()?.stat_child(&name).ok()
    }

    /// Adds a record that was read from its file, with its stamp from before.
    pub(super) fn add(&mut self, id: CheckpointId, stamp: Option<Stamp>, record: &RecordFile) {
        let Some(stamp) = stamp.filter(|stamp| !is_racy(stamp, self.now_ns)) else { return };
        match serde_json::to_vec(record) {
            Ok(json) if json.len() <= RECORD_MAX_BYTES => {
                self.stands.push((id, stamp, Json::New(json)));
            }
            Ok(_) | Err(_) => (),
        }
    }

    /// Writes the cache. It can be rebuilt, so a failure is harmless.
    pub(super) fn save(self, state: &RootState) {
        let mut lines = Vec::with_capacity(self.bytes.len());
        for (id, stamp, json) in &self.stands {
            let json = match json {
                Json::Known(range) => &self.bytes[range.clone()],
                Json::New(bytes) => bytes,
            };
            push_line(&mut lines, *id, stamp, json);
        }
        let mut bytes = format!("{MAGIC} {:08x}\n", crc32fast::hash(&lines)).into_bytes();
        bytes.append(&mut lines);
        let _again_next_time = replace(&state.records(), &bytes);
    }
}

fn push_line(lines: &mut Vec<u8>, id: CheckpointId, stamp: &Stamp, json: &[u8]) {
    let Stamp { mtime_ns, ctime_ns, inode, size, mode } = stamp;
    lines.extend_from_slice(
        format!("{id} {mtime_ns} {ctime_ns} {inode} {size} {mode} {}\n", json.len()).as_bytes(),
    );
    lines.extend_from_slice(json);
    lines.push(b'\n');
}

fn parse(bytes: &[u8]) -> Option<HashMap<CheckpointId, CachedRecord>> {
    let head = bytes.iter().position(|&byte| byte == b'\n')? + 1;
    let sum = str::from_utf8(&bytes[..head - 1]).ok()?.strip_prefix(MAGIC)?.trim_start();
    if u32::from_str_radix(sum, 16).ok()? != crc32fast::hash(&bytes[head..]) {
        return None;
    }
    let mut known = HashMap::new();
    let mut at = head;
    while at < bytes.len() {
        let from = at + bytes[at..].iter().position(|&byte| byte == b'\n')? + 1;
        let mut words = str::from_utf8(&bytes[at..from - 1]).ok()?.split(' ');
        let id = CheckpointId::parse(words.next()?)?;
        let stamp = Stamp {
            mtime_ns: words.next()?.parse().ok()?,
            ctime_ns: words.next()?.parse().ok()?,
            inode: words.next()?.parse().ok()?,
            size: words.next()?.parse().ok()?,
            mode: words.next()?.parse().ok()?,
        };
        let to = from.checked_add(words.next()?.parse().ok()?)?;
        if bytes.get(to) != Some(&b'\n') {
            return None;
        }
        known.insert(id, CachedRecord { stamp, json: from..to });
        at = to + 1;
    }
    Some(known)
}

/// Parses bytes as a cache; for fuzz/.
pub(super) fn parse_any(bytes: &[u8]) {
    let _damaged = parse(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        state::StateDir,
        store::record::{Record, ids, path_of, read_all, write},
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
        assert_eq!(cache.known.len(), 12);
        let mut cache = RecordCache::load(&place);
        let all = ids(&place).unwrap();
        let found = all.iter().filter_map(|id| cache.find(*id)?.into_record().ok());
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
