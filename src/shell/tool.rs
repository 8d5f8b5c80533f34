//! The effect of an unknown tool: one of an MCP server or of the agent's next version, a known one with
//! arguments that its row does not understand, or an event without a known meaning. Its name proves
//! nothing, so it may change anything in the root. Every text in its arguments counts as a path that it
//! names, and one that looks like a command line is judged as one too.

use std::path::Path;

use super::{ShellContext, classify, run_effect, table};
use crate::model::{
    Certainty, Effect, Finding, Language, Level, Simple, Spares, Target, TargetAction, UnknownTool,
};

/// More paths than a call names. Each costs a `stat`.
const TARGETS_MAX: usize = 1_000;
/// More command lines than a call runs. Judging each takes up to 50 ms.
const LINES_MAX: usize = 16;
/// No path is longer.
const PATH_MAX_BYTES: usize = 4096;
/// Of the tool and its arguments, as messages show them.
const SHOWN_CHARS: usize = 120;

/// Words in a tool's name that say that it removes files. Each list only chooses between the ways in which
/// a named file counts; none makes a call harmless.
const DELETES: &[&str] = &[
    "delete", "remove", "rm", "rmdir", "unlink", "trash", "purge", "wipe", "destroy", "drop",
    "clean", "clear", "erase", "prune", "reset",
];

/// Words that say that it may change files.
const CHANGES: &[&str] = &[
    "append", "apply", "copy", "create", "edit", "exec", "execute", "format", "insert", "kill",
    "mkdir", "modify", "move", "overwrite", "patch", "put", "refactor", "rename", "replace",
    "restore", "run", "save", "script", "set", "shell", "sync", "terminal", "touch", "truncate",
    "undo", "update", "upload", "write",
];

/// Words that say that it only reads. The files that it names are held as usual, but if one cannot be
/// held, the hook does not ask about it.
const LOOKS: &[&str] = &[
    "check", "count", "describe", "diff", "fetch", "find", "get", "glob", "grep", "info",
    "inspect", "list", "log", "lookup", "query", "read", "search", "show", "stat", "status",
    "tree", "view",
];

/// The effect of a call of `tool`.
pub(super) fn effect(tool: &UnknownTool, scope: &ShellContext) -> Effect {
    let mut finding = Finding { level: Level::Unknown, ..Finding::default() };
    finding.commands.push(Simple {
        text: tool.summary().chars().take(SHOWN_CHARS).collect(),
        level: Level::Unknown,
        reason: "is a tool that beforehand does not know".to_owned(),
        targets: targets(tool, scope.home.as_deref()),
    });
    for line in tool.texts.iter().filter(|text| is_line(text)).take(LINES_MAX) {
        let judged = classify(line, Language::Shell, scope);
        finding.changes_shell |= judged.changes_shell;
        finding.in_background |= judged.in_background;
        let changing = judged.commands.into_iter().filter(|simple| simple.level > Level::ReadOnly);
        finding.commands.extend(changing);
    }
    run_effect(finding)
}

/// The paths that the arguments may name.
fn targets(tool: &UnknownTool, home: Option<&str>) -> Vec<Target> {
    let words = words(&tool.name);
    let (action, spares) = if has_any(&words, DELETES) {
        (TargetAction::Delete, Spares::Nothing)
    } else if has_any(&words, LOOKS) && !has_any(&words, CHANGES) {
        (TargetAction::Create, Spares::Directories)
    } else {
        (TargetAction::Overwrite, Spares::Directories)
    };
    let mut paths: Vec<&String> = tool.texts.iter().filter(|text| may_be_path(text)).collect();
    // If there are too many, those with a slash come first.
    paths.sort_by_key(|text| !text.contains('/'));
    let mut targets = Vec::new();
    for text in paths.into_iter().take(TARGETS_MAX) {
        targets.push(Target {
            path: at_home(text, home).unwrap_or_else(|| text.clone()),
            certainty: Certainty::Exact,
            action,
            spares: spares.clone(),
            reason: "is named by a tool that may change it".to_owned(),
        });
    }
    targets
}

