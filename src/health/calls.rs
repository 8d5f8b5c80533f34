//! Which calls an agent made that never arrived: its conversations on one side, the log of calls on
//! the other.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::{Read, Seek, SeekFrom},
    path::{Path, PathBuf},
    time::SystemTime,
};

use chrono::{DateTime, TimeDelta, Utc};

use super::Evidence;
use crate::{
    agent::{
        Dialect, Markers,
        transcript::{CallEvent, ConversationLog},
    },
    attribution::{self, LogEvent},
    fs::open_regular,
    install::InstallRow,
    model::{Effect, Event, Intent, ToolCall},
    shell,
};

/// How far back is looked.
const DAYS: i64 = 7;
/// A session without hooks that went on this recently is likely to go on.
const CURRENT: TimeDelta = TimeDelta::days(1);

/// How much of an agent's conversations is read.
#[derive(Clone, Copy, Debug)]
pub struct Conversations {
    /// The newest of this project.
    files_max: usize,
    /// The end of each, where the latest calls are.
    tail_max_bytes: u64,
    /// Entries of directories in which others are looked for, of which the agent told us nothing.
    entries_max: usize,
    /// How many of those are opened to see whether they are of this project.
    opened_max: usize,
}

impl Conversations {
    /// Enough to see that something is wrong, whenever it began.
    pub const THOROUGH: Self = Self {
        files_max: 10,
        tail_max_bytes: 8 << 20,
        // Years of work must not keep a person waiting.
        entries_max: 20_000,
        opened_max: 20_000,
    };
    /// Enough to see that something is wrong now, in a few milliseconds.
    pub const QUICK: Self =
        Self { files_max: 2, tail_max_bytes: 256 << 10, entries_max: 2_000, opened_max: 4 };
}

/// How many calls that could change files were made, and how many of them arrived.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Tally {
    pub(super) seen: usize,
    pub(super) all: usize,
    pub(super) missed: Option<MissedCall>,
}

/// A call that did not arrive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct MissedCall {
    /// In words.
    pub(super) call: String,
    /// Whether the next call of its session is likely to be missed as well.
    pub(super) is_current: bool,
    at: DateTime<Utc>,
}

impl Evidence<'_, '_> {
    /// Counts the calls of one agent in this project since our hooks were put in. `None` where there
    /// is nothing to compare.
    pub(super) fn tally(
        &self,
        row: &InstallRow,
        root: &Path,
        limits: Conversations,
    ) -> Option<Tally> {
        let log = row.dialect().conversations?;
        let since = self.since();
        let noted = attribution::read(&self.state.root_at(root)).into_iter();
        let noted: BTreeSet<String> = noted
            .filter_map(|line| match line.what {
                LogEvent::Began { call, .. } => Some(call),
                _ => None,
            })
            .collect();
        let scope = shell::ShellContext {
            home: self.process.home().and_then(|home| home.to_str().map(str::to_owned)),
            ..shell::ShellContext::default()
        };
        let mut tally = Tally::default();
        let mut last_seen = None;
        for file in self.conversations(row, log, root, limits) {
            let text = tail(&file, limits.tail_max_bytes).unwrap_or_default();
            let mut last_is_missed = false;
            let mut missed = None;
            for (at, call) in calls(row.dialect(), log, &text, since) {
                let is_read_only = shell::effect(&call.intent, &scope) == Effect::None;
                if is_read_only || !is_here(root, &call) {
                    continue;
                }
                tally.all += 1;
                last_is_missed = !noted.contains(&attribution::call_key(&call));
                if last_is_missed {
                    missed = Some((at, in_words(&call)));
                } else {
                    tally.seen += 1;
                    last_seen = last_seen.max(Some(at));
                }
            }
            if let Some((at, call)) = missed {
                let is_current = last_is_missed && at > self.process.now - CURRENT;
                tally.missed = Some(MissedCall { call, is_current, at });
            }
        }
        if let Some(missed) = &mut tally.missed {
            missed.is_current |= last_seen.is_none_or(|seen| seen < missed.at);
        }
        (tally.all > 0).then_some(tally)
    }

    /// When calls began to be ours to see.
    fn since(&self) -> DateTime<Utc> {
        let written = self.state.installed().metadata().and_then(|found| found.modified());
        let installed = written.unwrap_or(SystemTime::UNIX_EPOCH).into();
        (self.process.now - TimeDelta::days(DAYS)).max(installed)
    }

