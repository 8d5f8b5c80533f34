//! Converts directories of a scan to git tree objects, and back.

use std::collections::BTreeMap;

use gix::{
    ObjectId,
    hash::{Kind as HashKind, oid},
    objs::{Kind as ObjectKind, TreeRefIter, tree::EntryKind},
};

use super::{
    names::{ATTRIBUTES_MAX_BYTES, Bearer, escape, unescape},
    repo::{Repo, content, content_id},
};
use crate::{
    error::{Error, Result},
    model::{
        ContentId, DefaultModes, DirPath, Directory, Entry, Kind, ScanEntry, SkipReason, Skipped,
    },
    scan::Scan,
};

/// The entries of one tree object, sorted into git's order at the end.
#[derive(Default)]
pub(in crate::store) struct TreeBuilder(Vec<(Vec<u8>, EntryKind, ObjectId)>);

impl TreeBuilder {
    /// Adds an entry. Each name may be added once.
    pub(in crate::store) fn add(&mut self, name: &[u8], kind: EntryKind, id: ObjectId) {
        self.0.push((name.to_vec(), kind, id));
    }

    /// The bytes of the tree.
    pub(in crate::store) fn finish(mut self) -> Vec<u8> {
        // Git sorts a directory as if its name ended in a slash.
        let slash = |kind: EntryKind| (kind == EntryKind::Tree).then_some(&b'/');
        self.0.sort_by(|(a, kind_of_a, _), (b, kind_of_b, _)| {
            let common = a.len().min(b.len());
            a[..common].cmp(&b[..common]).then_with(|| {
                let rest_of_a = a[common..].iter().chain(slash(*kind_of_a));
                rest_of_a.cmp(b[common..].iter().chain(slash(*kind_of_b)))
            })
        });
        let mut body = Vec::with_capacity(self.0.len() * 48);
        for (name, kind, id) in &self.0 {
            body.extend_from_slice(kind_text(*kind));
            body.push(b' ');
            body.extend_from_slice(name);
            body.push(0);
            body.extend_from_slice(id.as_slice());
        }
        body
    }
}

fn kind_text(kind: EntryKind) -> &'static [u8] {
    match kind {
        EntryKind::Tree => b"40000",
        EntryKind::Blob => b"100644",
        EntryKind::BlobExecutable => b"100755",
        EntryKind::Link => b"120000",
        EntryKind::Commit => b"160000",
    }
}

/// Assigns an id to every fresh directory, the deepest first; `each` receives the bytes of its tree
/// and its entries. Entries without content are left out and added to `skipped`.
pub(in crate::store) fn build_fresh(
    repo: &Repo,
    scan: &mut Scan,
    skipped: &mut Vec<Skipped>,
    mut each: impl FnMut(Vec<u8>, &[ScanEntry]) -> Result<ObjectId>,
) -> Result<()> {
    scan.name_directories(|path, all| {
        let mut tree = TreeBuilder::default();
        for found in all {
            add_found(repo, path, found, &mut tree, skipped);
        }
        each(tree.finish(), all).map(|id| content_id(&id))
    })
}

fn add_found(
    repo: &Repo,
    path: &DirPath,
    found: &ScanEntry,
    tree: &mut TreeBuilder,
    skipped: &mut Vec<Skipped>,
) {
    let Some(kind) = entry_kind(found) else { return };
    let Some(id) = found.content.map(|id| repo.object_id(&id)) else {
        let path = path.join(&found.name);
        skipped.push(Skipped { path, reason: SkipReason::OutOfTime, size: found.stamp.size });
        return;
    };
    let large = found.stamp.size > ATTRIBUTES_MAX_BYTES;
    let bearer = Bearer { link: kind == EntryKind::Link, large };
    tree.add(&escape(&found.name, bearer), kind, id);
}

/// The entries of a directory as they will be read back.
pub(in crate::store) fn directory_of(repo: &Repo, all: &[ScanEntry]) -> Directory {
    let held = |found: &ScanEntry| {
        let id = repo.object_id(&found.content?);
        Some((found.name.clone(), entry(entry_kind(found)?, &id)))
    };
    all.iter().filter_map(held).collect()
}

