//! The files and directories that the user names on the command line.

use std::path::PathBuf;

use crate::{
    commands::Project,
    error::{Error, Result},
    fs::without_dots,
    model::RelPath,
    plan::{Pick, Picked},
    process::Process,
    ui,
};

/// The paths the user named, seen from where they are.
pub(crate) fn picked(
    process: &Process<'_>,
    project: &Project,
    paths: &[PathBuf],
) -> Result<Picked> {
    if paths.is_empty() {
        return Ok(Picked::All);
    }
    let cwd = process.cwd.clone().unwrap_or_else(|| project.root.path().to_owned());
    let cwd = std::fs::canonicalize(&cwd).unwrap_or(cwd);
    let mut picked = Vec::new();
    for path in paths {
        let absolute = without_dots(&cwd.join(path));
        if absolute == project.root.path() {
            return Ok(Picked::All);
        }
        picked.push(match project.root.relative(&absolute) {
            Ok(below) => Pick::of(below),
            Err(_) => Pick::outside(RelPath::from_top(&absolute).map_err(|_| {
                let path = ui::escape_path(path).into_owned();
                Error::usage(format!("`{path}` names no file"), "name files or directories")
            })?),
        });
    }
    Ok(Picked::Paths(picked))
}
