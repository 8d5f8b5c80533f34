//! Walks a parsed script and judges every command in it. Knows directories, variables and
//! redirections; what a program does with its words is the tables' business.

mod command;
mod compound;
mod files;
pub(super) mod mentions;
mod outputs;
mod places;
mod redirects;
mod variables;
mod words;

use std::{cell::Cell, collections::BTreeMap, rc::Rc};

use super::ShellContext;
use super::flags::Field;
use super::guard;
use super::syntax::{Grammar, ShellNode};
use super::verdict::{CommandCall, CommandInput, CommandVerdict, unknown};
use crate::model::{Level, ProgramText, Simple};
use files::FileTraces;
pub(super) use files::{LineFiles, ScriptFile};
pub(super) use places::lexical;
use variables::{Variable, VariableFacts};

/// How many nodes and words one line may have us look at, substitutions included. The public
/// corpus stays below 500; the limit is reached after a few milliseconds.
const FUEL: u32 = 50_000;

/// How many bytes may be parsed, counting a nested script once for every level around it.
const PARSED_MAX_BYTES: usize = 256 * 1024;

/// How deep scripts may nest in scripts.
const DEPTH_MAX: usize = 32;

/// How much of a command's text is kept for showing.
const SHOWN_MAX_CHARS: usize = 120;

/// How many program texts of a line are kept: each of them is looked for in the line once more.
const TEXTS_MAX: usize = 64;

/// How many values of a loop are walked one by one.
const VALUES_MAX: usize = 8;

/// How many directories a line may be in at one point that are told apart.
const OTHERS_MAX: usize = 4;

/// Where relative paths start from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum PathBase {
    /// The call's directory followed by this path; empty for the directory itself.
    Known(String),
    /// Somewhere.
    Dynamic,
}

/// The functions of `judge` that a walk calls. They are passed in, because judging `sudo …` or
/// `sh -c …` walks a script again, and `walk` must not import `judge`.
#[derive(Clone, Copy)]
pub(super) struct Programs {
    /// Judges one command of known words.
    pub(super) judge: fn(&mut ShellWalk<'_>, &CommandCall<'_>) -> CommandVerdict,
    /// Whether a command may run in the shell itself.
    pub(super) is_in_shell: fn(&[Field]) -> bool,
}

/// The state of one walk.
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub(super) struct ShellWalk<'scope> {
    grammar: &'scope dyn Grammar,
    programs: Programs,
    /// What the caller knows about the world.
    pub(super) scope: &'scope ShellContext,
    /// What was found so far.
    pub(super) found: Vec<Simple>,
    /// The directory relative paths start from.
    pub(super) base: PathBase,
    /// Where they start from if a `cd` before this failed.
    others: Vec<PathBase>,
    /// Whether a later line in the same shell may mean something else.
    pub(super) changes_shell: bool,
    /// Whether the line starts something that it does not wait for.
    pub(super) in_background: bool,
    /// Whether the line ends with the first command that fails.
    pub(super) ends_early: bool,
    previous: PathBase,
    stack: Vec<PathBase>,
    variables: BTreeMap<String, Variable>,
    /// The functions that the line defines.
    functions: BTreeMap<String, Rc<ShellNode>>,
    /// What was seen so far to be true of all values of a variable.
    gives: BTreeMap<String, VariableFacts>,
    /// What an earlier walk saw at its end.
    given: BTreeMap<String, VariableFacts>,
    /// The variables of the loops around.
    bound: Vec<String>,
    /// Whether values that the line gave to variables are believed.
    believes: bool,
    /// Whether one of them was used.
    followed: Cell<bool>,
    /// What is known of the files that the line reads, writes and runs.
    pub(super) files: FileTraces,
    /// Words of commands that are texts in a language with patterns.
    pub(super) texts: Vec<ProgramText>,
    /// The places outside that commands name which only look.
    named: Vec<String>,
    /// Whether something runs with words or input that are not known: any place the line names may be
    /// among them.
    takes_any: bool,
    /// Names under which links that the line makes lead elsewhere.
    aliases: Vec<String>,
    fuel: u32,
    parsed_bytes: usize,
    depth: usize,
    loops: usize,
    exhausted: bool,
}

