//! Gemini CLI: `tmp/PROJECT/chats/session-TIME-XXXXXXXX.jsonl`, with the first eight digits of the
//! session's id. Run with 0.61.0.
//!
//! A turn begins with a message of the user's that has text and is no function's response. Turns
//! have no names. `$set` lines replace what came before and are kept.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::{Format, TranscriptLine, TranscriptLineKind, moment, read, shortened};

pub(super) struct GeminiTranscript;

/// Digits of the session's id in the name of its file.
const DIGITS: usize = 8;

/// What the agent says in the user's place before anything else.
const NOT_THE_USER: &str = "<session_context>";

#[derive(Deserialize)]
struct GeminiLine<'a> {
    #[serde(default, rename = "type")]
    kind: String,
    #[serde(default)]
    timestamp: Option<String>,
    #[serde(borrow, default)]
    content: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct GeminiPart {
    #[serde(default)]
    text: Option<String>,
}

impl Format for GeminiTranscript {
    fn row(&self, line: &[u8]) -> Option<TranscriptLine> {
        let line: GeminiLine<'_> = read(line)?;
        let at = moment(line.timestamp.as_deref());
        let words = line.content.filter(|_| line.kind == "user").and_then(words);
        let what = match words.filter(|words| !words.starts_with(NOT_THE_USER)) {
            Some(prompt) => TranscriptLineKind::Turn { id: None, prompt },
            None => TranscriptLineKind::Other,
        };
        Some(TranscriptLine { what, at })
    }

    fn file_name(&self, old: &str, session: &str, new: &str) -> Option<String> {
        let (digits, new) = (session.get(..DIGITS)?, new.get(..DIGITS)?);
        let before = old.strip_suffix(&format!("-{digits}.jsonl"))?;
        before.starts_with("session-").then(|| format!("{before}-{new}.jsonl"))
    }

    fn resume(&self, new: &str) -> Vec<String> {
        ["gemini", "--resume", new].map(str::to_owned).into()
    }
}

fn words(content: &RawValue) -> Option<String> {
    if let Ok(text) = serde_json::from_str::<String>(content.get()) {
        return Some(shortened(&text));
    }
    let parts: Vec<GeminiPart> = serde_json::from_str(content.get()).ok()?;
    parts.into_iter().find_map(|part| part.text).map(|text| shortened(&text))
}
