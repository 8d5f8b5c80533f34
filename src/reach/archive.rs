//! Looks into archives without unpacking them.

use std::{
    io::{self, Read, Seek, SeekFrom},
    path::{Component, Path, PathBuf},
};

use flate2::read::MultiGzDecoder;

use crate::fs::open_regular;

/// So many bytes are read for the names of an archive, before and after it is unpacked in memory: some 100 ms. A
/// name in it may say that it is as long as anything.
const READ_MAX_BYTES: u64 = 64 << 20;
/// So many members are looked at.
const MEMBERS_MAX: usize = 100_000;

/// Whether unpacking a tar archive in `dir` replaces `path` or something in it: `None` if not, and `Some(false)`
/// if the archive is too large to be looked at, or of another kind.
pub fn is_unpacked_over(path: &Path, dir: &Path, archive: &Path) -> Option<bool> {
    let is_over = |member: &Path| {
        let place = dir.join(member);
        place.starts_with(path) && place.symlink_metadata().is_ok()
    };
    match has_member(archive, is_over) {
        Ok(true) => Some(true),
        Ok(false) => None,
        Err(_) => Some(false),
    }
}

/// Whether an archive has a file, as opposed to a directory, that `is_it` says yes to.
fn has_member(archive: &Path, is_it: impl Fn(&Path) -> bool) -> io::Result<bool> {
    let (mut file, _) = open_regular(archive)?;
    let mut magic = [0; 2];
    file.read_exact(&mut magic)?;
    file.rewind()?;
    let file = BoundedReader { inner: file, left: READ_MAX_BYTES };
    if magic == [0x1f, 0x8b] {
        let text = BoundedReader { inner: MultiGzDecoder::new(file), left: READ_MAX_BYTES };
        return any_member(tar::Archive::new(text).entries()?, is_it);
    }
    any_member(tar::Archive::new(file).entries_with_seek()?, is_it)
}

/// Fails once so many bytes were read. What is passed over by seeking does not count.
struct BoundedReader<R> {
    inner: R,
    left: u64,
}

impl<R: Read> Read for BoundedReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.left == 0 {
            return Err(too_large());
        }
        let size = usize::try_from(self.left).unwrap_or(usize::MAX).min(buffer.len());
        let read = self.inner.read(&mut buffer[..size])?;
        self.left -= read as u64;
        Ok(read)
    }
}

impl<R: Seek> Seek for BoundedReader<R> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.inner.seek(to)
    }
}

fn any_member<R: Read>(
    members: tar::Entries<'_, R>,
    is_it: impl Fn(&Path) -> bool,
) -> io::Result<bool> {
    for (n, member) in members.enumerate() {
        let member = member?;
        if n >= MEMBERS_MAX {
            return Err(too_large());
        }
        // As `tar` does it: a name never leads out of the directory.
        let name = member.path()?;
        let parts = name.components().filter(|part| matches!(part, Component::Normal(_)));
        let place: PathBuf = parts.collect();
        if !member.header().entry_type().is_dir() && is_it(&place) {
            return Ok(true);
        }
    }
    Ok(false)
}

fn too_large() -> io::Error {
    io::Error::from(io::ErrorKind::FileTooLarge)
}

#[cfg(test)]
mod tests {
    use std::{fs::File, io::Write};

    use super::*;

    /// An archive of empty files and directories with these names.
    fn archive(names: &[&str]) -> Vec<u8> {
        let mut archive = tar::Builder::new(Vec::new());
        for name in names {
            let mut header = tar::Header::new_gnu();
            let is_dir = name.ends_with('/');
            header.set_entry_type(if is_dir {
                tar::EntryType::Directory
            } else {
                tar::EntryType::Regular
            });
            header.set_size(0);
            archive.append_data(&mut header, name.trim_end_matches('/'), io::empty()).unwrap();
        }
        archive.into_inner().unwrap()
    }

    #[test]
    fn only_what_an_archive_has_as_a_file_is_replaced() {
        let top = std::env::temp_dir().join(format!("beforehand-tar-{}", std::process::id()));
        std::fs::create_dir_all(top.join("sub")).unwrap();
        for name in ["a", "sub/b", "sub/c"] {
            File::create(top.join(name)).unwrap();
        }
        let plain = archive(&["./sub/", "./sub/b", "new"]);
        let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        packed.write_all(&plain).unwrap();
        for bytes in [plain.clone(), packed.finish().unwrap()] {
            let path = top.join("archive");
            File::create(&path).unwrap().write_all(&bytes).unwrap();
            let over = |name: &str| is_unpacked_over(&top.join(name), &top, &path);
            assert_eq!([over("sub/b"), over("sub")], [Some(true); 2]);
            assert_eq!([over("a"), over("sub/c"), over("new")], [None; 3]);
        }
        // Of what cannot be read, nothing is known.
        for bytes in [&b"PK\x03\x04 a zip"[..], b"", &plain[..700]] {
            let path = top.join("archive");
            File::create(&path).unwrap().write_all(bytes).unwrap();
            let over = is_unpacked_over(&top.join("a"), &top, &path);
            assert_eq!(over, Some(false), "{} bytes", bytes.len());
        }
        // A name of 8 GB, in a file of holes, takes neither memory nor time.
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(tar::EntryType::GNULongName);
        header.set_size(8 << 30);
        header.set_cksum();
        let mut file = File::create(top.join("archive")).unwrap();
        file.write_all(header.as_bytes()).unwrap();
        file.set_len(9 << 30).unwrap();
        let over = |archive: &str| is_unpacked_over(&top.join("a"), &top, &top.join(archive));
        assert_eq!(over("archive"), Some(false));
        // Nothing waits for the other end of a pipe.
        let pipe = std::process::Command::new("mkfifo").arg(top.join("pipe")).status().unwrap();
        assert!(pipe.success());
        assert_eq!(over("pipe"), Some(false));
        crate::fs::remove_tree(&top).unwrap();
    }
}
