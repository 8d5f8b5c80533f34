//! The steps of a turn: the calls that could change files, in the order in which they began.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    ops::Range,
    path::PathBuf,
    rc::Rc,
};

use chrono::{DateTime, Utc};
use sha2::{Digest, Sha256};

use super::{
    super::version::{Version, VersionBytes, VersionEntry},
    FileHistory, PastState, StepGap,
    step_state::Looks,
};
use crate::{
    attribution::{Doer, LoggedCall, PathSide, Sight},
    error::{Error, Result},
    ledger,
    model::{Checkpoint, CheckpointId, Content, ContentId, Entry, Kind, Reason, RelPath, Storage},
    plan::Change,
    project::{Project, TurnRow, rows},
};

/// A turn of the list, as steps.
pub(crate) struct TurnSteps<'a> {
    pub(super) history: FileHistory<'a>,
    /// Its number in the list, from 1.
    pub(crate) turn: usize,
    /// Its row.
    pub(crate) row: TurnRow,
    /// Its steps, the first one first.
    pub(crate) steps: Vec<TurnStep>,
    pub(super) looks: Looks,
}

/// One call of a turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TurnStep {
    /// Its number in the turn, from 1.
    pub(crate) number: usize,
    /// When it began.
    pub(crate) at: DateTime<Utc>,
    /// The tool, if it is known.
    pub(crate) tool: Option<String>,
    /// The call in one line: the command, or the paths that it names.
    pub(crate) summary: Option<String>,
    /// The checkpoint that covers it.
    pub(crate) of: CheckpointId,
    /// Whether that checkpoint is what was there right before it.
    pub(crate) is_exact: bool,
    /// Whether all it left is noted: otherwise it is running, or was cut off.
    pub(crate) is_done: bool,
    /// The numbers of the steps that ran at the same time, if it may have changed anything: any of them may
    /// have made a change that one of them is listed with.
    pub(crate) overlaps: Vec<usize>,
    /// Its place among [`FileHistory::calls`].
    pub(super) call: usize,
}

/// What a step changed.
#[derive(Default)]
pub(crate) struct StepChanges {
    /// From what was there right before it to what it left, without directories.
    pub(crate) changes: Vec<Change>,
    /// The bytes of files that no checkpoint holds, by their names in the changes.
    pub(crate) contents: BTreeMap<ContentId, Vec<u8>>,
    /// What else it left something at: one of both sides is not known, or its bytes are not held.
    pub(crate) unknown: Vec<RelPath>,
    /// The same as `changes` outside the project: paths begin at the top of the file system.
    pub(crate) outside: Vec<Change>,
    /// The same as `unknown` outside the project.
    pub(crate) unknown_outside: Vec<RelPath>,
    /// Paths that changed after its end, by a process that it had started or by the user.
    pub(crate) later: BTreeSet<RelPath>,
}

impl StepChanges {
    /// Adds what the same calls changed outside the project.
    fn and_outside(mut self, outside: Option<&FileHistory<'_>>, calls: &[(usize, usize)]) -> Self {
        if let Some(outside) = outside {
            let found = outside.changes_by(calls);
            self.contents.extend(found.contents);
            (self.outside, self.unknown_outside) = (found.changes, found.unknown);
        }
        self
    }

    /// The paths that it is only known to have changed: below the root, or absolute.
    pub(crate) fn unknown_paths(&self) -> impl Iterator<Item = PathBuf> {
        let outside = self.unknown_outside.iter().map(RelPath::at_top);
        self.unknown.iter().map(|path| path.as_path().to_owned()).chain(outside)
    }
}

impl<'a> TurnSteps<'a> {
    /// The steps of the turn that has a number in the list.
    ///
    /// # Errors
    ///
    /// Fails if there is no such turn, or the store cannot be read.
    pub(crate) fn of(project: &'a Project, turn: usize) -> Result<Self> {
        let all = rows(project.store.list()?, &ledger::uses(&project.state));
        let none = || Error::NoSuchCheckpoint { given: turn.to_string() };
        let row = all.into_iter().nth(turn.wrapping_sub(1)).ok_or_else(none)?;
        Ok(Self::with(FileHistory::of(project)?, turn, row))
    }

    fn with(history: FileHistory<'a>, turn: usize, row: TurnRow) -> Self {
        let steps = history.steps_of(turn, &row);
        Self { history, turn, row, steps, looks: Looks::default() }
    }

