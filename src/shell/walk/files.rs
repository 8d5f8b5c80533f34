//! The files that a line runs and reads, and what it writes to files that it runs.

use std::collections::BTreeMap;

use super::{PathBase, ShellWalk, places::lexical};
use crate::{
    model::{Certainty, Level, Target, TargetAction},
    shell::{
        flags::Field,
        recipes::ScriptPart,
        syntax::{Command, RedirectSource, ShellNode},
        verdict::CommandInput,
    },
};

/// So many files are worth reading for what they name.
const DATA_MAX: usize = 4;

/// No more is kept of what a line writes.
const WRITTEN_MAX_BYTES: usize = 64 * 1024;

/// A script file that a command runs.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::shell) struct ScriptFile {
    /// Where it runs, seen from the call's directory; empty for that directory itself.
    pub(in crate::shell) dir: String,
    /// The file, seen from the call's directory; empty if its part tells.
    pub(in crate::shell) path: String,
    /// What of it is run.
    pub(in crate::shell) part: ScriptPart,
}

/// The files that a line leads to, seen from the call's directory.
#[derive(Default)]
pub(in crate::shell) struct LineFiles {
    /// Those that it runs.
    pub(in crate::shell) scripts: Vec<ScriptFile>,
    /// Those that it reads: what they name, its commands may take.
    pub(in crate::shell) data: Vec<String>,
}

/// What a walk has seen of files, by where they are, seen from the call's directory.
#[derive(Default)]
pub(in crate::shell) struct FileTraces {
    /// Those that are worth reading.
    line: LineFiles,
    /// The file that is the standard input of the command at hand.
    pub(super) input: Option<String>,
    /// The pattern of names by which a `find` before this in a pipeline looks for what it prints.
    pub(in crate::shell) finds: Option<String>,
    /// What the line writes to files.
    written: BTreeMap<String, String>,
    /// The files that the line copies or renames: from, to.
    copies: Vec<(String, String)>,
    /// Files that the line gives another name, each with how much was found by then.
    names: Vec<(usize, NewName)>,
}

/// A file that a line gives another name.
#[derive(Clone, Debug)]
struct NewName {
    from: String,
    to: String,
    /// Whether it keeps the old one: what is removed by the new one is a link then.
    is_link: bool,
}

