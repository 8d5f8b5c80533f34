//! Turns the payload of any agent into an event.
//!
//! Has the rules that all agents share: where fields are, which events mean the same everywhere, which
//! prompts begin no turn, from which directories a relative path may start, and that an event without a
//! known meaning counts as a call.

use std::path::{Path, PathBuf};

use super::arguments::Arguments;
use super::json::{self, Object, Place, is_same_name, places};
use super::{Dialect, EventKind, Markers, SubagentSessions, ToolKind};
use crate::model::{CallContext, Event, Intent, SessionId, ToolCall, TurnId, UnknownTool};

/// Stands for a session or a tool that the agent does not name.
const UNKNOWN: &str = "unknown";

/// Prompts that the agent wrote itself: Claude Code reports finished background tasks this way,
/// within the running turn.
const NOT_THE_USER: &str = "<task-notification>";

/// How many absolute paths among the arguments of an unknown tool count as directories that a relative
/// one may start from.
const BASES_MAX: usize = 8;

/// The places of each piece of information in a payload. The first place with a usable value counts. The
/// spelling (`tool_name`, `toolName`) does not matter, a dot leads into an object, and of a field that is
/// given twice each value is read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fields {
    /// The name of the event.
    pub(super) event: &'static [Place],
    /// The conversation.
    pub(super) session: &'static [Place],
    /// The conversation that started this one, if this is a sub-agent's own.
    pub(super) parent_session: &'static [Place],
    /// The user's request.
    pub(super) turn: &'static [Place],
    /// The directory worked in.
    pub(super) cwd: &'static [Place],
    /// Directories of the workspace, alone or in lists.
    pub(super) roots: &'static [Place],
    /// Where the conversation is kept.
    pub(super) transcript: &'static [Place],
    /// Where the agent's own server listens.
    pub(super) server: &'static [Place],
    /// The sub-agent.
    pub(super) subagent: &'static [Place],
    /// Fields that only sub-agents have. Needed if the main agent has a name in `subagent` too.
    pub(super) subagent_mark: &'static [Place],
    /// The permission mode.
    pub(super) mode: &'static [Place],
    /// The user's words.
    pub(super) prompt: &'static [Place],
    /// The name of this call.
    pub(super) call: &'static [Place],
    /// The tool.
    pub(super) tool: &'static [Place],
    /// Its arguments.
    pub(super) input: &'static [Place],
    /// The outcome: only a payload after a call has one.
    pub(super) result: &'static [Place],
}

/// The places that agents use. A new agent's place is added here. Only if one of these means something
/// else to an agent, its row replaces the list: it then has none of these.
pub(super) const FIELDS: Fields = Fields {
    event: &places(["hook_event_name", "hook_name", "event", "event_type", "agent_action_name"]),
    session: &places([
        "session_id",
        "conversation_id",
        "trajectory_id",
        "thread_id",
        "session_context.root_session_id",
        "task_id",
    ]),
    parent_session: &places(["parent_session_id", "calling_session_id"]),
    turn: &places([
        "prompt_id", "turn_id", "generation_id", "execution_id", "message_id", "extra.turn_id",
    ]),
    cwd: &places(["cwd", "working_dir", "working_directory", "tool_info.cwd"]),
    roots: &places(["workspace_root", "workspace_roots", "workspace_paths", "worktree"]),
    transcript: &places(["transcript_path"]),
    server: &places(["server"]),
    subagent: &places(["agent_id", "subagent"]),
    subagent_mark: &[],
    mode: &places(["permission_mode"]),
    prompt: &places([
        "prompt",
        "user_prompt",
        "user_prompt_submit.prompt",
        "extra.user_message",
        "tool_info.user_prompt",
    ]),
    call: &places([
        "tool_use_id", "tool_call_id", "call_id", "extra.tool_call_id", "tool_call.id",
        "tool_result.id", "step_idx",
    ]),
    tool: &places([
        "tool_name",
        "tool_call.name",
        "tool_result.name",
        "pre_tool_use.tool_name",
        "post_tool_use.tool_name",
    ]),
    input: &places([
        "tool_input",
        "tool_args",
        "tool_info",
        "tool_call.input",
        "tool_call.args",
        "tool_result.input",
        "pre_tool_use.parameters",
        "post_tool_use.parameters",
        "params",
    ]),
    result: &places(["tool_response", "tool_result", "tool_output", "post_tool_use", "error"]),
};

