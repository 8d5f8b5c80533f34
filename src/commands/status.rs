//! `beforehand status`: what is protected, where, and how much room that takes.

use std::{
    collections::{BTreeMap, BTreeSet},
    iter,
    path::{Path, PathBuf},
    time::Duration,
};

use chrono::{DateTime, Utc};
use serde_json::{Value, json};

use super::{Project, json_time, print_json, print_text, root_at, rows::skipped_json, table_text};
use crate::{
    error::Result,
    fs::own_bytes,
    health::{AgentHealth, AgentVerdict, Conversations, Evidence, HealthQuery},
    journal::{self, JournalLine, TROUBLE_DAYS},
    maintenance::{self, Disk, MaintenanceReport, MaintenanceState, RootInventory},
    model::{Checkpoint, CheckpointId, ScanScope, Settings, Skipped},
    plan::Retention,
    policy,
    process::{Exit, Process},
    snapshot,
    state::StateDir,
    store::{self, RootStatus, Survey, Unreadable, record, usage::UsageIndex},
    ui::{self, Clock, Column, Cut, Table},
};

/// Show what is protected, and how much room that takes.
///
/// This project comes first. Exits 1 while one that is there is not protected although an agent
/// calls beforehand.
#[derive(clap::Args)]
pub(crate) struct StatusArgs {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

pub(crate) fn run(process: &mut Process<'_>, args: &StatusArgs) -> Result<Exit> {
    let project = Project::open(process, None)?;
    let status = Status::of(process, &project)?;
    let all_protected = !status.places.iter().any(RootRow::is_broken);
    if args.json {
        let value = status.json(&project);
        print_json(process, "status", value)?;
    } else {
        let text = status.words(process, &project);
        print_text(process, &text)?;
    }
    Ok(if all_protected { Exit::Ok } else { Exit::Failed })
}

/// One root as it stands.
struct RootRow {
    path: PathBuf,
    kind: &'static str,
    /// Why its repository is not used.
    why: Option<String>,
    checkpoints: usize,
    last: Option<DateTime<Utc>>,
    /// Bytes in beforehand's own store, content that others need as well among it.
    size: u64,
    standing: RootStatus,
    /// Those that cannot be read.
    unread: BTreeMap<CheckpointId, Unreadable>,
    settings: Settings,
    /// Why nothing of it can be held, whatever agents do.
    unprotected: Option<&'static str>,
    /// Where a checkpoint of it would have to be written and cannot be.
    unwritable: Option<PathBuf>,
    /// The agents that have our hooks, or called lately.
    agents: Vec<AgentHealth>,
    /// When nothing is kept of it any more.
    forgotten_in: Option<Duration>,
    /// What its newest checkpoint left out, and matters.
    left_out: Vec<Skipped>,
}

struct Status {
    /// This root first.
    places: Vec<RootRow>,
    /// Bytes of everything of ours, content shared by all roots included.
    total: u64,
    /// What is said of roots that cannot be looked at.
    unseen: Vec<String>,
    disk: Option<Disk>,
    /// Because of which record or pack nothing can be freed.
    in_the_way: Option<(PathBuf, Unreadable)>,
    last_prune: Option<(DateTime<Utc>, MaintenanceReport)>,
    trouble: Option<JournalLine>,
    troubles: usize,
}

impl Status {
    fn of(process: &Process<'_>, project: &Project) -> Result<Self> {
        // One that a newer beforehand wrote only says nothing.
        let mut memory = MaintenanceState::read(&project.state).unwrap_or_default();
        let (holdings, unseen) = maintenance::all(process, &project.state, &mut memory)?;
        let is_here = |holding: &&RootInventory| holding.place.path == project.root.path();
        let here = match holdings.iter().find(is_here) {
            Some(holding) => RootRow::of(process, project, holding, &memory),
            None => RootRow::unknown(project),
        };
        let in_the_way = record::gc_blocker_among(&project.state, |root| {
            match holdings.iter().find(|holding| holding.own.dir() == root.dir()) {
                Some(holding) => Ok(holding.unreadable.keys().copied().collect()),
                None => Ok(record::unreadable(root)?.into_keys().collect()),
            }
        })?;
        let others = holdings.iter().filter(|holding| !is_here(holding));
        let others = others.map(|holding| RootRow::of(process, project, holding, &memory));
        let places = iter::once(here).chain(others);
        let evidence = Evidence::read(process, &project.state);
        // Of other projects no conversation is read: there can be hundreds of them.
        let look_closely = iter::once(Some(Conversations::QUICK)).chain(iter::repeat(None));
        let places = places.zip(look_closely);
        let places = places.map(|(place, conversations)| place.judged(&evidence, conversations));
        let places = places.collect();
        let mut lines = journal::recent_trouble(&project.state, process.now);
        Ok(Self {
            places,
            total: own_bytes(project.state.dir()),
            unseen,
            disk: Disk::of(&project.state),
            in_the_way,
            last_prune: memory.last_prune(),
            troubles: lines.len(),
            trouble: lines.pop(),
        })
    }

