//! Turns the payload of any agent into an event, in terms that all agents share.
//!
//! The rules for every agent stand here once: which prompts begin no turn, from which directories a
//! relative path may start, and that an unknown call is still a call.

use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;

use super::input::Input;
use super::wire::{self, Text};
use super::{BadPayload, EventKind, Hearing, Markers};
use crate::model::{Agent, CallContext, Event, Intent, SessionId, ToolCall, TurnId};

/// Stands for a session or a tool that the agent does not name.
const UNKNOWN: &str = "unknown";

/// Prompts that the agent wrote itself: Claude Code reports finished background tasks this way,
/// within the running turn.
const NOT_THE_USER: &str = "<task-notification>";

/// One payload, understood field by field.
#[derive(Clone, Debug, Default)]
pub(super) struct Heard {
    pub(super) session: Text,
    pub(super) turn: Text,
    pub(super) cwd: Text,
    /// Workspace directories other than the one worked in.
    pub(super) roots: Vec<PathBuf>,
    pub(super) transcript: Text,
    /// Where the agent's own server listens.
    pub(super) server: Text,
    pub(super) subagent: Text,
    pub(super) mode: Text,
    pub(super) prompt: Text,
    pub(super) call: Text,
    pub(super) tool: Text,
    pub(super) input: Input,
    /// Whether the tool has only started what goes on in the background.
    pub(super) in_background: bool,
    /// Whether the agent says that none of its background tasks runs.
    pub(super) has_no_tasks: bool,
}

/// A payload as one agent writes it.
pub(super) trait AgentPayload: DeserializeOwned {
    /// The kind of event it is about.
    fn kind(&self) -> Result<EventKind, BadPayload>;

    /// What it says.
    fn heard(self) -> Heard;
}

/// Reads a payload.
pub(super) fn hear<P: AgentPayload>(payload: &[u8]) -> Hearing {
    let payload: P = wire::read(payload)?;
    let kind = payload.kind()?;
    Ok((kind, payload.heard()))
}

/// How a dialect maps a tool and its arguments.
pub(super) type IntentOf = fn(&str, &Input) -> Intent;

impl Heard {
    /// The event this payload makes.
    pub(super) fn into_event(
        self,
        agent: Agent,
        kind: EventKind,
        markers: &Markers,
        intent: IntentOf,
    ) -> Event {
        match kind {
            EventKind::SessionBegins => Event::SessionBegins(self.context(agent, markers)),
            EventKind::TurnBegins => self.into_turn(agent, markers),
            EventKind::ToolCall => Event::ToolCall(self.into_call(agent, markers, intent)),
            EventKind::ToolDone if self.in_background || self.input.in_background() => {
                Event::ToolInBackground(self.into_call(agent, markers, intent))
            }
            EventKind::ToolDone => Event::ToolDone(self.into_call(agent, markers, intent)),
            EventKind::TurnEnds if self.has_no_tasks => {
                Event::TurnEndsIdle(self.context(agent, markers))
            }
            EventKind::TurnEnds => Event::TurnEnds(self.context(agent, markers)),
            EventKind::SessionEnds => Event::SessionEnds(self.context(agent, markers)),
            EventKind::Other => Event::Other,
        }
    }

    /// A turn, unless the prompt is none of the user's: empty (Qwen Code submits one after every
    /// tool result), a notification, or from an agent to its sub-agent: that one's work belongs to the
    /// turn that started it.
    fn into_turn(mut self, agent: Agent, markers: &Markers) -> Event {
        let prompt = std::mem::take(&mut self.prompt);
        let begins_none = match &prompt {
            Text::Is(text) => text.trim().is_empty() || text.starts_with(NOT_THE_USER),
            Text::Absent | Text::Scalar(_) | Text::Odd => false,
        };
        let context = self.context(agent, markers);
        if begins_none || context.subagent.is_some() {
            return Event::Other;
        }
        Event::TurnBegins { context, prompt: prompt.text() }
    }

    fn into_call(mut self, agent: Agent, markers: &Markers, intent: IntentOf) -> ToolCall {
        let tool = std::mem::take(&mut self.tool).text().unwrap_or_else(|| UNKNOWN.to_owned());
        let mut intent = intent(&tool, &self.input);
        let workdirs = match &intent {
            Intent::Run { .. } => self.input.workdirs(),
            Intent::Read | Intent::Write(_) | Intent::Edit(_) | Intent::Unknown => Vec::new(),
        };
        let id = std::mem::take(&mut self.call).id();
        let mut context = self.context(agent, markers);
        // A command that says where it runs means its paths from there before anywhere else.
        if let [dir] = workdirs.as_slice()
            && context.cwd.as_ref() != Some(dir)
        {
            intent = intent.run_in(dir);
        }
        for dir in workdirs.into_iter().rev() {
            let dir = context.cwd.as_deref().map_or(dir.clone(), |cwd| cwd.join(&dir));
            add_base(&mut context, dir, 0);
        }
        ToolCall { context, id, tool, intent }
    }