/// The kind of tree entry for a file; `None` if a tree cannot hold it.
fn entry_kind(found: &ScanEntry) -> Option<EntryKind> {
    if !found.is_held() || found.marks.private {
        return None;
    }
    match found.kind()? {
        Kind::File if found.stamp.mode & 0o100 != 0 => Some(EntryKind::BlobExecutable),
        Kind::File => Some(EntryKind::Blob),
        Kind::Link => Some(EntryKind::Link),
        Kind::Directory => Some(EntryKind::Tree),
        Kind::Fifo | Kind::Socket | Kind::CharDevice | Kind::BlockDevice => None,
    }
}

fn entry(kind: EntryKind, id: &ObjectId) -> Entry {
    let default_modes = DefaultModes::default();
    let (kind, permissions) = match kind {
        EntryKind::Blob => (Kind::File, default_modes.file),
        EntryKind::BlobExecutable => (Kind::File, default_modes.executable),
        EntryKind::Link => (Kind::Link, 0o777),
        EntryKind::Tree | EntryKind::Commit => (Kind::Directory, default_modes.directory),
    };
    Entry { kind, permissions, content: Some(content(id)), device: 0 }
}

/// Reads the tree `id` as a directory.
///
/// # Errors
///
/// [`Error::Damaged`] for anything that [`build_fresh`] does not write.
pub(in crate::store) fn read(repo: &Repo, id: &ContentId) -> Result<Directory> {
    let id = repo.object_id(id);
    directory(repo.hash, &id, &repo.read_checked(&id, ObjectKind::Tree)?)
}

/// Reads a tree of git's index as a directory, without its gitlinks.
///
/// # Errors
///
/// [`Error::Damaged`] for something that is not a tree.
pub(in crate::store) fn read_staged(repo: &Repo, id: &ContentId) -> Result<Directory> {
    let id = repo.object_id(id);
    let body = repo.read_checked(&id, ObjectKind::Tree)?;
    let mut directory = Directory::new();
    for (name, kind, child) in parse(repo.hash, &id, &body)? {
        if kind != EntryKind::Commit {
            directory.insert(unescape(&name)?, entry(kind, &child));
        }
    }
    Ok(directory)
}

/// Parses the bytes of a tree, as [`read`] does.
pub(in crate::store) fn directory(hash: HashKind, id: &oid, body: &[u8]) -> Result<Directory> {
    let mut directory = Directory::new();
    for (name, kind, child) in parse(hash, id, body)? {
        let refuse = |why| Error::damaged(format!("tree {id}"), why);
        if kind == EntryKind::Commit {
            return Err(refuse("it holds a commit"));
        }
        if directory.insert(unescape(&name)?, entry(kind, &child)).is_some() {
            return Err(refuse("it holds a name twice"));
        }
    }
    Ok(directory)
}

/// The entries of any tree, with names as stored.
///
/// # Errors
///
/// [`Error::Damaged`] for something that is not a tree, or modes that git does not write.
pub(in crate::store) fn entries(
    repo: &Repo,
    id: &oid,
) -> Result<Vec<(Vec<u8>, EntryKind, ObjectId)>> {
    parse(repo.hash, id, &repo.read(id, ObjectKind::Tree)?)
}

/// Parses the bytes of a tree, as [`entries`] does.
pub(in crate::store) fn parse(
    hash: HashKind,
    id: &oid,
    body: &[u8],
) -> Result<Vec<(Vec<u8>, EntryKind, ObjectId)>> {
    let damaged = |why: String| Error::damaged(format!("tree {id}"), why);
    TreeRefIter::from_bytes(body, hash)
        .map(|entry| {
            let entry = entry.map_err(|err| damaged(err.to_string()))?;
            let kind = match entry.mode.value() {
                0o40_000 => EntryKind::Tree,
                0o100_644 => EntryKind::Blob,
                0o100_755 => EntryKind::BlobExecutable,
                0o120_000 => EntryKind::Link,
                0o160_000 => EntryKind::Commit,
                mode => return Err(damaged(format!("it has an entry of mode {mode:o}"))),
            };
            Ok((entry.filename.to_vec(), kind, entry.oid.to_owned()))
        })
        .collect()
}

/// A tree of paths that no directory of a scan has as such.
#[derive(Default)]
pub(in crate::store) struct PathTree {
    files: Vec<(Vec<u8>, EntryKind, ObjectId)>,
    directories: BTreeMap<Vec<u8>, PathTree>,
}

