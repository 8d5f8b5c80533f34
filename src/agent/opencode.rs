//! `OpenCode`, through the plugin in `hooks/opencode/beforehand.js`. The hooks that the plugin uses
//! were run against 1.18.33.
//!
//! `OpenCode` has no hooks on standard input: both ends of this protocol are ours. Paths may be
//! relative to the directory of the instance, commands to their `workdir`. The plugin turns a
//! child session into its root session and a `subagent`.

use serde::Deserialize;
use serde_json::json;

use super::input::Input;
use super::payload::{self, AgentPayload, Heard, hear};
use super::reply::{Say, say};
use super::wire::Text;
use super::{BadPayload, Dialect, EventKind, HookAnswer};
use crate::model::{Agent, Decision, Intent, Language};

/// The dialect of our plugin.
pub(super) const DIALECT: Dialect = Dialect {
    agent: Agent::OpenCode,
    name: "opencode",
    title: "OpenCode",
    asks: false,
    tells_ends: true,
    keeps_shell: true,
    hear: hear::<OpenCodePayload>,
    intent,
    answer,
};

fn answer(kind: EventKind, decision: &Decision) -> HookAnswer {
    match say(kind, decision) {
        Say::Nothing(None) => HookAnswer::neutral(),
        Say::Nothing(Some(note)) => HookAnswer::json(&json!({ "note": note })),
        Say::Ask(reason) | Say::Deny(reason) => HookAnswer::json(&json!({ "deny": reason })),
    }
}

/// Tools that leave files alone. `task` starts a child session; whether its calls reach the
/// plugin was not run.
const READS: &[&str] = &[
    "read", "glob", "grep", "list", "webfetch", "websearch", "codesearch", "todowrite", "todoread",
    "question",
];

/// Maps a tool to what it wants. Tools of MCP servers have no prefix of their own.
fn intent(tool: &str, input: &Input) -> Intent {
    match tool {
        "write" => input.write(&["filePath"]),
        "edit" | "multiedit" => input.edit(&["filePath"]),
        "apply_patch" | "patch" => input.patch(&["patchText"]),
        "bash" => input.run(&["command"], Language::Shell),
        _ if READS.contains(&tool) => Intent::Read,
        _ => Intent::Unknown,
    }
}

/// What the plugin sends.
#[derive(Default, Deserialize)]
#[serde(default)]
struct OpenCodePayload {
    hook_event_name: Text,
    session_id: Text,
    subagent: Text,
    message_id: Text,
    call_id: Text,
    cwd: Text,
    worktree: Text,
    server: Text,
    prompt: Text,
    tool_name: Text,
    tool_input: Input,
}

/// `opencode run` puts what it was given on its command line between double quotes.
fn unquoted(prompt: Text) -> Text {
    let Text::Is(text) = &prompt else { return prompt };
    let inner = text.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    match inner.filter(|inner| !inner.replace("\\\"", "").contains('"')) {
        Some(inner) => Text::Is(inner.replace("\\\"", "\"")),
        None => prompt,
    }
}

impl AgentPayload for OpenCodePayload {
    fn kind(&self) -> Result<EventKind, BadPayload> {
        Ok(match self.hook_event_name.as_str() {
            "tool.execute.before" => EventKind::ToolCall,
            "tool.execute.after" => EventKind::ToolDone,
            "chat.message" => EventKind::TurnBegins,
            "session.idle" => EventKind::TurnEnds,
            "session.created" => EventKind::SessionBegins,
            "session.deleted" => EventKind::SessionEnds,
            _ => payload::kind(&self.hook_event_name, &self.tool_name)?,
        })
    }

    fn heard(self) -> Heard {
        Heard {
            session: self.session_id,
            turn: self.message_id,
            cwd: self.cwd,
            // Outside a repository the worktree is given as the root of the file system.
            roots: self.worktree.path().filter(|dir| dir.parent().is_some()).into_iter().collect(),
            server: self.server,
            subagent: self.subagent,
            prompt: unquoted(self.prompt),
            call: self.call_id,
            tool: self.tool_name,
            input: self.tool_input,
            ..Heard::default()
        }
    }
}
