//! Compares the current state of a root with a checkpoint.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

use crate::{
    error::{Error, Result},
    fs::{Dir, DirCursor, names_in, stat_path},
    model::{Entry, Kind, RelPath, SkipReason, Skipped, Stamp, Tree},
    plan::{self, Action, Author, Change, KeepReason, PlanStep, RestorePlan},
    process::Process,
    project::Project,
    scan::{Scan, VictimPath},
    store::{self, ContentSource},
};

/// What is there now, beside what was.
pub(super) struct RootComparison {
    pub(super) now: Tree,
    pub(super) changes: Vec<Change>,
    pub(super) skipped: Vec<Skipped>,
    /// The scan, with nothing named that is not stored.
    pub(super) stored_scan: Scan,
    /// The same, every file named.
    pub(super) scan: Scan,
    /// What the walk alone would not have seen: what a command left there was not noted.
    pub(super) unscanned: BTreeSet<RelPath>,
}

/// Looks at what is there now. `restored` is what the restore went to that is taken back.
pub(super) fn see(
    process: &Process<'_>,
    project: &Project,
    then: &Tree,
    restored: Option<&Tree>,
    outside: &BTreeSet<PathBuf>,
) -> Result<RootComparison> {
    // What was held for its own sake is looked at for its own sake, and so is what a restore put there.
    let by_name = then.held_by_name().chain(restored.into_iter().flat_map(Tree::held_by_name));
    let below = by_name.map(|path| project.root.join(path));
    let mut victims: Vec<PathBuf> = below.chain(outside.iter().cloned()).collect();
    let seen = look(process, project, then, victims.clone())?;
    if project.is_gone {
        return Ok(seen);
    }
    // What is ignored now and was not then seems to be gone.
    let hidden_now = |change: &&Change| change.before.is_some() && change.after.is_none();
    let top = open_root(project)?;
    let mut way = DirCursor::from(&top);
    let mut hidden: Vec<PathBuf> = Vec::new();
    for change in seen.changes.iter().filter(hidden_now) {
        let place = project.root.join(&change.path);
        let was_directory = change.before.is_some_and(Entry::is_directory);
        match kind_at(&mut way, &change.path) {
            // A directory in the place of a file is looked at with all that is in it.
            Some(Kind::Directory) if !was_directory => hidden.extend(with_all_below(&place)),
            Some(Kind::Directory) | None => (),
            Some(_) => hidden.push(place),
        }
    }
    hidden.extend(left_by_rule(project, &seen).flat_map(|place| with_all_below(&place)));
    let mut seen = if hidden.is_empty() {
        seen
    } else {
        victims.extend(hidden);
        look(process, project, then, victims)?
    };
    seen.changes.retain(|change| !is_hidden_directory(&mut way, change));
    Ok(seen)
}

/// What an ignore file or its kind leaves out in directories that were something else: that is in the way.
fn left_by_rule(project: &Project, seen: &RootComparison) -> impl Iterator<Item = PathBuf> {
    let replaced = replaced_files(&seen.changes);
    let is_by_rule =
        |reason| matches!(reason, SkipReason::Ignored | SkipReason::MadeAgain | SkipReason::Output);
    let left = if replaced.is_empty() { Vec::new() } else { skipped(&seen.scan, is_by_rule) };
    let paths = left.into_iter().filter_map(|left| RelPath::from_bytes(&left.path).ok());
    let paths: Vec<RelPath> =
        paths.filter(|path| replaced.iter().any(|dir| path.is_within(dir))).collect();
    paths.into_iter().map(|path| project.root.join(&path))
}

/// Where directories are that were something else.
pub(super) fn replaced_files(changes: &[Change]) -> Vec<&RelPath> {
    let replaced = changes.iter().filter(|change| change.made_directory_of_file());
    replaced.map(|change| &change.path).collect()
}

