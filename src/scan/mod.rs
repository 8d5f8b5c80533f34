//! Scans a root: the names and stamps of its files, and what is left out and why.
//!
//! A [`Scan`] is the table of the last scan (see `cache`) overlaid with every directory that may
//! have changed, read again. A store assigns content ids to the new directories; the others keep
//! those from the table.

mod author;
mod budget;
mod dir_rules;
mod exported;
mod list;
mod parallel;
mod queue;
mod regenerable;
mod rule_sources;
mod rules;
mod tracked;
mod verify;
mod victims;
mod walk;

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    time::Instant,
};

use crate::{
    cache::{DirVisitor, Facts, NewTable, ScanTable, TableDirs, TableRow},
    error::Result,
    fs::stat_path,
    model::{
        ContentId, DefaultModes, DirPath, Fresh, Kind, RelPath, Root, ScanEntry, ScanScope,
        Settings, Skipped, Stamp, in_tree_order,
    },
};

pub use author::GitAuthor;
pub use exported::{ExportRules, NotExported};
pub use rule_sources::UserDirs;
pub use victims::{is_made_again, name_victims};
pub use walk::walk;

/// The prefix of a restore's temporary files.
pub const TEMPORARY_PREFIX: &str = ".beforehand-tmp-";

/// Whether a name is that of a restore's temporary file, or of a repository that it makes. These are
/// never captured, even if the restore is interrupted; everything else with that prefix is.
pub fn is_temporary(name: &[u8]) -> bool {
    let Some(rest) = name.strip_prefix(TEMPORARY_PREFIX.as_bytes()) else { return false };
    let is_number = |text: &[u8]| text.len() == 16 && text.iter().all(u8::is_ascii_hexdigit);
    let mut numbers = rest.split(|&byte| byte == b'-');
    rest.len() == 33 && numbers.all(is_number)
}

/// The coarsest tick of file systems that keep nanoseconds.
const TICK_NS: i64 = 20_000_000;
/// The tick of file systems that keep whole seconds, or two as FAT does.
const COARSE_TICK_NS: i64 = 2_000_000_000;

/// Whether a file changed so shortly before `now_ns`, or so far in the future, that another change
/// could leave the same stamp.
///
/// Only ctime counts: the system sets it on every change, and no program can.
pub fn is_racy(stamp: &Stamp, now_ns: i64) -> bool {
    let tick = if stamp.ctime_ns % 1_000_000_000 == 0 { COARSE_TICK_NS } else { TICK_NS };
    stamp.ctime_ns.saturating_add(tick) >= now_ns
}

/// What to walk, and how far.
#[derive(Debug)]
pub struct ScanRequest<'a> {
    /// The root.
    pub root: &'a Root,
    /// How much of it.
    pub scope: ScanScope,
    /// The last scan, if there is one.
    pub base: Option<ScanTable>,
    /// Which files are captured.
    pub settings: &'a Settings,
    /// Where the user keeps git's configuration.
    pub user: &'a UserDirs,
    /// Paths to hold in any case. Absolute, without `.` or `..`.
    pub victims: &'a [PathBuf],
    /// The state directory, which is never a victim.
    pub ours: &'a Path,
    /// How much of each victim.
    pub named: VictimDepth,
    /// When the scan began, in nanoseconds since 1970. A later change, or one shortly before, is
    /// checked again by the next scan.
    pub now_ns: i64,
    /// When to stop.
    pub deadline: Option<Instant>,
}

/// How much of each victim is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VictimDepth {
    /// It and everything below it, within limits, because a call names it.
    WithAllBelow,
    /// It alone, whatever its size, because a restore is about to replace it.
    Alone,
}

/// The result of a scan.
#[derive(Clone, Debug, Default)]
pub struct Scan {
    /// The table of the last scan, if it is still usable.
    pub base: Option<ScanTable>,
    /// The anchor that the base was written for. As long as the store's anchor is the same, ids
    /// from the base are known to be stored; otherwise each must be checked.
    pub anchor: Option<ContentId>,
    /// Every directory that may differ from the base, and all directories above them. An entry that
    /// is itself such a directory has no content id until that directory has one.
    pub fresh: BTreeMap<DirPath, Fresh>,
    /// Directories of the base that no longer exist; each stands for everything below it.
    pub gone: Vec<DirPath>,
    /// Whether the deadline ended the walk early.
    pub partial: bool,
    /// Whether the cache should be written although no content changed, because a racy stamp was
    /// resolved.
    pub refreshed: bool,
    /// The permissions most files of the root have.
    pub default_modes: DefaultModes,
    /// Files held although they are ignored, too large, or outside the root. Sorted by path.
    pub victims: Vec<Victim>,
    /// The nested repositories: every `.git` below the root except its own, and those outside that
    /// a call names. Absolute, sorted.
    pub repositories: Vec<PathBuf>,
    /// Where nothing is outside the root and a restore will put something. Absolute.
    pub absent: Vec<PathBuf>,
    /// Victims that are not held, and why.
    pub unheld: Vec<Skipped>,
    /// The stamp of git's index, taken before it was read.
    pub index: Stamp,
    /// As [`Facts::rules`].
    pub rules: Option<ContentId>,
    /// A digest of the set of tracked paths, as [`Facts::tracked`].
    pub tracked: Option<ContentId>,
}

