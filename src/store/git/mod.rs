//! The git store: a checkpoint is a tree in a private repository of ours, plus a private record.
//! `docs/FORMAT.md` describes the format.
//!
//! Nothing of ours is below the user's `.git`: see `store::repository`.

mod branch;
mod check;
pub(crate) mod checkout;
mod fallback;
#[doc(hidden)]
pub mod fuzzing;
mod refs_again;
mod reset_branch;
mod save;
mod sink;
mod work_tree;

use std::{
    cell::RefCell,
    cmp::Reverse,
    collections::{BTreeMap, HashMap, HashSet},
    io::Read,
    path::Path,
    rc::Rc,
    sync::Arc,
    time::Instant,
};

use chrono::DateTime;

use gix::{ObjectId, objs::Kind as ObjectKind};

pub use super::plumbing::index::IndexEntry;
pub use branch::{NewCommit, NewFile};
pub use refs_again::{make_refs_again, remove_refs, retain_unchanged, retain_with_objects};

use self::sink::GitSink;
use super::{
    CopyStore, Damage, Draft, LOCK_WAIT, Saved, Store, Survey, Unreadable,
    directory::entry_of,
    listing,
    plumbing::{
        head, index, modes,
        objects::ObjectWriter,
        refs,
        refs::{RefPair, Refs},
        repo::{self, Repo, content_id},
        stream,
        tree::{self, Parts, read_parts},
    },
    reading,
    record::{self, Record, RecordIndex, StoreKind},
    repository::{self, PrivateRepository},
    sweep,
};
use crate::{
    error::{Error, Result},
    fs::Lock,
    model::{
        Checkpoint, CheckpointId, Completeness, Content, ContentId, Directory, Entry, Kind,
        RelPath, Root, ScanEntry, Storage, StoreChoice, Tree,
    },
    root::GitDirs,
    scan::Scan,
    state::{RootState, StateDir},
};

/// The git store of one root. Also reads the copies it has from before it was a git repository.
pub struct GitStore {
    root: Root,
    state: RootState,
    /// The user's repository; `None` if there is none now.
    user: Option<Repo>,
    private: PrivateRepository,
    /// The private repository, opened.
    repo: Rc<Repo>,
    /// Earlier private repositories, by name; opened on first use.
    earlier: RefCell<BTreeMap<String, Rc<Repo>>>,
    refs: Refs,
    /// The records of the root, which the file store reads too.
    records: Rc<RecordIndex>,
    copies: CopyStore,
    choice: StoreChoice,
}

/// A checkpoint with everything that can be read of it.
struct LoadedCheckpoint {
    checkpoint: Checkpoint,
    /// The record, or its copy, if one of the two can be read.
    record: Option<Arc<Record>>,
    /// The tree that its ref points at; `None` if the ref is missing.
    tree: Option<ObjectId>,
    /// Its parts, and the public part of its record; `None` if they cannot be read.
    parts: Option<(Parts, ObjectId)>,
}

/// Where a checkpoint is.
struct LocatedCheckpoint {
    id: CheckpointId,
    /// Its record: its file or, if that cannot be read, the copy in the private repository.
    record: Option<Arc<Record>>,
    /// The private repository with its tree.
    repo: Rc<Repo>,
}

impl LocatedCheckpoint {
    /// Returns true for a checkpoint in the file store.
    fn is_copy(&self) -> bool {
        self.record.as_ref().is_some_and(|record| record.keeper == StoreKind::Copy)
    }
}

impl GitStore {
    /// Opens the store of `root`, which must be of kind git. Creates nothing yet.
    ///
    /// # Errors
    ///
    /// [`Error::Repository`] if the repository cannot be used.
    pub fn open(root: &Root, state: &StateDir) -> Result<Self> {
        Repo::open(root).map(|user| Self::with(user, root, state))
    }

    /// Opens the store for a repository that was just inspected.
    pub fn looked_at(dirs: GitDirs, root: &Root, state: &StateDir) -> Self {
        Self::with(Repo::looked_at(dirs), root, state)
    }

    /// The store of a root that no longer has a repository: `git_dir` is where it was, and `name`
    /// the private repository.
    pub fn without_repository(
        git_dir: Option<&Path>,
        name: &str,
        root: &Root,
        state: &StateDir,
    ) -> Self {
        let is_linked = |dir: &&Path| dir.parent().is_some_and(|it| it.ends_with("worktrees"));
        let refs = match git_dir.filter(is_linked) {
            Some(git_dir) => Refs::of_linked(git_dir, root.path()),
            None => Refs::of_main(),
        };
        Self::made_of(None, PrivateRepository::named(state, name), refs, root, state)
    }

