//! One hook call from bytes to bytes; the only module that knows the order of the steps.
//!
//! Each step makes a value that the next ones read: event → settings → effect → targets → coverage →
//! checkpoint → ledger → answer.
//!
//! A hook never fails. Whatever goes wrong becomes a note for the user and a line in the journal,
//! and the agent goes on, unless the user's settings want it stricter.

mod after_call;
mod answer;
mod checkpoint;
mod consent;
mod covered;
mod judged;
mod late;
mod notes;
mod payload;
mod preview;
mod program;
mod protection;
mod site;
mod targets;
mod turn_boundary;
mod without_call;

pub use preview::{Foreseen, foresee};
pub use program::{program_begins, program_ended};

use std::{ffi::OsString, path::Path, time::Instant};

use self::{
    answer::Answer,
    judged::{JudgedCall, placed},
    notes::{HeldRoot, Notes},
    payload::read_payload,
    protection::Protection,
    site::{EventSite, said},
    targets::CallTargets,
};
use crate::{
    agent::{self, Dialect, EventKind, HookAnswer, Markers},
    attribution::{Begins, InBackground, call_key},
    crash,
    error::{Error, Result},
    ledger::Ledger,
    model::{Decision, Effect, Event, Intent, Reach, ScanScope, ToolCall},
    policy::{self, Coverage, HookAction},
    process::{Exit, Process, Watch},
    reach::AtRisk,
    state::StateDir,
    store::record,
    ui,
};

/// Answers one hook call of the agent called `name`.
pub fn run(process: &mut Process<'_>, name: &str) -> Exit {
    let markers = Markers::read(|name| process.var(name).map(OsString::from));
    let Some(dialect) = agent::by_name(name).map(|dialect| agent::corrected(dialect, &markers))
    else {
        // An agent may take any other exit code for a refusal.
        let note = format!(
            "beforehand: no agent is called `{}`; nothing was done",
            ui::escape(name.as_bytes())
        );
        let _ignored = writeln!(process.stderr, "{note}");
        return Exit::Ok;
    };
    let (kind, decision) = match read_payload(process.stdin) {
        Ok(payload) => decide(process, dialect, &markers, &payload),
        Err(why) => {
            let call = dialect.unreadable_call(&[], &markers);
            let why = format!("cannot read the hook payload: {why}");
            (EventKind::Other, without_call::on_unreadable(process, dialect, &call, &why))
        }
    };
    write_answer(process, &dialect.answer(kind, &decision))
}

/// Answers an agent after a panic: no opinion, and a note for the user.
pub fn after_a_bug(process: &mut Process<'_>, name: &str) -> Exit {
    let note = "beforehand: a bug in beforehand; this call is NOT protected. `beforehand status` tells more";
    let decision = Decision::note(note.to_owned());
    match agent::by_name(name) {
        Some(dialect) => write_answer(process, &dialect.answer(EventKind::Other, &decision)),
        None => Exit::Ok,
    }
}

fn write_answer(process: &mut Process<'_>, answer: &HookAnswer) -> Exit {
    // An agent that no longer listens is no reason to fail.
    let _ignored = process.stdout.write_all(&answer.stdout).and_then(|()| process.stdout.flush());
    let _ignored = process.stderr.write_all(&answer.stderr);
    if answer.exit == 0 { Exit::Ok } else { Exit::Denied }
}

fn decide(
    process: &Process<'_>,
    dialect: &'static Dialect,
    markers: &Markers,
    payload: &[u8],
) -> (EventKind, Decision) {
    match dialect.parse(payload, markers) {
        Ok(event) => {
            let kind = EventKind::from(&event);
            (kind, on_event(process, dialect, markers, event))
        }
        Err(bad) => {
            let call = dialect.unreadable_call(payload, markers);
            (
                EventKind::Other,
                without_call::on_unreadable(process, dialect, &call, &bad.to_string()),
            )
        }
    }
}

fn on_event(
    process: &Process<'_>,
    dialect: &'static Dialect,
    markers: &Markers,
    event: Event,
) -> Decision {
    let kind = EventKind::from(&event);
    let site = |context| EventSite::of(process, dialect, context);
    match turn_boundary::with_parent(process, dialect, event) {
        Event::ToolCall(call) => on_call(process, dialect, markers, &placed(process, &call)),
        Event::CommandLine(call) => without_call::on_command_line(process, dialect, &call),
        Event::CommandLineDone(call) => {
            if !without_call::begins_next_turn(process, dialect, &call) {
                return Decision::NEUTRAL;
            }
            after_call::on_done(process, dialect, &call, None)
        }
        Event::ToolDone(call) => {
            after_call::on_done(process, dialect, &placed(process, &call), None)
        }
        Event::ToolInBackground(call) => {
            after_call::on_done(process, dialect, &placed(process, &call), Some(InBackground::Task))
        }
        Event::TurnBegins { context, prompt } => {
            let begun = late::watched(&site(&context), kind, |site| {
                turn_boundary::turn_begins(site, prompt.as_deref())
            });
            let prompt = prompt.unwrap_or_default();
            let held = without_call::on_prompt(process, dialect, &context, &prompt);
            without_call::both(begun, held)
        }
        Event::TurnEnds(context) => late::watched(&site(&context), kind, |site| {
            turn_boundary::start_maintenance(site);
            turn_boundary::turn_ends(site, |_| false)
        }),
        Event::TurnEndsIdle(context) => late::watched(&site(&context), kind, |site| {
            turn_boundary::start_maintenance(site);
            turn_boundary::turn_ends(site, |background| background == InBackground::Task)
        }),
        Event::SessionEnds(context) => late::watched(&site(&context), kind, |site| {
            let decision = turn_boundary::turn_ends(site, |_| true);
            turn_boundary::on_session_end(site);
            decision
        }),
        Event::SessionBegins(context) => late::watched(&site(&context), kind, |site| {
            turn_boundary::on_session_begin(site);
            turn_boundary::warn_if_unprotected(site)
        }),
        Event::SubagentBegins { context, child } => late::watched(&site(&context), kind, |site| {
            turn_boundary::subagent_begins(site, &child);
            Decision::NEUTRAL
        }),
        Event::Other => Decision::NEUTRAL,
    }
}

