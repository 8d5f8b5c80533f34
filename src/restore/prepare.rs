//! Makes the plan of a restore: from what is to be, the current tree, and what is known of the changes
//! between them.

use std::{
    collections::{BTreeMap, BTreeSet},
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use super::{
    Restore, RestoreSource, RevertedTurn, StepState,
    authors::{self, Authors, Authorship},
    comparison::{RootComparison, make_executable, replaced_files, see, seen_by_plan, skipped},
    head::{self, HeadPlan},
    left_out::{left_out, moved, new_unheld, refuse_unknown},
    merge::{self, Merges},
    others_versions::{self, OthersVersions},
    outside,
    prepared::{BuiltOn, Prepared},
    repositories::{Repositories, keep_in_git_dirs},
    revert::{self, Revert, Reverted, TurnEnds},
};
use crate::{
    attribution::{self, PathSide},
    error::Result,
    fs::is_no_directory,
    ledger,
    model::{Checkpoint, CheckpointId, Entry, RelPath, SkipReason, Skipped, Tree, is_gits_own},
    plan::{self, Action, Change, KeepReason, OutsidePlan, Past, Picked, PlanStep, RestorePlan},
    process::Process,
    project::{LaterTurns, Project, Then},
    scan::Scan,
    store::{HeadMove, IndexOutcome, RepositoryStep},
};

/// What was and what is.
struct View {
    /// How the branch HEAD is on moves.
    head_move: Option<HeadMove>,
    then: Tree,
    /// Later checkpoints that may hold more of it, and are damaged.
    damaged: BTreeSet<CheckpointId>,
    /// The paths outside the root that are looked at.
    outside: BTreeSet<PathBuf>,
    seen: RootComparison,
    /// Roots of their own below this one in which something differs, and stays.
    inner_roots: BTreeSet<RelPath>,
}

/// What is known of the changes since.
#[derive(Default)]
struct ChangeFacts {
    authorship: Authorship,
    merges: Merges,
    inner: OthersVersions,
    /// What stays of what is to be restored, and why.
    kept: BTreeMap<RelPath, KeepReason>,
    /// What builds on a reverted turn.
    built_on: BTreeMap<RelPath, BuiltOn>,
    /// What a reverted turn was seen to change. `None` if no turn is reverted.
    touched: Option<BTreeSet<RelPath>>,
    /// The command line of a call that was interrupted, if it has one.
    interrupted: Option<String>,
}

impl ChangeFacts {
    /// Whether something that is not held is of concern: what others left unheld is not part of a reverted
    /// turn.
    fn concerns(&self, skipped: &Skipped) -> bool {
        self.touched.as_ref().is_none_or(|touched| {
            RelPath::from_bytes(&skipped.path).is_ok_and(|path| touched.contains(&path))
        })
    }

    /// Whether a new repository is of concern: a reverted turn made the directory that it is in.
    fn concerns_repository(&self, path: &RelPath) -> bool {
        self.touched
            .as_ref()
            .is_none_or(|touched| path.parent().is_some_and(|worktree| touched.contains(&worktree)))
    }
}

/// The way from a request to a plan, one for each source.
impl Restore<'_> {
    /// Plans a restore of what is there now.
    ///
    /// # Errors
    ///
    /// Fails if the checkpoint or the root cannot be read, and where the request asks for what
    /// cannot be.
    pub(crate) fn prepare(self, process: &Process<'_>) -> Result<Prepared> {
        match &self.request.source {
            RestoreSource::Checkpoint => self.prepare_checkpoint(process),
            RestoreSource::Step(step) => self.prepare_step(process, step),
            RestoreSource::Undone(of) => self.prepare_undone(process, *of),
            RestoreSource::Turn(turn) => self.prepare_revert(process, turn),
            RestoreSource::Fork(brings) => self.prepare_brought(process, brings),
        }
    }

    fn prepare_checkpoint(self, process: &Process<'_>) -> Result<Prepared> {
        // To read the tree brings back a lost record, which names the repositories.
        let then = self.checkpoint_tree()?;
        let repositories = Repositories::of(self)?;
        let mut view = self.view(process, then, BTreeSet::new(), &repositories)?;
        let facts = self.facts(&mut view)?;
        self.plan_all(view, facts, repositories)
    }

    fn prepare_step(self, process: &Process<'_>, step: &StepState) -> Result<Prepared> {
        let changed_outside = step.outside.paths.iter().map(RelPath::at_top).collect();
        let repositories = Repositories::of(self)?;
        let mut view = self.view(process, step.then.clone(), changed_outside, &repositories)?;
        let facts = ChangeFacts { kept: step.kept(), ..self.facts(&mut view)? };
        step.add_gaps(self.project, &view.seen.now, &mut view.seen.changes);
        let mut prepared = self.plan_all(view, facts, repositories)?;
        prepared.of_step = step.files(self.project, &prepared.plan);
        // Where HEAD was before a step between two checkpoints is not known.
        prepared.head.since = None;
        Ok(prepared)
    }

    /// Takes back a restore to `of`.
    fn prepare_undone(self, process: &Process<'_>, of: CheckpointId) -> Result<Prepared> {
        let then = self.checkpoint_tree()?;
        let repositories = Repositories::of(self)?;
        let view = self.view_of_undone(process, then, of, &repositories)?;
        let RootComparison { changes, skipped, .. } = &view.seen;
        let authorship = authors::attribute_restore(self, of, PathSide::Root, changes, skipped)?;
        let facts = ChangeFacts { authorship, ..ChangeFacts::default() };
        self.plan_all(view, facts, repositories)
    }

    /// Takes a turn back, while what came after it stays.
    fn prepare_revert(self, process: &Process<'_>, turn: &RevertedTurn) -> Result<Prepared> {
        let then = self.checkpoint_tree()?;
        let repositories = Repositories::left_alone(self);
        let mut view = self.view(process, then, BTreeSet::new(), &repositories)?;
        let facts = self.facts_of_revert(&mut view, turn)?;
        let mut prepared = self.plan_all(view, facts, repositories)?;
        // Repositories and HEAD stay as they are, and that is said.
        let stay = Repositories::of(self).unwrap_or_default();
        prepared.nested_heads = stay.nested_heads(self);
        prepared.lost = stay.lost(self);
        prepared.repositories_left = stay.places();
        prepared.head.since = None;
        Ok(prepared)
    }
}