    fn words(&self, process: &Process<'_>, project: &Project) -> String {
        let clock = Clock::local(process.now);
        let home = project.home.as_deref();
        let mut table = Table::new([
            Column::cut("", Cut::Middle),
            Column::left(""),
            Column::left(""),
            Column::right(""),
            Column::left(""),
            Column::below(""),
        ]);
        for place in &self.places {
            let path = ui::path(&place.path, home).into_owned();
            let count = ui::count(place.checkpoints as u64, "checkpoint");
            let last = place.last.map(|last| clock.when(last)).unwrap_or_default();
            table.row([
                path.into(),
                place.kind.into(),
                count.into(),
                ui::size(place.size).into(),
                last.into(),
                place.standing_words().into(),
            ]);
        }
        let mut text = table_text(process, &table);
        text.push('\n');
        text.push_str(&self.agent_words());
        text.extend(self.places.iter().map(|place| place.unread_words(home)));
        text.extend(self.unseen.iter().map(|line| {
            format!("{}; beforehand check --everywhere says more\n", ui::escape(line.as_bytes()))
        }));
        text.push_str(&self.left_out_words());
        text.push_str(&self.unwritable_words(project));
        text.push_str(&self.in_the_way_words(project));
        text.push_str(&self.room_words(project));
        text.push_str(&self.prune_words(&clock, &project.settings));
        text.push_str(&self.trouble_words(&clock));
        text
    }

    /// What the newest checkpoint of this project left out.
    fn left_out_words(&self) -> String {
        const SHOWN_MAX: usize = 5;
        let lines = self.places.first().map(|here| ui::left_out(&here.left_out));
        let more = |_| "more; beforehand show latest names it".to_owned();
        let shown = ui::at_most(lines.unwrap_or_default(), SHOWN_MAX, more).into_iter();
        shown.map(|line| "not held: ".to_owned() + &line + "\n").collect()
    }

    /// What keeps checkpoints from being taken, once for each directory, and what to do.
    fn unwritable_words(&self, project: &Project) -> String {
        let dirs: BTreeSet<_> =
            self.places.iter().filter_map(|it| it.unwritable.as_ref()).collect();
        let line = |dir: &PathBuf| {
            let dir = ui::path(dir, project.home.as_deref());
            format!("nothing can be written in {dir}: {}\n", StateDir::HOW_TO_WRITE)
        };
        dirs.into_iter().map(line).collect()
    }

    /// A line for each agent of this project, and for those whose calls are not held in another, each
    /// with the step that helps.
    fn agent_words(&self) -> String {
        let mut lines = Vec::new();
        for (at, place) in self.places.iter().enumerate() {
            for agent in place.agents.iter().filter(|_| !place.is_hopeless()) {
                if at > 0 && agent.verdict != AgentVerdict::Unprotected {
                    continue;
                }
                let line = agent_line(agent);
                if !lines.contains(&line) {
                    lines.push(line);
                }
            }
        }
        lines.concat()
    }

