//! Makes a fork. Its entry in the state directory comes first and is finished last: whatever a process
//! leaves that is killed meanwhile has a name.

use std::{
    collections::BTreeSet,
    fs,
    os::unix::fs::{DirBuilderExt, PermissionsExt},
    path::{Path, PathBuf},
};

use crate::{
    apply::{self, ApplyOutcome},
    crash,
    error::{Error, Result},
    forked::ForkEntry,
    fs::Dir,
    model::{
        Cause, Checkpoint, CheckpointId, Content, Manifest, RelPath, Root, RootKind, ScanScope,
        SkipReason, Skipped,
    },
    plan::Picked,
    process::Process,
    project::{LaterTurns, Project, Then},
    restore::{elsewhere, left_out},
    store::{self, record::identity::Identity, repository},
    ui,
};

/// What a fork is to be made of, and where.
pub(crate) struct ForkPlan {
    /// Where it goes. Absolute.
    pub(crate) dir: PathBuf,
    /// The files it begins with.
    files: Manifest,
    /// How many there are, directories aside.
    pub(crate) count: usize,
    /// Its repositories, by their paths in it.
    pub(crate) repositories: BTreeSet<PathBuf>,
    /// What the checkpoint does not hold, also if a program makes it again.
    pub(crate) missing: Vec<Skipped>,
    /// Later checkpoints that may hold more of it, and are damaged.
    pub(crate) damaged: BTreeSet<CheckpointId>,
    of: CheckpointId,
}

/// What came of it.
pub(crate) struct ForkMade {
    /// The entry of the fork.
    pub(crate) fork: ForkEntry,
    /// What of its files could not be made: their contents are damaged.
    pub(crate) outcome: ApplyOutcome,
    /// Its repositories, by their paths in it.
    pub(crate) repositories: BTreeSet<PathBuf>,
}

impl ForkPlan {
    /// Plans a fork of a checkpoint in `dir`, which must be a [`place`].
    ///
    /// # Errors
    ///
    /// Fails if the checkpoint cannot be read.
    pub(crate) fn of(project: &Project, checkpoint: &Checkpoint, dir: PathBuf) -> Result<Self> {
        let Then { tree, damaged } = project.tree_of(checkpoint, LaterTurns::All)?;
        let files = store::manifest(project.store.as_ref(), &tree)?;
        let count = files.values().filter(|entry| !entry.is_directory()).count();
        let mut missing = left_out(checkpoint, &tree);
        missing.retain(|skipped| {
            let is_below = RelPath::from_bytes(&skipped.path).is_ok();
            is_below && skipped.reason != SkipReason::GitPrivate
        });
        let repositories =
            repository::fork_sites(project.root.path(), &project.record_of(checkpoint.id)?);
        let of = checkpoint.id;
        Ok(Self { dir, files, count, repositories, missing, damaged, of })
    }

    /// Makes the fork.
    ///
    /// # Errors
    ///
    /// Fails if there is a fork already, or if not all of it can be written; what was made is removed
    /// again.
    pub(crate) fn make(&self, process: &Process<'_>, project: &Project) -> Result<ForkMade> {
        let root = project.root.path();
        let mut fork = ForkEntry {
            dir: self.dir.clone(),
            identity: None,
            origin: root.to_owned(),
            origin_identity: Identity::of(root).ok(),
            of: self.of,
            base: None,
            at: process.now,
            resume: Vec::new(),
            brought: Vec::new(),
        };
        let own = project.state.root_at(&self.dir);
        let was_there = self.dir.is_dir();
        fork.write(&own)?;
        crash::point("fork-entered");
        let made = self.fill(process, project, &mut fork);
        if made.is_err() {
            // Nothing in it is more than a copy of what is held.
            let _left = self.take_back(&fork, was_there).map(|()| fs::remove_file(own.fork()));
        }
        made.map(|(outcome, repositories)| ForkMade { fork, outcome, repositories })
    }

