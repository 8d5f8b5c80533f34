//! The ignore rules and tracked paths that apply in a directory. Hides how nested repositories and
//! ignore files on the way down change them.

use std::{
    ffi::{CStr, CString},
    io,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
    sync::Arc,
};

use super::{
    rule_sources::{GitRules, RuleSources},
    rules::{self, Rules},
    tracked::Tracked,
    verify::Suspects,
};
use crate::{
    cache::{DirRow, ScanTable},
    fs::{Dir, DirCursor, Listed, read_small},
    model::{DirPath, Kind, Root, RootKind, Settings},
};

/// The rules and tracked paths of one repository, or of a plain root. Cheap to clone.
#[derive(Clone)]
pub(super) struct DirRules {
    pub(super) rules: Rules,
    pub(super) tracked: Arc<Tracked>,
    hash: gix::hash::Kind,
}

impl DirRules {
    /// Reads the rules of the whole root.
    pub(super) fn read(root: &Root, sources: &RuleSources, settings: &Settings) -> Self {
        let GitRules { global, case, hash } = sources.read();
        let rules = Rules::new(&global, &settings.exclude, &settings.private, case);
        let tracked = match root.kind() {
            RootKind::Git { git_dir, .. } => Tracked::read(&git_dir.join("index"), hash, 0),
            RootKind::Plain { .. } => Tracked::default(),
        };
        Self { rules, tracked: tracked.into(), hash }
    }

    /// The rules inside the directory at `path` with these names: adds its ignore file. In the root
    /// it also notes whether there is one.
    pub(super) fn inside(&self, open: &Dir, path: &DirPath, names: &[Listed]) -> Self {
        let ignore_file = names.iter().find(|listed| listed.name.to_bytes() == rules::IGNORE_FILE);
        let rules = match ignore_file {
            Some(listed) => {
                self.rules.inside(&path.0, &rules::read_ignore_file(open, &listed.name))
            }
            None => self.rules.clone(),
        };
        let is_root = path.0.is_empty();
        let rules = if is_root { rules.with_bare(ignore_file.is_none()) } else { rules };
        Self { rules, ..self.clone() }
    }

    /// The rules of the nested repository with the directory at `path` as its worktree; `None` if it
    /// is not one, or is the root.
    pub(super) fn nested(
        &self,
        root: &Root,
        size_max: u64,
        open: &Dir,
        path: &DirPath,
        names: &[Listed],
    ) -> Option<Self> {
        let listed = names.iter().find(|listed| listed.name.to_bytes() == b".git")?;
        if path.0.is_empty() {
            return None;
        }
        let git_dir = nested_git_dir(root, open, path, listed)?;
        let exclude = read_small(&git_dir.join("info/exclude"), size_max);
        let rules = self.rules.nested(&path.0, exclude.ok().flatten().as_deref());
        let tracked = Tracked::read(&git_dir.join("index"), self.hash, path.0.len() + 1);
        Some(Self { rules, tracked: tracked.into(), hash: self.hash })
    }
}

/// Computes the rules for one directory after another. In tree order, rules of the directories
/// above are not read again.
pub(super) struct Descent<'a> {
    root: &'a Root,
    /// A larger exclude file is not read.
    size_max: u64,
    pub(super) way: DirCursor<'a>,
    whole: DirRules,
    /// The directories above, with the rules inside each.
    inside: Vec<(DirPath, DirRules)>,
}

impl<'a> Descent<'a> {
    pub(super) fn new(root: &'a Root, size_max: u64, top: &'a Dir, whole: DirRules) -> Self {
        Self { root, size_max, way: DirCursor::from(top), whole, inside: Vec::new() }
    }

    /// The rules that apply to the directory at `path`: those of nested repositories and ignore
    /// files above it, without its own.
    pub(super) fn at(&mut self, path: &DirPath) -> io::Result<DirRules> {
        let leads_there = |above: &DirPath| above != path && above.contains(&path.0);
        while self.inside.last().is_some_and(|(above, _)| !leads_there(above)) {
            self.inside.pop();
        }
        let known = self.inside.last().map(|(above, _)| above.clone());
        let above = |path: &DirPath| path.split().map(|(above, _)| above);
        let unread: Vec<DirPath> = std::iter::successors(above(path), above)
            .take_while(|above| Some(above) != known.as_ref())
            .collect();
        for above in unread.into_iter().rev() {
            let open = self.way.enter(&above.0)?;
            let names = names_of_rules(&open);
            let here = self.here();
            let nested = here.nested(self.root, self.size_max, &open, &above, &names);
            let inside = nested.as_ref().unwrap_or(here).inside(&open, &above, &names);
            self.inside.push((above, inside));
        }
        Ok(self.here().clone())
    }

    fn here(&self) -> &DirRules {
        self.inside.last().map_or(&self.whole, |(_, inside)| inside)
    }
}

/// The git directory of a nested repository or submodule, if it lies below the root.
fn nested_git_dir(root: &Root, open: &Dir, path: &DirPath, listed: &Listed) -> Option<PathBuf> {
    let dir = root.path().join(Path::new(std::ffi::OsStr::from_bytes(&path.0)));
    match open.stat_child(&listed.name).ok()?.kind()? {
        Kind::Directory => {
            let git = open.enter_child(&listed.name).ok()?;
            git.stat_child(c"HEAD").ok()?;
            Some(dir.join(".git"))
        }
        Kind::File => {
            let text = rules::read_ignore_file(open, &listed.name);
            let target = text.strip_prefix(b"gitdir: ")?.trim_ascii_end();
            let target = dir.join(std::ffi::OsStr::from_bytes(target));
            let target = std::fs::canonicalize(target).ok()?;
            let RootKind::Git { common_dir, .. } = root.kind() else { return None };
            // The line may name any path; only one inside this very repository is read.
            target.starts_with(common_dir).then_some(target)
        }
        Kind::Link | Kind::Fifo | Kind::Socket | Kind::CharDevice | Kind::BlockDevice => None,
    }
}

/// The names in a directory that affect its rules.
fn names_of_rules(open: &Dir) -> Vec<Listed> {
    [c".git", c".gitignore"]
        .into_iter()
        .filter_map(|name| {
            let kind = open.stat_child(name).ok()?.kind();
            Some(Listed { name: name.to_owned(), kind })
        })
        .collect()
}

/// Whether a name is `.git`, or the same file in another spelling on a case-insensitive file
/// system.
pub(super) fn is_git_private(open: &Dir, name: &CString) -> bool {
    let bytes = name.to_bytes();
    if bytes == b".git" {
        return true;
    }
    if !bytes.eq_ignore_ascii_case(b".git") {
        return false;
    }
    let inode = |name: &CStr| open.stat_child(name).ok().map(|stamp| stamp.inode);
    inode(name).is_some_and(|this| inode(c".git") == Some(this))
}

/// Whether an ignore file was added, changed or removed, so that every earlier decision must be
/// made again.
pub(super) fn rules_changed(top: &Dir, base: &ScanTable, suspects: &Suspects) -> bool {
    let is_rules = |entry| base.row(entry).name == rules::IGNORE_FILE;
    let mut way = DirCursor::from(top);
    suspects.reread.iter().any(|&(_, entry, _)| is_rules(entry))
        || suspects.relist.iter().any(|&number| rules_came_or_went(&mut way, &base.dir(number)))
}

fn rules_came_or_went(way: &mut DirCursor<'_>, dir: &DirRow<'_>) -> bool {
    let before = dir.row(rules::IGNORE_FILE).map(|row| row.stamp);
    before != way.enter(dir.path).and_then(|dir| dir.stat_child(c".gitignore")).ok()
}
