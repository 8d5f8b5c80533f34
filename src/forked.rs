//! What says that a root is a fork: a small file in its state directory, from before its directory is
//! made until it is dropped. Knows which project it is a fork of and where it began.

use std::{
    collections::BTreeSet,
    ffi::OsStr,
    path::{Path, PathBuf},
};

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::{
    error::{Error, Result},
    fs::{create_private_dirs, read_small, replace_synced},
    model::{
        CheckpointId, RelPath,
        escape::{escape, escape_path, parse_path, unescape},
    },
    state::{RootState, StateDir},
    store::record::{self, identity::Identity},
};

/// The newest format; see `docs/FORMAT.md`.
const VERSION: u32 = 1;
/// Enough for the last time it was brought back, with what stayed.
const SIZE_MAX_BYTES: u64 = 4 << 20;
/// If more of a fork stayed when it was brought back, that time is not noted: the next one then begins where the
/// fork did, and conflicts where both changed the same.
const STAYED_MAX: usize = 10_000;
/// So many of the last times are noted.
const BROUGHT_MAX: usize = 10;

/// A fork of a project.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForkEntry {
    /// Its directory. Absolute.
    pub dir: PathBuf,
    /// What that directory is; `None` until it was made.
    pub identity: Option<Identity>,
    /// The root that it is a fork of. Absolute.
    pub origin: PathBuf,
    /// The same whatever its path.
    pub origin_identity: Option<Identity>,
    /// The checkpoint of that root from which it was made.
    pub of: CheckpointId,
    /// The fork's own first checkpoint, which holds what it began with; `None` until the fork is
    /// finished.
    pub base: Option<CheckpointId>,
    /// When it was made.
    pub at: DateTime<Utc>,
    /// The command that takes up the conversation there; empty if there is none.
    pub resume: Vec<String>,
    /// When it was brought back, newest last.
    pub brought: Vec<BroughtBack>,
}

/// A time a fork was brought back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BroughtBack {
    /// The fork's checkpoint that was.
    pub of: CheckpointId,
    /// The before-restore checkpoint of its origin.
    pub held: CheckpointId,
    /// What the fork had changed by then and was not brought.
    pub stayed: BTreeSet<RelPath>,
}

#[derive(Serialize, Deserialize)]
struct BroughtWire {
    of: String,
    held: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    stayed: Vec<String>,
}

#[derive(Serialize, Deserialize)]
struct ForkFile {
    version: u32,
    dir: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    identity: Option<Identity>,
    origin: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    origin_identity: Option<Identity>,
    of: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    base: Option<String>,
    at: DateTime<Utc>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    resume: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    brought: Vec<BroughtWire>,
}

impl ForkEntry {
    /// Writes it for the root with the state `own`. On the disk when it returns.
    ///
    /// # Errors
    ///
    /// Fails if it cannot be written.
    pub fn write(&self, own: &RootState) -> Result<()> {
        create_private_dirs(own.dir())?;
        let wire = ForkFile {
            version: VERSION,
            dir: escape_path(&self.dir),
            identity: self.identity,
            origin: escape_path(&self.origin),
            origin_identity: self.origin_identity,
            of: self.of.to_string(),
            base: self.base.map(|base| base.to_string()),
            at: self.at,
            resume: self.resume.clone(),
            brought: self.brought.iter().map(BroughtBack::to_wire).collect(),
        };
        let bytes = serde_json::to_vec_pretty(&wire).expect("text and numbers always serialize");
        replace_synced(&own.fork(), &bytes)
    }

    /// What says that the root with the state `own` is a fork; `None` if it is none.
    ///
    /// # Errors
    ///
    /// Fails if that cannot be read, or if a newer beforehand wrote it.
    pub fn read(own: &RootState) -> Result<Option<Self>> {
        let path = own.fork();
        match read_small(&path, SIZE_MAX_BYTES)? {
            Some(bytes) => parse(&path.display().to_string(), &bytes).map(Some),
            None => Ok(None),
        }
    }

    /// Notes that it was brought back.
    pub fn note_brought(&mut self, brought: BroughtBack) {
        if brought.stayed.len() <= STAYED_MAX {
            self.brought.push(brought);
            self.brought.drain(..self.brought.len().saturating_sub(BROUGHT_MAX));
        }
    }

    /// What it is called: the name of its directory.
    pub fn name(&self) -> &OsStr {
        self.dir.file_name().unwrap_or_default()
    }

    /// Whether it was made whole.
    pub fn is_finished(&self) -> bool {
        self.base.is_some()
    }

    /// Whether the directory is still the one that was made for it.
    pub fn is_there(&self) -> bool {
        self.identity.is_some() && Identity::of(&self.dir).ok() == self.identity
    }

    /// The root that it is a fork of, which may have been moved together with the fork, now at `here`.
    pub fn origin_beside(&self, here: &Path) -> PathBuf {
        let along = moved_along((&self.dir, here), &self.origin, self.origin_identity.as_ref());
        along.filter(|_| !self.origin.exists()).unwrap_or_else(|| self.origin.clone())
    }

    /// Whether it is a fork of the root at `root`, which may have been moved since.
    pub fn is_of(&self, root: &Path) -> bool {
        let is_it = || Identity::of(root).ok() == self.origin_identity;
        self.origin == root || self.origin_identity.is_some() && !self.origin.exists() && is_it()
    }
}

