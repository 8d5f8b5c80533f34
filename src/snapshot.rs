//! Takes a checkpoint of a root: scans it, then saves. Shared by the hook and the commands.

use std::{
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use chrono::{DateTime, Utc};

use crate::{
    cache::{Lookup, ScanTable, TableRow},
    error::Result,
    fs::{Lock, PathResolver},
    model::{
        Cause, Checkout, Reach, RelPath, Root, RootKind, Settings, SkipReason, Skipped, Spares,
        Stamp, StoreChoice,
    },
    process::Process,
    reach::{self, AtRisk},
    scan::{self, Scan, ScanRequest, UserDirs, VictimDepth},
    state::{RootState, StateDir},
    store::{self, Draft, GitStore, Saved, Store, git::checkout::replaced_by, reading},
};

/// How long a save waits for a warm-up in the background before it proceeds on its own.
const WARM_MAX: Duration = Duration::from_secs(1);

/// What to take a checkpoint of, and why.
pub struct SnapshotRequest<'a> {
    /// What to capture.
    pub reach: &'a Reach,
    /// The settings that apply to it.
    pub settings: &'a Settings,
    /// Why.
    pub cause: Cause,
    /// The time of the checkpoint.
    pub taken_at: DateTime<Utc>,
    /// Whether to record it even if nothing changed.
    pub always: bool,
    /// When to stop and keep what there is.
    pub deadline: Option<Instant>,
    /// Whether to wait for a warm-up that is in progress. A request that does not wait is itself a
    /// warm-up, and gives way to a checkpoint that another process takes meanwhile.
    pub waits: bool,
}

/// Takes a checkpoint. If the private repository cannot take it, the file store does.
///
/// # Errors
///
/// Fails if neither can.
pub fn take(
    process: &Process<'_>,
    state: &StateDir,
    request: SnapshotRequest<'_>,
) -> Result<Saved> {
    let store = store::open(&request.reach.root, state, request.settings.store)?;
    take_into(store.as_ref(), process, state, request)
}

/// Takes a checkpoint with a store that the caller has already opened.
///
/// # Errors
///
/// As [`take`].
pub fn take_into(
    store: &dyn Store,
    process: &Process<'_>,
    state: &StateDir,
    request: SnapshotRequest<'_>,
) -> Result<Saved> {
    let SnapshotRequest { reach, settings, cause, taken_at, always, deadline, waits } = request;
    let after = if waits {
        await_warm(&state.root(&reach.root), deadline);
        None
    } else {
        // A warm-up is waited for only briefly, so a call may save first.
        Some(store.list()?.first().map_or(0, |newest| newest.sequence))
    };
    let look = ScanOptions { reach, settings, named: VictimDepth::WithAllBelow, deadline };
    let scan = look.at(process, state, store)?;
    let saved = store.save(Draft { cause, taken_at, scan, always, deadline, after })?;
    if saved.is_new && store.is_untidy() {
        let args = ["maintain".into(), "--tidy".into(), reach.root.path().into()];
        // If this fails, the next save tries again.
        let _later = process.start_aside(&args);
    }
    Ok(saved)
}

/// Waits for a warm-up of this root: with its result, the save costs less than the wait, unless the
/// warm-up takes too long.
fn await_warm(place: &RootState, deadline: Option<Instant>) {
    let now = Instant::now();
    let half = deadline.map_or(WARM_MAX, |deadline| deadline.saturating_duration_since(now) / 2);
    let until = now + half.min(WARM_MAX);
    if place.warming().exists() {
        let _done = Lock::share(&place.warming(), until);
    }
}

/// How to scan a root.
pub struct ScanOptions<'a> {
    /// What to scan.
    pub reach: &'a Reach,
    /// Which files are captured.
    pub settings: &'a Settings,
    /// How much of each victim.
    pub named: VictimDepth,
    /// When to stop.
    pub deadline: Option<Instant>,
}

