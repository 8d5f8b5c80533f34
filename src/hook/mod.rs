//! One hook call from bytes to bytes; the only module that knows the order of the steps.
//!
//! A hook never fails. Whatever goes wrong becomes a note for the user and a line in the journal,
//! and the agent goes on, unless the user's settings want it stricter.

mod after_call;
mod consent;
mod covered;
mod defence;
mod lifecycle;
mod notes;
mod place;
mod preview;
mod program;
mod trouble;
mod turn_boundary;

pub use preview::{Foreseen, foresee};
pub use program::{program_begins, program_ended};

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use self::{
    notes::Notes,
    place::{effect_of, placed, working_directory, working_directory_by},
    trouble::{said, trouble, write_journal},
};
use crate::{
    agent::{self, Dialect, EventKind, HookAnswer, Markers},
    attribution,
    config::{self, LoadedSettings},
    error::{Error, Result},
    fs::PathResolver,
    journal::LineKind,
    ledger::{Ledger, Use},
    maintenance,
    model::{
        By, CallContext, Cause, Checkpoint, CheckpointId, Decision, Effect, Event, Intent, Reach,
        Reason, Root, ScanScope, Settings, ToolCall,
    },
    policy::{self, HookAction},
    process::{Exit, Process, Stdin},
    reach::{self, AtRisk},
    snapshot::{self, SnapshotRequest},
    state::{RootState, StateDir},
    store::{Saved, record},
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
        Err(why) => (
            EventKind::Other,
            trouble(process, None, &format!("cannot read the hook payload: {why}")),
        ),
    };
    write_answer(process, &dialect.answer(kind, &decision))
}

/// The answer to an agent when a bug stopped us: no opinion, and a word to the user.
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
    process: &mut Process<'_>,
    dialect: &'static Dialect,
    markers: &Markers,
    payload: &[u8],
) -> (EventKind, Decision) {
    match dialect.parse(payload, markers) {
        Ok(event) => {
            let kind = EventKind::from(&event);
            (kind, on_event(process, dialect, markers, event))
        }
        Err(bad) => (EventKind::Other, trouble(process, None, &bad.to_string())),
    }
}

fn on_event(
    process: &mut Process<'_>,
    dialect: &'static Dialect,
    markers: &Markers,
    event: Event,
) -> Decision {
    match event {
        Event::ToolCall(call) => on_call(process, dialect, markers, &placed(&call)),
        Event::ToolDone(call) => after_call::on_done(process, dialect, &placed(&call)),
        Event::TurnBegins { context, prompt } => {
            turn_boundary::turn_begins(process, dialect, &context, prompt.as_deref())
        }
        Event::TurnEnds(context) => {
            lifecycle::start_maintenance(process, &context);
            turn_boundary::turn_ends(process, dialect, &context)
        }
        Event::SessionEnds(context) => {
            let decision = turn_boundary::turn_ends(process, dialect, &context);
            lifecycle::on_session_end(process, dialect, &context);
            decision
        }
        Event::SessionBegins(context) => {
            lifecycle::on_session_begin(process, dialect, &context);
            Decision::NEUTRAL
        }
        Event::Other => Decision::NEUTRAL,
    }
}

/// Before a tool call: sees to it that what the call can destroy is held.
fn on_call(
    process: &mut Process<'_>,
    dialect: &'static Dialect,
    markers: &Markers,
    call: &ToolCall,
) -> Decision {
    if call.intent == Intent::Read {
        return Decision::NEUTRAL;
    }
    let mut hook = Hook::new(process, dialect, call);
    if hook.effect == Effect::None {
        return Decision::NEUTRAL;
    }
    if !hook.loaded.settings.enabled {
        return hook.say_if_switched_off();
    }
    let decision = hook.judge(Hook::protect);
    hook.settle(decision, markers)
}

/// Looks at the directory of a file that is edited: it is most often below the one the call is made
/// in, and then this answers for both.
fn expect_edited(real: &PathResolver, intent: &Intent) {
    let (Intent::Write(paths) | Intent::Edit(paths)) = intent else { return };
    if let Some(above) = paths.first().filter(|path| path.is_absolute()).and_then(|it| it.parent())
    {
        real.expect(above);
    }
}

/// What is done about a root that a call reaches.
type EachRoot<'e, Hook> = dyn FnMut(&Hook, &Reach, &mut Notes) -> Result<()> + 'e;

