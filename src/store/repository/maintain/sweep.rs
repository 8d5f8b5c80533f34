//! Garbage collection in private repositories: frees unneeded objects, and whole repositories.

use std::{
    collections::HashSet,
    fs, io,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
    time::Instant,
};

use gix::ObjectId;

use super::{
    super::needed_trees,
    GitPackWriter, PrivateRepository, ReachableObjects, Repo, names_of,
    packs::{
        PackIndexRow, copy_rows, is_worth_rewriting, loose_in, own_packs, remove_pack, rows_of,
        size_on_disk,
    },
    refs,
};
use crate::{
    crash,
    error::{Error, Result},
    fs::{Lock, now_ns, stat_path},
    model::ContentId,
    state::StateDir,
};

/// Suffix of a private repository that is being removed: see [`PrivateRepository::all`].
const BURIED: &str = ".removed";
/// No write takes longer: an hour.
const WRITING_MAX_NS: i64 = 3_600_000_000_000;

/// What a sweep came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Swept {
    /// How many bytes it freed.
    pub freed: u64,
    /// Whether it left out a private repository because another process was at maintenance there.
    pub is_busy: bool,
}

/// Frees our objects that neither a ref nor a record needs, and private repositories that no record
/// names.
///
/// # Errors
///
/// Fails if saves hold the lock for too long, or if something cannot be read or removed.
pub(in crate::store) fn sweep(state: &StateDir, deadline: Instant) -> Result<Swept> {
    remove_buried(state)?;
    let (mut swept, mut done) = (Swept::default(), Ok(()));
    for private in PrivateRepository::all(state)? {
        let lock = private.dir().join("maintenance.lock");
        let one = Lock::acquire(&lock, Instant::now())
            .and_then(|_only_one| sweep_one(state, &private, deadline));
        match one {
            Ok(bytes) => swept.freed += bytes,
            Err(Error::Busy { path, .. }) if path == lock => swept.is_busy = true,
            Err(err) => done = done.and(Err(err)),
        }
    }
    done.map(|()| swept)
}

fn sweep_one(state: &StateDir, private: &PrivateRepository, deadline: Instant) -> Result<u64> {
    let mut sweep =
        Sweep { state, private, repo: private.repo(), marks: ReachableObjects::default() };
    if sweep.is_idle()? {
        let _lock = private.lock_exclusive(deadline)?;
        if sweep.is_idle()? {
            return remove_repository(state, private);
        }
    }
    let unneeded_refs = sweep.mark()?;
    let condemned = sweep.condemned()?;
    let refs = private.dir().join("refs");
    let is_littered = has_unfinished(&sweep.repo.objects()) || !locks(&refs).is_empty();
    if condemned.is_empty() && unneeded_refs.is_empty() && !is_littered {
        return Ok(0);
    }
    // The objects that survive go into a new pack first, while saves continue.
    let written = sweep.marks.seen.clone();
    let added = sweep.save_survivors(&condemned)?;
    crash::point("sweep-pack");
    let _lock = private.lock_exclusive(deadline)?;
    sweep.repo = sweep.repo.refreshed();
    let unneeded_refs = sweep.mark()?;
    refs::delete(&sweep.repo, &unneeded_refs)?;
    let freed = sweep.remove(condemned, &written)?;
    remove_unfinished(&sweep.repo.objects());
    for lock in locks(&refs) {
        // Under the exclusive lock no ref is being written: the writer of this lock file is dead.
        let _gone = fs::remove_file(lock);
    }
    Ok(freed.saturating_sub(added))
}

/// Packs and loose objects to remove from one of our object directories.
struct Condemned {
    packs: Vec<(PathBuf, Vec<PackIndexRow>)>,
    loose: Vec<(PathBuf, ObjectId)>,
}

impl Condemned {
    fn is_empty(&self) -> bool {
        self.packs.is_empty() && self.loose.is_empty()
    }
}

/// The sweep of one private repository.
struct Sweep<'a> {
    state: &'a StateDir,
    private: &'a PrivateRepository,
    repo: Repo,
    marks: ReachableObjects,
}

