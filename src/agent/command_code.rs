//! Command Code, 1.64.0. Read in its package; not run, for it needs an account.

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
    ..CLAUDE
};
