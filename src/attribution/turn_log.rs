//! What the calls of one turn changed at each path, and what else was seen there. Pure: reads only the
//! log.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::{CurrentState, LogEvent, LogLine, PathSide, PathState, look::PATHS_MAX};
use crate::model::{Checkpoint, CheckpointId, RelPath};

/// Which calls of a session are those of one turn.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TurnCalls {
    /// The checkpoints that cover them. A turn before or after it may have found one of them as it was.
    pub checkpoints: BTreeSet<CheckpointId>,
    /// When the turns of the session came to use a checkpoint, in nanoseconds since 1970, oldest first, and
    /// whether it was this one.
    pub uses: Vec<(i64, bool)>,
}

impl TurnCalls {
    /// Whether a call that began at a time, covered by a checkpoint, is one of them.
    fn has(&self, of: CheckpointId, at: i64) -> bool {
        let last = self.uses.iter().rev().find(|(used, _)| *used <= at);
        self.checkpoints.contains(&of) && last.is_none_or(|(_, is_its)| *is_its)
    }
}

/// What the log knows of a turn and of the time since.
#[derive(Debug, Default)]
pub struct TurnLog {
    /// What was seen at each path, oldest first.
    pub sights: BTreeMap<RelPath, Vec<Sight>>,
    /// The calls of the turn, oldest first.
    pub calls: Vec<LoggedCall>,
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
    /// Where what each restore put back is noted, by its before-restore checkpoint.
    restores: HashMap<CheckpointId, usize>,
    /// The ends of commands of which not all is noted.
    cut_short: BTreeSet<usize>,
}

/// A call of another turn or session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// The session, by its name in the log.
    pub by: String,
    /// The checkpoint that covers the call.
    pub of: CheckpointId,
    /// When it began, in nanoseconds since 1970.
    pub at: i64,
    /// What it could change; `None` for anything.
    pub paths: Option<Vec<RelPath>>,
    /// The first place of what was noted when it began: what was there before it comes first.
    pub looked: usize,
    /// The place of its beginning.
    pub began: usize,
    /// When all it left had been noted; `None` if that never was.
    pub done: Option<usize>,
    /// When the agent said that it was done.
    pub ended: Option<usize>,
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
    pub there: AtPath,
    /// Who left it.
    pub by: Doer,
    /// Whether a command of the turn and one of another session ran at once, and it may be of either.
    pub is_shared: bool,
}

/// What was at a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AtPath {
    /// Nothing.
    Nothing,
    /// Just this.
    This(PathState),
    /// A file with bytes of this SHA-256: its permissions were not noted.
    File(String),
    /// A directory that an edit had to make: its permissions were not looked at.
    Directory,
}

impl AtPath {
    pub(super) fn of(state: Option<&PathState>) -> Self {
        state.map_or(Self::Nothing, |state| Self::This(state.clone()))
    }

    pub(super) fn is(&self, here: &dyn CurrentState) -> bool {
        match self {
            Self::Nothing => false,
            Self::This(state) => here.is(state),
            // Its permissions are a part of what it is.
            Self::File(_) => false,
            Self::Directory => here.is_directory(),
        }
    }

    pub(super) fn is_any(&self) -> bool {
        !matches!(self, Self::Nothing)
    }
}

/// Who was seen to leave something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doer {
    /// A call of the turn.
    Turn,
    /// A call of another turn or session, by its place in [`TurnLog::callers`], if that is known.
    Call(Option<usize>),
    /// It was there before a call.
    Other,
    /// A restore put it back.
    Restore,
}

/// A call of the turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoggedCall {
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
pub struct SeenCheckpoint {
    /// Its place: before what was seen there.
    pub order: usize,
    /// Which one.
    pub id: CheckpointId,
    /// Whether it was taken right before a call of the turn's session.
    pub is_of_session: bool,
}

/// A command that was looked at when it was done.
struct FinishedCommand {
    by: String,
    is_turns: bool,
    began: usize,
    done: usize,
}

