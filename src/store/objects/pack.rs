//! A pack: many small objects in one file.
//!
//! First come the bytes of all objects, one after the other, as they are. Then a line for each
//! object, sorted by id: its id, where its bytes begin, and how many there are. The last line tells
//! how many objects there are. All lines have fixed widths, so one is found without reading the
//! others, and a shell can read them. A pack is named by the SHA-256 of its lines.

use std::{
    borrow::Cow,
    collections::HashMap,
    fmt::Write as _,
    fs::{self, File},
    io::{self, BufWriter, Write},
    ops::Range,
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
    sync::{
        OnceLock,
        atomic::{AtomicU32, Ordering},
    },
};

use sha2::{Digest, Sha256};

use crate::{
    error::Error,
    fs::{is_in_the_way, open_options},
    model::ContentId,
};

/// A larger object has a file of its own.
pub(super) const OBJECT_MAX_BYTES: u64 = 1 << 20;
const ID_DIGITS: usize = 64;
/// An id, an offset and a length, with a space before each number and a line end.
const LINE_BYTES: usize = ID_DIGITS + 1 + 17 + 1 + 12 + 1;
const LAST_LINE: &str = "beforehand pack 1 ";
const LAST_LINE_BYTES: usize = 32;
/// How many lines are read at a time: as many as most saves write, and enough to hit the wanted one
/// in a pack of ten thousand objects.
const LINES_AT_ONCE: u64 = 128;
const TAIL_BYTES: u64 = LINES_AT_ONCE * LINE_BYTES as u64 + LAST_LINE_BYTES as u64;
/// Enough for eleven million objects.
const LINES_MAX_BYTES: u64 = 1 << 30;
/// So many reads cost more than to read all lines, 1 MB of ten thousand objects.
const READS_MAX: u32 = 64;
/// The lines of more than a hundred thousand objects are not kept in memory.
const KEPT_MAX_BYTES: u64 = 10 << 20;
/// From then on a search halves what is left: a forged pack must not be read line by line.
const GUESSES_MAX: u32 = 4;

/// An object in a pack, and where its bytes are.
pub(super) type ObjectRange = (ContentId, Range<u64>);

/// A pack being written. Its objects are in it once.
#[derive(Debug)]
pub(super) struct PackWriter {
    file: BufWriter<File>,
    rows: HashMap<ContentId, Range<u64>>,
    length: u64,
}

impl PackWriter {
    /// Starts a pack in an empty file.
    pub(super) fn new(file: File) -> Self {
        Self { file: BufWriter::with_capacity(64 << 10, file), rows: HashMap::new(), length: 0 }
    }

    /// Whether an object is in it.
    pub(super) fn contains(&self, id: &ContentId) -> bool {
        self.rows.contains_key(id)
    }

    /// How many objects are in it.
    pub(super) fn count(&self) -> usize {
        self.rows.len()
    }

    /// Appends an object that is not in it yet.
    pub(super) fn push(&mut self, id: ContentId, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes)?;
        let end = self.length + bytes.len() as u64;
        self.rows.insert(id, self.length..end);
        self.length = end;
        Ok(())
    }

    /// Appends the lines and syncs the file. Returns the name of the pack.
    pub(super) fn finish(mut self) -> io::Result<String> {
        let lines = lines_of(self.rows.into_iter().collect());
        self.file.write_all(lines.as_bytes())?;
        let file = self.file.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.sync_data()?;
        Ok(name_of(lines.as_bytes()))
    }
}

fn lines_of(mut rows: Vec<ObjectRange>) -> String {
    rows.sort_unstable_by_key(|(id, _)| *id);
    let mut lines = String::with_capacity(rows.len() * LINE_BYTES + LAST_LINE_BYTES);
    for row in &rows {
        put_line(&mut lines, row);
    }
    lines.push_str(&last_line(rows.len() as u64));
    lines
}

fn last_line(count: u64) -> String {
    format!("{LAST_LINE}{count:>13}\n")
}

fn put_line(out: &mut String, (id, range): &ObjectRange) {
    let length = range.end - range.start;
    writeln!(out, "{id} {:>17} {length:>12}", range.start).expect("a string takes every write");
}

fn name_of(lines: &[u8]) -> String {
    ContentId::new(&Sha256::digest(lines)).to_string()
}

/// Whether a file in the directory of packs is one, by its name.
pub(super) fn is_name(name: &str) -> bool {
    name.len() == 64 && ContentId::parse(name).is_some()
}

