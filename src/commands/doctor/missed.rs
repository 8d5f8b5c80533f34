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
        transcript::{CallEvent, calls_in, has_calls},
    },
    attribution::{self, LogEvent},
    commands::Project,
    fs::open_regular,
    install, ledger,
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
pub(super) fn tally(process: &Process<'_>, project: &Project, agent: Agent) -> Option<Tally> {
    if !has_calls(agent) {
        return None;
    }
    let since = since(process, project);
    let noted = attribution::read(&project.state.root(&project.root)).into_iter();
    let noted: BTreeSet<String> = noted
        .filter_map(|line| match line.what {
            LogEvent::Began { call, .. } => Some(call),
            _ => None,
        })
        .collect();
    let scope = shell::ShellContext {
        home: project.home.as_ref().and_then(|home| home.to_str()).map(str::to_owned),
        ..shell::ShellContext::default()
    };
    let mut tally = Tally::default();
    for file in conversations(process, project, agent, since.into()) {
        let text = tail(&file).unwrap_or_default();
        for call in calls(agent, &text, since) {
            if !is_here(project, &call) || shell::effect(&call.intent, &scope) == Effect::None {
                continue;
            }
            tally.all += 1;
            if noted.contains(&attribution::call_key(&call)) {
                tally.seen += 1;
            } else {
                tally.missed = Some(in_words(&call));
            }
        }
    }
    (tally.all > 0).then_some(tally)
}

/// When calls began to be ours to see.
fn since(process: &Process<'_>, project: &Project) -> DateTime<Utc> {
    let written = project.state.installed().metadata().and_then(|found| found.modified());
    let installed = written.unwrap_or(SystemTime::UNIX_EPOCH).into();
    (process.now - TimeDelta::days(DAYS)).max(installed)
}

/// Where agents keep their conversations, below the directories of their settings.
const KEPT: &[(Agent, &str)] = &[
    (Agent::ClaudeCode, "projects"),
    (Agent::Codex, "sessions"),
    (Agent::GeminiCli, "tmp"),
    (Agent::CopilotCli, "session-state"),
];

/// The newest conversations in this root, oldest first: those we were told of, and those of which
/// we were never told a word.
fn conversations(
    process: &Process<'_>,
    project: &Project,
    agent: Agent,
    since: SystemTime,
) -> Vec<PathBuf> {
    let made = project.store.list().unwrap_or_default().into_iter().filter_map(|it| it.cause.by);
    let used = ledger::uses(&project.state).into_iter();
    let used = used.filter(|used| used.root == project.root.path()).map(|used| used.by);
    let told = made.chain(used).filter(|by| by.agent == agent).filter_map(|by| by.transcript);
    let dated = |file: PathBuf| Some((file.metadata().ok()?.modified().ok()?, file));
    let mut found: BTreeSet<_> = told.filter_map(dated).collect();
    let name = agent::by_agent(agent).name;
    let dir = install::ROWS.iter().find(|row| row.agent == name).and_then(|row| row.dir(process));
    let below = KEPT.iter().find(|(owner, _)| *owner == agent).map(|(_, below)| *below);
    if let Some(dir) = dir.zip(below).map(|(dir, below)| dir.join(below)) {
        let kept = kept(&dir).into_iter().filter_map(dated).filter(|(at, _)| *at >= since);
        found.extend(kept.filter(|(_, file)| mentions(file, project.root.path())));
    }
    let skipped = found.len().saturating_sub(FILES_MAX);
    found.into_iter().skip(skipped).map(|(_, file)| file).collect()
}

/// The conversations below a directory.
fn kept(dir: &Path) -> Vec<PathBuf> {
    /// As deep as any agent's year, month and day.
    const DEPTH_MAX: usize = 4;
    /// A directory of years of work must not keep the doctor waiting.
    const ENTRIES_MAX: usize = 20_000;
    let (mut open, mut found, mut seen) = (vec![(dir.to_owned(), 0)], Vec::new(), 0);
    while let Some((dir, depth)) = open.pop() {
        for entry in dir.read_dir().into_iter().flatten().flatten() {
            seen += 1;
            let (path, kind) = (entry.path(), entry.file_type());
            if kind.as_ref().is_ok_and(std::fs::FileType::is_dir) && depth < DEPTH_MAX {
                open.push((path, depth + 1));
            } else if path.extension().is_some_and(|extension| extension == "jsonl") {
                found.push(path);
            }
        }
        if seen > ENTRIES_MAX {
            break;
        }
    }
    found
}

/// Whether a conversation says at its beginning that it is held in `root`.
fn mentions(file: &Path, root: &Path) -> bool {
    /// The first words, and what an agent puts before them.
    const HEAD_MAX_BYTES: u64 = 64 << 10;
    let mut head = Vec::new();
    let read =
        open_regular(file).and_then(|(file, _)| file.take(HEAD_MAX_BYTES).read_to_end(&mut head));
    let root = root.as_os_str().as_encoded_bytes();
    let is_end = |next: Option<&u8>| next.is_some_and(|next| matches!(next, b'"' | b'\\'));
    let mut places = head.windows(root.len()).enumerate();
    read.is_ok() && places.any(|(at, here)| here == root && is_end(head.get(at + root.len())))
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
    for call in text.split(|&byte| byte == b'\n').flat_map(|line| calls_in(agent, line)) {
        match call {
            CallEvent::Made { id, at: Some(at), payload } if at > since => {
                made.insert(id, (at, payload));
            }
            CallEvent::Made { .. } => (),
            CallEvent::Failed(id) => {
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
fn is_here(project: &Project, call: &ToolCall) -> bool {
    let is_below = |path: &PathBuf| path.is_relative() || path.starts_with(project.root.path());
    match &call.intent {
        Intent::Write(paths) | Intent::Edit(paths) => paths.iter().all(is_below),
        Intent::Run { .. } => call.context.cwd.as_ref().is_none_or(is_below),
        Intent::Read | Intent::Unknown(_) => false,
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
        Intent::Read | Intent::Unknown(_) => String::new(),
    };
    let line: String = what.lines().next().unwrap_or_default().chars().take(CHARS_MAX).collect();
    format!("{} {line}", call.tool)
}
