//! Errors in a hook call: each becomes a note for the user and a line in the journal.

use std::path::Path;

use super::{
    Hook,
    notes::{stricter, verdict},
};
use crate::{
    config,
    error::Error,
    journal::{self, JournalLine, LineKind},
    model::{Decision, TroubleAnswer},
    process::Process,
    snapshot, ui,
};

impl Hook<'_, '_> {
    pub(super) fn on_trouble(&mut self, err: &Error) -> Decision {
        let text = format!(
            "warning: could not save a checkpoint ({}); this call is NOT protected",
            said(err)
        );
        let text = ui::escape_line(text.as_bytes());
        self.write_trouble(&text);
        let mut decision = Decision::note(format!("beforehand: {text}"));
        let lost = snapshot::unheld_at_risk(&self.at_risk);
        let on_trouble = self.settings().on_trouble;
        let cannot_hold =
            if lost.is_empty() { TroubleAnswer::Note } else { self.settings().cannot_hold };
        for (rule, wanted) in [("on_trouble", on_trouble), ("cannot_hold", cannot_hold)] {
            if wanted != TroubleAnswer::Note {
                self.rules.push(rule);
            }
        }
        if let Some(note) = &mut decision.note {
            for line in self.told(&lost) {
                note.push('\n');
                note.push_str(&line);
            }
        }
        Decision { verdict: verdict(stricter(on_trouble, cannot_hold)), ..decision }
    }
}

impl Hook<'_, '_> {
    /// A line in the journal, if the call is a real one.
    pub(super) fn write_trouble(&self, text: &str) {
        if !self.is_foreseen {
            write_journal(self.process, Some(&self.cwd), LineKind::Trouble, text);
        }
    }
}

/// Tells the user and the journal.
pub(super) fn trouble(process: &Process<'_>, root: Option<&Path>, text: &str) -> Decision {
    let text = ui::escape_line(text.as_bytes());
    write_journal(process, root, LineKind::Trouble, &text);
    Decision::note(format!("beforehand: {text}"))
}

pub(super) fn write_journal(
    process: &Process<'_>,
    root: Option<&Path>,
    kind: LineKind,
    text: &str,
) {
    let Ok(state) = config::state(process, root) else { return };
    let root = root.map(|root| root.to_string_lossy().into_owned());
    journal::write(&state, &JournalLine { at: process.now, kind, root, text: text.to_owned() });
}

pub(super) fn said(err: &Error) -> String {
    use std::error::Error as _;
    match err.source() {
        Some(source) => format!("{err}: {source}"),
        None => err.to_string(),
    }
}
