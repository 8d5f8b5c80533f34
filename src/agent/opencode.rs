//! `OpenCode`, through the plugin in `hooks/opencode/beforehand.js`. The hooks that the plugin uses
//! were run against 1.18.33.
//!
//! `OpenCode` has no hooks on standard input: both ends of this protocol are ours. Paths may be
//! relative to the directory of the instance, commands to their `workdir`. The plugin turns a
//! child session into its root session and a `subagent`.

use super::files::{self, AgentFiles, InstallFile, PackageNote, command, home_or, plugin};
use super::hooks;
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
    files: AgentFiles {
        base: home_or(".config/opencode", "XDG_CONFIG_HOME", "opencode"),
        programs: &["opencode"],
        user: FILES,
        project_dir: ".opencode",
        project: FILES,
        watched: &[
            "plugin/beforehand.js", "plugin/beforehand.ts", "plugins/beforehand.ts",
            "opencode.json",
        ],
        watched_project: &[
            ".opencode/plugin/beforehand.js",
            ".opencode/plugin/beforehand.ts",
            ".opencode/plugins/beforehand.ts",
            "opencode.json",
        ],
        package: Some(PackageNote::Item("opencode.json", "plugin")),
        ..files::PLAIN
    },
    hooks: hooks::NONE,
    ..CLAUDE
};

const FILES: &[InstallFile] = &[
    plugin!("plugins/beforehand.js", "opencode/beforehand.js"),
    command!("command/checkpoint.md", "opencode/checkpoint.md"),
    command!("command/rollback.md", "opencode/rollback.md"),
    command!("command/revert.md", "opencode/revert.md"),
    command!("command/fork-turn.md", "opencode/fork-turn.md"),
];

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
