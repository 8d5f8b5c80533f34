//! Which calls an agent made without telling us: its conversations on one side, what our hook
//! noted on the other.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::{Read, Seek, SeekFrom},
    path::{Path, PathBuf},
    time::SystemTime,
};

use chrono::{DateTime, TimeDelta, Utc};

use crate::{
    agent::{
        self, Markers,
        transcript::{Told, has_calls, told},
    },
    commands::Desk,
    fs::open_regular,
    left::{self, What},
    model::{Agent, Effect, Event, Intent, ToolCall},
    process::Process,
    shell,
};

/// How far back is looked.
const DAYS: i64 = 7;
/// The newest conversations are enough to see that something is wrong.
const FILES_MAX: usize = 10;
/// The end of a conversation, where the latest calls are.
const TAIL_MAX_BYTES: u64 = 8 << 20;

/// How many calls that could change files were made, and what was seen of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Tally {
    pub(super) seen: usize,
    pub(super) all: usize,
    /// The latest that was not.
    pub(super) missed: Option<String>,
}

/// Counts the calls of one agent in this root since our hooks were put in. `None` where there is
/// nothing to compare.
pub(super) fn tally(process: &Process<'_>, desk: &Desk, agent: Agent) -> Option<Tally> {
    if !has_calls(agent) {
        return None;
    }
    let since = since(process, desk);
    let noted = left::read(&desk.state.root(&desk.root)).into_iter();
    let noted: BTreeSet<String> = noted
        .filter_map(|line| match line.what {
            What::Began { call, .. } => Some(call),
            _ => None,
        })
        .collect();
    let scope = shell::Scope {
        home: desk.home.as_ref().and_then(|home| home.to_str()).map(str::to_owned),
        rules: shell::Patterns::default(),
    };
    let mut tally = Tally::default();
    for file in conversations(process, desk, agent) {
        let text = tail(&file).unwrap_or_default();
        for call in calls(agent, &text, since) {
            if !is_here(desk, &call) || shell::effect(&call.intent, &scope) == Effect::None {
                continue;
            }
            tally.all += 1;
            if noted.contains(&left::name(&call)) {
                tally.seen += 1;
            } else {
                tally.missed = Some(in_words(&call));
            }
        }
    }
    (tally.all > 0).then_some(tally)
}

/// When calls began to be ours to see.
fn since(process: &Process<'_>, desk: &Desk) -> DateTime<Utc> {
    let written = desk.state.installed().metadata().and_then(|found| found.modified());
    let installed = written.unwrap_or(SystemTime::UNIX_EPOCH).into();
    (process.now - TimeDelta::days(DAYS)).max(installed)
}

/// The newest conversations in this root that we know of, oldest first.
fn conversations(process: &Process<'_>, desk: &Desk, agent: Agent) -> Vec<PathBuf> {
    let mut files = BTreeSet::new();
    for by in desk.store.list().unwrap_or_default().into_iter().filter_map(|it| it.cause.by) {
        if by.agent == agent {
            files.extend(by.transcript);
            let own = desk.home.as_ref().filter(|_| agent == Agent::CopilotCli);
            let own = own.map(|home| home.join(".copilot/session-state").join(&by.session.0));
            files.extend(own.map(|dir| dir.join("events.jsonl")));
        }
    }
    if agent == Agent::ClaudeCode {
        files.extend(of_claude_code(process, desk));
    }
    let dated = |file: PathBuf| Some((file.metadata().ok()?.modified().ok()?, file));
    let mut dated: Vec<_> = files.into_iter().filter_map(dated).collect();
    dated.sort();
    let skipped = dated.len().saturating_sub(FILES_MAX);
    dated.into_iter().skip(skipped).map(|(_, file)| file).collect()
}

/// Claude Code keeps the conversations of a directory in one named after it: those of which we
/// were never told a word are there too.
fn of_claude_code(process: &Process<'_>, desk: &Desk) -> Vec<PathBuf> {
    let own = process.var("CLAUDE_CONFIG_DIR").map(PathBuf::from);
    let Some(dir) = own.or_else(|| Some(desk.home.as_ref()?.join(".claude"))) else {
        return Vec::new();
    };
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
    let name: String = desk.root.path().to_string_lossy().chars().map(plain).collect();
    let Ok(found) = dir.join("projects").join(name).read_dir() else { return Vec::new() };
    let is_conversation = |file: &PathBuf| file.extension().is_some_and(|ext| ext == "jsonl");
    found.flatten().map(|entry| entry.path()).filter(is_conversation).collect()
}

fn tail(file: &Path) -> Option<Vec<u8>> {
    let (mut opened, stamp) = open_regular(file).ok()?;
    opened.seek(SeekFrom::Start(stamp.size.saturating_sub(TAIL_MAX_BYTES))).ok()?;
    let mut text = Vec::new();
    opened.take(TAIL_MAX_BYTES).read_to_end(&mut text).ok()?;
    Some(text)
}

/// The calls of a conversation that came to something, once each.
fn calls(agent: Agent, text: &[u8], since: DateTime<Utc>) -> Vec<ToolCall> {
    let mut made = BTreeMap::new();
    for told in text.split(|&byte| byte == b'\n').flat_map(|line| told(agent, line)) {
        match told {
            Told::Made { id, at: Some(at), payload } if at > since => {
                made.insert(id, (at, payload));
            }
            Told::Made { .. } => (),
            Told::Failed(id) => {
                made.remove(&id);
            }
        }
    }
    let mut made: Vec<_> = made.into_values().collect();
    made.sort();
    let dialect = agent::by_agent(agent);
    let parsed = made.into_iter().map(|(_, payload)| dialect.parse(&payload, &Markers::default()));
    parsed
        .filter_map(|event| match event {
            Ok(Event::ToolCall(call)) => Some(call),
            _ => None,
        })
        .collect()
}

/// Whether a call is about this root, as far as it says.
fn is_here(desk: &Desk, call: &ToolCall) -> bool {
    let is_below = |path: &PathBuf| path.is_relative() || path.starts_with(desk.root.path());
    match &call.intent {
        Intent::Write(paths) | Intent::Edit(paths) => paths.iter().all(is_below),
        Intent::Run { .. } => call.context.cwd.as_ref().is_none_or(is_below),
        Intent::Read | Intent::Unknown => false,
    }
}

fn in_words(call: &ToolCall) -> String {
    /// Enough to know it again.
    const CHARS_MAX: usize = 60;
    let what = match &call.intent {
        Intent::Run { command, .. } => command.clone(),
        Intent::Write(paths) | Intent::Edit(paths) => {
            paths.first().map(|path| path.to_string_lossy().into_owned()).unwrap_or_default()
        }
        Intent::Read | Intent::Unknown => String::new(),
    };
    let line: String = what.lines().next().unwrap_or_default().chars().take(CHARS_MAX).collect();
    format!("{} {line}", call.tool)
}
