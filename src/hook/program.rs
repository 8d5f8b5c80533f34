//! A program that the user runs as a turn with `beforehand run`: no agent sends hooks for it.

use std::time::Duration;

use super::{Hook, after_call, lifecycle, turn_boundary, with_ledger};
use crate::{
    agent,
    error::Result,
    model::{Decision, Effect, Finding, Level, ToolCall},
    process::Process,
};

/// No agent gives up on us meanwhile, so a first checkpoint of a large root is whole.
const DEADLINE: Duration = Duration::from_secs(60 * 60);

/// Holds what the program can change, in a turn of its own. `name` is shown where an agent's turn has
/// its prompt. Returns what a person should know first, and whether they are to be asked.
///
/// # Errors
///
/// Fails if no checkpoint can be taken.
pub fn program_begins(
    process: &mut Process<'_>,
    call: &ToolCall,
    name: Option<&str>,
) -> Result<Decision> {
    let dialect = agent::by_agent(call.context.agent);
    with_ledger(process, dialect, &call.context, |ledger| {
        ledger.begin_turn(None, name);
        ledger.expect_ends();
    })?;
    let mut hook = Hook::new(process, dialect, call);
    // What it is called proves nothing: a person's `PATH` may lead to another program of that name.
    if hook.effect == Effect::None {
        hook.effect = Effect::Unknown(Finding { level: Level::Unknown, ..Finding::default() });
    }
    hook.loaded.settings.deadline = DEADLINE;
    let threat = hook.threat();
    let notes = hook.protect()?;
    let decision = hook.decision(&notes);
    Ok(match threat {
        Some(why) => hook.defend(&why, decision),
        None => decision,
    })
}

/// Notes what the program left, once it has ended. Returns what a person should know of that.
pub fn program_ended(process: &mut Process<'_>, call: &ToolCall) -> Decision {
    let dialect = agent::by_agent(call.context.agent);
    let told = after_call::on_done(process, dialect, call);
    // Nothing is open any more, but for what could not be looked at.
    turn_boundary::turn_ends(process, dialect, &call.context);
    lifecycle::start_maintenance(process, &call.context);
    told
}
