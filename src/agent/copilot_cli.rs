//! GitHub's Copilot CLI. Run against 1.0.102, with both spellings and with Claude Code's hooks.
//!
//! The spelling of an event in the hook file selects the payload: `preToolUse` gets camel case and
//! no event name, `PreToolUse` gets snake case, Claude's tool names, and still Copilot's own
//! argument names. Any exit code but 0 denies. There is no turn id and no call id; a sub-agent's
//! calls come under a session of their own.
//!
//! VS Code's agent loads the same hook files, and sends and reads its own form (its documentation and
//! source, 2026-10; not run).
//!
//! On Windows `PowerShell` commands are reported as `Bash` in the second spelling.

use serde::Deserialize;
use serde_json::json;

use super::input::Input;
use super::payload::{AgentPayload, Heard, hear};
use super::reply::{self, Say, say};
use super::wire::Text;
use super::{BadPayload, Dialect, EventKind, HookAnswer, payload, vscode_agent};
use crate::model::{Agent, Decision, Intent, Language};

/// The dialect of Copilot CLI.
pub(super) const DIALECT: Dialect = Dialect {
    agent: Agent::CopilotCli,
    name: "copilot-cli",
    title: "Copilot CLI",
    asks: true,
    tells_ends: true,
    keeps_shell: true,
    hear: hear::<CopilotPayload>,
    intent,
    answer,
};

fn answer(kind: EventKind, decision: &Decision) -> HookAnswer {
    match (kind, say(kind, decision)) {
        // Lines of progress may come before the answer of a tool hook (documented, not run).
        (EventKind::ToolCall, Say::Nothing(Some(note))) => {
            let line = json!({ "type": "progress", "message": note });
            HookAnswer { stdout: format!("{line}\n{{}}").into_bytes(), ..HookAnswer::nothing() }
        }
        (_, Say::Nothing(_)) => HookAnswer::neutral(),
        (_, Say::Ask(reason)) => permission("ask", reason),
        (_, Say::Deny(reason)) => permission("deny", reason),
    }
}

/// The one form that both spellings read, with VS Code's in it: each ignores the other's.
fn permission(decision: &str, reason: &str) -> HookAnswer {
    HookAnswer::json(&json!({
        "permissionDecision": decision,
        "permissionDecisionReason": reason,
        "hookSpecificOutput": reply::deciding(decision, reason),
    }))
}

/// Tools that leave files alone, in both spellings. `task` starts a sub-agent; that its calls fire
/// hooks is read, not run, so it is not here.
const READS: &[&str] =
    &["view", "Read", "glob", "grep", "Glob", "Grep", "web_fetch", "report_intent", "read_bash"];

/// Maps a tool to what it wants. `Edit` stands for `apply_patch` too.
fn intent(tool: &str, input: &Input) -> Intent {
    match tool {
        "create" | "Write" => input.write(&["path", "file_path"]),
        "edit" | "str_replace_editor" => input.edit(&["path"]),
        "apply_patch" => input.patch(&["patch", "input"]),
        "Edit" => match input.edit(&["path", "file_path"]) {
            Intent::Unknown => input.patch(&["patch", "input"]),
            known => known,
        },
        "bash" | "Bash" => input.run(&["command"], Language::Shell),
        "powershell" => input.run(&["command"], Language::PowerShell),
        _ if READS.contains(&tool) => Intent::Read,
        _ => vscode_agent::intent(tool, input),
    }
}

/// Both spellings in one, since no payload mixes them.
#[derive(Default, Deserialize)]
#[serde(default)]
struct CopilotPayload {
    #[serde(alias = "hookName", alias = "hookEventName")]
    hook_event_name: Text,
    #[serde(alias = "sessionId")]
    session_id: Text,
    cwd: Text,
    #[serde(alias = "transcriptPath")]
    transcript_path: Text,
    prompt: Text,
    #[serde(alias = "toolName")]
    tool_name: Text,
    tool_use_id: Text,
    #[serde(alias = "toolArgs", alias = "toolInput")]
    tool_input: Input,
    #[serde(alias = "toolResult")]
    tool_result: Presence,
    error: Presence,
    source: Text,
    reason: Text,
    #[serde(alias = "stopReason")]
    stop_reason: Text,
}

impl AgentPayload for CopilotPayload {
    /// The kind of event. Camel case payloads leave its name out, but for each event another
    /// field is always there.
    fn kind(&self) -> Result<EventKind, BadPayload> {
        let after = self.tool_result.0 || self.error.0;
        if self.hook_event_name.present() {
            return payload::kind(&self.hook_event_name, &self.tool_name);
        }
        let telling = [
            (self.tool_name.present() && after, EventKind::ToolDone),
            (self.tool_name.present(), EventKind::ToolCall),
            (self.prompt.present(), EventKind::TurnBegins),
            (self.stop_reason.present(), EventKind::TurnEnds),
            (self.source.present(), EventKind::SessionBegins),
            (self.reason.present(), EventKind::SessionEnds),
            // Such as `errorOccurred`, or what a later version adds.
            (self.session_id.present(), EventKind::Other),
        ];
        let first = telling.into_iter().find(|(told, _)| *told);
        first.map(|(_, kind)| kind).ok_or_else(|| BadPayload::missing("toolName"))
    }

    fn heard(self) -> Heard {
        Heard {
            session: self.session_id,
            cwd: self.cwd,
            transcript: self.transcript_path,
            prompt: self.prompt,
            call: self.tool_use_id,
            tool: self.tool_name,
            input: self.tool_input,
            ..Heard::default()
        }
    }
}

/// A field of which it is enough to know that it is there.
#[derive(Default)]
struct Presence(bool);

impl<'de> Deserialize<'de> for Presence {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        serde::de::IgnoredAny::deserialize(deserializer).map(|_| Self(true))
    }
}
