//! The two changes that are ever made to a JSON text: something is put at the end of an object or
//! array, or taken out of one. Every byte around it stays.
//!
//! Taking out what was just put in gives the text as it was, but for an empty container, in which
//! blanks are not kept.

use serde::Serialize;
use serde_json::{Value, ser::PrettyFormatter};

use super::jsonc::{BLANK, Document, JsonItem, JsonKind, JsonNode};

/// What a file indents with when it does not say.
const INDENT: &str = "  ";

/// How a text is laid out.
#[derive(Clone, Copy, Debug)]
pub(super) struct JsonLayout<'a> {
    text: &'a str,
    /// One level.
    unit: &'a str,
    newline: &'a str,
}

impl<'a> JsonLayout<'a> {
    pub(super) fn of(text: &'a str, document: &Document) -> Self {
        let first_line_ends = text.find('\n').unwrap_or(0);
        let is_crlf = text[..first_line_ends].ends_with('\r');
        let newline = if is_crlf { "\r\n" } else { "\n" };
        let mut layout = Self { text, unit: INDENT, newline };
        let first = document.root.items().iter().find(|item| layout.starts_line(item.start));
        if let Some(indent) = first.map(|first| layout.indent_at(first.start))
            && !indent.is_empty()
        {
            layout.unit = indent;
        }
        layout
    }

    fn line_start(&self, at: usize) -> usize {
        self.text[..at].rfind('\n').map_or(0, |newline| newline + 1)
    }

    /// The blanks at the start of the line around `at`.
    fn indent_at(&self, at: usize) -> &'a str {
        let line = &self.text[self.line_start(at)..at];
        &line[..line.len() - line.trim_start_matches([' ', '\t']).len()]
    }

    fn starts_line(&self, at: usize) -> bool {
        let start = self.line_start(at);
        start > 0 && self.indent_at(at).len() == at - start
    }

    /// A value over several lines, each but the first with `indent` before it.
    fn pretty(&self, value: &Value, indent: &str) -> String {
        let mut bytes = Vec::new();
        let formatter = PrettyFormatter::with_indent(self.unit.as_bytes());
        let mut writer = serde_json::Serializer::with_formatter(&mut bytes, formatter);
        value.serialize(&mut writer).expect("a JSON value always serializes");
        let text = String::from_utf8(bytes).expect("JSON is text");
        text.replace('\n', &format!("{}{indent}", self.newline))
    }
}

/// The text with `value` at the end of `container`, which is an object if there is a `key`.
pub(super) fn append(
    layout: &JsonLayout<'_>,
    container: &JsonNode,
    key: Option<&str>,
    value: &Value,
) -> String {
    let text = layout.text;
    let (open, close) = (container.span.start, container.span.end - 1);
    // The end of the last comment, comma or value.
    let after = text[..close].trim_end_matches(BLANK).len();
    let key = key.map(|key| format!("{}: ", Value::from(key))).unwrap_or_default();
    let newline = layout.newline;
    let Some(last) = container.items().last() else {
        let outer = layout.indent_at(open);
        let indent = format!("{outer}{}", layout.unit);
        let value = layout.pretty(value, &indent);
        let is_closed = text[after..close].contains('\n');
        let end = if is_closed { String::new() } else { format!("{newline}{outer}") };
        let put = format!("{newline}{indent}{key}{value}{end}");
        return replaced(text, &[(after, after, &put)]);
    };
    let first = container.items().first().map_or(close, |first| first.start);
    let is_tall = text[open..first].contains('\n') || text[after..close].contains('\n');
    let mut put = if is_tall {
        let unit = if layout.starts_line(last.start) { "" } else { layout.unit };
        let indent = format!("{}{unit}", layout.indent_at(last.start));
        format!("{newline}{indent}{key}{}", layout.pretty(value, &indent))
    } else {
        format!(" {key}{value}")
    };
    let end = last.value.span.end;
    if last.comma.is_some() {
        put.push(',');
        return replaced(text, &[(after, after, &put)]);
    }
    replaced(text, &[(end, end, ","), (after, after, &put)])
}

/// The text without the item at `index` of `container`.
pub(super) fn remove(
    text: &str,
    document: &Document,
    container: &JsonNode,
    index: usize,
) -> String {
    let items = container.items();
    let item = &items[index];
    let before = text[..item.start].trim_end_matches(BLANK).len();
    let comma = item.comma.or_else(|| items[..index].last().and_then(|above| above.comma));
    let after = item.value.span.end;
    let start = if is_swallowed(text, document, before, item) { item.start } else { before };
    let mut cuts = vec![(start, after, "")];
    cuts.extend(comma.map(|comma| (comma, comma + 1, "")));
    let (open, close) = (container.span.start + 1, container.span.end - 1);
    let is_bare = |part: &str| part.chars().all(|c| BLANK.contains(&c) || c == ',');
    if items.len() == 1 && is_bare(&text[open..start]) && is_bare(&text[after..close]) {
        cuts = vec![(open, close, "")];
    }
    cuts.sort_unstable();
    replaced(text, &cuts)
}

/// Whether what follows an item would fall into the comment before it.
fn is_swallowed(text: &str, document: &Document, before: usize, item: &JsonItem) -> bool {
    let after = item.comma.map_or(item.value.span.end, |comma| comma + 1);
    let line = text[after..].split('\n').next().unwrap_or_default();
    let between = &text[item.value.span.end..after];
    let is_blank = line.trim_matches(BLANK).is_empty() && between.trim_matches(',').is_empty();
    document.line_comments.contains(&before) && !is_blank
}

/// The text with another string in the place of `node`.
pub(super) fn retell(text: &str, node: &JsonNode, told: &str) -> String {
    debug_assert!(matches!(node.kind, JsonKind::Text(_)), "only a string is told anew");
    replaced(text, &[(node.span.start, node.span.end, &Value::from(told).to_string())])
}

/// The text with other parts in places that do not overlap, in order.
fn replaced(text: &str, parts: &[(usize, usize, &str)]) -> String {
    let mut whole = String::with_capacity(text.len() + 256);
    let mut at = 0;
    for (start, end, part) in parts {
        whole.push_str(&text[at..*start]);
        whole.push_str(part);
        at = *end;
    }
    whole.push_str(&text[at..]);
    whole
}
