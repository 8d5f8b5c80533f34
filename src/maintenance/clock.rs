//! Measures elapsed time in a way that a wrong system clock cannot speed up, and remembers when
//! maintenance first saw each checkpoint. Pure, except for reading and writing its file.
//!
//! Checkpoints past their retention are deleted for good, and the system clock can be wrong: years
//! ahead until the network sets it, or behind. Maintenance therefore keeps a clock of its own. It
//! adds up the time from run to run and does not trust a leap forward: a leap counts only if the
//! next run confirms it, and then for two days at most. After a month's absence everything is still
//! there. The age of a checkpoint is the time on this clock since a run first saw it.

use std::{collections::BTreeMap, time::Duration};

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::{
    error::{Error, Result},
    fs::{is_lost, read_small, replace},
    model::{Checkpoint, CheckpointId},
    state::StateDir,
};

/// The newest format; see `docs/FORMAT.md`.
const VERSION: u32 = 1;
/// Fifty numbers for each of a hundred thousand roots.
const SIZE_MAX_BYTES: u64 = 256 << 20;
/// The most that a single leap of the clock can count.
const LEAP_MAX_SECONDS: u64 = 2 * 24 * 60 * 60;

/// What the last maintenance run saw and did: `maintenance.json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MaintenanceState {
    version: u32,
    /// When the last run was, by the system clock.
    at: Option<DateTime<Utc>>,
    /// The time on this clock, in seconds.
    lived: u64,
    /// Whether the system clock leapt ahead in the last run and no later run has confirmed it.
    doubted: bool,
    /// By the name of each root's directory.
    roots: BTreeMap<String, RootHistory>,
    /// By the name of each session's ledger that names no checkpoint: when it was changed last, in
    /// nanoseconds since 1970, and the time on this clock at which that was first seen.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    ledgers: BTreeMap<String, (i64, u64)>,
    /// What it did.
    pub report: Option<MaintenanceReport>,
    /// What the last `prune` of the user's did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pruned: Option<Pruned>,
    /// The file with objects that was verified last, relative to the state directory; empty if the next one is
    /// the first.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub verified: String,
}

/// What a `prune` of the user's did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pruned {
    /// When, by the system clock.
    pub at: DateTime<Utc>,
    /// How many checkpoints were dropped.
    pub dropped: usize,
    /// How many bytes that freed.
    pub freed: u64,
}

/// What the runs saw of one root.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct RootHistory {
    /// Pairs of the greatest sequence number and the time on this clock; one for each time it grew.
    ages: Vec<(u64, u64)>,
    /// The time at which the root was first seen to be gone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    gone: Option<u64>,
    /// The time at which each of its records was first seen to be damaged.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    damaged: BTreeMap<String, u64>,
}

/// What a run did.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MaintenanceReport {
    /// How many checkpoints were dropped.
    pub dropped: usize,
    /// How many bytes that freed.
    pub freed: u64,
    /// How many roots were gone for good and had all their state removed.
    pub orphans: usize,
    /// Limits that could not be met, as message fragments.
    pub unmet: Vec<String>,
}

impl Default for MaintenanceState {
    fn default() -> Self {
        Self {
            version: VERSION,
            at: None,
            lived: 0,
            doubted: false,
            roots: BTreeMap::new(),
            ledgers: BTreeMap::new(),
            report: None,
            pruned: None,
            verified: String::new(),
        }
    }
}

impl MaintenanceState {
    /// Reads the file. A lost or damaged one makes every checkpoint look new, so it is kept longer.
    ///
    /// # Errors
    ///
    /// [`Error::FormatTooNew`] if a newer beforehand wrote it, which then does the maintenance.
    pub fn read(state: &StateDir) -> Result<Self> {
        let path = state.maintenance_file();
        let bytes = read_small(&path, SIZE_MAX_BYTES).ok().flatten().unwrap_or_default();
        let version = |bytes| serde_json::from_slice::<serde_json::Value>(bytes).ok();
        let found = version(&bytes).and_then(|value| value["version"].as_u64()).unwrap_or(1);
        if found > u64::from(VERSION) {
            let found = u32::try_from(found).unwrap_or(u32::MAX);
            let what = path.display().to_string();
            return Err(Error::FormatTooNew { what, found, known: VERSION });
        }
        Ok(serde_json::from_slice(&bytes).unwrap_or_default())
    }

