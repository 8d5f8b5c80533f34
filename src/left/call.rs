//! Notes a call of an agent when it begins, and what it left when it is done.

use std::path::Path;

use super::{Blast, Line, Since, What, after_edit, after_shell, append, author, path_text, until};
use crate::{
    error::Result,
    model::{CheckpointId, Intent, Reach, RelPath, Root, Scope, ToolCall},
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

/// Notes what a call left in a root, and counts what a command did.
///
/// # Errors
///
/// Fails if the root cannot be read, or the log not written.
pub fn ended(since: Since<'_, '_>, call: &ToolCall, cwd: &Path) -> Result<Option<Blast>> {
    let name = name(call);
    match paths(call, since.root, cwd) {
        Some(paths) => after_edit(since, &name, &paths).map(|()| None),
        None => after_shell(since, Some(&[name])),
    }
}

/// Notes, when a turn ends, what was left by commands of it that nobody saw end, and counts it.
///
/// # Errors
///
/// Fails if the root cannot be read, or the log not written.
pub fn turn_ended(since: Since<'_, '_>, calls: &[String]) -> Result<Option<Blast>> {
    after_shell(since, Some(calls))
}

/// Counts what commands did that nobody saw end, without saying that they did it: people may have
/// worked since.
///
/// # Errors
///
/// Fails if the root cannot be read.
pub fn seen_late(since: Since<'_, '_>) -> Result<Option<Blast>> {
    after_shell(since, None)
}

/// Counts what commands did that nobody saw end, up to the checkpoint before the next call.
///
/// # Errors
///
/// Fails if either checkpoint cannot be read.
pub fn seen_next(since: Since<'_, '_>, next: CheckpointId) -> Result<Option<Blast>> {
    until(since, next)
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
pub fn name(call: &ToolCall) -> String {
    match &call.id {
        Some(id) => hash_name(&[id.as_bytes()]),
        None => hash_name(&[call.tool.as_bytes(), format!("{:?}", call.intent).as_bytes()]),
    }
}

/// When we are called, as checkpoints have it.
pub(super) fn at(process: &Process<'_>) -> i64 {
    process.now.timestamp_nanos_opt().unwrap_or(i64::MAX)
}
