//! The refs of a private repository. Each checkpoint has one below `refs/checkpoints/` and a name
//! for its worktree; each worktree has an anchor. All of them point at trees.
//!
//! Ref files are read directly and with size limits, so the same code reads those of the user's
//! repositories. Only our own are written. The refs of a new checkpoint go into `packed-refs`, which is one file
//! whatever there is, and which is changed under a lock of its own; what cannot be written there is a file. Each
//! of those has one writer, which holds the root's lock or uses a name of its own. When the list is large, new refs
//! are files as well, and go into the list together.

mod checkpoints;
mod packed;

use std::{
    collections::{BTreeMap, BTreeSet, HashSet},
    io,
    path::{Path, PathBuf},
    sync::atomic::{AtomicU32, Ordering},
};

use gix::{ObjectId, bstr::ByteSlice};

pub(in crate::store) use self::checkpoints::RefPair;
use self::packed::{PackedList, is_large, lock_list, packed, packed_line};
pub(in crate::store) use self::packed::{has_garbage, packed_below};
use super::repo::Repo;
use crate::{
    error::{Error, Result},
    fs::{
        Dir, Listed, PendingFile, all_at_once, c_name, create_private_dirs, in_halves, is_absent,
        list_names, read_small, remove_if_there, sync_dir,
    },
    model::{CheckpointId, Kind},
};

/// The private part of each checkpoint. Whoever pushes the refs of checkpoints pushes nothing of these.
const PRIVATE: &str = "refs/private/";
/// The refs of checkpoints.
const CHECKPOINTS: &str = "refs/checkpoints/";
/// The trees that caches rely on.
const ANCHORS: &str = "refs/anchors/";
/// The anchor of the cache of the user's git directory.
pub(in crate::store) const ADMINISTRATION: &str = "refs/anchors/administration";
/// Two hashes and a word, with room for the longest symbolic ref.
const REF_MAX_BYTES: u64 = 8 << 10;
/// How many refs of checkpoints may be files beside a large list: those of 64 checkpoints.
const LOOSE_MAX: usize = 128;
/// With fewer ref files a second thread costs more than it saves.
const REFS_FOR_TWO: usize = 1000;

/// The refs of one worktree.
#[derive(Clone)]
pub(in crate::store) struct Refs {
    /// Its name in refs, such as `main`.
    worktree: String,
}

impl Refs {
    /// The refs of the main worktree.
    pub(in crate::store) fn of_main() -> Self {
        Self { worktree: "main".to_owned() }
    }

    /// The refs of the linked worktree at `worktree`, which has, or had, the git directory
    /// `git_dir`.
    pub(in crate::store) fn of_linked(git_dir: &Path, worktree: &Path) -> Self {
        let hash = crate::state::hash_name(&[worktree.as_os_str().as_encoded_bytes()]);
        let name = git_dir.file_name().unwrap_or_default().to_string_lossy();
        Self { worktree: format!("{}-{}", plain(&name), &hash[..8]) }
    }

    /// The full name of a checkpoint's ref.
    pub(in crate::store) fn name(&self, id: CheckpointId) -> String {
        format!("{CHECKPOINTS}{}/{id}", self.worktree)
    }

    /// The full name of the ref of a checkpoint's private part.
    pub(in crate::store) fn private_name(&self, id: CheckpointId) -> String {
        format!("{PRIVATE}{}/{id}", self.worktree)
    }

    /// The full names of both.
    fn names(&self, id: CheckpointId) -> [String; 2] {
        [self.name(id), self.private_name(id)]
    }

    /// The full name of the anchor.
    pub(in crate::store) fn anchor_name(&self) -> String {
        format!("{ANCHORS}{}", self.worktree)
    }

    /// The tree that the anchor points at.
    pub(in crate::store) fn anchor(&self, repo: &Repo) -> Result<Option<ObjectId>> {
        read(repo, &self.anchor_name())
    }

