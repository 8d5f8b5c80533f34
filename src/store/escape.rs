//! Escapes arbitrary bytes as plain text: a space, a backslash and everything outside printable
//! ASCII become `\0` and three octal digits, which `printf %b` decodes.

use std::{
    ffi::OsString,
    os::unix::ffi::OsStringExt,
    path::{Path, PathBuf},
};

/// Escapes `bytes`; the result contains no spaces, line ends or terminal control characters.
pub fn escape(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    escape_into(&mut text, bytes);
    text
}

/// Appends the escaped `bytes` to `text`.
pub(crate) fn escape_into(text: &mut String, bytes: &[u8]) {
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

/// The same for a path.
pub(crate) fn escape_path(path: &Path) -> String {
    escape(path.as_os_str().as_encoded_bytes())
}

/// Reads an escaped absolute path; an error is a message fragment.
pub(crate) fn parse_path(text: &str) -> Result<PathBuf, &'static str> {
    let bytes = unescape(text).ok_or("a path is not escaped as it should be")?;
    let path = PathBuf::from(OsString::from_vec(bytes));
    if path.is_absolute() { Ok(path) } else { Err("a path is not absolute") }
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
