//! Git's index: parses it, and stores it as a tree plus a list of what a tree cannot express.
//!
//! `index/` is the tree that `git write-tree` would write. `index.extra` has a record for each
//! entry that needs one: mode, object, stage, flags or `-`, and path, separated by spaces and
//! terminated by NUL.

use std::io::Write as _;

use gix::{
    ObjectId,
    index::{
        Entry, File, State,
        entry::{Flags, Mode},
    },
    objs::{Kind, tree::EntryKind},
};

use super::{
    refs::own,
    repo::Repo,
    tree::{TreeBuilder, entries},
};
use crate::{
    error::{Error, Result},
    fs::stat_path,
    git_index::{CachedTree, DEPTH_MAX, DecodedEntry, GitIndex, decode_options, decode_whole},
    model::Stamp,
};

/// The flags of an entry that a checkpoint keeps, with their names: only the name is staged; it is
/// missing from the worktree on purpose; git is told not to check the file for changes.
const KEPT_FLAGS: [(Flags, &str); 3] = [
    (Flags::INTENT_TO_ADD, "intent-to-add"),
    (Flags::SKIP_WORKTREE, "skip-worktree"),
    (Flags::ASSUME_VALID, "assume-unchanged"),
];

/// One entry of an index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexEntry {
    /// Its path below the root.
    pub path: Vec<u8>,
    /// Its mode: 100644, 100755, 120000 or 160000, in octal.
    pub mode: u32,
    /// Its object.
    pub id: ObjectId,
    /// 0, or 1 to 3 if it is unmerged.
    pub stage: u8,
    /// Those of `kept_flags`.
    pub flags: Flags,
}

/// Those flags that a checkpoint keeps.
pub(in crate::store) fn kept_flags(flags: Flags) -> Flags {
    KEPT_FLAGS.iter().fold(Flags::empty(), |kept, (flag, _)| kept | flags & *flag)
}

fn flags_text(flags: Flags) -> String {
    let set = KEPT_FLAGS.iter().filter(|(flag, _)| flags.contains(*flag));
    let names: Vec<&str> = set.map(|(_, name)| *name).collect();
    if names.is_empty() { "-".to_owned() } else { names.join(",") }
}

fn parse_flags(text: &str) -> Option<Flags> {
    let mut names = text.split(',').filter(|name| *name != "-");
    names.try_fold(Flags::empty(), |flags, name| {
        let (flag, _) = KEPT_FLAGS.iter().find(|(_, known)| *known == name)?;
        Some(flags | *flag)
    })
}

/// The stamp of the index, which tells whether it has changed. Zeros if there is no index.
pub(in crate::store) fn stamp(repo: &Repo) -> Stamp {
    stat_path(&own(repo, "index")).unwrap_or_default()
}

/// Opens the index; `None` if there is none.
///
/// # Errors
///
/// Why it cannot be read, as a message fragment. No content can do worse.
pub(in crate::store) fn open(repo: &Repo) -> Result<Option<GitIndex>, String> {
    let path = own(repo, "index");
    if stat_path(&path).is_err() {
        return Ok(None);
    }
    GitIndex::read(&path, repo.hash).map(Some)
}

/// Reads the index with everything that git keeps in it; `None` if there is none.
///
/// # Errors
///
/// As [`open`].
pub(in crate::store) fn read(repo: &Repo) -> Result<Option<File>, String> {
    let path = own(repo, "index");
    if stat_path(&path).is_err() {
        return Ok(None);
    }
    decode_whole(&path, repo.hash, true).map(Some)
}

/// Whether two index files stage the same content; `None` if one cannot be read by itself. Cached
/// stats do not count.
pub(in crate::store) fn stage_alike(hash: gix::hash::Kind, a: &[u8], b: &[u8]) -> Option<bool> {
    // Panics are caught as in `decode_whole`.
    let parse = |bytes: &[u8]| {
        let now = State::new(hash).timestamp();
        let parsed =
            std::panic::catch_unwind(|| State::from_bytes(bytes, now, hash, decode_options()));
        Some(parsed.ok()?.ok()?.0).filter(|state| state.link().is_none())
    };
    let (a, b) = (parse(a)?, parse(b)?);
    let key = |state: &State, entry: &Entry| {
        let (path, flags) = (entry.path(state).to_vec(), kept_flags(entry.flags));
        (path, entry.id, entry.mode, entry.stage_raw(), flags)
    };
    let is_same = |(x, y): (&Entry, &Entry)| key(&a, x) == key(&b, y);
    let same_count = a.entries().len() == b.entries().len();
    Some(same_count && a.entries().iter().zip(b.entries()).all(is_same))
}

