//! Walks what is put together of commands: pipelines, chains, blocks, branches, loops and functions. Knows in which
//! directories the line may be after each.

use std::rc::Rc;

use super::{OTHERS_MAX, PathBase, ShellWalk, VALUES_MAX, variables::Variable};
use crate::{
    model::Certainty,
    shell::{
        flags::Field,
        names,
        syntax::{Block, BlockKind, CommandItem, ShellNode},
        verdict::{CommandInput, unknown},
    },
};

impl ShellWalk<'_> {
    pub(super) fn node(&mut self, node: &ShellNode, stdin: &CommandInput) {
        if self.burn(1) {
            return;
        }
        match node {
            ShellNode::Command(command) => self.command(command, stdin),
            ShellNode::Pipeline(nodes) => {
                let mut assigned = Vec::new();
                names::assigned(nodes, &mut assigned);
                self.files.finds = None;
                let mut stdin = stdin.clone();
                for node in nodes {
                    if !names::selects(node) {
                        self.files.finds = None;
                    }
                    self.in_subshell(|walk| walk.node(node, &stdin));
                    self.files.input = self.copied(node);
                    stdin = self.echoed(node).map_or(CommandInput::Pipe, CommandInput::Text);
                }
                (self.files.input, self.files.finds) = (None, None);
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
                self.in_subshell(|walk| {
                    walk.variables.values_mut().for_each(|value| *value = Variable::Tainted);
                    walk.node(body, &CommandInput::Pipe);
                });
                self.functions.insert(name.clone(), Rc::clone(body));
            }
        }
    }

    pub(super) fn chain(&mut self, links: &[(bool, ShellNode)], stdin: &CommandInput) {
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
    pub(super) fn other(&mut self, base: &PathBase) {
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

    pub(super) fn block(&mut self, block: &Block, stdin: &CommandInput) {
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
            BlockKind::Subshell => self.in_subshell(|walk| walk.fed(&block.body, &stdin)),
            BlockKind::Background => {
                self.in_background = true;
                self.in_subshell(|walk| walk.fed(&block.body, &stdin));
            }
            BlockKind::Branch => self.branch(block, &stdin),
        }
    }

    pub(super) fn fed(&mut self, nodes: &[ShellNode], stdin: &CommandInput) {
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
    pub(super) fn branch(&mut self, block: &Block, stdin: &CommandInput) {
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
    pub(super) fn bound(
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
