//! `undo` names the turn or restore that it takes back, stops at the last one with an effect that is still there,
//! and asks about effects that nobody can be sure of.

use std::fs;

use serde_json::{Value, json};

use crate::{
    evidence::{begins, event, ours, project, run, writes},
    reports::prompts,
    repository::dies_at,
    support::{
        real::git,
        temp::write,
        world::{Output, World},
    },
};

/// A git project with a commit, a branch, a tag and a stash, and with a turn that edited `a`.
fn repository() -> World {
    let mut world = World::with_git();
    write(&world.settings(), "deadline = \"60s\"\n");
    let root = world.root();
    world.write("a", "first\n");
    for args in ["add .", "commit -qm first", "branch side", "tag -am one v1"] {
        git(&world, &root, &format!("git {args}"));
    }
    world.write("a", "stashed\n");
    git(&world, &root, "git stash -q");
    writes(&mut world, "one", "a", "second\n");
    world
}

fn heads(world: &World) -> String {
    git(world, &world.root(), "git show-ref") + &git(world, &world.root(), "git rev-parse HEAD")
}

#[track_caller]
fn asked(world: &mut World, args: &[&str], answers: &str) -> Output {
    world.wait(1);
    world.run_asked(args, &mut answers.as_bytes())
}

#[test]
fn a_turn_that_only_committed_is_named_and_not_passed_over() {
    let mut world = repository();
    let root = world.root();
    let before = heads(&world);
    let commits = |world: &World| {
        git(world, &world.root(), "git commit -qam by-the-agent");
    };
    run(&mut world, "two", "git commit -qam x", commits);
    let after = heads(&world);
    for args in [&["undo", "--yes"][..], &["undo"]] {
        let told = ours(&mut world, args, 1).stderr;
        assert!(told.contains("turn 1, \"go on\"") || told.contains("turn 1, \""), "{told}");
        assert!(told.contains("made 1 commit on ") && told.contains("undo --head"), "{told}");
        assert_eq!((world.read("a"), heads(&world)), ("second\n".into(), after.clone()));
    }
    let told = asked(&mut world, &["undo"], "n\n");
    assert!(told.stderr.contains("Move it back too?") && told.exit.code() == 1, "{}", told.stderr);
    assert_eq!(heads(&world), after);
    let told = asked(&mut world, &["undo"], "y\ny\n");
    assert_eq!(told.exit.code(), 0, "{}{}", told.stdout, told.stderr);
    assert_eq!((world.read("a"), heads(&world)), ("second\n".into(), before.clone()));
    ours(&mut world, &["redo", "--yes"], 0);
    assert_eq!(heads(&world), after);
    ours(&mut world, &["undo", "--head", "--yes"], 0);
    assert_eq!(heads(&world), before);
    let told = ours(&mut world, &["undo", "--yes"], 0).stdout;
    assert!(told.starts_with("undid turn 2, \"") && told.contains("restored 1 path"), "{told}");
    assert_eq!(fs::read_to_string(root.join("a")).unwrap(), "first\n");
}

/// The user's own commit after the turn is no effect of the turn.
#[test]
fn a_commit_of_the_user_after_a_turn_is_not_the_turns() {
    let mut world = repository();
    run(&mut world, "two", "make nothing", |_| ());
    event(&mut world, "Stop", "two", "", &json!({}), "");
    git(&world, &world.root(), "git commit -qam by-the-user");
    run(&mut world, "three", "make", |world| world.write("b", "made"));
    let after = heads(&world);
    ours(&mut world, &["undo", "--yes"], 0);
    let told = ours(&mut world, &["undo", "--yes"], 0);
    assert!(told.stderr.contains("skipped turn 2, \""), "{}", told.stderr);
    assert_eq!((world.read("a"), heads(&world)), ("first\n".into(), after));
}

/// The commits of the turn cannot be taken from below the user's, and a turn that moved nothing takes none away.
#[test]
fn a_commit_of_the_user_on_top_keeps_those_of_the_turn_and_is_never_taken_away() {
    let mut world = repository();
    run(&mut world, "two", "git commit -qam x", |world| {
        git(world, &world.root(), "git commit -qam by-the-agent");
    });
    git(&world, &world.root(), "git commit -q --allow-empty -m by-the-user");
    let after = heads(&world);
    for args in [&["undo", "--yes"][..], &["undo", "--head", "--yes"]] {
        let told = ours(&mut world, args, 1).stderr;
        assert!(told.contains("turn 1, \"") && told.contains("HEAD was moved again"), "{told}");
        assert_eq!((world.read("a"), heads(&world)), ("second\n".into(), after.clone()));
    }
    run(&mut world, "three", "touch k", |world| world.write("k", ""));
    git(&world, &world.root(), "git commit -q --allow-empty -m by-the-user");
    let after = heads(&world);
    ours(&mut world, &["undo", "--head", "--yes"], 0);
    assert_eq!((world.root().join("k").exists(), heads(&world)), (false, after));
}