    /// Whether a checkpoint of this worktree has both its refs.
    pub(in crate::store) fn has(&self, repo: &Repo, id: CheckpointId) -> bool {
        self.names(id).iter().all(|name| matches!(read(repo, name), Ok(Some(_))))
    }

    /// The tree of a checkpoint's private part, wherever its ref is.
    pub(in crate::store) fn private(
        &self,
        repo: &Repo,
        id: CheckpointId,
    ) -> Result<Option<ObjectId>> {
        if let Some(found) = read(repo, &self.private_name(id))? {
            return Ok(Some(found));
        }
        match Self::elsewhere(repo, PRIVATE, id)? {
            Some(name) => read(repo, &name),
            None => Ok(None),
        }
    }

    /// The tree of a checkpoint, wherever its ref is: a worktree that was moved had another name.
    pub(in crate::store) fn checkpoint(
        &self,
        repo: &Repo,
        id: CheckpointId,
    ) -> Result<Option<ObjectId>> {
        if let Some(found) = read(repo, &self.name(id))? {
            return Ok(Some(found));
        }
        match Self::elsewhere(repo, CHECKPOINTS, id)? {
            Some(name) => read(repo, &name),
            None => Ok(None),
        }
    }

    /// The full name of a checkpoint's ref in any worktree; `None` if it has none.
    pub(in crate::store) fn find(&self, repo: &Repo, id: CheckpointId) -> Result<Option<String>> {
        let name = self.name(id);
        if read(repo, &name)?.is_some() {
            Ok(Some(name))
        } else {
            Self::elsewhere(repo, CHECKPOINTS, id)
        }
    }

    /// Looks for a checkpoint's ref under other worktrees.
    fn elsewhere(repo: &Repo, prefix: &str, id: CheckpointId) -> Result<Option<String>> {
        for worktree in list_names(&repo.common_dir.join(prefix))? {
            let name = format!("{prefix}{}/{id}", worktree.to_string_lossy());
            if repo.common_dir.join(&name).is_file() {
                return Ok(Some(name));
            }
        }
        let suffix = format!("/{id}");
        Ok(packed_below(repo, prefix)?.into_iter().find(|name| name.ends_with(&suffix)))
    }

    /// All checkpoints of this worktree that have a ref, or their private part.
    pub(in crate::store) fn list(&self, repo: &Repo) -> Result<BTreeSet<CheckpointId>> {
        let mut found = BTreeSet::new();
        let packed = packed(repo)?;
        for prefix in [CHECKPOINTS, PRIVATE] {
            let prefix = format!("{prefix}{}/", self.worktree);
            for name in list_names(&repo.common_dir.join(&prefix))? {
                found.extend(checkpoint_name(name.as_encoded_bytes()));
            }
            for (_, name) in packed.lines().filter_map(packed_line) {
                let name = name.strip_prefix(prefix.as_bytes());
                found.extend(name.and_then(checkpoint_name));
            }
        }
        Ok(found)
    }

