//! What is, was or is to be at a path, and three of them made one.

use std::{
    cell::{OnceCell, RefCell},
    collections::{BTreeMap, BTreeSet},
    rc::Rc,
};

use super::{
    content::{entry_at, top},
    content::{held_bytes, small},
    merge::merge,
};
use crate::{
    attribution::{self, AtPath, LeftContents, PathSide},
    model::{CheckpointId, Content, ContentId, Entry, Kind, RelPath, Tree},
    project::Project,
    store::naming,
};

/// `None` where nothing is.
pub(super) type Version = Option<VersionEntry>;

/// Something at a path.
#[derive(Clone, Debug)]
pub(super) struct VersionEntry {
    pub(super) kind: Kind,
    /// `None` if they were not looked at.
    pub(super) permissions: Option<u32>,
    pub(super) bytes: VersionBytes,
    pub(super) device: u64,
}

/// The bytes of a file, or the text of a symlink.
#[derive(Clone, Debug)]
pub(super) enum VersionBytes {
    /// As a checkpoint has them.
    Held(Option<Content>),
    /// As they are on the disk, and what a store would call them.
    Here(Option<Content>),
    /// As a checkpoint of the fork has them that is brought back.
    ForkHeld(Option<Content>),
    /// As they are on the disk in that fork.
    ForkHere(Option<Content>),
    /// As the log has them.
    Noted { id: Option<ContentId>, sha: Option<String> },
    /// Just these.
    These(Vec<u8>),
}

/// Why three versions do not come to one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Clash {
    /// Both changed the same.
    Touches,
    /// It cannot be told: the bytes of one are not held.
    Unheld,
}

impl VersionEntry {
    pub(super) fn held(entry: Entry) -> Self {
        Self::of(entry, VersionBytes::Held(entry.content))
    }

    pub(super) fn here(entry: Entry) -> Self {
        Self::of(entry, VersionBytes::Here(entry.content))
    }

    pub(super) fn fork_held(entry: Entry) -> Self {
        Self::of(entry, VersionBytes::ForkHeld(entry.content))
    }

    pub(super) fn fork_here(entry: Entry) -> Self {
        Self::of(entry, VersionBytes::ForkHere(entry.content))
    }

    fn of(entry: Entry, bytes: VersionBytes) -> Self {
        let Entry { kind, permissions, device, .. } = entry;
        Self { kind, permissions: Some(permissions), bytes, device }
    }

    /// What was seen, if its kind is known.
    pub(super) fn seen(there: &AtPath) -> Version {
        match there {
            AtPath::Nothing => None,
            AtPath::Directory => {
                let (kind, bytes) = (Kind::Directory, VersionBytes::Held(None));
                Some(Self { kind, permissions: None, bytes, device: 0 })
            }
            AtPath::File(sha) => {
                let bytes = VersionBytes::Noted { id: None, sha: Some(sha.clone()) };
                Some(Self { kind: Kind::File, permissions: None, bytes, device: 0 })
            }
            AtPath::This(state) => {
                let bytes = VersionBytes::Noted { id: state.id(), sha: state.sha.clone() };
                let permissions = Some(state.permissions);
                Some(Self { kind: state.kind()?, permissions, bytes, device: 0 })
            }
        }
    }

    fn content(&self) -> Option<Content> {
        match self.bytes {
            VersionBytes::Held(content)
            | VersionBytes::Here(content)
            | VersionBytes::ForkHeld(content)
            | VersionBytes::ForkHere(content) => content,
            VersionBytes::Noted { .. } | VersionBytes::These(_) => None,
        }
    }

    /// Where a checkpoint holds it.
    pub(super) fn held_content(&self) -> Option<Content> {
        match self.bytes {
            VersionBytes::Held(content) => content,
            VersionBytes::Here(_)
            | VersionBytes::ForkHeld(_)
            | VersionBytes::ForkHere(_)
            | VersionBytes::Noted { .. }
            | VersionBytes::These(_) => None,
        }
    }

    fn id(&self) -> Option<ContentId> {
        match self.bytes {
            VersionBytes::Noted { id, .. } => id,
            _ => self.content().map(|content| content.id),
        }
    }
}

/// Where the bytes of versions are found.
pub(super) struct VersionSource<'a> {
    project: &'a Project,
    /// The fork that is brought back.
    fork: Option<&'a Project>,
    side: PathSide,
    /// The checkpoints since the turn, oldest first.
    since: Vec<CheckpointId>,
    trees: RefCell<BTreeMap<CheckpointId, Option<Rc<Tree>>>>,
    /// What calls left, once it was asked for.
    left: OnceCell<LeftContents>,
}

impl<'a> VersionSource<'a> {
    pub(super) fn new(project: &'a Project, side: PathSide, since: Vec<CheckpointId>) -> Self {
        let (trees, left) = Default::default();
        Self { project, fork: None, side, since, trees, left }
    }

    /// The versions of a project and of a fork of it.
    pub(super) fn with_fork(project: &'a Project, fork: &'a Project) -> Self {
        Self { fork: Some(fork), ..Self::new(project, PathSide::Root, Vec::new()) }
    }

