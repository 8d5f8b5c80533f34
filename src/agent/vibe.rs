//! Mistral Vibe. Run against 3.0.3.
//!
//! Tools are named after their server; Vibe's own are `file_system.…`. Paths may be relative to the
//! working directory. No event tells that a turn begins: `post_agent` ends one, but not
//! one that was interrupted. Sub-agents have a
//! session of their own, which names its parent in each payload.

use serde_json::json;

use super::files::{self, AgentFiles, FileKind, file, home_or};
use super::hooks::{self, HookTemplate};
use super::reply::{AnswerForm, NoteForm, RefusalForm};
use super::{CLAUDE, Dialect, EventKind, TurnStart, edit, event, run, trial, write};
use crate::model::Agent;

/// The row of Mistral Vibe.
pub(super) const DIALECT: Dialect = Dialect {
    agent: Agent::Vibe,
    name: "vibe",
    title: "Mistral Vibe",
    asks: false,
    turns: TurnStart::CallAfterEnd,
    events: &[event("post_agent", EventKind::TurnEnds)],
    reads: &[&["file_system.read_file"]],
    tools: &[&[
        write("file_system.write_file", &["file_path"]),
        edit("file_system.edit", &["file_path"]),
        run("file_system.bash", &["command"]),
    ]],
    answer: AnswerForm {
        refusal: RefusalForm::Denial(|reason| json!({ "decision": "deny", "reason": reason })),
        note: NoteForm::Key("system_message"),
        tells_model_at: None,
        // An empty decision would be "allow".
        neutral: "",
    },
    trial: trial(
        "pre_tool",
        r#"{"session_id":"doctor","cwd":"DIR","hook_event_name":"pre_tool","tool_name":"TOOL",
        "tool_call_id":"1","tool_input":{"ARGUMENT":"COMMAND"}}"#,
    ),
    files: AgentFiles {
        base: home_or(".vibe", "VIBE_HOME", ""),
        programs: &["vibe"],
        user: &[file("hooks.toml", FileKind::TomlList("type"))],
        watched_project: &[".vibe/hooks.toml"],
        ..files::PLAIN
    },
    hooks: HookTemplate {
        events: &["pre_tool", "post_tool", "post_agent"],
        hook: r#"{"name":"beforehand-NAME","type":"EVENT","command":"LINE","timeout":30}"#,
        ..hooks::FLAT
    },
    ..CLAUDE
};
