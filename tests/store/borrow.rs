//! Borrowing from the user's repository: what happens when time runs out, and when borrowed files
//! are dropped.

use std::{
    fs,
    path::{Path, PathBuf},
    time::Instant,
};

use beforehand::{
    model::SkipReason,
    store::{Draft, Store, maintain},
};

use super::{
    Fixture, draft,
    git::GitFixture,
    held,
    packs::{save_now, with_history},
    save,
};
use crate::repository::overwrite;
use crate::support::{
    temp::{noise, on_disk, write},
    walk::walk,
};

/// Where the user's objects have their names in ours.
fn linked(fixture: &GitFixture) -> PathBuf {
    fixture.private_dir().join("linked")
}

fn files_in(dir: &Path) -> usize {
    let names = fs::read_dir(dir).into_iter().flatten().map(Result::unwrap);
    names.map(|it| if it.path().is_dir() { files_in(&it.path()) } else { 1 }).sum()
}

#[test]
fn borrowing_ends_at_the_deadline_and_the_next_save_has_the_rest() {
    let Some(fixture) = with_history() else { return };
    let late = Draft { deadline: Some(Instant::now()), ..draft(walk(fixture.root())) };
    let saved = fixture.open().save(late).unwrap().checkpoint;
    let is_told = |it: &beforehand::model::Skipped| {
        it.path.ends_with(b".git/objects") && it.reason == SkipReason::OutOfTime
    };
    assert!(saved.skipped.iter().any(is_told), "{:?}", saved.skipped);
    assert_eq!(files_in(&linked(&fixture).join("objects")), 0);
    // Nothing has changed in the repository since.
    let saved = fixture.open().save(draft(walk(fixture.root()))).unwrap().checkpoint;
    assert_eq!(saved.skipped, []);
    assert!(files_in(&linked(&fixture).join("objects")) > 1);
    fixture.fsck();
}

#[test]
fn files_of_extensions_and_damaged_packs_are_let_go_with_the_last_checkpoint_that_may_need_them() {
    let Some(fixture) = with_history() else { return };
    for name in ["aa", "bb"] {
        let path = fixture.git_dir().join("lfs/objects").join(name).join(format!("{name}cc"));
        write(&path, noise(1, 1 << 20));
    }
    let first = save_now(&fixture);
    let objects = linked(&fixture).join("objects/pack");
    let gone = [
        linked(&fixture).join("lfs/objects/aa/aacc"),
        objects.join(format!("pack-{}.pack", "7".repeat(40))),
        objects.join(format!("pack-{}.idx.unsound", "7".repeat(40))),
    ];
    for path in &gone[1..] {
        write(path, "what is left of it");
    }
    beforehand::fs::remove_tree(&fixture.git_dir().join("lfs/objects/aa")).unwrap();
    maintain(&fixture.state(), u64::MAX).unwrap();
    assert!(gone.iter().all(|path| path.exists()), "a checkpoint is older than that");
    write(&fixture.root().path().join("new"), "newer");
    save_now(&fixture);
    fixture.store().remove(&[first]).unwrap();
    maintain(&fixture.state(), u64::MAX).unwrap();
    assert!(!gone.iter().any(|path| path.exists()));
    assert!(linked(&fixture).join("lfs/objects/bb/bbcc").exists(), "the user has it");
}

#[test]
fn a_save_relies_on_no_loose_object_that_was_written_again_in_place() {
    for damage in [&b""[..], b"x", b"garbage"] {
        let Some(fixture) = with_history() else { return };
        let wanted = fixture.root().path().join("wanted");
        write(&wanted, "only in a loose object\n");
        let id = fixture.run(&["hash-object", "-w", "wanted"]).unwrap().trim().to_owned();
        fs::remove_file(&wanted).unwrap();
        save(&fixture);
        let object = fixture.git_dir().join("objects").join(&id[..2]).join(&id[2..]);
        let linked = linked(&fixture).join("objects").join(&id[..2]).join(&id[2..]);
        assert!(linked.is_file());
        // What is written so soon after an object was made is git's own writing of it.
        std::thread::sleep(std::time::Duration::from_millis(25));
        overwrite(&object, |bytes| *bytes = damage.to_vec());
        write(&wanted, "only in a loose object\n");
        let saved = save(&fixture).checkpoint;
        assert_eq!(held(&*fixture.open(), saved.id), on_disk(fixture.root().path()));
    }
}
