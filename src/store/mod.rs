//! Stores checkpoints. [`Store`] is the interface; [`open`] selects the implementation.

mod anchor;
pub mod copy;
pub(crate) mod directory;
pub mod git;
pub mod listing;
pub mod naming;
pub(crate) mod object_stamps;
pub mod objects;
mod plumbing;
pub mod reading;
pub mod record;
pub mod repository;
pub mod root_status;
mod save;
pub mod sweep;
pub mod usage;
pub mod verify;

use std::{
    collections::{BTreeMap, BTreeSet},
    io::Read,
    time::{Duration, Instant},
};

use chrono::{DateTime, Utc};

use crate::{
    error::Result,
    model::{
        Cause, Checkpoint, CheckpointId, Content, ContentId, DefaultModes, Directory, Entry, Kind,
        Manifest, RelPath, Root, RootKind, StoreChoice, Tree, join_path,
    },
    root::GitDirs,
    scan::Scan,
    state::StateDir,
};

pub use copy::CopyStore;
pub use git::{GitStore, make_refs_again, remove_refs, retain_unchanged, retain_with_objects};
pub use naming::{ContentSource, changes, with_stored_id};
pub use record::{Held, Needs, Unreadable};
pub use repository::{Opened, RepositoryStep, StepKind, maintain, tidy};
pub use root_status::RootStatus;

/// How long a removal, a repair, and a save without a deadline wait for other saves: longer than a first save of
/// a large root, and a person still waits for it.
const LOCK_WAIT: Duration = Duration::from_secs(10);

/// A checkpoint that has not been saved yet.
#[derive(Debug)]
pub struct Draft {
    /// Why.
    pub cause: Cause,
    /// When.
    pub taken_at: DateTime<Utc>,
    /// The files found on disk.
    pub scan: Scan,
    /// Whether to record it even if nothing differs from the newest checkpoint.
    pub always: bool,
    /// When to stop reading and save what there is as a partial checkpoint. `None` for one that
    /// must be complete.
    pub deadline: Option<Instant>,
    /// For a background save: if a checkpoint with a greater sequence number exists by the time
    /// this one would be published, that one is returned and nothing is saved.
    pub after: Option<u64>,
}

impl Draft {
    /// The checkpoint that this draft gives way to, if `newest` is one.
    pub fn gives_way(&self, newest: Option<&Checkpoint>) -> Option<Saved> {
        let newest = newest.filter(|it| self.after.is_some_and(|after| it.sequence > after))?;
        Some(Saved { checkpoint: newest.clone(), is_new: false })
    }
}

/// What the records of a root say.
#[derive(Debug, Default)]
pub struct Survey {
    /// All checkpoints, newest first.
    pub checkpoints: Vec<Checkpoint>,
    /// Those with records that cannot be read, and why.
    pub unreadable: BTreeMap<CheckpointId, Unreadable>,
    /// The objects that the readable records name.
    pub needs: Vec<Needs>,
}

/// The result of saving a draft.
#[derive(Debug)]
pub struct Saved {
    /// The checkpoint that now holds the files.
    pub checkpoint: Checkpoint,
    /// Whether it was created for this draft. If not, nothing had changed since it was taken.
    pub is_new: bool,
}

/// The result of restoring the index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IndexOutcome {
    /// Restored; the number of entries.
    Restored(usize),
    /// The index already had these entries.
    Unchanged,
    /// The checkpoint holds no index.
    NotKept,
    /// HEAD has moved, so the saved index would mean something else now.
    HeadMoved,
    /// A merge, rebase or similar operation is, or was, in progress.
    InProgress(String),
    /// It has changed since a restore of it was interrupted, and what is staged now is not held.
    Changed,
}

/// The position of HEAD relative to an earlier one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeadDistance {
    /// The current branch; `None` if HEAD is detached.
    pub branch: Option<String>,
    /// The number of commits since, along first parents; `None` if the old commit is not among
    /// them.
    pub count: Option<u64>,
}

/// A planned reset of the current branch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeadMove {
    /// The branch, as in `refs/heads/main`.
    pub branch: String,
    /// Its current commit, in hex.
    pub from: String,
    /// The commit to reset it to.
    pub to: String,
    /// How many commits the branch will no longer contain.
    pub count: u64,
}

/// One finding of a check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// The damaged checkpoint, if the finding belongs to one.
    pub checkpoint: Option<CheckpointId>,
    /// The object, file or ref.
    pub what: String,
    /// What is wrong with it.
    pub why: String,
    /// Whether it does not affect the checkpoint: it restores, or never had what is missing.
    pub is_note: bool,
}

