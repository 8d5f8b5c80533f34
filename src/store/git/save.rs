//! A save, from a scan to refs.
//!
//! Order: the root's lock, reading, objects on the disk, the record, anchor and checkpoint ref in
//! one transaction, the cache. Killed anywhere, only objects that nothing refers to, a record
//! without a ref, or a slower next scan remain. Whoever does not get the lock in time saves all
//! the same and leaves anchor and cache alone.

use std::{
    sync::{Mutex, PoisonError},
    thread::available_parallelism,
    time::{Duration, Instant},
};

use gix::{
    ObjectId,
    objs::{Kind as ObjectKind, tree::EntryKind},
};

use super::{
    GitStore, Known, Parts,
    head::{self, count_staged},
    index, meta,
    modes::{Summary, summarize},
    objects::{Hands, Packs, Reused, Writer},
    repo::{Repo, content_id},
    sink::{GitSink, Private},
    tree::{self, Builder},
};
use crate::{
    cache::{self, Facts},
    error::{Error, Result},
    fs::{Lock, create_private_dirs, now_ns},
    model::{Checkpoint, Found, Head, Kind, Place, SkipReason, Skipped, Stamp, Usual},
    scan::{Scan, is_racy},
    store::{
        Draft, Saved,
        copy::{entry_of, victims},
        listing::{self, Line, Listing},
        objects::{Held, id_of},
        reading,
        record::{self, Keeper, Record},
    },
};

/// How long a save without a deadline waits for others.
const PATIENCE: Duration = Duration::from_secs(30);
/// Below both a second thread costs more than it saves.
const FILES_FOR_THREADS: usize = 200;
const BYTES_FOR_THREADS: u64 = 4 << 20;
/// How often a save begins again because git's gc took what it relied on.
const TRIES: usize = 3;

/// What a save has made so far: everything but the checkpoint itself.
struct Made {
    parts: Parts,
    besides: Listing,
    outside: Listing,
    skipped: Vec<Skipped>,
    staged: Option<u64>,
    /// For the cache: the index that `parts` was made of, if it can be told again.
    index: Stamp,
}

/// What a save begins with.
struct Begun {
    lock: Option<Lock>,
    anchor: Option<ObjectId>,
    facts: Option<Facts>,
    head: Head,
}

impl GitStore {
    /// Carries out [`crate::store::Store::save`].
    pub(super) fn save_draft(&self, mut draft: Draft) -> Result<Saved> {
        create_private_dirs(self.state.dir())?;
        let lock = self.lock_until(draft.deadline)?;
        let mut repo = self.repo.refreshed()?;
        let anchor = self.refs.anchor(&repo)?;
        let is_believed =
            anchor.is_some() && anchor.as_ref().map(|id| content_id(id)) == draft.scan.anchor;
        let facts = draft.scan.base.as_ref().map(|base| *base.facts()).filter(|_| is_believed);
        let had_base = draft.scan.base.is_some();
        let begun = Begun { lock, anchor, facts, head: head::read(&repo) };
        let known = self.known(&repo)?;
        let newest = known.iter().find(|known| known.parts.is_some());
        let mut believe = is_believed;
        for _ in 0..TRIES {
            let packs = Packs::of(&repo);
            let writer = Writer::new(&repo);
            let private = Mutex::new(Private::new(&self.objects));
            self.distrust(&repo, &mut draft.scan, believe, &writer, &private)?;
            let made = self.make(&repo, &mut draft, &begun, newest, &writer, &private)?;
            let private = private.into_inner().unwrap_or_else(PoisonError::into_inner);
            if let Some(newest) =
                newest.filter(|it| !draft.always && it.is_same(&made, &draft, &begun.head))
            {
                let work = (writer, private);
                self.keep(&repo, &draft.scan, had_base, &begun, newest, &made, work)?;
                return Ok(Saved { checkpoint: newest.checkpoint.clone(), is_new: false });
            }
            let record = self.compose(&draft, &made, &known, begun.head.clone())?;
            let tree =
                checkpoint_tree(&repo, &writer, &made.parts, &record.checkpoint, &draft.scan)?;
            let reused = writer.finish(&mut Hands::new(&repo))?;
            let held = private.publish()?;
            reused.freshen();
            if self.publish(&repo, &record, tree, &begun, &made, &packs, &reused, &draft)? {
                self.leave_traces(&draft.scan, &record.checkpoint, &begun, &made);
                drop(held);
                return Ok(Saved { checkpoint: record.checkpoint, is_new: true });
            }
            repo = repo.refreshed()?;
            believe = false;
        }
        let why = "its packs kept changing while objects were added".to_owned();
        Err(Error::Repository { path: repo.common_dir, why })
    }

