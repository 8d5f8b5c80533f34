//! Which files of a worktree a command line can make git replace: those at the path of something that
//! a commit in its reach has. Reads the user's repository, and runs no git.

use std::{
    collections::{BTreeMap, HashSet},
    ops::RangeInclusive,
    path::Path,
};

use gix::{
    ObjectId,
    objs::{Kind, tree::EntryKind},
};

use super::{
    head::parents,
    refs::{self, own},
    repo::Repo,
    tree::entries,
};
use crate::{
    fs::read_small,
    model::{RelPath, Root, RootKind, join_path},
};

/// Where a line may mean any ref, those beyond this number are not looked at: 40 µs each.
const REFS_MAX: usize = 2_000;
/// How far back a line can go that names a commit by its distance, or that goes from commit to commit.
const STEPS_MAX: usize = 200;
/// More files of a directory that is left out are not told apart.
const PATHS_MAX: usize = 1_000;
/// Enough for the newest thousands of lines of a reflog.
const LOG_MAX_BYTES: u64 = 1 << 20;

/// Parts of a line that lead from one commit to the next.
const THROUGH: &[&str] = &["rebase", "bisect", ".."];
/// Parts of a line that may stand for any commit.
const OPEN: &[&str] =
    &["$", "`", "*", "?", "@{", "^{", ":/", "pull", "rebase", "bisect", "filter-"];
/// Commits that git keeps in files of their own.
const OWN: &[&str] =
    &["HEAD", "ORIG_HEAD", "FETCH_HEAD", "MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD"];

/// Those of `paths`, below `root`, that git replaces or removes if it checks out some commit in the reach
/// of `line`: HEAD, what a word names, or any ref where a word may name any. Of a directory, the files in it that a commit has. All of
/// `paths` if the repository cannot be read, none where there is no repository.
pub(crate) fn replaced_by(root: &Root, line: &str, paths: &[RelPath]) -> Vec<RelPath> {
    if matches!(root.kind(), RootKind::Plain { why: None }) {
        return Vec::new();
    }
    let Ok(repo) = Repo::open(root) else { return paths.to_vec() };
    let Some(commits) = commits(&repo, line) else { return paths.to_vec() };
    let mut wanted = Wanted::default();
    for path in paths {
        wanted.add(path);
    }
    let mut search =
        TreeSearch { repo: &repo, root: root.path(), seen: HashSet::new(), found: Vec::new() };
    for commit in commits {
        if let Some(tree) = tree_of(&repo, commit) {
            search.tree(tree, &[], &wanted);
        }
    }
    search.found.sort();
    search.found.dedup();
    search.found
}

/// The commits, and tags of commits, that a line can check out; `None` if the refs cannot be read.
fn commits(repo: &Repo, line: &str) -> Option<HashSet<ObjectId>> {
    let refs: Vec<(String, ObjectId)> =
        refs::read_all(repo).ok()?.into_iter().filter_map(|(name, id)| Some((name, id?))).collect();
    let head = super::head::read(repo).commit;
    let head = head.and_then(|hex| ObjectId::from_hex(hex.as_bytes()).ok());
    let has = |words: &[&str]| words.iter().any(|word| line.contains(word));
    let back = if has(THROUGH) { STEPS_MAX } else { usize::from(has(&["revert"])) };
    let mut commits: HashSet<ObjectId> =
        head.into_iter().flat_map(|head| ancestors(repo, head, 0..=back)).collect();
    let mut names_one = false;
    for word in line.split(is_between).flat_map(|word| word.split("..")) {
        let (name, steps) = distance(word.trim_start_matches(['^', '.']));
        let steps = steps.min(STEPS_MAX);
        let ids = named(repo, &refs, name, head.filter(|_| steps > 0));
        names_one |= !ids.is_empty();
        commits.extend(ids.into_iter().flat_map(|id| ancestors(repo, id, steps..=steps + back)));
    }
    let logs = [("@{", "logs/HEAD"), ("stash", "logs/refs/stash")];
    let logs = logs.iter().filter(|(word, _)| line.contains(word));
    commits.extend(logs.flat_map(|(_, log)| ids_in(repo, log)));
    if has(OPEN) || line.split(is_between).any(|word| word == "-") || has(&["merge"]) && !names_one
    {
        commits.extend(refs.iter().take(REFS_MAX).map(|(_, id)| *id));
        commits.extend(OWN.iter().flat_map(|name| ids_in(repo, name)));
    }
    Some(commits)
}

