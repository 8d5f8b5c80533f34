//! From two trees to a plan: what was, what is, and what is known of the time between.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::Read,
    path::PathBuf,
};

use super::Order;
use crate::{
    commands::Desk,
    error::Result,
    fs::{Dir, c_name, stat_path},
    model::{Checkpoint, CheckpointId, Kind, Place, RelPath, SkipReason, Skipped, Stamp, Tree},
    plan::{self, OutsideStep, Past, Picked, RestorePlan},
    process::Process,
    scan::{PastRules, Scan},
    snapshot, store,
};

/// An ignore file beyond it has no rules; see `scan`.
const IGNORE_FILE_MAX_BYTES: u64 = 4 << 20;

/// A plan, and what it was made from.
pub(super) struct Planned {
    pub(super) plan: RestorePlan,
    /// What the system said about each path when it was looked at.
    pub(super) seen: BTreeMap<RelPath, Stamp>,
}

/// Plans a restore of what is there now.
pub(super) fn make(
    process: &Process<'_>,
    desk: &Desk,
    checkpoint: &Checkpoint,
    order: &Order,
) -> Result<Planned> {
    let then = desk.store.tree(checkpoint.id)?;
    // What was held for its own sake is looked at for its own sake.
    let privately = then
        .besides
        .iter()
        .filter(|(_, entry)| entry.content.is_none_or(|content| content.place == Place::Private));
    let below = privately.map(|(path, _)| desk.root.join(path));
    let victims: Vec<PathBuf> = below.chain(then.outside.keys().cloned()).collect();
    let scan = desk.look(process, victims)?;
    let skipped = skipped_now(&scan);
    let stamps = Stamps::of(&scan);
    let now = desk.store.identify(scan)?;
    let store = desk.store.as_ref();
    let mut read = |tree: &Tree, id: &_| store::directory_of(store, tree, id);
    let changes = plan::changes(&then, &now, &mut read)?;
    let ours = match order.of_restore {
        Some(of) => created_by(desk, of, &changes, &now)?,
        None => BTreeSet::new(),
    };
    let past = Past {
        ours: &ours,
        ignored: &ignored_then(process, desk, &then, &changes),
        skipped_then: &checkpoint.skipped,
        skipped_now: &skipped,
    };
    let mut plan = plan::restore(checkpoint.id, changes, order.options, &order.picked, &past);
    if order.outside || order.picked == Picked::All {
        plan.outside = outside(&then, &now);
    }
    let seen = stamps.of_plan(desk, &plan);
    Ok(Planned { plan, seen })
}

/// Stamps of everything a scan saw.
pub(super) struct Stamps(BTreeMap<RelPath, Stamp>);

impl Stamps {
    pub(super) fn of(scan: &Scan) -> Self {
        let mut stamps = BTreeMap::new();
        scan.each(|dir, row| {
            let path = crate::model::DirPath(dir.to_vec()).join(row.name);
            if let Ok(path) = RelPath::from_bytes(&path) {
                if row.skipped.is_none() {
                    stamps.insert(path, row.stamp);
                }
            }
        });
        for victim in &scan.victims {
            if let crate::scan::VictimPath::Below(path) = &victim.path {
                stamps.insert(path.clone(), victim.found.stamp);
            }
        }
        Self(stamps)
    }

    /// Those the plan needs. What the scan left out is looked at now: it will be held, too.
    pub(super) fn of_plan(mut self, desk: &Desk, plan: &RestorePlan) -> BTreeMap<RelPath, Stamp> {
        let mut needed = BTreeMap::new();
        let top = Dir::open(desk.root.path());
        let look = |path: &RelPath| {
            let parent = top.as_ref().ok()?.parent_of(path).ok()?;
            parent.stat_child(&c_name(path.name()).ok()?).ok()
        };
        for step in plan.deeds() {
            let stamp = self.0.remove(&step.path).or_else(|| look(&step.path));
            needed.extend(stamp.map(|stamp| (step.path.clone(), stamp)));
        }
        needed
    }
}

/// What the present scan could not look into. What it merely left out can be held by name.
pub(super) fn skipped_now(scan: &Scan) -> Vec<Skipped> {
    let mut skipped = Vec::new();
    scan.each(|dir, row| {
        let Some(reason) = row.skipped else { return };
        let out_of_reach = matches!(
            reason,
            SkipReason::Unreadable
                | SkipReason::OtherFileSystem
                | SkipReason::OutOfTime
                | SkipReason::TooDeep
                | SkipReason::UnknownKind
        );
        if out_of_reach {
            let path = crate::model::DirPath(dir.to_vec()).join(row.name);
            skipped.push(Skipped { path, reason, size: row.stamp.size });
        }
    });
    skipped
}

/// What the restore to `of`, which is being taken back, created and nobody has changed since.
fn created_by(
    desk: &Desk,
    of: CheckpointId,
    changes: &[plan::Change],
    now: &Tree,
) -> Result<BTreeSet<RelPath>> {
    let Ok(restored) = desk.store.tree(of) else { return Ok(BTreeSet::new()) };
    let store = desk.store.as_ref();
    let mut read = |tree: &Tree, id: &_| store::directory_of(store, tree, id);
    let mut created = BTreeSet::new();
    for change in changes.iter().filter(|change| change.before.is_none()) {
        let left = plan::entry_at(&restored, &change.path, &mut read)?;
        let here = plan::entry_at(now, &change.path, &mut read)?;
        let is_same = left.zip(here).is_some_and(|(left, here)| {
            let is_dir = here.kind == Kind::Directory;
            left.kind == here.kind && (is_dir || left.content == here.content)
        });
        if is_same {
            created.insert(change.path.clone());
        }
    }
    Ok(created)
}

/// What is new since, and was ignored at the checkpoint.
fn ignored_then(
    process: &Process<'_>,
    desk: &Desk,
    then: &Tree,
    changes: &[plan::Change],
) -> BTreeSet<RelPath> {
    let store = desk.store.as_ref();
    let mut read_dir = |tree: &Tree, id: &_| store::directory_of(store, tree, id);
    let mut read = |path: &RelPath| {
        let entry = plan::entry_at(then, path, &mut read_dir).ok()??;
        let content = entry.content.filter(|_| entry.kind == Kind::File)?;
        let mut bytes = Vec::new();
        store.open(&content).ok()?.take(IGNORE_FILE_MAX_BYTES).read_to_end(&mut bytes).ok()?;
        Some(bytes)
    };
    let user = snapshot::user_dirs(process);
    let mut rules = PastRules::new(&desk.root, &user, &mut read);
    let new = changes.iter().filter(|change| change.before.is_none());
    let is_dir =
        |change: &plan::Change| change.after.is_some_and(|now| now.kind == Kind::Directory);
    new.filter(|change| rules.ignores(&change.path, is_dir(change)))
        .map(|change| change.path.clone())
        .collect()
}

fn outside(then: &Tree, now: &Tree) -> Vec<OutsideStep> {
    let differs = |path: &&PathBuf| then.outside.get(*path) != now.outside.get(*path);
    then.outside
        .keys()
        .filter(differs)
        .map(|path| OutsideStep {
            path: path.clone(),
            then: then.outside[path],
            seen: stat_path(path).ok(),
        })
        .collect()
}
