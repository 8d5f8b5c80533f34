//! A restore that is announced but has not begun. Its before-restore checkpoint counts only once the
//! restore log exists.

use crate::{
    crash,
    error::Result,
    model::CheckpointId,
    project::Project,
    restore_log::{Announced, RestoreLog},
    state::RootState,
};

/// Writes down that a restore is coming, before its checkpoint is taken.
pub(super) fn announce(project: &Project, place: &RootState) -> Result<()> {
    let newest = project.store.list()?.iter().map(|checkpoint| checkpoint.sequence).max();
    Announced { after: newest.unwrap_or(0) }.announce(place)
}

/// Takes back an announced restore that cannot begin.
pub(super) fn call_off(project: &Project, place: &RootState) -> Result<()> {
    if let Some(log) = RestoreLog::read(place)? {
        // It has its name, though it is not known to be on the disk. While it is there it needs
        // its checkpoint.
        let all = project.store.list()?;
        let held = all.iter().find(|checkpoint| checkpoint.id == log.held);
        let Some(held) = held else { return Ok(()) };
        Announced { after: held.sequence.saturating_sub(1) }.announce(place)?;
    }
    drop_announced(project, place)
}

/// Removes what is left of a restore that was announced and never began: its checkpoint, which
/// would count as a step that was done, and then the announcement. The restore lock must be held.
pub(super) fn drop_announced(project: &Project, place: &RootState) -> Result<()> {
    let Some(announced) = Announced::read(place)? else { return Ok(()) };
    let all = project.store.list()?;
    let took = all.iter().filter(|checkpoint| announced.took(checkpoint));
    let ids: Vec<CheckpointId> = took.map(|checkpoint| checkpoint.id).collect();
    if !ids.is_empty() {
        project.store.remove(&ids)?;
    }
    crash::point("restore-called-off");
    RestoreLog::end(place)
}
