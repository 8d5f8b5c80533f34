//! The record of a checkpoint: a private JSON file with everything except its files, the same for
//! both stores. Also `root.json`, one for each root. Hides the formats.

pub mod identity;

mod held;
mod location;
mod packed;
mod record_cache;
mod unreadable;
mod version;
mod wire;

use std::{
    collections::HashSet,
    ffi::OsString,
    fs, io,
    path::{Path, PathBuf},
};

use chrono::{DateTime, Utc};
use sha2::{Digest, Sha256};

pub use held::Held;
pub(super) use held::are_same as are_same_repositories;
pub use location::{RootLocation, known_location, read_location, settle, write_location};
pub(super) use unreadable::salvage_all;
pub use unreadable::{
    Needs, Unreadable, gc_blocker, gc_blocker_among, give_up, is_newer, needs, quarantine_damage,
    quarantined, unreadable,
};
pub(super) use wire::{agent_name, agent_named};

use self::{
    location::LocationFile,
    record_cache::{RecordCache, UNKNOWN_MAX},
    version::{from_json, to_json},
    wire::RecordFile,
};
use super::Survey;
use crate::{
    error::{Error, Result},
    fs::{
        PendingFile, create_private_dirs, is_short_of_means, list_names, now_ns, read_small,
        remove_if_there, sync_dir,
    },
    model::{Cause, Checkpoint, CheckpointId, Completeness, ContentId},
    state::{RootState, StateDir},
};

/// Enough for a hundred thousand skipped paths. It limits what a damaged length can make us
/// allocate.
const SIZE_MAX_BYTES: u64 = 64 << 20;

/// A checkpoint, and the private listings that belong to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// The checkpoint.
    pub checkpoint: Checkpoint,
    /// Which store holds the directory that [`Checkpoint::top`] names.
    pub keeper: StoreKind,
    /// The listing of private files and special files below the root.
    pub overlay: Option<ContentId>,
    /// The listing of entries outside the root.
    pub outside: Option<ContentId>,
    /// The tree that its ref points at.
    pub tree: Option<ContentId>,
    /// The private repository that `tree` is in.
    pub store: Option<String>,
    /// The repositories it holds: the root's own, those nested in it, and others that a call named.
    pub repositories: Vec<Held>,
    /// Files called `.git` that point to no repository, with their text: as in [`Held::pointers`].
    pub dangling: Vec<(Vec<u8>, Vec<u8>)>,
}

impl Record {
    /// All `.git` files that point to repositories, or nowhere, with their text.
    pub fn pointers(&self) -> impl Iterator<Item = &(Vec<u8>, Vec<u8>)> {
        self.repositories.iter().flat_map(|held| &held.pointers).chain(&self.dangling)
    }
}

/// The kind of store that holds a checkpoint's files. A directory can become a repository and stop
/// being one; its records stay together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreKind {
    /// A private repository.
    Git,
    /// The private objects.
    Copy,
}

impl StoreKind {
    const ALL: [Self; 2] = [Self::Git, Self::Copy];

    fn name(self) -> &'static str {
        match self {
            Self::Git => "git",
            Self::Copy => "copy",
        }
    }

    fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

/// A record file, readable or not.
#[derive(Debug)]
pub struct RecordEntry {
    /// The id in its file name.
    pub id: CheckpointId,
    /// Its content, or why it cannot be read.
    pub record: Result<Record>,
    /// Sequence number and time, as far as they can be read.
    order: (u64, DateTime<Utc>),
}

impl RecordEntry {
    /// Its sequence number; 0 if unknown.
    pub fn sequence(&self) -> u64 {
        self.order.0
    }

    /// The id and why the record cannot be read; `None` if it can.
    pub fn unreadable(&self) -> Option<(CheckpointId, Unreadable)> {
        self.record.as_ref().err().map(|err| (self.id, unreadable::why(err)))
    }

    /// Adds what it says to a survey.
    pub(super) fn add_to(self, survey: &mut Survey) {
        survey.unreadable.extend(self.unreadable());
        survey.needs.extend(self.record.as_ref().ok().map(Record::needs));
        survey.checkpoints.push(self.into_checkpoint());
    }

    /// The checkpoint; a placeholder if the record cannot be read.
    pub fn into_checkpoint(self) -> Checkpoint {
        match self.record {
            Ok(record) => record.checkpoint,
            Err(err) => placeholder(self.id, self.order, &err.to_string()),
        }
    }
}

