//! Kiro's command line, and Amazon Q's before it. From documentation and second-hand captures; not
//! run.
//!
//! Exit code 2 denies, with the reason on standard error; nothing can be asked or shown. What is
//! printed when a session starts or a prompt is submitted reaches the model, so nothing is.
//! Amazon Q names no session: all of them are one to us.

use super::files::{self, AgentFiles, entries, home};
use super::hooks::{self, HookTemplate};
use super::{CLAUDE, Dialect, edit, reply, run, trial};
use crate::model::Agent;

/// The row of Kiro. The tools of MCP servers are called `@server/tool`.
pub(super) const DIALECT: Dialect = Dialect {
    agent: Agent::Kiro,
    name: "kiro",
    title: "Kiro",
    asks: false,
    reads: &[&["fs_read", "read"]],
    tools: &[&[
        edit("fs_write", &["path"]),
        edit("write", &["path"]),
        run("execute_bash", &["command"]),
        run("shell", &["command"]),
    ]],
    answer: reply::EXIT_CODE,
    trial: trial(
        "preToolUse",
        r#"{"hook_event_name":"preToolUse","cwd":"DIR","session_id":"doctor",
        "tool_name":"TOOL","tool_input":{"ARGUMENT":"COMMAND"}}"#,
    ),
    files: AgentFiles {
        base: home(".kiro"),
        programs: &["kiro-cli", "q"],
        each: &[entries(".kiro/agents"), entries(".aws/amazonq/cli-agents")],
        then: Some(
            "its hooks are in the file of each agent of yours, and its built-in agent has none: \
             install again after you make another agent",
        ),
        watched_project: &[".kiro/agents/beforehand.json"],
        ..files::PLAIN
    },
    hooks: HookTemplate {
        events: &["agentSpawn", "userPromptSubmit", "preToolUse", "postToolUse", "stop"],
        hook: r#"{"command":"LINE","timeout_ms":30000,"cache_ttl_seconds":0}"#,
        matcher: Some("*"),
        ..hooks::FLAT
    },
    ..CLAUDE
};
