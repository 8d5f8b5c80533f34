//! Escapes file names that git rejects in trees.
//!
//! The escaping depends on the entry alone, so the tree of a directory can be built, compared and
//! reused independently.

use std::{borrow::Cow, fmt::Write as _};

use crate::error::{Error, Result};

/// The prefix of an escaped name; the name in lowercase hex follows.
const MARK: &[u8] = b"%beforehand%";
/// `git fsck` rejects attribute files over 100 MB and lines over 2048 bytes; a smaller file cannot
/// contain such a line.
pub(in crate::store) const ATTRIBUTES_MAX_BYTES: u64 = 2048;

/// The properties of an entry that matter for its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::store) struct Bearer {
    /// A symlink.
    pub(in crate::store) link: bool,
    /// A regular file of more than [`ATTRIBUTES_MAX_BYTES`].
    pub(in crate::store) large: bool,
}

/// The name that a tree has for `name`.
pub(in crate::store) fn escape(name: &[u8], bearer: Bearer) -> Cow<'_, [u8]> {
    if !must_escape(name, bearer) {
        return Cow::Borrowed(name);
    }
    let mut escaped = String::from_utf8_lossy(MARK).into_owned();
    for byte in name {
        write!(escaped, "{byte:02x}").expect("a string takes every write");
    }
    Cow::Owned(escaped.into_bytes())
}

/// Undoes [`escape`].
///
/// # Errors
///
/// [`Error::Damaged`] for an invalid name, or one that we do not write in this form.
pub(in crate::store) fn unescape(stored: &[u8]) -> Result<Vec<u8>> {
    unescape_in_git_dir(stored)
        .and_then(|name| if name == b".git" { Err(refuse(stored)) } else { Ok(name) })
}

/// Undoes [`escape`] for a name in a git directory, where `.git` is allowed.
///
/// # Errors
///
/// As [`unescape`].
pub(in crate::store) fn unescape_in_git_dir(stored: &[u8]) -> Result<Vec<u8>> {
    let name = match stored.strip_prefix(MARK) {
        Some(hex) => from_hex(hex).ok_or_else(|| refuse(stored))?,
        None => stored.to_vec(),
    };
    let is_name =
        !matches!(&name[..], b"" | b"." | b"..") && !name.contains(&b'/') && !name.contains(&0);
    if is_name { Ok(name) } else { Err(refuse(stored)) }
}

fn refuse(stored: &[u8]) -> Error {
    let what = String::from_utf8_lossy(stored).escape_debug().to_string();
    Error::damaged(what, "not a name a file can have")
}

fn from_hex(hex: &[u8]) -> Option<Vec<u8>> {
    if !hex.len().is_multiple_of(2) {
        return None;
    }
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    hex.chunks_exact(2).map(|pair| Some(digit(pair[0])? << 4 | digit(pair[1])?)).collect()
}

fn must_escape(name: &[u8], bearer: Bearer) -> bool {
    if name.starts_with(MARK) {
        return true;
    }
    // A fast path for nearly every name: a name that git rejects has a leading dot, a tilde, a
    // backslash, a non-ASCII character, or the letters `git`.
    let suspicious = matches!(name.first(), Some(b'.' | b'g' | b'G'))
        || name.iter().any(|byte| matches!(byte, b'~' | b'\\' | b':') || !byte.is_ascii());
    if !suspicious {
        return false;
    }
    let is = |special| is_like(name, special);
    is("git")
        || is("gitmodules")
        || (is("gitattributes") && (bearer.link || bearer.large))
        || (bearer.link && (is("gitignore") || is("mailmap")))
}