    /// A step by its number.
    ///
    /// # Errors
    ///
    /// Fails if the turn has none of that number.
    pub(crate) fn step(&self, number: usize) -> Result<&TurnStep> {
        self.steps.get(number.wrapping_sub(1)).ok_or_else(|| {
            let turn = self.turn;
            let message = match (self.row.told_by_user(), self.steps.len()) {
                (true, _) => {
                    format!("{turn} is a checkpoint taken by hand; it has no steps")
                }
                (false, 1) => format!("turn {turn} has no step {number}: it has one"),
                (false, count) => format!("turn {turn} has no step {number}: it has {count}"),
            };
            let hint = match self.steps.len() {
                0 => "`beforehand list` shows the turns".to_owned(),
                _ => format!("`beforehand list --steps {turn}` shows them"),
            };
            Error::other(message, hint)
        })
    }

    /// The checkpoint that holds exactly what was there before a step, if there is one. It is the turn's,
    /// whatever session it was taken for.
    pub(crate) fn checkpoint(&self, step: &TurnStep) -> Option<Checkpoint> {
        let mut found = self.history.checkpoint(step.of).filter(|_| step.is_exact)?.clone();
        found.cause.by = self.row.checkpoints.first().and_then(|first| first.cause.by.clone());
        Some(found)
    }

    /// The states that a path went through.
    pub(super) fn states(&self, path: &RelPath) -> Rc<Vec<PastState>> {
        self.history.states(path)
    }

    /// What a step changed; `None` if all of that is not known.
    pub(crate) fn changes(&self, step: &TurnStep) -> Option<StepChanges> {
        let history = &self.history;
        let by = history.calls[step.call].caller.filter(|_| step.is_done)?;
        let changes = history.changes_by(&[(step.call, by)]);
        let changes = changes.and_outside(history.outside(), &[(step.call, by)]);
        Some(StepChanges { later: self.changed_later(step).ok()?, ..changes })
    }
}

/// A file that was there before a step of a turn and that no checkpoint holds.
pub(crate) struct StepVersion {
    pub(crate) path: RelPath,
    /// Its content is among [`BetweenSteps::contents`].
    pub(crate) entry: Entry,
    /// The number of the turn, and that of the step in it.
    pub(crate) number: (usize, usize),
    /// When the step began.
    pub(crate) at: DateTime<Utc>,
    /// The checkpoint of the turn that the step is told from.
    pub(crate) base: CheckpointId,
}

/// What calls left for the next one of their turn, where it is held apart from the checkpoints.
#[derive(Default)]
pub(crate) struct BetweenSteps {
    /// By turn, the newest first, and in each by step and path.
    pub(crate) versions: Vec<StepVersion>,
    /// The bytes, by their names in the entries.
    pub(crate) contents: BTreeMap<ContentId, Vec<u8>>,
}

impl BetweenSteps {
    /// Of all turns, at paths that `is_wanted`. `all` checkpoints are given newest first.
    ///
    /// # Errors
    ///
    /// Fails if there is no checkpoint.
    pub(crate) fn of(
        project: &Project,
        all: Vec<Checkpoint>,
        is_wanted: impl Fn(&RelPath) -> bool,
    ) -> Result<Self> {
        let uses = ledger::uses(&project.state);
        let rows = rows(all.clone(), &uses);
        let mut history = FileHistory::of_all(project, PathSide::Root, all, &uses, &rows)?;
        let mut found = Self::default();
        for (at, row) in rows.into_iter().enumerate() {
            let turn = TurnSteps::with(history, at + 1, row);
            for pair in turn.steps.windows(2) {
                found.add(&turn, (&pair[0], &pair[1]), &is_wanted);
            }
            history = turn.history;
        }
        Ok(found)
    }

    /// Adds what a step left for the next one, where that is known and no checkpoint holds it.
    fn add(
        &mut self,
        turn: &TurnSteps<'_>,
        (left, next): (&TurnStep, &TurnStep),
        is_wanted: &impl Fn(&RelPath) -> bool,
    ) {
        let history = &turn.history;
        let Some(by) = history.calls[left.call].caller.filter(|_| !next.is_exact) else { return };
        let left = history.paths_left_by(by).into_iter().flatten();
        let paths: Vec<&RelPath> = left.filter(|path| is_wanted(path)).collect();
        // Without a checkpoint that it is told from, nothing goes back to before the step.
        let base = (!paths.is_empty()).then(|| turn.base_of(next).ok()).flatten();
        let Some((base, _)) = base else { return };
        for path in paths {
            let before = history.before(path, &turn.states(path), next.call).ok();
            let contents = &mut self.contents;
            let entry = before.and_then(|there| history.entry(path, &there, contents).ok()?);
            let is_apart = |it: &Entry| it.content.is_some_and(|it| contents.contains_key(&it.id));
            if let Some(entry) = entry.filter(is_apart) {
                let (number, path) = ((turn.turn, next.number), path.clone());
                self.versions.push(StepVersion { path, entry, number, at: next.at, base: base.id });
            }
        }
    }
}

