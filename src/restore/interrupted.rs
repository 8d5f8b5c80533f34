//! Continues or aborts a restore that was killed.
//!
//! Both its target and its before-restore checkpoint are held. So a path that equals either may be
//! overwritten without holding it again, and `undo` still works.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    RestoreRequest,
    bring::{Brings, BroughtTree},
    comparison::{seen_by_plan, skipped_now},
    content::digest_now,
    execute::{gone, is_settled, made, make_repositories, note_back, note_merged, records},
    head,
    hold::drop_announced,
    mid_turn, outside,
    repositories::keeps_own,
};
use crate::{
    apply::{self, ApplyOutcome},
    attribution::{self, PathSide},
    error::{Error, Result},
    fs::{Dir, c_name},
    model::{Checkpoint, Content, Entry, Kind, RelPath, Tree},
    plan::{self, Merged, RestorePlan, Unsettled},
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
    let place = project.state.root(&project.root);
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
    let place = project.state.root(&project.root);
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
    Ok(RestoreLog::read(&project.state.root(&project.root))?.is_some())
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
    let place = project.state.root(&project.root);
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
    let place = project.state.root(&project.root);
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
    let (plan, scan, to_tree) = plan(process, project, (log, brought.as_ref()), toward)?;
    let seen = seen_by_plan(project, &plan, &scan);
    let seen = |path: &RelPath| seen.get(path).copied();
    let open = |content: &Content| match &brought {
        Some(brought) => brought.open_content(project, content),
        None => project.store.open(content),
    };
    let mut outcome = apply::run(&project.root, &plan, &open, &seen, log.held)?;
    removed.join(&mut outcome);
    open_no_more(project, log, &plan);
    move_head(project, log, toward)?;
    make_repositories(project, to, &ends, made(&steps))?.join(&mut outcome);
    let stages = log.index && keeps_own(project, &steps);
    let git = project.store.git().filter(|_| stages);
    let index = git.map(|git| git.restore_index(to)).transpose()?;
    let restored = brought.as_ref().filter(|_| toward == Toward::After);
    let back = paths_back(project, log, &plan, &to_tree, restored)?;
    let back = back.iter().map(|(side, path, entry)| (*side, path, *entry));
    note_back(project, (to, log.held), &outcome, back)?;
    if toward == Toward::After {
        note_merged(project, &log.merged, log.held)?;
    }
    let is_over = is_settled(&outcome);
    Ok(Settled { plan, outcome, index, is_over })
}

