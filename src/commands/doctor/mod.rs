//! `beforehand doctor`: whether the hooks would really be called, and the store can take what they
//! save. One line each, with the fix.

mod agents;
mod other_hooks;
mod prove;
mod scratch;
mod trial;

use std::{fs, os::unix::fs::MetadataExt, path::Path};

use serde_json::{Value, json};

use super::{print_json, print_text, root_here};
use crate::{
    config,
    error::Result,
    fs::space,
    health::{Conversations, Evidence, HealthQuery, Severity},
    journal,
    model::Settings,
    process::{Exit, Process},
    state::StateDir,
    ui::{self, Clock, Paint, Style},
};
/// Look whether beforehand is called by your agents, and can save what they are about to change.
///
/// Takes and restores a checkpoint of a scratch directory beside its own files. Exits 1 if anything is in
/// the way.
#[derive(clap::Args)]
pub(crate) struct DoctorArgs {
    /// Play a loss in a scratch project through the hook that each agent has registered, and see that
    /// every byte comes back
    #[arg(long)]
    pub(crate) prove: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// One thing that was looked at.
struct CheckResult {
    name: String,
    severity: Severity,
    /// Printable.
    message: String,
    hint: Option<String>,
}

pub(crate) fn run(process: &mut Process<'_>, args: &DoctorArgs) -> Result<Exit> {
    let lines = if args.prove { prove(process)? } else { examine(process)? };
    if args.json {
        let lines: Vec<Value> = lines.iter().map(CheckResult::json).collect();
        print_json(process, "doctor", lines.into())?;
    } else {
        let text = words(&lines, Style::stdout(process));
        print_text(process, &text)?;
    }
    let is_sick = lines.iter().any(|line| line.severity == Severity::Trouble);
    Ok(if is_sick { Exit::Failed } else { Exit::Ok })
}

fn prove(process: &Process<'_>) -> Result<Vec<CheckResult>> {
    let state = config::state(process, None)?;
    let root = root_here(process);
    let deadline = config::load(process, root.as_deref()).settings.deadline;
    let query = HealthQuery { root: root.as_deref(), deadline, conversations: None };
    prove::run(process, &state, query)
}

fn examine(process: &Process<'_>) -> Result<Vec<CheckResult>> {
    let state = config::state(process, None)?;
    let root = root_here(process);
    let settings = config::load(process, root.as_deref()).settings;
    let query = HealthQuery {
        root: root.as_deref(),
        deadline: settings.deadline,
        conversations: Some(Conversations::THOROUGH),
    };
    let agents = Evidence::read(process, &state).agents(query).into_iter();
    let mut lines: Vec<CheckResult> = agents.map(|agent| agents::line(process, agent)).collect();
    let dir = root.as_deref().or(process.cwd.as_deref()).unwrap_or(Path::new("/"));
    for note in other_hooks::notes(process, dir) {
        let hint = Some(other_hooks::HINT.to_owned());
        lines.push(CheckResult::new("other hooks", Severity::Note, note, hint));
    }
    lines.extend(environment(process, &settings));
    lines.push(store(process, &state, &settings));
    lines.extend(older(process, &state));
    if root.is_some_and(|root| trial::is_elsewhere(&root, &state)) {
        let message = "it is on another file system than the store, so nothing can be linked";
        lines.push(CheckResult::new("project", Severity::Note, message, None));
    }
    lines.extend(trouble(process, &state));
    Ok(lines)
}

/// What the environment changes.
fn environment(process: &Process<'_>, settings: &Settings) -> Option<CheckResult> {
    let (severity, message) = if settings.enabled {
        let home = process.var("BEFOREHAND_HOME")?;
        let home = ui::escape_path(Path::new(home)).into_owned();
        (Severity::Note, format!("checkpoints are kept in {home}: `BEFOREHAND_HOME` says so"))
    } else {
        (Severity::Trouble, "beforehand is switched off here".to_owned())
    };
    let hint = Some("run `beforehand config` to see where that comes from".to_owned());
    Some(CheckResult::new("settings", severity, message, hint))
}

/// Whether the state directory is private, can be written, has room, and takes a checkpoint.
fn store(process: &Process<'_>, state: &StateDir, settings: &Settings) -> CheckResult {
    let home = process.home();
    let home = home.as_deref();
    let dir = state.dir();
    let shown = ui::path(dir, home).into_owned();
    let line = |severity, message: String, hint| CheckResult::new("store", severity, message, hint);
    let existing = dir.ancestors().find(|dir| dir.is_dir()).unwrap_or(dir);
    if let Some(lost) = state.unwritable(None) {
        let message = format!("nothing can be written in {}", ui::path(&lost, home));
        return line(Severity::Trouble, message, Some(StateDir::HOW_TO_WRITE.to_owned()));
    }
    let mode = fs::symlink_metadata(dir).map_or(0o700, |found| found.mode());
    if mode & 0o077 != 0 && existing == dir {
        let hint = Some(format!("chmod 700 {shown}"));
        return line(Severity::Trouble, format!("other users can read {shown}"), hint);
    }
    let Ok((all, free)) = space(existing) else {
        return line(Severity::Note, format!("cannot determine the free space in {shown}"), None);
    };
    let message = format!("{} limit, {} free", ui::size(settings.max_total_size), ui::size(free));
    if free < settings.free_space_floor.of(all) {
        let hint = "free some, or set a lower `free_space_floor`".to_owned();
        return line(Severity::Trouble, format!("{message}, which is too little"), Some(hint));
    }
    match trial::run(process, state) {
        Ok(()) => line(Severity::Ok, format!("{message}, a trial checkpoint was restored"), None),
        Err(why) => {
            let why = ui::escape_line(why.as_bytes());
            let message = format!("a trial checkpoint in {shown} was not restored: {why}");
            let hint = "put that right, or set `BEFOREHAND_HOME` to a directory elsewhere";
            line(Severity::Trouble, message, Some(hint.to_owned()))
        }
    }
}

/// The state of older builds, which nothing reads.
fn older(process: &Process<'_>, state: &StateDir) -> Vec<CheckResult> {
    let home = process.home();
    let mut lines = Vec::new();
    for dir in state.all_older() {
        let message = format!(
            "the checkpoints of an older build are in {}, and this build does not read them",
            ui::path(&dir, home.as_deref())
        );
        let hint = "use the older build to restore from them, and remove the directory when you need none of them";
        lines.push(CheckResult::new("older state", Severity::Note, message, Some(hint.to_owned())));
    }
    lines
}

/// The last trouble of the hook.
fn trouble(process: &Process<'_>, state: &StateDir) -> Option<CheckResult> {
    let last = journal::recent_trouble(state, process.now).pop()?;
    let when = Clock::local(process.now).when(last.at);
    let message = format!("{when}: {}", ui::escape(last.text.as_bytes()));
    Some(CheckResult::new("last trouble", Severity::Note, message, None))
}

fn word(severity: Severity) -> &'static str {
    match severity {
        Severity::Ok => "ok",
        Severity::Note => "note",
        Severity::Trouble => "trouble",
        Severity::Absent => "–",
    }
}

