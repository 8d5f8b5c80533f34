//! Lists what a repository has lost since a checkpoint, and what it would lose by a restore:
//! branches, tags, stashes and commits. For messages only; no decision depends on it.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    ffi::OsStr,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use gix::{ObjectId, objs::Kind as ObjectKind};

use super::{
    Build, Held, HeldFiles, PrivateRepository, head,
    held_paths::{is_of_the_user, led_to, part_at, place_of, short},
    read_small, refs, restore_index, root,
};
use crate::{
    fs::names_in,
    model::Head,
    state::StateDir,
    store::{
        HeadDistance,
        plumbing::{
            index,
            repo::{Repo, name},
        },
        record::Record,
    },
};

/// Longer histories are not walked.
const COMMITS_MAX: usize = 10_000;
/// A larger log of stashes is not read.
const LOG_MAX_BYTES: u64 = 4 << 20;
/// The largest index that is held.
const INDEX_MAX_BYTES: u64 = 64 << 20;
const STASH: &str = "refs/stash";
const STASH_LOG: &str = "logs/refs/stash";

/// What a repository has lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LostRepository {
    /// Its git directory. Absolute.
    pub place: PathBuf,
    /// Branches and tags.
    pub refs: Vec<LostRef>,
    /// The commits of stashes, in hex, the oldest first.
    pub stashes: Vec<String>,
    /// The git directories with a different index although HEAD has not moved: its own, and those
    /// of held submodules and linked worktrees.
    pub staged: Vec<PathBuf>,
}

/// A branch or tag that is gone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LostRef {
    /// Its full name.
    pub name: String,
    /// The object that it named, in hex.
    pub id: String,
}

impl LostRef {
    /// It in a word: branch or tag.
    pub fn kind(&self) -> &'static str {
        if self.name.starts_with("refs/tags/") { "tag" } else { "branch" }
    }

    /// Its name as git shows it.
    pub fn short(&self) -> &str {
        short(&self.name)
    }
}

impl LostRepository {
    /// One at a place, from which nothing is gone.
    pub fn none(place: &Path) -> Self {
        Self { place: place.to_owned(), refs: Vec::new(), stashes: Vec::new(), staged: Vec::new() }
    }

    /// True if no branch, tag or stash is gone.
    pub fn has_all_refs(&self) -> bool {
        self.refs.is_empty() && self.stashes.is_empty()
    }

    /// Drops the refs that are among those of `others`, of the same repository.
    pub fn retain_but(&mut self, others: &[Self]) {
        for other in others.iter().filter(|other| other.place == self.place) {
            self.refs.retain(|gone| !other.refs.iter().any(|it| it.name == gone.name));
            self.stashes.retain(|id| !other.stashes.contains(id));
        }
    }
}

/// What a repository will lose when it is replaced.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Losing {
    /// Its git directory. Absolute.
    pub place: PathBuf,
    /// The commits that each branch loses (and HEAD, if detached): the short name, and the ids and
    /// subjects of the commits, newest first.
    pub commits: Vec<(String, Vec<(String, String)>)>,
    /// New or moved tags, and branches that lose no commit, by short names.
    pub refs: Vec<String>,
    /// How many stashes.
    pub stashes: usize,
    /// Whether it has staged changes that would be lost.
    pub is_staged: bool,
    /// Hooks, settings and worktrees that are new or changed, by their paths in it.
    pub changed: Vec<String>,
}

/// The branches, tags and stashes in `record` that existing repositories no longer have.
pub fn lost(state: &StateDir, root: &Path, record: &Record) -> Vec<LostRepository> {
    record.repositories.iter().filter_map(|held| lost_of(state, root, held)).collect()
}

/// Where HEAD stood in a repository nested in the root, and what has become of it since.
pub struct Stood {
    /// The worktree. Absolute.
    pub worktree: PathBuf,
    /// The git directory that is held: its own, or for a submodule that of the repository it is part of.
    pub place: PathBuf,
    /// Where HEAD stood.
    pub then: Head,
    /// What has become of it.
    pub since: HeadDistance,
}

