//! Formats output for people: names, numbers, times, tables and differences.
//!
//! Pure, except for questions to the user: [`ask`], [`answer`] and the [`picker`]. The capabilities
//! of the terminal and the time are parameters.

mod escape;
mod hunks;
pub mod picker;
mod question;
mod style;
mod table;
mod width;
mod words;

use std::{borrow::Cow, path::Path};

pub use escape::{escape, escape_json, escape_line, escape_path, escape_text, literal_pick, quote};
pub use hunks::{DiffOptions, DiffSide, FileDiff, LineCounts, Patch, Unfit, raw_hunks};
pub use question::{answer, ask, keys};
pub use style::{Paint, Style};
pub use table::{Cell, Column, Table};
pub use width::{Align, Cut, cells, fit, pad, wrap, wrap_lines};
pub use words::{Clock, ago, at_most, count, duration, left_out, number, size};

/// A path for display: escaped, and with `~` for the home directory.
pub fn path<'a>(path: &'a Path, home: Option<&Path>) -> Cow<'a, str> {
    let below =
        home.filter(|home| home.parent().is_some()).and_then(|home| path.strip_prefix(home).ok());
    match below {
        Some(rest) if rest.as_os_str().is_empty() => Cow::Borrowed("~"),
        Some(rest) => Cow::Owned(format!("~/{}", escape_path(rest))),
        None => escape_path(path),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_below_home_is_short() {
        let short = |text: &'static str| path(Path::new(text), Some(Path::new("/home/ada")));
        assert_eq!(short("/home/ada/code/shop"), "~/code/shop");
        assert_eq!(short("/home/ada"), "~");
        assert_eq!(short("/home/adam/x"), "/home/adam/x");
        assert_eq!(short("/home/ada/a\nb"), "~/a\\nb");
        assert_eq!(path(Path::new("/etc"), Some(Path::new("/"))), "/etc");
    }
}
