//! The git store: checkpoints as trees in the repository's own object database, and a private
//! record for each. `docs/FORMAT.md` describes what is written.
//!
//! Reads and writes objects and refs with gix and by hand; runs no git and nothing a repository
//! configures. Never deletes an object: git may have come to rely on it.

mod alone;
mod change;
mod check;
mod collecting;
mod consolidate;
mod files;
#[doc(hidden)]
pub mod fuzzing;
mod head;
mod index;
mod meta;
mod modes;
mod names;
mod objects;
mod pack;
mod quick;
mod refs;
mod repo;
mod restage;
mod save;
mod sink;
mod stream;
mod tip;
mod tree;

use std::{
    collections::{BTreeMap, HashMap},
    io::Read,
    os::unix::ffi::OsStrExt,
    path::PathBuf,
    time::{Duration, Instant},
};

use gix::{
    ObjectId,
    objs::{Kind as ObjectKind, tree::EntryKind},
};

pub use index::{IndexEntry, IndexFlags};

use self::{
    refs::Refs,
    repo::{Repo, content_id},
    sink::GitSink,
};
use super::{
    Damage, Draft, HeadMove, IndexOutcome, Saved, Since, Store, Unread,
    copy::entry_of,
    listing,
    objects::Objects,
    reading,
    record::{self, Keeper, Kept, Record},
    sweep,
};
use crate::{
    cache::Table,
    error::{Error, Result},
    fs::Lock,
    model::{
        Checkpoint, CheckpointId, Content, ContentId, Directory, Entry, Found, Head, Kind, Place,
        RelPath, Root, Stamp, Tree, Usual,
    },
    root::GitDirs,
    scan::Scan,
    state::{RootState, State},
};

/// How long a removal waits for those who save.
const PATIENCE: Duration = Duration::from_secs(30);

/// Keeps the checkpoints of one root in its repository.
pub struct GitStore {
    root: Root,
    state: RootState,
    objects: Objects,
    repo: Repo,
    refs: Refs,
}

/// The parts of a checkpoint's tree that say what it holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Parts {
    files: Option<ObjectId>,
    modes: Option<ObjectId>,
    index: Option<ObjectId>,
    extra: Option<ObjectId>,
}

/// A checkpoint that is there, not yet looked into.
struct There {
    id: CheckpointId,
    sequence: u64,
    record: Option<Record>,
    has_ref: bool,
}

/// A checkpoint that is there, as far as it can be read.
struct Known {
    checkpoint: Checkpoint,
    /// The private record, if it can be read.
    record: Option<Record>,
    /// What its ref points at; `None` if the ref is gone.
    tree: Option<ObjectId>,
    /// `None` if it cannot be read.
    parts: Option<Parts>,
    usual: Option<Usual>,
}

impl GitStore {
    /// Opens the store of `root`, whose kind must be git. Makes nothing yet.
    ///
    /// # Errors
    ///
    /// [`Error::Repository`] if the repository cannot be used (any more).
    pub fn open(root: &Root, state: &State) -> Result<Self> {
        Repo::open(root).map(|repo| Self::with(repo, root, state))
    }

    /// The same for a repository that was looked at a moment ago.
    pub fn looked_at(dirs: GitDirs, root: &Root, state: &State) -> Self {
        Self::with(Repo::looked_at(dirs), root, state)
    }

    fn with(repo: Repo, root: &Root, state: &State) -> Self {
        let refs = Refs::of(&repo, root.path());
        let objects = Objects::new(state.objects());
        Self { root: root.clone(), state: state.root(root), objects, repo, refs }
    }

    /// The entries of the index that a checkpoint holds, in git's order; `None` if it holds none.
    ///
    /// # Errors
    ///
    /// Fails if there is no such checkpoint, or if it is damaged.
    pub fn staged_entries(&self, id: CheckpointId) -> Result<Option<Vec<IndexEntry>>> {
        let repo = self.repo.refreshed();
        let (parts, _) = read_parts(&repo, self.tree_id(&repo, id)?)?;
        match parts.index {
            Some(tree) => index::kept_entries(&repo, tree, parts.extra).map(Some),
            None => Ok(None),
        }
    }

    /// The tree of a checkpoint.
    fn tree_id(&self, repo: &Repo, id: CheckpointId) -> Result<ObjectId> {
        match self.refs.checkpoint(repo, id)? {
            Some(tree) => Ok(tree),
            None if record::path_of(&self.state, id).exists() => {
                // Somebody took our refs away; the objects may still be there.
                let tree = record::read(&self.state, id)?.tree.map(|tree| repo.object_id(&tree));
                tree.filter(|tree| repo.has(tree))
                    .ok_or_else(|| Error::damaged(self.refs.name(id), "the ref is gone"))
            }
            None => Err(Error::NoSuchCheckpoint { given: id.to_string() }),
        }
    }