/// What cannot be made again is named and never said to be there.
#[test]
fn a_ref_that_cannot_be_made_again_is_named() {
    let mut world = repository();
    let root = world.root();
    run(&mut world, "two", "git branch -D side; git stash drop; rm a", |world| {
        git(world, &world.root(), "git branch -qD side");
        git(world, &world.root(), "git stash drop -q && git gc -q --prune=now");
        fs::remove_file(world.root().join("a")).unwrap();
    });
    write(&root.join(".git/refs/heads/side.lock"), "");
    let told = ours(&mut world, &["undo", "--yes"], 1);
    assert!(told.stderr.contains("not made again: side"), "{}", told.stderr);
    assert!(!told.stdout.contains("made again"), "{}", told.stdout);
    assert!(told.stdout.contains("gone since: 1 stash"), "{}", told.stdout);
    assert_eq!(world.read("a"), "second\n", "the files come back all the same");
    fs::remove_file(root.join(".git/refs/heads/side.lock")).unwrap();
    // A branch below that name takes its place.
    let mut world = repository();
    run(&mut world, "two", "git branch -D side; git branch side/x", |world| {
        git(world, &world.root(), "git branch -qD side && git branch side/x");
        world.write("a", "third\n");
    });
    let told = ours(&mut world, &["undo", "--yes"], 1);
    assert!(told.stderr.contains("not made again: side"), "{}", told.stderr);
    assert_eq!(world.read("a"), "second\n");
}

#[test]
fn branches_tags_and_stashes_that_a_turn_deleted_are_made_again() {
    let mut world = repository();
    let root = world.root();
    let before = heads(&world);
    let line = "git branch -D side; git tag -d v1; git stash drop";
    run(&mut world, "two", line, |world| {
        git(world, &world.root(), "git branch -qD side");
        git(world, &world.root(), "git tag -d v1");
        git(world, &world.root(), "git stash drop -q");
    });
    let plan = ours(&mut world, &["undo", "--dry-run"], 0).stdout;
    for row in ["recreate  side   the branch", "recreate  v1   the tag", "recreate  stash"] {
        assert!(plan.contains(row), "{plan}");
    }
    let told = ours(&mut world, &["undo", "--yes"], 0).stdout;
    assert!(told.contains("made again: side, v1, 1 stash"), "{told}");
    assert_eq!((world.read("a"), heads(&world)), ("second\n".into(), before.clone()));
    assert_eq!(git(&world, &root, "git stash list").lines().count(), 1);
    git(&world, &root, "git fsck --strict");
    // There and back again. The stash is a list, of which nothing is taken: that is said.
    let told = ours(&mut world, &["redo", "--yes"], 0).stdout;
    assert!(told.contains("removed: side, v1\n") && told.contains("stays: 1 stash"), "{told}");
    let refs = git(&world, &root, "git for-each-ref --format='%(refname)'");
    assert!(!refs.contains("side") && !refs.contains("v1"), "{refs}");
    ours(&mut world, &["undo", "--yes"], 0);
    assert_eq!(heads(&world), before);
    ours(&mut world, &["redo", "--yes"], 0);
    ours(&mut world, &["undo", "--yes"], 0);
    assert_eq!(heads(&world), before);
    // A branch that a worktree has checked out, or that moved, is never removed.
    git(&world, &root, "git checkout -q side && git tag -f v1 main~0");
    let there = heads(&world);
    let told = ours(&mut world, &["redo", "--yes"], 0).stdout;
    assert!(told.contains("stays: side"), "{told}");
    assert_eq!(heads(&world), there);
    git(&world, &root, "git checkout -q -");
    // A branch of that name that was made since stays as it is.
    run(&mut world, "three", "git branch -D side", |world| {
        git(world, &world.root(), "git branch -qD side");
    });
    git(&world, &root, "git commit -qam later");
    git(&world, &root, "git branch side");
    let there = heads(&world);
    world.run(&["undo", "--yes"]);
    assert_eq!(heads(&world), there);
}

#[test]
fn an_undo_merges_where_that_is_asked_for_and_says_so_first() {
    let mut world = project();
    let lines = |first: &str, last: &str| format!("{first}\n2\n3\n4\n5\n6\n7\n8\n{last}\n");
    world.write("a", lines("1", "9"));
    writes(&mut world, "one", "a", &lines("one", "9"));
    world.write("a", lines("one", "nine"));
    let told = ours(&mut world, &["undo", "--dry-run"], 0).stdout;
    assert!(told.contains("(use --merge or --force)"), "{told}");
    ours(&mut world, &["undo", "--yes"], 3);
    assert_eq!(world.read("a"), lines("one", "nine"));
    ours(&mut world, &["undo", "--merge", "--yes"], 0);
    assert_eq!(world.read("a"), lines("1", "nine"));
    ours(&mut world, &["redo", "--yes"], 0);
    assert_eq!(world.read("a"), lines("one", "nine"));
}