    fn with(user: Repo, root: &Root, state: &StateDir) -> Self {
        let private = PrivateRepository::of(state, &user.common_dir, user.hash);
        let refs = if user.git_dir == user.common_dir {
            Refs::of_main()
        } else {
            Refs::of_linked(&user.git_dir, root.path())
        };
        Self::made_of(Some(user), private, refs, root, state)
    }

    fn made_of(
        user: Option<Repo>,
        private: PrivateRepository,
        refs: Refs,
        root: &Root,
        state: &StateDir,
    ) -> Self {
        let copies = CopyStore::of(root, state);
        Self {
            root: root.clone(),
            state: state.root(root),
            user,
            repo: Rc::new(private.repo()),
            private,
            earlier: RefCell::default(),
            refs,
            records: copies.records().clone(),
            copies,
            choice: StoreChoice::Auto,
        }
    }

    /// Sets where new checkpoints are saved.
    #[must_use]
    pub fn saving(mut self, choice: StoreChoice) -> Self {
        self.choice = choice;
        self
    }

    /// Whether it has any checkpoints in the private repository.
    pub fn is_used(&self) -> bool {
        self.private.exists() && !self.refs.list(&self.repo).is_ok_and(|refs| refs.is_empty())
    }

    /// Its file store.
    pub fn into_copies(self) -> CopyStore {
        self.copies
    }

    /// The name of the private repository.
    pub fn name(&self) -> &str {
        self.private.name()
    }

    /// Finds the record and the private repository of a checkpoint.
    fn locate(&self, id: CheckpointId) -> LocatedCheckpoint {
        let record = match self.records.get(id) {
            Ok(record) => Some(record),
            Err(err) if record::is_lost(&err) => self.any_copy_of(id).map(Arc::new),
            Err(_) => None,
        };
        let repo = record.as_ref().map_or_else(|| self.repo.clone(), |record| self.repo_of(record));
        LocatedCheckpoint { id, record, repo }
    }

    /// The private repository that a record names.
    fn repo_of(&self, record: &Record) -> Rc<Repo> {
        match &record.store {
            // From before the user's repository was recreated with another hash function.
            Some(name) if name != self.private.name() => self.repo_named(name),
            Some(_) | None => self.repo.clone(),
        }
    }

    /// The copy of a checkpoint's record, in this private repository or in another one for the same path.
    fn any_copy_of(&self, id: CheckpointId) -> Option<Record> {
        if let Ok(copy) = self.copy_of(&self.repo, id) {
            return Some(copy);
        }
        self.others_at_path().iter().find_map(|repo| self.copy_of(repo, id).ok())
    }

    /// Copies of records that are in another private repository for the same path, and that are not among
    /// `recorded`.
    fn copies_elsewhere(&self, recorded: &HashSet<CheckpointId>) -> Result<Vec<Record>> {
        let mut copies = Vec::new();
        for repo in self.others_at_path() {
            let refs = self.refs.list(&repo)?.into_iter();
            let lost = refs.filter(|id| !recorded.contains(id));
            copies.extend(lost.filter_map(|id| self.copy_of(&repo, id).ok()));
        }
        Ok(copies)
    }

    /// The parts of a checkpoint, and the public part of its record.
    fn parts(&self, at: &LocatedCheckpoint) -> Result<(Parts, ObjectId)> {
        read_parts(&at.repo, self.tree_id(&at.repo, at.id, at.record.as_deref())?)
    }

    /// The copy of a checkpoint's record in its private part.
    fn copy_of(&self, repo: &Repo, id: CheckpointId) -> Result<Record> {
        let missing = || Error::damaged(self.refs.private_name(id), "the ref is gone");
        let private = self.refs.private(repo, id)?.ok_or_else(missing)?;
        let record = repository::private_record(repo, private)?;
        let is_it = record.checkpoint.id == id;
        if is_it {
            Ok(record)
        } else {
            Err(Error::damaged("record", "it names another checkpoint"))
        }
    }

