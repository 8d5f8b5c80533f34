//! Streams the content of blobs. Large files are loose objects until maintenance or git packs them,
//! so most need not be loaded whole.

use std::io::{self, BufRead, BufReader, Cursor, Read};

use flate2::read::ZlibDecoder;
use gix::{
    hash::oid,
    objs::{Exists, Kind},
};

use super::{objects::LARGE_BYTES, repo::Repo};
use crate::{
    error::{Error, Result},
    fs::open_regular,
    model::ContentId,
};

/// `blob`, a space, twenty digits and a NUL.
const HEADER_MAX_BYTES: u64 = 32;

/// Opens a blob.
pub(in crate::store) fn open(repo: &Repo, id: &ContentId) -> Result<Box<dyn Read>> {
    let id = repo.object_id(id);
    if let Some(reader) = open_loose(repo, &id)? {
        return Ok(reader);
    }
    Ok(Box::new(Cursor::new(repo.read_checked(&id, Kind::Blob)?)))
}

/// A reader for a large loose blob; `None` for any other, which is read whole.
fn open_loose(repo: &Repo, id: &oid) -> Result<Option<Box<dyn Read>>> {
    let hex = id.to_string();
    let path = repo.objects().join(&hex[..2]).join(&hex[2..]);
    let Ok((file, _)) = open_regular(&path) else { return Ok(None) };
    if !repo.odb()?.exists(id) {
        return Ok(None);
    }
    let damaged = || Error::damaged(hex.clone(), "not a loose object");
    let mut reader = BufReader::new(ZlibDecoder::new(BufReader::new(file)));
    let mut header = Vec::new();
    Read::by_ref(&mut reader)
        .take(HEADER_MAX_BYTES)
        .read_until(0, &mut header)
        .map_err(|_| damaged())?;
    let size = header.strip_suffix(&[0]).and_then(|header| header.strip_prefix(b"blob "));
    let size = size.and_then(|digits| str::from_utf8(digits).ok()?.parse().ok());
    let size: u64 = size.ok_or_else(damaged)?;
    if size <= LARGE_BYTES {
        return Ok(None);
    }
    let hasher = gix::hash::hasher(repo.hash);
    let mut checked = ObjectReader { reader, hasher: Some(hasher), left: size, id: id.to_owned() };
    checked.update(&header);
    Ok(Some(Box::new(checked)))
}

/// A reader that fails at the end if the content does not match the id.
struct ObjectReader<R> {
    reader: R,
    hasher: Option<gix::hash::Hasher>,
    left: u64,
    id: gix::ObjectId,
}

impl<R> ObjectReader<R> {
    fn update(&mut self, bytes: &[u8]) {
        if let Some(hasher) = &mut self.hasher {
            hasher.update(bytes);
        }
    }
}

impl<R: Read> Read for ObjectReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let wrong = || io::Error::new(io::ErrorKind::InvalidData, "not what its name says");
        let count = self.reader.read(buffer)?;
        if count > 0 {
            self.left = self.left.checked_sub(count as u64).ok_or_else(wrong)?;
            self.update(&buffer[..count]);
        } else if !buffer.is_empty()
            && let Some(hasher) = self.hasher.take()
        {
            let id = hasher.try_finalize().map_err(|_| wrong())?;
            if self.left > 0 || id != self.id {
                return Err(wrong());
            }
        }
        Ok(count)
    }
}
