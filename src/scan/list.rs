//! Lists directories, decides what to do with each name, and stats those that matter. A [`Lister`]
//! works in one thread; [`WalkContext`] is what all threads share.

use std::{
    collections::BTreeMap,
    ffi::CString,
    io,
    sync::atomic::{AtomicU64, Ordering},
    time::Instant,
};

use super::{
    dir_rules::{DirRules, is_git_private},
    is_racy, is_temporary,
    queue::{Job, Queue},
    regenerable,
    rules::IGNORE_FILE,
};
use crate::{
    cache::{DirRow, ScanTable, TableRow},
    fs::{Dir, Listed},
    model::{DirPath, Fresh, Kind, Marks, Root, RootKind, ScanEntry, Settings, SkipReason, Stamp},
};

/// Deeper than real trees, and few enough open directories for every system.
const DEPTH_MAX: usize = 900;
/// How many entries are handled between two looks at the clock.
const ENTRIES_PER_LOOK: u64 = 256;

/// What all threads of a walk share.
pub(super) struct WalkContext<'a> {
    pub(super) root: &'a Root,
    pub(super) settings: &'a Settings,
    /// Larger untracked files are left out.
    pub(super) file_size_max: u64,
    /// Further files are left out.
    pub(super) files_max: u64,
    pub(super) now_ns: i64,
    pub(super) deadline: Option<Instant>,
    pub(super) device: u64,
    /// The permission bits for group and others that the repository's object files have.
    pub(super) open_bits: u32,
    /// How many files are held so far.
    pub(super) captured: AtomicU64,
}

impl WalkContext<'_> {
    fn is_git(&self) -> bool {
        matches!(self.root.kind(), RootKind::Git { .. })
    }
}

/// Whether an untracked file is readable by fewer users than the repository's objects are, which have
/// these permission bits for others.
pub(super) fn is_private_mode(open_bits: u32, stamp: &Stamp, untracked: bool) -> bool {
    untracked && is_file(stamp) && open_bits & !stamp.mode != 0
}

/// One directory to list.
pub(super) struct DirVisit<'g> {
    pub(super) path: DirPath,
    pub(super) depth: usize,
    pub(super) dir_rules: &'g DirRules,
    /// Whether it, or a directory above it, is ignored.
    pub(super) is_ignored: bool,
}

/// Lists directories in one thread.
pub(super) struct Lister<'a> {
    context: &'a WalkContext<'a>,
    base: Option<&'a ScanTable>,
    /// Directories of the base that are gone.
    gone: &'a [DirPath],
    /// Directories waiting for an idle thread; without a queue, each is listed at once.
    queue: Option<&'a Queue>,
    /// Whether ignored files are held, because the budget is being filled.
    takes_ignored: bool,
    /// Where the last tracked path was found in the index.
    hint: usize,
    /// How many entries it has looked at.
    pub(super) seen: u64,
    /// What it found.
    pub(super) listed: Listings,
}

/// The results of one or more listers.
#[derive(Default)]
pub(super) struct Listings {
    pub(super) fresh: Vec<(DirPath, Fresh)>,
    /// Directories that could be opened but not listed.
    pub(super) unlisted: Vec<DirPath>,
    pub(super) out_of_time: bool,
    /// Whether files are left out because there are more than may be held.
    pub(super) too_many: bool,
}

impl<'a> Lister<'a> {
    pub(super) fn new(
        context: &'a WalkContext<'a>,
        base: Option<&'a ScanTable>,
        gone: &'a [DirPath],
        queue: Option<&'a Queue>,
    ) -> Self {
        let (takes_ignored, hint, seen, listed) = (false, 0, 0, Listings::default());
        Self { context, base, gone, queue, takes_ignored, hint, seen, listed }
    }

    /// A lister that also holds ignored files, up to the limit of `context`.
    pub(super) fn taking_ignored(
        context: &'a WalkContext<'a>,
        base: Option<&'a ScanTable>,
    ) -> Self {
        Self { takes_ignored: true, ..Self::new(context, base, &[], None) }
    }

