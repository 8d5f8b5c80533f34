//! Hooks of other programs beside ours: they may change a call after ours has judged it.

use std::path::Path;

use crate::{
    install::{ROWS, other_hooks},
    process::Process,
    ui,
};

/// The step that helps against any of them.
pub(super) const HINT: &str =
    "it may rewrite a call after beforehand has judged it: remove it if you do not need it";

/// A sentence for each agent here that runs such a hook in `dir`.
pub(super) fn notes(process: &Process<'_>, dir: &Path) -> Vec<String> {
    let home = process.home();
    let mut notes = Vec::new();
    for row in ROWS.iter().filter(|row| row.is_there(process)) {
        let found = other_hooks(row, process, dir);
        let Some(first) = found.first() else { continue };
        // A script that cannot be read has only its event.
        let name = if first.command.is_empty() { &first.event } else { &first.command };
        let command = ui::escape_line(name.as_bytes());
        let file = ui::path(&first.file, home.as_deref());
        let more = match found.len() {
            1 => String::new(),
            all => format!(", and {} more", all - 1),
        };
        notes.push(format!("{} runs `{command}` before its tools, by {file}{more}", row.title()));
    }
    notes
}
