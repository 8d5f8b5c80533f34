//! The forms that answers take, shared by the agents that read the same one.
//!
//! No form says "allow", and none has a key its agent did not ask for: Codex throws away an
//! answer with a single unknown key, and runs the tool it denied.

use serde::Serialize;
use serde_json::json;

use super::{EventKind, HookAnswer};
use crate::model::{Decision, Verdict};

/// The exit code that denies, where nothing else does.
const DENY: u8 = 2;

/// Stands for a reason that is missing. An empty one voids a denial in Codex.
const NO_REASON: &str = "beforehand refuses this call";

impl HookAnswer {
    /// Nothing at all.
    pub(super) fn nothing() -> Self {
        Self { stdout: Vec::new(), stderr: Vec::new(), exit: 0 }
    }

    /// An object that says nothing.
    pub(super) fn neutral() -> Self {
        Self { stdout: b"{}".to_vec(), ..Self::nothing() }
    }

    /// One JSON document.
    pub(super) fn json(value: &impl Serialize) -> Self {
        let stdout = serde_json::to_vec(value).expect("strings and options always serialize");
        Self { stdout, ..Self::nothing() }
    }

    /// A denial for agents that know no other than an exit code, and read the reason from stderr.
    pub(super) fn exit_code(reason: &str) -> Self {
        Self { stderr: reason.as_bytes().to_vec(), exit: DENY, ..Self::nothing() }
    }
}

/// Whether the call must not go on unasked, and why.
pub(super) enum Say<'a> {
    /// No opinion; perhaps a line for the user.
    Nothing(Option<&'a str>),
    /// Ask the user, with this reason.
    Ask(&'a str),
    /// Do not run it, for this reason.
    Deny(&'a str),
}

/// What is to be said. Only about a call can there be an opinion.
pub(super) fn say(kind: EventKind, decision: &Decision) -> Say<'_> {
    let note = decision.note.as_deref().filter(|note| !note.is_empty());
    match (kind, decision.verdict) {
        (EventKind::ToolCall, Verdict::Ask) => Say::Ask(note.unwrap_or(NO_REASON)),
        (EventKind::ToolCall, Verdict::Deny) => Say::Deny(note.unwrap_or(NO_REASON)),
        (_, Verdict::Abstain | Verdict::Ask | Verdict::Deny) => Say::Nothing(note),
    }
}

/// A line that the user sees and the model does not, as Claude Code and its kin take it.
pub(super) fn system_message(note: Option<&str>) -> HookAnswer {
    match note {
        Some(note) => HookAnswer::json(&json!({ "systemMessage": note })),
        None => HookAnswer::neutral(),
    }
}

/// What the model hears along with the user's words, as Claude Code and its kin take it: in an
/// answer to `event`, which is the user's prompt.
pub(super) fn along(event: &str, kind: EventKind, decision: &Decision) -> Option<HookAnswer> {
    let text = decision.tell.as_deref().filter(|_| kind == EventKind::TurnBegins)?;
    let told = json!({ "hookEventName": event, "additionalContext": text });
    let note = decision.note.as_deref().filter(|note| !note.is_empty());
    Some(match note {
        Some(note) => {
            HookAnswer::json(&json!({ "hookSpecificOutput": told, "systemMessage": note }))
        }
        None => HookAnswer::json(&json!({ "hookSpecificOutput": told })),
    })
}

/// Claude Code's form, also read by Qwen Code, Factory Droid, Devin and VS Code.
pub(super) fn claude(kind: EventKind, decision: &Decision) -> HookAnswer {
    match say(kind, decision) {
        Say::Nothing(note) => system_message(note),
        Say::Ask(reason) => permission("ask", reason),
        Say::Deny(reason) => permission("deny", reason),
    }
}

/// Claude Code's form, where a question or a denial is told to the user besides: a denial's reason
/// goes to the model alone, and so does a question's where no person answers it.
pub(super) fn claude_and_told(kind: EventKind, decision: &Decision) -> HookAnswer {
    match say(kind, decision) {
        Say::Nothing(note) => system_message(note),
        Say::Ask(reason) => permission_told("ask", reason),
        Say::Deny(reason) => permission_told("deny", reason),
    }
}

/// Claude Code's form without "ask", for those that do not know it.
pub(super) fn claude_without_ask(kind: EventKind, decision: &Decision) -> HookAnswer {
    match say(kind, decision) {
        Say::Nothing(note) => system_message(note),
        Say::Ask(reason) | Say::Deny(reason) => permission("deny", reason),
    }
}

fn permission(decision: &str, reason: &str) -> HookAnswer {
    HookAnswer::json(&json!({ "hookSpecificOutput": deciding(decision, reason) }))
}

fn permission_told(decision: &str, reason: &str) -> HookAnswer {
    HookAnswer::json(&json!({
        "hookSpecificOutput": deciding(decision, reason),
        "systemMessage": reason,
    }))
}

/// The part of Claude Code's form that decides.
pub(super) fn deciding(decision: &str, reason: &str) -> serde_json::Value {
    json!({
        "hookEventName": "PreToolUse",
        "permissionDecision": decision,
        "permissionDecisionReason": reason,
    })
}

/// A denial in one JSON document, or an object that says nothing. A note has nowhere to go.
pub(super) fn denial(
    kind: EventKind,
    decision: &Decision,
    form: impl FnOnce(&str) -> serde_json::Value,
) -> HookAnswer {
    match say(kind, decision) {
        Say::Nothing(_) => HookAnswer::neutral(),
        Say::Ask(reason) | Say::Deny(reason) => HookAnswer::json(&form(reason)),
    }
}

/// A denial by exit code, or what the agent takes for no opinion. A note has nowhere to go.
pub(super) fn by_exit_code(
    kind: EventKind,
    decision: &Decision,
    neutral: HookAnswer,
) -> HookAnswer {
    match say(kind, decision) {
        Say::Nothing(_) => neutral,
        Say::Ask(reason) | Say::Deny(reason) => HookAnswer::exit_code(reason),
    }
}
