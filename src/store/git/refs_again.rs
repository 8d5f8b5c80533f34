//! Makes branches, tags and stashes again that were deleted. Adds refs and never changes or removes one.

use gix::{
    ObjectId,
    refs::{Target, store::WriteReflog, transaction::PreviousValue},
};

use super::{
    super::repository::LostRepository,
    refs,
    repo::Repo,
    reset_branch::{WAIT, check_place, commit_synced, ref_edit, user_refs},
};
use crate::{error::Result, root};

const STASH: &str = "refs/stash";

/// Makes the refs of a repository again whose names are free. Returns those that could not be made.
pub fn make_refs_again(lost: &LostRepository) -> LostRepository {
    let repo = Repo::at(&lost.place, root::hash_kind_of(&lost.place));
    let mut left = lost.clone();
    left.refs.retain(|gone| !make_ref(&repo, &gone.name, &gone.id).unwrap_or(false));
    left.stashes.retain(|id| !make_stash(&repo, id).unwrap_or(false));
    left
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
    if let gix::refs::transaction::Change::Update { log, .. } = &mut edit.change {
        log.force_create_reflog = name == STASH;
    }
    let store = user_refs(repo, WriteReflog::Normal);
    let Ok(prepared) = store.transaction().prepare(Some(edit), WAIT, WAIT) else {
        return Ok(false);
    };
    commit_synced(repo, prepared, name).map(|()| true)
}
