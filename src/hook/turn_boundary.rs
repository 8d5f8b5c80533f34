//! Catches changes that no hook reports, by rescanning at turn boundaries, and before the next call of
//! an agent that never reports the end of a call.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{
    Hook,
    after_call::{news, notice, since},
    lifecycle, quiet, with_ledger,
};
use crate::{
    agent::Dialect,
    attribution::{self, ChangeSummary},
    config,
    fs::read_small,
    install,
    ledger::{Ledger, UnfinishedCommand},
    model::{Agent, CallContext, CheckpointId, Decision, Effect, Reach},
    process::Process,
};

/// The user asked for something. Commands of the turn before that were not seen to end, for it was
/// interrupted, are counted; but they are given no author, for a person has had the floor since.
pub(super) fn turn_begins(
    process: &Process<'_>,
    dialect: &Dialect,
    context: &CallContext,
    prompt: Option<&str>,
) -> Decision {
    let (mut open, mut tell, mut before) = (Vec::new(), None, BTreeMap::new());
    let mut is_news = false;
    let kept = if prompt.is_none() { kept_prompt(process, context) } else { None };
    let prompt = prompt.or(kept.as_deref());
    let begun = with_ledger(process, dialect, context, |ledger| {
        let last = ledger.turn();
        before = ledger.covered();
        tell = ledger.take_tell();
        ledger.begin_turn(context.turn.as_ref(), prompt);
        // A hook for prompts was installed together with one for the ends of calls. So even the first
        // call of a session that is cut off is known to be.
        if dialect.tells_ends {
            is_news = !ledger.tells_ends();
            ledger.expect_ends();
        }
        if ledger.turn() == last {
            // The one that runs goes on.
            before.clear();
        }
        if let Some(transcript) = &context.transcript {
            ledger.converses(transcript);
        }
        if let Some(server) = &context.server {
            ledger.is_served(server);
        }
        ledger.called_by(&process.callers());
        open = ledger.take_open();
    });
    let quiet = quiet(process, context, begun);
    for open in open.iter().filter(|_| is_news) {
        let by = attribution::author(context.agent, &context.session);
        if let Ok(state) = config::state(process, Some(&open.root)) {
            let place = state.root_at(&open.root);
            // What is not noted has no known author.
            let _noted = attribution::tells(process, &place, &by, &open.call, open.of);
        }
    }
    lifecycle::on_turn_begin(process, dialect, context, &before);
    let blasts = look(process, context, &open, |since, _| attribution::seen_late(since));
    let decision = notice(process, dialect, context, &blasts).unwrap_or(quiet);
    Decision { tell, ..decision }
}

/// Cline does not say what a task begins with. What it keeps of the session does.
fn kept_prompt(process: &Process<'_>, context: &CallContext) -> Option<String> {
    /// It is a few lines.
    const SIZE_MAX_BYTES: u64 = 1 << 20;
    let row = install::ROWS.iter().find(|row| row.agent == "cline")?;
    let name = &context.session.0;
    let is_plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    if context.agent != Agent::Cline || !is_plain {
        return None;
    }
    let path = row.dir(process)?.join("data/sessions").join(name).join(format!("{name}.json"));
    let kept: Value = serde_json::from_slice(&read_small(&path, SIZE_MAX_BYTES).ok()??).ok()?;
    kept.get("prompt")?.as_str().map(str::to_owned)
}

/// The agent has finished: what its commands left that were not seen to end is its own.
pub(super) fn turn_ends(
    process: &Process<'_>,
    dialect: &Dialect,
    context: &CallContext,
) -> Decision {
    // A sub-agent's end is not the end of what runs beside it.
    if context.subagent.is_some() {
        return Decision::NEUTRAL;
    }
    let (mut open, mut tells_ends, mut roots) = (Vec::new(), false, BTreeMap::new());
    let ended = with_ledger(process, dialect, context, |ledger| {
        roots = ledger.covered();
        open = ledger.take_open();
        tells_ends = ledger.tells_ends();
    });
    let quiet = quiet(process, context, ended);
    let blasts = look(process, context, &open, |since, calls| {
        if tells_ends {
            // They were cut off, and a person may have worked since.
            attribution::seen_late(since)
        } else {
            attribution::turn_ended(since, calls)
        }
    });
    // Last: what that look noted is older than what is looked at now.
    lifecycle::on_turn_end(process, dialect, context, &roots);
    notice(process, dialect, context, &blasts).unwrap_or(quiet)
}

/// Looks once at each root, from the oldest checkpoint that covers an open command of it.
fn look(
    process: &Process<'_>,
    context: &CallContext,
    open: &[UnfinishedCommand],
    mut with: impl FnMut(
        attribution::SinceCheckpoint<'_, '_>,
        &[String],
    ) -> crate::error::Result<Option<ChangeSummary>>,
) -> Vec<(CheckpointId, ChangeSummary)> {
    let mut blasts = Vec::new();
    for (at, first) in open.iter().enumerate() {
        if open[..at].iter().any(|earlier| earlier.root == first.root) {
            continue;
        }
        let same = open.iter().filter(|other| other.root == first.root);
        let calls: Vec<String> = same.map(|other| other.call.clone()).collect();
        let seen = since(process, context, &first.root, first.of, |since| with(since, &calls));
        // What cannot be looked at has no known author, and that is all.
        blasts.extend(seen.ok().flatten().map(|blast| (first.of, blast)));
    }
    blasts
}

impl Hook<'_, '_> {
    /// What the commands before this one did, for an agent that never says when a call is done: up
    /// to the checkpoint this call has.
    pub(super) fn seen_next(&self, ledger: &mut Ledger) -> Vec<String> {
        if ledger.tells_ends() {
            return Vec::new();
        }
        let mut blasts = Vec::new();
        for open in ledger.take_open() {
            if let Some(now) = ledger.covering(&open.root) {
                let seen = since(self.process, &self.call.context, &open.root, open.of, |since| {
                    attribution::seen_next(since, now)
                });
                blasts.extend(seen.ok().flatten().map(|blast| (open.of, blast)));
            }
        }
        news(ledger, self.loaded.settings.notice, &blasts)
    }

    /// Keeps in mind that a command begins. Its end may go unseen.
    pub(super) fn keep_open(&self, ledger: &mut Ledger, reach: &Reach) {
        let is_command = matches!(self.effect, Effect::Destroys(_) | Effect::Unknown(_));
        let of = ledger.covering(reach.root.path());
        if let (true, Some(of)) = (is_command, of) {
            let root = reach.root.path().to_owned();
            ledger.begins(&UnfinishedCommand { call: attribution::name(self.call), root, of });
        }
    }
}