/// One tool call that can change files.
struct Hook<'h, 'p> {
    process: &'h mut Process<'p>,
    dialect: &'static Dialect,
    loaded: LoadedSettings,
    call: &'h ToolCall,
    effect: Effect,
    cwd: PathBuf,
    /// What `HOME` says.
    home: Option<PathBuf>,
    /// Where paths lead, for this call.
    real: PathResolver,
    /// What the call names and can destroy, once its root is known.
    at_risk: Vec<AtRisk>,
    /// The root around `cwd`, once it was looked for.
    around: Option<(Root, ScanScope)>,
    /// The settings by which the call is asked about or refused.
    rules: Vec<&'static str>,
    /// Whether nothing is saved or noted, and only the answer matters.
    is_foreseen: bool,
}

impl<'h, 'p> Hook<'h, 'p> {
    fn new(process: &'h mut Process<'p>, dialect: &'static Dialect, call: &'h ToolCall) -> Self {
        let real = PathResolver::default();
        expect_edited(&real, &call.intent);
        let cwd = working_directory_by(&real, process, &call.context);
        let mut loaded = config::load_by(process, Some(&cwd), &real);
        let effect = effect_of(process, &mut loaded, &real, dialect, call);
        let home = process.var("HOME").map(PathBuf::from);
        let (at_risk, around, rules, is_foreseen) = (Vec::new(), None, Vec::new(), false);
        Self {
            process,
            dialect,
            loaded,
            call,
            effect,
            cwd,
            home,
            real,
            at_risk,
            around,
            rules,
            is_foreseen,
        }
    }
}

impl Hook<'_, '_> {
    /// What to answer to a call that can change files, once `protect` has seen to what it can lose.
    fn judge(&mut self, protect: impl FnOnce(&mut Self) -> Result<Notes>) -> Decision {
        // An edit is judged by its paths alone, and where those lead is known once it is held.
        let is_edit = matches!(self.effect, Effect::Touches(_));
        let threat = if is_edit { None } else { self.threat() };
        let decision = if self.is_wanted() {
            match protect(self) {
                Ok(notes) => self.decision(&notes),
                Err(err) => self.on_trouble(&err),
            }
        } else {
            Decision::NEUTRAL
        };
        match if is_edit { self.threat() } else { threat } {
            Some(why) => self.defend(&why, decision),
            None => decision,
        }
    }

    /// Holds what the call can change, unless the turn has all of it. Returns what to say of it.
    fn protect(&mut self) -> Result<Notes> {
        let state = self.loaded.state()?;
        let mut notes = Notes::default();
        if self.is_covered(&state) {
            return Ok(notes);
        }
        let deadline = self.process.started + self.settings().deadline;
        let session = &self.call.context.session.0;
        let ledger = Ledger::open_by(&self.real, &state, self.dialect.name, session, deadline);
        let (mut ledger, is_busy) = match ledger {
            Ok(ledger) => (Some(ledger), false),
            // Another process holds it until our deadline: a copy of our own is better than none.
            Err(Error::Busy { .. }) => (None, true),
            Err(err) => return Err(err),
        };
        let home =
            ledger.as_mut().map_or_else(|| self.cwd.clone(), |ledger| ledger.home(&self.cwd));
        let deadline = (!is_busy).then_some(deadline);
        let start = self.start(&home);
        notes.lines.append(&mut self.loaded.notes);
        let mut each = |hook: &Self, reach: &Reach, notes: &mut Notes| {
            hook.hold_root(ledger.as_mut(), reach, &state, deadline, notes)
        };
        let held = self.hold(&start, &state, &mut notes, &mut each)?;
        for reach in &held {
            let compared = notes.compared.iter().any(|root| root == reach.root.path());
            self.note_begins(ledger.as_ref(), reach, &state, compared);
        }
        if let Some(mut ledger) = ledger {
            notes.deeds = self.seen_next(&mut ledger);
            if self.dialect.keeps_shell && self.changes_shell() {
                ledger.changes_shell();
            }
            for reach in &held {
                self.keep_open(&mut ledger, reach);
            }
            notes.lines.retain(|line| ledger.is_news(line));
            ledger.close()?;
        }
        Ok(notes)
    }

