//! A pack gives back what was put into it, whatever its size; and what is no pack does no harm.

use proptest::prelude::*;

use super::*;
use crate::store::objects::id_of;

/// A directory that is removed on drop.
struct TempPackDir(PathBuf);

impl TempPackDir {
    fn new(name: &str) -> Self {
        let dir =
            std::env::temp_dir().join(format!("beforehand-pack-{name}-{}", std::process::id()));
        fs::create_dir(&dir).unwrap();
        Self(dir)
    }

    /// A pack of these objects.
    fn pack(&self, objects: &[Vec<u8>]) -> Pack {
        let path = self.0.join("new");
        let mut pack = PackWriter::new(File::create_new(&path).unwrap());
        for bytes in objects {
            pack.push(id_of(bytes), bytes).unwrap();
        }
        let named = self.0.join(pack.finish().unwrap());
        fs::rename(path, &named).unwrap();
        Pack::new(named)
    }

    fn opened(&self, name: &str, bytes: &[u8]) -> Pack {
        let path = self.0.join(name);
        crate::fs::replace(&path, bytes).unwrap();
        Pack::new(path)
    }
}

impl Drop for TempPackDir {
    fn drop(&mut self) {
        crate::fs::remove_tree(&self.0).unwrap();
    }
}

fn distinct(count: usize) -> Vec<Vec<u8>> {
    (0..count).map(|number| format!("{number}").into_bytes()).collect()
}

#[test]
fn every_object_is_found_in_packs_of_every_size() {
    let fixture = TempPackDir::new("sizes");
    for count in [1, 2, 127, 128, 129, 1000, 20_000] {
        let objects = distinct(count);
        let pack = fixture.pack(&objects);
        assert!(pack.fault().is_none(), "{count}");
        for bytes in objects.iter().step_by(count / 100 + 1) {
            let id = id_of(bytes);
            assert_eq!(pack.read(&id).unwrap().as_ref(), Some(bytes), "{count}");
            assert_eq!(pack.size(&id), Some(bytes.len() as u64));
        }
        for absent in 0..50 {
            assert_eq!(pack.size(&id_of(format!("absent {absent}").as_bytes())), None);
        }
        assert_eq!(pack.rows().unwrap().len(), count);
    }
}

#[test]
fn a_shell_can_read_the_lines() {
    let fixture = TempPackDir::new("lines");
    let pack = fixture.pack(&[b"first".to_vec(), b"second".to_vec()]);
    let text = fs::read_to_string(pack.path()).unwrap();
    let id = id_of(b"second");
    assert!(text.starts_with("firstsecond"), "{text}");
    let line = text.lines().find(|line| line.contains(&id.to_string())).unwrap();
    let words: Vec<&str> = line.trim_start_matches("firstsecond").split_whitespace().collect();
    assert_eq!(words, [&*id.to_string(), "5", "6"]);
    assert!(text.ends_with("\nbeforehand pack 1             2\n"), "{text}");
    assert_eq!(text.len(), 11 + 2 * LINE_BYTES + LAST_LINE_BYTES);
}

#[test]
fn damage_anywhere_is_noticed() {
    let fixture = TempPackDir::new("damage");
    let good = fixture.pack(&distinct(3));
    let bytes = fs::read(good.path()).unwrap();
    for at in 0..bytes.len() {
        let mut bad = bytes.clone();
        bad[at] ^= 1;
        let pack = fixture.opened(good.name(), &bad);
        let is_found = pack.rows().is_err();
        let is_read = |id: &ContentId| matches!(pack.read(id), Ok(Some(_)));
        let all = distinct(3).iter().all(|bytes| is_read(&id_of(bytes)));
        assert_eq!(is_found, at >= 3, "{at}: the lines are what the name is made of");
        assert!(is_found || !all, "{at}");
    }
    for length in 0..bytes.len() {
        assert!(fixture.opened(good.name(), &bytes[..length]).fault().is_some(), "{length}");
    }
    let mut longer = bytes.clone();
    longer.push(b'\n');
    assert!(fixture.opened(good.name(), &longer).fault().is_some());
}

#[test]
fn what_is_no_file_is_no_pack() {
    let fixture = TempPackDir::new("kinds");
    let link = fixture.0.join("link");
    std::os::unix::fs::symlink("/dev/zero", &link).unwrap();
    for path in [link, fixture.0.clone()] {
        let fault = Pack::new(path).fault().unwrap();
        assert!(fault.to_string().contains("not a regular file"), "{fault}");
    }
    let gone = Pack::new(fixture.0.join("gone"));
    assert!(gone.fault().is_none() && gone.rows().unwrap().is_empty());
}

#[test]
fn a_pack_that_goes_meanwhile_has_nothing() {
    let fixture = TempPackDir::new("gone");
    let pack = fixture.pack(&distinct(3));
    assert_eq!(pack.size(&id_of(b"1")), Some(1));
    fs::remove_file(pack.path()).unwrap();
    assert!(pack.read(&id_of(b"1")).unwrap().is_none());
    assert!(pack.rows().unwrap().is_empty());
}

/// Lines with any ids at all, in any order, and any places.
fn forged() -> impl Strategy<Value = (Vec<u8>, Vec<ContentId>)> {
    let id = prop_oneof![
        any::<[u8; 32]>(),
        // All close together, as hashes never are.
        any::<u8>().prop_map(|last| {
            let mut id = [1; 32];
            id[31] = last;
            id
        }),
    ];
    let row = (id, 0..40_u64, 0..20_u64);
    (prop::collection::vec(row, 0..400), any::<bool>(), 0..3_u64).prop_map(|(rows, sort, more)| {
        let rows = rows.into_iter().map(|(id, at, size)| (ContentId::new(&id), at..at + size));
        let mut rows: Vec<ObjectRange> = rows.collect();
        if sort {
            rows.sort_by_key(|(id, _)| *id);
            rows.dedup_by_key(|(id, _)| *id);
        }
        let mut pack = vec![b'x'; 50];
        let mut lines = String::new();
        for row in &rows {
            put_line(&mut lines, row);
        }
        lines.push_str(&last_line(rows.len() as u64 + more));
        pack.extend_from_slice(lines.as_bytes());
        (pack, rows.into_iter().map(|(id, _)| id).collect())
    })
}

proptest! {
    #[test]
    fn a_forged_pack_is_read_or_refused((pack, ids) in forged(), cut in 0..3_usize) {
        read_any(&pack);
        read_any(&pack[cut..]);
        let fixture = TempPackDir::new(&format!("forged-{:?}", std::thread::current().id()));
        let opened = fixture.opened(&"0".repeat(64), &pack);
        for id in &ids {
            // Whatever it says: these bytes have other names.
            prop_assert!(!matches!(opened.read(id), Ok(Some(_))));
        }
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        read_any(&bytes);
        read_any(&[&bytes[..], last_line(bytes.len() as u64 / 96).as_bytes()].concat());
    }

    #[test]
    fn what_is_put_in_comes_back(objects in prop::collection::hash_set(
        prop::collection::vec(any::<u8>(), 0..300), 1..40,
    )) {
        let fixture = TempPackDir::new(&format!("back-{:?}", std::thread::current().id()));
        let objects: Vec<_> = objects.into_iter().collect();
        let pack = fixture.pack(&objects);
        for bytes in &objects {
            let read = pack.read(&id_of(bytes)).unwrap();
            prop_assert_eq!(read.as_ref(), Some(bytes));
        }
        read_any(&fs::read(pack.path()).unwrap());
    }
}
