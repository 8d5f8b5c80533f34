//! Executes a plan: holds what it overwrites, writes the restore log, and applies it.

use std::{
    collections::BTreeMap,
    io,
    path::{Path, PathBuf},
};

use super::{
    Restore, RestoreRequest, RestoreSource,
    comparison::is_out_of_reach,
    head, hold, model_note,
    prepared::Prepared,
    refs::{self, RefsPlan},
    repositories::keeps_own,
};
use crate::{
    apply::{self, ApplyOutcome, Missed},
    attribution::{self, LogEvent, LogLine, PathSide, PathState},
    crash,
    error::{Error, Result},
    fs::{Dir, c_name},
    model::{CheckpointId, Content, Entry, Kind, RelPath},
    plan::{Action, Merged, PlanStep, RestorePlan},
    process::Process,
    project::Project,
    restore_log::RestoreLog,
    scan::Scan,
    store::{
        IndexOutcome, RepositoryStep,
        record::Record,
        repository::{self, Ends, LostRepository, SetAside},
    },
    ui,
};

/// What came of a restore.
pub(crate) struct RestoreReport {
    /// What came of the files, and of repositories.
    pub(crate) outcome: ApplyOutcome,
    /// What came of git's index, where it was to be restored.
    pub(crate) index: Option<Result<IndexOutcome>>,
    /// The checkpoint that holds what was overwritten; `None` if there was nothing to do.
    pub(crate) held: Option<CheckpointId>,
    /// Whether the restore is over. If not, it can be tried again or taken back.
    pub(crate) is_settled: bool,
    /// Whether the branch was to move and did not, because it had just moved.
    pub(crate) head_stayed: bool,
    /// Branches, tags and stashes that could not be made again.
    pub(crate) refs_left: Vec<LostRepository>,
    /// Branches, tags and stashes that were to be removed and stay.
    pub(crate) refs_stay: Vec<LostRepository>,
}

