//! Creates the missing directory of a project again, so that a restore can proceed as usual.

use std::fs;

use super::{Project, say_text};
use crate::{
    error::{Error, Result},
    model::Checkpoint,
    process::Process,
    store::{record, repository},
    ui,
};

/// Shows that a project's directory is gone, asks, and makes it again, empty. `None` if the user said no.
///
/// # Errors
///
/// Fails if the directory cannot be made.
pub(crate) fn recreate(
    process: &mut Process<'_>,
    project: &Project,
    checkpoint: &Checkpoint,
    yes: bool,
    is_part: bool,
) -> Result<Option<Project>> {
    let path = project.root.path();
    say_text(process, &words(project, checkpoint, is_part));
    if !yes && !ui::ask(process, "Bring it back?") {
        return Ok(None);
    }
    fs::create_dir_all(path).map_err(Error::io("make the directory", path))?;
    Project::open(process, Some(path))?.into_present().map(Some)
}

/// What comes back of a directory that is gone, in lines of a plan. `is_part` if only some paths are
/// wanted.
pub(crate) fn words(project: &Project, checkpoint: &Checkpoint, is_part: bool) -> String {
    let root = ui::path(project.root.path(), project.home.as_deref());
    let all = ui::count(checkpoint.files, "file");
    let files = if is_part { format!("what is named of its {all}") } else { all };
    let record = record::read(&project.state.root(&project.root), checkpoint.id).ok();
    let record = record.filter(|record| !record.repositories.is_empty());
    let repository = if record.is_some() { ", and its repository" } else { "" };
    let steps =
        record.map(|record| repository::steps(&project.state, project.root.path(), &record, false));
    let lacks = steps.into_iter().flatten().find_map(|step| step.lacks(&project.state));
    let lacks = lacks.map_or_else(String::new, |it| format!("; {}", ui::escape(it.as_bytes())));
    format!("  recreate  {root}/   {files}{repository}{lacks}\n")
}
