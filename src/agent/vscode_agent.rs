//! The agent mode of Visual Studio Code. From an excerpt of its documentation; not run.
//!
//! Claude Code's protocol. Only `editFiles` is documented; the other tools are named after the
//! editor's own and unverified. Paths may be relative to the workspace.

use super::input::Input;
use super::{Dialect, claude, mcp, reply};
use crate::model::{Agent, Intent, Language};

/// The dialect of VS Code's agent mode.
pub(super) const DIALECT: Dialect = Dialect {
    agent: Agent::VsCodeAgent,
    name: "vscode-agent",
    title: "VS Code agent",
    asks: true,
    tells_ends: true,
    keeps_shell: true,
    hear: claude::hear,
    intent,
    answer: reply::claude,
};

/// Tools that leave files alone.
const READS: &[&str] = &["read_file", "list_dir", "file_search", "grep_search", "semantic_search"];

/// Maps a tool to what it wants.
fn intent(tool: &str, input: &Input) -> Intent {
    match tool {
        "editFiles" => input.edit(&["files"]),
        "create_file" => input.write(&["filePath"]),
        "replace_string_in_file"
        | "multi_replace_string_in_file"
        | "insert_edit_into_file"
        | "edit_notebook_file" => input.edit(&["filePath"]),
        "apply_patch" => input.patch(&["input"]),
        "run_in_terminal" => input.run(&["command"], Language::Shell),
        _ if READS.contains(&tool) => Intent::Read,
        _ => mcp::tool_of(tool).map_or(Intent::Unknown, |name| mcp::intent(name, input)),
    }
}