    /// Whether the file exists and cannot be read. An empty file only carries a modification time.
    pub fn is_damaged(state: &StateDir) -> bool {
        match read_small(&state.maintenance_file(), SIZE_MAX_BYTES) {
            Ok(None) => false,
            Ok(Some(bytes)) => {
                let is_whole = is_lost(&bytes) || serde_json::from_slice::<Self>(&bytes).is_ok();
                !is_whole && Self::read(state).is_ok()
            }
            Err(_) => true,
        }
    }

    /// Writes the file.
    ///
    /// # Errors
    ///
    /// Fails if it cannot be written; the old one is then unchanged. A state directory that was
    /// removed meanwhile is not created again.
    pub fn write(&self, state: &StateDir) -> Result<()> {
        let bytes = serde_json::to_vec(self).expect("strings and numbers always serialize");
        replace(&state.maintenance_file(), &bytes)
    }

    /// When checkpoints were dropped last, by a run or by the user, and what that did.
    pub fn last_prune(&self) -> Option<(DateTime<Utc>, MaintenanceReport)> {
        let run = self.at.zip(self.report.clone());
        let pruned = self.pruned.filter(|pruned| run.as_ref().is_none_or(|run| run.0 <= pruned.at));
        let unmet = |run: &Option<(_, MaintenanceReport)>| {
            run.as_ref().map(|(_, report)| report.unmet.clone()).unwrap_or_default()
        };
        match pruned {
            Some(Pruned { at, dropped, freed }) => {
                Some((at, MaintenanceReport { dropped, freed, orphans: 0, unmet: unmet(&run) }))
            }
            None => run,
        }
    }

    /// Whether the system clock has leapt, so that no age can be trusted.
    pub fn is_in_doubt(&self) -> bool {
        self.doubted
    }

    /// Advances the clock at the start of a run.
    pub fn tick(&mut self, now: DateTime<Utc>, interval: Duration) {
        let leap = LEAP_MAX_SECONDS.max(2 * interval.as_secs());
        let passed = self.at.map_or(0, |at| (now - at).num_seconds());
        let passed = u64::try_from(passed).unwrap_or(0);
        // The system clock went back, so its earlier reading was wrong.
        let believed = self.doubted && self.at.is_some_and(|at| at <= now);
        self.lived += if believed { leap } else { 0 };
        self.lived += if passed <= leap { passed } else { 0 };
        self.doubted = passed > leap;
        self.at = Some(now);
    }

    /// Notes the newest and oldest sequence numbers of a root's checkpoints.
    fn see(&mut self, root: &str, newest: u64, oldest: u64) {
        let lived = self.lived;
        let ages = &mut self.roots.entry(root.to_owned()).or_default().ages;
        if ages.last().is_some_and(|(known, _)| *known > newest) {
            // The sequence numbers have started again from the beginning.
            ages.clear();
        }
        if ages.last().is_none_or(|(known, _)| *known < newest) {
            ages.push((newest, lived));
        }
        ages.retain(|(known, _)| *known >= oldest);
    }

    /// Notes a root's checkpoints, given newest first, and returns the age of each: the time since a
    /// run first saw it.
    pub fn ages(&mut self, root: &str, newest_first: &[Checkpoint]) -> Vec<Duration> {
        if let (Some(newest), Some(oldest)) = (newest_first.first(), newest_first.last()) {
            self.see(root, newest.sequence, oldest.sequence);
        }
        newest_first.iter().map(|checkpoint| self.age(root, checkpoint.sequence)).collect()
    }

    /// The least age that a checkpoint of a root can have.
    fn age(&self, root: &str, sequence: u64) -> Duration {
        let ages = self.roots.get(root).map_or(&[][..], |seen| &seen.ages);
        let first = ages.iter().find(|(known, _)| *known >= sequence);
        let since = first.map_or(self.lived, |(_, at)| *at);
        Duration::from_secs(self.lived.saturating_sub(since))
    }

    /// Notes whether a root is gone, and returns for how long it has been.
    pub fn gone(&mut self, root: &str, is_gone: bool) -> Duration {
        let lived = self.lived;
        let gone = &mut self.roots.entry(root.to_owned()).or_default().gone;
        if !is_gone {
            *gone = None;
            return Duration::ZERO;
        }
        Duration::from_secs(lived.saturating_sub(*gone.get_or_insert(lived)))
    }

    /// For how long a root has been gone, as of the last run.
    pub fn gone_for(&self, root: &str) -> Option<Duration> {
        let since = self.roots.get(root)?.gone?;
        Some(Duration::from_secs(self.lived.saturating_sub(since)))
    }