    /// Creates the ref of a new checkpoint and points the anchors at what it tells. `names` are directories
    /// with new names that the checkpoint needs, and `record` is its record. All of that waits for the disk at
    /// the same time; only then does the checkpoint get its names, the record first.
    ///
    /// # Errors
    ///
    /// Fails if something cannot be written. The checkpoint does not exist then, but the caller removes what
    /// may have its name already.
    pub(in crate::store) fn create(
        &self,
        repo: &Repo,
        new: &NewRefs,
        (record, checkpoints): (PendingFile, &Path),
        names: &[PathBuf],
    ) -> Result<()> {
        let mut refs =
            vec![(self.name(new.id), new.tree), (self.private_name(new.id), new.private)];
        refs.extend(new.anchor.map(|anchor| (self.anchor_name(), anchor)));
        refs.extend(new.administration.map(|tree| (ADMINISTRATION.to_owned(), tree)));
        let loose = if is_large(repo) { self.loose(repo)? } else { Vec::new() };
        let is_listed = !is_large(repo) || loose.len() >= LOOSE_MAX;
        let moved = if is_listed { read_files(repo, &loose)? } else { Vec::new() };
        let entries = [&moved[..], &refs].concat();
        let list = if is_listed { PackedList::with(repo, &entries) } else { None };
        let written = match &list {
            Some(list) => vec![list.write(repo)?],
            None => {
                refs.iter().map(|(name, id)| pending_ref(repo, name, *id)).collect::<Result<_>>()?
            }
        };
        let waits = names.iter().map(|dir| Wait::Dir(dir)).chain([Wait::File(&record)]);
        let waits: Vec<Wait<'_>> = waits.chain(written.iter().map(Wait::File)).collect();
        all_at_once(&waits, Wait::sync)?;
        let mut dirs: BTreeSet<PathBuf> =
            written.iter().filter_map(|it| it.path().parent().map(Path::to_owned)).collect();
        dirs.insert(checkpoints.to_owned());
        record.publish()?;
        written.into_iter().rev().try_for_each(publish)?;
        all_at_once(&dirs.iter().collect::<Vec<_>>(), |dir| sync_dir(dir))?;
        // A file stands before what the list says. An anchor that comes back with a power cut is only not trusted.
        let Some(_list) = list else { return Ok(()) };
        refs.iter().try_for_each(|(name, _)| remove_file(repo, name))?;
        // A checkpoint may have been given another private part since its file was read.
        for (name, id) in &moved {
            if matches!(read_file(repo, name), Ok(Some(now)) if now == *id) {
                remove_file(repo, name)?;
            }
        }
        Ok(())
    }

    /// The full names of the refs of this worktree's checkpoints that are files.
    fn loose(&self, repo: &Repo) -> Result<Vec<String>> {
        let mut loose = Vec::new();
        for prefix in [CHECKPOINTS, PRIVATE] {
            let dir = format!("{prefix}{}", self.worktree);
            let names = list_names(&repo.common_dir.join(&dir))?;
            let ids = names.iter().filter_map(|name| checkpoint_name(name.as_encoded_bytes()));
            loose.extend(ids.map(|id| format!("{dir}/{id}")));
        }
        Ok(loose)
    }

    /// Points the anchor at another tree.
    pub(in crate::store) fn move_anchor(&self, repo: &Repo, new: ObjectId) -> Result<()> {
        if self.anchor(repo).ok().flatten() == Some(new) {
            return Ok(());
        }
        set(repo, &self.anchor_name(), new)
    }

    /// Deletes the refs of checkpoints that exist, and the anchor too if `all` checkpoints go.
    pub(in crate::store) fn remove(
        &self,
        repo: &Repo,
        ids: &[CheckpointId],
        all: bool,
    ) -> Result<()> {
        if all {
            // The anchor first, so that no cache trusts what is about to go.
            delete(repo, &[self.anchor_name()])?;
        }
        let ids: HashSet<CheckpointId> = ids.iter().copied().collect();
        let mut names = self::all(repo)?;
        names.retain(|name| {
            let id = name.rsplit('/').next().and_then(CheckpointId::parse);
            is_of_checkpoint(name) && id.is_some_and(|id| ids.contains(&id))
        });
        delete(repo, &names)
    }

    /// Refs that are malformed, or that point at a missing object.
    pub(in crate::store) fn dangling(&self, repo: &Repo) -> Result<Vec<String>> {
        let anchor = self.anchor_name();
        let mut dangling = Vec::new();
        for (name, tree) in read_all(repo)? {
            let id = name.rsplit('/').next().and_then(CheckpointId::parse);
            let is_ours = name == anchor || id.is_some_and(|id| self.names(id).contains(&name));
            if is_ours && tree.is_none_or(|tree| !repo.has(&tree)) {
                dangling.push(name);
            }
        }
        Ok(dangling)
    }
}

/// The full names of the refs of all checkpoints that may leave this machine.
///
/// # Errors
///
/// Fails if they cannot be read.
pub(in crate::store) fn public(repo: &Repo) -> Result<Vec<String>> {
    Ok(all(repo)?.into_iter().filter(|name| name.starts_with(CHECKPOINTS)).collect())
}

