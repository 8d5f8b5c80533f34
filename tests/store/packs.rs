//! How many packs we leave in the user's repository, and what happens to what is in them.

use std::{
    ffi::OsStr,
    fs,
    path::{Path, PathBuf},
};

use turnback::store::Store;

use super::{Fixture, git::GitFixture, held, save};
use crate::support::temp::write;

/// Packs in the repository's object directory.
fn packs(git_dir: &Path) -> usize {
    let names = fs::read_dir(git_dir.join("objects/pack")).unwrap();
    let is_pack = |path: &PathBuf| path.extension() == Some(OsStr::new("pack"));
    names.map(|entry| entry.unwrap().path()).filter(is_pack).count()
}

#[test]
fn many_saves_leave_few_packs_and_every_object() {
    let fixture = GitFixture::new();
    let mut saved = Vec::new();
    for round in 0..45 {
        for file in 0..6 {
            write(&fixture.root().path().join(format!("f{file}")), format!("{round} {file}"));
        }
        saved.push(save(&fixture).checkpoint.id);
        assert!(packs(&fixture.git_dir()) <= 20, "round {round}");
    }
    assert!(packs(&fixture.git_dir()) >= 2, "nothing was packed at all");
    for (round, id) in saved.iter().enumerate() {
        let files = held(&fixture.store(), *id);
        assert_eq!(files.len(), 6, "round {round}");
    }
    assert!(fixture.store().check(true).unwrap().is_empty());
    fixture.fsck();
}

#[test]
fn a_held_file_that_was_committed_survives_prune_and_consolidation() {
    let fixture = GitFixture::new();
    let wanted = fixture.root().path().join("wanted");
    write(&wanted, "only here\n");
    for file in 0..6 {
        write(&fixture.root().path().join(format!("f{file}")), format!("{file}"));
    }
    let first = save(&fixture).checkpoint.id;
    if fixture.run(&["add", "wanted"]).is_none() {
        return;
    }
    fixture.run(&["commit", "-qm", "wanted"]);
    let mut ids = vec![first];
    for round in 0..20 {
        for file in 0..6 {
            write(&fixture.root().path().join(format!("f{file}")), format!("{round} {file}"));
        }
        ids.push(save(&fixture).checkpoint.id);
    }
    fixture.store().remove(&ids).unwrap();
    fixture.fsck();
    fixture.run(&["gc", "-q", "--prune=now"]);
    fixture.fsck();
    let shown = fixture.run(&["show", "HEAD:wanted"]);
    assert_eq!(shown.as_deref(), Some("only here\n"));
}
