//! What differs between two trees, found without reading what is equal.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    error::{Error, Result},
    model::{ContentId, Directory, Entry, Kind, RelPath, Tree},
};

/// Reads the directories of either tree. The two trees are of one store.
pub type DirectoryReader<'a> = dyn FnMut(&Tree, &ContentId) -> Result<Directory> + 'a;

/// One path that differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Where.
    pub path: RelPath,
    /// What the first tree has there.
    pub before: Option<Entry>,
    /// What the second tree has there.
    pub after: Option<Entry>,
}

impl Change {
    /// Whether it is none after all.
    pub fn is_none(&self) -> bool {
        is_same(self.before.as_ref(), self.after.as_ref())
    }

    /// Whether a directory is there now, and a file was.
    pub fn made_directory_of_file(&self) -> bool {
        self.before.is_some_and(|then| !then.is_directory())
            && self.after.is_some_and(Entry::is_directory)
    }

    /// Whether a directory is there now, and none was.
    pub fn made_directory(&self) -> bool {
        self.after.is_some_and(Entry::is_directory) && !self.before.is_some_and(Entry::is_directory)
    }
}

/// Finds every path that differs between two trees, parents before what is in them.
///
/// # Errors
///
/// Fails if a directory cannot be read, or has a name that no file can have.
pub fn changes(before: &Tree, after: &Tree, read: &mut DirectoryReader<'_>) -> Result<Vec<Change>> {
    let mut candidates = Candidates::new();
    // Equal ids mean equal permissions only where the same ones go without saying.
    let by_id = before.default_modes == after.default_modes;
    compare(before, after, [before.top, after.top], &[], by_id, read, &mut candidates)?;
    for (path, entry) in before.overlay.iter().chain(&after.overlay) {
        let elsewhere = [before.overlay.get(path), after.overlay.get(path)];
        if elsewhere != [Some(entry), Some(entry)] && !candidates.contains_key(path) {
            let pair = [entry_at(before, path, read)?, entry_at(after, path, read)?];
            candidates.insert(path.clone(), pair);
        }
    }
    let changes = candidates.into_iter().map(|(path, [left, right])| Change {
        before: before.overlay.get(&path).copied().or(left),
        after: after.overlay.get(&path).copied().or(right),
        path,
    });
    Ok(changes.filter(|change| !change.is_none()).collect())
}

/// Paths that may differ, with what the directories of either tree say.
type Candidates = BTreeMap<RelPath, [Option<Entry>; 2]>;

/// Whether two entries are the same file. A directory is judged by its permissions alone: what is
/// in it has entries of its own.
pub fn is_same(a: Option<&Entry>, b: Option<&Entry>) -> bool {
    match (a, b) {
        (Some(a), Some(b)) if a.is_directory() && b.is_directory() => {
            a.permissions == b.permissions
        }
        (Some(a), Some(b)) => {
            let same_bytes =
                a.content.map(|content| content.id) == b.content.map(|content| content.id);
            let same_place = a.content.map(|c| c.place) == b.content.map(|c| c.place);
            let permissions = a.kind == Kind::Link || a.permissions == b.permissions;
            a.kind == b.kind && same_bytes && same_place && permissions && a.device == b.device
        }
        (None, None) => true,
        (Some(_), None) | (None, Some(_)) => false,
    }
}

/// What `tree` has at `path`.
///
/// # Errors
///
/// Fails if a directory on the way cannot be read.
pub fn entry_at(
    tree: &Tree,
    path: &RelPath,
    read: &mut DirectoryReader<'_>,
) -> Result<Option<Entry>> {
    if let Some(entry) = tree.overlay.get(path) {
        return Ok(Some(*entry));
    }
    let Some(mut here) = tree.top else { return Ok(None) };
    let mut found = None;
    let mut names = path.names().peekable();
    while let Some(name) = names.next() {
        let Some(entry) = read(tree, &here)?.get(name).copied() else { return Ok(None) };
        found = Some(entry);
        match (entry.kind, entry.content) {
            (Kind::Directory, Some(content)) => here = content.id,
            _ if names.peek().is_some() => return Ok(None),
            _ => (),
        }
    }
    Ok(found)
}

/// Collects the paths below two directories that have different entries.
fn compare(
    before: &Tree,
    after: &Tree,
    [a, b]: [Option<ContentId>; 2],
    above: &[u8],
    by_id: bool,
    read: &mut DirectoryReader<'_>,
    candidates: &mut Candidates,
) -> Result<()> {
    if a == b && (by_id || a.is_none()) {
        return Ok(());
    }
    let mut read_side = |tree, id: Option<ContentId>| match id {
        Some(id) => read(tree, &id),
        None => Ok(Directory::new()),
    };
    let (left, right) = (read_side(before, a)?, read_side(after, b)?);
    let names: BTreeSet<&Vec<u8>> = left.keys().chain(right.keys()).collect();
    for name in names {
        let (x, y) = (left.get(name), right.get(name));
        if x == y && by_id {
            continue;
        }
        let path = if above.is_empty() { name.clone() } else { [above, b"/", name].concat() };
        let rel = RelPath::from_bytes(&path).map_err(|why| {
            Error::damaged(
                String::from_utf8_lossy(&path).escape_debug().to_string(),
                why.to_string(),
            )
        })?;
        candidates.insert(rel, [x.copied(), y.copied()]);
        let below = |entry: Option<&Entry>| {
            entry.filter(|entry| entry.is_directory())?.content.map(|content| content.id)
        };
        let pair = [below(x), below(y)];
        if pair != [None, None] {
            compare(before, after, pair, &path, by_id, read, candidates)?;
        }
    }
    Ok(())
}
