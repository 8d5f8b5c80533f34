//! Borrows the objects of a user's repository: links or copies them into a private one, so that
//! nothing the user's git does can take them away.
//!
//! Git never changes an object file once it has its name, so a hard link is enough unless a program
//! writes into the file itself. A small repository is copied, which is safe from that too. Where
//! hard links are impossible, objects are copied within a budget; the rest stays in the user's
//! repository only and is reported.

mod copies;
mod object_dirs;
mod seen;
mod transfer;

use std::{
    ffi::{CStr, CString, OsStr, OsString},
    fs, io, mem,
    os::unix::{ffi::OsStrExt, fs::MetadataExt},
    path::{Path, PathBuf},
    time::Instant,
};

use super::{alternates_of, names_of};
use crate::{
    error::{Error, Result},
    fs::{Dir, PendingFile, create_private_dirs, in_halves, stat_path},
    model::{Kind, SkipReason},
};
pub(super) use copies::copy_whole;
use copies::give_names;
use object_dirs::DEPTH_MAX;
pub(super) use object_dirs::{ObjectDirKind, is_unfinished, linked_object_dirs, object_dirs};
use seen::{Proof, Seen, Syncing};
use transfer::{Arrival, Route, Transfer};

/// A repository with at most this much in objects, in so few files, is copied right away: 5 ms.
const SMALL_MAX_BYTES: u64 = 4 << 20;
const SMALL_MAX_FILES: usize = 100;
/// How much is copied during a call where hard links are impossible: half a second on a slow disk.
const WAITING_MAX_BYTES: u64 = 32 << 20;
/// How much is copied in the background where hard links are impossible.
pub(super) const BACKGROUND_MAX_BYTES: u64 = 256 << 20;
/// With fewer directories of loose objects a second thread costs more than it saves.
const DIRS_FOR_TWO: usize = 16;
/// How many copies are synced at a time, each held open.
const COPIES_AT_ONCE: usize = 128;
/// How often packs are listed again if git replaces some meanwhile.
const TRIES: usize = 4;

/// Limits for one run.
#[derive(Clone, Copy, Default)]
pub(super) struct BorrowLimits {
    /// How much may be copied where hard links are impossible; `None` for the limit of a call.
    pub(super) budget_bytes: Option<u64>,
    /// When to stop, finished or not.
    pub(super) deadline: Option<Instant>,
}

/// The result of a run.
#[derive(Debug, Default)]
#[must_use = "nothing is on the disk before `settle`"]
pub(in crate::store) struct BorrowReport {
    /// How many files were linked or copied.
    pub(in crate::store) new: usize,
    /// Why objects could be neither linked nor copied, and how many bytes they have, if known.
    pub(in crate::store) left_out: Option<(SkipReason, u64)>,
    syncing: Option<Syncing>,
}

impl BorrowReport {
    /// Waits until all new names are on the disk. Nothing may refer to them before.
    ///
    /// # Errors
    ///
    /// Fails if they could not be synced.
    pub(in crate::store) fn settle(&mut self) -> Result<()> {
        self.syncing.take().map_or(Ok(()), Syncing::wait)
    }
}

/// Links or copies every object of the git directory `common_dir` into `linked`, unless it is there
/// already. `is_quiet` says that nothing in the git directory has changed since the last run: then
/// only the packs are checked.
///
/// # Errors
///
/// Fails if `linked` cannot be written.
pub(super) fn borrow(
    common_dir: &Path,
    linked: &Path,
    is_quiet: bool,
    limits: BorrowLimits,
) -> Result<BorrowReport> {
    let BorrowLimits { budget_bytes, deadline } = limits;
    let mut borrow = Borrow::new(linked, budget_bytes.unwrap_or(WAITING_MAX_BYTES));
    borrow.deadline = deadline;
    let packs = common_dir.join("objects/pack");
    if is_quiet && borrow.seen.has(b"objects/pack", &packs) && budget_bytes.is_none() {
        return Ok(BorrowReport::default());
    }
    create_private_dirs(linked)?;
    let dirs = object_dirs(common_dir);
    borrow.transfer.is_small = is_small(common_dir, &dirs);
    let mut alternates = Vec::new();
    for name in &dirs {
        let from = common_dir.join(OsStr::from_bytes(name));
        borrow.objects(&from, name)?;
        alternates.extend(alternates_of(&from));
    }
    alternates.sort();
    alternates.dedup();
    // Objects that come from another repository through alternates.
    for (name, from) in alternates {
        borrow.objects(&from, format!("alternates/{name}").as_bytes())?;
    }
    Ok(borrow.finish())
}

