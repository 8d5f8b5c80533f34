//! What is chosen of a plan on the picker's screen: offered and shown first, done later.
//!
//! The plan is made again before it is done, and is done only if it still is what was shown.

use std::collections::BTreeMap;

use super::{Consent, choice::FileChoice, execute, interrupted, planned::PlannedRestore, show};
use crate::{
    commands::say,
    error::{Error, Result},
    model::{Entry, RelPath},
    plan::{Action, Choosable, Chosen, Merged, PlanStep, RestorePlan},
    process::{Exit, Process},
    restore::{Prepared, Restore},
    restore_log,
    ui::{
        self, Style,
        picker::{FileMark, OfferedFile},
    },
};

/// Said where a restore of everything would have changed more than files.
const FILES_ALONE: &str = "only files were chosen; branch, index and repositories stay as they are";

/// A plan to choose from.
pub(crate) struct PlanOffer {
    prepared: Prepared,
    files: Vec<Choosable>,
    /// The files that were looked into. They are kept, because marks count their hunks.
    opened: BTreeMap<usize, FileChoice>,
}

/// What was chosen of a plan, and what was shown of it.
pub(crate) struct Selection {
    chosen: BTreeMap<Choosable, Chosen>,
    deeds: PartDeeds,
}

/// A path that changes, from what to what.
type PathDeed = (RelPath, Action, Option<Entry>, Option<Entry>);

/// All that a part of a plan changes.
struct PartDeeds {
    paths: Vec<PathDeed>,
    outside: Vec<PathDeed>,
    merges: BTreeMap<RelPath, Merged>,
}

impl PlanOffer {
    /// Plans a restore, to choose from.
    ///
    /// # Errors
    ///
    /// Fails if the checkpoint or the root cannot be read, and says what is there to choose if that is
    /// nothing.
    pub(crate) fn of(process: &Process<'_>, restore: Restore<'_>) -> Result<Self> {
        let root = restore.project.root.path();
        if !root.is_dir() {
            let what = format!("`{}` is gone, and comes back as a whole", ui::escape_path(root));
            return Err(Error::other(what, "choose `files only`"));
        }
        let prepared = restore.prepare(process)?;
        let files = prepared.plan.choosable();
        if files.is_empty() {
            let text = show::plan_text(PlannedRestore::of(restore, &prepared));
            let text = text.lines().find(|line| !line.is_empty()).unwrap_or_default();
            return Err(Error::other(format!("no file to choose: {}", text.trim()), ""));
        }
        Ok(Self { prepared, files, opened: BTreeMap::new() })
    }

    /// The files, as they are listed.
    pub(crate) fn rows(&self, restore: Restore<'_>) -> Vec<OfferedFile> {
        let shown = PlannedRestore::of(restore, &self.prepared);
        let lines = show::lines_of(shown);
        let row = |file: &Choosable| {
            let step = self.prepared.plan.step_of(file)?;
            let (verb, why) = show::words(step, shown);
            let slash = if file.is_outside { "/" } else { "" };
            let name = format!("{slash}{}", ui::escape(file.path.as_bytes()));
            let counted = lines.get(&file.path).filter(|_| !file.is_outside).copied();
            Some(OfferedFile { name, verb: verb.to_owned(), why, lines: counted })
        };
        self.files.iter().map(|file| row(file).unwrap_or_default()).collect()
    }

    /// What can be chosen of a file, each with a first line that names it.
    pub(crate) fn pieces(&mut self, restore: Restore<'_>, file: usize) -> Vec<String> {
        self.open(restore, file).map_or_else(Vec::new, |choice| choice.texts())
    }

    /// The same, with one of its hunks split into smaller ones.
    pub(crate) fn split(&mut self, restore: Restore<'_>, file: usize, at: usize) -> Vec<String> {
        let Some(choice) = self.open(restore, file) else { return Vec::new() };
        if at < choice.len() {
            choice.split(at);
        }
        choice.texts()
    }

    fn open(&mut self, restore: Restore<'_>, file: usize) -> Option<&mut FileChoice> {
        let choosable = self.files.get(file)?;
        if !self.opened.contains_key(&file) {
            let step = self.prepared.plan.step_of(choosable)?;
            let choice = FileChoice::of(restore, &self.prepared, choosable, step, Style::PLAIN);
            self.opened.insert(file, choice);
        }
        self.opened.get_mut(&file)
    }

