//! The log of a restore under way, for the next process after a crash.
//!
//! It is on the disk before the first change and gone after the last, and names all that the
//! restore may have left half done. One restore runs in a root at a time; the process that holds the lock
//! and finds a log knows that its writer is dead.
//!
//! A restore has two stages. It is *announced* before its before-restore checkpoint is saved, and
//! it *begins* when the announcement is replaced by the whole log, in one rename. A checkpoint of
//! a restore that was only announced is no step that undo or redo could take.

use std::{
    collections::BTreeMap,
    ffi::OsStr,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use serde::{Deserialize, Serialize};

use crate::{
    error::{Error, Result},
    fs::{Lock, create_private_dirs, read_small, remove_if_there, replace_synced, sync_dir},
    model::{
        Checkpoint, CheckpointId, Content, ContentId, Entry, Kind, Reason, RelPath, Storage, hex,
        unhex,
    },
    plan::Merged,
    state::RootState,
};

/// The newest format; see `docs/FORMAT.md`.
const VERSION: u32 = 1;
/// Larger than the log of a restore of a million paths.
const SIZE_MAX_BYTES: u64 = 512 << 20;
/// A restore that takes longer than this is worth a word instead of a wait.
const PATIENCE: Duration = Duration::from_secs(2);

/// What a restore under way is about to change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RestoreLog {
    /// The checkpoint it goes to.
    pub of: CheckpointId,
    /// The before-restore checkpoint. Holds all that is overwritten or removed.
    pub held: CheckpointId,
    /// The word that led to it: `restore`, `revert`, `undo` or `redo`.
    pub verb: String,
    /// Whether git's index is part of it.
    pub index: bool,
    /// Every path below the root that may change.
    pub paths: Vec<RelPath>,
    /// What is merged, with the SHA-256 of what comes of it, in hex.
    pub merged: Vec<(RelPath, String)>,
    /// The merged files themselves, to finish a restore that was interrupted.
    pub merges: Vec<(RelPath, Merged)>,
    /// Merged files that are then as they were at one time, with that time in nanoseconds since 1970.
    pub dated: Vec<(RelPath, i64)>,
    /// What is to be at each path, absolute if it is outside the root. Empty if the checkpoint says all of
    /// it. Of a merged file, `merges` says it.
    pub ends: Vec<(PathBuf, Option<Entry>)>,
    /// Every path outside that may change. Absolute.
    pub outside: Vec<PathBuf>,
    /// The branch HEAD is on, if it moves: its name, where it stood, where it goes.
    pub head: Option<[String; 3]>,
    /// Whether the repository is made as it was, though it is whole.
    pub repository: bool,
    /// Where repositories are made again or removed. Absolute.
    pub repositories: Vec<PathBuf>,
    /// The fork it brings back, if it does: what is not merged is there as in that.
    pub brings: Option<BroughtCheckpoint>,
    /// Directories that have to be made writable for the while, with the permissions they get
    /// back.
    pub closed: Vec<(RelPath, u32)>,
}

/// A checkpoint of a fork that is brought back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BroughtCheckpoint {
    /// The directory of the fork. Absolute.
    pub fork: PathBuf,
    /// Its checkpoint.
    pub id: CheckpointId,
}

/// A restore that has not begun: nothing in the root was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Announced {
    /// The greatest sequence number before it. A before-restore checkpoint with a greater one was
    /// taken for this restore.
    pub after: u64,
}

/// What a log says.
enum LoggedStage {
    Announced(Announced),
    Begun(Box<RestoreLog>),
}

/// All that an announcement has, and what of it a whole log has.
#[derive(Serialize, Deserialize)]
struct LogHeader {
    version: u32,
    /// Only an announcement has it.
    after: Option<u64>,
}

#[derive(Serialize, Deserialize)]
struct RestoreLogWire {
    version: u32,
    of: String,
    held: String,
    verb: String,
    index: bool,
    paths: Vec<String>,
    merged: Vec<(String, String)>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    merges: Vec<(String, u32, String)>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    dated: Vec<(String, i64)>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    ends: Vec<EndWire>,
    outside: Vec<String>,
    closed: Vec<(String, u32)>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    head: Option<[String; 3]>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    repository: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    repositories: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    brings: Option<(String, String)>,
}

