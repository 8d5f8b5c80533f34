//! Puts our own packs together when there are many: the user's git looks into every pack it has,
//! and starts a gc of its own from fifty on.
//!
//! The new pack holds every object of those it replaces, whether anything of ours still needs it
//! or not: git may have come to rely on any of them. Only when it is on the disk do they go.

use std::{
    collections::HashSet,
    fs::{self, OpenOptions},
    io::{self, Write},
    os::unix::fs::{MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use gix::{ObjectId, hash::Kind as HashKind};

use super::{
    pack::{Keep, Pack, Packed},
    repo::Repo,
};
use crate::{
    error::{Error, Result},
    fs::{Lock, create_private_dirs, now_ns, read_small, replace, stat_path},
    state::State,
};

/// So many packs of ours may lie beside the user's own before they are put together in the
/// background; design's limit is 20.
const PACKS_MAX: usize = 16;
/// From so many on whoever adds one more does it, for nobody else seems to.
pub(super) const PACKS_AT_MOST: usize = 20;
/// A larger pack stays as it is on the way of a save: copying it would cost more than it saves.
const PACK_MAX_BYTES: u64 = 16 << 20;
/// The same in the background, where it costs memory and nobody's time.
const TIDY_MAX_BYTES: u64 = 128 << 20;
/// A line for each pack of a long life.
const LIST_MAX_BYTES: u64 = 1 << 20;
/// No save takes an hour between its objects and its ref.
const KEPT_NS: i64 = 3_600_000_000_000;
/// Another process at the same list is done long before.
const PATIENCE: Duration = Duration::from_millis(500);

/// The list of packs that we have written into one repository.
pub(super) struct Packs {
    list: PathBuf,
    dir: PathBuf,
    hash: HashKind,
}

impl Packs {
    pub(super) fn of(repo: &Repo, state: &State) -> Self {
        let dir = repo.objects().join("pack");
        Self { list: state.packs_of(&repo.common_dir), dir, hash: repo.hash }
    }

    /// Notes that the pack at `path` is ours.
    pub(super) fn add(&self, path: &Path) -> Result<()> {
        let Some(name) = path.file_stem().and_then(|name| name.to_str()) else { return Ok(()) };
        let _lock = self.lock()?;
        let mut file = OpenOptions::new()
            .append(true)
            .create(true)
            .mode(0o600)
            .open(&self.list)
            .map_err(Error::io("write", &self.list))?;
        writeln!(file, "{name}").map_err(Error::io("write", &self.list))
    }

    /// Whether there are so many that [`Packs::tidy`] should be called.
    pub(super) fn is_untidy(&self) -> bool {
        self.listed().len() > PACKS_MAX && self.small(TIDY_MAX_BYTES).len() > PACKS_MAX
    }

    /// Puts packs of ours together, small or not, if there are many.
    pub(super) fn tidy(&self) -> Result<()> {
        self.merge_more_than(PACKS_MAX, TIDY_MAX_BYTES).map(drop)
    }

    /// Puts small packs of ours into one if there are more than `max`. Returns how many went.
    pub(super) fn consolidate(&self, max: usize) -> Result<usize> {
        self.merge_more_than(max, PACK_MAX_BYTES)
    }

    /// The room that packs of ours take.
    pub(super) fn bytes(&self) -> u64 {
        let names: HashSet<String> = self.listed().into_iter().collect();
        let files = names.iter().flat_map(|name| ["pack", "idx"].map(|kind| self.path(name, kind)));
        files.map(|path| fs::symlink_metadata(path).map_or(0, |found| found.blocks() * 512)).sum()
    }

    fn merge_more_than(&self, max: usize, size_max_bytes: u64) -> Result<usize> {
        if self.listed().len() <= max || self.small(size_max_bytes).len() <= max {
            return Ok(0);
        }
        let _lock = self.lock()?;
        let old = self.small(size_max_bytes);
        if old.len() <= max {
            return Ok(0);
        }
        let new = self.merge(&old).map_err(Error::io("put packs together in", &self.dir))?;
        let mut gone = 0;
        for name in old.iter().filter(|name| Some(&name[..]) != new.as_deref()) {
            gone += usize::from(self.remove(name));
        }
        let mut kept: Vec<String> = self.listed();
        kept.retain(|name| self.path(name, "pack").exists());
        kept.extend(new.filter(|new| !self.listed().contains(new)));
        replace(&self.list, (kept.join("\n") + "\n").as_bytes())?;
        Ok(gone)
    }

    fn lock(&self) -> Result<Lock> {
        if let Some(dir) = self.list.parent() {
            create_private_dirs(dir)?;
        }
        Lock::acquire(&self.list.with_extension("lock"), Instant::now() + PATIENCE)
    }

    fn path(&self, name: &str, extension: &str) -> PathBuf {
        self.dir.join(format!("{name}.{extension}"))
    }

    /// The names in the list that a pack of ours can have.
    fn listed(&self) -> Vec<String> {
        let bytes = read_small(&self.list, LIST_MAX_BYTES).ok().flatten().unwrap_or_default();
        let is_name = |line: &&str| {
            line.strip_prefix("pack-").is_some_and(|hash| {
                hash.len() == self.hash.len_in_hex() && hash.bytes().all(|b| b.is_ascii_hexdigit())
            })
        };
        String::from_utf8_lossy(&bytes).lines().filter(is_name).map(str::to_owned).collect()
    }

    /// Those that are still there, and no larger than what is worth copying.
    fn small(&self, size_max_bytes: u64) -> Vec<String> {
        let is_small = |name: &String| {
            let found = fs::symlink_metadata(self.path(name, "pack"));
            let kept = self.is_kept(name) || self.path(name, "promisor").exists();
            found.is_ok_and(|found| found.is_file() && found.len() <= size_max_bytes) && !kept
        };
        let mut names: Vec<String> = self.listed().into_iter().filter(is_small).collect();
        names.sort();
        names.dedup();
        names
    }

    /// Whether somebody wants a pack to stay. What a save of ours left when it was killed goes.
    fn is_kept(&self, name: &str) -> bool {
        let path = self.path(name, "keep");
        let Ok(Some(text)) = read_small(&path, LIST_MAX_BYTES) else { return path.exists() };
        let is_old = stat_path(&path).is_ok_and(|found| {
            found.mtime_ns < now_ns().saturating_sub(KEPT_NS) && text == Keep::TEXT
        });
        !(is_old && fs::remove_file(&path).is_ok())
    }

    /// Writes one pack with everything in `old`; its name, or `None` if there was nothing.
    fn merge(&self, old: &[String]) -> io::Result<Option<String>> {
        let objects = self.dir.parent().unwrap_or(&self.dir);
        let mut pack = Pack::begin(objects, self.hash)?;
        let mut seen = HashSet::new();
        for name in old {
            let bytes = fs::read(self.path(name, "pack"))?;
            let index = fs::read(self.path(name, "idx"))?;
            for (id, crc, range) in rows(&index, bytes.len(), self.hash).ok_or_else(damaged)? {
                let entry = bytes.get(range).ok_or_else(damaged)?;
                if crc32fast::hash(entry) != crc {
                    return Err(damaged());
                }
                if seen.insert(id) {
                    pack.push(&Packed::copied(id, crc, entry.to_vec()))?;
                }
            }
        }
        if seen.is_empty() {
            return Ok(None);
        }
        let (path, _keep) = pack.finish()?;
        Ok(path.file_stem().and_then(|name| name.to_str()).map(str::to_owned))
    }

    /// Removes a pack that has been replaced: its index first, as git does, so that nobody finds
    /// an index without its pack.
    fn remove(&self, name: &str) -> bool {
        for extension in ["idx", "rev", "bitmap"] {
            let _absent = fs::remove_file(self.path(name, extension));
        }
        fs::remove_file(self.path(name, "pack")).is_ok()
    }
}

fn damaged() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "a pack of ours is not as we wrote it")
}

