//! Determines whether a root still exists, and opens the store of one that may not.

use std::{fs, io, os::unix::fs::MetadataExt, path::Path};

use super::{Store, record::RootLocation};
use crate::{
    error::Result,
    model::{Root, RootKind, StoreChoice},
    root,
    state::StateDir,
};

/// Whether a root still exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RootStatus {
    /// It exists.
    Live,
    /// It was removed: its parent directory is still the same one.
    Gone,
    /// Neither it nor its parent can be reached, perhaps because a disk is not mounted.
    Unreachable,
}

impl RootStatus {
    /// Checks the location.
    pub fn of(place: &RootLocation) -> Self {
        match fs::metadata(&place.path) {
            Ok(found) if found.is_dir() => return Self::Live,
            Err(err) if err.kind() == io::ErrorKind::NotFound => (),
            Ok(_) | Err(_) => return Self::Unreachable,
        }
        let above = place.path.parent().unwrap_or(Path::new("/"));
        let is_same = |data: fs::Metadata| (data.dev(), data.ino()) == place.parent;
        if fs::metadata(above).is_ok_and(is_same) { Self::Gone } else { Self::Unreachable }
    }
}

/// Opens the store of a root that may be gone.
///
/// # Errors
///
/// Fails if it cannot be opened.
pub fn open_known(place: &RootLocation, state: &StateDir) -> Result<Box<dyn Store>> {
    let path = &place.path;
    let kind = if path.is_dir() { root::kind_of(path) } else { RootKind::Plain { why: None } };
    super::open(&Root::new(path.clone(), kind), state, StoreChoice::Auto)
}
