//! Executes a [`RestorePlan`]. The only module that writes in the user's directories.
//!
//! Every path is resolved name by name from the open root, without following a symlink and never
//! into `.git`. A file is written under a temporary name, synced, and renamed over its target, so
//! that no reader sees a partial file, not even after a power cut. A path that has changed since
//! the plan was made is left alone and reported. The caller has already saved everything that is
//! overwritten or removed in the before-restore checkpoint.

mod make;

use std::{
    cell::Cell,
    collections::{BTreeMap, BTreeSet},
    ffi::{CStr, CString},
    io::{self, Read},
    path::{Path, PathBuf},
    rc::Rc,
};

use crate::{
    crash,
    error::{Error, Result},
    fs::{Dir, DirCursor, c_name},
    model::{CheckpointId, Content, Kind, RelPath, Root, Stamp, is_gits_own},
    plan::{Action, Merged, PlanStep, RestorePlan},
};

use make::{Instead, place, unfinished};

/// The result of a restore.
#[derive(Debug, Default)]
pub struct ApplyOutcome {
    /// How many paths were changed.
    pub done: usize,
    /// What was not done.
    pub missed: Vec<Missed>,
    /// Replaced files that had other hard links; those keep the old content.
    pub had_names: Vec<PathBuf>,
    /// Replaced files with extended attributes that the new ones could not get.
    pub lost_attributes: Vec<PathBuf>,
    /// Repositories that changed after they were held: the original path, and where each was moved.
    pub set_aside: Vec<(PathBuf, PathBuf)>,
}

impl ApplyOutcome {
    /// The paths of what was not done.
    pub fn missed_paths(&self) -> BTreeSet<&Path> {
        self.missed.iter().map(|missed| missed.path.as_path()).collect()
    }
}

/// What a restore did not do.
#[derive(Debug)]
pub struct Missed {
    /// Which path: below the root, or absolute.
    pub path: PathBuf,
    /// Why not.
    pub why: String,
    /// Whether to try again would come to the same.
    pub is_final: bool,
}

/// The stamp of a path when the plan was made; `None` if nothing was there.
pub type StampAtPlan<'a> = dyn Fn(&RelPath) -> Option<Stamp> + 'a;
/// Opens the contents that a plan puts back.
pub type OpenContent<'a> = dyn Fn(&Content) -> Result<Box<dyn Read>> + 'a;

/// How many files wait under temporary names for one common sync.
const BATCH_FILES: usize = 4096;
/// The same limit in bytes. A restore needs this much extra space on the disk.
const BATCH_BYTES: u64 = 256 << 20;

/// Executes a plan. `id` makes the temporary names unique to this restore.
///
/// A path that fails does not stop the others: it is reported.
///
/// # Errors
///
/// Fails if the root cannot be opened, or the file system cannot be synced.
pub fn run(
    root: &Root,
    plan: &RestorePlan,
    open: &OpenContent<'_>,
    seen: &StampAtPlan<'_>,
    id: CheckpointId,
) -> Result<ApplyOutcome> {
    let mut outcome = ApplyOutcome::default();
    let mut everywhere = Whole { open, id, merges: &plan.merges, unlinked: BTreeSet::new() };
    everywhere.below(root.path(), &plan.steps, seen, &mut outcome)?;
    if !plan.outside.steps.is_empty() {
        crash::point("apply-outside");
        let seen = |path: &RelPath| plan.outside.seen.get(path).copied();
        everywhere.below(Path::new("/"), &plan.outside.steps, &seen, &mut outcome)?;
    }
    Ok(outcome)
}

/// What is the same in the root and outside it.
struct Whole<'a> {
    open: &'a OpenContent<'a>,
    id: CheckpointId,
    merges: &'a BTreeMap<RelPath, Merged>,
    /// Inodes of files that we removed or changed permissions of, which gives their other hard
    /// links a new ctime.
    unlinked: BTreeSet<u64>,
}

