//! Checks that the history is held that HEAD, branches, tags and stashes refer to.
//!
//! Refs are read from what a checkpoint holds of the git directory. A submodule's git directory,
//! with objects of its own, lies inside it.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    ffi::OsStr,
    os::unix::ffi::OsStrExt,
    path::Path,
};

use gix::{
    ObjectId,
    hash::Kind as HashKind,
    objs::{Kind as ObjectKind, tree::EntryKind},
};

use super::{
    Held, PrivateRepository,
    rebuild::{HeldFiles, RepositoryStep, StepKind},
};
use crate::{
    error::Result,
    state::StateDir,
    store::{
        plumbing::{head, refs, repo::Repo, tree},
        record::identity::{Identity, Likeness},
    },
};

/// An object that a repository needs and that is not held.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct MissingObject {
    /// The git directory, relative to that of the repository.
    below: Vec<u8>,
    /// The ref that leads to it, or `HEAD`.
    pub(super) name: String,
    /// The object that the ref names.
    tip: ObjectId,
    /// The missing object: that one, or one in its history.
    pub(super) object: ObjectId,
    /// Whether it is held, and damaged.
    pub(super) is_damaged: bool,
}

impl MissingObject {
    /// The place and the missing object, in words.
    pub(super) fn words(&self, held: &Held) -> (String, String) {
        let mut path = held.path.clone();
        for part in [&self.below[..], self.name.as_bytes()] {
            if !part.is_empty() {
                path.push(b'/');
                path.extend_from_slice(part);
            }
        }
        let what = String::from_utf8_lossy(&path).escape_debug().to_string();
        let object = self.object;
        let what_of_it = if self.is_damaged { "is damaged" } else { "is not held" };
        let why = if self.is_tip() {
            format!("it leads to {object}, which {what_of_it}")
        } else {
            format!("of its history {object} {what_of_it}")
        };
        (what, why)
    }

    fn is_tip(&self) -> bool {
        self.tip == self.object
    }

    /// Whether the original repository still exists and lacks the same object: it then probably
    /// lacked it when the checkpoint was taken.
    pub(super) fn is_lost_there(
        &self,
        root: &Path,
        held: &Held,
        private: &PrivateRepository,
    ) -> bool {
        let place = root.join(OsStr::from_bytes(&held.path));
        let now = Identity::of(&place).ok();
        let likeness = held.identity.zip(now).map(|(then, now)| then.likeness(&now));
        if likeness != Some(Likeness::Same) {
            return false;
        }
        let theirs = Repo::at(&place.join(OsStr::from_bytes(&self.below)), private.hash);
        let leads_there = || match &*self.name {
            "HEAD" => head::read(&theirs).commit == Some(self.tip.to_string()),
            name => refs::read(&theirs, name).ok().flatten() == Some(self.tip),
        };
        let is_reached = if self.is_tip() { leads_there() } else { theirs.has(&self.tip) };
        is_reached && !theirs.has(&self.object)
    }
}

/// What was walked already. Checkpoints share nearly all of their history.
#[derive(Default)]
pub(super) struct WalkedHistory(HashMap<(String, Vec<u8>, BTreeSet<ObjectId>), History>);

