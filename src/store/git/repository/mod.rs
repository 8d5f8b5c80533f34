//! One private repository of ours for each repository of the user's, outside of it: what protects
//! must not lie in what it protects.
//!
//! It is a bare git repository below the state directory. `objects` is ours: what the user's does
//! not have. `linked` has the user's own objects, by hard links or copies (see [`borrow`]), and is
//! read as an alternate. Refs point at trees. Nothing of ours is ever below the user's `.git`.

mod administration;
mod borrow;
mod check;
mod frame;
mod held;
mod history;
mod loose;
mod maintain;
mod origin;
mod rebuild;
mod unsound;

use std::{
    ffi::{OsStr, OsString},
    fs::{self, File},
    io,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use gix::{
    ObjectId,
    bstr::ByteSlice,
    hash::Kind as HashKind,
    objs::{Kind as ObjectKind, tree::EntryKind},
};

pub(in crate::store) use administration::Administration;
use borrow::Limits;
pub(in crate::store::git) use borrow::{alternates_of, open_up};
pub(in crate::store) use check::{Checked, Look};
pub use held::Held;
pub(in crate::store) use held::{
    HeldFile, PointerFile, are_same, held, parse_pointer, pointer_file,
};
pub(in crate::store::git) use loose::LooseObjects;
pub(super) use maintain::rows;
pub(in crate::store) use maintain::{Needed, Weights, sweep};
pub use maintain::{give_up_history, maintain};
pub use rebuild::{
    Ends, Losing, Lost, Opened, SetAside, Step, StepKind, carry_out, is_reftable, lost,
    remove_unfinished, steps,
};

use super::{
    objects::Writer,
    refs,
    repo::{Repo, content_id},
    tree::Builder,
};
use crate::{
    crash,
    error::{Error, Result},
    fs::{Lock, all_at_once, create_private_dirs, replace, replace_synced},
    model::{SkipReason, Skipped},
    root,
    state::{State, hash_name},
    store::objects::names_in,
};

/// How long a save waits for whoever frees objects: saving beside that could lose some.
const SWEEP_MAX: Duration = Duration::from_secs(5);
/// How often a repository is made again that somebody removes beside us.
const TRIES: usize = 50;
/// What ends the names of repositories whose objects are named by SHA-256.
const SHA256: &str = "-sha256";

/// What is in the HEAD of each: a branch that there never is.
const HEAD: &[u8] = b"ref: refs/heads/none\n";

/// A private repository.
#[derive(Clone)]
pub(in crate::store) struct Private {
    name: String,
    dir: PathBuf,
    hash: HashKind,
}

/// A repository of the user's that a checkpoint is to hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::store) struct Place {
    /// The git directory that all its worktrees share. Absolute.
    pub(in crate::store) common_dir: PathBuf,
    /// The files that lead there, absolute, and what they say.
    pub(in crate::store) pointers: Vec<(PathBuf, Vec<u8>)>,
}

/// What is behind things called `.git`.
#[derive(Default)]
pub(in crate::store) struct Places {
    /// Repositories, each once.
    pub(in crate::store) places: Vec<Place>,
    /// The files that lead to the known one, which is none of them: absolute, and what they say.
    pub(in crate::store) of_known: Vec<(PathBuf, Vec<u8>)>,
    /// The files that lead nowhere.
    pub(in crate::store) dangling: Vec<(PathBuf, Vec<u8>)>,
}

/// Looks behind things called `.git`.
pub(in crate::store) fn places(dot_gits: &[PathBuf], known: Option<&Path>) -> Places {
    let mut found = Places::default();
    for dot_git in dot_gits {
        let Some((common_dir, text)) = root::repository_at(dot_git) else {
            found.dangling.extend(root::dangling(dot_git).map(|text| (dot_git.clone(), text)));
            continue;
        };
        let pointer = text.map(|text| (dot_git.clone(), text));
        if known == Some(&common_dir) {
            found.of_known.extend(pointer);
            continue;
        }
        let known = found.places.iter().position(|place| place.common_dir == common_dir);
        let at = known.unwrap_or_else(|| {
            found.places.push(Place { common_dir, pointers: Vec::new() });
            found.places.len() - 1
        });
        found.places[at].pointers.extend(pointer);
    }
    found.places.sort_by(|a, b| a.common_dir.cmp(&b.common_dir));
    found
}

