//! Plans how to restore the repositories of a checkpoint.

use std::{
    cell::LazyCell,
    collections::{BTreeMap, BTreeSet, HashSet},
    ffi::{OsStr, OsString},
    fs,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use gix::{
    ObjectId,
    objs::{Kind as ObjectKind, tree::EntryKind},
};

use super::{
    Held, HeldFiles, PrivateRepository, head,
    held_paths::{is_of_the_user, led_to, part_at, place_of, places_inside, short},
    lost::{Losing, losing},
    names_of, read_small, refs, root, tree,
};
use crate::{
    model::Reason,
    state::StateDir,
    store::{
        plumbing::repo::Repo,
        record::{
            self, Record,
            identity::{Identity, Likeness},
        },
    },
};

/// Enough for a symbolic ref and its target.
const HEAD_MAX_BYTES: u64 = 64 << 10;

/// The directory of refs in reftable format; also the name under which its list of tables is held.
const REFTABLE: &str = "reftable";
const TABLES: &str = "reftable/tables.list";
/// Enough for a thousand tables.
const TABLES_MAX_BYTES: u64 = 1 << 20;

/// The reflog of HEAD.
const HEAD_LOG: &str = "logs/HEAD";
/// Enough for some 300,000 commits.
const LOG_MAX_BYTES: u64 = 64 << 20;

/// One change to one repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RepositoryStep {
    /// The git directory, or a `.git` file that points to one. Absolute.
    pub place: PathBuf,
    /// What to do.
    pub kind: StepKind,
    /// Whether it is the root's own repository, or lies below the root.
    pub is_inside: bool,
    /// What is held of the repository. A `.git` file that points nowhere has none.
    pub(in crate::store::repository) held: Option<Held>,
}

impl RepositoryStep {
    /// Whether the step removes something.
    pub fn is_removal(&self) -> bool {
        matches!(self.kind, StepKind::Remove(_))
    }

    /// Whether it makes or removes all of the repository at `git_dir`, not a part of it.
    pub fn is_all_of(&self, git_dir: &Path) -> bool {
        let is_part = matches!(self.kind, StepKind::Part(_) | StepKind::Pointer(_));
        !is_part && self.place == git_dir
    }

    /// Where the step makes or removes something, absolute.
    pub fn target(&self) -> PathBuf {
        match &self.kind {
            StepKind::Part(below) => self.place.join(below),
            StepKind::Recreate
            | StepKind::Replace(_)
            | StepKind::Pointer(_)
            | StepKind::Remove(_) => self.place.clone(),
        }
    }

    /// What is lost when the present repository is removed, or replaced by the one in `record`.
    pub fn losing(&self, state: &StateDir, root: &Path, record: &Record) -> Option<Losing> {
        match self.kind {
            StepKind::Replace(_) | StepKind::Remove(_) => {
                // A file that only leads to a repository loses nothing of it.
                let held = self.held.as_ref().filter(|held| place_of(root, held) == self.place)?;
                losing(state, root, record, held)
            }
            StepKind::Recreate | StepKind::Part(_) | StepKind::Pointer(_) => None,
        }
    }

    /// Whether what the step replaces or removes is a repository that works and that was changed after
    /// a restore to `of` left it: others have gone on with it.
    pub fn is_of_others(&self, state: &StateDir, root: &Path, of: &Record) -> bool {
        let is_replaced = matches!(self.kind, StepKind::Replace(_) | StepKind::Remove(_));
        let worktree = self.place.parent().unwrap_or(&self.place);
        let works = || self.place.is_dir() && matches!(root::git_dirs(worktree), Ok(Some(_)));
        let left = || of.repositories.iter().find(|held| place_of(root, held) == self.place);
        let is_changed = || left().is_none_or(|left| losing(state, root, of, left).is_some());
        is_replaced && works() && is_changed()
    }

