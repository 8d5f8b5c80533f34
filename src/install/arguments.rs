//! Arguments with which an agent was started, and which keep the hooks from running that are in its
//! files. Knows the arguments of each agent; looks for no process.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::{
    rows::InstallRow,
    switches::{Off, SIZE_MAX_BYTES},
};
use crate::{fs::read_small, process::OwnProcess};

/// One argument.
struct StartArgument {
    agent: &'static str,
    name: &'static str,
    when: KeepsOff,
}

/// The value with which it keeps hooks from running.
enum KeepsOff {
    /// It has none.
    Alone,
    /// With this one.
    Is(&'static str),
    /// Unless it is a list with the kind of settings our hooks are in.
    LeavesOut,
    /// It is JSON, or a file of that, which has this key and value.
    Sets(&'static str, bool),
}

const ARGUMENTS: &[StartArgument] = &[
    StartArgument { agent: "claude-code", name: "--bare", when: KeepsOff::Alone },
    StartArgument { agent: "claude-code", name: "--safe-mode", when: KeepsOff::Alone },
    StartArgument { agent: "claude-code", name: "--setting-sources", when: KeepsOff::LeavesOut },
    StartArgument {
        agent: "claude-code",
        name: "--settings",
        when: KeepsOff::Sets("disableAllHooks", true),
    },
    StartArgument { agent: "codex", name: "-c", when: KeepsOff::Is("features.hooks=false") },
    StartArgument { agent: "codex", name: "--config", when: KeepsOff::Is("features.hooks=false") },
    StartArgument { agent: "codex", name: "--disable", when: KeepsOff::Is("hooks") },
    StartArgument { agent: "opencode", name: "--pure", when: KeepsOff::Alone },
];

/// Programs that run an agent's script, which is then their first argument.
const INTERPRETERS: &[&str] = &["node", "bun", "deno"];

/// Whether a process is the agent of `row`.
fn is_agent(row: &InstallRow, process: &OwnProcess) -> bool {
    let program = process.args.first().and_then(|word| Path::new(word).file_name());
    let Some(program) = program else { return false };
    if row.programs.iter().any(|known| program == *known) {
        return true;
    }
    // Its directory is named after the package, as in `…/@anthropic-ai/claude-code/cli.js`.
    let Some(script) = process.args.get(1) else { return false };
    INTERPRETERS.iter().any(|known| program == *known)
        && Path::new(script)
            .iter()
            .any(|part| part == row.agent || row.programs.iter().any(|known| part == *known))
}

/// Whether an argument of this agent is known that keeps hooks from running.
pub fn can_be_off_by_arguments(row: &InstallRow) -> bool {
    ARGUMENTS.iter().any(|argument| argument.agent == row.agent)
}

/// Why a running agent does not run our hooks, by the arguments it was started with. `in_project`
/// says that a project's settings have them, `in_package` that a package of the agent's brings them.
pub fn off_by_arguments(
    row: &InstallRow,
    process: &OwnProcess,
    in_project: bool,
    in_package: bool,
) -> Option<Off> {
    let mut arguments = ARGUMENTS.iter().filter(|it| it.agent == row.agent);
    if !is_agent(row, process) {
        return None;
    }
    let source = if in_project && !in_package { "project" } else { "user" };
    let found = arguments.find(|argument| argument.keeps_off(process, source))?;
    let name = found.name;
    Some(Off {
        message: format!(
            "{} was started with `{}`, and runs no hook of beforehand's (process {})",
            row.title(),
            found.shown(),
            process.pid
        ),
        hint: format!("end it, and start it without `{name}`"),
    })
}

impl StartArgument {
    fn keeps_off(&self, process: &OwnProcess, source: &str) -> bool {
        let words: Vec<&str> =
            process.args.iter().skip(1).map(|word| word.to_str().unwrap_or_default()).collect();
        let mut values = words.iter().enumerate().filter_map(|(at, word)| {
            if *word == self.name {
                return Some(words.get(at + 1).copied().unwrap_or_default());
            }
            word.strip_prefix(self.name)?.strip_prefix('=')
        });
        match self.when {
            KeepsOff::Alone => values.next().is_some(),
            KeepsOff::Is(wanted) => values.any(|value| value == wanted),
            KeepsOff::LeavesOut => {
                values.any(|value| !value.split(',').any(|it| it.trim() == source))
            }
            KeepsOff::Sets(key, wanted) => values.any(|value| {
                let json = settings(value, process.dir.as_deref());
                json.is_some_and(|json| json.get(key) == Some(&Value::Bool(wanted)))
            }),
        }
    }

    /// The argument, with as much of its value as is known.
    fn shown(&self) -> String {
        match self.when {
            KeepsOff::Alone | KeepsOff::LeavesOut => self.name.to_owned(),
            KeepsOff::Is(value) => format!("{} {value}", self.name),
            KeepsOff::Sets(key, value) => format!("{} {{\"{key}\":{value}}}", self.name),
        }
    }
}

/// The settings that an argument has in it or names.
fn settings(value: &str, dir: Option<&Path>) -> Option<Value> {
    if value.trim_start().starts_with('{') {
        return serde_json::from_str(value).ok();
    }
    let path = dir.map_or_else(|| PathBuf::from(value), |dir| dir.join(value));
    let bytes = path.is_absolute().then(|| read_small(&path, SIZE_MAX_BYTES))?;
    serde_json::from_slice(&bytes.ok()??).ok()
}

#[cfg(test)]
mod tests {
    use super::{super::ROWS, *};

    fn off(line: &str, in_project: bool) -> Option<String> {
        let words = shell_words::split(line).unwrap();
        let args = words.into_iter().map(Into::into).collect();
        let process = OwnProcess { pid: 7, args, dir: None };
        let find = |row| off_by_arguments(row, &process, in_project, false);
        ROWS.iter().find_map(find).map(|off| off.message)
    }

    #[test]
    fn an_argument_that_keeps_hooks_off_is_known_wherever_it_stands() {
        for line in [
            "claude --bare",
            "/opt/bin/claude -p 'tidy up' --safe-mode",
            "node /lib/node_modules/@anthropic-ai/claude-code/cli.js --bare",
            "claude --setting-sources project",
            "claude --setting-sources=project,local",
            "claude --settings '{\"disableAllHooks\": true}'",
            "codex -c features.hooks=false exec x",
            "codex exec --disable hooks",
            "opencode --pure",
        ] {
            let said = off(line, false).unwrap_or_else(|| panic!("{line}"));
            assert!(said.ends_with("runs no hook of beforehand's (process 7)"), "{said}");
        }
    }

    #[test]
    fn another_program_or_value_says_nothing() {
        for line in [
            "claude",
            "claude -p --bares",
            "vim /home/u/claude-code/--bare --bare",
            "node /home/u/tool.js --bare",
            "claude --setting-sources user,project",
            "claude --settings '{\"disableAllHooks\": false}'",
            "claude --settings '{\"a\": {\"disableAllHooks\": true}}'",
            "claude --settings no-such-file",
            "codex -c features.hooks=true",
            "gemini --bare",
            "",
        ] {
            assert_eq!(off(line, false), None, "{line}");
        }
        assert_eq!(off("claude --setting-sources project", true), None);
        assert!(off("claude --setting-sources user", true).is_some());
    }
}