    /// Finds what the call reaches, and sees to `each` root of it.
    fn hold(
        &mut self,
        start: &Path,
        state: &StateDir,
        notes: &mut Notes,
        each: &mut EachRoot<'_, Self>,
    ) -> Result<Vec<Reach>> {
        let outer = self.reach(start, state)?;
        let what = (&self.call.intent, &self.effect);
        self.at_risk = reach::at_risk(start, &self.call.context, what, &outer.root);
        each(self, &outer, notes)?;
        let within = self.within(&outer, state);
        // What the outer root leaves out is held here.
        let has = |inner: &Reach, path: &Path| {
            inner.scope == ScanScope::Whole && path.starts_with(inner.root.path())
        };
        notes.unheld.retain(|unheld| !within.iter().any(|inner| has(inner, &unheld.path)));
        for inner in &within {
            each(self, inner, notes)?;
        }
        let told = self.told(&notes.unheld);
        notes.lines.extend(told);
        Ok(std::iter::once(outer).chain(within).collect())
    }

    /// Takes a checkpoint of a root unless the turn has all it needs.
    fn hold_root(
        &self,
        mut ledger: Option<&mut Ledger>,
        reach: &Reach,
        state: &StateDir,
        deadline: Option<Instant>,
        notes: &mut Notes,
    ) -> Result<()> {
        // A root that this session has met is known by its path.
        if !ledger.as_deref().is_some_and(|ledger| ledger.knows(reach.root.path())) {
            // What cannot be found passes for new.
            let _found = record::settle(state, reach.root.path(), self.process.now);
        }
        let coverage = self.coverage(ledger.as_deref_mut(), reach, state);
        if policy::decide(&self.effect, coverage, self.settings().dedupe) == HookAction::Save {
            let saved = self.save(ledger.as_deref(), reach, state, deadline)?;
            notes.compared.push(reach.root.path().to_owned());
            self.note_saved(&saved, reach, state, notes);
            notes.lines.extend(notes::oddities(&state.root(&reach.root)));
            if let Some(ledger) = ledger {
                ledger.cover(&self.use_of(ledger, &saved.checkpoint, reach));
            }
        }
        Ok(())
    }

    /// Takes a checkpoint of a root, or finds that the newest is one.
    fn save(
        &self,
        ledger: Option<&Ledger>,
        reach: &Reach,
        state: &StateDir,
        deadline: Option<Instant>,
    ) -> Result<Saved> {
        // Without the ledger our time is up already; what a snapshot takes, it takes.
        let deadline = deadline.unwrap_or_else(|| Instant::now() + self.settings().deadline);
        let take = |always| {
            let request = SnapshotRequest {
                reach,
                settings: self.settings(),
                cause: self.cause(ledger),
                taken_at: self.process.now,
                always,
                deadline: Some(deadline),
                waits: true,
            };
            snapshot::take(self.process, state, request)
        };
        let mut saved = take(false)?;
        // Seldom, and a second look where nothing has changed is cheap.
        if !saved.is_new && self.is_anothers(ledger, &saved.checkpoint, reach, state) {
            saved = take(true)?;
        }
        if saved.is_new {
            let id = saved.checkpoint.id;
            let text = format!("checkpoint {id} before {}", self.call.tool);
            write_journal(self.process, Some(reach.root.path()), LineKind::Deed, &text);
            maintenance::start_if_due(self.process, state, self.settings());
        }
        Ok(saved)
    }

    /// Notes for restores that the call begins. What is not noted has no known author.
    fn note_begins(
        &self,
        ledger: Option<&Ledger>,
        reach: &Reach,
        state: &StateDir,
        compared: bool,
    ) {
        let covering = ledger.and_then(|it| Some((it, it.covering(reach.root.path())?)));
        if let Some((ledger, of)) = covering {
            let place = state.root(&reach.root);
            let begins = self.begins(&place, reach, ledger, of);
            let _noted = attribution::Begins { compared, ..begins }.note(self.process);
        }
    }

    /// The call as it begins, covered by the checkpoint `of`.
    fn begins<'b>(
        &'b self,
        place: &'b RootState,
        reach: &'b Reach,
        ledger: &Ledger,
        of: CheckpointId,
    ) -> attribution::Begins<'b> {
        let (call, effect, cwd) = (self.call, &self.effect, &self.cwd);
        let tells = ledger.tells_ends();
        let (is_held, compared) = (false, false);
        attribution::Begins { place, call, effect, reach, of, cwd, is_held, tells, compared }
    }

    fn is_wanted(&self) -> bool {
        policy::is_wanted(&self.call.intent, &self.effect, &self.loaded.settings)
    }

    /// Whether later lines of the same shell may mean something else.
    fn changes_shell(&self) -> bool {
        match &self.effect {
            Effect::Destroys(finding) | Effect::Unknown(finding) => finding.changes_shell,
            Effect::None | Effect::Touches(_) => false,
        }
    }

    fn settings(&self) -> &Settings {
        &self.loaded.settings
    }
}

