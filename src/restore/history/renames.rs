//! A file that was renamed keeps the writers of its lines: by the same measure by which a revert follows it.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    super::{
        content::{bytes_then, small},
        version::{ALIKE_MIN, COMPARED_MAX, similarity},
    },
    FileHistory, Leaving, LineWriter, PastState, StateOrigin,
    lines::{RenamedText, WrittenText, anything},
};
use crate::{
    attribution::{AtPath, Doer, LoggedCall, Sight},
    fs::stat_path,
    model::{Checkpoint, Entry, Kind, RelPath, Tree},
    store::{self, ContentSource},
};

/// Of a longer line of names the rest is not followed.
const NAMES_MAX: usize = 8;
/// A shorter line, without the blanks around it, is in many files.
const TELLING_BYTES: usize = 4;

/// Whether a call was running at a place, or ended there.
fn is_during(caller: &LoggedCall, at: usize) -> bool {
    caller.began < at && caller.done.is_some_and(|done| at <= done)
}

/// A file that was removed or replaced.
struct LeftFile {
    path: RelPath,
    /// Its states until then.
    steps: Vec<PastState>,
    /// What the last one had.
    bytes: Vec<u8>,
    /// The lines that it has since.
    still: BTreeSet<Vec<u8>>,
    /// Where it was seen to be gone, or another.
    left: usize,
    /// Whether the same writer is known to have removed or replaced it.
    is_certain: bool,
}

