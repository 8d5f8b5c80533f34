//! Several turns with the user's own work in between, and restores over all of them.

use std::fs;

use beforehand::process::Exit;

use serde_json::Value;

use crate::{
    evidence::{self, ours},
    reports::{listed, prompts, repository},
    support::world::{Output, World},
};

/// The agent writes a file.
fn writes(world: &mut World, turn: &str, path: &str) {
    let root = world.root();
    let input = serde_json::json!({ "file_path": root.join(path), "content": "" });
    for event in ["PreToolUse", "PostToolUse"] {
        let payload = serde_json::json!({
            "session_id": "s", "cwd": root, "hook_event_name": event, "tool_name": "Write",
            "tool_input": input, "tool_use_id": turn, "prompt_id": turn, "tool_response": {},
        });
        world.wait(1);
        world.run_in(&root, &["hook", "--agent", "claude-code"], &payload.to_string());
        if event == "PreToolUse" {
            world.write(path, turn);
        }
    }
}

/// What a turn did is counted, whether it was undone since or not.
#[test]
fn a_turn_that_was_undone_is_listed_as_such() {
    let mut world = World::new();
    world.write("a", "first");
    writes(&mut world, "one", "a");
    writes(&mut world, "two", "b");
    let told = |world: &mut World| {
        let rows = listed(world, &[]);
        let told = |row: &Value| (row["changed"].as_u64(), row["undone"].as_bool());
        rows.as_array().unwrap().iter().map(told).collect::<Vec<_>>()
    };
    let rows = |undone: [bool; 2]| undone.map(|undone| (Some(1), Some(undone)));
    assert_eq!(told(&mut world), rows([false, false]));
    for (verb, undone) in [
        ("undo", [true, false]),
        ("undo", [true, true]),
        ("redo", [true, false]),
        ("redo", [false, false]),
        ("undo", [true, false]),
    ] {
        ours(&mut world, &[verb, "--yes"], 0);
        assert_eq!(told(&mut world), rows(undone), "{verb}");
    }
    let table = world.run(&["list"]).stdout;
    assert_eq!(table.matches("[undone]").count(), 1, "{table}");
}

/// The shell lines of a custom command run before the prompt that names its turn.
#[test]
fn the_shell_lines_of_a_command_belong_to_its_turn() {
    for agent in ["opencode", "kilo"] {
        let mut world = World::new();
        let root = world.root();
        world.write("src/first", "one");
        let tell = |world: &mut World, event: &str, turn: &str, more: Value| {
            let mut payload = serde_json::json!({
                "session_id": "s", "cwd": root, "hook_event_name": event, "message_id": turn,
            });
            payload.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            world.wait(1);
            world.run_in(&root, &["hook", "--agent", agent], &payload.to_string());
        };
        let write = serde_json::json!({
            "call_id": "1", "tool_name": "write", "tool_input": { "filePath": "made" },
        });
        let clean = |call: &str| {
            serde_json::json!({
                "call_id": call, "tool_name": "command", "tool_input": { "command": "clean" },
            })
        };
        tell(&mut world, "chat.message", "one", serde_json::json!({ "prompt": "make it" }));
        tell(&mut world, "tool.execute.before", "one", write.clone());
        world.write("made", "by the agent");
        tell(&mut world, "tool.execute.after", "one", write);
        tell(&mut world, "session.idle", "one", serde_json::json!({}));
        // The plugin also holds when the commands are listed. Then nothing runs, and no turn takes it over.
        tell(&mut world, "command.execute.before", "one", clean("2"));
        world.write("src/hand", "by hand");
        tell(&mut world, "command.execute.before", "one", clean("3"));
        for path in ["src/first", "src/hand"] {
            fs::remove_file(world.root().join(path)).unwrap();
        }
        tell(&mut world, "command.executed", "one", clean("3"));
        tell(&mut world, "chat.message", "two", serde_json::json!({ "prompt": "say so" }));
        tell(&mut world, "session.idle", "two", serde_json::json!({}));
        let rows = listed(&mut world, &[]);
        let rows: Vec<_> = rows.as_array().unwrap().iter().map(|row| &row["prompt"]).collect();
        assert_eq!(rows, ["say so", "make it"], "{agent}");
        ours(&mut world, &["undo", "--yes"], 0);
        assert_eq!(world.read("src/hand"), "by hand", "{agent}");
        assert_eq!(world.read("src/first"), "one", "{agent}");
        assert_eq!(world.read("made"), "by the agent", "{agent}");
        ours(&mut world, &["undo", "--yes"], 0);
        assert!(!world.root().join("made").exists(), "{agent}");
        assert_eq!(world.read("src/hand"), "by hand", "{agent}");
    }
}

