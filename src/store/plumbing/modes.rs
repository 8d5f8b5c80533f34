//! File modes that git trees cannot express: permission bits other than executable, pipes, sockets,
//! devices.
//!
//! Stored in the `modes` blob of a checkpoint, a record for each such file, sorted by path: the
//! mode in octal, `:` and the number for a device, a space, the path, and a NUL. Equal contents
//! make equal blobs.

use std::io::Write as _;

use crate::{
    cache::TableRow,
    error::{Error, Result},
    model::{DefaultModes, Kind, RelPath, ScanEntry, in_tree_order, join_path},
    scan::Scan,
};

/// One record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::store) struct ModeRecord {
    pub(in crate::store) path: RelPath,
    pub(in crate::store) kind: Kind,
    pub(in crate::store) permissions: u32,
    pub(in crate::store) device: u64,
}

/// What one pass over a scan finds.
#[derive(Default)]
pub(in crate::store) struct Summary {
    /// Files that need a record, sorted by path.
    pub(in crate::store) odd: Vec<(Vec<u8>, ScanEntry)>,
    /// Private files, which are not in the tree.
    pub(in crate::store) private: Vec<(Vec<u8>, ScanEntry)>,
}

/// Goes through a scan once its files have been read.
pub(in crate::store) fn summarize(scan: &Scan) -> Summary {
    let mut summary = Summary::default();
    scan.each(|dir, row| {
        let Some(kind) = row.kind().filter(|_| row.skipped.is_none()) else { return };
        let list = if row.marks.private {
            &mut summary.private
        } else if is_odd(kind, &row, &scan.default_modes) {
            &mut summary.odd
        } else {
            return;
        };
        list.push((join_path(dir, row.name), row.to_found()));
    });
    // A scan returns rows by directory; sorted paths make the blob independent of that.
    summary.odd.sort_by(|a, b| in_tree_order(&a.0, &b.0));
    summary
}

impl Summary {
    /// The blob; empty if no file needs a record.
    pub(in crate::store) fn modes(&self) -> Vec<u8> {
        let mut blob = Vec::new();
        for (path, found) in &self.odd {
            if let Some(kind) = found.kind() {
                put(&mut blob, kind, found.stamp.permissions(), found.stamp.size, path);
            }
        }
        blob
    }
}

fn is_odd(kind: Kind, row: &TableRow<'_>, default_modes: &DefaultModes) -> bool {
    let permissions = row.stamp.permissions();
    match kind {
        Kind::File if permissions & 0o100 != 0 => permissions != default_modes.executable,
        Kind::File => permissions != default_modes.file,
        Kind::Directory => permissions != default_modes.directory,
        Kind::Link => false,
        Kind::Fifo | Kind::Socket | Kind::CharDevice | Kind::BlockDevice => true,
    }
}

/// Appends a record.
pub(in crate::store) fn put(
    out: &mut Vec<u8>,
    kind: Kind,
    permissions: u32,
    device: u64,
    path: &[u8],
) {
    write!(out, "{:o}", kind.mode_bits() | permissions).expect("memory takes every write");
    if matches!(kind, Kind::CharDevice | Kind::BlockDevice) {
        write!(out, ":{device}").expect("memory takes every write");
    }
    out.push(b' ');
    out.extend_from_slice(path);
    out.push(0);
}

/// Parses the blob.
///
/// # Errors
///
/// [`Error::Damaged`] for anything that we do not write.
pub(in crate::store) fn parse(blob: &[u8]) -> Result<Vec<ModeRecord>> {
    let records = parse_in_git_dir(blob)?;
    if records.iter().any(|it| it.path.names().any(|name| name == b".git")) {
        return Err(Error::damaged("modes", "one is for a place of git's own"));
    }
    Ok(records)
}

/// Parses the blob for the files of a git directory, as [`parse`] does.
///
/// # Errors
///
/// As [`parse`].
pub(in crate::store) fn parse_in_git_dir(blob: &[u8]) -> Result<Vec<ModeRecord>> {
    let damaged = || Error::damaged("modes", "not a list of modes and paths");
    let Some(blob) = blob.strip_suffix(&[0]) else {
        return if blob.is_empty() { Ok(Vec::new()) } else { Err(damaged()) };
    };
    blob.split(|&byte| byte == 0).map(|record| parse_record(record).ok_or_else(damaged)).collect()
}

fn parse_record(record: &[u8]) -> Option<ModeRecord> {
    let space = record.iter().position(|&byte| byte == b' ')?;
    let head = str::from_utf8(&record[..space]).ok()?;
    let path = RelPath::from_bytes(&record[space + 1..]).ok()?;
    let (mode, device) = match head.split_once(':') {
        Some((mode, device)) => (mode, device.parse().ok()?),
        None => (head, 0),
    };
    let mode = u32::from_str_radix(mode, 8).ok()?;
    let kind = Kind::of_mode(mode)?;
    Some(ModeRecord { path, kind, permissions: mode & 0o7777, device })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_come_back() {
        let mut blob = Vec::new();
        put(&mut blob, Kind::File, 0o600, 7, b"a b\nc");
        put(&mut blob, Kind::BlockDevice, 0o660, 2049, b"d/e");
        put(&mut blob, Kind::Fifo, 0o4644, 0, b"f");
        let read = parse(&blob).unwrap();
        assert_eq!(blob, b"100600 a b\nc\x0060660:2049 d/e\x0014644 f\x00");
        assert_eq!(read.len(), 3);
        assert_eq!((read[1].kind, read[1].device), (Kind::BlockDevice, 2049));
        assert_eq!((read[2].kind, read[2].permissions), (Kind::Fifo, 0o4644));
    }

    #[test]
    fn tampered_records_are_damage() {
        for bad in ["x", "100644 ../a\0", "100644 /a\0", "8 a\0", "100644 a", "100644 \0", "0 a\0"]
        {
            assert!(parse(bad.as_bytes()).is_err(), "{bad:?}");
        }
        assert_eq!(parse(b"").unwrap(), []);
    }
}
