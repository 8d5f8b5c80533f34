//! Which checkpoints go when they are too old or take too much room, and why. Pure.

use std::{
    collections::{BTreeMap, HashSet},
    time::Duration,
};

use crate::model::{Agent, Checkpoint, CheckpointId, Completeness, Reason, SessionId, Settings};
use chrono::{DateTime, Utc};

/// What was held before a restore stays this long, whatever the limits: it is the only way back.
const BEFORE_RESTORE_STAYS: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// The limits that a person gives to one `prune`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PruneLimits {
    /// The number of checkpoints to keep; `None` for any number.
    pub keep: Option<u32>,
    /// The greatest age to keep; `None` for any age.
    pub older_than: Option<Duration>,
}

/// How long the settings keep each tier of checkpoints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retention {
    /// Every checkpoint.
    pub steps: Duration,
    /// The first checkpoint of each turn.
    pub turns: Duration,
    /// The first checkpoint of each session.
    pub sessions: Duration,
}

impl Retention {
    /// The limits that `settings` set. No tier is dropped before a lesser one.
    pub fn of(settings: &Settings) -> Self {
        let steps = settings.retention;
        let turns = settings.keep_turns.max(steps);
        Self { steps, turns, sessions: settings.keep_sessions.max(turns) }
    }
}

/// The importance of a checkpoint for retention, the least first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tier {
    /// Its turn has an earlier one, or no turn uses it.
    Step,
    /// The first one of a turn, or the state before a restore.
    Turn,
    /// The first one of a session.
    Session,
    /// A person asked for it with `create`.
    Asked,
}

/// The tier of each checkpoint, given newest first, each with the turn that uses it.
pub fn tiers(newest_first: &[Checkpoint]) -> Vec<Tier> {
    let mut turns = HashSet::new();
    let mut sessions = HashSet::new();
    let mut tiers: Vec<Tier> = Vec::new();
    for checkpoint in newest_first.iter().rev() {
        let tier = match checkpoint.cause.reason {
            // `create` has always left a record; a lost one does not tell who asked.
            Reason::Asked if checkpoint.completeness == Completeness::RecordLost => Tier::Turn,
            Reason::Asked => Tier::Asked,
            Reason::BeforeRestore => Tier::Turn,
            Reason::Net => Tier::Step,
            Reason::Call => {
                let by = checkpoint.cause.by.as_ref();
                let is_first = by.is_some_and(|by| sessions.insert((by.agent, &by.session)));
                // An agent that does not tell its turns apart has a row for each checkpoint.
                let begins_turn = checkpoint.turn_key().is_none_or(|turn| turns.insert(turn));
                match (is_first, begins_turn) {
                    (true, _) => Tier::Session,
                    (false, true) => Tier::Turn,
                    (false, false) => Tier::Step,
                }
            }
        };
        tiers.push(tier);
    }
    tiers.reverse();
    tiers
}

/// Why a checkpoint must stay, whatever the limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pin {
    /// A restore that is under way needs it.
    UnderWay,
    /// A call that runs is covered by it: what the call changes is told by the difference to it.
    Running,
    /// A fork began with it: what the fork has changed is told by the difference to it.
    ForkBase,
    /// Its record is damaged: it can neither be judged nor be made again.
    Damaged,
    /// A newer beforehand wrote it, and knows what to do with it.
    Newer,
    /// The disk does not give its record, and perhaps will again.
    IoError,
}

impl Pin {
    /// A fragment for people, and for scripts.
    pub fn words(self) -> &'static str {
        match self {
            Self::UnderWay => "a restore is under way",
            Self::Running => "a call is under way",
            Self::ForkBase => "a fork began with it",
            Self::Damaged => "it is damaged: beforehand check --repair",
            Self::Newer => "a newer beforehand wrote it",
            Self::IoError => "the disk does not give its record",
        }
    }
}

/// What must stay of one root.
pub type Pins = BTreeMap<CheckpointId, Pin>;

