//! What a repository has lost since a checkpoint, and what it loses when it is replaced: branches,
//! tags, stashes and commits. Only for telling; nothing is decided by it.

use std::{
    collections::BTreeSet,
    ffi::OsStr,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use gix::{ObjectId, objs::Kind as ObjectKind};

use super::{
    Held, Private, Tree, head, read_small, refs, root,
    steps::{is_of_the_user, led_to, part_at, place_of, short},
};
use crate::{
    state::State,
    store::{
        git::{index, repo::Repo},
        record::Record,
    },
};

/// Longer histories are not walked.
const COMMITS_MAX: usize = 10_000;
/// A log of so many stashes is not read.
const LOG_MAX_BYTES: u64 = 4 << 20;
/// As large as an index may be that is held.
const INDEX_MAX_BYTES: u64 = 64 << 20;
const STASH: &str = "refs/stash";
const STASH_LOG: &str = "logs/refs/stash";

/// What a repository has no longer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lost {
    /// Its git directory. Absolute.
    pub place: PathBuf,
    /// Branches and tags, by their short names.
    pub refs: Vec<String>,
    /// How many stashes.
    pub stashes: usize,
    /// The git directories in which other things are staged, though HEAD is where it was: its own,
    /// and those of submodules and linked worktrees that are held.
    pub staged: Vec<PathBuf>,
}

/// The commits that a branch loses when its repository is replaced, the newest first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Losing {
    /// Its git directory. Absolute.
    pub place: PathBuf,
    /// The branch, by its short name.
    pub branch: String,
    /// The ids of the commits, and their first lines.
    pub commits: Vec<(String, String)>,
}

/// The branches, tags and stashes that `record` holds and that are gone from repositories which
/// are there.
pub fn lost(state: &State, root: &Path, record: &Record) -> Vec<Lost> {
    record.repositories.iter().filter_map(|held| lost_of(state, root, held)).collect()
}

fn lost_of(state: &State, root: &Path, held: &Held) -> Option<Lost> {
    let place = place_of(root, held);
    let repo = Private::named(state, &held.store).repo();
    let files = Tree::open(&repo, held).ok()?;
    let now = Repo::at(&place, root::hash_kind_of(&place));
    let there: BTreeSet<String> = refs::all(&now).ok()?.into_iter().collect();
    let names: BTreeSet<String> = files.refs().into_iter().map(|(name, _)| name).collect();
    let is_lost = |name: &&String| is_of_the_user(name) && *name != STASH && !there.contains(*name);
    let refs: Vec<String> =
        names.iter().filter(is_lost).map(|name| short(name).to_owned()).collect();
    let then = stashes(&files.file(STASH_LOG.as_bytes()).unwrap_or_default());
    let log = read_small(&place.join(STASH_LOG), LOG_MAX_BYTES).ok().flatten();
    let since = stashes(&log.filter(|_| there.contains(STASH)).unwrap_or_default());
    let stashes = then.difference(&since).count();
    let staged = staged_otherwise(root, held, &files, &place, now.hash);
    let is_any = !refs.is_empty() || stashes > 0 || !staged.is_empty();
    is_any.then_some(Lost { place, refs, stashes, staged })
}

/// The git directories in which something else is staged than is held, and whose HEAD has not moved. What the root itself has staged is not held here.
fn staged_otherwise(
    root: &Path,
    held: &Held,
    files: &Tree<'_>,
    place: &Path,
    hash: gix::hash::Kind,
) -> Vec<PathBuf> {
    let pointers = held.pointers.iter().filter(|(path, _)| path != b".git");
    let led = pointers.map(|(path, text)| led_to(&root.join(OsStr::from_bytes(path)), text));
    // The main worktree of a root that is a linked one is another place.
    let is_main = held.pointers.iter().any(|(path, _)| path == b".git");
    let own = (!is_main).then(PathBuf::new);
    let all = own.into_iter().chain(led.filter_map(|target| part_at(place, &target)));
    let is_otherwise = |below: &PathBuf| {
        let file = |name: &str| {
            let path = below.join(name);
            let now = read_small(&place.join(&path), INDEX_MAX_BYTES).ok().flatten();
            Some((files.file(path.as_os_str().as_bytes())?, now?))
        };
        let stood = file("HEAD").filter(|(then, now)| then == now).map(|(then, _)| then);
        let has_stayed = stood.is_some_and(|at| match at.trim_ascii_end().strip_prefix(b"ref: ") {
            None => true,
            Some(name) => {
                let common = if below.starts_with("worktrees") { Path::new("") } else { below };
                has_same_ref(files, place, common, &String::from_utf8_lossy(name))
            }
        });
        // Where refs are kept as reftable, nobody can tell whether HEAD has moved, and it is named
        // in any case.
        let index = file("index").filter(|_| has_stayed);
        index.is_some_and(|(then, now)| index::stage_alike(hash, &then, &now) == Some(false))
    };
    let all = all.filter(is_otherwise).map(|below| place.join(below));
    all.collect::<BTreeSet<_>>().into_iter().collect()
}

/// Whether a ref of the repository at `common`, below `place`, is where it was.
fn has_same_ref(files: &Tree<'_>, place: &Path, common: &Path, name: &str) -> bool {
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

/// The commits in a log of stashes.
fn stashes(log: &[u8]) -> BTreeSet<ObjectId> {
    let new = |line: &[u8]| ObjectId::from_hex(line.split(|&byte| byte == b' ').nth(1)?).ok();
    log.split(|&byte| byte == b'\n').filter_map(new).collect()
}

/// The commits that branches of the repository at the place of `held` have beyond what is held.
pub(super) fn losing(state: &State, root: &Path, held: &Held) -> Vec<Losing> {
    let place = place_of(root, held);
    let repo = Private::named(state, &held.store).repo();
    let Ok(files) = Tree::open(&repo, held) else { return Vec::new() };
    let now = Repo::at(&place, root::hash_kind_of(&place));
    let mut branches = refs::read_all(&now).unwrap_or_default();
    branches.retain(|name, _| name.starts_with("refs/heads/"));
    let kept = ancestors(&repo, files.refs().into_iter().map(|(_, id)| id).collect());
    let beyond = |(branch, tip): (String, Option<ObjectId>)| {
        let mut commits = Vec::new();
        let mut here = tip;
        while let Some(id) = here.filter(|id| !kept.contains(id) && commits.len() < COMMITS_MAX) {
            let body = now.read(&id, ObjectKind::Commit).ok()?;
            commits.push((id.to_string(), subject(&body)));
            here = head::parents(&body).next();
        }
        let (place, branch) = (place.clone(), short(&branch).to_owned());
        (!commits.is_empty()).then_some(Losing { place, branch, commits })
    };
    branches.into_iter().filter_map(beyond).collect()
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
