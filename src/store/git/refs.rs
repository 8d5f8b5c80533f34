//! Our refs: one for each checkpoint and one anchor, below `refs/turnback/` and a name for the
//! worktree. All of them point at trees.
//!
//! They are read here, file by file, with limits on what may be there, and changed in `change`. None
//! has a reflog.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use gix::{
    ObjectId,
    bstr::ByteSlice,
    refs::{
        Target,
        transaction::{Change, LogChange, PreviousValue, RefEdit, RefLog},
    },
};

use super::{
    change::{check_place, commit, commit_after},
    repo::Repo,
};
use crate::{
    error::{Error, Result},
    fs::{all_at_once, read_small, sync_dir},
    model::CheckpointId,
};

/// The ref that says what the cache may rely on.
const ANCHOR: &str = "anchor";
/// A ref is locked for as long as it takes to write forty digits.
const STALE_NS: i64 = 1_000_000_000;
/// How long we wait for a lock to go, or to be that old.
const STALE_WAIT: std::time::Duration = std::time::Duration::from_millis(1_200);
/// Two hashes and a word, with room for a symbolic ref's longest name.
const REF_MAX_BYTES: u64 = 8 << 10;
/// Five million refs.
const PACKED_MAX_BYTES: u64 = 512 << 20;

/// The refs of one worktree.
pub(super) struct Refs {
    /// As in `refs/turnback/main/`.
    prefix: String,
}

impl Refs {
    /// Names the refs of the worktree at `worktree`.
    pub(super) fn of(repo: &Repo, worktree: &Path) -> Self {
        if repo.git_dir == repo.common_dir {
            Self { prefix: "refs/turnback/main/".to_owned() }
        } else {
            Self::of_linked(&repo.git_dir, worktree)
        }
    }

    /// Names the refs of the linked worktree at `worktree`, whose own git directory is, or was,
    /// `git_dir`.
    pub(super) fn of_linked(git_dir: &Path, worktree: &Path) -> Self {
        let hash = crate::state::hash_name(&[worktree.as_os_str().as_encoded_bytes()]);
        let name = git_dir.file_name().unwrap_or_default().to_string_lossy();
        Self { prefix: format!("refs/turnback/{}-{}/", plain(&name), &hash[..8]) }
    }

    /// The full name of a checkpoint's ref.
    pub(super) fn name(&self, id: CheckpointId) -> String {
        format!("{}{id}", self.prefix)
    }

    /// Where the ref called `name` is, if it is a file of its own.
    pub(super) fn path(&self, common_dir: &Path, name: &str) -> PathBuf {
        common_dir.join(&self.prefix).join(name)
    }

    /// The tree the anchor points at.
    pub(super) fn anchor(&self, repo: &Repo) -> Result<Option<ObjectId>> {
        read(repo, &format!("{}{ANCHOR}", self.prefix))
    }

    /// The tree of a checkpoint.
    pub(super) fn checkpoint(&self, repo: &Repo, id: CheckpointId) -> Result<Option<ObjectId>> {
        read(repo, &self.name(id))
    }

    /// Every checkpoint that has a ref.
    pub(super) fn list(&self, repo: &Repo) -> Result<BTreeSet<CheckpointId>> {
        // The files first: git writes its list of packed refs before it removes what is in there, so
        // whoever looks the other way round misses those that it packs in between.
        let loose = loose_names(&repo.common_dir.join(&self.prefix))?;
        let packed = packed(repo)?;
        let begin = packed.find(&self.prefix).unwrap_or(packed.len());
        // They are sorted, and so together; the line cut in front has no name in it.
        let lines = packed[begin..].lines().map(|line| line.rsplit(|&b| b == b' ').next());
        let mut found: BTreeSet<_> = lines
            .map_while(|name| name?.strip_prefix(self.prefix.as_bytes()))
            .filter_map(checkpoint_name)
            .collect();
        found.extend(loose.iter().filter_map(|name| checkpoint_name(name.as_encoded_bytes())));
        Ok(found)
    }

    /// Points the anchor at `anchor` and makes the ref of a new checkpoint, both or neither, and not
    /// before `first` is done, which is called once.
    pub(super) fn create(
        &self,
        repo: &Repo,
        id: CheckpointId,
        tree: ObjectId,
        anchor: Option<(Option<ObjectId>, ObjectId)>,
        first: impl Fn() -> Result<()> + Sync,
    ) -> Result<()> {
        let mut edits = Vec::new();
        if let Some((old, new)) = anchor.filter(|(old, new)| *old != Some(*new)) {
            edits.push(update(&format!("{}{ANCHOR}", self.prefix), new, expect(old))?);
        }
        edits.push(update(&self.name(id), tree, PreviousValue::MustNotExist)?);
        commit_after(repo, &edits, first)?;
        self.sync(repo)
    }