    /// The files of a checkpoint, if they can be read.
    pub(super) fn tree(&self, id: CheckpointId) -> Option<Rc<Tree>> {
        let mut trees = self.trees.borrow_mut();
        let tree = || self.project.store.tree(id).ok().map(Rc::new);
        trees.entry(id).or_insert_with(tree).clone()
    }

    /// The bytes of a version at `path`, unless they are many or not held.
    pub(super) fn read(&self, path: &RelPath, found: &VersionEntry) -> Option<Vec<u8>> {
        match &found.bytes {
            VersionBytes::Held(content) => held(self.project, found.kind, *content),
            VersionBytes::ForkHeld(content) => held(self.fork?, found.kind, *content),
            VersionBytes::ForkHere(_) => small(self.fork?.root.path(), path, found.kind),
            VersionBytes::Here(_) => small(top(self.project, self.side), path, found.kind),
            VersionBytes::Noted { id, sha } => self.noted(path, found.kind, *id, sha.as_deref()),
            VersionBytes::These(bytes) => Some(bytes.clone()),
        }
    }

    /// What a call left: among the texts that are kept of calls, or in a later checkpoint.
    fn noted(
        &self,
        path: &RelPath,
        kind: Kind,
        id: Option<ContentId>,
        sha: Option<&str>,
    ) -> Option<Vec<u8>> {
        let left = || LeftContents::of(&self.project.state.root(&self.project.root));
        if let Some(bytes) = sha.and_then(|sha| self.left.get_or_init(left).get(sha)) {
            return Some(bytes);
        }
        let mut known = BTreeSet::new();
        let mut trees = self.since.iter().filter_map(|id| self.tree(*id));
        trees.find_map(|tree| {
            let entry = entry_at(self.project, &tree, path, self.side).ok().flatten()?;
            let content = entry.content.filter(|it| entry.kind == kind && known.insert(*it))?;
            let bytes = held(self.project, kind, Some(content))?;
            let is_it = id == Some(content.id) || is_noted(&bytes, id, sha);
            is_it.then_some(bytes)
        })
    }

    /// Whether two versions at `path` are the same.
    pub(super) fn is_same(&self, path: &RelPath, a: &Version, b: &Version) -> bool {
        match (a, b) {
            (None, None) => true,
            (Some(a), Some(b)) => {
                let same_permissions = a.kind == Kind::Link
                    || a.permissions.zip(b.permissions).is_none_or(|(a, b)| a == b);
                a.kind == b.kind && same_permissions && self.has_same_bytes(path, a, b)
            }
            (None, Some(_)) | (Some(_), None) => false,
        }
    }

    /// Whether two files have the same bytes, as far as that can be known.
    pub(super) fn has_same_bytes(
        &self,
        path: &RelPath,
        a: &VersionEntry,
        b: &VersionEntry,
    ) -> bool {
        if a.kind != b.kind || !a.kind.has_content() {
            return a.kind == b.kind;
        }
        if let (Some(a), Some(b)) = (a.content(), b.content())
            && a.is_comparable_to(&b)
        {
            return a.id == b.id;
        }
        match (&a.bytes, &b.bytes) {
            _ if a.id().is_some() && a.id() == b.id() => true,
            (
                VersionBytes::Noted { sha: Some(a), .. },
                VersionBytes::Noted { sha: Some(b), .. },
            ) => a == b,
            (VersionBytes::Noted { id, sha }, _) => {
                self.read(path, b).is_some_and(|bytes| is_noted(&bytes, *id, sha.as_deref()))
            }
            (_, VersionBytes::Noted { id, sha }) => {
                self.read(path, a).is_some_and(|bytes| is_noted(&bytes, *id, sha.as_deref()))
            }
            (_, _) => {
                let (a, b) = (self.read(path, a), self.read(path, b));
                a.zip(b).is_some_and(|(a, b)| a == b)
            }
        }
    }

    /// Takes back what led from `theirs` to `base`, where `ours` is what is there now. Says whether
    /// conflicts are marked in what comes of it.
    pub(super) fn merge_back(
        &self,
        path: &RelPath,
        [base, ours, theirs]: [&Version; 3],
        markers: bool,
    ) -> Result<(Version, bool), Clash> {
        if self.is_same(path, ours, base) {
            return Ok((theirs.clone(), false));
        }
        if self.is_same(path, ours, theirs) {
            return Ok((ours.clone(), false));
        }
        let (Some(base), Some(ours), Some(theirs)) = (base, ours, theirs) else {
            return Err(Clash::Touches);
        };
        if [base, ours, theirs].iter().any(|found| found.kind != Kind::File) {
            return Err(Clash::Touches);
        }
        let permissions = one_of([base, ours, theirs].map(|found| found.permissions));
        let permissions = permissions.ok_or(Clash::Touches)?;
        let same = |a, b| self.has_same_bytes(path, a, b);
        if same(ours, base) {
            return Ok((Some(VersionEntry { permissions, ..theirs.clone() }), false));
        }
        if same(ours, theirs) || same(base, theirs) {
            return Ok((Some(VersionEntry { permissions, ..ours.clone() }), false));
        }
        let read = |found| self.read(path, found).ok_or(Clash::Unheld);
        let (bytes, is_marked) =
            merge(&read(base)?, &read(ours)?, &read(theirs)?, markers).ok_or(Clash::Touches)?;
        let merged =
            VersionEntry { permissions, bytes: VersionBytes::These(bytes), ..ours.clone() };
        Ok((Some(merged), is_marked))
    }

