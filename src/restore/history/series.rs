//! What turns did, as a series of changes: each goes on from where the one before it ended.
//!
//! What others did to the same files between two turns, and what cannot be told from a turn's, is a change of
//! its own. So nothing is merged, and the last change leads to what the last turn left.

mod order;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use chrono::{DateTime, Utc};

use super::{
    super::version::{ALIKE_MIN, Clash, Version, VersionEntry, similarity},
    FileHistory, LineWriter, PastState, StateOrigin,
};
use crate::{
    attribution::Sight,
    error::Result,
    model::{Checkpoint, Kind, Reason, RelPath},
    store::{self, ContentSource},
};
use order::{CourseState, FileCourse, OrderedPart, PartOwner};

/// The changes of some turns, oldest first.
#[derive(Default)]
pub(crate) struct TurnSeries {
    pub(crate) parts: Vec<SeriesPart>,
    /// Files that a turn changed and that are left out, and why.
    pub(crate) left: BTreeMap<RelPath, LeftOfSeries>,
    /// Files where what a turn left is not held, and those turns, by their places in [`FileHistory::turns`]: it
    /// is in a change of others, together with what followed.
    pub(crate) mixed: BTreeMap<RelPath, BTreeSet<usize>>,
}

/// Why a file that changed in the time of a series is not in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LeftOfSeries {
    /// Not all of its states are held.
    Unheld,
    /// No turn of the series changed it.
    ByOthers,
    /// A restore took back what the turns did.
    TakenBack,
    /// A file above or below it is left out, or cannot be told apart from it.
    Conflict,
}

/// One change of a series.
pub(crate) struct SeriesPart {
    /// The turn, by its place in [`FileHistory::turns`]; `None` for what others did.
    pub(crate) turn: Option<usize>,
    /// When the turn began, or for what others did, the turn after it.
    pub(crate) at: DateTime<Utc>,
    pub(crate) files: BTreeMap<RelPath, FileChange>,
}

/// What became of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FileChange {
    pub(crate) before: Option<GitFile>,
    pub(crate) after: Option<GitFile>,
}

/// A file or a symlink as git has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct GitFile {
    /// As in a tree: `0o100644`, `0o100755` or `0o120000`.
    pub(crate) mode: u32,
    pub(crate) bytes: Vec<u8>,
}

/// So many pairs of files are compared, to tell a new name from a new file.
const RENAMES_MAX: usize = 10_000;
/// The mode of a symlink in a tree.
pub(crate) const LINK_MODE: u32 = 0o120_000;
const EXECUTABLE_MODE: u32 = 0o100_755;
const FILE_MODE: u32 = 0o100_644;

/// Which part of the log a series is about.
struct SeriesSpan<'t> {
    /// By their places in [`FileHistory::turns`], oldest first.
    turns: &'t [usize],
    /// Where the first call of each began.
    begins: Vec<usize>,
    start: usize,
    end: usize,
}

/// The states of a file, and the turns with states of their own that are not all held.
struct MixedCourse {
    course: FileCourse,
    mixed: BTreeSet<usize>,
}

impl Gathered {
    /// Adds a file, from where the series begins.
    fn add(
        &mut self,
        path: &RelPath,
        MixedCourse { course, mixed }: MixedCourse,
        files: &mut dyn SeriesFiles,
    ) -> Result<()> {
        let base = files.begins_with(path, course.here.as_ref())?;
        self.left.remove(path);
        self.courses.insert(path.clone(), from_base(course, base));
        if !mixed.is_empty() {
            self.mixed.insert(path.clone(), mixed);
        }
        Ok(())
    }

    fn leave(&mut self, path: RelPath, why: LeftOfSeries) {
        self.courses.remove(&path);
        self.mixed.remove(&path);
        self.left.insert(path, why);
    }

