//! Writes the man pages and the completions of every shell: an example, so that the program that
//! is shipped need not carry what makes them.
//!
//! `cargo run --example pages -- DIR` writes `DIR/man` and `DIR/completions`.

use std::{fs, path::PathBuf};

use beforehand::cli;
use clap_complete::Shell;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let dir = PathBuf::from(std::env::args_os().nth(1).ok_or("usage: pages DIR")?);
    let (man, completions) = (dir.join("man"), dir.join("completions"));
    fs::create_dir_all(&man)?;
    fs::create_dir_all(&completions)?;
    clap_mangen::generate_to(cli::command_line(), &man)?;
    for shell in [Shell::Bash, Shell::Zsh, Shell::Fish, Shell::Elvish, Shell::PowerShell] {
        clap_complete::generate_to(shell, &mut cli::command_line(), "beforehand", &completions)?;
    }
    Ok(())
}
