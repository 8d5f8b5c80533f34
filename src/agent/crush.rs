//! Charm's Crush. Read in its source; not run.
//!
//! It has one event, and fires it for the top-level agent only: what a sub-agent does is not told
//! to us, so starting one counts as unknown. There is no turn: a session is all we know.

use serde::Deserialize;
use serde_json::json;

use super::input::Input;
use super::payload::{self, AgentPayload, Heard, hear};
use super::wire::Text;
use super::{BadPayload, Dialect, EventKind, mcp, reply};
use crate::model::{Agent, Intent, Language};

/// The dialect of Crush.
pub(super) const DIALECT: Dialect = Dialect {
    agent: Agent::Crush,
    name: "crush",
    title: "Crush",
    asks: false,
    tells_ends: true,
    keeps_shell: true,
    hear: hear::<CrushPayload>,
    intent,
    answer: |kind, decision| {
        reply::denial(kind, decision, |reason| json!({ "decision": "deny", "reason": reason }))
    },
};

/// Tools that leave files alone.
const READS: &[&str] = &["view", "ls", "grep", "glob", "fetch", "sourcegraph", "todos"];

/// Maps a tool to what it wants.
fn intent(tool: &str, input: &Input) -> Intent {
    match tool {
        "write" | "download" => input.write(&["file_path"]),
        "edit" | "multiedit" => input.edit(&["file_path"]),
        "bash" => input.run(&["command"], Language::Shell),
        _ if READS.contains(&tool) => Intent::Read,
        _ => tool.strip_prefix("mcp_").map_or(Intent::Unknown, |name| mcp::intent(name, input)),
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct CrushPayload {
    event: Text,
    session_id: Text,
    cwd: Text,
    tool_name: Text,
    tool_input: Input,
}

impl AgentPayload for CrushPayload {
    fn kind(&self) -> Result<EventKind, BadPayload> {
        payload::kind(&self.event, &self.tool_name)
    }

    fn heard(self) -> Heard {
        Heard {
            session: self.session_id,
            cwd: self.cwd,
            tool: self.tool_name,
            input: self.tool_input,
            ..Heard::default()
        }
    }
}
