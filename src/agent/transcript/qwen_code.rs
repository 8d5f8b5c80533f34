//! Qwen Code: `projects/PLACE/chats/SESSION.jsonl`. Run with 0.24.4.
//!
//! A turn begins with a line of the user's, with a real user as its provenance. Turns have no names in
//! it.

use serde::Deserialize;

use super::{Format, TranscriptLine, TranscriptLineKind, moment, read, shortened};

pub(super) struct QwenTranscript;

#[derive(Deserialize)]
struct QwenLine {
    #[serde(default, rename = "type")]
    kind: String,
    #[serde(default)]
    provenance: Option<String>,
    #[serde(default)]
    timestamp: Option<String>,
    #[serde(default)]
    message: QwenMessage,
}

#[derive(Default, Deserialize)]
struct QwenMessage {
    #[serde(default)]
    parts: Vec<QwenPart>,
}

#[derive(Deserialize)]
struct QwenPart {
    #[serde(default)]
    text: Option<String>,
}

impl Format for QwenTranscript {
    fn row(&self, line: &[u8]) -> Option<TranscriptLine> {
        let line: QwenLine = read(line)?;
        let at = moment(line.timestamp.as_deref());
        let is_real = line.provenance.is_none_or(|provenance| provenance == "real_user");
        let text = line.message.parts.into_iter().find_map(|part| part.text);
        let what = match text.filter(|_| line.kind == "user" && is_real) {
            Some(text) => TranscriptLineKind::Turn { id: None, prompt: shortened(&text) },
            None => TranscriptLineKind::Other,
        };
        Some(TranscriptLine { what, at })
    }

    fn file_name(&self, old: &str, session: &str, new: &str) -> Option<String> {
        (old == format!("{session}.jsonl")).then(|| format!("{new}.jsonl"))
    }

    fn resume(&self, new: &str) -> Vec<String> {
        ["qwen", "--resume", new].map(str::to_owned).into()
    }
}
