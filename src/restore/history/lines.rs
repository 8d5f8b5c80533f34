//! The lines of a file, each with who wrote it.

use std::{
    collections::HashSet,
    rc::Rc,
    time::{Duration, Instant},
};

use chrono::{DateTime, Utc};
use similar::{Algorithm, DiffOp, capture_diff_slices_deadline};

use super::{
    super::version::{ALIKE_MIN, Version, VersionEntry, similarity},
    FileHistory, LineWriter, PastState, StateOrigin, WriterCandidates,
};
use crate::{
    error::{Error, Result},
    model::{Kind, RelPath},
    ui,
};

/// How long two states of a file may be compared before their difference need not be the shortest.
const COMPARE_TIME: Duration = Duration::from_millis(500);

/// The percentage of two files that are the same.
const ALL: usize = 100;

/// One line, and who wrote it.
pub(crate) struct BlamedLine {
    /// Its bytes, without the line feed.
    pub(crate) text: Vec<u8>,
    pub(crate) writer: LineWriter,
    /// The file it was written in: another name of this one, if it was renamed since.
    pub(crate) path: RelPath,
    /// Its number there, from 1.
    pub(crate) number: usize,
    /// When it was not known to be there yet; `None` if that was never seen.
    pub(crate) since: Option<DateTime<Utc>>,
    /// When it was seen to be there; `None` for now.
    pub(crate) until: Option<DateTime<Utc>>,
}

/// Where a line comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LineOrigin {
    writer: LineWriter,
    path: Rc<RelPath>,
    number: usize,
    /// The places in the log between which it came to be.
    seen: (usize, usize),
}

/// The lines of one state.
#[derive(Clone, Default)]
pub(super) struct WrittenText {
    lines: Vec<Vec<u8>>,
    origins: Vec<LineOrigin>,
}

/// What a file was that was made, before it had its name.
#[derive(Default)]
pub(super) struct RenamedText {
    /// Its lines; of several files that may be it, those of each.
    pub(super) texts: Vec<WrittenText>,
    /// Whether it is one of them for certain.
    pub(super) is_certain: bool,
}

impl WrittenText {
    /// Its lines, each with who wrote it.
    pub(super) fn into_writers(self) -> impl Iterator<Item = (Vec<u8>, LineWriter)> {
        let writers = self.origins.into_iter().map(|origin| origin.writer);
        self.lines.into_iter().zip(writers)
    }
}