    /// Points the anchor elsewhere.
    pub(super) fn move_anchor(
        &self,
        repo: &Repo,
        old: Option<ObjectId>,
        new: ObjectId,
    ) -> Result<()> {
        if old == Some(new) {
            return Ok(());
        }
        commit(repo, &[update(&format!("{}{ANCHOR}", self.prefix), new, expect(old))?])?;
        self.sync(repo)
    }

    /// Deletes the refs of checkpoints, those that exist; and the anchor if `all` are going.
    pub(super) fn remove(&self, repo: &Repo, ids: &[CheckpointId], all: bool) -> Result<()> {
        if all && let Some(old) = self.anchor(repo)? {
            // First, and by itself: no cache may believe in what is about to go.
            commit(repo, &[delete(&format!("{}{ANCHOR}", self.prefix), old)?])?;
        }
        let mut edits = Vec::new();
        for id in ids {
            if let Some(old) = self.checkpoint(repo, *id)? {
                edits.push(delete(&self.name(*id), old)?);
            }
        }
        if edits.is_empty() { Ok(()) } else { commit(repo, &edits) }
    }

    /// The refs that name nothing, or something the repository does not have.
    pub(super) fn dangling(&self, repo: &Repo) -> Result<Vec<String>> {
        let ids = self.list(repo)?;
        let names = ids.iter().map(|id| self.name(*id)).chain([format!("{}{ANCHOR}", self.prefix)]);
        let leads_nowhere = |name: &String| match read(repo, name) {
            Ok(Some(tree)) => !repo.has(&tree),
            Ok(None) => false,
            Err(_) => true,
        };
        Ok(names.filter(leads_nowhere).collect())
    }

    /// Removes locks whose owners were killed, so that they do not stop every save to come. For
    /// whoever holds the root's lock: nobody else but git, for a moment, locks these refs.
    pub(super) fn remove_stale_locks(&self, repo: &Repo) -> Result<()> {
        let dir = repo.common_dir.join(&self.prefix);
        let until = std::time::Instant::now() + STALE_WAIT;
        for name in loose_names(&dir)? {
            let path = dir.join(&name);
            if !name.as_encoded_bytes().ends_with(b".lock") {
                continue;
            }
            while let Ok(stamp) = crate::fs::stat_path(&path) {
                if stamp.mtime_ns < crate::fs::now_ns().saturating_sub(STALE_NS) {
                    fs::remove_file(&path).map_err(Error::io("remove the stale", &path))?;
                } else if std::time::Instant::now() > until {
                    break;
                } else {
                    std::thread::sleep(std::time::Duration::from_millis(20));
                }
            }
        }
        Ok(())
    }

    /// Puts the names of refs on the disk; gix does not. Where git has packed them meanwhile, their
    /// directory is gone, and its own file has them.
    fn sync(&self, repo: &Repo) -> Result<()> {
        let dir = repo.common_dir.join(&self.prefix);
        let dirs: Vec<&Path> = dir.parent().into_iter().chain([&*dir]).collect();
        all_at_once(&dirs, |dir| match sync_dir(dir) {
            Err(Error::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {
                Ok(())
            }
            synced => synced,
        })
    }
}

/// Drops a dangling ref. No object goes with it: there is none.
pub(super) fn drop_dangling(repo: &Repo, name: &str) -> Result<()> {
    match read(repo, name) {
        Ok(Some(old)) => commit(repo, &[delete(name, old)?]),
        Ok(None) => Ok(()),
        // What is no hash cannot be compared, nor can it be anybody's.
        Err(_) => {
            let path = repo.common_dir.join(name);
            check_place(repo, name)?;
            fs::remove_file(&path).map_err(Error::io("remove", &path))
        }
    }
}

/// The name with nothing in it that a ref may not have.
fn plain(name: &str) -> String {
    let name: String = name
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || matches!(c, '-' | '_') { c } else { '-' })
        .take(64)
        .collect();
    if name.is_empty() { "worktree".to_owned() } else { name }
}

fn checkpoint_name(name: &[u8]) -> Option<CheckpointId> {
    str::from_utf8(name).ok().and_then(CheckpointId::parse)
}

