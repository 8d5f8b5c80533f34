//! What words become: expansions, variables, braces and patterns, and what runs in them on the way.

use std::borrow::Cow;

use super::{PARSED_MAX_BYTES, ShellWalk, Variable, shorten};
use crate::{
    model::Certainty,
    shell::{braces, flags::Field, names, syntax::WordPart, verdict::unknown},
};

impl ShellWalk<'_> {
    /// Walks arithmetic. A subscript in a value that it meets is expanded, and may run anything:
    /// only numbers and variables that this line sets to numbers are let pass.
    pub(in crate::shell) fn arithmetic(&mut self, text: &str) {
        self.text(text);
        let is_plain = !text.contains(['[', '`']) && !text.contains("$(") && !text.contains("${");
        if text.contains('=') || text.contains("++") || text.contains("--") {
            let is_set = |name: &String| names::is_set_first(name, text);
            names::identifiers(text).filter(is_set).for_each(|name| self.counts(&name));
        }
        if !is_plain || names::identifiers(text).any(|name| !self.is_number(&name)) {
            self.push(shorten(text), unknown("arithmetic may run what a value holds"));
        }
        if text.contains('=') || text.contains("++") || text.contains("--") {
            names::identifiers(text).for_each(|name| self.counts(&name));
        }
    }

    /// Expands a text in which only expansions count.
    pub(super) fn text(&mut self, raw: &str) -> Field {
        let grammar = self.grammar;
        self.parsed_bytes += raw.len();
        match grammar.text(raw) {
            Ok(parts) if self.parsed_bytes <= PARSED_MAX_BYTES => self.join_parts(raw, &parts),
            Ok(_) | Err(_) => self.unreadable(raw),
        }
    }

    pub(super) fn unreadable(&mut self, raw: &str) -> Field {
        self.push_text(raw, "not readable as a shell word");
        Field { text: raw.to_owned(), sure: Certainty::Dynamic, splits: true }
    }

    /// Expands a word that stands for exactly one, such as a redirection's.
    pub(super) fn one(&mut self, raw: &str) -> Field {
        let mut fields = self.expand(raw);
        match fields.len() {
            1 => fields.swap_remove(0),
            _ => Field { text: raw.to_owned(), sure: Certainty::Dynamic, splits: false },
        }
    }

    /// Expands a word into those it stands for, and walks what runs inside it.
    pub(in crate::shell) fn expand(&mut self, raw: &str) -> Vec<Field> {
        if self.burn(1) {
            return Vec::new();
        }
        let Some(words) = braces::expand(raw) else {
            self.expand_one(raw);
            // Too many to spell out: whatever fits is meant.
            return vec![match braces::as_glob(raw) {
                Some(text) => Field { text, sure: Certainty::Glob, splits: true },
                None => Field { text: raw.to_owned(), sure: Certainty::Dynamic, splits: true },
            }];
        };
        let mut fields = Vec::new();
        for word in words {
            fields.extend(self.expand_one(&word));
        }
        fields
    }

    pub(super) fn expand_one(&mut self, raw: &str) -> Vec<Field> {
        let is_plain =
            raw.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_./=:,@+%".contains(&byte));
        if is_plain {
            return vec![Field::exact(raw)];
        }
        self.parsed_bytes += raw.len();
        if self.parsed_bytes > PARSED_MAX_BYTES || self.burn(1 + raw.len() / 64) {
            return vec![self.unreadable(raw)];
        }
        let grammar = self.grammar;
        let Ok(parts) = grammar.word(raw) else { return vec![self.unreadable(raw)] };
        if let [WordPart::Variable(name, false)] = parts.as_slice() {
            return self.split_variable(name, raw);
        }
        if let Some(elements) = self.elements(&parts) {
            return elements;
        }
        vec![self.join_parts(raw, &parts)]
    }

    /// A word that is all elements of an array, if they are known.
    fn elements(&self, parts: &[WordPart]) -> Option<Vec<Field>> {
        let is_empty =
            |part: &&WordPart| matches!(part, WordPart::Text(text, _) if text.is_empty());
        let mut parts = parts.iter().filter(|part| !is_empty(part));
        let (Some(WordPart::Variable(name, _)), None) = (parts.next(), parts.next()) else {
            return None;
        };
        match self.variables.get(name.strip_suffix("[@]").map(|_| name)?)? {
            Variable::Known(text, _) if self.believes => {
                self.followed.set(true);
                Some(text.lines().map(Field::exact).collect())
            }
            Variable::Known(..) | Variable::Tainted => None,
        }
    }

    /// A word that is one unquoted variable: its value is split at blanks.
    pub(super) fn split_variable(&mut self, name: &str, raw: &str) -> Vec<Field> {
        let size = match self.variables.get(name) {
            Some(Variable::Known(text, _)) => text.len(),
            Some(Variable::Tainted) | None => 0,
        };
        if self.burn(size / 8) {
            return vec![self.unreadable(raw)];
        }
        let is_listed = self.is_listed(name);
        let is_split_at_blanks = self.believes && !self.variables.contains_key("IFS");
        match self.variables.get(name) {
            Some(Variable::Known(text, Certainty::Exact)) if is_listed => {
                self.followed.set(true);
                vec![Field::exact(text)]
            }
            Some(Variable::Known(text, sure)) if is_split_at_blanks => {
                self.followed.set(true);
                text.split_whitespace()
                    .map(|text| {
                        let sure = if is_glob(text) { Certainty::Glob } else { *sure };
                        Field { text: text.to_owned(), sure, splits: false }
                    })
                    .collect()
            }
            Some(_) => vec![Field { text: raw.to_owned(), sure: Certainty::Dynamic, splits: true }],
            None => vec![self.join_parts(raw, &[WordPart::Variable(name.to_owned(), false)])],
        }
    }

    /// Puts a word together from its parts. Once a part is not known, the word is as written.
    pub(super) fn join_parts(&mut self, raw: &str, parts: &[WordPart]) -> Field {
        let mut word =
            Field { text: String::with_capacity(raw.len()), sure: Certainty::Exact, splits: false };
        for part in parts {
            let (text, sure, splits) = self.part(raw, part);
            word.text.push_str(&text);
            word.splits |= splits;
            if word.sure != Certainty::Dynamic && sure != Certainty::Exact {
                word.sure = sure;
            }
        }
        // A dynamic word is shown as written, but what precedes its first unknown part decides
        // whether it is a flag: quotes are the only difference between the two.
        if word.sure == Certainty::Dynamic {
            word.text = dequote(raw, &word.text);
        }
        word
    }

    /// A part of a word: its text, how well that is known, and whether it may become several words.
    fn part<'p>(&mut self, raw: &str, part: &'p WordPart) -> (Cow<'p, str>, Certainty, bool) {
        match part {
            WordPart::Text(part, quoted) => {
                if let Some(pattern) = without_groups(part).filter(|_| !quoted) {
                    // What stands in the brackets is a program to zsh.
                    self.push(shorten(raw), unknown("a pattern may run something"));
                    return (Cow::Owned(pattern), Certainty::Glob, false);
                }
                let is_pattern = !quoted && is_glob(part);
                let sure = if is_pattern { Certainty::Glob } else { Certainty::Exact };
                (Cow::Borrowed(part), sure, false)
            }
            WordPart::Home => match self.value("HOME") {
                (home, Certainty::Exact) => (Cow::Owned(home), Certainty::Exact, false),
                _ => (Cow::Borrowed("~"), Certainty::Dynamic, false),
            },
            WordPart::Variable(name, quoted) => {
                let (value, certainty) = self.value_within_budget(name);
                let is_several = !quoted && value.contains(char::is_whitespace);
                // A name that fits a pattern may have blanks in it.
                let is_proof = !self.believes && certainty == Certainty::Glob;
                let splits = !quoted && (is_several || is_proof || certainty == Certainty::Dynamic);
                let sure = if is_several { Certainty::Dynamic } else { certainty };
                (Cow::Owned(value), sure, splits)
            }
            WordPart::Substitution(script, quoted) if script.trim() == "pwd" => {
                let (value, certainty) = self.value("PWD");
                (Cow::Owned(value), certainty, !quoted && certainty == Certainty::Dynamic)
            }
            WordPart::Substitution(script, quoted) => {
                self.subscript(script);
                let printed = if self.believes { self.printed(script) } else { None };
                Self::guessed(self.followed(printed), "$(…)", *quoted)
            }
            WordPart::Opaque { words, arithmetic, quoted, assigns, runs, derived } => {
                self.opaque(words, arithmetic, *runs);
                let derived = derived.as_ref().filter(|_| self.believes);
                let value = derived.and_then(|(name, how)| self.derived(name, how));
                if let Some(name) = assigns {
                    self.forget(name);
                    self.keep(
                        name,
                        value.clone().map_or(Variable::Tainted, |value| {
                            Variable::of(value, Certainty::Exact)
                        }),
                    );
                }
                Self::guessed(self.followed(value), "${…}", *quoted)
            }
        }
    }

    /// Notes that a guess is used, if there is one.
    fn followed(&self, guess: Option<String>) -> Option<String> {
        if guess.is_some() {
            self.followed.set(true);
        }
        guess
    }

    /// A part of a word of which only a guess is known, or not even that. A guess counts as exact: the line is judged
    /// once more without any, which is what proves that it does no harm.
    fn guessed(
        guess: Option<String>,
        shown: &'static str,
        quoted: bool,
    ) -> (Cow<'static, str>, Certainty, bool) {
        match guess {
            Some(text) if quoted || !text.contains(char::is_whitespace) => {
                (Cow::Owned(text), Certainty::Exact, false)
            }
            _ => (Cow::Borrowed(shown), Certainty::Dynamic, !quoted),
        }
    }

    /// The value of a variable, unless it is too much work: a line of a hundred bytes could double a
    /// value until nothing holds it.
    fn value_within_budget(&mut self, name: &str) -> (String, Certainty) {
        let (value, certainty) = self.value(name);
        if self.burn(value.len() / 64) {
            return (format!("${name}"), Certainty::Dynamic);
        }
        (value, certainty)
    }

    pub(super) fn opaque(&mut self, words: &[String], arithmetic: &[String], runs: bool) {
        for word in words {
            self.expand(word);
            // Between double quotes, single ones mean nothing.
            self.text(word);
        }
        for text in arithmetic {
            self.arithmetic(text);
        }
        if runs {
            self.push("${…}".to_owned(), unknown("a variable's value is run as code"));
        }
    }
}

