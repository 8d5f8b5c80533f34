//! File contents as calls left them: the bases of merges, and what was there between the calls of a turn.
//!
//! Each checkpoint has one file for the calls that it covers, which goes with the checkpoint. Contents are
//! only appended to it, until it is full. A content is stored as a line with the SHA-256 of its bytes in
//! hex, a space and the length of its zlib stream, followed by the stream. One that a killed process left
//! unfinished, or that was damaged, is not found; the others are.

use std::{
    collections::HashMap,
    io::{Read, Write},
    ops::Range,
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
    time::SystemTime,
};

use flate2::{Compression, read::ZlibDecoder, write::ZlibEncoder};
use memchr::memmem;

use super::{append_to, digest};
use crate::{
    error::{Error, Result},
    fs::{names_in, open_options, read_small, remove_if_there},
    model::CheckpointId,
    state::RootState,
};

/// Larger files are no text that a merge would make sense of.
pub(super) const TEXT_MAX_BYTES: u64 = 256 << 10;
/// Larger files are not held between the calls of a turn.
pub(super) const BYTES_MAX: u64 = 1 << 20;
/// Of one checkpoint: some 2,000 texts of ordinary size. What its calls leave after that is not held.
const FILE_MAX_BYTES: u64 = 8 << 20;
/// What one call may append to a file that has almost reached its limit.
const APPENDED_MAX_BYTES: u64 = 4 << 20;
/// Of one root. Maintenance drops the oldest files.
const ALL_MAX_BYTES: u64 = 32 << 20;

/// The contents that a call left.
pub(super) struct CallTexts {
    path: PathBuf,
    /// What the file has, if it was read.
    stored: Option<Vec<u8>>,
    new: Vec<u8>,
}

impl CallTexts {
    /// For a call that a checkpoint covers.
    pub(super) fn new(place: &RootState, of: CheckpointId) -> Self {
        Self { path: place.contents_of(of), stored: None, new: Vec::new() }
    }

    /// Adds a content, unless it is too large or stored already. Returns its SHA-256 in hex.
    pub(super) fn add(&mut self, bytes: &[u8]) -> String {
        let sha = digest(bytes);
        if bytes.len() as u64 > BYTES_MAX {
            return sha;
        }
        let path = &self.path;
        let stored = self.stored.get_or_insert_with(|| read(path));
        let is_full = (stored.len() + self.new.len()) as u64 > FILE_MAX_BYTES;
        if !is_full && !self.has(&sha) {
            // What is large takes too long to be compressed while an agent waits.
            let is_small = bytes.len() as u64 <= TEXT_MAX_BYTES;
            let level = if is_small { Compression::fast() } else { Compression::none() };
            let mut encoder = ZlibEncoder::new(Vec::new(), level);
            let stream = encoder.write_all(bytes).and_then(|()| encoder.finish());
            let stream = stream.expect("a vector takes every write");
            // The line begins anew whatever a killed process left before it.
            self.new.extend(format!("\n{sha} {}\n", stream.len()).bytes());
            self.new.extend(stream);
        }
        sha
    }

    /// Whether a content is stored, or will be.
    pub(super) fn has(&self, sha: &str) -> bool {
        let stored = self.stored.as_deref().unwrap_or_default();
        [stored, &self.new].iter().any(|texts| unpack(texts, sha).is_some())
    }

    /// Writes what was added.
    ///
    /// # Errors
    ///
    /// Fails if it cannot be written; what was stored before stays.
    pub(super) fn store(self) -> Result<()> {
        if self.new.is_empty() {
            return Ok(());
        }
        append_to(&self.path, &self.new)
    }
}

/// Keeps what a restore merged: otherwise nothing has it once it is changed. `held` is the before-restore
/// checkpoint.
///
/// # Errors
///
/// Fails if it cannot be written; what was stored before stays.
pub fn keep_merged<'b>(
    place: &RootState,
    held: CheckpointId,
    contents: impl Iterator<Item = &'b [u8]>,
) -> Result<()> {
    let mut texts = CallTexts::new(place, held);
    for bytes in contents {
        texts.add(bytes);
    }
    texts.store()
}

