//! A prepared restore with its request, as `show`, `remains` and `report` put it into words.

use super::head;
use crate::restore::{Prepared, Restore};

/// A plan, and the restore it was made for.
#[derive(Clone, Copy)]
pub(super) struct Shown<'a> {
    pub(super) restore: Restore<'a>,
    pub(super) prepared: &'a Prepared,
}

impl Shown<'_> {
    /// What the user is told of HEAD. Commits that are gone are among what is left.
    pub(super) fn head(self) -> Option<String> {
        head::words(&self.prepared.head, self.restore.checkpoint)
            .filter(|_| self.prepared.repositories.is_empty())
    }

    /// What changed since that another author made: what may be advised about it depends on the
    /// command and its options.
    pub(super) fn edited_words(self) -> &'static str {
        let request = self.restore.request;
        match (self.takes_options(), request.options.merge, request.markers) {
            (false, ..) => "changed since, not by the agent (use --force)",
            (true, false, _) => "changed since, not by the agent (use --merge or --force)",
            (true, true, false) => {
                "changed since, not by the agent, and conflicts with it (use --markers or --force)"
            }
            (true, true, true) => {
                "changed since, not by the agent, and cannot be merged (use --force)"
            }
        }
    }

    /// Whether the command takes `--merge` and `--exact`. A step back or forth does not.
    pub(super) fn takes_options(self) -> bool {
        self.restore.request.verb == "restore"
    }
}