    /// `None` if somebody else has it for too long. Half of the time is for reading.
    pub(super) fn lock_until(&self, deadline: Option<Instant>) -> Result<Option<Lock>> {
        let now = Instant::now();
        let wait =
            deadline.map_or(PATIENCE, |deadline| deadline.saturating_duration_since(now) / 2);
        match Lock::acquire(&self.state.lock(), now + wait) {
            Ok(lock) => Ok(Some(lock)),
            Err(Error::Busy { .. }) => Ok(None),
            Err(err) => Err(err),
        }
    }

    /// Takes apart a scan that names objects which may no longer be there.
    fn distrust(
        &self,
        repo: &Repo,
        scan: &mut Scan,
        believe: bool,
        writer: &Writer,
        private: &Mutex<Private<'_>>,
    ) -> Result<()> {
        let mut private = private.lock().unwrap_or_else(PoisonError::into_inner);
        let mut has_private = false;
        let mut has_content = false;
        let mut lost = false;
        let ids = |found: &Found| found.content.filter(|_| found.kind() != Some(Kind::Directory));
        for found in scan.fresh.values().flat_map(|fresh| &fresh.found) {
            has_content |= ids(found).is_some();
        }
        scan.each(|_, row| has_private |= row.marks.private && row.content.is_some());
        if has_private {
            let batch = private.batch()?;
            scan.each(|_, row| {
                lost |= row.marks.private && row.content.is_some_and(|id| !batch.contains(&id));
            });
        }
        if (believe || (scan.base.is_none() && !has_content)) && !lost {
            return Ok(());
        }
        let batch = private.batch()?;
        scan.unfold(|found| {
            found.content.is_some_and(|id| match found.marks.private {
                true => batch.contains(&id),
                false => believe || writer.relies_on(repo.object_id(&id), &repo.odb),
            })
        });
        Ok(())
    }

    /// Reads what is unread and makes every object but the checkpoint's own.
    fn make(
        &self,
        repo: &Repo,
        draft: &mut Draft,
        begun: &Begun,
        newest: Option<&Known>,
        writer: &Writer,
        private: &Mutex<Private<'_>>,
    ) -> Result<Made> {
        let scan = &mut draft.scan;
        let mut sinks: Vec<_> =
            (0..threads_for(scan)).map(|_| GitSink::storing(repo, writer, private)).collect();
        let mut skipped =
            reading::read_parallel(self.root.path(), scan, draft.deadline, &mut sinks)?;
        drop(sinks);
        let mut hands = Hands::new(repo);
        tree::build_fresh(repo, &mut scan.fresh, &mut skipped, |body, _| {
            writer.add(ObjectKind::Tree, &body, &mut hands)
        })?;
        let summary = summarize(scan);
        let modes = add_blob(writer, &summary.modes(), &mut hands)?;
        let (besides, outside) = listings(scan, &summary);
        put_listings(private, [&besides, &outside])?;
        let (index, extra, stamp) =
            self.stage(repo, begun.facts.as_ref(), newest, writer, &mut hands, &mut skipped)?;
        let files = scan.top().map(|id| repo.object_id(&id));
        let parts = Parts { files, modes, index, extra };
        let staged = count(repo, &begun.head, &parts, newest, writer);
        let skipped = reading::skipped(scan, skipped);
        Ok(Made { parts, besides, outside, skipped, staged, index: stamp })
    }

