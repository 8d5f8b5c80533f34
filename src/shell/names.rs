//! Names with a meaning of their own: variables that run programs, files that swallow what is
//! written, and which variables a script sets.

use super::flags::Field;
use super::syntax::{Command, CommandItem, ShellNode};
use crate::model::Certainty;

/// The shells whose scripts we read.
pub(super) const SHELLS: &[&str] = &["sh", "bash", "dash", "zsh", "ksh", "ash", "rbash"];

/// What bash has built in, by its own list (`compgen -b`), and other names of the same.
pub(super) const BUILTINS: &[&str] = &[
    ".", ":", "[", "alias", "bg", "bind", "break", "builtin", "caller", "cd", "chdir", "command",
    "compgen", "complete", "compopt", "continue", "coproc", "declare", "dirs", "disown", "echo",
    "enable", "eval", "exec", "exit", "export", "false", "fc", "fg", "getopts", "hash", "help",
    "history", "jobs", "kill", "let", "local", "logout", "mapfile", "popd", "printf", "pushd",
    "pwd", "read", "readarray", "readonly", "return", "set", "shift", "shopt", "source", "suspend",
    "test", "times", "trap", "true", "type", "typeset", "ulimit", "umask", "unalias", "unset",
    "wait",
];

/// Variables that no program takes for a path, a command or code. Names of one or two characters
/// are harmless as well: no shell has such a variable, and of programs only compilers, which are
/// never only readers.
const HARMLESS: &[&str] = &[
    "LANG",
    "LANGUAGE",
    "COLUMNS",
    "LINES",
    "REPLY",
    "NO_COLOR",
    "CLICOLOR",
    "CLICOLOR_FORCE",
    "FORCE_COLOR",
    "CI",
    "GIT_OPTIONAL_LOCKS",
    "GIT_TERMINAL_PROMPT",
    "GIT_LITERAL_PATHSPECS",
    "CARGO_TERM_COLOR",
    "HOMEBREW_NO_AUTO_UPDATE",
    "DEBIAN_FRONTEND",
    "FOO",
    "BAR",
    "VAR",
    "BASE",
    "HEAD",
    "BRANCH",
    "COMMIT",
    "SHA",
    "FILE",
    "FILES",
    "DIR",
    "NAME",
    "LINE",
    "COUNT",
    "TOTAL",
    "OUT",
    "URL",
    "MSG",
    "VERSION",
    "START",
    "END",
    "TOKEN",
    "PATTERN",
    "PID",
    "RESULT",
    "OUTPUT",
    "SRC",
    "DST",
    "TAG",
    "REPO",
    "ROOT",
    "TARGET",
    "STATUS",
    "NUM",
    "KEY",
    "VALUE",
    "TEXT",
    "BODY",
    "PORT",
];

/// Words of which people make names of their own; no shell has such a variable.
const OWN: &[&str] = &[
    "app", "arg", "args", "arr", "author", "bar", "base", "body", "branch", "branches", "bytes",
    "changed", "char", "cmd", "code", "commit", "commits", "content", "count", "cur", "current",
    "date", "desc", "diff", "dir", "dirs", "dst", "email", "end", "entry", "err", "exit",
    "expected", "ext", "failed", "field", "file", "files", "first", "foo", "found", "full",
    "group", "hash", "head", "header", "host", "idx", "image", "index", "info", "input", "issue",
    "item", "items", "job", "json", "key", "keys", "label", "last", "len", "level", "limit",
    "line", "lines", "list", "local", "log", "main", "max", "message", "min", "mode", "msg",
    "name", "names", "new", "next", "num", "number", "offset", "old", "orig", "out", "output",
    "owner", "package", "page", "part", "pat", "pattern", "pid", "pids", "pkg", "pod", "port",
    "prev", "project", "query", "range", "raw", "ref", "release", "remote", "repo", "res", "resp",
    "response", "rest", "result", "results", "ret", "rev", "root", "row", "service", "sha",
    "short", "size", "sizes", "source", "src", "start", "state", "step", "str", "sum", "svc",
    "tag", "tags", "target", "temp", "test", "text", "time", "title", "tmp", "today", "todo",
    "token", "total", "txt", "type", "uid", "url", "urls", "user", "val", "value", "values", "var",
    "vars", "ver", "version", "width", "word", "words",
];

/// Whether setting this variable changes what no program does.
pub(super) fn is_harmless(name: &str, value: &Field) -> bool {
    let is_pager = ["PAGER", "GIT_PAGER", "MANPAGER"].contains(&name)
        && value.literal().is_some_and(|value| ["", "cat"].contains(&value));
    // Another terminal's description may name a program to begin with.
    let is_terminal = name == "TERM" && names_terminal(value);
    let is_short = name.len() <= 2 && name.bytes().all(|byte| byte.is_ascii_alphanumeric());
    is_pager
        || is_terminal
        || is_short
        || name.starts_with("LC_")
        || HARMLESS.contains(&name)
        || OWN.contains(&name)
        || is_of_own_words(name)
}

