//! What changed in one file, for people: a unified diff where there are lines to compare, and one
//! line in words where there are none.
//!
//! It looks like a patch and is none: names and lines are escaped.

use std::{
    collections::HashMap,
    fmt::{self, Write as _},
    time::Instant,
};

use similar::{Algorithm, DiffOp, capture_diff_slices_deadline, group_diff_ops};

use super::{Style, count, escape, escape_line, number, size};
use crate::model::Kind;

/// One file before and after.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change<'a> {
    /// Its path, not yet escaped.
    pub path: &'a [u8],
    /// What was there.
    pub old: Side<'a>,
    /// What is there.
    pub new: Side<'a>,
}

/// What is at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side<'a> {
    /// Nothing.
    Missing,
    /// A regular file.
    File {
        /// What is in it.
        bytes: &'a [u8],
        /// Its permission bits.
        permissions: u32,
    },
    /// A symlink, by its text.
    Link(&'a [u8]),
    /// Anything else, which has no bytes.
    Other(Kind),
}

/// How a difference is shown.
#[derive(Clone, Copy, Debug)]
pub struct Look {
    /// With or without colour.
    pub style: Style,
    /// When to stop looking for the shortest difference and take what there is.
    pub deadline: Option<Instant>,
}

/// How many lines came and went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lines {
    /// Lines that are there now and were not.
    pub added: u64,
    /// Lines that are gone.
    pub removed: u64,
}

impl fmt::Display for Lines {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A minus sign as wide as the plus.
        write!(f, "+{} −{}", number(self.added), number(self.removed))
    }
}

/// Larger texts are counted, not compared: nobody reads the result.
const BYTES_MAX: usize = 4 << 20;

/// As [`BYTES_MAX`].
const LINES_MAX: usize = 100_000;

/// Where a NUL makes a file binary, as git has it.
const LOOKED_AT: usize = 8000;

/// Lines shown around a change.
const AROUND: usize = 3;

/// A line of a minified file says nothing, and says it for minutes.
const LINE_MAX: usize = 2000;

impl Change<'_> {
    /// How many lines came and went; `None` where there are no lines: a binary file, a symlink, a
    /// device. Exact for small texts; for large ones what was merely moved does not count.
    pub fn lines(&self, deadline: Option<Instant>) -> Option<Lines> {
        let (old, new) = self.texts()?;
        if is_large(old) || is_large(new) {
            return Some(counted(old, new));
        }
        Some(tally(&compare(&split(old), &split(new), deadline)))
    }

    /// The difference in full, each line ended; nothing if there is none.
    pub fn show(&self, look: Look) -> String {
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

    /// Both texts, if it is lines on both sides; a missing file is an empty one.
    fn texts(&self) -> Option<(&[u8], &[u8])> {
        match (self.old, self.new) {
            (Side::Missing, Side::Missing) => None,
            (old, new) => Some((old.text()?, new.text()?)),
        }
    }

    /// What is not a matter of lines.
    fn words(&self) -> String {
        let mut shown = String::new();
        match (self.old, self.new) {
            (Side::File { permissions: old, .. }, Side::File { permissions: new, .. })
                if old != new =>
            {
                self.say(&mut shown, &format!("mode {old:o} → {new:o}"));
            }
            (Side::Missing, Side::File { bytes: [], .. }) => {
                self.say(&mut shown, "empty file added");
            }
            (Side::File { bytes: [], .. }, Side::Missing) => {
                self.say(&mut shown, "empty file removed");
            }
            (_, _) => (),
        }
        let said = match (self.old, self.new) {
            (old, new) if old == new || self.texts().is_some() => return shown,
            (Side::File { bytes: old, .. }, Side::File { bytes: new, .. }) if old == new => {
                return shown;
            }
            (Side::File { bytes: old, .. }, Side::File { bytes: new, .. }) => {
                format!("binary files differ ({} → {})", size_of(old), size_of(new))
            }
            (Side::Missing, new) => format!("{new} added"),
            (old, Side::Missing) => format!("{old} removed"),
            (old, new) => format!("{old} → {new}"),
        };
        self.say(&mut shown, &said);
        shown
    }

    fn say(&self, shown: &mut String, words: &str) {
        writeln!(shown, "{}: {words}", escape(self.path)).expect("a string takes every write");
    }

    fn hunks(&self, shown: &mut String, old: &[u8], new: &[u8], look: Look) {
        let (old, new) = (split(old), split(new));
        let style = look.style;
        // Where every line ends in CRLF it is the way of the file and not worth a word.
        let is_crlf = old.iter().chain(&new).all(|line| line.ends_with(b"\r\n"));
        let mut sheet = Sheet { shown, style, is_crlf };
        sheet.put(&style.bold(&format!("--- {}", self.name(self.old, 'a'))));
        sheet.put(&style.bold(&format!("+++ {}", self.name(self.new, 'b'))));
        for group in group_diff_ops(compare(&old, &new, look.deadline), AROUND) {
            sheet.put(&style.dim(&header(&group)));
            for op in group {
                let (minus, plus) = (&old[op.old_range()], &new[op.new_range()]);
                if matches!(op, DiffOp::Equal { .. }) {
                    sheet.lines(Mark::Same, plus);
                } else {
                    sheet.lines(Mark::Removed, minus);
                    sheet.lines(Mark::Added, plus);
                }
            }
        }
    }

    /// The path as a header has it: the side a file is not on has a name of its own.
    fn name(&self, side: Side<'_>, letter: char) -> String {
        match side {
            Side::Missing => "/dev/null".to_owned(),
            Side::File { .. } | Side::Link(_) | Side::Other(_) => {
                format!("{letter}/{}", escape(self.path))
            }
        }
    }
}

