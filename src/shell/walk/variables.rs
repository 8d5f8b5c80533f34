//! What the line sets variables to, as far as it can be followed.

use super::{PathBase, ShellWalk, VALUES_MAX};
use crate::{
    model::Certainty,
    shell::{
        flags::Field,
        names,
        syntax::{Assign, list_name},
        verdict::unknown,
    },
};

/// How long a value may be that we follow. It is a path or a few words; no path is longer.
const VALUE_MAX_BYTES: usize = 4096;

/// So many positional parameters are followed.
const PARAMETERS_MAX: usize = 9;

/// What is known of a variable at one point of the line.
#[derive(Clone, Debug)]
pub(in crate::shell) enum Variable {
    Known(String, Certainty),
    Tainted,
}

/// What is true of every value that a line gives to a variable, wherever and however often.
#[derive(Clone, Copy, Debug)]
pub(in crate::shell) struct VariableFacts {
    /// Each is a number.
    is_number: bool,
    /// Each is one of the words that a loop lists, and inside the loop the one it is at.
    is_listed: bool,
}

/// Variables in which the shell itself keeps a number.
const NUMBERS: &[&str] =
    &["RANDOM", "SRANDOM", "SECONDS", "EPOCHSECONDS", "LINENO", "PPID", "BASHPID", "UID", "EUID"];

impl Variable {
    pub(super) fn of(value: String, sure: Certainty) -> Self {
        if value.len() > VALUE_MAX_BYTES { Self::Tainted } else { Self::Known(value, sure) }
    }
}

