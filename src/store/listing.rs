//! Listings: paths held separately from the tree or outside the root, stored as one text object.
//!
//! Each line is `MODE SIZE DEVICE ID PATH`, sorted by the bytes of the path.

use std::{
    collections::BTreeMap,
    ffi::OsStr,
    fmt::Write as _,
    os::unix::ffi::OsStrExt,
    path::{Component, Path, PathBuf},
};

use super::objects::{self, object};
use crate::{
    error::{Error, Result},
    model::{
        Content, ContentId, Entry, Kind, RelPath, Storage,
        escape::{escape_into, unescape},
    },
};

/// One line: an entry, and the size of its content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListingLine {
    /// The entry.
    pub entry: Entry,
    /// The size of its content in bytes.
    pub size: u64,
}

/// Lines by path: relative to the root, or absolute.
pub type Listing = BTreeMap<Vec<u8>, ListingLine>;

/// The text of a listing.
pub fn to_text(listing: &Listing) -> String {
    let mut text = String::new();
    for (path, ListingLine { entry, size }) in listing {
        let mode = entry.kind.mode_bits() | entry.permissions;
        write!(text, "{mode:06o} {size} {} ", entry.device).expect("a string takes every write");
        match entry.content {
            None => text.push('-'),
            Some(content) => text.push_str(&content.id.to_string()),
        }
        text.push(' ');
        escape_into(&mut text, path);
        text.push('\n');
    }
    text
}

/// The id that a listing has or would have; `None` for an empty one, which is not stored.
pub fn id_of(listing: &Listing) -> Option<ContentId> {
    (!listing.is_empty()).then(|| objects::id_of(to_text(listing).as_bytes()))
}

/// Parses the listing stored as `id`, with contents in the naming of `place`.
///
/// # Errors
///
/// [`Error::Damaged`] for any text that [`to_text`] does not produce.
pub fn parse(id: &ContentId, text: &[u8], place: Storage) -> Result<Listing> {
    let damaged = |why: &str| Error::damaged(object(id), why);
    let text = str::from_utf8(text).map_err(|_| damaged("not text"))?;
    let mut listing = Listing::new();
    for line in text.split_terminator('\n') {
        let (path, line) =
            parse_line(line, place).ok_or_else(|| damaged("a line is not an entry"))?;
        listing.insert(path, line);
    }
    if to_text(&listing) != text {
        return Err(damaged("its lines are not in order"));
    }
    Ok(listing)
}

/// The entries of a listing by path below the root.
///
/// # Errors
///
/// [`Error::Damaged`] if a path is not below the root.
pub fn below(id: &ContentId, listing: &Listing) -> Result<BTreeMap<RelPath, Entry>> {
    let rel = |(path, line): (&Vec<u8>, &ListingLine)| {
        let path = RelPath::from_bytes(path)
            .map_err(|_| Error::damaged(object(id), "a path leads out of the root"))?;
        Ok((path, line.entry))
    };
    listing.iter().map(rel).collect()
}

/// The entries of a listing by absolute path.
///
/// # Errors
///
/// [`Error::Damaged`] if a path is not absolute, or contains `.` or `..`.
pub fn outside(id: &ContentId, listing: &Listing) -> Result<BTreeMap<PathBuf, Entry>> {
    let absolute = |(path, line): (&Vec<u8>, &ListingLine)| {
        let path = PathBuf::from(OsStr::from_bytes(path));
        if is_plain_absolute(&path) {
            Ok((path, line.entry))
        } else {
            Err(Error::damaged(object(id), "a path outside the root is not absolute"))
        }
    };
    listing.iter().map(absolute).collect()
}

fn is_plain_absolute(path: &Path) -> bool {
    let mut rebuilt = PathBuf::from("/");
    for component in path.components() {
        match component {
            Component::RootDir => (),
            Component::Normal(name) if !name.as_bytes().contains(&0) => rebuilt.push(name),
            Component::Normal(_)
            | Component::CurDir
            | Component::ParentDir
            | Component::Prefix(_) => return false,
        }
    }
    path.as_os_str() == rebuilt.as_os_str()
}

fn parse_line(line: &str, place: Storage) -> Option<(Vec<u8>, ListingLine)> {
    let mut fields = line.split(' ');
    let mode = u32::from_str_radix(fields.next()?, 8).ok()?;
    let (size, device): (u64, _) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
    let content = parse_content(fields.next()?, place).ok()?;
    let path = unescape(fields.next()?)?;
    let entry = Entry { kind: Kind::of_mode(mode)?, permissions: mode & 0o7777, content, device };
    let whole = fields.next().is_none() && mode <= 0o177_777;
    let may_have = entry.kind.has_content() || content.is_none();
    (whole && may_have).then_some((path, ListingLine { entry, size }))
}

/// The text is neither an id nor `-`.
#[derive(Debug)]
pub(super) struct NotContent;

/// Parses an id in the naming of `place`, or `-` for no content.
pub(super) fn parse_content(text: &str, place: Storage) -> Result<Option<Content>, NotContent> {
    if text == "-" {
        return Ok(None);
    }
    let id = ContentId::parse(text).ok_or(NotContent)?;
    Ok(Some(Content { id, place }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(kind: Kind) -> ListingLine {
        let id = ContentId::new(&[7; 32]);
        let content = kind.has_content().then_some(Content { id, place: Storage::Files });
        ListingLine { entry: Entry { kind, permissions: 0o600, content, device: 0 }, size: 3 }
    }

    #[test]
    fn what_was_listed_is_read_back() {
        let listing = Listing::from([
            (b"/etc/a b\n".to_vec(), line(Kind::File)),
            (b"/etc/\xff".to_vec(), line(Kind::Link)),
            (b"/etc".to_vec(), line(Kind::Directory)),
        ]);
        let text = to_text(&listing);
        let id = ContentId::new(&[1; 32]);
        assert_eq!(parse(&id, text.as_bytes(), Storage::Files).unwrap(), listing);
        assert_eq!(outside(&id, &listing).unwrap().len(), 3);
        assert!(below(&id, &listing).is_err());
    }

    #[test]
    fn a_tampered_listing_is_damage_and_leads_nowhere() {
        let id = ContentId::new(&[1; 32]);
        let hash = "07".repeat(32);
        for bad in [
            "100600 3 0 - a",
            "1006000 3 0 - a\n",
            "100600 3 0 - \n",
            "100600 x 0 - a\n",
            "000600 3 0 - a\n",
            "100600 3 0 07 a\n",
            "100600 3 0 - b\n100600 3 0 - a\n",
            "100600 3 0 - a\n100600 3 0 - a\n",
            &format!("040700 0 0 {hash} a\n"),
            "100600 3 0 - a b\n",
        ] {
            let read =
                parse(&id, bad.as_bytes(), Storage::Files).and_then(|listing| below(&id, &listing));
            assert!(matches!(read, Err(Error::Damaged { .. })), "{bad}");
        }
        for path in ["..", "/a/../b", "a//b", "/a/", "", "a\\0000b"] {
            let text = format!("100600 3 0 {hash} {path}\n");
            let read = |way: fn(&ContentId, &Listing) -> Result<usize>| {
                parse(&id, text.as_bytes(), Storage::Files).and_then(|listing| way(&id, &listing))
            };
            assert!(read(|id, listing| Ok(below(id, listing)?.len())).is_err(), "{path}");
            assert!(read(|id, listing| Ok(outside(id, listing)?.len())).is_err(), "{path}");
        }
    }
}
