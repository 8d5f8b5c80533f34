//! Checkpoints of one root whose files are named by different hashes: it became a git repository,
//! or was one.

use std::{fs, os::unix::fs::MetadataExt};

use beforehand::process::Exit;
use serde_json::json;

use crate::support::{
    real::git,
    temp::{link, write},
    world::World,
};

#[track_caller]
fn runs(world: &mut World, args: &[&str]) -> String {
    let output = world.run(args);
    assert_eq!(output.exit, Exit::Ok, "{args:?}: {}{}", output.stdout, output.stderr);
    output.stdout + &output.stderr
}

/// A plain directory that has a checkpoint.
fn plain() -> World {
    let mut world = World::new();
    world.write("a", "a\n");
    world.write("src/b", "b\n");
    link(&world.root().join("l"), "src/b");
    runs(&mut world, &["create"]);
    world
}

/// How the root becomes a repository.
const INITS: [&str; 2] = [
    "git init -q -b main && git add -A && git commit -qm one",
    "git init -q -b main --object-format=sha256 && git add -A && git commit -qm one",
];

#[test]
fn what_is_unchanged_is_no_difference_after_git_init() {
    for init in INITS {
        let mut world = plain();
        git(&world, &world.root(), init);
        assert!(runs(&mut world, &["diff", "1", "--stat"]).contains("nothing differs"), "{init}");
        let plan = runs(&mut world, &["restore", "1", "--dry-run"]);
        assert!(plan.contains("0 paths would change"), "{plan}");
        // Nor between two checkpoints.
        runs(&mut world, &["create"]);
        let between = runs(&mut world, &["diff", "2", "1"]);
        assert!(between.contains("nothing differs"), "{between}");
    }
}

#[test]
fn a_restore_across_git_init_changes_what_differs_and_can_be_undone() {
    for init in INITS {
        let mut world = plain();
        git(&world, &world.root(), init);
        world.write("a", "mine\n");
        let inode = |world: &World| fs::metadata(world.root().join("src/b")).unwrap().ino();
        let before = inode(&world);
        let done = runs(&mut world, &["restore", "1", "--yes"]);
        assert!(done.contains("restored 1 path "), "{done}");
        assert_eq!((world.read("a").as_str(), inode(&world)), ("a\n", before));
        runs(&mut world, &["undo", "--yes"]);
        assert_eq!(world.read("a"), "mine\n");
        runs(&mut world, &["redo", "--yes"]);
        assert_eq!(world.read("a"), "a\n");
    }
}

#[test]
fn what_an_agent_left_before_git_init_is_known_after_it() {
    let mut world = World::new();
    world.write("a", "a\n");
    world.write("b", "b\n");
    let hook = |world: &mut World, event: &str| {
        let payload = json!({
            "session_id": "s", "cwd": world.root(), "hook_event_name": event, "tool_name": "Bash",
            "tool_input": { "command": "make things" }, "tool_use_id": "1", "prompt_id": "p",
            "tool_response": {},
        });
        world.wait(1);
        world.run_in(&world.root(), &["hook", "--agent", "claude-code"], &payload.to_string());
    };
    hook(&mut world, "PreToolUse");
    world.write("a", [0, 1]);
    hook(&mut world, "PostToolUse");
    git(&world, &world.root(), INITS[0]);
    world.write("b", "mine\n");
    let done = world.run(&["undo", "--yes"]);
    assert!(
        done.stdout.contains("1 path changed by others kept: b"),
        "{}{}",
        done.stdout,
        done.stderr
    );
    assert_eq!((world.read("a").as_str(), world.read("b").as_str()), ("a\n", "mine\n"));
}

#[test]
fn copies_of_a_repository_that_came_back_are_as_they_were() {
    let mut world = World::new();
    write(&world.settings(), "store = \"files\"\n");
    world.write("a", "a\n");
    git(&world, &world.root(), INITS[0]);
    runs(&mut world, &["create"]);
    fs::remove_file(world.root().join(".git/HEAD")).unwrap();
    runs(&mut world, &["restore", "1", "--yes"]);
    let plan = runs(&mut world, &["restore", "latest", "--dry-run"]);
    assert!(plan.contains("everything is as it was"), "{plan}");
    assert!(runs(&mut world, &["diff", "latest", "--stat"]).contains("nothing differs"));
}