#[test]
fn the_last_change_of_one_file_is_undone_and_the_rest_is_left() {
    let mut world = project();
    writes(&mut world, "one", "a", "one");
    writes(&mut world, "two", "b", "two");
    writes(&mut world, "two", "c", "two");
    let told = ours(&mut world, &["undo", "--yes", "--", "a"], 0);
    assert!(told.stdout.starts_with("undid turn 2, \""), "{}", told.stdout);
    assert_eq!(told.stderr, "");
    let there = |world: &World| {
        ["a", "b", "c"].map(|path| fs::read_to_string(world.root().join(path)).ok())
    };
    assert_eq!(there(&world), [Some("first".into()), Some("two".into()), Some("two".into())]);
    ours(&mut world, &["undo", "--yes", "--", "b"], 0);
    assert_eq!(there(&world), [Some("first".into()), Some("first".into()), Some("two".into())]);
    ours(&mut world, &["undo", "--yes"], 0);
    assert_eq!(there(&world), [Some("first".into()), Some("first".into()), None]);
    let told = ours(&mut world, &["undo", "--yes", "--", "b"], 1).stderr;
    assert!(told.contains("anything left to undo at these paths"), "{told}");
}

#[test]
fn a_person_is_asked_about_files_that_an_interrupted_command_may_have_changed() {
    let mut world = project();
    prompts(&mut world, "one");
    begins(&mut world, "one", "sed -i s/first/second/ a b");
    world.write("a", "second");
    world.write("b", "second");
    fs::remove_file(world.root().join("a")).unwrap();
    world.write("a", "second");
    prompts(&mut world, "two");
    world.wait(1);
    let told = ours(&mut world, &["undo", "--yes"], 3).stdout;
    assert_eq!(["a", "b"].map(|path| world.read(path)), ["second", "second"]);
    assert!(told.contains("--force -- a b"), "{told}");
    let question = "2 files changed while `sed -i s/first/second/ a b` ran and was interrupted: a, b. \
                    Take them back too?";
    let told = asked(&mut world, &["undo"], "n\n");
    assert!(told.stderr.contains(question), "{}{}", told.stdout, told.stderr);
    assert_eq!(world.read("a"), "second");
    let told = asked(&mut world, &["undo"], "y\ny\n");
    assert_eq!(told.exit.code(), 0, "{}{}", told.stdout, told.stderr);
    assert_eq!(["a", "b"].map(|path| world.read(path)), ["first", "first"]);
    ours(&mut world, &["redo", "--yes"], 0);
    assert_eq!(["a", "b"].map(|path| world.read(path)), ["second", "second"]);
}

#[test]
fn an_undo_names_its_restore_and_takes_another_project() {
    let mut world = project();
    writes(&mut world, "one", "a", "one");
    ours(&mut world, &["restore", "1", "--yes"], 0);
    let told = ours(&mut world, &["undo", "--dry-run", "--json"], 0).stdout;
    let told: Value = serde_json::from_str(&told).unwrap();
    assert!(told["undoes"].as_str().unwrap().starts_with("the restore ("), "{told}");
    let root = world.root();
    let elsewhere = world.home();
    let done = world.run_in(&elsewhere, &["undo", "--yes", "--root", root.to_str().unwrap()], "");
    assert_eq!(done.exit.code(), 0, "{}{}", done.stdout, done.stderr);
    assert!(done.stdout.starts_with("undid the restore ("), "{}", done.stdout);
    assert_eq!(world.read("a"), "one");
}

/// Killed right after it made refs again, an undo is finished or taken back as a whole.
#[test]
fn a_killed_undo_leaves_no_refs_behind_when_it_is_taken_back() {
    for then in ["--abort", "--continue"] {
        let mut world = repository();
        let root = world.root();
        let before = heads(&world);
        run(&mut world, "two", "git branch -D side; rm a", |world| {
            git(world, &world.root(), "git branch -qD side");
            fs::remove_file(world.root().join("a")).unwrap();
        });
        let after = heads(&world);
        assert!(dies_at(&world, &["undo", "--yes"], "restore-refs"), "it is never reached");
        assert_eq!(heads(&world), before);
        ours(&mut world, &["restore", then], 0);
        let is_back = then == "--continue";
        assert_eq!(heads(&world), if is_back { before } else { after }, "{then}");
        assert_eq!(root.join("a").exists(), is_back, "{then}");
    }
}