/// What the lines of a hunk are written to.
struct Sheet<'a> {
    shown: &'a mut String,
    style: Style,
    is_crlf: bool,
}

/// What became of a line.
#[derive(Clone, Copy)]
enum Mark {
    Same,
    Removed,
    Added,
}

impl Sheet<'_> {
    fn put(&mut self, line: &str) {
        self.shown.push_str(line);
        self.shown.push('\n');
    }

    fn lines(&mut self, mark: Mark, lines: &[&[u8]]) {
        for line in lines {
            let (text, is_ended) = match line.strip_suffix(b"\n") {
                Some(text) => (text, true),
                None => (*line, false),
            };
            let text = text.strip_suffix(b"\r").filter(|_| self.is_crlf).unwrap_or(text);
            let text = cut(text);
            match mark {
                Mark::Same => self.put(&format!(" {text}")),
                Mark::Removed => self.put(&self.style.red(&format!("-{text}"))),
                Mark::Added => self.put(&self.style.green(&format!("+{text}"))),
            }
            if !is_ended {
                self.put(&self.style.dim("\\ no newline at the end"));
            }
        }
    }
}

impl<'a> Side<'a> {
    /// Its bytes, if they are lines of text.
    fn text(self) -> Option<&'a [u8]> {
        match self {
            Self::Missing => Some(b""),
            Self::File { bytes, .. } => (!is_binary(bytes)).then_some(bytes),
            Self::Link(_) | Self::Other(_) => None,
        }
    }
}

impl fmt::Display for Side<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => f.write_str("nothing"),
            Self::File { bytes, .. } if is_binary(bytes) => {
                write!(f, "binary file ({})", size_of(bytes))
            }
            Self::File { bytes, .. } => write!(f, "file ({})", size_of(bytes)),
            Self::Link(text) => write!(f, "symlink to {}", escape(text)),
            Self::Other(kind) => f.write_str(match kind {
                Kind::File => "file",
                Kind::Link => "symlink",
                Kind::Directory => "directory",
                Kind::Fifo => "named pipe",
                Kind::Socket => "socket",
                Kind::CharDevice | Kind::BlockDevice => "device",
            }),
        }
    }
}

fn size_of(bytes: &[u8]) -> String {
    size(bytes.len() as u64)
}

fn is_binary(bytes: &[u8]) -> bool {
    bytes.iter().take(LOOKED_AT).any(|byte| *byte == 0)
}

fn is_large(text: &[u8]) -> bool {
    text.len() > BYTES_MAX || text.split(|byte| *byte == b'\n').nth(LINES_MAX).is_some()
}

/// The lines, each with its newline: a last one without is another line.
fn split(text: &[u8]) -> Vec<&[u8]> {
    text.split_inclusive(|byte| *byte == b'\n').collect()
}

fn compare(old: &[&[u8]], new: &[&[u8]], deadline: Option<Instant>) -> Vec<DiffOp> {
    capture_diff_slices_deadline(Algorithm::Myers, old, new, deadline)
}

