//! Lists directories, decides about each name in them, and asks the system about those that
//! matter. One [`Lister`] works in one thread; what several share is their [`Frame`].

use std::{
    ffi::CString,
    io,
    sync::atomic::{AtomicU64, Ordering},
    time::Instant,
};

use super::{
    TEMPORARY_PREFIX,
    crew::{Job, Queue},
    ground::{Ground, is_git_private},
    is_racy, regenerable,
    rules::IGNORE_FILE,
    sources::Wishes,
};
use crate::{
    cache::{DirRow, Row, Table},
    fs::{Dir, Listed},
    model::{ContentId, DirPath, Found, Fresh, Kind, Marks, Root, RootKind, SkipReason, Stamp},
};

/// Deep enough for every honest tree, and few enough open directories for every system.
const DEPTH_MAX: usize = 900;
/// How many entries are looked at between two looks at the clock.
const ENTRIES_PER_LOOK: u64 = 256;

/// What every thread of a walk knows.
pub(super) struct Frame<'a> {
    pub(super) root: &'a Root,
    pub(super) wishes: &'a Wishes,
    pub(super) now_ns: i64,
    pub(super) deadline: Option<Instant>,
    pub(super) device: u64,
    /// Permission bits for others that the repository's own objects grant.
    pub(super) open_bits: u32,
    /// How many files are held so far.
    pub(super) captured: AtomicU64,
}

impl Frame<'_> {
    fn is_git(&self) -> bool {
        matches!(self.root.kind(), RootKind::Git { .. })
    }

    /// Whether an untracked file shows itself to fewer people than the repository's objects do.
    pub(super) fn is_private_mode(&self, stamp: &Stamp, untracked: bool) -> bool {
        untracked && is_file(stamp) && self.open_bits & !stamp.mode != 0
    }
}

/// One directory on the way down.
pub(super) struct Place<'g> {
    pub(super) path: DirPath,
    pub(super) depth: usize,
    pub(super) ground: &'g Ground,
    /// Whether an ignore file names it, or what it lies in.
    pub(super) is_ignored: bool,
}

/// What is known of an entry from the last scan.
type Old = (Stamp, Option<ContentId>, Marks);

/// Lists directories in one thread.
pub(super) struct Lister<'a> {
    frame: &'a Frame<'a>,
    base: Option<&'a Table>,
    /// Directories of the base that are gone.
    gone: &'a [DirPath],
    /// Where directories wait for whoever has time; without it, each is listed at once.
    queue: Option<&'a Queue>,
    /// Whether what is ignored is held: the budget is being filled.
    takes_ignored: bool,
    /// Where the last tracked path was found.
    hint: usize,
    /// How many entries it has looked at.
    pub(super) seen: u64,
    /// What it found.
    pub(super) listed: Listings,
}

/// What listers found.
#[derive(Default)]
pub(super) struct Listings {
    pub(super) fresh: Vec<(DirPath, Fresh)>,
    /// Directories that could be opened but not listed.
    pub(super) unlisted: Vec<DirPath>,
    pub(super) out_of_time: bool,
}

impl<'a> Lister<'a> {
    pub(super) fn new(
        frame: &'a Frame<'a>,
        base: Option<&'a Table>,
        gone: &'a [DirPath],
        queue: Option<&'a Queue>,
    ) -> Self {
        let (takes_ignored, hint, seen, listed) = (false, 0, 0, Listings::default());
        Self { frame, base, gone, queue, takes_ignored, hint, seen, listed }
    }

    /// One that holds what is ignored, up to the limit of `frame`.
    pub(super) fn taking_ignored(frame: &'a Frame<'a>, base: Option<&'a Table>) -> Self {
        Self { takes_ignored: true, ..Self::new(frame, base, &[], None) }
    }

    /// Lists an open directory, decides about each name, and walks what has to be walked. Unless
    /// `anew`, what the base knows of a name keeps what was decided about it.
    pub(super) fn list(&mut self, open: &Dir, place: &Place<'_>, anew: bool) -> io::Result<()> {
        let (stamp, _) = open.stat()?;
        let mut names = Vec::new();
        open.list(|listed| names.push(listed))?;
        names.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        let (root, wishes) = (self.frame.root, self.frame.wishes);
        let nested = place.ground.nested(root, wishes, open, &place.path, &names);
        // What lies in a nested repository is decided by it, and it may be new.
        let anew = anew || nested.is_some();
        let ground = nested.as_ref().unwrap_or(place.ground);
        let inner = ground.inside(open, &place.path, &names);
        let here = Place { path: place.path.clone(), ground: &inner, ..*place };
        let old = self.base.and_then(|base| base.find_dir(&place.path.0));
        let mut found = Vec::with_capacity(names.len());
        for listed in &names {
            if self.takes_ignored && self.is_full() {
                // It is left out whole: there is no need to know what else is in it.
                break;
            }
            if let Some(entry) = self.entry(open, &here, listed, old.as_ref(), anew) {
                found.push(entry);
            }
        }
        let racy = is_racy(&stamp, self.frame.now_ns);
        let fresh = Fresh { stamp, racy, id: None, found };
        self.listed.fresh.push((here.path, fresh));
        Ok(())
    }

