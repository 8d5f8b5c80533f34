//! Block's Goose. Second-hand notes on 1.46; not run.
//!
//! How it is denied is unverified: exit code 2 with the reason on standard error, as its plugins
//! are said to do. It has further events for reads, edits and commands, with payloads that we have not
//! seen; `PreToolUse` is said to cover them.

use serde::Deserialize;

use super::input::Input;
use super::payload::{self, AgentPayload, Heard, hear};
use super::wire::Text;
use super::{BadPayload, Dialect, EventKind, HookAnswer, reply};
use crate::model::{Agent, Intent, Language};

/// The dialect of Goose.
pub(super) const DIALECT: Dialect = Dialect {
    agent: Agent::Goose,
    name: "goose",
    title: "Goose",
    asks: false,
    tells_ends: true,
    keeps_shell: true,
    hear: hear::<GoosePayload>,
    intent,
    answer: |kind, decision| reply::by_exit_code(kind, decision, HookAnswer::neutral()),
};

/// Maps a tool to what it wants. Others come from extensions, which are MCP servers without a
/// common prefix.
fn intent(tool: &str, input: &Input) -> Intent {
    match tool.strip_prefix("developer__").unwrap_or(tool) {
        "write" => input.write(&["path"]),
        "edit" => input.edit(&["path"]),
        "shell" => input.run(&["command"], Language::Shell),
        _ => Intent::Unknown,
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct GoosePayload {
    event: Text,
    session_id: Text,
    working_dir: Text,
    prompt: Text,
    tool_name: Text,
    tool_input: Input,
}

impl AgentPayload for GoosePayload {
    fn kind(&self) -> Result<EventKind, BadPayload> {
        payload::kind(&self.event, &self.tool_name)
    }

    fn heard(self) -> Heard {
        Heard {
            session: self.session_id,
            cwd: self.working_dir,
            prompt: self.prompt,
            tool: self.tool_name,
            input: self.tool_input,
            ..Heard::default()
        }
    }
}
