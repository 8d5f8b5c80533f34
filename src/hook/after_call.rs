//! After a tool call: logs what the call changed, and tells the user if that was much.

use std::{collections::BTreeMap, path::Path};

use super::{judged::JudgedCall, late, site::EventSite, without_call::both};
use crate::{
    agent::{Dialect, EventKind},
    attribution::{self, ChangeSummary, InBackground, SinceCheckpoint},
    error::Result,
    journal::LineKind,
    ledger::{Announcement, Ledger, OwnWrite},
    model::{Agent, CheckpointId, Decision, Effect, Intent, Notice, Notify, ScanScope, ToolCall},
    policy,
    process::Process,
    reach, ui,
};

/// After a tool call: logs the files that the agent changed, so that a restore knows who changed them,
/// and the agent's next edit of the same file need not be held again.
pub(super) fn on_done(
    process: &Process<'_>,
    dialect: &'static Dialect,
    call: &ToolCall,
    task: Option<InBackground>,
) -> Decision {
    if call.intent == Intent::Read {
        return Decision::NEUTRAL;
    }
    let site = EventSite::of(process, dialect, &call.context);
    let effect = match call.intent.edited() {
        Some(paths) => Effect::Touches(paths.to_vec()),
        None => JudgedCall::of(&site, call).effect,
    };
    if effect == Effect::None {
        return Decision::NEUTRAL;
    }
    late::watched(&site, EventKind::ToolDone, |site| on_effect(site, call, &effect, task))
}

/// Logs a call whose effect is known, and answers it.
pub(super) fn on_effect(
    site: &EventSite<'_, '_>,
    call: &ToolCall,
    effect: &Effect,
    task: Option<InBackground>,
) -> Decision {
    let mut blasts = Vec::new();
    let rewritten = note_rewritten(site, call, effect);
    let noted = note_left(site, call, (effect, task.or_else(|| started(effect))), &mut blasts);
    // A call that names everything that it changes surprises no one.
    let touches = matches!(effect, Effect::Touches(_));
    let told = if touches { None } else { notice(site, &blasts) };
    let quiet = site.quiet(noted);
    let told = told.unwrap_or(quiet);
    match rewritten {
        Some(line) => both(Decision::note(line), told),
        None => told,
    }
}

/// Compares a call that can change files with the calls that were announced. If none of them has this
/// input, the hook judged another input, so nothing is known to be held before the call. Then returns a
/// note for the user, and no later call of the session counts as harmless.
fn note_rewritten(site: &EventSite<'_, '_>, call: &ToolCall, effect: &Effect) -> Option<String> {
    let settings = site.settings();
    if site.dialect.agent == Agent::Program || !policy::is_wanted(&call.intent, effect, settings) {
        return None;
    }
    let mut is_news = false;
    let looked = site.with_ledger(|ledger| {
        let announced = ledger.announced(&attribution::call_key(call), call);
        // An edit that its turn covers takes the fast path, which does not lock the ledger: it is in the
        // log of calls alone.
        let is_edit = matches!(effect, Effect::Touches(_));
        if announced == Announcement::Different || announced == Announcement::Missing && !is_edit {
            // Where calls were known to be rewritten, the root was looked at before this one.
            is_news = ledger.may_be_rewritten() != Some(true);
            ledger.saw_rewritten_call();
        }
    });
    site.quiet(looked);
    let line = format!(
        "beforehand: `{}` ran, but another call was announced, or none: another program's hook rewrites \
         calls, or the hook before the call did not run. No checkpoint was taken for it. beforehand now \
         looks before every call of this session; `beforehand doctor` names the other hooks",
        ui::escape(call.summary().as_bytes())
    );
    is_news.then(|| {
        site.write_journal(LineKind::Trouble, &line);
        line
    })
}