/// A file held because a call names it. A directory comes with everything in it, one victim each,
/// parents first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Victim {
    /// Where it is.
    pub path: VictimPath,
    /// What it is. Its name is the last name of the path.
    pub found: ScanEntry,
}

/// Where a victim is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum VictimPath {
    /// Below the root.
    Below(RelPath),
    /// Somewhere else. Absolute.
    Outside(PathBuf),
}

impl VictimPath {
    /// The path below the root, if it is there.
    pub fn below(&self) -> Option<&RelPath> {
        match self {
            Self::Below(path) => Some(path),
            Self::Outside(_) => None,
        }
    }

    /// The absolute path, if it is somewhere else.
    pub fn outside(&self) -> Option<&Path> {
        match self {
            Self::Below(_) => None,
            Self::Outside(path) => Some(path),
        }
    }
}

impl Scan {
    /// A scan of a directory in which there is nothing.
    pub fn of_nothing() -> Self {
        let fresh = BTreeMap::from([(DirPath::default(), Fresh::default())]);
        Self { fresh, ..Self::default() }
    }

    /// Whether nothing changed since the base, so that its top directory is still right.
    pub fn is_unchanged(&self) -> bool {
        self.base.is_some() && self.fresh.is_empty() && self.gone.is_empty()
    }

    /// The content id of the root directory, once it is known.
    pub fn top(&self) -> Option<ContentId> {
        match self.fresh.get(&DirPath::default()) {
            Some(fresh) => fresh.id,
            None => self.base.as_ref().and_then(ScanTable::top),
        }
    }

