//! What a git that was killed leaves locked, and what stands where our refs should.

use std::{fs, path::PathBuf};

use turnback::model::CheckpointId;

use super::{Fixture, git::GitFixture, held, save, save_new};
use crate::support::temp::{on_disk, write};

fn ids(fixture: &GitFixture) -> Vec<CheckpointId> {
    fixture.open().list().unwrap().iter().map(|checkpoint| checkpoint.id).collect()
}

#[test]
fn locks_of_the_users_git_are_in_nobodys_way_and_stay() {
    let fixture = GitFixture::new();
    let root = fixture.root().path().to_owned();
    write(&root.join("a"), "first");
    let locks: Vec<PathBuf> =
        ["packed-refs.lock", "index.lock", "HEAD.lock", "config.lock", "refs/heads/main.lock"]
            .map(|name| fixture.git_dir().join(name))
            .into();
    let first = save_new(&fixture).id;
    locks.iter().for_each(|lock| write(lock, "half a file"));
    write(&root.join("a"), "second");
    let second = save_new(&fixture).id;
    assert_eq!(held(&*fixture.open(), second), on_disk(&root));
    assert_eq!(ids(&fixture), [second, first]);
    assert_eq!(fixture.open().check(true).unwrap(), []);
    fixture.open().remove(&[first]).unwrap();
    assert_eq!(ids(&fixture), [second]);
    for lock in locks {
        assert_eq!(fs::read(&lock).unwrap(), b"half a file", "it is the user's");
        fs::remove_file(lock).unwrap();
    }
    assert!(!save(&fixture).is_new, "a lock is no change");
    fixture.fsck();
}

#[test]
fn what_git_left_locked_in_our_repository_keeps_nobody_waiting() {
    let fixture = GitFixture::new();
    write(&fixture.root().path().join("a"), "first");
    let first = save_new(&fixture).id;
    if fixture.run_private(&["pack-refs", "--all", "--prune"]).is_none() {
        return;
    }
    write(&fixture.private_dir().join("packed-refs.lock"), "half a list");
    // The anchor is in the list as well, and moves all the same.
    write(&fixture.root().path().join("a"), "second");
    let second = save_new(&fixture).id;
    assert_eq!(ids(&fixture), [second, first]);
    fixture.open().remove(&[first]).unwrap();
    assert_eq!(ids(&fixture), [second]);
    assert_eq!(held(&*fixture.open(), second), on_disk(fixture.root().path()));
    fs::remove_file(fixture.private_dir().join("packed-refs.lock")).unwrap();
    fixture.fsck();
}

#[test]
fn what_stands_where_our_refs_should_does_not_keep_the_rest_away() {
    let fixture = GitFixture::new();
    let root = fixture.root().path().to_owned();
    write(&root.join("a"), "first");
    let first = save_new(&fixture).id;
    let refs = fixture.private_dir().join("refs/checkpoints");
    fs::rename(&refs, fixture.outside().join("away")).unwrap();
    write(&refs, "no directory");
    assert_eq!(ids(&fixture), [first]);
    assert_eq!(held(&*fixture.open(), first), on_disk(&root));
    write(&root.join("a"), "second");
    let said = fixture.open().save(super::draft(super::walk(fixture.root())));
    assert!(said.unwrap_err().to_string().contains("refs/checkpoints"));
    assert_eq!(fs::read(&refs).unwrap(), b"no directory");
}
