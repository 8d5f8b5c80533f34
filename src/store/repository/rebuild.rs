//! Restores a user's repository that is gone, damaged or replaced, from what a checkpoint holds of
//! it.
//!
//! The repository is built under a temporary name, synced, and exchanged with what is at its path.
//! The old one is removed if a checkpoint holds it as it is; otherwise it is set aside.

mod fork;
mod held_paths;
mod lost;
mod retire;
mod steps;

use std::{
    ffi::{OsStr, OsString},
    fs::{self, DirBuilder, OpenOptions},
    io::{self, Write},
    os::unix::{
        ffi::{OsStrExt, OsStringExt},
        fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt, symlink},
    },
    path::{Path, PathBuf},
};

pub use self::{
    fork::{fork, fork_sites},
    lost::{Losing, LostRef, LostRepository, Stood, beyond, heads, lost},
    retire::{Ends, SetAside, remove_unfinished},
    steps::{RepositoryStep, StepKind, is_reftable, others, steps},
};
use super::{
    Held, PrivateRepository, alternates_of, borrow, damaged_packs, intact, names_of, open_up,
};
use crate::{
    error::{Error, Result},
    fs::{Dir, exchange, is_unsupported, read_small, remove_tree, rename_exclusive},
    model::{CheckpointId, Kind, join_path},
    root,
    scan::TEMPORARY_PREFIX,
    state::{StateDir, hash_name},
    store::{
        plumbing::{
            head,
            index::{self, IndexEntry},
            modes,
            names::unescape_in_git_dir,
            objects::loose_bytes,
            refs,
            repo::{Repo, open_odb},
            restore_index,
            tree::{self, read_parts},
        },
        record::Record,
    },
};
use gix::{
    ObjectId,
    objs::{Exists, Kind as ObjectKind, tree::EntryKind},
};

/// The size of an empty pack index: a header, 256 counts, two checksums.
const INDEX_MIN_BYTES: u64 = 8 + 256 * 4 + 2 * 20;
/// The size of an empty pack: a header and a checksum.
const PACK_MIN_BYTES: u64 = 12 + 20;
/// Refs and worktrees are not nested deeper.
const DEPTH_MAX: usize = 200;

/// Executes one step for the checkpoint of `record`. What is replaced is removed, or set aside if
/// no checkpoint of `ends` holds it.
///
/// # Errors
///
/// Fails if the private repository lacks something, or if the target cannot be written. What was
/// there is unchanged then.
pub fn carry_out(
    state: &StateDir,
    root: &Path,
    record: &Record,
    step: &RepositoryStep,
    ends: &Ends<'_>,
) -> Result<Option<SetAside>> {
    let RepositoryStep { place, kind, held, .. } = step;
    let temporary = beside(ends.held, place, NEW);
    let held = match (kind, held) {
        (StepKind::Pointer(text), _) => return write_pointer(place, text).map(|()| None),
        (StepKind::Remove(_), _) => {
            remove_tree(&temporary).map_err(Error::io("remove", &temporary))?;
            crate::crash::point("repository-removed");
            fs::rename(place, &temporary).map_err(Error::io("remove", place))?;
            return ends.retire(state, root, place, &temporary);
        }
        (StepKind::Part(below), Some(held)) => {
            let private = PrivateRepository::named(state, &held.store);
            let repo = private.repo();
            let build = Build::new(&private, &repo, held)?;
            return build.part(ends.held, (place, below), root, record).map(|()| None);
        }
        (StepKind::Recreate | StepKind::Replace(_), Some(held)) => held,
        (StepKind::Part(_) | StepKind::Recreate | StepKind::Replace(_), None) => return Ok(None),
    };
    let private = PrivateRepository::named(state, &held.store);
    let parent = place.parent().unwrap_or(root);
    fs::create_dir_all(parent).map_err(Error::io("make the directory", parent))?;
    remove_tree(&temporary).map_err(Error::io("remove", &temporary))?;
    // A hard link shares the mode of the user's file, which may have been made unreadable.
    open_up(&private.linked());
    let repo = private.repo();
    let build = Build::new(&private, &repo, held)?;
    let made = build.whole(&temporary, root, record).and_then(|()| {
        let dir = Dir::open(&temporary).map_err(Error::io("open", &temporary))?;
        dir.sync_below().map_err(Error::io("sync", &temporary))?;
        crate::crash::point("repository");
        let old = beside(ends.held, place, OLD);
        put_in_place(&temporary, place, &old).map_err(Error::io("bring back", place))?;
        private.describe_rebuilt(place, held.identity)
    });
    if made.is_err() {
        let _unfinished = remove_tree(&temporary);
    }
    made?;
    crate::crash::point("repository-exchanged");
    ends.retire(state, root, place, &temporary)
}

