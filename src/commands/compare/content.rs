//! What is at a path, with its bytes if they are not too many.

use std::{fs::File, io::Read, os::unix::ffi::OsStrExt, path::Path};

use crate::{
    fs::{Dir, c_name},
    model::Kind,
    ui::DiffSide,
};

/// Larger files are named and not read: such a difference is too long to read.
pub(super) const FILE_MAX_BYTES: u64 = 32 << 20;

/// What is at a path, with its bytes.
pub(super) enum PathContent {
    Nothing,
    File { bytes: Vec<u8>, permissions: u32 },
    Link(Vec<u8>),
    Other(Kind),
    TooLarge,
}

impl PathContent {
    /// It as a side of a difference; `None` if it is too large to be one.
    pub(super) fn side(&self) -> Option<DiffSide<'_>> {
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

/// What is at an absolute path now. Never through a symlink.
pub(super) fn outside_on_disk(path: &Path) -> PathContent {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return PathContent::Nothing;
    };
    Dir::open(parent).map_or(PathContent::Nothing, |parent| child_on_disk(&parent, name.as_bytes()))
}

/// What has a name in a directory now.
pub(super) fn child_on_disk(parent: &Dir, name: &[u8]) -> PathContent {
    let Ok(name) = c_name(name) else { return PathContent::Nothing };
    let Ok(stamp) = parent.stat_child(&name) else { return PathContent::Nothing };
    match stamp.kind() {
        Some(Kind::File) => {
            match parent.open_file(&name).and_then(|(file, _)| limited_file(file)) {
                Ok(Some(bytes)) => PathContent::File { bytes, permissions: stamp.permissions() },
                Ok(None) | Err(_) => PathContent::TooLarge,
            }
        }
        Some(Kind::Link) => parent.read_link(&name).map_or(PathContent::Nothing, PathContent::Link),
        Some(kind) => PathContent::Other(kind),
        None => PathContent::Nothing,
    }
}

fn limited_file(file: File) -> std::io::Result<Option<Vec<u8>>> {
    limited(Box::new(file))
}

/// All bytes; `None` if there are too many.
pub(super) fn limited(from: Box<dyn Read>) -> std::io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    from.take(FILE_MAX_BYTES + 1).read_to_end(&mut bytes)?;
    Ok((bytes.len() as u64 <= FILE_MAX_BYTES).then_some(bytes))
}
