//! Objects are written once, verified when read, and removed safely.

use std::time::Duration;

use super::{pack::OBJECT_MAX_BYTES, *};
use crate::fs::FileBuffer;

/// An object directory that is removed on drop.
struct TempObjects(Objects, PathBuf);

impl TempObjects {
    fn new(name: &str) -> Self {
        let dir =
            std::env::temp_dir().join(format!("beforehand-obj-{name}-{}", std::process::id()));
        Self(Objects::new(dir.join("objects")), dir)
    }
}

impl Drop for TempObjects {
    #[expect(clippy::disallowed_methods, reason = "a directory of the test's own")]
    fn drop(&mut self) {
        fs::remove_dir_all(&self.1).unwrap();
    }
}

fn soon() -> Instant {
    Instant::now() + Duration::from_millis(50)
}

fn packs(fixture: &TempObjects) -> Vec<PathBuf> {
    let names = list_names(&fixture.0.packs_dir()).unwrap();
    names.iter().map(|name| fixture.0.packs_dir().join(name)).collect()
}

fn put(fixture: &TempObjects, all: &[&[u8]]) -> Vec<ContentId> {
    let batch = fixture.0.batch(soon()).unwrap();
    let ids = all.iter().map(|bytes| batch.put_bytes(bytes).unwrap()).collect();
    drop(batch.publish().unwrap());
    ids
}

/// An object with a file of its own, as they all had once.
fn put_loose(fixture: &TempObjects, bytes: &[u8]) -> ContentId {
    let id = id_of(bytes);
    let path = fixture.0.path(&id);
    create_private_dirs(path.parent().unwrap()).unwrap();
    crate::fs::replace(&path, bytes).unwrap();
    id
}

/// Puts other bytes of the same length in the place of an object in a pack.
fn spoil(pack: &Path, right: &[u8], wrong: &[u8]) {
    let mut bytes = fs::read(pack).unwrap();
    let at = bytes.windows(right.len()).position(|found| found == right).unwrap();
    bytes[at..at + wrong.len()].copy_from_slice(wrong);
    crate::fs::replace(pack, &bytes).unwrap();
}

fn file_of(fixture: &TempObjects, bytes: &[u8]) -> File {
    let path = fixture.1.join("file");
    crate::fs::replace(&path, bytes).unwrap();
    File::open(path).unwrap()
}

#[test]
fn bytes_and_files_of_every_size_come_back() {
    let fixture = TempObjects::new("sizes");
    for size in [0, 1, OBJECT_MAX_BYTES, OBJECT_MAX_BYTES + 1, 3 << 20] {
        let bytes = vec![7; usize::try_from(size).unwrap()];
        let batch = fixture.0.batch(soon()).unwrap();
        // The expected size must not affect what is stored.
        let lie = if size % 2 == 0 { size } else { 5 };
        let file = file_of(&fixture, &bytes);
        let (id, read) = batch.put_file(&file, lie, &mut FileBuffer::default()).unwrap().unwrap();
        assert_eq!((id, read), (id_of(&bytes), size));
        assert!(batch.contains(&id) && !fixture.0.contains(&id));
        assert_eq!(batch.publish().unwrap().new, 1);
        assert_eq!(fixture.0.read(&id).unwrap(), bytes);
        fixture.0.verify(&id).unwrap();
        let is_large = size > OBJECT_MAX_BYTES;
        let path = if is_large { fixture.0.path(&id) } else { packs(&fixture).remove(0) };
        assert_eq!(fs::metadata(path).unwrap().mode(), 0o100_400);
    }
    assert_eq!((fixture.0.ids().unwrap().len(), packs(&fixture).len()), (5, 3));
}

#[test]
fn what_is_not_published_leaves_nothing() {
    let fixture = TempObjects::new("dropped");
    let batch = fixture.0.batch(soon()).unwrap();
    batch.put_bytes(b"x").unwrap();
    assert_eq!(list_names(&fixture.0.dir).unwrap().len(), 1);
    drop(batch);
    assert_eq!(list_names(&fixture.0.dir).unwrap().len(), 0);
}

