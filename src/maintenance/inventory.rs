//! Collects what maintenance needs to know about each root: location, status, checkpoints, limits.

use std::{
    collections::{BTreeMap, BTreeSet},
    thread,
    time::{Duration, Instant},
};

use super::clock::MaintenanceState;
use crate::{
    config, crash,
    error::Result,
    forked::ForkEntry,
    fs::Lock,
    ledger::{self, Use},
    model::{Checkpoint, CheckpointId, Settings},
    plan::{self, Pin, Pins, RetentionInput, Tier},
    process::Process,
    restore_log::RestoreLog,
    state::{RootState, StateDir},
    store::{
        Needs, RootStatus, Store, Survey, Unreadable,
        record::{self, RootLocation},
        root_status::open_known,
    },
    ui,
};

/// How many checkpoints are forgotten under one hold of the lock.
const SLICE: usize = 8;
/// The pause between two slices: long enough for a waiting save to take the lock.
const REST: Duration = Duration::from_millis(25);

/// One root with everything that the store has of it.
pub struct RootInventory {
    /// The name of its state directory.
    pub name: String,
    /// Its state directory.
    pub own: RootState,
    /// Its last known location.
    pub place: RootLocation,
    /// Whether it still exists.
    pub standing: RootStatus,
    /// Its store.
    pub store: Box<dyn Store>,
    /// The settings that apply to it.
    pub settings: Settings,
    /// All checkpoints, newest first.
    pub checkpoints: Vec<Checkpoint>,
    /// Checkpoints with records that cannot be read, and why.
    pub unreadable: BTreeMap<CheckpointId, Unreadable>,
    /// The objects that the readable records name.
    pub needs: Vec<Needs>,
    ages: Vec<Duration>,
    tiers: Vec<Tier>,
    pinned: Pins,
}

/// The facts about checkpoints in the ledgers of all sessions.
struct LedgerFacts {
    uses: Vec<Use>,
    running: BTreeSet<CheckpointId>,
}

/// The tier of each of a root's checkpoints, given newest first.
pub fn tiers(checkpoints: &[Checkpoint], uses: &[Use]) -> Vec<Tier> {
    let mut adopted = checkpoints.to_vec();
    ledger::adopt(&mut adopted, uses);
    plan::tiers(&adopted)
}

/// The age of each of a root's checkpoints, given newest first, on the maintenance clock as it would
/// be in a run now.
///
/// # Errors
///
/// Fails if a newer beforehand does the maintenance.
pub fn ages(
    process: &Process<'_>,
    state: &StateDir,
    own: &RootState,
    newest_first: &[Checkpoint],
) -> Result<Vec<Duration>> {
    let mut memory = MaintenanceState::read(state)?;
    memory.tick(process.now, config::load(process, None).settings.prune_interval);
    Ok(memory.ages(&name_of(own), newest_first))
}

