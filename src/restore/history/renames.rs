//! A file that was renamed keeps the writers of its lines: by the same measure by which a revert follows it.

use std::collections::BTreeSet;

use super::{
    super::version::{ALIKE_MIN, COMPARED_MAX, similarity},
    FileHistory, HistoryStep, LineWriter, StepCause,
    lines::WrittenText,
};
use crate::{
    attribution::{AtPath, Doer, Sight},
    fs::stat_path,
    model::{Checkpoint, Entry, Kind, RelPath},
    store::{self, ContentSource},
};

/// Of a longer line of names the rest is not followed.
const NAMES_MAX: usize = 8;

impl FileHistory<'_> {
    /// The lines of the file that became one that was made, if that is one, as they were before.
    pub(super) fn renamed(
        &self,
        path: &RelPath,
        step: &HistoryStep,
        lines: &[Vec<u8>],
        names: &[&RelPath],
    ) -> Option<WrittenText> {
        let StepCause::By(writer @ (LineWriter::Turn(_) | LineWriter::User)) = &step.made else {
            return None;
        };
        let mut gone = self.gone(writer, step);
        gone.retain(|old| old != path && !names.contains(&old));
        if gone.len() > COMPARED_MAX || names.len() >= NAMES_MAX {
            return None;
        }
        let bytes = lines.concat();
        let mut found: Vec<(usize, &RelPath, Vec<HistoryStep>)> = Vec::new();
        for old in &gone {
            let Some(steps) = self.until_gone(old, step) else { continue };
            let there = steps.last().and_then(|last| last.there.as_ref());
            let Some(there) = there.filter(|there| there.kind == Kind::File) else { continue };
            let Some(before) = self.source.read(old, there) else { continue };
            found.push((similarity(&bytes, &before), old, steps));
        }
        let most = found.iter().map(|(alike, ..)| *alike).max().filter(|it| *it >= ALIKE_MIN)?;
        found.retain(|(alike, ..)| *alike == most);
        let [(_, old, steps)] = &found[..] else { return None };
        Some(self.text(old, steps, &[names, &[path]].concat()))
    }

    /// The states of a file until the writer of a step removed it.
    fn until_gone(&self, path: &RelPath, made: &HistoryStep) -> Option<Vec<HistoryStep>> {
        let mut steps = self.steps(path);
        let is_users = made.made == StepCause::By(LineWriter::User);
        let is_end = |step: &HistoryStep| {
            let is_then = !is_users || step.known <= made.order && made.known <= step.order;
            step.there.is_none() && step.made == made.made && is_then
        };
        let end = steps.iter().position(is_end)?;
        steps.truncate(end);
        Some(steps)
    }

    /// The files that a writer may have removed when it made another one.
    fn gone(&self, writer: &LineWriter, step: &HistoryStep) -> Vec<RelPath> {
        match writer {
            LineWriter::Turn(turn) => self.removed_by(*turn),
            LineWriter::User => self.gone_between(step.known, step.order).unwrap_or_default(),
            LineWriter::Before | LineWriter::Unknown(_) => Vec::new(),
        }
    }

    /// The paths at which calls of a turn were seen to leave nothing.
    fn removed_by(&self, turn: usize) -> Vec<RelPath> {
        let of_turn: Vec<Option<usize>> =
            self.calls.iter().filter(|ran| ran.turn == turn).map(|ran| ran.caller).collect();
        let is_removal = |by: Doer, there: &AtPath| match by {
            Doer::Call(by) => *there == AtPath::Nothing && by.is_some() && of_turn.contains(&by),
            Doer::Turn | Doer::Other | Doer::Restore => false,
        };
        let sights = self.log.sights.iter();
        let gone =
            sights.filter(|(_, sights)| sights.iter().any(|it| is_removal(it.by, &it.there)));
        gone.map(|(path, _)| path.clone()).collect()
    }

    /// The files that were there before one place and are not after another: those of the last checkpoint
    /// before it, and those that calls left since. Without a checkpoint after it, those that are not there
    /// now.
    fn gone_between(&self, from: usize, to: usize) -> Option<Vec<RelPath>> {
        let order = |one: &&Checkpoint| self.log.look(one).order;
        let whole = || self.checkpoints.iter().filter(|one| !one.partial);
        let before = whole().filter(|one| order(one) <= from).max_by_key(order)?;
        let after = whole().filter(|one| order(one) >= to).min_by_key(order);
        let (store, then) = (self.project.store.as_ref(), self.source.tree(before.id)?);
        let since = order(&before);
        let is_left = |sights: &[Sight]| {
            sights
                .iter()
                .any(|it| (since..=from).contains(&it.order) && it.there != AtPath::Nothing)
        };
        let left = self.log.sights.iter().filter(|(_, sights)| is_left(sights));
        let left = left.map(|(path, _)| path.clone());
        let is_file = |entry: Option<Entry>| entry.is_some_and(|it| it.kind == Kind::File);
        let gone: BTreeSet<RelPath> = if let Some(after) = after {
            let later = self.source.tree(after.id)?;
            let changes =
                store::changes(store, &then, &later, ContentSource::Saved).ok()?.into_iter();
            let gone = changes.filter(|change| change.after.is_none() && is_file(change.before));
            let is_gone = |path: &RelPath| {
                store::entry_at(store, &later, path).is_ok_and(|entry| entry.is_none())
            };
            gone.map(|change| change.path).chain(left.filter(is_gone)).collect()
        } else {
            let files = store::manifest(store, &then).ok()?.into_iter();
            let files = files.filter(|(_, entry)| is_file(Some(*entry))).map(|(path, _)| path);
            let is_gone = |path: &RelPath| stat_path(&self.project.root.join(path)).is_err();
            files.chain(left).filter(is_gone).collect()
        };
        Some(gone.into_iter().collect())
    }
}
