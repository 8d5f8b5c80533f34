//! The picker: a full-screen list of a project's turns, to restore one of them.
//!
//! A pure model (`model`: state and key → new state and requests), a pure view (`view`, with the
//! areas of `layout`), a small loop (`stage`) and the terminal (`screen`). It does not know the
//! store: its requests are executed elsewhere, and the results come as [`News`].

#[cfg(test)]
mod files_tests;
mod files_view;
mod keys;
mod layout;
mod model;
mod screen;
mod sheet;
mod stage;
mod view;

pub use model::{
    Choice, DetailRequest, FileMark, Model, News, OfferedFile, PartId, PickerGoal, PickerPlace,
    PickerPlan, PickerTurn,
};
pub use screen::Waker;
pub use stage::{End, Picker};
