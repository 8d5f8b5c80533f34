//! Private repositories: one for each of the user's repositories, outside of it, so that what
//! destroys the user's repository cannot destroy its checkpoints.
//!
//! A private repository is a bare git repository in the state directory. `objects` has our own
//! objects. `linked` has the user's objects, as hard links or copies (see `borrow`), and is an
//! alternate. Refs point at trees. Nothing of ours is below the user's `.git`.

mod administration;
mod borrow;
mod check;
mod damaged_packs;
mod held;
mod history;
mod intact;
mod maintain;
mod origin;
mod rebuild;
mod skeleton;

use std::{
    collections::{HashMap, HashSet},
    ffi::OsStr,
    fs::File,
    io,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use gix::{
    ObjectId,
    hash::Kind as HashKind,
    objs::{Kind as ObjectKind, tree::EntryKind},
};

pub(in crate::store) use administration::{Administration, unchanged};
use borrow::{BorrowLimits, BorrowReport};
pub(in crate::store) use check::{CheckedObjects, RepositoryCheck};
pub(in crate::store) use held::held;
pub(super) use maintain::{PACKS_MAX, has_room, is_worth_rewriting, rows, which};
pub use maintain::{Swept, give_up_history, maintain, tidy};
pub(in crate::store) use maintain::{Weights, sweep};
pub use rebuild::{
    Ends, Losing, LostRef, LostRepository, Opened, RepositoryStep, SetAside, StepKind, Stood,
    beyond, carry_out, fork, fork_sites, heads, is_reftable, lost, others, remove_unfinished,
    steps,
};

use super::{
    object_stamps::CheckedStamps,
    plumbing::{
        borrowed::{alternates_of, borrowed_dirs, names_of, open_up},
        objects::ObjectWriter,
        refs,
        repo::{Repo, content_id},
        tree::{self, TreeBuilder},
    },
    record::{self, Held, Record, TreeSet},
};
use crate::{
    crash,
    error::{Error, Result},
    fs::{Lock, PendingFile, all_at_once, create_private_dirs, list_names, replace, sync_dir},
    model::{Skipped, split_path},
    root,
    state::{RootState, StateDir, hash_name},
};

/// How long a save waits for a sweep: saving beside one could lose objects.
const SWEEP_MAX: Duration = Duration::from_secs(5);
/// Object directories of git extensions are not nested deeper.
const DEPTH_MAX: usize = 100;
/// How often a save tries to create a repository that other processes keep removing.
const TRIES: usize = 50;
/// Suffix for repositories that use SHA-256.
const SHA256: &str = "-sha256";

/// The content of HEAD: a branch that never exists.
const HEAD: &[u8] = b"ref: refs/heads/none\n";

/// A private repository.
#[derive(Clone)]
pub(in crate::store) struct PrivateRepository {
    name: String,
    dir: PathBuf,
    hash: HashKind,
}

/// A repository of the user's to be held.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::store) struct RepositoryLocation {
    /// The git directory that all its worktrees share. Absolute.
    pub(in crate::store) common_dir: PathBuf,
    /// The `.git` files that point to it, absolute, with their text.
    pub(in crate::store) pointers: Vec<(PathBuf, Vec<u8>)>,
}

/// What a set of `.git` paths leads to.
#[derive(Default)]
struct GitPathTargets {
    /// The repositories, each once.
    places: Vec<RepositoryLocation>,
    /// The `.git` files of the known repository, which is not among `places`: absolute, with their
    /// text.
    of_known: Vec<(PathBuf, Vec<u8>)>,
    /// The `.git` files that point to no repository.
    dangling: Vec<(PathBuf, Vec<u8>)>,
}

