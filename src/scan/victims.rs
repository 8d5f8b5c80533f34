//! Files that somebody named, and that are held although the walk leaves them out: ignored ones,
//! large ones, and those outside the root.

use std::{
    ffi::{CStr, OsStr},
    io,
    os::unix::ffi::OsStrExt,
    path::Path,
    time::Instant,
};

use gix::glob::pattern::Case;

use super::{Named, Request, Scan, Victim, VictimPath, is_racy, rules::Rules};
use crate::{
    fs::{Dir, c_name},
    model::{DirPath, Found, Kind, Marks, RelPath, Root, SkipReason, Skipped},
};

/// Files below a named directory beyond this are left out: a second's worth of copying.
const FILES_MAX: usize = 10_000;
/// How many times the limit of one victim all victims of a call may hold together.
const TOGETHER: u64 = 4;
/// An ignored path with more in it is most likely something that is made again.
const SPARED_FILES_MAX: usize = 200;
/// The same, by its size.
const SPARED_BYTES_MAX: u64 = 4 << 20;
/// Ignored paths beyond this are not even looked at.
const SPARED_PATHS_MAX: usize = 1_000;
/// As deep as the walk goes.
const DEPTH_MAX: usize = 900;

/// Adds every victim of the request that the scan does not hold anyway, with everything below it.
pub(super) fn collect(scan: &mut Scan, request: &Request<'_>) {
    if request.victims.is_empty() && !request.spare {
        return;
    }
    let made_again = Rules::new(&[], &[], &[], Case::Sensitive);
    let spared = if request.spare { spared(scan) } else { Vec::new() };
    let mut collect = Collect { scan, request, made_again, bytes: 0 };
    for path in request.victims {
        collect.named(path);
    }
    for path in spared {
        collect.spare(&path);
    }
    let scan = collect.scan;
    scan.victims.sort_by(|a, b| a.path.cmp(&b.path));
    scan.victims.dedup_by(|a, b| a.path == b.path);
    scan.unheld.sort();
    scan.unheld.dedup();
}

/// What the walk left out and somebody may want back all the same, if it is little.
fn spared(scan: &Scan) -> Vec<RelPath> {
    let mut spared = Vec::new();
    scan.each(|dir, row| {
        let worth = match row.skipped {
            Some(SkipReason::Ignored | SkipReason::MadeAgain | SkipReason::TooLarge) => true,
            Some(_) | None => false,
        };
        if worth && spared.len() < SPARED_PATHS_MAX {
            let path = RelPath::from_bytes(&DirPath(dir.to_vec()).join(row.name));
            spared.extend(path.ok());
        }
    });
    spared
}

/// How much there is below a path: files, and their bytes.
#[derive(Default)]
struct Amount {
    files: usize,
    bytes: u64,
}

impl Amount {
    /// Adds what is at `name`, as long as it is little.
    fn add(&mut self, dir: &Dir, name: &CStr, depth: usize) -> io::Result<()> {
        let stamp = dir.stat_child(name)?;
        self.files += 1;
        if stamp.kind() == Some(Kind::File) {
            self.bytes += stamp.size;
        }
        if stamp.kind() != Some(Kind::Directory) || depth >= DEPTH_MAX {
            return Ok(());
        }
        let open = dir.open_child(name)?;
        let mut names = Vec::new();
        open.list(|listed| names.push(listed.name))?;
        for name in names {
            if self.files > SPARED_FILES_MAX {
                break;
            }
            self.add(&open, &name, depth + 1)?;
        }
        Ok(())
    }
}

struct Collect<'a, 'r> {
    scan: &'a mut Scan,
    request: &'a Request<'r>,
    made_again: Rules,
    bytes: u64,
}

impl Collect<'_, '_> {
    /// One victim, by the path somebody gave.
    fn named(&mut self, path: &Path) {
        let root = self.request.root;
        if root.path().starts_with(path) {
            // The root as a whole is what the walk is for; what lies around it is too much.
            if root.path() != path {
                self.leave_out(path.as_os_str().as_bytes(), SkipReason::TooMany, 0);
            }
            return;
        }
        let Some((dir, path)) = open_parent(root, path) else { return };
        self.add(&dir, path, 0);
    }

    /// An ignored or large path, held only if it is little enough to be no burden.
    fn spare(&mut self, path: &RelPath) {
        let absolute = self.request.root.join(path);
        let Some((dir, victim)) = open_parent(self.request.root, &absolute) else { return };
        let mut amount = Amount::default();
        let looked = c_name(path.name()).and_then(|name| amount.add(&dir, &name, 0));
        let is_one = amount.files == 1 && amount.bytes <= self.request.wishes.victim_size_max;
        let is_little = amount.files <= SPARED_FILES_MAX && amount.bytes <= SPARED_BYTES_MAX;
        let fits = self.scan.victims.len() + amount.files <= FILES_MAX;
        if looked.is_ok() && (is_one || is_little) && fits && self.has_room(amount.bytes) {
            self.made_again = self.made_again.clone().with_nothing_made_again();
            self.add(&dir, victim, 0);
        }
    }