impl ShellWalk<'_> {
    /// Notes that a script file is run.
    pub(in crate::shell) fn runs_script(&mut self, file: &Field) {
        if let (path, Certainty::Exact) = self.place(file) {
            self.runs_file(path);
        }
    }

    /// The same for what a shell reads from its standard input.
    pub(in crate::shell) fn runs_input(&mut self) {
        if let Some(path) = self.files.input.take() {
            self.runs_file(path);
        }
    }

    /// The same for a script that is put together of what the line has read.
    pub(in crate::shell) fn runs_data(&mut self) {
        for path in self.files.line.data.clone() {
            self.runs_file(path);
        }
    }

    /// Notes that a recipe is run in a directory.
    pub(in crate::shell) fn runs_recipe(&mut self, dir: &str, part: ScriptPart) {
        if let (dir, Certainty::Exact) =
            self.place(&Field::exact(if dir.is_empty() { "." } else { dir }))
        {
            let dir = lexical(&dir);
            self.files.line.scripts.push(ScriptFile { dir, path: String::new(), part });
        }
    }

    /// Walks a file that is read into the shell for what it sets.
    pub(in crate::shell) fn learns_from(&mut self, file: &Field) {
        let (path, Certainty::Exact) = self.place(file) else { return };
        let Some(reader) = self.scope.scripts.as_ref() else { return };
        if let Some(text) = (reader.read)(&reader.dir.join(path)) {
            // What it destroys is told by itself.
            self.quietly(|walk| walk.script(&text));
        }
    }

    fn runs_file(&mut self, path: String) {
        let PathBase::Known(dir) = self.base.clone() else { return };
        let plain = lexical(&path);
        if let Some(text) = self.files.written.get(&plain).cloned() {
            self.subscript(&text);
        }
        let name = plain.rsplit('/').next().unwrap_or(&plain);
        let is_it = |(from, to): &&(String, String)| {
            lexical(to) == plain
                || plain.strip_suffix(name).is_some_and(|above| {
                    lexical(to) == lexical(above) && from.rsplit('/').next() == Some(name)
                })
        };
        let copied = self.files.copies.iter().filter(is_it).map(|(from, _)| from.clone());
        let all = copied.chain([path]).map(|path| {
            let part = ScriptPart::All;
            ScriptFile { dir: dir.clone(), path, part }
        });
        self.files.line.scripts.extend(all.collect::<Vec<_>>());
    }

    /// The files that the line leads to. What it reads counts only if a command that can destroy something takes
    /// what is not known.
    pub(in crate::shell) fn take_files(&mut self) -> LineFiles {
        let files = std::mem::take(&mut self.files.line);
        let destroys = self.found.iter().any(|it| it.level > Level::Creates);
        let data = if self.takes_any && destroys { files.data } else { Vec::new() };
        LineFiles { data, ..files }
    }

    /// Notes the files that a command may read that changes nothing.
    pub(super) fn note_data(&mut self, fields: &[Field]) {
        for field in fields.iter().skip(1).filter(|field| !field.text.starts_with('-')) {
            if let (path, Certainty::Exact) = self.place(field) {
                self.reads_file(path);
            }
        }
    }

    pub(super) fn reads_file(&mut self, path: String) {
        if self.files.line.data.len() < DATA_MAX && !self.files.line.data.contains(&path) {
            self.files.line.data.push(path);
        }
    }

    /// The file that a command prints, if it does nothing else.
    pub(super) fn copied(&mut self, node: &ShellNode) -> Option<String> {
        let ShellNode::Command(command) = node else { return None };
        match self.quietly(|walk| walk.known_words(command))?.as_slice() {
            [name, file] if name == "cat" => match self.place(&Field::exact(file)) {
                (path, Certainty::Exact) => Some(path),
                _ => None,
            },
            _ => None,
        }
    }

    /// What `echo` or `printf` gives to the next command of a pipeline. A guess: it proves nothing.
    pub(super) fn echoed(&mut self, node: &ShellNode) -> Option<String> {
        let ShellNode::Command(command) = node else { return None };
        if !self.believes || !command.redirects.is_empty() {
            return None;
        }
        let words = self.quietly(|walk| walk.known_words(command))?;
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let text = printed_text(&words, &CommandInput::Pipe)?;
        self.followed.set(true);
        Some(text)
    }

    /// Notes what a command writes to a file, and which it copies: a later one may run it.
    pub(super) fn note_files(&mut self, command: &Command, fields: &[Field], stdin: &CommandInput) {
        let words: Option<Vec<&str>> = fields.iter().map(Field::literal).collect();
        let Some(words) = words else { return };
        let words = match words.as_slice() {
            ["git", rest @ ..] if rest.first() == Some(&"mv") => rest.to_vec(),
            words => words.to_vec(),
        };
        if let ["cp" | "mv" | "ln" | "install", args @ ..] = words.as_slice() {
            let is_operand = |arg: &&&str| !arg.starts_with('-');
            // With it the directory comes first.
            let is_turned = args.iter().any(|arg| arg.starts_with("-t") || arg.starts_with("--t"));
            let operands: Vec<Field> =
                args.iter().filter(is_operand).map(|arg| Field::exact(arg)).collect();
            if let ([from, to], false) = (operands.as_slice(), is_turned) {
                let renamed = (self.place(from).0, self.place(to).0);
                if matches!(words[0], "mv" | "ln") {
                    let (is_link, is_symbolic) = (words[0] == "ln", is_symbolic(args));
                    let to = renamed.1.clone();
                    // What a symlink says is seen from where it is.
                    let from = match to.rsplit_once('/') {
                        Some((dir, _)) if is_symbolic && !from.text.starts_with('/') => {
                            format!("{dir}/{}", from.text)
                        }
                        _ => renamed.0.clone(),
                    };
                    self.files.names.push((self.found.len(), NewName { from, to, is_link }));
                }
                self.files.copies.push(renamed);
            }
        }
        for redirect in command.redirects.iter().filter(|redirect| !redirect.is_stdin) {
            let RedirectSource::Writes { word, keeps } = &redirect.to else { continue };
            let Some(text) = printed_text(&words, stdin) else { continue };
            let target = self.quietly(|walk| walk.one(word));
            if let (path, Certainty::Exact) = self.place(&target) {
                let written = self.files.written.entry(lexical(&path)).or_default();
                if !keeps {
                    written.clear();
                }
                if written.len() + text.len() <= WRITTEN_MAX_BYTES {
                    written.push_str(&text);
                }
            }
        }
    }

    /// What the line gives a new name and then destroys by it: the same targets by the old one.
    pub(super) fn add_renamed(&mut self) {
        for (renamed, NewName { from, to, is_link }) in std::mem::take(&mut self.files.names) {
            let (plain, name) = (lexical(&to), from.trim_end_matches('/').rsplit('/').next());
            let inside = format!("{plain}/{}", name.unwrap_or_default());
            for simple in self.found.iter_mut().skip(renamed) {
                let renamed = simple.targets.iter().filter_map(|target| {
                    let path = lexical(&target.path);
                    let old = old_name(&path, (&plain, &inside), &from)?;
                    let is_below = lexical(&old) != lexical(&from);
                    let is_lost = match target.action {
                        TargetAction::Overwrite | TargetAction::Modify => true,
                        TargetAction::Delete => !is_link || is_below,
                        _ => false,
                    };
                    is_lost.then(|| Target { path: old, ..target.clone() })
                });
                let renamed: Vec<Target> = renamed.collect();
                simple.targets.extend(renamed);
            }
        }
    }

    /// Finds something out without judging it: that is done elsewhere.
    pub(super) fn quietly<T>(&mut self, ask: impl FnOnce(&mut Self) -> T) -> T {
        let found = self.found.len();
        let answer = ask(self);
        self.found.truncate(found);
        answer
    }
}

