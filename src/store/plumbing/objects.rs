//! Adds objects to a private repository: a few as loose objects, many as one pack.
//!
//! Nothing is visible before [`ObjectWriter::finish`], and everything is on the disk after it. Existing
//! objects are not written again: the save holds the repository's lock shared, so none can be
//! deleted meanwhile.

use std::{
    collections::{HashMap, HashSet},
    fs::File,
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
    objs::{Exists, Find, Kind},
};

use super::{
    files::subdir,
    loose::LooseObjects,
    pack::{Deflater, GitPackWriter, Packed},
    repo::{Odb, Repo, name},
};
use crate::{
    error::{Error, Result},
    fs::{TemporaryName, all_at_once, sync_dir},
};

/// A loose object is one file and one sync; a pack is two of each, whatever is in it. Maintenance
/// merges many packs.
const LOOSE_MAX: usize = 3;
/// How much is kept in memory before it is decided whether to write a pack.
const HELD_MAX_BYTES: usize = 4 << 20;
/// How much of the new trees is remembered: those of some hundred directories.
const TREES_MAX_BYTES: usize = 256 << 10;
/// How much of a large file tells whether it can be compressed.
const SAMPLE_BYTES: u64 = 128 << 10;
/// How much of a large file is read or written at once.
const BLOCK_BYTES: usize = 128 << 10;
/// Larger files are streamed into a loose object each.
pub(in crate::store) const LARGE_BYTES: u64 = 4 << 20;

/// Collects new objects. Threads share it.
pub(in crate::store) struct ObjectWriter {
    objects: PathBuf,
    hash: HashKind,
    /// The borrowed loose objects.
    borrowed: LooseObjects,
    state: Mutex<WriterState>,
    packing: AtomicBool,
    /// Idle compressors. Creating one costs more than compressing ten files, because its tables are
    /// zeroed.
    deflaters: Mutex<Vec<Deflater>>,
}

/// Reads an object and verifies it.
fn is_itself(hash: HashKind, id: &ObjectId, odb: &Odb) -> bool {
    let mut bytes = Vec::new();
    let found = odb.try_find(id, &mut bytes).ok().flatten();
    let named = found.map(|found| name(hash, found.kind, found.data));
    named.is_some_and(|named| named.is_ok_and(|named| named == *id))
}

#[derive(Default)]
struct WriterState {
    /// What is being written.
    seen: HashSet<ObjectId>,
    held: Vec<(Kind, ObjectId, Vec<u8>)>,
    held_bytes: usize,
    /// New trees, which can be compared before they are on the disk.
    trees: HashMap<ObjectId, Vec<u8>>,
    trees_bytes: usize,
    pack: Option<GitPackWriter>,
    large: Vec<(ObjectId, TemporaryName, File)>,
}

impl ObjectWriter {
    /// A writer that adds to `repo`.
    pub(in crate::store) fn new(repo: &Repo) -> Self {
        let packing = AtomicBool::new(false);
        let (objects, hash, state) = (repo.objects(), repo.hash, Mutex::default());
        let borrowed = LooseObjects::borrowed_by(&repo.common_dir);
        Self { objects, hash, borrowed, state, packing, deflaters: Mutex::default() }
    }

    /// The object directory.
    pub(in crate::store) fn objects(&self) -> &Path {
        &self.objects
    }

    /// The body of a new tree that has not been written yet, as long as there are few.
    pub(in crate::store) fn held_tree(&self, id: &ObjectId) -> Option<Vec<u8>> {
        self.lock().trees.get(id).cloned()
    }

    /// Whether there is nothing to write.
    pub(in crate::store) fn is_empty(&self) -> bool {
        let state = self.lock();
        state.held.is_empty() && state.pack.is_none() && state.large.is_empty()
    }

    /// Adds an object, unless it exists, and returns its id.
    pub(in crate::store) fn add(&self, kind: Kind, body: &[u8], odb: &Odb) -> Result<ObjectId> {
        let id = name(self.hash, kind, body)?;
        self.add_named(kind, id, body, odb)?;
        Ok(id)
    }

    /// Adds an object of known id, unless it exists.
    pub(in crate::store) fn add_named(
        &self,
        kind: Kind,
        id: ObjectId,
        body: &[u8],
        odb: &Odb,
    ) -> Result<()> {
        if self.is_needed(id, odb) {
            self.put(kind, id, body).map_err(self.failed())?;
        }
        Ok(())
    }

