//! Everything in a git directory but its objects: refs, HEAD, configuration, reflogs, hooks, the
//! administration of linked worktrees and submodules.
//!
//! Kept as a tree of the raw files, and a blob of the modes that a tree cannot say. What the last
//! look saw lies beside it in a cache: a look at an unchanged git directory is a stat of each file
//! and reads none. The index of the worktree at hand is not in it, because a checkpoint keeps that
//! as a tree; the indexes of other worktrees are, without their stat fields, so that a refresh by
//! `git status` is no change.

use std::{
    collections::BTreeMap,
    ffi::OsStr,
    io::{self, Read},
    os::unix::ffi::OsStrExt,
    path::Path,
};

use gix::{
    ObjectId,
    objs::{Kind as ObjectKind, tree::EntryKind},
};
use sha2::{Digest, Sha256};

use super::super::plumbing::{
    modes,
    names::{Bearer, escape as escape_name},
    objects::ObjectWriter,
    refs,
    repo::Repo,
    tree::TreeBuilder,
};
use crate::{
    error::Result,
    fs::{now_ns, open_options, read_small, replace, stat_path},
    model::{ContentId, Kind, SkipReason, Skipped, Stamp},
    scan::is_racy,
    store::escape::{escape, unescape},
};

/// No single file of git's own but an object comes near it.
const FILE_MAX_BYTES: u64 = 64 << 20;
/// A hundred thousand refs.
const CACHE_MAX_BYTES: u64 = 64 << 20;
/// Refs and worktrees nest less deep.
const DEPTH_MAX: usize = 100;
/// More loose refs are not looked at one by one to find that nothing has changed: 3 ms.
const REFS_MAX: usize = 2000;
/// For callers that keep no index elsewhere; no file has that name.
pub(super) const NO_INDEX: &[u8] = b"\0";
/// The first line of the cache.
const CACHE_MAGIC: &str = "administration 1";
/// The ref that says what the cache may rely on: it points at the tree it was written for.
const ANCHOR: &str = "refs/anchors/administration";

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

#[derive(Clone, Debug, PartialEq, Eq)]
struct StampedBlob {
    stamp: Stamp,
    racy: bool,
    /// The blob of a file or link. A directory has none, nor an index that was not asked for.
    blob: Option<ObjectId>,
}

/// The cache, as it was left by the last look.
struct Cached {
    administration: Administration,
    rows: BTreeMap<Vec<u8>, StampedBlob>,
}

/// Looks at the git directory `common_dir` and gives what changed to `writer`, which writes into
/// `repo`. `own_index` is the index that is kept elsewhere. What cannot be held joins `left_out`,
/// under `name` and the path below the directory.
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
) -> Result<Looked> {
    let cached = Cached::load(repo);
    let own_index = own_index.strip_prefix(common_dir).unwrap_or(own_index);
    let own_index = own_index.as_os_str().as_bytes();
    let stands = |cached: &&Cached| cached.stands(common_dir, own_index, false);
    if let Some(cached) = cached.as_ref().filter(stands) {
        let administration = cached.administration.clone();
        return Ok(Looked { administration, is_unchanged: true, rows: BTreeMap::new() });
    }
    let known = cached.map(|cached| cached.rows).unwrap_or_default();
    let (rows, now) = (BTreeMap::new(), now_ns());
    let mut walk = AdministrationWalk {
        repo,
        common_dir,
        own_index,
        writer,
        name,
        left_out,
        known,
        rows,
        now,
    };
    walk.directory(common_dir, b"", 0)?;
    let rows = walk.rows;
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
    let known = Cached::load(repo).map(|cached| cached.rows).unwrap_or_default();
    let (writer, mut left_out) = (ObjectWriter::new(repo), Vec::new());
    let mut walk = AdministrationWalk {
        repo,
        common_dir,
        own_index: NO_INDEX,
        writer: &writer,
        name: b"",
        left_out: &mut left_out,
        known,
        rows: BTreeMap::new(),
        now: now_ns(),
    };
    walk.directory(common_dir, b"", 0)?;
    let rows = walk.rows.into_iter();
    Ok(rows.filter_map(|(path, row)| Some((path, row.blob?))).collect())
}

