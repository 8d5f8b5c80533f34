//! Files as the system shows them, and as a checkpoint keeps them.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use serde::{Deserialize, Serialize};

use super::{RelPath, escape::escaped, octal};

/// What the system says about one file without opening it.
///
/// Two equal stamps mean the same bytes, unless the stamp was taken so soon after the last change
/// that the clock of the file system could not tell two changes apart; see `scan`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stamp {
    /// Last change of content, in nanoseconds since 1970.
    pub mtime_ns: i64,
    /// Last change of content or attributes, in nanoseconds since 1970.
    pub ctime_ns: i64,
    /// Inode number.
    pub inode: u64,
    /// Size in bytes; for a device its number.
    pub size: u64,
    /// `st_mode`: type and permissions.
    pub mode: u32,
}

/// What sort of file it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// A regular file.
    File,
    /// A symlink. Kept as its text, never followed.
    Link,
    /// A directory.
    Directory,
    /// A named pipe. Kept as a name; never opened.
    Fifo,
    /// A socket. Kept as a name.
    Socket,
    /// A character device. Kept as its number.
    CharDevice,
    /// A block device. Kept as its number.
    BlockDevice,
}

impl Kind {
    /// Reads the type bits of an `st_mode`; `None` for a type we have never heard of.
    pub fn of_mode(mode: u32) -> Option<Self> {
        Some(match mode & 0o170_000 {
            0o100_000 => Self::File,
            0o120_000 => Self::Link,
            0o040_000 => Self::Directory,
            0o010_000 => Self::Fifo,
            0o140_000 => Self::Socket,
            0o020_000 => Self::CharDevice,
            0o060_000 => Self::BlockDevice,
            _ => return None,
        })
    }

    /// What people call it.
    pub fn words(self) -> &'static str {
        match self {
            Self::File => "file",
            Self::Link => "symlink",
            Self::Directory => "directory",
            Self::Fifo => "named pipe",
            Self::Socket => "socket",
            Self::CharDevice | Self::BlockDevice => "device",
        }
    }

    /// The type bits of an `st_mode`.
    pub fn mode_bits(self) -> u32 {
        match self {
            Self::File => 0o100_000,
            Self::Link => 0o120_000,
            Self::Directory => 0o040_000,
            Self::Fifo => 0o010_000,
            Self::Socket => 0o140_000,
            Self::CharDevice => 0o020_000,
            Self::BlockDevice => 0o060_000,
        }
    }

    /// Whether it has bytes of its own that a store keeps.
    pub fn has_content(self) -> bool {
        matches!(self, Self::File | Self::Link)
    }
}

impl Stamp {
    /// What sort of file it was taken of.
    pub fn kind(&self) -> Option<Kind> {
        Kind::of_mode(self.mode)
    }

    /// Its permission bits, set-id and sticky bits included.
    pub fn permissions(&self) -> u32 {
        self.mode & 0o7777
    }
}

/// Names bytes, or a directory, within one store: a hash of 20 or 32 bytes, zeros behind.
///
/// Equal bytes have equal names. What is hashed is the store's own affair.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ContentId([u8; 32]);

impl ContentId {
    /// Takes the bytes of a hash.
    ///
    /// # Panics
    ///
    /// Panics if there are more than 32 of them.
    #[inline]
    pub fn new(hash: &[u8]) -> Self {
        let mut bytes = [0; 32];
        bytes[..hash.len()].copy_from_slice(hash);
        Self(bytes)
    }

    /// Reads what `Display` writes: 40 or 64 lowercase hex digits.
    pub fn parse(hex: &str) -> Option<Self> {
        let digit = |byte: u8| match byte {
            b'0'..=b'9' => Some(byte - b'0'),
            b'a'..=b'f' => Some(byte - b'a' + 10),
            _ => None,
        };
        if !matches!(hex.len(), 40 | 64) {
            return None;
        }
        let mut hash = [0; 32];
        for (byte, pair) in hash.iter_mut().zip(hex.as_bytes().chunks_exact(2)) {
            *byte = digit(pair[0])? << 4 | digit(pair[1])?;
        }
        // One of 64 digits that ends in 24 zeros would be written with 40.
        let is_short = hash[20..] == [0; 12];
        Some(Self(hash)).filter(|_| is_short == (hex.len() == 40))
    }

    /// The first `length` bytes, which the store that made it asks for by its own hash's length.
    pub fn hash(&self, length: usize) -> &[u8] {
        &self.0[..length]
    }

    /// Whether it is a hash of `length` bytes: 20 or 32.
    pub fn has_width(&self, length: usize) -> bool {
        (self.0[20..] == [0; 12]) == (length == 20)
    }

    /// Whether it is all zeros, which no real hash is.
    #[inline]
    pub fn is_null(&self) -> bool {
        self.0 == [0; 32]
    }
}