/// The HEADs of the repositories nested in the root, and of the submodules of all, as far as they can
/// be told.
pub fn heads(state: &StateDir, root: &Path, record: &Record) -> Vec<Stood> {
    let mut heads = Vec::new();
    for held in &record.repositories {
        let place = place_of(root, held);
        let repo = PrivateRepository::named(state, &held.store).repo();
        let Some(files) = HeldFiles::open(&repo, held).ok().filter(|_| place.starts_with(root))
        else {
            continue;
        };
        let mut add = |worktree: &Path, git_dir: &Path, files: &HeldFiles<'_>| {
            let then = head_of(files)?;
            let since = head::since(&Repo::at(git_dir, root::hash_kind_of(git_dir)), &then)?;
            let (worktree, place) = (worktree.to_owned(), place.clone());
            heads.push(Stood { worktree, place, then, since });
            Some(())
        };
        if record.store.as_deref() != Some(&held.store) {
            add(place.parent().unwrap_or(&place), &place, &files);
        }
        for (path, text) in &held.pointers {
            let pointer = root.join(OsStr::from_bytes(path));
            let git_dir = led_to(&pointer, text);
            let part = part_at(&place, &git_dir).filter(|part| part.starts_with("modules"));
            let part = part.and_then(|part| files.below(part.as_os_str().as_bytes()));
            if let (Some(worktree), Some(files)) = (pointer.parent(), part) {
                add(worktree, &git_dir, &files);
            }
        }
    }
    heads
}

/// Where HEAD of a held repository stands.
fn head_of(files: &HeldFiles<'_>) -> Option<Head> {
    let text = files.file(b"HEAD")?;
    let text = String::from_utf8_lossy(text.trim_ascii_end()).into_owned();
    let branch = text.strip_prefix("ref:").map(|name| name.trim().to_owned());
    let commit = match &branch {
        // A loose ref stands before its packed value.
        Some(name) => {
            let refs = files.refs();
            let loose = files.file(name.as_bytes());
            let loose = loose.and_then(|id| ObjectId::from_hex(id.trim_ascii_end()).ok());
            loose.or_else(|| refs.iter().find(|(known, _)| known == name).map(|(_, id)| *id))
        }
        None => ObjectId::from_hex(text.as_bytes()).ok(),
    };
    Some(Head { branch, commit: commit.map(|id| id.to_string()), in_progress: None })
}

fn lost_of(state: &StateDir, root: &Path, held: &Held) -> Option<LostRepository> {
    let place = place_of(root, held);
    let repo = PrivateRepository::named(state, &held.store).repo();
    let files = HeldFiles::open(&repo, held).ok()?;
    let now = Repo::at(&place, root::hash_kind_of(&place));
    let there: BTreeSet<String> = refs::all(&now).ok()?.into_iter().collect();
    let is_lost = |name: &str| is_of_the_user(name) && name != STASH && !there.contains(name);
    // A loose ref comes after its packed value.
    let ids: BTreeMap<String, ObjectId> = files.refs_if(is_lost).into_iter().collect();
    let gone = ids.into_iter().map(|(name, id)| LostRef { name, id: id.to_string() });
    let refs: Vec<LostRef> = gone.collect();
    let then = stashes(&files.file(STASH_LOG.as_bytes()).unwrap_or_default());
    let log = read_small(&place.join(STASH_LOG), LOG_MAX_BYTES).ok().flatten();
    let since = stashes(&log.filter(|_| there.contains(STASH)).unwrap_or_default());
    let stashes = then.iter().filter(|id| !since.contains(id)).map(ObjectId::to_string).collect();
    let staged = staged_otherwise(root, held, &files, &place, now.hash);
    let lost = LostRepository { place, refs, stashes, staged };
    let is_any = !lost.has_all_refs() || !lost.staged.is_empty();
    is_any.then_some(lost)
}

