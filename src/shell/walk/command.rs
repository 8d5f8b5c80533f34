//! Walks one simple command: its words, assignments and redirections, wherever it may run.

use std::{collections::BTreeSet, rc::Rc};

use super::{DEPTH_MAX, PathBase, ShellWalk, TEXTS_MAX, shorten};
use crate::{
    model::{Certainty, Level, Spares, Target},
    shell::{
        flags::Field,
        names, program_text,
        syntax::{Command, CommandItem},
        verdict::{CommandCall, CommandInput, CommandVerdict, unknown},
    },
};

impl ShellWalk<'_> {
    pub(super) fn command(&mut self, command: &Command, stdin: &CommandInput) {
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
                    self.in_subshell(|walk| walk.nodes(nodes));
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
        self.files.input = None;
    }

    /// What a function does that the line has defined, where it is called.
    pub(super) fn call_function(&mut self, fields: &[Field], stdin: &CommandInput) {
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
    pub(in crate::shell) fn run(&mut self, fields: &[Field], stdin: &CommandInput) {
        if self.burn(fields.len()) {
            return;
        }
        let texts = program_text::texts(fields);
        for text in texts {
            if self.texts.len() < TEXTS_MAX && !self.texts.contains(&text) {
                self.texts.push(text);
            }
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
    pub(super) fn elsewhere(
        &mut self,
        fields: &[Field],
        stdin: &CommandInput,
        verdict: &mut CommandVerdict,
    ) {
        let is_unknown = verdict.level == Level::Unknown;
        if verdict.level > Level::Creates {
            verdict.targets.extend(self.mentions(fields, stdin));
            verdict.targets.extend(self.worked_in().filter(|_| is_unknown));
        }
        let others = std::mem::take(&mut self.others);
        let found = self.found.len();
        for base in &others {
            self.in_subshell(|walk| {
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
        let (mut seen, mut parts) = (BTreeSet::new(), BTreeSet::new());
        verdict.targets.sort_by_key(|it| it.certainty == Certainty::Dynamic);
        verdict.targets.retain(|it| {
            let is_part = matches!(it.spares, Spares::NotIn(_) | Spares::NotPacked(_));
            let is_new_part = is_part && parts.insert((it.path.clone(), it.spares.clone()));
            seen.insert(it.path.clone()) || is_new_part
        });
    }

    /// The targets of something that is no command, in every directory where it may happen.
    pub(super) fn everywhere(&mut self, targets: impl Fn(&Self) -> Vec<Target>) -> Vec<Target> {
        let mut found = targets(self);
        for base in self.others.clone() {
            let here = std::mem::replace(&mut self.base, base);
            found.extend(targets(self));
            self.base = here;
        }
        found
    }
}