/// Whether some file system takes `name` for `.special`: HFS+ ignores case and certain characters;
/// NTFS ignores case, anything after a colon, and trailing dots and spaces, has short names, and
/// treats a backslash as a slash. It errs on the safe side, since escaping one name too many does
/// no harm.
fn is_like(name: &[u8], special: &str) -> bool {
    if let Some(at) = name.iter().position(|&byte| byte == b'\\') {
        return is_like(&name[..at], special) || is_like(&name[at + 1..], special);
    }
    let visible = without_ignorable(name);
    let head = visible.split(|&byte| byte == b':').next().unwrap_or_default();
    let end = head.iter().rposition(|byte| !matches!(byte, b'.' | b' ')).map_or(0, |at| at + 1);
    let head = head[..end].to_ascii_lowercase();
    if head.strip_prefix(b".") == Some(special.as_bytes()) {
        return true;
    }
    let Some(tilde) = head.iter().position(|&byte| byte == b'~') else { return false };
    let (stem, number) = (&head[..tilde], &head[tilde + 1..]);
    // `git~1`, `gitmod~1`, and hashed short names such as `gi7eba~1`; the hash is not computed.
    let hashed = special.len() > 3 && stem.len() >= 2 && special.as_bytes().starts_with(&stem[..2]);
    number.first().is_some_and(u8::is_ascii_digit)
        && (special.as_bytes().starts_with(stem) && stem.len() >= 3 || hashed)
}

/// The name without the characters that HFS+ ignores.
fn without_ignorable(name: &[u8]) -> Cow<'_, [u8]> {
    if name.is_ascii() {
        return Cow::Borrowed(name);
    }
    let mut visible = Vec::with_capacity(name.len());
    for chunk in name.utf8_chunks() {
        let ignorable = |c: char| {
            matches!(c, '\u{200c}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
                | '\u{206a}'..='\u{206f}' | '\u{feff}')
        };
        let seen: String = chunk.valid().chars().filter(|&c| !ignorable(c)).collect();
        visible.extend_from_slice(seen.as_bytes());
        visible.extend_from_slice(chunk.invalid());
    }
    Cow::Owned(visible)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: Bearer = Bearer { link: false, large: false };

    #[test]
    fn what_git_rejects_is_escaped_and_comes_back() {
        let names: [&[u8]; 16] = [
            b".GIT", b".Git ", b".git.", b"git~1", b"GIT~1", b".git::$DATA", b".g\xe2\x80\x8cit",
            b".gitmodules", b".GITMODULES", b"gitmod~1", b"gi7eba~1", b"x\\.git", b".git\\x",
            b"%beforehand%", b"%beforehand%00", b".gitmodules ",
        ];
        for name in names {
            let stored = escape(name, FILE);
            assert!(stored.starts_with(MARK), "{}", name.escape_ascii());
            assert_eq!(unescape(&stored).unwrap(), name);
        }
    }

    #[test]
    fn ordinary_names_are_stored_as_they_are() {
        for name in
            [".gitignore", ".github", "git", "a.git", "x~1", "über", "%beforehand", ".mailmap"]
        {
            assert_eq!(escape(name.as_bytes(), FILE), name.as_bytes());
        }
        assert_eq!(escape(b".gitattributes", FILE), &b".gitattributes"[..]);
    }

    #[test]
    fn symlinks_git_would_read_through_are_escaped() {
        let link = Bearer { link: true, large: false };
        for name in [".gitattributes", ".gitignore", ".mailmap"] {
            assert!(escape(name.as_bytes(), link).starts_with(MARK), "{name}");
        }
        let large = Bearer { link: false, large: true };
        assert!(escape(b".gitattributes", large).starts_with(MARK));
        assert_eq!(escape(b".gitignore", large), &b".gitignore"[..]);
    }

    #[test]
    fn a_tampered_name_is_damage() {
        let bad: [&[u8]; 9] = [
            b"..", b".", b"", b".git", b"a/b", b"%beforehand%2e2e", b"%beforehand%2e676974",
            b"%beforehand%zz", b"%beforehand%6",
        ];
        for name in bad {
            assert!(unescape(name).is_err(), "{}", name.escape_ascii());
        }
    }
}
