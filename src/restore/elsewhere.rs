//! Files of a checkpoint written to another directory, where nothing is in their way.

use std::{
    collections::{BTreeMap, BTreeSet},
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
};

use crate::{
    error::{Error, Result},
    model::{CheckpointId, Entry, Manifest, RelPath},
    plan::{Action, Author, Picked, PlanStep, RestorePlan},
    process::Process,
    project::Project,
    ui,
};

/// The directory to write to, by its real path. Never one of git's own, nor ours.
///
/// # Errors
///
/// Fails if it is one of these, or if the directory above it is not there.
pub(crate) fn place(process: &Process<'_>, project: &Project, dir: &Path) -> Result<PathBuf> {
    let cwd = process.cwd.clone().unwrap_or_else(|| PathBuf::from("/"));
    let dir = cwd.join(dir);
    let real = if let Ok(real) = std::fs::canonicalize(&dir) {
        real
    } else {
        let (Some(above), Some(name)) = (dir.parent(), dir.file_name()) else {
            return Err(Error::usage("a directory of its own is needed", "name a new one"));
        };
        std::fs::canonicalize(above).map_err(Error::io("find", above))?.join(name)
    };
    let state = std::fs::canonicalize(project.state.dir());
    let is_ours = state.is_ok_and(|state| real.starts_with(state));
    let is_gits = real.components().any(|part| part.as_os_str().eq_ignore_ascii_case(".git"));
    if is_ours || is_gits {
        let path = ui::escape_path(&real);
        return Err(Error::other(format!("`{path}` is no place for files"), "name another one"));
    }
    Ok(real)
}

/// Refuses a directory in which something is.
///
/// # Errors
///
/// Fails if there is, or if it cannot be listed.
pub(crate) fn refuse_full(place: &Path) -> Result<()> {
    match std::fs::read_dir(place) {
        Ok(mut entries) => match entries.next() {
            None => Ok(()),
            Some(_) => Err(Error::other(
                format!("`{}` is not empty", ui::escape_path(place)),
                "name an empty or a new directory",
            )),
        },
        Err(err) if err.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(err) => Err(Error::io("list", place)(err)),
    }
}

/// Makes the directory, for its owner alone, unless it is there.
///
/// # Errors
///
/// Fails if it cannot be made.
pub(crate) fn make(place: &Path) -> Result<()> {
    if place.is_dir() {
        return Ok(());
    }
    let made = std::fs::DirBuilder::new().mode(0o700).create(place);
    made.map_err(Error::io("make the directory", place))
}

/// Every picked path as something that comes back, with the directories on the way.
pub(crate) fn plan(of: CheckpointId, picked: &Picked, files: &Manifest) -> RestorePlan {
    let mut entries: BTreeMap<RelPath, Entry> = BTreeMap::new();
    let mut above = BTreeSet::new();
    for (path, entry) in files.iter().filter(|(path, _)| picked.has(path)) {
        above.extend(path.above().take_while(|dir| !above.contains(dir)).collect::<Vec<_>>());
        entries.insert(path.clone(), *entry);
    }
    for dir in above {
        let entry = files.get(&dir).copied().unwrap_or(Entry::DIRECTORY);
        entries.entry(dir).or_insert(entry);
    }
    let step = |(path, entry)| PlanStep {
        path,
        action: Action::Recreate,
        then: Some(entry),
        now: None,
        author: Author::Unknown,
    };
    RestorePlan::of(of, entries.into_iter().map(step).collect())
}