impl Restore<'_> {
    /// Carries out a plan. All that it puts back is held.
    pub(super) fn execute_plan(
        self,
        process: &Process<'_>,
        prepared: &mut Prepared,
        was_asked: bool,
    ) -> Result<RestoreReport> {
        let Self { project, request, .. } = self;
        refuse_unseen(project, &prepared.plan, request)?;
        refuse_misplaced(&prepared.plan)?;
        let stored_scan = (!was_asked).then(|| std::mem::take(&mut prepared.stored_scan));
        let prepared = &*prepared;
        // Once the branch is back, the index is that of a HEAD that has not moved.
        let stages = prepared.stages() || request.index && prepared.head.moves.is_some();
        if prepared.is_empty() && !stages {
            return Ok(RestoreReport {
                outcome: ApplyOutcome::default(),
                index: self.stage(prepared),
                held: None,
                is_settled: true,
                head_stayed: false,
                refs_left: Vec::new(),
                refs_stay: Vec::new(),
            });
        }
        let held = self.begin(process, prepared, stored_scan)?;
        let report = self.change(prepared, held)?;
        // The restore is complete even if the note cannot be left.
        let _untold = model_note::leave(self, prepared, &report.outcome);
        Ok(report)
    }

    /// Announces the restore, holds what it overwrites, and writes its log.
    fn begin(
        self,
        process: &Process<'_>,
        prepared: &Prepared,
        stored_scan: Option<Scan>,
    ) -> Result<CheckpointId> {
        let project = self.project;
        let place = project.place();
        hold::announce(project, &place)?;
        crash::point("restore-announced");
        let held = self.hold(process, prepared, stored_scan);
        crash::point("restore-held");
        let begun = held.and_then(|held| self.log(prepared, held).begin(&place).map(|()| held));
        let held = begun.inspect_err(|_| {
            // The next restore tries it again.
            let _nothing_was_changed = hold::call_off(project, &place);
        })?;
        crash::point("restore-begun");
        Ok(held)
    }

    /// Changes what the plan says, and ends the log.
    fn change(self, prepared: &Prepared, held: CheckpointId) -> Result<RestoreReport> {
        let Self { project, checkpoint, .. } = self;
        let (plan, repositories) = (&prepared.plan, &prepared.repositories);
        let seen = |path: &RelPath| prepared.seen.get(path).copied();
        let records = records(project, [held, checkpoint.id]);
        let ends = Ends { held, records: &records };
        let RefsPlan { again: refs_left, gone: refs_stay } =
            refs::execute(project, prepared, held)?;
        crash::point("restore-refs");
        let removed = make_repositories(project, checkpoint.id, &ends, gone(repositories))?;
        let open = |content: &Content| self.open_content(content);
        let mut outcome = apply::run(&project.root, plan, &open, &seen, held)?;
        removed.join(&mut outcome);
        crash::point("restore-head");
        let head_stayed = self.move_head(prepared, held)?;
        crash::point("restore-index");
        let made = make_repositories(project, checkpoint.id, &ends, made(repositories))?;
        made.join(&mut outcome);
        let index = self.stage(prepared);
        // What others did is theirs, wherever it stands.
        let is_others = |step: &&PlanStep| {
            step.action == Action::Merge
                || prepared.others_digests.contains_key(&step.path)
                || prepared.of_step.contains_key(&step.path)
        };
        let below = plan.deeds().filter(|step| !is_others(step));
        let below = below.map(|step| (PathSide::Root, &step.path, step.then));
        let outside = plan.outside.deeds().map(|step| (PathSide::Outside, &step.path, step.then));
        // Outside the project, what is back is as old as the step.
        let step = self.request.step().map(|step| step.at);
        let then = |at: Option<i64>| at.unwrap_or_else(|| checkpoint.taken_ns());
        note_back(project, (then(None), held), &outcome, below)?;
        note_back(project, (then(step), held), &outcome, outside)?;
        let files = plan.merges.iter().chain(&prepared.of_step);
        note_dated(project, &self.dated(prepared), files, (held, &outcome))?;
        note_merged(project, &merged(prepared), held, &plan.merges)?;
        crash::point("restore-end");
        // What failed can be tried again, or all of it taken back, while the log is there. What was
        // changed in this very moment is not ours to change.
        let is_settled = is_settled(&outcome);
        if is_settled {
            RestoreLog::end(&project.place())?;
        }
        let held = Some(held);
        Ok(RestoreReport { outcome, index, held, is_settled, head_stayed, refs_left, refs_stay })
    }

    /// Moves the branch, if it is to move. Whether it had to stay.
    fn move_head(self, prepared: &Prepared, held: CheckpointId) -> Result<bool> {
        let Self { project, checkpoint, request } = self;
        let Some(there) = &prepared.head.moves else { return Ok(false) };
        let why = format!("{} to {}", request.verb, checkpoint.id.short());
        if !head::execute(project, there, &why)? {
            return Ok(true);
        }
        head::note(project, there, held).map(|()| false)
    }

    /// Stages again what was staged in the project's repository.
    fn stage(self, prepared: &Prepared) -> Option<Result<IndexOutcome>> {
        let Self { project, checkpoint, request } = self;
        let stages = request.index && keeps_own(project, &prepared.repositories);
        let git = project.store.git().filter(|_| stages)?;
        Some(git.restore_index(checkpoint.id))
    }

    /// What is to be at each path, unless the tree of the checkpoint says all of it.
    fn ends(self, prepared: &Prepared) -> Vec<(PathBuf, Option<Entry>)> {
        let is_of_tree = match self.request.source {
            RestoreSource::Checkpoint | RestoreSource::Undone(_) => merged(prepared).is_empty(),
            RestoreSource::Step(_) | RestoreSource::Turn(_) | RestoreSource::Fork(_) => false,
        };
        if is_of_tree {
            return Vec::new();
        }
        let plan = &prepared.plan;
        let below = plan.deeds().map(|step| (step.path.as_path().to_owned(), step.then));
        let outside = plan.outside.deeds().map(|step| (step.path.at_top(), step.then));
        below.chain(outside).collect()
    }

    /// Merged files that are then as they were at one time, with that time in nanoseconds since 1970: from before a
    /// step, or chosen parts with no other author's work in them. A later restore to the same checkpoint may then put
    /// back the rest of those.
    fn dated(self, prepared: &Prepared) -> Vec<(RelPath, i64)> {
        let then = self.checkpoint.taken_ns();
        let is_own = |path: &RelPath| {
            let step = prepared.plan.steps.iter().find(|step| step.path == *path);
            prepared.parts.contains(path) && step.is_some_and(|step| !step.author.is_another())
        };
        let parts = prepared.plan.merges.keys().filter(|path| is_own(path));
        let parts = parts.map(|path| (path.clone(), then));
        let before_step = self
            .request
            .step()
            .into_iter()
            .flat_map(|step| prepared.of_step.keys().map(move |path| (path.clone(), step.at)));
        parts.chain(before_step).collect()
    }

    fn log(self, prepared: &Prepared, held: CheckpointId) -> RestoreLog {
        let Self { project, checkpoint, request } = self;
        let plan = &prepared.plan;
        RestoreLog {
            of: checkpoint.id,
            held,
            verb: request.verb.to_owned(),
            index: request.index,
            paths: plan.deeds().map(|step| step.path.clone()).collect(),
            merged: merged(prepared),
            merges: plan.merges.clone().into_iter().chain(prepared.of_step.clone()).collect(),
            dated: self.dated(prepared),
            ends: self.ends(prepared),
            outside: plan.outside.deeds().map(|step| step.path.at_top()).collect(),
            closed: apply::closed(&project.root, plan),
            head: prepared.head.moves.clone().map(|head| [head.branch, head.from, head.to]),
            repository: request.repository,
            repositories: prepared.repositories.iter().map(|step| step.place.clone()).collect(),
            brings: prepared.brought.as_ref().and_then(|brought| brought.of.clone()),
        }
    }
}

