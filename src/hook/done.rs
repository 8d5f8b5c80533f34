//! After a tool call: what the agent itself has left.

use std::path::{Path, PathBuf};

use super::{
    place::{shell_scope, working_directory},
    turn::{quiet, with_ledger},
};
use crate::{
    agent::Dialect,
    config,
    error::Result,
    left,
    model::{CheckpointId, Decision, Effect, Intent, ToolCall},
    process::Process,
    reach::{self, Surroundings},
    shell,
};

/// After a tool call: notes what the agent itself has left, so that its next edit of the same file
/// need not be held again, and a restore knows whose it is.
pub(super) fn on_done(
    process: &mut Process<'_>,
    dialect: &'static dyn Dialect,
    call: &ToolCall,
) -> Decision {
    let paths: &[PathBuf] = match &call.intent {
        Intent::Write(paths) | Intent::Edit(paths) => paths,
        Intent::Run { .. } | Intent::Unknown => &[],
        Intent::Read => return Decision::NEUTRAL,
    };
    let cwd = working_directory(process, &call.context);
    if paths.is_empty() && !may_have_changed(process, call, &cwd) {
        return Decision::NEUTRAL;
    }
    let now_ns = crate::fs::now_ns();
    let mut covered = Vec::new();
    let noted = with_ledger(process, dialect, &call.context, |ledger| {
        let bases = [&cwd as &Path];
        let places = paths.iter().flat_map(|path| reach::plausible(path, &bases));
        places.for_each(|path| ledger.wrote(&path, now_ns));
        covered = ledger.covered();
    });
    let noted = noted.and_then(|()| note_ended(process, call, &covered, &cwd));
    quiet(process, &call.context, noted)
}

/// Whether a call was one that could change files.
fn may_have_changed(process: &Process<'_>, call: &ToolCall, cwd: &Path) -> bool {
    let mut loaded = config::load(process, Some(cwd));
    let scope = shell_scope(process, &mut loaded);
    shell::effect(&call.intent, &scope) != Effect::None
}

/// Notes what a call left in every root that its turn has a checkpoint of.
fn note_ended(
    process: &Process<'_>,
    call: &ToolCall,
    covered: &[(PathBuf, CheckpointId)],
    cwd: &Path,
) -> Result<()> {
    for (root, of) in covered {
        let settings = config::load(process, Some(root)).settings;
        let state = config::state(process, Some(root))?;
        let home = process.var("HOME").map(PathBuf::from);
        let surroundings = Surroundings { home: home.as_deref(), state: &state };
        if let Some((root, _)) = reach::root_around(root, &surroundings) {
            left::ended(process, &state, &settings, call, &root, *of, cwd)?;
        }
    }
    Ok(())
}