/// Why a checkpoint goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// There are so many newer ones.
    TooMany,
    /// It is older than the person who asked wants any to be.
    TooOld,
    /// It is inside a turn, and older than `retention`.
    OldStep,
    /// It is inside a session, and older than `keep_turns`.
    OldTurn,
    /// It is older than `keep_sessions`.
    OldSession,
    /// All checkpoints together take too much room.
    TooLarge,
    /// Its session is over, and the settings keep only the newest then.
    SessionOver,
    /// The user wants all of them gone.
    Asked,
}

impl Why {
    /// A fragment for people, and for scripts.
    pub fn words(self) -> &'static str {
        match self {
            Self::TooMany => "over the number to keep",
            Self::TooOld => "too old",
            Self::OldStep => "inside a turn, and older than `retention`",
            Self::OldTurn => "inside a session, and older than `keep_turns`",
            Self::OldSession => "older than `keep_sessions`",
            Self::TooLarge => "over the room there is",
            Self::SessionOver => "its session is over",
            Self::Asked => "asked for",
        }
    }
}

/// What a prune would do. What is shown is this very value, and so is what is carried out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PrunePlan {
    /// What goes, newest first.
    pub goes: BTreeMap<CheckpointId, Why>,
    /// What stays although a limit says otherwise, and why.
    pub spared: BTreeMap<CheckpointId, &'static str>,
    /// How many stay in all.
    pub stays: usize,
}

/// All checkpoints of one root, and what decides about them.
#[derive(Clone, Copy, Debug)]
pub struct RetentionInput<'a> {
    /// Newest first, by sequence.
    pub newest_first: &'a [Checkpoint],
    /// How old each of them is.
    pub ages: &'a [Duration],
    /// The tier of each of them.
    pub tiers: &'a [Tier],
    /// What must stay.
    pub pinned: &'a Pins,
}

/// How old checkpoints are, given newest first, by a clock that may have stood anywhere when they
/// were taken: a time to come counts as now, and none is older than the one before it.
pub fn ages(newest_first: &[Checkpoint], now: DateTime<Utc>) -> Vec<Duration> {
    let mut latest = DateTime::<Utc>::MIN_UTC;
    let oldest_first = newest_first.iter().rev().map(|checkpoint| {
        latest = latest.max(checkpoint.taken_at);
        (now - latest).to_std().unwrap_or_default()
    });
    let mut ages: Vec<Duration> = oldest_first.collect();
    ages.reverse();
    ages
}

/// The position from which on no checkpoint has been dropped between two of these, which are given
/// oldest first. What happened in a gap is unknown, and so is everyone's part in it.
pub fn begin_of_unbroken(oldest_first: &[Checkpoint]) -> usize {
    let is_gap = |pair: &[Checkpoint]| pair[0].sequence + 1 < pair[1].sequence;
    oldest_first.windows(2).rposition(is_gap).map_or(0, |gap| gap + 1)
}

