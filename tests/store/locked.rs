//! Locks that a killed process left, git's or ours, and other files in the place of our refs.

use std::{fs, path::PathBuf};

use beforehand::model::CheckpointId;

use super::{Fixture, draft, git::GitFixture, held, save, save_new};
use crate::support::{
    temp::{count, on_disk, special, write},
    walk::walk,
};

fn ids(fixture: &GitFixture) -> Vec<CheckpointId> {
    fixture.open().list().unwrap().iter().map(|checkpoint| checkpoint.id).collect()
}

#[test]
fn locks_of_the_users_git_block_nothing_and_stay() {
    let fixture = GitFixture::new();
    let root = fixture.root().path().to_owned();
    write(&root.join("a"), "first");
    let locks: Vec<PathBuf> =
        ["packed-refs.lock", "index.lock", "HEAD.lock", "config.lock", "refs/heads/main.lock"]
            .map(|name| fixture.git_dir().join(name))
            .into();
    let first = save_new(&fixture).id;
    for lock in &locks {
        write(lock, "half a file");
    }
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
fn what_git_left_locked_in_our_repository_blocks_nothing() {
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
    write(&refs, "no directory");
    assert_eq!(ids(&fixture), [first]);
    assert_eq!(held(&*fixture.open(), first), on_disk(&root));
    write(&root.join("a"), "second");
    let second = save_new(&fixture).id;
    assert_eq!(ids(&fixture), [second, first]);
    assert_eq!(held(&*fixture.open(), second), on_disk(&root));
    assert_eq!(fs::read(&refs).unwrap(), b"no directory");
}

#[test]
fn while_the_list_of_refs_cannot_be_had_a_ref_is_a_file() {
    let fixture = GitFixture::new();
    let root = fixture.root().path().to_owned();
    write(&root.join("a"), "first");
    let first = save_new(&fixture).id;
    let lock = fixture.private_dir().join("refs.lock");
    let until = std::time::Instant::now() + std::time::Duration::from_secs(60);
    let held_by_another = beforehand::fs::Lock::acquire(&lock, until).unwrap();
    write(&root.join("a"), "second");
    let second = save_new(&fixture).id;
    assert!(fixture.ref_path(second).is_file() && !fixture.ref_path(first).exists());
    drop(held_by_another);
    write(&root.join("a"), "third");
    let third = save_new(&fixture).id;
    assert!(!fixture.ref_path(third).exists());
    // A list with a line that is no ref is left as it is.
    let list = fixture.private_dir().join("packed-refs");
    let garbled = fs::read_to_string(&list).unwrap() + "garbage\n";
    write(&list, &garbled);
    write(&root.join("a"), "fourth");
    let fourth = save_new(&fixture).id;
    assert_eq!(fs::read_to_string(&list).unwrap(), garbled);
    assert_eq!(ids(&fixture), [fourth, third, second, first]);
    assert!(fixture.private_dir().join("refs/anchors/main").is_file());
    write(&list, garbled.replace("garbage\n", ""));
    write(&root.join("a"), "fifth");
    save_new(&fixture);
    assert!(!fixture.private_dir().join("refs/anchors/main").exists(), "the list has it");
    assert!(!save(&fixture).is_new);
    fixture.open().remove(&[first, second, third]).unwrap();
    assert_eq!(ids(&fixture).len(), 2);
    fixture.fsck();
}

#[test]
fn nothing_is_left_of_a_save_that_failed() {
    let fixture = GitFixture::new();
    for number in 0..100 {
        write(&fixture.root().path().join(format!("f{number}")), format!("{number}"));
    }
    // There is a repository, and no ref can be written.
    let first = save_new(&fixture).id;
    let list = fixture.private_dir().join("packed-refs.new");
    fs::create_dir(&list).unwrap();
    write(&fixture.root().path().join("f1"), "changed");
    assert!(fixture.open().save(draft(walk(fixture.root()))).is_err());
    let temporary = |path: &Vec<u8>| path.windows(4).any(|part| part == b"tmp_");
    assert!(!fixture.own_objects().iter().any(temporary));
    assert_eq!(count(&fixture.state().root(fixture.root()).checkpoints()), 1);
    fs::remove_dir(&list).unwrap();
    assert_eq!(fixture.open().list().unwrap().len(), 1);
    let second = save_new(&fixture).id;
    assert_eq!(held(&*fixture.open(), second), on_disk(fixture.root().path()));
    assert!(fixture.open().tree(first).is_ok());
}

#[test]
fn what_a_killed_save_leaves_beside_a_ref_blocks_nothing() {
    let fixture = GitFixture::new();
    write(&fixture.root().path().join("a"), "a");
    let first = save_new(&fixture).id;
    let dir = fixture.private_dir();
    for name in ["refs/anchors/main.lock", "refs/checkpoints/main/a000000000000001.lock"] {
        write(&dir.join(name), "half");
    }
    write(&dir.join("objects/pack/tmp_pack_beforehand-1-1"), "half");
    write(&fixture.root().path().join("a"), "b");
    let second = save_new(&fixture).id;
    assert_eq!(fixture.open().list().unwrap().len(), 2);
    assert_eq!(fixture.open().check(true).unwrap(), []);
    fixture.open().remove(&[first]).unwrap();
    assert!(!dir.join("refs/anchors/main.lock").exists());
    assert!(!dir.join("objects/pack/tmp_pack_beforehand-1-1").exists(), "freeing sweeps it");
    assert_eq!(held(&*fixture.open(), second), on_disk(fixture.root().path()));
}

#[test]
fn a_ref_of_ours_that_is_a_pipe_is_not_waited_for() {
    let fixture = GitFixture::new();
    write(&fixture.root().path().join("a"), "a");
    save_new(&fixture);
    for name in ["refs/anchors/main", "refs/anchors/administration"] {
        let pipe = fixture.private_dir().join(name);
        fs::create_dir_all(pipe.parent().unwrap()).unwrap();
        let _none = fs::remove_file(&pipe);
        special(&pipe, rustix::fs::FileType::Fifo, 0o600);
        write(&fixture.root().path().join("a"), name);
        let id = save_new(&fixture).id;
        assert_eq!(held(&*fixture.open(), id), on_disk(fixture.root().path()));
        let is_file = pipe.symlink_metadata().map(|found| found.is_file());
        assert!(is_file.unwrap_or(true), "{name} is no pipe any more");
    }
}
