//! The outcome of holding the files that a call can lose.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::{
    judged::JudgedCall,
    notes::Notes,
    site::{EventSite, said},
    targets::CallTargets,
};
use crate::{
    error::{Error, Result},
    reach::AtRisk,
    snapshot, ui,
};

/// The outcome of protecting a call.
pub(super) enum Protection {
    /// Nothing is held, as at the beginning of every call that is not proved read-only.
    NotHeld {
        /// Why not.
        why: Error,
        /// Files that the call names and can lose.
        at_risk: Vec<AtRisk>,
    },
    /// Everything is held, except for the files that the notes name.
    Held(Notes),
}

impl Protection {
    /// Protects a call with `hold`, which succeeds only after a save, or if the turn is proved to have
    /// everything already. After an error or a panic, however early, the call is not held.
    pub(super) fn of(
        site: &EventSite<'_, '_>,
        judged: &JudgedCall<'_>,
        mut targets: CallTargets,
        hold: impl FnOnce(&mut CallTargets) -> Result<Notes>,
    ) -> Self {
        let why = match catch_unwind(AssertUnwindSafe(|| hold(&mut targets))) {
            Ok(Ok(notes)) => return Self::Held(notes),
            Ok(Err(why)) => why,
            Err(_) => Error::other("a bug in beforehand", "`beforehand status` tells more"),
        };
        Self::NotHeld { why, at_risk: targets.into_at_risk(site, judged) }
    }

    /// Why nothing is held, as one line for the user.
    pub(super) fn trouble(&self) -> Option<String> {
        match self {
            Self::NotHeld { why, .. } => {
                let text = format!(
                    "warning: could not save a checkpoint ({}); this call is NOT protected",
                    said(why)
                );
                Some(ui::escape_line(text.as_bytes()).into_owned())
            }
            Self::Held(_) => None,
        }
    }

    /// The other notes, with every file that the call would lose for good.
    pub(super) fn into_notes(self) -> Notes {
        match self {
            Self::NotHeld { at_risk, .. } => {
                Notes { unheld: snapshot::unheld_at_risk(&at_risk), ..Notes::default() }
            }
            Self::Held(notes) => notes,
        }
    }
}
