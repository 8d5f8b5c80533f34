//! Agents that have beforehand's hooks but do not run them: for `doctor` and `status`.

use std::path::Path;

use serde_json::{Value, json};

use super::install::running;
use crate::{
    install::{HookStatus, InstallRow, Off, ROWS, Site, look, off, ours_of},
    process::Process,
    state::StateDir,
};

/// An agent that does not run the hooks it has.
pub(crate) struct InactiveAgent {
    /// Which agent.
    row: &'static InstallRow,
    /// What is in the way, and the one step that helps.
    pub(crate) off: Off,
}

impl InactiveAgent {
    /// The name people know it by.
    pub(crate) fn title(&self) -> &'static str {
        self.row.title()
    }

    /// For `status --json`.
    pub(crate) fn json(&self) -> Value {
        json!({ "agent": self.row.agent, "text": self.off.message, "hint": self.off.hint })
    }
}

/// Where an agent can have hooks, of the user's and in the project at `root`.
pub(crate) fn sites(row: &InstallRow, process: &Process<'_>, root: Option<&Path>) -> Vec<Site> {
    let mut sites = row.sites(process);
    sites.extend(root.map(|root| row.project_sites(root)).unwrap_or_default());
    sites.retain(Site::is_hook);
    sites
}

/// How many agents have our hooks in the project at `root`, and which of them do not run them. A
/// file that cannot be read has none; `doctor` tells of it.
pub(crate) fn silent(
    process: &Process<'_>,
    state: &StateDir,
    root: &Path,
) -> (usize, Vec<InactiveAgent>) {
    let ours = ours_of(state, running(process).as_ref());
    let mut registered = 0;
    let mut silent = Vec::new();
    for row in ROWS {
        let found = |site: Site| match look(&site, &ours) {
            Ok(HookStatus::Nothing) | Err(_) => None,
            Ok(found) => Some((site, found)),
        };
        let sites: Vec<_> = sites(row, process, Some(root)).into_iter().filter_map(found).collect();
        if sites.is_empty() {
            continue;
        }
        registered += 1;
        silent.extend(off(row, process, Some(root), &sites).map(|off| InactiveAgent { row, off }));
    }
    (registered, silent)
}
