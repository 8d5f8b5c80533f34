//! Helpers for threads: parallel syncing, and whether a second thread is worth starting.

use std::thread;

/// These threads only wait: syncing 23 new objects in 23 directories takes 35–50 ms with eight
/// threads on ext4, and 51–64 ms with one. (One pack of them takes 16–24 ms.)
const THREADS: usize = 8;

/// Syncs many files from several threads, because syncs that overlap share one journal commit and
/// one flush of the disk's cache. Returns the first error.
pub(crate) fn all_at_once<T: Sync, E: Send>(
    all: &[T],
    sync: impl Fn(&T) -> Result<(), E> + Sync,
) -> Result<(), E> {
    let part = all.len().div_ceil(THREADS).max(1);
    let sync_part = &|part: &[T]| part.iter().try_for_each(&sync);
    let mut parts = all.chunks(part);
    let first = parts.next().unwrap_or_default();
    thread::scope(|scope| {
        let (mut others, mut synced) = (Vec::new(), Ok(()));
        for part in parts {
            match thread::Builder::new().spawn_scoped(scope, move || sync_part(part)) {
                Ok(other) => others.push(other),
                Err(_) => synced = synced.and(sync_part(part)),
            }
        }
        synced = synced.and(sync_part(first));
        for other in others {
            let other = other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            synced = synced.and(other);
        }
        synced
    })
}

/// Does `work` on both halves of `all` at the same time if `is_worth_it`, else on all of it. Returns what came
/// of each part, in order.
pub(crate) fn in_halves<T: Sync, R: Send, E: Send>(
    all: &[T],
    is_worth_it: bool,
    work: impl Fn(&[T]) -> Result<R, E> + Sync,
) -> Result<Vec<R>, E> {
    if !is_worth_it || !two_can_work() {
        return work(all).map(|done| vec![done]);
    }
    let (first, second) = all.split_at(all.len() / 2);
    thread::scope(|scope| {
        let other = thread::Builder::new().spawn_scoped(scope, || work(second)).ok();
        let first = work(first);
        let other =
            other.map(|it| it.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        Ok(vec![first?, other.unwrap_or_else(|| work(second))?])
    })
}

/// Whether a second thread can run in parallel. Ignores CPU quotas of a control group: reading them
/// takes six files, and two threads on one core lose little.
pub(crate) fn two_can_work() -> bool {
    super::system::cores() > 1
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn both_halves_are_worked_on_once_and_no_error_is_lost() {
        for count in [0, 1, 2, 7] {
            let all: Vec<usize> = (0..count).collect();
            for is_worth_it in [false, true] {
                let done = in_halves(&all, is_worth_it, |part| Ok::<_, ()>(part.to_vec()));
                assert_eq!(done.unwrap().concat(), all);
                for bad in &all {
                    let work = |part: &[usize]| if part.contains(bad) { Err(*bad) } else { Ok(()) };
                    assert_eq!(in_halves(&all, is_worth_it, work), Err(*bad), "of {count}");
                }
            }
        }
    }

    #[test]
    fn each_is_synced_once_and_no_error_is_lost() {
        for count in [0, 1, 2, 7, 8, 9, 40] {
            let all: Vec<usize> = (0..count).collect();
            let calls = AtomicUsize::new(0);
            let sync = |_: &usize| {
                calls.fetch_add(1, Ordering::Relaxed);
                Ok::<_, usize>(())
            };
            assert_eq!(all_at_once(&all, sync), Ok(()));
            assert_eq!(calls.load(Ordering::Relaxed), count);
            for bad in &all {
                let synced = all_at_once(&all, |it| if it == bad { Err(*it) } else { Ok(()) });
                assert_eq!(synced, Err(*bad), "of {count}");
            }
        }
    }
}
