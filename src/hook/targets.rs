//! What a call can reach: its root and the repositories in it, and what it names there.

use std::path::{Path, PathBuf};

use super::{judged::JudgedCall, site::EventSite};
use crate::{
    error::{Error, Result},
    model::{Reach, Root, ScanScope},
    reach::{self, AtRisk},
    snapshot::LastCheckpoint,
    state::StateDir,
    ui,
};

/// What a command names and can destroy, and the root around the directory that it runs in. Of an edit
/// nothing is looked up before it has to be.
#[derive(Default)]
pub(super) struct CommandTargets {
    pub(super) around: Option<(Root, ScanScope)>,
    pub(super) at_risk: Vec<AtRisk>,
}

impl CommandTargets {
    pub(super) fn of(site: &EventSite<'_, '_>, judged: &JudgedCall<'_>) -> Self {
        let around = || {
            let state = site.loaded.state().ok().filter(|_| !judged.is_edit())?;
            reach::root_around(&site.cwd, &site.surroundings(&state))
        };
        let Some(around) = around() else { return Self::default() };
        let at_risk = reach::at_risk(&site.cwd, site.context, judged.what(), &around.0);
        Self { around: Some(around), at_risk }
    }
}

/// The root of a call, and what the call names and can destroy.
pub(super) struct CallTargets {
    pub(super) outer: Reach,
    pub(super) at_risk: Vec<AtRisk>,
}

/// Why nothing is held, and what the call can then lose.
pub(super) struct Unprotected {
    pub(super) why: Error,
    pub(super) at_risk: Vec<AtRisk>,
}

impl CallTargets {
    /// Finds what the call reaches from `start`, the directory that its session works in.
    pub(super) fn of(
        site: &EventSite<'_, '_>,
        judged: &JudgedCall<'_>,
        state: &StateDir,
        start: &Path,
        found: CommandTargets,
    ) -> Result<Self, Unprotected> {
        let (surroundings, what) = (site.surroundings(state), judged.what());
        if let Some(around) = found.around.filter(|_| start == site.cwd) {
            let outer = reach::reach_in(around, start, site.context, what, &surroundings);
            return Ok(Self { outer, at_risk: found.at_risk });
        }
        let reach_from = |dir: &Path| reach::reach(dir, site.context, what, &surroundings);
        let Some(outer) = reach_from(start).or_else(|| reach_from(&site.cwd)) else {
            let message = format!("cannot find the directory `{}`", ui::escape_path(&site.cwd));
            let why = Error::Other { message, hint: None };
            return Err(Unprotected { why, at_risk: found.at_risk });
        };
        let at_risk = reach::at_risk(start, site.context, what, &outer.root);
        Ok(Self { outer, at_risk })
    }
}

/// The directory the session works in: where it was first seen, if the call is made below that.
pub(super) fn start(cwd: &Path, home: PathBuf) -> PathBuf {
    if cwd.starts_with(&home) { home } else { cwd.to_owned() }
}

/// What the call reaches of repositories below the root that the root's checkpoint leaves out: each is
/// a root of its own, as a linked worktree in an ignored directory is.
pub(super) fn within(
    site: &EventSite<'_, '_>,
    judged: &JudgedCall<'_>,
    state: &StateDir,
    outer: &Root,
) -> Vec<Reach> {
    let (surroundings, what) = (site.surroundings(state), judged.what());
    let found = reach::within(&site.cwd, what.0, what.1, outer, &surroundings);
    if found.is_empty() {
        return Vec::new();
    }
    let held = LastCheckpoint::of(outer, &state.root(outer));
    let left_out = found.into_iter().filter(|(root, _)| !held.has_directory(root.path()));
    let reach = |around| {
        let mut reach = reach::reach_in(around, &site.cwd, site.context, what, &surroundings);
        // The outer root has what is elsewhere.
        reach.victims.retain(|place| place.starts_with(reach.root.path()));
        reach
    };
    left_out.map(reach).collect()
}
