//! Which directories need not be listed again, and the syncing that comes before that is written.

use std::{
    collections::BTreeMap,
    ffi::OsStr,
    os::unix::ffi::OsStrExt,
    panic::resume_unwind,
    path::{Path, PathBuf},
    sync::Arc,
    thread::{self, JoinHandle},
};

use crate::{
    error::Result,
    fs::{all_at_once, now_ns, read_small, replace, stat_path, sync_dir},
    model::escape::{escape, unescape},
    scan::is_racy,
};

/// Enough for a million object directories.
const SEEN_MAX_BYTES: u64 = 64 << 20;

/// The state of a directory when everything in it had been linked: its stamp, and the ctime of the
/// directory of ours with the links. While both are unchanged, there is nothing to link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Proof {
    mtime_ns: i64,
    ctime_ns: i64,
    inode: u64,
    ours_ns: i64,
}

/// Directories that need not be listed again, by their path below `linked`.
pub(super) struct Seen {
    linked: PathBuf,
    now: BTreeMap<Vec<u8>, Proof>,
    before: BTreeMap<Vec<u8>, Proof>,
}

impl Seen {
    /// As the last run has left them.
    pub(super) fn load(linked: &Path) -> Self {
        let read = read_small(&linked.join("seen"), SEEN_MAX_BYTES).ok().flatten();
        let now = read.as_deref().and_then(parse).unwrap_or_default();
        Self { linked: linked.to_owned(), before: now.clone(), now }
    }

    /// Whether `dir`, called `name` here, need not be listed again.
    pub(super) fn has(&self, name: &[u8], dir: &Path) -> bool {
        self.now.contains_key(name)
            && self.proof_of(name, dir).is_some_and(|(proof, _)| self.is_proven(name, &proof))
    }

    pub(super) fn is_proven(&self, name: &[u8], proof: &Proof) -> bool {
        self.now.get(name) == Some(proof)
    }

    /// The present proof for a directory, and whether its stamp is racy.
    pub(super) fn proof_of(&self, name: &[u8], dir: &Path) -> Option<(Proof, bool)> {
        let theirs = stat_path(dir).ok()?;
        let proof = Proof {
            mtime_ns: theirs.mtime_ns,
            ctime_ns: theirs.ctime_ns,
            inode: theirs.inode,
            ours_ns: self.ours_ns(name),
        };
        Some((proof, is_racy(&theirs, now_ns())))
    }

    fn ours_ns(&self, name: &[u8]) -> i64 {
        let ours = stat_path(&self.linked.join(OsStr::from_bytes(name)));
        ours.map_or(0, |ours| ours.ctime_ns)
    }

    /// Everything in the directory is here; `proof` is from before it was listed.
    pub(super) fn add(&mut self, name: Vec<u8>, proof: Proof) {
        let ours_ns = self.ours_ns(&name);
        self.now.insert(name, Proof { ours_ns, ..proof });
    }

    pub(super) fn forget(&mut self, name: &[u8]) {
        self.now.remove(name);
    }

    /// The text of the file; `None` if nothing has changed.
    pub(super) fn to_text(&self) -> Option<String> {
        let mut text = String::new();
        for (name, Proof { mtime_ns, ctime_ns, inode, ours_ns }) in &self.now {
            let name = escape(name);
            text.push_str(&format!("{mtime_ns} {ctime_ns} {inode} {ours_ns} {name}\n"));
        }
        (self.now != self.before).then_some(text)
    }
}

fn parse(bytes: &[u8]) -> Option<BTreeMap<Vec<u8>, Proof>> {
    let parse = |line: &str| {
        let mut fields = line.splitn(5, ' ');
        let proof = Proof {
            mtime_ns: fields.next()?.parse().ok()?,
            ctime_ns: fields.next()?.parse().ok()?,
            inode: fields.next()?.parse().ok()?,
            ours_ns: fields.next()?.parse().ok()?,
        };
        Some((unescape(fields.next()?)?, proof))
    };
    str::from_utf8(bytes).ok()?.lines().map(parse).collect()
}

/// Directories that are being synced in a thread of their own: the caller has files to read.
#[derive(Debug)]
pub(super) enum Syncing {
    InThread(JoinHandle<Result<()>>),
    Done(Result<()>),
}

/// What is to be on the disk before the next run may rely on it.
struct Unsynced {
    linked: PathBuf,
    changed: Vec<PathBuf>,
    seen: Option<String>,
}

impl Syncing {
    /// Syncs `changed`, and only then writes what need not be listed again.
    pub(super) fn begin(linked: &Path, changed: Vec<PathBuf>, seen: Option<String>) -> Self {
        let unsynced = Arc::new(Unsynced { linked: linked.to_owned(), changed, seen });
        if unsynced.changed.is_empty() {
            return Self::Done(unsynced.sync());
        }
        let theirs = Arc::clone(&unsynced);
        match thread::Builder::new().spawn(move || theirs.sync()) {
            Ok(thread) => Self::InThread(thread),
            Err(_) => Self::Done(unsynced.sync()),
        }
    }

    pub(super) fn wait(self) -> Result<()> {
        match self {
            Self::InThread(thread) => thread.join().unwrap_or_else(|panic| resume_unwind(panic)),
            Self::Done(synced) => synced,
        }
    }
}

impl Unsynced {
    fn sync(&self) -> Result<()> {
        // Copies are on the disk already. Not syncfs, because other programs may be writing.
        all_at_once(&self.changed, |dir| sync_dir(dir))?;
        if let Some(text) = &self.seen {
            // Without it, the next run lists everything again.
            let _slower = replace(&self.linked.join("seen"), text.as_bytes());
        }
        Ok(())
    }
}
