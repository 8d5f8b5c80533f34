//! Reads, copies and removes packs and loose objects by their files and indexes, without opening an
//! object database.

use std::{
    collections::HashSet,
    fs,
    io::{self, BufReader},
    ops::Range,
    os::unix::{ffi::OsStrExt, fs::MetadataExt},
    path::{Path, PathBuf},
};

use gix::{ObjectId, hash::Kind as HashKind};

use super::super::names_of;
use crate::{
    error::{Error, Result},
    fs::{open_regular, read_small, space, stat_path},
    store::plumbing::pack::GitPackWriter,
};

/// Enough for an index of more than ten million objects.
const INDEX_MAX_BYTES: u64 = 512 << 20;
/// A larger pack is rewritten only if more than a quarter of it is unused.
const REWRITTEN_MAX_BYTES: u64 = 64 << 20;
/// Marks an offset that refers to the table of 8-byte offsets.
const LARGE: u32 = 1 << 31;

/// One row of a pack index: object id, checksum, and range in the pack.
pub(in crate::store) type PackIndexRow = (ObjectId, u32, Range<u64>);

/// The ids of all objects in one of our object directories.
pub(super) fn own_ids(objects: &Path, hash: HashKind) -> Result<HashSet<ObjectId>> {
    let mut ids: HashSet<ObjectId> = loose_in(objects).into_iter().map(|(_, id)| id).collect();
    for (_, path) in own_packs(&objects.join("pack")) {
        ids.extend(rows_of(&path, hash)?.into_iter().map(|(id, _, _)| id));
    }
    Ok(ids)
}

/// The ids of the objects in a pack.
///
/// # Errors
///
/// Fails if its index cannot be read.
pub(super) fn ids_of(pack: &Path, hash: HashKind) -> Result<Vec<ObjectId>> {
    Ok(rows_of(pack, hash)?.into_iter().map(|(id, _, _)| id).collect())
}

/// The loose objects in an object directory.
pub(super) fn loose_in(objects: &Path) -> Vec<(PathBuf, ObjectId)> {
    let mut found = Vec::new();
    for fan in names_of(objects).unwrap_or_default() {
        let Some(fan) = fan.to_str().filter(|fan| fan.len() == 2) else { continue };
        for rest in names_of(&objects.join(fan)).unwrap_or_default() {
            let id =
                rest.to_str().map(|rest| ObjectId::from_hex(format!("{fan}{rest}").as_bytes()));
            if let Some(Ok(id)) = id {
                found.push((objects.join(fan).join(&rest), id));
            }
        }
    }
    found
}

/// The packs in a directory that have an index, with their sizes.
pub(super) fn own_packs(dir: &Path) -> Vec<(u64, PathBuf)> {
    let names = names_of(dir).unwrap_or_default();
    let packs = names.iter().filter(|name| name.as_bytes().ends_with(b".idx"));
    packs
        .filter_map(|name| {
            let path = dir.join(name).with_extension("pack");
            Some((stat_path(&path).ok()?.size, path))
        })
        .collect()
}

pub(super) fn size_on_disk(path: &Path) -> u64 {
    let own = |path: &Path| {
        fs::symlink_metadata(path)
            .map_or(0, |it| if it.nlink() > 1 { 0 } else { it.blocks() * 512 })
    };
    if path.extension().is_some_and(|end| end == "pack") {
        own(path) + own(&path.with_extension("idx"))
    } else {
        own(path)
    }
}

/// Removes a pack: its index first, as git does, so that no reader finds an index without its pack.
pub(super) fn remove_pack(path: &Path) -> io::Result<u64> {
    let freed = size_on_disk(path);
    // A `multi-pack-index` that another git wrote would refer to packs that are going.
    let _absent = fs::remove_file(path.with_file_name("multi-pack-index"));
    for extension in ["idx", "rev", "bitmap", "promisor", "mtimes"] {
        let _absent = fs::remove_file(path.with_extension(extension));
    }
    match fs::remove_file(path) {
        Err(err) if err.kind() != io::ErrorKind::NotFound => Err(err),
        Ok(()) | Err(_) => Ok(freed),
    }
}

/// Whether the file system has room for a copy of so many bytes.
pub(in crate::store) fn has_room(dir: &Path, bytes: u64) -> bool {
    space(dir).map_or(true, |(_, free)| free / 2 >= bytes)
}

/// Whether to rewrite a pack of `size` bytes of which `dead` are unused.
pub(in crate::store) fn is_worth_rewriting(dead: u64, size: u64) -> bool {
    size <= REWRITTEN_MAX_BYTES || dead > size / 4
}

/// Copies the entries of one of our packs that `wanted` selects into another.
pub(super) fn copy_rows(
    path: &Path,
    hash: HashKind,
    to: &mut GitPackWriter,
    mut wanted: impl FnMut(&ObjectId) -> bool,
) -> io::Result<()> {
    let rows = rows_of(path, hash).map_err(|err| io::Error::other(err.to_string()))?;
    let (file, _) = open_regular(path)?;
    let (mut file, mut at) = (BufReader::with_capacity(256 << 10, file), 0);
    for (id, crc, range) in rows {
        if wanted(&id) {
            let ahead = i64::try_from(range.start - at).map_err(|_| damaged())?;
            file.seek_relative(ahead)?;
            to.copy(id, crc, &mut file, range.end - range.start)?;
            at = range.end;
        }
    }
    Ok(())
}

fn damaged() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "a pack is not as its index says")
}