impl FileHistory<'_> {
    /// The file that became one that was made, as it was before: one that is at least `alike_min` percent the same.
    pub(super) fn renamed(
        &self,
        (path, alike_min): (&RelPath, usize),
        step: &PastState,
        lines: &[Vec<u8>],
        names: &[&RelPath],
    ) -> RenamedText {
        let StateOrigin::By(writer) = &step.origin else { return RenamedText::default() };
        if names.len() >= NAMES_MAX {
            return RenamedText::default();
        }
        let bytes = lines.concat();
        let left = self.left_meanwhile(path, (writer, step), Leaving::Gone);
        // However short it is, one that is gone and one that is made of the same bytes are one file.
        let is_moved = |before: &[u8]| !bytes.is_empty() && bytes == before;
        let alike = |file: LeftFile| {
            let is_moved = is_moved(&file.bytes);
            (if is_moved { 100 } else { similarity(&bytes, &file.bytes) }, file)
        };
        let mut found: Vec<(usize, LeftFile)> =
            left.unwrap_or_default().into_iter().map(alike).collect();
        let most = found.iter().map(|(alike, _)| *alike).max().filter(|it| *it >= alike_min);
        found.retain(|(alike, _)| Some(*alike) == most);
        // One that went in the very call that made this one: the others had gone before, or went later.
        let is_in_call = |(_, file): &(usize, LeftFile)| self.is_in_one_call(file.left, step.order);
        if found.iter().any(is_in_call) {
            found.retain(is_in_call);
        }
        let names = [names, &[path]].concat();
        let text = |old: &LeftFile| self.text(&old.path, &old.steps, &names);
        RenamedText {
            texts: found.iter().map(|(_, old)| text(old)).collect(),
            is_certain: found.iter().all(|(_, old)| old.is_certain),
        }
    }

    /// Whether there is a call that was running at both places, or ended there.
    fn is_in_one_call(&self, one: usize, other: usize) -> bool {
        let mut logged_calls = self.log.logged_calls.iter();
        logged_calls.any(|caller| is_during(caller, one) && is_during(caller, other))
    }

    /// The file that has become another one in the very command that changed it too, as where two files change their
    /// names with each other: its lines before that.
    pub(super) fn exchanged(
        &self,
        path: &RelPath,
        step: &PastState,
        (before, lines): (&[Vec<u8>], &[Vec<u8>]),
        names: &[&RelPath],
    ) -> Option<WrittenText> {
        let StateOrigin::By(writer) = &step.origin else { return None };
        let mut logged_calls = self.log.logged_calls.iter();
        // An edit has one file.
        let is_command = logged_calls.any(|it| it.paths.is_none() && is_during(it, step.order));
        if names.len() >= NAMES_MAX || lines.is_empty() || !is_command {
            return None;
        }
        let bytes = lines.concat();
        // One that is much as it was is still itself. To look at all others for each change of it would take long.
        if !before.is_empty() && similarity(&before.concat(), &bytes) >= ALIKE_MIN {
            return None;
        }
        let left = self.left_meanwhile(path, (writer, step), Leaving::Changed)?;
        let is_it = |file: &LeftFile| {
            let is_usable = file.is_certain && !names.contains(&&file.path);
            is_usable && file.bytes == bytes && self.is_in_one_call(file.left, step.order)
        };
        let file = left.into_iter().find(is_it)?;
        Some(self.text(&file.path, &file.steps, &[names, &[path]].concat()))
    }

    /// The lines of the files that a restore removed when it made a state of a path: a revert gives a file its old
    /// name back.
    pub(super) fn moved_by_restore(
        &self,
        path: &RelPath,
        step: &PastState,
        names: &[&RelPath],
    ) -> Vec<WrittenText> {
        if names.len() >= NAMES_MAX {
            return Vec::new();
        }
        let Some(restore) = self.log.restore_at(step.order) else { return Vec::new() };
        let is_removal = |sight: &Sight| {
            let is_its = self.log.restore_at(sight.order) == Some(restore);
            sight.by == Doer::Restore && !sight.there.is_any() && is_its
        };
        let removed = self.log.sights.iter().filter(|(old, sights)| {
            *old != path && !names.contains(old) && sights.iter().any(is_removal)
        });
        let names_since = [names, &[path]].concat();
        let text = |old: &RelPath| {
            let mut steps = self.states(old).to_vec();
            let end = steps.iter().position(|it| {
                it.there.is_none() && self.log.restore_at(it.order) == Some(restore)
            })?;
            steps.truncate(end);
            Some(self.text(old, &steps, &names_since))
        };
        removed.take(COMPARED_MAX).filter_map(|(old, _)| text(old)).collect()
    }

    /// The lines that a change may have taken from another file, which the same writer removed or replaced, each
    /// with who may have written it there. `None` if there are too many such files.
    pub(super) fn taken_lines(
        &self,
        path: &RelPath,
        step: &PastState,
        names: &[&RelPath],
    ) -> Option<BTreeMap<Vec<u8>, LineWriter>> {
        let mut taken: BTreeMap<Vec<u8>, LineWriter> = BTreeMap::new();
        let StateOrigin::By(writer) = &step.origin else { return Some(taken) };
        if names.len() >= NAMES_MAX {
            return None;
        }
        let names_since = [names, &[path]].concat();
        let left = self.left_meanwhile(path, (writer, step), Leaving::Changed)?;
        for LeftFile { path, steps, bytes, still, .. } in left {
            // Files that are there all the time could exchange lines for ever.
            let written: Vec<(Vec<u8>, LineWriter)> = if names.contains(&&path) {
                let lines = bytes.split_inclusive(|byte| *byte == b'\n');
                lines.map(|line| (line.to_vec(), anything())).collect()
            } else {
                self.text(&path, &steps, &names_since).into_writers().collect()
            };
            for (line, writer) in written {
                if line.trim_ascii().len() >= TELLING_BYTES && !still.contains(&line) {
                    let known = taken.get(&line).map(|known| known.or(&writer));
                    taken.insert(line, known.unwrap_or(writer));
                }
            }
        }
        Some(taken)
    }

    /// The files that the writer of a step removed or replaced meanwhile: the states until then, and the bytes of
    /// the last one. `None` if there are too many to be compared.
    fn left_meanwhile(
        &self,
        path: &RelPath,
        (writer, made): (&LineWriter, &PastState),
        leaving: Leaving,
    ) -> Option<Vec<LeftFile>> {
        let mut paths = self.touched(writer, made, leaving);
        paths.retain(|old| old != path);
        if paths.len() > COMPARED_MAX {
            return None;
        }
        let mut left = Vec::new();
        for old in paths {
            let Some((steps, end)) = self.until_left(&old, made, leaving) else { continue };
            let there = steps.last().and_then(|last| last.there.as_ref());
            let Some(there) = there.filter(|there| there.kind == Kind::File) else { continue };
            let Some(before) = self.source.read(&old, there) else { continue };
            let is_known = matches!(writer, LineWriter::Turn(_) | LineWriter::User);
            let is_certain = is_known && end.origin == made.origin;
            let still = end.there.as_ref().filter(|there| there.kind == Kind::File);
            let still = still.and_then(|there| self.source.read(&old, there)).unwrap_or_default();
            let still = still.split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
            let left_at = end.order;
            left.push(LeftFile {
                path: old,
                steps,
                bytes: before,
                still,
                left: left_at,
                is_certain,
            });
        }
        Some(left)
    }

    /// The states of a file until the writer of a step removed or replaced it, or may have, and the one that it left.
    fn until_left(
        &self,
        path: &RelPath,
        made: &PastState,
        leaving: Leaving,
    ) -> Option<(Vec<PastState>, PastState)> {
        let mut steps = self.states(path).to_vec();
        let is_turns = matches!(made.origin, StateOrigin::By(LineWriter::Turn(_)));
        let is_end = |step: &PastState| {
            let is_then = is_turns && step.origin == made.origin
                || step.known_until <= made.order && made.known_until <= step.order;
            let is_left = step.there.is_none() || leaving == Leaving::Changed;
            is_left && is_then && made.origin.may_be_one_with(&step.origin)
        };
        let ends = steps.iter().enumerate().filter(|(_, step)| is_end(step));
        let ends: Vec<usize> = ends.map(|(at, _)| at).collect();
        // A turn may have left it before and come back to it: the last time until then counts.
        let is_by_then = |at: &&usize| {
            let order = steps[**at].order;
            order <= made.order || self.is_in_one_call(order, made.order)
        };
        let end = *ends.iter().rev().find(is_by_then).or(ends.first())?;
        let left = steps[end].clone();
        steps.truncate(end);
        Some((steps, left))
    }

    /// The files that a writer may have removed or changed when it made another one.
    fn touched(&self, writer: &LineWriter, step: &PastState, leaving: Leaving) -> Vec<RelPath> {
        match writer {
            LineWriter::Turn(turn) => self.left_by(*turn, leaving),
            LineWriter::User => {
                self.left_between((step.known_until, step.order), leaving).unwrap_or_default()
            }
            LineWriter::Unknown(candidates) => {
                let by_turns =
                    candidates.turns.iter().flat_map(|turn| self.left_by(*turn, leaving));
                let between = self.left_between((step.known_until, step.order), leaving);
                let all: BTreeSet<RelPath> = by_turns.chain(between.unwrap_or_default()).collect();
                all.into_iter().collect()
            }
            LineWriter::Before => Vec::new(),
        }
    }

    /// The paths at which calls of a turn were seen to leave nothing, or anything.
    fn left_by(&self, turn: usize, leaving: Leaving) -> Vec<RelPath> {
        let of_turn: Vec<Option<usize>> =
            self.calls.iter().filter(|ran| ran.turn == turn).map(|ran| ran.caller).collect();
        let is_removal = |by: Doer, there: &AtPath| match by {
            Doer::Call(by) => {
                let is_left = *there == AtPath::Nothing || leaving == Leaving::Changed;
                is_left && by.is_some() && of_turn.contains(&by)
            }
            Doer::Other | Doer::Restore => false,
        };
        let sights = self.log.sights.iter();
        let gone =
            sights.filter(|(_, sights)| sights.iter().any(|it| is_removal(it.by, &it.there)));
        gone.map(|(path, _)| path.clone()).collect()
    }

    /// The files that were there before one place and were not, or were others, at some time until another: those of
    /// the last checkpoint before it, and those that calls left since. Without a checkpoint after it, those that are
    /// not there now.
    fn left_between(&self, (from, to): (usize, usize), leaving: Leaving) -> Option<Vec<RelPath>> {
        let order = |one: &&Checkpoint| self.log.position_of(one);
        let whole = || self.checkpoints.iter().filter(|one| one.completeness.is_whole());
        let before = whole().filter(|one| order(one) <= from).max_by_key(order)?;
        let then = self.source.tree(before.id)?;
        let since = order(&before);
        let is_left = |sights: &[Sight]| {
            sights.iter().any(|it| (since..=to).contains(&it.order) && it.there != AtPath::Nothing)
        };
        let left = self.log.sights.iter().filter(|(_, sights)| is_left(sights));
        let left: Vec<&RelPath> = left.map(|(path, _)| path).collect();
        // What was gone meanwhile, a restore may have brought back.
        let next = whole().map(|one| order(&one)).filter(|order| *order >= to).min();
        let mut gone = BTreeSet::new();
        for one in whole() {
            if from < order(&one) && order(&one) <= next.unwrap_or(to) {
                let later = self.source.tree(one.id)?;
                gone.extend(self.left_until((&then, &later), &left, leaving)?);
            }
        }
        if next.is_none() {
            gone.extend(self.left_until_now(&then, &left, leaving)?);
        }
        Some(gone.into_iter().collect())
    }

    /// The files of one tree, and others that had been `left`, that are not in a later one, or are others there.
    fn left_until(
        &self,
        (then, later): (&Tree, &Tree),
        left: &[&RelPath],
        leaving: Leaving,
    ) -> Option<Vec<RelPath>> {
        let store = self.project.store.as_ref();
        let changes = store::changes(store, then, later, ContentSource::Saved).ok()?;
        let gone = changes.into_iter().filter(|change| {
            let is_left = change.after.is_none() || leaving == Leaving::Changed;
            is_left && is_file(change.before)
        });
        // Whether one has become another is told by its states.
        let is_left = |path: &&&RelPath| {
            let is_gone = || store::entry_at(store, later, path).is_ok_and(|entry| entry.is_none());
            leaving == Leaving::Changed || is_gone()
        };
        let left = left.iter().filter(is_left).copied().cloned();
        Some(gone.map(|change| change.path).chain(left).collect())
    }

    /// The same of what is there now.
    fn left_until_now(
        &self,
        then: &Tree,
        left: &[&RelPath],
        leaving: Leaving,
    ) -> Option<Vec<RelPath>> {
        let files = store::manifest(self.project.store.as_ref(), then).ok()?.into_iter();
        let files = files.filter(|(_, entry)| is_file(Some(*entry))).map(|(path, _)| path);
        let is_gone = |path: &RelPath| {
            let found = stat_path(&self.project.root.join(path));
            // It is compared with what is there when its states are.
            found.is_err() || leaving == Leaving::Changed && self.is_other_now(then, path)
        };
        let left = left.iter().copied().cloned();
        Some(files.chain(left).filter(is_gone).collect())
    }

    /// Whether a file has another size now than a checkpoint has of it, or other bytes.
    fn is_other_now(&self, then: &Tree, path: &RelPath) -> bool {
        let store = self.project.store.as_ref();
        let entry = store::entry_at(store, then, path).ok().flatten();
        let now = small(self.project.root.path(), path, Kind::File);
        entry.and_then(|entry| bytes_then(self.project, &entry)) != now
    }
}

fn is_file(entry: Option<Entry>) -> bool {
    entry.is_some_and(|it| it.kind == Kind::File)
}
