//! Letta Code, 0.32.18. Read in its package; not run, for it needs a server.
//!
//! Each payload names the agent and hardly any its conversation, so an agent is a session. Exit code
//! 2 denies, with the reason on standard error. It prints each run of a hook on its screen.

use super::files::{self, AgentFiles, entries, home};
use super::hooks::{self, HookTemplate};
use super::json::places;
use super::payload::{FIELDS, Fields};
use super::settings::{project, user};
use super::{CLAUDE, Dialect, claude_code, patch, reply, run, trial};
use crate::model::Agent;

/// The row of Letta Code: Claude Code's tools, or Codex's.
pub(super) const DIALECT: Dialect = Dialect {
    agent: Agent::Letta,
    name: "letta",
    title: "Letta Code",
    asks: false,
    fields: &Fields { session: &places(["agent_id"]), subagent: &[], ..FIELDS },
    reads: &[claude_code::READS],
    tools: &[
        claude_code::TOOLS,
        &[
            patch("ApplyPatch", &["input", "patch"]),
            patch("apply_patch", &["input", "patch"]),
            run("ShellCommand", &["command"]),
            run("shell_command", &["command"]),
            run("exec_command", &["cmd"]),
        ],
    ],
    answer: reply::EXIT_CODE,
    trial: trial(
        "PreToolUse",
        r#"{"event_type":"PreToolUse","working_directory":"DIR","agent_id":"doctor",
        "tool_call_id":"1","tool_name":"TOOL","tool_input":{"ARGUMENT":"COMMAND"}}"#,
    ),
    files: AgentFiles {
        base: home(".letta"),
        programs: &["letta"],
        user: &[entries("settings.json")],
        project: &[entries(".letta/settings.json")],
        watched_project: &[".letta/settings.local.json"],
        second: 1000,
        ..files::PLAIN
    },
    hooks: HookTemplate { events: hooks::WITH_FAILURES, hook: hooks::HOOK_MS, ..hooks::CLAUDE },
    settings: &[
        project(".letta/settings.local.json"),
        project(".letta/settings.json"),
        user("settings.json"),
    ],
    ..CLAUDE
};
