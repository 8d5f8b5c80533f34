//! Factory's Droid. From its documentation; not run.
//!
//! Claude Code's protocol, with no turn id and no call id in it. The names of today's tools
//! (`Create`, `ApplyPatch`, `Execute`) and their arguments are unverified.

use super::input::Input;
use super::{Answer, BadPayload, Card, Dialect, EventKind, Markers, claude, mcp, reply};
use crate::model::{Agent, Decision, Event, Intent, Language};

/// The dialect of Factory Droid.
pub(super) struct FactoryDroid;

impl Dialect for FactoryDroid {
    fn card(&self) -> Card {
        Card {
            agent: Agent::FactoryDroid,
            name: "factory-droid",
            title: "Factory Droid",
            asks: true,
        }
    }

    fn parse(&self, payload: &[u8], markers: &Markers) -> Result<Event, BadPayload> {
        claude::parse(payload, self.agent(), markers, intent)
    }

    fn answer(&self, kind: EventKind, decision: &Decision) -> Answer {
        reply::claude(kind, decision)
    }
}

/// Tools that leave files alone.
const READS: &[&str] = &["Read", "LS", "Grep", "Glob", "WebSearch", "FetchUrl", "TodoWrite"];

/// Maps a tool to what it wants.
fn intent(tool: &str, input: &Input) -> Intent {
    match tool {
        "Write" | "Create" => input.write(&["file_path"]),
        "Edit" | "MultiEdit" => input.edit(&["file_path"]),
        "ApplyPatch" => input.patch(&["patch", "input"]),
        "Bash" | "Execute" => input.run(&["command"], Language::Shell),
        _ if READS.contains(&tool) => Intent::Read,
        _ => mcp::tool_of(tool).map_or(Intent::Unknown, |name| mcp::intent(name, input)),
    }
}
