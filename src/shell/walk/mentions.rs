//! Places outside the working directory that a command names, whatever the program does with them.
//! Knows how paths look in words and program texts; knows no program.

use std::collections::BTreeSet;

use super::{
    PathBase, ShellWalk,
    places::{lexical, place_in},
};
use crate::{
    model::{Certainty, Level, Simple, Spares, Target, TargetAction},
    shell::{flags::Field, program_text, verdict::CommandInput},
};

/// More than this many from one text are not listed.
const MENTIONS_MAX: usize = 64;

const BRACKETS: [char; 4] = ['{', '}', '[', ']'];

pub(in crate::shell) const REASON: &str = "is named by a command that may change it";

impl ShellWalk<'_> {
    /// The places outside that a command names: its directory, and the paths in its words and in
    /// the text it reads.
    pub(super) fn mentions(&self, fields: &[Field], stdin: &CommandInput) -> Vec<Target> {
        let mut paths = Vec::new();
        self.gather(fields, stdin, &mut paths);
        paths.into_iter().map(target).collect()
    }

    /// The directory below that a command works in, if the line went there: it may be a repository
    /// of its own.
    pub(super) fn worked_in(&self) -> Option<Target> {
        match &self.base {
            PathBase::Known(base) if !base.is_empty() && !is_outside(base) => {
                Some(target(base.clone()))
            }
            PathBase::Known(_) | PathBase::Dynamic => None,
        }
    }

    fn gather(&self, fields: &[Field], stdin: &CommandInput, paths: &mut Vec<String>) {
        for base in self.bases() {
            if let PathBase::Known(base) = base {
                add(paths, base.clone());
            }
        }
        let texts = program_text::texts(fields);
        for field in fields.iter().skip(1) {
            let text = texts.iter().find(|text| text.word == field.text);
            self.mentioned(text.map_or(&field.text, |text| &text.plain), paths);
        }
        if let CommandInput::Text(text) = stdin {
            self.mentioned(text, paths);
        }
    }

    /// Notes what a command names that only looks.
    pub(super) fn note_named(&mut self, fields: &[Field], stdin: &CommandInput) {
        let mut named = std::mem::take(&mut self.named);
        self.gather(fields, stdin, &mut named);
        self.named = named;
    }

    /// Notes a value that a program may get from a variable.
    pub(super) fn note_passed(&mut self, value: &str) {
        let mut named = std::mem::take(&mut self.named);
        self.mentioned(value, &mut named);
        self.named = named;
        self.takes_any = true;
    }

    /// Notes the names that a link may get.
    pub(in crate::shell) fn note_alias(&mut self, operands: &[Field]) {
        let name = |field: &Field| {
            let text = field.text.trim_end_matches('/');
            text.rsplit('/').next().unwrap_or(text).to_owned()
        };
        self.aliases.extend(operands.iter().map(name).filter(|name| !name.is_empty()));
    }

    /// Whether another command has the name of a link that the line makes.
    fn uses_alias(&self) -> bool {
        let has_name = |simple: &Simple| {
            !simple.text.starts_with("ln ")
                && self.aliases.iter().any(|name| name == "." || simple.text.contains(&**name))
        };
        self.found.iter().any(has_name)
    }

    /// The walk's findings. A word that is not known before the line runs, or a program that reads
    /// what another prints, may mean any place that the line names, in any command of it. So may
    /// the name of a new link, and an unknown program after a file was written: it may run that.
    pub(in crate::shell) fn into_found(mut self) -> Vec<Simple> {
        self.add_renamed();
        let takes_any = self.takes_any || self.uses_alias();
        let writes = |simple: &Simple| {
            simple.targets.iter().any(|target| target.action == TargetAction::Overwrite)
        };
        let may_run_it =
            self.found.iter().any(|it| it.level == Level::Unknown) && self.found.iter().any(writes);
        let changes = |simple: &&mut Simple| simple.level > Level::Creates;
        let last = self.found.iter_mut().rev().find(changes);
        if let Some(last) = last.filter(|_| takes_any || may_run_it) {
            let known: BTreeSet<String> = last.targets.iter().map(|it| it.path.clone()).collect();
            let news = self.named.into_iter().filter(|path| !known.contains(path));
            last.targets.extend(news.map(target));
        }
        self.found
    }

    fn mentioned(&self, text: &str, paths: &mut Vec<String>) {
        for path in named(text, self.scope.home.as_deref()) {
            let path = Field::exact(&path);
            for base in self.bases() {
                add(paths, place_in(base, &path).0);
            }
        }
    }

    /// The directory in which the line is, and those in which it may be if a `cd` failed.
    fn bases(&self) -> impl Iterator<Item = &PathBase> {
        std::iter::once(&self.base).chain(&self.others)
    }
}

/// The places outside that a text names that cannot be read as a command line.
pub(in crate::shell) fn of_text(text: &str, home: Option<&str>) -> Vec<Target> {
    let mut paths = Vec::new();
    for path in named(text, home) {
        add(&mut paths, path);
    }
    paths.into_iter().map(target).collect()
}

