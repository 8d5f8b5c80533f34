//! Where things stand in a JSON text with comments. Knows the grammar and every span; changes
//! nothing.
//!
//! As patient as the agents are: comments, trailing commas and a byte order mark are fine. What
//! they would not read either is a fault with its line.

use std::{fmt, ops::Range};

use serde_json::Value;

/// Settings nest a few levels deep. Beyond this it is an attack on our stack.
const DEPTH_MAX: usize = 100;

/// What may stand between any two tokens, besides comments.
pub(super) const BLANK: [char; 4] = [' ', '\t', '\r', '\n'];

/// A value and where it stands.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) span: Range<usize>,
    pub(super) kind: Kind,
}

/// What a value is.
#[derive(Clone, Debug)]
pub(super) enum Kind {
    Object(Vec<Item>),
    Array(Vec<Item>),
    Text(String),
    /// A number, `true`, `false` or `null`.
    Other(Value),
}

/// A member of an object, or an element of an array.
#[derive(Clone, Debug)]
pub(super) struct Item {
    /// Empty in an array.
    pub(super) key: String,
    /// Where its key starts; in an array, its value.
    pub(super) start: usize,
    pub(super) value: Node,
    /// Where the comma after it is.
    pub(super) comma: Option<usize>,
}

/// A whole text.
#[derive(Clone, Debug)]
pub(super) struct Document {
    pub(super) root: Node,
    /// Where comments end that last to the end of their line, blanks not counted.
    pub(super) line_comments: Vec<usize>,
}

/// Why a text is no JSON.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fault {
    /// Counted from 1.
    pub(super) line: usize,
    pub(super) why: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.why)
    }
}

impl Fault {
    /// A fault at a place in `text`.
    pub(super) fn at(text: &str, at: usize, why: impl Into<String>) -> Self {
        let before = text.as_bytes().get(..at).unwrap_or(text.as_bytes());
        let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
        Self { line, why: why.into() }
    }
}

impl Node {
    /// What is in it; nothing for what is no container.
    pub(super) fn items(&self) -> &[Item] {
        match &self.kind {
            Kind::Object(items) | Kind::Array(items) => items,
            Kind::Text(_) | Kind::Other(_) => &[],
        }
    }

    /// Where the members called `key` are. A reader may take any of several.
    pub(super) fn members<'a>(&'a self, key: &'a str) -> impl Iterator<Item = usize> + 'a {
        let is_object = matches!(self.kind, Kind::Object(_));
        let items = self.items().iter().enumerate();
        items.filter(move |(_, item)| is_object && item.key == key).map(|(at, _)| at)
    }

    /// The first member called `key`.
    pub(super) fn get(&self, key: &str) -> Option<&Self> {
        self.members(key).next().map(|at| &self.items()[at].value)
    }

    /// What it says, if it is a string.
    pub(super) fn text(&self) -> Option<&str> {
        match &self.kind {
            Kind::Text(text) => Some(text),
            Kind::Object(_) | Kind::Array(_) | Kind::Other(_) => None,
        }
    }

    /// The same without its looks.
    pub(super) fn to_value(&self) -> Value {
        match &self.kind {
            Kind::Object(items) => {
                items.iter().map(|item| (item.key.clone(), item.value.to_value())).collect()
            }
            Kind::Array(items) => items.iter().map(|item| item.value.to_value()).collect(),
            Kind::Text(text) => Value::String(text.clone()),
            Kind::Other(value) => value.clone(),
        }
    }
}

/// Reads a whole text.
pub(super) fn parse(text: &str) -> Result<Document, Fault> {
    let mut scanner = Scanner { text, at: 0, line_comments: Vec::new() };
    if text.starts_with('\u{feff}') {
        scanner.at = '\u{feff}'.len_utf8();
    }
    scanner.skip()?;
    let root = scanner.value(0)?;
    scanner.skip()?;
    if scanner.at < text.len() {
        return Err(scanner.fault("something follows the end"));
    }
    Ok(Document { root, line_comments: scanner.line_comments })
}

struct Scanner<'a> {
    text: &'a str,
    at: usize,
    line_comments: Vec<usize>,
}

