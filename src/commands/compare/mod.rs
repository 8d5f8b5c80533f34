//! What differs between two checkpoints, or between a checkpoint and now, with the bytes of both
//! sides. Reads nothing that is equal.

mod content;
mod counts;
mod differing;

use std::{
    collections::{BTreeMap, BTreeSet},
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
    time::Instant,
};

use content::{FILE_MAX_BYTES, child_on_disk, limited, outside_on_disk};
pub(crate) use counts::Counts;
pub(crate) use differing::Differing;
use differing::{Where, drop_full_directories};

use super::Project;
use crate::{
    attribution,
    error::Result,
    fs::Dir,
    model::{
        By, Checkpoint, CheckpointId, ContentId, DirPath, Entry, Kind, RelPath, SkipReason,
        Skipped, Tree,
    },
    plan::{ByPath, Change, Picked},
    process::Process,
    project,
    restore::{self, PathContent, StepChanges, is_state},
    scan::{Scan, VictimDepth},
    snapshot,
    store::{self, ContentSource},
    ui::{DiffOptions, FileDiff, LineCounts},
};

/// What differs, and where the bytes are.
pub(crate) struct Comparison<'a> {
    project: &'a Project,
    /// The earlier side.
    from: CheckpointId,
    /// Whether the later side is what is on the disk now.
    is_now: bool,
    /// Every path that differs, the outside ones behind those in the root, and repositories last.
    pub(crate) found: Vec<Differing>,
    /// What the earlier side did not hold, and is gone or changed since.
    pub(crate) unheld: Vec<Skipped>,
    /// Where those that are gone from their places seem to be now.
    pub(crate) moved: BTreeMap<Vec<u8>, PathBuf>,
    /// Bytes that no checkpoint holds, by their names in `found`.
    contents: BTreeMap<ContentId, Vec<u8>>,
}

impl<'a> Comparison<'a> {
    /// From one of `all` checkpoints, which are given newest first and each with the turn that uses it, to
    /// another. What either left out is no difference.
    ///
    /// # Errors
    ///
    /// Fails if either cannot be read.
    pub(crate) fn between(
        project: &'a Project,
        all: &[Checkpoint],
        from: &Checkpoint,
        to: &Checkpoint,
    ) -> Result<Self> {
        let then = project.tree_among(all, from, project::LaterTurns::Gone)?.tree;
        let later = project.store.tree(to.id)?;
        Self::between_states(project, (from, &then), (to, &later))
    }

    /// The same of states with these files, that are told from checkpoints.
    ///
    /// # Errors
    ///
    /// Fails if either cannot be read.
    pub(crate) fn between_states(
        project: &'a Project,
        (from, then): (&Checkpoint, &Tree),
        (to, later): (&Checkpoint, &Tree),
    ) -> Result<Self> {
        let mut made = Self::of_trees(project, from.id, (then, later), false)?;
        if to.completeness.is_whole() {
            made.add_repositories(Some(to.id));
        }
        made.found.retain(|differing| match (differing.before, differing.after) {
            (None, _) => !was_skipped(from, differing),
            (_, None) => !was_skipped(to, differing),
            (Some(_), Some(_)) => true,
        });
        let later_out = ByPath::of(&to.skipped);
        for out in restore::left_out(from, then) {
            let Ok(path) = RelPath::from_bytes(&out.path) else { continue };
            let there = store::entry_at(project.store.as_ref(), later, &path)?;
            let is_gone = is_told_of(out.reason)
                && later_out.covering(&path).is_none()
                && there.is_none_or(|there| there.kind == Kind::Link);
            made.unheld.extend(is_gone.then_some(out));
        }
        Ok(made)
    }

    /// From a checkpoint to what is there now. What the checkpoint left out is no difference.
    ///
    /// # Errors
    ///
    /// Fails if the checkpoint or the root cannot be read.
    pub(crate) fn until_now(
        project: &'a Project,
        process: &Process<'_>,
        from: &Checkpoint,
    ) -> Result<Self> {
        let then = project.tree_of(from, project::LaterTurns::Gone)?.tree;
        Self::state_until_now(project, process, (from, &then))
    }

