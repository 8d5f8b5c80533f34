//! Every agent as one row: its events, its tools, and the form of its answers.
//!
//! One reader turns the payloads of all agents into an [`Event`]; a row only says where its agent
//! puts things, and under which names. Reading is lenient: a field of another type costs that field
//! and nothing else, and a field given twice or in two spellings costs nothing. A tool or an event
//! that no row knows is a call that may change anything, and so is a payload that cannot be read.
//!
//! Pure: bytes to [`Event`], [`Decision`] to bytes. Nothing here opens a file or looks at the
//! environment; the few variables that matter are handed in as [`Markers`]. A row is chosen by
//! name, and [`corrected`] by markers, never by the payload's shape.

mod amplifier;
mod antigravity;
mod arguments;
mod auggie;
mod claude_code;
mod cline;
mod codex;
mod command_code;
mod copilot_cli;
mod crush;
mod cursor;
mod devin;
mod factory_droid;
mod files;
mod gemini_cli;
mod goose;
mod grok_build;
mod hermes;
mod hooks;
#[cfg(test)]
pub(crate) mod hooks_tests;
mod json;
mod kilo;
mod kimi;
mod kiro;
mod letta;
mod markers;
mod openclaw;
mod opencode;
mod openhands;
mod patch;
mod payload;
mod pi;
mod qoder;
mod qwen_code;
mod reply;
mod settings;
#[cfg(test)]
mod tests;
pub mod transcript;
mod trial;
mod vibe;
mod vscode_agent;
mod windsurf;

pub use files::{
    AgentFiles, AgentVersion, FileKind, InstallFile, LineRunner, NewerEvents, PackageNote,
    SettingsBase,
};
pub use hooks::HookTemplate;
pub use markers::{Markers, corrected};
pub use settings::{SettingsFile, Switch, SwitchValue};
pub use trial::TrialCall;

use std::{fmt, time::Duration};

use crate::model::{Agent, Decision, Event, Language, ToolCall};

use json::{Object, Place};
use payload::{FIELDS, Fields};
use reply::AnswerForm;
use transcript::{ConversationLog, calls};
use trial::{trial, trial_of_plugin};

/// Every agent that has hooks, in the order in which `beforehand install` offers them.
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
    pi::DIALECT,
    openclaw::DIALECT,
    kilo::DIALECT,
    vibe::DIALECT,
    auggie::DIALECT,
    openhands::DIALECT,
    kimi::DIALECT,
    qoder::DIALECT,
    letta::DIALECT,
    command_code::DIALECT,
];

/// One agent: a row of the table. `..CLAUDE` fills in the protocol that most agents took over from
/// Claude Code, so a row has only the differences.
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
    /// Which events of a call have its id.
    pub call_ids: CallIds,
    /// How it tells that a turn begins.
    pub turns: TurnStart,
    /// Whether the shell of one call may be that of the next, with its functions and aliases. An
    /// agent that is wrongly taken for one of those pays with scans.
    pub keeps_shell: bool,
    /// Where the work of a sub-agent is reported.
    pub subagents: SubagentSessions,
    /// The call that `doctor --prove` plays.
    pub trial: TrialCall,
    /// Where it keeps its hooks.
    pub files: AgentFiles,
    /// Its hooks.
    pub hooks: HookTemplate,
    /// Its conversations, if the calls in them can be compared with those that arrived.
    pub conversations: Option<ConversationLog>,
    /// Where it reads settings, the file that wins first.
    pub settings: &'static [SettingsFile],
    /// Where it reads hooks besides, and besides the files that `install` writes.
    pub hook_files: &'static [SettingsFile],
    /// The keys in its settings that keep hooks from running.
    pub switches: &'static [Switch],
    /// The keys in its settings with which it answers questions for its user, where its payload does not
    /// say so.
    pub answers_for_user: &'static [Switch],
    /// The key in its settings of the environment variables that its hooks get.
    pub variables: &'static str,
    /// Events that [`payload`] does not list for all agents, or that mean something else to this one.
    events: &'static [EventName],
    /// The fields of its payloads.
    fields: &'static Fields,
    /// Where [`EventKind::SubagentBegins`] names the conversation of the sub-agent, if the parent's
    /// conversation reports it. If the sub-agent's own [`EventKind::SessionBegins`] reports it, this
    /// stays empty, and `fields.parent_session` names the parent.
    child_session: &'static [Place],
    /// Lists of tools that leave files alone. A tool joins one with a reason, not for its name.
    reads: &'static [&'static [&'static str]],
    /// Lists of tools that change files, with the arguments that say which.
    tools: &'static [&'static [Tool]],
    /// The form of its answers.
    answer: AnswerForm,
    /// The kind of an event without a known name, if fields of this agent alone show it.
    kind_by_fields: Option<fn(&Object<'_>) -> Option<EventKind>>,
    /// Removes the text that the agent adds around a prompt.
    prompt: Option<fn(String) -> String>,
}

