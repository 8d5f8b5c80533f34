//! What a repository has lost since a checkpoint, and what it loses when it is replaced: branches,
//! tags, stashes and commits. Only for telling; nothing is decided by it.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

use gix::{ObjectId, objs::Kind as ObjectKind};

use super::{
    Held, Private, Tree, head, read_small, refs, root,
    steps::{is_of_the_user, place_of, short},
};
use crate::{
    state::State,
    store::{git::repo::Repo, record::Record},
};

/// Longer histories are not walked.
const COMMITS_MAX: usize = 10_000;
/// A log of so many stashes is not read.
const LOG_MAX_BYTES: u64 = 4 << 20;
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
    let now = stashes(&log.filter(|_| there.contains(STASH)).unwrap_or_default());
    let stashes = then.difference(&now).count();
    (!refs.is_empty() || stashes > 0).then_some(Lost { place, refs, stashes })
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
    let branches: BTreeMap<String, ObjectId> = refs::all(&now)
        .unwrap_or_default()
        .into_iter()
        .filter(|name| name.starts_with("refs/heads/"))
        .filter_map(|name| Some((refs::read(&now, &name).ok().flatten()?, name)))
        .map(|(id, name)| (name, id))
        .collect();
    let kept = ancestors(&repo, files.refs().into_iter().map(|(_, id)| id).collect());
    let beyond = |(branch, tip): (String, ObjectId)| {
        let mut commits = Vec::new();
        let mut here = Some(tip);
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
