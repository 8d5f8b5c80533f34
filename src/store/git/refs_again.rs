//! Makes branches, tags and stashes again that were deleted, and removes those that it made before.

use gix::{
    ObjectId,
    refs::{
        Target,
        store::WriteReflog,
        transaction::{Change, PreviousValue, RefEdit, RefLog},
    },
};

use super::{
    super::repository::LostRepository,
    refs,
    repo::Repo,
    reset_branch::{WAIT, check_place, commit_synced, ref_edit, user_refs},
};
use crate::{
    error::Result,
    fs::{names_in, read_small, sync_dir},
    root,
};

const STASH: &str = "refs/stash";

/// Makes the refs of a repository again whose names are free. Returns those that could not be made.
pub fn make_refs_again(lost: &LostRepository) -> LostRepository {
    let repo = Repo::at(&lost.place, root::hash_kind_of(&lost.place));
    let mut left = lost.clone();
    left.refs.retain(|gone| !make_ref(&repo, &gone.name, &gone.id).unwrap_or(false));
    left.stashes.retain(|id| !make_stash(&repo, id).unwrap_or(false));
    left
}

/// Removes the branches and tags of a repository that still name the same object, and that no worktree has checked
/// out. Returns those that stay; a stash always does.
pub fn remove_refs(gone: &LostRepository) -> LostRepository {
    let repo = Repo::at(&gone.place, root::hash_kind_of(&gone.place));
    let mut left = gone.clone();
    left.refs.retain(|gone| !remove(&repo, &gone.name, &gone.id).unwrap_or(false));
    left
}

/// Leaves out the refs that are not there, or name another object by now.
pub fn retain_unchanged(gone: &mut LostRepository) {
    let repo = Repo::at(&gone.place, root::hash_kind_of(&gone.place));
    gone.refs.retain(|gone| {
        let id = ObjectId::from_hex(gone.id.as_bytes()).ok();
        id.is_some() && refs::read(&repo, &gone.name).ok().flatten() == id
    });
    if refs::read(&repo, STASH).is_ok_and(|top| top.is_none()) {
        gone.stashes.clear();
    }
}

/// Deletes a ref, with its reflog; false if it must stay.
fn remove(repo: &Repo, name: &str, id: &str) -> Result<bool> {
    let Ok(id) = ObjectId::from_hex(id.as_bytes()) else { return Ok(false) };
    if is_checked_out(repo, name) {
        return Ok(false);
    }
    check_place(repo, name)?;
    check_place(repo, &format!("logs/{name}"))?;
    let expected = PreviousValue::MustExistAndMatch(Target::Object(id));
    let change = Change::Delete { expected, log: RefLog::AndReference };
    let edit = RefEdit::new(refs::full(name)?, change);
    let store = user_refs(repo, WriteReflog::Normal);
    let Ok(prepared) = store.transaction().prepare(Some(edit), WAIT, WAIT) else {
        return Ok(false);
    };
    prepared.commit(None).map_err(|err| repo.error(&err))?;
    // Empty directories of refs may be gone with it.
    let dirs = repo.common_dir.join(name);
    if let Some(dir) = dirs.ancestors().skip(1).find(|dir| dir.is_dir()) {
        sync_dir(dir)?;
    }
    Ok(true)
}

/// Whether HEAD of a worktree is on a branch.
fn is_checked_out(repo: &Repo, name: &str) -> bool {
    let worktrees = repo.common_dir.join("worktrees");
    let linked = names_in(&worktrees).into_iter().map(|name| worktrees.join(name));
    let mut dirs = linked.chain([repo.common_dir.clone(), repo.git_dir.clone()]);
    dirs.any(|dir| {
        const HEAD_MAX_BYTES: u64 = 4 << 10;
        let head = read_small(&dir.join("HEAD"), HEAD_MAX_BYTES).ok().flatten().unwrap_or_default();
        let branch = head.strip_prefix(b"ref:").map(<[u8]>::trim_ascii);
        branch == Some(name.as_bytes())
    })
}

/// Leaves out the refs with objects that the repository has no more.
pub fn retain_with_objects(lost: &mut LostRepository) {
    let repo = Repo::at(&lost.place, root::hash_kind_of(&lost.place));
    let has = |id: &str| ObjectId::from_hex(id.as_bytes()).is_ok_and(|id| repo.has(&id));
    lost.refs.retain(|gone| has(&gone.id));
    lost.stashes.retain(|id| has(id));
}

fn make_ref(repo: &Repo, name: &str, id: &str) -> Result<bool> {
    let Ok(id) = ObjectId::from_hex(id.as_bytes()) else { return Ok(false) };
    make(repo, name, id, PreviousValue::MustNotExist)
}

fn make_stash(repo: &Repo, id: &str) -> Result<bool> {
    let Ok(id) = ObjectId::from_hex(id.as_bytes()) else { return Ok(false) };
    let expected = match refs::read(repo, STASH)? {
        Some(top) => PreviousValue::MustExistAndMatch(Target::Object(top)),
        None => PreviousValue::MustNotExist,
    };
    make(repo, STASH, id, expected)
}

/// Points a ref at an object, with its reflog; false if git changed the ref at the same moment.
fn make(repo: &Repo, name: &str, id: ObjectId, expected: PreviousValue) -> Result<bool> {
    check_place(repo, name)?;
    check_place(repo, &format!("logs/{name}"))?;
    let mut edit = ref_edit(name, id, expected, "beforehand: made again by undo".to_owned())?;
    // The stash is a list in its reflog.
    if let Change::Update { log, .. } = &mut edit.change {
        log.force_create_reflog = name == STASH;
    }
    let store = user_refs(repo, WriteReflog::Normal);
    let Ok(prepared) = store.transaction().prepare(Some(edit), WAIT, WAIT) else {
        return Ok(false);
    };
    commit_synced(repo, prepared, name).map(|()| true)
}
