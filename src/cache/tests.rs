//! What is written is read back, and what is damaged is not believed.

use super::*;

fn sample() -> Vec<u8> {
    let stamp = Stamp { mtime_ns: -5, ctime_ns: 7, inode: 9, size: 11, mode: 0o100_644 };
    let row = |name| Row {
        name,
        stamp,
        content: Some(ContentId::new(&[3; 20])),
        marks: Marks { tracked: true, ignored: true, private: false, racy: true },
        skipped: None,
    };
    let mut builder = Builder::default();
    builder.directory(b"", stamp, false);
    builder.entry(&row(b"a"));
    builder.entry(&Row { skipped: Some(SkipReason::TooLarge), content: None, ..row(b"b") });
    builder.directory(b"d", stamp, true);
    builder.directory(b"d/e", stamp, false);
    builder.entry(&row(b"\xff"));
    let id = ContentId::new(&[1; 20]);
    let latest = Some((CheckpointId::from_bits(77), id));
    builder.finish(&Facts { files: 2, top: Some(id), latest, ..Facts::default() })
}

#[test]
fn what_was_put_in_comes_out() {
    let table = Table::parse(sample()).unwrap();
    let paths: Vec<_> = table.dirs().map(|dir| (dir.path, dir.rows().len(), dir.racy)).collect();
    assert_eq!(paths, [(&b""[..], 2, false), (b"d", 0, true), (b"d/e", 1, false)]);
    let b = table.find_dir(b"").unwrap().row(b"b").unwrap();
    assert_eq!((b.skipped, b.content), (Some(SkipReason::TooLarge), None));
    let deep = table.find_dir(b"d/e").unwrap().row(b"\xff").unwrap();
    assert_eq!((deep.stamp.mtime_ns, deep.marks.tracked, deep.marks.racy), (-5, true, true));
    assert!(table.find_dir(b"x").is_none() && table.find_dir(b"d").unwrap().row(b"x").is_none());
    assert_eq!(table.facts().files, 2);
    let latest = (CheckpointId::from_bits(77), ContentId::new(&[1; 20]));
    assert_eq!(table.facts().latest, Some(latest));
}

#[test]
fn one_that_fits_is_written_where_it_lies() {
    use std::os::unix::fs::MetadataExt;
    let path = std::env::temp_dir().join(format!("beforehand-cache-{}", std::process::id()));
    let inode = || std::fs::metadata(&path).unwrap().ino();
    let mut other = sample();
    let last = other.len() - 1;
    other[last] ^= 1;
    seal(&mut other);
    write(&path, &sample()).unwrap();
    let first = inode();
    write(&path, &other).unwrap();
    assert_eq!((inode(), std::fs::read(&path).unwrap()), (first, other));
    write(&path, b"shorter").unwrap();
    assert_ne!(inode(), first);
    assert_eq!(std::fs::read(&path).unwrap(), b"shorter");
    std::fs::remove_file(&path).unwrap();
}

#[test]
fn a_patched_table_is_the_one_that_would_be_built() {
    let table = Table::parse(sample()).unwrap();
    let change = |path: &[u8]| {
        let dir = table.find_dir(path).unwrap();
        let mut found: Vec<Found> = dir.rows().map(|row| row.to_found()).collect();
        for found in &mut found {
            found.stamp.size += 1;
            found.content = Some(ContentId::new(&[9; 32]));
            found.marks.racy = !found.marks.racy;
            found.skipped = None;
        }
        let stamp = Stamp { mtime_ns: dir.stamp.mtime_ns + 1, ..dir.stamp };
        (DirPath(path.to_vec()), Fresh { stamp, racy: !dir.racy, id: None, found })
    };
    let facts = Facts { files: 7, partial: true, ..*table.facts() };
    let paths: Vec<Vec<u8>> = table.dirs().map(|dir| dir.path.to_vec()).collect();
    for changed in 0..1u32 << paths.len() {
        let is_fresh = |at: &usize| changed >> at & 1 == 1;
        let fresh: Vec<(DirPath, Fresh)> =
            (0..paths.len()).filter(is_fresh).map(|at| change(&paths[at])).collect();
        let mut built = Builder::default();
        for dir in table.dirs() {
            let new = fresh.iter().find(|(path, _)| path.0 == dir.path);
            if let Some((path, fresh)) = new {
                built.directory(&path.0, fresh.stamp, fresh.racy);
                fresh.found.iter().for_each(|found| built.entry(&Row::from(found)));
            } else {
                built.directory(dir.path, dir.stamp, dir.racy);
                dir.rows().for_each(|row| built.entry(&row));
            }
        }
        let patched = table.patched(&facts, fresh.iter().map(|(path, fresh)| (path, fresh)));
        assert_eq!(patched, Some(built.finish(&facts)), "{changed:b}");
    }
    let (path, mut fresh) = change(&paths[0]);
    fresh.found[0].name.push(b'x');
    assert_eq!(table.patched(&facts, [(&path, &fresh)].into_iter()), None);
    fresh.found.remove(0);
    assert_eq!(table.patched(&facts, [(&path, &fresh)].into_iter()), None);
}

#[test]
fn a_damaged_cache_is_no_cache() {
    let good = sample();
    for at in 0..good.len() {
        let mut bad = good.clone();
        bad[at] ^= 0x41;
        assert!(Table::parse(bad).is_none(), "byte {at}");
        assert!(Table::parse(good[..at].to_vec()).is_none(), "cut at {at}");
    }
}

#[test]
fn rows_that_point_nowhere_are_refused_even_with_a_right_checksum() {
    for at in HEADER_BYTES..sample().len() {
        let mut bad = sample();
        bad[at] = 0xff;
        let checksum = u64::from(crc32fast::hash(&bad[16..]));
        bad[8..16].copy_from_slice(&checksum.to_le_bytes());
        if let Some(table) = Table::parse(bad) {
            table.dirs().flat_map(|dir| dir.rows()).for_each(|row| drop(row.to_found()));
        }
    }
}
