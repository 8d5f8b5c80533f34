//! Reads the lines of the log, one after the other, into a [`TurnLog`].

use std::collections::HashMap;

use super::{AtPath, Doer, LoggedCall, Sight, TurnLog};
use crate::{
    attribution::{LogEvent, LogLine, PathSide, PathState, look::PATHS_MAX},
    model::{CheckpointId, RelPath},
};

/// A call that began and has not ended, as far as the log has been read.
struct RunningCall {
    /// Its place in [`TurnLog::logged_calls`]; `None` if the log does not say which checkpoint covers it.
    caller: Option<usize>,
    /// Whether it can change anything.
    is_command: bool,
    of: Option<CheckpointId>,
    /// The directories that it has to make.
    makes: Vec<RelPath>,
}

/// A log that has been read up to a line.
struct LogReader<'a> {
    lines: &'a [LogLine],
    side: PathSide,
    log: TurnLog,
    /// By session and call.
    running: HashMap<(&'a str, &'a str), RunningCall>,
    /// Those that have ended, but for what goes on in the background, by their places among the calls of the log.
    in_background: HashMap<(&'a str, &'a str), usize>,
    /// Who made the last call of each session. A change belongs to it if the beginning of its own call is
    /// not in the log.
    last: HashMap<&'a str, Doer>,
}

/// Reads lines of the log.
pub(super) fn read(lines: &[LogLine], side: PathSide) -> TurnLog {
    let times: Vec<i64> = lines.iter().map(|line| line.at).collect();
    let mut least_since = times.clone();
    for at in (1..times.len()).rev() {
        least_since[at - 1] = least_since[at - 1].min(least_since[at]);
    }
    let with_ends = lines.iter().filter(|line| line.shows_ends());
    let reports_ends = with_ends.map(|line| line.by.clone()).collect();
    let mut reader = LogReader {
        lines,
        side,
        log: TurnLog { reports_ends, times, least_since, ..TurnLog::default() },
        running: HashMap::new(),
        in_background: HashMap::new(),
        last: HashMap::new(),
    };
    for order in 0..lines.len() {
        reader.read_line(order);
    }
    reader.log
}

impl<'a> LogReader<'a> {
    fn read_line(&mut self, order: usize) {
        match &self.lines[order].what {
            LogEvent::Began { .. } => self.call_begins(order),
            LogEvent::Left { path, state } => self.call_left(order, path, state.as_ref()),
            LogEvent::Ended { call, background } => {
                self.agent_says_ended(order, call, background.is_some());
            }
            LogEvent::Done { call, .. } => self.call_is_done(order, call),
            LogEvent::CutOff { call, left_nothing } => {
                self.call_cut_off(order, call, *left_nothing);
            }
            LogEvent::Back { path, state, held, .. } => {
                self.restore_wrote(order, held.as_deref(), path, AtPath::of(state.as_ref()));
            }
            LogEvent::Merged { path, held, sha } => {
                self.restore_wrote(order, Some(held), path, AtPath::File(sha.clone()));
            }
            LogEvent::Head { .. }
            | LogEvent::Refs { .. }
            | LogEvent::Void { .. }
            | LogEvent::Lost { .. } => (),
        }
    }

    /// A call begins, or a call that has begun is noted again because it can change more.
    fn call_begins(&mut self, order: usize) {
        let LogLine { by, what, .. } = &self.lines[order];
        let LogEvent::Began { of, call, paths, makes, absent, .. } = what else { return };
        let of = CheckpointId::parse(of);
        if let Some(of) = of {
            self.log.first_calls.entry(of).or_insert(order);
        }
        let named = paths.as_deref().map(|texts| self.paths(texts));
        let again = self.running.get(&(by, call)).filter(|it| it.of == of);
        let caller = match (again.and_then(|it| it.caller), of) {
            (Some(at), _) => {
                widen(&mut self.log.logged_calls[at].paths, named);
                Some(at)
            }
            (None, Some(of)) => Some(self.add_caller(order, of, named)),
            (None, None) => None,
        };
        for path in self.paths(absent) {
            self.log.see(path, Sight { order, there: AtPath::Nothing, by: Doer::Other });
        }
        self.last.insert(by, Doer::Call(caller));
        let call_running =
            RunningCall { caller, is_command: paths.is_none(), of, makes: self.paths(makes) };
        self.running.insert((by, call), call_running);
    }

    /// Adds a call that a checkpoint covers. Returns its place.
    fn add_caller(&mut self, began: usize, of: CheckpointId, paths: Option<Vec<RelPath>>) -> usize {
        let LogLine { by, at, what } = &self.lines[began];
        let (compared, tool, summary, names) = match what {
            LogEvent::Began { compared, tool, summary, names, names_all, paths, .. } => {
                let names = names_all.then(|| self.paths(names));
                let summary = match summary.as_str() {
                    "" => names_elsewhere(paths.as_deref().unwrap_or_default(), self.side),
                    _ => summary.clone(),
                };
                (*compared, tool.clone(), summary, names)
            }
            _ => Default::default(),
        };
        let first_before = first_before(&self.lines[..began], *at);
        let (by, at) = (by.clone(), *at);
        self.log.logged_calls.push(LoggedCall {
            by,
            of,
            at,
            paths,
            first_before,
            began,
            done: None,
            ended: None,
            cut_off: None,
            background_until: None,
            compared,
            tool,
            summary,
            names,
        });
        self.log.logged_calls.len() - 1
    }

