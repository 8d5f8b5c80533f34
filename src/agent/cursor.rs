//! Cursor: the editor's agent and `cursor-agent`. From its documentation and second-hand
//! captures; not run.
//!
//! Two hooks can announce one command (`preToolUse` and `beforeShellExecution`). "Ask" is accepted
//! and not enforced before a tool, so it is not used. Whether `{}` is no opinion is unverified;
//! "allow" might skip the user's prompt. Headless runs fire neither the prompt nor the stop hook.

use serde::Deserialize;
use serde_json::json;

use super::input::Input;
use super::payload::{self, AgentPayload, Heard, hear};
use super::wire::{Text, Texts};
use super::{BadPayload, Dialect, EventKind, mcp, reply};
use crate::model::{Agent, Intent, Language};

/// The dialect of Cursor.
pub(super) const DIALECT: Dialect = Dialect {
    agent: Agent::Cursor,
    name: "cursor",
    title: "Cursor",
    asks: false,
    tells_ends: true,
    keeps_shell: true,
    hear: hear::<CursorPayload>,
    intent,
    answer: |kind, decision| {
        reply::denial(kind, decision, |reason| {
            json!({
                "permission": "deny",
                "user_message": reason,
                "agent_message": reason,
            })
        })
    },
};

/// Tools that leave files alone.
const READS: &[&str] = &["Read", "Grep", "Glob", "LS", "WebSearch", "WebFetch", "TodoWrite"];

/// Maps a tool to what it wants. Hooks name paths `file_path`, transcripts `path`.
fn intent(tool: &str, input: &Input) -> Intent {
    match tool {
        "Write" => input.write(&["file_path", "path"]),
        "StrReplace" | "Edit" | "MultiEdit" | "Delete" => input.edit(&["file_path", "path"]),
        "ApplyPatch" => input.patch(&["patch", "input"]),
        "Shell" => input.run(&["command"], Language::Shell),
        _ if READS.contains(&tool) => Intent::Read,
        _ => tool.strip_prefix("MCP:").map_or(Intent::Unknown, |name| mcp::intent(name, input)),
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct CursorPayload {
    hook_event_name: Text,
    conversation_id: Text,
    generation_id: Text,
    workspace_roots: Texts,
    transcript_path: Text,
    cwd: Text,
    prompt: Text,
    tool_name: Text,
    tool_use_id: Text,
    tool_input: Input,
    command: Text,
    file_path: Text,
}

impl AgentPayload for CursorPayload {
    fn kind(&self) -> Result<EventKind, BadPayload> {
        Ok(match self.hook_event_name.as_str() {
            "beforeShellExecution" | "beforeMCPExecution" | "beforeReadFile" => EventKind::ToolCall,
            "afterShellExecution" | "afterMCPExecution" | "afterFileEdit" => EventKind::ToolDone,
            "beforeSubmitPrompt" => EventKind::TurnBegins,
            _ => payload::kind(&self.hook_event_name, &self.tool_name)?,
        })
    }

    fn heard(self) -> Heard {
        let mut roots = self.workspace_roots.0.into_iter();
        let cwd = match self.cwd {
            Text::Absent => roots.next().unwrap_or_default(),
            cwd => cwd,
        };
        let (tool, input) = match self.hook_event_name.as_str() {
            "beforeShellExecution" | "afterShellExecution" => {
                (Text::Is("Shell".to_owned()), Input::with("command", self.command))
            }
            "afterFileEdit" => {
                (Text::Is("Edit".to_owned()), Input::with("file_path", self.file_path))
            }
            "beforeReadFile" => (Text::Is("Read".to_owned()), Input::default()),
            "beforeMCPExecution" | "afterMCPExecution" => {
                (Text::Is(format!("MCP:{}", self.tool_name.as_str())), self.tool_input)
            }
            _ => (self.tool_name, self.tool_input),
        };
        Heard {
            session: self.conversation_id,
            turn: self.generation_id,
            cwd,
            roots: roots.filter_map(Text::path).collect(),
            transcript: self.transcript_path,
            prompt: self.prompt,
            call: self.tool_use_id,
            tool,
            input,
            ..Heard::default()
        }
    }
}