    /// The same from a state with these files, that is told from a checkpoint.
    ///
    /// # Errors
    ///
    /// Fails if it or the root cannot be read.
    pub(crate) fn state_until_now(
        project: &'a Project,
        process: &Process<'_>,
        (from, then): (&Checkpoint, &Tree),
    ) -> Result<Self> {
        let scan = project.look(process, named_in(project, from, then))?;
        Self::with_scan(project, from, then, scan)
    }

    /// Changes that are known already, from a checkpoint on.
    pub(crate) fn of_changes(
        project: &'a Project,
        from: CheckpointId,
        (changes, outside): (&[Change], &[Change]),
    ) -> Self {
        let differing = |change: &Change, place| {
            let (before, after) = (change.before, change.after);
            Differing { place, before, after }
        };
        let below = changes.iter().map(|it| differing(it, Where::Below(it.path.clone())));
        let outside = outside.iter().map(|it| differing(it, Where::Outside(it.path.at_top())));
        let (found, unheld) = (below.chain(outside).collect(), Vec::new());
        let (moved, contents) = Default::default();
        Self { project, from, is_now: false, found, unheld, moved, contents }
    }

    /// How much calls changed, from a checkpoint on; `None` if the deadline comes first or something cannot be
    /// read.
    pub(crate) fn count_changes(
        project: &'a Project,
        from: CheckpointId,
        made: &StepChanges,
        deadline: Instant,
    ) -> Option<Counts> {
        let contents = made.contents.clone();
        let changes = Self::of_changes(project, from, (&made.changes, &made.outside));
        let counts = Self { contents, ..changes }.counts(deadline)?;
        let count = |changes: &[Change], unknown: &[RelPath]| {
            let known = changes.iter().map(|change| &change.path);
            known.chain(unknown).collect::<BTreeSet<_>>().len()
        };
        let files = count(&made.changes, &made.unknown);
        let files = files + count(&made.outside, &made.unknown_outside);
        let lines = counts.lines.filter(|_| made.unknown_paths().next().is_none());
        Some(Counts { files: files as u64, lines, ..counts })
    }

    /// Leaves out the files below the root, and what is known to have been changed outside.
    pub(crate) fn leave_out_files(&mut self, known: &StepChanges) {
        let outside = known.outside.iter().map(|change| &change.path).chain(&known.unknown_outside);
        let outside: BTreeSet<PathBuf> = outside.map(RelPath::at_top).collect();
        self.found.retain(|differing| match &differing.place {
            Where::Below(_) => false,
            Where::Outside(path) => !outside.contains(path),
            Where::Repository(..) => true,
        });
    }

    /// As [`Self::until_now`], but only if that is quickly done.
    pub(crate) fn quickly(
        project: &'a Project,
        process: &Process<'_>,
        from: &Checkpoint,
        deadline: Instant,
    ) -> Option<Self> {
        let then = project.tree_of(from, project::LaterTurns::Gone).ok()?.tree;
        let reach = project.reach(named_in(project, from, &then));
        let deadline = Some(deadline);
        let named = VictimDepth::Alone;
        let look =
            snapshot::ScanOptions { reach: &reach, settings: &project.settings, named, deadline };
        let scan = look.at(process, &project.state, project.store.root()).ok()?;
        if scan.partial || unread_bytes(&scan) > FILE_MAX_BYTES / 2 {
            return None;
        }
        Self::with_scan(project, from, &then, scan).ok()
    }

    fn with_scan(
        project: &'a Project,
        from: &Checkpoint,
        then: &Tree,
        mut scan: Scan,
    ) -> Result<Self> {
        let now = project.store.identify(&mut scan)?;
        let mut made = Self::of_trees(project, from.id, (then, &now), true)?;
        made.found.retain(|differing| differing.before.is_some() || !was_skipped(from, differing));
        let mut found = Vec::with_capacity(made.found.len());
        for mut differing in std::mem::take(&mut made.found) {
            if made.is_really_different(&scan, &mut differing)? {
                found.push(differing);
            }
        }
        made.found = found;
        made.add_repositories(None);
        made.unheld = restore::left_out(from, then);
        made.unheld.retain(|out| {
            let counts = out.reason.matters() || project.is_gone(out);
            is_told_of(out.reason) && counts && project.has_changed(from, out)
        });
        made.moved = restore::moved(project, &scan, (from, then), &made.unheld);
        Ok(made)
    }

