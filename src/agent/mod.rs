//! One dialect for each agent: its payloads in, its answers out.
//!
//! Pure: bytes to [`Event`], [`Decision`] to bytes. A dialect never opens a file and never looks
//! at the environment; the few variables that matter are handed in as [`Markers`].
//!
//! A dialect is chosen by name, and [`corrected`] by markers, never by the payload's shape.

mod amplifier;
mod antigravity;
mod claude;
mod claude_code;
mod cline;
mod codex;
mod copilot_cli;
mod crush;
mod cursor;
mod devin;
mod factory_droid;
mod gemini_cli;
mod goose;
mod grok_build;
mod hermes;
#[cfg(test)]
mod hooks_tests;
mod input;
mod kiro;
mod markers;
mod mcp;
mod opencode;
mod patch;
mod payload;
mod qwen_code;
mod reply;
#[cfg(test)]
mod tests;
pub mod transcript;
mod vscode_agent;
mod windsurf;
mod wire;

pub use markers::{Markers, corrected};

use std::fmt;

use crate::model::{Agent, Decision, Event, Intent};

use payload::{Heard, IntentOf};

/// Every agent we speak, in the order `beforehand install` offers them.
pub const DIALECTS: &[Dialect] = &[
    claude_code::DIALECT,
    codex::DIALECT,
    gemini_cli::DIALECT,
    qwen_code::DIALECT,
    copilot_cli::DIALECT,
    opencode::DIALECT,
    cline::DIALECT,
    hermes::DIALECT,
    cursor::DIALECT,
    windsurf::DIALECT,
    kiro::DIALECT,
    factory_droid::DIALECT,
    crush::DIALECT,
    goose::DIALECT,
    antigravity::DIALECT,
    grok_build::DIALECT,
    devin::DIALECT,
    vscode_agent::DIALECT,
    amplifier::DIALECT,
];

/// How one agent talks to its hooks.
#[derive(Debug)]
pub struct Dialect {
    /// Which agent.
    pub agent: Agent,
    /// The name used on the command line, as in `--agent claude-code`.
    pub name: &'static str,
    /// The name people know it by, as in "Claude Code".
    pub title: &'static str,
    /// Whether this agent's hooks can make it ask its user. Where they cannot, [`Dialect::answer`]
    /// writes [`crate::model::Verdict::Ask`] as a denial: asking first is no promise if not being
    /// able to ask means going ahead.
    pub asks: bool,
    /// Whether the hooks that `install` writes for it report the end of each call.
    pub tells_ends: bool,
    /// Whether the shell of one call may be that of the next, with its functions and aliases. An
    /// agent that is wrongly taken for one of those pays with scans.
    pub keeps_shell: bool,
    hear: fn(&[u8]) -> Hearing,
    intent: IntentOf,
    answer: fn(EventKind, &Decision) -> HookAnswer,
}

impl Dialect {
    /// Reads one payload.
    ///
    /// # Errors
    ///
    /// Fails if it is not one JSON object, or if nothing in it says what happened. A tool call
    /// with arguments that we do not understand is no error but [`crate::model::Intent::Unknown`].
    pub fn parse(&self, payload: &[u8], markers: &Markers) -> Result<Event, BadPayload> {
        let (kind, heard) = (self.hear)(payload)?;
        Ok(heard.into_event(self.agent, kind, markers, self.intent))
    }

    /// Writes our answer the way this agent expects it. Only a tool call can be denied or asked
    /// about; for any other event, and after a [`BadPayload`] ([`EventKind::Other`]), the verdict
    /// is left out.
    pub fn answer(&self, kind: EventKind, decision: &Decision) -> HookAnswer {
        (self.answer)(kind, decision)
    }
}

/// What a payload says, field by field, and of which kind of event.
type Hearing = Result<(EventKind, Heard), BadPayload>;

