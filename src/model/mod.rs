//! The data types: plain values, no I/O. The values that are stored derive serde: a stored value has no second
//! type beside its own.

/// Serializes a type as text.
macro_rules! text_form {
    ($type:ident: $to_text:ident, $from_text:ident) => {
        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                to.serialize_str(self.$to_text().as_ref())
            }
        }

        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                let text = std::borrow::Cow::<'de, str>::deserialize(from)?;
                Self::$from_text(&text)
                    .ok_or_else(|| serde::de::Error::custom(concat!("not a ", stringify!($type))))
            }
        }
    };
}

mod call;
mod checkpoint;
mod decision;
pub mod escape;
mod files;
mod git_files;
mod hex;
pub mod octal;
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