fn tally(ops: &[DiffOp]) -> Lines {
    let mut lines = Lines::default();
    for op in ops.iter().filter(|op| !matches!(op, DiffOp::Equal { .. })) {
        lines.added += op.new_range().len() as u64;
        lines.removed += op.old_range().len() as u64;
    }
    lines
}

/// Counts each line's occurrences on both sides, wherever they are.
fn counted(old: &[u8], new: &[u8]) -> Lines {
    let mut counts: HashMap<&[u8], i64> = HashMap::new();
    for line in new.split_inclusive(|byte| *byte == b'\n') {
        *counts.entry(line).or_default() += 1;
    }
    for line in old.split_inclusive(|byte| *byte == b'\n') {
        *counts.entry(line).or_default() -= 1;
    }
    let mut lines = Lines::default();
    for count in counts.into_values() {
        if count > 0 {
            lines.added += count.unsigned_abs();
        } else {
            lines.removed += count.unsigned_abs();
        }
    }
    lines
}

/// `@@ -1,3 +1,4 @@`.
fn header(group: &[DiffOp]) -> String {
    let (Some(first), Some(last)) = (group.first(), group.last()) else { return String::new() };
    let old = first.old_range().start..last.old_range().end;
    let new = first.new_range().start..last.new_range().end;
    let range = |range: std::ops::Range<usize>| match range.len() {
        0 => format!("{},0", range.start),
        1 => format!("{}", range.start + 1),
        len => format!("{},{len}", range.start + 1),
    };
    format!("@@ -{} +{} @@", range(old), range(new))
}

