//! Puts our own packs together when there are many: the user's git looks into every pack it has,
//! and starts a gc of its own from fifty on.
//!
//! The new pack holds every object of those it replaces, whether anything of ours still needs it
//! or not: git may have come to rely on any of them. Only when it is on the disk do they go.

use std::{
    collections::HashSet,
    fs::{self, File, OpenOptions},
    io::{self, BufReader, Write},
    ops::Range,
    os::unix::fs::{MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use gix::{ObjectId, hash::Kind as HashKind};

use super::{
    pack::{Keep, Pack},
    repo::Repo,
};
use crate::{
    error::{Error, Result},
    fs::{Lock, create_private_dirs, hand_over, now_ns, read_small, replace_synced, stat_path},
    state::State,
};

/// So many packs of ours may lie beside the user's own before they are put together in the
/// background; design's limit is 20.
const PACKS_MAX: usize = 16;
/// From so many on whoever adds one more does it, for nobody else seems to.
pub(super) const PACKS_AT_MOST: usize = 20;
/// So much is copied on the way of a save; more costs more than it saves. The background has no such
/// limit, it has [`which`].
const SAVE_MAX_BYTES: u64 = 64 << 20;
/// So much for two packs, where the background never comes and so few bytes would not do: a second, on
/// most disks. Twenty packs of which no two are smaller together have more than 2 GB.
const PAIR_MAX_BYTES: u64 = 256 << 20;
/// Where an offset says that it is one of eight bytes.
const LARGE: u32 = 1 << 31;
/// An index of git's over ten million objects.
const INDEX_MAX_BYTES: u64 = 512 << 20;
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
        // A pipe that somebody put there has no reader, and would be waited for.
        let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
        let mut file = OpenOptions::new()
            .append(true)
            .create(true)
            .mode(0o600)
            .custom_flags(flags.bits().cast_signed())
            .open(&self.list)
            .map_err(Error::io("write", &self.list))?;
        hand_over(&file, &self.list);
        writeln!(file, "{name}").map_err(Error::io("write", &self.list))
    }

    /// Whether there are so many that [`Packs::tidy`] should be called.
    pub(super) fn is_untidy(&self) -> bool {
        self.listed().len() > PACKS_MAX && self.ours().len() > PACKS_MAX
    }

    /// Puts packs of ours together, small and large, if there are many.
    pub(super) fn tidy(&self) -> Result<()> {
        self.merge_more_than(PACKS_MAX, u64::MAX).map(drop)
    }

    /// Puts packs of ours together if there are more than `max`, as far as it does not take long.
    /// Returns how many went.
    pub(super) fn consolidate(&self, max: usize) -> Result<usize> {
        self.merge_more_than(max, SAVE_MAX_BYTES)
    }

    /// The room that packs of ours take.
    pub(super) fn bytes(&self) -> u64 {
        let names: HashSet<String> = self.listed().into_iter().collect();
        let files = names.iter().flat_map(|name| ["pack", "idx"].map(|kind| self.path(name, kind)));
        files.map(|path| fs::symlink_metadata(path).map_or(0, |found| found.blocks() * 512)).sum()
    }

    fn merge_more_than(&self, max: usize, copied_max_bytes: u64) -> Result<usize> {
        if self.listed().len() <= max || self.ours().len() <= max {
            return Ok(0);
        }
        let _lock = self.lock()?;
        let ours = self.ours();
        let sizes: Vec<u64> = ours.iter().map(|(size, _)| *size).collect();
        let chosen = which(&sizes, max, copied_max_bytes);
        if chosen.len() < 2 || !self.has_room(sizes[chosen.clone()].iter().sum()) {
            return Ok(0);
        }
        let old: Vec<&str> = ours[chosen].iter().map(|(_, name)| &**name).collect();
        let new = self.merge(&old).map_err(Error::io("put packs together in", &self.dir))?;
        let mut gone = 0;
        for name in old.iter().filter(|name| Some(**name) != new.as_deref()) {
            gone += usize::from(self.remove(name));
        }
        let mut kept: Vec<String> = self.listed();
        kept.retain(|name| self.path(name, "pack").exists());
        kept.extend(new.filter(|new| !self.listed().contains(new)));
        // Nothing else says whose packs these are; what a power cut took would be put together by
        // nobody.
        replace_synced(&self.list, (kept.join("\n") + "\n").as_bytes())?;
        Ok(gone)
    }

    /// Whether the disk takes so much, twice over: nobody else shall run out of it because of us.
    fn has_room(&self, bytes: u64) -> bool {
        let found = rustix::fs::statvfs(&self.dir);
        found.map_or(true, |found| found.f_bavail.saturating_mul(found.f_frsize) / 2 >= bytes)
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

    /// Those that are still there and may go, by size, the smallest first.
    fn ours(&self) -> Vec<(u64, String)> {
        let held = self.held_by_an_index();
        let found = |name: String| {
            let found = fs::symlink_metadata(self.path(&name, "pack")).ok()?;
            let is_free = found.is_file()
                && !self.is_kept(&name)
                && !self.path(&name, "promisor").exists()
                && !held.as_ref().is_none_or(|held| contains(held, name.as_bytes()));
            is_free.then_some((found.len(), name))
        };
        let mut ours: Vec<_> = self.listed().into_iter().filter_map(found).collect();
        ours.sort();
        ours.dedup();
        ours
    }

    /// Git's index over several packs, if there is one: what it names is git's to put together.
    /// `None` if there is one that cannot be read.
    fn held_by_an_index(&self) -> Option<Vec<u8>> {
        if self.dir.join("multi-pack-index.d").exists() {
            return None;
        }
        let index = read_small(&self.dir.join("multi-pack-index"), INDEX_MAX_BYTES).ok()?;
        Some(index.unwrap_or_default())
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
    fn merge(&self, old: &[&str]) -> io::Result<Option<String>> {
        let objects = self.dir.parent().unwrap_or(&self.dir);
        let mut pack = Pack::begin(objects, self.hash, false)?;
        let mut seen = HashSet::new();
        for name in old {
            let file = File::open(self.path(name, "pack"))?;
            let length = file.metadata()?.len();
            let index = fs::read(self.path(name, "idx"))?;
            let (mut file, mut at) = (BufReader::with_capacity(256 << 10, file), 0);
            for (id, crc, range) in rows(&index, length, self.hash).ok_or_else(damaged)? {
                let bytes = range.end.checked_sub(range.start).ok_or_else(damaged)?;
                if seen.insert(id) {
                    let ahead = i64::try_from(range.start - at).map_err(|_| damaged())?;
                    file.seek_relative(ahead)?;
                    pack.copy(id, crc, &mut file, bytes)?;
                    at = range.end;
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

/// Which packs to put together, given their sizes, the smallest first: none unless there are more than
/// `max`, and none that would make more than `copied_max_bytes` to copy, or [`PAIR_MAX_BYTES`].
///
/// Those stay that are twice as large as everything below them. So a byte is copied once for each time
/// what is there has doubled, however large it is: gigabytes seldom, and never for one small pack more.
fn which(sizes: &[u64], max: usize, copied_max_bytes: u64) -> Range<usize> {
    if sizes.len() <= max {
        return 0..0;
    }
    let (mut below, mut count, mut affordable) = (0_u64, 0, 0);
    for (n, size) in sizes.iter().enumerate() {
        if *size < below.saturating_mul(2) {
            count = n + 1;
        }
        below = below.saturating_add(*size);
        if below <= copied_max_bytes {
            affordable = n + 1;
        }
    }
    // Half of what there may be at most is left, so that it is not done again at once.
    match count.max(sizes.len() + 1 - max / 2).min(affordable) {
        0 | 1 => pair(sizes),
        count => 0..count,
    }
}

/// Two of packs so large that more would take too long: the smallest, unless one of them is so small
/// that the other would be copied again for the next one like it.
fn pair(sizes: &[u64]) -> Range<usize> {
    let from = match sizes {
        [smallest, next, _, ..] if *next > smallest.saturating_mul(2) => 1,
        _ => 0,
    };
    let pair = from..from + 2;
    let bytes = sizes.get(pair.clone()).map_or(u64::MAX, |pair| pair.iter().sum());
    if bytes <= PAIR_MAX_BYTES { pair } else { 0..0 }
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|window| window == part)
}

pub(super) type Row = (ObjectId, u32, Range<u64>);

/// What the index of a pack of ours says: each object, its checksum, and where it is. Ours have
/// version 2 and no deltas, so an entry ends where the next one begins.
pub(super) fn rows(index: &[u8], pack_bytes: u64, hash: HashKind) -> Option<Vec<Row>> {
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
    let large = offsets.checked_add(count.checked_mul(4)?)?;
    let mut found = Vec::new();
    for number in 0..count {
        let id = index.get(ids + number * width..ids + (number + 1) * width)?;
        let offset = match u32_at(offsets + number * 4)? {
            offset if offset < LARGE => u64::from(offset),
            row => {
                let at = large.checked_add(((row ^ LARGE) as usize).checked_mul(8)?)?;
                u64::from(u32_at(at)?) << 32 | u64::from(u32_at(at + 4)?)
            }
        };
        found.push((offset, ObjectId::from_bytes_or_panic(id), u32_at(crcs + number * 4)?));
    }
    found.sort_unstable_by_key(|(offset, _, _)| *offset);
    let end = pack_bytes.checked_sub(width as u64)?;
    let ends: Vec<u64> = found.iter().skip(1).map(|(offset, _, _)| *offset).chain([end]).collect();
    let rows = found.into_iter().zip(ends).map(|((at, id, crc), end)| (id, crc, at..end));
    Some(rows.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Adds packs one by one, as saves do, with a background that runs or not; the most there ever
    /// were, and how much was copied for each byte that was added.
    fn live(added: impl Iterator<Item = u64>, tidies: bool) -> (usize, u64) {
        let (mut packs, mut most) = (Vec::<u64>::new(), 0);
        let (mut copied, mut total) = (0, 0);
        let mut merge = |packs: &mut Vec<u64>, max, copied_max_bytes| {
            packs.sort_unstable();
            let chosen = which(packs, max, copied_max_bytes);
            if chosen.len() > 1 {
                let merged: u64 = packs.drain(chosen).sum();
                assert!(merged <= copied_max_bytes.max(PAIR_MAX_BYTES), "{merged} at once");
                copied += merged;
                packs.push(merged);
            }
        };
        for size in added {
            total += size;
            packs.push(size);
            merge(&mut packs, PACKS_AT_MOST, SAVE_MAX_BYTES);
            most = most.max(packs.len());
            if tidies {
                merge(&mut packs, PACKS_MAX, u64::MAX);
            }
        }
        assert_eq!(packs.iter().sum::<u64>(), total, "not a byte is lost");
        (most, copied / total)
    }

    #[test]
    fn there_are_never_many_and_gigabytes_are_seldom_copied() {
        const MB: u64 = 1 << 20;
        let mixed = |n: u64| if n.is_multiple_of(9) { 300 * MB } else { 1 + n * n % MB };
        for (most, copied, (found, times)) in [
            (17, 8, live((0..2000).map(|_| MB), true)),
            (17, 8, live((0..2000).map(|_| 500 * MB), true)),
            (17, 8, live((0..2000).map(mixed), true)),
            // One large first snapshot, and small ones for ever.
            (17, 1, live((0..2000).map(|n| if n == 0 { 20_000 * MB } else { 10_000 }), true)),
            // Nobody tidies up: then whoever saves does, as far as it is cheap.
            (20, 8, live((0..2000).map(|n| 1000 + n), false)),
            (20, 17, live((0..2000).map(|_| MB), false)),
            (20, 4, live((0..60).map(|_| 40 * MB), false)),
            (20, 5, live((0..200).map(|n| if n % 5 == 0 { 50 * MB } else { n * n }), false)),
            (20, 1, live((0..2000).map(|n| if n == 0 { 20_000 * MB } else { 10_000 }), false)),
        ] {
            assert!(found <= most, "{found} packs instead of {most}");
            assert!(times <= copied, "each byte was copied {times} times instead of {copied}");
        }
    }

    #[test]
    fn where_nobody_tidies_up_two_large_ones_go_together_and_no_small_one_drags_them_along() {
        const MB: u64 = 1 << 20;
        let chosen = |smallest: u64, others: u64| {
            let mut sizes = vec![others; 21];
            sizes[0] = smallest;
            which(&sizes, PACKS_AT_MOST, SAVE_MAX_BYTES)
        };
        assert_eq!(chosen(70 * MB, 100 * MB), 0..2);
        assert_eq!(chosen(1, 100 * MB), 1..3);
        assert_eq!(chosen(1, 200 * MB), 0..0, "a hook has no time for so much");
        assert_eq!(which(&[1, 2, 3], 2, 0), 0..2);
        assert_eq!(which(&[1], 0, 0), 0..0);
    }

    #[test]
    fn an_entry_beyond_two_gigabytes_is_found() {
        let id = |byte| ObjectId::Sha1([byte; 20]);
        let rows_then = [(id(1), 7, 12), (id(2), 8, 5 << 30)];
        let index = super::super::pack::index_of(&rows_then, &id(9), HashKind::Sha1).unwrap();
        let found = rows(&index, (6 << 30) + 20, HashKind::Sha1).unwrap();
        assert_eq!(found, [(id(1), 7, 12..5 << 30), (id(2), 8, 5 << 30..6 << 30)]);
    }
}
