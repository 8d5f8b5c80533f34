//! What is done to private repositories in the background: borrowed objects that checkpoints need
//! become copies of our own, packs the user's gc replaced are let go, many packs become few, and
//! what no checkpoint needs is freed.

mod sweep;
mod weights;

use std::{
    collections::HashSet,
    fs::{self, File},
    io::{self, BufReader},
    ops::Range,
    os::unix::{ffi::OsStrExt, fs::MetadataExt},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use gix::{
    ObjectId,
    hash::Kind as HashKind,
    objs::{Find, tree::EntryKind},
    odb::pack::Find as _,
};

pub(in crate::store) use self::{
    sweep::{Needed, sweep},
    weights::Weights,
};
use super::{Private, borrow, names_of};
use crate::{
    crash,
    error::{Error, Result},
    fs::{Lock, read_small, stat_path},
    state::State,
    store::{
        git::{
            pack::{Deflater, Pack, Packed},
            refs,
            repo::{Odb, Repo, content_id, open_odb},
            tree,
        },
        record,
    },
};

/// So many packs of ours may lie in a repository before they are put together.
const PACKS_MAX: usize = 16;
/// An index over ten million objects.
const INDEX_MAX_BYTES: u64 = 512 << 20;
/// Where an offset says that it is one of eight bytes.
const LARGE: u32 = 1 << 31;
/// How often borrowed objects are looked for while checkpoints keep coming.
const MAINTAINED_NS: i64 = 600_000_000_000;
/// A pack with less dead in it than a quarter is left as it is if it is larger than this.
const REWRITTEN_MAX_BYTES: u64 = 64 << 20;

/// What the index of a pack says of one object: its name, its checksum, and where it is.
pub(in crate::store::git) type Row = (ObjectId, u32, Range<u64>);

/// Maintains every private repository that needs it. `room_bytes` is what may be copied in all.
/// Returns whether everything that checkpoints need of the work tree is now our own.
///
/// # Errors
///
/// Fails if a repository cannot be read or written. Nothing is lost then.
pub fn maintain(state: &State, room_bytes: u64) -> Result<bool> {
    let (mut room, mut is_whole) = (room_bytes, true);
    for private in Private::all(state)?.into_iter().filter(Private::exists) {
        let one = Maintenance { state, private };
        is_whole &= one.run(&mut room)?;
    }
    Ok(is_whole)
}

/// Gives up what only old packs of the users' have, which their gc has replaced since: history that
/// a checkpoint of before then still leads to, and no file of any. For when there is no room.
/// Returns how many bytes that freed.
///
/// # Errors
///
/// As [`maintain`].
pub fn give_up_history(state: &State) -> Result<u64> {
    let before = crate::store::own_bytes(&state.repositories());
    for private in Private::all(state)?.into_iter().filter(Private::exists) {
        let one = Maintenance { state, private };
        one.alone_at_it(|| {
            let origin = one.private.origin().and_then(|origin| origin.path());
            match origin.filter(|origin| origin.join("objects").is_dir()) {
                Some(origin) if one.make_own(&mut u64::MAX.clone())? => {
                    one.let_go(&origin, i64::MAX)
                }
                Some(_) | None => Ok(()),
            }
        })?;
    }
    Ok(before.saturating_sub(crate::store::own_bytes(&state.repositories())))
}

impl Private {
    /// Whether [`maintain`] is worth its while: there are many packs, or checkpoints newer than
    /// the last time.
    pub(in crate::store::git) fn is_due(&self) -> bool {
        let maintained = stat_path(&self.marker()).map(|stamp| stamp.mtime_ns);
        let is_recent = maintained
            .as_ref()
            .is_ok_and(|at| at.saturating_add(MAINTAINED_NS) > crate::fs::now_ns());
        let packs = || own_packs(&self.dir().join("objects/pack")).len();
        let is_worth_it = || maintained.is_err() || packs() > PACKS_MAX || self.has_newer_refs();
        self.exists() && !is_recent && is_worth_it()
    }

    fn has_newer_refs(&self) -> bool {
        let told = read_small(&self.marker(), 1 << 20).ok().flatten().unwrap_or_default();
        refs::digest(&self.repo()).is_none_or(|digest| digest.as_bytes() != told)
    }

    /// Says which refs there were when everything they need was last made our own.
    fn marker(&self) -> PathBuf {
        self.dir().join("maintained")
    }
}

struct Maintenance<'a> {
    state: &'a State,
    private: Private,
}

