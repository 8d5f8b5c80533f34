//! Claude Code. Run against 2.1.329; events of 2.1.332 from its own text.
//!
//! File paths arrive absolute. `cwd` follows `cd` in the shell tool, so the project's directory
//! from the environment is a second place that paths may be meant from. A sub-agent's calls carry
//! the session, prompt and transcript of the agent that started it.
//!
//! The shell lines of custom commands and skills come as `PreSkillShellCommand`, before which any
//! opinion stops the line. The user's own `!` commands reach no hook.

use super::files::{
    self, AgentFiles, InstallFile, NewerEvents, PackageNote, command, entries, home_or,
};
use super::hooks::{self, HookTemplate};
use super::reply::{self, AnswerForm, RefusalForm};
use super::{
    CLAUDE, ConversationLog, Dialect, Tool, calls, edit, run, run_in, vscode_agent, write,
};
use crate::model::{Agent, Language};

/// The row of Claude Code. VS Code's agent loads its hooks too and has no marker, so its tools count
/// as well.
pub(super) const DIALECT: Dialect = Dialect {
    agent: Agent::ClaudeCode,
    name: "claude-code",
    title: "Claude Code",
    asks: true,
    // It says so itself: only the working directory persists.
    keeps_shell: false,
    reads: &[READS, vscode_agent::READS],
    tools: &[TOOLS, vscode_agent::TOOLS],
    answer: AnswerForm {
        refusal: RefusalForm::PermissionShown,
        tells_model_at: Some("UserPromptSubmit"),
        ..reply::CLAUDE
    },
    conversations: Some(ConversationLog { dir: "projects", read: calls::claude_code }),
    files: AgentFiles {
        base: home_or(".claude", "CLAUDE_CONFIG_DIR", ""),
        programs: &["claude"],
        user: FILES,
        project_dir: ".claude",
        project: FILES,
        // Run: up to 2.1.100 an event that Claude Code does not know voids the whole file, and with it
        // the user's own settings; up to 2.1.331 it warns of the event at each start.
        newer: Some(NewerEvents { since: [2, 1, 332], events: &["PreSkillShellCommand"] }),
        watched: &["settings.local.json"],
        watched_project: &[".claude/settings.local.json"],
        package: Some(PackageNote::Member("settings.json", &["enabledPlugins"])),
        ..files::PLAIN
    },
    hooks: HookTemplate {
        events: &[
            "SessionStart", "UserPromptSubmit", "PreToolUse", "PreSkillShellCommand",
            "PostToolUse", "PostToolUseFailure", "Stop", "SubagentStop", "SessionEnd",
        ],
        ..hooks::CLAUDE
    },
    ..CLAUDE
};

const FILES: &[InstallFile] = &[
    entries("settings.json"),
    command!("commands/checkpoint.md", "claude-code/checkpoint.md"),
    command!("commands/rollback.md", "claude-code/rollback.md"),
    command!("commands/revert.md", "claude-code/revert.md"),
    command!("commands/fork-turn.md", "claude-code/fork-turn.md"),
    command!("commands/undo.md", "claude-code/undo.md"),
];

/// `Skill`, `SlashCommand` and the worktree tools are not in it: they run commands.
pub(super) const READS: &[&str] = &[
    // They look at files.
    "Read", "Glob", "Grep", "LS", "NotebookRead", // They look elsewhere.
    "WebFetch", "WebSearch", "ListMcpResourcesTool", "ReadMcpResourceTool",
    // They start or watch work that fires hooks itself (seen for sub-agents).
    "Agent", "Task", "TaskOutput", "BashOutput", "ToolSearch", "ListAgents",
    // They keep the agent's own list of things to do, or of what it found.
    "TodoWrite", "TaskCreate", "TaskGet", "TaskList", "TaskUpdate", "ReportFindings",
    // They talk to the user.
    "AskUserQuestion", "EnterPlanMode", "ExitPlanMode",
];

/// Copilot CLI may run these hooks with its own argument names without our noticing (both agents'
/// markers set), so `path` counts as well.
pub(super) const TOOLS: &[Tool] = &[
    write("Write", &["file_path", "path"]),
    edit("Edit", &["file_path", "path"]),
    edit("MultiEdit", &["file_path", "path"]),
    edit("NotebookEdit", &["notebook_path"]),
    run("Bash", &["command"]),
    run("Monitor", &["command"]),
    run_in("PowerShell", &["command"], Language::PowerShell),
];
