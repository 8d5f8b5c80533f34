//! What is written is read back, and what is damaged is not believed.

use std::{
    collections::BTreeMap,
    io::{self, Seek},
};

use super::*;

type Dirs = BTreeMap<DirPath, Fresh>;

/// The bytes of a table whose paths are hashed with `seed`.
fn table_of(dirs: &Dirs, facts: &Facts, seed: u64) -> Vec<u8> {
    NewTable::seeded(dirs, facts, seed).to_bytes()
}

fn sample() -> Vec<u8> {
    let stamp = Stamp { mtime_ns: -5, ctime_ns: 7, inode: 9, size: 11, mode: 0o100_644 };
    let entry = |name: &[u8]| ScanEntry {
        name: name.to_vec(),
        stamp,
        content: Some(ContentId::new(&[3; 20])),
        marks: Marks { tracked: true, ignored: true, private: false, racy: true },
        skipped: None,
    };
    let b = ScanEntry { skipped: Some(SkipReason::TooLarge), content: None, ..entry(b"b") };
    let fresh = |racy, found| Fresh { stamp, racy, id: None, found };
    let dirs = Dirs::from([
        (DirPath::default(), fresh(false, vec![entry(b"a"), b])),
        (DirPath(b"d".into()), fresh(true, vec![])),
        (DirPath(b"d/e".into()), fresh(false, vec![entry(b"\xff")])),
    ]);
    let id = ContentId::new(&[1; 20]);
    let latest = Some((CheckpointId::from_bits(77), id));
    table_of(&dirs, &Facts { files: 2, top: Some(id), latest, ..Facts::default() }, 5)
}

#[test]
fn what_was_put_in_comes_out() {
    let table = ScanTable::parse(sample()).unwrap();
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
    let write = |dirs: &Dirs, facts: &Facts| {
        let table = NewTable::new(dirs, facts);
        table.write(&path).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), table.to_bytes());
        inode()
    };
    let mut dirs = Dirs::from([(DirPath::default(), Fresh::default())]);
    let first = write(&dirs, &Facts::default());
    assert_eq!(write(&dirs, &Facts { files: 7, ..Facts::default() }), first);
    dirs.insert(DirPath(b"d".into()), Fresh::default());
    assert_ne!(write(&dirs, &Facts::default()), first);
    std::fs::remove_file(&path).unwrap();
}

/// Remembers the sizes of writes.
#[derive(Default)]
struct Sizes(Vec<usize>);

impl io::Write for &mut Sizes {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.push(bytes.len());
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Seek for &mut Sizes {
    fn seek(&mut self, _: io::SeekFrom) -> io::Result<u64> {
        Ok(0)
    }
}

#[test]
fn of_a_large_table_no_more_than_the_index_is_in_memory_as_a_whole() {
    let entry = |number: u32| ScanEntry {
        name: format!("{number:05}").into(),
        stamp: Stamp::default(),
        content: None,
        marks: Marks::default(),
        skipped: None,
    };
    let found = (0..20_000).map(entry).collect();
    let dirs = Dirs::from([(DirPath::default(), Fresh { found, ..Fresh::default() })]);
    let mut sizes = Sizes::default();
    NewTable::new(&dirs, &Facts::default()).write_to(&mut sizes).unwrap();
    let large = sizes.0.iter().filter(|size| **size > write::BUFFER_BYTES);
    assert_eq!(large.collect::<Vec<_>>(), [&lookup::index_bytes(20_000).unwrap()]);
    assert!(sizes.0.iter().sum::<usize>() > 20_000 * ENTRY_BYTES);
}

#[test]
fn a_patched_table_is_the_one_that_would_be_built() {
    let table = ScanTable::parse(sample()).unwrap();
    let change = |path: &[u8]| {
        let dir = table.find_dir(path).unwrap();
        let mut found: Vec<ScanEntry> = dir.rows().map(|row| row.to_found()).collect();
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
    let path = file("patched");
    for changed in 0..1u32 << paths.len() {
        let is_fresh = |at: &usize| changed >> at & 1 == 1;
        let fresh: Vec<(DirPath, Fresh)> =
            (0..paths.len()).filter(is_fresh).map(|at| change(&paths[at])).collect();
        let again = |dir: DirRow<'_>| {
            let found = dir.rows().map(|row| row.to_found()).collect();
            let (stamp, racy) = (dir.stamp, dir.racy);
            (DirPath(dir.path.to_vec()), Fresh { stamp, racy, id: None, found })
        };
        let mut dirs: Dirs = table.dirs().map(again).collect();
        dirs.extend(fresh.iter().cloned());
        fs::replace(&path, &sample()).unwrap();
        let changes = fresh.iter().map(|(path, fresh)| (path, fresh));
        assert!(table.patch(&path, &facts, changes).unwrap());
        assert_eq!(std::fs::read(&path).unwrap(), table_of(&dirs, &facts, 5), "{changed:b}");
    }
    let refused = |fresh: (&DirPath, &Fresh), there: &[u8]| {
        fs::replace(&path, there).unwrap();
        assert!(!table.patch(&path, &facts, [fresh].into_iter()).unwrap());
        assert_eq!(std::fs::read(&path).unwrap(), there);
    };
    let (dir, mut fresh) = change(&paths[0]);
    // Another process has written meanwhile.
    refused((&dir, &fresh), &table_of(&Dirs::default(), &facts, 5));
    refused((&dir, &fresh), b"");
    fresh.found[0].name.push(b'x');
    refused((&dir, &fresh), &sample());
    fresh.found.remove(0);
    refused((&dir, &fresh), &sample());
    std::fs::remove_file(&path).unwrap();
}

/// A file of its own for each test.
fn file(name: &str) -> std::path::PathBuf {
    std::env::temp_dir().join(format!("beforehand-cache-{name}-{}", std::process::id()))
}

/// The row of `path` in a cache file of these bytes.
fn looked_up<'p>(at: &Path, bytes: &[u8], path: &'p [u8]) -> Option<TableRow<'p>> {
    fs::replace(at, bytes).unwrap();
    Lookup::open(at)?.row(path)
}