    /// Lists an open directory, decides about each name, and walks what has to be walked. Unless
    /// `full`, what the base knows of a name keeps what was decided about it.
    pub(super) fn list(&mut self, open: &Dir, visit: &DirVisit<'_>, full: bool) -> io::Result<()> {
        let (stamp, _) = open.stat()?;
        let mut names = Vec::new();
        open.list(|listed| names.push(listed))?;
        names.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        let (root, size_max) = (self.context.root, self.context.file_size_max);
        let nested = visit.dir_rules.nested(root, size_max, open, &visit.path, &names);
        // A nested repository decides about everything in it, and may have just appeared.
        let full = full || nested.is_some();
        let dir_rules = nested.as_ref().unwrap_or(visit.dir_rules);
        let inner = dir_rules.inside(open, &visit.path, &names);
        let here = DirVisit { path: visit.path.clone(), dir_rules: &inner, ..*visit };
        let old = self.base.and_then(|base| base.find_dir(&visit.path.0));
        let mut found = Vec::with_capacity(names.len());
        for listed in &names {
            if self.takes_ignored && self.is_full() {
                // The directory is left out as a whole, so the other names in it do not matter.
                break;
            }
            if let Some(entry) = self.entry(open, &here, listed, old.as_ref(), full) {
                found.push(entry);
            }
        }
        let racy = is_racy(&stamp, self.context.now_ns);
        let fresh = Fresh { stamp, racy, id: None, found };
        self.listed.fresh.push((here.path, fresh));
        Ok(())
    }

    /// The entry for one name; `None` for git's own directory and for a file that has just been
    /// deleted.
    fn entry(
        &mut self,
        open: &Dir,
        visit: &DirVisit<'_>,
        listed: &Listed,
        old: Option<&DirRow<'_>>,
        full: bool,
    ) -> Option<ScanEntry> {
        let name = listed.name.to_bytes();
        if is_temporary(name) {
            return None;
        }
        let kind = listed.kind.or_else(|| open.stat_child(&listed.name).ok()?.kind());
        if is_git_private(open, &listed.name) {
            // A nested repository is held as a repository, not as files.
            let stamp = Stamp { mode: kind.map_or(0, Kind::mode_bits), ..Stamp::default() };
            let (marks, skipped) = (Marks::default(), Some(SkipReason::GitPrivate));
            return Some(ScanEntry { name: name.to_vec(), stamp, content: None, marks, skipped });
        }
        let old = old.and_then(|old| old.row(name)).filter(|row| row.kind() == kind);
        let path = visit.path.join(name);
        let mut found = ScanEntry {
            name: name.to_vec(),
            stamp: Stamp { mode: kind.map_or(0, Kind::mode_bits), ..Stamp::default() },
            content: None,
            marks: Marks::default(),
            skipped: None,
        };
        match old {
            Some(row) if !full && keeps_decision(&row, open, &listed.name) => {
                let Marks { tracked, ignored, .. } = row.marks;
                found.marks = Marks { tracked, ignored, ..found.marks };
                found.skipped = row.skipped;
            }
            _ => self.decide(&mut found, open, &listed.name, &path, kind, visit),
        }
        self.look(&mut found, open, &listed.name, &path, visit);
        self.settle(&mut found, open, &listed.name, visit, path, old, full);
        (found.stamp.mode != 0).then_some(found)
    }

    /// Whether a name is tracked and, if not, what the rules say. Ignored entries wait for the
    /// budget, unless they are proven to be regenerable.
    fn decide(
        &mut self,
        found: &mut ScanEntry,
        open: &Dir,
        name: &CString,
        path: &[u8],
        kind: Option<Kind>,
        visit: &DirVisit<'_>,
    ) {
        let is_dir = kind == Some(Kind::Directory);
        let tracked = &visit.dir_rules.tracked;
        found.marks.tracked = if is_dir {
            tracked.has_below(path, &mut self.hint)
        } else {
            tracked.has(path, &mut self.hint)
        };
        if found.marks.tracked {
            return;
        }
        let rules = &visit.dir_rules.rules;
        found.skipped = rules.skips(path, is_dir);
        if found.skipped.is_none() && visit.is_ignored {
            found.skipped = Some(SkipReason::Ignored);
        }
        found.marks.ignored = found.skipped == Some(SkipReason::Ignored);
        let is_free = found.skipped.is_none() && rules.is_bare;
        if is_dir && (found.marks.ignored || is_free) && regenerable::is_proven(open, name) {
            found.skipped = Some(SkipReason::MadeAgain);
        } else if self.takes_ignored && found.marks.ignored {
            found.skipped = None;
        }
    }