    /// Whether a checkpoint has no ref of its own because it holds as public what became private later.
    fn is_retracted(&self, repo: &Repo, id: CheckpointId) -> bool {
        let private = self.refs.private(repo, id).ok().flatten();
        let part = private.and_then(|private| tree::private_part(repo, private).ok());
        part.is_some_and(|part| part.public.is_some())
    }

    /// Writes lost records again from their copies, unless another process has the root's lock: then the next
    /// reader does it. A checkpoint that was dropped meanwhile has no ref any more.
    fn write_lost(&self, copies: &[Record]) -> Result<usize> {
        if copies.is_empty() || !self.state.dir().is_dir() {
            return Ok(0);
        }
        let Some(_lock) = Lock::acquire_if_free(&self.state.lock(), Instant::now())? else {
            return Ok(0);
        };
        let mut written = 0;
        for record in copies {
            if self.refs.private(&self.repo_of(record), record.checkpoint.id)?.is_some() {
                record::rewrite(&self.state, record)?;
                written += 1;
            }
        }
        Ok(written)
    }

    /// The tree of a checkpoint. Its record names it; without one, its ref does.
    fn tree_id(&self, repo: &Repo, id: CheckpointId, record: Option<&Record>) -> Result<ObjectId> {
        let named = record.and_then(|record| record.tree).map(|tree| repo.object_id(&tree));
        if let Some(tree) = named.filter(|tree| repo.has(tree)) {
            return Ok(tree);
        }
        match self.refs.checkpoint(repo, id)? {
            Some(tree) => Ok(tree),
            None if record.is_some() || record::path_of(&self.state, id).exists() => {
                Err(Error::damaged(self.refs.name(id), "the ref is gone"))
            }
            None => Err(Error::NoSuchCheckpoint { given: id.to_string() }),
        }
    }

    /// Creates missing refs of checkpoints that still exist, so that they are kept. Returns how
    /// many.
    ///
    /// # Errors
    ///
    /// Fails if the records cannot be read, or if a ref cannot be created.
    fn repair_refs(&self) -> Result<usize> {
        let repo = self.repo.refreshed();
        let mut made = 0;
        for (loaded, pair) in self.loaded(&repo)? {
            let Some(record) = loaded.record else { continue };
            let id = record.checkpoint.id;
            let tree = record.tree.map(|tree| repo.object_id(&tree)).filter(|id| repo.has(id));
            let is_missing = pair.public.is_none() && !self.is_retracted(&repo, id);
            if let Some(tree) = tree.filter(|_| is_missing) {
                refs::set(&repo, &self.refs.name(id), tree)?;
                made += 1;
            }
            if pair.private.is_none() {
                let writer = ObjectWriter::new(&repo);
                let private = save::add_private(&repo, &writer, &record)?;
                writer.finish()?;
                refs::set(&repo, &self.refs.private_name(id), private)?;
                made += 1;
            }
        }
        Ok(made)
    }

    /// Loads every checkpoint of this private repository that has a ref or a record, newest first, each with its
    /// refs.
    fn loaded(&self, repo: &Repo) -> Result<Vec<(LoadedCheckpoint, RefPair)>> {
        let refs = self.refs.of_checkpoints(repo)?;
        let recorded = self.records.all()?;
        let ids = newest_first(recorded.iter().map(|entry| entry.id).chain(refs.own()));
        let loaded = ids.into_iter().filter_map(|id| {
            let pair = refs.of(id);
            Some((self.load(repo, id, pair)?, pair))
        });
        Ok(loaded.collect())
    }

    /// Loads a checkpoint, if it is in this private repository.
    fn load(&self, repo: &Repo, id: CheckpointId, pair: RefPair) -> Option<LoadedCheckpoint> {
        let tree = pair.public.flatten();
        let has_ref = pair.public.is_some() || pair.private.is_some();
        match self.records.get(id) {
            Ok(record) if record.store.as_deref() == Some(self.private.name()) => {
                Some(load(repo, id, tree, Some(record)))
            }
            // Only the ref tells that it belongs to this repository.
            Err(err) if has_ref && record::is_lost(&err) => {
                let copy = self.copy_of(repo, id).ok();
                Some(load(repo, id, tree, copy.map(Arc::new)))
            }
            Ok(_) | Err(_) => None,
        }
    }

    /// The public part of a checkpoint's record.
    fn public_bytes(&self, repo: &Repo, id: CheckpointId) -> Result<Vec<u8>> {
        let (_, meta) = read_parts(repo, self.tree_id(repo, id, None)?)?;
        repo.read(&meta, ObjectKind::Blob)
    }

