//! Holds the files that a call names although the walk leaves them out: ignored files, large files,
//! and files outside the root.

use std::{
    ffi::{CStr, OsStr},
    io,
    ops::RangeInclusive,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
    time::Instant,
};

use super::{Scan, ScanRequest, Victim, VictimDepth, VictimPath, is_racy, regenerable};
use crate::{
    fs::{Dir, DirCursor, c_name, is_gone},
    model::{
        DirPath, Kind, Marks, RelPath, Root, ScanEntry, ScanScope, SkipReason, Skipped,
        is_beside_repository, names_in_git,
    },
};

/// Files below a named directory beyond this number are left out: copying them takes a second.
const FILES_MAX: usize = 10_000;
/// All victims of a call together may hold this many times the limit of one.
const TOGETHER: u64 = 4;
/// This many victims are looked at, though not read, even after the deadline.
const LOOKED_AT_MIN: usize = 256;
/// As deep as the walk goes.
const DEPTH_MAX: usize = 900;
/// A sparse file up to this size counts with its allocated size. Reading it takes about a second,
/// holes included.
const SPARSE_MAX_BYTES: u64 = 1 << 30;
/// The same limit while a call waits and other files need their share of the time.
const SPARSE_SOON_MAX_BYTES: u64 = 256 << 20;
/// Directories outside any project that a tool fills again.
const TOOL_CACHES: &[&str] =
    &[".npm", ".pnpm-store", ".yarn", ".m2", ".nuget", ".ivy2", "registry", "Caches", ".rustup"];

/// Adds every victim of the request that the scan does not hold yet, with everything below it.
pub fn name_victims(scan: &mut Scan, request: &ScanRequest<'_>) {
    if request.victims.is_empty() {
        return;
    }
    let home = request.user.home.as_deref().and_then(|home| std::fs::canonicalize(home).ok());
    let ours = std::fs::canonicalize(request.ours).unwrap_or_else(|_| request.ours.to_owned());
    let (bytes, is_output) = (0, false);
    let mut collect = Collect { scan, request, home, ours, bytes, is_output };
    for path in request.victims {
        collect.add_named(path);
    }
    let scan = collect.scan;
    scan.repositories.sort();
    scan.repositories.dedup();
    scan.victims.sort_by(|a, b| a.path.cmp(&b.path));
    scan.victims.dedup_by(|a, b| a.path == b.path);
    scan.unheld.sort();
    scan.unheld.dedup();
}

/// Whether the directory at `path`, absolute, is proven to be regenerable.
pub fn is_made_again(path: &Path) -> bool {
    let parent = path.parent().and_then(|above| Dir::open(above).ok());
    let name = path.file_name().and_then(|name| c_name(name.as_bytes()).ok());
    parent.zip(name).is_some_and(|(parent, name)| regenerable::is_proven(&parent, &name))
}

struct Collect<'a, 'r> {
    scan: &'a mut Scan,
    request: &'a ScanRequest<'r>,
    /// The user's home, which is never walked.
    home: Option<PathBuf>,
    ours: PathBuf,
    bytes: u64,
    /// Whether the current victim is build output.
    is_output: bool,
}

impl Collect<'_, '_> {
    /// Adds one victim, by the path that the call gave.
    fn add_named(&mut self, path: &Path) {
        let root = self.request.root;
        if root.path() == path {
            return self.whole_root();
        }
        let Some((dir, victim)) = open_parent(root, path) else {
            if is_nothing(path) {
                return;
            }
            let reason =
                if path.parent().is_none() { SkipReason::TooMany } else { SkipReason::Unreadable };
            return self.leave_out(path.as_os_str().as_bytes(), reason, 0);
        };
        if matches!(&victim, VictimPath::Outside(path) if path.starts_with(&self.ours)) {
            // Our own files are never held; the guard protects them.
            return;
        }
        let victim = match victim {
            VictimPath::Below(path) => VictimPath::Below(self.scan.spelled(root, &path)),
            outside @ VictimPath::Outside(_) => outside,
        };
        self.is_output = self.is_output(&victim);
        self.add(&dir, &victim, 0);
        self.is_output = false;
    }

    /// The victim is the root itself: adds what the walk leaves out, and what its repositories leave out.
    fn whole_root(&mut self) {
        let root = self.request.root;
        if self.request.scope == ScanScope::Named {
            return self.leave_out(root.path().as_os_str().as_bytes(), SkipReason::TooMany, 0);
        }
        if self.request.named == VictimDepth::Alone {
            return;
        }
        let mut left_out = Vec::new();
        self.scan.each(|dir, row| {
            let can_be_held = row.skipped.is_some_and(|reason| match reason {
                SkipReason::Ignored
                | SkipReason::Output
                | SkipReason::TooLarge
                | SkipReason::GitPrivate
                | SkipReason::Excluded => true,
                SkipReason::MadeAgain
                | SkipReason::Unreadable
                | SkipReason::OtherFileSystem
                | SkipReason::TooMany
                | SkipReason::OutOfTime
                | SkipReason::KeptChanging
                | SkipReason::TooDeep
                | SkipReason::UnknownKind => false,
            });
            if can_be_held && left_out.len() < FILES_MAX {
                left_out.extend(RelPath::from_bytes(&DirPath(dir.to_vec()).join(row.name)));
            }
        });
        left_out.extend(RelPath::from_bytes(b".git"));
        for path in left_out {
            let Some((dir, victim)) = open_parent(root, &root.join(&path)) else { continue };
            self.is_output = self.is_output(&victim);
            self.add(&dir, &victim, 0);
            self.is_output = false;
        }
    }

