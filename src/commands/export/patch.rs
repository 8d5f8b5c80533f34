//! Changes as patches in the form of `git format-patch`, which `git am` takes.

use std::fmt::Write as _;

use chrono::{DateTime, Utc};
use flate2::{Compression, write::ZlibEncoder};

use super::message::CommitMessage;
use crate::{
    error::Result,
    model::RelPath,
    restore::{FileChange, GitFile, LINK_MODE},
    scan::GitAuthor,
    ui,
};

/// One patch, but for its files.
pub(super) struct MailPatch<'a> {
    pub(super) number: usize,
    pub(super) count: usize,
    pub(super) author: &'a GitAuthor,
    pub(super) at: DateTime<Utc>,
    pub(super) message: &'a CommitMessage,
    pub(super) names: PatchNames<'a>,
}

/// How blobs are named.
#[derive(Clone, Copy)]
pub(super) struct PatchNames<'a> {
    /// The name of a blob with these bytes, in hex.
    pub(super) blob: &'a dyn Fn(&[u8]) -> Result<String>,
}

impl MailPatch<'_> {
    /// The patch as a mail.
    ///
    /// # Errors
    ///
    /// Fails for bytes of a known SHA-1 collision attack.
    pub(super) fn write<'f>(
        &self,
        files: impl Iterator<Item = (&'f RelPath, &'f FileChange)>,
    ) -> Result<Vec<u8>> {
        let Self { number, count, author: GitAuthor { name, email }, at, message, names } = self;
        let CommitMessage { subject, body } = message;
        let mut mail = format!(
            "From {zeros} Mon Sep 17 00:00:00 2001\nFrom: {name} <{email}>\nDate: {date}\n\
             Subject: [PATCH {number}/{count}] {subject}\nMIME-Version: 1.0\nContent-Type: text/plain; \
             charset=UTF-8\nContent-Transfer-Encoding: 8bit\n\n{body}---\n\n",
            zeros = "0".repeat(40),
            name = header(name),
            date = at.to_rfc2822(),
            subject = header(subject),
        )
        .into_bytes();
        for (path, file) in files {
            names.push_file(&mut mail, path, file)?;
        }
        mail.extend(format!("-- \nbeforehand {}\n\n", env!("CARGO_PKG_VERSION")).bytes());
        Ok(mail)
    }
}

/// A text in the head of a mail: as it is where that is safe, or else encoded.
fn header(text: &str) -> String {
    /// An encoded word is at most 75 bytes.
    const BYTES_MAX: usize = 15;
    let is_plain = |byte: u8| byte == b' ' || byte.is_ascii_graphic();
    let is_safe = text.len() <= 120
        && text.bytes().all(is_plain)
        && !text.contains(['<', '>', '"', '\\', '(', ')', ',', ';', '@'])
        && !text.contains("=?")
        && !text.starts_with('[')
        && text.trim() == text;
    if is_safe {
        return text.to_owned();
    }
    let mut words: Vec<String> = Vec::new();
    let mut word = String::new();
    for c in text.chars().map(|c| if c.is_control() { ' ' } else { c }) {
        if word.len() + c.len_utf8() > BYTES_MAX {
            words.push(std::mem::take(&mut word));
        }
        word.push(c);
    }
    words.push(word);
    let quoted = |word: &String| {
        let mut bytes = String::new();
        for byte in word.bytes() {
            let _infallible = write!(bytes, "={byte:02X}");
        }
        format!("=?UTF-8?q?{bytes}?=")
    };
    words.iter().map(quoted).collect::<Vec<_>>().join("\n ")
}

impl PatchNames<'_> {
    fn push_file(self, mail: &mut Vec<u8>, path: &RelPath, file: &FileChange) -> Result<()> {
        let is_link = |file: &Option<GitFile>| file.as_ref().map(|file| file.mode == LINK_MODE);
        match (&file.before, &file.after) {
            // git has two patches where a file becomes a symlink.
            (Some(_), Some(_)) if is_link(&file.before) != is_link(&file.after) => {
                self.push_change(mail, path, (file.before.as_ref(), None))?;
                self.push_change(mail, path, (None, file.after.as_ref()))
            }
            (before, after) => self.push_change(mail, path, (before.as_ref(), after.as_ref())),
        }
    }

    fn push_change(
        self,
        mail: &mut Vec<u8>,
        path: &RelPath,
        (before, after): (Option<&GitFile>, Option<&GitFile>),
    ) -> Result<()> {
        let name = |side: &str| quoted(&[side.as_bytes(), path.as_bytes()].concat());
        let (a, b) = (name("a/"), name("b/"));
        let [old, new] = [before, after].map(|file| file.map_or(&[][..], |file| &file.bytes));
        let mut head = format!("diff --git {a} {b}\n{}", modes(before, after));
        if before.is_some() != after.is_some() || old != new {
            let new_id = self.id(after)?;
            let old_id = if before.is_some() { self.id(before)? } else { "0".repeat(new_id.len()) };
            let new_id = if after.is_some() { new_id } else { "0".repeat(old_id.len()) };
            let _infallible = write!(head, "index {old_id}..{new_id}");
            let same = before.zip(after).filter(|(before, after)| before.mode == after.mode);
            let _infallible = match same {
                Some((_, after)) => writeln!(head, " {:06o}", after.mode),
                None => writeln!(head),
            };
        }
        mail.extend(head.bytes());
        if old == new {
            return Ok(());
        }
        if is_text(old) && is_text(new) {
            let side = |file: Option<&GitFile>, name: String| match file {
                Some(_) if name.contains(' ') && !name.starts_with('"') => format!("{name}\t"),
                Some(_) => name,
                None => "/dev/null".to_owned(),
            };
            mail.extend(format!("--- {}\n+++ {}\n", side(before, a), side(after, b)).bytes());
            mail.extend(ui::raw_hunks(old, new));
        } else {
            mail.extend(b"GIT binary patch\n");
            push_literal(mail, new);
            push_literal(mail, old);
        }
        Ok(())
    }

    fn id(self, file: Option<&GitFile>) -> Result<String> {
        (self.blob)(file.map_or(&[], |file| &file.bytes))
    }
}