/// Refuses a plan that could only be carried out in part.
pub(super) fn refuse_misplaced(plan: &RestorePlan) -> Result<()> {
    let Some(step) = plan.misplaced() else { return Ok(()) };
    Err(Error::other(
        format!("`{}` is to be put where no directory will be", ui::escape(step.path.as_bytes())),
        "nothing was changed; this is a bug: please report it with the output of `--dry-run`",
    ))
}

/// Those that are removed, which is done before anything else: what they lie in may have to go.
pub(super) fn gone(steps: &[RepositoryStep]) -> impl Iterator<Item = &RepositoryStep> {
    steps.iter().filter(|step| step.is_removal())
}

/// Those that come back, which is done last: what they lie in is there then.
pub(super) fn made(steps: &[RepositoryStep]) -> impl Iterator<Item = &RepositoryStep> {
    steps.iter().filter(|step| !step.is_removal())
}

/// Whether nothing is left that could be tried again.
pub(super) fn is_settled(outcome: &ApplyOutcome) -> bool {
    outcome.missed.iter().all(|missed| missed.is_final)
}

/// What came of making repositories again.
#[derive(Default)]
pub(super) struct RebuiltRepositories {
    /// Those of which something is damaged, and which stay as they are.
    missed: Vec<Missed>,
    /// What stood at the places of others and is held nowhere.
    pub(super) aside: Vec<SetAside>,
}

impl RebuiltRepositories {
    /// Adds it to what came of the files.
    pub(super) fn join(self, outcome: &mut ApplyOutcome) {
        outcome.missed.extend(self.missed);
        outcome.set_aside.extend(self.aside.into_iter().map(|aside| (aside.place, aside.now)));
    }
}

/// The records of the checkpoints a restore goes between, as far as they can be read.
pub(super) fn records(project: &Project, ends: [CheckpointId; 2]) -> Vec<Record> {
    ends.into_iter().filter_map(|id| project.record_of(id).ok()).collect()
}

/// Makes repositories again as a checkpoint holds them.
pub(super) fn make_repositories<'a>(
    project: &Project,
    id: CheckpointId,
    ends: &Ends<'_>,
    steps: impl Iterator<Item = &'a RepositoryStep>,
) -> Result<RebuiltRepositories> {
    let mut made = RebuiltRepositories::default();
    let mut steps = steps.peekable();
    if steps.peek().is_none() {
        return Ok(made);
    }
    let record = project.record_of(id)?;
    for step in steps {
        match repository::carry_out(&project.state, project.root.path(), &record, step, ends) {
            Err(err @ Error::Damaged { .. }) => {
                let (path, why) = (step.target(), err.to_string());
                made.missed.push(Missed { path, why, is_final: true });
            }
            aside => made.aside.extend(aside?),
        }
    }
    Ok(made)
}

/// What is put where others were at work, and is not what the checkpoint has there.
fn merged(prepared: &Prepared) -> Vec<(RelPath, String)> {
    let merges = prepared.plan.merges.iter().chain(&prepared.of_step);
    let merges = merges.map(|(path, it)| (path.clone(), attribution::digest(&it.bytes)));
    merges
        .chain(prepared.others_digests.iter().map(|(path, sha)| (path.clone(), sha.clone())))
        .collect()
}

/// One restore that puts more back is not noted path by path.
const BACK_MAX: usize = 5_000;

/// Notes what is again as it was at a time, in nanoseconds since 1970, so that it has the author it had then.
pub(super) fn note_back<'a>(
    project: &Project,
    (then, held): (i64, CheckpointId),
    outcome: &ApplyOutcome,
    back: impl Iterator<Item = (PathSide, &'a RelPath, Option<Entry>)>,
) -> Result<()> {
    let missed = outcome.missed_paths();
    let back = back.filter(|(side, path, _)| match side {
        PathSide::Root => !missed.contains(path.as_path()),
        PathSide::Outside => !missed.contains(&*path.at_top()),
    });
    let line = |(side, path, entry): (PathSide, &RelPath, Option<Entry>)| {
        let state = entry.as_ref().map(PathState::of);
        let (path, held) = (side.text(path), Some(held.to_string()));
        LogLine::of_restore(LogEvent::Back { path, state, then, held })
    };
    let lines: Vec<LogLine> = back.take(BACK_MAX).map(line).collect();
    attribution::append(&project.place(), &lines)
}

