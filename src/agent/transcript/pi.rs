//! pi: `sessions/--PLACE--/TIME_SESSION.jsonl`, a tree of entries. Run with 1.6.0.
//!
//! Each entry names its parent, and the last one in the file is where the conversation goes on. A
//! turn begins with a message of the user's. Turns have no names.

use serde::Deserialize;

use super::{Format, TranscriptLine, TranscriptLineKind, moment, read, shortened};

pub(super) struct PiTranscript;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PiLine {
    #[serde(default, rename = "type")]
    kind: String,
    #[serde(default)]
    id: Option<String>,
    #[serde(default)]
    parent_id: Option<String>,
    #[serde(default)]
    timestamp: Option<String>,
    #[serde(default)]
    message: Option<PiMessage>,
}

#[derive(Deserialize)]
struct PiMessage {
    #[serde(default)]
    role: String,
    #[serde(default)]
    content: PiContent,
}

#[derive(Default, Deserialize)]
#[serde(untagged)]
enum PiContent {
    Text(String),
    Parts(Vec<PiPart>),
    Else(serde::de::IgnoredAny),
    #[default]
    None,
}

#[derive(Deserialize)]
struct PiPart {
    #[serde(default)]
    text: Option<String>,
}

impl PiContent {
    fn text(self) -> String {
        match self {
            Self::Text(text) => text,
            Self::Parts(parts) => parts.into_iter().find_map(|part| part.text).unwrap_or_default(),
            Self::Else(_) | Self::None => String::new(),
        }
    }
}

impl Format for PiTranscript {
    fn row(&self, line: &[u8]) -> Option<TranscriptLine> {
        let line: PiLine = read(line)?;
        let at = moment(line.timestamp.as_deref());
        let words = line.message.filter(|message| line.kind == "message" && message.role == "user");
        let what = match words {
            Some(message) => {
                TranscriptLineKind::Turn { id: None, prompt: shortened(&message.content.text()) }
            }
            None => TranscriptLineKind::Other,
        };
        Some(TranscriptLine { what, at })
    }

    fn end(&self, lines: &[&[u8]], turn: usize) -> usize {
        let Some(parent) = read::<PiLine>(lines[turn]).and_then(|line| line.parent_id) else {
            return turn;
        };
        // What follows the parent is of a branch that was left.
        let is_it = |line: &&[u8]| {
            read::<PiLine>(line).is_some_and(|line| line.id.as_deref() == Some(&parent))
        };
        lines[..turn].iter().rposition(is_it).map_or(turn, |at| at + 1)
    }

    fn file_name(&self, old: &str, session: &str, new: &str) -> Option<String> {
        let time = old.strip_suffix(&format!("_{session}.jsonl"))?;
        Some(format!("{time}_{new}.jsonl"))
    }

    fn resume(&self, new: &str) -> Vec<String> {
        ["pi", "--session", new].map(str::to_owned).into()
    }
}
