//! Walks a whole tree with up to two threads.

use std::{
    io,
    thread::{self, ScopedJoinHandle},
};

use super::{
    list::{DirVisit, Lister, Listings, WalkContext},
    queue::{ListingGuard, Queue},
};
use crate::{
    cache::ScanTable,
    fs::{Dir, two_can_work},
};

/// With fewer entries a second thread costs more than it saves: 0.1 ms to start it, against 1.6 µs
/// for each entry.
const ENTRIES_FOR_TWO: u64 = 300;

/// Lists the directory of `visit` and everything below it; only in this thread if `alone`.
///
/// # Errors
///
/// Fails if that directory itself cannot be listed.
pub(super) fn list_all(
    context: &WalkContext<'_>,
    base: Option<&ScanTable>,
    open: &Dir,
    visit: &DirVisit<'_>,
    alone: bool,
) -> io::Result<Listings> {
    let queue = Queue::default();
    let mut first = Lister::new(context, base, &[], Some(&queue));
    first.list(open, visit, true)?;
    let can_share = !alone && two_can_work();
    thread::scope(|scope| {
        let mut second: Option<ScopedJoinHandle<'_, Listings>> = None;
        let mut tried = !can_share;
        while let Some(job) = queue.next() {
            let turn = ListingGuard(&queue);
            if !tried && first.seen >= ENTRIES_FOR_TWO {
                tried = true;
                let queue = &queue;
                let help = move || work(Lister::new(context, base, &[], Some(queue)), queue);
                second = thread::Builder::new().spawn_scoped(scope, help).ok();
            }
            first.take_on(job);
            drop(turn);
        }
        let mut listed = std::mem::take(&mut first.listed);
        if let Some(second) = second {
            listed.append(second.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
        Ok(listed)
    })
}

fn work(mut lister: Lister<'_>, queue: &Queue) -> Listings {
    while let Some(job) = queue.next() {
        let _turn = ListingGuard(queue);
        lister.take_on(job);
    }
    lister.listed
}