    fn context(self, agent: Agent, markers: &Markers) -> CallContext {
        let session = self.session.id().unwrap_or_else(|| UNKNOWN.to_owned());
        let project = markers.project_dir(agent);
        let mut context = CallContext {
            agent,
            session: SessionId(session),
            turn: self.turn.id().map(TurnId),
            // An agent that does not say where it works may say so in the environment.
            cwd: self.cwd.path().or_else(|| project.clone()),
            bases: Vec::new(),
            // A relative path could not be resolved later.
            transcript: self.transcript.path().filter(|path| path.is_absolute()),
            server: self.server.text(),
            subagent: self.subagent.id(),
            mode: self.mode.text(),
        };
        for dir in self.roots.into_iter().chain(project) {
            let last = context.bases.len();
            add_base(&mut context, dir, last);
        }
        context
    }
}

/// Adds a directory that relative paths may be meant from, unless it is known already.
fn add_base(context: &mut CallContext, dir: PathBuf, at: usize) {
    let known = |base: &Path| base == dir;
    if !context.cwd.as_deref().is_some_and(known) && !context.bases.iter().any(|base| known(base)) {
        context.bases.insert(at, dir);
    }
}

/// The kind of an event by its name, whatever its spelling: `PreToolUse`, `pre_tool_use` and
/// `preToolUse` are used by different agents for the same thing. A payload without a name but
/// with a tool is taken for a call: better one checkpoint too many.
pub(super) fn kind(name: &Text, tool: &Text) -> Result<EventKind, BadPayload> {
    match name {
        Text::Is(name) if !name.is_empty() => Ok(kind_by_name(name)),
        _ if tool.present() => Ok(EventKind::ToolCall),
        _ => Err(BadPayload::missing("hook_event_name")),
    }
}

/// Event names that mean the same to every agent that uses them.
fn kind_by_name(name: &str) -> EventKind {
    let plain: String = name.chars().filter(char::is_ascii_alphanumeric).collect();
    match plain.to_ascii_lowercase().as_str() {
        "pretooluse" => EventKind::ToolCall,
        "posttooluse" | "posttoolusefailure" => EventKind::ToolDone,
        "userpromptsubmit" | "userpromptsubmitted" => EventKind::TurnBegins,
        "stop" | "stopfailure" | "subagentstop" | "agentstop" | "interrupt" => EventKind::TurnEnds,
        "sessionstart" | "agentspawn" => EventKind::SessionBegins,
        "sessionend" => EventKind::SessionEnds,
        _ => EventKind::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unknown(_: &str, _: &Input) -> Intent {
        Intent::Unknown
    }

    #[test]
    fn a_call_we_know_nothing_about_is_still_a_call() {
        let event = Heard::default().into_event(
            Agent::Codex,
            EventKind::ToolCall,
            &Markers::default(),
            unknown,
        );
        let Event::ToolCall(call) = event else { panic!("{event:?}") };
        assert_eq!((call.context.session.0.as_str(), call.tool.as_str()), ("unknown", "unknown"));
        assert_eq!(call.intent, Intent::Unknown);
    }

    #[test]
    fn prompts_that_are_not_the_users_begin_no_turn() {
        let begins = |prompt: Text, subagent: Text| {
            let heard = Heard { subagent, prompt, ..Heard::default() };
            let markers = Markers::default();
            heard.into_event(Agent::ClaudeCode, EventKind::TurnBegins, &markers, unknown)
                != Event::Other
        };
        let is = |text: &str| Text::Is(text.to_owned());
        assert!(begins(is("do things"), Text::Absent));
        assert!(begins(Text::Absent, Text::Absent));
        assert!(!begins(is(""), Text::Absent));
        assert!(!begins(is(" \n"), Text::Absent));
        assert!(!begins(is("<task-notification>\n<task-id>"), Text::Absent));
        assert!(!begins(is("do things"), is("a1")));
    }

    #[test]
    fn a_tool_without_an_event_is_taken_for_a_call() {
        let tool = Text::Is("Write".to_owned());
        assert_eq!(kind(&Text::Absent, &tool), Ok(EventKind::ToolCall));
        assert_eq!(kind(&Text::Is(String::new()), &tool), Ok(EventKind::ToolCall));
        assert!(kind(&Text::Absent, &Text::Absent).is_err());
    }

    #[test]
    fn one_name_has_many_spellings() {
        for name in ["PreToolUse", "preToolUse", "pre_tool_use"] {
            assert_eq!(kind_by_name(name), EventKind::ToolCall);
        }
        assert_eq!(kind_by_name("PostToolBatch"), EventKind::Other);
    }
}