fn is_between(char: char) -> bool {
    char.is_whitespace() || "'\"`;|&<>(){}=,:$".contains(char)
}

/// What `name` may mean: a ref by the end of its name, a file of the git directory, or the beginning of
/// an object's name. An empty one is `head`, of which something else tells the distance.
fn named(
    repo: &Repo,
    refs: &[(String, ObjectId)],
    name: &str,
    head: Option<ObjectId>,
) -> Vec<ObjectId> {
    if name.is_empty() {
        return Vec::from_iter(head);
    }
    let is_called = |full: &str| {
        full.strip_suffix(name).is_some_and(|rest| rest.is_empty() || rest.ends_with('/'))
    };
    let found = refs.iter().filter(|(full, _)| is_called(full)).map(|(_, id)| *id);
    let own = OWN.iter().filter(|own| **own == name).flat_map(|name| ids_in(repo, name));
    // As `git describe` prints it.
    let digits = name.rsplit("-g").next().unwrap_or(name);
    found.chain(own).chain(head.filter(|_| name == "HEAD")).chain(object(repo, digits)).collect()
}

/// A commit without what follows its name, and how many steps that goes back.
fn distance(word: &str) -> (&str, usize) {
    let (name, rest) = word.split_at(word.find(['~', '^', '@']).unwrap_or(word.len()));
    let steps = rest.match_indices(['~', '^']).map(|(at, mark)| {
        let digits = rest[at + 1..].split(|char: char| !char.is_ascii_digit()).next();
        let number = digits.and_then(|digits| digits.parse().ok()).unwrap_or(1);
        // `^2` is one step, to the second parent.
        if mark == "~" { number } else { 1_usize.min(number) }
    });
    (name, steps.fold(0, usize::saturating_add))
}

/// The object that a word of at least four hexadecimal digits begins the name of.
fn object(repo: &Repo, word: &str) -> Option<ObjectId> {
    if word.len() < 4 || !word.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    if let Ok(id) = ObjectId::from_hex(word.as_bytes()) {
        return Some(id);
    }
    let prefix = gix::hash::Prefix::from_hex(word).ok()?;
    repo.odb().ok()?.lookup_prefix(prefix, None).ok()?.and_then(Result::ok)
}

/// The names of objects in a small file of the git directory.
fn ids_in(repo: &Repo, name: &str) -> Vec<ObjectId> {
    let path = [own(repo, name), repo.common_dir.join(name)].into_iter().find(|it| it.is_file());
    let bytes = path.and_then(|path| read_small(&path, LOG_MAX_BYTES).ok().flatten());
    let bytes = bytes.unwrap_or_default();
    let words = bytes.split(u8::is_ascii_whitespace);
    words.filter_map(|word| ObjectId::from_hex(word).ok()).collect()
}

/// The commits that are so many steps before one, along all parents.
fn ancestors(repo: &Repo, commit: ObjectId, steps: RangeInclusive<usize>) -> HashSet<ObjectId> {
    let (mut all, mut newest) = (HashSet::new(), HashSet::from([commit]));
    for step in 0..=*steps.end() {
        if steps.contains(&step) {
            all.extend(newest.iter().copied());
        }
        let bodies = newest.iter().filter_map(|id| body_of(repo, *id));
        newest = bodies.flat_map(|body| parents(&body).collect::<Vec<_>>()).collect();
        if newest.is_empty() || all.len() > 10 * STEPS_MAX {
            break;
        }
    }
    all
}

