//! After a tool call: logs what the call changed, and tells the user if that was much.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use super::{
    place::{effect_of, working_directory},
    quiet,
    trouble::write_journal,
    with_ledger,
};
use crate::{
    agent::Dialect,
    attribution::{self, ChangeSummary},
    config,
    error::Result,
    fs::PathResolver,
    journal::LineKind,
    ledger::{HeldWrite, Ledger},
    model::{
        CallContext, CheckpointId, Decision, Effect, Intent, Notice, Notify, ScanScope, ToolCall,
    },
    process::Process,
    reach::{self, Surroundings},
};

/// After a tool call: notes what the agent itself has left, so that its next edit of the same file
/// need not be held again, and a restore knows who made it.
pub(super) fn on_done(
    process: &mut Process<'_>,
    dialect: &'static Dialect,
    call: &ToolCall,
) -> Decision {
    if call.intent == Intent::Read {
        return Decision::NEUTRAL;
    }
    let cwd = working_directory(process, &call.context);
    let effect = effect(process, dialect, call, &cwd);
    // What names all that it changes is no surprise.
    let touches = match &effect {
        Effect::None => return Decision::NEUTRAL,
        Effect::Touches(_) => true,
        Effect::Destroys(_) | Effect::Unknown(_) => false,
    };
    // A stamp is as trustworthy as it is old by then.
    let now_ns = crate::fs::now_ns();
    let mut covered = BTreeMap::new();
    let noted = with_ledger(process, dialect, &call.context, |ledger| {
        // An edit is looked at by the paths it names, a command since the look right before it,
        // whatever turn runs now and whatever began meanwhile.
        let known = if touches { ledger.known() } else { BTreeMap::new() };
        covered = known.into_iter().chain(ledger.ends(&attribution::name(call))).collect();
    });
    let (mut blasts, mut held) = (Vec::new(), Vec::new());
    let noted = noted.and_then(|()| {
        for (root, of) in &covered {
            let blast = since(process, &call.context, root, *of, |since| {
                attribution::ended(since, call, &effect, &cwd, &mut held)
            })?;
            blasts.extend(blast.map(|blast| (*of, blast)));
        }
        Ok(())
    });
    // Only now is what the agent left held, and only what is held need not be held again.
    let noted = noted.and_then(|()| wrote(process, dialect, call, (&held, now_ns)));
    let told = if touches { None } else { notice(process, dialect, &call.context, &blasts) };
    let quiet = quiet(process, &call.context, noted);
    told.unwrap_or(quiet)
}

/// Notes in the ledger what a call left at the files that it names.
fn wrote(
    process: &Process<'_>,
    dialect: &'static Dialect,
    call: &ToolCall,
    (held, now_ns): (&[HeldWrite], i64),
) -> Result<()> {
    let (Intent::Write(paths) | Intent::Edit(paths)) = &call.intent else { return Ok(()) };
    let cwd = working_directory(process, &call.context);
    with_ledger(process, dialect, &call.context, |ledger| {
        let places = paths.iter().flat_map(|path| reach::plausible(path, &[&cwd]));
        places.for_each(|path| ledger.wrote(&path, held, now_ns));
    })
}

/// What a call could do to files.
fn effect(process: &Process<'_>, dialect: &Dialect, call: &ToolCall, cwd: &Path) -> Effect {
    if let Intent::Write(paths) | Intent::Edit(paths) = &call.intent {
        return Effect::Touches(paths.clone());
    }
    let mut loaded = config::load(process, Some(cwd));
    effect_of(process, &mut loaded, &PathResolver::default(), dialect, call)
}

/// Looks at what was done in the root at `path` since a checkpoint. A directory whose files are
/// not held as a whole is not looked at as a whole either.
pub(super) fn since(
    process: &Process<'_>,
    context: &CallContext,
    path: &Path,
    of: CheckpointId,
    look: impl FnOnce(attribution::SinceCheckpoint<'_, '_>) -> Result<Option<ChangeSummary>>,
) -> Result<Option<ChangeSummary>> {
    let settings = config::load(process, Some(path)).settings;
    let state = config::state(process, Some(path))?;
    let home = process.var("HOME").map(PathBuf::from);
    let surroundings =
        Surroundings { home: home.as_deref(), state: &state, real: &PathResolver::default() };
    let by = attribution::author(context.agent, &context.session);
    let Some((root, ScanScope::Whole)) = reach::root_around(path, &surroundings) else {
        return Ok(None);
    };
    look(attribution::SinceCheckpoint {
        process,
        state: &state,
        settings: &settings,
        root: &root,
        of,
        by: &by,
    })
}

/// Tells the user, never the model, of commands that did more than a person expects: once, and
/// only what was not told before.
pub(super) fn notice(
    process: &Process<'_>,
    dialect: &Dialect,
    context: &CallContext,
    blasts: &[(CheckpointId, ChangeSummary)],
) -> Option<Decision> {
    let cwd = working_directory(process, context);
    let settings = config::load(process, Some(&cwd)).settings;
    let is_much = |blast: &ChangeSummary| blast.is_much(settings.notice) || blast.unheld > 0;
    if settings.notify == Notify::Never || !blasts.iter().any(|(_, blast)| is_much(blast)) {
        return None;
    }
    let mut lines = Vec::new();
    let noted = with_ledger(process, dialect, context, |ledger| {
        lines = news(ledger, settings.notice, blasts);
    });
    if noted.is_err() || lines.is_empty() {
        return None;
    }
    let text = lines.join("\n");
    write_journal(process, Some(&cwd), LineKind::Deed, &text);
    Some(Decision::note(format!("beforehand: {text}")))
}

/// What of it the user has not been told, a line each.
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
