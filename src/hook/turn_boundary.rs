//! The start and the end of a session or a turn. Catches changes that no hook reports, by rescanning;
//! for an agent that never reports the end of a call, before its next call too. No call waits for the
//! hook then, so it starts the background work.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use serde_json::Value;

use super::{
    after_call::{news, notice, since},
    site::EventSite,
};
use crate::{
    agent::{Dialect, SubagentSessions, TurnStart},
    attribution::{self, ChangeSummary, InBackground, SinceCheckpoint},
    config,
    error::Result,
    fs::{PathResolver, read_small},
    health::{AgentVerdict, Evidence, HealthQuery},
    install,
    ledger::{Ledger, UnfinishedCommand},
    maintenance::{self, conversations, warm::Edge},
    model::{
        Agent, CallContext, CheckpointId, Decision, Event, Notify, SessionEnd, SessionId, ToolCall,
    },
    process::Process,
};

/// How deep sub-agents start sub-agents. Below that, a sub-agent's conversation counts as its own.
const SUBAGENT_DEPTH_MAX: usize = 8;

/// The start of a turn. If the turn before was interrupted, the changes of commands without a reported end
/// are counted, but have no author: the user may have worked since.
pub(super) fn turn_begins(site: &EventSite<'_, '_>, prompt: Option<&str>) -> Decision {
    let (mut open, mut tell, mut before) = (Vec::new(), None, LastTurn::default());
    let mut is_news = false;
    let kept = if prompt.is_none() { kept_prompt(site) } else { None };
    let prompt = prompt.or(kept.as_deref());
    let has_other_hooks = site.has_other_hooks();
    let begun = site.with_ledger(|ledger| {
        let last = ledger.turn();
        ledger.note_other_hooks(has_other_hooks);
        before = LastTurn::of(ledger);
        tell = ledger.take_tell();
        ledger.begin_turn(site.context.turn.as_ref(), prompt);
        // A hook for prompts was installed together with one for the ends of calls. So a call without
        // an end was cut off, even the first of a session.
        if site.dialect.tells_ends {
            is_news = !ledger.tells_ends();
            ledger.expect_ends();
        }
        if ledger.turn() == last {
            // The turn goes on: this prompt is part of it.
            before = LastTurn::default();
        }
        if let Some(transcript) = &site.context.transcript {
            ledger.converses(transcript);
        }
        if let Some(server) = &site.context.server {
            ledger.note_server(server);
        }
        ledger.called_by(&site.process.logged_calls());
        open = ledger.take_open();
    });
    let quiet = site.quiet(begun);
    if is_news {
        note_ends_are_told(site, &open);
    }
    // Changes since the end of the turn before are scanned while the model thinks.
    for root in before.roots.keys() {
        warm(site, root, Edge::Begins);
    }
    let blasts = if before.tells_ends {
        before.cut_off(site, |_| false)
    } else {
        look(site, &open, |since, _| attribution::after_shell(since, None))
    };
    let decision = notice(site, &blasts).unwrap_or(quiet);
    Decision { tell, ..decision }
}

/// Logs, for each running command, that its agent reports the end of calls.
fn note_ends_are_told(site: &EventSite<'_, '_>, open: &[UnfinishedCommand]) {
    let by = attribution::session_name(site.context.agent, &site.context.session);
    for open in open {
        if let Ok(state) = site.settings_at(&open.root).state() {
            let place = state.root_at(&open.root);
            // Best effort: changes of a command without this line have no known author.
            let _noted =
                attribution::note_reports_ends(site.process, &place, &by, &open.call, open.of);
        }
    }
}

/// The first prompt of a Cline task, from the file that Cline keeps of it. Its payload does not have it.
fn kept_prompt(site: &EventSite<'_, '_>) -> Option<String> {
    /// The file has a few lines.
    const SIZE_MAX_BYTES: u64 = 1 << 20;
    let row = install::ROWS.iter().find(|row| row.agent == "cline")?;
    let name = &site.context.session.0;
    let is_plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    if site.context.agent != Agent::Cline || !is_plain {
        return None;
    }
    let path = row.dir(site.process)?.join("data/sessions").join(name).join(format!("{name}.json"));
    let kept: Value = serde_json::from_slice(&read_small(&path, SIZE_MAX_BYTES).ok()??).ok()?;
    kept.get("prompt")?.as_str().map(str::to_owned)
}

