//! The places that the words of a line may mean, whatever its programs do with them: every piece of
//! a word that can be read as a path, in program texts and documents too. Knows no program.

use std::{
    collections::{HashMap, HashSet},
    path::{Path, PathBuf},
};

use super::{GuardContext, absolute, path_threat};
use crate::{model::ProgramText, reach};

/// The first of the words of `commands` that leads to, above or into a place of ours, and which.
pub(super) fn threat(
    ours: &GuardContext<'_, '_>,
    commands: &[Vec<String>],
    program_texts: &[ProgramText],
    takes_all: bool,
) -> Option<(String, String)> {
    let mut known = HashSet::new();
    let mut clear = Clear { ours, dirs: HashMap::new() };
    let words = commands.iter().filter(|words| !is_message(words)).flatten();
    let words = words.filter(|word| !is_as_it_is(ours, word));
    let words = words.map(|word| {
        let text = program_texts.iter().find(|text| text.word == *word);
        // Of two words that are the same, one may be no program text.
        let same = commands.iter().flatten().filter(|it| *it == word);
        text.filter(|_| same.count() == 1).map_or(word, |text| &text.plain)
    });
    let mut texts = words.flat_map(|word| pieces(word)).filter(|text| known.insert(text.clone()));
    texts.find_map(|text| {
        // To many programs a lone `/` is a sign between names.
        let mut places = led_to(ours, &text).into_iter();
        let why = places.find_map(|(base, path)| {
            let is_top = path.bytes().all(|byte| byte == b'/');
            if is_top && !takes_all { None } else { clear.threat(base, &path) }
        })?;
        Some((text, why))
    })
}

/// The commands of a line but for a `cd` at its end, behind which nothing runs, and but for those in a chain of
/// `&&` that lead back from a directory that the chain went to, as in `cd web && make && cd ..`.
pub(super) fn without_returns(
    ours: &GuardContext<'_, '_>,
    line: &str,
    commands: &[Vec<String>],
) -> Vec<Vec<String>> {
    let mut commands = commands.to_vec();
    // A trap runs where the line ends, and `cd` may be a function.
    for words in &commands {
        let is_cd = words.len() == 2 && words[0] == "cd";
        let mut words = words.iter().skip(usize::from(is_cd));
        if words.any(|word| matches!(&**word, "cd" | "trap" | "alias")) {
            return commands;
        }
    }
    while commands.last().is_some_and(|words| words[0] == "cd") {
        commands.pop();
    }
    let is_chain = !line.replace("&&", "").contains([';', '|', '&', '\n', '(', ')', '`', '{', '}']);
    let mut dir = Some(PathBuf::new()).filter(|_| is_chain && ours.process.var("CDPATH").is_none());
    commands.retain(|words| {
        if words[0] != "cd" {
            return true;
        }
        dir = dir.take().and_then(|dir| below(&dir, &words[1]));
        dir.is_none() || !words[1].split('/').any(|name| name == "..")
    });
    commands
}

/// Where `cd` goes from a directory below that of the call, if it never leads above that one.
fn below(dir: &Path, to: &str) -> Option<PathBuf> {
    if to.starts_with(['-', '/']) || !to.chars().all(|c| is_name_char(c) || "./-".contains(c)) {
        return None;
    }
    let mut dir = dir.to_owned();
    for name in to.split('/') {
        match name {
            "" | "." => (),
            ".." if !dir.pop() => return None,
            ".." => (),
            name => dir.push(name),
        }
    }
    Some(dir)
}

/// What is known of the directories that words begin with: most lead nowhere near us, and then
/// nothing below them does.
struct Clear<'a, 'o, 'p> {
    ours: &'a GuardContext<'o, 'p>,
    dirs: HashMap<PathBuf, bool>,
}

impl Clear<'_, '_, '_> {
    /// Why a path leads to us.
    fn threat(&mut self, base: &Path, path: &str) -> Option<String> {
        let ours = self.ours;
        let at = path.find(['*', '?', '[', '{']);
        let fixed = at.map_or(path, |at| path[..at].rfind('/').map_or("", |end| &path[..=end]));
        let place = absolute(ours, &base.join(fixed));
        let led = ours.real.of(&place).ok().filter(|led| *led != place);
        let near = Some(place).filter(|place| self.is_near(base, place));
        let near: Vec<PathBuf> = near.into_iter().chain(led).collect();
        let is_pattern = at.is_some();
        // A pattern may fit less than all that is below.
        let told = near.iter().find_map(|place| path_threat(ours, place, !is_pattern));
        if told.is_some() || near.is_empty() || !is_pattern {
            return told;
        }
        reach::matching(base, path).iter().find_map(|place| path_threat(ours, place, true))
    }

    /// Whether the directory that a place begins with leads above or into a place of ours.
    fn is_near(&mut self, base: &Path, place: &Path) -> bool {
        let below = place.strip_prefix(base).ok().and_then(|rest| rest.components().next());
        let dir = match below {
            Some(first) => base.join(first),
            None => place.components().take(3).collect(),
        };
        let ours = self.ours;
        *self.dirs.entry(dir).or_insert_with_key(|dir| path_threat(ours, dir, true).is_some())
    }
}

/// Whether a word gives a variable the value that it has: that names nothing.
fn is_as_it_is(ours: &GuardContext<'_, '_>, word: &str) -> bool {
    let word = plain_variables(word);
    let set = word.split_once('=').filter(|(name, _)| name.chars().all(is_name_char));
    set.is_some_and(|(name, value)| {
        let now = ours.process.var(name).and_then(|now| now.to_str());
        value.strip_prefix('$') == Some(name) || now == Some(value)
    })
}