/// The git directories with another index than held, while HEAD has not moved. The root's own index
/// is held separately.
fn staged_otherwise(
    root: &Path,
    held: &Held,
    files: &HeldFiles<'_>,
    place: &Path,
    hash: gix::hash::Kind,
) -> Vec<PathBuf> {
    let pointers = held.pointers.iter().filter(|(path, _)| path != b".git");
    let led = pointers.map(|(path, text)| led_to(&root.join(OsStr::from_bytes(path)), text));
    // If the root is a linked worktree, the main worktree is not part of it.
    let is_main = held.pointers.iter().any(|(path, _)| path == b".git");
    let own = (!is_main).then(PathBuf::new);
    let all = own.into_iter().chain(led.filter_map(|target| part_at(place, &target)));
    let is_otherwise = |below: &PathBuf| {
        let file = |name: &str| {
            let path = below.join(name);
            let then = files.file(path.as_os_str().as_bytes())?;
            Some((then, read_small(&place.join(&path), INDEX_MAX_BYTES).ok().flatten()?))
        };
        let stood = file("HEAD").filter(|(then, now)| then == now).map(|(then, _)| then);
        let has_stayed = stood.is_some_and(|at| match at.trim_ascii_end().strip_prefix(b"ref: ") {
            None => true,
            Some(name) => {
                let common = if below.starts_with("worktrees") { Path::new("") } else { below };
                has_same_ref(files, place, common, &String::from_utf8_lossy(name))
            }
        });
        // With reftable it is unknown whether HEAD has moved, so the index is reported in any case.
        let index = file("index").filter(|_| has_stayed);
        index.is_some_and(|(then, now)| index::stage_alike(hash, &then, &now) == Some(false))
    };
    let all = all.filter(is_otherwise).map(|below| place.join(below));
    all.collect::<BTreeSet<_>>().into_iter().collect()
}

/// Whether a ref of the repository at `common`, below `place`, is unchanged.
fn has_same_ref(files: &HeldFiles<'_>, place: &Path, common: &Path, name: &str) -> bool {
    let loose = files.file(common.join(name).as_os_str().as_bytes());
    let packed = || files.file(common.join("packed-refs").as_os_str().as_bytes());
    let then = match loose {
        Some(id) => ObjectId::from_hex(id.trim_ascii_end()).ok(),
        None => packed().and_then(|packed| {
            let text = String::from_utf8_lossy(&packed).into_owned();
            let line = text.lines().find_map(|line| line.strip_suffix(name)?.strip_suffix(' '));
            ObjectId::from_hex(line?.as_bytes()).ok()
        }),
    };
    let dir = place.join(common);
    let now = Repo::at(&dir, root::hash_kind_of(&dir));
    refs::read(&now, name).ok().flatten() == then
}

/// The commits in a log of stashes, the oldest first.
fn stashes(log: &[u8]) -> Vec<ObjectId> {
    let new = |line: &[u8]| ObjectId::from_hex(line.split(|&byte| byte == b' ').nth(1)?).ok();
    log.split(|&byte| byte == b'\n').filter_map(new).collect()
}

/// What repositories have beyond a record that is about them all: commits, branches, stashes.
pub fn beyond(state: &StateDir, root: &Path, record: &Record) -> Vec<Losing> {
    record.repositories.iter().filter_map(|held| losing(state, root, record, held)).collect()
}

/// What the repository at the place of `held` has beyond `record`; `None` if nothing.
pub(super) fn losing(
    state: &StateDir,
    root: &Path,
    record: &Record,
    held: &Held,
) -> Option<Losing> {
    let place = place_of(root, held);
    let private = PrivateRepository::named(state, &held.store);
    let repo = private.repo();
    let files = HeldFiles::open(&repo, held).ok()?;
    let now = Repo::at(&place, root::hash_kind_of(&place));
    let then: BTreeMap<String, ObjectId> = files.refs().into_iter().collect();
    let kept = ancestors(&repo, then.values().copied().collect());
    let mut losing = Losing { place, ..Losing::default() };
    let there = refs::read_all(&now).unwrap_or_default();
    for (name, id) in there.iter().filter_map(|(name, id)| Some((name, (*id)?))) {
        let is_notes = name.starts_with("refs/notes/");
        let is_theirs = is_of_the_user(name) || is_notes;
        let is_new = then.get(name) != Some(&id) && is_theirs && name != STASH;
        let beyond = if name.starts_with("refs/heads/") {
            commits_beyond(&now, id, &kept)
        } else {
            Vec::new()
        };
        if !beyond.is_empty() {
            losing.commits.push((short(name).to_owned(), beyond));
        } else if is_new && (!then.contains_key(name) || !name.starts_with("refs/heads/")) {
            losing.refs.push(short(name).to_owned());
        }
    }
    let stands = head::read(&now);
    let detached = stands.commit.filter(|_| stands.branch.is_none());
    if let Some(id) = detached.and_then(|id| ObjectId::from_hex(id.as_bytes()).ok()) {
        let is_on_a_branch = there.values().any(|tip| *tip == Some(id));
        let beyond = commits_beyond(&now, id, &kept);
        if !beyond.is_empty() && !is_on_a_branch {
            losing.commits.push(("HEAD".to_owned(), beyond));
        }
    }
    let log = read_small(&losing.place.join(STASH_LOG), LOG_MAX_BYTES).ok().flatten();
    let since = stashes(&log.filter(|_| there.contains_key(STASH)).unwrap_or_default());
    let before = stashes(&files.file(STASH_LOG.as_bytes()).unwrap_or_default());
    losing.stashes = since.iter().filter(|id| !before.contains(id)).count();
    let build = Build::new(&private, &repo, held).ok()?;
    losing.is_staged = has_staged(&now) && !stages_the_same(&build, root, record, &now);
    losing.changed = changed(&files, &losing.place);
    let nothing = Losing { place: losing.place.clone(), ..Losing::default() };
    (losing != nothing).then_some(losing)
}

