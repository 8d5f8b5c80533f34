//! The arguments of a tool call, as far as any dialect asks about them.
//!
//! Which tool they belong to may stand after them in the payload, so what can matter for any tool
//! is kept, and what cannot (the content of a file to write) is skipped without being copied.
//! Arguments given twice are all kept: which of them the agent obeys, we cannot know.

use std::fmt;
use std::path::PathBuf;

use serde::de::{IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::patch;
use super::wire::Text;
use crate::model::{Intent, Language};

/// The last word of an argument's name that says its value is a path.
const PATH_WORDS: &[&str] = &[
    "path", "paths", "pathname", "file", "files", "filename", "filepath", "filepaths", "uri",
    "uris", "source", "sources", "destination", "src", "dst", "dest", "target", "targets", "dir",
    "directory", "directories", "folder", "folders",
];

/// Other arguments that some dialect asks for: command lines, their words, program texts, patches, working
/// directories, and the lists that paths may be hidden in.
const ASKED: &[&str] = &[
    "command", "commands", "cmd", "command_line", "CommandLine", "script", "code", "patch",
    "patchText", "input", "workdir", "cwd", "Cwd", "edits", "operations", "replacements",
    "changes", "items", "mode", "args", "arguments", "argv",
];

/// Where a tool says a command line should run.
const WORKDIRS: &[&str] =
    &["workdir", "cwd", "Cwd", "working_directory", "working_dir", "dir_path", "directory"];

/// Deep enough for any list of edits; deeper is not understood rather than a full stack.
const DEPTH_MAX: usize = 8;

/// The arguments of one call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Input {
    /// The whole, where it is one text instead of named arguments: a patch.
    whole: Option<String>,
    /// Every argument asked about, in order, from all depths.
    found: Vec<(String, ArgumentValue)>,
    /// Whether an argument says that something goes on in the background.
    in_background: bool,
}

/// What an argument says.
#[derive(Clone, Debug, PartialEq, Eq)]
enum ArgumentValue {
    /// A text, alone or in a list.
    Text(String),
    /// An object. Its own arguments follow.
    Nested,
    /// Nothing we understand.
    Odd,
}

impl Input {
    /// Arguments with one text and nothing else.
    pub(super) fn with(key: &str, value: Text) -> Self {
        let value = match value {
            Text::Is(text) => ArgumentValue::Text(text),
            Text::Absent | Text::Scalar(_) | Text::Odd => ArgumentValue::Odd,
        };
        Self { found: vec![(key.to_owned(), value)], ..Self::default() }
    }

    /// Replacing the files under these names.
    pub(super) fn write(&self, keys: &[&str]) -> Intent {
        self.paths(keys).map_or(Intent::Unknown, Intent::Write)
    }

    /// Changing, moving or deleting the files under these names.
    pub(super) fn edit(&self, keys: &[&str]) -> Intent {
        self.paths(keys).map_or(Intent::Unknown, Intent::Edit)
    }

    /// Running the command lines under these names.
    pub(super) fn run(&self, keys: &[&str], language: Language) -> Intent {
        match self.texts(keys) {
            Some(lines) => Intent::Run { command: lines.join("\n"), language },
            None => Intent::Unknown,
        }
    }

    /// Applying the patch under these names, or the one that is the whole input.
    pub(super) fn patch(&self, keys: &[&str]) -> Intent {
        let texts = match &self.whole {
            Some(text) => Some(vec![text.as_str()]),
            None => self.texts(keys),
        };
        let paths = texts.and_then(|texts| patch::paths(&texts.join("\n")));
        paths.map_or(Intent::Unknown, Intent::Edit)
    }

    /// Whether an argument asks for something to go on in the background, or a result names what does.
    pub(super) fn in_background(&self) -> bool {
        self.in_background
    }

    /// Whether there is any argument of that name.
    pub(super) fn has(&self, key: &str) -> bool {
        self.found.iter().any(|(name, _)| name == key)
    }

    /// The one text under a name.
    pub(super) fn text(&self, key: &str) -> Option<&str> {
        self.texts(&[key]).filter(|texts| texts.len() == 1).map(|texts| texts[0])
    }

    /// The directories this call says it works in.
    pub(super) fn workdirs(&self) -> Vec<PathBuf> {
        let wanted = self.found.iter().filter(|(key, _)| WORKDIRS.contains(&key.as_str()));
        wanted.filter_map(|(_, value)| path(value)).collect()
    }

    /// The paths under these names. None if there are none, or any of them is no path.
    fn paths(&self, keys: &[&str]) -> Option<Vec<PathBuf>> {
        let wanted = self.found.iter().filter(|(key, _)| keys.contains(&key.as_str()));
        let paths = wanted.map(|(_, value)| path(value)).collect::<Option<Vec<_>>>()?;
        Some(paths).filter(|paths| !paths.is_empty())
    }