    /// Notes the damaged records of a root, and returns for how long each has been damaged.
    pub fn damaged(&mut self, root: &str, records: &[CheckpointId]) -> Vec<Duration> {
        let lived = self.lived;
        let known = &mut self.roots.entry(root.to_owned()).or_default().damaged;
        let names: Vec<String> = records.iter().map(CheckpointId::to_string).collect();
        known.retain(|name, _| names.contains(name));
        let since = names.into_iter().map(|name| *known.entry(name).or_insert(lived));
        since.map(|since| Duration::from_secs(lived.saturating_sub(since))).collect()
    }

    /// Notes the ledgers that name no checkpoint, each with the time of its last change, and returns for
    /// how long each has been so.
    pub fn unneeded(&mut self, ledgers: &BTreeMap<String, i64>) -> BTreeMap<String, Duration> {
        let mut seen = BTreeMap::new();
        for (name, changed) in ledgers {
            let known = self.ledgers.get(name).filter(|(known, _)| known == changed);
            let since = known.map_or(self.lived, |(_, since)| *since);
            seen.insert(name.clone(), (*changed, since));
        }
        self.ledgers = seen;
        let mut ages = BTreeMap::new();
        for (name, (_, since)) in &self.ledgers {
            ages.insert(name.clone(), Duration::from_secs(self.lived.saturating_sub(*since)));
        }
        ages
    }

    /// Forgets roots that have no state directory any more.
    pub fn retain(&mut self, is_there: impl Fn(&str) -> bool) {
        self.roots.retain(|root, _| is_there(root));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: u64 = 24 * 60 * 60;
    const INTERVAL: Duration = Duration::from_secs(DAY);

    /// The days on this clock after runs on these days of the system clock.
    fn lived(days: &[i64]) -> u64 {
        let mut memory = MaintenanceState::default();
        for day in days {
            let now = DateTime::from_timestamp(1_795_183_331 + day * 86_400, 0).unwrap();
            memory.tick(now, INTERVAL);
        }
        memory.lived / DAY
    }

    #[test]
    fn a_state_that_was_removed_meanwhile_does_not_come_back() {
        let dir =
            std::env::temp_dir().join(format!("beforehand-clock-removed-{}", std::process::id()));
        assert!(MaintenanceState::default().write(&StateDir::new(dir.clone())).is_err());
        assert!(!dir.exists());
    }

    #[test]
    fn a_leap_of_the_clock_is_not_trusted() {
        for (days, expected) in [
            (&[0][..], 0),
            (&[0, 1, 2], 2),
            (&[0, 2, 4], 4),
            // Years ahead, then back.
            (&[0, 4000, 1, 2], 1),
            (&[0, 1, 4000, 4000, 2, 3], 4),
            // Ahead for good: counts two days and no more.
            (&[0, 4000], 0),
            (&[0, 4000, 4001, 4002], 4),
            // Behind, then set right.
            (&[0, -9000, 1, 2], 3),
            (&[0, -1, -2, -3], 0),
            // Every third day.
            (&[0, 3, 6, 9], 4),
        ] {
            assert_eq!(lived(days), expected, "{days:?}");
        }
    }

    #[test]
    fn a_checkpoint_is_as_old_as_runs_have_seen_it() {
        let mut memory = MaintenanceState::default();
        let start = DateTime::from_timestamp(1_795_183_331, 0).unwrap();
        let day = |days: u64| Duration::from_secs(days * DAY);
        for round in 0..5 {
            memory.tick(start + day(round), INTERVAL);
            memory.see("r", 10 + round, 1);
        }
        let ages = [1, 10, 11, 14, 15].map(|sequence| memory.age("r", sequence));
        assert_eq!(ages, [day(4), day(4), day(3), day(0), day(0)]);
        // Removed checkpoints are forgotten, and restarted numbers count as new.
        memory.see("r", 14, 13);
        assert_eq!(memory.roots["r"].ages.len(), 2);
        memory.see("r", 2, 1);
        assert_eq!(memory.age("r", 1), day(0));
    }

    #[test]
    fn what_comes_back_is_not_gone() {
        let mut memory = MaintenanceState::default();
        let start = DateTime::from_timestamp(1_795_183_331, 0).unwrap();
        for (round, is_gone, expected) in
            [(0, true, 0), (1, true, 1), (2, true, 2), (3, false, 0), (4, true, 0), (5, true, 1)]
        {
            memory.tick(start + Duration::from_secs(round * DAY), INTERVAL);
            assert_eq!(memory.gone("r", is_gone).as_secs(), expected * DAY, "{round}");
        }
    }
}
