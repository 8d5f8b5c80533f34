//! What a git that was killed leaves locked, and what stands where our refs should.

use std::{
    fs,
    path::PathBuf,
    time::{Duration, SystemTime},
};

use turnback::model::CheckpointId;

use super::{Fixture, git::GitFixture, held, save, save_new};
use crate::support::temp::{on_disk, write};

/// A lock on git's list of packed refs, of that age.
fn lock(fixture: &GitFixture, at: SystemTime) -> PathBuf {
    let lock = fixture.git_dir().join("packed-refs.lock");
    write(&lock, "half a list");
    fs::File::open(&lock).unwrap().set_modified(at).unwrap();
    lock
}

fn ids(fixture: &GitFixture) -> Vec<CheckpointId> {
    fixture.open().list().unwrap().iter().map(|checkpoint| checkpoint.id).collect()
}

#[test]
#[expect(clippy::disallowed_methods, reason = "the age of a lock is what is tested")]
fn a_lock_that_a_killed_git_left_on_its_packed_refs_is_in_nobodys_way() {
    let later = SystemTime::now() + Duration::from_secs(3600);
    for (at, is_old) in [(SystemTime::UNIX_EPOCH, true), (later, false)] {
        let fixture = GitFixture::new();
        let root = fixture.root().path().to_owned();
        write(&root.join("a"), "first");
        let first = save_new(&fixture).id;
        let lock = lock(&fixture, at);
        write(&root.join("a"), "second");
        let second = save_new(&fixture).id;
        assert_eq!(held(&*fixture.open(), second), on_disk(&root), "old: {is_old}");
        assert_eq!(ids(&fixture), [second, first]);
        assert_eq!(fixture.open().check(true).unwrap(), []);
        if is_old {
            fixture.open().remove(&[first]).unwrap();
            assert_eq!(ids(&fixture), [second]);
        }
        assert_eq!(fs::read(&lock).unwrap(), b"half a list", "it is the user's");
        let ours = on_disk(&fixture.git_dir().join("refs")).into_keys();
        assert!(!{ ours }.any(|name| name.ends_with(b".lock")));
        fs::remove_file(lock).unwrap();
        save(&fixture);
        fixture.fsck();
    }
}

#[test]
fn a_ref_in_a_list_that_stays_locked_is_not_dropped_behind_gits_back() {
    let fixture = GitFixture::new();
    write(&fixture.root().path().join("a"), "first");
    let first = save_new(&fixture).id;
    if fixture.run(&["pack-refs", "--all", "--prune"]).is_none() {
        return;
    }
    let lock = lock(&fixture, SystemTime::UNIX_EPOCH);
    let said = fixture.open().remove(&[first]).unwrap_err().to_string();
    assert!(said.contains("packed-refs.lock"), "{said}");
    assert_eq!(ids(&fixture), [first]);
    // The anchor is in the list as well, and moves all the same.
    write(&fixture.root().path().join("a"), "second");
    let second = save_new(&fixture).id;
    assert_eq!(ids(&fixture), [second, first]);
    fs::remove_file(lock).unwrap();
    fixture.open().remove(&[first]).unwrap();
    assert_eq!(ids(&fixture), [second]);
    fixture.fsck();
}

#[test]
fn what_stands_where_our_refs_should_does_not_keep_the_rest_away() {
    let fixture = GitFixture::new();
    let root = fixture.root().path().to_owned();
    write(&root.join("a"), "first");
    let first = save_new(&fixture).id;
    let refs = fixture.git_dir().join("refs/turnback");
    fs::rename(&refs, refs.with_extension("away")).unwrap();
    write(&refs, "no directory");
    assert_eq!(ids(&fixture), [first]);
    assert_eq!(held(&*fixture.open(), first), on_disk(&root));
    write(&root.join("a"), "second");
    let said = fixture.open().save(super::draft(super::walk(fixture.root())));
    assert!(said.unwrap_err().to_string().contains("refs/turnback"));
    assert_eq!(fs::read(&refs).unwrap(), b"no directory");
}