impl Maintenance<'_> {
    /// Does something that only one may do at a time, unless another does.
    fn alone_at_it(&self, work: impl FnOnce() -> Result<()>) -> Result<()> {
        let lock = self.private.dir().join("maintenance.lock");
        match Lock::acquire(&lock, Instant::now()) {
            Ok(_only_one) => work(),
            Err(Error::Busy { .. }) => Ok(()),
            Err(err) => Err(err),
        }
    }

    fn run(&self, room: &mut u64) -> Result<bool> {
        let mut is_whole = true;
        self.alone_at_it(|| {
            is_whole = self.everything(room)?;
            Ok(())
        })?;
        Ok(is_whole)
    }

    fn everything(&self, room: &mut u64) -> Result<bool> {
        let digest = refs::digest(&self.private.repo());
        let origin = self.private.origin().and_then(|origin| origin.path());
        let origin = origin.filter(|origin| origin.join("objects").is_dir());
        let shared = self.private.share(None)?;
        if let Some(origin) = &origin {
            self.private.borrow(origin, false, Some(borrow::BACKGROUND_MAX_BYTES.min(*room)))?;
        }
        let is_whole = self.make_own(room)?;
        self.put_together()?;
        drop(shared);
        if is_whole && let Some(origin) = &origin {
            self.let_go(origin, self.oldest_checkpoint_ns()?)?;
        }
        crash::point("maintained");
        if let Some(digest) = digest.filter(|_| is_whole) {
            crate::fs::replace(&self.private.marker(), digest.as_bytes())?;
        }
        Ok(is_whole)
    }

    /// Copies every object that a ref needs and that is only borrowed into a pack of our own.
    fn make_own(&self, room: &mut u64) -> Result<bool> {
        let repo = self.private.repo();
        let mut marks = Marks::default();
        marks.look(&repo)?;
        let own = own_ids(&self.private.dir().join("objects"), repo.hash)?;
        let mut borrowed: Vec<ObjectId> =
            marks.seen.iter().filter(|id| !own.contains(*id)).copied().collect();
        borrowed.sort_unstable();
        let mut copy = Copy::new(&repo)?;
        borrowed.retain(|id| copy.has(id));
        if borrowed.is_empty() {
            return Ok(true);
        }
        let sizes: u64 = borrowed.iter().map(|id| copy.size(id)).sum();
        if sizes > *room {
            return Ok(false);
        }
        let mut pack = Pack::begin(&repo.objects(), repo.hash).map_err(self.failed())?;
        for id in &borrowed {
            copy.add(*id, &mut pack)?;
        }
        crash::point("make-own");
        pack.finish().map_err(self.failed())?;
        *room -= sizes;
        Ok(true)
    }

    fn failed(&self) -> impl FnOnce(io::Error) -> Error {
        Error::io("add objects to", self.private.dir())
    }

    /// Puts packs of ours together if there are many.
    fn put_together(&self) -> Result<()> {
        let dir = self.private.dir().join("objects/pack");
        let mut packs = own_packs(&dir);
        packs.sort();
        let sizes: Vec<u64> = packs.iter().map(|(size, _)| *size).collect();
        let chosen = which(&sizes, PACKS_MAX);
        if chosen.len() < 2 || !has_room(&dir, sizes[chosen.clone()].iter().sum()) {
            return Ok(());
        }
        let old: Vec<&PathBuf> = packs[chosen].iter().map(|(_, path)| path).collect();
        let hash = self.private.repo().hash;
        let merge = || -> io::Result<()> {
            let mut pack = Pack::begin(&self.private.dir().join("objects"), hash)?;
            let mut seen = HashSet::new();
            for path in &old {
                copy_rows(path, hash, &mut pack, |id| seen.insert(*id))?;
            }
            pack.finish()?;
            crash::point("put-together");
            // Every object of theirs is in the new one.
            for path in &old {
                let _next_time = remove_pack(path);
            }
            Ok(())
        };
        merge().map_err(Error::io("put packs together in", &dir))
    }

    /// Lets go of packs and loose objects that the user's gc has replaced. What only they had stays
    /// as long as there is a checkpoint from before they were replaced; `oldest` is when the oldest was
    /// taken, in nanoseconds since 1970.
    fn let_go(&self, origin: &Path, oldest: i64) -> Result<()> {
        let mut dirs = Vec::new();
        borrow::object_dirs(origin, b"", 0, &mut dirs);
        let repo = self.private.repo();
        for name in dirs {
            let name = std::ffi::OsStr::from_bytes(&name);
            let (theirs, ours) = (origin.join(name), self.private.dir().join("linked").join(name));
            self.let_go_in(&theirs, &ours, &repo, oldest)?;
        }
        Ok(())
    }

    fn let_go_in(&self, theirs: &Path, ours: &Path, repo: &Repo, oldest: i64) -> Result<()> {
        let is_theirs =
            |path: &Path| theirs.join("pack").join(path.file_name().unwrap_or_default()).exists();
        let all = own_packs(&ours.join("pack"));
        let (_, stale): (Vec<_>, Vec<_>) = all.iter().partition(|(_, path)| is_theirs(path));
        let stale_loose = stale_loose(theirs, ours);
        if stale.is_empty() && stale_loose.is_empty() {
            return Ok(());
        }
        // What they have is what stays in any case.
        let mut stays: HashSet<ObjectId> = HashSet::new();
        for (_, path) in own_packs(&theirs.join("pack")) {
            stays.extend(ids_of(&path, repo.hash));
        }
        let mut goes = Vec::new();
        for (_, path) in &stale {
            let ids = ids_of(path, repo.hash);
            let only: Vec<ObjectId> =
                ids.iter().filter(|id| !stays.contains(*id)).copied().collect();
            let replaced = stat_path(path).map_or(i64::MAX, |stamp| stamp.ctime_ns);
            if only.is_empty() || replaced < oldest {
                goes.push(path.clone());
            } else if only.len() < ids.len() {
                rescue(path, ours, repo, &only)?;
                goes.push(path.clone());
            }
            stays.extend(only);
        }
        if goes.is_empty() && stale_loose.is_empty() {
            return Ok(());
        }
        let until = Instant::now() + Duration::from_secs(5);
        let _alone = match self.private.alone(until) {
            Ok(lock) => lock,
            Err(Error::Busy { .. }) => return Ok(()),
            Err(err) => return Err(err),
        };
        // Whoever saved meanwhile may rely on what is to go.
        if !self.make_own(&mut u64::MAX.clone())? {
            return Ok(());
        }
        crash::point("let-go");
        for path in &goes {
            let _next_time = remove_pack(path);
        }
        for (path, id, replaced) in stale_loose {
            if stays.contains(&id) || replaced < oldest {
                let _gone = fs::remove_file(path);
            }
        }
        Ok(())
    }

    /// When the oldest checkpoint was taken that holds this repository, in nanoseconds since 1970.
    fn oldest_checkpoint_ns(&self) -> Result<i64> {
        let mut oldest = i64::MAX;
        for root in record::all_roots(self.state)? {
            for kept in record::read_all(&root)? {
                let Ok(record) = &kept.record else { return Ok(i64::MIN) };
                let name = self.private.name();
                let holds = record.store.as_deref() == Some(name)
                    || record.repositories.iter().any(|held| held.store == name);
                if holds {
                    let at = record.checkpoint.taken_at.timestamp_nanos_opt().unwrap_or(i64::MIN);
                    oldest = oldest.min(at);
                }
            }
        }
        Ok(oldest)
    }
}

