//! Keeps conversations that their agent deletes: a second name for the agent's own file, as long as a
//! checkpoint of the session exists.
//!
//! The second name is a hard link. It takes no space, shows everything that the agent adds, and still
//! has the conversation when the agent removes its own name. On another file system it is a copy, made
//! again after each turn that changed the original. Nothing is ever written to the agent's file.

use std::{
    collections::BTreeSet,
    ffi::OsStr,
    fs::Metadata,
    io::{self, Read},
    os::unix::{ffi::OsStrExt, fs::MetadataExt},
    path::{Path, PathBuf},
};

use super::{
    clock::MaintenanceState,
    inventory::{RootInventory, all},
};
use crate::{
    agent::{by_agent, transcript},
    error::{Error, Result},
    fs::{
        Dir, c_name, create_private_dirs, is_own, link_count, list_names, remove_if_there, replace,
        stat_path,
    },
    ledger,
    model::{Agent, By, SessionId},
    process::Process,
    state::{StateDir, hash_name},
};

/// A week of conversation. Once the agent has deleted a conversation, it counts toward the disk limit,
/// which is there for files first.
const SIZE_MAX_BYTES: u64 = 64 << 20;

/// The path where the agent keeps a conversation: `reported` by its payloads, or its usual place.
pub fn original(
    process: &Process<'_>,
    agent: Agent,
    session: &SessionId,
    reported: Option<PathBuf>,
) -> Option<PathBuf> {
    if let Some(path) = reported.filter(|path| path.is_absolute()) {
        return Some(path);
    }
    if agent != Agent::CopilotCli {
        return None;
    }
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    let name = Some(&session.0).filter(|name| name.bytes().all(is_plain))?;
    let home = match process.var("COPILOT_HOME") {
        Some(home) => PathBuf::from(home),
        None => process.home()?.join(".copilot"),
    };
    Some(home.join("session-state").join(name).join("events.jsonl"))
}

/// The second name of the file that an agent has at `original`.
pub fn kept(state: &StateDir, agent: Agent, session: &SessionId, original: &Path) -> PathBuf {
    let agent = by_agent(agent).name.as_bytes();
    let name = hash_name(&[agent, session.0.as_bytes(), original.as_os_str().as_bytes()]);
    state.conversations().join(name)
}

/// Whether there is nothing for [`keep`] to do. Costs two stats.
pub fn is_kept(state: &StateDir, agent: Agent, session: &SessionId, original: &Path) -> bool {
    let Ok(there) = std::fs::symlink_metadata(original) else { return true };
    let name = original.file_name().and_then(OsStr::to_str).unwrap_or_default();
    !transcript::is_name_of(agent, name, &session.0)
        || !is_keepable(&there)
        || is_current(&kept(state, agent, session, original), &there)
}

/// Keeps the conversation of a session, if the agent's name for the file says that it is one.
///
/// # Errors
///
/// Fails if the conversation cannot be read, or the state directory cannot be written.
pub fn keep(
    process: &Process<'_>,
    state: &StateDir,
    agent: Agent,
    session: &SessionId,
) -> Result<()> {
    let reported = ledger::transcript(state, by_agent(agent).name, &session.0);
    let Some(original) = original(process, agent, session, reported) else { return Ok(()) };
    let name = original.file_name().and_then(OsStr::to_str).unwrap_or_default();
    if !transcript::is_name_of(agent, name, &session.0) {
        return Ok(());
    }
    for path in files(agent, &original) {
        let to = kept(state, agent, session, &path);
        match keep_file(&path, &to) {
            Err(err) if err.is_missing() => (),
            done => done?,
        }
    }
    Ok(())
}

/// A conversation, and the file beside it that a fork needs too.
fn files(agent: Agent, original: &Path) -> Vec<PathBuf> {
    let companion = transcript::companion(agent).map(|name| original.with_file_name(name));
    [original.to_owned()].into_iter().chain(companion).collect()
}

/// True for a file of the user's own, and of a size that may be kept.
fn is_keepable(found: &Metadata) -> bool {
    found.is_file() && is_own(found) && found.len() <= SIZE_MAX_BYTES
}

