//! Expands a glob, with its braces, to the paths on the disk.

use std::{
    ffi::OsStr,
    fs,
    os::unix::ffi::OsStrExt,
    path::{Component, Path, PathBuf},
};

use gix::bstr::ByteSlice;

use super::absolute;

/// How many matches of a glob are told apart; beyond it, the directories they are in are meant whole.
pub(super) const GLOB_MAX: usize = 1_000;

/// Everything a glob names, seen from `base`. Braces are tried in every combination. The names of
/// `base` itself are no pattern, whatever is in them.
pub fn expand(base: &Path, pattern: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for pattern in braces(pattern) {
        let mut places = vec![base.to_owned()];
        for component in Path::new(&pattern).components() {
            let next: Vec<PathBuf> = match component {
                Component::RootDir => vec![PathBuf::from("/")],
                Component::CurDir => continue,
                Component::ParentDir => {
                    places.iter().filter_map(|dir| absolute(dir, Path::new(".."))).collect()
                }
                Component::Normal(part) if part == "**" => {
                    places.iter().flat_map(|dir| all_below(dir)).collect()
                }
                // Braces that are not spelled out may stand for anything.
                Component::Normal(part) if first_braces(&part.to_string_lossy()).is_some() => break,
                Component::Normal(part) => places.iter().flat_map(|dir| step(dir, part)).collect(),
                Component::Prefix(_) => Vec::new(),
            };
            if next.len() > GLOB_MAX {
                break;
            }
            places = next;
        }
        found.extend(places);
    }
    found
}

/// Whether a pattern, seen from `base`, fits a path in all its parts.
pub(super) fn fits(base: &Path, pattern: &str, path: &Path) -> bool {
    let is_it = |pattern: &String| {
        let whole = absolute(base, Path::new(pattern));
        whole.is_some_and(|whole| {
            let mode = gix::glob::wildmatch::Mode::NO_MATCH_SLASH_LITERAL;
            let (whole, path) = (whole.as_os_str().as_bytes(), path.as_os_str().as_bytes());
            gix::glob::wildmatch(whole.as_bstr(), path.as_bstr(), mode)
        })
    };
    braces(pattern).iter().any(is_it)
}

/// So many names are looked at to find one that fits a pattern.
const NAMES_MAX: usize = 20_000;

/// Whether a path below `top`, one of the directories on the way to it, or one below it has a name that fits a pattern
/// of `find -name`: `None` if none has, and `Some(false)` if there are too many to be looked at.
pub fn has_name(top: &Path, path: &Path, pattern: &str) -> Option<bool> {
    let fits = |name: &OsStr| {
        let mode = gix::glob::wildmatch::Mode::empty();
        gix::glob::wildmatch(pattern.as_bytes().as_bstr(), name.as_bytes().as_bstr(), mode)
    };
    // A directory may go with all that is in it.
    let way = path.strip_prefix(top).unwrap_or(path);
    if way.components().any(|part| fits(part.as_os_str())) || top.file_name().is_some_and(fits) {
        return Some(true);
    }
    let (mut dirs, mut left) = (vec![path.to_owned()], NAMES_MAX);
    while let Some(dir) = dirs.pop() {
        for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
            if fits(&entry.file_name()) {
                return Some(true);
            }
            left -= 1;
            if left == 0 {
                return Some(false);
            }
            dirs.extend(entry.file_type().is_ok_and(|kind| kind.is_dir()).then(|| entry.path()));
        }
    }
    None
}

/// Whether a path, or something in it, has the place of something in a directory that is copied over it: `None` if
/// not, and `Some(false)` if there is too much to be looked at.
pub fn has_some_of(path: &Path, source: &Path) -> Option<bool> {
    let (mut pairs, mut left) = (vec![(path.to_owned(), source.to_owned())], NAMES_MAX);
    while let Some((path, source)) = pairs.pop() {
        let [here, there] = [&path, &source].map(|it| it.symlink_metadata());
        let (Ok(here), Ok(there)) = (here, there) else { continue };
        // Nothing is copied over itself.
        if path == source {
            continue;
        }
        if !here.is_dir() || !there.is_dir() {
            return Some(true);
        }
        for entry in fs::read_dir(&source).into_iter().flatten().flatten() {
            left -= 1;
            if left == 0 {
                return Some(false);
            }
            pairs.push((path.join(entry.file_name()), entry.path()));
        }
    }
    None
}

