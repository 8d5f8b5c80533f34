//! A program that a person runs with `beforehand run`. It knows nothing of us.

use super::payload::Heard;
use super::{Dialect, EventKind, HookAnswer};
use crate::model::{Agent, Intent};

/// What stands where an agent has its dialect.
pub(super) const DIALECT: Dialect = Dialect {
    agent: Agent::Program,
    name: "program",
    title: "beforehand run",
    asks: true,
    tells_ends: true,
    keeps_shell: false,
    hear: |_| Ok((EventKind::Other, Heard::default())),
    intent: |_, _| Intent::Unknown,
    answer: |_, _| HookAnswer::nothing(),
};
