//! Lenient reading of JSON objects that agents write.
//!
//! An agent may give a field twice, in two spellings, or with another type in its next version.
//! None of that may cost more than the field itself, so an object is a list of fields in the order
//! of the text, and a value is parsed only when it is asked for.

use std::borrow::Cow;
use std::fmt;
use std::path::PathBuf;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::BadPayload;

/// One JSON object. Duplicate fields are all kept.
#[derive(Clone, Debug, Default)]
pub(super) struct Object<'p> {
    fields: Vec<JsonField<'p>>,
}

#[derive(Clone, Debug)]
struct JsonField<'p> {
    name: Cow<'p, str>,
    /// The [`prefix`] of the name. A payload is searched for some 50 names, so the names themselves are
    /// compared only if their prefixes are equal.
    prefix: u64,
    value: &'p RawValue,
}

/// The place of a value in an object: the name of a field, in any spelling. A dot leads into an object, or into
/// those of a list.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub(super) path: &'static str,
    prefix: u64,
    /// Whether the path has a dot.
    pub(super) is_nested: bool,
}

impl Place {
    pub(super) const fn of(path: &'static str) -> Self {
        Self { path, prefix: prefix(path), is_nested: has_dot(path) }
    }
}

/// The places of one piece of information, computed when the program is built.
pub(super) const fn places<const COUNT: usize>(paths: [&'static str; COUNT]) -> [Place; COUNT] {
    let mut places = [Place::of(""); COUNT];
    let mut at = 0;
    while at < COUNT {
        places[at] = Place::of(paths[at]);
        at += 1;
    }
    places
}

impl<'p> Object<'p> {
    /// Parses the text of one object; `None` if it is anything else.
    pub(super) fn parse(text: &'p str) -> Option<Self> {
        if !text.starts_with('{') {
            return None;
        }
        serde_json::from_str(text).ok()
    }

    /// Parses a whole payload.
    ///
    /// # Errors
    ///
    /// Returns the reason if it is not one JSON object.
    pub(super) fn of_payload(text: &'p str) -> Result<Self, BadPayload> {
        match text.trim_start().as_bytes().first() {
            Some(b'{') => Ok(serde_json::from_str(text)?),
            Some(_) => Err(BadPayload("it is not a JSON object".to_owned())),
            None => Err(BadPayload("it is empty".to_owned())),
        }
    }

    /// Every field, in order.
    pub(super) fn fields(&self) -> impl Iterator<Item = (&str, &'p RawValue)> {
        self.fields.iter().map(|field| (&*field.name, field.value))
    }

    /// The values at a place, without those that are null.
    pub(super) fn values(&self, place: Place) -> Vec<&'p RawValue> {
        let mut found = Vec::new();
        self.add_values(place, &mut found);
        found
    }

    /// Appends the values at a place, without those that are null.
    pub(super) fn add_values(&self, place: Place, found: &mut Vec<&'p RawValue>) {
        self.find(place, &mut |value| {
            found.push(value);
            None::<()>
        });
    }

    /// The first of these values for which `read` finds something.
    fn find<T>(&self, place: Place, read: &mut impl FnMut(&'p RawValue) -> Option<T>) -> Option<T> {
        for field in self.fields.iter().filter(|field| field.prefix == place.prefix) {
            let nested = if place.is_nested { place.path.split_once('.') } else { None };
            let (name, inner) = match nested {
                Some((name, inner)) => (name, Some(inner)),
                None => (place.path, None),
            };
            if !is_same_name(&field.name, name) || field.value.get() == "null" {
                continue;
            }
            let found = match inner {
                None => read(field.value),
                Some(inner) => {
                    let inner = Place::of(inner);
                    let objects = elements(field.value.get()).into_iter().filter_map(Object::parse);
                    objects.into_iter().find_map(|object| object.find(inner, read))
                }
            };
            if found.is_some() {
                return found;
            }
        }
        None
    }

    /// The first value at any of the places for which `read` finds something.
    pub(super) fn first<T>(&self, places: &[Place], read: impl Fn(&str) -> Option<T>) -> Option<T> {
        places.iter().find_map(|place| self.find(*place, &mut |value| read(value.get())))
    }

    /// Whether there is a value at any of the places.
    pub(super) fn has(&self, places: &[Place]) -> bool {
        places.iter().any(|place| self.find(*place, &mut |_| Some(())).is_some())
    }
}

/// The text of a JSON string, if it is one, is not empty, and is valid Unicode. `json` is one whole value.
pub(super) fn text(json: &str) -> Option<String> {
    let inner = json.strip_prefix('"')?.strip_suffix('"')?;
    let text = if inner.as_bytes().contains(&b'\\') {
        serde_json::from_str(json).ok()?
    } else {
        inner.to_owned()
    };
    (!text.is_empty()).then_some(text)
}

/// A string, a number or a boolean as text: ids come as any of them.
pub(super) fn id(json: &str) -> Option<String> {
    match json.as_bytes().first()? {
        b'"' => text(json),
        b'{' | b'[' | b'n' => None,
        _ => Some(json.to_owned()),
    }
}

/// The path in a JSON string, if it can exist. A URI counts if it names a local file.
pub(super) fn path(json: &str) -> Option<PathBuf> {
    path_of(&text(json)?)
}

/// The path that a text is, if it can exist.
pub(super) fn path_of(text: &str) -> Option<PathBuf> {
    if text.is_empty() || text.contains('\0') {
        return None;
    }
    match text.strip_prefix("file://") {
        Some(uri) => percent_decoded(uri),
        None => Some(PathBuf::from(text)),
    }
}

/// The elements of a JSON array, or the value itself.
pub(super) fn elements(json: &str) -> Vec<&str> {
    if !json.starts_with('[') {
        return vec![json];
    }
    let items: Vec<&RawValue> = serde_json::from_str(json).unwrap_or_default();
    items.into_iter().map(RawValue::get).collect()
}

/// The path in a file URI, after its scheme.
fn percent_decoded(uri: &str) -> Option<PathBuf> {
    let mut rest = uri.strip_prefix("localhost").unwrap_or(uri).as_bytes();
    let mut bytes = Vec::with_capacity(rest.len());
    while let Some((&byte, tail)) = rest.split_first() {
        let digits = tail.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
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
    (path.starts_with('/') && !path.contains('\0')).then(|| PathBuf::from(path))
}

/// The first eight letters of a name that all its spellings share, up to a dot. Names with different ones
/// are not the same.
const fn prefix(name: &str) -> u64 {
    let name = name.as_bytes();
    let mut packed: u64 = 0;
    let mut at = 0;
    while at < name.len() && name[at] != b'.' && packed >> 56 == 0 {
        if name[at] != b'_' && name[at] != b'-' {
            packed = packed << 8 | name[at].to_ascii_lowercase() as u64;
        }
        at += 1;
    }
    packed
}

const fn has_dot(path: &str) -> bool {
    let path = path.as_bytes();
    let mut at = 0;
    while at < path.len() {
        if path[at] == b'.' {
            return true;
        }
        at += 1;
    }
    false
}

/// Reports whether two names differ in nothing but case, `_` and `-`: `toolName`, `tool_name`, `ToolName`.
pub(super) fn is_same_name(one: &str, other: &str) -> bool {
    if one == other {
        return true;
    }
    let mut one = one.bytes().filter(|byte| !matches!(byte, b'_' | b'-'));
    let mut other = other.bytes().filter(|byte| !matches!(byte, b'_' | b'-'));
    loop {
        match (one.next(), other.next()) {
            (None, None) => return true,
            (Some(one), Some(other)) if one.eq_ignore_ascii_case(&other) => {}
            _ => return false,
        }
    }
}

/// The payload as text that a JSON parser takes: without a byte order mark, with every invalid
/// sequence replaced, and with control characters in strings escaped, which Windsurf sends raw
/// (second-hand). Borrowed where nothing had to be changed.
pub(super) fn repaired(payload: &[u8]) -> Cow<'_, str> {
    let payload = payload.strip_prefix(b"\xef\xbb\xbf").unwrap_or(payload);
    let text = String::from_utf8_lossy(payload);
    if text.bytes().any(|byte| byte < 0x20) {
        escape_controls(&text).map_or(text, Cow::Owned)
    } else {
        text
    }
}

/// Escapes control characters inside strings; `None` if there are none.
fn escape_controls(text: &str) -> Option<String> {
    let mut out = String::with_capacity(text.len() + 64);
    let mut in_string = false;
    let mut after_backslash = false;
    let mut is_changed = false;
    for char in text.chars() {
        if in_string && char < ' ' && !after_backslash {
            out.push_str(&format!("\\u{:04x}", u32::from(char)));
            is_changed = true;
            continue;
        }
        in_string ^= char == '"' && !after_backslash;
        after_backslash = in_string && char == '\\' && !after_backslash;
        out.push(char);
    }
    is_changed.then_some(out)
}

impl<'de: 'p, 'p> Deserialize<'de> for Object<'p> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ObjectVisitor)
    }
}

