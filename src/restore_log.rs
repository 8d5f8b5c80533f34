//! The note that a restore is under way, for whoever comes after a crash.
//!
//! It is on the disk before the first change and gone after the last, and names all that the
//! restore may have left half done. One restore runs in a root at a time; whoever holds the lock
//! and finds a log knows that its writer is dead.

use std::{
    ffi::OsStr,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use serde::{Deserialize, Serialize};

use crate::{
    error::{Error, Result},
    fs::{Lock, create_private_dirs, read_small, replace_synced, sync_dir},
    model::{CheckpointId, RelPath},
    state::RootState,
};

/// The newest format; see `docs/FORMAT.md`.
const VERSION: u32 = 1;
/// Larger than the log of a restore of a million paths.
const SIZE_MAX_BYTES: u64 = 256 << 20;
/// A restore that takes longer than this is worth a word instead of a wait.
const PATIENCE: Duration = Duration::from_secs(2);

/// What a restore under way is about to change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RestoreLog {
    /// The checkpoint it goes to.
    pub of: CheckpointId,
    /// The before-restore checkpoint. Holds all that is overwritten or removed.
    pub held: CheckpointId,
    /// The word that led to it: `restore`, `undo` or `redo`.
    pub verb: String,
    /// Whether git's index is part of it.
    pub index: bool,
    /// Every path below the root that may change.
    pub paths: Vec<RelPath>,
    /// What is merged, with the SHA-256 of what comes of it, in hex.
    pub merged: Vec<(RelPath, String)>,
    /// Every path outside that may change. Absolute.
    pub outside: Vec<PathBuf>,
    /// The branch HEAD is on, if it moves: its name, where it stood, where it goes.
    pub head: Option<[String; 3]>,
    /// Whether the repository is made as it was, though it is whole.
    pub repository: bool,
    /// Directories that have to be made writable for the while, with the permissions they get
    /// back.
    pub closed: Vec<(RelPath, u32)>,
}

#[derive(Deserialize)]
struct VersionOnly {
    version: u32,
}

#[derive(Serialize, Deserialize)]
struct Wire {
    version: u32,
    of: String,
    held: String,
    verb: String,
    index: bool,
    paths: Vec<String>,
    merged: Vec<(String, String)>,
    outside: Vec<String>,
    closed: Vec<(String, u32)>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    head: Option<[String; 3]>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    repository: bool,
}

impl RestoreLog {
    /// Writes it. On the disk when it returns.
    ///
    /// # Errors
    ///
    /// Fails if it cannot be written; then there is none, and nothing may be changed.
    pub fn begin(&self, place: &RootState) -> Result<()> {
        create_private_dirs(place.dir())?;
        let wire = Wire {
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
            outside: self.outside.iter().map(|path| hex(path.as_os_str().as_bytes())).collect(),
            closed: self.closed.iter().map(|(path, bits)| (hex(path.as_bytes()), *bits)).collect(),
            head: self.head.clone(),
            repository: self.repository,
        };
        let bytes = serde_json::to_vec(&wire).expect("strings and numbers always serialize");
        replace_synced(&place.restore_log(), &bytes)
    }

    /// The log of a restore that was interrupted, if there is one.
    ///
    /// # Errors
    ///
    /// Fails if it is there and cannot be read.
    pub fn read(place: &RootState) -> Result<Option<Self>> {
        let path = place.restore_log();
        let Some(bytes) = read_small(&path, SIZE_MAX_BYTES)? else { return Ok(None) };
        Self::parse(&path.display().to_string(), &bytes).map(Some)
    }

    /// Reads the bytes of one, called `what`.
    pub(crate) fn parse(what: &str, bytes: &[u8]) -> Result<Self> {
        let damaged = |why: &str| Error::damaged(what, why);
        let found: VersionOnly =
            serde_json::from_slice(bytes).map_err(|err| damaged(&err.to_string()))?;
        if found.version > VERSION {
            let what = what.to_owned();
            return Err(Error::FormatTooNew { what, found: found.version, known: VERSION });
        }
        let wire: Wire = serde_json::from_slice(bytes).map_err(|err| damaged(&err.to_string()))?;
        wire.into_log().ok_or_else(|| damaged("a name in it is no path"))
    }

    /// Removes it: what it announced is done, or taken back.
    ///
    /// # Errors
    ///
    /// Fails if it is still there.
    pub fn end(place: &RootState) -> Result<()> {
        let path = place.restore_log();
        match std::fs::remove_file(&path) {
            Ok(()) => sync_dir(place.dir()),
            Err(err) if err.kind() == std::io::ErrorKind::NotFound => Ok(()),
            Err(err) => Err(Error::io("remove", &path)(err)),
        }
    }
}

impl Wire {
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
            paths: self.paths.iter().map(rel).collect::<Option<_>>()?,
            merged: self
                .merged
                .iter()
                .map(|(path, sha)| Some((rel(path)?, sha.clone())))
                .collect::<Option<_>>()?,
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

/// Whether a restore of the root at `path` was interrupted: there is a log, and nobody at work.
pub fn is_left(place: &RootState) -> bool {
    place.restore_log().exists() && Lock::share(&place.restore_lock(), Instant::now()).is_ok()
}

/// What people are told about one.
pub const LEFT: &str = "a restore was interrupted here: `turnback restore --continue` finishes it, \
                        `turnback restore --abort` takes it back";

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        write!(text, "{byte:02x}").expect("a string takes every write");
        text
    })
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let digits = text.as_bytes().chunks(2);
    digits.map(|pair| u8::from_str_radix(str::from_utf8(pair).ok()?, 16).ok()).collect()
}

/// The root whose restore was interrupted, of all directories around `dir`.
pub fn left_around(state: &crate::state::State, dir: &Path) -> Option<PathBuf> {
    dir.ancestors().find(|dir| is_left(&state.root_at(dir))).map(Path::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::State;

    #[test]
    fn what_was_begun_can_be_read_until_it_ends() {
        let dir = std::env::temp_dir().join(format!("turnback-log-{}", std::process::id()));
        let place = State::new(dir.clone()).root_at(Path::new("/x"));
        let path = |bytes: &[u8]| RelPath::from_bytes(bytes).unwrap();
        let log = RestoreLog {
            repository: false,
            of: CheckpointId::from_bits(1),
            held: CheckpointId::from_bits(2),
            verb: "restore".to_owned(),
            index: true,
            paths: vec![path(b"a\nb"), path(b"d/\xff")],
            merged: vec![(path(b"m"), "00".to_owned())],
            outside: vec![PathBuf::from("/etc/hosts")],
            closed: vec![(path(b"d"), 0o555)],
            head: Some(["refs/heads/x", "01", "02"].map(str::to_owned)),
        };
        assert_eq!(RestoreLog::read(&place).unwrap(), None);
        log.begin(&place).unwrap();
        assert_eq!(RestoreLog::read(&place).unwrap(), Some(log));
        assert!(is_left(&place));
        let running = lock(&place).unwrap();
        assert!(!is_left(&place), "somebody is at work");
        drop(running);
        RestoreLog::end(&place).unwrap();
        assert!(!is_left(&place));
        let _gone = [place.restore_lock(), place.dir().to_owned()]
            .map(|path| std::fs::remove_file(&path).or_else(|_| std::fs::remove_dir(&path)));
        let _gone = std::fs::remove_dir(dir.join("roots")).and_then(|()| std::fs::remove_dir(&dir));
    }
}
