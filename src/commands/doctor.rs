//! `turnback doctor`: whether the hooks would really be called, and the store can take what they
//! save. One line each, with the fix.

use std::{
    fs,
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::{Path, PathBuf},
};

use chrono::TimeDelta;
use rustix::fs::{Access, AtFlags, CWD, accessat};
use serde_json::{Value, json};

use super::{Desk, install::project, missed, print, print_json};
use crate::{
    agent, config,
    error::Result,
    fs::read_small,
    install::{Entry, ROWS, Row, Site, Standing, look, untrusted},
    journal::{self, LineKind},
    model::{RootKind, Settings, StoreChoice},
    process::{Exit, Process},
    root::{git_dirs, kind_of, remotes_with_everything},
    state::State,
    ui::{self, Clock, Paint, Style},
};

/// An agent must wait longer than `deadline` is by default, with room for a slow disk.
const TIMEOUT_S_MIN: u64 = 5;
/// What a hook needs beside its deadline, to start and to answer.
const DEADLINE_ROOM_S: u64 = 2;
/// How far back trouble is worth a word.
const TROUBLE_DAYS: i64 = 7;
/// Larger than any configuration a person wrote.
const CONFIG_MAX_BYTES: u64 = 2 << 20;

/// Look whether turnback is called by your agents, and can save what they are about to change.
///
/// Exits 1 if anything is in the way.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Print an array with an object for each line
    #[arg(long)]
    pub(crate) json: bool,
}

/// How one thing stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Health {
    Ok,
    Note,
    Trouble,
    Absent,
}

/// One thing that was looked at.
struct Line {
    name: String,
    health: Health,
    /// Printable.
    told: String,
    hint: Option<String>,
}

pub(crate) fn run(process: &mut Process<'_>, args: &Args) -> Result<Exit> {
    let lines = examine(process)?;
    if args.json {
        let value: Vec<Value> = lines.iter().map(Line::json).collect();
        print_json(process, &value.into())?;
    } else {
        let text = words(&lines, Style::stdout(process));
        print(process, &text)?;
    }
    let is_sick = lines.iter().any(|line| line.health == Health::Trouble);
    Ok(if is_sick { Exit::Failed } else { Exit::Ok })
}

fn examine(process: &Process<'_>) -> Result<Vec<Line>> {
    let state = config::state(process, None)?;
    let root = project(process);
    let settings = config::load(process, root.as_deref()).settings;
    let home = process.var("HOME").map(PathBuf::from);
    let desk = Desk::open(process, None).ok();
    let visit = Visit {
        process,
        root: root.as_deref(),
        home: home.as_deref(),
        desk: desk.as_ref(),
        deadline_s: settings.deadline.as_secs(),
    };
    let mut lines: Vec<Line> = ROWS.iter().map(|row| visit.agent(row)).collect();
    lines.extend(environment(process, &settings));
    lines.push(store(&state, &settings, home.as_deref()));
    lines.extend(trouble(process, &state));
    lines.extend(root.as_deref().and_then(|root| remotes(root, &settings)));
    Ok(lines)
}

/// What the agents are looked at with.
struct Visit<'a, 'p> {
    process: &'a Process<'p>,
    root: Option<&'a Path>,
    home: Option<&'a Path>,
    desk: Option<&'a Desk>,
    /// How long a hook may take by the settings.
    deadline_s: u64,
}

impl Visit<'_, '_> {
    fn agent(&self, row: &Row) -> Line {
        let title = agent::by_name(row.agent).map_or(row.agent, |dialect| dialect.title());
        let line = |health, told: String, hint: Option<String>| {
            let name = title.to_lowercase();
            Line { name, health, told, hint }
        };
        let install = || Some(format!("turnback install {}", row.agent));
        let mut sites = row.sites(self.process);
        sites.extend(self.root.map(|root| row.project_sites(root)).unwrap_or_default());
        sites.retain(Site::is_hook);
        let mut places = Vec::new();
        for site in &sites {
            match look(site) {
                Ok(Standing::Nothing) => (),
                Ok(found) => {
                    if let Some((told, hint)) = self.fault(row, site, &found) {
                        return line(Health::Trouble, told, hint.or_else(install));
                    }
                    places.push((site, found));
                }
                Err(err) => {
                    let hint = err.hint().map(str::to_owned);
                    return line(Health::Trouble, err.to_string(), hint);
                }
            }
        }
        if let Some((first, found)) = places.first() {
            let told = format!("hook in {}", ui::path(&first.path, self.home));
            return match self.other(found) {
                Some(other) => {
                    let other = ui::path(&other, self.home).into_owned();
                    line(Health::Note, format!("{told} runs another turnback, {other}"), install())
                }
                None => self.calls(row, &told, line),
            };
        }
        match (row.is_there(self.process), row.by_hand) {
            (false, _) => line(Health::Absent, "not installed".to_owned(), None),
            (true, Some(how)) => {
                let told = "its hooks are put in by hand and were not looked at".to_owned();
                line(Health::Note, told, Some(how.to_owned()))
            }
            (true, None) => {
                line(Health::Trouble, "it has no hook of turnback's".to_owned(), install())
            }
        }
    }

