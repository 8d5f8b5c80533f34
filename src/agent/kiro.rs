//! Kiro's command line, and Amazon Q's before it. From documentation and second-hand captures; not
//! run.
//!
//! Exit code 2 denies, with the reason on standard error; nothing can be asked or shown. What is
//! printed when a session starts or a prompt is submitted reaches the model, so nothing is.
//! Amazon Q names no session: all of them are one to us.

use super::{CLAUDE, Dialect, edit, reply, run, trial};
use crate::model::Agent;

/// The row of Kiro. The tools of MCP servers are called `@server/tool`.
pub(super) const DIALECT: Dialect = Dialect {
    agent: Agent::Kiro,
    name: "kiro",
    title: "Kiro",
    asks: false,
    reads: &[&["fs_read", "read"]],
    tools: &[&[
        edit("fs_write", &["path"]),
        edit("write", &["path"]),
        run("execute_bash", &["command"]),
        run("shell", &["command"]),
    ]],
    answer: reply::EXIT_CODE,
    trial: trial(
        "preToolUse",
        r#"{"hook_event_name":"preToolUse","cwd":"DIR","session_id":"doctor",
        "tool_name":"TOOL","tool_input":{"ARGUMENT":"COMMAND"}}"#,
    ),
    ..CLAUDE
};
