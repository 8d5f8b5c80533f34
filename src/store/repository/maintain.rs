//! Background maintenance of private repositories: copies borrowed objects that checkpoints need,
//! drops packs that the user's gc has replaced, merges packs, and frees what no checkpoint needs.

mod copy;
mod missing;
mod packs;
mod sweep;
mod usage;

use std::{
    collections::HashSet,
    fs, io,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use gix::{ObjectId, objs::tree::EntryKind};

pub(in crate::store) use self::packs::{has_room, is_worth_rewriting, rows, which};
pub use self::sweep::Swept;
use self::{
    copy::Copy,
    missing::Missing,
    packs::{copy_rows, ids_of, loose_in, own_ids, own_packs, remove_pack},
};
pub(in crate::store) use self::{sweep::sweep, usage::Weights};
use super::{
    PrivateRepository, alternates_of, borrow, borrow::BorrowLimits, borrowed_dirs, damaged_packs,
    is_extension, names_of, needed_trees,
};
use crate::{
    crash,
    error::{Error, Result},
    fs::{Lock, stat_path},
    state::StateDir,
    store::{
        object_stamps::MergedPacks,
        plumbing::{pack::GitPackWriter, refs, repo::Repo, tree},
        record::{self, Record, TreeSet},
    },
};

/// How many packs of ours a repository may have before they are merged.
pub(in crate::store) const PACKS_MAX: usize = 16;
/// The interval between runs while new checkpoints arrive.
const MAINTAINED_NS: i64 = 600_000_000_000;
/// How long dropping borrowed files waits for saves.
const LOCK_WAIT: Duration = Duration::from_secs(5);
/// Object directories of git extensions are not nested deeper.
const DEPTH_MAX: usize = 100;

/// Maintains every private repository that needs it. `room_bytes` is how much may be copied in all.
/// Returns whether everything that checkpoints need for the worktree has been copied.
///
/// # Errors
///
/// Fails if a repository cannot be read or written. Nothing is lost then.
pub fn maintain(state: &StateDir, room_bytes: u64) -> Result<bool> {
    let (mut room, mut is_whole) = (room_bytes, true);
    each(state, |one| {
        is_whole &= one.run(&mut room)?;
        Ok(())
    })?;
    Ok(is_whole)
}

/// Merges the packs of every private repository that has many, and maintains those that have not been
/// maintained for a while.
///
/// # Errors
///
/// Fails as [`maintain`] does.
pub fn tidy(state: &StateDir, room_bytes: u64) -> Result<()> {
    let mut room = room_bytes;
    each(state, |one| {
        if one.private.is_maintained() {
            return one.alone_at_it(|| one.put_together());
        }
        one.run(&mut room).map(drop)
    })
}

/// Runs `work` on every private repository, even if it fails on one.
fn each(state: &StateDir, mut work: impl FnMut(&Maintenance<'_>) -> Result<()>) -> Result<()> {
    let mut done = Ok(());
    for private in PrivateRepository::all(state)?.into_iter().filter(PrivateRepository::exists) {
        done = done.and(work(&Maintenance { state, private }));
    }
    done
}

/// When space is short, drops borrowed packs that the user's gc has since replaced: only the
/// history of older checkpoints needs them, and no file does. Keeps them if the user's repository
/// is gone, or lacks a commit that HEAD was at. Returns how many bytes that freed.
///
/// # Errors
///
/// Fails as [`maintain`] does.
pub fn give_up_history(state: &StateDir) -> Result<u64> {
    let before = crate::fs::own_bytes(&state.repositories());
    each(state, |one| {
        one.alone_at_it(|| match one.origin() {
            Some(origin) if one.has_every_head(&origin)? => one.let_go(Some(&origin), i64::MAX),
            // What a restore may need next goes only with its checkpoint.
            Some(_) | None => Ok(()),
        })
    })?;
    Ok(before.saturating_sub(crate::fs::own_bytes(&state.repositories())))
}

impl PrivateRepository {
    /// Whether [`tidy`] has enough to do after a new checkpoint: many packs, or no run for a while.
    pub(in crate::store) fn is_due(&self) -> bool {
        self.exists() && (!self.is_maintained() || self.packs().len() > PACKS_MAX)
    }

    /// Whether a run finished everything a moment ago.
    fn is_maintained(&self) -> bool {
        let maintained = stat_path(&self.marker()).map(|stamp| stamp.mtime_ns);
        maintained.is_ok_and(|at| at.saturating_add(MAINTAINED_NS) > crate::fs::now_ns())
    }

    /// Our own packs, with their sizes.
    fn packs(&self) -> Vec<(u64, PathBuf)> {
        own_packs(&self.dir().join("objects/pack"))
    }

    /// The file whose modification time tells when a run finished everything.
    fn marker(&self) -> PathBuf {
        self.dir().join("maintained")
    }
}

struct Maintenance<'a> {
    state: &'a StateDir,
    private: PrivateRepository,
}

impl Maintenance<'_> {
    /// Runs `work` under the maintenance lock; does nothing if another process holds it.
    fn alone_at_it(&self, work: impl FnOnce() -> Result<()>) -> Result<()> {
        let lock = self.private.dir().join("maintenance.lock");
        match Lock::acquire_if_free(&lock, Instant::now())? {
            Some(_only_one) => work(),
            None => Ok(()),
        }
    }

    fn run(&self, room: &mut u64) -> Result<bool> {
        let mut is_whole = true;
        self.alone_at_it(|| {
            is_whole = self.everything(room)?;
            Ok(())
        })?;
        Ok(is_whole)
    }

    fn everything(&self, room: &mut u64) -> Result<bool> {
        // First, because the rest reads every object that checkpoints need.
        self.put_together()?;
        let origin = self.origin();
        let shared = self.private.share(None)?;
        if let Some(origin) = &origin {
            let budget_bytes = Some(borrow::BACKGROUND_MAX_BYTES.min(*room));
            let limits = BorrowLimits { budget_bytes, deadline: None };
            self.private.borrow(origin, false, limits)?.settle()?;
        }
        let is_whole = self.make_own(room)?;
        drop(shared);
        if is_whole {
            self.let_go(origin.as_deref(), self.oldest_checkpoint_ns()?)?;
        }
        crash::point("maintained");
        if is_whole {
            crate::fs::replace(&self.private.marker(), b"")?;
        }
        Ok(is_whole)
    }

    /// The user's git directory, if it is still the same one.
    fn origin(&self) -> Option<PathBuf> {
        self.private.origin_now().filter(|origin| origin.join("objects").is_dir())
    }

    /// Marks everything that checkpoints need in this repository.
    fn marks(&self, repo: &Repo) -> Result<ReachableObjects> {
        let mut marks = ReachableObjects::default();
        marks.look(repo)?;
        marks.add(repo, self.private.name(), &needed_trees(self.state)?)?;
        Ok(marks)
    }

    /// Copies every object that a checkpoint needs and that is only borrowed into a pack of our
    /// own.
    fn make_own(&self, room: &mut u64) -> Result<bool> {
        let repo = self.private.repo();
        let marks = self.marks(&repo)?;
        self.copy_borrowed(&repo, &marks, |_| true, room)
    }

    /// Copies the marked objects that are only borrowed and that `wanted` selects. Returns whether
    /// they all fit.
    fn copy_borrowed(
        &self,
        repo: &Repo,
        marks: &ReachableObjects,
        wanted: impl Fn(&ObjectId) -> bool,
        room: &mut u64,
    ) -> Result<bool> {
        let own = own_ids(&repo.objects(), repo.hash)?;
        let borrowed = marks.seen.iter().filter(|id| !own.contains(*id) && wanted(id));
        let mut borrowed: Vec<ObjectId> = borrowed.copied().collect();
        borrowed.sort_unstable();
        let mut copy = Copy::new(repo)?;
        borrowed.retain(|id| copy.has(id));
        if borrowed.is_empty() {
            return Ok(true);
        }
        let sizes: u64 = borrowed.iter().map(|id| copy.size(id)).sum();
        if sizes > *room {
            return Ok(false);
        }
        let mut pack = GitPackWriter::begin(&repo.objects(), repo.hash).map_err(self.failed())?;
        for id in &borrowed {
            copy.add(*id, &mut pack)?;
        }
        crash::point("make-own");
        pack.finish().map_err(self.failed())?;
        *room -= sizes;
        Ok(true)
    }

    fn failed(&self) -> impl FnOnce(io::Error) -> Error {
        Error::io("add objects to", self.private.dir())
    }

    /// Merges our packs if there are many.
    fn put_together(&self) -> Result<()> {
        let dir = self.private.dir().join("objects/pack");
        let mut packs = self.private.packs();
        packs.sort();
        let sizes: Vec<u64> = packs.iter().map(|(size, _)| *size).collect();
        let chosen = which(&sizes, PACKS_MAX);
        if chosen.len() < 2 || !has_room(&dir, sizes[chosen.clone()].iter().sum()) {
            return Ok(());
        }
        let old: Vec<&PathBuf> = packs[chosen].iter().map(|(_, path)| path).collect();
        let hash = self.private.repo().hash;
        let files = old.iter().flat_map(|path| [(*path).clone(), path.with_extension("idx")]);
        let merged = MergedPacks::new(self.state, &files.collect::<Vec<_>>());
        let merge = || -> io::Result<()> {
            let mut pack = GitPackWriter::begin(&self.private.dir().join("objects"), hash)?;
            let mut seen = HashSet::new();
            for path in &old {
                copy_rows(path, hash, &mut pack, |id| seen.insert(*id))?;
            }
            pack.finish()?;
            crash::point("put-together");
            // Every object of the old packs is in the new one.
            for path in &old {
                let _next_time = remove_pack(path);
            }
            Ok(())
        };
        merge().map_err(Error::io("put packs together in", &dir))?;
        merged.record()
    }

    /// Drops borrowed packs and loose objects that the user's gc has replaced. Objects that only
    /// they have stay as long as a checkpoint is older than the replacement; `oldest` is the time
    /// of the oldest one, in nanoseconds since 1970.
    fn let_go(&self, origin: Option<&Path>, oldest: i64) -> Result<()> {
        let (repo, linked) = (self.private.repo(), self.private.linked());
        let mut missing = Missing::load(&linked);
        for name in borrow::linked_object_dirs(&linked) {
            let theirs = origin.map(|origin| origin.join(&name));
            let ours = linked.join(&name);
            self.let_go_in(theirs.as_deref(), &ours, &repo, oldest, &mut missing)?;
            let plain = if is_extension(name.as_os_str().as_bytes()) {
                files_below(&ours, 0)
            } else {
                damaged_packs::packs(&ours.join("pack"))
            };
            self.let_go_plain(theirs.as_deref(), &ours, plain, oldest, &mut missing)?;
        }
        let alternates = origin.map(|origin| alternates_of(&origin.join("objects")));
        let alternates = alternates.unwrap_or_default();
        for ours in borrowed_dirs(&linked).into_iter().skip(1) {
            let is_it = |(hash, _): &&(String, PathBuf)| ours.ends_with(hash);
            let theirs = alternates.iter().find(is_it).map(|(_, path)| path.as_path());
            self.let_go_in(theirs, &ours, &repo, oldest, &mut missing)?;
        }
        missing.write()
    }

    fn let_go_in(
        &self,
        theirs: Option<&Path>,
        ours: &Path,
        repo: &Repo,
        oldest: i64,
        missing: &mut Missing,
    ) -> Result<()> {
        let Superseded { packs, loose, lost } = superseded(theirs, ours, repo, oldest, missing)?;
        if packs.is_empty() && loose.is_empty() {
            return Ok(());
        }
        // Marked again under the lock: no checkpoint, not even a new one, may lose what it needs.
        let mut marks = self.marks(repo)?;
        self.copy_borrowed(repo, &marks, |id| lost.contains(id), &mut u64::MAX.clone())?;
        let Some(_alone) = self.private.lock_if_free(Instant::now() + LOCK_WAIT)? else {
            return Ok(());
        };
        let repo = repo.refreshed();
        marks.look(&repo)?;
        self.copy_borrowed(&repo, &marks, |id| lost.contains(id), &mut u64::MAX.clone())?;
        crash::point("let-go");
        for path in packs.iter().filter(|path| !is_in(theirs, ours, path)) {
            let _next_time = remove_pack(path);
        }
        for path in loose.iter().filter(|path| !is_in(theirs, ours, path)) {
            let _next_time = fs::remove_file(path);
        }
        Ok(())
    }

    /// Drops borrowed files without an index (those of git extensions, and damaged packs) once
    /// every checkpoint is newer than their disappearance from the user's repository.
    fn let_go_plain(
        &self,
        theirs: Option<&Path>,
        ours: &Path,
        files: Vec<PathBuf>,
        oldest: i64,
        missing: &mut Missing,
    ) -> Result<()> {
        let gone = files.into_iter().filter(|path| !is_in(theirs, ours, path));
        let gone: Vec<PathBuf> = gone.filter(|path| missing.since(path) < oldest).collect();
        if gone.is_empty() {
            return Ok(());
        }
        let Some(_alone) = self.private.lock_if_free(Instant::now() + LOCK_WAIT)? else {
            return Ok(());
        };
        for path in gone.iter().filter(|path| !is_in(theirs, ours, path)) {
            let _next_time =
                fs::remove_file(damaged_packs::marked_damaged(&path.with_extension("idx")));
            let _next_time = fs::remove_file(path);
        }
        Ok(())
    }

    /// The time of the oldest checkpoint that holds this repository, in nanoseconds since 1970.
    fn oldest_checkpoint_ns(&self) -> Result<i64> {
        let mut oldest = i64::MAX;
        let is_readable = self.each_record(|record| {
            let at = record.checkpoint.taken_at.timestamp_nanos_opt().unwrap_or(i64::MIN);
            oldest = oldest.min(at);
        })?;
        Ok(if is_readable { oldest } else { i64::MIN })
    }

    /// Whether the user's repository has every commit that HEAD was at when a checkpoint was taken.
    fn has_every_head(&self, origin: &Path) -> Result<bool> {
        let repo = Repo::at(origin, self.private.repo().hash);
        let mut has_all = true;
        let is_readable = self.each_record(|record| {
            let own = record.store.as_deref() == Some(self.private.name());
            let head = record.checkpoint.head.as_ref().filter(|_| own);
            let commit = head.and_then(|head| head.commit.as_ref());
            let id = commit.and_then(|commit| ObjectId::from_hex(commit.as_bytes()).ok());
            has_all = has_all && id.is_none_or(|id| repo.has(&id));
        })?;
        Ok(is_readable && has_all)
    }

    /// Passes the record of each checkpoint that holds this repository to `show`. Returns whether
    /// every record could be read.
    fn each_record(&self, mut show: impl FnMut(&Record)) -> Result<bool> {
        let name = self.private.name();
        for root in record::all_roots(self.state)? {
            for kept in record::read_all(&root)? {
                let Ok(record) = &kept.record else { return Ok(false) };
                let holds = record.store.as_deref() == Some(name)
                    || record.repositories.iter().any(|held| held.store == name);
                if holds {
                    show(record);
                }
            }
        }
        Ok(true)
    }
}

