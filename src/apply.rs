//! Carries out a [`RestorePlan`]. The only writer in the user's directory.
//!
//! Every path is reached name by name from the open root, without following a symlink and never
//! into `.git`. A file is written beside its place under a name of ours and renamed over it, so
//! that nobody ever sees half of one. A path that is no longer as the plan saw it is left alone
//! and reported. What is overwritten or removed is in the before-restore checkpoint already; that
//! is the caller's part.

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::{CStr, CString},
    io::{self, Write},
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use crate::{
    crash,
    error::{Error, Result},
    fs::{Dir, c_name},
    model::{Content, Entry, Kind, RelPath, Root, Stamp},
    plan::{Action, RestorePlan, Step},
    store::Store,
};

/// What our unfinished files are called; see [`TEMPORARY_PREFIX`] in `scan`.
pub use crate::scan::TEMPORARY_PREFIX;

/// What came of a restore.
#[derive(Debug, Default)]
pub struct Outcome {
    /// How many paths were changed.
    pub done: usize,
    /// What was not done, and why.
    pub missed: Vec<(PathBuf, String)>,
}

/// Tells what the system said about a path when the plan was made; `None` if nothing was there.
pub type Seen<'a> = dyn Fn(&RelPath) -> Option<Stamp> + 'a;

/// Carries out a plan. `name` makes the names of unfinished files unique to this restore.
///
/// Goes on when a single path cannot be done: what could be brought back is, the rest is named.
///
/// # Errors
///
/// Fails if the root cannot be opened, or the file system cannot be synced.
pub fn run(
    root: &Root,
    plan: &RestorePlan,
    store: &dyn Store,
    seen: &Seen<'_>,
    name: &str,
) -> Result<Outcome> {
    let top = Dir::open(root.path()).map_err(Error::io("open", root.path()))?;
    let temporary = c_name(format!("{TEMPORARY_PREFIX}{name}").as_bytes())
        .map_err(Error::io("name a file in", root.path()))?;
    let mut apply = Apply {
        top: &top,
        store,
        seen,
        temporary,
        unlinked: BTreeSet::new(),
        opened: BTreeMap::new(),
        outcome: Outcome::default(),
    };
    apply.all(plan);
    for step in &plan.outside {
        apply.outside(step);
    }
    top.sync_file_system().map_err(Error::io("sync", root.path()))?;
    Ok(apply.outcome)
}

/// Removes what a restore that was killed left unfinished beside `paths`.
pub fn sweep(root: &Root, paths: &[RelPath], name: &str) {
    let Ok(top) = Dir::open(root.path()) else { return };
    let Ok(temporary) = c_name(format!("{TEMPORARY_PREFIX}{name}").as_bytes()) else { return };
    for path in paths {
        if let Ok(parent) = top.parent_of(path) {
            let _gone = parent.remove_file(&temporary);
        }
    }
}

struct Apply<'a> {
    top: &'a Dir,
    store: &'a dyn Store,
    seen: &'a Seen<'a>,
    temporary: CString,
    /// Files that were removed. Another name of one has a new ctime by that alone.
    unlinked: BTreeSet<u64>,
    /// Directories made writable for the while, with the permissions they get back.
    opened: BTreeMap<RelPath, u32>,
    outcome: Outcome,
}