impl fmt::Display for ContentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let length = if self.0[20..] == [0; 12] { 20 } else { 32 };
        // Not `{:02x}` for each byte: this is a third of the time of what looks up many ids by their text.
        let mut text = [0; 64];
        for (pair, byte) in text.chunks_exact_mut(2).zip(&self.0[..length]) {
            let digit = |number: u8| DIGITS[usize::from(number)];
            pair.copy_from_slice(&[digit(byte >> 4), digit(byte & 0xf)]);
        }
        f.write_str(str::from_utf8(&text[..2 * length]).expect("hex digits are ASCII"))
    }
}

impl fmt::Debug for ContentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ContentId({self})")
    }
}

text_form!(ContentId: to_string, parse);

/// Where a file's bytes are kept, and so how they are named.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Storage {
    /// Among the objects of a private repository, by git's name.
    Git,
    /// Among the objects of the file store, by the SHA-256 of the bytes.
    Files,
}

impl Content {
    /// Whether both are names of one kind, which are equal just where the bytes are.
    pub fn is_comparable_to(&self, other: &Self) -> bool {
        let width = |content: &Self| content.id.has_width(20);
        self.place == other.place && width(self) == width(other)
    }
}

/// Bytes that some store holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Content {
    /// Their name there.
    pub id: ContentId,
    /// Where.
    pub place: Storage,
}

/// One file of a checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// What sort of file.
    pub kind: Kind,
    /// Permission bits, set-id and sticky bits included. 0o777 for a symlink.
    pub permissions: u32,
    /// Its bytes; for a directory its entries. `None` for what has none.
    pub content: Option<Content>,
    /// For a device its number, else 0.
    pub device: u64,
}

impl Entry {
    /// A directory with the default permissions, of which nothing more is known.
    pub const DIRECTORY: Self =
        Self { kind: Kind::Directory, permissions: 0o755, content: None, device: 0 };

    /// Whether it is a directory.
    pub fn is_directory(self) -> bool {
        self.kind == Kind::Directory
    }
}

/// One directory as a store keeps it: its entries by name, in the order of their bytes.
pub type Directory = BTreeMap<Vec<u8>, Entry>;

/// Every file of a root at one moment, named but not read: a directory tree by ids, and beside it
/// what such a tree cannot express.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tree {
    /// The top directory; `None` if nothing below the root is held by the tree itself.
    pub top: Option<ContentId>,
    /// Entries that replace or add to those of the directories: files with other permissions, special
    /// files, private files and victims.
    pub overlay: BTreeMap<RelPath, Entry>,
    /// The paths in `overlay` that no directory has: a walk alone may not see them.
    pub listed: BTreeSet<RelPath>,
    /// Paths outside the root, absolute, that are held as well.
    pub outside: BTreeMap<std::path::PathBuf, Entry>,
    /// Directories that have an id but were never stored, because the tree was only looked at.
    pub unsaved: BTreeMap<ContentId, Directory>,
    /// The permissions of everything that `overlay` does not mention. Only trees with equal ones can be
    /// compared by id alone.
    pub default_modes: DefaultModes,
}

impl Tree {
    /// The paths below the root that are held for their own sake, and so must be looked at for their own sake.
    pub fn held_by_name(&self) -> impl Iterator<Item = &RelPath> {
        let is_named =
            |path: &RelPath, entry: &Entry| entry.content.is_none() || self.listed.contains(path);
        self.overlay.iter().filter(move |(path, entry)| is_named(path, entry)).map(|(path, _)| path)
    }
}

/// The permissions that most files of a root have. A checkpoint lists only files with others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DefaultModes {
    /// Of a file that its owner cannot execute.
    #[serde(with = "octal")]
    pub file: u32,
    /// Of a file that its owner can execute.
    #[serde(with = "octal")]
    pub executable: u32,
    /// Of a directory.
    #[serde(with = "octal")]
    pub directory: u32,
}

impl Default for DefaultModes {
    fn default() -> Self {
        Self { file: 0o644, executable: 0o755, directory: 0o755 }
    }
}

/// Every file of a checkpoint by path. Handy in tests and for small trees; see [`Tree`].
pub type Manifest = BTreeMap<RelPath, Entry>;

/// Something left out of a checkpoint.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Skipped {
    /// Which file or directory: below the root, or absolute when it lies outside.
    #[serde(with = "escaped")]
    pub path: Vec<u8>,
    /// Why.
    pub reason: SkipReason,
    /// Its size in bytes, where it was looked at.
    pub size: u64,
}

