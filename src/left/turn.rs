//! What the calls of one turn left, path by path, and what was seen there besides. Read from the log
//! alone. Pure.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::{Line, Side, State, What};
use crate::model::{Checkpoint, CheckpointId, RelPath};

/// What the log knows of a turn and of the time since.
#[derive(Debug, Default)]
pub struct TurnLog {
    /// What was seen at each path, oldest first.
    pub sights: BTreeMap<RelPath, Vec<Sight>>,
    /// The calls of the turn, oldest first.
    pub calls: Vec<Call>,
    /// The calls of others: the name of the session in the log, and the checkpoint that covers it.
    pub callers: Vec<Caller>,
    /// Whether the agent says when a call is done.
    pub tells: bool,
    /// Whether something that was noted in that time cannot be read any more.
    pub is_lost: bool,
    /// Where the first call stands that each checkpoint covers.
    first_calls: HashMap<CheckpointId, First>,
    /// When each line was noted.
    times: Vec<i64>,
}

/// A call of another turn or session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// The session, by its name in the log.
    pub by: String,
    /// The checkpoint that covers the call.
    pub of: CheckpointId,
}

/// The first call that a checkpoint covers.
#[derive(Clone, Copy, Debug)]
struct First {
    order: usize,
    is_of_session: bool,
}

/// Something that was seen at a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sight {
    /// Its place among all that was seen.
    pub order: usize,
    /// What was there.
    pub there: There,
    /// Who left it.
    pub by: Doer,
}

/// What was at a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum There {
    /// Nothing.
    Nothing,
    /// Just this.
    This(State),
    /// A directory that an edit had to make: its permissions were not looked at.
    Directory,
}

/// Who was seen to leave something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doer {
    /// A call of the turn.
    Turn,
    /// A call of another turn or session, by its place in [`TurnLog::callers`], if that is known.
    Call(Option<usize>),
    /// It was there before a call, or a restore put it back.
    Other,
}

/// A call of the turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// The checkpoint right before it.
    pub of: CheckpointId,
    /// When it began, among all that was seen.
    pub began: usize,
    /// When all it left had been noted; `None` if that never was.
    pub done: Option<usize>,
    /// What it could change; `None` for anything.
    pub paths: Option<Vec<RelPath>>,
}

/// A checkpoint among what was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look {
    /// Its place: before what was seen there.
    pub order: usize,
    /// Which one.
    pub id: CheckpointId,
    /// Whether it was taken right before a call of the turn's session.
    pub is_of_session: bool,
}

/// A call that began and was not seen to end, as far as the log has been read.
struct Running {
    of: Option<CheckpointId>,
    /// Its place among the calls of the turn, if it is one.
    call: Option<usize>,
    makes: Vec<RelPath>,
}

impl Call {
    /// Whether it can have changed what is at a path.
    pub fn reaches(&self, path: &RelPath) -> bool {
        self.paths.as_ref().is_none_or(|paths| {
            paths.iter().any(|named| path.is_within(named) || named.is_within(path))
        })
    }

    /// Whether it ran when a look was taken.
    pub fn is_during(&self, look: &Look) -> bool {
        self.began < look.order && self.done.is_some_and(|done| look.order <= done)
    }
}

