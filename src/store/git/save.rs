//! Saves a checkpoint in the git store, from a scan to the refs.
//!
//! Order: the root's lock, the repository's lock, the user's git directory and index, borrowing
//! their objects, reading files, syncing objects, the record, anchor and checkpoint ref, the
//! caches. A crash leaves at most unreferenced objects, a record without a ref, or a slower next
//! scan. A save that does not get the root's lock in time proceeds without it and leaves anchor and
//! cache alone.

mod retract;
mod unchanged;

use std::{collections::BTreeSet, path::PathBuf, time::Instant};

use gix::{
    ObjectId,
    index::entry::Mode,
    objs::{Kind as ObjectKind, tree::EntryKind},
};

use self::unchanged::latest;
use super::{GitStore, LoadedCheckpoint, newest_first, sink::GitSink};
use crate::{
    cache::Facts,
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
            tree::{self, Parts, PathTree, PrivatePart, TreeBuilder},
        },
        reading::{self, victims},
        record::{self, Held, Record, StoreKind},
        repository::{self, HeldRepository, PrivateRepository, Theirs},
        save::{self, CheckpointContents},
    },
};

/// Everything that a save has stored so far, except the checkpoint itself.
struct StoredParts {
    parts: Parts,
    /// Private files and special files below the root.
    below: Listing,
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

/// A listing in the private repository.
struct StoredListing {
    /// Its text; `None` if it is empty.
    text: Option<ObjectId>,
    /// A tree with the contents that it names.
    files: Option<ObjectId>,
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
        if let Some(first) = save::overtaken(&self.state, &draft)? {
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
        }
        let repo = store.repo.refreshed();
        let anchor = store.refs.anchor(&repo).ok().flatten().filter(|_| stamps.stand());
        let base = draft.scan.base.as_ref();
        let trusts_cache = |anchor: &ObjectId| draft.scan.anchor == Some(content_id(anchor));
        let facts =
            base.map(|base| *base.facts()).filter(|_| anchor.is_some_and(|id| trusts_cache(&id)));
        let recorded = record::ids(&store.state)?;
        let ids = newest_first(recorded.into_iter().chain(store.refs.list(&repo)?));
        let sequence = ids.first().map_or(0, |id| id.sequence());
        let loaded = ids.into_iter().filter_map(|id| {
            let pair = store.refs.pair(&repo, id);
            store.load(&repo, id, pair)
        });
        let newest = loaded.into_iter().find(|loaded| loaded.parts.is_some());
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
        let mut left_out = Vec::new();
        let (own, index) = self.hold_own(&writer, draft.deadline, &mut left_out)?;
        let trusted = self.trusted();
        invalidate(&self.repo, &mut draft.scan, trusted, &writer)?;
        let mut made = self.make(draft, &writer, own, index, left_out)?;
        if let Some(newest) = self.unchanged_since(draft, &made) {
            made.settle()?;
            self.keep(draft, &newest.checkpoint, &made, writer)?;
            return Ok(Saved { checkpoint: newest.checkpoint.clone(), is_new: false });
        }
        let mut record = made.contents.to_record(&self.store.state, draft, self.sequence);
        record.store = Some(self.store.name().to_owned());
        let tree = self.add_checkpoint(&writer, &made, &record)?;
        record.tree = Some(content_id(&tree));
        let private = add_private(&self.repo, &writer, &record)?;
        let name = self.store.name();
        record::write_location(&self.store.state, &self.store.root, Some(name), draft.taken_at)?;
        let names = writer.publish()?;
        made.settle()?;
        // Reading takes time, and a save without the lock may have been faster.
        if let Some(first) = save::overtaken(&self.store.state, draft)? {
            return Ok(first);
        }
        self.retract(&made.below)?;
        self.publish(&record, tree, private, &made, &names)?;
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

    /// Which objects that the cache names are known to be kept.
    fn trusted(&self) -> Trusted {
        let latest = self.facts.and_then(|facts| facts.latest);
        let is_kept = |(id, _)| self.store.refs.has(&self.repo, id);
        Trusted { files: self.facts.is_some(), private: latest.is_some_and(is_kept) }
    }

    fn unchanged_since(&self, draft: &Draft, made: &StoredParts) -> Option<&LoadedCheckpoint> {
        let is_same = |newest: &&LoadedCheckpoint| {
            newest.parts.as_ref().is_some_and(|(parts, _)| *parts == made.parts)
                && newest.record.as_ref().is_some_and(|newest| made.contents.are_held_by(newest))
        };
        self.newest.as_ref().filter(|_| !draft.always).filter(is_same)
    }