/// Puts what only `pack` has into a pack of its own, beside those of the user's.
fn rescue(pack: &Path, ours: &Path, repo: &Repo, only: &[ObjectId]) -> Result<()> {
    let mut copy = Copy::new(repo)?;
    let failed = |err| Error::io("rescue what only an old pack has from", pack)(err);
    let mut rescued = Pack::begin(ours, repo.hash).map_err(failed)?;
    for id in only {
        copy.add(*id, &mut rescued)?;
    }
    rescued.finish().map(drop).map_err(failed)
}

/// Loose objects that the user's repository no longer has as such, and since when.
fn stale_loose(theirs: &Path, ours: &Path) -> Vec<(PathBuf, ObjectId, i64)> {
    let mut stale = Vec::new();
    for fan in names_of(ours).unwrap_or_default() {
        let Some(fan) = fan.to_str().filter(|fan| fan.len() == 2) else { continue };
        for rest in names_of(&ours.join(fan)).unwrap_or_default() {
            let Some(rest) = rest.to_str() else { continue };
            let Ok(id) = ObjectId::from_hex(format!("{fan}{rest}").as_bytes()) else { continue };
            if theirs.join(fan).join(rest).symlink_metadata().is_err() {
                let path = ours.join(fan).join(rest);
                let since = stat_path(&path).map_or(i64::MAX, |stamp| stamp.ctime_ns);
                stale.push((path, id, since));
            }
        }
    }
    stale
}

