//! Reads whole files into one buffer that is used again and again.

use std::{
    fs::File,
    io::{self, Read},
};

/// A buffer for the bytes of one file after the other.
#[derive(Debug, Default)]
pub struct FileBuffer(Vec<u8>);

impl FileBuffer {
    /// Reads `file` from its position to its end, or `max_bytes` and one more byte if it is larger.
    ///
    /// `size` is what the file's stat says. Where that is right, one read finds the end: it asks for
    /// one byte more and does not get it. A file that is longer than it says is read to its end all
    /// the same.
    pub fn read(&mut self, file: &File, size: u64, max_bytes: u64) -> io::Result<&[u8]> {
        self.read_from(&mut &*file, size, max_bytes)
    }

    fn read_from(&mut self, from: &mut impl Read, size: u64, max_bytes: u64) -> io::Result<&[u8]> {
        let limit = usize::try_from(max_bytes).unwrap_or(usize::MAX).saturating_add(1);
        let told = usize::try_from(size).unwrap_or(usize::MAX);
        let wanted = told.saturating_add(1).min(limit);
        if self.0.len() < wanted {
            self.0.resize(wanted, 0);
        }
        let mut length = 0;
        while length < limit {
            if length == self.0.len() {
                self.0.resize(length.saturating_mul(2).min(limit), 0);
            }
            let end = self.0.len().min(limit);
            let read = match from.read(&mut self.0[length..end]) {
                Ok(read) => read,
                Err(err) if err.kind() == io::ErrorKind::Interrupted => continue,
                Err(err) => return Err(err),
            };
            length += read;
            if read == 0 || read == told && length == told && length < end {
                break;
            }
        }
        Ok(&self.0[..length])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives at most so many bytes at a time, and counts the reads.
    struct SlowSource<'a>(&'a [u8], usize, usize);

    impl Read for SlowSource<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            self.2 += 1;
            let part = self.1.min(buffer.len());
            self.0.read(&mut buffer[..part])
        }
    }

    #[test]
    fn every_byte_is_read_whatever_the_stat_said() {
        let bytes: Vec<u8> = (0..=255).cycle().take(5000).collect();
        let mut buffer = FileBuffer::default();
        for size in [0usize, 1, 7, 4096, 4999, 5000] {
            for told in [0, 1, size.saturating_sub(1), size, size + 1, 3 * size, usize::MAX] {
                for most in [1, 100, 4096, 10_000] {
                    let mut source = SlowSource(&bytes[..size], most, 0);
                    let read = buffer.read_from(&mut source, told as u64, 8000).unwrap();
                    // No file system says a wrong size, and then ends its first read just there.
                    if told != most || told >= size {
                        assert_eq!(read, &bytes[..size], "{size} bytes, told {told}, {most}");
                    }
                }
            }
        }
    }

    #[test]
    fn one_read_is_enough_where_the_stat_was_right() {
        let mut buffer = FileBuffer::default();
        for size in [0, 1, 5000, 8000] {
            let bytes = vec![7; size];
            let mut source = SlowSource(&bytes, usize::MAX, 0);
            assert_eq!(buffer.read_from(&mut source, size as u64, 8000).unwrap(), bytes);
            assert_eq!(source.2, 1, "{size} bytes");
        }
    }

    #[test]
    fn a_larger_file_is_told_by_one_byte_more() {
        let bytes = [1; 9000];
        let mut buffer = FileBuffer::default();
        for told in [0, 8000, 8001, 9000, u64::MAX] {
            let mut source = SlowSource(&bytes, usize::MAX, 0);
            assert_eq!(buffer.read_from(&mut source, told, 8000).unwrap().len(), 8001);
        }
    }
}
