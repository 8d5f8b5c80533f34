//! Where a root is, and where it was first seen: `root.json`.

use std::{
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::{
    SIZE_MAX_BYTES,
    held::is_store_name,
    identity::{Identity, IdentityMatch, Registry},
    older,
    version::{FormatVersion, from_json, to_json},
};
use crate::{
    error::{Error, Result},
    fs::{create_private_dirs, is_in_the_way, read_small, replace_synced, set_aside},
    journal::{self, LineKind},
    model::{
        Root, RootKind,
        escape::{escape_path, escaped},
    },
    state::{RootState, StateDir},
};

/// The recorded location of a root. It distinguishes a removed root from an unmounted disk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RootLocation {
    /// The version of the format.
    pub version: FormatVersion,
    /// Its path.
    #[serde(with = "escaped")]
    pub path: PathBuf,
    /// Its device, inode and birth time.
    #[serde(flatten)]
    pub root: Identity,
    /// Identities of earlier directories at its path, the latest last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub former: Vec<Identity>,
    /// Device and inode of the parent directory.
    pub parent: (u64, u64),
    /// Its git directory, if it was a repository.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "escaped")]
    pub git_dir: Option<PathBuf>,
    /// The name of the private repository with its checkpoints, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub store: Option<String>,
    /// When it was first seen.
    pub first_seen: DateTime<Utc>,
}

/// Records where a root is, unless that is recorded already, and which private repository has its
/// checkpoints. Leaves a file of a newer version alone, and that of a root found under a second
/// path (see [`identity`](super::identity)).
pub fn write_location(
    state: &RootState,
    root: &Root,
    store: Option<&str>,
    now: DateTime<Utc>,
) -> Result<()> {
    let known = read_location(state);
    if matches!(known, Err(Error::FormatTooNew { .. })) {
        return Ok(());
    }
    let stat = |path: &Path| {
        let data = fs::metadata(path).map_err(Error::io("look at", path))?;
        Ok::<_, Error>((data.dev(), data.ino()))
    };
    let known = known.ok().flatten();
    if known.as_ref().is_some_and(|known| known.path != root.path()) && state.dir().is_symlink() {
        return Ok(());
    }
    let there = Identity::of(root.path()).map_err(Error::io("look at", root.path()))?;
    let place = RootLocation {
        version: FormatVersion,
        path: root.path().to_owned(),
        root: there,
        former: known
            .as_ref()
            .map_or_else(Vec::new, |known| there.former(&known.root, known.former.clone())),
        parent: stat(root.path().parent().unwrap_or(root.path()))?,
        git_dir: match root.kind() {
            RootKind::Git { git_dir, .. } => Some(git_dir.clone()),
            // It had one, and may have it again.
            RootKind::Plain { .. } => known.as_ref().and_then(|known| known.git_dir.clone()),
        },
        store: store
            .map(str::to_owned)
            .or_else(|| known.as_ref().and_then(|known| known.store.clone())),
        first_seen: known.as_ref().map_or(now, |known| known.first_seen),
    };
    if known.as_ref() == Some(&place) {
        return Ok(());
    }
    create_private_dirs(state.dir())?;
    if known.is_none() {
        older::mark_current(state.state());
    }
    if is_in_the_way(&state.location()) {
        set_aside(&state.location())?;
    }
    replace_synced(&state.location(), &to_json(&place))
}

/// Sets the state of an older build aside. Then moves the state of a root to its current path, if the root has moved or is mounted twice. Call
/// it before the state of a root that may be new is used.
///
/// # Errors
///
/// Fails if the state directory cannot be listed or renamed, or if another process saves for too
/// long. The root then counts as new.
pub fn settle(state: &StateDir, path: &Path, now: DateTime<Utc>) -> Result<IdentityMatch> {
    if let Some(older) = older::set_aside(state)? {
        let text =
            format!("the checkpoints of an older build are set aside in {}", escape_path(&older));
        journal::write(state, now, LineKind::Deed, None, &text);
    }
    let found = Registry::roots(state).resolve(path)?;
    if let IdentityMatch::Moved { from } = &found {
        let text = format!("the checkpoints of {} moved along", escape_path(from));
        journal::write(state, now, LineKind::Deed, Some(path), &text);
    }
    Ok(found)
}

/// Reads the location of a root; `None` if it was never recorded.
pub fn read_location(state: &RootState) -> Result<Option<RootLocation>> {
    let Some(bytes) = read_small(&state.location(), SIZE_MAX_BYTES)? else { return Ok(None) };
    let place: RootLocation = from_json("root.json", &bytes)?;
    match &place.store {
        Some(name) if !is_store_name(name) => Err(Error::damaged("root.json", "not a repository")),
        Some(_) | None => Ok(Some(place)),
    }
}

/// Reads the location of a root that has checkpoints, for which it must exist.
///
/// # Errors
///
/// [`Error::Damaged`] if there are records but no location; otherwise as [`read_location`].
pub fn known_location(state: &RootState) -> Result<Option<RootLocation>> {
    match read_location(state)? {
        None if !super::ids(state)?.is_empty() => Err(Error::damaged("root.json", "it is missing")),
        place => Ok(place),
    }
}
