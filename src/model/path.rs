//! Paths that cannot leave their root.

use std::{
    ffi::OsStr,
    fmt, iter,
    os::unix::ffi::OsStrExt,
    path::{Component, Path, PathBuf},
};

/// A directory with files that we protect.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Root {
    /// Absolute and canonical.
    path: PathBuf,
    kind: RootKind,
}

/// What kind of directory a root is, which decides where its checkpoints are kept.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum RootKind {
    /// The worktree of a git repository that we may write to.
    Git {
        /// Its git directory: `.git`, or the linked worktree's own. Absolute.
        git_dir: PathBuf,
        /// The git directory that holds objects and shared refs. Absolute; often the same.
        common_dir: PathBuf,
    },
    /// Any other directory.
    Plain {
        /// Why the repository that is there is not used, if one is.
        why: Option<String>,
    },
}

/// How much of a root one call may make us read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScanScope {
    /// Everything that is not ignored.
    Whole,
    /// Named victims only. For `/`, the home directory and mount points, where a walk could mean
    /// the whole disk.
    Named,
}

/// What a call can reach, and so what a checkpoint before it has to hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reach {
    /// The root the session works in.
    pub root: Root,
    /// How much of it.
    pub scope: ScanScope,
    /// Paths to hold in any case, below the root or not. Absolute, and without `.` or `..`.
    pub victims: Vec<PathBuf>,
    /// What it lets git replace in the root.
    pub checkout: Checkout,
}

/// Where a call lets git replace files by those of commits, without naming them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Checkout {
    /// The directories in which it does, absolute; none if it does not.
    pub areas: Vec<PathBuf>,
    /// The command line, with the words that tell which commits.
    pub line: String,
}

impl Root {
    /// Makes a root of an absolute, canonical path.
    pub fn new(path: PathBuf, kind: RootKind) -> Self {
        debug_assert!(path.is_absolute());
        Self { path, kind }
    }

    /// Its absolute path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What kind of directory it is.
    pub fn kind(&self) -> &RootKind {
        &self.kind
    }

    /// The absolute path of `path` in this root.
    pub fn join(&self, path: &RelPath) -> PathBuf {
        self.path.join(&path.0)
    }

    /// Names `absolute` relative to this root.
    ///
    /// # Errors
    ///
    /// Fails if `absolute` is not strictly below the root.
    pub fn relative(&self, absolute: &Path) -> Result<RelPath, NotBelowRoot> {
        let below = absolute.strip_prefix(&self.path).map_err(|_| NotBelowRoot)?;
        RelPath::parse(below)
    }
}

/// A path below some [`Root`]: relative, not empty, and without `.`, `..` or NUL.
///
/// Having one is the proof that joining it to a root stays inside by name. It
/// says nothing about symlinks; the `fs` module looks at those when it opens.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RelPath(PathBuf);

impl RelPath {
    /// Checks `path` and takes it.
    ///
    /// # Errors
    ///
    /// Fails if `path` is empty, absolute, or has a component other than a plain name.
    pub fn parse(path: &Path) -> Result<Self, NotBelowRoot> {
        let mut names = PathBuf::new();
        for component in path.components() {
            match component {
                Component::Normal(name) if !name.as_bytes().contains(&0) => names.push(name),
                Component::CurDir => (),
                Component::Normal(_)
                | Component::ParentDir
                | Component::RootDir
                | Component::Prefix(_) => return Err(NotBelowRoot),
            }
        }
        if names.as_os_str().is_empty() {
            return Err(NotBelowRoot);
        }
        Ok(Self(names))
    }

    /// Checks the bytes of a path and takes it. Unlike [`RelPath::parse`] it takes only the one
    /// spelling we write ourselves: no `./`, no double or trailing slash.
    ///
    /// # Errors
    ///
    /// Fails on every other spelling, and as `parse` does.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, NotBelowRoot> {
        let path = Self::parse(Path::new(OsStr::from_bytes(bytes)))?;
        if path.as_bytes() == bytes { Ok(path) } else { Err(NotBelowRoot) }
    }

    /// Takes an absolute path, as seen from the top of the file system.
    ///
    /// # Errors
    ///
    /// Fails on a path that is not absolute, and as `parse` does.
    pub fn from_top(path: &Path) -> Result<Self, NotBelowRoot> {
        Self::parse(path.strip_prefix("/").map_err(|_| NotBelowRoot)?)
    }

    /// The absolute path that it is, as seen from the top of the file system.
    pub fn at_top(&self) -> PathBuf {
        Path::new("/").join(&self.0)
    }

    /// The bytes, with `/` between names.
    pub fn as_bytes(&self) -> &[u8] {
        self.0.as_os_str().as_bytes()
    }

    /// The path, relative to its root.
    pub fn as_path(&self) -> &Path {
        &self.0
    }

    /// The directory it lies in; `None` directly below the root.
    pub fn parent(&self) -> Option<Self> {
        self.0.parent().filter(|path| !path.as_os_str().is_empty()).map(|path| Self(path.into()))
    }

    /// The directories it lies in, the innermost first.
    pub fn above(&self) -> impl Iterator<Item = Self> + use<> {
        iter::successors(self.parent(), Self::parent)
    }

    /// Itself, and the directories it lies in.
    pub fn with_above(&self) -> impl Iterator<Item = Self> + use<> {
        iter::successors(Some(self.clone()), Self::parent)
    }

    /// Its last name.
    pub fn name(&self) -> &[u8] {
        // Never empty: `parse` checked it.
        self.0.file_name().unwrap_or_default().as_bytes()
    }

    /// Every name on the way, the outermost first.
    pub fn names(&self) -> impl DoubleEndedIterator<Item = &[u8]> {
        self.0.iter().map(OsStrExt::as_bytes)
    }

    /// Whether it is `other`, or lies below it.
    pub fn is_within(&self, other: &Self) -> bool {
        self.0.starts_with(&other.0)
    }
}

impl fmt::Display for RelPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.display().fmt(f)
    }
}

/// The path names something outside the root, or the root itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotBelowRoot;

impl fmt::Display for NotBelowRoot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not a path below the root")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_relpath_cannot_climb() {
        for bad in ["", ".", "..", "/etc/passwd", "a/../b", "../a", "a\0b"] {
            assert_eq!(RelPath::parse(Path::new(bad)), Err(NotBelowRoot), "{bad}");
        }
        assert_eq!(RelPath::parse(Path::new("./a/b")).unwrap().to_string(), "a/b");
    }

    #[test]
    fn stored_bytes_have_one_spelling() {
        for bad in ["./a", "a/", "a//b", "/a", ""] {
            assert_eq!(RelPath::from_bytes(bad.as_bytes()), Err(NotBelowRoot), "{bad}");
        }
        assert_eq!(RelPath::from_bytes(b"a/\xff").unwrap().as_bytes(), b"a/\xff");
    }
}