/// The name of the ref of the private part, from that of the checkpoint's ref.
pub(in crate::store) fn private_of(name: &str) -> String {
    name.replacen(CHECKPOINTS, PRIVATE, 1)
}

/// The checkpoint whose private part a ref of this name points at.
pub(in crate::store) fn id_of_private(name: &str) -> Option<CheckpointId> {
    let (_, id) = name.strip_prefix(PRIVATE)?.rsplit_once('/')?;
    checkpoint_name(id.as_bytes())
}

/// Whether a ref keeps a checkpoint.
pub(in crate::store) fn is_of_checkpoint(name: &str) -> bool {
    name.starts_with(CHECKPOINTS) || name.starts_with(PRIVATE)
}

/// What the refs of a new checkpoint point at.
pub(in crate::store) struct NewRefs {
    pub(in crate::store) id: CheckpointId,
    pub(in crate::store) tree: ObjectId,
    pub(in crate::store) private: ObjectId,
    /// The tree that the cache of the root relies on, if there will be one.
    pub(in crate::store) anchor: Option<ObjectId>,
    /// The same of the git directory.
    pub(in crate::store) administration: Option<ObjectId>,
}

/// What a new checkpoint waits for.
enum Wait<'a> {
    Dir(&'a Path),
    File(&'a PendingFile),
}

impl Wait<'_> {
    fn sync(&self) -> Result<()> {
        match self {
            Self::Dir(dir) => sync_dir(dir),
            Self::File(file) => file.sync(),
        }
    }
}

/// Makes temporary names within one process unique.
static COUNT: AtomicU32 = AtomicU32::new(0);

/// A ref in a file of its own, which is not renamed yet.
fn pending_ref(repo: &Repo, name: &str, id: ObjectId) -> Result<PendingFile> {
    let path = repo.common_dir.join(name);
    if let Some(dir) = path.parent() {
        create_private_dirs(dir)?;
    }
    // Git does not take a file of this name for a ref. Another process may write the same ref
    // at the same time.
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let mut lock = path.clone().into_os_string();
    lock.push(format!(".{}-{number}.lock", std::process::id()));
    PendingFile::write_as(lock.into(), &path, format!("{id}\n").as_bytes())
}

/// Gives a ref its name, or the list of them.
fn publish(new: PendingFile) -> Result<()> {
    let path = new.path().to_owned();
    if path.symlink_metadata().is_ok_and(|found| found.is_dir()) {
        // A directory of that name is not a ref of ours.
        crate::fs::remove_tree(&path).map_err(Error::io("remove", &path))?;
    }
    new.replace().map_err(Error::io("write", &path))
}

/// The same; on the disk when it returns.
fn publish_synced(new: PendingFile) -> Result<()> {
    new.sync()?;
    let dir = new.path().parent().map(Path::to_owned);
    publish(new)?;
    dir.map_or(Ok(()), |dir| sync_dir(&dir))
}

/// Points a ref of ours at a tree; on the disk when it returns.
pub(in crate::store) fn set(repo: &Repo, name: &str, id: ObjectId) -> Result<()> {
    // Otherwise a file could be removed that has just taken the place of one that went into the list.
    let _lock = lock_list(repo).ok();
    publish_synced(pending_ref(repo, name, id)?)
}

/// The targets of refs that are files; without those that are gone or malformed.
fn read_files(repo: &Repo, names: &[String]) -> Result<Vec<(String, ObjectId)>> {
    let mut read = Vec::new();
    for name in names {
        match read_file(repo, name) {
            Ok(id) => read.extend(id.map(|id| (name.clone(), id))),
            Err(Error::Damaged { .. }) => (),
            Err(err) => return Err(err),
        }
    }
    Ok(read)
}

/// Deletes refs of ours. A missing one is not an error.
pub(in crate::store) fn delete(repo: &Repo, names: &[String]) -> Result<()> {
    names.iter().try_for_each(|name| remove_file(repo, name))?;
    match PackedList::without(repo, names)? {
        Some(list) => publish_synced(list.write(repo)?),
        None => Ok(()),
    }
}

