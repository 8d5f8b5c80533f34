//! Forks of a project: another directory with the files as they were before a turn, a repository of
//! its own, and a checkpoint of what it began with. The project is only read. Never prints.

mod clear;
mod drop;
mod make;
mod scratch;

use clear::clear;
pub(crate) use drop::Dropping;
pub(crate) use make::{ForkMade, ForkPlan, default_dir, place};
pub(crate) use scratch::{ScratchFork, sweep as sweep_scratch};