/// The uses of a temporary name: for the new repository, and afterwards for the old one; for the old one
/// alone, where the system cannot exchange two directories.
const NEW: &[u8] = b"new";
const OLD: &[u8] = b"old";

/// A temporary name beside `place`, for the restore with the before-restore checkpoint `held`. Nothing else
/// has such a name.
fn beside(held: CheckpointId, place: &Path, used_for: &[u8]) -> PathBuf {
    let hash = hash_name(&[place.as_os_str().as_bytes(), used_for]);
    place.with_file_name(format!("{TEMPORARY_PREFIX}{held}-{}", &hash[..16]))
}

fn write_pointer(place: &Path, text: &[u8]) -> Result<()> {
    if let Some(parent) = place.parent() {
        fs::create_dir_all(parent).map_err(Error::io("make the directory", parent))?;
    }
    if let Some(target) = text.strip_prefix(root::LINK) {
        return symlink(OsStr::from_bytes(target), place).map_err(Error::io("make", place));
    }
    let opened = OpenOptions::new().write(true).create_new(true).open(place);
    opened.and_then(|mut file| file.write_all(text)).map_err(Error::io("write", place))
}

/// Exchanges `new` with `place`; the old one is at `new` afterwards. Where the system cannot exchange two
/// directories, it is at `aside` for a moment.
fn put_in_place(new: &Path, place: &Path, aside: &Path) -> io::Result<()> {
    if place.symlink_metadata().is_err() {
        return match rename_exclusive(new, place) {
            // Nothing was there a moment ago.
            Err(err) if is_unsupported(&err) => fs::rename(new, place),
            renamed => renamed,
        };
    }
    match exchange(new, place) {
        Err(err) if is_unsupported(&err) => {
            fs::rename(place, aside)?;
            if let Err(err) = fs::rename(new, place) {
                fs::rename(aside, place)?;
                return Err(err);
            }
            fs::rename(aside, new)
        }
        renamed => renamed,
    }
}

/// Receives the path of an entry, its kind and its object.
type Each<'a> = dyn FnMut(&[u8], EntryKind, ObjectId) -> Result<()> + 'a;

/// The held files of a git directory.
pub(super) struct HeldFiles<'a> {
    repo: &'a Repo,
    top: ObjectId,
    modes: Option<ObjectId>,
}

impl<'a> HeldFiles<'a> {
    pub(super) fn open(repo: &'a Repo, held: &Held) -> Result<Self> {
        let id = repo.object_id(&held.tree);
        let (mut top, mut modes) = (None, None);
        for (name, kind, id) in tree::entries(repo, &id)? {
            match (&name[..], kind) {
                (b"repository", EntryKind::Tree) => top = Some(id),
                (b"repository.modes", EntryKind::Blob) => modes = Some(id),
                _ => (),
            }
        }
        let lacks = || Error::damaged(format!("tree {id}"), "it has no `repository`");
        Ok(Self { repo, top: top.ok_or_else(lacks)?, modes })
    }

    /// Visits every file, link and directory; directories before their content.
    pub(super) fn each(&self, each: &mut Each<'_>) -> Result<()> {
        let mut open = vec![(Vec::new(), self.top, 0)];
        while let Some((above, id, depth)) = open.pop() {
            each(&above, EntryKind::Tree, id)?;
            for (name, kind, id) in tree::entries(self.repo, &id)? {
                let name = unescape_in_git_dir(&name)?;
                let path = join_path(&above, &name);
                match kind {
                    EntryKind::Tree if depth < DEPTH_MAX => open.push((path, id, depth + 1)),
                    EntryKind::Blob | EntryKind::BlobExecutable | EntryKind::Link => {
                        each(&path, kind, id)?;
                    }
                    EntryKind::Tree | EntryKind::Commit => (),
                }
            }
        }
        Ok(())
    }