    /// The `.git` files that pointed to the repository, absolute.
    pub fn pointers(&self, root: &Path) -> impl Iterator<Item = PathBuf> {
        let pointers = self.held.iter().flat_map(|held| &held.pointers);
        pointers.map(|(path, _)| root.join(OsStr::from_bytes(path)))
    }
}

/// What to do with a repository, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StepKind {
    /// It is missing: create it.
    Recreate,
    /// It is damaged, or a different repository: replace it. The reason is a message fragment.
    Replace(String),
    /// A linked worktree's or submodule's part is missing: create it. The path is relative to the
    /// git directory.
    Part(PathBuf),
    /// The `.git` file that points to it is missing: write this text.
    Pointer(Vec<u8>),
    /// It must go; the reason is a message fragment.
    Remove(&'static str),
}

/// The reason for a repository that an undone restore had created.
const MADE_BY_RESTORE: &str = "the restore made it";
/// The reason for something at the path of a `.git` file.
const IN_THE_WAY: &str = "the file that led to the repository was there";

/// Plans the steps that restore the repositories in `record`. Unless `all` is set, a repository
/// that exists and is the same is left alone.
pub fn steps(state: &StateDir, root: &Path, record: &Record, all: bool) -> Vec<RepositoryStep> {
    let mut steps = Vec::new();
    // An undone restore may have put a different repository there, which holds everything.
    let is_exact = record.checkpoint.cause.reason == Reason::BeforeRestore;
    if is_exact {
        steps.extend(made_by_restore(state, root, record));
    }
    let removed: Vec<PathBuf> =
        steps.iter().map(|step: &RepositoryStep| step.place.clone()).collect();
    for held in &record.repositories {
        let place = place_of(root, held);
        let is_own = record.store.as_deref() == Some(&held.store);
        let is_inside = is_own || place.starts_with(root);
        let mut add = |place: PathBuf, kind: StepKind| {
            steps.push(RepositoryStep { place, kind, is_inside, held: Some(held.clone()) });
        };
        let kind = kind_of(state, &place, held, all, is_exact);
        let is_whole = kind.is_none();
        if let Some(kind) = kind {
            add(place.clone(), kind);
        }
        let mut parts = if is_whole { lost_worktrees(state, &place, held) } else { Vec::new() };
        for (path, text) in &held.pointers {
            let pointer = root.join(OsStr::from_bytes(path));
            let target = led_to(&pointer, text);
            if is_whole
                && !target.exists()
                && let Some(below) = part_at(&place, &target)
                && !parts.contains(&below)
            {
                parts.push(below);
            }
            let is_there = pointer.symlink_metadata().is_ok() && !removed.contains(&pointer);
            if is_there && leads_elsewhere(&pointer, text, &place) {
                add(pointer.clone(), StepKind::Remove(IN_THE_WAY));
                add(pointer, StepKind::Pointer(text.clone()));
            } else if !is_there {
                add(pointer, StepKind::Pointer(text.clone()));
            }
        }
        // A part brings those in it.
        let is_in = |below: &&PathBuf| parts.iter().any(|it| it != *below && below.starts_with(it));
        for below in parts.iter().filter(|below| !is_in(below)) {
            add(place.clone(), StepKind::Part(below.clone()));
        }
    }
    steps.extend(dangling(root, record, is_exact, &removed));
    steps
}

/// Plans the steps for `.git` files that pointed nowhere. A repository that is there now stays,
/// unless a restore put it there.
fn dangling(
    root: &Path,
    record: &Record,
    is_exact: bool,
    removed: &[PathBuf],
) -> Vec<RepositoryStep> {
    let mut steps = Vec::new();
    for (path, text) in &record.dangling {
        let place = root.join(OsStr::from_bytes(path));
        let is_there = place.symlink_metadata().is_ok() && !removed.contains(&place);
        let is_other = is_there && root::pointer_text(&place).as_ref() != Some(text);
        let mut add = |kind: StepKind| {
            let (place, is_inside) = (place.clone(), place.starts_with(root));
            steps.push(RepositoryStep { place, kind, is_inside, held: None });
        };
        let gives_way = is_other && (is_exact || root::repository_at(&place).is_none());
        if gives_way {
            add(StepKind::Remove(IN_THE_WAY));
        }
        if gives_way || !is_there {
            add(StepKind::Pointer(text.clone()));
        }
    }
    steps
}

