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
    pub(super) fn prefixes(&mut self, assigns: &[Assign], alone: bool) {
        for assign in assigns {
            let field = self.assignment(assign, "");
            let value = field.after(&format!("{}=", assign.name));
            if let Some(reason) = names::environment(&assign.name, &value) {
                self.push(field.text.clone(), unknown(reason));
            }
            if alone {
                self.assign(assign, value);
            }
        }
    }

    fn assign(&mut self, assign: &Assign, value: Field) {
        let is_known = assign.value.is_some() && value.sure != Certainty::Dynamic;
        let variable =
            if is_known { Variable::of(value.text, Certainty::Exact) } else { Variable::Tainted };
        self.variables.insert(assign.name.clone(), variable);
    }

    /// Walks an assignment's words; the field is `name=value`.
    pub(super) fn assignment(&mut self, assign: &Assign, raw: &str) -> Field {
        for word in &assign.extra {
            self.expand(word);
        }
        match &assign.value {
            None => Field {
                text: format!("{}={raw}", assign.name),
                sure: Certainty::Dynamic,
                splits: false,
            },
            Some(value) => {
                let value = self.one(value);
                if value.text.contains("$(") || value.text.contains('`') {
                    self.planted |= value.sure == Certainty::Exact;
                }
                Field { text: format!("{}={}", assign.name, value.text), ..value }
            }
        }
    }

    /// Marks a variable as set by something we do not follow, such as `read`.
    pub(in crate::shell) fn forget(&mut self, name: &str) {
        let name = name.split(['[', '=']).next().unwrap_or(name);
        self.variables.insert(name.to_owned(), Variable::Tainted);
    }

    /// Sets a variable as a declaring builtin does with `name=value`.
    pub(in crate::shell) fn declare(&mut self, field: &Field) {
        if let Some((name, value)) = field.text.split_once('=') {
            let variable = match field.sure {
                Certainty::Exact => Variable::of(value.to_owned(), Certainty::Exact),
                Certainty::Glob | Certainty::Dynamic => Variable::Tainted,
            };
            self.variables.insert(name.to_owned(), variable);
        }
    }

    pub(super) fn value(&self, name: &str) -> (String, Certainty) {
        match self.variables.get(name) {
            Some(Variable::Known(text, sure)) => (text.clone(), *sure),
            Some(Variable::Tainted) => (format!("${name}"), Certainty::Dynamic),
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
