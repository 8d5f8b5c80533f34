//! The last thing the user said, from an agent's own record of the conversation.
//!
//! Only for agents that tell turns in no other way, and only the end of the file is read.

use std::{
    io::{Read, Seek, SeekFrom},
    path::Path,
};

use serde_json::Value;

use crate::fs::open_regular;

/// A turn's worth of the newest lines.
const TAIL_MAX_BYTES: u64 = 256 << 10;

/// The last user message in the transcript at `path`, as one string that differs from message to
/// message. `None` if there is none that can be read.
pub fn last_prompt(path: &Path) -> Option<String> {
    let (mut file, stamp) = open_regular(path).ok()?;
    file.seek(SeekFrom::Start(stamp.size.saturating_sub(TAIL_MAX_BYTES))).ok()?;
    let mut tail = Vec::new();
    file.take(TAIL_MAX_BYTES).read_to_end(&mut tail).ok()?;
    let lines = tail.rsplit(|&byte| byte == b'\n');
    lines.filter_map(|line| serde_json::from_slice(line).ok()).find_map(|line| prompt(&line))
}

/// The text of a line that is a message of the user's, and no tool's result.
fn prompt(line: &Value) -> Option<String> {
    let message =
        [&line["message"], &line["payload"], line].into_iter().find(|v| v["role"] == "user")?;
    let unique = [&line["promptId"], &line["uuid"], &line["timestamp"]];
    let unique = unique.into_iter().find_map(Value::as_str).unwrap_or_default();
    let text = match &message["content"] {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts
            .iter()
            .filter(|part| part["type"] != "tool_result")
            .find_map(|part| part["text"].as_str())?
            .to_owned(),
        _ => return None,
    };
    Some(format!("{unique} {text}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tools_result_is_no_prompt() {
        let of = |text: &str| prompt(&serde_json::from_str(text).unwrap());
        let said = r#"{"type":"user","uuid":"u1","message":{"role":"user","content":"hi"}}"#;
        assert_eq!(of(said), Some("u1 hi".to_owned()));
        let result =
            r#"{"message":{"role":"user","content":[{"type":"tool_result","content":"x"}]}}"#;
        assert_eq!(of(result), None);
        assert_eq!(of(r#"{"message":{"role":"assistant","content":"x"}}"#), None);
    }
}