/// A call that began and was not seen to end, as far as the log has been read.
struct RunningCall {
    began: usize,
    is_command: bool,
    of: Option<CheckpointId>,
    /// Its place among the calls of the turn, if it is one.
    call: Option<usize>,
    doer: Doer,
    makes: Vec<RelPath>,
}

impl Caller {
    /// Whether it can have changed what is at a path.
    pub fn reaches(&self, path: &RelPath) -> bool {
        reaches(self.paths.as_deref(), path)
    }
}

/// Whether a call that can change `paths`, or anything, can have changed what is at `path`.
fn reaches(paths: Option<&[RelPath]>, path: &RelPath) -> bool {
    paths.is_none_or(|paths| {
        paths.iter().any(|named| path.is_within(named) || named.is_within(path))
    })
}

impl LoggedCall {
    /// Whether it can have changed what is at a path.
    pub fn reaches(&self, path: &RelPath) -> bool {
        reaches(self.paths.as_deref(), path)
    }

    /// Whether it ran when a look was taken.
    pub fn is_during(&self, look: &SeenCheckpoint) -> bool {
        self.began < look.order && self.done.is_some_and(|done| look.order <= done)
    }
}

impl TurnLog {
    /// Reads the log for a `turn` of the session `name`, whose first checkpoint is `first`.
    pub fn of(
        first: &Checkpoint,
        turn: &TurnCalls,
        name: &str,
        lines: &[LogLine],
        side: PathSide,
    ) -> Self {
        let since = first.taken_at.timestamp_nanos_opt().unwrap_or(0);
        let is_its =
            |of: &str| CheckpointId::parse(of).is_some_and(|of| turn.checkpoints.contains(&of));
        let is_since = |line: &LogLine| match &line.what {
            LogEvent::Began { of, .. } if is_its(of) => true,
            _ => line.at >= since,
        };
        let begin = lines.iter().position(is_since).unwrap_or(lines.len());
        let lines_since = &lines[begin..];
        let is_lost = lines_since
            .iter()
            .any(|line| matches!(line.what, LogEvent::Lost { until } if until >= since));
        let tells = lines.iter().any(|line| tells(line, name));
        Self { is_lost, ..Self::of_lines(lines_since, Some((turn, name, tells)), side) }
    }

    /// Reads the whole log for all turns alike: every call is one of [`TurnLog::callers`], and a merge that
    /// a restore left is seen as well. The oldest checkpoint is `first`.
    pub fn of_all(first: &Checkpoint, lines: &[LogLine], side: PathSide) -> Self {
        let since = first.taken_at.timestamp_nanos_opt().unwrap_or(0);
        let is_lost =
            |line: &LogLine| matches!(line.what, LogEvent::Lost { until } if until >= since);
        let is_lost = lines.iter().any(is_lost);
        Self { is_lost, ..Self::of_lines(lines, None, side) }
    }

