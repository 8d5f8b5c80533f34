//! Shows what changed in one file: a unified diff if there are lines to compare, and a sentence
//! otherwise.
//!
//! The output looks like a patch but is not one: names and lines are escaped.

mod patch;
#[cfg(test)]
mod tests;

pub use patch::{Patch, Unfit};

use std::{
    collections::HashMap,
    fmt::{self, Write as _},
    ops::{AddAssign, Range},
    time::Instant,
};

use similar::{Algorithm, DiffOp, capture_diff_slices_deadline, group_diff_ops};

use super::{Style, count, escape, escape_line, number, size};
use crate::model::Kind;

/// One file before and after.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileDiff<'a> {
    /// Its path, not yet escaped.
    pub path: &'a [u8],
    /// The old state.
    pub old: DiffSide<'a>,
    /// The new state.
    pub new: DiffSide<'a>,
}

/// The state of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiffSide<'a> {
    /// Nothing.
    Missing,
    /// A regular file.
    File {
        /// Its content.
        bytes: &'a [u8],
        /// Its permission bits.
        permissions: u32,
    },
    /// A symlink, with its text.
    Link(&'a [u8]),
    /// Anything else, which has no content.
    Other(Kind),
}

/// Options for showing a difference.
#[derive(Clone, Copy, Debug)]
pub struct DiffOptions {
    /// With or without colour.
    pub style: Style,
    /// When to stop looking for the shortest difference and show the one found so far.
    pub deadline: Option<Instant>,
}

/// Lines shown around a change.
const AROUND: usize = 3;

/// A longer line is cut, because a line of a minified file is not readable.
const LINE_MAX: usize = 2000;

impl FileDiff<'_> {
    /// The numbers of added and deleted lines; `None` where there are no lines: a binary file, a
    /// symlink, a device. Exact for small texts; for large ones moved lines do not count.
    pub fn lines(&self, deadline: Option<Instant>) -> Option<LineCounts> {
        let (old, new) = self.texts()?;
        if is_large(old) || is_large(new) {
            return Some(counted(old, new));
        }
        Some(tally(&compare(&split(old), &split(new), deadline)))
    }

    /// The difference in full, each line ended; nothing if there is none.
    pub fn show(&self, look: DiffOptions) -> String {
        let mut shown = self.words();
        if let Some((old, new)) = self.texts().filter(|(old, new)| old != new) {
            if is_large(old) || is_large(new) {
                let lines = counted(old, new);
                self.say(&mut shown, &format!("too large to compare, about {lines} lines"));
            } else {
                self.hunks(&mut shown, old, new, look);
            }
        }
        shown
    }

    /// Both texts, if both sides are text; a missing file counts as empty.
    fn texts(&self) -> Option<(&[u8], &[u8])> {
        match (self.old, self.new) {
            (DiffSide::Missing, DiffSide::Missing) => None,
            (old, new) => Some((old.text()?, new.text()?)),
        }
    }

    /// Changes that are not changes of lines.
    fn words(&self) -> String {
        let mut shown = String::new();
        match (self.old, self.new) {
            (DiffSide::File { permissions: old, .. }, DiffSide::File { permissions: new, .. })
                if old != new =>
            {
                self.say(&mut shown, &format!("mode {old:o} → {new:o}"));
            }
            (DiffSide::Missing, DiffSide::File { bytes: [], .. }) => {
                self.say(&mut shown, "empty file added");
            }
            (DiffSide::File { bytes: [], .. }, DiffSide::Missing) => {
                self.say(&mut shown, "empty file removed");
            }
            (_, _) => (),
        }
        let said = match (self.old, self.new) {
            (old, new) if old == new || self.texts().is_some() => return shown,
            (DiffSide::File { bytes: old, .. }, DiffSide::File { bytes: new, .. })
                if old == new =>
            {
                return shown;
            }
            (DiffSide::File { bytes: old, .. }, DiffSide::File { bytes: new, .. }) => {
                format!("binary files differ ({} → {})", size_of(old), size_of(new))
            }
            (DiffSide::Missing, new) => format!("{new} added"),
            (old, DiffSide::Missing) => format!("{old} removed"),
            (old, new) => format!("{old} → {new}"),
        };
        self.say(&mut shown, &said);
        shown
    }

    fn say(&self, shown: &mut String, words: &str) {
        writeln!(shown, "{}: {words}", escape(self.path)).expect("a string takes every write");
    }

    fn hunks(&self, shown: &mut String, old: &[u8], new: &[u8], look: DiffOptions) {
        let (old, new) = (split(old), split(new));
        let style = look.style;
        // If every line ends in CRLF, that is the file's own style and not mentioned.
        let is_crlf = old.iter().chain(&new).all(|line| line.ends_with(b"\r\n"));
        let mut sheet = HunkWriter { shown, style, is_crlf };
        sheet.put(&style.bold(&format!("--- {}", self.name(self.old, 'a'))));
        sheet.put(&style.bold(&format!("+++ {}", self.name(self.new, 'b'))));
        for group in group_diff_ops(compare(&old, &new, look.deadline), AROUND) {
            sheet.put(&style.dim(&header(&group)));
            for (mark, lines) in marked_lines(&group, &old, &new) {
                sheet.lines(mark, lines);
            }
        }
    }

    /// The path for a header; a missing side has a special name.
    fn name(&self, side: DiffSide<'_>, letter: char) -> String {
        match side {
            DiffSide::Missing => "/dev/null".to_owned(),
            DiffSide::File { .. } | DiffSide::Link(_) | DiffSide::Other(_) => {
                format!("{letter}/{}", escape(self.path))
            }
        }
    }
}