    /// Something was at a path after a call, or before one: then no session is named.
    fn call_left(&mut self, order: usize, path: &str, state: Option<&PathState>) {
        let by = self.lines[order].by.as_str();
        let Some(path) = self.side.path(path) else { return };
        let call = caller_of(&self.lines[order..]).and_then(|call| self.running.get(&(by, call)));
        let doer = match call {
            _ if by.is_empty() => Doer::Other,
            Some(call) => Doer::Call(call.caller),
            None => self.last.get(by).copied().unwrap_or(Doer::Call(None)),
        };
        if let Some(call) = call.filter(|_| state.is_some()) {
            for dir in call.makes.iter().filter(|dir| path.is_within(dir)) {
                let made = Sight { order, there: AtPath::Directory, by: doer };
                self.log.see(dir.clone(), made);
            }
        }
        self.log.see(path, Sight { order, there: AtPath::of(state), by: doer });
    }

    fn agent_says_ended(&mut self, order: usize, call: &str, in_background: bool) {
        let running = self.running.get(&(self.lines[order].by.as_str(), call));
        if let Some(at) = running.and_then(|it| it.caller) {
            let caller = &mut self.log.logged_calls[at];
            caller.ended = Some(order);
            caller.background_until = in_background.then_some(usize::MAX);
        }
    }

    /// Everything that a call left has been noted.
    fn call_is_done(&mut self, order: usize, call: &'a str) {
        let by = self.lines[order].by.as_str();
        let key = (by, call);
        let Some(call) = self.running.remove(&key) else { return };
        if let Some(at) = call.caller {
            let caller = &mut self.log.logged_calls[at];
            caller.done = Some(order);
            if caller.background_until.is_some() {
                self.in_background.insert(key, at);
            }
        }
        if call.is_command && is_cut_short(&self.lines[..order]) {
            self.log.cut_short.insert(order);
        }
    }

    /// The turn of a call is over. Its own end may still come.
    fn call_cut_off(&mut self, order: usize, call: &'a str, left_nothing: bool) {
        let key = (self.lines[order].by.as_str(), call);
        if let Some(at) = self.in_background.remove(&key) {
            self.log.logged_calls[at].background_until = (!left_nothing).then_some(order);
        } else if let Some(at) = self.running.get(&key).and_then(|it| it.caller) {
            let caller = &mut self.log.logged_calls[at];
            (caller.cut_off, caller.done) = (Some(order), left_nothing.then_some(order));
        }
    }

    fn restore_wrote(&mut self, order: usize, held: Option<&str>, path: &str, there: AtPath) {
        self.restore_ran(order, held);
        if let Some(path) = self.side.path(path) {
            self.log.see(path, Sight { order, there, by: Doer::Restore });
        }
    }

    fn restore_ran(&mut self, order: usize, held: Option<&str>) {
        if let Some(held) = held.and_then(CheckpointId::parse) {
            self.log.restores.entry(held).or_insert(order);
        }
    }

    fn paths(&self, texts: &[String]) -> Vec<RelPath> {
        texts.iter().filter_map(|text| self.side.path(text)).collect()
    }
}

/// Adds to the paths that a call can change. `None` stands for any path.
fn widen(paths: &mut Option<Vec<RelPath>>, named: Option<Vec<RelPath>>) {
    *paths = paths.take().zip(named).map(|(paths, more)| [paths, more].concat());
}

/// Whether the lines of the last call, which it ends with, say less than all that the call left, or also
/// what an earlier call left.
fn is_cut_short(lines: &[LogLine]) -> bool {
    let Some(last) = lines.last() else { return false };
    let is_its = |line: &&LogLine| line.by == last.by && line.at == last.at;
    let lines_of_call = || lines.iter().rev().take_while(is_its);
    let left = lines_of_call().filter(|line| matches!(line.what, LogEvent::Left { .. }));
    left.count() >= PATHS_MAX
        || lines_of_call().any(|line| matches!(line.what, LogEvent::Done { .. }))
}

/// The position of the first line about the state before a call, which is noted together with the call's
/// beginning. `lines` are those before the beginning, and `at` is its time.
fn first_before(lines: &[LogLine], at: i64) -> usize {
    let is_its = |line: &&LogLine| {
        line.by.is_empty() && line.at == at && matches!(line.what, LogEvent::Left { .. })
    };
    lines.len() - lines.iter().rev().take_while(is_its).count()
}

/// What an edit names, one after another, if any of it is on the other side.
fn names_elsewhere(texts: &[String], side: PathSide) -> String {
    if texts.iter().all(|text| side.path(text).is_some()) {
        return String::new();
    }
    let shown = |text: &String| match PathSide::Root.path(text) {
        Some(below) => String::from_utf8_lossy(below.as_bytes()).into_owned(),
        None => text.clone(),
    };
    texts.iter().map(shown).collect::<Vec<_>>().join(" ")
}

/// The call that left what the first line says: its end is noted at the same time.
fn caller_of(lines: &[LogLine]) -> Option<&str> {
    let first = lines.first()?;
    let together = lines.iter().take_while(|line| line.by == first.by && line.at == first.at);
    together.into_iter().find_map(|line| match &line.what {
        LogEvent::Done { call, .. } => Some(call.as_str()),
        _ => None,
    })
}