    fn room_words(&self, project: &Project) -> String {
        let mut text = format!(
            "{} of {}, in {}",
            ui::size(self.total),
            ui::size(project.settings.max_total_size),
            ui::path(project.state.dir(), project.home.as_deref()),
        );
        if let Some(disk) = self.disk {
            let floor = project.settings.free_space_floor.of(disk.size);
            let (free, floor) = (ui::size(disk.free), ui::size(floor));
            text.push_str(&format!("; {free} of the disk free, of which {floor} stay free"));
        }
        text.push('\n');
        text
    }

    fn in_the_way_words(&self, project: &Project) -> String {
        let Some((path, why)) = &self.in_the_way else { return String::new() };
        let is_pack = path.starts_with(project.state.objects());
        let path = ui::path(path, project.home.as_deref());
        let until = match why {
            Unreadable::Damaged if is_pack => {
                "is damaged; beforehand check --repair puts it aside".to_owned()
            }
            Unreadable::IoError if is_pack => "cannot be read from the disk".to_owned(),
            Unreadable::Damaged => {
                let retention = ui::duration(project.settings.retention);
                format!("is damaged; it is dropped after {retention}, or with beforehand clear")
            }
            Unreadable::Newer => "is from a newer beforehand; update this one".to_owned(),
            Unreadable::IoError => {
                let retention = ui::duration(project.settings.retention);
                format!("cannot be read from the disk; if that lasts {retention}, it is dropped")
            }
        };
        format!("nothing can be freed, because this may still need any of it:\n  {path} {until}\n")
    }

    fn prune_words(&self, clock: &Clock, settings: &Settings) -> String {
        let Retention { steps, turns, sessions } = Retention::of(settings);
        let kept = format!(
            "kept: every checkpoint for {}, one for each turn for {}, one for each session for {}",
            ui::duration(steps),
            ui::duration(turns),
            ui::duration(sessions)
        );
        let mut text = match &self.last_prune {
            _ if !settings.auto_prune => format!("{kept}; auto_prune is off\n"),
            None => format!("{kept}; not pruned yet\n"),
            Some((at, report)) => {
                let (when, freed) = (clock.when(*at), ui::size(report.freed));
                let dropped = ui::count(report.dropped as u64, "checkpoint");
                format!("{kept}; last prune {when}: {dropped} dropped, {freed} freed\n")
            }
        };
        let unmet = self.last_prune.iter().flat_map(|(_, report)| &report.unmet);
        for unmet in unmet {
            text.push_str(&format!("limit not kept: {}\n", ui::escape(unmet.as_bytes())));
        }
        text
    }

    fn trouble_words(&self, clock: &Clock) -> String {
        let Some(last) = &self.trouble else {
            return format!("no trouble in the last {TROUBLE_DAYS} days\n");
        };
        let (when, text) = (clock.when(last.at), ui::escape(last.text.as_bytes()));
        let more = self.troubles - 1;
        let more = if more == 0 {
            String::new()
        } else {
            format!(" (and {more} more in the last {TROUBLE_DAYS} days)")
        };
        format!("last trouble {when}: {text}{more}\n")
    }