    /// The paths above and below one at which the series may begin with a file.
    fn near(&self, path: &RelPath, files: &mut dyn SeriesFiles) -> Result<Vec<RelPath>> {
        let above = path.above();
        let below = self.changed.range(path..).skip_while(|it| *it == path);
        let below = below.take_while(|it| it.is_within(path)).cloned();
        let mut near: Vec<RelPath> = above.chain(below).collect();
        near.extend(files.begins_below(path)?);
        Ok(near)
    }
}

/// What a series may have of a file.
pub(crate) trait SeriesFiles {
    /// Whether it belongs in a series.
    fn has(&mut self, path: &RelPath) -> bool;

    /// What the series begins with at a path, where `there` was when the first turn began: that, or what the
    /// commit has that it goes on from.
    ///
    /// # Errors
    ///
    /// Fails if the commit cannot be read.
    fn begins_with(&mut self, path: &RelPath, there: Option<&GitFile>) -> Result<Option<GitFile>>;

    /// The files below a path that the commit has.
    ///
    /// # Errors
    ///
    /// Fails if the commit cannot be read.
    fn begins_below(&mut self, path: &RelPath) -> Result<Vec<RelPath>>;
}

/// The courses of files, while it is found out which of them can be in a series.
struct Gathered {
    courses: BTreeMap<RelPath, FileCourse>,
    left: BTreeMap<RelPath, LeftOfSeries>,
    mixed: BTreeMap<RelPath, BTreeSet<usize>>,
    /// The paths that changed in the time, or may have.
    changed: BTreeSet<RelPath>,
}

