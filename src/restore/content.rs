//! Reads current bytes and those of a checkpoint, and compares them with what an agent wrote.

use crate::{
    attribution::{self, CurrentState, PathSide, PathState},
    error::Result,
    model::{CheckpointId, Entry, Kind, RelPath, Tree},
    plan::{Action, Choosable, Merged, PlanStep, RestorePlan},
    project::Project,
    store::{self, ContentSource, naming},
    ui::DiffSide,
};
use std::{collections::BTreeMap, io::Read, path::Path};

/// Larger files are not read to find out who made them.
const READ_MAX_BYTES: u64 = 32 << 20;

/// The bytes of the file at `path`, unless it is large.
pub(crate) fn bytes_now(project: &Project, path: &RelPath) -> Option<Vec<u8>> {
    small(project.root.path(), path, Kind::File)
}

pub(super) fn small(top: &Path, path: &RelPath, kind: Kind) -> Option<Vec<u8>> {
    limited(naming::on_disk(top, path, kind)?)
}

/// The bytes of a file of a checkpoint, unless it is large.
pub(crate) fn bytes_then(project: &Project, entry: &Entry) -> Option<Vec<u8>> {
    (entry.kind == Kind::File).then(|| held_bytes(project, entry))?
}

/// What is at a path, with its bytes.
pub(crate) enum PathContent {
    Nothing,
    /// A file, with its content and permission bits.
    File {
        bytes: Vec<u8>,
        permissions: u32,
    },
    /// A symlink, with its text.
    Link(Vec<u8>),
    /// Anything else.
    Other(Kind),
    TooLarge,
}

impl PathContent {
    /// It as a side of a difference; `None` if it is too large to be one.
    pub(crate) fn side(&self) -> Option<DiffSide<'_>> {
        Some(match self {
            Self::Nothing => DiffSide::Missing,
            Self::File { bytes, permissions } => {
                DiffSide::File { bytes, permissions: *permissions }
            }
            Self::Link(text) => DiffSide::Link(text),
            Self::Other(kind) => DiffSide::Other(*kind),
            Self::TooLarge => return None,
        })
    }
}

/// What is at a path now, and what a plan puts there. What is too large to be read is no more than its kind.
pub(crate) fn bytes_shown(
    project: &Project,
    plan: &RestorePlan,
    choosable: &Choosable,
    step: &PlanStep,
) -> (PathContent, PathContent) {
    let top = if choosable.is_outside { Path::new("/") } else { project.root.path() };
    let shown = |entry: &Entry, bytes: Option<Vec<u8>>| match (entry.kind, bytes) {
        (Kind::File, Some(bytes)) => PathContent::File { bytes, permissions: entry.permissions },
        (Kind::Link, Some(text)) => PathContent::Link(text),
        (kind, _) => PathContent::Other(kind),
    };
    let now = step.now.map_or(PathContent::Nothing, |now| {
        let is_read = now.kind.has_content();
        shown(&now, is_read.then(|| small(top, &step.path, now.kind)).flatten())
    });
    let merged = plan.merges.get(&step.path).filter(|_| !choosable.is_outside);
    let then = match (step.action, merged) {
        (Action::Remove, _) => PathContent::Nothing,
        (_, Some(Merged { bytes, permissions })) => {
            PathContent::File { bytes: bytes.clone(), permissions: *permissions }
        }
        (_, None) => {
            step.then.map_or(PathContent::Nothing, |then| shown(&then, held_bytes(project, &then)))
        }
    };
    (now, then)
}

/// The SHA-256, in hex, of a file's bytes or a symlink's text at a path. What has neither is no more than its
/// kind.
pub(super) fn digest_now(project: &Project, path: &RelPath, kind: Kind) -> Option<String> {
    if !kind.has_content() {
        return Some(attribution::digest_of_kind(kind));
    }
    attribution::digest_of(naming::on_disk(project.root.path(), path, kind)?).ok()
}

/// The same of a checkpoint's file or symlink, unless it is large.
pub(super) fn digest_then(project: &Project, entry: &Entry) -> Option<String> {
    match entry.kind {
        kind if !kind.has_content() => Some(attribution::digest_of_kind(kind)),
        _ => held_bytes(project, entry).map(|bytes| attribution::digest(&bytes)),
    }
}

/// The bytes of a checkpoint's file, or the text of a symlink.
pub(super) fn held_bytes(project: &Project, entry: &Entry) -> Option<Vec<u8>> {
    let content = entry.content.filter(|_| entry.kind.has_content())?;
    limited(project.store.open(&content).ok()?)
}