    fn json(&self, project: &Project) -> Value {
        let settings = &project.settings;
        let trouble = self.trouble.as_ref().map(
            |line| json!({ "time": json_time(line.at), "root": line.root, "text": line.text }),
        );
        let prune = self.last_prune.as_ref().map(|(at, report)| {
            json!({
                "time": json_time(*at),
                "dropped": report.dropped,
                "freed": report.freed,
                "forgotten_roots": report.orphans,
                "limits_not_kept": report.unmet,
            })
        });
        json!({
            "roots": self.places.iter().map(RootRow::json).collect::<Vec<_>>(),
            "state": project.state.dir().to_string_lossy(),
            "size": self.total,
            "not_looked_at": self.unseen,
            "free": self.disk.map(|disk| disk.free),
            "nothing_freed_because_of":
                self.in_the_way.as_ref().map(|(path, _)| path.to_string_lossy()),
            "limits": {
                "max_total_size": settings.max_total_size,
                "free_space_floor": self.disk.map(|disk| settings.free_space_floor.of(disk.size)),
                "retention": settings.retention.as_secs(),
                "keep_turns": settings.keep_turns.as_secs(),
                "keep_sessions": settings.keep_sessions.as_secs(),
                "auto_prune": settings.auto_prune,
                "prune_interval": settings.prune_interval.as_secs(),
                "delete_orphans": settings.delete_orphans,
            },
            "max_total_size": settings.max_total_size,
            "last_prune": prune,
            "trouble": trouble,
            "troubles": self.troubles,
        })
    }
}

impl RootRow {
    fn of(
        process: &Process<'_>,
        project: &Project,
        holding: &RootInventory,
        memory: &MaintenanceState,
    ) -> Self {
        let is_live = holding.standing == RootStatus::Live;
        let seen = is_live.then(|| found(process, project, &holding.place.path)).flatten();
        let (kind, why, scope) = seen.unwrap_or_else(|| {
            let was_git = holding.place.git_dir.is_some();
            (if was_git { "git" } else { "files" }, None, ScanScope::Whole)
        });
        let unwritable = is_live.then(|| project.state.unwritable(Some(&holding.own))).flatten();
        Self {
            path: holding.place.path.clone(),
            kind,
            why,
            checkpoints: holding.checkpoints.len(),
            last: holding.checkpoints.first().map(|newest| newest.taken_at),
            size: size_of(&project.state, holding),
            standing: holding.standing,
            unread: holding.unreadable.clone(),
            settings: holding.settings.clone(),
            unprotected: is_live
                .then(|| unprotected(&holding.settings, &scope, unwritable.as_deref()))
                .flatten(),
            unwritable,
            agents: Vec::new(),
            forgotten_in: forgotten_in(project, holding, memory),
            left_out: left_out(&holding.checkpoints),
        }
    }

    /// One that nothing was ever saved of.
    fn unknown(project: &Project) -> Self {
        let (kind, why) = snapshot::store_kind(project.store.as_ref(), project.settings.store);
        let Survey { checkpoints, unreadable, .. } = project.store.survey().unwrap_or_default();
        let unwritable = project.state.unwritable(Some(&project.state.root(&project.root)));
        let unwritable = unwritable.filter(|_| !project.is_gone);
        Self {
            path: project.root.path().to_owned(),
            kind,
            why: why.map(str::to_owned),
            checkpoints: checkpoints.len(),
            last: checkpoints.first().map(|newest| newest.taken_at),
            size: 0,
            unread: unreadable,
            standing: if project.is_gone { RootStatus::Gone } else { RootStatus::Live },
            settings: project.settings.clone(),
            unprotected: unprotected(&project.settings, &project.scope, unwritable.as_deref())
                .filter(|_| !project.is_gone),
            unwritable,
            agents: Vec::new(),
            forgotten_in: None,
            left_out: left_out(&checkpoints),
        }
    }

    /// Looks at the agents that can call here.
    fn judged(mut self, evidence: &Evidence<'_, '_>, conversations: Option<Conversations>) -> Self {
        if self.standing == RootStatus::Live {
            let query = HealthQuery {
                root: Some(&self.path),
                settings: &self.settings,
                conversations,
                other_hooks: conversations.is_some(),
            };
            self.agents = evidence.agents(query);
            self.agents.retain(|agent| agent.verdict.is_registered());
        }
        self
    }

    /// Returns true if nothing of it can be held, whatever agents do.
    fn is_hopeless(&self) -> bool {
        self.standing != RootStatus::Live || self.unprotected.is_some()
    }

    fn titles(&self, verdict: AgentVerdict) -> String {
        let agents = self.agents.iter().filter(|agent| agent.verdict == verdict);
        agents.map(AgentHealth::title).collect::<Vec<_>>().join(", ")
    }

    fn has(&self, verdict: AgentVerdict) -> bool {
        self.agents.iter().any(|agent| agent.verdict == verdict)
    }

