//! Factory's Droid. Run with 0.225.2.
//!
//! Claude Code's protocol, with no turn id and no call id in it, and no prompt's event in
//! `droid exec`. `ApplyPatch`, which models of one family are given, is unverified.

use super::input::Input;
use super::{Dialect, claude, mcp, reply};
use crate::model::{Agent, Intent, Language};

/// The dialect of Factory Droid.
pub(super) const DIALECT: Dialect = Dialect {
    agent: Agent::FactoryDroid,
    name: "factory-droid",
    title: "Factory Droid",
    // Its documentation knows "ask", but it takes the answer for no opinion: what is on its own
    // list of commands, or within its level of autonomy, runs, and its own question does not
    // say our reason.
    asks: false,
    tells_ends: true,
    keeps_shell: true,
    hear: claude::hear,
    intent,
    answer: reply::claude_without_ask,
};

/// Tools that leave files alone.
const READS: &[&str] = &["Read", "LS", "Grep", "Glob", "WebSearch", "FetchUrl", "TodoWrite"];

/// Maps a tool to what it wants.
fn intent(tool: &str, input: &Input) -> Intent {
    match tool {
        "Write" | "Create" => input.write(&["file_path"]),
        "Edit" | "MultiEdit" => input.edit(&["file_path"]),
        "ApplyPatch" => input.patch(&["patch", "input"]),
        "Bash" | "Execute" => input.run(&["command"], Language::Shell),
        _ if READS.contains(&tool) => Intent::Read,
        _ => mcp::tool_of(tool).map_or(Intent::Unknown, |name| mcp::intent(name, input)),
    }
}