/// A pack on the disk, opened when it is first looked into. It is hostile data until the bytes of an
/// object match its id.
#[derive(Debug)]
pub(super) struct Pack {
    path: PathBuf,
    index: OnceLock<io::Result<PackIndex>>,
}

impl Pack {
    /// The pack at a path.
    pub(super) fn new(path: PathBuf) -> Self {
        Self { path, index: OnceLock::new() }
    }

    fn index(&self) -> Result<&PackIndex, &io::Error> {
        let open = || match PackIndex::open(&self.path) {
            Err(_) if is_in_the_way(&self.path) => Err(damaged("it is not a regular file")),
            index => index,
        };
        self.index.get_or_init(open).as_ref()
    }

    /// Whether it was looked into in vain: it may be there intact by now.
    pub(super) fn has_failed(&self) -> bool {
        self.index.get().is_some_and(Result::is_err)
    }

    /// Where it is.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Its file name.
    pub(super) fn name(&self) -> &str {
        self.path.file_name().and_then(|name| name.to_str()).unwrap_or_default()
    }

    /// Why none of its objects can be found, if that is so and it is there.
    pub(super) fn fault(&self) -> Option<Error> {
        let err = self.index().err().filter(|err| err.kind() != io::ErrorKind::NotFound);
        err.map(|err| self.error(err))
    }

    /// The size of an object; `None` if it is not in this pack, as far as can be told.
    pub(super) fn size(&self, id: &ContentId) -> Option<u64> {
        let range = self.index().ok()?.find(id).ok()??;
        Some(range.end - range.start)
    }

    /// The bytes of an object; `None` if it is not in this pack, or the pack is gone.
    ///
    /// # Errors
    ///
    /// Fails if they cannot be read, or if they do not match the id.
    pub(super) fn read(&self, id: &ContentId) -> Result<Option<Vec<u8>>, Error> {
        let Ok(index) = self.index() else { return Ok(None) };
        let Some(range) = index.find(id).map_err(|err| self.error(&err))? else { return Ok(None) };
        match self.bytes(&range) {
            Ok(bytes) if ContentId::new(&Sha256::digest(&bytes)) == *id => Ok(Some(bytes)),
            Ok(_) => {
                Err(self.damage(format!("the bytes of {id} in it are not what its name says")))
            }
            Err(err) if err.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(err) => Err(self.error(&err)),
        }
    }

    /// The bytes at a place, whatever they are.
    pub(super) fn bytes(&self, range: &Range<u64>) -> io::Result<Vec<u8>> {
        let length = range.end.saturating_sub(range.start).min(OBJECT_MAX_BYTES);
        let mut bytes = vec![0; usize::try_from(length).unwrap_or_default()];
        if let Ok(PackIndex { lines: IndexLines::In(LinesInFile { file, .. }), .. }) = self.index()
        {
            read_at(file, &mut bytes, range.start)?;
        } else {
            let file = open_options().read(true).open(&self.path)?;
            read_at(&file, &mut bytes, range.start)?;
        }
        Ok(bytes)
    }

    /// Everything that is in it, sorted by id. Nothing if the pack is gone.
    ///
    /// # Errors
    ///
    /// Fails if its lines cannot be read, or if they do not match its name.
    pub(super) fn rows(&self) -> Result<Vec<ObjectRange>, Error> {
        let Ok(index) = self.index() else {
            return self.fault().map_or(Ok(Vec::new()), Err);
        };
        let rows = index.all_lines(&self.path).and_then(|lines| {
            let rows = index.rows(&lines)?;
            if name_of(&lines) == self.name() { Ok(rows) } else { Err(damaged(CHANGED)) }
        });
        match rows {
            Err(err) if err.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            rows => rows.map_err(|err| self.error(&err)),
        }
    }

    fn error(&self, err: &io::Error) -> Error {
        match err.kind() {
            io::ErrorKind::InvalidData => self.damage(err.to_string()),
            kind => Error::io("read", &self.path)(io::Error::new(kind, err.to_string())),
        }
    }

    fn damage(&self, why: String) -> Error {
        Error::damaged(format!("objects/{}/{}", super::PACKS, self.name()), why)
    }
}

const CHANGED: &str = "its lines are not what its name says";

/// Where a pack has which object.
#[derive(Debug)]
struct PackIndex {
    /// How many bytes there are before the lines.
    data: u64,
    count: u64,
    lines: IndexLines,
}

#[derive(Debug)]
enum IndexLines {
    /// All of them, and the last one.
    Known(Vec<u8>),
    /// There are too many: they are read where they are.
    In(LinesInFile),
}

