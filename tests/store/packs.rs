//! The number of packs in a private repository, and what maintenance does with them.

use std::{
    ffi::OsStr,
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use beforehand::{
    model::CheckpointId,
    store::{Draft, Store, maintain, tidy},
};

use super::{Fixture, draft, git::GitFixture, held, save};
use crate::support::{
    temp::{noise, on_disk, write},
    walk::walk,
};

/// The packs in a directory of objects.
fn packs(objects: &Path) -> Vec<PathBuf> {
    let names = fs::read_dir(objects.join("pack")).into_iter().flatten();
    let is_pack = |path: &PathBuf| path.extension() == Some(OsStr::new("pack"));
    names.map(|entry| entry.unwrap().path()).filter(is_pack).collect()
}

/// Packs of our own.
fn own(fixture: &GitFixture) -> Vec<PathBuf> {
    packs(&fixture.private_dir().join("objects"))
}

/// Packs of the user's.
fn borrowed(fixture: &GitFixture) -> Vec<PathBuf> {
    packs(&fixture.private_dir().join("linked/objects"))
}

/// How long they are, together.
fn bytes(packs: &[PathBuf]) -> u64 {
    packs.iter().map(|path| fs::metadata(path).unwrap().len()).sum()
}

fn maintained(fixture: &GitFixture) {
    assert!(maintain(&fixture.state(), u64::MAX).unwrap(), "everything is our own");
}

fn is_sound(fixture: &GitFixture) {
    assert_eq!(fixture.store().check(true).unwrap(), []);
    fixture.fsck();
}

/// Leaves more packs than there may be before they are put together.
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
fn many_saves_leave_few_packs_and_every_object() {
    let fixture = GitFixture::new();
    assert!(!fixture.store().is_untidy(), "there is nothing yet");
    let mut saved = Vec::new();
    for _ in 0..3 {
        saved.extend(many(&fixture));
        maintained(&fixture);
        assert!(own(&fixture).len() <= 16, "{} packs", own(&fixture).len());
    }
    assert!(!own(&fixture).is_empty(), "nothing was packed at all");
    for (round, id) in saved.iter().enumerate() {
        let files = held(&fixture.store(), *id);
        let is_of_it = |bytes: &[u8]| bytes.starts_with(format!("{} ", round % 18).as_bytes());
        assert!(files.len() == 6 && files.values().all(|it| is_of_it(&it.bytes)), "round {round}");
    }
    is_sound(&fixture);
}

#[test]
fn packs_stay_few_however_fast_checkpoints_follow_each_other() {
    let fixture = GitFixture::new();
    let mut tidied = 0;
    for number in 0..60 {
        for file in 0..6 {
            write(&fixture.root().path().join(format!("f{file}")), format!("{number} {file}"));
        }
        fixture.open().save(Draft { always: true, ..draft(walk(fixture.root())) }).unwrap();
        // As the hook does; all of it within ten minutes.
        if fixture.store().is_untidy() {
            tidy(&fixture.state(), u64::MAX).unwrap();
            tidied += 1;
        }
        assert!(own(&fixture).len() <= 17, "{} packs after {number}", own(&fixture).len());
    }
    assert!((2..10).contains(&tidied), "{tidied} times");
    is_sound(&fixture);
}

#[test]
fn large_packs_are_put_together_too_and_every_object_stays() {
    let fixture = GitFixture::new();
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
    let before = bytes(&own(&fixture));
    maintained(&fixture);
    assert!(!fixture.store().is_untidy() && own(&fixture).len() <= 8);
    let after = bytes(&own(&fixture));
    assert!(before - after < 2000, "all but headers and checksums: {before} became {after}");
    for id in ids {
        assert!(held(&fixture.store(), id).len() >= 8);
    }
    is_sound(&fixture);
}

#[test]
fn gits_own_index_over_packs_is_no_obstacle_and_is_not_borrowed() {
    let fixture = GitFixture::new();
    write(&fixture.root().path().join("a"), "a");
    if fixture.run(&["add", "."]).is_none() {
        return;
    }
    fixture.run(&["commit", "-qm", "one"]);
    fixture.run(&["repack", "-qadb"]);
    fixture.run(&["multi-pack-index", "write"]);
    fixture.run(&["commit-graph", "write"]);
    let ids = many(&fixture);
    let borrowed = on_disk(&fixture.private_dir().join("linked/objects"));
    let is_pack = |path: &[u8]| path.ends_with(b".pack") || path.ends_with(b".idx");
    let others: Vec<_> =
        borrowed.into_keys().filter(|path| path.starts_with(b"pack/") && !is_pack(path)).collect();
    assert_eq!(others, Vec::<Vec<u8>>::new());
    fixture.run_private(&["multi-pack-index", "write"]);
    maintained(&fixture);
    assert_eq!(held(&fixture.store(), ids[0]).len(), 7);
    fixture.fsck();
}

/// A repository with history that is too much to be copied at once, all of it in one pack.
pub(crate) fn with_history() -> Option<GitFixture> {
    let fixture = GitFixture::new();
    let root = fixture.root().path().to_owned();
    for file in 0..6_u64 {
        write(&root.join(format!("large{file}")), noise(file, 1 << 20));
    }
    fixture.run(&["add", "."])?;
    fixture.run(&["commit", "-qm", "one"]);
    write(&root.join("large0"), "no longer\n");
    fixture.run(&["commit", "-qam", "two"]);
    fixture.run(&["repack", "-qad"]);
    fixture.run(&["prune", "--expire=now"]);
    Some(fixture)
}

#[test]
fn the_users_packs_are_linked_and_what_checkpoints_need_of_them_becomes_our_own() {
    let Some(fixture) = with_history() else { return };
    let root = fixture.root().path().to_owned();
    let id = save(&fixture).checkpoint.id;
    let expected = on_disk(&root);
    let linked = borrowed(&fixture);
    assert_eq!(linked.len(), 1);
    let inode = |path: &Path| fs::metadata(path).unwrap().ino();
    let theirs = packs(&fixture.git_dir().join("objects"));
    assert_eq!(inode(&linked[0]), inode(&theirs[0]), "not a byte is copied");
    assert!(bytes(&own(&fixture)) < 100_000);
    assert!(fixture.store().is_untidy(), "it is only borrowed");
    maintained(&fixture);
    // The five files that are still there, and nothing of the one that history alone has.
    let copied = bytes(&own(&fixture));
    assert!((5 << 20..6 << 20).contains(&copied), "{copied} bytes are our own");
    is_sound(&fixture);
    // A program writes into the pack itself, and thereby into what we borrowed.
    let mode = fs::metadata(&theirs[0]).unwrap().permissions();
    crate::support::temp::chmod(&theirs[0], 0o600);
    fs::File::options().write(true).open(&theirs[0]).unwrap().set_len(0).unwrap();
    fs::set_permissions(&theirs[0], mode).unwrap();
    assert_eq!(held(&fixture.store(), id), expected);
    let damage = fixture.store().check(true).unwrap();
    assert!(damage.iter().any(|it| it.what.contains("borrowed")), "it is named: {damage:?}");
}

#[test]
fn there_is_no_copy_beyond_the_room_there_is() {
    let Some(fixture) = with_history() else { return };
    save(&fixture);
    assert!(!maintain(&fixture.state(), 1 << 20).unwrap(), "it is told");
    assert!(bytes(&own(&fixture)) < 100_000);
    is_sound(&fixture);
    assert!(fixture.store().is_untidy(), "it is tried again");
    maintained(&fixture);
    assert!(bytes(&own(&fixture)) > 5 << 20);
}

#[test]
fn packs_that_the_users_gc_replaced_are_let_go_and_what_only_they_had_stays() {
    let Some(fixture) = with_history() else { return };
    let lost = fixture.run(&["rev-parse", "HEAD"]).unwrap().trim().to_owned();
    let has_it = || fixture.private_git(&["cat-file", "-e", &lost]).unwrap().status.success();
    let first = save_now(&fixture);
    maintained(&fixture);
    let old = borrowed(&fixture);
    // A commit that only our checkpoint knows of, and a gc that takes all it can.
    fixture.run(&["reset", "-q", "--hard", "HEAD~1"]);
    write(&fixture.root().path().join("new"), "new");
    fixture.run(&["add", "."]);
    fixture.run(&["commit", "-qm", "other"]);
    fixture.run(&["reflog", "expire", "--expire=now", "--all"]);
    fixture.run(&["gc", "-q", "--prune=now"]);
    assert!(!fixture.git(&["cat-file", "-e", &lost]).unwrap().status.success());
    let second = save_now(&fixture);
    assert_eq!(borrowed(&fixture).len(), 2, "the new one is linked before the old one goes");
    maintained(&fixture);
    assert!(!old.iter().any(|path| path.exists()), "the old one is let go");
    let all = bytes(&borrowed(&fixture));
    assert!(all < 8 << 20, "{all} bytes: what both had is there once");
    assert!(has_it());
    is_sound(&fixture);
    // Once no checkpoint is as old as that, it is dropped.
    write(&fixture.root().path().join("new"), "newer");
    let third = save_now(&fixture);
    fixture.store().remove(&[first, second]).unwrap();
    maintained(&fixture);
    assert!(!has_it());
    assert_eq!(held(&fixture.store(), third), on_disk(fixture.root().path()));
    is_sound(&fixture);
}

/// Saves a checkpoint of this very moment: what is let go depends on when that was.
#[expect(clippy::disallowed_methods, reason = "the file system's clock is the one to compare with")]
pub(crate) fn save_now(fixture: &GitFixture) -> CheckpointId {
    let taken_at = chrono::Utc::now();
    let draft = Draft { taken_at, ..draft(walk(fixture.root())) };
    fixture.open().save(draft).unwrap().checkpoint.id
}

#[test]
fn a_held_file_that_was_committed_survives_prune_and_maintenance() {
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
    let before = on_disk(&fixture.git_dir());
    let last = ids.pop().unwrap();
    fixture.store().remove(&ids).unwrap();
    maintained(&fixture);
    assert!(own(&fixture).len() <= 8);
    assert_eq!(on_disk(&fixture.git_dir()), before);
    fixture.fsck();
    fixture.run(&["gc", "-q", "--prune=now"]);
    fixture.fsck();
    let shown = fixture.run(&["show", "HEAD:wanted"]);
    assert_eq!(shown.as_deref(), Some("only here\n"));
    assert_eq!(held(&fixture.store(), last), on_disk(fixture.root().path()));
}