/// Every object that some ref needs.
#[derive(Default)]
struct Marks {
    seen: HashSet<ObjectId>,
}

impl Marks {
    /// Adds what the refs need that was not seen yet.
    fn look(&mut self, repo: &Repo) -> Result<()> {
        for name in refs::all(repo)? {
            // One that cannot be read keeps nothing; `check` names it.
            if let Ok(Some(tree)) = refs::read(repo, &name) {
                below(repo, tree, &mut |id| self.seen.insert(id))?;
            }
        }
        Ok(())
    }
}

/// Shows every object of a tree. `is_new` says whether to look into it.
///
/// # Errors
///
/// Fails if the disk does not give a tree: what that needs must still be there. One that is damaged
/// is of no use to anybody.
fn below(repo: &Repo, top: ObjectId, is_new: &mut dyn FnMut(ObjectId) -> bool) -> Result<()> {
    let mut unread = vec![top];
    while let Some(id) = unread.pop() {
        if !is_new(id) {
            continue;
        }
        let entries = match tree::entries(repo, &id) {
            Err(Error::Damaged { .. }) => continue,
            entries => entries?,
        };
        for (_, kind, id) in entries {
            match kind {
                EntryKind::Tree => unread.push(id),
                EntryKind::Commit => (),
                EntryKind::Blob | EntryKind::BlobExecutable | EntryKind::Link => drop(is_new(id)),
            }
        }
    }
    Ok(())
}

/// Copies objects from wherever a repository has them.
struct Copy {
    odb: Odb,
    deflater: Deflater,
    buffer: Vec<u8>,
}

impl Copy {
    fn new(repo: &Repo) -> Result<Self> {
        let mut odb = open_odb(&repo.objects(), &repo.common_dir, repo.hash)?;
        // Places in packs are only told while the packs stay open.
        odb.prevent_pack_unload();
        Ok(Self { odb, deflater: Deflater::new(), buffer: Vec::new() })
    }

    fn has(&self, id: &ObjectId) -> bool {
        gix::objs::Exists::exists(&self.odb, id)
    }

    /// About how many bytes a copy takes.
    fn size(&mut self, id: &ObjectId) -> u64 {
        match self.odb.location_by_oid(id, &mut self.buffer) {
            Ok(Some(location)) => location.entry_size as u64,
            Ok(None) | Err(_) => 0,
        }
    }

    /// Adds an object: as it lies in its pack where it is whole there, else made again.
    fn add(&mut self, id: ObjectId, pack: &mut Pack) -> Result<()> {
        let failed = |err: io::Error| Error::Other {
            message: format!("cannot copy object {id}: {err}"),
            hint: None,
        };
        let location = self.odb.location_by_oid(&id, &mut self.buffer).ok().flatten();
        if let Some(entry) = location.and_then(|location| self.odb.entry_by_location(&location))
            && is_whole_entry(&entry.data)
        {
            return pack.push_raw(id, &entry.data).map_err(failed);
        }
        let mut buffer = std::mem::take(&mut self.buffer);
        let found = Find::try_find(&self.odb, &id, &mut buffer);
        let packed = match found {
            Ok(Some(data)) => Packed::new(data.kind, id, data.data, &mut self.deflater),
            Ok(None) => return Err(Error::damaged(id.to_string(), "it went while it was copied")),
            Err(err) => return Err(Error::damaged(id.to_string(), err.to_string())),
        };
        self.buffer = buffer;
        pack.push(&packed).map_err(failed)
    }
}

