//! pi, through the extension in `hooks/pi/beforehand.js`. Run against 1.6.0.
//!
//! pi has no hooks on standard input: both ends of this protocol are ours. Paths may be relative to
//! the working directory. A pi that was started in a tool of another reports its calls as a sub-agent
//! of that one's session.

use super::files::{self, AgentFiles, home_or, plugin};
use super::hooks;
use super::{
    CLAUDE, ConversationLog, Dialect, EventKind, calls, edit, event, reply, run, run_in,
    trial_of_plugin, write,
};
use crate::model::{Agent, Language};

/// The row of our extension.
pub(super) const DIALECT: Dialect = Dialect {
    agent: Agent::Pi,
    name: "pi",
    title: "pi",
    asks: true,
    // Each command is given to a new shell.
    keeps_shell: false,
    events: &[
        event("tool_call", EventKind::ToolCall),
        event("tool_result", EventKind::ToolDone),
        // The user's own `!` command.
        event("user_bash", EventKind::CommandLine),
        event("before_agent_start", EventKind::TurnBegins),
        event("agent_settled", EventKind::TurnEnds),
        event("session_shutdown", EventKind::SessionEnds),
    ],
    // `codemode` runs a script in a sandbox that reaches files only through other tools, each of
    // which is a call of its own (its documentation).
    reads: &[&["read", "grep", "find", "ls", "codemode", "tool_search"]],
    tools: &[&[
        write("write", &["path"]),
        edit("edit", &["path"]),
        run("bash", &["command"]),
        run_in("powershell", &["command"], Language::PowerShell),
    ]],
    answer: reply::PLUGIN,
    trial: trial_of_plugin(
        r#"{"hook_event_name":"tool_call","session_id":"doctor","turn_id":"1","cwd":"DIR",
        "call_id":"1","tool_name":"TOOL","tool_input":{"ARGUMENT":"COMMAND"}}"#,
        r#"const handlers = {}
        plugin.default({ on: (name, handler) => (handlers[name] = handler) })
        const event = { toolCallId: "1", toolName: "bash", input: { command } }
        const sessionManager = { getSessionId: () => "doctor" }
        await handlers.tool_call(event, { cwd: dir, mode: "print", sessionManager })"#,
    ),
    conversations: Some(ConversationLog { dir: "sessions", read: calls::pi }),
    files: AgentFiles {
        base: home_or(".pi/agent", "PI_CODING_AGENT_DIR", ""),
        programs: &["pi"],
        user: &[plugin!("extensions/beforehand.js", "pi/beforehand.js")],
        project: &[plugin!(".pi/extensions/beforehand.js", "pi/beforehand.js")],
        watched: &["extensions/beforehand.ts", "settings.json"],
        watched_project: &[".pi/extensions/beforehand.ts", ".pi/settings.json"],
        ..files::PLAIN
    },
    hooks: hooks::NONE,
    ..CLAUDE
};