    /// Stats a name, unless its stamp is not needed.
    fn look(
        &mut self,
        found: &mut ScanEntry,
        open: &Dir,
        name: &CString,
        path: &[u8],
        visit: &DirVisit<'_>,
    ) {
        let is_rules = found.name == IGNORE_FILE;
        if found.skipped.is_some_and(|reason| !is_asked_about(reason)) && !is_rules {
            return;
        }
        match stat_listed(open, name) {
            Ok(stamp) => {
                found.stamp = stamp;
                found.marks.racy = is_racy(&stamp, self.context.now_ns);
            }
            // Deleted between the listing and now.
            Err(err) if err.kind() == io::ErrorKind::NotFound => found.stamp.mode = 0,
            Err(_) => {
                found.skipped = Some(SkipReason::Unreadable);
                return;
            }
        }
        let untracked = !found.marks.tracked;
        let too_large = is_file(&found.stamp) && found.stamp.size > self.context.file_size_max;
        let is_sized = found.skipped.is_none_or(|reason| reason == SkipReason::TooLarge);
        if is_sized && !self.takes_ignored {
            found.skipped = (untracked && too_large).then_some(SkipReason::TooLarge);
        }
        found.marks.private = is_file(&found.stamp)
            && (is_private_mode(self.context.open_bits, &found.stamp, untracked)
                || untracked && self.context.is_git() && visit.dir_rules.rules.is_private(path));
    }

    /// Holds the entry, walks into it, or notes why it is left out.
    #[expect(clippy::too_many_arguments, reason = "what is known of one name, from three sides")]
    fn settle(
        &mut self,
        found: &mut ScanEntry,
        open: &Dir,
        name: &CString,
        visit: &DirVisit<'_>,
        path: Vec<u8>,
        old: Option<TableRow<'_>>,
        full: bool,
    ) {
        match (found.skipped, found.kind()) {
            (None, Some(Kind::Directory)) if !full && self.is_in_base(&path) => {
                found.content = old.and_then(|row| row.content);
            }
            (None, Some(Kind::Directory)) => self.descend(found, open, name, visit, path),
            (None, Some(_)) => self.capture(found, old),
            (_, None) => found.skipped = Some(SkipReason::UnknownKind),
            (Some(_), Some(_)) => (),
        }
    }

    fn is_in_base(&self, path: &[u8]) -> bool {
        self.base.is_some_and(|base| base.find_dir(path).is_some())
            && !self.gone.iter().any(|gone| gone.contains(path))
    }

