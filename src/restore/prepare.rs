//! From two trees to a plan: what was, what is, and what is known of the time between.

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::OsStr,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use super::{
    Request,
    authors::{self, Authors, Authorship},
    head, inner,
    look::{Seen, add_parents, is_out_of_reach, see, seen_by_plan, skipped},
    merge, outside,
};
use crate::{
    error::{Error, Result},
    fs::stat_path,
    ledger,
    left::Side,
    model::{Checkpoint, CheckpointId, Entry, Kind, RelPath, Skipped, Stamp, Tree},
    plan::{self, Action, Author, ByPath, Change, Kept, Past, Picked, RestorePlan, Step},
    process::Process,
    project::{Later, Project},
    root::{git_dirs, repository_at},
    scan::Scan,
    store::{self, HeadMove, RepositoryStep, StepKind, git, record::Record},
    ui,
};

/// A plan, and what it was made from.
pub(crate) struct Prepared {
    pub(crate) plan: RestorePlan,
    /// What the system said about each path when it was looked at.
    pub(crate) seen: BTreeMap<RelPath, Stamp>,
    /// A word on commits made since.
    pub(crate) commits: Option<String>,
    /// The scan it was made from, with nothing named that is not stored.
    pub(crate) looked: Scan,
    /// How the branch HEAD is on moves.
    pub(crate) head: Option<HeadMove>,
    /// What differs outside the root and is held, but stays as it is without `--outside`.
    pub(crate) outside_left: Vec<PathBuf>,
    /// Repositories that are made again.
    pub(crate) repositories: Vec<RepositoryStep>,
    /// What of repositories is gone and stays so without `--repository`.
    pub(crate) lost: Vec<git::Lost>,
    /// What goes with repositories that are replaced.
    pub(crate) losing: Vec<git::Losing>,
    /// What another author changed and the agent of the turn was never seen to touch.
    pub(crate) others: BTreeSet<RelPath>,
    /// The same outside the root.
    pub(crate) outside_others: BTreeSet<RelPath>,
    /// What was made since and is not held, for its size or number. It stays.
    pub(crate) new_unheld: Vec<Skipped>,
    /// Roots of their own below this one in which something differs, and stays.
    pub(crate) inner_roots: BTreeSet<RelPath>,
    /// The user's work that only inner steps of the turn hold.
    pub(crate) inner_steps: BTreeMap<RelPath, CheckpointId>,
    /// Merged files in which conflicts are marked.
    pub(crate) marked: BTreeSet<RelPath>,
    /// Whether git's index is staged otherwise, and goes back.
    pub(crate) stages: bool,
    /// Whether HEAD lacks the commit it was at: `commits` tells.
    pub(crate) is_head_lost: bool,
    /// The command it was made for, and what may be advised because of that.
    pub(crate) advice: Advice,
}

/// What a plan may advise.
#[derive(Clone, Copy)]
pub(crate) struct Advice {
    /// Whether the command takes `--merge` and `--exact`. A step back or forth does not.
    pub(crate) is_restore: bool,
    /// Whether it merges already.
    pub(crate) merges: bool,
    /// Whether it marks conflicts already.
    pub(crate) marks: bool,
}

impl Advice {
    fn of(request: &Request) -> Self {
        let (merges, marks) = (request.options.merge, request.markers);
        Self { is_restore: request.verb == "restore", merges, marks }
    }
}

impl Prepared {
    /// How many paths would change, as they are listed.
    pub(crate) fn count(&self) -> usize {
        self.count_but(&BTreeSet::new(), Path::new(""))
    }

    /// How many of them did change, below `root`, but for those that were `missed`: paths below the
    /// root are relative to it.
    pub(crate) fn count_but(&self, missed: &BTreeSet<&Path>, root: &Path) -> usize {
        let missed: BTreeSet<PathBuf> = missed.iter().map(|path| root.join(path)).collect();
        let steps = self.plan.listed().map(|step| root.join(step.path.as_path()));
        let outside = self.plan.outside.deeds().map(|step| step.path.at_top());
        let repositories = self.repositories.iter().map(RepositoryStep::target);
        let all = steps.chain(outside).chain(repositories);
        all.filter(|path| !missed.contains(path)).count()
    }

    /// Whether anything would change, or is kept that a person may want changed after all. What
    /// another author made since is neither.
    pub(crate) fn is_any(&self) -> bool {
        let is_others = |step: &Step, others: &BTreeSet<RelPath>| match step.action {
            Action::Keep(
                Kept::New | Kept::Ignored | Kept::GitPrivate | Kept::Repository | Kept::InTheWay,
            ) => true,
            // A log that grows, a person's own work: an undo of this turn would never do anything.
            Action::Keep(Kept::Edited) => others.contains(&step.path),
            _ => false,
        };
        let is_quiet = self.plan.is_empty()
            && self.plan.steps.iter().all(|step| is_others(step, &self.others))
            && self.plan.outside.steps.iter().all(|step| is_others(step, &self.outside_others))
            && self.head.is_none()
            && self.repositories.is_empty()
            && !self.stages;
        !is_quiet
    }

