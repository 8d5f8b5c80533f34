//! What the hook would hold before a call, and what it would answer. Runs the same steps, but saves and
//! writes nothing.

use std::time::Instant;

use super::{
    answer_to, hold_roots,
    judged::{JudgedCall, finding},
    notes::{self, HeldRoot, LeftOutNote, Notes},
    site::EventSite,
};
use crate::{
    agent::Dialect,
    error::Result,
    model::{Decision, Effect, Finding, Reach, RelPath, Skipped, ToolCall},
    process::Process,
    reach::AtRisk,
    scan::VictimDepth,
    snapshot::ScanOptions,
    state::StateDir,
    store::reading,
};

/// What would happen before a call.
#[derive(Debug)]
pub struct Foreseen {
    /// What its command line was judged to do.
    pub finding: Finding,
    /// Whether it can change files.
    pub changes: bool,
    /// What would be held; nothing if no checkpoint is taken.
    pub reaches: Vec<Reach>,
    /// What would be left out of each of them.
    pub left_out: Vec<Vec<Skipped>>,
    /// The answer.
    pub decision: Decision,
}

/// Foresees the call of a command line.
pub fn foresee(process: &Process<'_>, dialect: &'static Dialect, call: &ToolCall) -> Foreseen {
    let site = EventSite::of_call(process, dialect, call);
    let judged = JudgedCall::of(&site, call);
    let finding = finding(&site, &call.intent);
    let changes = judged.effect != Effect::None;
    let (mut held, mut left_out) = (Vec::new(), Vec::new());
    let mut decision = Decision::NEUTRAL;
    if changes && site.settings().enabled {
        let answer = answer_to(&site, &judged, |targets| {
            let state = site.loaded.state()?;
            let outer = targets.reach(&site, &judged, &state, &site.cwd)?;
            held = hold_roots(&site, &judged, &state, outer, |reach| {
                let at_risk = targets.at_risk();
                let (root, skipped) = look(&site, &judged.effect, reach, &state, at_risk)?;
                left_out.push(skipped);
                Ok(root)
            })?;
            Ok(Notes::of(Vec::new(), &mut held, &judged.effect, &site.cwd))
        });
        decision = answer.decision;
    }
    let reaches = held.into_iter().map(|root| root.reach).collect();
    Foreseen { finding, changes, reaches, left_out, decision }
}

/// What a checkpoint of a root would leave out, and what of that the call would lose.
fn look(
    site: &EventSite<'_, '_>,
    effect: &Effect,
    reach: Reach,
    state: &StateDir,
    at_risk: &[AtRisk],
) -> Result<(HeldRoot, Vec<Skipped>)> {
    let deadline = Some(Instant::now() + site.settings().deadline);
    let named = VictimDepth::WithAllBelow;
    let options = ScanOptions { reach: &reach, settings: site.settings(), named, deadline };
    let scan = options.at(site.process, state, &reach.root)?;
    let skipped = reading::skipped(&scan, Vec::new());
    let left_out = LeftOutNote { skipped: &skipped, is_partial: scan.partial };
    let is_ignored = |path: &RelPath| scan.find(path).is_some_and(|row| row.marks.ignored);
    let unheld = notes::unheld(&left_out, &reach, (effect, at_risk), is_ignored);
    Ok((HeldRoot { unheld, ..HeldRoot::unscanned(reach) }, skipped))
}
