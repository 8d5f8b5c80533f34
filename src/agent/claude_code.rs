//! Claude Code. Run against 2.1.329.
//!
//! File paths arrive absolute. `cwd` follows `cd` in the shell tool, so the project's directory
//! from the environment is a second place that paths may be meant from. A sub-agent's calls carry
//! the session, prompt and transcript of the agent that started it.
//!
//! Not told to us: what `!` lines in slash commands and the user's own `!` commands do.

use super::input::Input;
use super::{Dialect, EventKind, HookAnswer, claude, reply, vscode_agent};
use crate::model::{Agent, Decision, Intent, Language};

/// The dialect of Claude Code.
pub(super) const DIALECT: Dialect = Dialect {
    agent: Agent::ClaudeCode,
    name: "claude-code",
    title: "Claude Code",
    asks: true,
    tells_ends: true,
    // It says so itself: only the working directory persists.
    keeps_shell: false,
    hear: claude::hear,
    intent,
    answer,
};

fn answer(kind: EventKind, decision: &Decision) -> HookAnswer {
    reply::along("UserPromptSubmit", kind, decision)
        .unwrap_or_else(|| reply::claude_and_told(kind, decision))
}

/// Tools that leave files alone. A tool joins this list with a reason, not for its name.
/// `Skill`, `SlashCommand` and the worktree tools are not in it: they run commands.
const READS: &[&str] = &[
    // They look at files.
    "Read", "Glob", "Grep", "LS", "NotebookRead", // They look elsewhere.
    "WebFetch", "WebSearch", "ListMcpResourcesTool", "ReadMcpResourceTool",
    // They start or watch work that fires hooks itself (seen for sub-agents).
    "Agent", "Task", "TaskOutput", "BashOutput", "ToolSearch",
    // They keep the agent's own list of things to do.
    "TodoWrite", "TaskCreate", "TaskGet", "TaskList", "TaskUpdate",
    // They talk to the user.
    "AskUserQuestion", "EnterPlanMode", "ExitPlanMode",
];

/// Maps a tool to what it wants. Copilot CLI may run these hooks with its own argument names
/// without our noticing (both agents' markers set), so `path` counts as well. VS Code's agent, which
/// loads these hooks too and has no marker, has tools of its own.
pub(super) fn intent(tool: &str, input: &Input) -> Intent {
    match tool {
        "Write" => input.write(&["file_path", "path"]),
        "Edit" | "MultiEdit" => input.edit(&["file_path", "path"]),
        "NotebookEdit" => input.edit(&["notebook_path"]),
        "Bash" | "Monitor" => input.run(&["command"], Language::Shell),
        "PowerShell" => input.run(&["command"], Language::PowerShell),
        _ if READS.contains(&tool) => Intent::Read,
        _ => vscode_agent::intent(tool, input),
    }
}
