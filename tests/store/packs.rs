//! How many packs we leave in the user's repository, and what happens to what is in them.

use std::{
    ffi::OsStr,
    fs,
    path::{Path, PathBuf},
};

use turnback::{model::CheckpointId, store::Store};

use super::{Fixture, git::GitFixture, held, save};
use crate::support::temp::write;

/// Packs in the repository's object directory.
fn packs(git_dir: &Path) -> usize {
    all_packs(git_dir).len()
}

fn all_packs(git_dir: &Path) -> Vec<PathBuf> {
    let names = fs::read_dir(git_dir.join("objects/pack")).unwrap();
    let is_pack = |path: &PathBuf| path.extension() == Some(OsStr::new("pack"));
    names.map(|entry| entry.unwrap().path()).filter(is_pack).collect()
}

/// How long they are, together.
fn bytes(git_dir: &Path) -> u64 {
    all_packs(git_dir).iter().map(|path| fs::metadata(path).unwrap().len()).sum()
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

/// Leaves as many packs as there may be before they are put together.
fn many(fixture: &GitFixture) -> Vec<CheckpointId> {
    let round = |round: usize| {
        for file in 0..6 {
            write(&fixture.root().path().join(format!("f{file}")), format!("{round} {file}"));
        }
        save(fixture).checkpoint.id
    };
    (0..18).map(round).collect()
}

#[test]
fn large_packs_are_put_together_too_and_every_object_stays() {
    let fixture = GitFixture::new();
    // Nothing squeezes these.
    for file in 0..8 {
        write(&fixture.root().path().join(format!("large{file}")), noise(file, 1 << 20));
    }
    let first = save(&fixture).checkpoint.id;
    let mut ids = vec![first];
    ids.extend(many(&fixture));
    for file in 0..8 {
        write(&fixture.root().path().join(format!("large{file}")), noise(9 + file, 1 << 20));
    }
    ids.push(save(&fixture).checkpoint.id);
    assert!(fixture.store().is_untidy());
    let before = bytes(&fixture.git_dir());
    fixture.store().tidy().unwrap();
    assert!(!fixture.store().is_untidy() && packs(&fixture.git_dir()) <= 8);
    assert!(before - bytes(&fixture.git_dir()) < 2000, "all but headers and checksums is there");
    assert!(fixture.store().check(true).unwrap().is_empty());
    for id in ids {
        assert!(held(&fixture.store(), id).len() >= 8);
    }
    fixture.fsck();
}

/// Bytes that nothing squeezes, others for each seed.
fn noise(seed: u64, count: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    };
    (0..count / 8).flat_map(|_| next()).collect()
}

#[test]
fn what_gits_own_index_over_packs_names_is_left_to_git() {
    let fixture = GitFixture::new();
    let ids = many(&fixture);
    if fixture.run(&["multi-pack-index", "write"]).is_none() {
        return;
    }
    let before = packs(&fixture.git_dir());
    fixture.store().tidy().unwrap();
    assert_eq!(packs(&fixture.git_dir()), before);
    fixture.run(&["multi-pack-index", "verify"]);
    fixture.fsck();
    assert_eq!(held(&fixture.store(), ids[0]).len(), 6);
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
    ids.extend(many(&fixture));
    fixture.store().remove(&ids).unwrap();
    fixture.store().tidy().unwrap();
    assert!(packs(&fixture.git_dir()) <= 8);
    fixture.fsck();
    fixture.run(&["gc", "-q", "--prune=now"]);
    fixture.fsck();
    let shown = fixture.run(&["show", "HEAD:wanted"]);
    assert_eq!(shown.as_deref(), Some("only here\n"));
}
