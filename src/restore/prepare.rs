//! Makes the plan: from the checkpoint's tree, the current tree, and what is known of the changes between
//! them.

use std::{
    collections::{BTreeMap, BTreeSet},
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use super::{
    Restore, StepState,
    authors::{self, Authors, Authorship},
    brought::Brought,
    comparison::{RootComparison, add_parents, see, seen_by_plan, skipped},
    head::{self, HeadPlan, HeadSince, NestedHead},
    left_out::{left_out, moved, new_unheld, refuse_unknown},
    merge::{self, Merges},
    mid_turn::{self, MidTurn},
    outside,
    repositories::{Repositories, keep_in_git_dirs},
    revert::{self, Reverted},
};
use crate::{
    attribution::{self, Caller, PathSide, TurnCalls},
    error::Result,
    ledger,
    model::{
        Checkpoint, CheckpointId, Entry, Kind, RelPath, RootKind, SkipReason, Skipped, Stamp, Tree,
        is_gits_own,
    },
    plan::{
        self, Action, Change, Choosable, Chosen, KeepReason, Merged, OutsidePlan, Past, Picked,
        RestorePlan, Step,
    },
    process::Process,
    project::{LaterTurns, Project, Then, TurnRow, rows},
    scan::Scan,
    store::{HeadMove, RepositoryStep, repository},
};

/// A plan, and what it was made from.
pub(crate) struct Prepared {
    pub(crate) plan: RestorePlan,
    /// What the system said about each path when it was looked at.
    pub(crate) seen: BTreeMap<RelPath, Stamp>,
    /// The scan it was made from, with nothing named that is not stored.
    pub(crate) stored_scan: Scan,
    /// What becomes of the branch HEAD is on, and became of it since.
    pub(crate) head: HeadPlan,
    /// What became of HEAD in repositories nested in the root.
    pub(crate) nested_heads: Vec<NestedHead>,
    /// What differs outside the root and is held, but stays as it is without `--outside`.
    pub(crate) outside_left: Vec<PathBuf>,
    /// Repositories that are gone or others, and that a revert leaves so.
    pub(crate) repositories_left: Vec<PathBuf>,
    /// Repositories that are made again.
    pub(crate) repositories: Vec<RepositoryStep>,
    /// What of repositories is gone and stays so without `--repository`.
    pub(crate) lost: Vec<repository::LostRepository>,
    /// What goes with repositories that are replaced.
    pub(crate) losing: Vec<repository::Losing>,
    /// What another author changed and the agent of the turn was never seen to touch.
    pub(crate) others: BTreeSet<RelPath>,
    /// The same outside the root.
    pub(crate) outside_others: BTreeSet<RelPath>,
    /// What was made since and is not held, for its size or number. It stays.
    pub(crate) new_unheld: Vec<Skipped>,
    /// Where what the checkpoint did not hold seems to be now, if it is gone from its place.
    pub(crate) moved: BTreeMap<Vec<u8>, PathBuf>,
    /// Roots of their own below this one in which something differs, and stays.
    pub(crate) inner_roots: BTreeSet<RelPath>,
    /// The user's work in the middle of the turn, to which it goes back, with the steps that hold it.
    pub(crate) mid_turn: BTreeMap<RelPath, CheckpointId>,
    /// The SHA-256 of its content, in hex.
    pub(crate) mid_turn_digests: BTreeMap<RelPath, String>,
    /// The user's work that only inner steps of the turn hold, and that does not come back.
    pub(crate) inner_steps: BTreeMap<RelPath, CheckpointId>,
    /// Later checkpoints that may hold more of what was there, and are damaged.
    pub(crate) damaged: BTreeSet<CheckpointId>,
    /// Merged files in which conflicts are marked.
    pub(crate) marked: BTreeSet<RelPath>,
    /// Files that go back to before a step of a turn, and are not what its checkpoint has there.
    pub(crate) of_step: BTreeMap<RelPath, Merged>,
    /// Files that become what the user chose of the plan.
    pub(crate) parts: BTreeSet<RelPath>,
    /// What builds on a turn that is reverted, where that is known.
    pub(crate) built_on: BTreeMap<RelPath, BuiltOn>,
    /// Whether git's index is staged otherwise, and goes back.
    pub(crate) stages: bool,
    /// What of a fork is brought back.
    pub(crate) brought: Option<Brought>,
}

/// A turn that builds on one that is reverted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BuiltOn {
    /// The checkpoint before its call.
    pub(crate) checkpoint: CheckpointId,
    /// Its number in the list; `None` if it is not there any more.
    pub(crate) turn: Option<usize>,
}

