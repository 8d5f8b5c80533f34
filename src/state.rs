//! The layout of the state directory: knows every path in it and opens none of them.

use std::{
    ffi::OsStr,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use serde::Deserialize;
use sha2::{Digest, Sha256};

use crate::{
    fs::{can_make_files, list_names},
    model::{CheckpointId, Root},
};

/// The format version that a JSON file of ours states.
///
/// # Errors
///
/// The bytes are no JSON object with a `version`.
pub fn version_of(json: &[u8]) -> serde_json::Result<u32> {
    #[derive(Deserialize)]
    struct VersionOnly {
        version: u32,
    }
    serde_json::from_slice(json).map(|VersionOnly { version }| version)
}

/// How the names of directories with the state of older builds begin.
const OLDER: &str = "older-";

/// The state directory: `$BEFOREHAND_HOME`, or `beforehand` below `$XDG_STATE_HOME`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateDir {
    dir: PathBuf,
}

/// The part of the state directory that belongs to one root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RootState {
    dir: PathBuf,
    state: StateDir,
}

impl StateDir {
    /// Takes an absolute path, which need not exist.
    pub fn new(dir: PathBuf) -> Self {
        Self { dir }
    }

    /// The directory itself.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The objects of the file store, shared by every root.
    pub fn objects(&self) -> PathBuf {
        self.dir.join("objects")
    }

    /// An empty file: it says that everything in this directory has that version of the format.
    pub fn format(&self, version: u32) -> PathBuf {
        self.dir.join(format!("format-{version}"))
    }

    /// A directory for the state of an older build, of that format version.
    pub fn older(&self, version: u32, number: u32) -> PathBuf {
        self.dir.join(format!("{OLDER}{version}-{number}"))
    }

    /// The directories with the state of older builds, which nothing reads.
    pub fn all_older(&self) -> Vec<PathBuf> {
        let names = list_names(&self.dir).unwrap_or_default();
        let names = names.into_iter().filter(|name| name.as_bytes().starts_with(OLDER.as_bytes()));
        names.map(|name| self.dir.join(name)).collect()
    }

    /// The ledgers of all sessions.
    pub fn sessions(&self) -> PathBuf {
        self.dir.join("sessions")
    }

    /// One directory for each root.
    pub fn roots(&self) -> PathBuf {
        self.dir.join("roots")
    }

    /// The log of the hook's errors and actions.
    pub fn journal(&self) -> PathBuf {
        self.dir.join("journal")
    }

    /// What the last maintenance run saw and did. Its modification time says when the next one is
    /// due.
    pub fn maintenance_file(&self) -> PathBuf {
        self.dir.join("maintenance.json")
    }

    /// Copies of projects in which a program is tried.
    pub fn scratch(&self) -> PathBuf {
        self.dir.join("scratch")
    }

    /// Held during maintenance.
    pub fn maintenance_lock(&self) -> PathBuf {
        self.dir.join("maintenance.lock")
    }

    /// One private repository for each of the user's repositories.
    pub fn repositories(&self) -> PathBuf {
        self.dir.join("repositories")
    }

    /// What `install` wrote into settings of agents, and where.
    pub fn installed(&self) -> PathBuf {
        self.dir.join("installed.json")
    }

    /// Agents' conversations, which can be forked after their agent has deleted them.
    pub fn conversations(&self) -> PathBuf {
        self.dir.join("conversations")
    }

    /// Files of agents as they were before `install` changed them.
    pub fn backups(&self) -> PathBuf {
        self.dir.join("backups")
    }

    /// The hint for a state directory that cannot be written.
    pub const HOW_TO_WRITE: &'static str =
        "make it writable, or set `BEFOREHAND_HOME` to a directory of your own";

    /// The first directory that cannot be written, of those that a checkpoint of `own` (or of any
    /// root) needs. No checkpoint can be taken then.
    pub fn unwritable(&self, own: Option<&RootState>) -> Option<PathBuf> {
        let all =
            [self.dir.clone(), self.objects(), self.roots(), self.sessions(), self.repositories()];
        let own = own.map(|own| own.dir().to_owned());
        all.into_iter().chain(own).find(|dir| !can_make_files(dir))
    }