/// A directory and every directory below it, one more than the limit at most: where `**` may stand.
fn all_below(dir: &Path) -> Vec<PathBuf> {
    let mut all = vec![dir.to_owned()];
    let mut at = 0;
    while at < all.len() && all.len() <= GLOB_MAX {
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
    names.filter(|name| matches(name)).take(GLOB_MAX + 1).map(|name| dir.join(name)).collect()
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
    use crate::reach::plausible;

    #[test]
    fn braces_stand_for_every_choice() {
        let mut texts = braces("a{b,c{d,e}}f");
        texts.sort();
        assert_eq!(texts, ["abf", "acdf", "acef"]);
        assert_eq!(braces("a{}b"), ["a{}b"]);
    }

    #[test]
    fn a_glob_is_seen_from_a_directory_whose_name_is_no_pattern() {
        let top = std::env::temp_dir().join(format!("beforehand-reach-{}[x]", std::process::id()));
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

    #[test]
    fn a_name_is_looked_for_on_the_way_to_a_path_and_below_it() {
        let top = std::env::temp_dir().join(format!("beforehand-names-{}", std::process::id()));
        fs::create_dir_all(top.join("way/held/below")).unwrap();
        let has = |pattern| has_name(&top, &top.join("way/held"), pattern);
        assert_eq!(["way", "h*", "b?low"].map(has), [Some(true); 3]);
        assert_eq!(has("*.pyc"), None);
        assert_eq!(has_name(&top.join("way"), &top.join("way/held"), "way"), Some(true));
        for name in ["way/held/below", "way/held", "way", ""] {
            fs::remove_dir(top.join(name)).unwrap();
        }
    }

    #[test]
    fn what_is_copied_over_a_directory_is_found_in_both() {
        let top = std::env::temp_dir().join(format!("beforehand-over-{}", std::process::id()));
        let dirs = ["here/sub", "there/sub", "there/other"];
        for dir in dirs {
            fs::create_dir_all(top.join(dir)).unwrap();
        }
        let files = ["here/sub/a", "there/sub/b", "there/other/a"];
        for file in files {
            fs::File::create(top.join(file)).unwrap();
        }
        let over = |here: &str, there: &str| has_some_of(&top.join(here), &top.join(there));
        assert_eq!(over("here", "there"), None, "directories alone are in both");
        assert_eq!(over("here/sub", "there/other"), Some(true));
        assert_eq!(over("here/sub/a", "there/other/a"), Some(true));
        assert_eq!(over("here/sub/a", "there/sub/a"), None);
        assert_eq!(over("here", "here"), None, "it is itself");
        for file in files {
            fs::remove_file(top.join(file)).unwrap();
        }
        for dir in dirs.iter().chain(&["here", "there", ""]) {
            fs::remove_dir(top.join(dir)).unwrap();
        }
    }

    #[test]
    fn more_matches_than_are_told_apart_mean_their_directory() {
        let top = std::env::temp_dir().join(format!("beforehand-many-{}", std::process::id()));
        fs::create_dir_all(top.join("data")).unwrap();
        for number in 0..=GLOB_MAX {
            fs::File::create(top.join(format!("data/{number}.csv"))).unwrap();
        }
        assert_eq!(expand(&top, "data/*.csv"), [top.join("data")]);
        assert_eq!(expand(&top, "data/1*.csv").len(), 112);
        let many = "{a,b}".repeat(8);
        assert!(expand(&top, &format!("data/{many}.csv")).contains(&top.join("data")));
        for number in 0..=GLOB_MAX {
            fs::remove_file(top.join(format!("data/{number}.csv"))).unwrap();
        }
        for name in ["data", ""] {
            fs::remove_dir(top.join(name)).unwrap();
        }
    }
}