impl Prepared {
    /// A plan for files, and nothing else.
    pub(super) fn of(plan: RestorePlan, stored_scan: Scan) -> Self {
        Self {
            plan,
            stored_scan,
            seen: BTreeMap::new(),
            head: HeadPlan { moves: None, since: None },
            nested_heads: Vec::new(),
            outside_left: Vec::new(),
            repositories_left: Vec::new(),
            repositories: Vec::new(),
            lost: Vec::new(),
            losing: Vec::new(),
            others: BTreeSet::new(),
            outside_others: BTreeSet::new(),
            new_unheld: Vec::new(),
            moved: BTreeMap::new(),
            inner_roots: BTreeSet::new(),
            mid_turn: BTreeMap::new(),
            mid_turn_digests: BTreeMap::new(),
            inner_steps: BTreeMap::new(),
            damaged: BTreeSet::new(),
            marked: BTreeSet::new(),
            of_step: BTreeMap::new(),
            parts: BTreeSet::new(),
            built_on: BTreeMap::new(),
            stages: false,
            brought: None,
        }
    }

    /// How many paths would change, as they are listed.
    pub(crate) fn count(&self) -> usize {
        self.count_but(&BTreeSet::new(), Path::new(""))
    }

    /// How many of them did change, below `root`, but for those that were `missed`: paths below the
    /// root are relative to it.
    pub(crate) fn count_but(&self, missed: &BTreeSet<&Path>, root: &Path) -> usize {
        let missed: BTreeSet<PathBuf> = missed.iter().map(|path| root.join(path)).collect();
        let steps = self.plan.listed().map(|step| root.join(step.path.as_path()));
        let outside = self.plan.outside.deeds().map(|step| step.path.at_top());
        let repositories = self.repositories.iter().map(RepositoryStep::target);
        let all = steps.chain(outside).chain(repositories);
        all.filter(|path| !missed.contains(path)).count()
    }

    /// Whether anything would change, or is kept that a person may want changed after all. What
    /// another author made since is neither.
    pub(crate) fn is_any(&self) -> bool {
        let is_others = |step: &Step, others: &BTreeSet<RelPath>| match step.action {
            Action::Keep(
                KeepReason::New
                | KeepReason::Ignored
                | KeepReason::GitPrivate
                | KeepReason::Repository
                | KeepReason::Moved,
            ) => true,
            // What does not come back for it is worth a word.
            Action::Keep(KeepReason::InTheWay) => step.then.is_none(),
            // A log that grows, a person's own work: an undo of this turn would never do anything.
            Action::Keep(KeepReason::Edited) => others.contains(&step.path),
            _ => false,
        };
        let is_quiet = self.plan.is_empty()
            && self.plan.steps.iter().all(|step| is_others(step, &self.others))
            && self.plan.outside.steps.iter().all(|step| is_others(step, &self.outside_others))
            && self.head.moves.is_none()
            && self.repositories.is_empty()
            && !self.stages;
        !is_quiet
    }

    /// Whether nothing is to be done.
    pub(crate) fn is_empty(&self) -> bool {
        self.plan.is_empty()
            && self.head.moves.is_none()
            && self.repositories.is_empty()
            && !self.stages
    }
}

