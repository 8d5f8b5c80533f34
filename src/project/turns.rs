//! Checkpoints as people count them: a row for each turn, and for each one a person asked for.

use std::collections::HashMap;

use crate::{
    ledger::Use,
    model::{Agent, By, Cause, Checkpoint, Reason, SessionId, TurnId},
};

/// One row of the list: a turn, or a checkpoint a person asked for.
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
