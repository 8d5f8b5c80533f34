//! Which ignored and large files are held: small ones first, within a budget of bytes and files.
//!
//! The walk leaves out what an ignore file names, and untracked files over `max_file_size`. What of
//! that is new or has changed is offered here. A file that was held before comes before one that was
//! not, so that the choice does not change with every scan. Whatever does not fit keeps the reason
//! for which it is left out, and is offered again when its stamp moves.

use std::{ops::RangeInclusive, sync::atomic::AtomicU64};

use super::{
    Scan,
    ground::Ground,
    list::{Frame, Lister, Listings, Place},
    regenerable,
    sources::Wishes,
    victims::weight,
    walk::mark_unlisted,
};
use crate::{
    cache::{Row, Table},
    fs::{Dir, Way, c_name},
    model::{ContentId, DirPath, Found, Kind, RelPath, SkipReason},
};

/// A larger file is never held unasked, nor one over `max_victim_size`: reading it takes about
/// 0.15 s.
const FILE_MAX_BYTES: u64 = 20 << 20;
/// A larger file with holes is not looked at for how much room it takes: reading a GiB of zeros takes
/// about a second.
const SPARSE_MAX_BYTES: u64 = 1 << 30;
/// The same while an agent waits.
const SPARSE_SOON_MAX_BYTES: u64 = 256 << 20;
/// All that is held unasked in one root.
const BYTES_MAX: u64 = 64 << 20;
/// What of it is read while an agent waits; the next call goes on from there.
const CALL_MAX_BYTES: u64 = 20 << 20;
/// All that is held unasked in one root: looking at so many costs 8 ms.
const FILES_MAX: u64 = 10_000;
/// So many entries of ignored directories are looked at to find those that are small enough: 80 ms.
const LOOKS_MAX: u64 = 50_000;
/// An ignored directory with more in it is left out whole.
const DIRECTORY_FILES_MAX: u64 = 5_000;

/// A file that may be held.
struct Offer {
    dir: DirPath,
    name: Vec<u8>,
    bytes: u64,
    was_held: bool,
}

/// How much may still be held.
struct Room {
    files: u64,
    bytes: u64,
    /// What may still be read.
    unread: u64,
}

/// Takes in what is ignored or large, as far as there is room, and names the rest.
pub(super) fn take_in(
    scan: &mut Scan,
    frame: &Frame<'_>,
    top: &Dir,
    old: Option<&Table>,
    ground: impl FnOnce() -> Ground,
) {
    if !scan.fresh.values().flat_map(|fresh| &fresh.found).any(is_candidate) {
        return;
    }
    let mut way = Way::from(top);
    take_in_directories(scan, frame, &mut way, old, ground);
    let file_max = file_max(frame.wishes);
    let waits = frame.deadline.is_some();
    let sparse_max = if waits { SPARSE_SOON_MAX_BYTES } else { SPARSE_MAX_BYTES };
    let mut offers = offers(scan, &mut way, old, file_max..=sparse_max);
    if offers.is_empty() {
        return;
    }
    offers.sort_by(|a, b| {
        (!a.was_held, a.bytes, &a.dir, &a.name).cmp(&(!b.was_held, b.bytes, &b.dir, &b.name))
    });
    let mut room = room(scan, frame);
    for Offer { dir, name, bytes, .. } in offers {
        let is_large = bytes > file_max;
        let rejected = if is_large || room.files == 0 || room.bytes < bytes {
            let reason = if is_large { SkipReason::TooLarge } else { SkipReason::Ignored };
            Some(reason_for(scan, &mut way, &dir, &name, reason))
        } else {
            None
        };
        let Some(found) = find(scan, &dir, &name) else { continue };
        let before = old.and_then(|old| old.find_dir(&dir.0)?.row(&name));
        found.skipped = rejected;
        found.content = before.and_then(|row| content_of(&row, found));
        if rejected.is_some() {
            found.content = None;
            continue;
        }
        let unread = if found.content.is_none() { bytes } else { 0 };
        if room.unread < unread {
            found.skipped = Some(SkipReason::Ignored);
            // No stamp proves that it has to stay out.
            found.marks.racy = true;
            continue;
        }
        room.files -= 1;
        room.bytes -= bytes;
        room.unread -= unread;
    }
}

