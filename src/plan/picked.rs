//! What the user means: everything, or what paths and patterns fit, in the root or outside it.

use crate::model::RelPath;

/// The part of a root a restore is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Picked {
    /// Everything.
    All,
    /// These files and directories, with what is in them.
    Paths(Vec<Pick>),
}

/// A path, or a pattern with `*`, `?` or `[…]` in it. A `*` stays within a name; `**` does not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pick {
    path: RelPath,
    /// Whether it is outside the root, and the path relative to the top of the file system.
    is_outside: bool,
}

impl Pick {
    /// The path below the root, if it is no pattern.
    pub fn literal(&self) -> Option<&RelPath> {
        (!self.is_outside && !self.is_pattern()).then_some(&self.path)
    }

    /// The path outside the root, as seen from the top of the file system, if it is no pattern.
    pub fn literal_outside(&self) -> Option<&RelPath> {
        (self.is_outside && !self.is_pattern()).then_some(&self.path)
    }

    fn is_pattern(&self) -> bool {
        self.path.as_bytes().iter().any(|byte| b"*?[".contains(byte))
    }

    /// Takes a path as the user wrote it. If one is there by that very name, it is meant as well.
    pub fn of(path: RelPath) -> Self {
        Self { path, is_outside: false }
    }

    /// The same for a path outside the root, as seen from the top of the file system.
    pub fn outside(path: RelPath) -> Self {
        Self { path, is_outside: true }
    }

    fn has(&self, path: &RelPath) -> bool {
        use gix::glob::{wildmatch, wildmatch::Mode};
        if path.is_within(&self.path) {
            return true;
        }
        if !self.is_pattern() {
            return false;
        }
        let pattern = self.path.as_bytes();
        let fits = |path: &RelPath| {
            wildmatch(pattern.into(), path.as_bytes().into(), Mode::NO_MATCH_SLASH_LITERAL)
        };
        let above = path.with_above();
        above.into_iter().any(|path| fits(&path))
    }
}

impl Picked {
    /// Whether `path`, below the root, is part of it.
    pub fn has(&self, path: &RelPath) -> bool {
        self.is_any(path, false)
    }

    /// Whether `path`, outside the root and seen from the top of the file system, is part of it.
    pub fn has_outside(&self, path: &RelPath) -> bool {
        self.is_any(path, true)
    }

    /// Whether a path outside the root is named.
    pub fn names_outside(&self) -> bool {
        match self {
            Self::All => false,
            Self::Paths(picks) => picks.iter().any(|pick| pick.is_outside),
        }
    }

    fn is_any(&self, path: &RelPath, is_outside: bool) -> bool {
        match self {
            Self::All => true,
            Self::Paths(picks) => {
                picks.iter().any(|pick| pick.is_outside == is_outside && pick.has(path))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> RelPath {
        RelPath::from_bytes(text.as_bytes()).unwrap()
    }

    #[test]
    fn patterns_pick_files_and_what_is_in_directories() {
        let has = |pick: &str, at: &str| Picked::Paths(vec![Pick::of(path(pick))]).has(&path(at));
        assert!(has("src", "src/a/b.rs") && has("src/a", "src/a") && !has("src", "srcs"));
        assert!(has("src/*.rs", "src/a.rs") && !has("src/*.rs", "src/a/b.rs"));
        assert!(has("src/**/*.rs", "src/a/b.rs") && has("s*", "src/a/b.rs"));
        assert!(has("a[1]", "a[1]") && has("a[1]", "a1") && !has("a[1]", "a2"));
        let outside = Picked::Paths(vec![Pick::outside(path("out"))]);
        assert!(outside.has_outside(&path("out/a")) && !outside.has(&path("out/a")));
    }
}
