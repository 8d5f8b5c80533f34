//! Finds the checkpoints of a project whose `.git`, or whose directory, is gone, and makes the
//! directory again so that a restore can go on as always.

use std::{
    fs,
    path::{Path, PathBuf},
};

use super::Desk;
use crate::{
    error::{Error, Result},
    fs::PathResolver,
    model::{Checkpoint, Root, RootKind},
    process::Process,
    state::State,
    store::{git, record},
    ui,
};

/// The root at or around `start` that we know and that is gone, or has no `.git` any more.
pub(crate) fn gone_root(start: &Path, state: &State, real: &PathResolver) -> Option<Root> {
    let start = canonical(start, real);
    for dir in start.ancestors() {
        let has_git = dir.join(".git").symlink_metadata().is_ok();
        let place = record::read_location(&state.root_at(dir)).ok().flatten();
        match place {
            // Whatever is there now is looked at as usual.
            _ if has_git => return None,
            None => (),
            Some(place) => {
                let is_lost = place.git_dir.is_some() || !dir.is_dir();
                let kind = RootKind::Plain { why: None };
                return is_lost.then(|| Root::new(dir.to_owned(), kind));
            }
        }
    }
    None
}

/// The path without links, as far as it exists, and without `.` and `..` behind that.
fn canonical(path: &Path, real: &PathResolver) -> PathBuf {
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

/// Shows that a project's directory is gone, asks, and makes it again, empty. `None` if that is all
/// there is to do: the user said no, or it is only to be shown.
///
/// # Errors
///
/// Fails if the directory cannot be made.
pub(crate) fn recreate(
    process: &mut Process<'_>,
    desk: &Desk,
    checkpoint: &Checkpoint,
    dry_run: bool,
    yes: bool,
) -> Result<Option<Desk>> {
    let path = desk.root.path();
    let _nobody = process.stderr.write_all(words(desk, checkpoint).as_bytes());
    if dry_run || (!yes && !ui::ask(process, "Bring it back?")) {
        return Ok(None);
    }
    fs::create_dir_all(path).map_err(Error::io("make the directory", path))?;
    Desk::open(process, Some(path))?.into_present().map(Some)
}

/// What comes back of a directory that is gone, in lines of a plan.
pub(crate) fn words(desk: &Desk, checkpoint: &Checkpoint) -> String {
    let root = ui::path(desk.root.path(), desk.home.as_deref());
    let files = ui::count(checkpoint.files, "file");
    let record = record::read(&desk.state.root(&desk.root), checkpoint.id).ok();
    let record = record.filter(|record| !record.repositories.is_empty());
    let repository = if record.is_some() { ", and its repository" } else { "" };
    let steps = record.map(|record| git::steps(&desk.state, desk.root.path(), &record, false));
    let lacks = steps.into_iter().flatten().find_map(|step| step.lacks(&desk.state));
    let lacks = lacks.map_or_else(String::new, |it| format!("; {}", ui::escape(it.as_bytes())));
    format!("  recreate  {root}/   {files}{repository}{lacks}\n")
}
