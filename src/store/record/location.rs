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
    identity::{Identity, IdentityMatch, Registry},
    version::{VERSION, Versioned, from_json, moment, to_json},
    wire::store_name,
};
use crate::{
    error::{Error, Result},
    fs::{create_private_dirs, read_small, replace_synced},
    journal::{self, LineKind},
    model::{Root, RootKind},
    state::{RootState, StateDir},
    store::escape::{escape_path, parse_path},
};

/// The recorded location of a root. It distinguishes a removed root from an unmounted disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RootLocation {
    /// Its path.
    pub path: PathBuf,
    /// Its device, inode and birth time.
    pub root: Identity,
    /// Identities of earlier directories at its path, the latest last.
    pub former: Vec<Identity>,
    /// Device and inode of the parent directory.
    pub parent: (u64, u64),
    /// Its git directory, if it was a repository.
    pub git_dir: Option<PathBuf>,
    /// The name of the private repository with its checkpoints, if there is one.
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
    replace_synced(&state.location(), &to_json(&LocationFile::of(&place)))
}

/// Moves the state of a root to its current path, if the root has moved or is mounted twice. Call
/// it before the state of a root that may be new is used.
///
/// # Errors
///
/// Fails if the state directory cannot be listed or renamed, or if another process saves for too
/// long. The root then counts as new.
pub fn settle(state: &StateDir, path: &Path, now: DateTime<Utc>) -> Result<IdentityMatch> {
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
    let file: LocationFile = from_json("root.json", &bytes)?;
    let place = file.into_location().ok_or_else(|| Error::damaged("root.json", "not a path"))?;
    Ok(Some(place))
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

/// `root.json`.
#[derive(Serialize, Deserialize)]
pub(super) struct LocationFile {
    version: u32,
    path: String,
    #[serde(flatten)]
    root: Identity,
    parent_device: u64,
    parent_inode: u64,
    kind: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    git_dir: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    store: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    former: Vec<Identity>,
    #[serde(with = "moment")]
    first_seen: DateTime<Utc>,
}

impl Versioned for LocationFile {
    fn version(&self) -> u32 {
        self.version
    }
}

impl LocationFile {
    fn of(place: &RootLocation) -> Self {
        Self {
            version: VERSION,
            path: escape_path(&place.path),
            root: place.root,
            parent_device: place.parent.0,
            parent_inode: place.parent.1,
            kind: if place.git_dir.is_some() { "git" } else { "plain" }.to_owned(),
            git_dir: place.git_dir.as_deref().map(escape_path),
            store: place.store.clone(),
            former: place.former.clone(),
            first_seen: place.first_seen,
        }
    }

    pub(super) fn into_location(self) -> Option<RootLocation> {
        Some(RootLocation {
            path: parse_path(&self.path).ok()?,
            root: self.root,
            former: self.former,
            parent: (self.parent_device, self.parent_inode),
            git_dir: self.git_dir.as_deref().map(parse_path).transpose().ok()?,
            store: match self.store {
                Some(name) => Some(store_name(name)?),
                None => None,
            },
            first_seen: self.first_seen,
        })
    }
}