    fn fill(
        &self,
        process: &Process<'_>,
        project: &Project,
        fork: &mut ForkEntry,
    ) -> Result<(ApplyOutcome, BTreeSet<PathBuf>)> {
        let own = project.state.root_at(&self.dir);
        make_dir(&self.dir, project.root.path())?;
        crash::point("fork-directory");
        fork.identity = Some(Identity::of(&self.dir).map_err(Error::io("look at", &self.dir))?);
        fork.write(&own)?;
        let (outcome, repositories) = self.write(project)?;
        let synced = Dir::open(&self.dir).and_then(|dir| dir.sync_below());
        synced.map_err(Error::io("sync", &self.dir))?;
        crash::point("fork-hold");
        fork.base = Some(hold(process, &self.dir, "the beginning of a fork")?.id);
        crash::point("fork-finish");
        fork.write(&own)?;
        Ok((outcome, repositories))
    }

    /// Writes the files and repositories to the directory, which is there and empty.
    fn write(&self, project: &Project) -> Result<(ApplyOutcome, BTreeSet<PathBuf>)> {
        let plan = elsewhere::plan(self.of, &Picked::All, &self.files);
        let root = Root::new(self.dir.clone(), RootKind::Plain { why: None });
        crash::point("fork-files");
        let open = |content: &Content| project.store.open(content);
        let outcome = apply::run(&root, &plan, &open, &|_| None, self.of)?;
        refuse_missed(&self.dir, &outcome)?;
        crash::point("fork-repositories");
        let record = project.record_of(self.of)?;
        let origin = project.root.path();
        let repositories = repository::fork(&project.state, origin, &record, &self.dir)?;
        Ok((outcome, repositories))
    }

    /// Removes what was made.
    fn take_back(&self, fork: &ForkEntry, was_there: bool) -> std::io::Result<()> {
        if fork.is_there() {
            super::clear::clear(&self.dir, &|_, _| true)?;
        }
        if was_there || !self.dir.exists() { Ok(()) } else { fs::remove_dir(&self.dir) }
    }
}

/// Writes what a project was at a checkpoint to a directory that is not there: files, repositories and the
/// index. All of it, or it fails.
///
/// # Errors
///
/// Fails if the checkpoint cannot be read, or not all of it be written.
pub(super) fn write_copy(project: &Project, checkpoint: &Checkpoint, dir: &Path) -> Result<()> {
    let plan = ForkPlan::of(project, checkpoint, dir.to_owned())?;
    make_dir(dir, project.root.path())?;
    let (outcome, _) = plan.write(project)?;
    match outcome.missed.first() {
        None => Ok(()),
        Some(missed) => {
            let path = ui::escape_path(&missed.path).into_owned();
            Err(Error::other(format!("cannot write `{path}`: {}", missed.why), "see `check`"))
        }
    }
}

/// Takes a checkpoint of all that is in a fork, if anything has changed since the last one.
///
/// # Errors
///
/// Fails if it cannot be saved.
pub(super) fn hold(process: &Process<'_>, dir: &Path, why: &str) -> Result<Checkpoint> {
    let project = Project::open(process, Some(dir))?;
    if project.root.path() != dir || project.scope == ScanScope::Named {
        let dir = ui::escape_path(dir).into_owned();
        return Err(Error::other(
            format!("`{dir}` cannot be held as a whole"),
            "name a directory that is in no repository",
        ));
    }
    let saved = project.hold(process, Cause::asked(Some(why.to_owned())), false)?;
    Ok(saved.checkpoint)
}

/// Makes the directory with the permissions of the project's.
fn make_dir(dir: &Path, like: &Path) -> Result<()> {
    let permissions = fs::metadata(like).map(|found| found.permissions().mode() & 0o777);
    let mode = permissions.unwrap_or(0o700) | 0o700;
    match fs::DirBuilder::new().mode(0o700).create(dir) {
        Ok(()) => fs::set_permissions(dir, fs::Permissions::from_mode(mode))
            .map_err(Error::io("protect", dir)),
        Err(err) if err.kind() == std::io::ErrorKind::AlreadyExists => elsewhere::refuse_full(dir),
        Err(err) => Err(Error::io("make the directory", dir)(err)),
    }
}

