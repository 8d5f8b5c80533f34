//! Writes a pack: version 2, without deltas, and its index.
//!
//! Objects are appended to a temporary file as they come, so memory holds only an index row for
//! each. Their number is known at the end, when header and checksum are written.

use std::{
    fs::File,
    io::{self, BufWriter, Read, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
    sync::atomic::{AtomicU32, Ordering},
};

use flate2::{Compress, Compression, FlushCompress, Status};
use gix::{ObjectId, hash::Kind as HashKind, objs::Kind};

use super::{files::durable_rename, repo::hash_of};
use crate::fs::{TemporaryName, all_at_once, now_ns};

/// Packs, and single objects in them, can have gigabytes.
const COPIED_AT_ONCE: usize = 256 << 10;

/// A reusable zlib compressor, which allocates its tables once.
pub(in crate::store) struct Deflater(Option<Compress>);

impl Deflater {
    pub(in crate::store) fn new() -> Self {
        Self(None)
    }

    /// Appends the zlib stream of all `parts` to `out`.
    pub(in crate::store) fn deflate(&mut self, parts: &[&[u8]], out: &mut Vec<u8>) {
        // Level 1: higher levels take two to four times as long and save a tenth.
        let deflater = self.0.get_or_insert_with(|| Compress::new(Compression::new(1), true));
        deflater.reset();
        for part in parts {
            let begin = deflater.total_in();
            let taken = |deflater: &Compress| {
                usize::try_from(deflater.total_in() - begin).unwrap_or(usize::MAX)
            };
            while taken(deflater) < part.len() {
                out.reserve(part.len() / 2 + 64);
                let rest = &part[taken(deflater)..];
                deflater
                    .compress_vec(rest, out, FlushCompress::None)
                    .expect("deflating into memory cannot fail");
            }
        }
        loop {
            out.reserve(64);
            let status = deflater.compress_vec(&[], out, FlushCompress::Finish);
            if matches!(status, Ok(Status::StreamEnd) | Err(_)) {
                break;
            }
        }
    }
}

/// One object in the form of a pack entry.
pub(in crate::store) struct Packed {
    id: ObjectId,
    crc: u32,
    bytes: Vec<u8>,
}

impl Packed {
    /// Makes the pack entry of an object.
    pub(in crate::store) fn new(
        kind: Kind,
        id: ObjectId,
        body: &[u8],
        deflater: &mut Deflater,
    ) -> Self {
        let mut bytes = Vec::with_capacity(body.len() / 2 + 64);
        put_header(kind, body.len() as u64, &mut bytes);
        deflater.deflate(&[body], &mut bytes);
        let crc = crc32fast::hash(&bytes);
        Self { id, crc, bytes }
    }
}

/// Type and size: seven bits in each byte after the first four.
fn put_header(kind: Kind, mut size: u64, out: &mut Vec<u8>) {
    let number = match kind {
        Kind::Commit => 1,
        Kind::Tree => 2,
        Kind::Blob => 3,
        Kind::Tag => 4,
    };
    let low = |size: u64, mask: u8| u8::try_from(size & u64::from(mask)).unwrap_or(mask);
    let mut byte = number << 4 | low(size, 0x0f);
    size >>= 4;
    while size > 0 {
        out.push(byte | 0x80);
        byte = low(size, 0x7f);
        size >>= 7;
    }
    out.push(byte);
}

/// A pack being written.
pub(in crate::store) struct GitPackWriter {
    dir: PathBuf,
    file: BufWriter<File>,
    temporary: TemporaryName,
    rows: Vec<(ObjectId, u32, u64)>,
    length: u64,
    hash: HashKind,
}

impl GitPackWriter {
    /// Starts a pack in the object directory `objects`.
    pub(in crate::store) fn begin(objects: &Path, hash: HashKind) -> io::Result<Self> {
        let dir = super::files::subdir(objects, "pack")?;
        let (temporary, file) = TemporaryName::create(&dir, "tmp_pack_")?;
        let mut file = BufWriter::with_capacity(256 << 10, file);
        file.write_all(b"PACK\0\0\0\x02\0\0\0\0")?;
        Ok(Self { dir, file, temporary, rows: Vec::new(), length: 12, hash })
    }

    /// Appends an object that is not in the pack yet.
    pub(in crate::store) fn push(&mut self, object: &Packed) -> io::Result<()> {
        self.file.write_all(&object.bytes)?;
        self.rows.push((object.id, object.crc, self.length));
        self.length += object.bytes.len() as u64;
        Ok(())
    }

    /// Appends an entry of another pack, header included.
    pub(in crate::store) fn push_raw(&mut self, id: ObjectId, entry: &[u8]) -> io::Result<()> {
        self.file.write_all(entry)?;
        self.rows.push((id, crc32fast::hash(entry), self.length));
        self.length += entry.len() as u64;
        Ok(())
    }

    /// Copies an entry of another pack, `bytes` long from the position of `from`. The object must
    /// not be in this pack yet.
    ///
    /// # Errors
    ///
    /// Fails if the entry does not match its checksum.
    pub(in crate::store) fn copy(
        &mut self,
        id: ObjectId,
        crc: u32,
        from: &mut impl Read,
        bytes: u64,
    ) -> io::Result<()> {
        let (mut hasher, mut left) = (crc32fast::Hasher::new(), bytes);
        let mut buffer =
            vec![0; usize::try_from(bytes).unwrap_or(COPIED_AT_ONCE).min(COPIED_AT_ONCE)];
        while left > 0 {
            let part = buffer.len().min(usize::try_from(left).unwrap_or(usize::MAX));
            from.read_exact(&mut buffer[..part])?;
            hasher.update(&buffer[..part]);
            self.file.write_all(&buffer[..part])?;
            left -= part as u64;
        }
        if hasher.finalize() != crc {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "a pack is not as we wrote it"));
        }
        self.rows.push((id, crc, self.length));
        self.length += bytes;
        Ok(())
    }

    /// Finishes the pack: pack and index are on the disk under their names when it returns.
    pub(in crate::store) fn finish(self) -> io::Result<PathBuf> {
        let path = self.publish()?;
        durable_rename(path.parent().unwrap_or(&path))?;
        Ok(path)
    }

    /// The same, but the names are on the disk only when their directory has been synced.
    pub(in crate::store) fn publish(self) -> io::Result<PathBuf> {
        let Self { dir, file, temporary, mut rows, length, hash } = self;
        let mut file = file.into_inner().map_err(io::IntoInnerError::into_error)?;
        let count = u32::try_from(rows.len()).map_err(|_| too_many())?;
        file.seek(SeekFrom::Start(8))?;
        file.write_all(&count.to_be_bytes())?;
        file.rewind()?;
        let checksum = hash_of(hash, (&file).take(length))?;
        file.seek(SeekFrom::Start(length))?;
        file.write_all(checksum.as_slice())?;
        rows.sort_unstable_by_key(|row| row.0);
        let (index, mut index_file) = TemporaryName::create(&dir, "tmp_idx_")?;
        index_file.write_all(&index_of(&rows, &checksum, hash)?)?;
        all_at_once(&[&file, &index_file], |file| file.sync_data())?;
        // The index comes last: git ignores a pack without one.
        let path = dir.join(format!("pack-{}.pack", unused_name(&checksum, hash)?));
        temporary.rename_unless_taken(&path)?;
        index.rename_unless_taken(&path.with_extension("idx"))?;
        Ok(path)
    }
}

