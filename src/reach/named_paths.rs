//! The paths that a call names: relative to each directory that it may mean, through links, and by globs.

use std::{
    borrow::Cow,
    ffi::OsStr,
    fs,
    os::unix::ffi::OsStrExt,
    path::{Component, Path, PathBuf},
};

use super::{
    absolute,
    around::is_of_the_kernel,
    glob::{self, GLOB_MAX, expand},
    repository_below,
};
use crate::{
    fs::read_small,
    model::{
        Certainty, Checkout, Effect, Finding, Intent, Level, Root, RootKind, Simple, Spares,
        Target, TargetAction,
    },
};

/// Which of the places that a call names.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum PlaceFilter {
    /// Whatever is worth a copy.
    Held,
    /// What is named for something to be lost there.
    Named,
}

/// A path that a call names and can destroy.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct AtRisk {
    /// Where it is, absolute.
    pub path: PathBuf,
    /// Whether the call names nothing, and only may affect something in it.
    pub is_guess: bool,
    /// What of it is not lost.
    pub spares: Spares,
}

/// The paths that the call can destroy. A relative path starts from the first of `bases` where it exists;
/// that is the directory in which the agent says the call runs.
pub(super) fn at_risk(
    intent: &Intent,
    effect: &Effect,
    bases: &[&Path],
    root: &Root,
) -> Vec<AtRisk> {
    let whole = |path| AtRisk { path, is_guess: false, spares: Spares::Nothing };
    let mut at_risk: Vec<AtRisk> = match (intent, effect) {
        (_, Effect::None) => Vec::new(),
        // A command line that only makes files loses none.
        (Intent::Run { .. }, Effect::Touches(_)) => Vec::new(),
        (_, Effect::Touches(paths)) => {
            paths.iter().flat_map(|path| written(path, bases)).map(whole).collect()
        }
        (_, Effect::Destroys(finding) | Effect::Unknown(finding)) => {
            let of_target = |target: &Target| {
                let found = |base: &&Path| of_target(target, &[*base], PlaceFilter::Named, root);
                let found = bases.iter().map(found).find(|found| !found.is_empty());
                let is_guess = found.is_none();
                let found = found.unwrap_or_else(|| area(target, bases).into_iter().collect());
                let spares = seen_from(&target.spares, bases);
                let risk = |path| AtRisk { path, is_guess, spares: spares.clone() };
                found.into_iter().map(risk).collect::<Vec<_>>()
            };
            let of_simple = |simple: &Simple| {
                let lost = simple.targets.iter().filter(|target| loses(simple, target));
                let disks = disks(simple).into_iter().map(whole);
                let worktrees = worktrees(simple, root).into_iter().map(whole);
                lost.flat_map(of_target).chain(disks).chain(worktrees).collect::<Vec<_>>()
            };
            finding.commands.iter().flat_map(of_simple).collect()
        }
    };
    if at_risk.len() > 10 * GLOB_MAX {
        // Nothing is cut: the directories stand for what is in them.
        let above = |risk: &AtRisk| {
            let path = risk.path.parent()?.to_owned();
            Some(AtRisk { path, spares: risk.spares.clone(), ..*risk })
        };
        at_risk = at_risk.iter().filter_map(above).collect();
    }
    at_risk.sort();
    // Of two for one place, the one that is named and spares nothing.
    at_risk.dedup_by(|later, first| {
        let is_covered = first.spares == Spares::Nothing || first.spares == later.spares;
        first.path == later.path && is_covered
    });
    at_risk
}

/// Where the call lets git replace files by those of commits.
pub(super) fn checkout(intent: &Intent, effect: &Effect, bases: &[&Path], root: &Root) -> Checkout {
    let (Intent::Run { command, .. }, Effect::Destroys(finding)) = (intent, effect) else {
        return Checkout::default();
    };
    let targets = finding.targets().filter(|target| target.spares == Spares::Uncommitted);
    let mut areas: Vec<PathBuf> =
        targets.flat_map(|target| checked_out(target, bases, root)).collect();
    areas.sort();
    areas.dedup();
    let line = if areas.is_empty() { String::new() } else { command.clone() };
    Checkout { areas, line }
}