impl Sweep<'_> {
    /// Whether neither a checkpoint's ref nor a record needs anything in the repository.
    fn is_idle(&self) -> Result<bool> {
        let names = refs::all(&self.repo)?;
        let is_named =
            needed_trees(self.state)?.iter().any(|(store, _)| store == self.private.name());
        Ok(!is_named && !names.iter().any(|name| refs::is_of_checkpoint(name)))
    }

    /// Marks what refs and records need now. Returns the refs that hold a tree for no record.
    fn mark(&mut self) -> Result<Vec<String>> {
        self.marks.look(&self.repo)?;
        let needed = needed_trees(self.state)?;
        self.marks.add(&self.repo, self.private.name(), &needed)?;
        let is_stale = |name: &String| {
            let tree = name.strip_prefix("refs/repository/").and_then(ContentId::parse);
            tree.is_some_and(|tree| !needed.contains(&(self.private.name().to_owned(), tree)))
        };
        Ok(refs::all(&self.repo)?.into_iter().filter(is_stale).collect())
    }

    /// Packs and loose objects that contain something unneeded.
    fn condemned(&self) -> Result<Condemned> {
        let dir = self.repo.objects();
        let mut packs = Vec::new();
        for (size, path) in own_packs(&dir.join("pack")) {
            let rows = rows_of(&path, self.repo.hash)?;
            let dead = rows.iter().filter(|(id, _, _)| !self.marks.seen.contains(id));
            let dead: u64 = dead.map(|(_, _, range)| range.end - range.start).sum();
            if dead > 0 && is_worth_rewriting(dead, size) {
                packs.push((path, rows));
            }
        }
        let loose = loose_in(&dir).into_iter();
        let loose = loose.filter(|(_, id)| !self.marks.seen.contains(id)).collect();
        Ok(Condemned { packs, loose })
    }

    /// Copies the needed objects of condemned packs into a new one; returns its size.
    fn save_survivors(&self, condemned: &Condemned) -> Result<u64> {
        let seen = &self.marks.seen;
        let survives = |(id, _, _): &PackIndexRow| seen.contains(id);
        if !condemned.packs.iter().any(|(_, rows)| rows.iter().any(survives)) {
            return Ok(0);
        }
        let save = || {
            let mut pack = GitPackWriter::begin(&self.repo.objects(), self.repo.hash)?;
            let mut copied = HashSet::new();
            for (path, _) in &condemned.packs {
                let wanted = |id: &ObjectId| seen.contains(id) && copied.insert(*id);
                copy_rows(path, self.repo.hash, &mut pack, wanted)?;
            }
            pack.finish()
        };
        save().map(|pack| size_on_disk(&pack)).map_err(self.failed())
    }

    /// Removes what is condemned, unless it is needed by now and not among the `written` survivors.
    /// Returns the bytes freed. The caller holds the exclusive lock.
    fn remove(&self, condemned: Condemned, written: &HashSet<ObjectId>) -> Result<u64> {
        let mut freed = 0;
        let is_needed_now =
            |(id, _, _): &PackIndexRow| self.marks.seen.contains(id) && !written.contains(id);
        for (path, rows) in condemned.packs {
            if !rows.iter().any(is_needed_now) {
                crash::point("sweep-object");
                freed += remove_pack(&path).map_err(self.failed())?;
            }
        }
        for (path, id) in condemned.loose {
            if !self.marks.seen.contains(&id) {
                crash::point("sweep-object");
                let size = size_on_disk(&path);
                fs::remove_file(&path).map_err(self.failed())?;
                freed += size;
            }
        }
        Ok(freed)
    }

    fn failed(&self) -> impl FnOnce(io::Error) -> Error {
        Error::io("free objects in", self.private.dir())
    }
}

/// Removes a private repository. Renames it first, so that a partial removal never looks like a
/// repository.
fn remove_repository(state: &StateDir, private: &PrivateRepository) -> Result<u64> {
    let freed = crate::fs::own_bytes(private.dir());
    let mut buried = private.dir().as_os_str().to_owned();
    buried.push(BURIED);
    fs::rename(private.dir(), &buried).map_err(Error::io("remove", private.dir()))?;
    crash::point("sweep-repository");
    remove_buried(state)?;
    Ok(freed)
}

/// Finishes removals that were interrupted after the rename.
fn remove_buried(state: &StateDir) -> Result<()> {
    for name in names_of(&state.repositories()).unwrap_or_default() {
        if name.as_bytes().ends_with(BURIED.as_bytes()) {
            let path = state.repositories().join(name);
            crate::fs::remove_tree(&path).map_err(Error::io("remove", &path))?;
        }
    }
    Ok(())
}

/// Temporary files in an object directory.
fn unfinished(objects: &Path) -> Vec<PathBuf> {
    let in_dir = |dir: PathBuf| {
        let names = names_of(&dir).unwrap_or_default().into_iter();
        let names = names.filter(|name| name.as_bytes().starts_with(b"tmp_"));
        names.map(move |name| dir.join(name)).collect::<Vec<_>>()
    };
    [objects.to_owned(), objects.join("pack")].into_iter().flat_map(in_dir).collect()
}

/// Whether a killed process left a temporary file.
fn has_unfinished(objects: &Path) -> bool {
    let is_old = |path: &PathBuf| {
        let since = stat_path(path).map_or(0, |stamp| stamp.mtime_ns);
        since.saturating_add(WRITING_MAX_NS) < now_ns()
    };
    unfinished(objects).iter().any(is_old)
}

/// Removes temporary files. The caller must hold the exclusive lock, so no process is writing one.
fn remove_unfinished(objects: &Path) {
    for path in unfinished(objects) {
        let _gone = fs::remove_file(path);
    }
}

/// The lock files of refs below a directory, of live and of killed writers.
fn locks(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for name in names_of(dir).unwrap_or_default() {
        let path = dir.join(&name);
        if path.symlink_metadata().is_ok_and(|found| found.is_dir()) {
            found.append(&mut locks(&path));
        } else if name.as_bytes().ends_with(b".lock") {
            found.push(path);
        }
    }
    found
}