fn file_max(wishes: &Wishes) -> u64 {
    FILE_MAX_BYTES.min(wishes.victim_size_max)
}

fn is_candidate(found: &Found) -> bool {
    match found.skipped {
        Some(SkipReason::Ignored | SkipReason::Output | SkipReason::TooLarge) => true,
        Some(_) => false,
        // A large one that git would see has a reason again once it has changed.
        None => found.marks.ignored && found.is_unread(),
    }
}

/// Whether the last scan left this out, and nothing has happened to it since.
fn stays_out(found: &Found, old: Option<&Row<'_>>) -> bool {
    old.is_some_and(|old| {
        let is_steady = old.stamp == found.stamp && !old.marks.racy && !found.marks.racy;
        is_steady && old.skipped.is_some() && old.skipped == found.skipped
    })
}

/// Lists every ignored directory that is not too large to be held, so that its files can be offered.
fn take_in_directories(
    scan: &mut Scan,
    frame: &Frame<'_>,
    way: &mut Way<'_>,
    old: Option<&Table>,
    ground: impl FnOnce() -> Ground,
) {
    let mut waiting = Vec::new();
    for (path, fresh) in &scan.fresh {
        let old = old.and_then(|old| old.find_dir(&path.0));
        for found in fresh.found.iter().filter(|it| it.skipped.is_some() && is_candidate(it)) {
            let before = old.as_ref().and_then(|old| old.row(&found.name));
            if found.kind() == Some(Kind::Directory) && !stays_out(found, before.as_ref()) {
                let was_held = before.is_some_and(|row| row.skipped.is_none());
                waiting.push((!was_held, path.clone(), found.name.clone()));
            }
        }
    }
    if waiting.is_empty() {
        return;
    }
    waiting.sort();
    let ground = ground();
    let (mut looks, mut looked_at) = (LOOKS_MAX, Vec::new());
    for (is_new, dir, name) in waiting {
        let limit = looks.min(DIRECTORY_FILES_MAX);
        let listed = list(frame, way, old, &ground, &DirPath(dir.join(&name)), limit);
        let seen = listed.as_ref().map_or(0, |(_, seen)| *seen);
        looks = looks.saturating_sub(seen);
        let listed = listed.map(|(listed, seen)| (listed, seen > limit));
        looked_at.push((is_new, seen, dir, name, listed));
    }
    // Small ones first, like files.
    looked_at.sort_by(|(a, m, ..), (b, n, ..)| (a, m).cmp(&(b, n)));
    let mut left = FILES_MAX;
    for (_, seen, dir, name, listed) in looked_at {
        let reason = match listed {
            Ok((listed, _)) if listed.out_of_time => {
                scan.partial = true;
                Some(SkipReason::OutOfTime)
            }
            Ok((_, is_over)) if is_over || seen > left => {
                Some(reason_for(scan, way, &dir, &name, SkipReason::Ignored))
            }
            Ok((listed, _)) => {
                left -= seen;
                scan.fresh.extend(listed.fresh);
                mark_unlisted(&mut scan.fresh, listed.unlisted);
                None
            }
            Err(_) => Some(SkipReason::Unreadable),
        };
        if let Some(found) = find(scan, &dir, &name) {
            (found.skipped, found.marks.ignored) = (reason, true);
        }
    }
}

/// Everything below an ignored directory, and how much that is; more than `limit` is not looked at.
fn list(
    frame: &Frame<'_>,
    way: &mut Way<'_>,
    old: Option<&Table>,
    ground: &Ground,
    path: &DirPath,
    limit: u64,
) -> std::io::Result<(Listings, u64)> {
    let files_max = limit + 1;
    let wishes =
        Wishes { files_max, file_size_max: file_max(frame.wishes), ..frame.wishes.clone() };
    let frame = Frame {
        root: frame.root,
        wishes: &wishes,
        now_ns: frame.now_ns,
        deadline: frame.deadline,
        device: frame.device,
        open_bits: frame.open_bits,
        captured: AtomicU64::new(0),
    };
    let open = way.listable(path)?;
    if open.stat()?.1 != frame.device {
        return Err(std::io::ErrorKind::CrossesDevices.into());
    }
    let place = Place { path: path.clone(), depth: path.depth(), ground, is_ignored: true };
    let mut lister = Lister::taking_ignored(&frame, old);
    lister.list(&open, &place, true)?;
    Ok((lister.listed, lister.seen))
}