/// The directories of `root` in which a target stands for what commits have.
fn checked_out(target: &Target, bases: &[&Path], root: &Root) -> Vec<PathBuf> {
    // A command that takes no paths is about all of its worktree, wherever in it it runs.
    let is_whole = target.certainty != Certainty::Exact || target.action == TargetAction::Modify;
    let places = |base: &&Path| match target.certainty {
        Certainty::Glob => expand(base, &target.path),
        Certainty::Dynamic if !is_plain(&target.path) => vec![base.to_path_buf()],
        Certainty::Exact | Certainty::Dynamic => plausible(Path::new(&target.path), &[*base]),
    };
    let places = bases.iter().map(places).find(|places| !places.is_empty()).unwrap_or_default();
    let real = places.iter().filter_map(|place| fs::canonicalize(place).ok());
    let inside = real.filter(|place| place.is_dir() && place.starts_with(root.path()));
    // A repository below the root has commits of its own.
    let own = inside.filter(|place| repository_below(place, root.path()).is_none());
    own.map(|place| if is_whole { root.path().to_owned() } else { place }).collect()
}

/// What is left alone, with a path made absolute from the first directory in which it is there.
fn seen_from(spares: &Spares, bases: &[&Path]) -> Spares {
    let (Spares::NotIn(source) | Spares::NotPacked(source)) = spares else { return spares.clone() };
    let mut places = bases.iter().filter_map(|base| absolute(base, Path::new(source)));
    let place = places.find(|place| place.symlink_metadata().is_ok());
    let place = place.and_then(|place| place.into_os_string().into_string().ok());
    let place = place.unwrap_or_else(|| source.clone());
    if matches!(spares, Spares::NotIn(_)) { Spares::NotIn(place) } else { Spares::NotPacked(place) }
}

/// The directory in which something is deleted, of which only the run tells what.
fn area(target: &Target, bases: &[&Path]) -> Option<PathBuf> {
    if target.action != TargetAction::Delete {
        return None;
    }
    let text = target.path.as_str();
    let known = match target.certainty {
        Certainty::Exact => return None,
        Certainty::Glob if text == "**" => "",
        Certainty::Glob => text.strip_suffix("/**")?,
        Certainty::Dynamic if is_plain(text) => text,
        Certainty::Dynamic => {
            let known = &text[..text.find(is_open).unwrap_or(text.len())];
            known.rfind('/').map_or("", |end| &text[..=end])
        }
    };
    let place = |base: &&Path| match known {
        "" => Some(base.to_path_buf()),
        known => absolute(base, Path::new(known)),
    };
    bases.iter().filter_map(place).find(|place| place.symlink_metadata().is_ok())
}

/// The places that a call names, to be held.
pub(super) fn places(effect: &Effect, bases: &[&Path], root: &Root) -> Vec<PathBuf> {
    let mut places: Vec<PathBuf> = match effect {
        Effect::None => Vec::new(),
        Effect::Touches(paths) => paths.iter().flat_map(|path| written(path, bases)).collect(),
        Effect::Destroys(finding) | Effect::Unknown(finding) => {
            let of_simple = |simple: &Simple| {
                let targets = simple.targets.iter();
                let meant = targets.flat_map(|it| {
                    let area = area(it, bases).filter(|area| area.starts_with(root.path()));
                    of_target(it, bases, PlaceFilter::Held, root).into_iter().chain(area)
                });
                meant.chain(disks(simple)).chain(worktrees(simple, root)).collect::<Vec<_>>()
            };
            let mut places: Vec<PathBuf> = finding.commands.iter().flat_map(of_simple).collect();
            // What the list prints, any other command of the line may take.
            if finding.commands.iter().any(|simple| simple.text.starts_with("git worktree list"))
                && finding.commands.iter().any(|simple| simple.level > Level::Creates)
            {
                places.extend(linked_worktrees(root));
            }
            places
        }
    };
    places.sort();
    places.dedup();
    if places.len() > 10 * GLOB_MAX {
        // Nothing is cut: the directories stand for what is in them.
        places = places.iter().filter_map(|place| place.parent()).map(Path::to_owned).collect();
        places.dedup();
    }
    places
}

/// The directories outside of `root` that a call works in, other than to remove them.
pub(super) fn worked_in(effect: &Effect, bases: &[&Path], root: &Root) -> Vec<PathBuf> {
    let (Effect::Destroys(finding) | Effect::Unknown(finding)) = effect else { return Vec::new() };
    let stays = |it: &&Target| !matches!(it.action, TargetAction::Delete | TargetAction::Move);
    let places = finding.targets().filter(stays);
    let places = places.flat_map(|target| of_target(target, bases, PlaceFilter::Held, root));
    places.filter(|place| !place.starts_with(root.path()) && place.is_dir()).collect()
}