impl RetentionInput<'_> {
    /// Plans a prune by the age limits of the settings.
    pub fn thin(self, retention: Retention) -> PrunePlan {
        self.plan(|n, _| {
            let (limit, why) = match self.tiers[n] {
                Tier::Step => (retention.steps, Why::OldStep),
                Tier::Turn => (retention.turns, Why::OldTurn),
                Tier::Session => (retention.sessions, Why::OldSession),
                Tier::Asked => return None,
            };
            (self.ages[n] > limit).then_some(why)
        })
    }

    /// Plans a prune with limits of its own, which hold for every tier.
    pub fn prune(self, limits: PruneLimits) -> PrunePlan {
        self.plan(|n, _| {
            if limits.older_than.is_some_and(|limit| self.ages[n] > limit) {
                Some(Why::TooOld)
            } else {
                limits.keep.is_some_and(|keep| n >= keep as usize).then_some(Why::TooMany)
            }
        })
    }

    /// Plans to drop everything but what a restore needs that is under way, and what a newer
    /// beforehand wrote, or may have written.
    pub fn clear(self) -> PrunePlan {
        let mut plan = PrunePlan::default();
        for Checkpoint { id, .. } in self.newest_first {
            match self.pinned.get(id) {
                Some(pin @ (Pin::UnderWay | Pin::Newer | Pin::IoError)) => {
                    plan.spared.insert(*id, pin.words());
                }
                Some(Pin::Damaged | Pin::Running | Pin::ForkBase) | None => {
                    plan.goes.insert(*id, Why::Asked);
                }
            }
        }
        plan.stays = plan.spared.len();
        plan
    }

    /// Plans to drop all but the newest of those that a session left.
    pub fn end_session(self, agent: Agent, session: &SessionId) -> PrunePlan {
        let is_of_it = |checkpoint: &Checkpoint| {
            let by = checkpoint.cause.by.as_ref();
            by.is_some_and(|by| by.agent == agent && by.session == *session)
        };
        let newest = self.newest_first.iter().position(is_of_it);
        self.plan(|n, checkpoint| {
            (is_of_it(checkpoint) && Some(n) != newest).then_some(Why::SessionOver)
        })
    }

    /// What stays whatever the limits, and why.
    pub fn spared(self) -> BTreeMap<CheckpointId, &'static str> {
        let spared = |(n, checkpoint): (usize, &Checkpoint)| {
            Some((checkpoint.id, self.spares(n, checkpoint)?))
        };
        self.newest_first.iter().enumerate().filter_map(spared).collect()
    }

    /// The checkpoints that may go when there is no room, in that order: the oldest first, and those of
    /// `create` last.
    pub fn may_go(self) -> Vec<CheckpointId> {
        let mut may_go = Vec::new();
        let mut asked = Vec::new();
        for (n, checkpoint) in self.newest_first.iter().enumerate().rev() {
            if self.spares(n, checkpoint).is_some() {
                continue;
            }
            let line = if self.tiers[n] == Tier::Asked { &mut asked } else { &mut may_go };
            line.push(checkpoint.id);
        }
        may_go.append(&mut asked);
        may_go
    }

    fn plan(self, goes: impl Fn(usize, &Checkpoint) -> Option<Why>) -> PrunePlan {
        let mut plan = PrunePlan::default();
        for (n, checkpoint) in self.newest_first.iter().enumerate() {
            let Some(why) = goes(n, checkpoint) else { continue };
            match self.spares(n, checkpoint) {
                Some(reason) => drop(plan.spared.insert(checkpoint.id, reason)),
                None => drop(plan.goes.insert(checkpoint.id, why)),
            }
        }
        plan.stays = self.newest_first.len() - plan.goes.len();
        plan
    }

    /// Why the checkpoint in place `n` stays, whatever the limits.
    fn spares(self, n: usize, checkpoint: &Checkpoint) -> Option<&'static str> {
        let ordinary = self.newest_first.iter().position(|it| !is_before_restore(it));
        if n == 0 || Some(n) == ordinary {
            Some("the newest always stays")
        } else if let Some(pin) = self.pinned.get(&checkpoint.id) {
            Some(pin.words())
        } else if is_before_restore(checkpoint) && self.ages[n] < BEFORE_RESTORE_STAYS {
            Some("held before a restore, for seven days")
        } else {
            None
        }
    }
}

fn is_before_restore(checkpoint: &Checkpoint) -> bool {
    checkpoint.cause.reason == Reason::BeforeRestore
}

/// Something that takes room, and until when it is needed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// How much room.
    pub bytes: u64,
    /// Who needs it: a place in the lines, and there the place of the last that does.
    pub until: Vec<(usize, usize)>,
}

