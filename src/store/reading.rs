//! Reads the files that a scan has found new or changed. Opens each by name in its directory, never
//! through a symlink, and stats it before and after. A [`Sink`] decides where the content goes.

use std::{
    collections::HashSet,
    ffi::{CString, OsStr},
    fs::File,
    io,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
    thread,
    time::Instant,
};

use super::{
    directory::entry_of,
    listing::{Listing, ListingLine},
    objects::Taken,
};
use crate::{
    error::{Error, Result},
    fs::{Dir, DirCursor, c_name, now_ns, stamp_of, two_can_work},
    model::{ContentId, DirPath, Entry, Kind, ScanEntry, SkipReason, Skipped, Stamp, Storage},
    scan::{Scan, Victim, VictimPath, is_racy},
};

/// With fewer files and bytes than this, a second thread costs more than it saves.
const FILES_FOR_THREADS: usize = 200;
const BYTES_FOR_THREADS: u64 = 4 << 20;
/// How many times a file is read if it changes meanwhile.
const TRIES: usize = 4;

/// The destination of file contents: a store, or only a hash.
pub trait Sink {
    /// Takes the content of an open file; `size` is the expected size.
    ///
    /// # Errors
    ///
    /// Fails if the content cannot be stored. A file that cannot be read is an `Ok` result.
    fn file(&mut self, file: &File, size: u64) -> Result<Taken>;

    /// Takes the target text of a symlink.
    ///
    /// # Errors
    ///
    /// Fails if it cannot be stored.
    fn link(&mut self, text: &[u8]) -> Result<ContentId>;
}

/// Reads every unread file of `scan`, victims first, and sets its content id. Uses a thread for each
/// of `sinks`; files of one directory may go to different sinks. Files that are gone or unreadable
/// are marked as skipped. At the deadline all remaining ones are, and the scan becomes partial.
/// Returns the files that are held although they kept changing.
///
/// # Errors
///
/// Fails with the first error of a sink, or if there is something to read and the root cannot be
/// opened.
pub fn read_all<S: Sink + Send>(
    root: &Path,
    scan: &mut Scan,
    deadline: Option<Instant>,
    sinks: &mut [S],
) -> Result<Vec<Skipped>> {
    let listed = scan.fresh.values().flat_map(|fresh| &fresh.found);
    let mut all = scan.victims.iter().map(|victim| &victim.found).chain(listed);
    let [first, others @ ..] = sinks else { return Ok(Vec::new()) };
    if !all.any(ScanEntry::is_unread) {
        return Ok(Vec::new());
    }
    let top = Dir::open(root).map_err(Error::io("open", root))?;
    let mut reader = FileReader::new(&top, first, deadline);
    scan.victims.iter_mut().try_for_each(|victim| reader.read_victim(victim))?;
    let parts = scan
        .fresh
        .iter_mut()
        .flat_map(|(path, fresh)| fresh.found.chunks_mut(PART).map(move |part| (path, part)));
    let parts = Mutex::new(parts.filter(|(_, part)| part.iter().any(ScanEntry::is_unread)));
    let read = |mut reader: FileReader<'_>| {
        while let Some((path, part)) = next_part(&parts) {
            reader.read_part(path, part)?;
        }
        Ok::<_, Error>((reader.late, reader.changing))
    };
    let begin = &|sink: &mut S| read(FileReader::new(&top, sink, deadline));
    let results = thread::scope(|scope| {
        // If a thread cannot be started, the others do its work.
        let spawn = |sink| thread::Builder::new().spawn_scoped(scope, move || begin(sink)).ok();
        let threads: Vec<_> = others.iter_mut().filter_map(spawn).collect();
        let mut results = vec![read(reader)];
        for thread in threads {
            results.push(thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
        results
    });
    let mut changing = Vec::new();
    for result in results {
        let (late, more) = result?;
        scan.partial |= late;
        changing.extend(more);
    }
    Ok(changing)
}

/// How many threads to use for the unread files of a scan.
pub fn threads_for(scan: &Scan) -> usize {
    let (mut files, mut bytes) = (0, 0u64);
    for found in scan.fresh.values().flat_map(|fresh| &fresh.found) {
        if found.is_unread() {
            files += 1;
            bytes = bytes.saturating_add(found.stamp.size);
        }
    }
    let is_much = files > FILES_FOR_THREADS || bytes > BYTES_FOR_THREADS;
    if is_much && two_can_work() { 2 } else { 1 }
}

/// How many names a thread takes at a time: enough to make opening their directory worthwhile.
const PART: usize = 64;

fn next_part<T>(parts: &Mutex<impl Iterator<Item = T>>) -> Option<T> {
    parts.lock().unwrap_or_else(PoisonError::into_inner).next()
}

/// The paths outside that a checkpoint tells of: those `held`, and those where nothing was.
pub fn outside(held: &Listing, scan: &Scan) -> Vec<PathBuf> {
    let held = held.keys().map(|path| OsStr::from_bytes(path).into());
    let mut paths: Vec<PathBuf> = held.chain(scan.absent.iter().cloned()).collect();
    paths.sort();
    paths
}

/// Everything in a scan that was left out and should be reported, and files that kept changing.
pub fn skipped(scan: &Scan, changing: Vec<Skipped>) -> Vec<Skipped> {
    let mut skipped = changing;
    scan.each(|directory, row| {
        if let Some(reason) = row.skipped.filter(|&reason| is_told(reason)) {
            let path = DirPath(directory.to_vec()).join(row.name);
            skipped.push(Skipped { path, reason, size: size_of(row.stamp) });
        }
    });
    for victim in &scan.victims {
        if let Some(reason) = victim.found.skipped.filter(|&reason| is_told(reason)) {
            let size = size_of(victim.found.stamp);
            let path = victim.path.as_bytes().to_vec();
            skipped.push(Skipped { path, reason, size });
        }
    }
    let held = |is_dir: bool| -> HashSet<Vec<u8>> {
        let held = scan.victims.iter().filter(|victim| victim.found.is_held());
        let is_such = |victim: &&Victim| (victim.found.kind() == Some(Kind::Directory)) == is_dir;
        held.filter(is_such).map(|victim| victim.path.as_bytes().to_vec()).collect()
    };
    let (dirs, others) = (held(true), held(false));
    skipped.retain(|skipped| !dirs.contains(&skipped.path));
    // A directory that is held, and left out, is so without all that is in it.
    skipped.extend(scan.unheld.iter().filter(|skipped| is_told(skipped.reason)).cloned());
    skipped.retain(|skipped| !others.contains(&skipped.path));
    skipped.sort();
    skipped.dedup_by(|a, b| a.path == b.path);
    skipped
}

/// A nested repository is held as one, so it is not left out.
fn is_told(reason: SkipReason) -> bool {
    reason != SkipReason::GitPrivate
}

fn size_of(stamp: Stamp) -> u64 {
    if stamp.kind().is_some_and(Kind::has_content) { stamp.size } else { 0 }
}

struct FileReader<'a> {
    top: &'a Dir,
    cursor: DirCursor<'a>,
    sink: &'a mut dyn Sink,
    deadline: Option<Instant>,
    /// Whether the deadline passed before everything was read.
    late: bool,
    changing: Vec<Skipped>,
}

