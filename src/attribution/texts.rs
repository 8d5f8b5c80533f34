//! Small texts as agents wrote them: the bases of merges.
//!
//! Texts are appended to one file. When it reaches its limit it replaces the older one, whose texts are dropped. A
//! text is stored as a line with the SHA-256 of its bytes in hex, a space and the length of its zlib
//! stream, followed by the stream.

use std::io::{Read, Write};

use flate2::{Compression, read::ZlibDecoder, write::ZlibEncoder};
use memchr::memmem;

use super::{append_bounded, digest};
use crate::{error::Result, fs::read_small, state::RootState};

/// Larger files are no text that a merge would make sense of.
pub(super) const BYTES_MAX: u64 = 256 << 10;
/// Some 500 texts of ordinary size; one older file of that size is kept beside it.
const FILE_MAX_BYTES: u64 = 1 << 20;
/// What one call may append to a file that has almost reached its limit.
const APPENDED_MAX_BYTES: u64 = 2 << 20;

/// The texts that a call left.
pub(super) struct CallTexts<'a> {
    place: &'a RootState,
    /// What the newer file has. A text that only the older one has is stored again, and stays.
    stored: Option<Vec<u8>>,
    new: Vec<u8>,
}

impl<'a> CallTexts<'a> {
    pub(super) fn new(place: &'a RootState) -> Self {
        Self { place, stored: None, new: Vec::new() }
    }

    /// Adds a text, unless it is too large or stored already. Returns its SHA-256 in hex.
    pub(super) fn add(&mut self, text: &[u8]) -> String {
        let sha = digest(text);
        let place = self.place;
        let stored = self.stored.get_or_insert_with(|| read(place, TEXTS));
        let is_stored = [&*stored, &self.new].iter().any(|texts| unpack(texts, &sha).is_some());
        if text.len() as u64 <= BYTES_MAX && !is_stored {
            let mut encoder = ZlibEncoder::new(Vec::new(), Compression::fast());
            let stream = encoder.write_all(text).and_then(|()| encoder.finish());
            let stream = stream.expect("a vector takes every write");
            // The line begins anew whatever a killed process left before it.
            self.new.extend(format!("\n{sha} {}\n", stream.len()).bytes());
            self.new.extend(stream);
        }
        sha
    }

    /// Writes what was added.
    ///
    /// # Errors
    ///
    /// Fails if it cannot be written; what was stored before stays.
    pub(super) fn store(self) -> Result<()> {
        if self.new.is_empty() {
            return Ok(());
        }
        append_bounded(&self.place.attribution().join(TEXTS), &self.new, FILE_MAX_BYTES)
    }
}

/// The text with a SHA-256, if it is still stored.
pub fn text(place: &RootState, sha: &str) -> Option<Vec<u8>> {
    [TEXTS, "texts.old"].iter().find_map(|name| unpack(&read(place, name), sha))
}

const TEXTS: &str = "texts";

fn read(place: &RootState, name: &str) -> Vec<u8> {
    let path = place.attribution().join(name);
    read_small(&path, FILE_MAX_BYTES + APPENDED_MAX_BYTES).ok().flatten().unwrap_or_default()
}

/// The text that was stored last with a SHA-256: of an earlier one, a killed process may have left
/// only the beginning.
fn unpack(texts: &[u8], sha: &str) -> Option<Vec<u8>> {
    let line = format!("\n{sha} ");
    let start = memmem::rfind(texts, line.as_bytes())? + line.len();
    let (length, stream) = texts[start..].split_at(memchr::memchr(b'\n', &texts[start..])?);
    let length: usize = str::from_utf8(length).ok()?.parse().ok()?;
    let mut text = Vec::new();
    let stream = ZlibDecoder::new(stream[1..].get(..length)?);
    stream.take(BYTES_MAX).read_to_end(&mut text).ok()?;
    Some(text).filter(|text| digest(text) == sha)
}

