//! Everything in a git directory but its objects: refs, HEAD, configuration, reflogs, hooks, the
//! administration of linked worktrees and submodules.
//!
//! It is stored as a tree of the raw files and a blob with the modes that a tree cannot express. A cache records
//! the stamps that the last look found, so a look at an unchanged git directory only stats its files and reads
//! none. The index of the worktree at hand is not in it, because a checkpoint keeps that
//! as a tree; the indexes of other worktrees are, without their stat fields, so that a refresh by
//! `git status` is no change.

mod cache;

use std::{
    borrow::Cow,
    collections::BTreeMap,
    ffi::{CStr, OsStr},
    io, mem,
    os::unix::ffi::OsStrExt,
    path::Path,
};

use gix::{
    ObjectId,
    objs::{Kind as ObjectKind, tree::EntryKind},
};
use sha2::{Digest, Sha256};

use self::cache::{Cached, StampedBlob};
use super::super::plumbing::{
    modes,
    names::{Bearer, escape as escape_name},
    objects::ObjectWriter,
    repo::Repo,
    tree::TreeBuilder,
};
use crate::{
    error::Result,
    fs::{Dir, FileBuffer, now_ns, stat_path},
    model::{ContentId, Kind, SkipReason, Skipped, Stamp, join_path, split_path},
    scan::is_racy,
};

/// No single file of git's own but an object comes near it.
const FILE_MAX_BYTES: u64 = 64 << 20;
/// Refs and worktrees nest less deep.
const DEPTH_MAX: usize = 100;
/// For callers that keep no index elsewhere; no file has that name.
pub(super) const NO_INDEX: &[u8] = b"\0";

/// What a checkpoint keeps of a git directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::store) struct Administration {
    /// The tree of its files.
    pub(in crate::store) tree: ObjectId,
    /// The modes that the tree cannot say.
    pub(in crate::store) modes: Option<ObjectId>,
    /// Names everything in it that matters for whether a repository has changed: see [`is_volatile`].
    pub(in crate::store) digest: ContentId,
}

/// What came of a look.
pub(super) struct Looked {
    pub(super) administration: Administration,
    /// Whether nothing had changed since the last look.
    pub(super) is_unchanged: bool,
    rows: BTreeMap<Vec<u8>, StampedBlob>,
}

/// Looks at the git directory `common_dir` and gives what changed to `writer`, which writes into
/// `repo`. `own_index` is the index that is kept elsewhere. What cannot be held joins `left_out`,
/// under `name` and the path below the directory. The cache is not used unless every object that it names is
/// known to be stored.
///
/// # Errors
///
/// Fails if the directory cannot be listed or `writer` fails.
pub(super) fn look(
    repo: &Repo,
    common_dir: &Path,
    own_index: &Path,
    writer: &ObjectWriter,
    name: &[u8],
    left_out: &mut Vec<Skipped>,
    trusts_cache: bool,
) -> Result<Looked> {
    let cached = Cached::load(repo).filter(|_| trusts_cache);
    let own_index = own_index.strip_prefix(common_dir).unwrap_or(own_index);
    let own_index = own_index.as_os_str().as_bytes();
    let stands = |cached: &&Cached| cached.stands(common_dir, own_index);
    if let Some(cached) = cached.as_ref().filter(stands) {
        let administration = cached.administration.clone();
        return Ok(Looked { administration, is_unchanged: true, rows: BTreeMap::new() });
    }
    let walk = AdministrationWalk::new(repo, common_dir, writer, cached, left_out);
    let rows = AdministrationWalk { own_index, name, ..walk }.all()?;
    let administration = build(repo, &rows, own_index, writer)?;
    Ok(Looked { administration, is_unchanged: false, rows })
}

/// The files that a look at the git directory `common_dir` would hold now, by their paths, and the
/// names of their blobs. Nothing is written.
///
/// # Errors
///
/// Fails if the objects of `repo` cannot be opened.
pub(super) fn files(repo: &Repo, common_dir: &Path) -> Result<BTreeMap<Vec<u8>, ObjectId>> {
    let (writer, mut left_out) = (ObjectWriter::new(repo), Vec::new());
    let cached = Cached::load(repo);
    let walk = AdministrationWalk::new(repo, common_dir, &writer, cached, &mut left_out);
    let rows = walk.all()?.into_iter();
    Ok(rows.filter_map(|(path, row)| Some((path, row.blob?))).collect())
}

