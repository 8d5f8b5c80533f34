//! The programs that are beforehand, and the files of ours with a place for one.
//!
//! A program is ours if an install wrote it down, if it is the one that is running now, or if it is
//! called beforehand. The name alone proves nothing, for a binary can be called anything.

use std::path::Path;

use crate::error::{Error, Result};

/// Where a beforehand is, fit to be written into settings files: its absolute path, or its name, to
/// be found on the `PATH`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramPath(String);

impl ProgramPath {
    /// Takes a path.
    ///
    /// # Errors
    ///
    /// Refuses one that is relative, or has something in it that no settings file can hold.
    pub fn new(path: &Path) -> Result<Self> {
        let text = path.to_str().filter(|text| text.chars().all(crate::error::is_plain));
        match text {
            Some(text) if path.is_absolute() && !text.ends_with(" (deleted)") => {
                Ok(Self(text.to_owned()))
            }
            _ => Err(Error::other(
                format!(
                    "`{}` cannot be written into a settings file",
                    crate::ui::escape_path(path)
                ),
                "put beforehand in a directory with a plain name, then run this again",
            )),
        }
    }

    /// Any program called beforehand on the `PATH`, for files that go to other machines.
    pub fn on_path() -> Self {
        Self("beforehand".to_owned())
    }

    /// A program as it stands in a line that was read.
    pub(super) fn told(word: &str) -> Self {
        Self(word.to_owned())
    }

    /// True for a name, which is looked up on the `PATH`.
    pub fn is_on_path(&self) -> bool {
        !self.0.contains('/')
    }

    /// The path, or the name.
    pub fn path(&self) -> &Path {
        Path::new(&self.0)
    }

    /// As one word of a POSIX shell.
    pub(super) fn shell_word(&self) -> String {
        shell_words::quote(&self.0).into_owned()
    }

    /// As a string of PowerShell.
    pub(super) fn powershell_string(&self) -> String {
        format!("'{}'", self.0.replace('\'', "''"))
    }

    /// As a string of JavaScript.
    pub(super) fn script_string(&self) -> String {
        serde_json::Value::from(self.0.as_str()).to_string()
    }

    /// Whether it is the same quoted or not, in whatever language.
    pub(super) fn is_simple(&self) -> bool {
        self.0.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"/._-+".contains(&byte))
    }
}

/// The programs that are beforehand, whatever they are called.
#[derive(Clone, Debug, Default)]
pub struct OurPrograms(Vec<ProgramPath>);

impl OurPrograms {
    /// These programs, and those that are called beforehand.
    pub(super) fn new(programs: Vec<ProgramPath>) -> Self {
        Self(programs)
    }

    /// These programs and one more.
    pub(super) fn and(&self, program: &ProgramPath) -> Self {
        Self(self.0.iter().chain([program]).cloned().collect())
    }

    /// Whether this is a program of ours.
    pub(super) fn has(&self, program: &str) -> bool {
        let name = Path::new(program).file_name().and_then(|name| name.to_str());
        name.is_some_and(|name| name == "beforehand" || name.starts_with("beforehand-"))
            || self.0.iter().any(|ours| ours.0 == program)
    }

    /// Whether a text that cannot be taken apart may have something of ours in it.
    pub(super) fn may_be_in(&self, text: &str) -> bool {
        text.contains("beforehand") || self.0.iter().any(|ours| text.contains(&ours.0))
    }

    /// Those that are known by their path.
    pub(super) fn iter(&self) -> impl Iterator<Item = &ProgramPath> {
        self.0.iter()
    }
}

/// How the program is written in such a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Quoting {
    /// As a string of JavaScript.
    Script,
    /// As it is; only a simple path can be.
    Bare,
}

/// A file of `hooks/` with places for the program.
#[derive(Clone, Copy, Debug)]
pub(super) struct Template<'a> {
    pub(super) text: &'a str,
    /// What stands for the program and what follows it.
    pub(super) hole: (&'a str, &'a str),
    pub(super) quoting: Quoting,
}

impl Template<'_> {
    /// The file with the program in it; `None` if its path cannot be written there.
    pub(super) fn filled(&self, program: &ProgramPath) -> Option<String> {
        let word = match self.quoting {
            Quoting::Script => program.script_string(),
            Quoting::Bare if program.is_simple() => program.path().to_string_lossy().into_owned(),
            Quoting::Bare => return None,
        };
        Some(self.with(&word))
    }

    fn with(&self, word: &str) -> String {
        let (program, rest) = self.hole;
        self.text.replace(&format!("{program}{rest}"), &format!("{word}{rest}"))
    }

    /// The program in a file that is ours.
    pub(super) fn program_in(&self, text: &str, ours: &OurPrograms) -> Option<String> {
        let (program, rest) = self.hole;
        let (before, _) = self.text.split_once(&format!("{program}{rest}"))?;
        let (word, _) = text.strip_prefix(before)?.split_once(rest)?;
        if self.with(word) != text {
            return None;
        }
        let path = match self.quoting {
            Quoting::Script => serde_json::from_str(word).ok()?,
            Quoting::Bare => word.to_owned(),
        };
        ours.has(&path).then_some(path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_that_cannot_be_written_down_is_refused() {
        for path in ["beforehand", "/a\nb/beforehand", "/usr/bin/beforehand (deleted)"] {
            assert!(ProgramPath::new(Path::new(path)).is_err(), "{path:?}");
        }
    }
}
