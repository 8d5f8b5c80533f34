//! What a restore does with git repositories: it restores those that are missing or damaged, and names
//! what the others lack.

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::OsStr,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use super::{
    Restore,
    content::top,
    head::{self, NestedHead},
};
use crate::{
    attribution::PathSide,
    error::{Error, Result},
    fs::{read_small, stat_path},
    model::{Entry, Kind, RelPath, RootKind},
    plan::{Action, Author, KeepReason, Picked, PlanStep, RestorePlan, keep_parents},
    project::Project,
    root::{git_dirs, is_git_dir, repository_at},
    scan::Scan,
    store::{RepositoryStep, StepKind, record::Record, repository},
    ui,
};

/// What happens to the repositories that a checkpoint holds: nothing, by default.
#[derive(Default)]
pub(super) struct Repositories {
    /// `None` if the record cannot be read: then nothing happens to them.
    record: Option<Record>,
    pub(super) steps: Vec<RepositoryStep>,
    /// Where those are that differ, lie outside the root and stay as they are.
    pub(super) elsewhere: BTreeSet<PathBuf>,
    /// Those that others have gone on with after the restore that is taken back.
    of_others: BTreeSet<PathBuf>,
}

impl Repositories {
    /// Nothing happens to those that the checkpoint holds, nor to others.
    pub(super) fn left_alone(restore: Restore<'_>) -> Self {
        let record = restore.project.record_of(restore.checkpoint.id).ok();
        Self { record, ..Self::default() }
    }

    /// Finds those that are gone, broken or other ones than at the checkpoint.
    ///
    /// # Errors
    ///
    /// Fails where one that works would be replaced by one that may be held in part only.
    pub(super) fn of(restore: Restore<'_>) -> Result<Self> {
        let Restore { project, checkpoint, request } = restore;
        let Ok(record) = project.record_of(checkpoint.id) else {
            return Ok(Self::default());
        };
        let mut steps =
            repository::steps(&project.state, project.root.path(), &record, request.repository);
        // A part of a repository is that of what it belongs to.
        let is_part = |step: &RepositoryStep| matches!(step.kind, StepKind::Part(_));
        let leads = |step: &RepositoryStep| {
            step.pointers(project.root.path()).any(|path| is_picked(restore, &path))
        };
        steps.retain(|step| is_picked(restore, &step.place) || is_part(step) && leads(step));
        let (mut steps, elsewhere): (Vec<_>, Vec<_>) =
            steps.into_iter().partition(|step| step.is_inside || request.outside);
        refuse_incomplete(restore, &steps)?;
        let elsewhere = elsewhere.into_iter().map(|step| step.place).collect();
        let of_others = of_others(restore, &steps);
        steps.retain(|step| !of_others.contains(&step.place));
        Ok(Self { record: Some(record), steps, elsewhere, of_others })
    }

    /// Whether all of the repository of the root comes back.
    pub(super) fn has_root_of(&self, project: &Project) -> bool {
        let git_dir = project.root.path().join(".git");
        self.steps.iter().any(|step| step.is_all_of(&git_dir) && !step.is_removal())
    }

    /// Where those are that would come back.
    pub(super) fn places(&self) -> Vec<PathBuf> {
        let steps = self.steps.iter().filter(|step| !step.is_removal());
        steps.map(RepositoryStep::target).chain(self.elsewhere.iter().cloned()).collect()
    }

    /// What is gone of the repositories that stay.
    pub(super) fn lost(&self, restore: Restore<'_>) -> Vec<repository::LostRepository> {
        let Some(record) = &self.record else { return Vec::new() };
        let project = restore.project;
        let mut lost = repository::lost(&project.state, project.root.path(), record);
        lost.retain(|lost| {
            let is_replaced = self.steps.iter().any(|step| step.is_all_of(&lost.place));
            is_picked(restore, &lost.place) && !is_replaced
        });
        lost
    }

