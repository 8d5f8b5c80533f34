//! The arguments of a tool call, from all depths and in order.
//!
//! An argument given twice is kept twice, because it is unknown which of them the agent obeys. A value
//! is decoded only when it is asked for, so the content of a file to write is never copied.

use std::borrow::Cow;
use std::collections::HashSet;
use std::path::PathBuf;

use serde_json::value::RawValue;

use super::json::{self, Object, Place, is_same_name};
use super::patch;
use crate::model::{Intent, Language};

/// Lists and objects nested deeper are not understood: a payload must not exhaust the stack.
const DEPTH_MAX: usize = 64;
/// More arguments than any tool takes; the rest of a longer list is not understood.
const ARGUMENTS_MAX: usize = 4096;
/// Longer than any path or command line. A longer argument of an unknown tool is the content of a file,
/// so only its beginning is searched for names.
const TEXT_MAX_BYTES: usize = 64 << 10;

/// Where a tool names the directory that a command line runs in.
const WORKDIRS: &[&str] =
    &["workdir", "cwd", "working_directory", "working_dir", "dir_path", "directory"];

/// Names under which a shell tool may be given a further command line: which of them the agent obeys is
/// not known.
const LINES: &[&str] = &["command", "commands", "cmd", "command_line", "script", "code", "input"];

/// Operands that a tool may give separately from the program it runs.
const OPERANDS: &[&str] = &["args", "arguments", "argv"];

/// The arguments of one call.
#[derive(Debug, Default)]
pub(super) struct Arguments<'p> {
    found: Vec<Argument<'p>>,
}

/// One value. The elements of a list have the name of the list, and the list itself is none.
#[derive(Debug)]
struct Argument<'p> {
    /// Empty where the whole input is one value.
    name: Cow<'p, str>,
    value: ArgumentValue<'p>,
}

#[derive(Debug)]
enum ArgumentValue<'p> {
    /// The JSON of a string, number or boolean.
    Scalar(Cow<'p, str>),
    /// An object, whose own arguments follow, or something nested too deep.
    Nested,
}

