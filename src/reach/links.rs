//! Where symlinks lead that a command follows while it walks through a directory.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use super::named_paths::is_worth_a_copy;
use crate::model::{Effect, Finding, Simple};

/// So many names are looked at, as many as a checkpoint holds by default. They take a second.
const NAMES_MAX: usize = 500_000;

/// What lies outside of `root` and is reached over symlinks by the commands of a line that follow them.
pub(super) fn over_links(effect: &Effect, bases: &[&Path], root: &Path) -> BTreeSet<PathBuf> {
    let (Effect::Destroys(finding) | Effect::Unknown(finding)) = effect else {
        return BTreeSet::new();
    };
    let mut dirs = walked(finding, bases);
    dirs.retain(|dir| dir.starts_with(root) || is_worth_a_copy(dir));
    let (mut reached, mut seen, mut left) = (BTreeSet::new(), BTreeSet::new(), NAMES_MAX);
    while let Some(dir) = dirs.pop() {
        if !seen.insert(dir.clone()) {
            continue;
        }
        for entry in fs::read_dir(&dir).into_iter().flatten().flatten().take(left) {
            left -= 1;
            let Ok(kind) = entry.file_type() else { continue };
            if kind.is_dir() && entry.file_name() != ".git" {
                dirs.push(entry.path());
            }
            let real = kind.is_symlink().then(|| fs::canonicalize(entry.path()).ok()).flatten();
            if let Some(real) = real.filter(|real| !real.starts_with(root)) {
                // The rest of the system is not walked, whatever leads to it.
                if is_worth_a_copy(&real) && real.is_dir() {
                    dirs.push(real.clone());
                }
                reached.insert(real);
            }
        }
    }
    reached
}

/// The directories that commands of a line walk through and follow symlinks in.
fn walked(finding: &Finding, bases: &[&Path]) -> Vec<PathBuf> {
    let mut dirs = Vec::new();
    for simple in finding.commands.iter().filter(|simple| follows_links(simple)) {
        let words = simple.text.split_whitespace().skip(1).filter(|word| !word.starts_with('-'));
        let named: Vec<PathBuf> = words
            .flat_map(|word| bases.iter().map(move |base| base.join(word)))
            .filter(|place| place.is_dir())
            .collect();
        if named.is_empty() {
            dirs.extend(bases.iter().map(|base| base.to_path_buf()));
        }
        dirs.extend(named);
    }
    dirs.iter().filter_map(|dir| fs::canonicalize(dir).ok()).collect()
}

/// Whether a command walks through directories and follows the symlinks in them.
fn follows_links(simple: &Simple) -> bool {
    let mut words = simple.text.split_whitespace();
    let program = words.next().and_then(|word| word.rsplit('/').next()).unwrap_or_default();
    let (letter, long) = match program {
        "find" => ('L', "-follow"),
        "grep" | "egrep" | "fgrep" => ('R', "--dereference-recursive"),
        "rg" | "fd" | "fdfind" => ('L', "--follow"),
        _ => return false,
    };
    let is_short =
        |word: &str| word.starts_with('-') && !word.starts_with("--") && word.contains(letter);
    words.any(|word| word == long || is_short(word))
}
