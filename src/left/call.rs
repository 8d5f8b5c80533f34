//! Notes a call of an agent when it begins, and what it left when it is done.

use std::path::Path;

use super::{Line, What, after_edit, after_shell, append, author, path_text};
use crate::{
    error::Result,
    model::{CheckpointId, Intent, Reach, RelPath, Root, Scope, Settings, ToolCall},
    process::Process,
    state::{State, hash_name},
};

/// Notes that a call begins which `of` covers.
///
/// # Errors
///
/// Fails if the log cannot be written.
pub fn begins(
    process: &Process<'_>,
    state: &State,
    call: &ToolCall,
    reach: &Reach,
    of: CheckpointId,
    cwd: &Path,
) -> Result<()> {
    if reach.scope == Scope::Named {
        return Ok(());
    }
    let paths = paths(call, &reach.root, cwd).map(|paths| paths.iter().map(path_text).collect());
    let what = What::Began { of: of.to_string(), call: name(call), paths };
    let by = author(call.context.agent, &call.context.session);
    append(&state.root(&reach.root), &[Line { at: at(process), by, what }])
}

/// Notes what a call left in `root`, of which its turn has the checkpoint `of`.
///
/// # Errors
///
/// Fails if the root cannot be read, or the log not written.
pub fn ended(
    process: &Process<'_>,
    state: &State,
    settings: &Settings,
    call: &ToolCall,
    root: &Root,
    of: CheckpointId,
    cwd: &Path,
) -> Result<()> {
    let by = author(call.context.agent, &call.context.session);
    match paths(call, root, cwd) {
        Some(paths) => after_edit(at(process), state, root, &by, &name(call), &paths),
        None => after_shell(process, state, settings, root, &by, &name(call), of),
    }
}

/// The paths of a root that an edit names, there or not; `None` for a call that may change any.
fn paths(call: &ToolCall, root: &Root, cwd: &Path) -> Option<Vec<RelPath>> {
    let (Intent::Write(paths) | Intent::Edit(paths)) = &call.intent else { return None };
    Some(paths.iter().filter_map(|path| below(&cwd.join(path), root)).collect())
}

/// A path as the root has it, though its directory may be reached through a link.
fn below(path: &Path, root: &Root) -> Option<RelPath> {
    let physical = || Some(std::fs::canonicalize(path.parent()?).ok()?.join(path.file_name()?));
    root.relative(path).ok().or_else(|| root.relative(&physical()?).ok())
}

/// What this very call is called: the agent's own name for it or, without one, what it is about.
fn name(call: &ToolCall) -> String {
    match &call.id {
        Some(id) => hash_name(&[id.as_bytes()]),
        None => hash_name(&[call.tool.as_bytes(), format!("{:?}", call.intent).as_bytes()]),
    }
}

/// When we are called, as checkpoints have it.
pub(super) fn at(process: &Process<'_>) -> i64 {
    process.now.timestamp_nanos_opt().unwrap_or(i64::MAX)
}