impl<'scope> ShellWalk<'scope> {
    /// Starts a walk in the call's directory.
    pub(super) fn new(
        grammar: &'scope dyn Grammar,
        programs: Programs,
        scope: &'scope ShellContext,
    ) -> Self {
        Self {
            grammar,
            programs,
            scope,
            found: Vec::new(),
            base: PathBase::Known(String::new()),
            others: Vec::new(),
            changes_shell: false,
            in_background: false,
            ends_early: false,
            previous: PathBase::Dynamic,
            stack: Vec::new(),
            variables: BTreeMap::new(),
            functions: BTreeMap::new(),
            gives: BTreeMap::new(),
            given: BTreeMap::new(),
            bound: Vec::new(),
            believes: true,
            followed: Cell::new(false),
            files: FileTraces::default(),
            texts: Vec::new(),
            named: Vec::new(),
            takes_any: false,
            aliases: Vec::new(),
            fuel: FUEL,
            parsed_bytes: 0,
            depth: 0,
            loops: 0,
            exhausted: false,
        }
    }

    /// Starts the walk anew, with what is known at its end of the variables that the line sets.
    pub(super) fn again(&mut self) -> Self {
        let given = std::mem::take(&mut self.gives);
        Self { given, ..Self::new(self.grammar, self.programs, self.scope) }
    }

    /// Starts it anew as one to which the line's own variables hold anything but what is given.
    pub(super) fn unbelieving(&mut self) -> Self {
        let given = std::mem::take(&mut self.given);
        Self { given, believes: false, ..Self::new(self.grammar, self.programs, self.scope) }
    }

    /// Whether the line sets variables.
    pub(super) fn has_set(&self) -> bool {
        !self.gives.is_empty()
    }

    /// Whether anything that was found rests on a variable's value.
    pub(super) fn has_followed(&self) -> bool {
        self.followed.get()
    }

    /// Judges a script in the state the walk is in.
    pub(super) fn script(&mut self, text: &str) {
        if let Some(reason) = guard::refuse(text) {
            return self.push_text(text, reason);
        }
        self.parsed_bytes += text.len();
        if self.parsed_bytes > PARSED_MAX_BYTES || self.depth > DEPTH_MAX {
            return self.push_text(text, "nested too deeply");
        }
        let grammar = self.grammar;
        match grammar.script(text) {
            Ok(nodes) => {
                self.depth += 1;
                self.nodes(&nodes);
                self.depth -= 1;
            }
            Err(_) => self.push_text(text, "not readable as a shell command"),
        }
    }

    /// Records a text that is not walked.
    fn push_text(&mut self, text: &str, reason: &'static str) {
        let targets = mentions::of_text(text, self.scope.home.as_deref());
        self.changes_shell = true;
        self.push(shorten(text), CommandVerdict { targets, ..unknown(reason) });
    }

    /// Judges a line of plain words, which needs no parser.
    pub(super) fn plain(&mut self, line: &str) {
        let fields: Vec<Field> = line.split_ascii_whitespace().map(Field::exact).collect();
        self.run(&fields, &CommandInput::Inherited);
    }

    /// Judges a script with a directory and variables of its own.
    pub(super) fn subscript(&mut self, text: &str) {
        self.in_subshell(|walk| walk.script(text));
    }

    /// Judges a script that runs at some other time, when variables hold something else.
    pub(super) fn later(&mut self, text: &str) {
        self.in_subshell(|walk| {
            walk.variables.values_mut().for_each(|value| *value = Variable::Tainted);
            walk.script(text);
        });
    }

    /// Runs `inside`, then forgets where it went.
    pub(super) fn in_subshell(&mut self, inside: impl FnOnce(&mut Self)) {
        let (base, others) = (self.base.clone(), self.others.clone());
        let (previous, stack) = (self.previous.clone(), self.stack.clone());
        let (variables, ends_early) = (self.variables.clone(), self.ends_early);
        inside(self);
        (self.base, self.others) = (base, others);
        (self.previous, self.stack) = (previous, stack);
        (self.variables, self.ends_early) = (variables, ends_early);
    }

    /// Records a verdict.
    pub(super) fn push(&mut self, text: String, verdict: CommandVerdict) {
        let CommandVerdict { level, reason, targets } = verdict;
        self.found.push(Simple { text, level, reason: reason.into_owned(), targets });
    }

    /// Uses up work; once all is used the line is unknown, and the walk unwinds quickly.
    fn burn(&mut self, amount: usize) -> bool {
        self.fuel = self.fuel.saturating_sub(u32::try_from(amount).unwrap_or(u32::MAX));
        if self.fuel == 0 && !self.exhausted {
            self.exhausted = true;
            self.push(String::new(), unknown("too much to look at"));
        }
        self.exhausted
    }

    fn nodes(&mut self, nodes: &[ShellNode]) {
        self.fed(nodes, &CommandInput::Inherited);
    }
}

/// Cuts a text for showing.
fn shorten(text: &str) -> String {
    match text.char_indices().nth(SHOWN_MAX_CHARS) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
    }
}

/// The worst of what was found.
pub(super) fn worst(found: &[Simple]) -> Level {
    found.iter().map(|simple| simple.level).max().unwrap_or_default()
}