/// What calls left at a path, with nothing by others in between.
struct CallsChange {
    /// What was there before; `None` if that is not known.
    before: Option<Version>,
    after: Version,
}

impl CallsChange {
    /// Whether there is no more to it than a directory.
    fn is_of_directory(&self) -> bool {
        let is_directory = |it: &Version| it.as_ref().is_some_and(|it| it.kind == Kind::Directory);
        let Self { before, after } = self;
        before.as_ref().is_none_or(|it| it.is_none() || is_directory(it))
            && (after.is_none() || is_directory(after))
            && (before.is_some() || is_directory(after))
    }
}

impl TurnRow {
    /// Whether a person asked for it, and so no turn began with it.
    fn told_by_user(&self) -> bool {
        self.checkpoints.first().is_some_and(|first| first.cause.reason == Reason::Asked)
    }
}

impl FileHistory<'_> {
    /// What the turn of a row of the list changed: without what others did meanwhile. `None` if the log does
    /// not know all of it.
    pub(crate) fn turn_changes(&self, turn: usize) -> Option<StepChanges> {
        let known = |call: usize| {
            let caller = self.calls[call].caller?;
            let done = self.log.logged_calls[caller].done?;
            (!self.log.is_cut_short(done)).then_some((call, caller))
        };
        let calls: Vec<_> = self.calls_of(turn).into_iter().map(known).collect::<Option<_>>()?;
        let is_known = !calls.is_empty() && !self.log.is_lost;
        is_known.then(|| {
            let changes = self.changes_by(&calls);
            changes.and_outside(self.outside(), &calls)
        })
    }

    /// What some calls changed, each given with its place among the calls of the log, in their order.
    fn changes_by(&self, calls: &[(usize, usize)]) -> StepChanges {
        let mut found = StepChanges::default();
        let left = calls.iter().filter_map(|(_, by)| self.paths_left_by(*by)).flatten();
        let paths: BTreeSet<&RelPath> = left.collect();
        for path in paths {
            let sights = self.log.seen_at(path);
            let mut changes = self.changes_at(path, sights, (calls, &self.states(path)));
            let is_same = |it: &CallsChange| {
                it.before.as_ref().is_some_and(|then| self.source.is_same(path, then, &it.after))
            };
            changes.retain(|it| !is_same(it) && !it.is_of_directory());
            let is_known =
                |(_, by): &(usize, usize)| !self.log.logged_calls[*by].may_be_anothers(path);
            let its = calls
                .iter()
                .filter(|(_, by)| sights.iter().any(|sight| sight.by == Doer::Call(Some(*by))));
            if !changes.is_empty() && !its.clone().all(is_known) {
                found.unknown.push(path.clone());
                continue;
            }
            for CallsChange { before, after } in changes {
                let mut entry = |there: &Version| self.entry(path, there, &mut found.contents);
                match before.as_ref().map(&mut entry).zip(Some(entry(&after))) {
                    Some((Ok(before), Ok(after))) => {
                        found.changes.push(Change { path: path.clone(), before, after });
                    }
                    _ => found.unknown.push(path.clone()),
                }
            }
        }
        found
    }

    fn changes_at(
        &self,
        path: &RelPath,
        sights: &[Sight],
        (calls, states): (&[(usize, usize)], &[PastState]),
    ) -> Vec<CallsChange> {
        let mut all_left: Vec<(&Sight, usize)> = Vec::new();
        for (call, by) in calls {
            let left = sights.iter().rfind(|sight| sight.by == Doer::Call(Some(*by)));
            all_left.extend(left.map(|left| (left, *call)));
        }
        all_left.sort_by_key(|(left, _)| left.order);
        let mut changes: Vec<CallsChange> = Vec::new();
        for (left, call) in all_left {
            let before = match self.left_at_once(sights, left, call) {
                Some(before) => Some(before),
                None => self.before(path, states, call).ok(),
            };
            let after = VersionEntry::seen(&left.there);
            let last = changes.last_mut();
            let goes_on = |last: &&mut CallsChange| {
                before.as_ref().is_some_and(|then| self.source.is_same(path, then, &last.after))
            };
            match last.filter(goes_on) {
                Some(last) => last.after = after,
                None => changes.push(CallsChange { before, after }),
            }
        }
        changes
    }

    /// The state in which another call of the turn had left a path when a call that ran at the same time was seen
    /// to leave something there: nothing was changed a second time.
    fn left_at_once(&self, sights: &[Sight], left: &Sight, call: usize) -> Option<Version> {
        let ran = &self.calls[call];
        let meanwhile = sights.iter().rev().find(|sight| {
            let is_then = (ran.began..left.order).contains(&sight.order);
            is_then && sight.by != left.by && self.turn_of_doer(sight.by) == Some(ran.turn)
        });
        meanwhile.map(|sight| VersionEntry::seen(&sight.there))
    }

    fn turn_of_doer(&self, by: Doer) -> Option<usize> {
        let Doer::Call(Some(caller)) = by else { return None };
        self.calls.iter().find(|ran| ran.caller == Some(caller)).map(|ran| ran.turn)
    }

    /// The calls of the turn that has a number in the list, in the order in which they began.
    fn calls_of(&self, turn: usize) -> Vec<usize> {
        let by_turn = self.calls_by_turn.get_or_init(|| {
            let mut by_turn: HashMap<usize, Vec<usize>> = HashMap::new();
            for (at, call) in self.calls.iter().enumerate() {
                if let Some(number) = self.turns[call.turn].number {
                    by_turn.entry(number).or_default().push(at);
                }
            }
            for calls in by_turn.values_mut() {
                calls.sort_by_key(|at| self.calls[*at].began);
            }
            by_turn
        });
        by_turn.get(&turn).cloned().unwrap_or_default()
    }

    /// The paths that a call of the log was seen to leave something at, or nothing.
    fn paths_left_by(&self, caller: usize) -> Option<&BTreeSet<RelPath>> {
        let by_caller = self.paths_by_caller.get_or_init(|| {
            let mut by_caller: HashMap<usize, BTreeSet<RelPath>> = HashMap::new();
            for (path, sights) in &self.log.sights {
                for sight in sights {
                    if let Doer::Call(Some(by)) = sight.by {
                        by_caller.entry(by).or_default().insert(path.clone());
                    }
                }
            }
            by_caller
        });
        by_caller.get(&caller)
    }

    /// The steps of the turn that a row is about.
    fn steps_of(&self, turn: usize, row: &TurnRow) -> Vec<TurnStep> {
        let calls = self.calls_of(turn);
        let mut steps = Vec::new();
        for (at, call) in calls.iter().enumerate() {
            let overlaps = self.overlapping(&calls, at);
            steps.push(TurnStep { overlaps, ..self.step(at + 1, *call, row) });
        }
        steps
    }

    /// The numbers of those of the `calls` of a turn that ran while the one at a place did, if that may have
    /// changed anything. Of calls without an end, it is not known when they ran.
    fn overlapping(&self, calls: &[usize], at: usize) -> Vec<usize> {
        let Some(own) = self.time_of(calls[at]) else { return Vec::new() };
        let may_change_all = self.caller(calls[at]).is_some_and(|caller| caller.paths.is_none());
        let mut found = Vec::new();
        for (other, call) in calls.iter().enumerate().filter(|_| may_change_all) {
            let time = self.time_of(*call).filter(|_| other != at);
            if time.is_some_and(|time| time.start < own.end && own.start < time.end) {
                found.push(other + 1);
            }
        }
        found
    }

    fn caller(&self, call: usize) -> Option<&LoggedCall> {
        self.calls[call].caller.map(|caller| &self.log.logged_calls[caller])
    }

    /// The part of the log in which a call ran, if it was seen to end.
    fn time_of(&self, call: usize) -> Option<Range<usize>> {
        let caller = self.caller(call)?;
        Some(caller.began..caller.ended.or(caller.done)?)
    }

    fn step(&self, number: usize, call: usize, row: &TurnRow) -> TurnStep {
        let ran = &self.calls[call];
        let caller = self.caller(call);
        let held = self.checkpoint(ran.of);
        let is_exact = match (caller, held) {
            (_, None) => false,
            (None, Some(_)) => true,
            (Some(caller), Some(held)) => self.is_exact(caller, held),
        };
        // What the checkpoint was taken before, or the turn that found it as it was.
        let at = row.checkpoints.iter().position(|one| one.id == ran.of && is_exact);
        let cause = at.map(|at| match row.used.as_ref().filter(|_| at == 0) {
            Some(used) => (used.tool.clone(), used.summary.clone()),
            None => {
                (row.checkpoints[at].cause.tool.clone(), row.checkpoints[at].cause.summary.clone())
            }
        });
        let (tool, summary) = match (caller, cause) {
            (Some(caller), _) if !caller.tool.is_empty() => (Some(caller.tool.clone()), None),
            (_, Some(cause)) => cause,
            (_, None) => (None, None),
        };
        let named = || {
            let caller = caller?;
            let names = caller.paths.as_ref()?.iter();
            let names: Vec<_> =
                names.map(|path| String::from_utf8_lossy(path.as_bytes())).collect();
            Some(names.join(" "))
        };
        let line = caller.map(|caller| caller.summary.clone()).filter(|line| !line.is_empty());
        TurnStep {
            number,
            at: caller.map_or_else(
                || held.map_or(DateTime::UNIX_EPOCH, |held| held.taken_at),
                |caller| DateTime::from_timestamp_nanos(caller.at),
            ),
            tool,
            summary: summary.or(line).or_else(named).filter(|line| !line.is_empty()),
            of: ran.of,
            is_exact,
            is_done: caller.is_some_and(|caller| caller.done.is_some()),
            overlaps: Vec::new(),
            call,
        }
    }

    /// What was there right before a call, of the states that a path went through.
    ///
    /// # Errors
    ///
    /// Fails if that is not known: it was changed at some time around the beginning of the call.
    pub(super) fn before(
        &self,
        path: &RelPath,
        states: &[PastState],
        call: usize,
    ) -> Result<Version, StepGap> {
        let ran = &self.calls[call];
        let looked =
            ran.caller.map_or(ran.began, |caller| self.log.logged_calls[caller].first_before);
        let next = states.iter().position(|state| state.order > ran.began);
        let next = next.unwrap_or(states.len());
        let last = next.checked_sub(1).and_then(|last| states.get(last)).ok_or(StepGap::When)?;
        if states.get(next).is_none_or(|next| next.known_until >= looked) {
            return Ok(last.there.clone());
        }
        // What is large is not compared before the next call.
        let is_large = |found: &VersionEntry| {
            found.kind == Kind::File && self.source.read(path, found).is_none()
        };
        Err(if last.there.as_ref().is_some_and(is_large) { StepGap::Bytes } else { StepGap::When })
    }

    /// Something at a path as a tree has it. Bytes that no checkpoint holds are put into `contents`.
    ///
    /// # Errors
    ///
    /// Fails if they are not held at all.
    pub(super) fn entry(
        &self,
        path: &RelPath,
        there: &Version,
        contents: &mut BTreeMap<ContentId, Vec<u8>>,
    ) -> Result<Option<Entry>, StepGap> {
        let Some(found) = there else { return Ok(None) };
        let kind = found.kind;
        let usual = if kind == Kind::Directory { 0o755 } else { 0o644 };
        let permissions = found.permissions.unwrap_or(usual);
        let content = match &found.bytes {
            _ if !kind.has_content() => None,
            VersionBytes::Held(content) => *content,
            _ => {
                let bytes = self.source.read(path, found).ok_or(StepGap::Bytes)?;
                let id = ContentId::new(&Sha256::digest(&bytes));
                contents.insert(id, bytes);
                Some(Content { id, place: Storage::Files })
            }
        };
        Ok(Some(Entry { kind, permissions, content, device: found.device }))
    }
}

/// The number of the step before which each checkpoint of a row was taken.
///
/// # Errors
///
/// Fails if the store cannot be read.
pub(crate) fn step_numbers(
    project: &Project,
    rows: &[TurnRow],
) -> Result<BTreeMap<CheckpointId, usize>> {
    let history = FileHistory::of(project)?;
    let mut numbers = BTreeMap::new();
    for (at, row) in rows.iter().enumerate() {
        for step in history.steps_of(at + 1, row).iter().filter(|step| step.is_exact) {
            numbers.entry(step.of).or_insert(step.number);
        }
    }
    Ok(numbers)
}
