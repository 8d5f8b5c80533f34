//! Makes branches, tags and stashes again that were deleted. Adds refs and never changes or removes one.

use gix::{
    ObjectId,
    refs::{Target, store::WriteReflog, transaction::PreviousValue},
};

use super::{
    super::repository::LostRepository,
    refs,
    repo::Repo,
    reset_branch::{WAIT, check_place, ref_edit, sync_lock, user_refs},
};
use crate::{error::Result, root};

const STASH: &str = "refs/stash";

/// Makes the refs of a repository again: each that has its object and whose name is free. Returns the names of
/// those that it made, a stash by the name `refs/stash`.
///
/// # Errors
///
/// Fails if the repository cannot be written. Refs that were made before stay.
pub fn make_refs_again(lost: &LostRepository) -> Result<Vec<String>> {
    let repo = Repo::at(&lost.place, root::hash_kind_of(&lost.place));
    let mut made = Vec::new();
    for gone in &lost.refs {
        let Ok(id) = ObjectId::from_hex(gone.id.as_bytes()) else { continue };
        let is_free = refs::read(&repo, &gone.name)?.is_none();
        if is_free && repo.has(&id) && make(&repo, &gone.name, id, PreviousValue::MustNotExist)? {
            made.push(gone.name.clone());
        }
    }
    for id in lost.stashes.iter().filter_map(|id| ObjectId::from_hex(id.as_bytes()).ok()) {
        if !repo.has(&id) {
            continue;
        }
        let expected = match refs::read(&repo, STASH)? {
            Some(top) => PreviousValue::MustExistAndMatch(Target::Object(top)),
            None => PreviousValue::MustNotExist,
        };
        if make(&repo, STASH, id, expected)? {
            made.push(STASH.to_owned());
        }
    }
    Ok(made)
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
    sync_lock(&repo.common_dir.join(name))?;
    let time = format!("{} +0000", crate::fs::now_ns() / 1_000_000_000);
    let who = gix::actor::SignatureRef {
        name: "beforehand".into(),
        email: "beforehand@localhost".into(),
        time: &time,
    };
    prepared.commit(Some(who)).map_err(|err| repo.error(&err))?;
    let path = repo.common_dir.join(name);
    path.parent().map_or(Ok(()), crate::fs::sync_dir)?;
    Ok(true)
}