    /// Whether a victim is, or lies in, something that is very probably regenerable: ignored build
    /// output, or a tool's cache.
    fn is_output(&self, path: &VictimPath) -> bool {
        match path {
            VictimPath::Below(rel) => Dir::open(self.request.root.path()).is_ok_and(|top| {
                regenerable::is_in_output(self.scan, &mut DirCursor::from(&top), rel)
            }),
            VictimPath::Outside(path) => path.components().any(|name| {
                name.as_os_str().to_str().is_some_and(|name| TOOL_CACHES.contains(&name))
            }),
        }
    }

    /// Adds a file, or a directory with everything in it.
    fn add(&mut self, dir: &Dir, path: &VictimPath, depth: usize) {
        let bytes = path.as_bytes().to_vec();
        let name = path.name().to_vec();
        let Ok(c_name) = c_name(&name) else { return };
        let stamp = match dir.stat_child(&c_name) {
            Ok(stamp) => stamp,
            Err(err) if err.kind() == io::ErrorKind::NotFound => return,
            Err(_) => return self.leave_out(&bytes, SkipReason::Unreadable, 0),
        };
        if let Some(names) = names_in_git(&bytes) {
            // A repository is held as a whole, also if a part of it is named.
            self.repository(path);
            if stamp.kind() == Some(Kind::Directory) {
                return self.below(dir, &c_name, path, depth);
            }
            if !is_beside_repository(&names) {
                return;
            }
        }
        match path {
            VictimPath::Outside(path) if path == self.request.root.path() => {
                return self.whole_root();
            }
            VictimPath::Outside(path) if *path == self.ours => return,
            VictimPath::Outside(path) if self.is_too_much(path) => {
                return self.leave_out(&bytes, SkipReason::TooMany, 0);
            }
            VictimPath::Below(_) | VictimPath::Outside(_) => (),
        }
        let Some(kind) = stamp.kind() else {
            return self.leave_out(&bytes, SkipReason::UnknownKind, 0);
        };
        let is_alone = self.request.named == VictimDepth::Alone;
        if kind == Kind::Directory && !is_alone && regenerable::is_proven(dir, &c_name) {
            return self.leave_out(&bytes, SkipReason::MadeAgain, 0);
        }
        if kind == Kind::File && !is_alone && !self.is_held(path) {
            let size_max = self.request.settings.max_victim_size;
            let waits = self.request.deadline.is_some();
            let sparse_max = if waits { SPARSE_SOON_MAX_BYTES } else { SPARSE_MAX_BYTES };
            let weight = weight(dir, &c_name, stamp.size, size_max..=sparse_max);
            if weight > size_max || !self.has_room(weight) {
                return self.leave_out(&bytes, SkipReason::TooLarge, stamp.size);
            }
            self.bytes += weight;
        }
        // The size of a directory says nothing about its content.
        let size = if kind == Kind::Directory { 0 } else { stamp.size };
        if self.scan.victims.len() >= FILES_MAX && !is_alone {
            return self.leave_out(&bytes, SkipReason::TooMany, size);
        }
        if self.is_late() {
            self.scan.partial = true;
            return self.leave_out(&bytes, SkipReason::OutOfTime, size);
        }
        if !self.is_held(path) {
            let racy = is_racy(&stamp, self.request.now_ns);
            let marks = Marks { private: true, racy, ..Marks::default() };
            let found = ScanEntry { name, stamp, content: None, marks, skipped: None };
            self.scan.victims.push(Victim { path: path.clone(), found });
        }
        if kind == Kind::Directory && !is_alone {
            self.below(dir, &c_name, path, depth);
        }
    }

    /// The repository that a path leads into; the root's own is held in any case.
    fn repository(&mut self, path: &VictimPath) {
        let place = match path {
            VictimPath::Below(rel) => self.request.root.join(rel),
            VictimPath::Outside(path) => path.clone(),
        };
        let own = self.request.root.path().join(".git");
        let git_dir = git_dir_of(&place).filter(|git_dir| *git_dir != own);
        let repositories = &mut self.scan.repositories;
        repositories.extend(git_dir.filter(|git_dir| repositories.last() != Some(git_dir)));
    }

