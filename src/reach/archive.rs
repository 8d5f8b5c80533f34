//! Looks into archives without unpacking them.

use std::{
    fs::File,
    io::{self, Read, Seek},
    path::{Component, Path, PathBuf},
};

use flate2::read::MultiGzDecoder;

/// So many bytes of a compressed archive are unpacked, in memory, to read its names: some 100 ms.
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
    let mut file = File::open(archive)?;
    let mut magic = [0; 2];
    file.read_exact(&mut magic)?;
    file.rewind()?;
    if magic == [0x1f, 0x8b] {
        let mut text = MultiGzDecoder::new(file).take(READ_MAX_BYTES);
        let found = any_member(tar::Archive::new(&mut text).entries()?, is_it)?;
        return if text.limit() == 0 && !found { Err(too_large()) } else { Ok(found) };
    }
    any_member(tar::Archive::new(file).entries_with_seek()?, is_it)
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
    use std::io::Write;

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
        crate::fs::remove_tree(&top).unwrap();
    }
}