/// What a list shows for a checkpoint if its record cannot be read.
pub(super) fn placeholder(id: CheckpointId, order: (u64, DateTime<Utc>), why: &str) -> Checkpoint {
    Checkpoint {
        id,
        sequence: order.0,
        taken_at: order.1,
        reading_ns: None,
        cause: Cause::asked(Some(why.to_owned())),
        top: None,
        files: 0,
        completeness: Completeness::RecordLost,
        skipped: Vec::new(),
        outside: Vec::new(),
        head: None,
        staged: None,
    }
}

/// Writes the record of a new checkpoint. On the disk when it returns.
///
/// # Errors
///
/// Fails if a record of that id exists, which is left as it is.
pub fn write(state: &RootState, record: &Record) -> Result<()> {
    let new = unpublished(state, record)?;
    new.sync()?;
    new.publish()?;
    sync_dir(&state.checkpoints())
}

/// Writes the record of a new checkpoint, which does not exist before the file has its name.
///
/// # Errors
///
/// Fails if it cannot be written.
pub(super) fn unpublished(state: &RootState, record: &Record) -> Result<PendingFile> {
    create_private_dirs(&state.checkpoints())?;
    let bytes = to_json(&RecordFile::of(record));
    PendingFile::write(&path_of(state, record.checkpoint.id), &bytes)
}

/// Reads the record of a checkpoint.
///
/// # Errors
///
/// [`Error::NoSuchCheckpoint`], [`Error::FormatTooNew`] or [`Error::Damaged`].
pub fn read(state: &RootState, id: CheckpointId) -> Result<Record> {
    match read_entry(state, id)? {
        Some(kept) => kept.record,
        None => Err(Error::NoSuchCheckpoint { given: id.to_string() }),
    }
}

/// Reads every record, the newest first by sequence, then by id.
///
/// # Errors
///
/// Fails if the directory cannot be listed. Unreadable records are part of the result.
pub fn read_all(state: &RootState) -> Result<Vec<RecordEntry>> {
    let (ids, mut cache) = (ids(state)?, RecordCache::load(state));
    let mut kept = Vec::with_capacity(ids.len());
    let mut unknown = Vec::new();
    for id in ids {
        if let Some(record) = cache.find(id) {
            let order = (record.checkpoint.sequence, record.checkpoint.taken_at);
            kept.push(RecordEntry { id, record: Ok(record), order });
            continue;
        }
        let stamp = cache.stamp(id);
        let read = read_entry(state, id)?;
        if read.as_ref().is_some_and(|kept| kept.record.is_ok()) {
            unknown.push((kept.len(), stamp));
        }
        kept.extend(read);
    }
    if unknown.len() > UNKNOWN_MAX {
        for (at, stamp) in unknown {
            let RecordEntry { id, record, .. } = &kept[at];
            if let Ok(record) = record {
                cache.add(*id, stamp, record);
            }
        }
        cache.save(state);
    }
    // Sorted by cached keys: entries are large, and a directory lists them in no order.
    kept.sort_by_cached_key(|kept| std::cmp::Reverse((kept.sequence(), kept.id)));
    Ok(kept)
}

/// The private repository of the newest checkpoint that has one.
///
/// # Errors
///
/// Fails if the directory cannot be listed.
pub fn store_of(state: &RootState) -> Result<Option<String>> {
    Ok(read_all(state)?.into_iter().find_map(|kept| kept.record.ok()?.store))
}

/// The ids of all records, readable or not, in no order.
///
/// # Errors
///
/// Fails if the directory cannot be listed.
pub fn ids(state: &RootState) -> Result<Vec<CheckpointId>> {
    let id_of = |name: &OsString| CheckpointId::parse(name.to_str()?.strip_suffix(".json")?);
    Ok(list_names(&state.checkpoints())?.iter().filter_map(id_of).collect())
}

/// Removes the record of a checkpoint and returns whether there was one.
pub fn remove(state: &RootState, id: CheckpointId) -> Result<bool> {
    remove_if_there(&path_of(state, id))
}

/// Removes the records of several checkpoints and returns how many existed. On the disk when it
/// returns: a record that reappeared after a power cut would refer to objects that have been freed.
pub fn forget(state: &RootState, ids: impl Iterator<Item = CheckpointId>) -> Result<usize> {
    let mut gone = 0;
    // A record of a newer beforehand is left to that version.
    for id in ids.filter(|id| !is_newer(state, *id)) {
        crate::crash::point("forget-record");
        gone += usize::from(remove(state, id)?);
        // What its calls left goes with it; maintenance tries again.
        let _gone = fs::remove_file(state.contents_of(id));
    }
    if gone > 0 {
        sync_dir(&state.checkpoints())?;
    }
    Ok(gone)
}

