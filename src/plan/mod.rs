//! Decisions before deeds: what a restore would do, and to what. Pure.

mod bisect;
mod choose;
mod diff;
mod fit;
mod history;
mod left_out;
mod picked;
mod prune;
mod restore;
mod settle;

pub use bisect::{NextProbe, StateVerdict, probe};
pub use choose::{Choosable, Chosen};
pub use diff::{Change, DirectoryReader, changes, entry_at};
pub use fit::{Chunk, evict};
pub use history::{redo_target, session_target, undo_target, undone};
pub use left_out::ByPath;
pub use picked::{Pick, Picked};
pub use prune::{Pin, Pins, PrunePlan, RetentionInput, RetentionLimits, Why, ages};
pub use restore::{
    Action, Author, KeepReason, Merged, Options, OutsidePlan, Past, RestorePlan, Step,
    keep_parents, restore,
};
pub use settle::{Unsettled, settle};
