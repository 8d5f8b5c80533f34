//! Walks a parsed script and judges every command in it. Knows directories, variables, functions
//! and redirections; what a program does with its words is the tables' business.

mod places;
mod redirects;
mod variables;
mod words;

use std::collections::{HashMap, HashSet};

use super::flags::Field;
use super::guard;
use super::names;
use super::syntax::{Block, Command, Grammar, Item, Kind, Node};
use super::verdict::{Call, Stdin, Verdict, unknown};
use super::{Scope, programs};
use crate::model::{Certainty, Level, Simple};
use variables::Variable;

/// How many nodes and words one line may have us look at, substitutions included. The public
/// corpus stays below 500; the limit is reached after a few milliseconds.
const FUEL: u32 = 50_000;

/// How many bytes may be parsed, counting a nested script once for every level around it.
const PARSED_MAX_BYTES: usize = 256 * 1024;

/// How deep scripts may nest in scripts.
const DEPTH_MAX: usize = 32;

/// How much of a command's text is kept for showing.
const SHOWN_MAX_CHARS: usize = 120;

/// How many values of a loop are walked one by one.
const VALUES_MAX: usize = 8;

/// Where relative paths start from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Base {
    /// The call's directory followed by this path; empty for the directory itself.
    Known(String),
    /// Somewhere.
    Dynamic,
}

/// The state of one walk.
pub(super) struct Walk<'scope> {
    grammar: &'scope dyn Grammar,
    /// What the caller knows about the world.
    pub(super) scope: &'scope Scope,
    /// What was found so far.
    pub(super) found: Vec<Simple>,
    /// The directory relative paths start from.
    pub(super) base: Base,
    previous: Base,
    stack: Vec<Base>,
    variables: HashMap<String, Variable>,
    functions: HashSet<String>,
    fuel: u32,
    parsed_bytes: usize,
    depth: usize,
    loops: usize,
    /// Whether a literal value that contains a substitution was put where arithmetic finds it.
    planted: bool,
    exhausted: bool,
}

impl<'scope> Walk<'scope> {
    /// Starts a walk in the call's directory.
    pub(super) fn new(grammar: &'scope dyn Grammar, scope: &'scope Scope) -> Self {
        Self {
            grammar,
            scope,
            found: Vec::new(),
            base: Base::Known(String::new()),
            previous: Base::Dynamic,
            stack: Vec::new(),
            variables: HashMap::new(),
            functions: HashSet::new(),
            fuel: FUEL,
            parsed_bytes: 0,
            depth: 0,
            loops: 0,
            planted: false,
            exhausted: false,
        }
    }

    /// Judges a script in the state the walk is in.
    pub(super) fn script(&mut self, text: &str) {
        let shown = shorten(text);
        if let Some(reason) = guard::refuse(text) {
            return self.push(shown, unknown(reason));
        }
        self.parsed_bytes += text.len();
        if self.parsed_bytes > PARSED_MAX_BYTES || self.depth > DEPTH_MAX {
            return self.push(shown, unknown("nested too deeply"));
        }
        let grammar = self.grammar;
        match grammar.script(text) {
            Ok(nodes) => {
                self.depth += 1;
                self.functions_of(&nodes);
                self.nodes(&nodes);
                self.depth -= 1;
            }
            Err(error) => self.push(shown, unknown(error.to_string())),
        }
    }

    /// Judges a line of plain words, which needs no parser.
    pub(super) fn plain(&mut self, line: &str) {
        let fields: Vec<Field> = line.split_ascii_whitespace().map(Field::exact).collect();
        self.run(&fields, &Stdin::Inherited);
    }

    /// Judges a script whose directory and variables are its own.
    pub(super) fn subscript(&mut self, text: &str) {
        self.apart(|walk| walk.script(text));
    }

    /// Runs `inside`, then forgets where it went.
    pub(super) fn apart(&mut self, inside: impl FnOnce(&mut Self)) {
        let base = self.base.clone();
        let previous = self.previous.clone();
        let stack = self.stack.clone();
        let variables = self.variables.clone();
        inside(self);
        self.base = base;
        self.previous = previous;
        self.stack = stack;
        self.variables = variables;
    }