/// Everything that calls of a root left and that is still stored.
#[derive(Default)]
pub struct LeftContents {
    files: Vec<Vec<u8>>,
    /// Where the streams are by SHA-256 in hex: the number of the file, and the place in it.
    streams: HashMap<String, Vec<(usize, Range<usize>)>>,
}

impl LeftContents {
    /// Reads what is stored, without looking into it.
    pub fn of(place: &RootState) -> Self {
        let mut all = Self::default();
        for path in files(place) {
            let bytes = read(&path);
            for (sha, range) in streams(&bytes) {
                let known = all.streams.entry(sha.to_owned()).or_default();
                known.push((all.files.len(), range));
            }
            all.files.push(bytes);
        }
        all
    }

    /// The bytes with a SHA-256 in hex, if they are stored.
    pub fn get(&self, sha: &str) -> Option<Vec<u8>> {
        let places = self.streams.get(sha)?;
        places.iter().rev().find_map(|(file, range)| decode(&self.files[*file][range.clone()], sha))
    }
}

/// The bytes with a SHA-256, if they are stored. To ask for many, read [`LeftContents`] once.
pub fn text(place: &RootState, sha: &str) -> Option<Vec<u8>> {
    files(place).iter().find_map(|path| unpack(&read(path), sha))
}

/// Drops the contents of checkpoints that are gone, and the oldest ones over the limit of a root.
///
/// # Errors
///
/// Fails if a file cannot be removed.
pub fn drop_contents(place: &RootState, checkpoints: &[CheckpointId]) -> Result<()> {
    let mut kept: Vec<(SystemTime, u64, PathBuf)> = Vec::new();
    for path in files(place) {
        let id = path.file_name().and_then(|name| CheckpointId::parse(name.to_str()?));
        match (id, path.symlink_metadata()) {
            (_, Err(_)) => (),
            // Something else is in the place of a file; `beforehand check` reports it.
            (_, Ok(found)) if !found.is_file() => (),
            (Some(id), Ok(found)) if checkpoints.contains(&id) => {
                kept.push((found.modified().unwrap_or(SystemTime::UNIX_EPOCH), found.len(), path));
            }
            (_, Ok(_)) => drop(remove_if_there(&path)?),
        }
    }
    kept.sort();
    let mut total: u64 = kept.iter().map(|(_, size, _)| size).sum();
    for (_, size, path) in kept {
        if total <= ALL_MAX_BYTES {
            break;
        }
        remove_if_there(&path)?;
        total -= size;
    }
    Ok(())
}

/// The files with contents that are not what they should be, and how many of them.
pub fn damaged_contents(place: &RootState) -> Vec<(PathBuf, usize)> {
    let count = |path: PathBuf| {
        let damaged = damaged_in(&read(&path)).len();
        (damaged > 0).then_some((path, damaged))
    };
    files(place).into_iter().filter_map(count).collect()
}

/// Makes damaged contents impossible to find, by overwriting the first digit of their SHA-256. Everything stays in
/// place, because calls append meanwhile. Returns the number of damaged contents.
///
/// # Errors
///
/// Fails if a file cannot be written.
pub fn repair_contents(place: &RootState) -> Result<usize> {
    let mut count = 0;
    for (path, _) in damaged_contents(place) {
        let damaged = damaged_in(&read(&path));
        let file = open_options().write(true).open(&path).map_err(Error::io("open", &path))?;
        for line in damaged {
            file.write_all_at(b"-", line as u64).map_err(Error::io("write", &path))?;
            count += 1;
        }
    }
    Ok(count)
}

/// Where in some bytes the lines of contents begin that are not what they should be.
fn damaged_in(bytes: &[u8]) -> Vec<usize> {
    let feeds: Vec<usize> = memchr::memchr_iter(b'\n', bytes).collect();
    let all: Vec<_> =
        feeds.iter().filter_map(|at| Some((at + 1, stream_at(bytes, *at)?))).collect();
    let is_damaged = |(at, (_, (sha, range))): &(usize, &(usize, (&str, Range<usize>)))| {
        // One that another begins in was cut short.
        let is_whole = all.get(at + 1).is_none_or(|(next, _)| *next > range.end);
        is_whole && range.end <= bytes.len() && decode(&bytes[range.clone()], sha).is_none()
    };
    all.iter().enumerate().filter(is_damaged).map(|(_, (line, _))| *line).collect()
}