    /// Keeps the index, or notes that it cannot be kept.
    fn stage(
        &self,
        repo: &Repo,
        facts: Option<&Facts>,
        newest: Option<&Known>,
        writer: &Writer,
        hands: &mut Hands,
        skipped: &mut Vec<Skipped>,
    ) -> Result<(Option<ObjectId>, Option<ObjectId>, Stamp)> {
        let stamp = index::stamp(repo);
        let staged = facts.filter(|facts| facts.index == stamp && stamp != Stamp::default());
        let staged = staged.and_then(|facts| facts.staged).map(|id| repo.object_id(&id));
        // Something must stand for it still: a ref does if the newest checkpoint has it.
        let held = newest.and_then(|newest| newest.parts.as_ref()).and_then(|parts| parts.index);
        if staged.is_some() && staged == held {
            return Ok((staged, None, stamp));
        }
        let built = match index::read(repo) {
            Ok(None) => return Ok((None, None, Stamp::default())),
            Ok(Some(file)) => {
                index::build(repo, &file, &mut |body| writer.add(ObjectKind::Tree, body, hands))
                    .map_err(|err| err.to_string())
            }
            Err(why) => Err(why),
        };
        let Ok(built) = built else {
            let path = b".git/index".to_vec();
            skipped.push(Skipped { path, reason: SkipReason::Unreadable, size: stamp.size });
            return Ok((None, None, Stamp::default()));
        };
        let extra = add_blob(writer, &built.extra, hands)?;
        // The cache has no room for what a tree cannot say; such an index is read every time.
        let proves = extra.is_none() && !is_racy(&stamp, now_ns());
        Ok((Some(built.tree), extra, if proves { stamp } else { Stamp::default() }))
    }

    /// The record of the checkpoint that a draft becomes.
    fn compose(&self, draft: &Draft, made: &Made, known: &[Known], head: Head) -> Result<Record> {
        let kept = record::read_all(&self.state)?;
        let (sequence, id) = record::next(&self.state, &kept, draft.taken_at);
        let above = known.iter().map(|known| known.checkpoint.sequence).max().unwrap_or(0);
        let scan = &draft.scan;
        let checkpoint = Checkpoint {
            id,
            sequence: sequence.max(above.saturating_add(1)),
            taken_at: draft.taken_at,
            cause: draft.cause.clone(),
            top: made.parts.files.as_ref().map(|id| content_id(id)),
            files: scan.file_count(),
            partial: scan.partial,
            skipped: made.skipped.clone(),
            outside: outside_paths(&made.outside),
            head: Some(head),
            staged: made.staged,
        };
        let id_of_listing = |listing: &Listing| {
            (!listing.is_empty()).then(|| id_of(listing::to_text(listing).as_bytes()))
        };
        let (besides, outside) = (id_of_listing(&made.besides), id_of_listing(&made.outside));
        Ok(Record { checkpoint, keeper: Keeper::Git, besides, outside })
    }

    /// Writes record and refs. Tells whether every pack that was relied on still stands; if not,
    /// there is no such checkpoint.
    #[expect(clippy::too_many_arguments, reason = "everything a save has come to is needed here")]
    fn publish(
        &self,
        repo: &Repo,
        record: &Record,
        tree: ObjectId,
        begun: &Begun,
        made: &Made,
        packs: &Packs,
        reused: &Reused,
        draft: &Draft,
    ) -> Result<bool> {
        let relies = !reused.is_empty() || draft.scan.base.is_some();
        if relies && !packs.still_stand() {
            return Ok(false);
        }
        let id = record.checkpoint.id;
        record::write_place(&self.state, &self.root, draft.taken_at)?;
        record::write(&self.state, record)?;
        let anchor = made.parts.files.filter(|_| begun.lock.is_some());
        let anchor = anchor.map(|new| (begun.anchor, new));
        if let Err(err) = self.refs.create(repo, id, tree, anchor) {
            let _only_a_record = record::remove(&self.state, id);
            return Err(err);
        }
        if relies && !packs.still_stand() {
            // The objects may be gone: nobody may find this checkpoint.
            self.refs.remove(repo, &[id], false)?;
            record::remove(&self.state, id)?;
            return Ok(false);
        }
        Ok(true)
    }