    /// The held files of a git directory below it, such as a submodule's.
    fn below(&self, path: &[u8]) -> Option<Self> {
        let (kind, top) = self.entry(path)?;
        (kind == EntryKind::Tree).then_some(Self { repo: self.repo, top, modes: None })
    }

    /// The content of one file, if it exists.
    fn file(&self, path: &[u8]) -> Option<Vec<u8>> {
        let (_, id) = self.entry(path)?;
        self.repo.read(&id, ObjectKind::Blob).ok()
    }

    fn entry(&self, path: &[u8]) -> Option<(EntryKind, ObjectId)> {
        let (mut kind, mut id) = (EntryKind::Tree, self.top);
        for name in path.split(|&byte| byte == b'/') {
            let entries = tree::entries(self.repo, &id).ok().filter(|_| kind == EntryKind::Tree)?;
            let is_it = |entry: &&(Vec<u8>, EntryKind, ObjectId)| {
                unescape_in_git_dir(&entry.0).is_ok_and(|it| it == name)
            };
            (kind, id) = entries.iter().find(is_it).map(|(_, kind, id)| (*kind, *id))?;
        }
        Some((kind, id))
    }

    /// The refs, loose and packed, that name objects.
    fn refs(&self) -> Vec<(String, ObjectId)> {
        self.refs_if(|_| true)
    }

    /// Those of them with a name that is wanted. Others are not read.
    fn refs_if(&self, is_wanted: impl Fn(&str) -> bool) -> Vec<(String, ObjectId)> {
        let mut found = Vec::new();
        let _as_far_as_it_can_be_read = self.each(&mut |path, kind, id| {
            if kind == EntryKind::Tree {
                return Ok(());
            }
            let bytes = |repo: &Repo| repo.read(&id, ObjectKind::Blob).unwrap_or_default();
            if path.starts_with(b"refs/") {
                let name = String::from_utf8_lossy(path);
                if is_wanted(&name) {
                    let id = ObjectId::from_hex(bytes(self.repo).trim_ascii_end());
                    found.extend(id.map(|id| (name.into_owned(), id)));
                }
            } else if path == b"packed-refs" {
                let bytes = bytes(self.repo);
                let lines = bytes.split(|&byte| byte == b'\n');
                found.extend(lines.filter_map(|line| {
                    let (id, name) = str::from_utf8(line).ok()?.split_once(' ')?;
                    let id = ObjectId::from_hex(id.as_bytes()).ok()?;
                    is_wanted(name).then(|| (name.to_owned(), id))
                }));
            }
            Ok(())
        });
        found
    }
}

struct Build<'a> {
    private: &'a PrivateRepository,
    repo: &'a Repo,
    files: HeldFiles<'a>,
    /// The permissions of the git directory itself.
    permissions: u32,
}

impl<'a> Build<'a> {
    fn new(private: &'a PrivateRepository, repo: &'a Repo, held: &Held) -> Result<Self> {
        let files = HeldFiles::open(repo, held)?;
        Ok(Self { private, repo, files, permissions: held.permissions })
    }

    /// Builds the whole git directory at `to`.
    fn whole(&self, to: &Path, root: &Path, record: &Record) -> Result<()> {
        DirBuilder::new().mode(0o700).create(to).map_err(Error::io("make the directory", to))?;
        self.files(to, b"")?;
        self.objects(to, Path::new("")).map_err(Error::io("link the objects into", to))?;
        self.lost_alternates(to).map_err(Error::io("link the objects into", to))?;
        frame(to).map_err(Error::io("make directories in", to))?;
        self.index(to, &to.join("objects"), root, record, b"")?;
        protect(to, self.permissions)
    }

