//! Whether a root is still where it was, and everything that is to be had of its checkpoints.

use std::{fs, io, os::unix::fs::MetadataExt, path::Path};

use super::{Store, record::RootLocation};
use crate::{
    error::Result,
    model::{Root, RootKind, StoreChoice},
    root,
    state::State,
};

/// Whether a root is still where it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RootStatus {
    /// It is there.
    Live,
    /// It is gone, and the directory it was in is the one it was: somebody removed it.
    Gone,
    /// It cannot be seen, and neither can where it was: perhaps a disk that is not plugged in.
    Unreachable,
}

impl RootStatus {
    /// Looks.
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

/// The store of a root, which may be gone.
///
/// # Errors
///
/// Fails if it cannot be opened.
pub fn open_known(place: &RootLocation, state: &State) -> Result<Box<dyn Store>> {
    let path = &place.path;
    let kind = if path.is_dir() { root::kind_of(path) } else { RootKind::Plain { why: None } };
    super::open(&Root::new(path.clone(), kind), state, StoreChoice::Auto)
}