/// A name that no pack has ever had. The checksum alone is not enough: a process that is deleting
/// an equal pack would delete the new one.
fn unused_name(checksum: &ObjectId, hash: HashKind) -> io::Result<ObjectId> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let mut hasher = gix::hash::hasher(hash);
    hasher.update(checksum.as_slice());
    hasher.update(&std::process::id().to_be_bytes());
    hasher.update(&now_ns().to_be_bytes());
    hasher.update(&NEXT.fetch_add(1, Ordering::Relaxed).to_be_bytes());
    hasher.try_finalize().map_err(|err| io::Error::other(err.to_string()))
}

fn too_many() -> io::Error {
    io::Error::new(io::ErrorKind::FileTooLarge, "more objects than a pack can have")
}

/// The index file, version 2, for sorted rows.
pub(in crate::store) fn index_of(
    rows: &[(ObjectId, u32, u64)],
    pack: &ObjectId,
    hash: HashKind,
) -> io::Result<Vec<u8>> {
    const LARGE: u32 = 1 << 31;
    let mut bytes = b"\xfftOc\0\0\0\x02".to_vec();
    for first in 0..=u8::MAX {
        let count = rows.partition_point(|row| row.0.as_slice()[0] <= first);
        bytes.extend_from_slice(&u32::try_from(count).map_err(|_| too_many())?.to_be_bytes());
    }
    for row in rows {
        bytes.extend_from_slice(row.0.as_slice());
    }
    for row in rows {
        bytes.extend_from_slice(&row.1.to_be_bytes());
    }
    let mut large = Vec::new();
    for row in rows {
        let offset = match u32::try_from(row.2) {
            Ok(offset) if offset < LARGE => offset,
            Ok(_) | Err(_) => {
                large.push(row.2);
                LARGE | u32::try_from(large.len() - 1).map_err(|_| too_many())?
            }
        };
        bytes.extend_from_slice(&offset.to_be_bytes());
    }
    for offset in large {
        bytes.extend_from_slice(&offset.to_be_bytes());
    }
    bytes.extend_from_slice(pack.as_slice());
    let mut hasher = gix::hash::hasher(hash);
    hasher.update(&bytes);
    let own = hasher.try_finalize().map_err(|err| io::Error::other(err.to_string()))?;
    bytes.extend_from_slice(own.as_slice());
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_offset_gets_eight_bytes() {
        let id = |byte| ObjectId::Sha1([byte; 20]);
        let rows = [(id(1), 7, 12), (id(2), 8, 1 << 31), (id(2), 9, 1 << 40)];
        let bytes = index_of(&rows, &id(9), HashKind::Sha1).unwrap();
        let offsets = 8 + 1024 + 3 * 20 + 3 * 4;
        assert_eq!(bytes[offsets..offsets + 4], 12u32.to_be_bytes());
        assert_eq!(bytes[offsets + 4..offsets + 8], (1u32 << 31).to_be_bytes());
        assert_eq!(bytes[offsets + 12..offsets + 20], (1u64 << 31).to_be_bytes());
        assert_eq!(bytes.len(), offsets + 12 + 16 + 40);
    }

    #[test]
    fn equal_packs_have_names_of_their_own() {
        let objects = std::env::temp_dir().join(format!("beforehand-packs-{}", std::process::id()));
        std::fs::create_dir(&objects).unwrap();
        let add = || {
            let mut pack = GitPackWriter::begin(&objects, HashKind::Sha1).unwrap();
            let named = super::super::repo::name(HashKind::Sha1, Kind::Blob, b"x").unwrap();
            pack.push(&Packed::new(Kind::Blob, named, b"x", &mut Deflater::new())).unwrap();
            pack.finish().unwrap()
        };
        let (first, second) = (add(), add());
        assert_ne!(first, second);
        assert_eq!(std::fs::read(&first).unwrap(), std::fs::read(&second).unwrap());
        assert!(first.with_extension("idx").exists() && second.with_extension("idx").exists());
        crate::fs::remove_tree(&objects).unwrap();
    }

    #[test]
    fn a_size_is_spelled_as_git_does() {
        let header = |size| {
            let mut out = Vec::new();
            put_header(Kind::Blob, size, &mut out);
            out
        };
        assert_eq!(header(0), [0x30]);
        assert_eq!(header(15), [0x3f]);
        assert_eq!(header(16), [0xb0, 0x01]);
        assert_eq!(header(0x1_0000), [0xb0, 0x80, 0x20]);
    }
}