impl<'p> Arguments<'p> {
    /// Collects the arguments of a call. `inputs` are all values that the payload gives for them.
    pub(super) fn collect(inputs: &[&'p RawValue]) -> Self {
        let mut arguments = Self::default();
        for input in inputs {
            arguments.add_input(input.get());
        }
        arguments
    }

    /// Collects every field of an object but those at the places named.
    pub(super) fn of_rest(object: &Object<'p>, known: &[Place]) -> Self {
        let mut arguments = Self::default();
        for (name, value) in object.fields() {
            if !known.iter().any(|place| is_same_name(place.path, name)) {
                arguments.add(Cow::Owned(name.to_owned()), value.get(), 1);
            }
        }
        arguments
    }

    /// Adds a whole input. Older Copilot CLIs, and Cursor for MCP calls, send it as JSON in a string.
    fn add_input(&mut self, raw: &'p str) {
        let text = json::text(raw).unwrap_or_default();
        if let Some(object) = Object::parse(text.trim_start()) {
            self.found.extend(owned(&object));
            return;
        }
        match Object::parse(raw) {
            Some(object) => self.add_object(&object, 0),
            None => self.add(Cow::Borrowed(""), raw, 0),
        }
    }

    fn add_object(&mut self, object: &Object<'p>, depth: usize) {
        for (name, value) in object.fields() {
            self.add(Cow::Owned(name.to_owned()), value.get(), depth + 1);
        }
    }

    fn add(&mut self, name: Cow<'p, str>, raw: &'p str, depth: usize) {
        if raw == "null" || self.found.len() > ARGUMENTS_MAX {
            return;
        }
        if depth >= DEPTH_MAX || self.found.len() == ARGUMENTS_MAX {
            self.found.push(Argument { name, value: ArgumentValue::Nested });
            return;
        }
        if !raw.starts_with(['{', '[']) {
            self.found.push(Argument { name, value: ArgumentValue::Scalar(Cow::Borrowed(raw)) });
            return;
        }
        match Object::parse(raw) {
            Some(object) => {
                self.found.push(Argument { name, value: ArgumentValue::Nested });
                self.add_object(&object, depth);
            }
            None => {
                for element in json::elements(raw) {
                    self.add(name.clone(), element, depth + 1);
                }
            }
        }
    }

    /// The paths under these names; `None` if there are none, or one of them is no path.
    pub(super) fn paths(&self, names: &[&str]) -> Option<Vec<PathBuf>> {
        self.texts(names)?.iter().map(|text| json::path_of(text)).collect()
    }

    /// The intent of running the command lines under these names. Several texts under `commands` are a
    /// line each. Under another name they may be that, or the words of one command: both are judged.
    pub(super) fn run(&self, names: &[&str], language: Language) -> Option<Intent> {
        self.texts(names)?;
        // Variables may make any program run another.
        if self.named(&["env"]).next().is_some() {
            return None;
        }
        let lines = self.texts(&[names, LINES].concat())?;
        let operands: Vec<String> = self.texts(OPERANDS).unwrap_or_default();
        let command = match (lines.len(), operands.is_empty()) {
            (1, true) => lines.into_iter().next().unwrap_or_default(),
            (_, true) if is_same_name(names[0], "commands") => lines.join("\n"),
            _ => {
                let words: Vec<String> = [lines.clone(), operands].concat();
                // One command, a line each, or put together without quotes.
                [shell_words::join(&words), lines.join("\n"), words.join(" ")].join("\n")
            }
        };
        Some(Intent::Run { command, language })
    }

    /// The intent of applying the patches under these names, or the one that is the whole input.
    pub(super) fn patch(&self, names: &[&str]) -> Option<Intent> {
        let texts = self.texts(&[""]).or_else(|| self.texts(names))?;
        patch::paths(&texts.join("\n")).map(Intent::Edit)
    }

    /// The texts under these names; `None` if there are none, or one of them is no text.
    fn texts(&self, names: &[&str]) -> Option<Vec<String>> {
        let texts = self.named(names).map(Argument::text);
        let mut texts: Vec<String> = texts.collect::<Option<Vec<_>>>()?;
        // A field in two spellings has its value twice.
        texts.dedup();
        (!texts.is_empty()).then_some(texts)
    }

    fn named(&self, names: &[&str]) -> impl Iterator<Item = &Argument<'p>> {
        self.found
            .iter()
            .filter(move |argument| names.iter().any(|name| is_same_name(name, &argument.name)))
    }

    /// The directories that a command line is to run in.
    pub(super) fn workdirs(&self) -> Vec<PathBuf> {
        let texts = self.named(WORKDIRS).filter_map(Argument::text);
        texts.filter_map(|text| json::path_of(&text)).collect()
    }

