//! The command a hook runs: written for the shell or agent that runs it, and known again when it is read.
//!
//! A command is ours if it has the arguments we write and a program of ours: one that an install
//! wrote down, the one that is running now, or any that is called beforehand. The name alone proves
//! nothing, for a binary can be called anything.

use std::path::{Path, PathBuf};

use crate::error::{Error, Result};

/// The absolute path of a beforehand, fit to be written into settings files.
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

    /// The path.
    pub fn path(&self) -> &Path {
        Path::new(&self.0)
    }

    /// As one word of a POSIX shell.
    pub(super) fn shell_word(&self) -> String {
        shell_words::quote(&self.0).into_owned()
    }

    /// As the start of a PowerShell command.
    fn powershell_word(&self) -> String {
        if self.is_simple() {
            self.0.clone()
        } else {
            format!("& '{}'", self.0.replace('\'', "''"))
        }
    }

    /// As a string of JavaScript.
    pub(super) fn script_string(&self) -> String {
        serde_json::Value::from(self.0.as_str()).to_string()
    }

    /// Whether it is the same quoted or not, in whatever language.
    pub(super) fn is_simple(&self) -> bool {
        self.0.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"/._-+".contains(&byte))
    }

    /// The hook command for `agent`, as the value of `key`.
    pub(super) fn hook(&self, agent: &str, key: &str) -> String {
        let word = if key == "powershell" { self.powershell_word() } else { self.shell_word() };
        format!("{word} hook --agent {agent}")
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

    /// The same and one more.
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

    /// The program in a hook command of ours for `agent`; `None` if it is none. What stands before
    /// the program, as in `env A=B beforehand …`, is the user's own work, and so is the command then.
    pub(super) fn program_in(&self, command: &str, agent: &str) -> Option<PathBuf> {
        let wrote = |ours: &&ProgramPath| {
            ["command", "powershell"].iter().any(|key| ours.hook(agent, key) == command)
        };
        if let Some(ours) = self.0.iter().find(wrote) {
            return Some(ours.path().to_owned());
        }
        let words = shell_words::split(command).ok()?;
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        match words[..] {
            [program, "hook", "--agent", name] | ["&", program, "hook", "--agent", name]
                if name == agent && self.has(program) =>
            {
                Some(PathBuf::from(program))
            }
            _ => None,
        }
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_known_again_however_it_is_quoted() {
        for path in
            ["/usr/bin/beforehand", "/opt/it's my/$HOME `x`/beforehand", "/a\"b\\/beforehand-2"]
        {
            let program = ProgramPath::new(Path::new(path)).unwrap();
            let command = program.hook("codex", "command");
            let ours = OurPrograms::default();
            assert_eq!(ours.program_in(&command, "codex"), Some(PathBuf::from(path)), "{command}");
            assert_eq!(ours.program_in(&command, "cursor"), None);
        }
        let ours = OurPrograms::default();
        assert_eq!(ours.program_in("beforehand hook --agent x", "x"), Some("beforehand".into()));
        for other in
            ["A=1 beforehand hook --agent x", "mine hook --agent x", "beforehand list", "'"]
        {
            assert_eq!(ours.program_in(other, "x"), None, "{other}");
        }
    }

    #[test]
    fn a_program_of_any_name_is_known_by_its_path() {
        for path in ["/bin/bh-static", "/my own/beforehand_linux_amd64", "/it's/.wrapped"] {
            let program = ProgramPath::new(Path::new(path)).unwrap();
            let ours = OurPrograms::new(vec![program.clone()]);
            for key in ["command", "powershell"] {
                let command = program.hook("x", key);
                assert_eq!(ours.program_in(&command, "x"), Some(PathBuf::from(path)), "{command}");
                assert_eq!(ours.program_in(&command, "y"), None);
                assert_eq!(OurPrograms::default().program_in(&command, "x"), None);
            }
        }
    }

    #[test]
    fn a_path_that_cannot_be_written_down_is_refused() {
        for path in ["beforehand", "/a\nb/beforehand", "/usr/bin/beforehand (deleted)"] {
            assert!(ProgramPath::new(Path::new(path)).is_err(), "{path:?}");
        }
    }
}
