//! Removes files that nothing refers to any more: temporary files of killed processes, ledgers of
//! old sessions, and state directories of roots without checkpoints.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
    time::{Duration, Instant},
};

use chrono::{DateTime, TimeDelta, Utc};

use super::{clock::MaintenanceState, inventory::RootInventory};
use crate::{
    attribution,
    error::{Error, Result},
    fs::{Lock, list_names, remove_if_there, remove_tree, stat_path},
    ledger,
    model::{Checkpoint, Settings},
    plan,
    state::{RootState, StateDir},
    store::record::{self, identity},
};

/// No write takes an hour, so a temporary file this old has no owner.
const TEMPORARY_STAYS: Duration = Duration::from_secs(60 * 60);
/// A new state directory is filled at once, so one that is still empty after a day is abandoned.
const EMPTY_STAYS: Duration = Duration::from_secs(24 * 60 * 60);
/// `doctor` compares the calls of the last week with those that were seen.
const LOG_STAYS: TimeDelta = TimeDelta::days(8);
/// Prefix of a directory that is being removed.
const GONE: &str = "gone-";

/// Removes temporary files of dead processes, and finishes removals that an earlier run began.
pub(super) fn reclaim(state: &StateDir, now: DateTime<Utc>) -> Result<()> {
    for name in list_names(state.dir())? {
        if name.as_encoded_bytes().starts_with(GONE.as_bytes()) {
            let path = state.dir().join(&name);
            remove_tree(&path).map_err(Error::io("remove", &path))?;
        }
    }
    identity::remove_dangling(&state.roots())?;
    let mut dirs = vec![state.dir().to_owned(), state.sessions(), state.conversations()];
    for name in list_names(&state.repositories())? {
        let dir = state.repositories().join(name);
        dirs.extend([dir.join("linked"), dir]);
    }
    for root in record::all_roots(state)? {
        dirs.extend([root.checkpoints(), root.attribution(), root.dir().to_owned()]);
    }
    for dir in dirs {
        for name in list_names(&dir)? {
            let path = dir.join(&name);
            if is_temporary(&name.to_string_lossy()) && is_older(&path, TEMPORARY_STAYS, now) {
                remove_if_there(&path)?;
            }
        }
    }
    Ok(())
}

/// Whether a name is that of a temporary file, as in `cache.tmp-4711-0`.
fn is_temporary(name: &str) -> bool {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let numbers = name.rsplit_once(".tmp-").and_then(|(_, numbers)| numbers.split_once('-'));
    numbers.is_some_and(|(process, number)| is_number(process) && is_number(number))
}

/// Removes the state directory of a root: renames it first, so that it disappears at once.
pub(super) fn remove_orphan(state: &StateDir, root: &RootState) -> Result<()> {
    let name = root.dir().file_name().unwrap_or_default().to_string_lossy();
    let gone = state.dir().join(format!("{GONE}{name}"));
    let _lock = Lock::acquire(&root.lock(), Instant::now())?;
    crate::crash::point("maintenance-remove-orphan");
    fs::rename(root.dir(), &gone).map_err(Error::io("set aside", root.dir()))?;
    remove_tree(&gone).map_err(Error::io("remove", &gone))
}

/// Drops caches and attribution logs that are older than every checkpoint. Does nothing while the
/// clock is in doubt.
pub(super) fn drop_old(
    state: &StateDir,
    inventories: &[RootInventory],
    memory: &MaintenanceState,
    now: DateTime<Utc>,
) -> Result<()> {
    if memory.is_in_doubt() {
        return Ok(());
    }
    for inventory in inventories {
        let is_idle = inventory.idle().is_some_and(|idle| idle > inventory.settings.retention);
        if is_idle {
            // Without a cache the next scan is only slower.
            remove_if_there(&inventory.own.cache())?;
        }
        let oldest_first: Vec<Checkpoint> = inventory.checkpoints.iter().rev().cloned().collect();
        let unbroken = &oldest_first[plan::begin_of_unbroken(&oldest_first)..];
        if is_idle && unbroken.len() <= 1 {
            // The log says who led from one checkpoint to the next.
            let left = inventory.own.attribution();
            remove_tree(&left).map_err(Error::io("remove", &left))?;
        } else if inventory.unreadable.is_empty() {
            let ids: Vec<_> = inventory.checkpoints.iter().map(|one| one.id).collect();
            attribution::drop_contents(&inventory.own, &ids)?;
            // Restores ask what was done since a checkpoint, and `doctor` what was seen of late.
            let oldest = unbroken.first().map_or(now, |oldest| oldest.taken_at);
            let time = oldest.min(now - LOG_STAYS);
            attribution::drop_before(
                &inventory.own,
                time.timestamp_nanos_opt().unwrap_or(i64::MIN),
            )?;
        }
    }
    for root in record::all_roots(state)? {
        // A fork that was not finished is dropped by name.
        let is_fork = root.fork().exists();
        let is_abandoned = !is_fork && !root.location().exists() && record::ids(&root)?.is_empty();
        if is_abandoned && is_older(root.dir(), EMPTY_STAYS, now) {
            remove_orphan(state, &root)?;
        }
    }
    Ok(())
}

/// Drops the ledgers of sessions that name no checkpoint any more, when that has been so for the
/// retention time. Without its ledger, nobody knows which turns use a checkpoint.
pub(super) fn drop_ledgers(
    state: &StateDir,
    inventories: &[RootInventory],
    settings: &Settings,
    memory: &mut MaintenanceState,
) -> Result<()> {
    let mut checkpoints = BTreeSet::new();
    for inventory in inventories {
        checkpoints.extend(inventory.checkpoints.iter().map(|checkpoint| checkpoint.id));
        checkpoints.extend(inventory.unreadable.keys());
        checkpoints.extend(record::quarantined(&inventory.own)?);
    }
    let retention = inventories.iter().map(|inventory| inventory.settings.retention);
    let retention = retention.max().unwrap_or_default().max(settings.retention);
    let dir = state.sessions();
    let names = list_names(&dir)?;
    let stems: BTreeSet<String> = names
        .iter()
        .filter_map(|name| Some(Path::new(name).file_stem()?.to_str()?.to_owned()))
        .collect();
    let mut unneeded = BTreeMap::new();
    for stem in stems {
        let ledger = dir.join(&stem).with_extension("json");
        if !ledger::names_any(&ledger, &checkpoints) {
            let changed = [&ledger, &ledger.with_extension("lock")]
                .map(|path| stat_path(path).map_or(0, |stamp| stamp.mtime_ns));
            unneeded.insert(stem, changed[0].max(changed[1]));
        }
    }
    for (stem, age) in memory.unneeded(&unneeded) {
        let ledger = dir.join(stem).with_extension("json");
        let lock = ledger.with_extension("lock");
        // If the lock is held, its process is still at work.
        if age > retention
            && let Ok(_lock) = Lock::acquire(&lock, Instant::now())
        {
            ledger::remove(&ledger)?;
            remove_if_there(&lock)?;
        }
    }
    Ok(())
}

fn is_older(path: &Path, than: Duration, now: DateTime<Utc>) -> bool {
    let than = i64::try_from(than.as_nanos()).unwrap_or(i64::MAX);
    let now = now.timestamp_nanos_opt().unwrap_or(i64::MIN);
    stat_path(path).is_ok_and(|stamp| now.saturating_sub(stamp.mtime_ns) > than)
}