    fn below(&mut self, dir: &Dir, name: &CStr, path: &VictimPath, depth: usize) {
        if depth >= DEPTH_MAX {
            return self.leave_out(path.as_bytes(), SkipReason::TooDeep, 0);
        }
        let mut names = Vec::new();
        let open = dir.open_child(name);
        let listed = open.and_then(|open| open.list(|listed| names.push(listed)).map(|()| open));
        let Ok(open) = listed else {
            return self.leave_out(path.as_bytes(), SkipReason::Unreadable, 0);
        };
        names.sort_by(|a, b| a.name.cmp(&b.name));
        for listed in names {
            let child = path.join(listed.name.to_bytes());
            let in_git = names_in_git(child.as_bytes());
            let may_be_dir = matches!(listed.kind, None | Some(Kind::Directory));
            if let Some(names) = in_git
                && !may_be_dir
                && !is_beside_repository(&names)
            {
                if names.is_empty() {
                    // The `.git` file of a worktree or a submodule. It is held with its repository.
                    self.repository(&child);
                }
                continue;
            }
            let full = self.scan.victims.len() >= FILES_MAX || !self.has_room(1);
            if full || self.is_late() {
                // One entry stands for everything left over, however much that is.
                let reason = if full { SkipReason::TooMany } else { SkipReason::OutOfTime };
                return self.leave_out(path.as_bytes(), reason, 0);
            }
            self.add(&open, &child, depth + 1);
        }
    }

    /// Whether a directory is never walked: the home directory, and those above it.
    fn is_too_much(&self, path: &Path) -> bool {
        self.home.as_ref().is_some_and(|home| home.starts_with(path))
    }

    fn is_late(&self) -> bool {
        self.scan.victims.len() >= LOOKED_AT_MIN
            && self.request.deadline.is_some_and(|deadline| Instant::now() >= deadline)
    }

    /// Whether the walk already holds it.
    fn is_held(&self, path: &VictimPath) -> bool {
        match path {
            VictimPath::Below(rel) => self.scan.find(rel).is_some_and(|row| row.skipped.is_none()),
            VictimPath::Outside(_) => false,
        }
    }

    fn has_room(&self, size: u64) -> bool {
        let room = self.request.settings.max_victim_size.saturating_mul(TOGETHER);
        self.bytes.saturating_add(size) <= room
    }

    fn leave_out(&mut self, path: &[u8], reason: SkipReason, size: u64) {
        let reason = match reason {
            SkipReason::TooLarge | SkipReason::TooMany | SkipReason::OutOfTime
                if self.is_output =>
            {
                SkipReason::Output
            }
            other => other,
        };
        self.scan.unheld.push(Skipped { path: path.to_vec(), reason, size });
    }
}

/// How many bytes a file of `size` counts for. Holes are taken into account only for sizes in
/// `matter`.
pub(super) fn weight(dir: &Dir, name: &CStr, size: u64, matter: RangeInclusive<u64>) -> u64 {
    if !matter.contains(&size) {
        return size;
    }
    dir.allocated_bytes(name).map_or(size, |room| room.min(size))
}

/// The outermost `.git` in a path.
fn git_dir_of(path: &Path) -> Option<PathBuf> {
    let above = path.ancestors().filter(|above| above.file_name().is_some_and(|it| it == ".git"));
    above.last().map(Path::to_owned)
}

impl VictimPath {
    /// The path as bytes: below the root, or absolute.
    pub fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Below(path) => path.as_bytes(),
            Self::Outside(path) => path.as_os_str().as_bytes(),
        }
    }

    /// Its last name.
    pub fn name(&self) -> &[u8] {
        match self {
            Self::Below(path) => path.name(),
            Self::Outside(path) => path.file_name().map(OsStrExt::as_bytes).unwrap_or_default(),
        }
    }

    fn join(&self, name: &[u8]) -> Self {
        let name = Path::new(OsStr::from_bytes(name));
        match self {
            Self::Below(path) => Self::Below(
                RelPath::parse(&path.as_path().join(name)).expect("a listed name is a plain name"),
            ),
            Self::Outside(path) => Self::Outside(path.join(name)),
        }
    }
}

/// Whether there is nothing at `path`, or nothing that can be reached.
fn is_nothing(path: &Path) -> bool {
    path.symlink_metadata().is_err_and(|err| is_gone(&err))
}

/// The directory that contains a victim, and the victim's path with symlinks on the way resolved.
fn open_parent(root: &Root, path: &Path) -> Option<(Dir, VictimPath)> {
    let parent = std::fs::canonicalize(path.parent()?).ok()?;
    let real = parent.join(path.file_name()?);
    let dir = Dir::open(&parent).ok()?;
    match root.relative(&real) {
        Ok(below) => Some((dir, VictimPath::Below(below))),
        Err(_) => Some((dir, VictimPath::Outside(real))),
    }
}
