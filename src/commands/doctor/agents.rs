//! Whether the hooks of one agent are there, trusted, can be run, wait long enough, and are called.

use std::{
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::{Path, PathBuf},
};

use super::{CheckResult, Health, Project, missed};
use crate::{
    agent,
    install::{
        HookEntry, HookStatus, InstallRow, KIRO_AGENTS, OurPrograms, Site, ends_a_session, look,
        off,
    },
    process::Process,
    ui,
};

use super::super::inactive_hooks::sites;

/// An agent must wait longer than `deadline` is by default, with room for a slow disk.
const TIMEOUT_S_MIN: u64 = 5;
/// What a hook needs beside its deadline, to start and to answer.
const DEADLINE_ROOM_S: u64 = 2;

/// How an agent stands, in words, and what to do about it.
type Standing = (Health, String, Option<String>);

/// What the agents are looked at with.
pub(super) struct Visit<'a, 'p> {
    pub(super) process: &'a Process<'p>,
    pub(super) root: Option<&'a Path>,
    pub(super) home: Option<&'a Path>,
    pub(super) project: Option<&'a Project>,
    /// The programs that are beforehand.
    pub(super) ours: OurPrograms,
    /// How long a hook may take by the settings.
    pub(super) deadline_s: u64,
}

impl Visit<'_, '_> {
    /// How one agent stands.
    pub(super) fn agent(&self, row: &InstallRow) -> CheckResult {
        let (health, message, hint) = self.standing(row);
        CheckResult::new(row.title().to_lowercase(), health, message, hint)
    }

    fn standing(&self, row: &InstallRow) -> Standing {
        let install = || Some(format!("beforehand install {}", row.agent));
        let (mut places, mut bare) = (Vec::new(), None);
        for site in sites(row, self.process, self.root) {
            match look(&site, &self.ours) {
                Ok(HookStatus::Nothing) => bare = bare.or(Some(site)),
                Ok(found) => {
                    if let Some((message, hint)) = self.fault(row, &site, &found) {
                        return (Health::Trouble, message, hint.or_else(install));
                    }
                    places.push((site, found));
                }
                Err(err) => {
                    return (Health::Trouble, err.to_string(), err.hint().map(str::to_owned));
                }
            }
        }
        let Some((first, found)) = places.first() else { return self.without_hook(row) };
        if let Some(site) = bare.filter(|site| row.is_per_file() || site.names_hooks()) {
            let site = ui::path(&site.path, self.home);
            return (Health::Trouble, format!("{site} has no hook of beforehand's"), install());
        }
        if let Some(off) = off(row, self.process, self.root, &places) {
            return (Health::Trouble, off.message, Some(off.hint));
        }
        let message = format!("hook in {}", ui::path(&first.path, self.home));
        let message = match self.speed(found) {
            Ok(Some(took)) => format!("{message}, {took} a call"),
            Ok(None) => message,
            Err(why) => {
                let why = ui::escape(why.as_bytes());
                return (Health::Trouble, format!("{message}, which fails: {why}"), install());
            }
        };
        if let Some(other) = self.other(found) {
            let other = ui::path(&other, self.home);
            let message = format!("{message} runs another beforehand, {other}");
            return (Health::Note, message, install());
        }
        self.calls(row, message)
    }

    /// How an agent stands in which nothing of ours is registered.
    fn without_hook(&self, row: &InstallRow) -> Standing {
        let (health, message, hint) = match (row.is_there(self.process), row.by_hand) {
            (false, _) => return (Health::Absent, "not installed".to_owned(), None),
            (true, Some(how)) => {
                (Health::Note, "its hooks were added by hand and were not checked", how.to_owned())
            }
            (true, None) if row.is_per_file() && row.sites(self.process).is_empty() => {
                let message = "you have no agent of your own to put hooks into";
                (Health::Note, message, KIRO_AGENTS.to_owned())
            }
            (true, None) => {
                let install = format!("beforehand install {}", row.agent);
                (Health::Trouble, "it has no hook of beforehand's", install)
            }
        };
        (health, message.to_owned(), Some(hint))
    }