    /// Every path under any name that says it is one. None if any of them is no path.
    pub(super) fn named_paths(&self) -> Option<Vec<PathBuf>> {
        let named = self.found.iter().filter(|(key, _)| names_a_path(key));
        named
            .filter(|(_, value)| *value != ArgumentValue::Nested)
            .map(|(_, value)| path(value))
            .collect()
    }

    /// The texts under these names. None if there are none, or any of them is no text.
    pub(super) fn texts(&self, keys: &[&str]) -> Option<Vec<&str>> {
        let wanted = self.found.iter().filter(|(key, _)| keys.contains(&key.as_str()));
        let texts = wanted.map(|(_, value)| match value {
            ArgumentValue::Text(text) => Some(text.as_str()),
            ArgumentValue::Nested | ArgumentValue::Odd => None,
        });
        texts.collect::<Option<Vec<_>>>().filter(|texts| !texts.is_empty())
    }

    /// Undoes texts that are JSON strings once more, as Antigravity sends them.
    pub(super) fn decoded(mut self) -> Self {
        for (_, value) in &mut self.found {
            if let ArgumentValue::Text(text) = value
                && text.starts_with('"')
                && let Ok(inner) = serde_json::from_str(text)
            {
                *text = inner;
            }
        }
        self
    }

    /// Keeps what one argument says.
    fn keep(&mut self, key: &str, raw: &str, depth: usize) {
        let value = match raw.as_bytes().first() {
            Some(b'n') => return,
            Some(b'{') if depth < DEPTH_MAX => return self.keep_object(key, raw, depth),
            Some(b'[') if depth < DEPTH_MAX => return self.keep_list(key, raw, depth),
            _ => match Text::from_raw(raw) {
                Text::Is(text) => ArgumentValue::Text(text),
                Text::Absent | Text::Scalar(_) | Text::Odd => ArgumentValue::Odd,
            },
        };
        self.found.push((key.to_owned(), value));
    }

    /// Keeps the arguments inside an argument.
    fn keep_object(&mut self, key: &str, raw: &str, depth: usize) {
        self.found.push((key.to_owned(), ArgumentValue::Nested));
        let inner = serde_json::Deserializer::from_str(raw).deserialize_any(Take(depth + 1));
        match inner {
            Ok(input) => {
                self.in_background |= input.in_background;
                self.found.extend(input.found);
            }
            Err(_) => self.found.push((key.to_owned(), ArgumentValue::Odd)),
        }
    }

    /// Keeps every element of a list under the list's own name.
    fn keep_list(&mut self, key: &str, raw: &str, depth: usize) {
        match serde_json::from_str::<Vec<&RawValue>>(raw) {
            Ok(items) => items.iter().for_each(|item| self.keep(key, item.get(), depth + 1)),
            Err(_) => self.found.push((key.to_owned(), ArgumentValue::Odd)),
        }
    }
}

/// A path that can exist. A URI counts if it names a file.
fn path(value: &ArgumentValue) -> Option<PathBuf> {
    match value {
        ArgumentValue::Text(text) if text.is_empty() || text.contains('\0') => None,
        ArgumentValue::Text(text) => match text.strip_prefix("file://") {
            Some(uri) => unescaped(uri),
            None => Some(PathBuf::from(text)),
        },
        ArgumentValue::Nested | ArgumentValue::Odd => None,
    }
}

/// The path of a file URI, after its scheme.
fn unescaped(uri: &str) -> Option<PathBuf> {
    let uri = uri.strip_prefix("localhost").unwrap_or(uri);
    let mut bytes = Vec::with_capacity(uri.len());
    let mut rest = uri.as_bytes();
    while let Some((&byte, tail)) = rest.split_first() {
        let hex = tail.get(..2).and_then(|hex| std::str::from_utf8(hex).ok());
        match hex.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(code) if byte == b'%' => {
                bytes.push(code);
                rest = &tail[2..];
            }
            _ => {
                bytes.push(byte);
                rest = tail;
            }
        }
    }
    let path = String::from_utf8(bytes).ok()?;
    Some(path).filter(|path| path.starts_with('/') && !path.contains('\0')).map(PathBuf::from)
}

/// Whether an argument's name says that its value is a path.
fn names_a_path(key: &str) -> bool {
    words(key).last().is_some_and(|word| PATH_WORDS.contains(&word.as_str()))
}

/// Whether an argument's name says that something goes on in the background: `run_in_background`, `is_background`
/// or `background`, and in Claude Code's results `backgroundTaskId`.
fn names_background(key: &str) -> bool {
    key.ends_with("background") || key.starts_with("background")
}

