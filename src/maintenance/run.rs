//! One maintenance run: takes the inventory, drops checkpoints, frees space, and reports.

use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};

use chrono::DateTime;

use super::{
    clock::{MaintenanceReport, MaintenanceState, Pruned},
    conversations,
    inventory::{RootInventory, all, name_of},
    stale_files, stamp,
};
use crate::{
    config, crash,
    error::{Error, Result},
    fs::{Lock, own_bytes, space, stat_path},
    journal::{self, LineKind},
    model::{Agent, Checkpoint, CheckpointId, SessionId, Settings},
    plan::{self, PrunePlan, Retention, RetentionInput},
    process::Process,
    state::{RootState, StateDir},
    store::{
        RootStatus, Unreadable, maintain, record, repository::give_up_history, sweep, tidy,
        usage::UsageIndex, verify::verify_share,
    },
    ui,
};

/// How long a run waits for saves to finish.
const LOCK_WAIT: Duration = Duration::from_secs(10);
/// In how many runs every byte that is stored is verified once: with a run each day, in two weeks, the time for
/// which checkpoints are kept.
const SHARES: u64 = 14;
/// How long a `prune` of the user's waits for a run, only to note what it did.
const NOTE_WAIT: Duration = Duration::from_secs(2);

/// A session that has ended; all of its checkpoints except the newest may go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndedSession {
    /// Its agent.
    pub agent: Agent,
    /// Its id.
    pub session: SessionId,
}

/// Runs maintenance: applies the limits unless the settings forbid it, and drops the checkpoints of
/// `ended`. Returns `None` if there was nothing to do or another process is already doing it.
///
/// # Errors
///
/// Fails if the state directory cannot be read or written. Whatever was removed by then was due to
/// be removed.
pub fn run(
    process: &Process<'_>,
    state: &StateDir,
    ended: Option<&EndedSession>,
) -> Result<Option<MaintenanceReport>> {
    let settings = config::load(process, None).settings;
    if !state.dir().is_dir() || !(settings.auto_prune || ended.is_some()) {
        return Ok(None);
    }
    // The end of a session is reported once, so this run waits for another one to finish.
    let lock_wait = ended.map_or(Duration::ZERO, |_| LOCK_WAIT);
    let deadline = Instant::now() + lock_wait;
    let Some(_lock) = Lock::acquire_if_free(&state.maintenance_lock(), deadline)? else {
        return Ok(None);
    };
    let mut memory = MaintenanceState::read(state)?;
    memory.tick(process.now, settings.prune_interval);
    let report = MaintenanceReport::default();
    let mut round = Round { process, state, settings, memory, report };
    round.run(ended)?;
    let Round { mut memory, report, .. } = round;
    memory.report = Some(report.clone());
    crash::point("maintenance-write");
    memory.write(state)?;
    stamp(state, process.now).map_err(Error::io("write", &state.maintenance_file()))?;
    journal::write(state, process.now, LineKind::Deed, None, &summary(&report));
    Ok(Some(report))
}

/// Notes what a `prune` of the user's did, and advances the maintenance clock. When the next run is
/// due stays as it is.
///
/// # Errors
///
/// Fails if it cannot be written.
pub fn note_prune(
    process: &Process<'_>,
    state: &StateDir,
    own: &RootState,
    newest_first: &[Checkpoint],
    pruned: Pruned,
) -> Result<()> {
    let path = state.maintenance_file();
    let _lock = Lock::acquire(&state.maintenance_lock(), Instant::now() + NOTE_WAIT)?;
    let last = stat_path(&path).map_or(0, |stamp| stamp.mtime_ns);
    let mut memory = MaintenanceState::read(state)?;
    memory.tick(process.now, config::load(process, None).settings.prune_interval);
    memory.ages(&name_of(own), newest_first);
    memory.pruned = Some(pruned);
    memory.write(state)?;
    stamp(state, DateTime::from_timestamp_nanos(last)).map_err(Error::io("write", &path))
}

/// Maintains the stores: merges packs, and copies borrowed objects as far as the disk limit allows.
///
/// # Errors
///
/// Fails if something cannot be read or written.
fn maintain_stores(process: &Process<'_>, state: &StateDir) -> Result<()> {
    let merged = sweep::merge(state);
    merged.and(maintain(state, room_left(process, state)).map(drop))
}

/// Merges packs where there are many, and maintains the stores that have not been maintained for a while.
///
/// # Errors
///
/// As `maintain_stores`.
pub fn tidy_stores(process: &Process<'_>, state: &StateDir) -> Result<()> {
    let merged = sweep::merge(state);
    merged.and(tidy(state, room_left(process, state)))
}

/// How many bytes the stores may grow by.
fn room_left(process: &Process<'_>, state: &StateDir) -> u64 {
    let settings = config::load(process, None).settings;
    settings.max_total_size.saturating_sub(own_bytes(state.dir()))
}

