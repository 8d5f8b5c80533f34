//! Claude Code: `projects/PLACE/SESSION.jsonl`. Run with 2.1.329.
//!
//! A turn begins with the user's own line, which has the `promptId` that hooks are told, and is no
//! tool's result. What was typed is queued and dequeued in lines right before it.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::{Format, TranscriptLine, TranscriptLineKind, moment, read, shortened};

pub(super) struct ClaudeTranscript;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ClaudeLine<'a> {
    #[serde(default, rename = "type")]
    kind: String,
    #[serde(default)]
    operation: String,
    #[serde(default)]
    prompt_id: Option<String>,
    #[serde(default)]
    is_sidechain: bool,
    /// Words that the agent put there for the user, such as a compacted conversation.
    #[serde(default)]
    is_meta: bool,
    #[serde(default)]
    timestamp: Option<String>,
    #[serde(borrow, default)]
    message: Option<ClaudeMessage<'a>>,
}

#[derive(Deserialize)]
struct ClaudeMessage<'a> {
    #[serde(borrow, default)]
    content: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct ClaudePart {
    #[serde(default, rename = "type")]
    kind: String,
    #[serde(default)]
    text: String,
}

impl Format for ClaudeTranscript {
    fn row(&self, line: &[u8]) -> Option<TranscriptLine> {
        let line: ClaudeLine<'_> = read(line)?;
        let at = moment(line.timestamp.as_deref());
        let what = match (line.kind.as_str(), line.operation.as_str()) {
            ("queue-operation", "enqueue") => TranscriptLineKind::Queued,
            ("queue-operation", "dequeue" | "remove" | "popAll") => TranscriptLineKind::Dequeued,
            ("user", _) if !line.is_sidechain && !line.is_meta && line.prompt_id.is_some() => {
                match words(line.message.and_then(|message| message.content)) {
                    Some(prompt) => TranscriptLineKind::Turn { id: line.prompt_id, prompt },
                    None => TranscriptLineKind::Other,
                }
            }
            _ => TranscriptLineKind::Other,
        };
        Some(TranscriptLine { what, at })
    }

    fn file_name(&self, old: &str, session: &str, new: &str) -> Option<String> {
        (old == format!("{session}.jsonl")).then(|| format!("{new}.jsonl"))
    }

    fn resume(&self, new: &str) -> Vec<String> {
        ["claude", "--resume", new].map(str::to_owned).into()
    }
}

/// What the user said; `None` for what a tool answered.
fn words(content: Option<&RawValue>) -> Option<String> {
    let content = content?.get();
    if let Ok(text) = serde_json::from_str::<String>(content) {
        return Some(shortened(&text));
    }
    let parts: Vec<ClaudePart> = serde_json::from_str(content).ok()?;
    if parts.iter().any(|part| part.kind == "tool_result") {
        return None;
    }
    let text = parts.iter().find(|part| part.kind == "text").map(|part| part.text.as_str());
    Some(shortened(text.unwrap_or_default()))
}