    /// Whether nothing is to be done.
    pub(crate) fn is_empty(&self) -> bool {
        self.plan.is_empty() && self.head.is_none() && self.repositories.is_empty() && !self.stages
    }
}

/// Plans a restore of what is there now.
pub(crate) fn prepare(
    process: &Process<'_>,
    project: &Project,
    checkpoint: &Checkpoint,
    request: &Request,
) -> Result<Prepared> {
    let head = head::plan(project, checkpoint, request)?;
    let then = project.tree_of(checkpoint, Later::Gone)?;
    let outside_paths = outside::paths(project, checkpoint, &then);
    let Seen { now, mut changes, skipped, scan, looked, unwalked } =
        see(process, project, &then, &outside_paths)?;
    if request.of_restore.is_none() {
        refuse_unknown(project, &request.picked, &[(checkpoint, &then)])?;
    }
    let mut inner_roots = BTreeSet::new();
    // A restore that is taken back left them alone, or made them.
    if request.picked == Picked::All && request.of_restore.is_none() {
        let inner = own_roots(project, checkpoint, &scan);
        changes.retain(|change| {
            let other = inner.iter().find(|inner| change.path.is_within(inner));
            inner_roots.extend(other.cloned());
            other.is_none()
        });
    }
    let knowledge = Authors::of(project, checkpoint, request, &changes, &then, Side::Root)?;
    if request.is_of_turn() {
        knowledge.drop_restored(project, &mut changes);
    }
    let authorship = match request.of_restore {
        Some(of) => authors::of_restore(project, of, checkpoint.id, &changes, &now, &skipped)?,
        None => knowledge.by_path(project, &changes, &unwalked, &skipped),
    };
    let others = knowledge.others(&authorship, request);
    let Authorship { authors, edited } = authorship;
    let merges = if request.options.merge {
        merge::all(project, &mut changes, &authors, &knowledge, request.markers)
    } else {
        merge::Merges::default()
    };
    let new_unheld = new_unheld(project, &scan, &then, &left_out(checkpoint, &then), request)?;
    let record = project.record_of(checkpoint.id).ok();
    let record = record.as_ref();
    let (repositories, elsewhere) = repositories(project, record, request);
    refuse_partial(checkpoint, request, &repositories)?;
    let past = Past {
        authors: &authors,
        edited: &edited,
        merges: &merges.files,
        ignored: &ignored_now(&changes, &scan),
        skipped_then: &left_out(checkpoint, &then),
        skipped_now: &skipped,
        repositories: &made_since(project, record, &scan, &repositories),
    };
    let mut plan = plan::restore(checkpoint.id, changes, request.options, &request.picked, &past);
    let repositories = keep_in_the_way(project, &mut plan, repositories);
    plan.left.retain(|skipped| project.has_changed(checkpoint, skipped));
    add_parents(project.root.path(), &mut plan.steps);
    let mut outside_left = Vec::new();
    let elsewhere_plan =
        outside::plan(project, (checkpoint, request), (&then, &now), &scan, &outside_paths)?;
    if request.outside {
        plan.outside = elsewhere_plan.plan;
    } else if request.picked == Picked::All {
        outside_left = outside::left(&elsewhere_plan.plan).chain(elsewhere).collect();
    }
    let inner_steps = if request.of_restore.is_none() && request.picked == Picked::All {
        inner::held(project, checkpoint, &plan, &then, &now)?
    } else {
        BTreeMap::new()
    };
    let seen = seen_by_plan(project, &plan, &scan);
    let commits = match &head {
        Some(head) => Some(head::words(head)),
        None => {
            checkpoint.head.as_ref().and_then(|head| head::commits(project, checkpoint.id, head))
        }
    };
    // Where HEAD stands now says nothing of a repository that is made again.
    let commits = commits.filter(|_| repositories.is_empty());
    let is_head_lost = commits.is_some()
        && head.is_none()
        && checkpoint.head.as_ref().is_some_and(|then| head::is_lost(project, then));
    let stages = request.index && project.store.index_differs(checkpoint.id)?;
    let lost = lost(project, record, request, &repositories);
    let losing = |step: &RepositoryStep| step.losing(&project.state, project.root.path(), record?);
    let losing = repositories.iter().filter_map(losing).collect();
    Ok(Prepared {
        plan,
        seen,
        commits,
        looked,
        head,
        outside_left,
        repositories,
        lost,
        losing,
        others,
        outside_others: elsewhere_plan.others,
        new_unheld,
        inner_roots,
        inner_steps,
        marked: merges.marked,
        stages,
        is_head_lost,
        advice: Advice::of(request),
    })
}