/// What came of reading a file.
struct ReadFile {
    id: ContentId,
    /// From before it was read, but with the size of what was read.
    stamp: Stamp,
    /// Whether the stamp was the same afterwards. If not, it does not belong to the content.
    is_steady: bool,
    /// Whether it will prove nothing to the next scan.
    is_racy: bool,
}

impl ReadFile {
    fn new(id: ContentId, stamp: Stamp, is_steady: bool) -> Self {
        Self { id, stamp, is_steady, is_racy: !is_steady }
    }
}

impl<'a> FileReader<'a> {
    fn new(top: &'a Dir, sink: &'a mut dyn Sink, deadline: Option<Instant>) -> Self {
        let (cursor, changing) = (DirCursor::from(top), Vec::new());
        Self { top, cursor, sink, deadline, late: false, changing }
    }

    fn read_part(&mut self, path: &DirPath, part: &mut [ScanEntry]) -> Result<()> {
        let dir = self.cursor.enter(&path.0).ok();
        for found in part.iter_mut().filter(|found| found.is_unread()) {
            if self.read(dir.as_deref(), found)? {
                self.note_changing(path.join(&found.name), found);
            }
        }
        Ok(())
    }

    fn read_victim(&mut self, victim: &mut Victim) -> Result<()> {
        if !victim.found.is_unread() {
            return Ok(());
        }
        let dir = match &victim.path {
            VictimPath::Below(path) => self.top.parent_of(path),
            // The path comes from the user or the agent, so symlinks above it are followed.
            VictimPath::Outside(path) => Dir::open(path.parent().unwrap_or(path)),
        };
        victim.found.name = victim.path.name().to_vec();
        if self.read(dir.ok().as_ref(), &mut victim.found)? {
            self.note_changing(victim.path.as_bytes().to_vec(), &victim.found);
        }
        Ok(())
    }

    fn note_changing(&mut self, path: Vec<u8>, found: &ScanEntry) {
        let (reason, size) = (SkipReason::KeptChanging, found.stamp.size);
        self.changing.push(Skipped { path, reason, size });
    }