    /// What became of HEAD in those nested in the root that stay.
    pub(super) fn nested_heads(&self, restore: Restore<'_>) -> Vec<NestedHead> {
        let Some(record) = &self.record else { return Vec::new() };
        let mut heads = head::nested(restore.project, record);
        heads.retain(|head| {
            let is_replaced = self.steps.iter().any(|step| step.is_all_of(&head.place));
            is_picked(restore, &head.worktree.join(".git")) && !is_replaced
        });
        heads
    }

    /// What goes with those that are replaced.
    pub(super) fn losing(&self, project: &Project) -> Vec<repository::Losing> {
        let Some(record) = &self.record else { return Vec::new() };
        let losing =
            |step: &RepositoryStep| step.losing(&project.state, project.root.path(), record);
        self.steps.iter().filter_map(losing).collect()
    }

    /// The repositories below the root that the checkpoint does not hold, and that stay: a directory,
    /// or a file that leads to one.
    pub(super) fn made_since(&self, project: &Project, scan: &Scan) -> BTreeMap<RelPath, Kind> {
        let root = project.root.path();
        let Some(record) = &self.record else { return BTreeMap::new() };
        let mut then = BTreeSet::new();
        for held in &record.repositories {
            let pointers = held.pointers.iter().map(|(path, _)| path);
            then.extend(
                pointers.chain([&held.path]).map(|path| root.join(OsStr::from_bytes(path))),
            );
        }
        let goes =
            |path: &Path| self.steps.iter().any(|step| step.is_removal() && step.place == *path);
        let all = scan.repositories.iter().cloned().chain([root.join(".git")]);
        let is_new = |path: &PathBuf| !then.contains(path) && !self.of_others.contains(path);
        let left = all.filter(|path| is_new(path) && !goes(path));
        let left = left.filter(|path| repository_at(path).is_some());
        left.filter_map(|path| {
            Some((project.root.relative(&path).ok()?, stat_path(&path).ok()?.kind()?))
        })
        .collect()
    }

    /// Says in the plan which stay because others have gone on with them.
    pub(super) fn keep_of_others(&self, project: &Project, plan: &mut RestorePlan) {
        plan.steps.extend(self.of_others.iter().filter_map(|place| {
            let path = project.root.relative(place).ok()?;
            let (action, author) = (Action::Keep(KeepReason::Edited), Author::Other);
            let entry = Some(Entry::DIRECTORY);
            Some(PlanStep { path, action, then: entry, now: entry, author })
        }));
        plan.steps.sort_by(|a, b| a.path.cmp(&b.path));
        keep_parents(&mut plan.steps);
    }

    /// Takes out those that cannot come back, because a file stays in the place of a directory they
    /// lie in, and says so in the plan.
    pub(super) fn keep_in_the_way(&mut self, project: &Project, plan: &mut RestorePlan) {
        let (blocked, free): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.steps).into_iter().partition(|step| {
                let Ok(path) = project.root.relative(&step.place) else { return false };
                plan.kept().any(|kept| {
                    kept.now.is_some_and(|now| !now.is_directory()) && path.is_within(&kept.path)
                })
            });
        plan.steps.extend(blocked.iter().filter_map(|step| {
            let path = project.root.relative(&step.place).ok()?;
            let (action, author) = (Action::Keep(KeepReason::InTheWay), Author::Unknown);
            Some(PlanStep { path, action, then: Some(Entry::DIRECTORY), now: None, author })
        }));
        plan.steps.sort_by(|a, b| a.path.cmp(&b.path));
        self.steps = free;
    }
}