/// What the last look saw, if nothing has changed since. Where there are very many refs, those that
/// were written again in place, which git never does, are only seen by the next [`look`].
pub(in crate::store) fn unchanged(
    repo: &Repo,
    common_dir: &Path,
    own_index: &Path,
) -> Option<Administration> {
    let own_index = own_index.strip_prefix(common_dir).unwrap_or(own_index);
    let cached = Cached::load_start(repo)?;
    cached.stands(common_dir, own_index.as_os_str().as_bytes()).then_some(cached.administration)
}

impl Looked {
    /// Lets the next look begin where this one ended. If that fails it is slower, nothing else.
    pub(super) fn write_cache(&self, repo: &Repo) {
        if !self.is_unchanged {
            cache::write(repo, &self.administration, &self.rows);
        }
    }
}

struct AdministrationWalk<'a> {
    repo: &'a Repo,
    common_dir: &'a Path,
    own_index: &'a [u8],
    writer: &'a ObjectWriter,
    name: &'a [u8],
    left_out: &'a mut Vec<Skipped>,
    known: BTreeMap<Vec<u8>, StampedBlob>,
    rows: BTreeMap<Vec<u8>, StampedBlob>,
    buffer: FileBuffer,
    now: i64,
}

impl<'a> AdministrationWalk<'a> {
    /// A walk through the git directory `common_dir` that takes no index for one that is kept
    /// elsewhere.
    fn new(
        repo: &'a Repo,
        common_dir: &'a Path,
        writer: &'a ObjectWriter,
        cached: Option<Cached>,
        left_out: &'a mut Vec<Skipped>,
    ) -> Self {
        let known = cached.map(|cached| cached.rows()).unwrap_or_default();
        let (rows, buffer) = (BTreeMap::new(), FileBuffer::default());
        let (own_index, name, now) = (NO_INDEX, &b""[..], now_ns());
        Self { repo, common_dir, own_index, writer, name, left_out, known, rows, buffer, now }
    }

    /// Everything in the git directory.
    fn all(mut self) -> Result<BTreeMap<Vec<u8>, StampedBlob>> {
        if let Ok(stamp) = stat_path(self.common_dir) {
            self.directory(Dir::open(self.common_dir), stamp, b"", 0)?;
        }
        Ok(self.rows)
    }

    /// Everything in a directory at `path` below the git directory.
    fn directory(
        &mut self,
        opened: io::Result<Dir>,
        stamp: Stamp,
        path: &[u8],
        depth: usize,
    ) -> Result<()> {
        let mut names = Vec::new();
        let listed = opened.and_then(|dir| {
            let (stamp, _) = dir.stat()?;
            dir.list(|entry| names.push(entry))?;
            Ok((dir, stamp))
        });
        let Ok((dir, stamp)) = listed else {
            self.leave_out(path, SkipReason::Unreadable, stamp);
            return Ok(());
        };
        if depth > DEPTH_MAX {
            self.leave_out(path, SkipReason::TooDeep, stamp);
            return Ok(());
        }
        let racy = is_racy(&stamp, self.now);
        self.rows.insert(path.to_vec(), StampedBlob { stamp, racy, blob: None });
        for entry in names {
            let name = entry.name.to_bytes();
            let below = join_path(path, name);
            if super::is_object_dir(self.common_dir, &below) {
                self.objects(&below)?;
            } else if !is_left_to_git(&below, name) {
                self.entry(&dir, &entry.name, entry.kind, &below, depth + 1)?;
            }
        }
        Ok(())
    }

    /// Of a directory of objects, holds only its permissions and `info/alternates`, which names further ones.
    fn objects(&mut self, path: &[u8]) -> Result<()> {
        let dir = self.common_dir.join(OsStr::from_bytes(path));
        if let Ok(stamp) = stat_path(&dir) {
            // Objects come and go; only its permissions count.
            let stamp = Stamp { mode: stamp.mode, ..Stamp::default() };
            self.rows.insert(path.to_vec(), StampedBlob { stamp, racy: false, blob: None });
        }
        let (info, below) = (dir.join("info"), [path, b"/info"].concat());
        let Ok(stamp) = stat_path(&info) else { return Ok(()) };
        let racy = is_racy(&stamp, self.now);
        self.rows.insert(below.clone(), StampedBlob { stamp, racy, blob: None });
        let Ok(info) = Dir::open(&info) else { return Ok(()) };
        let name = c"alternates";
        self.entry(&info, name, None, &[&below[..], b"/alternates"].concat(), 0)
    }

