//! Changes of refs, all or none: by gix, which knows git's locks, and by hand where a git that was
//! killed has left one on the list of packed refs. Git goes on committing then, and so must we.

use std::{
    fs::{self, File, OpenOptions},
    io::Write as _,
    path::{Path, PathBuf},
    time::Duration,
};

use gix::{
    bstr::ByteSlice,
    refs::{
        Target,
        store::WriteReflog,
        transaction::{Change, PreviousValue, RefEdit},
    },
};

use super::{refs, repo::Repo};
use crate::{
    error::{Error, Result},
    fs::{all_at_once, now_ns, stat_path},
};

/// How often a change of refs is tried while git packs them.
const TRIES: usize = 5;
/// Git moves some hundred refs in this time.
const BETWEEN_TRIES: Duration = Duration::from_millis(10);
/// Git writes its list of packed refs, a hundred thousand of them, in less than a second.
const LEFT_BEHIND_NS: i64 = 10_000_000_000;

/// Makes all of these changes, or none.
///
/// # Errors
///
/// Fails if a ref is not what it has to be, or git holds its locks all the while.
pub(super) fn commit(repo: &Repo, edits: &[RefEdit]) -> Result<()> {
    commit_after(repo, edits, || Ok(()))
}

/// The same once `first` is done, which is called at most once: it waits for the disk while the
/// locks of the refs do.
///
/// # Errors
///
/// As [`commit`], and if `first` fails. Then nothing is changed.
pub(super) fn commit_after(
    repo: &Repo,
    edits: &[RefEdit],
    first: impl Fn() -> Result<()> + Sync,
) -> Result<()> {
    use gix::lock::acquire::Fail;
    for edit in edits {
        check_place(repo, &edit.name.as_bstr().to_str_lossy())?;
    }
    if is_left_behind(repo) {
        return by_hand(repo, edits, first);
    }
    // Long enough for a `git pack-refs`, short enough for a hook.
    let wait = Fail::AfterDurationWithBackoff(Duration::from_millis(500));
    let options = gix::refs::store::init::Options {
        write_reflog: WriteReflog::Disable,
        ..Default::default()
    };
    let store = gix::refs::file::Store::at_opts(repo.common_dir.clone(), repo.hash, options);
    let written = files_of(repo, edits);
    let mut tries = 0;
    let prepared = loop {
        tries += 1;
        match store.transaction().prepare(edits.to_vec(), wait, wait) {
            Ok(prepared) => break prepared,
            Err(_) if packed_lock(repo).is_file() && edits.iter().all(is_written) => {
                return by_hand(repo, edits, first);
            }
            // The user's gc packs refs: a ref moves, and its directory goes for a moment. What a ref
            // has to be is compared again each time.
            Err(_) if tries < TRIES => std::thread::sleep(BETWEEN_TRIES),
            Err(err) => return Err(repo.error(&err)),
        }
    };
    beside(first, &written, |path| sync_lock(path))?;
    prepared.commit(None).map(|_| ()).map_err(|err| repo.error(&err))
}

/// Calls `first`, and syncs what is to be synced, at the same time.
fn beside<T: Sync>(
    first: impl Fn() -> Result<()> + Sync,
    all: &[T],
    sync: impl Fn(&T) -> Result<()> + Sync,
) -> Result<()> {
    let waits: Vec<Option<&T>> = [None].into_iter().chain(all.iter().map(Some)).collect();
    all_at_once(&waits, |wait| wait.map_or_else(&first, &sync))
}

fn is_written(edit: &RefEdit) -> bool {
    matches!(edit.change, Change::Update { .. })
}

/// Where the refs that are to be written will be.
fn files_of(repo: &Repo, edits: &[RefEdit]) -> Vec<PathBuf> {
    edits.iter().filter(|edit| is_written(edit)).map(|edit| file_of(repo, edit)).collect()
}

fn file_of(repo: &Repo, edit: &RefEdit) -> PathBuf {
    repo.common_dir.join(edit.name.as_bstr().to_str_lossy().as_ref())
}

/// What git locks a file with.
fn lock_of(path: &Path) -> PathBuf {
    let mut lock = path.as_os_str().to_owned();
    lock.push(".lock");
    lock.into()
}

/// What git locks its list of packed refs with.
fn packed_lock(repo: &Repo) -> PathBuf {
    lock_of(&repo.common_dir.join("packed-refs"))
}

/// Whether somebody who was killed has left the list of packed refs locked.
fn is_left_behind(repo: &Repo) -> bool {
    let since = now_ns().saturating_sub(LEFT_BEHIND_NS);
    stat_path(&packed_lock(repo)).is_ok_and(|lock| lock.mtime_ns < since)
}