    /// Whether a newer beforehand wrote a checkpoint, according to its record or its `meta`.
    fn is_newer(&self, repo: &Repo, id: CheckpointId) -> bool {
        let public = self.public_bytes(repo, id);
        let public = public.and_then(|json| Record::from_json("meta", &json));
        record::is_newer(&self.state, id) || matches!(public, Err(Error::FormatTooNew { .. }))
    }

    /// The user's repository, refreshed; `None` if there is none.
    fn user(&self) -> Option<Repo> {
        self.user.as_ref().map(Repo::refreshed)
    }

    fn anchored(&self, scan: &Scan) -> bool {
        scan.anchor.is_some() && scan.anchor == self.anchor()
    }
}

/// Checkpoints, each once, the newest first.
fn newest_first(ids: impl Iterator<Item = CheckpointId>) -> Vec<CheckpointId> {
    let mut ids: Vec<CheckpointId> = ids.collect();
    ids.sort_unstable_by_key(|id| Reverse((id.sequence(), *id)));
    ids.dedup();
    ids
}

/// A listing in the private part of a checkpoint.
fn read_listing(repo: &Repo, id: &ContentId) -> Result<listing::Listing> {
    let text = repo.read_checked(&repo.object_id(id), ObjectKind::Blob)?;
    listing::parse(id, &text, Storage::Git)
}

/// Combines a checkpoint's record and tree.
fn load(
    repo: &Repo,
    id: CheckpointId,
    tree: Option<ObjectId>,
    record: Option<Arc<Record>>,
) -> LoadedCheckpoint {
    let read = tree.and_then(|tree| read_parts(repo, tree).ok());
    let checkpoint = match (&record, &read) {
        (Some(record), _) => record.checkpoint.clone(),
        (None, Some((parts, meta))) => public_checkpoint(repo, id, parts, meta),
        (None, None) => record::placeholder(id, DateTime::default(), "its tree cannot be read"),
    };
    LoadedCheckpoint { checkpoint, record, tree, parts: read }
}

/// A checkpoint from the public part of its record.
fn public_checkpoint(repo: &Repo, id: CheckpointId, parts: &Parts, meta: &ObjectId) -> Checkpoint {
    let json = repo.read(meta, ObjectKind::Blob).unwrap_or_default();
    let taken_at = record::guess_time(&json);
    match Record::from_json(&format!("meta of {id}"), &json) {
        Ok(public) if public.checkpoint.id == id => {
            let top = parts.files.map(|id| content_id(&id));
            Checkpoint { top, completeness: Completeness::RecordLost, ..public.checkpoint }
        }
        Ok(_) => record::placeholder(id, taken_at, "it names another checkpoint"),
        Err(err) => record::placeholder(id, taken_at, &err.to_string()),
    }
}

/// The entries in `modes`, with their contents from the tree.
fn odd_entries(repo: &Repo, parts: &Parts) -> Result<BTreeMap<RelPath, Entry>> {
    let Some(modes) = parts.modes else { return Ok(BTreeMap::new()) };
    let mut lookup = EntryLookup { repo, top: parts.files, read: HashMap::new() };
    let mut entries = BTreeMap::new();
    for record in modes::parse(&repo.read(&modes, ObjectKind::Blob)?)? {
        let modes::ModeRecord { path, kind, permissions, device } = record;
        let content = match kind {
            Kind::File | Kind::Directory | Kind::Link => Some(lookup.find(&path, kind)?),
            Kind::Fifo | Kind::Socket | Kind::CharDevice | Kind::BlockDevice => None,
        };
        entries.insert(path, Entry { kind, permissions, content, device });
    }
    Ok(entries)
}

/// Looks up entries by path and reads each directory once.
struct EntryLookup<'a> {
    repo: &'a Repo,
    top: Option<ObjectId>,
    read: HashMap<ContentId, Directory>,
}

impl EntryLookup<'_> {
    fn find(&mut self, path: &RelPath, kind: Kind) -> Result<Content> {
        let missing = || Error::damaged("modes", format!("the tree has no `{path}`"));
        let mut dir = self.top.map(|id| content_id(&id)).ok_or_else(missing)?;
        let mut names = path.names().peekable();
        while let Some(name) = names.next() {
            if !self.read.contains_key(&dir) {
                self.read.insert(dir, tree::read(self.repo, &dir)?);
            }
            let entry = self.read.get(&dir).and_then(|entries| entries.get(name));
            let entry = *entry.ok_or_else(missing)?;
            let content = entry.content.ok_or_else(missing)?;
            match names.peek() {
                Some(_) if entry.kind == Kind::Directory => dir = content.id,
                None if entry.kind == kind => return Ok(content),
                Some(_) | None => return Err(missing()),
            }
        }
        Err(missing())
    }
}