struct ObjectVisitor;

impl<'de> Visitor<'de> for ObjectVisitor {
    type Value = Object<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Object<'de>, A::Error> {
        let mut fields = Vec::with_capacity(16);
        while let Some(FieldName(name)) = map.next_key()? {
            let prefix = prefix(&name);
            fields.push(JsonField { name, prefix, value: map.next_value()? });
        }
        Ok(Object { fields })
    }
}

/// The name of a field, borrowed from the text where it has no escapes.
struct FieldName<'p>(Cow<'p, str>);

impl<'de> Deserialize<'de> for FieldName<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct NameVisitor;
        impl<'de> Visitor<'de> for NameVisitor {
            type Value = FieldName<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the name of a field")
            }

            fn visit_borrowed_str<E>(self, name: &'de str) -> Result<Self::Value, E> {
                Ok(FieldName(Cow::Borrowed(name)))
            }

            fn visit_str<E>(self, name: &str) -> Result<Self::Value, E> {
                Ok(FieldName(Cow::Owned(name.to_owned())))
            }
        }
        deserializer.deserialize_str(NameVisitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_is_found_in_any_spelling_as_often_as_it_is_there() {
        let json =
            r#"{"toolName":"a","tool_name":"b","tool-name":null,"extra":{"callId":7},"extra":5}"#;
        let object = Object::parse(json).unwrap();
        let raw = |place| {
            let values = object.values(Place::of(place));
            values.into_iter().map(RawValue::get).collect::<Vec<_>>()
        };
        assert_eq!(raw("tool_name"), [r#""a""#, r#""b""#]);
        assert_eq!(raw("extra.call_id"), ["7"]);
        assert_eq!(object.first(&places(["none", "extra.call_id"]), id), Some("7".to_owned()));
        assert!(object.has(&places(["ToolName"])) && !object.has(&places(["name"])));
    }

    #[test]
    fn a_long_name_is_compared_to_its_end() {
        let json = r#"{"session_ident":1,"SESSION-IDEA":2,"session_ide":3,"a.b":4,"a":{"b":5}}"#;
        let object = Object::parse(json).unwrap();
        let raw = |place| {
            let values = object.values(Place::of(place));
            values.into_iter().map(RawValue::get).collect::<Vec<_>>()
        };
        assert_eq!(raw("sessionIdea"), ["2"]);
        assert_eq!(raw("session_ide"), ["3"]);
        assert_eq!(raw("a.b"), ["5"]);
        assert!(!object.has(&places(["session", "a.b.c", ""])));
    }

    #[test]
    fn a_value_of_another_type_is_no_text() {
        for json in ["5", "null", "{}", "[]", r#""""#, r#""\ud800""#] {
            assert_eq!(text(json), None, "{json}");
        }
        assert_eq!(text(r#""x""#), Some("x".to_owned()));
        assert_eq!(id("5"), Some("5".to_owned()));
    }

    #[test]
    fn a_payload_is_repaired_before_it_is_given_up() {
        assert_eq!(repaired(b"\xef\xbb\xbf{}"), "{}");
        assert_eq!(repaired(b"{\"a\":\"x\\\"\ny\\\\\"\n}"), "{\"a\":\"x\\\"\\u000ay\\\\\"\n}");
        assert_eq!(repaired(b"{\"a\":\"\xff\"}"), "{\"a\":\"\u{fffd}\"}");
    }

    #[test]
    fn a_file_uri_is_a_path_and_another_is_not() {
        assert_eq!(path_of("file:///a%20b"), Some("/a b".into()));
        assert_eq!(path_of("file://localhost/a%"), Some("/a%".into()));
        assert_eq!(path_of("file://elsewhere/a"), None);
        assert_eq!(path_of("a\0b"), None);
    }
}