/// Whether all objects together are small enough to be copied.
fn is_small(common_dir: &Path, dirs: &[Vec<u8>]) -> bool {
    let mut left = (SMALL_MAX_FILES, SMALL_MAX_BYTES);
    dirs.iter().all(|name| fits(&common_dir.join(OsStr::from_bytes(name)), &mut left, 0))
}

/// Subtracts the files and bytes in a directory from `left`; returns whether they fit.
fn fits(dir: &Path, left: &mut (usize, u64), depth: usize) -> bool {
    let names = names_of(dir).unwrap_or_default();
    names.iter().all(|name| {
        let path = dir.join(name);
        let Ok(found) = fs::symlink_metadata(&path) else { return true };
        if found.is_dir() {
            return depth < DEPTH_MAX && fits(&path, left, depth + 1);
        }
        let files = left.0.checked_sub(1);
        let bytes = left.1.checked_sub(found.len());
        let fits = files.zip(bytes);
        *left = fits.unwrap_or_default();
        fits.is_some()
    })
}

/// A directory of objects, or one in it.
struct Source {
    path: PathBuf,
    /// Its path below the git directory, and so below ours.
    name: Vec<u8>,
    kind: ObjectDirKind,
    depth: usize,
}

impl Source {
    /// The directory `child` in it.
    fn below(&self, child: &CStr) -> Self {
        let (child, depth) = (child.to_bytes(), self.depth + 1);
        let is_extension = self.kind == ObjectDirKind::Extension;
        Self {
            path: self.path.join(OsStr::from_bytes(child)),
            name: [&self.name[..], b"/", child].concat(),
            kind: if is_extension { self.kind } else { ObjectDirKind::of(child, depth) },
            depth,
        }
    }
}

/// A run.
struct Borrow<'a> {
    linked: &'a Path,
    seen: Seen,
    transfer: Transfer,
    deadline: Option<Instant>,
    /// What all threads have done.
    work: Work,
}

/// What one thread has done.
#[derive(Default)]
struct Work {
    /// How many files are new here.
    new: usize,
    left_out: Option<(SkipReason, u64)>,
    /// Directories with new names in them.
    changed: Vec<PathBuf>,
    /// Directories of which every file is here, or among the copies.
    whole: Vec<(Vec<u8>, Proof)>,
    /// Copies that have no name yet.
    copies: Vec<PendingFile>,
}

impl Work {
    fn leave_out(&mut self, reason: SkipReason, bytes: u64) {
        let (first, sum) = self.left_out.unwrap_or((reason, 0));
        self.left_out = Some((first, sum + bytes));
    }

    fn append(&mut self, mut other: Self) {
        self.new += other.new;
        if let Some((reason, bytes)) = other.left_out {
            self.leave_out(reason, bytes);
        }
        self.changed.append(&mut other.changed);
        self.whole.append(&mut other.whole);
        self.copies.append(&mut other.copies);
    }

    /// Gives every copy its name.
    fn give_names(&mut self, linked: &Path) -> Result<()> {
        give_names(mem::take(&mut self.copies)).map_err(Error::io("copy objects to", linked))
    }
}

impl<'a> Borrow<'a> {
    fn new(linked: &'a Path, budget_bytes: u64) -> Self {
        Self {
            linked,
            seen: Seen::load(linked),
            transfer: Transfer::new(budget_bytes),
            deadline: None,
            work: Work::default(),
        }
    }

