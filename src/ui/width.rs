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
}