    /// What one name in a directory is; `None` for git's own, and for what is already gone.
    fn entry(
        &mut self,
        open: &Dir,
        place: &Place<'_>,
        listed: &Listed,
        old: Option<&DirRow<'_>>,
        anew: bool,
    ) -> Option<Found> {
        let name = listed.name.to_bytes();
        if name.starts_with(TEMPORARY_PREFIX.as_bytes()) {
            return None;
        }
        let kind = listed.kind.or_else(|| open.stat_child(&listed.name).ok()?.kind());
        if is_git_private(open, &listed.name) {
            // A repository is held as one, and no part of the files around it.
            let stamp = Stamp { mode: kind.map_or(0, Kind::mode_bits), ..Stamp::default() };
            let (marks, skipped) = (Marks::default(), Some(SkipReason::GitPrivate));
            return Some(Found { name: name.to_vec(), stamp, content: None, marks, skipped });
        }
        let old = old.and_then(|old| old.row(name)).filter(|row| row.kind() == kind);
        let path = place.path.join(name);
        let mut found = Found {
            name: name.to_vec(),
            stamp: Stamp { mode: kind.map_or(0, Kind::mode_bits), ..Stamp::default() },
            content: None,
            marks: Marks::default(),
            skipped: None,
        };
        match old {
            Some(row) if !anew && keeps_decision(&row, open, &listed.name) => {
                let Marks { tracked, ignored, .. } = row.marks;
                found.marks = Marks { tracked, ignored, ..found.marks };
                found.skipped = row.skipped;
            }
            _ => self.decide(&mut found, open, &listed.name, &path, kind, place),
        }
        self.look(&mut found, open, &listed.name, &path, place);
        self.settle(&mut found, open, &listed.name, place, path, old, anew);
        (found.stamp.mode != 0).then_some(found)
    }