    /// Returns true if calls of agents are held here.
    fn is_protected(&self) -> bool {
        !self.is_hopeless()
            && (self.has(AgentVerdict::Protected) || self.has(AgentVerdict::Unlisted))
    }

    /// Returns true if agents call, or should, and no call would be held.
    fn is_broken(&self) -> bool {
        let is_live = self.standing == RootStatus::Live;
        let all_fail = self.agents.iter().all(|it| it.verdict == AgentVerdict::Unprotected);
        is_live && (self.unprotected.is_some() || all_fail && !self.agents.is_empty())
    }

    /// The verdict on all agents here, in words.
    fn agents_words(&self) -> String {
        let unprotected = self.titles(AgentVerdict::Unprotected);
        let words = if self.has(AgentVerdict::Protected) {
            if !unprotected.is_empty() {
                return format!("protected, but not from {unprotected}");
            }
            "protected".to_owned()
        } else if self.has(AgentVerdict::Unlisted) {
            "protected if an agent still calls beforehand; `beforehand install` has set up none"
                .to_owned()
        } else if self.has(AgentVerdict::Unseen) {
            "installed, not seen yet".to_owned()
        } else if self.agents.is_empty() {
            return "not protected: no agent calls beforehand yet: run `beforehand install`"
                .to_owned();
        } else {
            return format!("not protected: the calls of {unprotected} are not held");
        };
        if unprotected.is_empty() {
            words
        } else {
            format!("{words}; not protected from {unprotected}")
        }
    }

    fn unread_ids(&self, why: Unreadable) -> Vec<String> {
        let fitting = self.unread.iter().filter(|(_, it)| **it == why);
        fitting.map(|(id, _)| id.to_string()).collect()
    }

    /// A line for each checkpoint that cannot be read.
    fn unread_words(&self, home: Option<&Path>) -> String {
        let path = ui::path(&self.path, home);
        let line = |(id, why): (&CheckpointId, &Unreadable)| match why {
            Unreadable::Damaged => {
                format!("damaged: {} of {path}; beforehand check names what is\n", id.short())
            }
            Unreadable::Newer => {
                format!("checkpoint {} of {path} is from a newer beforehand\n", id.short())
            }
            Unreadable::IoError => {
                format!("checkpoint {} of {path} cannot be read from the disk\n", id.short())
            }
        };
        self.unread.iter().map(line).collect()
    }

    fn standing_words(&self) -> String {
        let standing = match (self.standing, self.unprotected, self.forgotten_in) {
            (RootStatus::Live, None, _) => self.agents_words(),
            (RootStatus::Live, Some(why), _) => format!("not protected: {why}"),
            (RootStatus::Gone, _, None) => "gone".to_owned(),
            (RootStatus::Gone, _, Some(Duration::ZERO)) => "gone; forgotten soon".to_owned(),
            (RootStatus::Gone, _, Some(rest)) => {
                format!("gone; forgotten in {}", ui::duration(rest))
            }
            (RootStatus::Unreachable, _, _) => "out of reach".to_owned(),
        };
        match &self.why {
            Some(why) => format!("{standing} ({why})"),
            None => standing,
        }
    }