/// The files of a root, in no order.
pub fn files(place: &RootState) -> Vec<PathBuf> {
    let dir = place.contents();
    names_in(&dir).into_iter().map(|name| dir.join(name)).collect()
}

fn read(path: &Path) -> Vec<u8> {
    read_small(path, FILE_MAX_BYTES + APPENDED_MAX_BYTES).ok().flatten().unwrap_or_default()
}

/// The content that was stored last with a SHA-256: of an earlier one, a killed process may have left
/// only the beginning.
fn unpack(texts: &[u8], sha: &str) -> Option<Vec<u8>> {
    let line = format!("\n{sha} ");
    let start = memmem::rfind(texts, line.as_bytes())?;
    let (_, range) = stream_at(texts, start)?;
    decode(texts.get(range)?, sha)
}

/// What the streams in some bytes say of themselves, and where they are. The last one may end too early.
fn streams(bytes: &[u8]) -> impl Iterator<Item = (&str, Range<usize>)> {
    memchr::memchr_iter(b'\n', bytes).filter_map(|at| stream_at(bytes, at))
}

/// A stream with a line that begins after a line feed.
fn stream_at(bytes: &[u8], feed: usize) -> Option<(&str, Range<usize>)> {
    const SHA_DIGITS: usize = 64;
    /// More digits than a length has.
    const LENGTH_DIGITS: usize = 10;
    let start = feed + 1;
    let sha = bytes.get(start..start + SHA_DIGITS)?;
    let is_sha =
        sha.iter().all(u8::is_ascii_hexdigit) && bytes.get(start + SHA_DIGITS) == Some(&b' ');
    let rest = bytes.get(start + SHA_DIGITS + 1..).filter(|_| is_sha)?;
    let digits = memchr::memchr(b'\n', &rest[..rest.len().min(LENGTH_DIGITS)])?;
    let length: usize = str::from_utf8(&rest[..digits]).ok()?.parse().ok()?;
    let begin = start + SHA_DIGITS + 1 + digits + 1;
    Some((str::from_utf8(sha).ok()?, begin..begin + length))
}

fn decode(stream: &[u8], sha: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    ZlibDecoder::new(stream).take(BYTES_MAX).read_to_end(&mut bytes).ok()?;
    Some(bytes).filter(|bytes| digest(bytes) == sha)
}

#[cfg(test)]
mod tests {
    use std::{fs, path::PathBuf};

    use super::*;
    use crate::state::StateDir;

    fn id(bits: u64) -> CheckpointId {
        CheckpointId::from_bits(0xa000_0000_0000_0000 | bits)
    }

    /// A root's state in a directory of its own, which is removed afterwards.
    struct Scratch(PathBuf, RootState);

    impl Scratch {
        fn new(name: &str) -> Self {
            let name = format!("beforehand-texts-{name}-{}", std::process::id());
            let dir = std::env::temp_dir().join(name);
            let place = StateDir::new(dir.clone()).root_at(&dir);
            Self(dir, place)
        }

        fn add(&self, added: &[&[u8]]) -> Vec<String> {
            let mut texts = CallTexts::new(&self.1, id(1));
            let shas = added.iter().map(|text| texts.add(text)).collect();
            texts.store().unwrap();
            shas
        }

        fn size(&self) -> u64 {
            fs::metadata(self.1.contents_of(id(1))).map_or(0, |it| it.len())
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _gone = crate::fs::remove_tree(&self.0);
        }
    }

