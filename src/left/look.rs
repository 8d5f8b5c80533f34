//! Looks at what a call left, right after it.

use std::{
    io::Read,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use super::{BYTES_MAX, Line, State, What, append, digest, keep, path_text};
use crate::{
    error::Result,
    fs::{Dir, c_name, stat_path},
    model::{CheckpointId, Entry, Kind, Place, Reach, RelPath, Root, Scope, Settings},
    plan,
    process::Process,
    scan::Named,
    snapshot::{self, Look},
    state,
    store::{self, Store},
};

/// A file beyond it is not hashed to know it again.
const HASHED_MAX_BYTES: u64 = 4 << 20;
/// A command that changes more has an unknown author; a restore goes by the checkpoint alone.
const PATHS_MAX: usize = 5_000;
/// The bytes kept of what one command left.
const KEPT_MAX_BYTES: u64 = 1 << 20;
/// A no-change pass over 100,000 files, with room; nobody waits longer after a command.
const BUDGET: Duration = Duration::from_millis(400);

/// Notes what an edit left at the files it named.
///
/// # Errors
///
/// Fails if the log cannot be written.
pub(super) fn after_edit(
    at: i64,
    state: &state::State,
    root: &Root,
    by: &str,
    call: &str,
    paths: &[RelPath],
) -> Result<()> {
    let place = state.root(root);
    let line = |what| Line { at, by: by.to_owned(), what };
    let mut lines = Vec::new();
    for path in paths {
        let state = state_of(&root.join(path), |bytes| Some(keep(&place, bytes)));
        lines.push(line(What::Left { path: path_text(path), state }));
    }
    lines.push(line(What::Done { call: call.to_owned() }));
    append(&place, &lines)
}

/// Notes what changed in a root across a command: since `of`, the checkpoint of its turn. Notes
/// nothing at all if that would take too long, and then its author stays unknown.
///
/// # Errors
///
/// Fails if the root or its store cannot be read, or the log not written.
pub(super) fn after_shell(
    process: &Process<'_>,
    state: &state::State,
    settings: &Settings,
    root: &Root,
    by: &str,
    call: &str,
    of: CheckpointId,
) -> Result<()> {
    let at = super::call::at(process);
    let deadline = Instant::now() + BUDGET;
    let store = store::open(root, state, settings.store)?;
    let reach = Reach { root: root.clone(), scope: Scope::Whole, victims: Vec::new() };
    let wishes = snapshot::wishes(settings);
    let named = Named::Alone;
    let look =
        Look { reach: &reach, wishes: &wishes, named, spare: false, deadline: Some(deadline) };
    let scan = look.at(process, state, store.as_ref())?;
    if scan.partial {
        return Ok(());
    }
    let place = state.root(root);
    let line = |what| Line { at, by: by.to_owned(), what };
    let mut lines = Vec::new();
    if !scan.is_unchanged() {
        let (then, now) = (store.tree(of)?, store.identify(scan)?);
        let mut read = |tree: &crate::model::Tree, id: &_| {
            store::directory_of(store.as_ref() as &dyn Store, tree, id)
        };
        let changes = plan::changes(&then, &now, &mut read)?;
        if changes.len() > PATHS_MAX || Instant::now() > deadline {
            return Ok(());
        }
        let mut budget = KEPT_MAX_BYTES;
        for change in changes {
            let state = change.after.map(|entry| {
                let sha = kept_text(&place, &root.join(&change.path), &entry, &mut budget);
                named_by_store(&entry, sha)
            });
            lines.push(line(What::Left { path: path_text(&change.path), state }));
        }
    }
    lines.push(line(What::Done { call: call.to_owned() }));
    append(&place, &lines)
}

fn named_by_store(entry: &Entry, sha: Option<String>) -> State {
    let id = entry.content.filter(|content| {
        content.place == Place::Store && matches!(entry.kind, Kind::File | Kind::Link)
    });
    State {
        kind: entry.kind.mode_bits(),
        permissions: entry.permissions,
        id: id.map(|content| content.id.to_string()),
        sha,
    }
}

fn kept_text(
    place: &state::RootState,
    path: &Path,
    entry: &Entry,
    room: &mut u64,
) -> Option<String> {
    if entry.kind != Kind::File || *room == 0 {
        return None;
    }
    let bytes = read_file(path, BYTES_MAX)?;
    let size = bytes.len() as u64;
    let fits = size <= *room && !bytes.contains(&0);
    *room = room.saturating_sub(size);
    fits.then(|| keep(place, &bytes))
}

/// What is at `path`; `None` if nothing is.
pub(super) fn state_of(path: &Path, sha: impl FnOnce(&[u8]) -> Option<String>) -> Option<State> {
    let stamp = stat_path(path).ok()?;
    let kind = stamp.kind()?;
    let bytes = match kind {
        Kind::File if stamp.size <= HASHED_MAX_BYTES => read_file(path, HASHED_MAX_BYTES),
        _ => None,
    };
    let sha = bytes.and_then(|bytes| sha(&bytes).or_else(|| Some(digest(&bytes))));
    let permissions = if kind == Kind::Link { 0o777 } else { stamp.permissions() };
    Some(State { kind: kind.mode_bits(), permissions, id: None, sha })
}

fn read_file(path: &Path, size_max: u64) -> Option<Vec<u8>> {
    let above: PathBuf = path.parent()?.into();
    let name = c_name(path.file_name()?.as_encoded_bytes()).ok()?;
    let (file, stamp) = Dir::open(&above).ok()?.open_file(&name).ok()?;
    if stamp.size > size_max {
        return None;
    }
    let mut bytes = Vec::new();
    file.take(size_max).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}
