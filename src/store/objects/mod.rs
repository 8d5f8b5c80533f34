//! The objects of the file store: file contents named by their SHA-256, shared by all roots. The small ones of
//! a save are in one `pack`, each large one is a file.
//!
//! Files are written under a temporary name, synced, and then renamed. A save holds
//! `objects.lock` shared, from before it first checks for an object until the record that needs it
//! is on the disk. A process that deletes objects holds the lock exclusively and decides only then
//! what is needed, so nothing that a record is about to name can be deleted. The lock is taken
//! after the root's lock, never before.

mod batch;
mod pack;
mod packs;
mod rewrite;

use std::{
    collections::{BTreeMap, HashSet},
    fs::{self, File},
    io::{self, Cursor, Read},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use sha2::{Digest, Sha256};

pub use self::batch::Batch;
pub(crate) use self::pack::read_any;
use self::packs::Packs;
pub(super) use self::rewrite::PackContents;
use crate::{
    error::{Error, Result},
    fs::{Lock, clear_away, create_private_dirs, is_in_the_way, list_names, now_ns, open_options},
    model::ContentId,
};

/// The directory with the packs.
const PACKS: &str = "packs";
/// How long the rescue of a damaged pack waits for a sweep.
const RESCUE_WAIT: Duration = Duration::from_secs(10);
/// No write takes an hour, so a temporary file this old has no owner.
const STALE_NS: i64 = 3_600_000_000_000;

/// The object directory.
#[derive(Clone, Debug)]
pub struct Objects {
    dir: PathBuf,
    /// The packs that were listed last; clones share them.
    packs: Arc<Mutex<Option<Packs>>>,
    /// Contents that only this value has: they can be opened, and pass for missing in any other way.
    beside: BTreeMap<ContentId, Arc<[u8]>>,
}

/// A shared lock that prevents objects from being deleted. Hold it until the record that names them
/// is on the disk.
#[derive(Debug)]
#[must_use = "objects may go as soon as it is dropped"]
pub struct ObjectsGuard {
    _lock: Lock,
    /// How many objects were new.
    pub new: usize,
    /// The pack with the small ones.
    pack: Option<PathBuf>,
}

/// The result of reading a user's file: its id and size, or why it could not be read.
pub type Taken = io::Result<(ContentId, u64)>;

impl Objects {
    /// The objects in `dir`, which need not exist yet.
    pub fn new(dir: PathBuf) -> Self {
        Self { dir, packs: Arc::default(), beside: BTreeMap::new() }
    }

    /// Adds contents that can be opened and are not stored.
    pub fn put_beside(&mut self, contents: BTreeMap<ContentId, Vec<u8>>) {
        self.beside.extend(contents.into_iter().map(|(id, bytes)| (id, bytes.into())));
    }

    /// Starts a batch. Waits until `deadline` for a process that deletes objects.
    pub fn batch(&self, deadline: Instant) -> Result<Batch<'_>> {
        create_private_dirs(&self.dir)?;
        let lock = Lock::share(&self.lock(), deadline)?;
        Ok(Batch::new(self, lock))
    }

    /// Prevents other processes from adding objects until it is dropped. Does not create the
    /// directory, so a state directory that was removed stays removed.
    pub fn lock_exclusive(&self, deadline: Instant) -> Result<Lock> {
        Lock::acquire(&self.lock(), deadline)
    }

    fn lock(&self) -> PathBuf {
        self.dir.with_file_name("objects.lock")
    }

    /// The directory with the packs.
    pub(super) fn packs_dir(&self) -> PathBuf {
        self.dir.join(PACKS)
    }

    /// The path that a large object has or would have.
    pub fn path(&self, id: &ContentId) -> PathBuf {
        let (fan, name) = id_names(id);
        self.dir.join(fan).join(name)
    }

    /// Whether an object exists. Does not read it.
    pub fn contains(&self, id: &ContentId) -> bool {
        self.size(id).is_ok()
    }

    /// Its size in bytes.
    pub fn size(&self, id: &ContentId) -> Result<u64> {
        self.find(|packs| Ok(packs.size(id)), || self.loose_size(id))
    }

    /// The space that an object takes; 0 if it does not exist.
    pub fn room(&self, id: &ContentId) -> u64 {
        let loose = || match fs::symlink_metadata(self.path(id)) {
            Ok(found) => Ok(found.blocks() * 512),
            Err(err) => Err(unopened(id, &self.path(id), err)),
        };
        self.find(|packs| Ok(packs.size(id)), loose).unwrap_or(0)
    }

    /// Opens an object. Reading to the end fails if the content does not match the id.
    pub fn open(&self, id: &ContentId) -> Result<Box<dyn Read>> {
        if let Some(bytes) = self.beside.get(id) {
            return Ok(Box::new(Cursor::new(Arc::clone(bytes))));
        }
        let packed = |packs: &Packs| {
            let bytes = packs.read(id)?;
            Ok(bytes.map(|bytes| Box::new(Cursor::new(bytes)) as Box<dyn Read>))
        };
        self.find(packed, || self.open_loose(id))
    }

    /// The content of an object, verified.
    pub fn read(&self, id: &ContentId) -> Result<Vec<u8>> {
        let loose = || {
            let mut bytes = Vec::new();
            let read = self.open_file(id)?.read_to_end(&mut bytes);
            read.map_err(Error::io("read", &self.path(id)))?;
            if id_of(&bytes) == *id { Ok(bytes) } else { Err(Error::damaged(object(id), CHANGED)) }
        };
        self.find(|packs| packs.read(id), loose)
    }

    /// Reads an object to the end to verify it.
    pub fn verify(&self, id: &ContentId) -> Result<()> {
        self.find(|packs| Ok(packs.read(id)?.map(drop)), || self.verify_loose(id))
    }

    /// Verifies an object, or without `read_data` only looks whether it is there.
    pub fn check(&self, id: &ContentId, read_data: bool) -> Result<()> {
        if read_data { self.verify(id) } else { self.size(id).map(drop) }
    }

    /// Finds an object in a pack or, if it is in none, in a file.
    fn find<T>(
        &self,
        packed: impl Fn(&Packs) -> Result<Option<T>>,
        loose: impl Fn() -> Result<T>,
    ) -> Result<T> {
        let mut packs = self.packs()?;
        let mut in_pack = packed(&packs);
        if let Ok(Some(found)) = in_pack {
            return Ok(found);
        }
        let missing = match loose() {
            Ok(found) => return Ok(found),
            Err(err) => err,
        };
        // Another process may have added or moved it meanwhile.
        let now = self.list_packs()?;
        if !now.are(&packs) {
            (in_pack, packs) = (packed(&now), now);
        }
        in_pack?.ok_or_else(|| packs.fault().unwrap_or(missing))
    }

    /// The packs, as they were when they were listed last.
    fn packs(&self) -> Result<Packs> {
        let known = self.known().clone();
        known.map_or_else(|| self.list_packs(), Ok)
    }

    fn list_packs(&self) -> Result<Packs> {
        let known = self.known().clone().unwrap_or_default();
        let packs = Packs::list(&self.packs_dir(), &known)?;
        *self.known() = Some(packs.clone());
        Ok(packs)
    }

    fn known(&self) -> MutexGuard<'_, Option<Packs>> {
        self.packs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn loose_size(&self, id: &ContentId) -> Result<u64> {
        let path = self.path(id);
        match fs::symlink_metadata(&path) {
            Ok(data) if data.is_file() => Ok(data.len()),
            Ok(_) => Err(Error::damaged(object(id), "not a regular file")),
            Err(err) => Err(unopened(id, &path, err)),
        }
    }

    fn verify_loose(&self, id: &ContentId) -> Result<()> {
        match io::copy(&mut self.open_loose(id)?, &mut io::sink()) {
            Ok(_) => Ok(()),
            Err(err) if err.kind() == io::ErrorKind::InvalidData => {
                Err(Error::damaged(object(id), CHANGED))
            }
            Err(err) => Err(Error::io("read", &self.path(id))(err)),
        }
    }

    fn open_loose(&self, id: &ContentId) -> Result<Box<dyn Read>> {
        let file = self.open_file(id)?;
        Ok(Box::new(ContentReader { file, hash: Sha256::new(), id: *id }))
    }

    /// Renames those of the files `changed` that are damaged objects, and removes irregular files,
    /// so that no save relies on them. A damaged pack is never relied on.
    pub(super) fn set_damaged_aside(&self, changed: &[PathBuf]) {
        let packs = self.packs_dir();
        for path in changed {
            if !path.starts_with(&self.dir) || path.starts_with(&packs) {
                continue;
            }
            if is_in_the_way(path) {
                // If this fails, the object passes for missing.
                let _still_there = clear_away(path);
                continue;
            }
            let names = path.parent().and_then(Path::file_name).zip(path.file_name());
            let id = names.and_then(|(fan, name)| {
                ContentId::parse(&format!("{}{}", fan.to_str()?, name.to_str()?))
            });
            let Some(id) = id.filter(|id| self.path(id) == **path) else { continue };
            if matches!(self.verify_loose(&id), Err(Error::Damaged { .. })) {
                // If this fails, the object is relied on as long as it has its size.
                let _still_there = fs::rename(path, path.with_extension("damaged"));
            }
        }
    }

    /// Verifies every byte of a file of the store, and sets it aside if it is damaged; returns whether it is. The
    /// intact objects of a damaged pack are first copied to another one.
    ///
    /// # Errors
    ///
    /// Fails if the store cannot be written, or if a sweep is at work.
    pub(super) fn set_aside_if_damaged(&self, path: &Path) -> Result<bool> {
        let packs = self.list_packs()?;
        let Some(pack) = packs.iter().find(|pack| pack.path() == path) else {
            self.set_damaged_aside(&[path.to_owned()]);
            let is_here = path.symlink_metadata().is_ok();
            return Ok(!is_here && path.with_extension("damaged").symlink_metadata().is_ok());
        };
        let rows = match pack.rows() {
            Ok(rows) => rows,
            // A save sees that, and `check --repair` sets it aside.
            Err(Error::Damaged { .. }) => return Ok(true),
            Err(err) => return Err(err),
        };
        let mut is_damaged = rows.iter().map(|(id, _)| pack.read(id));
        if !is_damaged.any(|read| matches!(read, Err(Error::Damaged { .. }))) {
            return Ok(false);
        }
        let batch = self.batch(Instant::now() + RESCUE_WAIT)?;
        for (id, _) in rows {
            if let Ok(Some(bytes)) = pack.read(&id) {
                batch.keep(id, &bytes)?;
            }
        }
        drop(batch.publish()?);
        fs::rename(path, path.with_extension("damaged")).map_err(Error::io("put aside", path))?;
        Ok(true)
    }

    /// Removes the file of an object and returns the space it took; 0 if it is gone already. The
    /// caller holds [`Objects::lock_exclusive`].
    pub fn remove(&self, id: &ContentId) -> Result<u64> {
        remove_file(&self.path(id))
    }

    /// The ids of all objects, in no order. Ignores files with other names.
    ///
    /// # Errors
    ///
    /// Fails if a pack cannot be read.
    pub fn ids(&self) -> Result<HashSet<ContentId>> {
        let mut ids: HashSet<ContentId> = self.loose_ids()?.into_iter().collect();
        for pack in self.list_packs()?.iter() {
            ids.extend(pack.rows()?.into_iter().map(|(id, _)| id));
        }
        Ok(ids)
    }

    /// The ids of the objects that have a file of their own.
    pub(super) fn loose_ids(&self) -> Result<Vec<ContentId>> {
        let mut ids = Vec::new();
        for fan in list_names(&self.dir)? {
            let Some(fan) = fan.to_str().filter(|name| name.len() == 2) else { continue };
            for rest in list_names(&self.dir.join(fan))? {
                let rest = rest.to_str().unwrap_or_default();
                ids.extend(ContentId::parse(&format!("{fan}{rest}")).filter(is_ours));
            }
        }
        Ok(ids)
    }

    /// Removes abandoned temporary files: all of them if the caller has the exclusive lock, else
    /// those older than an hour.
    pub fn remove_stale(&self, everything: bool) -> Result<()> {
        let oldest = now_ns().saturating_sub(STALE_NS);
        for name in list_names(&self.dir)? {
            let path = self.dir.join(&name);
            let is_temporary = name.as_encoded_bytes().starts_with(b"tmp-");
            let is_old = || crate::fs::stat_path(&path).is_ok_and(|stamp| stamp.mtime_ns < oldest);
            if is_temporary && (everything || is_old()) {
                fs::remove_file(&path).map_err(Error::io("remove", &path))?;
            }
        }
        Ok(())
    }

    fn open_file(&self, id: &ContentId) -> Result<File> {
        let path = self.path(id);
        let file = open_options().read(true).open(&path).map_err(|err| unopened(id, &path, err))?;
        match file.metadata() {
            Ok(data) if data.is_file() => Ok(file),
            Ok(_) => Err(Error::damaged(object(id), "not a regular file")),
            Err(err) => Err(Error::io("read", &path)(err)),
        }
    }
}

