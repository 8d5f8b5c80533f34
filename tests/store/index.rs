//! What the git store keeps of git's index, and how it is restored.

use std::{fs, os::unix::ffi::OsStrExt};

use beforehand::{
    model::{ContentId, Kind, SkipReason},
    store::{Draft, IndexOutcome},
};

use super::{Fixture, draft, git::*, held, save};
use crate::support::{
    temp::{on_disk, write},
    walk::walk,
};

#[test]
fn what_was_staged_is_staged_again() {
    let fixture = GitFixture::new();
    let root = fixture.root().path();
    write(&root.join("a"), "1");
    write(&root.join("d/b"), "1");
    if fixture.run(&["add", "."]).is_none() {
        return;
    }
    fixture.run(&["commit", "-qm", "first"]);
    write(&root.join("a"), "staged");
    fixture.run(&["add", "a"]);
    write(&root.join("a"), "not staged");
    write(&root.join("new"), "n");
    fixture.run(&["add", "-N", "new"]);
    fixture.run(&["update-index", "--assume-unchanged", "d/b"]);
    let look = || {
        (
            fixture.run(&["ls-files", "-s", "-v", "-z"]),
            fixture.run(&["diff", "--cached"]),
            fixture.run(&["status", "--porcelain"]),
        )
    };
    let before = look();
    let saved = save(&fixture).checkpoint;
    assert_eq!(saved.staged, Some(1));
    fixture.run(&["update-index", "--no-assume-unchanged", "d/b"]);
    fixture.run(&["add", "-A"]);
    assert_ne!(look(), before);
    let held = fixture.git_dir().join("index.lock");
    write(&held, "");
    assert!(fixture.store().restore_index(saved.id).is_err());
    fs::remove_file(&held).unwrap();
    // One of ours, whose owner was killed, is no obstacle.
    write(&fixture.git_dir().join("beforehand-index"), "");
    fs::hard_link(fixture.git_dir().join("beforehand-index"), &held).unwrap();
    let planned = fixture.store().plan_index(saved.id).unwrap();
    assert!(matches!(planned, IndexOutcome::Restored(_)), "{planned:?}");
    let outcome = fixture.store().restore_index(saved.id).unwrap();
    assert_eq!(outcome, IndexOutcome::Restored(3));
    assert!(!held.exists() && !fixture.git_dir().join("beforehand-index").exists());
    assert_eq!(look(), before);
    assert_eq!(fixture.store().restore_index(saved.id).unwrap(), IndexOutcome::Unchanged);
    let written = fixture.run(&["write-tree"]).unwrap();
    let staged = fixture.store().staged(saved.id).unwrap().unwrap();
    assert_eq!(written.trim(), staged.to_string());
    fixture.run(&["commit", "-qm", "second"]);
    assert_eq!(fixture.store().restore_index(saved.id).unwrap(), IndexOutcome::HeadMoved);
    write(&fixture.git_dir().join("MERGE_HEAD"), "");
    let merging = IndexOutcome::InProgress("merge".to_owned());
    assert_eq!(fixture.store().restore_index(saved.id).unwrap(), merging);
}

#[test]
fn unmerged_entries_are_kept() {
    let fixture = GitFixture::new();
    let root = fixture.root().path();
    write(&root.join("a"), "base\n");
    if fixture.run(&["add", "."]).is_none() {
        return;
    }
    fixture.run(&["commit", "-qm", "base"]);
    fixture.run(&["checkout", "-qb", "side"]);
    write(&root.join("a"), "theirs\n");
    fixture.run(&["commit", "-qam", "theirs"]);
    fixture.run(&["checkout", "-q", "-"]);
    write(&root.join("a"), "ours\n");
    fixture.run(&["commit", "-qam", "ours"]);
    assert!(!fixture.git(&["merge", "-q", "side"]).unwrap().status.success());
    let saved = save(&fixture).checkpoint;
    assert_eq!(saved.head.as_ref().unwrap().in_progress.as_deref(), Some("merge"));
    let entries = fixture.store().staged_entries(saved.id).unwrap().unwrap();
    let stages: Vec<_> = entries.iter().map(|entry| (&entry.path[..], entry.stage)).collect();
    assert_eq!(stages, [(&b"a"[..], 1), (b"a", 2), (b"a", 3)]);
    fixture.fsck();
}

