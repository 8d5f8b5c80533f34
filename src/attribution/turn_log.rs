//! What was seen at each path, and which calls ran. Pure: reads only the log.

mod reader;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use chrono::{DateTime, Utc};

use self::reader::read;
use super::{CurrentState, LogEvent, LogLine, PathSide, PathState, session_name};
use crate::{
    ledger::Use,
    model::{Checkpoint, CheckpointId, RelPath},
};

/// What the log knows of a time.
#[derive(Debug, Default)]
pub struct TurnLog {
    /// What was seen at each path, oldest first.
    pub sights: BTreeMap<RelPath, Vec<Sight>>,
    /// Every call that a checkpoint covers, oldest first.
    pub logged_calls: Vec<LoggedCall>,
    /// Whether something that was noted in that time cannot be read any more.
    pub is_lost: bool,
    /// Where the first call stands that each checkpoint covers.
    first_calls: HashMap<CheckpointId, usize>,
    /// The sessions whose agents report the ends of calls, by their names in the log.
    reports_ends: HashSet<String>,
    /// When each line was noted.
    times: Vec<i64>,
    /// The earliest time of each line and all after it. The clock may have been set back.
    least_since: Vec<i64>,
    /// Where what each restore put back is noted, by its before-restore checkpoint.
    restores: HashMap<CheckpointId, usize>,
    /// The ends of commands of which not all is noted.
    cut_short: BTreeSet<usize>,
}

/// A call that a checkpoint covers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoggedCall {
    /// The session, by its name in the log.
    pub by: String,
    /// The checkpoint that covers the call.
    pub of: CheckpointId,
    /// When it began, in nanoseconds since 1970.
    pub at: i64,
    /// What it could change; `None` for anything.
    pub paths: Option<Vec<RelPath>>,
    /// The position of the first line about the state before it, which is noted when it begins.
    pub first_before: usize,
    /// The place of its beginning.
    pub began: usize,
    /// When all it left had been noted; `None` if that never was.
    pub done: Option<usize>,
    /// When the agent said that it was done.
    pub ended: Option<usize>,
    /// When its turn was over although it was not seen to end.
    pub cut_off: Option<usize>,
    /// Until where something that it started may have gone on in the background after its end.
    pub background_until: Option<usize>,
    /// Whether the whole root was compared with the checkpoint right before it.
    pub compared: bool,
    /// The tool; empty if it was not noted.
    pub tool: String,
    /// The beginning of its command line, if it has one.
    pub summary: String,
    /// What a command names, if it is known to change nothing else.
    pub names: Option<Vec<RelPath>>,
}

/// The uses of checkpoints of each session, by its name in the log, newest first.
pub struct SessionUses<'u>(HashMap<String, Vec<&'u Use>>);

impl<'u> SessionUses<'u> {
    /// Groups the uses of all sessions, which are given newest first.
    pub fn of(uses: &'u [Use]) -> Self {
        let mut sessions: HashMap<String, Vec<&Use>> = HashMap::new();
        for used in uses {
            let name = session_name(used.by.agent, &used.by.session);
            sessions.entry(name).or_default().push(used);
        }
        Self(sessions)
    }
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

    /// Whether anything was there.
    pub fn is_any(&self) -> bool {
        !matches!(self, Self::Nothing)
    }
}

/// Who was seen to leave something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doer {
    /// A call, by its place in [`TurnLog::logged_calls`], if that is known.
    Call(Option<usize>),
    /// It was there before a call.
    Other,
    /// A restore put it back.
    Restore,
}

impl LoggedCall {
    /// Whether it can have changed what is at a path.
    pub fn reaches(&self, path: &RelPath) -> bool {
        reaches(self.paths.as_deref(), path)
    }

    /// Whether what changed at a path while it ran may be another's: its words name all that it changes, and
    /// not this.
    pub fn may_be_anothers(&self, path: &RelPath) -> bool {
        !reaches(self.names.as_deref(), path)
    }

