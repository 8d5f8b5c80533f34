//! Directory objects: the entries of one directory as text that a shell can read.
//!
//! Each line is `KIND MODE SIZE ID NAME`, sorted by the bytes of the name. Any text that
//! [`to_text`] does not produce is damage, because a directory object may have been tampered with.

use std::fmt::Write as _;

use crate::{
    error::{Error, Result},
    model::{
        Content, ContentId, Directory, Entry, Kind, ScanEntry, Storage,
        escape::{escape_into, unescape},
    },
    store::{
        listing::{ListingLine, parse_content},
        objects::{Objects, object},
    },
};

const LETTERS: [(Kind, &str); 7] = [
    (Kind::File, "f"),
    (Kind::Link, "l"),
    (Kind::Directory, "d"),
    (Kind::Fifo, "p"),
    (Kind::Socket, "s"),
    (Kind::CharDevice, "c"),
    (Kind::BlockDevice, "b"),
];

/// The entry of a scanned file, and the size of its content; `None` if it is not held.
pub(in crate::store) fn entry_of(found: &ScanEntry, place: Storage) -> Option<ListingLine> {
    let kind = found.kind().filter(|_| found.is_held())?;
    let content = found.content.map(|id| Content { id, place });
    let has_content = kind.has_content() || kind == Kind::Directory;
    if has_content && content.is_none() {
        return None;
    }
    let is_device = matches!(kind, Kind::CharDevice | Kind::BlockDevice);
    let entry = Entry {
        kind,
        permissions: if kind == Kind::Link { 0o777 } else { found.stamp.permissions() },
        content: content.filter(|_| has_content),
        device: if is_device { found.stamp.size } else { 0 },
    };
    let size = if kind.has_content() { found.stamp.size } else { 0 };
    Some(ListingLine { entry, size })
}

/// The text of a directory. Entries that are not held are left out.
pub(in crate::store) fn to_text(found: &[ScanEntry]) -> String {
    let mut text = String::with_capacity(found.len() * 100);
    for found in found {
        if let Some(line) = entry_of(found, Storage::Files) {
            put_line(&mut text, &found.name, line);
        }
    }
    text
}

/// The entries of a directory, as [`parse`] would return them.
pub(in crate::store) fn entries(found: &[ScanEntry]) -> Directory {
    let entry =
        |found: &ScanEntry| Some((found.name.clone(), entry_of(found, Storage::Files)?.entry));
    found.iter().filter_map(entry).collect()
}

fn put_line(text: &mut String, name: &[u8], ListingLine { entry, size }: ListingLine) {
    let letter = LETTERS.iter().find(|(kind, _)| *kind == entry.kind).map_or("?", |known| known.1);
    let number = if entry.device == 0 { size } else { entry.device };
    write!(text, "{letter} {:04o} {number} ", entry.permissions)
        .expect("a string takes every write");
    match entry.content {
        Some(content) => write!(text, "{} ", content.id).expect("a string takes every write"),
        None => text.push_str("- "),
    }
    escape_into(text, name);
    text.push('\n');
}

/// Parses the directory stored as `id`.
///
/// # Errors
///
/// [`Error::Damaged`] for any text that [`to_text`] does not produce.
pub(crate) fn parse(id: &ContentId, text: &[u8]) -> Result<Directory> {
    let damaged = |why: &str| Error::damaged(object(id), why);
    let text = str::from_utf8(text).map_err(|_| damaged("not text"))?;
    if !text.is_empty() && !text.ends_with('\n') {
        return Err(damaged("its last line is cut off"));
    }
    let mut directory = Directory::new();
    for line in text.split_terminator('\n') {
        let (name, entry) = parse_line(line).ok_or_else(|| damaged("a line is not an entry"))?;
        if directory.last_key_value().is_some_and(|(last, _)| *last >= name) {
            return Err(damaged("its names are not in order"));
        }
        directory.insert(name, entry);
    }
    Ok(directory)
}