impl FileHistory<'_> {
    /// What some turns did, oldest first.
    ///
    /// # Errors
    ///
    /// Fails if a checkpoint or the commit cannot be read.
    pub(crate) fn series(
        &self,
        turns: &[usize],
        files: &mut dyn SeriesFiles,
    ) -> Result<TurnSeries> {
        let span = self.span(turns);
        let changed = self.changed_in(&span)?;
        let (courses, left, mixed) = Default::default();
        let mut gathered = Gathered { courses, left, mixed, changed };
        for path in gathered.changed.clone() {
            self.gather(&path, &span, files, &mut gathered)?;
        }
        while self.follow_renames(&mut gathered, &span, files)? > 0 {}
        let parts = loop {
            self.gather_around(&span, files, &mut gathered)?;
            let parts = order::parts(&gathered.courses);
            let Some(pair) = order::clash(&gathered.courses, &parts) else { break parts };
            for path in pair {
                gathered.leave(path, LeftOfSeries::Conflict);
            }
        };
        let Gathered { left, mixed, .. } = gathered;
        let parts = parts.into_iter().map(|part| self.part(part, turns)).collect();
        Ok(TurnSeries { parts, left, mixed })
    }

    fn part(&self, part: OrderedPart, turns: &[usize]) -> SeriesPart {
        let (turn, place) = match part.owner {
            PartOwner::Turn(place) => (Some(turns[place]), place),
            PartOwner::Before(place) => (None, place),
        };
        SeriesPart { turn, at: self.turns[turns[place]].at, files: part.files }
    }

    /// Finds out what became of a path that changed.
    fn gather(
        &self,
        path: &RelPath,
        span: &SeriesSpan<'_>,
        files: &mut dyn SeriesFiles,
        gathered: &mut Gathered,
    ) -> Result<()> {
        let steps = self.states(path);
        let is_of_turns =
            |steps: &[PastState]| steps.iter().any(|it| span.has(it) && is_of(it, span.turns));
        if !steps.iter().any(|step| span.has(step)) || !files.has(path) {
            return Ok(());
        }
        let standing = self.standing(path, &steps);
        let left = match (is_of_turns(&standing), is_of_turns(&steps)) {
            (false, false) => LeftOfSeries::ByOthers,
            (false, true) => LeftOfSeries::TakenBack,
            (true, _) => match self.course(path, (&steps, &standing), span) {
                Some(course) => return gathered.add(path, course, files),
                None => LeftOfSeries::Unheld,
            },
        };
        gathered.left.insert(path.clone(), left);
        Ok(())
    }

    /// Adds the files that others made of files of the series, by another name: else half of a rename would be in
    /// it. Returns how many.
    fn follow_renames(
        &self,
        gathered: &mut Gathered,
        span: &SeriesSpan<'_>,
        files: &mut dyn SeriesFiles,
    ) -> Result<usize> {
        let left_by_others = gathered.courses.values().flat_map(FileCourse::left_by_others);
        let gone: Vec<GitFile> = left_by_others.collect();
        let by_others = gathered.left.iter().filter(|(_, why)| **why == LeftOfSeries::ByOthers);
        let by_others: Vec<RelPath> = by_others.map(|(path, _)| path.clone()).collect();
        if gone.is_empty() || gone.len().saturating_mul(by_others.len()) > RENAMES_MAX {
            return Ok(0);
        }
        let is_of = |file: &GitFile| {
            let is_same = |gone: &GitFile| {
                let is_equal = file.bytes == gone.bytes && !file.bytes.is_empty();
                is_equal || similarity(&file.bytes, &gone.bytes) >= ALIKE_MIN
            };
            gone.iter().any(is_same)
        };
        let mut found = Vec::new();
        for path in by_others {
            let Some(course) = self.course_of(&path, span) else { continue };
            if course.course.made().is_some_and(is_of) {
                found.push((path, course));
            }
        }
        let count = found.len();
        for (path, course) in found {
            gathered.add(&path, course, files)?;
        }
        Ok(count)
    }

    /// Adds what the series begins with above and below its files, where these could not be otherwise: a file
    /// that became a directory, or the other way round. Leaves out the files where that cannot be.
    fn gather_around(
        &self,
        span: &SeriesSpan<'_>,
        files: &mut dyn SeriesFiles,
        gathered: &mut Gathered,
    ) -> Result<()> {
        let mut looked: BTreeMap<RelPath, bool> = BTreeMap::new();
        let mut paths: VecDeque<RelPath> = gathered.courses.keys().cloned().collect();
        while let Some(path) = paths.pop_front() {
            if !gathered.courses.get(&path).is_some_and(FileCourse::comes) {
                continue;
            }
            for near in gathered.near(&path, files)? {
                if gathered.courses.contains_key(&near) {
                    continue;
                }
                let is_in_the_way = match looked.get(&near) {
                    Some(known) => *known,
                    None => self.is_in_the_way(&near, span, files, gathered)?,
                };
                if is_in_the_way {
                    looked.insert(near, true);
                    gathered.leave(path, LeftOfSeries::Conflict);
                    // What is left out may be in the way of others.
                    paths.extend(gathered.courses.keys().cloned());
                    break;
                }
                if gathered.courses.contains_key(&near) {
                    paths.push_back(near);
                } else {
                    looked.insert(near, false);
                }
            }
        }
        Ok(())
    }

    /// Whether the series begins, or may begin, with a file at a path, and what becomes of it cannot be in it;
    /// adds that otherwise.
    fn is_in_the_way(
        &self,
        path: &RelPath,
        span: &SeriesSpan<'_>,
        files: &mut dyn SeriesFiles,
        gathered: &mut Gathered,
    ) -> Result<bool> {
        let is_committed = files.begins_with(path, None)?.is_some();
        if !is_committed && !gathered.changed.contains(path) {
            return Ok(false);
        }
        // What is not held may have been there when the series begins.
        let Some(course) = self.course_of(path, span) else { return Ok(true) };
        if files.begins_with(path, course.course.here.as_ref())?.is_none() {
            return Ok(false);
        }
        let is_out = matches!(gathered.left.get(path), Some(LeftOfSeries::Conflict));
        if is_out || !files.has(path) {
            return Ok(true);
        }
        gathered.add(path, course, files).map(|()| false)
    }

    fn span<'t>(&self, turns: &'t [usize]) -> SeriesSpan<'t> {
        let calls = || self.calls.iter().filter(|ran| turns.contains(&ran.turn));
        let begins_at = |turn: &usize| {
            let its = self.calls.iter().filter(|ran| ran.turn == *turn);
            its.map(|ran| ran.began).min().unwrap_or(usize::MAX)
        };
        let start = calls().map(|ran| ran.began).min().unwrap_or(0);
        let end = calls().map(|ran| ran.over).max().unwrap_or(0);
        SeriesSpan { turns, begins: turns.iter().map(begins_at).collect(), start, end }
    }

    /// The paths that changed in a span, or may have.
    fn changed_in(&self, span: &SeriesSpan<'_>) -> Result<BTreeSet<RelPath>> {
        let range = span.start..=span.end;
        let is_seen = |sights: &[Sight]| sights.iter().any(|it| range.contains(&it.order));
        let seen = self.log.sights.iter().filter(|(_, sights)| is_seen(sights));
        let mut paths: BTreeSet<RelPath> = seen.map(|(path, _)| path.clone()).collect();
        let between = self.checkpoints.iter().filter(|one| {
            one.completeness.is_whole() && range.contains(&self.log.position_of(one))
        });
        let trees: Vec<_> = between.filter_map(|one| self.source.tree(one.id)).collect();
        let store = self.project.store.as_ref();
        for pair in trees.windows(2) {
            let changes = store::changes(store, &pair[0], &pair[1], ContentSource::Saved)?;
            paths.extend(changes.into_iter().map(|change| change.path));
        }
        // A call that was not seen to end: what is there now may be its own.
        if span.end == usize::MAX
            && let Some(last) = trees.last()
        {
            let files = store::manifest(store, last)?;
            paths.extend(files.into_keys());
        }
        Ok(paths)
    }

    /// The states of a path that count. A restore that went back to one of them took back what had led on from
    /// it; one that went forward again, such as a redo, gave it back.
    pub(super) fn standing(&self, path: &RelPath, steps: &[PastState]) -> Vec<PastState> {
        // By their places among the steps. What was taken back is newest first.
        let (mut standing, mut taken_back) = (Vec::new(), Vec::new());
        // Of each step, the one that it went back to, or itself.
        let mut same_as: Vec<usize> = Vec::new();
        for (at, step) in steps.iter().enumerate() {
            let target = (step.origin == StateOrigin::Restored)
                .then(|| self.restored_to(path, &steps[..=at], &same_as, &standing, &taken_back))
                .flatten();
            same_as.push(target.unwrap_or(at));
            let place = |all: &[usize]| all.iter().rposition(|it| Some(*it) == target);
            if let Some(place) = place(&standing) {
                taken_back.extend(standing.drain(place + 1..).rev());
            } else if let Some(place) = place(&taken_back) {
                standing.extend(taken_back.drain(place..).rev());
            } else {
                taken_back.clear();
                standing.push(at);
            }
        }
        standing.into_iter().map(|at| steps[at].clone()).collect()
    }

    /// The step that the last of some steps, a restore, went to: the one at its checkpoint, or else the last one
    /// that was the same.
    fn restored_to(
        &self,
        path: &RelPath,
        steps: &[PastState],
        same_as: &[usize],
        standing: &[usize],
        taken_back: &[usize],
    ) -> Option<usize> {
        let (restored, earlier) = steps.split_last()?;
        let is_same = |at: &usize| self.source.is_same(path, &steps[*at].there, &restored.there);
        let is_its = |one: &&Checkpoint| {
            let place = self.log.position_of(one);
            one.cause.reason == Reason::BeforeRestore
                && (restored.known_until..=restored.order).contains(&place)
        };
        let held = self.checkpoints.iter().rfind(is_its);
        let target = held.and_then(|held| self.checkpoint(held.cause.of?));
        let at_target = target.and_then(|target| {
            let place = self.log.position_of(target);
            earlier.iter().rposition(|step| step.order <= place)
        });
        let known = at_target.map(|at| same_as[at]).filter(is_same);
        let equal = |all: &[usize]| all.iter().copied().rfind(|at| is_same(at));
        known.or_else(|| equal(standing)).or_else(|| equal(taken_back))
    }

    fn course_of(&self, path: &RelPath, span: &SeriesSpan<'_>) -> Option<MixedCourse> {
        let steps = self.states(path);
        self.course(path, (&steps, &self.standing(path, &steps)), span)
    }

    /// The states of a file in a span; `None` if the first or the last cannot be read. What cannot be read in
    /// between is with the next one that can, as a change of others: it is not of one alone.
    fn course(
        &self,
        path: &RelPath,
        (steps, standing): (&[PastState], &[PastState]),
        span: &SeriesSpan<'_>,
    ) -> Option<MixedCourse> {
        let begin = |steps: &[PastState]| steps.iter().rposition(|it| it.order <= span.start);
        let (there, first) = (&steps[begin(steps)?].there, begin(standing)?);
        let there = self.git_file(path, there, None).ok()?;
        let mut here = self.git_file(path, &standing[first].there, None).ok()?;
        let mut course = FileCourse { here: there, next: Vec::new() };
        // What was there then was taken back later.
        course.next.extend((course.here != here).then(|| CourseState {
            owner: PartOwner::Before(0),
            place: 0,
            file: here.clone(),
        }));
        let (mut mixed, mut unread) = (BTreeSet::new(), None);
        let steps = standing[first + 1..].iter().filter(|step| span.has(step));
        let steps: Vec<&PastState> = steps.collect();
        for run in steps.chunk_by(|one, next| span.owner(one) == span.owner(next)) {
            let (owner, last) = (span.owner(run[0]), run[run.len() - 1]);
            let mut states = Vec::new();
            let mut is_read = true;
            for step in run {
                let state = self.git_file(path, &step.there, here.as_ref());
                is_read = state.is_ok();
                let Ok(file) = state else { continue };
                here.clone_from(&file);
                states.push(CourseState { owner, place: step.order, file });
            }
            let unread_turns: &mut BTreeSet<usize> = match (&mut unread, is_read) {
                (None, true) => {
                    course.next.extend(states);
                    continue;
                }
                (unread, _) => unread.get_or_insert_default(),
            };
            if let PartOwner::Turn(place) = owner {
                unread_turns.insert(span.turns[place]);
            }
            if is_read {
                mixed.extend(unread.take().unwrap_or_default());
                let owner = span.others(last);
                course.next.push(CourseState { owner, place: last.order, file: here.clone() });
            }
        }
        unread.is_none().then_some(MixedCourse { course, mixed })
    }

    /// A state as git would have it.
    fn git_file(
        &self,
        path: &RelPath,
        there: &Version,
        before: Option<&GitFile>,
    ) -> Result<Option<GitFile>, Clash> {
        let Some(found) = there.as_ref().filter(|found| found.kind.has_content()) else {
            return Ok(None);
        };
        let bytes = self.source.read(path, found).ok_or(Clash::Unheld)?;
        let default_modes = before.map(|file| file.mode).filter(|mode| *mode != LINK_MODE);
        let mode = match found {
            VersionEntry { kind: Kind::Link, .. } => LINK_MODE,
            VersionEntry { permissions: Some(bits), .. } if bits & 0o100 != 0 => EXECUTABLE_MODE,
            VersionEntry { permissions: Some(_), .. } => FILE_MODE,
            VersionEntry { permissions: None, .. } => default_modes.unwrap_or(FILE_MODE),
        };
        Ok(Some(GitFile { mode, bytes }))
    }
}

