//! Saves everything that a restore overwrites or removes. If anything cannot be held, the restore does
//! not start.

use std::{
    collections::BTreeSet,
    ffi::OsStr,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use super::{Restore, RestoreRequest, prepared::Prepared};
use crate::{
    crash,
    error::{Error, Result},
    fs::is_no_directory,
    model::{Cause, Checkpoint, CheckpointId, RelPath, Skipped},
    plan::{Picked, PlanStep, RestorePlan, UndoMark},
    process::Process,
    project::Project,
    restore_log::{Announced, RestoreLog},
    scan::Scan,
    state::RootState,
    store::{Draft, Opened, RepositoryStep, StepKind, record},
    ui,
};

impl Restore<'_> {
    /// Takes the before-restore checkpoint. It holds all the plan overwrites or removes, or nothing
    /// happens at all.
    ///
    /// `stored_scan` is what the plan was made from, if that was a moment ago: whatever changed since is
    /// left alone, because its stamp is no longer the one the plan saw.
    pub(super) fn hold(
        self,
        process: &Process<'_>,
        prepared: &Prepared,
        stored_scan: Option<Scan>,
    ) -> Result<CheckpointId> {
        let mut opened = Opened::default();
        for step in replaced(prepared) {
            opened.open(&step.place);
        }
        let held = self.take(process, prepared, stored_scan);
        if held.is_err() {
            opened.close();
        }
        held
    }

    fn take(
        self,
        process: &Process<'_>,
        prepared: &Prepared,
        stored_scan: Option<Scan>,
    ) -> Result<CheckpointId> {
        let Self { project, checkpoint, .. } = self;
        let plan = &prepared.plan;
        // What the scan holds by itself need not be named.
        let is_held =
            |path: &RelPath| stored_scan.as_ref().is_some_and(|scan| scan.stamp(path).is_some());
        let touched = plan.deeds().filter(|step| !is_held(&step.path));
        let touched = touched.map(|step| project.root.join(&step.path));
        let there = touched.filter(|path| is_no_directory(path));
        let (outside, absent): (Vec<&PlanStep>, Vec<&PlanStep>) =
            plan.outside.deeds().partition(|step| step.now.is_some());
        let outside = outside.into_iter().map(|step| step.path.at_top());
        let victims = there.chain(outside).collect();
        let mut scan = match stored_scan {
            Some(scan) => project.look_also(process, scan, victims),
            None => project.look(process, victims)?,
        };
        // Wherever they are: outside the root, or where the walk does not go. The store knows its own.
        let own = project.root.path().join(".git");
        scan.repositories.extend(replaced(prepared).map(|step| step.place.clone()));
        scan.repositories.retain(|place| *place != own);
        scan.repositories.sort();
        scan.repositories.dedup();
        scan.absent = absent.into_iter().map(|step| step.path.at_top()).collect();
        refuse_unheld(&scan.unheld, plan)?;
        let tool = mark(self.request, prepared).to_owned();
        let cause = Cause { tool: Some(tool), ..Cause::before_restore(checkpoint.id) };
        let draft =
            Draft { cause, taken_at: process.now, scan, always: true, deadline: None, after: None };
        let saved = project.store.save(draft)?;
        refuse_unheld(&saved.checkpoint.skipped, plan)?;
        refuse_unheld_repository(project, &saved.checkpoint, prepared)?;
        Ok(saved.checkpoint.id)
    }
}

/// What the checkpoint before a restore is marked with.
fn mark(request: &RestoreRequest, prepared: &Prepared) -> &'static str {
    if request.verb != "undo" {
        return request.verb;
    }
    if prepared.is_part() || request.picked != Picked::All {
        return UndoMark::IN_PART;
    }
    UndoMark { of_session: request.whole_session, has_conflicts: prepared.has_conflicts() }.text()
}

fn replaced(prepared: &Prepared) -> impl Iterator<Item = &RepositoryStep> {
    let is_replaced =
        |step: &&RepositoryStep| matches!(step.kind, StepKind::Replace(_) | StepKind::Remove(_));
    prepared.repositories.iter().filter(is_replaced)
}

