//! `xAI`'s Grok Build, 1.0.41.
//!
//! It sends every field in two spellings. It loads the hooks of Claude Code and Cursor besides its
//! own by default, and waits 5 seconds for a hook. Exit code 2 denies, with the reason on standard
//! error.

use super::{
    CLAUDE, Dialect, EventKind, SubagentSessions, claude_code, edit, event, reply, run,
    vscode_agent, write,
};
use crate::model::Agent;

/// The row of Grok Build: its own tools, or Claude Code's.
pub(super) const DIALECT: Dialect = Dialect {
    agent: Agent::GrokBuild,
    name: "grok-build",
    title: "Grok Build",
    asks: false,
    subagents: SubagentSessions::Separate,
    events: &[event("subagent_start", EventKind::SubagentBegins)],
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
    ..CLAUDE
};