/// Whether one of some turns led to a state, or may have.
fn is_of(step: &PastState, turns: &[usize]) -> bool {
    match &step.origin {
        StateOrigin::By(LineWriter::Turn(turn)) => turns.contains(turn),
        StateOrigin::By(LineWriter::Unknown(candidates)) => {
            candidates.any || candidates.turns.iter().any(|turn| turns.contains(turn))
        }
        StateOrigin::By(LineWriter::User | LineWriter::Before)
        | StateOrigin::First
        | StateOrigin::Restored => false,
    }
}

impl SeriesSpan<'_> {
    /// Whether a state came about in the span. One that was seen only later may have, if it may be of a turn.
    fn has(&self, step: &PastState) -> bool {
        let is_in = (self.start..=self.end).contains(&step.order);
        let may_be_in =
            step.order > self.end && step.known_until < self.end && is_of(step, self.turns);
        step.origin != StateOrigin::First && (is_in || may_be_in)
    }

    /// Who led to a state: a turn of the series, if it alone did.
    fn owner(&self, step: &PastState) -> PartOwner {
        if let StateOrigin::By(LineWriter::Turn(turn)) = &step.origin
            && let Some(at) = self.turns.iter().position(|it| it == turn)
        {
            return PartOwner::Turn(at);
        }
        self.others(step)
    }

    fn others(&self, step: &PastState) -> PartOwner {
        let before = self.begins.iter().filter(|begins| **begins < step.order).count();
        PartOwner::Before(before.min(self.begins.len() - 1))
    }
}

