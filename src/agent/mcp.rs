//! Tools of MCP servers, of which we know nothing but their names and the names of their
//! arguments.
//!
//! A name proves nothing about what a tool leaves alone, so none of them is ever taken for
//! read-only. One that says it changes something, and names what, is taken at its word: that way
//! even an ignored file is held.

use super::input::{Input, words};
use crate::model::{Intent, Language};

/// Words in a tool's name that say it changes what it names.
const CHANGES: &[&str] = &[
    "append", "copy", "create", "delete", "edit", "insert", "mkdir", "modify", "move", "overwrite",
    "put", "remove", "rename", "replace", "save", "touch", "trash", "truncate", "unlink", "update",
    "write",
];

/// Words that say it may change more than it names.
const WIDER: &[&str] = &[
    "all", "bulk", "command", "exec", "execute", "process", "project", "recursive", "refactor",
    "run", "script", "shell", "symbol", "terminal", "workspace",
];

/// Arguments that a tool may give to a shell.
const RUNS: &[&str] = &["command", "commands", "cmd", "script"];
/// What it may be run with.
const OPERANDS: &[&str] = &["args", "arguments", "argv"];

/// The command line that the arguments may be. Several texts may be one command's words, or a line each.
fn line(input: &Input) -> Option<String> {
    let lines = input.texts(RUNS)?;
    let operands = input.texts(OPERANDS).unwrap_or_default();
    if let ([line], []) = (&lines[..], &operands[..]) {
        return Some((*line).to_owned());
    }
    let words: Vec<&str> = lines.iter().chain(&operands).copied().collect();
    Some(format!("{}\n{}", shell_words::join(words), lines.join("\n")))
}

/// What an MCP tool wants. The name is without the server's.
pub(super) fn intent(tool: &str, input: &Input) -> Intent {
    let words = words(tool);
    let says = |list: &[&str]| words.iter().any(|word| list.contains(&word.as_str()));
    if let Some(line) = line(input) {
        // What the tool does besides is not known.
        let command = format!("{line}\n{}", shell_words::quote(tool));
        return Intent::Run { command, language: Language::Shell };
    }
    if !says(CHANGES) || says(WIDER) || RUNS.iter().chain(&["code"]).any(|key| input.has(key)) {
        return Intent::Unknown;
    }
    match input.named_paths() {
        Some(paths) if !paths.is_empty() => Intent::Edit(paths),
        Some(_) | None => Intent::Unknown,
    }
}

/// The tool's own name in `mcp__server__tool`, if it is one.
pub(super) fn tool_of(name: &str) -> Option<&str> {
    let rest = name.strip_prefix("mcp__")?;
    Some(rest.split_once("__").map_or(rest, |(_, tool)| tool))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_that_says_it_changes_something_is_taken_at_its_word() {
        let cases = [
            ("write_file", r#"{"path":"a","content":"b"}"#, Some(vec!["a"])),
            ("move_file", r#"{"source":"a","destination":"b"}"#, Some(vec!["a", "b"])),
            ("deleteFiles", r#"{"paths":["a","b"]}"#, Some(vec!["a", "b"])),
            ("edit", r#"{"edits":[{"uri":"file:///a","newText":""}]}"#, Some(vec!["/a"])),
            ("read_file", r#"{"path":"a"}"#, None),
            ("write_note", r#"{"text":"a"}"#, None),
            ("write_file", r#"{"path":5}"#, None),
            ("create_and_run", r#"{"path":"a"}"#, None),
            ("write_file", r#"{"path":"a","command":5}"#, None),
            ("rename_symbol", r#"{"relative_path":"a"}"#, None),
        ];
        for (tool, json, paths) in cases {
            let expected = paths.map_or(Intent::Unknown, |paths| {
                Intent::Edit(paths.into_iter().map(Into::into).collect())
            });
            let input = serde_json::from_str(json).unwrap();
            assert_eq!(intent(tool, &input), expected, "{tool} {json}");
        }
    }

    #[test]
    fn what_a_tool_may_run_is_read_and_proves_nothing() {
        for (json, line) in [
            (r#"{"command":"cd ../a && rm b"}"#, "cd ../a && rm b\nexec"),
            (r#"{"cmd":["rm","-rf","a b"]}"#, "rm -rf 'a b'\nrm\n-rf\na b\nexec"),
            (r#"{"command":"rm","args":["a"]}"#, "rm a\nrm\nexec"),
        ] {
            let command = line.to_owned();
            let input = serde_json::from_str(json).unwrap();
            assert_eq!(intent("exec", &input), Intent::Run { command, language: Language::Shell });
        }
    }

    #[test]
    fn the_server_is_not_part_of_the_name() {
        assert_eq!(tool_of("mcp__write_server__get__it"), Some("get__it"));
        assert_eq!(tool_of("Write"), None);
    }
}
