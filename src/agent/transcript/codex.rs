//! Codex: `sessions/YYYY/MM/DD/rollout-TIME-SESSION.jsonl`. Run with 0.169.0.
//!
//! A turn begins with `task_started`, which has the id that hooks are told; the user's words come
//! after it. A sub-agent has a file of its own.

use serde::Deserialize;

use super::{Format, TranscriptLine, TranscriptLineKind, moment, read};

pub(super) struct CodexTranscript;

#[derive(Deserialize)]
struct CodexLine {
    #[serde(default, rename = "type")]
    kind: String,
    #[serde(default)]
    timestamp: Option<String>,
    #[serde(default)]
    payload: CodexLinePayload,
}

#[derive(Default, Deserialize)]
struct CodexLinePayload {
    #[serde(default, rename = "type")]
    kind: Option<String>,
    #[serde(default)]
    turn_id: Option<String>,
}

impl Format for CodexTranscript {
    fn row(&self, line: &[u8]) -> Option<TranscriptLine> {
        let line: CodexLine = read(line)?;
        let at = moment(line.timestamp.as_deref());
        let what = match (line.kind.as_str(), line.payload.kind.as_deref()) {
            ("event_msg", Some("task_started")) => {
                TranscriptLineKind::Turn { id: line.payload.turn_id, prompt: String::new() }
            }
            ("event_msg", Some("thread_settings_applied")) => TranscriptLineKind::Lead,
            _ => TranscriptLineKind::Other,
        };
        Some(TranscriptLine { what, at })
    }

    fn file_name(&self, old: &str, session: &str, new: &str) -> Option<String> {
        let before = old.strip_suffix(&format!("-{session}.jsonl"))?;
        before.starts_with("rollout-").then(|| format!("{before}-{new}.jsonl"))
    }

    fn resume(&self, new: &str) -> Vec<String> {
        ["codex", "resume", new].map(str::to_owned).into()
    }
}
