//! Colours, where they help and are wanted. No information depends on them.

use std::borrow::Cow;

use crate::process::Process;

/// Whether to use colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    is_on: bool,
}

/// How a piece of text looks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Paint {
    /// As it is.
    #[default]
    Plain,
    /// Less important than what is around it.
    Dim,
    /// More important.
    Bold,
    /// Taken away; in differences only.
    Red,
    /// Added; in differences only.
    Green,
}

impl Style {
    /// No colour.
    pub const PLAIN: Self = Self { is_on: false };

    /// Colour.
    pub const COLOUR: Self = Self { is_on: true };

    /// For a terminal that is neither stdout nor stderr.
    pub fn tty(process: &Process<'_>) -> Self {
        Self { is_on: is_wanted(process) }
    }

    /// For what goes to stdout.
    pub fn stdout(process: &Process<'_>) -> Self {
        Self { is_on: process.terminal.stdout && is_wanted(process) }
    }

    /// For what goes to stderr.
    pub fn stderr(process: &Process<'_>) -> Self {
        Self { is_on: process.terminal.stderr && is_wanted(process) }
    }

    /// Puts the codes around `text`, if there is any and colour is on.
    pub fn paint(self, paint: Paint, text: &str) -> Cow<'_, str> {
        let code = match paint {
            Paint::Plain => return Cow::Borrowed(text),
            Paint::Dim => 2,
            Paint::Bold => 1,
            Paint::Red => 31,
            Paint::Green => 32,
        };
        if self.is_on && !text.is_empty() {
            Cow::Owned(format!("\u{1b}[{code}m{text}\u{1b}[0m"))
        } else {
            Cow::Borrowed(text)
        }
    }

    /// Less important than what is around it.
    pub fn dim(self, text: &str) -> Cow<'_, str> {
        self.paint(Paint::Dim, text)
    }

    /// More important than what is around it.
    pub fn bold(self, text: &str) -> Cow<'_, str> {
        self.paint(Paint::Bold, text)
    }

    /// Taken away.
    pub fn red(self, text: &str) -> Cow<'_, str> {
        self.paint(Paint::Red, text)
    }

    /// Added.
    pub fn green(self, text: &str) -> Cow<'_, str> {
        self.paint(Paint::Green, text)
    }
}

fn is_wanted(process: &Process<'_>) -> bool {
    process.var("NO_COLOR").is_none() && process.var("TERM").is_some_and(|term| term != "dumb")
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;
    use crate::process::Terminal;

    fn style(stdout: bool, env: &[(&str, &str)]) -> Style {
        Style::stdout(&Process {
            args: Vec::new(),
            cwd: None,
            env: env.iter().map(|(name, value)| (name.into(), value.into())).collect(),
            now: chrono::DateTime::UNIX_EPOCH,
            started: Instant::now(),
            stdin: &mut &b""[..],
            stdout: &mut Vec::new(),
            stderr: &mut Vec::new(),
            terminal: Terminal { stdout, ..Terminal::default() },
            aside: &(),
        })
    }

    #[test]
    fn colour_is_for_terminals_that_want_it() {
        assert_eq!(style(true, &[("TERM", "xterm"), ("NO_COLOR", "")]), Style::COLOUR);
        assert_eq!(style(false, &[("TERM", "xterm")]), Style::PLAIN);
        assert_eq!(style(true, &[("TERM", "dumb")]), Style::PLAIN);
        assert_eq!(style(true, &[]), Style::PLAIN);
        assert_eq!(style(true, &[("TERM", "xterm"), ("NO_COLOR", "1")]), Style::PLAIN);
    }

    #[test]
    fn nothing_is_painted_as_nothing() {
        assert_eq!(Style::COLOUR.red(""), "");
        assert_eq!(Style::COLOUR.red("x"), "\u{1b}[31mx\u{1b}[0m");
        assert_eq!(Style::PLAIN.red("x"), "x");
    }
}