    fn json(&self) -> Value {
        let standing = match self.standing {
            RootStatus::Live => "live",
            RootStatus::Gone => "gone",
            RootStatus::Unreachable => "unreachable",
        };
        let silent = self.agents.iter().filter(|it| it.verdict == AgentVerdict::Unprotected);
        json!({
            "path": self.path.to_string_lossy(),
            "store": self.kind,
            "store_reason": self.why,
            "checkpoints": self.checkpoints,
            "last": self.last.map(json_time),
            "size": self.size,
            "standing": standing,
            "protected": self.is_protected(),
            "unwritable": self.unwritable.as_ref().map(|dir| dir.to_string_lossy()),
            "forgotten_in": self.forgotten_in.map(|rest| rest.as_secs()),
            "damaged": self.unread_ids(Unreadable::Damaged),
            "newer": self.unread_ids(Unreadable::Newer),
            "withheld": self.unread_ids(Unreadable::IoError),
            "not_held": self.left_out.iter().map(skipped_json).collect::<Vec<_>>(),
            "silent": silent.map(agent_json).collect::<Vec<_>>(),
            "agents": self.agents.iter().map(verdict_json).collect::<Vec<_>>(),
            "status": self.standing_words(),
        })
    }
}

/// The line of one agent.
fn agent_line(agent: &AgentHealth) -> String {
    let title = agent.title();
    let verdict = match agent.verdict {
        AgentVerdict::Protected => "protected, ",
        AgentVerdict::Unseen => "installed, ",
        AgentVerdict::Unprotected => "not protected: ",
        AgentVerdict::Absent | AgentVerdict::Unregistered | AgentVerdict::Unlisted => "",
    };
    let line = format!("{title}: {verdict}{}\n", agent.message);
    match &agent.hint {
        Some(hint) => format!("{line}  hint: {hint}\n"),
        None => line,
    }
}

fn agent_json(agent: &AgentHealth) -> Value {
    json!({ "agent": agent.row.agent, "text": agent.message, "hint": agent.hint })
}

fn verdict_json(agent: &AgentHealth) -> Value {
    json!({
        "agent": agent.row.agent,
        "verdict": agent.verdict.word(),
        "text": agent.message,
        "hint": agent.hint,
    })
}

/// Which store a root that is there has, why not its repository, and how much of it is walked.
fn found(
    process: &Process<'_>,
    project: &Project,
    path: &Path,
) -> Option<(&'static str, Option<String>, ScanScope)> {
    let (root, scope) = root_at(process, &project.state, path)?;
    let settings = crate::config::load(process, Some(path)).settings;
    let (kind, why) = match store::open(&root, &project.state, settings.store) {
        Ok(store) => {
            let (kind, why) = snapshot::store_kind(store.as_ref(), settings.store);
            (kind, why.map(str::to_owned))
        }
        Err(err) => ("files", Some(err.to_string())),
    };
    Some((kind, why, scope))
}

fn unprotected(
    settings: &Settings,
    scope: &ScanScope,
    unwritable: Option<&Path>,
) -> Option<&'static str> {
    match scope {
        ScanScope::Named => Some("too wide to be held as a whole"),
        ScanScope::Whole if policy::wants_nothing(settings) => Some("switched off"),
        ScanScope::Whole if unwritable.is_some() => Some("no checkpoint can be written"),
        ScanScope::Whole => None,
    }
}

/// What a root takes on the disk, in bytes: its own files, its private repositories, and the objects
/// of the file store that its checkpoints need.
fn size_of(state: &StateDir, holding: &RootInventory) -> u64 {
    let mut objects = UsageIndex::new(state);
    holding.needs.iter().for_each(|needs| objects.add_private(needs));
    let stores = holding.needs.iter().flat_map(|needs| &needs.trees).map(|(store, _)| store);
    let stores: BTreeSet<PathBuf> = stores.map(|store| state.repositories().join(store)).collect();
    let repositories: u64 = stores.iter().map(|dir| own_bytes(dir)).sum();
    own_bytes(holding.own.dir()) + repositories + objects.contents()
}

/// What the newest checkpoint left out, and a person wants to hear of.
fn left_out(checkpoints: &[Checkpoint]) -> Vec<Skipped> {
    let skipped = checkpoints.first().map(|newest| &newest.skipped[..]).unwrap_or_default();
    skipped.iter().filter(|skipped| skipped.reason.matters()).cloned().collect()
}

/// When nothing is kept any more of a root that is gone, as rounds see time pass.
fn forgotten_in(
    project: &Project,
    holding: &RootInventory,
    memory: &MaintenanceState,
) -> Option<Duration> {
    let wanted = project.settings.auto_prune && project.settings.delete_orphans;
    let gone = (holding.standing == RootStatus::Gone && wanted)
        .then(|| memory.gone_for(&holding.name).unwrap_or_default())?;
    Some(holding.settings.retention.saturating_sub(gone))
}
