//! A project: its root, settings and store, and its checkpoints as rows of a list. Never prints.

mod checkpoint_tree;
mod gone;

use std::{
    collections::{BTreeMap, HashMap},
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use crate::{
    config as settings,
    error::{Error, Result},
    fs::{PathResolver, without_dots},
    ledger::{self, Use, adopt, newest_uses},
    model::{
        Cause, Checkout, Checkpoint, ContentId, Reach, Reason, RelPath, Root, ScanScope, Selector,
        Settings, TurnKey,
    },
    plan,
    process::Process,
    reach::{Surroundings, look_around_real},
    scan::{Scan, VictimDepth},
    snapshot::{self, ScanOptions, SnapshotRequest},
    state::{RootState, StateDir},
    store::{
        self, Saved, Store,
        record::{self, identity::IdentityMatch},
    },
    ui,
};
use chrono::{DateTime, Local, Utc};

pub(crate) use checkpoint_tree::{LaterTurns, Then};

/// Where a command works: a root, its settings, and its store.
pub(crate) struct Project {
    /// The root.
    pub(crate) root: Root,
    /// How much of it may be walked.
    pub(crate) scope: ScanScope,
    /// The settings for it.
    pub(crate) settings: Settings,
    /// Our own files.
    pub(crate) state: StateDir,
    /// Its checkpoints.
    pub(crate) store: Box<dyn Store>,
    /// The user's home, for showing paths.
    pub(crate) home: Option<PathBuf>,
    /// Where the command runs, without symlinks.
    pub(crate) cwd: Option<PathBuf>,
    /// The present time, for times that a person names.
    pub(crate) now: DateTime<Utc>,
    /// Whether the directory is gone. The store then only reads; see `restore`.
    pub(crate) is_gone: bool,
}

/// The working directory, without symlinks.
pub(crate) fn real_cwd(process: &Process<'_>) -> Option<PathBuf> {
    process.cwd.as_deref().and_then(|cwd| std::fs::canonicalize(cwd).ok())
}

impl Project {
    /// Finds the root around the current directory, or around `dir`.
    ///
    /// # Errors
    ///
    /// Fails if there is no such directory, or no place for our own files.
    pub(crate) fn open(process: &Process<'_>, dir: Option<&Path>) -> Result<Self> {
        let start = match (dir, &process.cwd) {
            (Some(dir), Some(cwd)) => cwd.join(dir),
            (Some(dir), None) => dir.to_owned(),
            (None, Some(cwd)) => cwd.clone(),
            (None, None) if process.var("PWD").is_some_and(|pwd| Path::new(pwd).is_absolute()) => {
                process.var("PWD").map(PathBuf::from).unwrap_or_default()
            }
            (None, None) => {
                let message = "the current directory no longer exists";
                return Err(Error::other(message, "change to a directory that does"));
            }
        };
        let state = settings::state(process, None)?;
        let home = process.home();
        let cwd = real_cwd(process);
        let real = PathResolver::default();
        if let Ok(start) = real.of(&start) {
            settle_around(&start, &state, process.now);
        }
        if let Some(root) = gone::root_around(&start, &state, &real) {
            let settings = settings::load(process, Some(root.path())).settings;
            let store = store::open(&root, &state, settings.store)?;
            let (scope, is_gone) = (ScanScope::Whole, !root.path().is_dir());
            let now = process.now;
            return Ok(Self { root, scope, settings, state, store, home, cwd, now, is_gone });
        }
        let surroundings = Surroundings { home: home.as_deref(), state: Some(&state), real: &real };
        let found = real.of(&start).ok().and_then(|start| {
            let known = known_root(&start, &state);
            look_around_real(known.as_deref().unwrap_or(&start), &surroundings)
        });
        let (root, scope, dirs) = found.ok_or_else(|| {
            let message = format!("`{}` does not exist", ui::escape_path(&start));
            Error::other(message, "name a directory, or run this in one")
        })?;
        let loaded = settings::load_by(process, Some(root.path()), &real);
        let (state, settings) = (loaded.state()?, loaded.settings);
        let store = store::open_looked_at(&root, dirs, &state, settings.store)?;
        let now = process.now;
        Ok(Self { root, scope, settings, state, store, home, cwd, now, is_gone: false })
    }

    /// The same for a caller that saves: as the directory is now, whatever it was.
    ///
    /// # Errors
    ///
    /// Fails if the directory is gone.
    pub(crate) fn into_present(mut self) -> Result<Self> {
        if self.is_gone {
            let path = self.root.path();
            std::fs::metadata(path).map_err(Error::io("find the directory", path))?;
            let kind = crate::root::kind_of(path);
            self.root = Root::new(path.to_owned(), kind);
            self.store = store::open(&self.root, &self.state, self.settings.store)?;
            self.is_gone = false;
        }
        Ok(self)
    }

    /// A path of a plan, relative to the root or absolute, as an argument of the next command: as the
    /// user has to write it where they are. Never a pattern.
    pub(crate) fn argument(&self, path: &Path) -> String {
        let bytes = |path: &Path| ui::literal_pick(path.as_os_str().as_bytes());
        if path.is_absolute() {
            return ui::quote(&bytes(path));
        }
        let root = self.root.path();
        let dir = self.cwd.as_deref().and_then(|cwd| cwd.strip_prefix(root).ok());
        ui::quote(&match dir.and_then(|dir| path.strip_prefix(dir).ok()) {
            Some(short) if !short.as_os_str().is_empty() => bytes(short),
            // What leads to the root is no pattern in any case.
            Some(_) | None => [root.as_os_str().as_bytes(), b"/", &bytes(path)].concat(),
        })
    }

    /// What leads a shell to the project, before a command that it is told: nothing where it is there already.
    pub(crate) fn cd_prefix(&self) -> String {
        let root = self.root.path();
        if self.cwd.as_deref().is_some_and(|cwd| cwd.starts_with(root)) {
            return String::new();
        }
        format!("cd {} && ", ui::quote(root.as_os_str().as_bytes()))
    }

    /// The project, with bytes by their SHA-256 that its store opens as well.
    #[must_use]
    pub(crate) fn holding(mut self, contents: BTreeMap<ContentId, Vec<u8>>) -> Self {
        self.store.put_beside(contents);
        self
    }

    /// Our own files of its root.
    pub(crate) fn place(&self) -> RootState {
        self.state.root(&self.root)
    }

    /// The checkpoint the user means. For a step of a turn ask `restore::find_checkpoint`.
    ///
    /// # Errors
    ///
    /// Fails if there is none, or more than one.
    pub(crate) fn find(&self, given: &str) -> Result<Checkpoint> {
        let selector: Selector = given.parse().map_err(|why: String| {
            Error::usage(
                format!("`{}`: {why}", ui::escape(given.as_bytes())),
                "run `beforehand list` to see the checkpoints",
            )
        })?;
        self.pick(self.store.list()?, &selector, given)
    }

    /// The root as it is now, and `victims` in any case, whatever their size, but not what is
    /// below them.
    ///
    /// # Errors
    ///
    /// Fails if the root cannot be read.
    pub(crate) fn look(&self, process: &Process<'_>, victims: Vec<PathBuf>) -> Result<Scan> {
        if self.is_gone {
            return Ok(Scan::of_nothing());
        }
        let reach = self.reach(victims);
        self.whole(&reach).at(process, &self.state, self.store.root())
    }

    /// The same for a scan of a moment ago: only `victims` are looked at.
    pub(crate) fn look_also(
        &self,
        process: &Process<'_>,
        mut scan: Scan,
        victims: Vec<PathBuf>,
    ) -> Scan {
        let reach = self.reach(victims);
        self.whole(&reach).also(process, &self.state, self.store.root(), &mut scan);
        scan
    }

    /// How commands look at a root: at all of it, and at what is named itself.
    fn whole<'a>(&'a self, reach: &'a Reach) -> ScanOptions<'a> {
        ScanOptions { reach, settings: &self.settings, named: VictimDepth::Alone, deadline: None }
    }

    /// Takes a checkpoint of the root as it is now; `always` also if nothing has changed since the last one.
    ///
    /// # Errors
    ///
    /// Fails if it cannot be saved.
    pub(crate) fn hold(&self, process: &Process<'_>, cause: Cause, always: bool) -> Result<Saved> {
        let reach = self.reach(Vec::new());
        let request = SnapshotRequest {
            reach: &reach,
            settings: &self.settings,
            cause,
            taken_at: process.now,
            always,
            deadline: None,
            waits: true,
        };
        snapshot::take_into(self.store.as_ref(), process, &self.state, request)
    }

    /// The whole root, and `victims`.
    pub(crate) fn reach(&self, victims: Vec<PathBuf>) -> Reach {
        Reach {
            root: self.root.clone(),
            scope: self.scope.clone(),
            victims,
            checkout: Checkout::default(),
        }
    }
}

/// Lets the root at or around `start` be found by its path, if it was moved there or is mounted there
/// as well. What cannot be found passes for new: it is for `origin` to say where its checkpoints are.
fn settle_around(start: &Path, state: &StateDir, now: DateTime<Utc>) {
    let worktree = start.ancestors().find(|dir| dir.join(".git").symlink_metadata().is_ok());
    let known = || start.ancestors().find(|dir| state.root_at(dir).location().exists());
    let candidates = match worktree.or_else(known) {
        Some(dir) => vec![dir],
        None => start.ancestors().collect(),
    };
    for dir in candidates {
        match record::settle(state, dir, now) {
            Ok(IdentityMatch::Nowhere | IdentityMatch::Perhaps { .. }) => (),
            Ok(
                IdentityMatch::ByPath | IdentityMatch::Moved { .. } | IdentityMatch::Alias { .. },
            )
            | Err(_) => return,
        }
    }
}

/// The plain root around `start` that already has checkpoints, if `start` is in no repository: a
/// subdirectory of it is no project of its own.
fn known_root(start: &Path, state: &StateDir) -> Option<PathBuf> {
    let in_repository = start.ancestors().any(|dir| dir.join(".git").symlink_metadata().is_ok());
    if in_repository {
        return None;
    }
    start.ancestors().find(|dir| state.root_at(dir).location().exists()).map(Path::to_owned)
}

/// Finds checkpoints by their names.
impl Project {
    fn pick(
        &self,
        mut checkpoints: Vec<Checkpoint>,
        selector: &Selector,
        given: &str,
    ) -> Result<Checkpoint> {
        let none = || Error::NoSuchCheckpoint { given: given.to_owned() };
        let uses = ledger::uses(&self.state);
        adopt(&mut checkpoints, &uses);
        match selector {
            Selector::Latest(n) => {
                checkpoints.into_iter().filter(is_counted).nth(*n as usize).ok_or_else(none)
            }
            Selector::Number(row, step) => {
                let rows = rows(checkpoints, &uses);
                let row = rows.into_iter().nth(*row as usize - 1).ok_or_else(none)?;
                // Others than the first are found by the log of calls.
                row.checkpoints.into_iter().next().filter(|_| *step == 1).ok_or_else(none)
            }
            Selector::Prefix(prefix) => {
                checkpoints.retain(|checkpoint| {
                    checkpoint.id.to_string().starts_with(prefix) || is_named(checkpoint, given)
                });
                only(checkpoints, given)
            }
            Selector::Words(_) => match plan::moment(given, self.now, &Local) {
                Some(time) if !checkpoints.iter().any(|one| is_named(one, given)) => {
                    self.last_before(checkpoints, time, given)
                }
                Some(_) | None => {
                    checkpoints.retain(|one| is_named(one, given));
                    only(checkpoints, given)
                }
            },
        }
    }

    /// The last state at or before a time.
    fn last_before(
        &self,
        checkpoints: Vec<Checkpoint>,
        time: DateTime<Utc>,
        given: &str,
    ) -> Result<Checkpoint> {
        let oldest = checkpoints.iter().map(|checkpoint| checkpoint.taken_at).min();
        let before = checkpoints.into_iter().filter(|checkpoint| checkpoint.taken_at <= time);
        before.max_by_key(|it| (it.taken_at, it.sequence)).ok_or_else(|| {
            let given = ui::escape(given.as_bytes());
            let hint = match oldest {
                Some(oldest) => {
                    format!("the oldest is from {}", ui::Clock::local(self.now).exact(oldest))
                }
                None => "an agent's hook takes them, and `beforehand create`".to_owned(),
            };
            Error::other(format!("no checkpoint from {given} or before"), hint)
        })
    }

    /// Whether `given` is a path of the project, now or in the newest checkpoint. Returns it as an
    /// argument.
    pub(crate) fn path_named(&self, given: &str) -> Option<String> {
        let at = without_dots(&self.cwd.as_deref()?.join(given));
        let below = self.root.relative(&at).ok()?;
        let is_there = std::fs::symlink_metadata(&at).is_ok() || self.newest_has(&below);
        is_there.then(|| self.argument(below.as_path()))
    }

    /// Whether the newest checkpoint has something at a path, as far as it can be read.
    fn newest_has(&self, path: &RelPath) -> bool {
        let Ok(all) = self.store.list() else { return false };
        let Some(newest) = all.first() else { return false };
        let Ok(tree) = self.store.tree(newest.id) else { return false };
        matches!(store::entry_at(self.store.as_ref(), &tree, path), Ok(Some(_)))
    }
}

/// Whether `create` was given this message.
fn is_named(checkpoint: &Checkpoint, given: &str) -> bool {
    let cause = &checkpoint.cause;
    cause.reason == Reason::Asked && cause.summary.as_deref() == Some(given)
}

/// The only one of these; an error that names them if there are more.
fn only(mut checkpoints: Vec<Checkpoint>, given: &str) -> Result<Checkpoint> {
    match checkpoints.len() {
        1 => Ok(checkpoints.remove(0)),
        0 => Err(Error::NoSuchCheckpoint { given: given.to_owned() }),
        count => {
            let ids: Vec<String> =
                checkpoints.iter().take(IDS_MAX).map(|one| one.id.to_string()).collect();
            let more = if count > IDS_MAX { ", …" } else { "" };
            let ids = ids.join(", ");
            Err(Error::other(
                format!("`{}` matches {count} checkpoints", ui::escape(given.as_bytes())),
                format!("name one of them, the newest first: {ids}{more}"),
            ))
        }
    }
}

/// As many ids as fit on two lines.
const IDS_MAX: usize = 8;

/// One row of the list: a turn, or a checkpoint a person asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TurnRow {
    /// Its checkpoints, the first one first: the state before the turn changed anything.
    pub(crate) checkpoints: Vec<Checkpoint>,
    /// The newest turn that found nothing changed since the first of these and so uses it.
    pub(crate) used: Option<Use>,
    /// Whether an undo took it back, and no redo since.
    pub(crate) is_undone: bool,
}

