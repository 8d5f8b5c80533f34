//! Cline. Its command line was run against 3.0.65; the payloads of the editor extension's older
//! protocol are read in its source and unverified.
//!
//! A denial cancels the whole run, not one call. Exit codes are not looked at. The prompt hook
//! did not fire for the first prompt of a one-shot run, so the start of a task begins a turn.
//! There is no turn id and no transcript.

use serde::Deserialize;
use serde_json::json;

use super::input::Input;
use super::payload::{AgentPayload, Heard, hear};
use super::wire::{Text, Texts};
use super::{BadPayload, Dialect, EventKind, payload, reply};
use crate::model::{Agent, Intent, Language};

/// The dialect of Cline.
pub(super) const DIALECT: Dialect = Dialect {
    agent: Agent::Cline,
    name: "cline",
    title: "Cline",
    // It knows "review", but where tools are approved by themselves, as they are by default, it
    // runs the tool.
    asks: false,
    tells_ends: true,
    keeps_shell: true,
    hear: hear::<ClinePayload>,
    intent,
    answer: |kind, decision| {
        reply::denial(kind, decision, |reason| json!({ "cancel": true, "errorMessage": reason }))
    },
};

/// Tools that leave files alone: those seen, and the older ones read in the source.
const READS: &[&str] =
    &["read_files", "read_file", "list_files", "search_files", "list_code_definition_names"];

/// Maps a tool to what it wants. Several commands run one after the other.
fn intent(tool: &str, input: &Input) -> Intent {
    match tool {
        "editor" | "replace_in_file" => input.edit(&["path"]),
        "write_to_file" => input.write(&["path"]),
        "run_commands" => input.run(&["commands"], Language::Shell),
        "execute_command" => input.run(&["command"], Language::Shell),
        // Offered to GPT models; its arguments are unverified.
        "apply_patch" => input.patch(&["patch", "input"]),
        _ if READS.contains(&tool) => Intent::Read,
        _ => Intent::Unknown,
    }
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ClinePayload {
    hook_name: Text,
    task_id: Text,
    session_context: Option<ClineSession>,
    workspace_roots: Texts,
    #[serde(rename = "agent_id")]
    agent_id: Text,
    #[serde(rename = "parent_agent_id")]
    parent_agent_id: Text,
    prompt: Text,
    user_prompt_submit: Option<Prompt>,
    #[serde(rename = "tool_call")]
    tool_call: Option<ClineCall>,
    #[serde(rename = "tool_result")]
    tool_result: Option<ClineCall>,
    pre_tool_use: Option<OldCall>,
    post_tool_use: Option<OldCall>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ClineSession {
    root_session_id: Text,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Prompt {
    prompt: Text,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ClineCall {
    id: Text,
    name: Text,
    input: Input,
}

/// A call in the older protocol, and beside the newer. Its parameters are all turned into text.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct OldCall {
    tool_name: Text,
    parameters: Input,
}

impl From<OldCall> for ClineCall {
    fn from(old: OldCall) -> Self {
        Self { id: Text::Absent, name: old.tool_name, input: old.parameters }
    }
}

impl AgentPayload for ClinePayload {
    /// The kind of event. Names other than those of a tool, a start and an end are unverified.
    fn kind(&self) -> Result<EventKind, BadPayload> {
        let called = self.tool_call.is_some() || self.pre_tool_use.is_some();
        let done = self.tool_result.is_some() || self.post_tool_use.is_some();
        Ok(match self.hook_name.as_str() {
            _ if called => EventKind::ToolCall,
            _ if done => EventKind::ToolDone,
            "agent_start" | "TaskStart" => EventKind::TurnBegins,
            "prompt_submit" | "UserPromptSubmit" => EventKind::TurnBegins,
            "agent_resume" | "TaskResume" => EventKind::SessionBegins,
            "agent_end" | "agent_abort" | "agent_error" => EventKind::TurnEnds,
            "TaskComplete" | "TaskCancel" | "TaskError" => EventKind::TurnEnds,
            "session_shutdown" | "SessionShutdown" => EventKind::SessionEnds,
            "" => payload::kind(&self.hook_name, &Text::Absent)?,
            _ => EventKind::Other,
        })
    }

    fn heard(self) -> Heard {
        let call = self.tool_call.or(self.tool_result);
        let old = self.pre_tool_use.or(self.post_tool_use).map(ClineCall::from);
        let call = call.or(old).unwrap_or_default();
        let session = self.session_context.unwrap_or_default().root_session_id;
        let mut roots = self.workspace_roots.0.into_iter();
        Heard {
            session: session.or(self.task_id),
            cwd: roots.next().unwrap_or_default(),
            roots: roots.filter_map(Text::path).collect(),
            subagent: match self.parent_agent_id {
                Text::Absent => Text::Absent,
                _ => self.agent_id,
            },
            prompt: self.prompt.or(self.user_prompt_submit.unwrap_or_default().prompt),
            call: call.id,
            tool: call.name,
            input: call.input,
            ..Heard::default()
        }
    }
}
