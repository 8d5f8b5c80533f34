//! Where things stand in a JSON text with comments: every value with its place. Changes nothing.
//!
//! As patient as the agents are: comments, trailing commas and a byte order mark are fine. What
//! they would not read either is a fault with its line.

use std::{fmt, ops::Range};

use jsonc_parser::{
    CollectOptions, CommentCollectionStrategy, ParseOptions, ast, common::Ranged, parse_to_ast,
    tokens::Token,
};
use serde_json::Value;

/// What may stand between any two tokens, besides comments.
pub(super) const BLANK: [char; 4] = [' ', '\t', '\r', '\n'];

/// A value and where it stands.
#[derive(Clone, Debug)]
pub(super) struct JsonNode {
    pub(super) span: Range<usize>,
    pub(super) kind: JsonKind,
}

/// What a value is.
#[derive(Clone, Debug)]
pub(super) enum JsonKind {
    Object(Vec<JsonItem>),
    Array(Vec<JsonItem>),
    Text(String),
    /// A number, `true`, `false` or `null`.
    Other(Value),
}

/// A member of an object, or an element of an array.
#[derive(Clone, Debug)]
pub(super) struct JsonItem {
    /// Empty in an array.
    pub(super) key: String,
    /// Where its key starts; in an array, its value.
    pub(super) start: usize,
    pub(super) value: JsonNode,
    /// Where the comma after it is.
    pub(super) comma: Option<usize>,
}

/// A whole text.
#[derive(Clone, Debug)]
pub(super) struct Document {
    pub(super) root: JsonNode,
    /// Where comments end that last to the end of their line, blanks not counted.
    pub(super) line_comments: Vec<usize>,
}

/// Why a text is no JSON.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct JsonError {
    /// Counted from 1.
    pub(super) line: usize,
    pub(super) why: String,
}

impl fmt::Display for JsonError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.why)
    }
}

impl JsonError {
    /// A fault at a place in `text`.
    pub(super) fn at(text: &str, at: usize, why: impl Into<String>) -> Self {
        let before = text.as_bytes().get(..at).unwrap_or(text.as_bytes());
        let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
        Self { line, why: why.into() }
    }
}

impl JsonNode {
    /// What is in it; nothing for what is no container.
    pub(super) fn items(&self) -> &[JsonItem] {
        match &self.kind {
            JsonKind::Object(items) | JsonKind::Array(items) => items,
            JsonKind::Text(_) | JsonKind::Other(_) => &[],
        }
    }

    /// Where the members called `key` are. A reader may take any of several.
    pub(super) fn members<'a>(&'a self, key: &'a str) -> impl Iterator<Item = usize> + 'a {
        let is_object = matches!(self.kind, JsonKind::Object(_));
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
            JsonKind::Text(text) => Some(text),
            JsonKind::Object(_) | JsonKind::Array(_) | JsonKind::Other(_) => None,
        }
    }

    /// The same without its looks.
    pub(super) fn to_value(&self) -> Value {
        match &self.kind {
            JsonKind::Object(items) => {
                items.iter().map(|item| (item.key.clone(), item.value.to_value())).collect()
            }
            JsonKind::Array(items) => items.iter().map(|item| item.value.to_value()).collect(),
            JsonKind::Text(text) => Value::String(text.clone()),
            JsonKind::Other(value) => value.clone(),
        }
    }
}

/// What agents read: comments and trailing commas, and nothing else beyond JSON.
const DIALECT: ParseOptions = ParseOptions {
    allow_comments: true,
    allow_trailing_commas: true,
    allow_loose_object_property_names: false,
    allow_missing_commas: false,
    allow_single_quoted_strings: false,
    allow_hexadecimal_numbers: false,
    allow_unary_plus_numbers: false,
    allow_bare_decimal_point_numbers: false,
    allow_non_finite_numbers: false,
    allow_extended_string_escapes: false,
};