/// The parts of linked worktrees that still exist and have lost their part of the git directory.
fn lost_worktrees(state: &StateDir, place: &Path, held: &Held) -> Vec<PathBuf> {
    let repo = PrivateRepository::named(state, &held.store).repo();
    let mut lost = Vec::new();
    let _as_far_as_it_can_be_read = HeldFiles::open(&repo, held).and_then(|tree| {
        tree.each(&mut |path, kind, id| {
            let path = Path::new(OsStr::from_bytes(path));
            let (Some(name), Some(part)) = (path.file_name(), path.parent()) else { return Ok(()) };
            // A submodule's repository has worktrees of its own.
            let is_worktree = part.parent().is_some_and(|above| above.ends_with("worktrees"));
            if is_worktree && name == "gitdir" && kind != EntryKind::Tree {
                let there = place.join(part);
                let pointer = repo.read(&id, ObjectKind::Blob)?;
                let pointer = there.join(OsStr::from_bytes(pointer.trim_ascii_end()));
                if !there.exists() && target_of(&pointer) == Some(there) {
                    lost.push(part.to_owned());
                }
            }
            Ok(())
        })
    });
    lost
}

/// Whether something else is at the path of a `.git` file now: a repository of its own, or a file
/// that points elsewhere or nowhere.
fn leads_elsewhere(pointer: &Path, text: &[u8], place: &Path) -> bool {
    root::pointer_text(pointer).as_deref() != Some(text)
        && root::repository_at(pointer).is_none_or(|(common_dir, _)| common_dir != place)
}

/// Where a `.git` file points now.
fn target_of(pointer: &Path) -> Option<PathBuf> {
    Some(led_to(pointer, &read_small(pointer, HEAD_MAX_BYTES).ok()??))
}

/// Repositories and `.git` files that exist now, did not exist at `record`, and are in the
/// checkpoint of the restore before which `record` was taken.
fn made_by_restore(state: &StateDir, root: &Path, record: &Record) -> Vec<RepositoryStep> {
    let of = record.checkpoint.cause.of.and_then(|of| record::read(&state.root_at(root), of).ok());
    let Some(of) = of else { return Vec::new() };
    let was_there = |held: &Held| record.repositories.iter().any(|then| then.path == held.path);
    let made = of.repositories.iter().filter(|held| !was_there(held));
    let made = made.map(|held| (place_of(root, held), Some(held)));
    let had_pointer = |path: &[u8]| record.pointers().any(|(then, _)| then == path);
    let led = of
        .repositories
        .iter()
        .flat_map(|held| held.pointers.iter().map(move |(path, _)| (path, Some(held))));
    let all = led.chain(of.dangling.iter().map(|(path, _)| (path, None)));
    let pointers = all.filter(|(path, _)| !had_pointer(path));
    let pointers = pointers.map(|(path, held)| (root.join(OsStr::from_bytes(path)), held));
    made.chain(pointers)
        .filter(|(place, _)| place.starts_with(root) && place.symlink_metadata().is_ok())
        .map(|(place, held)| RepositoryStep {
            place,
            kind: StepKind::Remove(MADE_BY_RESTORE),
            is_inside: true,
            held: held.cloned(),
        })
        .collect()
}

fn kind_of(
    state: &StateDir,
    place: &Path,
    held: &Held,
    all: bool,
    is_exact: bool,
) -> Option<StepKind> {
    if place.symlink_metadata().is_err() {
        return Some(StepKind::Recreate);
    }
    let why = if all { Some("you asked for it".to_owned()) } else { None };
    let why = why
        .or_else(|| broken(state, place, held))
        .or_else(|| another(state, place, held, is_exact));
    why.map(StepKind::Replace)
}