pub(super) type Row = (ObjectId, u32, std::ops::Range<usize>);

/// What the index of a pack of ours says: each object, its checksum, and where it is. Ours have
/// version 2 and no deltas, so an entry ends where the next one begins.
pub(super) fn rows(index: &[u8], pack_bytes: usize, hash: HashKind) -> Option<Vec<Row>> {
    let width = hash.len_in_bytes();
    let u32_at = |at: usize| {
        let bytes = index.get(at..at.checked_add(4)?)?;
        Some(u32::from_be_bytes(bytes.try_into().ok()?))
    };
    if index.get(..8)? != b"\xfftOc\0\0\0\x02" {
        return None;
    }
    let count = u32_at(8 + 255 * 4)? as usize;
    let ids: usize = 8 + 256 * 4;
    let crcs = ids.checked_add(count.checked_mul(width)?)?;
    let offsets = crcs.checked_add(count.checked_mul(4)?)?;
    let mut found = Vec::new();
    for number in 0..count {
        let id = index.get(ids + number * width..ids + (number + 1) * width)?;
        let offset = u32_at(offsets + number * 4)?;
        // One that small has no offsets of eight bytes.
        let offset = usize::try_from(offset).ok().filter(|_| offset < 1 << 31)?;
        found.push((offset, ObjectId::from_bytes_or_panic(id), u32_at(crcs + number * 4)?));
    }
    found.sort_unstable_by_key(|(offset, _, _)| *offset);
    let end = pack_bytes.checked_sub(width)?;
    let ends = found.iter().skip(1).map(|(offset, _, _)| *offset).chain([end]);
    let ends: Vec<usize> = ends.collect();
    let rows = found.into_iter().zip(ends).map(|((at, id, crc), end)| (id, crc, at..end));
    Some(rows.collect())
}
