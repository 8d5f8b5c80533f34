//! The line by which an agent runs our hook: writes it for the shell or agent that runs it, and recognises
//! it in settings.
//!
//! A line is harmless without the program: it ends with 0 and prints nothing, which every agent takes
//! for no opinion. With the program, the shell becomes the program: no process is added, and the exit
//! code is the program's.

use std::path::PathBuf;

use super::program::{OurPrograms, ProgramPath};
use crate::agent::{LineRunner, by_name};

/// The program that runs a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Runner {
    /// A POSIX shell; `zsh` and `fish` run the same words.
    Shell,
    /// No shell: the agent splits the line into words, as a shell would, and starts the first one.
    Words,
    PowerShell,
}

impl Runner {
    const ALL: [Self; 3] = [Self::Shell, Self::Words, Self::PowerShell];

    fn of(agent: &str, key: &str) -> Self {
        if key == "powershell" {
            Self::PowerShell
        } else {
            match by_name(agent).map(|dialect| dialect.files.runner) {
                Some(LineRunner::Words) => Self::Words,
                Some(LineRunner::Shell) | None => Self::Shell,
            }
        }
    }

    fn line(self, program: &ProgramPath, agent: &str) -> String {
        match self {
            Self::Shell => {
                let word = program.shell_word();
                let is_missing = if program.is_on_path() {
                    format!("! command -v {word} >/dev/null")
                } else {
                    format!("[ ! -x {word} ]")
                };
                format!("{is_missing} || exec {word} hook --agent {agent}")
            }
            Self::Words => {
                // Without a `$`, which Grok would look up when it loads Cursor's file.
                format!("/bin/sh -c {}", shell_words::quote(&Self::Shell.line(program, agent)))
            }
            Self::PowerShell => {
                let word = program.powershell_string();
                let is_there = if program.is_on_path() {
                    format!("Get-Command {word} -ErrorAction Ignore")
                } else {
                    format!("Test-Path -LiteralPath {word} -PathType Leaf")
                };
                format!("if ({is_there}) {{ & {word} hook --agent {agent}; exit $LASTEXITCODE }}")
            }
        }
    }
}

/// Whether an agent runs its lines in a POSIX shell.
pub(super) fn is_run_by_shell(agent: &str) -> bool {
    Runner::of(agent, "command") == Runner::Shell
}

/// The line for `agent`, as the value of `key`.
pub(super) fn line(program: &ProgramPath, agent: &str, key: &str) -> String {
    Runner::of(agent, key).line(program, agent)
}

/// The text of a script that an agent runs.
pub(super) fn script(program: &ProgramPath, agent: &str) -> String {
    format!("#!/bin/sh\n{}\n", Runner::Shell.line(program, agent))
}

/// The program in a line of ours for `agent`, of this or an earlier version; `None` if the line is not ours.
///
/// A line to which the user has added something, as in `env A=B beforehand …`, is the user's own.
pub(super) fn program_in(line: &str, agent: &str, ours: &OurPrograms) -> Option<PathBuf> {
    if let Some(known) = ours.iter().find(|program| forms(program, agent).any(|form| form == line))
    {
        return Some(known.path().to_owned());
    }
    let words = shell_words::split(line).ok()?;
    let inner = match &words[..] {
        [shell, flag, script] if shell == "/bin/sh" && flag == "-c" => {
            shell_words::split(script).ok()?
        }
        _ => Vec::new(),
    };
    let named = words.iter().chain(&inner).filter(|word| ours.has(word));
    let mut programs = named.map(|word| ProgramPath::told(word));
    let program = programs.find(|program| {
        forms(program, agent).any(|form| shell_words::split(&form).is_ok_and(|it| it == words))
    })?;
    Some(program.path().to_owned())
}

/// Every form of the line, in this and in earlier versions.
fn forms(program: &ProgramPath, agent: &str) -> impl Iterator<Item = String> {
    let now = Runner::ALL.iter().map(move |runner| runner.line(program, agent));
    let bare = format!("{} hook --agent {agent}", program.shell_word());
    let called = format!("& {} hook --agent {agent}", program.powershell_string());
    now.chain([bare, called])
}

