//! A program that the user runs as a turn with `beforehand run`: no agent sends hooks for it.

use std::time::Duration;

use super::{
    after_call,
    answer::{self, Answer},
    hold_call,
    judged::JudgedCall,
    protection::Protection,
    site::EventSite,
    targets::CallTargets,
    turn_boundary,
};
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
    process: &Process<'_>,
    call: &ToolCall,
    name: Option<&str>,
) -> Result<Decision> {
    let mut site = EventSite::of_call(process, agent::by_agent(call.context.agent), call);
    site.loaded.settings.deadline = DEADLINE;
    site.with_ledger(|ledger| {
        ledger.begin_turn(None, name);
        ledger.expect_ends();
    })?;
    let judged = judged(&site, call);
    let targets = CallTargets::of(&site, &judged);
    let threat = if judged.is_edit() {
        answer::edit_threat(&site, &judged)
    } else {
        answer::command_threat(&site, &judged, &targets)
    };
    let protection =
        Protection::of(&site, &judged, targets, |targets| hold_call(&site, &judged, targets));
    if let Protection::NotHeld { why, .. } = protection {
        return Err(why);
    }
    let answer = Answer::of(protection, &judged.effect, &site);
    let answer = match threat {
        Some(why) => answer.defended(&why, site.settings().self_defence),
        None => answer,
    };
    Ok(answer.journalled(&site).decision)
}

/// Notes what the program left, once it has ended. Returns what a person should know of that.
pub fn program_ended(process: &Process<'_>, call: &ToolCall) -> Decision {
    let dialect = agent::by_agent(call.context.agent);
    let site = EventSite::of(process, dialect, &call.context);
    let told = after_call::on_effect(&site, call, &judged(&site, call).effect, None);
    // Nothing is open any more, but for what could not be looked at.
    turn_boundary::turn_ends(&site, |_| false);
    turn_boundary::start_maintenance(&site);
    told
}

/// What a program can change. What it is called proves nothing: a person's `PATH` may lead to another
/// program of that name.
fn judged<'h>(site: &EventSite<'_, '_>, call: &'h ToolCall) -> JudgedCall<'h> {
    let mut judged = JudgedCall::of(site, call);
    if judged.effect == Effect::None {
        judged.effect = Effect::Unknown(Finding { level: Level::Unknown, ..Finding::default() });
    }
    judged
}
