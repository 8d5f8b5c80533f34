//! Frees private objects that no checkpoint of any root needs.
//!
//! What is needed is found out first, while others save; then what is not goes, in slices so short
//! that a hook can wait for one. Whoever saved between two slices has left a record by the time the
//! next one begins, and what that needs is added before anything else goes.

use std::{
    collections::HashSet,
    ffi::OsString,
    fs, io,
    time::{Duration, Instant},
};

use super::{
    copy, git, listing,
    objects::Objects,
    record::{self, Needs},
};
use crate::{
    crash,
    error::{Error, Result},
    model::{CheckpointId, ContentId, Kind},
    state::State,
};

/// How long others may be kept from saving at a time: less than people notice.
const SLICE: Duration = Duration::from_millis(40);
/// How long they have in between: two looks at the lock by whoever waits for it.
const REST: Duration = Duration::from_millis(40);

/// Removes every object that no record needs and returns how many bytes that freed. Waits until
/// `deadline` for those who save. An anchor that stands for something removed goes first.
///
/// If there is a record of which nobody knows what it needs, nothing is removed; see
/// [`record::gc_blocker`].
/// Killed anywhere, what was to go and is still there goes with the next sweep.
///
/// # Errors
///
/// Fails if somebody saves all the while, or something cannot be read, listed or removed.
pub fn sweep(state: &State, deadline: Instant) -> Result<u64> {
    let objects = Objects::new(state.objects());
    let mut marks = Marks::default();
    if !marks.look(state, &objects)? {
        return Ok(0);
    }
    let mut surplus = objects.ids()?;
    surplus.retain(|id| !marks.needed.contains(id));
    let (mut freed, mut is_first) = (0, true);
    loop {
        let lock = objects.lock_exclusive(deadline)?;
        if !marks.look(state, &objects)? {
            return Ok(freed);
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
    let needed = || trees(state);
    Ok(freed + git::sweep(state, deadline, &needed)?)
}

/// The trees in private repositories that the records name now.
///
/// # Errors
///
/// Fails if a record cannot be read.
pub(in crate::store) fn trees(state: &State) -> Result<git::Needed> {
    let mut trees = git::Needed::new();
    for root in record::all_roots(state)? {
        for id in record::ids(&root)? {
            trees.extend(record::needs(&root, id)?.into_iter().flat_map(|needs| needs.trees));
        }
    }
    Ok(trees)
}

/// Every object that some record of some root needs, as far as the records have been seen.
#[derive(Default)]
struct Marks {
    seen: HashSet<(OsString, CheckpointId)>,
    needed: HashSet<ContentId>,
}

impl Marks {
    /// Adds what the records need that were not seen yet; tells whether that could be told.
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
                    // Gone in the meantime, and what only it needed may go too.
                    Ok(None) => (),
                    Err(_) => return Ok(false),
                }
            }
        }
        Ok(true)
    }
}

/// Names every object that is needed. `is_new` says whether to look into it.
///
/// Whatever something damaged would need is of no use without it.
///
/// # Errors
///
/// Fails if the disk does not give one of them: it may another time, and what that needs must still
/// be there.
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
        for entry in unless_damaged(copy::read_directory(objects, &id))?.values() {
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
        if copy::read_anchor(&root).is_some_and(|top| needed.contains(&top)) {
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
