//! Which checkpoints stay for how long, and that what names them stays as long.

use beforehand::process::Exit;
use chrono::DateTime;
use serde_json::{Value, json};

use crate::{
    evidence,
    maintenance::{ids, is_sound, live, run_maintenance, save},
    support::{temp::count, world::World},
};

const DAY: i64 = 24 * 60 * 60;

/// Leaves one checkpoint of each turn, or of each session, of what has been done, as weeks do.
pub(crate) fn thin(world: &mut World, keep_turns: bool) {
    let old = world.env.clone();
    world.set("BEFOREHAND_RETENTION", "1s");
    world.set("BEFOREHAND_KEEP_TURNS", if keep_turns { "90d" } else { "1s" });
    run_maintenance(world);
    live(world, 1);
    world.wait(-DAY);
    world.env = old;
}

/// A turn of an agent in two calls, with a checkpoint before each.
fn turn_of_two_calls(world: &mut World, session: &str, turn: &str) {
    for call in 0..2 {
        world.wait(60);
        world.write("a", format!("{session} {turn} {call}"));
        let payload = json!({
            "session_id": session, "cwd": world.root(), "prompt_id": turn,
            "hook_event_name": "PreToolUse", "tool_name": "Bash",
            "tool_input": { "command": "rm -rf build a" }, "tool_use_id": format!("{turn} {call}"),
        });
        let args = ["hook", "--agent", "claude-code"];
        let output = world.run_in(&world.root(), &args, &payload.to_string());
        assert_eq!(output.exit, Exit::Ok, "{}", output.stderr);
    }
}

/// The turns in `list`, newest first.
fn turns(world: &mut World) -> Vec<String> {
    let told = world.run(&["list", "--json"]).stdout;
    let told: Value = serde_json::from_str(&told).unwrap();
    let rows = told.as_array().unwrap().iter();
    rows.map(|row| row["turn"].as_str().unwrap().to_owned()).collect()
}

/// A turn that begins with the state that the turn before it left, held in the background.
fn turn_on_a_held_state(world: &mut World, turn: &str) {
    evidence::event(world, "UserPromptSubmit", turn, "", &json!({}), "");
    world.run_started();
    let text = turn.to_owned();
    evidence::run(world, turn, "make something", |world| world.write("a", text));
    evidence::event(world, "Stop", turn, "", &json!({}), "");
    world.run_started();
}

#[test]
fn old_checkpoints_are_thinned_to_one_a_turn_and_then_to_one_a_session() {
    for mut world in [World::new(), World::with_git()] {
        let asked = save(&mut world, "a", 10);
        world.set("BEFOREHAND_DEDUPE", "call");
        for (session, turn) in [("s", "1"), ("s", "2"), ("t", "3"), ("t", "4")] {
            turn_of_two_calls(&mut world, session, turn);
        }
        let all = ids(&mut world);
        assert_eq!(all.len(), 9);
        run_maintenance(&world);
        live(&mut world, 14);
        assert_eq!(ids(&mut world), all, "everything of the last days stays");
        live(&mut world, 1);
        // One of each turn, the newest of all, and the one that was asked for.
        let of_turns = [0, 1, 3, 5, 7, 8].map(|n| all[n].clone());
        assert_eq!(ids(&mut world), of_turns);
        live(&mut world, 15);
        assert_eq!(ids(&mut world), of_turns);
        live(&mut world, 1);
        let of_sessions = [0, 3, 7, 8].map(|n| all[n].clone());
        assert_eq!(ids(&mut world), of_sessions);
        live(&mut world, 59);
        assert_eq!(ids(&mut world), of_sessions);
        live(&mut world, 1);
        assert_eq!(ids(&mut world), [all[0].clone(), asked]);
        is_sound(&mut world);
    }
}

#[test]
fn forty_turns_a_day_for_two_weeks_are_all_listed() {
    let mut world = World::new();
    let mut expected = Vec::new();
    for day in 0..14 {
        for turn in 0..40 {
            let turn = format!("{day} {turn}");
            world.wait(60);
            world.agent_writes(&turn, "a", &turn);
            expected.insert(0, turn);
        }
        live(&mut world, 1);
    }
    assert_eq!(turns(&mut world), expected);
}

#[test]
fn everything_works_while_the_clock_stands_before_1970() {
    let mut world = World::with_git();
    world.now = DateTime::from_timestamp(-300_000_000, 0).unwrap();
    world.write("a", "first");
    for turn in ["1", "2"] {
        turn_on_a_held_state(&mut world, turn);
    }
    run_maintenance(&world);
    assert_eq!(turns(&mut world), ["2", "1"]);
    for args in [&["status"][..], &["prune"], &["list"], &["show", "1"], &["diff", "1"]] {
        assert_eq!(world.run(args).exit, Exit::Ok, "{args:?}");
    }
    let restored = world.run(&["restore", "1", "--yes"]);
    assert_eq!((restored.exit, &*world.read("a")), (Exit::Ok, "1"), "{}", restored.stderr);
    world.wait(1);
    let undone = world.run(&["undo", "--yes"]);
    assert_eq!((undone.exit, &*world.read("a")), (Exit::Ok, "2"), "{}", undone.stderr);
    is_sound(&mut world);
}

#[test]
fn a_clock_that_leaps_ahead_and_back_drops_nothing() {
    let mut world = World::new();
    for turn in 0..4 {
        world.agent_writes(&turn.to_string(), "a", &turn.to_string());
    }
    let all = ids(&mut world);
    live(&mut world, 3);
    world.wait(3000 * DAY);
    run_maintenance(&world);
    assert_eq!(world.run(&["prune"]).exit, Exit::Ok);
    world.wait(-3000 * DAY);
    live(&mut world, 3);
    assert_eq!(ids(&mut world), all);
    // Staying ahead, it is believed by and by.
    world.wait(3000 * DAY);
    run_maintenance(&world);
    live(&mut world, 2);
    assert_eq!(ids(&mut world), all);
    live(&mut world, 29);
    let kept = [all[0].clone(), all[3].clone()];
    assert_eq!(ids(&mut world), kept, "the newest, and its session's first");
}

#[test]
fn a_ledger_stays_as_long_as_a_checkpoint_that_a_turn_of_it_uses() {
    let mut world = World::new();
    world.write("a", "first");
    for turn in ["1", "2", "3", "4", "5"] {
        turn_on_a_held_state(&mut world, turn);
    }
    let expected = ["5", "4", "3", "2", "1"];
    assert_eq!(turns(&mut world), expected);
    // The machine is off.
    world.wait(15 * DAY);
    for _ in 0..3 {
        world.wait(60);
        run_maintenance(&world);
    }
    assert_eq!(turns(&mut world), expected);
    // Their checkpoints go one by one, and then the session.
    live(&mut world, 27);
    assert_eq!(turns(&mut world), expected);
    let sessions = world.state().join("sessions");
    assert_ne!(count(&sessions), 0);
    live(&mut world, 80);
    assert_eq!(turns(&mut world), [""; 0], "what stays is the end of the last turn");
    assert_eq!(count(&sessions), 0);
}
