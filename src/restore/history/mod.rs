//! The states of a file since the oldest checkpoint, and who led from each to the next.
//!
//! A change has a writer only if one alone can have made it: a call, if the state right before it and
//! right after it is known and nothing else ran meanwhile; the user, if no call ran between two known
//! states. In all other cases the candidates are named.

mod changed;
mod deeds;
mod events;
mod lines;
mod renames;
mod series;
mod step_state;
mod steps;
mod walk;

use std::{
    cell::{OnceCell, RefCell},
    collections::{BTreeSet, HashMap},
    rc::Rc,
};

use chrono::{DateTime, Utc};

use super::version::VersionSource;
use crate::{
    attribution::{self, LoggedCall, PathSide, SessionUses, TurnLog},
    error::{Error, Result},
    ledger::{self, Use},
    model::{
        BeforeShell, By, Checkpoint, CheckpointId, Dedupe, Reason, RelPath, Settings, TurnKey,
    },
    plan,
    project::{Project, TurnRow, rows},
};

pub(crate) use deeds::{Deed, PathDeeds};
pub(crate) use lines::BlamedLine;
pub(crate) use series::{
    FileChange, GitFile, LINK_MODE, LeftOfSeries, SeriesFiles, SeriesPart, TurnSeries,
};
pub(crate) use step_state::{StepGap, StepState};
pub(crate) use steps::{BetweenSteps, StepChanges, StepVersion, TurnStep, TurnSteps, step_numbers};
use walk::{PastState, StateOrigin};

/// Who wrote something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum LineWriter {
    /// It was there at the oldest checkpoint that tells.
    Before,
    /// A turn, by its place in [`FileHistory::turns`].
    Turn(usize),
    /// No call of an agent: the user, or a program of theirs.
    User,
    /// It cannot be told.
    Unknown(WriterCandidates),
}

/// Who may have written something.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct WriterCandidates {
    /// Turns, by their places in [`FileHistory::turns`].
    pub(crate) turns: BTreeSet<usize>,
    /// Whether the user may have.
    pub(crate) user: bool,
    /// Whether it may have been there from the beginning, or anything else.
    pub(crate) any: bool,
    /// Whether it was brought from a fork, in which its writer is not looked for.
    pub(crate) brought: bool,
}

impl WriterCandidates {
    /// The only one of them, if there is one.
    fn writer(self) -> LineWriter {
        match (self.turns.iter().next(), self.turns.len(), self.user, self.any) {
            (Some(turn), 1, false, false) => LineWriter::Turn(*turn),
            (None, 0, true, false) => LineWriter::User,
            _ => LineWriter::Unknown(self),
        }
    }

    fn of(writer: &LineWriter) -> Self {
        match writer {
            LineWriter::Before => Self { any: true, ..Self::default() },
            LineWriter::Turn(turn) => Self { turns: BTreeSet::from([*turn]), ..Self::default() },
            LineWriter::User => Self { user: true, ..Self::default() },
            LineWriter::Unknown(candidates) => candidates.clone(),
        }
    }
}

impl LineWriter {
    /// One of both.
    fn or(&self, other: &Self) -> Self {
        if self == other {
            return self.clone();
        }
        let (mut all, other) = (WriterCandidates::of(self), WriterCandidates::of(other));
        all.turns.extend(other.turns);
        all.user |= other.user;
        all.any |= other.any;
        all.brought |= other.brought;
        Self::Unknown(all)
    }
}

/// What became of a file from which lines may have come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Leaving {
    /// It is gone.
    Gone,
    /// It is gone, or it is another one.
    Changed,
}

/// A turn as a history tells it.
#[derive(Clone, Debug)]
pub(crate) struct HistoryTurn {
    /// Its identity; `None` if no more than one call of it is known.
    key: Option<TurnKey>,
    /// Its number in the list; `None` if it is not there any more.
    pub(crate) number: Option<usize>,
    /// Whether an undo took it back, and no redo since.
    pub(crate) is_undone: bool,
    /// The checkpoint before its first call that is known.
    pub(crate) checkpoint: CheckpointId,
    /// When that call began.
    pub(crate) at: DateTime<Utc>,
    /// The agent, and what the user asked for.
    pub(crate) by: Option<By>,
}