/// Fields that show the kind of an event whose name is missing or unknown.
const KIND_BY_FIELD: &[(Place, EventKind)] = &[
    (Place::of("prompt"), EventKind::TurnBegins),
    (Place::of("stop_reason"), EventKind::TurnEnds),
    (Place::of("termination_reason"), EventKind::TurnEnds),
    (Place::of("fully_idle"), EventKind::TurnEnds),
    (Place::of("source"), EventKind::SessionBegins),
    (Place::of("reason"), EventKind::SessionEnds),
];

/// Event names that mean the same to every agent that uses them. Agents load each other's hook
/// files, so every row knows the names of all.
const EVENTS: &[(&str, EventKind)] = &[
    ("PreToolUse", EventKind::ToolCall),
    ("BeforeTool", EventKind::ToolCall),
    ("pre_tool", EventKind::ToolCall),
    ("pre_tool_call", EventKind::ToolCall),
    ("PreSkillShellCommand", EventKind::CommandLine),
    ("PostToolUse", EventKind::ToolDone),
    ("PostToolUseFailure", EventKind::ToolDone),
    ("AfterTool", EventKind::ToolDone),
    ("post_tool", EventKind::ToolDone),
    ("post_tool_call", EventKind::ToolDone),
    ("UserPromptSubmit", EventKind::TurnBegins),
    ("UserPromptSubmitted", EventKind::TurnBegins),
    ("PromptSubmitted", EventKind::TurnBegins),
    ("BeforeAgent", EventKind::TurnBegins),
    ("Stop", EventKind::TurnEnds),
    ("StopFailure", EventKind::TurnEnds),
    ("SubagentStop", EventKind::TurnEnds),
    ("AgentStop", EventKind::TurnEnds),
    ("AfterAgent", EventKind::TurnEnds),
    ("Interrupt", EventKind::TurnEnds),
    ("SessionStart", EventKind::SessionBegins),
    ("AgentSpawn", EventKind::SessionBegins),
    ("SessionEnd", EventKind::SessionEnds),
    ("SubagentStart", EventKind::SubagentBegins),
    // None of these runs anything.
    ("Notification", EventKind::Other),
    ("UserPromptExpansion", EventKind::Other),
    ("PermissionRequest", EventKind::Other),
    ("PermissionDenied", EventKind::Other),
    ("PostToolBatch", EventKind::Other),
    ("CwdChanged", EventKind::Other),
    ("FileChanged", EventKind::Other),
    ("ConfigChange", EventKind::Other),
    ("InstructionsLoaded", EventKind::Other),
    ("DirectoryAdded", EventKind::Other),
    ("MessageDisplay", EventKind::Other),
    ("PreModelSwitch", EventKind::Other),
    ("PostModelSwitch", EventKind::Other),
    ("PreCompact", EventKind::Other),
    ("PostCompact", EventKind::Other),
    ("PreCompress", EventKind::Other),
    ("ErrorOccurred", EventKind::Other),
];

/// Turns one payload into an event.
pub(super) fn event(dialect: &Dialect, object: &Object<'_>, markers: &Markers) -> Event {
    let kind = kind(dialect, object);
    let payload = Payload { dialect, object, markers };
    match kind {
        EventKind::SessionBegins => match payload.child_of() {
            Some(child) => Event::SubagentBegins { context: payload.context(), child },
            None => Event::SessionBegins(payload.context()),
        },
        EventKind::SubagentBegins => match object.first(dialect.child_session, json::id) {
            Some(child) => {
                Event::SubagentBegins { context: payload.context(), child: SessionId(child) }
            }
            None => Event::Other,
        },
        EventKind::TurnBegins => payload.turn(),
        EventKind::ToolCall => Event::ToolCall(payload.call()),
        EventKind::CommandLine => Event::CommandLine(payload.call()),
        EventKind::CommandLineDone => Event::CommandLineDone(payload.call()),
        EventKind::ToolDone if payload.is_in_background() => {
            Event::ToolInBackground(payload.call())
        }
        EventKind::ToolDone => Event::ToolDone(payload.call()),
        EventKind::TurnEnds if payload.has_no_tasks() => Event::TurnEndsIdle(payload.context()),
        EventKind::TurnEnds => Event::TurnEnds(payload.context()),
        EventKind::SessionEnds => Event::SessionEnds(payload.context()),
        EventKind::Other => Event::Other,
    }
}

