//! Every root with checkpoints, wherever the command runs.

use std::path::PathBuf;

use super::Project;
use crate::{
    config as settings,
    error::Result,
    model::{Checkpoint, Root, RootKind, ScanScope},
    process::Process,
    project::real_cwd,
    root,
    state::{RootState, StateDir},
    store::{self, record},
};

/// One root with checkpoints.
pub(crate) struct KnownRoot {
    /// Where it is, or was.
    pub(crate) path: PathBuf,
    /// Our part of it.
    pub(crate) state: RootState,
    /// Whether the directory is there no more.
    pub(crate) gone: bool,
}

/// Every root we know of, by path. One is left out if its place cannot be read: nothing says where
/// it is.
///
/// # Errors
///
/// Fails if they cannot be listed.
pub(crate) fn known(state: &StateDir) -> Result<Vec<KnownRoot>> {
    let mut known = Vec::new();
    for state in record::all_roots(state)? {
        if let Ok(Some(place)) = record::read_location(&state) {
            let gone = !place.path.is_dir();
            known.push(KnownRoot { path: place.path, state, gone });
        }
    }
    known.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(known)
}

impl KnownRoot {
    /// Its checkpoints, newest first. Of a directory that is gone, those that its records name.
    ///
    /// # Errors
    ///
    /// Fails if they cannot be listed.
    pub(crate) fn checkpoints(&self, process: &Process<'_>) -> Result<Vec<Checkpoint>> {
        if self.gone {
            let kept = record::read_all(&self.state)?;
            return Ok(kept.into_iter().map(record::RecordEntry::into_checkpoint).collect());
        }
        self.project(process)?.store.list()
    }

    /// The project at this very root.
    ///
    /// # Errors
    ///
    /// Fails if its store cannot be opened.
    pub(crate) fn project(&self, process: &Process<'_>) -> Result<Project> {
        let path = &self.path;
        let kind = if path.is_dir() { root::kind_of(path) } else { RootKind::Plain { why: None } };
        let root = Root::new(path.clone(), kind);
        let state = settings::state(process, Some(path))?;
        let settings = settings::load(process, Some(path)).settings;
        let store = store::open(&root, &state, settings.store)?;
        let home = process.home();
        let (scope, cwd) = (ScanScope::Whole, real_cwd(process));
        let now = process.now;
        Ok(Project { root, scope, settings, state, store, home, cwd, now, is_gone: false })
    }
}