impl BroughtBack {
    fn to_wire(&self) -> BroughtWire {
        let stayed = self.stayed.iter().map(|path| escape(path.as_bytes())).collect();
        BroughtWire { of: self.of.to_string(), held: self.held.to_string(), stayed }
    }

    fn of_wire(wire: &BroughtWire) -> Option<Self> {
        let path = |text: &String| RelPath::from_bytes(&unescape(text)?).ok();
        Some(Self {
            of: CheckpointId::parse(&wire.of)?,
            held: CheckpointId::parse(&wire.held)?,
            stayed: wire.stayed.iter().map(path).collect::<Option<_>>()?,
        })
    }
}

fn parse(what: &str, bytes: &[u8]) -> Result<ForkEntry> {
    let damaged = |why: &str| Error::damaged(what, why);
    let wire: ForkFile = serde_json::from_slice(bytes).map_err(|err| damaged(&err.to_string()))?;
    if wire.version > VERSION {
        let (found, known) = (wire.version, VERSION);
        return Err(Error::FormatTooNew { what: what.to_owned(), found, known });
    }
    let id = |text: &str| CheckpointId::parse(text).ok_or_else(|| damaged("no id"));
    Ok(ForkEntry {
        dir: parse_path(&wire.dir).map_err(|_| damaged("no directory"))?,
        identity: wire.identity,
        origin: parse_path(&wire.origin).map_err(|_| damaged("no project"))?,
        origin_identity: wire.origin_identity,
        of: id(&wire.of)?,
        base: wire.base.as_deref().map(id).transpose()?,
        at: wire.at,
        resume: wire.resume,
        brought: wire.brought.iter().filter_map(BroughtBack::of_wire).collect(),
    })
}

/// The forks of the root at `root`, newest first, each with its state directory. Passes over what cannot be
/// read.
///
/// # Errors
///
/// Fails if the state directory cannot be listed.
pub fn forks(state: &StateDir, root: &Path) -> Result<Vec<(ForkEntry, RootState)>> {
    let mut forks = Vec::new();
    for own in record::all_roots(state)? {
        let Ok(Some(mut fork)) = ForkEntry::read(&own) else { continue };
        if !fork.is_of(root) {
            continue;
        }
        // It may have been moved since, alone or with what both are in.
        let along = moved_along((&fork.origin, root), &fork.dir, fork.identity.as_ref());
        if let Ok(Some(place)) = record::known_location(&own) {
            fork.dir = place.path;
        }
        if let Some(along) = along.filter(|_| !fork.is_there()) {
            fork.dir = along;
        }
        forks.push((fork, own));
    }
    forks.sort_by(|(a, _), (b, _)| b.at.cmp(&a.at).then_with(|| a.dir.cmp(&b.dir)));
    Ok(forks)
}

/// Where a directory is that was moved together with another one, if it is the one with `identity`.
fn moved_along(
    (from, to): (&Path, &Path),
    dir: &Path,
    identity: Option<&Identity>,
) -> Option<PathBuf> {
    let is_it = |dir: &PathBuf| Identity::of(dir).is_ok_and(|found| Some(&found) == identity);
    let mut pairs = from.ancestors().zip(to.ancestors());
    pairs.find_map(|(from, to)| Some(to.join(dir.strip_prefix(from).ok()?)).filter(is_it))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_of_a_fork_is_read_again() {
        let fork = ForkEntry {
            dir: PathBuf::from("/x/shop\nfork-1"),
            identity: Some(Identity { device: 1, inode: 2, birth: Some(3) }),
            origin: PathBuf::from("/x/shop"),
            origin_identity: None,
            of: CheckpointId::from_bits(7),
            base: None,
            at: DateTime::UNIX_EPOCH,
            resume: vec!["claude".to_owned(), "--resume".to_owned(), "1".to_owned()],
            brought: vec![BroughtBack {
                of: CheckpointId::from_bits(8),
                held: CheckpointId::from_bits(9),
                stayed: BTreeSet::from([RelPath::from_bytes(b"a\n\xff").unwrap()]),
            }],
        };
        let dir = std::env::temp_dir().join(format!("beforehand-forked-{}", std::process::id()));
        let own = StateDir::new(dir.clone()).root_at(&fork.dir);
        assert_eq!(ForkEntry::read(&own).unwrap(), None);
        fork.write(&own).unwrap();
        assert_eq!(ForkEntry::read(&own).unwrap(), Some(fork));
        crate::fs::remove_tree(&dir).unwrap();
    }

    #[test]
    fn hostile_bytes_are_no_fork() {
        for bytes in [&b""[..], b"[]", b"{}", b"{\"version\":2}", b"\xff"] {
            assert!(parse("fork.json", bytes).is_err());
        }
        let with = |dir: &str| {
            format!(
                r#"{{"version":1,"dir":"{dir}","origin":"/b","of":"a000000000000001","at":"2026-01-01T00:00:00Z"}}"#
            )
        };
        assert!(parse("fork.json", with("/a").as_bytes()).is_ok());
        assert!(parse("fork.json", with("a").as_bytes()).is_err(), "a relative path");
    }
}
