//! The files right before a step of a turn, put together from the last checkpoint before it, the log
//! and what was seen later.

use std::{
    cell::{OnceCell, RefCell},
    collections::{BTreeMap, BTreeSet},
    ops::RangeInclusive,
    os::unix::ffi::OsStringExt,
    rc::Rc,
};

use sha2::{Digest, Sha256};

use super::{
    super::{
        content::bytes_then,
        content::entry_at,
        version::{Version, VersionEntry},
    },
    FileHistory, TurnStep, TurnSteps,
};
use crate::{
    attribution::PathSide,
    error::{Error, Result},
    model::{Checkpoint, CheckpointId, ContentId, Entry, Kind, Reason, RelPath, Tree},
    plan::{Change, KeepReason, Merged, PlanStep, RestorePlan},
    process::Process,
    project::{LaterTurns, Project, Then},
    store::{self, ContentSource},
};

/// The files right before a step.
pub(crate) struct StepState {
    /// The number of the turn, and that of the step in it.
    pub(crate) number: (usize, usize),
    /// When the step began, in nanoseconds since 1970.
    pub(crate) at: i64,
    /// The checkpoint of the turn that it is told from.
    pub(crate) base: Checkpoint,
    /// What was there, as [`Project::tree_of`] tells it of a checkpoint. What differs from the checkpoint is
    /// in [`Self::contents`].
    pub(crate) then: Then,
    /// The bytes of files that differ from the checkpoint, by their names in `then`.
    pub(crate) contents: BTreeMap<ContentId, Vec<u8>>,
    /// What differs from the checkpoint, by path.
    pub(crate) differs: BTreeMap<RelPath, Option<Entry>>,
    /// Paths of which it cannot be told what was there; `then` has there what the checkpoint has.
    pub(crate) gaps: BTreeMap<RelPath, StepGap>,
    /// What calls had done meanwhile outside the project.
    pub(crate) outside: OutsideOfStep,
}

/// What differs outside the project from the checkpoint that a step is told from. Paths begin at the top of the
/// file system.
#[derive(Default)]
pub(crate) struct OutsideOfStep {
    /// What differs, or cannot be told.
    pub(crate) paths: BTreeSet<RelPath>,
    /// What of it cannot be told, and why.
    pub(crate) gaps: BTreeMap<RelPath, StepGap>,
}

/// Why it cannot be told what was at a path before a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StepGap {
    /// It was changed around then, and it is not known whether before the step or after it.
    When,
    /// Its bytes are not held.
    Bytes,
}

impl StepGap {
    /// It in words.
    pub(crate) fn words(self) -> &'static str {
        match self {
            Self::When => "changed around that time; whether before this step is not known",
            Self::Bytes => "what it was is not held",
        }
    }
}

/// All of the root as it was seen at a place in the log.
struct Look {
    order: usize,
    tree: Rc<Tree>,
}

/// The looks at a root, oldest first, and what changed between each and the next.
#[derive(Default)]
pub(super) struct Looks {
    all: OnceCell<Vec<(usize, CheckpointId)>>,
    now: OnceCell<Option<Rc<Tree>>>,
    changed: RefCell<ChangedPaths>,
}

/// The paths that differ, by the places of both looks.
type ChangedPaths = BTreeMap<(usize, usize), Rc<BTreeSet<RelPath>>>;

