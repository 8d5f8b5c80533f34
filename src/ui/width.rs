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

/// How many bytes of these characters fit into `room` cells.
fn take(chars: impl Iterator<Item = char>, room: usize) -> usize {
    let mut used = 0;
    chars
        .take_while(|c| {
            used += c.width().unwrap_or(0);
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
    for word in words(text) {
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

/// What stands between spaces, but for those between backticks.
fn words(text: &str) -> impl Iterator<Item = &str> {
    let mut is_quoted = false;
    let is_gap = move |c: char| {
        is_quoted ^= c == '`';
        c == ' ' && !is_quoted
    };
    text.split(is_gap).filter(|word| !word.is_empty())
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
        fn what_is_fitted_fits(text in "\\PC*", max in 0_usize..40) {
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
    }
}
