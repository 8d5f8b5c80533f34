//! Reads git's index one entry after the other, so that an index of any size takes no memory.
//!
//! The format is described in git's `Documentation/gitformat-index.txt`. Of the extensions, only the cached trees are of
//! use here. A split index needs a merge of two files, so gix decodes it, in memory.

use std::{
    fs::File,
    io::{self, BufRead as _, BufReader, Read, Seek as _, SeekFrom, Take},
    panic::catch_unwind,
    path::{Path, PathBuf},
};

use gix::{
    ObjectId,
    hash::{Hasher, Kind as HashKind},
    index::{
        State,
        decode::Options,
        entry::{Flags, Mode},
    },
};

use crate::{fs::stat_path, model::Kind};

/// Enough for five million files. A larger index is more likely an attack than a project.
pub const INDEX_MAX_BYTES: u64 = 1 << 30;
/// Real directories are not nested deeper; a hostile index must not exhaust the stack.
pub const DEPTH_MAX: usize = 500;
/// No system has longer paths.
const PATH_MAX_BYTES: usize = 1 << 16;
/// How much is read at once.
const BUFFER_BYTES: usize = 64 << 10;

/// An entry, until the next one is read.
#[derive(Debug, PartialEq, Eq)]
pub struct DecodedEntry<'a> {
    /// Its path below the root. That of a directory in a sparse index ends in a slash.
    pub path: &'a [u8],
    /// What kind of file it is, and whether it is executable.
    pub mode: Mode,
    /// Its object.
    pub id: ObjectId,
    /// Its stage and flags.
    pub flags: Flags,
}

impl DecodedEntry<'_> {
    /// 0, or 1 to 3 if it is unmerged.
    pub fn stage(&self) -> u8 {
        u8::try_from(self.flags.stage_raw()).expect("two bits")
    }

    /// Whether a tree has this entry as it is.
    pub fn is_in_trees(&self) -> bool {
        self.stage() == 0 && !self.flags.contains(Flags::INTENT_TO_ADD)
    }
}

/// The tree of a directory as git wrote it last, with those of the directories in it.
#[derive(Debug, PartialEq, Eq)]
pub struct CachedTree {
    /// The name of the directory; empty for the root.
    pub name: Vec<u8>,
    /// The tree, and the number of entries below the directory. `None` if something was staged there since.
    pub current: Option<(ObjectId, usize)>,
    /// Those of the directories in it, by name.
    children: Vec<CachedTree>,
}

/// An index that was decoded once, so that it can be decoded again.
#[derive(Debug)]
pub struct GitIndex {
    source: IndexSource,
    /// The cached trees, if trees can have every entry as it is.
    pub cached: Option<CachedTree>,
}

#[derive(Debug)]
enum IndexSource {
    File { file: File, hash: HashKind },
    Split(Box<State>),
}

impl GitIndex {
    /// Reads the index at `path`: its checksum must match, and its entries must be in order.
    ///
    /// # Errors
    ///
    /// Why it cannot be read, as a message fragment. No content can do worse.
    pub fn read(path: &Path, hash: HashKind) -> Result<Self, String> {
        let index = Self::open(path, hash, true)?;
        let IndexSource::File { file, .. } = &index.source else { return Ok(index) };
        let hasher = gix::hash::hasher(hash);
        let (mut entries, checksum) = FileEntries::open(file, hash, Some(hasher))?;
        let (mut is_plain, mut last) = (true, (Vec::new(), 0));
        while let Some(entry) = entries.read_next()? {
            is_plain &= entry.is_in_trees();
            let stage = entry.stage();
            if (&last.0[..], last.1) >= (entry.path, stage) && !last.0.is_empty() {
                return Err("its entries are not in order".to_owned());
            }
            last.0.clear();
            last.0.extend_from_slice(entry.path);
            last.1 = stage;
        }
        let cached = entries.read_extensions()?.filter(|_| is_plain);
        entries.verify(checksum)?;
        Ok(Self { cached, ..index })
    }

    /// Opens the index at `path` and verifies nothing.
    ///
    /// # Errors
    ///
    /// As [`GitIndex::read`].
    pub fn open_unverified(path: &Path, hash: HashKind) -> Result<Self, String> {
        Self::open(path, hash, false)
    }

    fn open(path: &Path, hash: HashKind, verifies: bool) -> Result<Self, String> {
        check_file(path)?;
        let source = if shared_indexes(path).next().is_some() {
            IndexSource::Split(Box::new(decode_whole(path, hash, verifies)?.into_parts().0))
        } else {
            IndexSource::File { file: File::open(path).map_err(|err| err.to_string())?, hash }
        };
        Ok(Self { source, cached: None })
    }

