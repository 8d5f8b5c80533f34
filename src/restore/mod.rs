//! The restore engine: from a request to a plan, and from a plan to files, index, branch and
//! repositories. It holds everything that it overwrites first, and never prints.

mod authors;
mod bring;
mod brought;
mod choose_state;
mod comparison;
mod content;
pub(crate) mod elsewhere;
mod execute;
mod head;
mod history;
mod hold;
mod interrupted;
mod left_out;
mod merge;
mod mid_turn;
mod model_note;
mod outside;
mod prepare;
mod repositories;
mod revert;
mod unreadable;
mod version;

pub(crate) use bring::Brings;
pub(crate) use brought::StaysInFork;
pub(crate) use choose_state::{NamedState, find_checkpoint, step_named};
pub(crate) use content::{Displayed, bytes_now, bytes_shown, is_state};
pub(crate) use execute::RestoreReport;
pub(crate) use head::{HeadPlan, HeadSince, NestedHead, nested_heads, since as head_since};
pub(crate) use history::{
    BlamedLine, FileChange, FileHistory, GitFile, HistoryTurn, LINK_MODE, LineWriter, SeriesFiles,
    SeriesPart, StepChanges, StepGap, StepState, TurnSeries, TurnStep, TurnSteps, WriterCandidates,
    step_numbers,
};
pub(crate) use interrupted::{
    InterruptedRestore, Settled, Toward, before, is_interrupted, resume, retain_steps,
};
pub(crate) use left_out::{left_out, left_out_now, moved, refuse_unknown};
pub(crate) use outside::paths as outside_paths;
pub(crate) use prepare::Prepared;
pub(crate) use repositories::is_ref;

use std::io::Read;

use crate::{
    attribution::TurnCalls,
    error::Result,
    model::{Checkpoint, CheckpointId, Content, Entry, Kind},
    plan::{Options, Picked},
    process::Process,
    project::Project,
};

/// One restore: of which project, to which checkpoint, and how.
#[derive(Clone, Copy)]
pub(crate) struct Restore<'a> {
    /// The project.
    pub(crate) project: &'a Project,
    /// Where it goes to.
    pub(crate) checkpoint: &'a Checkpoint,
    /// What the user asked for.
    pub(crate) request: &'a RestoreRequest,
}

impl Restore<'_> {
    /// The number of the turn that is reverted.
    pub(crate) fn turn_number(self) -> usize {
        self.request.reverts.as_ref().map_or(0, |turn| turn.number)
    }

    /// Plans a restore of what is there now.
    ///
    /// # Errors
    ///
    /// Fails if the checkpoint or the root cannot be read, and where the request asks for what
    /// cannot be.
    pub(crate) fn prepare(self, process: &Process<'_>) -> Result<Prepared> {
        match &self.request.brings {
            Some(brings) => self.prepare_brought(process, brings),
            None => self.prepare_restore(process),
        }
    }

    /// Carries out what was prepared. The restore lock of the root must be held.
    ///
    /// Announces the restore, holds all that it overwrites or removes, writes the restore log, and
    /// then changes files, branch, index and repositories. `was_asked` tells that a person took the
    /// time to answer since the plan was made, so what is there is looked at again.
    ///
    /// # Errors
    ///
    /// Fails before anything is changed if not all of it can be held. A path that cannot be restored
    /// is no error: it is in the report.
    pub(crate) fn execute(
        self,
        process: &Process<'_>,
        prepared: &mut Prepared,
        was_asked: bool,
    ) -> Result<RestoreReport> {
        match &self.request.brings {
            Some(brings) => self.bring(process, prepared, was_asked, brings),
            None => self.execute_plan(process, prepared, was_asked),
        }
    }

    /// Opens a content that its plan puts back.
    fn open_content(self, content: &Content) -> Result<Box<dyn Read>> {
        match &self.request.brings {
            Some(brings) => brings.open_content(self.project, content),
            None => self.project.store.open(content),
        }
    }

    /// The bytes of a file that its plan puts back, unless it is large.
    pub(crate) fn bytes_put(self, entry: &Entry) -> Option<Vec<u8>> {
        let content = entry.content.filter(|_| entry.kind == Kind::File)?;
        content::limited(self.open_content(&content).ok()?)
    }
}

/// What a restore is to do.
#[expect(clippy::struct_excessive_bools, reason = "each is a wish of its own")]
pub(crate) struct RestoreRequest {
    /// The word that led to it: `restore`, `revert`, `keep`, `undo` or `redo`.
    pub(crate) verb: &'static str,
    /// What the user said about what others did since.
    pub(crate) options: Options,
    /// Whether conflicts of a merge are written down between marks.
    pub(crate) markers: bool,
    /// The part of the root it is about.
    pub(crate) picked: Picked,
    /// Whether the index is restored as well.
    pub(crate) index: bool,
    /// Whether what lies outside the root is put back as well.
    pub(crate) outside: bool,
    /// Whether the branch HEAD is on is taken back as well.
    pub(crate) head: bool,
    /// Whether the repository is made as it was, though it is whole. One that is gone, broken or
    /// another one is in any case.
    pub(crate) repository: bool,
    /// When a restore is taken back: the checkpoint it went to. What that restore created goes.
    pub(crate) of_restore: Option<CheckpointId>,
    /// The files right before a step, when it goes there and not to the checkpoint.
    pub(crate) step: Option<StepState>,
    /// The turn that is taken back, when what came after it stays.
    pub(crate) reverts: Option<RevertedTurn>,
    /// The fork that is brought back.
    pub(crate) brings: Option<Brings>,
}

/// A turn that is reverted.
pub(crate) struct RevertedTurn {
    /// Its number in the list.
    pub(crate) number: usize,
    /// Its calls.
    pub(crate) calls: TurnCalls,
}

impl RestoreRequest {
    /// Whether a turn is taken back, and nothing but what was done in it.
    fn is_of_turn(&self) -> bool {
        self.verb == "undo" && self.of_restore.is_none()
    }

    /// Whether all of the root goes back to what a turn or a person left, not to before a restore.
    fn is_of_all(&self) -> bool {
        self.picked == Picked::All && self.of_restore.is_none()
    }
}