/// Reads one ref, loose or packed, following nothing. `None` if there is none.
pub(super) fn read(repo: &Repo, name: &str) -> Result<Option<ObjectId>> {
    let damaged = || Error::damaged(name, "not the name of an object");
    // A name that is a directory is no ref; what is neither must not be waited for.
    let path = repo.common_dir.join(name);
    if path.is_file()
        && let Some(bytes) = read_small(&path, REF_MAX_BYTES)?
    {
        return ObjectId::from_hex(bytes.trim_ascii_end()).map(Some).map_err(|_| damaged());
    }
    let packed = packed(repo)?;
    let mut wanted = name.as_bytes().to_vec();
    wanted.push(b'\n');
    let found = packed.find_iter(&wanted).find_map(|at| {
        let begin = packed[..at].rfind_byte(b'\n').map_or(0, |at| at + 1);
        packed_line(packed[begin..].lines().next()?).filter(|(_, found)| *found == name.as_bytes())
    });
    Ok(found.map(|(id, _)| id))
}

fn packed(repo: &Repo) -> Result<Vec<u8>> {
    Ok(read_small(&repo.common_dir.join("packed-refs"), PACKED_MAX_BYTES)?.unwrap_or_default())
}

/// The names of packed refs that begin with `prefix`.
pub(super) fn packed_below(repo: &Repo, prefix: &str) -> Vec<String> {
    let packed = packed(repo).unwrap_or_default();
    let names = packed.lines().filter_map(|line| packed_line(line).map(|(_, name)| name));
    let below = names.filter(|name| name.starts_with(prefix.as_bytes()));
    below.filter_map(|name| str::from_utf8(name).ok().map(str::to_owned)).collect()
}

fn packed_line(line: &[u8]) -> Option<(ObjectId, &[u8])> {
    let (id, name) = line.split_once_str(" ")?;
    Some((ObjectId::from_hex(id).ok()?, name))
}

fn loose_names(dir: &Path) -> Result<Vec<std::ffi::OsString>> {
    match fs::read_dir(dir) {
        Ok(names) => Ok(names.flatten().map(|entry| entry.file_name()).collect()),
        // What else stands there holds no refs of ours, and their records know what they led to.
        Err(err)
            if matches!(
                err.kind(),
                std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory
            ) =>
        {
            Ok(Vec::new())
        }
        Err(err) => Err(Error::io("list", dir)(err)),
    }
}

fn expect(old: Option<ObjectId>) -> PreviousValue {
    old.map_or(PreviousValue::MustNotExist, |id| PreviousValue::MustExistAndMatch(id.into()))
}

fn update(name: &str, new: ObjectId, expected: PreviousValue) -> Result<RefEdit> {
    let log = LogChange { mode: RefLog::AndReference, ..Default::default() };
    Ok(RefEdit::new(full(name)?, Change::Update { log, expected, new: Target::Object(new) }))
}

fn delete(name: &str, old: ObjectId) -> Result<RefEdit> {
    let expected = PreviousValue::MustExistAndMatch(old.into());
    Ok(RefEdit::new(full(name)?, Change::Delete { expected, log: RefLog::AndReference }))
}

pub(super) fn full(name: &str) -> Result<gix::refs::FullName> {
    name.try_into().map_err(|_| Error::damaged(name, "not a name a ref can have"))
}

/// The path of a worktree's file of git's own.
pub(super) fn own(repo: &Repo, name: &str) -> PathBuf {
    repo.git_dir.join(name)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;
    use crate::{
        fs::{remove_tree, replace},
        model::{Root, RootKind},
    };

    #[test]
    fn a_ref_that_git_packs_while_we_look_is_found() {
        let top = std::env::temp_dir().join(format!("turnback-packing-{}", std::process::id()));
        let git_dir = top.join(".git");
        let dir = git_dir.join("refs/turnback/main");
        for dir in [&git_dir.join("objects"), &dir] {
            fs::create_dir_all(dir).unwrap();
        }
        replace(&git_dir.join("HEAD"), b"ref: refs/heads/x\n").unwrap();
        let kind = RootKind::Git { git_dir: git_dir.clone(), common_dir: git_dir.clone() };
        let repo = Repo::open(&Root::new(top.clone(), kind)).unwrap();
        let refs = Refs::of(&repo, &top);
        let (id, hash) = ("a000000000000001", "1".repeat(40));
        let line = format!("{hash} refs/turnback/main/{id}\n");
        for _ in 0..100 {
            replace(&dir.join(id), hash.as_bytes()).unwrap();
            let _first = fs::remove_file(git_dir.join("packed-refs"));
            let is_packed = AtomicBool::new(false);
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    replace(&git_dir.join("packed-refs"), line.as_bytes()).unwrap();
                    fs::remove_file(dir.join(id)).unwrap();
                    is_packed.store(true, Ordering::Relaxed);
                });
                while !is_packed.load(Ordering::Relaxed) {
                    assert_eq!(refs.list(&repo).unwrap().len(), 1);
                }
            });
        }
        remove_tree(&top).unwrap();
    }
}
