//! Which checkpoints hold which versions of a file. A directory that is equal in two of them is read
//! once.

use std::{
    collections::{BTreeMap, HashMap},
    os::unix::ffi::OsStrExt,
    rc::Rc,
};

use super::what::FileQuery;
use crate::{
    commands::Project,
    error::{Error, Result},
    model::{Checkpoint, Content, ContentId, Entry, Kind, Tree},
};

/// Where a file is or was.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Spot {
    /// Below the root.
    Below(Vec<u8>),
    /// Elsewhere; absolute.
    Outside(Vec<u8>),
}

/// One content of a file, however many checkpoints have it. Checkpoints are told by their place in
/// the order of all, the oldest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FileVersion {
    /// What sort of file.
    pub(super) kind: Kind,
    /// Its bytes; none for what has none, and for a directory.
    pub(super) content: Option<Content>,
    /// The first checkpoint that has it.
    pub(super) first: usize,
    /// The last one that has it.
    pub(super) last: usize,
    /// How many have it.
    pub(super) count: usize,
}

/// What the checkpoints of one root hold of what is looked for.
pub(super) struct Versions {
    /// All checkpoints, the oldest first.
    pub(super) checkpoints: Vec<Checkpoint>,
    /// The versions of each file, the one seen last first.
    pub(super) of: BTreeMap<Spot, Vec<FileVersion>>,
    /// Checkpoints that could not be read, and why.
    pub(super) unread: Vec<(Checkpoint, Error)>,
}

impl Versions {
    /// Looks through every checkpoint of a root, those before restores included: they hold bytes
    /// like any other.
    ///
    /// # Errors
    ///
    /// Fails if the checkpoints cannot be listed.
    pub(super) fn find(project: &Project, wanted: &FileQuery) -> Result<Self> {
        let mut checkpoints = project.store.list()?;
        checkpoints.reverse();
        let mut search = Search { project, wanted, read: HashMap::new() };
        let mut found = Self { checkpoints: Vec::new(), of: BTreeMap::new(), unread: Vec::new() };
        for (n, checkpoint) in checkpoints.iter().enumerate() {
            match search.checkpoint(checkpoint) {
                Ok(held) => {
                    for (spot, entry) in held {
                        found.see(spot, &entry, n);
                    }
                }
                Err(err) => found.unread.push((checkpoint.clone(), err)),
            }
        }
        for versions in found.of.values_mut() {
            versions.sort_by_key(|version| std::cmp::Reverse(version.last));
        }
        found.checkpoints = checkpoints;
        Ok(found)
    }

    fn see(&mut self, spot: Spot, entry: &Entry, n: usize) {
        // What is in a directory has versions of its own.
        let content = entry.content.filter(|_| entry.kind != Kind::Directory);
        let versions = self.of.entry(spot).or_default();
        let is_it = |version: &&mut FileVersion| {
            version.kind == entry.kind
                && version.content.map(|content| content.id) == content.map(|content| content.id)
        };
        match versions.iter_mut().find(is_it) {
            Some(version) => {
                version.last = n;
                version.count += 1;
            }
            None => {
                versions.push(FileVersion {
                    kind: entry.kind,
                    content,
                    first: n,
                    last: n,
                    count: 1,
                });
            }
        }
    }
}

/// What a directory has of what is looked for, and the directories in it that have any.
#[derive(Default)]
struct MatchTree {
    own: Vec<(Vec<u8>, Entry)>,
    below: Vec<Rc<MatchTree>>,
}

impl MatchTree {
    fn is_empty(&self) -> bool {
        self.own.is_empty() && self.below.is_empty()
    }

    fn each(&self, to: &mut BTreeMap<Spot, Entry>) {
        to.extend(self.own.iter().map(|(path, entry)| (Spot::Below(path.clone()), *entry)));
        for below in &self.below {
            below.each(to);
        }
    }
}

struct Search<'a> {
    project: &'a Project,
    wanted: &'a FileQuery,
    /// Directories that have been read, by their place and their id.
    read: HashMap<(Vec<u8>, ContentId), Rc<MatchTree>>,
}

impl Search<'_> {
    fn checkpoint(&mut self, checkpoint: &Checkpoint) -> Result<BTreeMap<Spot, Entry>> {
        let tree = self.project.store.tree(checkpoint.id)?;
        let mut held = BTreeMap::new();
        if let Some(top) = tree.top {
            self.directory(&top, &[])?.each(&mut held);
        }
        self.overlay(&tree, &mut held);
        Ok(held)
    }

    fn overlay(&self, tree: &Tree, held: &mut BTreeMap<Spot, Entry>) {
        let root = self.project.root.path();
        for (path, entry) in &tree.overlay {
            let path = path.as_bytes();
            if self.wanted.fits(Some(root), path, entry.kind == Kind::Directory) {
                held.insert(Spot::Below(path.to_owned()), *entry);
            }
        }
        for (path, entry) in &tree.outside {
            let path = path.as_os_str().as_bytes();
            if self.wanted.fits(None, path, entry.kind == Kind::Directory) {
                held.insert(Spot::Outside(path.to_owned()), *entry);
            }
        }
    }

    fn directory(&mut self, id: &ContentId, above: &[u8]) -> Result<Rc<MatchTree>> {
        let key = (above.to_owned(), *id);
        if let Some(held) = self.read.get(&key) {
            return Ok(held.clone());
        }
        let root = self.project.root.path();
        let mut held = MatchTree::default();
        for (name, entry) in self.project.store.directory(id)? {
            let path = if above.is_empty() { name } else { [above, b"/", &name[..]].concat() };
            let is_directory = entry.kind == Kind::Directory;
            if self.wanted.fits(Some(root), &path, is_directory) {
                held.own.push((path.clone(), entry));
            }
            let below = entry.content.filter(|_| is_directory);
            if let Some(content) = below.filter(|_| self.wanted.may_lie_below(root, &path)) {
                let below = self.directory(&content.id, &path)?;
                if !below.is_empty() {
                    held.below.push(below);
                }
            }
        }
        let held = Rc::new(held);
        self.read.insert(key, held.clone());
        Ok(held)
    }
}
