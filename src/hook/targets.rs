//! What a call can reach: its root and the repositories in it, and what it names there.

use std::{
    borrow::Cow,
    path::{Path, PathBuf},
};

use super::{judged::JudgedCall, site::EventSite};
use crate::{
    error::{Error, Result},
    model::{Reach, Root, RootKind, ScanScope},
    reach::{self, AtRisk},
    snapshot::LastCheckpoint,
    state::StateDir,
    ui,
};

/// The root of a call, and what the call names and can destroy. Of an edit nothing is looked up before
/// it has to be.
pub(super) struct CallTargets {
    around: Option<(Root, ScanScope)>,
    at_risk: Option<Vec<AtRisk>>,
}

impl CallTargets {
    /// Finds what a command names. Needs no state directory, so that a loss can be named where there is
    /// none.
    pub(super) fn of(site: &EventSite<'_, '_>, judged: &JudgedCall<'_>) -> Self {
        if judged.is_edit() {
            return Self { around: None, at_risk: None };
        }
        let around = root_around_call(site);
        let at_risk = Some(named_at_risk(site, judged, around.as_ref()));
        Self { around, at_risk }
    }

    /// The root around the directory that a command runs in.
    pub(super) fn root(&self) -> Option<&Root> {
        self.around.as_ref().map(|(root, _)| root)
    }

    /// What the call names and can destroy, as far as it is known.
    pub(super) fn at_risk(&self) -> &[AtRisk] {
        self.at_risk.as_deref().unwrap_or_default()
    }

    /// Files that the call names and can destroy, where nothing is held for it.
    pub(super) fn into_at_risk(
        self,
        site: &EventSite<'_, '_>,
        judged: &JudgedCall<'_>,
    ) -> Vec<AtRisk> {
        let look = || named_at_risk(site, judged, root_around_call(site).as_ref());
        self.at_risk.unwrap_or_else(look)
    }

    /// Finds what the call reaches from `start`, the directory that its session works in.
    pub(super) fn reach(
        &mut self,
        site: &EventSite<'_, '_>,
        judged: &JudgedCall<'_>,
        state: &StateDir,
        start: &Path,
    ) -> Result<Reach> {
        let (surroundings, what) = (site.surroundings(state), judged.what());
        if let Some(around) = self.around.take_if(|_| start == site.cwd) {
            return Ok(reach::reach_in(around, start, site.context, what, &surroundings));
        }
        let reach_from = |dir: &Path| reach::reach(dir, site.context, what, &surroundings);
        let Some(outer) = reach_from(start).or_else(|| reach_from(&site.cwd)) else {
            let message = format!("cannot find the directory `{}`", ui::escape_path(&site.cwd));
            return Err(Error::Other { message, hint: None });
        };
        self.at_risk = Some(reach::at_risk(start, site.context, what, &outer.root));
        Ok(outer)
    }
}

/// The root around the directory of a call.
fn root_around_call(site: &EventSite<'_, '_>) -> Option<(Root, ScanScope)> {
    let state = site.loaded.state().ok();
    reach::root_around(&site.cwd, &site.surroundings(state.as_ref()))
}

/// Files that a call names and can destroy, as seen from its own directory.
fn named_at_risk(
    site: &EventSite<'_, '_>,
    judged: &JudgedCall<'_>,
    around: Option<&(Root, ScanScope)>,
) -> Vec<AtRisk> {
    let root = match around {
        Some((root, _)) => Cow::Borrowed(root),
        None => Cow::Owned(Root::new(site.cwd.clone(), RootKind::Plain { why: None })),
    };
    reach::at_risk(&site.cwd, site.context, judged.what(), &root)
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
