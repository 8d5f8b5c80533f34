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
mod model_note;
mod others_versions;
mod outside;
mod prepare;
mod prepared;
mod refs;
mod repositories;
mod revert;
mod version;

pub(crate) use authors::OtherSession;
pub(crate) use bring::Brings;
pub(crate) use brought::StaysInFork;
pub(crate) use choose_state::{NamedState, find_checkpoint, step_named};
pub(crate) use content::{PathContent, bytes_now, bytes_shown, is_state};
pub(crate) use execute::RestoreReport;
pub(crate) use head::{HeadPlan, HeadSince, NestedHead, nested_heads, since as head_since};
pub(crate) use history::{
    BetweenSteps, BlamedLine, FileChange, FileHistory, GitFile, HistoryTurn, LINK_MODE,
    LeftOfSeries, LineWriter, SeriesFiles, SeriesPart, StepChanges, StepGap, StepState,
    StepVersion, TurnSeries, TurnStep, TurnSteps, WriterCandidates, step_numbers,
};
pub(crate) use interrupted::{
    InterruptedRestore, Settled, Toward, before, is_interrupted, resume, retain_steps,
};
pub(crate) use left_out::{left_out, left_out_now, moved, refuse_unknown};
pub(crate) use outside::paths as outside_paths;
pub(crate) use prepared::Prepared;
pub(crate) use repositories::is_ref;

use std::io::Read;

use crate::{
    error::Result,
    model::{Checkpoint, CheckpointId, Content, Entry, Kind},
    plan::{KeepReason, Options, Picked},
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
        self.request.turn().map_or(0, |turn| turn.number)
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
        match self.request.fork() {
            Some(brings) => self.bring(process, prepared, was_asked, brings),
            None => self.execute_plan(process, prepared, was_asked),
        }
    }

    /// Opens a content that its plan puts back.
    fn open_content(self, content: &Content) -> Result<Box<dyn Read>> {
        match self.request.fork() {
            Some(brings) => bring::open_content(self.project, &brings.fork, content),
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
    /// Whether it is about all that a session did since, and not one turn.
    pub(crate) whole_session: bool,
    /// Where it takes the files from.
    pub(crate) source: RestoreSource,
    /// The turn or restore that an undo takes back, in words. Escaped.
    pub(crate) undoes: Option<String>,
}

/// Where a restore takes the files from.
pub(crate) enum RestoreSource {
    /// The checkpoint.
    Checkpoint,
    /// The state right before a step of a turn, told from the checkpoint.
    Step(Box<StepState>),
    /// The checkpoint from before another restore, which is taken back. That one went to the checkpoint
    /// named here, and what it created goes.
    Undone(CheckpointId),
    /// The current state without what a turn did, which the checkpoint begins. What came later stays.
    Turn(RevertedTurn),
    /// A fork, which is brought back. The checkpoint is the one it began with.
    Fork(Box<Brings>),
}

/// A turn that is reverted.
pub(crate) struct RevertedTurn {
    /// Its number in the list.
    pub(crate) number: usize,
}

impl RestoreRequest {
    /// A request for `picked`, with every option off.
    pub(crate) fn of(verb: &'static str, source: RestoreSource, picked: Picked) -> Self {
        Self {
            verb,
            options: Options::default(),
            markers: false,
            picked,
            index: false,
            outside: false,
            head: false,
            repository: false,
            whole_session: false,
            source,
            undoes: None,
        }
    }

    /// The step, if the files right before one are restored.
    pub(crate) fn step(&self) -> Option<&StepState> {
        let RestoreSource::Step(step) = &self.source else { return None };
        Some(step)
    }

    /// Where a restore went that is taken back.
    pub(crate) fn undone(&self) -> Option<CheckpointId> {
        let RestoreSource::Undone(of) = self.source else { return None };
        Some(of)
    }

    /// Why something cannot be put where something that is no step of its plan is in the way.
    pub(super) fn in_the_way(&self) -> KeepReason {
        match self.source {
            RestoreSource::Turn(_) => KeepReason::BuiltOn,
            RestoreSource::Fork(_) => KeepReason::BothChanged,
            RestoreSource::Checkpoint | RestoreSource::Step(_) | RestoreSource::Undone(_) => {
                KeepReason::Changed
            }
        }
    }

    /// The turn, if one is reverted.
    pub(crate) fn turn(&self) -> Option<&RevertedTurn> {
        let RestoreSource::Turn(turn) = &self.source else { return None };
        Some(turn)
    }

    /// The fork, if one is brought back.
    pub(crate) fn fork(&self) -> Option<&Brings> {
        let RestoreSource::Fork(brings) = &self.source else { return None };
        Some(brings)
    }
}
