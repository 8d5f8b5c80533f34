//! Which directory a call can reach, how much of it, and what it names. Hides how a root is found.

use std::{
    ffi::OsStr,
    fs, io,
    os::unix::{ffi::OsStrExt, fs::MetadataExt},
    path::{Component, Path, PathBuf},
};

use gix::bstr::ByteSlice;

use crate::{
    fs::Real,
    model::{
        Certainty, Context, Effect, Level, Reach, Root, RootKind, Scope, Simple, Target,
        TargetAction,
    },
    root::{self, GitDirs},
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
    /// Where paths lead.
    pub real: &'a Real,
}

/// Finds the root that a session working in `start` has: the git worktree around it, or else that
/// very directory. `None` if there is no such directory.
pub fn root_around(start: &Path, surroundings: &Surroundings<'_>) -> Option<(Root, Scope)> {
    root_around_real(&surroundings.real.of(start).ok()?, surroundings)
}

/// The same for a path that is canonical already.
pub fn root_around_real(start: &Path, surroundings: &Surroundings<'_>) -> Option<(Root, Scope)> {
    look_around_real(start, surroundings).map(|(root, scope, _)| (root, scope))
}

/// The same, with what was found of its repository, for whoever opens that at once.
pub fn look_around_real(
    start: &Path,
    surroundings: &Surroundings<'_>,
) -> Option<(Root, Scope, Option<GitDirs>)> {
    let (path, has_git) = around(start, surroundings)?;
    let (kind, dirs) =
        if has_git { root::look(&path) } else { (RootKind::Plain { why: None }, None) };
    let is_worktree = matches!(kind, RootKind::Git { .. });
    let is_walked = !is_home(&path, surroundings) && is_walked(&path, is_worktree, surroundings);
    let scope = if is_walked { Scope::Whole } else { Scope::Named };
    Some((Root::new(path, kind), scope, dirs))
}

/// The path of the root that [`root_around_real`] finds. Nothing of its repository is opened.
pub fn path_around(start: &Path, surroundings: &Surroundings<'_>) -> Option<PathBuf> {
    Some(around(start, surroundings)?.0)
}

/// Where a root is, and whether it has something called `.git`.
fn around(start: &Path, surroundings: &Surroundings<'_>) -> Option<(PathBuf, bool)> {
    // What cannot be looked at is not taken for a file: the root would be one directory too high.
    let is_file = !surroundings.real.is_plain(start)
        && fs::metadata(start).is_ok_and(|found| !found.is_dir());
    let start = if is_file { start.parent()? } else { start };
    let worktree = start
        .ancestors()
        // A repository over the whole home is for its dot files; a directory in it is no part.
        .take_while(|dir| *dir == start || !is_home(dir, surroundings))
        .find(|dir| may_be_there(&dir.join(".git")));
    Some((worktree.unwrap_or(start).to_owned(), worktree.is_some()))
}

/// Whether a directory is the home directory, or around it.
fn is_home(dir: &Path, surroundings: &Surroundings<'_>) -> bool {
    let home = surroundings.home.and_then(|home| surroundings.real.of(home).ok());
    home.is_some_and(|home| home.starts_with(dir))
}

/// Whether there is such a name, or no telling: only a plain "no" sends the search further up.
fn may_be_there(path: &Path) -> bool {
    use io::ErrorKind::{NotADirectory, NotFound};
    path.symlink_metadata()
        .map_or_else(|err| !matches!(err.kind(), NotFound | NotADirectory), |_| true)
}

/// Whether a root that is neither the home directory nor anything around it may be walked: not `/`,
/// not a place of the kernel's, not a mount point unless it is a worktree (a container often mounts
/// just that), and nothing that our own state is a part of.
fn is_walked(path: &Path, is_worktree: bool, surroundings: &Surroundings<'_>) -> bool {
    let state = surroundings.real.of(surroundings.state.dir());
    let state = state.unwrap_or_else(|_| surroundings.state.dir().to_owned());
    let is_ours = path.starts_with(&state) || state.starts_with(path);
    path.parent().is_some()
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
        0x9fa0, 0x6265_6572, 0x6462_6720, 0x7472_6163, 0x0027_e0eb, 0x6367_7270, 0x1cd1,
        0x7363_6673, 0x6165_676c, 0xcafe_4a11,
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
    Some(reach_in(root_around(start, surroundings)?, start, context, effect))
}

