//! What turns did, as a series of changes: each goes on from where the one before it ended.
//!
//! What others did to the same files between two turns, and what cannot be told from a turn's, is a change of
//! its own. So nothing is merged, and the last change leads to what the last turn left.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use chrono::{DateTime, Utc};

use super::{
    super::version::{ALIKE_MIN, Clash, Version, VersionEntry, similarity},
    FileHistory, HistoryStep, LineWriter, StepCause,
};
use crate::{
    attribution::Sight,
    error::Result,
    model::{Checkpoint, Kind, RelPath},
    store::{self, ContentSource},
};

/// The changes of some turns, oldest first.
#[derive(Default)]
pub(crate) struct TurnSeries {
    pub(crate) parts: Vec<SeriesPart>,
    /// Files that a turn changed and that are left out: not all of their states are held.
    pub(crate) unheld: BTreeSet<RelPath>,
    /// Files that changed meanwhile, but by no turn of the series.
    pub(crate) by_others: BTreeSet<RelPath>,
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

/// The owner of a change, by its place in the series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PartOwner {
    Turn(usize),
    /// What others did before the turn at this place began, and after the one before it.
    Before(usize),
}

/// A file, as it is where a series has got to, and the states that are still to come.
struct FileCourse {
    here: Option<GitFile>,
    next: VecDeque<(PartOwner, Option<GitFile>)>,
}

impl FileCourse {
    /// What others removed, or gave another name.
    fn left_by_others(&self) -> impl Iterator<Item = GitFile> {
        let states = std::iter::once(&self.here).chain(self.next.iter().map(|(_, file)| file));
        let pairs = states.zip(&self.next);
        pairs.filter_map(|(before, (owner, after))| {
            let is_others = matches!(owner, PartOwner::Before(_));
            before.clone().filter(|_| is_others && after.is_none())
        })
    }

    /// What was there first, if nothing was there before.
    fn made(&self) -> Option<&GitFile> {
        let first = self.next.iter().find_map(|(_, file)| file.as_ref());
        first.filter(|_| self.here.is_none())
    }
}