/// Finds the repositories that `.git` paths lead to.
fn places(dot_gits: impl Iterator<Item = PathBuf>, known: Option<&Path>) -> GitPathTargets {
    let mut found = GitPathTargets::default();
    for dot_git in dot_gits {
        let Some((common_dir, text)) = root::repository_at(&dot_git) else {
            found.dangling.extend(root::pointer_text(&dot_git).map(|text| (dot_git, text)));
            continue;
        };
        let pointer = text.map(|text| (dot_git, text));
        if known == Some(&common_dir) {
            found.of_known.extend(pointer);
            continue;
        }
        let known = found.places.iter().position(|place| place.common_dir == common_dir);
        let at = known.unwrap_or_else(|| {
            found.places.push(RepositoryLocation { common_dir, pointers: Vec::new() });
            found.places.len() - 1
        });
        found.places[at].pointers.extend(pointer);
    }
    found.places.sort_by(|a, b| a.common_dir.cmp(&b.common_dir));
    found
}

/// Converts `.git` files to the form in records.
fn pointers_for(root: &Path, pointers: &[(PathBuf, Vec<u8>)]) -> Vec<(Vec<u8>, Vec<u8>)> {
    pointers.iter().map(|(path, text)| (path_for(root, path), text.clone())).collect()
}

impl PrivateRepository {
    /// The private repository called `name`.
    pub(in crate::store) fn named(state: &StateDir, name: &str) -> Self {
        let hash = if name.ends_with(SHA256) { HashKind::Sha256 } else { HashKind::Sha1 };
        Self { name: name.to_owned(), dir: state.repositories().join(name), hash }
    }

    /// All private repositories.
    ///
    /// # Errors
    ///
    /// Fails if they cannot be listed.
    pub(in crate::store) fn all(state: &StateDir) -> Result<Vec<Self>> {
        let names = list_names(&state.repositories())?;
        let is_name = |name: &&str| name.len() >= hash_name(&[]).len() && !name.contains('.');
        let names = names.iter().filter_map(|name| name.to_str()).filter(is_name);
        Ok(names.map(|name| Self::named(state, name)).collect())
    }

    /// Its name among the private repositories.
    pub(in crate::store) fn name(&self) -> &str {
        &self.name
    }

    /// Its directory.
    pub(in crate::store) fn dir(&self) -> &Path {
        &self.dir
    }

    /// Whether it exists.
    pub(in crate::store) fn exists(&self) -> bool {
        self.dir.join("HEAD").is_file()
    }

    /// Opens it.
    pub(in crate::store) fn repo(&self) -> Repo {
        Repo::private(&self.dir, self.hash, self.linked())
    }

    /// The directory of borrowed objects.
    pub(in crate::store) fn linked(&self) -> PathBuf {
        self.dir.join("linked")
    }

    /// Takes the lock shared, which prevents objects from being freed.
    ///
    /// # Errors
    ///
    /// [`Error::Busy`] if a sweep holds it until the deadline.
    pub(in crate::store) fn share(&self, deadline: Option<Instant>) -> Result<Lock> {
        let soonest = Instant::now() + SWEEP_MAX;
        Lock::share(&self.dir.join("lock"), deadline.map_or(soonest, |at| at.max(soonest)))
    }

    /// Takes the lock exclusively, which keeps saves out.
    fn lock_exclusive(&self, deadline: Instant) -> Result<Lock> {
        Lock::acquire(&self.dir.join("lock"), deadline)
    }

    /// The same; `None` if saves hold it until `deadline`.
    fn lock_if_free(&self, deadline: Instant) -> Result<Option<Lock>> {
        Lock::acquire_if_free(&self.dir.join("lock"), deadline)
    }

