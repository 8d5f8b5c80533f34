//! The paths that stand anywhere in the text of a line, whatever the shell makes of them. Where a word is
//! known only when the line runs, what it becomes is most often put together from what stands there: an
//! array, a default, a directory and a name. Knows no grammar, so that no gap in one can lose a path.

use std::{
    collections::HashSet,
    ffi::OsStr,
    fs,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use super::{
    glob::expand,
    named_paths::{is_system, is_worth_a_copy, plausible},
};
use crate::model::Root;

/// More pieces of one line than this are not looked at: a stat each, two milliseconds together.
const PIECES_MAX: usize = 8_000;
/// A piece is tried in this many directories.
const DIRS_MAX: usize = 8;
/// How many pairs of a directory and a piece are tried: four milliseconds.
const TRIED_MAX: usize = 16_000;
/// More patterns of one line than this are not expanded: each with a `**` lists up to a thousand
/// directories.
const PATTERNS_MAX: usize = 8;
/// How many names of one directory are compared with what begins or ends a word.
const NAMES_MAX: usize = 1_000;
/// How many pairs of a name and a word are looked at for what they have in common: two milliseconds.
const COMPARED_MAX: usize = 100_000;

/// What separates words and their parts in the shell and in program text.
const BETWEEN: &str = "'\"`;|&<>()\n\t ";
/// What separates parts of a word that may be names of their own.
const WITHIN: &str = "=,:@{}[]$*?!%#^\\+";
/// What stands for text that is not known.
const OPEN: &str = "$`{}*?[]%!";

/// How shells and programs come by the home directory.
const HOME_WORDS: [&str; 4] = ["~", "HOME", "home()", "homedir"];
/// How they come by the directory above another.
const PARENT_WORDS: [&str; 2] = [".parent", "dirname"];

/// A part of a line that may be a path, or the beginning or end of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Piece<'t> {
    text: &'t str,
    /// Whether something that is not known precedes or follows it.
    is_end: bool,
    is_beginning: bool,
}

/// The places in the disk that a line's text names.
pub(super) struct RawText<'a> {
    bases: &'a [&'a Path],
    root: &'a Root,
    /// Files, and directories outside the root.
    pub(super) places: Vec<PathBuf>,
    /// Directories of the root.
    pub(super) inner: Vec<PathBuf>,
    /// Whether words are put together when the line runs.
    is_computed: bool,
    /// Where the other pieces are looked for.
    dirs: Vec<PathBuf>,
}

