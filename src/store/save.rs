//! What the saves of both stores have in common: waiting for other saves, everything that a
//! checkpoint holds besides its files, its record, and what the cache says of it.

use std::{path::PathBuf, time::Instant};

use super::{
    Draft, LOCK_WAIT, Saved,
    record::{self, FormatVersion, Held, Record, StoreKind},
};
use crate::{
    cache::Facts,
    error::Result,
    fs::{Lock, now_ns},
    model::{Checkpoint, Completeness, ContentId, DefaultModes, Head, SkipReason, Skipped},
    scan::Scan,
    state::RootState,
};

/// What a checkpoint holds and leaves out, as its record says it.
pub(super) struct CheckpointContents {
    /// Which store has `top`.
    pub(super) keeper: StoreKind,
    /// The root's directory.
    pub(super) top: Option<ContentId>,
    /// The permissions of all files that nothing else is recorded of.
    pub(super) default_modes: DefaultModes,
    /// The listing of private files and special files below the root.
    pub(super) overlay: Option<ContentId>,
    /// The listing of entries outside the root.
    pub(super) outside: Option<ContentId>,
    /// The tree with everything private, in a private repository.
    pub(super) private: Option<ContentId>,
    /// The paths outside the root that are held, or known to be absent.
    pub(super) outside_paths: Vec<PathBuf>,
    /// Whether anything was left out for lack of time.
    pub(super) partial: bool,
    /// What was left out.
    pub(super) skipped: Vec<Skipped>,
    /// Where HEAD is.
    pub(super) head: Option<Head>,
    /// The number of staged paths, if it is known.
    pub(super) staged: Option<u64>,
    /// The repositories, the root's own first.
    pub(super) repositories: Vec<Held>,
    /// Files called `.git` that point to no repository.
    pub(super) dangling: Vec<(Vec<u8>, Vec<u8>)>,
}

impl CheckpointContents {
    /// Whether `newest` holds and leaves out the same. Sizes of skipped files do not count: a
    /// growing log is no reason for a checkpoint.
    pub(super) fn are_held_by(&self, newest: &Record) -> bool {
        let left_out = |skipped: &[Skipped]| -> Vec<(Vec<u8>, SkipReason)> {
            skipped.iter().map(|skip| (skip.path.clone(), skip.reason)).collect()
        };
        let old = &newest.checkpoint;
        newest.keeper == self.keeper
            && old.top == self.top
            && old.completeness == Completeness::of_record(self.partial)
            && old.head == self.head
            && newest.default_modes == self.default_modes
            && newest.overlay == self.overlay
            && newest.outside == self.outside
            && left_out(&old.skipped) == left_out(&self.skipped)
            && record::are_same_repositories(&newest.repositories, &self.repositories)
            && newest.dangling == self.dangling
    }

    /// The record of a new checkpoint with them, after the one with the sequence number `newest`.
    pub(super) fn to_record(&self, state: &RootState, draft: &Draft, newest: u64) -> Record {
        let (sequence, id) = record::next(state, newest, draft.taken_at);
        let checkpoint = Checkpoint {
            id,
            sequence,
            taken_at: draft.taken_at,
            reading_ns: draft.taken_at.timestamp_nanos_opt().map(reading_ns),
            cause: draft.cause.clone(),
            top: self.top,
            files: draft.scan.file_count(),
            completeness: Completeness::of_record(self.partial),
            skipped: self.skipped.clone(),
            outside: self.outside_paths.clone(),
            head: self.head.clone(),
            staged: self.staged,
        };
        Record {
            version: FormatVersion,
            checkpoint,
            keeper: self.keeper,
            default_modes: self.default_modes,
            overlay: self.overlay,
            outside: self.outside,
            private: self.private,
            tree: None,
            store: None,
            repositories: self.repositories.clone(),
            dangling: self.dangling.clone(),
        }
    }
}

/// For how long the files of a checkpoint were read that was `begun`, in nanoseconds.
fn reading_ns(begun: i64) -> u64 {
    now_ns().saturating_sub(begun).try_into().unwrap_or(0)
}

/// Waits for the lock of a root. `None` if it is not free in time. Half of the time is reserved for
/// reading.
pub(super) fn lock(state: &RootState, deadline: Option<Instant>) -> Result<Option<Lock>> {
    let now = Instant::now();
    let wait = deadline.map_or(LOCK_WAIT, |deadline| deadline.saturating_duration_since(now) / 2);
    Lock::acquire_if_free(&state.lock(), now + wait)
}

/// The checkpoint that a draft gives way to.
pub(super) fn overtaken(state: &RootState, draft: &Draft) -> Result<Option<Saved>> {
    let newest = match draft.after {
        Some(_) => record::ids(state)?.first().and_then(|id| record::read(state, *id).ok()),
        None => None,
    };
    Ok(draft.gives_way(newest.as_ref().map(|newest| &newest.checkpoint)))
}

/// What the cache says of a scan once its directory `top` is held.
pub(super) fn facts(scan: &Scan, top: ContentId, checkpoint: &Checkpoint) -> Facts {
    Facts {
        anchor: Some(top),
        top: Some(top),
        rules: scan.rules,
        tracked: scan.tracked,
        index: scan.index,
        default_modes: scan.default_modes,
        files: checkpoint.files,
        partial: scan.partial,
        ..Facts::default()
    }
}
