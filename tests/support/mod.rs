//! Test support: worlds, temporary directories, a walk without a cache, an in-memory store.

pub(crate) mod contract;
pub(crate) mod dice;
pub(crate) mod memory;
pub(crate) mod packs;
pub(crate) mod real;
pub(crate) mod sandbox;
pub(crate) mod temp;
pub(crate) mod tmux;
pub(crate) mod walk;
pub(crate) mod world;

/// The names of all subcommands that are shown to people.
pub(crate) fn subcommands() -> Vec<String> {
    let command = beforehand::cli::command_line();
    let shown = command.get_subcommands().filter(|command| !command.is_hide_set());
    shown.map(|command| command.get_name().to_owned()).collect()
}
