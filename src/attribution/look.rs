//! Looks at the paths that a call changed, right after the call.

use std::{
    collections::BTreeSet,
    fs::read_link,
    io::Read,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
    time::Instant,
};

use super::{
    ChangeSummary, LogEvent, LogLine, Outside, PathSide, PathState, SinceCheckpoint, append, at,
    change_summary, digest, moved, outside_changes, path_text,
    texts::{BYTES_MAX, CallTexts, TEXT_MAX_BYTES},
};
use crate::{
    error::Result,
    fs::{Dir, c_name, stat_path},
    ledger::OwnWrite,
    model::{
        Checkout, Checkpoint, CheckpointId, DirPath, Entry, Head, Kind, Reach, RelPath, Root,
        ScanScope, SkipReason, Skipped, Stamp,
    },
    plan::{ByPath, Change},
    scan::{Scan, VictimDepth},
    snapshot::ScanOptions,
    state,
    store::{
        self, ContentSource, Store,
        record::{self, Record},
        repository,
    },
};

/// A file beyond it is not hashed to know it again.
const HASHED_MAX_BYTES: u64 = 4 << 20;
/// A command that changes more has an unknown author; a restore goes by the checkpoint alone.
pub(super) const PATHS_MAX: usize = 5_000;
/// The bytes kept of what one command left.
const KEPT_MAX_BYTES: u64 = 1 << 20;
/// What is read outside the root, where no cache has it: it takes 0.1 s.
const OUTSIDE_MAX_BYTES: u64 = 20 << 20;
/// A look may take the hook's deadline divided by this: by default that is 0.4 s, a no-change pass
/// over 100,000 files with room. More would be felt after a command.
pub(super) const DEADLINE_DIVISOR: u32 = 8;

/// Notes what an edit left at the files it named. Returns its files: held, or too large to be held between calls.
///
/// # Errors
///
/// Fails if the log cannot be written.
pub(super) fn after_edit(
    since: SinceCheckpoint<'_, '_>,
    call: &str,
    paths: &[PathBuf],
) -> Result<Vec<OwnWrite>> {
    let place = since.state.root(since.root);
    let at = at(since.process);
    let line = |what| LogLine { at, by: since.by.to_owned(), what };
    let mut lines = Vec::new();
    let mut texts = CallTexts::new(&place, since.of);
    let mut held = Vec::new();
    for path in paths {
        let Some(text) = PathSide::text_of(since.root, path) else { continue };
        let mut is_held = false;
        let found = state_of(path, |bytes| {
            let sha = texts.add(bytes);
            is_held = texts.has(&sha);
            Some(sha)
        });
        if let Some((PathState { sha, .. }, stamp)) = &found {
            // A larger file is never held between calls, so the next edit need not look at it again either.
            if stamp.kind() != Some(Kind::Link) && (is_held || stamp.size > BYTES_MAX) {
                held.push(OwnWrite { stamp: *stamp, sha: sha.clone() });
            }
        }
        lines.push(line(LogEvent::Left { path: text, state: found.map(|(state, _)| state) }));
    }
    // An edit moves no branch.
    lines.push(line(LogEvent::Done { call: call.to_owned(), moved_head: None }));
    texts.store()?;
    append(&place, &lines)?;
    Ok(held)
}