    /// The root's own repository as in the record. `tree` has everything private of the checkpoint.
    fn described(&self, own: &Own, tree: ContentId) -> Held {
        let (root, private) = (self.store.root.path(), &self.store.private);
        let administration = own.held_repository.administration();
        repository::held(root, &own.place, private, tree, administration, true)
    }

    /// Reads unread files and stores every object except those of the checkpoint itself.
    fn make(
        &self,
        draft: &mut Draft,
        writer: &ObjectWriter,
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
            .map(|_| GitSink::storing(repo, writer))
            .collect::<Result<Vec<_>>>()?;
        let root = self.store.root.path();
        skipped.extend(reading::read_all(root, scan, draft.deadline, &mut sinks)?);
        drop(sinks);
        tree::build_fresh(repo, scan, &mut skipped, |body, _| {
            writer.add(ObjectKind::Tree, &body, odb)
        })?;
        let summary = summarize(scan);
        let modes = add_blob(writer, &summary.modes(), odb)?;
        let (below, outside) = listings(scan, &summary);
        let outside_paths = reading::outside(&outside, scan);
        let stored_below = self.add_listing(writer, &below)?;
        let stored_outside = self.add_listing(writer, &outside)?;
        let private =
            self.add_private_tree(writer, own.as_ref(), &stored_below, &stored_outside)?;
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
        let described = own.iter().zip(private).map(|(own, tree)| self.described(own, tree));
        let contents = CheckpointContents {
            keeper: StoreKind::Git,
            top: scan.top(),
            default_modes: scan.default_modes,
            overlay: stored_below.text.map(|id| content_id(&id)),
            outside: stored_outside.text.map(|id| content_id(&id)),
            private,
            outside_paths,
            partial: scan.partial,
            skipped: reading::skipped(scan, skipped),
            head: self.head.clone(),
            staged: self.count_staged(&parts, writer),
            repositories: described.chain(others.held).collect(),
            dangling: others.dangling,
        };
        Ok(StoredParts { parts, below, contents, own, _locks: others.locks, proven })
    }

