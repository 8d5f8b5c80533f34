//! Selects the ignored and large files that are held: small ones first, within a budget of bytes
//! and files.
//!
//! The walk leaves out ignored files and untracked files over `max_file_size`. Those that are new
//! or have changed become candidates here. A file that was held before has priority over one that
//! was not, so that the selection stays stable between scans. A file that does not fit keeps the
//! reason for which it was left out and becomes a candidate again when its stamp changes.

use std::{io, sync::atomic::AtomicU64};

use super::{
    Scan,
    dir_rules::DirRules,
    list::{DirVisit, Lister, Listings, WalkContext, mark_unlisted},
    regenerable::is_in_output,
    victims::weight,
};
use crate::{
    cache::{ScanTable, TableRow},
    fs::{Dir, DirCursor, c_name},
    model::{ContentId, DirPath, Kind, RelPath, ScanEntry, SkipReason},
};

/// A larger file is held only if a call names it, and so is one over `max_victim_size`: reading it
/// takes about 0.15 s.
const FILE_MAX_BYTES: u64 = 20 << 20;
/// For a sparse file, the allocated size counts instead, up to this size: reading a GiB of zeros
/// takes about a second.
const SPARSE_MAX_BYTES: u64 = 1 << 30;
/// The same limit while an agent waits.
const SPARSE_SOON_MAX_BYTES: u64 = 256 << 20;
/// The byte budget of one root.
const BYTES_MAX: u64 = 64 << 20;
/// How much of it is read while an agent waits; the next call continues.
const CALL_MAX_BYTES: u64 = 20 << 20;
/// The file budget of one root: a stat of this many files costs 8 ms.
const FILES_MAX: u64 = 10_000;
/// How many entries of ignored directories are looked at to find the small ones: 80 ms.
const LOOKS_MAX: u64 = 50_000;
/// An ignored directory with more files is left out as a whole.
const DIRECTORY_FILES_MAX: u64 = 5_000;

/// A candidate file.
struct Offer {
    dir: DirPath,
    name: Vec<u8>,
    bytes: u64,
    was_held: bool,
}

/// What is left of the budget.
struct Room {
    files: u64,
    bytes: u64,
    /// How many bytes may still be read in this scan.
    unread: u64,
}

/// An ignored directory that may be held.
struct Candidate {
    dir: DirPath,
    name: Vec<u8>,
    was_held: bool,
    /// The number of entries in it, or how many were counted before it proved too large.
    entries: u64,
    listed: io::Result<Listings>,
    is_too_large: bool,
}

/// The state of one selection.
struct Intake<'a, 'd> {
    scan: &'a mut Scan,
    context: &'a WalkContext<'a>,
    way: DirCursor<'d>,
    old: Option<&'a ScanTable>,
    file_max: u64,
}

/// Adds ignored and large files to the scan as far as the budget allows, and names the rest as
/// skipped.
pub(super) fn take_in(
    scan: &mut Scan,
    context: &WalkContext<'_>,
    top: &Dir,
    old: Option<&ScanTable>,
    dir_rules: impl FnOnce() -> DirRules,
) {
    if !scan.fresh.values().flat_map(|fresh| &fresh.found).any(is_candidate) {
        return;
    }
    let file_max = FILE_MAX_BYTES.min(context.settings.max_victim_size);
    let mut intake = Intake { scan, context, way: DirCursor::from(top), old, file_max };
    intake.take_directories(dir_rules);
    intake.take_files();
}

fn is_candidate(found: &ScanEntry) -> bool {
    match found.skipped {
        Some(SkipReason::Ignored | SkipReason::Output | SkipReason::TooLarge) => true,
        Some(_) => false,
        // Held so far. If it has changed since, the budget decides again.
        None => found.marks.ignored && found.is_unread(),
    }
}

/// Whether the last scan left this out and its stamp has not changed since.
fn stays_out(found: &ScanEntry, old: Option<&TableRow<'_>>) -> bool {
    old.is_some_and(|old| {
        let is_steady = old.stamp == found.stamp && !old.marks.racy && !found.marks.racy;
        is_steady && old.skipped.is_some() && old.skipped == found.skipped
    })
}