/// Counts what commands changed in a root, and logs it as left by `calls`, if there are any: people may have worked
/// since commands that were not seen to end. If the root cannot be scanned in time, does neither. If too much
/// changed, only counts. What is not logged has no known author.
///
/// # Errors
///
/// Fails if the root or its store cannot be read, or the log not written.
pub fn after_shell(
    since: SinceCheckpoint<'_, '_>,
    calls: Option<&[String]>,
) -> Result<Option<ChangeSummary>> {
    let deadline = Instant::now() + since.settings.deadline / DEADLINE_DIVISOR;
    let store = store::open(since.root, since.state, since.settings.store)?;
    let place = since.state.root(since.root);
    let absent = calls.map(|calls| absent_before(&place, calls)).unwrap_or_default();
    let Some(found) = changes(since, store.as_ref(), &absent, deadline)? else { return Ok(None) };
    // Counting is for a notice; who made what must not depend on it.
    let blast = found.count(since, store.as_ref());
    let Differences { changes, outside, unread, repositories, stood, .. } = found;
    // Files that existed before come first. If a build creates more than `PATHS_MAX` files, the rest is not logged:
    // a restore keeps those, and still knows what users do to all other files afterwards.
    let (there, new): (Vec<_>, Vec<_>) = changes.iter().partition(|change| change.before.is_some());
    let is_known = there.len() <= PATHS_MAX && Instant::now() <= deadline;
    if let (Some(calls), Some(outside), true) = (calls, outside, is_known) {
        let at = at(since.process);
        let line = |what| LogLine { at, by: since.by.to_owned(), what };
        let mut texts = CallTexts::new(&place, since.of);
        let mut room = KEPT_MAX_BYTES;
        let noted = there.into_iter().chain(new).take(PATHS_MAX);
        let left = noted.map(|change| LogEvent::Left {
            path: path_text(&change.path),
            state: change.after.map(|entry| {
                let path = since.root.join(&change.path);
                PathState {
                    sha: add_text(&mut texts, &path, &entry, &mut room),
                    ..PathState::of(&entry)
                }
            }),
        });
        let outside = outside.into_iter().map(|change| LogEvent::Left {
            path: PathSide::Outside.text(&change.path),
            state: change.after.as_ref().map(PathState::of),
        });
        let unread = unread.into_iter().map(|(path, permissions)| LogEvent::Left {
            path,
            state: Some(PathState::unread(permissions)),
        });
        let others = repositories.into_iter().map(|(path, state)| LogEvent::Left { path, state });
        let moved_head = stood.and_then(|then| moved_to(store.as_ref(), &then));
        let done = calls
            .iter()
            .map(|call| LogEvent::Done { call: call.clone(), moved_head: moved_head.clone() });
        let left = left.chain(outside).chain(unread).chain(others);
        let lines: Vec<LogLine> = left.chain(done).map(line).collect();
        texts.store()?;
        append(&place, &lines)?;
    }
    blast.map(Some)
}

/// Counts what was done between the checkpoint and a later one, such as the one before the next call.
///
/// # Errors
///
/// Fails if either cannot be read.
pub fn count_between(
    since: SinceCheckpoint<'_, '_>,
    later: CheckpointId,
) -> Result<Option<ChangeSummary>> {
    if later == since.of {
        return Ok(None);
    }
    let store = store::open(since.root, since.state, since.settings.store)?;
    let (then, now) = (store.tree(since.of)?, store.tree(later)?);
    let mut changes = store::changes(store.as_ref(), &then, &now, ContentSource::Saved)?;
    changes.retain(|change| change_summary::is_really_gone(since.root, change));
    let place = since.state.root(since.root);
    let [held, later] =
        [since.of, later].map(|id| record::read(&place, id).map(|it| it.checkpoint));
    let (held, later) = (held?, later?);
    // Where a file was left out that was not there before, it may be one of those that are gone.
    let is_new = |out: &&Skipped| held.skipped.iter().all(|then| then.path != out.path);
    let new: BTreeSet<u64> = later.skipped.iter().filter(is_new).map(|out| out.size).collect();
    let mut gone = moved::gone(since.root, &held);
    gone.retain(|gone| !new.contains(&gone.size));
    change_summary::count(since, store.as_ref(), &changes, gone.len() as u64).map(Some)
}

/// What differs from a checkpoint.
pub(super) struct Differences {
    changes: Vec<Change>,
    /// The same outside the root, of what the checkpoint holds there; `None` if that is too much
    /// to be read.
    pub(super) outside: Option<Vec<Change>>,
    /// Files that were not there, or held, and are too large to be read: their paths as the log has
    /// them, and their permissions.
    unread: Vec<(String, u32)>,
    /// Repositories in the root that are gone or others now, and files that led to one: as the log has
    /// them.
    repositories: Vec<(String, Option<PathState>)>,
    /// How much of what the checkpoint left out is gone, and nowhere else in the root.
    unheld: u64,
    /// Where HEAD stood at the checkpoint.
    stood: Option<Head>,
}