/// What was and what is.
impl Restore<'_> {
    /// What the checkpoint and later calls of its turn hold.
    fn checkpoint_tree(self) -> Result<Then> {
        self.project.tree_of(self.checkpoint, LaterTurns::Gone)
    }

    /// Compares what was with what is now, also at the paths `elsewhere`.
    fn view(
        self,
        process: &Process<'_>,
        then: Then,
        elsewhere: BTreeSet<PathBuf>,
        repositories: &Repositories,
    ) -> Result<View> {
        let Self { project, checkpoint, request } = self;
        let head_move = head::moves(self, repositories.has_root_of(project))?;
        let Then { tree: then, damaged } = then;
        let mut outside = outside::paths(project, checkpoint, &then);
        outside.extend(elsewhere);
        let mut seen = see(process, project, &then, None, &outside)?;
        refuse_unknown(project, &request.picked, &[(checkpoint, &then)])?;
        let mut inner_roots = BTreeSet::new();
        if request.picked == Picked::All {
            let inner = own_roots(project, checkpoint, &seen.scan);
            seen.changes.retain(|change| {
                let other = inner.iter().find(|inner| change.path.is_within(inner));
                inner_roots.extend(other.cloned());
                other.is_none()
            });
        }
        Ok(View { head_move, then, damaged, outside, seen, inner_roots })
    }

    /// The same before a restore to `of`. What that put there is looked at too, and other roots below this
    /// one: it left them alone, or made them.
    fn view_of_undone(
        self,
        process: &Process<'_>,
        then: Then,
        of: CheckpointId,
        repositories: &Repositories,
    ) -> Result<View> {
        let Self { project, checkpoint, .. } = self;
        let head_move = head::moves(self, repositories.has_root_of(project))?;
        let Then { tree: then, damaged } = then;
        let outside = outside::paths(project, checkpoint, &then);
        let restored = authors::target_tree(project, of)?;
        let mut named = outside.clone();
        named.extend(merged_files(project, checkpoint.id));
        let seen = see(process, project, &then, restored.as_ref(), &named)?;
        Ok(View { head_move, then, damaged, outside, seen, inner_roots: BTreeSet::new() })
    }
}

