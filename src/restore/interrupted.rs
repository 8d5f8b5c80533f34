//! Continues or aborts a restore that was killed.
//!
//! Both its target and its before-restore checkpoint are held. So a path that equals either may be
//! overwritten without holding it again, and `undo` still works.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::{Cursor, Read},
    path::PathBuf,
};

use super::{
    RestoreRequest, bring,
    comparison::{make_executable, seen_by_plan, skipped_now},
    content::digest_now,
    execute::{
        gone, is_settled, made, make_repositories, note_back, note_dated, note_merged, records,
        refuse_misplaced,
    },
    head,
    hold::drop_announced,
    outside, refs,
    repositories::keeps_own,
};
use crate::{
    apply::{self, ApplyOutcome},
    attribution::{self, PathSide},
    error::{Error, Result},
    fs::{Dir, c_name, is_no_directory},
    model::{Checkpoint, Content, Entry, Kind, RelPath, Tree},
    plan::{self, KeepReason, RestorePlan, Unsettled},
    process::Process,
    project::Project,
    restore_log::{self, Announced, RestoreLog},
    scan::Scan,
    store::{
        self, ContentSource, HeadMove, IndexOutcome,
        repository::{self, Ends},
    },
    ui,
};

/// Which end of an interrupted restore to go to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Toward {
    /// The state before it.
    Before,
    /// The state it went to.
    After,
}

impl Toward {
    /// The end that the restore was to reach, of the one that is wanted and the other.
    pub(super) fn restored<'e, T>(self, to: &'e mut T, from: &'e mut T) -> &'e mut T {
        match self {
            Self::After => to,
            Self::Before => from,
        }
    }
}

/// Finishes the interrupted restore of a root, or takes it back. Returns what it was and what came
/// of it.
///
/// # Errors
///
/// Fails if no restore was interrupted, or if one of its ends cannot be read.
pub(crate) fn resume(
    process: &Process<'_>,
    project: &Project,
    toward: Toward,
) -> Result<(RestoreLog, Settled)> {
    let place = project.place();
    let _alone = restore_log::lock(&place)?;
    drop_announced(project, &place)?;
    let Some(log) = RestoreLog::read(&place)? else {
        return Err(Error::other("no restore was interrupted here", "there is nothing to do"));
    };
    let settled = settle(process, project, &log, toward)?;
    if settled.is_over {
        end(project, &log, toward)?;
    }
    Ok((log, settled))
}

/// Leaves out the before-restore checkpoints that are no step of undo and redo: of restores that
/// never began, that were taken back, or that were interrupted, which comes to being taken back
/// before anything else is done.
///
/// # Errors
///
/// Fails if the log cannot be read.
pub(crate) fn retain_steps(project: &Project, checkpoints: &mut Vec<Checkpoint>) -> Result<()> {
    let place = project.place();
    let announced = Announced::read(&place)?;
    let mut no_steps = attribution::voided(&place);
    no_steps.extend(RestoreLog::read(&place)?.map(|log| log.held));
    checkpoints.retain(|checkpoint| {
        let never_began = announced.is_some_and(|announced| announced.took(checkpoint));
        !never_began && !no_steps.contains(&checkpoint.id)
    });
    Ok(())
}

/// Whether a restore of the root was interrupted: what is there now is neither end of it.
///
/// # Errors
///
/// Fails if the log cannot be read.
pub(crate) fn is_interrupted(project: &Project) -> Result<bool> {
    Ok(RestoreLog::read(&project.place())?.is_some())
}

/// What an interrupted restore means for the next one.
pub(crate) enum InterruptedRestore {
    /// There is none.
    Nothing,
    /// There is one, and it stays: nothing is to be done now.
    Left {
        /// The word that led to it.
        verb: String,
        /// Whether to take it back would be all the user asks for.
        is_all: bool,
    },
    /// It was taken back.
    TookBack {
        /// The word that led to it.
        verb: String,
        /// What came of it.
        settled: Box<Settled>,
        /// Whether that was all the user asked for.
        is_all: bool,
    },
}