/// All that can be read from somewhere, unless it is a lot.
pub(super) fn limited(from: impl Read) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(READ_MAX_BYTES + 1).read_to_end(&mut bytes).ok()?;
    Some(bytes).filter(|bytes| bytes.len() as u64 <= READ_MAX_BYTES)
}

/// What is at a path now, to be compared with what an agent left there.
pub(super) struct Present<'a> {
    pub(super) project: &'a Project,
    pub(super) path: &'a RelPath,
    pub(super) side: PathSide,
    /// `None` where nothing is.
    pub(super) now: Option<Entry>,
    /// What a later checkpoint of the same session has there.
    pub(super) likely: Option<Entry>,
    /// The trees of the checkpoints right before calls that were not seen to end.
    pub(super) looks: &'a BTreeMap<CheckpointId, Tree>,
}

impl Present<'_> {
    /// What is there, if a checkpoint has the same bytes in the same kind of file.
    fn same(&self, held: Option<Entry>) -> Option<Entry> {
        let now = match self.side {
            PathSide::Root => {
                let store = self.project.store.as_ref();
                store::with_stored_id(store, self.path, self.now?, held, ContentSource::Disk)
            }
            PathSide::Outside => self.now?,
        };
        let held = held.filter(|held| held.kind == now.kind)?;
        let [held, here] = [held, now].map(|entry| entry.content.map(|content| content.id));
        (now.is_directory() || held == here).then_some(now)
    }
}

impl CurrentState for Present<'_> {
    fn is(&self, state: &PathState) -> bool {
        self.now.is_some_and(|now| {
            is_state(&now, state, || small(top(self.project, self.side), self.path, now.kind))
        })
    }

    fn is_directory(&self) -> bool {
        self.now.is_some_and(Entry::is_directory)
    }

    fn is_likely(&self) -> bool {
        self.same(self.likely).is_some()
    }

    fn was_at(&self, look: CheckpointId) -> bool {
        let Some(tree) = self.looks.get(&look) else { return false };
        match entry_at(self.project, tree, self.path, self.side) {
            Ok(None) => self.now.is_none(),
            Ok(Some(held)) => {
                self.same(Some(held)).is_some_and(|now| now.permissions == held.permissions)
            }
            Err(_) => false,
        }
    }
}

/// What a checkpoint has at a path, to be compared with what an agent left there.
pub(super) struct CheckpointSide<'a> {
    pub(super) project: &'a Project,
    pub(super) entry: Entry,
    /// What an earlier checkpoint of the same session has there, if calls before that one ended unseen.
    pub(super) likely: Option<Entry>,
}

impl CurrentState for CheckpointSide<'_> {
    fn is(&self, state: &PathState) -> bool {
        is_state(&self.entry, state, || held_bytes(self.project, &self.entry))
    }

    fn is_directory(&self) -> bool {
        self.entry.is_directory()
    }

    fn is_likely(&self) -> bool {
        let content = |entry: Entry| entry.content.map(|content| content.id);
        self.likely.is_some_and(|likely| {
            likely.kind == self.entry.kind && content(likely) == content(self.entry)
        })
    }

    fn was_at(&self, _look: CheckpointId) -> bool {
        false
    }
}

/// Whether an entry is what an agent left. `bytes` reads the content or the text of a symlink.
pub(crate) fn is_state(
    entry: &Entry,
    state: &PathState,
    bytes: impl FnOnce() -> Option<Vec<u8>>,
) -> bool {
    if state.kind() != Some(entry.kind) || state.permissions != entry.permissions {
        return false;
    }
    match (entry.kind, entry.content, state.id(), &state.sha) {
        // A directory, a pipe, a socket or a device is its kind and permissions.
        (kind, ..) if !kind.has_content() => true,
        // The store that named it may have been one of another kind.
        (_, Some(content), Some(id), _) => {
            content.id == id || bytes().is_some_and(|bytes| naming::is_name_of(&id, &bytes))
        }
        (_, _, _, Some(sha)) => bytes().is_some_and(|bytes| attribution::digest(&bytes) == *sha),
        (_, _, _, _) => false,
    }
}

/// What a checkpoint holds at a path of one side.
pub(super) fn entry_at(
    project: &Project,
    tree: &Tree,
    path: &RelPath,
    side: PathSide,
) -> Result<Option<Entry>> {
    match side {
        PathSide::Root => store::entry_at(project.store.as_ref(), tree, path),
        PathSide::Outside => Ok(tree.outside.get(&path.at_top()).copied()),
    }
}

/// Where the paths of a side begin.
pub(super) fn top(project: &Project, side: PathSide) -> &Path {
    match side {
        PathSide::Root => project.root.path(),
        PathSide::Outside => Path::new("/"),
    }
}
