//! Takes the checkpoint of a root for a call, or finds that the newest is one.

use std::{path::Path, time::Instant};

use super::site::EventSite;
use crate::{
    attribution,
    error::Result,
    journal::{self, LineKind},
    ledger::{self, Ledger, Use},
    maintenance,
    model::{Agent, By, CallContext, Cause, Checkpoint, Intent, Reach, Reason, ToolCall},
    snapshot::{self, SnapshotRequest},
    state::StateDir,
    store::Saved,
};

/// Takes a checkpoint of a root, or finds that the newest is one.
pub(super) fn save(
    site: &EventSite<'_, '_>,
    call: &ToolCall,
    ledger: Option<&Ledger>,
    (reach, state): (&Reach, &StateDir),
    deadline: Instant,
) -> Result<Saved> {
    let take = |always| {
        let request = SnapshotRequest {
            reach,
            settings: site.settings(),
            cause: cause(call, &site.cwd, ledger),
            taken_at: site.process.now,
            always,
            deadline: Some(deadline),
            waits: true,
        };
        snapshot::take(site.process, state, request)
    };
    let mut saved = take(false)?;
    // Seldom, and a second look where nothing has changed is cheap.
    if !saved.is_new && is_anothers(site, ledger, &saved.checkpoint, (reach, state)) {
        saved = take(true)?;
    }
    if saved.is_new {
        let text = format!("checkpoint {} before {}", saved.checkpoint.id, call.tool);
        let root = Some(reach.root.path());
        journal::write(state, site.process.now, LineKind::Deed, root, &text);
        maintenance::start_if_due(site.process, state, site.settings());
    }
    Ok(saved)
}

/// Whether a checkpoint that the turn does not use yet is no beginning for it, although nothing in
/// the root has changed since: a person asked for it, a restore took it, this is a program that a
/// person runs, or what a turn of another session does, or what was done outside the root since,
/// would count as this turn's.
fn is_anothers(
    site: &EventSite<'_, '_>,
    ledger: Option<&Ledger>,
    checkpoint: &Checkpoint,
    (reach, state): (&Reach, &StateDir),
) -> bool {
    let is_used = ledger.and_then(|ledger| ledger.covering(reach.root.path()));
    if is_used == Some(checkpoint.id) {
        return false;
    }
    let is_program = site.dialect.agent == Agent::Program;
    match checkpoint.cause.reason {
        Reason::Asked | Reason::BeforeRestore => return true,
        Reason::Call | Reason::Net if is_program => return true,
        Reason::Call | Reason::Net => (),
    }
    attribution::is_left_outside(&state.root(&reach.root), checkpoint.id)
        || ledger::is_used_elsewhere(state, site.process.now, checkpoint, site.session())
}

/// That the turn uses a checkpoint.
pub(super) fn use_of(
    site: &EventSite<'_, '_>,
    call: &ToolCall,
    ledger: &Ledger,
    (checkpoint, reach): (&Checkpoint, &Reach),
) -> Use {
    Use {
        checkpoint: checkpoint.id,
        root: reach.root.path().to_owned(),
        by: by(&call.context, Some(ledger)),
        at: site.process.now,
        tool: Some(call.tool.clone()),
        summary: summary(call, &site.cwd),
    }
}

/// Why a checkpoint is taken, for its record.
fn cause(call: &ToolCall, cwd: &Path, ledger: Option<&Ledger>) -> Cause {
    Cause {
        reason: Reason::Call,
        by: Some(by(&call.context, ledger)),
        tool: Some(call.tool.clone()),
        summary: summary(call, cwd),
        of: None,
    }
}

fn by(context: &CallContext, ledger: Option<&Ledger>) -> By {
    // A sub-agent may name a file of its own, which the user never spoke in.
    let is_sub = context.subagent.is_some();
    let known = ledger.filter(|_| is_sub).and_then(Ledger::transcript);
    By {
        agent: context.agent,
        session: context.session.clone(),
        turn: ledger.and_then(Ledger::turn).or_else(|| context.turn.clone()),
        subagent: context.subagent.clone(),
        prompt: ledger.and_then(Ledger::prompt).map(str::to_owned),
        transcript: known.or_else(|| context.transcript.clone()),
        position: ledger.and_then(Ledger::position),
    }
}

/// A command line, a path or a message is cut there for the list.
const SUMMARY_CHARS_MAX: usize = 300;

/// The call in one line.
fn summary(call: &ToolCall, cwd: &Path) -> Option<String> {
    let text = match &call.intent {
        Intent::Run { command, .. } => command.clone(),
        Intent::Write(paths) | Intent::Edit(paths) => {
            let names = paths.iter().map(|path| {
                let path = path.strip_prefix(cwd).unwrap_or(path);
                path.to_string_lossy().into_owned()
            });
            names.collect::<Vec<_>>().join(" ")
        }
        Intent::Unknown(tool) => tool.arguments(),
        Intent::Read => return None,
    };
    Some(text.chars().take(SUMMARY_CHARS_MAX).collect())
}