    /// Creates the repository if necessary, and takes the lock as [`PrivateRepository::share`] does.
    ///
    /// # Errors
    ///
    /// Fails if it cannot be created, or if a sweep holds the lock until the deadline.
    pub(in crate::store) fn open_shared(
        &self,
        common_dir: Option<&Path>,
        deadline: Option<Instant>,
    ) -> Result<Lock> {
        let path = self.dir.join("lock");
        for _ in 0..TRIES {
            let shared =
                self.create_alone(common_dir, deadline).and_then(|()| self.share(deadline));
            match shared {
                // A sweep that frees the last object removes the repository together with its lock
                // file.
                Ok(shared) if self.exists() && shared.is_at(&path) => {
                    self.distrust_damaged_packs()?;
                    return Ok(shared);
                }
                Err(Error::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => (),
                Ok(_) => (),
                Err(err) => return Err(err),
            }
        }
        Err(Error::Busy { path, holder: None })
    }

    /// Makes sure that no save, and no cache, relies on a damaged borrowed pack.
    fn distrust_damaged_packs(&self) -> Result<()> {
        let damaged = damaged_packs::damaged_indexes(&borrowed_dirs(&self.linked()));
        if !damaged.is_empty() {
            refs::drop_anchors(&self.repo())?;
            damaged_packs::set_aside(&damaged);
        }
        Ok(())
    }

    /// Makes sure that nothing relies on damaged files of ours, after something happened to the files `changed`, or
    /// if it is not known how they were. Verifies the end of each pack, and the whole of changed loose
    /// objects.
    ///
    /// # Errors
    ///
    /// Fails if the list of borrowed directories cannot be written.
    pub(in crate::store) fn set_damaged_aside(&self, changed: &[PathBuf]) -> Result<()> {
        damaged_packs::set_aside(&damaged_packs::damaged_indexes(&[self.dir.join("objects")]));
        damaged_packs::set_files_aside(changed, &self.linked());
        self.write_alternates()
    }

    /// Verifies every byte of a file in an object directory, and sets it aside if it is damaged; returns whether
    /// it is.
    pub(in crate::store) fn set_aside_if_damaged(&self, path: &Path) -> bool {
        let is_damaged = matches!(intact::file_fits(path), Ok(false));
        if is_damaged {
            damaged_packs::set_aside_file(path, &self.linked());
        }
        is_damaged
    }

    /// How many of the borrowed files with objects are damaged or set aside. Reads every byte of them.
    fn damaged_files(&self) -> usize {
        fn count_in(dir: &Path, depth: usize) -> usize {
            let mut count = 0;
            for name in names_of(dir).unwrap_or_default() {
                let path = dir.join(&name);
                if !path.is_symlink() && path.is_dir() && depth < DEPTH_MAX {
                    count += count_in(&path, depth + 1);
                } else if damaged_packs::original_name(&name) != name
                    || matches!(intact::file_fits(&path), Ok(false))
                {
                    count += 1;
                }
            }
            count
        }
        count_in(&self.linked(), 0)
    }

    /// The directories with the objects that a save relies on.
    pub(in crate::store) fn object_dirs(&self) -> Vec<PathBuf> {
        vec![self.dir.join("objects"), self.linked()]
    }

    /// Creates the repository under the exclusive lock, so that no other process sees it half done.
    fn create_alone(&self, common_dir: Option<&Path>, deadline: Option<Instant>) -> Result<()> {
        if self.exists() {
            return Ok(());
        }
        create_private_dirs(&self.dir)?;
        let soonest = Instant::now() + SWEEP_MAX;
        let lock = self.lock_exclusive(deadline.map_or(soonest, |at| at.max(soonest)))?;
        if lock.is_at(&self.dir.join("lock")) { self.create(common_dir) } else { Ok(()) }
    }

    /// Creates the repository, unless it exists.
    ///
    /// # Errors
    ///
    /// Fails if it cannot be created.
    fn create(&self, common_dir: Option<&Path>) -> Result<()> {
        if self.exists() {
            return Ok(());
        }
        if self.dir.is_dir() {
            // Something in it is not what it should be.
            self.remove_odd()?;
            crash::point("make-repository");
        }
        for name in ["objects/pack", "objects/info", "refs", "linked/objects"] {
            create_private_dirs(&self.dir.join(name))?;
        }
        replace(&self.dir.join("config"), self.config().as_bytes())?;
        self.write_alternates()?;
        if let Some(common_dir) = common_dir {
            self.describe(common_dir)?;
        }
        // HEAD gets its name last, after everything else is on the disk: without it the repository
        // is created again.
        let head = PendingFile::write(&self.dir.join("HEAD"), HEAD)?;
        all_at_once(
            &["config", "objects/info/alternates", "objects/info", "origin.json", "HEAD"],
            |name| {
                if *name == "HEAD" {
                    return head.sync();
                }
                let path = self.dir.join(name);
                match File::open(&path).and_then(|file| file.sync_all()) {
                    // A root without a git directory has no origin.
                    Err(err) if err.kind() != io::ErrorKind::NotFound => {
                        Err(Error::io("sync", &path)(err))
                    }
                    Ok(()) | Err(_) => Ok(()),
                }
            },
        )?;
        head.publish()?;
        sync_dir(&self.dir)
    }

    /// Holds the user's repository: reads its git directory and borrows its objects. New objects go
    /// to `writer`.
    ///
    /// # Errors
    ///
    /// Fails if this repository cannot be written.
    pub(in crate::store) fn hold(
        &self,
        repo: &Repo,
        theirs: &Theirs<'_>,
        writer: &ObjectWriter,
        left_out: &mut Vec<Skipped>,
    ) -> Result<HeldRepository> {
        let Theirs { common_dir, own_index, name, deadline, trusts_cache } = *theirs;
        self.follow(common_dir);
        // Refs first: the objects they name are borrowed afterwards.
        let looked = administration::look(
            repo, common_dir, own_index, writer, name, left_out, trusts_cache,
        )?;
        let limits = BorrowLimits { deadline, ..BorrowLimits::default() };
        let borrowed = self.borrow(common_dir, looked.is_unchanged, limits)?;
        Ok(HeldRepository { looked, borrowed })
    }

    fn borrow(
        &self,
        common_dir: &Path,
        is_quiet: bool,
        limits: BorrowLimits,
    ) -> Result<BorrowReport> {
        let linked = self.linked();
        let had = names_of(&linked.join("alternates")).map_or(0, |names| names.len());
        let borrowed = borrow::borrow(common_dir, &linked, is_quiet, limits)?;
        if names_of(&linked.join("alternates")).map_or(0, |names| names.len()) != had {
            self.write_alternates()?;
        }
        Ok(borrowed)
    }

    /// Whether the packs are unchanged since they were borrowed, so that an open object database is
    /// still good.
    pub(in crate::store) fn is_quiet(&self, common_dir: &Path) -> bool {
        let packs = common_dir.join("objects/pack");
        borrow::has_seen(&self.linked(), b"objects/pack", &packs)
    }
}

/// The user's repository, as input for [`PrivateRepository::hold`].
pub(in crate::store) struct Theirs<'a> {
    /// The git directory that all its worktrees share.
    pub(in crate::store) common_dir: &'a Path,
    /// The index that the checkpoint stores as a tree, not as a file.
    pub(in crate::store) own_index: &'a Path,
    /// Its name in reports of what was left out.
    pub(in crate::store) name: &'a [u8],
    /// When borrowing has to stop.
    pub(in crate::store) deadline: Option<Instant>,
    /// Whether every object that a cache relies on is known to be stored.
    pub(in crate::store) trusts_cache: bool,
}