/// An index in the form that a checkpoint stores.
pub(in crate::store) struct Staged {
    /// The tree of what is staged.
    pub(in crate::store) tree: ObjectId,
    /// What the tree cannot express.
    pub(in crate::store) extra: Vec<u8>,
}

/// Builds the trees of an index; `add` stores one and returns its id. A tree from the index's own
/// cache is taken as stored, with everything below it, if `believes` is set and it exists.
///
/// # Errors
///
/// Fails if `add` does, or with [`Error::Damaged`] for paths that git would not write.
pub(in crate::store) fn build(
    repo: &Repo,
    index: &GitIndex,
    believes: bool,
    add: &mut dyn FnMut(&[u8]) -> Result<ObjectId>,
) -> Result<Staged> {
    let damaged = |why| Error::damaged("the index", why);
    let cached = index.cached.as_ref().filter(|_| believes);
    let (mut extra, mut trees) = (Vec::new(), TreeAdder::new(repo, add, cached));
    let mut entries = index.entries().map_err(damaged)?;
    while let Some(entry) = entries.read_next().map_err(damaged)? {
        check_path(entry.path)?;
        let flags = kept_flags(entry.flags);
        if entry.stage() > 0 || !flags.is_empty() {
            put_extra(&mut extra, &entry, flags);
        }
        if entry.is_in_trees() {
            trees.add_entry(&entry)?;
        }
    }
    match trees.finish()? {
        Some(tree) => Ok(Staged { tree, extra }),
        None => build(repo, index, false, add),
    }
}

fn put_extra(out: &mut Vec<u8>, entry: &DecodedEntry<'_>, flags: Flags) {
    let (mode, stage, flags) = (entry.mode.bits(), entry.stage(), flags_text(flags));
    write!(out, "{mode:06o} {} {stage} {flags} ", entry.id).expect("memory takes every write");
    out.extend_from_slice(entry.path);
    out.push(0);
}

/// Whether git accepts such a path in an index. A sparse directory ends in a slash.
fn check_path(path: &[u8]) -> Result<()> {
    let refuse = || {
        let path = String::from_utf8_lossy(path).escape_debug().to_string();
        Error::damaged(format!("index entry {path}"), "not a path git would write")
    };
    let plain = path.strip_suffix(b"/").unwrap_or(path);
    let bad = |name: &[u8]| {
        matches!(name, b"" | b"." | b"..")
            || name.eq_ignore_ascii_case(b".git")
            || name.contains(&0)
    };
    let names = plain.split(|&byte| byte == b'/');
    if names.clone().any(bad) || names.count() > DEPTH_MAX { Err(refuse()) } else { Ok(()) }
}

/// Builds trees of entries that come in order, from the innermost directory outwards.
struct TreeAdder<'a, 'r> {
    repo: &'r Repo,
    add: &'a mut dyn FnMut(&[u8]) -> Result<ObjectId>,
    /// The path of the last open directory, which ends in a slash; empty for the root.
    path: Vec<u8>,
    /// The root and the directories down to that one.
    open: Vec<OpenTree<'r>>,
    /// A cached tree stands for another number of entries than there are.
    is_cache_wrong: bool,
}

/// A directory of which the last entry may not have come yet.
struct OpenTree<'r> {
    /// How long the path of the directory around it is.
    above: usize,
    tree: TreeBuilder,
    cached: Option<&'r CachedTree>,
    /// Its tree, which is stored with everything below it, and how many entries that stands for.
    stored: Option<(ObjectId, usize)>,
    /// How many entries have come.
    count: usize,
}

impl<'a, 'r> TreeAdder<'a, 'r> {
    fn new(
        repo: &'r Repo,
        add: &'a mut dyn FnMut(&[u8]) -> Result<ObjectId>,
        cached: Option<&'r CachedTree>,
    ) -> Self {
        let mut trees =
            Self { repo, add, path: Vec::new(), open: Vec::new(), is_cache_wrong: false };
        trees.open_tree(0, cached);
        trees
    }

    fn open_tree(&mut self, above: usize, cached: Option<&'r CachedTree>) {
        let is_stored = |id: &ObjectId| id.kind() == self.repo.hash && self.repo.has(id);
        let stored = cached.and_then(|cached| cached.current).filter(|(id, _)| is_stored(id));
        self.open.push(OpenTree { above, tree: TreeBuilder::default(), cached, stored, count: 0 });
    }

