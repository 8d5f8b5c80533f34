//! What is at a path, with its bytes if they are not too many.

use std::{io::Read, os::unix::ffi::OsStrExt, path::Path};

use crate::{
    fs::{Dir, c_name},
    model::Kind,
    restore::PathContent,
};

/// Larger files are named and not read: such a difference is too long to read.
pub(super) const FILE_MAX_BYTES: u64 = 32 << 20;

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
        Some(Kind::File) => match parent.open_file(&name).and_then(|(file, _)| limited(file)) {
            Ok(Some(bytes)) => PathContent::File { bytes, permissions: stamp.permissions() },
            Ok(None) | Err(_) => PathContent::TooLarge,
        },
        Some(Kind::Link) => parent.read_link(&name).map_or(PathContent::Nothing, PathContent::Link),
        Some(kind) => PathContent::Other(kind),
        None => PathContent::Nothing,
    }
}

/// All bytes; `None` if there are too many.
pub(super) fn limited(from: impl Read) -> std::io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    from.take(FILE_MAX_BYTES + 1).read_to_end(&mut bytes)?;
    Ok((bytes.len() as u64 <= FILE_MAX_BYTES).then_some(bytes))
}