/// A repository that is held.
pub(in crate::store) struct HeldRepository {
    looked: administration::Looked,
    /// What came of borrowing its objects.
    pub(in crate::store) borrowed: BorrowReport,
}

impl HeldRepository {
    /// What is held of the git directory besides objects.
    pub(in crate::store) fn administration(&self) -> &Administration {
        &self.looked.administration
    }

    /// Writes the cache for the next save. Call it once everything is on the disk.
    pub(in crate::store) fn write_cache(&self, repo: &Repo) {
        self.looked.write_cache(repo);
    }
}

/// Repositories held for a checkpoint, other than the root's own.
pub(in crate::store) struct Others {
    /// As in [`record::Record::repositories`].
    pub(in crate::store) held: Vec<Held>,
    /// As in [`record::Record::dangling`].
    pub(in crate::store) dangling: Vec<(Vec<u8>, Vec<u8>)>,
    /// The `.git` files of the known repository: absolute, with their text.
    pub(in crate::store) of_known: Vec<(PathBuf, Vec<u8>)>,
    /// Keep what is held. Hold them until the record is on the disk.
    pub(in crate::store) locks: Vec<Lock>,
}

/// Holds repositories other than the root's own, which is `known`: those that the paths `dot_gits`
/// lead to, nested or named by a call. Each goes to its own private repository, with a ref that
/// keeps it. If the root's own is unusable now, it is held like any other.
///
/// # Errors
///
/// Fails if a private repository cannot be written.
pub(in crate::store) fn hold_others(
    state: &StateDir,
    root: &Path,
    dot_gits: &[PathBuf],
    known: Option<&Path>,
    deadline: Option<Instant>,
    left_out: &mut Vec<Skipped>,
    stamps: &CheckedStamps,
) -> Result<Others> {
    let found = places(dot_gits.iter().cloned().chain([root.join(".git")]), known);
    let (mut all, mut locks) = (Vec::new(), Vec::new());
    for place in &found.places {
        let path = path_for(root, &place.common_dir);
        let hash = root::hash_kind_of(&place.common_dir);
        let private = PrivateRepository::of(state, &place.common_dir, hash);
        locks.push(private.open_shared(Some(&place.common_dir), deadline)?);
        let trusts_cache = stamps.stand();
        if !trusts_cache {
            private.set_damaged_aside(&stamps.changed)?;
        }
        let repo = private.repo();
        let writer = ObjectWriter::new(&repo);
        // Each index is held as it is: no index here has an owner.
        let nothing = Path::new(OsStr::from_bytes(administration::NO_INDEX));
        let (common_dir, own_index) = (&*place.common_dir, nothing);
        let theirs = Theirs { common_dir, own_index, name: &path, deadline, trusts_cache };
        let mut holding = private.hold(&repo, &theirs, &writer, left_out)?;
        let administration = holding.administration().clone();
        let tree = add_tree(&repo, &writer, &administration)?;
        writer.finish()?;
        holding.borrowed.settle()?;
        let name = format!("refs/repository/{tree}");
        if refs::read(&repo, &name).ok().flatten() != Some(tree) {
            refs::set(&repo, &name, tree)?;
        }
        holding.write_cache(&repo);
        left_out.extend(history_left_out(&path, &holding));
        let worktree = place.common_dir.parent().unwrap_or(root);
        let is_usable = matches!(root::git_dirs(worktree), Ok(Some(_)));
        all.push(held(root, place, &private, content_id(&tree), &administration, is_usable));
    }
    let dangling = pointers_for(root, &found.dangling);
    Ok(Others { held: all, dangling, of_known: found.of_known, locks })
}

