//! Frees private objects that no checkpoint of any root needs.

use std::{collections::HashSet, fs, io, time::Instant};

use super::{
    copy, listing,
    objects::{Objects, names_in},
    record::{self, Keeper, Record},
    vault,
};
use crate::{
    error::{Error, Result},
    model::{ContentId, Kind},
    state::State,
};

/// Removes every object that no record needs and returns how many bytes that freed. Waits until
/// `deadline` for those who save. An anchor that stands for something removed goes first.
///
/// If there is a record that cannot be read, nobody knows what it needs, and nothing is removed.
///
/// # Errors
///
/// Fails if somebody saves all the while, or something cannot be listed or removed.
pub fn sweep(state: &State, deadline: Instant) -> Result<u64> {
    let objects = Objects::new(state.objects());
    let _alone = objects.alone(deadline)?;
    let Some(needed) = needed(state, &objects)? else { return Ok(0) };
    remove_anchors(state, &needed)?;
    objects.remove_stale(true)?;
    let mut freed = 0;
    for id in objects.ids()? {
        if !needed.contains(&id) {
            freed += objects.remove(&id)?;
        }
    }
    Ok(freed + vault::sweep(state)?)
}

/// Every object that some record of some root needs; `None` if that cannot be told.
fn needed(state: &State, objects: &Objects) -> Result<Option<HashSet<ContentId>>> {
    let mut needed = HashSet::new();
    for root in record::all_roots(state)? {
        for kept in record::read_all(&root)? {
            let Ok(record) = kept.record else { return Ok(None) };
            mark(objects, &record, &mut needed);
        }
    }
    Ok(Some(needed))
}

/// What cannot be read is damaged already; whatever it would need is of no use without it.
fn mark(objects: &Objects, record: &Record, needed: &mut HashSet<ContentId>) {
    let vault = record.vault.as_ref().map(|vault| vault.state);
    for id in [record.besides, record.outside, vault].into_iter().flatten() {
        let text = objects.read(&id).unwrap_or_default();
        let lines = listing::parse(&id, &text).unwrap_or_default();
        needed.insert(id);
        needed.extend(lines.values().filter_map(|line| line.entry.content).map(|held| held.id));
    }
    let top = record.checkpoint.top.filter(|_| record.keeper == Keeper::Copy);
    let mut unread: Vec<_> = top.into_iter().collect();
    while let Some(id) = unread.pop() {
        if !needed.insert(id) {
            continue;
        }
        for entry in copy::read_directory(objects, &id).unwrap_or_default().values() {
            match (entry.kind, entry.content) {
                (Kind::Directory, Some(content)) => unread.push(content.id),
                (_, Some(content)) => drop(needed.insert(content.id)),
                (_, None) => (),
            }
        }
    }
}

fn remove_anchors(state: &State, needed: &HashSet<ContentId>) -> Result<()> {
    for name in names_in(&state.roots())? {
        let root = state.root_named(&name);
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