/// Begins with what a commit has, or with what was there. Where a checkout turned its line feeds into CRLF, they are turned back in
/// every state, as git does.
fn from_base(mut course: FileCourse, base: Option<GitFile>) -> FileCourse {
    if let (Some(base), Some(here)) = (&base, &course.here)
        && is_checked_out_with_cr(&base.bytes, &here.bytes)
    {
        let states = course.next.iter_mut().filter_map(|state| state.file.as_mut());
        for state in states.chain(&mut course.here).filter(|state| state.mode != LINK_MODE) {
            state.bytes = without_cr(&state.bytes);
        }
    }
    let start = std::mem::replace(&mut course.here, base);
    if start != course.here {
        let owner = PartOwner::Before(0);
        course.next.insert(0, CourseState { owner, place: 0, file: start });
    }
    course
}

fn is_checked_out_with_cr(base: &[u8], here: &[u8]) -> bool {
    base != here && !base.contains(&b'\r') && without_cr(here) == base
}

fn without_cr(bytes: &[u8]) -> Vec<u8> {
    let is_kept = |at: &usize| bytes[*at] != b'\r' || bytes.get(at + 1) != Some(&b'\n');
    (0..bytes.len()).filter(is_kept).map(|at| bytes[at]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(bytes: &[u8]) -> GitFile {
        GitFile { mode: FILE_MODE, bytes: bytes.to_vec() }
    }

    fn course(here: &[u8], next: &[(PartOwner, &[u8])]) -> FileCourse {
        let state = |(owner, bytes): &(PartOwner, &[u8])| CourseState {
            owner: *owner,
            place: 1,
            file: Some(file(bytes)),
        };
        let next = next.iter().map(state).collect();
        FileCourse { here: Some(file(here)), next }
    }

    fn states(course: FileCourse) -> Vec<(PartOwner, Option<GitFile>)> {
        course.next.into_iter().map(|state| (state.owner, state.file)).collect()
    }

    #[test]
    fn what_was_not_committed_comes_before_the_first_turn() {
        let turn = PartOwner::Turn(0);
        let course = from_base(course(b"mine", &[(turn, b"turn")]), Some(file(b"base")));
        assert_eq!(course.here, Some(file(b"base")));
        let expected = [(PartOwner::Before(0), Some(file(b"mine"))), (turn, Some(file(b"turn")))];
        assert_eq!(states(course), expected);
    }

    #[test]
    fn line_ends_that_a_checkout_made_are_taken_back() {
        let turn = PartOwner::Turn(0);
        let next = [(turn, &b"a\r\nb\r\nc\rd\r\n"[..])];
        let course = from_base(course(b"a\r\nb\r\n", &next), Some(file(b"a\nb\n")));
        assert_eq!(states(course), [(turn, Some(file(b"a\nb\nc\rd\n")))]);
        assert!(!is_checked_out_with_cr(b"a\r\n", b"a\r\n"), "these are its own");
    }
}
