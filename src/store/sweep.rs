//! Garbage collection of the file store's objects that no checkpoint of any root needs, and merging of
//! their packs.
//!
//! The mark phase runs beside saves, and so does copying what stays of a pack. The sweep phase deletes in slices so short that a hook can
//! wait for one. A save between two slices leaves a record, and the next slice first marks what
//! that record needs.

use std::{
    collections::HashSet,
    ffi::OsString,
    time::{Duration, Instant},
};

use super::{
    LOCK_WAIT, Store, anchor,
    directory::read_directory,
    listing,
    object_stamps::MergedPacks,
    objects::{Objects, PackContents},
    record::{self, Needs},
    repository::{self, PACKS_MAX, Swept, has_room, is_worth_rewriting, which},
};
use crate::{
    crash,
    error::{Error, Result},
    fs::remove_if_there,
    model::{CheckpointId, ContentId, Kind, Storage},
    state::StateDir,
};

/// How long a slice may block saves: less than users notice.
const SLICE: Duration = Duration::from_millis(40);
/// The pause between slices, which gives a waiting save two chances to take the lock.
const REST: Duration = Duration::from_millis(40);

/// Implements [`Store::remove`]: forgets checkpoints and sweeps.
pub(super) fn remove(store: &dyn Store, state: &StateDir, ids: &[CheckpointId]) -> Result<u64> {
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
pub fn sweep(state: &StateDir, deadline: Instant) -> Result<Swept> {
    let objects = Objects::new(state.objects());
    let mut marks = RecordNeeds::default();
    if !marks.look(state, &objects)? {
        return Ok(Swept::default());
    }
    let loose = objects.loose_ids()?.into_iter();
    let loose = loose.filter(|id| !marks.needed.contains(id)).map(Surplus::Loose);
    let mut surplus: Vec<Surplus> = loose.collect();
    let mut condemned = condemned(&objects, &marks.needed)?;
    // The objects that stay go into a new pack first, while saves continue.
    let written = marks.needed.clone();
    let added = objects.copy_out(&mut condemned, |id| written.contains(id), deadline)?;
    crash::point("sweep-copied");
    surplus.extend(condemned.into_iter().map(Surplus::Pack));
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
        while let Some(next) = surplus.pop() {
            if !next.is_needed(&marks.needed, &written) {
                crash::point("sweep-object");
                freed += next.remove(&objects)?;
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
    let freed = freed.saturating_sub(added);
    let swept = repository::sweep(state, deadline)?;
    Ok(Swept { freed: freed + swept.freed, ..swept })
}

/// What a sweep removes, if nothing has come to need it by then.
enum Surplus {
    /// An object with a file of its own.
    Loose(ContentId),
    /// A pack. What was needed of it has been copied.
    Pack(PackContents),
}

impl Surplus {
    fn is_needed(&self, needed: &HashSet<ContentId>, copied: &HashSet<ContentId>) -> bool {
        match self {
            Self::Loose(id) => needed.contains(id),
            Self::Pack(pack) => pack.ids().any(|id| needed.contains(id) && !copied.contains(id)),
        }
    }

    fn remove(&self, objects: &Objects) -> Result<u64> {
        match self {
            Self::Loose(id) => objects.remove(id),
            Self::Pack(pack) => pack.remove(),
        }
    }
}

/// The packs with enough that is not needed, unless there is no room for what must stay of them.
///
/// # Errors
///
/// Fails if a pack is damaged: what the directories in it need is not known.
fn condemned(objects: &Objects, needed: &HashSet<ContentId>) -> Result<Vec<PackContents>> {
    let mut packs = objects.packs_read()?.into_iter().collect::<Result<Vec<_>>>()?;
    packs.retain(|pack| {
        let dead = pack.ids().any(|id| !needed.contains(id));
        dead && is_worth_rewriting(pack.bytes(|id| !needed.contains(id)), pack.bytes(|_| true))
    });
    let stays = |pack: &PackContents| pack.bytes(|id| needed.contains(id));
    if !has_room(&objects.packs_dir(), packs.iter().map(stays).sum()) {
        packs.retain(|pack| pack.ids().all(|id| !needed.contains(id)));
    }
    Ok(packs)
}

/// The packs of which it cannot be told what is in them.
///
/// # Errors
///
/// Fails if they cannot be listed.
pub fn damaged_packs(state: &StateDir) -> Result<Vec<Error>> {
    let damaged = Objects::new(state.objects()).damaged_packs()?;
    Ok(damaged.into_iter().map(|(_, err)| err).collect())
}

/// Puts damaged packs aside. What was in them is written again when it is held again, and what no
/// checkpoint needs can be freed again. Says what was done.
///
/// # Errors
///
/// Fails if saves hold the lock for too long, or if something cannot be renamed.
pub fn put_packs_aside(state: &StateDir) -> Result<Vec<String>> {
    if damaged_packs(state)?.is_empty() {
        return Ok(Vec::new());
    }
    let objects = Objects::new(state.objects());
    let _lock = objects.lock_exclusive(Instant::now() + LOCK_WAIT)?;
    remove_anchors(state, &HashSet::new())?;
    objects.put_damaged_aside()
}

/// Whether there are packs enough for [`merge`].
pub(super) fn is_untidy(objects: &Objects) -> bool {
    objects.pack_count() > PACKS_MAX
}

/// Merges packs if there are many.
///
/// # Errors
///
/// Fails if one cannot be read or written. Nothing is lost then.
pub fn merge(state: &StateDir) -> Result<()> {
    let objects = Objects::new(state.objects());
    if !is_untidy(&objects) {
        return Ok(());
    }
    let mut packs: Vec<PackContents> = objects.packs_read()?.into_iter().flatten().collect();
    packs.sort_by_key(|pack| pack.bytes(|_| true));
    let sizes: Vec<u64> = packs.iter().map(|pack| pack.bytes(|_| true)).collect();
    let chosen = which(&sizes, PACKS_MAX);
    if chosen.len() < 2 || !has_room(&objects.packs_dir(), sizes[chosen.clone()].iter().sum()) {
        return Ok(());
    }
    let mut chosen: Vec<PackContents> = packs.drain(chosen).collect();
    let files: Vec<_> = chosen.iter().map(|pack| pack.path().to_owned()).collect();
    let merged = MergedPacks::new(state, &files);
    objects.copy_out(&mut chosen, |_| true, Instant::now() + LOCK_WAIT)?;
    crash::point("merge-packs");
    // Everything in them is in the new one, so no save needs to be waited for.
    chosen.iter().try_for_each(|pack| pack.remove().map(drop))?;
    merged.record()
}

/// The objects that the records seen so far need.
#[derive(Default)]
struct RecordNeeds {
    seen: HashSet<(OsString, CheckpointId)>,
    needed: HashSet<ContentId>,
}

impl RecordNeeds {
    /// Marks what new records need; returns false if that cannot be determined.
    fn look(&mut self, state: &StateDir, objects: &Objects) -> Result<bool> {
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
            let lines = listing::parse(&id, &text, Storage::Files).unwrap_or_default();
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

fn remove_anchors(state: &StateDir, needed: &HashSet<ContentId>) -> Result<()> {
    for root in record::all_roots(state)? {
        if anchor::read(&root).is_some_and(|top| needed.contains(&top)) {
            continue;
        }
        remove_if_there(&root.anchor())?;
    }
    Ok(())
}
