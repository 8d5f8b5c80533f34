//! Reads a program's options the way getopt does. Knows clusters, attached and separate values and
//! `--`; hides the spelling of a flag list. Long names count only as they are written: a shortened
//! one may mean an option that is not listed.
//!
//! A flag list is a text of words, so that the tables can be read as documentation:
//!
//! | word | meaning |
//! |---|---|
//! | `-abc` | three short flags |
//! | `-n:` `-n?` | a short flag with a value, or with one that must be attached |
//! | `--all` `--format=` `--color?` | a long flag; with a value; with an optional one |
//! | `-#` | a number as a flag, as in `head -5` |
//! | `>-o:` | the value is a file that is overwritten |
//! | `+--log=` | the value is a file that is made |
//! | `!-i?` | the operands are changed in place, as [`Rule::Formats`](super::row::Rule) does |
//! | `~--pre=` | the flag runs or writes something: unknown |
//! | `%--help` | the program only talks about itself |
//! | `*` | other flags do not matter; never in a list of a program that only reads |
//! | `$` | no flag of the program does harm, so an expansion may stand for one |
//! | `^` | options end at the first operand |
//! | `@` | long names have one dash, as those of `find` and `openssl` |

use crate::model::Certainty;

/// A word after expansion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Field {
    /// The word; where it is not known, as written.
    pub(super) text: String,
    /// How well it is known.
    pub(super) sure: Certainty,
    /// Whether it may turn out to be several words, or none.
    pub(super) splits: bool,
}

impl Field {
    /// A word that is known.
    pub(super) fn exact(text: &str) -> Self {
        Self { text: text.to_owned(), sure: Certainty::Exact, splits: false }
    }

    /// The word, if it is known.
    pub(super) fn literal(&self) -> Option<&str> {
        match self.sure {
            Certainty::Exact => Some(&self.text),
            Certainty::Glob | Certainty::Dynamic => None,
        }
    }

    /// Whether it may turn out to be an option, or to bring one along.
    pub(super) fn may_be_option(&self) -> bool {
        self.sure != Certainty::Exact
            && (self.splits
                || self.text.is_empty()
                || self.text.starts_with(['$', '*', '?', '[', '`', '…', '{']))
    }

    /// What follows a known beginning.
    pub(super) fn after(&self, prefix: &str) -> Self {
        let text = self.text.strip_prefix(prefix).unwrap_or(&self.text);
        Self { text: text.to_owned(), sure: self.sure, splits: self.splits }
    }
}

/// What a flag means for files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FlagMark {
    /// Nothing.
    Harmless,
    /// Its value is overwritten.
    Overwrites,
    /// Its value is made.
    Makes,
    /// The operands are changed in place; of a directory, the files of the program's own kind.
    InPlace,
    /// The program prints about itself and ends.
    Talks,
    /// Anything may happen.
    Unknown,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Takes {
    Nothing,
    Value,
    Attached,
}

/// One flag found.
#[derive(Clone, Debug)]
pub(super) struct Hit {
    /// Its name with dashes, as the list spells it.
    pub(super) name: String,
    /// Its value, if it has one.
    pub(super) value: Option<Field>,
    /// What it means.
    pub(super) mark: FlagMark,
}

/// The words of a call, told apart.
#[derive(Debug, Default)]
pub(super) struct Parsed {
    /// Flags, in order.
    pub(super) hits: Vec<Hit>,
    /// Operands, in order.
    pub(super) operands: Vec<Field>,
    /// The first flag that is not in the list.
    pub(super) stray: Option<String>,
    /// Where the operands begin, counted in words.
    pub(super) rest: usize,
}

impl Parsed {
    /// Whether a flag was given that makes the program only talk, and none that is not known.
    pub(super) fn talks(&self) -> bool {
        self.stray.is_none() && self.hits.iter().any(|hit| hit.mark == FlagMark::Talks)
    }

    /// Whether one of these flags was given.
    pub(super) fn has(&self, names: &[&str]) -> bool {
        self.hits.iter().any(|hit| names.contains(&hit.name.as_str()))
    }