/// A call of which nothing is known but the text of its payload, or a part of it.
pub(super) fn unreadable_call(dialect: &Dialect, text: &str, markers: &Markers) -> ToolCall {
    let object = Object::default();
    let context = Payload { dialect, object: &object, markers }.context();
    let tool = UNKNOWN.to_owned();
    let texts = if text.trim().is_empty() { Vec::new() } else { vec![text.to_owned()] };
    let intent = Intent::Unknown(UnknownTool { name: tool.clone(), texts });
    ToolCall { context, id: None, tool, intent }
}

/// The kind of an event. Of two names that a payload gives, the one of a call counts. An unknown name
/// counts as a missing one.
fn kind(dialect: &Dialect, object: &Object<'_>) -> EventKind {
    let mut found = None;
    for place in dialect.fields.event {
        for value in object.values(*place) {
            let Some(name) = json::text(value.get()) else { continue };
            match named_kind(dialect, &name) {
                Some(EventKind::ToolCall) => return EventKind::ToolCall,
                Some(kind) => found = found.or(Some(kind)),
                None => found = found.or_else(|| Some(kind_by_fields(dialect, object))),
            }
        }
    }
    found.unwrap_or_else(|| kind_by_fields(dialect, object))
}

pub(super) fn named_kind(dialect: &Dialect, name: &str) -> Option<EventKind> {
    let own = dialect.events.iter().find(|event| is_same_name(event.name, name));
    let own = own.map(|event| event.kind);
    own.or_else(|| {
        EVENTS.iter().find(|(known, _)| is_same_name(known, name)).map(|(_, kind)| *kind)
    })
}

/// The kind of an event by its fields. One that they do not show may run anything: it counts as a call.
fn kind_by_fields(dialect: &Dialect, object: &Object<'_>) -> EventKind {
    if object.has(dialect.fields.tool) {
        let is_after = object.has(dialect.fields.result);
        return if is_after { EventKind::ToolDone } else { EventKind::ToolCall };
    }
    if object.has(dialect.fields.input) {
        return EventKind::ToolCall;
    }
    let own = dialect.kind_by_fields.and_then(|kind| kind(object));
    let by_field = || KIND_BY_FIELD.iter().find(|(place, _)| object.has(&[*place]));
    own.or_else(|| by_field().map(|(_, kind)| *kind)).unwrap_or(EventKind::ToolCall)
}

/// One payload of one agent.
struct Payload<'a, 'p> {
    dialect: &'a Dialect,
    object: &'a Object<'p>,
    markers: &'a Markers,
}

impl Payload<'_, '_> {
    fn text(&self, places: &[Place]) -> Option<String> {
        self.object.first(places, json::text)
    }

    fn id(&self, places: &[Place]) -> Option<String> {
        self.object.first(places, json::id)
    }

