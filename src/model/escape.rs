//! Escapes arbitrary bytes as plain text: a space, a backslash and everything outside printable
//! ASCII become `\0` and three octal digits, which `printf %b` decodes.
//!
//! JSON strings cannot hold arbitrary bytes, so paths are serialized in this form: see [`escaped`].

use std::{
    ffi::OsString,
    os::unix::ffi::OsStringExt,
    path::{Path, PathBuf},
};

use serde::{Serialize, de::DeserializeOwned};

/// Escapes `bytes`; the result contains no spaces, line ends or terminal control characters.
pub fn escape(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    escape_into(&mut text, bytes);
    text
}

/// Appends the escaped `bytes` to `text`.
pub fn escape_into(text: &mut String, bytes: &[u8]) {
    for &byte in bytes {
        if is_plain(byte) {
            text.push(char::from(byte));
        } else {
            text.push_str("\\0");
            for digit in [byte >> 6, byte >> 3 & 7, byte & 7] {
                text.push(char::from(b'0' + digit));
            }
        }
    }
}

/// Decodes the output of [`escape`]; `None` for any other text.
pub fn unescape(text: &str) -> Option<Vec<u8>> {
    if text.bytes().all(is_plain) {
        return Some(text.as_bytes().to_vec());
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, behind)) = rest.split_first() {
        if first == b'\\' {
            let [b'0', digits @ ..] = behind.get(..4)? else { return None };
            bytes.push(octal_byte(digits).filter(|&byte| !is_plain(byte))?);
            rest = &behind[4..];
        } else {
            bytes.push(Some(first).filter(|&byte| is_plain(byte))?);
            rest = behind;
        }
    }
    Some(bytes)
}

fn is_plain(byte: u8) -> bool {
    byte.is_ascii_graphic() && byte != b'\\'
}

fn octal_byte(digits: &[u8]) -> Option<u8> {
    let value = digits.iter().try_fold(0u32, |value, digit| match digit {
        b'0'..=b'7' => Some(value * 8 + u32::from(digit - b'0')),
        _ => None,
    })?;
    u8::try_from(value).ok()
}

/// Escapes a path.
pub fn escape_path(path: &Path) -> String {
    escape(path.as_os_str().as_encoded_bytes())
}

/// Reads an escaped absolute path.
///
/// # Errors
///
/// Fails for any other text, with a message fragment.
pub fn parse_path(text: &str) -> Result<PathBuf, &'static str> {
    let bytes = unescape(text).ok_or("a path is not escaped as it should be")?;
    let path = PathBuf::from(OsString::from_vec(bytes));
    if path.is_absolute() { Ok(path) } else { Err("a path is not absolute") }
}

/// A value with bytes that are not text, in its serialized form.
pub trait Escaped: Sized {
    /// The serialized form.
    type Text: Serialize + DeserializeOwned;

    /// Escapes the bytes.
    fn to_text(&self) -> Self::Text;

    /// Decodes the output of [`Escaped::to_text`].
    ///
    /// # Errors
    ///
    /// Fails for any other text, with a message fragment.
    fn from_text(text: Self::Text) -> Result<Self, &'static str>;
}

impl Escaped for Vec<u8> {
    type Text = String;

    fn to_text(&self) -> String {
        escape(self)
    }

    fn from_text(text: String) -> Result<Self, &'static str> {
        unescape(&text).ok_or("a path is not escaped as it should be")
    }
}

impl Escaped for PathBuf {
    type Text = String;

    fn to_text(&self) -> String {
        escape_path(self)
    }

    fn from_text(text: String) -> Result<Self, &'static str> {
        parse_path(&text)
    }
}

impl<T: Escaped> Escaped for Option<T> {
    type Text = Option<T::Text>;

    fn to_text(&self) -> Self::Text {
        self.as_ref().map(T::to_text)
    }

    fn from_text(text: Self::Text) -> Result<Self, &'static str> {
        text.map(T::from_text).transpose()
    }
}

impl<T: Escaped> Escaped for Vec<T> {
    type Text = Vec<T::Text>;

    fn to_text(&self) -> Self::Text {
        self.iter().map(T::to_text).collect()
    }

    fn from_text(text: Self::Text) -> Result<Self, &'static str> {
        text.into_iter().map(T::from_text).collect()
    }
}

impl<A: Escaped, B: Escaped> Escaped for (A, B) {
    type Text = (A::Text, B::Text);

    fn to_text(&self) -> Self::Text {
        (self.0.to_text(), self.1.to_text())
    }

    fn from_text(text: Self::Text) -> Result<Self, &'static str> {
        Ok((A::from_text(text.0)?, B::from_text(text.1)?))
    }
}

/// For `#[serde(with = "escaped")]`.
pub mod escaped {
    use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

    use super::Escaped;

    /// Serializes a value in its escaped form.
    ///
    /// # Errors
    ///
    /// As the serializer does.
    pub fn serialize<T: Escaped, S: Serializer>(value: &T, to: S) -> Result<S::Ok, S::Error> {
        value.to_text().serialize(to)
    }

    /// Deserializes a value from its escaped form.
    ///
    /// # Errors
    ///
    /// Fails for anything that [`serialize`] does not write.
    pub fn deserialize<'de, T: Escaped, D: Deserializer<'de>>(from: D) -> Result<T, D::Error> {
        T::from_text(T::Text::deserialize(from)?).map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_survives() {
        let all: Vec<u8> = (0..=255).collect();
        let text = escape(&all);
        assert!(text.bytes().all(|byte| byte.is_ascii_graphic()), "{text}");
        assert_eq!(unescape(&text), Some(all));
        assert_eq!(escape(b"a b\\\n\xff"), "a\\0040b\\0134\\0012\\0377");
    }

    #[test]
    fn a_name_has_one_spelling() {
        for bad in ["\\", "\\0", "\\0101", "\\0400", "\\012", "a b", "\u{e9}", "\\n"] {
            assert_eq!(unescape(bad), None, "{bad}");
        }
    }
}
