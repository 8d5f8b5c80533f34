//! Takes a checkpoint before an agent changes your files, and takes you back.

pub mod error;
pub mod model;
pub mod process;

use std::process::ExitCode;

/// Runs against the real operating system.
pub fn run_os() -> ExitCode {
    process::with_os(|_| process::Exit::Ok).into()
}
