//! Any bytes at all are git's index, with and without its checksum: read or refused.

#![no_main]

use libfuzzer_sys::fuzz_target;
use std::{fs, path::PathBuf, sync::Once};
use beforehand::fuzzing::IndexRoundTrip;

thread_local! {
    static REPOSITORY: (PathBuf, IndexRoundTrip) = repository();
}

fuzz_target!(|bytes: &[u8]| {
    // The decoder is not ours. That it panics is known, and caught where it is called; libFuzzer's
    // own hook would end the process before that.
    static QUIET: Once = Once::new();
    QUIET.call_once(|| std::panic::set_hook(Box::new(|_| ())));
    REPOSITORY.with(|(path, index)| {
        for bytes in [bytes.to_vec(), index.signed(bytes)] {
            fs::write(path, bytes).expect("the temporary directory can be written");
            index.read();
        }
    });
});

/// A repository with nothing in it, for this process alone.
fn repository() -> (PathBuf, IndexRoundTrip) {
    let dir = std::env::temp_dir().join(format!("beforehand-fuzz-index-{}", std::process::id()));
    let git = dir.join(".git");
    for name in ["objects", "refs/heads"] {
        fs::create_dir_all(git.join(name)).expect("the temporary directory can be written");
    }
    let config = "[core]\n\trepositoryformatversion = 0\n\tbare = false\n";
    for (name, text) in [("HEAD", "ref: refs/heads/main\n"), ("config", config)] {
        fs::write(git.join(name), text).expect("the temporary directory can be written");
    }
    let index = IndexRoundTrip::of(&dir).expect("a repository with all its parts can be used");
    (git.join("index"), index)
}