    /// Bytes that do not get smaller.
    fn noise(seed: u64, count: u64) -> Vec<u8> {
        let mut state = seed | 1;
        let next = |_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state.to_le_bytes()[0]
        };
        (0..count).map(next).collect()
    }

    #[test]
    fn a_text_is_stored_once_and_comes_back() {
        let scratch = Scratch::new("once");
        let long = [b'x'].repeat(100_000);
        let texts: [&[u8]; 3] = [b"", b"one\ntwo\n", &long];
        let shas = scratch.add(&texts);
        let size = scratch.size();
        assert!(size < 5_000, "compressed: {size}");
        assert_eq!(scratch.add(&[texts[1], texts[2], texts[1]])[..2], shas[1..]);
        assert_eq!(scratch.size(), size);
        for (sha, expected) in shas.iter().zip(texts) {
            assert_eq!(text(&scratch.1, sha).as_deref(), Some(expected));
        }
        let large = scratch.add(&[&noise(1, BYTES_MAX + 1)]);
        assert_eq!((text(&scratch.1, &large[0]), scratch.size()), (None, size));
        assert_eq!(text(&scratch.1, &digest(b"another")), None);
    }

    #[test]
    fn a_text_cut_short_hides_no_other() {
        let scratch = Scratch::new("short");
        let first = scratch.add(&[b"the first"]);
        let path = scratch.1.contents_of(id(1));
        let whole = scratch.add(&[&noise(1, 5_000)]);
        let bytes = fs::read(&path).unwrap();
        for cut in [1, 30, 70, 4_000] {
            crate::fs::replace(&path, &bytes[..bytes.len() - cut]).unwrap();
            assert_eq!(text(&scratch.1, &whole[0]), None, "{cut}");
            let later = scratch.add(&[&noise(3, 5_000)]);
            assert_eq!(text(&scratch.1, &whole[0]), None, "{cut}: what follows is no part of it");
            scratch.add(&[&noise(1, 5_000)]);
            for sha in [&first[0], &whole[0], &later[0]] {
                assert!(text(&scratch.1, sha).is_some(), "{cut}");
            }
        }
    }

    #[test]
    fn a_file_that_is_full_takes_no_more_and_the_oldest_go() {
        let scratch = Scratch::new("oldest");
        let shas: Vec<_> =
            (0..40).flat_map(|seed| scratch.add(&[&noise(seed * 2, TEXT_MAX_BYTES)])).collect();
        let stored: Vec<_> = shas.iter().map(|sha| text(&scratch.1, sha).is_some()).collect();
        let count = stored.iter().filter(|&&it| it).count();
        assert!((30..=34).contains(&count), "{count}");
        assert!(stored[..count].iter().all(|&it| it), "{stored:?}");
        assert!(scratch.size() <= FILE_MAX_BYTES + 2 * TEXT_MAX_BYTES);
        let ids: Vec<CheckpointId> = (1..=6).map(id).collect();
        for id in &ids[1..] {
            fs::copy(scratch.1.contents_of(ids[0]), scratch.1.contents_of(*id)).unwrap();
        }
        drop_contents(&scratch.1, &ids).unwrap();
        let left = files(&scratch.1).len();
        assert!((3..=4).contains(&left), "{left}");
        drop_contents(&scratch.1, &[]).unwrap();
        assert_eq!(files(&scratch.1), Vec::<PathBuf>::new());
    }

    #[test]
    fn damage_is_found_and_hides_no_other() {
        let scratch = Scratch::new("damage");
        let shas = scratch.add(&[b"the first", &noise(1, 5_000), b"the last"]);
        let path = scratch.1.contents_of(id(1));
        let mut bytes = fs::read(&path).unwrap();
        assert_eq!(damaged_contents(&scratch.1), []);
        bytes[2_000] ^= 1;
        crate::fs::replace(&path, &bytes).unwrap();
        assert_eq!(damaged_contents(&scratch.1), [(path.clone(), 1)]);
        let all = LeftContents::of(&scratch.1);
        let found: Vec<bool> = shas.iter().map(|sha| all.get(sha).is_some()).collect();
        assert_eq!(found, [true, false, true]);
        assert_eq!(repair_contents(&scratch.1).unwrap(), 1);
        assert_eq!(damaged_contents(&scratch.1), []);
        let all = LeftContents::of(&scratch.1);
        let found: Vec<bool> = shas.iter().map(|sha| all.get(sha).is_some()).collect();
        assert_eq!(found, [true, false, true]);
        crate::fs::replace(&path, &bytes[..1_000]).unwrap();
        assert_eq!(damaged_contents(&scratch.1), [], "cut short by a kill");
    }
}