    /// One name in `dir`. `kind` is what the listing says of it.
    fn entry(
        &mut self,
        dir: &Dir,
        name: &CStr,
        kind: Option<Kind>,
        path: &[u8],
        depth: usize,
    ) -> Result<()> {
        // Opening a file tells its stamp.
        let is_new = path != self.own_index && !self.known.contains_key(path);
        if kind == Some(Kind::File) && is_new {
            return self.hold(dir, name, path, None);
        }
        let Ok(stamp) = dir.stat_child(name) else { return Ok(()) };
        match stamp.kind() {
            Some(Kind::Directory) => self.directory(dir.open_child(name), stamp, path, depth),
            Some(Kind::File) if path == self.own_index => {
                self.rows.insert(path.to_vec(), StampedBlob { stamp, racy: true, blob: None });
                Ok(())
            }
            Some(Kind::File | Kind::Link) => self.hold(dir, name, path, Some(stamp)),
            // Sockets, pipes and devices belong to a running program, not to the repository.
            Some(Kind::Fifo | Kind::Socket | Kind::CharDevice | Kind::BlockDevice) | None => Ok(()),
        }
    }

    /// Holds a file or link. Its stamp is unknown if it is certainly new, and a file.
    fn hold(&mut self, dir: &Dir, name: &CStr, path: &[u8], stamp: Option<Stamp>) -> Result<()> {
        let known = self.known.get(path).filter(|row| Some(row.stamp) == stamp && !row.racy);
        if let Some(blob) = known.and_then(|row| row.blob) {
            self.insert(path, stamp.unwrap_or_default(), blob);
            return Ok(());
        }
        let mut buffer = mem::take(&mut self.buffer);
        let held = match self.read(dir, name, path, stamp, &mut buffer) {
            Ok((bytes, stamp)) => {
                let odb = self.repo.odb()?;
                self.writer.add(ObjectKind::Blob, &bytes, odb).map(|blob| {
                    self.insert(path, stamp, blob);
                })
            }
            Err(err) if err.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(err) => {
                let is_large = err.kind() == io::ErrorKind::FileTooLarge;
                let reason = if is_large { SkipReason::TooLarge } else { SkipReason::Unreadable };
                let stamp = stamp.or_else(|| dir.stat_child(name).ok()).unwrap_or_default();
                self.leave_out(path, reason, stamp);
                Ok(())
            }
        };
        self.buffer = buffer;
        held
    }

    fn insert(&mut self, path: &[u8], stamp: Stamp, blob: ObjectId) {
        let racy = is_racy(&stamp, self.now);
        self.rows.insert(path.to_vec(), StampedBlob { stamp, racy, blob: Some(blob) });
    }

    /// What is held of a file or link, and the stamp from before it was read.
    fn read<'b>(
        &self,
        dir: &Dir,
        name: &CStr,
        path: &[u8],
        stamp: Option<Stamp>,
        buffer: &'b mut FileBuffer,
    ) -> io::Result<(Cow<'b, [u8]>, Stamp)> {
        if let Some(stamp) = stamp.filter(|stamp| stamp.kind() == Some(Kind::Link)) {
            return Ok((dir.read_link(name)?.into(), stamp));
        }
        let (file, stamp) = dir.open_file(name)?;
        if stamp.size > FILE_MAX_BYTES {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        let bytes = buffer.read(&file, stamp.size, FILE_MAX_BYTES)?;
        if bytes.len() as u64 > FILE_MAX_BYTES {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        let place = || self.common_dir.join(OsStr::from_bytes(path));
        let index = is_index(path).then(|| without_stats(self.repo, &place())).flatten();
        Ok((index.map_or(bytes.into(), Cow::from), stamp))
    }

    /// Reports what cannot be held. As long as it exists, the cache is never valid, so every look reports it.
    fn leave_out(&mut self, path: &[u8], reason: SkipReason, stamp: Stamp) {
        self.rows.insert(path.to_vec(), StampedBlob { stamp, racy: true, blob: None });
        let is_dir = stamp.kind() == Some(Kind::Directory);
        let size = if is_dir { 0 } else { stamp.size };
        let path = [self.name, b"/", path].concat();
        self.left_out.push(Skipped { path, reason, size });
    }
}

/// Whether a file exists only while a git process runs: a lock, or a process id. A ref cannot be called like a
/// lock; it can be called like the others, so those count as refs below `refs`.
fn is_left_to_git(path: &[u8], name: &[u8]) -> bool {
    let is_of_process = name == b"gc.pid" || name.starts_with(b"fsmonitor--daemon");
    name.ends_with(b".lock") || is_of_process && !super::is_below_refs(path)
}

fn is_index(path: &[u8]) -> bool {
    split_path(path).1 == b"index" && !super::is_below_refs(path)
}

/// An index without what it knows of the files; `None` if it cannot be read as one.
fn without_stats(repo: &Repo, place: &Path) -> Option<Vec<u8>> {
    let (place, hash) = (place.to_owned(), repo.hash);
    let options = gix::index::decode::Options {
        thread_limit: Some(1),
        ..gix::index::decode::Options::default()
    };
    // The decoder is not ours, and the file is not trusted.
    let read = move || {
        let mut index = gix::index::File::at(place, hash, true, options).ok()?;
        for entry in index.entries_mut() {
            entry.stat = gix::index::entry::Stat::default();
        }
        let mut bytes = Vec::new();
        index.write_to(&mut bytes, gix::index::write::Options::default()).ok()?;
        Some(bytes)
    };
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(read)).ok().flatten()
}

