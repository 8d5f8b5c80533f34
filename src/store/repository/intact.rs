//! Verifies every byte of a file with objects, as far as its name tells how.

use std::{
    fs::File,
    io::{self, BufReader, ErrorKind, Read},
    path::Path,
};

use flate2::read::ZlibDecoder;
use gix::{ObjectId, hash::Kind as HashKind};

use crate::{fs::stat_path, store::plumbing::repo};

/// Whether a file in an object directory is intact, as far as its name tells: a pack, its index, or a loose
/// object.
pub(super) fn file_fits(path: &Path) -> io::Result<bool> {
    let names = path.parent().and_then(Path::file_name).zip(path.file_name());
    let name = names.and_then(|(fan, name)| {
        let fan = fan.to_str().filter(|fan| fan.len() == 2)?;
        Some(format!("{fan}{}", name.to_str()?))
    });
    let fits = match name.filter(|name| hash_of(name).is_some()) {
        Some(name) => loose_fits(path, &name),
        None => trailer_fits(path),
    };
    match fits {
        // No zlib stream, or a part of one.
        Err(err) if matches!(err.kind(), ErrorKind::InvalidInput | ErrorKind::UnexpectedEof) => {
            Ok(false)
        }
        fits => fits,
    }
}

/// Whether a loose object is the one of its name. Other files have no such name.
pub(super) fn loose_fits(path: &Path, name: &str) -> io::Result<bool> {
    let file = open(path)?;
    let Some(kind) = hash_of(name) else { return Ok(true) };
    let found = repo::hash_of(kind, ZlibDecoder::new(file))?;
    Ok(ObjectId::from_hex(name.as_bytes()).is_ok_and(|id| id == found))
}

/// The hash function of an object or pack name.
fn hash_of(hex: &str) -> Option<HashKind> {
    let kind = match hex.len() {
        40 => HashKind::Sha1,
        64 => HashKind::Sha256,
        _ => return None,
    };
    hex.bytes().all(|byte| byte.is_ascii_hexdigit()).then_some(kind)
}

/// Whether a pack file ends in the hash of everything before.
pub(super) fn trailer_fits(path: &Path) -> io::Result<bool> {
    let file = open(path)?;
    let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
    let is_hashed = path.extension().is_some_and(|end| end == "pack" || end == "idx");
    let kind = stem.strip_prefix("pack-").and_then(hash_of).filter(|_| is_hashed);
    let Some(kind) = kind else { return Ok(true) };
    let size = stat_path(path)?.size;
    let Some(body) = size.checked_sub(kind.len_in_bytes() as u64) else { return Ok(false) };
    let mut reader = BufReader::new(file);
    let hash = repo::hash_of(kind, Read::by_ref(&mut reader).take(body))?;
    let mut trailer = Vec::new();
    reader.read_to_end(&mut trailer)?;
    Ok(hash.as_slice() == trailer)
}

/// Opens a borrowed file, which is never anything else.
fn open(path: &Path) -> io::Result<File> {
    if path.symlink_metadata()?.is_file() {
        return File::open(path);
    }
    Err(io::Error::other("it is no file"))
}
