//! Directories of a test's own, and what is in them.

use std::{
    collections::BTreeMap,
    fs,
    os::unix::{
        ffi::OsStrExt,
        fs::{MetadataExt, PermissionsExt, symlink},
        net::UnixListener,
    },
    path::{Path, PathBuf},
    process::Command,
    sync::atomic::{AtomicU32, Ordering},
};

use beforehand::model::Kind;
use rustix::fs::FileType;

/// A directory that goes away with its owner.
pub(crate) struct TempDir(PathBuf);

/// One file as a test compares it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) kind: Kind,
    pub(crate) permissions: u32,
    /// Content or link text; empty for the rest.
    pub(crate) bytes: Vec<u8>,
}

/// Files by their paths below some directory.
pub(crate) type Files = BTreeMap<Vec<u8>, Seen>;

/// Puts something in the place of a file that the disk does not give: reading it fails as on a bad
/// block. Gives where the file is meanwhile.
pub(crate) fn withhold(path: &Path) -> PathBuf {
    let away = path.with_extension("away");
    fs::rename(path, &away).unwrap();
    symlink("/proc/self/mem", path).unwrap();
    away
}

impl TempDir {
    pub(crate) fn new() -> Self {
        Self::below(&std::env::temp_dir())
    }

    /// One in a directory that is there already.
    pub(crate) fn below(dir: &Path) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("beforehand-test-{}-{number}", std::process::id());
        let path = fs::canonicalize(dir).unwrap().join(name);
        fs::create_dir(&path).unwrap();
        Self(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for TempDir {
    #[expect(clippy::disallowed_methods, reason = "a directory of the test's own")]
    fn drop(&mut self) {
        // A process in the background may be adding files; a test may have taken permissions away, or be
        // failing already.
        let pause = || std::thread::sleep(std::time::Duration::from_millis(20));
        let open = || Command::new("chmod").args(["-R", "u+rwX"]).arg(&self.0).output();
        let removed = (0..500).any(|_| {
            let removed = fs::remove_dir_all(&self.0).is_ok();
            if !removed && !std::thread::panicking() {
                let _opened = open();
                pause();
            }
            removed
        });
        assert!(removed || std::thread::panicking(), "{} is still there", self.0.display());
    }
}

/// Writes a file, with the directories above it.
#[expect(clippy::disallowed_methods, reason = "a plain write, as an editor without care does it")]
pub(crate) fn write(path: &Path, bytes: impl AsRef<[u8]>) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, bytes).unwrap();
}

pub(crate) fn chmod(path: &Path, permissions: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(permissions)).unwrap();
}

pub(crate) fn link(path: &Path, text: &str) {
    symlink(text, path).unwrap();
}

/// A pipe or a socket, without `mknodat`, which macOS lacks.
pub(crate) fn special(path: &Path, kind: FileType, permissions: u32) {
    if kind == FileType::Socket {
        // The address of a socket is about a hundred bytes at most.
        let near = TempDir::new();
        let made = near.path().join("socket");
        drop(UnixListener::bind(&made).unwrap());
        fs::rename(made, path).unwrap();
    } else {
        assert_eq!(kind, FileType::Fifo);
        assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
    }
    chmod(path, permissions);
}

/// What is in a directory, whatever the depth.
pub(crate) fn on_disk(dir: &Path) -> Files {
    let mut files = Files::new();
    add(dir, dir, &mut files);
    files
}

fn add(top: &Path, dir: &Path, files: &mut Files) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let data = fs::symlink_metadata(&path).unwrap();
        let kind = Kind::of_mode(data.mode()).unwrap();
        let bytes = match kind {
            Kind::File => fs::read(&path).unwrap(),
            Kind::Link => fs::read_link(&path).unwrap().as_os_str().as_bytes().to_vec(),
            _ => Vec::new(),
        };
        let seen = Seen { kind, permissions: data.mode() & 0o7777, bytes };
        files.insert(path.strip_prefix(top).unwrap().as_os_str().as_bytes().to_vec(), seen);
        if kind == Kind::Directory {
            add(top, &path, files);
        }
    }
}

/// How many files, of any kind but directories, are below a directory; 0 if there is none.
pub(crate) fn count(dir: &Path) -> usize {
    if !dir.is_dir() {
        return 0;
    }
    on_disk(dir).values().filter(|seen| seen.kind != Kind::Directory).count()
}

/// Bytes that nothing squeezes, others for each seed.
pub(crate) fn noise(seed: u64, count: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    };
    (0..count / 8).flat_map(|_| next()).collect()
}
