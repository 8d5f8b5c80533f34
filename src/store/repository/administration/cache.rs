//! What the last look at a git directory saw, in a file of its own. If that cannot be read, the next
//! look reads everything.
//!
//! The file begins with the rows that are looked at every time: directories, files other than refs, and
//! refs with a racy stamp. All other refs follow, so that where there are very many, a look that relies
//! on their directories does not even read their rows.

use std::{
    collections::BTreeMap, ffi::OsStr, fmt::Write as _, os::unix::ffi::OsStrExt, path::Path,
};

use gix::ObjectId;

use super::Administration;
use crate::{
    fs::{in_halves, read_small, read_start, replace, stat_path},
    model::{
        ContentId, Kind, Stamp,
        escape::{escape, unescape},
    },
    store::plumbing::{
        refs::{self, ADMINISTRATION},
        repo::Repo,
    },
};

/// A hundred thousand refs.
const SIZE_MAX_BYTES: u64 = 64 << 20;
/// Enough for the rows that are always looked at, in nearly every repository.
const START_BYTES: usize = 64 << 10;
/// More loose refs are not looked at one by one to find that nothing has changed: 3 ms.
const REFS_MAX: usize = 2000;
/// The rows of a thousand refs: with fewer a second thread costs more than it saves.
const BYTES_FOR_TWO: usize = 120 << 10;
/// The first line of the file.
const MAGIC: &str = "administration 2";

/// One path in the git directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct StampedBlob {
    pub(super) stamp: Stamp,
    pub(super) racy: bool,
    /// The blob of a file or link. A directory has none, nor an index that was not asked for.
    pub(super) blob: Option<ObjectId>,
}

impl StampedBlob {
    /// Whether a ref that its directory can speak for.
    fn is_quiet_ref(&self, path: &[u8]) -> bool {
        let is_ref = || path.split(|&byte| byte == b'/').any(|name| name == b"refs");
        self.blob.is_some() && !self.racy && is_ref()
    }

    /// Whether the path is as it was.
    fn stands(&self, common_dir: &Path, path: &[u8], own_index: &[u8]) -> bool {
        if path == own_index {
            return true;
        }
        let is_held = self.blob.is_some() || !self.stamp.kind().is_some_and(Kind::has_content);
        // A directory of objects: see `AdministrationWalk::objects`.
        let is_mode_only = self.stamp.inode == 0;
        let is_same = || {
            stat_path(&common_dir.join(OsStr::from_bytes(path))).is_ok_and(|stamp| {
                stamp == self.stamp || is_mode_only && stamp.mode == self.stamp.mode
            })
        };
        is_held && !self.racy && is_same()
    }
}

/// The cache, as it was left by the last look.
pub(super) struct Cached {
    pub(super) administration: Administration,
    /// The rows that are always looked at, a line each.
    watched: String,
    /// Those of quiet refs. Empty where their directories speak for them.
    quiet: String,
}

impl Cached {
    /// Reads the cache of a repository; `None` if there is none that can be believed.
    pub(super) fn load(repo: &Repo) -> Option<Self> {
        let bytes = read_small(&repo.git_dir.join("administration"), SIZE_MAX_BYTES).ok()??;
        let text = str::from_utf8(&bytes).ok()?;
        let head = CacheHead::parse(text)?;
        let (start, rest) = text.split_at_checked(head.end)?;
        Self::of(repo, head, unseal(start)?, unseal(rest)?)
    }

    /// The same without quiet refs, if they are so many that their directories speak for them: git
    /// gives a ref a new file when it moves.
    pub(super) fn load_start(repo: &Repo) -> Option<Self> {
        let bytes = read_start(&repo.git_dir.join("administration"), START_BYTES).ok()?;
        // Rows are ASCII, so that any part of them is a text.
        let text = str::from_utf8(&bytes).ok()?;
        let head = CacheHead::parse(text)?;
        match text.get(..head.end) {
            Some(start) if head.refs > REFS_MAX => Self::of(repo, head, unseal(start)?, ""),
            Some(_) | None => Self::load(repo),
        }
    }

    fn of(repo: &Repo, head: CacheHead, start: &str, quiet: &str) -> Option<Self> {
        let CacheHead { administration, rows, .. } = head;
        let is_anchored = refs::read(repo, ADMINISTRATION).ok()? == Some(administration.tree);
        let (watched, quiet) = (start.get(rows..)?.to_owned(), quiet.to_owned());
        is_anchored.then_some(Self { administration, watched, quiet })
    }

    /// Whether everything that it tells of is as it was.
    pub(super) fn stands(&self, common_dir: &Path, own_index: &[u8]) -> bool {
        let stands = |(path, row): (Vec<u8>, StampedBlob)| row.stands(common_dir, &path, own_index);
        let stand = |texts: &[&str]| {
            let mut rows = texts.iter().flat_map(|text| text.lines()).map(parse_row);
            if rows.all(|row| row.is_some_and(stands)) { Ok(()) } else { Err(()) }
        };
        let (first, second) = halves(&self.quiet);
        let is_worth_it = self.quiet.len() >= BYTES_FOR_TWO;
        stand(&[&self.watched]).is_ok() && in_halves(&[first, second], is_worth_it, stand).is_ok()
    }

