//! Gemini CLI. Run against 0.61.0.
//!
//! Paths arrive as the model wrote them, often relative to `cwd`; a shell command's `dir_path` is
//! relative to it too. There is no turn id and no call id. An exit code other than 0 and 1 denies
//! if anything was printed, a panic's 101 included; only the top-level `decision` is read.

use serde_json::json;

use super::input::Input;
use super::payload::{self, AgentPayload};
use super::reply::{Say, along, say, system_message};
use super::wire;
use super::{Dialect, EventKind, Hearing, HookAnswer, claude, mcp};
use crate::model::{Agent, Decision, Intent, Language};

/// The dialect of Gemini CLI.
pub(super) const DIALECT: Dialect = Dialect {
    agent: Agent::GeminiCli,
    name: "gemini-cli",
    title: "Gemini CLI",
    // It knows "ask", but without a person there (`-p`) it waits for an answer for ever.
    asks: false,
    tells_ends: true,
    // Each line is given to a new `bash -c`.
    keeps_shell: false,
    hear,
    intent,
    answer,
};

fn hear(payload: &[u8]) -> Hearing {
    let payload: claude::ClaudePayload = wire::read(payload)?;
    let kind = match payload.hook_event_name.as_str() {
        "BeforeTool" => EventKind::ToolCall,
        "AfterTool" => EventKind::ToolDone,
        "BeforeAgent" => EventKind::TurnBegins,
        "AfterAgent" => EventKind::TurnEnds,
        _ => payload::kind(&payload.hook_event_name, &payload.tool_name)?,
    };
    Ok((kind, payload.heard()))
}

fn answer(kind: EventKind, decision: &Decision) -> HookAnswer {
    if let Some(answer) = along("BeforeAgent", kind, decision) {
        return answer;
    }
    match say(kind, decision) {
        Say::Nothing(note) => system_message(note),
        Say::Ask(reason) | Say::Deny(reason) => {
            HookAnswer::json(&json!({ "decision": "deny", "reason": reason }))
        }
    }
}

/// Tools that leave files alone. `save_memory` writes a file of the agent's; whether what
/// `invoke_agent` starts fires hooks is unverified.
const READS: &[&str] = &[
    "read_file", "read_many_files", "list_directory", "glob", "grep_search", "search_file_content",
    "google_web_search", "web_fetch", "write_todos", "ask_user",
];

/// Maps a tool to what it wants.
fn intent(tool: &str, input: &Input) -> Intent {
    match tool {
        "write_file" => input.write(&["file_path"]),
        "replace" => input.edit(&["file_path"]),
        "run_shell_command" => input.run(&["command"], Language::Shell),
        _ if READS.contains(&tool) => Intent::Read,
        _ => match tool.strip_prefix("mcp_") {
            // The server's name is glued to the tool's; a verb in either counts.
            Some(name) => mcp::intent(name, input),
            None => Intent::Unknown,
        },
    }
}