/// What is known of the changes.
impl Restore<'_> {
    /// Finds out who made the changes, and merges them where that is asked for. Drops those that are
    /// not this restore's to take back.
    fn facts(self, view: &mut View) -> Result<ChangeFacts> {
        let Self { project, request, .. } = self;
        let RootComparison { now, changes, skipped, unscanned, .. } = &mut view.seen;
        let log = Authors::of(self, changes, &view.then, PathSide::Root)?;
        // Who removed the whole project, its own log does not tell.
        let authorship = if project.is_gone {
            Authorship::default()
        } else {
            log.attribute(self, changes, unscanned, skipped)
        };
        let inner = others_versions::go_to(self, changes, (&log, &authorship), (&view.then, now))?;
        let merges = if request.options.merge {
            let done = Revert::of_session(self, TurnEnds { then: &view.then, now })?;
            let take_back = |change: &Change| done.as_ref()?.between_others(change);
            let how = (request.markers, &take_back as &_);
            merge::all(project, changes, &authorship.authors, &log, how)
        } else {
            Merges::default()
        };
        let interrupted = log.knowledge.interrupted().map(str::to_owned);
        Ok(ChangeFacts { authorship, merges, inner, interrupted, ..ChangeFacts::default() })
    }

    /// The same where a turn is taken back and what came after it stays.
    fn facts_of_revert(self, view: &mut View, turn: &RevertedTurn) -> Result<ChangeFacts> {
        let ends = TurnEnds { then: &view.then, now: &view.seen.now };
        let Reverted { changes, authors, merges, digests, kept, built_on, touched } =
            revert::revert(self, turn.number, &view.seen.changes, ends, PathSide::Root)?;
        view.seen.changes = changes;
        Ok(ChangeFacts {
            authorship: Authorship { authors, ..Authorship::default() },
            merges,
            inner: OthersVersions { digests, ..OthersVersions::default() },
            kept,
            built_on,
            touched: Some(touched),
            interrupted: None,
        })
    }
}