/// Why git could not use the repository at `place`; `None` if it could.
fn broken(state: &StateDir, place: &Path, held: &Held) -> Option<String> {
    if !place.is_dir() {
        return Some("it is no directory".to_owned());
    }
    if let Some(name) = ["objects", "refs"].into_iter().find(|name| !place.join(name).is_dir()) {
        return Some(format!("it has lost `{name}`"));
    }
    let branch = read_small(&place.join("HEAD"), HEAD_MAX_BYTES).ok().flatten().unwrap_or_default();
    let branch = branch.trim_ascii_end();
    if !branch.starts_with(b"ref: ") && ObjectId::from_hex(branch).is_err() {
        return Some("its HEAD says nothing".to_owned());
    }
    if root::inspect_config(place).is_err() {
        return Some("its configuration cannot be read".to_owned());
    }
    if held.is_usable
        && place.file_name().is_some_and(|name| name == ".git")
        && let Some(Err(why)) = place.parent().map(root::git_dirs)
    {
        return Some(why);
    }
    if has_lost_tables(place) {
        return Some("it has lost tables of its refs".to_owned());
    }
    let repo = Repo::at(place, root::hash_kind_of(place));
    let private = PrivateRepository::named(state, &held.store);
    if let Some(why) = lost_objects(&repo, &private, held) {
        return Some(why);
    }
    damaged_pack(state, place, held)
}

/// A ref that is unreadable or names a missing object, or a missing file of HEAD's commit. Objects
/// that were already missing when it was held do not count: they would not come back.
fn lost_objects(repo: &Repo, private: &PrivateRepository, held: &Held) -> Option<String> {
    let ours = &private.repo();
    if refs::has_garbage(repo) {
        return Some("its list of packed refs cannot be read".to_owned());
    }
    let then = LazyCell::new(|| {
        let refs = HeldFiles::open(ours, held).map(|held| held.refs()).unwrap_or_default();
        refs.into_iter().map(|(_, id)| id).collect::<HashSet<ObjectId>>()
    });
    let was_lost = |id: &ObjectId| !ours.has(id) && then.contains(id);
    let commit = head::read(repo).commit;
    let commit = commit.and_then(|commit| ObjectId::from_hex(commit.as_bytes()).ok());
    if let Some(id) = commit
        && repo.read(&id, ObjectKind::Commit).is_err()
        && !was_lost(&id)
    {
        return Some("it has lost the commit that HEAD stands at".to_owned());
    }
    let refs = refs::read_all(repo).ok()?;
    let is_lost = |name: &String, id: &Option<ObjectId>| match id {
        Some(id) => !repo.has(id) && !was_lost(id),
        // A symbolic ref is skipped; its target is checked by its own name.
        None => !refs::is_symbolic(repo, name),
    };
    let mut lost = refs.iter().filter(|(name, _)| is_of_the_user(name));
    if let Some((name, _)) = lost.find(|(name, id)| is_lost(name, id)) {
        return Some(format!("{} leads nowhere", short(name)));
    }
    // What was borrowed together with the commit is what it needs; so if all of that is there, nothing is lost.
    let has_all =
        |commit: &ObjectId| ours.has(commit) && has_every_file(&repo.objects(), &private.linked());
    let commit = commit.filter(|commit| !has_all(commit));
    let has_lost_files = commit.is_some_and(|commit| has_lost_files(repo, ours, commit));
    has_lost_files.then(|| "it has lost some of the files of HEAD's commit".to_owned())
}

/// Whether an object directory has every file that was borrowed from it, by name. If others were borrowed
/// from alternates, they are not compared.
fn has_every_file(objects: &Path, linked: &Path) -> bool {
    let ours = linked.join("objects");
    let alternates = names_of(&linked.join("alternates")).unwrap_or_default();
    let has_all = |dir: &OsString| {
        let theirs: HashSet<OsString> =
            names_of(&objects.join(dir)).unwrap_or_default().into_iter().collect();
        names_of(&ours.join(dir)).is_ok_and(|names| names.iter().all(|name| theirs.contains(name)))
    };
    alternates.is_empty() && names_of(&ours).is_ok_and(|dirs| dirs.iter().all(has_all))
}