impl TurnSteps<'_> {
    /// The files right before a step.
    ///
    /// # Errors
    ///
    /// Fails if nothing is known of them: the checkpoint before the step is partial or gone, a part of the
    /// log cannot be read, or the root cannot be read.
    pub(crate) fn state(&self, process: &Process<'_>, step: &TurnStep) -> Result<StepState> {
        let project = self.history.project;
        let (turn, number) = (self.turn, step.number);
        let at = step.at.timestamp_nanos_opt().unwrap_or(0);
        let number = (turn, number);
        let (contents, differs, gaps, outside) = Default::default();
        if let Some(base) = self.checkpoint(step) {
            let then = project.tree_of(&base, LaterTurns::Gone)?;
            return Ok(StepState { number, at, base, then, contents, differs, gaps, outside });
        }
        let (base, began) = self.base_of(step)?;
        let then = project.tree_of(&base, LaterTurns::Gone)?;
        let mut state = StepState { number, at, base, then, contents, differs, gaps, outside };
        for path in self.candidates(process, step, began)? {
            let states = self.states(&path);
            match self.history.before(&path, &states, step.call) {
                Err(gap) => drop(state.gaps.insert(path, gap)),
                Ok(there) => self.put(&mut state, path, &there)?,
            }
        }
        state.overlay(project)?;
        if let Some(history) = self.history.outside() {
            state.put_outside(history, step, began);
        }
        Ok(state)
    }

    /// The last checkpoint of the turn that was exact before a step, and where that was.
    pub(super) fn base_of(&self, step: &TurnStep) -> Result<(Checkpoint, usize)> {
        let name = format!("{}.{}", self.turn, step.number);
        let refuse = |why: &str| {
            let hint = format!("`beforehand restore {}` goes back to before the turn", self.turn);
            Err(Error::other(
                format!("what was there before step {name} is not known: {why}"),
                hint,
            ))
        };
        if self.history.log.is_lost {
            return refuse("a part of the log of calls cannot be read");
        }
        let mut earlier = self.steps[..step.number - 1].iter().rev();
        let Some(exact) = earlier.find(|step| self.checkpoint(step).is_some()) else {
            return refuse("no checkpoint of the turn before it is left");
        };
        match self.checkpoint(exact) {
            Some(base) if !base.completeness.is_whole() => {
                refuse(&format!("checkpoint {} before it is partial", base.id.short()))
            }
            Some(base) => Ok((base, self.history.calls[exact.call].began)),
            None => refuse("no checkpoint of the turn before it is left"),
        }
    }

    /// The paths that may have been something else before a step than in the checkpoint.
    fn candidates(
        &self,
        process: &Process<'_>,
        step: &TurnStep,
        began: usize,
    ) -> Result<BTreeSet<RelPath>> {
        let step_began = self.history.calls[step.call].began;
        let mut found = BTreeSet::new();
        let mut last: Option<Look> = None;
        for (order, id) in self.looks().iter().filter(|(order, _)| *order >= began) {
            let Some(tree) = self.history.source.tree(*id) else { continue };
            let look = Look { order: *order, tree };
            if let Some(last) = &last {
                found.extend(self.changed(last, &look)?.iter().cloned());
            }
            last = Some(look);
            if *order > step_began {
                break;
            }
        }
        let is_seen_again = last.as_ref().is_some_and(|last| last.order > step_began);
        if let Some(last) = last.filter(|_| !is_seen_again) {
            let now = self.now(process)?;
            found.extend(
                self.changed(&last, &Look { order: usize::MAX, tree: now })?.iter().cloned(),
            );
        }
        found.extend(self.history.seen_between(began..=step_began).cloned());
        Ok(found)
    }

    /// The paths that were changed after a step had ended, while something that it started may have gone on,
    /// by that or by the user.
    ///
    /// # Errors
    ///
    /// Fails if the store cannot be read.
    pub(super) fn changed_later(&self, step: &TurnStep) -> Result<BTreeSet<RelPath>> {
        let history = &self.history;
        let ran = &history.calls[step.call];
        let Some(until) = ran.background_until else { return Ok(BTreeSet::new()) };
        let mut found: BTreeSet<RelPath> =
            history.seen_between(ran.over..=until).cloned().collect();
        for pair in self.looks().windows(2) {
            if pair[1].0 <= ran.over || pair[0].0 >= until {
                continue;
            }
            if let [Some(from), Some(to)] =
                [pair[0], pair[1]].map(|(order, id)| self.look_at(order, id))
            {
                found.extend(self.changed(&from, &to)?.iter().cloned());
            }
        }
        found.retain(|path| {
            self.states(path).iter().any(|state| {
                let is_then = state.order > ran.over && state.known_until < until;
                is_then && state.origin.may_be_in_background(ran.turn)
            })
        });
        Ok(found)
    }

    fn look_at(&self, order: usize, id: CheckpointId) -> Option<Look> {
        Some(Look { order, tree: self.history.source.tree(id)? })
    }

    /// When all of the root was seen, and which checkpoint has it as it was.
    fn looks(&self) -> &[(usize, CheckpointId)] {
        self.looks.all.get_or_init(|| {
            let history = &self.history;
            let exact = history.log.logged_calls.iter().filter_map(|caller| {
                let one =
                    history.checkpoint(caller.of).filter(|one| one.completeness.is_whole())?;
                history.is_exact(caller, one).then_some((caller.began, one.id))
            });
            let is_found = |one: &&Checkpoint| one.cause.reason == Reason::BeforeRestore;
            let restores = history.checkpoints.iter().filter(is_found);
            let restores = restores.filter(|one| one.completeness.is_whole());
            let mut all: Vec<_> =
                exact.chain(restores.map(|one| (history.log.position_of(one), one.id))).collect();
            all.sort_by_key(|(order, _)| *order);
            all
        })
    }

    fn changed(&self, from: &Look, to: &Look) -> Result<Rc<BTreeSet<RelPath>>> {
        let key = (from.order, to.order);
        if let Some(known) = self.looks.changed.borrow().get(&key) {
            return Ok(Rc::clone(known));
        }
        let is_now = to.order == usize::MAX;
        let source = if is_now { ContentSource::Disk } else { ContentSource::Saved };
        let store = self.history.project.store.as_ref();
        let changes = store::changes(store, &from.tree, &to.tree, source)?;
        let paths = Rc::new(changes.into_iter().map(|change| change.path).collect::<BTreeSet<_>>());
        self.looks.changed.borrow_mut().insert(key, Rc::clone(&paths));
        Ok(paths)
    }

    /// All of the root as it is now.
    fn now(&self, process: &Process<'_>) -> Result<Rc<Tree>> {
        if let Some(Some(now)) = self.looks.now.get() {
            return Ok(Rc::clone(now));
        }
        let project = self.history.project;
        let mut scan = project.look(process, Vec::new())?;
        let now = Rc::new(project.store.identify(&mut scan)?);
        let _first = self.looks.now.set(Some(Rc::clone(&now)));
        Ok(now)
    }

    /// Puts what was at a path into a state, if it is held.
    fn put(&self, state: &mut StepState, path: RelPath, there: &Version) -> Result<()> {
        let project = self.history.project;
        let base = entry_at(project, &state.then.tree, &path, PathSide::Root)?;
        let held = base.map(VersionEntry::held);
        if self.history.source.is_same(&path, &held, there) {
            return Ok(());
        }
        match self.history.entry(&path, there, &mut state.contents) {
            // Its permissions were not looked at.
            Ok(Some(entry)) if there.as_ref().is_some_and(|it| it.permissions.is_none()) => {
                let permissions = base.map_or(entry.permissions, |base| base.permissions);
                state.differs.insert(path, Some(Entry { permissions, ..entry }));
            }
            Ok(entry) => drop(state.differs.insert(path, entry)),
            Err(gap) => drop(state.gaps.insert(path, gap)),
        }
        Ok(())
    }
}

