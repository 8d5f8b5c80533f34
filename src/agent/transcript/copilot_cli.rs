//! Copilot CLI: `session-state/SESSION/events.jsonl`, and `workspace.yaml` beside it. Run with
//! 1.0.102.
//!
//! A turn begins with `user.message`. The hooks that were called for it, and the resumption of the
//! session that it may be the first word of, stand right before it.

use serde::Deserialize;

use super::{Format, TranscriptLine, TranscriptLineKind, moment, read, shortened};

pub(super) struct CopilotTranscript;

#[derive(Deserialize)]
struct CopilotLine {
    #[serde(default, rename = "type")]
    kind: String,
    #[serde(default)]
    timestamp: Option<String>,
    #[serde(default)]
    data: Data,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Data {
    #[serde(default)]
    content: Option<CopilotContent>,
    /// The author of these words, if not the user.
    #[serde(default)]
    agent_id: Option<String>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum CopilotContent {
    Text(String),
    Else(serde::de::IgnoredAny),
}

impl Format for CopilotTranscript {
    fn row(&self, line: &[u8]) -> Option<TranscriptLine> {
        let line: CopilotLine = read(line)?;
        let at = moment(line.timestamp.as_deref());
        let what = match (line.kind.as_str(), line.data.content) {
            ("user.message", content) if line.data.agent_id.is_none() => {
                let prompt = match content {
                    Some(CopilotContent::Text(text)) => shortened(&text),
                    Some(CopilotContent::Else(_)) | None => String::new(),
                };
                TranscriptLineKind::Turn { id: None, prompt }
            }
            ("hook.start" | "hook.end" | "session.resume", _) => TranscriptLineKind::Lead,
            _ => TranscriptLineKind::Other,
        };
        Some(TranscriptLine { what, at })
    }

    fn file_name(&self, old: &str, _session: &str, _new: &str) -> Option<String> {
        // Its directory is called like the session.
        (old == "events.jsonl").then(|| old.to_owned())
    }

    fn resume(&self, new: &str) -> Vec<String> {
        vec!["copilot".to_owned(), format!("--resume={new}")]
    }
}
