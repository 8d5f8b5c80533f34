//! Windsurf's Cascade. From its documentation and second-hand notes; not run.
//!
//! Standard output is not read: exit code 2 denies, with the reason on standard error, and nothing
//! can be asked or shown. Strings may contain raw control characters (second-hand). There are no
//! call ids, and only commands have a `cwd`.

use super::files::{self, AgentFiles, entries, home};
use super::hooks::{self, HookTemplate};
use super::{CLAUDE, Dialect, EventKind, edit, event, event_of, reply, run, trial};
use crate::model::Agent;

/// The row of Windsurf. Tools are named after their hooks.
pub(super) const DIALECT: Dialect = Dialect {
    agent: Agent::Windsurf,
    name: "windsurf",
    title: "Windsurf",
    asks: false,
    events: &[
        event_of("pre_write_code", EventKind::ToolCall, "write_code"),
        event_of("pre_run_command", EventKind::ToolCall, "run_command"),
        event_of("pre_read_code", EventKind::ToolCall, "read_code"),
        event_of("pre_mcp_tool_use", EventKind::ToolCall, "MCP tool"),
        event_of("post_write_code", EventKind::ToolDone, "write_code"),
        event_of("post_run_command", EventKind::ToolDone, "run_command"),
        event_of("post_read_code", EventKind::ToolDone, "read_code"),
        event_of("post_mcp_tool_use", EventKind::ToolDone, "MCP tool"),
        event("pre_user_prompt", EventKind::TurnBegins),
        event("post_cascade_response", EventKind::TurnEnds),
    ],
    reads: &[&["read_code"]],
    tools: &[&[edit("write_code", &["file_path"]), run("run_command", &["command_line"])]],
    answer: reply::EXIT_CODE,
    trial: trial(
        "pre_run_command",
        r#"{"agent_action_name":"pre_run_command","trajectory_id":"doctor",
        "execution_id":"1","tool_info":{"command_line":"COMMAND","cwd":"DIR"}}"#,
    ),
    files: AgentFiles {
        base: home(".codeium/windsurf"),
        programs: &["windsurf"],
        user: &[entries("hooks.json")],
        project: &[entries(".windsurf/hooks.json")],
        ..files::PLAIN
    },
    hooks: HookTemplate {
        events: &[
            "pre_user_prompt", "pre_write_code", "pre_run_command", "pre_mcp_tool_use",
            "post_write_code", "post_run_command", "post_mcp_tool_use", "post_cascade_response",
        ],
        hook: r#"{"command":"LINE","show_output":false}"#,
        ..hooks::FLAT
    },
    ..CLAUDE
};
