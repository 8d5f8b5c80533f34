//! One repository, opened by its parts: the object database and the ref store. The user's and our
//! private ones alike.
//!
//! Nothing of its configuration is read here but the name of its hash (see `root`), so nothing in
//! it can run a program, redirect us or replace an object; neither can the environment.

use std::{
    fs::{self, File},
    io::Read as _,
    path::{Path, PathBuf},
    sync::OnceLock,
};

use flate2::read::ZlibDecoder;
use gix::{
    ObjectId,
    hash::{Kind as HashKind, oid},
    objs::{Data, Exists, Find, Kind},
    odb::pack::Bundle,
};

use crate::{
    error::{Error, Result},
    model::{Content, ContentId, Place, Root, RootKind},
    root::{GitDirs, inspect},
};

/// Access to objects. Cheap to clone for another thread.
pub(super) type Odb = gix::odb::Handle;

/// An open repository.
pub(super) struct Repo {
    pub(super) git_dir: PathBuf,
    pub(super) common_dir: PathBuf,
    pub(super) hash: HashKind,
    /// Opened when an object is first asked for: to find nothing changed takes none.
    odb: OnceLock<Odb>,
}

impl Repo {
    /// Opens the repository of `root`, looking once more whether it can be used.
    pub(super) fn open(root: &Root) -> Result<Self> {
        let RootKind::Git { git_dir, common_dir } = root.kind() else {
            let why = "it is not a git repository".to_owned();
            return Err(Error::Repository { path: root.path().to_owned(), why });
        };
        let refuse = |why| Error::Repository { path: git_dir.clone(), why };
        inspect(root.path(), git_dir, common_dir).map(Self::looked_at).map_err(refuse)
    }

    /// Opens a repository that was looked at a moment ago.
    pub(super) fn looked_at(GitDirs { git_dir, common_dir, sha256 }: GitDirs) -> Self {
        let hash = if sha256 { HashKind::Sha256 } else { HashKind::Sha1 };
        Self { git_dir, common_dir, hash, odb: OnceLock::new() }
    }

    /// The repository in `dir`, which need not exist yet.
    pub(super) fn at(dir: &Path, hash: HashKind) -> Self {
        Self { git_dir: dir.to_owned(), common_dir: dir.to_owned(), hash, odb: OnceLock::new() }
    }

    /// The same, with its packs not looked at yet: there may be others by now.
    pub(super) fn refreshed(&self) -> Self {
        let (git_dir, common_dir) = (self.git_dir.clone(), self.common_dir.clone());
        Self { git_dir, common_dir, hash: self.hash, odb: OnceLock::new() }
    }

    /// The object database.
    ///
    /// # Errors
    ///
    /// Fails if it cannot be opened.
    pub(super) fn odb(&self) -> Result<&Odb> {
        if let Some(odb) = self.odb.get() {
            return Ok(odb);
        }
        let odb = open_odb(&self.objects(), &self.common_dir, self.hash)?;
        Ok(self.odb.get_or_init(|| odb))
    }

    /// Where objects are.
    pub(super) fn objects(&self) -> PathBuf {
        self.common_dir.join("objects")
    }

    /// Makes an error of what gix says.
    pub(super) fn error(&self, err: &gix::Error) -> Error {
        Error::Repository { path: self.common_dir.clone(), why: err.to_string() }
    }

    /// Whether the repository, or an alternate of it, has an object.
    pub(super) fn has(&self, id: &oid) -> bool {
        is_given(id) || self.odb().is_ok_and(|odb| odb.exists(id))
    }

    /// The object `id` as git names it.
    pub(super) fn object_id(&self, id: &ContentId) -> ObjectId {
        ObjectId::from_bytes_or_panic(id.hash(self.hash.len_in_bytes()))
    }