/// What the last look saw, if nothing has changed since. Where there are very many refs, those that
/// were written again in place, which git never does, are only seen by the next [`look`].
pub(super) fn unchanged(
    repo: &Repo,
    common_dir: &Path,
    own_index: &Path,
) -> Option<Administration> {
    let own_index = own_index.strip_prefix(common_dir).unwrap_or(own_index);
    let cached = Cached::load(repo)?;
    let stands = cached.stands(common_dir, own_index.as_os_str().as_bytes(), true);
    stands.then_some(cached.administration)
}

fn is_as_it_was(common_dir: &Path, path: &[u8], row: &StampedBlob, own_index: &[u8]) -> bool {
    if path == own_index {
        return true;
    }
    let is_held = row.blob.is_some() || !row.stamp.kind().is_some_and(Kind::has_content);
    // A directory of objects: see `AdministrationWalk::objects`.
    let is_mode_only = row.stamp.inode == 0;
    let is_same = || {
        stat_path(&common_dir.join(OsStr::from_bytes(path)))
            .is_ok_and(|stamp| stamp == row.stamp || is_mode_only && stamp.mode == row.stamp.mode)
    };
    is_held && !row.racy && is_same()
}

impl Looked {
    /// Lets the next look begin where this one ended. If that fails it is slower, nothing else.
    pub(super) fn write_cache(&self, repo: &Repo) {
        if self.is_unchanged {
            return;
        }
        let Administration { tree, modes, digest } = &self.administration;
        let text = |id: &Option<ObjectId>| id.map_or("-".to_owned(), |id| id.to_string());
        let mut cache = format!("{CACHE_MAGIC}\n{tree} {} {digest}\n", text(modes));
        for (path, StampedBlob { stamp, racy, blob }) in &self.rows {
            let Stamp { mtime_ns, ctime_ns, inode, size, mode } = stamp;
            let (racy, blob) = (u8::from(*racy), text(blob));
            cache.push_str(&format!(
                "{mtime_ns} {ctime_ns} {inode} {size} {mode:o} {racy} {blob} {}\n",
                escape(path)
            ));
        }
        cache.push_str(&format!("{:08x}\n", crc32fast::hash(cache.as_bytes())));
        // The cache first: without its anchor it is not believed.
        let _slower = replace(&repo.git_dir.join("administration"), cache.as_bytes())
            .and_then(|()| refs::set(repo, ANCHOR, *tree));
    }
}

impl Cached {
    /// Whether everything is as it was. If `trusts_directories`, the directories speak for very many
    /// refs: git gives each a new file when it moves.
    fn stands(&self, common_dir: &Path, own_index: &[u8], trusts_directories: bool) -> bool {
        let is_ref = |path: &[u8], row: &StampedBlob| {
            row.blob.is_some() && path.split(|&byte| byte == b'/').any(|name| name == b"refs")
        };
        let are_many = trusts_directories
            && self.rows.iter().filter(|(path, row)| is_ref(path, row)).count() > REFS_MAX;
        self.rows.iter().all(|(path, row)| {
            are_many && !row.racy && is_ref(path, row)
                || is_as_it_was(common_dir, path, row, own_index)
        })
    }

    /// Reads the cache of a repository; `None` if there is none that can be believed.
    fn load(repo: &Repo) -> Option<Self> {
        let bytes = read_small(&repo.git_dir.join("administration"), CACHE_MAX_BYTES).ok()??;
        let text = str::from_utf8(&bytes).ok()?.strip_suffix('\n')?;
        let (body, checksum) = text.rsplit_once('\n')?;
        let is_whole = checksum == format!("{:08x}", crc32fast::hash(&bytes[..=body.len()]));
        let mut lines = body.lines();
        if !is_whole || lines.next()? != CACHE_MAGIC {
            return None;
        }
        let mut head = lines.next()?.split(' ');
        let tree = parse_id(head.next()?)?;
        let modes = parse_id(head.next()?);
        let administration =
            Administration { tree, modes, digest: ContentId::parse(head.next()?)? };
        if refs::read(repo, ANCHOR).ok()? != Some(tree) {
            return None;
        }
        let rows = lines.map(parse_row).collect::<Option<_>>()?;
        Some(Self { administration, rows })
    }
}