/// Says which checkpoints go so that at least `excess` bytes are freed, in the order in which they
/// go. Each of `lines` has the checkpoints of one root that may go, the oldest first; `chunks` are
/// needed by nothing else.
///
/// The root that takes most room gives its first, again and again, so that no root pays for
/// another. A line that has nothing to give is left alone, even where that is not enough.
pub fn evict(
    lines: &[Vec<CheckpointId>],
    chunks: &[Chunk],
    excess: u64,
) -> Vec<(usize, CheckpointId)> {
    let mut held: Vec<u64> = vec![0; lines.len()];
    let mut last: Vec<Vec<Vec<usize>>> =
        lines.iter().map(|line| vec![Vec::new(); line.len()]).collect();
    for (n, chunk) in chunks.iter().enumerate() {
        for &(line, place) in &chunk.until {
            held[line] += chunk.bytes;
            last[line][place].push(n);
        }
    }
    let mut needed: Vec<usize> = chunks.iter().map(|chunk| chunk.until.len()).collect();
    let mut gone = vec![0; lines.len()];
    let (mut freed, mut goes) = (0, Vec::new());
    while freed < excess {
        let largest = (0..lines.len()).rev().max_by_key(|&line| held[line]);
        let Some(line) = largest.filter(|&line| held[line] > 0) else { break };
        for &n in &last[line][gone[line]] {
            held[line] -= chunks[n].bytes;
            needed[n] -= 1;
            freed += if needed[n] == 0 { chunks[n].bytes } else { 0 };
        }
        goes.push((line, lines[line][gone[line]]));
        gone[line] += 1;
    }
    goes
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::model::{By, Cause};

    const DAY: u64 = 24 * 60 * 60;

    fn checkpoint(sequence: u64, days: u64, cause: Cause) -> Checkpoint {
        let taken_at = now() - Duration::from_secs(days * DAY);
        Checkpoint { cause, ..Checkpoint::sample(sequence, sequence, taken_at) }
    }

    fn asked(sequence: u64, days: u64) -> Checkpoint {
        checkpoint(sequence, days, Cause::asked(None))
    }

    fn held(sequence: u64, days: u64) -> Checkpoint {
        checkpoint(sequence, days, Cause::before_restore(CheckpointId::from_bits(1)))
    }

    fn now() -> DateTime<Utc> {
        DateTime::from_timestamp(1_795_183_331, 0).unwrap()
    }

    fn pins(sequences: &[u64]) -> Pins {
        let pin = |sequence: &u64| (CheckpointId::from_bits(*sequence), Pin::UnderWay);
        sequences.iter().map(pin).collect()
    }

    fn goes(checkpoints: &[Checkpoint], limits: PruneLimits, pinned: &[u64]) -> Vec<(u64, Why)> {
        let pinned = pins(pinned);
        let ages = ages(checkpoints, now());
        let tiers = tiers(checkpoints);
        let input = RetentionInput {
            newest_first: checkpoints,
            ages: &ages,
            tiers: &tiers,
            pinned: &pinned,
        };
        let plan = input.prune(limits);
        assert_eq!(plan.stays + plan.goes.len(), checkpoints.len());
        let sequence = |id| checkpoints.iter().find(|one| one.id == id).unwrap().sequence;
        plan.goes.into_iter().map(|(id, why)| (sequence(id), why)).collect()
    }

    #[test]
    fn what_is_too_old_or_too_many_goes() {
        let all = [asked(4, 0), asked(3, 1), asked(2, 20), asked(1, 21)];
        let limits = |keep, days: Option<u64>| PruneLimits {
            keep,
            older_than: days.map(|days| Duration::from_secs(days * DAY)),
        };
        assert_eq!(goes(&all, limits(None, None), &[]), []);
        assert_eq!(goes(&all, limits(Some(3), None), &[]), [(1, Why::TooMany)]);
        let old = [(1, Why::TooOld), (2, Why::TooOld)];
        assert_eq!(goes(&all, limits(None, Some(14)), &[]), old);
        assert_eq!(goes(&all, limits(Some(3), Some(14)), &[]), old);
        assert_eq!(goes(&all, limits(None, Some(14)), &[2]), [(1, Why::TooOld)]);
    }

    /// Work of agents, turn by turn, and of people. Each checkpoint with its age in hours.
    fn histories() -> impl Strategy<Value = Vec<(Checkpoint, u64)>> {
        let one = (0..10u8, 0..3u8, 0..4u8, 0..60u64);
        proptest::collection::vec(one, 1..40).prop_map(|history| {
            let mut age = 0;
            let count = history.len() as u64;
            let mut newest_first = Vec::new();
            for (sequence, (kind, session, turn, hours)) in (1..=count).rev().zip(history) {
                age += hours;
                let cause = match kind {
                    0 => Cause::asked(None),
                    1 => Cause::before_restore(CheckpointId::from_bits(1)),
                    2 => Cause { reason: Reason::Net, ..Cause::asked(None) },
                    _ => {
                        let turn = format!("{session} {turn} {}", age / 50);
                        let session = SessionId(format!("{session} {}", age / 400));
                        let by = By { session, ..By::sample(Agent::Codex, &turn) };
                        Cause { reason: Reason::Call, by: Some(by), ..Cause::asked(None) }
                    }
                };
                // The clock of the machine stood anywhere.
                newest_first.push((checkpoint(sequence, sequence * 7919 % 400, cause), age));
            }
            newest_first
        })
    }

    const RETENTION: Retention = Retention {
        steps: Duration::from_secs(3 * DAY),
        turns: Duration::from_secs(14 * DAY),
        sessions: Duration::from_secs(40 * DAY),
    };

    /// The checkpoints that retention leaves.
    fn left(history: &[(Checkpoint, u64)], pinned: &Pins) -> Vec<(Checkpoint, u64)> {
        let all: Vec<Checkpoint> = history.iter().map(|(one, _)| one.clone()).collect();
        let ages: Vec<Duration> =
            history.iter().map(|(_, hours)| Duration::from_secs(hours * 3600)).collect();
        let tiers = tiers(&all);
        let input = RetentionInput { newest_first: &all, ages: &ages, tiers: &tiers, pinned };
        let plan = input.thin(RETENTION);
        history.iter().filter(|(one, _)| !plan.goes.contains_key(&one.id)).cloned().collect()
    }

    proptest! {
        #[test]
        fn retention_keeps_what_it_promises(history in histories(), pinned in 0..40u64) {
            let pinned = pins(&[pinned]);
            let left = left(&history, &pinned);
            let ids: Vec<CheckpointId> = left.iter().map(|(one, _)| one.id).collect();
            let mut turns = HashSet::new();
            let mut sessions = HashSet::new();
            for (checkpoint, hours) in history.iter().rev() {
                let age = Duration::from_secs(hours * 3600);
                let by = checkpoint.cause.by.as_ref();
                let begins_turn = by.is_some_and(|by| turns.insert(by.turn_key()));
                let begins_session = by.is_some_and(|by| sessions.insert(&by.session));
                let stays = age <= RETENTION.steps
                    || pinned.contains_key(&checkpoint.id)
                    || checkpoint.cause.reason == Reason::Asked
                    || (begins_turn && age <= RETENTION.turns)
                    || (begins_session && age <= RETENTION.sessions);
                prop_assert!(!stays || ids.contains(&checkpoint.id), "{checkpoint:?} at {hours} h");
            }
            let other = Pins::new();
            let gone = history.len() - self::left(&history, &other).len();
            let tiers = tiers(&history.iter().map(|(one, _)| one.clone()).collect::<Vec<_>>());
            let old = history.iter().zip(&tiers);
            let due = old.filter(|((_, hours), tier)| {
                let limit = match tier {
                    Tier::Step => RETENTION.steps,
                    Tier::Turn => RETENTION.turns,
                    Tier::Session => RETENTION.sessions,
                    Tier::Asked => Duration::MAX,
                };
                Duration::from_secs(hours * 3600) > limit
            });
            let is_newest = usize::from(!history.is_empty()) * 2;
            prop_assert!(gone + is_newest >= due.count(), "nothing else stays");
        }

        #[test]
        fn retention_does_not_depend_on_the_clock_of_the_machine(history in histories()) {
            let mut other = history.clone();
            for (n, (checkpoint, _)) in other.iter_mut().enumerate() {
                checkpoint.taken_at = now() + Duration::from_secs((n as u64 * 104_729 % 900) * DAY);
            }
            let ids = |left: Vec<(Checkpoint, u64)>| {
                left.into_iter().map(|(one, _)| one.id).collect::<Vec<_>>()
            };
            let none = Pins::new();
            prop_assert_eq!(ids(left(&history, &none)), ids(left(&other, &none)));
        }

        #[test]
        fn what_retention_left_stays_while_no_time_passes(history in histories()) {
            let none = Pins::new();
            let once = left(&history, &none);
            prop_assert_eq!(left(&once, &none), once);
        }
    }

    #[test]
    fn the_oldest_may_go_first_and_last_what_a_person_asked_for() {
        let of_turn = |sequence, turn: &str| {
            let by = By::sample(Agent::Codex, turn);
            let cause = Cause { reason: Reason::Call, by: Some(by), ..Cause::asked(None) };
            checkpoint(sequence, 100 - sequence, cause)
        };
        let all = [of_turn(5, "c"), asked(4, 0), of_turn(3, "b"), of_turn(2, "a"), asked(1, 9)];
        let pinned = Pins::new();
        let tiers = tiers(&all);
        assert_eq!(tiers, [Tier::Turn, Tier::Asked, Tier::Turn, Tier::Session, Tier::Asked]);
        let input = RetentionInput {
            newest_first: &all,
            ages: &[Duration::MAX; 5],
            tiers: &tiers,
            pinned: &pinned,
        };
        assert_eq!(input.may_go(), [2, 3, 1, 4].map(CheckpointId::from_bits));
    }

    #[test]
    fn a_clock_that_stood_elsewhere_makes_nothing_older() {
        let day = |days: u64| Duration::from_secs(days * DAY);
        let told = |all: &[Checkpoint]| ages(all, now());
        // Taken before the clock was set, after one that was not.
        assert_eq!(told(&[asked(3, 1), asked(2, 20_000), asked(1, 2)]), [day(1), day(2), day(2)]);
        let mut ahead = asked(2, 0);
        ahead.taken_at += Duration::from_secs(400 * DAY);
        // What came after one from the future is no older than that.
        assert_eq!(told(&[asked(3, 1), ahead, asked(1, 5)]), [day(0), day(0), day(5)]);
        // Now is in the past.
        assert_eq!(ages(&[asked(1, 1)], now() - day(9000)), [day(0)]);
    }

    #[test]
    fn a_session_that_is_over_leaves_its_newest() {
        let of = |sequence, session: &str| {
            let session = SessionId(session.to_owned());
            let by = By { session, turn: None, ..By::sample(Agent::Codex, "") };
            checkpoint(sequence, 0, Cause { by: Some(by), ..Cause::asked(None) })
        };
        let all = [of(6, "b"), of(5, "a"), of(4, "a"), asked(3, 0), of(2, "b"), of(1, "a")];
        let ages = ages(&all, now());
        let tiers = tiers(&all);
        let plan = |session: &str, pinned: &[u64]| {
            let pinned = pins(pinned);
            let stock =
                RetentionInput { newest_first: &all, ages: &ages, tiers: &tiers, pinned: &pinned };
            let plan = stock.end_session(Agent::Codex, &SessionId(session.to_owned()));
            let gone = all.iter().filter(|it| plan.goes.contains_key(&it.id));
            gone.map(|it| it.sequence).collect::<Vec<_>>()
        };
        assert_eq!(plan("a", &[]), [4, 1]);
        assert_eq!(plan("a", &[1]), [4]);
        assert_eq!(plan("b", &[]), [2]);
        assert_eq!(plan("c", &[]), [0; 0]);
    }

    #[test]
    fn the_newest_always_stays() {
        let limits = PruneLimits { keep: Some(0), older_than: Some(Duration::ZERO) };
        assert_eq!(goes(&[asked(2, 400), asked(1, 500)], limits, &[]), [(1, Why::TooOld)]);
        // What was held before a restore is the newest, but not what `list` calls so.
        let all = [held(3, 30), asked(2, 40), asked(1, 50)];
        assert_eq!(goes(&all, limits, &[]), [(1, Why::TooOld)]);
    }

    #[test]
    fn what_was_held_before_a_restore_stays_seven_days() {
        let limits = PruneLimits { keep: Some(1), older_than: None };
        let all = [asked(4, 0), held(3, 6), held(2, 8), asked(1, 9)];
        assert_eq!(goes(&all, limits, &[]), [(1, Why::TooMany), (2, Why::TooMany)]);
    }

    #[test]
    fn what_cannot_be_read_stays_and_may_be_cleared_if_it_is_damaged() {
        let all = [asked(5, 0), asked(4, 400), asked(3, 400), asked(2, 400), asked(1, 400)];
        let id = CheckpointId::from_bits;
        let pins = [(id(4), Pin::Damaged), (id(3), Pin::Newer), (id(2), Pin::IoError)];
        let pinned = Pins::from(pins);
        let ages = ages(&all, now());
        let tiers = tiers(&all);
        let stock =
            RetentionInput { newest_first: &all, ages: &ages, tiers: &tiers, pinned: &pinned };
        let plan = stock.prune(PruneLimits { keep: Some(0), older_than: None });
        assert_eq!(plan.goes.into_keys().collect::<Vec<_>>(), [id(1)]);
        assert_eq!(plan.spared.get(&id(3)), Some(&"a newer beforehand wrote it"));
        assert_eq!(stock.may_go(), [id(1)]);
        let plan = stock.clear();
        assert_eq!(plan.spared.into_keys().collect::<Vec<_>>(), [id(2), id(3)]);
        assert_eq!(plan.goes.len(), 3);
    }

    fn line(ids: &[u64]) -> Vec<CheckpointId> {
        ids.iter().copied().map(CheckpointId::from_bits).collect()
    }

    fn chunk(bytes: u64, until: &[(usize, usize)]) -> Chunk {
        Chunk { bytes, until: until.to_vec() }
    }

    #[test]
    fn the_oldest_of_the_largest_goes_first() {
        let lines = [line(&[1, 2]), line(&[3, 4, 5]), line(&[6])];
        let chunks = [
            chunk(10, &[(0, 0)]),
            chunk(10, &[(0, 1)]),
            chunk(40, &[(1, 0)]),
            chunk(5, &[(1, 1)]),
            chunk(30, &[(1, 2)]),
        ];
        let goes = |excess| {
            let goes = evict(&lines, &chunks, excess);
            let place = |(at, id): (usize, CheckpointId)| {
                (at, lines[at].iter().position(|it| *it == id).unwrap())
            };
            goes.into_iter().map(place).collect::<Vec<_>>()
        };
        for (excess, expected) in [
            (0, &[][..]),
            (1, &[(1, 0)]),
            (40, &[(1, 0)]),
            (41, &[(1, 0), (1, 1)]),
            (46, &[(1, 0), (1, 1), (1, 2)]),
            // Now the first line is the largest.
            (76, &[(1, 0), (1, 1), (1, 2), (0, 0)]),
            // More than there is: the third line has nothing to give, and keeps its one.
            (1000, &[(1, 0), (1, 1), (1, 2), (0, 0), (0, 1)]),
        ] {
            assert_eq!(goes(excess), expected, "{excess}");
        }
    }

    #[test]
    fn what_two_need_is_free_when_both_have_gone() {
        let lines = [line(&[1]), line(&[2])];
        let shared = [chunk(10, &[(0, 0), (1, 0)])];
        assert_eq!(evict(&lines, &shared, 1).len(), 2);
        assert_eq!(evict(&lines, &[], 1), []);
    }
}