    /// The entries, from the first one on.
    ///
    /// # Errors
    ///
    /// As [`GitIndex::read`].
    pub fn entries(&self) -> Result<IndexEntries<'_>, String> {
        match &self.source {
            IndexSource::File { file, hash } => {
                Ok(IndexEntries::File(FileEntries::open(file, *hash, None)?.0))
            }
            IndexSource::Split(state) => Ok(IndexEntries::Split { state, next: 0 }),
        }
    }
}

/// Fails if the file at `path` cannot be an index.
fn check_file(path: &Path) -> Result<(), String> {
    let found = stat_path(path).map_err(|err| err.to_string())?;
    if found.kind() != Some(Kind::File) {
        return Err(format!("`{}` is not a regular file", path.display()));
    }
    if found.size > INDEX_MAX_BYTES {
        return Err(format!("`{}` is larger than an index can be", path.display()));
    }
    Ok(())
}

/// The files beside the index at `path` of which it may be a part, if it is split.
fn shared_indexes(path: &Path) -> impl Iterator<Item = PathBuf> {
    let beside = path.parent().and_then(|dir| std::fs::read_dir(dir).ok());
    let is_shared = |entry: &std::fs::DirEntry| {
        entry.file_name().as_encoded_bytes().starts_with(b"sharedindex.")
    };
    beside.into_iter().flatten().flatten().filter(is_shared).map(|entry| entry.path())
}

/// Decodes the index at `path` in memory, with everything that git keeps in it.
///
/// # Errors
///
/// As [`GitIndex::read`].
pub fn decode_whole(
    path: &Path,
    hash: HashKind,
    verifies: bool,
) -> Result<gix::index::File, String> {
    check_file(path)?;
    shared_indexes(path).try_for_each(|path| check_file(&path))?;
    // The decoder is third-party code and the file is untrusted, so a panic is caught.
    catch_unwind(|| gix::index::File::at(path, hash, !verifies, decode_options()))
        .map_err(|_| "it makes the reader fail".to_owned())?
        .map_err(|err| err.to_string())
}

/// How gix decodes an index: in one thread, and with bounded memory.
pub fn decode_options() -> Options {
    Options {
        thread_limit: Some(1),
        alloc_limit_bytes: usize::try_from(INDEX_MAX_BYTES * 4).ok(),
        ..Options::default()
    }
}

/// The entries of an index, in its order.
pub enum IndexEntries<'a> {
    /// As they are decoded.
    File(FileEntries<'a>),
    /// Decoded ones.
    Split {
        /// All of them.
        state: &'a State,
        /// The number of the next one.
        next: usize,
    },
}

impl IndexEntries<'_> {
    /// The next entry, if there is one.
    ///
    /// # Errors
    ///
    /// As [`GitIndex::read`].
    pub fn read_next(&mut self) -> Result<Option<DecodedEntry<'_>>, String> {
        match self {
            Self::File(entries) => entries.read_next(),
            Self::Split { state, next } => {
                let entry = state.entries().get(*next);
                *next += 1;
                Ok(entry.map(|entry| DecodedEntry {
                    path: entry.path(state),
                    mode: entry.mode,
                    id: entry.id,
                    flags: entry.flags,
                }))
            }
        }
    }
}

/// The entries of an index file, decoded one by one.
pub struct FileEntries<'a> {
    /// The file up to its checksum.
    input: BufReader<Take<Hashed<'a>>>,
    hash: HashKind,
    version: u32,
    /// How many entries are still to come.
    left: u32,
    /// The path of the last entry.
    path: Vec<u8>,
}

/// The size of an entry's times, device, inode, mode, owner and length.
const STAT_BYTES: usize = 40;
/// Where in them its mode is.
const MODE_AT: usize = 24;
/// In versions 2 and 3 an entry with its path ends before a multiple of this, and is filled up with 1 to 8 zeros.
const ALIGNMENT: usize = 8;

