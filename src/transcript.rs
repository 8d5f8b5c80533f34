//! What only an agent's own record of the conversation tells: the last thing the user said, and
//! where a command runs.
//!
//! Only for agents that tell it in no other way, and only the end of the file is read.

use std::{
    io::{Read, Seek, SeekFrom},
    path::{Path, PathBuf},
};

use serde_json::Value;

use crate::{
    agent::transcript,
    fs::open_regular,
    model::{Agent, ToolCall},
};

/// A turn's worth of the newest lines.
const TAIL_MAX_BYTES: u64 = 256 << 10;

/// What an agent puts before or into the user's words: the date, its rules, its tools.
const REMINDER: &str = "<system-reminder>";

/// One message of the user's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserMessage {
    /// Differs from message to message.
    pub id: String,
    /// The words.
    pub words: String,
}

/// The last user message in the transcript at `path`. `None` if there is none that can be read.
pub fn last_prompt(path: &Path) -> Option<UserMessage> {
    let tail = tail(path)?;
    let lines = tail.rsplit(|&byte| byte == b'\n');
    lines.filter_map(|line| serde_json::from_slice(line).ok()).find_map(|line| prompt(&line))
}

/// Where the call runs, if only the transcript tells.
pub fn workdir(call: &ToolCall) -> Option<PathBuf> {
    let (agent, id) = (call.context.agent, call.id.as_ref()?);
    if agent != Agent::Codex {
        return None;
    }
    let tail = tail(call.context.transcript.as_deref()?)?;
    tail.rsplit(|&byte| byte == b'\n').find_map(|line| transcript::workdir(agent, line, id))
}

fn tail(path: &Path) -> Option<Vec<u8>> {
    let (mut file, stamp) = open_regular(path).ok()?;
    file.seek(SeekFrom::Start(stamp.size.saturating_sub(TAIL_MAX_BYTES))).ok()?;
    let mut tail = Vec::new();
    file.take(TAIL_MAX_BYTES).read_to_end(&mut tail).ok()?;
    Some(tail)
}

/// The text of a line that is a message of the user's, and no tool's result.
fn prompt(line: &Value) -> Option<UserMessage> {
    let message =
        [&line["message"], &line["payload"], line].into_iter().find(|v| v["role"] == "user")?;
    let unique = [&line["promptId"], &line["uuid"], &line["timestamp"]];
    let unique = unique.into_iter().find_map(Value::as_str).unwrap_or_default();
    let text = match &message["content"] {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts
            .iter()
            .filter(|part| part["type"] != "tool_result")
            .filter_map(|part| part["text"].as_str())
            .find(|text| !text.starts_with(REMINDER))?
            .to_owned(),
        _ => return None,
    };
    (!text.starts_with(REMINDER))
        .then(|| UserMessage { id: format!("{unique} {text}"), words: text })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tools_result_is_no_prompt() {
        let of = |text: &str| prompt(&serde_json::from_str(text).unwrap());
        let said = r#"{"type":"user","uuid":"u1","message":{"role":"user","content":"hi"}}"#;
        let hi = || Some(UserMessage { id: "u1 hi".to_owned(), words: "hi".to_owned() });
        assert_eq!(of(said), hi());
        // Factory Droid's lines: hooks and reminders are the user's in form only.
        let dated = r#"{"id":"1","timestamp":"2026-11-22T17:53:14.286Z","message":{"role":"user","content":[{"type":"text","text":"<system-reminder>\nToday"},{"type":"text","text":"hi"}]}}"#;
        assert_eq!(of(dated).map(|said| said.words), hi().map(|said| said.words));
        let reminder = r#"{"message":{"role":"user","content":[{"type":"text","text":"<system-reminder>\nTools"}]}}"#;
        assert_eq!(of(reminder), None);
        let hook = r#"{"message":{"role":"user","content":[],"visibility":"user_only"}}"#;
        assert_eq!(of(hook), None);
        let result =
            r#"{"message":{"role":"user","content":[{"type":"tool_result","content":"x"}]}}"#;
        assert_eq!(of(result), None);
        assert_eq!(of(r#"{"message":{"role":"assistant","content":"x"}}"#), None);
    }
}
