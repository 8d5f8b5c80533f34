//! Saves a checkpoint in the git store, from a scan to the refs.
//!
//! Order: the root's lock, the repository's lock, the user's git directory and index, borrowing
//! their objects, reading files, syncing objects, the record, anchor and checkpoint ref, the
//! caches. A crash leaves at most unreferenced objects, a record without a ref, or a slower next
//! scan. A save that does not get the root's lock in time proceeds without it and leaves anchor and
//! cache alone.

mod unchanged;

use std::{
    collections::{BTreeSet, HashSet},
    path::PathBuf,
    sync::{Mutex, PoisonError},
    thread,
    time::Instant,
};

use gix::{
    ObjectId,
    index::entry::Mode,
    objs::{Kind as ObjectKind, tree::EntryKind},
};

use self::unchanged::latest;
use super::{
    GitStore, LoadedCheckpoint, meta,
    sink::{GitSink, PrivateSink},
};
use crate::{
    cache::{Facts, TableRow},
    error::{Error, Result},
    fs::{Lock, create_private_dirs, now_ns},
    git_index::GitIndex,
    model::{
        Checkpoint, ContentId, Head, Kind, Marks, SkipReason, Skipped, Stamp, Storage, StoreChoice,
    },
    scan::{Scan, is_racy},
    store::{
        Draft, Saved, Store,
        directory::entry_of,
        listing::{self, Listing},
        object_stamps::CheckedStamps,
        plumbing::{
            head::{self, count_staged},
            index,
            modes::{Summary, summarize},
            objects::ObjectWriter,
            refs::{NewRefs, own},
            repo::{Odb, Repo, content_id},
            tree::{self, Parts, TreeBuilder},
        },
        reading::{self, victims},
        record::{self, Held, Record, RecordEntry, StoreKind},
        repository::{self, HeldRepository, PrivateRepository, Theirs},
        save::{self, CheckpointContents},
    },
};

/// Everything that a save has stored so far, except the checkpoint itself.
struct StoredParts {
    parts: Parts,
    contents: CheckpointContents,
    /// The root's own repository.
    own: Option<Own>,
    /// Keep what is held of other repositories until there is a record.
    _locks: Vec<Lock>,
    /// The index tree for the cache, if the same stamp will prove the same index.
    proven: Option<ObjectId>,
}

impl StoredParts {
    /// Waits until everything borrowed is on the disk.
    fn settle(&mut self) -> Result<()> {
        self.own.as_mut().map_or(Ok(()), |own| own.held_repository.borrowed.settle())
    }
}

/// What is held of the root's own repository.
struct Own {
    held_repository: HeldRepository,
    place: repository::RepositoryLocation,
}

/// The index, read before objects are borrowed, so that the objects it names are among them.
struct IndexRead {
    stamp: Stamp,
    /// Its tree, if it is known to be the same as in the newest checkpoint.
    known: Option<ObjectId>,
    file: Result<Option<GitIndex>, String>,
}

/// A save in progress.
struct Save<'a> {
    store: &'a GitStore,
    repo: Repo,
    lock: Option<Lock>,
    /// Prevents objects that the save relies on from being freed.
    _shared: Lock,
    /// The files with objects, compared with those of the last save.
    stamps: CheckedStamps,
    /// The facts in the cache, if it can be trusted.
    facts: Option<Facts>,
    had_base: bool,
    head: Option<Head>,
    /// The greatest sequence number.
    sequence: u64,
    newest: Option<LoadedCheckpoint>,
}

impl GitStore {
    /// Implements [`crate::store::Store::save`].
    pub(super) fn save_draft(&self, mut draft: Draft) -> Result<Saved> {
        if self.choice == StoreChoice::Files {
            return self.copies.save(draft);
        }
        if let Some(checkpoint) = self.unchanged(&draft) {
            return Ok(Saved { checkpoint, is_new: false });
        }
        create_private_dirs(self.state.dir())?;
        let mut save = Save::begin(self, &draft)?;
        if let Some(first) = save::overtaken(self, &draft)? {
            return Ok(first);
        }
        save.run(&mut draft)
    }
}

