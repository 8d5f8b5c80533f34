//! Objects are written once, verified when read, and removed safely.

use std::time::Duration;

use super::*;

/// An object directory that is removed on drop.
struct Fixture(Objects, PathBuf);

impl Fixture {
    fn new(name: &str) -> Self {
        let dir =
            std::env::temp_dir().join(format!("beforehand-obj-{name}-{}", std::process::id()));
        Self(Objects::new(dir.join("objects")), dir)
    }
}

impl Drop for Fixture {
    #[expect(clippy::disallowed_methods, reason = "a directory of the test's own")]
    fn drop(&mut self) {
        fs::remove_dir_all(&self.1).unwrap();
    }
}

fn soon() -> Instant {
    Instant::now() + Duration::from_millis(50)
}

fn file_of(fixture: &Fixture, bytes: &[u8]) -> File {
    let path = fixture.1.join("file");
    crate::fs::replace(&path, bytes).unwrap();
    File::open(path).unwrap()
}

#[test]
fn bytes_and_files_of_every_size_come_back() {
    let fixture = Fixture::new("sizes");
    for size in [0, 1, SMALL_MAX_BYTES, SMALL_MAX_BYTES + 1, 3 << 20] {
        let bytes = vec![7; usize::try_from(size).unwrap()];
        let mut batch = fixture.0.batch(soon()).unwrap();
        // The expected size must not affect what is stored.
        let lie = if size % 2 == 0 { size } else { 5 };
        let (id, read) = batch.put_file(&file_of(&fixture, &bytes), lie).unwrap().unwrap();
        assert_eq!((id, read), (id_of(&bytes), size));
        assert!(batch.contains(&id) && !fixture.0.contains(&id));
        assert_eq!(batch.publish().unwrap().new, 1);
        assert_eq!(fixture.0.read(&id).unwrap(), bytes);
        fixture.0.verify(&id).unwrap();
        assert_eq!(fs::metadata(fixture.0.path(&id)).unwrap().mode(), 0o100_400);
    }
    assert_eq!(fixture.0.ids().unwrap().len(), 5);
}

#[test]
fn what_is_not_published_leaves_nothing() {
    let fixture = Fixture::new("dropped");
    let mut batch = fixture.0.batch(soon()).unwrap();
    batch.put_bytes(b"x").unwrap();
    assert_eq!(names_in(&fixture.0.dir).unwrap().len(), 1);
    drop(batch);
    assert_eq!(names_in(&fixture.0.dir).unwrap().len(), 0);
}

#[test]
fn equal_bytes_are_written_once() {
    let fixture = Fixture::new("equal");
    for new in [1, 0] {
        let mut batch = fixture.0.batch(soon()).unwrap();
        batch.put_bytes(b"x").unwrap();
        batch.put_bytes(b"x").unwrap();
        assert_eq!(batch.publish().unwrap().new, new);
    }
}

#[test]
fn no_sweep_runs_while_a_save_does() {
    let fixture = Fixture::new("locks");
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
    let fixture = Fixture::new("damage");
    let mut batch = fixture.0.batch(soon()).unwrap();
    let id = batch.put_bytes(b"right").unwrap();
    drop(batch.publish().unwrap());
    let path = fixture.0.path(&id);
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
fn a_sweep_creates_nothing_that_was_removed() {
    let dir = std::env::temp_dir().join(format!("beforehand-obj-removed-{}", std::process::id()));
    assert!(Objects::new(dir.join("objects")).lock_exclusive(soon()).is_err());
    assert!(!dir.exists());
}

#[test]
fn temporary_files_of_the_dead_are_reclaimed() {
    let fixture = Fixture::new("stale");
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