    /// Whether a name is tracked, and if not, what the rules say. What is ignored waits for the
    /// budget, unless it is proven to be made again.
    fn decide(
        &mut self,
        found: &mut Found,
        open: &Dir,
        name: &CString,
        path: &[u8],
        kind: Option<Kind>,
        place: &Place<'_>,
    ) {
        let is_dir = kind == Some(Kind::Directory);
        let tracked = &place.ground.tracked;
        found.marks.tracked = if is_dir {
            tracked.has_below(path, &mut self.hint)
        } else {
            tracked.has(path, &mut self.hint)
        };
        if found.marks.tracked {
            return;
        }
        let rules = &place.ground.rules;
        found.skipped = rules.skips(path, is_dir);
        if found.skipped.is_none() && place.is_ignored {
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

    /// Asks the system about a name, unless nobody wants to know.
    fn look(
        &mut self,
        found: &mut Found,
        open: &Dir,
        name: &CString,
        path: &[u8],
        place: &Place<'_>,
    ) {
        let is_rules = found.name == IGNORE_FILE;
        if found.skipped.is_some_and(|reason| !is_asked_about(reason)) && !is_rules {
            return;
        }
        match stat_listed(open, name) {
            Ok(stamp) => {
                found.stamp = stamp;
                found.marks.racy = is_racy(&stamp, self.frame.now_ns);
            }
            // Gone between the listing and now.
            Err(err) if err.kind() == io::ErrorKind::NotFound => found.stamp.mode = 0,
            Err(_) => {
                found.skipped = Some(SkipReason::Unreadable);
                return;
            }
        }
        let untracked = !found.marks.tracked;
        let too_large = is_file(&found.stamp) && found.stamp.size > self.frame.wishes.file_size_max;
        let is_sized = found.skipped.is_none_or(|reason| reason == SkipReason::TooLarge);
        if is_sized && !self.takes_ignored {
            found.skipped = (untracked && too_large).then_some(SkipReason::TooLarge);
        }
        found.marks.private = is_file(&found.stamp)
            && (self.frame.is_private_mode(&found.stamp, untracked)
                || untracked && self.frame.is_git() && place.ground.rules.is_private(path));
    }

    /// Holds it, walks it, or says why not.
    #[expect(clippy::too_many_arguments, reason = "what is known of one name, from three sides")]
    fn settle(
        &mut self,
        found: &mut Found,
        open: &Dir,
        name: &CString,
        place: &Place<'_>,
        path: Vec<u8>,
        old: Option<Row<'_>>,
        anew: bool,
    ) {
        match (found.skipped, found.kind()) {
            (None, Some(Kind::Directory)) if !anew && self.is_in_base(&path) => {
                found.content = old.and_then(|row| row.content);
            }
            (None, Some(Kind::Directory)) => self.descend(found, open, name, place, path),
            (None, Some(_)) => {
                let old = old.map(|row| (row.stamp, row.content, row.marks));
                self.capture(found, old);
            }
            (_, None) => found.skipped = Some(SkipReason::UnknownKind),
            (Some(_), Some(_)) => (),
        }
    }

    fn is_in_base(&self, path: &[u8]) -> bool {
        self.base.is_some_and(|base| base.find_dir(path).is_some())
            && !self.gone.iter().any(|gone| gone.contains(path))
    }

    /// Counts a file in, and takes over what is known of its bytes.
    fn capture(&mut self, found: &mut Found, old: Option<Old>) {
        let captured = &self.frame.captured;
        if captured.load(Ordering::Relaxed) >= self.frame.wishes.files_max {
            found.skipped = Some(SkipReason::TooMany);
            return;
        }
        if self.is_late() {
            found.skipped = Some(SkipReason::OutOfTime);
            return;
        }
        captured.fetch_add(1, Ordering::Relaxed);
        let known = old.filter(|(stamp, _, marks)| {
            *stamp == found.stamp && !marks.racy && marks.private == found.marks.private
        });
        found.content = known.and_then(|(_, content, _)| content);
    }

    /// Walks the directory `name`, or leaves it to whoever has time.
    fn descend(
        &mut self,
        found: &mut Found,
        open: &Dir,
        name: &CString,
        place: &Place<'_>,
        path: Vec<u8>,
    ) {
        if place.depth >= DEPTH_MAX {
            found.skipped = Some(SkipReason::TooDeep);
            return;
        }
        if self.is_late() {
            found.skipped = Some(SkipReason::OutOfTime);
            return;
        }
        let (path, depth, is_ignored) = (DirPath(path), place.depth + 1, found.marks.ignored);
        let below = Place { path, depth, ground: place.ground, is_ignored };
        let opened = open.open_child(name).and_then(|child| Ok((child.stat()?.1, child)));
        found.skipped = match opened {
            Err(_) => Some(SkipReason::Unreadable),
            Ok((device, _)) if device != self.frame.device => Some(SkipReason::OtherFileSystem),
            Ok((_, child)) => self.enter(child, &below).err().map(|_| SkipReason::Unreadable),
        };
    }

    fn enter(&mut self, child: Dir, place: &Place<'_>) -> io::Result<()> {
        let Some(queue) = self.queue else { return self.list(&child, place, true) };
        let (path, depth, ground) = (place.path.clone(), place.depth, place.ground.clone());
        match queue.offer(Job { open: child, path, depth, ground }) {
            None => Ok(()),
            Some(job) => self.list(&job.open, place, true),
        }
    }

    /// Lists what waited.
    pub(super) fn take_on(&mut self, job: Job) {
        let Job { open, path, depth, ground } = job;
        // What is ignored never waits here: it waits for the budget.
        let place = Place { path, depth, ground: &ground, is_ignored: false };
        if self.list(&open, &place, true).is_err() {
            self.listed.unlisted.push(place.path);
        }
    }

    fn is_full(&self) -> bool {
        let captured = self.frame.captured.load(Ordering::Relaxed);
        captured >= self.frame.wishes.files_max || self.listed.out_of_time
    }

    fn is_late(&mut self) -> bool {
        self.seen += 1;
        if self.seen.is_multiple_of(ENTRIES_PER_LOOK) || self.seen == 1 {
            let deadline = self.frame.deadline;
            self.listed.out_of_time |= deadline.is_some_and(|deadline| Instant::now() >= deadline);
        }
        self.listed.out_of_time
    }
}

impl Listings {
    pub(super) fn append(&mut self, mut other: Self) {
        self.fresh.append(&mut other.fresh);
        self.unlisted.append(&mut other.unlisted);
        self.out_of_time |= other.out_of_time;
    }
}

/// The stamp of a name that was just listed. Only a second `NotFound` is believed: one alone would
/// let a file pass for deleted that a network file system lost sight of for a moment.
fn stat_listed(open: &Dir, name: &CString) -> io::Result<Stamp> {
    match open.stat_child(name) {
        Err(err) if err.kind() == io::ErrorKind::NotFound => open.stat_child(name),
        looked => looked,
    }
}

/// Whether what was decided about a name still counts when only its directory has changed.
fn keeps_decision(row: &Row<'_>, open: &Dir, name: &CString) -> bool {
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
