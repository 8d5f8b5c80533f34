//! The lines of a difference or a plan, limited to a readable number, with a note if there are
//! more.

use crate::ui::{Paint, count};

/// Longer differences are read with `beforehand diff` in a pager.
const LINES_MAX: usize = 3000;
/// How far a tab goes.
const TAB: usize = 4;

/// Lines to show. They are printable, because their source has escaped them.
#[derive(Debug, Default)]
pub(super) struct Sheet {
    lines: Vec<(Paint, String)>,
    /// The number of lines beyond the limit.
    left_out: u64,
}

impl Sheet {
    /// The lines of a text, as they are.
    pub(super) fn of_text(text: &str) -> Self {
        let mut sheet = Self::default();
        for line in text.trim_end().lines() {
            sheet.add(Paint::Plain, line);
        }
        sheet
    }

    /// Adds the difference of one file, as `FileDiff` prints it without colour.
    pub(super) fn add_diff(&mut self, text: &str) {
        // A line that begins with `---` is a heading only above the first hunk; below it, it can be
        // a deleted line `-- …`.
        let mut is_heading = true;
        for line in text.lines() {
            is_heading &= !line.starts_with("@@");
            let paint = match line.as_bytes().first() {
                _ if is_heading => Paint::Bold,
                Some(b'+') => Paint::Green,
                Some(b'-') => Paint::Red,
                Some(b'@' | b'\\') => Paint::Dim,
                Some(_) | None => Paint::Plain,
            };
            self.add(paint, line);
        }
    }

    /// Adds a note.
    pub(super) fn add_note(&mut self, text: &str) {
        for line in text.lines() {
            self.lines.push((Paint::Dim, without_tabs(line)));
        }
    }

    fn add(&mut self, paint: Paint, line: &str) {
        if self.lines.len() < LINES_MAX {
            self.lines.push((paint, without_tabs(line)));
        } else {
            self.left_out += 1;
        }
    }

    /// How many lines there are to look at.
    pub(super) fn len(&self) -> usize {
        self.lines.len() + usize::from(self.left_out > 0)
    }

    /// The lines from `top` on, `rows` at most.
    pub(super) fn from(&self, top: usize, rows: usize) -> Vec<(Paint, String)> {
        let mut shown: Vec<_> = self.lines.iter().skip(top).take(rows).cloned().collect();
        if self.left_out > 0 && shown.len() < rows && top <= self.lines.len() {
            let more = count(self.left_out, "line");
            shown.push((Paint::Dim, format!("… and {more} more: beforehand diff shows all")));
        }
        shown
    }
}

/// A tab would move the terminal's cursor past neighbouring cells.
fn without_tabs(line: &str) -> String {
    if !line.contains('\t') {
        return line.to_owned();
    }
    let mut shown = String::with_capacity(line.len() + TAB);
    for part in line.split_inclusive('\t') {
        shown.push_str(part.trim_end_matches('\t'));
        if part.ends_with('\t') {
            // A sign stands before each line of a difference; the text begins behind it.
            let cells = crate::ui::cells(&shown).saturating_sub(1);
            shown.push_str(&" ".repeat(TAB - cells % TAB));
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use Paint::{Bold, Dim, Green, Plain, Red};

    use super::*;

    #[test]
    fn a_line_taken_away_is_no_heading() {
        let mut sheet = Sheet::default();
        sheet.add_diff("--- a/q.sql\n+++ b/q.sql\n@@ -1 +1 @@\n--- old\n+++ new\n same\n");
        let paints: Vec<Paint> = sheet.from(0, 9).into_iter().map(|(paint, _)| paint).collect();
        assert_eq!(paints, [Bold, Bold, Dim, Red, Green, Plain]);
    }

    #[test]
    fn a_long_difference_is_cut_aloud() {
        let mut sheet = Sheet::default();
        sheet.add_diff(&format!("--- a\n+++ b\n@@ @@\n{}", "+x\n".repeat(LINES_MAX)));
        assert_eq!(sheet.len(), LINES_MAX + 1);
        let last = sheet.from(LINES_MAX - 1, 9);
        assert_eq!(last.len(), 2);
        assert_eq!(last[1].1, "… and 3 lines more: beforehand diff shows all");
    }

    #[test]
    fn tabs_become_spaces() {
        assert_eq!(without_tabs("+\tx"), "+    x");
        assert_eq!(without_tabs("+ab\t本\ty"), "+ab  本  y");
        assert_eq!(without_tabs("plain"), "plain");
    }
}