/// The missing objects of a held repository: of its refs only or, with `deep`, of all history that
/// the repository had, where those named by it count as missing: they are damaged. `commit` is where
/// HEAD was, if known.
///
/// # Errors
///
/// Fails if the held git directory cannot be read.
pub(super) fn lost(
    private: &PrivateRepository,
    repo: &Repo,
    held: &Held,
    commit: Option<&str>,
    deep: Option<&BTreeSet<ObjectId>>,
    seen: &mut WalkedHistory,
) -> Result<Vec<MissingObject>> {
    let mut lost: Vec<MissingObject> = Vec::new();
    for part in parts(repo, held, commit)? {
        let key = (private.name().to_owned(), part.below.clone(), part.shallow.clone());
        let history = seen.0.entry(key).or_insert_with(|| History::open(private, &part, deep));
        // Several refs can lead to the same missing object, which is reported once.
        let mut add = |name: String, tip, object, is_damaged| {
            if lost.iter().all(|known| known.object != object) {
                lost.push(MissingObject {
                    below: part.below.clone(),
                    name,
                    tip,
                    object,
                    is_damaged,
                });
            }
        };
        let tips = part.tips(private.hash).into_iter();
        let (there, gone): (Vec<_>, Vec<_>) = tips.partition(|(_, tip)| history.has(tip));
        for (name, tip) in gone {
            add(name, tip, tip, history.is_there(&tip));
        }
        for (name, tip) in there.into_iter().filter(|_| deep.is_some() && !part.is_partial) {
            if let Some(object) = history.first_missing(tip) {
                add(name, tip, object, history.is_there(&object));
            }
        }
    }
    Ok(lost)
}

impl RepositoryStep {
    /// What the repository will lack after a restore, in words; `None` if nothing is known to be
    /// missing. Checks only what its refs name, not their history.
    pub fn lacks(&self, state: &StateDir) -> Option<String> {
        let held = self.held.as_ref()?;
        let private = PrivateRepository::named(state, &held.store);
        let mut seen = WalkedHistory::default();
        let lost = lost(&private, &private.repo(), held, None, None, &mut seen).ok()?;
        let first = lost.first()?;
        let more = match lost.len() - 1 {
            0 => String::new(),
            more => format!(", and {more} more"),
        };
        Some(format!("without {}, which {} led to{more}: not held", first.object, first.name))
    }

    /// How many of the borrowed files with its objects are damaged. Reads every byte of them.
    pub fn damaged_files(&self, state: &StateDir) -> usize {
        let held = self.held.as_ref().filter(|_| self.brings_objects());
        held.map_or(0, |held| PrivateRepository::named(state, &held.store).damaged_files())
    }

    /// Whether the repository is made anew, with its objects.
    pub fn brings_objects(&self) -> bool {
        matches!(self.kind, StepKind::Recreate | StepKind::Replace(_))
    }
}

/// One git directory: the repository's, or that of a submodule.
#[derive(Default)]
struct GitDirRefs {
    below: Vec<u8>,
    /// The ref that HEAD points at.
    head: Option<String>,
    /// The refs, and HEAD if it is detached.
    refs: BTreeMap<String, ObjectId>,
    stashes: Vec<ObjectId>,
    /// Commits with parents that were not fetched.
    shallow: BTreeSet<ObjectId>,
    /// Whether it is a partial clone.
    is_partial: bool,
}

fn parts(repo: &Repo, held: &Held, commit: Option<&str>) -> Result<Vec<GitDirRefs>> {
    let files = files(repo, held)?;
    let submodules = files.iter().filter_map(|(path, _)| path.strip_suffix(b"/HEAD"));
    let mut dirs: Vec<&[u8]> = submodules.filter(|dir| is_submodule(dir)).collect();
    // The innermost first.
    dirs.sort_by_key(|dir| std::cmp::Reverse(dir.len()));
    dirs.push(b"");
    let part = |dir: &&[u8]| GitDirRefs { below: dir.to_vec(), ..GitDirRefs::default() };
    let mut parts: Vec<GitDirRefs> = dirs.iter().map(part).collect();
    for (path, bytes) in &files {
        let within = parts.iter_mut().find_map(|part| {
            let rest = path.strip_prefix(&part.below[..])?;
            let rest = if part.below.is_empty() { rest } else { rest.strip_prefix(b"/")? };
            Some((part, rest))
        });
        if let Some((part, rest)) = within {
            part.add(rest, bytes);
        }
    }
    if let (Some(own), Some(commit)) = (parts.last_mut(), commit.and_then(id_of)) {
        own.refs.insert("HEAD".to_owned(), commit);
    }
    Ok(parts)
}

