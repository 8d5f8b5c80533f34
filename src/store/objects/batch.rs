//! Adds objects: small ones to one new pack, each large one as a file.

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    ffi::OsString,
    fs::File,
    io::{self, Read, Write as _},
    path::{Path, PathBuf},
    sync::{
        Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use super::{
    Objects, ObjectsGuard, Taken, hash_of, id_names, id_of,
    pack::{OBJECT_MAX_BYTES, PackWriter},
    packs::Packs,
};
use crate::{
    crash,
    error::{Error, Result},
    fs::{
        Dir, FileBuffer, Holes, Lock, SYNCS_FILE_SYSTEMS, TemporaryName, all_at_once, clear_away,
        create_private_dirs, is_in_the_way, list_names, reflink, sync_dir,
    },
    model::ContentId,
};

/// For more files, one `syncfs` is cheaper than an `fsync` each (100 files: 6 ms against 38 ms),
/// although it also waits for the writes of other programs.
const SYNC_EACH_MAX: usize = 32;

/// A set of new objects, which several threads may fill. Dropped without [`Batch::publish`], it
/// leaves nothing behind.
#[derive(Debug)]
pub struct Batch<'a> {
    objects: &'a Objects,
    lock: Lock,
    /// The packs there were when the lock was held. None of them can go before it is released.
    packs: OnceLock<Packs>,
    /// The directories of objects with a file of their own at that time.
    fans: OnceLock<HashSet<OsString>>,
    new: Mutex<NewObjects>,
    /// Whether the file system may support reflinks.
    reflinks: AtomicBool,
}

/// Objects under temporary names.
#[derive(Debug, Default)]
struct NewObjects {
    pack: Option<(TemporaryName, PackWriter)>,
    large: HashMap<ContentId, TemporaryName>,
}

impl NewObjects {
    fn contains(&self, id: &ContentId) -> bool {
        let in_pack = self.pack.as_ref().is_some_and(|(_, pack)| pack.contains(id));
        in_pack || self.large.contains_key(id)
    }

    /// The pack, begun if need be.
    fn pack(&mut self, dir: &Path) -> Result<&mut (TemporaryName, PackWriter)> {
        let pack = if let Some(pack) = self.pack.take() {
            pack
        } else {
            let (name, file) = temporary(dir)?;
            (name, PackWriter::new(file))
        };
        Ok(self.pack.insert(pack))
    }

    fn count(&self) -> usize {
        self.pack.as_ref().map_or(0, |(_, pack)| pack.count()) + self.large.len()
    }
}

impl<'a> Batch<'a> {
    /// An empty batch under a shared lock.
    pub(super) fn new(objects: &'a Objects, lock: Lock) -> Self {
        let reflinks = AtomicBool::new(true);
        let (packs, fans) = (OnceLock::new(), OnceLock::new());
        Self { objects, lock, packs, fans, new: Mutex::default(), reflinks }
    }

    /// Adds the content of an open file from its beginning. `size` is the expected size and only
    /// decides how to read; `buffer` is for the bytes of a small file.
    ///
    /// # Errors
    ///
    /// Fails if the store cannot be written. A file that cannot be read is an `Ok` result.
    pub fn put_file(&self, file: &File, size: u64, buffer: &mut FileBuffer) -> Result<Taken> {
        if size > OBJECT_MAX_BYTES {
            return self.put_large(&mut &*file, Some(file));
        }
        match buffer.read(file, size, OBJECT_MAX_BYTES) {
            Err(err) => Ok(Err(err)),
            // It has grown since its stat.
            Ok(bytes) if bytes.len() as u64 > OBJECT_MAX_BYTES => match rewind(file) {
                Ok(()) => self.put_large(&mut &*file, Some(file)),
                Err(err) => Ok(Err(err)),
            },
            // It may be about to be destroyed: that there is an object of that name is not enough.
            Ok(bytes) => {
                let id = id_of(bytes);
                let is_held = matches!(self.packs()?.read(&id), Ok(Some(_)))
                    || (self.may_be_loose(&id) && self.objects.verify_loose(&id).is_ok());
                self.add(id, bytes, is_held).map(|()| Ok((id, bytes.len() as u64)))
            }
        }
    }