fn keep_file(from: &Path, to: &Path) -> Result<()> {
    // Neither a symlink nor a pipe is opened.
    if !std::fs::symlink_metadata(from).is_ok_and(|found| is_keepable(&found)) {
        return Ok(());
    }
    let name = c_name(from.file_name().unwrap_or_default().as_bytes());
    let name = name.map_err(Error::io("read the conversation", from))?;
    let dir = Dir::open(from.parent().unwrap_or(Path::new("/")));
    let dir = dir.map_err(Error::io("read the conversation", from))?;
    let (file, _) = dir.open_file(&name).map_err(Error::io("read the conversation", from))?;
    let found = file.metadata().map_err(Error::io("read the conversation", from))?;
    if !is_keepable(&found) || is_current(to, &found) {
        return Ok(());
    }
    let above = to.parent().unwrap_or(Path::new("/"));
    create_private_dirs(above)?;
    if link(&dir, &name, &found, to).is_ok() {
        return Ok(());
    }
    // Another file system, or one without hard links.
    let mut text = Vec::new();
    let read = file.take(SIZE_MAX_BYTES).read_to_end(&mut text);
    read.map_err(Error::io("read the conversation", from))?;
    replace(to, &text)
}

/// Whether the second name is of this very file, or a copy of it that is as new.
fn is_current(kept: &Path, original: &Metadata) -> bool {
    let Ok(kept) = std::fs::symlink_metadata(kept) else { return false };
    let is_link = (kept.dev(), kept.ino()) == (original.dev(), original.ino());
    let copied_at = (kept.mtime(), kept.mtime_nsec());
    let changed_at = (original.mtime(), original.mtime_nsec());
    is_link || (kept.len() == original.len() && copied_at > changed_at)
}

/// Puts a hard link to a file in the place of an earlier one, in one step.
fn link(dir: &Dir, name: &std::ffi::CStr, found: &Metadata, to: &Path) -> io::Result<()> {
    let above = Dir::open(to.parent().unwrap_or(Path::new("/")))?;
    let last = to.file_name().unwrap_or_default();
    // Maintenance recognises this as a temporary name.
    let temporary = format!("{}.tmp-{}-0", last.display(), std::process::id());
    let temporary = c_name(temporary.as_bytes())?;
    dir.link(name, &above, &temporary)?;
    // The agent may have put another file there since it was opened.
    let linked = if above.stat_child(&temporary)?.inode == found.ino() {
        above.rename(&temporary, &above, &c_name(last.as_bytes())?)
    } else {
        Err(io::ErrorKind::NotFound.into())
    };
    if linked.is_err() {
        above.remove_file(&temporary)?;
    }
    linked
}

/// Drops the conversations of sessions without a checkpoint, after the user has dropped some.
///
/// # Errors
///
/// Fails if the roots cannot be listed, or one cannot be removed.
pub fn drop_unused(process: &Process<'_>, state: &StateDir) -> Result<()> {
    let mut memory = MaintenanceState::read(state)?;
    let (inventories, unreadable) = all(process, state, &mut memory)?;
    if unreadable.is_empty() {
        drop_unused_by(process, state, &inventories)?;
    }
    Ok(())
}

/// Drops the conversations of sessions that have none of the checkpoints in all `inventories`. Does
/// nothing while a record cannot be read, because it may be of such a session.
///
/// # Errors
///
/// Fails if one cannot be removed.
pub(super) fn drop_unused_by(
    process: &Process<'_>,
    state: &StateDir,
    inventories: &[RootInventory],
) -> Result<()> {
    let names = list_names(&state.conversations())?;
    if names.is_empty() || inventories.iter().any(|root| !root.unreadable.is_empty()) {
        return Ok(());
    }
    let mut wanted = BTreeSet::new();
    let mut checkpoints = BTreeSet::new();
    for checkpoint in inventories.iter().flat_map(|root| &root.checkpoints) {
        checkpoints.insert(checkpoint.id);
        if let Some(by) = &checkpoint.cause.by {
            wanted.extend(names_of(process, state, by));
        }
    }
    for used in ledger::uses(state) {
        if checkpoints.contains(&used.checkpoint) {
            wanted.extend(names_of(process, state, &used.by));
        }
    }
    for name in names {
        let path = state.conversations().join(name);
        if !wanted.contains(&path) {
            remove_if_there(&path)?;
        }
    }
    Ok(())
}

fn names_of(process: &Process<'_>, state: &StateDir, by: &By) -> Vec<PathBuf> {
    let original = original(process, by.agent, &by.session, by.transcript.clone());
    let files = original.into_iter().flat_map(|original| files(by.agent, &original));
    files.map(|path| kept(state, by.agent, &by.session, &path)).collect()
}

/// Frees the conversations that nothing but the second name holds, and returns their size in bytes.
///
/// # Errors
///
/// Fails if one cannot be removed.
pub(super) fn give_up(state: &StateDir) -> Result<u64> {
    let mut freed = 0;
    for name in list_names(&state.conversations())? {
        let path = state.conversations().join(name);
        if link_count(&path) == Some(1) {
            freed += stat_path(&path).map_or(0, |stamp| stamp.size);
            remove_if_there(&path)?;
        }
    }
    Ok(freed)
}