impl<'a> RawText<'a> {
    /// Looks up every piece of `line`: as it stands, and in every directory that the line names.
    pub(super) fn look(
        line: &str,
        bases: &'a [&'a Path],
        home: Option<&Path>,
        root: &'a Root,
    ) -> Self {
        let dirs = bases.iter().map(|base| base.to_path_buf()).collect();
        let is_computed = line.contains(|char| OPEN.contains(char));
        let mut found =
            Self { is_computed, bases, root, places: Vec::new(), inner: Vec::new(), dirs };
        if HOME_WORDS.iter().any(|word| line.contains(word)) {
            found.add_dir(home);
        }
        if PARENT_WORDS.iter().any(|word| line.contains(word)) {
            for base in bases {
                found.add_dir(base.parent());
            }
        }
        let bare: String = line.chars().filter(|char| !"'\"\\".contains(*char)).collect();
        let mut pieces = Vec::new();
        let mut seen = HashSet::new();
        gather(line, &mut pieces, &mut seen);
        if bare.len() < line.len() {
            gather(&bare, &mut pieces, &mut seen);
        }
        for piece in &pieces {
            found.as_it_stands(piece.text);
        }
        let mut seen_patterns = HashSet::new();
        let words = line.split(|char: char| BETWEEN.contains(char));
        let patterns = words.filter(|word| word.contains('/') && word.contains(['*', '?']));
        for pattern in patterns.filter(|word| seen_patterns.insert(*word)).take(PATTERNS_MAX) {
            found.as_pattern(pattern);
        }
        found.in_directories(&pieces);
        for places in [&mut found.places, &mut found.inner] {
            places.sort();
            places.dedup();
        }
        found
    }

    fn as_it_stands(&mut self, text: &str) {
        let places = plausible(Path::new(text), self.bases);
        if places.is_empty() && text.contains('/') {
            self.beginning(text);
        }
        for place in places {
            self.add_dir(place.parent());
            self.found(place, false);
        }
    }

    /// Takes what a pattern leads to outside the root, over links.
    fn as_pattern(&mut self, pattern: &str) {
        for place in self.bases.iter().flat_map(|base| expand(base, pattern)) {
            let real = fs::canonicalize(&place);
            if real.is_ok_and(|real| !real.starts_with(self.root.path())) {
                self.found(place, true);
            }
        }
    }

    /// Nothing is called so: it may be what names begin with, or lead elsewhere with other text in it.
    fn beginning(&mut self, text: &str) {
        for base in self.bases {
            let whole = base.join(text);
            let mut above = whole.ancestors().skip(1).enumerate();
            let Some((depth, dir)) =
                above.find_map(|(depth, above)| Some((depth, fs::canonicalize(above).ok()?)))
            else {
                continue;
            };
            // What is in the root is looked at by the scan.
            if depth == 0
                && !dir.starts_with(self.root.path())
                && let Some(name) = whole.file_name()
            {
                self.files_in(&dir, |file| file.as_bytes().starts_with(name.as_bytes()));
            }
            self.add_dir(Some(&dir));
        }
    }

    /// Takes the files of a directory that are called so.
    fn files_in(&mut self, dir: &Path, is_one: impl Fn(&OsStr) -> bool) {
        for entry in fs::read_dir(dir).into_iter().flatten().flatten().take(NAMES_MAX) {
            if is_one(&entry.file_name()) && entry.file_type().is_ok_and(|kind| !kind.is_dir()) {
                self.found(entry.path(), true);
            }
        }
    }

    fn add_dir(&mut self, dir: Option<&Path>) {
        let Some(dir) = dir.filter(|dir| !is_system(dir)) else { return };
        if self.dirs.len() < DIRS_MAX && !self.dirs.iter().any(|known| known == dir) {
            self.dirs.push(dir.to_owned());
        }
    }

    /// Sorts in what is at `place`; a directory around the root is only one to look in.
    fn found(&mut self, place: PathBuf, is_joined: bool) {
        let Ok(real) = fs::canonicalize(&place) else { return };
        if !real.is_dir() {
            if real.starts_with(self.root.path()) || is_worth_a_copy(&real) {
                self.places.extend(place.is_symlink().then_some(place));
                self.places.push(real);
            }
            return;
        }
        if !is_joined {
            self.add_dir(Some(&real));
        }
        if is_joined && !self.is_computed || self.root.path().starts_with(&real) {
            // Nothing puts a name together, it is held, or far more than the line is about.
        } else if real.starts_with(self.root.path()) {
            self.inner.push(real);
        } else if is_worth_a_copy(&real) {
            self.places.push(real);
        }
    }

    fn in_directories(&mut self, pieces: &[Piece<'_>]) {
        let (mut tried, mut compared) = (0, 0);
        let dirs = std::mem::take(&mut self.dirs);
        let held: HashSet<PathBuf> = self.places.iter().cloned().collect();
        for dir in dirs.into_iter().filter(|dir| !held.contains(dir)) {
            // Any word may be a name in the top directory; one that is meant begins there.
            let pieces_in = if dir.parent().is_some() { pieces } else { &[] };
            for piece in pieces_in {
                let name = piece.text.trim_matches('/');
                tried += 1;
                if tried > TRIED_MAX {
                    return;
                }
                let place = dir.join(name);
                if !name.is_empty() && place.symlink_metadata().is_ok() {
                    self.found(place, true);
                }
            }
            self.parts_of_names(&dir, pieces_in);
            if self.is_computed {
                self.alike(&dir, pieces, &mut compared);
            }
        }
    }

    /// The files in a directory with names that a word becomes when a part of it is taken off, or replaced.
    fn alike(&mut self, dir: &Path, pieces: &[Piece<'_>], compared: &mut usize) {
        let is_inner = dir.starts_with(self.root.path());
        // A name alone means something in the directory of the call, which may be changed.
        let words = pieces.iter().filter(|piece| is_inner || piece.text.contains('/'));
        let names = words.filter_map(|piece| piece.text.rsplit('/').next());
        let names: HashSet<&str> = names.filter(|name| !name.is_empty()).collect();
        let entries = fs::read_dir(dir).into_iter().flatten().flatten().take(NAMES_MAX);
        for entry in entries {
            *compared += names.len();
            if *compared > COMPARED_MAX {
                return;
            }
            let file = entry.file_name();
            let likeness = names.iter().map(|name| likeness(file.as_bytes(), name.as_bytes()));
            let is_file = entry.file_type().is_ok_and(|kind| kind.is_file());
            match likeness.max() {
                Some(NamePart::Part) if is_file || !is_inner => self.found(entry.path(), true),
                Some(NamePart::Half) if !is_inner => self.found(entry.path(), true),
                Some(NamePart::Half) if is_file => self.inner.push(entry.path()),
                _ => (),
            }
        }
    }

    /// The files in a directory that begin or end as a word does of which the rest is not known.
    fn parts_of_names(&mut self, dir: &Path, pieces: &[Piece<'_>]) {
        let open = pieces.iter().filter(|piece| piece.is_beginning || piece.is_end);
        let name = |piece: &Piece<'_>| piece.text.rsplit('/').next().unwrap_or_default().to_owned();
        let mut open: Vec<_> = open.map(|piece| (*piece, name(piece))).collect();
        open.retain(|(_, name)| !name.is_empty());
        if open.is_empty() {
            return;
        }
        self.files_in(dir, |file| {
            let file = file.as_bytes();
            open.iter().any(|(piece, name)| {
                piece.is_beginning && file.starts_with(name.as_bytes())
                    || piece.is_end && file.ends_with(name.as_bytes())
            })
        });
    }
}

/// How much of a word a name is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum NamePart {
    None,
    /// The word with something else in place of no more than half of it.
    Half,
    /// The word without a part of it.
    Part,
}

fn likeness(file: &[u8], word: &[u8]) -> NamePart {
    let common = file.iter().zip(word).take_while(|(a, b)| a == b).count();
    let rest = file[common..].iter().rev().zip(word[common..].iter().rev());
    let common = common + rest.take_while(|(a, b)| a == b).count();
    match common {
        0 => NamePart::None,
        common if common == file.len() && common > 1 => NamePart::Part,
        common if 2 * common >= file.len().max(word.len()) => NamePart::Half,
        _ => NamePart::None,
    }
}

/// Every piece of a text, each once: a long program repeats itself.
fn gather<'t>(text: &'t str, pieces: &mut Vec<Piece<'t>>, seen: &mut HashSet<Piece<'t>>) {
    for word in text.split(|char| BETWEEN.contains(char)) {
        if pieces.len() >= PIECES_MAX {
            return;
        }
        let known = pieces.len();
        let is_open = word.contains(|char| OPEN.contains(char));
        let (from, to) = around(text, word);
        add(pieces, word, from, to);
        if word.contains(|char| WITHIN.contains(char)) {
            for part in word.split(|char| WITHIN.contains(char)) {
                let (from, to) = around(text, part);
                add(pieces, part, from, to);
                if is_open && part.contains('/') {
                    part.split('/').for_each(|name| add(pieces, name, false, false));
                }
            }
        }
        let mut at = known;
        while at < pieces.len() {
            if seen.insert(pieces[at]) {
                at += 1;
            } else {
                pieces.remove(at);
            }
        }
    }
}