/// The same while the list of packed refs is locked, as git itself does it: a ref of its own wins over
/// one in the list, whatever happens to that. The lock is the user's, and stays.
fn by_hand(repo: &Repo, edits: &[RefEdit], first: impl Fn() -> Result<()> + Sync) -> Result<()> {
    let held = edits.iter().map(|edit| Held::lock(repo, edit)).collect::<Result<Vec<_>>>()?;
    held.iter().try_for_each(|held| held.prepare(repo))?;
    let sync = |held: &Held<'_>| held.file.sync_all().map_err(Error::io("sync", &held.lock));
    beside(first, &held, sync)?;
    held.into_iter().try_for_each(Held::commit)
}

/// One ref that nobody else changes meanwhile.
struct Held<'a> {
    edit: &'a RefEdit,
    path: PathBuf,
    lock: PathBuf,
    file: File,
    is_done: bool,
}

impl<'a> Held<'a> {
    fn lock(repo: &Repo, edit: &'a RefEdit) -> Result<Self> {
        let path = file_of(repo, edit);
        let lock = lock_of(&path);
        if let Some(dir) = path.parent() {
            fs::create_dir_all(dir).map_err(Error::io("make the directory", dir))?;
        }
        let made = OpenOptions::new().write(true).create_new(true).open(&lock);
        let file = made.map_err(Error::io("lock", &path))?;
        Ok(Self { edit, path, lock, file, is_done: false })
    }

    /// Sees that the ref is what it has to be, and writes what it will be.
    fn prepare(&self, repo: &Repo) -> Result<()> {
        let name = self.edit.name.as_bstr().to_str_lossy();
        let refuse = |why| Err(Error::Repository { path: repo.common_dir.clone(), why });
        let now = refs::read(repo, &name)?;
        let (Change::Update { expected, .. } | Change::Delete { expected, .. }) = &self.edit.change;
        let is_it = match expected {
            PreviousValue::MustNotExist => now.is_none(),
            PreviousValue::MustExistAndMatch(Target::Object(old)) => now == Some(*old),
            _ => false,
        };
        if !is_it {
            return refuse(format!("`{name}` was changed meanwhile"));
        }
        match &self.edit.change {
            Change::Update { new: Target::Object(new), .. } => {
                writeln!(&self.file, "{new}").map_err(Error::io("write", &self.lock))
            }
            Change::Delete { .. }
                if !refs::packed_below(repo, &name).contains(&name.to_string()) =>
            {
                Ok(())
            }
            Change::Update { .. } | Change::Delete { .. } => {
                let lock = packed_lock(repo);
                refuse(format!("a git that was killed left `{}`", lock.display()))
            }
        }
    }

    fn commit(mut self) -> Result<()> {
        if is_written(self.edit) {
            fs::rename(&self.lock, &self.path).map_err(Error::io("write", &self.path))?;
            self.is_done = true;
            return Ok(());
        }
        fs::remove_file(&self.path).map_err(Error::io("remove", &self.path))
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        if !self.is_done {
            let _ours = fs::remove_file(&self.lock);
        }
    }
}

/// Whether a ref, and the directories it is in, are what they should be, or not there yet: gix
/// would wait for a pipe, and follow a symlink out of the repository.
pub(super) fn check_place(repo: &Repo, name: &str) -> Result<()> {
    for (at, _) in name.match_indices('/').chain([(name.len(), "")]) {
        let path = repo.common_dir.join(&name[..at]);
        let found = match fs::symlink_metadata(&path) {
            Ok(found) => found,
            Err(err) if err.kind() == std::io::ErrorKind::NotFound => return Ok(()),
            Err(err) => return Err(Error::io("look at", &path)(err)),
        };
        let is_last = at == name.len();
        if !(found.is_dir() || (is_last && found.is_file())) {
            let why = format!("`{}` is not what git put there", &name[..at]);
            return Err(Error::Repository { path: repo.common_dir.clone(), why });
        }
    }
    Ok(())
}

/// Puts a ref on the disk while it still has its lock's name. Without this, a power cut right after
/// the rename leaves an empty ref, and the user's own `git gc` refuses to run.
pub(super) fn sync_lock(path: &Path) -> Result<()> {
    match File::open(lock_of(path)) {
        Ok(file) => file.sync_all().map_err(Error::io("sync", path)),
        // It is as it was, and was not written again.
        Err(err) if err.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(err) => Err(Error::io("sync", path)(err)),
    }
}
