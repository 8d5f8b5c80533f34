//! Kiro's command line, and Amazon Q's before it. From documentation and second-hand captures; not
//! run.
//!
//! Exit code 2 denies, with the reason on standard error; nothing can be asked or shown. What is
//! printed when a session starts or a prompt is submitted reaches the model, so nothing is.
//! Amazon Q names no session: all of them are one to us.

use super::input::Input;
use super::{Dialect, HookAnswer, claude, mcp, reply};
use crate::model::{Agent, Intent, Language};

/// The dialect of Kiro.
pub(super) const DIALECT: Dialect = Dialect {
    agent: Agent::Kiro,
    name: "kiro",
    title: "Kiro",
    asks: false,
    tells_ends: true,
    keeps_shell: true,
    hear: claude::hear,
    intent,
    answer: |kind, decision| reply::by_exit_code(kind, decision, HookAnswer::nothing()),
};

/// Maps a tool to what it wants. The tools of MCP servers are called `@server/tool`.
fn intent(tool: &str, input: &Input) -> Intent {
    match tool {
        "fs_write" | "write" if input.text("command") == Some("create") => input.write(&["path"]),
        "fs_write" | "write" => input.edit(&["path"]),
        "execute_bash" | "shell" => input.run(&["command"], Language::Shell),
        "fs_read" | "read" => Intent::Read,
        _ => match tool.strip_prefix('@').and_then(|name| name.split_once('/')) {
            Some((_, name)) => mcp::intent(name, input),
            None => Intent::Unknown,
        },
    }
}