impl TurnLog {
    /// Reads the log for a turn of the session `name` with these `checkpoints`, of which the first
    /// is `first`.
    pub fn of(
        first: &Checkpoint,
        checkpoints: &BTreeSet<CheckpointId>,
        name: &str,
        lines: &[Line],
        side: Side,
    ) -> Self {
        let since = first.taken_at.timestamp_nanos_opt().unwrap_or(0);
        let is_its = |of: &str| CheckpointId::parse(of).is_some_and(|of| checkpoints.contains(&of));
        let is_since = |line: &Line| match &line.what {
            What::Began { of, .. } if is_its(of) => true,
            _ => line.at >= since,
        };
        let tells = |line: &Line| {
            let tells = matches!(line.what, What::Ended { .. } | What::Began { tells: true, .. });
            tells && line.by == name
        };
        let begin = lines.iter().position(is_since).unwrap_or(lines.len());
        let lines_since = &lines[begin..];
        let mut log = Self { tells: lines.iter().any(tells), ..Self::default() };
        log.is_lost = lines_since
            .iter()
            .any(|line| matches!(line.what, What::Lost { until } if until >= since));
        log.times = lines_since.iter().map(|line| line.at).collect();
        let mut running: HashMap<(&str, &str), Running> = HashMap::new();
        for (order, line) in lines_since.iter().enumerate() {
            let by = line.by.as_str();
            match &line.what {
                What::Began { of, call, paths, makes, .. } => {
                    let of = CheckpointId::parse(of);
                    let of_side = |texts: &[String]| -> Vec<RelPath> {
                        texts.iter().filter_map(|path| side.path(path)).collect()
                    };
                    let is_turns = by == name && of.is_some_and(|of| checkpoints.contains(&of));
                    let named = paths.as_deref().map(of_side);
                    let again = running.get(&(by, call.as_str())).filter(|it| it.of == of);
                    let again = again.and_then(|it| it.call);
                    let call_at = log.begins(order, of, named, (by == name, is_turns), again);
                    let makes = of_side(makes);
                    running.insert((by, call), Running { of, call: call_at, makes });
                }
                What::Left { path, state } => {
                    let caller = caller_of(&lines_since[order..]);
                    let caller = caller.and_then(|call| running.get(&(by, call)));
                    let doer = match caller {
                        _ if by.is_empty() => Doer::Other,
                        Some(running) if running.call.is_some() => Doer::Turn,
                        Some(running) => Doer::Call(log.caller(by, running.of)),
                        None => Doer::Call(None),
                    };
                    // Of an agent that says no ends, what was there before a call may be its own.
                    if by.is_empty() && !log.tells {
                        continue;
                    }
                    let Some(path) = side.path(path) else { continue };
                    let makes = caller.filter(|_| state.is_some()).map(|it| &it.makes[..]);
                    for dir in makes.unwrap_or_default().iter().filter(|dir| path.is_within(dir)) {
                        log.see(dir.clone(), Sight { order, there: There::Directory, by: doer });
                    }
                    let there = state.clone().map_or(There::Nothing, There::This);
                    log.see(path, Sight { order, there, by: doer });
                }
                What::Back { path, state, .. } => {
                    let Some(path) = side.path(path) else { continue };
                    let there = state.clone().map_or(There::Nothing, There::This);
                    log.see(path, Sight { order, there, by: Doer::Other });
                }
                What::Done { call } => {
                    let done = running.remove(&(by, call.as_str()));
                    if let Some(at) = done.and_then(|done| done.call) {
                        log.calls[at].done = Some(order);
                    }
                }
                What::Ended { .. }
                | What::Head { .. }
                | What::Void { .. }
                | What::Lost { .. }
                | What::Merged { .. } => (),
            }
        }
        log
    }

    /// Notes that a call begins. Returns its place among the calls of the turn, if it is one; `again` is
    /// that of one that was noted before.
    fn begins(
        &mut self,
        order: usize,
        of: Option<CheckpointId>,
        paths: Option<Vec<RelPath>>,
        (is_of_session, is_turns): (bool, bool),
        again: Option<usize>,
    ) -> Option<usize> {
        let of = of?;
        let first = self.first_calls.entry(of).or_insert(First { order, is_of_session: false });
        first.is_of_session |= is_of_session;
        match again {
            Some(at) => self.calls[at].widen(paths),
            None if is_turns => self.calls.push(Call { of, began: order, done: None, paths }),
            None => return None,
        }
        again.or(Some(self.calls.len() - 1))
    }

    fn caller(&mut self, by: &str, of: Option<CheckpointId>) -> Option<usize> {
        let caller = Caller { by: by.to_owned(), of: of? };
        if self.callers.last() != Some(&caller) {
            self.callers.push(caller);
        }
        Some(self.callers.len() - 1)
    }

    fn see(&mut self, path: RelPath, sight: Sight) {
        self.sights.entry(path).or_default().push(sight);
    }

    /// Where a checkpoint stands among what was seen: right before the first call that it covers, or
    /// else by its time.
    pub fn look(&self, checkpoint: &Checkpoint) -> Look {
        let id = checkpoint.id;
        if let Some(first) = self.first_calls.get(&id) {
            return Look { order: first.order, id, is_of_session: first.is_of_session };
        }
        let at = checkpoint.taken_at.timestamp_nanos_opt().unwrap_or(i64::MAX);
        let order = self.times.iter().rposition(|time| *time <= at).map_or(0, |last| last + 1);
        Look { order, id, is_of_session: false }
    }

    /// The paths that a call of the turn was seen to leave something at, or nothing.
    pub fn touched(&self) -> impl Iterator<Item = &RelPath> {
        let is_touched = |sights: &[Sight]| sights.iter().any(|sight| sight.by == Doer::Turn);
        self.sights.iter().filter(move |(_, sights)| is_touched(sights)).map(|(path, _)| path)
    }

    /// The calls of which it is not known what they left.
    pub fn unseen(&self) -> impl Iterator<Item = &Call> {
        self.calls.iter().filter(|call| call.done.is_none())
    }
}

impl Call {
    /// It can change these as well.
    fn widen(&mut self, named: Option<Vec<RelPath>>) {
        self.paths = match (self.paths.take(), named) {
            (Some(mut paths), Some(more)) => {
                paths.extend(more);
                Some(paths)
            }
            (_, _) => None,
        };
    }
}

/// Which call left what the first of some lines says: it is noted together with its end.
fn caller_of(lines: &[Line]) -> Option<&str> {
    let first = lines.first()?;
    let together = lines.iter().take_while(|line| line.by == first.by && line.at == first.at);
    together.into_iter().find_map(|line| match &line.what {
        What::Done { call } => Some(call.as_str()),
        _ => None,
    })
}