    /// Reads some lines for a turn, with the name of its session and whether that says when a call is
    /// done.
    fn of_lines(
        lines_since: &[LogLine],
        turn: Option<(&TurnCalls, &str, bool)>,
        side: PathSide,
    ) -> Self {
        let mut log = Self { tells: turn.is_some_and(|(_, _, tells)| tells), ..Self::default() };
        log.times = lines_since.iter().map(|line| line.at).collect();
        let mut running: HashMap<(&str, &str), RunningCall> = HashMap::new();
        // The last call of each session: that one began may not have been noted.
        let mut last: HashMap<&str, Doer> = HashMap::new();
        let (mut commands, mut seen_after) = (Vec::new(), Vec::new());
        for (order, line) in lines_since.iter().enumerate() {
            let by = line.by.as_str();
            if let LogEvent::Back { held: Some(held), .. } | LogEvent::Merged { held, .. } =
                &line.what
                && let Some(held) = CheckpointId::parse(held)
            {
                log.restores.entry(held).or_insert(order);
            }
            match &line.what {
                LogEvent::Began { call, .. } => {
                    let before = running.get(&(by, call.as_str()));
                    if let Some(call_running) =
                        log.call_begins(&lines_since[..=order], turn, side, before)
                    {
                        last.insert(by, call_running.doer);
                        running.insert((by, call), call_running);
                    }
                }
                LogEvent::Left { path, state } => {
                    let caller = caller_of(&lines_since[order..]);
                    let caller = caller.and_then(|call| running.get(&(by, call)));
                    let doer = match caller {
                        _ if by.is_empty() => Doer::Other,
                        Some(running) => running.doer,
                        None => last.get(by).copied().unwrap_or(Doer::Call(None)),
                    };
                    // Of an agent that says no ends, what was there before a call may be its own.
                    if by.is_empty() && turn.is_some() && !log.tells {
                        continue;
                    }
                    let Some(path) = side.path(path) else { continue };
                    let makes = caller.filter(|_| state.is_some()).map(|it| &it.makes[..]);
                    for dir in makes.unwrap_or_default().iter().filter(|dir| path.is_within(dir)) {
                        log.see(
                            dir.clone(),
                            Sight { order, there: AtPath::Directory, by: doer, is_shared: false },
                        );
                    }
                    let there = state.clone().map_or(AtPath::Nothing, AtPath::This);
                    if caller.is_some_and(|caller| caller.is_command) {
                        seen_after.push((path.clone(), order, by, doer == Doer::Turn));
                    }
                    log.see(path, Sight { order, there, by: doer, is_shared: false });
                }
                LogEvent::Back { path, state, .. } => {
                    let Some(path) = side.path(path) else { continue };
                    let there = state.clone().map_or(AtPath::Nothing, AtPath::This);
                    log.see(path, Sight { order, there, by: Doer::Restore, is_shared: false });
                }
                LogEvent::Merged { path, sha, .. } if turn.is_none() => {
                    let Some(path) = side.path(path) else { continue };
                    let there = AtPath::File(sha.clone());
                    log.see(path, Sight { order, there, by: Doer::Restore, is_shared: false });
                }
                LogEvent::Ended { call } => {
                    if let Some(Doer::Call(Some(caller))) =
                        running.get(&(by, call.as_str())).map(|it| it.doer)
                    {
                        log.callers[caller].ended = Some(order);
                    }
                }
                LogEvent::Done { call } => {
                    let done = running.remove(&(by, call.as_str()));
                    let Some(RunningCall { began, is_command, call, doer, .. }) = done else {
                        continue;
                    };
                    if let Doer::Call(Some(caller)) = doer {
                        log.callers[caller].done = Some(order);
                    }
                    if is_command && is_cut_short(&lines_since[..order]) {
                        log.cut_short.insert(order);
                    }
                    if is_command {
                        let (by, is_turns) = (by.to_owned(), call.is_some());
                        commands.push(FinishedCommand { by, is_turns, began, done: order });
                    }
                    if let Some(at) = call {
                        log.calls[at].done = Some(order);
                    }
                }
                LogEvent::Head { .. }
                | LogEvent::Void { .. }
                | LogEvent::Lost { .. }
                | LogEvent::Merged { .. } => (),
            }
        }
        log.share_all(&commands, seen_after);
        log
    }

    /// Notes the call of which the last of some lines says that it begins. One of that name may be running
    /// `before`: then it is the same, noted again.
    fn call_begins(
        &mut self,
        lines: &[LogLine],
        turn: Option<(&TurnCalls, &str, bool)>,
        side: PathSide,
        before: Option<&RunningCall>,
    ) -> Option<RunningCall> {
        let (line, earlier) = lines.split_last()?;
        let LogEvent::Began { of, paths, makes, absent, .. } = &line.what else { return None };
        let (order, of) = (earlier.len(), CheckpointId::parse(of));
        let of_side = |texts: &[String]| -> Vec<RelPath> {
            texts.iter().filter_map(|path| side.path(path)).collect()
        };
        let is_session = turn.is_some_and(|(_, name, _)| line.by == name);
        let is_turns =
            is_session && turn.zip(of).is_some_and(|((turn, ..), of)| turn.has(of, line.at));
        let named = paths.as_deref().map(of_side);
        let again = before.filter(|it| it.of == of);
        let call_at = again.and_then(|it| it.call);
        let call = self.begins(order, of, named.clone(), (is_session, is_turns), call_at);
        let doer = match (call, again.map(|it| it.doer)) {
            (Some(_), _) => Doer::Turn,
            (None, Some(Doer::Call(Some(caller)))) => {
                widen(&mut self.callers[caller].paths, named);
                Doer::Call(Some(caller))
            }
            (None, _) => Doer::Call(of.map(|of| self.add_caller(lines, of, named))),
        };
        if turn.is_none() {
            for path in of_side(absent) {
                let there = AtPath::Nothing;
                self.see(path, Sight { order, there, by: Doer::Other, is_shared: false });
            }
        }
        let (is_command, makes) = (paths.is_none(), of_side(makes));
        Some(RunningCall { began: order, is_command, of, call, doer, makes })
    }

