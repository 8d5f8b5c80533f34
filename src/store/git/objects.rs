//! Adds objects to the repository: a few as loose objects, many as one pack.
//!
//! Nothing is visible before [`Writer::finish`], and everything is on the disk after it. Objects
//! that are there already are not written again; those among them that are loose are made young,
//! so that no gc that is running prunes them, as git does itself. For packed ones see
//! `Packs`: whoever relied on one looks afterwards whether its pack still stands.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    ffi::OsStr,
    fs::{self, File},
    io::{self, BufWriter, Read, Write},
    path::{Path, PathBuf},
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use flate2::{Compression, write::ZlibEncoder};
use gix::{
    ObjectId,
    hash::Kind as HashKind,
    objs::{Exists, Kind},
};
use rustix::fs::{AtFlags, CWD, Timespec, Timestamps, UTIME_NOW, utimensat};

use super::{
    files::{Temporary, durable_rename, subdir},
    pack::{Deflater, Keep, Pack, Packed},
    repo::{Odb, Repo, name},
};
use crate::{
    error::{Error, Result},
    fs::{all_at_once, now_ns, stat_path},
    model::Stamp,
    scan::is_racy,
};

/// One loose object is a file for the user's git to carry and a sync for us; a pack is two files
/// and two syncs whatever is in it. Many packs slow git down too: see `consolidate`.
const LOOSE_MAX: usize = 3;
/// What is held in memory before it is known whether there will be a pack.
const HELD_MAX_BYTES: usize = 4 << 20;
/// New trees that are remembered: those of some hundred directories.
const TREES_MAX_BYTES: usize = 256 << 10;
/// Larger files are streamed, each into a loose object of its own.
pub(super) const LARGE_BYTES: u64 = 4 << 20;

/// Collects new objects. Shared by the threads that make them.
pub(super) struct Writer {
    objects: PathBuf,
    hash: HashKind,
    state: Mutex<State>,
    packing: AtomicBool,
    shelter: bool,
    /// Those that nobody uses right now. To make one costs more than to squeeze ten files: its
    /// tables are zeroed.
    deflaters: Mutex<Vec<Deflater>>,
}

#[derive(Default)]
struct State {
    seen: HashSet<ObjectId>,
    reused: Vec<ObjectId>,
    held: Vec<(Kind, ObjectId, Vec<u8>)>,
    held_bytes: usize,
    /// New trees, for whoever compares them before they are on the disk.
    trees: HashMap<ObjectId, Vec<u8>>,
    trees_bytes: usize,
    pack: Option<Pack>,
    large: Vec<(ObjectId, Temporary, File)>,
}

impl Writer {
    /// With `shelter`, nothing that is there is relied on, and everything becomes a pack, however
    /// little it is: see [`Keep`]. Only a large file is loose all the same.
    pub(super) fn new(repo: &Repo, shelter: bool) -> Self {
        let packing = AtomicBool::new(false);
        let (objects, hash, state) = (repo.objects(), repo.hash, Mutex::default());
        Self { objects, hash, state, packing, shelter, deflaters: Mutex::default() }
    }

    /// The object directory.
    pub(super) fn objects(&self) -> &Path {
        &self.objects
    }

    /// The body of a tree that waits to be written, while few do.
    pub(super) fn held_tree(&self, id: &ObjectId) -> Option<Vec<u8>> {
        self.lock().trees.get(id).cloned()
    }

    /// Whether nothing has to be written.
    pub(super) fn is_empty(&self) -> bool {
        let state = self.lock();
        state.held.is_empty() && state.pack.is_none() && state.large.is_empty()
    }

    /// Adds an object, unless it is there, and names it.
    pub(super) fn add(&self, kind: Kind, body: &[u8], odb: &Odb) -> Result<ObjectId> {
        let id = name(self.hash, kind, body)?;
        self.add_named(kind, id, body, odb)?;
        Ok(id)
    }

