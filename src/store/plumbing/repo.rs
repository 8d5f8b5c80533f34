//! An open repository: its object database and its paths. Used for the user's repositories and for
//! our private ones.
//!
//! The only setting read from its configuration is the hash function (see `root`), so the
//! configuration cannot run a program, redirect us or replace an object. Neither can the
//! environment.

use std::{
    io::{self, Read},
    path::{Path, PathBuf},
    sync::{Mutex, OnceLock, PoisonError},
};

use gix::{
    ObjectId,
    hash::{Kind as HashKind, oid},
    objs::{Data, Exists, Find, Kind},
    odb::Header as _,
};

use super::{
    borrowed::{ALTERNATES_MAX_BYTES, alternates_of, open_up},
    loose::LooseObjects,
    packed_refs::PackedRefs,
};
use crate::{
    error::{Error, Result},
    fs::is_in_the_way,
    model::{Content, ContentId, Root, RootKind, Storage},
    root::{GitDirs, inspect},
};

/// Access to objects. Cheap to clone for another thread.
pub(in crate::store) type Odb = gix::odb::Handle;

/// An open repository.
pub(in crate::store) struct Repo {
    pub(in crate::store) git_dir: PathBuf,
    pub(in crate::store) common_dir: PathBuf,
    pub(in crate::store) hash: HashKind,
    /// Opened on first use: a save without changes needs none.
    odb: OnceLock<Odb>,
    /// Its loose objects and those of its alternates; listed on first use.
    loose: OnceLock<LooseObjects>,
    /// For a private repository, the directory of borrowed objects; taken once unreadable files in
    /// it have been made readable.
    closed: Mutex<Option<PathBuf>>,
    /// Its list of refs, as it was read last.
    pub(super) packed_refs: PackedRefs,
}

impl Repo {
    /// Opens the repository of `root` after checking again that it is usable.
    pub(in crate::store) fn open(root: &Root) -> Result<Self> {
        let RootKind::Git { git_dir, common_dir } = root.kind() else {
            let why = "it is not a git repository".to_owned();
            return Err(Error::Repository { path: root.path().to_owned(), why });
        };
        let refuse = |why| Error::Repository { path: git_dir.clone(), why };
        inspect(root.path(), git_dir, common_dir).map(Self::looked_at).map_err(refuse)
    }

    /// Opens a repository that was just inspected.
    pub(in crate::store) fn looked_at(GitDirs { git_dir, common_dir, hash }: GitDirs) -> Self {
        Self::new(git_dir, common_dir, hash)
    }

    fn new(git_dir: PathBuf, common_dir: PathBuf, hash: HashKind) -> Self {
        let odb = OnceLock::new();
        let loose = OnceLock::new();
        let closed = Mutex::default();
        let packed_refs = PackedRefs::default();
        Self { git_dir, common_dir, hash, odb, loose, closed, packed_refs }
    }

    /// The repository in `dir`, which need not exist yet.
    pub(in crate::store) fn at(dir: &Path, hash: HashKind) -> Self {
        Self::new(dir.to_owned(), dir.to_owned(), hash)
    }

    /// The private repository in `dir`, which borrows from files in `linked`.
    pub(in crate::store) fn private(dir: &Path, hash: HashKind, linked: PathBuf) -> Self {
        Self { closed: Mutex::new(Some(linked)), ..Self::at(dir, hash) }
    }

    /// A copy that lists packs anew, because there may be new ones.
    pub(in crate::store) fn refreshed(&self) -> Self {
        let packed_refs = self.packed_refs.clone();
        Self { packed_refs, ..Self::new(self.git_dir.clone(), self.common_dir.clone(), self.hash) }
    }

    /// The object database.
    ///
    /// # Errors
    ///
    /// Fails if it cannot be opened.
    pub(in crate::store) fn odb(&self) -> Result<&Odb> {
        if let Some(odb) = self.odb.get() {
            return Ok(odb);
        }
        let odb = open_odb(&self.objects(), &self.common_dir, self.hash)?;
        Ok(self.odb.get_or_init(|| odb))
    }

    /// The object directory.
    pub(in crate::store) fn objects(&self) -> PathBuf {
        self.common_dir.join("objects")
    }

    /// Converts an error of gix.
    pub(in crate::store) fn error(&self, err: &gix::Error) -> Error {
        Error::Repository { path: self.common_dir.clone(), why: err.to_string() }
    }

    /// Whether the repository or one of its alternates has an object.
    pub(in crate::store) fn has(&self, id: &oid) -> bool {
        // Gix panics at an id of another hash function.
        let is_ours = id.kind() == self.hash;
        is_given(id) || is_ours && self.odb().is_ok_and(|odb| odb.exists(id))
    }