/// Files that lead to repositories, or nowhere, as a record has them.
pub(in crate::store) fn pointers_for(
    root: &Path,
    pointers: &[(PathBuf, Vec<u8>)],
) -> Vec<(Vec<u8>, Vec<u8>)> {
    pointers.iter().map(|(path, text)| (path_for(root, path), text.clone())).collect()
}

impl Private {
    /// The one called `name`.
    pub(in crate::store) fn named(state: &State, name: &str) -> Self {
        let hash = if name.ends_with(SHA256) { HashKind::Sha256 } else { HashKind::Sha1 };
        Self { name: name.to_owned(), dir: state.repositories().join(name), hash }
    }

    /// Every one there is.
    ///
    /// # Errors
    ///
    /// Fails if they cannot be listed.
    pub(in crate::store) fn all(state: &State) -> Result<Vec<Self>> {
        let names = names_in(&state.repositories())?;
        let is_name = |name: &&str| name.len() >= hash_name(&[]).len() && !name.contains('.');
        let names = names.iter().filter_map(|name| name.to_str()).filter(is_name);
        Ok(names.map(|name| Self::named(state, name)).collect())
    }

    /// What it is called among the others.
    pub(in crate::store) fn name(&self) -> &str {
        &self.name
    }

    /// Its directory.
    pub(in crate::store) fn dir(&self) -> &Path {
        &self.dir
    }

    /// Whether it has been made.
    pub(in crate::store) fn exists(&self) -> bool {
        self.dir.join("HEAD").is_file()
    }

    /// Access to its objects and refs.
    pub(in crate::store) fn repo(&self) -> Repo {
        Repo::private(&self.dir, self.hash, self.linked())
    }

    /// Where the user's objects have their names here.
    fn linked(&self) -> PathBuf {
        self.dir.join("linked")
    }

    /// Keeps objects from being freed, beside others who do.
    ///
    /// # Errors
    ///
    /// [`Error::Busy`] if somebody frees some until the deadline.
    pub(in crate::store) fn share(&self, deadline: Option<Instant>) -> Result<Lock> {
        let soonest = Instant::now() + SWEEP_MAX;
        Lock::share(&self.dir.join("lock"), deadline.map_or(soonest, |at| at.max(soonest)))
    }

    /// Keeps everybody else from saving.
    fn alone(&self, deadline: Instant) -> Result<Lock> {
        Lock::acquire(&self.dir.join("lock"), deadline)
    }

