//! Events that may change files and are no tool call: a command line of a custom slash command or skill,
//! a prompt that may run one, and an unreadable payload. No answer stops them, so the hook holds the root
//! and answers with a note at most.

use super::{
    answer::Answer, hold_call, judged::JudgedCall, late, protection::Protection, site::EventSite,
    targets::CallTargets,
};
use crate::{
    agent::{Dialect, EventKind, Markers},
    attribution,
    journal::LineKind,
    model::{CallContext, Decision, Effect, Intent, ToolCall, UnknownTool, Verdict},
    process::Process,
    ui,
};

/// Our own slash commands. They hold the files that they replace themselves, and a checkpoint right
/// before would be one more turn in the list.
const OWN_COMMANDS: &[&str] =
    &["checkpoint", "rollback", "revert", "fork", "fork-turn", "undo", "redo", "beforehand"];

/// Before a command line of a custom command or a skill.
pub(super) fn on_command_line(
    process: &Process<'_>,
    dialect: &'static Dialect,
    call: &ToolCall,
) -> Decision {
    if is_own(call) {
        return Decision::NEUTRAL;
    }
    hold(&EventSite::of_call(process, dialect, call), call)
}

/// Gives the checkpoint before the command lines of a custom command to the turn that begins with the next
/// prompt. Returns false for one of our own commands, for which there is none.
pub(super) fn begins_next_turn(
    process: &Process<'_>,
    dialect: &'static Dialect,
    call: &ToolCall,
) -> bool {
    if is_own(call) {
        return false;
    }
    let site = EventSite::of_call(process, dialect, call);
    let key = attribution::call_key(call);
    let noted = site.with_ledger(|ledger| ledger.begins_next_turn(&key));
    site.quiet(noted);
    true
}

/// Before a prompt whose text may run command lines without a call: one that begins with the name of
/// a command, or with `!`.
pub(super) fn on_prompt(
    process: &Process<'_>,
    dialect: &'static Dialect,
    context: &CallContext,
    prompt: &str,
) -> Decision {
    let Some(command) = prompt.trim_start().strip_prefix(['/', '!']) else {
        return Decision::NEUTRAL;
    };
    if is_own_command(command.split_whitespace().next().unwrap_or_default()) {
        return Decision::NEUTRAL;
    }
    let name = "prompt".to_owned();
    let tool = UnknownTool { name: name.clone(), texts: vec![prompt.to_owned()] };
    let intent = Intent::Unknown(tool);
    let call = ToolCall { context: context.clone(), id: None, tool: name, intent };
    hold(&EventSite::of(process, dialect, context), &call)
}

/// An unreadable payload: the call that it announces may change anything. The user sees the reason
/// once.
pub(super) fn on_unreadable(
    process: &Process<'_>,
    dialect: &'static Dialect,
    call: &ToolCall,
    why: &str,
) -> Decision {
    let site = EventSite::of_call(process, dialect, call);
    let line = ui::escape_line(why.as_bytes()).into_owned();
    site.write_journal(LineKind::Unread, &line);
    let held = hold(&site, call);
    // Without a ledger, the user is told again each time.
    let mut is_news = true;
    let noted = site.with_ledger(|ledger| is_news = ledger.is_news(&line));
    site.quiet(noted);
    let told = is_news.then(|| Decision::note(format!("beforehand: {line}")));
    told.map_or(held.clone(), |told| both(told, held))
}

/// Two decisions as one, with the notes of both.
pub(super) fn both(first: Decision, second: Decision) -> Decision {
    let note = match (first.note, second.note) {
        (Some(first), Some(second)) => Some(format!("{first}\n{second}")),
        (first, second) => first.or(second),
    };
    Decision { note, ..first }
}

/// Holds the files that a call can change, where no answer can stop it.
fn hold(site: &EventSite<'_, '_>, call: &ToolCall) -> Decision {
    if !site.settings().enabled {
        return Decision::NEUTRAL;
    }
    let judged = JudgedCall::of(site, call);
    if judged.effect == Effect::None {
        return Decision::NEUTRAL;
    }
    let targets = CallTargets::of(site, &judged);
    let mut watch = late::watch(site, &judged, &targets, &Markers::default(), EventKind::Other);
    let protection =
        Protection::of(site, &judged, targets, |targets| hold_call(site, &judged, targets));
    let answer = Answer::of(protection, &judged.effect, site).journalled(site);
    watch.claim();
    Decision { verdict: Verdict::Abstain, ..answer.decision }
}

/// Whether a command line, or a command by its name, is one of our own slash commands.
fn is_own(call: &ToolCall) -> bool {
    match &call.intent {
        Intent::Run { command, .. } => {
            let mut words = command.split_whitespace();
            let program = words.next().and_then(|word| word.rsplit('/').next());
            program.is_some_and(|program| program.trim_end_matches(['"', '\'']) == "beforehand")
                && words.next() == Some("slash")
        }
        // The plugin for OpenCode sends the name of the command as its first argument, and the name of an
        // argument comes before its value.
        Intent::Unknown(tool) => tool.texts.get(1).is_some_and(|name| is_own_command(name)),
        Intent::Read | Intent::Write(_) | Intent::Edit(_) => false,
    }
}

fn is_own_command(name: &str) -> bool {
    OWN_COMMANDS.contains(&name.strip_prefix("beforehand:").unwrap_or(name))
}