/// Whether something that is not known stands right before and behind a part of a text.
fn around(text: &str, part: &str) -> (bool, bool) {
    let at = part.as_ptr() as usize - text.as_ptr() as usize;
    let before = text[..at].trim_end_matches(['"', '\'']).chars().next_back();
    let behind = text[at + part.len()..].trim_start_matches(['"', '\'']).chars().next();
    let is_open = |char: Option<char>| char.is_some_and(|char| OPEN.contains(char));
    (is_open(before) || before == Some(')'), is_open(behind))
}

fn add<'t>(pieces: &mut Vec<Piece<'t>>, text: &'t str, is_end: bool, is_beginning: bool) {
    let is_name =
        |text: &str| text.bytes().any(|byte| !b"./-~".contains(&byte)) || text.contains("..");
    let mut push = |text: &'t str| {
        if is_name(text) && !text.starts_with("//") && text.len() < 1024 {
            pieces.push(Piece { text, is_end, is_beginning });
        }
    };
    push(text);
    if text.starts_with('-') {
        push(text.trim_start_matches('-'));
        // A value may follow a short option at once.
        let value = text.char_indices().nth(2);
        push(value.map_or("", |(at, _)| &text[at..]));
    }
    if let Some(at) = text.find("..").filter(|at| *at > 0) {
        push(&text[at..]);
    }
    // A beginning may be taken off.
    text.match_indices('/').for_each(|(at, _)| push(&text[at + 1..]));
    if let Some(at_home) = text.strip_prefix("~/") {
        push(at_home);
    }
}