    /// The index tree of the newest checkpoint.
    fn newest_index(&self) -> Option<ObjectId> {
        self.newest.as_ref()?.parts.as_ref()?.0.index
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

    /// Stores a listing, and a tree with the contents that it names, for readers of the repository.
    fn add_listing(&self, writer: &ObjectWriter, listing: &Listing) -> Result<StoredListing> {
        let odb = self.repo.odb()?;
        let text = add_blob(writer, listing::to_text(listing).as_bytes(), odb)?;
        let mut files = PathTree::default();
        for (path, line) in listing {
            let kind = match line.entry.kind {
                Kind::Link => EntryKind::Link,
                Kind::File if line.entry.permissions & 0o100 != 0 => EntryKind::BlobExecutable,
                _ => EntryKind::Blob,
            };
            if let Some(content) = line.entry.content {
                let path = path.strip_prefix(b"/").unwrap_or(path);
                files.add(path, kind, self.repo.object_id(&content.id));
            }
        }
        let mut add_tree = |body: Vec<u8>| writer.add(ObjectKind::Tree, &body, odb);
        let files = if files.is_empty() { None } else { Some(files.store(&mut add_tree)?) };
        Ok(StoredListing { text, files })
    }

    /// Stores the tree with everything private of a checkpoint except its record; `None` if there is nothing.
    fn add_private_tree(
        &self,
        writer: &ObjectWriter,
        own: Option<&Own>,
        below: &StoredListing,
        outside: &StoredListing,
    ) -> Result<Option<ContentId>> {
        let administration = own.map(|own| own.held_repository.administration());
        let parts = [
            ("below", EntryKind::Tree, below.files),
            ("below.listing", EntryKind::Blob, below.text),
            ("outside", EntryKind::Tree, outside.files),
            ("outside.listing", EntryKind::Blob, outside.text),
            ("repository", EntryKind::Tree, administration.map(|it| it.tree)),
            ("repository.modes", EntryKind::Blob, administration.and_then(|it| it.modes)),
        ];
        if parts.iter().all(|(_, _, id)| id.is_none()) {
            return Ok(None);
        }
        add_tree(&self.repo, writer, parts).map(|id| Some(content_id(&id)))
    }

    /// Stores the tree of a checkpoint: its files, and the public part of its record.
    fn add_checkpoint(
        &self,
        writer: &ObjectWriter,
        made: &StoredParts,
        record: &Record,
    ) -> Result<ObjectId> {
        let public = record.to_public().to_json();
        let meta = writer.add(ObjectKind::Blob, &public, self.repo.odb()?)?;
        let parts = &made.parts;
        add_tree(
            &self.repo,
            writer,
            [
                ("files", EntryKind::Tree, parts.files),
                ("index", EntryKind::Tree, parts.index),
                ("index.extra", EntryKind::Blob, parts.extra),
                ("meta", EntryKind::Blob, Some(meta)),
                ("modes", EntryKind::Blob, parts.modes),
            ],
        )
    }

    /// Writes the record and the refs, once the `names` of new objects are on the disk.
    fn publish(
        &self,
        record: &Record,
        tree: ObjectId,
        private: ObjectId,
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
            private,
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
    ) -> Result<()> {
        let scan = &draft.scan;
        if !writer.is_empty() {
            writer.finish()?;
        }
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
        private.flat_map(|one| one.object_dirs()).collect()
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

/// Which objects that a cache names still exist, without a look at each of them.
#[derive(Clone, Copy)]
struct Trusted {
    /// Those of the tree `files`: the anchor keeps them.
    files: bool,
    /// Private ones: the private part of the checkpoint that the cache was written for keeps them.
    private: bool,
}

/// Drops ids from a scan if their objects may no longer exist.
fn invalidate(repo: &Repo, scan: &mut Scan, trusted: Trusted, writer: &ObjectWriter) -> Result<()> {
    let mut is_doubtful = false;
    scan.each(|_, row| {
        let is_trusted = if row.marks.private { trusted.private } else { trusted.files };
        is_doubtful |= !is_trusted && row.content.is_some() && row.kind() != Some(Kind::Directory);
    });
    if !is_doubtful {
        return Ok(());
    }
    let odb = repo.odb()?;
    let is_there = |id: ContentId, marks: Marks| {
        let is_trusted = if marks.private { trusted.private } else { trusted.files };
        is_trusted || writer.relies_on(repo.object_id(&id), odb)
    };
    let mut is_whole = true;
    scan.each(|_, row| {
        let content = row.content.filter(|_| row.kind() != Some(Kind::Directory));
        is_whole = is_whole && content.is_none_or(|id| is_there(id, row.marks));
    });
    // With a base, the trees of directories without changes are not looked at one by one.
    if !is_whole || scan.base.is_some() && !trusted.files {
        scan.forget_base(|found| found.content.is_some_and(|id| is_there(id, found.marks)));
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

/// Stores the private part of a checkpoint: its record, and everything private that it names.
pub(super) fn add_private(repo: &Repo, writer: &ObjectWriter, record: &Record) -> Result<ObjectId> {
    let private = record.private.map(|id| repo.object_id(&id));
    let record = writer.add(ObjectKind::Blob, &record.to_json(), repo.odb()?)?;
    add_tree(repo, writer, PrivatePart { record, private, public: None }.entries())
}

fn add_tree<const N: usize>(
    repo: &Repo,
    writer: &ObjectWriter,
    parts: [(&str, EntryKind, Option<ObjectId>); N],
) -> Result<ObjectId> {
    let mut tree = TreeBuilder::default();
    for (name, kind, id) in parts {
        if let Some(id) = id {
            tree.add(name.as_bytes(), kind, id);
        }
    }
    writer.add(ObjectKind::Tree, &tree.finish(), repo.odb()?)
}

fn is_over(deadline: Option<Instant>) -> bool {
    deadline.is_some_and(|deadline| Instant::now() >= deadline)
}

fn add_blob(writer: &ObjectWriter, bytes: &[u8], odb: &Odb) -> Result<Option<ObjectId>> {
    let add = |bytes| writer.add(ObjectKind::Blob, bytes, odb);
    Some(bytes).filter(|bytes| !bytes.is_empty()).map(add).transpose()
}

/// The listings of what is private: below the root, and outside.
pub(super) fn listings(scan: &Scan, summary: &Summary) -> (Listing, Listing) {
    let (mut below, outside) = victims(&scan.victims, Storage::Git);
    for (path, found) in &summary.private {
        below.extend(entry_of(found, Storage::Git).map(|line| (path.clone(), line)));
    }
    (below, outside)
}
