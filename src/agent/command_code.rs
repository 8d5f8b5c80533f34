//! Command Code, 1.64.0. Read in its package; not run, for it needs an account.

use super::files::{self, AgentFiles, entries, home};
use super::hooks::{self, HookTemplate};
use super::{CLAUDE, Dialect, edit, reply, run, write};
use crate::model::Agent;

/// The row of Command Code: Claude Code's protocol with tools of its own.
pub(super) const DIALECT: Dialect = Dialect {
    agent: Agent::CommandCode,
    name: "command-code",
    title: "Command Code",
    asks: false,
    reads: &[&[
        "read_file", "read_multiple_files", "read_directory", "grep", "glob", "todo_write",
        "web_search", "web_fetch", "ask_user_question", "get_diagnostics",
    ]],
    tools: &[&[
        write("write_file", &["file_path"]),
        edit("edit_file", &["file_path"]),
        run("shell_command", &["command"]),
        run("monitor_command", &["command"]),
    ]],
    answer: reply::QUIET,
    files: AgentFiles {
        base: home(".commandcode"),
        programs: &["command-code", "commandcode"],
        user: &[entries("settings.json")],
        project: &[entries(".commandcode/settings.json")],
        watched_project: &[".commandcode/settings.local.json"],
        ..files::PLAIN
    },
    hooks: HookTemplate {
        events: &["SessionStart", "PreToolUse", "PostToolUse", "Stop"],
        matcher: Some(".*"),
        ..hooks::CLAUDE
    },
    ..CLAUDE
};
