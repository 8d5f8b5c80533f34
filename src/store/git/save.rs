//! A save, from a scan to refs.
//!
//! Order: the root's lock, reading, objects on the disk, the record, anchor and checkpoint ref in
//! one transaction, the cache. Killed anywhere, only objects that nothing refers to, a record
//! without a ref, or a slower next scan remain. Whoever does not get the lock in time saves all
//! the same and leaves anchor and cache alone.

use std::{
    collections::HashSet,
    sync::{Mutex, PoisonError},
    thread,
    time::{Duration, Instant},
};

use gix::{
    ObjectId,
    objs::{Kind as ObjectKind, tree::EntryKind},
};

use super::{
    GitStore, Known, Parts, collecting, consolidate,
    head::{self, count_staged},
    index, meta,
    modes::{Summary, summarize},
    objects::{Packs, Writer, Written},
    repo::{Odb, Repo, content_id},
    sink::{GitSink, Private},
    tree::{self, Builder},
};
use crate::{
    cache::{self, Facts, Row},
    error::{Error, Result},
    fs::{Lock, create_private_dirs, now_ns},
    model::{
        Checkpoint, CheckpointId, ContentId, Head, Kind, Marks, Place, SkipReason, Skipped, Stamp,
    },
    scan::{Scan, is_racy},
    store::{
        Draft, Saved, Store,
        copy::{entry_of, victims},
        listing::{self, Line, Listing},
        objects::id_of,
        reading,
        record::{self, Keeper, Kept, Record},
        vault::{self, GitState, Vault},
    },
};

/// How long a save without a deadline waits for others.
const PATIENCE: Duration = Duration::from_secs(30);
/// How often a save begins again because git's gc took what it relied on, or what was new. After the
/// first try it takes what it can of neither.
const TRIES: u32 = 5;
/// Git packs some hundred refs in this time.
const BETWEEN_TRIES: Duration = Duration::from_millis(20);

/// What a save has made so far: everything but the checkpoint itself.
struct Made {
    parts: Parts,
    besides: Listing,
    outside: Listing,
    skipped: Vec<Skipped>,
    staged: Option<u64>,
    /// What there is in the repositories that go to the vault, but for their objects.
    vault: Option<GitState>,
    /// For the cache: the tree of the index, if an equal stamp will mean an equal index.
    proven: Option<ObjectId>,
}

/// One save under way.
struct Save<'a> {
    store: &'a GitStore,
    repo: Repo,
    lock: Option<Lock>,
    anchor: Option<ObjectId>,
    /// Whether git has already thrown away what was new: then it is given no second chance.
    shelter: bool,
    /// What the cache says beside its rows, if it can be believed.
    facts: Option<Facts>,
    had_base: bool,
    head: Head,
    kept: Vec<Kept>,
    /// The highest sequence number of all.
    sequence: u64,
    newest: Option<Known>,
}

impl GitStore {
    /// Carries out [`crate::store::Store::save`].
    pub(super) fn save_draft(&self, mut draft: Draft) -> Result<Saved> {
        if let Some(checkpoint) = self.unchanged(&draft) {
            return Ok(Saved { checkpoint, is_new: false });
        }
        create_private_dirs(self.state.dir())?;
        let mut save = Save::begin(self, &draft)?;
        if let Some(first) = self.overtaken(&draft)? {
            return Ok(first);
        }
        let mut believe = save.facts.is_some();
        for tries in 1..=TRIES {
            match save.attempt(&mut draft, believe) {
                Ok(Some(saved)) => return Ok(saved),
                Ok(None) => (),
                // Git's gc takes unfinished files as well, and directories that it empties.
                Err(Error::Io { source, .. })
                    if source.kind() == std::io::ErrorKind::NotFound && tries < TRIES => {}
                Err(err) => return Err(err),
            }
            save.repo = save.repo.refreshed();
            save.doubt(&mut draft.scan, believe);
            save.anchor = self.refs.anchor(&save.repo)?;
            (save.shelter, believe) = (true, true);
        }
        let why = "its objects kept going while others were added".to_owned();
        Err(Error::Repository { path: save.repo.common_dir, why })
    }

