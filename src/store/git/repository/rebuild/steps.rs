//! What there is to do so that the repositories of a checkpoint are there again.

use std::{
    collections::{BTreeMap, BTreeSet},
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
    Held, Private, Tree, head,
    lost::{Losing, losing},
    names_of, read_small, refs, root, tree,
};
use crate::{
    fs::without_dots,
    model::Reason,
    state::State,
    store::{
        git::repo::Repo,
        record::{
            self, Record,
            identity::{Identity, Likeness},
        },
    },
};

/// A symbolic ref and its target.
const HEAD_MAX_BYTES: u64 = 64 << 10;

/// Where refs are that are kept as reftable, and the list of the files there that count.
const REFTABLE: &str = "reftable";
const TABLES: &str = "reftable/tables.list";
/// A thousand tables.
const TABLES_MAX_BYTES: u64 = 1 << 20;

/// The log of what HEAD did.
const HEAD_LOG: &str = "logs/HEAD";
/// Some 300,000 commits.
const LOG_MAX_BYTES: u64 = 64 << 20;

/// What is to be done about one repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// Where: a git directory, or a file that leads to one. Absolute.
    pub place: PathBuf,
    /// What.
    pub kind: StepKind,
    /// Whether it is the root's own, or lies below the root.
    pub is_inside: bool,
    /// What is held of the repository. A file that leads nowhere has none.
    pub(in crate::store::git::repository) held: Option<Held>,
}

impl Step {
    /// Whether something goes.
    pub fn is_removal(&self) -> bool {
        matches!(self.kind, StepKind::Remove(_))
    }

    /// What goes with the repository that gives way to what `record` holds of it.
    pub fn losing(&self, state: &State, root: &Path, record: &Record) -> Option<Losing> {
        match self.kind {
            StepKind::Replace(_) => losing(state, root, record, self.held.as_ref()?),
            StepKind::Recreate | StepKind::Part(_) | StepKind::Pointer(_) | StepKind::Remove(_) => {
                None
            }
        }
    }

    /// The files that led to the repository, absolute.
    pub fn pointers(&self, root: &Path) -> impl Iterator<Item = PathBuf> {
        let pointers = self.held.iter().flat_map(|held| &held.pointers);
        pointers.map(|(path, _)| root.join(OsStr::from_bytes(path)))
    }
}

/// What a repository lacks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StepKind {
    /// It is gone.
    Recreate,
    /// What is there is broken, or another repository: why, as a fragment.
    Replace(String),
    /// Its part for one linked worktree or submodule is gone: where that was, below it.
    Part(PathBuf),
    /// The file that leads there is gone: what it says.
    Pointer(Vec<u8>),
    /// It is to go: why, as a fragment.
    Remove(&'static str),
}

/// It was not there, and a restore that is taken back made it.
const MADE_BY_RESTORE: &str = "the restore made it";
/// Something else is at the place of a file that leads to a repository.
const IN_THE_WAY: &str = "the file that led to the repository was there";