    /// The entry at `path`, below the root.
    pub fn find(&self, path: &RelPath) -> Option<TableRow<'_>> {
        let above = path.parent().map(|above| above.as_bytes().to_vec()).unwrap_or_default();
        match self.fresh.get(&DirPath(above.clone())) {
            Some(fresh) => fresh.entry(path.name()).map(TableRow::from),
            None if self.is_stale(&above) => None,
            None => self.base.as_ref()?.find_dir(&above)?.row(path.name()),
        }
    }

    /// A path by the names that the walk has found on the way, where `root` takes other spellings for them.
    pub fn spelled(&self, root: &Root, path: &RelPath) -> RelPath {
        let mut spelled: Option<RelPath> = None;
        for name in path.names() {
            let above = spelled.as_ref().map_or(&[][..], RelPath::as_bytes);
            let Ok(here) = RelPath::from_bytes(&DirPath(above.to_vec()).join(name)) else { break };
            let stamp = || stat_path(&root.join(&here)).ok();
            spelled = Some(self.other_name(&here, stamp).unwrap_or(here));
        }
        spelled.unwrap_or_else(|| path.clone())
    }

    /// What `path` is called by the walk, if that has found it in its directory by another name. A file system may
    /// take other spellings for the same: in other cases, or in another normal form. `stamp` tells what is there.
    pub fn other_name(
        &self,
        path: &RelPath,
        stamp: impl FnOnce() -> Option<Stamp>,
    ) -> Option<RelPath> {
        if self.find(path).is_some() {
            return None;
        }
        let above = path.parent().map(|above| above.as_bytes().to_vec()).unwrap_or_default();
        let above = DirPath(above);
        let mut rows: Box<dyn Iterator<Item = TableRow<'_>>> = match self.fresh.get(&above) {
            Some(fresh) => Box::new(fresh.found.iter().map(TableRow::from)),
            None if self.is_stale(&above.0) => return None,
            None => Box::new(self.base.as_ref()?.find_dir(&above.0)?.rows()),
        };
        let inode = stamp()?.inode;
        let other = rows.find(|row| row.stamp.inode == inode)?;
        RelPath::from_bytes(&above.join(other.name)).ok()
    }

    /// The stamp of `path`, below the root, if it is held by the walk or as a victim.
    pub fn stamp(&self, path: &RelPath) -> Option<Stamp> {
        let wanted = VictimPath::Below(path.clone());
        let at = self.victims.binary_search_by(|victim| victim.path.cmp(&wanted));
        let found = || self.find(path).filter(|row| row.skipped.is_none()).map(|row| row.stamp);
        at.map(|at| self.victims[at].found.stamp).ok().or_else(found)
    }

    /// Assigns ids to the fresh directories, the deepest first: `name` gives one for the path of a
    /// directory and what is in it.
    ///
    /// # Errors
    ///
    /// Fails if `name` does.
    pub fn name_directories(
        &mut self,
        mut name: impl FnMut(&DirPath, &[ScanEntry]) -> Result<ContentId>,
    ) -> Result<()> {
        let paths: Vec<DirPath> = self.fresh.keys().rev().cloned().collect();
        for path in paths {
            let Some(fresh) = self.fresh.get_mut(&path) else { continue };
            let id = name(&path, &fresh.found)?;
            fresh.id = Some(id);
            let Some((parent, last)) = path.split() else { continue };
            let above = self.fresh.get_mut(&parent).and_then(|above| above.entry_mut(last));
            if let Some(entry) = above.filter(|entry| entry.kind() == Some(Kind::Directory)) {
                entry.content = Some(id);
            }
        }
        Ok(())
    }

    /// Drops the base: every directory becomes a fresh one without an id, and a file keeps its
    /// content id only if `keep` returns true. For a base that cannot be trusted.
    pub fn forget_base(&mut self, mut keep: impl FnMut(&ScanEntry) -> bool) {
        let mut fresh = BTreeMap::new();
        self.each_directory(|path, stamp, racy, rows| {
            let found = rows.map(|row| row.to_found()).collect();
            fresh.insert(DirPath(path.to_vec()), Fresh { stamp, racy, id: None, found });
        });
        for found in fresh.values_mut().flat_map(|fresh| &mut fresh.found) {
            let is_kept =
                found.kind() != Some(Kind::Directory) && found.content.is_some() && keep(found);
            found.content = found.content.filter(|_| is_kept);
        }
        (self.base, self.anchor, self.fresh) = (None, None, fresh);
        self.gone.clear();
    }

    /// How many files are held, victims, links and special files included.
    pub fn file_count(&self) -> u64 {
        let mut files = 0;
        let is_file = |kind: Option<Kind>| kind.is_some_and(|kind| kind != Kind::Directory);
        self.each(|_, row| files += u64::from(row.skipped.is_none() && is_file(row.kind())));
        let victims = self.victims.iter().map(|victim| &victim.found);
        files + victims.filter(|found| found.is_held() && is_file(found.kind())).count() as u64
    }

    /// Whether the directory `path` of the base was replaced or removed.
    fn is_stale(&self, path: &[u8]) -> bool {
        self.fresh.contains_key(&DirPath(path.to_vec()))
            || self.gone.iter().any(|gone| gone.contains(path))
    }

    /// Visits every directory in tree order, and its entries by name.
    pub fn each<'a>(&'a self, mut each: impl FnMut(&'a [u8], TableRow<'a>)) {
        self.each_directory(|path, _, _, rows| rows.for_each(|row| each(path, row)));
    }

    /// Writes the cache of this scan, once every directory has its id. The caller holds the root's lock.
    ///
    /// # Errors
    ///
    /// Fails if it cannot be written.
    pub fn write_table(&self, path: &Path, facts: &Facts) -> Result<()> {
        let base = self.base.as_ref().filter(|_| self.gone.is_empty());
        match base.map(|base| base.patch(path, facts, self.fresh.iter())) {
            Some(Ok(true)) => Ok(()),
            Some(Ok(false) | Err(_)) | None => NewTable::new(self, facts).write(path),
        }
    }

    pub(super) fn each_directory<'a>(
        &'a self,
        mut each: impl FnMut(&'a [u8], Stamp, bool, &mut dyn Iterator<Item = TableRow<'a>>),
    ) {
        self.visit(&mut each);
    }
}

impl TableDirs for Scan {
    fn visit<'a>(&'a self, each: &mut DirVisitor<'_, 'a>) {
        let untouched = self.fresh.is_empty() && self.gone.is_empty();
        let mut fresh = self.fresh.iter().peekable();
        let show = |path: &'a DirPath, new: &'a Fresh, each: &mut DirVisitor<'_, 'a>| {
            each(&path.0[..], new.stamp, new.racy, &mut new.found.iter().map(TableRow::from));
        };
        for dir in self.base.iter().flat_map(ScanTable::dirs) {
            while let Some((path, new)) =
                fresh.next_if(|(path, _)| in_tree_order(&path.0, dir.path).is_le())
            {
                show(path, new, each);
            }
            if untouched || !self.is_stale(dir.path) {
                each(dir.path, dir.stamp, dir.racy, &mut dir.rows());
            }
        }
        for (path, new) in fresh {
            show(path, new, each);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_proves_something_once_the_clock_has_moved_on() {
        let at = |ns| Stamp { ctime_ns: ns, ..Stamp::default() };
        let ns = 1_700_000_000_123_456_789;
        assert!(is_racy(&at(ns), ns) && is_racy(&at(ns), ns + TICK_NS));
        assert!(!is_racy(&at(ns), ns + TICK_NS + 1));
        assert!(is_racy(&at(ns + 1), ns), "from the future");
        let whole = 1_700_000_000_000_000_000;
        assert!(is_racy(&at(whole), whole + COARSE_TICK_NS));
        assert!(!is_racy(&at(whole), whole + COARSE_TICK_NS + 1));
    }
}
