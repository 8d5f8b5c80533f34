//! Finds what the user names: a checkpoint, or the files right before a step of a turn.

use std::collections::BTreeMap;

use super::{RestoreSource, StepGap, StepState, TurnSteps};
use crate::{
    error::{Error, Result},
    model::{Checkpoint, ContentId, RelPath, Selector, Tree},
    process::Process,
    project::{LaterTurns, Project},
    ui,
};

/// What the user named.
pub(crate) struct NamedState {
    /// The checkpoint; for a step, the one that its files are told from.
    pub(crate) checkpoint: Checkpoint,
    /// The files right before a step that has no checkpoint of its own.
    pub(crate) step: Option<StepState>,
}

impl NamedState {
    /// Finds what `given` names.
    ///
    /// # Errors
    ///
    /// Fails if there is nothing of that name, or if what was there before a step is not known.
    pub(crate) fn find(process: &Process<'_>, project: &Project, given: &str) -> Result<Self> {
        let Some((turn, number)) = step_of(given) else {
            return project.find(given).map(|checkpoint| Self { checkpoint, step: None });
        };
        let turn = turn_of(project, turn, given)?;
        let step = turn.step(number)?;
        if let Some(checkpoint) = turn.checkpoint(step) {
            return Ok(Self { checkpoint, step: None });
        }
        let state = turn.state(process, step)?;
        Ok(Self { checkpoint: state.base.clone(), step: Some(state) })
    }

    /// Its files.
    ///
    /// # Errors
    ///
    /// Fails if they cannot be read.
    pub(crate) fn tree(&self, project: &Project) -> Result<Tree> {
        match &self.step {
            Some(state) => Ok(state.then.tree.clone()),
            None => project.tree_of(&self.checkpoint, LaterTurns::Gone).map(|then| then.tree),
        }
    }

    /// The checkpoint, and where a restore of this state takes the files from.
    pub(crate) fn into_source(self) -> (Checkpoint, RestoreSource) {
        let step = self.step.map(|step| RestoreSource::Step(Box::new(step)));
        (self.checkpoint, step.unwrap_or(RestoreSource::Checkpoint))
    }

    /// The bytes that no checkpoint holds, for [`Project::holding`].
    pub(crate) fn contents(&self) -> BTreeMap<ContentId, Vec<u8>> {
        self.step.as_ref().map(|state| state.contents.clone()).unwrap_or_default()
    }

    /// The paths of which it is not known what was there, and why.
    pub(crate) fn gaps(&self) -> impl Iterator<Item = (&RelPath, StepGap)> {
        self.step.iter().flat_map(|state| &state.gaps).map(|(path, gap)| (path, *gap))
    }
}

/// Finds the checkpoint that `given` names, also by a step that it was taken before.
///
/// # Errors
///
/// Fails if there is none.
pub(crate) fn find_checkpoint(project: &Project, given: &str) -> Result<Checkpoint> {
    let Some((turn, number)) = step_of(given) else { return project.find(given) };
    let turn = turn_of(project, turn, given)?;
    let step = turn.step(number)?;
    turn.checkpoint(step).ok_or_else(|| {
        let given = ui::escape(given.as_bytes());
        Error::other(
            format!("step {given} has no checkpoint of its own"),
            format!("`beforehand show {given}`, `diff` and `restore` take it"),
        )
    })
}

fn turn_of<'a>(project: &'a Project, turn: usize, given: &str) -> Result<TurnSteps<'a>> {
    TurnSteps::of(project, turn).map_err(|err| match err {
        Error::NoSuchCheckpoint { .. } => Error::NoSuchCheckpoint { given: given.to_owned() },
        err => err,
    })
}

/// The turn and the step in `N.K`, where the step is not the first: that begins where the turn does.
fn step_of(given: &str) -> Option<(usize, usize)> {
    step_named(given).filter(|(_, step)| *step > 1)
}

/// The turn and the step in `N.K`.
pub(crate) fn step_named(given: &str) -> Option<(usize, usize)> {
    match given.parse() {
        Ok(Selector::Number(turn, step)) if given.contains('.') => {
            Some((turn as usize, step as usize))
        }
        Ok(_) | Err(_) => None,
    }
}