/// The same, with the root around `start` at hand.
pub fn reach_in(
    (root, scope): (Root, Scope),
    start: &Path,
    context: &Context,
    effect: &Effect,
) -> Reach {
    let victims = places(effect, &bases(start, context, &root), Wanted::Held, &root);
    Reach { root, scope, victims }
}

/// The places a call names, exactly or by a glob, for something to be lost there: what has to be
/// held, or the user is asked. Less than [`Reach::victims`]: a target that is a mere guess never
/// leads to a question, and neither does what a `find` may or may not find.
pub fn stakes(start: &Path, context: &Context, effect: &Effect, root: &Root) -> Vec<PathBuf> {
    places(effect, &bases(start, context, root), Wanted::Named, root)
}

/// Every place that the paths of an edit may mean, whether there is something or not.
pub fn edited(paths: &[PathBuf], start: &Path, context: &Context, root: &Root) -> Vec<PathBuf> {
    let bases = bases(start, context, root);
    let mut places: Vec<PathBuf> = paths.iter().flat_map(|path| meant_by(path, &bases)).collect();
    places.sort();
    places.dedup();
    places
}

/// Where a relative path of the call may be meant from.
fn bases<'a>(start: &'a Path, context: &'a Context, root: &'a Root) -> Vec<&'a Path> {
    let said = context.cwd.iter().chain(&context.bases).map(PathBuf::as_path);
    let mut bases: Vec<&Path> = said.filter(|base| base.is_absolute()).collect();
    bases.extend([start, root.path()]);
    bases.dedup();
    bases
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Wanted {
    Held,
    Named,
}

fn places(effect: &Effect, bases: &[&Path], wanted: Wanted, root: &Root) -> Vec<PathBuf> {
    let mut places: Vec<PathBuf> = match effect {
        Effect::None => Vec::new(),
        Effect::Touches(paths) => paths.iter().flat_map(|path| written(path, bases)).collect(),
        Effect::Destroys(finding) | Effect::Unknown(finding) => {
            let of_simple = |simple: &Simple| {
                let targets = simple.targets.iter();
                let worth = targets.filter(|it| wanted == Wanted::Held || loses(simple, it));
                let meant = worth.flat_map(|it| of_target(it, bases, wanted, root));
                meant.chain(disks(simple)).collect::<Vec<_>>()
            };
            finding.commands.iter().flat_map(of_simple).take(10 * GLOB_MAX).collect()
        }
    };
    places.sort();
    places.dedup();
    places
}

/// The disks that a program for whole disks is given.
fn disks(simple: &Simple) -> Vec<PathBuf> {
    const PROGRAMS: &[&str] = &[
        "wipefs", "fdisk", "sfdisk", "cfdisk", "gdisk", "sgdisk", "parted", "mkswap", "blkdiscard",
        "badblocks", "cryptsetup", "pvcreate", "mke2fs",
    ];
    let mut words = simple.text.split_whitespace();
    let program = words.next().and_then(|word| word.rsplit('/').next()).unwrap_or_default();
    if simple.level == Level::ReadOnly
        || !(PROGRAMS.contains(&program) || program.starts_with("mkfs"))
    {
        return Vec::new();
    }
    words
        .filter(|word| word.starts_with("/dev/"))
        .map(PathBuf::from)
        .filter(|path| path.exists())
        .collect()
}

