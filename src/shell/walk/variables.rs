//! What the line sets variables to, as far as it can be followed.

use super::{Base, Walk};
use crate::{
    model::Certainty,
    shell::{flags::Field, names, syntax::Assign, verdict::unknown},
};

/// How long a value may be that we follow. It is a path or a few words; no path is longer.
const VALUE_MAX_BYTES: usize = 4096;

/// What is known of a variable that the line sets.
#[derive(Clone, Debug)]
pub(super) enum Variable {
    Known(String, Certainty),
    /// Some number that arithmetic came to.
    Number,
    Tainted,
}

impl Variable {
    pub(super) fn of(value: String, sure: Certainty) -> Self {
        if value.len() > VALUE_MAX_BYTES { Self::Tainted } else { Self::Known(value, sure) }
    }
}

impl Walk<'_> {
    pub(super) fn taint(&mut self, names: &[String]) {
        for name in names {
            self.variables.insert(name.clone(), Variable::Tainted);
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
                self.note_passed(&value.text);
            }
        }
    }

    fn assign(&mut self, assign: &Assign, value: Field) {
        self.changes_shell |= self.named(&assign.name, &value);
        let is_known = assign.value.is_some() && value.sure != Certainty::Dynamic;
        let is_number = assign.value.as_deref().is_some_and(is_arithmetic);
        let variable = match (is_known, is_number) {
            (true, _) => Variable::of(value.text, Certainty::Exact),
            (false, true) => Variable::Number,
            (false, false) => Variable::Tainted,
        };
        self.keep(&assign.name, variable);
    }

    /// Notes what a variable holds now. To a walk that believes nothing it stays what is worst, as
    /// the assignment may not happen.
    pub(super) fn keep(&mut self, name: &str, variable: Variable) {
        let is_number = |variable: &Variable| match variable {
            Variable::Number => true,
            Variable::Known(text, _) => {
                !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
            }
            Variable::Tainted => false,
        };
        let was_worse = self.variables.get(name).is_some_and(|before| !is_number(before));
        if self.believes || !was_worse {
            self.variables.insert(name.to_owned(), variable);
        }
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
    pub(super) fn set(&mut self, name: &str, to: Variable) {
        let value = Field { text: String::new(), sure: Certainty::Dynamic, splits: true };
        self.changes_shell |= self.named(name, &value);
        self.keep(name, to);
    }

    /// Whether arithmetic finds nothing but a number in a variable. One that the line does not set
    /// is the user's own.
    pub(super) fn is_number(&self, name: &str) -> bool {
        match self.variables.get(name) {
            None => true,
            Some(Variable::Number) => {
                self.followed.set(true);
                true
            }
            Some(Variable::Known(text, _)) => {
                self.followed.set(true);
                !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
            }
            Some(Variable::Tainted) => false,
        }
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
        self.set(name, Variable::Tainted);
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
            self.keep(name, variable);
        } else {
            self.changes_shell |= self.named(&field.text, field);
        }
    }

    pub(super) fn value(&self, name: &str) -> (String, Certainty) {
        match self.variables.get(name) {
            Some(Variable::Known(text, sure)) if self.believes => {
                self.followed.set(true);
                (text.clone(), *sure)
            }
            Some(Variable::Known(..) | Variable::Number | Variable::Tainted) => {
                (format!("${name}"), Certainty::Dynamic)
            }
            None => match (name, &self.scope.home, &self.base) {
                ("HOME", Some(home), _) => (home.clone(), Certainty::Exact),
                ("PWD", _, Base::Known(base)) if base.is_empty() => {
                    (".".to_owned(), Certainty::Exact)
                }
                ("PWD", _, Base::Known(base)) if base.starts_with('/') => {
                    (base.clone(), Certainty::Exact)
                }
                _ => (format!("${name}"), Certainty::Dynamic),
            },
        }
    }
}

/// Whether a word is nothing but `$((…))`.
fn is_arithmetic(raw: &str) -> bool {
    let inner = raw.strip_prefix("$((").and_then(|rest| rest.strip_suffix("))"));
    inner.is_some_and(|inner| !inner.contains([')', '(']))
}
