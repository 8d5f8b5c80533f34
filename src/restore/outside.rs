//! What a restore does outside the root. It plans as it does inside, from `/`.

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::OsStr,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use super::{
    Restore, RestoreSource, Toward,
    authors::{self, Authors, Authorship},
    comparison::{RootComparison, make_executable, unread},
    history::StepState,
    repositories::keep_in_git_dirs,
    revert::{self, TurnEnds},
};
use crate::{
    attribution::{self, Outside, PathSide},
    error::Result,
    fs::stat_path,
    model::{Checkpoint, Entry, Reason, RelPath, Skipped, Tree},
    plan::{self, KeepReason, OutsidePlan, Past, Picked, PlanStep, Unsettled},
    project::Project,
    restore_log::RestoreLog,
    scan::Scan,
};

/// The paths outside that a restore looks at, `then` being what the checkpoint holds.
pub(crate) fn paths(project: &Project, checkpoint: &Checkpoint, then: &Tree) -> BTreeSet<PathBuf> {
    let apart = [project.root.path(), project.state.dir()];
    let skipped = &checkpoint.skipped;
    let absent = match checkpoint.cause.reason {
        // It names all that its restore changed, also where nothing was.
        Reason::BeforeRestore => checkpoint.outside.iter().cloned().collect(),
        Reason::Call | Reason::Net | Reason::Asked => absent(project, checkpoint),
    };
    Outside { then: &then.outside, skipped, absent: &absent, apart: &apart }.paths()
}

/// Where nothing was before the agent of the checkpoint named it.
fn absent(project: &Project, checkpoint: &Checkpoint) -> BTreeSet<PathBuf> {
    let lines = attribution::read(&project.place());
    let known = authors::agent_history(checkpoint, &lines, PathSide::Outside);
    let is_held_out = |path: &Path| {
        let mut left_out =
            checkpoint.skipped.iter().map(|it| Path::new(OsStr::from_bytes(&it.path)));
        left_out.any(|left_out| path.starts_with(left_out))
    };
    let absent = known.absent().map(RelPath::at_top);
    absent.filter(|path| !is_held_out(path)).collect()
}

/// Plans a restore of what is there now.
pub(super) fn plan(
    restore: Restore<'_>,
    then: &Tree,
    seen: &RootComparison,
    paths: &BTreeSet<PathBuf>,
) -> Result<OutsidePlan> {
    let Restore { project, checkpoint, request } = restore;
    let skipped = &checkpoint.skipped;
    let mut changes = attribution::outside_changes(paths, &then.outside, &seen.now.outside);
    changes.retain(|change| request.picked.has_outside(&change.path));
    if changes.is_empty() {
        return Ok(OutsidePlan::default());
    }
    let (skipped_then, skipped_now) = (from_top(skipped), skipped_now(&seen.scan));
    let side = PathSide::Outside;
    let mut kept = BTreeMap::new();
    let authorship = match &request.source {
        RestoreSource::Checkpoint | RestoreSource::Step(_) => {
            kept.extend(request.step().into_iter().flat_map(StepState::kept_outside));
            let log = Authors::of(restore, &changes, then, side)?;
            log.attribute(restore, &mut changes, &BTreeSet::new(), &skipped_now)
        }
        RestoreSource::Undone(of) => {
            authors::attribute_restore(restore, *of, side, &changes, &skipped_now)?
        }
        RestoreSource::Turn(turn) => {
            let ends = TurnEnds { then, now: &seen.now };
            let reverted = revert::revert(restore, turn.number, &changes, ends, side)?;
            (changes, kept) = (reverted.changes, reverted.kept);
            Authorship { authors: reverted.authors, ..Authorship::default() }
        }
        // Nothing outside the project comes from a fork.
        RestoreSource::Fork(_) => return Ok(OutsidePlan::default()),
    };
    let past = Past {
        authors: &authorship.authors,
        edited: &authorship.edited,
        others: &authorship.others,
        merges: &BTreeMap::new(),
        ignored: &BTreeSet::new(),
        skipped_then: &skipped_then,
        skipped_now: &skipped_now,
        repositories: &BTreeMap::new(),
        kept: &kept,
    };
    let mut steps =
        plan::restore(checkpoint.id, changes, request.options, &Picked::All, &past).steps;
    keep_in_git_dirs(project, side, request.repository, &mut steps);
    make_executable(Path::new("/"), &mut steps, KeepReason::Changed);
    Ok(with_stamps(steps))
}

/// Plans to go to one end of an interrupted restore. `wanted` is what that has where `to` does not say it.
pub(super) fn settle(
    [to, from, now]: [&Tree; 3],
    log: &RestoreLog,
    (toward, wanted): (Toward, &BTreeMap<PathBuf, Option<Entry>>),
) -> OutsidePlan {
    let entry = |tree: &Tree, path: &PathBuf| tree.outside.get(path).copied();
    let unsettled = |path: &PathBuf| {
        let (mut to, mut from, now) = (entry(to, path), entry(from, path), entry(now, path));
        if let Some(end) = wanted.get(path) {
            *toward.restored(&mut to, &mut from) = *end;
        }
        Some(Unsettled { path: RelPath::from_top(path).ok()?, to, from, now })
    };
    let paths = log.outside.iter().filter_map(unsettled).collect();
    let mut steps = plan::settle(log.of, paths).steps;
    make_executable(Path::new("/"), &mut steps, KeepReason::Changed);
    with_stamps(steps)
}

fn with_stamps(steps: Vec<PlanStep>) -> OutsidePlan {
    // Where nothing was found, a look may lead through a symlink to something else.
    let there = steps.iter().filter(|step| step.is_deed() && step.now.is_some());
    let seen = there.filter_map(|step| {
        let path = &step.path;
        Some((path.clone(), stat_path(&path.at_top()).ok()?))
    });
    OutsidePlan { seen: seen.collect(), steps }
}

/// What was left out outside the root, as seen from the top of the file system.
fn from_top(skipped: &[Skipped]) -> Vec<Skipped> {
    let below =
        |it: &Skipped| Some(Skipped { path: it.path.strip_prefix(b"/")?.into(), ..it.clone() });
    skipped.iter().filter_map(below).collect()
}

/// What the present scan could not look into.
fn skipped_now(scan: &Scan) -> Vec<Skipped> {
    let unread = unread(scan, |path| path.outside().map(|path| path.as_os_str().as_bytes()));
    from_top(&unread.chain(scan.unheld.iter().cloned()).collect::<Vec<_>>())
}

/// What differs outside and is not as it was for another reason than that it was made since.
pub(super) fn not_put_back(plan: &OutsidePlan) -> impl Iterator<Item = PathBuf> {
    let is_left = |step: &&PlanStep| step.is_deed() || step.is_conflict();
    plan.steps.iter().filter(is_left).map(|step| step.path.at_top())
}
