//! A program that a person runs with `beforehand run`. It knows nothing of us.

use super::{BadPayload, Card, Dialect, EventKind, HookAnswer, Markers};
use crate::model::{Agent, Decision, Event};

/// What stands where an agent has its dialect.
pub(super) struct ProgramDialect;

impl Dialect for ProgramDialect {
    fn card(&self) -> Card {
        Card { agent: Agent::Program, name: "program", title: "beforehand run", asks: true }
    }

    fn keeps_shell(&self) -> bool {
        false
    }

    fn parse(&self, _: &[u8], _: &Markers) -> Result<Event, BadPayload> {
        Ok(Event::Other)
    }

    fn answer(&self, _: EventKind, _: &Decision) -> HookAnswer {
        HookAnswer { stdout: Vec::new(), stderr: Vec::new(), exit: 0 }
    }
}
