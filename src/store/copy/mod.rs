//! The file store: plain copies below the state directory, for roots without a usable repository.
//!
//! Order of a save: the root's lock, the objects' lock (see [`objects`](super::objects)), reading,
//! objects synced, the record, the anchor, the cache. A crash leaves at most unreferenced objects
//! or a slower next scan. A save that does not get the root's lock in time proceeds without it and
//! leaves anchor and cache alone.

mod check;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::File,
    io::Read,
    path::PathBuf,
    rc::Rc,
    sync::Arc,
    time::{Duration, Instant},
};

use super::{
    Damage, Draft, GitStore, LOCK_WAIT, Saved, Store, Survey, anchor,
    directory::{self, read_directory},
    listing::{self, Listing},
    object_stamps::CheckedStamps,
    objects::{Batch, Objects, Taken, id_of, identify_file},
    reading::{self, Sink, victims},
    record::{self, Record, RecordEntry, RecordIndex, StoreKind},
    repository::{PrivateRepository, hold_others, repair_repository_refs},
    save::{self, CheckpointContents},
    sweep,
};
use crate::{
    error::{Error, Result},
    fs::{FileBuffer, Lock, create_private_dirs},
    model::{
        CheckpointId, Completeness, Content, ContentId, DefaultModes, Directory, Entry, RelPath,
        Root, Storage, Tree,
    },
    scan::Scan,
    state::{RootState, StateDir},
};

/// How long any save waits for a sweep: saving beside one could lose objects.
const SWEEP_MAX: Duration = Duration::from_secs(5);

/// The file store of one root.
#[derive(Debug)]
pub struct CopyStore {
    root: Root,
    state: RootState,
    records: Rc<RecordIndex>,
    objects: Objects,
}

impl CopyStore {
    /// The store of `root`. Creates nothing yet: files are opened only when they are needed.
    pub fn of(root: &Root, state: &StateDir) -> Self {
        let objects = Objects::new(state.objects());
        let state = state.root(root);
        let records = Rc::new(RecordIndex::new(state.clone()));
        Self { root: root.clone(), state, records, objects }
    }

    /// The records of its root.
    pub(super) fn records(&self) -> &Rc<RecordIndex> {
        &self.records
    }

    /// Its objects.
    pub(super) fn objects(&self) -> &Objects {
        &self.objects
    }

    fn record(&self, id: CheckpointId) -> Result<Arc<Record>> {
        let record = self.records.get(id)?;
        match record.keeper {
            StoreKind::Copy => Ok(record),
            StoreKind::Git => Err(Error::NoSuchCheckpoint { given: id.to_string() }),
        }
    }

    /// Records of this store, and unreadable ones.
    fn own_records(&self) -> Result<Vec<RecordEntry>> {
        let mut entries = self.records.all()?;
        entries.retain(|entry| {
            entry.record.as_ref().map_or(true, |record| record.keeper == StoreKind::Copy)
        });
        Ok(entries)
    }

    /// The files of a checkpoint of this store.
    pub(super) fn tree_of(&self, record: &Record) -> Result<Tree> {
        let overlay = self.overlay(record)?;
        Ok(Tree {
            top: record.checkpoint.top,
            listed: overlay.keys().cloned().collect(),
            overlay,
            outside: self.outside(record)?,
            unsaved: BTreeMap::new(),
            default_modes: DefaultModes::default(),
        })
    }

    fn listing(&self, id: &ContentId) -> Result<Listing> {
        listing::parse(id, &self.objects.read(id)?, Storage::Files)
    }

    fn overlay(&self, record: &Record) -> Result<BTreeMap<RelPath, Entry>> {
        match &record.overlay {
            Some(id) => listing::below(id, &self.listing(id)?),
            None => Ok(BTreeMap::new()),
        }
    }

    fn outside(&self, record: &Record) -> Result<BTreeMap<PathBuf, Entry>> {
        match &record.outside {
            Some(id) => listing::outside(id, &self.listing(id)?),
            None => Ok(BTreeMap::new()),
        }
    }

    /// Reads and stores everything. Ids from the base are trusted only while its anchor is current.
    /// Hold the locks until there is a record.
    fn put(
        &self,
        draft: &mut Draft,
        batch: &Batch<'_>,
        stamps: &CheckedStamps,
    ) -> Result<(CheckpointContents, Vec<Lock>)> {
        let (scan, deadline) = (&mut draft.scan, draft.deadline);
        if !self.trusts_cache(scan) || !stamps.stand() {
            scan.forget_base(|found| found.content.is_some_and(|id| batch.contains(&id)));
        }
        let keep = |_| Keep { batch, buffer: FileBuffer::default() };
        let mut sinks: Vec<_> = (0..reading::threads_for(scan)).map(keep).collect();
        let mut left_out = reading::read_all(self.root.path(), scan, deadline, &mut sinks)?;
        let (state, root) = (self.state.state(), self.root.path());
        let others =
            hold_others(state, root, &scan.repositories, None, deadline, &mut left_out, stamps)?;
        scan.name_directories(|_, found| batch.put_bytes(directory::to_text(found).as_bytes()))?;
        let (overlay, outside) = victims(&scan.victims, Storage::Files);
        for listing in [&overlay, &outside].into_iter().filter(|listing| !listing.is_empty()) {
            batch.put_bytes(listing::to_text(listing).as_bytes())?;
        }
        let contents = CheckpointContents {
            keeper: StoreKind::Copy,
            top: scan.top(),
            default_modes: DefaultModes::default(),
            overlay: listing::id_of(&overlay),
            outside: listing::id_of(&outside),
            private: None,
            outside_paths: reading::outside(&outside, scan),
            partial: scan.partial,
            skipped: reading::skipped(scan, left_out),
            head: None,
            staged: None,
            repositories: others.held,
            dangling: others.dangling,
        };
        Ok((contents, others.locks))
    }

