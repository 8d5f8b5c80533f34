//! The packs of the private store, read without the code that is tested.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use super::temp::{on_disk, write};

/// The packs of a state directory.
pub(crate) fn packs(state: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(state.join("objects/packs")).into_iter().flatten().flatten();
    let mut packs: Vec<_> = entries.map(|entry| entry.path()).collect();
    packs.retain(|path| path.extension().is_none());
    packs.sort();
    packs
}

/// What is in a pack, by the names of the objects.
pub(crate) fn contents(pack: &Path) -> BTreeMap<String, Vec<u8>> {
    let bytes = fs::read(pack).unwrap();
    let (_, last) = bytes.split_at(bytes.len() - 13 - 1);
    let count: usize = str::from_utf8(last).unwrap().trim().parse().unwrap();
    let lines = &bytes[bytes.len() - 32 - 96 * count..bytes.len() - 32];
    let mut found = BTreeMap::new();
    for line in str::from_utf8(lines).unwrap().lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let number = |word: &str| word.parse::<usize>().unwrap();
        let (at, length) = (number(words[1]), number(words[2]));
        found.insert(words[0].to_owned(), bytes[at..at + length].to_vec());
    }
    found
}

/// All private objects of a state directory.
pub(crate) fn objects(state: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut all: BTreeMap<_, _> = packs(state).iter().flat_map(|pack| contents(pack)).collect();
    let files = on_disk(&state.join("objects")).into_keys();
    for path in files.map(|path| String::from_utf8(path).unwrap()) {
        let name = path.replace('/', "");
        if name.len() == 64 {
            // A test may have put what cannot be read in the place of one.
            let bytes = fs::read(state.join("objects").join(path));
            all.extend(bytes.map(|bytes| (name, bytes)));
        }
    }
    all
}

/// Gives each object a file of its own, as they all had once, so that a test can damage one.
pub(crate) fn unpack(state: &Path) {
    for pack in packs(state) {
        for (name, bytes) in contents(&pack) {
            let (fan, rest) = name.split_at(2);
            write(&state.join("objects").join(fan).join(rest), bytes);
        }
        fs::remove_file(pack).unwrap();
    }
}
