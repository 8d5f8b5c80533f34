//! Whether the calls of each agent are held, from evidence: which hooks are registered and can run,
//! the switches that keep them off, and the calls that arrived lately and were answered without trouble.
//!
//! Only this module decides it; `status`, `doctor`, `list` and the warning at the start of a session
//! report its findings. It reads bounded parts of files, and changes nothing.

mod calls;
mod elsewhere;
mod program;

use std::{
    cell::OnceCell,
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    time::Duration,
};

use chrono::{DateTime, TimeDelta, Utc};

pub use calls::Conversations;

use crate::{
    attribution, config,
    install::{self, HookEntry, HookStatus, InstallRow, Off, OurPrograms, ProgramPath, ROWS, Site},
    journal::{self, JournalLine, LineKind},
    ledger::{self, Use},
    model::{Agent, Settings},
    policy,
    process::{OwnProcess, Process},
    state::StateDir,
    ui::{self, Clock},
};
use program::Program;

/// A call that arrived longer ago is no evidence for the next one.
const LATELY_DAYS: i64 = 14;
/// An agent must wait longer than `deadline` is by default, with room for a slow disk.
const TIMEOUT_S_MIN: u64 = 5;
/// The time that a hook needs beside its deadline, to start and to answer.
const DEADLINE_ROOM_S: u64 = 2;

/// The verdict on an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AgentVerdict {
    /// The agent is not on this machine, and has no hook of ours.
    Absent,
    /// The agent is on this machine, and has no hook of ours.
    Unregistered,
    /// Its calls arrived lately, through a hook that is in none of the files we know.
    Unlisted,
    /// Our hooks are registered, and no call has arrived lately.
    Unseen,
    /// Its calls arrived lately, and were answered without trouble.
    Protected,
    /// Something shows that its next call will not be held.
    Unprotected,
}

impl AgentVerdict {
    /// Whether the agent has our hooks, or called through one lately.
    pub fn is_registered(self) -> bool {
        !matches!(self, Self::Absent | Self::Unregistered)
    }

    /// The word for scripts.
    pub fn word(self) -> &'static str {
        match self {
            Self::Absent => "absent",
            Self::Unregistered => "not-registered",
            Self::Unlisted => "not-listed",
            Self::Unseen => "not-seen",
            Self::Protected => "protected",
            Self::Unprotected => "not-protected",
        }
    }
}

/// How severe a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// Nothing is wrong.
    Ok,
    /// The user may want to know it.
    Note,
    /// The user should fix it.
    Trouble,
    /// There is nothing to judge.
    Absent,
}

/// The health of one agent, and the evidence.
#[derive(Clone, Debug)]
pub struct AgentHealth {
    /// The agent.
    pub row: &'static InstallRow,
    /// The verdict on its next call.
    pub verdict: AgentVerdict,
    /// How severe the finding is.
    pub severity: Severity,
    /// The file with a hook that can run, or that of the package that has it.
    pub place: Option<PathBuf>,
    /// The program that this hook runs, without links.
    pub program: Option<PathBuf>,
    /// The evidence. Printable.
    pub message: String,
    /// The step that fixes it. Printable.
    pub hint: Option<String>,
}

/// For which project the agents are judged, and how thoroughly.
#[derive(Clone, Copy, Debug)]
pub struct HealthQuery<'a> {
    /// The project.
    pub root: Option<&'a Path>,
    /// The settings there.
    pub settings: &'a Settings,
    /// How much of the agents' conversations is read; with `None`, nothing.
    pub conversations: Option<Conversations>,
    /// Whether hooks of other programs are looked for.
    pub other_hooks: bool,
}

/// The evidence on all agents and projects at once.
pub struct Evidence<'a, 'p> {
    process: &'a Process<'p>,
    state: StateDir,
    /// The programs that are beforehand.
    ours: OurPrograms,
    /// The checkpoints that calls used, newest first.
    uses: Vec<Use>,
    /// When a call of each agent was last held.
    held: BTreeMap<Agent, DateTime<Utc>>,
    /// Calls for which nothing was held, and payloads that could not be read, oldest first.
    trouble: Vec<JournalLine>,
    /// The user's running processes, read when they are first needed.
    running: OnceCell<Vec<OwnProcess>>,
}

