//! Restores the index of a checkpoint the way git writes an index: atomically, through
//! `index.lock`.

use std::{
    collections::HashMap,
    fs::{self, OpenOptions},
    io::{self, BufWriter, Write as _},
    os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
};

use gix::{
    ObjectId,
    bstr::ByteSlice,
    index::{
        State,
        entry::{Flags, Mode, Stage, Stat},
    },
};

use super::{
    head,
    index::{self, IndexEntry},
    refs::own,
    repo::Repo,
};
use crate::{
    error::{Error, Result},
    fs::open_options,
    model::Head,
    store::IndexOutcome,
};

/// Why the index of a checkpoint must not be restored now; `None` if it may.
pub(in crate::store) fn refusal(repo: &Repo, then: &Head) -> Option<IndexOutcome> {
    let now = head::read(repo);
    if let Some(what) = now.in_progress.or_else(|| then.in_progress.clone()) {
        return Some(IndexOutcome::InProgress(what));
    }
    let moved = (&now.branch, &now.commit) != (&then.branch, &then.commit);
    moved.then_some(IndexOutcome::HeadMoved)
}

/// Writes an index with `entries`. Keeps the cached stats of unchanged entries, so that git need
/// not read those files again.
pub(in crate::store) fn write(repo: &Repo, entries: &[IndexEntry]) -> Result<IndexOutcome> {
    if !differs(repo, entries) {
        return Ok(IndexOutcome::Unchanged);
    }
    let lock = IndexLock::take(repo)?;
    let known = present(repo);
    if is_same(&known, entries) {
        return Ok(IndexOutcome::Unchanged);
    }
    let new = state_of(repo.hash, entries, &stats_of(&known))?;
    lock.write(new)?;
    Ok(IndexOutcome::Restored(entries.len()))
}

/// The bytes of an index with `entries` and without cached stats.
pub(in crate::store) fn index_bytes(
    hash: gix::hash::Kind,
    entries: &[IndexEntry],
) -> Result<Vec<u8>> {
    let state = state_of(hash, entries, &HashMap::new())?;
    let mut bytes = Vec::new();
    gix::index::File::from_state(state, PathBuf::new())
        .write_to(&mut bytes, gix::index::write::Options::default())
        .map_err(|err| Error::damaged("the index", err.to_string()))?;
    Ok(bytes)
}

/// An index with `entries`, and the cached stats of unchanged ones.
fn state_of(
    hash: gix::hash::Kind,
    entries: &[IndexEntry],
    seen_before: &HashMap<EntryKey<'_>, Stat>,
) -> Result<State> {
    let mut new = State::new(hash);
    for entry in entries {
        let id = entry.id;
        if id.kind() != hash {
            let why = "an entry has the hash of another kind of repository";
            return Err(Error::damaged("index.extra", why));
        }
        let mode = Mode::from_bits(entry.mode)
            .ok_or_else(|| Error::damaged("index.extra", "an entry has an unknown mode"))?;
        let stat = seen_before.get(&(&entry.path[..], entry.stage, id, entry.mode)).copied();
        let stage = Flags::from_stage(stage_of(entry.stage));
        let mut flags = entry.flags | stage;
        flags.set(Flags::EXTENDED, flags.intersects(Flags::INTENT_TO_ADD | Flags::SKIP_WORKTREE));
        let path = entry.path.as_bstr();
        new.dangerously_push_entry(stat.unwrap_or_default(), id, flags, mode, path);
    }
    new.sort_entries();
    Ok(new)
}

/// Whether the present index does not have exactly `entries`.
pub(in crate::store) fn differs(repo: &Repo, entries: &[IndexEntry]) -> bool {
    !is_same(&present(repo), entries)
}

fn present(repo: &Repo) -> State {
    match index::read(repo) {
        Ok(Some(present)) => present.into_parts().0,
        Ok(None) | Err(_) => State::new(repo.hash),
    }
}

fn stage_of(stage: u8) -> Stage {
    match stage {
        1 => Stage::Base,
        2 => Stage::Ours,
        3 => Stage::Theirs,
        _ => Stage::Unconflicted,
    }
}

type EntryKey<'a> = (&'a [u8], u8, ObjectId, u32);