/// More words of a line than this are not looked at one by one.
const WORDS_MAX: usize = 500;

/// Every path that the words of a call may be, and that what it does may be about.
pub(super) fn mentioned<'a>(
    intent: &'a Intent,
    effect: &'a Effect,
) -> Box<dyn Iterator<Item = &'a Path> + 'a> {
    let is_end = |char: char| char.is_whitespace() || "'\"`;|&<>()=,:".contains(char);
    let words = match intent {
        Intent::Run { command, .. } => command.split(is_end).take(WORDS_MAX).map(Path::new),
        Intent::Unknown(tool) => {
            return Box::new(tool.texts.iter().take(WORDS_MAX).map(Path::new));
        }
        Intent::Write(paths) | Intent::Edit(paths) => {
            return Box::new(paths.iter().map(PathBuf::as_path));
        }
        Intent::Read => return Box::new(std::iter::empty()),
    };
    match effect {
        Effect::Destroys(finding) | Effect::Unknown(finding) => {
            Box::new(words.chain(finding.targets().map(|target| Path::new(&target.path))))
        }
        Effect::None | Effect::Touches(_) => Box::new(words),
    }
}

/// The linked worktrees that a command removes by the last part of their paths, as git allows it.
fn worktrees(simple: &Simple, root: &Root) -> Vec<PathBuf> {
    let words: Vec<&str> = simple.text.split_whitespace().collect();
    let mut removes = words.windows(2).map(|pair| pair == ["worktree", "remove"]);
    if words.first() != Some(&"git") || !removes.any(|it| it) {
        return Vec::new();
    }
    let is_named =
        |dir: &PathBuf| dir.file_name().is_some_and(|name| words.iter().any(|word| name == *word));
    linked_worktrees(root).into_iter().filter(is_named).collect()
}