/// What a commit says of a place does nothing to it.
fn is_message(words: &[String]) -> bool {
    words.first().is_some_and(|it| it == "git") && words.get(1).is_some_and(|it| it == "commit")
}

/// What of a word can be read as a path: all of it, and whatever stands between signs that end one
/// in some language.
fn pieces(word: &str) -> Vec<String> {
    let word = plain_variables(word);
    let is_end = |c: char| c.is_whitespace() || "'\"`;|&<>()[]{},:@=!#%^+\\".contains(c);
    let mut pieces = Vec::new();
    // Signs that end a path in one language belong to a pattern in another. A lone name is a word.
    if !word.contains(char::is_whitespace) && !word.chars().all(is_name_char) {
        pieces.push(word.clone());
    }
    let mut before = None;
    let mut start = 0;
    for (at, c) in word.char_indices().chain([(word.len(), ' ')]) {
        if !is_end(c) {
            continue;
        }
        // `=~` compares.
        let compares = &word[start..at] == "~" && before == Some('=') && {
            let name = word[..start - 1].chars().next_back();
            name.is_none_or(|it| !it.is_alphanumeric())
        };
        let is_set = start == 0 && c == '=';
        let is_lone = start == 0 && at == word.len();
        if start < at && !compares && !is_set && !is_lone {
            pieces.push(word[start..at].to_owned());
        }
        (before, start) = (Some(c), at + c.len_utf8());
    }
    let bare = |piece: &String| {
        let rest = piece.strip_prefix('-')?.trim_start_matches('-');
        // A value may follow a short option at once.
        Some(rest.strip_prefix(|c: char| c.is_ascii_alphabetic()).unwrap_or(rest).to_owned())
    };
    pieces.extend(pieces.iter().filter_map(bare).collect::<Vec<_>>());
    pieces.retain(|piece| {
        // In a longer text, two slashes begin a comment.
        let is_comment = piece.len() > 1 && piece.bytes().all(|byte| byte == b'/');
        !piece.is_empty() && (*piece == word || !is_comment)
    });
    pieces
}

/// `${NAME}` as `$NAME`, which no brace ends.
fn plain_variables(word: &str) -> String {
    let mut plain = String::with_capacity(word.len());
    let mut rest = word;
    while let Some(at) = rest.find("${") {
        let (before, behind) = (&rest[..at], &rest[at + 2..]);
        let name = behind.find(|c: char| !is_name_char(c)).unwrap_or(behind.len());
        plain.push_str(before);
        plain.push('$');
        plain.push_str(&behind[..name]);
        rest = behind[name..].strip_prefix('}').unwrap_or(&behind[name..]);
    }
    plain.push_str(rest);
    plain
}

fn is_name_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// The places that one piece may mean: from which directory, and the path.
fn led_to<'a>(ours: &GuardContext<'a, '_>, piece: &str) -> Vec<(&'a Path, String)> {
    let home = ours.process.home_dir();
    let path = match (piece.strip_prefix('~'), home.and_then(Path::to_str)) {
        (Some(rest), Some(home)) if rest.is_empty() || rest.starts_with('/') => {
            format!("{home}{rest}")
        }
        (Some(_), _) => return Vec::new(),
        (None, _) => match variable(ours, piece) {
            Some(path) => path,
            None if piece.contains('$') => return Vec::new(),
            None => piece.to_owned(),
        },
    };
    // A program text may have gone home first.
    let first = path.split('/').next().unwrap_or_default();
    let is_dotted = first.starts_with('.') && !first.trim_matches('.').is_empty();
    let may_be_home = home.filter(|_| is_dotted && !ours.cwd.join(&path).exists());
    let mut found: Vec<(&Path, String)> =
        may_be_home.into_iter().map(|home| (home, path.clone())).collect();
    found.push((ours.cwd, path));
    found
}

/// A piece that begins with a variable of the environment, or is the name of one as a program text
/// asks for it.
fn variable(ours: &GuardContext<'_, '_>, piece: &str) -> Option<String> {
    let (name, rest) = match piece.strip_prefix('$') {
        Some(rest) => rest.split_at(rest.find(|c: char| !is_name_char(c)).unwrap_or(rest.len())),
        None => (piece.rsplit('.').next()?, ""),
    };
    let is_whole = rest.is_empty() || rest.starts_with('/');
    let is_name = name.starts_with(|c: char| c.is_ascii_uppercase());
    let value = ours.process.var(name).filter(|_| is_whole && is_name)?.to_str()?;
    (value.starts_with('/') && !value.contains(':')).then(|| format!("{value}{rest}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_read_in_every_way_that_makes_a_path() {
        for (word, wanted) in [
            ("~/a", &["~/a"][..]),
            ("--dir=~/a", &["--dir=~/a", "~/a"]),
            ("-C/a", &["-C/a", "/a"]),
            ("${HOME}/a", &["$HOME/a"]),
            ("${X:-$HOME/a}", &["$HOME/a"]),
            ("import os; os.remove(os.path.expanduser('~/a'))", &["~/a"]),
            ("a[b]*", &["a[b]*"]),
            ("HOME=~", &["~"]),
            ("os.environ['HOME']", &["HOME"]),
            ("process.env.HOME", &["process.env.HOME"]),
        ] {
            let found = pieces(word);
            assert!(wanted.iter().all(|it| found.iter().any(|found| found == it)), "{found:?}");
        }
        for word in ["$x =~ s/a/b/", "[[ $x =~ ~ ]]x=~y", "a~"] {
            assert!(!pieces(word).iter().any(|it| it == "~" && !word.contains(" ~ ")), "{word}");
        }
        assert!(pieces("HOME").is_empty() && !pieces("HOME=x").contains(&"HOME".to_owned()));
    }
}
