//! The data types: plain values, no I/O, no serde.

mod call;
mod checkpoint;
mod decision;
mod files;
mod git_files;
mod hex;
mod path;
mod scan_entry;
mod settings;

pub use call::{
    Agent, CallContext, Certainty, Effect, Event, Finding, Intent, Language, Level, ProgramText,
    SessionId, Simple, Spares, Target, TargetAction, ToolCall, TurnId, UnknownTool,
};
pub use checkpoint::{
    By, Cause, Checkpoint, CheckpointId, Completeness, Head, Reason, Selector, TurnKey,
};
pub use decision::{Decision, Verdict};
pub use files::{
    Content, ContentId, DefaultModes, Directory, Entry, Kind, Manifest, SkipReason, Skipped, Stamp,
    Storage, Tree,
};
pub use git_files::{is_beside_repository, is_gits_own, names_in_git};
pub use hex::{hex, unhex};
pub use path::{Checkout, NotBelowRoot, Reach, RelPath, Root, RootKind, ScanScope};
pub use scan_entry::{DirPath, Fresh, Marks, ScanEntry, in_tree_order, join_path, split_path};
pub use settings::{
    BeforeShell, Dedupe, FreeSpace, Notice, Notify, SessionEnd, Settings, ShellPatterns,
    StoreChoice, Triggers, TroubleAnswer,
};
