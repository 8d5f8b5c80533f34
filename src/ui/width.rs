//! Measures text in terminal cells, and shortens or pads it to a width.

use std::borrow::Cow;

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// The width of `text` in cells. It must be printable, as `escape` makes it.
pub fn cells(text: &str) -> usize {
    // The common case.
    if text.is_ascii() { text.len() } else { text.width() }
}

/// Where a text is shortened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// At its end: for sentences and command lines.
    End,
    /// Before its last part: for paths, where the last name matters most.
    Middle,
}

/// Shortens `text` to at most `max` cells, with `…` where something is missing.
pub fn fit(text: &str, max: usize, cut: Cut) -> Cow<'_, str> {
    if cells(text) <= max {
        return Cow::Borrowed(text);
    }
    let Some(room) = max.checked_sub(1) else { return Cow::Borrowed("") };
    let tail = match cut {
        Cut::End => 0,
        Cut::Middle => room * 2 / 3,
    };
    let head = &text[..take(text.chars(), room - tail)];
    let tail = &text[text.len() - take(text.chars().rev(), tail)..];
    Cow::Owned(format!("{head}…{tail}"))
}

/// Asks for an emoji, two cells wide, in place of the character before it, which may be one cell wide.
const EMOJI_SELECTOR: char = '\u{fe0f}';

/// How many bytes of these characters fit into `room` cells, each taken as wide as any neighbour can make it.
fn take(chars: impl Iterator<Item = char>, room: usize) -> usize {
    let mut used = 0;
    chars
        .take_while(|&c| {
            used += c.width().unwrap_or(0) + usize::from(c == EMOJI_SELECTOR);
            used <= room
        })
        .map(char::len_utf8)
        .sum()
}

/// On which side a text stands in its column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    /// On the left: for words.
    Left,
    /// On the right: for numbers.
    Right,
}

/// The numbers of spaces before and after `text` that pad it to `width` cells.
pub(super) fn spaces(text: &str, width: usize, align: Align) -> (usize, usize) {
    let missing = width.saturating_sub(cells(text));
    match align {
        Align::Left => (0, missing),
        Align::Right => (missing, 0),
    }
}

/// Breaks `text` at spaces into lines of at most `max` cells, the first one behind `hang` cells that stand there
/// already, and each other one behind as many spaces. A longer word, and what stands between backticks, stays whole:
/// a path or a command that is broken cannot be copied.
pub fn wrap(text: &str, max: usize, hang: usize) -> String {
    let (mut lines, mut used) = (String::new(), hang);
    for (_, word) in words(text).filter(|(_, word)| !word.is_empty()) {
        let gap = usize::from(used > hang);
        if gap > 0 && used + gap + cells(word) > max {
            lines.push('\n');
            lines.extend(std::iter::repeat_n(' ', hang));
            used = hang;
        } else if gap > 0 {
            lines.push(' ');
            used += gap;
        }
        lines.push_str(word);
        used += cells(word);
    }
    lines
}

/// How much further to the right the rest of a broken line begins.
const HANG: usize = 2;

/// Breaks the lines of `text` that are wider than `max` cells, at spaces, and indents the rest of such a line. Words
/// stay whole as in [`wrap`], and so do the parts of a line of hints, which middle dots separate, and a command that is
/// a line or ends one, after `with:`. Colours take no width.
pub fn wrap_lines(text: &str, max: usize) -> Cow<'_, str> {
    if text.lines().all(|line| painted_cells(line) <= max) {
        return Cow::Borrowed(text);
    }
    let lines = text.split_inclusive('\n').map(|line| {
        let (line, end) = line.strip_suffix('\n').map_or((line, ""), |line| (line, "\n"));
        wrap_line(line, max) + end
    });
    Cow::Owned(lines.collect())
}

/// How lines begin that are a command as a whole.
const COMMANDS: [&str; 2] = ["beforehand ", "git --git-dir="];

fn wrap_line(line: &str, max: usize) -> String {
    let is_command = COMMANDS.iter().any(|begin| line.trim_start_matches(' ').starts_with(begin));
    if painted_cells(line) <= max || (is_command && !line.contains(HINT_GAP)) {
        return line.to_owned();
    }
    let indent = line.len() - line.trim_start_matches(' ').len();
    let hang = (indent + HANG).min(max / 2);
    let (mut wrapped, mut used, mut gap) = (String::new(), 0, 0);
    for (before, word) in unbroken(line, max - hang) {
        gap += before;
        if word.is_empty() {
            continue;
        }
        let is_first = wrapped.is_empty();
        if !is_first && used + gap + painted_cells(word) > max {
            wrapped.push('\n');
            (used, gap) = (0, hang);
        }
        wrapped.extend(std::iter::repeat_n(' ', gap));
        wrapped.push_str(word);
        used += gap + painted_cells(word);
        gap = 0;
    }
    wrapped
}

/// What stands between two parts of a line of hints.
const HINT_GAP: &str = " · ";

/// What stands before a command that ends a line, as in `undo with: beforehand undo`.
const COMMAND_FOLLOWS: &str = " with: ";