    /// Builds the part `below` of the git directory `place` under a temporary name, and renames it
    /// when it is complete, because an existing part counts as complete.
    fn part(
        &self,
        held: CheckpointId,
        (place, below): (&Path, &Path),
        root: &Path,
        record: &Record,
    ) -> Result<()> {
        let beside = beside(held, &place.join("part"), NEW);
        remove_tree(&beside).map_err(Error::io("remove", &beside))?;
        self.files(&beside, below.as_os_str().as_bytes())?;
        self.objects(&beside, below).map_err(Error::io("link the objects into", &beside))?;
        let name = below.as_os_str().as_bytes();
        self.index(&beside, &place.join("objects"), root, record, name)?;
        let dir = Dir::open(&beside).map_err(Error::io("open", &beside))?;
        dir.sync_below().map_err(Error::io("sync", &beside))?;
        crate::crash::point("repository-part");
        let (from, to) = (beside.join(below), place.join(below));
        if let Some(above) = to.parent() {
            fs::create_dir_all(above).map_err(Error::io("make the directory", above))?;
        }
        fs::rename(&from, &to).map_err(Error::io("bring back", &to))?;
        remove_tree(&beside).map_err(Error::io("remove", &beside))
    }

    /// Writes the held files at `below` and under it, unless they exist.
    fn files(&self, to: &Path, below: &[u8]) -> Result<()> {
        let is_wanted = |path: &[u8]| {
            below.is_empty()
                || path == below
                || path.strip_prefix(below).is_some_and(|rest| rest.starts_with(b"/"))
        };
        let mut made = Vec::new();
        self.files.each(&mut |path, kind, id| {
            let place = to.join(OsStr::from_bytes(path));
            if !is_wanted(path) || path.is_empty() || place.symlink_metadata().is_ok() {
                return Ok(());
            }
            made.push(path.to_vec());
            self.put(&place, kind, id)
        })?;
        let odd = self.files.modes.map_or(Ok(Vec::new()), |id| {
            modes::parse_in_git_dir(&self.repo.read(&id, ObjectKind::Blob)?)
        })?;
        // The innermost first: a directory's permissions may forbid changes in it.
        for record in odd.iter().rev().filter(|record| record.kind != Kind::Link) {
            let path = record.path.as_bytes();
            if made.iter().any(|made| made == path) {
                let place = to.join(record.path.as_path());
                protect(&place, record.permissions)?;
            }
        }
        Ok(())
    }

    fn put(&self, place: &Path, kind: EntryKind, id: ObjectId) -> Result<()> {
        let failed = Error::io("make", place);
        if let Some(above) = place.parent() {
            fs::create_dir_all(above).map_err(Error::io("make the directory", above))?;
        }
        if kind == EntryKind::Tree {
            DirBuilder::new().create(place).map_err(failed)?;
            return protect(place, 0o755);
        }
        let bytes = self.repo.read_checked(&id, ObjectKind::Blob)?;
        if kind == EntryKind::Link {
            return symlink(OsString::from_vec(bytes), place).map_err(failed);
        }
        let opened = OpenOptions::new().write(true).create_new(true).open(place);
        opened.and_then(|mut file| file.write_all(&bytes)).map_err(failed)?;
        protect(place, 0o644)
    }

    /// Links the objects into every object directory at `below` or under it.
    fn objects(&self, to: &Path, below: &Path) -> io::Result<()> {
        let linked = self.private.linked();
        let dirs = borrow::linked_object_dirs(&linked);
        let is_small = borrow::is_little(&linked);
        for rest in dirs.iter().filter(|rest| rest.starts_with(below)) {
            link_tree(&linked.join(rest), &to.join(rest), is_small, 0)?;
        }
        Ok(())
    }

    /// Adds objects from alternates that no longer exist.
    fn lost_alternates(&self, to: &Path) -> io::Result<()> {
        let is_small = borrow::is_little(&self.private.linked());
        let alternates = self.private.linked().join("alternates");
        let now = alternates_of(&to.join("objects"));
        for name in names_of(&alternates).unwrap_or_default() {
            let held = alternates.join(&name);
            let there = now.iter().find(|(hash, _)| name == hash.as_str());
            if !there.is_some_and(|(_, path)| has_all_of(&held, path)) {
                link_tree(&held, &to.join("objects"), is_small, 0)?;
            }
        }
        Ok(())
    }

