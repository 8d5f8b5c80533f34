//! Reads HEAD, compares it with an earlier position, and detects operations in progress.

use gix::{ObjectId, objs::Kind, objs::tree::EntryKind};

use super::{
    refs::{self, own},
    repo::Repo,
    tree::{entries, parse},
};
use crate::{error::Result, fs::read_small, model::Head, store::HeadDistance};

/// Enough for a symbolic ref and its target.
const HEAD_MAX_BYTES: u64 = 64 << 10;
/// A higher count of staged paths is not worth the time.
const COUNT_MAX: u64 = 10_000;

/// Files and directories that git creates while an operation is in progress.
const IN_PROGRESS: [(&str, &str); 6] = [
    ("rebase-merge", "rebase"),
    ("rebase-apply", "rebase"),
    ("MERGE_HEAD", "merge"),
    ("CHERRY_PICK_HEAD", "cherry-pick"),
    ("REVERT_HEAD", "revert"),
    ("BISECT_LOG", "bisect"),
];

/// Reads HEAD. An unreadable HEAD yields no branch and no commit.
pub(in crate::store) fn read(repo: &Repo) -> Head {
    let bytes = read_small(&own(repo, "HEAD"), HEAD_MAX_BYTES).ok().flatten().unwrap_or_default();
    let text = bytes.trim_ascii_end();
    let (branch, commit) = match text.strip_prefix(b"ref:") {
        Some(name) => {
            let name = String::from_utf8_lossy(name.trim_ascii()).into_owned();
            let commit = is_plain_ref(&name).then(|| refs::read(repo, &name).ok().flatten());
            (Some(name), commit.flatten())
        }
        None => (None, ObjectId::from_hex(text).ok()),
    };
    Head { branch, commit: commit.map(|id| id.to_string()), in_progress: in_progress(repo) }
}

/// A higher count of commits is not worth the time.
const COMMITS_MAX: u64 = 1_000;

/// The position of HEAD relative to `then`.
pub(in crate::store) fn since(repo: &Repo, then: &Head) -> Option<HeadDistance> {
    let now = read(repo);
    let goal = ObjectId::from_hex(then.commit.as_deref()?.as_bytes()).ok()?;
    let mut here = ObjectId::from_hex(now.commit.as_deref()?.as_bytes()).ok();
    let mut count = 0;
    while let Some(commit) = here.filter(|commit| *commit != goal && count < COMMITS_MAX) {
        count += 1;
        here = first_parent(repo, commit);
    }
    let is_found = here == Some(goal);
    Some(HeadDistance { branch: now.branch, count: is_found.then_some(count) })
}

fn first_parent(repo: &Repo, commit: ObjectId) -> Option<ObjectId> {
    parents(&repo.read(&commit, Kind::Commit).ok()?).next()
}

/// The parents in the body of a commit.
pub(in crate::store) fn parents(body: &[u8]) -> impl Iterator<Item = ObjectId> {
    let lines = body.split(|&byte| byte == b'\n').take_while(|line| !line.is_empty());
    let parents = lines.filter_map(|line| line.strip_prefix(b"parent "));
    parents.filter_map(|id| ObjectId::from_hex(id).ok())
}

fn is_plain_ref(name: &str) -> bool {
    name.starts_with("refs/") && !name.split('/').any(|part| matches!(part, "" | "." | ".."))
}

/// The name of the operation that is in progress, if there is one.
pub(in crate::store) fn in_progress(repo: &Repo) -> Option<String> {
    let is_there = |(name, _): &&(&str, &str)| own(repo, name).symlink_metadata().is_ok();
    IN_PROGRESS.iter().find(is_there).map(|(_, what)| (*what).to_owned())
}

/// The number of paths that differ between HEAD's commit and the index tree. `None` if there are
/// too many, or if objects are missing. `new` returns the bodies of trees that are not in the
/// repository yet.
pub(in crate::store) fn count_staged(
    repo: &Repo,
    head: &Head,
    staged: ObjectId,
    new: &NewTrees<'_>,
) -> Option<u64> {
    let committed = match &head.commit {
        Some(commit) => tree_of(repo, ObjectId::from_hex(commit.as_bytes()).ok()?).ok()??,
        None => ObjectId::empty_tree(repo.hash),
    };
    let mut count = 0;
    let mut pairs = vec![(Some(committed), Some(staged))];
    while let Some((left, right)) = pairs.pop() {
        if left == right {
            continue;
        }
        count += compare(repo, left, right, new, &mut pairs).ok()?;
        if count > COUNT_MAX {
            return None;
        }
    }
    Some(count)
}

/// Returns the body of a tree that is not in the repository yet.
pub(in crate::store) type NewTrees<'a> = dyn Fn(&ObjectId) -> Option<Vec<u8>> + 'a;

fn entries_of(
    repo: &Repo,
    id: ObjectId,
    new: &NewTrees<'_>,
) -> Result<Vec<(Vec<u8>, EntryKind, ObjectId)>> {
    match new(&id) {
        Some(body) => parse(repo.hash, &id, &body),
        None => entries(repo, &id),
    }
}

pub(in crate::store) fn tree_of(repo: &Repo, commit: ObjectId) -> Result<Option<ObjectId>> {
    let body = repo.read(&commit, Kind::Commit)?;
    let id = body.strip_prefix(b"tree ").and_then(|rest| rest.split(|&b| b == b'\n').next());
    Ok(id.and_then(|hex| ObjectId::from_hex(hex).ok()))
}

/// Counts the differing files of one directory, and queues the differing subdirectories.
fn compare(
    repo: &Repo,
    left: Option<ObjectId>,
    right: Option<ObjectId>,
    new: &NewTrees<'_>,
    pairs: &mut Vec<(Option<ObjectId>, Option<ObjectId>)>,
) -> Result<u64> {
    let mut names = std::collections::BTreeMap::<_, [Option<_>; 2]>::new();
    for (side, tree) in [left, right].into_iter().enumerate() {
        for (name, kind, id) in tree.map_or(Ok(Vec::new()), |id| entries_of(repo, id, new))? {
            names.entry((name, kind == EntryKind::Tree)).or_default()[side] = Some((kind, id));
        }
    }
    let mut count = 0;
    for ((_, is_dir), [left, right]) in names {
        if left == right {
            continue;
        }
        if is_dir {
            pairs.push((left.map(|entry| entry.1), right.map(|entry| entry.1)));
        } else {
            count += 1;
        }
    }
    Ok(count)
}