    /// The object `id` as git names it.
    pub(in crate::store) fn object_id(&self, id: &ContentId) -> ObjectId {
        ObjectId::from_bytes_or_panic(id.hash(self.hash.len_in_bytes()))
    }

    /// Reads as [`Repo::read`] does, and also verifies the content. For anything that is written
    /// into the user's files.
    pub(in crate::store) fn read_checked(&self, id: &oid, kind: Kind) -> Result<Vec<u8>> {
        let bytes = self.read(id, kind)?;
        if is_given(id) || name(self.hash, kind, &bytes)? == id {
            return Ok(bytes);
        }
        let own = self.read_own(id, kind)?;
        own.ok_or_else(|| Error::damaged(id.to_string(), "it is not what its name says"))
    }

    /// Reads a whole object; damage if it is missing or of another kind.
    pub(in crate::store) fn read(&self, id: &oid, kind: Kind) -> Result<Vec<u8>> {
        if id.is_empty_tree() && kind == Kind::Tree || id.is_empty_blob() && kind == Kind::Blob {
            return Ok(Vec::new());
        }
        if id.kind() != self.hash {
            return Err(Error::damaged(format!("object {id}"), "a name by another hash"));
        }
        // It may have been packed since the packs were listed.
        let read = self.read_here(id, kind).or_else(|_| self.refreshed().read_here(id, kind));
        match read {
            // There may be several copies, and the first one was damaged.
            Err(err) => match self.read_own(id, kind)? {
                Some(bytes) => Ok(bytes),
                None if self.open_up() => self.refreshed().read_here(id, kind),
                None => Err(err),
            },
            read => read,
        }
    }

    /// Makes borrowed files readable, once: a hard link shares the mode of the user's file, which
    /// may have been made unreadable. Returns whether there were any.
    fn open_up(&self) -> bool {
        let linked = self.closed.lock().unwrap_or_else(PoisonError::into_inner).take();
        linked.is_some_and(|linked| open_up(&linked))
    }

    /// Reads and verifies an object from this repository alone, without alternates; `None` if it is
    /// missing or damaged.
    fn read_own(&self, id: &oid, kind: Kind) -> Result<Option<Vec<u8>>> {
        let (objects, mut buffer) = (self.objects(), Vec::new());
        let is_it = |found: Kind, bytes: &[u8]| -> Result<bool> {
            Ok(found == kind && name(self.hash, kind, bytes)? == id)
        };
        let loose = gix::odb::loose::Store::at(&objects, self.hash);
        if !self.is_blocked(id)
            && let Ok(Some(found)) = loose.try_find(id, &mut buffer)
            && is_it(found.kind, found.data)?
        {
            return Ok(Some(buffer));
        }
        let mut inflate = gix::zlib::Inflate::default();
        for index in files_in(&objects.join("pack"), &["idx", "unsound"]) {
            let Some(pack) = open_pack(&index, self.hash) else { continue };
            let found = pack.find(id, &mut buffer, &mut inflate, &mut gix::odb::pack::cache::Never);
            if let Ok(Some((found, _))) = found
                && is_it(found.kind, found.data)?
            {
                return Ok(Some(buffer));
            }
        }
        Ok(None)
    }

    /// Whether something other than a regular file has the name of a loose object. Gix would open it, and wait
    /// for ever for a pipe.
    fn is_blocked(&self, id: &oid) -> bool {
        let loose = self.loose.get_or_init(|| {
            let objects = self.objects();
            let alternates = alternates_of(&objects).into_iter().map(|(_, path)| path);
            LooseObjects::below(alternates.chain([objects]).collect())
        });
        loose.is_blocked(id)
    }

    /// The kind of an object; `None` if it is missing or cannot be read.
    pub(in crate::store) fn kind_of(&self, id: &oid) -> Option<Kind> {
        if self.is_blocked(id) {
            return None;
        }
        Some(self.odb().ok()?.try_header(id).ok()??.kind())
    }

    fn read_here(&self, id: &oid, kind: Kind) -> Result<Vec<u8>> {
        if self.is_blocked(id) {
            return Err(Error::damaged(id.to_string(), "not a regular file"));
        }
        let mut buffer = Vec::new();
        let found = self.odb()?.try_find(id, &mut buffer);
        match found.map_err(|err| Error::damaged(id.to_string(), err.to_string()))? {
            Some(Data { kind: found, .. }) if found == kind => Ok(buffer),
            Some(Data { kind: found, .. }) => {
                Err(Error::damaged(id.to_string(), format!("it is a {found}, not a {kind}")))
            }
            None => Err(Error::damaged(id.to_string(), "the repository no longer has it")),
        }
    }
}

