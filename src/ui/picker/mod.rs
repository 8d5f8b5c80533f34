//! The picker: the turns of a project on the whole screen, to go back to one of them.
//!
//! A pure model (`model`: a state and a key make the next state and what is wanted), a pure view
//! (`view`, by the places in `layout`), a thin loop (`stage`) and the terminal (`screen`). Knows
//! nothing of stores: what is asked for is found out elsewhere and comes as [`News`].

mod keys;
mod layout;
mod model;
mod screen;
mod sheet;
mod stage;
mod view;

pub use model::{Choice, Model, News, Planned, Turn};
pub use screen::Waker;
pub use stage::{End, Picker, Wish};