#[test]
fn equal_bytes_are_written_once() {
    let fixture = TempObjects::new("equal");
    for new in [1, 0] {
        let batch = fixture.0.batch(soon()).unwrap();
        batch.put_bytes(b"x").unwrap();
        batch.put_bytes(b"x").unwrap();
        assert_eq!(batch.publish().unwrap().new, new);
    }
}

#[test]
fn no_sweep_runs_while_a_save_does() {
    let fixture = TempObjects::new("locks");
    let batch = fixture.0.batch(soon()).unwrap();
    let second = fixture.0.batch(soon()).unwrap();
    assert!(matches!(fixture.0.lock_exclusive(soon()), Err(Error::Busy { .. })));
    drop(second);
    let held = batch.publish().unwrap();
    assert!(matches!(fixture.0.lock_exclusive(soon()), Err(Error::Busy { .. })));
    drop(held);
    let lock = fixture.0.lock_exclusive(soon()).unwrap();
    assert!(matches!(fixture.0.batch(soon()), Err(Error::Busy { .. })));
    drop(lock);
}

#[test]
fn a_changed_or_missing_object_is_damage() {
    let fixture = TempObjects::new("damage");
    let id = put_loose(&fixture, b"right");
    let path = fixture.0.path(&id);
    fixture.0.verify(&id).unwrap();
    crate::fs::replace(&path, b"wrong").unwrap();
    assert!(matches!(fixture.0.verify(&id), Err(Error::Damaged { .. })));
    assert!(matches!(fixture.0.read(&id), Err(Error::Damaged { .. })));
    assert!(io::copy(&mut fixture.0.open(&id).unwrap(), &mut io::sink()).is_err());
    assert!(fixture.0.remove(&id).unwrap() >= 512, "what it took on the disk, in blocks");
    assert_eq!(fixture.0.remove(&id).unwrap(), 0, "another sweep was faster");
    assert!(matches!(fixture.0.open(&id).err(), Some(Error::Damaged { .. })));
    std::os::unix::fs::symlink("/etc/passwd", &path).unwrap();
    assert!(fixture.0.open(&id).is_err() && !fixture.0.contains(&id));
}

#[test]
fn a_damaged_object_of_a_pack_names_it_and_is_written_again() {
    let fixture = TempObjects::new("again");
    let id = put(&fixture, &[b"right", b"other"])[0];
    let pack = packs(&fixture).remove(0);
    spoil(&pack, b"right", b"wrong");
    let Err(Error::Damaged { what, .. }) = fixture.0.verify(&id) else { panic!("it is damaged") };
    assert!(pack.ends_with(what.strip_prefix("objects/packs/").unwrap()), "{what}");
    assert!(fixture.0.open(&id).is_err() && fixture.0.read(&id).is_err());
    for new in [1, 0] {
        let batch = fixture.0.batch(soon()).unwrap();
        let put = batch.put_file(&file_of(&fixture, b"right"), 5, &mut FileBuffer::default());
        assert_eq!(put.unwrap().unwrap(), (id, 5));
        assert_eq!(batch.publish().unwrap().new, new);
        assert_eq!(fixture.0.read(&id).unwrap(), b"right");
    }
    assert_eq!(packs(&fixture).len(), 2);
    // All in it once more: the same pack takes the place of the damaged one.
    fs::remove_file(packs(&fixture).into_iter().find(|it| *it != pack).unwrap()).unwrap();
    put(&fixture, &[b"filler"]);
    let batch = fixture.0.batch(soon()).unwrap();
    batch.keep(id, b"right").unwrap();
    batch.keep(id_of(b"other"), b"other").unwrap();
    drop(batch.publish().unwrap());
    assert_eq!(fixture.0.read(&id).unwrap(), b"right");
    assert_eq!(packs(&fixture).len(), 2);
}

#[test]
fn a_pack_whose_lines_are_damaged_is_named_where_an_object_is_missing() {
    let fixture = TempObjects::new("lines");
    let id = put(&fixture, &[b"in it"])[0];
    let pack = packs(&fixture).remove(0);
    let bytes = fs::read(&pack).unwrap();
    crate::fs::replace(&pack, &bytes[..bytes.len() - 1]).unwrap();
    // As another process sees it.
    let objects = Objects::new(fixture.1.join("objects"));
    for err in [objects.size(&id).err(), objects.verify(&id).err(), objects.ids().err()] {
        let Some(Error::Damaged { what, .. }) = err else { panic!("it is damaged") };
        assert!(pack.ends_with(what.strip_prefix("objects/packs/").unwrap()), "{what}");
    }
    let batch = objects.batch(soon()).unwrap();
    assert_eq!(batch.put_bytes(b"in it").unwrap(), id);
    drop(batch.publish().unwrap());
    assert_eq!(objects.read(&id).unwrap(), b"in it", "it was written again");
}