impl<'a> Save<'a> {
    fn begin(store: &'a GitStore, draft: &Draft) -> Result<Self> {
        let lock = save::lock(&store.state, draft.deadline)?;
        let common_dir = store.user.as_ref().map(|user| &*user.common_dir);
        let shared = store.private.open_shared(common_dir, draft.deadline)?;
        let stamps = CheckedStamps::of(&store.state);
        if !stamps.stand() {
            store.private.set_damaged_aside(&stamps.changed)?;
            store.objects.set_damaged_aside(&stamps.changed);
        }
        let repo = store.repo.refreshed();
        let anchor = store.refs.anchor(&repo).ok().flatten().filter(|_| stamps.stand());
        let base = draft.scan.base.as_ref();
        let trusts_cache = |anchor: &ObjectId| draft.scan.anchor == Some(content_id(anchor));
        let facts =
            base.map(|base| *base.facts()).filter(|_| anchor.is_some_and(|id| trusts_cache(&id)));
        let kept = record::read_all(&store.state)?;
        let there = store.stored(&repo, &kept)?;
        let sequences = there.iter().map(|there| there.sequence);
        let sequence = sequences.chain(kept.iter().map(RecordEntry::sequence)).max().unwrap_or(0);
        let mut known = there.into_iter().map(|there| store.load(&repo, there));
        let newest = known.find(|known| known.parts.is_some());
        let head = store.user().map(|user| head::read(&user));
        let had_base = base.is_some();
        let save = Self {
            store,
            repo,
            lock,
            _shared: shared,
            stamps,
            facts,
            had_base,
            head,
            sequence,
            newest,
        };
        Ok(save)
    }

    fn run(&mut self, draft: &mut Draft) -> Result<Saved> {
        let writer = ObjectWriter::new(&self.repo);
        let private = Mutex::new(PrivateSink::new(&self.store.objects));
        let mut left_out = Vec::new();
        let (own, index) = self.hold_own(&writer, draft.deadline, &mut left_out)?;
        invalidate(&self.repo, &mut draft.scan, self.facts.is_some(), &writer, &private)?;
        let mut made = self.make(draft, &writer, &private, own, index, left_out)?;
        let private = private.into_inner().unwrap_or_else(PoisonError::into_inner);
        if let Some(newest) = self.unchanged_since(draft, &made) {
            made.settle()?;
            self.keep(draft, &newest.checkpoint, &made, writer, private)?;
            return Ok(Saved { checkpoint: newest.checkpoint.clone(), is_new: false });
        }
        let mut record = made.contents.to_record(&self.store.state, draft, self.sequence);
        let tree = self.add_checkpoint(&writer, &made, &record.checkpoint, &draft.scan)?;
        record.tree = Some(content_id(&tree));
        record.store = Some(self.store.name().to_owned());
        if let (Some(_), Some(own)) = (&made.own, record.repositories.first_mut()) {
            own.tree = content_id(&tree);
        }
        // Where the root is was written down with an earlier checkpoint.
        let is_much = !private.is_empty() || self.newest.is_none();
        let (state, root, taken_at) = (&self.store.state, &self.store.root, draft.taken_at);
        let name = self.store.name();
        let aside = || {
            record::write_location(state, root, Some(name), taken_at)?;
            private.publish()
        };
        let (names, _held) = beside(is_much, aside, || writer.publish())?;
        made.settle()?;
        // Reading takes time, and a save without the lock may have been faster.
        if let Some(first) = save::overtaken(self.store, draft)? {
            return Ok(first);
        }
        self.publish(&record, tree, &made, &names)?;
        self.write_cache(&draft.scan, &record.checkpoint, &made);
        Ok(Saved { checkpoint: record.checkpoint, is_new: true })
    }

    /// Holds the root's own repository: reads its index, then stores small files through `writer`
    /// and borrows objects.
    fn hold_own(
        &mut self,
        writer: &ObjectWriter,
        deadline: Option<Instant>,
        left_out: &mut Vec<Skipped>,
    ) -> Result<(Option<Own>, Option<IndexRead>)> {
        let Some(user) = self.store.user() else { return Ok((None, None)) };
        let index = self.read_index(&user);
        let root = self.store.root.path();
        let path = repository::path_for(root, &user.common_dir);
        // An index that cannot be parsed is held as a plain file.
        let index_path = if index.file.is_err() { "\0".into() } else { own(&user, "index") };
        let (common_dir, own_index) = (&*user.common_dir, &*index_path);
        let trusts_cache = self.stamps.stand();
        let theirs = Theirs { common_dir, own_index, name: &path, deadline, trusts_cache };
        let held_repository = self.store.private.hold(&self.repo, &theirs, writer, left_out)?;
        left_out.extend(repository::history_left_out(&path, &held_repository));
        if held_repository.borrowed.new > 0 {
            self.repo = self.repo.refreshed();
        }
        let place = repository::RepositoryLocation {
            common_dir: user.common_dir.clone(),
            pointers: Vec::new(),
        };
        Ok((Some(Own { held_repository, place }), Some(index)))
    }

