//! The nouns: plain values, no I/O, no serde.

mod call;
mod decision;

pub use call::{
    Agent, Certainty, Context, Effect, Event, Finding, Intent, Language, Level, SessionId, Simple,
    Target, TargetAction, ToolCall, TurnId,
};
pub use decision::{Decision, Verdict};
