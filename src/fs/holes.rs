//! Writes a file and leaves holes in place of long runs of zeros, so that a sparse file stays
//! sparse.
//!
//! Only long runs become holes: the file reads the same either way, and a short hole saves nothing.

use std::{
    fs::File,
    io::{self, Seek, SeekFrom, Write},
};

/// The smallest unit in which file systems allocate space.
const PAGE: usize = 4096;
/// Shorter runs of zeros are written out.
const HOLE_MIN_BYTES: u64 = 64 << 10;

static ZEROS: [u8; PAGE] = [0; PAGE];

/// A sparse-file writer. The file is complete once [`Holes::finish`] has returned.
#[derive(Debug)]
pub struct Holes<'a> {
    file: &'a mut File,
    /// How many bytes it has received.
    at: u64,
    /// How many zeros at the end are still pending.
    zeros: u64,
}

impl<'a> Holes<'a> {
    /// Writes to `file`, which is empty.
    pub fn new(file: &'a mut File) -> Self {
        Self { file, at: 0, zeros: 0 }
    }

    /// Gives the file its whole size.
    ///
    /// # Errors
    ///
    /// Fails if it cannot be written.
    pub fn finish(mut self) -> io::Result<()> {
        if self.zeros >= HOLE_MIN_BYTES { self.file.set_len(self.at) } else { self.settle() }
    }

    /// Skips the pending zeros, or writes them if they are few.
    fn settle(&mut self) -> io::Result<()> {
        let mut left = std::mem::take(&mut self.zeros);
        if left >= HOLE_MIN_BYTES {
            self.file.seek(SeekFrom::Start(self.at))?;
            return Ok(());
        }
        while left > 0 {
            let piece = &ZEROS[..PAGE.min(usize::try_from(left).unwrap_or(PAGE))];
            self.file.write_all(piece)?;
            left -= piece.len() as u64;
        }
        Ok(())
    }
}

impl Write for Holes<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let into_page = usize::try_from(self.at % PAGE as u64).unwrap_or(0);
        let mut end = bytes.len().min(PAGE - into_page);
        if is_zeros(&bytes[..end]) {
            self.zeros += end as u64;
        } else {
            let rest = bytes[end..].chunks(PAGE);
            end += rest.take_while(|page| !is_zeros(page)).map(<[u8]>::len).sum::<usize>();
            self.settle()?;
            self.file.write_all(&bytes[..end])?;
        }
        self.at += end as u64;
        Ok(end)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

fn is_zeros(page: &[u8]) -> bool {
    page == &ZEROS[..page.len()]
}

#[cfg(test)]
mod tests {
    use std::{io::Read, os::unix::fs::MetadataExt};

    use super::*;

    /// The content of a file after these writes, and the space it takes.
    fn written(name: &str, pieces: &[&[u8]]) -> (Vec<u8>, u64) {
        let name = format!("beforehand-holes-{name}-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        crate::fs::replace(&path, b"").unwrap();
        let mut file = File::options().read(true).write(true).open(&path).unwrap();
        let mut holes = Holes::new(&mut file);
        for piece in pieces {
            holes.write_all(piece).unwrap();
        }
        holes.finish().unwrap();
        let mut bytes = Vec::new();
        file.rewind().unwrap();
        file.read_to_end(&mut bytes).unwrap();
        file.sync_all().unwrap();
        let room = file.metadata().unwrap().blocks() * 512;
        std::fs::remove_file(&path).unwrap();
        (bytes, room)
    }

    #[test]
    fn bytes_are_the_same_however_they_come() {
        let zeros = vec![0; 200_000];
        let long = [b"head".to_vec(), zeros.clone(), b"mid\0\0".to_vec(), zeros.clone()].concat();
        for (number, size) in [1, 7, 4095, 4096, 8192, 300_000, 1 << 20].into_iter().enumerate() {
            let pieces: Vec<&[u8]> = long.chunks(size).collect();
            assert!(written(&format!("same-{number}"), &pieces).0 == long, "{size}");
        }
        assert_eq!(written("none", &[]).0, b"");
        assert_eq!(written("short", &[b"a", &zeros[..9000], b"b"]).0.len(), 9002);
    }

    #[test]
    fn long_runs_of_zeros_take_no_room_and_short_ones_do() {
        let zeros = vec![0; 8 << 20];
        assert!(written("long", &[b"head", &zeros, b"tail", &zeros]).1 < 1 << 20);
        assert!(written("short-room", &[&zeros[..60_000]]).1 >= 56 << 10);
    }
}