/// One line, escaped, and cut if nobody could read it.
fn cut(text: &[u8]) -> String {
    match text.get(..LINE_MAX) {
        Some(start) if text.len() > LINE_MAX => {
            let start = escape_line(start).into_owned();
            format!("{start}… ({} more)", count((text.len() - LINE_MAX) as u64, "byte"))
        }
        Some(_) | None => escape_line(text).into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(bytes: &[u8]) -> Side<'_> {
        Side::File { bytes, permissions: 0o644 }
    }

    fn show(old: Side<'_>, new: Side<'_>) -> String {
        let change = Change { path: b"src/a\n\x1b.ts", old, new };
        change.show(Look { style: Style::PLAIN, deadline: None })
    }

    fn lines(old: &[u8], new: &[u8]) -> Option<(u64, u64)> {
        let change = Change { path: b"x", old: file(old), new: file(new) };
        change.lines(None).map(|lines| (lines.added, lines.removed))
    }

    #[test]
    fn a_change_is_shown_with_what_is_around_it() {
        let old = b"1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n";
        let new = b"1\n2\n3\n4\nfive\n6\n7\n8\n9\n10\n11\n12\n13";
        insta::assert_snapshot!(show(file(old), file(new)), @r"
        --- a/src/a\n\u{1b}.ts
        +++ b/src/a\n\u{1b}.ts
        @@ -2,7 +2,7 @@
         2
         3
         4
        -5
        +five
         6
         7
         8
        @@ -10,3 +10,4 @@
         10
         11
         12
        +13
        \ no newline at the end
        ");
    }

    #[test]
    fn a_line_cannot_draw_on_the_terminal() {
        insta::assert_snapshot!(show(file(b"\tok\n"), file(b"\x1b[2J\xff\tok\n")), @r"
        --- a/src/a\n\u{1b}.ts
        +++ b/src/a\n\u{1b}.ts
        @@ -1 +1 @@
        -	ok
        +\u{1b}[2J\xff	ok
        ");
    }

    #[test]
    fn files_come_and_go() {
        insta::assert_snapshot!(show(Side::Missing, file(b"new\n")), @r"
        --- /dev/null
        +++ b/src/a\n\u{1b}.ts
        @@ -0,0 +1 @@
        +new
        ");
        insta::assert_snapshot!(show(file(b"old\n"), Side::Missing), @r"
        --- a/src/a\n\u{1b}.ts
        +++ /dev/null
        @@ -1 +0,0 @@
        -old
        ");
    }

    #[test]
    fn what_has_no_lines_is_said_in_words() {
        let name = "src/a\\n\\u{1b}.ts: ";
        let (blob, bigger) = (vec![0; 12_000], vec![0; 14_000]);
        let run = |bytes| Side::File { bytes, permissions: 0o755 };
        for (old, new, said) in [
            (file(&blob), file(&bigger), "binary files differ (12 KB → 14 KB)"),
            (Side::Missing, file(&blob), "binary file (12 KB) added"),
            (file(&blob), Side::Missing, "binary file (12 KB) removed"),
            (file(b"x"), file(&blob), "binary files differ (1 byte → 12 KB)"),
            (Side::Link(b"a"), Side::Link(b"b\n"), "symlink to a → symlink to b\\n"),
            (file(b"text"), Side::Link(b"b"), "file (4 bytes) → symlink to b"),
            (Side::Other(Kind::Fifo), Side::Missing, "named pipe removed"),
            (Side::Other(Kind::Directory), file(b"x"), "directory → file (1 byte)"),
            (Side::Missing, file(b""), "empty file added"),
            (file(b""), Side::Missing, "empty file removed"),
            (file(b"same"), run(b"same"), "mode 644 → 755"),
            (file(&blob), run(&blob), "mode 644 → 755"),
        ] {
            assert_eq!(show(old, new), format!("{name}{said}\n"));
        }
        assert_eq!(show(file(b"same"), file(b"same")), "");
        assert_eq!(show(file(&blob), file(&blob)), "");
        assert_eq!(show(Side::Missing, Side::Missing), "");
        let both = show(file(b"a"), run(b"b"));
        assert!(both.starts_with("src/a\\n\\u{1b}.ts: mode 644 → 755\n--- a/"), "{both}");
    }

    #[test]
    fn line_ends_are_shown_where_they_matter() {
        assert!(!show(file(b"a\r\nb\r\n"), file(b"a\r\nc\r\n")).contains("\\r"));
        assert!(show(file(b"a\r\n"), file(b"a\n")).contains("-a\\r\n+a\n"));
    }

    #[test]
    fn lines_are_counted() {
        assert_eq!(lines(b"a\nb\n", b"a\nc\nd\n"), Some((2, 1)));
        assert_eq!(lines(b"", b"a"), Some((1, 0)));
        assert_eq!(lines(b"a", b"a\n"), Some((1, 1)));
        assert_eq!(lines(b"\0", b"a"), None);
        assert_eq!(Lines { added: 1_204, removed: 0 }.to_string(), "+1,204 −0");
    }

    #[test]
    fn large_texts_are_counted_and_not_compared() {
        let old: Vec<u8> = b"line\n".repeat(LINES_MAX + 1);
        let new = [&old[..], b"one\n", b"two\n"].concat();
        assert_eq!(lines(&old, &new), Some((2, 0)));
        assert!(
            show(file(&old), file(&new)).ends_with("too large to compare, about +2 −0 lines\n")
        );
    }

    #[test]
    fn a_line_nobody_could_read_is_cut() {
        let long = b"x".repeat(LINE_MAX + 1_500);
        let shown = show(Side::Missing, file(&long));
        assert!(shown.contains("… (1,500 bytes more)"), "{shown}");
    }

    #[test]
    fn the_deadline_gives_a_coarser_difference_and_never_a_wrong_one() {
        let old: Vec<u8> =
            (0..50_000).flat_map(|n| format!("{}\n", n * 7 % 911).into_bytes()).collect();
        let new: Vec<u8> =
            (0..50_000).flat_map(|n| format!("{}\n", n * 5 % 877).into_bytes()).collect();
        let change = Change { path: b"x", old: file(&old), new: file(&new) };
        let counted = change.lines(Some(Instant::now())).unwrap();
        assert_eq!(counted.added, counted.removed);
        assert!(counted.added <= 50_000);
    }

    #[test]
    fn red_and_green_are_for_lines_only() {
        let change = Change { path: b"x", old: file(b"a\nb\n"), new: file(b"a\nc\n") };
        let shown = change.show(Look { style: Style::COLOUR, deadline: None });
        insta::assert_snapshot!(shown.escape_debug().to_string().replace("\\n", "\n"), @r"
        \u{1b}[1m--- a/x\u{1b}[0m
        \u{1b}[1m+++ b/x\u{1b}[0m
        \u{1b}[2m@@ -1,2 +1,2 @@\u{1b}[0m
         a
        \u{1b}[31m-b\u{1b}[0m
        \u{1b}[32m+c\u{1b}[0m
        ");
    }
}
