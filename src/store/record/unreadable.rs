//! Unreadable records: lists them, determines what they still need, salvages or quarantines them.
//!
//! A record that is valid JSON except for a value or two still tells what it needs. Any other may
//! need anything, so nothing is freed until its retention time is over. A record that a newer
//! beforehand wrote is neither; it is left alone.

use std::{collections::BTreeMap, fs, path::PathBuf};

use serde_json::Value;

use super::{
    Record, RecordEntry, SIZE_MAX_BYTES, StoreKind, all_roots, path_of, placeholder, read_all,
    read_entry, time_of,
};
use crate::{
    error::{Error, Result},
    fs::{create_private_dirs, list_names, read_small, remove_if_there, sync_dir},
    model::{Checkpoint, CheckpointId, ContentId},
    state::{RootState, StateDir},
    store::{Damage, objects::Objects},
};

/// The objects that a record names directly.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// A directory of the file store.
    pub top: Option<ContentId>,
    /// Listings of the file store.
    pub listings: Vec<ContentId>,
    /// Trees, each with the name of its private repository.
    pub trees: Vec<(String, ContentId)>,
}

impl Record {
    /// The objects that the record names.
    pub fn needs(&self) -> Needs {
        let top = self.checkpoint.top.filter(|_| self.keeper == StoreKind::Git);
        let own = [self.tree, self.private, top].into_iter().flatten();
        let own = own.filter_map(|tree| Some((self.store.clone()?, tree)));
        let held = self.repositories.iter().map(|held| (held.store.clone(), held.tree));
        let listings = [self.overlay, self.outside].into_iter().flatten();
        Needs {
            top: self.checkpoint.top.filter(|_| self.keeper == StoreKind::Copy),
            listings: listings.filter(|_| self.keeper == StoreKind::Copy).collect(),
            trees: own.chain(held).collect(),
        }
    }
}

/// Why a record cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unreadable {
    /// A newer beforehand wrote it.
    Newer,
    /// It is damaged.
    Damaged,
    /// An I/O error: the record may be intact, and readable later.
    IoError,
}

/// The records of a root that cannot be read.
///
/// # Errors
///
/// Fails if they cannot be listed.
pub fn unreadable(state: &RootState) -> Result<BTreeMap<CheckpointId, Unreadable>> {
    Ok(read_all(state)?.iter().filter_map(RecordEntry::unreadable).collect())
}

/// Why a record or a pack cannot be read.
pub(super) fn why(err: &Error) -> Unreadable {
    match err {
        Error::FormatTooNew { .. } => Unreadable::Newer,
        Error::Io { .. } => Unreadable::IoError,
        _ => Unreadable::Damaged,
    }
}

/// Whether a record is gone or damaged, so that its copy stands for it. One that a newer beforehand wrote, or
/// that may be readable later, is neither.
pub(in crate::store) fn is_lost(err: &Error) -> bool {
    matches!(err, Error::NoSuchCheckpoint { .. }) || why(err) == Unreadable::Damaged
}

/// Whether a newer beforehand wrote the record of a checkpoint.
pub fn is_newer(state: &RootState, id: CheckpointId) -> bool {
    let kept = read_entry(state, id).ok().flatten();
    kept.and_then(|kept| kept.record.err()).is_some_and(|err| why(&err) == Unreadable::Newer)
}

/// What a record needs. For a damaged one only if that is certain; `None` if there is no such
/// record.
///
/// # Errors
///
/// Fails if it cannot be determined.
pub fn needs(state: &RootState, id: CheckpointId) -> Result<Option<Needs>> {
    let Some(kept) = read_entry(state, id)? else { return Ok(None) };
    match kept.record {
        Ok(record) => Ok(Some(record.needs())),
        Err(err @ (Error::FormatTooNew { .. } | Error::Io { .. })) => Err(err),
        Err(err) => match salvage_record(state, id) {
            Some(rest) => Ok(Some(rest.needs())),
            None => Err(err),
        },
    }
}

/// A record or a pack that blocks freeing because its needs are unknown, and why it cannot be read;
/// `None` if nothing blocks.
///
/// # Errors
///
/// Fails if the roots or the packs cannot be listed.
pub fn gc_blocker(state: &StateDir) -> Result<Option<(PathBuf, Unreadable)>> {
    gc_blocker_among(state, |root| Ok(unreadable(root)?.into_keys().collect()))
}