impl FileHistory<'_> {
    /// Each line of a file as it is now, and who wrote it.
    ///
    /// # Errors
    ///
    /// Fails if there is no such file, or it is no text that can be read.
    pub(crate) fn blame(&self, path: &RelPath) -> Result<Vec<BlamedLine>> {
        let steps = self.states(path);
        let refuse = |why: &str, hint: &str| {
            let name = ui::escape(path.as_bytes());
            Err(Error::other(format!("`{name}` {why}"), hint))
        };
        match steps.last().and_then(|step| step.there.as_ref()) {
            None => return refuse("is not there", "`beforehand find` shows what is held of it"),
            Some(found) if found.kind != Kind::File => {
                return refuse("is no file", "name a file");
            }
            Some(found) => match self.source.read(path, found) {
                None => return refuse("is too large, or cannot be read", "name another file"),
                Some(bytes) if bytes.contains(&0) => {
                    return refuse("is a binary file", "name a text file");
                }
                Some(_) => (),
            },
        }
        let WrittenText { lines, origins } = self.text(path, &steps, &[]);
        let line = |(text, origin): (Vec<u8>, LineOrigin)| BlamedLine {
            text: text.strip_suffix(b"\n").unwrap_or(&text).to_vec(),
            writer: origin.writer,
            path: RelPath::clone(&origin.path),
            number: origin.number,
            since: Some(origin.seen.0).filter(|at| *at > 0).and_then(|at| self.log.time_at(at)),
            until: self.log.time_at(origin.seen.1),
        };
        Ok(lines.into_iter().zip(origins).map(line).collect())
    }

    /// The lines of the last of these states of a path. It had these `names` since.
    pub(super) fn text(
        &self,
        path: &RelPath,
        steps: &[PastState],
        names: &[&RelPath],
    ) -> WrittenText {
        let (name, path) = (path, Rc::new(path.clone()));
        let mut was_there = true;
        let mut known: Vec<WrittenText> = Vec::new();
        // Of states that cannot be read, who led to them.
        let mut unread: Option<LineWriter> = None;
        for step in steps {
            let Some(lines) = self.lines(&path, &step.there) else {
                let made = match &step.origin {
                    StateOrigin::First => LineWriter::Before,
                    StateOrigin::By(writer) => writer.clone(),
                    StateOrigin::Restored => anything(),
                };
                unread = Some(unread.map_or(made.clone(), |unread| unread.or(&made)));
                continue;
            };
            let text = match &step.origin {
                StateOrigin::First => fresh(lines, &path, &LineWriter::Before, (0, step.order)),
                StateOrigin::By(writer) => {
                    let is_new = !was_there && unread.is_none();
                    let writer = unread.map_or(writer.clone(), |unread| unread.or(writer));
                    let last = known.last();
                    // Another file that was moved over it is the same to the last byte.
                    let alike_min = if is_new { ALIKE_MIN } else { ALL };
                    let old = self.renamed((name, alike_min), step, &lines, names);
                    let of = |before| changed(before, lines.clone(), &path, (&writer, step));
                    let as_made = (!old.is_certain && !old.texts.is_empty()).then(|| of(last));
                    let as_renamed = old.texts.iter().map(|old| of(Some(old)));
                    let of_each = as_renamed.chain(as_made).reduce(either);
                    let before = last.map(|last| &last.lines[..]).unwrap_or_default();
                    let exchanged = || self.exchanged(name, step, (before, &lines), names);
                    let of_other = |other: WrittenText| {
                        changed(Some(&other), lines.clone(), &path, (&writer, step))
                    };
                    let of_each = of_each.or_else(|| exchanged().map(of_other));
                    of_each.unwrap_or_else(|| self.doubted(name, (step, of(last)), last, names))
                }
                StateOrigin::Restored => {
                    let moved = self.moved_by_restore(name, step, names);
                    restored((&known, &moved), lines, (&path, step, &self.restorer(step)))
                }
            };
            unread = None;
            was_there = step.there.is_some();
            known.push(text);
        }
        known.pop().unwrap_or_default()
    }

    /// Who wrote what a restore put where it had never been.
    fn restorer(&self, step: &PastState) -> LineWriter {
        let held = self.log.restore_at(step.order).and_then(|held| self.checkpoint(held));
        let brought = held.is_some_and(|held| held.cause.tool.as_deref() == Some("keep"));
        LineWriter::Unknown(WriterCandidates { any: true, brought, ..WriterCandidates::default() })
    }

    /// A file that was made or replaced, and was not renamed: of its lines, those that stood in another file that
    /// the same writer removed or replaced may have come from there, with another writer.
    fn doubted(
        &self,
        path: &RelPath,
        (step, mut text): (&PastState, WrittenText),
        before: Option<&WrittenText>,
        names: &[&RelPath],
    ) -> WrittenText {
        let old = before.map(|before| before.lines.concat()).unwrap_or_default();
        let is_replaced = !old.is_empty();
        if is_replaced && similarity(&old, &text.lines.concat()) >= ALIKE_MIN {
            return text;
        }
        let taken = self.taken_lines(path, step, names);
        let new = step_seen(step);
        for (line, origin) in text.lines.iter().zip(&mut text.origins) {
            let unknown = anything();
            let other = match &taken {
                Some(taken) => taken.get(line),
                None => Some(&unknown),
            };
            if let Some(other) = other.filter(|_| origin.seen == new) {
                origin.writer = origin.writer.or(other);
            }
        }
        text
    }

    /// The lines of a state; `None` if it cannot be read. What is no file has none.
    fn lines(&self, path: &RelPath, there: &Version) -> Option<Vec<Vec<u8>>> {
        let is_file = |found: &&VersionEntry| found.kind == Kind::File;
        let Some(found) = there.as_ref().filter(is_file) else { return Some(Vec::new()) };
        let bytes = self.source.read(path, found)?;
        Some(bytes.split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect())
    }
}