impl ScanOptions<'_> {
    /// Scans the root of `store`, using its cache.
    ///
    /// # Errors
    ///
    /// Fails if the root cannot be read.
    pub fn at(&self, process: &Process<'_>, state: &StateDir, store: &dyn Store) -> Result<Scan> {
        self.at_root(process, state, store.root())
    }

    /// The same without a store, for what is not saved.
    ///
    /// # Errors
    ///
    /// As [`ScanOptions::at`].
    pub fn at_root(&self, process: &Process<'_>, state: &StateDir, root: &Root) -> Result<Scan> {
        let user = user_dirs(process);
        let base = ScanTable::load(&state.root(root).cache());
        let mut scan = scan::walk(ScanRequest { base, ..self.request(&user, state, root) })?;
        if !self.reach.checkout.areas.is_empty() {
            let victims = replaced(&reading::skipped(&scan, Vec::new()), self.reach);
            let request = ScanRequest { victims: &victims, ..self.request(&user, state, root) };
            scan::name_victims(&mut scan, &request);
        }
        Ok(scan)
    }

    /// Adds victims to a scan that was just made, which stays as it is otherwise.
    pub fn also(
        &self,
        process: &Process<'_>,
        state: &StateDir,
        store: &dyn Store,
        scan: &mut Scan,
    ) {
        let user = user_dirs(process);
        scan::name_victims(scan, &self.request(&user, state, store.root()));
    }

    fn request<'r>(
        &'r self,
        user: &'r UserDirs,
        state: &'r StateDir,
        root: &'r Root,
    ) -> ScanRequest<'r> {
        ScanRequest {
            root,
            scope: self.reach.scope.clone(),
            base: None,
            settings: self.settings,
            user,
            victims: &self.reach.victims,
            ours: state.dir(),
            named: self.named,
            now_ns: crate::fs::now_ns(),
            deadline: self.deadline,
        }
    }
}

/// Where the user keeps git's configuration.
pub fn user_dirs(process: &Process<'_>) -> UserDirs {
    let dir = |name| process.var(name).map(PathBuf::from).filter(|dir| dir.is_absolute());
    UserDirs { home: dir("HOME"), xdg_config: dir("XDG_CONFIG_HOME") }
}

/// What the last checkpoint of a root holds, according to its cache. What is not certain is not held.
pub struct LastCheckpoint {
    root: Root,
    rows: Option<Lookup>,
}

impl LastCheckpoint {
    /// Opens the cache of `root`, which is in its state directory `place`. Needs no lock: the checksums of
    /// rows detect a write in progress, and what is written is saved already.
    pub fn of(root: &Root, place: &RootState) -> Self {
        Self { root: root.clone(), rows: Lookup::open(&place.cache()) }
    }

    /// Whether the directory at `path` is held as part of the root, not only through the budget.
    pub fn has_directory(&self, path: &Path) -> bool {
        let Ok(rel) = self.root.relative(path) else { return false };
        self.row(&rel).is_some_and(|row| row.skipped.is_none() && !row.marks.ignored)
    }

    /// Whether git ignores what is at `path`.
    pub fn is_ignored(&self, path: &RelPath) -> bool {
        self.row(path).is_some_and(|row| row.marks.ignored)
    }

    fn row<'p>(&self, path: &'p RelPath) -> Option<TableRow<'p>> {
        self.rows.as_ref()?.row(path.as_bytes())
    }

    /// Whether the content of the file at `path`, with this stamp, is held.
    pub fn has(&self, path: &Path, stamp: &Stamp) -> bool {
        let Ok(rel) = self.root.relative(path) else { return false };
        self.row(&rel).is_some_and(|row| {
            row.skipped.is_none() && row.content.is_some() && !row.marks.racy && row.stamp == *stamp
        })
    }
}

/// Something that a call would destroy and no checkpoint holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unheld {
    /// Which file or directory, absolute.
    pub path: PathBuf,
    /// Its size in bytes, if known.
    pub size: u64,
    /// Why it is not held, as a message fragment.
    pub why: &'static str,
    /// Whether the call names no more than where it may lie.
    pub is_guess: bool,
}

