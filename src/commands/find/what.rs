//! What the user looks for, by the way it is written. Pure.

use std::{
    ffi::OsStr,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use gix::glob::{wildmatch, wildmatch::Mode};

use crate::fs::without_dots;

/// Which files are meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum What {
    /// Every file: their contents decide.
    All,
    /// Files and directories with this name.
    Name(Vec<u8>),
    /// Files and directories with a path that ends so.
    End(Vec<u8>),
    /// What is, or was, at this very place.
    Place(PathBuf),
    /// Files with a name that fits a pattern.
    Names(Vec<u8>),
    /// Files with a path that fits a pattern; a `*` stays within a name, `**` does not.
    Paths(Vec<u8>),
}

impl What {
    /// Reads what was typed, seen from `cwd`.
    pub(super) fn of(given: &OsStr, cwd: &Path) -> Self {
        let bytes = given.as_bytes();
        let bytes = bytes.strip_suffix(b"/").filter(|bytes| !bytes.is_empty()).unwrap_or(bytes);
        let has_slash = bytes.contains(&b'/');
        let is_pattern = bytes.iter().any(|byte| matches!(byte, b'*' | b'?' | b'['));
        let is_place = [&b"/"[..], b"./", b"../"].iter().any(|start| bytes.starts_with(start))
            || matches!(bytes, b"." | b"..");
        match (is_pattern, has_slash) {
            (false, _) if is_place => {
                Self::Place(without_dots(&cwd.join(OsStr::from_bytes(bytes))))
            }
            (false, false) => Self::Name(bytes.to_owned()),
            (false, true) => Self::End(bytes.to_owned()),
            (true, false) => Self::Names(bytes.to_owned()),
            (true, true) => Self::Paths(bytes.strip_prefix(b"./").unwrap_or(bytes).to_owned()),
        }
    }

    /// Whether what is at `path` below `root`, or at `path` itself without one, is meant.
    pub(super) fn fits(&self, root: Option<&Path>, path: &[u8], is_directory: bool) -> bool {
        let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
        match self {
            Self::All => !is_directory,
            Self::Name(wanted) => name == wanted,
            Self::End(end) => path
                .strip_suffix(&end[..])
                .is_some_and(|above| above.is_empty() || above.ends_with(b"/")),
            Self::Place(place) => {
                let path = Path::new(OsStr::from_bytes(path));
                root.map_or_else(|| path == place, |root| root.join(path) == *place)
            }
            // A name may have brackets of its own: `pages/[id].tsx`.
            Self::Names(pattern) => name == pattern || !is_directory && fits(pattern, name),
            Self::Paths(pattern) => path == pattern || !is_directory && fits(pattern, path),
        }
    }

    /// Whether what is meant may lie below the directory at `path`.
    pub(super) fn may_lie_below(&self, root: &Path, path: &[u8]) -> bool {
        match self {
            Self::Place(place) => place.starts_with(root.join(OsStr::from_bytes(path))),
            Self::All | Self::Name(_) | Self::End(_) | Self::Names(_) | Self::Paths(_) => true,
        }
    }
}

fn fits(pattern: &[u8], text: &[u8]) -> bool {
    wildmatch(pattern.into(), text.into(), Mode::NO_MATCH_SLASH_LITERAL)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_way_it_is_written_says_what_is_meant() {
        let fits = |given: &str, path: &str| {
            let what = What::of(OsStr::new(given), Path::new("/home/ada/shop/src"));
            what.fits(Some(Path::new("/home/ada/shop")), path.as_bytes(), false)
        };
        for (given, path, expected) in [
            ("cart.ts", "src/cart.ts", true),
            ("cart.ts", "cart.ts", true),
            ("cart.ts", "src/mycart.ts", false),
            ("src/cart.ts", "src/cart.ts", true),
            ("src/cart.ts", "packages/a/src/cart.ts", true),
            ("src/cart.ts", "mysrc/cart.ts", false),
            ("./cart.ts", "src/cart.ts", true),
            ("./cart.ts", "cart.ts", false),
            ("../notes.md", "notes.md", true),
            ("/home/ada/shop/notes.md", "notes.md", true),
            ("*.ts", "src/deep/cart.ts", true),
            ("c?rt.[jt]s", "src/cart.ts", true),
            ("src/*.ts", "src/cart.ts", true),
            ("src/*.ts", "src/deep/cart.ts", false),
            ("src/**/*.ts", "src/deep/cart.ts", true),
            ("src/", "src", true),
            ("[id].ts", "pages/[id].ts", true),
            ("pages/[id].ts", "pages/[id].ts", true),
        ] {
            assert_eq!(fits(given, path), expected, "{given} {path}");
        }
    }

    #[test]
    fn a_pattern_means_files_and_a_name_means_both() {
        let what = |given: &str| What::of(OsStr::new(given), Path::new("/"));
        assert!(what("src").fits(Some(Path::new("/")), b"src", true));
        assert!(!what("s*").fits(Some(Path::new("/")), b"src", true));
        assert!(!What::All.fits(Some(Path::new("/")), b"src", true));
    }
}