impl ShellWalk<'_> {
    pub(super) fn taint(&mut self, names: &[String]) {
        for name in names {
            self.keep(name, Variable::Tainted);
        }
    }

    /// Assignments before a command, or alone.
    pub(super) fn prefixes(&mut self, assigns: &[Assign], alone: bool, reads: bool) {
        for assign in assigns {
            let field = self.assignment(assign, "");
            let value = field.after(&format!("{}=", assign.name));
            if alone {
                self.assign(assign, value);
            } else if assign.name == "IFS" && reads {
                // It is over when `read` is.
            } else {
                self.named(&assign.name, &value);
                // Before a builtin of its own, a shell may keep it.
                self.gives(&assign.name, VariableFacts { is_number: false, is_listed: false });
                self.note_passed(&value.text);
            }
        }
    }

    fn assign(&mut self, assign: &Assign, value: Field) {
        self.changes_shell |= self.named(&assign.name, &value);
        // What a variable in the value holds is a guess.
        let is_number = assign.index.is_none()
            && assign.value.as_deref().is_some_and(|raw| is_number(raw) || is_arithmetic(raw));
        self.gives(&assign.name, VariableFacts { is_number, is_listed: false });
        let is_known = assign.value.is_some() && value.sure != Certainty::Dynamic;
        let variable =
            if is_known { Variable::of(value.text, Certainty::Exact) } else { Variable::Tainted };
        let elements = self.elements_after(assign);
        self.keep(&assign.name, variable);
        if let Some(elements) = elements {
            self.variables
                .insert(list_name(&assign.name), Variable::of(elements, Certainty::Exact));
        }
    }

    /// Notes what a variable holds now. If it was an array, its elements are not known any more.
    pub(super) fn keep(&mut self, name: &str, variable: Variable) {
        self.variables.remove(&list_name(name));
        self.variables.insert(name.to_owned(), variable);
    }

    /// Notes the positional parameters; returns what those of these numbers were before.
    pub(in crate::shell) fn gives_parameters(
        &mut self,
        fields: &[Field],
    ) -> Vec<(String, Option<Variable>)> {
        let mut before = Vec::new();
        for number in 1..=PARAMETERS_MAX {
            let name = number.to_string();
            let given = fields.get(number - 1).and_then(Field::literal);
            let value = given
                .map_or(Variable::Tainted, |text| Variable::of(text.to_owned(), Certainty::Exact));
            let old = self.variables.insert(name.clone(), value);
            before.push((name, old));
        }
        before
    }

    /// Takes back what variables were given.
    pub(super) fn takes_back(&mut self, before: Vec<(String, Option<Variable>)>) {
        for (name, old) in before {
            match old {
                Some(old) => drop(self.variables.insert(name, old)),
                None => drop(self.variables.remove(&name)),
            }
        }
    }

    /// The elements that an array has once it is set as a whole, or gets more, if all are known: a line each.
    fn elements_after(&mut self, assign: &Assign) -> Option<String> {
        if !assign.is_list || assign.index.is_some() || assign.extra.len() > VALUES_MAX {
            return None;
        }
        let before = match self.variables.get(&list_name(&assign.name)) {
            _ if !assign.appends => String::new(),
            Some(Variable::Known(elements, _)) => format!("{elements}\n"),
            Some(Variable::Tainted) | None => return None,
        };
        let fields: Vec<Field> =
            self.quietly(|walk| assign.extra.iter().flat_map(|word| walk.expand(word)).collect());
        let known: Vec<&str> = fields.iter().map(Field::literal).collect::<Option<_>>()?;
        let is_line = |element: &&str| !element.is_empty() && !element.contains('\n');
        known.iter().all(is_line).then(|| before + &known.join("\n"))
    }

    /// Notes what is true of one more value of a variable.
    fn gives(&mut self, name: &str, given: VariableFacts) {
        let all = self.gives.entry(name.to_owned()).or_insert(given);
        all.is_number &= given.is_number;
        all.is_listed &= given.is_listed;
    }

    /// Judges that a loop gives a variable one word after another. They prove what the loop does
    /// with them if they stay one word each, and nothing else sets the variable meanwhile.
    pub(super) fn binds(&mut self, name: &str, values: Option<&[Field]>) {
        let value = Field { text: String::new(), sure: Certainty::Dynamic, splits: true };
        self.changes_shell |= self.named(name, &value);
        let values = values.filter(|_| !self.bound.iter().any(|outer| outer == name));
        let given = VariableFacts {
            is_number: values.is_some_and(|them| them.iter().all(|it| is_number(&it.text))),
            is_listed: values.is_some_and(|them| them.iter().all(is_one_word)),
        };
        self.gives(name, given);
        self.keep(name, Variable::Tainted);
    }

    /// Whether the value that a variable has now proves something.
    pub(super) fn is_listed(&self, name: &str) -> bool {
        self.given.get(name).is_some_and(|given| given.is_listed)
    }

    /// Judges that a variable gets a value. Returns whether a program may obey it.
    fn named(&mut self, name: &str, value: &Field) -> bool {
        let is_obeyed = !names::is_harmless(name, value);
        if is_obeyed {
            self.push(
                format!("{name}={}", value.text),
                unknown("sets a variable that a program may obey"),
            );
        }
        is_obeyed
    }

    /// Sets a variable to something that is not followed.
    fn set(&mut self, name: &str, is_number: bool) {
        let value = Field { text: String::new(), sure: Certainty::Dynamic, splits: true };
        self.changes_shell |= self.named(name, &value);
        self.gives(name, VariableFacts { is_number, is_listed: false });
        self.keep(name, Variable::Tainted);
    }

    /// Marks a variable as set by arithmetic.
    pub(super) fn counts(&mut self, name: &str) {
        self.set(name, true);
    }

    /// Whether arithmetic finds nothing but a number in a variable: the line has set it before, and
    /// never sets it to anything else.
    pub(super) fn is_number(&self, name: &str) -> bool {
        let is_set = self.variables.contains_key(name);
        NUMBERS.contains(&name) && !is_set
            || is_set && self.given.get(name).is_some_and(|given| given.is_number)
    }

    /// Walks an assignment's words; the field is `name=value`.
    pub(super) fn assignment(&mut self, assign: &Assign, raw: &str) -> Field {
        for word in &assign.extra {
            self.expand(word);
        }
        if let Some(index) = &assign.index {
            self.arithmetic(index);
        }
        match &assign.value {
            None => Field {
                text: format!("{}={raw}", assign.name),
                sure: Certainty::Dynamic,
                splits: false,
            },
            Some(value) => {
                let value = self.one(value);
                Field { text: format!("{}={}", assign.name, value.text), ..value }
            }
        }
    }

    /// Marks a variable as set by something we do not follow, such as `read`.
    pub(in crate::shell) fn forget(&mut self, name: &str) {
        let name = name.split(['[', '=']).next().unwrap_or(name);
        self.set(name, false);
    }

    /// Sets a variable as a declaring builtin does with `name=value`.
    pub(in crate::shell) fn declare(&mut self, field: &Field) {
        if let Some((name, value)) = field.text.split_once('=') {
            self.note_passed(value);
            let variable = match field.sure {
                Certainty::Exact => Variable::of(value.to_owned(), Certainty::Exact),
                Certainty::Glob | Certainty::Dynamic => Variable::Tainted,
            };
            self.changes_shell |= self.named(name, &field.after(name).after("="));
            self.gives(name, VariableFacts { is_number: false, is_listed: false });
            self.keep(name, variable);
        } else {
            self.changes_shell |= self.named(&field.text, field);
            self.gives(&field.text, VariableFacts { is_number: false, is_listed: false });
        }
    }

    pub(super) fn value(&self, name: &str) -> (String, Certainty) {
        match self.variables.get(name) {
            Some(Variable::Known(text, sure)) if self.believes || self.is_listed(name) => {
                self.followed.set(true);
                (text.clone(), *sure)
            }
            Some(Variable::Known(..) | Variable::Tainted) => {
                (format!("${name}"), Certainty::Dynamic)
            }
            None => match (name, &self.base) {
                ("HOME", _) => self.scope.home.clone(),
                ("0", _) => self.scope.script.clone(),
                ("PWD", PathBase::Known(base)) => {
                    self.absolute(base).or_else(|| base.is_empty().then(|| ".".to_owned()))
                }
                _ => None,
            }
            .map_or_else(|| (format!("${name}"), Certainty::Dynamic), |it| (it, Certainty::Exact)),
        }
    }
}

/// Whether a word of a list stays the one word that it is, and is no option: of a pattern that
/// begins with a name, no more than its end is not known.
fn is_one_word(value: &Field) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_./:,@+%-".contains(&byte);
    let first = value.text.bytes().next();
    let is_pattern = value.sure == Certainty::Glob;
    let is_wild = |byte: u8| is_pattern && b"*?[]".contains(&byte);
    !value.splits
        && value.sure != Certainty::Dynamic
        && first.is_some_and(|first| is_plain(first) && (first != b'-' || !is_pattern))
        && value.text.bytes().all(|byte| is_plain(byte) || is_wild(byte))
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Whether a word is nothing but `$((…))`.
fn is_arithmetic(raw: &str) -> bool {
    let inner = raw.strip_prefix("$((").and_then(|rest| rest.strip_suffix("))"));
    inner.is_some_and(|inner| !inner.contains([')', '(']))
}