/// Whether the repository lacks an object of a commit's tree that is held. A partial clone lacks
/// nothing.
fn has_lost_files(repo: &Repo, ours: &Repo, commit: ObjectId) -> bool {
    let is_promise = |name: &OsString| Path::new(name).extension() == Some(OsStr::new("promisor"));
    if names_of(&repo.objects().join("pack")).is_ok_and(|names| names.iter().any(is_promise)) {
        return false;
    }
    let Ok(Some(top)) = head::tree_of(repo, commit) else { return false };
    let is_lost = |id: &ObjectId| !repo.has(id) && ours.has(id);
    let (mut open, mut seen) = (vec![top], BTreeSet::new());
    while let Some(id) = open.pop() {
        if !seen.insert(id) {
            continue;
        }
        if is_lost(&id) {
            return true;
        }
        for (_, kind, id) in tree::entries(repo, &id).unwrap_or_default() {
            match kind {
                EntryKind::Tree => open.push(id),
                EntryKind::Commit => (),
                EntryKind::Blob | EntryKind::BlobExecutable | EntryKind::Link => {
                    if seen.insert(id) && is_lost(&id) {
                        return true;
                    }
                }
            }
        }
    }
    false
}

/// A pack with another size than the held pack of that name.
fn damaged_pack(state: &StateDir, place: &Path, held: &Held) -> Option<String> {
    let ours = PrivateRepository::named(state, &held.store).linked().join("objects/pack");
    let theirs = place.join("objects/pack");
    let size = |path: PathBuf| fs::symlink_metadata(path).ok().map(|found| found.len());
    let is_damaged = |name: &OsString| {
        let now = size(theirs.join(name));
        now.is_some() && now != size(ours.join(name))
    };
    names_of(&ours).ok()?.iter().any(is_damaged).then(|| "one of its packs is damaged".to_owned())
}

/// Why the repository at `place` is not the held one: it is another directory, and lacks something
/// that a held branch, tag or stash leads to.
fn another(state: &StateDir, place: &Path, held: &Held, is_exact: bool) -> Option<String> {
    let private = PrivateRepository::named(state, &held.store);
    let now = Identity::of(place).ok();
    // A repository created by a restore continues the one that it was created from.
    let likeness = held.identity.zip(now).map(|(then, now)| {
        if is_exact { then.likeness(&now) } else { private.likeness(then, now) }
    });
    if likeness == Some(Likeness::Same) {
        return None;
    }
    if is_exact && likeness != Some(Likeness::Perhaps) {
        let continued = held.identity.zip(now).map(|(then, now)| private.likeness(then, now));
        let why = match continued {
            Some(Likeness::Same) => "a restore made it again since",
            Some(Likeness::Perhaps | Likeness::Different) | None => "it is another repository",
        };
        return Some(why.to_owned());
    }
    // If the identity does not decide, or everything was moved to another disk, the held objects
    // do.
    let is_strict = likeness == Some(Likeness::Different);
    let repo = private.repo();
    let files = HeldFiles::open(&repo, held).ok()?;
    let now = Repo::at(place, root::hash_kind_of(place));
    if now.hash != repo.hash {
        return Some("it is another repository, which names objects otherwise".to_owned());
    }
    let there = refs::read_all(&now).unwrap_or_default();
    let lacks = |name: &str, id: &ObjectId| {
        let is_there = there.get(name).copied().flatten().is_some();
        !now.has(id) || !is_there && is_strict
    };
    if has_gone_on(&files, place) {
        return None;
    }
    if let Some(then) = tables(&|name| files.file(name.as_bytes())) {
        let now = tables(&|name| read_small(&place.join(name), TABLES_MAX_BYTES).ok().flatten());
        let has_common = now.unwrap_or_default().iter().any(|table| then.contains(table));
        return (!has_common).then(|| "it is another repository".to_owned());
    }
    let refs = files.refs();
    let lost = refs.iter().find(|(name, id)| is_of_the_user(name) && lacks(name, id));
    lost.map(|(name, _)| format!("it is another repository, without what {} led to", short(name)))
}