    /// Adds an object whose name is known, unless it is there.
    pub(super) fn add_named(&self, kind: Kind, id: ObjectId, body: &[u8], odb: &Odb) -> Result<()> {
        if self.is_needed(id, odb) {
            self.put(kind, id, body).map_err(self.failed())?;
        }
        Ok(())
    }

    /// Whether the repository has `id`, which may then be relied on.
    pub(super) fn relies_on(&self, id: ObjectId, odb: &Odb) -> bool {
        if self.lock().seen.contains(&id) {
            return true;
        }
        let is_there = self.finds(&id, odb);
        if is_there {
            let mut state = self.lock();
            state.seen.insert(id);
            state.reused.push(id);
        }
        is_there
    }

    fn finds(&self, id: &ObjectId, odb: &Odb) -> bool {
        !self.shelter && odb.exists(id)
    }

    /// Notes `id`; tells whether somebody has to bring its bytes. Asks the repository only once.
    fn is_needed(&self, id: ObjectId, odb: &Odb) -> bool {
        if !self.lock().seen.insert(id) {
            return false;
        }
        let is_there = self.finds(&id, odb);
        if is_there {
            self.lock().reused.push(id);
        }
        !is_there
    }

    fn put(&self, kind: Kind, id: ObjectId, body: &[u8]) -> io::Result<()> {
        if kind == Kind::Tree {
            self.lock().remember_tree(id, body);
        }
        if self.packing.load(Ordering::Relaxed) {
            let packed = self.squeezed(|deflater| Packed::new(kind, id, body, deflater));
            return self.lock().push(&packed);
        }
        let mut state = self.lock();
        // Another thread may have begun the pack meanwhile.
        if state.pack.is_some() {
            return state.push(&self.squeezed(|deflater| Packed::new(kind, id, body, deflater)));
        }
        state.held.push((kind, id, body.to_vec()));
        state.held_bytes += body.len();
        let are_few = state.held.len() <= LOOSE_MAX && !self.shelter;
        if are_few && state.held_bytes <= HELD_MAX_BYTES {
            return Ok(());
        }
        state.pack = Some(Pack::begin(&self.objects, self.hash, self.shelter)?);
        self.packing.store(true, Ordering::Relaxed);
        for (kind, id, body) in std::mem::take(&mut state.held) {
            state.push(&self.squeezed(|deflater| Packed::new(kind, id, &body, deflater)))?;
        }
        Ok(())
    }

    fn squeezed<T>(&self, squeeze: impl FnOnce(&mut Deflater) -> T) -> T {
        let all = || self.deflaters.lock().unwrap_or_else(PoisonError::into_inner);
        let free = all().pop();
        let mut deflater = free.unwrap_or_else(Deflater::new);
        let squeezed = squeeze(&mut deflater);
        all().push(deflater);
        squeezed
    }

    /// Adds `size` bytes of a file as a blob without ever having them all in memory. `None` if
    /// the file has fewer. `from` is called once or twice, for a reader at the beginning.
    pub(super) fn add_large<R: Read>(
        &self,
        size: u64,
        odb: &Odb,
        mut from: impl FnMut() -> io::Result<R>,
    ) -> Result<Option<ObjectId>, Large> {
        let named = name_stream(self.hash, size, from().map_err(Large::Read)?)?;
        let Some(id) = named else { return Ok(None) };
        if self.lock().seen.contains(&id) || self.finds(&id, odb) {
            self.is_needed(id, odb);
            return Ok(Some(id));
        }
        let (temporary, file) =
            Temporary::create(&self.objects, "tmp_obj_").map_err(Large::Write)?;
        let (file, id) = write_stream(self.hash, size, from().map_err(Large::Read)?, file)?;
        let Some(id) = id else { return Ok(None) };
        if self.is_needed(id, odb) {
            self.lock().large.push((id, temporary, file));
        }
        Ok(Some(id))
    }