/// The places of turns among [`FileHistory::turns`], by identity or, without one, by checkpoint.
type KnownTurns = HashMap<(Option<TurnKey>, Option<CheckpointId>), usize>;

/// A call that can have changed a file.
struct PastCall {
    turn: usize,
    /// Where it began.
    began: usize,
    /// Where it was over.
    over: usize,
    /// Until where something that it started may have gone on in the background.
    background_until: Option<usize>,
    /// Its place among the calls of the log; `None` for one that the log does not have.
    caller: Option<usize>,
    /// The checkpoint that covers it.
    of: CheckpointId,
}

/// What is known of a project's files since the oldest checkpoint, or of those outside it that calls named.
pub(crate) struct FileHistory<'a> {
    project: &'a Project,
    side: PathSide,
    log: TurnLog,
    source: VersionSource<'a>,
    /// Oldest first.
    checkpoints: Vec<Checkpoint>,
    /// The place of each among the checkpoints.
    places: HashMap<CheckpointId, usize>,
    /// Where each checkpoint stands in the log.
    orders: Vec<usize>,
    /// Where in the log each had been read, with its place; once asked for.
    read_orders: OnceCell<Vec<(usize, usize)>>,
    /// The turns that ran since, as far as their calls are known.
    pub(crate) turns: Vec<HistoryTurn>,
    calls: Vec<PastCall>,
    /// The states that paths went through, for each path that was asked for.
    states: RefCell<HashMap<RelPath, Rc<Vec<PastState>>>>,
    /// The calls of each turn of the list, by its number, in the order in which they began; once asked for.
    calls_by_turn: OnceCell<HashMap<usize, Vec<usize>>>,
    /// The paths that each call of the log was seen to leave something at, once asked for.
    paths_by_caller: OnceCell<HashMap<usize, BTreeSet<RelPath>>>,
    /// The same of the files outside, once it was asked for. `None` inside if it cannot be read.
    outside: OnceCell<Option<Box<Self>>>,
}

impl<'a> FileHistory<'a> {
    /// Reads what is known of the files of a project.
    ///
    /// # Errors
    ///
    /// Fails if the store cannot be read, or has no checkpoint.
    pub(crate) fn of(project: &'a Project) -> Result<Self> {
        Self::of_side(project, PathSide::Root)
    }

    /// What is known of the files outside the project. Their paths begin at the top of the file system.
    fn outside(&self) -> Option<&Self> {
        let outside = || Self::of_side(self.project, PathSide::Outside).ok().map(Box::new);
        self.outside.get_or_init(outside).as_deref()
    }

    /// Reads the history since one of `all` checkpoints, which are given newest first.
    pub(crate) fn since(
        project: &'a Project,
        all: &[Checkpoint],
        uses: &[Use],
        since: &Checkpoint,
        side: PathSide,
    ) -> Self {
        let rows = rows(all.to_vec(), uses);
        let oldest_first = all.iter().rev();
        let checkpoints = oldest_first.filter(|one| one.sequence >= since.sequence).cloned();
        let lines = attribution::read_since(&project.place(), since.id);
        let log = TurnLog::since(since, &lines, side);
        let mut history = Self::told_by(project, side, checkpoints.collect(), log);
        history.add_calls(uses);
        history.number(&rows);
        history.log.is_lost |= plan::begin_of_unbroken(&history.checkpoints) > 0;
        history
    }

    /// Reads the history since a checkpoint.
    ///
    /// # Errors
    ///
    /// Fails if the checkpoints cannot be listed.
    pub(crate) fn since_checkpoint(
        project: &'a Project,
        since: &Checkpoint,
        side: PathSide,
    ) -> Result<Self> {
        let all = project.store.list()?;
        let uses = ledger::uses(&project.state);
        Ok(Self::since(project, &all, &uses, since, side))
    }