/// What was and what is.
struct View {
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
struct ChangeFacts {
    authorship: Authorship,
    /// What another author changed and the agent of the turn was never seen to touch.
    others: BTreeSet<RelPath>,
    merges: Merges,
    inner: MidTurn,
    /// What stays of what a reverted turn changed, and why.
    kept: BTreeMap<RelPath, KeepReason>,
    /// What builds on it.
    built_on: BTreeMap<RelPath, BuiltOn>,
    /// What a reverted turn was seen to change. `None` if no turn is reverted.
    touched: Option<BTreeSet<RelPath>>,
}

impl ChangeFacts {
    /// Whether something that is not held is of concern: what others left unheld is not part of a reverted
    /// turn.
    fn concerns(&self, skipped: &Skipped) -> bool {
        self.touched.as_ref().is_none_or(|touched| {
            RelPath::from_bytes(&skipped.path).is_ok_and(|path| touched.contains(&path))
        })
    }
}

impl Restore<'_> {
    /// Plans a restore to a checkpoint, or a revert.
    pub(super) fn prepare_restore(self, process: &Process<'_>) -> Result<Prepared> {
        let Self { project, checkpoint, request } = self;
        let head_move = head::moves(self)?;
        let mut view = self.view(process)?;
        let known = self.known(&mut view)?;
        let mut repositories = Repositories::of(self)?;
        let mut plan = self.plan(&mut view, &known, &mut repositories);
        let elsewhere = outside::plan(self, &view.then, &view.seen, &view.outside)?;
        let mut outside_left = self.add_outside(&mut plan, elsewhere.plan, &mut repositories);
        leave_missing(project, &mut plan.steps);
        leave_missing(project, &mut plan.outside.steps);
        leave_to_repositories(project, &mut plan, &repositories.steps);
        plan.not_covered.retain(|out| known.concerns(out));
        let moved = moved(project, &view.seen.scan, (checkpoint, &view.then), &plan.not_covered);
        keep_moved(&mut plan, &moved);
        outside_left.retain(|left| moved.values().all(|to| to != left));
        let new_unheld = self.new_unheld(&view, &known, &plan, &moved)?;
        let ChangeFacts { mut inner, merges, others, built_on, .. } = known;
        inner.retain_in(project, &plan);
        // A revert leaves repositories as they are, and says so.
        let stay = request.reverts.as_ref().map(|_| Repositories::left(self));
        let told = stay.as_ref().unwrap_or(&repositories);
        Ok(Prepared {
            nested_heads: told.nested_heads(self),
            lost: told.lost(self),
            repositories_left: stay.as_ref().map_or_else(Vec::new, Repositories::places),
            seen: seen_by_plan(project, &plan, &view.seen.scan),
            head: HeadPlan {
                since: self.head_since(head_move.as_ref(), &repositories),
                moves: head_move,
            },
            outside_left,
            losing: repositories.losing(project),
            repositories: repositories.steps,
            others,
            outside_others: elsewhere.others,
            new_unheld,
            moved,
            inner_roots: view.inner_roots,
            mid_turn: inner.back_to,
            mid_turn_digests: inner.digests,
            inner_steps: inner.left,
            damaged: view.damaged.union(&inner.damaged).copied().collect(),
            marked: merges.marked,
            of_step: request.step.as_ref().map(|it| it.files(project, &plan)).unwrap_or_default(),
            parts: BTreeSet::new(),
            built_on,
            stages: self.stages()?,
            brought: None,
            stored_scan: view.seen.stored_scan,
            plan,
        })
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
        known: &ChangeFacts,
        plan: &RestorePlan,
        moved: &BTreeMap<Vec<u8>, PathBuf>,
    ) -> Result<Vec<Skipped>> {
        let Self { project, checkpoint, request } = self;
        let View { then, seen, .. } = view;
        let mut new = new_unheld(project, &seen.scan, then, checkpoint, &request.picked)?;
        let is_done = |new: &Skipped| plan.deeds().any(|step| step.path.as_bytes() == new.path);
        let is_moved =
            |new: &Skipped| moved.values().any(|path| path.as_os_str().as_bytes() == new.path);
        new.retain(|new| known.concerns(new) && !is_done(new) && !is_moved(new));
        Ok(new)
    }

