//! Unfolding a turn into its steps. Pure.

use super::{DetailRequest, Model, PickerEffect, PickerTurn, printable, printed};

/// What a row of the list is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PickerPlace {
    /// The position of the turn, from 0.
    pub turn: usize,
    /// Which step of it, from 1; `None` for the turn itself.
    pub step: Option<usize>,
}

impl Model {
    /// The turn of a step, or the turn itself.
    pub(super) fn turn_of(&self, row: usize) -> usize {
        let mut all = self.steps.iter();
        all.find(|(_, (steps, _))| steps.contains(&row)).map_or(row, |(turn, _)| *turn)
    }

    /// What a row is: a turn, and which step of it.
    pub(in crate::ui::picker) fn place(&self, row: usize) -> PickerPlace {
        PickerPlace { turn: self.turn_of(row), step: self.turns[row].step }
    }

    /// Shows the steps of the chosen turn, or hides them.
    pub(super) fn unfold(&mut self) -> PickerEffect {
        let Some(turn) = self.chosen().map(|n| self.turn_of(n)) else {
            return PickerEffect::Nothing;
        };
        let Some((_, is_shown)) = self.steps.get_mut(&turn) else {
            self.note = Some("reading its steps …".to_owned());
            return PickerEffect::Wish(DetailRequest::Steps(turn));
        };
        *is_shown = !*is_shown;
        self.arrange()
    }

    pub(super) fn learn_steps(&mut self, turn: usize, steps: Result<Vec<PickerTurn>, String>) {
        match steps {
            _ if self.steps.contains_key(&turn) => (),
            Ok(steps) => {
                let first = self.turns.len();
                self.turns.extend(steps.iter().map(printable));
                self.steps.insert(turn, (first..self.turns.len(), true));
                self.note = None;
                // The turn stays the chosen one.
                self.arrange();
            }
            Err(why) => self.note = Some(printed(&why)),
        }
    }
}
