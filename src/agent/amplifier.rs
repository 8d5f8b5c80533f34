//! Microsoft's Amplifier, through its module for shell hooks. Read in the source of that module
//! (amplifier-core 2.0.2); not run.
//!
//! Payloads name neither event nor directory: the directory comes from the environment, and what
//! is in them has to tell the event. It asks no questions.

use serde::Deserialize;
use serde_json::json;

use super::input::Input;
use super::payload::{AgentPayload, Heard, hear};
use super::reply::{Say, say, system_message};
use super::wire::Text;
use super::{BadPayload, Dialect, EventKind, HookAnswer, claude_code, payload};
use crate::model::{Agent, Decision};

/// The dialect of Amplifier.
pub(super) const DIALECT: Dialect = Dialect {
    agent: Agent::Amplifier,
    name: "amplifier",
    title: "Amplifier",
    asks: false,
    tells_ends: true,
    keeps_shell: true,
    hear: hear::<AmplifierPayload>,
    intent: claude_code::intent,
    answer,
};

fn answer(kind: EventKind, decision: &Decision) -> HookAnswer {
    match say(kind, decision) {
        Say::Nothing(note) => system_message(note),
        Say::Ask(reason) | Say::Deny(reason) => {
            HookAnswer::json(&json!({ "decision": "block", "reason": reason }))
        }
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct AmplifierPayload {
    hook_event_name: Text,
    session_id: Text,
    cwd: Text,
    prompt: Text,
    tool_name: Text,
    tool_input: Input,
    tool_result: Text,
}

impl AgentPayload for AmplifierPayload {
    fn kind(&self) -> Result<EventKind, BadPayload> {
        if self.hook_event_name.present() {
            return payload::kind(&self.hook_event_name, &self.tool_name);
        }
        let telling = [
            (self.tool_name.present() && self.tool_result.present(), EventKind::ToolDone),
            (self.tool_name.present(), EventKind::ToolCall),
            (self.prompt.present(), EventKind::TurnBegins),
            (self.session_id.present(), EventKind::Other),
        ];
        let first = telling.into_iter().find(|(told, _)| *told);
        first.map(|(_, kind)| kind).ok_or_else(|| BadPayload::missing("tool_name"))
    }

    fn heard(self) -> Heard {
        Heard {
            session: self.session_id,
            cwd: self.cwd,
            prompt: self.prompt,
            tool: self.tool_name,
            input: self.tool_input,
            ..Heard::default()
        }
    }
}