    /// Borrows one object directory: loose objects first, packs last, an index after its pack.
    /// Repeats if packs were added or removed meanwhile.
    fn objects(&mut self, from: &Path, name: &[u8]) -> Result<()> {
        let is_extension = super::is_extension(name);
        let kind = if is_extension { ObjectDirKind::Extension } else { ObjectDirKind::Top };
        let top = Source { path: from.to_owned(), name: name.to_vec(), kind, depth: 0 };
        for _ in 0..TRIES {
            let packs = from.join("pack");
            let before = stat_path(&packs).ok();
            self.pass(&top)?;
            if stat_path(&packs).ok() == before {
                return Ok(());
            }
            self.seen.forget(&[name, b"/pack"].concat());
        }
        self.work.leave_out(SkipReason::KeptChanging, 0);
        Ok(())
    }

    /// Borrows what is there now.
    fn pass(&mut self, top: &Source) -> Result<()> {
        let mut work = mem::take(&mut self.work);
        let below = self.directory(top, &mut work)?;
        let (packs, others): (Vec<_>, Vec<_>) =
            below.into_iter().partition(|source| source.kind == ObjectDirKind::Packs);
        let fresh: Vec<Source> =
            others.into_iter().filter(|it| !self.seen.has(&it.name, &it.path)).collect();
        // Git removes loose objects only when they are in a pack.
        work.append(self.all_below(&fresh)?);
        packs.iter().try_for_each(|source| self.all(source, &mut work))?;
        work.give_names(self.linked)?;
        for (name, proof) in work.whole.drain(..) {
            self.seen.add(name, proof);
        }
        self.work = work;
        Ok(())
    }

    /// Borrows everything in many directories.
    fn all_below(&self, sources: &[Source]) -> Result<Work> {
        let part = |sources: &[Source]| {
            let mut work = Work::default();
            sources.iter().try_for_each(|source| self.all(source, &mut work))?;
            Ok::<_, Error>(work)
        };
        let mut all = Work::default();
        in_halves(sources, sources.len() >= DIRS_FOR_TWO, part)?
            .into_iter()
            .for_each(|work| all.append(work));
        Ok(all)
    }

    /// Borrows everything in and below a directory.
    fn all(&self, source: &Source, work: &mut Work) -> Result<()> {
        let below = self.directory(source, work)?;
        below.iter().try_for_each(|source| self.all(source, work))
    }

    /// Borrows the files of one directory, unless they are known to be here. Returns the
    /// directories in it.
    fn directory(&self, source: &Source, work: &mut Work) -> Result<Vec<Source>> {
        let Some((proof, is_young)) = self.seen.proof_of(&source.name, &source.path) else {
            return Ok(Vec::new());
        };
        if self.seen.is_proven(&source.name, &proof) || self.is_late(work) {
            return Ok(Vec::new());
        }
        let (from, listed) = match object_files(source) {
            Ok(found) => found,
            Err(err) if err.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(_) => {
                work.leave_out(SkipReason::Unreadable, 0);
                return Ok(Vec::new());
            }
        };
        let is_whole = listed.files.is_empty() || self.files(source, &from, listed.files, work)?;
        if source.depth >= DEPTH_MAX && !listed.dirs.is_empty() {
            work.leave_out(SkipReason::TooDeep, 0);
            return Ok(Vec::new());
        }
        if listed.dirs.is_empty() && is_whole && !is_young {
            work.whole.push((source.name.clone(), proof));
        }
        Ok(listed.dirs.iter().map(|child| source.below(child)).collect())
    }

    /// Borrows files of a directory, by name and size; returns whether all of them are here now.
    fn files(
        &self,
        source: &Source,
        from: &Dir,
        files: Vec<(CString, u64)>,
        work: &mut Work,
    ) -> Result<bool> {
        let to_path = self.linked.join(OsStr::from_bytes(&source.name));
        create_private_dirs(&to_path)?;
        let to = Dir::open(&to_path).map_err(Error::io("open", &to_path))?;
        let route = Route { from, from_path: &source.path, to: &to, to_path: &to_path };
        let (new, mut is_whole) = (work.new, true);
        for (name, size) in files {
            if self.is_late(work) {
                is_whole = false;
                break;
            }
            is_whole &= self.file(&route, &name, size, work)?;
            if work.copies.len() >= COPIES_AT_ONCE {
                work.give_names(self.linked)?;
            }
        }
        if work.new > new {
            work.changed.push(to_path);
        }
        Ok(is_whole)
    }