    /// Makes the refs of checkpoints that have none but are still there, so that no gc takes them.
    ///
    /// # Errors
    ///
    /// Fails if the records cannot be read, or a ref cannot be made.
    pub fn mend_refs(&self) -> Result<()> {
        let repo = self.repo.refreshed();
        for there in self.there(&repo, &record::read_all(&self.state)?)? {
            let tree = there.record.filter(|_| !there.has_ref).and_then(|record| record.tree);
            if let Some(tree) = tree.map(|tree| repo.object_id(&tree)).filter(|id| repo.has(id)) {
                self.refs.create(&repo, there.id, tree, None, || Ok(()))?;
            }
        }
        Ok(())
    }

    /// Every checkpoint that has a ref or a record of ours, newest first.
    fn known(&self, repo: &Repo) -> Result<Vec<Known>> {
        let there = self.there(repo, &record::read_all(&self.state)?)?;
        Ok(there.into_iter().map(|there| self.know(repo, there)).collect())
    }

    /// The same, looking into no tree that a record already speaks for.
    fn there(&self, repo: &Repo, kept: &[Kept]) -> Result<Vec<There>> {
        let mut refs = self.refs.list(repo)?;
        let mut there = Vec::new();
        for kept in kept {
            let has_ref = refs.remove(&kept.id);
            match &kept.record {
                Ok(record) if record.keeper == Keeper::Git => {
                    let (id, sequence) = (kept.id, kept.sequence());
                    there.push(There { id, sequence, record: Some(record.clone()), has_ref });
                }
                // Only the ref tells whose it is.
                Err(_) if has_ref => there.push(self.without_record(repo, kept.id)),
                Ok(_) | Err(_) => (),
            }
        }
        there.extend(refs.into_iter().map(|id| self.without_record(repo, id)));
        there.sort_by_key(|it| std::cmp::Reverse((it.sequence, it.id)));
        Ok(there)
    }

    fn without_record(&self, repo: &Repo, id: CheckpointId) -> There {
        let json = self.tree_id(repo, id).and_then(|tree| {
            let (_, meta) = read_parts(repo, tree)?;
            repo.read(&meta, ObjectKind::Blob)
        });
        let sequence = json.map_or(0, |json| meta::order(&json).0);
        There { id, sequence, record: None, has_ref: true }
    }

    /// Whether a newer turnback wrote a checkpoint, by its record or what the repository has of it.
    fn is_newer(&self, repo: &Repo, id: CheckpointId) -> bool {
        let meta = || {
            let (_, meta) = read_parts(repo, self.tree_id(repo, id)?)?;
            meta::parse("meta", &repo.read(&meta, ObjectKind::Blob)?).map(drop)
        };
        record::is_newer(&self.state, id) || matches!(meta(), Err(Error::FormatTooNew { .. }))
    }

    /// Looks into the tree of a checkpoint.
    fn know(&self, repo: &Repo, there: There) -> Known {
        let tree = if there.has_ref { self.refs.checkpoint(repo, there.id) } else { Ok(None) };
        know(repo, there.id, tree.ok().flatten(), there.record)
    }

    /// What was staged at a checkpoint, or why it need or must not be staged again.
    fn staged_then(
        &self,
        repo: &Repo,
        id: CheckpointId,
    ) -> Result<Result<Vec<IndexEntry>, IndexOutcome>> {
        let (parts, meta) = read_parts(repo, self.tree_id(repo, id)?)?;
        let Some(index) = parts.index else { return Ok(Err(IndexOutcome::NotKept)) };
        let json = repo.read(&meta, ObjectKind::Blob)?;
        let then = meta::parse(&format!("meta of {id}"), &json)?.checkpoint.head;
        if let Some(refusal) = then.and_then(|then| restage::refusal(repo, &then)) {
            return Ok(Err(refusal));
        }
        if parts.extra.is_none() && self.is_staged(repo, index) {
            return Ok(Err(IndexOutcome::Unchanged));
        }
        index::kept_entries(repo, index, parts.extra).map(Ok)
    }

    /// Whether the index is known to have this tree, and nothing that a tree cannot say.
    fn is_staged(&self, repo: &Repo, tree: ObjectId) -> bool {
        let stamp = index::stamp(repo);
        let facts = Table::facts_of(&self.state.cache());
        facts.is_some_and(|facts| {
            facts.index == stamp
                && stamp != Stamp::default()
                && facts.staged == Some(content_id(&tree))
        })
    }