/// Whether a checkpoint is one that people count: not one taken before a restore, nor one taken
/// between turns that no turn has come to need.
pub(crate) fn is_counted(checkpoint: &Checkpoint) -> bool {
    match checkpoint.cause.reason {
        Reason::Call | Reason::Asked => true,
        Reason::Net | Reason::BeforeRestore => false,
    }
}

/// Groups checkpoints, given newest first, into rows, newest first.
pub(crate) fn rows(mut checkpoints: Vec<Checkpoint>, uses: &[Use]) -> Vec<TurnRow> {
    adopt(&mut checkpoints, uses);
    let undone = plan::undone(&checkpoints);
    let mut rows: Vec<TurnRow> = Vec::new();
    let mut known: HashMap<TurnKey, usize> = HashMap::new();
    for checkpoint in checkpoints.into_iter().filter(is_counted) {
        // Other sessions may have been at work meanwhile.
        let turn = checkpoint.turn_key();
        if let Some(&row) = turn.as_ref().and_then(|turn| known.get(turn)) {
            rows[row].checkpoints.insert(0, checkpoint);
        } else {
            known.extend(turn.map(|turn| (turn, rows.len())));
            rows.push(TurnRow { checkpoints: vec![checkpoint], used: None, is_undone: false });
        }
    }
    let newest = newest_uses(uses);
    for row in &mut rows {
        // What a restore left is a state that its turn may have gone on from.
        row.is_undone = row.checkpoints.iter().any(|step| undone.contains(&step.id));
        let first = row.checkpoints.first().map(|first| first.id);
        row.used = first.and_then(|first| newest.get(&first).copied()).cloned();
    }
    rows
}
