//! `OpenHands`' command line, 1.16.0. Read in its package; not run.
//!
//! `file_editor` does whatever its `command` says, so each of its calls counts as an edit. Exit code 2
//! denies, with the reason on standard error.

use super::files::{self, AgentFiles, entries, home};
use super::json::places;
use super::payload::{FIELDS, Fields};
use super::{CLAUDE, Dialect, edit, patch, reply, run, trial, write};
use crate::model::Agent;

/// The row of `OpenHands`.
pub(super) const DIALECT: Dialect = Dialect {
    agent: Agent::OpenHands,
    name: "openhands",
    title: "OpenHands",
    asks: false,
    // A payload before a call has an empty result too.
    fields: &Fields { prompt: &places(["message"]), result: &[], ..FIELDS },
    reads: &[&["glob", "grep", "read_file", "list_directory", "think", "finish"]],
    tools: &[&[
        edit("file_editor", &["path"]),
        write("write_file", &["file_path"]),
        edit("edit", &["file_path"]),
        patch("apply_patch", &["patch"]),
        run("terminal", &["command"]),
    ]],
    answer: reply::EXIT_CODE,
    trial: trial(
        "PreToolUse",
        r#"{"event_type":"PreToolUse","tool_name":"TOOL",
        "tool_input":{"ARGUMENT":"COMMAND"},"session_id":"doctor","working_dir":"DIR"}"#,
    ),
    files: AgentFiles {
        base: home(".openhands"),
        programs: &["openhands"],
        user: &[entries("hooks.json")],
        project: &[entries(".openhands/hooks.json")],
        ..files::PLAIN
    },
    ..CLAUDE
};
