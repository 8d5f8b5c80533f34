//! HEAD and the commits made since a checkpoint, and whether the branch is moved back.

use std::path::PathBuf;

use super::Restore;
use crate::{
    attribution::{self, LogEvent, LogLine},
    error::{Error, Result},
    ledger,
    model::{Checkpoint, CheckpointId, Head},
    project::Project,
    store::{HeadDistance, HeadMove, record::Record, repository},
    ui,
};

/// What becomes of the branch HEAD is on, and what became of it since the checkpoint.
pub(crate) struct HeadPlan {
    /// How it moves.
    pub(crate) moves: Option<HeadMove>,
    /// What happened since and stays, if that is worth a word.
    pub(crate) since: Option<HeadSince>,
}

/// What happened to HEAD since a checkpoint.
pub(crate) enum HeadSince {
    /// It is on another branch. Each is `None` where HEAD is detached.
    Switched {
        /// The branch then.
        then: Option<String>,
        /// The branch now.
        now: Option<String>,
    },
    /// So many commits were made on the branch.
    Ahead(u64),
    /// The commit it was at is not below it any more.
    Lost,
    /// The same, and the repository does not have that commit.
    Gone,
}

/// What happened to HEAD of a repository nested in the root.
pub(crate) struct NestedHead {
    /// Its worktree. Absolute.
    pub(crate) worktree: PathBuf,
    /// The git directory that is held: its own, or for a submodule that of the repository it is part of.
    pub(crate) place: PathBuf,
    /// The commit that HEAD stood at.
    pub(crate) commit: String,
    /// What happened since.
    pub(crate) since: HeadSince,
}

impl HeadPlan {
    /// Whether HEAD lacks the commit it was at, and the restore leaves it so.
    pub(crate) fn is_lost(&self) -> bool {
        matches!(self.since, Some(HeadSince::Lost | HeadSince::Gone))
    }
}

/// How the branch moves: back, if the user says so; and if a restore that moved it is taken back,
/// to where it stood before that. A repository that comes back as a whole has its branch and HEAD with
/// it, and the commit, which the present one may have lost.
pub(super) fn moves(restore: Restore<'_>, comes_with_repository: bool) -> Result<Option<HeadMove>> {
    let Restore { project, checkpoint, request } = restore;
    if request.head && comes_with_repository {
        return Ok(None);
    }
    if request.head {
        let refuse = |why: &str| {
            let hint = "without --head the files alone are restored";
            Error::other(format!("HEAD stays where it is: {}", ui::escape(why.as_bytes())), hint)
        };
        let then = checkpoint.head.as_ref();
        let then = then.ok_or_else(|| refuse("the checkpoint does not say where it stood"))?;
        let git = project.store.git();
        let git =
            git.ok_or_else(|| refuse("these checkpoints are not kept in a git repository"))?;
        return git.plan_head(then).map_err(|why| refuse(&why));
    }
    if request.undone().is_none() {
        return Ok(None);
    }
    let moved = attribution::head_moved(&project.place(), checkpoint.id);
    // Where it has been moved again since, it stays.
    Ok(moved.map(reversed).filter(|back| {
        let (branch, commit) = (Some(back.branch.clone()), Some(back.from.clone()));
        let there = Head { branch, commit, in_progress: None };
        let Some(git) = project.store.git() else { return false };
        let stands = git
            .commits_since(&there)
            .is_some_and(|since| since.count == Some(0) && since.branch == there.branch);
        // `git gc` may have removed what no branch led to any more.
        stands && git.has_commit(&back.to)
    }))
}