    /// As [`Repo::read`], and damage as well if the bytes are not what the name says: for whoever
    /// writes them into the user's files.
    pub(super) fn read_checked(&self, id: &oid, kind: Kind) -> Result<Vec<u8>> {
        let bytes = self.read(id, kind)?;
        if is_given(id) || name(self.hash, kind, &bytes)? == id {
            return Ok(bytes);
        }
        Err(Error::damaged(id.to_string(), "it is not what its name says"))
    }

    /// Reads a whole object of a kind; damage if it is absent or another kind.
    pub(super) fn read(&self, id: &oid, kind: Kind) -> Result<Vec<u8>> {
        if id.is_empty_tree() && kind == Kind::Tree || id.is_empty_blob() && kind == Kind::Blob {
            return Ok(Vec::new());
        }
        // It may have been packed since we looked where everything is.
        let read = self.read_here(id, kind);
        if read.is_ok() {
            return read;
        }
        let again = self.refreshed().read_here(id, kind);
        if again.is_ok() {
            return again;
        }
        self.read_own(id, kind).map_or(again, Ok)
    }

    /// Reads an object of this very directory, whatever its alternates say: what is borrowed may be
    /// broken, and whichever pack has the name is asked, but no other after it.
    fn read_own(&self, id: &oid, kind: Kind) -> Option<Vec<u8>> {
        let hex = id.to_string();
        let loose = self.objects().join(&hex[..2]).join(&hex[2..]);
        if loose.is_file() {
            let mut bytes = Vec::new();
            ZlibDecoder::new(File::open(loose).ok()?).read_to_end(&mut bytes).ok()?;
            let header = bytes.iter().position(|&byte| byte == 0)? + 1;
            let is_kind = bytes.starts_with(format!("{kind} ").as_bytes());
            return is_kind.then(|| bytes.split_off(header));
        }
        let packs = fs::read_dir(self.objects().join("pack")).ok()?.flatten();
        let mut packs = packs
            .map(|entry| entry.path())
            .filter(|path| path.extension().is_some_and(|it| it == "idx") && path.is_file());
        packs.find_map(|path| {
            let pack = Bundle::at(path, self.hash).ok()?;
            let (mut bytes, mut inflate) = (Vec::new(), gix::zlib::Inflate::default());
            let found = pack.find(id, &mut bytes, &mut inflate, &mut gix::odb::pack::cache::Never);
            let is_kind = found.ok()??.0.kind == kind;
            is_kind.then_some(bytes)
        })
    }

    fn read_here(&self, id: &oid, kind: Kind) -> Result<Vec<u8>> {
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

/// Objects every git knows without having them. They are written all the same, so that other
/// readers need no such knowledge; this is for reading only.
fn is_given(id: &oid) -> bool {
    id.is_empty_tree() || id.is_empty_blob()
}

/// Opens a directory of objects.
pub(super) fn open_odb(objects: &Path, current_dir: &Path, hash: HashKind) -> Result<Odb> {
    // What is no file would be waited for.
    let alternates = objects.join("info/alternates");
    if std::fs::metadata(&alternates).is_ok_and(|found| !found.is_file()) {
        return Err(Error::damaged(alternates.display().to_string(), "it is no file"));
    }
    let options = gix::odb::store::init::Options {
        current_dir: Some(current_dir.to_owned()),
        ..Default::default()
    };
    let mut odb = gix::odb::at_opts(objects, hash, None, options)
        .map_err(Error::io("open the objects in", objects))?;
    // Otherwise every object that is not there makes gix look for new packs.
    odb.refresh_never();
    Ok(odb)
}

/// The name of an object as the rest of the program knows it.
pub(super) fn content_id(id: &oid) -> ContentId {
    ContentId::new(id.as_bytes())
}

/// The bytes of an object, held by the repository.
pub(super) fn content(id: &oid) -> Content {
    Content { id: content_id(id), place: Place::Store }
}

/// Names an object without storing it.
pub(super) fn name(hash: HashKind, kind: Kind, body: &[u8]) -> Result<ObjectId> {
    gix::objs::compute_hash(hash, kind, body)
        .map_err(|err| Error::damaged("an object's name", err.to_string()))
}