/// The lines about modes.
fn modes(before: Option<&GitFile>, after: Option<&GitFile>) -> String {
    match (before, after) {
        (None, Some(after)) => format!("new file mode {:06o}\n", after.mode),
        (Some(before), None) => format!("deleted file mode {:06o}\n", before.mode),
        (Some(before), Some(after)) if before.mode != after.mode => {
            format!("old mode {:06o}\nnew mode {:06o}\n", before.mode, after.mode)
        }
        (_, _) => String::new(),
    }
}

/// Whether a mail carries it as it is: carriage returns and foreign bytes do not always arrive.
fn is_text(bytes: &[u8]) -> bool {
    str::from_utf8(bytes).is_ok() && !bytes.contains(&0) && !bytes.contains(&b'\r')
}

/// A name as git writes it: between quotes if it needs any.
fn quoted(name: &[u8]) -> String {
    let is_plain = |byte: &u8| matches!(byte, b' '..=b'~') && !matches!(byte, b'"' | b'\\');
    if name.iter().all(is_plain) {
        return String::from_utf8_lossy(name).into_owned();
    }
    let mut text = String::from("\"");
    for byte in name {
        match byte {
            b'"' => text.push_str("\\\""),
            b'\\' => text.push_str("\\\\"),
            b' '..=b'~' => text.push(char::from(*byte)),
            _ => text.push_str(&format!("\\{byte:03o}")),
        }
    }
    text.push('"');
    text
}

/// All bytes of one side of a binary patch.
fn push_literal(mail: &mut Vec<u8>, bytes: &[u8]) {
    use std::io::Write as _;
    /// As many as a letter can say the number of.
    const LINE_BYTES: usize = 52;
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
    let packed = encoder.write_all(bytes).and_then(|()| encoder.finish());
    let packed = packed.expect("a vector takes every write");
    mail.extend(format!("literal {}\n", bytes.len()).bytes());
    for line in packed.chunks(LINE_BYTES) {
        let count = u8::try_from(line.len()).expect("a line has at most 52 bytes");
        mail.push(if count <= 26 { b'A' + count - 1 } else { b'a' + count - 27 });
        line.chunks(4).for_each(|four| mail.extend(base85(four)));
        mail.push(b'\n');
    }
    mail.push(b'\n');
}

/// Up to four bytes in five digits, as git writes them.
fn base85(bytes: &[u8]) -> [u8; 5] {
    const DIGITS: &[u8; 85] =
        b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~";
    let byte = |at: usize| u32::from(bytes.get(at).copied().unwrap_or(0)) << (24 - 8 * at);
    let mut rest = (0..4).map(byte).sum::<u32>();
    let mut digits = [0; 5];
    for digit in digits.iter_mut().rev() {
        *digit = DIGITS[usize::try_from(rest % 85).unwrap_or(0)];
        rest /= 85;
    }
    digits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_quoted_as_git_quotes_it() {
        assert_eq!(quoted(b"a/b c.txt"), "a/b c.txt");
        assert_eq!(quoted("a/\u{e9}\"\\\n".as_bytes()), r#""a/\303\251\"\\\012""#);
    }

    #[test]
    fn a_header_holds_no_line_of_its_own() {
        assert_eq!(header("Change a and 2 more"), "Change a and 2 more");
        assert_eq!(header("\u{e9}"), "=?UTF-8?q?=C3=A9?=");
        for text in ["a\nFrom: b", "[PATCH] x", "=?UTF-8?q?x?=", &"long ".repeat(40)] {
            let header = header(text);
            let is_word = |line: &str| line.starts_with("=?UTF-8?q?") && line.len() <= 75;
            assert!(header.split("\n ").all(is_word), "{header}");
        }
    }

    #[test]
    fn four_bytes_are_five_digits() {
        assert_eq!(&base85(&[0, 0, 0, 0]), b"00000");
        assert_eq!(&base85(&[255, 255, 255, 255]), b"|NsC0");
    }
}