    /// Adds the call of which the last of some lines says that it begins. Returns its place.
    fn add_caller(
        &mut self,
        lines: &[LogLine],
        of: CheckpointId,
        paths: Option<Vec<RelPath>>,
    ) -> usize {
        let began = lines.len() - 1;
        let LogLine { by, at, .. } = &lines[began];
        let looked = looked(&lines[..began], *at);
        let (by, at, done, ended) = (by.clone(), *at, None, None);
        self.callers.push(Caller { by, of, at, paths, looked, began, done, ended });
        self.callers.len() - 1
    }

    /// Finds what was seen while commands of the turn and of another session ran at once.
    fn share_all(
        &mut self,
        commands: &[FinishedCommand],
        seen_after: Vec<(RelPath, usize, &str, bool)>,
    ) {
        for (path, order, by, is_turns) in seen_after {
            let is_at_once = |other: &&FinishedCommand| {
                other.by != by && other.began < order && order < other.done
            };
            let mut others = commands.iter().filter(is_at_once);
            if others.any(|other| is_turns || other.is_turns) {
                self.share(&path, order);
            }
        }
    }

    /// What was seen at a path may be of the turn, or of another session.
    fn share(&mut self, path: &RelPath, order: usize) {
        let sights = self.sights.get_mut(path).map(Vec::as_mut_slice).unwrap_or_default();
        for sight in sights.iter_mut().filter(|sight| sight.order == order) {
            sight.is_shared = true;
        }
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
            Some(at) => widen(&mut self.calls[at].paths, paths),
            None if is_turns => self.calls.push(LoggedCall { of, began: order, done: None, paths }),
            None => return None,
        }
        again.or(Some(self.calls.len() - 1))
    }

    fn see(&mut self, path: RelPath, sight: Sight) {
        self.sights.entry(path).or_default().push(sight);
    }

    /// Whether the command whose end stands at a place may have left more than was noted, or something
    /// other than what was there before.
    pub fn is_cut_short(&self, done: usize) -> bool {
        self.cut_short.contains(&done)
    }

    /// How many lines were read.
    pub fn line_count(&self) -> usize {
        self.times.len()
    }

    /// The place of the first line that was noted after a time, in nanoseconds since 1970.
    pub fn place_after(&self, at: i64) -> usize {
        self.times.iter().rposition(|time| *time <= at).map_or(0, |last| last + 1)
    }

    /// Where a checkpoint stands among what was seen: right before the first call that it covers, or what
    /// the restore that made it put back, or else by its time.
    pub fn look(&self, checkpoint: &Checkpoint) -> SeenCheckpoint {
        let id = checkpoint.id;
        if let Some(first) = self.first_calls.get(&id) {
            return SeenCheckpoint { order: first.order, id, is_of_session: first.is_of_session };
        }
        let at = checkpoint.taken_at.timestamp_nanos_opt().unwrap_or(i64::MAX);
        let order = self.restores.get(&id).copied().unwrap_or_else(|| self.place_after(at));
        SeenCheckpoint { order, id, is_of_session: false }
    }

    /// Whether a checkpoint stands right before a call, where all of the root was looked at.
    pub fn is_before_call(&self, checkpoint: &Checkpoint) -> bool {
        self.first_calls.contains_key(&checkpoint.id)
    }

    /// Where a checkpoint was taken, by its time: that may be long before the first call that it covers.
    pub fn taken(&self, checkpoint: &Checkpoint) -> usize {
        let at = checkpoint.taken_at.timestamp_nanos_opt().unwrap_or(i64::MAX);
        self.place_after(at).min(self.look(checkpoint).order)
    }

    /// The paths that a call of the turn was seen to leave something at, or nothing.
    pub fn touched(&self) -> impl Iterator<Item = &RelPath> {
        let is_touched = |sights: &[Sight]| sights.iter().any(|sight| sight.by == Doer::Turn);
        self.sights.iter().filter(move |(_, sights)| is_touched(sights)).map(|(path, _)| path)
    }

    /// The calls of which it is not known what they left.
    pub fn unseen(&self) -> impl Iterator<Item = &LoggedCall> {
        self.calls.iter().filter(|call| call.done.is_none())
    }
}