    fn of_side(project: &'a Project, side: PathSide) -> Result<Self> {
        let all = project.store.list()?;
        let uses = ledger::uses(&project.state);
        let rows = rows(all.clone(), &uses);
        Self::of_all(project, side, all, &uses, &rows)
    }

    /// Reads the history of `all` checkpoints, which are given newest first, with their uses and rows.
    ///
    /// # Errors
    ///
    /// Fails if there is no checkpoint.
    fn of_all(
        project: &'a Project,
        side: PathSide,
        mut all: Vec<Checkpoint>,
        uses: &[Use],
        rows: &[TurnRow],
    ) -> Result<Self> {
        all.reverse();
        // Before a gap there are states, but no history.
        all.drain(..plan::begin_of_unbroken(&all));
        let Some(first) = all.first() else {
            return Err(Error::other(
                "no checkpoints yet",
                "an agent's hook takes them, and `beforehand create`",
            ));
        };
        let lines = attribution::read(&project.place());
        let log = TurnLog::since(first, &lines, side);
        let mut history = Self::told_by(project, side, all, log);
        history.add_calls(uses);
        history.number(rows);
        Ok(history)
    }

    /// The history in checkpoints, oldest first, and in the log since then, without turns.
    fn told_by(
        project: &'a Project,
        side: PathSide,
        checkpoints: Vec<Checkpoint>,
        log: TurnLog,
    ) -> Self {
        let ids = checkpoints.iter().map(|one| one.id).collect();
        let source = VersionSource::new(project, side, ids);
        let places = checkpoints.iter().enumerate().map(|(at, one)| (one.id, at)).collect();
        let orders = checkpoints.iter().map(|one| log.position_of(one)).collect();
        Self {
            project,
            side,
            log,
            source,
            checkpoints,
            places,
            orders,
            read_orders: OnceCell::new(),
            turns: Vec::new(),
            calls: Vec::new(),
            states: RefCell::default(),
            calls_by_turn: OnceCell::new(),
            paths_by_caller: OnceCell::new(),
            outside: OnceCell::new(),
        }
    }

    /// When the oldest checkpoint was taken.
    pub(crate) fn begins(&self) -> DateTime<Utc> {
        self.checkpoints.first().map_or(DateTime::UNIX_EPOCH, |first| first.taken_at)
    }

    /// Whether a call is examined although its turn has a checkpoint already.
    fn looks_again(&self) -> bool {
        self.project.settings.dedupe != Dedupe::Strict
    }

    /// Whether every call that can change files is noted, as far as the settings tell.
    fn sees_all(&self) -> bool {
        let Settings { enabled, triggers, .. } = &self.project.settings;
        *enabled
            && triggers.before_write
            && triggers.before_edit
            && triggers.before_shell == BeforeShell::Mutating
    }

    /// Whether a part of the log cannot be read, and so nothing that was changed has a writer.
    pub(crate) fn is_lost(&self) -> bool {
        self.log.is_lost
    }

    /// Finds the turn of every call, and when each was over.
    fn add_calls(&mut self, uses: &[Use]) {
        let logged_calls = std::mem::take(&mut self.log.logged_calls);
        let uses = SessionUses::of(uses);
        let mut known = HashMap::new();
        let turns: Vec<usize> =
            logged_calls.iter().map(|caller| self.turn_of(caller, &uses, &mut known)).collect();
        for (at, caller) in logged_calls.iter().enumerate() {
            let turn = turns[at];
            let next = || {
                let is_next = |later: &(usize, &LoggedCall)| {
                    let is_other = turns[later.0] != turn && self.turns[turn].key.is_some();
                    later.1.by == caller.by && later.1.began > caller.began && is_other
                };
                logged_calls.iter().enumerate().find(is_next).map(|(_, next)| next.began)
            };
            let over = caller.done.or(caller.ended).or(caller.cut_off).or_else(next);
            let over = over.unwrap_or_else(|| self.outlived(caller.at));
            self.calls.push(PastCall {
                turn,
                began: caller.began,
                over,
                background_until: caller.background_until,
                caller: Some(at),
                of: caller.of,
            });
        }
        self.log.logged_calls = logged_calls;
        self.add_unlogged(&mut known);
    }

