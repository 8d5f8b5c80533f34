//! Factory's Droid. Run with 0.225.2.
//!
//! Claude Code's protocol, with no turn id and no call id in it, and no prompt's event in
//! `droid exec`. A sub-agent has a session of its own, whose start names the one that started it
//! (`calling_session_id`).
//! `ApplyPatch`, which models of one family are given, is unverified.

use super::files::{self, AgentFiles, advice, entries, home};
use super::{CLAUDE, Dialect, SubagentSessions, edit, patch, run, write};
use crate::model::Agent;

/// The row of Factory Droid.
pub(super) const DIALECT: Dialect = Dialect {
    agent: Agent::FactoryDroid,
    name: "factory-droid",
    title: "Factory Droid",
    // Its documentation knows "ask", but it takes the answer for no opinion: what is on its own
    // list of commands, or within its level of autonomy, runs, and its own question does not
    // say our reason.
    asks: false,
    subagents: SubagentSessions::Separate,
    reads: &[&["Read", "LS", "Grep", "Glob", "WebSearch", "FetchUrl", "TodoWrite"]],
    tools: &[&[
        write("Write", &["file_path"]),
        write("Create", &["file_path"]),
        edit("Edit", &["file_path"]),
        edit("MultiEdit", &["file_path"]),
        patch("ApplyPatch", &["patch", "input"]),
        run("Execute", &["command"]),
        run("Bash", &["command"]),
    ]],
    files: AgentFiles {
        base: home(".factory"),
        programs: &["droid"],
        user: &[
            entries("settings.json"),
            advice!("commands/beforehand.md", "prompts/beforehand.md"),
        ],
        project: &[entries(".factory/settings.json")],
        watched: &["hooks.json"],
        watched_project: &[".factory/hooks.json"],
        ..files::PLAIN
    },
    ..CLAUDE
};
