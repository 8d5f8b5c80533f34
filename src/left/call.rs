//! Notes a call of an agent when it begins, and what it left when it is done.

use std::path::Path;

use super::{
    Blast, Line, Since, What, after_edit, after_shell, append, append_again, author, path_text,
    until,
};
use crate::{
    error::Result,
    model::{CheckpointId, Intent, Reach, RelPath, Root, Scope, ToolCall},
    process::Process,
    state::{RootState, hash_name},
};

/// A call that begins.
#[derive(Clone, Copy)]
pub struct Begins<'a> {
    /// Our own files of its root.
    pub place: &'a RootState,
    /// The call.
    pub call: &'a ToolCall,
    /// What it can reach.
    pub reach: &'a Reach,
    /// The checkpoint that covers it.
    pub of: CheckpointId,
    /// The directory it is made in.
    pub cwd: &'a Path,
}

impl Begins<'_> {
    /// Notes it, unless nothing of its root is ever noted.
    ///
    /// # Errors
    ///
    /// Fails if the log cannot be written.
    pub fn note(self, process: &Process<'_>) -> Result<()> {
        if self.reach.scope == Scope::Named {
            return Ok(());
        }
        append(self.place, &[self.line(process)])
    }

    /// Notes it where something was noted before; for a call that is covered, and whose root
    /// nobody has looked at.
    ///
    /// # Errors
    ///
    /// Fails if the log cannot be written.
    pub fn note_again(self, process: &Process<'_>) -> Result<()> {
        append_again(self.place, &[self.line(process)])
    }

    fn line(self, process: &Process<'_>) -> Line {
        let Self { call, reach, of, cwd, .. } = self;
        let paths = paths(call, &reach.root, cwd);
        let paths = paths.map(|paths| paths.iter().map(path_text).collect());
        let what = What::Began { of: of.to_string(), call: name(call), paths };
        Line { at: at(process), by: author(call.context.agent, &call.context.session), what }
    }
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