/// Before any other restore: takes back an interrupted one, if `yes`. The restore lock must be held,
/// unless this is a `dry_run`.
///
/// # Errors
///
/// Fails if there is one and the user has to be asked about it, or if it cannot be taken back.
pub(crate) fn before(
    process: &Process<'_>,
    project: &Project,
    request: &RestoreRequest,
    dry_run: bool,
    yes: bool,
) -> Result<InterruptedRestore> {
    let place = project.place();
    if !dry_run {
        drop_announced(project, &place)?;
    }
    let Some(log) = RestoreLog::read(&place)? else { return Ok(InterruptedRestore::Nothing) };
    // To undo a restore that was interrupted is to take it back. An undo that was interrupted is
    // still to be done.
    let is_all = request.verb == "undo" && log.verb != "undo";
    if dry_run {
        return Ok(InterruptedRestore::Left { verb: log.verb, is_all });
    }
    if !yes {
        return Err(Error::other(
            "a restore was interrupted here",
            "`beforehand restore --continue` finishes it, `beforehand restore --abort` takes it back",
        ));
    }
    let settled = Box::new(settle(process, project, &log, Toward::Before)?);
    // What cannot be taken back is told, and stays held: it must not keep all others from going on.
    end(project, &log, Toward::Before)?;
    Ok(InterruptedRestore::TookBack { verb: log.verb, settled, is_all })
}

/// What came of finishing an interrupted restore, or of taking it back.
pub(crate) struct Settled {
    /// What was done to files.
    pub(crate) plan: RestorePlan,
    /// What came of it.
    pub(crate) outcome: ApplyOutcome,
    /// What came of git's index, where it was to be restored.
    pub(crate) index: Option<IndexOutcome>,
    /// Whether nothing is left that could be tried again.
    pub(crate) is_over: bool,
}

/// Ends the log of a restore that was finished or taken back.
fn end(project: &Project, log: &RestoreLog, toward: Toward) -> Result<()> {
    let place = project.place();
    if toward == Toward::Before {
        // Lost, it costs an undo that has to be asked for by the checkpoint's name.
        let _noted = attribution::void(&place, log.held);
    }
    RestoreLog::end(&place)
}

fn settle(
    process: &Process<'_>,
    project: &Project,
    log: &RestoreLog,
    toward: Toward,
) -> Result<Settled> {
    let to = match toward {
        Toward::Before => log.held,
        Toward::After => log.of,
    };
    apply::sweep(&project.root, &log.paths, &log.outside, log.held);
    let record = project.record_of(to)?;
    let records = records(project, [log.held, log.of]);
    let ends = Ends { held: log.held, records: &records };
    let aside = repository::remove_unfinished(&project.state, project.root.path(), &ends);
    let all = log.repository && toward == Toward::After;
    let mut steps = repository::steps(&project.state, project.root.path(), &record, all);
    steps.retain(|step| log.repositories.contains(&step.place));
    let mut removed = make_repositories(project, to, &ends, gone(&steps))?;
    removed.aside.extend(aside);
    let brought = brought(process, log, toward)?;
    let wanted = log.wanted();
    let (plan, scan, to_tree) = plan(process, project, (log, &wanted), toward)?;
    refuse_misplaced(&plan)?;
    let seen = seen_by_plan(project, &plan, &scan);
    let seen = |path: &RelPath| seen.get(path).copied();
    let open = |content: &Content| match &brought {
        Some(fork) => bring::open_content(project, fork, content),
        // What a step outside the project went to, calls had left, and no checkpoint may hold.
        None => project.store.open(content).or_else(|err| {
            let place = project.place();
            let left = || attribution::text(&place, &content.id.to_string());
            let left = (toward == Toward::After).then(left).flatten();
            left.map(|bytes| Box::new(Cursor::new(bytes)) as Box<dyn Read>).ok_or(err)
        }),
    };
    let mut outcome = apply::run(&project.root, &plan, &open, &seen, log.held)?;
    removed.join(&mut outcome);
    open_no_more(project, log, &plan);
    refs::settle(project, log.held, toward);
    move_head(project, log, toward)?;
    make_repositories(project, to, &ends, made(&steps))?.join(&mut outcome);
    let stages = log.index && keeps_own(project, &steps);
    let git = project.store.git().filter(|_| stages);
    let index = git.map(|git| git.settle_index(to, [log.held, log.of])).transpose()?;
    let wanted = Some(wanted).filter(|_| toward == Toward::After).unwrap_or_default();
    let back = paths_back(project, log, &plan, (&to_tree, &wanted))?;
    let back = back.iter().map(|(side, path, entry)| (*side, path, *entry));
    if let Some(then) = project.store.list()?.iter().find(|one| one.id == to) {
        note_back(project, (then.taken_ns(), log.held), &outcome, back)?;
    }
    if toward == Toward::After {
        // What others changed meanwhile stays, and is theirs.
        let kept: BTreeSet<&RelPath> = plan.kept().map(|step| &step.path).collect();
        let files = log.merges.iter().filter(|(path, _)| !kept.contains(path));
        let files = files.map(|(path, merged)| (path, merged));
        note_dated(project, &log.dated, files, (log.held, &outcome))?;
        note_merged(project, &log.merged, log.held, &plan.merges)?;
    }
    let is_over = is_settled(&outcome);
    Ok(Settled { plan, outcome, index, is_over })
}