/// The hooks that are registered for one agent.
#[derive(Default)]
struct Registered {
    /// Where something of ours was found.
    places: Vec<(Site, HookStatus)>,
    fault: Option<Fault>,
}

/// Something that is wrong with a file.
struct Fault {
    off: Off,
    /// Whether none of the hooks runs because of it.
    stops_all: bool,
}

impl Fault {
    /// A fault that another install repairs.
    fn reinstall(row: &InstallRow, message: String) -> Self {
        Self { off: Off { message, hint: install_hint(row) }, stops_all: true }
    }
}

impl<'a, 'p> Evidence<'a, 'p> {
    /// Reads the evidence that all agents and projects share.
    pub fn read(process: &'a Process<'p>, state: &StateDir) -> Self {
        Self::with_uses(process, state, ledger::uses(state))
    }

    /// Reads the evidence for a caller that has already read the ledgers.
    pub fn with_uses(process: &'a Process<'p>, state: &StateDir, uses: Vec<Use>) -> Self {
        let mut trouble = journal::recent_trouble(state, process.now);
        trouble.retain(|line| matches!(line.kind, LineKind::Unheld | LineKind::Unread));
        Self {
            process,
            state: state.clone(),
            ours: ours(process, state),
            held: last_held(&uses, state),
            uses,
            trouble,
            running: OnceCell::new(),
        }
    }

    /// Judges every agent.
    pub fn agents(&self, query: HealthQuery<'_>) -> Vec<AgentHealth> {
        ROWS.iter().map(|row| self.agent(row, query)).collect()
    }

    /// Judges one agent.
    pub fn agent(&self, row: &'static InstallRow, query: HealthQuery<'_>) -> AgentHealth {
        let found = self.registered(row, query);
        let package = install::package(row, self.process);
        let at = found.places.first().map(|(site, _)| site.path.clone()).or(package.clone());
        let program = found.places.iter().find_map(|(_, found)| {
            programs(found).into_iter().find_map(|program| Program::real(self.process, &program))
        });
        let mut health = AgentHealth {
            row,
            verdict: AgentVerdict::Unprotected,
            severity: Severity::Trouble,
            place: at,
            program,
            message: String::new(),
            hint: None,
        };
        let stops_all = found.fault.as_ref().is_some_and(|fault| fault.stops_all);
        if let Some(fault) = found.fault.as_ref().filter(|_| stops_all && package.is_none()) {
            return health.with(fault.off.clone());
        }
        if found.places.is_empty() && package.is_none() {
            return self.without_hook(row, query, health);
        }
        if let Some(off) = install::off(row, self.process, query.root, &found.places) {
            return health.with(off);
        }
        if let Some(off) = self.off_by_arguments(row, query, &found.places, package.is_some()) {
            return health.with(off);
        }
        if let Some(off) = self.off_by_settings(row, query) {
            return health.with(off);
        }
        self.judge_calls(query, &mut health);
        if let Some(fault) = found.fault {
            health.severity = Severity::Trouble;
            return health.with(fault.off);
        }
        if health.severity == Severity::Ok
            && let Some(other) = self.other_program(&found.places)
        {
            health.severity = Severity::Note;
            let other = ui::path(&other, self.home().as_deref()).into_owned();
            health.message = format!("{}; it runs another beforehand, {other}", health.message);
            health.hint = Some(install_hint(row));
        }
        let elsewhere = if health.verdict == AgentVerdict::Unseen {
            self.held_elsewhere(row, query)
        } else {
            None
        };
        let notes = [elsewhere, self.limits(row, query), self.other_hook(row, query)];
        for note in notes.into_iter().flatten() {
            health.add(note);
        }
        health
    }

    fn home(&self) -> Option<PathBuf> {
        self.process.home()
    }

    /// Finds our hooks in an agent's files: the user's, and those of the project. A fault in one set does
    /// not stop the hooks of the other.
    fn registered(&self, row: &'static InstallRow, query: HealthQuery<'_>) -> Registered {
        let (user, project): (Vec<Site>, Vec<Site>) =
            sites(row, self.process, query.root).into_iter().partition(|it| !it.is_in_project());
        let user = self.look(row, user, query);
        let project = self.look(row, project, query);
        let is_one_whole =
            [&user, &project].iter().any(|found| !found.places.is_empty() && found.fault.is_none());
        let mut fault = user.fault.or(project.fault);
        if let Some(fault) = fault.as_mut().filter(|_| is_one_whole) {
            fault.stops_all = false;
        }
        let mut places = user.places;
        places.extend(project.places);
        Registered { places, fault }
    }