/// Whether a name is put together of such words, as `base_sha` or `FILE_COUNT`: what a program obeys
/// has the program's name in it.
fn is_of_own_words(name: &str) -> bool {
    let is_own = |word: &str| OWN.contains(&word.to_ascii_lowercase().as_str());
    name.contains('_') && name.split('_').all(is_own)
}

fn names_terminal(value: &Field) -> bool {
    value.literal().is_some_and(|it| ["dumb", "xterm", "xterm-256color"].contains(&it))
}

/// Whether writing to this loses nothing.
pub(super) fn is_sink(field: &Field) -> bool {
    let Some(path) = field.literal() else { return false };
    let is_stream = ["/dev/fd/", "/dev/tcp/", "/dev/udp/"]
        .iter()
        .any(|begin| path.starts_with(begin) && !path.contains(".."));
    let sinks = ["/dev/null", "/dev/stdout", "/dev/stderr", "/dev/tty", "/dev/zero", "/dev/full"];
    is_stream || sinks.contains(&path)
}

/// Whether a value is a file that an option may write: anything but a sink or `-`.
pub(super) fn is_file(field: &Field) -> bool {
    !(is_sink(field) || field.literal() == Some("-"))
}

/// Whether a command of a pipeline prints some of what it reads, line by line and as it is; `xargs` is the one that
/// takes it.
pub(super) fn selects(node: &ShellNode) -> bool {
    let ShellNode::Command(command) = node else { return false };
    match command.items.first() {
        Some(CommandItem::Word(word)) => {
            ["head", "tail", "sort", "uniq", "xargs"].contains(&word.as_str())
        }
        Some(CommandItem::Assign(..) | CommandItem::Process(_)) | None => false,
    }
}

/// The variables some nodes set, as far as their text shows.
pub(super) fn assigned(nodes: &[ShellNode], found: &mut Vec<String>) {
    for node in nodes {
        match node {
            ShellNode::Command(command) => of_command(command, found),
            ShellNode::Pipeline(nodes) => assigned(nodes, found),
            ShellNode::Chain(links) => {
                for (_, node) in links {
                    assigned(std::slice::from_ref(node), found);
                }
            }
            ShellNode::Block(block) => {
                found.extend(block.binds.iter().map(|(name, _)| name.clone()));
                for text in &block.arithmetic {
                    found.extend(identifiers(text));
                }
                assigned(&block.body, found);
            }
            ShellNode::Function(_, body) => assigned(std::slice::from_ref(body.as_ref()), found),
        }
    }
}

fn of_command(command: &Command, found: &mut Vec<String>) {
    found.extend(command.assigns.iter().map(|assign| assign.name.clone()));
    let mut words = command.items.iter().filter_map(|item| match item {
        CommandItem::Word(word) => Some(word.as_str()),
        CommandItem::Assign(..) | CommandItem::Process(_) => None,
    });
    let sets = words.next().is_some_and(|name| {
        ["read", "mapfile", "readarray", "printf", "let", "getopts", "unset", "eval", "source", "."]
            .contains(&name)
    });
    if sets {
        found.extend(words.flat_map(identifiers));
    }
    for item in &command.items {
        if let CommandItem::Assign(assign, _) = item {
            found.push(assign.name.clone());
        }
    }
}

/// The names in a text of arithmetic, or of words that are names.
pub(super) fn identifiers(text: &str) -> impl Iterator<Item = String> + '_ {
    text.split(|char: char| !(char.is_alphanumeric() || char == '_'))
        .filter(|name| name.starts_with(|char: char| char.is_alphabetic() || char == '_'))
        .map(str::to_owned)
}

/// Whether arithmetic gives a variable a value before it asks for the one it had.
pub(super) fn is_set_first(name: &str, text: &str) -> bool {
    let is_part = |char: char| char.is_alphanumeric() || char == '_';
    let first = text.match_indices(name).find(|(at, _)| {
        let (before, after) = (&text[..*at], &text[at + name.len()..]);
        !before.ends_with(is_part) && !after.starts_with(is_part)
    });
    first.is_some_and(|(at, _)| {
        let after = text[at + name.len()..].trim_start();
        after.starts_with('=') && !after.starts_with("==")
    })
}

/// Whether a word is known and is one of these.
pub(super) fn is_one(field: &Field, names: &[&str]) -> bool {
    field.sure == Certainty::Exact && names.contains(&field.text.as_str())
}
