//! Codex. Run against 0.169.0, in plain and in code mode, with sub-agents.
//!
//! Its answers must be exact: one key too many, an "ask", or a denial without a reason voids the
//! whole answer, and the tool runs.
//!
//! Not told to us: the `workdir` of a shell command (it stands in the transcript), and what is
//! typed into a session that runs already (`write_stdin`, 0.171.0). A patch applied from within a
//! shell command is reported as that command. Shell tools of every name are reported as `Bash`.

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
    ..CLAUDE
};