    /// How many of the agent's calls here we were told of.
    fn calls(
        &self,
        row: &Row,
        told: &str,
        line: impl Fn(Health, String, Option<String>) -> Line,
    ) -> Line {
        let dialect = agent::by_name(row.agent);
        let tally = dialect
            .zip(self.desk)
            .and_then(|(dialect, desk)| missed::tally(self.process, desk, dialect.agent()));
        let Some(tally) = tally else { return line(Health::Ok, told.to_owned(), None) };
        let told = format!("{told}, {} of {} calls seen", tally.seen, tally.all);
        match tally.missed {
            None => line(Health::Ok, told, None),
            Some(call) => {
                let call = ui::escape_line(call.as_bytes());
                let hint = "agents read their hooks when they start: start it again";
                let told = format!("{told}; not `{}`", call.trim());
                line(Health::Trouble, told, Some(hint.to_owned()))
            }
        }
    }

    /// What is wrong with what was found in one place, and what to do about it if it is not to
    /// install again.
    fn fault(&self, row: &Row, site: &Site, found: &Standing) -> Option<(String, Option<String>)> {
        let place = ui::path(&site.path, self.home);
        if let Some(gone) = programs(found).iter().find(|program| self.real(program).is_none()) {
            let gone = ui::escape_path(gone);
            return Some((format!("the hook in {place} runs `{gone}`, which cannot be run"), None));
        }
        match found {
            Standing::Nothing => None,
            Standing::Whole(_) => {
                let is_program = site.path.metadata().is_ok_and(|found| found.mode() & 0o100 != 0);
                (site.needs_permission() && !is_program)
                    .then(|| (format!("{place} may not be executed"), Some("chmod +x it".into())))
            }
            Standing::Entries(entries, missing) => self
                .entries_fault(row, &place, entries, missing)
                .or_else(|| self.codex_fault(row, site, entries)),
        }
    }

    fn entries_fault(
        &self,
        row: &Row,
        place: &str,
        entries: &[Entry],
        missing: &[String],
    ) -> Option<(String, Option<String>)> {
        if !missing.is_empty() {
            return Some((format!("{place} has no hook for {}", missing.join(", ")), None));
        }
        let least = TIMEOUT_S_MIN.max(self.deadline_s + DEADLINE_ROOM_S) * row.second;
        let is_short = |entry: &&Entry| entry.timeout.is_some_and(|timeout| timeout < least);
        let short = entries.iter().find(is_short)?;
        let told = format!("the timeout for {} in {place} is too short", short.event);
        Some((told, Some(format!("set it to {least} or more"))))
    }

    fn codex_fault(
        &self,
        row: &Row,
        site: &Site,
        entries: &[Entry],
    ) -> Option<(String, Option<String>)> {
        if row.agent != "codex" {
            return None;
        }
        let path = row.dir(self.process)?.join("config.toml");
        let bytes = read_small(&path, CONFIG_MAX_BYTES).ok()?.unwrap_or_default();
        let hint = Some("turnback install codex --trust, or `/hooks` in codex".to_owned());
        match untrusted(&String::from_utf8_lossy(&bytes), &site.path, entries) {
            Ok(skipped) if skipped.is_empty() => None,
            Ok(_) => {
                let told = "the hook is registered but not trusted: codex skips it in silence";
                Some((told.to_owned(), hint))
            }
            Err(why) => {
                let path = ui::path(&path, self.home);
                Some((format!("{path}: {}", ui::escape(why.as_bytes())), None))
            }
        }
    }

    /// A program that can be run, without links.
    fn real(&self, program: &Path) -> Option<PathBuf> {
        let path = match program.to_str() {
            Some(name) if !name.contains('/') => self.process.which(name)?,
            Some(_) | None => program.to_owned(),
        };
        let found = path.metadata().ok()?;
        (path.is_absolute() && found.is_file() && found.permissions().mode() & 0o111 != 0)
            .then(|| path.canonicalize().ok())
            .flatten()
    }

    /// A program that is not this one.
    fn other(&self, found: &Standing) -> Option<PathBuf> {
        let own = self.process.program().ok()?.canonicalize().ok()?;
        programs(found).into_iter().find(|program| self.real(program).is_some_and(|it| it != own))
    }
}

fn programs(found: &Standing) -> Vec<PathBuf> {
    match found {
        Standing::Nothing => Vec::new(),
        Standing::Entries(entries, _) => {
            entries.iter().map(|entry| entry.program.clone()).collect()
        }
        Standing::Whole(program) => vec![program.clone()],
    }
}

