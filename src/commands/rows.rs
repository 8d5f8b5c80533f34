//! A row of the list in words.

use std::path::Path;

use chrono::{DateTime, Utc};
use serde_json::{Value, json};

use crate::{
    agent::by_agent,
    model::{Agent, By, Checkpoint, CheckpointId, Completeness, Reason, Skipped},
    project::TurnRow,
    ui,
};

/// The fewest digits, four or more, that tell the ids of all these checkpoints apart.
pub(crate) fn digits(checkpoints: &[Checkpoint]) -> usize {
    let mut ids: Vec<CheckpointId> = checkpoints.iter().map(|one| one.id).collect();
    ids.sort_unstable();
    let same = ids.windows(2).map(|pair| pair[0].digits_shared(pair[1]) + 1);
    same.max().unwrap_or(0).clamp(4, CheckpointId::DIGITS)
}

/// A checkpoint as a list tells it: by the newest turn that uses it, or else by what made it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CheckpointLabel<'a> {
    /// The checkpoint.
    pub(crate) checkpoint: &'a Checkpoint,
    /// The author of its call.
    pub(crate) by: Option<&'a By>,
    /// The tool of the call.
    pub(crate) tool: Option<&'a str>,
    /// The call in one line, or the user's own words.
    pub(crate) summary: Option<&'a str>,
    /// When that was.
    pub(crate) at: DateTime<Utc>,
}

impl TurnRow {
    /// What row `n` of its checkpoints is called, counted from 0.
    pub(crate) fn label(&self, n: usize) -> CheckpointLabel<'_> {
        let checkpoint = &self.checkpoints[n];
        match self.used.as_ref().filter(|_| n == 0) {
            Some(used) => CheckpointLabel {
                checkpoint,
                by: Some(&used.by),
                tool: used.tool.as_deref(),
                summary: used.summary.as_deref(),
                at: used.at,
            },
            None => CheckpointLabel::alone(checkpoint),
        }
    }
}

impl<'a> CheckpointLabel<'a> {
    /// By what made it.
    pub(crate) fn alone(checkpoint: &'a Checkpoint) -> Self {
        Self {
            checkpoint,
            by: checkpoint.cause.by.as_ref(),
            tool: checkpoint.cause.tool.as_deref(),
            summary: checkpoint.cause.summary.as_deref(),
            at: checkpoint.taken_at,
        }
    }

    /// What the user asked for in the turn it begins, on one short line, or else what it was taken
    /// before. Not escaped.
    pub(crate) fn turn(&self) -> String {
        let asked = self.by.and_then(|by| by.prompt.as_deref()).map(on_one_line);
        asked.filter(|asked| !asked.is_empty()).unwrap_or_else(|| self.words())
    }

    /// What it was taken before, in words. Not escaped.
    pub(crate) fn words(&self) -> String {
        let of = self.checkpoint.cause.of.map(CheckpointId::short);
        let words = match (self.by, self.checkpoint.cause.reason) {
            (Some(_), Reason::Net) if self.tool.is_none() => "between turns".to_owned(),
            (Some(_), _) | (None, Reason::Call) => {
                let parts = [Some("before"), self.tool, self.summary];
                return parts.into_iter().flatten().collect::<Vec<_>>().join(" ");
            }
            (None, Reason::BeforeRestore) => format!("before {}", self.tool.unwrap_or("restore")),
            (None, Reason::Asked) => {
                return self
                    .summary
                    .map_or_else(|| "taken by hand".to_owned(), |why| format!("\"{why}\""));
            }
            (None, Reason::Net) => "between turns".to_owned(),
        };
        match of {
            Some(of) if self.tool == Some("revert") => format!("{words} of {of}"),
            Some(of) => format!("{words} to {of}"),
            None => words,
        }
    }

    /// What is worth a word about how whole it is, with `~` for home.
    pub(crate) fn badges(&self, home: Option<&Path>) -> Vec<String> {
        let mut badges = Vec::new();
        match self.checkpoint.completeness {
            Completeness::Whole => (),
            Completeness::OutOfTime => badges.push("partial".to_owned()),
            Completeness::RecordLost => badges.push("partial: record lost".to_owned()),
        }
        let unheld =
            self.checkpoint.skipped.iter().filter(|skipped| skipped.reason.matters()).count();
        if unheld > 0 {
            badges.push(format!("{} not held", ui::number(unheld as u64)));
        }
        if let Some(first) = self.checkpoint.outside.first() {
            let more = self.checkpoint.outside.len() - 1;
            let first = ui::path(first, home);
            badges.push(match more {
                0 => format!("outside: {first}"),
                more => format!("outside: {first} and {more} more"),
            });
        }
        badges
    }
}

/// The beginning of what a user wrote, without its line feeds.
pub(crate) fn on_one_line(text: &str) -> String {
    /// As much as tells one turn from the next.
    const CHARS_MAX: usize = 72;
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(CHARS_MAX) {
        Some((end, _)) => format!("{}…", line[..end].trim_end()),
        None => line,
    }
}

/// The name of an agent, for people.
pub(crate) fn agent_title(agent: Agent) -> &'static str {
    by_agent(agent).title
}

/// The name of an agent, for scripts.
pub(crate) fn agent_name(agent: Agent) -> &'static str {
    by_agent(agent).name
}

/// What was left out, for scripts.
pub(crate) fn skipped_json(skipped: &Skipped) -> Value {
    let path = String::from_utf8_lossy(&skipped.path);
    json!({ "path": path, "reason": skipped.reason.name(), "size": skipped.size })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_shown_as_long_as_it_takes() {
        let checkpoint = |bits| Checkpoint::sample(bits, 1, DateTime::UNIX_EPOCH);
        let shown =
            |bits: &[u64]| digits(&bits.iter().copied().map(checkpoint).collect::<Vec<_>>());
        assert_eq!(shown(&[]), 4);
        assert_eq!(shown(&[0xa123_4000_0000_0000]), 4);
        assert_eq!(shown(&[0xa123_4000_0000_0000, 0xb123_4000_0000_0000]), 4);
        assert_eq!(shown(&[0xa123_4000_0000_0000, 0xa123_5000_0000_0000]), 5);
    }
}
