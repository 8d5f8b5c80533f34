//! Google's Antigravity command line. Second-hand, from real captures; not run.
//!
//! Payloads do not name their event, so what is in them has to tell. Arguments may be JSON
//! strings inside JSON strings. How a call is denied is unverified, and so is what tells a payload
//! after a tool from one before it: any with a tool in it counts as before.

use serde::Deserialize;
use serde_json::json;

use super::input::Input;
use super::payload::{AgentPayload, Heard, hear};
use super::wire::{Text, Texts};
use super::{BadPayload, Dialect, EventKind, reply};
use crate::model::{Agent, Intent, Language};

/// The dialect of Antigravity.
pub(super) const DIALECT: Dialect = Dialect {
    agent: Agent::Antigravity,
    name: "antigravity",
    title: "Antigravity",
    asks: false,
    tells_ends: false,
    keeps_shell: true,
    hear: hear::<AntigravityPayload>,
    intent,
    answer: |kind, decision| {
        reply::denial(kind, decision, |reason| json!({ "decision": "deny", "reason": reason }))
    },
};

/// Tools that leave files alone.
const READS: &[&str] = &["view_file", "list_dir", "grep_search", "find_by_name", "search_web"];

/// Maps a tool to what it wants.
fn intent(tool: &str, input: &Input) -> Intent {
    match tool {
        "write_to_file" => input.write(&["TargetFile"]),
        "replace_file_content" | "multi_replace_file_content" => input.edit(&["TargetFile"]),
        "run_command" => input.run(&["CommandLine"], Language::Shell),
        _ if READS.contains(&tool) => Intent::Read,
        _ => Intent::Unknown,
    }
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct AntigravityPayload {
    tool_call: Option<AntigravityCall>,
    step_idx: Text,
    invocation_num: Text,
    termination_reason: Text,
    fully_idle: Text,
    conversation_id: Text,
    workspace_paths: Texts,
    transcript_path: Text,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct AntigravityCall {
    name: Text,
    args: Input,
}

impl AgentPayload for AntigravityPayload {
    fn kind(&self) -> Result<EventKind, BadPayload> {
        let first_of_turn = self.invocation_num == Text::Scalar("0".to_owned());
        let telling = [
            (self.tool_call.is_some(), EventKind::ToolCall),
            (self.termination_reason.present(), EventKind::TurnEnds),
            (self.fully_idle.present(), EventKind::TurnEnds),
            // One for each question to the model; the first of a turn is number 0.
            (first_of_turn, EventKind::TurnBegins),
            (self.conversation_id.present(), EventKind::Other),
        ];
        let first = telling.into_iter().find(|(told, _)| *told);
        first.map(|(_, kind)| kind).ok_or_else(|| BadPayload::missing("toolCall"))
    }

    fn heard(self) -> Heard {
        let call = self.tool_call.unwrap_or_default();
        let mut roots = self.workspace_paths.0.into_iter();
        Heard {
            session: self.conversation_id,
            cwd: roots.next().unwrap_or_default(),
            roots: roots.filter_map(Text::path).collect(),
            transcript: self.transcript_path,
            call: self.step_idx,
            tool: call.name,
            input: call.args.decoded(),
            ..Heard::default()
        }
    }
}