/// Objects that every git knows without storing them. We store them nevertheless, for other
/// readers; this is for reading only.
fn is_given(id: &oid) -> bool {
    id.is_empty_tree() || id.is_empty_blob()
}

/// Opens a pack by its index, which has another suffix if the pack is damaged. Verify all that is read from it.
fn open_pack(index: &Path, hash: HashKind) -> Option<gix::odb::pack::Bundle> {
    let pack = index.with_extension("").with_extension("pack");
    if is_in_the_way(index) || is_in_the_way(&pack) {
        return None;
    }
    let index = gix::odb::pack::index::File::at(index, hash).ok()?;
    let pack = gix::odb::pack::data::File::at(pack, hash).ok()?;
    Some(gix::odb::pack::Bundle { pack, index })
}

/// The regular files in a directory with one of these extensions.
fn files_in(dir: &Path, extensions: &[&str]) -> Vec<PathBuf> {
    let paths = std::fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.path());
    paths
        .filter(|path| {
            let end = path.extension().and_then(|end| end.to_str()).unwrap_or_default();
            extensions.contains(&end) && path.is_file()
        })
        .collect()
}

/// Pipes among the packs of an object directory: opening one would block forever.
pub(in crate::store) fn pipes_in(objects: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(objects.join("pack")).into_iter().flatten().flatten();
    let odd = entries.filter(|entry| !entry.file_type().is_ok_and(|kind| kind.is_file()));
    let is_pipe = |path: &PathBuf| {
        std::fs::metadata(path).is_ok_and(|found| !found.is_file() && !found.is_dir())
    };
    odd.map(|entry| entry.path()).filter(is_pipe).collect()
}

/// Opens a directory of objects.
pub(in crate::store) fn open_odb(
    objects: &Path,
    current_dir: &Path,
    hash: HashKind,
) -> Result<Odb> {
    // A pipe would block, and a huge file would be read whole.
    let alternates = objects.join("info/alternates");
    let is_odd = |found: std::fs::Metadata| !found.is_file() || found.len() > ALTERNATES_MAX_BYTES;
    if std::fs::metadata(&alternates).is_ok_and(is_odd) {
        return Err(Error::damaged(alternates.display().to_string(), "not a list of paths"));
    }
    let alternates = alternates_of(objects);
    let dirs = std::iter::once(objects).chain(alternates.iter().map(|(_, path)| path.as_path()));
    if let Some(path) = dirs.flat_map(pipes_in).next() {
        return Err(Error::damaged(path.display().to_string(), "not a regular file"));
    }
    let options = gix::odb::store::init::Options {
        current_dir: Some(current_dir.to_owned()),
        ..Default::default()
    };
    let mut odb = gix::odb::at_opts(objects, hash, None, options)
        .map_err(Error::io("open the objects in", objects))?;
    // Otherwise every missing object makes gix look for new packs.
    odb.refresh_never();
    Ok(odb)
}

/// The id of an object as the stores and the model use it.
pub(in crate::store) fn content_id(id: &oid) -> ContentId {
    ContentId::new(id.as_bytes())
}

/// The content of an object in the repository.
pub(in crate::store) fn content(id: &oid) -> Content {
    Content { id: content_id(id), place: Storage::Git }
}

/// Computes the id of an object without storing it.
pub(in crate::store) fn name(hash: HashKind, kind: Kind, body: &[u8]) -> Result<ObjectId> {
    gix::objs::compute_hash(hash, kind, body)
        .map_err(|err| Error::damaged("an object's name", err.to_string()))
}

/// The hash of everything that `from` yields.
pub(in crate::store) fn hash_of(hash: HashKind, mut from: impl Read) -> io::Result<ObjectId> {
    let mut hasher = gix::hash::hasher(hash);
    let mut buffer = vec![0; 256 << 10];
    loop {
        match from.read(&mut buffer)? {
            0 => return hasher.try_finalize().map_err(|err| io::Error::other(err.to_string())),
            count => hasher.update(&buffer[..count]),
        }
    }
}

/// The blob id that git gives to these bytes.
///
/// # Errors
///
/// Fails for bytes of a known SHA-1 collision attack.
pub(in crate::store) fn blob_name(hash: gix::hash::Kind, bytes: &[u8]) -> Result<ContentId> {
    name(hash, Kind::Blob, bytes).map(|id| content_id(&id))
}
