//! Kilo's command line, a fork of `OpenCode` with settings of its own, through the same plugin. Run
//! against 7.7.9.

use super::{Dialect, opencode};
use crate::model::Agent;

/// The row of Kilo.
pub(super) const DIALECT: Dialect =
    Dialect { agent: Agent::Kilo, name: "kilo", title: "Kilo", ..opencode::DIALECT };