/// Every file below a directory.
fn files_below(dir: &Path, depth: usize) -> Vec<PathBuf> {
    let below = |name| {
        let path = dir.join(name);
        if path.is_dir() && depth < DEPTH_MAX { files_below(&path, depth + 1) } else { vec![path] }
    };
    names_of(dir).unwrap_or_default().into_iter().flat_map(below).collect()
}

/// What may be dropped from a borrowed object directory, because the user's repository no longer
/// has it.
#[derive(Default)]
struct Superseded {
    packs: Vec<PathBuf>,
    loose: Vec<PathBuf>,
    /// Objects that are in no other file there.
    lost: HashSet<ObjectId>,
}

/// Whether the user's object directory has the same file.
fn is_in(theirs: Option<&Path>, ours: &Path, path: &Path) -> bool {
    let name = path.strip_prefix(ours).unwrap_or(path);
    theirs.is_some_and(|theirs| theirs.join(name).exists())
}

/// Finds what may be dropped, and moves objects that only one pack has to a pack of their own.
fn superseded(
    theirs: Option<&Path>,
    ours: &Path,
    repo: &Repo,
    oldest: i64,
    missing: &mut Missing,
) -> Result<Superseded> {
    let packs = own_packs(&ours.join("pack")).into_iter().map(|(_, path)| path);
    let (current, replaced): (Vec<_>, Vec<_>) = packs.partition(|path| is_in(theirs, ours, path));
    let loose = loose_in(ours).into_iter().filter(|(path, _)| !is_in(theirs, ours, path));
    let loose: Vec<(PathBuf, ObjectId)> = loose.collect();
    if replaced.is_empty() && loose.is_empty() {
        return Ok(Superseded::default());
    }
    // Objects that the user still has, in intact packs that we hold too, stay in any case.
    let mut stays: HashSet<ObjectId> = HashSet::new();
    for path in &current {
        stays.extend(ids_of(path, repo.hash).unwrap_or_default());
    }
    let mut found = Superseded::default();
    for path in replaced {
        // An unreadable pack could contain anything.
        let Ok(ids) = ids_of(&path, repo.hash) else { continue };
        let only: Vec<ObjectId> = ids.iter().filter(|id| !stays.contains(*id)).copied().collect();
        let is_old = missing.since(&path) < oldest;
        if is_old {
            found.lost.extend(only);
        } else if only.len() == ids.len() {
            stays.extend(only);
            continue;
        } else if !only.is_empty() {
            let (rescued, is_whole) = rescue(&path, ours, repo, &only)?;
            missing.inherit(&rescued, &path);
            stays.extend(only);
            if !is_whole {
                continue;
            }
        }
        found.packs.push(path);
    }
    for (path, id) in loose {
        let is_old = missing.since(&path) < oldest;
        if is_old && !stays.contains(&id) {
            found.lost.insert(id);
        }
        if is_old || stays.contains(&id) {
            found.loose.push(path);
        }
    }
    Ok(found)
}