/// Whether a pack entry is an object of its own, and no difference from another.
fn is_whole_entry(entry: &[u8]) -> bool {
    entry.first().is_some_and(|byte| (1..=4).contains(&(byte >> 4 & 7)))
}

/// The names of every object in a directory of objects of ours.
fn own_ids(objects: &Path, hash: HashKind) -> Result<HashSet<ObjectId>> {
    let mut ids: HashSet<ObjectId> = loose_in(objects).into_iter().map(|(_, id)| id).collect();
    for (_, path) in own_packs(&objects.join("pack")) {
        ids.extend(rows_of(&path, hash)?.into_iter().map(|(id, _, _)| id));
    }
    Ok(ids)
}

fn ids_of(pack: &Path, hash: HashKind) -> Vec<ObjectId> {
    rows_of(pack, hash)
        .map_or_else(|_| Vec::new(), |rows| rows.into_iter().map(|it| it.0).collect())
}

/// The loose objects in a directory of objects.
fn loose_in(objects: &Path) -> Vec<(PathBuf, ObjectId)> {
    let mut found = Vec::new();
    for fan in names_of(objects).unwrap_or_default() {
        let Some(fan) = fan.to_str().filter(|fan| fan.len() == 2) else { continue };
        for rest in names_of(&objects.join(fan)).unwrap_or_default() {
            let id =
                rest.to_str().map(|rest| ObjectId::from_hex(format!("{fan}{rest}").as_bytes()));
            if let Some(Ok(id)) = id {
                found.push((objects.join(fan).join(&rest), id));
            }
        }
    }
    found
}

/// The packs in a directory that have an index, with their sizes.
fn own_packs(dir: &Path) -> Vec<(u64, PathBuf)> {
    let names = names_of(dir).unwrap_or_default();
    let packs = names.iter().filter(|name| name.as_bytes().ends_with(b".idx"));
    packs
        .filter_map(|name| {
            let path = dir.join(name).with_extension("pack");
            Some((stat_path(&path).ok()?.size, path))
        })
        .collect()
}

fn size_on_disk(path: &Path) -> u64 {
    let own = |path: &Path| {
        fs::symlink_metadata(path)
            .map_or(0, |it| if it.nlink() > 1 { 0 } else { it.blocks() * 512 })
    };
    if path.extension().is_some_and(|end| end == "pack") {
        own(path) + own(&path.with_extension("idx"))
    } else {
        own(path)
    }
}

/// Removes a pack: its index first, as git does, so that nobody finds an index without its pack.
fn remove_pack(path: &Path) -> io::Result<u64> {
    let freed = size_on_disk(path);
    // One that somebody's git has written names packs that are about to go.
    let _absent = fs::remove_file(path.with_file_name("multi-pack-index"));
    for extension in ["idx", "rev", "bitmap", "promisor", "mtimes"] {
        let _absent = fs::remove_file(path.with_extension(extension));
    }
    match fs::remove_file(path) {
        Err(err) if err.kind() != io::ErrorKind::NotFound => Err(err),
        Ok(()) | Err(_) => Ok(freed),
    }
}

fn has_room(dir: &Path, bytes: u64) -> bool {
    let found = rustix::fs::statvfs(dir);
    found.map_or(true, |found| found.f_bavail.saturating_mul(found.f_frsize) / 2 >= bytes)
}

/// Copies those entries of a pack of ours that `wanted` says into another.
fn copy_rows(
    path: &Path,
    hash: HashKind,
    to: &mut Pack,
    mut wanted: impl FnMut(&ObjectId) -> bool,
) -> io::Result<()> {
    let rows = rows_of(path, hash).map_err(|err| io::Error::other(err.to_string()))?;
    let (mut file, mut at) = (BufReader::with_capacity(256 << 10, File::open(path)?), 0);
    for (id, crc, range) in rows {
        if wanted(&id) {
            let ahead = i64::try_from(range.start - at).map_err(|_| damaged())?;
            file.seek_relative(ahead)?;
            to.copy(id, crc, &mut file, range.end - range.start)?;
            at = range.end;
        }
    }
    Ok(())
}