    /// The last value given to one of these flags.
    pub(super) fn value(&self, names: &[&str]) -> Option<&Field> {
        let hit = self.hits.iter().rev().find(|hit| names.contains(&hit.name.as_str()));
        hit.and_then(|hit| hit.value.as_ref())
    }
}

/// The lone marks of a list.
#[derive(Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a mark of its own")]
struct LoneMarks {
    open: bool,
    ordered: bool,
    single: bool,
    tame: bool,
    numbers: bool,
}

fn marks(list: &str) -> LoneMarks {
    let mut marks = LoneMarks::default();
    for word in list.split_ascii_whitespace() {
        match word {
            "*" => marks.open = true,
            "^" => marks.ordered = true,
            "@" => marks.single = true,
            "$" => marks.tame = true,
            "-#" => marks.numbers = true,
            _ => {}
        }
    }
    marks
}

/// Tells flags from operands.
pub(super) fn parse(list: &str, args: &[Field]) -> Parsed {
    let LoneMarks { open, ordered, single, tame, numbers } = marks(list);
    let mut parsed = Parsed { rest: args.len(), ..Parsed::default() };
    let mut at = 0;
    while let Some(arg) = args.get(at) {
        at += 1;
        if arg.text == "--" && !single {
            parsed.rest = at;
            break;
        }
        let is_flag = arg.text.len() > 1 && arg.text.starts_with('-');
        if is_flag && arg.splits && !tame {
            note(&mut parsed, &arg.text);
        }
        if !is_flag {
            if !tame && arg.may_be_option() {
                note(&mut parsed, &arg.text);
            }
            if ordered {
                parsed.rest = at - 1;
                break;
            }
            parsed.operands.push(arg.clone());
            continue;
        }
        let next = args.get(at);
        let took = if arg.text.starts_with("--") || single {
            long(list, arg, next, open, &mut parsed)
        } else {
            let is_number = numbers && arg.text.bytes().skip(1).all(|byte| byte.is_ascii_digit());
            !is_number && cluster(list, arg, next, open, &mut parsed)
        };
        if took && !tame && next.is_some_and(|next| next.splits) {
            note(&mut parsed, &next.map_or_else(String::new, |next| next.text.clone()));
        }
        at += usize::from(took);
    }
    parsed.operands.extend(args.iter().skip(parsed.rest).cloned());
    parsed
}

fn note(parsed: &mut Parsed, flag: &str) {
    parsed.stray.get_or_insert_with(|| flag.to_owned());
}

/// A long flag; says whether it took the next word.
fn long(list: &str, arg: &Field, next: Option<&Field>, open: bool, parsed: &mut Parsed) -> bool {
    let (name, attached) = match arg.text.split_once('=') {
        Some((name, _)) => (name, Some(arg.after(name).after("="))),
        None => (arg.text.as_str(), None),
    };
    let Some((known, takes, mark)) = lookup(list, name) else {
        if !open {
            note(parsed, name);
        }
        return false;
    };
    let wants_next = takes == Takes::Value && attached.is_none();
    let value = if wants_next { next.cloned() } else { attached };
    parsed.hits.push(Hit { name: known.to_owned(), value, mark });
    wants_next && next.is_some()
}

/// A cluster of short flags; says whether its last took the next word.
fn cluster(list: &str, arg: &Field, next: Option<&Field>, open: bool, parsed: &mut Parsed) -> bool {
    let letters = arg.text.get(1..).unwrap_or_default();
    for (index, letter) in letters.char_indices() {
        let Some((takes, mark)) = letter_of(list, letter) else {
            if !open {
                note(parsed, &format!("-{letter}"));
            }
            continue;
        };
        let rest = letters.get(index + letter.len_utf8()..).unwrap_or_default();
        let attached = (!rest.is_empty()).then(|| Field { text: rest.to_owned(), ..arg.clone() });
        let (value, took) = match (takes, attached) {
            (Takes::Nothing, _) => (None, false),
            (Takes::Value, None) => (next.cloned(), next.is_some()),
            (Takes::Value | Takes::Attached, attached) => (attached, false),
        };
        parsed.hits.push(Hit { name: format!("-{letter}"), value, mark });
        if takes != Takes::Nothing {
            return took;
        }
    }
    false
}