impl Restore<'_> {
    /// The first checkpoint after the turn that begins with the restore's checkpoint; `None` if nothing was held
    /// since.
    ///
    /// # Errors
    ///
    /// Fails if the checkpoints cannot be listed.
    pub(super) fn first_after_turn(self) -> Result<Option<Checkpoint>> {
        let mut all = self.project.store.list()?;
        ledger::adopt(&mut all, &ledger::uses(&self.project.state));
        let is_its =
            |one: &Checkpoint| one.id == self.checkpoint.id || one.is_same_turn(self.checkpoint);
        let later = all.iter().position(is_its).unwrap_or(0);
        Ok(later.checked_sub(1).and_then(|at| all.get(at)).cloned())
    }

    /// How the turn that begins with the restore's checkpoint moved HEAD; `None` if no call of it was seen to. The
    /// error says why HEAD cannot be moved back.
    pub(crate) fn head_moved_by_turn(self) -> Option<Result<HeadMove, String>> {
        let git = self.project.store.git()?;
        let then = self.checkpoint.head.as_ref()?;
        let by = self.checkpoint.cause.by.as_ref()?;
        let mut all = self.project.store.list().ok()?;
        ledger::adopt(&mut all, &ledger::uses(&self.project.state));
        all.retain(|one| one.id == self.checkpoint.id || one.is_same_turn(self.checkpoint));
        let its = all.iter().map(|one| one.id).collect();
        let session = attribution::session_name(by.agent, &by.session);
        let end = attribution::head_moved_by(&self.project.place(), &session, &its)?;
        let now = git.head()?;
        if now == *then {
            // It was taken back.
            return None;
        }
        if now.commit.as_ref() != Some(&end) {
            return Some(Err("HEAD was moved again since".to_owned()));
        }
        git.plan_head(then).transpose()
    }
}

/// The same way in the other direction.
pub(super) fn reversed(there: HeadMove) -> HeadMove {
    HeadMove { from: there.to, to: there.from, count: 0, ..there }
}

/// Moves the branch, unless it has moved since the plan was made; returns whether it did.
pub(super) fn execute(project: &Project, to: &HeadMove, why: &str) -> Result<bool> {
    project.store.git().map_or(Ok(false), |git| git.move_head(to, why))
}

/// Notes a move, so that taking the restore back moves it back.
pub(super) fn note(project: &Project, there: &HeadMove, held: CheckpointId) -> Result<()> {
    let HeadMove { branch, from, to, .. } = there.clone();
    let what = LogEvent::Head { held: held.to_string(), branch, from, to };
    attribution::append(&project.place(), &[LogLine::of_restore(what)])
}

/// What happened to HEAD since a checkpoint; `None` if nothing did, or that cannot be told.
pub(crate) fn since(project: &Project, checkpoint: &Checkpoint) -> Option<HeadSince> {
    let (then, git) = (checkpoint.head.as_ref()?, project.store.git()?);
    let since = of_since(then, git.commits_since(then)?)?;
    let is_there = then.commit.as_deref().is_some_and(|commit| git.has_commit(commit));
    Some(if matches!(since, HeadSince::Lost) && !is_there { HeadSince::Gone } else { since })
}

/// The same of the repositories nested in the root, and of submodules.
pub(super) fn nested(project: &Project, record: &Record) -> Vec<NestedHead> {
    let heads = repository::heads(&project.state, project.root.path(), record).into_iter();
    let moved = heads.filter_map(|repository::Stood { worktree, place, then, since }| {
        let since = of_since(&then, since)?;
        Some(NestedHead { worktree, place, commit: then.commit?, since })
    });
    moved.collect()
}

/// The same, where its record can be read.
pub(crate) fn nested_heads(project: &Project, checkpoint: &Checkpoint) -> Vec<NestedHead> {
    let record = project.record_of(checkpoint.id);
    record.map_or_else(|_| Vec::new(), |record| nested(project, &record))
}

fn of_since(then: &Head, since: HeadDistance) -> Option<HeadSince> {
    then.commit.as_ref()?;
    if since.branch != then.branch {
        return Some(HeadSince::Switched { then: then.branch.clone(), now: since.branch });
    }
    match since.count {
        Some(0) => None,
        Some(count) => Some(HeadSince::Ahead(count)),
        None => Some(HeadSince::Lost),
    }
}
