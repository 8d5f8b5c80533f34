//! Google's Antigravity command line. Second-hand, from real captures; not run.
//!
//! Payloads do not name their event, so what is in them has to tell. Arguments may be JSON
//! strings inside JSON strings. How a call is denied is unverified, and so is what tells a payload
//! after a tool from one before it: any with a tool in it counts as before.

use serde_json::json;

use super::files::{self, AgentFiles, entries, home};
use super::hooks::{self, HookTemplate};
use super::json::{self as read, Object, Place};
use super::payload::{FIELDS, Fields};
use super::{CLAUDE, Dialect, EventKind, edit, reply, run, trial, write};
use crate::model::Agent;

/// The row of Antigravity.
pub(super) const DIALECT: Dialect = Dialect {
    agent: Agent::Antigravity,
    name: "antigravity",
    title: "Antigravity",
    asks: false,
    tells_ends: false,
    fields: &Fields { result: &[], ..FIELDS },
    reads: &[&["view_file", "list_dir", "grep_search", "find_by_name", "search_web"]],
    tools: &[&[
        write("write_to_file", &["TargetFile"]),
        edit("replace_file_content", &["TargetFile"]),
        edit("multi_replace_file_content", &["TargetFile"]),
        run("run_command", &["CommandLine"]),
    ]],
    answer: reply::denial(|reason| json!({ "decision": "deny", "reason": reason })),
    kind_by_fields: Some(by_invocation),
    trial: trial(
        "PreToolUse",
        r#"{"toolCall":{"name":"run_command","args":{"CommandLine":"COMMAND",
        "Cwd":"DIR"}},"stepIdx":1,"conversationId":"doctor","workspacePaths":["DIR"]}"#,
    ),
    files: AgentFiles {
        base: home(".antigravity"),
        hooks_base: Some(home(".gemini/config")),
        programs: &["agy"],
        user: &[entries("hooks.json")],
        project: &[entries(".agents/hooks.json")],
        watched: &["hooks.json"],
        ..files::PLAIN
    },
    hooks: HookTemplate {
        events: &["PreToolUse", "PreInvocation", "Stop"],
        hook: r#"{"type":"command","command":"LINE"}"#,
        holder: Some("beforehand"),
        ..hooks::CLAUDE
    },
    ..CLAUDE
};

/// One event for each question to the model; the first of a turn is number 0.
fn by_invocation(object: &Object<'_>) -> Option<EventKind> {
    let number = object.first(&[Place::of("invocation_num")], read::id)?;
    Some(if number == "0" { EventKind::TurnBegins } else { EventKind::Other })
}
