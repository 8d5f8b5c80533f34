//! Where checkpoints are kept.

pub mod copy;
pub mod escape;
pub mod git;
pub mod listing;
pub mod naming;
pub mod objects;
pub mod reading;
pub mod record;
pub mod root_status;
pub mod sweep;
pub mod usage;

use std::{collections::BTreeMap, io::Read, time::Instant};

use chrono::{DateTime, Utc};

use crate::{
    error::Result,
    model::{
        Cause, Checkpoint, CheckpointId, Content, ContentId, Directory, Entry, Head, Kind,
        Manifest, RelPath, Root, RootKind, StoreChoice, Tree, Usual,
    },
    root::GitDirs,
    scan::Scan,
    state::State,
};

pub use copy::CopyStore;
pub use git::{GitStore, Held, Opened, Step as RepositoryStep, StepKind, maintain};
pub use naming::{Source, changes, named_as};
pub use record::Unreadable;
pub use root_status::RootStatus;
pub use usage::own_bytes;

/// A checkpoint that has not been saved yet.
#[derive(Debug)]
pub struct Draft {
    /// Why.
    pub cause: Cause,
    /// When.
    pub taken_at: DateTime<Utc>,
    /// The files, as found on disk.
    pub scan: Scan,
    /// Whether to record it even if nothing differs from the newest checkpoint.
    pub always: bool,
    /// When to stop reading and keep what there is; the checkpoint is then partial. `None` for one
    /// that must be whole.
    pub deadline: Option<Instant>,
    /// For whoever nobody waits for: if a checkpoint has a greater sequence number than this by the
    /// time there would be one, it is returned and nothing is saved.
    pub after: Option<u64>,
}

impl Draft {
    /// The checkpoint it gives way to, given the newest there is.
    pub fn gives_way(&self, newest: Option<&Checkpoint>) -> Option<Saved> {
        let newest = newest.filter(|it| self.after.is_some_and(|after| it.sequence > after))?;
        Some(Saved { checkpoint: newest.clone(), is_new: false })
    }
}

/// What came of saving a draft.
#[derive(Debug)]
pub struct Saved {
    /// The checkpoint that now holds the files.
    pub checkpoint: Checkpoint,
    /// Whether it was made for this draft. If not, nothing had changed since it was taken.
    pub is_new: bool,
}

/// What came of staging again what a checkpoint had staged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IndexOutcome {
    /// It is staged again: this many entries.
    Restored(usize),
    /// The index is as it was then.
    Unchanged,
    /// The checkpoint holds no index.
    NotKept,
    /// HEAD stands elsewhere than it did, so what was staged means something else now.
    HeadMoved,
    /// A merge, rebase or the like is, or was, in progress: this one.
    InProgress(String),
}

/// Where HEAD stands, seen from where it stood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Since {
    /// The branch it is on; `None` if it is detached.
    pub branch: Option<String>,
    /// How many commits lie between, along first parents; `None` if the old one is not among them.
    pub count: Option<u64>,
}

/// A branch that goes from one commit to another, with HEAD on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeadMove {
    /// The branch, as in `refs/heads/main`.
    pub branch: String,
    /// Where it stands, in hex.
    pub from: String,
    /// Where it goes.
    pub to: String,
    /// How many commits it leaves behind.
    pub count: u64,
}

/// Something in a store that is not as it should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// The checkpoint it spoils, if it belongs to one.
    pub checkpoint: Option<CheckpointId>,
    /// The object, file or ref.
    pub what: String,
    /// What is wrong with it.
    pub why: String,
    /// Whether the checkpoint restores all the same, or never had what is missing.
    pub is_note: bool,
}

impl Damage {
    /// What spoils a checkpoint, or belongs to none.
    pub fn new(checkpoint: Option<CheckpointId>, what: String, why: String) -> Self {
        Self { checkpoint, what, why, is_note: false }
    }

    /// What is worth a word and costs no checkpoint anything.
    pub fn note(checkpoint: Option<CheckpointId>, what: String, why: String) -> Self {
        Self { is_note: true, ..Self::new(checkpoint, what, why) }
    }
}