fn stats_of(index: &State) -> HashMap<EntryKey<'_>, Stat> {
    let key = |entry: &gix::index::Entry| {
        let stage = u8::try_from(entry.stage_raw()).unwrap_or(0);
        (entry.path(index).as_bytes(), stage, entry.id, entry.mode.bits())
    };
    index.entries().iter().map(|entry| (key(entry), entry.stat)).collect()
}

fn is_same(state: &State, entries: &[IndexEntry]) -> bool {
    state.entries().len() == entries.len()
        && state.entries().iter().zip(entries).all(|(now, then)| {
            now.path(state) == then.path.as_bstr()
                && now.id == then.id
                && now.mode.bits() == then.mode
                && now.stage_raw() == u32::from(then.stage)
                && index::kept_flags(now.flags) == then.flags
        })
}

/// A second name of our `index.lock`. By this hard link, and by our lock on the file, we recognize
/// our own `index.lock` after a crash.
const BESIDE: &str = "beforehand-index";

/// Removes an `index.lock` that a killed process of ours left.
pub(in crate::store) fn sweep(repo: &Repo) -> Result<()> {
    let path = own(repo, BESIDE);
    let file = match open_options().read(true).open(&path) {
        Ok(file) => file,
        Err(err) if err.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(err) => return Err(Error::io("open", &path)(err)),
    };
    if file.try_lock().is_err() {
        return Err(busy(&path));
    }
    let lock = own(repo, "index.lock");
    let inode = file.metadata().map_err(Error::io("look at", &path))?.ino();
    if fs::symlink_metadata(&lock).is_ok_and(|found| found.ino() == inode) {
        fs::remove_file(&lock).map_err(Error::io("remove the stale", &lock))?;
    }
    fs::remove_file(&path).map_err(Error::io("remove the stale", &path))
}

fn busy(path: &Path) -> Error {
    Error::other(
        format!("another git process is at work: `{}` exists", path.display()),
        "wait for it; if none is running, remove that file",
    )
}

/// `index.lock`, which prevents git from changing the index. Removed on drop, unless it was renamed
/// to the index.
struct IndexLock {
    path: PathBuf,
    beside: PathBuf,
    file: Option<fs::File>,
}

impl IndexLock {
    fn take(repo: &Repo) -> Result<Self> {
        let (beside, path) = (own(repo, BESIDE), own(repo, "index.lock"));
        sweep(repo)?;
        let create =
            |path: &Path| OpenOptions::new().write(true).create_new(true).mode(0o666).open(path);
        let file = create(&beside).map_err(Error::io("make", &beside))?;
        let mut lock = Self { path: PathBuf::new(), beside, file: None };
        file.try_lock().map_err(|_| busy(&lock.beside))?;
        let file = match fs::hard_link(&lock.beside, &path) {
            Ok(()) => Ok(file),
            Err(err) if err.kind() == io::ErrorKind::AlreadyExists => Err(err),
            // The file system has no hard links: we create a lock like git's own, which cannot be
            // recognized after a crash.
            Err(_) => create(&path),
        };
        lock.file = match file {
            Ok(file) => Some(file),
            Err(err) if err.kind() == io::ErrorKind::AlreadyExists => return Err(busy(&path)),
            Err(err) => return Err(Error::io("make", &path)(err)),
        };
        lock.path = path;
        Ok(lock)
    }

    fn write(mut self, state: State) -> Result<()> {
        let index = self.path.with_extension("");
        let Some(file) = self.file.take() else { return Ok(()) };
        let written = || -> io::Result<()> {
            if let Ok(present) = fs::metadata(&index) {
                let mode = present.permissions().mode() & 0o777;
                file.set_permissions(fs::Permissions::from_mode(mode))?;
            }
            let mut out = BufWriter::new(&file);
            let options = gix::index::write::Options::default();
            gix::index::File::from_state(state, &index)
                .write_to(&mut out, options)
                .map_err(|err| io::Error::other(err.to_string()))?;
            out.flush()?;
            drop(out);
            file.sync_all()?;
            fs::rename(&self.path, &index)
        };
        match written() {
            Ok(()) => {
                self.path = PathBuf::new();
                Ok(())
            }
            Err(err) => Err(Error::io("write", &index)(err)),
        }
    }
}

impl Drop for IndexLock {
    fn drop(&mut self) {
        if !self.path.as_os_str().is_empty() {
            let _gone = fs::remove_file(&self.path);
        }
        let _gone = fs::remove_file(&self.beside);
    }
}