impl Differences {
    /// Counts what was done.
    ///
    /// # Errors
    ///
    /// Fails if the checkpoint cannot be read.
    pub(super) fn count(
        &self,
        since: SinceCheckpoint<'_, '_>,
        store: &dyn Store,
    ) -> Result<ChangeSummary> {
        change_summary::count(since, store, &self.changes, self.unheld)
    }

    /// Each path as the log has it, and what is there.
    pub(super) fn left(&self) -> impl Iterator<Item = (String, Option<PathState>)> {
        let state = |change: &Change| change.after.as_ref().map(PathState::of);
        let text = |side: PathSide| move |it: &Change| (side.text(&it.path), state(it));
        let below = self.changes.iter().map(text(PathSide::Root));
        let outside = self.outside.iter().flatten().map(text(PathSide::Outside));
        let unread = self.unread.iter();
        let unread = unread.map(|(path, bits)| (path.clone(), Some(PathState::unread(*bits))));
        below.chain(outside).chain(unread).chain(self.repositories.iter().cloned())
    }
}

/// What differs from the checkpoint; `None` if there is no time to see it all.
pub(super) fn changes(
    since: SinceCheckpoint<'_, '_>,
    store: &dyn Store,
    absent: &BTreeSet<PathBuf>,
    deadline: Instant,
) -> Result<Option<Differences>> {
    let record = record::read(&since.state.root(since.root), since.of)?;
    let repositories = other_repositories(since, &record);
    let held = record.checkpoint;
    let is_outside = !held.outside.is_empty() || !absent.is_empty();
    let then = if is_outside { Some(store.tree(since.of)?) } else { None };
    let OutsidePaths { read, mut unread, is_too_much } = match &then {
        Some(then) => {
            let apart = [since.root.path(), since.state.dir()];
            let (then, skipped) = (&then.outside, &*held.skipped);
            OutsidePaths::of(Outside { then, skipped, absent, apart: &apart })
        }
        None => OutsidePaths::default(),
    };
    let victims = if is_too_much { Vec::new() } else { read.iter().cloned().collect() };
    let mut scan = scan_with(since, victims, deadline)?;
    if scan.partial {
        return Ok(None);
    }
    let unheld = unheld(since, store, &held, &scan)?;
    // Unchanged since this checkpoint, and not since a later one that another call took.
    let latest = scan.base.as_ref().and_then(|base| base.facts().latest);
    let is_as_held = scan.is_unchanged() && latest.is_some_and(|(id, _)| id == since.of);
    if is_as_held && !is_outside {
        let (changes, outside) = (Vec::new(), Some(Vec::new()));
        let stood = held.head;
        return Ok(Some(Differences { changes, outside, unread, repositories, unheld, stood }));
    }
    let now = store.identify(&mut scan)?;
    unread.extend(unread_in(&scan, &held.skipped));
    let then = match then {
        Some(then) => then,
        None => store.tree(since.of)?,
    };
    let outside = (!is_too_much).then(|| outside_changes(&read, &then.outside, &now.outside));
    let mut changes = store::changes(store, &then, &now, ContentSource::Disk)?;
    keep_real(since.root, &held, &scan, &mut changes);
    let stood = held.head;
    Ok(Some(Differences { changes, outside, unread, repositories, unheld, stood }))
}

/// The commit that HEAD stands at, if it stands elsewhere than it did.
fn moved_to(store: &dyn Store, then: &Head) -> Option<String> {
    let now = store.git()?.head()?;
    ((&now.branch, &now.commit) != (&then.branch, &then.commit)).then_some(now.commit)?
}