/// Whether a change of the file at `path` says nothing about the repository: what the last fetch
/// brought, and the indexes of other worktrees than the one at hand and its submodules. Where there
/// is none at hand, every index counts.
fn is_volatile(path: &[u8], own_index: &[u8]) -> bool {
    let is_own = || {
        let above = match split_path(own_index).0 {
            b"" => Vec::new(),
            above => [above, b"/"].concat(),
        };
        own_index == NO_INDEX || path.starts_with(&[&above[..], b"modules/"].concat())
    };
    is_index(path) && !is_own()
        || split_path(path).1 == b"FETCH_HEAD" && !super::is_below_refs(path)
}

/// The permissions that are not worth a record.
fn default_mode(kind: Kind) -> u32 {
    match kind {
        Kind::Directory => 0o755,
        Kind::Link => 0o777,
        _ => 0o644,
    }
}

fn build(
    repo: &Repo,
    rows: &BTreeMap<Vec<u8>, StampedBlob>,
    own_index: &[u8],
    writer: &ObjectWriter,
) -> Result<Administration> {
    let (mut digest, mut odd) = (Sha256::new(), Vec::new());
    let mut dirs: BTreeMap<&[u8], TreeBuilder> =
        BTreeMap::from([(&b""[..], TreeBuilder::default())]);
    for (path, row) in rows {
        let Some(kind) = row.stamp.kind() else { continue };
        let is_dir = kind == Kind::Directory;
        // The index that is kept elsewhere, or something that is left out.
        if !is_dir && row.blob.is_none() {
            continue;
        }
        if !is_volatile(path, own_index) {
            digest.update(path);
            digest.update([0]);
            digest.update(format!("{:o}", row.stamp.mode));
            digest.update(row.blob.map_or_else(Vec::new, |id| id.as_slice().to_vec()));
        }
        if row.stamp.permissions() != default_mode(kind) && !path.is_empty() {
            modes::put(&mut odd, kind, row.stamp.permissions(), 0, path);
        }
        for above in ancestors(path, is_dir) {
            dirs.entry(above).or_default();
        }
    }
    for (path, row) in rows {
        if let (Some(kind), Some(blob)) = (row.stamp.kind(), row.blob) {
            let kind = if kind == Kind::Link { EntryKind::Link } else { EntryKind::Blob };
            let (above, name) = split_path(path);
            dirs.entry(above).or_default().add(&stored_name(name, kind), kind, blob);
        }
    }
    let odb = repo.odb()?;
    // The deepest first: a path comes after each directory it lies in.
    let mut tree = None;
    while let Some((path, builder)) = dirs.pop_last() {
        let id = writer.add(ObjectKind::Tree, &builder.finish(), odb)?;
        if path.is_empty() {
            tree = Some(id);
            break;
        }
        let (above, name) = split_path(path);
        let kind = EntryKind::Tree;
        dirs.entry(above).or_default().add(&stored_name(name, kind), kind, id);
    }
    let modes =
        if odd.is_empty() { None } else { Some(writer.add(ObjectKind::Blob, &odd, odb)?) };
    let tree = tree.expect("the git directory itself comes last");
    Ok(Administration { tree, modes, digest: ContentId::new(&digest.finalize()) })
}

fn stored_name(name: &[u8], kind: EntryKind) -> Vec<u8> {
    escape_name(name, Bearer { link: kind == EntryKind::Link, large: true }).into_owned()
}

/// Every directory above a path, and itself if it is one.
fn ancestors(path: &[u8], is_dir: bool) -> Vec<&[u8]> {
    let mut all = Vec::new();
    if is_dir {
        all.push(path);
    }
    let mut rest = path;
    while !rest.is_empty() {
        rest = split_path(rest).0;
        all.push(rest);
    }
    all
}
