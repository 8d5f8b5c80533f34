//! The start and the end of a session or a turn: no call waits for the hook then, so it starts the
//! background work.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use super::place::working_directory;
use crate::{
    agent::Dialect,
    config,
    maintenance::{self, warm::Edge},
    model::{CallContext, CheckpointId, SessionEnd},
    process::Process,
};

/// A session begins: its first call shall find everything looked at.
pub(super) fn on_session_begin(process: &Process<'_>, dialect: &Dialect, context: &CallContext) {
    let cwd = working_directory(process, context);
    let settings = config::load(process, Some(&cwd)).settings;
    if !settings.enabled || !settings.triggers.session_start {
        return start_maintenance(process, context);
    }
    // It runs maintenance as well, if that is due: one process is enough.
    maintenance::warm::start(process, dialect.name, &context.session, &cwd, Edge::Begins);
}

/// A turn begins. What was done since the one before it ended is looked at while the model thinks.
/// `roots` are those that one worked in.
pub(super) fn on_turn_begin(
    process: &Process<'_>,
    dialect: &Dialect,
    context: &CallContext,
    roots: &BTreeMap<PathBuf, CheckpointId>,
) {
    for root in roots.keys() {
        warm(process, dialect, context, root, Edge::Begins);
    }
}

/// A turn ends. What it left is looked at before a person goes on with it, so that a revert of the turn
/// knows it. `roots` are those it worked in.
pub(super) fn on_turn_end(
    process: &Process<'_>,
    dialect: &Dialect,
    context: &CallContext,
    roots: &BTreeMap<PathBuf, CheckpointId>,
) {
    for root in roots.keys() {
        let Ok(state) = config::state(process, Some(root)) else { continue };
        if maintenance::warm::is_cold(&state, root) {
            warm(process, dialect, context, root, Edge::Ended);
        }
    }
}

fn warm(process: &Process<'_>, dialect: &Dialect, context: &CallContext, root: &Path, edge: Edge) {
    let settings = config::load(process, Some(root)).settings;
    if settings.enabled && settings.triggers.session_start {
        maintenance::warm::start(process, dialect.name, &context.session, root, edge);
    }
}

/// Sees whether the limits want keeping.
pub(super) fn start_maintenance(process: &Process<'_>, context: &CallContext) {
    let cwd = working_directory(process, context);
    let settings = config::load(process, Some(&cwd)).settings;
    // Where nothing was ever saved there is nothing to keep.
    if let Ok(state) = config::state(process, Some(&cwd))
        && settings.enabled
        && state.dir().is_dir()
    {
        maintenance::start_if_due(process, &state, &settings);
    }
}

/// What becomes of the checkpoints of a session that is over.
pub(super) fn on_session_end(process: &Process<'_>, dialect: &Dialect, context: &CallContext) {
    let cwd = working_directory(process, context);
    let settings = config::load(process, Some(&cwd)).settings;
    if settings.on_session_end == SessionEnd::Keep {
        return start_maintenance(process, context);
    }
    if let Ok(state) = config::state(process, Some(&cwd))
        && state.dir().is_dir()
    {
        maintenance::start_after_session(
            process, &state, &settings, dialect.name, &context.session,
        );
    }
}