/// In the first turn the agent wrote `a`, in the second `.env.made`, which is ignored; in the
/// third it removed what is ignored.
fn three_turns() -> World {
    let mut world = World::new();
    world.write(".gitignore", ".env*\n");
    world.write(".env", "secret");
    world.write("sub/.env", "deep secret");
    world.write("sub/code", "code");
    writes(&mut world, "one", "a");
    writes(&mut world, "two", ".env.made");
    world.wait(1);
    world.before_bash("three", "rm -rf sub .env .env.made");
    for path in ["sub/.env", "sub/code", ".env", ".env.made"] {
        fs::remove_file(world.root().join(path)).unwrap();
    }
    fs::remove_dir(world.root().join("sub")).unwrap();
    world
}

fn restored(world: &mut World, number: &str) -> Output {
    let done = world.run(&["restore", number, "--yes"]);
    assert_eq!(done.exit.code(), 0, "{}", done.stderr);
    done
}

#[test]
fn what_a_later_turn_removed_comes_back_from_before_an_earlier_one() {
    for number in ["1", "2", "3"] {
        let mut world = three_turns();
        restored(&mut world, number);
        let back = [".env", "sub/.env", "sub/code"].map(|path| world.read(path));
        assert_eq!(back, ["secret", "deep secret", "code"], "restore {number}");
        let listed = world.run(&["list", "--all"]);
        assert!(!listed.stdout.contains("not held"), "{}", listed.stdout);
    }
}

#[test]
fn what_an_agent_made_in_between_is_not_taken_for_what_was_there() {
    let mut world = three_turns();
    restored(&mut world, "3");
    assert!(!world.root().join(".env.made").exists(), "it was made after that");
    let mut world = three_turns();
    restored(&mut world, "1");
    assert_eq!(world.read(".env.made"), "two");
}

#[test]
fn an_ignored_file_that_a_person_made_anew_is_a_conflict() {
    let mut world = three_turns();
    world.write(".env", "a new one, by hand");
    let done = world.run(&["restore", "3", "--yes"]);
    assert_eq!(done.exit.code(), 3, "{}", done.stderr);
    assert_eq!(world.read(".env"), "a new one, by hand");
    assert_eq!(world.read("sub/.env"), "deep secret");
}

#[test]
fn what_the_agent_made_and_a_person_went_on_with_is_a_conflict() {
    for (flags, exit, is_there) in [(&[][..], 3, true), (&["--force"], 0, false)] {
        let mut world = World::new();
        world.write("a", "x");
        writes(&mut world, "one", "made");
        world.write("made", "and then mine");
        let done = world.run(&[&["undo", "--yes"], flags].concat());
        assert_eq!(done.exit.code(), exit, "{flags:?}: {}", done.stderr);
        assert_eq!(world.root().join("made").exists(), is_there, "{flags:?}");
        assert_eq!(done.stdout.contains("1 conflict kept: made"), is_there, "{}", done.stdout);
    }
}

/// A call that was refused, or changed nothing, leaves a turn with nothing to undo.
#[test]
fn undo_passes_over_turns_that_changed_nothing_and_says_so() {
    for mut world in [World::new(), World::with_git()] {
        world.write("a", "none");
        writes(&mut world, "one", "a");
        for turn in ["two", "three"] {
            world.wait(1);
            world.before_bash(turn, "make things");
            // Somebody else's, and no reason to stay with this turn.
            world.write(&format!("mine-{turn}"), "mine");
        }
        let shown = world.run(&["undo", "--dry-run"]);
        let said = "note: skipped turn ";
        assert_eq!(shown.stderr.matches(said).count(), 2, "{}", shown.stderr);
        let done = world.run(&["undo", "--yes"]);
        assert_eq!(done.stderr.matches(said).count(), 2, "{}", done.stderr);
        assert_eq!((done.exit.code(), &*world.read("a")), (0, "none"), "{}", done.stderr);
        world.wait(1);
        let redone = world.run(&["redo", "--yes"]);
        assert_eq!((redone.exit.code(), &*world.read("a")), (0, "one"), "{}", redone.stderr);
        assert_eq!(world.read("mine-three"), "mine");
    }
}