/// `-`, and no other word, stands where there is none: the checksum says that it was written so.
fn parse_id(text: &str) -> Option<ObjectId> {
    ObjectId::from_hex(text.as_bytes()).ok()
}

fn parse_row(line: &str) -> Option<(Vec<u8>, StampedBlob)> {
    let mut fields = line.split(' ');
    let stamp = Stamp {
        mtime_ns: fields.next()?.parse().ok()?,
        ctime_ns: fields.next()?.parse().ok()?,
        inode: fields.next()?.parse().ok()?,
        size: fields.next()?.parse().ok()?,
        mode: u32::from_str_radix(fields.next()?, 8).ok()?,
    };
    let racy = fields.next()? == "1";
    let blob = parse_id(fields.next()?);
    Some((unescape(fields.next()?)?, StampedBlob { stamp, racy, blob }))
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
    now: i64,
}

impl AdministrationWalk<'_> {
    /// Everything in the directory at `dir`, whose path below the git directory is `path`.
    fn directory(&mut self, dir: &Path, path: &[u8], depth: usize) -> Result<()> {
        let Ok(stamp) = stat_path(dir) else { return Ok(()) };
        let Ok(names) = super::names_of(dir) else {
            self.leave_out(path, SkipReason::Unreadable, stamp);
            return Ok(());
        };
        if depth > DEPTH_MAX {
            self.leave_out(path, SkipReason::TooDeep, stamp);
            return Ok(());
        }
        let racy = is_racy(&stamp, self.now);
        self.rows.insert(path.to_vec(), StampedBlob { stamp, racy, blob: None });
        for name in names {
            let bytes = name.as_bytes();
            let below = if path.is_empty() { bytes.to_vec() } else { [path, b"/", bytes].concat() };
            if super::is_object_dir(self.common_dir, &below) {
                self.objects(&dir.join(&name), &below)?;
            } else if !is_left_to_git(&below, bytes) {
                self.entry(&dir.join(&name), &below, depth + 1)?;
            }
        }
        Ok(())
    }

    /// Of a directory of objects, only what says where else objects are.
    fn objects(&mut self, dir: &Path, path: &[u8]) -> Result<()> {
        if let Ok(stamp) = stat_path(dir) {
            // Objects come and go; only its permissions count.
            let stamp = Stamp { mode: stamp.mode, ..Stamp::default() };
            self.rows.insert(path.to_vec(), StampedBlob { stamp, racy: false, blob: None });
        }
        let (info, below) = (dir.join("info"), [path, b"/info"].concat());
        let Ok(stamp) = stat_path(&info) else { return Ok(()) };
        let racy = is_racy(&stamp, self.now);
        self.rows.insert(below.clone(), StampedBlob { stamp, racy, blob: None });
        self.entry(&info.join("alternates"), &[&below[..], b"/alternates"].concat(), 0)
    }

    fn entry(&mut self, place: &Path, path: &[u8], depth: usize) -> Result<()> {
        let Ok(stamp) = stat_path(place) else { return Ok(()) };
        match stamp.kind() {
            Some(Kind::Directory) => self.directory(place, path, depth),
            Some(Kind::File) if path == self.own_index => {
                self.rows.insert(path.to_vec(), StampedBlob { stamp, racy: true, blob: None });
                Ok(())
            }
            Some(Kind::File | Kind::Link) => self.hold(place, path, stamp),
            // A daemon's socket is its own.
            Some(Kind::Fifo | Kind::Socket | Kind::CharDevice | Kind::BlockDevice) | None => Ok(()),
        }
    }

    fn hold(&mut self, place: &Path, path: &[u8], stamp: Stamp) -> Result<()> {
        let racy = is_racy(&stamp, self.now);
        let known = self.known.get(path).filter(|row| row.stamp == stamp && !row.racy);
        let mut blob = known.and_then(|row| row.blob);
        if blob.is_none() {
            let bytes = match bytes_of(self.repo, place, path, stamp) {
                Ok(bytes) => bytes,
                Err(err) if err.kind() == io::ErrorKind::NotFound => return Ok(()),
                Err(err) => {
                    let is_large = err.kind() == io::ErrorKind::FileTooLarge;
                    let reason =
                        if is_large { SkipReason::TooLarge } else { SkipReason::Unreadable };
                    self.leave_out(path, reason, stamp);
                    return Ok(());
                }
            };
            let odb = self.repo.odb()?;
            blob = Some(self.writer.add(ObjectKind::Blob, &bytes, odb)?);
        }
        self.rows.insert(path.to_vec(), StampedBlob { stamp, racy, blob });
        Ok(())
    }

    /// Names what is not held. As long as it is there every look is a whole one, and names it again.
    fn leave_out(&mut self, path: &[u8], reason: SkipReason, stamp: Stamp) {
        self.rows.insert(path.to_vec(), StampedBlob { stamp, racy: true, blob: None });
        let is_dir = stamp.kind() == Some(Kind::Directory);
        let size = if is_dir { 0 } else { stamp.size };
        let path = [self.name, b"/", path].concat();
        self.left_out.push(Skipped { path, reason, size });
    }
}