    /// What the marks choose.
    pub(crate) fn select(
        &mut self,
        restore: Restore<'_>,
        marks: &[(usize, FileMark)],
    ) -> Selection {
        let mut chosen = BTreeMap::new();
        for (file, mark) in marks {
            let Some(choosable) = self.files.get(*file).cloned() else { continue };
            let what = match mark {
                FileMark::Unmarked => None,
                FileMark::Whole => Some(Chosen::All),
                FileMark::Hunks(taken) => self.open(restore, *file).and_then(|choice| {
                    for (at, is_taken) in taken.iter().enumerate().take(choice.len()) {
                        choice.take(at, *is_taken);
                    }
                    choice.chosen()
                }),
            };
            chosen.extend(what.map(|what| (choosable, what)));
        }
        let mut plan = self.prepared.plan.clone();
        plan.choose(&chosen);
        Selection { chosen, deeds: PartDeeds::of(&plan) }
    }
}

impl PartDeeds {
    fn of(plan: &RestorePlan) -> Self {
        let deed = |step: &PlanStep| (step.path.clone(), step.action, step.then, step.now);
        Self {
            paths: plan.deeds().map(deed).collect(),
            outside: plan.outside.deeds().map(deed).collect(),
            merges: plan.merges.clone(),
        }
    }

    /// A path that the other part changes in another way, or does not change.
    fn first_other<'a>(&'a self, other: &'a Self) -> Option<&'a RelPath> {
        let mut all = self.merges.iter();
        let merged = all.find(|(path, it)| other.merges.get(*path) != Some(it));
        first_other(&self.paths, &other.paths)
            .or_else(|| first_other(&self.outside, &other.outside))
            .or(merged.map(|(path, _)| path))
    }
}

/// Where two lists, both in the order of paths, differ first.
fn first_other<'a>(shown: &'a [PathDeed], wanted: &'a [PathDeed]) -> Option<&'a RelPath> {
    let same = shown.iter().zip(wanted).take_while(|(one, other)| one == other).count();
    shown.get(same).or(wanted.get(same)).map(|deed| &deed.0)
}

impl Selection {
    /// Leaves of a new plan what was chosen of the one that was shown. Returns whether more than files
    /// would have changed.
    ///
    /// # Errors
    ///
    /// Fails if the plan is another one by now: nothing was agreed to then.
    fn apply(&self, restore: Restore<'_>, prepared: &mut Prepared) -> Result<bool> {
        let is_more = prepared.choose(&self.chosen);
        let deeds = PartDeeds::of(&prepared.plan);
        let Some(other) = self.deeds.first_other(&deeds) else { return Ok(is_more) };
        let path = ui::escape(other.as_bytes()).into_owned();
        let verb = restore.request.verb;
        Err(Error::other(
            format!("`{path}` has changed since it was shown"),
            format!("nothing was changed; choose again what to {verb}"),
        ))
    }
}

/// What a selection would do, as it is shown before a yes.
///
/// # Errors
///
/// Fails if the checkpoint or the root cannot be read, or what was chosen from has changed.
pub(crate) fn part_text(
    process: &Process<'_>,
    restore: Restore<'_>,
    selection: &Selection,
) -> Result<String> {
    let mut prepared = restore.prepare(process)?;
    let is_more = selection.apply(restore, &mut prepared)?;
    let mut text = show::plan_text(PlannedRestore::of(restore, &prepared));
    if is_more {
        text.push_str(&format!("{FILES_ALONE}\n"));
    }
    Ok(text)
}

/// Does what was chosen, as it was shown, and says what came of it.
///
/// # Errors
///
/// Fails before anything is changed if what was chosen from has changed, or cannot be held.
pub(crate) fn carry_out_selection(
    process: &mut Process<'_>,
    restore: Restore<'_>,
    selection: &Selection,
) -> Result<Exit> {
    let Restore { project, request, .. } = restore;
    let consent = Consent { dry_run: false, yes: true, json: false, patch: false };
    let _alone = restore_log::lock(&project.state.root(&project.root))?;
    if let Some(done) = interrupted::before(process, project, request, consent)? {
        return Ok(done);
    }
    let mut prepared = restore.prepare(process)?;
    if selection.apply(restore, &mut prepared)? {
        say(process, &format!("note: {FILES_ALONE}"));
    }
    execute(process, restore, prepared, consent)
}
