//! Git's index: parses it, and stores it as a tree plus a list of what a tree cannot express.
//!
//! `index/` is the tree that `git write-tree` would write. `index.extra` has a record for each
//! entry that needs one: mode, object, stage, flags or `-`, and path, separated by spaces and
//! terminated by NUL.

use std::{collections::HashMap, io::Write as _, path::Path};

use gix::{
    ObjectId,
    index::{
        Entry, File, State,
        entry::{Flags, Mode, Stage},
        extension::Tree as Cached,
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
    model::{Kind as FileKind, Stamp},
};

/// Enough for five million files.
const INDEX_MAX_BYTES: u64 = 1 << 30;
/// Real directories are not nested deeper; a hostile path must not exhaust the stack.
const DEPTH_MAX: usize = 500;

/// One entry of an index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexEntry {
    /// Its path below the root.
    pub path: Vec<u8>,
    /// Its mode: 100644, 100755, 120000 or 160000, in octal.
    pub mode: u32,
    /// Its object.
    pub id: Vec<u8>,
    /// 0, or 1 to 3 if it is unmerged.
    pub stage: u8,
    /// `intent-to-add`, `skip-worktree`, `assume-unchanged`.
    pub flags: IndexFlags,
}

/// The flags of an index entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IndexFlags {
    /// Only the name is staged.
    pub intent_to_add: bool,
    /// It is missing from the worktree on purpose.
    pub skip_worktree: bool,
    /// Git is told not to check the file for changes.
    pub assume_unchanged: bool,
}

impl IndexFlags {
    fn of(flags: Flags) -> Self {
        Self {
            intent_to_add: flags.contains(Flags::INTENT_TO_ADD),
            skip_worktree: flags.contains(Flags::SKIP_WORKTREE),
            assume_unchanged: flags.contains(Flags::ASSUME_VALID),
        }
    }

    fn text(self) -> String {
        let words = [
            (self.intent_to_add, "intent-to-add"),
            (self.skip_worktree, "skip-worktree"),
            (self.assume_unchanged, "assume-unchanged"),
        ];
        let set: Vec<_> = words.iter().filter(|(set, _)| *set).map(|(_, word)| *word).collect();
        if set.is_empty() { "-".to_owned() } else { set.join(",") }
    }

    fn parse(text: &str) -> Option<Self> {
        let mut flags = Self::default();
        for word in text.split(',').filter(|word| *word != "-") {
            match word {
                "intent-to-add" => flags.intent_to_add = true,
                "skip-worktree" => flags.skip_worktree = true,
                "assume-unchanged" => flags.assume_unchanged = true,
                _ => return None,
            }
        }
        Some(flags)
    }

    /// As the bits that git uses.
    pub(in crate::store) fn bits(self) -> Flags {
        let mut flags = Flags::empty();
        flags.set(Flags::INTENT_TO_ADD, self.intent_to_add);
        flags.set(Flags::SKIP_WORKTREE, self.skip_worktree);
        flags.set(Flags::ASSUME_VALID, self.assume_unchanged);
        flags.set(Flags::EXTENDED, self.intent_to_add || self.skip_worktree);
        flags
    }
}

/// The stamp of the index, which tells whether it has changed. Zeros if there is no index.
pub(in crate::store) fn stamp(repo: &Repo) -> Stamp {
    stat_path(&own(repo, "index")).unwrap_or_default()
}

/// Reads the index; `None` if there is none.
///
/// # Errors
///
/// Why it cannot be read, as a message fragment. No content can do worse.
pub(in crate::store) fn read(repo: &Repo) -> Result<Option<File>, String> {
    let path = own(repo, "index");
    let Ok(found) = stat_path(&path) else { return Ok(None) };
    check_file(&path, found)?;
    for entry in std::fs::read_dir(&repo.git_dir).into_iter().flatten().flatten() {
        if entry.file_name().as_encoded_bytes().starts_with(b"sharedindex.") {
            check_file(&entry.path(), stat_path(&entry.path()).unwrap_or_default())?;
        }
    }
    let options = gix::index::decode::Options {
        thread_limit: Some(1),
        alloc_limit_bytes: usize::try_from(INDEX_MAX_BYTES * 4).ok(),
        ..Default::default()
    };
    // The decoder is third-party code and the file is untrusted, so a panic is caught.
    let hash = repo.hash;
    std::panic::catch_unwind(|| File::at(path, hash, false, options))
        .map_err(|_| "it makes the reader fail".to_owned())?
        .map(Some)
        .map_err(|err| err.to_string())
}

