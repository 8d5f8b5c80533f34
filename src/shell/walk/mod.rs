//! Walks a parsed script and judges every command in it. Knows directories, variables and
//! redirections; what a program does with its words is the tables' business.

mod files;
pub(super) mod mentions;
mod outputs;
mod places;
mod redirects;
mod variables;
mod words;

use std::{
    cell::Cell,
    collections::{HashMap, HashSet},
    rc::Rc,
};

use super::ShellContext;
use super::flags::Field;
use super::guard;
use super::names;
use super::recipes::ScriptPart;
use super::syntax::{Block, BlockKind, Command, CommandItem, Grammar, ShellNode};
use super::verdict::{CommandCall, CommandInput, CommandVerdict, unknown};
use crate::model::{Certainty, Level, Simple, Target};
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

/// A script file that a command runs.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ScriptFile {
    /// Where it runs, seen from the call's directory; empty for that directory itself.
    pub(super) dir: String,
    /// The file, seen from the call's directory; empty if its part tells.
    pub(super) path: String,
    /// What of it is run.
    pub(super) part: ScriptPart,
}

/// The files that a line leads to, seen from the call's directory.
#[derive(Default)]
pub(super) struct LineFiles {
    /// Those that it runs.
    pub(super) scripts: Vec<ScriptFile>,
    /// Those that it reads: what they name, its commands may take.
    pub(super) data: Vec<String>,
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
    variables: HashMap<String, Variable>,
    /// The functions that the line defines.
    functions: HashMap<String, Rc<ShellNode>>,
    /// What was seen so far to be true of all values of a variable.
    gives: HashMap<String, VariableFacts>,
    /// What an earlier walk saw at its end.
    given: HashMap<String, VariableFacts>,
    /// The variables of the loops around.
    bound: Vec<String>,
    /// Whether values that the line gave to variables are believed.
    believes: bool,
    /// Whether one of them was used.
    followed: Cell<bool>,
    /// The files that are worth reading, if it is known where they are.
    files: LineFiles,
    /// The file that is the standard input of the command at hand, seen from the call's directory.
    pub(super) input: Option<String>,
    /// The pattern of names by which a `find` before this in a pipeline looks for what it prints.
    pub(super) finds: Option<String>,
    /// What the line writes to files, by where they are.
    written: HashMap<String, String>,
    /// The files that the line copies or renames: from, to.
    copies: Vec<(String, String)>,
    /// Those of them that it renames, each with how much was found by then.
    moves: Vec<(usize, (String, String))>,
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
            variables: HashMap::new(),
            functions: HashMap::new(),
            gives: HashMap::new(),
            given: HashMap::new(),
            bound: Vec::new(),
            believes: true,
            followed: Cell::new(false),
            files: LineFiles::default(),
            input: None,
            finds: None,
            written: HashMap::new(),
            copies: Vec::new(),
            moves: Vec::new(),
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
        self.apart(|walk| walk.script(text));
    }

    /// Judges a script that runs at some other time, when variables hold something else.
    pub(super) fn later(&mut self, text: &str) {
        self.apart(|walk| {
            walk.variables.values_mut().for_each(|value| *value = Variable::Tainted);
            walk.script(text);
        });
    }

    /// Runs `inside`, then forgets where it went.
    pub(super) fn apart(&mut self, inside: impl FnOnce(&mut Self)) {
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

    fn node(&mut self, node: &ShellNode, stdin: &CommandInput) {
        if self.burn(1) {
            return;
        }
        match node {
            ShellNode::Command(command) => self.command(command, stdin),
            ShellNode::Pipeline(nodes) => {
                let mut assigned = Vec::new();
                names::assigned(nodes, &mut assigned);
                self.finds = None;
                let mut stdin = stdin.clone();
                for node in nodes {
                    if !names::selects(node) {
                        self.finds = None;
                    }
                    self.apart(|walk| walk.node(node, &stdin));
                    self.input = self.copied(node);
                    stdin = self.echoed(node).map_or(CommandInput::Pipe, CommandInput::Text);
                }
                (self.input, self.finds) = (None, None);
                // Some shells run the last one themselves.
                self.taint(&assigned);
            }
            ShellNode::Chain(links) => self.chain(links, stdin),
            ShellNode::Block(block) => self.block(block, stdin),
            // A name may now mean anything, here and in what was read before. The body is walked
            // for what it names.
            ShellNode::Function(name, body) => {
                self.changes_shell = true;
                self.push(format!("{name}()"), unknown("defines a function"));
                self.apart(|walk| {
                    walk.variables.values_mut().for_each(|value| *value = Variable::Tainted);
                    walk.node(body, &CommandInput::Pipe);
                });
                self.functions.insert(name.clone(), Rc::clone(body));
            }
        }
    }

    fn chain(&mut self, links: &[(bool, ShellNode)], stdin: &CommandInput) {
        let start = self.base.clone();
        for (after_failure, node) in links {
            let others = self.others.clone();
            if *after_failure {
                self.other(&start);
            }
            let before = self.base.clone();
            self.node(node, stdin);
            if *after_failure && self.base != before {
                self.other(&before);
            } else if *after_failure && ends(node) {
                self.others = others;
            }
        }
    }

    /// Notes a directory in which the line may still be.
    fn other(&mut self, base: &PathBase) {
        if self.base == *base || self.others.contains(base) {
            return;
        }
        if self.others.len() < OTHERS_MAX {
            self.others.push(base.clone());
        } else {
            self.others.truncate(OTHERS_MAX - 1);
            self.others.push(PathBase::Dynamic);
        }
    }

    fn block(&mut self, block: &Block, stdin: &CommandInput) {
        for word in &block.words {
            self.expand(word);
        }
        for text in &block.arithmetic {
            self.arithmetic(text);
        }
        let fed = self.redirects(&block.redirects);
        let stdin = fed.unwrap_or_else(|| stdin.clone());
        match block.kind {
            BlockKind::Plain => self.fed(&block.body, &stdin),
            BlockKind::Subshell => self.apart(|walk| walk.fed(&block.body, &stdin)),
            BlockKind::Background => {
                self.in_background = true;
                self.apart(|walk| walk.fed(&block.body, &stdin));
            }
            BlockKind::Branch => self.branch(block, &stdin),
        }
    }

    fn fed(&mut self, nodes: &[ShellNode], stdin: &CommandInput) {
        for node in nodes {
            let before = self.base.clone();
            self.node(node, stdin);
            // What follows runs in the old directory if there is no new one.
            if self.base != before && !self.ends_early && !ends_on_failure(node) {
                self.other(&before);
            }
        }
    }

    /// A body that runs never, once, or often: what it changes is unknown before and after it.
    fn branch(&mut self, block: &Block, stdin: &CommandInput) {
        let mut assigned = Vec::new();
        names::assigned(&block.body, &mut assigned);
        self.taint(&assigned);
        let base = self.base.clone();
        let first = self.found.len();
        let mut is_each_walked = false;
        match &block.binds {
            None => self.fed(&block.body, stdin),
            Some((name, words)) => {
                is_each_walked = self.bound(name, words.as_deref(), block, stdin);
                self.variables.insert(name.clone(), Variable::Tainted);
            }
        }
        self.taint(&assigned);
        if self.base != base && !is_each_walked {
            // It ran once, or not at all, or more often.
            let once = std::mem::replace(&mut self.base, PathBase::Dynamic);
            self.other(&base);
            self.other(&once);
            self.found.iter_mut().skip(first).flat_map(|simple| &mut simple.targets).for_each(
                |target| {
                    if !target.path.starts_with('/') {
                        target.certainty = Certainty::Dynamic;
                    }
                },
            );
        }
    }

    /// A loop over words. Returns whether it was walked with each of them.
    fn bound(
        &mut self,
        name: &str,
        words: Option<&[String]>,
        block: &Block,
        stdin: &CommandInput,
    ) -> bool {
        let words = words.unwrap_or_default();
        let values: Vec<Field> = words.iter().flat_map(|word| self.expand(word)).collect();
        let known = self.loops < 2
            && (1..=VALUES_MAX).contains(&values.len())
            && values.iter().all(|value| value.sure != Certainty::Dynamic);
        // What another variable holds is a guess.
        let is_proof = known && !words.iter().any(|word| word.contains(['$', '`']));
        self.loops += 1;
        self.binds(name, is_proof.then_some(&*values));
        self.bound.push(name.to_owned());
        if known {
            for value in values {
                self.keep(name, Variable::of(value.text, value.sure));
                self.fed(&block.body, stdin);
            }
        } else {
            self.fed(&block.body, stdin);
        }
        self.bound.pop();
        self.loops -= 1;
        known
    }

    fn command(&mut self, command: &Command, stdin: &CommandInput) {
        let fed = self.redirects(&command.redirects);
        let stdin = fed.unwrap_or_else(|| stdin.clone());
        let mut fields = Vec::new();
        for item in &command.items {
            match item {
                CommandItem::Word(raw) => fields.extend(self.expand(raw)),
                CommandItem::Assign(assign, raw) => {
                    let text = self.assignment(assign, raw);
                    fields.push(text);
                }
                CommandItem::Process(nodes) => {
                    self.apart(|walk| walk.nodes(nodes));
                    self.takes_any = true;
                    fields.push(Field {
                        text: "/dev/fd/63".to_owned(),
                        sure: Certainty::Exact,
                        splits: false,
                    });
                }
            }
        }
        let is = |name| fields.first().is_some_and(|first| names::is_one(first, &[name]));
        let reads = is("read");
        // Its redirections stay.
        self.changes_shell |= is("exec") && !command.redirects.is_empty();
        self.prefixes(&command.assigns, fields.is_empty(), reads);
        if !fields.is_empty() {
            self.run(&fields, &stdin);
            self.call_function(&fields, &stdin);
            self.note_files(command, &fields, &stdin);
        }
        self.input = None;
    }

    /// What a function does that the line has defined, where it is called.
    fn call_function(&mut self, fields: &[Field], stdin: &CommandInput) {
        let name = fields.first().and_then(Field::literal);
        let Some(body) = name.and_then(|name| self.functions.get(name)) else { return };
        if self.depth <= DEPTH_MAX {
            let body = Rc::clone(body);
            let before = self.gives_parameters(fields.get(1..).unwrap_or_default());
            self.depth += 1;
            self.node(&body, stdin);
            self.depth -= 1;
            self.takes_back(before);
        }
    }

    /// Judges a command of known words.
    pub(super) fn run(&mut self, fields: &[Field], stdin: &CommandInput) {
        if self.burn(fields.len()) {
            return;
        }
        self.depth += 1;
        let mut verdict = if self.depth > DEPTH_MAX * 2 {
            unknown("nested too deeply")
        } else {
            (self.programs.judge)(self, &CommandCall { words: fields, stdin })
        };
        if verdict.level <= Level::Creates {
            self.note_named(fields, stdin);
        }
        if verdict.level == Level::ReadOnly {
            self.note_data(fields);
        }
        if verdict.level > Level::ReadOnly {
            let is_unknown = verdict.level == Level::Unknown;
            self.changes_shell |= is_unknown && (self.programs.is_in_shell)(fields);
            let is_known = |field: &Field| field.sure != Certainty::Dynamic;
            self.takes_any |= self.base == PathBase::Dynamic
                || matches!(stdin, CommandInput::Pipe)
                || !fields.iter().all(is_known);
            self.elsewhere(fields, stdin, &mut verdict);
        }
        self.depth -= 1;
        let shown: Vec<&str> = fields.iter().map(|field| field.text.as_str()).collect();
        self.push(shorten(&shown.join(" ")), verdict);
    }

    /// Adds what a command does where it runs if a `cd` failed, and what it names outside.
    fn elsewhere(&mut self, fields: &[Field], stdin: &CommandInput, verdict: &mut CommandVerdict) {
        let is_unknown = verdict.level == Level::Unknown;
        if verdict.level > Level::Creates {
            verdict.targets.extend(self.mentions(fields, stdin));
            verdict.targets.extend(self.worked_in().filter(|_| is_unknown));
        }
        let others = std::mem::take(&mut self.others);
        let found = self.found.len();
        for base in &others {
            self.apart(|walk| {
                walk.base = base.clone();
                let other = (walk.programs.judge)(walk, &CommandCall { words: fields, stdin });
                verdict.targets.extend(other.targets);
                if verdict.level > Level::Creates {
                    verdict.targets.extend(walk.mentions(fields, stdin));
                    verdict.targets.extend(walk.worked_in().filter(|_| is_unknown));
                }
            });
        }
        // The commands inside it have looked after themselves.
        self.found.truncate(found);
        self.others = others;
        // What is named more than once is known as well as where it is known best.
        let mut seen = HashSet::new();
        verdict.targets.sort_by_key(|it| it.certainty == Certainty::Dynamic);
        verdict.targets.retain(|it| seen.insert(it.path.clone()));
    }

    /// The targets of something that is no command, in every directory where it may happen.
    fn everywhere(&mut self, targets: impl Fn(&Self) -> Vec<Target>) -> Vec<Target> {
        let mut found = targets(self);
        for base in self.others.clone() {
            let here = std::mem::replace(&mut self.base, base);
            found.extend(targets(self));
            self.base = here;
        }
        found
    }
}

/// Whether the line ends if the command fails, as in `cd a || exit 1`.
fn ends_on_failure(node: &ShellNode) -> bool {
    let ShellNode::Chain(links) = node else { return false };
    links.last().is_some_and(|(after_failure, last)| *after_failure && ends(last))
}

/// Whether the line ends there.
fn ends(node: &ShellNode) -> bool {
    let ShellNode::Command(command) = node else { return false };
    match command.items.first() {
        Some(CommandItem::Word(word)) => ["exit", "return"].contains(&word.as_str()),
        Some(CommandItem::Assign(..) | CommandItem::Process(_)) | None => false,
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