/// Which part of the log a series is about.
struct SeriesSpan<'t> {
    /// By their places in [`FileHistory::turns`], oldest first.
    turns: &'t [usize],
    /// Where the first call of each began.
    begins: Vec<usize>,
    start: usize,
    end: usize,
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
        let mut series = TurnSeries::default();
        let mut courses: BTreeMap<RelPath, FileCourse> = BTreeMap::new();
        for path in self.changed_in(&span)? {
            let steps = self.steps(&path);
            let in_span = steps.iter().filter(|step| span.has(step));
            if !in_span.clone().any(|step| is_of(step, turns)) {
                if in_span.count() > 0 && files.has(&path) {
                    series.by_others.insert(path);
                }
                continue;
            }
            if !files.has(&path) {
                continue;
            }
            match self.course(&path, &steps, &span) {
                Some(course) => {
                    let base = files.begins_with(&path, course.here.as_ref())?;
                    courses.insert(path, from_base(course, base));
                }
                None => drop(series.unheld.insert(path)),
            }
        }
        while self.follow_renames(&mut series, &mut courses, &span, files)? > 0 {}
        self.take_parts(&mut series, courses, turns);
        Ok(series)
    }

    /// Adds the files that others made of files of the series, by another name: else half of a rename would be in
    /// it. Returns how many.
    fn follow_renames(
        &self,
        series: &mut TurnSeries,
        courses: &mut BTreeMap<RelPath, FileCourse>,
        span: &SeriesSpan<'_>,
        files: &mut dyn SeriesFiles,
    ) -> Result<usize> {
        let gone: Vec<GitFile> = courses.values().flat_map(FileCourse::left_by_others).collect();
        if gone.is_empty() || gone.len().saturating_mul(series.by_others.len()) > RENAMES_MAX {
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
        for path in &series.by_others {
            let Some(course) = self.course(path, &self.steps(path), span) else { continue };
            if course.made().is_some_and(is_of) {
                found.push((path.clone(), course));
            }
        }
        let count = found.len();
        for (path, course) in found {
            let base = files.begins_with(&path, None)?;
            series.by_others.remove(&path);
            courses.insert(path, from_base(course, base));
        }
        Ok(count)
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

    /// Orders what became of the files into changes: those of a turn together, as far as what came between
    /// lets them be.
    fn take_parts(
        &self,
        series: &mut TurnSeries,
        mut courses: BTreeMap<RelPath, FileCourse>,
        turns: &[usize],
    ) {
        while courses.values().any(|course| !course.next.is_empty()) {
            for (at, turn) in turns.iter().enumerate() {
                let time = self.turns[*turn].at;
                let owners = [(PartOwner::Before(at), None), (PartOwner::Turn(at), Some(*turn))];
                for (owner, turn) in owners {
                    let files = take(&mut courses, owner);
                    if !files.is_empty() {
                        series.parts.push(SeriesPart { turn, at: time, files });
                    }
                }
            }
        }
    }

    /// The paths that changed in a span, or may have.
    fn changed_in(&self, span: &SeriesSpan<'_>) -> Result<BTreeSet<RelPath>> {
        let range = span.start..=span.end;
        let is_seen = |sights: &[Sight]| sights.iter().any(|it| range.contains(&it.order));
        let seen = self.log.sights.iter().filter(|(_, sights)| is_seen(sights));
        let mut paths: BTreeSet<RelPath> = seen.map(|(path, _)| path.clone()).collect();
        let is_between =
            |one: &&Checkpoint| !one.partial && range.contains(&self.log.look(one).order);
        let between = self.checkpoints.iter().filter(is_between);
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

    /// The states of a file in a span; `None` if the first or the last cannot be read.
    fn course(
        &self,
        path: &RelPath,
        steps: &[HistoryStep],
        span: &SeriesSpan<'_>,
    ) -> Option<FileCourse> {
        let first = steps.iter().rposition(|step| step.order <= span.start)?;
        let mut here = self.git_file(path, &steps[first].there, None).ok()?;
        let mut course = FileCourse { here: here.clone(), next: VecDeque::new() };
        // Of states that cannot be read, who led to them.
        let mut unread: Option<PartOwner> = None;
        for step in steps[first + 1..].iter().filter(|step| step.order <= span.end) {
            let owner = match unread {
                Some(unread) if unread != span.owner(step) => span.others(step),
                Some(_) | None => span.owner(step),
            };
            match self.git_file(path, &step.there, here.as_ref()) {
                Err(_) => unread = Some(owner),
                Ok(file) => {
                    unread = None;
                    here.clone_from(&file);
                    course.next.push_back((owner, file));
                }
            }
        }
        unread.is_none().then_some(course)
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
fn is_of(step: &HistoryStep, turns: &[usize]) -> bool {
    match &step.made {
        StepCause::By(LineWriter::Turn(turn)) => turns.contains(turn),
        StepCause::By(LineWriter::Unknown(candidates)) => {
            candidates.any || candidates.turns.iter().any(|turn| turns.contains(turn))
        }
        StepCause::By(LineWriter::User | LineWriter::Before)
        | StepCause::First
        | StepCause::Restored => false,
    }
}

impl SeriesSpan<'_> {
    fn has(&self, step: &HistoryStep) -> bool {
        step.made != StepCause::First && (self.start..=self.end).contains(&step.order)
    }

    /// Who led to a state: a turn of the series, if it alone did.
    fn owner(&self, step: &HistoryStep) -> PartOwner {
        if let StepCause::By(LineWriter::Turn(turn)) = &step.made
            && let Some(at) = self.turns.iter().position(|it| it == turn)
        {
            return PartOwner::Turn(at);
        }
        self.others(step)
    }

    fn others(&self, step: &HistoryStep) -> PartOwner {
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
        let states = course.next.iter_mut().filter_map(|(_, state)| state.as_mut());
        for state in states.chain(&mut course.here).filter(|state| state.mode != LINK_MODE) {
            state.bytes = without_cr(&state.bytes);
        }
    }
    let start = std::mem::replace(&mut course.here, base);
    if start != course.here {
        course.next.push_front((PartOwner::Before(0), start));
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

/// Takes what one owner did next at each file.
fn take(
    courses: &mut BTreeMap<RelPath, FileCourse>,
    owner: PartOwner,
) -> BTreeMap<RelPath, FileChange> {
    let mut files = BTreeMap::new();
    for (path, course) in courses {
        let is_its = |next: &PartOwner| match (next, owner) {
            // What had to wait for a turn that came first is late, and not lost.
            (PartOwner::Before(at), PartOwner::Before(now)) => *at <= now,
            (next, owner) => *next == owner,
        };
        let before = course.here.clone();
        while course.next.front().is_some_and(|(next, _)| is_its(next)) {
            course.here = course.next.pop_front().and_then(|(_, file)| file);
        }
        if before != course.here {
            let after = course.here.clone();
            files.insert(path.clone(), FileChange { before, after });
        }
    }
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(bytes: &[u8]) -> GitFile {
        GitFile { mode: FILE_MODE, bytes: bytes.to_vec() }
    }

    fn course(here: &[u8], next: &[(PartOwner, &[u8])]) -> FileCourse {
        let next = next.iter().map(|(owner, bytes)| (*owner, Some(file(bytes)))).collect();
        FileCourse { here: Some(file(here)), next }
    }

    #[test]
    fn what_was_not_committed_comes_before_the_first_turn() {
        let turn = PartOwner::Turn(0);
        let course = from_base(course(b"mine", &[(turn, b"turn")]), Some(file(b"base")));
        assert_eq!(course.here, Some(file(b"base")));
        let expected = [(PartOwner::Before(0), Some(file(b"mine"))), (turn, Some(file(b"turn")))];
        assert_eq!(Vec::from(course.next), expected);
    }

    #[test]
    fn line_ends_that_a_checkout_made_are_taken_back() {
        let turn = PartOwner::Turn(0);
        let next = [(turn, &b"a\r\nb\r\nc\rd\r\n"[..])];
        let course = from_base(course(b"a\r\nb\r\n", &next), Some(file(b"a\nb\n")));
        assert_eq!(Vec::from(course.next), [(turn, Some(file(b"a\nb\nc\rd\n")))]);
        assert!(!is_checked_out_with_cr(b"a\r\n", b"a\r\n"), "these are its own");
    }

    #[test]
    fn a_turn_that_others_came_between_is_in_two_parts() {
        let [a, b] = [PartOwner::Turn(0), PartOwner::Turn(1)];
        let path = RelPath::from_bytes(b"f").unwrap();
        let one = course(b"", &[(a, b"1"), (b, b"2"), (a, b"3")]);
        let mut courses = BTreeMap::from([(path, one)]);
        let mut taken = Vec::new();
        for owner in [a, b, a] {
            let files = take(&mut courses, owner).into_values();
            taken.extend(files.map(|change| change.after.unwrap().bytes));
        }
        assert_eq!(taken, [b"1", b"2", b"3"]);
    }
}