/// Before a tool call: sees to it that what the call can destroy is held.
fn on_call(
    process: &Process<'_>,
    dialect: &'static Dialect,
    markers: &Markers,
    call: &ToolCall,
) -> Decision {
    if call.intent == Intent::Read {
        return Decision::NEUTRAL;
    }
    let site = EventSite::of_call(process, dialect, call);
    let judged = JudgedCall::of(&site, call);
    if judged.effect == Effect::None {
        return Decision::NEUTRAL;
    }
    if !site.settings().enabled {
        return answer::switched_off(&site);
    }
    let mut watch = Watch::default();
    let answer = answer_to(&site, &judged, |targets| {
        // Opens a few files and waits for nothing. To watch it would cost more than it does.
        if covered::is_covered(&site, &judged, &site.loaded.state()?) {
            return Ok(Notes::default());
        }
        watch = late::watch(&site, &judged, targets, markers, EventKind::ToolCall);
        hold_call(&site, &judged, targets)
    });
    let decision = consent::settle(&site, call, answer.journalled(&site), markers);
    watch.claim();
    decision
}

/// The answer to a call that can change files. `hold` holds the files that it can lose.
fn answer_to(
    site: &EventSite<'_, '_>,
    judged: &JudgedCall<'_>,
    hold: impl FnOnce(&mut CallTargets) -> Result<Notes>,
) -> Answer {
    let targets = CallTargets::of(site, judged);
    let threat = answer::command_threat(site, judged, &targets);
    let is_wanted = policy::is_wanted(&judged.call.intent, &judged.effect, site.settings());
    let answer = if is_wanted {
        Answer::of(Protection::of(site, judged, targets, hold), &judged.effect, site)
    } else {
        Answer::NEUTRAL
    };
    // An edit is judged by its paths alone, and where those lead is known once it is held.
    let threat = if judged.is_edit() { answer::edit_threat(site, judged) } else { threat };
    match threat {
        Some(why) => answer.defended(&why, site.settings().self_defence),
        None => answer,
    }
}

/// Holds the files that the call can change, unless the turn has a checkpoint with them. Returns the notes about
/// them.
fn hold_call(
    site: &EventSite<'_, '_>,
    judged: &JudgedCall<'_>,
    targets: &mut CallTargets,
) -> Result<Notes> {
    let mut turn = TurnState::open(site)?;
    if let Some(ledger) = &mut turn.ledger {
        ledger.announce(&call_key(judged.call), judged.call);
        if ledger.may_be_rewritten().is_none() {
            ledger.note_other_hooks(site.has_other_hooks());
        }
    }
    crash::bug("hold");
    let home = turn.ledger.as_mut().map_or_else(|| site.cwd.clone(), |it| it.home(&site.cwd));
    let start = targets::start(&site.cwd, home);
    let state = turn.state.clone();
    let held = targets.reach(site, judged, &state, &start).and_then(|outer| {
        hold_roots(site, judged, &state, outer, |reach| {
            hold_root(site, judged, &mut turn, reach, targets.at_risk())
        })
    });
    match held {
        Ok(held) => Ok(turn.close(site, judged, held)),
        Err(why) => {
            turn.give_up(site, judged);
            Err(why)
        }
    }
}

/// The turn of a call: where its checkpoints are, and its ledger, locked to the end of the call.
struct TurnState {
    state: StateDir,
    /// `None` while another process holds it.
    ledger: Option<Ledger>,
    deadline: Instant,
}

impl TurnState {
    /// Opens the turn.
    fn open(site: &EventSite<'_, '_>) -> Result<Self> {
        let state = site.loaded.state()?;
        let deadline = site.process.started + site.settings().deadline;
        let (agent, session) = site.session();
        let ledger = match Ledger::open_by(&site.real, &state, agent, session, deadline) {
            Ok(ledger) => Some(ledger),
            // Another process holds it until our deadline: a copy of our own is better than none.
            Err(Error::Busy { .. }) => None,
            Err(err) => return Err(err),
        };
        Ok(Self { state, ledger, deadline })
    }