    /// Whether the newest checkpoint equals the draft, decided without reading anything: the common
    /// case of a scan without changes.
    fn is_plainly(&self, newest: &Record, draft: &Draft) -> bool {
        let scan = &draft.scan;
        let is_bare = |record: &Record| record.overlay.is_none() && record.outside.is_none();
        let may_be = !draft.always
            && scan.is_unchanged()
            && scan.victims.is_empty()
            && scan.repositories.is_empty()
            && self.root.path().join(".git").symlink_metadata().is_err();
        may_be
            && newest.keeper == StoreKind::Copy
            && newest.checkpoint.top == scan.top()
            && newest.checkpoint.completeness == Completeness::of_record(scan.partial)
            && is_bare(newest)
            && self.trusts_cache(scan)
    }

    fn trusts_cache(&self, scan: &Scan) -> bool {
        scan.anchor.is_some() && scan.anchor == self.anchor()
    }

    /// Writes the cache for the next scan. A failure only makes that scan slower.
    fn write_cache(&self, scan: &Scan, record: &Record, stamps: &CheckedStamps) {
        let checkpoint = &record.checkpoint;
        let Some(top) = scan.top() else { return };
        let facts = save::facts(scan, top, checkpoint);
        let _slower = stamps
            .write(&self.state, &self.object_dirs(record), &[])
            .and_then(|()| anchor::write(&self.state, top))
            .and_then(|()| scan.write_table(&self.state.cache(), &facts));
    }

    /// The directories with the objects that a checkpoint needs.
    fn object_dirs(&self, record: &Record) -> Vec<PathBuf> {
        let state = self.state.state();
        let names: BTreeSet<&str> = record.repositories.iter().map(|held| &*held.store).collect();
        let private = names.into_iter().map(|name| PrivateRepository::named(state, name));
        private.flat_map(|one| one.object_dirs()).chain([state.objects()]).collect()
    }

    fn add(
        &self,
        draft: &Draft,
        record: &Record,
        batch: Batch<'_>,
        locked: Option<&CheckedStamps>,
    ) -> Result<()> {
        let held = batch.publish()?;
        record::write_location(&self.state, &self.root, None, draft.taken_at)?;
        record::write(&self.state, record)?;
        if let Some(stamps) = locked {
            self.write_cache(&draft.scan, record, stamps);
        }
        drop(held);
        Ok(())
    }

    /// Nothing changed. Objects are written only if the newest checkpoint has lost some.
    fn keep(
        &self,
        scan: &Scan,
        newest: &Record,
        batch: Batch<'_>,
        locked: Option<&CheckedStamps>,
    ) -> Result<()> {
        let had_base = scan.base.is_some();
        if !batch.is_empty() {
            drop(batch.publish()?);
        }
        let is_stale = scan.refreshed || !had_base || !scan.fresh.is_empty();
        match locked {
            Some(stamps) if is_stale || !stamps.stand() => self.write_cache(scan, newest, stamps),
            Some(_) | None => (),
        }
        Ok(())
    }
}

impl Store for CopyStore {
    fn root(&self) -> &Root {
        &self.root
    }

    fn git(&self) -> Option<&GitStore> {
        None
    }

    fn anchor(&self) -> Option<ContentId> {
        anchor::read(&self.state)
    }

    fn save(&self, mut draft: Draft) -> Result<Saved> {
        create_private_dirs(self.state.dir())?;
        let lock = save::lock(&self.state, draft.deadline)?;
        let soonest = Instant::now() + SWEEP_MAX;
        let batch =
            self.objects.batch(draft.deadline.map_or(soonest, |deadline| deadline.max(soonest)))?;
        let stamps = CheckedStamps::of(&self.state);
        if !stamps.stand() {
            self.objects.set_damaged_aside(&stamps.changed);
        }
        let locked = lock.as_ref().map(|_| &stamps);
        let newest_id = record::ids(&self.state)?.first().copied();
        let newest = newest_id.and_then(|id| record::read(&self.state, id).ok());
        if let Some(same) = &newest
            && stamps.stand()
            && self.is_plainly(same, &draft)
        {
            self.keep(&draft.scan, same, batch, locked)?;
            return Ok(Saved { checkpoint: same.checkpoint.clone(), is_new: false });
        }
        if let Some(first) = save::overtaken(&self.state, &draft)? {
            return Ok(first);
        }
        let (contents, _locks) = self.put(&mut draft, &batch, &stamps)?;
        let is_same = |newest: &Record| !draft.always && contents.are_held_by(newest);
        if let Some(newest) = newest.filter(is_same) {
            self.keep(&draft.scan, &newest, batch, locked)?;
            return Ok(Saved { checkpoint: newest.checkpoint, is_new: false });
        }
        // Reading takes time, and a save without the lock may have been faster.
        if let Some(first) = save::overtaken(&self.state, &draft)? {
            return Ok(first);
        }
        let sequence = newest_id.map_or(0, CheckpointId::sequence);
        let record = contents.to_record(&self.state, &draft, sequence);
        self.add(&draft, &record, batch, locked)?;
        Ok(Saved { checkpoint: record.checkpoint, is_new: true })
    }