impl Whole<'_> {
    /// Executes steps below one directory.
    fn below(
        &mut self,
        place: &Path,
        steps: &[PlanStep],
        seen: &StampAtPlan<'_>,
        outcome: &mut ApplyOutcome,
    ) -> Result<()> {
        let top = Dir::open(place).map_err(Error::io("open", place))?;
        let mut apply = Apply {
            place,
            way: DirCursor::from(&top),
            open: self.open,
            seen,
            id: self.id,
            merges: self.merges,
            unlinked: &mut self.unlinked,
            shorn: BTreeSet::new(),
            opened: BTreeMap::new(),
            ready: BTreeSet::new(),
            outcome,
        };
        apply.all(steps).map_err(Error::io("sync", place))?;
        apply.sync(deeds(steps)).map_err(Error::io("sync", place))
    }
}

struct Apply<'a> {
    /// The root, or the top of the file system.
    place: &'a Path,
    way: DirCursor<'a>,
    open: &'a OpenContent<'a>,
    seen: &'a StampAtPlan<'a>,
    id: CheckpointId,
    /// The content of merged files.
    merges: &'a BTreeMap<RelPath, Merged>,
    /// As in [`Whole`].
    unlinked: &'a mut BTreeSet<u64>,
    /// Files that wait under temporary names, without all attributes of those they replace.
    shorn: BTreeSet<RelPath>,
    /// Directories made writable for now, with the permissions to give back.
    opened: BTreeMap<RelPath, u32>,
    /// Directories known to be writable.
    ready: BTreeSet<RelPath>,
    outcome: &'a mut ApplyOutcome,
}

