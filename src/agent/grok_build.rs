//! `xAI`'s Grok Build, 1.0.41.
//!
//! It sends every field in two spellings, and of a long input the start alone. By default it also loads
//! the hooks of Claude Code and Cursor, and waits 5 seconds for a hook. The parent reports the start of
//! a sub-agent. Exit code 2 denies, with the reason on standard error.

use super::files::{self, AgentFiles, entries, home};
use super::hooks::{self, HookTemplate};
use super::{
    CLAUDE, Dialect, SubagentSessions, claude_code, edit, reply, run, trial, vscode_agent, write,
};
use crate::model::Agent;

/// The row of Grok Build: its own tools, or Claude Code's.
pub(super) const DIALECT: Dialect = Dialect {
    agent: Agent::GrokBuild,
    name: "grok-build",
    title: "Grok Build",
    asks: false,
    subagents: SubagentSessions::Separate,
    child_session: &["subagent_id"],
    reads: &[&["read_file", "list_dir", "grep"], claude_code::READS, vscode_agent::READS],
    tools: &[
        &[
            edit("search_replace", &["file_path"]),
            write("write", &["file_path"]),
            run("run_terminal_command", &["command"]),
            run("monitor", &["command"]),
        ],
        claude_code::TOOLS,
        vscode_agent::TOOLS,
    ],
    answer: reply::EXIT_CODE,
    trial: trial(
        "PreToolUse",
        r#"{"hookEventName":"pre_tool_use","sessionId":"doctor","cwd":"DIR",
        "workspaceRoot":"DIR","promptId":"1","permissionMode":"default",
        "toolName":"run_terminal_command","toolInput":{"command":"COMMAND"},"toolUseId":"1",
        "toolInputTruncated":false}"#,
    ),
    files: AgentFiles {
        base: home(".grok"),
        programs: &["grok"],
        user: &[entries("hooks/beforehand.json")],
        watched: &["settings.json", "hooks.json"],
        ..files::PLAIN
    },
    hooks: HookTemplate {
        events: &[
            "SessionStart", "UserPromptSubmit", "SubagentStart", "PreToolUse", "PostToolUse",
            "Stop", "SessionEnd",
        ],
        timeouts: &[("SessionEnd", 5)],
        ..hooks::CLAUDE
    },
    ..CLAUDE
};
