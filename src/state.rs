//! Where our own files are. Knows every path below the state directory; opens none of them.

use std::{
    ffi::OsStr,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use sha2::{Digest, Sha256};

use crate::{fs::can_make_files, model::Root};

/// The state directory: `$TURNBACK_HOME`, or `turnback` below `$XDG_STATE_HOME`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct State {
    dir: PathBuf,
}

/// The part of the state directory that belongs to one root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RootState {
    dir: PathBuf,
    state: State,
}

impl State {
    /// Makes it of an absolute path, which need not exist.
    pub fn new(dir: PathBuf) -> Self {
        Self { dir }
    }

    /// The directory itself.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The private store's objects, shared by every root.
    pub fn objects(&self) -> PathBuf {
        self.dir.join("objects")
    }

    /// The ledgers of all sessions.
    pub fn sessions(&self) -> PathBuf {
        self.dir.join("sessions")
    }

    /// One directory for each root.
    pub fn roots(&self) -> PathBuf {
        self.dir.join("roots")
    }

    /// The log of the hook's troubles and deeds.
    pub fn journal(&self) -> PathBuf {
        self.dir.join("journal")
    }

    /// What the last round of housekeeping saw and did. Its time is when the next one is due.
    pub fn maintenance_file(&self) -> PathBuf {
        self.dir.join("house.json")
    }

    /// Held during maintenance.
    pub fn maintenance_lock(&self) -> PathBuf {
        self.dir.join("house.lock")
    }

    /// One private repository for each of the user's.
    pub fn repositories(&self) -> PathBuf {
        self.dir.join("repositories")
    }

    /// What `install` wrote into settings of agents, and where.
    pub fn installed(&self) -> PathBuf {
        self.dir.join("installed.json")
    }

    /// Files of agents as they were before `install` changed them.
    pub fn backups(&self) -> PathBuf {
        self.dir.join("backups")
    }

    /// What to do where nothing can be written.
    pub const HOW_TO_WRITE: &'static str =
        "make it writable, or set `TURNBACK_HOME` to a directory of your own";

    /// The first directory in which nothing can be written, of those that a checkpoint of `own`
    /// needs, or of any root. A checkpoint cannot be taken then.
    pub fn unwritable(&self, own: Option<&RootState>) -> Option<PathBuf> {
        let all =
            [self.dir.clone(), self.objects(), self.roots(), self.sessions(), self.repositories()];
        let own = own.map(|own| own.dir().to_owned());
        all.into_iter().chain(own).find(|dir| !can_make_files(dir))
    }

    /// The part of `root`.
    pub fn root(&self, root: &Root) -> RootState {
        self.root_at(root.path())
    }

    /// The part of the root at `path`, which must be canonical; the root itself may be gone.
    pub fn root_at(&self, path: &Path) -> RootState {
        let name = hash_name(&[path.as_os_str().as_bytes()]);
        RootState { dir: self.roots().join(name), state: self.clone() }
    }

    /// The part that lies in the directory `name` of [`State::roots`].
    pub fn root_named(&self, name: &OsStr) -> RootState {
        RootState { dir: self.roots().join(name), state: self.clone() }
    }
}

impl RootState {
    /// The directory itself.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The state directory it is in.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// Which root this is: its path, device and inode, for `status` and for orphans.
    pub fn location(&self) -> PathBuf {
        self.dir.join("root.json")
    }

    /// The cache of the last scan.
    pub fn cache(&self) -> PathBuf {
        self.dir.join("cache")
    }

    /// Held while the cache, the anchor or the checkpoints are changed.
    pub fn lock(&self) -> PathBuf {
        self.dir.join("lock")
    }

    /// One record for each checkpoint, by its id.
    pub fn checkpoints(&self) -> PathBuf {
        self.dir.join("checkpoints")
    }

    /// Records of which nothing can be told.
    pub fn damaged(&self) -> PathBuf {
        self.dir.join("damaged")
    }

    /// What the records said when they were last read. Nothing depends on it.
    pub fn records(&self) -> PathBuf {
        self.dir.join("records")
    }

    /// The anchor of the file store: the top directory the cache was written for.
    pub fn anchor(&self) -> PathBuf {
        self.dir.join("anchor")
    }

    /// How much changed between checkpoints, for lists. Nothing depends on it.
    pub fn stats(&self) -> PathBuf {
        self.dir.join("stats.json")
    }

    /// The log of a restore that is under way.
    pub fn restore_log(&self) -> PathBuf {
        self.dir.join("restore-log")
    }

    /// What agents left in it: a log, and the bytes of small files by their SHA-256.
    pub fn left(&self) -> PathBuf {
        self.dir.join("left")
    }

    /// Held while a checkpoint of it is taken in the background.
    pub fn warming(&self) -> PathBuf {
        self.dir.join("warming")
    }

    /// Held during a restore.
    pub fn restore_lock(&self) -> PathBuf {
        self.dir.join("restore-lock")
    }
}

/// A file name that stands for any bytes at all: 32 hex digits of their SHA-256, each part ended
/// by a NUL so that no two lists of parts run together.
pub fn hash_name(parts: &[&[u8]]) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update(part);
        hash.update([0]);
    }
    let digit = |bits: u8| char::from(b"0123456789abcdef"[usize::from(bits)]);
    hash.finalize()[..16].iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
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