    fn survey(&self) -> Result<Survey> {
        let mut survey = Survey::default();
        self.own_records()?.into_iter().for_each(|kept| kept.add_to(&mut survey));
        Ok(survey)
    }

    fn tree(&self, id: CheckpointId) -> Result<Tree> {
        self.tree_of(&*self.record(id)?)
    }

    fn identify(&self, scan: &mut Scan) -> Result<Tree> {
        if !self.trusts_cache(scan) {
            // Another store may have set the ids.
            scan.forget_base(|_| false);
        }
        reading::read_all(self.root.path(), scan, None, &mut [NameOnly])?;
        let mut unsaved = BTreeMap::new();
        scan.name_directories(|_, found| {
            let id = id_of(directory::to_text(found).as_bytes());
            unsaved.insert(id, directory::entries(found));
            Ok(id)
        })?;
        let (overlay, outside) = victims(&scan.victims, Storage::Files);
        let unstored = ContentId::new(&[]);
        let overlay = listing::below(&unstored, &overlay)?;
        let outside = listing::outside(&unstored, &outside)?;
        Ok(Tree {
            top: scan.top(),
            listed: overlay.keys().cloned().collect(),
            overlay,
            outside,
            unsaved,
            default_modes: DefaultModes::default(),
        })
    }

    fn directory(&self, id: &ContentId) -> Result<Directory> {
        read_directory(&self.objects, id)
    }

    fn has(&self, content: &Content) -> bool {
        !matches!(self.objects.open(&content.id), Err(Error::Damaged { .. }))
    }

    fn open(&self, content: &Content) -> Result<Box<dyn Read>> {
        self.objects.open(&content.id)
    }

    fn put_beside(&mut self, contents: BTreeMap<ContentId, Vec<u8>>) {
        self.objects.put_beside(contents);
    }

    fn repair(&self) -> Result<Vec<String>> {
        if !self.state.dir().is_dir() {
            return Ok(Vec::new());
        }
        let _lock = Lock::acquire(&self.state.lock(), Instant::now() + LOCK_WAIT)?;
        let mut done = repair_repository_refs(&self.state)?;
        done.extend(record::salvage_all(&self.state, |_| None)?);
        Ok(done)
    }

    fn forget(&self, ids: &[CheckpointId]) -> Result<usize> {
        if !self.state.dir().is_dir() {
            return Ok(0);
        }
        let _lock = Lock::acquire(&self.state.lock(), Instant::now() + LOCK_WAIT)?;
        let mut kept = ids.to_vec();
        kept.retain(|id| {
            self.records.get(*id).map_or(true, |record| record.keeper == StoreKind::Copy)
        });
        self.records.remove(&kept);
        record::forget(&self.state, kept.into_iter())
    }

    fn remove(&self, ids: &[CheckpointId]) -> Result<u64> {
        sweep::remove(self, self.state.state(), ids)
    }

    fn is_untidy(&self) -> bool {
        sweep::is_untidy(&self.objects)
    }

    fn check(&self, read_data: bool) -> Result<Vec<Damage>> {
        Ok(check::check(self, self.own_records()?, read_data))
    }

    fn by_hand(&self, id: CheckpointId) -> String {
        let objects = self.state.state().objects();
        match self.record(id).ok().and_then(|record| record.checkpoint.top) {
            Some(top) => {
                format!(
                    "{}  (directory {top}; see \"By hand\" in docs/FORMAT.md)",
                    objects.display()
                )
            }
            None => record::path_of(&self.state, id).display().to_string(),
        }
    }
}

/// A sink that stores what is read.
struct Keep<'a, 'b> {
    batch: &'a Batch<'b>,
    buffer: FileBuffer,
}

impl Sink for Keep<'_, '_> {
    fn file(&mut self, file: &File, size: u64) -> Result<Taken> {
        self.batch.put_file(file, size, &mut self.buffer)
    }

    fn link(&mut self, text: &[u8]) -> Result<ContentId> {
        self.batch.put_bytes(text)
    }
}

/// A sink that only computes ids.
struct NameOnly;

impl Sink for NameOnly {
    fn file(&mut self, file: &File, _: u64) -> Result<Taken> {
        Ok(identify_file(file))
    }

    fn link(&mut self, text: &[u8]) -> Result<ContentId> {
        Ok(id_of(text))
    }
}