/// What is there now, compared with nothing.
pub(super) struct CurrentRoot {
    pub(super) now: Tree,
    /// What the scan could not look into.
    pub(super) skipped: Vec<Skipped>,
    /// The scan, with nothing named that is not stored.
    pub(super) stored_scan: Scan,
    /// The same, every file named.
    pub(super) scan: Scan,
}

impl CurrentRoot {
    /// Looks at a root, and at `victims` in any case.
    pub(super) fn look(
        process: &Process<'_>,
        project: &Project,
        victims: Vec<PathBuf>,
    ) -> Result<Self> {
        let stored_scan = project.look(process, victims)?;
        let mut scan = stored_scan.clone();
        let now = project.store.identify(&mut scan)?;
        // Only now is it known what could not be read.
        let skipped = skipped_now(&scan);
        Ok(Self { now, skipped, stored_scan, scan })
    }
}

/// A directory and all that is in it, but for repositories.
fn with_all_below(dir: &Path) -> Vec<PathBuf> {
    let mut all = vec![dir.to_owned()];
    let mut at = 0;
    while let Some(dir) = all.get(at).cloned() {
        let names = names_in(&dir).into_iter().filter(|name| name != ".git");
        all.extend(names.map(|name| dir.join(name)));
        at += 1;
    }
    all
}

fn look(
    process: &Process<'_>,
    project: &Project,
    then: &Tree,
    victims: Vec<PathBuf>,
) -> Result<RootComparison> {
    let CurrentRoot { now, skipped, stored_scan, scan } =
        CurrentRoot::look(process, project, victims)?;
    let unscanned = scan.victims.iter().filter_map(|victim| victim.path.below().cloned()).collect();
    let changes = store::changes(project.store.as_ref(), then, &now, ContentSource::Disk)?;
    Ok(RootComparison { now, changes, skipped, stored_scan, scan, unscanned })
}

fn open_root(project: &Project) -> Result<Dir> {
    Dir::open(project.root.path()).map_err(Error::io("open", project.root.path()))
}

/// What sort of file is at a path, reached through no symlink.
fn kind_at(way: &mut DirCursor<'_>, path: &RelPath) -> Option<Kind> {
    way.stat(path).ok()?.kind()
}

/// A directory that is ignored now is not gone.
fn is_hidden_directory(way: &mut DirCursor<'_>, change: &Change) -> bool {
    let was_directory = change.before.is_some_and(Entry::is_directory);
    was_directory && change.after.is_none() && kind_at(way, &change.path) == Some(Kind::Directory)
}

/// Makes steps below `top` executable as a whole. Adds the directories that they need and neither tree
/// tells of; where something else stands in place of one, keeps what was to be below it, for `reason`.
pub(super) fn make_executable(top: &Path, steps: &mut Vec<PlanStep>, reason: KeepReason) {
    keep_below_others(top, steps, reason);
    plan::keep_executable(steps);
    add_parents(top, steps);
}

/// What was in a directory cannot come back where something that is no step of the plan is in its place.
fn keep_below_others(top: &Path, steps: &mut [PlanStep], reason: KeepReason) {
    let known: BTreeSet<RelPath> = steps.iter().map(|step| step.path.clone()).collect();
    let mut kinds: BTreeMap<RelPath, Option<Kind>> = BTreeMap::new();
    let mut is_other = |dir: RelPath| {
        let kind = |dir: &RelPath| stat_path(&top.join(dir.as_path())).ok()?.kind();
        let is_known = known.contains(&dir);
        !is_known
            && kinds.entry(dir).or_insert_with_key(kind).is_some_and(|it| it != Kind::Directory)
    };
    for step in steps.iter_mut().filter(|step| is_new(step)) {
        if step.path.above().any(&mut is_other) {
            step.action = Action::Keep(reason);
        }
    }
}

/// Whether a step puts something where nothing is.
fn is_new(step: &PlanStep) -> bool {
    step.now.is_none() && matches!(step.action, Action::Recreate | Action::Merge)
}

