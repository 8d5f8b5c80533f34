//! Sets the state of an older build aside: this one could read only a part of it.

use std::{fs, io, path::PathBuf};

use super::version::VERSION;
use crate::{
    crash,
    error::{Error, Result},
    fs::{create_private_dirs, list_names, read_small, replace, sync_dir},
    state::{StateDir, version_of},
};

/// Everything with a format of its own version, in the order in which it is moved. The roots come last, because
/// they tell that there is something to move.
const PARTS: [&str; 6] =
    ["sessions", "repositories", "objects", "objects.lock", "maintenance.json", "roots"];
/// Far more than the file of a root needs.
const ROOT_FILE_MAX_BYTES: u64 = 1 << 20;

/// Moves everything that an older build has stored to a directory of its own, and returns that. `None` if there
/// is nothing of an older build.
///
/// A file says that there is nothing, so that this is one system call nearly always. If it is missing, the files of
/// the roots decide.
///
/// # Errors
///
/// Fails if something cannot be moved. The next call does the rest.
pub(super) fn set_aside(state: &StateDir) -> Result<Option<PathBuf>> {
    let mark = state.format(VERSION);
    if mark.symlink_metadata().is_ok() || !state.dir().is_dir() {
        return Ok(None);
    }
    let aside = match older_version(state)? {
        Some(older) => Some(move_away(state, older)?),
        None => None,
    };
    mark_current(state);
    Ok(aside)
}

/// Notes that everything has the format of this build. That only saves a look at the roots, so a failure is harmless.
pub(super) fn mark_current(state: &StateDir) {
    let _again_next_time = replace(&state.format(VERSION), b"");
}

/// The version that the file of a root has, if it is an older one.
fn older_version(state: &StateDir) -> Result<Option<u32>> {
    for name in list_names(&state.roots())? {
        let file = state.root_named(&name).location();
        let bytes = read_small(&file, ROOT_FILE_MAX_BYTES).ok().flatten().unwrap_or_default();
        let version = version_of(&bytes).ok();
        if let Some(older) = version.filter(|version| *version < VERSION) {
            return Ok(Some(older));
        }
    }
    Ok(None)
}

fn move_away(state: &StateDir, version: u32) -> Result<PathBuf> {
    let mut number = 0_u32;
    let aside = loop {
        let aside = state.older(version, number);
        if !aside.join("roots").exists() {
            break aside;
        }
        number += 1;
    };
    create_private_dirs(&aside)?;
    for part in PARTS {
        let from = state.dir().join(part);
        match fs::rename(&from, aside.join(part)) {
            Ok(()) => crash::point("older-part"),
            Err(err) if err.kind() == io::ErrorKind::NotFound => (),
            Err(err) => return Err(Error::io("set aside", &from)(err)),
        }
    }
    // The hook that calls this has the ledger of its session open, and writes it again.
    create_private_dirs(&state.sessions())?;
    sync_dir(&aside)?;
    sync_dir(state.dir())?;
    Ok(aside)
}