/// No honest payload comes near it: it is a tool call, not a file.
const PAYLOAD_MAX_BYTES: usize = 16 << 20;
/// Most calls are shorter.
const FIRST_BYTES: usize = 2 << 10;
/// What a pipe holds.
const NEXT_BYTES: usize = 64 << 10;
/// How long we wait for more input before we look whether what is there will do.
const PAUSE: Duration = Duration::from_millis(300);
/// How long we wait for input in all. The shortest limit any agent gives a hook is 5 seconds.
const INPUT_DEADLINE: Duration = Duration::from_millis(1_500);

/// Reads a payload up to its end, or up to where an agent that leaves its end open stops talking.
fn read_payload(stdin: &mut dyn Stdin) -> Result<Vec<u8>, String> {
    let started = Instant::now();
    let mut payload = Vec::new();
    let mut buffer = vec![0; FIRST_BYTES];
    loop {
        if stdin.ready(PAUSE) {
            match stdin.read(&mut buffer) {
                Ok(0) => return Ok(payload),
                Ok(count) => {
                    payload.extend_from_slice(&buffer[..count]);
                    if count == buffer.len() {
                        buffer.resize(NEXT_BYTES, 0);
                    }
                }
                Err(err) if err.kind() == std::io::ErrorKind::Interrupted => (),
                Err(err) => return Err(err.to_string()),
            }
        } else {
            let is_whole = payload.trim_ascii_end().ends_with(b"}")
                && serde_json::from_slice::<serde::de::IgnoredAny>(&payload).is_ok();
            if is_whole {
                return Ok(payload);
            }
        }
        if payload.len() > PAYLOAD_MAX_BYTES {
            return Err(format!("it is larger than {}", ui::size(PAYLOAD_MAX_BYTES as u64)));
        }
        if started.elapsed() > INPUT_DEADLINE {
            return Err("it does not end".to_owned());
        }
    }
}

/// Opens, changes and closes the ledger of a session within one hook call.
fn with_ledger(
    process: &Process<'_>,
    dialect: &Dialect,
    context: &CallContext,
    act: impl FnOnce(&mut Ledger),
) -> Result<()> {
    let cwd = working_directory(process, context);
    let state = config::state(process, Some(&cwd))?;
    let deadline = process.started + INPUT_DEADLINE;
    let mut ledger = Ledger::open(&state, dialect.name, &context.session.0, deadline)?;
    ledger.home(&cwd);
    act(&mut ledger);
    ledger.close()
}

/// An event that is only bookkeeping: trouble with it goes to the journal, not to the user.
fn quiet(process: &Process<'_>, context: &CallContext, done: Result<()>) -> Decision {
    if let Err(err) = done {
        let cwd = working_directory(process, context);
        write_journal(process, Some(&cwd), LineKind::Trouble, &said(&err));
    }
    Decision::NEUTRAL
}

/// A command line, a path or a message is cut there for the list.
const SUMMARY_CHARS_MAX: usize = 300;

/// Why a checkpoint is taken, for its record.
impl Hook<'_, '_> {
    fn cause(&self, ledger: Option<&Ledger>) -> Cause {
        Cause {
            reason: Reason::Call,
            by: Some(self.by(ledger)),
            tool: Some(self.call.tool.clone()),
            summary: self.summary(),
            of: None,
        }
    }

    fn by(&self, ledger: Option<&Ledger>) -> By {
        let context = &self.call.context;
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

    fn use_of(&self, ledger: &Ledger, checkpoint: &Checkpoint, reach: &Reach) -> Use {
        Use {
            checkpoint: checkpoint.id,
            root: reach.root.path().to_owned(),
            by: self.by(Some(ledger)),
            at: self.process.now,
            tool: Some(self.call.tool.clone()),
            summary: self.summary(),
        }
    }

    /// The call in one line.
    fn summary(&self) -> Option<String> {
        let text = match &self.call.intent {
            Intent::Run { command, .. } => command.clone(),
            Intent::Write(paths) | Intent::Edit(paths) => {
                let names = paths.iter().map(|path| {
                    let path = path.strip_prefix(&self.cwd).unwrap_or(path);
                    path.to_string_lossy().into_owned()
                });
                names.collect::<Vec<_>>().join(" ")
            }
            Intent::Read | Intent::Unknown => return None,
        };
        Some(text.chars().take(SUMMARY_CHARS_MAX).collect())
    }
}