/// A reader that fails at the end if the content does not match the id.
struct ContentReader {
    file: File,
    hash: Sha256,
    id: ContentId,
}

impl Read for ContentReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read(buffer)?;
        self.hash.update(&buffer[..count]);
        let at_end = count == 0 && !buffer.is_empty();
        if at_end && ContentId::new(&self.hash.clone().finalize()) != self.id {
            return Err(io::Error::new(io::ErrorKind::InvalidData, CHANGED));
        }
        Ok(count)
    }
}

const CHANGED: &str = "its bytes are not what its name says";

/// The id of some bytes.
pub fn id_of(bytes: &[u8]) -> ContentId {
    ContentId::new(&Sha256::digest(bytes))
}

/// The id and size of an open file's content. Stores nothing.
pub fn identify_file(file: &File) -> Taken {
    hash_of(&mut &*file)
}

fn hash_of(from: &mut dyn Read) -> Taken {
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 256 << 10];
    let mut size = 0;
    loop {
        match from.read(&mut buffer) {
            Ok(0) => return Ok((ContentId::new(&hash.finalize()), size)),
            Ok(count) => {
                hash.update(&buffer[..count]);
                size += count as u64;
            }
            Err(err) if err.kind() == io::ErrorKind::Interrupted => (),
            Err(err) => return Err(err),
        }
    }
}

/// Whether an id is a SHA-256 with all 32 bytes, not one of git's 20.
fn is_ours(id: &ContentId) -> bool {
    id.to_string().len() == 64
}

/// Removes a file of ours and returns the space it took; 0 if it is gone already.
fn remove_file(path: &Path) -> Result<u64> {
    let found = match fs::symlink_metadata(path) {
        // Two sweeps may work through the same list in turns.
        Err(err) if err.kind() == io::ErrorKind::NotFound => return Ok(0),
        found => found.map_err(Error::io("look at", path))?,
    };
    fs::remove_file(path).map_err(Error::io("remove", path))?;
    Ok(found.blocks() * 512)
}

/// How messages name an object.
pub(crate) fn object(id: &ContentId) -> String {
    let (fan, name) = id_names(id);
    format!("objects/{fan}/{name}")
}

fn id_names(id: &ContentId) -> (String, String) {
    let mut fan = id.to_string();
    let name = fan.split_off(2);
    (fan, name)
}

fn unopened(id: &ContentId, path: &Path, err: io::Error) -> Error {
    match err.kind() {
        io::ErrorKind::NotFound => Error::damaged(object(id), "it is missing"),
        _ => Error::io("open", path)(err),
    }
}

#[cfg(test)]
mod tests;
