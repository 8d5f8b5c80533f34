//! Qwen Code. Run against 0.24.4.
//!
//! Gemini CLI's tools in Claude Code's protocol. It submits a prompt before every round trip to
//! the model, empty after tool results, all with the same `prompt_id`. Paths are absolute; a
//! relative one is refused before the hook.

use super::files::{self, AgentFiles, InstallFile, PackageNote, command, entries, home};
use super::hooks::{self, HookTemplate};
use super::reply::{self, AnswerForm};
use super::{CLAUDE, Dialect, edit, run, write};
use crate::model::Agent;

/// The row of Qwen Code.
pub(super) const DIALECT: Dialect = Dialect {
    agent: Agent::QwenCode,
    name: "qwen-code",
    title: "Qwen Code",
    asks: true,
    // Each line is given to a new `bash -c`.
    keeps_shell: false,
    // `agent` is not in it: that its calls fire hooks is read, not run.
    reads: &[&[
        "read_file", "read_many_files", "list_directory", "glob", "grep_search",
        "search_file_content", "web_fetch", "web_search", "todo_write", "tool_search",
    ]],
    tools: &[&[
        write("write_file", &["file_path"]),
        edit("edit", &["file_path"]),
        edit("notebook_edit", &["notebook_path"]),
        run("run_shell_command", &["command"]),
    ]],
    answer: AnswerForm { tells_model_at: Some("UserPromptSubmit"), ..reply::CLAUDE },
    files: AgentFiles {
        base: home(".qwen"),
        programs: &["qwen"],
        user: FILES,
        project_dir: ".qwen",
        project: FILES,
        package: Some(PackageNote::File("extensions/beforehand/qwen-extension.json")),
        ..files::PLAIN
    },
    hooks: HookTemplate { events: hooks::WITH_FAILURES, ..hooks::CLAUDE },
    ..CLAUDE
};

const FILES: &[InstallFile] = &[
    entries("settings.json"),
    command!("commands/checkpoint.md", "qwen-code/checkpoint.md"),
    command!("commands/rollback.md", "qwen-code/rollback.md"),
    command!("commands/revert.md", "qwen-code/revert.md"),
    command!("commands/fork.md", "qwen-code/fork.md"),
    command!("commands/undo.md", "qwen-code/undo.md"),
];