/// The hunks of two texts as a patch has them: raw bytes, whatever they are.
pub fn raw_hunks(old: &[u8], new: &[u8]) -> Vec<u8> {
    let (old, new) = (split(old), split(new));
    let mut text = Vec::new();
    for group in group_diff_ops(compare(&old, &new, None), AROUND) {
        text.extend(header(&group).bytes());
        text.push(b'\n');
        for (mark, lines) in marked_lines(&group, &old, &new) {
            for line in lines {
                push_raw(&mut text, mark, line);
            }
        }
    }
    text
}

/// The lines of a hunk in runs, each with what becomes of it.
fn marked_lines<'t, 'l>(
    group: &'t [DiffOp],
    old: &'t [&'l [u8]],
    new: &'t [&'l [u8]],
) -> impl Iterator<Item = (LineMark, &'t [&'l [u8]])> {
    group.iter().flat_map(|op| {
        let (minus, plus) = (&old[op.old_range()], &new[op.new_range()]);
        match op {
            DiffOp::Equal { .. } => vec![(LineMark::Same, plus)],
            _ => vec![(LineMark::Removed, minus), (LineMark::Added, plus)],
        }
    })
}

/// Said below a line that has no line feed, as in git.
const UNENDED: &[u8] = b"\\ No newline at end of file\n";

/// Adds a line as it is in a patch.
fn push_raw(text: &mut Vec<u8>, mark: LineMark, line: &[u8]) {
    text.push(mark.sign());
    text.extend(line);
    if !line.ends_with(b"\n") {
        text.push(b'\n');
        text.extend(UNENDED);
    }
}

/// Receives the lines of a hunk.
struct HunkWriter<'a> {
    shown: &'a mut String,
    style: Style,
    is_crlf: bool,
}

/// Whether a line was kept, added or deleted.
#[derive(Clone, Copy)]
enum LineMark {
    Same,
    Removed,
    Added,
}

impl LineMark {
    fn sign(self) -> u8 {
        match self {
            Self::Same => b' ',
            Self::Removed => b'-',
            Self::Added => b'+',
        }
    }
}

impl HunkWriter<'_> {
    fn put(&mut self, line: &str) {
        self.shown.push_str(line);
        self.shown.push('\n');
    }

    fn lines(&mut self, mark: LineMark, lines: &[&[u8]]) {
        for line in lines {
            let (text, is_ended) = match line.strip_suffix(b"\n") {
                Some(text) => (text, true),
                None => (*line, false),
            };
            let text = text.strip_suffix(b"\r").filter(|_| self.is_crlf).unwrap_or(text);
            let text = cut(text);
            let text = format!("{}{text}", char::from(mark.sign()));
            match mark {
                LineMark::Same => self.put(&text),
                LineMark::Removed => self.put(&self.style.red(&text)),
                LineMark::Added => self.put(&self.style.green(&text)),
            }
            if !is_ended {
                self.put(&self.style.dim("\\ no newline at the end"));
            }
        }
    }
}