fn paint(severity: Severity) -> Paint {
    match severity {
        Severity::Ok => Paint::Plain,
        Severity::Note | Severity::Trouble => Paint::Bold,
        Severity::Absent => Paint::Dim,
    }
}

impl CheckResult {
    fn new(
        name: impl Into<String>,
        severity: Severity,
        message: impl Into<String>,
        hint: Option<String>,
    ) -> Self {
        Self { name: name.into(), severity, message: message.into(), hint }
    }

    fn json(&self) -> Value {
        let is_absent = self.severity == Severity::Absent;
        let health = if is_absent { "absent" } else { word(self.severity) };
        json!({ "name": self.name, "health": health, "text": self.message, "hint": self.hint })
    }
}

fn words(lines: &[CheckResult], style: Style) -> String {
    let width = lines.iter().map(|line| line.name.chars().count()).max().unwrap_or(0);
    let mut text = String::new();
    for CheckResult { name, severity, message, hint } in lines {
        let word = format!("{:<7}", word(*severity));
        let row = format!("{name:<width$}  {}  ", style.paint(paint(*severity), &word));
        text.push_str(&format!("{row}{message}\n"));
        if let Some(hint) = hint {
            text.push_str(&format!("{:width$}  hint: {hint}\n", ""));
        }
    }
    text
}