/// Why something was left out. The numbers are on disk; never renumbered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SkipReason {
    /// An ignore file names it, and it does not fit in the budget for such files.
    Ignored = 1,
    /// A program makes it again, by the mark it leaves: `node_modules`, `target`, caches.
    MadeAgain = 2,
    /// The user's settings exclude it.
    Excluded = 3,
    /// Larger than the limit.
    TooLarge = 4,
    /// The system would not let us read it.
    Unreadable = 5,
    /// On another file system.
    OtherFileSystem = 6,
    /// The limit on the number of files was reached.
    TooMany = 7,
    /// Time was up.
    OutOfTime = 8,
    /// It went on changing while we read it.
    KeptChanging = 9,
    /// Nested deeper than we can follow.
    TooDeep = 10,
    /// A type of file we do not know.
    UnknownKind = 11,
    /// A place of git's own, which is never captured as files.
    GitPrivate = 12,
    /// It does not fit in the budget for ignored files, and a build very probably makes it again.
    Output = 13,
}

text_form!(SkipReason: name, from_name);

impl SkipReason {
    const ALL: [Self; 13] = [
        Self::Ignored,
        Self::MadeAgain,
        Self::Excluded,
        Self::TooLarge,
        Self::Unreadable,
        Self::OtherFileSystem,
        Self::TooMany,
        Self::OutOfTime,
        Self::KeptChanging,
        Self::TooDeep,
        Self::UnknownKind,
        Self::GitPrivate,
        Self::Output,
    ];

    /// Finds a reason by its number on disk.
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|reason| *reason as u8 == number)
    }

    /// Its name, and a fragment for people.
    fn texts(self) -> (&'static str, &'static str) {
        match self {
            Self::Ignored => ("ignored", "ignored, and over the limits"),
            Self::MadeAgain => ("made-again", "can be made again"),
            Self::Excluded => ("excluded", "excluded by your settings"),
            Self::TooLarge => ("too-large", "too large to hold unless a call names it"),
            Self::Unreadable => ("unreadable", "cannot be read"),
            Self::OtherFileSystem => ("other-file-system", "on another file system"),
            Self::TooMany => ("too-many", "over max_files"),
            Self::OutOfTime => ("out-of-time", "the deadline was reached"),
            Self::KeptChanging => ("kept-changing", "kept changing while it was read"),
            Self::TooDeep => ("too-deep", "nested too deep"),
            Self::UnknownKind => ("unknown-kind", "an unknown type of file"),
            Self::GitPrivate => ("git-private", "git's own"),
            Self::Output => ("output", "the output of a build, and over the limits"),
        }
    }

    /// A word for scripts and files, as in `too-large`.
    pub fn name(self) -> &'static str {
        self.texts().0
    }

    /// Finds a reason by its name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|reason| reason.name() == name)
    }

    /// A fragment for people.
    pub fn words(self) -> &'static str {
        self.texts().1
    }

    /// The same as what is said of a file, as in "its present content {}".
    pub fn predicate(self) -> String {
        match self {
            Self::MadeAgain | Self::Unreadable | Self::KeptChanging => self.words().to_owned(),
            Self::OutOfTime => "could not be looked at in time".to_owned(),
            Self::Ignored
            | Self::Excluded
            | Self::TooLarge
            | Self::OtherFileSystem
            | Self::TooMany
            | Self::TooDeep
            | Self::UnknownKind
            | Self::GitPrivate
            | Self::Output => format!("is {}", self.words()),
        }
    }

    /// Whether a user wants to hear of it: bytes that cannot be made again are not held.
    pub fn matters(self) -> bool {
        match self {
            Self::MadeAgain | Self::Excluded | Self::GitPrivate | Self::Output => false,
            Self::Ignored
            | Self::TooLarge
            | Self::Unreadable
            | Self::OtherFileSystem
            | Self::TooMany
            | Self::OutOfTime
            | Self::KeptChanging
            | Self::TooDeep
            | Self::UnknownKind => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_survive_disk_and_json() {
        for reason in SkipReason::ALL {
            assert_eq!(SkipReason::from_number(reason as u8), Some(reason));
            assert_eq!(SkipReason::from_name(reason.name()), Some(reason));
        }
        assert_eq!(SkipReason::from_number(0), None);
    }

    #[test]
    fn kinds_survive_a_mode() {
        for bits in [0o1, 0o2, 0o4, 0o6, 0o10, 0o12, 0o14] {
            let mode = bits << 12;
            assert_eq!(Kind::of_mode(mode | 0o644).map(Kind::mode_bits), Some(mode));
        }
        assert_eq!(Kind::of_mode(0), None);
    }

    #[test]
    fn a_content_id_shows_its_own_length() {
        assert_eq!(ContentId::new(&[0xab; 20]).to_string().len(), 40);
        assert_eq!(ContentId::new(&[0xab; 32]).to_string().len(), 64);
        for id in [ContentId::new(&[0xab; 20]), ContentId::new(&[0x1f; 32])] {
            assert_eq!(ContentId::parse(&id.to_string()), Some(id));
        }
        for bad in ["", "ab", &"AB".repeat(20), &"g0".repeat(32), &"ab".repeat(21)] {
            assert_eq!(ContentId::parse(bad), None, "{bad}");
        }
    }
}