/// Reports history that could not be held.
pub(in crate::store) fn history_left_out(path: &[u8], holding: &HeldRepository) -> Option<Skipped> {
    let path = [path, b"/objects"].concat();
    holding.borrowed.left_out.map(|(reason, size)| Skipped { path, reason, size })
}

/// A note on how safely the history of a repository is held; `None` if there is nothing to say.
/// Files and index of a checkpoint do not depend on it.
pub fn history_words(state: &StateDir, held: &Held, commit: Option<&str>) -> Option<String> {
    let private = PrivateRepository::named(state, &held.store);
    let id = commit.and_then(|commit| ObjectId::from_hex(commit.as_bytes()).ok());
    if id.is_some_and(|id| private.repo().read(&id, ObjectKind::Commit).is_err()) {
        return Some("its history is not held any more".to_owned());
    }
    match borrow::shared_bytes(&private.linked()) {
        0 => None,
        bytes => Some(format!(
            "{} of history by links to the repository's own files, which a program that overwrites \
             them in place destroys here too",
            crate::ui::size(bytes)
        )),
    }
}

/// Creates missing refs that keep held repositories, if their trees exist: of every repository that the
/// root's records name, except the root's own, which the refs of its checkpoints keep. Returns what was
/// done.
///
/// # Errors
///
/// Fails if records cannot be listed, or a ref cannot be written.
pub(in crate::store) fn repair_repository_refs(state: &RootState) -> Result<Vec<String>> {
    let mut done = Vec::new();
    let mut opened = HashMap::new();
    for entry in record::read_all(state)? {
        let Ok(record) = &entry.record else { continue };
        for held in record.repositories.iter().filter(|held| record.private != Some(held.tree)) {
            let (exists, repo, kept) = opened.entry(held.store.clone()).or_insert_with(|| {
                let private = PrivateRepository::named(state.state(), &held.store);
                let repo = private.repo();
                let kept = check::kept(&repo);
                (private.exists(), repo, kept)
            });
            let tree = repo.object_id(&held.tree);
            if *exists && repo.has(&tree) && kept.insert(tree) {
                let name = format!("refs/repository/{tree}");
                refs::set(repo, &name, tree)?;
                done.push(format!("made {name} again"));
            }
        }
    }
    Ok(done)
}