/// Logs the state of the files after a call, and adds a summary of its changes to `blasts`.
fn note_left(
    site: &EventSite<'_, '_>,
    call: &ToolCall,
    (effect, background): (&Effect, Option<InBackground>),
    blasts: &mut Vec<(CheckpointId, ChangeSummary)>,
) -> Result<()> {
    // A stamp is trusted only if it was old enough at this moment.
    let now_ns = crate::fs::now_ns();
    let mut covered = BTreeMap::new();
    site.with_ledger(|ledger| {
        // An edit is compared at the paths that it names. A command is compared with the checkpoint
        // that was taken for it, whichever turn runs now and whatever began meanwhile.
        let is_edit = matches!(effect, Effect::Touches(_));
        let known = if is_edit { ledger.known() } else { BTreeMap::new() };
        covered = known.into_iter().chain(ledger.ends(&attribution::call_key(call))).collect();
        if background.is_some() {
            ledger.starts_in_background();
        }
    })?;
    let mut held = Vec::new();
    for (root, of) in &covered {
        let blast = since(site, root, *of, |since| {
            attribution::ended(since, (call, effect), &site.cwd, background, &mut held)
        })?;
        blasts.extend(blast.map(|blast| (*of, blast)));
    }
    // Only now are the agent's files held, and only a held file need not be held again.
    wrote(site, call, &held, now_ns)
}

/// The kind of background work that a command line has started, if it has.
fn started(effect: &Effect) -> Option<InBackground> {
    match effect {
        Effect::Destroys(finding) | Effect::Unknown(finding) => {
            finding.in_background.then_some(InBackground::Process)
        }
        Effect::None | Effect::Touches(_) => None,
    }
}

/// Records the state of the files that a call names in the ledger.
fn wrote(site: &EventSite<'_, '_>, call: &ToolCall, held: &[OwnWrite], now_ns: i64) -> Result<()> {
    let Some(paths) = call.intent.edited() else { return Ok(()) };
    site.with_ledger(|ledger| {
        let places = paths.iter().flat_map(|path| reach::plausible(path, &[&site.cwd]));
        places.for_each(|path| ledger.wrote(&path, held, now_ns));
    })
}

/// Compares the root at `path` with a checkpoint. A directory that is not held as a whole is not
/// compared.
pub(super) fn since(
    site: &EventSite<'_, '_>,
    path: &Path,
    of: CheckpointId,
    look: impl FnOnce(SinceCheckpoint<'_, '_>) -> Result<Option<ChangeSummary>>,
) -> Result<Option<ChangeSummary>> {
    let loaded = site.settings_at(path);
    let (settings, state) = (&loaded.settings, &loaded.state()?);
    let by = &attribution::session_name(site.context.agent, &site.context.session);
    let Some((root, ScanScope::Whole)) = reach::root_around(path, &site.surroundings(state)) else {
        return Ok(None);
    };
    look(SinceCheckpoint { process: site.process, state, settings, root: &root, of, by })
}

/// The note for the user, never for the model, about commands that changed more than a person expects.
/// Each change is reported once.
pub(super) fn notice(
    site: &EventSite<'_, '_>,
    blasts: &[(CheckpointId, ChangeSummary)],
) -> Option<Decision> {
    let settings = site.settings();
    let is_much = |blast: &ChangeSummary| blast.is_much(settings.notice) || blast.unheld > 0;
    if settings.notify == Notify::Never || !blasts.iter().any(|(_, blast)| is_much(blast)) {
        return None;
    }
    let mut lines = Vec::new();
    let noted = site.with_ledger(|ledger| lines = news(ledger, settings.notice, blasts));
    if noted.is_err() || lines.is_empty() {
        return None;
    }
    let text = lines.join("\n");
    site.write_journal(LineKind::Deed, &text);
    Some(Decision::note(format!("beforehand: {text}")))
}

/// The changes that the user has not been told about yet, a line for each checkpoint.
pub(super) fn news(
    ledger: &mut Ledger,
    notice: Notice,
    blasts: &[(CheckpointId, ChangeSummary)],
) -> Vec<String> {
    let unheld = blasts.iter().filter_map(|(_, blast)| blast.unheld_words());
    let mut lines: Vec<String> = unheld.filter(|line| ledger.is_news(line)).collect();
    for (of, blast) in blasts.iter().filter(|(_, blast)| blast.is_much(notice)) {
        let ChangeSummary { changed, deleted, untracked, .. } = *blast;
        let [changed, deleted, untracked] = ledger.told(*of, [changed, deleted, untracked]);
        let more =
            blast.beyond(ChangeSummary { changed, deleted, untracked, ..ChangeSummary::default() });
        lines.extend(more.is_much(notice).then(|| more.words(*of)));
    }
    lines
}