    /// The checkpoint that a draft gives way to.
    fn overtaken(&self, draft: &Draft) -> Result<Option<Saved>> {
        match draft.after {
            Some(_) => Ok(draft.gives_way(self.list()?.first())),
            None => Ok(None),
        }
    }

    /// `None` if somebody else has it for too long. Half of the time is for reading.
    fn lock_until(&self, deadline: Option<Instant>) -> Result<Option<Lock>> {
        let now = Instant::now();
        let wait =
            deadline.map_or(PATIENCE, |deadline| deadline.saturating_duration_since(now) / 2);
        match Lock::acquire(&self.state.lock(), now + wait) {
            Ok(lock) => Ok(Some(lock)),
            Err(Error::Busy { .. }) => Ok(None),
            Err(err) => Err(err),
        }
    }
}

impl<'a> Save<'a> {
    fn begin(store: &'a GitStore, draft: &Draft) -> Result<Self> {
        let lock = store.lock_until(draft.deadline)?;
        let repo = store.repo.refreshed();
        if lock.is_some() {
            store.refs.remove_stale_locks(&repo)?;
        }
        let anchor = store.refs.anchor(&repo)?;
        let base = draft.scan.base.as_ref();
        let is_believed = |anchor: &ObjectId| draft.scan.anchor == Some(content_id(anchor));
        let facts =
            base.map(|base| *base.facts()).filter(|_| anchor.is_some_and(|id| is_believed(&id)));
        let kept = record::read_all(&store.state)?;
        let there = store.there(&repo, &kept)?;
        let sequence = there.first().map_or(0, |there| there.sequence);
        let mut known = there.into_iter().map(|there| store.know(&repo, there));
        let newest = known.find(|known| known.parts.is_some());
        let (head, had_base) = (head::read(&repo), base.is_some());
        let shelter = collecting::is_under_way(&repo);
        let save = Self {
            store,
            repo,
            lock,
            anchor,
            shelter,
            facts,
            had_base,
            head,
            kept,
            sequence,
            newest,
        };
        Ok(save)
    }

    /// Saves, or tells that git has removed something in the meantime: then there is nothing new.
    fn attempt(&self, draft: &mut Draft, believe: bool) -> Result<Option<Saved>> {
        let packs = Packs::of(&self.repo);
        let writer = Writer::new(&self.repo, self.shelter);
        let private = Mutex::new(Private::new(&self.store.objects));
        distrust(&self.repo, &mut draft.scan, believe, &writer, &private)?;
        let made = self.make(draft, &writer, &private)?;
        let private = private.into_inner().unwrap_or_else(PoisonError::into_inner);
        if let Some(newest) = self.unchanged_since(draft, &made) {
            let is_kept = self.keep(draft, &newest.checkpoint, &made, writer, private)?;
            let saved = || Saved { checkpoint: newest.checkpoint.clone(), is_new: false };
            return Ok(is_kept.then(saved));
        }
        let mut record = self.compose(draft, &made);
        let tree = self.add_checkpoint(&writer, &made.parts, &record.checkpoint, &draft.scan)?;
        record.tree = Some(content_id(&tree));
        let is_much = !private.is_empty();
        let (state, root, taken_at) = (&self.store.state, &self.store.root, draft.taken_at);
        let aside = || {
            record::write_place(state, root, taken_at)?;
            private.publish()
        };
        let (written, _held) = beside(is_much, aside, || {
            let mut written = writer.finish()?;
            self.note_packs(&written);
            written.freshen();
            self.fill_vault(&mut record, &draft.scan)?;
            Ok(written)
        })?;
        let still_there = || written.still_stand() && (written.is_alone() || packs.still_stand());
        let is_safe = written.is_safe();
        if self.shelter && !is_safe {
            self.no_collection(draft.deadline)?;
        }
        // A ref whose objects go stops the user's own gc, however soon it is taken back.
        if !is_safe && (collecting::is_under_way(&self.repo) || !still_there()) {
            return Ok(None);
        }
        // Reading took a while, and who could not wait has saved without the lock.
        if let Some(first) = self.store.overtaken(draft)? {
            return Ok(Some(first));
        }
        self.publish(&record, tree, made.parts.files)?;
        // A gc that runs now may have looked at the refs before ours was there.
        let stands = || still_there() && written.reused_stand(&self.repo);
        if !is_safe && (!stands() || collecting::is_under_way(&self.repo)) {
            self.take_back(record.checkpoint.id)?;
            return Ok(None);
        }
        // A ref needs it now.
        drop(written);
        self.leave_traces(&draft.scan, &record.checkpoint, &made);
        let ours = consolidate::Packs::of(&self.repo, self.store.state.state());
        let _more = ours.consolidate(consolidate::PACKS_AT_MOST);
        Ok(Some(Saved { checkpoint: record.checkpoint, is_new: true }))
    }

