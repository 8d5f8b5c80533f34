//! Carries out what was planned: the fork is held, and the project before anything in it is changed.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
};

use super::Brings;
use crate::{
    attribution, crash,
    error::{Error, Result},
    forked::BroughtBack,
    fs::is_no_directory,
    model::{Cause, Checkpoint, CheckpointId, Entry, RelPath},
    plan::{Action, KeepReason, PlanStep, is_same},
    process::Process,
    project::Project,
    restore::{Restore, RestoreReport, brought::Brought, prepared::Prepared},
    store::{self, ContentSource, Draft},
    ui,
};

impl Restore<'_> {
    /// Carries out what was prepared, as a restore to the state right before it.
    pub(in crate::restore) fn bring(
        self,
        process: &Process<'_>,
        prepared: &mut Prepared,
        was_asked: bool,
        brings: &Brings,
    ) -> Result<RestoreReport> {
        if prepared.is_empty() {
            return self.execute_plan(process, prepared, was_asked);
        }
        let Some(mut brought) = prepared.brought.take() else {
            return self.execute_plan(process, prepared, was_asked);
        };
        let name = brings.entry.name();
        crash::point("keep-planned");
        let held = brings.hold(process, &brought)?;
        brings.confirm(&brought, &held, &mut prepared.plan.steps)?;
        crash::point("keep-held");
        let of = brings.checkpoint(&held);
        brought.of = Some(of);
        let why = format!("before `fork --keep {}`", ui::escape(name.as_encoded_bytes()));
        let before = self.project.hold(process, Cause::asked(Some(why)), true)?.checkpoint;
        prepared.plan.of = before.id;
        prepared.others_digests = digests(brings, prepared)?;
        prepared.brought = Some(brought);
        let restore = Restore { checkpoint: &before, ..self };
        let report = restore.execute_plan(process, prepared, was_asked)?;
        crash::point("keep-done");
        if let (Some(held_here), true) = (report.held, report.is_settled) {
            brings.note(prepared, &held, held_here)?;
        }
        Ok(report)
    }
}

impl Brings {
    /// Takes a checkpoint of the fork, with everything that is brought.
    fn hold(&self, process: &Process<'_>, brought: &Brought) -> Result<Checkpoint> {
        let places = brought.theirs.iter().filter(|(_, theirs)| theirs.is_some());
        let places = places.map(|(path, _)| self.fork.root.join(path));
        let files: Vec<PathBuf> = places.filter(|place| is_no_directory(place)).collect();
        let scan = self.fork.look(process, files)?;
        let cause = Cause::asked(Some("before it was brought back".to_owned()));
        let (taken_at, deadline, after) = (process.now, None, None);
        let draft = Draft { cause, taken_at, scan, always: false, deadline, after };
        Ok(self.fork.store.save(draft)?.checkpoint)
    }

    /// Makes sure that the checkpoint has what the plan was made of, and makes the plan take it from there.
    fn confirm(&self, brought: &Brought, held: &Checkpoint, steps: &mut [PlanStep]) -> Result<()> {
        let store = self.fork.store.as_ref();
        let tree = store.tree(held.id)?;
        for (path, theirs) in &brought.theirs {
            let found = store::entry_at(store, &tree, path)?;
            let theirs =
                theirs.map(|it| store::with_stored_id(store, path, it, found, ContentSource::Disk));
            if !is_same(theirs.as_ref(), found.as_ref()) {
                let place = ui::escape_path(&self.fork.root.join(path)).into_owned();
                return Err(Error::other(
                    format!("`{place}` changed during the restore"),
                    "nothing was changed; run this again when no process uses the fork",
                ));
            }
            let at = steps.binary_search_by(|step| step.path.cmp(path));
            let step = at.ok().map(|at| &mut steps[at]).filter(|step| step.comes_back());
            if let Some((then, found)) = step.and_then(|step| step.then.as_mut()).zip(found) {
                then.content = found.content;
            }
        }
        Ok(())
    }

    /// Notes in the fork's entry what was brought, so that the next time goes on from there.
    fn note(&self, prepared: &Prepared, of: &Checkpoint, held: CheckpointId) -> Result<()> {
        let brought = prepared.brought.as_ref();
        let unpicked = brought.into_iter().flat_map(|it| it.unpicked.union(&it.old_names).cloned());
        let stays = brought.into_iter().flat_map(|it| it.stays.iter().map(|it| it.path.clone()));
        let is_left =
            |step: &&PlanStep| matches!(step.action, Action::Keep(kept) if kept != KeepReason::New);
        let kept = prepared.plan.steps.iter().filter(is_left).map(|step| step.path.clone());
        let stayed: BTreeSet<RelPath> = unpicked.chain(stays).chain(kept).collect();
        if !self.own.fork().exists() {
            // It was dropped meanwhile.
            return Ok(());
        }
        let mut entry = self.entry.clone();
        entry.note_brought(BroughtBack { of: of.id, held, stayed });
        entry.write(&self.own)
    }
}

/// The SHA-256 of what is put there from the fork, by which an undo knows it again.
fn digests(brings: &Brings, prepared: &Prepared) -> Result<BTreeMap<RelPath, String>> {
    let mut digests = BTreeMap::new();
    for step in prepared.plan.steps.iter().filter(|step| step.comes_back()) {
        let Some(entry) = step.then else { continue };
        digests.insert(step.path.clone(), digest(&brings.fork, &entry)?);
    }
    Ok(digests)
}

/// The SHA-256, in hex, of what a checkpoint of the fork has.
fn digest(fork: &Project, entry: &Entry) -> Result<String> {
    let Some(content) = entry.content.filter(|_| entry.kind.has_content()) else {
        return Ok(attribution::digest_of_kind(entry.kind));
    };
    let from = fork.store.open(&content)?;
    attribution::digest_of(from).map_err(Error::io("read", fork.root.path()))
}