/// The linked worktrees of the repository of a root.
fn linked_worktrees(root: &Root) -> Vec<PathBuf> {
    /// A longer text is no path.
    const PATH_MAX_BYTES: u64 = 8192;
    let RootKind::Git { common_dir, .. } = root.kind() else { return Vec::new() };
    let entries = fs::read_dir(common_dir.join("worktrees")).into_iter().flatten().flatten();
    let dir = |entry: fs::DirEntry| {
        let text = read_small(&entry.path().join("gitdir"), PATH_MAX_BYTES).ok()??;
        let git = PathBuf::from(OsStr::from_bytes(text.trim_ascii_end()));
        git.parent().filter(|dir| dir.is_dir()).map(Path::to_owned)
    };
    entries.filter_map(dir).collect()
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

/// Whether bytes of a target are lost unless a checkpoint holds them: not where it only moves, or grows, or
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
pub(super) fn meant_by(path: &Path, bases: &[&Path]) -> Vec<PathBuf> {
    let is_dir = path.as_os_str().as_bytes().ends_with(b"/");
    let behind = |base: &&Path| {
        absolute(base, path).filter(|_| is_dir).and_then(|place| behind_link(&place))
    };
    let meant = |base: &&Path| [absolute(base, path), physical(base, path), behind(base)];
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

/// The directory that a link leads to: what a slash behind its name means.
fn behind_link(link: &Path) -> Option<PathBuf> {
    let is_one = link.is_symlink() && link.is_dir();
    is_one.then(|| fs::canonicalize(link).ok()).flatten()
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

fn of_target(target: &Target, bases: &[&Path], wanted: PlaceFilter, root: &Root) -> Vec<PathBuf> {
    let mut places = meant(target, bases, wanted);
    // A file that is called like an option is one to a program that gets its name from a pattern.
    let is_option =
        |place: &PathBuf| place.file_name().is_some_and(|it| it.as_bytes().starts_with(b"-"));
    if target.spares == Spares::Directories && !places.iter().any(is_option) {
        let is_directory = |place: &Path| place.symlink_metadata().is_ok_and(|it| it.is_dir());
        // One that stands for too many matches is none of them.
        let stands_for_files = |place: &PathBuf| {
            target.certainty == Certainty::Glob && !is_directory_of(place, target, bases)
        };
        places.retain(|place| !is_directory(place) || stands_for_files(place));
    }
    match target.action {
        TargetAction::Delete => (),
        // What a command names elsewhere, whatever it does there. In the root it is held anyway.
        TargetAction::Overwrite
        | TargetAction::Modify
        | TargetAction::Move
        | TargetAction::Create
        | TargetAction::Git
            if target.certainty == Certainty::Dynamic =>
        {
            places = places.iter().filter_map(|place| fs::canonicalize(place).ok()).collect();
            places.retain(|place| !place.starts_with(root.path()) && is_worth_a_copy(place));
        }
        // Something is put into a directory. What that replaces there is a target of its own, or
        // some file of it.
        TargetAction::Overwrite => places.retain(|place| {
            let is_held = wanted == PlaceFilter::Held;
            // What an archive has is asked about; to hold all that is there would be too much.
            let is_unpacked = matches!(target.spares, Spares::NotPacked(_));
            let is_part = is_unpacked || matches!(target.spares, Spares::NotIn(_));
            !place.is_dir()
                || is_part && !is_held
                || is_held
                    && !is_unpacked
                    && (root.relative(place).is_ok() || is_worth_a_copy(place))
        }),
        TargetAction::Modify if wanted == PlaceFilter::Named => {
            let is_searched = target.spares == Spares::OtherKinds;
            places.retain(|place| !place.is_dir() || !is_searched && root.relative(place).is_err());
        }
        TargetAction::Modify => (),
        TargetAction::Move | TargetAction::Create | TargetAction::Git => (),
    }
    if target.action == TargetAction::Modify && wanted == PlaceFilter::Held {
        places.extend(places.iter().flat_map(|place| companions(place)).collect::<Vec<_>>());
    }
    places
}

/// The files beside one that begin with its name: the journal of a database, its write-ahead log, a
/// lock. What changes the one works off the others.
fn companions(file: &Path) -> Vec<PathBuf> {
    let (Some(dir), Some(name)) = (file.parent(), file.file_name()) else { return Vec::new() };
    if !file.is_file() {
        return Vec::new();
    }
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let is_one = |other: &OsStr| {
        let rest = other.as_bytes().strip_prefix(name.as_bytes());
        rest.and_then(<[u8]>::first).is_some_and(|next| !next.is_ascii_alphanumeric())
    };
    entries.map(|entry| entry.file_name()).filter(|it| is_one(it)).map(|it| dir.join(it)).collect()
}

fn meant(target: &Target, bases: &[&Path], wanted: PlaceFilter) -> Vec<PathBuf> {
    let path = Path::new(&target.path);
    let is_held = wanted == PlaceFilter::Held;
    match (target.action, target.certainty) {
        (TargetAction::Create, _) => Vec::new(),
        // What can drop commits; a command that merely moves refs is no exact one.
        (TargetAction::Git, Certainty::Exact) if is_held => plausible(path, bases),
        (TargetAction::Git, Certainty::Exact | Certainty::Glob) => Vec::new(),
        (TargetAction::Overwrite | TargetAction::Modify, Certainty::Exact) => written(path, bases),
        (TargetAction::Delete | TargetAction::Move, Certainty::Exact) => plausible(path, bases),
        (action, Certainty::Glob) => of_glob(target, bases, wanted, action),
        // A guess is worth a copy where it fits something, and never a question.
        (_, Certainty::Dynamic) if is_held && is_plain(&target.path) => plausible(path, bases),
        (_, Certainty::Dynamic) => Vec::new(),
    }
}

/// Whether a pattern fits the name of a directory itself.
fn is_directory_of(place: &Path, target: &Target, bases: &[&Path]) -> bool {
    bases.iter().any(|base| glob::fits(base, &target.path, place))
}

fn of_glob(
    target: &Target,
    bases: &[&Path],
    wanted: PlaceFilter,
    action: TargetAction,
) -> Vec<PathBuf> {
    let looked_through = match target.path.as_str() {
        "**" => Some("."),
        path => path.strip_suffix("/**"),
    };
    let pattern = match (looked_through, wanted) {
        // What a `find` is told to look through: some of it, and which is not known.
        (Some(_), PlaceFilter::Named) => return Vec::new(),
        (Some(""), PlaceFilter::Held) => "/",
        (Some(above), PlaceFilter::Held) => above,
        (None, _) => &target.path,
    };
    let mut found: Vec<PathBuf> = bases.iter().flat_map(|base| expand(base, pattern)).collect();
    if pattern.ends_with('/') {
        let behind: Vec<_> = found.iter().filter_map(|place| behind_link(place)).collect();
        found.extend(behind);
    }
    match action {
        TargetAction::Overwrite | TargetAction::Modify => through_links(found),
        TargetAction::Delete | TargetAction::Move | TargetAction::Create | TargetAction::Git => {
            found
        }
    }
}

/// Whether a place that is merely named may be held. The system's own directories are full of
/// programs that every other command names; the places for all users' temporary
/// files belong to no project.
pub(super) fn is_worth_a_copy(place: &Path) -> bool {
    const SHARED: &[&str] = &[
        "/", "/tmp", "/var/tmp", "/private/tmp", "/var", "/etc", "/home", "/opt", "/run",
        "/dev/shm",
    ];
    !SHARED.iter().any(|shared| place == Path::new(shared)) && !is_system(place)
}

/// Whether a place belongs to the system or to its kernel.
pub(super) fn is_system(place: &Path) -> bool {
    const SYSTEM: &[&str] = &[
        "/bin", "/sbin", "/lib", "/lib64", "/usr", "/nix", "/boot", "/snap", "/System", "/Library",
        "/Applications",
    ];
    SYSTEM.iter().any(|system| place.starts_with(system)) || is_of_the_kernel(place)
}

/// The text that is looked through, if what a line does is not known word by word: all of it where words
/// are put together when it runs, else that of the commands of which nothing is known.
pub(super) fn unresolved<'i>(intent: &'i Intent, effect: &Effect) -> Option<Cow<'i, str>> {
    let command = match intent {
        Intent::Run { command, .. } => command,
        Intent::Unknown(tool) => return Some(Cow::Owned(tool.texts.join("\n"))),
        Intent::Read | Intent::Write(_) | Intent::Edit(_) => return None,
    };
    let (Effect::Destroys(finding) | Effect::Unknown(finding)) = effect else { return None };
    let is_computed = |simple: &Simple| {
        let is_dynamic = |target: &Target| target.certainty == Certainty::Dynamic;
        let names_none = simple.level == Level::Destroys && simple.targets.is_empty();
        names_none || simple.targets.iter().any(is_dynamic) || simple.text.ends_with('…')
    };
    // The text of a here-document is in no command's words.
    let is_open = command.contains(['$', '`']) || command.contains("<<");
    if is_open || finding.commands.iter().any(is_computed) {
        return Some(without_signs(Cow::Borrowed(command), finding));
    }
    let unknown = finding.commands.iter().filter(|simple| simple.level == Level::Unknown);
    let texts: Vec<&str> = unknown.map(|simple| &*simple.text).collect();
    (!texts.is_empty()).then(|| without_signs(Cow::Owned(texts.join("\n")), finding))
}

/// A line whose program texts are without the signs that begin no path. Where one of them occurs a second
/// time, that may be a path, and both stay.
fn without_signs<'l>(mut line: Cow<'l, str>, finding: &Finding) -> Cow<'l, str> {
    for text in &finding.texts {
        if line.matches(&*text.word).count() == 1 {
            line = Cow::Owned(line.replacen(&*text.word, &text.plain, 1));
        }
    }
    line
}

