//! Names with a meaning of their own: variables that run programs, files that swallow what is
//! written, and which variables a script sets.

use super::flags::Field;
use super::syntax::{Command, Item, Node};
use crate::model::Certainty;

/// Variables whose value is run, loaded or obeyed by programs that only read otherwise.
const RUNS: &[&str] = &[
    "PATH",
    "ENV",
    "BASH_ENV",
    "PROMPT_COMMAND",
    "PS4",
    "SHELLOPTS",
    "BASHOPTS",
    "SHELL",
    "VISUAL",
    "BROWSER",
    "LESSOPEN",
    "LESSCLOSE",
    "LESS",
    "PYTHONPATH",
    "PYTHONSTARTUP",
    "PYTHONHOME",
    "PYTHONINSPECT",
    "PYTHONBREAKPOINT",
    "PERL5LIB",
    "PERL5OPT",
    "PERL5DB",
    "RUBYOPT",
    "RUBYLIB",
    "NODE_OPTIONS",
    "NODE_PATH",
    "RUSTC_WRAPPER",
    "RUSTC",
    "RUSTFLAGS",
    "RUSTC_WORKSPACE_WRAPPER",
    "MAKEFLAGS",
    "MAKEFILES",
    "GNUMAKEFLAGS",
    "TAR_OPTIONS",
    "RIPGREP_CONFIG_PATH",
    "JAVA_TOOL_OPTIONS",
    "_JAVA_OPTIONS",
    "JDK_JAVA_OPTIONS",
    "AWKPATH",
    "AWKLIBPATH",
    "ZDOTDIR",
    "FPATH",
    "CDPATH",
    "SSH_ASKPASS",
    "TERMINFO",
    "HGPLAIN",
    "HGRCPATH",
    "CURL_HOME",
    "WGETRC",
    "SYSTEMD_EDITOR",
    "FZF_DEFAULT_COMMAND",
    "FZF_DEFAULT_OPTS",
];

/// Beginnings and ends of such names.
const RUNS_BEGIN: &[&str] =
    &["GIT_", "LD_", "DYLD_", "BASH_FUNC_", "npm_config_", "CARGO_", "TURNBACK"];
const RUNS_END: &[&str] = &["PAGER", "EDITOR"];

/// `GIT_*` variables that run nothing and write nothing.
const GIT_PLAIN: &[&str] = &[
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_CEILING_DIRECTORIES",
    "GIT_OPTIONAL_LOCKS",
    "GIT_TERMINAL_PROMPT",
    "GIT_LITERAL_PATHSPECS",
    "GIT_CONFIG_NOSYSTEM",
    "GIT_PAGER_IN_USE",
    "CARGO_TERM_COLOR",
    "CARGO_HOME",
    "CARGO_NET_OFFLINE",
    "CARGO_TARGET_DIR",
    "CARGO_INCREMENTAL",
];
const GIT_PLAIN_BEGIN: &[&str] = &["GIT_AUTHOR_", "GIT_COMMITTER_"];

/// Values that are harmless wherever a program or a switch is expected.
const PLAIN: &[&str] = &[
    "", "cat", "less", "less -R", "less -FRX", "less -FRSX", "less -F", "more", "head", "true",
    "false", ":", "0", "1", "2", "-R", "-FRX", "-F", "-FX", "-RFX", "-r", "/bin/cat", "bat",
    "never", "always",
];

/// Why setting this variable is not harmless, if so.
pub(super) fn environment(name: &str, value: &Field) -> Option<&'static str> {
    const WHY: &str = "sets a variable that programs run or load";
    let runs = RUNS.contains(&name)
        || RUNS_BEGIN.iter().any(|begin| name.starts_with(begin))
        || RUNS_END.iter().any(|end| name.ends_with(end));
    let is_plain_git =
        GIT_PLAIN.contains(&name) || GIT_PLAIN_BEGIN.iter().any(|begin| name.starts_with(begin));
    let is_plain = value.literal().is_some_and(|value| PLAIN.contains(&value)) && name != "PATH";
    // What is found first stays first.
    let appends =
        name == "PATH" && (value.text.starts_with("$PATH:") || value.text.starts_with("${PATH}:"));
    (runs && !is_plain_git && !is_plain && !appends).then_some(WHY)
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

/// The variables some nodes set, as far as their text shows.
pub(super) fn assigned(nodes: &[Node], found: &mut Vec<String>) {
    for node in nodes {
        match node {
            Node::Command(command) => of_command(command, found),
            Node::Pipeline(nodes) => assigned(nodes, found),
            Node::Block(block) => {
                found.extend(block.binds.iter().map(|(name, _)| name.clone()));
                for text in &block.arithmetic {
                    found.extend(identifiers(text));
                }
                assigned(&block.body, found);
            }
            Node::Function(_, body) => assigned(std::slice::from_ref(body.as_ref()), found),
        }
    }
}

fn of_command(command: &Command, found: &mut Vec<String>) {
    found.extend(command.assigns.iter().map(|assign| assign.name.clone()));
    let mut words = command.items.iter().filter_map(|item| match item {
        Item::Word(word) => Some(word.as_str()),
        Item::Assign(..) | Item::Process(_) => None,
    });
    let sets = words.next().is_some_and(|name| {
        ["read", "mapfile", "readarray", "printf", "let", "getopts", "unset", "eval", "source", "."]
            .contains(&name)
    });
    if sets {
        found.extend(words.flat_map(identifiers));
    }
    for item in &command.items {
        if let Item::Assign(assign, _) = item {
            found.push(assign.name.clone());
        }
    }
}

fn identifiers(text: &str) -> impl Iterator<Item = String> + '_ {
    text.split(|char: char| !(char.is_alphanumeric() || char == '_'))
        .filter(|name| name.starts_with(|char: char| char.is_alphabetic() || char == '_'))
        .map(str::to_owned)
}

/// Whether a word is known and is one of these.
pub(super) fn is_one(field: &Field, names: &[&str]) -> bool {
    field.sure == Certainty::Exact && names.contains(&field.text.as_str())
}