    /// Adds bytes.
    ///
    /// # Errors
    ///
    /// Fails if the store cannot be written.
    pub fn put_bytes(&self, bytes: &[u8]) -> Result<ContentId> {
        let (id, size) = (id_of(bytes), bytes.len() as u64);
        let is_held = self.size(&id)? == Some(size);
        if is_held || size <= OBJECT_MAX_BYTES {
            self.add(id, bytes, is_held)?;
        } else {
            self.put_large(&mut &*bytes, None)?.map_err(Error::io("read", &self.objects.dir))?;
        }
        Ok(id)
    }

    /// Adds bytes under a name to the pack, whether or not they are held elsewhere.
    pub(super) fn keep(&self, id: ContentId, bytes: &[u8]) -> Result<()> {
        self.add(id, bytes, false)
    }

    /// Whether the batch has no new objects.
    pub fn is_empty(&self) -> bool {
        self.added().count() == 0
    }

    /// Whether an object exists or is in the batch.
    pub fn contains(&self, id: &ContentId) -> bool {
        self.added().contains(id) || self.size(id).is_ok_and(|size| size.is_some())
    }

    /// Syncs all new objects and gives them their names.
    ///
    /// # Errors
    ///
    /// Fails if the store cannot be written. Some objects may then exist without a record.
    pub fn publish(self) -> Result<ObjectsGuard> {
        let Self { objects, lock, new, .. } = self;
        let mut added = new.into_inner().unwrap_or_else(PoisonError::into_inner);
        let new = added.count();
        let pack = added.pack.take();
        let pack = pack.map(|(name, pack)| publish_pack(&objects.packs_dir(), name, pack));
        let pack = pack.transpose()?;
        if !added.large.is_empty() {
            added.publish_large(&objects.dir)?;
        }
        if new > 0 {
            objects.remove_stale(false)?;
        }
        Ok(ObjectsGuard { _lock: lock, new, pack })
    }

    /// The packs, listed once: only this process adds any that matter to it.
    fn packs(&self) -> Result<&Packs> {
        if let Some(packs) = self.packs.get() {
            return Ok(packs);
        }
        let packs = self.objects.list_packs()?;
        Ok(self.packs.get_or_init(|| packs))
    }

    /// The size of an object that exists.
    fn size(&self, id: &ContentId) -> Result<Option<u64>> {
        let packed = self.packs()?.size(id);
        let loose = || self.objects.loose_size(id).ok();
        Ok(packed.or_else(|| if self.may_be_loose(id) { loose() } else { None }))
    }

    /// Whether there is a directory for the file of an object: in a store of packs there seldom is,
    /// and so there is nothing to look for.
    fn may_be_loose(&self, id: &ContentId) -> bool {
        let list = || list_names(&self.objects.dir).unwrap_or_default().into_iter().collect();
        self.fans.get_or_init(list).contains(&*OsString::from(id_names(id).0))
    }

    fn add(&self, id: ContentId, bytes: &[u8], is_held: bool) -> Result<()> {
        let mut added = self.added();
        if is_held || added.contains(&id) {
            return Ok(());
        }
        let (name, pack) = added.pack(&self.objects.dir)?;
        pack.push(id, bytes).map_err(Error::io("write", name.path()))
    }

    /// Copies and hashes in one pass, or clones `file` and hashes the clone. `copy_file_range` would
    /// save nothing: the hash reads every byte anyway.
    fn put_large(&self, from: &mut dyn Read, file: Option<&File>) -> Result<Taken> {
        let (name, mut copy) = temporary(&self.objects.dir)?;
        let path = name.path();
        let taken = if file.is_some_and(|file| self.clone_file(file, (&mut copy, path))) {
            hash_of(&mut copy).map_err(Error::io("read", path)).map(Ok)
        } else {
            copy_hashed(from, &mut copy, path)
        };
        let Ok(Ok((id, size))) = taken else { return taken };
        let mut added = self.added();
        let is_held = self.objects.loose_size(&id).is_ok_and(|there| there == size);
        if !is_held && !added.contains(&id) {
            added.large.insert(id, name);
        }
        Ok(Ok((id, size)))
    }