/// Reads the index of a pack.
pub(super) fn rows_of(pack: &Path, hash: HashKind) -> Result<Vec<PackIndexRow>> {
    let index = read_small(&pack.with_extension("idx"), INDEX_MAX_BYTES)?.unwrap_or_default();
    let length = stat_path(pack).map_or(0, |stamp| stamp.size);
    rows(&index, length, hash)
        .ok_or_else(|| Error::damaged(pack.display().to_string(), "it is not as its index says"))
}

/// Which packs to merge, given their sizes in ascending order: none unless there are more than
/// `max`.
///
/// A pack stays if it is at least twice as large as all smaller ones together. A byte is therefore
/// copied once each time the total doubles: gigabytes rarely, and never just for one small new
/// pack.
pub(in crate::store) fn which(sizes: &[u64], max: usize) -> Range<usize> {
    if sizes.len() <= max {
        return 0..0;
    }
    let (mut below, mut count) = (0_u64, 0);
    for (n, size) in sizes.iter().enumerate() {
        if *size < below.saturating_mul(2) {
            count = n + 1;
        }
        below = below.saturating_add(*size);
    }
    // Leaves half of the allowed number, so that the next merge is not due at once.
    0..count.max(sizes.len() + 1 - max / 2)
}

/// The rows of a version 2 index, sorted by position. An entry ends where the next one begins.
pub(in crate::store) fn rows(
    index: &[u8],
    pack_bytes: u64,
    hash: HashKind,
) -> Option<Vec<PackIndexRow>> {
    let width = hash.len_in_bytes();
    let u32_at = |at: usize| {
        let bytes = index.get(at..at.checked_add(4)?)?;
        Some(u32::from_be_bytes(bytes.try_into().ok()?))
    };
    if index.get(..8)? != b"\xfftOc\0\0\0\x02" {
        return None;
    }
    let count = u32_at(8 + 255 * 4)? as usize;
    let ids: usize = 8 + 256 * 4;
    let crcs = ids.checked_add(count.checked_mul(width)?)?;
    let offsets = crcs.checked_add(count.checked_mul(4)?)?;
    let large = offsets.checked_add(count.checked_mul(4)?)?;
    let mut found = Vec::new();
    for number in 0..count {
        let id = index.get(ids + number * width..ids + (number + 1) * width)?;
        let offset = match u32_at(offsets + number * 4)? {
            offset if offset < LARGE => u64::from(offset),
            row => {
                let at = large.checked_add(((row ^ LARGE) as usize).checked_mul(8)?)?;
                u64::from(u32_at(at)?) << 32 | u64::from(u32_at(at + 4)?)
            }
        };
        found.push((offset, ObjectId::from_bytes_or_panic(id), u32_at(crcs + number * 4)?));
    }
    found.sort_unstable_by_key(|(offset, _, _)| *offset);
    let end = pack_bytes.checked_sub(width as u64)?;
    let ends: Vec<u64> = found.iter().skip(1).map(|(offset, _, _)| *offset).chain([end]).collect();
    let rows = found.into_iter().zip(ends).map(|((at, id, crc), end)| (id, crc, at..end));
    let rows: Vec<PackIndexRow> = rows.collect();
    rows.iter().all(|(_, _, range)| range.start <= range.end).then_some(rows)
}

#[cfg(test)]
mod tests {
    use super::{super::PACKS_MAX, *};

    /// Adds packs one by one, as saves do. Returns the greatest number of packs, and the bytes
    /// copied for each byte added.
    fn live(added: impl Iterator<Item = u64>) -> (usize, u64) {
        let (mut packs, mut most) = (Vec::<u64>::new(), 0);
        let (mut copied, mut total) = (0, 0);
        for size in added {
            total += size;
            packs.push(size);
            most = most.max(packs.len());
            packs.sort_unstable();
            let chosen = which(&packs, PACKS_MAX);
            if chosen.len() > 1 {
                let merged: u64 = packs.drain(chosen).sum();
                copied += merged;
                packs.push(merged);
            }
        }
        assert_eq!(packs.iter().sum::<u64>(), total, "not a byte is lost");
        (most, copied / total)
    }

    #[test]
    fn there_are_never_many_and_gigabytes_are_seldom_copied() {
        const MB: u64 = 1 << 20;
        let mixed = |n: u64| if n.is_multiple_of(9) { 300 * MB } else { 1 + n * n % MB };
        for (copied, (found, times)) in [
            (8, live((0..2000).map(|_| MB))),
            (8, live((0..2000).map(|_| 500 * MB))),
            (8, live((0..2000).map(mixed))),
            // One large first checkpoint, then only small ones.
            (1, live((0..2000).map(|n| if n == 0 { 20_000 * MB } else { 10_000 }))),
        ] {
            assert!(found <= 17, "{found} packs");
            assert!(times <= copied, "each byte was copied {times} times instead of {copied}");
        }
    }

    #[test]
    fn an_entry_beyond_two_gigabytes_is_found() {
        let id = |byte| ObjectId::Sha1([byte; 20]);
        let rows_then = [(id(1), 7, 12), (id(2), 8, 5 << 30)];
        let index =
            crate::store::plumbing::pack::index_of(&rows_then, &id(9), HashKind::Sha1).unwrap();
        let found = rows(&index, (6 << 30) + 20, HashKind::Sha1).unwrap();
        assert_eq!(found, [(id(1), 7, 12..5 << 30), (id(2), 8, 5 << 30..6 << 30)]);
    }
}