/// How an agent tells that a turn begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TurnStart {
    /// It names the turn of a call, reports the prompt, or keeps a transcript that has it.
    Prompt,
    /// It only tells the end of a turn: the first call after that begins the next one.
    CallAfterEnd,
}

/// Which events of a call have the id of the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallIds {
    /// Each of them, or none.
    AllOrNone,
    /// Not each: two events may announce one call, so its content identifies it.
    Some,
}

/// Where the work of a sub-agent is reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SubagentSessions {
    /// In the conversation that started it, or every payload names that conversation.
    Shared,
    /// In a conversation of its own. The event that starts it names the one that started it, or each
    /// payload does; that may be a sub-agent's too.
    Separate,
}

/// An event that only some agents have.
#[derive(Clone, Copy, Debug)]
struct EventName {
    name: &'static str,
    kind: EventKind,
    /// The tool that the event is about, where its name says so.
    tool: Option<&'static str>,
}

/// An event of one agent.
const fn event(name: &'static str, kind: EventKind) -> EventName {
    EventName { name, kind, tool: None }
}

/// An event that is about one tool.
const fn event_of(name: &'static str, kind: EventKind, tool: &'static str) -> EventName {
    EventName { name, kind, tool: Some(tool) }
}

/// A tool that changes files. If an agent uses one name for several tools, a list has a row for each,
/// and the first row whose arguments are there counts. A call whose arguments fit no row is unknown.
#[derive(Clone, Copy, Debug)]
struct Tool {
    name: &'static str,
    kind: ToolKind,
}

/// The kind of a tool, with the names of the arguments that it is about. The names are alternatives,
/// in any spelling.
#[derive(Clone, Copy, Debug)]
enum ToolKind {
    /// Replaces files.
    Write(&'static [&'static str]),
    /// Changes, moves or deletes files.
    Edit(&'static [&'static str]),
    /// Runs command lines.
    Run(&'static [&'static str], Language),
    /// Applies a patch in the envelope of `apply_patch`.
    Patch(&'static [&'static str]),
}

