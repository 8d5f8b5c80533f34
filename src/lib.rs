//! Takes a checkpoint before an agent changes your files, and restores them when you ask.
//!
//! One hook call runs straight through these modules, top to bottom: [`process`] → [`cli`] →
//! [`hook`] → [`agent`] → [`config`] → [`shell`] → [`reach`] → [`ledger`] → [`policy`] → [`guard`] →
//! [`snapshot`] → [`scan`] → [`store`] → [`agent`] → [`process`]. A restore runs through
//! `restore` → [`snapshot`] → [`plan`] → [`store`] → [`apply`].

pub mod agent;
pub mod apply;
pub mod attribution;
pub mod cache;
pub mod cli;
pub mod commands;
pub mod config;
pub mod crash;
pub mod error;
mod fork;
pub mod forked;
pub mod fs;
#[doc(hidden)]
pub mod fuzzing;
pub mod git_index;
pub mod guard;
pub mod health;
pub mod hook;
pub mod install;
pub mod journal;
pub mod ledger;
pub mod maintenance;
pub mod model;
pub mod plan;
pub mod policy;
pub mod process;
mod project;
pub mod reach;
mod restore;
pub mod restore_log;
pub mod root;
pub mod scan;
pub mod shell;
pub mod snapshot;
pub mod state;
pub mod store;
pub mod transcript;
pub mod ui;

use std::process::ExitCode;

/// Runs against the real operating system.
pub fn run_os() -> ExitCode {
    let run = |process: &mut process::Process<'_>| {
        // An agent would show a panic's text, or hand it to the model.
        let is_hook = cli::is_hook(process);
        if cli::is_background(process) {
            process::be_nice();
        }
        let print_panic = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if !is_hook && !shell::is_judging() {
                print_panic(info);
            }
        }));
        cli::run(process)
    };
    process::unmask_owner();
    process::with_os(run).into()
}

/// Runs one command. Everything it may touch is in `process`.
pub fn run(process: &mut process::Process<'_>) -> process::Exit {
    cli::run(process)
}