impl Apply<'_> {
    fn all(&mut self, steps: &[PlanStep]) -> io::Result<()> {
        // Children before their directories, so that a directory is empty when its turn comes.
        for step in steps.iter().rev().filter(|step| vacates(step)) {
            crash::point("apply-vacate");
            self.try_step(step, Self::vacate);
        }
        // A removed directory may be created again under the same name.
        self.way.forget();
        for step in deeds(steps).filter(|step| becomes(step) == Some(Kind::Directory)) {
            crash::point("apply-directory");
            self.try_step(step, Self::put_directory);
        }
        self.put_all(steps)?;
        // A directory's permissions come last, because they may forbid changes in it.
        let mut wanted = BTreeSet::new();
        for step in steps.iter().rev() {
            if let (Some(Kind::Directory), Some(then)) = (becomes(step), step.then) {
                self.opened.insert(step.path.clone(), then.permissions);
                wanted.insert(&step.path);
            }
        }
        let told: BTreeSet<_> =
            self.outcome.missed.iter().map(|missed| missed.path.clone()).collect();
        crash::point("apply-close");
        for (path, permissions) in std::mem::take(&mut self.opened).into_iter().rev() {
            match self.close(&path, permissions) {
                // It was only made writable for its content, and has been removed since.
                Err(err) if err.kind() == io::ErrorKind::NotFound && !wanted.contains(&path) => (),
                Err(err) if !told.contains(&self.named(&path)) => self.miss(&path, &err),
                Ok(()) | Err(_) => (),
            }
        }
        Ok(())
    }

    /// Writes every path that is not a directory: a batch under temporary names, one sync, then the
    /// renames.
    fn put_all(&mut self, steps: &[PlanStep]) -> io::Result<()> {
        let is_file = |step: &&PlanStep| becomes(step).is_some_and(|kind| kind != Kind::Directory);
        let (mut waiting, mut bytes) = (Vec::new(), 0);
        for step in deeds(steps).filter(is_file) {
            crash::point("apply-write");
            match self.put_beside(step) {
                Ok(Some(size)) => {
                    bytes += size;
                    waiting.push(step);
                }
                Ok(None) => self.outcome.done += 1,
                Err(err) => self.miss(&step.path, &err),
            }
            if waiting.len() >= BATCH_FILES || bytes >= BATCH_BYTES {
                self.settle(&waiting)?;
                (waiting, bytes) = (Vec::new(), 0);
            }
        }
        self.settle(&waiting)
    }

    fn settle(&mut self, waiting: &[&PlanStep]) -> io::Result<()> {
        if waiting.is_empty() {
            return Ok(());
        }
        if let Err(err) = self.sync(waiting.iter().copied()) {
            for step in waiting {
                self.discard(&step.path);
            }
            return Err(err);
        }
        for step in waiting {
            crash::point("apply-rename");
            self.try_step(step, Self::put_in_place);
        }
        Ok(())
    }

    /// Removes the temporary file for `path`.
    fn discard(&mut self, path: &RelPath) {
        if let (Ok(parent), Ok(name)) =
            (self.way.parent_of(path), unfinished(self.id, path.as_bytes()))
        {
            let _gone = parent.remove_file(&name);
        }
    }

    fn try_step(
        &mut self,
        step: &PlanStep,
        act: impl FnOnce(&mut Self, &PlanStep) -> io::Result<bool>,
    ) {
        match act(self, step) {
            Ok(done) => self.outcome.done += usize::from(done),
            Err(err) => self.miss(&step.path, &err),
        }
    }

    fn miss(&mut self, path: &RelPath, err: &io::Error) {
        let (path, why) = (self.named(path), err.to_string());
        // Damage in the store, and what others have just changed, stay as they are.
        let is_final = err.kind() == io::ErrorKind::InvalidData || why == CHANGED;
        self.outcome.missed.push(Missed { path, why, is_final });
    }

    /// A path as people know it: below the root, or absolute.
    fn named(&self, path: &RelPath) -> PathBuf {
        if self.place == Path::new("/") { path.at_top() } else { path.as_path().to_owned() }
    }

    /// Waits until what was written for some steps is on the disk.
    fn sync<'s>(&mut self, steps: impl Iterator<Item = &'s PlanStep>) -> io::Result<()> {
        let mut synced = BTreeSet::new();
        for step in steps {
            // A directory that is gone needs no sync.
            let Ok(parent) = self.way.parent_of(&step.path) else { continue };
            if synced.insert(parent.sync_scope()?) {
                parent.sync_files()?;
            }
        }
        Ok(())
    }

    /// The open, writable directory that contains `path`, and the last name.
    fn parent(&mut self, path: &RelPath) -> io::Result<(Rc<Dir>, CString)> {
        if is_gits_own(path.as_bytes()) {
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, "it is git's own"));
        }
        let name = c_name(path.name())?;
        let parent = match path.parent() {
            Some(above) => self.open_up(&above)?,
            None => self.way.enter(&[])?,
        };
        if name.to_bytes().eq_ignore_ascii_case(b".git") && is_git_here(&parent, &name) {
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, "it is git's own"));
        }
        Ok((parent, name))
    }

    /// Opens the directory at `path`, name by name, and makes the directories on the way writable
    /// for now.
    fn open_up(&mut self, path: &RelPath) -> io::Result<Rc<Dir>> {
        if self.ready.contains(path) {
            return self.way.enter(path.as_bytes());
        }
        let above = match path.parent() {
            Some(above) => self.open_up(&above)?,
            None => self.way.enter(&[])?,
        };
        let name = c_name(path.name())?;
        let stamp = above.stat_child(&name)?;
        let permissions = stamp.permissions();
        // Before it is opened: not every system can open a directory without read permission.
        if stamp.kind() == Some(Kind::Directory) && permissions & 0o700 != 0o700 {
            above.set_permissions(&name, Kind::Directory, permissions | 0o700)?;
            self.opened.entry(path.clone()).or_insert(permissions);
        }
        self.ready.insert(path.clone());
        self.way.enter(path.as_bytes())
    }

    fn close(&mut self, path: &RelPath, permissions: u32) -> io::Result<()> {
        let parent = self.way.parent_of(path)?;
        let name = c_name(path.name())?;
        match parent.stat_child(&name) {
            Ok(stamp) if stamp.kind() != Some(Kind::Directory) => Ok(()),
            Ok(stamp) if stamp.permissions() == permissions => Ok(()),
            Ok(_) => parent.set_permissions(&name, Kind::Directory, permissions),
            Err(err) => Err(err),
        }
    }

    /// Removes what is at a path where nothing, or something of another type, is to be.
    fn vacate(&mut self, step: &PlanStep) -> io::Result<bool> {
        let (parent, name) = self.parent(&step.path)?;
        let there = self.check(&parent, &name, step)?;
        match step.now.map(|now| now.kind) {
            Some(Kind::Directory) => match parent.remove_dir(&name) {
                Ok(()) => (),
                // Something came to be in it since the plan was made, or was set aside in it.
                Err(err) if err.kind() == io::ErrorKind::DirectoryNotEmpty => {
                    return match becomes(step) {
                        None => Ok(false),
                        Some(_) => Err(err),
                    };
                }
                Err(err) => return Err(err),
            },
            Some(_) => {
                self.unlinked.extend(there.map(|stamp| stamp.inode));
                parent.remove_file(&name)?;
            }
            None => (),
        }
        // The replacement will be counted instead.
        Ok(becomes(step).is_none())
    }

    fn put_directory(&mut self, step: &PlanStep) -> io::Result<bool> {
        let (parent, name) = self.parent(&step.path)?;
        match parent.create_dir(&name, 0o700) {
            Ok(()) => {
                parent.new_owner().into_iter().for_each(|owner| parent.give(&name, owner));
                Ok(true)
            }
            Err(err) if err.kind() == io::ErrorKind::AlreadyExists => {
                match parent.stat_child(&name)?.kind() {
                    Some(Kind::Directory) => Ok(true),
                    _ => Err(changed()),
                }
            }
            Err(err) => Err(err),
        }
    }

    /// Creates the new file under a temporary name and returns its size; `None` if only permissions
    /// had to change.
    fn put_beside(&mut self, step: &PlanStep) -> io::Result<Option<u64>> {
        let Some(then) = step.then else { return Err(io::ErrorKind::InvalidInput.into()) };
        let (parent, name) = self.parent(&step.path)?;
        let there = self.check(&parent, &name, step)?;
        let is_shorn = Cell::new(false);
        let instead = instead(&parent, &name, step, &is_shorn);
        if let Some(merged) = self.merges.get(&step.path) {
            let size = self.make_merged(&parent, step, merged, instead)?;
            self.note_shorn(step, &is_shorn);
            return Ok(Some(size));
        }
        if let (Kind::File, Some(now)) = (then.kind, step.now) {
            // Only the permissions differ, so the file keeps its inode and times.
            if now.kind == Kind::File && now.content == then.content {
                self.unlinked.extend(there.map(|stamp| stamp.inode));
                parent.set_permissions(&name, Kind::File, then.permissions)?;
                return Ok(None);
            }
        }
        let temporary = unfinished(self.id, step.path.as_bytes())?;
        let size = self.make(&parent, &temporary, &then, instead)?;
        self.note_shorn(step, &is_shorn);
        Ok(Some(size))
    }

    fn note_shorn(&mut self, step: &PlanStep, is_shorn: &Cell<bool>) {
        if is_shorn.get() {
            self.shorn.insert(step.path.clone());
        }
    }

    fn put_in_place(&mut self, step: &PlanStep) -> io::Result<bool> {
        let temporary = unfinished(self.id, step.path.as_bytes())?;
        let (parent, name) = self.parent(&step.path).inspect_err(|_| self.discard(&step.path))?;
        let is_new = step.now.is_none() || vacates(step);
        let is_file = step.now.is_some_and(|now| now.kind == Kind::File) && !vacates(step);
        let names = parent.owner_of(&name).map_or(1, |(_, names)| names);
        let placed = self.check(&parent, &name, step).and_then(|there| {
            self.unlinked.extend(there.map(|stamp| stamp.inode));
            place(&parent, &temporary, &name, is_new)
        });
        if let Err(err) = placed {
            let _litter = parent.remove_file(&temporary);
            return Err(err);
        }
        if is_file && names > 1 {
            let path = self.named(&step.path);
            self.outcome.had_names.push(path);
        }
        if self.shorn.contains(&step.path) {
            let path = self.named(&step.path);
            self.outcome.lost_attributes.push(path);
        }
        Ok(true)
    }

    /// Checks that a path is still as the plan saw it, and returns its stamp.
    fn check(&self, parent: &Dir, name: &CStr, step: &PlanStep) -> io::Result<Option<Stamp>> {
        let stamp = match parent.stat_child(name) {
            Ok(stamp) => Some(stamp),
            Err(err) if err.kind() == io::ErrorKind::NotFound => None,
            Err(err) => return Err(err),
        };
        let is_directory = |stamp: &Stamp| stamp.kind() == Some(Kind::Directory);
        let is_as_seen = match (stamp, (self.seen)(&step.path)) {
            (None, None) => true,
            // A directory's stamp changes with every name in it; its content is checked separately.
            (Some(now), Some(seen)) if is_directory(&now) && is_directory(&seen) => true,
            (Some(now), Some(seen)) if now == seen => true,
            (Some(now), Some(seen)) if self.unlinked.contains(&now.inode) => {
                let same = Stamp { ctime_ns: seen.ctime_ns, mode: seen.mode, ..now } == seen;
                same && now.kind() == seen.kind()
            }
            // This restore has just removed it to make room: by this name, or where the plan saw nothing of this
            // name, by another spelling of it.
            (None, Some(_)) => vacates(step) || step.now.is_none(),
            (Some(_), _) => false,
        };
        if is_as_seen { Ok(stamp) } else { Err(changed()) }
    }
}

