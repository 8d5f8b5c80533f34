//! The agent mode of Visual Studio Code. From its documentation and source (2026-10); not run.
//!
//! Claude Code's protocol, with tools and argument names of its own, and `cwd` always the workspace.
//! It ignores matchers, and also loads the hook files of Claude Code and Copilot CLI, so their rows
//! have its tools as well.

use super::files::{self, AgentFiles, FileKind, entries, file, home};
use super::hooks::{self, HookTemplate};
use super::{CLAUDE, Dialect, Tool, edit, patch, run, write};
use crate::{fs::VSCODE_SETTINGS, model::Agent};

/// The row of VS Code's agent mode.
pub(super) const DIALECT: Dialect = Dialect {
    agent: Agent::VsCodeAgent,
    name: "vscode-agent",
    title: "VS Code agent",
    asks: true,
    reads: &[READS],
    tools: &[TOOLS],
    files: AgentFiles {
        base: home(".vscode"),
        hooks_base: Some(home("")),
        // The directories it reads by itself are also those of other agents, and no payload of its own
        // says who sends it.
        user: &[
            entries(".vscode/hooks/beforehand.json"),
            file(
                VSCODE_SETTINGS,
                FileKind::Setting(&["chat.hookFilesLocations", "~/.vscode/hooks"], "true"),
            ),
        ],
        watched_project: &[".vscode/settings.json"],
        ..files::PLAIN
    },
    hooks: HookTemplate {
        events: &["SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop"],
        ..hooks::CLAUDE
    },
    ..CLAUDE
};

/// `memory` and tasks write, and sub-agents are said to fire hooks, which was not run: none of them
/// is here.
pub(super) const READS: &[&str] = &[
    // They look at files, or at the editor's knowledge of them.
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

/// Text typed into a terminal may go to another program than a shell, but a shell is where it does most
/// harm.
pub(super) const TOOLS: &[Tool] = &[
    edit("editFiles", &["files"]),
    write("create_file", &["filePath"]),
    edit("replace_string_in_file", &["filePath"]),
    edit("multi_replace_string_in_file", &["filePath"]),
    edit("insert_edit_into_file", &["filePath"]),
    edit("edit_notebook_file", &["filePath"]),
    patch("apply_patch", &["input"]),
    run("run_in_terminal", &["command"]),
    run("send_to_terminal", &["command"]),
];
