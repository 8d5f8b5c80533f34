//! What there is to do so that the repositories of a checkpoint are there again.

use std::{
    ffi::{OsStr, OsString},
    fs,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use gix::{
    ObjectId,
    objs::{Kind as ObjectKind, tree::EntryKind},
};

use super::{Held, Private, Tree, head, names_of, read_small, refs, root};
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

/// What is to be done about one repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// Where: a git directory, or a file that leads to one. Absolute.
    pub place: PathBuf,
    /// What.
    pub kind: StepKind,
    /// Whether it is the root's own, or lies below the root.
    pub is_inside: bool,
    pub(in crate::store::git::repository) held: Held,
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
    /// It was not there, and a restore that is taken back made it.
    Remove,
}

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
        let place = root.join(OsStr::from_bytes(&held.path));
        let is_own = record.store.as_deref() == Some(&held.store);
        let is_inside = is_own || place.starts_with(root);
        let mut add = |place: PathBuf, kind: StepKind| {
            steps.push(Step { place, kind, is_inside, held: held.clone() });
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
            if pointer.symlink_metadata().is_err() || removed.contains(&pointer) {
                add(pointer, StepKind::Pointer(text.clone()));
            }
        }
        for below in parts {
            add(place.clone(), StepKind::Part(below));
        }
    }
    steps
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

/// Where a file that leads to a git directory leads now.
fn target_of(pointer: &Path) -> Option<PathBuf> {
    Some(led_to(pointer, &read_small(pointer, HEAD_MAX_BYTES).ok()??))
}

/// Where the text of a `.git` file leads.
fn led_to(pointer: &Path, text: &[u8]) -> PathBuf {
    let target = text.strip_prefix(b"gitdir: ").unwrap_or(text).trim_ascii_end();
    let above = pointer.parent().unwrap_or(Path::new("/"));
    without_dots(&above.join(OsStr::from_bytes(target)))
}

/// Where the git directory of a linked worktree or submodule lies below its repository.
fn part_at(place: &Path, target: &Path) -> Option<PathBuf> {
    let is_worktree = target.parent().is_some_and(|above| above.ends_with("worktrees"));
    match target.strip_prefix(place) {
        Ok(below) if !below.as_os_str().is_empty() => Some(below.to_owned()),
        // The repository's path may have been written another way.
        _ => Some(Path::new("worktrees").join(target.file_name()?)).filter(|_| is_worktree),
    }
}

/// Repositories that are there now, were not at `record`, and were at the checkpoint that the restore
/// went to before which `record` was taken.
fn made_by_restore(state: &State, root: &Path, record: &Record) -> Vec<Step> {
    let of = record.checkpoint.cause.of.and_then(|of| record::read(&state.root_at(root), of).ok());
    let was_there = |held: &Held| record.repositories.iter().any(|then| then.path == held.path);
    let made = of.into_iter().flat_map(|of| of.repositories).filter(|held| !was_there(held));
    made.map(|held| (root.join(OsStr::from_bytes(&held.path)), held))
        .filter(|(place, _)| place.starts_with(root) && place.symlink_metadata().is_ok())
        .map(|(place, held)| Step { place, kind: StepKind::Remove, is_inside: true, held })
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
    let repo = Repo::at(place, root::hash_kind_of(place));
    if let Some(why) = lost_objects(&repo) {
        return Some(why);
    }
    damaged_pack(state, place, held)
}

/// A ref that cannot be read, or that leads to an object which is not there.
fn lost_objects(repo: &Repo) -> Option<String> {
    if refs::has_garbage(repo) {
        return Some("its list of packed refs cannot be read".to_owned());
    }
    if let Some(commit) = head::read(repo).commit
        && let Ok(id) = ObjectId::from_hex(commit.as_bytes())
        && repo.read(&id, ObjectKind::Commit).is_err()
    {
        return Some("it has lost the commit that HEAD stands at".to_owned());
    }
    let names = refs::all(repo).ok()?;
    let is_lost = |name: &&String| match refs::read(repo, name) {
        Ok(Some(id)) => !repo.has(&id),
        Ok(None) => false,
        // One that is a name for another is looked at under that one's own name.
        Err(_) => !refs::is_symbolic(repo, name),
    };
    let lost = names.iter().filter(|name| is_of_the_user(name)).find(is_lost)?;
    Some(format!("{} leads nowhere", short(lost)))
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
    let lacks = |name: &str, id: &ObjectId| {
        let is_there = refs::read(&now, name).ok().flatten().is_some();
        !now.has(id) || !is_there && is_strict
    };
    let refs = files.refs();
    let lost = refs.iter().find(|(name, id)| is_of_the_user(name) && lacks(name, id));
    lost.map(|(name, _)| format!("it is another repository, without {}", short(name)))
}

/// Whether a ref is the user's work, and not what the last fetch said.
fn is_of_the_user(name: &str) -> bool {
    name.starts_with("refs/heads/") || name.starts_with("refs/tags/") || name == "refs/stash"
}

fn short(name: &str) -> &str {
    name.strip_prefix("refs/heads/").or(name.strip_prefix("refs/tags/")).unwrap_or(name)
}