fn has_any(words: &[String], list: &[&str]) -> bool {
    words.iter().any(|word| list.contains(&word.as_str()))
}

fn may_be_path(text: &str) -> bool {
    text.len() <= PATH_MAX_BYTES && !text.contains(['\n', '\0'])
}

/// The path that `~` or `~/…` stands for.
fn at_home(text: &str, home: Option<&str>) -> Option<String> {
    let below = text.strip_prefix('~')?;
    let home = home.filter(|_| below.is_empty() || below.starts_with('/'))?;
    Some(format!("{home}{below}"))
}

/// Whether a text looks like a command line: the first word is a known program, and more follows.
fn is_line(text: &str) -> bool {
    let mut words = text.split_whitespace().skip_while(|word| word.contains('='));
    let Some(first) = words.next() else { return false };
    let name = Path::new(first.trim_start_matches(['(', '{', '!'])).file_name();
    let is_program = name.and_then(|name| name.to_str()).is_some_and(|name| {
        table::find(name).is_some() || matches!(name, "cd" | "for" | "if" | "while" | "sudo")
    });
    is_program && (words.next().is_some() || text.contains([';', '|', '&', '>']))
}

/// The words of a name in lowercase: `filePath`, `file_path` and `file-path` have the same words.
fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut is_after_lower = false;
    for char in name.chars() {
        if !char.is_alphanumeric() || (char.is_uppercase() && is_after_lower) {
            words.push(String::new());
        }
        if char.is_alphanumeric() {
            words.last_mut().expect("there is one from the start").extend(char.to_lowercase());
        }
        is_after_lower = char.is_lowercase();
    }
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(name: &str, texts: &[&str]) -> (Effect, Vec<Target>) {
        let texts = texts.iter().map(|text| (*text).to_owned()).collect();
        let scope = ShellContext { home: Some("/home/u".to_owned()), ..ShellContext::default() };
        let effect = effect(&UnknownTool { name: name.to_owned(), texts }, &scope);
        let targets = match &effect {
            Effect::Destroys(finding) | Effect::Unknown(finding) => {
                finding.targets().cloned().collect()
            }
            Effect::None | Effect::Touches(_) => panic!("{name} is taken for harmless"),
        };
        (effect, targets)
    }

    #[test]
    fn what_a_tool_names_is_a_target_as_its_name_says() {
        for (name, action, spares) in [
            ("fs-delete_file", TargetAction::Delete, Spares::Nothing),
            ("mcp__fs__read_file", TargetAction::Create, Spares::Directories),
            ("read_and_write", TargetAction::Overwrite, Spares::Directories),
            ("REPL", TargetAction::Overwrite, Spares::Directories),
        ] {
            let (_, targets) = judged(name, &["path", "~/a b", "../x"]);
            let paths: Vec<&str> = targets.iter().map(|target| &*target.path).collect();
            assert_eq!(paths, ["/home/u/a b", "../x", "path"], "{name}");
            assert!(targets.iter().all(|it| it.action == action && it.spares == spares), "{name}");
        }
    }

    #[test]
    fn a_command_line_among_the_arguments_is_judged() {
        let (effect, targets) = judged("exec_command", &["input", "cd docs && rm -rf build"]);
        assert!(matches!(effect, Effect::Destroys(_)), "{effect:?}");
        assert!(
            targets.iter().any(|it| it.path == "docs/build" && it.action == TargetAction::Delete)
        );
        let (effect, _) = judged("note", &["remember to rm -rf build later", "ls"]);
        assert!(matches!(effect, Effect::Unknown(_)), "{effect:?}");
    }

    #[test]
    fn names_fall_into_words() {
        assert_eq!(words("notebookPath"), ["notebook", "path"]);
        assert_eq!(words("TargetFile"), ["target", "file"]);
        assert_eq!(words("mcp__fs__write-file"), ["mcp", "fs", "write", "file"]);
    }

    #[test]
    fn a_flood_of_arguments_is_bounded() {
        let texts: Vec<String> = (0..10_000).map(|n| format!("rm -rf /a/{n}")).collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        assert!(judged("x", &texts).1.len() <= TARGETS_MAX + LINES_MAX);
    }
}