/// The end of a turn. Changes of commands without a reported end are the agent's. `are_over` says which
/// kinds of background work have ended with the turn.
pub(super) fn turn_ends(
    site: &EventSite<'_, '_>,
    are_over: impl Fn(InBackground) -> bool,
) -> Decision {
    // A sub-agent's end is not the end of what runs beside it.
    if site.context.subagent.is_some() {
        return Decision::NEUTRAL;
    }
    let (mut open, mut turn) = (Vec::new(), LastTurn::default());
    let ended = site.with_ledger(|ledger| {
        turn = LastTurn::of(ledger);
        open = ledger.take_open();
        if site.dialect.turns == TurnStart::CallAfterEnd {
            ledger.end_turn();
        }
    });
    let quiet = site.quiet(ended);
    let blasts = if turn.tells_ends {
        turn.cut_off(site, are_over)
    } else {
        look(site, &open, |since, calls| attribution::after_shell(since, Some(calls)))
    };
    // Last, so that the log entries above are older than the warm-up's scan.
    warm_after(site, &turn);
    notice(site, &blasts).unwrap_or(quiet)
}

/// A turn that is over.
#[derive(Default)]
struct LastTurn {
    /// The roots that it has a checkpoint of.
    roots: BTreeMap<PathBuf, CheckpointId>,
    /// When it first used one, in nanoseconds since 1970; 0 if something of an earlier one may go on in the
    /// background.
    began: i64,
    /// Whether its agent says when a call ends.
    tells_ends: bool,
    /// The path of the session's transcript.
    transcript: Option<PathBuf>,
}

impl LastTurn {
    fn of(ledger: &Ledger) -> Self {
        let tells_ends = ledger.tells_ends();
        let transcript = ledger.transcript();
        if ledger.has_background() {
            return Self { roots: ledger.known(), began: 0, tells_ends, transcript };
        }
        let began = ledger.turn_began().and_then(|at| at.timestamp_nanos_opt());
        Self { roots: ledger.covered(), began: began.unwrap_or(0), tells_ends, transcript }
    }

    /// Logs that calls without a reported end are over: they were refused or cut off, and the user may have
    /// worked since.
    fn cut_off(
        &self,
        site: &EventSite<'_, '_>,
        are_over: impl Fn(InBackground) -> bool,
    ) -> Vec<(CheckpointId, ChangeSummary)> {
        let seen = |(root, of): (&PathBuf, &CheckpointId)| {
            let seen =
                since(site, root, *of, |since| attribution::cut_off(since, self.began, &are_over));
            // Best effort: changes that cannot be read have no known author.
            Some((*of, seen.ok().flatten()?))
        };
        self.roots.iter().filter_map(seen).collect()
    }
}

/// Compares each root once, with the oldest checkpoint that covers an open command in it.
fn look(
    site: &EventSite<'_, '_>,
    open: &[UnfinishedCommand],
    mut with: impl FnMut(SinceCheckpoint<'_, '_>, &[String]) -> Result<Option<ChangeSummary>>,
) -> Vec<(CheckpointId, ChangeSummary)> {
    let mut blasts = Vec::new();
    for (at, first) in open.iter().enumerate() {
        if open[..at].iter().any(|earlier| earlier.root == first.root) {
            continue;
        }
        let same = open.iter().filter(|other| other.root == first.root);
        let calls: Vec<String> = same.map(|other| other.call.clone()).collect();
        let seen = since(site, &first.root, first.of, |since| with(since, &calls));
        // Best effort: changes that cannot be read have no known author.
        blasts.extend(seen.ok().flatten().map(|blast| (first.of, blast)));
    }
    blasts
}

/// For agents that do not report the end of a call, the start of a call ends the previous ones. Returns
/// the lines about the changes between their checkpoint and the one of this call.
pub(super) fn seen_next(site: &EventSite<'_, '_>, ledger: &mut Ledger) -> Vec<String> {
    if ledger.tells_ends() {
        return Vec::new();
    }
    let mut blasts = Vec::new();
    for open in ledger.take_open() {
        if let Some(now) = ledger.covering(&open.root) {
            let seen =
                since(site, &open.root, open.of, |since| attribution::count_between(since, now));
            blasts.extend(seen.ok().flatten().map(|blast| (open.of, blast)));
        }
    }
    news(ledger, site.settings().notice, &blasts)
}

/// Records that a command begins. Its end may not be reported.
pub(super) fn keep_open(ledger: &mut Ledger, call: &ToolCall, root: &Path) {
    if let Some(of) = ledger.covering(root) {
        let (call, root) = (attribution::call_key(call), root.to_owned());
        ledger.begins(&UnfinishedCommand { call, root, of });
    }
}

/// The start of a session: warms up, so that its first call finds a recent scan.
pub(super) fn on_session_begin(site: &EventSite<'_, '_>) {
    let settings = site.settings();
    if !settings.enabled || !settings.triggers.session_start {
        return start_maintenance(site);
    }
    // The warm-up also runs maintenance if it is due: one process is enough.
    maintenance::warm::start(
        site.process,
        site.dialect.name,
        &site.context.session,
        &site.cwd,
        Edge::Begins,
    );
}

