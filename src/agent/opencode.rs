//! `OpenCode`, through the plugin in `hooks/opencode/beforehand.js`. The hooks that the plugin uses
//! were run against 1.18.33.
//!
//! `OpenCode` has no hooks on standard input: both ends of this protocol are ours. Paths may be
//! relative to the directory of the instance, commands to their `workdir`. The plugin turns a
//! child session into its root session and a `subagent`.

use super::{
    CLAUDE, Dialect, EventKind, EventName, Tool, edit, event, patch, reply, run, trial_of_plugin,
    write,
};
use crate::model::Agent;

/// The row of our plugin.
pub(super) const DIALECT: Dialect = Dialect {
    agent: Agent::OpenCode,
    name: "opencode",
    title: "OpenCode",
    events: EVENTS,
    reads: &[READS],
    tools: &[TOOLS],
    answer: reply::PLUGIN,
    prompt: Some(unquoted),
    trial: trial_of_plugin(
        r#"{"session_id":"doctor","message_id":"1","cwd":"DIR","worktree":"DIR",
        "hook_event_name":"tool.execute.before","call_id":"1","tool_name":"TOOL",
        "tool_input":{"ARGUMENT":"COMMAND"}}"#,
        r#"const hooks = await plugin.Beforehand({ directory: dir, worktree: dir })
        const call = { sessionID: "doctor", callID: "1", tool: "bash" }
        await hooks["tool.execute.before"](call, { args: { command } })"#,
    ),
    ..CLAUDE
};

pub(super) const EVENTS: &[EventName] = &[
    event("tool.execute.before", EventKind::ToolCall),
    event("tool.execute.after", EventKind::ToolDone),
    event("command.execute.before", EventKind::CommandLine),
    event("command.executed", EventKind::CommandLineDone),
    event("chat.message", EventKind::TurnBegins),
    event("session.idle", EventKind::TurnEnds),
    event("session.created", EventKind::SessionBegins),
    event("session.deleted", EventKind::SessionEnds),
];

/// `task` starts a child session; whether its calls reach the plugin was not run.
pub(super) const READS: &[&str] = &[
    "read", "glob", "grep", "list", "webfetch", "websearch", "codesearch", "todowrite", "todoread",
    "question",
];

pub(super) const TOOLS: &[Tool] = &[
    write("write", &["filePath"]),
    edit("edit", &["filePath"]),
    edit("multiedit", &["filePath"]),
    patch("apply_patch", &["patchText"]),
    patch("patch", &["patchText"]),
    run("bash", &["command"]),
];

/// `opencode run` puts the prompt from its command line between double quotes.
fn unquoted(prompt: String) -> String {
    let inner = prompt.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    match inner.filter(|inner| !inner.replace("\\\"", "").contains('"')) {
        Some(inner) => inner.replace("\\\"", "\""),
        None => prompt,
    }
}