/// Copies the objects that only `pack` has to a new borrowed pack. Returns its path, and whether
/// all could be read.
fn rescue(pack: &Path, ours: &Path, repo: &Repo, only: &[ObjectId]) -> Result<(PathBuf, bool)> {
    let mut copy = Copy::new(repo)?;
    let failed = |err| Error::io("rescue what only an old pack has from", pack)(err);
    let mut rescued = GitPackWriter::begin(ours, repo.hash).map_err(failed)?;
    let mut is_whole = true;
    for id in only {
        is_whole &= copy.add(*id, &mut rescued)?;
    }
    rescued.finish().map(|path| (path, is_whole)).map_err(failed)
}

/// Every object that a ref or a record needs.
#[derive(Default)]
struct ReachableObjects {
    seen: HashSet<ObjectId>,
}

impl ReachableObjects {
    /// Marks what new refs need.
    fn look(&mut self, repo: &Repo) -> Result<()> {
        // A damaged ref keeps nothing; `check` reports it.
        let trees = refs::read_all(repo)?.into_values().flatten();
        trees.into_iter().try_for_each(|tree| below(repo, tree, &mut |id| self.seen.insert(id)))
    }

    /// Marks what the trees in records need, even if their refs are gone. `name` is that of the
    /// private repository.
    fn add(&mut self, repo: &Repo, name: &str, needed: &TreeSet) -> Result<()> {
        for (_, tree) in needed.iter().filter(|(store, _)| store == name) {
            let tree = repo.object_id(tree);
            if repo.has(&tree) {
                below(repo, tree, &mut |id| self.seen.insert(id))?;
            }
        }
        Ok(())
    }
}

/// Walks every object of a tree. `is_new` returns whether to descend into it.
///
/// # Errors
///
/// Fails if a tree cannot be read because of an I/O error: what it names must be kept. A damaged
/// tree is skipped, since it is of no use.
fn below(repo: &Repo, top: ObjectId, is_new: &mut dyn FnMut(ObjectId) -> bool) -> Result<()> {
    let mut unread = vec![top];
    while let Some(id) = unread.pop() {
        if !is_new(id) {
            continue;
        }
        let entries = match tree::entries(repo, &id) {
            Err(Error::Damaged { .. }) => continue,
            entries => entries?,
        };
        for (_, kind, id) in entries {
            match kind {
                EntryKind::Tree => unread.push(id),
                EntryKind::Commit => (),
                EntryKind::Blob | EntryKind::BlobExecutable | EntryKind::Link => drop(is_new(id)),
            }
        }
    }
    Ok(())
}
