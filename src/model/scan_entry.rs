//! The entries of a directory as a scan found them.

use std::cmp::Ordering;

use super::{ContentId, Kind, SkipReason, Stamp};

/// The path of a directory below its root, as bytes with `/` between names; empty for the root.
///
/// Ordered so that a directory comes right before everything below it, whatever bytes its
/// siblings' names have: `a`, `a/b`, `a-b`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct DirPath(pub Vec<u8>);

impl Ord for DirPath {
    fn cmp(&self, other: &Self) -> Ordering {
        in_tree_order(&self.0, &other.0)
    }
}

impl PartialOrd for DirPath {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Compares two paths name by name.
pub fn in_tree_order(a: &[u8], b: &[u8]) -> Ordering {
    // No name has a NUL, so `/` may stand for less than every byte of a name.
    let key = |&byte: &u8| if byte == b'/' { 0 } else { byte };
    a.iter().map(key).cmp(b.iter().map(key))
}

/// The path of `name` in the directory at `above`, which is empty for the topmost.
pub fn join_path(above: &[u8], name: &[u8]) -> Vec<u8> {
    if above.is_empty() { name.to_vec() } else { [above, b"/", name].concat() }
}

/// The directory that a path lies in, which is empty for the topmost, and its last name.
pub fn split_path(path: &[u8]) -> (&[u8], &[u8]) {
    match path.iter().rposition(|&byte| byte == b'/') {
        Some(at) => (&path[..at], &path[at + 1..]),
        None => (b"", path),
    }
}

impl DirPath {
    /// The path of `name` in this directory.
    pub fn join(&self, name: &[u8]) -> Vec<u8> {
        join_path(&self.0, name)
    }

    /// The directory above and the name in it; `None` for the root.
    pub fn split(&self) -> Option<(Self, &[u8])> {
        if self.0.is_empty() {
            return None;
        }
        let (above, name) = split_path(&self.0);
        Some((Self(above.to_vec()), name))
    }

    /// How many names it has; 0 for the root.
    pub fn depth(&self) -> usize {
        match &self.0[..] {
            [] => 0,
            path => path.split(|&byte| byte == b'/').count(),
        }
    }

    /// Whether `other` is this directory or lies below it.
    pub fn contains(&self, other: &[u8]) -> bool {
        self.0.is_empty()
            || other.strip_prefix(&self.0[..]).is_some_and(|rest| matches!(rest, [] | [b'/', ..]))
    }
}

/// A directory that was read anew.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fresh {
    /// Its stamp, taken before it was listed.
    pub stamp: Stamp,
    /// Whether the stamp may be believed next time.
    pub racy: bool,
    /// Its id, once its store has named it.
    pub id: Option<ContentId>,
    /// What is in it, by the bytes of the names.
    pub found: Vec<ScanEntry>,
}

impl Fresh {
    /// The entry called `name`.
    pub fn entry(&self, name: &[u8]) -> Option<&ScanEntry> {
        self.position(name).map(|at| &self.found[at])
    }

    /// The same, to be changed.
    pub fn entry_mut(&mut self, name: &[u8]) -> Option<&mut ScanEntry> {
        self.position(name).map(|at| &mut self.found[at])
    }

    fn position(&self, name: &[u8]) -> Option<usize> {
        self.found.binary_search_by(|found| found.name[..].cmp(name)).ok()
    }
}

/// One name in a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScanEntry {
    /// The name.
    pub name: Vec<u8>,
    /// What the system said. Zeros, but for the type, where it was not asked (an ignored file).
    pub stamp: Stamp,
    /// Its bytes as its store names them; for a directory that directory's id. `None` until it is read.
    pub content: Option<ContentId>,
    /// What is known of it.
    pub marks: Marks,
    /// Why it is left out, if it is.
    pub skipped: Option<SkipReason>,
}

/// What is known of a file besides its stamp.
#[expect(clippy::struct_excessive_bools, reason = "each is a mark of its own")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Marks {
    /// Git tracks it.
    pub tracked: bool,
    /// An ignore file names it, or what it lies in: it is held within a budget.
    pub ignored: bool,
    /// No ref of a checkpoint may reach it.
    pub private: bool,
    /// It changed so shortly before it was looked at that its stamp proves nothing next time.
    pub racy: bool,
}

impl ScanEntry {
    /// What sort of file it is; an unknown sort counts as a special file that is left out.
    pub fn kind(&self) -> Option<Kind> {
        self.stamp.kind()
    }

    /// Whether it is in the checkpoint.
    pub fn is_held(&self) -> bool {
        self.skipped.is_none()
    }

    /// Whether a store has to read it first.
    pub fn is_unread(&self) -> bool {
        self.is_held() && self.content.is_none() && self.kind().is_some_and(Kind::has_content)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_comes_right_before_what_is_in_it() {
        let mut paths: Vec<_> =
            ["a-b", "a/b", "a", "", "a/b/c", "a.b", "b"].map(|p| DirPath(p.into())).into();
        paths.sort();
        let texts: Vec<_> = paths.iter().map(|p| str::from_utf8(&p.0).unwrap()).collect();
        assert_eq!(texts, ["", "a", "a/b", "a/b/c", "a-b", "a.b", "b"]);
    }

    #[test]
    fn splitting_undoes_joining() {
        let dir = DirPath(b"a/b".to_vec());
        assert_eq!(DirPath(dir.join(b"c")).split(), Some((dir, &b"c"[..])));
        assert_eq!(DirPath(b"a".to_vec()).split(), Some((DirPath::default(), &b"a"[..])));
        assert_eq!(DirPath::default().split(), None);
        assert!(DirPath(b"a".to_vec()).contains(b"a/b") && !DirPath(b"a".to_vec()).contains(b"ab"));
    }
}
