//! Detects borrowed loose objects that were rewritten in place, which git never does, and whatever has the name
//! of a loose object without being a regular file: opening a pipe would block.
//!
//! A file that changed after its creation is suspect. Git updates the mtime of an object that it
//! would write again, so the bytes decide. This does not detect a rewrite that resets the times,
//! nor any on a file system without birth times.

use std::{
    collections::HashSet,
    io,
    path::{Path, PathBuf},
    sync::{
        OnceLock,
        atomic::{AtomicUsize, Ordering},
    },
};

use gix::hash::oid;

use super::borrowed::{borrowed_dirs, names_of};
use crate::{
    fs::{Dir, Listed, is_in_the_way, nature},
    model::Kind,
};

/// Git takes no longer to write most objects, and most file system clocks are no finer.
const WRITING_NS: i64 = 20_000_000;

/// To list up to 256 directories costs as much as this many stats.
const ASKED_MAX: usize = 1000;

/// The loose objects in some object directories.
pub(in crate::store) struct LooseObjects {
    dirs: Vec<PathBuf>,
    /// The directories `ab` with them, by first byte; listed on first use.
    fans: OnceLock<Vec<Vec<PathBuf>>>,
    /// How many names were looked at one by one.
    asked: AtomicUsize,
    /// The objects whose names something other than a regular file has, in hex; listed once that is cheaper.
    blocked: OnceLock<HashSet<String>>,
}

impl LooseObjects {
    /// The borrowed loose objects of the private repository in the directory `private`.
    pub(in crate::store) fn borrowed_by(private: &Path) -> Self {
        Self::below(borrowed_dirs(&private.join("linked")))
    }

    /// The loose objects in the object directories `dirs`.
    pub(in crate::store) fn below(dirs: Vec<PathBuf>) -> Self {
        let asked = AtomicUsize::new(0);
        Self { dirs, fans: OnceLock::new(), asked, blocked: OnceLock::new() }
    }

    /// Whether an object is one of them and was changed after its creation.
    pub(in crate::store) fn is_rewritten(&self, id: &oid) -> bool {
        self.any(id, |path| is_changed(path).unwrap_or(false))
    }

    /// Whether something other than a regular file has the name of an object.
    pub(in crate::store) fn is_blocked(&self, id: &oid) -> bool {
        if self.asked.fetch_add(1, Ordering::Relaxed) < ASKED_MAX {
            return self.any(id, is_in_the_way);
        }
        let blocked = self.blocked.get_or_init(|| self.list_blocked());
        !blocked.is_empty() && blocked.contains(&id.to_string())
    }

    fn list_blocked(&self) -> HashSet<String> {
        let mut blocked = HashSet::new();
        for fan in self.fans.get_or_init(|| fans(&self.dirs)).iter().flatten() {
            let mut names = Vec::new();
            // Of a directory that cannot be listed, no object can be opened either.
            Dir::open(fan).and_then(|dir| dir.list(|listed| names.push(listed))).ok();
            for Listed { name, kind } in names {
                let Ok(name) = name.into_string() else { continue };
                let is_regular = match kind {
                    Some(kind) => kind == Kind::File,
                    None => !is_in_the_way(&fan.join(&name)),
                };
                if !is_regular {
                    let byte = fan.file_name().unwrap_or_default().to_string_lossy();
                    blocked.insert(format!("{byte}{name}"));
                }
            }
        }
        blocked
    }

    fn any(&self, id: &oid, is_such: impl Fn(&Path) -> bool) -> bool {
        let fans = self.fans.get_or_init(|| fans(&self.dirs));
        let dirs = &fans[usize::from(id.first_byte())];
        if dirs.is_empty() {
            return false;
        }
        let hex = id.to_string();
        dirs.iter().any(|dir| is_such(&dir.join(&hex[2..])))
    }
}

fn fans(dirs: &[PathBuf]) -> Vec<Vec<PathBuf>> {
    let mut fans = vec![Vec::new(); 256];
    for dir in dirs {
        for name in names_of(dir).unwrap_or_default() {
            let byte = name.to_str().filter(|name| name.len() == 2);
            if let Some(byte) = byte.and_then(|byte| usize::from_str_radix(byte, 16).ok()) {
                fans[byte].push(dir.join(name));
            }
        }
    }
    fans
}

fn is_changed(path: &Path) -> io::Result<bool> {
    let found = nature(path, false)?;
    let written = |born: i64| found.mtime_ns > born.saturating_add(WRITING_NS);
    Ok(found.birth_ns.is_some_and(written))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::fs::{remove_tree, replace};

    #[test]
    fn what_blocks_a_name_is_found_by_a_stat_and_in_a_list() {
        let dir = std::env::temp_dir().join(format!("beforehand-loose-{}", std::process::id()));
        fs::create_dir_all(dir.join("aa")).unwrap();
        let id = |last: u8| {
            let hex = format!("aa{:036x}{last:02x}", 0);
            gix::ObjectId::from_hex(hex.as_bytes()).unwrap()
        };
        let place = |last: u8| dir.join("aa").join(&id(last).to_string()[2..]);
        replace(&place(1), b"").unwrap();
        fs::create_dir(place(2)).unwrap();
        std::os::unix::fs::symlink("nowhere", place(3)).unwrap();
        let objects = LooseObjects::below(vec![dir.clone()]);
        for _ in 0..ASKED_MAX {
            let blocked = [0, 1, 2, 3].map(|last| objects.is_blocked(&id(last)));
            assert_eq!(blocked, [false, false, true, true]);
        }
        assert!(objects.blocked.get().is_some(), "listed by now");
        remove_tree(&dir).unwrap();
    }
}