    /// Counts a file and takes over its known content id.
    fn capture(&mut self, found: &mut ScanEntry, old: Option<TableRow<'_>>) {
        let known = old.filter(|row| {
            let is_same = row.stamp == found.stamp && !row.marks.racy;
            is_same && row.marks.private == found.marks.private
        });
        found.content = known.and_then(|row| row.content);
        // What is known takes no more time.
        if self.is_late() && found.is_unread() {
            found.skipped = Some(SkipReason::OutOfTime);
            return;
        }
        let (captured, files_max) = (&self.context.captured, self.context.files_max);
        let next = |count| (count < files_max).then_some(count + 1);
        if captured.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next).is_err() {
            found.skipped = Some(SkipReason::TooMany);
            found.content = None;
            self.listed.too_many = true;
        }
    }

    /// Lists the directory `name`, or leaves it to an idle thread.
    fn descend(
        &mut self,
        found: &mut ScanEntry,
        open: &Dir,
        name: &CString,
        visit: &DirVisit<'_>,
        path: Vec<u8>,
    ) {
        if visit.depth >= DEPTH_MAX {
            found.skipped = Some(SkipReason::TooDeep);
            return;
        }
        if self.is_late() {
            found.skipped = Some(SkipReason::OutOfTime);
            return;
        }
        let (path, depth, is_ignored) = (DirPath(path), visit.depth + 1, found.marks.ignored);
        let below = DirVisit { path, depth, dir_rules: visit.dir_rules, is_ignored };
        let opened = open.open_child(name).and_then(|child| Ok((child.stat()?.1, child)));
        found.skipped = match opened {
            Err(_) => Some(SkipReason::Unreadable),
            Ok((device, _)) if device != self.context.device => Some(SkipReason::OtherFileSystem),
            Ok((_, child)) => self.enter(child, &below).err().map(|_| SkipReason::Unreadable),
        };
    }

    fn enter(&mut self, child: Dir, visit: &DirVisit<'_>) -> io::Result<()> {
        let Some(queue) = self.queue else { return self.list(&child, visit, true) };
        let (path, depth, dir_rules) = (visit.path.clone(), visit.depth, visit.dir_rules.clone());
        match queue.offer(Job { open: child, path, depth, dir_rules }) {
            None => Ok(()),
            Some(job) => self.list(&job.open, visit, true),
        }
    }

    /// Lists a directory from the queue.
    pub(super) fn take_on(&mut self, job: Job) {
        let Job { open, path, depth, dir_rules } = job;
        // Ignored directories are never queued: they wait for the budget.
        let visit = DirVisit { path, depth, dir_rules: &dir_rules, is_ignored: false };
        if self.list(&open, &visit, true).is_err() {
            self.listed.unlisted.push(visit.path);
        }
    }

    fn is_full(&self) -> bool {
        let captured = self.context.captured.load(Ordering::Relaxed);
        captured >= self.context.files_max || self.listed.out_of_time
    }

    fn is_late(&mut self) -> bool {
        self.seen += 1;
        if self.seen.is_multiple_of(ENTRIES_PER_LOOK) || self.seen == 1 {
            let deadline = self.context.deadline;
            self.listed.out_of_time |= deadline.is_some_and(|deadline| Instant::now() >= deadline);
        }
        self.listed.out_of_time
    }
}

/// Marks directories that could be opened but not listed.
pub(super) fn mark_unlisted(fresh: &mut BTreeMap<DirPath, Fresh>, unlisted: Vec<DirPath>) {
    for path in unlisted {
        let Some((above, name)) = path.split() else { continue };
        let found = fresh.get_mut(&above).and_then(|fresh| fresh.entry_mut(name));
        if let Some(found) = found {
            found.skipped = Some(SkipReason::Unreadable);
        }
    }
}

impl Listings {
    pub(super) fn append(&mut self, mut other: Self) {
        self.fresh.append(&mut other.fresh);
        self.unlisted.append(&mut other.unlisted);
        self.out_of_time |= other.out_of_time;
        self.too_many |= other.too_many;
    }
}

/// The stamp of a name that was just listed. `NotFound` must come twice: a network file system can
/// lose sight of a file for a moment, and it must not count as deleted.
fn stat_listed(open: &Dir, name: &CString) -> io::Result<Stamp> {
    match open.stat_child(name) {
        Err(err) if err.kind() == io::ErrorKind::NotFound => open.stat_child(name),
        looked => looked,
    }
}

/// Whether what was decided about a name still counts when only its directory has changed.
fn keeps_decision(row: &TableRow<'_>, open: &Dir, name: &CString) -> bool {
    match row.skipped {
        None | Some(SkipReason::Ignored | SkipReason::Excluded) => true,
        Some(SkipReason::MadeAgain) => open.stat_child(name).is_ok_and(|it| it == row.stamp),
        Some(_) => false,
    }
}

/// Whether something left out for this reason is looked at all the same: it may fit in, or be what
/// nothing makes again by now.
fn is_asked_about(reason: SkipReason) -> bool {
    matches!(reason, SkipReason::TooLarge | SkipReason::Ignored | SkipReason::MadeAgain)
}

pub(super) fn is_file(stamp: &Stamp) -> bool {
    stamp.kind() == Some(Kind::File)
}
