//! Augment's Auggie, 0.36.0. Read in its package; not run, for it needs an account.
//!
//! Paths may be relative to the workspace.

use super::files::{self, AgentFiles, entries, home};
use super::hooks::{self, HookTemplate};
use super::{CLAUDE, Dialect, EventKind, edit, event, patch, reply, run, trial, write};
use crate::model::Agent;

/// The row of Auggie.
pub(super) const DIALECT: Dialect = Dialect {
    agent: Agent::Auggie,
    name: "auggie",
    title: "Auggie",
    asks: false,
    events: &[event("PromptSubmit", EventKind::TurnBegins)],
    reads: &[&["view", "codebase-retrieval", "web-search", "web-fetch"]],
    tools: &[&[
        write("save-file", &["path"]),
        edit("str-replace-editor", &["path"]),
        edit("remove-files", &["file_paths"]),
        patch("apply_patch", &["input", "patch"]),
        run("launch-process", &["command"]),
    ]],
    answer: reply::QUIET,
    trial: trial(
        "PreToolUse",
        r#"{"hook_event_name":"PreToolUse","conversation_id":"doctor",
        "workspace_roots":["DIR"],"tool_name":"TOOL","tool_input":{"ARGUMENT":"COMMAND"}}"#,
    ),
    files: AgentFiles {
        base: home(".augment"),
        programs: &["auggie"],
        user: &[entries("settings.json")],
        project: &[entries(".augment/settings.json")],
        watched_project: &[".augment/settings.local.json"],
        second: 1000,
        ..files::PLAIN
    },
    hooks: HookTemplate {
        events: &[
            "SessionStart", "PromptSubmit", "PreToolUse", "PostToolUse", "Stop", "SessionEnd",
        ],
        hook: hooks::HOOK_MS,
        matcher: Some(".*"),
        ..hooks::CLAUDE
    },
    ..CLAUDE
};
