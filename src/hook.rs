//! One hook call from bytes to bytes; the only file that knows the order of the steps.
//!
//! A hook never fails. Whatever goes wrong becomes a note for the user and a line in the journal,
//! and the agent goes on, unless the user's settings want it stricter.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use crate::{
    agent::{self, Answer, Dialect, EventKind, Markers},
    config::{self, Loaded},
    error::{Error, Result},
    guard::{self, Ours},
    journal::{self, Line, LineKind},
    ledger::{Ledger, Use},
    left,
    model::{
        self, By, Cause, Checkpoint, Context, Decision, Effect, Event, Intent, Notify, Reach,
        Reason, Root, RootKind, Settings, TargetAction, ToolCall, Verdict,
    },
    policy::{self, Action, Standing},
    process::{Exit, Process, Stdin},
    reach::{self, Surroundings},
    restore_log, shell,
    snapshot::{self, Order, Unheld},
    state::{RootState, State},
    store::{Saved, record},
    transcript, ui,
};

/// No honest payload comes near it: it is a tool call, not a file.
const PAYLOAD_MAX_BYTES: usize = 16 << 20;
/// How long we wait for more input before we look whether what is there will do.
const PAUSE: Duration = Duration::from_millis(300);
/// How long we wait for input in all. The shortest limit any agent gives a hook is 5 seconds.
const INPUT_DEADLINE: Duration = Duration::from_millis(1_500);
/// A command line, a path or a message is cut there for the list.
const SUMMARY_CHARS_MAX: usize = 300;