/// The steps that change something.
fn deeds(steps: &[PlanStep]) -> impl Iterator<Item = &PlanStep> {
    steps.iter().filter(|step| step.is_deed())
}

/// The type of file that the plan leaves at a path it changes.
fn becomes(step: &PlanStep) -> Option<Kind> {
    match step.action {
        Action::Restore | Action::Recreate => step.then.map(|then| then.kind),
        Action::Merge => Some(Kind::File),
        Action::Remove | Action::Keep(_) => None,
    }
}

/// Whether the current file must be removed before the new one can be put there.
fn vacates(step: &PlanStep) -> bool {
    let Some(now) = step.now else { return false };
    match step.action {
        Action::Remove => true,
        Action::Restore => step.then.is_some_and(|then| {
            then.kind != now.kind && (then.kind == Kind::Directory || now.kind == Kind::Directory)
        }),
        Action::Merge => now.kind == Kind::Directory,
        Action::Recreate | Action::Keep(_) => false,
    }
}

/// The file that a new one will replace.
fn instead<'n>(
    parent: &Dir,
    name: &'n CStr,
    step: &PlanStep,
    is_shorn: &'n Cell<bool>,
) -> Option<Instead<'n>> {
    step.now.filter(|_| !vacates(step))?;
    let (owner, _) = parent.owner_of(name).ok()?;
    Some(Instead { name, owner, is_shorn })
}

