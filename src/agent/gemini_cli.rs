//! Gemini CLI. Run against 0.61.0.
//!
//! Paths arrive as the model wrote them, often relative to `cwd`; a shell command's `dir_path` is
//! relative to it too. There is no turn id and no call id. An exit code other than 0 and 1 denies
//! if anything was printed, a panic's 101 included; only the top-level `decision` is read.

use serde_json::json;

use super::files::{self, AgentFiles, InstallFile, PackageNote, command, entries, home};
use super::hooks::{self, HookTemplate};
use super::reply::{self, AnswerForm, RefusalForm};
use super::{CLAUDE, ConversationLog, Dialect, calls, edit, run, trial, write};
use crate::model::Agent;

/// The row of Gemini CLI.
pub(super) const DIALECT: Dialect = Dialect {
    agent: Agent::GeminiCli,
    name: "gemini-cli",
    title: "Gemini CLI",
    // It knows "ask", but without a person there (`-p`) it waits for an answer for ever.
    asks: false,
    // Each line is given to a new `bash -c`.
    keeps_shell: false,
    // `save_memory` writes a file of the agent's; whether what `invoke_agent` starts fires hooks is
    // unverified.
    reads: &[&[
        "read_file", "read_many_files", "list_directory", "glob", "grep_search",
        "search_file_content", "google_web_search", "web_fetch", "write_todos", "ask_user",
        "update_topic",
    ]],
    tools: &[&[
        write("write_file", &["file_path"]),
        edit("replace", &["file_path"]),
        run("run_shell_command", &["command"]),
    ]],
    answer: AnswerForm {
        refusal: RefusalForm::Denial(|reason| json!({ "decision": "deny", "reason": reason })),
        tells_model_at: Some("BeforeAgent"),
        ..reply::CLAUDE
    },
    trial: trial(
        "BeforeTool",
        r#"{"session_id":"doctor","cwd":"DIR","hook_event_name":"BeforeTool","tool_name":"TOOL",
        "tool_input":{"ARGUMENT":"COMMAND"}}"#,
    ),
    conversations: Some(ConversationLog { dir: "tmp", read: calls::gemini_cli }),
    files: AgentFiles {
        base: home(".gemini"),
        programs: &["gemini"],
        user: FILES,
        project_dir: ".gemini",
        project: FILES,
        second: 1000,
        package: Some(PackageNote::File("extensions/beforehand/gemini-extension.json")),
        ..files::PLAIN
    },
    hooks: HookTemplate {
        events: &[
            "SessionStart", "BeforeAgent", "BeforeTool", "AfterTool", "AfterAgent", "SessionEnd",
        ],
        hook: r#"{"name":"beforehand","type":"command","command":"LINE","timeout":30000}"#,
        matcher: Some(".*"),
        ..hooks::CLAUDE
    },
    ..CLAUDE
};

const FILES: &[InstallFile] = &[
    entries("settings.json"),
    command!("commands/checkpoint.toml", "gemini-cli/checkpoint.toml"),
    command!("commands/rollback.toml", "gemini-cli/rollback.toml"),
    command!("commands/revert.toml", "gemini-cli/revert.toml"),
    command!("commands/fork.toml", "gemini-cli/fork.toml"),
    command!("commands/undo.toml", "gemini-cli/undo.toml"),
];