/// Whether two index files stage the same content; `None` if one cannot be read by itself. Cached
/// stats do not count.
pub(in crate::store) fn stage_alike(hash: gix::hash::Kind, a: &[u8], b: &[u8]) -> Option<bool> {
    let options = gix::index::decode::Options {
        thread_limit: Some(1),
        alloc_limit_bytes: usize::try_from(INDEX_MAX_BYTES * 4).ok(),
        ..Default::default()
    };
    // Panics are caught as in `read`.
    let parse = |bytes: &[u8]| {
        let now = State::new(hash).timestamp();
        let parsed = std::panic::catch_unwind(|| State::from_bytes(bytes, now, hash, options));
        Some(parsed.ok()?.ok()?.0).filter(|state| state.link().is_none())
    };
    let (a, b) = (parse(a)?, parse(b)?);
    let key = |state: &State, entry: &Entry| {
        let (path, flags) = (entry.path(state).to_vec(), IndexFlags::of(entry.flags));
        (path, entry.id, entry.mode, entry.stage_raw(), flags)
    };
    let is_same = |(x, y): (&Entry, &Entry)| key(&a, x) == key(&b, y);
    let same_count = a.entries().len() == b.entries().len();
    Some(same_count && a.entries().iter().zip(b.entries()).all(is_same))
}

fn check_file(path: &Path, found: Stamp) -> Result<(), String> {
    if found.kind() != Some(FileKind::File) {
        return Err(format!("`{}` is not a regular file", path.display()));
    }
    if found.size > INDEX_MAX_BYTES {
        return Err(format!("`{}` is larger than an index can be", path.display()));
    }
    Ok(())
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
    index: &State,
    believes: bool,
    add: &mut dyn FnMut(&[u8]) -> Result<ObjectId>,
) -> Result<Staged> {
    let mut extra = Vec::new();
    let mut kept = Vec::with_capacity(index.entries().len());
    for entry in index.entries() {
        let (path, flags): (&[u8], _) = (entry.path(index), IndexFlags::of(entry.flags));
        check_path(path)?;
        if entry.stage() != Stage::Unconflicted || flags != IndexFlags::default() {
            put_extra(&mut extra, entry, path, flags);
        }
        if entry.stage() == Stage::Unconflicted && !flags.intent_to_add {
            kept.push((path, entry));
        }
    }
    let is_plain = kept.len() == index.entries().len();
    let cached = index.tree().filter(|_| believes && is_plain);
    let tree = TreeAdder { repo, add }.build(&kept, 0, cached, 0)?;
    Ok(Staged { tree, extra })
}

fn put_extra(out: &mut Vec<u8>, entry: &Entry, path: &[u8], flags: IndexFlags) {
    let (mode, stage, flags) = (entry.mode.bits(), entry.stage_raw(), flags.text());
    write!(out, "{mode:06o} {} {stage} {flags} ", entry.id).expect("memory takes every write");
    out.extend_from_slice(path);
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

struct TreeAdder<'a, 'r> {
    repo: &'r Repo,
    add: &'a mut dyn FnMut(&[u8]) -> Result<ObjectId>,
}

impl TreeAdder<'_, '_> {
    /// Builds the tree of `entries`, which all lie in the directory with the first `prefix` bytes
    /// of their paths.
    fn build(
        &mut self,
        entries: &[(&[u8], &Entry)],
        prefix: usize,
        cached: Option<&Cached>,
        depth: usize,
    ) -> Result<ObjectId> {
        if depth > DEPTH_MAX {
            return Err(Error::damaged("the index", "nested too deep"));
        }
        let whole = |tree: &&Cached| tree.num_entries.map(|n| n as usize) == Some(entries.len());
        if let Some(tree) = cached.filter(whole)
            && tree.id.kind() == self.repo.hash
            && self.repo.has(&tree.id)
        {
            return Ok(tree.id);
        }
        let below: HashMap<&[u8], &Cached> =
            cached.iter().flat_map(|tree| &tree.children).map(|c| (&c.name[..], c)).collect();
        let mut tree = TreeBuilder::default();
        let mut rest = entries;
        while let Some((path, entry)) = rest.first() {
            let name = &path[prefix..];
            match name.iter().position(|&byte| byte == b'/') {
                Some(at) if at + 1 < name.len() => {
                    let dir = &path[..=prefix + at];
                    let count = rest.partition_point(|(path, _)| path.starts_with(dir));
                    let cached = below.get(&name[..at]).copied();
                    let id = self.build(&rest[..count], dir.len(), cached, depth + 1)?;
                    tree.add(&name[..at], EntryKind::Tree, id);
                    rest = &rest[count..];
                }
                slash => {
                    tree.add(&name[..slash.unwrap_or(name.len())], kind_of(entry)?, entry.id);
                    rest = &rest[1..];
                }
            }
        }
        (self.add)(&tree.finish())
    }
}

fn kind_of(entry: &Entry) -> Result<EntryKind> {
    Ok(match entry.mode {
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
                let (id, flags) = (id.as_slice().to_vec(), IndexFlags::default());
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
    let id = ObjectId::from_hex(text()?.as_bytes()).ok()?.as_slice().to_vec();
    let stage = text()?.parse().ok().filter(|&stage| stage <= 3)?;
    let flags = IndexFlags::parse(text()?)?;
    let path = fields.next()?.to_vec();
    check_path(&path).ok()?;
    Some(IndexEntry { path, mode, id, stage, flags })
}
