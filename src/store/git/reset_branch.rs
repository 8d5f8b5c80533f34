//! Resets the current branch to an earlier commit. Only if the user asks for it, if its reflog
//! keeps the commits that are left behind, and never behind pushed commits.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    fs,
    path::Path,
    thread,
    time::Duration,
};

use gix::{
    ObjectId,
    lock::acquire::Fail,
    objs::Kind,
    refs::{
        Target,
        file::Transaction,
        store::WriteReflog,
        transaction::{Change, LogChange, PreviousValue, RefEdit, RefLog},
    },
};

use super::{head, refs, repo::Repo};
use crate::{
    error::{Error, Result},
    fs::{read_small, stat_path},
    model::Head,
    store::HeadMove,
};

/// History beyond this is not searched for pushed commits.
const COMMITS_MAX: usize = 1_000_000;
/// A little longer than git itself waits for the lock of a ref.
pub(super) const WAIT: Fail = Fail::AfterDurationWithBackoff(Duration::from_millis(500));

/// Plans a reset to `then`; `None` if the branch is there already. The error is a message fragment
/// that says why it must not be reset.
pub(super) fn plan(repo: &Repo, then: &Head) -> Result<Option<HeadMove>, String> {
    let now = head::read(repo);
    if let Some(what) = now.in_progress.as_ref().or(then.in_progress.as_ref()) {
        return Err(format!("a {what} is in progress, or was then"));
    }
    let Some(branch) = &then.branch else { return Err("HEAD was on no branch then".to_owned()) };
    let short = |name: &str| name.strip_prefix("refs/heads/").unwrap_or(name).to_owned();
    match &now.branch {
        Some(here) if here == branch => (),
        Some(here) => {
            return Err(format!(
                "HEAD is on {} now, and was on {} then",
                short(here),
                short(branch)
            ));
        }
        None => return Err(format!("HEAD is on no branch now, and was on {} then", short(branch))),
    }
    if !branch.starts_with("refs/heads/") {
        return Err(format!("`{branch}` is no branch"));
    }
    let id = |commit: &Option<String>| ObjectId::from_hex(commit.as_ref()?.as_bytes()).ok();
    let Some(to) = id(&then.commit) else {
        return Err(format!("{} had no commit then", short(branch)));
    };
    let Some(from) = id(&now.commit) else {
        return Err(format!("{} has no commit now", short(branch)));
    };
    if from == to {
        return Ok(None);
    }
    if repo.read(&to, Kind::Commit).is_err() {
        return Err("the repository no longer has the commit it stood at then".to_owned());
    }
    if !has_reflog(repo, branch) {
        return Err(format!("{} has no reflog, which would keep its commits", short(branch)));
    }
    let left = left_behind(repo, from, to)?;
    if let Some(remote) = holder(repo, &left, to)? {
        return Err(format!("commits since then are on {remote}"));
    }
    let (from, to) = (from.to_string(), to.to_string());
    Ok(Some(HeadMove { branch: branch.clone(), from, to, count: left.len() as u64 }))
}

/// Moves the branch, if it and HEAD are still as planned, and returns whether it did. Writes its
/// reflog and HEAD's, as git does.
pub(super) fn execute(repo: &Repo, head_move: &HeadMove, why: &str) -> Result<bool> {
    let now = head::read(repo);
    let stands = now.branch.as_ref() == Some(&head_move.branch)
        && now.commit.as_ref() == Some(&head_move.from);
    if !stands || now.in_progress.is_some() || !has_reflog(repo, &head_move.branch) {
        return Ok(false);
    }
    let id = |hex: &str| {
        ObjectId::from_hex(hex.as_bytes()).map_err(|_| Error::damaged(hex, "no name of a commit"))
    };
    let (from, to) = (id(&head_move.from)?, id(&head_move.to)?);
    check_place(repo, &head_move.branch)?;
    let expected = PreviousValue::MustExistAndMatch(Target::Object(from));
    let mut edit = ref_edit("HEAD", to, expected, format!("beforehand: {why}"))?;
    edit.deref = true;
    let store = user_refs(repo, WriteReflog::Normal);
    let prepared = match store.transaction().prepare(Some(edit), WAIT, WAIT) {
        Ok(prepared) => prepared,
        // A commit or checkout happened at this very moment.
        Err(_) if head::read(repo).commit != now.commit => return Ok(false),
        Err(err) => return Err(repo.error(&err)),
    };
    commit_synced(repo, prepared, &head_move.branch).map(|()| true)
}