#[cfg(test)]
mod tests {
    use std::{fs, path::PathBuf};

    use super::*;
    use crate::state::StateDir;

    /// A root's state in a directory of its own, which is removed afterwards.
    struct Scratch(PathBuf, RootState);

    impl Scratch {
        fn new(name: &str) -> Self {
            let name = format!("beforehand-texts-{name}-{}", std::process::id());
            let dir = std::env::temp_dir().join(name);
            let place = StateDir::new(dir.clone()).root_at(&dir);
            Self(dir, place)
        }

        fn add(&self, added: &[&[u8]]) -> Vec<String> {
            let mut texts = CallTexts::new(&self.1);
            let shas = added.iter().map(|text| texts.add(text)).collect();
            texts.store().unwrap();
            shas
        }

        fn size(&self, name: &str) -> u64 {
            fs::metadata(self.1.attribution().join(name)).map_or(0, |it| it.len())
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _gone = crate::fs::remove_tree(&self.0);
        }
    }

    /// Bytes that do not get smaller.
    fn noise(seed: u64, count: u64) -> Vec<u8> {
        let mut state = seed | 1;
        let next = |_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state.to_le_bytes()[0]
        };
        (0..count).map(next).collect()
    }

    #[test]
    fn a_text_is_stored_once_and_comes_back() {
        let scratch = Scratch::new("once");
        let long = [b'x'].repeat(100_000);
        let texts: [&[u8]; 3] = [b"", b"one\ntwo\n", &long];
        let shas = scratch.add(&texts);
        let size = scratch.size(TEXTS);
        assert!(size < 5_000, "compressed: {size}");
        assert_eq!(scratch.add(&[texts[1], texts[2], texts[1]])[..2], shas[1..]);
        assert_eq!(scratch.size(TEXTS), size);
        for (sha, expected) in shas.iter().zip(texts) {
            assert_eq!(text(&scratch.1, sha).as_deref(), Some(expected));
        }
        let large = scratch.add(&[&noise(1, BYTES_MAX + 1)]);
        assert_eq!((text(&scratch.1, &large[0]), scratch.size(TEXTS)), (None, size));
        assert_eq!(text(&scratch.1, &digest(b"another")), None);
    }

    #[test]
    fn a_text_cut_short_hides_no_other() {
        let scratch = Scratch::new("short");
        let first = scratch.add(&[b"the first"]);
        let path = scratch.1.attribution().join(TEXTS);
        let whole = scratch.add(&[&noise(1, 5_000)]);
        let bytes = fs::read(&path).unwrap();
        for cut in [1, 30, 70, 4_000] {
            crate::fs::replace(&path, &bytes[..bytes.len() - cut]).unwrap();
            assert_eq!(text(&scratch.1, &whole[0]), None, "{cut}");
            let later = scratch.add(&[&noise(3, 5_000)]);
            assert_eq!(text(&scratch.1, &whole[0]), None, "{cut}: what follows is no part of it");
            scratch.add(&[&noise(1, 5_000)]);
            for sha in [&first[0], &whole[0], &later[0]] {
                assert!(text(&scratch.1, sha).is_some(), "{cut}");
            }
        }
    }

    #[test]
    fn only_the_oldest_go_and_the_files_stay_small() {
        let scratch = Scratch::new("oldest");
        let shas: Vec<_> =
            (0..20).flat_map(|seed| scratch.add(&[&noise(seed * 2, BYTES_MAX)])).collect();
        let stored: Vec<_> = shas.iter().map(|sha| text(&scratch.1, sha).is_some()).collect();
        let count = stored.iter().filter(|&&it| it).count();
        assert!((5..=10).contains(&count), "{count}");
        assert!(stored[20 - count..].iter().all(|&it| it), "{stored:?}");
        for name in [TEXTS, "texts.old"] {
            assert!(scratch.size(name) <= FILE_MAX_BYTES + 2 * BYTES_MAX, "{name}");
        }
    }
}