/// Answers one hook call of the agent called `name`.
pub fn run(process: &mut Process<'_>, name: &str) -> Exit {
    let markers = Markers::read(|name| process.var(name).map(OsString::from));
    let Some(dialect) = agent::by_name(name).map(|dialect| agent::corrected(dialect, &markers))
    else {
        // An agent may take any other exit code for a refusal.
        let note = format!(
            "turnback: no agent is called `{}`; nothing was done",
            ui::escape(name.as_bytes())
        );
        let _nobody = writeln!(process.stderr, "{note}");
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
    let note =
        "turnback: a bug in turnback; this call is NOT protected. `turnback status` tells more";
    let decision = Decision::note(note.to_owned());
    match agent::by_name(name) {
        Some(dialect) => write_answer(process, &dialect.answer(EventKind::Other, &decision)),
        None => Exit::Ok,
    }
}

fn write_answer(process: &mut Process<'_>, answer: &Answer) -> Exit {
    // An agent that no longer listens is no reason to fail.
    let _nobody = process.stdout.write_all(&answer.stdout).and_then(|()| process.stdout.flush());
    let _nobody = process.stderr.write_all(&answer.stderr);
    if answer.exit == 0 { Exit::Ok } else { Exit::Denied }
}

/// Reads a payload up to its end, or up to where an agent that leaves its end open stops talking.
fn read_payload(stdin: &mut dyn Stdin) -> Result<Vec<u8>, String> {
    let started = Instant::now();
    let mut payload = Vec::new();
    let mut buffer = vec![0; 8 << 10];
    loop {
        if stdin.ready(PAUSE) {
            match stdin.read(&mut buffer) {
                Ok(0) => return Ok(payload),
                Ok(count) => payload.extend_from_slice(&buffer[..count]),
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

fn decide(
    process: &mut Process<'_>,
    dialect: &'static dyn Dialect,
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
    dialect: &'static dyn Dialect,
    markers: &Markers,
    event: Event,
) -> Decision {
    match event {
        Event::ToolCall(call) => on_call(process, dialect, markers, &call),
        Event::ToolDone(call) => on_done(process, dialect, &call),
        Event::TurnBegins { context, prompt } => {
            let begun = with_ledger(process, dialect, &context, |ledger| {
                ledger.begin_turn(context.turn.as_ref(), prompt.as_deref());
            });
            quiet(process, &context, begun)
        }
        Event::SessionBegins(_) | Event::TurnEnds(_) | Event::SessionEnds(_) | Event::Other => {
            Decision::NEUTRAL
        }
    }
}

/// Before a tool call: sees to it that what the call can destroy is held.
fn on_call(
    process: &mut Process<'_>,
    dialect: &'static dyn Dialect,
    markers: &Markers,
    call: &ToolCall,
) -> Decision {
    if call.intent == Intent::Read {
        return Decision::NEUTRAL;
    }
    let cwd = working_directory(process, &call.context);
    let mut loaded = config::load(process, Some(&cwd));
    let scope = shell_scope(process, &mut loaded);
    let effect = shell::effect(&call.intent, &scope);
    if effect == Effect::None {
        return Decision::NEUTRAL;
    }
    let mut hook = Hook { process, dialect, loaded, call, effect, cwd, stakes: Vec::new() };
    if !hook.loaded.settings.enabled {
        return hook.say_if_switched_off();
    }
    let threat = hook.threat();
    let decision = if policy::is_wanted(&call.intent, &hook.effect, &hook.loaded.settings) {
        match hook.protect() {
            Ok(notes) => hook.decision(&notes, markers),
            Err(err) => hook.on_trouble(&err, markers),
        }
    } else {
        Decision::NEUTRAL
    };
    match threat {
        Some(why) => hook.defend(&why, decision),
        None => decision,
    }
}

/// After a tool call: notes what the agent itself has left, so that its next edit of the same file
/// need not be held again, and a restore knows whose it is.
fn on_done(process: &mut Process<'_>, dialect: &'static dyn Dialect, call: &ToolCall) -> Decision {
    let paths: &[PathBuf] = match &call.intent {
        Intent::Write(paths) | Intent::Edit(paths) => paths,
        Intent::Run { .. } | Intent::Unknown => &[],
        Intent::Read => return Decision::NEUTRAL,
    };
    let cwd = working_directory(process, &call.context);
    if paths.is_empty() && !may_have_changed(process, call, &cwd) {
        return Decision::NEUTRAL;
    }
    let now_ns = crate::fs::now_ns();
    let mut covered = Vec::new();
    let noted = with_ledger(process, dialect, &call.context, |ledger| {
        let bases = [&cwd as &Path];
        let places = paths.iter().flat_map(|path| reach::plausible(path, &bases));
        places.for_each(|path| ledger.wrote(&path, now_ns));
        covered = ledger.covered();
    });
    let noted = noted.and_then(|()| note_ended(process, call, &covered, &cwd));
    quiet(process, &call.context, noted)
}

/// Whether a call was one that could change files.
fn may_have_changed(process: &Process<'_>, call: &ToolCall, cwd: &Path) -> bool {
    let mut loaded = config::load(process, Some(cwd));
    let scope = shell_scope(process, &mut loaded);
    shell::effect(&call.intent, &scope) != Effect::None
}

/// Notes what a call left in every root that its turn has a checkpoint of.
fn note_ended(
    process: &Process<'_>,
    call: &ToolCall,
    covered: &[(PathBuf, model::CheckpointId)],
    cwd: &Path,
) -> Result<()> {
    for (root, of) in covered {
        let settings = config::load(process, Some(root)).settings;
        let state = config::state(process, Some(root))?;
        let home = process.var("HOME").map(PathBuf::from);
        let surroundings = Surroundings { home: home.as_deref(), state: &state };
        if let Some((root, _)) = reach::root_around(root, &surroundings) {
            left::ended(process, &state, &settings, call, &root, *of, cwd)?;
        }
    }
    Ok(())
}

fn with_ledger(
    process: &Process<'_>,
    dialect: &dyn Dialect,
    context: &Context,
    act: impl FnOnce(&mut Ledger),
) -> Result<()> {
    let cwd = working_directory(process, context);
    let state = config::state(process, Some(&cwd))?;
    let deadline = process.started + INPUT_DEADLINE;
    let mut ledger = Ledger::open(&state, dialect.name(), &context.session.0, deadline)?;
    ledger.home(&cwd);
    act(&mut ledger);
    ledger.close()
}

/// An event that is only bookkeeping: trouble with it goes to the journal, not to the user.
fn quiet(process: &Process<'_>, context: &Context, done: Result<()>) -> Decision {
    if let Err(err) = done {
        let cwd = working_directory(process, context);
        write_journal(process, Some(&cwd), LineKind::Trouble, &said(&err));
    }
    Decision::NEUTRAL
}

/// One tool call that can change files.
struct Hook<'h, 'p> {
    process: &'h mut Process<'p>,
    dialect: &'static dyn Dialect,
    loaded: Loaded,
    call: &'h ToolCall,
    effect: Effect,
    cwd: PathBuf,
    /// What the call names and can destroy, once its root is known.
    stakes: Vec<PathBuf>,
}

/// What the user gets to hear: what was not held, or that something is odd.
#[derive(Debug, Default)]
struct Notes {
    /// What is said once per session.
    lines: Vec<String>,
    /// What the call would lose for good.
    unheld: Vec<Unheld>,
}

impl Hook<'_, '_> {
    fn settings(&self) -> &Settings {
        &self.loaded.settings
    }

    fn protect(&mut self) -> Result<Notes> {
        let state = config::state(self.process, Some(&self.cwd))?;
        let deadline = self.process.started + self.settings().deadline;
        let context = &self.call.context;
        let ledger = Ledger::open(&state, self.dialect.name(), &context.session.0, deadline);
        let (mut ledger, busy) = match ledger {
            Ok(ledger) => (Some(ledger), None),
            // Somebody holds it until our deadline: a copy of our own is better than none.
            Err(err @ Error::Busy { .. }) => (None, Some(err)),
            Err(err) => return Err(err),
        };
        let home =
            ledger.as_mut().map_or_else(|| self.cwd.clone(), |ledger| ledger.home(&self.cwd));
        let start = if self.cwd.starts_with(&home) { home } else { self.cwd.clone() };
        let reach = self.reach(&start, &state)?;
        self.stakes = reach::stakes(&start, context, &self.effect, &reach.root);
        let standing = self.standing(ledger.as_mut(), &reach, &state);
        let mut notes = Notes::default();
        notes.lines.append(&mut self.loaded.notes);
        if policy::decide(&self.effect, standing, self.settings().dedupe) == Action::Save {
            let saved =
                self.save(ledger.as_ref(), &reach, &state, busy.is_none().then_some(deadline))?;
            self.note_saved(&saved, &reach, &mut notes);
            notes.lines.extend(oddities(&saved, &state.root(&reach.root)));
            if let Some(ledger) = &mut ledger {
                ledger.cover(&self.use_of(ledger, &saved.checkpoint, &reach));
            }
        }
        self.note_begins(ledger.as_ref(), &reach, &state);
        if let Some(mut ledger) = ledger {
            notes.lines.retain(|line| ledger.is_news(line));
            ledger.close()?;
        }
        Ok(notes)
    }

    /// Notes for restores that the call begins. What is not noted has no known author.
    fn note_begins(&self, ledger: Option<&Ledger>, reach: &Reach, state: &State) {
        let covering = ledger.and_then(|ledger| ledger.covering(reach.root.path()));
        if let Some(of) = covering {
            let _noted = left::begins(self.process, state, self.call, reach, of, &self.cwd);
        }
    }

    fn reach(&self, start: &Path, state: &State) -> Result<Reach> {
        let home = self.process.var("HOME").map(PathBuf::from);
        let surroundings = Surroundings { home: home.as_deref(), state };
        let found = reach::reach(start, &self.call.context, &self.effect, &surroundings)
            .or_else(|| reach::reach(&self.cwd, &self.call.context, &self.effect, &surroundings));
        found.ok_or_else(|| Error::Other {
            message: format!("there is no directory `{}`", ui::escape_path(&self.cwd)),
            hint: None,
        })
    }

    /// What the turn already has of what this call can change.
    fn standing(&self, ledger: Option<&mut Ledger>, reach: &Reach, state: &State) -> Standing {
        let Some(ledger) = ledger else { return Standing::Bare };
        let last_prompt = match self.call.context.turn {
            Some(_) => None,
            None if ledger.counts_turns() => None,
            None => self.call.context.transcript.as_deref().and_then(transcript::last_prompt),
        };
        ledger.turn_of(&self.call.context, last_prompt.as_deref());
        if ledger.covering(reach.root.path()).is_none() {
            return Standing::Bare;
        }
        let Effect::Touches(_) = &self.effect else { return Standing::Begun };
        let held = snapshot::Held::of(&reach.root, state);
        let is_covered = |path: &PathBuf| match crate::fs::stat_path(path) {
            Ok(stamp) => ledger.is_own(path, &stamp) || held.has(path, &stamp),
            // Nothing is there that could be lost.
            Err(err) => err.kind() == std::io::ErrorKind::NotFound,
        };
        if reach.victims.iter().all(is_covered) { Standing::Covered } else { Standing::Begun }
    }

    fn save(
        &self,
        ledger: Option<&Ledger>,
        reach: &Reach,
        state: &State,
        deadline: Option<Instant>,
    ) -> Result<Saved> {
        // Without the ledger our time is up already; what a snapshot takes, it takes.
        let deadline = deadline.unwrap_or_else(|| Instant::now() + self.settings().deadline);
        let order = Order {
            reach,
            settings: self.settings(),
            cause: self.cause(ledger),
            taken_at: self.process.now,
            always: false,
            spare: false,
            deadline: Some(deadline),
        };
        let saved = snapshot::take(self.process, state, order)?;
        if saved.is_new {
            let id = saved.checkpoint.id;
            let text = format!("checkpoint {id} before {}", self.call.tool);
            write_journal(self.process, Some(reach.root.path()), LineKind::Deed, &text);
        }
        Ok(saved)
    }

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
        By {
            agent: context.agent,
            session: context.session.clone(),
            turn: ledger.and_then(Ledger::turn).or_else(|| context.turn.clone()),
            subagent: context.subagent.clone(),
            prompt: ledger.and_then(Ledger::prompt).map(str::to_owned),
            transcript: context.transcript.clone(),
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

    fn note_saved(&self, saved: &Saved, reach: &Reach, notes: &mut Notes) {
        let checkpoint = &saved.checkpoint;
        if checkpoint.partial {
            notes.lines.push(format!(
                "checkpoint {} is partial: the deadline came first; `turnback show {}` tells what it \
                 lacks",
                checkpoint.id.short(),
                checkpoint.id.short()
            ));
        }
        let root = Root::new(reach.root.path().to_owned(), RootKind::Plain { why: None });
        notes.unheld = snapshot::unheld(checkpoint, &self.stakes, &root);
        notes.lines.extend(self.told(&notes.unheld));
        notes.lines.extend(unreadable(checkpoint));
        if self.settings().notify == Notify::Always && saved.is_new {
            notes.lines.push(format!("checkpoint {}", checkpoint.id.short()));
        }
    }

    fn decision(&mut self, notes: &Notes, markers: &Markers) -> Decision {
        let wanted = self.settings().cannot_hold;
        let verdict = if notes.unheld.is_empty() {
            Verdict::Abstain
        } else {
            verdict(wanted, self.dialect, markers)
        };
        // What a question is about is said every time.
        let told = if verdict == Verdict::Abstain { Vec::new() } else { self.told(&notes.unheld) };
        let missing = told.into_iter().filter(|line| !notes.lines.contains(line));
        let lines: Vec<String> = missing.chain(notes.lines.iter().cloned()).collect();
        if !notes.lines.is_empty() {
            let text = notes.lines.join("; ");
            write_journal(self.process, Some(&self.cwd), LineKind::Trouble, &text);
        }
        if self.settings().notify == Notify::Never && verdict == Verdict::Abstain {
            return Decision::NEUTRAL;
        }
        let note = (!lines.is_empty()).then(|| format!("turnback: {}", lines.join("\n")));
        Decision { verdict, note }
    }

    fn on_trouble(&mut self, err: &Error, markers: &Markers) -> Decision {
        let text = format!(
            "warning: could not save a checkpoint ({}); this call is NOT protected",
            said(err)
        );
        let mut decision = trouble(self.process, Some(&self.cwd), &text);
        let root = Root::new(self.cwd.clone(), RootKind::Plain { why: None });
        let lost = snapshot::at_stake(&self.stakes, &root);
        let wanted = match (lost.is_empty(), self.settings().on_trouble) {
            (true, wanted) => wanted,
            (false, wanted) => stricter(wanted, self.settings().cannot_hold),
        };
        if let Some(note) = &mut decision.note {
            for line in self.told(&lost) {
                note.push('\n');
                note.push_str(&line);
            }
        }
        Decision { verdict: verdict(wanted, self.dialect, markers), ..decision }
    }

    /// What a call would delete, overwrite or change for good, a line each.
    fn told(&self, unheld: &[Unheld]) -> Vec<String> {
        /// More would not be read.
        const LINES_MAX: usize = 5;
        let verb = loss(&self.effect);
        let line = |it: &Unheld| {
            let path = it.path.strip_prefix(&self.cwd).unwrap_or(&it.path);
            let path = if path.as_os_str().is_empty() { &it.path } else { path };
            let path = ui::escape_path(path);
            let size = match it.size {
                0 => it.why.to_owned(),
                size => format!("{}, {}", ui::size(size), it.why),
            };
            format!("not held: {path} ({size}) — {verb}")
        };
        let mut lines: Vec<String> = unheld.iter().take(LINES_MAX).map(line).collect();
        if unheld.len() > LINES_MAX {
            lines.push(format!("not held: {} more", ui::number((unheld.len() - LINES_MAX) as u64)));
        }
        lines
    }

    /// Why the call reaches for turnback itself, if it does. Notes on the way what is at stake.
    fn threat(&mut self) -> Option<String> {
        let state = config::state(self.process, Some(&self.cwd)).ok()?;
        let home = self.process.var("HOME").map(PathBuf::from);
        let settings = config::settings_file(self.process, Some(&self.cwd));
        let surroundings = Surroundings { home: home.as_deref(), state: &state };
        let context = &self.call.context;
        // An edit says all there is to say about its paths.
        let (root, places) = match &self.effect {
            Effect::None | Effect::Touches(_) => (self.cwd.clone(), Vec::new()),
            Effect::Destroys(_) | Effect::Unknown(_) => {
                let (root, _) = reach::root_around(&self.cwd, &surroundings)?;
                let places = reach::stakes(&self.cwd, context, &self.effect, &root);
                (root.path().to_owned(), places)
            }
        };
        self.stakes.clone_from(&places);
        let ours = Ours {
            cwd: &self.cwd,
            state: state.dir(),
            settings: settings.as_deref(),
            home: home.as_deref(),
            root: &root,
        };
        guard::threat(&ours, &self.call.intent, &self.effect, &places)
    }

    /// The answer to a call that reaches for turnback itself: a person decides. Where nobody can
    /// be asked, that is a refusal.
    fn defend(&mut self, why: &str, decision: Decision) -> Decision {
        let why = ui::escape_line(why.as_bytes());
        let line = format!("turnback: this call reaches for turnback itself: {why}");
        write_journal(self.process, Some(&self.cwd), LineKind::Trouble, &line);
        let verdict = match self.settings().self_defence {
            model::Answer::Note => decision.verdict,
            model::Answer::Ask if decision.verdict == Verdict::Deny => Verdict::Deny,
            model::Answer::Ask => Verdict::Ask,
            model::Answer::Deny => Verdict::Deny,
        };
        let note = match decision.note {
            Some(note) => format!("{line}\n{note}"),
            None => line,
        };
        Decision { verdict, note: Some(note) }
    }

    /// Somebody started the agent with us switched off: the user gets to hear that, once.
    fn say_if_switched_off(&mut self) -> Decision {
        let by_environment = self.loaded.set_by_environment().any(|(key, _)| key == "enabled");
        if self.settings().enabled || !by_environment {
            return Decision::NEUTRAL;
        }
        let line = "turnback: switched off in the environment (TURNBACK); nothing is protected";
        let mut is_news = false;
        let noted = with_ledger(self.process, self.dialect, &self.call.context, |ledger| {
            is_news = ledger.is_news(line);
        });
        let quiet = quiet(self.process, &self.call.context, noted);
        if is_news {
            write_journal(self.process, Some(&self.cwd), LineKind::Trouble, line);
            return Decision::note(line.to_owned());
        }
        quiet
    }
}

fn stricter(one: model::Answer, other: model::Answer) -> model::Answer {
    match (one, other) {
        (model::Answer::Deny, _) | (_, model::Answer::Deny) => model::Answer::Deny,
        (model::Answer::Ask, _) | (_, model::Answer::Ask) => model::Answer::Ask,
        (model::Answer::Note, model::Answer::Note) => model::Answer::Note,
    }
}

/// What becomes of a victim, in the words of the command that does it.
fn loss(effect: &Effect) -> String {
    let (Effect::Destroys(finding) | Effect::Unknown(finding)) = effect else {
        return "this call would replace it for good".to_owned();
    };
    let found = finding.commands.iter().find_map(|simple| {
        let action = simple
            .targets
            .iter()
            .map(|target| target.action)
            .find(|action| !matches!(action, TargetAction::Create | TargetAction::Git))?;
        Some((simple.text.split_whitespace().next().unwrap_or_default(), action))
    });
    let Some((program, action)) = found else { return "this call can lose it for good".to_owned() };
    let program = match program {
        ">" | ">>" | "" => "the redirection".to_owned(),
        name => ui::escape(name.as_bytes()).into_owned(),
    };
    let verb = match action {
        TargetAction::Delete => "delete",
        TargetAction::Overwrite | TargetAction::Move => "replace",
        TargetAction::Modify | TargetAction::Create | TargetAction::Git => "change",
    };
    format!("{program} would {verb} it for good")
}

/// What the system would not let us read: nobody may take that for a deletion.
fn unreadable(checkpoint: &Checkpoint) -> Option<String> {
    let skipped = checkpoint.skipped.iter();
    let mut lost = skipped.filter(|skipped| skipped.reason == model::SkipReason::Unreadable);
    let first = ui::escape(&lost.next()?.path);
    let others = match lost.count() {
        0 => String::new(),
        more => format!(" and {}", ui::count(more as u64, "other path")),
    };
    Some(format!("cannot be read, and so is not held: {first}{others}"))
}

/// What is not as it was in this root: a restore that was interrupted, or a repository that took
/// checkpoints before and cannot be used now.
fn oddities(saved: &Saved, place: &RootState) -> Vec<String> {
    let mut lines = Vec::new();
    if restore_log::is_left(place) {
        lines.push(restore_log::LEFT.to_owned());
    }
    if saved.is_new && record::has_moved(place, saved.checkpoint.id) {
        lines.push(
            "the repository cannot be used now: this checkpoint is in turnback's own store"
                .to_owned(),
        );
    }
    lines
}

/// What the settings want, as far as somebody is there to answer.
fn verdict(wanted: model::Answer, dialect: &dyn Dialect, markers: &Markers) -> Verdict {
    match wanted {
        model::Answer::Note => Verdict::Abstain,
        // Nobody there to ask: an unasked-for refusal is not what "ask" means.
        model::Answer::Ask if markers.unattended() || !dialect.asks() => Verdict::Abstain,
        model::Answer::Ask => Verdict::Ask,
        model::Answer::Deny => Verdict::Deny,
    }
}

/// The directory a call is made in: what the agent says if that is somewhere, else our own.
fn working_directory(process: &Process<'_>, context: &Context) -> PathBuf {
    let said = context.cwd.iter().chain(&context.bases);
    let there = said
        .filter(|dir| dir.is_absolute())
        .find_map(|dir| std::fs::canonicalize(dir).ok().filter(|dir| dir.is_dir()));
    there.or_else(|| process.cwd.clone()).unwrap_or_else(|| PathBuf::from("/"))
}

/// What judging needs to know. A pattern that is refused is noted, and switches nothing else off.
fn shell_scope(process: &Process<'_>, loaded: &mut Loaded) -> shell::Scope {
    let home = process.var("HOME").and_then(|home| home.to_str()).map(str::to_owned);
    let wanted = &loaded.settings.shell;
    let rules = shell::Patterns::parse(&wanted.always, &wanted.never).or_else(|why| {
        loaded.notes.push(format!("settings: `shell`: {why}; `shell.never` is left out"));
        shell::Patterns::parse(&wanted.always, &[])
    });
    shell::Scope { home, rules: rules.unwrap_or_default() }
}

/// Tells the user and the journal.
fn trouble(process: &Process<'_>, root: Option<&Path>, text: &str) -> Decision {
    let text = ui::escape_line(text.as_bytes());
    write_journal(process, root, LineKind::Trouble, &text);
    Decision::note(format!("turnback: {text}"))
}

fn write_journal(process: &Process<'_>, root: Option<&Path>, kind: LineKind, text: &str) {
    let Ok(state) = config::state(process, root) else { return };
    let root = root.map(|root| root.to_string_lossy().into_owned());
    journal::write(&state, &Line { at: process.now, kind, root, text: text.to_owned() });
}

fn said(err: &Error) -> String {
    use std::error::Error as _;
    match err.source() {
        Some(source) => format!("{err}: {source}"),
        None => err.to_string(),
    }
}