#[test]
fn what_the_agent_left_outside_in_one_turn_is_held_in_the_next() {
    let mut world = World::new();
    let other = world.root().join("../other");
    world.write("../other", "before");
    writes(&mut world, "one", "../other");
    writes(&mut world, "two", "a");
    writes(&mut world, "two", "../other");
    let done = world.run(&["undo", "--yes"]);
    assert_eq!(done.exit.code(), 0, "{}", done.stderr);
    assert_eq!(fs::read_to_string(&other).unwrap(), "one");
}

#[test]
fn what_a_later_call_of_the_turn_held_comes_back_though_the_first_left_it_out() {
    for args in [["undo", "--yes"].as_slice(), &["restore", "1", "--yes"]] {
        let mut world = World::new();
        let large = crate::support::temp::noise(1, 20 << 20);
        world.write("large", &large);
        writes(&mut world, "one", "a");
        world.wait(1);
        world.before_bash("one", "rm large");
        fs::remove_file(world.root().join("large")).unwrap();
        let plan = world.run(&["restore", "1", "--dry-run"]).stdout;
        assert!(plan.contains("recreate  large") && !plan.contains("leave"), "{plan}");
        let done = world.run(args);
        assert_eq!(done.exit.code(), 0, "{}", done.stderr);
        assert!(fs::read(world.root().join("large")).is_ok_and(|bytes| bytes == large));
    }
}

/// The agent removed a directory, and a person put something else in its place: the turn is not passed
/// over for an older one.
#[test]
fn a_turn_whose_files_cannot_come_back_is_not_passed_over() {
    for mut world in [World::new(), World::with_git()] {
        world.write("d/x", "mine");
        world.write("k", "mine");
        evidence::run(&mut world, "one", "make k", |world| world.write("k", "the agent's"));
        evidence::run(&mut world, "two", "rm -r d", |world| {
            beforehand::fs::remove_tree(&world.root().join("d")).unwrap();
        });
        world.write("d", "in the way");
        let undone = world.run(&["undo", "--yes"]);
        assert_eq!(undone.exit, Exit::Conflicts, "{}{}", undone.stdout, undone.stderr);
        assert_eq!((&*world.read("k"), &*world.read("d")), ("the agent's", "in the way"));
    }
}

/// What others did between the calls of a turn and after it is no part of what it changed.
#[test]
fn a_turn_is_counted_by_what_it_did_alone() {
    for world in [evidence::project(), repository()] {
        let mut world = world;
        evidence::writes(&mut world, "s/one", "made", "1\n2\n");
        world.write("made", "1\n2\nmine\nmine\nmine\n");
        evidence::writes(&mut world, "s/one", "made", "1\n2\nmine\nmine\nmine\n4\n");
        evidence::writes(&mut world, "t/one", "b", "theirs\n");
        fs::rename(world.root().join("made"), world.root().join("renamed")).unwrap();
        world.write("c", "mine\n");
        let count = |world: &mut World, session: &str| {
            let all = listed(world, &[]);
            let row = all.as_array().unwrap().iter().find(|row| row["session"] == session).unwrap();
            let number = row["number"].to_string();
            let shown = ours(world, &["show", &number], 0).stdout;
            let counts = ["changed", "added", "removed"].map(|name| row[name].as_u64().unwrap());
            (counts, number, shown)
        };
        let (counts, number, shown) = count(&mut world, "s");
        assert_eq!(counts, [1, 3, 0]);
        assert!(shown.contains("\nchanged    1 file  +3 −0 in this turn\n"), "{shown}");
        assert!(shown.contains(&format!("session s, turn {number}")), "{shown}");
        assert_eq!(count(&mut world, "t").0, [1, 1, 1]);
        // It is over, and remembered.
        prompts(&mut world, "s/two");
        evidence::writes(&mut world, "s/two", "d", "x\n");
        for _again in 0..2 {
            let all = listed(&mut world, &[]);
            let rows = all.as_array().unwrap();
            let of = |turn: &str| {
                rows.iter().find(|row| row["session"] == "s" && row["turn"] == turn).unwrap()
            };
            let counts = |turn: &str| {
                ["changed", "added", "removed"].map(|it| of(turn)[it].as_u64().unwrap())
            };
            assert_eq!([counts("one"), counts("two")], [[1, 3, 0], [1, 1, 0]]);
        }
    }
}

#[test]
fn a_directory_is_no_file_in_a_sum() {
    let mut world = evidence::project();
    fs::create_dir(world.root().join("empty")).unwrap();
    world.write("a", "mine");
    let told = ours(&mut world, &["diff", "1", "--stat"], 0).stdout;
    assert!(told.contains("\n1 file, 1 directory  +1 −1\n"), "{told}");
}