    fn unchanged_since(&self, draft: &Draft, made: &Made) -> Option<&Known> {
        let has_vault = |newest: &Known| match (&made.vault, &newest.record) {
            (None, _) => true,
            (Some(new), Some(Record { vault: Some(old), .. })) => {
                vault::is_same(&self.store.objects, old, new)
            }
            (Some(_), _) => false,
        };
        let is_same =
            |newest: &&Known| newest.is_same(made, draft, &self.head) && has_vault(newest);
        self.newest.as_ref().filter(|_| !draft.always).filter(is_same)
    }

    /// Reads what is unread and makes every object but the checkpoint's own.
    fn make(
        &self,
        draft: &mut Draft,
        writer: &Writer,
        private: &Mutex<Private<'_>>,
    ) -> Result<Made> {
        let (scan, repo) = (&mut draft.scan, &self.repo);
        let mut sinks = (0..reading::threads_for(scan))
            .map(|_| GitSink::storing(repo, writer, private))
            .collect::<Result<Vec<_>>>()?;
        let root = self.store.root.path();
        let mut skipped = reading::read_parallel(root, scan, draft.deadline, &mut sinks)?;
        drop(sinks);
        let odb = repo.odb()?;
        tree::build_fresh(repo, &mut scan.fresh, &mut skipped, |body, _| {
            writer.add(ObjectKind::Tree, &body, odb)
        })?;
        let summary = summarize(scan);
        let modes = add_blob(writer, &summary.modes(), odb)?;
        let (besides, outside) = listings(scan, &summary);
        put_listings(private, [&besides, &outside])?;
        let vault = self.hold_state(scan, private, &mut skipped)?;
        let (index, extra, stamp) = self.stage(writer, odb, &mut skipped)?;
        // The scan looked at it first; what changed in between must be looked at again.
        let proven = index.filter(|_| stamp == Some(scan.index));
        let files = scan.top().map(|id| repo.object_id(&id));
        let parts = Parts { files, modes, index, extra };
        let staged = self.count_staged(&parts, writer);
        let skipped = reading::skipped(scan, skipped);
        Ok(Made { parts, besides, outside, skipped, staged, vault, proven })
    }

    /// Holds the repositories that the call can reach, but for their objects.
    fn hold_state(
        &self,
        scan: &Scan,
        private: &Mutex<Private<'_>>,
        skipped: &mut Vec<Skipped>,
    ) -> Result<Option<GitState>> {
        if scan.git_dirs.is_empty() {
            return Ok(None);
        }
        let mut private = private.lock().unwrap_or_else(PoisonError::into_inner);
        vault::hold_state(private.batch()?, self.store.root.path(), &scan.git_dirs, skipped)
    }

    /// Holds their objects, those of this checkpoint among them.
    fn fill_vault(&self, record: &mut Record, scan: &Scan) -> Result<()> {
        let Some(vault) = &mut record.vault else { return Ok(()) };
        let skipped = &mut record.checkpoint.skipped;
        vault.packs = vault::hold_objects(
            &self.store.state,
            self.store.root.path(),
            &scan.git_dirs,
            skipped,
        )?;
        Ok(())
    }

    /// The newest checkpoint's tree of the index.
    fn newest_index(&self) -> Option<ObjectId> {
        self.newest.as_ref()?.parts.as_ref()?.index
    }