    /// Reads a file; returns whether it kept changing.
    fn read(&mut self, dir: Option<&Dir>, found: &mut ScanEntry) -> Result<bool> {
        if self.is_late() {
            found.skipped = Some(SkipReason::OutOfTime);
            return Ok(false);
        }
        let place = dir.and_then(|dir| Some((dir, c_name(&found.name).ok()?)));
        let read = match place {
            Some((dir, name)) => self.read_until_steady(dir, &name, found.kind())?.ok(),
            None => None,
        };
        let Some(ReadFile { id, stamp, is_steady, is_racy }) = read else {
            found.skipped = Some(SkipReason::Unreadable);
            return Ok(false);
        };
        (found.content, found.stamp, found.marks.racy) = (Some(id), stamp, is_racy);
        Ok(!is_steady)
    }

    fn read_until_steady(
        &mut self,
        dir: &Dir,
        name: &CString,
        kind: Option<Kind>,
    ) -> Result<io::Result<ReadFile>> {
        let mut last = None;
        for _ in 0..TRIES {
            let now = now_ns();
            match self.read_once(dir, name, kind)? {
                Ok(mut read) => {
                    read.is_racy |= is_racy(&read.stamp, now);
                    if read.is_steady {
                        return Ok(Ok(read));
                    }
                    last = Some(read);
                }
                // Content that was read once is better than none.
                Err(err) => return Ok(last.ok_or(err)),
            }
            if self.is_late() {
                break;
            }
        }
        Ok(last.ok_or_else(|| io::ErrorKind::Other.into()))
    }

    fn read_once(
        &mut self,
        dir: &Dir,
        name: &CString,
        kind: Option<Kind>,
    ) -> Result<io::Result<ReadFile>> {
        match kind {
            Some(Kind::File) => self.read_regular(dir, name),
            Some(Kind::Link) => self.read_link(dir, name),
            Some(
                Kind::Directory | Kind::Fifo | Kind::Socket | Kind::CharDevice | Kind::BlockDevice,
            )
            | None => Ok(Err(io::ErrorKind::InvalidInput.into())),
        }
    }

    fn read_regular(&mut self, dir: &Dir, name: &CString) -> Result<io::Result<ReadFile>> {
        let (file, before) = match dir.open_file(name) {
            Ok(opened) => opened,
            Err(err) => return Ok(Err(err)),
        };
        let (id, size) = match self.sink.file(&file, before.size)? {
            Ok(taken) => taken,
            Err(err) => return Ok(Err(err)),
        };
        let is_steady = stamp_of(&file).is_ok_and(|after| after == before) && size == before.size;
        Ok(Ok(ReadFile::new(id, Stamp { size, ..before }, is_steady)))
    }

    fn read_link(&mut self, dir: &Dir, name: &CString) -> Result<io::Result<ReadFile>> {
        let read = || -> io::Result<_> {
            let before = dir.stat_child(name)?;
            let text = dir.read_link(name)?;
            let is_steady = dir.stat_child(name)? == before;
            Ok((text, before, is_steady && before.kind() == Some(Kind::Link)))
        };
        let (text, before, is_steady) = match read() {
            Ok(read) => read,
            Err(err) => return Ok(Err(err)),
        };
        let id = self.sink.link(&text)?;
        Ok(Ok(ReadFile::new(id, Stamp { size: text.len() as u64, ..before }, is_steady)))
    }

    fn is_late(&mut self) -> bool {
        let late = self.deadline.is_some_and(|deadline| Instant::now() >= deadline);
        self.late |= late;
        late
    }
}

/// The listings of victims below the root and outside it.
pub(in crate::store) fn victims(victims: &[Victim], place: Storage) -> (Listing, Listing) {
    let (mut below, mut outside) = (Listing::new(), Listing::new());
    for victim in victims {
        let Some(line) = victim_line(&victim.found, place) else { continue };
        let listing = match &victim.path {
            VictimPath::Below(_) => &mut below,
            VictimPath::Outside(_) => &mut outside,
        };
        listing.insert(victim.path.as_bytes().to_vec(), line);
    }
    (below, outside)
}

/// A directory among the victims has no content: its files have lines of their own.
fn victim_line(found: &ScanEntry, place: Storage) -> Option<ListingLine> {
    if found.kind() != Some(Kind::Directory) {
        return entry_of(found, place);
    }
    let permissions = found.stamp.permissions();
    let entry = Entry { kind: Kind::Directory, permissions, content: None, device: 0 };
    found.is_held().then_some(ListingLine { entry, size: 0 })
}
