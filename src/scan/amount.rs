//! How much there is at a path that the walk left out: few enough files, or too many to be held for
//! their own sake; and what a file counts that is mostly holes.

use std::{ffi::CStr, io, ops::RangeInclusive};

use super::Scan;
use crate::{
    fs::Dir,
    model::{DirPath, Kind, RelPath, SkipReason},
};

/// An ignored path with more in it is most likely something that is made again.
pub(super) const SPARED_FILES_MAX: usize = 200;
/// The same, by its size.
pub(super) const SPARED_BYTES_MAX: u64 = 4 << 20;
/// Ignored paths beyond this are not even looked at.
const SPARED_PATHS_MAX: usize = 1_000;
/// A file that is mostly holes counts with the room it takes, up to this size: reading it takes
/// about a second, holes and all.
pub(super) const SPARSE_MAX_BYTES: u64 = 1 << 30;
/// The same where somebody waits for us, and other files for their turn.
pub(super) const SPARSE_SOON_MAX_BYTES: u64 = 256 << 20;
/// As deep as the walk goes.
pub(super) const DEPTH_MAX: usize = 900;

/// What the walk left out and somebody may want back all the same, if it is little.
pub(super) fn spared(scan: &Scan) -> Vec<RelPath> {
    let mut spared = Vec::new();
    scan.each(|dir, row| {
        let worth = match row.skipped {
            Some(SkipReason::Ignored | SkipReason::MadeAgain | SkipReason::TooLarge) => true,
            Some(_) | None => false,
        };
        if worth && spared.len() < SPARED_PATHS_MAX {
            let path = RelPath::from_bytes(&DirPath(dir.to_vec()).join(row.name));
            spared.extend(path.ok());
        }
    });
    spared
}

/// How much there is below a path: files, and their bytes.
#[derive(Default)]
pub(super) struct Amount {
    pub(super) files: usize,
    pub(super) bytes: u64,
}

impl Amount {
    /// Adds what is at `name`, as long as it is little.
    pub(super) fn add(&mut self, dir: &Dir, name: &CStr, depth: usize) -> io::Result<()> {
        let stamp = dir.stat_child(name)?;
        self.files += 1;
        if stamp.kind() == Some(Kind::File) {
            self.bytes += weight(dir, name, stamp.size, SPARED_BYTES_MAX..=SPARSE_MAX_BYTES);
        }
        if stamp.kind() != Some(Kind::Directory) || depth >= DEPTH_MAX {
            return Ok(());
        }
        let open = dir.open_child(name)?;
        let mut names = Vec::new();
        open.list(|listed| names.push(listed.name))?;
        for name in names {
            if self.files > SPARED_FILES_MAX {
                break;
            }
            self.add(&open, &name, depth + 1)?;
        }
        Ok(())
    }
}

/// How much a file of `size` bytes counts. It is looked at for holes only where they `matter`.
pub(super) fn weight(dir: &Dir, name: &CStr, size: u64, matter: RangeInclusive<u64>) -> u64 {
    if !matter.contains(&size) {
        return size;
    }
    dir.room_of(name).map_or(size, |room| room.min(size))
}