    /// What became of HEAD since the checkpoint, where it stays where it is. Where HEAD stands now says
    /// nothing of a repository that is made again.
    fn head_since(
        self,
        moves: Option<&HeadMove>,
        repositories: &Repositories,
    ) -> Option<HeadSince> {
        let stays = moves.is_none() && repositories.steps.is_empty();
        // Where HEAD was before a step between two checkpoints is not known.
        let stays = stays && self.request.reverts.is_none() && self.request.step.is_none();
        stays.then(|| head::since(self.project, self.checkpoint)).flatten()
    }

    /// Whether the index would change.
    fn stages(self) -> Result<bool> {
        let git = self.project.store.git().filter(|_| self.request.index);
        git.map_or(Ok(false), |git| git.index_differs(self.checkpoint.id))
    }

    fn view(self, process: &Process<'_>) -> Result<View> {
        let Self { project, checkpoint, request } = self;
        let Then { tree: then, damaged } = match &request.step {
            Some(step) => step.then.clone(),
            None => project.tree_of(checkpoint, LaterTurns::Gone)?,
        };
        let outside = outside::paths(project, checkpoint, &then);
        let restored = request.of_restore.map(|of| authors::restored(project, of)).transpose()?;
        let restored = restored.flatten();
        let mut named = outside.clone();
        if request.of_restore.is_some() {
            named.extend(merged_files(project, checkpoint.id));
        }
        let mut seen = see(process, project, &then, restored.as_ref(), &named)?;
        if request.of_restore.is_none() {
            refuse_unknown(project, &request.picked, &[(checkpoint, &then)])?;
        }
        let mut inner_roots = BTreeSet::new();
        // A restore that is taken back left them alone, or made them.
        if request.is_of_all() {
            let inner = own_roots(project, checkpoint, &seen.scan);
            seen.changes.retain(|change| {
                let other = inner.iter().find(|inner| change.path.is_within(inner));
                inner_roots.extend(other.cloned());
                other.is_none()
            });
        }
        Ok(View { then, damaged, outside, seen, inner_roots })
    }

    /// Finds out who made the changes, and merges them where that is asked for. Drops those that are
    /// not this restore's to take back.
    fn known(self, view: &mut View) -> Result<ChangeFacts> {
        let Self { project, request, .. } = self;
        if let Some(turn) = &request.reverts {
            return self.reverted(view, &turn.calls);
        }
        let RootComparison { now, changes, skipped, unscanned, .. } = &mut view.seen;
        let log = Authors::of(self, changes, &view.then, PathSide::Root)?;
        let mut authorship = match request.of_restore {
            Some(of) => authors::of_restore(self, of, PathSide::Root, changes, skipped)?,
            None => log.by_path(project, changes, unscanned, skipped),
        };
        if request.is_of_turn() {
            log.drop_restored(&mut authorship, changes);
        }
        let others = log.others(&authorship, request);
        let inner = if request.is_of_all() {
            mid_turn::go_to(self, changes, (&log, &authorship), (&view.then, now))?
        } else {
            MidTurn::default()
        };
        let merges = if request.options.merge {
            merge::all(project, changes, &authorship.authors, &log, request.markers)
        } else {
            Merges::default()
        };
        let kept = request.step.as_ref().map(StepState::kept).unwrap_or_default();
        let (built_on, touched) = Default::default();
        Ok(ChangeFacts { authorship, others, merges, inner, kept, built_on, touched })
    }

    /// The same where a turn is taken back and what came after it stays.
    fn reverted(self, view: &mut View, turn: &TurnCalls) -> Result<ChangeFacts> {
        let ends = (&view.then, &view.seen.now);
        let Reverted { changes, authors, merges, digests, kept, built_on, touched } =
            revert::revert(self, turn, &view.seen.changes, ends, PathSide::Root)?;
        view.seen.changes = changes;
        let built_on = self.turns_of(&built_on)?;
        let authorship = Authorship { authors, edited: BTreeSet::new() };
        let (others, touched) = (BTreeSet::new(), Some(touched));
        let inner = MidTurn { digests, ..MidTurn::default() };
        Ok(ChangeFacts { authorship, others, merges, inner, kept, built_on, touched })
    }