fn target(path: String) -> Target {
    Target {
        path,
        // What happens to it, if anything, is a guess.
        certainty: Certainty::Dynamic,
        action: TargetAction::Modify,
        spares: Spares::Nothing,
        reason: REASON.to_owned(),
    }
}

fn is_outside(plain: &str) -> bool {
    plain.starts_with('/') || plain == ".." || plain.starts_with("../")
}

fn add(paths: &mut Vec<String>, path: String) {
    let plain = lexical(&path);
    let is_news = !paths.contains(&path);
    if is_outside(&plain) && is_news && plain != "/" && paths.len() < MENTIONS_MAX {
        paths.push(path);
    }
}

/// What looks like a path to somewhere else: absolute, below the home, or with `..` in it.
fn named<'a>(text: &'a str, home: Option<&'a str>) -> impl Iterator<Item = String> + 'a {
    let is_end = |char: char| char.is_whitespace() || "'\"`;|&<>()=,:@".contains(char);
    let is_name = !text.contains(|char: char| "'\"`\n;|&<>()".contains(char));
    let whole = is_name.then_some(text).into_iter().filter_map(move |text| outside(text, home));
    let mut is_behind = false;
    let parts = text.split_inclusive(is_end).take(10 * MENTIONS_MAX).flat_map(move |piece| {
        let part = piece.trim_end_matches(is_end);
        let follows = std::mem::replace(&mut is_behind, piece.ends_with([')', '`']));
        let behind = if follows { behind(part) } else { None };
        let part = match part.as_bytes() {
            // A value may follow a short option at once.
            [b'-', second, ..] if second.is_ascii_alphabetic() => &part[2..],
            _ => part,
        };
        let inner = in_brackets(part).filter_map(|part| outside(part, home));
        behind.into_iter().chain(outside(part, home)).chain(inner.collect::<Vec<_>>())
    });
    whole.chain(parts)
}

/// What lies between brackets that are no variable's, as in `q{rm ../a}`.
fn in_brackets(part: &str) -> impl Iterator<Item = &str> {
    let has_some = part.contains(BRACKETS) && !part.contains("${");
    part.split(BRACKETS).filter(move |_| has_some)
}

fn outside(part: &str, home: Option<&str>) -> Option<String> {
    let of_home = ["~", "$HOME", "${HOME}"].iter().find_map(|sign| part.strip_prefix(sign));
    let of_here = ["$PWD/", "${PWD}/"].iter().find_map(|sign| part.strip_prefix(sign));
    let path = match (of_home, of_here) {
        (Some(rest), _) if rest.is_empty() || rest.starts_with('/') => format!("{}{rest}", home?),
        (_, Some(rest)) => rest.to_owned(),
        _ if part.starts_with('$') => {
            let end = if part.starts_with("${") { part.find('}')? + 1 } else { part.find('/')? };
            return behind(&part[end..]);
        }
        _ => part.to_owned(),
    };
    let is_far = path.starts_with('/') && !path.starts_with("//")
        || path.split('/').any(|name| name == "..");
    is_far.then(|| known(&path).to_owned())
}

/// Where a path without a known beginning leads: most often that is the directory of the call,
/// or the one above.
fn behind(rest: &str) -> Option<String> {
    let rest = known(rest).strip_prefix('/')?;
    let is_far = rest.split('/').any(|name| name == "..");
    (!rest.is_empty()).then(|| if is_far { rest.to_owned() } else { format!("../{rest}") })
}

/// A path up to its first part that is not known.
fn known(path: &str) -> &str {
    let Some(at) = path.find(['$', '*', '?', '[', '{', '…']) else { return path };
    let before = path.get(..at).unwrap_or_default();
    before.rfind('/').and_then(|end| path.get(..end.max(1))).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_to_elsewhere_are_seen_in_any_word() {
        for (text, paths) in [
            ("../other", &["../other"][..]),
            ("--dir=/a/b", &["/a/b"]),
            ("-C/a", &["/a"]),
            ("a/../../b/*.csv", &["a/../../b"]),
            ("$HOME/x/$y", &["/home/me/x"]),
            ("~", &["/home/me"]),
            ("import shutil; shutil.rmtree('../x')", &["../x"]),
            ("/a:/b", &["/a:/b", "/a", "/b"]),
            ("$(git rev-parse --show-toplevel)/../x", &["../x", "/../x"]),
            ("$(…)/x", &["../x", "/x"]),
            ("$ROOT/../x", &["../x"]),
            ("${PWD%/*}/x", &["../x"]),
            ("system(q{rm -rf ~/../code/x})", &["/home/me/../code/x}", "/home/me/../code/x"]),
            ("exec q{/a/b}", &["/a/b"]),
            ("https://host/x", &[]),
            ("src/x", &[]),
        ] {
            let found: Vec<String> = named(text, Some("/home/me")).collect();
            let news: Vec<&String> = found
                .iter()
                .enumerate()
                .filter(|(at, it)| !found[..*at].contains(it))
                .map(|(_, it)| it)
                .collect();
            assert_eq!(news, paths, "{text}");
        }
    }
}
