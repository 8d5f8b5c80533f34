//! Charm's Crush. Read in its source; not run.
//!
//! It has one event, and fires it for the top-level agent only: what a sub-agent does is not told
//! to us, so starting one counts as unknown. There is no turn: a session is all we know.

use serde_json::json;

use super::files::{self, AgentFiles, entries, home_or};
use super::hooks::{self, HookTemplate};
use super::{CLAUDE, Dialect, edit, reply, run, trial, write};
use crate::model::Agent;

/// The row of Crush.
pub(super) const DIALECT: Dialect = Dialect {
    agent: Agent::Crush,
    name: "crush",
    title: "Crush",
    asks: false,
    reads: &[&["view", "ls", "grep", "glob", "fetch", "sourcegraph", "todos"]],
    tools: &[&[
        write("write", &["file_path"]),
        write("download", &["file_path"]),
        edit("edit", &["file_path"]),
        edit("multiedit", &["file_path"]),
        run("bash", &["command"]),
    ]],
    answer: reply::denial(|reason| json!({ "decision": "deny", "reason": reason })),
    trial: trial(
        "PreToolUse",
        r#"{"event":"PreToolUse","session_id":"doctor","cwd":"DIR","tool_name":"TOOL",
        "tool_input":{"ARGUMENT":"COMMAND"}}"#,
    ),
    files: AgentFiles {
        base: home_or(".config/crush", "XDG_CONFIG_HOME", "crush"),
        programs: &["crush"],
        user: &[entries("crush.json")],
        project: &[entries("crush.json")],
        watched_project: &[".crush.json"],
        ..files::PLAIN
    },
    hooks: HookTemplate { events: &["PreToolUse"], ..hooks::FLAT },
    ..CLAUDE
};