fn remove_file(repo: &Repo, name: &str) -> Result<()> {
    remove_if_there(&repo.common_dir.join(name)).map(drop)
}

/// Every ref of a repository, by full name.
pub(in crate::store) fn all(repo: &Repo) -> Result<Vec<String>> {
    let mut names: BTreeSet<String> = packed_below(repo, "refs/")?.into_iter().collect();
    names.extend(RefDir::all(repo)?.into_iter().flat_map(RefDir::refs));
    Ok(names.into_iter().collect())
}

/// Every ref and the object it points at, reading `packed-refs` once; `None` for a symbolic ref or
/// a malformed one.
pub(in crate::store) fn read_all(repo: &Repo) -> Result<BTreeMap<String, Option<ObjectId>>> {
    let packed = packed(repo)?;
    let packed: BTreeMap<&[u8], ObjectId> =
        packed.lines().filter_map(packed_line).map(|(id, name)| (name, id)).collect();
    let names = packed.keys().filter(|name| name.starts_with(b"refs/"));
    let names = names.filter_map(|name| str::from_utf8(name).ok());
    let mut refs: BTreeMap<String, Option<ObjectId>> =
        names.map(|name| (name.to_owned(), packed.get(name.as_bytes()).copied())).collect();
    let dirs = RefDir::all(repo)?;
    let top = &*repo.common_dir;
    let read = |dirs: &[RefDir]| {
        let mut found = Vec::new();
        dirs.iter().try_for_each(|dir| dir.read(top, &mut found))?;
        Ok::<_, Error>(found)
    };
    let count: usize = dirs.iter().map(|dir| dir.names.len()).sum();
    for (name, bytes) in in_halves(&dirs, count >= REFS_FOR_TWO, read)?.into_iter().flatten() {
        let value = bytes.map(|bytes| ObjectId::from_hex(bytes.trim_ascii_end()).ok());
        // Without a file any more, it is what the list says.
        let value = value.unwrap_or_else(|| refs.get(&name).copied().flatten());
        refs.insert(name, value);
    }
    Ok(refs)
}

/// What one directory of refs contains, but for directories.
struct RefDir {
    /// Its path below the repository.
    path: String,
    /// The names, and whether each is a regular file by the listing.
    names: Vec<(String, bool)>,
}

impl RefDir {
    /// Every directory of refs. Git has no ref with a name that is no UTF-8.
    fn all(repo: &Repo) -> Result<Vec<Self>> {
        let (mut found, mut open) = (Vec::new(), vec!["refs".to_owned()]);
        while let Some(path) = open.pop() {
            let place = repo.common_dir.join(&path);
            match Self::list(path, &place) {
                Ok((dir, below)) => {
                    open.extend(below.into_iter().map(|name| format!("{}/{name}", dir.path)));
                    found.push(dir);
                }
                // Something other than a directory is there; the records still name the trees.
                Err(err) if is_absent(&err) => (),
                Err(err) => return Err(Error::io("list", &place)(err)),
            }
        }
        Ok(found)
    }

    /// The directory `path`, which is at `place`, and the names of the directories in it.
    fn list(path: String, place: &Path) -> io::Result<(Self, Vec<String>)> {
        let (dir, mut listed) = (Dir::open(place)?, Vec::new());
        dir.list(|entry| listed.push(entry))?;
        let (mut names, mut below) = (Vec::new(), Vec::new());
        for Listed { name, kind } in listed {
            let kind = kind.or_else(|| dir.stat_child(&*name).ok()?.kind());
            let Ok(name) = name.into_string() else { continue };
            match kind {
                Some(Kind::Directory) => below.push(name),
                kind if !name.as_bytes().ends_with(b".lock") => {
                    names.push((name, kind == Some(Kind::File)));
                }
                _ => (),
            }
        }
        Ok((Self { path, names }, below))
    }

    fn refs(self) -> impl Iterator<Item = String> {
        let Self { path, names } = self;
        names.into_iter().map(move |(name, _)| format!("{path}/{name}"))
    }