/// Lines that are read when they are asked for: a few at a time, and all of them once many were.
#[derive(Debug)]
struct LinesInFile {
    file: File,
    reads: AtomicU32,
    all: OnceLock<Option<Vec<u8>>>,
}

impl LinesInFile {
    fn new(file: File) -> Self {
        Self { file, reads: AtomicU32::new(0), all: OnceLock::new() }
    }

    /// All `length` bytes of them, which begin at `data`; `None` as long as few were asked for, and if there
    /// are too many.
    fn all(&self, data: u64, length: u64) -> Option<&[u8]> {
        if length > KEPT_MAX_BYTES || self.reads.fetch_add(1, Ordering::Relaxed) < READS_MAX {
            return None;
        }
        let read = || {
            let mut text = vec![0; usize::try_from(length).ok()?];
            read_at(&self.file, &mut text, data).ok().map(|()| text)
        };
        self.all.get_or_init(read).as_deref()
    }
}

impl PackIndex {
    fn open(path: &Path) -> io::Result<Self> {
        let file = open_options().read(true).open(path)?;
        let found = file.metadata()?;
        if !found.is_file() {
            return Err(damaged("it is not a regular file"));
        }
        let size = found.len();
        let mut tail = vec![0; usize::try_from(size.min(TAIL_BYTES)).unwrap_or_default()];
        let at = size - tail.len() as u64;
        read_at(&file, &mut tail, at)?;
        Self::new(size, tail, Some(file))
    }

    /// The index of a pack with `size` bytes, of which `tail` are the last. They are all that is
    /// looked at if there is no file.
    fn new(size: u64, mut tail: Vec<u8>, file: Option<File>) -> io::Result<Self> {
        let cut_off = || damaged("its end is missing");
        let last = tail.len().checked_sub(LAST_LINE_BYTES).ok_or_else(cut_off)?;
        let last = str::from_utf8(&tail[last..]).map_err(|_| cut_off())?;
        let count = last.trim_end().rsplit(' ').next().and_then(|count| count.parse().ok());
        let count: u64 = count.filter(|count| last_line(*count) == last).ok_or_else(cut_off)?;
        let lines = count.checked_mul(LINE_BYTES as u64);
        let lines = lines.and_then(|lines| lines.checked_add(LAST_LINE_BYTES as u64));
        let lines =
            lines.filter(|lines| *lines <= size.min(LINES_MAX_BYTES)).ok_or_else(cut_off)?;
        let data = size - lines;
        let unneeded = (tail.len() as u64).checked_sub(lines);
        let lines = match (unneeded, file) {
            (Some(unneeded), _) => {
                drop(tail.drain(..usize::try_from(unneeded).unwrap_or_default()));
                IndexLines::Known(tail)
            }
            (None, Some(file)) => IndexLines::In(LinesInFile::new(file)),
            (None, None) => return Err(cut_off()),
        };
        Ok(Self { data, count, lines })
    }

    /// Where an object is; `None` if it is not in the pack.
    ///
    /// Ids are hashes, so the first digits of one tell about where it is, counted from the last line
    /// that was read.
    fn find(&self, id: &ContentId) -> io::Result<Option<Range<u64>>> {
        let (mut low, mut high) = (0, self.count);
        let (mut near, mut guesses) = ((0, 0), 0);
        let (wanted, text) = (first_digits(id), id.to_string());
        while low < high {
            guesses += 1;
            let guess = if guesses <= GUESSES_MAX {
                self.guess(wanted, near)
            } else {
                low + (high - low) / 2
            };
            let first = guess.saturating_sub(LINES_AT_ONCE / 2);
            let first = first.min(high.saturating_sub(LINES_AT_ONCE)).max(low);
            let last = high.min(first + LINES_AT_ONCE);
            let lines = self.read(first..last)?;
            let lines: Vec<&[u8]> = lines.chunks_exact(LINE_BYTES).collect();
            let at = lines.partition_point(|line| line[..ID_DIGITS] < *text.as_bytes());
            match lines.get(at) {
                Some(line) if line[..ID_DIGITS] == *text.as_bytes() => {
                    return self.parse(line).map(|(_, range)| Some(range));
                }
                Some(line) if at == 0 => {
                    (high, near) = (first, (first, first_digits(&self.parse(line)?.0)));
                }
                Some(_) => return Ok(None),
                None => {
                    let line = lines.last().copied().unwrap_or_default();
                    (low, near) = (last, (last - 1, first_digits(&self.parse(line)?.0)));
                }
            }
        }
        Ok(None)
    }

