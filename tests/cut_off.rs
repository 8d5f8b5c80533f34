//! A call that was not seen to end, for it was refused or cut off, runs no more once its turn is over.

use serde_json::{Value, json};

use crate::{
    blame::writers,
    evidence::{begins, ends, event, ours, writes},
    export::known_to_git,
    support::world::World,
};

fn project() -> World {
    let mut world = World::with_git();
    known_to_git(&world);
    world.write("a", "one\n");
    writes(&mut world, "s/zero", "z", "Z\n");
    event(&mut world, "Stop", "s/zero", "", &json!({}), "");
    world
}

fn stops(world: &mut World, turn: &str) {
    event(world, "Stop", turn, "", &json!({}), "");
}

fn is_done(world: &mut World, turn: &str) -> Vec<bool> {
    let steps = ours(world, &["list", "--steps", turn, "--json"], 0).stdout;
    let steps: Value = serde_json::from_str(&steps).unwrap();
    let steps = steps.as_array().unwrap().iter();
    steps.map(|step| step["done"].as_bool().unwrap()).collect()
}

#[test]
fn a_refused_call_is_no_turn_that_goes_on() {
    for boundary in ["Stop", "UserPromptSubmit", "SessionEnd"] {
        for command in ["rm -rf build", "make"] {
            let mut world = project();
            writes(&mut world, "s/one", "a", "one\nONE\n");
            begins(&mut world, "s/one", command);
            let next = if boundary == "UserPromptSubmit" { "s/later" } else { "s/one" };
            event(&mut world, boundary, next, "", &json!({}), "");
            assert_eq!(is_done(&mut world, "1"), [true, true], "{boundary} {command}");
            world.write("a", "mine\none\nONE\n");
            writes(&mut world, "t/two", "b", "TWO\n");
            world.write("b", "TWO\nmine\n");
            assert_eq!(writers(&mut world, "a"), ["you", "before", "one"], "{boundary} {command}");
            assert_eq!(writers(&mut world, "b"), ["two", "you"], "{boundary} {command}");
            let out = world.root().join("../patches");
            let out = out.to_str().unwrap();
            let told = ours(&mut world, &["export", "2", "--patches", out], 0).stdout;
            assert!(told.contains("-Change-a.patch\n"), "{told}");
            let plan = ours(&mut world, &["prune", "--keep", "1", "--dry-run"], 0).stdout;
            assert!(!plan.contains("under way"), "{plan}");
            ours(&mut world, &["revert", "2", "--yes"], 0);
            assert_eq!(world.read("a"), "mine\none\n");
        }
    }
}

#[test]
fn a_refused_edit_is_over_with_its_turn() {
    let mut world = project();
    let input = json!({ "file_path": world.root().join("new"), "content": "NEW\n" });
    event(&mut world, "PreToolUse", "s/one", "Write", &input, "new");
    stops(&mut world, "s/one");
    assert_eq!(is_done(&mut world, "1"), [true]);
    world.write("new", "mine\n");
    assert_eq!(writers(&mut world, "new"), ["you"]);
}

#[test]
fn what_changed_before_the_turn_was_over_is_not_known_to_be_anyones() {
    let mut world = project();
    begins(&mut world, "s/one", "make");
    world.write("a", "one\nperhaps\n");
    stops(&mut world, "s/one");
    assert_eq!(is_done(&mut world, "1"), [false]);
    writes(&mut world, "t/two", "b", "TWO\n");
    world.write("a", "one\nperhaps\nmine\n");
    assert_eq!(writers(&mut world, "a"), ["before", "unknown", "you"]);
}

#[test]
fn the_end_of_a_call_may_come_after_that_of_its_turn() {
    let mut world = project();
    begins(&mut world, "s/one", "make");
    stops(&mut world, "s/one");
    writes(&mut world, "s/two", "b", "TWO\n");
    world.write("a", "one\nONE\n");
    ends(&mut world, "s/one", "make");
    world.write("a", "one\nONE\nmine\n");
    assert_eq!(writers(&mut world, "a"), ["before", "one", "you"]);
}