    /// The newest conversations in this project, oldest first: those that calls named, and those of
    /// which no call told.
    fn conversations(
        &self,
        row: &InstallRow,
        log: ConversationLog,
        root: &Path,
        limits: Conversations,
    ) -> Vec<PathBuf> {
        let since = SystemTime::from(self.since());
        let used = self
            .uses
            .iter()
            .filter(|used| used.root == root && used.by.agent == row.dialect().agent);
        let named: BTreeSet<PathBuf> = used.filter_map(|used| used.by.transcript.clone()).collect();
        let mut found: BTreeSet<_> = named.into_iter().filter_map(dated).collect();
        if let Some(dir) = row.dir(self.process) {
            let kept = kept(&dir.join(log.dir), limits.entries_max).into_iter().filter_map(dated);
            let mut kept: Vec<_> = kept.filter(|(at, _)| *at >= since).collect();
            kept.sort();
            let newest = kept.into_iter().rev().take(limits.opened_max);
            found.extend(newest.filter(|(_, file)| mentions(file, root)));
        }
        let skipped = found.len().saturating_sub(limits.files_max);
        found.into_iter().skip(skipped).map(|(_, file)| file).collect()
    }
}

/// A file with the time of its last change.
fn dated(file: PathBuf) -> Option<(SystemTime, PathBuf)> {
    Some((file.metadata().ok()?.modified().ok()?, file))
}

/// The conversations below a directory.
fn kept(dir: &Path, entries_max: usize) -> Vec<PathBuf> {
    /// As deep as any agent's year, month and day.
    const DEPTH_MAX: usize = 4;
    let mut open = vec![(dir.to_owned(), 0)];
    let mut found = Vec::new();
    let mut seen = 0;
    while let Some((dir, depth)) = open.pop() {
        for entry in dir.read_dir().into_iter().flatten().flatten() {
            seen += 1;
            let path = entry.path();
            let is_dir = entry.file_type().is_ok_and(|kind| kind.is_dir());
            if is_dir && depth < DEPTH_MAX {
                open.push((path, depth + 1));
            } else if path.extension().is_some_and(|extension| extension == "jsonl") {
                found.push(path);
            }
        }
        if seen > entries_max {
            break;
        }
    }
    found
}

/// Whether a conversation says at its beginning that it is held in `root`.
fn mentions(file: &Path, root: &Path) -> bool {
    /// The first words, and all that an agent puts before them.
    const HEAD_MAX_BYTES: u64 = 64 << 10;
    let mut head = Vec::new();
    let read =
        open_regular(file).and_then(|(file, _)| file.take(HEAD_MAX_BYTES).read_to_end(&mut head));
    let root = root.as_os_str().as_encoded_bytes();
    let mut places = memchr::memmem::find_iter(&head, root);
    read.is_ok() && places.any(|at| matches!(head.get(at + root.len()), Some(b'"' | b'\\')))
}

fn tail(file: &Path, max_bytes: u64) -> Option<Vec<u8>> {
    let (mut opened, stamp) = open_regular(file).ok()?;
    opened.seek(SeekFrom::Start(stamp.size.saturating_sub(max_bytes))).ok()?;
    let mut text = Vec::new();
    opened.take(max_bytes).read_to_end(&mut text).ok()?;
    Some(text)
}

/// The calls of a conversation that came to something, once each, with their times.
fn calls(
    dialect: &Dialect,
    log: ConversationLog,
    text: &[u8],
    since: DateTime<Utc>,
) -> Vec<(DateTime<Utc>, ToolCall)> {
    let mut made = BTreeMap::new();
    for call in text.split(|&byte| byte == b'\n').flat_map(|line| log.calls_in(line)) {
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
    let parsed = made.into_iter().filter_map(|(at, payload)| {
        match dialect.parse(&payload, &Markers::default()) {
            Ok(Event::ToolCall(call)) => Some((at, call)),
            Ok(_) | Err(_) => None,
        }
    });
    parsed.collect()
}

/// Whether a call is about this root, as far as it says.
fn is_here(root: &Path, call: &ToolCall) -> bool {
    let is_below = |path: &PathBuf| path.is_relative() || path.starts_with(root);
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