/// What an [`Event`] is, without what it says. An answer depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EventKind {
    /// [`Event::SessionBegins`].
    SessionBegins,
    /// [`Event::TurnBegins`].
    TurnBegins,
    /// [`Event::ToolCall`].
    ToolCall,
    /// [`Event::ToolDone`].
    ToolDone,
    /// [`Event::TurnEnds`].
    TurnEnds,
    /// [`Event::SessionEnds`].
    SessionEnds,
    /// [`Event::Other`].
    Other,
}

impl From<&Event> for EventKind {
    fn from(event: &Event) -> Self {
        match event {
            Event::SessionBegins(_) => Self::SessionBegins,
            Event::TurnBegins { .. } => Self::TurnBegins,
            Event::ToolCall(_) => Self::ToolCall,
            Event::ToolDone(_) | Event::ToolInBackground(_) => Self::ToolDone,
            Event::TurnEnds(_) | Event::TurnEndsIdle(_) => Self::TurnEnds,
            Event::SessionEnds(_) => Self::SessionEnds,
            Event::Other => Self::Other,
        }
    }
}

/// What a hook prints, and how it exits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HookAnswer {
    /// For standard output.
    pub stdout: Vec<u8>,
    /// For standard error. Empty unless the agent takes its reason from there.
    pub stderr: Vec<u8>,
    /// The exit code: 0, unless the agent can be denied by nothing else, and then only to deny.
    pub exit: u8,
}

/// Finds a dialect by its command-line name.
pub fn by_name(name: &str) -> Option<&'static Dialect> {
    DIALECTS.iter().find(|dialect| dialect.name == name)
}

/// The dialect of an agent.
pub fn by_agent(agent: Agent) -> &'static Dialect {
    let found = DIALECTS.iter().find(|dialect| dialect.agent == agent);
    // Only a program that a person runs has no row there: it calls no hook, and nothing is installed
    // for it.
    found.unwrap_or(&PROGRAM)
}

/// Permission modes in which an agent still shows its user a question of a hook. Claude Code 2.1.329
/// and Qwen Code 0.24.4 begin in `auto` and show it there (run); `auto_edit` is Qwen Code's name for
/// `acceptEdits`.
const ASKING_MODES: &[&str] = &["default", "acceptEdits", "plan", "auto", "auto_edit"];

/// Whether an agent in this permission mode, in its own words, shows its user a question of a hook.
/// In `bypassPermissions`, `yolo` and their like it answers for its user, and runs the call; a mode
/// we do not know may do the same.
pub fn asks_in(mode: &str) -> bool {
    ASKING_MODES.contains(&mode)
}

/// A payload that does not have the shape its agent promised.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadPayload(String);

impl BadPayload {
    /// A payload that lacks what we cannot do without.
    fn missing(field: &str) -> Self {
        Self(format!("it has no `{field}`"))
    }
}

impl fmt::Display for BadPayload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot read the hook payload: {}", self.0)
    }
}

impl std::error::Error for BadPayload {}

impl From<serde_json::Error> for BadPayload {
    fn from(err: serde_json::Error) -> Self {
        /// An error can quote a whole string of the payload; this is enough to find it.
        const CHARS_MAX: usize = 200;
        Self(err.to_string().chars().take(CHARS_MAX).collect())
    }
}

/// The files a patch names; for fuzz/, which cannot see further in.
#[doc(hidden)]
pub fn patched(patch: &str) -> Option<Vec<std::path::PathBuf>> {
    patch::paths(patch)
}

/// What stands where an agent has its dialect, for a program that a person runs with `beforehand run`. It
/// knows nothing of us.
const PROGRAM: Dialect = Dialect {
    agent: Agent::Program,
    name: "program",
    title: "beforehand run",
    asks: true,
    tells_ends: true,
    keeps_shell: false,
    hear: |_| Ok((EventKind::Other, Heard::default())),
    intent: |_, _| Intent::Unknown,
    answer: |_, _| HookAnswer::nothing(),
};