/// Scans the roots that the turn worked in before the user goes on with them, so that a revert of the turn
/// knows its result. Keeps the conversation.
fn warm_after(site: &EventSite<'_, '_>, turn: &LastTurn) {
    let agent = site.context.agent;
    let session = &site.context.session;
    for root in turn.roots.keys() {
        let Ok(state) = site.settings_at(root).state() else { continue };
        let transcript = turn.transcript.as_deref();
        let is_kept =
            transcript.is_none_or(|it| conversations::is_kept(&state, agent, session, it));
        if !is_kept || maintenance::warm::is_cold(&state, root) {
            warm(site, root, Edge::Ended);
        }
    }
}

fn warm(site: &EventSite<'_, '_>, root: &Path, edge: Edge) {
    let settings = &site.settings_at(root).settings;
    if settings.enabled && settings.triggers.session_start {
        let (agent, session) = (site.dialect.name, &site.context.session);
        maintenance::warm::start(site.process, agent, session, root, edge);
    }
}

/// Records which conversation started a sub-agent that has one of its own.
pub(super) fn subagent_begins(site: &EventSite<'_, '_>, child: &SessionId) {
    let context = CallContext { session: child.clone(), ..site.context.clone() };
    let of_child = EventSite::of(site.process, site.dialect, &context);
    let noted = of_child.with_ledger(|ledger| ledger.note_started_by(&site.context.session));
    site.quiet(noted);
}

/// Moves an event of a sub-agent to the conversation that started it: the work of a sub-agent belongs to
/// the turn that started it. Reads a ledger for each event, so only for agents with
/// [`SubagentSessions::Separate`].
pub(super) fn with_parent(
    process: &Process<'_>,
    dialect: &'static Dialect,
    mut event: Event,
) -> Event {
    if dialect.subagents == SubagentSessions::Shared {
        return event;
    }
    let Some(context) = event.context_mut() else { return event };
    let Ok(state) = config::state(process, context.cwd.as_deref()) else { return event };
    let real = PathResolver::default();
    let child = context.session.clone();
    for _ in 0..SUBAGENT_DEPTH_MAX {
        let ledger = Ledger::peek(&real, &state, dialect.name, &context.session.0);
        let Some(parent) = ledger.and_then(|ledger| ledger.started_by()) else { break };
        context.session = parent;
        context.subagent.get_or_insert_with(|| child.0.clone());
        context.turn = None;
    }
    let is_sub = context.subagent.is_some();
    // Its prompt is not the user's.
    if is_sub && matches!(event, Event::TurnBegins { .. }) { Event::Other } else { event }
}

/// Starts maintenance, if it is due.
pub(super) fn start_maintenance(site: &EventSite<'_, '_>) {
    // Without a state directory nothing was ever saved.
    if let Ok(state) = site.loaded.state()
        && site.settings().enabled
        && state.dir().is_dir()
    {
        maintenance::start_if_due(site.process, &state, site.settings());
    }
}

/// At the start of a session, warns the user once if there is evidence that the agent's calls are not held.
/// The hook that warns does run, so the agent's arguments are not read.
pub(super) fn warn_if_unprotected(site: &EventSite<'_, '_>) -> Decision {
    let settings = site.settings();
    let row = install::ROWS.iter().find(|row| row.agent == site.dialect.name);
    let (Some(row), Ok(state)) = (row, site.loaded.state()) else { return Decision::NEUTRAL };
    if !settings.enabled || settings.notify == Notify::Never || !state.dir().is_dir() {
        return Decision::NEUTRAL;
    }
    let query = HealthQuery { root: None, settings, conversations: None, other_hooks: false };
    let agent = Evidence::read(site.process, &state).agent(row, query);
    if agent.verdict != AgentVerdict::Unprotected {
        return Decision::NEUTRAL;
    }
    let line = format!("the calls of {} are not held: {}", agent.title(), agent.message);
    let mut is_news = false;
    let noted = site.with_ledger(|ledger| is_news = ledger.is_news(&line));
    let quiet = site.quiet(noted);
    if !is_news {
        return quiet;
    }
    let hint = agent.hint.map_or_else(String::new, |hint| format!("\nhint: {hint}"));
    Decision::note(format!("beforehand: {line}{hint}"))
}

/// The end of a session: prunes its checkpoints if the settings say so, and starts maintenance.
pub(super) fn on_session_end(site: &EventSite<'_, '_>) {
    let settings = site.settings();
    if settings.on_session_end == SessionEnd::Keep {
        return start_maintenance(site);
    }
    if let Ok(state) = site.loaded.state()
        && state.dir().is_dir()
    {
        let (agent, session) = (site.dialect.name, &site.context.session);
        maintenance::start_after_session(site.process, &state, settings, agent, session);
    }
}