/// The parts of a line that are not broken, each with the number of spaces before it. A hint stays whole if it fits into
/// `max` cells, the rest of a line that goes on below.
fn unbroken(line: &str, max: usize) -> Vec<(usize, &str)> {
    if let Some(at) = line.find(COMMAND_FOLLOWS) {
        let (said, command) = line.split_at(at + COMMAND_FOLLOWS.len());
        let mut parts = unbroken(said.trim_end(), max);
        parts.push((1, command));
        return parts;
    }
    let mut parts = Vec::new();
    for (n, hint) in line.split_inclusive(HINT_GAP).enumerate() {
        let (before, hint) = (usize::from(n > 0), hint.trim_end_matches(' '));
        if painted_cells(hint) <= max && hint.len() < line.len() {
            parts.push((before, hint));
        } else {
            parts.push((before, ""));
            parts.extend(words(hint));
        }
    }
    parts
}

/// The width of a text that may be painted.
fn painted_cells(text: &str) -> usize {
    let mut parts = text.split('\u{1b}');
    let plain = parts.next().map_or(0, cells);
    plain + parts.map(|part| part.split_once('m').map_or(0, |(_, text)| cells(text))).sum::<usize>()
}

/// What stands between single spaces, but for those between backticks, each with the number of spaces before it (none or
/// one). Of several spaces, each but the last ends an empty word.
fn words(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut backticks = text.matches('`').count();
    let mut is_quoted = false;
    let is_gap = move |c: char| {
        if c == '`' {
            // The last one of an odd number quotes nothing.
            is_quoted = !is_quoted && backticks > 1;
            backticks -= 1;
        }
        c == ' ' && !is_quoted
    };
    text.split(is_gap).enumerate().map(|(n, word)| (usize::from(n > 0), word))
}

/// Pads `text` to `width` cells.
pub fn pad(text: &str, width: usize, align: Align) -> String {
    let (before, behind) = spaces(text, width, align);
    format!("{}{text}{}", " ".repeat(before), " ".repeat(behind))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::ui::Style;

    #[test]
    fn a_cut_leaves_what_says_most() {
        assert_eq!(fit("src/cart.ts", 11, Cut::Middle), "src/cart.ts");
        assert_eq!(fit("src/components/cart.ts", 16, Cut::Middle), "src/c…ts/cart.ts");
        assert_eq!(fit("rm -rf build && npm i", 10, Cut::End), "rm -rf bu…");
        assert_eq!(fit("日本語テキスト", 6, Cut::End), "日本…");
        assert_eq!(fit("long", 0, Cut::End), "");
        assert_eq!(pad("日本", 6, Align::Right), "  日本");
    }

    proptest! {
        #[test]
        fn what_is_fitted_fits(text in "(\\PC|[0-9*☺]\u{fe0f}){0,40}", max in 0_usize..40) {
            for cut in [Cut::End, Cut::Middle] {
                let shown = crate::ui::escape(text.as_bytes());
                prop_assert!(cells(&fit(&shown, max, cut)) <= max);
            }
        }
    }

    #[test]
    fn lines_are_broken_at_spaces_and_paths_and_commands_are_not() {
        let told = "kept: src/a/long/name.rs (use `beforehand restore 1 --force` for it)";
        assert_eq!(
            wrap(told, 24, 4),
            "kept:\n    src/a/long/name.rs\n    (use\n    `beforehand restore 1 --force`\n    for it)"
        );
        assert_eq!(wrap("a b", 80, 0), "a b");
        assert_eq!(wrap("", 1, 2), "");
        assert_eq!(wrap("it`s `a b` c", 5, 0), "it`s `a\nb` c", "an odd number");
    }

    #[test]
    fn a_line_that_is_too_wide_goes_on_below_and_keeps_its_columns() {
        let wrapped = |text: &'static str, max| wrap_lines(text, max).into_owned();
        assert_eq!(wrapped("short\n  a line\n", 8), "short\n  a line\n");
        assert_eq!(wrapped("  left  a file\nx\n", 10), "  left  a\n    file\nx\n");
        assert_eq!(wrapped("note: `x y` is held", 12), "note: `x y`\n  is held");
        assert_eq!(wrapped("do a · do b · do c", 14), "do a · do b ·\n  do c");
        assert_eq!(wrapped("go on with: a b c d", 9), "go on\n  with:\n  a b c d");
        assert_eq!(wrapped("  beforehand x y z", 9), "  beforehand x y z");
        assert_eq!(wrapped("a-very-long/path", 4), "a-very-long/path");
        assert_eq!(wrapped("日本 日本 e\u{301}e\u{301}", 7), "日本\n  日本\n  e\u{301}e\u{301}");
        let red = Style::COLOUR.red("error:");
        assert_eq!(wrap_lines(&format!("{red} ab"), 9), format!("{red} ab"));
        assert_eq!(wrap_lines(&format!("{red} ab cd"), 9), format!("{red} ab\n  cd"));
    }

    proptest! {
        #[test]
        fn wrapping_changes_spaces_alone(text in "[ a-z`·\n日]{0,80}", max in 1_usize..30) {
            let wrapped = wrap_lines(&text, max);
            let letters = |text: &str| text.replace([' ', '\n'], "");
            prop_assert_eq!(letters(&wrapped), letters(&text));
            for line in wrapped.lines().filter(|line| !line.contains('`')) {
                let is_whole = !line.trim_start_matches(' ').contains(' ');
                prop_assert!(cells(line.trim_end()) <= max || is_whole, "{line:?} of {text:?}");
            }
        }
    }
}