    /// Adds what the file of each ref contains to `found`; `None` if there is no file.
    fn read(&self, top: &Path, found: &mut Vec<(String, Option<Vec<u8>>)>) -> Result<()> {
        let place = top.join(&self.path);
        let dir = match Dir::open(&place) {
            Err(err) if is_absent(&err) => None,
            dir => Some(dir.map_err(Error::io("open", &place))?),
        };
        for (name, is_file) in &self.names {
            let path = || place.join(name);
            let bytes = match &dir {
                Some(dir) if *is_file => {
                    let read =
                        c_name(name.as_bytes()).and_then(|it| dir.read_small(&it, REF_MAX_BYTES));
                    read.map_err(|err| Error::io("read", &path())(err))?
                }
                // A symlink, if anything.
                Some(_) if path().is_file() => read_small(&path(), REF_MAX_BYTES)?,
                Some(_) | None => None,
            };
            found.push((format!("{}/{name}", self.path), bytes));
        }
        Ok(())
    }
}

/// Deletes every anchor, so that no cache is trusted.
pub(in crate::store) fn drop_anchors(repo: &Repo) -> Result<()> {
    let names = all(repo)?;
    delete(repo, &names.into_iter().filter(|name| name.starts_with(ANCHORS)).collect::<Vec<_>>())
}

/// Whether a ref is symbolic.
pub(in crate::store) fn is_symbolic(repo: &Repo, name: &str) -> bool {
    let bytes = read_small(&repo.common_dir.join(name), REF_MAX_BYTES).ok().flatten();
    bytes.is_some_and(|bytes| bytes.starts_with(b"ref: "))
}

/// The name without characters that are not allowed in a ref.
fn plain(name: &str) -> String {
    let name: String = name
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || matches!(c, '-' | '_') { c } else { '-' })
        .take(64)
        .collect();
    if name.is_empty() { "worktree".to_owned() } else { name }
}

fn checkpoint_name(name: &[u8]) -> Option<CheckpointId> {
    str::from_utf8(name).ok().and_then(CheckpointId::parse)
}

/// Reads one ref, loose or packed, without following symbolic refs. `None` if it does not exist.
pub(in crate::store) fn read(repo: &Repo, name: &str) -> Result<Option<ObjectId>> {
    match read_file(repo, name)? {
        Some(id) => Ok(Some(id)),
        None => Ok(in_packed(&packed(repo)?, name)),
    }
}

/// The object that a ref with a file of its own points at.
fn read_file(repo: &Repo, name: &str) -> Result<Option<ObjectId>> {
    // A directory is not a ref, and a pipe must not block.
    let path = repo.common_dir.join(name);
    if !path.is_file() {
        return Ok(None);
    }
    let Some(bytes) = read_small(&path, REF_MAX_BYTES)? else { return Ok(None) };
    let id = ObjectId::from_hex(bytes.trim_ascii_end());
    id.map(Some).map_err(|_| Error::damaged(name, "not the name of an object"))
}

/// The object that a ref points at by the bytes of `packed-refs`.
fn in_packed(packed: &[u8], name: &str) -> Option<ObjectId> {
    let mut wanted = name.as_bytes().to_vec();
    wanted.push(b'\n');
    packed.find_iter(&wanted).find_map(|at| {
        let begin = packed[..at].rfind_byte(b'\n').map_or(0, |at| at + 1);
        let line = packed_line(packed[begin..].lines().next()?);
        line.filter(|(_, found)| *found == name.as_bytes()).map(|(id, _)| id)
    })
}

pub(in crate::store) fn full(name: &str) -> Result<gix::refs::FullName> {
    name.try_into().map_err(|_| Error::damaged(name, "not a name a ref can have"))
}

/// The path of a file of the worktree's own git directory.
pub(in crate::store) fn own(repo: &Repo, name: &str) -> PathBuf {
    repo.git_dir.join(name)
}

#[cfg(test)]
mod tests;