    /// Records a verdict.
    pub(super) fn push(&mut self, text: String, verdict: Verdict) {
        let Verdict { level, reason, targets } = verdict;
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

    fn functions_of(&mut self, nodes: &[Node]) {
        for node in nodes {
            match node {
                Node::Function(name, body) => {
                    self.functions.insert(name.clone());
                    let mut assigned = Vec::new();
                    names::assigned(std::slice::from_ref(body.as_ref()), &mut assigned);
                    self.taint(&assigned);
                }
                Node::Pipeline(nodes) => self.functions_of(nodes),
                Node::Block(block) => self.functions_of(&block.body),
                Node::Command(_) => {}
            }
        }
    }

    fn nodes(&mut self, nodes: &[Node]) {
        for node in nodes {
            self.node(node, &Stdin::Inherited);
        }
    }

    fn node(&mut self, node: &Node, stdin: &Stdin) {
        if self.burn(1) {
            return;
        }
        match node {
            Node::Command(command) => self.command(command, stdin),
            Node::Pipeline(nodes) => {
                let mut assigned = Vec::new();
                names::assigned(nodes, &mut assigned);
                for (index, node) in nodes.iter().enumerate() {
                    let stdin = if index == 0 { stdin.clone() } else { Stdin::Pipe };
                    self.apart(|walk| walk.node(node, &stdin));
                }
                // Some shells run the last one themselves.
                self.taint(&assigned);
            }
            Node::Block(block) => self.block(block, stdin),
            // The body is judged where it is defined, as if called there with unknown arguments.
            Node::Function(_, body) => self.apart(|walk| {
                walk.base = Base::Dynamic;
                walk.variables.values_mut().for_each(|value| *value = Variable::Tainted);
                walk.node(body, &Stdin::Pipe);
            }),
        }
    }

    fn block(&mut self, block: &Block, stdin: &Stdin) {
        for word in &block.words {
            self.expand(word);
        }
        for text in &block.arithmetic {
            self.arithmetic(text);
        }
        let fed = self.redirects(&block.redirects);
        let stdin = fed.unwrap_or_else(|| stdin.clone());
        match block.kind {
            Kind::Plain => self.fed(&block.body, &stdin),
            Kind::Subshell => self.apart(|walk| walk.fed(&block.body, &stdin)),
            Kind::Branch => self.branch(block, &stdin),
        }
    }

    fn fed(&mut self, nodes: &[Node], stdin: &Stdin) {
        for node in nodes {
            self.node(node, stdin);
        }
    }

    /// A body that runs never, once, or often: what it changes is unknown before and after it.
    fn branch(&mut self, block: &Block, stdin: &Stdin) {
        let mut assigned = Vec::new();
        names::assigned(&block.body, &mut assigned);
        self.taint(&assigned);
        let base = self.base.clone();
        let first = self.found.len();
        match &block.binds {
            None => self.fed(&block.body, stdin),
            Some((name, words)) => {
                let mut values = Vec::new();
                for word in words.iter().flatten() {
                    values.extend(self.expand(word));
                }
                self.bound(name, words.is_some(), values, block, stdin);
                self.variables.insert(name.clone(), Variable::Tainted);
            }
        }
        self.taint(&assigned);
        if self.base != base {
            self.base = Base::Dynamic;
            self.found.iter_mut().skip(first).flat_map(|simple| &mut simple.targets).for_each(
                |target| {
                    if !target.path.starts_with('/') {
                        target.certainty = Certainty::Dynamic;
                    }
                },
            );
        }
    }

    fn bound(
        &mut self,
        name: &str,
        listed: bool,
        values: Vec<Field>,
        block: &Block,
        stdin: &Stdin,
    ) {
        let known = listed
            && self.loops < 2
            && (1..=VALUES_MAX).contains(&values.len())
            && values.iter().all(|value| value.sure != Certainty::Dynamic);
        self.loops += 1;
        if known {
            for value in values {
                self.variables.insert(name.to_owned(), Variable::of(value.text, value.sure));
                self.fed(&block.body, stdin);
            }
        } else {
            self.variables.insert(name.to_owned(), Variable::Tainted);
            self.fed(&block.body, stdin);
        }
        self.loops -= 1;
    }

    fn command(&mut self, command: &Command, stdin: &Stdin) {
        let fed = self.redirects(&command.redirects);
        let stdin = fed.unwrap_or_else(|| stdin.clone());
        let mut fields = Vec::new();
        for item in &command.items {
            match item {
                Item::Word(raw) => fields.extend(self.expand(raw)),
                Item::Assign(assign, raw) => {
                    let text = self.assignment(assign, raw);
                    fields.push(text);
                }
                Item::Process(nodes) => {
                    self.apart(|walk| walk.nodes(nodes));
                    fields.push(Field {
                        text: "/dev/fd/63".to_owned(),
                        sure: Certainty::Exact,
                        splits: false,
                    });
                }
            }
        }
        self.prefixes(&command.assigns, fields.is_empty());
        if !fields.is_empty() {
            self.run(&fields, &stdin);
        }
    }

    /// Whether the line defines this function; its body was judged at its definition.
    pub(super) fn is_function(&self, name: &str) -> bool {
        self.functions.contains(name)
    }

    /// Judges a command of known words.
    pub(super) fn run(&mut self, fields: &[Field], stdin: &Stdin) {
        if self.burn(fields.len()) {
            return;
        }
        self.depth += 1;
        let verdict = if self.depth > DEPTH_MAX * 2 {
            unknown("nested too deeply")
        } else {
            programs::judge(self, &Call { words: fields, stdin })
        };
        self.depth -= 1;
        let shown: Vec<&str> = fields.iter().map(|field| field.text.as_str()).collect();
        self.push(shorten(&shown.join(" ")), verdict);
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
