//! What the hook would hold before a call, and what it would answer. Runs the same steps, but saves and
//! writes nothing.

use std::time::Instant;

use super::{
    Hook,
    notes::{LeftOutNote, Notes},
    place::shell_scope,
};
use crate::{
    agent::Dialect,
    error::Result,
    model::{Decision, Effect, Finding, Intent, Reach, RelPath, Skipped, ToolCall},
    process::Process,
    scan::Named,
    shell,
    snapshot::{self, ScanOptions},
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
pub fn foresee(process: &mut Process<'_>, dialect: &'static Dialect, call: &ToolCall) -> Foreseen {
    let mut hook = Hook::new(process, dialect, call);
    hook.is_foreseen = true;
    let scope = shell_scope(hook.process, &mut hook.loaded);
    let finding = match &call.intent {
        Intent::Run { command, language } => shell::classify(command, *language, &scope),
        Intent::Read | Intent::Write(_) | Intent::Edit(_) | Intent::Unknown => Finding::default(),
    };
    let changes = hook.effect != Effect::None;
    let (mut reaches, mut left_out) = (Vec::new(), Vec::new());
    let mut decision = Decision::NEUTRAL;
    if changes && hook.settings().enabled {
        decision = hook.judge(|hook| {
            let state = hook.loaded.state()?;
            let mut notes = Notes::default();
            let mut each = |hook: &Hook<'_, '_>, reach: &Reach, notes: &mut Notes| {
                left_out.push(hook.look(reach, &state, notes)?);
                Ok(())
            };
            let start = hook.cwd.clone();
            reaches = hook.hold(&start, &state, &mut notes, &mut each)?;
            Ok(notes)
        });
    }
    Foreseen { finding, changes, reaches, left_out, decision }
}

impl Hook<'_, '_> {
    /// Notes what a checkpoint of a root would leave out, and tells all of it.
    fn look(&self, reach: &Reach, state: &StateDir, notes: &mut Notes) -> Result<Vec<Skipped>> {
        let limits = snapshot::scan_limits(self.settings());
        let deadline = Some(Instant::now() + self.settings().deadline);
        let options = ScanOptions { reach, limits: &limits, named: Named::WithAllBelow, deadline };
        let scan = options.at_root(self.process, state, &reach.root)?;
        let skipped = reading::skipped(&scan, Vec::new());
        let left_out = LeftOutNote { skipped: &skipped, is_partial: scan.partial };
        let is_ignored = |path: &RelPath| scan.find(path).is_some_and(|row| row.marks.ignored);
        self.note_unheld(&left_out, reach, is_ignored, notes);
        Ok(skipped)
    }
}
