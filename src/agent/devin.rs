//! Cognition's Devin on the command line. Second-hand notes on 3000.2; not run.
//!
//! Claude Code's protocol with neither `cwd` nor transcript: the directory comes from the
//! environment. The names of its tools beyond `write`, and how it is denied, are unverified.

use super::input::Input;
use super::{Dialect, claude, claude_code, reply};
use crate::model::{Agent, Intent, Language};

/// The dialect of Devin.
pub(super) const DIALECT: Dialect = Dialect {
    agent: Agent::Devin,
    name: "devin-cli",
    title: "Devin",
    asks: false,
    tells_ends: true,
    keeps_shell: true,
    hear: claude::hear,
    intent,
    answer: reply::claude_without_ask,
};

/// Maps a tool to what it wants: its own, or Claude Code's.
fn intent(tool: &str, input: &Input) -> Intent {
    match tool {
        "write" => input.write(&["file_path"]),
        "edit" => input.edit(&["file_path"]),
        "bash" | "shell" | "exec" => input.run(&["command"], Language::Shell),
        "read" => Intent::Read,
        _ => claude_code::intent(tool, input),
    }
}