    /// Logs that the call begins, now that everything is held, and returns the notes for the user.
    fn close(
        self,
        site: &EventSite<'_, '_>,
        judged: &JudgedCall<'_>,
        mut held: Vec<HeldRoot>,
    ) -> Notes {
        let lines = judged.setting_notes.clone();
        let mut notes = Notes::of(lines, &mut held, &judged.effect, &site.cwd);
        let Some(mut ledger) = self.ledger else { return notes };
        for root in &held {
            note_begins(site, judged, &ledger, root, &self.state);
        }
        notes.deeds = turn_boundary::seen_next(site, &mut ledger);
        note_shell(site, judged, &mut ledger);
        for root in held.iter().filter(|_| !judged.is_edit()) {
            turn_boundary::keep_open(&mut ledger, judged.call, root.reach.root.path());
        }
        notes.lines.retain(|line| ledger.is_news(line));
        if let Err(err) = ledger.close() {
            // Everything is held. Later calls take it for new, and hold it once more.
            let line = format!("could not note the checkpoint for later calls ({})", said(&err));
            notes.lines.push(ui::escape_line(line.as_bytes()).into_owned());
        }
        notes
    }

    /// Records the effect of the call on the session's shell, although nothing is held. Best effort.
    fn give_up(self, site: &EventSite<'_, '_>, judged: &JudgedCall<'_>) {
        let Some(mut ledger) = self.ledger else { return };
        note_shell(site, judged, &mut ledger);
        site.quiet(ledger.close());
    }
}

/// Records that later lines of the session's shell may mean something else, if the call can do that.
fn note_shell(site: &EventSite<'_, '_>, judged: &JudgedCall<'_>, ledger: &mut Ledger) {
    if site.dialect.keeps_shell && judged.changes_shell() {
        ledger.changes_shell();
    }
}

/// Holds `each` root that the call reaches: the outer one, then those inside it that the checkpoint of
/// the outer one leaves out.
fn hold_roots(
    site: &EventSite<'_, '_>,
    judged: &JudgedCall<'_>,
    state: &StateDir,
    outer: Reach,
    mut each: impl FnMut(Reach) -> Result<HeldRoot>,
) -> Result<Vec<HeldRoot>> {
    let mut outer = each(outer)?;
    let within = targets::within(site, judged, state, &outer.reach.root);
    // An inner root that is held as a whole has what the outer one leaves out.
    let has = |inner: &Reach, path: &Path| {
        inner.scope == ScanScope::Whole && path.starts_with(inner.root.path())
    };
    outer.unheld.retain(|unheld| !within.iter().any(|inner| has(inner, &unheld.path)));
    std::iter::once(Ok(outer)).chain(within.into_iter().map(each)).collect()
}

/// Takes a checkpoint of a root, unless the turn has one that holds what the call can change.
fn hold_root(
    site: &EventSite<'_, '_>,
    judged: &JudgedCall<'_>,
    TurnState { state, ledger, deadline }: &mut TurnState,
    reach: Reach,
    at_risk: &[AtRisk],
) -> Result<HeldRoot> {
    // A root that this session has met is known by its path.
    if !ledger.as_ref().is_some_and(|ledger| ledger.knows(reach.root.path())) {
        // Best effort: a root whose earlier state is not found counts as new.
        let _found = record::settle(state, reach.root.path(), site.process.now);
    }
    let (effect, settings) = (&judged.effect, site.settings());
    let coverage = ledger.as_mut().map_or(Coverage::Bare, |ledger| {
        covered::coverage(ledger, site.context, effect, &reach, state)
    });
    if policy::decide(effect, coverage, settings.dedupe) == HookAction::Nothing {
        return Ok(HeldRoot::unscanned(reach));
    }
    // Waiting for the ledger has used up the deadline, so the snapshot gets one of its own.
    let deadline = if ledger.is_some() { *deadline } else { Instant::now() + settings.deadline };
    let saved = checkpoint::save(site, judged.call, ledger.as_ref(), (&reach, state), deadline)?;
    let (lines, unheld) = notes::of_saved(&saved, (&reach, state), (effect, at_risk), settings);
    if let Some(ledger) = ledger {
        let used = checkpoint::use_of(site, judged.call, ledger, (&saved.checkpoint, &reach));
        ledger.cover(&used);
    }
    Ok(HeldRoot { reach, is_compared: true, lines, unheld })
}

/// Logs for restores that the call begins. A change of a call that is not logged has no known author.
fn note_begins(
    site: &EventSite<'_, '_>,
    judged: &JudgedCall<'_>,
    ledger: &Ledger,
    HeldRoot { reach, is_compared, .. }: &HeldRoot,
    state: &StateDir,
) {
    if let Some(of) = ledger.covering(reach.root.path()) {
        let place = state.root(&reach.root);
        let begins = judged.begins(&site.cwd, (&place, reach), ledger, of);
        let _noted = Begins { compared: *is_compared, ..begins }.note(site.process);
    }
}
