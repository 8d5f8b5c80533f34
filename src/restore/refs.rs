//! The branches, tags and stashes that a restore makes again or removes.

use std::path::Path;

use super::{Restore, RestoreSource, Toward, prepared::Prepared};
use crate::{
    attribution::{self, LogEvent, LogLine, PathSide, RefsChange},
    error::Result,
    model::{CheckpointId, RelPath},
    project::Project,
    store::{
        self,
        repository::{self, LostRef, LostRepository},
    },
};

/// The refs that a restore changes, by repository.
#[derive(Default)]
pub(super) struct RefsPlan {
    /// Those that it makes.
    pub(super) again: Vec<LostRepository>,
    /// Those that it removes.
    pub(super) gone: Vec<LostRepository>,
}

impl Restore<'_> {
    /// Plans the refs: an undo of a turn makes those again that the turn deleted, and takes them out of `lost`; if a
    /// restore is taken back, the refs that it made go, and those that it removed come back.
    ///
    /// # Errors
    ///
    /// Fails if the checkpoints cannot be read.
    pub(super) fn plan_refs(self, lost: &mut Vec<LostRepository>) -> Result<RefsPlan> {
        match self.request.source {
            RestoreSource::Checkpoint if self.request.verb == "undo" => {
                let again = self.deleted_by_turn(lost)?;
                Ok(RefsPlan { again, gone: Vec::new() })
            }
            RestoreSource::Undone(_) => Ok(taken_back(self.project, self.checkpoint.id)),
            _ => Ok(RefsPlan::default()),
        }
    }

    /// Takes the refs that the turn deleted out of `lost`. Those that the first checkpoint after the turn still has
    /// were deleted later.
    fn deleted_by_turn(self, lost: &mut Vec<LostRepository>) -> Result<Vec<LostRepository>> {
        let project = self.project;
        let mut again = lost.clone();
        if let Some(after) = self.first_after_turn()? {
            let record = project.record_of(after.id)?;
            let later = repository::lost(&project.state, project.root.path(), &record);
            for lost in &mut again {
                lost.retain_but(&later);
            }
        }
        for gone in &mut again {
            gone.staged.clear();
            store::retain_with_objects(gone);
        }
        again.retain(|lost| !lost.has_all_refs());
        for gone in lost.iter_mut() {
            gone.retain_but(&again);
        }
        lost.retain(|lost| !lost.has_all_refs() || !lost.staged.is_empty());
        Ok(again)
    }
}

/// The refs that the restore with the before-restore checkpoint `held` removed, to be made again, and those that it
/// made, to be removed, as far as nobody changed them since.
fn taken_back(project: &Project, held: CheckpointId) -> RefsPlan {
    let mut plan = RefsPlan::default();
    for RefsChange { place, made, removed, stashes } in
        attribution::refs_changed(&project.place(), held)
    {
        let mut again = of_refs(&place, removed, Vec::new());
        store::retain_with_objects(&mut again);
        let mut gone = of_refs(&place, made, stashes);
        store::retain_unchanged(&mut gone);
        plan.again.extend((!again.has_all_refs()).then_some(again));
        plan.gone.extend((!gone.has_all_refs()).then_some(gone));
    }
    plan
}

fn of_refs(place: &Path, refs: Vec<(String, String)>, stashes: Vec<String>) -> LostRepository {
    let refs = refs.into_iter().map(|(name, id)| LostRef { name, id }).collect();
    LostRepository { place: place.to_owned(), refs, stashes, staged: Vec::new() }
}

/// Makes and removes refs as planned. Returns those that could not be made, and those that stay.
///
/// # Errors
///
/// Fails if the log cannot be written; then no ref is changed.
pub(super) fn execute(
    project: &Project,
    prepared: &Prepared,
    held: CheckpointId,
) -> Result<RefsPlan> {
    let Prepared { refs_again, refs_gone, .. } = prepared;
    let mut lines = Vec::new();
    for again in refs_again {
        lines.extend(line(held, again, &LostRepository::none(&again.place)));
    }
    for gone in refs_gone {
        lines.extend(line(held, &LostRepository::none(&gone.place), gone));
    }
    attribution::append(&project.place(), &lines)?;
    Ok(carry_out(refs_again, refs_gone))
}

/// Takes the refs of an interrupted restore to an end.
pub(super) fn settle(project: &Project, held: CheckpointId, toward: Toward) {
    let plan = match toward {
        Toward::Before => taken_back(project, held),
        Toward::After => {
            let mut plan = RefsPlan::default();
            for change in attribution::refs_changed(&project.place(), held) {
                plan.again.push(of_refs(&change.place, change.made, Vec::new()));
                plan.gone.push(of_refs(&change.place, change.removed, Vec::new()));
            }
            plan
        }
    };
    carry_out(&plan.again, &plan.gone);
}

fn carry_out(again: &[LostRepository], gone: &[LostRepository]) -> RefsPlan {
    let mut left = RefsPlan {
        gone: gone.iter().map(store::remove_refs).collect(),
        again: again.iter().map(store::make_refs_again).collect(),
    };
    left.again.retain(|left| !left.has_all_refs());
    left.gone.retain(|left| !left.has_all_refs());
    left
}

fn pairs(lost: &LostRepository) -> Vec<(String, String)> {
    lost.refs.iter().map(|gone| (gone.name.clone(), gone.id.clone())).collect()
}

fn line(held: CheckpointId, made: &LostRepository, removed: &LostRepository) -> Option<LogLine> {
    let place = RelPath::from_top(&made.place).ok()?;
    Some(LogLine::of_restore(LogEvent::Refs {
        held: held.to_string(),
        place: PathSide::Outside.text(&place),
        made: pairs(made),
        removed: pairs(removed),
        stashes: made.stashes.clone(),
    }))
}