impl Scanner<'_> {
    fn fault(&self, why: impl Into<String>) -> Fault {
        Fault::at(self.text, self.at, why)
    }

    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    /// Goes to the next token.
    fn skip(&mut self) -> Result<(), Fault> {
        loop {
            let rest = self.rest();
            let token = rest.trim_start_matches(BLANK);
            self.at += rest.len() - token.len();
            if self.rest().starts_with("//") {
                let length = self.rest().find('\n').unwrap_or(self.rest().len());
                let comment = self.rest()[..length].trim_end_matches(BLANK).len();
                self.line_comments.push(self.at + comment);
                self.at += length;
            } else if self.rest().starts_with("/*") {
                let end = self.rest()[2..].find("*/");
                self.at += end.ok_or_else(|| self.fault("a comment without an end"))? + 4;
            } else {
                return Ok(());
            }
        }
    }

    fn value(&mut self, depth: usize) -> Result<Node, Fault> {
        if depth > DEPTH_MAX {
            return Err(self.fault("nested too deep"));
        }
        let start = self.at;
        let kind = match self.peek() {
            Some(b'{') => Kind::Object(self.items(b'}', depth)?),
            Some(b'[') => Kind::Array(self.items(b']', depth)?),
            Some(b'"') => Kind::Text(self.string()?),
            Some(_) => Kind::Other(self.word()?),
            None => return Err(self.fault("it ends too early")),
        };
        Ok(Node { span: start..self.at, kind })
    }

    fn items(&mut self, close: u8, depth: usize) -> Result<Vec<Item>, Fault> {
        let mut items: Vec<Item> = Vec::new();
        self.at += 1;
        loop {
            self.skip()?;
            if self.peek() == Some(close) {
                self.at += 1;
                return Ok(items);
            }
            if items.last().is_some_and(|last| last.comma.is_none()) {
                return Err(self.fault(format!("expected `,` or `{}`", char::from(close))));
            }
            let mut item = self.item(close == b'}', depth)?;
            self.skip()?;
            if self.peek() == Some(b',') {
                item.comma = Some(self.at);
                self.at += 1;
            }
            items.push(item);
        }
    }

    fn item(&mut self, is_member: bool, depth: usize) -> Result<Item, Fault> {
        let start = self.at;
        let mut key = String::new();
        if is_member {
            if self.peek() != Some(b'"') {
                return Err(self.fault("expected a key in double quotes"));
            }
            key = self.string()?;
            self.skip()?;
            if self.peek() != Some(b':') {
                return Err(self.fault("expected `:` after a key"));
            }
            self.at += 1;
            self.skip()?;
        }
        let value = self.value(depth + 1)?;
        Ok(Item { key, start, value, comma: None })
    }

    fn string(&mut self) -> Result<String, Fault> {
        let mut is_escaped = false;
        let end = self.rest().bytes().enumerate().skip(1).find_map(|(at, byte)| {
            let is_end = byte == b'"' && !is_escaped;
            is_escaped = byte == b'\\' && !is_escaped;
            (is_end || byte == b'\n').then_some(at)
        });
        let length = end.ok_or_else(|| self.fault("a string without an end"))? + 1;
        self.token(length, "not a valid string")
    }

    fn word(&mut self) -> Result<Value, Fault> {
        let is_end = |c: char| BLANK.contains(&c) || ",:{}[]\"/".contains(c);
        let length = self.rest().find(is_end).unwrap_or(self.rest().len());
        self.token(length, "not a value")
    }

    fn token<T: serde::de::DeserializeOwned>(
        &mut self,
        length: usize,
        why: &str,
    ) -> Result<T, Fault> {
        let token = self.rest().get(..length).unwrap_or_default();
        let read = serde_json::from_str(token).map_err(|_| self.fault(why))?;
        self.at += length;
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_trailing_commas_are_no_part_of_the_value() {
        let text =
            "\u{feff}{ // a\n \"a\": [1, 2.5e3, /* , */ \"x\\\"\\u00e9\",], \"b\": {},\n}\n// z";
        let value = parse(text).unwrap().root.to_value();
        assert_eq!(value, serde_json::json!({ "a": [1, 2.5e3, "x\"é"], "b": {} }));
    }

    #[test]
    fn what_is_no_json_is_named_with_its_line() {
        let deep = "[".repeat(5000);
        for (text, told) in [
            ("", "line 1: it ends too early"),
            ("{\n\"a\" 1}", "line 2: expected `:` after a key"),
            ("{\n\"a\": 1\n\"b\": 2}", "line 3: expected `,` or `}`"),
            ("{a: 1}", "line 1: expected a key in double quotes"),
            ("[1,,2]", "line 1: not a value"),
            ("[tru]", "line 1: not a value"),
            ("\"a\nb\"", "line 1: not a valid string"),
            ("\"a\u{0}b\"", "line 1: not a valid string"),
            ("{}\n{}", "line 2: something follows the end"),
            ("\n/* ", "line 2: a comment without an end"),
            ("\"a", "line 1: a string without an end"),
            ("'a'", "line 1: not a value"),
            ("\0", "line 1: not a value"),
            (&deep, "line 1: nested too deep"),
        ] {
            assert_eq!(parse(text).unwrap_err().to_string(), told, "{text:.20}");
        }
    }
}