/// What people write into a git directory by hand, or have git write there.
const BY_HAND: [&str; 5] =
    ["config", "config.worktree", "info/exclude", "info/attributes", "description"];

/// Hooks, settings and worktrees at `place` that are not as held.
fn changed(held: &HeldFiles<'_>, place: &Path) -> Vec<String> {
    let names = |dir: &str, below: &str| -> Vec<String> {
        let names = names_in(&place.join(dir)).into_iter();
        names.map(|name| format!("{dir}/{}{below}", name.to_string_lossy())).collect()
    };
    let by_hand = BY_HAND.iter().map(|&name| name.to_owned());
    let all = by_hand.chain(names("hooks", "")).chain(names("worktrees", "/gitdir"));
    let is_changed = |path: &String| {
        let now = read_small(&place.join(path), LOG_MAX_BYTES).ok().flatten();
        now.is_some() && now != held.file(path.as_bytes())
    };
    let mut changed: Vec<String> = all.filter(is_changed).collect();
    changed.sort();
    changed.into_iter().map(|path| path.trim_end_matches("/gitdir").to_owned()).collect()
}

/// The commits from `tip` along first parents that are not in `kept`.
fn commits_beyond(repo: &Repo, tip: ObjectId, kept: &BTreeSet<ObjectId>) -> Vec<(String, String)> {
    let (mut commits, mut here) = (Vec::new(), Some(tip));
    while let Some(id) = here.filter(|id| !kept.contains(id) && commits.len() < COMMITS_MAX) {
        let Ok(body) = repo.read(&id, ObjectKind::Commit) else { break };
        commits.push((id.to_string(), subject(&body)));
        here = head::parents(&body).next();
    }
    commits
}

/// Whether the index differs from HEAD's commit.
fn has_staged(repo: &Repo) -> bool {
    let Ok(Some(file)) = index::open(repo) else { return false };
    let mut trees = HashMap::new();
    let built = index::build(repo, &file, true, &mut |body| {
        let id = name(repo.hash, ObjectKind::Tree, body)?;
        trees.insert(id, body.to_vec());
        Ok(id)
    });
    let Ok(built) = built else { return false };
    let new = |id: &ObjectId| trees.get(id).cloned();
    head::count_staged(repo, &head::read(repo), built.tree, &new) != Some(0)
}

/// Whether a restore brings back the present index.
fn stages_the_same(build: &Build<'_>, root: &Path, record: &Record, now: &Repo) -> bool {
    if let Ok(Some((path, entries))) = build.staged(root, record) {
        return path != Path::new("index") || !restore_index::differs(now, &entries);
    }
    let there = read_small(&now.common_dir.join("index"), INDEX_MAX_BYTES).ok().flatten();
    let both = build.files.file(b"index").zip(there);
    both.and_then(|(then, now)| index::stage_alike(build.repo.hash, &then, &now)) == Some(true)
}

fn ancestors(repo: &Repo, mut open: Vec<ObjectId>) -> BTreeSet<ObjectId> {
    let mut found = BTreeSet::new();
    while let Some(id) = open.pop() {
        if found.len() < COMMITS_MAX
            && found.insert(id)
            && let Ok(body) = repo.read(&id, ObjectKind::Commit)
        {
            open.extend(head::parents(&body));
        }
    }
    found
}

fn subject(commit: &[u8]) -> String {
    let text = String::from_utf8_lossy(commit);
    let message = text.split_once("\n\n").map(|(_, message)| message).unwrap_or_default();
    message.lines().next().unwrap_or_default().to_owned()
}
