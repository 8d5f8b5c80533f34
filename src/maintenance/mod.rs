//! Enforces the store's limits in the background, outside the hook path.
//!
//! After a save, the hook looks at the time of one file. At most once in `prune_interval` it starts
//! `beforehand maintain` as a detached, low-priority process. That process works in short slices, so
//! that a concurrent save never waits for long. If it is killed, the next run does what is left.

mod clock;
pub mod conversations;
mod inventory;
mod run;
mod stale_files;
pub mod warm;

use std::{
    ffi::OsString,
    fs::File,
    io,
    os::unix::fs::OpenOptionsExt,
    time::{Duration, SystemTime},
};

use chrono::{DateTime, TimeDelta, Utc};

pub use clock::{MaintenanceReport, MaintenanceState, Pruned};
pub use inventory::{RootInventory, ages, all, pins, tiers};
pub use run::{Disk, EndedSession, note_prune, plan_room, run, tidy_stores};

use crate::{
    fs::{create_private_dirs, hand_over, open_options, stat_path},
    journal::{self, LineKind},
    model::{SessionId, Settings},
    process::Process,
    state::StateDir,
};

/// A run that was started and never finished is retried after this time.
const RETRY_AFTER: Duration = Duration::from_secs(10 * 60);
/// Two processes that start within a second may see each other's stamps as lying in the future.
const AHEAD_NS: i64 = 60_000_000_000;

/// Starts a run if one is due. Costs one stat if not.
pub fn start_if_due(process: &Process<'_>, state: &StateDir, settings: &Settings) {
    if settings.auto_prune && is_due(state, settings.prune_interval, process.now) {
        start(process, state, settings.prune_interval, &["maintain".into()]);
    }
}

/// Starts a run that drops the checkpoints of a session that has ended.
pub fn start_after_session(
    process: &Process<'_>,
    state: &StateDir,
    settings: &Settings,
    agent: &str,
    session: &SessionId,
) {
    let args: [OsString; 4] =
        ["maintain".into(), "--ended".into(), agent.into(), session.0.clone().into()];
    start(process, state, settings.prune_interval, &args);
}

/// Whether a run is due.
pub fn is_due(state: &StateDir, interval: Duration, now: DateTime<Utc>) -> bool {
    let Ok(stamp) = stat_path(&state.maintenance_file()) else { return true };
    let age = now.timestamp_nanos_opt().unwrap_or(i64::MAX).saturating_sub(stamp.mtime_ns);
    let interval = i64::try_from(interval.as_nanos()).unwrap_or(i64::MAX);
    // A time far in the future was written while the clock was wrong.
    !(-AHEAD_NS..interval).contains(&age)
}

fn start(process: &Process<'_>, state: &StateDir, interval: Duration, args: &[OsString]) {
    // Sets the time so that the next call does not start a second run, but a run that dies is
    // retried soon.
    let since = TimeDelta::from_std(interval.saturating_sub(RETRY_AFTER)).unwrap_or(TimeDelta::MAX);
    let again = process.now.checked_sub_signed(since).unwrap_or(process.now);
    let made = create_private_dirs(state.dir()).map_err(io::Error::other);
    let started = made.and_then(|()| stamp(state, again)).and_then(|()| process.start_aside(args));
    if let Err(err) = started {
        let text = format!("could not start maintenance: {err}");
        journal::write(state, process.now, LineKind::Trouble, None, &text);
    }
}

/// Sets the modification time of the file that tells when the last run was.
fn stamp(state: &StateDir, at: DateTime<Utc>) -> io::Result<()> {
    let file: File = open_options()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(state.maintenance_file())?;
    hand_over(&file, &state.maintenance_file());
    file.set_modified(SystemTime::from(at))
}
