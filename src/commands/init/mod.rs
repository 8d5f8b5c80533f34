//! `beforehand init`: what a shell loads to open the picker on Esc Esc, and to complete our commands.
//!
//! One script for each shell, as that shell would have it written; nothing in it depends on the
//! machine. What it must not do is in `docs/decisions/061`.

use clap_complete::{Shell as Completions, generate};

use super::print;
use crate::{
    error::Result,
    process::{Exit, Process},
};

/// Print what a shell loads for Esc Esc and completions.
///
/// zsh: `eval "$(beforehand init zsh)"` in ~/.zshrc, after compinit. bash: the same in ~/.bashrc.
/// fish: `beforehand init fish | source` in ~/.config/fish/config.fish.
///
/// Esc Esc then opens `beforehand rewind`, at an empty prompt only; on a line with something in it
/// these keys do what they did.
#[derive(clap::Args)]
pub(crate) struct InitArgs {
    /// The shell
    shell: InitShell,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum InitShell {
    Zsh,
    Bash,
    Fish,
}

/// `cli` is the whole command line, which only `cli` knows.
pub(crate) fn run(process: &mut Process<'_>, args: &InitArgs, cli: clap::Command) -> Result<Exit> {
    let (widget, completions) = match args.shell {
        InitShell::Zsh => (include_str!("widget.zsh"), for_zsh(&complete(Completions::Zsh, cli))),
        InitShell::Bash => (include_str!("widget.bash"), complete(Completions::Bash, cli)),
        InitShell::Fish => (include_str!("widget.fish"), complete(Completions::Fish, cli)),
    };
    print(process, &format!("{widget}\n{completions}"))?;
    Ok(Exit::Ok)
}

fn complete(shell: Completions, mut cli: clap::Command) -> String {
    let mut script = Vec::new();
    generate(shell, &mut cli, "beforehand", &mut script);
    String::from_utf8(script).expect("completions are text: our own names and help")
}

/// Without `compinit` there is no completion to add to, and that is no error.
fn for_zsh(script: &str) -> String {
    let script = script.strip_prefix("#compdef beforehand\n").unwrap_or(script);
    format!("if (( $+functions[compdef] )); then\n{script}\nfi\n")
}