impl Apply<'_> {
    fn all(&mut self, plan: &RestorePlan) {
        // Leaves before what holds them, so that a directory is empty when its turn comes.
        for step in plan.steps.iter().rev().filter(|step| vacates(step)) {
            self.try_step(step, Self::vacate);
        }
        for step in plan.deeds().filter(|step| becomes(step) == Some(Kind::Directory)) {
            self.try_step(step, Self::put_directory);
        }
        for step in plan.deeds().filter(|step| becomes(step).is_some_and(|k| k != Kind::Directory))
        {
            crash::point("apply-file");
            self.try_step(step, Self::put);
        }
        // A directory may forbid what its own restore had to do in it, so its bits come last.
        for step in plan.steps.iter().rev() {
            if let (Action::Restore | Action::Recreate, Some(then)) = (step.action, step.then)
                && then.kind == Kind::Directory
            {
                self.opened.insert(step.path.clone(), then.permissions);
            }
        }
        for (path, permissions) in std::mem::take(&mut self.opened).into_iter().rev() {
            if let Err(err) = self.close(&path, permissions) {
                self.miss(path.as_path(), &err);
            }
        }
    }

    fn try_step(&mut self, step: &Step, act: impl FnOnce(&mut Self, &Step) -> io::Result<bool>) {
        match act(self, step) {
            Ok(done) => self.outcome.done += usize::from(done),
            Err(err) => self.miss(step.path.as_path(), &err),
        }
    }

    fn miss(&mut self, path: &Path, err: &io::Error) {
        self.outcome.missed.push((path.to_owned(), err.to_string()));
    }

    /// The directory `path` lies in, open and writable, and the last name.
    fn parent(&mut self, path: &RelPath) -> io::Result<(Dir, CString)> {
        if path.names().any(|name| name == b".git") {
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, "it is git's own"));
        }
        if let Some(above) = path.parent() {
            self.open_up(&above)?;
        }
        let name = c_name(path.name())?;
        let parent = self.top.parent_of(path)?;
        if name.to_bytes().eq_ignore_ascii_case(b".git") && is_git_here(&parent, &name) {
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, "it is git's own"));
        }
        Ok((parent, name))
    }

    /// Makes the directories on the way to `path` ones we may write in, for the while.
    fn open_up(&mut self, path: &RelPath) -> io::Result<()> {
        if let Some(above) = path.parent() {
            self.open_up(&above)?;
        }
        if self.opened.contains_key(path) {
            return Ok(());
        }
        let parent = self.top.parent_of(path)?;
        let name = c_name(path.name())?;
        let stamp = parent.stat_child(&name)?;
        if stamp.kind() == Some(Kind::Directory) && stamp.permissions() & 0o700 != 0o700 {
            parent.set_permissions(&name, Kind::Directory, stamp.permissions() | 0o700)?;
            self.opened.insert(path.clone(), stamp.permissions());
        }
        Ok(())
    }

    fn close(&mut self, path: &RelPath, permissions: u32) -> io::Result<()> {
        let parent = self.top.parent_of(path)?;
        let name = c_name(path.name())?;
        match parent.stat_child(&name) {
            Ok(stamp) if stamp.kind() != Some(Kind::Directory) => Ok(()),
            Ok(stamp) if stamp.permissions() == permissions => Ok(()),
            Ok(_) => parent.set_permissions(&name, Kind::Directory, permissions),
            Err(err) if err.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(err) => Err(err),
        }
    }

    /// Takes away what is at a path where nothing, or something of another kind, is to be.
    fn vacate(&mut self, step: &Step) -> io::Result<bool> {
        let (parent, name) = self.parent(&step.path)?;
        self.check(&parent, &name, step)?;
        match step.now.map(|now| now.kind) {
            Some(Kind::Directory) => match parent.remove_dir(&name) {
                Ok(()) => (),
                // Ignored files are in it; they are nobody's to delete.
                Err(err) if err.kind() == io::ErrorKind::DirectoryNotEmpty => {
                    return match becomes(step) {
                        None => Ok(false),
                        Some(_) => Err(err),
                    };
                }
                Err(err) => return Err(err),
            },
            Some(_) => {
                self.unlinked.extend(parent.stat_child(&name).map(|stamp| stamp.inode));
                parent.remove_file(&name)?;
            }
            None => (),
        }
        // What takes its place is counted when it does.
        Ok(becomes(step).is_none())
    }

    fn put_directory(&mut self, step: &Step) -> io::Result<bool> {
        let (parent, name) = self.parent(&step.path)?;
        match parent.create_dir(&name, 0o700) {
            Ok(()) => Ok(true),
            Err(err) if err.kind() == io::ErrorKind::AlreadyExists => {
                match parent.stat_child(&name)?.kind() {
                    Some(Kind::Directory) => Ok(true),
                    _ => Err(changed()),
                }
            }
            Err(err) => Err(err),
        }
    }

    fn put(&mut self, step: &Step) -> io::Result<bool> {
        let Some(then) = step.then else { return Ok(false) };
        let (parent, name) = self.parent(&step.path)?;
        self.check(&parent, &name, step)?;
        self.unlinked.extend(parent.stat_child(&name).map(|stamp| stamp.inode));
        if let (Kind::File, Some(now)) = (then.kind, step.now) {
            // Only the bits differ: the file itself stays, with its inode and times.
            if now.kind == Kind::File && now.content == then.content {
                return parent.set_permissions(&name, Kind::File, then.permissions).map(|()| true);
            }
        }
        self.write(&parent, &name, &then, then.kind != Kind::File || step.now.is_none())
    }

    /// Makes the file `entry` under a name of ours, and renames it into place.
    fn write(&self, parent: &Dir, name: &CStr, entry: &Entry, new: bool) -> io::Result<bool> {
        let temporary = &self.temporary;
        let _litter = parent.remove_file(temporary);
        let made = self.make(parent, temporary, entry).and_then(|()| {
            if new && entry.kind == Kind::File {
                rename_new(parent, temporary, name)
            } else {
                parent.rename(temporary, parent, name)
            }
        });
        if made.is_err() {
            let _litter = parent.remove_file(temporary);
        }
        made.map(|()| true)
    }

    fn make(&self, parent: &Dir, temporary: &CStr, entry: &Entry) -> io::Result<()> {
        match entry.kind {
            Kind::File => {
                let mut file = parent.create_file(temporary, 0o600)?;
                self.copy(entry.content, &mut file)?;
                drop(file);
                parent.set_permissions(temporary, Kind::File, entry.permissions)
            }
            Kind::Link => {
                let mut text = Vec::new();
                self.copy(entry.content, &mut text)?;
                parent.create_link(temporary, &text)
            }
            Kind::Directory => Err(io::ErrorKind::InvalidInput.into()),
            Kind::Fifo | Kind::Socket | Kind::CharDevice | Kind::BlockDevice => {
                parent.create_special(temporary, entry.kind, entry.device)?;
                parent.set_permissions(temporary, entry.kind, entry.permissions)
            }
        }
    }

    fn copy(&self, content: Option<Content>, to: &mut dyn Write) -> io::Result<()> {
        let content = content.ok_or_else(|| io::Error::other("the checkpoint lacks its bytes"))?;
        let mut from = self.store.open(&content).map_err(|err| io::Error::other(said(&err)))?;
        io::copy(&mut from, to).map(drop)
    }

    /// Makes sure that a path is still as the plan saw it.
    fn check(&self, parent: &Dir, name: &CStr, step: &Step) -> io::Result<()> {
        let stamp = match parent.stat_child(name) {
            Ok(stamp) => Some(stamp),
            Err(err) if err.kind() == io::ErrorKind::NotFound => None,
            Err(err) => return Err(err),
        };
        let is_directory = |stamp: &Stamp| stamp.kind() == Some(Kind::Directory);
        match (stamp, (self.seen)(&step.path)) {
            (None, None) => Ok(()),
            // Its own stamp changes with every name in it; what is in it is checked by itself.
            (Some(now), Some(seen)) if is_directory(&now) && is_directory(&seen) => Ok(()),
            (Some(now), Some(seen)) if now == seen => Ok(()),
            (Some(now), Some(seen)) if self.unlinked.contains(&now.inode) => {
                let same = Stamp { ctime_ns: seen.ctime_ns, ..now } == seen;
                if same { Ok(()) } else { Err(changed()) }
            }
            // Taken away a moment ago, to make room for what is put here now.
            (None, Some(_)) if vacates(step) => Ok(()),
            (Some(_) | None, _) => Err(changed()),
        }
    }

    /// Brings back a path outside the root.
    fn outside(&mut self, step: &crate::plan::OutsideStep) {
        if let Err(err) = self.try_outside(step) {
            self.miss(&step.path, &err);
        } else {
            self.outcome.done += 1;
        }
    }

    fn try_outside(&self, step: &crate::plan::OutsideStep) -> io::Result<()> {
        let below = step.path.strip_prefix("/").map_err(io::Error::other)?;
        let path = RelPath::from_bytes(below.as_os_str().as_bytes())
            .map_err(|why| io::Error::other(why.to_string()))?;
        if path.is_git_private() {
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, "it is git's own"));
        }
        let parent = Dir::open(Path::new("/"))?.parent_of(&path)?;
        let name = c_name(path.name())?;
        if step.then.kind == Kind::Directory {
            return match parent.create_dir(&name, step.then.permissions) {
                Err(err) if err.kind() != io::ErrorKind::AlreadyExists => Err(err),
                Ok(()) | Err(_) => Ok(()),
            };
        }
        let seen = parent.stat_child(&name).ok();
        if seen.map(|stamp| stamp.kind()) == Some(Some(Kind::Directory)) {
            return Err(io::Error::new(io::ErrorKind::IsADirectory, "a directory is there"));
        }
        if seen != step.seen {
            return Err(changed());
        }
        self.write(&parent, &name, &step.then, seen.is_none()).map(drop)
    }
}

