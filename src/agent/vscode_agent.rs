//! The agent mode of Visual Studio Code. From its documentation and source (2026-10); not run.
//!
//! Claude Code's protocol, with tools and argument names of its own, and `cwd` always the workspace.
//! Its first versions spelled two fields in camel case. It ignores matchers, and also loads the hook
//! files of Claude Code and Copilot CLI, so their dialects know its tools as well.

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

/// Tools that leave files alone. `memory` and tasks write, and sub-agents are said to fire hooks, which
/// was not run: none of them is here.
const READS: &[&str] = &[
    // They look at files, or at what the editor knows of them.
    "read_file",
    "view_image",
    "list_dir",
    "file_search",
    "grep_search",
    "semantic_search",
    "test_search",
    "search_workspace_symbols",
    "read_project_structure",
    "get_errors",
    "copilot_getNotebookSummary",
    "read_notebook_cell_output",
    // They look elsewhere.
    "fetch_webpage",
    "github_repo",
    "github_text_search",
    "get_vscode_api",
    // They watch work that fired hooks itself.
    "get_terminal_output",
    "terminal_last_command",
    "terminal_selection",
    "get_task_output",
    // They keep the agent's own list of things to do, or talk to the user.
    "manage_todo_list",
    "tool_search",
    "vscode_askQuestions",
];

/// Maps a tool to what it wants. What is typed into a terminal may go to another program than a shell,
/// but a shell is where it does most harm.
pub(super) fn intent(tool: &str, input: &Input) -> Intent {
    match tool {
        "editFiles" => input.edit(&["files"]),
        "create_file" => input.write(&["filePath"]),
        "replace_string_in_file"
        | "multi_replace_string_in_file"
        | "insert_edit_into_file"
        | "edit_notebook_file" => input.edit(&["filePath"]),
        "apply_patch" => input.patch(&["input"]),
        "run_in_terminal" | "send_to_terminal" => input.run(&["command"], Language::Shell),
        _ if READS.contains(&tool) => Intent::Read,
        _ => mcp::tool_of(tool).map_or(Intent::Unknown, |name| mcp::intent(name, input)),
    }
}