    /// The state directory of `root`.
    pub fn root(&self, root: &Root) -> RootState {
        self.root_at(root.path())
    }

    /// The state directory of the root at `path`, which must be canonical. The root itself may be
    /// gone.
    pub fn root_at(&self, path: &Path) -> RootState {
        let name = hash_name(&[path.as_os_str().as_bytes()]);
        RootState { dir: self.roots().join(name), state: self.clone() }
    }

    /// The state directory called `name` in [`StateDir::roots`].
    pub fn root_named(&self, name: &OsStr) -> RootState {
        RootState { dir: self.roots().join(name), state: self.clone() }
    }
}

impl RootState {
    /// The directory itself.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The state directory that contains it.
    pub fn state(&self) -> &StateDir {
        &self.state
    }

    /// The file with the root's path, device and inode, for `status` and to find orphans.
    pub fn location(&self) -> PathBuf {
        self.dir.join("root.json")
    }

    /// The cache of the last scan.
    pub fn cache(&self) -> PathBuf {
        self.dir.join("cache")
    }

    /// The stamps of the files with the objects that the cache relies on. It can be deleted at any time.
    pub fn object_stamps(&self) -> PathBuf {
        self.dir.join("object-stamps")
    }

    /// Held while the cache, the anchor or the checkpoints are changed.
    pub fn lock(&self) -> PathBuf {
        self.dir.join("lock")
    }

    /// One record for each checkpoint, by its id.
    pub fn checkpoints(&self) -> PathBuf {
        self.dir.join("checkpoints")
    }

    /// Quarantined records: damaged beyond salvage.
    pub fn damaged(&self) -> PathBuf {
        self.dir.join("damaged")
    }

    /// The anchor of the file store: the top directory the cache was written for.
    pub fn anchor(&self) -> PathBuf {
        self.dir.join("anchor")
    }

    /// Cached counts of changes between checkpoints, for lists. It can be deleted at any time.
    pub fn stats(&self) -> PathBuf {
        self.dir.join("stats.json")
    }

    /// The log of a restore that is in progress.
    pub fn restore_log(&self) -> PathBuf {
        self.dir.join("restore-log")
    }

    /// What agents' calls changed: a log, and small file contents by their SHA-256.
    pub fn attribution(&self) -> PathBuf {
        self.dir.join("attribution")
    }

    /// Contents of files as calls left them, a file for each checkpoint that covers the calls.
    pub fn contents(&self) -> PathBuf {
        self.attribution().join("contents")
    }

    /// The same of the calls that one checkpoint covers.
    pub fn contents_of(&self, id: CheckpointId) -> PathBuf {
        self.contents().join(id.to_string())
    }

    /// Held while a warm-up takes a checkpoint of the root.
    pub fn warming(&self) -> PathBuf {
        self.dir.join("warming")
    }

    /// What says that the root is a fork of another one.
    pub fn fork(&self) -> PathBuf {
        self.dir.join("fork.json")
    }

    /// Held during a restore.
    pub fn restore_lock(&self) -> PathBuf {
        self.dir.join("restore-lock")
    }
}

/// A file name derived from arbitrary bytes: 32 hex digits of a SHA-256. Each part ends with a NUL,
/// so that different lists of parts never hash alike.
pub fn hash_name(parts: &[&[u8]]) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update(part);
        hash.update([0]);
    }
    hex(&hash.finalize()[..16])
}

/// Two digits for each byte.
pub fn hex(bytes: &[u8]) -> String {
    let digit = |bits: u8| char::from(b"0123456789abcdef"[usize::from(bits)]);
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_never_leaves_its_directory() {
        for hostile in ["../../x", "", "/etc/passwd", "a\0b", "\u{1b}[2J"] {
            let name = hash_name(&[hostile.as_bytes()]);
            assert!(name.len() == 32 && name.bytes().all(|b| b.is_ascii_hexdigit()), "{name}");
        }
        assert_ne!(hash_name(&[b"a", b"b"]), hash_name(&[b"ab"]));
    }
}