    /// A file that today's walk leaves out, because it has become ignored or large, is not gone.
    fn is_really_different(&self, scan: &Scan, differing: &mut Differing) -> Result<bool> {
        let is_respelled = |path: &RelPath| scan.spelled(&self.project.root, path) != *path;
        match &differing.place {
            _ if differing.after.is_some() => return Ok(true),
            // What is there has another name, and that is new.
            Where::Below(path) if is_respelled(path) => return Ok(true),
            _ => (),
        }
        let new = self.there_now(&differing.place);
        let (kind, permissions) = match &new {
            PathContent::Nothing => return Ok(true),
            PathContent::File { permissions, .. } => (Kind::File, *permissions),
            PathContent::Link(_) => (Kind::Link, 0o777),
            PathContent::Other(kind) => (*kind, 0),
            PathContent::TooLarge => (Kind::File, 0),
        };
        differing.after = Some(Entry { kind, permissions, content: None, device: 0 });
        let old = self.stored(differing.before.as_ref())?;
        Ok(match (old.side(), new.side()) {
            (Some(old), Some(new)) => old != new,
            (_, _) => true,
        })
    }

    fn of_trees(
        project: &'a Project,
        from: CheckpointId,
        (then, later): (&Tree, &Tree),
        is_now: bool,
    ) -> Result<Self> {
        let source = if is_now { ContentSource::Disk } else { ContentSource::Saved };
        let changes = store::changes(project.store.as_ref(), then, later, source)?;
        let below = changes.into_iter().map(|change| Differing {
            place: Where::Below(change.path),
            before: change.before,
            after: change.after,
        });
        // A later checkpoint that does not hold a path outside says nothing about it.
        let outside = then.outside.iter().filter_map(|(path, before)| {
            let after = later.outside.get(path);
            (after != Some(before) && (is_now || after.is_some())).then(|| Differing {
                place: Where::Outside(path.clone()),
                before: Some(*before),
                after: after.copied(),
            })
        });
        let came = |path: &PathBuf, entry: &Entry| {
            let mut inside = later.outside.range(path.clone()..).skip(1);
            let is_full = inside.next().is_some_and(|(inside, _)| inside.starts_with(path));
            !then.outside.contains_key(path) && (entry.kind != Kind::Directory || !is_full)
        };
        let new = later.outside.iter().filter(|(path, entry)| is_now && came(path, entry));
        let new = new.map(|(path, after)| Differing {
            place: Where::Outside(path.clone()),
            before: None,
            after: Some(*after),
        });
        let mut found: Vec<Differing> = below.collect();
        drop_full_directories(&mut found);
        found.extend(outside.chain(new));
        let (unheld, moved, contents) = Default::default();
        Ok(Self { project, from, is_now, found, unheld, moved, contents })
    }

    /// Adds the repositories of the earlier side that are gone or others at the later one: `None` for
    /// now.
    fn add_repositories(&mut self, later: Option<CheckpointId>) {
        let root = self.project.root.path();
        let others = self.project.other_repositories(self.from, later);
        self.found.extend(others.into_iter().map(|(place, why)| Differing {
            before: Some(Entry::DIRECTORY),
            after: why.as_ref().map(|_| Entry::DIRECTORY),
            place: Where::Repository(place.strip_prefix(root).unwrap_or(&place).to_owned(), why),
        }));
    }

    /// Keeps only what the user picked.
    pub(crate) fn pick(&mut self, picked: &Picked) {
        let has_outside =
            |path: &Path| RelPath::from_top(path).is_ok_and(|path| picked.has_outside(&path));
        self.found.retain(|differing| match &differing.place {
            Where::Below(path) => picked.has(path),
            Where::Outside(path) => has_outside(path),
            Where::Repository(path, _) => match RelPath::from_bytes(path.as_os_str().as_bytes()) {
                Ok(path) => picked.has(&path),
                Err(_) => *picked == Picked::All || has_outside(path),
            },
        });
        self.unheld.retain(|out| {
            RelPath::from_bytes(&out.path).map_or(*picked == Picked::All, |path| picked.has(&path))
        });
    }

