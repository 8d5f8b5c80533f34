//! Cognition's Devin on the command line. Second-hand notes on 3000.2; not run.
//!
//! Claude Code's protocol with neither `cwd` nor transcript: the directory comes from the
//! environment. The names of its tools beyond `write`, and how it is denied, are unverified.

use super::files::{self, AgentFiles, FileKind, entries, file, home};
use super::hooks::{self, HookTemplate};
use super::{CLAUDE, Dialect, TrialCall, claude_code, edit, run, trial, vscode_agent, write};
use crate::model::Agent;

/// The row of Devin: its own tools, or Claude Code's.
pub(super) const DIALECT: Dialect = Dialect {
    agent: Agent::Devin,
    name: "devin-cli",
    title: "Devin",
    asks: false,
    reads: &[&["read"], claude_code::READS, vscode_agent::READS],
    tools: &[
        &[
            write("write", &["file_path"]),
            edit("edit", &["file_path"]),
            run("bash", &["command"]),
            run("shell", &["command"]),
            run("exec", &["command"]),
        ],
        claude_code::TOOLS,
        vscode_agent::TOOLS,
    ],
    trial: TrialCall {
        dir_variable: Some("DEVIN_PROJECT_DIR"),
        ..trial(
            "PreToolUse",
            r#"{"hook_event_name":"PreToolUse","tool_name":"exec","tool_input":{"command":"COMMAND"},
            "tool_use_id":"1","session_id":"doctor","prompt_id":"1"}"#,
        )
    },
    files: AgentFiles {
        base: home(".config/devin"),
        programs: &["devin"],
        user: &[file("config.json", FileKind::Entries(Some("hooks")))],
        project: &[entries(".devin/hooks.v1.json")],
        watched_project: &[".devin/hooks.json", ".devin/config.json", ".devin/config.local.json"],
        ..files::PLAIN
    },
    hooks: HookTemplate {
        events: &["UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop"],
        matcher: None,
        holder: None,
        ..hooks::CLAUDE
    },
    ..CLAUDE
};