/// The trees in private repositories that checkpoints need: by their records and, where a record is lost, by the
/// copy of it.
///
/// # Errors
///
/// Fails if a record cannot be read, or if the refs of a private repository cannot.
pub(in crate::store) fn needed_trees(state: &StateDir) -> Result<TreeSet> {
    let mut trees = record::trees(state)?;
    let mut recorded = HashSet::new();
    for root in record::all_roots(state)? {
        recorded.extend(record::ids(&root)?);
    }
    for private in PrivateRepository::all(state)? {
        let repo = private.repo();
        for (name, part) in refs::read_all(&repo)? {
            let is_lost = refs::id_of_private(&name).is_some_and(|id| !recorded.contains(&id));
            let Some(part) = part.filter(|_| is_lost) else { continue };
            if let Ok(copy) = private_record(&repo, part) {
                trees.extend(copy.needs().trees);
            }
        }
    }
    Ok(trees)
}

/// The record in the private part of a checkpoint.
///
/// # Errors
///
/// [`Error::FormatTooNew`] or [`Error::Damaged`].
pub(in crate::store) fn private_record(repo: &Repo, part: ObjectId) -> Result<Record> {
    let part = tree::private_part(repo, part)?;
    Record::from_json("record", &repo.read_checked(&part.record, ObjectKind::Blob)?)
}

/// The name of a private repository for a git directory that may be gone; `None` if there is none.
pub(in crate::store) fn name_at(state: &StateDir, common_dir: &Path) -> Option<String> {
    PrivateRepository::at_path(state, common_dir, None).pop().map(|private| private.name)
}

/// A path in the form of records: relative to the root, or absolute.
pub(in crate::store) fn path_for(root: &Path, path: &Path) -> Vec<u8> {
    path.strip_prefix(root).unwrap_or(path).as_os_str().as_encoded_bytes().to_vec()
}

/// Writes the tree that holds a repository other than the root's own.
fn add_tree(
    repo: &Repo,
    writer: &ObjectWriter,
    administration: &Administration,
) -> Result<ObjectId> {
    let mut tree = TreeBuilder::default();
    tree.add(b"repository", EntryKind::Tree, administration.tree);
    if let Some(modes) = administration.modes {
        tree.add(b"repository.modes", EntryKind::Blob, modes);
    }
    writer.add(ObjectKind::Tree, &tree.finish(), repo.odb()?)
}

/// Whether `path`, below the git directory `top`, is an object directory: git's own, or one of a
/// git extension that never changes its files.
fn is_object_dir(top: &Path, path: &[u8]) -> bool {
    let (above, name) = split_path(path);
    let dir = top.join(OsStr::from_bytes(above));
    if name != b"objects" || is_below_refs(path) || !dir.join("objects").is_dir() {
        return false;
    }
    let is_there = |name: &str| dir.join(name).symlink_metadata().is_ok();
    // A repository without HEAD can still have its objects.
    above.is_empty()
        || is_extension(path)
        || is_there("HEAD")
        || is_there("config")
        || dir.join("objects/pack").is_dir()
}

/// Whether an object directory belongs to a git extension. Its files have arbitrary names.
fn is_extension(path: &[u8]) -> bool {
    [&b"lfs/objects"[..], b"annex/objects"].iter().any(|end| {
        path.strip_suffix(*end).is_some_and(|above| above.is_empty() || above.ends_with(b"/"))
    })
}

/// Whether a path below a git directory is that of a ref or reflog, which can have any name.
fn is_below_refs(path: &[u8]) -> bool {
    path.split(|&byte| byte == b'/').any(|name| matches!(name, b"refs" | b"logs"))
}
