//! Qoder's command line, 1.1.52. Read in the skill inside its package; not run.
//!
//! Paths may be relative to the working directory.

use super::{CLAUDE, Dialect, claude_code, reply};
use crate::model::Agent;

/// The row of Qoder: Claude Code's protocol and tools.
pub(super) const DIALECT: Dialect = Dialect {
    agent: Agent::Qoder,
    name: "qoder",
    title: "Qoder",
    asks: false,
    reads: &[claude_code::READS],
    tools: &[claude_code::TOOLS],
    answer: reply::QUIET,
    ..CLAUDE
};