    /// Puts everything on the disk. Fails without having changed anything that git sees, or with
    /// objects that nothing refers to.
    pub(super) fn finish(self) -> Result<Written> {
        let state = std::mem::take(&mut *self.lock());
        let objects = &self.objects;
        let failed = |err| Error::io("add objects to", objects)(err);
        let pack = state.pack.map(Pack::finish).transpose().map_err(failed)?;
        let mut loose = state.large;
        for (kind, id, body) in &state.held {
            let loosed = self.squeezed(|deflater| write_loose(objects, *kind, *id, body, deflater));
            loose.push(loosed.map_err(failed)?);
        }
        let mut new = publish(objects, loose).map_err(failed)?;
        let (pack, keep) = pack.unzip();
        new.extend(pack);
        let (reused, objects) = (state.reused, self.objects);
        Ok(Written { reused, loose: Vec::new(), new, objects, keep })
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn failed(&self) -> impl FnOnce(io::Error) -> Error {
        Error::io("add objects to", &self.objects)
    }
}

impl State {
    fn remember_tree(&mut self, id: ObjectId, body: &[u8]) {
        if self.trees_bytes + body.len() <= TREES_MAX_BYTES {
            self.trees_bytes += body.len();
            self.trees.insert(id, body.to_vec());
        }
    }

    fn push(&mut self, packed: &Packed) -> io::Result<()> {
        let pack = self.pack.as_mut().expect("packing begins with a pack, which stays");
        pack.push(packed)
    }
}

/// Why a large file could not be added.
pub(super) enum Large {
    /// It could not be read.
    Read(io::Error),
    /// The repository could not be written.
    Write(io::Error),
}

fn blob_header(size: u64) -> String {
    format!("blob {size}\0")
}

/// The name of `size` bytes from a reader; `None` if there are fewer.
pub(super) fn name_stream(
    hash: HashKind,
    size: u64,
    from: impl Read,
) -> Result<Option<ObjectId>, Large> {
    let mut hasher = gix::hash::hasher(hash);
    hasher.update(blob_header(size).as_bytes());
    let whole = each_block(size, from, |block| {
        hasher.update(block);
        Ok(())
    })?;
    finished(hasher, whole)
}

fn write_stream(
    hash: HashKind,
    size: u64,
    from: impl Read,
    file: File,
) -> Result<(File, Option<ObjectId>), Large> {
    let mut hasher = gix::hash::hasher(hash);
    let mut out = ZlibEncoder::new(BufWriter::new(file), Compression::new(1));
    let header = blob_header(size);
    hasher.update(header.as_bytes());
    out.write_all(header.as_bytes()).map_err(Large::Write)?;
    let whole = each_block(size, from, |block| {
        hasher.update(block);
        out.write_all(block)
    })?;
    let out = out.finish().map_err(Large::Write)?;
    let file = out.into_inner().map_err(|err| Large::Write(err.into_error()))?;
    Ok((file, finished(hasher, whole)?))
}

fn each_block(
    size: u64,
    from: impl Read,
    mut each: impl FnMut(&[u8]) -> io::Result<()>,
) -> Result<bool, Large> {
    let mut from = from.take(size);
    let mut block = vec![0; 128 << 10];
    let mut left = size;
    loop {
        match from.read(&mut block) {
            Ok(0) => return Ok(left == 0),
            Ok(read) => {
                each(&block[..read]).map_err(Large::Write)?;
                left -= read as u64;
            }
            Err(err) if err.kind() == io::ErrorKind::Interrupted => (),
            Err(err) => return Err(Large::Read(err)),
        }
    }
}

fn finished(hasher: gix::hash::Hasher, whole: bool) -> Result<Option<ObjectId>, Large> {
    let id = hasher.try_finalize().map_err(|err| Large::Read(io::Error::other(err.to_string())))?;
    Ok(whole.then_some(id))
}

fn write_loose(
    objects: &Path,
    kind: Kind,
    id: ObjectId,
    body: &[u8],
    deflater: &mut Deflater,
) -> io::Result<(ObjectId, Temporary, File)> {
    let (temporary, mut file) = Temporary::create(objects, "tmp_obj_")?;
    let header = format!("{kind} {}\0", body.len());
    let mut squeezed = Vec::new();
    deflater.deflate(&[header.as_bytes(), body], &mut squeezed);
    file.write_all(&squeezed)?;
    Ok((id, temporary, file))
}

/// Syncs all files, then names them, then syncs their directories: the first sync of each kind
/// pays for the file system's journal, the others find it written. Returns their paths.
fn publish(objects: &Path, loose: Vec<(ObjectId, Temporary, File)>) -> io::Result<Vec<PathBuf>> {
    let files: Vec<_> = loose.iter().map(|(_, _, file)| file).collect();
    all_at_once(&files, |file| file.sync_data())?;
    let (mut dirs, mut paths) = (HashSet::new(), Vec::new());
    for (id, temporary, _) in loose {
        let hex = id.to_string();
        let is_new = !objects.join(&hex[..2]).is_dir();
        let dir = subdir(objects, &hex[..2])?;
        let path = dir.join(&hex[2..]);
        temporary.rename(&path)?;
        paths.push(path);
        dirs.insert(dir);
        if is_new {
            dirs.insert(objects.to_owned());
        }
    }
    let dirs: Vec<_> = dirs.into_iter().collect();
    all_at_once(&dirs, |dir| durable_rename(dir))?;
    Ok(paths)
}

/// What a save relies on: objects it wrote, and objects that were there before.
pub(super) struct Written {
    reused: Vec<ObjectId>,
    /// Those of them that are files of their own.
    loose: Vec<LooseObjects>,
    new: Vec<PathBuf>,
    objects: PathBuf,
    keep: Option<Keep>,
}

impl Written {
    /// Whether nothing that was there before is relied on.
    pub(super) fn is_alone(&self) -> bool {
        self.reused.is_empty()
    }

