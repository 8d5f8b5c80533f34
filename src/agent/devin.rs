//! Cognition's Devin on the command line. Second-hand notes on 3000.2; not run.
//!
//! Claude Code's protocol with neither `cwd` nor transcript: the directory comes from the
//! environment. The names of its tools beyond `write`, and how it is denied, are unverified.

use super::input::Input;
use super::{
    BadPayload, Card, Dialect, EventKind, HookAnswer, Markers, claude, claude_code, reply,
};
use crate::model::{Agent, Decision, Event, Intent, Language};

/// The dialect of Devin.
pub(super) struct Devin;

impl Dialect for Devin {
    fn card(&self) -> Card {
        Card { agent: Agent::Devin, name: "devin-cli", title: "Devin", asks: false }
    }

    fn parse(&self, payload: &[u8], markers: &Markers) -> Result<Event, BadPayload> {
        claude::parse(payload, self.agent(), markers, intent)
    }

    fn answer(&self, kind: EventKind, decision: &Decision) -> HookAnswer {
        reply::claude_without_ask(kind, decision)
    }
}

/// Maps a tool to what it wants: its own, or Claude Code's.
fn intent(tool: &str, input: &Input) -> Intent {
    match tool {
        "write" => input.write(&["file_path"]),
        "edit" => input.edit(&["file_path"]),
        "bash" | "shell" | "exec" => input.run(&["command"], Language::Shell),
        "read" => Intent::Read,
        _ => claude_code::intent(tool, input),
    }
}
