//! The record of a checkpoint: its one document, with everything except its files, the same for both stores.
//! The JSON file and the copy in a private repository are the same bytes. Also `root.json`, one for each root.

pub mod identity;

mod held;
mod index;
mod location;
mod older;
mod unreadable;
mod version;

use std::{
    cmp::Reverse,
    collections::HashSet,
    ffi::OsString,
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
};

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

pub use held::Held;
pub(super) use held::are_same as are_same_repositories;
pub(super) use index::RecordIndex;
pub use location::{RootLocation, known_location, read_location, settle, write_location};
pub use unreadable::{
    Needs, Unreadable, gc_blocker, gc_blocker_among, give_up, is_newer, needs, quarantine_damage,
    quarantined, unreadable,
};
pub(super) use unreadable::{is_lost, salvage_all};
pub use version::FormatVersion;

use self::{
    held::{is_plain_place, is_store_name},
    version::{from_json, to_json},
};
use super::Survey;
use crate::{
    error::{Error, Result},
    fs::{
        PendingFile, create_private_dirs, in_halves, is_short_of_means, list_names, now_ns,
        read_small, remove_if_there, replace_synced, sync_dir,
    },
    model::{
        Cause, Checkpoint, CheckpointId, Completeness, ContentId, DefaultModes, escape::escaped,
    },
    state::{RootState, StateDir},
};

/// Enough for a hundred thousand skipped paths. It limits what a damaged length can make us
/// allocate.
const SIZE_MAX_BYTES: u64 = 64 << 20;
/// With fewer records a second thread costs more than it saves.
const RECORDS_FOR_TWO: usize = 200;

/// The document of a checkpoint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    /// The version of the format.
    pub version: FormatVersion,
    /// The checkpoint.
    pub checkpoint: Checkpoint,
    /// Which store holds the directory that [`Checkpoint::top`] names.
    pub keeper: StoreKind,
    /// The permissions of all files that nothing else is recorded of.
    #[serde(default)]
    pub default_modes: DefaultModes,
    /// The listing of private files and special files below the root.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overlay: Option<ContentId>,
    /// The listing of entries outside the root.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outside: Option<ContentId>,
    /// The tree with everything private that its private repository has: the contents of the two listings, and
    /// the root's own repository.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub private: Option<ContentId>,
    /// The tree that its ref points at. The copy in that tree cannot name it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tree: Option<ContentId>,
    /// The private repository that `tree` is in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub store: Option<String>,
    /// The repositories it holds: the root's own, those nested in it, and others that a call named.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub repositories: Vec<Held>,
    /// Files called `.git` that point to no repository, with their text: as in [`Held::pointers`].
    #[serde(default, skip_serializing_if = "Vec::is_empty", with = "escaped")]
    pub dangling: Vec<(Vec<u8>, Vec<u8>)>,
}

impl Record {
    /// All `.git` files that point to repositories, or nowhere, with their text.
    pub fn pointers(&self) -> impl Iterator<Item = &(Vec<u8>, Vec<u8>)> {
        self.repositories.iter().flat_map(|held| &held.pointers).chain(&self.dangling)
    }

    /// Its bytes, in every place that has it.
    pub(super) fn to_json(&self) -> Vec<u8> {
        to_json(self)
    }

    /// Reads its bytes; `place` names theirs in messages.
    ///
    /// # Errors
    ///
    /// [`Error::FormatTooNew`] or [`Error::Damaged`].
    pub(super) fn from_json(place: &str, bytes: &[u8]) -> Result<Self> {
        let mut record: Self = from_json(place, bytes)?;
        record.checkpoint.sequence = record.checkpoint.id.sequence();
        match record.leads_elsewhere() {
            Some(why) => Err(Error::damaged(place, why)),
            None => Ok(record),
        }
    }

    /// Why it must not be used: a name in it becomes part of a path, and could lead elsewhere.
    fn leads_elsewhere(&self) -> Option<&'static str> {
        let mut stores = self.repositories.iter().map(|held| &held.store).chain(&self.store);
        let paths = self.repositories.iter().map(|held| &held.path);
        let mut paths = paths.chain(self.pointers().map(|(path, _)| path));
        if !stores.all(|name| is_store_name(name)) {
            Some("the name of a repository is not one")
        } else if !paths.all(|path| is_plain_place(path)) {
            Some("the path of a repository is not one")
        } else {
            None
        }
    }

    /// The part that may leave this machine with the files: no prompts, no command lines, no paths outside the
    /// root, and nothing of other repositories.
    pub(super) fn to_public(&self) -> Self {
        let mut public = self.clone();
        let Checkpoint { cause, skipped, outside, .. } = &mut public.checkpoint;
        cause.summary = None;
        if let Some(by) = &mut cause.by {
            by.prompt = None;
            by.transcript = None;
            by.position = None;
        }
        skipped.retain(|skipped| !skipped.path.starts_with(b"/"));
        outside.clear();
        Self {
            overlay: None,
            outside: None,
            private: None,
            tree: None,
            repositories: Vec::new(),
            dangling: Vec::new(),
            ..public
        }
    }
}

/// The kind of store that holds a checkpoint's files. A directory can become a repository and stop
/// being one; its records stay together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StoreKind {
    /// A private repository.
    Git,
    /// The objects of the file store.
    Copy,
}

/// A record file, readable or not.
#[derive(Debug)]
pub struct RecordEntry {
    /// The id in its file name.
    pub id: CheckpointId,
    /// Its content, or why it cannot be read.
    pub record: Result<Arc<Record>>,
    /// When it was taken, as far as that can be read.
    taken_at: DateTime<Utc>,
}