    fn read_index(&self, user: &Repo) -> IndexRead {
        let stamp = index::stamp(user);
        let facts = self.facts.filter(|facts| facts.index == stamp && stamp != Stamp::default());
        let staged = facts.and_then(|facts| facts.staged).map(|id| self.repo.object_id(&id));
        // Something must still keep that tree: the newest checkpoint's ref does if it has the same
        // one.
        let known = staged.filter(|staged| Some(*staged) == self.newest_index());
        let file = if known.is_some() { Ok(None) } else { index::open(user) };
        IndexRead { stamp, known, file }
    }

    fn unchanged_since(&self, draft: &Draft, made: &StoredParts) -> Option<&LoadedCheckpoint> {
        let is_same = |newest: &&LoadedCheckpoint| {
            newest.parts.as_ref() == Some(&made.parts)
                && newest.default_modes == Some(draft.scan.default_modes)
                && newest.record.as_ref().is_some_and(|newest| made.contents.are_held_by(newest))
        };
        self.newest.as_ref().filter(|_| !draft.always).filter(is_same)
    }

    /// The root's own repository as in the record, but for the tree of the checkpoint.
    fn described(&self, own: &Own) -> Held {
        let (root, private) = (self.store.root.path(), &self.store.private);
        let tree = content_id(&ObjectId::null(self.repo.hash));
        let administration = own.held_repository.administration();
        repository::held(root, &own.place, private, tree, administration, true)
    }

    /// Reads unread files and stores every object except those of the checkpoint itself.
    fn make(
        &self,
        draft: &mut Draft,
        writer: &ObjectWriter,
        private: &Mutex<PrivateSink<'_>>,
        mut own: Option<Own>,
        index: Option<IndexRead>,
        left_out: Vec<Skipped>,
    ) -> Result<StoredParts> {
        let (scan, repo) = (&mut draft.scan, &self.repo);
        let odb = repo.odb()?;
        let mut skipped = left_out;
        let is_whole =
            own.as_ref().is_none_or(|own| own.held_repository.borrowed.left_out.is_none());
        let (index, extra, stamp) =
            self.stage_in_time(index, is_whole, draft.deadline, writer, &mut skipped)?;
        let mut sinks = (0..reading::threads_for(scan))
            .map(|_| GitSink::storing(repo, writer, private))
            .collect::<Result<Vec<_>>>()?;
        let root = self.store.root.path();
        skipped.extend(reading::read_all(root, scan, draft.deadline, &mut sinks)?);
        drop(sinks);
        tree::build_fresh(repo, scan, &mut skipped, |body, _| {
            writer.add(ObjectKind::Tree, &body, odb)
        })?;
        let summary = summarize(scan);
        let modes = add_blob(writer, &summary.modes(), odb)?;
        let (overlay, outside) = listings(scan, &summary);
        put_listings(private, [&overlay, &outside])?;
        let known = own.as_ref().map(|own| own.place.common_dir.clone());
        let (state, dot_gits) = (self.store.state.state(), &scan.repositories);
        let (known, deadline) = (known.as_deref(), draft.deadline);
        let others = repository::hold_others(
            state, root, dot_gits, known, deadline, &mut skipped, &self.stamps,
        )?;
        if let Some(own) = &mut own {
            own.place.pointers = others.of_known;
        }
        // The scan took the stamp first; a change in between must be noticed next time.
        let proven = index.filter(|_| stamp == Some(scan.index));
        let files = scan.top().map(|id| repo.object_id(&id));
        let parts = Parts { files, modes, index, extra };
        let described = own.iter().map(|own| self.described(own));
        let contents = CheckpointContents {
            keeper: StoreKind::Git,
            top: scan.top(),
            overlay,
            outside,
            partial: scan.partial,
            skipped: reading::skipped(scan, skipped),
            head: self.head.clone(),
            staged: self.count_staged(&parts, writer),
            repositories: described.chain(others.held).collect(),
            dangling: others.dangling,
        };
        Ok(StoredParts { parts, contents, own, _locks: others.locks, proven })
    }