/// The words of a name, lowercase: `filePath`, `file_path` and `file-path` have the same.
pub(super) fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut after_lower = false;
    for char in name.chars() {
        if !char.is_alphanumeric() || (char.is_uppercase() && after_lower) {
            words.push(String::new());
        }
        if char.is_alphanumeric() {
            words.last_mut().expect("there is one from the start").extend(char.to_lowercase());
        }
        after_lower = char.is_lowercase();
    }
    words.retain(|word| !word.is_empty());
    words
}

impl<'de> Deserialize<'de> for Input {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Take(0))
    }
}

/// Takes arguments out of any JSON value, at this depth.
struct Take(usize);

impl<'de> Visitor<'de> for Take {
    type Value = Input;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the arguments of a tool call")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Input, A::Error> {
        let mut input = Input::default();
        while let Some(key) = map.next_key::<String>()? {
            if ASKED.contains(&key.as_str()) || names_a_path(&key) {
                input.keep(&key, map.next_value::<&RawValue>()?.get(), self.0);
            } else if names_background(&key) {
                let raw = map.next_value::<&RawValue>()?.get();
                input.in_background |= !matches!(raw, "false" | "null" | "\"\"");
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(input)
    }

    fn visit_str<E>(self, text: &str) -> Result<Input, E> {
        // Arguments may come as JSON in a string: older Copilot CLIs, Cursor's MCP calls.
        if text.trim_start().starts_with('{') && self.0 == 0 {
            let inner = serde_json::Deserializer::from_str(text).deserialize_any(Take(1));
            if let Ok(input) = inner {
                return Ok(input);
            }
        }
        Ok(Input { whole: Some(text.to_owned()), ..Input::default() })
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Input, A::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Input::default())
    }

    fn visit_bool<E>(self, _: bool) -> Result<Input, E> {
        Ok(Input::default())
    }

    fn visit_i64<E>(self, _: i64) -> Result<Input, E> {
        Ok(Input::default())
    }

    fn visit_u64<E>(self, _: u64) -> Result<Input, E> {
        Ok(Input::default())
    }

    fn visit_f64<E>(self, _: f64) -> Result<Input, E> {
        Ok(Input::default())
    }

    fn visit_unit<E>(self) -> Result<Input, E> {
        Ok(Input::default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn input(json: &str) -> Input {
        serde_json::from_str(json).unwrap()
    }

    fn edit(json: &str) -> Intent {
        input(json).edit(&["file_path", "path", "files"])
    }

    #[test]
    fn paths_are_taken_only_if_all_are_understood() {
        let one = Intent::Edit(vec!["a".into()]);
        assert_eq!(edit(r#"{"file_path":"a","content":"b"}"#), one);
        assert_eq!(edit(r#"{"files":["a"]}"#), one);
        for odd in [
            r"{}",
            r#"{"file_path":""}"#,
            r#"{"file_path":5}"#,
            r#"{"file_path":"a\u0000b"}"#,
            r#"{"file_path":{"path":"a"}}"#,
            r#"{"files":["a",5]}"#,
            r#"{"file_path":"\ud800"}"#,
            "5",
            "[]",
            "null",
            r#""a""#,
        ] {
            assert_eq!(edit(odd), Intent::Unknown, "{odd}");
        }
    }

    #[test]
    fn an_argument_given_twice_counts_twice() {
        let both = Intent::Edit(vec!["a".into(), "b".into()]);
        assert_eq!(edit(r#"{"file_path":"a","file_path":"b"}"#), both);
    }

    #[test]
    fn a_command_beside_an_object_is_not_the_whole_truth() {
        let run = |json| input(json).run(&["commands"], Language::Shell);
        assert_eq!(run(r#"{"commands":["ls",{"command":"rm","args":["x"]}]}"#), Intent::Unknown);
        let command = "a\nb".to_owned();
        assert_eq!(
            run(r#"{"commands":["a","b"]}"#),
            Intent::Run { command, language: Language::Shell }
        );
    }

    #[test]
    fn nesting_ends_somewhere() {
        let deep = r#"{"path":"#.repeat(100) + "5" + &"}".repeat(100);
        assert_eq!(edit(&deep), Intent::Unknown);
    }

    #[test]
    fn a_file_uri_is_a_path_and_another_is_not() {
        let path = |text: &str| path(&ArgumentValue::Text(text.to_owned()));
        assert_eq!(path("file:///a%20b"), Some("/a b".into()));
        assert_eq!(path("file://localhost/a%"), Some("/a%".into()));
        assert_eq!(path("file://elsewhere/a"), None);
    }

    #[test]
    fn names_fall_into_words() {
        assert_eq!(words("notebookPath"), ["notebook", "path"]);
        assert_eq!(words("TargetFile"), ["target", "file"]);
        assert_eq!(words("mcp__fs__write-file"), ["mcp", "fs", "write", "file"]);
        assert!(names_a_path("relative_path") && !names_a_path("profile"));
    }
}