    /// Which turns some later calls belong to.
    fn turns_of(self, built_on: &BTreeMap<RelPath, Caller>) -> Result<BTreeMap<RelPath, BuiltOn>> {
        if built_on.is_empty() {
            return Ok(BTreeMap::new());
        }
        let Project { store, state, .. } = self.project;
        let uses = ledger::uses(state);
        let rows = rows(store.list()?, &uses);
        let turn = |Caller { by, of, at, .. }: &Caller| {
            // Other turns may have found the same checkpoint as it was.
            let is_its = |used: &&ledger::Use| {
                used.at.timestamp_nanos_opt().is_some_and(|used| used <= *at)
                    && attribution::author(used.by.agent, &used.by.session) == *by
            };
            let key = uses.iter().find(is_its).and_then(|used| used.by.turn_key());
            let is_row = |row: &TurnRow| match &key {
                Some(key) => row.steps[0].turn_key().as_ref() == Some(key),
                None => row.steps.iter().any(|step| step.id == *of),
            };
            let turn = rows.iter().position(is_row).map(|row| row + 1);
            BuiltOn { checkpoint: *of, turn }
        };
        Ok(built_on.iter().map(|(path, caller)| (path.clone(), turn(caller))).collect())
    }

    /// Decides what happens to each path below the root that differs.
    fn plan(
        self,
        view: &mut View,
        known: &ChangeFacts,
        repositories: &mut Repositories,
    ) -> RestorePlan {
        let Self { project, checkpoint, request } = self;
        let mut changes = std::mem::take(&mut view.seen.changes);
        if let Some(step) = &request.step {
            step.add_gaps(project, &view.seen.now, &mut changes);
        }
        let scan = &view.seen.scan;
        let mut skipped_now = view.seen.skipped.clone();
        skipped_now.extend(left_in_replaced(&changes, scan));
        let past = Past {
            authors: &known.authorship.authors,
            edited: &known.authorship.edited,
            merges: &known.merges.files,
            ignored: &ignored_now(&changes, scan),
            skipped_then: &left_out(checkpoint, &view.then),
            skipped_now: &skipped_now,
            repositories: &repositories.made_since(project, scan),
            kept: &known.kept,
        };
        let (options, picked) = (request.options, &request.picked);
        let mut plan = plan::restore(checkpoint.id, changes, options, picked, &past);
        for step in &mut plan.steps {
            if step.is_conflict() && known.merges.without.contains(&step.path) {
                step.action = Action::Keep(KeepReason::Merged);
            }
        }
        let own = match project.root.kind() {
            RootKind::Git { common_dir, .. } => project.root.relative(common_dir).ok(),
            RootKind::Plain { .. } => None,
        };
        keep_in_git_dirs(project.root.path(), own.as_ref(), request.repository, &mut plan.steps);
        keep_around_skipped(&mut plan.steps, scan);
        repositories.keep_in_the_way(project, &mut plan);
        repositories.keep_of_others(project, &mut plan);
        plan.not_covered.retain(|skipped| project.has_changed(checkpoint, skipped));
        add_parents(project.root.path(), &mut plan.steps);
        plan
    }
}

/// The files that a restore has merged, or brought from a fork. They are looked at whatever their size, or that
/// restore could not be undone.
fn merged_files(project: &Project, held: CheckpointId) -> Vec<PathBuf> {
    let merged = attribution::merged(&project.state.root(&project.root), held).into_iter();
    let places = merged.map(|(path, _)| project.root.join(&path));
    places.filter(|place| place.symlink_metadata().is_ok_and(|it| !it.is_dir())).collect()
}