impl<'a> FileEntries<'a> {
    /// Reads the header, and the checksum at the end.
    fn open(
        file: &'a File,
        hash: HashKind,
        hasher: Option<Hasher>,
    ) -> Result<(Self, ObjectId), String> {
        let mut checksum = vec![0; hash.len_in_bytes()];
        let mut at = file;
        let mut read_end = || {
            let end = at.seek(SeekFrom::End(-i64::try_from(checksum.len()).unwrap_or(0)))?;
            at.read_exact(&mut checksum)?;
            at.rewind()?;
            Ok(end)
        };
        let end = read_end().map_err(in_words)?;
        let input = Hashed { file, hasher }.take(end);
        let input = BufReader::with_capacity(BUFFER_BYTES, input);
        let mut entries = Self { input, hash, version: 0, left: 0, path: Vec::new() };
        let signature = entries.bytes::<4>()?;
        entries.version = u32::from_be_bytes(entries.bytes()?);
        if signature != *b"DIRC" || !(2..=4).contains(&entries.version) {
            return Err("it is not an index of version 2, 3 or 4".to_owned());
        }
        entries.left = u32::from_be_bytes(entries.bytes()?);
        Ok((entries, id_of(&checksum)?))
    }

    fn read_next(&mut self) -> Result<Option<DecodedEntry<'_>>, String> {
        let Some(left) = self.left.checked_sub(1) else { return Ok(None) };
        self.left = left;
        let stat = self.bytes::<STAT_BYTES>()?;
        let id = self.id()?;
        let mut flags = u32::from(u16::from_be_bytes(self.bytes()?));
        let mut len = STAT_BYTES + self.hash.len_in_bytes() + 2;
        if flags & Flags::EXTENDED.bits() != 0 {
            let more = u32::from(u16::from_be_bytes(self.bytes()?)) << 16;
            if more & !(Flags::INTENT_TO_ADD | Flags::SKIP_WORKTREE).bits() != 0 {
                return Err("an entry has unknown flags".to_owned());
            }
            flags |= more;
            len += 2;
        }
        if self.version == 4 {
            self.read_shortened_path()?;
        } else {
            self.read_padded_path(flags, len)?;
        }
        let mode = stat[MODE_AT..][..4].try_into().expect("four bytes");
        Ok(Some(DecodedEntry {
            path: &self.path,
            mode: Mode::from_bits_truncate(u32::from_be_bytes(mode)),
            id,
            flags: Flags::from_bits_retain(flags & !Flags::PATH_LEN.bits()),
        }))
    }

    /// Reads a path that says what it has in common with the one before: how many bytes at its end are not.
    fn read_shortened_path(&mut self) -> Result<(), String> {
        let mut byte = self.bytes::<1>()?[0];
        let mut dropped = usize::from(byte & 0x7f);
        while byte & 0x80 != 0 {
            byte = self.bytes::<1>()?[0];
            // Each further byte stands for one value more, so that there is one way to write a number.
            dropped = dropped.checked_add(1).and_then(|it| it.checked_mul(0x80)).ok_or(CUT_OFF)?;
            dropped += usize::from(byte & 0x7f);
        }
        let kept = self.path.len().checked_sub(dropped).ok_or("a path is shorter than nothing")?;
        self.path.truncate(kept);
        self.read_to_zero()
    }

    /// Reads a path that is in the file as a whole, and the zeros behind it. `before` bytes of the entry come first.
    fn read_padded_path(&mut self, flags: u32, before: usize) -> Result<(), String> {
        self.path.clear();
        let said = flags & Flags::PATH_LEN.bits();
        let mut read = before;
        if said == Flags::PATH_LEN.bits() {
            // Such a length stands for any longer one.
            self.read_to_zero()?;
            read += 1;
        } else {
            self.path.resize(said as usize, 0);
            self.input.read_exact(&mut self.path).map_err(in_words)?;
        }
        read += self.path.len();
        let padded = (before + self.path.len() + ALIGNMENT) / ALIGNMENT * ALIGNMENT;
        let mut zeros = [0; ALIGNMENT];
        self.input.read_exact(&mut zeros[..padded - read]).map_err(in_words)
    }

    fn read_to_zero(&mut self) -> Result<(), String> {
        let mut limited = self.input.by_ref().take(PATH_MAX_BYTES as u64);
        limited.read_until(0, &mut self.path).map_err(in_words)?;
        if self.path.pop() != Some(0) || self.path.len() > PATH_MAX_BYTES {
            return Err("a path does not end".to_owned());
        }
        Ok(())
    }

    /// Reads what comes behind the entries.
    fn read_extensions(&mut self) -> Result<Option<CachedTree>, String> {
        let mut cached = None;
        while !self.input.fill_buf().map_err(in_words)?.is_empty() {
            let signature = self.bytes::<4>()?;
            let size = u64::from(u32::from_be_bytes(self.bytes()?));
            let mut content = self.input.by_ref().take(size);
            if signature == *b"TREE" {
                let mut bytes = Vec::new();
                content.read_to_end(&mut bytes).map_err(in_words)?;
                cached = CachedTree::decode(&bytes, self.hash);
            } else if signature[0].is_ascii_lowercase() && signature != *b"sdir" {
                // Its first letter says that it must not be ignored.
                return Err(format!("it needs `{}`", signature.escape_ascii()));
            } else {
                io::copy(&mut content, &mut io::sink()).map_err(in_words)?;
            }
            if content.limit() > 0 {
                return Err(CUT_OFF.to_owned());
            }
        }
        Ok(cached)
    }

    /// Compares the checksum with all that was read. Git may be told to write none, which then is zeros.
    fn verify(self, checksum: ObjectId) -> Result<(), String> {
        let hasher = self.input.into_inner().into_inner().hasher;
        let is_right = hasher.is_none_or(|hasher| hasher.try_finalize().ok() == Some(checksum));
        if is_right || checksum.is_null() {
            Ok(())
        } else {
            Err("its checksum is wrong".to_owned())
        }
    }

    fn bytes<const N: usize>(&mut self) -> Result<[u8; N], String> {
        let mut bytes = [0; N];
        self.input.read_exact(&mut bytes).map_err(in_words)?;
        Ok(bytes)
    }

    fn id(&mut self) -> Result<ObjectId, String> {
        let mut bytes = [0; 32];
        let bytes = &mut bytes[..self.hash.len_in_bytes()];
        self.input.read_exact(bytes).map_err(in_words)?;
        id_of(bytes)
    }
}

