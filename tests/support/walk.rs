//! A walk without a cache, as the reference for stores.

use std::{
    fs,
    os::unix::{ffi::OsStrExt, fs::MetadataExt},
    path::{Path, PathBuf},
};

use beforehand::{
    model::{DirPath, Fresh, Kind, Marks, Root, ScanEntry, SkipReason, Stamp},
    scan::{Scan, Victim, VictimPath},
};

/// Walks all of `root`.
pub(crate) fn walk(root: &Root) -> Scan {
    walk_but(root, &[], &[])
}

/// Walks `root` but for names in `ignored`, and takes up `victims`, which are absolute.
pub(crate) fn walk_but(root: &Root, ignored: &[&str], victims: &[PathBuf]) -> Scan {
    let mut scan = Scan::default();
    add(root.path(), DirPath::default(), ignored, &mut scan);
    for path in victims {
        add_victim(root, path, &mut scan);
    }
    scan
}

fn add(dir: &Path, path: DirPath, ignored: &[&str], scan: &mut Scan) {
    let stamp = stamp_of(dir);
    let mut found: Vec<ScanEntry> =
        fs::read_dir(dir).unwrap().map(|entry| found_at(&entry.unwrap().path())).collect();
    found.sort_by(|a, b| a.name.cmp(&b.name));
    for found in &mut found {
        if found.name == b".git" {
            found.skipped = Some(SkipReason::GitPrivate);
        } else if ignored.iter().any(|name| name.as_bytes() == found.name) {
            found.skipped = Some(SkipReason::Ignored);
        } else if found.kind() == Some(Kind::Directory) {
            let below = dir.join(std::ffi::OsStr::from_bytes(&found.name));
            add(&below, DirPath(path.join(&found.name)), ignored, scan);
        }
    }
    scan.fresh.insert(path, Fresh { stamp, racy: true, id: None, found });
}

fn add_victim(root: &Root, path: &Path, scan: &mut Scan) {
    let found = found_at(path);
    let is_directory = found.kind() == Some(Kind::Directory);
    let place = match root.relative(path) {
        Ok(below) => VictimPath::Below(below),
        Err(_) => VictimPath::Outside(path.to_owned()),
    };
    scan.victims.push(Victim { path: place, found });
    if is_directory {
        for entry in fs::read_dir(path).unwrap() {
            add_victim(root, &entry.unwrap().path(), scan);
        }
    }
}

fn found_at(path: &Path) -> ScanEntry {
    ScanEntry {
        name: path.file_name().unwrap().as_bytes().to_vec(),
        stamp: stamp_of(path),
        content: None,
        marks: Marks { racy: true, ..Marks::default() },
        skipped: None,
    }
}

fn stamp_of(path: &Path) -> Stamp {
    let data = fs::symlink_metadata(path).unwrap();
    let is_device =
        matches!(Kind::of_mode(data.mode()), Some(Kind::CharDevice | Kind::BlockDevice));
    Stamp {
        mtime_ns: data.mtime() * 1_000_000_000 + data.mtime_nsec(),
        ctime_ns: data.ctime() * 1_000_000_000 + data.ctime_nsec(),
        inode: data.ino(),
        size: if is_device { data.rdev() } else { data.size() },
        mode: data.mode(),
    }
}