/// A call can change these as well.
fn widen(paths: &mut Option<Vec<RelPath>>, named: Option<Vec<RelPath>>) {
    *paths = match (paths.take(), named) {
        (Some(mut paths), Some(more)) => {
            paths.extend(more);
            Some(paths)
        }
        (_, _) => None,
    };
}

/// Whether the look that ends with some lines noted less than all that its call left, or was not
/// made from right before that call: it was made for an earlier one as well.
fn is_cut_short(lines: &[LogLine]) -> bool {
    let Some(last) = lines.last() else { return false };
    let is_its = |line: &&LogLine| line.by == last.by && line.at == last.at;
    let looked = || lines.iter().rev().take_while(is_its);
    let left = looked().filter(|line| matches!(line.what, LogEvent::Left { .. }));
    left.count() >= PATHS_MAX || looked().any(|line| matches!(line.what, LogEvent::Done { .. }))
}

/// Where what was there before a call begins in the lines before it: it is noted together with it.
fn looked(lines: &[LogLine], at: i64) -> usize {
    let is_its = |line: &&LogLine| {
        line.by.is_empty() && line.at == at && matches!(line.what, LogEvent::Left { .. })
    };
    lines.len() - lines.iter().rev().take_while(is_its).count()
}

/// Whether a line shows that the agent of a session says when a call is done.
fn tells(line: &LogLine, name: &str) -> bool {
    let tells = matches!(line.what, LogEvent::Ended { .. } | LogEvent::Began { tells: true, .. });
    tells && line.by == name
}

