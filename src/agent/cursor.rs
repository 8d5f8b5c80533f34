//! Cursor: the editor's agent and `cursor-agent`. From its documentation and second-hand
//! captures; not run.
//!
//! Two hooks can announce one command (`preToolUse` and `beforeShellExecution`). "Ask" is accepted
//! and not enforced before a tool, so it is not used. Whether `{}` is no opinion is unverified;
//! "allow" might skip the user's prompt. Headless runs fire neither the prompt nor the stop hook.

use serde_json::json;

use super::files::{self, AgentFiles, LineRunner, advice, entries, home};
use super::hooks::{self, HookTemplate};
use super::{CLAUDE, Dialect, EventKind, edit, event, event_of, patch, reply, run, trial, write};
use crate::model::Agent;

/// The row of Cursor. An event that is about one tool has that tool's arguments at the top.
pub(super) const DIALECT: Dialect = Dialect {
    agent: Agent::Cursor,
    name: "cursor",
    title: "Cursor",
    asks: false,
    events: &[
        event_of("beforeShellExecution", EventKind::ToolCall, "Shell"),
        event_of("afterShellExecution", EventKind::ToolDone, "Shell"),
        event_of("beforeReadFile", EventKind::ToolCall, "Read"),
        event_of("afterFileEdit", EventKind::ToolDone, "Edit"),
        // The name of a server's tool may be that of one of the agent's own.
        event_of("beforeMCPExecution", EventKind::ToolCall, "MCP tool"),
        event_of("afterMCPExecution", EventKind::ToolDone, "MCP tool"),
        event("beforeSubmitPrompt", EventKind::TurnBegins),
    ],
    reads: &[&["Read", "Grep", "Glob", "LS", "WebSearch", "WebFetch", "TodoWrite"]],
    // Hooks name paths `file_path`, transcripts `path`.
    tools: &[&[
        write("Write", &["file_path", "path"]),
        edit("StrReplace", &["file_path", "path"]),
        edit("Edit", &["file_path", "path"]),
        edit("MultiEdit", &["file_path", "path"]),
        edit("Delete", &["file_path", "path"]),
        patch("ApplyPatch", &["patch", "input"]),
        run("Shell", &["command"]),
    ]],
    answer: reply::denial(
        |reason| json!({ "permission": "deny", "user_message": reason, "agent_message": reason }),
    ),
    trial: trial(
        "preToolUse",
        r#"{"conversation_id":"doctor","generation_id":"1","workspace_roots":["DIR"],
        "hook_event_name":"preToolUse","tool_name":"TOOL","tool_input":{"ARGUMENT":"COMMAND",
        "working_directory":"DIR"},"tool_use_id":"1","cwd":"DIR"}"#,
    ),
    files: AgentFiles {
        base: home(".cursor"),
        programs: &["cursor-agent", "cursor"],
        user: &[entries("hooks.json"), advice!("commands/beforehand.md", "prompts/beforehand.md")],
        project: &[entries(".cursor/hooks.json")],
        runner: LineRunner::Words,
        ..files::PLAIN
    },
    hooks: HookTemplate {
        events: &[
            "sessionStart", "beforeSubmitPrompt", "preToolUse", "beforeShellExecution",
            "postToolUse", "afterFileEdit", "stop", "sessionEnd",
        ],
        top: r#"{"version":1}"#,
        ..hooks::FLAT
    },
    ..CLAUDE
};
