//! Microsoft's Amplifier, through its module for shell hooks. Read in the source of that module
//! (amplifier-core 2.0.2); not run.
//!
//! Payloads name neither event nor directory: the directory comes from the environment, and what
//! is in them has to tell the event. It asks no questions.

use serde_json::json;

use super::files::{self, AgentFiles, entries, home};
use super::hooks::{self, HookTemplate};
use super::reply::{self, AnswerForm, RefusalForm};
use super::{CLAUDE, Dialect, TrialCall, claude_code, trial, vscode_agent};
use crate::model::Agent;

/// The row of Amplifier.
pub(super) const DIALECT: Dialect = Dialect {
    agent: Agent::Amplifier,
    name: "amplifier",
    title: "Amplifier",
    asks: false,
    reads: &[claude_code::READS, vscode_agent::READS],
    tools: &[claude_code::TOOLS, vscode_agent::TOOLS],
    answer: AnswerForm {
        refusal: RefusalForm::Denial(|reason| json!({ "decision": "block", "reason": reason })),
        ..reply::CLAUDE
    },
    trial: TrialCall {
        dir_variable: Some("AMPLIFIER_PROJECT_DIR"),
        ..trial(
            "PreToolUse",
            r#"{"tool_name":"TOOL","tool_input":{"ARGUMENT":"COMMAND"},"session_id":"doctor"}"#,
        )
    },
    files: AgentFiles {
        base: home(".amplifier"),
        programs: &["amplifier"],
        project: &[entries(".amplifier/hooks/beforehand/hooks.json")],
        by_hand: Some(
            "only in projects, with its hook-shell module: `beforehand install amplifier --project`",
        ),
        watched: &["settings.yaml"],
        ..files::PLAIN
    },
    hooks: HookTemplate { events: &["PreToolUse"], ..hooks::CLAUDE },
    ..CLAUDE
};