/// A repository that is replaced must be held whole.
fn refuse_unheld_repository(
    project: &Project,
    held: &Checkpoint,
    prepared: &Prepared,
) -> Result<()> {
    let record = record::read(&project.place(), held.id)?;
    for step in replaced(prepared) {
        let is_of_it = |skipped: &&Skipped| {
            project.root.path().join(OsStr::from_bytes(&skipped.path)).starts_with(&step.place)
        };
        let refuse = |path: &[u8], why: &str| {
            Err(Error::CannotHold { path: ui::escape(path).into_owned(), why: why.to_owned() })
        };
        if let Some(skipped) = held.skipped.iter().find(is_of_it) {
            return refuse(&skipped.path, skipped.reason.words());
        }
        let place = step.place.as_path();
        let is_it = |path: &[u8]| project.root.path().join(OsStr::from_bytes(path)) == place;
        let is_held = match place.symlink_metadata() {
            Ok(found) if found.is_dir() => record.repositories.iter().any(|it| is_it(&it.path)),
            Ok(found) if found.is_symlink() || found.is_file() && found.len() > 0 => {
                record.pointers().any(|(path, _)| is_it(path))
            }
            // There is nothing in it.
            Ok(_) | Err(_) => true,
        };
        if !is_held {
            let why = "it leads to no repository that can be read; move it away, and try again";
            return refuse(place.as_os_str().as_bytes(), why);
        }
    }
    Ok(())
}

fn refuse_unheld(skipped: &[Skipped], plan: &RestorePlan) -> Result<()> {
    // A directory has nothing to hold but what is in it.
    let is_file = |step: &&PlanStep| step.now.is_none_or(|now| !now.is_directory());
    let files = plan.deeds().filter(is_file).map(|step| step.path.as_path().to_owned());
    let outside = plan.outside.deeds().filter(is_file).map(|step| step.path.at_top());
    // Both lists can be long.
    let touched: BTreeSet<PathBuf> = files.chain(outside).collect();
    let is_touched =
        |skipped: &&Skipped| touched.contains(Path::new(OsStr::from_bytes(&skipped.path)));
    match skipped.iter().find(is_touched) {
        Some(skipped) => Err(Error::CannotHold {
            path: ui::escape(&skipped.path).into_owned(),
            why: skipped.reason.words().to_owned(),
        }),
        None => Ok(()),
    }
}

/// Writes down that a restore is coming, before its checkpoint is taken.
pub(super) fn announce(project: &Project, place: &RootState) -> Result<()> {
    let newest = project.store.list()?.iter().map(|checkpoint| checkpoint.sequence).max();
    Announced { after: newest.unwrap_or(0) }.announce(place)
}

/// Takes back an announced restore that cannot begin.
pub(super) fn call_off(project: &Project, place: &RootState) -> Result<()> {
    if let Some(log) = RestoreLog::read(place)? {
        // It has its name, though it is not known to be on the disk. While it is there it needs
        // its checkpoint.
        let all = project.store.list()?;
        let held = all.iter().find(|checkpoint| checkpoint.id == log.held);
        let Some(held) = held else { return Ok(()) };
        Announced { after: held.sequence.saturating_sub(1) }.announce(place)?;
    }
    drop_announced(project, place)
}

/// Removes what is left of a restore that was announced and never began: its checkpoint, which
/// would count as a step that was done, and then the announcement. The restore lock must be held.
pub(super) fn drop_announced(project: &Project, place: &RootState) -> Result<()> {
    let Some(announced) = Announced::read(place)? else { return Ok(()) };
    let all = project.store.list()?;
    let took = all.iter().filter(|checkpoint| announced.took(checkpoint));
    let ids: Vec<CheckpointId> = took.map(|checkpoint| checkpoint.id).collect();
    if !ids.is_empty() {
        project.store.remove(&ids)?;
    }
    crash::point("restore-called-off");
    RestoreLog::end(place)
}
