//! Nous Research's Hermes agent. Run against 0.19.0.
//!
//! It ignores exit codes and asks no questions, and nothing can be shown to the user.
//!
//! Not told to us: where relative paths are meant from. The payload has the directory of the
//! process; the file tools go by the terminal's, which an earlier command's `workdir` moved.

use serde_json::json;

use super::files::{self, AgentFiles, FileKind, LineRunner, file, home_or};
use super::hooks::{self, HookTemplate};
use super::json::places;
use super::{
    CLAUDE, Dialect, EventKind, SubagentSessions, edit, event, patch, reply, run, run_in, trial,
    write,
};
use crate::model::{Agent, Language};

/// The row of Hermes.
pub(super) const DIALECT: Dialect = Dialect {
    agent: Agent::Hermes,
    name: "hermes",
    title: "Hermes",
    asks: false,
    subagents: SubagentSessions::Separate,
    events: &[
        event("pre_llm_call", EventKind::TurnBegins),
        // Despite its name, the second fires for every turn.
        event("post_llm_call", EventKind::TurnEnds),
        event("on_session_end", EventKind::TurnEnds),
        event("on_session_start", EventKind::SessionBegins),
        event("on_session_finalize", EventKind::SessionEnds),
        // Not the end of the turn that started the sub-agent.
        event("subagent_stop", EventKind::Other),
    ],
    child_session: &places(["extra.child_session_id"]),
    reads: &[&["read_file", "search_files", "web_search", "web_extract", "vision_analyze", "todo"]],
    tools: &[&[
        write("write_file", &["path"]),
        // With `mode: "patch"`, and without.
        patch("patch", &["patch"]),
        edit("patch", &["path"]),
        run("terminal", &["command"]),
        run_in("execute_code", &["code"], Language::Code),
    ]],
    answer: reply::denial(|reason| json!({ "action": "block", "message": reason })),
    trial: trial(
        "pre_tool_call",
        r#"{"hook_event_name":"pre_tool_call","tool_name":"TOOL","session_id":"doctor",
        "tool_input":{"ARGUMENT":"COMMAND"},"cwd":"DIR",
        "extra":{"task_id":"doctor","tool_call_id":"1","turn_id":"1"}}"#,
    ),
    files: AgentFiles {
        base: home_or(".hermes", "HERMES_HOME", ""),
        programs: &["hermes"],
        user: &[file("config.yaml", FileKind::Yaml)],
        then: Some("Hermes asks once for each hook before it runs it: say yes"),
        watched: &["shell-hooks-allowlist.json"],
        runner: LineRunner::Words,
        ..files::PLAIN
    },
    hooks: HookTemplate {
        events: &[
            "on_session_start", "pre_llm_call", "pre_tool_call", "subagent_start",
            "post_tool_call", "on_session_end", "on_session_finalize",
        ],
        ..hooks::FLAT
    },
    ..CLAUDE
};
