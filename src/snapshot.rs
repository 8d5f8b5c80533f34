//! Takes a checkpoint of a root: scans it, then saves. Shared by the hook and the commands.

mod unheld;

use std::{
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use chrono::{DateTime, Utc};

use crate::{
    cache::{Lookup, ScanTable, TableRow},
    error::Result,
    fs::Lock,
    model::{
        Cause, Checkout, CheckpointId, Reach, RelPath, Root, RootKind, Settings, Skipped, Stamp,
        StoreChoice,
    },
    process::Process,
    scan::{self, Scan, ScanRequest, UserDirs, VictimDepth},
    state::{RootState, StateDir},
    store::{
        self, Draft, GitStore, Saved, Store,
        git::checkout::replaced_by,
        object_stamps::{self, StampScope},
        reading, record,
    },
};

pub use unheld::{Unheld, unheld, unheld_at_risk, unread};

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
        let newest = record::ids(&state.root(&reach.root))?.first().copied();
        Some(newest.map_or(0, CheckpointId::sequence))
    };
    let look = ScanOptions { reach, settings, named: VictimDepth::WithAllBelow, deadline };
    let scan = look.at(process, state, store.root())?;
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
    /// Scans a root, using its cache.
    ///
    /// # Errors
    ///
    /// Fails if the root cannot be read.
    pub fn at(&self, process: &Process<'_>, state: &StateDir, root: &Root) -> Result<Scan> {
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
    pub fn also(&self, process: &Process<'_>, state: &StateDir, root: &Root, scan: &mut Scan) {
        let user = user_dirs(process);
        scan::name_victims(scan, &self.request(&user, state, root));
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

    /// Opens the cache as [`LastCheckpoint::of`] does, for an edit. Nothing is held if a file of ours with its
    /// objects is not as it was when the checkpoint was taken. An edit does
    /// not destroy the objects that the user's repository has too.
    pub fn intact(root: &Root, place: &RootState) -> Self {
        let is_intact = object_stamps::stand(place, StampScope::Own);
        let rows = is_intact.then(|| Lookup::open(&place.cache())).flatten();
        Self { root: root.clone(), rows }
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