    /// How long the registered program takes for a call that is none, in words.
    fn speed(&self, found: &HookStatus) -> Result<Option<String>, String> {
        /// An event before which nothing runs. One that we do not know would count as a call, and be
        /// held.
        const NOTHING: &[u8] = br#"{"hook_event_name":"Notification","session_id":"doctor"}"#;
        let programs = programs(found);
        let Some(program) = programs.first().and_then(|program| self.real(program)) else {
            return Ok(None);
        };
        let args = ["hook", "--agent", "claude-code"];
        match self.process.aside.time(&program, &args, NOTHING) {
            Ok(took) => Ok(Some(format!("{:.1} ms", took.as_secs_f64() * 1000.0))),
            Err(err) if err.kind() == std::io::ErrorKind::Unsupported => Ok(None),
            Err(err) => Err(err.to_string()),
        }
    }

    /// How many of the agent's calls here we were told of.
    fn calls(&self, row: &InstallRow, message: String) -> Standing {
        let dialect = agent::by_name(row.agent);
        let tally = dialect
            .zip(self.project)
            .and_then(|(dialect, project)| missed::tally(self.process, project, dialect.agent));
        let Some(tally) = tally else { return (Health::Ok, message, None) };
        let message = format!("{message}, {} of {} calls seen", tally.seen, tally.all);
        match tally.missed {
            None => (Health::Ok, message, None),
            Some(call) => {
                let call = ui::escape_line(call.as_bytes());
                let hint = "agents read their hooks when they start: start it again";
                let message = format!("{message}; not `{}`", call.trim());
                (Health::Trouble, message, Some(hint.to_owned()))
            }
        }
    }

    /// What is wrong with what was found in one place, and what to do about it if it is not to
    /// install again.
    fn fault(
        &self,
        row: &InstallRow,
        site: &Site,
        found: &HookStatus,
    ) -> Option<(String, Option<String>)> {
        let place = ui::path(&site.path, self.home);
        if let Some(gone) = programs(found).iter().find(|program| self.real(program).is_none()) {
            let gone = ui::escape_path(gone);
            return Some((format!("the hook in {place} runs `{gone}`, which cannot be run"), None));
        }
        match found {
            HookStatus::Nothing | HookStatus::HookDir => None,
            HookStatus::Whole(_) => {
                let is_program = site.path.metadata().is_ok_and(|found| found.mode() & 0o100 != 0);
                (site.needs_permission() && !is_program)
                    .then(|| (format!("{place} may not be executed"), Some("chmod +x it".into())))
            }
            HookStatus::Entries(entries, missing) => {
                self.entries_fault(row, &place, entries, missing)
            }
        }
    }

    fn entries_fault(
        &self,
        row: &InstallRow,
        place: &str,
        entries: &[HookEntry],
        missing: &[String],
    ) -> Option<(String, Option<String>)> {
        if !missing.is_empty() {
            return Some((format!("{place} has no hook for {}", missing.join(", ")), None));
        }
        let least = TIMEOUT_S_MIN.max(self.deadline_s + DEADLINE_ROOM_S) * row.second;
        let is_cut = |entry: &HookEntry| row.agent == "codex" && ends_a_session(&entry.event);
        let is_short = |entry: &&HookEntry| {
            entry.timeout.is_some_and(|timeout| timeout < least) && !is_cut(entry)
        };
        let short = entries.iter().find(is_short)?;
        let message = format!("the timeout for {} in {place} is too short", short.event);
        Some((message, Some(format!("set it to {least} or more"))))
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
    fn other(&self, found: &HookStatus) -> Option<PathBuf> {
        let own = self.process.program().ok()?.canonicalize().ok()?;
        programs(found).into_iter().find(|program| self.real(program).is_some_and(|it| it != own))
    }
}

fn programs(found: &HookStatus) -> Vec<PathBuf> {
    match found {
        HookStatus::Nothing | HookStatus::HookDir => Vec::new(),
        HookStatus::Entries(entries, _) => {
            entries.iter().map(|entry| entry.program.clone()).collect()
        }
        HookStatus::Whole(program) => vec![program.clone()],
    }
}