/// The entries of files with unusual modes, from a scan instead of a tree.
fn odd_found(odd: &[(Vec<u8>, ScanEntry)]) -> Result<BTreeMap<RelPath, Entry>> {
    let entry = |(path, found): &(Vec<u8>, ScanEntry)| {
        let entry = entry_of(found, Storage::Git)?.entry;
        let path = RelPath::from_bytes(path).map_err(|_| {
            Error::damaged(String::from_utf8_lossy(path).escape_debug().to_string(), "not a path")
        });
        Some(path.map(|path| (path, entry)))
    };
    odd.iter().filter_map(entry).collect()
}

impl Store for GitStore {
    fn root(&self) -> &Root {
        &self.root
    }

    fn git(&self) -> Option<&GitStore> {
        Some(self)
    }

    fn anchor(&self) -> Option<ContentId> {
        self.refs.anchor(&self.repo).ok().flatten().map(|id| content_id(&id))
    }

    fn save(&self, draft: Draft) -> Result<Saved> {
        self.save_draft(draft)
    }

    fn survey(&self) -> Result<Survey> {
        let repo = self.repo.refreshed();
        let mut refs = self.refs.list(&repo)?;
        let mut survey = Survey::default();
        let (mut unrecorded, mut recorded) = (Vec::new(), HashSet::new());
        for kept in self.records.all()? {
            let has_ref = refs.remove(&kept.id);
            recorded.insert(kept.id);
            let is_lost = kept.record.as_ref().is_err_and(record::is_lost);
            if is_lost && has_ref {
                unrecorded.push((kept.id, kept.unreadable().map(|(_, why)| why)));
            } else {
                kept.add_to(&mut survey);
            }
        }
        unrecorded.extend(refs.into_iter().map(|id| (id, None)));
        let mut copies = self.copies_elsewhere(&recorded)?;
        for record in &copies {
            survey.needs.push(record.needs());
            survey.checkpoints.push(record.checkpoint.clone());
        }
        for (id, unreadable) in unrecorded {
            if let Ok(record) = self.copy_of(&repo, id) {
                survey.needs.push(record.needs());
                survey.checkpoints.push(record.checkpoint.clone());
                copies.push(record);
                continue;
            }
            let is_newer = self.is_newer(&repo, id);
            let unreadable = if is_newer { Some(Unreadable::Newer) } else { unreadable };
            survey.unreadable.extend(unreadable.map(|why| (id, why)));
            let tree = self.refs.checkpoint(&repo, id).ok().flatten();
            survey.checkpoints.push(load(&repo, id, tree, None).checkpoint);
        }
        let _by_the_next_reader = self.write_lost(&copies);
        survey.checkpoints.sort_by_key(|it| Reverse((it.sequence, it.id)));
        Ok(survey)
    }

    fn tree(&self, id: CheckpointId) -> Result<Tree> {
        let located = self.locate(id);
        let repo = &*located.repo;
        let record = match &located.record {
            Some(record) if record.keeper == StoreKind::Copy => {
                return self.copies.tree_of(record);
            }
            record => record.clone(),
        };
        let (parts, meta) = self.parts(&located)?;
        let record = if let Some(record) = record {
            record
        } else {
            // Only what is public is left.
            let json = repo.read(&meta, ObjectKind::Blob)?;
            Arc::new(Record::from_json(&format!("meta of {id}"), &json)?)
        };
        let mut tree = Tree {
            top: parts.files.map(|id| content_id(&id)),
            overlay: odd_entries(repo, &parts)?,
            default_modes: record.default_modes,
            ..Tree::default()
        };
        if let Some(id) = record.overlay {
            let listed = listing::below(&id, &read_listing(repo, &id)?)?;
            tree.listed.extend(listed.keys().cloned());
            tree.overlay.extend(listed);
        }
        if let Some(id) = record.outside {
            tree.outside = listing::outside(&id, &read_listing(repo, &id)?)?;
        }
        Ok(tree)
    }