/// What is there now and not held, and was not there at the checkpoint, held or not.
fn new_unheld(
    project: &Project,
    scan: &Scan,
    then: &Tree,
    skipped_then: &[Skipped],
    request: &Request,
) -> Result<Vec<Skipped>> {
    let (then_out, store) = (ByPath::of(skipped_then), project.store.as_ref());
    let mut read = |tree: &Tree, id: &_| store::directory_of(store, tree, id);
    let mut new = Vec::new();
    for skipped in skipped(scan, |reason| reason.matters() && !is_out_of_reach(reason)) {
        let Ok(path) = RelPath::from_bytes(&skipped.path) else { continue };
        let is_new = request.picked.has(&path)
            && then_out.covering(&path).is_none()
            && plan::entry_at(then, &path, &mut read)?.is_none();
        if is_new {
            new.push(skipped);
        }
    }
    Ok(new)
}

/// A repository cannot come back where a file stays in the place of a directory it lies in.
fn keep_in_the_way(
    project: &Project,
    plan: &mut RestorePlan,
    repositories: Vec<RepositoryStep>,
) -> Vec<RepositoryStep> {
    let is_directory = |entry: Option<Entry>| entry.is_none_or(|it| it.kind == Kind::Directory);
    let (blocked, free): (Vec<_>, Vec<_>) = repositories.into_iter().partition(|step| {
        let Ok(path) = project.root.relative(&step.place) else { return false };
        plan.kept().any(|kept| !is_directory(kept.now) && path.is_within(&kept.path))
    });
    let entry = Entry { kind: Kind::Directory, permissions: 0o755, content: None, device: 0 };
    plan.steps.extend(blocked.iter().filter_map(|step| {
        let path = project.root.relative(&step.place).ok()?;
        let (action, author) = (Action::Keep(Kept::InTheWay), Author::Unknown);
        Some(Step { path, action, then: Some(entry), now: None, author })
    }));
    plan.steps.sort_by(|a, b| a.path.cmp(&b.path));
    free
}

/// What is new since, and ignored now.
fn ignored_now(changes: &[Change], scan: &Scan) -> BTreeSet<RelPath> {
    let new = changes.iter().filter(|change| change.before.is_none());
    let is_ignored = |path: &RelPath| scan.find(path).is_some_and(|row| row.marks.ignored);
    new.map(|change| change.path.clone()).filter(is_ignored).collect()
}

/// What the checkpoint left out and no later call of the turn held either.
pub(crate) fn left_out(checkpoint: &Checkpoint, then: &Tree) -> Vec<Skipped> {
    let is_held = |skipped: &&Skipped| {
        let path = RelPath::from_bytes(&skipped.path).ok();
        let entry = path.and_then(|path| then.besides.get(&path));
        // Of a directory that is held only on the way to something, the rest is not.
        entry.is_some_and(|entry| entry.kind != Kind::Directory || entry.content.is_some())
    };
    checkpoint.skipped.iter().filter(|skipped| !is_held(skipped)).cloned().collect()
}

/// The worktrees in ignored directories where another session has been at work. Each is a root of its
/// own: what is done there is nothing for a restore of this root to take back.
fn own_roots(project: &Project, checkpoint: &Checkpoint, scan: &Scan) -> Vec<RelPath> {
    let worktrees = scan.repositories.iter().filter_map(|git| git.parent());
    let below = worktrees.filter_map(|worktree| project.root.relative(worktree).ok());
    let is_ignored = |path: &RelPath| scan.find(path).is_some_and(|row| row.marks.ignored);
    let mut inner: Vec<RelPath> = below.filter(is_ignored).collect();
    if !inner.is_empty() {
        let session = checkpoint.cause.by.as_ref().map(|by| (by.agent, &by.session));
        let mut others = ledger::uses(&project.state);
        others.retain(|used| session != Some((used.by.agent, &used.by.session)));
        inner.retain(|path| others.iter().any(|used| used.root == project.root.join(path)));
    }
    inner
}

/// What is gone of the repositories that stay.
fn lost(
    project: &Project,
    record: Option<&Record>,
    request: &Request,
    steps: &[RepositoryStep],
) -> Vec<git::Lost> {
    let Some(record) = record else { return Vec::new() };
    let mut lost = git::lost(&project.state, project.root.path(), record);
    let has = |path: &Path| project.root.relative(path).is_ok_and(|path| request.picked.has(&path));
    lost.retain(|lost| {
        let is_wanted = request.picked == Picked::All || has(&lost.place);
        is_wanted && !steps.iter().any(|step| step.is_all_of(&lost.place))
    });
    lost
}