/// Takes the branch to the end that is wanted, if it stands at the other.
fn move_head(project: &Project, log: &RestoreLog, toward: Toward) -> Result<()> {
    let Some([branch, from, to]) = log.head.clone() else { return Ok(()) };
    let there = HeadMove { branch, from, to, count: 0 };
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
fn brought(process: &Process<'_>, log: &RestoreLog, toward: Toward) -> Result<Option<BroughtTree>> {
    let Some(of) = &log.brings else { return Ok(None) };
    match Brings::again(process, of) {
        Err(_) if toward == Toward::Before => Ok(None),
        brought => brought.map(Some),
    }
}

/// The paths that are back as the wanted end has them, and what is there. `brought` is what was to be brought
/// from a fork, if that is the wanted end.
fn paths_back(
    project: &Project,
    log: &RestoreLog,
    plan: &RestorePlan,
    to: &Tree,
    brought: Option<&BroughtTree>,
) -> Result<Vec<(PathSide, RelPath, Option<Entry>)>> {
    let merged: BTreeSet<&RelPath> = log.merged.iter().map(|(path, _)| path).collect();
    let kept: BTreeSet<&RelPath> = plan.kept().map(|step| &step.path).collect();
    let stays = |path: &RelPath| {
        plan.outside.steps.iter().any(|step| step.path == *path && !step.is_deed())
    };
    let mut back = Vec::new();
    for path in log.paths.iter().filter(|path| !merged.contains(path) && !kept.contains(path)) {
        let entry = match brought {
            Some(brought) => brought.entry(path)?,
            None => store::entry_at(project.store.as_ref(), to, path)?,
        };
        back.push((PathSide::Root, path.clone(), entry));
    }
    for path in log.outside.iter().filter_map(|path| RelPath::from_top(path).ok()) {
        if !stays(&path) {
            let entry = to.outside.get(&path.at_top()).copied();
            back.push((PathSide::Outside, path, entry));
        }
    }
    Ok(back)
}

fn plan(
    process: &Process<'_>,
    project: &Project,
    (log, brought): (&RestoreLog, Option<&BroughtTree>),
    toward: Toward,
) -> Result<(RestorePlan, Scan, Tree)> {
    let (to_id, from_id) = match toward {
        Toward::Before => (log.held, log.of),
        Toward::After => (log.of, log.held),
    };
    let (to, from) = (project.tree_by_id(to_id)?, project.tree_by_id(from_id)?);
    let below = log.paths.iter().map(|path| project.root.join(path));
    let files = below.filter(|path| path.symlink_metadata().is_ok_and(|found| !found.is_dir()));
    let mut scan = project.look(process, files.chain(log.outside.iter().cloned()).collect())?;
    let now = project.store.identify(&mut scan)?;
    // Only now is it known what could not be read.
    refuse_skipped(log, &scan)?;
    let mid_turn = match toward {
        Toward::After if log.brings.is_none() => {
            mid_turn::unfinished(project, log.of, &log.merged)?
        }
        Toward::After | Toward::Before => BTreeMap::new(),
    };
    let digests = log.merged.iter().map(|(path, sha)| (path, sha.as_str())).collect();
    let merges = log.merges.iter().map(|(path, merged)| (path, merged)).collect();
    let ends = BothEnds { project, log, brought, toward, to, from, now, mid_turn, digests, merges };
    let (mut paths, mut merges) = (Vec::new(), BTreeMap::new());
    for path in &log.paths {
        paths.extend(ends.unsettled(path, &mut merges)?);
    }
    let mut plan = plan::settle(to_id, paths);
    plan.merges = merges;
    plan.outside = outside::settle(&ends.to, &ends.from, &ends.now, log);
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
    log: &'a RestoreLog,
    brought: Option<&'a BroughtTree>,
    toward: Toward,
    /// The end that is wanted.
    to: Tree,
    /// The other end.
    from: Tree,
    now: Tree,
    /// The work of others since, where the restore was to go back to it.
    mid_turn: BTreeMap<RelPath, Entry>,
    /// The SHA-256 of the merged files, in hex.
    digests: BTreeMap<&'a RelPath, &'a str>,
    /// Their content, where it was written down.
    merges: BTreeMap<&'a RelPath, &'a Merged>,
}

impl BothEnds<'_> {
    /// What there is to settle at a path; `None` for nothing. Adds what is to be merged there to `merges`.
    fn unsettled(
        &self,
        path: &RelPath,
        merges: &mut BTreeMap<RelPath, Merged>,
    ) -> Result<Option<Unsettled>> {
        let (mut to, mut from) = self.ends(path)?;
        let now = store::entry_at(self.project.store.as_ref(), &self.now, path)?;
        let now = now.map(|now| self.named(path, self.named(path, now, to), from));
        let is_directory = now.is_some_and(|now| now.kind == Kind::Directory);
        if is_directory && self.leads_to_merged(path) {
            // It may have been made on the way to a merged file.
            from = from.or(now);
        }
        if let Some(&sha) = self.digests.get(path) {
            let digest = now.and_then(|now| digest_now(self.project, path, now.kind));
            let is_ours = digest.is_some_and(|digest| digest == sha);
            from = if is_ours { now } else { from };
            if self.is_to_be_merged(path) {
                // It is merged already, or a version wrote the log that did not note the content.
                let Some(&whole) = self.merges.get(path).filter(|_| !is_ours) else {
                    return Ok(None);
                };
                merges.insert(path.clone(), whole.clone());
                let (kind, permissions) = (Kind::File, whole.permissions);
                to = Some(Entry { kind, permissions, content: None, device: 0 });
            }
        }
        if let Some((_, other)) = self.log.others.iter().find(|(at, _)| at == path) {
            let there = other.and_then(entry_of_mode);
            let end = self.restored(&mut to, &mut from);
            if there.is_none_or(|there| end.is_none_or(|end| end.kind != there.kind)) {
                *end = there;
            }
        }
        Ok(Some(Unsettled { path: path.clone(), to, from, now }))
    }

    /// What each end has at a path.
    fn ends(&self, path: &RelPath) -> Result<(Option<Entry>, Option<Entry>)> {
        let store = self.project.store.as_ref();
        let mid_turn = self.mid_turn.get(path).copied();
        let mut to = mid_turn.or(store::entry_at(store, &self.to, path)?);
        let mut from = store::entry_at(store, &self.from, path)?;
        if let Some(brought) = self.brought {
            *self.restored(&mut to, &mut from) = brought.entry(path)?;
        }
        Ok((to, from))
    }

    /// The end that the restore was to reach.
    fn restored<'e>(
        &self,
        to: &'e mut Option<Entry>,
        from: &'e mut Option<Entry>,
    ) -> &'e mut Option<Entry> {
        match self.toward {
            Toward::After => to,
            Toward::Before => from,
        }
    }

    fn named(&self, path: &RelPath, now: Entry, end: Option<Entry>) -> Entry {
        store::named_as(self.project.store.as_ref(), path, now, end, ContentSource::Disk)
    }

    /// Whether a merged file lies below a path.
    fn leads_to_merged(&self, dir: &RelPath) -> bool {
        let mut from_there = self.digests.range::<RelPath, _>(dir..);
        from_there.next().is_some_and(|(path, _)| path.is_within(dir))
    }

    /// Whether the wanted end has a merge of both sides at a path of which the digest is known.
    fn is_to_be_merged(&self, path: &RelPath) -> bool {
        let is_brought = self.log.brings.is_some() && !self.merges.contains_key(path);
        self.toward == Toward::After && !self.mid_turn.contains_key(path) && !is_brought
    }
}

/// What is no file, by the bits of its type and permissions.
fn entry_of_mode(mode: u32) -> Option<Entry> {
    let (kind, permissions) = (Kind::of_mode(mode)?, mode & 0o7777);
    Some(Entry { kind, permissions, content: None, device: 0 })
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
