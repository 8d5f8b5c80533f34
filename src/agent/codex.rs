//! Codex. Run against 0.169.0, in plain and in code mode, with sub-agents.
//!
//! Its answers must be exact: one key too many, an "ask", or a denial without a reason voids the
//! whole answer, and the tool runs.
//!
//! Not told to us: the `workdir` of a shell command (it stands in the transcript), and what is
//! typed into a session that runs already. A patch applied from within a shell command is
//! reported as that command.

use super::input::Input;
use super::payload::AgentPayload;
use super::wire::{self, Text};
use super::{Dialect, EventKind, Hearing, HookAnswer, claude, mcp, reply};
use crate::model::{Agent, Decision, Intent, Language};

/// The dialect of Codex.
pub(super) const DIALECT: Dialect = Dialect {
    agent: Agent::Codex,
    name: "codex",
    title: "Codex",
    asks: false,
    tells_ends: true,
    keeps_shell: true,
    hear,
    intent,
    answer,
};

fn hear(payload: &[u8]) -> Hearing {
    let mut payload: claude::ClaudePayload = wire::read(payload)?;
    let kind = payload.kind()?;
    payload.prompt_id = std::mem::take(&mut payload.turn_id);
    // A sub-agent has a turn id of its own, but its work belongs to the turn that started it,
    // which only the session's latest prompt tells.
    if payload.agent_id.present() {
        payload.prompt_id = Text::Absent;
    }
    Ok((kind, payload.heard()))
}

fn answer(kind: EventKind, decision: &Decision) -> HookAnswer {
    reply::along("UserPromptSubmit", kind, decision)
        .unwrap_or_else(|| reply::claude_without_ask(kind, decision))
}

/// Tools that leave files alone. Namespaced ones arrive glued together. What sub-agents do fires
/// hooks of its own.
const READS: &[&str] = &[
    "view_image",
    "update_plan",
    "spawn_agent",
    "wait_agent",
    "collaborationspawn_agent",
    "collaborationwait_agent",
];

/// Maps a tool to what it wants. Shell tools of every name are reported as `Bash`.
fn intent(tool: &str, input: &Input) -> Intent {
    match tool {
        "Bash" => input.run(&["command"], Language::Shell),
        "apply_patch" => input.patch(&["command", "input", "patch"]),
        _ if READS.contains(&tool) => Intent::Read,
        _ => mcp::tool_of(tool).map_or(Intent::Unknown, |name| mcp::intent(name, input)),
    }
}