/// The body of a commit, or of the one that a tag leads to.
fn body_of(repo: &Repo, id: ObjectId) -> Option<Vec<u8>> {
    if let Ok(body) = repo.read(&id, Kind::Commit) {
        return Some(body);
    }
    // A tag of a tag is as rare as it looks.
    let body = repo.read(&id, Kind::Tag).ok()?;
    repo.read(&first_id(&body, b"object ")?, Kind::Commit).ok()
}

fn tree_of(repo: &Repo, id: ObjectId) -> Option<ObjectId> {
    first_id(&body_of(repo, id)?, b"tree ")
}

/// The object that the first line of a body names.
fn first_id(body: &[u8], key: &[u8]) -> Option<ObjectId> {
    let line = body.split(|&byte| byte == b'\n').next()?;
    ObjectId::from_hex(line.strip_prefix(key)?).ok()
}

/// Paths by their names.
#[derive(Default)]
struct Wanted {
    below: BTreeMap<Vec<u8>, Wanted>,
    path: Option<RelPath>,
}

impl Wanted {
    fn add(&mut self, path: &RelPath) {
        let names = path.as_bytes().split(|&byte| byte == b'/');
        let place = names.fold(self, |at, name| at.below.entry(name.to_vec()).or_default());
        place.path = Some(path.clone());
    }

    fn all(&self) -> Vec<RelPath> {
        let below = self.below.values().flat_map(Self::all);
        self.path.iter().cloned().chain(below).collect()
    }
}

/// A search for paths in trees, each of which is read once at each place.
struct TreeSearch<'a> {
    repo: &'a Repo,
    root: &'a Path,
    seen: HashSet<(ObjectId, Vec<u8>)>,
    found: Vec<RelPath>,
}

impl TreeSearch<'_> {
    /// Looks in the tree of the directory `at` for what is wanted below it.
    fn tree(&mut self, tree: ObjectId, at: &[u8], wanted: &Wanted) {
        if !self.seen.insert((tree, at.to_vec())) {
            return;
        }
        // What a damaged tree has is not known.
        let Ok(entries) = entries(self.repo, &tree) else { return self.found.extend(wanted.all()) };
        for (name, kind, id) in entries {
            let Some(below) = wanted.below.get(&name) else { continue };
            let path = join_path(at, &name);
            match (kind, &below.path) {
                (EntryKind::Tree, None) => self.tree(id, &path, below),
                (EntryKind::Tree, Some(left_out)) if self.is_directory(left_out) => {
                    self.directory(id, &path, left_out);
                }
                // A repository goes into a directory that is there already, and replaces nothing.
                (EntryKind::Commit, Some(left_out)) if self.is_directory(left_out) => (),
                (EntryKind::Commit, None) => (),
                _ => self.found.extend(below.all()),
            }
        }
    }

    fn is_directory(&self, path: &RelPath) -> bool {
        self.root.join(path.as_path()).symlink_metadata().is_ok_and(|found| found.is_dir())
    }

    /// Takes what is there of the files that a tree has in the directory `left_out`.
    fn directory(&mut self, tree: ObjectId, at: &[u8], left_out: &RelPath) {
        if !self.seen.insert((tree, at.to_vec())) {
            return;
        }
        let Ok(entries) = entries(self.repo, &tree) else {
            return self.found.push(left_out.clone());
        };
        for (name, kind, id) in entries {
            let Ok(path) = RelPath::from_bytes(&join_path(at, &name)) else { continue };
            let found = self.root.join(path.as_path()).symlink_metadata();
            match (kind, found) {
                (_, Err(_)) => (),
                _ if self.found.len() > PATHS_MAX => return self.found.push(left_out.clone()),
                (EntryKind::Tree, Ok(found)) if found.is_dir() => {
                    self.directory(id, path.as_bytes(), left_out);
                }
                (EntryKind::Commit, Ok(found)) if found.is_dir() => (),
                (_, Ok(_)) => self.found.push(path),
            }
        }
    }
}