/// What is to be done so that the repositories which `record` holds are there again. Those that are
/// there, and are the same, are left alone unless `all` is set.
pub fn steps(state: &State, root: &Path, record: &Record, all: bool) -> Vec<Step> {
    let mut steps = Vec::new();
    // A restore that is taken back may have put another one there, which has all there was.
    let is_exact = record.checkpoint.cause.reason == Reason::BeforeRestore;
    if is_exact {
        steps.extend(made_by_restore(state, root, record));
    }
    let removed: Vec<PathBuf> = steps.iter().map(|step: &Step| step.place.clone()).collect();
    for held in &record.repositories {
        let place = place_of(root, held);
        let is_own = record.store.as_deref() == Some(&held.store);
        let is_inside = is_own || place.starts_with(root);
        let mut add = |place: PathBuf, kind: StepKind| {
            steps.push(Step { place, kind, is_inside, held: Some(held.clone()) });
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
        for below in parts {
            add(place.clone(), StepKind::Part(below));
        }
    }
    steps.extend(dangling(root, record, is_exact, &removed));
    steps
}

/// What is to be done about the files that led nowhere. A repository that is there by now stays,
/// unless a restore put it there.
fn dangling(root: &Path, record: &Record, is_exact: bool, removed: &[PathBuf]) -> Vec<Step> {
    let mut steps = Vec::new();
    for (path, text) in &record.dangling {
        let place = root.join(OsStr::from_bytes(path));
        let is_there = place.symlink_metadata().is_ok() && !removed.contains(&place);
        let is_other = is_there && text_of(&place).as_ref() != Some(text);
        let mut add = |kind: StepKind| {
            let (place, is_inside) = (place.clone(), place.starts_with(root));
            steps.push(Step { place, kind, is_inside, held: None });
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

/// What a file that leads to a repository says now, as records have it.
fn text_of(pointer: &Path) -> Option<Vec<u8>> {
    match fs::read_link(pointer).ok() {
        Some(target) => Some([root::LINK, target.as_os_str().as_bytes()].concat()),
        None => read_small(pointer, HEAD_MAX_BYTES).ok().flatten(),
    }
}

/// Where a repository was. Absolute.
pub(super) fn place_of(root: &Path, held: &Held) -> PathBuf {
    root.join(OsStr::from_bytes(&held.path))
}

/// The parts for linked worktrees that are still there, wherever they are, and that have lost theirs.
fn lost_worktrees(state: &State, place: &Path, held: &Held) -> Vec<PathBuf> {
    let repo = Private::named(state, &held.store).repo();
    let mut lost = Vec::new();
    let _as_far_as_it_can_be_read = Tree::open(&repo, held).and_then(|tree| {
        tree.each(&mut |path, kind, id| {
            let path = Path::new(OsStr::from_bytes(path));
            let (Some(name), Some(part)) = (path.file_name(), path.parent()) else { return Ok(()) };
            let is_worktree = part.parent() == Some(Path::new("worktrees"));
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

/// Whether what is at the place of a `.git` file is something else by now: a repository of its own, or
/// what leads to another one or nowhere.
fn leads_elsewhere(pointer: &Path, text: &[u8], place: &Path) -> bool {
    text_of(pointer).as_deref() != Some(text)
        && root::repository_at(pointer).is_none_or(|(common_dir, _)| common_dir != place)
}

/// Where a file that leads to a git directory leads now.
fn target_of(pointer: &Path) -> Option<PathBuf> {
    Some(led_to(pointer, &read_small(pointer, HEAD_MAX_BYTES).ok()??))
}

/// Where the text of a `.git` file leads.
pub(super) fn led_to(pointer: &Path, text: &[u8]) -> PathBuf {
    let target = text.strip_prefix(b"gitdir: ").unwrap_or(text).trim_ascii_end();
    let above = pointer.parent().unwrap_or(Path::new("/"));
    without_dots(&above.join(OsStr::from_bytes(target)))
}

/// Where the git directory of a linked worktree or submodule lies below its repository.
pub(super) fn part_at(place: &Path, target: &Path) -> Option<PathBuf> {
    let is_worktree = target.parent().is_some_and(|above| above.ends_with("worktrees"));
    match target.strip_prefix(place) {
        Ok(below) if !below.as_os_str().is_empty() => Some(below.to_owned()),
        // The repository's path may have been written another way.
        _ => Some(Path::new("worktrees").join(target.file_name()?)).filter(|_| is_worktree),
    }
}

/// Repositories, and files that lead to one, that are there now, were not at `record`, and were at the
/// checkpoint that the restore went to before which `record` was taken.
fn made_by_restore(state: &State, root: &Path, record: &Record) -> Vec<Step> {
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
        .map(|(place, held)| Step {
            place,
            kind: StepKind::Remove(MADE_BY_RESTORE),
            is_inside: true,
            held: held.cloned(),
        })
        .collect()
}

fn kind_of(
    state: &State,
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

/// Why what is at `place` is no repository that git could work with.
fn broken(state: &State, place: &Path, held: &Held) -> Option<String> {
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
    let ours = Private::named(state, &held.store).repo();
    if let Some(why) = lost_objects(&repo, &ours, held) {
        return Some(why);
    }
    damaged_pack(state, place, held)
}

/// A ref that cannot be read, or that leads to an object which is not there, or something of HEAD's
/// files that is not there. What was lost when it was held is no reason: it would not come back.
fn lost_objects(repo: &Repo, ours: &Repo, held: &Held) -> Option<String> {
    if refs::has_garbage(repo) {
        return Some("its list of packed refs cannot be read".to_owned());
    }
    let then: BTreeMap<String, ObjectId> =
        Tree::open(ours, held).map(|held| held.refs().into_iter().collect()).unwrap_or_default();
    let was_lost = |id: &ObjectId| !ours.has(id) && then.values().any(|then| then == id);
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
        // One that is a name for another is looked at under that one's own name.
        None => !refs::is_symbolic(repo, name),
    };
    let mut lost = refs.iter().filter(|(name, _)| is_of_the_user(name));
    if let Some((name, _)) = lost.find(|(name, id)| is_lost(name, id)) {
        return Some(format!("{} leads nowhere", short(name)));
    }
    let has_lost_files = commit.is_some_and(|commit| has_lost_files(repo, ours, commit));
    has_lost_files.then(|| "it has lost some of the files of HEAD's commit".to_owned())
}

/// Whether something in the tree of a commit is gone that is held. One that fetches what it lacks
/// lacks nothing.
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

/// A pack that is not as long as the one of that name was.
fn damaged_pack(state: &State, place: &Path, held: &Held) -> Option<String> {
    let ours = Private::named(state, &held.store).linked().join("objects/pack");
    let theirs = place.join("objects/pack");
    let size = |path: PathBuf| fs::symlink_metadata(path).ok().map(|found| found.len());
    let is_damaged = |name: &OsString| {
        let now = size(theirs.join(name));
        now.is_some() && now != size(ours.join(name))
    };
    names_of(&ours).ok()?.iter().any(is_damaged).then(|| "one of its packs is damaged".to_owned())
}

/// Why what is at `place` is not the repository that was held: another directory, and without
/// something that a branch, tag or stash of then led to.
fn another(state: &State, place: &Path, held: &Held, is_exact: bool) -> Option<String> {
    let private = Private::named(state, &held.store);
    let now = Identity::of(place).ok();
    // What a restore made has gone on from what it was made of.
    let likeness = held.identity.zip(now).map(|(then, now)| {
        if is_exact { then.likeness(&now) } else { private.likeness(then, now) }
    });
    if likeness == Some(Likeness::Same) {
        return None;
    }
    if is_exact && likeness != Some(Likeness::Perhaps) {
        return Some("it is another repository".to_owned());
    }
    // Where that does not tell, or everything was brought to another disk, what was there then is
    // looked for.
    let is_strict = likeness == Some(Likeness::Different);
    let repo = private.repo();
    let files = Tree::open(&repo, held).ok()?;
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
    lost.map(|(name, _)| format!("it is another repository, without {}", short(name)))
}

/// Whether refs are kept as reftable and some of the tables are gone.
fn has_lost_tables(place: &Path) -> bool {
    let dir = place.join(REFTABLE);
    let list = tables(&|name| read_small(&place.join(name), TABLES_MAX_BYTES).ok().flatten());
    let is_lost = |tables: Vec<String>| tables.iter().any(|name| !dir.join(name).is_file());
    dir.is_dir() && list.is_none_or(is_lost)
}

/// The tables of a repository that keeps its refs as reftable; `None` for any other.
fn tables(read: &dyn Fn(&str) -> Option<Vec<u8>>) -> Option<Vec<String>> {
    let list = String::from_utf8(read(TABLES)?).ok()?;
    Some(list.lines().map(str::to_owned).collect())
}

/// Whether what is held of a repository says that its refs are kept as reftable.
pub fn is_reftable(state: &State, held: &Held) -> bool {
    let repo = Private::named(state, &held.store).repo();
    Tree::open(&repo, held).is_ok_and(|files| files.file(TABLES.as_bytes()).is_some())
}

/// Whether what HEAD has done at `place` begins with all it had done in what is held: a repository
/// that was copied away and back. A new one, and a clone, begin anew.
fn has_gone_on(held: &Tree<'_>, place: &Path) -> bool {
    let then = held.file(HEAD_LOG.as_bytes()).filter(|log| !log.is_empty());
    let now = read_small(&place.join(HEAD_LOG), LOG_MAX_BYTES).ok().flatten();
    then.zip(now).is_some_and(|(then, now)| now.starts_with(&then))
}

/// Whether a ref is the user's work, and not what the last fetch said.
pub(super) fn is_of_the_user(name: &str) -> bool {
    name.starts_with("refs/heads/") || name.starts_with("refs/tags/") || name == "refs/stash"
}

pub(super) fn short(name: &str) -> &str {
    name.strip_prefix("refs/heads/").or(name.strip_prefix("refs/tags/")).unwrap_or(name)
}