impl<'a> DiffSide<'a> {
    /// The content, if it is text.
    fn text(self) -> Option<&'a [u8]> {
        match self {
            Self::Missing => Some(b""),
            Self::File { bytes, .. } => (!is_binary(bytes)).then_some(bytes),
            Self::Link(_) | Self::Other(_) => None,
        }
    }
}

impl fmt::Display for DiffSide<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => f.write_str("nothing"),
            Self::File { bytes, .. } if is_binary(bytes) => {
                write!(f, "binary file ({})", size_of(bytes))
            }
            Self::File { bytes, .. } => write!(f, "file ({})", size_of(bytes)),
            Self::Link(text) => write!(f, "symlink to {}", escape(text)),
            Self::Other(kind) => f.write_str(kind.words()),
        }
    }
}

fn size_of(bytes: &[u8]) -> String {
    size(bytes.len() as u64)
}

/// `@@ -1,3 +1,4 @@`.
fn header(group: &[DiffOp]) -> String {
    let (Some(first), Some(last)) = (group.first(), group.last()) else { return String::new() };
    let old = first.old_range().start..last.old_range().end;
    let new = first.new_range().start..last.new_range().end;
    format!("@@ -{} +{} @@", range_words(&old), range_words(&new))
}

/// Lines as a header counts them: from 1, and where there are none, after the line before.
fn range_words(range: &Range<usize>) -> String {
    match range.len() {
        0 => format!("{},0", range.start),
        1 => format!("{}", range.start + 1),
        len => format!("{},{len}", range.start + 1),
    }
}

/// One line, escaped and cut to a readable length.
fn cut(text: &[u8]) -> String {
    match text.get(..LINE_MAX) {
        Some(start) if text.len() > LINE_MAX => {
            let start = escape_line(start).into_owned();
            format!("{start}… ({} more)", count((text.len() - LINE_MAX) as u64, "byte"))
        }
        Some(_) | None => escape_line(text).into_owned(),
    }
}

/// Numbers of added and deleted lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LineCounts {
    /// Added lines.
    pub added: u64,
    /// Deleted lines.
    pub removed: u64,
}

impl AddAssign for LineCounts {
    fn add_assign(&mut self, other: Self) {
        self.added += other.added;
        self.removed += other.removed;
    }
}

impl fmt::Display for LineCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A minus sign as wide as the plus sign.
        write!(f, "+{} −{}", number(self.added), number(self.removed))
    }
}

/// Larger texts are counted, not compared, because the result would be too long to read.
const BYTES_MAX: usize = 4 << 20;

/// As [`BYTES_MAX`].
const LINES_MAX: usize = 100_000;

/// A NUL in this part makes a file binary, as in git.
const LOOKED_AT: usize = 8000;

fn is_binary(bytes: &[u8]) -> bool {
    bytes.iter().take(LOOKED_AT).any(|byte| *byte == 0)
}

fn is_large(text: &[u8]) -> bool {
    text.len() > BYTES_MAX || text.split(|byte| *byte == b'\n').nth(LINES_MAX).is_some()
}

/// Splits into lines, each with its newline: a last line without one is a different line.
fn split(text: &[u8]) -> Vec<&[u8]> {
    text.split_inclusive(|byte| *byte == b'\n').collect()
}

fn compare(old: &[&[u8]], new: &[&[u8]], deadline: Option<Instant>) -> Vec<DiffOp> {
    capture_diff_slices_deadline(Algorithm::Myers, old, new, deadline)
}

fn tally(ops: &[DiffOp]) -> LineCounts {
    let mut lines = LineCounts::default();
    for op in ops.iter().filter(|op| !matches!(op, DiffOp::Equal { .. })) {
        lines.added += op.new_range().len() as u64;
        lines.removed += op.old_range().len() as u64;
    }
    lines
}

/// Counts each line's occurrences on both sides, wherever they are.
fn counted(old: &[u8], new: &[u8]) -> LineCounts {
    let mut counts: HashMap<&[u8], i64> = HashMap::new();
    for line in new.split_inclusive(|byte| *byte == b'\n') {
        *counts.entry(line).or_default() += 1;
    }
    for line in old.split_inclusive(|byte| *byte == b'\n') {
        *counts.entry(line).or_default() -= 1;
    }
    let mut lines = LineCounts::default();
    for count in counts.into_values() {
        if count > 0 {
            lines.added += count.unsigned_abs();
        } else {
            lines.removed += count.unsigned_abs();
        }
    }
    lines
}