/// Keeps the checkpoints of one root.
///
/// Two kinds exist, and nothing above this module knows which it has. Both, and a third that lives
/// in memory, pass every test in `tests/store.rs`, which is the contract in full.
pub trait Store {
    /// The root whose checkpoints these are.
    fn root(&self) -> &Root;

    /// Whether new checkpoints go to a private repository.
    fn is_in_repository(&self) -> bool {
        false
    }

    /// The anchor that stands now: a cache that names another one must not be believed about what
    /// is stored.
    fn anchor(&self) -> Option<ContentId>;

    /// Saves a checkpoint. It survives a crash from the moment this returns.
    ///
    /// Create-only: a checkpoint, once saved, does not change. A file that cannot be read joins
    /// [`Checkpoint::skipped`]; the rest is saved all the same. If nothing differs from the newest
    /// checkpoint and [`Draft::always`] is not set, that one is returned and nothing is written.
    ///
    /// # Errors
    ///
    /// Fails if the store cannot be written. Then nothing was saved.
    fn save(&self, draft: Draft) -> Result<Saved>;

    /// All checkpoints, newest first.
    fn list(&self) -> Result<Vec<Checkpoint>>;

    /// The files of a checkpoint.
    fn tree(&self, id: CheckpointId) -> Result<Tree>;

    /// Names the files on disk as this store would, saving nothing. The scan must not be saved
    /// afterwards: the names in it would pass for stored.
    fn identify(&self, scan: &mut Scan) -> Result<Tree>;

    /// One stored directory. The store's own escapes are undone: names are as on disk.
    fn directory(&self, id: &ContentId) -> Result<Directory>;

    /// Opens the bytes of one file.
    fn open(&self, content: &Content) -> Result<Box<dyn Read>>;

    /// Those of [`Store::list`] that cannot be read, and why.
    ///
    /// # Errors
    ///
    /// Fails if they cannot be listed.
    fn unreadable(&self) -> Result<BTreeMap<CheckpointId, Unreadable>> {
        Ok(BTreeMap::new())
    }

    /// Forgets checkpoints and tells how many there were. One already gone is no error, and one that
    /// a newer turnback wrote stays. What they alone held is freed by the next [`sweep`](sweep::sweep).
    ///
    /// # Errors
    ///
    /// Fails if somebody saves all the while, or something cannot be removed.
    fn forget(&self, ids: &[CheckpointId]) -> Result<usize>;

    /// Forgets checkpoints and returns how many bytes that freed. One already gone is no error.
    fn remove(&self, ids: &[CheckpointId]) -> Result<u64>;

    /// Whether [`maintain`] is worth its while.
    fn is_untidy(&self) -> bool {
        false
    }

    /// Looks for damage: every checkpoint readable and, with `read_data`, every byte what it
    /// should be.
    fn check(&self, read_data: bool) -> Result<Vec<Damage>>;

    /// Puts right what can be without any bytes: refs that are gone are made again, and those that
    /// lead nowhere dropped. Says what was done.
    ///
    /// # Errors
    ///
    /// Fails if something cannot be looked at or written.
    fn repair(&self) -> Result<Vec<String>> {
        Ok(Vec::new())
    }

    /// The tree of git's index that a checkpoint holds, if it holds one.
    fn staged(&self, id: CheckpointId) -> Result<Option<ContentId>>;

    /// Stages again what was staged when a checkpoint was taken. The files are not touched.
    ///
    /// # Errors
    ///
    /// Fails if the index cannot be read or written, or if another git process has it. Then it is
    /// as it was.
    fn restore_index(&self, _id: CheckpointId) -> Result<IndexOutcome> {
        Ok(IndexOutcome::NotKept)
    }

    /// Where HEAD stands now, seen from `then`; `None` if that cannot be told.
    fn commits_since(&self, _then: &Head) -> Option<Since> {
        None
    }

    /// How the branch HEAD is on would go back to where it stood; `None` if it stands there.
    ///
    /// # Errors
    ///
    /// Why it must not, as a fragment.
    fn plan_head(&self, _then: &Head) -> Result<Option<HeadMove>, String> {
        Err("these checkpoints are not kept in a git repository".to_owned())
    }