/// Which call left what the first of some lines says: it is noted together with its end.
fn caller_of(lines: &[LogLine]) -> Option<&str> {
    let first = lines.first()?;
    let together = lines.iter().take_while(|line| line.by == first.by && line.at == first.at);
    together.into_iter().find_map(|line| match &line.what {
        LogEvent::Done { call } => Some(call.as_str()),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;

    use super::*;
    use crate::model::Cause;

    fn id(bits: u64) -> CheckpointId {
        CheckpointId::from_bits(bits)
    }

    fn checkpoint(bits: u64, at: i64) -> Checkpoint {
        Checkpoint {
            id: id(bits),
            sequence: bits,
            taken_at: DateTime::from_timestamp_nanos(at),
            cause: Cause::asked(None),
            top: None,
            files: 0,
            partial: false,
            skipped: Vec::new(),
            outside: Vec::new(),
            head: None,
            staged: None,
        }
    }

    fn line(at: i64, by: &str, what: LogEvent) -> LogLine {
        LogLine { at, by: by.to_owned(), what }
    }

    fn began(at: i64, by: &str, call: &str, of: u64) -> LogLine {
        let (of, call) = (id(of).to_string(), call.to_owned());
        let (makes, absent) = (vec!["d".to_owned()], Vec::new());
        line(
            at,
            by,
            LogEvent::Began {
                of,
                call,
                paths: None,
                names: Vec::new(),
                makes,
                absent,
                tells: true,
            },
        )
    }

    fn left(at: i64, by: &str, path: &str) -> LogLine {
        line(
            at,
            by,
            LogEvent::Left { path: path.to_owned(), state: Some(PathState::unread(0o644)) },
        )
    }

    fn done(at: i64, by: &str, call: &str) -> LogLine {
        line(at, by, LogEvent::Done { call: call.to_owned() })
    }

    fn doers(log: &TurnLog, path: &str) -> Vec<Doer> {
        let path = RelPath::from_bytes(path.as_bytes()).unwrap();
        log.sights.get(&path).into_iter().flatten().map(|sight| sight.by).collect()
    }

    #[test]
    fn what_a_call_left_is_its_turns_whatever_began_meanwhile() {
        let lines = [
            began(10, "me", "1", 1),
            began(20, "me", "2", 2),
            began(21, "you", "1", 3),
            left(30, "me", "d/a"),
            done(30, "me", "1"),
            left(31, "you", "d/a"),
            done(31, "you", "1"),
            left(40, "me", "d/a"),
            done(40, "me", "2"),
            left(50, "", "d/a"),
        ];
        let of = |turn: &[u64]| {
            let checkpoints = turn.iter().copied().map(id).collect();
            let turn = TurnCalls { checkpoints, uses: Vec::new() };
            TurnLog::of(&checkpoint(1, 5), &turn, "me", &lines, PathSide::Root)
        };
        let log = of(&[1]);
        let call = |at| Doer::Call(Some(at));
        assert_eq!(doers(&log, "d/a"), [Doer::Turn, call(1), call(0), Doer::Other]);
        assert_eq!(doers(&log, "d")[..1], [Doer::Turn], "it had to be made on the way");
        let of_callers: Vec<CheckpointId> = log.callers.iter().map(|caller| caller.of).collect();
        assert_eq!(of_callers, [2, 3].map(id));
        assert_eq!((log.calls.len(), log.unseen().count()), (1, 0));
        let look = log.look(&checkpoint(3, 25));
        assert_eq!((look.order, look.is_of_session), (2, false));
        assert!(log.calls[0].is_during(&look));
        assert_eq!(log.look(&checkpoint(9, 35)).order, 7, "no call says when: by its time");
        assert_eq!(of(&[1, 2]).calls.len(), 2);
    }

    #[test]
    fn what_two_commands_at_once_left_may_be_of_either() {
        let lines = [
            began(10, "me", "1", 1),
            began(20, "you", "1", 2),
            left(30, "me", "a"),
            done(30, "me", "1"),
            left(40, "you", "a"),
            done(40, "you", "1"),
        ];
        let turn = TurnCalls { checkpoints: BTreeSet::from([id(1)]), uses: Vec::new() };
        let log = TurnLog::of(&checkpoint(1, 5), &turn, "me", &lines, PathSide::Root);
        let shared: Vec<bool> = log.sights.values().flatten().map(|it| it.is_shared).collect();
        assert_eq!(shared, [true, false], "the second only saw it again");
    }

    #[test]
    fn a_call_that_never_ended_is_not_seen_and_one_whose_beginning_is_lost_is_the_last_turns() {
        let lines = [began(10, "me", "1", 1), left(30, "me", "a"), done(30, "me", "2")];
        let turn = TurnCalls { checkpoints: BTreeSet::from([id(1)]), uses: Vec::new() };
        let log = TurnLog::of(&checkpoint(1, 5), &turn, "me", &lines, PathSide::Root);
        assert_eq!(doers(&log, "a"), [Doer::Turn]);
        assert_eq!(log.unseen().count(), 1);
        let before = TurnCalls { uses: vec![(5, true), (10, false)], ..turn.clone() };
        let of_next = TurnLog::of(&checkpoint(1, 5), &before, "me", &lines, PathSide::Root);
        assert_eq!(doers(&of_next, "a"), [Doer::Call(Some(0))], "the next one used the same");
        let lost = line(20, "", LogEvent::Lost { until: 20 });
        let log = TurnLog::of(&checkpoint(1, 5), &turn, "me", &[lost], PathSide::Root);
        assert!(log.is_lost);
    }
}