    /// Keeps the index, or notes that it cannot be kept. The stamp is one that proves something.
    fn stage(
        &self,
        writer: &Writer,
        odb: &Odb,
        skipped: &mut Vec<Skipped>,
    ) -> Result<(Option<ObjectId>, Option<ObjectId>, Option<Stamp>)> {
        let repo = &self.repo;
        let stamp = index::stamp(repo);
        let facts = self.facts.filter(|facts| facts.index == stamp && stamp != Stamp::default());
        let staged = facts.and_then(|facts| facts.staged).map(|id| repo.object_id(&id));
        // Something must stand for it still: a ref does if the newest checkpoint has it.
        if staged.is_some() && staged == self.newest_index() {
            return Ok((staged, None, Some(stamp)));
        }
        let built = match index::read(repo) {
            Ok(None) => return Ok((None, None, None)),
            Ok(Some(file)) => {
                index::build(repo, &file, &mut |body| writer.add(ObjectKind::Tree, body, odb))
            }
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
        // The cache has no room for what a tree cannot say; such an index is read every time.
        let proves = extra.is_none() && !is_racy(&stamp, now_ns());
        Ok((Some(built.tree), extra, proves.then_some(stamp)))
    }

    /// How many paths are staged. `None` where it would take long to tell: a whole index of trees
    /// that are not in the repository yet.
    fn count_staged(&self, parts: &Parts, writer: &Writer) -> Option<u64> {
        let index = parts.index?;
        let then = self.newest.as_ref().map(|newest| &newest.checkpoint);
        let same_head = |then: &&Checkpoint| {
            then.head.as_ref().is_some_and(|head| head.commit == self.head.commit)
        };
        match then.filter(same_head) {
            Some(then) if self.newest_index() == Some(index) => then.staged,
            Some(_) | None => {
                count_staged(&self.repo, &self.head, index, &|id| writer.held_tree(id))
            }
        }
    }

    /// The record of the checkpoint that a draft becomes.
    fn compose(&self, draft: &Draft, made: &Made) -> Record {
        let (sequence, id) = record::next(&self.store.state, &self.kept, draft.taken_at);
        let scan = &draft.scan;
        let checkpoint = Checkpoint {
            id,
            sequence: sequence.max(self.sequence.saturating_add(1)),
            taken_at: draft.taken_at,
            cause: draft.cause.clone(),
            top: made.parts.files.map(|id| content_id(&id)),
            files: scan.file_count(),
            partial: scan.partial,
            skipped: made.skipped.clone(),
            outside: outside_paths(&made.outside),
            head: Some(self.head.clone()),
            staged: made.staged,
        };
        let (besides, outside) = (id_of_listing(&made.besides), id_of_listing(&made.outside));
        let vault = made.vault.as_ref().map(|state| Vault { state: state.id(), packs: Vec::new() });
        Record { checkpoint, keeper: Keeper::Git, besides, outside, tree: None, vault }
    }

    /// Adds the checkpoint's own two objects and names its tree.
    fn add_checkpoint(
        &self,
        writer: &Writer,
        parts: &Parts,
        checkpoint: &Checkpoint,
        scan: &Scan,
    ) -> Result<ObjectId> {
        let odb = self.repo.odb()?;
        let json = meta::to_json(checkpoint, &scan.usual, &scan.nested);
        let meta = writer.add(ObjectKind::Blob, &json, odb)?;
        let mut tree = Builder::default();
        let parts = [
            ("files", EntryKind::Tree, parts.files),
            ("index", EntryKind::Tree, parts.index),
            ("index.extra", EntryKind::Blob, parts.extra),
            ("meta", EntryKind::Blob, Some(meta)),
            ("modes", EntryKind::Blob, parts.modes),
        ];
        for (name, kind, id) in parts {
            if let Some(id) = id {
                tree.add(name.as_bytes(), kind, id);
            }
        }
        writer.add(ObjectKind::Tree, &tree.finish(), odb)
    }

    /// Writes record and refs.
    fn publish(&self, record: &Record, tree: ObjectId, files: Option<ObjectId>) -> Result<()> {
        let (store, id) = (self.store, record.checkpoint.id);
        let anchor = files.filter(|_| self.lock.is_some()).map(|new| (self.anchor, new));
        let state = &store.state;
        let note = || record::write(state, record);
        store.refs.create(&self.repo, id, tree, anchor, note).inspect_err(|_| {
            // One of the two may be there, and what it names may go.
            let _as_far_as_can_be = self.take_back(id);
        })
    }

    /// Keeps the number of our packs small. If that fails there are more of them, nothing else.
    fn note_packs(&self, written: &Written) {
        let ours = consolidate::Packs::of(&self.repo, self.store.state.state());
        for pack in written.packs() {
            let _more = ours.add(pack);
        }
    }

    /// Waits until git throws nothing away.
    ///
    /// # Errors
    ///
    /// Fails if it does so until the deadline: whatever is written now may be gone again.
    fn no_collection(&self, deadline: Option<Instant>) -> Result<()> {
        if collecting::is_over(&self.repo, deadline) {
            return Ok(());
        }
        let why = "a `git gc --prune` is running in it".to_owned();
        Err(Error::Repository { path: self.repo.common_dir.clone(), why })
    }

    /// Whether what was written will be there as long as a ref needs it.
    fn outlasts(&self, written: &Written) -> bool {
        written.is_safe() || written.still_stand() && !collecting::is_under_way(&self.repo)
    }

    /// Git took something of what a try wrote. What the cache has is there still, as long as the
    /// anchor stands for it; the rest is to be read and written again.
    fn doubt(&self, scan: &mut Scan, believe: bool) {
        let base = scan.base.as_ref().filter(|_| believe && self.facts.is_some());
        let held: HashSet<ContentId> = base.map_or_else(HashSet::new, |base| {
            (0..base.entry_count()).filter_map(|number| base.row(number).content).collect()
        });
        scan.unfold(|found| found.content.is_some_and(|id| held.contains(&id)));
    }

    /// Lets nobody find a checkpoint that may lack something, and puts the anchor back. A ref that
    /// leads nowhere would stop the user's own gc, so whatever git does to refs meanwhile, it is
    /// tried again.
    fn take_back(&self, id: CheckpointId) -> Result<()> {
        let mut tries = 1;
        loop {
            match self.try_take_back(id) {
                Err(_) if tries < TRIES => thread::sleep(BETWEEN_TRIES * tries),
                done => return done,
            }
            tries += 1;
        }
    }

    fn try_take_back(&self, id: CheckpointId) -> Result<()> {
        let refs = &self.store.refs;
        if let Some(old) = self.anchor.filter(|_| self.lock.is_some()) {
            refs.move_anchor(&self.repo, refs.anchor(&self.repo)?, old)?;
        }
        refs.remove(&self.repo, &[id], self.lock.is_some() && self.anchor.is_none())?;
        record::remove(&self.store.state, id).map(drop)
    }

    /// Nothing changed. Objects are written only where the newest checkpoint had lost some. False if
    /// git has removed some of those in the meantime.
    fn keep(
        &self,
        draft: &Draft,
        newest: &Checkpoint,
        made: &Made,
        writer: Writer,
        private: Private<'_>,
    ) -> Result<bool> {
        let scan = &draft.scan;
        let written = if writer.is_empty() { None } else { Some(writer.finish()?) };
        let _held = private.publish()?;
        if written.is_some_and(|written| !self.outlasts(&written)) {
            return Ok(false);
        }
        let Some(files) = made.parts.files.filter(|_| self.lock.is_some()) else { return Ok(true) };
        let facts = (scan.index, made.proven.map(|id| content_id(&id)));
        let index_is_new = self.facts.is_some_and(|old| (old.index, old.staged) != facts);
        if scan.refreshed || !self.had_base || !scan.fresh.is_empty() || index_is_new {
            self.store.refs.move_anchor(&self.repo, self.anchor, files)?;
            self.leave_traces(scan, newest, made);
        }
        Ok(true)
    }

    /// Lets the next scan begin where this one ended. If that fails it is slower, nothing else.
    fn leave_traces(&self, scan: &Scan, checkpoint: &Checkpoint, made: &Made) {
        let Some(top) = scan.top().filter(|_| self.lock.is_some()) else { return };
        let facts = Facts {
            anchor: Some(top),
            top: Some(top),
            rules: scan.rules,
            tracked: scan.tracked,
            staged: made.proven.map(|id| content_id(&id)),
            index: scan.index,
            usual: scan.usual,
            files: checkpoint.files,
            partial: scan.partial,
            latest: Some((checkpoint.id, self.store.surroundings(scan.index))),
        };
        let _slower = cache::write(&self.store.state.cache(), &scan.to_table(&facts));
    }
}

/// Takes apart a scan that names objects which may no longer be there.
fn distrust(
    repo: &Repo,
    scan: &mut Scan,
    believe: bool,
    writer: &Writer,
    private: &Mutex<Private<'_>>,
) -> Result<()> {
    let mut private = private.lock().unwrap_or_else(PoisonError::into_inner);
    let (mut has_content, mut hidden) = (scan.base.is_some(), Vec::new());
    scan.each(|_, row| {
        has_content |= row.content.is_some() && row.kind() != Some(Kind::Directory);
        hidden.extend(row.content.filter(|_| row.marks.private));
    });
    // The private objects have no anchor, so they are always looked at.
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
            believe || writer.relies_on(repo.object_id(&id), odb)
        }
    };
    let lost = hidden.iter().any(|id| !held.contains(id));
    if lost || (has_content && !believe) {
        // Without a base there is nothing to take apart as long as nothing is missing.
        let mut is_whole = scan.base.is_none();
        if is_whole {
            let content =
                |row: &Row<'_>| row.content.filter(|_| row.kind() != Some(Kind::Directory));
            scan.each(|_, row| {
                is_whole = is_whole && content(&row).is_none_or(|id| is_there(id, row.marks));
            });
        }
        if !is_whole {
            scan.unfold(|found| found.content.is_some_and(|id| is_there(id, found.marks)));
        }
    }
    Ok(())
}