    /// A turn, unless the prompt is none of the user's: empty (Qwen Code submits one after every
    /// tool result), a notification, or from an agent to its sub-agent, whose work belongs to the
    /// turn that started it. The last may be the first that is told of the sub-agent's conversation.
    fn turn(&self) -> Event {
        let places = self.dialect.fields.prompt;
        let is_empty =
            |json: &str| json.starts_with('"') && json.trim_matches('"').trim().is_empty();
        let is_blank = self.object.first(places, |json| Some(is_empty(json)));
        let context = self.context();
        let prompt = self.text(places).map(|prompt| match self.dialect.prompt {
            Some(clean) => clean(prompt),
            None => prompt,
        });
        let is_no_request = match &prompt {
            Some(prompt) => prompt.trim().is_empty() || prompt.starts_with(NOT_THE_USER),
            None => is_blank == Some(true),
        };
        let starts_separate = self.dialect.subagents == SubagentSessions::Separate;
        match self.child_of().filter(|child| starts_separate && *child != context.session) {
            Some(child) => return Event::SubagentBegins { context, child },
            None if is_no_request || context.subagent.is_some() => return Event::Other,
            None => {}
        }
        Event::TurnBegins { context, prompt }
    }

    fn call(&self) -> ToolCall {
        let fields = self.dialect.fields;
        let tool = self.tool();
        let name = tool.clone().unwrap_or_else(|| UNKNOWN.to_owned());
        let mut context = self.context();
        let id = self.id(fields.call);
        if self.dialect.reads(&name) {
            return ToolCall { context, id, tool: name, intent: Intent::Read };
        }
        // A payload may give the input in two places at its top; which the agent obeys is not known.
        let mut inputs = Vec::new();
        for place in fields.input.iter().filter(|place| !place.is_nested) {
            self.object.add_values(*place, &mut inputs);
        }
        if inputs.is_empty() {
            let below = fields.input.iter().map(|place| self.object.values(*place));
            inputs = below.into_iter().find(|values| !values.is_empty()).unwrap_or_default();
        }
        let mut arguments = Arguments::collect(&inputs);
        if inputs.is_empty() {
            arguments = Arguments::of_rest(self.object, &known_places(fields));
        }
        // Grok Build sends the start of a long input. The part that was cut off may be the one that
        // destroys.
        let is_cut =
            self.object.first(&[Place::of("tool_input_truncated")], |json| Some(json == "true"));
        let known =
            if is_cut == Some(true) { None } else { self.known(tool.as_deref(), &arguments) };
        let mut intent = known.unwrap_or_else(|| {
            let texts = arguments.all_texts();
            Intent::Unknown(UnknownTool { name: name.clone(), texts })
        });
        let workdirs = match &intent {
            Intent::Run { .. } | Intent::Unknown(_) => arguments.workdirs(),
            Intent::Read | Intent::Write(_) | Intent::Edit(_) => Vec::new(),
        };
        // A command that says where it runs means its paths from there first.
        if let [dir] = workdirs.as_slice()
            && context.cwd.as_ref() != Some(dir)
        {
            intent = intent.run_in(dir);
        }
        for dir in workdirs.into_iter().rev() {
            let dir = context.cwd.as_deref().map_or(dir.clone(), |cwd| cwd.join(&dir));
            add_base(&mut context, dir, 0);
        }
        if let Intent::Unknown(unknown) = &intent {
            let paths = unknown.texts.iter().filter_map(|text| json::path_of(text));
            let absolute = paths.filter(|path| path.is_absolute() && path.parent().is_some());
            for dir in absolute.take(BASES_MAX) {
                let last = context.bases.len();
                add_base(&mut context, dir, last);
            }
        }
        ToolCall { context, id, tool: name, intent }
    }

    /// The tool. Of two that a payload names, neither is known.
    fn tool(&self) -> Option<String> {
        let event = self.text(self.dialect.fields.event);
        let event = event.unwrap_or_default();
        let fixed = self.dialect.events.iter().find(|it| is_same_name(it.name, &event));
        if let Some(tool) = fixed.and_then(|event| event.tool) {
            return Some(tool.to_owned());
        }
        let mut names: Vec<String> = Vec::new();
        for place in self.dialect.fields.tool {
            names.extend(self.object.values(*place).iter().filter_map(|it| json::text(it.get())));
        }
        names.dedup();
        match names.as_slice() {
            [] => None,
            [name] => Some(name.clone()),
            _ => Some(names.join(" ")),
        }
    }