fn summary(report: &MaintenanceReport) -> String {
    let dropped = ui::count(report.dropped as u64, "checkpoint");
    let mut text = format!("maintenance: {dropped} dropped, {} freed", ui::size(report.freed));
    if report.orphans > 0 {
        let gone = ui::count(report.orphans as u64, "directory that is gone");
        text.push_str(&format!(", nothing kept of {gone}"));
    }
    for unmet in &report.unmet {
        text.push_str("; ");
        text.push_str(unmet);
    }
    text
}

struct Round<'a, 'p> {
    process: &'a Process<'p>,
    state: &'a StateDir,
    settings: Settings,
    memory: MaintenanceState,
    report: MaintenanceReport,
}

impl Round<'_, '_> {
    fn run(&mut self, ended: Option<&EndedSession>) -> Result<()> {
        stale_files::reclaim(self.state, self.process.now)?;
        let (mut inventories, unreadable) = all(self.process, self.state, &mut self.memory)?;
        let is_complete = unreadable.is_empty();
        self.report.unmet.extend(unreadable);
        for inventory in &mut inventories {
            let mut goes = BTreeSet::new();
            if let Some(ended) = ended {
                let plan = inventory.retention_input().end_session(ended.agent, &ended.session);
                goes.extend(plan.goes.into_keys());
            }
            if self.settings.auto_prune {
                goes.extend(self.plan(inventory).goes.into_keys());
            }
            self.forget(inventory, &goes);
            if let Err(err) = self.give_up(inventory) {
                let path = ui::escape_path(&inventory.place.path);
                self.report.unmet.push(format!("cannot give up what is damaged of {path}: {err}"));
            }
        }
        self.sweep();
        self.verify();
        if self.settings.auto_prune {
            // While a record blocks freeing, dropping checkpoints would gain nothing.
            if record::gc_blocker(self.state)?.is_none() {
                self.make_room(&mut inventories);
            }
            if is_complete {
                conversations::drop_unused_by(self.process, self.state, &inventories)?;
            }
            self.report.unmet.extend(unmet(self.state, &self.settings));
            self.remove_orphans(&inventories);
            let now = self.process.now;
            stale_files::drop_old(self.state, &inventories, &self.memory, now)?;
            if is_complete {
                let memory = &mut self.memory;
                stale_files::drop_ledgers(self.state, &inventories, &self.settings, memory)?;
            }
            // A failure costs no data: packs stay unmerged and objects stay borrowed until the next
            // run.
            let _later = maintain_stores(self.process, self.state);
        }
        let roots = self.state.roots();
        let is_there = |name: &str| roots.join(name).is_dir();
        self.memory.retain(is_there);
        Ok(())
    }

    fn plan(&mut self, inventory: &RootInventory) -> PrunePlan {
        let retention = inventory.settings.retention;
        let is_gone = inventory.standing == RootStatus::Gone;
        let gone_for = self.memory.gone(&inventory.name, is_gone);
        if is_gone && self.settings.delete_orphans && gone_for > retention {
            return inventory.retention_input().clear();
        }
        inventory.retention_input().thin(Retention::of(&inventory.settings))
    }

    /// Forgets checkpoints of one root, a few at a time.
    fn forget(&mut self, inventory: &mut RootInventory, ids: &BTreeSet<CheckpointId>) {
        if ids.is_empty() {
            return;
        }
        match inventory.forget(ids) {
            Ok(gone) => self.report.dropped += gone,
            Err(err) => {
                let path = ui::escape_path(&inventory.place.path);
                self.report.unmet.push(format!("cannot drop checkpoints of {path}: {err}"));
            }
        }
    }

    /// Gives up records that have been unreadable for longer than the retention time. The next
    /// sweep frees what only they may have needed.
    fn give_up(&mut self, inventory: &RootInventory) -> Result<()> {
        let is_lost = |why: Unreadable| match why {
            Unreadable::Damaged | Unreadable::IoError => true,
            Unreadable::Newer => false,
        };
        let unreadable = inventory.unreadable.iter().filter(|(_, why)| is_lost(**why));
        let mut damaged: Vec<CheckpointId> = unreadable.map(|(id, _)| *id).collect();
        damaged.extend(record::quarantined(&inventory.own)?);
        let ages = self.memory.damaged(&inventory.name, &damaged);
        let is_over = |age: Duration| age > inventory.settings.retention;
        let over = damaged.into_iter().zip(ages).filter(|(_, age)| is_over(*age));
        let over: Vec<CheckpointId> = over.map(|(id, _)| id).collect();
        if self.settings.auto_prune && !over.is_empty() {
            let _lock = Lock::acquire(&inventory.own.lock(), Instant::now() + LOCK_WAIT)?;
            crash::point("maintenance-give-up");
            over.into_iter().try_for_each(|id| record::give_up(&inventory.own, id))?;
        }
        Ok(())
    }