    /// The index tree of the newest checkpoint.
    fn newest_index(&self) -> Option<ObjectId> {
        self.newest.as_ref()?.parts.as_ref()?.index
    }

    /// Stores the index as [`Save::stage`] does, unless staged objects would have to be copied and the
    /// deadline has passed.
    fn stage_in_time(
        &self,
        index: Option<IndexRead>,
        is_whole: bool,
        deadline: Option<Instant>,
        writer: &ObjectWriter,
        skipped: &mut Vec<Skipped>,
    ) -> Result<(Option<ObjectId>, Option<ObjectId>, Option<Stamp>)> {
        match index {
            Some(index) if !is_whole && is_over(deadline) => {
                let path = b".git/index".to_vec();
                let size = index.stamp.size;
                skipped.push(Skipped { path, reason: SkipReason::OutOfTime, size });
                Ok((None, None, None))
            }
            Some(index) => self.stage(index, is_whole, writer, self.repo.odb()?, skipped),
            None => Ok((None, None, None)),
        }
    }

    /// Stores the index, or notes why it cannot be stored. Also returns its stamp if that proves
    /// something. If not all objects could be borrowed, copies the staged ones that are missing.
    fn stage(
        &self,
        read: IndexRead,
        is_whole: bool,
        writer: &ObjectWriter,
        odb: &Odb,
        skipped: &mut Vec<Skipped>,
    ) -> Result<(Option<ObjectId>, Option<ObjectId>, Option<Stamp>)> {
        let repo = &self.repo;
        let IndexRead { stamp, known, file } = read;
        if known.is_some() {
            return Ok((known, None, Some(stamp)));
        }
        let built = match file {
            Ok(None) => return Ok((None, None, None)),
            Ok(Some(file)) => {
                if !is_whole && let Some(user) = self.store.user() {
                    copy_staged(&user, repo, &file, writer)?;
                }
                index::build(repo, &file, is_whole, &mut |body| {
                    writer.add(ObjectKind::Tree, body, odb)
                })
            }
            // It is held as a plain file.
            Err(_) if stamp.kind() == Some(Kind::File) => return Ok((None, None, None)),
            Err(why) => Err(Error::damaged("the index", why)),
        };
        let built = match built {
            Ok(built) => built,
            Err(Error::Damaged { .. }) => {
                let path = b".git/index".to_vec();
                skipped.push(Skipped { path, reason: SkipReason::Unreadable, size: stamp.size });
                return Ok((None, None, None));
            }
            Err(err) => return Err(err),
        };
        let extra = add_blob(writer, &built.extra, odb)?;
        // The cache cannot store what a tree cannot express, so such an index is read every time.
        let proves = extra.is_none() && !is_racy(&stamp, now_ns());
        Ok((Some(built.tree), extra, proves.then_some(stamp)))
    }

    /// The number of staged paths. `None` where counting would take long: an index full of trees
    /// that are not in the repository yet.
    fn count_staged(&self, parts: &Parts, writer: &ObjectWriter) -> Option<u64> {
        let index = parts.index?;
        let then = self.newest.as_ref().map(|newest| &newest.checkpoint);
        let same_head = |then: &&Checkpoint| {
            let now = self.head.as_ref().map(|head| &head.commit);
            then.head.as_ref().map(|head| &head.commit) == now
        };
        match then.filter(same_head) {
            Some(then) if self.newest_index() == Some(index) => then.staged,
            Some(_) | None => {
                let head = self.head.as_ref()?;
                count_staged(&self.repo, head, index, &|id| writer.held_tree(id))
            }
        }
    }

    /// Stores the checkpoint's own two objects and returns its tree.
    fn add_checkpoint(
        &self,
        writer: &ObjectWriter,
        made: &StoredParts,
        checkpoint: &Checkpoint,
        scan: &Scan,
    ) -> Result<ObjectId> {
        let odb = self.repo.odb()?;
        let json = meta::to_json(checkpoint, &scan.default_modes);
        let meta = writer.add(ObjectKind::Blob, &json, odb)?;
        let mut tree = TreeBuilder::default();
        let parts = &made.parts;
        let administration = made.own.as_ref().map(|own| own.held_repository.administration());
        let repository = administration.map(|it| it.tree);
        let repository_modes = administration.and_then(|it| it.modes);
        let parts = [
            ("files", EntryKind::Tree, parts.files),
            ("index", EntryKind::Tree, parts.index),
            ("index.extra", EntryKind::Blob, parts.extra),
            ("meta", EntryKind::Blob, Some(meta)),
            ("modes", EntryKind::Blob, parts.modes),
            ("repository", EntryKind::Tree, repository),
            ("repository.modes", EntryKind::Blob, repository_modes),
        ];
        for (name, kind, id) in parts {
            if let Some(id) = id {
                tree.add(name.as_bytes(), kind, id);
            }
        }
        writer.add(ObjectKind::Tree, &tree.finish(), odb)
    }