/// The files that are new or have changed.
fn offers(
    scan: &Scan,
    way: &mut Way<'_>,
    old: Option<&Table>,
    sparse: RangeInclusive<u64>,
) -> Vec<Offer> {
    let mut offers = Vec::new();
    for (path, fresh) in &scan.fresh {
        let before = old.and_then(|old| old.find_dir(&path.0));
        for found in fresh.found.iter().filter(|found| is_candidate(found)) {
            let old = before.as_ref().and_then(|old| old.row(&found.name));
            let is_directory = found.kind() == Some(Kind::Directory);
            if is_directory || found.skipped.is_some() && stays_out(found, old.as_ref()) {
                continue;
            }
            let was_held = old.is_some_and(|row| row.skipped.is_none());
            let bytes = if found.kind() == Some(Kind::File) { found.stamp.size } else { 0 };
            // A file that is mostly holes counts with the room it takes.
            let bytes = match (way.enter(&path.0), c_name(&found.name)) {
                (Ok(dir), Ok(name)) => weight(&dir, &name, bytes, sparse.clone()),
                _ => bytes,
            };
            offers.push(Offer { dir: path.clone(), name: found.name.clone(), bytes, was_held });
        }
    }
    offers
}

/// What is left of the budget beside what is held and not offered.
fn room(scan: &Scan, frame: &Frame<'_>) -> Room {
    let (mut files, mut bytes, mut others) = (0, 0_u64, 0);
    scan.each(|_, row| match row.skipped {
        None if row.kind() == Some(Kind::Directory) => (),
        None if is_in_budget(&row, frame.wishes) && row.content.is_some() => {
            files += 1;
            bytes = bytes.saturating_add(row.stamp.size);
        }
        None => others += u64::from(!is_in_budget(&row, frame.wishes)),
        Some(_) => (),
    });
    Room {
        files: FILES_MAX.min(frame.wishes.files_max.saturating_sub(others)).saturating_sub(files),
        bytes: BYTES_MAX.saturating_sub(bytes),
        unread: if frame.deadline.is_some() { CALL_MAX_BYTES } else { u64::MAX },
    }
}

/// Whether a file that is held counts in the budget.
fn is_in_budget(row: &Row<'_>, wishes: &Wishes) -> bool {
    let is_large = row.kind() == Some(Kind::File) && row.stamp.size > wishes.file_size_max;
    row.marks.ignored || is_large && !row.marks.tracked
}

/// What the last scan knew of the bytes of a file that has not changed.
fn content_of(old: &Row<'_>, found: &Found) -> Option<ContentId> {
    let is_same = old.stamp == found.stamp && !old.marks.racy;
    old.content.filter(|_| is_same && old.marks.private == found.marks.private)
}

/// Why something stays out: what lies in the ignored output of a build is not worth a question.
fn reason_for(
    scan: &Scan,
    way: &mut Way<'_>,
    dir: &DirPath,
    name: &[u8],
    reason: SkipReason,
) -> SkipReason {
    let Ok(path) = RelPath::from_bytes(&dir.join(name)) else { return reason };
    if is_in_output(scan, way, &path) { SkipReason::Output } else { reason }
}

/// Whether a path is, or lies in, an ignored directory that a build writes its output to.
pub(super) fn is_in_output(scan: &Scan, way: &mut Way<'_>, path: &RelPath) -> bool {
    let mut above = std::iter::successors(Some(path.clone()), RelPath::parent);
    above.any(|path| {
        let is_ignored = scan.find(&path).is_some_and(|row| row.marks.ignored);
        let mut parent = || way.parent_of(&path).ok().zip(c_name(path.name()).ok());
        is_ignored && parent().is_some_and(|(parent, name)| regenerable::is_output(&parent, &name))
    })
}

fn find<'s>(scan: &'s mut Scan, dir: &DirPath, name: &[u8]) -> Option<&'s mut Found> {
    let found = &mut scan.fresh.get_mut(dir)?.found;
    let at = found.binary_search_by(|found| found.name[..].cmp(name)).ok()?;
    Some(&mut found[at])
}
