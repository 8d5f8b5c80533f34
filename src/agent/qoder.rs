//! Qoder's command line, 1.1.52. Read in the skill inside its package; not run.
//!
//! Paths may be relative to the working directory.

use super::files::{self, AgentFiles, entries, home};
use super::hooks::{self, HookTemplate};
use super::{CLAUDE, Dialect, claude_code, reply};
use crate::model::Agent;

/// The row of Qoder: Claude Code's protocol and tools.
pub(super) const DIALECT: Dialect = Dialect {
    agent: Agent::Qoder,
    name: "qoder",
    title: "Qoder",
    asks: false,
    reads: &[claude_code::READS],
    tools: &[claude_code::TOOLS],
    answer: reply::QUIET,
    files: AgentFiles {
        base: home(".qoder"),
        programs: &["qodercli", "qoder"],
        user: &[entries("settings.json")],
        project: &[entries(".qoder/settings.json")],
        watched_project: &[".qoder/settings.local.json"],
        ..files::PLAIN
    },
    hooks: HookTemplate { events: hooks::WITH_FAILURES, matcher: Some(".*"), ..hooks::CLAUDE },
    ..CLAUDE
};
