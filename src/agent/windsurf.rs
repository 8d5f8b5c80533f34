//! Windsurf's Cascade. From its documentation and second-hand notes; not run.
//!
//! Standard output is not read: exit code 2 denies, with the reason on standard error, and nothing
//! can be asked or shown. Strings may contain raw control characters (second-hand). There are no
//! call ids, and only commands have a `cwd`.

use serde::Deserialize;

use super::input::Input;
use super::payload::{AgentPayload, Heard, hear};
use super::wire::Text;
use super::{BadPayload, Dialect, EventKind, HookAnswer, mcp, reply};
use crate::model::{Agent, Intent, Language};

/// The dialect of Windsurf.
pub(super) const DIALECT: Dialect = Dialect {
    agent: Agent::Windsurf,
    name: "windsurf",
    title: "Windsurf",
    asks: false,
    tells_ends: true,
    keeps_shell: true,
    hear: hear::<WindsurfPayload>,
    intent,
    answer: |kind, decision| reply::by_exit_code(kind, decision, HookAnswer::nothing()),
};

/// Maps a tool, named after its hook, to what it wants.
fn intent(tool: &str, input: &Input) -> Intent {
    match tool {
        "write_code" => input.edit(&["file_path"]),
        "run_command" => input.run(&["command_line"], Language::Shell),
        "read_code" => Intent::Read,
        _ => tool.strip_prefix("mcp:").map_or(Intent::Unknown, |name| mcp::intent(name, input)),
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct WindsurfPayload {
    agent_action_name: Text,
    trajectory_id: Text,
    execution_id: Text,
    tool_info: Option<Info>,
}

/// Everything any action says.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Info {
    file_path: Text,
    command_line: Text,
    cwd: Text,
    user_prompt: Text,
    mcp_tool_name: Text,
    mcp_tool_arguments: Input,
}

impl AgentPayload for WindsurfPayload {
    fn kind(&self) -> Result<EventKind, BadPayload> {
        match self.agent_action_name.as_str() {
            "" if self.tool_info.is_some() => Ok(EventKind::ToolCall),
            "" => Err(BadPayload::missing("agent_action_name")),
            "pre_user_prompt" => Ok(EventKind::TurnBegins),
            "post_cascade_response" => Ok(EventKind::TurnEnds),
            name if name.starts_with("pre_") => Ok(EventKind::ToolCall),
            name => Ok(match name.strip_prefix("post_").unwrap_or_default() {
                "write_code" | "run_command" | "mcp_tool_use" | "read_code" => EventKind::ToolDone,
                _ => EventKind::Other,
            }),
        }
    }

    fn heard(self) -> Heard {
        let info = self.tool_info.unwrap_or_default();
        let action = self.agent_action_name.as_str();
        let action = action.split_once('_').map_or(action, |(_, action)| action);
        let (tool, input) = match action {
            "mcp_tool_use" => {
                (format!("mcp:{}", info.mcp_tool_name.as_str()), info.mcp_tool_arguments)
            }
            "run_command" => (action.to_owned(), Input::with("command_line", info.command_line)),
            _ => (action.to_owned(), Input::with("file_path", info.file_path)),
        };
        Heard {
            session: self.trajectory_id,
            turn: self.execution_id,
            cwd: info.cwd,
            prompt: info.user_prompt,
            tool: Text::Is(tool),
            input,
            ..Heard::default()
        }
    }
}