/// What a path becomes, if the plan changes it and leaves something there.
fn becomes(step: &Step) -> Option<Kind> {
    match step.action {
        Action::Restore | Action::Recreate => step.then.map(|then| then.kind),
        Action::Remove | Action::Keep(_) => None,
    }
}

/// Whether what is at a path has to go before anything else can come there.
fn vacates(step: &Step) -> bool {
    let Some(now) = step.now else { return false };
    match step.action {
        Action::Remove => true,
        Action::Restore => step.then.is_some_and(|then| {
            then.kind != now.kind && (then.kind == Kind::Directory || now.kind == Kind::Directory)
        }),
        Action::Recreate | Action::Keep(_) => false,
    }
}

/// Whether `name`, some spelling of `.git`, is the place of git's own in this directory.
fn is_git_here(parent: &Dir, name: &CStr) -> bool {
    match (parent.stat_child(name), parent.stat_child(c".git")) {
        (Ok(this), Ok(git)) => this.inode == git.inode,
        (Ok(_) | Err(_), _) => false,
    }
}

/// Renames to a name that must be free. Where the system cannot promise that, what was looked at a
/// moment ago has to do.
fn rename_new(parent: &Dir, from: &CStr, to: &CStr) -> io::Result<()> {
    match parent.rename_new(from, to) {
        Err(err) if err.kind() == io::ErrorKind::AlreadyExists => Err(changed()),
        Err(err) if matches!(err.raw_os_error(), Some(22 | 38 | 95)) => {
            parent.rename(from, parent, to)
        }
        other => other,
    }
}

fn changed() -> io::Error {
    io::Error::other("it changed in this very moment; left as it is")
}

fn said(err: &Error) -> String {
    use std::error::Error as _;
    match err.source() {
        Some(source) => format!("{err}: {source}"),
        None => err.to_string(),
    }
}