const CUT_OFF: &str = "it is cut off";

#[expect(clippy::needless_pass_by_value, reason = "for `map_err`")]
fn in_words(err: io::Error) -> String {
    if err.kind() == io::ErrorKind::UnexpectedEof { CUT_OFF.to_owned() } else { err.to_string() }
}

fn id_of(bytes: &[u8]) -> Result<ObjectId, String> {
    ObjectId::try_from(bytes).map_err(|err| err.to_string())
}

/// A file that is hashed while it is read.
struct Hashed<'a> {
    file: &'a File,
    hasher: Option<Hasher>,
}

impl Read for Hashed<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read(buffer)?;
        if let Some(hasher) = &mut self.hasher {
            hasher.update(&buffer[..count]);
        }
        Ok(count)
    }
}

impl CachedTree {
    /// That of the directory `name` in it.
    pub fn child(&self, name: &[u8]) -> Option<&Self> {
        let at = self.children.binary_search_by(|child| child.name[..].cmp(name)).ok()?;
        self.children.get(at)
    }

    /// Decodes git's extension `TREE`. It only saves work, so a damaged one is none.
    fn decode(bytes: &[u8], hash: HashKind) -> Option<Self> {
        let mut rest = bytes;
        let tree = Self::decode_one(&mut rest, hash, 0)?;
        rest.is_empty().then_some(tree)
    }

    fn decode_one(rest: &mut &[u8], hash: HashKind, depth: usize) -> Option<Self> {
        let name = cut_at(rest, 0)?.to_vec();
        let count: i64 = str::from_utf8(cut_at(rest, b' ')?).ok()?.parse().ok()?;
        let below: usize = str::from_utf8(cut_at(rest, b'\n')?).ok()?.parse().ok()?;
        let current = match usize::try_from(count) {
            Ok(count) => {
                let (id, after) = rest.split_at_checked(hash.len_in_bytes())?;
                *rest = after;
                Some((ObjectId::try_from(id).ok()?, count))
            }
            Err(_) => None,
        };
        let mut children = Vec::new();
        for _ in 0..below {
            (depth < DEPTH_MAX).then_some(())?;
            children.push(Self::decode_one(rest, hash, depth + 1)?);
        }
        // Git sorts by length first.
        children.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        Some(Self { name, current, children })
    }
}

