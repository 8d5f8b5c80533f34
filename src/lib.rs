//! Takes a checkpoint before an agent changes your files, and takes you back.

pub mod agent;
pub mod apply;
pub mod cache;
pub mod config;
pub mod crash;
pub mod error;
pub mod fs;
pub mod journal;
pub mod ledger;
pub mod model;
pub mod plan;
pub mod policy;
pub mod process;
pub mod reach;
pub mod root;
pub mod scan;
pub mod state;
pub mod store;
pub mod ui;

use std::process::ExitCode;

/// Runs against the real operating system.
pub fn run_os() -> ExitCode {
    process::with_os(|_| process::Exit::Ok).into()
}