    fn last(&mut self) -> &mut OpenTree<'r> {
        self.open.last_mut().expect("the root is closed last")
    }

    fn add_entry(&mut self, entry: &DecodedEntry<'_>) -> Result<()> {
        while !entry.path.starts_with(&self.path) {
            self.close()?;
        }
        while self.last().stored.is_none() {
            let name = &entry.path[self.path.len()..];
            let Some(at) =
                name.iter().position(|&byte| byte == b'/').filter(|at| at + 1 < name.len())
            else {
                let name = name.strip_suffix(b"/").unwrap_or(name);
                self.last().tree.add(name, kind_of(entry.mode)?, entry.id);
                break;
            };
            let (above, name) = (self.path.len(), &name[..at]);
            let cached = self.last().cached;
            let below = cached.and_then(|cached| cached.child(name));
            self.path.extend_from_slice(&entry.path[above..=above + at]);
            self.open_tree(above, below);
        }
        self.last().count += 1;
        Ok(())
    }

    /// Stores the last open directory.
    fn close(&mut self) -> Result<ObjectId> {
        let closed = self.open.pop().expect("the root is closed last");
        let id = match closed.stored {
            Some((id, count)) => {
                self.is_cache_wrong |= count != closed.count;
                id
            }
            None => (self.add)(&closed.tree.finish())?,
        };
        if let Some(around) = self.open.last_mut() {
            let name = &self.path[closed.above..self.path.len() - 1];
            around.tree.add(name, EntryKind::Tree, id);
            around.count += closed.count;
            self.path.truncate(closed.above);
        }
        Ok(id)
    }

    /// The tree of the root; `None` if a cached tree was wrong.
    fn finish(mut self) -> Result<Option<ObjectId>> {
        while self.open.len() > 1 {
            self.close()?;
        }
        let root = self.close()?;
        Ok(Some(root).filter(|_| !self.is_cache_wrong))
    }
}

fn kind_of(mode: Mode) -> Result<EntryKind> {
    Ok(match mode {
        Mode::FILE => EntryKind::Blob,
        Mode::FILE_EXECUTABLE => EntryKind::BlobExecutable,
        Mode::SYMLINK => EntryKind::Link,
        Mode::COMMIT => EntryKind::Commit,
        Mode::DIR => EntryKind::Tree,
        other => {
            return Err(Error::damaged("the index", format!("it has mode {:o}", other.bits())));
        }
    })
}

/// Reads what [`build`] has stored, in index order.
///
/// # Errors
///
/// [`Error::Damaged`] for anything that it does not write.
pub(in crate::store) fn kept_entries(
    repo: &Repo,
    tree: ObjectId,
    extra: Option<ObjectId>,
) -> Result<Vec<IndexEntry>> {
    let mut found = std::collections::BTreeMap::new();
    let mut dirs = vec![(Vec::new(), tree)];
    while let Some((above, id)) = dirs.pop() {
        for (name, kind, id) in entries(repo, &id)? {
            let path = [&above[..], &name].concat();
            check_path(&path)?;
            if kind == EntryKind::Tree {
                dirs.push(([&path[..], b"/"].concat(), id));
            } else {
                let mode = u32::from(kind as u16);
                let flags = Flags::empty();
                found.insert((path.clone(), 0), IndexEntry { path, mode, id, stage: 0, flags });
            }
        }
    }
    let extra = extra.map_or(Ok(Vec::new()), |id| repo.read(&id, Kind::Blob))?;
    for entry in parse_extra(&extra)? {
        if entry.path.ends_with(b"/") {
            // A directory that a sparse index does not expand.
            for (_, below) in
                found.iter_mut().filter(|((path, _), _)| path.starts_with(&entry.path))
            {
                below.flags = entry.flags;
            }
        } else {
            found.insert((entry.path.clone(), entry.stage), entry);
        }
    }
    Ok(found.into_values().collect())
}

pub(in crate::store) fn parse_extra(text: &[u8]) -> Result<Vec<IndexEntry>> {
    let damaged = || Error::damaged("index.extra", "not a list of index entries");
    let Some(text) = text.strip_suffix(&[0]) else {
        return if text.is_empty() { Ok(Vec::new()) } else { Err(damaged()) };
    };
    text.split(|&byte| byte == 0).map(|record| parse_record(record).ok_or_else(damaged)).collect()
}

fn parse_record(record: &[u8]) -> Option<IndexEntry> {
    let mut fields = record.splitn(5, |&byte| byte == b' ');
    let mut text = || str::from_utf8(fields.next()?).ok();
    let mode = u32::from_str_radix(text()?, 8).ok()?;
    let id = ObjectId::from_hex(text()?.as_bytes()).ok()?;
    let stage = text()?.parse().ok().filter(|&stage| stage <= 3)?;
    let flags = parse_flags(text()?)?;
    let path = fields.next()?.to_vec();
    check_path(&path).ok()?;
    Some(IndexEntry { path, mode, id, stage, flags })
}
