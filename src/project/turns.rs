//! The rows of the list: one for each turn, and one for each checkpoint that the user took.

use std::collections::HashMap;

use crate::{
    ledger::{Use, adopt},
    model::{Checkpoint, Reason, TurnKey},
    plan,
};

/// One row of the list: a turn, or a checkpoint a person asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TurnRow {
    /// Its checkpoints, the first one first: the state before the turn changed anything.
    pub(crate) steps: Vec<Checkpoint>,
    /// The newest turn that found nothing changed since the first of these and so uses it.
    pub(crate) used: Option<Use>,
    /// Whether an undo took it back, and no redo since.
    pub(crate) is_undone: bool,
}

/// Whether a checkpoint is one that people count: not one taken before a restore, nor one taken
/// between turns that no turn has come to need.
pub(crate) fn is_counted(checkpoint: &Checkpoint) -> bool {
    match checkpoint.cause.reason {
        Reason::Call | Reason::Asked => true,
        Reason::Net | Reason::BeforeRestore => false,
    }
}

/// Groups checkpoints, given newest first, into rows, newest first.
pub(crate) fn rows(mut checkpoints: Vec<Checkpoint>, uses: &[Use]) -> Vec<TurnRow> {
    adopt(&mut checkpoints, uses);
    let undone = plan::undone(&checkpoints);
    let mut rows: Vec<TurnRow> = Vec::new();
    let mut known: HashMap<TurnKey, usize> = HashMap::new();
    for checkpoint in checkpoints.into_iter().filter(is_counted) {
        // Other sessions may have been at work meanwhile.
        let turn = checkpoint.turn_key();
        if let Some(&row) = turn.as_ref().and_then(|turn| known.get(turn)) {
            rows[row].steps.insert(0, checkpoint);
        } else {
            known.extend(turn.map(|turn| (turn, rows.len())));
            rows.push(TurnRow { steps: vec![checkpoint], used: None, is_undone: false });
        }
    }
    for row in &mut rows {
        // What a restore left is a state that its turn may have gone on from.
        row.is_undone = row.steps.iter().any(|step| undone.contains(&step.id));
        let first = row.steps.first().map(|first| first.id);
        row.used = uses.iter().find(|used| Some(used.checkpoint) == first).cloned();
    }
    rows
}