impl FileHistory<'_> {
    /// The paths at which something was seen at some places of the log.
    fn seen_between(&self, places: RangeInclusive<usize>) -> impl Iterator<Item = &RelPath> {
        let seen =
            self.log.sights.iter().filter(move |(_, sights)| {
                sights.iter().any(|sight| places.contains(&sight.order))
            });
        seen.map(|(path, _)| path)
    }
}

impl StepState {
    /// What of it is not held, and why: what cannot be told, and what the checkpoint left out. Paths are relative
    /// to the root, or absolute.
    pub(crate) fn not_held(&self) -> impl Iterator<Item = (Vec<u8>, &'static str)> {
        let gaps = self.gaps.iter().map(|(path, gap)| (path.as_bytes().to_vec(), gap.words()));
        let outside = self.outside.gaps.iter();
        let outside =
            outside.map(|(path, gap)| (path.at_top().into_os_string().into_vec(), gap.words()));
        let left_out = self.base.skipped.iter().filter(|skipped| skipped.reason.matters());
        let left_out = left_out.map(|skipped| (skipped.path.clone(), skipped.reason.words()));
        gaps.chain(outside).chain(left_out)
    }

    /// What stays as it is, and why.
    pub(in crate::restore) fn kept(&self) -> BTreeMap<RelPath, KeepReason> {
        kept(&self.gaps)
    }

    /// The same outside the project.
    pub(in crate::restore) fn kept_outside(&self) -> BTreeMap<RelPath, KeepReason> {
        kept(&self.outside.gaps)
    }