    /// What its turn used last before it.
    pub fn last_use<'u>(&self, uses: &SessionUses<'u>) -> Option<&'u Use> {
        let at = DateTime::from_timestamp_nanos(self.at);
        let uses = uses.0.get(&self.by)?;
        uses.get(uses.partition_point(|used| used.at > at)).copied()
    }
}

/// Whether a call that can change `paths`, or anything, can have changed what is at `path`.
pub(super) fn reaches(paths: Option<&[RelPath]>, path: &RelPath) -> bool {
    paths.is_none_or(|paths| {
        paths.iter().any(|named| path.is_within(named) || named.is_within(path))
    })
}

impl TurnLog {
    /// Reads the log since a checkpoint.
    pub fn since(first: &Checkpoint, lines: &[LogLine], side: PathSide) -> Self {
        Self { is_lost: is_lost(lines, first.taken_ns()), ..read(lines, side) }
    }

    /// Whether the agent of a session reports the ends of calls. The session is given by its name in the log.
    pub fn reports_ends(&self, session: &str) -> bool {
        self.reports_ends.contains(session)
    }

    fn see(&mut self, path: RelPath, sight: Sight) {
        self.sights.entry(path).or_default().push(sight);
    }

    /// What was seen at a path, oldest first.
    pub fn seen_at(&self, path: &RelPath) -> &[Sight] {
        self.sights.get(path).map(Vec::as_slice).unwrap_or_default()
    }

    /// Whether the command that ends at a place may have left more than was noted, or something
    /// other than what was there before.
    pub fn is_cut_short(&self, done: usize) -> bool {
        self.cut_short.contains(&done)
    }

    /// How many lines were read.
    pub fn line_count(&self) -> usize {
        self.times.len()
    }

    /// When the line at a place was noted; `None` behind the last one.
    pub fn time_at(&self, place: usize) -> Option<DateTime<Utc>> {
        self.times.get(place).map(|at| DateTime::from_timestamp_nanos(*at))
    }

    /// The place of the first line that was noted after a time, in nanoseconds since 1970.
    pub fn place_after(&self, at: i64) -> usize {
        self.least_since.partition_point(|least| *least <= at)
    }

    /// The place of a checkpoint: right before the first call that it covers, or what the restore that made it
    /// put back, or else by its time.
    pub fn position_of(&self, checkpoint: &Checkpoint) -> usize {
        let id = checkpoint.id;
        let at = checkpoint.taken_at.timestamp_nanos_opt().unwrap_or(i64::MAX);
        let known = self.first_calls.get(&id).or_else(|| self.restores.get(&id));
        known.copied().unwrap_or_else(|| self.place_after(at))
    }

    /// The before-restore checkpoint of the last restore that had begun to put things back at a place.
    pub fn restore_at(&self, place: usize) -> Option<CheckpointId> {
        let begun = self.restores.iter().filter(|(_, began)| **began <= place);
        begun.max_by_key(|(_, began)| **began).map(|(held, _)| *held)
    }

    /// Whether a checkpoint stands right before a call, where all of the root was looked at.
    pub fn is_before_call(&self, checkpoint: &Checkpoint) -> bool {
        self.first_calls.contains_key(&checkpoint.id)
    }

    /// The place by which all files of a checkpoint had been read: that may be long before the first call that
    /// it covers, and is behind calls that ran while they were read.
    pub fn was_read(&self, checkpoint: &Checkpoint) -> usize {
        let order = self.position_of(checkpoint);
        let Some(reading) = checkpoint.reading_ns else { return order };
        let at = checkpoint.taken_at.timestamp_nanos_opt().unwrap_or(i64::MAX);
        let until = self.place_after(at.saturating_add_unsigned(reading));
        if self.is_before_call(checkpoint) { until.min(order) } else { until }
    }
}

/// Whether a line that was noted after a time, in nanoseconds since 1970, cannot be read any more.
fn is_lost(lines: &[LogLine], since: i64) -> bool {
    let is_lost = |line: &LogLine| matches!(line.what, LogEvent::Lost { until } if until >= since);
    lines.iter().any(is_lost)
}