/// The plan.
impl Restore<'_> {
    /// Plans all that a restore does.
    fn plan_all(
        self,
        mut view: View,
        facts: ChangeFacts,
        mut repositories: Repositories,
    ) -> Result<Prepared> {
        let Self { project, checkpoint, .. } = self;
        let mut plan = self.plan_files(&mut view, &facts, &mut repositories);
        let outside = outside::plan(self, &view.then, &view.seen, &view.outside)?;
        let mut outside_left = self.add_outside(&mut plan, outside, &mut repositories);
        leave_missing(project, &mut plan.steps);
        leave_missing(project, &mut plan.outside.steps);
        leave_to_repositories(project, &mut plan, &repositories.steps);
        plan.not_covered.retain(|out| facts.concerns(out));
        let moved = moved(project, &view.seen.scan, (checkpoint, &view.then), &plan.not_covered);
        keep_moved(&mut plan, &moved);
        plan::keep_executable(&mut plan.steps);
        plan::keep_executable(&mut plan.outside.steps);
        outside_left.retain(|left| moved.values().all(|to| to != left));
        let new_unheld = self.new_unheld(&view, &facts, &plan, &moved)?;
        let ChangeFacts { merges, mut inner, built_on, interrupted, .. } = facts;
        inner.retain_in(project, &plan);
        let versions = inner.back_to.values().map(|version| version.author);
        let steps = plan.steps.iter().chain(&plan.outside.steps).map(|step| step.author);
        let sessions = authors::sessions(project, versions.chain(steps))?;
        let mut lost = repositories.lost(self);
        let refs = self.plan_refs(&mut lost)?;
        Ok(Prepared {
            seen: seen_by_plan(project, &plan, &view.seen.scan),
            nested_heads: repositories.nested_heads(self),
            lost,
            refs_again: refs.again,
            refs_gone: refs.gone,
            losing: repositories.losing(project),
            head: self.head_plan(view.head_move, &repositories),
            repositories: repositories.steps,
            outside_left,
            new_unheld,
            moved,
            inner_roots: view.inner_roots,
            sessions,
            others_versions: inner.back_to,
            others_digests: inner.digests,
            others_left: inner.left,
            damaged: view.damaged.union(&inner.damaged).copied().collect(),
            marked: merges.marked,
            built_on,
            interrupted,
            index: self.index()?,
            ..Prepared::of(plan, view.seen.stored_scan)
        })
    }

    /// Decides what happens to each path below the root that differs.
    fn plan_files(
        self,
        view: &mut View,
        facts: &ChangeFacts,
        repositories: &mut Repositories,
    ) -> RestorePlan {
        let Self { project, checkpoint, request } = self;
        let changes = std::mem::take(&mut view.seen.changes);
        let scan = &view.seen.scan;
        let mut skipped_now = view.seen.skipped.clone();
        skipped_now.extend(left_in_replaced(&changes, scan));
        let mut made_since = repositories.made_since(project, scan);
        made_since.retain(|path, _| facts.concerns_repository(path));
        let past = Past {
            authors: &facts.authorship.authors,
            edited: &facts.authorship.edited,
            others: &facts.authorship.others,
            merges: &facts.merges.files,
            ignored: &ignored_now(&changes, scan),
            skipped_then: &left_out(checkpoint, &view.then),
            skipped_now: &skipped_now,
            repositories: &made_since,
            kept: &facts.kept,
        };
        let (options, picked) = (request.options, &request.picked);
        let mut plan = plan::restore(checkpoint.id, changes, options, picked, &past);
        for step in &mut plan.steps {
            if step.is_conflict() && facts.merges.without.contains(&step.path) {
                step.action = Action::Keep(KeepReason::Merged);
            }
        }
        keep_in_git_dirs(project, PathSide::Root, request.repository, &mut plan.steps);
        keep_around_skipped(&mut plan.steps, scan);
        repositories.keep_in_the_way(project, &mut plan);
        repositories.keep_of_others(project, &mut plan);
        plan.not_covered.retain(|skipped| project.has_changed(checkpoint, skipped));
        make_executable(project.root.path(), &mut plan.steps, request.in_the_way());
        plan
    }

    /// Takes what is to be done outside the root into the plan, if that was asked for. Returns what
    /// differs there and stays as it is.
    fn add_outside(
        self,
        plan: &mut RestorePlan,
        outside: OutsidePlan,
        repositories: &mut Repositories,
    ) -> Vec<PathBuf> {
        let mut left = Vec::new();
        if self.request.outside {
            plan.outside = outside;
        } else if self.request.picked == Picked::All {
            left.extend(outside::not_put_back(&outside));
            left.extend(std::mem::take(&mut repositories.elsewhere));
        }
        left
    }

    /// What is new since the checkpoint, and neither held nor changed by the plan.
    fn new_unheld(
        self,
        view: &View,
        facts: &ChangeFacts,
        plan: &RestorePlan,
        moved: &BTreeMap<Vec<u8>, PathBuf>,
    ) -> Result<Vec<Skipped>> {
        let Self { project, checkpoint, request } = self;
        let View { then, seen, .. } = view;
        let mut new = new_unheld(project, &seen.scan, then, checkpoint, &request.picked)?;
        let is_done = |new: &Skipped| plan.deeds().any(|step| step.path.as_bytes() == new.path);
        let is_moved =
            |new: &Skipped| moved.values().any(|path| path.as_os_str().as_bytes() == new.path);
        new.retain(|new| facts.concerns(new) && !is_done(new) && !is_moved(new));
        Ok(new)
    }

    /// How the branch HEAD is on moves. Where it stays, what became of it since the checkpoint: where HEAD
    /// stands now says nothing of a repository that is made again.
    fn head_plan(self, moves: Option<HeadMove>, repositories: &Repositories) -> HeadPlan {
        let stays = moves.is_none() && repositories.steps.is_empty();
        let since = stays.then(|| head::since(self.project, self.checkpoint)).flatten();
        HeadPlan { moves, since }
    }

    /// What becomes of git's index, if HEAD stays where it is.
    fn index(self) -> Result<IndexOutcome> {
        let git = self.project.store.git().filter(|_| self.request.index);
        git.map_or(Ok(IndexOutcome::NotKept), |git| git.plan_index(self.checkpoint.id))
    }
}

/// The files that a restore has merged, or brought from a fork. They are looked at whatever their size, or that
/// restore could not be undone.
fn merged_files(project: &Project, held: CheckpointId) -> Vec<PathBuf> {
    let merged = attribution::merged(&project.place(), held).into_iter();
    let places = merged.map(|(path, _)| project.root.join(&path));
    places.filter(|place| is_no_directory(place)).collect()
}

/// What the scan left out in directories that were something else: it stays, and they cannot become
/// what they were.
pub(super) fn left_in_replaced(changes: &[Change], scan: &Scan) -> Vec<Skipped> {
    let replaced = replaced_files(changes);
    if replaced.is_empty() {
        return Vec::new();
    }
    let held = scan.victims.iter().filter(|victim| victim.found.is_held());
    let held: BTreeSet<&RelPath> = held.filter_map(|victim| victim.path.below()).collect();
    // A repository is restored by steps of its own.
    let mut left = skipped(scan, |reason| reason != SkipReason::GitPrivate);
    left.extend(scan.unheld.iter().cloned());
    left.retain(|it| {
        RelPath::from_bytes(&it.path).is_ok_and(|path| {
            !held.contains(&path) && replaced.iter().any(|dir| path.is_within(dir))
        })
    });
    left
}