    /// A file or directory, and everything in it.
    #[expect(clippy::needless_pass_by_value, reason = "no caller has another use for it")]
    fn add(&mut self, dir: &Dir, path: VictimPath, depth: usize) {
        let bytes = path.as_bytes().to_vec();
        let name = path.name().to_vec();
        let Ok(c_name) = c_name(&name) else { return };
        let stamp = match dir.stat_child(&c_name) {
            Ok(stamp) => stamp,
            Err(err) if err.kind() == io::ErrorKind::NotFound => return,
            Err(_) => return self.leave_out(&bytes, SkipReason::Unreadable, 0),
        };
        if matches!(&path, VictimPath::Below(rel) if rel.is_git_private()) {
            return self.leave_out(&bytes, SkipReason::GitPrivate, 0);
        }
        let Some(kind) = stamp.kind() else {
            return self.leave_out(&bytes, SkipReason::UnknownKind, 0);
        };
        let is_alone = self.request.named == Named::Alone;
        if kind == Kind::File && !is_alone && !self.is_held(&path) {
            if stamp.size > self.request.wishes.victim_size_max || !self.has_room(stamp.size) {
                return self.leave_out(&bytes, SkipReason::TooLarge, stamp.size);
            }
            self.bytes += stamp.size;
        }
        if self.scan.victims.len() >= FILES_MAX && !is_alone {
            return self.leave_out(&bytes, SkipReason::TooMany, stamp.size);
        }
        if self.request.deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            self.scan.partial = true;
            return self.leave_out(&bytes, SkipReason::OutOfTime, stamp.size);
        }
        if !self.is_held(&path) {
            let racy = is_racy(&stamp, self.request.now_ns);
            let marks = Marks { private: true, racy, tracked: false };
            let found = Found { name, stamp, content: None, marks, skipped: None };
            self.scan.victims.push(Victim { path: path.clone(), found });
        }
        if kind == Kind::Directory && !is_alone {
            self.below(dir, &c_name, &path, depth);
        }
    }

    fn below(&mut self, dir: &Dir, name: &CStr, path: &VictimPath, depth: usize) {
        if depth >= DEPTH_MAX {
            return self.leave_out(path.as_bytes(), SkipReason::TooDeep, 0);
        }
        if self.made_again.is_made_again(path.name(), true) {
            return self.leave_out(path.as_bytes(), SkipReason::MadeAgain, 0);
        }
        let mut names = Vec::new();
        let open = dir.open_child(name);
        let listed = open.and_then(|open| open.list(|listed| names.push(listed)).map(|()| open));
        let Ok(open) = listed else {
            return self.leave_out(path.as_bytes(), SkipReason::Unreadable, 0);
        };
        names.sort_by(|a, b| a.name.cmp(&b.name));
        for listed in names {
            self.add(&open, path.join(listed.name.to_bytes()), depth + 1);
        }
    }

    /// Whether the walk has it already.
    fn is_held(&self, path: &VictimPath) -> bool {
        match path {
            VictimPath::Below(rel) => self.scan.find(rel).is_some_and(|row| row.skipped.is_none()),
            VictimPath::Outside(_) => false,
        }
    }

    fn has_room(&self, size: u64) -> bool {
        let room = self.request.wishes.victim_size_max.saturating_mul(TOGETHER);
        self.bytes.saturating_add(size) <= room
    }

    fn leave_out(&mut self, path: &[u8], reason: SkipReason, size: u64) {
        self.scan.unheld.push(Skipped { path: path.to_vec(), reason, size });
    }
}

impl VictimPath {
    /// The bytes of the path: below the root, or absolute.
    pub fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Below(path) => path.as_bytes(),
            Self::Outside(path) => path.as_os_str().as_bytes(),
        }
    }

    fn name(&self) -> &[u8] {
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

/// The directory a victim lies in, and where that is once links on the way are followed.
fn open_parent(root: &Root, path: &Path) -> Option<(Dir, VictimPath)> {
    let parent = std::fs::canonicalize(path.parent()?).ok()?;
    let real = parent.join(path.file_name()?);
    let dir = Dir::open(&parent).ok()?;
    match root.relative(&real) {
        Ok(below) => Some((dir, VictimPath::Below(below))),
        Err(_) => Some((dir, VictimPath::Outside(real))),
    }
}