const fn write(name: &'static str, names: &'static [&'static str]) -> Tool {
    Tool { name, kind: ToolKind::Write(names) }
}

const fn edit(name: &'static str, names: &'static [&'static str]) -> Tool {
    Tool { name, kind: ToolKind::Edit(names) }
}

const fn run(name: &'static str, names: &'static [&'static str]) -> Tool {
    Tool { name, kind: ToolKind::Run(names, Language::Shell) }
}

const fn run_in(name: &'static str, names: &'static [&'static str], language: Language) -> Tool {
    Tool { name, kind: ToolKind::Run(names, language) }
}

const fn patch(name: &'static str, names: &'static [&'static str]) -> Tool {
    Tool { name, kind: ToolKind::Patch(names) }
}

/// Claude Code's protocol, as the base of each row. `agent`, `name` and `title` are placeholders.
const CLAUDE: Dialect = Dialect {
    agent: Agent::Program,
    name: "",
    title: "",
    asks: false,
    tells_ends: true,
    call_ids: CallIds::AllOrNone,
    turns: TurnStart::Prompt,
    keeps_shell: true,
    subagents: SubagentSessions::Shared,
    trial: trial::CLAUDE,
    files: files::PLAIN,
    hooks: hooks::CLAUDE,
    conversations: None,
    settings: &[],
    hook_files: &[],
    switches: &[],
    answers_for_user: &[],
    variables: "env",
    events: &[],
    fields: &FIELDS,
    child_session: &[],
    reads: &[],
    tools: &[],
    answer: reply::CLAUDE,
    kind_by_fields: None,
    prompt: None,
};

impl Dialect {
    /// Reads one payload. A tool call with arguments that no row understands is
    /// [`crate::model::Intent::Unknown`], with all of them.
    ///
    /// # Errors
    ///
    /// Fails if it is not one JSON object. [`Dialect::unreadable_call`] is the call that it may be.
    pub fn parse(&self, payload: &[u8], markers: &Markers) -> Result<Event, BadPayload> {
        if let Ok(text) = std::str::from_utf8(payload)
            && let Ok(object) = Object::of_payload(text)
        {
            return Ok(payload::event(self, &object, markers));
        }
        let text = json::repaired(payload);
        Object::of_payload(&text).map(|object| payload::event(self, &object, markers))
    }

    /// The call that a payload may be which [`Dialect::parse`] cannot read. Its text is all that is
    /// known of it.
    pub fn unreadable_call(&self, payload: &[u8], markers: &Markers) -> ToolCall {
        payload::unreadable_call(self, &json::repaired(payload), markers)
    }

    /// Writes our answer the way this agent expects it. Only a tool call can be denied or asked
    /// about; for any other event, and after a [`BadPayload`] ([`EventKind::Other`]), the verdict
    /// is left out.
    pub fn answer(&self, kind: EventKind, decision: &Decision) -> HookAnswer {
        self.answer.write(kind, decision, self.asks)
    }

    /// How long the agent waits for a hook about an event of this kind, if its row knows that. Our plugins wait as
    /// long as the settings of other agents say.
    pub fn waits(&self, kind: EventKind) -> Option<Duration> {
        let second = self.files.second;
        let events = self.hooks.events.iter();
        let events = events.filter(|event| payload::named_kind(self, event) == Some(kind));
        let shortest = events.filter_map(|event| self.hooks.waits(event, second)).min();
        shortest.or_else(|| self.hooks.waits("", second))
    }

    /// Whether a tool leaves files alone.
    fn reads(&self, tool: &str) -> bool {
        self.reads.iter().any(|names| names.contains(&tool))
    }
}

/// The kind of an [`Event`], without its content. The form of an answer depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EventKind {
    /// [`Event::SessionBegins`].
    SessionBegins,
    /// [`Event::TurnBegins`].
    TurnBegins,
    /// [`Event::SubagentBegins`].
    SubagentBegins,
    /// [`Event::ToolCall`].
    ToolCall,
    /// [`Event::CommandLine`].
    CommandLine,
    /// [`Event::CommandLineDone`].
    CommandLineDone,
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
            Event::SubagentBegins { .. } => Self::SubagentBegins,
            Event::ToolCall(_) => Self::ToolCall,
            Event::CommandLine(_) => Self::CommandLine,
            Event::CommandLineDone(_) => Self::CommandLineDone,
            Event::ToolDone(_) | Event::ToolInBackground(_) => Self::ToolDone,
            Event::TurnEnds(_) | Event::TurnEndsIdle(_) => Self::TurnEnds,
            Event::SessionEnds(_) => Self::SessionEnds,
            Event::Other => Self::Other,
        }
    }
}

/// The output of a hook, and its exit code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HookAnswer {
    /// For standard output.
    pub stdout: Vec<u8>,
    /// For standard error. Empty unless the agent takes its reason from there.
    pub stderr: Vec<u8>,
    /// The exit code: 0, unless the agent can be denied by nothing else, and then only to deny.
    pub exit: u8,
}

/// Finds a row by the name on the command line.
pub fn by_name(name: &str) -> Option<&'static Dialect> {
    DIALECTS.iter().find(|dialect| dialect.name == name)
}

/// The row of an agent.
pub fn by_agent(agent: Agent) -> &'static Dialect {
    let found = DIALECTS.iter().find(|dialect| dialect.agent == agent);
    // Only a program that a person runs is not in the table: it calls no hook, and nothing is
    // installed for it.
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

/// The reason why a payload cannot be read: it is not one JSON object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadPayload(String);

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

/// The row of `beforehand run`: no hook names it, and nothing is ever answered.
const PROGRAM: Dialect = Dialect {
    agent: Agent::Program,
    name: "program",
    title: "beforehand run",
    asks: true,
    keeps_shell: false,
    answer: reply::EXIT_CODE,
    ..CLAUDE
};