/// The program in a script of ours, of this or an earlier version.
pub(super) fn program_in_script(text: &str, agent: &str, ours: &OurPrograms) -> Option<PathBuf> {
    let line = text.strip_prefix("#!/bin/sh\n")?.strip_suffix('\n')?;
    if line.contains('\n') {
        return None;
    }
    program_in(line.strip_prefix("exec ").unwrap_or(line), agent, ours)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn at(path: &str) -> ProgramPath {
        ProgramPath::new(Path::new(path)).unwrap()
    }

    #[test]
    fn a_line_is_as_its_runner_needs_it() {
        let (plain, odd) = (at("/opt/beforehand"), at("/opt/it's my/beforehand"));
        let path = ProgramPath::on_path();
        for (program, agent, key, wanted) in [
            (
                &plain,
                "codex",
                "command",
                "[ ! -x /opt/beforehand ] || exec /opt/beforehand hook --agent codex",
            ),
            (
                &odd,
                "codex",
                "bash",
                r"[ ! -x '/opt/it'\''s my/beforehand' ] || exec '/opt/it'\''s my/beforehand' hook --agent codex",
            ),
            (
                &path,
                "codex",
                "command",
                "! command -v beforehand >/dev/null || exec beforehand hook --agent codex",
            ),
            (
                &plain,
                "hermes",
                "command",
                "/bin/sh -c '[ ! -x /opt/beforehand ] || exec /opt/beforehand hook --agent hermes'",
            ),
            (
                &path,
                "cursor",
                "command",
                "/bin/sh -c '! command -v beforehand >/dev/null || exec beforehand hook --agent cursor'",
            ),
            (
                &odd,
                "copilot-cli",
                "powershell",
                "if (Test-Path -LiteralPath '/opt/it''s my/beforehand' -PathType Leaf) \
                 { & '/opt/it''s my/beforehand' hook --agent copilot-cli; exit $LASTEXITCODE }",
            ),
            (
                &path,
                "copilot-cli",
                "powershell",
                "if (Get-Command 'beforehand' -ErrorAction Ignore) \
                 { & 'beforehand' hook --agent copilot-cli; exit $LASTEXITCODE }",
            ),
        ] {
            assert_eq!(line(program, agent, key), wanted);
        }
    }

    #[test]
    fn a_line_is_known_again_however_it_is_quoted() {
        let ours = OurPrograms::default();
        for path in
            ["/usr/bin/beforehand", "/opt/it's my/$HOME `x`/beforehand", "/a\"b\\/beforehand-2"]
        {
            for agent in ["codex", "hermes"] {
                let line = line(&at(path), agent, "command");
                assert_eq!(program_in(&line, agent, &ours), Some(path.into()), "{line}");
                assert_eq!(program_in(&line, "x", &ours), None, "{line}");
                for other in
                    [format!("A=1 {line}"), format!("{line} | tee x"), format!("x; {line}")]
                {
                    assert_eq!(program_in(&other, agent, &ours), None, "{other}");
                }
            }
        }
        let path = line(&ProgramPath::on_path(), "x", "command");
        let requoted = "[ ! -x '/b/beforehand' ]  || exec \"/b/beforehand\" hook --agent x";
        for (line, program) in [
            ("beforehand hook --agent x", "beforehand"),
            ("'/my own/beforehand' hook --agent x", "/my own/beforehand"),
            ("& '/my own/beforehand' hook --agent x", "/my own/beforehand"),
            (&path, "beforehand"),
            (requoted, "/b/beforehand"),
        ] {
            assert_eq!(program_in(line, "x", &ours), Some(program.into()), "{line}");
        }
        for other in [
            "A=1 beforehand hook --agent x",
            "mine hook --agent x",
            "beforehand list",
            "'",
            "",
            "[ ! -x /a/beforehand ] || exec /b/beforehand hook --agent x",
        ] {
            assert_eq!(program_in(other, "x", &ours), None, "{other}");
        }
    }

    #[test]
    fn a_program_of_any_name_is_known_by_its_path() {
        for path in ["/bin/bh-static", "/my own/beforehand_linux_amd64", "/it's/.wrapped"] {
            let program = at(path);
            let ours = OurPrograms::new(vec![program.clone()]);
            for line in forms(&program, "x") {
                assert_eq!(program_in(&line, "x", &ours), Some(path.into()), "{line}");
                assert_eq!(program_in(&line, "y", &ours), None);
                assert_eq!(program_in(&line, "x", &OurPrograms::default()), None);
            }
        }
    }

    #[test]
    fn a_script_is_known_again() {
        let ours = OurPrograms::default();
        let new = script(&at("/my own/beforehand"), "cline");
        for text in [&new, "#!/bin/sh\nexec '/my own/beforehand' hook --agent cline\n"] {
            assert_eq!(program_in_script(text, "cline", &ours), Some("/my own/beforehand".into()));
            for other in [text.replace("#!/bin/sh", "#!/bin/bash"), format!("{text}echo\n")] {
                assert_eq!(program_in_script(&other, "cline", &ours), None, "{other}");
            }
        }
    }
}