impl Damage {
    /// Damage to a checkpoint, or to something that belongs to none.
    pub fn new(checkpoint: Option<CheckpointId>, what: String, why: String) -> Self {
        Self { checkpoint, what, why, is_note: false }
    }

    /// A finding that affects no checkpoint.
    pub fn note(checkpoint: Option<CheckpointId>, what: String, why: String) -> Self {
        Self { is_note: true, ..Self::new(checkpoint, what, why) }
    }
}

/// The checkpoints of one root.
///
/// There are two implementations. Callers know which one they have only if they ask [`Store::git`].
/// Both, and an in-memory one, pass every test in `tests/store.rs`, which is the complete contract.
pub trait Store {
    /// The root that the checkpoints belong to.
    fn root(&self) -> &Root;

    /// This store, if it is the git store: for the index, HEAD and the private repository.
    fn git(&self) -> Option<&GitStore>;

    /// The current anchor. A cache with another anchor must not be trusted about what is stored.
    fn anchor(&self) -> Option<ContentId>;

    /// Saves a checkpoint. It survives a crash from the moment this returns.
    ///
    /// A saved checkpoint never changes. A file that cannot be read is added to
    /// [`Checkpoint::skipped`], and the rest is saved. If nothing differs from the newest
    /// checkpoint and [`Draft::always`] is not set, that checkpoint is returned and nothing is
    /// written.
    ///
    /// # Errors
    ///
    /// Fails if the store cannot be written; nothing is saved then.
    fn save(&self, draft: Draft) -> Result<Saved>;

    /// What the records say, read once.
    ///
    /// # Errors
    ///
    /// Fails if the records cannot be listed.
    fn survey(&self) -> Result<Survey>;

    /// All checkpoints, newest first.
    fn list(&self) -> Result<Vec<Checkpoint>> {
        self.survey().map(|survey| survey.checkpoints)
    }

    /// The files of a checkpoint.
    fn tree(&self, id: CheckpointId) -> Result<Tree>;

    /// Computes the ids that this store would give to the files on disk, without saving. The scan
    /// must not be saved afterwards, because its ids would count as stored.
    fn identify(&self, scan: &mut Scan) -> Result<Tree>;

    /// One stored directory, with names as on disk.
    fn directory(&self, id: &ContentId) -> Result<Directory>;

    /// Whether the content of a file or symlink is there. Does not read it.
    fn has(&self, content: &Content) -> bool;

    /// Opens the content of one file.
    fn open(&self, content: &Content) -> Result<Box<dyn Read>>;

    /// Adds contents by their SHA-256, which can then be opened as private ones, and are not stored.
    fn put_beside(&mut self, contents: BTreeMap<ContentId, Vec<u8>>);

    /// Forgets checkpoints and returns how many existed. A missing one is not an error, and one
    /// that a newer beforehand wrote stays. The next [`sweep`](sweep::sweep) frees what only they
    /// needed.
    ///
    /// # Errors
    ///
    /// Fails if saves hold the lock for too long, or if something cannot be removed.
    fn forget(&self, ids: &[CheckpointId]) -> Result<usize>;

    /// Forgets checkpoints and returns how many bytes that freed. A missing one is not an error.
    fn remove(&self, ids: &[CheckpointId]) -> Result<u64>;

    /// Whether maintenance has enough to do to be started now.
    fn is_untidy(&self) -> bool;

    /// Looks for damage: reads every checkpoint and, with `read_data`, verifies every byte.
    fn check(&self, read_data: bool) -> Result<Vec<Damage>>;

    /// Repairs what needs no file content: creates missing refs again and drops refs to missing
    /// objects. Returns what was done.
    ///
    /// # Errors
    ///
    /// Fails if something cannot be read or written.
    fn repair(&self) -> Result<Vec<String>>;

    /// How to read a file of a checkpoint without beforehand: a command line, or a directory.
    fn by_hand(&self, id: CheckpointId) -> String;
}

/// Opens the store of a root: the git store if the root is, or was, a git worktree, else the file
/// store. An unusable repository is not an error: the store's root then says why.
///
/// # Errors
///
/// Fails if the state directory cannot be used.
pub fn open(root: &Root, state: &StateDir, choice: StoreChoice) -> Result<Box<dyn Store>> {
    match root.kind() {
        RootKind::Git { .. } => match GitStore::open(root, state) {
            Ok(store) => Ok(of_git(store, choice)),
            Err(err) => {
                let plain = RootKind::Plain { why: Some(err.to_string()) };
                open_plain(&Root::new(root.path().to_owned(), plain), state, choice)
            }
        },
        RootKind::Plain { .. } => open_plain(root, state, choice),
    }
}

