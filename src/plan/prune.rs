//! Which checkpoints go when there are too many or they are too old, and why. Pure.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use chrono::{DateTime, Utc};

use crate::model::{Checkpoint, CheckpointId, Reason};

/// What was held before a restore stays this long, whatever the limits: it is the only way back.
const BEFORE_RESTORE_STAYS: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// What the user wants kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// At most so many; `None` for any number.
    pub keep: Option<u32>,
    /// None older than this; `None` for any age.
    pub older_than: Option<Duration>,
}

/// Why a checkpoint goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// There are so many newer ones.
    TooMany,
    /// It was taken so long ago.
    TooOld,
    /// The user wants all of them gone.
    Asked,
}

impl Why {
    /// A fragment for people, and for scripts.
    pub fn words(self) -> &'static str {
        match self {
            Self::TooMany => "over the number to keep",
            Self::TooOld => "too old",
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

/// Plans a prune of all checkpoints of one root, given newest first. `pinned` are those that a
/// restore needs which is under way.
pub fn prune(
    newest_first: &[Checkpoint],
    limits: Limits,
    pinned: &BTreeSet<CheckpointId>,
    now: DateTime<Utc>,
) -> PrunePlan {
    let mut plan = PrunePlan::default();
    let newest = newest_first.first().map(|checkpoint| checkpoint.id);
    let ordinary = newest_first.iter().find(|checkpoint| !is_before_restore(checkpoint));
    let newest_ordinary = ordinary.map(|checkpoint| checkpoint.id);
    for (n, checkpoint) in newest_first.iter().enumerate() {
        let age = (now - checkpoint.taken_at).to_std().unwrap_or_default();
        let why = if limits.older_than.is_some_and(|limit| age > limit) {
            Some(Why::TooOld)
        } else {
            limits.keep.is_some_and(|keep| n >= keep as usize).then_some(Why::TooMany)
        };
        let Some(why) = why else { continue };
        let id = checkpoint.id;
        let spared = if [newest, newest_ordinary].contains(&Some(id)) {
            Some("the newest always stays")
        } else if pinned.contains(&id) {
            Some("a restore is under way")
        } else if is_before_restore(checkpoint) && age < BEFORE_RESTORE_STAYS {
            Some("held before a restore, for seven days")
        } else {
            None
        };
        match spared {
            Some(reason) => drop(plan.spared.insert(id, reason)),
            None => drop(plan.goes.insert(id, why)),
        }
    }
    plan.stays = newest_first.len() - plan.goes.len();
    plan
}

/// Plans to drop everything but what a restore needs that is under way.
pub fn clear(newest_first: &[Checkpoint], pinned: &BTreeSet<CheckpointId>) -> PrunePlan {
    let mut plan = PrunePlan::default();
    for checkpoint in newest_first {
        if pinned.contains(&checkpoint.id) {
            plan.spared.insert(checkpoint.id, "a restore is under way");
        } else {
            plan.goes.insert(checkpoint.id, Why::Asked);
        }
    }
    plan.stays = plan.spared.len();
    plan
}

fn is_before_restore(checkpoint: &Checkpoint) -> bool {
    checkpoint.cause.reason == Reason::BeforeRestore
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Cause;

    const DAY: u64 = 24 * 60 * 60;

    fn checkpoint(sequence: u64, days: u64, cause: Cause) -> Checkpoint {
        Checkpoint {
            id: CheckpointId::from_bits(sequence),
            sequence,
            taken_at: now() - Duration::from_secs(days * DAY),
            cause,
            top: None,
            files: 0,
            partial: false,
            skipped: Vec::new(),
            outside: Vec::new(),
            head: None,
            staged: None,
        }
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

    fn goes(checkpoints: &[Checkpoint], limits: Limits, pinned: &[u64]) -> Vec<(u64, Why)> {
        let pinned = pinned.iter().copied().map(CheckpointId::from_bits).collect();
        let plan = prune(checkpoints, limits, &pinned, now());
        assert_eq!(plan.stays + plan.goes.len(), checkpoints.len());
        let sequence = |id| checkpoints.iter().find(|one| one.id == id).unwrap().sequence;
        plan.goes.into_iter().map(|(id, why)| (sequence(id), why)).collect()
    }

    #[test]
    fn what_is_too_old_or_too_many_goes() {
        let all = [asked(4, 0), asked(3, 1), asked(2, 20), asked(1, 21)];
        let limits = |keep, days: Option<u64>| Limits {
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

    #[test]
    fn the_newest_always_stays() {
        let limits = Limits { keep: Some(0), older_than: Some(Duration::ZERO) };
        assert_eq!(goes(&[asked(2, 400), asked(1, 500)], limits, &[]), [(1, Why::TooOld)]);
        // What was held before a restore is the newest, but not what `list` calls so.
        let all = [held(3, 30), asked(2, 40), asked(1, 50)];
        assert_eq!(goes(&all, limits, &[]), [(1, Why::TooOld)]);
    }

    #[test]
    fn what_was_held_before_a_restore_stays_seven_days() {
        let limits = Limits { keep: Some(1), older_than: None };
        let all = [asked(4, 0), held(3, 6), held(2, 8), asked(1, 9)];
        assert_eq!(goes(&all, limits, &[]), [(1, Why::TooMany), (2, Why::TooMany)]);
    }
}