/// Keeps what is new in git directories that are not called `.git`, as bare ones: a ref may need an
/// object that another author made. What a restore put there goes with it, unless another author has
/// changed something there since. In the project's own one, and in a root that is one itself, nothing is
/// changed either, but for objects: HEAD and branches stay, unless the repository `is_asked` for. A ref
/// that was packed since is not gone; one that was packed then, and changed by the agent, goes back.
pub(super) fn keep_in_git_dirs(
    project: &Project,
    side: PathSide,
    is_asked: bool,
    steps: &mut [PlanStep],
) {
    let mut dirs = OtherGitDirs::below(top(project, side));
    let own = own_git_dir(project, side);
    // Half of a worktree's part of a repository is none.
    let others: BTreeSet<PathBuf> = steps
        .iter()
        .filter(|step| step.is_conflict())
        .filter_map(|step| dirs.around(&step.path))
        .collect();
    for step in steps.iter_mut() {
        let Some(dir) = dirs.around(&step.path) else { continue };
        let is_own =
            !is_asked && (dirs.is_top || own.as_ref().is_some_and(|own| step.path.is_within(own)));
        let stays = match (step.action, step.author) {
            (Action::Remove, Author::Restore) => others.contains(&dir),
            // Without it the ref is where it was packed, as with one that is changed.
            (Action::Remove, Author::Agent) => is_own || !dirs.is_packed(&dir, &step.path),
            (Action::Remove, _) => true,
            // What a restore put there, it was asked for.
            (Action::Restore | Action::Merge | Action::Recreate, Author::Restore)
            | (Action::Keep(_), _) => false,
            (Action::Restore | Action::Merge, _) => is_own && !dirs.is_object(&dir, &step.path),
            (Action::Recreate, _) => dirs.is_packed(&dir, &step.path),
        };
        if stays {
            step.action = Action::Keep(KeepReason::GitPrivate);
        }
    }
    keep_parents(steps);
}

/// The project's own git directory, if it is on this side of the root.
fn own_git_dir(project: &Project, side: PathSide) -> Option<RelPath> {
    let RootKind::Git { common_dir, .. } = project.root.kind() else { return None };
    match side {
        PathSide::Root => project.root.relative(common_dir).ok(),
        PathSide::Outside => RelPath::from_top(common_dir).ok(),
    }
}

/// The git directories below a directory that are not called `.git`, as far as they were asked for.
struct OtherGitDirs<'a> {
    top: &'a Path,
    /// Whether `top` is one.
    is_top: bool,
    known: BTreeMap<RelPath, bool>,
    packed: BTreeMap<PathBuf, BTreeSet<Vec<u8>>>,
}

impl<'a> OtherGitDirs<'a> {
    fn below(top: &'a Path) -> Self {
        Self { top, is_top: is_git_dir(top), known: BTreeMap::new(), packed: BTreeMap::new() }
    }

    /// The one that a path is in, absolute.
    fn around(&mut self, path: &RelPath) -> Option<PathBuf> {
        let top = self.top;
        let look = |dir: &RelPath| is_git_dir(&top.join(dir.as_path()));
        let mut is_git = |dir: &RelPath| *self.known.entry(dir.clone()).or_insert_with_key(look);
        let dir = path.with_above().find(&mut is_git);
        match dir {
            Some(dir) => Some(top.join(dir.as_path())),
            None => self.is_top.then(|| top.to_owned()),
        }
    }

    /// Whether a path in `dir` is named after what it is to hold: who needs it needs just that.
    fn is_object(&self, dir: &Path, path: &RelPath) -> bool {
        let path = self.top.join(path.as_path());
        let name = path.strip_prefix(dir.join("objects")).ok().and_then(Path::to_str);
        let Some((above, name)) = name.and_then(|name| name.split_once('/')) else { return false };
        let is_hex = |text: &str| text.bytes().all(|byte| byte.is_ascii_hexdigit());
        match above {
            "pack" => name.starts_with("pack-"),
            _ => above.len() == 2 && is_hex(above) && is_hex(name),
        }
    }

    /// Whether a path in `dir` is a ref that is packed there.
    fn is_packed(&mut self, dir: &Path, path: &RelPath) -> bool {
        let path = self.top.join(path.as_path());
        let Ok(name) = path.strip_prefix(dir) else { return false };
        let refs = self.packed.entry(dir.to_owned()).or_insert_with_key(|dir| packed_refs(dir));
        refs.contains(name.as_os_str().as_bytes())
    }
}