/// It cannot be told who wrote it.
pub(super) fn anything() -> LineWriter {
    LineWriter::Unknown(WriterCandidates { any: true, ..WriterCandidates::default() })
}

/// Between which places of the log a state came to be.
fn step_seen(step: &PastState) -> (usize, usize) {
    (step.known_until, step.order)
}

/// Lines that all have one writer.
fn fresh(
    lines: Vec<Vec<u8>>,
    path: &Rc<RelPath>,
    writer: &LineWriter,
    seen: (usize, usize),
) -> WrittenText {
    let origin = |number| {
        let (writer, path) = (writer.clone(), path.clone());
        LineOrigin { writer, path, number: number + 1, seen }
    };
    WrittenText { origins: (0..lines.len()).map(origin).collect(), lines }
}

/// Lines that one writer made of others.
fn changed(
    before: Option<&WrittenText>,
    lines: Vec<Vec<u8>>,
    path: &Rc<RelPath>,
    (by, step): (&LineWriter, &PastState),
) -> WrittenText {
    let mut text = fresh(lines, path, by, step_seen(step));
    let Some(before) = before else { return text };
    for (old, new) in shared(&before.lines, &text.lines) {
        text.origins[new] = before.origins[old].clone();
    }
    text
}

/// Lines of which each was written by one or the other.
fn either(mut one: WrittenText, other: WrittenText) -> WrittenText {
    for (origin, other) in one.origins.iter_mut().zip(other.origins) {
        origin.writer = origin.writer.or(&other.writer);
    }
    one
}

/// Lines that a restore put there: they have the writers that they had when they were there before. Where
/// they had several, or never were, they are another's. Others may have been `moved` there from another name.
fn restored(
    (known, moved): (&[WrittenText], &[WrittenText]),
    lines: Vec<Vec<u8>>,
    (path, step, another): (&Rc<RelPath>, &PastState, &LineWriter),
) -> WrittenText {
    let mut text = fresh(lines, path, another, step_seen(step));
    let is_same: Vec<&WrittenText> = known.iter().filter(|it| it.lines == text.lines).collect();
    let is_whole = !is_same.is_empty();
    let from = if is_whole { is_same } else { known.iter().collect() };
    let mut origins: Vec<Vec<&LineOrigin>> = vec![Vec::new(); text.lines.len()];
    for before in &from {
        for (old, new) in shared(&before.lines, &text.lines) {
            origins[new].push(&before.origins[old]);
        }
    }
    let here: HashSet<&Vec<u8>> = if moved.is_empty() {
        HashSet::new()
    } else {
        from.iter().flat_map(|it| &it.lines).collect()
    };
    for before in moved {
        for (old, new) in shared(&before.lines, &text.lines) {
            // What was here before has not come from there.
            if !here.contains(&text.lines[new]) {
                origins[new].push(&before.origins[old]);
            }
        }
    }
    for (line, found) in origins.into_iter().enumerate() {
        if let Some(first) = found.first() {
            let writer = found.iter().fold(first.writer.clone(), |all, it| all.or(&it.writer));
            text.origins[line] = LineOrigin { writer, ..(*first).clone() };
        }
    }
    // What a merge left as it was has not come back.
    if let Some(last) = known.last().filter(|_| !is_whole) {
        for (old, new) in shared(&last.lines, &text.lines) {
            text.origins[new] = last.origins[old].clone();
        }
    }
    text
}

/// The places of lines that are the same in both.
fn shared(old: &[Vec<u8>], new: &[Vec<u8>]) -> Vec<(usize, usize)> {
    let deadline = Some(Instant::now() + COMPARE_TIME);
    let ops = capture_diff_slices_deadline(Algorithm::Myers, old, new, deadline);
    let equal = ops.into_iter().filter_map(|op| match op {
        DiffOp::Equal { old_index, new_index, len } => Some((old_index, new_index, len)),
        DiffOp::Delete { .. } | DiffOp::Insert { .. } | DiffOp::Replace { .. } => None,
    });
    equal.flat_map(|(old, new, len)| (0..len).map(move |n| (old + n, new + n))).collect()
}