fn parse_line(line: &str) -> Option<(Vec<u8>, Entry)> {
    let mut fields = line.split(' ');
    let letter = fields.next()?;
    let kind = LETTERS.iter().find(|(_, known)| *known == letter)?.0;
    let permissions = parse_mode(fields.next()?)?;
    let number: u64 = fields.next()?.parse().ok()?;
    let content = parse_content(fields.next()?, Storage::Files).ok()?;
    let name = unescape(fields.next()?).filter(|name| is_name(name))?;
    let has_content = kind.has_content() || kind == Kind::Directory;
    let is_device = matches!(kind, Kind::CharDevice | Kind::BlockDevice);
    let device = if is_device { number } else { 0 };
    let whole = fields.next().is_none() && has_content == content.is_some();
    whole.then_some((name, Entry { kind, permissions, content, device }))
}

fn parse_mode(text: &str) -> Option<u32> {
    let is_octal = text.len() == 4 && text.bytes().all(|byte| matches!(byte, b'0'..=b'7'));
    u32::from_str_radix(text, 8).ok().filter(|_| is_octal)
}

/// Whether a name is valid in a directory and does not lead out of it.
fn is_name(name: &[u8]) -> bool {
    !matches!(name, b"" | b"." | b"..") && !name.iter().any(|byte| matches!(byte, b'/' | 0))
}

/// Reads a directory object.
///
/// # Errors
///
/// Fails if it is missing or damaged.
pub(in crate::store) fn read_directory(objects: &Objects, id: &ContentId) -> Result<Directory> {
    parse(id, &objects.read(id)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Marks, Stamp};

    fn found(name: &[u8], kind: Kind) -> ScanEntry {
        let has_content = kind.has_content() || kind == Kind::Directory;
        ScanEntry {
            name: name.to_vec(),
            stamp: Stamp { mode: kind.mode_bits() | 0o4751, size: 259, ..Stamp::default() },
            content: has_content.then(|| ContentId::new(&[5; 32])),
            marks: Marks::default(),
            skipped: None,
        }
    }

    #[test]
    fn every_kind_and_name_is_read_back() {
        let names: [&[u8]; 7] = [b"\n", b" a'b\"", b"-rf", b"\\", b"a", b"a-b", b"\xff"];
        let found: Vec<_> =
            LETTERS.iter().zip(names).map(|((kind, _), name)| found(name, *kind)).collect();
        let id = ContentId::new(&[1; 32]);
        let text = to_text(&found);
        assert_eq!(parse(&id, text.as_bytes()).unwrap(), entries(&found));
        assert!(text.contains("c 4751 259 - a-b\n"), "{text}");
    }

    #[test]
    fn a_tampered_directory_is_damage() {
        let id = ContentId::new(&[1; 32]);
        let hash = "05".repeat(32);
        let good = format!("f 0644 1 {hash} a\n");
        assert!(parse(&id, good.as_bytes()).is_ok() && parse(&id, b"").is_ok());
        for bad in [
            "f 0644 1 - a\n".to_owned(),
            format!("p 0644 1 {hash} a\n"),
            good.replace(" a\n", " ..\n"),
            good.replace(" a\n", " .\n"),
            good.replace(" a\n", " \n"),
            good.replace(" a\n", " a/b\n"),
            good.replace(" a\n", " a\\0000\n"),
            good.replace(" a\n", " /etc/passwd\n"),
            good.replace(" a\n", " a\r\n"),
            good.replace('\n', ""),
            good.replace("0644", "+644"),
            good.replace("0644", "644"),
            good.replace('f', "x"),
            good.replace("05", "5"),
            good.repeat(2),
            format!("{}{good}", good.replace(" a", " b")),
        ] {
            let read = parse(&id, bad.as_bytes());
            assert!(matches!(read, Err(Error::Damaged { .. })), "{bad:?}");
        }
        assert!(parse(&id, b"\xff\n").is_err());
    }
}