/// What the environment changes.
fn environment(process: &Process<'_>, settings: &Settings) -> Option<Line> {
    let (health, told) = if settings.enabled {
        let home = process.var("TURNBACK_HOME")?;
        let home = ui::escape_path(Path::new(home)).into_owned();
        (Health::Note, format!("checkpoints are kept in {home}: `TURNBACK_HOME` says so"))
    } else {
        (Health::Trouble, "turnback is switched off here".to_owned())
    };
    let hint = Some("run `turnback config` to see where that comes from".to_owned());
    Some(Line { name: "settings".to_owned(), health, told, hint })
}

/// Whether the state directory is private, can be written, and has room.
fn store(state: &State, settings: &Settings, home: Option<&Path>) -> Line {
    let dir = state.dir();
    let shown = ui::path(dir, home).into_owned();
    let line = |health, told: String, hint: Option<String>| Line {
        name: "store".to_owned(),
        health,
        told,
        hint,
    };
    let existing = dir.ancestors().find(|dir| dir.is_dir()).unwrap_or(dir);
    if accessat(CWD, existing, Access::WRITE_OK | Access::EXEC_OK, AtFlags::EACCESS).is_err() {
        return line(Health::Trouble, format!("{shown} cannot be written"), None);
    }
    let mode = fs::symlink_metadata(dir).map_or(0o700, |found| found.mode());
    if mode & 0o077 != 0 && existing == dir {
        let hint = Some(format!("chmod 700 {shown}"));
        return line(Health::Trouble, format!("others can look into {shown}"), hint);
    }
    let Ok(disk) = rustix::fs::statvfs(existing) else {
        return line(Health::Note, format!("nobody can tell what is free in {shown}"), None);
    };
    let (free, all) = (disk.f_bavail * disk.f_frsize, disk.f_blocks * disk.f_frsize);
    let told = format!("{} limit, {} free", ui::size(settings.max_total_size), ui::size(free));
    if free < settings.free_space_floor.of(all) {
        let hint = "free some, or set a lower `free_space_floor`".to_owned();
        return line(Health::Trouble, format!("{told}, which is too little"), Some(hint));
    }
    line(Health::Ok, told, None)
}

/// The last trouble of the hook.
fn trouble(process: &Process<'_>, state: &State) -> Option<Line> {
    let since = process.now - TimeDelta::days(TROUBLE_DAYS);
    let is_recent = |line: &journal::Line| line.kind == LineKind::Trouble && line.at > since;
    let last = journal::read(state).into_iter().rfind(is_recent)?;
    let when = Clock::local(process.now).when(last.at);
    let told = format!("{when}: {}", ui::escape(last.text.as_bytes()));
    Some(Line { name: "last trouble".to_owned(), health: Health::Note, told, hint: None })
}

/// Remotes of this repository that a push would send every ref to, ours included.
fn remotes(root: &Path, settings: &Settings) -> Option<Line> {
    let dirs = git_dirs(root).ok()??;
    let names = remotes_with_everything(&dirs.common_dir);
    let is_kept_there =
        settings.store == StoreChoice::Auto && matches!(kind_of(root), RootKind::Git { .. });
    let line = |health, told: String, hint| Line { name: "remotes".to_owned(), health, told, hint };
    if names.is_empty() || !is_kept_there {
        return Some(line(Health::Ok, "none would receive checkpoints".to_owned(), None));
    }
    let names: Vec<_> =
        names.iter().map(|name| format!("`{}`", ui::escape(name.as_bytes()))).collect();
    let told = format!("a push to {} would send checkpoints along", names.join(", "));
    let hint = "the setting `store = \"files\"` keeps them out of the repository".to_owned();
    Some(line(Health::Note, told, Some(hint)))
}

impl Health {
    fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Note => "note",
            Self::Trouble => "trouble",
            Self::Absent => "–",
        }
    }

    fn paint(self) -> Paint {
        match self {
            Self::Ok => Paint::Plain,
            Self::Note | Self::Trouble => Paint::Bold,
            Self::Absent => Paint::Dim,
        }
    }
}

impl Line {
    fn json(&self) -> Value {
        let health = if self.health == Health::Absent { "absent" } else { self.health.word() };
        json!({ "name": self.name, "health": health, "text": self.told, "hint": self.hint })
    }
}

fn words(lines: &[Line], style: Style) -> String {
    let width = lines.iter().map(|line| line.name.chars().count()).max().unwrap_or(0);
    let mut text = String::new();
    for Line { name, health, told, hint } in lines {
        let word = format!("{:<7}", health.word());
        let row = format!("{name:<width$}  {}  ", style.paint(health.paint(), &word));
        text.push_str(&format!("{row}{told}\n"));
        if let Some(hint) = hint {
            text.push_str(&format!("{:width$}  hint: {hint}\n", ""));
        }
    }
    text
}
