//! The call that `beforehand doctor --prove` plays: how an agent announces that it is about to run a
//! command.

use std::path::Path;

use serde_json::Value;

use super::{Dialect, ToolKind};
use crate::model::Language;

/// How an agent announces a command, as recorded or documented in `fixtures/payloads`.
#[derive(Clone, Copy, Debug)]
pub struct TrialCall {
    /// The event under which the hook is registered; for Cline, the name of the script. A plugin has
    /// none.
    pub event: &'static str,
    /// The payload. `DIR` stands for the project and `COMMAND` for the command line, `TOOL` and
    /// `ARGUMENT` for the names of the row's first tool that runs command lines.
    pub(super) payload: &'static str,
    /// The variable in which the agent names the project, if its payload does not.
    pub dir_variable: Option<&'static str>,
    /// For a plugin: JavaScript that calls the hook of the module `plugin` for the command `command`
    /// in the directory `dir`.
    pub plugin: Option<&'static str>,
}

/// The call in Claude Code's protocol.
pub(super) const CLAUDE: TrialCall = TrialCall {
    event: "PreToolUse",
    payload: r#"{"session_id":"doctor","cwd":"DIR","hook_event_name":"PreToolUse",
        "tool_name":"TOOL","tool_input":{"ARGUMENT":"COMMAND"}}"#,
    dir_variable: None,
    plugin: None,
};

/// A call with a payload of the agent's own.
pub(super) const fn trial(event: &'static str, payload: &'static str) -> TrialCall {
    TrialCall { event, payload, ..CLAUDE }
}

/// A call that a plugin of ours announces, and the JavaScript that has it do so.
pub(super) const fn trial_of_plugin(payload: &'static str, plugin: &'static str) -> TrialCall {
    TrialCall { event: "", payload, plugin: Some(plugin), ..CLAUDE }
}

impl Dialect {
    /// The payload with which the agent announces a command in a project.
    pub fn trial_payload(&self, dir: &Path, command: &str) -> String {
        let dir = Value::from(dir.to_string_lossy()).to_string();
        let mut text = self.trial.payload.replace("\"DIR\"", &dir);
        if let Some((tool, argument)) = self.first_shell_tool() {
            text = text.replace("TOOL", tool).replace("ARGUMENT", argument);
        }
        text.replace("COMMAND", command)
    }

    /// The first tool of the row that runs command lines, and its argument.
    fn first_shell_tool(&self) -> Option<(&'static str, &'static str)> {
        self.tools.iter().copied().flatten().find_map(|tool| match tool.kind {
            ToolKind::Run(arguments, Language::Shell) => Some((tool.name, *arguments.first()?)),
            ToolKind::Run(..) | ToolKind::Write(_) | ToolKind::Edit(_) | ToolKind::Patch(_) => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        agent::{DIALECTS, Markers},
        model::{Event, Intent},
    };

    #[test]
    fn every_agent_announces_the_command_in_its_own_words() {
        for dialect in DIALECTS {
            let text = dialect.trial_payload(Path::new("/p/\"q\""), "rm -rf a");
            let Event::ToolCall(call) =
                dialect.parse(text.as_bytes(), &Markers::default()).unwrap()
            else {
                panic!("{}: {text}", dialect.name)
            };
            let command = "rm -rf a".to_owned();
            let wanted = Intent::Run { command, language: Language::Shell };
            assert_eq!(call.intent, wanted, "{}", dialect.name);
        }
    }

    /// A trial must not prove what the agent never sends.
    #[test]
    fn a_trial_has_no_field_that_the_agent_does_not_send() {
        let payloads = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/payloads");
        for dialect in DIALECTS {
            let trial = dialect.trial_payload(Path::new("/p"), "rm -rf a");
            let trial: Value = serde_json::from_str(&trial).unwrap();
            let sent = |path: &Path| -> Option<Value> {
                serde_json::from_slice(&std::fs::read(path).ok()?).ok()
            };
            let mut recorded = payloads
                .join(dialect.name)
                .read_dir()
                .unwrap()
                .filter_map(|entry| sent(&entry.unwrap().path()));
            let fields = trial.as_object().unwrap().keys();
            let has_all = |recorded: Value| fields.clone().all(|name| recorded.get(name).is_some());
            assert!(recorded.any(has_all), "{}: {trial}", dialect.name);
        }
    }
}
