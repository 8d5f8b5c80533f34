//! Brings back a project whose `.git`, or whose directory, is gone, so that a restore can go on as
//! always.

use std::{
    fmt::Write as _,
    fs,
    io::Write as _,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use super::Desk;
use crate::{
    error::{Error, Result},
    fs::Real,
    model::{Checkpoint, RelPath, Root, RootKind},
    process::Process,
    state::State,
    store::{GitStore, record, vault},
    ui,
};

/// The root at or around `start` that we know and that is gone, or has no `.git` any more: one that
/// can still be read.
pub(crate) fn gone_root(start: &Path, state: &State, real: &Real) -> Option<Root> {
    let start = canonical(start, real);
    for dir in start.ancestors() {
        let has_git = dir.join(".git").symlink_metadata().is_ok();
        let place = record::read_place(&state.root_at(dir)).ok().flatten();
        let Some(place) = place else {
            if has_git {
                return None;
            }
            continue;
        };
        return match place.git_dir {
            Some(_) => vault::reader(state, dir),
            None if dir.is_dir() => None,
            None => Some(Root::new(dir.to_owned(), RootKind::Plain { why: None })),
        };
    }
    None
}

/// The path without links, as far as it exists, and without `.` and `..` behind that.
fn canonical(path: &Path, real: &Real) -> PathBuf {
    for above in path.ancestors() {
        if let Ok(found) = real.of(above) {
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

/// What came of a look at what is gone.
pub(crate) enum Revived {
    /// Nothing had to be brought back, or it is only to be shown.
    Unchanged,
    /// It is back; this is the desk for it.
    Anew(Box<Desk>),
    /// There is nothing more to do: the user said no, or there is nothing yet to show more of.
    Stop,
}

/// Shows what is gone, asks, and brings it back: the directory, and every `.git` the vault has.
///
/// # Errors
///
/// Fails if something cannot be made. Nothing that exists is ever overwritten.
pub(crate) fn revive(
    process: &mut Process<'_>,
    desk: &Desk,
    checkpoint: &Checkpoint,
    dry_run: bool,
    yes: bool,
) -> Result<Revived> {
    let path = desk.root.path();
    let own = desk.state.root(&desk.root);
    let Lost { held, missing, is_mended } = lost(desk, checkpoint)?;
    let said = told(desk, &missing, is_mended);
    if said.is_empty() && !desk.is_gone {
        return Ok(Revived::Unchanged);
    }
    let _nobody = process.stderr.write_all(said.as_bytes());
    if dry_run {
        return Ok(if path.is_dir() { Revived::Unchanged } else { Revived::Stop });
    }
    if !yes && !ui::ask(process, "Bring them back?") {
        return Ok(Revived::Stop);
    }
    fs::create_dir_all(path).map_err(Error::io("make the directory", path))?;
    for git_dir in &missing {
        if let Some(held) = &held {
            vault::rebuild(&own, path, held, git_dir)?;
        }
    }
    if let Some(held) = held.as_ref().filter(|_| is_mended) {
        vault::mend(&own, path, held)?;
    }
    point_at_repository(desk)?;
    let revived = Desk::open(process, Some(path))?.into_present()?;
    if let RootKind::Git { .. } = revived.root.kind()
        && let Ok(store) = GitStore::open(&revived.root, &revived.state)
    {
        store.mend_refs()?;
    }
    Ok(Revived::Anew(Box::new(revived)))
}

/// A linked worktree has no more than a word where its repository is.
fn point_at_repository(desk: &Desk) -> Result<()> {
    let RootKind::Git { git_dir, common_dir } = desk.root.kind() else { return Ok(()) };
    let pointer = desk.root.path().join(".git");
    if git_dir == common_dir || pointer.symlink_metadata().is_ok() {
        return Ok(());
    }
    let text = [b"gitdir: ", git_dir.as_os_str().as_bytes(), b"\n"].concat();
    let options = fs::OpenOptions::new().write(true).create_new(true).open(&pointer);
    let written = options.and_then(|mut file| file.write_all(&text));
    written.map_err(Error::io("write", &pointer))
}

/// What is gone, in lines of a plan; nothing if nothing is. For whoever shows a plan before a yes.
///
/// # Errors
///
/// Fails if what is held of it cannot be read.
pub(crate) fn words(desk: &Desk, checkpoint: &Checkpoint) -> Result<String> {
    let Lost { missing, is_mended, .. } = lost(desk, checkpoint)?;
    Ok(told(desk, &missing, is_mended))
}

/// What is gone and can be brought back.
struct Lost {
    /// What the vault has.
    held: Option<vault::Vault>,
    /// Every `.git` that is not there.
    missing: Vec<RelPath>,
    /// Whether the one that is there lacks what a repository needs.
    is_mended: bool,
}

fn lost(desk: &Desk, checkpoint: &Checkpoint) -> Result<Lost> {
    let path = desk.root.path();
    let own = desk.state.root(&desk.root);
    let held = if desk.is_gone {
        vault::fitting(&own, checkpoint.sequence)?
    } else {
        // Only what this very checkpoint has: other repositories may be gone for good reasons.
        record::read(&own, checkpoint.id).ok().and_then(|record| record.vault)
    };
    let missing = match &held {
        Some(held) => vault::missing(&desk.state, path, held)?,
        None => Vec::new(),
    };
    let is_mended = held.is_some() && vault::is_mendable(path);
    Ok(Lost { held, missing, is_mended })
}

fn told(desk: &Desk, missing: &[RelPath], is_mended: bool) -> String {
    let root = ui::path(desk.root.path(), desk.home.as_deref());
    let mut text = String::new();
    if !desk.root.path().is_dir() {
        _ = writeln!(text, "  recreate  {root}/");
    }
    for git_dir in missing {
        let name = ui::escape(git_dir.as_bytes());
        _ = writeln!(text, "  recreate  {name}/   the repository, from the vault");
    }
    if is_mended {
        text.push_str("  recreate  what .git lacks, from the vault\n");
    }
    text
}