    fn listed(&self, id: Option<ContentId>) -> Result<Option<(ContentId, listing::Listing)>> {
        id.map(|id| Ok((id, listing::parse(&id, &self.objects.read(&id)?)?))).transpose()
    }

    fn anchored(&self, scan: &Scan) -> bool {
        scan.anchor.is_some() && scan.anchor == self.anchor()
    }
}

/// Puts together what is known of a checkpoint from its record and its tree.
fn know(repo: &Repo, id: CheckpointId, tree: Option<ObjectId>, record: Option<Record>) -> Known {
    let read = tree.map(|tree| read_parts(repo, tree));
    let (parts, json) = match &read {
        Some(Ok((parts, meta))) => {
            let json = repo.read(meta, ObjectKind::Blob);
            (Some(parts.clone()), Some(json))
        }
        Some(Err(_)) | None => (None, None),
    };
    let parsed = json.as_ref().map(|json| match json {
        Ok(json) => meta::parse(&format!("meta of {id}"), json),
        Err(_) => Err(Error::damaged(format!("meta of {id}"), "it cannot be read")),
    });
    let order = match &json {
        Some(Ok(json)) => meta::order(json),
        Some(Err(_)) | None => Default::default(),
    };
    let usual = parsed.as_ref().and_then(|meta| meta.as_ref().ok()).map(|meta| meta.usual);
    let top = parts.as_ref().and_then(|parts| parts.files).map(|id| content_id(&id));
    let checkpoint = match (&record, parsed) {
        (Some(record), _) => record.checkpoint.clone(),
        (None, Some(Ok(meta))) if meta.checkpoint.id == id => Checkpoint { top, ..meta.checkpoint },
        (None, Some(Ok(_))) => record::placeholder(id, order, "it names another checkpoint"),
        (None, Some(Err(err))) => record::placeholder(id, order, &err.to_string()),
        (None, None) => record::placeholder(id, order, "its tree cannot be read"),
    };
    Known { checkpoint, record, tree, parts, usual }
}

/// Reads a checkpoint's tree: what it holds, and its `meta`.
fn read_parts(repo: &Repo, tree: ObjectId) -> Result<(Parts, ObjectId)> {
    let mut parts = Parts::default();
    let mut meta = None;
    for (name, kind, id) in tree::entries(repo, &tree)? {
        let part = match (&name[..], kind) {
            (b"files", EntryKind::Tree) => &mut parts.files,
            (b"modes", EntryKind::Blob) => &mut parts.modes,
            (b"index", EntryKind::Tree) => &mut parts.index,
            (b"index.extra", EntryKind::Blob) => &mut parts.extra,
            (b"meta", EntryKind::Blob) => &mut meta,
            // A newer format may have more; its `meta` says so.
            _ => continue,
        };
        *part = Some(id);
    }
    let meta = meta.ok_or_else(|| Error::damaged(format!("tree {tree}"), "it has no `meta`"))?;
    Ok((parts, meta))
}

/// The records of `modes`, with the contents that the tree has for them.
fn odd_entries(repo: &Repo, parts: &Parts) -> Result<BTreeMap<RelPath, Entry>> {
    let Some(modes) = parts.modes else { return Ok(BTreeMap::new()) };
    let mut lookup = Lookup { repo, top: parts.files, read: HashMap::new() };
    let mut entries = BTreeMap::new();
    for record in modes::parse(&repo.read(&modes, ObjectKind::Blob)?)? {
        let modes::Record { path, kind, permissions, device } = record;
        let content = match kind {
            Kind::File | Kind::Directory | Kind::Link => Some(lookup.find(&path, kind)?),
            Kind::Fifo | Kind::Socket | Kind::CharDevice | Kind::BlockDevice => None,
        };
        entries.insert(path, Entry { kind, permissions, content, device });
    }
    Ok(entries)
}

/// Finds entries by path, reading each directory once.
struct Lookup<'a> {
    repo: &'a Repo,
    top: Option<ObjectId>,
    read: HashMap<ContentId, Directory>,
}

impl Lookup<'_> {
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

