//! The hooks that an agent gets: its events, and how its settings write one of them. `install` puts
//! them into the user's files; the files of `hooks/` show them.

use std::time::Duration;

use serde_json::{Map, Value, json};

/// The hooks of one agent, without the program that they run.
#[derive(Clone, Copy, Debug)]
pub struct HookTemplate {
    /// The events, in the order in which they are written.
    pub events: &'static [&'static str],
    /// One hook, as JSON. `LINE` stands for the line that is run, `EVENT` for the event, and `NAME`
    /// for the event without underscores.
    pub hook: &'static str,
    /// Whether an event has groups of hooks, and not hooks.
    pub in_groups: bool,
    /// The matcher that matches every tool, for events about tools.
    pub matcher: Option<&'static str>,
    /// The key that holds the events; `None` if they are at the top.
    pub holder: Option<&'static str>,
    /// Other keys at the top, as JSON.
    pub top: &'static str,
    /// Events with another timeout than `hook` has.
    pub timeouts: &'static [(&'static str, u64)],
    /// How many seconds the agent waits for a hook at most, if it does not heed the timeout.
    pub waits_max_secs: u64,
}

/// The events about tools, for which a matcher counts.
const TOOL_EVENTS: &[&str] = &[
    "PreToolUse", "PostToolUse", "PostToolUseFailure", "BeforeTool", "AfterTool", "preToolUse",
    "postToolUse",
];

/// Claude Code's form, which most agents took over.
pub(super) const CLAUDE: HookTemplate = HookTemplate {
    events: &[
        "SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop", "SessionEnd",
    ],
    hook: r#"{"type":"command","command":"LINE","timeout":30}"#,
    in_groups: true,
    matcher: Some("*"),
    holder: Some("hooks"),
    top: "{}",
    timeouts: &[],
    waits_max_secs: u64::MAX,
};

/// The events of [`CLAUDE`], for agents with an event of its own for a tool that failed.
pub(super) const WITH_FAILURES: &[&str] = &[
    "SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "PostToolUseFailure", "Stop",
    "SessionEnd",
];

/// A hook as [`CLAUDE`] has it, for agents that count milliseconds.
pub(super) const HOOK_MS: &str = r#"{"type":"command","command":"LINE","timeout":30000}"#;

/// The form in which each event has its hooks, and no group.
pub(super) const FLAT: HookTemplate = HookTemplate {
    hook: r#"{"command":"LINE","timeout":30}"#,
    in_groups: false,
    matcher: None,
    ..CLAUDE
};

/// For agents that run a plugin.
pub(super) const NONE: HookTemplate = HookTemplate { events: &[], ..CLAUDE };

impl HookTemplate {
    /// Stands for the line that a hook runs.
    pub const LINE: &str = "LINE";

    /// The hook for one event.
    pub fn hook(&self, event: &str) -> Map<String, Value> {
        let text = self.hook.replace("EVENT", event).replace("NAME", &event.replace('_', "-"));
        let mut hook: Map<String, Value> =
            serde_json::from_str(&text).expect("a test reads every hook");
        if let Some((_, timeout)) = self.timeouts.iter().find(|(known, _)| *known == event) {
            hook.insert("timeout".to_owned(), json!(timeout));
        }
        hook
    }

    /// How long the agent waits for the hook of an event. `second` is a second in the unit of its timeouts.
    pub(super) fn waits(&self, event: &str, second: u64) -> Option<Duration> {
        let hook = self.hook(event);
        let keys = [("timeout", second), ("timeoutSec", second), ("timeout_ms", 1000)];
        let secs = keys.iter().find_map(|(key, unit)| Some(hook.get(*key)?.as_u64()? / unit))?;
        Some(Duration::from_secs(secs.min(self.waits_max_secs)))
    }

    /// The settings with the hooks for all events but some, with the events below `holder`.
    pub fn settings(&self, holder: Option<&str>, left_out: &[&str]) -> Value {
        let mut events = Map::new();
        for event in self.events.iter().filter(|event| !left_out.contains(event)) {
            events.insert((*event).to_owned(), json!([self.group(event)]));
        }
        let mut settings: Map<String, Value> =
            serde_json::from_str(self.top).expect("a test reads every hook");
        match holder {
            Some(key) => drop(settings.insert(key.to_owned(), events.into())),
            None => settings.extend(events),
        }
        settings.into()
    }

    /// The entry in the list of an event.
    fn group(&self, event: &str) -> Map<String, Value> {
        let matcher = self.matcher.filter(|_| TOOL_EVENTS.contains(&event));
        let matcher = matcher.map(|matcher| ("matcher".to_owned(), json!(matcher)));
        let hook = self.hook(event);
        if self.in_groups {
            matcher.into_iter().chain([("hooks".to_owned(), json!([hook]))]).collect()
        } else {
            hook.into_iter().chain(matcher).collect()
        }
    }
}