/// Whether bytes of a target are lost if nobody holds them: not where it only moves, or grows, or
/// gets other attributes.
fn loses(simple: &Simple, target: &Target) -> bool {
    const ATTRIBUTES: &[&str] = &[
        ">>", "tee", "chmod", "chown", "chgrp", "touch", "setfacl", "chattr", "setfattr", "xattr",
    ];
    let program = simple.text.split_whitespace().next().unwrap_or_default();
    match target.action {
        TargetAction::Delete | TargetAction::Overwrite => true,
        TargetAction::Modify => !ATTRIBUTES.contains(&program),
        TargetAction::Move | TargetAction::Create | TargetAction::Git => false,
    }
}

/// Every place that a path may mean and where there is something.
pub fn plausible(path: &Path, bases: &[&Path]) -> Vec<PathBuf> {
    let mut places = meant_by(path, bases);
    places.retain(|place| place.symlink_metadata().is_ok());
    places
}

/// Every place that a path may mean.
fn meant_by(path: &Path, bases: &[&Path]) -> Vec<PathBuf> {
    let meant = |base: &&Path| [absolute(base, path), physical(base, path)];
    let mut places: Vec<PathBuf> = bases.iter().flat_map(meant).flatten().collect();
    places.sort();
    places.dedup();
    places
}

/// The same for a path that is written to: what a link there leads to is written as well.
fn written(path: &Path, bases: &[&Path]) -> Vec<PathBuf> {
    through_links(meant_by(path, bases))
}

/// Those of `places` where there is something, and what the links among them lead to.
fn through_links(mut places: Vec<PathBuf>) -> Vec<PathBuf> {
    let mut led = Vec::new();
    places.retain(|place| {
        let found = place.symlink_metadata();
        if found.as_ref().is_ok_and(fs::Metadata::is_symlink) {
            led.extend(fs::canonicalize(place).ok().filter(|file| !file.is_dir()));
        }
        found.is_ok()
    });
    places.extend(led);
    places
}

/// `path` as seen from `base`, without `.` and `..`. A name before `..` is taken for a directory,
/// as everybody but the kernel does; see [`physical`].
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

/// The same as the kernel sees it, where that may differ: a `..` behind a link.
fn physical(base: &Path, path: &Path) -> Option<PathBuf> {
    if !path.components().any(|component| component == Component::ParentDir) {
        return None;
    }
    let whole = base.join(path);
    match whole.file_name() {
        Some(name) => Some(fs::canonicalize(whole.parent()?).ok()?.join(name)),
        None => fs::canonicalize(&whole).ok(),
    }
}

fn of_target(target: &Target, bases: &[&Path], wanted: Wanted, root: &Root) -> Vec<PathBuf> {
    let mut places = meant(target, bases, wanted);
    match target.action {
        // Something is put into a directory. What that replaces there is a target of its own, or
        // some file of it: worth holding where it is the project's.
        TargetAction::Overwrite => places.retain(|place| {
            !place.is_dir() || wanted == Wanted::Held && root.relative(place).is_ok()
        }),
        TargetAction::Modify if wanted == Wanted::Named => places.retain(|place| !place.is_dir()),
        TargetAction::Delete
        | TargetAction::Modify
        | TargetAction::Move
        | TargetAction::Create
        | TargetAction::Git => (),
    }
    places
}

fn meant(target: &Target, bases: &[&Path], wanted: Wanted) -> Vec<PathBuf> {
    let path = Path::new(&target.path);
    let is_held = wanted == Wanted::Held;
    match (target.action, target.certainty) {
        (TargetAction::Create, _) => Vec::new(),
        // What can drop commits; a command that merely moves refs is no exact one.
        (TargetAction::Git, Certainty::Exact) if is_held => plausible(path, bases),
        (TargetAction::Git, _) => Vec::new(),
        (TargetAction::Overwrite | TargetAction::Modify, Certainty::Exact) => written(path, bases),
        (TargetAction::Delete | TargetAction::Move, Certainty::Exact) => plausible(path, bases),
        (action, Certainty::Glob) => of_glob(target, bases, wanted, action),
        // A guess is worth a copy where it fits something, and never a question.
        (TargetAction::Delete, Certainty::Dynamic) if is_held && is_plain(&target.path) => {
            plausible(path, bases)
        }
        (_, Certainty::Dynamic) => Vec::new(),
    }
}

