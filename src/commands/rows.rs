//! Checkpoints as people count them: a row for each turn, and for each one somebody asked for.

use std::{collections::HashMap, path::Path};

use chrono::{DateTime, Utc};

use crate::{
    agent::{DIALECTS, Dialect},
    ledger::Use,
    model::{Agent, By, Cause, Checkpoint, CheckpointId, Reason, SessionId, TurnId},
    ui,
};

/// One row of the list: a turn, or a checkpoint somebody asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Row {
    /// Its checkpoints, the first one first: the state before the turn changed anything.
    pub(crate) steps: Vec<Checkpoint>,
    /// The newest turn that found nothing changed since the first of these and so uses it.
    pub(crate) used: Option<Use>,
}

type Turn = (Agent, SessionId, TurnId);

/// Whether a checkpoint is one that people count: not one taken before a restore, nor one taken
/// between turns that no turn has come to need.
pub(crate) fn is_counted(checkpoint: &Checkpoint) -> bool {
    match checkpoint.cause.reason {
        Reason::Call | Reason::Asked => true,
        Reason::Net | Reason::BeforeRestore => false,
    }
}

/// Gives each checkpoint to the newest turn that uses it: that turn found nothing changed, so it is
/// what was there before that turn changed anything, and what has changed since is its doing.
pub(crate) fn adopt(checkpoints: &mut [Checkpoint], uses: &[Use]) {
    let is_a_turns = |checkpoint: &&mut Checkpoint| match checkpoint.cause.reason {
        Reason::Call | Reason::Net => true,
        Reason::Asked | Reason::BeforeRestore => false,
    };
    for checkpoint in checkpoints.iter_mut().filter(is_a_turns) {
        let newest = uses.iter().find(|used| used.checkpoint == checkpoint.id);
        let own = turn(checkpoint);
        let other = newest.filter(|used| own.is_none() || turn_by(&used.by) != own);
        if let Some(used) = other {
            checkpoint.cause = Cause {
                reason: Reason::Call,
                by: Some(used.by.clone()),
                tool: used.tool.clone(),
                summary: used.summary.clone(),
                of: None,
            };
        }
    }
}

/// Groups checkpoints, given newest first, into rows, newest first.
pub(crate) fn rows(mut checkpoints: Vec<Checkpoint>, uses: &[Use]) -> Vec<Row> {
    adopt(&mut checkpoints, uses);
    let mut rows: Vec<Row> = Vec::new();
    let mut known: HashMap<Turn, usize> = HashMap::new();
    for checkpoint in checkpoints.into_iter().filter(is_counted) {
        // Other sessions may have been at work meanwhile.
        let turn = turn(&checkpoint);
        if let Some(&row) = turn.as_ref().and_then(|turn| known.get(turn)) {
            rows[row].steps.insert(0, checkpoint);
        } else {
            known.extend(turn.map(|turn| (turn, rows.len())));
            rows.push(Row { steps: vec![checkpoint], used: None });
        }
    }
    for row in &mut rows {
        let first = row.steps.first().map(|first| first.id);
        row.used = uses.iter().find(|used| Some(used.checkpoint) == first).cloned();
    }
    rows
}

/// Whether two checkpoints were taken in one turn.
pub(crate) fn is_same_turn(a: &Checkpoint, b: &Checkpoint) -> bool {
    turn(a).is_some() && turn(a) == turn(b)
}

fn turn(checkpoint: &Checkpoint) -> Option<Turn> {
    turn_by(checkpoint.cause.by.as_ref()?)
}

fn turn_by(by: &By) -> Option<Turn> {
    Some((by.agent, by.session.clone(), by.turn.clone()?))
}

/// The fewest digits, four or more, that tell the ids of all these checkpoints apart.
pub(crate) fn digits(checkpoints: &[Checkpoint]) -> usize {
    let mut ids: Vec<CheckpointId> = checkpoints.iter().map(|one| one.id).collect();
    ids.sort_unstable();
    let same = ids.windows(2).map(|pair| pair[0].digits_shared(pair[1]) + 1);
    same.max().unwrap_or(0).clamp(4, CheckpointId::DIGITS)
}

