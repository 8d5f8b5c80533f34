//! Writes answers in the form that each agent expects.
//!
//! No form says "allow", and none has a key that its agent does not know: Codex discards an answer with
//! a single unknown key, and runs the tool that it denied.

use serde::Serialize;
use serde_json::{Value, json};

use super::{EventKind, HookAnswer};
use crate::model::{Decision, Verdict};

/// The exit code that denies, where nothing else does.
const DENY: u8 = 2;

/// Stands for a reason that is missing. An empty one voids a denial in Codex.
const NO_REASON: &str = "beforehand refuses this call";

/// The form of an agent's answers.
#[derive(Clone, Copy, Debug)]
pub(super) struct AnswerForm {
    /// How a call is denied or asked about.
    pub(super) refusal: RefusalForm,
    /// How a line reaches the user.
    pub(super) note: NoteForm,
    /// The event whose answer may add something for the model to the user's prompt.
    pub(super) tells_model_at: Option<&'static str>,
    /// The output that means "no opinion".
    pub(super) neutral: &'static str,
}

/// How a call is denied or asked about.
#[derive(Clone, Copy, Debug)]
pub(super) enum RefusalForm {
    /// Claude Code's `permissionDecision`.
    Permission,
    /// [`Self::Permission`], with the reason for the user too: the model alone sees that of a denial.
    PermissionShown,
    /// [`Self::Permission`], at both places where Copilot CLI and VS Code look for it.
    PermissionTwice,
    /// An object with the reason below the name of the verdict, as our plugins read it.
    Named,
    /// One JSON document that denies, with this reason.
    Denial(fn(&str) -> Value),
    /// The exit code, with the reason on standard error.
    ExitCode,
}

/// How a line reaches the user.
#[derive(Clone, Copy, Debug)]
pub(super) enum NoteForm {
    /// A `systemMessage`, which the model does not see.
    SystemMessage,
    /// A line of progress before the answer to a tool call (Copilot CLI; documented, not run).
    Progress,
    /// The value of this key.
    Key(&'static str),
    /// The agent shows no line.
    None,
}

/// Claude Code's form.
pub(super) const CLAUDE: AnswerForm = AnswerForm {
    refusal: RefusalForm::Permission,
    note: NoteForm::SystemMessage,
    tells_model_at: None,
    neutral: "{}",
};

/// Claude Code's form, for an agent that may not show notes.
pub(super) const QUIET: AnswerForm = AnswerForm { note: NoteForm::None, ..CLAUDE };

/// The form that our plugins read.
pub(super) const PLUGIN: AnswerForm = AnswerForm {
    refusal: RefusalForm::Named,
    note: NoteForm::Key("note"),
    tells_model_at: None,
    neutral: "{}",
};

/// Exit code 2 denies, and nothing is read from standard output.
pub(super) const EXIT_CODE: AnswerForm = AnswerForm {
    refusal: RefusalForm::ExitCode,
    note: NoteForm::None,
    tells_model_at: None,
    neutral: "",
};

/// The form in which one JSON document denies. Notes are not shown.
pub(super) const fn denial(document: fn(&str) -> Value) -> AnswerForm {
    AnswerForm { refusal: RefusalForm::Denial(document), note: NoteForm::None, ..CLAUDE }
}

impl AnswerForm {
    /// Writes an answer. Only a tool call can be denied or asked about. For an agent that cannot ask
    /// (`asks`), a question becomes a denial.
    pub(super) fn write(&self, kind: EventKind, decision: &Decision, asks: bool) -> HookAnswer {
        let note = decision.note.as_deref().filter(|note| !note.is_empty());
        match (kind, decision.verdict) {
            (EventKind::ToolCall, Verdict::Ask) if asks => {
                self.refuse("ask", note.unwrap_or(NO_REASON))
            }
            (EventKind::ToolCall, Verdict::Ask | Verdict::Deny) => {
                self.refuse("deny", note.unwrap_or(NO_REASON))
            }
            (EventKind::TurnBegins, _) => self.with_turn(note, decision.tell.as_deref()),
            (_, Verdict::Abstain | Verdict::Ask | Verdict::Deny) => self.with_note(kind, note),
        }
    }

    /// The answer to a prompt: a line for the user, and `tell` for the model if this agent passes it on.
    fn with_turn(&self, note: Option<&str>, tell: Option<&str>) -> HookAnswer {
        let (Some(event), Some(text)) = (self.tells_model_at, tell) else {
            return self.with_note(EventKind::TurnBegins, note);
        };
        let told = json!({ "hookEventName": event, "additionalContext": text });
        match note {
            Some(note) => {
                HookAnswer::json(&json!({ "hookSpecificOutput": told, "systemMessage": note }))
            }
            None => HookAnswer::json(&json!({ "hookSpecificOutput": told })),
        }
    }

    fn with_note(&self, kind: EventKind, note: Option<&str>) -> HookAnswer {
        let Some(note) = note else { return HookAnswer::text(self.neutral) };
        match self.note {
            NoteForm::SystemMessage => HookAnswer::json(&json!({ "systemMessage": note })),
            NoteForm::Key(key) => HookAnswer::json(&json!({ key: note })),
            NoteForm::Progress if kind == EventKind::ToolCall => {
                let line = json!({ "type": "progress", "message": note });
                HookAnswer::text(&format!("{line}\n{}", self.neutral))
            }
            NoteForm::Progress | NoteForm::None => HookAnswer::text(self.neutral),
        }
    }

    fn refuse(&self, decision: &str, reason: &str) -> HookAnswer {
        let permission = json!({
            "hookEventName": "PreToolUse",
            "permissionDecision": decision,
            "permissionDecisionReason": reason,
        });
        match self.refusal {
            RefusalForm::Permission => {
                HookAnswer::json(&json!({ "hookSpecificOutput": permission }))
            }
            RefusalForm::PermissionShown => HookAnswer::json(&json!({
                "hookSpecificOutput": permission,
                "systemMessage": reason,
            })),
            RefusalForm::PermissionTwice => HookAnswer::json(&json!({
                "permissionDecision": decision,
                "permissionDecisionReason": reason,
                "hookSpecificOutput": permission,
            })),
            RefusalForm::Named => HookAnswer::json(&json!({ decision: reason })),
            RefusalForm::Denial(document) => HookAnswer::json(&document(reason)),
            RefusalForm::ExitCode => {
                HookAnswer { stdout: Vec::new(), stderr: reason.as_bytes().to_vec(), exit: DENY }
            }
        }
    }
}

impl HookAnswer {
    fn text(stdout: &str) -> Self {
        Self { stdout: stdout.as_bytes().to_vec(), stderr: Vec::new(), exit: 0 }
    }

    fn json(value: &impl Serialize) -> Self {
        let stdout = serde_json::to_vec(value).expect("strings and options always serialize");
        Self { stdout, stderr: Vec::new(), exit: 0 }
    }
}
