//! Makes arbitrary bytes safe to print on a terminal.
//!
//! A character that is invisible, or that would move, hide or reorder its neighbours, becomes an
//! escape as Rust writes it: `\n`, `\u{202e}`, `\xff`. A backslash is not escaped: command lines
//! are full of them, and these strings are only displayed, never parsed.

use crate::error::is_plain;
use std::{borrow::Cow, fmt::Write as _, os::unix::ffi::OsStrExt, path::Path};

/// Makes any bytes printable, in one line.
pub fn escape(bytes: &[u8]) -> Cow<'_, str> {
    escape_but(bytes, is_plain)
}

/// Makes a path printable, in one line.
pub fn escape_path(path: &Path) -> Cow<'_, str> {
    escape(path.as_os_str().as_bytes())
}

/// Makes a line of a file printable. Tabs stay, as indentation.
pub fn escape_line(bytes: &[u8]) -> Cow<'_, str> {
    escape_but(bytes, |c| c == '\t' || is_plain(c))
}

/// Makes a text of several lines printable.
pub fn escape_text(text: &str) -> Cow<'_, str> {
    escape_but(text.as_bytes(), |c| c == '\n' || is_plain(c))
}

/// Escapes a JSON document without changing its meaning, so that no name in it can control the
/// terminal.
pub fn escape_json(document: &str) -> Cow<'_, str> {
    let is_shown = |c: char| c == '\n' || is_plain(c);
    if document.chars().all(is_shown) {
        return Cow::Borrowed(document);
    }
    let mut shown = String::with_capacity(document.len() + 64);
    for c in document.chars() {
        if is_shown(c) {
            shown.push(c);
            continue;
        }
        for unit in c.encode_utf16(&mut [0; 2]) {
            write!(shown, "\\u{unit:04x}").expect("a string takes every write");
        }
    }
    Cow::Owned(shown)
}

fn escape_but(bytes: &[u8], is_shown: fn(char) -> bool) -> Cow<'_, str> {
    let is_easy = bytes.iter().all(|byte| matches!(byte, b' '..=b'~'));
    match str::from_utf8(bytes) {
        Ok(text) if is_easy || text.chars().all(is_shown) => Cow::Borrowed(text),
        Ok(_) | Err(_) => Cow::Owned(escape_each(bytes, is_shown)),
    }
}

fn escape_each(bytes: &[u8], is_shown: fn(char) -> bool) -> String {
    let mut shown = String::with_capacity(bytes.len() + 8);
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            if is_shown(c) {
                shown.push(c);
            } else {
                shown.extend(c.escape_default());
            }
        }
        for byte in chunk.invalid() {
            write!(shown, "\\x{byte:02x}").expect("a string takes every write");
        }
    }
    shown
}

/// Quotes a word for a shell, and makes it printable: other characters are written in the form
/// `$'…'`, which bash, zsh and ksh read.
pub fn quote(word: &[u8]) -> String {
    match str::from_utf8(word) {
        Ok(text) if text.chars().all(is_plain) => shell_words::quote(text).into_owned(),
        Ok(_) | Err(_) => escaped(word),
    }
}

fn escaped(word: &[u8]) -> String {
    let mut quoted = "$'".to_owned();
    for byte in word {
        match byte {
            b'\'' | b'\\' => quoted.extend(['\\', char::from(*byte)]),
            b' '..=b'~' => quoted.push(char::from(*byte)),
            _ => quoted.push_str(&format!("\\{byte:03o}")),
        }
    }
    quoted + "'"
}

/// A path that a restore takes, as text that is no pattern.
pub fn literal_pick(path: &[u8]) -> Vec<u8> {
    if !path.iter().any(|byte| b"*?[".contains(byte)) {
        return path.to_vec();
    }
    let escape = |&byte: &u8| {
        let before = b"*?[\\".contains(&byte).then_some(b'\\');
        before.into_iter().chain([byte])
    };
    path.iter().flat_map(escape).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_name_cannot_draw_hide_or_reorder() {
        assert_eq!(escape(b"a\nb\x1b[2J"), "a\\nb\\u{1b}[2J");
        assert_eq!(escape("\u{202e}gnp.exe\u{200b}".as_bytes()), "\\u{202e}gnp.exe\\u{200b}");
        assert_eq!(escape(b"ok\xff\xc3"), "ok\\xff\\xc3");
        assert_eq!(escape("café 日本 \\n".as_bytes()), "café 日本 \\n");
        assert_eq!(escape_line(b"\tx\r"), "\tx\\r");
        assert_eq!(escape_text("a\n\u{202e}b\t"), "a\n\\u{202e}b\\t");
    }

    #[test]
    fn an_escaped_document_says_what_it_said() {
        let value =
            serde_json::json!({ "\u{202e}": ["é\u{9b}2J\u{7f}", "\u{e0001}\u{feff}\u{1b}\n"] });
        let document = serde_json::to_string_pretty(&value).unwrap();
        let shown = escape_json(&document);
        assert!(shown.contains("\\u202e") && shown.contains("é\\u009b2J\\u007f"), "{shown}");
        assert!(shown.chars().all(|c| c == '\n' || is_plain(c)), "{shown}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&shown).unwrap(), value);
    }

    proptest! {
        #[test]
        fn what_is_escaped_is_plain(bytes: Vec<u8>, text: String) {
            for bytes in [&bytes[..], text.as_bytes()] {
                let shown = escape(bytes);
                prop_assert!(shown.chars().all(is_plain));
                prop_assert_eq!(shown.is_empty(), bytes.is_empty());
            }
        }
    }

    #[test]
    fn a_name_survives_a_shell_and_cannot_draw() {
        assert_eq!(quote(b"src/cart.ts"), "src/cart.ts");
        assert_eq!(quote("日本 it's".as_bytes()), r"'日本 it'\''s'");
        assert_eq!(quote(b"a\x1b[2J'\\\n"), r"$'a\033[2J\'\\\012'");
        assert_eq!(quote("\u{202e}x".as_bytes()), r"$'\342\200\256x'");
        assert_eq!(quote(b"\xff"), r"$'\377'");
        assert_eq!(quote(b""), "''");
    }
}