#[test]
fn a_hostile_index_is_held_as_the_file_it_is_or_left_out_and_said_so() {
    let fixture = GitFixture::new();
    write(&fixture.root().path().join("a"), "a");
    let index = fixture.git_dir().join("index");
    for bytes in [Some(&b"DIRC\0\0\0\x02\xff\xff\xff\xff nonsense"[..]), Some(b""), None] {
        match bytes {
            Some(bytes) => write(&index, bytes),
            None => crate::support::temp::special(&index, rustix::fs::FileType::Fifo, 0o600),
        }
        let always = Draft { always: true, ..draft(walk(fixture.root())) };
        let saved = fixture.open().save(always).unwrap().checkpoint;
        let said = saved.skipped.iter().find(|skipped| skipped.path == b".git/index");
        let expected = bytes.is_none().then_some(SkipReason::Unreadable);
        assert_eq!(said.map(|skipped| skipped.reason), expected);
        assert_eq!(fixture.store().restore_index(saved.id).unwrap(), IndexOutcome::NotKept);
        let name = format!("refs/private/main/{}:private/repository/index", saved.id);
        if let (Some(bytes), Some(shown)) = (bytes, fixture.private_git(&["show", &name])) {
            assert_eq!(shown.stdout, bytes);
        }
        fs::remove_file(&index).unwrap();
    }
}

#[test]
fn every_kind_of_index_is_kept() {
    let fixture = GitFixture::new();
    let root = fixture.root().path();
    for name in ["a", "in/b", "in/deep/c", "out/d", "out/deep/e"] {
        write(&root.join(name), name);
    }
    if fixture.run(&["add", "."]).is_none() {
        return;
    }
    fixture.run(&["commit", "-qm", "first"]);
    let kinds: [&[&[&str]]; 4] = [
        &[&["update-index", "--index-version", "4"]],
        &[&["update-index", "--split-index"]],
        &[&["update-index", "--no-split-index"], &["read-tree", "HEAD"]],
        &[&["sparse-checkout", "set", "--cone", "--sparse-index", "in"]],
    ];
    for commands in kinds {
        for command in commands {
            fixture.run(command);
        }
        let always = Draft { always: true, ..draft(walk(fixture.root())) };
        let saved = fixture.open().save(always).unwrap().checkpoint;
        let list = ["-c", "index.sparse=false", "ls-files", "-s", "-t", "-z"];
        let before = fixture.run(&list).unwrap();
        let head = fixture.run(&["rev-parse", "HEAD^{tree}"]).unwrap();
        let staged = fixture.store().staged(saved.id).unwrap().map(|id| id.to_string());
        assert_eq!(staged.as_deref(), Some(head.trim()), "{commands:?}: {:?}", saved.skipped);
        assert_eq!(saved.staged, Some(0));
        fs::remove_file(fixture.git_dir().join("index")).unwrap();
        let outcome = fixture.store().restore_index(saved.id).unwrap();
        assert_eq!(outcome, IndexOutcome::Restored(5), "{commands:?}");
        assert_eq!(fixture.run(&list).unwrap(), before, "{commands:?}");
    }
    fixture.fsck();
}

