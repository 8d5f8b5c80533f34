//! What the user looks for, by the way it is written. Pure.

use std::{
    ffi::OsStr,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use gix::glob::{wildmatch, wildmatch::Mode};

use crate::fs::without_dots;

/// Which files are meant: those that are called what was typed; or, if that is a pattern and no file
/// is called so, those that fit it. Names have brackets of their own, as in `pages/[id].tsx`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FileQuery {
    as_written: NamePattern,
    pattern: Option<NamePattern>,
}

impl FileQuery {
    /// Every file: their contents decide.
    pub(super) const ALL: Self = Self { as_written: NamePattern::All, pattern: None };

    /// Reads what was typed, seen from `cwd`.
    pub(super) fn of(given: &OsStr, cwd: &Path) -> Self {
        let bytes = given.as_bytes();
        let bytes = bytes.strip_suffix(b"/").filter(|bytes| !bytes.is_empty()).unwrap_or(bytes);
        Self {
            as_written: NamePattern::as_written(bytes, cwd),
            pattern: NamePattern::pattern(bytes),
        }
    }

    /// Whether what is at `path` below `root`, or at `path` itself without one, may be meant.
    pub(super) fn fits(&self, root: Option<&Path>, path: &[u8], is_directory: bool) -> bool {
        let mut both = self.both();
        both.any(|what| what.fits(root, path, is_directory))
    }

    /// Whether it is called what was typed.
    pub(super) fn is_as_written(&self, root: Option<&Path>, path: &[u8]) -> bool {
        self.as_written.fits(root, path, false)
    }

    /// Whether what is meant may lie below the directory at `path`.
    pub(super) fn may_lie_below(&self, root: &Path, path: &[u8]) -> bool {
        let mut both = self.both();
        both.any(|what| what.may_lie_below(root, path))
    }

    fn both(&self) -> impl Iterator<Item = &NamePattern> {
        std::iter::once(&self.as_written).chain(&self.pattern)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum NamePattern {
    /// Every file.
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

impl NamePattern {
    fn as_written(bytes: &[u8], cwd: &Path) -> Self {
        let is_place = [&b"/"[..], b"./", b"../"].iter().any(|start| bytes.starts_with(start))
            || matches!(bytes, b"." | b"..");
        match (is_place, bytes.contains(&b'/')) {
            (true, _) => Self::Place(without_dots(&cwd.join(OsStr::from_bytes(bytes)))),
            (false, false) => Self::Name(bytes.to_owned()),
            (false, true) => Self::End(bytes.to_owned()),
        }
    }

    fn pattern(bytes: &[u8]) -> Option<Self> {
        if !bytes.iter().any(|byte| matches!(byte, b'*' | b'?' | b'[')) {
            return None;
        }
        Some(if bytes.contains(&b'/') {
            Self::Paths(bytes.strip_prefix(b"./").unwrap_or(bytes).to_owned())
        } else {
            Self::Names(bytes.to_owned())
        })
    }

    fn fits(&self, root: Option<&Path>, path: &[u8], is_directory: bool) -> bool {
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
            Self::Names(pattern) => !is_directory && fits(pattern, name),
            Self::Paths(pattern) => !is_directory && fits(pattern, path),
        }
    }

    fn may_lie_below(&self, root: &Path, path: &[u8]) -> bool {
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
            let wanted = FileQuery::of(OsStr::new(given), Path::new("/home/ada/shop/src"));
            wanted.fits(Some(Path::new("/home/ada/shop")), path.as_bytes(), false)
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
            ("[id]/page.ts", "app/[id]/page.ts", true),
            ("./[id].ts", "src/[id].ts", true),
            ("./[id].ts", "[id].ts", false),
        ] {
            assert_eq!(fits(given, path), expected, "{given} {path}");
        }
    }

    #[test]
    fn a_pattern_means_files_and_a_name_means_both() {
        let fits = |given: &str| {
            let wanted = FileQuery::of(OsStr::new(given), Path::new("/"));
            wanted.fits(Some(Path::new("/")), b"src", true)
        };
        assert_eq!([fits("src"), fits("s*")], [true, false]);
        assert!(!FileQuery::ALL.fits(Some(Path::new("/")), b"src", true));
    }
}