/// Takes the branch to the end that is wanted, if it stands at the other.
fn move_head(project: &Project, log: &RestoreLog, toward: Toward) -> Result<()> {
    let Some([branch, from, to]) = log.head.clone() else { return Ok(()) };
    let there = HeadMove { branch, from, to, count: 0 };
    if let Some(git) = project.store.git() {
        git.remove_locks(&there);
    }
    match toward {
        Toward::After => {
            let why = format!("{} to {}", log.verb, log.of.short());
            head::execute(project, &there, &why)?;
            head::note(project, &there, log.held)
        }
        Toward::Before => {
            let why = format!("{} taken back", log.verb);
            head::execute(project, &head::reversed(there), &why).map(|_| ())
        }
    }
}

/// What the fork has that was to be brought back. To take that back, it need not be there any more: what was put
/// from it is known by its digest.
fn brought(process: &Process<'_>, log: &RestoreLog, toward: Toward) -> Result<Option<Project>> {
    let Some(of) = &log.brings else { return Ok(None) };
    match bring::reopen(process, of) {
        Err(_) if toward == Toward::Before => Ok(None),
        brought => brought.map(Some),
    }
}

/// The paths that are back as the wanted end has them, and what is there. `wanted` is what that has where the
/// tree does not say it.
fn paths_back(
    project: &Project,
    log: &RestoreLog,
    plan: &RestorePlan,
    (to, wanted): (&Tree, &BTreeMap<PathBuf, Option<Entry>>),
) -> Result<Vec<(PathSide, RelPath, Option<Entry>)>> {
    let merged: BTreeSet<&RelPath> = log.merged.iter().map(|(path, _)| path).collect();
    let kept: BTreeSet<&RelPath> = plan.kept().map(|step| &step.path).collect();
    let stays = |path: &RelPath| {
        plan.outside.steps.iter().any(|step| step.path == *path && !step.is_deed())
    };
    let mut back = Vec::new();
    for path in log.paths.iter().filter(|path| !merged.contains(path) && !kept.contains(path)) {
        let entry = match wanted.get(path.as_path()) {
            Some(wanted) => *wanted,
            None => store::entry_at(project.store.as_ref(), to, path)?,
        };
        back.push((PathSide::Root, path.clone(), entry));
    }
    for path in log.outside.iter().filter_map(|path| RelPath::from_top(path).ok()) {
        if !stays(&path) {
            let of_tree = || to.outside.get(&path.at_top()).copied();
            let entry = wanted.get(&path.at_top()).copied().unwrap_or_else(of_tree);
            back.push((PathSide::Outside, path, entry));
        }
    }
    Ok(back)
}

