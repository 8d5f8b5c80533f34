//! `beforehand fork --keep`: brings what a fork has changed back into its project.

use std::path::Path;

use super::{ForkArgs, find};
use crate::{
    commands::{
        Project,
        restore::{Consent, carry_out, picked},
    },
    error::{Error, Result},
    forked::{self, ForkEntry},
    plan::Options,
    process::{Exit, Process},
    restore::{Brings, Restore, RestoreRequest, RestoreSource},
    state::RootState,
    ui,
};

pub(super) fn run(
    process: &mut Process<'_>,
    here: Project,
    given: Option<&Path>,
    args: &ForkArgs,
) -> Result<Exit> {
    // A path is seen from where the user is: in the fork, or in its project.
    let picked = picked(process, &here, &args.paths)?;
    let (project, entry, own) = fork_and_project(process, here, given)?;
    let brings = Brings::open(process, entry, own)?;
    let base = brings.base().clone();
    let request = RestoreRequest {
        options: Options { merge: true, ..Options::default() },
        markers: args.merge,
        ..RestoreRequest::of("keep", RestoreSource::Fork(Box::new(brings)), picked)
    };
    let restore = Restore { project: &project, checkpoint: &base, request: &request };
    let consent = Consent { dry_run: args.dry_run, yes: args.yes, json: args.json, patch: false };
    carry_out(process, restore, consent)
}

/// The fork that is meant and its project, from either of them.
fn fork_and_project(
    process: &Process<'_>,
    here: Project,
    given: Option<&Path>,
) -> Result<(Project, ForkEntry, RootState)> {
    let own = here.state.root(&here.root);
    let Some(mut entry) = ForkEntry::read(&own)? else {
        let (entry, own) = of_project(process, &here, given)?;
        return Ok((here, entry, own));
    };
    let beside = entry.origin_beside(here.root.path());
    here.root.path().clone_into(&mut entry.dir);
    match given.map(|given| find(process, &here, given)) {
        // A fork of this fork.
        Some(Ok((entry, own))) => return Ok((here, entry, own)),
        Some(Err(none)) if !is_called(process, &entry, given) => return Err(none),
        Some(Err(_)) | None => (),
    }
    let project = Project::open(process, Some(&beside)).and_then(Project::into_present);
    let project = project.ok().filter(|project| entry.is_of(project.root.path()));
    let origin = ui::path(&entry.origin, here.home.as_deref()).into_owned();
    let project = project.ok_or_else(|| {
        Error::other(
            format!("the project of this fork is not at {origin} any more"),
            "run it in the project: `beforehand fork --keep NAME`",
        )
    })?;
    Ok((project, entry, own))
}

fn is_called(process: &Process<'_>, entry: &ForkEntry, given: Option<&Path>) -> bool {
    let cwd = process.cwd.clone().unwrap_or_default();
    given.is_none_or(|given| {
        given.as_os_str() == entry.name()
            || std::fs::canonicalize(cwd.join(given)).is_ok_and(|path| path == entry.dir)
    })
}

/// The fork of a project that is named, or its only one.
fn of_project(
    process: &Process<'_>,
    project: &Project,
    given: Option<&Path>,
) -> Result<(ForkEntry, RootState)> {
    if let Some(given) = given {
        return find(process, project, given);
    }
    let mut forks = forked::forks(&project.state, project.root.path())?;
    match (forks.len(), forks.pop()) {
        (1, Some(only)) => Ok(only),
        (0, _) | (_, None) => Err(Error::other(
            "this project has no fork",
            "`beforehand fork N` makes one from before turn N",
        )),
        (_, Some(_)) => Err(Error::usage(
            "this project has more than one fork",
            "name one, as in `fork --keep NAME`; `beforehand fork --list` shows them",
        )),
    }
}