    /// Writes the index, and the objects that only the index needs to `objects`.
    fn index(
        &self,
        to: &Path,
        objects: &Path,
        root: &Path,
        record: &Record,
        below: &[u8],
    ) -> Result<()> {
        let Some((path, entries)) = self.staged(root, record)? else { return Ok(()) };
        if !path.starts_with(OsStr::from_bytes(below)) {
            return Ok(());
        }
        let place = to.join(path);
        let Some(dir) = place.parent().filter(|dir| dir.is_dir()) else { return Ok(()) };
        let bytes = restore_index::index_bytes(self.repo.hash, &entries)?;
        let _old = fs::remove_file(&place);
        crate::fs::replace_with(&place, &bytes, 0o644)?;
        let odb = open_odb(objects, dir, self.repo.hash)?;
        for entry in entries.iter().filter(|entry| entry.mode != 0o160_000) {
            if !odb.exists(&entry.id)
                && let Ok(bytes) = self.repo.read(&entry.id, ObjectKind::Blob)
            {
                write_loose(objects, entry.id, &bytes).map_err(Error::io("add to", objects))?;
            }
        }
        Ok(())
    }

    /// The index that the checkpoint stores as a tree, if it belongs to this repository, with its
    /// path in the git directory.
    fn staged(&self, root: &Path, record: &Record) -> Result<Option<(PathBuf, Vec<IndexEntry>)>> {
        let Some(tree) = &record.tree else { return Ok(None) };
        if record.store.as_deref() != Some(self.private.name()) {
            return Ok(None);
        }
        let (parts, _) = read_parts(self.repo, self.repo.object_id(tree))?;
        let Some(index) = parts.index else { return Ok(None) };
        let own = record.repositories.iter().find(|held| held.store == self.private.name());
        let pointer = own.and_then(|held| {
            held.pointers.iter().find(|(path, _)| path == b".git").map(|(_, text)| text)
        });
        let target = pointer.and_then(|text| text.strip_prefix(b"gitdir: "));
        let target = target.map(|target| root.join(OsStr::from_bytes(target.trim_ascii_end())));
        let is_linked =
            |target: &&PathBuf| target.parent().is_some_and(|above| above.ends_with("worktrees"));
        let path = match target.as_ref().filter(is_linked).and_then(|target| target.file_name()) {
            Some(name) => Path::new("worktrees").join(name).join("index"),
            None => PathBuf::from("index"),
        };
        Ok(Some((path, index::kept_entries(self.repo, index, parts.extra)?)))
    }
}

/// Creates the directories without which git does not recognize a repository. Leaves a path alone
/// where something else is held: other ref formats have a file there, and anything can be a
/// symlink.
fn frame(to: &Path) -> io::Result<()> {
    for (above, name) in [("objects", "info"), ("objects", "pack"), ("refs", "heads")] {
        let is_free = |path: &Path| path.symlink_metadata().is_err();
        if is_free(&to.join(above)) {
            fs::create_dir(to.join(above))?;
        }
        let is_directory = to.join(above).symlink_metadata()?.is_dir();
        if is_directory && is_free(&to.join(above).join(name)) {
            fs::create_dir(to.join(above).join(name))?;
        }
    }
    share_as(&to.join("objects"), 0)
}

/// Whether an object directory contains everything that another one does.
fn has_all_of(held: &Path, there: &Path) -> bool {
    names_of(held).unwrap_or_default().iter().all(|name| {
        let (held, there) = (held.join(name), there.join(name));
        if held.is_dir() { has_all_of(&held, &there) } else { there.is_file() }
    })
}

/// Files and directories that were made accessible, with their original permissions.
#[derive(Default)]
pub struct Opened(Vec<(PathBuf, fs::Permissions)>);