/// Adds the directories on the way to what comes back that neither tree tells of: what is ignored
/// is held without them.
fn add_parents(top: &Path, steps: &mut Vec<PlanStep>) {
    let known: BTreeSet<RelPath> = steps.iter().map(|step| step.path.clone()).collect();
    let stamp = |dir: &RelPath| stat_path(&top.join(dir.as_path())).ok();
    // One that goes may be what is there by another spelling of its name, where the file system takes that.
    let goes = steps
        .iter()
        .filter(|step| step.action == Action::Remove && step.now.is_some_and(Entry::is_directory));
    let going: BTreeSet<u64> =
        goes.filter_map(|step| stamp(&step.path)).map(|stamp| stamp.inode).collect();
    let stays = |dir: &RelPath| stamp(dir).is_some_and(|stamp| !going.contains(&stamp.inode));
    let mut missing = BTreeSet::new();
    for step in steps.iter().filter(|step| is_new(step)) {
        let mut above = step.path.parent();
        while let Some(dir) = above.filter(|dir| !known.contains(dir)) {
            if stays(&dir) || !missing.insert(dir.clone()) {
                break;
            }
            above = dir.parent();
        }
    }
    steps.extend(missing.into_iter().map(|path| PlanStep {
        path,
        action: Action::Recreate,
        then: Some(Entry::DIRECTORY),
        now: None,
        author: Author::Unknown,
    }));
    steps.sort_by(|a, b| a.path.cmp(&b.path));
}

/// What the system said about the paths a plan changes. What the scan left out is looked at now: it
/// will be held, too.
pub(super) fn seen_by_plan(
    project: &Project,
    plan: &RestorePlan,
    scan: &Scan,
) -> BTreeMap<RelPath, Stamp> {
    let top = Dir::open(project.root.path());
    let mut way = top.as_ref().ok().map(DirCursor::from);
    let mut look = |path: &RelPath| way.as_mut()?.stat(path).ok();
    let mut stamp = |path: &RelPath| scan.stamp(path).or_else(|| look(path));
    plan.deeds().filter_map(|step| Some((step.path.clone(), stamp(&step.path)?))).collect()
}

/// Whether nothing can be said of what is there. What was merely left out can be held by name.
pub(super) fn is_out_of_reach(reason: SkipReason) -> bool {
    matches!(
        reason,
        SkipReason::Unreadable
            | SkipReason::OtherFileSystem
            | SkipReason::OutOfTime
            | SkipReason::TooDeep
            | SkipReason::UnknownKind
    )
}

/// What a scan left out for some reasons.
pub(super) fn skipped(scan: &Scan, counts: impl Fn(SkipReason) -> bool) -> Vec<Skipped> {
    let mut skipped = Vec::new();
    scan.each(|dir, row| {
        if let Some(reason) = row.skipped.filter(|reason| counts(*reason)) {
            let path = crate::model::DirPath(dir.to_vec()).join(row.name);
            skipped.push(Skipped { path, reason, size: row.stamp.size });
        }
    });
    skipped
}

/// What the present scan could not look into.
pub(super) fn skipped_now(scan: &Scan) -> Vec<Skipped> {
    let mut skipped = skipped(scan, is_out_of_reach);
    skipped.extend(unread(scan, |path| path.below().map(RelPath::as_bytes)));
    skipped
}

/// What was named and cannot be read, where `place` tells the bytes of its path.
pub(super) fn unread(
    scan: &Scan,
    place: impl Fn(&VictimPath) -> Option<&[u8]>,
) -> impl Iterator<Item = Skipped> {
    let reason = SkipReason::Unreadable;
    let unread = scan.victims.iter().filter(move |victim| victim.found.skipped == Some(reason));
    unread.filter_map(move |victim| {
        let path = place(&victim.path)?.to_vec();
        Some(Skipped { path, reason, size: victim.found.stamp.size })
    })
}