    /// Borrows one file; returns whether it is here now.
    fn file(&self, route: &Route<'_>, name: &CStr, size: u64, work: &mut Work) -> Result<bool> {
        match self.transfer.bring(route, name, size) {
            Ok(arrival) => {
                work.new += usize::from(!matches!(arrival, Arrival::Known));
                if let Arrival::Copied(copy) = arrival {
                    work.copies.push(copy);
                }
                Ok(true)
            }
            // Git has packed it since the listing; the pack is borrowed too.
            Err(err) if err.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(err) if is_not_to_be_had(&err) => {
                let is_large = err.kind() == io::ErrorKind::FileTooLarge;
                let reason = if is_large { SkipReason::TooLarge } else { SkipReason::Unreadable };
                work.leave_out(reason, size);
                Ok(false)
            }
            Err(err) => Err(Error::io("link", route.to_path)(err)),
        }
    }

    /// Whether the deadline has passed; the rest is then left out.
    fn is_late(&self, work: &mut Work) -> bool {
        let is_late = self.deadline.is_some_and(|deadline| Instant::now() >= deadline);
        if is_late && work.left_out.is_none() {
            work.leave_out(SkipReason::OutOfTime, 0);
        }
        is_late
    }

    /// Begins to sync the new names, while the caller goes on.
    fn finish(mut self) -> BorrowReport {
        let Work { new, left_out, changed, .. } = self.work;
        if left_out.is_some() {
            // The next run must look at everything that may not be here yet.
            self.seen.forget(b"objects/pack");
        }
        let seen = self.seen.to_text();
        let syncing = (!changed.is_empty() || seen.is_some())
            .then(|| Syncing::begin(self.linked, changed, seen));
        BorrowReport { new, left_out, syncing }
    }
}

/// What is in a directory of objects.
struct ObjectFiles {
    /// Objects and packs with their sizes, an index after its pack.
    files: Vec<(CString, u64)>,
    dirs: Vec<CString>,
}

fn object_files(source: &Source) -> io::Result<(Dir, ObjectFiles)> {
    let dir = Dir::open(&source.path)?;
    let mut listed = Vec::new();
    dir.list(|entry| listed.push(entry.name))?;
    let mut found = ObjectFiles { files: Vec::new(), dirs: Vec::new() };
    for name in listed {
        let Ok(stamp) = dir.stat_child(&name) else { continue };
        let is_dir = stamp.kind() == Some(Kind::Directory);
        let is_file = stamp.kind() == Some(Kind::File);
        if is_dir && source.kind.has_directory(name.to_bytes()) {
            found.dirs.push(name);
        } else if is_file && source.kind.has_object(name.to_bytes(), stamp.size) {
            found.files.push((name, stamp.size));
        }
    }
    found.dirs.sort();
    // Then a concurrent reader never finds an index without its pack.
    found.files.sort_by(|(a, _), (b, _)| {
        let is_index = |name: &CStr| name.to_bytes().ends_with(b".idx");
        (is_index(a), a).cmp(&(is_index(b), b))
    });
    Ok((dir, found))
}

/// Whether an error concerns this file only, so that the others can still be borrowed.
fn is_not_to_be_had(err: &io::Error) -> bool {
    matches!(err.kind(), io::ErrorKind::FileTooLarge | io::ErrorKind::PermissionDenied)
}

/// Whether a directory is unchanged since everything in it was borrowed.
pub(super) fn has_seen(linked: &Path, name: &[u8], dir: &Path) -> bool {
    Seen::load(linked).has(name, dir)
}

/// How many bytes below a directory are in files with other hard links: a write in place there
/// changes them here too.
pub(super) fn shared_bytes(dir: &Path) -> u64 {
    let below = |name: OsString| match fs::symlink_metadata(dir.join(&name)) {
        Ok(found) if found.is_dir() => shared_bytes(&dir.join(name)),
        Ok(found) if found.nlink() > 1 => found.len(),
        Ok(_) | Err(_) => 0,
    };
    names_of(dir).unwrap_or_default().into_iter().map(below).sum()
}

/// Whether everything borrowed is small enough to be copied.
pub(super) fn is_little(linked: &Path) -> bool {
    is_small(linked, &[b"objects".to_vec()])
}