fn damaged() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "a pack is not as its index says")
}

/// What the index beside a pack says.
fn rows_of(pack: &Path, hash: HashKind) -> Result<Vec<Row>> {
    let index = read_small(&pack.with_extension("idx"), INDEX_MAX_BYTES)?.unwrap_or_default();
    let length = stat_path(pack).map_or(0, |stamp| stamp.size);
    rows(&index, length, hash)
        .ok_or_else(|| Error::damaged(pack.display().to_string(), "it is not as its index says"))
}

/// Which packs to put together, given their sizes, the smallest first: none unless there are more
/// than `max`.
///
/// Those stay that are twice as large as everything below them. So a byte is copied once for each
/// time what is there has doubled, however large it is: gigabytes seldom, and never for one small
/// pack more.
fn which(sizes: &[u64], max: usize) -> Range<usize> {
    if sizes.len() <= max {
        return 0..0;
    }
    let (mut below, mut count) = (0_u64, 0);
    for (n, size) in sizes.iter().enumerate() {
        if *size < below.saturating_mul(2) {
            count = n + 1;
        }
        below = below.saturating_add(*size);
    }
    // Half of what there may be at most is left, so that it is not done again at once.
    0..count.max(sizes.len() + 1 - max / 2)
}

/// The rows of an index of version 2, by where the objects are. An entry ends where the next one
/// begins.
pub(in crate::store::git) fn rows(
    index: &[u8],
    pack_bytes: u64,
    hash: HashKind,
) -> Option<Vec<Row>> {
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
    let rows: Vec<Row> = rows.collect();
    rows.iter().all(|(_, _, range)| range.start <= range.end).then_some(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Adds packs one by one, as saves do; the most there ever were, and how much was copied for
    /// each byte that was added.
    fn live(added: impl Iterator<Item = u64>) -> (usize, u64) {
        let (mut packs, mut most) = (Vec::<u64>::new(), 0);
        let (mut copied, mut total) = (0, 0);
        for size in added {
            total += size;
            packs.push(size);
            most = most.max(packs.len());
            packs.sort_unstable();
            let chosen = which(&packs, PACKS_MAX);
            if chosen.len() > 1 {
                let merged: u64 = packs.drain(chosen).sum();
                copied += merged;
                packs.push(merged);
            }
        }
        assert_eq!(packs.iter().sum::<u64>(), total, "not a byte is lost");
        (most, copied / total)
    }

    #[test]
    fn there_are_never_many_and_gigabytes_are_seldom_copied() {
        const MB: u64 = 1 << 20;
        let mixed = |n: u64| if n.is_multiple_of(9) { 300 * MB } else { 1 + n * n % MB };
        for (copied, (found, times)) in [
            (8, live((0..2000).map(|_| MB))),
            (8, live((0..2000).map(|_| 500 * MB))),
            (8, live((0..2000).map(mixed))),
            // One large first snapshot, and small ones for ever.
            (1, live((0..2000).map(|n| if n == 0 { 20_000 * MB } else { 10_000 }))),
        ] {
            assert!(found <= 17, "{found} packs");
            assert!(times <= copied, "each byte was copied {times} times instead of {copied}");
        }
    }

    #[test]
    fn an_entry_beyond_two_gigabytes_is_found() {
        let id = |byte| ObjectId::Sha1([byte; 20]);
        let rows_then = [(id(1), 7, 12), (id(2), 8, 5 << 30)];
        let index = crate::store::git::pack::index_of(&rows_then, &id(9), HashKind::Sha1).unwrap();
        let found = rows(&index, (6 << 30) + 20, HashKind::Sha1).unwrap();
        assert_eq!(found, [(id(1), 7, 12..5 << 30), (id(2), 8, 5 << 30..6 << 30)]);
    }

    #[test]
    fn only_an_object_of_its_own_is_copied_as_it_lies() {
        for (kind, is_whole) in [(1, true), (2, true), (3, true), (4, true), (6, false), (7, false)]
        {
            assert_eq!(is_whole_entry(&[kind << 4 | 0x85]), is_whole, "{kind}");
        }
        assert!(!is_whole_entry(&[]));
    }
}
