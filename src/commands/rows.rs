//! Checkpoints as people count them: a row for each turn, and for each one somebody asked for.

use crate::{
    ledger::{self, Use},
    model::{Agent, Checkpoint, Reason, SessionId, TurnId},
    state::State,
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

/// Whether a checkpoint was taken before a restore; those are not counted.
pub(crate) fn is_before_restore(checkpoint: &Checkpoint) -> bool {
    checkpoint.cause.reason == Reason::BeforeRestore
}

/// Groups checkpoints, given newest first, into rows, newest first.
pub(crate) fn rows(checkpoints: Vec<Checkpoint>, state: &State) -> Vec<Row> {
    let uses = ledger::uses(state);
    let mut rows: Vec<Row> = Vec::new();
    for checkpoint in checkpoints.into_iter().filter(|checkpoint| !is_before_restore(checkpoint)) {
        let same_turn = rows.last().is_some_and(|row| {
            turn(&checkpoint).is_some() && row.steps.first().map(turn) == Some(turn(&checkpoint))
        });
        match rows.last_mut() {
            Some(row) if same_turn => row.steps.insert(0, checkpoint),
            Some(_) | None => rows.push(Row { steps: vec![checkpoint], used: None }),
        }
    }
    for row in &mut rows {
        let first = row.steps.first().map(|first| first.id);
        row.used = uses.iter().find(|used| Some(used.checkpoint) == first).cloned();
    }
    rows
}

fn turn(checkpoint: &Checkpoint) -> Option<Turn> {
    let by = checkpoint.cause.by.as_ref()?;
    Some((by.agent, by.session.clone(), by.turn.clone()?))
}
