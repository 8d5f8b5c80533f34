//! What a row of the picker stands for when something is found out or done about it.

use crate::{
    commands::{Project, restore, revert, steps},
    error::Result,
    ledger,
    model::{Checkpoint, CheckpointId, Tree},
    process::Process,
    restore::{NamedState, Restore, RestoreRequest},
    ui::picker::PickerGoal,
};

/// A turn, or a step of one. Numbers change when a new turn begins, ids do not.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct RewindRow {
    /// The checkpoint with which the turn begins.
    pub(super) id: CheckpointId,
    /// Which step of it, from 1; `None` for the turn itself.
    pub(super) step: Option<usize>,
}

impl RewindRow {
    /// As a command takes it.
    ///
    /// # Errors
    ///
    /// Fails if the turn of a step is not there any more.
    pub(super) fn name(self, project: &Project) -> Result<String> {
        match self.step {
            None => Ok(self.id.to_string()),
            Some(step) => Ok(format!("{}.{step}", self.number(project)?)),
        }
    }

    /// The present number of its turn.
    ///
    /// # Errors
    ///
    /// Fails if it is not there any more.
    pub(super) fn number(self, project: &Project) -> Result<usize> {
        steps::turn_number(project, Some(&self.id.to_string()))
    }
}

/// What is restored to, and how.
pub(super) struct RewindTarget {
    /// The project with what a step found and no checkpoint holds; `None` if that is nothing.
    holding: Option<Project>,
    checkpoint: Checkpoint,
    request: RestoreRequest,
}

impl RewindTarget {
    /// What a choice in the picker asks for.
    ///
    /// # Errors
    ///
    /// Fails if the row is not there any more, what was there before a step is not known, or the turn
    /// cannot be taken back alone.
    pub(super) fn of(
        process: &Process<'_>,
        project: &Project,
        row: RewindRow,
        goal: PickerGoal,
        is_part: bool,
    ) -> Result<Self> {
        if goal == PickerGoal::Turn {
            let (checkpoint, request) = revert::plain_request(process, project, row.id)?;
            return Ok(Self { holding: None, checkpoint, request });
        }
        let found = NamedState::find(process, project, &row.name(project)?)?;
        let holding = holding(process, &found)?;
        let (checkpoint, source) = found.into_source();
        let mut adopted = [checkpoint];
        ledger::adopt(&mut adopted, &ledger::uses(&project.state));
        let [checkpoint] = adopted;
        let request = RestoreRequest { source, ..restore::plain_request(is_part) };
        Ok(Self { holding, checkpoint, request })
    }

    pub(super) fn restore<'a>(&'a self, project: &'a Project) -> Restore<'a> {
        let project = self.holding.as_ref().unwrap_or(project);
        Restore { project, checkpoint: &self.checkpoint, request: &self.request }
    }
}

/// The files right before a step, with a project that can read them.
pub(super) fn state_before(
    process: &Process<'_>,
    project: &Project,
    row: RewindRow,
) -> Result<(Project, Checkpoint, Tree)> {
    let found = NamedState::find(process, project, &row.name(project)?)?;
    let holding = match holding(process, &found)? {
        Some(holding) => holding,
        None => Project::open(process, None)?,
    };
    let tree = found.tree(&holding)?;
    Ok((holding, found.checkpoint, tree))
}

fn holding(process: &Process<'_>, found: &NamedState) -> Result<Option<Project>> {
    let contents = found.contents();
    if contents.is_empty() {
        return Ok(None);
    }
    Project::open(process, None).map(|project| Some(project.holding(contents)))
}
