//! Block's Goose. Second-hand notes on 1.46; not run.
//!
//! How it is denied is unverified: exit code 2 with the reason on standard error, as its plugins
//! are said to do. It has further events for reads, edits and commands, with payloads that we have not
//! seen; `PreToolUse` is said to cover them.

use super::files::{self, AgentFiles, entries, home};
use super::reply::{self, AnswerForm};
use super::{CLAUDE, Dialect, edit, run, trial, write};
use crate::model::Agent;

/// The row of Goose. Other tools come from extensions, which are MCP servers without a common
/// prefix.
pub(super) const DIALECT: Dialect = Dialect {
    agent: Agent::Goose,
    name: "goose",
    title: "Goose",
    asks: false,
    tools: &[&[
        write("write", &["path"]),
        write("developer__write", &["path"]),
        edit("edit", &["path"]),
        edit("developer__edit", &["path"]),
        run("shell", &["command"]),
        run("developer__shell", &["command"]),
    ]],
    answer: AnswerForm { neutral: "{}", ..reply::EXIT_CODE },
    trial: trial(
        "PreToolUse",
        r#"{"event":"PreToolUse","session_id":"doctor","working_dir":"DIR",
        "tool_name":"TOOL","tool_input":{"ARGUMENT":"COMMAND"}}"#,
    ),
    files: AgentFiles {
        base: home(".config/goose"),
        hooks_base: Some(home(".agents")),
        programs: &["goose"],
        user: &[entries("plugins/beforehand/hooks/hooks.json")],
        project: &[entries(".agents/plugins/beforehand/hooks/hooks.json")],
        watched: &["config.yaml"],
        ..files::PLAIN
    },
    ..CLAUDE
};