    /// Leaves out what is known to be other people's work: `by` is the author of the earlier side, `log` says
    /// what was seen until the later one.
    pub(crate) fn leave_out_others(
        &mut self,
        from: &Checkpoint,
        by: Option<&By>,
        log: &[attribution::LogLine],
    ) {
        let Some(by) = by else { return };
        let name = attribution::session_name(by.agent, &by.session);
        let known = |side| attribution::AgentHistory::since(from, Some(&name), log, side);
        let (below, outside) =
            (known(attribution::PathSide::Root), known(attribution::PathSide::Outside));
        let mut found = std::mem::take(&mut self.found);
        found.retain(|differing| {
            let later =
                differing.after.map(|entry| LaterSide { comparison: self, differing, entry });
            let later = later.as_ref().map(|later| later as &dyn attribution::CurrentState);
            match &differing.place {
                Where::Below(path) => below.may_be_agents(path, later),
                Where::Outside(path) => {
                    RelPath::from_top(path).is_ok_and(|path| outside.may_be_agents(&path, later))
                }
                // The log knows none by an absolute path.
                Where::Repository(path, _) => RelPath::from_bytes(path.as_os_str().as_bytes())
                    .map_or(true, |path| below.may_be_agents(&path, later)),
            }
        });
        self.found = found;
    }

    /// Counts files and lines; `None` if the deadline comes first or something cannot be read.
    pub(crate) fn counts(&self, deadline: Instant) -> Option<Counts> {
        let mut files = self.unheld.len() as u64;
        let repositories = self.found.iter().filter(|it| it.is_repository()).count() as u64;
        let mut all = LineCounts::default();
        for differing in self.found.iter().filter(|differing| differing.is_file()) {
            if Instant::now() > deadline {
                return None;
            }
            files += 1;
            all += self.lines(differing, Some(deadline)).ok()?.unwrap_or_default();
        }
        Some(Counts { files, repositories, lines: self.unheld.is_empty().then_some(all) })
    }

    /// How many lines of one path came and went, if it has lines.
    ///
    /// # Errors
    ///
    /// Fails if the bytes cannot be read.
    pub(crate) fn lines(
        &self,
        differing: &Differing,
        deadline: Option<Instant>,
    ) -> Result<Option<LineCounts>> {
        let (old, new) = self.sides(differing)?;
        let name = differing.name();
        Ok(match (old.side(), new.side()) {
            (Some(old), Some(new)) => FileDiff { path: &name, old, new }.lines(deadline),
            (_, _) => None,
        })
    }

    /// The difference at one path, in full.
    ///
    /// # Errors
    ///
    /// Fails if the bytes cannot be read.
    pub(crate) fn show(&self, differing: &Differing, look: DiffOptions) -> Result<String> {
        let (old, new) = self.sides(differing)?;
        let name = differing.name();
        if let Where::Repository(_, why) = &differing.place {
            let name = crate::ui::escape(&name);
            let (what, back) = match why {
                Some(why) => (crate::ui::escape(why.as_bytes()), "back the one that was there"),
                None => ("gone".into(), "it back"),
            };
            return Ok(if self.is_now {
                let id = self.from.short();
                let cd_prefix = self.project.cd_prefix();
                format!("{name}: {what}; `{cd_prefix}beforehand restore {id}` brings {back}\n")
            } else {
                format!("{name}: {what}\n")
            });
        }
        if let (Some(before), Some(after)) = (differing.before, differing.after)
            && before.kind == after.kind
            && !before.kind.has_content()
        {
            let (before, after) = (before.permissions, after.permissions);
            return Ok(format!("{}: mode {before:o} → {after:o}\n", crate::ui::escape(&name)));
        }
        Ok(match (old.side(), new.side()) {
            (Some(old), Some(new)) => FileDiff { path: &name, old, new }.show(look),
            (_, _) => format!("{}: too large to compare\n", crate::ui::escape(&name)),
        })
    }