/// Whether something is lost of which the line does not show what it is.
pub(super) fn loses_unseen(effect: &Effect) -> bool {
    let Effect::Destroys(finding) = effect else { return false };
    let is_unseen = |simple: &Simple, target: &Target| {
        target.certainty == Certainty::Dynamic && !is_plain(&target.path) && loses(simple, target)
    };
    let mut commands = finding.commands.iter();
    commands.any(|simple| simple.targets.iter().any(|target| is_unseen(simple, target)))
}

fn is_plain(text: &str) -> bool {
    !text.contains(is_open)
}

/// Whether a character of a target stands for others; `…` stands for words from elsewhere.
fn is_open(char: char) -> bool {
    "$`*?[(){}…".contains(char)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_made_absolute_by_its_text() {
        let from = |path| absolute(Path::new("/r/a"), Path::new(path));
        assert_eq!(from("../b/./c"), Some("/r/b/c".into()));
        assert_eq!(from("/x"), Some("/x".into()));
        assert_eq!(from("../../../../etc"), Some("/etc".into()));
        assert_eq!(from(""), None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_place_for_files_is_worth_a_copy_wherever_it_is_mounted() {
        let worth = |path| is_worth_a_copy(Path::new(path));
        assert!(worth("/opt/app") && worth("/run/user/1/app") && worth("/dev/shm/app"));
        assert!(!worth("/proc/self") && !worth("/usr/lib") && !worth("/opt"));
    }
}