impl Intake<'_, '_> {
    /// Lists every ignored directory that is small enough, so that its files become candidates.
    fn take_directories(&mut self, dir_rules: impl FnOnce() -> DirRules) {
        let mut waiting = self.new_directories();
        if waiting.is_empty() {
            return;
        }
        waiting.sort();
        let dir_rules = dir_rules();
        let mut looks = LOOKS_MAX;
        let mut candidates = Vec::with_capacity(waiting.len());
        for (is_new, dir, name) in waiting {
            let limit = looks.min(DIRECTORY_FILES_MAX);
            let (entries, listed) = self.list(&dir_rules, &DirPath(dir.join(&name)), limit);
            looks = looks.saturating_sub(entries);
            let (was_held, is_too_large) = (!is_new, entries > limit);
            candidates.push(Candidate { dir, name, was_held, entries, listed, is_too_large });
        }
        // Small directories first, like files.
        candidates.sort_by_key(|it| (!it.was_held, it.entries));
        let mut left = self.room().files;
        for candidate in candidates {
            let reason = match candidate.listed {
                Err(_) => Some(SkipReason::Unreadable),
                Ok(listed) if listed.out_of_time => {
                    self.scan.partial = true;
                    Some(SkipReason::OutOfTime)
                }
                Ok(_) if candidate.is_too_large || candidate.entries > left => {
                    Some(self.reason_for(&candidate.dir, &candidate.name, SkipReason::Ignored))
                }
                Ok(listed) => {
                    left -= candidate.entries;
                    self.scan.fresh.extend(listed.fresh);
                    mark_unlisted(&mut self.scan.fresh, listed.unlisted);
                    None
                }
            };
            if let Some(found) = find(self.scan, &candidate.dir, &candidate.name) {
                (found.skipped, found.marks.ignored) = (reason, true);
            }
        }
    }

    /// The ignored directories that are new, or have changed since they were left out. For each one: whether it
    /// was *not* held by the last scan, its parent, and its name.
    fn new_directories(&self) -> Vec<(bool, DirPath, Vec<u8>)> {
        let mut new = Vec::new();
        for (path, fresh) in &self.scan.fresh {
            let old = self.old.and_then(|old| old.find_dir(&path.0));
            for found in fresh.found.iter().filter(|it| it.skipped.is_some() && is_candidate(it)) {
                let before = old.as_ref().and_then(|old| old.row(&found.name));
                if found.kind() == Some(Kind::Directory) && !stays_out(found, before.as_ref()) {
                    let was_held = before.is_some_and(|row| row.skipped.is_none());
                    new.push((!was_held, path.clone(), found.name.clone()));
                }
            }
        }
        new
    }

    /// Lists an ignored directory and counts its entries; stops after `limit` + 1.
    fn list(
        &mut self,
        dir_rules: &DirRules,
        path: &DirPath,
        limit: u64,
    ) -> (u64, io::Result<Listings>) {
        let (files_max, file_size_max) = (limit + 1, self.file_max);
        let captured = AtomicU64::new(0);
        let context = WalkContext { file_size_max, files_max, captured, ..*self.context };
        let mut lister = Lister::taking_ignored(&context, self.old);
        let done = self.way.listable(path).and_then(|open| {
            if open.stat()?.1 != context.device {
                return Err(io::ErrorKind::CrossesDevices.into());
            }
            let visit =
                DirVisit { path: path.clone(), depth: path.depth(), dir_rules, is_ignored: true };
            lister.list(&open, &visit, true)
        });
        (lister.seen, done.map(|()| lister.listed))
    }

    /// Holds files as long as the budget lasts, small ones first.
    fn take_files(&mut self) {
        let mut offers = self.offers();
        if offers.is_empty() {
            return;
        }
        offers.sort_by(|a, b| {
            (!a.was_held, a.bytes, &a.dir, &a.name).cmp(&(!b.was_held, b.bytes, &b.dir, &b.name))
        });
        let mut room = self.room();
        for Offer { dir, name, bytes, .. } in offers {
            let is_large = bytes > self.file_max;
            let fits = !is_large && room.files > 0 && bytes <= room.bytes;
            let is_ignored = find(self.scan, &dir, &name).is_some_and(|found| found.marks.ignored);
            // What git does not ignore is offered only if it is large.
            let reason =
                if is_ignored && !is_large { SkipReason::Ignored } else { SkipReason::TooLarge };
            let rejected = (!fits).then(|| self.reason_for(&dir, &name, reason));
            let Some(found) = find(self.scan, &dir, &name) else { continue };
            let before = self.old.and_then(|old| old.find_dir(&dir.0)?.row(&name));
            found.skipped = rejected;
            found.content = before.filter(|_| fits).and_then(|row| content_of(&row, found));
            if !fits {
                continue;
            }
            let unread = if found.content.is_none() { bytes } else { 0 };
            if room.unread < unread {
                found.skipped = Some(reason);
                // Racy, so that the next scan decides again whatever the stamp.
                found.marks.racy = true;
                continue;
            }
            room.files -= 1;
            room.bytes -= bytes;
            room.unread -= unread;
        }
    }

