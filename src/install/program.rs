//! The command a hook runs: written for whoever runs it, and known again when it is read.

use std::path::{Path, PathBuf};

use crate::error::{Error, Result};

/// The absolute path of a turnback, fit to be written into settings files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program(String);

impl Program {
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
                "put turnback in a directory with a plain name, then run this again",
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

/// The program in a hook command of ours for `agent`; `None` if it is none. What stands before
/// the program, as in `env A=B turnback …`, is somebody's own work, and so is the command then.
pub(super) fn program_in(command: &str, agent: &str) -> Option<PathBuf> {
    let words = shell_words::split(command).ok()?;
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        [program, "hook", "--agent", name] | ["&", program, "hook", "--agent", name]
            if name == agent && is_turnback(program) =>
        {
            Some(PathBuf::from(program))
        }
        _ => None,
    }
}

/// Whether this is a name turnback goes by.
pub(super) fn is_turnback(program: &str) -> bool {
    let name = Path::new(program).file_name().and_then(|name| name.to_str());
    name.is_some_and(|name| name == "turnback" || name.starts_with("turnback-"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_known_again_however_it_is_quoted() {
        for path in ["/usr/bin/turnback", "/opt/it's my/$HOME `x`/turnback", "/a\"b\\/turnback-2"] {
            let program = Program::new(Path::new(path)).unwrap();
            let command = program.hook("codex", "command");
            assert_eq!(program_in(&command, "codex"), Some(PathBuf::from(path)), "{command}");
            assert_eq!(program_in(&command, "cursor"), None);
        }
        assert_eq!(program_in("turnback hook --agent x", "x"), Some("turnback".into()));
        for other in ["A=1 turnback hook --agent x", "mine hook --agent x", "turnback list", "'"] {
            assert_eq!(program_in(other, "x"), None, "{other}");
        }
    }

    #[test]
    fn a_path_that_cannot_be_written_down_is_refused() {
        for path in ["turnback", "/a\nb/turnback", "/usr/bin/turnback (deleted)"] {
            assert!(Program::new(Path::new(path)).is_err(), "{path:?}");
        }
    }
}
