//! The data types: plain values, no I/O, no serde.

mod call;
mod checkpoint;
mod decision;
mod files;
mod found;
mod path;
mod settings;

pub use call::{
    Agent, Certainty, Context, Effect, Event, Finding, Intent, Language, Level, SessionId, Simple,
    Spares, Target, TargetAction, ToolCall, TurnId,
};
pub use checkpoint::{By, Cause, Checkpoint, CheckpointId, Head, Reason, Selector, TurnKey};
pub use decision::{Decision, Verdict};
pub use files::{
    Content, ContentId, Directory, Entry, Kind, Manifest, Place, SkipReason, Skipped, Stamp, Tree,
    Usual,
};
pub use found::{DirPath, Found, Fresh, Marks, in_tree_order};
pub use path::{NotBelowRoot, Reach, RelPath, Root, RootKind, Scope};
pub use settings::{
    Answer, BeforeShell, Dedupe, FreeSpace, Notice, Notify, SessionEnd, Settings, Shell,
    StoreChoice, Triggers,
};