    fn sides(&self, differing: &Differing) -> Result<(PathContent, PathContent)> {
        Ok((self.stored(differing.before.as_ref())?, self.later(differing)?))
    }

    fn later(&self, differing: &Differing) -> Result<PathContent> {
        match differing.after {
            Some(_) if self.is_now => Ok(self.there_now(&differing.place)),
            after => self.stored(after.as_ref()),
        }
    }

    fn there_now(&self, place: &Where) -> PathContent {
        match place {
            Where::Below(path) => self.on_disk(path),
            Where::Outside(path) => outside_on_disk(path),
            Where::Repository(..) => PathContent::Nothing,
        }
    }

    fn stored(&self, entry: Option<&Entry>) -> Result<PathContent> {
        let Some(entry) = entry else { return Ok(PathContent::Nothing) };
        let content = match (entry.kind, entry.content) {
            (Kind::File | Kind::Link, Some(content)) => content,
            (kind, _) => return Ok(PathContent::Other(kind)),
        };
        if let Some(bytes) = self.contents.get(&content.id) {
            let (bytes, permissions) = (bytes.clone(), entry.permissions);
            return Ok(match entry.kind {
                Kind::Link => PathContent::Link(bytes),
                _ => PathContent::File { bytes, permissions },
            });
        }
        let bytes = limited(self.project.store.open(&content)?)
            .map_err(crate::error::Error::io("read from the store of", self.project.root.path()))?;
        Ok(match (bytes, entry.kind) {
            (None, _) => PathContent::TooLarge,
            (Some(text), Kind::Link) => PathContent::Link(text),
            (Some(bytes), _) => PathContent::File { bytes, permissions: entry.permissions },
        })
    }

    /// What is there now, whatever the scan left out. Never through a symlink.
    fn on_disk(&self, path: &RelPath) -> PathContent {
        let parent = Dir::open(self.project.root.path()).and_then(|root| root.parent_of(path));
        parent.map_or(PathContent::Nothing, |parent| child_on_disk(&parent, path.name()))
    }
}

/// The later side of a difference, to be compared with what an agent left there.
struct LaterSide<'a> {
    comparison: &'a Comparison<'a>,
    differing: &'a Differing,
    entry: Entry,
}

impl attribution::CurrentState for LaterSide<'_> {
    fn is(&self, state: &attribution::PathState) -> bool {
        is_state(&self.entry, state, || match self.comparison.later(self.differing).ok()? {
            PathContent::File { bytes, .. } | PathContent::Link(bytes) => Some(bytes),
            PathContent::Nothing | PathContent::Other(_) | PathContent::TooLarge => None,
        })
    }

    fn is_directory(&self) -> bool {
        self.entry.kind == Kind::Directory
    }

    /// Of an agent that never says when a call is done, everything counts.
    fn is_likely(&self) -> bool {
        true
    }

    /// Of a call that was cut off, everything does.
    fn was_at(&self, _look: CheckpointId) -> bool {
        false
    }
}

/// What a checkpoint holds for its own sake is looked at for its own sake.
fn named_in(project: &Project, from: &Checkpoint, then: &Tree) -> Vec<PathBuf> {
    let below = then.held_by_name().map(|path| project.root.join(path));
    below.chain(restore::outside_paths(project, from, then)).collect()
}

fn unread_bytes(scan: &Scan) -> u64 {
    let found = scan.fresh.values().flat_map(|fresh| &fresh.found);
    found.filter(|found| found.is_unread()).map(|found| found.stamp.size).sum()
}

/// Whether something that was left out is worth a word where it is gone: also what can be made again.
fn is_told_of(reason: SkipReason) -> bool {
    reason.matters() || reason == SkipReason::MadeAgain
}

fn was_skipped(from: &Checkpoint, differing: &Differing) -> bool {
    let name = differing.name();
    from.skipped.iter().any(|skipped| DirPath(skipped.path.clone()).contains(&name))
}