/// The same, where it is known which records of a root cannot be read.
///
/// # Errors
///
/// Fails if the roots or the packs cannot be listed, or if `unread` does.
pub fn gc_blocker_among(
    state: &StateDir,
    unread: impl Fn(&RootState) -> Result<Vec<CheckpointId>>,
) -> Result<Option<(PathBuf, Unreadable)>> {
    if let Some((path, err)) = Objects::new(state.objects()).damaged_packs()?.pop() {
        return Ok(Some((path, why(&err))));
    }
    for root in all_roots(state)? {
        // What a damaged record needs may be certain nevertheless.
        for id in unread(&root)? {
            if let Err(err) = needs(&root, id) {
                return Ok(Some((path_of(&root, id), why(&err))));
            }
        }
        if let Some(id) = quarantined(&root)?.first() {
            return Ok(Some((quarantine_path(&root, *id), Unreadable::Damaged)));
        }
    }
    Ok(None)
}

/// Salvages damaged records, or quarantines them, and returns what was done. `copy` supplies the copy that a
/// private repository has of a record; without one, what is left of the record is used. What the records may need
/// is kept for now. The caller holds the root's lock.
///
/// # Errors
///
/// Fails if the state directory cannot be written. Each record is then either unchanged or done.
pub(in crate::store) fn salvage_all(
    state: &RootState,
    copy: impl Fn(CheckpointId) -> Option<Record>,
) -> Result<Vec<String>> {
    let mut done = Vec::new();
    for (id, _) in unreadable(state)?.into_iter().filter(|(_, why)| *why == Unreadable::Damaged) {
        let (record, from) = match copy(id) {
            Some(copy) => (Some(copy), "its copy"),
            None => (salvage_record(state, id), "what was left of it"),
        };
        if let Some(record) = record {
            super::rewrite(state, &record)?;
            done.push(format!("made checkpoints/{id}.json again from {from}"));
        } else {
            quarantine(state, id)?;
            done.push(format!(
                "put checkpoints/{id}.json aside as damaged/{id}.json: nothing is left in it, and what it may have \
                 named is kept for a while"
            ));
        }
    }
    Ok(done)
}

fn quarantine(state: &RootState, id: CheckpointId) -> Result<()> {
    let path = path_of(state, id);
    create_private_dirs(&state.damaged())?;
    fs::rename(&path, quarantine_path(state, id)).map_err(Error::io("put aside", &path))?;
    sync_dir(&state.damaged())?;
    sync_dir(&state.checkpoints())
}

/// The ids of quarantined records.
///
/// # Errors
///
/// Fails if they cannot be listed.
pub fn quarantined(state: &RootState) -> Result<Vec<CheckpointId>> {
    let names = list_names(&state.damaged())?;
    let id = |name: &std::ffi::OsString| CheckpointId::parse(name.to_str()?.strip_suffix(".json")?);
    Ok(names.iter().filter_map(id).collect())
}

/// Removes an unreadable or quarantined record once its retention time is over.
///
/// # Errors
///
/// Fails if it could not be removed.
pub fn give_up(state: &RootState, id: CheckpointId) -> Result<()> {
    for path in [path_of(state, id), quarantine_path(state, id)] {
        remove_if_there(&path)?;
    }
    Ok(())
}

/// The quarantined records of a root, as findings of a check.
///
/// # Errors
///
/// Fails if they cannot be listed.
pub fn quarantine_damage(state: &RootState) -> Result<Vec<Damage>> {
    let why = "it could not be read; what only it may name is kept for a while";
    let damage = |id| Damage::new(Some(id), format!("damaged/{id}.json"), why.to_owned());
    Ok(quarantined(state)?.into_iter().map(damage).collect())
}

fn quarantine_path(state: &RootState, id: CheckpointId) -> PathBuf {
    state.damaged().join(format!("{id}.json"))
}

/// Salvages a damaged record: either everything it names, or `None`. Only what is told of the checkpoint itself
/// may be damaged.
fn salvage_record(state: &RootState, id: CheckpointId) -> Option<Record> {
    let bytes = read_small(&path_of(state, id), SIZE_MAX_BYTES).ok()??;
    let mut value: Value = serde_json::from_slice(&bytes).ok()?;
    let taken_at = time_of(&value);
    let then = value.get("checkpoint")?;
    let is_it = then["id"] == id.to_string();
    let top = match then.get("top") {
        Some(top) => Some(ContentId::parse(top.as_str()?)?),
        None => None,
    };
    let why = "what is left of a damaged record";
    let checkpoint = Checkpoint { top, ..placeholder(id, taken_at, why) };
    value["checkpoint"] = serde_json::to_value(checkpoint).ok()?;
    let bytes = serde_json::to_vec(&value).ok()?;
    Record::from_json("x", &bytes).ok().filter(|_| is_it)
}
