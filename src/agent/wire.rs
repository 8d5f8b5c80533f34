//! Reading a payload: one JSON object, once through, forgiving where nothing is lost.
//!
//! Every wire struct is made of [`Text`] and `Input`: a field of an unexpected
//! type must not cost the protection of the call it came with. A field given twice does, since no
//! agent writes one and we could not tell which of them it will act on.

use std::path::PathBuf;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::BadPayload;

/// Reads the one JSON object of a payload.
pub(super) fn read<T: DeserializeOwned>(payload: &[u8]) -> Result<T, BadPayload> {
    // Derived readers would take an array for a struct.
    match payload.iter().find(|byte| !byte.is_ascii_whitespace()) {
        Some(b'{') => {}
        Some(_) => return Err(BadPayload("it is not a JSON object".to_owned())),
        None => return Err(BadPayload("it is empty".to_owned())),
    }
    serde_json::from_slice(payload).or_else(|err| {
        let Some(escaped) = escape_controls(payload) else { return Err(err.into()) };
        serde_json::from_slice(&escaped).map_err(|_| err.into())
    })
}

/// Escapes control characters inside strings, where JSON forbids them. Windsurf sends them raw
/// (second-hand). Nothing but text can contain them, so this loses nothing.
fn escape_controls(payload: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(payload.len() + 64);
    let (mut in_string, mut after_backslash, mut changed) = (false, false, false);
    for &byte in payload {
        if in_string && byte < 0x20 && !after_backslash {
            out.extend_from_slice(format!("\\u{byte:04x}").as_bytes());
            changed = true;
            continue;
        }
        in_string ^= byte == b'"' && !after_backslash;
        after_backslash = in_string && byte == b'\\' && !after_backslash;
        out.push(byte);
    }
    changed.then_some(out)
}

/// A field that should be a string.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Text {
    /// Missing or null.
    #[default]
    Absent,
    /// A string, as it should be.
    Is(String),
    /// A number or a boolean, as it was written.
    Scalar(String),
    /// A list, an object, or a string that no text can hold (half a surrogate pair).
    Odd,
}

impl Text {
    /// Understands one JSON value.
    pub(super) fn from_raw(raw: &str) -> Self {
        match raw.as_bytes().first() {
            Some(b'"') => serde_json::from_str(raw).map_or(Self::Odd, Self::Is),
            Some(b'{' | b'[') => Self::Odd,
            Some(b'n') | None => Self::Absent,
            Some(_) => Self::Scalar(raw.to_owned()),
        }
    }

    /// The text, if it is one and is not empty.
    pub(super) fn text(self) -> Option<String> {
        match self {
            Self::Is(text) => Some(text).filter(|text| !text.is_empty()),
            Self::Absent | Self::Scalar(_) | Self::Odd => None,
        }
    }

    /// The text or number: what an agent names things by.
    pub(super) fn id(self) -> Option<String> {
        match self {
            Self::Is(text) | Self::Scalar(text) => Some(text).filter(|text| !text.is_empty()),
            Self::Absent | Self::Odd => None,
        }
    }

    /// The text as a path that can exist.
    pub(super) fn path(self) -> Option<PathBuf> {
        self.text().filter(|text| !text.contains('\0')).map(PathBuf::from)
    }

    /// The text, borrowed; empty if it is none.
    pub(super) fn as_str(&self) -> &str {
        match self {
            Self::Is(text) => text,
            Self::Absent | Self::Scalar(_) | Self::Odd => "",
        }
    }

    /// Whether there is anything at all.
    pub(super) fn present(&self) -> bool {
        *self != Self::Absent
    }

    /// Whether it says true, as a boolean or in words.
    pub(super) fn is_true(&self) -> bool {
        matches!(self, Self::Is(word) | Self::Scalar(word) if word == "true")
    }

    /// This, or the other if this is absent.
    pub(super) fn or(self, other: Self) -> Self {
        if self.present() { self } else { other }
    }
}

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        <&RawValue>::deserialize(deserializer).map(|raw| Self::from_raw(raw.get()))
    }
}

/// A field that should be a list of strings. Anything else is an empty one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Texts(pub(super) Vec<Text>);

impl<'de> Deserialize<'de> for Texts {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = <&RawValue>::deserialize(deserializer)?;
        let items = serde_json::from_str::<Vec<&RawValue>>(raw.get()).unwrap_or_default();
        Ok(Self(items.iter().map(|item| Text::from_raw(item.get())).collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct One {
        a: Text,
    }

    #[test]
    fn a_field_of_an_odd_type_costs_nothing_else() {
        let a = |json: &str| read::<One>(json.as_bytes()).map(|one| one.a);
        assert_eq!(a(r#"{"a":"x"}"#), Ok(Text::Is("x".to_owned())));
        assert_eq!(a(r#"{"a":5}"#), Ok(Text::Scalar("5".to_owned())));
        assert_eq!(a(r#"{"a":null}"#), Ok(Text::Absent));
        assert_eq!(a(r#"{"a":{"b":[]}}"#), Ok(Text::Odd));
        assert_eq!(a(r#"{"a":"\ud800"}"#), Ok(Text::Odd));
        assert_eq!(a(r#"{"b":"\ud800","a":"x"}"#), Ok(Text::Is("x".to_owned())));
        assert!(a(r#"{"a":"x","a":"y"}"#).is_err());
    }

    #[test]
    fn raw_control_characters_in_strings_are_read() {
        let one = read::<One>(b"{\"a\":\"x\\\"\ny\\\\\"\n}").unwrap();
        assert_eq!(one.a, Text::Is("x\"\ny\\".to_owned()));
    }
}
