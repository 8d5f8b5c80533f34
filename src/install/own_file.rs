//! Files that belong to us alone: scripts, a plugin, slash commands. A file is ours if it is what we
//! would write, with one of our programs in it. Pure.

use super::program::{OurPrograms, ProgramPath};

/// How the program is written in such a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Quoting {
    /// As a word of a shell.
    Shell,
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
            Quoting::Shell => program.shell_word(),
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
            Quoting::Shell => {
                shell_words::split(word).ok().filter(|words| words.len() == 1)?.remove(0)
            }
            Quoting::Script => serde_json::from_str(word).ok()?,
            Quoting::Bare => word.to_owned(),
        };
        ours.has(&path).then_some(path)
    }
}