    /// The files that are new or have changed.
    fn offers(&mut self) -> Vec<Offer> {
        let mut offers = Vec::new();
        for (path, fresh) in &self.scan.fresh {
            let before = self.old.and_then(|old| old.find_dir(&path.0));
            for found in fresh.found.iter().filter(|found| is_candidate(found)) {
                let old = before.as_ref().and_then(|old| old.row(&found.name));
                let is_directory = found.kind() == Some(Kind::Directory);
                if is_directory || found.skipped.is_some() && stays_out(found, old.as_ref()) {
                    continue;
                }
                let (dir, name) = (path.clone(), found.name.clone());
                let was_held = old.is_some_and(|row| row.skipped.is_none());
                let is_file = found.kind() == Some(Kind::File);
                let bytes = if is_file { found.stamp.size } else { 0 };
                offers.push(Offer { dir, name, bytes, was_held });
            }
        }
        let waits = self.context.deadline.is_some();
        let sparse_max = if waits { SPARSE_SOON_MAX_BYTES } else { SPARSE_MAX_BYTES };
        for offer in &mut offers {
            offer.bytes = self.weight(&offer.dir.0, &offer.name, offer.bytes, sparse_max);
        }
        offers
    }

    /// The budget minus the files that are already held and are not candidates.
    fn room(&mut self) -> Room {
        let WalkContext { files_max, file_size_max, .. } = *self.context;
        let (mut files, mut bytes, mut others, mut large) = (0, 0_u64, 0, Vec::new());
        self.scan.each(|dir, row| match row.skipped {
            None if row.kind() == Some(Kind::Directory) => (),
            None if is_in_budget(&row, file_size_max) && row.content.is_some() => {
                files += 1;
                if row.stamp.size > self.file_max {
                    large.push((dir.to_vec(), row.name.to_vec(), row.stamp.size));
                } else {
                    bytes = bytes.saturating_add(row.stamp.size);
                }
            }
            None => others += u64::from(!is_in_budget(&row, file_size_max)),
            Some(_) => (),
        });
        for (dir, name, size) in large {
            bytes = bytes.saturating_add(self.weight(&dir, &name, size, SPARSE_MAX_BYTES));
        }
        Room {
            files: FILES_MAX.min(files_max.saturating_sub(others)).saturating_sub(files),
            bytes: BYTES_MAX.saturating_sub(bytes),
            unread: if self.context.deadline.is_some() { CALL_MAX_BYTES } else { u64::MAX },
        }
    }

    /// How many bytes a file counts for: its size, or for a sparse file up to `sparse_max` its
    /// allocated size.
    fn weight(&mut self, dir: &[u8], name: &[u8], size: u64, sparse_max: u64) -> u64 {
        if size <= self.file_max {
            return size;
        }
        match (self.way.enter(dir), c_name(name)) {
            (Ok(dir), Ok(name)) => weight(&dir, &name, size, self.file_max..=sparse_max),
            _ => size,
        }
    }

    /// Why a file stays out. Build output that is ignored gets a reason of its own, because losing
    /// it is not worth a question.
    fn reason_for(&mut self, dir: &DirPath, name: &[u8], reason: SkipReason) -> SkipReason {
        match RelPath::from_bytes(&dir.join(name)) {
            Ok(path) if is_in_output(self.scan, &mut self.way, &path) => SkipReason::Output,
            _ => reason,
        }
    }
}

/// Whether a held file counts against the budget.
fn is_in_budget(row: &TableRow<'_>, file_size_max: u64) -> bool {
    let is_large = row.kind() == Some(Kind::File) && row.stamp.size > file_size_max;
    row.marks.ignored || is_large && !row.marks.tracked
}

/// The content id that the last scan recorded, if the file has not changed.
fn content_of(old: &TableRow<'_>, found: &ScanEntry) -> Option<ContentId> {
    let is_same = old.stamp == found.stamp && !old.marks.racy;
    old.content.filter(|_| is_same && old.marks.private == found.marks.private)
}

fn find<'s>(scan: &'s mut Scan, dir: &DirPath, name: &[u8]) -> Option<&'s mut ScanEntry> {
    scan.fresh.get_mut(dir)?.entry_mut(name)
}