/// A checkpoint as a list tells it: by the newest turn that uses it, or else by what made it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Told<'a> {
    /// The checkpoint.
    pub(crate) checkpoint: &'a Checkpoint,
    /// Whose it is.
    pub(crate) by: Option<&'a By>,
    /// The tool of the call.
    pub(crate) tool: Option<&'a str>,
    /// The call in one line, or the user's own words.
    pub(crate) summary: Option<&'a str>,
    /// When that was.
    pub(crate) at: DateTime<Utc>,
}

impl Row {
    /// Step `n` of it, from 0.
    pub(crate) fn told(&self, n: usize) -> Told<'_> {
        let checkpoint = &self.steps[n];
        match self.used.as_ref().filter(|_| n == 0) {
            Some(used) => Told {
                checkpoint,
                by: Some(&used.by),
                tool: used.tool.as_deref(),
                summary: used.summary.as_deref(),
                at: used.at,
            },
            None => Told::alone(checkpoint),
        }
    }
}

impl<'a> Told<'a> {
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
        let own = &self.checkpoint.cause;
        match asked.filter(|asked| !asked.is_empty()) {
            // What somebody called it stays its name, whichever turn uses it.
            Some(asked) => match own.summary.as_ref().filter(|_| own.reason == Reason::Asked) {
                Some(name) => format!("\"{name}\", {asked}"),
                None => asked,
            },
            None => self.words(),
        }
    }

    /// What it was taken before, in words. Not escaped.
    pub(crate) fn words(&self) -> String {
        let of = self.checkpoint.cause.of.map(CheckpointId::short);
        let words = match (self.by, self.checkpoint.cause.reason) {
            (Some(_), Reason::Net) if self.tool.is_none() => "between turns".to_owned(),
            (Some(_), _) | (None, Reason::Call) => {
                let parts = [Some("before"), self.tool, self.summary];
                let words = parts.into_iter().flatten().collect::<Vec<_>>().join(" ");
                // What somebody called it stays its name, whichever turn uses it.
                let own = &self.checkpoint.cause;
                return match own.summary.as_ref().filter(|_| own.reason == Reason::Asked) {
                    Some(name) => format!("\"{name}\", {words}"),
                    None => words,
                };
            }
            (None, Reason::BeforeRestore) => format!("before {}", self.tool.unwrap_or("restore")),
            (None, Reason::Asked) => {
                return self
                    .summary
                    .map_or_else(|| "asked for".to_owned(), |why| format!("\"{why}\""));
            }
            (None, Reason::Net) => "between turns".to_owned(),
        };
        match of {
            Some(of) => format!("{words} to {of}"),
            None => words,
        }
    }

    /// What is worth a word about how whole it is, with `~` for home.
    pub(crate) fn badges(&self, home: Option<&Path>) -> Vec<String> {
        let mut badges = Vec::new();
        if self.checkpoint.partial {
            badges.push("partial".to_owned());
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
fn on_one_line(text: &str) -> String {
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
    dialect(agent).map_or("an agent", |dialect| dialect.title())
}

/// The name of an agent, for scripts.
pub(crate) fn agent_name(agent: Agent) -> &'static str {
    dialect(agent).map_or("unknown", |dialect| dialect.name())
}

fn dialect(agent: Agent) -> Option<&'static dyn Dialect> {
    DIALECTS.iter().copied().find(|dialect| dialect.agent() == agent)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Cause;

    #[test]
    fn an_id_is_shown_as_long_as_it_takes() {
        let checkpoint = |bits| Checkpoint {
            id: CheckpointId::from_bits(bits),
            sequence: 1,
            taken_at: DateTime::UNIX_EPOCH,
            cause: Cause::asked(None),
            top: None,
            files: 0,
            partial: false,
            skipped: Vec::new(),
            outside: Vec::new(),
            head: None,
            staged: None,
        };
        let shown =
            |bits: &[u64]| digits(&bits.iter().copied().map(checkpoint).collect::<Vec<_>>());
        assert_eq!(shown(&[]), 4);
        assert_eq!(shown(&[0xa123_4000_0000_0000]), 4);
        assert_eq!(shown(&[0xa123_4000_0000_0000, 0xb123_4000_0000_0000]), 4);
        assert_eq!(shown(&[0xa123_4000_0000_0000, 0xa123_5000_0000_0000]), 5);
    }
}
