//! Kilo's command line, a fork of `OpenCode` with settings of its own, through the same plugin. Run
//! against 7.7.9.

use super::files::{self, AgentFiles, InstallFile, command, home_or, plugin};
use super::{Dialect, opencode};
use crate::model::Agent;

/// The row of Kilo.
pub(super) const DIALECT: Dialect = Dialect {
    agent: Agent::Kilo,
    name: "kilo",
    title: "Kilo",
    files: AgentFiles {
        base: home_or(".config/kilo", "XDG_CONFIG_HOME", "kilo"),
        programs: &["kilo"],
        user: FILES,
        project_dir: ".kilo",
        project: FILES,
        watched: &["plugin/beforehand.js", "kilo.json"],
        watched_project: &[".kilo/plugin/beforehand.js", "kilo.json"],
        ..files::PLAIN
    },
    ..opencode::DIALECT
};

const FILES: &[InstallFile] = &[
    plugin!("plugins/beforehand.js", "kilo/beforehand.js"),
    command!("command/checkpoint.md", "opencode/checkpoint.md"),
    command!("command/rollback.md", "opencode/rollback.md"),
    command!("command/revert.md", "opencode/revert.md"),
    command!("command/fork-turn.md", "opencode/fork-turn.md"),
];