/// What git makes and drops as it goes: locks, and what tells of processes. No ref has a name like a
/// lock's; the others are names like any for a ref.
fn is_left_to_git(path: &[u8], name: &[u8]) -> bool {
    let is_of_process = name == b"gc.pid" || name.starts_with(b"fsmonitor--daemon");
    name.ends_with(b".lock") || is_of_process && !super::is_below_refs(path)
}

fn bytes_of(repo: &Repo, place: &Path, path: &[u8], stamp: Stamp) -> io::Result<Vec<u8>> {
    if stamp.kind() == Some(Kind::Link) {
        return Ok(std::fs::read_link(place)?.into_os_string().into_encoded_bytes());
    }
    if stamp.size > FILE_MAX_BYTES {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    let file = open_options().read(true).open(place)?;
    let mut bytes = Vec::with_capacity(usize::try_from(stamp.size).map_or(0, |size| size + 1));
    file.take(FILE_MAX_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > FILE_MAX_BYTES {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    let is_index = is_index(path);
    Ok(is_index.then(|| without_stats(repo, place)).flatten().unwrap_or(bytes))
}

fn is_index(path: &[u8]) -> bool {
    split(path).1 == b"index" && !super::is_below_refs(path)
}

/// An index without what it knows of the files; `None` if it cannot be read as one.
fn without_stats(repo: &Repo, place: &Path) -> Option<Vec<u8>> {
    let (place, hash) = (place.to_owned(), repo.hash);
    let options = gix::index::decode::Options {
        thread_limit: Some(1),
        ..gix::index::decode::Options::default()
    };
    // The decoder is not ours, and the file is anybody's.
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
        let above = match split(own_index).0 {
            b"" => Vec::new(),
            above => [above, b"/"].concat(),
        };
        own_index == NO_INDEX || path.starts_with(&[&above[..], b"modules/"].concat())
    };
    is_index(path) && !is_own() || split(path).1 == b"FETCH_HEAD" && !super::is_below_refs(path)
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
            let (above, name) = split(path);
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
        let (above, name) = split(path);
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

/// The directory a path lies in, and its last name.
fn split(path: &[u8]) -> (&[u8], &[u8]) {
    match path.iter().rposition(|&byte| byte == b'/') {
        Some(at) => (&path[..at], &path[at + 1..]),
        None => (b"", path),
    }
}

/// Every directory above a path, and itself if it is one.
fn ancestors(path: &[u8], is_dir: bool) -> Vec<&[u8]> {
    let mut all = Vec::new();
    if is_dir {
        all.push(path);
    }
    let mut rest = path;
    while !rest.is_empty() {
        rest = split(rest).0;
        all.push(rest);
    }
    all
}