    /// Reads one set of files.
    fn look(&self, row: &InstallRow, sites: Vec<Site>, query: HealthQuery<'_>) -> Registered {
        let mut found = Registered::default();
        let mut bare = None;
        for site in sites {
            match install::look(&site, &self.ours) {
                Ok(HookStatus::Nothing) => bare = bare.or(Some(site)),
                Ok(status) => {
                    found.fault = found.fault.or_else(|| self.fault(row, &site, &status, query));
                    found.places.push((site, status));
                }
                Err(err) => {
                    let hint = err.hint().map_or_else(|| install_hint(row), str::to_owned);
                    let off = Off { message: err.to_string(), hint };
                    found.fault = found.fault.or(Some(Fault { off, stops_all: true }));
                }
            }
        }
        // Of an agent with a file for each agent or event of its own, each must have our hook. Settings
        // that name a directory of hooks are not enough.
        let is_only_named = found.places.iter().all(|(site, _)| site.names_hooks());
        let bare = bare.filter(|site| {
            row.is_per_file() || site.names_hooks() || site.needs_permission() || is_only_named
        });
        if let Some(site) = bare.filter(|_| !found.places.is_empty()) {
            let site = ui::path(&site.path, self.home().as_deref()).into_owned();
            let missing = Fault::reinstall(row, format!("{site} has no hook of beforehand's"));
            found.fault = found.fault.or(Some(missing));
        }
        found
    }

    /// The fault of one file.
    fn fault(
        &self,
        row: &InstallRow,
        site: &Site,
        found: &HookStatus,
        query: HealthQuery<'_>,
    ) -> Option<Fault> {
        let home = self.home();
        let file = ui::path(&site.path, home.as_deref());
        for program in programs(found) {
            let shown = ui::escape_path(&program).into_owned();
            let why = match Program::look(self.process, &program) {
                Program::Ours => continue,
                Program::Missing => "which cannot be run",
                // A wrapper of ours is known by the calls that come through it.
                Program::Other if self.last_held(row).is_some() => continue,
                Program::Other => "which is not beforehand",
            };
            let message = format!("the hook in {file} runs `{shown}`, {why}");
            return Some(Fault::reinstall(row, message));
        }
        match found {
            HookStatus::Nothing | HookStatus::HookDir => None,
            HookStatus::Whole(_) => {
                if !site.needs_permission() || program::is_executable(&site.path) {
                    return None;
                }
                let message = format!("{file} may not be executed");
                let off = Off { message, hint: "chmod +x it".to_owned() };
                Some(Fault { off, stops_all: true })
            }
            HookStatus::Entries(_, missing) if !missing.is_empty() => {
                let missing = missing.join(", ");
                Some(Fault::reinstall(row, format!("{file} has no hook for {missing}")))
            }
            HookStatus::Entries(entries, _) => {
                let mut changed =
                    entries.iter().filter_map(|entry| Some((entry, entry.changed.as_ref()?)));
                if let Some((entry, key)) = changed.next() {
                    let event = ui::escape(entry.event.as_bytes());
                    let key = ui::escape(key.as_bytes());
                    let message = format!(
                        "the hook for {event} in {file} is not as beforehand wrote it (`{key}`), so it may \
                         not run before every call"
                    );
                    let hint = format!(
                        "`beforehand uninstall {0}`, then `beforehand install {0}`",
                        row.agent
                    );
                    return Some(Fault { off: Off { message, hint }, stops_all: true });
                }
                let (short, least) = short_timeout(row, entries, query.settings.deadline)?;
                let message = format!("the timeout for {} in {file} is too short", short.event);
                let off = Off { message, hint: format!("set it to {least} or more") };
                Some(Fault { off, stops_all: false })
            }
        }
    }