    /// Verifies a share of the files with objects.
    fn verify(&mut self) {
        match verify_share(self.state, &self.memory.verified, SHARES) {
            Ok(share) => {
                self.memory.verified = share.last;
                self.report.unmet.extend(share.damaged.iter().map(|name| {
                    let name = ui::escape(name.as_bytes());
                    format!("{name} was damaged and is set aside; `beforehand check` says more")
                }));
            }
            Err(err) => self.report.unmet.push(format!("cannot verify what is stored: {err}")),
        }
    }

    fn sweep(&mut self) {
        match sweep::sweep(self.state, Instant::now() + LOCK_WAIT) {
            Ok(swept) => self.report.freed += swept.freed,
            Err(err) => self.report.unmet.push(format!("cannot free unused contents: {err}")),
        }
    }

    /// Drops the oldest checkpoints of the largest roots until the limits hold.
    fn make_room(&mut self, inventories: &mut [RootInventory]) {
        let mut excess = excess_bytes(self.state, &self.settings);
        if excess > 0 {
            // No file of any checkpoint depends on either.
            match give_up_history(self.state) {
                Ok(freed) => self.report.freed += freed,
                Err(err) => self.report.unmet.push(format!("cannot free old history: {err}")),
            }
            match conversations::give_up(self.state) {
                Ok(freed) => self.report.freed += freed,
                Err(err) => self.report.unmet.push(format!("cannot free conversations: {err}")),
            }
            excess = excess_bytes(self.state, &self.settings);
        }
        if excess == 0 {
            return;
        }
        let inputs: Vec<RetentionInput<'_>> =
            inventories.iter().map(RootInventory::retention_input).collect();
        let owns: Vec<&RootState> = inventories.iter().map(|inventory| &inventory.own).collect();
        let mut goes = plan_room(self.state, &inputs, &owns, excess);
        drop((inputs, owns));
        for (inventory, goes) in inventories.iter_mut().zip(&mut goes) {
            self.forget(inventory, goes);
        }
        if goes.iter().any(|goes| !goes.is_empty()) {
            self.sweep();
        }
    }

    /// Removes the state of roots that no longer exist and have no checkpoints left.
    fn remove_orphans(&mut self, inventories: &[RootInventory]) {
        for inventory in inventories.iter().filter(|it| it.standing == RootStatus::Gone) {
            let is_empty = inventory.checkpoints.is_empty()
                && record::ids(&inventory.own).is_ok_and(|ids| ids.is_empty());
            let is_gone = RootStatus::of(&inventory.place) == RootStatus::Gone;
            if is_empty && is_gone && stale_files::remove_orphan(self.state, &inventory.own).is_ok()
            {
                self.report.orphans += 1;
            }
        }
    }
}

/// Size and free space of the disk with the state directory, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Disk {
    /// Total size.
    pub size: u64,
    /// Free space available to this user.
    pub free: u64,
}

impl Disk {
    /// Asks the system; `None` if it does not say.
    pub fn of(state: &StateDir) -> Option<Self> {
        let (size, free) = space(state.dir()).ok()?;
        Some(Self { size, free })
    }
}

/// How many bytes must be freed to meet the limits.
fn excess_bytes(state: &StateDir, settings: &Settings) -> u64 {
    let over = own_bytes(state.dir()).saturating_sub(settings.max_total_size);
    over.max(missing(state, settings))
}

/// How far the free space on the disk is below its floor.
fn missing(state: &StateDir, settings: &Settings) -> u64 {
    let disk = Disk::of(state);
    disk.map_or(0, |disk| settings.free_space_floor.of(disk.size).saturating_sub(disk.free))
}

/// Selects the checkpoints of each root that must go to free `excess` bytes, as far as any may go.
pub fn plan_room(
    state: &StateDir,
    inputs: &[RetentionInput<'_>],
    owns: &[&RootState],
    excess: u64,
) -> Vec<BTreeSet<CheckpointId>> {
    let lines: Vec<Vec<CheckpointId>> =
        inputs.iter().map(|retention_input| retention_input.may_go()).collect();
    let mut usage = UsageIndex::new(state);
    for (n, (own, line)) in owns.iter().zip(&lines).enumerate() {
        usage.add(n, own, line);
    }
    let mut dropped = vec![BTreeSet::new(); lines.len()];
    for (line, id) in plan::evict(&lines, &usage.chunks(), excess) {
        dropped[line].insert(id);
    }
    dropped
}

/// The limits that are still exceeded when nothing more may go, as message fragments.
fn unmet(state: &StateDir, settings: &Settings) -> Vec<String> {
    let total = own_bytes(state.dir());
    let mut unmet = Vec::new();
    if total > settings.max_total_size {
        let (total, max) = (ui::size(total), ui::size(settings.max_total_size));
        unmet.push(format!("{total} are taken of {max}, and what is left must stay"));
    }
    if let Some(disk) = Disk::of(state)
        && missing(state, settings) > 0
    {
        let (free, floor) =
            (ui::size(disk.free), ui::size(settings.free_space_floor.of(disk.size)));
        unmet.push(format!("only {free} of the disk are free, and {floor} should be"));
    }
    unmet
}