    /// Writes the record and the refs, once the `names` of new objects are on the disk.
    fn publish(
        &self,
        record: &Record,
        tree: ObjectId,
        made: &StoredParts,
        names: &[PathBuf],
    ) -> Result<()> {
        let (store, id) = (self.store, record.checkpoint.id);
        // Only with the lock are caches written.
        let is_alone = self.lock.is_some();
        let own = made.own.as_ref().map(|own| own.held_repository.administration().tree);
        let new = NewRefs {
            id,
            tree,
            anchor: made.parts.files.filter(|_| is_alone),
            administration: own.filter(|_| is_alone),
        };
        let state = &store.state;
        let written = (record::unpublished(state, record)?, &*state.checkpoints());
        store.refs.create(&self.repo, &new, written, names).inspect_err(|_| {
            // One of the two may have been created, and its objects may be freed.
            let _gone = store.refs.remove(&self.repo, &[id], false);
            let _gone = record::remove(state, id);
        })
    }

    /// Nothing changed. Objects are written only if the newest checkpoint has lost some.
    fn keep(
        &self,
        draft: &Draft,
        newest: &Checkpoint,
        made: &StoredParts,
        writer: ObjectWriter,
        private: PrivateSink<'_>,
    ) -> Result<()> {
        let scan = &draft.scan;
        if !writer.is_empty() {
            writer.finish()?;
        }
        let _held = private.publish()?;
        let Some(files) = made.parts.files.filter(|_| self.lock.is_some()) else { return Ok(()) };
        let facts = (scan.index, made.proven.map(|id| content_id(&id)));
        let index_is_new = self.facts.is_some_and(|old| (old.index, old.staged) != facts);
        let is_known = self.facts.is_some_and(|old| old.latest == latest(scan, newest, made));
        let has_news = scan.refreshed || !self.had_base || !scan.fresh.is_empty();
        if has_news || index_is_new || !is_known {
            self.store.refs.move_anchor(&self.repo, files)?;
            self.write_cache(scan, newest, made);
        } else if let Some(own) = &made.own {
            own.held_repository.write_cache(&self.repo);
        }
        Ok(())
    }

    /// The directories with the objects that the checkpoint needs.
    fn object_dirs(&self, made: &StoredParts) -> Vec<PathBuf> {
        let state = self.store.state.state();
        let mut names: BTreeSet<&str> =
            made.contents.repositories.iter().map(|held| &*held.store).collect();
        names.insert(self.store.name());
        let private = names.into_iter().map(|name| PrivateRepository::named(state, name));
        let mut dirs: Vec<PathBuf> = private.flat_map(|one| one.object_dirs()).collect();
        if !made.contents.overlay.is_empty() || !made.contents.outside.is_empty() {
            dirs.push(state.objects());
        }
        dirs
    }

    /// Writes the cache for the next scan. A failure only makes that scan slower.
    fn write_cache(&self, scan: &Scan, checkpoint: &Checkpoint, made: &StoredParts) {
        let Some(top) = scan.top().filter(|_| self.lock.is_some()) else { return };
        let facts = Facts {
            staged: made.proven.map(|id| content_id(&id)),
            latest: latest(scan, checkpoint, made),
            ..save::facts(scan, top, checkpoint)
        };
        let state = &self.store.state;
        let is_borrowed = made.own.as_ref().is_none_or(|own| own.held_repository.borrowed.new > 0);
        let untouched = if is_borrowed { Vec::new() } else { vec![self.store.private.linked()] };
        let _slower = self
            .stamps
            .write(state, &self.object_dirs(made), &untouched)
            .and_then(|()| scan.write_table(&state.cache(), &facts));
        if let Some(own) = &made.own {
            own.held_repository.write_cache(&self.repo);
        }
    }
}