/// Where something was before it was renamed `to` another name, or put into a directory of that name.
fn old_name(path: &str, (to, inside): (&str, &str), from: &str) -> Option<String> {
    let below = |top: &str| {
        let rest = path.strip_prefix(top)?;
        (rest.is_empty() || rest.starts_with('/')).then(|| format!("{from}{rest}"))
    };
    let is_around = to.strip_prefix(path).is_some_and(|rest| rest.starts_with('/'));
    below(inside).or_else(|| below(to)).or_else(|| is_around.then(|| from.to_owned()))
}

/// Whether `ln` makes a symlink.
fn is_symbolic(args: &[&str]) -> bool {
    args.iter().any(|arg| {
        let is_short = arg.starts_with('-') && !arg.starts_with("--") && arg.contains('s');
        is_short || *arg == "--symbolic"
    })
}

/// What `cat`, `echo` and `printf` print of known words.
fn printed_text(words: &[&str], stdin: &CommandInput) -> Option<String> {
    match (words, stdin) {
        (["cat"] | ["cat", "-"], CommandInput::Text(text)) => Some(text.clone()),
        (["echo", flags @ ("-e" | "-n" | "-ne" | "-en"), rest @ ..], _) => {
            let text = rest.join(" ");
            Some(if flags.contains('e') { unescape(&text) } else { text } + "\n")
        }
        (["echo", rest @ ..], _) => Some(rest.join(" ") + "\n"),
        (["printf", "%s" | "%s\\n", rest @ ..], _) => Some(rest.join("\n") + "\n"),
        (["printf", text], _) => Some(unescape(text)),
        _ => None,
    }
}

/// The line feeds and tabs of a text in which they are written with backslashes.
fn unescape(text: &str) -> String {
    text.replace("\\n", "\n").replace("\\t", "\t")
}
