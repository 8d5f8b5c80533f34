//! Takes a checkpoint before an agent changes your files, and takes you back.

pub mod cache;
pub mod error;
pub mod fs;
pub mod model;
pub mod process;
pub mod root;
pub mod scan;
pub mod state;
pub mod store;

use std::process::ExitCode;

/// Runs against the real operating system.
pub fn run_os() -> ExitCode {
    process::with_os(|_| process::Exit::Ok).into()
}
