//! Files in a git directory that belong to no repository: locks, and what is no object among the objects.

use serde_json::json;

use crate::{
    repository::{repository, runs},
    support::real::{beforehand, git},
};

/// What lies in a git directory and belongs to no repository.
const STRAYS: [&str; 4] =
    [".git/objects/notes", ".git/objects/ab/short", ".git/objects/pack/x.keep", ".git/index.lock"];

#[test]
fn what_is_in_no_repository_is_held_when_a_call_names_it_or_what_it_lies_in() {
    for line in [
        "rm .git/objects/notes .git/objects/ab/short .git/objects/pack/x.keep .git/index.lock",
        "rm -rf .git/objects .git/*.lock",
        "rm -rf .git",
        "find . -delete",
    ] {
        let mut world = repository();
        for stray in STRAYS {
            world.write(stray, stray);
        }
        world.hook("t", "Bash", &json!({ "command": line }));
        git(
            &world,
            &world.root(),
            "rm -rf .git/objects/notes .git/objects/ab/short .git/objects/pack/*.keep .git/*.lock",
        );
        for stray in STRAYS {
            let found = runs(&mut world, &["find", stray]);
            assert!(found.contains("gone now"), "{line}: {found}");
        }
        let told = runs(&mut world, &["restore", "1", "--yes"]);
        for stray in &STRAYS[..3] {
            assert_eq!(world.read(stray), *stray, "{line}: {told}");
        }
        assert!(told.contains("git's own kept: .git/index.lock"), "{line}: {told}");
        runs(&mut world, &["undo", "--yes"]);
        assert!(!world.root().join(STRAYS[0]).exists(), "{line}");
    }
}

#[test]
fn what_is_in_no_repository_comes_back_after_its_repository() {
    let mut world = repository();
    for stray in STRAYS {
        world.write(stray, stray);
    }
    world.hook("t", "Bash", &json!({ "command": "rm -rf .git" }));
    git(&world, &world.root(), "rm -rf .git");
    let told = runs(&mut world, &["restore", "1", "--yes"]);
    assert!(told.contains("3 paths of git's own kept"), "{told}");
    runs(&mut world, &["restore", "1", "--yes"]);
    assert_eq!(world.read(STRAYS[0]), STRAYS[0]);
    git(&world, &world.root(), "git status");
}

#[test]
fn what_is_in_no_repository_stays_when_the_repository_is_replaced() {
    let mut world = repository();
    runs(&mut world, &["create"]);
    for stray in &STRAYS[..3] {
        world.write(stray, stray);
    }
    world.write(".beforehand-tmp-repository/mine", "mine");
    git(&world, &world.root(), "git branch new");
    runs(&mut world, &["restore", "latest", "--repository", "--yes"]);
    assert_eq!(git(&world, &world.root(), "git branch"), "* main");
    for stray in STRAYS[..3].iter().chain([&".beforehand-tmp-repository/mine"]) {
        assert!(world.root().join(stray).exists(), "{stray}");
    }
}

#[test]
fn a_directory_whose_name_has_another_case_is_like_any_other() {
    let mut world = repository();
    world.write(".GIT/config", "mine");
    world.hook("t", "Bash", &json!({ "command": "rm -rf .GIT" }));
    git(&world, &world.root(), "rm -rf .GIT");
    runs(&mut world, &["restore", "1", "--yes"]);
    assert_eq!(world.read(".GIT/config"), "mine");
}

#[test]
fn a_replaced_repository_with_a_lock_that_nothing_holds_is_set_aside() {
    let mut world = repository();
    git(&world, &world.root(), "git branch gone");
    world.hook("t", "Bash", &json!({ "command": "git branch -D gone" }));
    git(&world, &world.root(), "git branch -qD gone");
    for lock in [".git/state.lock", ".git/gc.pid"] {
        world.write(lock, "precious");
    }
    world.write(".git/empty.lock", "");
    let told = runs(&mut world, &["restore", "1", "--repository", "--yes"]);
    git(&world, &world.root(), "git rev-parse gone");
    assert!(told.contains("has content that no checkpoint holds"), "{told}");
    let names = std::fs::read_dir(world.root()).unwrap().flatten();
    let aside: Vec<_> =
        names.filter(|it| it.file_name().to_string_lossy().starts_with(".git.before")).collect();
    assert_eq!(aside.len(), 1, "{told}");
    for lock in ["state.lock", "gc.pid"] {
        assert_eq!(std::fs::read(aside[0].path().join(lock)).unwrap(), b"precious");
    }
    assert!(!world.root().join(".git/state.lock").exists());
}

/// Git removes a blob that nothing leads to: an index that names it again needs it again.
#[test]
fn what_was_staged_comes_back_with_the_index_though_git_has_dropped_it() {
    let mut world = repository();
    let root = world.root();
    world.write("a", "staged");
    git(&world, &root, "git add a");
    world.write("a", "here");
    world.before_bash("t1", "git reset --hard && git gc --prune=now");
    git(&world, &root, "git reset -q --hard && git gc -q --prune=now");
    let done = world.run(&["undo", "--yes"]);
    assert!(done.stdout.contains("staged as it was"), "{}{}", done.stdout, done.stderr);
    assert_eq!(
        (git(&world, &root, "git show :a").as_str(), world.read("a").as_str()),
        ("staged", "here")
    );
    git(&world, &root, "git fsck --strict");
}

/// The index that a restore found is held; what was staged since is not.
#[test]
fn what_is_staged_after_a_restore_was_interrupted_stays() {
    for ends in ["--abort", "--continue"] {
        let mut world = repository();
        let root = world.root();
        world.write("a", "staged\n");
        git(&world, &root, "git add a");
        world.before_bash("t1", "git reset --hard");
        git(&world, &root, "git reset -q --hard");
        let mut command = beforehand(&world, &root, &["restore", "1", "--yes"]);
        let killed = command.env("BEFOREHAND_TEST_CRASH_AT", "restore-index").output().unwrap();
        assert_eq!(killed.status.code(), None);
        world.write("a", "mine\n");
        git(&world, &root, "git add a");
        let done = world.run(&["restore", ends]);
        assert!(done.stderr.contains("the index stays as it is"), "{}{}", done.stdout, done.stderr);
        assert_eq!(git(&world, &root, "git show :a"), "mine");
    }
}
