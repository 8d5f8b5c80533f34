//! Measures disk usage against the limits, and plans which checkpoints go when space is short.

use std::collections::BTreeSet;

use crate::{
    fs::{own_bytes, space},
    model::{CheckpointId, Settings},
    plan::{self, RetentionInput},
    state::{RootState, StateDir},
    store::usage::UsageIndex,
    ui,
};

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
pub(super) fn excess(state: &StateDir, settings: &Settings) -> u64 {
    let over = own_bytes(state.dir()).saturating_sub(settings.max_total_size);
    over.max(missing(state, settings))
}

/// How far the free space on the disk is below its floor.
fn missing(state: &StateDir, settings: &Settings) -> u64 {
    let disk = Disk::of(state);
    disk.map_or(0, |disk| settings.free_space_floor.of(disk.size).saturating_sub(disk.free))
}

/// Selects the checkpoints of each root that must go to free `excess` bytes, as far as any may go.
pub fn plan(
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
pub(super) fn unmet(state: &StateDir, settings: &Settings) -> Vec<String> {
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