/// The repositories that are gone, broken or other ones than at the checkpoint; and where those of
/// them are that lie outside the root and stay as they are.
fn repositories(
    project: &Project,
    record: Option<&Record>,
    request: &Request,
) -> (Vec<RepositoryStep>, BTreeSet<PathBuf>) {
    let Some(record) = record else { return (Vec::new(), BTreeSet::new()) };
    let mut steps = git::steps(&project.state, project.root.path(), record, request.repository);
    let has = |path: &Path| project.root.relative(path).is_ok_and(|path| request.picked.has(&path));
    // A part of a repository is that of what it belongs to.
    let is_part = |step: &RepositoryStep| matches!(step.kind, StepKind::Part(_));
    let leads = |step: &RepositoryStep| step.pointers(project.root.path()).any(|path| has(&path));
    steps.retain(|step| {
        request.picked == Picked::All || has(&step.place) || is_part(step) && leads(step)
    });
    let (steps, elsewhere): (Vec<_>, Vec<_>) =
        steps.into_iter().partition(|step| step.is_inside || request.outside);
    (steps, elsewhere.into_iter().map(|step| step.place).collect())
}

/// Refuses a path that was at none of some checkpoints and is not there now: it is a slip.
pub(crate) fn refuse_unknown(
    project: &Project,
    picked: &Picked,
    sides: &[(&Checkpoint, &Tree)],
) -> Result<()> {
    let Picked::Paths(picks) = picked else { return Ok(()) };
    let mut read = |tree: &Tree, id: &_| store::directory_of(project.store.as_ref(), tree, id);
    for path in picks.iter().filter_map(|pick| pick.literal()) {
        let mut is_known = project.root.join(path).symlink_metadata().is_ok()
            || path.as_bytes().split(|&byte| byte == b'/').any(|name| name == b".git");
        for (checkpoint, then) in sides {
            let left_out = left_out(checkpoint, then);
            let mut left_out =
                left_out.iter().filter_map(|out| RelPath::from_bytes(&out.path).ok());
            is_known = is_known
                || left_out.any(|out| path.is_within(&out) || out.is_within(path))
                || plan::entry_at(then, path, &mut read)?.is_some();
        }
        if !is_known {
            let ids: Vec<String> = sides.iter().map(|(it, _)| it.id.to_string()).collect();
            return Err(Error::other(
                format!(
                    "`{}` was not there at {}, and is not now",
                    ui::escape(path.as_bytes()),
                    ids.join(" or ")
                ),
                "name paths as seen from the current directory; `beforehand find NAME` looks for one",
            ));
        }
    }
    Ok(())
}

/// Refuses to replace a repository that works by one that may be held in part only.
fn refuse_partial(
    checkpoint: &Checkpoint,
    request: &Request,
    steps: &[RepositoryStep],
) -> Result<()> {
    let works = |step: &&RepositoryStep| {
        let worktree = step.place.parent().unwrap_or(&step.place);
        matches!(step.kind, StepKind::Replace(_)) && matches!(git_dirs(worktree), Ok(Some(_)))
    };
    match steps.iter().find(works).filter(|_| request.repository && checkpoint.partial) {
        Some(step) => Err(Error::other(
            format!(
                "checkpoint {} is partial, and the repository `{}` works: nothing was changed",
                checkpoint.id,
                ui::escape_path(&step.place)
            ),
            "leave out --repository, or name a checkpoint that is not partial",
        )),
        None => Ok(()),
    }
}

/// The repositories below the root that the checkpoint does not hold, and that stay: a directory, or
/// a file that leads to one.
fn made_since(
    project: &Project,
    record: Option<&Record>,
    scan: &Scan,
    steps: &[RepositoryStep],
) -> BTreeMap<RelPath, Kind> {
    let root = project.root.path();
    let Some(record) = record else { return BTreeMap::new() };
    let mut then = BTreeSet::new();
    for held in &record.repositories {
        let pointers = held.pointers.iter().map(|(path, _)| path);
        then.extend(pointers.chain([&held.path]).map(|path| root.join(OsStr::from_bytes(path))));
    }
    let goes = |path: &Path| steps.iter().any(|step| step.is_removal() && step.place == *path);
    let all = scan.repositories.iter().cloned().chain([root.join(".git")]);
    let left = all.filter(|path| !then.contains(path) && !goes(path));
    let left = left.filter(|path| repository_at(path).is_some());
    left.filter_map(|path| {
        Some((project.root.relative(&path).ok()?, stat_path(&path).ok()?.kind()?))
    })
    .collect()
}
