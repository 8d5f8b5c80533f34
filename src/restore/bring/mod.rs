//! Brings what a fork has changed back into its project: a three-way merge for each path, from what the
//! fork began with to what is in either now. The plan that comes of it is carried out as any restore.

mod deed;
mod fork_side;
mod outcomes;
mod renames;

use std::{
    collections::{BTreeMap, BTreeSet},
    io::Read,
    path::PathBuf,
};

use super::{
    Restore,
    brought::Brought,
    comparison::{CurrentRoot, make_executable, seen_by_plan},
    prepare::{keep_around_skipped, left_in_replaced},
    prepared::Prepared,
    repositories::keep_in_git_dirs,
};
use crate::{
    attribution::PathSide,
    error::{Error, Result},
    forked::ForkEntry,
    fs::stat_path,
    model::{Checkpoint, Content, Kind, RelPath},
    plan::{self, Options, Past, Picked},
    process::Process,
    project::Project,
    restore_log::BroughtCheckpoint,
    state::RootState,
    store::repository,
    ui,
};
use fork_side::ForkSide;
use outcomes::Bring;

/// A fork that is brought back.
pub(crate) struct Brings {
    /// Its entry.
    pub(crate) entry: ForkEntry,
    own: RootState,
    pub(super) fork: Project,
    /// Its first checkpoint: what it began with.
    base: Checkpoint,
}

impl Brings {
    /// Opens a fork.
    ///
    /// # Errors
    ///
    /// Fails if it is gone or unfinished, or if its first checkpoint cannot be read.
    pub(crate) fn open(process: &Process<'_>, entry: ForkEntry, own: RootState) -> Result<Self> {
        let dir = ui::escape_path(&entry.dir).into_owned();
        let name = ui::quote(entry.name().as_encoded_bytes());
        let drops = || format!("nothing was changed; `beforehand fork --drop {name}` drops it");
        if !entry.is_there() {
            return Err(Error::other(format!("the fork `{dir}` is gone"), drops()));
        }
        let Some(base) = entry.base else {
            return Err(Error::other(format!("the fork `{dir}` was never finished"), drops()));
        };
        let fork = Project::open(process, Some(&entry.dir))?;
        if fork.root.path() != entry.dir {
            let hint = "nothing was changed; a repository around it hides it";
            return Err(Error::other(format!("`{dir}` is no root of its own any more"), hint));
        }
        let base = fork.find(&base.to_string())?;
        Ok(Self { entry, own, fork, base })
    }

    /// What it began with.
    pub(crate) fn base(&self) -> &Checkpoint {
        &self.base
    }

    /// The commits, branches and stashes that were made in it, by repository.
    pub(crate) fn commits(&self) -> Vec<repository::Losing> {
        let record = self.fork.record_of(self.base.id);
        let root = self.fork.root.path();
        record.map_or_else(|_| Vec::new(), |it| repository::beyond(&self.fork.state, root, &it))
    }

    /// A checkpoint of it, as the restore log names it.
    fn checkpoint(&self, of: &Checkpoint) -> BroughtCheckpoint {
        BroughtCheckpoint { fork: self.fork.root.path().to_owned(), id: of.id }
    }
}

/// Opens the fork that an interrupted restore was to bring back.
///
/// # Errors
///
/// Fails if the fork or its checkpoint cannot be read.
pub(super) fn reopen(process: &Process<'_>, of: &BroughtCheckpoint) -> Result<Project> {
    let fork = Project::open(process, Some(&of.fork))?;
    fork.tree_by_id(of.id)?;
    Ok(fork)
}

/// Opens a content that a project or a fork of it has.
pub(super) fn open_content(
    project: &Project,
    fork: &Project,
    content: &Content,
) -> Result<Box<dyn Read>> {
    let has = project.store.has(content);
    if has { project.store.open(content) } else { fork.store.open(content) }
}

impl Restore<'_> {
    /// Plans to bring a fork back.
    pub(super) fn prepare_brought(
        self,
        process: &Process<'_>,
        brings: &Brings,
    ) -> Result<Prepared> {
        let Self { project, request, .. } = self;
        let side = ForkSide::look(process, project, brings, &request.picked)?;
        let here = CurrentRoot::look(process, project, side.there_in(project))?;
        let bring = Bring::new(project, brings, &side, &here, request.markers);
        let mut found = bring.all()?;
        let mut skipped_now = here.skipped.clone();
        skipped_now.extend(left_in_replaced(&found.changes, &here.scan));
        let goes = found.directories_that_go();
        let past = Past {
            authors: &found.authors,
            edited: &BTreeSet::new(),
            others: &BTreeSet::new(),
            merges: &found.merges.files,
            ignored: &BTreeSet::new(),
            skipped_then: &[],
            skipped_now: &skipped_now,
            repositories: &repositories_in(project, &here, &goes),
            kept: &found.kept,
        };
        let options = Options { merge: true, ..Options::default() };
        let changes = std::mem::take(&mut found.changes);
        let mut plan = plan::restore(brings.base.id, changes, options, &Picked::All, &past);
        keep_in_git_dirs(project, PathSide::Root, false, &mut plan.steps);
        keep_around_skipped(&mut plan.steps, &here.scan);
        make_executable(project.root.path(), &mut plan.steps, request.in_the_way());
        let seen = seen_by_plan(project, &plan, &here.scan);
        let ForkSide { stays, theirs, unpicked, .. } = side;
        let old_names = found.old_names;
        let brought = Brought { stays, theirs, unpicked, old_names, of: None };
        Ok(Prepared {
            seen,
            marked: found.merges.marked,
            brought: Some(brought),
            ..Prepared::of(plan, here.stored_scan)
        })
    }
}

/// The repositories of the project in directories that would go: they are in no tree, and stay.
fn repositories_in(
    project: &Project,
    here: &CurrentRoot,
    goes: &[RelPath],
) -> BTreeMap<RelPath, Kind> {
    let place = |path: &PathBuf| {
        let rel = project.root.relative(path).ok()?;
        let kind = stat_path(path).ok()?.kind()?;
        goes.iter().any(|dir| rel.is_within(dir)).then_some((rel, kind))
    };
    here.scan.repositories.iter().filter_map(place).collect()
}