    /// All rows, by path; none if one cannot be read.
    pub(super) fn rows(&self) -> BTreeMap<Vec<u8>, StampedBlob> {
        self.each().collect::<Option<_>>().unwrap_or_default()
    }

    fn each(&self) -> impl Iterator<Item = Option<(Vec<u8>, StampedBlob)>> {
        self.watched.lines().chain(self.quiet.lines()).map(parse_row)
    }
}

/// Both halves of a text, as whole lines.
fn halves(text: &str) -> (&str, &str) {
    let half = text.as_bytes().iter().skip(text.len() / 2).position(|&byte| byte == b'\n');
    text.split_at(half.map_or(0, |at| text.len() / 2 + at + 1))
}

/// What the file begins with.
struct CacheHead {
    administration: Administration,
    /// How many quiet refs there are.
    refs: usize,
    /// Where the rows begin.
    rows: usize,
    /// Where the rows end that are always looked at, and their sum.
    end: usize,
}

impl CacheHead {
    fn parse(text: &str) -> Option<Self> {
        let mut lines = text.splitn(3, '\n');
        let (magic, head, _rows) = (lines.next()?, lines.next()?, lines.next()?);
        let mut fields = head.split(' ');
        let (tree, modes) = (parse_id(fields.next()?)?, parse_id(fields.next()?));
        let administration =
            Administration { tree, modes, digest: ContentId::parse(fields.next()?)? };
        let refs = fields.next()?.parse().ok()?;
        let bytes: usize = fields.next()?.parse().ok()?;
        let rows = magic.len() + head.len() + 2;
        let end = rows.checked_add(bytes)?.checked_add(SUM_BYTES)?;
        (magic == MAGIC).then_some(Self { administration, refs, rows, end })
    }
}

/// Lets the next look begin where this one ended. If that fails it is slower, nothing else.
pub(super) fn write(
    repo: &Repo,
    administration: &Administration,
    rows: &BTreeMap<Vec<u8>, StampedBlob>,
) {
    let (mut watched, mut quiet, mut refs) = (String::new(), String::new(), 0);
    for (path, row) in rows {
        let is_quiet = row.is_quiet_ref(path);
        refs += usize::from(is_quiet);
        put_row(if is_quiet { &mut quiet } else { &mut watched }, path, row);
    }
    let Administration { tree, modes, digest } = administration;
    let (modes, bytes) = (id_text(modes.as_ref()), watched.len());
    let start = format!("{MAGIC}\n{tree} {modes} {digest} {refs} {bytes}\n{watched}");
    let text = [seal(start), seal(quiet)].concat();
    // Without its anchor, which points at the tree that it was written for, the cache is not believed.
    let is_anchored = refs::read(repo, ADMINISTRATION).ok().flatten() == Some(*tree);
    let anchor = || if is_anchored { Ok(()) } else { refs::set(repo, ADMINISTRATION, *tree) };
    let _slower =
        replace(&repo.git_dir.join("administration"), text.as_bytes()).and_then(|()| anchor());
}

/// The length of a checksum's line.
const SUM_BYTES: usize = 9;

/// Adds its checksum to a text.
fn seal(mut text: String) -> String {
    let sum = crc32fast::hash(text.as_bytes());
    text.push_str(&format!("{sum:08x}\n"));
    text
}

/// The text before a checksum; `None` if that is not its own.
fn unseal(text: &str) -> Option<&str> {
    let (text, sum) = text.split_at_checked(text.len().checked_sub(SUM_BYTES)?)?;
    (sum == format!("{:08x}\n", crc32fast::hash(text.as_bytes()))).then_some(text)
}

fn id_text(id: Option<&ObjectId>) -> String {
    id.map_or("-".to_owned(), ToString::to_string)
}

/// `-`, and no other word, stands where there is none: the checksum says that it was written so.
fn parse_id(text: &str) -> Option<ObjectId> {
    ObjectId::from_hex(text.as_bytes()).ok()
}

fn put_row(text: &mut String, path: &[u8], row: &StampedBlob) {
    let StampedBlob { stamp, racy, blob } = row;
    let Stamp { mtime_ns, ctime_ns, inode, size, mode } = stamp;
    let (racy, blob) = (u8::from(*racy), id_text(blob.as_ref()));
    let path = escape(path);
    let _written =
        writeln!(text, "{mtime_ns} {ctime_ns} {inode} {size} {mode:o} {racy} {blob} {path}");
}

fn parse_row(line: &str) -> Option<(Vec<u8>, StampedBlob)> {
    let mut fields = line.split(' ');
    let stamp = Stamp {
        mtime_ns: fields.next()?.parse().ok()?,
        ctime_ns: fields.next()?.parse().ok()?,
        inode: fields.next()?.parse().ok()?,
        size: fields.next()?.parse().ok()?,
        mode: u32::from_str_radix(fields.next()?, 8).ok()?,
    };
    let racy = fields.next()? == "1";
    let blob = parse_id(fields.next()?);
    Some((unescape(fields.next()?)?, StampedBlob { stamp, racy, blob }))
}