#[test]
fn every_row_is_looked_up_by_its_path_and_nothing_else_is() {
    let at = file("every");
    let stamp = Stamp { mode: 0o100_644, ..Stamp::default() };
    // With this seed, two of the paths have one hash.
    let (mut dirs, mut paths) = (Dirs::default(), Vec::new());
    for dir in 0..40u64 {
        let path = if dir == 0 { String::new() } else { format!("d{dir:02}") };
        let entry = |number| {
            let name = format!("{number:04}");
            paths.push([&path, "/", &name].concat());
            let stamp = Stamp { inode: paths.len() as u64, ..stamp };
            let (content, marks) = (Some(ContentId::new(&[7; 20])), Marks::default());
            ScanEntry { name: name.into(), stamp, content, marks, skipped: None }
        };
        let found = (0..dir * dir).map(entry).collect();
        dirs.insert(DirPath(path.into()), Fresh { stamp, racy: false, id: None, found });
    }
    let bytes = table_of(&dirs, &Facts::default(), 0);
    let table = ScanTable::parse(bytes.clone()).unwrap();
    fs::replace(&at, &bytes).unwrap();
    let lookup = Lookup::open(&at).unwrap();
    for (number, path) in paths.iter().enumerate() {
        assert_eq!(lookup.row(path.as_bytes()), Some(table.row(number)), "{path}");
        assert_eq!(lookup.row(&[path.as_bytes(), b"x"].concat()), None);
    }
    for absent in [&b""[..], b"/", b"d01", b"d01/", b"0000", b"/d01/0000"] {
        assert_eq!(lookup.row(absent), None);
    }
    std::fs::remove_file(&at).unwrap();
}

#[test]
fn where_a_path_is_in_the_index_is_told_by_no_name() {
    let slots = |seed| PathHashes::of(seed, b"d").entry(b"name").slot();
    assert!((1..99).all(|seed| slots(seed) != slots(0)));
    let (dirs, facts) = (Dirs::default(), Facts::default());
    assert_ne!(NewTable::new(&dirs, &facts).seed(), NewTable::new(&dirs, &facts).seed());
}

#[test]
fn a_damaged_file_never_misleads_a_look_up() {
    let at = file("damaged");
    let good = sample();
    let paths = [&b"a"[..], b"b", b"d/e/\xff", b"d", b"x"];
    let rows = paths.map(|path| looked_up(&at, &good, path));
    assert_eq!(rows.map(|row| row.is_some()), [true, true, true, false, false]);
    for byte in 0..good.len() {
        let mut bad = good.clone();
        for bits in [0x01, 0x41, 0xff] {
            bad[byte] = good[byte] ^ bits;
            for (path, row) in paths.iter().zip(&rows) {
                let found = looked_up(&at, &bad, path);
                assert!(found.is_none() || found == *row, "byte {byte} of {path:?}");
            }
        }
        assert!(looked_up(&at, &good[..byte], b"a").is_none(), "cut at {byte}");
    }
    for counts in [0u64, 1, u64::from(u32::MAX), u64::MAX / 80, u64::MAX] {
        for at_count in (16..COUNTS_BYTES).step_by(8) {
            let mut bad = good.clone();
            bad[at_count..at_count + 8].copy_from_slice(&counts.to_le_bytes());
            assert!(bad == good || ScanTable::parse(bad.clone()).is_none());
            let found = looked_up(&at, &bad, b"a");
            assert!(found.is_none() || found == rows[0]);
        }
    }
    std::fs::remove_file(&at).unwrap();
}

#[test]
fn a_damaged_cache_is_no_cache() {
    let good = sample();
    let table = ScanTable::parse(good.clone()).unwrap().bytes.len();
    for at in 0..good.len() {
        let mut bad = good.clone();
        bad[at] ^= 0x41;
        // The index is not believed anyway.
        assert_eq!(ScanTable::parse(bad).is_none(), at < table, "byte {at}");
        assert_eq!(ScanTable::parse(good[..at].to_vec()).is_none(), at != table, "cut at {at}");
    }
}

#[test]
fn rows_that_point_nowhere_are_refused_even_with_a_right_checksum() {
    let end = ScanTable::parse(sample()).unwrap().bytes.len();
    for at in HEADER_BYTES..end {
        let mut bad = sample();
        bad.truncate(end);
        bad[at] = 0xff;
        let sum = u64::from(crc32fast::hash(&bad[16..]));
        bad[8..16].copy_from_slice(&sum.to_le_bytes());
        if let Some(table) = ScanTable::parse(bad) {
            table.dirs().flat_map(|dir| dir.rows()).for_each(|row| drop(row.to_found()));
        }
    }
}