/// What comes before the first `end`, which is taken off too.
fn cut_at<'a>(rest: &mut &'a [u8], end: u8) -> Option<&'a [u8]> {
    let at = rest.iter().position(|&byte| byte == end)?;
    let (before, after) = rest.split_at(at);
    *rest = &after[1..];
    Some(before)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use gix::bstr::ByteSlice as _;
    use proptest::{collection::btree_map, prelude::*, sample::select};

    use super::*;

    const HASH: HashKind = HashKind::Sha1;

    /// Entries by path and stage: a mode, the first byte of the object, and flags.
    fn staged() -> impl Strategy<Value = BTreeMap<(String, u8), (Mode, u8, Flags)>> {
        let mode = select(vec![Mode::FILE, Mode::FILE_EXECUTABLE, Mode::SYMLINK, Mode::COMMIT]);
        let flags = select(vec![
            Flags::empty(),
            Flags::empty(),
            Flags::ASSUME_VALID,
            Flags::EXTENDED | Flags::INTENT_TO_ADD,
            Flags::EXTENDED | Flags::SKIP_WORKTREE,
        ]);
        btree_map(("[ab]{1,3}(/[a-c]{1,9}){0,3}", 0_u8..4), (mode, 1_u8.., flags), 0..40)
    }

    fn written(staged: &BTreeMap<(String, u8), (Mode, u8, Flags)>) -> Vec<u8> {
        let mut state = State::new(HASH);
        for ((path, stage), (mode, byte, flags)) in staged {
            let flags = *flags | Flags::from_bits_retain(u32::from(*stage) << 12);
            let id = ObjectId::from_bytes_or_panic(&[*byte; 20]);
            state.dangerously_push_entry(
                gix::index::entry::Stat::default(),
                id,
                flags,
                *mode,
                path.as_bytes().as_bstr(),
            );
        }
        let mut bytes = Vec::new();
        let file = gix::index::File::from_state(state, PathBuf::new());
        file.write_to(&mut bytes, gix::index::write::Options::default()).unwrap();
        bytes
    }

    /// All entries of the index with these bytes, as text.
    fn listed(bytes: &[u8]) -> Result<Vec<String>, String> {
        let name =
            format!("beforehand-index-{:?}-{}", std::thread::current().id(), std::process::id());
        let dir = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&dir).unwrap();
        crate::fs::replace(&dir.join("index"), bytes).unwrap();
        let listed = GitIndex::read(&dir.join("index"), HASH).and_then(|index| all_of(&index));
        crate::fs::remove_tree(&dir).unwrap();
        listed
    }

    fn all_of(index: &GitIndex) -> Result<Vec<String>, String> {
        let (mut entries, mut all) = (index.entries()?, Vec::new());
        while let Some(entry) = entries.read_next()? {
            all.push(format!("{entry:?}"));
        }
        Ok(all)
    }

    proptest! {
        #[test]
        fn what_was_written_is_read(staged in staged()) {
            let expected: Vec<_> = staged.iter().map(|((path, stage), (mode, byte, flags))| {
                let flags = *flags | Flags::from_bits_retain(u32::from(*stage) << 12);
                let id = ObjectId::from_bytes_or_panic(&[*byte; 20]);
                format!("{:?}", DecodedEntry { path: path.as_bytes(), mode: *mode, id, flags })
            }).collect();
            prop_assert_eq!(listed(&written(&staged)), Ok(expected));
        }

        #[test]
        fn damage_is_noticed(staged in staged(), at in any::<prop::sample::Index>(), bit in 0..8) {
            let mut bytes = written(&staged);
            let at = at.index(bytes.len());
            bytes[at] ^= 1_u8 << bit;
            prop_assert!(listed(&bytes).is_err());
        }

        /// Without a checksum anything may be read, but nothing may panic or go on for ever.
        #[test]
        fn nothing_breaks_the_reader(
            staged in staged(),
            changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
            version in 2_u8..6,
        ) {
            let mut bytes = written(&staged);
            for (at, byte) in changes {
                let at = at.index(bytes.len());
                bytes[at] = byte;
            }
            bytes[7] = version;
            let checksum = bytes.len() - 20;
            bytes[checksum..].fill(0);
            let _any = listed(&bytes);
        }

        #[test]
        fn no_cached_tree_breaks_the_reader(text in "[a\\x00 0-9\n-]{0,60}") {
            let _any = CachedTree::decode(text.as_bytes(), HASH);
        }
    }

    #[test]
    fn deeply_nested_cached_trees_are_none() {
        let id = [7; 20];
        let nested = |depth: usize| {
            let level = [&b"a\x001 1\n"[..], &id].concat();
            [level.repeat(depth), [&b"a\x001 0\n"[..], &id].concat()].concat()
        };
        assert!(CachedTree::decode(&nested(DEPTH_MAX), HASH).is_some());
        assert!(CachedTree::decode(&nested(DEPTH_MAX + 1), HASH).is_none());
        assert!(CachedTree::decode(&nested(1_000_000), HASH).is_none());
    }
}
