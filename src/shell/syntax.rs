//! The shell's grammar as the rest of this module sees it: commands, words, redirections. Hides
//! which parser reads them.

use std::{fmt, rc::Rc};

/// A reader of shell text. One implementation exists; the trait keeps its types out of the rules.
pub(super) trait Grammar {
    /// Reads a whole script.
    fn script(&self, text: &str) -> Result<Vec<ShellNode>, UnknownSyntax>;
    /// Reads one word as the shell spells it, quotes and all, into its parts.
    fn word(&self, raw: &str) -> Result<Vec<WordPart>, UnknownSyntax>;
    /// Reads text in which only expansions count, not quotes: a here-document, arithmetic.
    fn text(&self, raw: &str) -> Result<Vec<WordPart>, UnknownSyntax>;
}

/// The text is no shell we understand. Callers say "unknown".
#[derive(Debug)]
pub(super) struct UnknownSyntax;

impl fmt::Display for UnknownSyntax {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not readable as a shell command")
    }
}

/// Something the shell runs.
#[derive(Debug)]
pub(super) enum ShellNode {
    /// A program or builtin with its words.
    Command(Command),
    /// Commands joined by pipes, each in a process of its own.
    Pipeline(Vec<ShellNode>),
    /// A compound command of any kind.
    Block(Block),
    /// Commands joined by `&&` and `||`: for each, whether it runs only if the one before failed.
    Chain(Vec<(bool, ShellNode)>),
    /// A function and its body.
    Function(String, Rc<ShellNode>),
}

/// A simple command before expansion.
#[derive(Debug, Default)]
pub(super) struct Command {
    /// Assignments before the name.
    pub(super) assigns: Vec<Assign>,
    /// The name and its arguments.
    pub(super) items: Vec<CommandItem>,
    /// Redirections anywhere in it.
    pub(super) redirects: Vec<Redirect>,
}

/// One argument.
#[derive(Debug)]
pub(super) enum CommandItem {
    /// A word as written.
    Word(String),
    /// `name=value` after a declaring builtin, with the word as written.
    Assign(Assign, String),
    /// `<(…)` or `>(…)`.
    Process(Vec<ShellNode>),
}

/// A variable gets a value.
#[derive(Debug)]
pub(super) struct Assign {
    /// The variable's name.
    pub(super) name: String,
    /// The subscript, which is arithmetic.
    pub(super) index: Option<String>,
    /// Words that are expanded too: the elements of an array.
    pub(super) extra: Vec<String>,
    /// The value as written; `None` for arrays, elements and `+=`.
    pub(super) value: Option<String>,
    /// Whether it is given an array.
    pub(super) is_list: bool,
    /// Whether the value is added: `+=`.
    pub(super) appends: bool,
}

/// What kind of compound command it is, as far as directories and variables care.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BlockKind {
    /// `{ …; }`: as if written without the braces.
    Plain,
    /// `( … )`: changes nothing outside.
    Subshell,
    /// `… &`: the same, and nothing waits for it.
    Background,
    /// `if`, `case`, `for`, `while`: may run never, once, or often.
    Branch,
}

/// A compound command.
#[derive(Debug)]
pub(super) struct Block {
    /// Its kind.
    pub(super) kind: BlockKind,
    /// Words it expands itself: a `case` subject, patterns, `[[` operands.
    pub(super) words: Vec<String>,
    /// Arithmetic it evaluates itself.
    pub(super) arithmetic: Vec<String>,
    /// The loop variable and the words it runs over.
    pub(super) binds: Option<(String, Option<Vec<String>>)>,
    /// What it runs.
    pub(super) body: Vec<ShellNode>,
    /// Redirections of the whole.
    pub(super) redirects: Vec<Redirect>,
}

/// One redirection.
#[derive(Debug)]
pub(super) struct Redirect {
    /// Whether it replaces standard input, rather than another descriptor.
    pub(super) is_stdin: bool,
    /// What the descriptor is connected to.
    pub(super) to: RedirectSource,
}

/// What a redirection connects a descriptor to.
#[derive(Debug)]
pub(super) enum RedirectSource {
    /// `< word`.
    Reads(String),
    /// `> word` and its relatives.
    Writes {
        /// Where to, as written.
        word: String,
        /// Whether what stands there stays: `>>` and `<>`.
        keeps: bool,
    },
    /// `>& word`, which may be a number or a file.
    Duplicates(String),
    /// `<<`, with whether its body is expanded.
    HereDoc(String, bool),
    /// `<<< word`.
    HereString(String),
    /// `< <(…)` and the like.
    Process(Vec<ShellNode>),
}

/// A part of a word.
#[derive(Debug)]
pub(super) enum WordPart {
    /// Text, and whether it was quoted, so that it neither splits nor matches files.
    Text(String, bool),
    /// `~`.
    Home,
    /// `$name`, and whether it was quoted.
    Variable(String, bool),
    /// `$(…)` or backticks, to be read again; and whether it was quoted.
    Substitution(String, bool),
    /// An expansion we do not compute: the words and texts inside it still run.
    Opaque {
        /// Words inside, as written.
        words: Vec<String>,
        /// Arithmetic inside.
        arithmetic: Vec<String>,
        /// Whether it was quoted.
        quoted: bool,
        /// The variable it may assign.
        assigns: Option<String>,
        /// Whether its value is itself run as code, as of `${x@P}` or `${!x}`.
        runs: bool,
        /// The variable of whose value it is made, and how, where we can follow that.
        derived: Option<(String, Derivation)>,
    },
}

/// The name under which all elements of an array are known.
pub(super) fn list_name(array: &str) -> String {
    format!("{array}[@]")
}

/// How an expansion makes a word of a variable's value.
#[derive(Debug)]
pub(super) enum Derivation {
    /// It is the value.
    Itself,
    /// It is the value, or this word if there is none: `${x:-word}`.
    Default(String),
    /// It is the value up to its last slash, as `dirname` and `${x%/*}` give it.
    Directory,
    /// It is the value from its last slash on, as `basename` and `${x##*/}` give it.
    LastName,
    /// Its letters, or the first one alone, are in upper or lower case, as in `${x^^}` and `${x,}`.
    Cased { upper: bool, first: bool },
    /// One text in it is another, as in `${x/a/b}`.
    Replaced { from: String, to: String, place: ReplacedPlace },
    /// The shortest or longest beginning or end that fits a pattern is cut off, as in `${x#a}` and `${x%%a}`.
    Cut { pattern: String, end: bool, longest: bool },
    /// It is so many letters of it from one on, both counted from the end if they are negative, as in `${x:0:-1}`.
    Part { from: i64, length: Option<i64> },
}

/// Where [`Derivation::Replaced`] looks for the text.
#[derive(Clone, Copy, Debug)]
pub(super) enum ReplacedPlace {
    /// The first one.
    First,
    /// All of them.
    All,
    /// At the beginning.
    Beginning,
    /// At the end.
    End,
}