/// The entries of files with modes of their own, from a scan instead of a tree.
fn odd_found(odd: &[(Vec<u8>, Found)]) -> Result<BTreeMap<RelPath, Entry>> {
    let entry = |(path, found): &(Vec<u8>, Found)| {
        let entry = entry_of(found, Place::Store)?.0;
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

    fn anchor(&self) -> Option<ContentId> {
        self.refs.anchor(&self.repo).ok().flatten().map(|id| content_id(&id))
    }

    fn save(&self, draft: Draft) -> Result<Saved> {
        self.save_draft(draft)
    }

    fn list(&self) -> Result<Vec<Checkpoint>> {
        let repo = self.repo.refreshed();
        let mut refs = self.refs.list(&repo)?;
        let unrecorded = |id| self.know(&repo, self.without_record(&repo, id)).checkpoint;
        let mut listed = Vec::new();
        // As `there` has it, without a copy of each record.
        for Kept { id, record, .. } in record::read_all(&self.state)? {
            let has_ref = refs.remove(&id);
            match record {
                Ok(record) if record.keeper == Keeper::Git => listed.push(record.checkpoint),
                Err(_) if has_ref => listed.push(unrecorded(id)),
                Ok(_) | Err(_) => (),
            }
        }
        listed.extend(refs.into_iter().map(unrecorded));
        listed.sort_by_key(|it| std::cmp::Reverse((it.sequence, it.id)));
        Ok(listed)
    }

    fn tree(&self, id: CheckpointId) -> Result<Tree> {
        let repo = self.repo.refreshed();
        let (parts, meta) = read_parts(&repo, self.tree_id(&repo, id)?)?;
        let json = repo.read(&meta, ObjectKind::Blob)?;
        let usual = meta::parse(&format!("meta of {id}"), &json)?.usual;
        let mut tree = Tree {
            top: parts.files.map(|id| content_id(&id)),
            besides: odd_entries(&repo, &parts)?,
            usual,
            ..Tree::default()
        };
        if record::path_of(&self.state, id).exists() {
            let record = record::read(&self.state, id)?;
            if let Some((id, besides)) = self.listed(record.besides)? {
                tree.besides.extend(listing::below(&id, &besides)?);
            }
            if let Some((id, outside)) = self.listed(record.outside)? {
                tree.outside = listing::outside(&id, &outside)?;
            }
        }
        Ok(tree)
    }

    fn identify(&self, scan: &mut Scan) -> Result<Tree> {
        let repo = self.repo.refreshed();
        if !self.anchored(scan) {
            // Their names are right whether or not they are stored.
            scan.unfold(|_| true);
        }
        let mut skipped =
            reading::read_all(self.root.path(), scan, None, &mut GitSink::naming(&repo)?)?;
        let mut unsaved = BTreeMap::new();
        tree::build_fresh(&repo, &mut scan.fresh, &mut skipped, |body, all| {
            let id = repo::name(repo.hash, ObjectKind::Tree, &body)?;
            unsaved.insert(content_id(&id), tree::directory_of(&repo, all));
            Ok(id)
        })?;
        let summary = modes::summarize(scan);
        let (below, outside) = save::listings(scan, &summary);
        let unstored = ContentId::new(&[]);
        let mut besides = odd_found(&summary.odd)?;
        besides.extend(listing::below(&unstored, &below)?);
        let outside = listing::outside(&unstored, &outside)?;
        Ok(Tree { top: scan.top(), besides, outside, unsaved, usual: scan.usual })
    }

    fn directory(&self, id: &ContentId) -> Result<Directory> {
        match tree::read(&self.repo, id) {
            // It may have been added, or packed, after we looked which packs there are.
            Err(Error::Damaged { .. }) => tree::read(&self.repo.refreshed(), id),
            read => read,
        }
    }

    fn open(&self, content: &Content) -> Result<Box<dyn Read>> {
        match content.place {
            Place::Private => self.objects.open(&content.id),
            Place::Store => match stream::open(&self.repo, &content.id) {
                Err(Error::Damaged { .. }) => stream::open(&self.repo.refreshed(), &content.id),
                opened => opened,
            },
        }
    }

    fn unread(&self) -> Result<BTreeMap<CheckpointId, Unread>> {
        let repo = self.repo.refreshed();
        let mut unread = record::unread(&self.state)?;
        let there = self.there(&repo, &record::read_all(&self.state)?)?;
        for There { id, .. } in there.iter().filter(|there| there.record.is_none()) {
            if self.is_newer(&repo, *id) {
                unread.insert(*id, Unread::Newer);
            }
        }
        Ok(unread)
    }

    fn forget(&self, ids: &[CheckpointId]) -> Result<usize> {
        if !self.state.dir().is_dir() && self.refs.list(&self.repo)?.is_empty() {
            return Ok(0);
        }
        crate::fs::create_private_dirs(self.state.dir())?;
        let _lock = Lock::acquire(&self.state.lock(), Instant::now() + PATIENCE)?;
        let repo = self.repo.refreshed();
        self.refs.remove_stale_locks(&repo)?;
        let mut there = self.there(&repo, &record::read_all(&self.state)?)?;
        let is_newer = |there: &There| there.record.is_none() && self.is_newer(&repo, there.id);
        let stays: Vec<CheckpointId> =
            there.iter().filter(|there| is_newer(there)).map(|there| there.id).collect();
        let goes = |id: &CheckpointId| ids.contains(id) && !stays.contains(id);
        let all = there.iter().all(|there| goes(&there.id));
        there.retain(|there| goes(&there.id));
        let ids: Vec<CheckpointId> = ids.iter().copied().filter(goes).collect();
        self.refs.remove(&repo, &ids, all)?;
        record::forget(&self.state, there.iter().map(|there| there.id))?;
        Ok(there.len())
    }

    fn remove(&self, ids: &[CheckpointId]) -> Result<u64> {
        match self.forget(ids)? {
            0 => Ok(0),
            _ => sweep::sweep(self.state.state(), Instant::now() + PATIENCE),
        }
    }

    fn is_untidy(&self) -> bool {
        consolidate::Packs::of(&self.repo, self.state.state()).is_untidy()
    }

    fn tidy(&self) -> Result<()> {
        consolidate::Packs::of(&self.repo, self.state.state()).tidy()
    }

    fn repository_bytes(&self) -> u64 {
        consolidate::Packs::of(&self.repo, self.state.state()).bytes()
    }

    fn alone_bytes(&self, ids: &[CheckpointId]) -> u64 {
        // It is for people to read; what cannot be told is not worth an error.
        alone::bytes(self, ids).unwrap_or_default()
    }

    fn check(&self, read_data: bool) -> Result<Vec<Damage>> {
        let repo = self.repo.refreshed();
        Ok(check::check(self, &repo, &self.known(&repo)?, read_data))
    }

    fn repair(&self) -> Result<Vec<String>> {
        let _lock = Lock::acquire(&self.state.lock(), Instant::now() + PATIENCE)?;
        let repo = self.repo.refreshed();
        self.refs.remove_stale_locks(&repo)?;
        check::repair(self, &repo)
    }

    fn staged(&self, id: CheckpointId) -> Result<Option<ContentId>> {
        let repo = self.repo.refreshed();
        let (parts, _) = read_parts(&repo, self.tree_id(&repo, id)?)?;
        Ok(parts.index.map(|id| content_id(&id)))
    }

    fn restore_index(&self, id: CheckpointId) -> Result<IndexOutcome> {
        let repo = self.repo.refreshed();
        restage::sweep(&repo)?;
        match self.staged_then(&repo, id)? {
            Ok(entries) => restage::write(&repo, &entries),
            Err(left) => Ok(left),
        }
    }

    fn commits_since(&self, then: &Head) -> Option<Since> {
        head::since(&self.repo.refreshed(), then)
    }

    fn plan_head(&self, then: &Head) -> Result<Option<HeadMove>, String> {
        tip::plan(&self.repo.refreshed(), then)
    }

    fn move_head(&self, to: &HeadMove, why: &str) -> Result<bool> {
        tip::go(&self.repo.refreshed(), to, why)
    }

    fn index_differs(&self, id: CheckpointId) -> Result<bool> {
        let repo = self.repo.refreshed();
        match self.staged_then(&repo, id)? {
            Ok(entries) => Ok(restage::differs(&repo, &entries)),
            Err(_) => Ok(false),
        }
    }

    fn by_hand(&self, id: CheckpointId) -> String {
        let mut dir = PathBuf::from(self.root.path());
        if dir.as_os_str().as_bytes().is_empty() {
            dir = PathBuf::from(".");
        }
        format!("git -C {} show {}:files/PATH", quoted(&dir), self.refs.name(id))
    }
}

/// Takes the refs of checkpoints out of the repository that a worktree was linked to which is gone.
///
/// # Errors
///
/// Fails if that repository cannot be used, or a ref not be removed.
pub(super) fn drop_refs_of_gone(place: &record::RootPlace, ids: &[CheckpointId]) -> Result<()> {
    let (Some(repo), Some(git_dir)) = (Repo::linked(place)?, &place.git_dir) else {
        return Ok(());
    };
    let refs = Refs::of_linked(git_dir, &place.path);
    let all = refs.list(&repo)?.iter().all(|id| ids.contains(id));
    refs.remove(&repo, ids, all)
}

/// A path as a shell takes it.
fn quoted(path: &std::path::Path) -> String {
    shell_words::quote(&path.to_string_lossy()).into_owned()
}