fn is_submodule(dir: &[u8]) -> bool {
    let mut names = dir.split(|&byte| byte == b'/');
    names.next() == Some(b"modules")
        && names.all(|name| !matches!(name, b"refs" | b"logs" | b"worktrees"))
}

/// The files of a git directory that define its refs, by path.
fn files(repo: &Repo, held: &Held) -> Result<Vec<(Vec<u8>, Vec<u8>)>> {
    let mut files = Vec::new();
    HeldFiles::open(repo, held)?.each(&mut |path, kind, id| {
        let is_file = matches!(kind, EntryKind::Blob | EntryKind::BlobExecutable);
        if is_file && is_telling(path) {
            files.push((path.to_vec(), repo.read(&id, ObjectKind::Blob)?));
        }
        Ok(())
    })?;
    files.sort();
    Ok(files)
}

/// Whether a file of a git directory defines a ref or the extent of its history.
fn is_telling(path: &[u8]) -> bool {
    let mut names = path.split(|&byte| byte == b'/');
    let last = names.clone().next_back().unwrap_or_default();
    if names.any(|name| name == b"logs") {
        return path.ends_with(b"logs/refs/stash");
    }
    let is_ref = path.split(|&byte| byte == b'/').any(|name| name == b"refs");
    is_ref || matches!(last, b"HEAD" | b"packed-refs" | b"shallow" | b"config")
}

impl GitDirRefs {
    /// Reads one file. Ignores what it cannot parse. A loose ref comes after its packed value.
    fn add(&mut self, path: &[u8], bytes: &[u8]) {
        let mut lines =
            bytes.split(|&byte| byte == b'\n').filter_map(|line| str::from_utf8(line).ok());
        match path {
            b"shallow" => self.shallow.extend(lines.filter_map(id_of)),
            b"config" => {
                self.is_partial |= lines.any(|line| {
                    let line = line.trim_start().to_ascii_lowercase();
                    line.starts_with("promisor") || line.starts_with("partialclone")
                });
            }
            b"packed-refs" => self.refs.extend(lines.filter_map(|line| {
                let (id, name) = line.split_once(' ')?;
                Some((name.to_owned(), id_of(id)?))
            })),
            b"logs/refs/stash" => {
                self.stashes.extend(lines.filter_map(|line| id_of(line.split(' ').nth(1)?)));
            }
            path => {
                let text = lines.next().unwrap_or_default();
                if let Some(target) = text.strip_prefix("ref:").filter(|_| path == b"HEAD") {
                    self.head = Some(target.trim().to_owned());
                } else if let Some(id) = id_of(text) {
                    self.refs.insert(String::from_utf8_lossy(path).into_owned(), id);
                }
            }
        }
    }

    /// All starting points, HEAD first.
    fn tips(&self, hash: HashKind) -> Vec<(String, ObjectId)> {
        let head = self.head.as_deref().unwrap_or("HEAD");
        let head = self.refs.get(head).map(|id| ("HEAD".to_owned(), *id));
        let refs = self.refs.iter().map(|(name, id)| (name.clone(), *id));
        let stashes = self.stashes.iter().map(|id| ("logs/refs/stash".to_owned(), *id));
        let all = head.into_iter().chain(refs).chain(stashes);
        all.filter(|(_, id)| id.kind() == hash).collect()
    }
}

/// The objects of one git directory, and what is known to be missing.
struct History {
    /// The repositories with its objects.
    repos: Vec<Repo>,
    shallow: BTreeSet<ObjectId>,
    /// Objects that are there, and damaged.
    damaged: BTreeSet<ObjectId>,
    /// The first missing object in the history of each object walked. Files are not checked.
    known: HashMap<ObjectId, Option<ObjectId>>,
}

/// An object on the stack of the walk.
struct OpenObject {
    id: ObjectId,
    left: std::vec::IntoIter<(ObjectId, ObjectKind)>,
    missing: Option<ObjectId>,
}

