//! What a substitution prints, as far as it can be told before it runs: most often a script asks where it is.

use std::path::Path;

use super::{PathBase, ShellWalk, places::lexical, variables::Variable};
use crate::{
    model::Certainty,
    shell::{
        flags::Field,
        syntax::{Command, CommandItem, Derivation, ReplacedPlace, ShellNode},
    },
};

/// A longer script prints more than a path.
const SCRIPT_MAX_BYTES: usize = 1024;

impl ShellWalk<'_> {
    /// What a script prints: one path, without what runs before it but `cd`. It proves nothing: a function may
    /// have any name.
    pub(super) fn printed(&mut self, script: &str) -> Option<String> {
        if script.len() > SCRIPT_MAX_BYTES || self.burn(1) {
            return None;
        }
        self.parsed_bytes += script.len();
        let nodes = self.grammar.script(script).ok()?;
        let mut printed = None;
        self.quietly(|walk| walk.in_subshell(|walk| printed = walk.printed_by(&nodes)));
        printed
    }

    fn printed_by(&mut self, nodes: &[ShellNode]) -> Option<String> {
        let (last, before) = nodes.split_last()?;
        if !before.iter().all(|node| self.moves(node)) {
            return None;
        }
        match last {
            ShellNode::Command(command) => self.printed_by_command(command),
            ShellNode::Chain(links) => {
                let (last, before) = links.split_last()?;
                let moves = before.iter().all(|(is_or, node)| !is_or && self.moves(node));
                match last {
                    (false, ShellNode::Command(command)) if moves => {
                        self.printed_by_command(command)
                    }
                    _ => None,
                }
            }
            ShellNode::Pipeline(_) | ShellNode::Block(_) | ShellNode::Function(..) => None,
        }
    }

    /// Whether a command is nothing but a `cd`; then it is done.
    fn moves(&mut self, node: &ShellNode) -> bool {
        let ShellNode::Command(command) = node else { return false };
        match self.known_words(command).as_deref() {
            Some([name, args @ ..]) if name == "cd" => {
                let to = args.iter().find(|arg| !arg.starts_with('-')).map(|to| Field::exact(to));
                self.enter(to.as_ref());
                true
            }
            _ => false,
        }
    }

    fn printed_by_command(&mut self, command: &Command) -> Option<String> {
        let words = self.known_words(command)?;
        let (name, args) = words.split_first()?;
        let operands: Vec<&str> = args.iter().map(String::as_str).collect();
        let operands = match operands.as_slice() {
            ["--", operands @ ..] => operands,
            operands => operands,
        };
        match (name.as_str(), operands) {
            ("pwd", _) => match self.value("PWD") {
                (dir, Certainty::Exact) => Some(dir),
                _ => None,
            },
            ("echo", [text]) if !text.starts_with('-') => Some((*text).to_owned()),
            ("printf", ["%s" | "%s\\n", text]) => Some((*text).to_owned()),
            ("dirname", [path]) => Derivation::Directory.of(path),
            ("basename", [path]) => Derivation::LastName.of(path),
            ("git", ["rev-parse", "--show-toplevel"]) => self.worktree(),
            ("realpath" | "readlink", [flags @ .., path])
                if flags.iter().all(|flag| flag.starts_with('-')) =>
            {
                match self.place(&Field::exact(path)) {
                    (path, Certainty::Exact) => self.absolute(&path),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    /// The words of a command that sets nothing, if all are known.
    pub(super) fn known_words(&mut self, command: &Command) -> Option<Vec<String>> {
        if !command.assigns.is_empty() {
            return None;
        }
        let mut words = Vec::new();
        for item in &command.items {
            let CommandItem::Word(raw) = item else { return None };
            for field in self.expand(raw) {
                words.push(field.literal()?.to_owned());
            }
        }
        Some(words)
    }

    /// A path seen from the call's directory, as an absolute one if that directory is known.
    pub(super) fn absolute(&self, path: &str) -> Option<String> {
        if path.starts_with('/') {
            return Some(path.to_owned());
        }
        let dir = self.scope.scripts.as_ref()?.dir.to_str()?;
        Some(match path {
            "" | "." => dir.to_owned(),
            below => format!("{}/{below}", dir.trim_end_matches('/')),
        })
    }

    /// The worktree in which the line is.
    fn worktree(&self) -> Option<String> {
        let PathBase::Known(base) = &self.base else { return None };
        let dir = lexical(&self.absolute(base)?);
        let read = self.scope.scripts.as_ref()?.read;
        let has_git = |dir: &&Path| {
            read(&dir.join(".git/HEAD")).is_some() || read(&dir.join(".git")).is_some()
        };
        Path::new(&dir).ancestors().find(has_git)?.to_str().map(str::to_owned)
    }

    /// What becomes of a variable's value in an expansion.
    pub(super) fn derived(&mut self, name: &str, how: &Derivation) -> Option<String> {
        let value = match (self.variables.get(name), self.value(name)) {
            (_, (value, Certainty::Exact)) => Some(value),
            // It may be set in the environment, but then this is what is meant in its absence.
            (None, _) => None,
            (Some(Variable::Known(..) | Variable::Tainted), _) => return None,
        };
        match (value, how) {
            (Some(value), how) => how.of(&value),
            (None, Derivation::Default(word)) => {
                self.followed.set(true);
                let field = self.one(word);
                field.literal().map(str::to_owned)
            }
            (None, _) => None,
        }
    }
}

impl Derivation {
    /// What becomes of a value, if that can be told: of other letters than ASCII, the locale says it.
    fn of(&self, value: &str) -> Option<String> {
        let cut = value.trim_end_matches('/');
        Some(match (self, cut.rsplit_once('/')) {
            (Self::Default(_) | Self::Itself, _) => value.to_owned(),
            (Self::Directory, Some(("", _))) => "/".to_owned(),
            (Self::Directory, Some((above, _))) => above.to_owned(),
            (Self::Directory, None) => ".".to_owned(),
            (Self::LastName, Some((_, name))) => name.to_owned(),
            (Self::LastName, None) => cut.to_owned(),
            (Self::Cased { .. }, _) if !value.is_ascii() => return None,
            (Self::Cased { upper, first }, _) => {
                let (head, rest) =
                    value.split_at(if *first { value.len().min(1) } else { value.len() });
                let head =
                    if *upper { head.to_ascii_uppercase() } else { head.to_ascii_lowercase() };
                head + rest
            }
            (Self::Replaced { from, to, place }, _) => match place {
                ReplacedPlace::All => value.replace(&**from, to),
                ReplacedPlace::First => value.replacen(&**from, to, 1),
                ReplacedPlace::Beginning => match value.strip_prefix(&**from) {
                    Some(rest) => format!("{to}{rest}"),
                    None => value.to_owned(),
                },
                ReplacedPlace::End => match value.strip_suffix(&**from) {
                    Some(rest) => format!("{rest}{to}"),
                    None => value.to_owned(),
                },
            },
            (Self::Cut { pattern, end, longest }, _) => {
                without_end(value, pattern, *end, *longest).to_owned()
            }
            (Self::Part { from, length }, _) => part(value, *from, *length)?.to_owned(),
        })
    }
}

/// A value without the shortest or longest beginning, or end, that fits a pattern.
fn without_end<'v>(value: &'v str, pattern: &str, end: bool, longest: bool) -> &'v str {
    let mut places: Vec<usize> =
        value.char_indices().map(|(at, _)| at).chain([value.len()]).collect();
    if end != longest {
        places.reverse();
    }
    let fits = |text: &str| {
        gix::glob::wildmatch(pattern.into(), text.into(), gix::glob::wildmatch::Mode::empty())
    };
    let cut = places.into_iter().find_map(|at| {
        let (head, tail) = value.split_at(at);
        if end { fits(tail).then_some(head) } else { fits(head).then_some(tail) }
    });
    cut.unwrap_or(value)
}

/// So many letters of a value from one on. Of other letters than ASCII, the locale says what one is.
fn part(value: &str, from: i64, length: Option<i64>) -> Option<&str> {
    let size = i64::try_from(value.len()).ok()?;
    let from = if from < 0 { size + from } else { from };
    let until = match length {
        Some(length) if length < 0 => size + length,
        Some(length) => from.saturating_add(length).min(size),
        None => size,
    };
    let at = |place: i64| usize::try_from(place).ok();
    value.get(at(from)?..at(until)?).filter(|_| value.is_ascii())
}
