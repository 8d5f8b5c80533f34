//! Takes a checkpoint before an agent changes your files, and takes you back.

pub mod model;
pub mod shell;

use std::process::ExitCode;

/// Runs against the real operating system.
pub fn run_os() -> ExitCode {
    ExitCode::SUCCESS
}