    /// Whether the repository has `id` in a state that a save may rely on. The repository is asked
    /// first, because that takes no lock: in a first checkpoint it has nearly every file.
    pub(in crate::store) fn relies_on(&self, id: ObjectId, odb: &Odb) -> bool {
        self.has(&id, odb) || self.lock().seen.contains(&id)
    }

    /// Returns whether the object must be written, and notes that it is. Of what the repository has, nothing
    /// is noted: a first checkpoint asks for every file, and hardly any is asked for twice.
    fn is_needed(&self, id: ObjectId, odb: &Odb) -> bool {
        let is_here = self.relies_on(id, odb);
        // Another thread may have the same content.
        !is_here && self.lock().seen.insert(id)
    }

    /// Whether the repository has an object that appears intact without reading it.
    fn has(&self, id: &ObjectId, odb: &Odb) -> bool {
        odb.exists(id) && (!self.borrowed.is_rewritten(id) || is_itself(self.hash, id, odb))
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
        // Another thread may have started the pack meanwhile.
        if state.pack.is_some() {
            return state.push(&self.squeezed(|deflater| Packed::new(kind, id, body, deflater)));
        }
        state.held.push((kind, id, body.to_vec()));
        state.held_bytes += body.len();
        let are_few = state.held.len() <= LOOSE_MAX;
        if are_few && state.held_bytes <= HELD_MAX_BYTES {
            return Ok(());
        }
        state.pack = Some(GitPackWriter::begin(&self.objects, self.hash)?);
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

    /// Adds `size` bytes of a file as a blob without loading it whole. `None` if the file is
    /// shorter. `from` is called once or twice and returns a reader from the beginning.
    pub(in crate::store) fn add_large<R: Read>(
        &self,
        size: u64,
        odb: &Odb,
        mut from: impl FnMut() -> io::Result<R>,
    ) -> Result<Option<ObjectId>, Large> {
        let named = name_stream(self.hash, size, from().map_err(Large::Read)?)?;
        let Some(id) = named else { return Ok(None) };
        if self.relies_on(id, odb) {
            return Ok(Some(id));
        }
        let (temporary, file) =
            TemporaryName::create(&self.objects, "tmp_obj_").map_err(Large::Write)?;
        let (file, id) = write_stream(self.hash, size, from().map_err(Large::Read)?, file)?;
        let Some(id) = id else { return Ok(None) };
        if self.is_needed(id, odb) {
            self.lock().large.push((id, temporary, file));
        }
        Ok(Some(id))
    }

    /// Syncs everything.
    ///
    /// # Errors
    ///
    /// Fails if the repository cannot be written. Nothing refers to what was written by then.
    pub(in crate::store) fn finish(self) -> Result<()> {
        let dirs = self.publish()?;
        all_at_once(&dirs, |dir| sync_dir(dir))
    }

    /// Syncs everything but the new names. Returns the directories that they are in: nothing may refer to what
    /// was written before these are synced.
    ///
    /// # Errors
    ///
    /// As [`ObjectWriter::finish`].
    pub(in crate::store) fn publish(self) -> Result<Vec<PathBuf>> {
        let state = std::mem::take(&mut *self.lock());
        let objects = &self.objects;
        let failed = |err| Error::io("add objects to", objects)(err);
        let pack = state.pack.map(GitPackWriter::publish).transpose().map_err(failed)?;
        let mut loose = state.large;
        for (kind, id, body) in &state.held {
            let loosed = self.squeezed(|deflater| write_loose(objects, *kind, *id, body, deflater));
            loose.push(loosed.map_err(failed)?);
        }
        let mut dirs = give_names(objects, loose).map_err(failed)?;
        dirs.extend(pack.as_deref().and_then(Path::parent).map(Path::to_owned));
        Ok(dirs.into_iter().collect())
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, WriterState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn failed(&self) -> impl FnOnce(io::Error) -> Error {
        Error::io("add objects to", &self.objects)
    }
}

impl WriterState {
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
pub(in crate::store) enum Large {
    /// It could not be read.
    Read(io::Error),
    /// The repository could not be written.
    Write(io::Error),
}

fn blob_header(size: u64) -> String {
    format!("blob {size}\0")
}

/// The id of `size` bytes from a reader; `None` if there are fewer.
pub(in crate::store) fn name_stream(
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
    mut from: impl Read,
    file: File,
) -> Result<(File, Option<ObjectId>), Large> {
    let mut hasher = gix::hash::hasher(hash);
    let mut sample = Vec::new();
    from.by_ref().take(SAMPLE_BYTES).read_to_end(&mut sample).map_err(Large::Read)?;
    let mut out = ZlibEncoder::new(BufWriter::with_capacity(BLOCK_BYTES, file), level_for(&sample));
    let header = blob_header(size);
    hasher.update(header.as_bytes());
    out.write_all(header.as_bytes()).map_err(Large::Write)?;
    let whole = each_block(size, sample.chain(from), |block| {
        hasher.update(block);
        out.write_all(block)
    })?;
    let out = out.finish().map_err(Large::Write)?;
    let file = out.into_inner().map_err(|err| Large::Write(err.into_error()))?;
    Ok((file, finished(hasher, whole)?))
}

/// The level for a large file that begins with `sample`. What is compressed already would take most of the
/// time of a save and get no smaller: videos, archives, models.
fn level_for(sample: &[u8]) -> Compression {
    let mut squeezed = Vec::new();
    Deflater::new().deflate(&[sample], &mut squeezed);
    let is_smaller = squeezed.len() < sample.len() - sample.len() / 16;
    if is_smaller { Compression::new(1) } else { Compression::none() }
}

fn each_block(
    size: u64,
    from: impl Read,
    mut each: impl FnMut(&[u8]) -> io::Result<()>,
) -> Result<bool, Large> {
    let mut from = from.take(size);
    let mut block = vec![0; BLOCK_BYTES];
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

/// The content of a loose object file.
pub(in crate::store) fn loose_bytes(kind: Kind, body: &[u8]) -> Vec<u8> {
    let mut squeezed = Vec::new();
    let header = format!("{kind} {}\0", body.len());
    Deflater::new().deflate(&[header.as_bytes(), body], &mut squeezed);
    squeezed
}

fn write_loose(
    objects: &Path,
    kind: Kind,
    id: ObjectId,
    body: &[u8],
    deflater: &mut Deflater,
) -> io::Result<(ObjectId, TemporaryName, File)> {
    let (temporary, mut file) = TemporaryName::create(objects, "tmp_obj_")?;
    let header = format!("{kind} {}\0", body.len());
    let mut squeezed = Vec::new();
    deflater.deflate(&[header.as_bytes(), body], &mut squeezed);
    file.write_all(&squeezed)?;
    Ok((id, temporary, file))
}

/// Syncs all files, then renames them. Returns the directories of the new names: the first sync of each
/// kind commits the file system's journal for all.
fn give_names(
    objects: &Path,
    loose: Vec<(ObjectId, TemporaryName, File)>,
) -> io::Result<HashSet<PathBuf>> {
    let files: Vec<_> = loose.iter().map(|(_, _, file)| file).collect();
    all_at_once(&files, |file| file.sync_data())?;
    let mut dirs = HashSet::new();
    for (id, temporary, _) in loose {
        let hex = id.to_string();
        let is_new = !objects.join(&hex[..2]).is_dir();
        let dir = subdir(objects, &hex[..2])?;
        temporary.rename_unless_taken(&dir.join(&hex[2..]))?;
        dirs.insert(dir);
        if is_new {
            dirs.insert(objects.to_owned());
        }
    }
    Ok(dirs)
}

#[cfg(test)]
mod tests {
    use std::io::Seek;

    use flate2::read::ZlibDecoder;

    use super::*;

    /// Bytes that no compressor makes smaller.
    fn noise(length: usize) -> Vec<u8> {
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let next = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state.to_le_bytes()[3]
        };
        std::iter::repeat_with(next).take(length).collect()
    }

    #[test]
    fn only_what_gets_smaller_is_compressed() {
        let long = usize::try_from(SAMPLE_BYTES).unwrap() * 3;
        for (bytes, level) in [(noise(long), 0), (vec![7; long], 1), (Vec::new(), 0)] {
            assert_eq!(level_for(&bytes).level(), level);
            let dir = std::env::temp_dir();
            let (_temporary, file) = TemporaryName::create(&dir, "beforehand-large-").unwrap();
            let written = write_stream(HashKind::Sha1, bytes.len() as u64, &bytes[..], file);
            let Ok((mut file, Some(id))) = written else { panic!("it is not written") };
            assert_eq!(id, name(HashKind::Sha1, Kind::Blob, &bytes).unwrap());
            let mut read = Vec::new();
            file.rewind().unwrap();
            ZlibDecoder::new(&file).read_to_end(&mut read).unwrap();
            assert_eq!(read, [blob_header(bytes.len() as u64).as_bytes(), &bytes].concat());
            let size = usize::try_from(file.metadata().unwrap().len()).unwrap();
            assert_eq!(size < bytes.len() / 2, level == 1);
        }
    }
}