/// Notes merged files that are again as they were at a time, in nanoseconds since 1970. `files` has their contents.
pub(super) fn note_dated<'a>(
    project: &Project,
    dated: &[(RelPath, i64)],
    files: impl Iterator<Item = (&'a RelPath, &'a Merged)>,
    (held, outcome): (CheckpointId, &ApplyOutcome),
) -> Result<()> {
    let files: BTreeMap<&RelPath, &Merged> = files.collect();
    let missed = outcome.missed_paths();
    let line = |(path, then): &(RelPath, i64)| {
        let merged = files.get(path).filter(|_| !missed.contains(path.as_path()))?;
        let (permissions, sha) = (merged.permissions, Some(attribution::digest(&merged.bytes)));
        let state = Some(PathState { kind: Kind::File.mode_bits(), permissions, id: None, sha });
        let (path, held) = (PathSide::Root.text(path), Some(held.to_string()));
        Some(LogLine::of_restore(LogEvent::Back { path, state, then: *then, held }))
    };
    let lines: Vec<LogLine> = dated.iter().filter_map(line).take(BACK_MAX).collect();
    attribution::append(&project.place(), &lines)
}

/// Notes what was merged, so that undoing it knows its own. `files` has the contents.
pub(super) fn note_merged(
    project: &Project,
    merged: &[(RelPath, String)],
    held: CheckpointId,
    files: &BTreeMap<RelPath, Merged>,
) -> Result<()> {
    let line = |(path, sha): &(RelPath, String)| {
        let (path, held) = (attribution::path_text(path), held.to_string());
        LogLine::of_restore(LogEvent::Merged { path, held, sha: sha.clone() })
    };
    let lines: Vec<LogLine> = merged.iter().map(line).collect();
    let place = project.place();
    // Without them it is only not known what they were.
    let _not_kept = attribution::keep_merged(&place, held, files.values().map(|it| &it.bytes[..]));
    attribution::append(&place, &lines)
}

/// Refuses an undo or redo that would have to leave something for a reason that may pass.
///
/// An undo that is done in part counts as done, and no command would undo the rest. So if a path may be readable
/// in a moment, the whole undo waits. If the system forbids it for good, the undo names the
/// path and leaves it.
fn refuse_unseen(project: &Project, plan: &RestorePlan, request: &RestoreRequest) -> Result<()> {
    if matches!(request.verb, "restore" | "revert" | "keep") {
        return Ok(());
    }
    // What is merely left out could be looked at, and stays left out.
    let is_unseen = |step: &&PlanStep| step.unseen().is_some_and(is_out_of_reach);
    let below = plan.steps.iter().filter(is_unseen).map(|step| project.root.join(&step.path));
    let outside = plan.outside.steps.iter().filter(is_unseen);
    let unseen = below.chain(outside.map(|step| step.path.at_top()));
    let Some(path) = may_pass(unseen, is_forbidden) else { return Ok(()) };
    let path = path.strip_prefix(project.root.path()).unwrap_or(&path);
    let (path, id) = (ui::escape_path(path), plan.of.short());
    Err(Error::other(
        format!("cannot look at what is at `{path}` now"),
        format!(
            "nothing was changed; run this again, or `{}beforehand restore {id}` for the rest of it",
            project.cd_prefix()
        ),
    ))
}

/// The first path that cannot be looked at just now.
fn may_pass(
    mut unseen: impl Iterator<Item = PathBuf>,
    is_forbidden: impl Fn(&Path) -> bool,
) -> Option<PathBuf> {
    unseen.find(|path| !is_forbidden(path))
}

/// Whether the system's permissions are what keeps us from looking.
fn is_forbidden(path: &Path) -> bool {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { return false };
    let open = || -> io::Result<()> {
        let (parent, name) = (Dir::open(parent)?, c_name(name.as_encoded_bytes())?);
        match parent.stat_child(&name)?.kind() {
            Some(Kind::Directory) => parent.open_child(&name).map(|_| ()),
            Some(Kind::File) => parent.open_file(&name).map(|_| ()),
            _ => Ok(()),
        }
    };
    open().is_err_and(|err| err.kind() == io::ErrorKind::PermissionDenied)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_forbidden_for_good_may_stay() {
        let unseen = || ["a", "b"].map(PathBuf::from).into_iter();
        assert_eq!(may_pass(unseen(), |_| true), None);
        assert_eq!(may_pass(unseen(), |path| path == Path::new("a")), Some("b".into()));
    }
}
