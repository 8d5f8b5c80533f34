//! A plan with all that is known of it: what is shown, chosen from and carried out.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

use super::{
    authors::OtherSession,
    brought::Brought,
    head::{HeadPlan, NestedHead},
    others_versions::OthersVersion,
};
use crate::{
    model::{CheckpointId, RelPath, Skipped, Stamp},
    plan::{Action, Choosable, Chosen, KeepReason, Merged, PlanStep, RestorePlan, SessionTag},
    scan::Scan,
    store::{IndexOutcome, RepositoryStep, repository},
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
    /// Branches, tags and stashes that were deleted and are made again.
    pub(crate) refs_again: Vec<repository::LostRepository>,
    /// Branches and tags that are removed, because the restore that is taken back made them.
    pub(crate) refs_gone: Vec<repository::LostRepository>,
    /// What goes with repositories that are replaced.
    pub(crate) losing: Vec<repository::Losing>,
    /// What was made since and is not held, for its size or number. It stays.
    pub(crate) new_unheld: Vec<Skipped>,
    /// Where what the checkpoint did not hold seems to be now, if it is gone from its place.
    pub(crate) moved: BTreeMap<Vec<u8>, PathBuf>,
    /// Roots of their own below this one in which something differs, and stays.
    pub(crate) inner_roots: BTreeSet<RelPath>,
    /// The work of others since, to which it goes back, with the checkpoints that hold it.
    pub(crate) others_versions: BTreeMap<RelPath, OthersVersion>,
    /// The SHA-256 of its content, in hex.
    pub(crate) others_digests: BTreeMap<RelPath, String>,
    /// The work of others that only later checkpoints hold, and that does not come back.
    pub(crate) others_left: BTreeMap<RelPath, CheckpointId>,
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
    /// What becomes of git's index, if HEAD stays where it is.
    pub(crate) index: IndexOutcome,
    /// What of a fork is brought back.
    pub(crate) brought: Option<Brought>,
    /// The command line of a call that was interrupted, if it has one.
    pub(crate) interrupted: Option<String>,
    /// The other sessions that made something of it.
    pub(crate) sessions: BTreeMap<SessionTag, OtherSession>,
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
            refs_again: Vec::new(),
            refs_gone: Vec::new(),
            losing: Vec::new(),
            new_unheld: Vec::new(),
            moved: BTreeMap::new(),
            inner_roots: BTreeSet::new(),
            others_versions: BTreeMap::new(),
            others_digests: BTreeMap::new(),
            others_left: BTreeMap::new(),
            damaged: BTreeSet::new(),
            marked: BTreeSet::new(),
            of_step: BTreeMap::new(),
            parts: BTreeSet::new(),
            built_on: BTreeMap::new(),
            index: IndexOutcome::NotKept,
            brought: None,
            interrupted: None,
            sessions: BTreeMap::new(),
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
        let is_others = |step: &PlanStep| match step.action {
            Action::Keep(
                KeepReason::New
                // A log that grows, a person's own work: an undo of this turn would never do anything.
                | KeepReason::OfOthers
                | KeepReason::Ignored
                | KeepReason::GitPrivate
                | KeepReason::Repository
                | KeepReason::Moved,
            ) => true,
            // What does not come back for it is worth a word.
            Action::Keep(KeepReason::InTheWay) => step.then.is_none(),
            _ => false,
        };
        let is_quiet = self.plan.is_empty()
            && self.plan.steps.iter().chain(&self.plan.outside.steps).all(is_others)
            && self.head.moves.is_none()
            && self.repositories.is_empty()
            && self.refs_again.is_empty()
            && self.refs_gone.is_empty()
            && !self.stages();
        !is_quiet
    }

    /// Whether git's index is staged otherwise, and goes back.
    pub(crate) fn stages(&self) -> bool {
        matches!(self.index, IndexOutcome::Restored(_))
    }

    /// Whether something stays because another author has changed it.
    pub(super) fn has_conflicts(&self) -> bool {
        let mut steps = self.plan.steps.iter().chain(&self.plan.outside.steps);
        steps.any(PlanStep::is_conflict)
    }

    /// Whether only some of what could be done was chosen.
    pub(super) fn is_part(&self) -> bool {
        let is_left = |step: &PlanStep| step.action == Action::Keep(KeepReason::NotChosen);
        let mut steps = self.plan.steps.iter().chain(&self.plan.outside.steps);
        !self.parts.is_empty() || steps.any(is_left)
    }

    /// Whether nothing is to be done.
    pub(crate) fn is_empty(&self) -> bool {
        self.plan.is_empty()
            && self.head.moves.is_none()
            && self.repositories.is_empty()
            && self.refs_again.is_empty()
            && self.refs_gone.is_empty()
            && !self.stages()
    }

    /// Leaves everything as it is that is not chosen. Only files can be: branch, index and repositories
    /// stay as they are. Returns whether one of them would have changed.
    pub(crate) fn choose(&mut self, chosen: &BTreeMap<Choosable, Chosen>) -> bool {
        let is_more = self.head.moves.is_some()
            || self.stages()
            || !self.repositories.is_empty()
            || !self.refs_again.is_empty()
            || !self.refs_gone.is_empty();
        self.head.moves = None;
        self.index = IndexOutcome::NotKept;
        self.repositories.clear();
        self.refs_again.clear();
        self.refs_gone.clear();
        self.losing.clear();
        let parts = chosen.iter().filter(|(_, chosen)| matches!(chosen, Chosen::Part(_)));
        self.parts = parts.map(|(choosable, _)| choosable.path.clone()).collect();
        self.plan.choose(chosen);
        let plan = &self.plan;
        let deeds: BTreeSet<&RelPath> = plan.deeds().map(|step| &step.path).collect();
        // What goes back to the work of others is written down with its digest; a part of it has one
        // of its own.
        let is_whole = |path: &RelPath| deeds.contains(path) && !plan.merges.contains_key(path);
        self.others_versions.retain(|path, _| is_whole(path));
        self.others_digests.retain(|path, _| is_whole(path));
        self.marked.retain(|path| deeds.contains(path));
        is_more
    }
}