    /// Nothing changed. Objects are written only where the newest checkpoint had lost some.
    #[expect(clippy::too_many_arguments, reason = "everything a save has come to is needed here")]
    fn keep(
        &self,
        repo: &Repo,
        scan: &Scan,
        had_base: bool,
        begun: &Begun,
        newest: &Known,
        made: &Made,
        (writer, private): (Writer, Private<'_>),
    ) -> Result<()> {
        if !writer.is_empty() {
            writer.finish(&mut Hands::new(repo))?;
        }
        let _held: Option<Held> = private.publish()?;
        let Some(files) = made.parts.files.filter(|_| begun.lock.is_some()) else { return Ok(()) };
        let index_is_new = begun.facts.is_some_and(|facts| facts.index != made.index);
        if scan.refreshed || !had_base || !scan.fresh.is_empty() || index_is_new {
            self.refs.move_anchor(repo, begun.anchor, files)?;
            self.leave_traces(scan, &newest.checkpoint, begun, made);
        }
        Ok(())
    }

    /// Lets the next scan begin where this one ended. If that fails it is slower, nothing else.
    fn leave_traces(&self, scan: &Scan, checkpoint: &Checkpoint, begun: &Begun, made: &Made) {
        let Some(top) = scan.top().filter(|_| begun.lock.is_some()) else { return };
        let facts = Facts {
            anchor: Some(top),
            top: Some(top),
            rules: scan.rules,
            tracked: scan.tracked,
            staged: made.parts.index.as_ref().map(|id| content_id(id)),
            index: scan.index,
            usual: scan.usual,
            files: checkpoint.files,
            partial: scan.partial,
        };
        let _slower = cache::write(&self.state.cache(), &scan.to_table(&facts));
    }
}

impl Known {
    /// Whether it holds what a new checkpoint would, and leaves out the same. The size of what is
    /// left out does not count: a growing log is no reason for a checkpoint.
    fn is_same(&self, made: &Made, draft: &Draft, head: &Head) -> bool {
        let ids = |listing: &Listing| {
            (!listing.is_empty()).then(|| id_of(listing::to_text(listing).as_bytes()))
        };
        let left_out = |skipped: &[Skipped]| -> Vec<_> {
            skipped.iter().map(|skip| (skip.path.clone(), skip.reason)).collect()
        };
        let Some(record) = &self.record else { return false };
        self.parts.as_ref() == Some(&made.parts)
            && self.usual == Some(draft.scan.usual)
            && (record.besides, record.outside) == (ids(&made.besides), ids(&made.outside))
            && self.checkpoint.partial == draft.scan.partial
            && self.checkpoint.head.as_ref() == Some(head)
            && left_out(&self.checkpoint.skipped) == left_out(&made.skipped)
    }
}

fn threads_for(scan: &Scan) -> usize {
    let (mut files, mut bytes) = (0, 0u64);
    for found in scan.fresh.values().flat_map(|fresh| &fresh.found) {
        if found.is_unread() {
            files += 1;
            bytes = bytes.saturating_add(found.stamp.size);
        }
    }
    let is_much = files > FILES_FOR_THREADS || bytes > BYTES_FOR_THREADS;
    if is_much && available_parallelism().is_ok_and(|there| there.get() > 1) { 2 } else { 1 }
}

fn add_blob(writer: &Writer, bytes: &[u8], hands: &mut Hands) -> Result<Option<ObjectId>> {
    let add = |bytes| writer.add(ObjectKind::Blob, bytes, hands);
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

/// How many paths are staged. New trees are not in the repository yet, so only an index whose
/// trees are can be counted; the others are told when they are.
fn count(
    repo: &Repo,
    head: &Head,
    parts: &Parts,
    newest: Option<&Known>,
    writer: &Writer,
) -> Option<u64> {
    let index = parts.index?;
    if let Some(newest) = newest
        && newest.parts.as_ref().and_then(|parts| parts.index) == Some(index)
        && newest.checkpoint.head.as_ref().map(|head| &head.commit) == Some(&head.commit)
    {
        return newest.checkpoint.staged;
    }
    count_staged(repo, head, index, &|id| writer.held_tree(id))
}

/// Adds the checkpoint's own two objects and names its tree.
fn checkpoint_tree(
    repo: &Repo,
    writer: &Writer,
    parts: &Parts,
    checkpoint: &Checkpoint,
    scan: &Scan,
) -> Result<ObjectId> {
    let mut hands = Hands::new(repo);
    let usual: &Usual = &scan.usual;
    let json = meta::to_json(checkpoint, usual, &scan.nested);
    let meta = writer.add(ObjectKind::Blob, &json, &mut hands)?;
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
    writer.add(ObjectKind::Tree, &tree.finish(), &mut hands)
}