/// What the scan left out in directories that were something else: it stays, and they cannot become
/// what they were.
pub(super) fn left_in_replaced(changes: &[Change], scan: &Scan) -> Vec<Skipped> {
    let is_directory = |entry: &Entry| entry.kind == Kind::Directory;
    let is_replaced = |change: &&Change| {
        change.before.is_some_and(|then| !is_directory(&then))
            && change.after.is_some_and(|now| is_directory(&now))
    };
    let replaced: Vec<&RelPath> =
        changes.iter().filter(is_replaced).map(|change| &change.path).collect();
    if replaced.is_empty() {
        return Vec::new();
    }
    // A repository is restored by steps of its own, and what can be made again makes room.
    let stays = |reason| !matches!(reason, SkipReason::GitPrivate | SkipReason::MadeAgain);
    let mut left = skipped(scan, stays);
    left.retain(|it| {
        let path = RelPath::from_bytes(&it.path);
        path.is_ok_and(|path| replaced.iter().any(|dir| path.is_within(dir)))
    });
    left
}

/// Keeps directories that would go, and in which there is something that a scan leaves out.
pub(super) fn keep_around_skipped(steps: &mut [Step], scan: &Scan) {
    let is_directory = |step: &Step| step.now.is_some_and(|now| now.kind == Kind::Directory);
    if !steps.iter().any(|step| step.action == Action::Remove && is_directory(step)) {
        return;
    }
    let removed_at = |steps: &[Step], path: &RelPath| {
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
        for above in std::iter::successors(path.parent(), RelPath::parent) {
            if let Some(at) = removed_at(steps, &above).filter(|at| is_directory(&steps[*at])) {
                steps[at].action = Action::Keep(KeepReason::InTheWay);
            }
        }
    }
}

/// Keeps what seems to be all there is of a file that no checkpoint holds.
fn keep_moved(plan: &mut RestorePlan, moved: &BTreeMap<Vec<u8>, PathBuf>) {
    let is_moved = |path: &Path| moved.values().any(|to| to == path);
    let is_deed = |step: &&mut Step| step.is_deed();
    for step in plan.steps.iter_mut().filter(is_deed) {
        if is_moved(step.path.as_path()) {
            step.action = Action::Keep(KeepReason::Moved);
        }
    }
    for step in plan.outside.steps.iter_mut().filter(is_deed) {
        if is_moved(&step.path.at_top()) {
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
        let is_file = step.then.is_some_and(|then| then.kind != Kind::Directory);
        let stays = is_made && is_file && !is_gits_own(step.path.as_bytes());
        if stays {
            step.action = Action::Keep(KeepReason::GitPrivate);
        }
        !is_made || stays
    });
    plan.outside.steps.retain(|step| !is_made(&step.path.at_top()));
}

/// Leaves what cannot be put back: its content is in the store no more.
fn leave_missing(project: &Project, steps: &mut [Step]) {
    let content = |entry: Option<Entry>| entry.and_then(|entry| entry.content);
    for step in steps {
        let is_put = matches!(step.action, Action::Restore | Action::Recreate);
        let is_file = step.then.is_some_and(|then| then.kind.has_content());
        if is_put
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

impl Prepared {
    /// Leaves everything as it is that is not chosen. Only files can be: branch, index and repositories
    /// stay as they are. Returns whether one of them would have changed.
    pub(crate) fn choose(&mut self, chosen: &BTreeMap<Choosable, Chosen>) -> bool {
        let is_more = self.head.moves.is_some() || self.stages || !self.repositories.is_empty();
        self.head.moves = None;
        self.stages = false;
        self.repositories.clear();
        self.losing.clear();
        let parts = chosen.iter().filter(|(_, chosen)| matches!(chosen, Chosen::Part(_)));
        self.parts = parts.map(|(choosable, _)| choosable.path.clone()).collect();
        self.plan.choose(chosen);
        let plan = &self.plan;
        let deeds: BTreeSet<&RelPath> = plan.deeds().map(|step| &step.path).collect();
        // What goes back to the work of others is written down with its digest; a part of it has one
        // of its own.
        let is_whole = |path: &RelPath| deeds.contains(path) && !plan.merges.contains_key(path);
        self.mid_turn.retain(|path, _| is_whole(path));
        self.mid_turn_digests.retain(|path, _| is_whole(path));
        self.marked.retain(|path| deeds.contains(path));
        is_more
    }
}