/// What is to be at a path; nothing without a mode.
#[derive(Serialize, Deserialize)]
struct EndWire {
    path: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    mode: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    content: Option<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    private: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    device: Option<u64>,
}

impl EndWire {
    fn of((path, end): &(PathBuf, Option<Entry>)) -> Self {
        let content = end.and_then(|end| end.content.filter(|_| end.kind.has_content()));
        Self {
            path: hex(bytes_of(path)),
            mode: end.map(|end| end.kind.mode_bits() | end.permissions),
            content: content.map(|content| content.id.to_string()),
            private: content.is_some_and(|content| content.place == Storage::Files),
            device: end.map(|end| end.device).filter(|device| *device != 0),
        }
    }

    fn into_end(self) -> Option<(PathBuf, Option<Entry>)> {
        let path = PathBuf::from(OsStr::from_bytes(&unhex(&self.path)?));
        let Some(mode) = self.mode else { return Some((path, None)) };
        let place = if self.private { Storage::Files } else { Storage::Git };
        let content = match &self.content {
            Some(id) => Some(Content { id: ContentId::parse(id)?, place }),
            None => None,
        };
        let (kind, permissions) = (Kind::of_mode(mode)?, mode & 0o7777);
        Some((path, Some(Entry { kind, permissions, content, device: self.device.unwrap_or(0) })))
    }
}

impl Announced {
    /// Writes it. On the disk when it returns.
    ///
    /// # Errors
    ///
    /// Fails if it cannot be written.
    pub fn announce(self, place: &RootState) -> Result<()> {
        create_private_dirs(place.dir())?;
        let wire = LogHeader { version: VERSION, after: Some(self.after) };
        let bytes = serde_json::to_vec(&wire).expect("numbers always serialize");
        replace_synced(&place.restore_log(), &bytes)
    }

    /// The restore that was announced and has not begun, if there is one.
    ///
    /// # Errors
    ///
    /// Fails if the log is there and cannot be read.
    pub fn read(place: &RootState) -> Result<Option<Self>> {
        Ok(match stage(place)? {
            Some(LoggedStage::Announced(announced)) => Some(announced),
            Some(LoggedStage::Begun(_)) | None => None,
        })
    }

    /// Whether a checkpoint was taken for this restore.
    pub fn took(self, checkpoint: &Checkpoint) -> bool {
        checkpoint.cause.reason == Reason::BeforeRestore && checkpoint.sequence > self.after
    }
}

fn stage(place: &RootState) -> Result<Option<LoggedStage>> {
    let path = place.restore_log();
    let Some(bytes) = read_small(&path, SIZE_MAX_BYTES)? else { return Ok(None) };
    parse_stage(&path.display().to_string(), &bytes).map(Some)
}

fn parse_stage(what: &str, bytes: &[u8]) -> Result<LoggedStage> {
    let damaged = |why: &str| Error::damaged(what, why);
    let head: LogHeader = serde_json::from_slice(bytes).map_err(|err| damaged(&err.to_string()))?;
    if head.version > VERSION {
        let what = what.to_owned();
        return Err(Error::FormatTooNew { what, found: head.version, known: VERSION });
    }
    if let Some(after) = head.after {
        return Ok(LoggedStage::Announced(Announced { after }));
    }
    let wire: RestoreLogWire =
        serde_json::from_slice(bytes).map_err(|err| damaged(&err.to_string()))?;
    wire.into_log()
        .map(|log| LoggedStage::Begun(Box::new(log)))
        .ok_or_else(|| damaged("a name in it is no path"))
}

impl RestoreLog {
    /// Writes it, in place of the announcement. On the disk when it returns.
    ///
    /// # Errors
    ///
    /// Fails if it cannot be written; then there is none, and nothing may be changed.
    pub fn begin(&self, place: &RootState) -> Result<()> {
        create_private_dirs(place.dir())?;
        let wire = RestoreLogWire {
            version: VERSION,
            of: self.of.to_string(),
            held: self.held.to_string(),
            verb: self.verb.clone(),
            index: self.index,
            paths: self.paths.iter().map(|path| hex(path.as_bytes())).collect(),
            merged: self
                .merged
                .iter()
                .map(|(path, sha)| (hex(path.as_bytes()), sha.clone()))
                .collect(),
            merges: self
                .merges
                .iter()
                .map(|(path, it)| (hex(path.as_bytes()), it.permissions, hex(&it.bytes)))
                .collect(),
            dated: self.dated.iter().map(|(path, at)| (hex(path.as_bytes()), *at)).collect(),
            ends: self.ends.iter().map(EndWire::of).collect(),
            outside: hexes(&self.outside),
            closed: self.closed.iter().map(|(path, bits)| (hex(path.as_bytes()), *bits)).collect(),
            head: self.head.clone(),
            repository: self.repository,
            repositories: hexes(&self.repositories),
            brings: self.brings.as_ref().map(|it| (hex(bytes_of(&it.fork)), it.id.to_string())),
        };
        let bytes = serde_json::to_vec(&wire).expect("strings and numbers always serialize");
        replace_synced(&place.restore_log(), &bytes)
    }