/// Whether the file at an absolute path is a ref in a git directory that is not called `.git`.
pub(crate) fn is_ref(path: &Path) -> bool {
    let in_git = |dir: &Path| {
        path.strip_prefix(dir).is_ok_and(|name| name.starts_with("refs")) && is_git_dir(dir)
    };
    path.ancestors().skip(1).any(in_git)
}

/// Enough for a million refs.
const PACKED_MAX_BYTES: u64 = 100 << 20;

/// The names of the refs that a git directory has packed.
fn packed_refs(git_dir: &Path) -> BTreeSet<Vec<u8>> {
    let text = read_small(&git_dir.join("packed-refs"), PACKED_MAX_BYTES).ok().flatten();
    let text = text.unwrap_or_default();
    let lines = text.split(|&byte| byte == b'\n');
    let name = |line: &[u8]| Some(line[line.iter().position(|&byte| byte == b' ')? + 1..].to_vec());
    lines.filter_map(name).collect()
}

/// Whether the project's own repository stays as it is, so that its index can be restored: one that
/// comes back has its index.
pub(super) fn keeps_own(project: &Project, steps: &[RepositoryStep]) -> bool {
    match project.root.kind() {
        RootKind::Git { common_dir, .. } => !steps.iter().any(|step| step.is_all_of(common_dir)),
        RootKind::Plain { .. } => steps.is_empty(),
    }
}

/// The repositories that a restore would replace which takes another one back, and that others have
/// gone on with since: like a file, they stay unless the user says otherwise.
fn of_others(restore: Restore<'_>, steps: &[RepositoryStep]) -> BTreeSet<PathBuf> {
    let Restore { project, request, .. } = restore;
    let of = request.undone().filter(|_| !request.options.force);
    let Some(of) = of.and_then(|of| project.record_of(of).ok()) else { return BTreeSet::new() };
    let root = project.root.path();
    let kept = steps.iter().filter(|step| {
        step.place.starts_with(root) && step.is_of_others(&project.state, root, &of)
    });
    kept.map(|step| step.place.clone()).collect()
}

/// Whether the user means what is at an absolute path.
fn is_picked(restore: Restore<'_>, path: &Path) -> bool {
    let Restore { project, request, .. } = restore;
    match project.root.relative(path) {
        _ if request.picked == Picked::All => true,
        Ok(below) => request.picked.has(&below),
        Err(_) => RelPath::from_top(path).is_ok_and(|path| request.picked.has_outside(&path)),
    }
}

/// Refuses to replace a repository that works by one that is held in part only, or damaged.
fn refuse_incomplete(restore: Restore<'_>, steps: &[RepositoryStep]) -> Result<()> {
    let Restore { project, checkpoint, request } = restore;
    let works = |step: &&RepositoryStep| {
        let worktree = step.place.parent().unwrap_or(&step.place);
        matches!(step.kind, StepKind::Replace(_)) && matches!(git_dirs(worktree), Ok(Some(_)))
    };
    let Some(step) = steps.iter().find(works).filter(|_| request.repository) else {
        return Ok(());
    };
    let refused = |why: &str, next: &str| {
        let (id, place) = (checkpoint.id, ui::escape_path(&step.place));
        let what = format!("checkpoint {id} {why}, and the repository `{place}` works");
        Err(Error::other(format!("{what}: nothing was changed"), next.to_owned()))
    };
    if !checkpoint.completeness.is_whole() {
        return refused(
            "is partial",
            "leave out --repository, or name a checkpoint that is not partial",
        );
    }
    // What takes the place of good objects must be good: every byte of it is read.
    let damage = project.store.check(true)?;
    match damage.iter().find(|it| it.checkpoint == Some(checkpoint.id) && !it.is_note) {
        Some(_) => refused(
            "is damaged",
            "`beforehand check --read-data` says where; leave out --repository",
        ),
        None => Ok(()),
    }
}