    /// Judges an agent whose files have no hook of ours.
    fn without_hook(
        &self,
        row: &InstallRow,
        query: HealthQuery<'_>,
        mut health: AgentHealth,
    ) -> AgentHealth {
        if self.last_held(row).is_some_and(|at| self.is_recent(at)) {
            self.judge_calls(query, &mut health);
            if health.verdict != AgentVerdict::Protected {
                return health;
            }
            health.verdict = AgentVerdict::Unlisted;
            health.severity = Severity::Note;
            let message = format!("no hook of beforehand's was found, but {}", health.message);
            let unlisted = health.with(Off { message, hint: install_hint(row) });
            return match self.off_by_settings(row, query) {
                Some(off) => {
                    let verdict = AgentVerdict::Unprotected;
                    AgentHealth { verdict, severity: Severity::Trouble, ..unlisted.with(off) }
                }
                None => unlisted,
            };
        }
        health.verdict = AgentVerdict::Unregistered;
        let (severity, message, hint) = match (row.is_there(self.process), row.by_hand) {
            (false, _) => {
                health.verdict = AgentVerdict::Absent;
                health.severity = Severity::Absent;
                "not installed".clone_into(&mut health.message);
                return health;
            }
            (true, Some(how)) => {
                let message = "its hooks were added by hand and were not checked";
                (Severity::Note, message, how.to_owned())
            }
            (true, None) if row.is_per_file() && row.sites(self.process).is_empty() => {
                let message = "you have no agent of your own to put hooks into";
                (Severity::Note, message, row.then.unwrap_or_default().to_owned())
            }
            (true, None) => {
                (Severity::Trouble, "it has no hook of beforehand's", install_hint(row))
            }
        };
        health.severity = severity;
        health.with(Off { message: message.to_owned(), hint })
    }

    /// Why an agent that runs in this project now runs no hook.
    fn off_by_arguments(
        &self,
        row: &InstallRow,
        query: HealthQuery<'_>,
        places: &[(Site, HookStatus)],
        in_package: bool,
    ) -> Option<Off> {
        let root = query.root.filter(|_| install::can_be_off_by_arguments(row))?;
        let in_project = places.iter().any(|(site, _)| site.is_in_project());
        let running = self.running.get_or_init(|| self.process.aside.own_processes());
        let mut here = running.iter().filter(|process| {
            process.dir.as_ref().is_some_and(|dir| dir.starts_with(root) || root.starts_with(dir))
        });
        here.find_map(|process| install::off_by_arguments(row, process, in_project, in_package))
    }

    /// The settings that hold in the hooks of an agent, and the file of the agent's that changes them by
    /// environment variables, if one does.
    fn settings_of(&self, row: &InstallRow, query: HealthQuery<'_>) -> (Settings, Option<PathBuf>) {
        let mut variables = BTreeMap::new();
        let mut place = None;
        for (name, (value, file)) in install::variables(row, self.process, query.root) {
            if name == "BEFOREHAND" || name.starts_with("BEFOREHAND_") {
                variables.insert(name.into(), value.into());
                place.get_or_insert(file);
            }
        }
        let settings = config::with_variables(query.settings, &variables);
        let place = place.filter(|_| settings != *query.settings);
        (settings, place)
    }

    /// Why nothing is held before the calls of an agent, though its hooks run.
    fn off_by_settings(&self, row: &InstallRow, query: HealthQuery<'_>) -> Option<Off> {
        let (settings, place) = self.settings_of(row, query);
        if !policy::wants_nothing(&settings) {
            return None;
        }
        let mut names: Vec<String> = Vec::new();
        for kind in policy::unwanted_kinds(&settings) {
            names.push(format!("`{}`", kind.setting));
        }
        let message = format!("beforehand is switched off by {}", names.join(", "));
        Some(self.settings_finding(message, place.as_deref()))
    }

    /// The calls before which nothing is held.
    fn limits(&self, row: &InstallRow, query: HealthQuery<'_>) -> Option<Off> {
        let (settings, place) = self.settings_of(row, query);
        let mut kinds: Vec<String> = Vec::new();
        for kind in policy::unwanted_kinds(&settings) {
            kinds.push(format!("{} (`{}`)", kind.calls, kind.setting));
        }
        let message = format!("nothing is held before {}", kinds.join(", "));
        (!kinds.is_empty()).then(|| self.settings_finding(message, place.as_deref()))
    }

    /// A finding on our settings, with where they come from: a file of the agent's, or our own.
    fn settings_finding(&self, message: String, place: Option<&Path>) -> Off {
        match place.map(|place| ui::path(place, self.home().as_deref()).into_owned()) {
            Some(place) => Off {
                message: format!("{message}, in the variables of {place}"),
                hint: format!("take beforehand's variables out of {place}"),
            },
            None => {
                Off { message, hint: "`beforehand config` shows where that comes from".to_owned() }
            }
        }
    }

