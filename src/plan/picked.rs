//! The part of a root that the user means: everything, or what paths and patterns fit.

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
pub struct Pick(RelPath);

impl Pick {
    /// The path, if it is no pattern.
    pub fn literal(&self) -> Option<&RelPath> {
        let is_pattern = self.0.as_bytes().iter().any(|byte| b"*?[".contains(byte));
        (!is_pattern).then_some(&self.0)
    }

    /// Takes a path as the user wrote it. If one is there by that very name, it is meant as well.
    pub fn of(path: RelPath) -> Self {
        Self(path)
    }

    fn has(&self, path: &RelPath) -> bool {
        use gix::glob::{wildmatch, wildmatch::Mode};
        if path.is_within(&self.0) {
            return true;
        }
        let pattern = self.0.as_bytes();
        if !pattern.iter().any(|byte| matches!(byte, b'*' | b'?' | b'[')) {
            return false;
        }
        let fits = |path: &RelPath| {
            wildmatch(pattern.into(), path.as_bytes().into(), Mode::NO_MATCH_SLASH_LITERAL)
        };
        let above = std::iter::successors(Some(path.clone()), RelPath::parent);
        above.into_iter().any(|path| fits(&path))
    }
}

impl Picked {
    /// Whether `path` is part of it.
    pub fn has(&self, path: &RelPath) -> bool {
        match self {
            Self::All => true,
            Self::Paths(picks) => picks.iter().any(|pick| pick.has(path)),
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
    }
}
