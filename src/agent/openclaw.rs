//! `OpenClaw`, through the plugin in `hooks/openclaw`. Run against 2026.9.6.
//!
//! `OpenClaw` has no hooks on standard input: both ends of this protocol are ours. A question becomes
//! its request for approval, which stops the call where nobody can give one. The plugin turns a
//! sub-agent's session into the one that started it and a `subagent`.

use super::files::{self, AgentFiles, FileKind, advice, file, home_or, plugin};
use super::hooks;
use super::{CLAUDE, Dialect, EventKind, edit, event, patch, reply, run, trial_of_plugin, write};
use crate::model::Agent;

/// The row of our plugin.
pub(super) const DIALECT: Dialect = Dialect {
    agent: Agent::OpenClaw,
    name: "openclaw",
    title: "OpenClaw",
    asks: true,
    events: &[
        event("before_tool_call", EventKind::ToolCall),
        event("after_tool_call", EventKind::ToolDone),
        event("before_prompt_build", EventKind::TurnBegins),
        event("agent_end", EventKind::TurnEnds),
    ],
    // `tool_call` calls another tool, and what `sessions_spawn` starts calls tools: each fires the
    // hook itself (the first was run).
    reads: &[&[
        "read", "ls", "tool_search", "tool_describe", "tool_call", "sessions_spawn",
        "sessions_yield",
    ]],
    tools: &[&[
        write("write", &["path"]),
        edit("edit", &["path"]),
        patch("apply_patch", &["input"]),
        run("exec", &["command"]),
    ]],
    answer: reply::PLUGIN,
    trial: trial_of_plugin(
        r#"{"hook_event_name":"before_tool_call","session_id":"doctor",
        "turn_id":"1","cwd":"DIR","call_id":"1","tool_name":"TOOL",
        "tool_input":{"ARGUMENT":"COMMAND"}}"#,
        r#"const handlers = {}
        plugin.default.register({ on: (name, handler) => (handlers[name] = handler) })
        const event = { toolCallId: "1", toolName: "exec", params: { command } }
        await handlers.before_tool_call(event, { sessionId: "doctor", runId: "1", workspaceDir: dir })"#,
    ),
    files: AgentFiles {
        base: home_or(".openclaw", "OPENCLAW_STATE_DIR", ""),
        programs: &["openclaw"],
        user: &[
            plugin!("extensions/beforehand/index.js", "openclaw/index.js"),
            advice!("extensions/beforehand/openclaw.plugin.json", "openclaw/openclaw.plugin.json"),
            file(
                "openclaw.json",
                FileKind::Setting(
                    &["plugins", "entries", "beforehand"],
                    include_str!("../../hooks/openclaw/entry.json"),
                ),
            ),
        ],
        ..files::PLAIN
    },
    hooks: hooks::NONE,
    ..CLAUDE
};
