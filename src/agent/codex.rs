//! Codex. Run against 0.169.0, in plain and in code mode, with sub-agents.
//!
//! Its answers must be exact: one key too many, an "ask", or a denial without a reason voids the
//! whole answer, and the tool runs.
//!
//! Not told to us: the `workdir` of a shell command (it stands in the transcript), and what is
//! typed into a session that runs already (`write_stdin`, 0.171.0). A patch applied from within a
//! shell command is reported as that command. Shell tools of every name are reported as `Bash`.

use super::files::{self, AgentFiles, FileKind, PackageNote, advice, entries, file, home_or};
use super::hooks::{self, HookTemplate};
use super::reply::{self, AnswerForm};
use super::{CLAUDE, ConversationLog, Dialect, calls, patch, run};
use crate::model::Agent;

/// The row of Codex.
pub(super) const DIALECT: Dialect = Dialect {
    agent: Agent::Codex,
    name: "codex",
    title: "Codex",
    // Namespaced tools arrive glued together. What sub-agents do fires hooks of its own.
    reads: &[&[
        "view_image",
        "update_plan",
        "spawn_agent",
        "wait_agent",
        "collaborationspawn_agent",
        "collaborationwait_agent",
        "list_agents",
        "get_goal",
        "tool_search",
    ]],
    tools: &[&[run("Bash", &["command"]), patch("apply_patch", &["command", "input", "patch"])]],
    answer: AnswerForm { tells_model_at: Some("UserPromptSubmit"), ..reply::CLAUDE },
    conversations: Some(ConversationLog { dir: "sessions", read: calls::codex }),
    files: AgentFiles {
        base: home_or(".codex", "CODEX_HOME", ""),
        programs: &["codex"],
        user: &[
            entries("hooks.json"),
            file("config.toml", FileKind::TomlTables),
            advice!("skills/beforehand/SKILL.md", "skills/codex/SKILL.md"),
        ],
        project: &[entries(".codex/hooks.json")],
        watched_project: &[".codex/config.toml"],
        package: Some(PackageNote::Member("config.toml", &["plugins"])),
        ..files::PLAIN
    },
    hooks: HookTemplate {
        events: &[
            "SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop",
            "SubagentStop", "SessionEnd",
        ],
        // The most that Codex gives it; the hash of the hook has that value.
        timeouts: &[("SessionEnd", 3)],
        ..hooks::CLAUDE
    },
    ..CLAUDE
};