    /// Makes it, unless it is there, and keeps objects from being freed as [`Private::share`] does.
    ///
    /// # Errors
    ///
    /// Fails if it cannot be made, or if somebody frees objects until the deadline.
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
                // Whoever frees the last object of it removes it, the file of the lock included.
                Ok(shared) if self.exists() && shared.is_at(&path) => {
                    self.distrust_damaged_packs()?;
                    return Ok(shared);
                }
                Err(Error::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => (),
                Ok(_) => (),
                Err(err) => return Err(err),
            }
        }
        Err(Error::Busy { path })
    }

    /// Sees to it that no save relies on a borrowed pack that was damaged, nor on a cache that did.
    fn distrust_damaged_packs(&self) -> Result<()> {
        let unsound = unsound::unsound_indexes(&self.linked());
        if !unsound.is_empty() {
            refs::drop_anchors(&self.repo())?;
            unsound::set_aside(&unsound);
        }
        Ok(())
    }

    /// Makes it with nobody beside us: what one has made by half is nothing odd to the next.
    fn create_alone(&self, common_dir: Option<&Path>, deadline: Option<Instant>) -> Result<()> {
        if self.exists() {
            return Ok(());
        }
        create_private_dirs(&self.dir)?;
        let soonest = Instant::now() + SWEEP_MAX;
        let alone = self.alone(deadline.map_or(soonest, |at| at.max(soonest)))?;
        if alone.is_at(&self.dir.join("lock")) { self.create(common_dir) } else { Ok(()) }
    }

    /// Makes it, unless it is there.
    ///
    /// # Errors
    ///
    /// Fails if it cannot be made.
    fn create(&self, common_dir: Option<&Path>) -> Result<()> {
        if self.exists() {
            return Ok(());
        }
        if self.dir.is_dir() {
            // Something that is no file stands in its way.
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
        // What has no HEAD is no repository, and is made again: the rest is on the disk before.
        all_at_once(
            &["config", "objects/info/alternates", "objects/info", "origin.json"],
            |name| {
                let path = self.dir.join(name);
                match File::open(&path).and_then(|file| file.sync_all()) {
                    // Without a git directory it has no origin.
                    Err(err) if err.kind() != io::ErrorKind::NotFound => {
                        Err(Error::io("sync", &path)(err))
                    }
                    Ok(()) | Err(_) => Ok(()),
                }
            },
        )?;
        replace_synced(&self.dir.join("HEAD"), HEAD)
    }

    /// Looks at the administration of the user's repository and borrows its objects. What is new
    /// goes to `writer`, which writes here.
    ///
    /// # Errors
    ///
    /// Fails if this repository cannot be written.
    pub(in crate::store) fn hold(
        &self,
        repo: &Repo,
        theirs: &Theirs<'_>,
        writer: &Writer,
        left_out: &mut Vec<Skipped>,
    ) -> Result<Holding> {
        let Theirs { common_dir, own_index, name, deadline } = *theirs;
        self.follow(common_dir);
        // Refs first: what they name is linked afterwards.
        let looked = administration::look(repo, common_dir, own_index, writer, name, left_out)?;
        let limits = Limits { deadline, ..Limits::default() };
        let borrowed = self.borrow(common_dir, looked.is_unchanged, limits)?;
        Ok(Holding { looked, left_out: borrowed.left_out, new: borrowed.new })
    }

    fn borrow(
        &self,
        common_dir: &Path,
        is_quiet: bool,
        limits: Limits,
    ) -> Result<borrow::Borrowed> {
        let linked = self.linked();
        let had = names_of(&linked.join("alternates")).map_or(0, |names| names.len());
        let borrowed = borrow::borrow(common_dir, &linked, is_quiet, limits)?;
        if names_of(&linked.join("alternates")).map_or(0, |names| names.len()) != had {
            self.write_alternates()?;
        }
        Ok(borrowed)
    }

    /// Whether what is borrowed has changed, so that an odb opened before has to be opened again.
    pub(in crate::store) fn is_quiet(&self, common_dir: &Path) -> bool {
        let packs = common_dir.join("objects/pack");
        borrow::has_seen(&self.linked(), b"objects/pack", &packs)
    }
}

/// A repository of the user's that is to be held.
pub(in crate::store) struct Theirs<'a> {
    /// The git directory that all its worktrees share.
    pub(in crate::store) common_dir: &'a Path,
    /// The index that is kept elsewhere.
    pub(in crate::store) own_index: &'a Path,
    /// What it is called where something is left out.
    pub(in crate::store) name: &'a [u8],
    /// When borrowing has to end.
    pub(in crate::store) deadline: Option<Instant>,
}

/// What came of holding a repository.
pub(in crate::store) struct Holding {
    looked: administration::Looked,
    /// Why objects of the user's could be neither linked nor copied, and how many bytes.
    pub(in crate::store) left_out: Option<(SkipReason, u64)>,
    /// How many objects or packs were borrowed anew.
    pub(in crate::store) new: usize,
}

impl Holding {
    /// What it has of the git directory beside objects.
    pub(in crate::store) fn administration(&self) -> &Administration {
        &self.looked.administration
    }

    /// Lets the next look begin where this one ended, once everything is on the disk.
    pub(in crate::store) fn write_cache(&self, repo: &Repo) {
        self.looked.write_cache(repo);
    }
}