/// Scans the root, and the `victims` outside of it.
fn scan_with(
    since: SinceCheckpoint<'_, '_>,
    victims: Vec<PathBuf>,
    deadline: Instant,
) -> Result<Scan> {
    let root = since.root.clone();
    let reach = Reach { root, scope: ScanScope::Whole, victims, checkout: Checkout::default() };
    let options = ScanOptions {
        reach: &reach,
        settings: since.settings,
        named: VictimDepth::Alone,
        deadline: Some(deadline),
    };
    options.at(since.process, since.state, since.root)
}

/// The paths outside the root that may have changed.
#[derive(Default)]
struct OutsidePaths {
    /// Those that are read.
    read: BTreeSet<PathBuf>,
    /// New files for which there is no room, as the log has them: path and permissions.
    unread: Vec<(String, u32)>,
    /// Whether what the checkpoint holds there is more than is read.
    is_too_much: bool,
}

impl OutsidePaths {
    fn of(outside: Outside<'_>) -> Self {
        let (mut read, new): (BTreeSet<PathBuf>, BTreeSet<PathBuf>) =
            outside.paths().into_iter().partition(|path| outside.then.contains_key(path));
        let room = OUTSIDE_MAX_BYTES.checked_sub(read.iter().map(|path| size(path)).sum());
        read.extend(smallest(&new, room.unwrap_or_default()));
        let unread = new.difference(&read).filter_map(|path| unread_outside(path)).collect();
        Self { read, unread, is_too_much: room.is_none() }
    }
}

/// Leaves out what only seems to have changed since the checkpoint `held`.
fn keep_real(root: &Root, held: &Checkpoint, scan: &Scan, changes: &mut Vec<Change>) {
    // Where a file system takes other spellings, the old name leads to what has a new one.
    changes.retain(|change| {
        change_summary::is_really_gone(root, change)
            || scan.spelled(root, &change.path) != change.path
    });
    let (left_out, taken_at) = (ByPath::of(&held.skipped), held.taken_ns());
    // What there was no room for then, and is now, was there before the call.
    changes.retain(|change| {
        let was_left_out = change.before.is_none() && left_out.covering(&change.path).is_some();
        let stamp = || stat_path(&root.join(&change.path));
        !was_left_out || stamp().is_ok_and(|stamp| stamp.ctime_ns > taken_at)
    });
}

/// How much of what a checkpoint left out is gone, and does not seem to be elsewhere in the root.
fn unheld(
    since: SinceCheckpoint<'_, '_>,
    store: &dyn Store,
    held: &Checkpoint,
    scan: &Scan,
) -> Result<u64> {
    let gone = moved::gone(since.root, held);
    if gone.is_empty() {
        return Ok(0);
    }
    let then = store.tree(since.of)?;
    let moved = moved(store, scan, (held, &then), gone.iter().copied());
    Ok((gone.len() - moved.len()) as u64)
}

/// The repositories of a checkpoint that are gone or others now, and files that led to one.
fn other_repositories(
    since: SinceCheckpoint<'_, '_>,
    record: &Record,
) -> Vec<(String, Option<PathState>)> {
    let (root, directory) = (since.root, Entry::DIRECTORY);
    let others = repository::others(since.state, root.path(), record, None);
    let text = |place: &Path| root.relative(place).ok().map(|path| path_text(&path));
    let noted = others
        .into_iter()
        .filter_map(|(place, why)| Some((text(&place)?, why.map(|_| PathState::of(&directory)))));
    noted.collect()
}

/// Files that a scan left out for their size and a checkpoint did not.
fn unread_in(scan: &Scan, skipped_then: &[Skipped]) -> Vec<(String, u32)> {
    let then: BTreeSet<&[u8]> = skipped_then.iter().map(|skipped| &skipped.path[..]).collect();
    let mut unread = Vec::new();
    scan.each(|dir, row| {
        let is_large = matches!(row.skipped, Some(SkipReason::TooLarge | SkipReason::TooMany));
        if is_large && row.kind() == Some(Kind::File) {
            let path = DirPath(dir.to_vec()).join(row.name);
            let path = RelPath::from_bytes(&path).ok().filter(|_| !then.contains(&path[..]));
            unread.extend(path.map(|path| (path_text(&path), row.stamp.permissions())));
        }
    });
    unread.truncate(PATHS_MAX);
    unread
}