    /// A hook of another program, which may change a call after ours has judged it.
    fn other_hook(&self, row: &InstallRow, query: HealthQuery<'_>) -> Option<Off> {
        let here = query.root.or(self.process.cwd.as_deref()).filter(|_| query.other_hooks)?;
        let found = install::other_hooks(row, self.process, here);
        let first = found.first()?;
        // A script that cannot be read has only its event.
        let name = if first.command.is_empty() { &first.event } else { &first.command };
        let command = ui::escape_line(name.as_bytes());
        let file = ui::path(&first.file, self.home().as_deref()).into_owned();
        let more = match found.len() {
            1 => String::new(),
            all => format!(", and {} more", all - 1),
        };
        Some(Off {
            message: format!("`{command}` also runs before its tools, by {file}{more}"),
            hint: "it may rewrite a call after beforehand has judged it: remove it if you do not need it"
                .to_owned(),
        })
    }

    /// Judges an agent by the calls that arrived. Sets everything but `row`, `place` and `program`.
    fn judge_calls(&self, query: HealthQuery<'_>, health: &mut AgentHealth) {
        let row = health.row;
        let held = self.last_held(row);
        let mut unread: Vec<&JournalLine> = self.trouble.iter().collect();
        unread.retain(|line| line.agent.as_deref() == Some(row.agent));
        // The checkpoint for an unreadable payload has the same time as the line about it.
        unread.retain(|line| held.is_none_or(|held| line.at >= held));
        let mut unheld = unread.clone();
        unread.retain(|line| line.kind == LineKind::Unread);
        unheld.retain(|line| held.is_none_or(|held| line.at > held));
        health.verdict = AgentVerdict::Unprotected;
        health.severity = Severity::Trouble;
        if let Some(last) = unheld.last() {
            let text = ui::escape_line(last.text.as_bytes());
            health.message = match unheld.len() {
                1 => format!("its last call was not held: {text}"),
                count => format!("its last {count} calls were not held: {text}"),
            };
            health.hint = Some(unheld_hint(last).to_owned());
            return;
        }
        if let Some(last) = unread.last() {
            let text = ui::escape_line(last.text.as_bytes());
            health.verdict = AgentVerdict::Protected;
            health.message =
                format!("but for its last call the project was held, and no more: {text}");
            health.hint = Some(unheld_hint(last).to_owned());
            return;
        }
        let tally = query
            .root
            .zip(query.conversations)
            .and_then(|(root, limits)| self.tally(row, root, limits));
        let counted = tally.as_ref().map(|it| format!("{} of {} calls seen", it.seen, it.all));
        if let Some(missed) = tally.and_then(|tally| tally.missed) {
            let counted = counted.unwrap_or_default();
            let call = ui::escape_line(missed.call.as_bytes());
            if !missed.is_current {
                health.verdict = AgentVerdict::Protected;
            }
            health.message = format!("{counted}; not `{}`", call.trim());
            let hint = "agents read their hooks when they start: start it again";
            health.hint = Some(hint.to_owned());
            return;
        }
        health.severity = Severity::Ok;
        health.verdict = AgentVerdict::Protected;
        let clock = Clock::local(self.process.now);
        let last = held.filter(|at| self.is_recent(*at)).map(|at| clock.when(at));
        health.message = match (counted, last) {
            (Some(counted), _) => counted,
            (None, Some(last)) => format!("last call seen {last}"),
            (None, None) => {
                health.verdict = AgentVerdict::Unseen;
                match held {
                    Some(_) => format!("no call seen in the last {LATELY_DAYS} days"),
                    None => "not seen yet".to_owned(),
                }
            }
        };
    }

    fn is_recent(&self, at: DateTime<Utc>) -> bool {
        at > self.process.now - TimeDelta::days(LATELY_DAYS)
    }

    fn last_held(&self, row: &InstallRow) -> Option<DateTime<Utc>> {
        self.held.get(&row.dialect().agent).copied()
    }

    /// A registered program that is not this one.
    fn other_program(&self, places: &[(Site, HookStatus)]) -> Option<PathBuf> {
        let own = self.process.program().ok()?.canonicalize().ok()?;
        let programs = places.iter().flat_map(|(_, found)| programs(found));
        programs.into_iter().find(|program| {
            Program::real(self.process, program).is_some_and(|program| program != own)
        })
    }
}

