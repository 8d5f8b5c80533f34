//! Which versions of a file are held: by checkpoints, or apart from them between the steps of a turn. A
//! directory that is equal in two checkpoints is read once.

use std::{
    collections::{BTreeMap, HashMap},
    io::Read,
    os::unix::ffi::OsStrExt,
    rc::Rc,
};

use chrono::{DateTime, Utc};

use super::what::FileQuery;
use crate::{
    commands::{Project, rows},
    error::{Error, Result},
    model::{Checkpoint, CheckpointId, Content, ContentId, Entry, Kind, RelPath, Tree},
    restore::{BetweenSteps, StepVersion},
};

/// Where a file is or was.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Spot {
    /// Below the root.
    Below(Vec<u8>),
    /// Elsewhere; absolute.
    Outside(Vec<u8>),
}

/// When something was seen, and where it is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sighting {
    /// The place of the checkpoint in the order of all, the oldest first.
    order: usize,
    pub(super) at: DateTime<Utc>,
    /// The checkpoint that has it, or that the step is told from.
    pub(super) checkpoint: CheckpointId,
    /// The number of the turn and of the step before which it was there, if no checkpoint has it.
    pub(super) step: Option<(usize, usize)>,
}

/// One content of a file, however many checkpoints have it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FileVersion {
    /// What sort of file.
    pub(super) kind: Kind,
    /// Its bytes; none for what has none, and for a directory.
    pub(super) content: Option<Content>,
    /// Where it was seen first.
    pub(super) first: Sighting,
    /// Where it was seen last.
    pub(super) last: Sighting,
    /// How many checkpoints have it.
    pub(super) count: usize,
}

/// What one root holds of what is looked for.
pub(super) struct Versions {
    /// How many digits tell its checkpoints apart.
    pub(super) digits: usize,
    /// The versions of each file, the one seen last first.
    pub(super) of: BTreeMap<Spot, Vec<FileVersion>>,
    /// The bytes of versions that no checkpoint has, by their names.
    pub(super) contents: BTreeMap<ContentId, Vec<u8>>,
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
        let all = project.store.list()?;
        let mut checkpoints = all.clone();
        checkpoints.reverse();
        let digits = rows::digits(&checkpoints);
        let mut search = Search { project, wanted, read: HashMap::new() };
        let (of, contents, unread) = Default::default();
        let mut found = Self { digits, of, contents, unread };
        for (order, checkpoint) in checkpoints.iter().enumerate() {
            let (at, id) = (checkpoint.taken_at, checkpoint.id);
            match search.checkpoint(checkpoint) {
                Ok(held) => {
                    for (spot, entry) in held {
                        let seen = Sighting { order, at, checkpoint: id, step: None };
                        found.see(spot, &entry, seen);
                    }
                }
                Err(err) => found.unread.push((checkpoint.clone(), err)),
            }
        }
        found.see_steps(project, wanted, all, &checkpoints)?;
        for versions in found.of.values_mut() {
            versions.sort_by_key(|it| std::cmp::Reverse((it.last.order, it.last.at)));
        }
        Ok(found)
    }

    fn see(&mut self, spot: Spot, entry: &Entry, seen: Sighting) {
        // What is in a directory has versions of its own.
        let content = entry.content.filter(|_| entry.kind != Kind::Directory);
        let versions = self.of.entry(spot).or_default();
        let is_it = |version: &&mut FileVersion| {
            version.kind == entry.kind
                && version.content.map(|content| content.id) == content.map(|content| content.id)
        };
        let count = usize::from(seen.step.is_none());
        if let Some(version) = versions.iter_mut().find(is_it) {
            version.last = seen;
            version.count += count;
        } else {
            let kind = entry.kind;
            versions.push(FileVersion { kind, content, first: seen, last: seen, count });
        }
    }

    /// Adds what was there between the steps of turns and that no checkpoint has.
    fn see_steps(
        &mut self,
        project: &Project,
        wanted: &FileQuery,
        all: Vec<Checkpoint>,
        oldest_first: &[Checkpoint],
    ) -> Result<()> {
        let root = project.root.path();
        let is_wanted = |path: &RelPath| wanted.fits(Some(root), path.as_bytes(), false);
        let BetweenSteps { versions, contents } = BetweenSteps::of(project, all, is_wanted)?;
        for StepVersion { path, entry, number, at, base } in versions {
            let spot = Spot::Below(path.as_bytes().to_owned());
            let content = entry.content.and_then(|content| contents.get(&content.id));
            let known = self.of.get(&spot).map_or(&[][..], |known| known);
            let is_known = |known: &FileVersion| {
                let bytes = known.content.filter(|_| known.kind == entry.kind);
                bytes.zip(content).is_some_and(|(known, bytes)| has_bytes(project, &known, bytes))
            };
            let order = oldest_first.iter().position(|one| one.id == base);
            if let Some(order) = order.filter(|_| !known.iter().any(is_known)) {
                let seen = Sighting { order, at, checkpoint: base, step: Some(number) };
                self.see(spot, &entry, seen);
            }
        }
        self.contents = contents;
        Ok(())
    }
}

/// Whether a held content is these bytes.
fn has_bytes(project: &Project, content: &Content, bytes: &[u8]) -> bool {
    let mut held = Vec::new();
    let from = project.store.open(content).ok();
    let read = from.and_then(|from| from.take(bytes.len() as u64 + 1).read_to_end(&mut held).ok());
    read.is_some() && held == bytes
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