/// Whether `name`, in any spelling of `.git`, is git's own directory here.
fn is_git_here(parent: &Dir, name: &CStr) -> bool {
    match (parent.stat_child(name), parent.stat_child(c".git")) {
        (Ok(this), Ok(git)) => this.inode == git.inode,
        (Ok(_) | Err(_), _) => false,
    }
}

/// The message for a path that changed after the plan was made.
const CHANGED: &str = "it changed during the restore; left as it is";

fn changed() -> io::Error {
    io::Error::other(CHANGED)
}

/// Removes the temporary files that the interrupted restore `id` left next to `paths`.
pub fn sweep(root: &Root, paths: &[RelPath], outside: &[PathBuf], id: CheckpointId) {
    let litter = |top: &Dir, path: &RelPath| {
        let parent = top.parent_of(path)?;
        parent.remove_file(&unfinished(id, path.as_bytes())?)
    };
    if let Ok(top) = Dir::open(root.path()) {
        for path in paths {
            let _gone = litter(&top, path);
        }
    }
    for path in outside {
        if let (Ok(top), Ok(path)) = (Dir::open(Path::new("/")), RelPath::from_top(path)) {
            let _gone = litter(&top, &path);
        }
    }
}

/// The directories above planned changes that are not writable, with their permissions.
pub fn closed(root: &Root, plan: &RestorePlan) -> Vec<(RelPath, u32)> {
    let mut looked_at = BTreeSet::new();
    let mut closed = Vec::new();
    for step in plan.deeds() {
        let mut above = step.path.parent();
        while let Some(dir) = above.filter(|dir| looked_at.insert(dir.clone())) {
            if let Ok(stamp) = crate::fs::stat_path(&root.join(&dir)) {
                let is_closed = stamp.permissions() & 0o700 != 0o700;
                if stamp.kind() == Some(Kind::Directory) && is_closed {
                    closed.push((dir.clone(), stamp.permissions()));
                }
            }
            above = dir.parent();
        }
    }
    closed
}