    /// The bytes of a version apart from where it is.
    pub(super) fn with_bytes(&self, path: &RelPath, found: Version) -> Version {
        let found = found?;
        let bytes = self.read(path, &found)?;
        Some(VersionEntry { bytes: VersionBytes::These(bytes), ..found })
    }

    /// The one of some files that is most like another, if one is.
    pub(super) fn most_alike<'o>(
        &self,
        (path, found): (&RelPath, &VersionEntry),
        others: &'o [(RelPath, VersionEntry)],
    ) -> Option<&'o (RelPath, VersionEntry)> {
        if found.kind != Kind::File || others.len() > COMPARED_MAX {
            return None;
        }
        let bytes = self.read(path, found)?;
        let alike = |(path, other): &(RelPath, VersionEntry)| {
            let other = self.read(path, other).filter(|_| other.kind == Kind::File);
            other.map_or(0, |other| similarity(&bytes, &other))
        };
        let alike: Vec<usize> = others.iter().map(alike).collect();
        let most = *alike.iter().max()?;
        let mut best = alike.iter().enumerate().filter(|(_, it)| **it == most);
        let (at, _) = best.next()?;
        (most >= ALIKE_MIN && best.next().is_none()).then(|| &others[at])
    }
}

fn held(project: &Project, kind: Kind, content: Option<Content>) -> Option<Vec<u8>> {
    held_bytes(project, &Entry { kind, permissions: 0, content, device: 0 })
}

/// What becomes of something that is changed as a whole; `None` if both changed it.
fn one_of<T: PartialEq + Copy>([base, ours, theirs]: [T; 3]) -> Option<T> {
    if ours == base { Some(theirs) } else { (theirs == base || theirs == ours).then_some(ours) }
}

/// Whether bytes are those that the log has.
fn is_noted(bytes: &[u8], id: Option<ContentId>, sha: Option<&str>) -> bool {
    match (sha, id) {
        (Some(sha), _) => attribution::digest(bytes) == sha,
        (None, Some(id)) => naming::is_name_of(&id, bytes),
        (None, None) => false,
    }
}

/// Texts that share so many lines of a hundred are one, renamed.
pub(super) const ALIKE_MIN: usize = 50;
/// Of more new files, none is compared: that takes time, and proves little.
pub(super) const COMPARED_MAX: usize = 500;
/// Fewer lines in common prove nothing: many files are empty, or one word.
const SHARED_MIN: usize = 3;

/// How much of the lines of two texts is the same, of a hundred, blank ones left aside. Bytes that are no text
/// are the same or not.
pub(super) fn similarity(a: &[u8], b: &[u8]) -> usize {
    if a == b && a.contains(&0) {
        return 100;
    }
    if [a, b].iter().any(|bytes| bytes.contains(&0)) {
        return 0;
    }
    let lines = |bytes: &'_ [u8]| -> Vec<Vec<u8>> {
        let lines = bytes.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii);
        lines.filter(|line| !line.is_empty()).map(<[u8]>::to_vec).collect()
    };
    let [a, b] = [lines(a), lines(b)];
    let mut counts: BTreeMap<&[u8], usize> = BTreeMap::new();
    for line in &a {
        *counts.entry(line).or_default() += 1;
    }
    let mut shared = 0;
    for line in &b {
        if let Some(count) = counts.get_mut(&line[..]).filter(|count| **count > 0) {
            *count -= 1;
            shared += 1;
        }
    }
    if shared < SHARED_MIN { 0 } else { shared * 100 / a.len().max(b.len()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_both_changed_becomes_neither() {
        assert_eq!(one_of([1, 1, 2]), Some(2));
        assert_eq!(one_of([1, 2, 1]), Some(2));
        assert_eq!(one_of([1, 2, 2]), Some(2));
        assert_eq!(one_of([1, 2, 3]), None);
    }

    #[test]
    fn texts_are_alike_by_their_lines() {
        assert_eq!(similarity(b"a\nb\nc\n", b"a\nb\nc\n"), 100);
        assert_eq!(similarity(b"a\nb\nc\nd\n", b"c\nb\n\na\nx"), 75, "in whatever order");
        assert_eq!(similarity(b"a\nb\n", b"a\nb\n"), 0, "too few to tell");
        assert_eq!(similarity(b"a\n\n\n\n", b"b\n\n\n\n"), 0);
        assert_eq!(similarity(b"\0a\nb", b"\0a\nb"), 100);
        assert_eq!(similarity(b"\0a\nb", b"\0a\nc"), 0);
        assert_eq!(similarity(b"", b""), 0);
    }
}
