//! What of a fork is brought back, and what stays in it.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    model::{Entry, RelPath, SkipReason},
    restore_log::BroughtCheckpoint,
};

/// What of a fork is brought back, besides the plan.
pub(crate) struct Brought {
    /// What it has changed and keeps.
    pub(crate) stays: Vec<StaysInFork>,
    /// What it has at each path it has changed, if anything.
    pub(super) theirs: BTreeMap<RelPath, Option<Entry>>,
    /// The paths it has changed that the user did not pick.
    pub(super) unpicked: BTreeSet<RelPath>,
    /// The old names of files that it keeps by new ones: they go on from where they did, too.
    pub(super) old_names: BTreeSet<RelPath>,
    /// The checkpoint of the fork that holds what is brought, once it is taken.
    pub(super) of: Option<BroughtCheckpoint>,
}

/// Something that a fork has changed and that is not brought.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StaysInFork {
    /// Which path.
    pub(crate) path: RelPath,
    /// Why.
    pub(crate) why: StayReason,
}

/// Why something stays in a fork.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StayReason {
    /// It is new and ignored, and the user did not name it.
    Ignored,
    /// It is in a repository that was made in the fork.
    Repository,
    /// It is left out of checkpoints.
    LeftOut(SkipReason),
}

impl StayReason {
    /// A fragment for people.
    pub(crate) fn words(self) -> String {
        match self {
            Self::Ignored => "new and ignored (`-- PATH` brings it)".to_owned(),
            Self::Repository => "a repository made in the fork".to_owned(),
            Self::LeftOut(reason @ (SkipReason::TooLarge | SkipReason::Ignored)) => {
                format!("{} (`-- PATH` brings it)", reason.words())
            }
            Self::LeftOut(reason) => reason.words().to_owned(),
        }
    }
}