fn marked(word: &str) -> (&str, FlagMark) {
    let mark = match word.as_bytes().first() {
        Some(b'>') => FlagMark::Overwrites,
        Some(b'+') => FlagMark::Makes,
        Some(b'!') => FlagMark::InPlace,
        Some(b'%') => FlagMark::Talks,
        Some(b'~') => FlagMark::Unknown,
        _ => return (word, FlagMark::Harmless),
    };
    (&word[1..], mark)
}

fn taking(word: &str) -> (&str, Takes) {
    if let Some(name) = word.strip_suffix([':', '=']) {
        return (name, Takes::Value);
    }
    match word.strip_suffix('?') {
        Some(name) => (name, Takes::Attached),
        None => (word, Takes::Nothing),
    }
}

fn letter_of(list: &str, letter: char) -> Option<(Takes, FlagMark)> {
    for word in list.split_ascii_whitespace() {
        let (word, mark) = marked(word);
        let (name, takes) = taking(word);
        let letters = name.strip_prefix('-').unwrap_or_default();
        if !letters.starts_with('-') && letters.contains(letter) {
            return Some((takes, mark));
        }
    }
    None
}

/// Finds a long flag by its name.
fn lookup<'list>(list: &'list str, name: &str) -> Option<(&'list str, Takes, FlagMark)> {
    if name.is_empty() {
        return None;
    }
    list.match_indices(name).find_map(|(at, _)| {
        let begin = list.get(..at)?.rfind(char::is_whitespace).map_or(0, |blank| blank + 1);
        let (word, mark) = marked(list.get(begin..)?.split_ascii_whitespace().next()?);
        let (known, takes) = taking(word);
        (known == name).then_some((known, takes, mark))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(words: &[&str]) -> Vec<Field> {
        words.iter().map(|word| Field::exact(word)).collect()
    }

    #[test]
    fn a_cluster_is_taken_apart_and_its_last_takes_the_rest() {
        let parsed = parse("-En >-o: !-i?", &fields(&["-Eiorig", "-nofile", "x"]));
        let names: Vec<&str> = parsed.hits.iter().map(|hit| hit.name.as_str()).collect();
        assert_eq!(names, ["-E", "-i", "-n", "-o"]);
        assert_eq!(parsed.value(&["-i"]).map(|field| field.text.as_str()), Some("orig"));
        assert_eq!(parsed.value(&["-o"]).map(|field| field.text.as_str()), Some("file"));
        assert_eq!(parsed.operands, fields(&["x"]));
    }

    #[test]
    fn a_shortened_name_is_no_name() {
        let parsed = parse(">--output= --key=", &fields(&["--output", "f", "--key=1", "--out=x"]));
        assert_eq!(parsed.value(&["--output"]).map(|field| field.text.as_str()), Some("f"));
        assert_eq!(parsed.stray.as_deref(), Some("--out"));
    }

    #[test]
    fn an_expansion_may_be_an_option_unless_none_does_harm() {
        let word =
            |text: &str, splits| Field { text: text.to_owned(), sure: Certainty::Dynamic, splits };
        let strays = |list: &str, words: &[Field]| parse(list, words).stray.is_some();
        assert!(strays("-a", &[word("$x", false)]) && strays("-a", &[word("a$x", true)]));
        assert!(!strays("-a", &[word("src/$x", false)]) && !strays("$ -a", &[word("$x", true)]));
        assert!(!strays("-a", &[Field::exact("--"), word("$x", true)]));
    }

    #[test]
    fn two_dashes_end_the_options() {
        let parsed = parse("-a", &fields(&["-a", "--", "-b"]));
        assert_eq!(parsed.operands, fields(&["-b"]));
        assert!(parsed.stray.is_none());
    }
}
