//! Which directories of a repository have objects, and which of their files are some.

use std::{
    ffi::OsStr,
    fs,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use gix::bstr::ByteSlice;

use super::super::{is_below_refs, is_object_dir, names_of};
use crate::model::join_path;

/// Deeper than git follows alternates, and than submodules nest.
pub(super) const DEPTH_MAX: usize = 100;

/// Every object directory below a git directory, by relative path.
pub(in crate::store::repository) fn object_dirs(top: &Path) -> Vec<Vec<u8>> {
    let mut found = Vec::new();
    find_object_dirs(top, b"", 0, &mut found);
    found
}

fn find_object_dirs(top: &Path, path: &[u8], depth: usize, found: &mut Vec<Vec<u8>>) {
    let dir = top.join(OsStr::from_bytes(path));
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let name = name.as_bytes();
        let below = join_path(path, name);
        if is_object_dir(top, &below) {
            found.push(below);
        } else if entry.file_type().is_ok_and(|kind| kind.is_dir())
            && !is_below_refs(&below)
            && depth < DEPTH_MAX
        {
            find_object_dirs(top, &below, depth + 1, found);
        }
    }
}

/// Every linked object directory, relative to `linked`, except those of alternates.
pub(in crate::store::repository) fn linked_object_dirs(linked: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    find_linked(linked, Path::new(""), 0, &mut found);
    found
}

fn find_linked(linked: &Path, name: &Path, depth: usize, found: &mut Vec<PathBuf>) {
    for child in names_of(&linked.join(name)).unwrap_or_default() {
        let below = name.join(&child);
        if child == "objects" {
            found.push(below);
        } else if below != Path::new("alternates")
            && depth < DEPTH_MAX
            && linked.join(&below).is_dir()
        {
            find_linked(linked, &below, depth + 1, found);
        }
    }
}

/// The kind of a directory in or below an object directory.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::store::repository) enum ObjectDirKind {
    /// `objects` itself.
    Top,
    /// `objects/pack`.
    Packs,
    /// `objects/ab`: loose objects.
    Fan,
    /// Anything of a git extension. Its files have arbitrary names.
    Extension,
    /// Anything else.
    Other,
}

impl ObjectDirKind {
    /// The kind of a directory of git's own, `depth` levels below `objects`.
    pub(in crate::store::repository) fn of(name: &[u8], depth: usize) -> Self {
        let name = name.rsplit(|&byte| byte == b'/').next().unwrap_or_default();
        match depth {
            0 => Self::Top,
            1 if name == b"pack" => Self::Packs,
            1 if name.len() == 2 && is_hex(name) => Self::Fan,
            _ => Self::Other,
        }
    }

    pub(super) fn has_directory(self, name: &[u8]) -> bool {
        match self {
            Self::Top => Self::of(name, 1) != Self::Other,
            Self::Extension => true,
            Self::Packs | Self::Fan | Self::Other => false,
        }
    }

    /// Whether a file is an object, a pack, or belongs to one. Not files that git derives from
    /// others, nor temporary files. Git takes an empty loose object for a damaged one.
    pub(in crate::store::repository) fn has_object(self, name: &[u8], size: u64) -> bool {
        match self {
            Self::Packs => {
                let ends = [&b".bitmap"[..], b".keep", b".lock", b".rev", b".mtimes"];
                name.starts_with(b"pack-")
                    && !is_unfinished(name)
                    && !ends.iter().any(|end| name.ends_with(end))
            }
            Self::Fan => matches!(name.len(), 38 | 62) && is_hex(name) && size > 0,
            Self::Extension => !is_unfinished(name),
            Self::Top | Self::Other => false,
        }
    }
}

fn is_hex(name: &[u8]) -> bool {
    name.iter().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// Whether a file is one of our unfinished copies: see [`copy_whole`](super::copy_whole).
pub(in crate::store::repository) fn is_unfinished(name: &[u8]) -> bool {
    let Some(at) = name.rfind(b".tmp-") else { return false };
    let mut numbers = name[at + b".tmp-".len()..].split(|&byte| byte == b'-');
    numbers.all(|number| !number.is_empty() && number.iter().all(u8::is_ascii_digit))
}
