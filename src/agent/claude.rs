//! The payload that Claude Code brought into the world, and that many others send too.

use serde::Deserialize;
use serde_json::Value;

use super::input::Input;
use super::payload::{self, AgentPayload, Heard};
use super::wire::Text;
use super::{BadPayload, EventKind, Hearing};

/// The fields that every agent of the family spells the same. Those an agent does not send are
/// absent; what `prompt_id` and `turn_id` mean, its dialect says.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct ClaudePayload {
    // In camel case from early versions of VS Code's agent.
    #[serde(alias = "hookEventName")]
    pub(super) hook_event_name: Text,
    #[serde(alias = "sessionId")]
    pub(super) session_id: Text,
    pub(super) prompt_id: Text,
    pub(super) turn_id: Text,
    pub(super) transcript_path: Text,
    pub(super) cwd: Text,
    pub(super) agent_id: Text,
    pub(super) permission_mode: Text,
    pub(super) prompt: Text,
    pub(super) tool_name: Text,
    pub(super) tool_use_id: Text,
    pub(super) tool_input: Input,
    pub(super) tool_response: Input,
    /// What runs when a turn ends.
    pub(super) background_tasks: Value,
}

impl AgentPayload for ClaudePayload {
    /// Which kind of event this is, for agents that name it as Claude Code does.
    fn kind(&self) -> Result<EventKind, BadPayload> {
        payload::kind(&self.hook_event_name, &self.tool_name)
    }

    /// What it says, with `prompt_id` as the turn.
    fn heard(self) -> Heard {
        Heard {
            session: self.session_id,
            turn: self.prompt_id,
            cwd: self.cwd,
            transcript: self.transcript_path,
            subagent: self.agent_id,
            mode: self.permission_mode,
            prompt: self.prompt,
            call: self.tool_use_id,
            tool: self.tool_name,
            input: self.tool_input,
            in_background: self.tool_response.in_background(),
            has_no_tasks: self.background_tasks.as_array().is_some_and(Vec::is_empty),
            ..Heard::default()
        }
    }
}

/// Reads a payload that is Claude Code's in everything but the tools.
pub(super) fn hear(payload: &[u8]) -> Hearing {
    payload::hear::<ClaudePayload>(payload)
}