    /// The log of a restore that was interrupted, if there is one. One that was only announced
    /// has changed nothing, and so left nothing half done.
    ///
    /// # Errors
    ///
    /// Fails if it is there and cannot be read.
    pub fn read(place: &RootState) -> Result<Option<Self>> {
        Ok(match stage(place)? {
            Some(LoggedStage::Begun(log)) => Some(*log),
            Some(LoggedStage::Announced(_)) | None => None,
        })
    }

    /// Reads the bytes of one that has begun, called `what`.
    pub(crate) fn parse(what: &str, bytes: &[u8]) -> Result<Self> {
        match parse_stage(what, bytes)? {
            LoggedStage::Begun(log) => Ok(*log),
            LoggedStage::Announced(_) => Err(Error::damaged(what, "the restore has not begun")),
        }
    }

    /// What is to be at each path, absolute if it is outside the root, as far as the checkpoint does not say
    /// it. Where a merged file is to be, the entry has no content.
    pub fn wanted(&self) -> BTreeMap<PathBuf, Option<Entry>> {
        let merged = self.merges.iter().map(|(path, merged)| {
            let (kind, permissions) = (Kind::File, merged.permissions);
            let entry = Entry { kind, permissions, content: None, device: 0 };
            (path.as_path().to_owned(), Some(entry))
        });
        self.ends.iter().cloned().chain(merged).collect()
    }

    /// Removes it, begun or only announced: the restore is done, or taken back.
    ///
    /// # Errors
    ///
    /// Fails if it is still there.
    pub fn end(place: &RootState) -> Result<()> {
        if remove_if_there(&place.restore_log())? { sync_dir(place.dir()) } else { Ok(()) }
    }
}

impl RestoreLogWire {
    fn into_log(self) -> Option<RestoreLog> {
        let rel = |text: &String| RelPath::from_bytes(&unhex(text)?).ok();
        let path = |text: &String| {
            let path = PathBuf::from(OsStr::from_bytes(&unhex(text)?));
            Some(path).filter(|path| path.is_absolute())
        };
        Some(RestoreLog {
            of: CheckpointId::parse(&self.of)?,
            held: CheckpointId::parse(&self.held)?,
            verb: self.verb,
            index: self.index,
            repository: self.repository,
            repositories: self.repositories.iter().map(path).collect::<Option<_>>()?,
            brings: match &self.brings {
                Some((fork, id)) => {
                    Some(BroughtCheckpoint { fork: path(fork)?, id: CheckpointId::parse(id)? })
                }
                None => None,
            },
            paths: self.paths.iter().map(rel).collect::<Option<_>>()?,
            merged: self
                .merged
                .iter()
                .map(|(path, sha)| Some((rel(path)?, sha.clone())))
                .collect::<Option<_>>()?,
            merges: self
                .merges
                .iter()
                .map(|(path, permissions, bytes)| {
                    let (permissions, bytes) = (*permissions, unhex(bytes)?);
                    Some((rel(path)?, Merged { bytes, permissions }))
                })
                .collect::<Option<_>>()?,
            dated: self
                .dated
                .iter()
                .map(|(path, at)| Some((rel(path)?, *at)))
                .collect::<Option<_>>()?,
            ends: self.ends.into_iter().map(EndWire::into_end).collect::<Option<_>>()?,
            outside: self.outside.iter().map(path).collect::<Option<_>>()?,
            closed: self
                .closed
                .iter()
                .map(|(path, bits)| Some((rel(path)?, bits & 0o7777)))
                .collect::<Option<_>>()?,
            head: self.head,
        })
    }
}

