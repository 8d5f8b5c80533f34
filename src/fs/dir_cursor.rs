//! A cursor that moves through a directory tree and keeps the directories above it open, so that
//! the next path starts from the nearest one. Follows no symlink.

use std::{io, rc::Rc};

use super::{Dir, c_name};
use crate::model::{DirPath, RelPath, Stamp};

/// The open directories from a top directory down to the current one.
///
/// An open directory stays the same one even if it is renamed meanwhile. Paths in tree order cost
/// one `openat` for each directory.
pub struct DirCursor<'a> {
    top: &'a Dir,
    /// The path of the current directory.
    at: Vec<u8>,
    /// Each open directory on the way, with the length of its path.
    open: Vec<(usize, Rc<Dir>)>,
}

impl<'a> DirCursor<'a> {
    /// Starts at the top.
    pub fn from(top: &'a Dir) -> Self {
        Self { top, at: Vec::new(), open: Vec::new() }
    }

    /// Moves to the directory at `path` below the top and returns it, as [`Dir::enter_child`] opens
    /// it. An empty path is the top.
    pub fn enter(&mut self, path: &[u8]) -> io::Result<Rc<Dir>> {
        while self.open.last().is_some_and(|(end, _)| !is_above(&self.at[..*end], path)) {
            self.open.pop();
        }
        let mut here = match self.open.last() {
            Some((_, here)) => Rc::clone(here),
            None => self.push(0, self.top.reopen()?),
        };
        let done = self.open.last().map_or(0, |(end, _)| *end);
        self.at.clear();
        self.at.extend_from_slice(path);
        let begin = if done > 0 { done + 1 } else { 0 };
        let rest = path.get(begin..).filter(|rest| !rest.is_empty());
        let mut end = done;
        for name in rest.into_iter().flat_map(|rest| rest.split(|&byte| byte == b'/')) {
            if matches!(name, b"" | b"." | b"..") {
                return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a name"));
            }
            end += name.len() + usize::from(end > 0);
            let below = here.enter_child(&c_name(name)?)?;
            here = self.push(end, below);
        }
        Ok(here)
    }

    fn push(&mut self, end: usize, dir: Dir) -> Rc<Dir> {
        let dir = Rc::new(dir);
        self.open.push((end, Rc::clone(&dir)));
        dir
    }

    /// The directory that contains `path`.
    pub fn parent_of(&mut self, path: &RelPath) -> io::Result<Rc<Dir>> {
        let above = path.parent();
        self.enter(above.as_ref().map_or(&[], |above| above.as_bytes()))
    }

    /// The stamp of `path`. A symlink is not followed.
    pub fn stat(&mut self, path: &RelPath) -> io::Result<Stamp> {
        self.parent_of(path)?.stat_child(&c_name(path.name())?)
    }

    /// Opens the directory at `path` for listing.
    pub fn listable(&mut self, path: &DirPath) -> io::Result<Dir> {
        match path.split() {
            Some((above, name)) => self.enter(&above.0)?.open_child(&c_name(name)?),
            None => self.top.listable(),
        }
    }

    /// Starts at the top again, because the names on the way may belong to other directories now.
    pub fn forget(&mut self) {
        self.open.clear();
        self.at.clear();
    }
}

/// Whether `path` is `above`, or lies below it.
fn is_above(above: &[u8], path: &[u8]) -> bool {
    above.is_empty() || path.strip_prefix(above).is_some_and(|rest| matches!(rest, [] | [b'/', ..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(name: &str) -> std::path::PathBuf {
        let name = format!("beforehand-way-{name}-{}", std::process::id());
        let temp = std::env::temp_dir().join(name);
        for dir in ["a/b/c", "a/bc", "d"] {
            std::fs::create_dir_all(temp.join(dir)).unwrap();
        }
        temp
    }

    #[test]
    fn every_path_leads_to_the_directory_of_that_name() {
        let temp = tree("names");
        let top = Dir::open(&temp).unwrap();
        let mut way = DirCursor::from(&top);
        for path in ["", "a", "a/b/c", "a/bc", "a/b", "", "d", "a/b/c", "a/b/c"] {
            let wanted = super::super::stat_path(&temp.join(path)).unwrap();
            let found = way.enter(path.as_bytes()).unwrap().stat().unwrap().0;
            assert_eq!(found.inode, wanted.inode, "{path:?}");
        }
        super::super::remove_tree(&temp).unwrap();
    }

    #[test]
    fn a_bad_name_is_refused_and_the_next_path_is_right() {
        let temp = tree("refused");
        std::os::unix::fs::symlink("..", temp.join("a/up")).unwrap();
        let top = Dir::open(&temp).unwrap();
        let mut way = DirCursor::from(&top);
        for path in ["a/..", "a//b", "./a", "a/up", "a/b/none", "a/b/../../d"] {
            assert!(way.enter(path.as_bytes()).is_err(), "{path:?}");
        }
        let wanted = super::super::stat_path(&temp.join("a/b")).unwrap();
        assert_eq!(way.enter(b"a/b").unwrap().stat().unwrap().0.inode, wanted.inode);
        super::super::remove_tree(&temp).unwrap();
    }
}