    /// Moves the branch HEAD is on, unless it stands elsewhere by now. Whether it was moved. Files
    /// and index stay as they are.
    ///
    /// # Errors
    ///
    /// Fails if the repository cannot be written. Then nothing was moved.
    fn move_head(&self, _to: &HeadMove, _why: &str) -> Result<bool> {
        Ok(false)
    }

    /// Whether [`Store::restore_index`] would change the index.
    ///
    /// # Errors
    ///
    /// Fails if the checkpoint cannot be read.
    fn index_differs(&self, _id: CheckpointId) -> Result<bool> {
        Ok(false)
    }

    /// How to look at a file of a checkpoint without us: a command line, or where the files are.
    fn by_hand(&self, id: CheckpointId) -> String;
}

/// Opens the store of a root: a private repository if it is, or was, a git worktree, else copies. A
/// repository that turns out not to be usable is no error: the root the store answers for then says
/// why.
///
/// # Errors
///
/// Fails if turnback's own store cannot be opened.
pub fn open(root: &Root, state: &State, choice: StoreChoice) -> Result<Box<dyn Store>> {
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

/// The same for a root that was looked at a moment ago: `dirs` is what was found of its repository.
///
/// # Errors
///
/// As [`open`].
pub fn open_looked_at(
    root: &Root,
    dirs: Option<GitDirs>,
    state: &State,
    choice: StoreChoice,
) -> Result<Box<dyn Store>> {
    match dirs {
        Some(dirs) => Ok(of_git(GitStore::looked_at(dirs, root, state), choice)),
        None => open(root, state, choice),
    }
}

/// A root whose checkpoints are to be copies has such a store, unless some are not.
fn of_git(store: GitStore, choice: StoreChoice) -> Box<dyn Store> {
    match choice {
        StoreChoice::Files if !store.is_used() => Box::new(store.into_copies()),
        StoreChoice::Files | StoreChoice::Auto => Box::new(store.saving(choice)),
    }
}

/// A root without a usable repository: one that had one goes on where it was.
fn open_plain(root: &Root, state: &State, choice: StoreChoice) -> Result<Box<dyn Store>> {
    let own = state.root(root);
    let (name, git_dir) = match record::read_location(&own) {
        Ok(Some(place)) => (place.store, place.git_dir),
        Ok(None) => (None, None),
        // The records know as well, and are many more to read.
        Err(_) => (record::store_of(&own)?, None),
    };
    match name {
        Some(name) => {
            let store = GitStore::without_repository(git_dir.as_deref(), &name, root, state);
            Ok(of_git(store, choice))
        }
        None => Ok(Box::new(CopyStore::open(root, state)?)),
    }
}

const _: Option<&dyn Store> = None; // Store stays usable as `dyn`.

/// Every file of `tree` by path. Reads every directory: for small trees and tests.
///
/// # Errors
///
/// Fails if a directory of the tree cannot be read.
pub fn manifest(store: &dyn Store, tree: &Tree) -> Result<Manifest> {
    let mut files = Manifest::new();
    if let Some(top) = tree.top {
        add_directory(store, tree, &top, &[], &mut files)?;
    }
    files.extend(tree.besides.iter().map(|(path, entry)| (path.clone(), *entry)));
    Ok(files)
}

/// The entries of one directory of `tree`, stored or not, with the permissions usual in it where a
/// store says no more than file, executable or directory.
///
/// # Errors
///
/// Fails if it cannot be read.
pub fn directory_of(store: &dyn Store, tree: &Tree, id: &ContentId) -> Result<Directory> {
    let mut directory = match tree.unsaved.get(id) {
        Some(directory) => directory.clone(),
        None => store.directory(id)?,
    };
    let (from, to) = (Usual::default(), tree.usual);
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

fn add_directory(
    store: &dyn Store,
    tree: &Tree,
    id: &ContentId,
    above: &[u8],
    files: &mut Manifest,
) -> Result<()> {
    for (name, entry) in directory_of(store, tree, id)? {
        let path = if above.is_empty() { name } else { [above, b"/", &name[..]].concat() };
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
