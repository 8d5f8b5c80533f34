//! The queue in which directories wait for an idle thread.

use std::sync::{Condvar, Mutex, PoisonError};

use super::dir_rules::DirRules;
use crate::{fs::Dir, model::DirPath};

/// How many directories may wait, each held open.
const WAITING_MAX: usize = 32;

/// A directory that waits to be listed.
pub(super) struct Job {
    pub(super) open: Dir,
    pub(super) path: DirPath,
    pub(super) depth: usize,
    pub(super) dir_rules: DirRules,
}

/// Directories that wait, and the number being listed.
#[derive(Default)]
pub(super) struct Queue {
    state: Mutex<Waiting>,
    more: Condvar,
}

#[derive(Default)]
struct Waiting {
    jobs: Vec<Job>,
    busy: usize,
}

impl Queue {
    /// Queues a directory for an idle thread, or returns it if enough are waiting.
    pub(super) fn offer(&self, job: Job) -> Option<Job> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.jobs.len() >= WAITING_MAX {
            return Some(job);
        }
        state.jobs.push(job);
        self.more.notify_one();
        None
    }

    /// The next directory, once there is one; `None` when all have been listed.
    pub(super) fn next(&self) -> Option<Job> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(job) = state.jobs.pop() {
                state.busy += 1;
                return Some(job);
            }
            if state.busy == 0 {
                return None;
            }
            state = self.more.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn done(&self) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).busy -= 1;
        self.more.notify_all();
    }
}

/// Counts a directory as listed even if listing it panics, so that no thread waits forever.
pub(super) struct ListingGuard<'q>(pub(super) &'q Queue);

impl Drop for ListingGuard<'_> {
    fn drop(&mut self) {
        self.0.done();
    }
}
