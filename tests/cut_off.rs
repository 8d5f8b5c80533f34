//! When a call is over that was not seen to end: it was refused or cut off, or something of it goes on in the
//! background.

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

/// A call of which something goes on in the background, and what then is done beside it.
fn goes_on(world: &mut World, command: &str, is_task: bool) {
    let input = json!({ "command": command, "run_in_background": is_task });
    event(world, "PreToolUse", "s/one", "Bash", &input, command);
    event(world, "PostToolUse", "s/one", "Bash", &input, command);
}

/// The agent says which tasks of it go on when a turn ends.
fn stops_with(world: &mut World, turn: &str, tasks: &Value) {
    world.wait(1);
    let (session, turn) = turn.split_once('/').unwrap();
    let payload = json!({
        "session_id": session, "cwd": world.root(), "hook_event_name": "Stop", "prompt_id": turn,
        "background_tasks": tasks,
    });
    world.run_in(&world.root(), &["hook", "--agent", "claude-code"], &payload.to_string());
}

#[test]
fn what_goes_on_in_the_background_may_write_as_the_user_may() {
    for (command, is_task) in [("make", true), ("make &", false), ("touch b", true)] {
        let mut world = project();
        goes_on(&mut world, command, is_task);
        let file = if command == "touch b" { "b" } else { "a" };
        world.write(file, "one\nperhaps\n");
        let plan = ours(&mut world, &["undo", "--dry-run"], 0).stdout;
        assert!(!plan.contains("not by the agent"), "{command}: {plan}");
        // Another turn's own edit is its own all the same.
        writes(&mut world, "s/two", file, "one\nperhaps\nTWO\n");
        let line = writers(&mut world, file);
        assert_eq!(line[1..], ["unknown", "two"], "{command}");
        stops_with(&mut world, "s/two", &json!([{ "id": "1" }]));
        world.write(file, "one\nperhaps\nTWO\nperhaps\n");
        assert_eq!(writers(&mut world, file)[3], "unknown", "{command}");
        stops_with(&mut world, "s/two", &json!([]));
        writes(&mut world, "t/three", "c", "C\n");
        world.write(file, "one\nperhaps\nTWO\nperhaps\nlast\n");
        let last = if is_task { "you" } else { "unknown" };
        assert_eq!(writers(&mut world, file)[4], last, "{command}");
        event(&mut world, "SessionEnd", "s/two", "", &json!({}), "");
        writes(&mut world, "t/four", "d", "D\n");
        world.write(file, "one\nperhaps\nTWO\nperhaps\nlast\nmine\n");
        assert_eq!(writers(&mut world, file)[5], "you", "{command}");
    }
}