impl PathTree {
    /// Adds the content of a file or symlink at a path with slashes between its names.
    pub(in crate::store) fn add(&mut self, path: &[u8], kind: EntryKind, id: ObjectId) {
        let mut names: Vec<&[u8]> = path.split(|&byte| byte == b'/').collect();
        let name = names.pop().unwrap_or_default();
        let mut directory = self;
        for name in names {
            directory = directory.directories.entry(name.to_vec()).or_default();
        }
        directory.files.push((name.to_vec(), kind, id));
    }

    /// Whether nothing was added.
    pub(in crate::store) fn is_empty(&self) -> bool {
        self.files.is_empty() && self.directories.is_empty()
    }

    /// Passes the bytes of every tree to `each`, which returns its id, and returns the top one.
    ///
    /// # Errors
    ///
    /// As `each`.
    pub(in crate::store) fn store(
        self,
        each: &mut dyn FnMut(Vec<u8>) -> Result<ObjectId>,
    ) -> Result<ObjectId> {
        let mut tree = TreeBuilder::default();
        for (name, directory) in self.directories {
            let id = directory.store(each)?;
            let bearer = Bearer { link: false, large: false };
            tree.add(&escape(&name, bearer), EntryKind::Tree, id);
        }
        for (name, kind, id) in self.files {
            // Nobody reads these as attributes, so a large file of that name needs no other.
            let bearer = Bearer { link: kind == EntryKind::Link, large: true };
            tree.add(&escape(&name, bearer), kind, id);
        }
        each(tree.finish())
    }
}

/// The entries of a checkpoint's tree.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::store) struct Parts {
    pub(in crate::store) files: Option<ObjectId>,
    pub(in crate::store) modes: Option<ObjectId>,
    pub(in crate::store) index: Option<ObjectId>,
    pub(in crate::store) extra: Option<ObjectId>,
}

/// The entries of the private part of a checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::store) struct PrivatePart {
    /// The record.
    pub(in crate::store) record: ObjectId,
    /// Everything private that it names.
    pub(in crate::store) private: Option<ObjectId>,
    /// The checkpoint's tree, if it holds as public what became private later: it has no other ref then.
    pub(in crate::store) public: Option<ObjectId>,
}

impl PrivatePart {
    /// The entries of its tree.
    pub(in crate::store) fn entries(self) -> [(&'static str, EntryKind, Option<ObjectId>); 3] {
        [
            ("private", EntryKind::Tree, self.private),
            ("public", EntryKind::Tree, self.public),
            ("record", EntryKind::Blob, Some(self.record)),
        ]
    }
}

/// Reads the private part of a checkpoint.
///
/// # Errors
///
/// [`Error::Damaged`] if it has no record.
pub(in crate::store) fn private_part(repo: &Repo, tree: ObjectId) -> Result<PrivatePart> {
    let mut record = None;
    let mut private = None;
    let mut public = None;
    for (name, kind, id) in entries(repo, &tree)? {
        match (&name[..], kind) {
            (b"record", EntryKind::Blob) => record = Some(id),
            (b"private", EntryKind::Tree) => private = Some(id),
            (b"public", EntryKind::Tree) => public = Some(id),
            _ => (),
        }
    }
    let record =
        record.ok_or_else(|| Error::damaged(format!("tree {tree}"), "it has no `record`"))?;
    Ok(PrivatePart { record, private, public })
}

/// Reads the top tree of a checkpoint: its entries, and the id of its `meta`.
pub(in crate::store) fn read_parts(repo: &Repo, tree: ObjectId) -> Result<(Parts, ObjectId)> {
    let mut parts = Parts::default();
    let mut meta = None;
    for (name, kind, id) in entries(repo, &tree)? {
        let part = match (&name[..], kind) {
            (b"files", EntryKind::Tree) => &mut parts.files,
            (b"modes", EntryKind::Blob) => &mut parts.modes,
            (b"index", EntryKind::Tree) => &mut parts.index,
            (b"index.extra", EntryKind::Blob) => &mut parts.extra,
            (b"meta", EntryKind::Blob) => &mut meta,
            // A newer format may have more entries; its `meta` has a newer version then.
            _ => continue,
        };
        *part = Some(id);
    }
    let meta = meta.ok_or_else(|| Error::damaged(format!("tree {tree}"), "it has no `meta`"))?;
    Ok((parts, meta))
}