    /// The intent of a tool that the row knows, if its arguments are understood.
    fn known(&self, tool: Option<&str>, arguments: &Arguments<'_>) -> Option<Intent> {
        let tool = tool?;
        let rows = self.dialect.tools.iter().flat_map(|table| table.iter());
        let mut rows = rows.filter(|row| row.name == tool);
        rows.find_map(|row| match row.kind {
            ToolKind::Write(names) => arguments.paths(names).map(Intent::Write),
            ToolKind::Edit(names) => arguments.paths(names).map(Intent::Edit),
            ToolKind::Run(names, language) => arguments.run(names, language),
            ToolKind::Patch(names) => arguments.patch(names),
        })
    }

    /// Whether the tool has only started something that goes on in the background.
    fn is_in_background(&self) -> bool {
        let fields = self.dialect.fields;
        let places = fields.input.iter().chain(fields.result);
        let values: Vec<_> = places.flat_map(|place| self.object.values(*place)).collect();
        Arguments::collect(&values).is_in_background()
    }

    /// Whether the agent says that none of its background tasks runs.
    fn has_no_tasks(&self) -> bool {
        let is_empty = |json: &str| Some(json.starts_with('[') && json[1..].trim_start() == "]");
        self.object.first(&[Place::of("background_tasks")], is_empty) == Some(true)
    }

    /// The conversation of this payload, if it is one that another conversation started.
    fn child_of(&self) -> Option<SessionId> {
        self.id(self.dialect.fields.parent_session)?;
        self.id(self.dialect.fields.session).map(SessionId)
    }

    fn context(&self) -> CallContext {
        let fields = self.dialect.fields;
        let own = self.id(fields.session);
        let parent = self.id(fields.parent_session).filter(|parent| Some(parent) != own.as_ref());
        let is_marked = fields.subagent_mark.is_empty() || self.object.has(fields.subagent_mark);
        let subagent = if parent.is_some() {
            own.clone()
        } else {
            self.id(fields.subagent).filter(|_| is_marked)
        };
        let is_sub = subagent.is_some();
        let project = self.markers.project_dir(self.dialect.agent);
        let mut roots = Vec::new();
        for place in fields.roots {
            for value in self.object.values(*place) {
                let paths = json::elements(value.get()).into_iter().filter_map(json::path);
                // Outside a repository OpenCode gives the root of the file system.
                roots.extend(paths.filter(|dir| dir.parent().is_some()));
            }
        }
        let cwd = self.object.first(fields.cwd, json::path);
        // An agent whose payloads do not say where it works may say so in the environment.
        let cwd = cwd.or_else(|| roots.first().cloned()).or_else(|| project.clone());
        let transcript = self.object.first(fields.transcript, json::path);
        let mut context = CallContext {
            agent: self.dialect.agent,
            session: SessionId(parent.or(own).unwrap_or_else(|| UNKNOWN.to_owned())),
            // A sub-agent may have a turn of its own, but its work belongs to the turn that
            // started it: the session's latest, which the ledger knows.
            turn: self.id(fields.turn).filter(|_| !is_sub).map(TurnId),
            cwd,
            bases: Vec::new(),
            // A relative path could not be resolved later.
            transcript: transcript.filter(|path| path.is_absolute()),
            server: self.text(fields.server),
            subagent,
            mode: self.text(fields.mode),
        };
        for dir in roots.into_iter().chain(project) {
            let last = context.bases.len();
            add_base(&mut context, dir, last);
        }
        context
    }
}

/// The places whose values are no arguments of a tool, for a payload that has the arguments at the top.
fn known_places(fields: &Fields) -> Vec<Place> {
    [
        fields.event, fields.session, fields.parent_session, fields.turn, fields.cwd, fields.roots,
        fields.transcript, fields.server, fields.subagent, fields.mode, fields.call, fields.tool,
    ]
    .concat()
}

/// Adds a directory that relative paths may start from, unless it is known already.
fn add_base(context: &mut CallContext, dir: PathBuf, at: usize) {
    let is_known = context.cwd.as_deref() == Some(Path::new(&dir)) || context.bases.contains(&dir);
    if !is_known {
        context.bases.insert(at, dir);
    }
}