fn of_glob(target: &Target, bases: &[&Path], wanted: Wanted, action: TargetAction) -> Vec<PathBuf> {
    let looked_through = match target.path.as_str() {
        "**" => Some("."),
        path => path.strip_suffix("/**"),
    };
    let pattern = match (looked_through, wanted) {
        // What a `find` is told to look through: some of it, nobody knows what.
        (Some(_), Wanted::Named) => return Vec::new(),
        (Some(""), Wanted::Held) => "/",
        (Some(above), Wanted::Held) => above,
        (None, _) => &target.path,
    };
    let found = bases.iter().flat_map(|base| expand(base, pattern)).collect();
    match action {
        TargetAction::Overwrite | TargetAction::Modify => through_links(found),
        TargetAction::Delete | TargetAction::Move | TargetAction::Create | TargetAction::Git => {
            found
        }
    }
}

fn is_plain(text: &str) -> bool {
    !text.bytes().any(|byte| b"$`*?[(){}".contains(&byte))
}

/// Everything a glob names, seen from `base`. Braces are tried in every combination. The names of
/// `base` itself are no pattern, whatever is in them.
fn expand(base: &Path, pattern: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for pattern in braces(pattern) {
        let mut places = vec![base.to_owned()];
        for component in Path::new(&pattern).components() {
            places = match component {
                Component::RootDir => vec![PathBuf::from("/")],
                Component::CurDir => continue,
                Component::ParentDir => {
                    places.iter().filter_map(|dir| absolute(dir, Path::new(".."))).collect()
                }
                Component::Normal(part) if part == "**" => {
                    places.iter().flat_map(|dir| all_below(dir)).collect()
                }
                Component::Normal(part) => places.iter().flat_map(|dir| step(dir, part)).collect(),
                Component::Prefix(_) => Vec::new(),
            };
            places.truncate(GLOB_MAX);
        }
        found.extend(places);
    }
    found
}

/// A directory and every directory below it, up to the limit: where `**` may stand.
fn all_below(dir: &Path) -> Vec<PathBuf> {
    let mut all = vec![dir.to_owned()];
    let mut at = 0;
    while at < all.len() && all.len() < GLOB_MAX {
        let entries = fs::read_dir(&all[at]).into_iter().flatten().flatten();
        let dirs = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        let below: Vec<PathBuf> = dirs.map(|entry| entry.path()).collect();
        all.extend(below);
        at += 1;
    }
    all
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
            // Two choices of an inner pair may leave one text.
            Some(_) | None if done.contains(&text) => (),
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

    #[test]
    fn a_glob_is_seen_from_a_directory_whose_name_is_no_pattern() {
        let top = std::env::temp_dir().join(format!("turnback-reach-{}[x]", std::process::id()));
        fs::create_dir_all(top.join("a/b")).unwrap();
        for name in ["one.db", ".two.db", "a/three.db", "a/b/four.db"] {
            fs::File::create(top.join(name)).unwrap();
        }
        let found = |pattern| {
            let mut found = expand(&top, pattern);
            found.sort();
            let names = found.iter().map(|path| path.strip_prefix(&top).unwrap().to_owned());
            names.map(|path| path.to_str().unwrap().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(found("*.db"), ["one.db"]);
        assert_eq!(found(".*.db"), [".two.db"]);
        assert_eq!(found("./a/../{one,no}.db"), ["one.db"]);
        assert_eq!(found("**/*.db"), ["a/b/four.db", "a/three.db", "one.db"]);
        std::os::unix::fs::symlink("a/b", top.join("link")).unwrap();
        let places = plausible(Path::new("link/../three.db"), &[&top]);
        assert_eq!(places, [top.join("a/three.db")], "as the kernel sees it");
        for name in ["link", "one.db", ".two.db", "a/three.db", "a/b/four.db"] {
            fs::remove_file(top.join(name)).unwrap();
        }
        for name in ["a/b", "a", ""] {
            fs::remove_dir(top.join(name)).unwrap();
        }
    }
}