/// Holds repositories that are not the root's own: nested in it, or named by a call. Each in its
/// own private repository, under a ref that keeps it. The locks are to be kept until the record is
/// on the disk.
///
/// # Errors
///
/// Fails if a private repository cannot be written.
pub(in crate::store) fn hold_others(
    state: &State,
    root: &Path,
    places: &[Place],
    deadline: Option<Instant>,
    left_out: &mut Vec<Skipped>,
) -> Result<(Vec<Held>, Vec<Lock>)> {
    let (mut all, mut locks) = (Vec::new(), Vec::new());
    for place in places {
        let path = path_for(root, &place.common_dir);
        let hash = root::hash_kind_of(&place.common_dir);
        let private = Private::of(state, &place.common_dir, hash);
        locks.push(private.open_shared(Some(&place.common_dir), deadline)?);
        let repo = private.repo();
        let writer = Writer::new(&repo);
        // Each index is held as it is: it is nobody's own here.
        let nothing = Path::new(OsStr::from_bytes(administration::NO_INDEX));
        let (common_dir, own_index) = (&*place.common_dir, nothing);
        let theirs = Theirs { common_dir, own_index, name: &path, deadline };
        let holding = private.hold(&repo, &theirs, &writer, left_out)?;
        let administration = holding.administration().clone();
        let tree = add_tree(&repo, &writer, &administration)?;
        writer.finish()?;
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
    Ok((all, locks))
}

/// What says that a repository's history could not be held whole.
pub(in crate::store) fn history_left_out(path: &[u8], holding: &Holding) -> Option<Skipped> {
    let path = [path, b"/objects"].concat();
    holding.left_out.map(|(reason, size)| Skipped { path, reason, size })
}

/// How safely the history of a repository is held, in words for people; `None` if there is nothing to
/// say. The files and the index of a checkpoint do not depend on it.
pub fn history_words(state: &State, held: &Held, commit: Option<&str>) -> Option<String> {
    let private = Private::named(state, &held.store);
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

/// Makes the refs again that keep what is held of repositories by themselves, where what they led to
/// is there. Says what was done.
///
/// # Errors
///
/// Fails if one cannot be written.
pub(in crate::store) fn mend_refs(state: &State, held: &Held) -> Result<Option<String>> {
    let private = Private::named(state, &held.store);
    let repo = private.repo();
    let tree = repo.object_id(&held.tree);
    if check::is_kept(&repo, held) || !private.exists() || !repo.has(&tree) {
        return Ok(None);
    }
    let name = format!("refs/repository/{tree}");
    refs::set(&repo, &name, tree)?;
    Ok(Some(format!("made {name} again")))
}

/// What is held of a git directory beside objects, if nothing there has changed since the last look.
pub(in crate::store) fn unchanged(
    repo: &Repo,
    common_dir: &Path,
    own_index: &Path,
) -> Option<Administration> {
    administration::unchanged(repo, common_dir, own_index)
}

/// A path as a record has it: below the root, or absolute.
pub(in crate::store) fn path_for(root: &Path, path: &Path) -> Vec<u8> {
    path.strip_prefix(root).unwrap_or(path).as_os_str().as_encoded_bytes().to_vec()
}

/// The tree of what is held of a repository by itself.
fn add_tree(repo: &Repo, writer: &Writer, administration: &Administration) -> Result<ObjectId> {
    let mut tree = Builder::default();
    tree.add(b"repository", EntryKind::Tree, administration.tree);
    if let Some(modes) = administration.modes {
        tree.add(b"repository.modes", EntryKind::Blob, modes);
    }
    writer.add(ObjectKind::Tree, &tree.finish(), repo.odb()?)
}

fn names_of(dir: &Path) -> io::Result<Vec<OsString>> {
    let names: io::Result<Vec<OsString>> =
        fs::read_dir(dir)?.map(|entry| Ok(entry?.file_name())).collect();
    let mut names = names?;
    names.sort();
    Ok(names)
}

/// Whether `path`, below the git directory at `top`, is a directory of objects: git's own, or that of
/// an extension of git which keeps files that never change.
fn is_object_dir(top: &Path, path: &[u8]) -> bool {
    let (above, name) = match path.rfind_byte(b'/') {
        Some(at) => (&path[..at], &path[at + 1..]),
        None => (&b""[..], path),
    };
    let dir = top.join(OsStr::from_bytes(above));
    if name != b"objects" || is_below_refs(path) || !dir.join("objects").is_dir() {
        return false;
    }
    let is_there = |name: &str| dir.join(name).symlink_metadata().is_ok();
    // A repository that has lost its HEAD still has its objects.
    above.is_empty()
        || is_extension(path)
        || is_there("HEAD")
        || is_there("config")
        || dir.join("objects/pack").is_dir()
}

/// Whether a directory of objects is that of an extension of git: what is in it has any name.
fn is_extension(path: &[u8]) -> bool {
    [&b"lfs/objects"[..], b"annex/objects"].iter().any(|end| {
        path.strip_suffix(*end).is_some_and(|above| above.is_empty() || above.ends_with(b"/"))
    })
}

/// Whether a path below a git directory is that of a ref or a reflog, which may have any name.
fn is_below_refs(path: &[u8]) -> bool {
    path.split(|&byte| byte == b'/').any(|name| matches!(name, b"refs" | b"logs"))
}