    /// The packs among the new files.
    pub(super) fn packs(&self) -> impl Iterator<Item = &Path> {
        let is_pack = |path: &&PathBuf| path.extension().is_some_and(|name| name == "pack");
        self.new.iter().filter(is_pack).map(PathBuf::as_path)
    }

    /// Whether every new file is where it was put. A `git gc --prune=now` may have taken what
    /// nothing referred to yet.
    pub(super) fn still_stand(&self) -> bool {
        self.new.iter().all(|path| fs::symlink_metadata(path).is_ok())
    }

    /// Whether git can take nothing of it: everything is new, and in a pack that it is told to keep.
    pub(super) fn is_safe(&self) -> bool {
        self.is_alone()
            && self.packs().count() == self.new.len()
            && self.keep.as_ref().is_none_or(Keep::holds)
    }

    /// Makes loose objects that were there before young. Each directory is listed once: asking for
    /// every object by name would cost more than reading them did.
    pub(super) fn freshen(&mut self) {
        if self.reused.is_empty() {
            return;
        }
        let mut by_dir: BTreeMap<u8, Vec<ObjectId>> = BTreeMap::new();
        for id in &self.reused {
            by_dir.entry(id.as_slice()[0]).or_default().push(*id);
        }
        // In a packed repository hardly any of the 256 is there.
        let Ok(there) = fs::read_dir(&self.objects) else { return };
        let there: HashSet<_> = there.flatten().map(|entry| entry.file_name()).collect();
        for (first, mut ids) in by_dir {
            let name = format!("{first:02x}");
            if !there.contains(OsStr::new(&name)) {
                continue;
            }
            let dir = self.objects.join(name);
            let (now, stamp) = (now_ns(), stat_path(&dir).ok());
            let Ok(names) = fs::read_dir(&dir) else { continue };
            let loose: HashSet<_> = names.flatten().map(|entry| entry.file_name()).collect();
            ids.retain(|id| loose.contains(OsStr::new(&id.to_string()[2..])));
            for id in &ids {
                touch(&dir.join(&id.to_string()[2..]));
            }
            let stamp = stamp.filter(|stamp| !is_racy(stamp, now));
            self.loose.push(LooseObjects { dir, stamp, ids });
        }
    }