/// Keeps every other restore of a root waiting.
///
/// # Errors
///
/// [`Error::Busy`] if one is under way.
pub fn lock(place: &RootState) -> Result<Lock> {
    create_private_dirs(place.dir())?;
    Lock::acquire(&place.restore_lock(), Instant::now() + PATIENCE)
}

/// Whether a restore of the root was interrupted: its log exists, and no process holds the restore lock.
pub fn is_left(place: &RootState) -> bool {
    place.restore_log().exists()
        && Lock::share(&place.restore_lock(), Instant::now()).is_ok()
        && !matches!(RestoreLog::read(place), Ok(None))
}

/// The message about an interrupted restore.
pub const LEFT: &str = "a restore was interrupted here: `beforehand restore --continue` finishes it, \
                        `beforehand restore --abort` takes it back";

fn bytes_of(path: &Path) -> &[u8] {
    path.as_os_str().as_bytes()
}

fn hexes(paths: &[PathBuf]) -> Vec<String> {
    paths.iter().map(|path| hex(bytes_of(path))).collect()
}

/// The root with an interrupted restore, of all directories around `dir`.
pub fn left_around(state: &crate::state::StateDir, dir: &Path) -> Option<PathBuf> {
    dir.ancestors().find(|dir| is_left(&state.root_at(dir))).map(Path::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::StateDir;

    #[test]
    fn what_was_begun_can_be_read_until_it_ends() {
        let dir = std::env::temp_dir().join(format!("beforehand-log-{}", std::process::id()));
        let place = StateDir::new(dir.clone()).root_at(Path::new("/x"));
        let path = |bytes: &[u8]| RelPath::from_bytes(bytes).unwrap();
        let file = |place, id: &[u8]| {
            let content = Some(Content { id: ContentId::new(id), place });
            Entry { kind: Kind::File, permissions: 0o4755, content, device: 0 }
        };
        let log = RestoreLog {
            repository: false,
            repositories: vec![PathBuf::from("/x/.git")],
            brings: Some(BroughtCheckpoint {
                fork: PathBuf::from("/y\n"),
                id: CheckpointId::from_bits(3),
            }),
            of: CheckpointId::from_bits(1),
            held: CheckpointId::from_bits(2),
            verb: "restore".to_owned(),
            index: true,
            paths: vec![path(b"a\nb"), path(b"d/\xff")],
            merged: vec![(path(b"m"), "00".to_owned())],
            merges: vec![(path(b"m"), Merged { bytes: b"\0m\n".to_vec(), permissions: 0o755 })],
            dated: vec![(path(b"m"), -7)],
            ends: vec![
                (PathBuf::from("gone"), None),
                (PathBuf::from("/d\n"), Some(Entry::DIRECTORY)),
                (PathBuf::from("f"), Some(file(Storage::Git, &[1; 20]))),
                (PathBuf::from("g"), Some(file(Storage::Files, &[2; 32]))),
            ],
            outside: vec![PathBuf::from("/etc/hosts")],
            closed: vec![(path(b"d"), 0o555)],
            head: Some(["refs/heads/x", "01", "02"].map(str::to_owned)),
        };
        assert_eq!(RestoreLog::read(&place).unwrap(), None);
        Announced { after: 7 }.announce(&place).unwrap();
        assert_eq!(Announced::read(&place).unwrap(), Some(Announced { after: 7 }));
        assert_eq!(RestoreLog::read(&place).unwrap(), None, "it has not begun");
        assert!(!is_left(&place), "and has left nothing half done");
        log.begin(&place).unwrap();
        assert_eq!(RestoreLog::read(&place).unwrap(), Some(log));
        assert_eq!(Announced::read(&place).unwrap(), None, "it has begun");
        assert!(is_left(&place));
        let running = lock(&place).unwrap();
        assert!(!is_left(&place), "a process is at work");
        drop(running);
        RestoreLog::end(&place).unwrap();
        assert!(!is_left(&place));
        let _gone = [place.restore_lock(), place.dir().to_owned()]
            .map(|path| std::fs::remove_file(&path).or_else(|_| std::fs::remove_dir(&path)));
        let _gone = std::fs::remove_dir(dir.join("roots")).and_then(|()| std::fs::remove_dir(&dir));
    }
}
