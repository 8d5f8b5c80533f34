//! What a checkpoint does not hold, whether or not it knew of it.

use std::{collections::BTreeMap, path::PathBuf};

use super::comparison::{CurrentRoot, is_out_of_reach, skipped};
use crate::{
    attribution,
    error::{Error, Result},
    model::{Checkpoint, RelPath, SkipReason, Skipped, Tree},
    plan::{ByPath, Pick, Picked},
    process::Process,
    project::Project,
    scan::Scan,
    store, ui,
};

/// What the checkpoint left out and no later call of the turn held either.
pub(crate) fn left_out(checkpoint: &Checkpoint, then: &Tree) -> Vec<Skipped> {
    let is_held = |skipped: &&Skipped| {
        let path = RelPath::from_bytes(&skipped.path).ok();
        let entry = path.and_then(|path| then.overlay.get(&path));
        // Of a directory that is held only on the way to something, the rest is not.
        entry.is_some_and(|entry| !entry.is_directory() || entry.content.is_some())
    };
    checkpoint.skipped.iter().filter(|skipped| !is_held(skipped)).cloned().collect()
}

/// What a checkpoint taken now would leave out. Git's own files are told by their paths.
///
/// # Errors
///
/// Fails if the root cannot be read.
pub(crate) fn left_out_now(process: &Process<'_>, project: &Project) -> Result<Vec<Skipped>> {
    let here = CurrentRoot::look(process, project, Vec::new())?;
    Ok(skipped(&here.scan, |reason| reason != SkipReason::GitPrivate))
}

/// Where what a checkpoint left out seems to be now, if it is gone from its place.
pub(crate) fn moved(
    project: &Project,
    scan: &Scan,
    then: (&Checkpoint, &Tree),
    left: &[Skipped],
) -> BTreeMap<Vec<u8>, PathBuf> {
    let gone = left.iter().filter(|out| project.is_gone(out));
    attribution::moved(project.store.as_ref(), scan, then, gone)
}

/// What is there now and not held, and was not there at the checkpoint, held or not.
pub(super) fn new_unheld(
    project: &Project,
    scan: &Scan,
    then: &Tree,
    checkpoint: &Checkpoint,
    picked: &Picked,
) -> Result<Vec<Skipped>> {
    let left_out = left_out(checkpoint, then);
    let (then_out, store) = (ByPath::of(&left_out), project.store.as_ref());
    let mut new = Vec::new();
    for skipped in skipped(scan, |reason| reason.matters() && !is_out_of_reach(reason)) {
        let Ok(path) = RelPath::from_bytes(&skipped.path) else { continue };
        let is_new = picked.has(&path)
            && then_out.covering(&path).is_none()
            && store::entry_at(store, then, &path)?.is_none();
        if is_new {
            new.push(skipped);
        }
    }
    Ok(new)
}

/// Refuses a path that was at none of some checkpoints and is not there now: it is a slip.
pub(crate) fn refuse_unknown(
    project: &Project,
    picked: &Picked,
    sides: &[(&Checkpoint, &Tree)],
) -> Result<()> {
    let Picked::Paths(picks) = picked else { return Ok(()) };
    for path in picks.iter().filter_map(Pick::literal_outside) {
        let place = path.at_top();
        let is_held = |tree: &Tree| tree.outside.keys().any(|held| held.starts_with(&place));
        let is_left_out = |checkpoint: &Checkpoint| {
            let mut skipped = checkpoint.skipped.iter().map(|it| it.path.as_slice());
            skipped.any(|skipped| skipped == place.as_os_str().as_encoded_bytes())
        };
        let knows = |(checkpoint, tree): &(&Checkpoint, &Tree)| {
            is_held(tree) || is_left_out(checkpoint) || checkpoint.outside.contains(&place)
        };
        if !sides.iter().any(knows) && place.symlink_metadata().is_err() {
            return Err(Error::other(
                format!("`{}` is not held, and is not there now", ui::escape_path(&place)),
                "outside the project only what calls named is held; `beforehand show` lists it",
            ));
        }
    }
    for path in picks.iter().filter_map(|pick| pick.literal()) {
        let mut is_known = project.root.join(path).symlink_metadata().is_ok()
            || path.as_bytes().split(|&byte| byte == b'/').any(|name| name == b".git");
        for (checkpoint, then) in sides {
            let left_out = left_out(checkpoint, then);
            let mut left_out =
                left_out.iter().filter_map(|out| RelPath::from_bytes(&out.path).ok());
            is_known = is_known
                || left_out.any(|out| path.is_within(&out) || out.is_within(path))
                || store::entry_at(project.store.as_ref(), then, path)?.is_some();
        }
        if !is_known {
            let ids: Vec<String> = sides.iter().map(|(it, _)| it.id.to_string()).collect();
            return Err(Error::other(
                format!(
                    "`{}` was not there at {}, and is not now",
                    ui::escape(path.as_bytes()),
                    ids.join(" or ")
                ),
                "name paths as seen from the current directory; `beforehand find NAME` looks for one",
            ));
        }
    }
    Ok(())
}