    /// Whether every loose object that was there before is there still, or in a pack by now. A
    /// `git gc --prune=now` takes young ones, too, if nothing referred to them when it looked.
    pub(super) fn reused_stand(&self, repo: &Repo) -> bool {
        let repo = repo.refreshed();
        self.loose.iter().all(|loose| loose.is_untouched() || loose.is_there(&repo))
    }
}

/// Objects of one directory that were there before.
struct LooseObjects {
    dir: PathBuf,
    /// The directory's, if an equal one means that nothing has gone.
    stamp: Option<Stamp>,
    ids: Vec<ObjectId>,
}

impl LooseObjects {
    fn is_untouched(&self) -> bool {
        self.ids.is_empty() || self.stamp.is_some() && stat_path(&self.dir).ok() == self.stamp
    }

    fn is_there(&self, repo: &Repo) -> bool {
        let is_file = |id: &ObjectId| stat_path(&self.dir.join(&id.to_string()[2..])).is_ok();
        self.ids.iter().all(|id| is_file(id) || repo.has(id))
    }
}

fn touch(path: &Path) {
    let now = Timespec { tv_sec: 0, tv_nsec: UTIME_NOW };
    let times = Timestamps { last_access: now, last_modification: now };
    // It may be on a read-only alternate, or gone; what is gone is found out by `Packs`' check.
    let _not_ours = utimensat(CWD, path, &times, AtFlags::empty());
}

/// The packs of a repository at one moment.
pub(super) struct Packs {
    dir: PathBuf,
    names: HashSet<std::ffi::OsString>,
}

impl Packs {
    /// Lists them.
    pub(super) fn of(repo: &Repo) -> Self {
        let dir = repo.objects().join("pack");
        let names = packs_in(&dir);
        Self { dir, names }
    }

    /// Whether all of them are there still, so that what was found in them is too.
    pub(super) fn still_stand(&self) -> bool {
        let now = packs_in(&self.dir);
        self.names.iter().all(|name| now.contains(name))
    }
}

fn packs_in(dir: &Path) -> HashSet<std::ffi::OsString> {
    let Ok(names) = fs::read_dir(dir) else { return HashSet::new() };
    names
        .flatten()
        .map(|entry| entry.file_name())
        .filter(|name| name.as_encoded_bytes().ends_with(b".pack"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Root, RootKind};

    #[test]
    fn a_loose_object_that_went_is_missed_unless_nothing_can_have_gone() {
        let top = std::env::temp_dir().join(format!("turnback-loose-{}", std::process::id()));
        let git_dir = top.join(".git");
        for dir in ["objects/ab", "objects/pack", "refs"] {
            fs::create_dir_all(git_dir.join(dir)).unwrap();
        }
        File::create(git_dir.join("HEAD")).unwrap().write_all(b"ref: refs/heads/x\n").unwrap();
        let kind = RootKind::Git { git_dir: git_dir.clone(), common_dir: git_dir.clone() };
        let repo = Repo::open(&Root::new(top.clone(), kind)).unwrap();
        let id = ObjectId::from_hex(format!("ab{}", "1".repeat(38)).as_bytes()).unwrap();
        let dir = git_dir.join("objects/ab");
        let file = dir.join("1".repeat(38));
        File::create(&file).unwrap();
        let stamp = stat_path(&dir).ok();
        let proven = LooseObjects { dir: dir.clone(), stamp, ids: vec![id] };
        let young = LooseObjects { dir, stamp: None, ids: vec![id] };
        assert!(proven.is_untouched() && proven.is_there(&repo));
        assert!(!young.is_untouched(), "its stamp proves nothing");
        // Past the tick of the file system's clock.
        std::thread::sleep(std::time::Duration::from_millis(30));
        fs::remove_file(&file).unwrap();
        for loose in [proven, young] {
            assert!(!loose.is_untouched() && !loose.is_there(&repo));
        }
        crate::fs::remove_tree(&top).unwrap();
    }
}