/// Commits a change of a ref, with beforehand as the committer in its reflog. The ref is on the disk when this
/// returns.
///
/// # Errors
///
/// Fails if the repository cannot be written.
pub(super) fn commit_synced(repo: &Repo, prepared: Transaction<'_, '_>, name: &str) -> Result<()> {
    let path = repo.common_dir.join(name);
    sync_lock(&path)?;
    let time = format!("{} +0000", crate::fs::now_ns() / 1_000_000_000);
    let who = gix::actor::SignatureRef {
        name: "beforehand".into(),
        email: "beforehand@localhost".into(),
        time: &time,
    };
    prepared.commit(Some(who)).map_err(|err| repo.error(&err))?;
    path.parent().map_or(Ok(()), crate::fs::sync_dir)
}

/// Removes the locks that a move of the branch took and was killed with. A lock of a running git is not touched:
/// it names another commit, or is gone after a moment.
pub(super) fn remove_locks(repo: &Repo, head_move: &HeadMove) {
    /// Git creates a lock and fills it at once.
    const EMPTY_MAX: Duration = Duration::from_millis(100);
    let ends = [head_move.from.as_bytes(), head_move.to.as_bytes(), b""];
    let mut locks = vec![refs::own(repo, "HEAD.lock")];
    if check_place(repo, &head_move.branch).is_ok() {
        locks.push(repo.common_dir.join(format!("{}.lock", head_move.branch)));
    }
    locks.retain(|lock| ends.contains(&content(lock).trim_ascii_end()));
    let stamps: Vec<_> = locks.iter().map(|lock| stat_path(lock).ok()).collect();
    if stamps.iter().flatten().any(|stamp| stamp.size == 0) {
        thread::sleep(EMPTY_MAX);
    }
    for (lock, stamp) in locks.iter().zip(stamps) {
        if stamp.is_some() && stat_path(lock).ok() == stamp {
            // A lock that stays is reported by the move.
            let _reported = fs::remove_file(lock);
        }
    }
}

/// The content of a lock; that of something else, or of a large file, is `?`.
fn content(lock: &Path) -> Vec<u8> {
    const ID_MAX_BYTES: u64 = 80;
    read_small(lock, ID_MAX_BYTES).ok().flatten().unwrap_or_else(|| b"?".to_vec())
}

/// Points the ref `name` at `to`, if it is as `expected`.
pub(super) fn ref_edit(
    name: &str,
    to: ObjectId,
    expected: PreviousValue,
    message: String,
) -> Result<RefEdit> {
    let (mode, message) = (RefLog::AndReference, message.into());
    let log = LogChange { mode, force_create_reflog: false, message };
    let change = Change::Update { log, expected, new: Target::Object(to) };
    Ok(RefEdit::new(refs::full(name)?, change))
}

/// The refs of the user's repository, to be written as git does.
pub(super) fn user_refs(repo: &Repo, write_reflog: WriteReflog) -> gix::refs::file::Store {
    let options = gix::refs::store::init::Options { write_reflog, ..Default::default() };
    let (git_dir, common_dir) = (repo.git_dir.clone(), repo.common_dir.clone());
    if git_dir == common_dir {
        return gix::refs::file::Store::at_opts(common_dir, repo.hash, options);
    }
    gix::refs::file::Store::for_linked_worktree_opts(git_dir, common_dir, repo.hash, options)
}

/// Whether the branch has a reflog that can be extended, and HEAD's is not a symlink or pipe.
fn has_reflog(repo: &Repo, branch: &str) -> bool {
    let name = format!("logs/{branch}");
    let is_file = fs::symlink_metadata(repo.common_dir.join(&name)).is_ok_and(|log| log.is_file());
    let heads = [refs::own(repo, "logs"), refs::own(repo, "logs/HEAD")];
    let is_link = |path| fs::symlink_metadata(path).is_ok_and(|found| found.is_symlink());
    is_file && check_place(repo, &name).is_ok() && !heads.iter().any(is_link)
}

