//! Garbage collection of the private objects that no checkpoint of any root needs.
//!
//! The mark phase runs beside saves. The sweep phase deletes in slices so short that a hook can
//! wait for one. A save between two slices leaves a record, and the next slice first marks what
//! that record needs.

use std::{
    collections::HashSet,
    ffi::OsString,
    fs, io,
    time::{Duration, Instant},
};

use super::{
    LOCK_WAIT, Store, anchor,
    directory::read_directory,
    listing,
    objects::Objects,
    record::{self, Needs},
    repository::{self, Swept},
};
use crate::{
    crash,
    error::{Error, Result},
    model::{CheckpointId, ContentId, Kind},
    state::State,
};

/// How long a slice may block saves: less than users notice.
const SLICE: Duration = Duration::from_millis(40);
/// The pause between slices, which gives a waiting save two chances to take the lock.
const REST: Duration = Duration::from_millis(40);

/// Implements [`Store::remove`]: forgets checkpoints and sweeps.
pub(super) fn remove(store: &dyn Store, state: &State, ids: &[CheckpointId]) -> Result<u64> {
    if store.forget(ids)? == 0 {
        return Ok(0);
    }
    match sweep(state, Instant::now() + LOCK_WAIT) {
        // The checkpoints are gone; the next removal frees their objects.
        Err(Error::Busy { .. }) => Ok(0),
        swept => swept.map(|swept| swept.freed),
    }
}

/// Removes every object that no record needs. Waits until `deadline` for saves. Removes an anchor
/// before the object it names.
///
/// Removes nothing while the needs of a record are unknown; see [`record::gc_blocker`]. If
/// it is killed, the next sweep does the rest.
///
/// # Errors
///
/// Fails if saves hold the lock for too long, or if something cannot be read, listed or removed.
pub fn sweep(state: &State, deadline: Instant) -> Result<Swept> {
    let objects = Objects::new(state.objects());
    let mut marks = Marks::default();
    if !marks.look(state, &objects)? {
        return Ok(Swept::default());
    }
    let mut surplus = objects.ids()?;
    surplus.retain(|id| !marks.needed.contains(id));
    let (mut freed, mut is_first) = (0, true);
    loop {
        let lock = objects.lock_exclusive(deadline)?;
        if !marks.look(state, &objects)? {
            return Ok(Swept { freed, is_busy: false });
        }
        remove_anchors(state, &marks.needed)?;
        if std::mem::take(&mut is_first) {
            objects.remove_stale(true)?;
        }
        let until = Instant::now() + SLICE;
        while let Some(id) = surplus.pop() {
            if !marks.needed.contains(&id) {
                crash::point("sweep-object");
                freed += objects.remove(&id)?;
            }
            if Instant::now() > until {
                break;
            }
        }
        drop(lock);
        if surplus.is_empty() {
            break;
        }
        std::thread::sleep(REST);
    }
    let swept = repository::sweep(state, deadline)?;
    Ok(Swept { freed: freed + swept.freed, ..swept })
}

/// The objects that the records seen so far need.
#[derive(Default)]
struct Marks {
    seen: HashSet<(OsString, CheckpointId)>,
    needed: HashSet<ContentId>,
}

impl Marks {
    /// Marks what new records need; returns false if that cannot be determined.
    fn look(&mut self, state: &State, objects: &Objects) -> Result<bool> {
        for root in record::all_roots(state)? {
            let name = root.dir().file_name().unwrap_or_default().to_owned();
            if !record::quarantined(&root)?.is_empty() {
                return Ok(false);
            }
            for id in record::ids(&root)? {
                if !self.seen.insert((name.clone(), id)) {
                    continue;
                }
                match record::needs(&root, id) {
                    Ok(Some(needs)) => mark(objects, &needs, &mut |id| self.needed.insert(id))?,
                    // The checkpoint was removed meanwhile, and what only it needed may go too.
                    Ok(None) => (),
                    Err(_) => return Ok(false),
                }
            }
        }
        Ok(true)
    }
}

/// Passes the id of every needed object to `is_new`, which returns whether to descend into it.
///
/// A damaged object is not descended into: whatever it names is useless without it.
///
/// # Errors
///
/// Fails if an object cannot be read because of an I/O error: it may be readable later, so what it
/// names must stay.
pub(super) fn mark(
    objects: &Objects,
    needs: &Needs,
    is_new: &mut impl FnMut(ContentId) -> bool,
) -> Result<()> {
    for id in needs.listings.iter().copied() {
        if is_new(id) {
            let text = unless_damaged(objects.read(&id))?;
            let lines = listing::parse(&id, &text).unwrap_or_default();
            for content in lines.values().filter_map(|line| line.entry.content) {
                is_new(content.id);
            }
        }
    }
    let mut unread: Vec<_> = needs.top.into_iter().collect();
    while let Some(id) = unread.pop() {
        if !is_new(id) {
            continue;
        }
        for entry in unless_damaged(read_directory(objects, &id))?.values() {
            match (entry.kind, entry.content) {
                (Kind::Directory, Some(content)) => unread.push(content.id),
                (_, Some(content)) => drop(is_new(content.id)),
                (_, None) => (),
            }
        }
    }
    Ok(())
}

fn unless_damaged<T: Default>(read: Result<T>) -> Result<T> {
    match read {
        Err(Error::Damaged { .. }) => Ok(T::default()),
        read => read,
    }
}

fn remove_anchors(state: &State, needed: &HashSet<ContentId>) -> Result<()> {
    for root in record::all_roots(state)? {
        if anchor::read(&root).is_some_and(|top| needed.contains(&top)) {
            continue;
        }
        let path = root.anchor();
        match fs::remove_file(&path) {
            Err(err)
                if !matches!(
                    err.kind(),
                    io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
                ) =>
            {
                return Err(Error::io("remove", &path)(err));
            }
            _ => (),
        }
    }
    Ok(())
}
