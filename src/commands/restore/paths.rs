//! The part of a root the user means.

use std::path::PathBuf;

use super::planned::left_out;
use crate::{
    commands::Desk,
    error::{Error, Result},
    fs::without_dots,
    model::{Checkpoint, RelPath, Tree},
    plan::{self, Pick, Picked},
    process::Process,
    store, ui,
};

/// The paths the user named, seen from where they are.
pub(crate) fn picked(process: &Process<'_>, desk: &Desk, paths: &[PathBuf]) -> Result<Picked> {
    if paths.is_empty() {
        return Ok(Picked::All);
    }
    let cwd = process.cwd.clone().unwrap_or_else(|| desk.root.path().to_owned());
    let cwd = std::fs::canonicalize(&cwd).unwrap_or(cwd);
    let mut picked = Vec::new();
    for path in paths {
        let absolute = without_dots(&cwd.join(path));
        if absolute == desk.root.path() {
            return Ok(Picked::All);
        }
        let rel = desk.root.relative(&absolute).map_err(|_| {
            let path = ui::escape_path(path).into_owned();
            Error::other(
                format!("`{path}` is not in `{}`", ui::escape_path(desk.root.path())),
                "name paths of this project",
            )
        })?;
        picked.push(Pick::of(rel));
    }
    Ok(Picked::Paths(picked))
}

/// Refuses a path that was at none of some checkpoints and is not there now: it is a slip.
pub(crate) fn refuse_unknown(
    desk: &Desk,
    picked: &Picked,
    sides: &[(&Checkpoint, &Tree)],
) -> Result<()> {
    let Picked::Paths(picks) = picked else { return Ok(()) };
    let mut read = |tree: &Tree, id: &_| store::directory_of(desk.store.as_ref(), tree, id);
    for path in picks.iter().filter_map(|pick| pick.literal()) {
        let mut is_known = desk.root.join(path).symlink_metadata().is_ok()
            || path.as_bytes().split(|&byte| byte == b'/').any(|name| name == b".git");
        for (checkpoint, then) in sides {
            let left_out = left_out(checkpoint, then);
            let mut left_out =
                left_out.iter().filter_map(|out| RelPath::from_bytes(&out.path).ok());
            is_known = is_known
                || left_out.any(|out| path.is_within(&out) || out.is_within(path))
                || plan::entry_at(then, path, &mut read)?.is_some();
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