/// A fork lacks only what is damaged: all else that could not be written would pass for deleted.
fn refuse_missed(dir: &Path, outcome: &ApplyOutcome) -> Result<()> {
    match outcome.missed.iter().find(|missed| !missed.is_final) {
        None => Ok(()),
        Some(missed) => Err(Error::other(
            format!("cannot write `{}`: {}", ui::escape_path(&dir.join(&missed.path)), missed.why),
            "the fork was removed again; name another directory, or make room",
        )),
    }
}

/// The directory a fork may be made in, by its real path: empty or new, outside the project, of no
/// fork.
///
/// # Errors
///
/// Says what is wrong with it.
pub(crate) fn place(process: &Process<'_>, project: &Project, dir: &Path) -> Result<PathBuf> {
    let dir = elsewhere::place(process, project, dir)?;
    let refuse = |why: &str| {
        let path = ui::escape_path(&dir).into_owned();
        Err(Error::other(format!("`{path}` {why}"), "name an empty or a new directory elsewhere"))
    };
    let inside = [project.root.path().to_owned()].into_iter().chain(match project.root.kind() {
        RootKind::Git { common_dir, git_dir } => vec![common_dir.clone(), git_dir.clone()],
        RootKind::Plain { .. } => Vec::new(),
    });
    if inside.into_iter().any(|inside| dir.starts_with(inside)) {
        return refuse("is inside the project");
    }
    if dir.symlink_metadata().is_ok_and(|found| !found.is_dir()) {
        return refuse("is no directory");
    }
    refuse_full(project, &dir)?;
    if ForkEntry::read(&project.state.root_at(&dir)).is_ok_and(|fork| fork.is_some()) {
        let name = dir.file_name().unwrap_or_default();
        let quoted = ui::quote(name.as_encoded_bytes());
        return Err(Error::other(
            format!(
                "there is a fork `{}` that is gone or unfinished",
                ui::escape_path(name.as_ref())
            ),
            format!("`beforehand fork --drop {quoted}` drops it"),
        ));
    }
    Ok(dir)
}

/// Refuses a directory in which something is, and says what can be named instead.
fn refuse_full(project: &Project, dir: &Path) -> Result<()> {
    elsewhere::refuse_full(dir).map_err(|err| {
        let mut name = project.root.path().file_name().unwrap_or_default().to_owned();
        name.push("-fork");
        let within = ui::quote(dir.join(name).as_os_str().as_encoded_bytes());
        match err {
            Error::Other { message, .. } => Error::other(
                message,
                format!("a fork is a directory of its own: name a new one, as in `{within}`"),
            ),
            err => err,
        }
    })
}

/// A name beside the project that nothing has yet: `NAME-fork-N`, outside of all repositories around it.
pub(crate) fn default_dir(project: &Project, number: Option<usize>) -> PathBuf {
    let root = project.root.path();
    let home = project.home.as_deref().and_then(|home| fs::canonicalize(home).ok());
    let is_below_home = |dir: &&Path| home.as_deref() != Some(*dir);
    let worktrees = root.ancestors().take_while(is_below_home);
    let outermost = worktrees.filter(|dir| dir.join(".git").symlink_metadata().is_ok()).last();
    let above = outermost.unwrap_or(root).parent().unwrap_or(root);
    let name = root.file_name().unwrap_or_default();
    let named = |end: String| {
        let mut name = name.to_owned();
        name.push(end);
        above.join(name)
    };
    let first = number.map_or_else(|| "-fork".to_owned(), |number| format!("-fork-{number}"));
    let others = (2..).map(|n| format!("{first}-{n}"));
    let is_free = |dir: &PathBuf| {
        let is_known = project.state.root_at(dir).dir().symlink_metadata().is_ok();
        dir.symlink_metadata().is_err() && !is_known
    };
    let mut candidates = std::iter::once(first.clone()).chain(others).map(named);
    candidates.find(is_free).unwrap_or_else(|| above.join(name))
}