/// The repositories in `record`, in the root or its own, and the files that led to them, that are
/// gone, or not the same any more, with the reason: now, or in a `later` record. Whether they are
/// damaged is not looked at.
pub fn others(
    state: &StateDir,
    root: &Path,
    record: &Record,
    later: Option<&Record>,
) -> BTreeMap<PathBuf, Option<String>> {
    let places = places_inside(root, record);
    let there = later.map(|later| places_inside(root, later));
    let is_there = |place: &PathBuf| match &there {
        Some(there) => there.contains(place),
        None => place.symlink_metadata().is_ok(),
    };
    let (there, gone): (Vec<_>, Vec<_>) = places.into_iter().partition(is_there);
    let others = record.repositories.iter().filter_map(|held| {
        let place = place_of(root, held);
        let why = match later {
            _ if !there.contains(&place) => None,
            None => another(state, &place, held, false),
            Some(later) => {
                let is_it = |then: &&Held| then.path == held.path;
                another_held(state, held, later.repositories.iter().find(is_it)?)
            }
        };
        Some((place, Some(why?)))
    });
    gone.into_iter().map(|place| (place, None)).chain(others).collect()
}

/// Why a held repository is not the one that was held before at the same place.
fn another_held(state: &StateDir, then: &Held, now: &Held) -> Option<String> {
    let private = PrivateRepository::named(state, &then.store);
    let likeness = private.likeness(then.identity?, now.identity?);
    let log = |held: &Held| {
        let repo = PrivateRepository::named(state, &held.store).repo();
        HeldFiles::open(&repo, held).ok()?.file(HEAD_LOG.as_bytes())
    };
    let has_gone_on = || log(then).zip(log(now)).is_some_and(|(then, now)| now.starts_with(&then));
    let is_another = likeness == Likeness::Different && !has_gone_on();
    is_another.then(|| "it is another repository".to_owned())
}

/// Whether refs are in reftable format and some tables are missing.
fn has_lost_tables(place: &Path) -> bool {
    let dir = place.join(REFTABLE);
    let list = tables(&|name| read_small(&place.join(name), TABLES_MAX_BYTES).ok().flatten());
    let is_lost = |tables: Vec<String>| tables.iter().any(|name| !dir.join(name).is_file());
    dir.is_dir() && list.is_none_or(is_lost)
}

/// The tables of a repository in reftable format; `None` for other formats.
fn tables(read: &dyn Fn(&str) -> Option<Vec<u8>>) -> Option<Vec<String>> {
    let list = String::from_utf8(read(TABLES)?).ok()?;
    Some(list.lines().map(str::to_owned).collect())
}

/// Whether a held repository uses the reftable format.
pub fn is_reftable(state: &StateDir, held: &Held) -> bool {
    let repo = PrivateRepository::named(state, &held.store).repo();
    HeldFiles::open(&repo, held).is_ok_and(|files| files.file(TABLES.as_bytes()).is_some())
}

/// Whether the reflog of HEAD at `place` starts with the held one: the repository was copied away
/// and back. A new repository, or a clone, has a new log.
fn has_gone_on(held: &HeldFiles<'_>, place: &Path) -> bool {
    let then = held.file(HEAD_LOG.as_bytes()).filter(|log| !log.is_empty());
    let now = read_small(&place.join(HEAD_LOG), LOG_MAX_BYTES).ok().flatten();
    then.zip(now).is_some_and(|(then, now)| now.starts_with(&then))
}