/// A text with `*` in the place of each group of alternatives, such as `!(a|b)`, or of all from the first one on: that
/// fits more. `None` if there is no group.
fn without_groups(text: &str) -> Option<String> {
    /// If a word has more groups, `*` stands for everything from the next one on.
    const GROUPS_MAX: usize = 8;
    let begin =
        |text: &str| ["?(", "*(", "+(", "@(", "!("].iter().filter_map(|it| text.find(it)).min();
    let mut pattern = text.to_owned();
    for _ in 0..GROUPS_MAX {
        let Some(at) = begin(&pattern) else { break };
        // In a group there may be another.
        let end = pattern[at..].find(')').filter(|end| begin(&pattern[at + 2..at + end]).is_none());
        pattern.replace_range(at..end.map_or(pattern.len(), |end| at + end + 1), "*");
    }
    if let Some(at) = begin(&pattern) {
        pattern.replace_range(at.., "*");
    }
    (pattern != text).then_some(pattern)
}

/// Whether an unquoted text is a pattern; a lone `[` is a program.
fn is_glob(text: &str) -> bool {
    text.contains(['*', '?']) || text.find('[').is_some_and(|at| text[at..].contains(']'))
}

/// A dynamic word as it is shown: as written, unless quotes hide how it begins.
fn dequote(raw: &str, joined: &str) -> String {
    if raw.contains(['"', '\'', '\\']) { joined.to_owned() } else { raw.to_owned() }
}
