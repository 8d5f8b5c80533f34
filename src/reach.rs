//! Which directory a call can reach, how much of it, and what it names. Hides how a root is found.

use std::{
    ffi::OsStr,
    fs,
    os::unix::{ffi::OsStrExt, fs::MetadataExt},
    path::{Component, Path, PathBuf},
};

use gix::bstr::ByteSlice;

use crate::{
    model::{
        Certainty, Context, Effect, Finding, Reach, Root, RootKind, Scope, Target, TargetAction,
    },
    root,
    state::State,
};

/// What a glob may name; beyond it, what is left over is held only with its root.
const GLOB_MAX: usize = 1_000;

/// What the user's own directories are, for which other rules hold.
#[derive(Clone, Debug)]
pub struct Surroundings<'a> {
    /// The home directory.
    pub home: Option<&'a Path>,
    /// Our own state, which is never a part of a root.
    pub state: &'a State,
}

/// Finds the root that a session working in `start` has: the git worktree around it, or else that
/// very directory. `None` if there is no such directory.
pub fn root_around(start: &Path, surroundings: &Surroundings<'_>) -> Option<(Root, Scope)> {
    let start = fs::canonicalize(start).ok()?;
    let start = if start.is_dir() { start } else { start.parent()?.to_owned() };
    let worktree = start
        .ancestors()
        // A repository over the whole home is for its dot files; a directory in it is no part.
        .take_while(|dir| *dir == start || !is_home(dir, surroundings))
        .find(|dir| dir.join(".git").symlink_metadata().is_ok());
    let (path, kind) = match worktree {
        Some(dir) => (dir.to_owned(), root::kind_of(dir)),
        None => (start, RootKind::Plain { why: None }),
    };
    let scope = if is_walked(&path, &kind, surroundings) { Scope::Whole } else { Scope::Named };
    Some((Root::new(path, kind), scope))
}

fn is_home(dir: &Path, surroundings: &Surroundings<'_>) -> bool {
    let home = surroundings.home.and_then(|home| fs::canonicalize(home).ok());
    home.is_some_and(|home| home.starts_with(dir))
}

/// Whether a root may be walked: not `/`, the home directory or anything around it, not a place of
/// the kernel's, not a mount point unless it is a worktree (a container often mounts just that),
/// and nothing that our own state is a part of.
fn is_walked(path: &Path, kind: &RootKind, surroundings: &Surroundings<'_>) -> bool {
    let state = fs::canonicalize(surroundings.state.dir());
    let state = state.unwrap_or_else(|_| surroundings.state.dir().to_owned());
    let is_ours = path.starts_with(&state) || state.starts_with(path);
    let is_worktree = matches!(kind, RootKind::Git { .. });
    path.parent().is_some()
        && !is_home(path, surroundings)
        && !is_ours
        && !is_of_the_kernel(path)
        && (is_worktree || !is_mount_point(path))
}

fn is_mount_point(path: &Path) -> bool {
    let device = |path: &Path| fs::symlink_metadata(path).ok().map(|found| found.dev());
    path.parent().is_none_or(|parent| device(path) != device(parent))
}

/// Whether a directory lies in a file system that shows the kernel and not files.
#[cfg(target_os = "linux")]
fn is_of_the_kernel(path: &Path) -> bool {
    /// proc, sysfs, debugfs, tracefs, cgroup, cgroup2, devpts, securityfs, pstore, bpf.
    const MAGICS: [u64; 10] = [
        0x9fa0,
        0x6265_6572,
        0x6462_6720,
        0x7472_6163,
        0x0027_e0eb,
        0x6367_7270,
        0x1cd1,
        0x7363_6673,
        0x6165_676c,
        0xcafe_4a11,
    ];
    rustix::fs::statfs(path).is_ok_and(|found| MAGICS.contains(&found.f_type.cast_unsigned()))
        || path.starts_with("/dev")
}

#[cfg(not(target_os = "linux"))]
fn is_of_the_kernel(path: &Path) -> bool {
    path.starts_with("/dev")
}

/// What a call can reach from `start`, the directory its session works in.
pub fn reach(
    start: &Path,
    context: &Context,
    effect: &Effect,
    surroundings: &Surroundings<'_>,
) -> Option<Reach> {
    let (root, scope) = root_around(start, surroundings)?;
    let mut bases: Vec<&Path> = context.cwd.iter().map(PathBuf::as_path).collect();
    bases.extend(context.bases.iter().map(PathBuf::as_path));
    bases.extend([start, root.path()]);
    let mut victims: Vec<PathBuf> = match effect {
        Effect::None => Vec::new(),
        Effect::Touches(paths) => paths.iter().flat_map(|path| plausible(path, &bases)).collect(),
        Effect::Destroys(finding) | Effect::Unknown(finding) => targets_of(finding, &bases),
    };
    victims.sort();
    victims.dedup();
    Some(Reach { root, scope, victims })
}