/// The commits reachable from `from` but not from `to`.
fn left_behind(repo: &Repo, from: ObjectId, to: ObjectId) -> Result<BTreeSet<ObjectId>, String> {
    // The usual case: `to` is a direct ancestor and there are no merges in between.
    let (mut here, mut way) = (from, BTreeSet::new());
    while here != to && way.len() < COMMITS_MAX {
        match &parents(repo, here)[..] {
            [one] => {
                way.insert(here);
                here = *one;
            }
            _ => break,
        }
    }
    if here == to {
        return Ok(way);
    }
    let stays = reachable(repo, [to], |_| false)?;
    reachable(repo, [from], |commit| stays.contains(commit))
}

/// Every commit reachable from `tips`, without the given boundary.
fn reachable(
    repo: &Repo,
    tips: impl IntoIterator<Item = ObjectId>,
    stop: impl Fn(&ObjectId) -> bool,
) -> Result<BTreeSet<ObjectId>, String> {
    let (mut found, mut open) = (BTreeSet::new(), VecDeque::from_iter(tips));
    while let Some(commit) = open.pop_front() {
        if stop(&commit) || !found.insert(commit) {
            continue;
        }
        if found.len() > COMMITS_MAX {
            return Err("the history is too long to tell what was pushed".to_owned());
        }
        open.extend(parents(repo, commit));
    }
    Ok(found)
}

/// The name of a remote-tracking ref that contains one of `commits`. Commits reachable from `to`
/// cannot lead to them and are skipped.
fn holder(
    repo: &Repo,
    commits: &BTreeSet<ObjectId>,
    to: ObjectId,
) -> Result<Option<String>, String> {
    let remotes = remotes(repo).map_err(|err| err.to_string())?;
    if remotes.is_empty() || commits.is_empty() {
        return Ok(None);
    }
    let name = |name: &str| name.strip_prefix("refs/remotes/").unwrap_or(name).to_owned();
    if let Some((found, _)) = remotes.iter().find(|(_, tip)| commits.contains(*tip)) {
        return Ok(Some(name(found)));
    }
    let stays = reachable(repo, [to], |_| false)?;
    for (found, tip) in &remotes {
        let seen = reachable(repo, [*tip], |commit| stays.contains(commit))?;
        if !seen.is_disjoint(commits) {
            return Ok(Some(name(found)));
        }
    }
    Ok(None)
}

/// The remote-tracking refs. A symbolic one is skipped; its target is looked at under its own name.
fn remotes(repo: &Repo) -> Result<BTreeMap<String, ObjectId>> {
    let refs = refs::read_all(repo)?.into_iter();
    let remotes = refs.filter(|(name, _)| name.starts_with("refs/remotes/"));
    Ok(remotes.filter_map(|(name, id)| Some((name, id?))).collect())
}

/// A commit that is missing, as in a shallow clone, has no parents.
fn parents(repo: &Repo, commit: ObjectId) -> Vec<ObjectId> {
    head::parents(&repo.read(&commit, Kind::Commit).unwrap_or_default()).collect()
}

/// Whether a ref and the directories above it have the right type, or do not exist: gix would block
/// on a pipe, and follow a symlink out of the repository.
pub(super) fn check_place(repo: &Repo, name: &str) -> Result<()> {
    for (at, _) in name.match_indices('/').chain([(name.len(), "")]) {
        let path = repo.common_dir.join(&name[..at]);
        let found = match fs::symlink_metadata(&path) {
            Ok(found) => found,
            Err(err) if err.kind() == std::io::ErrorKind::NotFound => return Ok(()),
            Err(err) => return Err(Error::io("look at", &path)(err)),
        };
        let is_last = at == name.len();
        if !(found.is_dir() || (is_last && found.is_file())) {
            let why = format!("`{}` is not what git put there", &name[..at]);
            return Err(Error::Repository { path: repo.common_dir.clone(), why });
        }
    }
    Ok(())
}

/// Syncs a ref before its lock file is renamed. Without this, a power cut right after the rename
/// leaves an empty ref, and the user's own `git gc` refuses to run.
pub(super) fn sync_lock(path: &Path) -> Result<()> {
    let mut lock = path.as_os_str().to_owned();
    lock.push(".lock");
    match fs::File::open(lock) {
        Ok(file) => file.sync_all().map_err(Error::io("sync", path)),
        // The ref was unchanged, so nothing was written.
        Err(err) if err.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(err) => Err(Error::io("sync", path)(err)),
    }
}