/// Opens the store of a root that was just inspected: `dirs` describes its repository.
///
/// # Errors
///
/// As [`open`].
pub fn open_looked_at(
    root: &Root,
    dirs: Option<GitDirs>,
    state: &StateDir,
    choice: StoreChoice,
) -> Result<Box<dyn Store>> {
    match dirs {
        Some(dirs) => Ok(of_git(GitStore::looked_at(dirs, root, state), choice)),
        None => open(root, state, choice),
    }
}

/// If the settings choose copies, the root gets a file store, unless it already has checkpoints in
/// a private repository.
fn of_git(store: GitStore, choice: StoreChoice) -> Box<dyn Store> {
    match choice {
        StoreChoice::Files if !store.is_used() => Box::new(store.into_copies()),
        StoreChoice::Files | StoreChoice::Auto => Box::new(store.saving(choice)),
    }
}

/// Opens the store of a root without a usable repository. If it had one, its git store goes on.
fn open_plain(root: &Root, state: &StateDir, choice: StoreChoice) -> Result<Box<dyn Store>> {
    let own = state.root(root);
    let (name, git_dir) = match record::read_location(&own) {
        Ok(Some(place)) => (place.store, place.git_dir),
        // Its own state is lost, or there never was one.
        Ok(None) => (repository::name_at(state, &root.path().join(".git")), None),
        // The records know it too, but there are many to read.
        Err(_) => (record::store_of(&own)?, None),
    };
    match name {
        Some(name) => {
            let store = GitStore::without_repository(git_dir.as_deref(), &name, root, state);
            Ok(of_git(store, choice))
        }
        None => Ok(Box::new(CopyStore::of(root, state))),
    }
}

const _: Option<&dyn Store> = None; // Store stays usable as `dyn`.

/// Every file of `tree` by path. Reads every directory, so use it for small trees and tests.
///
/// # Errors
///
/// Fails if a directory of the tree cannot be read.
pub fn manifest(store: &dyn Store, tree: &Tree) -> Result<Manifest> {
    let mut files = Manifest::new();
    if let Some(top) = tree.top {
        add_directory(store, tree, &top, &[], &mut files)?;
    }
    files.extend(tree.overlay.iter().map(|(path, entry)| (path.clone(), *entry)));
    Ok(files)
}

/// What a tree has at a path below the root, stored or not.
///
/// # Errors
///
/// Fails if it cannot be read.
pub fn entry_at(store: &dyn Store, tree: &Tree, path: &RelPath) -> Result<Option<Entry>> {
    crate::plan::entry_at(tree, path, &mut |tree, id| directory_of(store, tree, id))
}

/// The entries of one directory of `tree`, stored or not. Where a store records only "file",
/// "executable" or "directory", fills in the root's usual permissions.
///
/// # Errors
///
/// Fails if it cannot be read.
pub fn directory_of(store: &dyn Store, tree: &Tree, id: &ContentId) -> Result<Directory> {
    let mut directory = match tree.unsaved.get(id) {
        Some(directory) => directory.clone(),
        None => store.directory(id)?,
    };
    let (from, to) = (DefaultModes::default(), tree.default_modes);
    for entry in directory.values_mut() {
        entry.permissions = match (entry.kind, entry.permissions) {
            (Kind::Directory, bits) if bits == from.directory => to.directory,
            (Kind::File, bits) if bits == from.executable => to.executable,
            (Kind::File, bits) if bits == from.file => to.file,
            (_, bits) => bits,
        };
    }
    Ok(directory)
}

/// What is left of a damaged tree: directories that cannot be read are empty.
pub fn readable(store: &dyn Store, mut tree: Tree) -> Tree {
    let (mut open, mut seen) = (Vec::from_iter(tree.top), BTreeSet::new());
    while let Some(id) = open.pop() {
        if !seen.insert(id) {
            continue;
        }
        let Ok(directory) = directory_of(store, &tree, &id) else {
            tree.unsaved.insert(id, Directory::new());
            continue;
        };
        let below = directory.values().filter(|entry| entry.kind == Kind::Directory);
        open.extend(below.filter_map(|entry| entry.content).map(|content| content.id));
    }
    tree
}

fn add_directory(
    store: &dyn Store,
    tree: &Tree,
    id: &ContentId,
    above: &[u8],
    files: &mut Manifest,
) -> Result<()> {
    for (name, entry) in directory_of(store, tree, id)? {
        let path = join_path(above, &name);
        let Ok(rel) = RelPath::from_bytes(&path) else {
            let what = String::from_utf8_lossy(&path).escape_debug().to_string();
            return Err(crate::error::Error::damaged(what, "not a name a file can have"));
        };
        files.insert(rel, entry);
        if let Entry { kind: Kind::Directory, content: Some(content), .. } = entry {
            add_directory(store, tree, &content.id, &path, files)?;
        }
    }
    Ok(())
}
