//! Decisions before deeds: what a restore would do, and to what. Pure.

mod bisect;
mod choose;
mod diff;
mod history;
mod left_out;
mod moment;
mod picked;
mod prune;
mod restore;
mod restore_plan;

pub use bisect::{NextProbe, StateVerdict, probe};
pub use choose::{Choosable, Chosen};
pub use diff::{Change, DirectoryReader, changes, entry_at, is_same};
pub use history::{UndoMark, redo_target, session_target, undo_target, undone};
pub use left_out::ByPath;
pub use moment::moment;
pub use picked::{Pick, Picked};
pub use prune::{
    Chunk, Pin, Pins, PruneLimits, PrunePlan, Retention, RetentionInput, Tier, Why, ages,
    begin_of_unbroken, evict, tiers,
};
pub use restore::{Options, Past, Unsettled, restore, settle};
pub use restore_plan::{
    Action, Author, KeepReason, Merged, OutsidePlan, PlanStep, RestorePlan, SessionTag,
    keep_executable, keep_parents,
};