impl RecordEntry {
    fn readable(record: Arc<Record>) -> Self {
        let Checkpoint { id, taken_at, .. } = record.checkpoint;
        Self { id, record: Ok(record), taken_at }
    }

    /// The id and why the record cannot be read; `None` if it can.
    pub fn unreadable(&self) -> Option<(CheckpointId, Unreadable)> {
        self.record.as_ref().err().map(|err| (self.id, unreadable::why(err)))
    }

    /// Adds what it says to a survey.
    pub(super) fn add_to(self, survey: &mut Survey) {
        survey.unreadable.extend(self.unreadable());
        survey.needs.extend(self.record.as_ref().ok().map(|record| record.needs()));
        survey.checkpoints.push(self.into_checkpoint());
    }

    /// The checkpoint; a placeholder if the record cannot be read.
    pub fn into_checkpoint(self) -> Checkpoint {
        match self.record {
            Ok(record) => Arc::unwrap_or_clone(record).checkpoint,
            Err(err) => placeholder(self.id, self.taken_at, &err.to_string()),
        }
    }
}

/// What a list shows for a checkpoint if its record cannot be read.
pub(super) fn placeholder(id: CheckpointId, taken_at: DateTime<Utc>, why: &str) -> Checkpoint {
    Checkpoint {
        id,
        sequence: id.sequence(),
        taken_at,
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

/// Writes the record of a checkpoint again, from its copy.
///
/// # Errors
///
/// Fails if it cannot be written.
pub(in crate::store) fn rewrite(state: &RootState, record: &Record) -> Result<()> {
    create_private_dirs(&state.checkpoints())?;
    replace_synced(&path_of(state, record.checkpoint.id), &record.to_json())
}

/// Writes the record of a new checkpoint, which does not exist before the file has its name.
///
/// # Errors
///
/// Fails if it cannot be written.
pub(super) fn unpublished(state: &RootState, record: &Record) -> Result<PendingFile> {
    create_private_dirs(&state.checkpoints())?;
    PendingFile::write(&path_of(state, record.checkpoint.id), &record.to_json())
}

/// Reads the record of a checkpoint.
///
/// # Errors
///
/// [`Error::NoSuchCheckpoint`], [`Error::FormatTooNew`] or [`Error::Damaged`].
pub fn read(state: &RootState, id: CheckpointId) -> Result<Record> {
    match read_entry(state, id)? {
        Some(kept) => kept.record.map(Arc::unwrap_or_clone),
        None => Err(Error::NoSuchCheckpoint { given: id.to_string() }),
    }
}

/// Reads every record, the newest first.
///
/// # Errors
///
/// Fails if the directory cannot be listed. Unreadable records are part of the result.
pub fn read_all(state: &RootState) -> Result<Vec<RecordEntry>> {
    read_entries(state, &ids(state)?)
}

/// Reads the records of `ids`, without those that are gone.
fn read_entries(state: &RootState, ids: &[CheckpointId]) -> Result<Vec<RecordEntry>> {
    let halves = in_halves(ids, ids.len() >= RECORDS_FOR_TWO, |ids| {
        let read = ids.iter().filter_map(|id| read_entry(state, *id).transpose());
        read.collect::<Result<Vec<RecordEntry>>>()
    });
    Ok(halves?.into_iter().flatten().collect())
}

/// The private repository of the newest checkpoint that has one.
///
/// # Errors
///
/// Fails if the directory cannot be listed.
pub fn store_of(state: &RootState) -> Result<Option<String>> {
    Ok(ids(state)?.into_iter().find_map(|id| read(state, id).ok()?.store))
}

/// The ids of all records, readable or not, the newest first. Reads none of them.
///
/// # Errors
///
/// Fails if the directory cannot be listed.
pub fn ids(state: &RootState) -> Result<Vec<CheckpointId>> {
    let id_of = |name: &OsString| CheckpointId::parse(name.to_str()?.strip_suffix(".json")?);
    let mut ids: Vec<_> = list_names(&state.checkpoints())?.iter().filter_map(id_of).collect();
    ids.sort_unstable_by_key(|id| Reverse((id.sequence(), *id)));
    Ok(ids)
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
    CheckpointId::new(u64::from_be_bytes(bits), sequence)
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
            return Ok(Some(RecordEntry { id, record, taken_at: DateTime::default() }));
        }
    };
    let record = Record::from_json(&what, &bytes).and_then(|record| {
        let is_it = record.checkpoint.id == id;
        if is_it { Ok(record) } else { Err(Error::damaged(&what, "it names another checkpoint")) }
    });
    Ok(Some(match record {
        Ok(record) => RecordEntry::readable(Arc::new(record)),
        Err(err) => RecordEntry { id, record: Err(err), taken_at: guess_time(&bytes) },
    }))
}

/// Whether an error means that the file is not a record and never will be.
fn is_no_record(kind: io::ErrorKind) -> bool {
    matches!(
        kind,
        io::ErrorKind::InvalidInput | io::ErrorKind::FileTooLarge | io::ErrorKind::PermissionDenied
    )
}

/// When the checkpoint was taken, by a record that cannot be read otherwise: every version of the format has this key.
pub(super) fn guess_time(bytes: &[u8]) -> DateTime<Utc> {
    time_of(&serde_json::from_slice(bytes).unwrap_or_default())
}

fn time_of(value: &serde_json::Value) -> DateTime<Utc> {
    let taken_at = value["checkpoint"]["taken_at"].as_str().and_then(|text| text.parse().ok());
    taken_at.unwrap_or_default()
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
    let _damaged = Record::from_json("x", bytes);
    let _damaged = from_json::<RootLocation>("x", bytes);
    let _time = guess_time(bytes);
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