    /// Puts what calls had left outside the project into it.
    fn put_outside(&mut self, history: &FileHistory<'_>, step: &TurnStep, began: usize) {
        let step_began = history.calls[step.call].began;
        for path in history.seen_between(began..=step_began) {
            let there = history.before(path, &history.states(path), step.call);
            let entry = there.and_then(|there| history.entry(path, &there, &mut self.contents));
            let all = &mut self.then.tree.outside;
            match entry {
                Ok(Some(entry)) => drop(all.insert(path.at_top(), entry)),
                Ok(None) => drop(all.remove(&path.at_top())),
                Err(gap) => drop(self.outside.gaps.insert(path.clone(), gap)),
            }
            self.outside.paths.insert(path.clone());
        }
    }

    /// Adds to the changes until now what stays as it is, so that it is named.
    pub(in crate::restore) fn add_gaps(
        &self,
        project: &Project,
        now: &Tree,
        changes: &mut Vec<Change>,
    ) {
        for path in self.gaps.keys() {
            let Err(at) = changes.binary_search_by(|change| change.path.cmp(path)) else {
                continue;
            };
            let entry = |tree| entry_at(project, tree, path, PathSide::Root).ok().flatten();
            let (before, after) = (entry(&self.then.tree), entry(now));
            changes.insert(at, Change { path: path.clone(), before, after });
        }
    }

    /// The files that a plan puts back and that are not what the checkpoint has there.
    pub(in crate::restore) fn files(
        &self,
        project: &Project,
        plan: &RestorePlan,
    ) -> BTreeMap<RelPath, Merged> {
        let is_put = |step: &&PlanStep| step.comes_back() && self.differs.contains_key(&step.path);
        let files = plan.deeds().filter(is_put).filter_map(|step| {
            let entry = step.then.filter(|then| then.kind == Kind::File)?;
            let bytes = bytes_then(project, &entry)?;
            Some((step.path.clone(), Merged { bytes, permissions: entry.permissions }))
        });
        files.collect()
    }

    /// Makes the tree of the checkpoint that of the step.
    fn overlay(&mut self, project: &Project) -> Result<()> {
        let tree = &mut self.then.tree;
        // Parents come before what is in them.
        for (path, entry) in &self.differs {
            let was = entry_at(project, tree, path, PathSide::Root)?;
            let was_directory = was.is_some_and(Entry::is_directory);
            let stays = entry.is_some_and(|entry| entry.is_directory() == was_directory);
            if was.is_some() && !stays {
                remove(project, tree, path)?;
            }
            if let Some(entry) = entry {
                let content = was.filter(|_| was_directory && stays).and_then(|was| was.content);
                let entry = Entry { content: entry.content.or(content), ..*entry };
                tree.listed.insert(path.clone());
                tree.overlay.insert(path.clone(), entry);
            }
        }
        Ok(())
    }
}

fn kept(gaps: &BTreeMap<RelPath, StepGap>) -> BTreeMap<RelPath, KeepReason> {
    let kept = |gap: &StepGap| match gap {
        StepGap::When => KeepReason::BeforeUnknown,
        StepGap::Bytes => KeepReason::BeforeUnheld,
    };
    gaps.iter().map(|(path, gap)| (path.clone(), kept(gap))).collect()
}

/// Takes a path out of a tree, with everything below it.
fn remove(project: &Project, tree: &mut Tree, path: &RelPath) -> Result<()> {
    tree.overlay.retain(|other, _| !other.is_within(path));
    let Some(top) = tree.top else { return Ok(()) };
    let names: Vec<&[u8]> = path.names().collect();
    let mut way = Vec::new();
    let mut here = top;
    for name in &names {
        let directory = match tree.unsaved.get(&here) {
            Some(directory) => directory.clone(),
            None => project.store.directory(&here)?,
        };
        let Some(entry) = directory.get(*name).copied() else { return Ok(()) };
        way.push((here, directory));
        if let Some(content) = entry.content.filter(|_| entry.is_directory()) {
            here = content.id;
        }
    }
    let mut new: Option<ContentId> = None;
    for ((id, mut directory), name) in way.into_iter().zip(&names).rev() {
        match new {
            None => drop(directory.remove(*name)),
            Some(new) => {
                if let Some(content) = directory.get_mut(*name).and_then(|it| it.content.as_mut()) {
                    content.id = new;
                }
            }
        }
        // A name that no stored directory has.
        let name = [id.to_string().as_bytes(), b" without ", path.as_bytes()].concat();
        let id = ContentId::new(&Sha256::digest(name));
        tree.unsaved.insert(id, directory);
        new = Some(id);
    }
    tree.top = new;
    Ok(())
}
