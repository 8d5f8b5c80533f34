//! Cline. Its command line was run against 3.0.65; the payloads of the editor extension's older
//! protocol are read in its source and unverified.
//!
//! A denial cancels the whole run, not one call. Exit codes are not looked at. The prompt hook
//! did not fire for the first prompt of a one-shot run, so the start of a task begins a turn.
//! There is no turn id and no transcript. In the older protocol, and beside the newer, the
//! arguments are all turned into text.

use serde_json::json;

use super::files::{self, AgentFiles, FileKind, InstallFile, file, home};
use super::hooks::{self, HookTemplate};
use super::json::places;
use super::payload::{FIELDS, Fields};
use super::settings::{in_home, project, user};
use super::{CLAUDE, Dialect, EventKind, edit, event, patch, reply, run, trial, write};
use crate::model::Agent;

/// The row of Cline.
pub(super) const DIALECT: Dialect = Dialect {
    agent: Agent::Cline,
    name: "cline",
    title: "Cline",
    // It knows "review", but where tools are approved by themselves, as they are by default, it
    // runs the tool.
    asks: false,
    // Names other than those of a tool, a start and an end are unverified.
    events: &[
        event("tool_call", EventKind::ToolCall),
        event("tool_result", EventKind::ToolDone),
        event("agent_start", EventKind::TurnBegins),
        event("TaskStart", EventKind::TurnBegins),
        event("prompt_submit", EventKind::TurnBegins),
        event("agent_resume", EventKind::SessionBegins),
        event("TaskResume", EventKind::SessionBegins),
        event("agent_end", EventKind::TurnEnds),
        event("agent_abort", EventKind::TurnEnds),
        event("agent_error", EventKind::TurnEnds),
        event("TaskComplete", EventKind::TurnEnds),
        event("TaskCancel", EventKind::TurnEnds),
        event("TaskError", EventKind::TurnEnds),
        event("session_shutdown", EventKind::SessionEnds),
    ],
    fields: &Fields {
        session: &places(["session_context.root_session_id", "task_id"]),
        subagent_mark: &places(["parent_agent_id"]),
        input: &places([
            "tool_call.input",
            "tool_result.input",
            "pre_tool_use.parameters",
            "post_tool_use.parameters",
        ]),
        ..FIELDS
    },
    // Those seen, and the older ones read in the source.
    reads: &[&[
        "read_files",
        "read_file",
        "list_files",
        "search_files",
        "list_code_definition_names",
    ]],
    tools: &[&[
        edit("editor", &["path"]),
        edit("replace_in_file", &["path"]),
        write("write_to_file", &["path"]),
        // Several commands run one after the other.
        run("run_commands", &["commands"]),
        run("execute_command", &["command"]),
        // Offered to GPT models; its arguments are unverified.
        patch("apply_patch", &["patch", "input"]),
    ]],
    answer: reply::denial(|reason| json!({ "cancel": true, "errorMessage": reason })),
    trial: trial(
        "PreToolUse",
        r#"{"taskId":"doctor","workspaceRoots":["DIR"],"hookName":"tool_call",
        "tool_call":{"id":"1","name":"run_commands","input":{"commands":["COMMAND"]}},
        "preToolUse":{"toolName":"run_commands","parameters":{"commands":"[\"COMMAND\"]"}}}"#,
    ),
    files: AgentFiles {
        base: home(".cline"),
        programs: &["cline"],
        user: FILES,
        project_dir: ".clinerules",
        project: FILES,
        watched_project: &[".cline/hooks/PreToolUse"],
        ..files::PLAIN
    },
    hooks: HookTemplate {
        events: &["PreToolUse", "PostToolUse", "UserPromptSubmit", "TaskStart", "TaskComplete"],
        ..hooks::FLAT
    },
    hook_files: &[
        user("hooks/PreToolUse*"),
        in_home("Documents/Cline/Hooks/PreToolUse*"),
        project(".clinerules/hooks/PreToolUse*"),
        project(".cline/hooks/PreToolUse*"),
    ],
    ..CLAUDE
};

const FILES: &[InstallFile] = &[
    file("hooks/PreToolUse", FileKind::Script),
    file("hooks/PostToolUse", FileKind::Script),
    file("hooks/UserPromptSubmit", FileKind::Script),
    file("hooks/TaskStart", FileKind::Script),
    file("hooks/TaskComplete", FileKind::Script),
];
