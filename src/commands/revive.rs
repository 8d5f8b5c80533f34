//! Brings back a project whose `.git`, or whose directory, is gone, so that a restore can go on as
//! always.

use std::{
    fs,
    path::{Path, PathBuf},
};

use super::Desk;
use crate::{
    error::{Error, Result},
    model::{Checkpoint, RelPath, Root, RootKind},
    process::Process,
    state::State,
    store::{GitStore, record, vault},
    ui,
};

/// The root at or around `start` that we know and that is gone, or has no `.git` any more: one that
/// can still be read.
pub(crate) fn gone_root(start: &Path, state: &State) -> Option<Root> {
    let start = canonical(start);
    for dir in start.ancestors() {
        if dir.join(".git").symlink_metadata().is_ok() {
            return None;
        }
        let own = state.root_at(dir);
        let Some(place) = record::read_place(&own).ok().flatten() else { continue };
        return match place.git_dir {
            Some(_) => vault::reader(state, dir),
            None if dir.is_dir() => None,
            None => Some(Root::new(dir.to_owned(), RootKind::Plain { why: None })),
        };
    }
    None
}

/// The path without links, as far as it exists, and without `.` and `..` behind that.
fn canonical(path: &Path) -> PathBuf {
    for above in path.ancestors() {
        if let Ok(found) = fs::canonicalize(above) {
            let rest = path.strip_prefix(above).unwrap_or(Path::new(""));
            let mut whole = found;
            for component in rest.components() {
                match component {
                    std::path::Component::ParentDir => drop(whole.pop()),
                    std::path::Component::CurDir => (),
                    other => whole.push(other),
                }
            }
            return whole;
        }
    }
    path.to_owned()
}

/// Shows what is gone, asks, and brings it back: the directory, then every `.git` that the vault
/// has. `None` if the user says no, or if it is only to be shown.
///
/// # Errors
///
/// Fails if something cannot be made. Nothing that exists is ever overwritten.
pub(crate) fn revive(
    process: &mut Process<'_>,
    desk: Desk,
    checkpoint: &Checkpoint,
    dry_run: bool,
    yes: bool,
) -> Result<Option<Desk>> {
    let path = desk.root.path().to_owned();
    let own = desk.state.root(&desk.root);
    let held = vault::fitting(&own, checkpoint.sequence)?;
    let missing = match &held {
        Some(held) => vault::missing(&desk.state, &path, held)?,
        None => Vec::new(),
    };
    let _nobody = process.stderr.write_all(told(&desk, &missing).as_bytes());
    if dry_run {
        let _nobody = writeln!(
            process.stderr,
            "nothing was changed; without --dry-run this comes first, then the files"
        );
        return Ok(None);
    }
    if !yes && !ui::ask(process, "Bring them back?") {
        return Ok(None);
    }
    fs::create_dir_all(&path).map_err(Error::io("make the directory", &path))?;
    // The outermost repository first: the inner ones lie in its worktree.
    for git_dir in &missing {
        if let Some(held) = &held {
            vault::rebuild(&own, &path, held, git_dir)?;
        }
    }
    let revived = Desk::open(process, Some(&path))?.as_it_is()?;
    if let RootKind::Git { .. } = revived.root.kind()
        && let Ok(store) = GitStore::open(&revived.root, &revived.state)
    {
        store.mend_refs()?;
    }
    Ok(Some(revived))
}

fn told(desk: &Desk, missing: &[RelPath]) -> String {
    let root = ui::path(desk.root.path(), desk.home.as_deref());
    let mut text = String::new();
    if !desk.root.path().is_dir() {
        text.push_str(&format!("  recreate  {root}/\n"));
    }
    for git_dir in missing {
        let name = ui::escape(git_dir.as_bytes());
        text.push_str(&format!("  recreate  {name}/   the repository, from the vault\n"));
    }
    text
}