    fn clone_file(&self, from: &File, (to, path): (&mut File, &Path)) -> bool {
        let is_cloned = self.reflinks.load(Ordering::Relaxed) && reflink(from, to, path);
        self.reflinks.store(is_cloned, Ordering::Relaxed);
        is_cloned
    }

    fn added(&self) -> MutexGuard<'_, NewObjects> {
        self.new.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Names a pack in `dir` once it is on the disk. An equal one may be damaged, so it is replaced.
fn publish_pack(dir: &Path, temporary: TemporaryName, pack: PackWriter) -> Result<PathBuf> {
    let is_first = !dir.is_dir();
    create_private_dirs(dir)?;
    crash::point("pack-write");
    let name = pack.finish().map_err(Error::io("write", temporary.path()))?;
    crash::point("pack-rename");
    let to = dir.join(name);
    if is_in_the_way(&to) {
        clear_away(&to)?;
    }
    temporary.rename(&to).map_err(Error::io("write", &to))?;
    crash::point("pack-renamed");
    sync_dir(dir)?;
    dir.parent().filter(|_| is_first).map_or(Ok(()), sync_dir)?;
    Ok(to)
}

impl NewObjects {
    fn publish_large(&mut self, dir: &Path) -> Result<()> {
        let paths: Vec<&Path> = self.large.values().map(TemporaryName::path).collect();
        sync_each(dir, &paths, |path| {
            File::open(path).and_then(|file| file.sync_data()).map_err(Error::io("sync", path))
        })?;
        let mut fans = BTreeSet::new();
        for (id, temporary) in self.large.drain() {
            let (fan, name) = id_names(&id);
            let fan = dir.join(fan);
            create_private_dirs(&fan)?;
            // Another process may have added it meanwhile. The content is the same, so either may
            // win.
            let to = fan.join(name);
            temporary.rename(&to).map_err(Error::io("write", &to))?;
            fans.insert(fan);
        }
        fans.insert(dir.to_owned());
        let fans: Vec<&Path> = fans.iter().map(PathBuf::as_path).collect();
        sync_each(dir, &fans, sync_dir)
    }
}

fn sync_each(dir: &Path, paths: &[&Path], sync: impl Fn(&Path) -> Result<()> + Sync) -> Result<()> {
    if SYNCS_FILE_SYSTEMS && paths.len() > SYNC_EACH_MAX {
        return Dir::open(dir).and_then(|dir| dir.sync_files()).map_err(Error::io("sync", dir));
    }
    all_at_once(paths, |path| sync(path))
}

fn temporary(dir: &Path) -> Result<(TemporaryName, File)> {
    TemporaryName::create(dir, "tmp-").map_err(Error::io("make a file in", dir))
}

/// A reader that keeps a copy of what it passes on.
struct Tee<'a> {
    from: &'a mut dyn Read,
    to: Holes<'a>,
    failed: Option<io::Error>,
}

impl Read for Tee<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.from.read(buffer)?;
        if let Err(err) = self.to.write_all(&buffer[..count]) {
            self.failed = Some(err);
            return Err(io::ErrorKind::Other.into());
        }
        Ok(count)
    }
}

fn copy_hashed(from: &mut dyn Read, to: &mut File, path: &Path) -> Result<Taken> {
    let mut tee = Tee { from, to: Holes::new(to), failed: None };
    let taken = hash_of(&mut tee);
    let finished = tee.to.finish();
    match tee.failed.or(finished.err()) {
        Some(err) => Err(Error::io("write", path)(err)),
        None => Ok(taken),
    }
}

fn rewind(mut file: &File) -> io::Result<()> {
    io::Seek::rewind(&mut file)
}