    /// The number of the line that an id with these first digits would have, if the ids between it
    /// and a known line are spread evenly.
    fn guess(&self, wanted: u64, (line, digits): (u64, u64)) -> u64 {
        let step = |distance: u64| {
            let step = (u128::from(distance) * u128::from(self.count)) >> 64;
            u64::try_from(step).unwrap_or(u64::MAX)
        };
        match wanted.checked_sub(digits) {
            Some(ahead) => line.saturating_add(step(ahead)),
            None => line.saturating_sub(step(digits - wanted)),
        }
    }

    /// The text of some lines.
    fn read(&self, lines: Range<u64>) -> io::Result<Cow<'_, [u8]>> {
        let (from, to) = (lines.start * LINE_BYTES as u64, lines.end * LINE_BYTES as u64);
        let length = usize::try_from(to - from).map_err(|_| damaged("it is too long"))?;
        let known = match &self.lines {
            IndexLines::Known(text) => Some(&text[..]),
            IndexLines::In(lines) => lines.all(self.data, self.count * LINE_BYTES as u64),
        };
        match (known, &self.lines) {
            (None, IndexLines::In(lines)) => {
                let mut text = vec![0; length];
                read_at(&lines.file, &mut text, self.data + from)?;
                Ok(Cow::Owned(text))
            }
            (known, _) => {
                let from = usize::try_from(from).unwrap_or(usize::MAX);
                let found = known.and_then(|text| text.get(from..)?.get(..length));
                found.map(Cow::Borrowed).ok_or_else(|| damaged("its end is missing"))
            }
        }
    }

    /// All lines, and the last one.
    fn all_lines(&self, path: &Path) -> io::Result<Vec<u8>> {
        match &self.lines {
            IndexLines::Known(text) => {
                // A reader that has not looked for long may know a pack that is gone.
                fs::symlink_metadata(path)?;
                Ok(text.clone())
            }
            IndexLines::In(_) => {
                let lines = self.read(0..self.count)?;
                Ok([&lines, last_line(self.count).as_bytes()].concat())
            }
        }
    }

    fn rows(&self, lines: &[u8]) -> io::Result<Vec<ObjectRange>> {
        let end = lines.len().saturating_sub(LAST_LINE_BYTES);
        let rows = lines[..end].chunks_exact(LINE_BYTES).map(|line| self.parse(line));
        let rows = rows.collect::<io::Result<Vec<_>>>()?;
        if rows.is_sorted_by(|(a, _), (b, _)| a < b) {
            Ok(rows)
        } else {
            Err(damaged("its lines are not in order"))
        }
    }

    /// Reads a line. There is one spelling of each.
    fn parse(&self, line: &[u8]) -> io::Result<ObjectRange> {
        let parsed = || {
            let text = str::from_utf8(line).ok()?;
            let mut words = text.split_ascii_whitespace();
            let id = ContentId::parse(words.next()?)?;
            let start: u64 = words.next()?.parse().ok()?;
            let length: u64 = words.next()?.parse().ok()?;
            let end = start.checked_add(length).filter(|end| *end <= self.data)?;
            let row = (id, start..end);
            let mut again = String::with_capacity(LINE_BYTES);
            put_line(&mut again, &row);
            (again == text && length <= OBJECT_MAX_BYTES).then_some(row)
        };
        parsed().ok_or_else(|| damaged("a line of it cannot be read"))
    }
}

fn first_digits(id: &ContentId) -> u64 {
    let mut digits = [0; 8];
    digits.copy_from_slice(id.hash(8));
    u64::from_be_bytes(digits)
}

fn read_at(file: &File, bytes: &mut [u8], at: u64) -> io::Result<()> {
    match file.read_exact_at(bytes, at) {
        Err(err) if err.kind() == io::ErrorKind::UnexpectedEof => Err(damaged("it is too short")),
        read => read,
    }
}

fn damaged(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}

/// Reads everything that can be read of the index of a pack, for `fuzz/`.
pub(crate) fn read_any(pack: &[u8]) {
    let Ok(index) = PackIndex::new(pack.len() as u64, pack.to_vec(), None) else { return };
    let IndexLines::Known(lines) = &index.lines else { return };
    let rows = index.rows(lines).unwrap_or_default();
    for (id, range) in &rows {
        assert_eq!(index.find(id).ok().flatten().as_ref(), Some(range), "it is there");
    }
    if rows.len() as u64 == index.count {
        assert_eq!(lines_of(rows).as_bytes(), lines, "there is one spelling");
    }
    for wanted in [[0; 32], [0x7f; 32], [0xff; 32]] {
        let _absent = index.find(&ContentId::new(&wanted));
    }
}

#[cfg(test)]
mod tests;
