//! Qwen Code. Run against 0.24.4.
//!
//! Gemini CLI's tools in Claude Code's protocol. It submits a prompt before every round trip to
//! the model, empty after tool results, all with the same `prompt_id`. Paths are absolute; a
//! relative one is refused before the hook.

use super::input::Input;
use super::{Dialect, EventKind, HookAnswer, claude, mcp, reply};
use crate::model::{Agent, Decision, Intent, Language};

/// The dialect of Qwen Code.
pub(super) const DIALECT: Dialect = Dialect {
    agent: Agent::QwenCode,
    name: "qwen-code",
    title: "Qwen Code",
    asks: true,
    tells_ends: true,
    // Each line is given to a new `bash -c`.
    keeps_shell: false,
    hear: claude::hear,
    intent,
    answer,
};

fn answer(kind: EventKind, decision: &Decision) -> HookAnswer {
    reply::along("UserPromptSubmit", kind, decision)
        .unwrap_or_else(|| reply::claude(kind, decision))
}

/// Tools that leave files alone. `agent` is not in it: that its calls fire hooks is read, not run.
const READS: &[&str] = &[
    "read_file", "read_many_files", "list_directory", "glob", "grep_search", "search_file_content",
    "web_fetch", "web_search", "todo_write",
];

/// Maps a tool to what it wants.
fn intent(tool: &str, input: &Input) -> Intent {
    match tool {
        "write_file" => input.write(&["file_path"]),
        "edit" => input.edit(&["file_path"]),
        "notebook_edit" => input.edit(&["notebook_path"]),
        "run_shell_command" => input.run(&["command"], Language::Shell),
        _ if READS.contains(&tool) => Intent::Read,
        _ => mcp::tool_of(tool).map_or(Intent::Unknown, |name| mcp::intent(name, input)),
    }
}