fn plan(
    process: &Process<'_>,
    project: &Project,
    (log, wanted): (&RestoreLog, &BTreeMap<PathBuf, Option<Entry>>),
    toward: Toward,
) -> Result<(RestorePlan, Scan, Tree)> {
    let (to_id, from_id) = match toward {
        Toward::Before => (log.held, log.of),
        Toward::After => (log.of, log.held),
    };
    let (to, from) = (project.tree_by_id(to_id)?, project.tree_by_id(from_id)?);
    let below = log.paths.iter().map(|path| project.root.join(path));
    let files = below.filter(|path| is_no_directory(path));
    let mut scan = project.look(process, files.chain(log.outside.iter().cloned()).collect())?;
    let now = project.store.identify(&mut scan)?;
    // Only now is it known what could not be read.
    refuse_skipped(log, &scan)?;
    let digests = log.merged.iter().map(|(path, sha)| (path, sha.as_str())).collect();
    let ends = BothEnds { project, toward, to, from, now, digests, wanted };
    let paths = log.paths.iter().map(|path| ends.unsettled(path)).collect::<Result<_>>()?;
    let mut plan = plan::settle(to_id, paths);
    make_executable(project.root.path(), &mut plan.steps, KeepReason::Changed);
    if toward == Toward::After {
        let deeds: BTreeSet<&RelPath> = plan.deeds().map(|step| &step.path).collect();
        let merges = log.merges.iter().filter(|(path, _)| deeds.contains(path)).cloned();
        plan.merges = merges.collect();
    }
    plan.outside = outside::settle([&ends.to, &ends.from, &ends.now], log, (toward, wanted));
    Ok((plan, scan, ends.to))
}

/// Refuses to go on if a path of the restore cannot be read now: nothing would hold what is there.
fn refuse_skipped(log: &RestoreLog, scan: &Scan) -> Result<()> {
    let skipped = skipped_now(scan);
    let skipped = plan::ByPath::of(&skipped);
    match log.paths.iter().find_map(|path| skipped.covering(path)) {
        Some(lost) => Err(Error::CannotHold {
            path: ui::escape(&lost.path).into_owned(),
            why: lost.reason.words().to_owned(),
        }),
        None => Ok(()),
    }
}

/// The two ends of an interrupted restore, and what is there now.
struct BothEnds<'a> {
    project: &'a Project,
    toward: Toward,
    /// The end that is wanted.
    to: Tree,
    /// The other end.
    from: Tree,
    now: Tree,
    /// The SHA-256 of what the restore puts there and its checkpoint does not have, in hex.
    digests: BTreeMap<&'a RelPath, &'a str>,
    /// What the restore was to reach where its checkpoint does not say it.
    wanted: &'a BTreeMap<PathBuf, Option<Entry>>,
}

impl BothEnds<'_> {
    /// What there is to settle at a path. Type, permissions and content all have to be as an end has them.
    fn unsettled(&self, path: &RelPath) -> Result<Unsettled> {
        let at = |tree: &Tree| store::entry_at(self.project.store.as_ref(), tree, path);
        let (mut to, mut from, now) = (at(&self.to)?, at(&self.from)?, at(&self.now)?);
        if let Some(wanted) = self.wanted.get(path.as_path()) {
            *self.toward.restored(&mut to, &mut from) = *wanted;
        }
        let now = now.map(|now| self.named(path, self.named(path, now, to), from));
        let restored = self.toward.restored(&mut to, &mut from);
        if let (Some(end), Some(now)) = (restored, now)
            && end.kind == now.kind
            && self.has_digest(path, now.kind)
        {
            // It has no name in the store, or the store of a fork has given it another one.
            end.content = now.content;
        }
        Ok(Unsettled { path: path.clone(), to, from, now })
    }

    /// Whether the content at a path is what the restore was to put there, as far as its digest was noted.
    fn has_digest(&self, path: &RelPath, kind: Kind) -> bool {
        let wanted = self.digests.get(path);
        wanted.is_some_and(|sha| digest_now(self.project, path, kind).is_some_and(|it| it == *sha))
    }

    fn named(&self, path: &RelPath, now: Entry, end: Option<Entry>) -> Entry {
        store::with_stored_id(self.project.store.as_ref(), path, now, end, ContentSource::Disk)
    }
}

/// Gives directories that forbade writing their permissions back.
fn open_no_more(project: &Project, log: &RestoreLog, plan: &RestorePlan) {
    let Ok(top) = Dir::open(project.root.path()) else { return };
    for (path, permissions) in &log.closed {
        if plan.deeds().any(|step| step.path == *path) || log.paths.contains(path) {
            continue;
        }
        let close = || {
            let (parent, name) = (top.parent_of(path).ok()?, c_name(path.name()).ok()?);
            let stamp = parent.stat_child(&name).ok()?;
            let is_opened = stamp.permissions() == permissions | 0o700;
            let is_ours = is_opened && stamp.kind() == Some(Kind::Directory);
            is_ours.then(|| parent.set_permissions(&name, Kind::Directory, *permissions))
        };
        let _closed = close();
    }
}