/// Every place that a path may mean and where there is something.
pub fn plausible(path: &Path, bases: &[&Path]) -> Vec<PathBuf> {
    let there = |path: &PathBuf| path.symlink_metadata().is_ok();
    let mut places: Vec<PathBuf> =
        bases.iter().filter_map(|base| absolute(base, path)).filter(there).collect();
    places.sort();
    places.dedup();
    places
}

/// `path` as seen from `base`, without `.` and `..`. A name before `..` is taken for a directory,
/// as everybody but the kernel does; if it is a link, the root's walk holds what is really meant.
fn absolute(base: &Path, path: &Path) -> Option<PathBuf> {
    if path.as_os_str().is_empty() || path.as_os_str().as_bytes().contains(&0) {
        return None;
    }
    let mut absolute = PathBuf::new();
    for component in base.join(path).components() {
        match component {
            Component::RootDir | Component::Normal(_) => absolute.push(component),
            Component::ParentDir => drop(absolute.pop()),
            Component::CurDir => (),
            Component::Prefix(_) => return None,
        }
    }
    absolute.is_absolute().then_some(absolute)
}

fn targets_of(finding: &Finding, bases: &[&Path]) -> Vec<PathBuf> {
    let named = |target: &&Target| match target.action {
        TargetAction::Delete
        | TargetAction::Overwrite
        | TargetAction::Modify
        | TargetAction::Move => true,
        TargetAction::Create | TargetAction::Git => false,
    };
    let places = finding.targets().filter(named).flat_map(|target| match target.certainty {
        Certainty::Exact => plausible(Path::new(&target.path), bases),
        Certainty::Glob => bases.iter().flat_map(|base| expand(base, &target.path)).collect(),
        Certainty::Dynamic => Vec::new(),
    });
    places.take(10 * GLOB_MAX).collect()
}

/// Everything a glob names, seen from `base`. Braces are tried in every combination.
fn expand(base: &Path, pattern: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for pattern in braces(pattern) {
        let Some(pattern) = absolute(base, Path::new(&pattern)) else { continue };
        let mut places = vec![PathBuf::from("/")];
        for component in pattern.components().skip(1) {
            places = places.iter().flat_map(|dir| step(dir, component.as_os_str())).collect();
            places.truncate(GLOB_MAX);
        }
        found.extend(places);
    }
    found
}

/// The names in `dir` that one part of a glob matches.
fn step(dir: &Path, part: &OsStr) -> Vec<PathBuf> {
    let bytes = part.as_bytes();
    if !bytes.iter().any(|byte| b"*?[\\".contains(byte)) {
        let path = dir.join(part);
        return if path.symlink_metadata().is_ok() { vec![path] } else { Vec::new() };
    }
    let matches = |name: &OsStr| {
        let hidden = name.as_bytes().starts_with(b".") && !bytes.starts_with(b".");
        let mode = gix::glob::wildmatch::Mode::NO_MATCH_SLASH_LITERAL;
        !hidden && gix::glob::wildmatch(bytes.as_bstr(), name.as_bytes().as_bstr(), mode)
    };
    let Ok(entries) = fs::read_dir(dir) else { return Vec::new() };
    let names = entries.filter_map(|entry| Some(entry.ok()?.file_name()));
    names.filter(|name| matches(name)).take(GLOB_MAX).map(|name| dir.join(name)).collect()
}

/// Every text a pattern with braces stands for; beyond a hundred, the pattern itself.
fn braces(pattern: &str) -> Vec<String> {
    const MAX: usize = 100;
    let mut done = Vec::new();
    let mut open = vec![pattern.to_owned()];
    while let Some(text) = open.pop() {
        match first_braces(&text) {
            Some((before, choices, after)) if open.len() + done.len() < MAX => {
                open.extend(choices.iter().map(|choice| format!("{before}{choice}{after}")));
            }
            Some(_) | None => done.push(text),
        }
    }
    done
}

/// The first innermost pair of braces with a comma in it: what comes before, its parts, and what
/// comes behind.
fn first_braces(text: &str) -> Option<(&str, Vec<&str>, &str)> {
    let close = text.find('}')?;
    let open = text[..close].rfind('{')?;
    let inner = &text[open + 1..close];
    inner.contains(',').then(|| (&text[..open], inner.split(',').collect(), &text[close + 1..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn braces_stand_for_every_choice() {
        let mut texts = braces("a{b,c{d,e}}f");
        texts.sort();
        assert_eq!(texts, ["abf", "acdf", "acef"]);
        assert_eq!(braces("a{}b"), ["a{}b"]);
    }

    #[test]
    fn a_path_is_made_absolute_by_its_text() {
        let from = |path| absolute(Path::new("/r/a"), Path::new(path));
        assert_eq!(from("../b/./c"), Some("/r/b/c".into()));
        assert_eq!(from("/x"), Some("/x".into()));
        assert_eq!(from("../../../../etc"), Some("/etc".into()));
        assert_eq!(from(""), None);
    }
}