impl Known {
    /// Whether it holds what a new checkpoint would, and leaves out the same. The size of what is
    /// left out does not count: a growing log is no reason for a checkpoint.
    fn is_same(&self, made: &Made, draft: &Draft, head: &Head) -> bool {
        let left_out = |skipped: &[Skipped]| -> Vec<_> {
            skipped.iter().map(|skip| (skip.path.clone(), skip.reason)).collect()
        };
        let Some(record) = &self.record else { return false };
        self.parts.as_ref() == Some(&made.parts)
            && self.usual == Some(draft.scan.usual)
            && record.besides == id_of_listing(&made.besides)
            && record.outside == id_of_listing(&made.outside)
            && self.checkpoint.partial == draft.scan.partial
            && self.checkpoint.head.as_ref() == Some(head)
            && left_out(&self.checkpoint.skipped) == left_out(&made.skipped)
    }
}

fn add_blob(writer: &Writer, bytes: &[u8], odb: &Odb) -> Result<Option<ObjectId>> {
    let add = |bytes| writer.add(ObjectKind::Blob, bytes, odb);
    Some(bytes).filter(|bytes| !bytes.is_empty()).map(add).transpose()
}

/// What the private store holds of a scan: below the root, and outside.
pub(super) fn listings(scan: &Scan, summary: &Summary) -> (Listing, Listing) {
    let (mut below, outside) = victims(&scan.victims);
    for (path, found) in &summary.private {
        if let Some((entry, size)) = entry_of(found, Place::Private) {
            below.insert(path.clone(), Line { entry, size });
        }
    }
    (below, outside)
}

/// Does `others` while `aside` is done, if that is worth a thread: both wait for the disk most of the
/// time.
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
        // Where there was no thread to be had, it is not done yet.
        let done = done.or_else(begin).expect("whoever took it has done it");
        Ok((others?, done?))
    })
}

/// The name a listing has, or would have; an empty one is not kept.
fn id_of_listing(listing: &Listing) -> Option<ContentId> {
    (!listing.is_empty()).then(|| id_of(listing::to_text(listing).as_bytes()))
}

fn put_listings(private: &Mutex<Private<'_>>, listings: [&Listing; 2]) -> Result<()> {
    for listing in listings.into_iter().filter(|listing| !listing.is_empty()) {
        let mut private = private.lock().unwrap_or_else(PoisonError::into_inner);
        private.batch()?.put_bytes(listing::to_text(listing).as_bytes())?;
    }
    Ok(())
}

fn outside_paths(outside: &Listing) -> Vec<std::path::PathBuf> {
    use std::os::unix::ffi::OsStrExt;
    outside.keys().map(|path| std::ffi::OsStr::from_bytes(path).into()).collect()
}
