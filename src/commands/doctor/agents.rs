//! A line for each agent: the findings of `health`, and how long its registered program takes.

use std::{ffi::OsString, path::Path};

use super::CheckResult;
use crate::{
    health::{AgentHealth, Severity},
    process::{HookCall, Process},
    ui,
};

/// The line of one agent.
pub(super) fn line(process: &Process<'_>, agent: AgentHealth) -> CheckResult {
    let home = process.home();
    let name = agent.title().to_lowercase();
    let mut hint = agent.hint;
    let mut severity = agent.severity;
    let mut message = agent.message;
    if let Some(place) = agent.place.as_deref() {
        let place = ui::path(place, home.as_deref());
        let hook = format!("hook in {place}");
        message = match agent.program.as_deref().map(|program| speed(process, program)) {
            Some(Ok(Some(took))) => format!("{hook}, {took} a call, {message}"),
            Some(Ok(None)) | None => format!("{hook}, {message}"),
            Some(Err(why)) => {
                severity = Severity::Trouble;
                hint = Some(format!("beforehand install {}", agent.row.agent));
                format!("{hook}, which fails: {}", ui::escape(why.as_bytes()))
            }
        };
    }
    CheckResult::new(name, severity, message, hint)
}

/// How long the registered program takes for a call that is none, in words.
fn speed(process: &Process<'_>, program: &Path) -> Result<Option<String>, String> {
    /// An event before which nothing runs. One that we do not know would count as a call, and be held.
    const NOTHING: &[u8] = br#"{"hook_event_name":"Notification","session_id":"doctor"}"#;
    let arguments = ["hook", "--agent", "claude-code"].map(OsString::from);
    let words: Vec<OsString> = std::iter::once(program.into()).chain(arguments).collect();
    match process.aside.time(&HookCall { words: &words, place: None, input: NOTHING }) {
        Ok(took) => Ok(Some(format!("{:.1} ms", took.as_secs_f64() * 1000.0))),
        Err(err) if err.kind() == std::io::ErrorKind::Unsupported => Ok(None),
        Err(err) => Err(err.to_string()),
    }
}
