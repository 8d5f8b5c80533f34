//! The refs of a repository in one file, `packed-refs`.

use std::{
    collections::{BTreeMap, HashSet},
    sync::Arc,
    time::{Duration, Instant},
};

use gix::{ObjectId, bstr::ByteSlice};

use super::super::repo::Repo;
use crate::{
    error::Result,
    fs::{Lock, PendingFile, stat_path},
};

/// The refs of some three hundred checkpoints. A larger list is written again only for every
/// [`LOOSE_MAX`](super::LOOSE_MAX)th checkpoint.
const REWRITTEN_MAX_BYTES: u64 = 64 << 10;
/// What git calls refs in one file, and the same while it is written. Only the holder of [`PACKED_LOCK`] does.
const PACKED: &str = "packed-refs";
const PACKED_NEW: &str = "packed-refs.new";
const PACKED_LOCK: &str = "refs.lock";
/// Git then searches the list without reading it whole. All our refs point at trees, which are never peeled.
const PACKED_HEADER: &[u8] = b"# pack-refs with: peeled fully-peeled sorted \n";
/// It is held for as long as a sync takes.
const LOCK_WAIT: Duration = Duration::from_secs(1);

/// The next content of `packed-refs`, and the lock that nothing else changes it meanwhile.
pub(super) struct PackedList {
    bytes: Vec<u8>,
    _lock: Lock,
}

impl PackedList {
    /// The list with other values for `new`. `None` if another process holds it for too long, or if some line
    /// cannot be read; then files of their own are as good.
    pub(super) fn with(repo: &Repo, new: &[(String, ObjectId)]) -> Option<Self> {
        let lock = lock_list(repo).ok()?;
        let packed = packed(repo).ok()?;
        let is_ours = |line: &&[u8]| !line.is_empty() && !line.starts_with(b"#");
        let lines = packed
            .lines()
            .filter(is_ours)
            .map(|line| packed_line(line).map(|(id, name)| (name, id)));
        let mut refs = lines.collect::<Option<BTreeMap<&[u8], ObjectId>>>()?;
        refs.extend(new.iter().map(|(name, id)| (name.as_bytes(), *id)));
        let mut bytes = PACKED_HEADER.to_vec();
        for (name, id) in refs {
            bytes.extend_from_slice(format!("{id} ").as_bytes());
            bytes.extend_from_slice(name);
            bytes.push(b'\n');
        }
        Some(Self { bytes, _lock: lock })
    }

    /// The list without `names`; `None` if it has none of them.
    pub(super) fn without(repo: &Repo, names: &[String]) -> Result<Option<Self>> {
        let names: HashSet<&[u8]> = names.iter().map(String::as_bytes).collect();
        let is_one = |line: &&[u8]| {
            packed_line(line.trim_end()).is_some_and(|(_, name)| names.contains(name))
        };
        if !packed(repo)?.lines_with_terminator().any(|line| is_one(&line)) {
            return Ok(None);
        }
        let lock = lock_list(repo)?;
        let packed = packed(repo)?;
        let kept = packed.lines_with_terminator().filter(|line| !is_one(line));
        Ok(Some(Self { bytes: kept.flatten().copied().collect(), _lock: lock }))
    }

    pub(super) fn write(&self, repo: &Repo) -> Result<PendingFile> {
        let dir = &repo.common_dir;
        PendingFile::write_as(dir.join(PACKED_NEW), &dir.join(PACKED), &self.bytes)
    }
}

/// Waits for the lock of `packed-refs`. Git has one of its own, which a killed process leaves behind.
pub(super) fn lock_list(repo: &Repo) -> Result<Lock> {
    Lock::acquire(&repo.common_dir.join(PACKED_LOCK), Instant::now() + LOCK_WAIT)
}

/// The bytes of `packed-refs`; none if there is no such file.
pub(super) fn packed(repo: &Repo) -> Result<Arc<Vec<u8>>> {
    repo.packed_refs.read(&repo.common_dir.join(PACKED))
}

/// Whether the list is so large that writing it again for each checkpoint would take longer than everything else.
pub(super) fn is_large(repo: &Repo) -> bool {
    stat_path(&repo.common_dir.join(PACKED)).is_ok_and(|stamp| stamp.size > REWRITTEN_MAX_BYTES)
}

/// The names of packed refs that start with `prefix`.
///
/// # Errors
///
/// Fails if they cannot be read.
pub(in crate::store) fn packed_below(repo: &Repo, prefix: &str) -> Result<Vec<String>> {
    let packed = packed(repo)?;
    let names = packed.lines().filter_map(|line| packed_line(line).map(|(_, name)| name));
    let below = names.filter(|name| name.starts_with(prefix.as_bytes()));
    Ok(below.filter_map(|name| str::from_utf8(name).ok().map(str::to_owned)).collect())
}

/// A line of `packed-refs` that is a ref.
pub(super) fn packed_line(line: &[u8]) -> Option<(ObjectId, &[u8])> {
    let (id, name) = line.split_once_str(" ")?;
    Some((ObjectId::from_hex(id).ok()?, name))
}

/// Whether `packed-refs` contains a malformed line.
pub(in crate::store) fn has_garbage(repo: &Repo) -> bool {
    let Ok(packed) = packed(repo) else { return true };
    let is_line = |line: &[u8]| {
        line.is_empty()
            || line.starts_with(b"#")
            || line.strip_prefix(b"^").is_some_and(|id| ObjectId::from_hex(id).is_ok())
            || packed_line(line).is_some()
    };
    !packed.lines().all(is_line)
}
