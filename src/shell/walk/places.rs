//! Where a line is while it is walked: `cd` and its kin, and the paths that words name from there.

use super::{PathBase, ShellWalk};
use crate::{
    model::{Certainty, Spares, Target, TargetAction},
    shell::flags::Field,
};

impl ShellWalk<'_> {
    /// Moves to a directory as `cd` does.
    pub(in crate::shell) fn enter(&mut self, to: Option<&Field>) {
        for other in self.others.clone() {
            let here = std::mem::replace(&mut self.base, other);
            let entered = self.entered(to);
            self.base = here;
            self.other(&entered);
        }
        for other in self.on_path(to) {
            self.other(&PathBase::Known(other));
        }
        let next = self.entered(to);
        self.previous = std::mem::replace(&mut self.base, next);
    }

    /// Where else `cd` looks for a directory: in those of `CDPATH`, as far as the line sets it.
    fn on_path(&self, to: Option<&Field>) -> Vec<String> {
        let relative = to.and_then(Field::literal).filter(|to| !to.starts_with(['/', '.']));
        let (Some(to), (dirs, Certainty::Exact)) = (relative, self.value("CDPATH")) else {
            return Vec::new();
        };
        let dirs = dirs.split(':').filter(|dir| !dir.is_empty());
        let place = |dir| match self.place(&Field::exact(dir)) {
            (dir, Certainty::Exact) => Some(lexical(&format!("{dir}/{to}"))),
            _ => None,
        };
        dirs.filter_map(place).collect()
    }

    fn entered(&self, to: Option<&Field>) -> PathBase {
        match to {
            None => match self.value("HOME") {
                (home, Certainty::Exact) => PathBase::Known(home),
                _ => PathBase::Dynamic,
            },
            Some(field) if field.text == "-" => self.previous.clone(),
            Some(field) => match self.place(field) {
                (path, Certainty::Exact) => PathBase::Known(lexical(&path)),
                (_, Certainty::Glob | Certainty::Dynamic) => PathBase::Dynamic,
            },
        }
    }

    /// Moves to a directory and remembers this one, as `pushd` does.
    pub(in crate::shell) fn push_base(&mut self, to: Option<&Field>) {
        self.stack.push(self.base.clone());
        match to {
            Some(_) => self.enter(to),
            None => self.base = PathBase::Dynamic,
        }
    }

    /// Goes back to the directory of the last `pushd`.
    pub(in crate::shell) fn pop_base(&mut self) {
        let next = self.stack.pop().unwrap_or(PathBase::Dynamic);
        self.previous = std::mem::replace(&mut self.base, next);
    }

    /// Where a word's path is, seen from the call's directory.
    pub(in crate::shell) fn place(&self, field: &Field) -> (String, Certainty) {
        place_in(&self.base, field)
    }

    /// A target at a word's path.
    pub(in crate::shell) fn target(
        &self,
        field: &Field,
        action: TargetAction,
        reason: &str,
    ) -> Target {
        let (path, certainty) = self.place(field);
        Target { path, certainty, action, spares: Spares::Nothing, reason: reason.to_owned() }
    }
}

/// Where a word's path is in a directory.
pub(super) fn place_in(base: &PathBase, field: &Field) -> (String, Certainty) {
    let text = field.text.as_str();
    if text.starts_with('/') {
        return (text.to_owned(), field.sure);
    }
    match base {
        PathBase::Known(base) if base.is_empty() && field.sure == Certainty::Dynamic => {
            (text.to_owned(), field.sure)
        }
        PathBase::Dynamic => (text.to_owned(), Certainty::Dynamic),
        PathBase::Known(base) => (join(base, text), field.sure),
    }
}

/// Joins a relative path to a directory.
fn join(base: &str, path: &str) -> String {
    let mut path = path;
    while let Some(rest) = path.strip_prefix("./") {
        path = rest.trim_start_matches('/');
    }
    match (base, path) {
        ("", "") => ".".to_owned(),
        ("", path) => path.to_owned(),
        (base, "" | ".") => base.to_owned(),
        (base, path) => format!("{}/{path}", base.trim_end_matches('/')),
    }
}

/// Takes `..` back by name, as `cd` does.
pub(in crate::shell) fn lexical(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match (part, parts.last()) {
            ("" | ".", _) => {}
            ("..", Some(&last)) if last != ".." => {
                parts.pop();
            }
            (part, _) => parts.push(part),
        }
    }
    let root = if path.starts_with('/') { "/" } else { "" };
    format!("{root}{}", parts.join("/"))
}