/// The name of a root's state directory.
pub(super) fn name_of(own: &RootState) -> String {
    own.dir().file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// Takes the inventory of every root. Also returns a message fragment for each root that cannot be
/// read.
///
/// # Errors
///
/// Fails if the roots cannot be listed.
pub fn all(
    process: &Process<'_>,
    state: &StateDir,
    memory: &mut MaintenanceState,
) -> Result<(Vec<RootInventory>, Vec<String>)> {
    let (mut inventories, mut unreadable) = (Vec::new(), Vec::new());
    let facts =
        LedgerFacts { uses: ledger::uses(state), running: ledger::running(state, process.now) };
    for own in record::all_roots(state)? {
        let place = match record::known_location(&own) {
            Ok(Some(place)) => place,
            Ok(None) => continue,
            Err(err) => {
                let dir = ui::escape_path(own.dir()).into_owned();
                unreadable.push(format!("cannot tell which root {dir} belongs to: {err}"));
                continue;
            }
        };
        let path = ui::escape_path(&place.path).into_owned();
        match RootInventory::look(process, state, own, place, memory, &facts) {
            Ok(inventory) => inventories.push(inventory),
            Err(err) => unreadable.push(format!("cannot look at {path}: {err}")),
        }
    }
    inventories.sort_by(|a, b| a.place.path.cmp(&b.place.path));
    Ok((inventories, unreadable))
}

/// The checkpoints that an interrupted restore needs; `None` (so: all of them) if its log cannot be
/// read.
fn under_way(own: &RootState) -> Option<BTreeSet<CheckpointId>> {
    match RestoreLog::read(own) {
        Ok(Some(log)) => Some(BTreeSet::from([log.of, log.held])),
        Ok(None) => Some(BTreeSet::new()),
        Err(_) => None,
    }
}

/// The checkpoints of one root that must be kept, and why.
pub fn pins(
    own: &RootState,
    checkpoints: &[Checkpoint],
    unreadable: &BTreeMap<CheckpointId, Unreadable>,
    running: &BTreeSet<CheckpointId>,
) -> Pins {
    let pin = |(id, why): (&CheckpointId, &Unreadable)| match why {
        Unreadable::Newer => (*id, Pin::Newer),
        Unreadable::Damaged => (*id, Pin::Damaged),
        Unreadable::IoError => (*id, Pin::IoError),
    };
    let mut pins: Pins = unreadable.iter().map(pin).collect();
    let under_way = under_way(own)
        .unwrap_or_else(|| checkpoints.iter().map(|checkpoint| checkpoint.id).collect());
    let running = running.iter().filter(|id| checkpoints.iter().any(|it| it.id == **id));
    pins.extend(running.map(|id| (*id, Pin::Running)));
    // Of a fork that cannot be read nothing is brought back.
    if let Ok(Some(fork)) = ForkEntry::read(own) {
        let brought = fork.brought.iter().map(|brought| brought.of);
        pins.extend(fork.base.into_iter().chain(brought).map(|id| (id, Pin::ForkBase)));
    }
    pins.extend(under_way.into_iter().map(|id| (id, Pin::UnderWay)));
    pins
}

impl RootInventory {
    fn look(
        process: &Process<'_>,
        state: &StateDir,
        own: RootState,
        place: RootLocation,
        memory: &mut MaintenanceState,
        facts: &LedgerFacts,
    ) -> Result<Self> {
        let name = name_of(&own);
        let standing = RootStatus::of(&place);
        let store = open_known(&place, state)?;
        let Survey { checkpoints, unreadable, needs } = store.survey()?;
        let ages = memory.ages(&name, &checkpoints);
        let tiers = tiers(&checkpoints, &facts.uses);
        let pinned = pins(&own, &checkpoints, &unreadable, &facts.running);
        let settings = config::load(process, Some(&place.path)).settings;
        Ok(Self {
            name,
            own,
            place,
            standing,
            store,
            settings,
            checkpoints,
            unreadable,
            needs,
            ages,
            tiers,
            pinned,
        })
    }

    /// The input for the retention rules in `plan`.
    pub fn retention_input(&self) -> RetentionInput<'_> {
        let Self { checkpoints, ages, tiers, pinned, .. } = self;
        RetentionInput { newest_first: checkpoints, ages, tiers, pinned }
    }

    /// The age of the newest checkpoint, on the maintenance clock.
    pub fn idle(&self) -> Option<Duration> {
        self.ages.first().copied()
    }

    /// Forgets checkpoints, a slice at a time. The next sweep frees what only they needed.
    ///
    /// # Errors
    ///
    /// Fails if a restore or saves hold the locks for too long, or if something cannot be removed.
    pub fn forget(&mut self, ids: &BTreeSet<CheckpointId>) -> Result<usize> {
        // A restore under way may need any of them.
        let _lock = Lock::acquire(&self.own.restore_lock(), Instant::now())?;
        let pinned = under_way(&self.own);
        let goes = |id: &&CheckpointId| pinned.as_ref().is_some_and(|pinned| !pinned.contains(id));
        let ids: Vec<CheckpointId> = ids.iter().filter(goes).copied().collect();
        let mut gone = 0;
        for slice in ids.chunks(SLICE) {
            crash::point("maintenance-slice");
            gone += self.store.forget(slice)?;
            thread::sleep(REST);
        }
        let is_there = |it: &Checkpoint| !ids.contains(&it.id);
        let stays: Vec<bool> = self.checkpoints.iter().map(is_there).collect();
        let mut of_ages = stays.iter();
        self.ages.retain(|_| of_ages.next().is_none_or(|stays| *stays));
        let mut of_tiers = stays.iter();
        self.tiers.retain(|_| of_tiers.next().is_none_or(|stays| *stays));
        self.checkpoints.retain(is_there);
        Ok(gone)
    }
}
