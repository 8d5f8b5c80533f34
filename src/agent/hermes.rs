//! Nous Research's Hermes agent. Run against 0.19.0.
//!
//! It ignores exit codes and asks no questions, and nothing can be shown to the user.
//!
//! Not told to us: where relative paths are meant from. The payload has the directory of the
//! process; the file tools go by the terminal's, which an earlier command's `workdir` moved.

use serde::Deserialize;
use serde_json::json;

use super::input::Input;
use super::payload::{self, AgentPayload, Heard, hear};
use super::wire::Text;
use super::{BadPayload, Dialect, EventKind, reply};
use crate::model::{Agent, Intent, Language};

/// The dialect of Hermes.
pub(super) const DIALECT: Dialect = Dialect {
    agent: Agent::Hermes,
    name: "hermes",
    title: "Hermes",
    asks: false,
    tells_ends: true,
    keeps_shell: true,
    hear: hear::<HermesPayload>,
    intent,
    answer: |kind, decision| {
        reply::denial(kind, decision, |reason| json!({ "action": "block", "message": reason }))
    },
};

/// Tools that leave files alone.
const READS: &[&str] =
    &["read_file", "search_files", "web_search", "web_extract", "vision_analyze", "todo"];

/// Maps a tool to what it wants.
fn intent(tool: &str, input: &Input) -> Intent {
    match tool {
        "write_file" => input.write(&["path"]),
        "patch" if input.text("mode") == Some("replace") => input.edit(&["path"]),
        "patch" => input.patch(&["patch"]),
        "terminal" => input.run(&["command"], Language::Shell),
        "execute_code" => input.run(&["code"], Language::Code),
        _ if READS.contains(&tool) => Intent::Read,
        _ => Intent::Unknown,
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct HermesPayload {
    hook_event_name: Text,
    session_id: Text,
    cwd: Text,
    tool_name: Text,
    tool_input: Input,
    extra: Option<Extra>,
}

/// What Hermes knows beyond that. The whole conversation is in it too, and skipped.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Extra {
    turn_id: Text,
    tool_call_id: Text,
    user_message: Text,
}

impl AgentPayload for HermesPayload {
    fn kind(&self) -> Result<EventKind, BadPayload> {
        Ok(match self.hook_event_name.as_str() {
            "pre_tool_call" => EventKind::ToolCall,
            "post_tool_call" => EventKind::ToolDone,
            "pre_llm_call" => EventKind::TurnBegins,
            // Despite its name, the second fires for every turn.
            "post_llm_call" | "on_session_end" => EventKind::TurnEnds,
            "on_session_start" => EventKind::SessionBegins,
            "on_session_finalize" => EventKind::SessionEnds,
            _ => payload::kind(&self.hook_event_name, &self.tool_name)?,
        })
    }

    fn heard(self) -> Heard {
        let extra = self.extra.unwrap_or_default();
        Heard {
            session: self.session_id,
            turn: extra.turn_id,
            cwd: self.cwd,
            prompt: extra.user_message,
            call: extra.tool_call_id,
            tool: self.tool_name,
            input: self.tool_input,
            ..Heard::default()
        }
    }
}