/// Drops ids from a scan if their objects may no longer exist.
fn invalidate(
    repo: &Repo,
    scan: &mut Scan,
    trust_cache: bool,
    writer: &ObjectWriter,
    private: &Mutex<PrivateSink<'_>>,
) -> Result<()> {
    let mut private = private.lock().unwrap_or_else(PoisonError::into_inner);
    let (mut has_content, mut hidden) = (scan.base.is_some(), Vec::new());
    scan.each(|_, row| {
        has_content |= row.content.is_some() && row.kind() != Some(Kind::Directory);
        hidden.extend(row.content.filter(|_| row.marks.private));
    });
    // Private objects are not covered by the anchor, so they are always checked.
    let mut held = HashSet::new();
    if !hidden.is_empty() {
        let batch = private.batch()?;
        held.extend(hidden.iter().copied().filter(|id| batch.contains(id)));
    }
    let odb = repo.odb()?;
    let is_there = |id: ContentId, marks: Marks| {
        if marks.private {
            held.contains(&id)
        } else {
            trust_cache || writer.relies_on(repo.object_id(&id), odb)
        }
    };
    let lost = hidden.iter().any(|id| !held.contains(id));
    if lost || (has_content && !trust_cache) {
        // Without a base, nothing need be dropped as long as nothing is missing.
        let mut is_whole = scan.base.is_none();
        if is_whole {
            let content =
                |row: &TableRow<'_>| row.content.filter(|_| row.kind() != Some(Kind::Directory));
            scan.each(|_, row| {
                is_whole = is_whole && content(&row).is_none_or(|id| is_there(id, row.marks));
            });
        }
        if !is_whole {
            scan.forget_base(|found| found.content.is_some_and(|id| is_there(id, found.marks)));
        }
    }
    Ok(())
}

/// Copies staged objects that exist only in the user's repository.
fn copy_staged(user: &Repo, repo: &Repo, index: &GitIndex, writer: &ObjectWriter) -> Result<()> {
    let odb = repo.odb()?;
    let damaged = |why| Error::damaged("the index", why);
    let mut entries = index.entries().map_err(damaged)?;
    while let Some(entry) = entries.read_next().map_err(damaged)? {
        if entry.mode == Mode::COMMIT || repo.has(&entry.id) {
            continue;
        }
        // The index of a partial clone may name objects that were never fetched.
        if let Ok(bytes) = user.read(&entry.id, ObjectKind::Blob) {
            writer.add_named(ObjectKind::Blob, entry.id, &bytes, odb)?;
        }
    }
    Ok(())
}

fn is_over(deadline: Option<Instant>) -> bool {
    deadline.is_some_and(|deadline| Instant::now() >= deadline)
}

fn add_blob(writer: &ObjectWriter, bytes: &[u8], odb: &Odb) -> Result<Option<ObjectId>> {
    let add = |bytes| writer.add(ObjectKind::Blob, bytes, odb);
    Some(bytes).filter(|bytes| !bytes.is_empty()).map(add).transpose()
}

/// The listings of what the private store holds: below the root, and outside.
pub(super) fn listings(scan: &Scan, summary: &Summary) -> (Listing, Listing) {
    let (mut below, outside) = victims(&scan.victims);
    for (path, found) in &summary.private {
        below.extend(entry_of(found, Storage::Private).map(|line| (path.clone(), line)));
    }
    (below, outside)
}

/// Runs `aside` in a thread beside `others`, if that is worthwhile: both mostly wait for the disk.
fn beside<T, U: Send>(
    is_worth_it: bool,
    aside: impl FnOnce() -> Result<U> + Send,
    others: impl FnOnce() -> Result<T>,
) -> Result<(T, U)> {
    if !is_worth_it {
        return Ok((others()?, aside()?));
    }
    let waiting = Mutex::new(Some(aside));
    let take = || waiting.lock().unwrap_or_else(PoisonError::into_inner).take();
    let begin = || take().map(|aside| aside());
    thread::scope(|scope| {
        let thread = thread::Builder::new().spawn_scoped(scope, begin).ok();
        let others = others();
        let done = thread
            .and_then(|it| it.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        // If no thread could be started, it has not run yet.
        let done = done.or_else(begin).expect("the thread that took it has finished");
        Ok((others?, done?))
    })
}

fn put_listings(private: &Mutex<PrivateSink<'_>>, listings: [&Listing; 2]) -> Result<()> {
    for listing in listings.into_iter().filter(|listing| !listing.is_empty()) {
        let mut private = private.lock().unwrap_or_else(PoisonError::into_inner);
        private.batch()?.put_bytes(listing::to_text(listing).as_bytes())?;
    }
    Ok(())
}