/// Reads a whole text.
pub(super) fn parse(text: &str) -> Result<Document, JsonError> {
    let collect = CollectOptions { comments: CommentCollectionStrategy::AsTokens, tokens: true };
    // A byte order mark is as long as its blanks, so that no place moves.
    let bare = text.strip_prefix('\u{feff}').map(|rest| format!("   {rest}"));
    let text = bare.as_deref().unwrap_or(text);
    let parsed = parse_to_ast(text, &collect, &DIALECT)
        .map_err(|err| JsonError { line: err.line_display(), why: uncapitalized(err.kind()) })?;
    let root =
        parsed.value.ok_or_else(|| JsonError::at(text, text.len(), "there is nothing in it"))?;
    let (mut places, mut line_comments) = (TokenStarts { text, tokens: Vec::new() }, Vec::new());
    for token in parsed.tokens.unwrap_or_default() {
        match token.token {
            Token::CommentLine(_) => {
                let comment = text[..token.range.end].trim_end_matches(BLANK);
                line_comments.push(comment.len());
            }
            Token::CommentBlock(_) => (),
            other => places.tokens.push((token.range.start, other == Token::Comma)),
        }
    }
    Ok(Document { root: places.node(root)?, line_comments })
}

fn uncapitalized(why: &impl fmt::Display) -> String {
    let why = why.to_string();
    let mut letters = why.chars();
    letters.next().map(|first| first.to_lowercase().chain(letters).collect()).unwrap_or_default()
}

/// Where the tokens of a text start, in order, comments left out; and whether each is a comma.
struct TokenStarts<'a> {
    text: &'a str,
    tokens: Vec<(usize, bool)>,
}

impl TokenStarts<'_> {
    fn node(&self, value: ast::Value<'_>) -> Result<JsonNode, JsonError> {
        let span = value.range().start..value.range().end;
        let kind = match value {
            ast::Value::Object(object) => {
                let members = object.properties.into_iter().map(|member| {
                    let name = member.name.range();
                    self.leaf(&(name.start..name.end))?;
                    self.item(member.name.into_string(), name.start, member.value)
                });
                JsonKind::Object(members.collect::<Result<_, _>>()?)
            }
            ast::Value::Array(array) => {
                let elements = array.elements.into_iter().map(|element| {
                    let start = element.range().start;
                    self.item(String::new(), start, element)
                });
                JsonKind::Array(elements.collect::<Result<_, _>>()?)
            }
            _ => match self.leaf(&span)? {
                Value::String(text) => JsonKind::Text(text),
                other => JsonKind::Other(other),
            },
        };
        Ok(JsonNode { span, kind })
    }

    /// A value without others in it. The library lets control characters pass in strings, JSON does
    /// not.
    fn leaf(&self, span: &Range<usize>) -> Result<Value, JsonError> {
        let value = serde_json::from_str(&self.text[span.clone()]);
        value.map_err(|_| JsonError::at(self.text, span.start, "not a valid string or number"))
    }

    fn item(
        &self,
        key: String,
        start: usize,
        value: ast::Value<'_>,
    ) -> Result<JsonItem, JsonError> {
        let value = self.node(value)?;
        let next = self.tokens.partition_point(|(at, _)| *at < value.span.end);
        let comma = self.tokens.get(next).and_then(|(at, is_comma)| is_comma.then_some(*at));
        Ok(JsonItem { key, start, value, comma })
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
            ("", "line 1: there is nothing in it"),
            ("{\n\"a\" 1}", "line 2: expected colon after the string or word in object property"),
            ("{\n\"a\": 1\n\"b\": 2}", "line 2: expected comma"),
            ("{a: 1}", "line 1: expected string for object property"),
            ("[1,,2]", "line 1: unexpected comma"),
            ("[tru]", "line 1: unexpected token"),
            ("\n\"a\nb\"", "line 2: not a valid string or number"),
            ("{\"a\u{0}b\": 1}", "line 1: not a valid string or number"),
            ("{}\n{}", "line 2: text cannot contain more than one JSON value"),
            ("\n/* ", "line 2: unterminated comment block"),
            ("\"a", "line 1: unterminated string literal"),
            ("'a'", "line 1: single-quoted strings are not allowed"),
            ("\0", "line 1: unexpected token"),
            ("[0x1]", "line 1: hexadecimal numbers are not allowed"),
            ("[NaN]", "line 1: unexpected token"),
            ("[01]", "line 1: expected comma"),
            ("\"\\x41\"", "line 1: invalid escape"),
            (&deep, "line 1: maximum nesting depth exceeded"),
        ] {
            assert_eq!(parse(text).unwrap_err().to_string(), told, "{text:.20}");
        }
    }
}
