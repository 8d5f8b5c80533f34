//! The floors: programs that do only what cannot be avoided. The bench runs itself as one of them, so
//! that a floor is a whole process, as our own operations are.

use std::{
    fs,
    io::{self, Read as _, Write as _},
    path::Path,
    sync::atomic::{AtomicUsize, Ordering},
    thread,
};

use rustix::fs::{AtFlags, CWD, fsync, statat, syncfs};
use sha1::Sha1;
use sha2::{Digest, Sha256};

/// The first argument of a bench that is to be a floor.
pub(crate) const WORD: &str = "floor";
/// One for each core of the machine that the goals were set on.
const THREADS: usize = 2;
/// How many paths a thread takes at once.
const BATCH: usize = 64;
/// How much of a large file is in memory at once.
const CHUNK: usize = 1 << 20;

/// Runs the floor that the arguments name. All paths are relative to the current directory.
pub(crate) fn run(args: &[String]) -> io::Result<()> {
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args[..] {
        ["nothing"] => io::stdin().read_to_end(&mut Vec::new()).map(drop),
        ["print", file] => io::stdout().write_all(&fs::read(file)?),
        ["stat", list] => stat(&fs::read(list)?),
        ["hash", "sha1", list] => hash::<Sha1>(&fs::read(list)?),
        ["hash", "sha256", list] => hash::<Sha256>(&fs::read(list)?),
        ["file", length, path] => write_synced(number(length)?, Path::new(path)),
        ["restore", contents, removed] => restore(&fs::read(contents)?, &fs::read(removed)?),
        _ => Err(io::Error::other(format!("no such floor: {args:?}"))),
    }
}

/// The paths of a list: each ends with a NUL.
fn paths(list: &[u8]) -> Vec<&[u8]> {
    list.split(|&byte| byte == 0).filter(|path| !path.is_empty()).collect()
}

/// Hands out the paths to the threads, a batch at a time.
fn in_threads(list: &[u8], work: impl Fn(&[&[u8]]) -> io::Result<()> + Sync) -> io::Result<()> {
    let (paths, next) = (paths(list), AtomicUsize::new(0));
    let take = || {
        while let Some(rest) = paths.get(next.fetch_add(BATCH, Ordering::Relaxed)..) {
            if rest.is_empty() {
                break;
            }
            work(&rest[..rest.len().min(BATCH)])?;
        }
        Ok(())
    };
    thread::scope(|scope| {
        let others: Vec<_> = (1..THREADS).map(|_| scope.spawn(take)).collect();
        let own = take();
        others
            .into_iter()
            .map(|thread| thread.join().expect("no floor panics"))
            .fold(own, Result::and)
    })
}

/// `lstat` of each known path.
fn stat(list: &[u8]) -> io::Result<()> {
    in_threads(list, |paths| {
        for path in paths {
            statat(CWD, *path, AtFlags::SYMLINK_NOFOLLOW)?;
        }
        Ok(())
    })
}

/// Reads and hashes every byte.
fn hash<D: Digest>(list: &[u8]) -> io::Result<()> {
    in_threads(list, |paths| {
        let mut buffer = vec![0; CHUNK];
        for path in paths {
            let mut file = fs::File::open(as_path(path))?;
            let mut digest = D::new();
            loop {
                let length = file.read(&mut buffer)?;
                digest.update(&buffer[..length]);
                // A short read of a regular file is its end.
                if length < CHUNK {
                    break;
                }
            }
            std::hint::black_box(digest.finalize());
        }
        Ok(())
    })
}

/// Writes one file of so many bytes and syncs it.
fn write_synced(mut length: usize, path: &Path) -> io::Result<()> {
    let (mut file, bytes) = (fs::File::create(path)?, vec![b'x'; length.min(CHUNK)]);
    while length > 0 {
        let some = length.min(CHUNK);
        file.write_all(&bytes[..some])?;
        length -= some;
    }
    Ok(fsync(&file)?)
}

/// Writes each file beside its place and renames it, removes what is to go, and syncs once.
/// `contents` has a path, a NUL, the length as text, a NUL and the bytes of each.
fn restore(mut contents: &[u8], removed: &[u8]) -> io::Result<()> {
    let mut field = |length: Option<usize>| {
        let end = length.or_else(|| contents.iter().position(|&byte| byte == 0))?;
        let (field, rest) = contents.split_at_checked(end)?;
        contents = if length.is_some() { rest } else { &rest[1..] };
        Some(field)
    };
    while let Some(path) = field(None) {
        let length = str::from_utf8(field(None).unwrap_or_default()).unwrap_or_default();
        let bytes = field(Some(number(length)?)).ok_or(io::ErrorKind::InvalidData)?;
        let path = as_path(path);
        let beside = path.with_extension("floor");
        fs::write(&beside, bytes)?;
        fs::rename(&beside, path)?;
    }
    for path in paths(removed) {
        fs::remove_file(as_path(path))?;
    }
    Ok(syncfs(fs::File::open(".")?)?)
}

fn number(text: &str) -> io::Result<usize> {
    text.parse().map_err(io::Error::other)
}

fn as_path(bytes: &[u8]) -> &Path {
    use std::os::unix::ffi::OsStrExt as _;
    Path::new(std::ffi::OsStr::from_bytes(bytes))
}