/// Keeps directories that would go, and in which there is something that a scan leaves out.
pub(super) fn keep_around_skipped(steps: &mut [PlanStep], scan: &Scan) {
    let is_directory = |step: &PlanStep| step.now.is_some_and(Entry::is_directory);
    if !steps.iter().any(|step| step.action == Action::Remove && is_directory(step)) {
        return;
    }
    let removed_at = |steps: &[PlanStep], path: &RelPath| {
        let at = steps.binary_search_by(|step| step.path.cmp(path)).ok()?;
        (steps[at].action == Action::Remove).then_some(at)
    };
    // What lies in a repository is removed with it, by a step of its own.
    for left in skipped(scan, |reason| reason != SkipReason::GitPrivate) {
        let Ok(path) = RelPath::from_bytes(&left.path) else { continue };
        // What a call named was held all the same, and may go.
        if removed_at(steps, &path).is_some() {
            continue;
        }
        for above in path.above() {
            if let Some(at) = removed_at(steps, &above).filter(|at| is_directory(&steps[*at])) {
                steps[at].action = Action::Keep(KeepReason::InTheWay);
            }
        }
    }
}

/// Keeps what seems to be all there is of a file that no checkpoint holds.
fn keep_moved(plan: &mut RestorePlan, moved: &BTreeMap<Vec<u8>, PathBuf>) {
    let below = plan.steps.iter_mut().map(|step| (step.path.as_path().to_owned(), step));
    let outside = plan.outside.steps.iter_mut().map(|step| (step.path.at_top(), step));
    for (place, step) in below.chain(outside) {
        if step.is_deed() && moved.values().any(|to| *to == place) {
            step.action = Action::Keep(KeepReason::Moved);
        }
    }
}

/// Leaves out what is made with a repository, or a part of one: it brings its files with it. What is in no
/// repository stays until that one is there.
fn leave_to_repositories(
    project: &Project,
    plan: &mut RestorePlan,
    repositories: &[RepositoryStep],
) {
    let is_made = |path: &Path| repositories.iter().any(|it| path.starts_with(it.target()));
    plan.steps.retain_mut(|step| {
        let is_made = is_made(&project.root.join(&step.path));
        let is_file = step.then.is_some_and(|then| !then.is_directory());
        let stays = is_made && is_file && !is_gits_own(step.path.as_bytes());
        if stays {
            step.action = Action::Keep(KeepReason::GitPrivate);
        }
        !is_made || stays
    });
    plan.outside.steps.retain(|step| !is_made(&step.path.at_top()));
}

/// Leaves what cannot be put back: its content is in the store no more.
fn leave_missing(project: &Project, steps: &mut [PlanStep]) {
    let content = |entry: Option<Entry>| entry.and_then(|entry| entry.content);
    for step in steps {
        let is_file = step.then.is_some_and(|then| then.kind.has_content());
        if step.comes_back()
            && is_file
            && content(step.then) != content(step.now)
            && !content(step.then).is_some_and(|content| project.store.has(&content))
        {
            step.action = Action::Keep(KeepReason::Missing);
        }
    }
}

/// What is new since, and ignored now.
fn ignored_now(changes: &[Change], scan: &Scan) -> BTreeSet<RelPath> {
    let new = changes.iter().filter(|change| change.before.is_none());
    let is_ignored = |path: &RelPath| scan.find(path).is_some_and(|row| row.marks.ignored);
    new.map(|change| change.path.clone()).filter(is_ignored).collect()
}

/// The worktrees in ignored directories where another session has been at work. Each is a root of its
/// own: what is done there is nothing for a restore of this root to take back.
fn own_roots(project: &Project, checkpoint: &Checkpoint, scan: &Scan) -> Vec<RelPath> {
    let worktrees = scan.repositories.iter().filter_map(|git| git.parent());
    let below = worktrees.filter_map(|worktree| project.root.relative(worktree).ok());
    let is_ignored = |path: &RelPath| scan.find(path).is_some_and(|row| row.marks.ignored);
    let mut inner: Vec<RelPath> = below.filter(is_ignored).collect();
    if !inner.is_empty() {
        let session = checkpoint.cause.by.as_ref().map(|by| (by.agent, &by.session));
        let mut others = ledger::uses(&project.state);
        others.retain(|used| session != Some((used.by.agent, &used.by.session)));
        inner.retain(|path| others.iter().any(|used| used.root == project.root.join(path)));
    }
    inner
}