#[test]
fn an_object_with_a_file_of_its_own_is_read_and_not_written_again() {
    let fixture = TempObjects::new("loose");
    let id = put_loose(&fixture, b"from before");
    assert_eq!(fixture.0.read(&id).unwrap(), b"from before");
    let batch = fixture.0.batch(soon()).unwrap();
    batch.put_bytes(b"from before").unwrap();
    let file = file_of(&fixture, b"from before");
    batch.put_file(&file, 11, &mut FileBuffer::default()).unwrap().unwrap();
    assert_eq!(batch.publish().unwrap().new, 0);
    assert_eq!(fixture.0.ids().unwrap().len(), 1);
    assert!(fixture.0.room(&id) >= 512 && fixture.0.room(&id_of(b"none")) == 0);
}

#[test]
fn a_reader_finds_what_was_moved_to_another_pack() {
    let fixture = TempObjects::new("moved");
    let ids = put(&fixture, &[b"one", b"two"]);
    let reader = Objects::new(fixture.1.join("objects"));
    assert_eq!(reader.read(&ids[0]).unwrap(), b"one");
    let mut old: Vec<_> = fixture.0.packs_read().unwrap().into_iter().flatten().collect();
    let added = fixture.0.copy_out(&mut old, |id| *id == ids[1], soon()).unwrap();
    assert!(added > 0);
    assert!(old.iter().map(|pack| pack.remove().unwrap()).sum::<u64>() > 0);
    assert_eq!(reader.read(&ids[1]).unwrap(), b"two");
    assert!(reader.read(&ids[0]).is_err());
}

#[test]
fn what_is_moved_stays_as_it_is_unless_it_is_there_intact() {
    let fixture = TempObjects::new("moved-damage");
    let ids = put(&fixture, &[b"right", b"alone"]);
    let pack = packs(&fixture).remove(0);
    spoil(&pack, b"right", b"wrong");
    spoil(&pack, b"alone", b"along");
    let batch = fixture.0.batch(soon()).unwrap();
    batch.put_file(&file_of(&fixture, b"right"), 5, &mut FileBuffer::default()).unwrap().unwrap();
    drop(batch.publish().unwrap());
    let mut old: Vec<_> = fixture.0.packs_read().unwrap().into_iter().flatten().collect();
    fixture.0.copy_out(&mut old, |_| true, soon()).unwrap();
    assert!(old.iter().all(|pack| pack.remove().unwrap() > 0));
    assert_eq!(fixture.0.read(&ids[0]).unwrap(), b"right");
    assert!(matches!(fixture.0.read(&ids[1]), Err(Error::Damaged { .. })));
    let bytes = fs::read(packs(&fixture).remove(0)).unwrap();
    assert!(bytes.windows(5).any(|found| found == b"along"), "it is the user's to look at");
    assert_eq!(packs(&fixture).len(), 1);
}

#[test]
fn a_sweep_creates_nothing_that_was_removed() {
    let dir = std::env::temp_dir().join(format!("beforehand-obj-removed-{}", std::process::id()));
    assert!(Objects::new(dir.join("objects")).lock_exclusive(soon()).is_err());
    assert!(!dir.exists());
}

#[test]
fn temporary_files_of_the_dead_are_reclaimed() {
    let fixture = TempObjects::new("stale");
    create_private_dirs(&fixture.0.dir).unwrap();
    let path = fixture.0.dir.join("tmp-1-1");
    crate::fs::replace(&path, b"half").unwrap();
    fixture.0.remove_stale(false).unwrap();
    assert!(path.exists(), "another process may be writing it");
    let long_ago = std::time::SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
    File::options().write(true).open(&path).unwrap().set_modified(long_ago).unwrap();
    fixture.0.remove_stale(false).unwrap();
    assert!(!path.exists());
}