impl History {
    fn open(
        private: &PrivateRepository,
        part: &GitDirRefs,
        damaged: Option<&BTreeSet<ObjectId>>,
    ) -> Self {
        // A submodule with alternates finds those objects among all that are borrowed.
        let mut repos = vec![private.repo()];
        if !part.below.is_empty() {
            let dir = private.linked().join(OsStr::from_bytes(&part.below));
            repos.insert(0, Repo::at(&dir, private.hash));
        }
        let (shallow, damaged) = (part.shallow.clone(), damaged.cloned().unwrap_or_default());
        Self { repos, shallow, damaged, known: HashMap::new() }
    }

    fn has(&self, id: &ObjectId) -> bool {
        self.is_there(id) && !self.damaged.contains(id)
    }

    fn is_there(&self, id: &ObjectId) -> bool {
        self.repos.iter().any(|repo| repo.has(id))
    }

    /// The first missing object in the history of `tip`.
    fn first_missing(&mut self, tip: ObjectId) -> Option<ObjectId> {
        let Some(kind) = self.repos.iter().find_map(|repo| repo.kind_of(&tip)) else {
            return Some(tip);
        };
        let start = vec![(tip, kind)].into_iter();
        let mut open = vec![OpenObject { id: tip, left: start, missing: None }];
        loop {
            let last = open.last_mut()?;
            let Some((id, kind)) = last.left.next() else {
                let OpenObject { id, missing, .. } = open.pop()?;
                let Some(above) = open.last_mut() else { return missing };
                self.known.insert(id, missing);
                above.missing = above.missing.or(missing);
                continue;
            };
            if let Some(known) = self.known.get(&id) {
                last.missing = last.missing.or(*known);
            } else if kind == ObjectKind::Blob {
                let is_missing = last.missing.is_none() && !self.has(&id);
                last.missing = last.missing.or(is_missing.then_some(id));
            } else {
                let needs = self.needs(id, kind);
                // It counts as complete until its walk ends, because forged objects could form a
                // cycle.
                self.known.insert(id, needs.is_none().then_some(id));
                match needs {
                    Some(needs) => {
                        open.push(OpenObject { id, left: needs.into_iter(), missing: None });
                    }
                    None => last.missing = last.missing.or(Some(id)),
                }
            }
        }
    }

    /// The objects that an object names; `None` if it is missing or cannot be read.
    fn needs(&self, id: ObjectId, kind: ObjectKind) -> Option<Vec<(ObjectId, ObjectKind)>> {
        let repo = self.repos.iter().find(|repo| repo.has(&id) && self.has(&id))?;
        if kind == ObjectKind::Tree {
            let entries = tree::entries(repo, &id).ok()?.into_iter();
            let needs = entries.filter_map(|(_, kind, id)| match kind {
                EntryKind::Tree => Some((id, ObjectKind::Tree)),
                EntryKind::Commit => None,
                EntryKind::Blob | EntryKind::BlobExecutable | EntryKind::Link => {
                    Some((id, ObjectKind::Blob))
                }
            });
            return Some(needs.collect());
        }
        let bytes = repo.read(&id, kind).ok()?;
        let lines = bytes.split(|&byte| byte == b'\n').take_while(|line| !line.is_empty());
        let lines: Vec<&str> = lines.filter_map(|line| str::from_utf8(line).ok()).collect();
        let of = |key: &'static str| lines.iter().filter_map(move |line| line.strip_prefix(key));
        if kind == ObjectKind::Tag {
            let kind = ObjectKind::from_bytes(of("type ").next()?.as_bytes()).ok()?;
            return Some(vec![(id_of(of("object ").next()?)?, kind)]);
        }
        let mut needs = vec![(id_of(of("tree ").next()?)?, ObjectKind::Tree)];
        if !self.shallow.contains(&id) {
            let parents = of("parent ").filter_map(id_of);
            needs.extend(parents.map(|parent| (parent, ObjectKind::Commit)));
        }
        Some(needs)
    }
}

fn id_of(hex: &str) -> Option<ObjectId> {
    ObjectId::from_hex(hex.trim().as_bytes()).ok()
}
