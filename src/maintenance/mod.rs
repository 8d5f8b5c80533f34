//! Keeps the store within its limits, off the way of every call.
//!
//! A hook that has saved something looks at one file's time; at most once in `prune_interval` it
//! starts `turnback housekeep`, which goes on by itself: a short life, nice, and in slices, so that
//! a save meanwhile never waits for long. Killed anywhere it leaves nothing but work for the
//! next one.

mod clock;
mod inventory;
mod run;
mod space;
mod stale_files;
pub mod warm;

use std::{
    ffi::OsString,
    fs::{File, OpenOptions},
    io,
    os::unix::fs::OpenOptionsExt,
    time::{Duration, SystemTime},
};

use chrono::{DateTime, TimeDelta, Utc};

pub use clock::{MaintenanceState, Report};
pub use inventory::{RootInventory, all, pins};
pub use run::{EndedSession, maintain_repositories, run};
pub use space::{Disk, plan as plan_room, unmet};

use crate::{
    fs::{create_private_dirs, hand_over, stat_path},
    journal::{self, Line, LineKind},
    model::{SessionId, Settings},
    process::Process,
    state::State,
};

/// A round that was started and never heard of again is tried once more after this.
const RETRY_AFTER: Duration = Duration::from_secs(10 * 60);
/// Two processes that start in one second may see each other's stamps from the future.
const AHEAD_NS: i64 = 60_000_000_000;

/// Starts a round if it is time for one. Costs one look at a file if it is not.
pub fn start_if_due(process: &Process<'_>, state: &State, settings: &Settings) {
    if settings.auto_prune && is_due(state, settings.prune_interval, process.now) {
        start(process, state, settings.prune_interval, &["housekeep".into()]);
    }
}

/// Starts a round after the end of a session, to drop its checkpoints.
pub fn start_after_session(
    process: &Process<'_>,
    state: &State,
    settings: &Settings,
    agent: &str,
    session: &SessionId,
) {
    let args: [OsString; 4] =
        ["housekeep".into(), "--ended".into(), agent.into(), session.0.clone().into()];
    start(process, state, settings.prune_interval, &args);
}

/// Whether it is time for a round.
pub fn is_due(state: &State, interval: Duration, now: DateTime<Utc>) -> bool {
    let Ok(stamp) = stat_path(&state.maintenance_file()) else { return true };
    let age = now.timestamp_nanos_opt().unwrap_or(i64::MAX).saturating_sub(stamp.mtime_ns);
    let interval = i64::try_from(interval.as_nanos()).unwrap_or(i64::MAX);
    // A time far ahead is one that the clock showed by mistake.
    !(-AHEAD_NS..interval).contains(&age)
}

fn start(process: &Process<'_>, state: &State, interval: Duration, args: &[OsString]) {
    // The next call must not start another one, nor wait a whole day if this one dies.
    let since = TimeDelta::from_std(interval.saturating_sub(RETRY_AFTER)).unwrap_or(TimeDelta::MAX);
    let again = process.now.checked_sub_signed(since).unwrap_or(process.now);
    let made = create_private_dirs(state.dir()).map_err(io::Error::other);
    let started = made.and_then(|()| stamp(state, again)).and_then(|()| process.start_aside(args));
    if let Err(err) = started {
        let text = format!("could not start housekeeping: {err}");
        journal::write(state, &Line { at: process.now, kind: LineKind::Trouble, root: None, text });
    }
}

/// Gives the file that says when the last round was another time.
fn stamp(state: &State, at: DateTime<Utc>) -> io::Result<()> {
    // A pipe that was put there has no reader, and opening it would block.
    let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
    let flags = flags.bits().cast_signed();
    let mut options = OpenOptions::new();
    let file: File = options
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .custom_flags(flags)
        .open(state.maintenance_file())?;
    hand_over(&file, &state.maintenance_file());
    file.set_modified(SystemTime::from(at))
}