/// What a destructive call would remove and the checkpoint does not hold: what is both in `skipped`, which the
/// checkpoint left out, and at or below one of `at_risk`, which the call names. Leaves out what can be made again.
pub fn unheld(
    skipped: &[Skipped],
    at_risk: &[AtRisk],
    root: &Root,
    is_ignored: impl Fn(&RelPath) -> bool,
) -> Vec<Unheld> {
    let is_spared = |path: &Path| {
        let mut above = std::iter::successors(root.relative(path).ok(), RelPath::parent);
        above.any(|path| is_ignored(&path))
    };
    // As scans name them.
    let real = PathResolver::default();
    let at_risk: Vec<AtRisk> = at_risk
        .iter()
        .map(|risk| AtRisk { path: real.place(&risk.path), ..risk.clone() })
        .collect();
    let named = at_risk.iter().filter(|risk| !risk.is_guess);
    let mut unheld: Vec<Unheld> = named.filter_map(|risk| device(&risk.path)).collect();
    for Skipped { path, reason, size } in skipped.iter().filter(|it| it.reason.matters()) {
        let path = root.path().join(std::ffi::OsStr::from_bytes(path));
        // A repository is held by itself, whatever of its files is not.
        if *reason == SkipReason::TooMany && path.file_name() == Some(".git".as_ref()) {
            continue;
        }
        let around = at_risk.iter().filter(|risk| path.starts_with(&risk.path));
        let is_guess = |risk: &AtRisk| match &risk.spares {
            Spares::Ignored if is_spared(&path) => None,
            Spares::OtherNames(pattern) => {
                reach::has_name(&risk.path, &path, pattern).map(|is_there| !is_there)
            }
            Spares::NotIn(archive) if Path::new(archive).is_file() && risk.path.is_dir() => {
                let over = reach::is_unpacked_over(&path, &risk.path, Path::new(archive));
                over.map(|is_sure| risk.is_guess || !is_sure)
            }
            Spares::NotIn(source) => {
                let below = path.strip_prefix(&risk.path).ok()?;
                let is_there = || Path::new(source).symlink_metadata().is_ok();
                match below == Path::new("") && !path.is_dir() {
                    true => Some(risk.is_guess),
                    // The line itself may make it.
                    false if !is_there() => Some(true),
                    false => {
                        let over = reach::has_some_of(&path, &Path::new(source).join(below));
                        over.map(|is_sure| risk.is_guess || !is_sure)
                    }
                }
            }
            Spares::Ignored | Spares::Nothing | Spares::Directories | Spares::Uncommitted => {
                Some(risk.is_guess)
            }
        };
        let is_guess = around.filter_map(is_guess).min();
        if let Some(is_guess) = is_guess
            && unheld.iter().all(|known| known.path != path)
        {
            let why = match reason {
                SkipReason::TooLarge => "over max_victim_size",
                SkipReason::TooMany => "too much to hold",
                other => other.words(),
            };
            unheld.push(Unheld { path, size: *size, why, is_guess });
        }
    }
    unheld
}

/// What git can replace of what a checkpoint leaves out, absolute.
pub fn replaced(skipped: &[Skipped], reach: &Reach) -> Vec<PathBuf> {
    let Reach { root, checkout: Checkout { areas, line }, .. } = reach;
    let relative = |skipped: &Skipped| RelPath::from_bytes(&skipped.path).ok();
    let left_out: Vec<RelPath> = skipped
        .iter()
        .filter(|skipped| skipped.reason.matters())
        .filter_map(relative)
        .filter(|path| {
            let place = root.join(path);
            areas.iter().any(|area| place.starts_with(area) || area.starts_with(&place))
        })
        .collect();
    let in_areas = |place: &PathBuf| areas.iter().any(|area| place.starts_with(area));
    let replaced =
        if left_out.is_empty() { Vec::new() } else { replaced_by(root, line, &left_out) };
    replaced.iter().map(|path| root.join(path)).filter(in_areas).collect()
}

/// What a partial checkpoint lacks because the deadline was reached.
pub fn unread(skipped: &[Skipped], root: &Root) -> Vec<Unheld> {
    let late = skipped.iter().filter(|it| it.reason == SkipReason::OutOfTime);
    late.map(|Skipped { path, reason, size }| {
        let path = root.path().join(std::ffi::OsStr::from_bytes(path));
        Unheld { path, size: *size, why: reason.words(), is_guess: false }
    })
    .collect()
}

/// What of `at_risk` is there and would be lost if nothing at all could be saved.
pub fn unheld_at_risk(at_risk: &[AtRisk]) -> Vec<Unheld> {
    let named = at_risk.iter().filter(|risk| !risk.is_guess).map(|risk| &risk.path);
    let there = named.filter(|risk| !scan::is_made_again(risk));
    there
        .filter_map(|risk| {
            let data = risk.symlink_metadata().ok()?;
            let size = if data.is_file() { data.len() } else { 0 };
            let (path, why) = (risk.clone(), "nothing could be saved");
            Some(Unheld { path, size, why, is_guess: false })
        })
        .collect()
}

/// A disk: its device node is held, its content never is.
fn device(risk: &Path) -> Option<Unheld> {
    use std::os::unix::fs::FileTypeExt;
    let is_disk = risk.symlink_metadata().is_ok_and(|data| data.file_type().is_block_device());
    let (path, why) = (risk.to_owned(), "a whole disk");
    is_disk.then_some(Unheld { path, size: 0, why, is_guess: false })
}

/// Where the checkpoints of a root are kept and, if not in a private repository, why.
pub fn store_kind(store: &dyn Store, choice: StoreChoice) -> (&'static str, Option<&str>) {
    let is_in_repository = store.git().is_some_and(GitStore::is_in_repository);
    match (store.root().kind(), choice) {
        (RootKind::Git { .. }, StoreChoice::Files) => ("files", Some("your settings say so")),
        (RootKind::Git { .. }, StoreChoice::Auto) => ("git", None),
        // It had a repository, or has one that cannot be used now.
        (RootKind::Plain { why }, _) if is_in_repository => ("git", why.as_deref()),
        (RootKind::Plain { why }, _) => ("files", why.as_deref()),
    }
}