    /// Whether the call started something in the background: an argument asks for it
    /// (`run_in_background`, `is_background`), or Claude Code's result names it (`backgroundTaskId`).
    pub(super) fn is_in_background(&self) -> bool {
        self.found.iter().any(|Argument { name, value }| {
            let names_it = name.ends_with("background") || name.starts_with("background");
            let is_no =
                matches!(value, ArgumentValue::Scalar(raw) if matches!(&**raw, "false" | r#""""#));
            names_it && !is_no
        })
    }

    /// Every name and every text, each once, names before their values: a tool that no row knows may
    /// change any of them.
    pub(super) fn all_texts(&self) -> Vec<String> {
        let mut texts = Vec::new();
        for Argument { name, value } in &self.found {
            texts.push(name.to_string());
            if let ArgumentValue::Scalar(raw) = value {
                texts.push(beginning_of(raw));
            }
        }
        let uris = texts.iter().filter(|text| text.starts_with("file:"));
        let local: Vec<PathBuf> = uris.filter_map(|uri| json::path_of(uri)).collect();
        texts.extend(local.into_iter().filter_map(|path| path.into_os_string().into_string().ok()));
        let mut seen = HashSet::new();
        texts.retain(|text| !text.is_empty() && seen.insert(text.clone()));
        texts
    }
}

/// The arguments in an object that does not outlive the caller.
fn owned(object: &Object<'_>) -> Vec<Argument<'static>> {
    let mut arguments = Arguments::default();
    arguments.add_object(object, 1);
    arguments.found.into_iter().map(Argument::into_owned).collect()
}

/// The text of a JSON scalar, cut at [`TEXT_MAX_BYTES`]. A string that is not valid Unicode stays as it
/// is in the JSON.
fn beginning_of(raw: &str) -> String {
    if raw.len() <= TEXT_MAX_BYTES {
        return json::text(raw).unwrap_or_else(|| raw.trim_matches('"').to_owned());
    }
    let mut end = TEXT_MAX_BYTES;
    while !raw.is_char_boundary(end) {
        end -= 1;
    }
    raw[..end].trim_start_matches('"').replace("\\n", "\n").replace("\\\"", "\"")
}

impl Argument<'_> {
    /// The text of a string. Antigravity encodes its arguments as JSON a second time.
    fn text(&self) -> Option<String> {
        let ArgumentValue::Scalar(raw) = &self.value else { return None };
        let text = json::text(raw)?;
        let inner = text.starts_with('"').then(|| serde_json::from_str(&text).ok()).flatten();
        Some(inner.unwrap_or(text))
    }

    fn into_owned(self) -> Argument<'static> {
        let value = match self.value {
            ArgumentValue::Scalar(raw) => ArgumentValue::Scalar(Cow::Owned(raw.into_owned())),
            ArgumentValue::Nested => ArgumentValue::Nested,
        };
        Argument { name: Cow::Owned(self.name.into_owned()), value }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with<T>(json: &str, read: impl Fn(&Arguments<'_>) -> T) -> T {
        let raw: &RawValue = serde_json::from_str(json).unwrap();
        read(&Arguments::collect(&[raw]))
    }

    fn edited(json: &str) -> Option<Vec<PathBuf>> {
        with(json, |it| it.paths(&["file_path", "path", "files"]))
    }

    #[test]
    fn paths_are_taken_only_if_all_are_understood() {
        let one = Some(vec![PathBuf::from("a")]);
        assert_eq!(edited(r#"{"file_path":"a","content":"b"}"#), one);
        assert_eq!(edited(r#"{"FilePath":"a"}"#), one);
        assert_eq!(edited(r#"{"files":["a"]}"#), one);
        assert_eq!(edited(r#""{\"path\":\"a\"}""#), one);
        assert_eq!(edited(r#"{"path":"\"a\""}"#), one);
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
            assert_eq!(edited(odd), None, "{odd}");
        }
    }

    #[test]
    fn an_argument_given_twice_counts_twice() {
        let both = Some(vec!["a".into(), "b".into()]);
        assert_eq!(edited(r#"{"file_path":"a","filePath":"b"}"#), both);
    }

    #[test]
    fn words_of_one_command_are_a_line_and_lines_are_lines() {
        let run = |json: &str, names: &[&str]| {
            with(json, |it| match it.run(names, Language::Shell) {
                Some(Intent::Run { command, .. }) => Some(command),
                _ => None,
            })
        };
        assert_eq!(run(r#"{"commands":["a","b"]}"#, &["commands"]), Some("a\nb".to_owned()));
        assert_eq!(
            run(r#"{"command":["rm","a b"]}"#, &["command"]),
            Some("rm 'a b'\nrm\na b\nrm a b".to_owned())
        );
        assert_eq!(
            run(r#"{"command":"rm","args":["a"]}"#, &["command"]),
            Some("rm a\nrm\nrm a".to_owned())
        );
        assert_eq!(run(r#"{"commands":["ls",{"command":"rm"}]}"#, &["commands"]), None);
    }

    #[test]
    fn nesting_ends_somewhere() {
        let deep = r#"{"path":"#.repeat(100) + "5" + &"}".repeat(100);
        assert_eq!(edited(&deep), None);
        let wide = format!(r#"{{"files":[{}"a"]}}"#, r#""a","#.repeat(ARGUMENTS_MAX + 10));
        assert!(with(&wide, |it| it.found.len()) <= ARGUMENTS_MAX + 1);
    }

    #[test]
    fn an_unknown_tool_is_about_every_text_it_is_given() {
        let raw: &RawValue = serde_json::from_str(
            r#"{"vault":"~/notes","ops":[{"file://x":1,"why":"rm -rf docs"}],"vault":"~/notes","n":null}"#,
        )
        .unwrap();
        let all = Arguments::collect(&[raw]).all_texts();
        assert_eq!(all, ["vault", "~/notes", "ops", "file://x", "1", "why", "rm -rf docs"]);
    }
}