    /// Where a call is over at last that was never seen to end: longer than that none runs.
    fn outlived(&self, began: i64) -> usize {
        const RUNS_MAX_NS: i64 = 24 * 60 * 60 * 1_000_000_000;
        match self.log.place_after(began.saturating_add(RUNS_MAX_NS)) {
            place if place < self.log.line_count() => place,
            _ => usize::MAX,
        }
    }

    /// Adds calls that have a checkpoint and that the log does not have.
    fn add_unlogged(&mut self, known: &mut KnownTurns) {
        let logged: BTreeSet<CheckpointId> = self.log.logged_calls.iter().map(|it| it.of).collect();
        let checkpoints = std::mem::take(&mut self.checkpoints);
        let is_unlogged =
            |one: &&Checkpoint| one.cause.reason == Reason::Call && !logged.contains(&one.id);
        for one in checkpoints.iter().filter(is_unlogged) {
            let by = one.cause.by.as_ref();
            let turn = self.turn(known, one.turn_key(), one.id, one.taken_at, by);
            let began = self.log.position_of(one);
            let name =
                one.cause.by.as_ref().map(|by| attribution::session_name(by.agent, &by.session));
            let is_next = |ran: &&PastCall| {
                let caller = ran.caller.map(|caller| &self.log.logged_calls[caller].by);
                ran.began >= began && ran.turn != turn && caller == name.as_ref()
            };
            let over = self.calls.iter().find(is_next).map_or(usize::MAX, |next| next.began);
            self.calls.push(PastCall {
                turn,
                began,
                over,
                background_until: None,
                caller: None,
                of: one.id,
            });
        }
        self.checkpoints = checkpoints;
    }

    /// The turn of a call: the last one of its session that came to use a checkpoint before it.
    fn turn_of(
        &mut self,
        caller: &LoggedCall,
        uses: &SessionUses<'_>,
        known: &mut KnownTurns,
    ) -> usize {
        let last = caller.last_use(uses);
        let key = last.and_then(|used| used.by.turn_key());
        let at = DateTime::from_timestamp_nanos(caller.at);
        let of = self.checkpoint(caller.of);
        let is_its = |by: &&By| attribution::session_name(by.agent, &by.session) == caller.by;
        let held = of.and_then(|one| one.cause.by.as_ref()).filter(is_its).cloned();
        self.turn(known, key, caller.of, at, last.map(|used| &used.by).or(held.as_ref()))
    }

    fn turn(
        &mut self,
        known: &mut KnownTurns,
        key: Option<TurnKey>,
        checkpoint: CheckpointId,
        at: DateTime<Utc>,
        by: Option<&By>,
    ) -> usize {
        // Without an identity it is the only call of its checkpoint that is known.
        let name = (key.clone(), key.is_none().then_some(checkpoint));
        if let Some(known) = known.get(&name) {
            return *known;
        }
        known.insert(name, self.turns.len());
        self.turns.push(HistoryTurn {
            key,
            number: None,
            is_undone: false,
            checkpoint,
            at,
            by: by.cloned(),
        });
        self.turns.len() - 1
    }

    /// Gives each turn its number in the list.
    fn number(&mut self, rows: &[TurnRow]) {
        let keys: HashMap<TurnKey, usize> = rows
            .iter()
            .enumerate()
            .rev()
            .filter_map(|(at, row)| Some((row.checkpoints.first()?.turn_key()?, at + 1)))
            .collect();
        for turn in &mut self.turns {
            let is_its =
                |row: &TurnRow| row.checkpoints.iter().any(|step| step.id == turn.checkpoint);
            turn.number = match &turn.key {
                Some(key) => keys.get(key).copied(),
                None => rows.iter().position(is_its).map(|at| at + 1),
            };
            let row = turn.number.and_then(|number| rows.get(number - 1));
            turn.is_undone = row.is_some_and(|row| row.is_undone);
        }
    }
}