impl Opened {
    /// Makes an inaccessible git directory readable for its owner, before it is held and replaced.
    /// Files of other users stay as they are; reading them reports an error.
    pub fn open(&mut self, place: &Path) {
        let Ok(found) = fs::symlink_metadata(place) else { return };
        let wanted = if found.is_dir() { 0o700 } else { 0o400 };
        let mode = found.permissions().mode() & 0o7777;
        if found.is_symlink() {
            return;
        }
        let opened = fs::Permissions::from_mode(mode | wanted);
        if mode & wanted != wanted && fs::set_permissions(place, opened).is_ok() {
            self.0.push((place.to_owned(), found.permissions()));
        }
        if found.is_dir() {
            for name in names_of(place).unwrap_or_default() {
                self.open(&place.join(name));
            }
        }
    }

    /// Gives back the permissions, if there is no restore after all.
    pub fn close(self) {
        for (place, permissions) in self.0.into_iter().rev() {
            // Something that was removed needs no permissions.
            let _gone = fs::set_permissions(place, permissions);
        }
    }
}

/// Sets the permissions of a file or directory, whatever the umask.
fn protect(place: &Path, permissions: u32) -> Result<()> {
    let mode = fs::Permissions::from_mode(permissions);
    fs::set_permissions(place, mode).map_err(Error::io("protect", place))
}

/// Gives every directory of objects the permissions of the one at the top, and the files that are
/// ours alone those that git gives them: a repository is shared as a whole.
fn share_as(objects: &Path, depth: usize) -> io::Result<()> {
    let permissions = fs::symlink_metadata(objects)?.permissions();
    for name in names_of(objects)? {
        let below = objects.join(name);
        let found = fs::symlink_metadata(&below)?;
        if found.is_dir() && depth < 2 {
            fs::set_permissions(&below, permissions.clone())?;
            share_as(&below, depth + 1)?;
        } else if found.is_file() && found.permissions().mode() & 0o777 == 0o400 {
            let shared = fs::Permissions::from_mode(permissions.mode() & 0o444);
            fs::set_permissions(&below, shared)?;
        }
    }
    Ok(())
}

fn write_loose(objects: &Path, id: ObjectId, bytes: &[u8]) -> io::Result<()> {
    let hex = id.to_string();
    let dir = objects.join(&hex[..2]);
    fs::create_dir_all(&dir)?;
    let mut file =
        OpenOptions::new().write(true).create_new(true).mode(0o444).open(dir.join(&hex[2..]))?;
    file.write_all(&loose_bytes(ObjectKind::Blob, bytes))
}

/// Whether a borrowed file is a damaged loose object, or belongs to a damaged pack from which nothing can be
/// read. Git would complain about it forever, and the checkpoint may not even need it.
fn is_beyond_use(path: &Path) -> bool {
    let is_damaged = path.file_name() != path.file_name().map(damaged_packs::original_name);
    let is_loose = path.parent().is_some_and(|dir| !dir.ends_with("pack"));
    if is_loose {
        return is_damaged || matches!(intact::file_fits(path), Ok(false));
    }
    let pack =
        if is_damaged { path.with_extension("").with_extension("pack") } else { path.into() };
    let index = damaged_packs::marked_damaged(&pack.with_extension("idx"));
    let is_short = |path: &Path, least| fs::metadata(path).is_ok_and(|found| found.len() < least);
    let is_pack = pack.extension().is_some_and(|end| end == "pack");
    is_pack
        && index.exists()
        && (is_short(&index, INDEX_MIN_BYTES) || is_short(&pack, PACK_MIN_BYTES))
}

fn link_tree(from: &Path, to: &Path, copies: bool, depth: usize) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o755).create(to)?;
    for name in names_of(from)? {
        let (from, to) = (from.join(&name), to.join(damaged_packs::original_name(&name)));
        let found = fs::symlink_metadata(&from)?;
        if found.is_dir() && depth < DEPTH_MAX && name != "info" {
            link_tree(&from, &to, copies, depth + 1)?;
        } else if found.is_file()
            && !borrow::is_unfinished(name.as_bytes())
            && !is_beyond_use(&from)
        {
            if to.symlink_metadata().is_ok() {
                continue;
            }
            if copies || fs::hard_link(&from, &to).is_err() {
                borrow::copy_whole(&from, &to)?;
                fs::set_permissions(&to, fs::Permissions::from_mode(0o444))?;
            }
        }
    }
    Ok(())
}