impl AgentHealth {
    /// The name people know the agent by.
    pub fn title(&self) -> &'static str {
        self.row.title()
    }

    /// Adds what the user may want to know of an agent with a working hook. Trouble is told alone.
    fn add(&mut self, note: Off) {
        if matches!(self.severity, Severity::Ok | Severity::Note) {
            self.severity = Severity::Note;
            self.message = format!("{}; {}", self.message, note.message);
            self.hint.get_or_insert(note.hint);
        }
    }

    /// Replaces the message with one that names its file itself.
    fn with(self, off: Off) -> Self {
        Self { message: off.message, hint: Some(off.hint), place: None, program: None, ..self }
    }
}

/// The programs that are beforehand.
pub fn ours(process: &Process<'_>, state: &StateDir) -> OurPrograms {
    let running = process.program().ok().and_then(|path| ProgramPath::new(&path).ok());
    install::ours_of(state, running.as_ref())
}

/// When a call of each agent was last held: by the ledgers, and in the projects of the newest turns by
/// the log of calls, which also has the calls that needed no checkpoint.
fn last_held(uses: &[Use], state: &StateDir) -> BTreeMap<Agent, DateTime<Utc>> {
    /// The agent's next call is most likely in one of these projects.
    const LOGS_MAX: usize = 3;
    let mut roots: Vec<&Path> = Vec::new();
    for used in uses {
        if roots.len() < LOGS_MAX && !roots.contains(&&*used.root) {
            roots.push(&used.root);
        }
    }
    let mut logged = BTreeMap::new();
    for root in roots {
        for (session, at) in attribution::last_calls(&state.root_at(root)) {
            let newest = logged.entry(session).or_insert(at);
            *newest = at.max(*newest);
        }
    }
    let mut held: BTreeMap<Agent, DateTime<Utc>> = BTreeMap::new();
    let mut sessions = BTreeSet::new();
    for Use { by, at, .. } in uses {
        let mut last = *at;
        if sessions.insert((by.agent, by.session.clone())) {
            let logged = logged.get(&attribution::session_name(by.agent, &by.session));
            last = logged.map_or(last, |at| last.max(DateTime::from_timestamp_nanos(*at)));
        }
        let newest = held.entry(by.agent).or_insert(last);
        *newest = last.max(*newest);
    }
    held
}

/// The step that installs an agent's hooks again.
pub fn install_hint(row: &InstallRow) -> String {
    format!("beforehand install {}", row.agent)
}

/// The step that helps after a call for which nothing was held.
fn unheld_hint(line: &JournalLine) -> &'static str {
    if line.kind == LineKind::Unread || line.text.starts_with("cannot read the hook payload") {
        return "update beforehand: the agent sends what this version cannot read";
    }
    "put that right; the next call shows whether it helped"
}

/// The files in which an agent can have our hooks: the user's, and those of the project at `root`.
pub fn sites(row: &InstallRow, process: &Process<'_>, root: Option<&Path>) -> Vec<Site> {
    let mut sites = row.sites(process);
    sites.extend(root.map(|root| row.project_sites(root)).unwrap_or_default());
    sites.retain(Site::is_hook);
    sites
}

fn programs(found: &HookStatus) -> Vec<PathBuf> {
    match found {
        HookStatus::Nothing | HookStatus::HookDir => Vec::new(),
        HookStatus::Entries(entries, _) => {
            let mut programs: Vec<_> = entries.iter().map(|entry| entry.program.clone()).collect();
            programs.dedup();
            programs
        }
        HookStatus::Whole(program) => vec![program.clone()],
    }
}

/// The first entry whose timeout leaves a hook no time, and the least it should have.
fn short_timeout<'e>(
    row: &InstallRow,
    entries: &'e [HookEntry],
    deadline: Duration,
) -> Option<(&'e HookEntry, u64)> {
    let least = TIMEOUT_S_MIN.max(deadline.as_secs() + DEADLINE_ROOM_S) * row.second;
    let is_cut = |entry: &HookEntry| row.agent == "codex" && install::ends_a_session(&entry.event);
    let mut short = entries
        .iter()
        .filter(|entry| entry.timeout.is_some_and(|timeout| timeout < least) && !is_cut(entry));
    short.next().map(|entry| (entry, least))
}
