//! Takes and restores a real checkpoint beside the state directory: the only proof that its file system
//! allows all that a checkpoint needs, such as locks, permissions and syncing.

use std::{fs, os::unix::fs::MetadataExt, path::Path};

use super::scratch::{COMMAND, ScratchProject};
use crate::{agent, hook, model::Agent, process::Process, state::StateDir};

/// Takes a checkpoint of a scratch project on the file system of the state, loses its files, and
/// restores them.
///
/// # Errors
///
/// Returns the reason if they did not come back.
pub(super) fn run(process: &Process<'_>, state: &StateDir) -> Result<(), String> {
    let place = state.dir().ancestors().find(|dir| dir.is_dir()).unwrap_or(state.dir());
    let project = ScratchProject::make(place, "trial").map_err(|err| said(&err))?;
    let dialect = agent::by_agent(Agent::ClaudeCode);
    let payload = dialect.trial_payload(&project.root(), COMMAND);
    project.inside(process, payload.as_bytes(), |inner| hook::run(inner, dialect.name));
    project.lose().map_err(|err| said(&err))?;
    project.restore(process)
}

/// An error with its cause.
pub(super) fn said(err: &crate::error::Error) -> String {
    use std::error::Error as _;
    match err.source() {
        Some(source) => format!("{err}: {source}"),
        None => err.to_string(),
    }
}

/// Returns true if a project lies on another file system than the state, so that nothing of it can be
/// linked into the store.
pub(super) fn is_elsewhere(root: &Path, state: &StateDir) -> bool {
    let place = state.dir().ancestors().find(|dir| dir.is_dir()).unwrap_or(state.dir());
    let device = |path: &Path| fs::metadata(path).map(|found| found.dev()).ok();
    device(root).zip(device(place)).is_some_and(|(root, state)| root != state)
}