/// The same for a path outside the root.
fn unread_outside(path: &Path) -> Option<(String, u32)> {
    let stamp = stat_path(path).ok().filter(|stamp| stamp.kind() == Some(Kind::File))?;
    Some((PathSide::Outside.text(&RelPath::from_top(path).ok()?), stamp.permissions()))
}

/// Where nothing was outside the root before some calls that name it.
pub(super) fn absent_before(place: &state::RootState, calls: &[String]) -> BTreeSet<PathBuf> {
    let absent = super::recent(place).into_iter().filter_map(|line| match line.what {
        LogEvent::Began { call, absent, .. } if calls.contains(&call) => Some(absent),
        _ => None,
    });
    let paths = absent.flatten().filter_map(|path| PathSide::Outside.path(&path));
    paths.map(|path| path.at_top()).collect()
}

/// How much there is to read at a path.
fn size(path: &Path) -> u64 {
    let stamp = stat_path(path).ok().filter(|stamp| stamp.kind() == Some(Kind::File));
    stamp.map_or(0, |stamp| stamp.size)
}

/// The smallest of some paths, as many as there is room for: a large new file is no reason not to
/// tell of all others.
fn smallest(paths: &BTreeSet<PathBuf>, mut room: u64) -> impl Iterator<Item = PathBuf> {
    let mut sized: Vec<(u64, PathBuf)> =
        paths.iter().map(|path| (size(path), path.clone())).collect();
    sized.sort();
    sized.into_iter().map_while(move |(size, path)| {
        room = room.checked_sub(size)?;
        Some(path)
    })
}

/// Adds a file, if it is a small text and there is room.
fn add_text(texts: &mut CallTexts, path: &Path, entry: &Entry, room: &mut u64) -> Option<String> {
    if entry.kind != Kind::File || *room == 0 {
        return None;
    }
    let bytes = read_file(path, TEXT_MAX_BYTES)?;
    let size = bytes.len() as u64;
    let fits = size <= *room && !bytes.contains(&0);
    *room = room.saturating_sub(size);
    fits.then(|| texts.add(&bytes))
}

/// What is at `path` before a call; `None` if nothing is, or if hashing it would take too long while the
/// call waits.
pub(super) fn state_before(path: &Path) -> Option<PathState> {
    let is_small = stat_path(path).is_ok_and(|stamp| stamp.size <= TEXT_MAX_BYTES);
    if is_small { state_of(path, |_| None).map(|(state, _)| state) } else { None }
}

/// What is at `path`, with the stamp from before it was read; `None` if nothing is.
pub(super) fn state_of(
    path: &Path,
    sha: impl FnOnce(&[u8]) -> Option<String>,
) -> Option<(PathState, Stamp)> {
    let stamp = stat_path(path).ok()?;
    let kind = stamp.kind()?;
    let sha = match kind {
        Kind::File if stamp.size <= HASHED_MAX_BYTES => read_file(path, HASHED_MAX_BYTES)
            .and_then(|bytes| sha(&bytes).or_else(|| Some(digest(&bytes)))),
        Kind::Link => read_link(path).ok().map(|text| digest(text.as_os_str().as_bytes())),
        _ => None,
    };
    let permissions = if kind == Kind::Link { 0o777 } else { stamp.permissions() };
    Some((PathState { kind: kind.mode_bits(), permissions, id: None, sha }, stamp))
}

fn read_file(path: &Path, size_max: u64) -> Option<Vec<u8>> {
    let above: PathBuf = path.parent()?.into();
    let name = c_name(path.file_name()?.as_encoded_bytes()).ok()?;
    let (file, stamp) = Dir::open(&above).ok()?.open_file(&name).ok()?;
    if stamp.size > size_max {
        return None;
    }
    let mut bytes = Vec::new();
    file.take(size_max).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}