/// Sequence number and id for the next checkpoint, given the greatest sequence number.
pub fn next(state: &RootState, greatest: u64, taken_at: DateTime<Utc>) -> (u64, CheckpointId) {
    let sequence = greatest.saturating_add(1);
    let mut salt = 0u64;
    loop {
        let id = new_id(state.dir(), sequence, taken_at, salt);
        if !path_of(state, id).exists() {
            return (sequence, id);
        }
        salt += 1;
    }
}

/// Where the record of a checkpoint is.
pub fn path_of(state: &RootState, id: CheckpointId) -> PathBuf {
    state.checkpoints().join(format!("{id}.json"))
}

fn new_id(dir: &Path, sequence: u64, taken_at: DateTime<Utc>, salt: u64) -> CheckpointId {
    let mut hash = Sha256::new();
    hash.update(dir.as_os_str().as_encoded_bytes());
    hash.update(sequence.to_le_bytes());
    hash.update(taken_at.timestamp_micros().to_le_bytes());
    hash.update(std::process::id().to_le_bytes());
    hash.update(now_ns().to_le_bytes());
    hash.update(salt.to_le_bytes());
    let bits: [u8; 8] = hash.finalize()[..8].try_into().expect("a SHA-256 has more than 8 bytes");
    CheckpointId::from_bits(u64::from_be_bytes(bits))
}

fn read_entry(state: &RootState, id: CheckpointId) -> Result<Option<RecordEntry>> {
    let what = format!("checkpoints/{id}.json");
    let bytes = match read_small(&path_of(state, id), SIZE_MAX_BYTES) {
        Ok(Some(bytes)) => bytes,
        Ok(None) => return Ok(None),
        Err(Error::Io { source, path, .. }) if is_short_of_means(&source) => {
            return Err(Error::io("read", &path)(source));
        }
        // One pipe among the records, or one bad block, must not hide the others.
        Err(err) => {
            let record = Err(match err {
                Error::Io { source, .. } if is_no_record(source.kind()) => {
                    Error::damaged(what, source.to_string())
                }
                err => err,
            });
            return Ok(Some(RecordEntry { id, record, order: Default::default() }));
        }
    };
    let record = from_json::<RecordFile>(&what, &bytes).and_then(|file| {
        let record = file.into_record().map_err(|why| Error::damaged(&what, why))?;
        let is_it = record.checkpoint.id == id;
        if is_it { Ok(record) } else { Err(Error::damaged(&what, "it names another checkpoint")) }
    });
    let order = match &record {
        Ok(record) => (record.checkpoint.sequence, record.checkpoint.taken_at),
        Err(_) => guess_order(&bytes),
    };
    Ok(Some(RecordEntry { id, record, order }))
}

/// Whether an error means that the file is not a record and never will be.
fn is_no_record(kind: io::ErrorKind) -> bool {
    matches!(
        kind,
        io::ErrorKind::InvalidInput | io::ErrorKind::FileTooLarge | io::ErrorKind::PermissionDenied
    )
}

/// Every version of the format has these two keys, so lists can always be sorted.
fn guess_order(bytes: &[u8]) -> (u64, DateTime<Utc>) {
    order_of(&serde_json::from_slice(bytes).unwrap_or_default())
}

fn order_of(value: &serde_json::Value) -> (u64, DateTime<Utc>) {
    let sequence = value["sequence"].as_u64().unwrap_or(0);
    let taken_at = value["taken_at"].as_str().and_then(|text| text.parse().ok());
    (sequence, taken_at.unwrap_or_default())
}

/// The state directories of all roots, each once, even if a root has a second path by a bind mount.
///
/// # Errors
///
/// Fails if they cannot be listed.
pub fn all_roots(state: &StateDir) -> Result<Vec<RootState>> {
    let names = identity::names(&state.roots())?;
    Ok(names.iter().map(|name| state.root_named(name)).collect())
}

/// Parses bytes as each kind of record; for fuzz/.
pub(crate) fn parse_any(bytes: &[u8]) {
    let _damaged = from_json::<RecordFile>("x", bytes).map(RecordFile::into_record);
    let _damaged = from_json::<LocationFile>("x", bytes).map(LocationFile::into_location);
    let _order = guess_order(bytes);
    record_cache::parse_any(bytes);
}

/// Trees, each with the name of the private repository that has it.
pub(super) type TreeSet = HashSet<(String, ContentId)>;

/// The trees in private repositories that records need now.
///
/// # Errors
///
/// Fails if a record cannot be read.
pub(in crate::store) fn trees(state: &StateDir) -> Result<TreeSet> {
    let mut trees = HashSet::new();
    for root in all_roots(state)? {
        for id in ids(&root)? {
            trees.extend(needs(&root, id)?.into_iter().flat_map(|needs| needs.trees));
        }
    }
    Ok(trees)
}