#[test]
fn a_cached_tree_of_other_entries_is_not_believed() {
    let fixture = GitFixture::new();
    for name in ["a", "in/b", "in/c"] {
        write(&fixture.root().path().join(name), name);
    }
    if fixture.run(&["add", "."]).is_none() {
        return;
    }
    fixture.run(&["commit", "-qm", "first"]);
    let head = fixture.run(&["rev-parse", "HEAD^{tree}"]).unwrap();
    let path = fixture.git_dir().join("index");
    let whole = fs::read(&path).unwrap();
    let cached = whole.windows(4).position(|bytes| bytes == b"TREE").unwrap() + 8;
    // It is `\0` `3 1\n` and an id for the root, and `in\0` `2 0\n` and an id.
    let (root, below) = (cached + 1, cached + 5 + 20 + 3);
    let ids = [root, below].map(|at| at + 4..at + 24);
    for is_root in [true, false] {
        let mut bytes = whole.clone();
        let [of_root, of_below] = ids.each_ref().map(|range| whole[range.clone()].to_vec());
        if is_root {
            bytes[root] = b'9';
            bytes[ids[0].clone()].copy_from_slice(&of_below);
        } else {
            bytes[below] = b'9';
            bytes[ids[1].clone()].copy_from_slice(&of_root);
            // There is no such tree, so the one below is looked at.
            bytes[ids[0].clone()].fill(1);
        }
        let checksum = bytes.len() - 20;
        bytes[checksum..].fill(0);
        write(&path, &bytes);
        let always = Draft { always: true, ..draft(walk(fixture.root())) };
        let saved = fixture.open().save(always).unwrap().checkpoint;
        let staged = fixture.store().staged(saved.id).unwrap().map(|id| id.to_string());
        assert_eq!(staged.as_deref(), Some(head.trim()), "{:?}", saved.skipped);
    }
}

/// Version 4 says of a path what it has in common with the one before, in one byte or several. No file can have the
/// longest of these paths, which are longer than the format has room to say.
#[test]
fn long_paths_are_read_in_every_version_of_the_format() {
    let fixture = GitFixture::new();
    let Some(blob) = fixture.run(&["hash-object", "-w", "-t", "blob", "/dev/null"]) else { return };
    let long = |name: &str, len: usize| vec![name.repeat(100); len].join("/");
    let mut paths: Vec<_> = (0..50).map(|n| format!("{}/{n}", long("x", n))).collect();
    paths.extend([long("y", 50), long("z", 100), "a".to_owned()]);
    let paths = paths.iter().map(|path| path.trim_start_matches('/'));
    for path in paths {
        let entry = format!("100644,{},{path}", blob.trim());
        fixture.run(&["update-index", "--add", "--cacheinfo", &entry]);
    }
    for version in ["2", "4"] {
        fixture.run(&["update-index", "--index-version", version]);
        let always = Draft { always: true, ..draft(walk(fixture.root())) };
        let saved = fixture.open().save(always).unwrap().checkpoint;
        let expected = fixture.run(&["write-tree"]).unwrap();
        let staged = fixture.store().staged(saved.id).unwrap().map(|id| id.to_string());
        assert_eq!(staged.as_deref(), Some(expected.trim()), "{version}: {:?}", saved.skipped);
    }
}

#[test]
fn an_object_that_only_the_index_names_is_made() {
    let fixture = GitFixture::new();
    let root = fixture.root().path();
    for (name, bytes) in [("a", "one"), ("d/b", "two")] {
        write(&root.join(name), bytes);
    }
    let mut scan = walk(fixture.root());
    for (dir, fresh) in &mut scan.fresh {
        for found in fresh.found.iter_mut().filter(|found| found.kind() == Some(Kind::File)) {
            let path = root.join(std::ffi::OsStr::from_bytes(&dir.join(&found.name)));
            let bytes = fs::read(path).unwrap();
            let id = gix::objs::compute_hash(gix::hash::Kind::Sha1, gix::objs::Kind::Blob, &bytes);
            found.content = Some(ContentId::new(id.unwrap().as_slice()));
        }
    }
    let saved = fixture.open().save(draft(scan)).unwrap().checkpoint;
    assert_eq!(held(&*fixture.open(), saved.id), on_disk(root));
    fixture.fsck();
}