    fn identify(&self, scan: &mut Scan) -> Result<Tree> {
        let repo = self.repo.refreshed();
        if !self.anchored(scan) {
            // Another store may have set the ids.
            scan.forget_base(|_| false);
        }
        let mut skipped =
            reading::read_all(self.root.path(), scan, None, &mut [GitSink::naming(&repo)])?;
        let mut unsaved = BTreeMap::new();
        tree::build_fresh(&repo, scan, &mut skipped, |body, all| {
            let id = repo::name(repo.hash, ObjectKind::Tree, &body)?;
            unsaved.insert(content_id(&id), tree::directory_of(&repo, all));
            Ok(id)
        })?;
        let summary = modes::summarize(scan);
        let (below, outside) = save::listings(scan, &summary);
        let unstored = ContentId::new(&[]);
        let mut overlay = odd_found(&summary.odd)?;
        let below = listing::below(&unstored, &below)?;
        let listed = below.keys().cloned().collect();
        overlay.extend(below);
        let outside = listing::outside(&unstored, &outside)?;
        let default_modes = scan.default_modes;
        Ok(Tree { top: scan.top(), overlay, listed, outside, unsaved, default_modes })
    }

    fn directory(&self, id: &ContentId) -> Result<Directory> {
        self.read_from_any(id, |repo| tree::read(repo, id), || self.copies.directory(id))
    }

    fn has(&self, content: &Content) -> bool {
        let id = &content.id;
        let missing = || Error::damaged(id.to_string(), "it is missing");
        let found = |is_there: bool| is_there.then_some(()).ok_or_else(missing);
        match content.place {
            Storage::Files => self.copies.has(content),
            Storage::Git => {
                let in_repo = |repo: &Repo| found(repo.has(&repo.object_id(id)));
                self.read_from_any(id, in_repo, || found(self.copies.has(content))).is_ok()
            }
        }
    }

    fn open(&self, content: &Content) -> Result<Box<dyn Read>> {
        let id = &content.id;
        match content.place {
            Storage::Files => self.copies.open(content),
            Storage::Git => {
                self.read_from_any(id, |repo| stream::open(repo, id), || self.copies.open(content))
            }
        }
    }

    fn put_beside(&mut self, contents: BTreeMap<ContentId, Vec<u8>>) {
        self.copies.put_beside(contents);
    }

    fn forget(&self, ids: &[CheckpointId]) -> Result<usize> {
        if !self.state.dir().is_dir() && self.refs.list(&self.repo)?.is_empty() {
            return Ok(0);
        }
        crate::fs::create_private_dirs(self.state.dir())?;
        let _lock = Lock::acquire(&self.state.lock(), Instant::now() + LOCK_WAIT)?;
        let repo = self.repo.refreshed();
        let refs = self.refs.list(&repo)?;
        let there = newest_first(refs.into_iter().chain(record::ids(&self.state)?));
        let stays = |id: &CheckpointId| !ids.contains(id) || self.is_newer(&repo, *id);
        let (stay, go): (Vec<_>, Vec<_>) = there.into_iter().partition(stays);
        for id in &go {
            let earlier = self.locate(*id).repo;
            if !Rc::ptr_eq(&earlier, &self.repo) {
                self.refs.remove(&earlier, &[*id], false)?;
            }
        }
        self.refs.remove(&repo, &go, stay.is_empty())?;
        self.records.remove(&go);
        record::forget(&self.state, go.iter().copied())?;
        Ok(go.len())
    }

    fn remove(&self, ids: &[CheckpointId]) -> Result<u64> {
        sweep::remove(self, self.state.state(), ids)
    }

    fn is_untidy(&self) -> bool {
        self.private.is_due() || sweep::is_untidy(self.copies.objects())
    }

    fn check(&self, read_data: bool) -> Result<Vec<Damage>> {
        let mut found = check::check(self, read_data)?;
        found.extend(self.copies.check(read_data)?);
        Ok(found)
    }

    fn repair(&self) -> Result<Vec<String>> {
        if !self.state.dir().is_dir() {
            return Ok(Vec::new());
        }
        let _lock = Lock::acquire(&self.state.lock(), Instant::now() + LOCK_WAIT)?;
        check::repair(self)
    }

    fn by_hand(&self, id: CheckpointId) -> String {
        let located = self.locate(id);
        if located.is_copy() { self.copies.by_hand(id) } else { self.shown_by_git(&located) }
    }
}
