//! The one error type, and the hints that go with it.

use std::{
    fmt, io,
    path::{Path, PathBuf},
};

/// `Result` with our [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a command could not be carried out.
///
/// Displays as a lowercase fragment without a final period. [`Error::hint`] says what to do about
/// it. Names from outside are escaped when they are put in.
#[derive(Debug)]
pub enum Error {
    /// The system refused an operation on a path.
    Io {
        /// What we were doing, as in "cannot {action} `{path}`".
        action: &'static str,
        /// The path it was about.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// No checkpoint answers to the given name.
    NoSuchCheckpoint {
        /// What the user typed.
        given: String,
    },
    /// A file was written by a newer beforehand.
    FormatTooNew {
        /// The file, ref or object.
        what: String,
        /// Its version.
        found: u32,
        /// The newest version we can read.
        known: u32,
    },
    /// Something stored is not what it should be.
    Damaged {
        /// The file, ref or object.
        what: String,
        /// What is wrong with it.
        why: String,
    },
    /// The repository does not let us work with it.
    Repository {
        /// The git directory.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// Another beforehand holds a lock for too long.
    Busy {
        /// The lock.
        path: PathBuf,
        /// The process that holds it, if the system tells.
        holder: Option<u32>,
    },
    /// A setting cannot be understood.
    Setting {
        /// Where it was set.
        place: String,
        /// What is wrong, with the key in it.
        why: String,
        /// What may have been meant.
        hint: Option<String>,
    },
    /// A restore cannot be done without losing something, so nothing was done.
    CannotHold {
        /// The path that cannot be held, escaped.
        path: String,
        /// Why not.
        why: String,
    },
    /// The command line can mean nothing, whatever there is. All other errors are of what there is.
    Usage {
        /// What it says that means nothing.
        message: String,
        /// What it could say.
        hint: Option<String>,
    },
    /// Anything else that has one sentence and one piece of advice.
    Other {
        /// What could not be done, and why.
        message: String,
        /// What to do next.
        hint: Option<String>,
    },
}

impl Error {
    /// Names what was being done to `path` when the system refused; made for `map_err`.
    pub fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { action, path, source }
    }

    /// Makes an error of one sentence, with advice.
    pub fn other(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::Other { message: message.into(), hint: Some(hint.into()) }
    }

    /// Makes an error about a command line that can mean nothing, with advice.
    pub fn usage(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::Usage { message: message.into(), hint: Some(hint.into()) }
    }

    /// Makes the same of what is wrong with a value on the command line.
    #[must_use]
    pub fn into_usage(self) -> Self {
        Self::Usage { message: self.to_string(), hint: self.hint().map(str::to_owned) }
    }

    /// Makes an error about something stored that is not what it should be.
    pub fn damaged(what: impl Into<String>, why: impl Into<String>) -> Self {
        Self::Damaged { what: what.into(), why: why.into() }
    }

    /// Whether it is only that something is not there.
    pub fn is_missing(&self) -> bool {
        matches!(self, Self::Io { source, .. } if source.kind() == io::ErrorKind::NotFound)
    }

    /// What the user can do next, if we know.
    pub fn hint(&self) -> Option<&str> {
        match self {
            Self::Io { source, .. } => match source.kind() {
                io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                    Some("`beforehand prune` frees space; your files were not changed")
                }
                io::ErrorKind::PermissionDenied => Some(
                    "`chmod -R u+rwX DIRECTORY` restores your access; then run this \
                     again",
                ),
                _ => None,
            },
            Self::NoSuchCheckpoint { .. } => Some(
                "run `beforehand list` to see the checkpoints: a number, an id, the message of \
                 `create -m`, and a time as in 12:00 or 2h name one",
            ),
            Self::FormatTooNew { .. } => Some("update beforehand, then run this again"),
            Self::Damaged { .. } => Some("run `beforehand check` to see what can be restored"),
            Self::Repository { .. } => Some("until then, checkpoints go to beforehand's own store"),
            Self::Busy { .. } => Some("wait for the other process or end it, then run this again"),
            Self::CannotHold { .. } => {
                Some("nothing was changed; name other paths after `--` to leave this one out")
            }
            Self::Setting { hint, .. } | Self::Usage { hint, .. } | Self::Other { hint, .. } => {
                hint.as_deref()
            }
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io { action, path, .. } => {
                write!(f, "cannot {action} `{}`", escaped(path))
            }
            Self::NoSuchCheckpoint { given } => write!(f, "no checkpoint `{}`", text(given)),
            Self::FormatTooNew { what, found, known } => {
                write!(f, "`{what}` has format {found}, and this beforehand reads up to {known}")
            }
            Self::Damaged { what, why } => write!(f, "`{what}` is damaged: {why}"),
            Self::Repository { path, why } => {
                write!(f, "cannot use the repository `{}`: {why}", escaped(path))
            }
            Self::Busy { path, holder: Some(pid) } => {
                write!(f, "another process ({pid}) has locked `{}`", escaped(path))
            }
            Self::Busy { path, holder: None } => {
                write!(f, "another beforehand process has locked `{}`", escaped(path))
            }
            Self::Setting { place, why, .. } => write!(f, "{place}: {why}"),
            Self::CannotHold { path, why } => write!(f, "cannot hold `{path}` first: {why}"),
            Self::Usage { message, .. } | Self::Other { message, .. } => f.write_str(message),
        }
    }
}

/// A path made safe to print: control characters and the like as escapes.
fn escaped(path: &Path) -> String {
    text(&path.to_string_lossy())
}

/// The same for text. `ui` has the full story; errors must not depend on it.
fn text(text: &str) -> String {
    text.chars()
        .map(|c| if is_plain(c) { c.to_string() } else { c.escape_default().to_string() })
        .collect()
}

/// Whether a character shows itself and nothing else: no control, no reordering, no joining.
pub fn is_plain(c: char) -> bool {
    !c.is_control()
        && !matches!(c,
            '\u{00ad}' | '\u{061c}' | '\u{180e}' | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e007f}')
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io { source, .. } => Some(source),
            Self::NoSuchCheckpoint { .. }
            | Self::FormatTooNew { .. }
            | Self::Damaged { .. }
            | Self::Repository { .. }
            | Self::Busy { .. }
            | Self::Setting { .. }
            | Self::CannotHold { .. }
            | Self::Usage { .. }
            | Self::Other { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hostile_name_cannot_draw_on_the_terminal() {
        let error = Error::NoSuchCheckpoint { given: "\u{1b}[2J\u{202e}x".to_owned() };
        assert_eq!(error.to_string(), "no checkpoint `\\u{1b}[2J\\u{202e}x`");
    }
}
