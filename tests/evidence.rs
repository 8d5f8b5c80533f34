//! A change is the agent's only where a look right before and right after one call shows it, or the
//! tool's own words name it. Everything else stays, and is named.

use std::{fs, os::unix::fs::PermissionsExt};

use serde_json::{Value, json};

use crate::{
    blame::writers,
    support::{
        real::git,
        temp::{noise, on_disk, write},
        world::{Output, World},
    },
};

/// A project in which the session `s` is known to say when a call is done.
pub(crate) fn project() -> World {
    let mut world = World::new();
    // However slow this machine is at the moment: the look after a call takes a part of it.
    write(&world.settings(), "deadline = \"60s\"\n");
    world.write("a", "first");
    world.write("b", "first");
    run(&mut world, "zero", "make nothing", |_| ());
    world
}

pub(crate) fn event(
    world: &mut World,
    name: &str,
    turn: &str,
    tool: &str,
    input: &Value,
    id: &str,
) -> String {
    world.wait(1);
    let (session, turn) = turn.split_once('/').unwrap_or(("s", turn));
    let payload = json!({
        "session_id": session, "cwd": world.root(), "hook_event_name": name, "tool_name": tool,
        "tool_input": input, "tool_use_id": id, "prompt_id": turn, "tool_response": {},
        "prompt": "go on",
    });
    let args = ["hook", "--agent", "claude-code"];
    world.run_in(&world.root(), &args, &payload.to_string()).stdout
}

pub(crate) fn begins(world: &mut World, turn: &str, command: &str) -> String {
    event(world, "PreToolUse", turn, "Bash", &json!({ "command": command }), command)
}

pub(crate) fn ends(world: &mut World, turn: &str, command: &str) -> String {
    event(world, "PostToolUse", turn, "Bash", &json!({ "command": command }), command)
}

/// The agent runs a command, from its beginning to its end.
pub(crate) fn run(
    world: &mut World,
    turn: &str,
    command: &str,
    does: impl FnOnce(&World),
) -> String {
    begins(world, turn, command);
    does(world);
    ends(world, turn, command)
}

pub(crate) fn writes(world: &mut World, turn: &str, path: &str, text: &str) {
    let input = json!({ "file_path": world.root().join(path), "content": text });
    event(world, "PreToolUse", turn, "Write", &input, path);
    world.write(path, text);
    event(world, "PostToolUse", turn, "Write", &input, path);
}

/// Takes the checkpoint that a hook has one taken in the background.
pub(crate) fn warm(world: &mut World, more: &[&str]) {
    let dir = world.root().to_str().unwrap().to_owned();
    let args = ["warm", "--agent", "claude-code", "--session", "s", "--dir", &dir];
    ours(world, &[&args[..], more].concat(), 0);
}

#[track_caller]
pub(crate) fn ours(world: &mut World, args: &[&str], exit: u8) -> Output {
    world.wait(1);
    let done = world.run(args);
    assert_eq!(done.exit.code(), exit, "{args:?}: {}{}", done.stdout, done.stderr);
    done
}

#[test]
fn what_an_undo_left_for_a_conflict_is_undone_with_force() {
    let mut world = project();
    writes(&mut world, "zero", "c", "zero");
    writes(&mut world, "one", "a", "the agent's");
    writes(&mut world, "one", "b", "the agent's");
    world.write("a", "mine");
    ours(&mut world, &["undo", "--yes"], 3);
    assert_eq!(["a", "b"].map(|path| world.read(path)), ["mine", "first"]);
    ours(&mut world, &["undo", "--force", "--yes"], 0);
    assert_eq!(["a", "c"].map(|path| world.read(path)), ["first", "zero"]);
    ours(&mut world, &["redo", "--yes"], 0);
    assert_eq!(["a", "b"].map(|path| world.read(path)), ["mine", "first"]);
    // Without it, the turn before is the next.
    ours(&mut world, &["undo", "--yes"], 0);
    ours(&mut world, &["redo", "--yes"], 0);
    assert!(world.root().join("c").exists());
}

#[test]
fn work_after_a_call_that_was_cut_off_is_not_the_agents() {
    let mut world = project();
    begins(&mut world, "one", "make");
    world.write("b", "mine");
    world.write("new", "mine");
    run(&mut world, "one", "make more", |world| world.write("a", "the agent's"));
    let done = ours(&mut world, &["undo", "--yes"], 3);
    assert_eq!(["a", "b", "new"].map(|path| world.read(path)), ["first", "mine", "mine"]);
    assert!(done.stdout.contains("2 conflicts kept: b, new"), "{}", done.stdout);
    let plan = ours(&mut world, &["restore", "1", "--dry-run"], 0).stdout;
    assert!(plan.contains("perhaps by an interrupted or concurrent call (use --force)"), "{plan}");
}

#[test]
fn the_end_of_a_turn_is_no_look_right_after_a_call() {
    let mut world = project();
    begins(&mut world, "one", "make");
    world.write("b", "mine");
    event(&mut world, "Stop", "one", "", &json!({}), "");
    ours(&mut world, &["undo", "--yes"], 3);
    assert_eq!(world.read("b"), "mine");
}

#[test]
fn a_command_that_only_makes_things_has_made_no_more_than_it_names() {
    let mut world = project();
    writes(&mut world, "one", "a", "the agent's");
    world.write("b", "mine");
    world.write("there", "mine");
    run(&mut world, "one", "touch z there", |world| world.write("z", ""));
    ours(&mut world, &["undo", "--yes"], 0);
    assert_eq!(["a", "b", "there"].map(|path| world.read(path)), ["first", "mine", "mine"]);
    assert!(!world.root().join("z").exists());
}

#[test]
fn directories_that_an_edit_made_go_and_those_of_the_user_stay() {
    let mut world = project();
    writes(&mut world, "one", "a", "the agent's");
    fs::create_dir(world.root().join("mine")).unwrap();
    writes(&mut world, "one", "mine/x", "x");
    writes(&mut world, "one", "made/by/x", "x");
    ours(&mut world, &["undo", "--yes"], 0);
    assert!(world.root().join("mine").is_dir());
    assert!(!world.root().join("mine/x").exists());
    assert!(!world.root().join("made").exists());
}

#[test]
fn directories_that_a_command_made_go_however_it_names_them() {
    let mut world = project();
    let line = "mkdir -p ../shop/made/by/it";
    let makes = |world: &World| fs::create_dir_all(world.root().join("made/by/it")).unwrap();
    run(&mut world, "one", line, makes);
    ours(&mut world, &["undo", "--yes"], 0);
    assert!(!world.root().join("made").exists());
}

#[test]
fn the_same_bytes_in_a_second_life_are_the_users() {
    let mut world = project();
    run(&mut world, "one", "make", |world| world.write("x", "text"));
    run(&mut world, "one", "rm x", |world| fs::remove_file(world.root().join("x")).unwrap());
    world.write("x", "text");
    run(&mut world, "one", "make more", |world| world.write("a", "the agent's"));
    ours(&mut world, &["undo", "--yes"], 3);
    assert_eq!([world.read("a"), world.read("x")], ["first", "text"]);
}

#[test]
fn a_call_is_seen_to_its_end_whatever_begins_meanwhile() {
    let mut world = project();
    begins(&mut world, "one", "make a");
    world.write("a", "the agent's");
    begins(&mut world, "one", "make b");
    world.write("b", "the agent's");
    ends(&mut world, "one", "make b");
    // Something new is asked for while it runs.
    event(&mut world, "UserPromptSubmit", "two", "", &json!({}), "");
    ends(&mut world, "one", "make a");
    ours(&mut world, &["restore", "1", "--yes"], 0);
    assert_eq!([world.read("a"), world.read("b")], ["first", "first"]);
}

#[test]
fn what_a_restore_put_back_is_whose_it_was() {
    let mut world = project();
    run(&mut world, "one", "make", |world| world.write("a", "one"));
    world.write("b", "mine");
    run(&mut world, "two", "make", |world| {
        world.write("a", "two");
        world.write("b", "two");
    });
    ours(&mut world, &["restore", "1", "--yes"], 0);
    assert_eq!([world.read("a"), world.read("b")], ["one", "mine"]);
    ours(&mut world, &["restore", "2", "--yes"], 3);
    assert_eq!([world.read("a"), world.read("b")], ["first", "mine"]);
    // Nobody has changed anything since: there is no conflict on the way forward.
    ours(&mut world, &["restore", "1", "--yes"], 0);
    assert_eq!([world.read("a"), world.read("b")], ["one", "mine"]);
}

#[test]
fn turns_of_two_sessions_at_once_are_each_one_row_and_one_step() {
    let mut world = project();
    writes(&mut world, "t/zero", "c", "c");
    for (number, path) in [("1", "a"), ("2", "b")] {
        run(&mut world, "s/one", &format!("make {number}"), |world| world.write(path, number));
        let made = format!("t{number}");
        run(&mut world, "t/one", &format!("make t{number}"), |world| world.write(&made, number));
    }
    let listed: Value = serde_json::from_str(&world.run(&["list", "--json"]).stdout).unwrap();
    let sessions: Vec<_> = listed.as_array().unwrap().iter().map(|row| &row["session"]).collect();
    assert_eq!(sessions[..2], ["t", "s"], "{sessions:?}");
    assert!(listed[1]["changed"].as_u64() >= Some(2), "both of its files count: {listed}");
    ours(&mut world, &["undo", "--session", "s", "--yes"], 0);
    assert_eq!([world.read("a"), world.read("b")], ["first", "first"]);
    assert_eq!([world.read("t1"), world.read("t2")], ["1", "2"]);
    ours(&mut world, &["undo", "--yes"], 0);
    assert!(!world.root().join("t1").exists() && !world.root().join("t2").exists());
}

#[test]
fn a_repository_does_not_come_back_where_a_file_stays() {
    let mut world = project();
    git(&world, &world.root(), "git init -q e && echo n > e/n");
    begins(&mut world, "one", "make");
    beforehand::fs::remove_tree(&world.root().join("e")).unwrap();
    world.write("e", "a file");
    let plan = ours(&mut world, &["undo", "--dry-run"], 0).stdout;
    assert!(plan.contains("keep      e/.git"), "{plan}");
    ours(&mut world, &["undo", "--yes"], 3);
    assert_eq!(world.read("e"), "a file");
    ours(&mut world, &["undo", "--yes", "--force"], 0);
    assert!(world.root().join("e/.git/HEAD").is_file());
}

/// What is announced and what is done are counted alike, repositories and all.
#[test]
fn as_many_paths_are_announced_as_done() {
    let mut world = project();
    git(&world, &world.root(), "git init -q e && echo n > e/n");
    run(&mut world, "one", "rm -rf e", |world| {
        beforehand::fs::remove_tree(&world.root().join("e")).unwrap();
    });
    let plan = ours(&mut world, &["undo", "--dry-run"], 0).stdout;
    assert!(plan.contains("2 paths would change"), "{plan}");
    let done = ours(&mut world, &["undo", "--yes"], 0).stdout;
    assert!(done.contains("restored 2 paths"), "{done}");
}

#[test]
fn what_is_not_held_is_named_before_and_after() {
    let mut world = project();
    world.write("large", noise(1, 21 << 20));
    run(&mut world, "one", "make", |world| {
        world.write("a", "the agent's");
        world.write("later", noise(2, 21 << 20));
    });
    let status = world.run(&["status", "--json"]).stdout;
    let status: Value = serde_json::from_str(&status).unwrap();
    assert_eq!(status["roots"][0]["not_held"][0]["path"], "large", "{status}");
    let told = "left: made since, and not held: later";
    for args in [["undo", "--dry-run"], ["undo", "--yes"]] {
        let said = ours(&mut world, &args, 0).stdout;
        assert!(said.contains(told), "{said}");
    }
    let elsewhere = world.home().join("elsewhere");
    let into = ["restore", "1", "--into", elsewhere.to_str().unwrap()];
    let said = ours(&mut world, &into, 0).stderr;
    assert!(said.contains("note: missing, because it was not held: large"), "{said}");
    let gone = run(&mut world, "two", "make clean", |world| {
        fs::remove_file(world.root().join("large")).unwrap();
    });
    assert!(gone.contains("gone for good: 1 file that no checkpoint holds"), "{gone}");
}

#[test]
fn what_a_nested_repository_tracks_is_not_called_untracked() {
    let mut world = World::with_git();
    world.write("x", "x");
    git(&world, &world.root(), "git add -A && git commit -qm x && git init -q n");
    world.write("n/tracked", "t");
    git(&world, &world.root().join("n"), "git add -A && git commit -qm n");
    let told = run(&mut world, "one", "make clean", |world| {
        fs::remove_file(world.root().join("n/tracked")).unwrap();
    });
    assert_eq!(told, "{}");
}

#[test]
fn a_repository_that_comes_back_is_as_readable_as_git_made_it() {
    let mut world = World::new();
    world.write("x", "x");
    git(&world, &world.root(), "git init -q && git add -A && git commit -qm x");
    ours(&mut world, &["create", "-m", "before"], 0);
    beforehand::fs::remove_tree(&world.root().join(".git")).unwrap();
    ours(&mut world, &["restore", "1", "--yes"], 0);
    let objects = on_disk(&world.root().join(".git/objects"));
    let closed = objects.keys().map(|path| String::from_utf8(path.clone()).unwrap()).find(|path| {
        let found = world.root().join(".git/objects").join(path).symlink_metadata().unwrap();
        found.is_file() && found.permissions().mode() & 0o777 == 0o400
    });
    assert_eq!(closed, None);
}

#[test]
fn work_after_a_call_that_makes_very_many_files_is_not_the_agents() {
    let mut world = project();
    run(&mut world, "one", "make all", |world| {
        for number in 0..5_200 {
            world.write(&format!("gen/{}/{number}", number % 9), "");
        }
        world.write("a", "the agent's");
    });
    world.write("b", "mine");
    ours(&mut world, &["undo", "--yes"], 0);
    assert_eq!(["a", "b"].map(|path| world.read(path)), ["first", "mine"]);
}

#[test]
fn a_path_that_was_never_there_is_a_slip() {
    let mut world = project();
    run(&mut world, "one", "make a", |world| world.write("a", "the agent's"));
    let told = ours(&mut world, &["restore", "1", "--yes", "--", "a", "scr/a"], 1);
    assert!(told.stderr.contains("`scr/a` was not there at"), "{}", told.stderr);
    assert_eq!(world.read("a"), "the agent's");
    ours(&mut world, &["restore", "1", "--yes", "--", "b"], 0);
}

/// What it says brings the files back, and an undo of the whole turn would not.
#[test]
fn what_a_later_command_deleted_is_told_with_the_step_before_it() {
    let mut world = project();
    git(&world, &world.root(), "git init -q && git add a b && git commit -qm one");
    writes(&mut world, "one", "a", "the agent's");
    world.write("mine", "mine");
    let told = run(&mut world, "one", "rm mine", |world| {
        fs::remove_file(world.root().join("mine")).unwrap();
    });
    let step = told.split("beforehand restore ").nth(1).map(|rest| rest[..8].to_owned());
    let step = step.unwrap_or_else(|| panic!("{told}"));
    ours(&mut world, &["restore", &step, "--yes"], 0);
    assert_eq!(["a", "mine"].map(|path| world.read(path)), ["the agent's", "mine"]);
}

/// A directory cannot give way to the file that was there while something of the user's is in it.
#[test]
fn a_file_that_cannot_come_back_for_what_a_person_made_is_a_conflict() {
    let mut world = project();
    run(&mut world, "one", "make", |world| {
        fs::remove_file(world.root().join("a")).unwrap();
        world.write("a/agents", "the agent's");
        world.write("b", "the agent's");
    });
    world.write("a/mine", "mine");
    let done = ours(&mut world, &["undo", "--yes"], 3).stdout;
    assert!(done.contains("1 conflict kept: a\n"), "{done}");
    assert_eq!([world.read("a/mine"), world.read("b")], ["mine", "first"]);
    assert!(!world.root().join("a/agents").exists());
    ours(&mut world, &["restore", "1", "--exact", "--yes"], 0);
    assert_eq!(world.read("a"), "first");
    ours(&mut world, &["undo", "--yes"], 0);
    assert_eq!(world.read("a/mine"), "mine");
}

/// What can be made again is held all the same if it stands in the way.
#[test]
fn what_can_be_made_again_does_not_keep_the_rest_from_coming_back() {
    let mut world = World::with_git();
    world.write(".gitignore", "env\n");
    world.write("env", "a file");
    world.write("a", "first");
    run(&mut world, "zero", "make nothing", |_| ());
    run(&mut world, "one", "make", |world| {
        fs::remove_file(world.root().join("env")).unwrap();
        world.write("env/pyvenv.cfg", "home = /usr\n");
        world.write("env/bin/x", "x");
        world.write("a", "the agent's");
    });
    world.write("env/mine", "mine");
    let done = ours(&mut world, &["undo", "--yes"], 3).stdout;
    assert!(done.contains("1 conflict kept: env\n"), "{done}");
    assert_eq!([world.read("env/mine"), world.read("a")], ["mine", "first"]);
    ours(&mut world, &["restore", "1", "--exact", "--yes"], 0);
    assert_eq!(world.read("env"), "a file");
    ours(&mut world, &["undo", "--yes"], 0);
    assert_eq!(
        ["env/mine", "env/pyvenv.cfg", "env/bin/x"].map(|path| world.read(path)),
        ["mine", "home = /usr\n", "x"]
    );
}

#[test]
fn who_put_a_file_there_and_who_removed_it_is_said_truly() {
    let mut world = project();
    world.write("untouched", "mine");
    run(&mut world, "one", "make", |world| {
        fs::remove_file(world.root().join("b")).unwrap();
        world.write("a", "the agent's");
    });
    for path in ["a", "untouched"] {
        fs::remove_file(world.root().join(path)).unwrap();
    }
    let plan = ours(&mut world, &["undo", "--dry-run"], 0).stdout;
    assert!(plan.contains("recreate  a           deleted since, not by the agent\n"), "{plan}");
    assert!(plan.contains("recreate  untouched   deleted since, not by the agent\n"), "{plan}");
    assert!(plan.contains("recreate  b\n"), "{plan}");
    ours(&mut world, &["undo", "--yes"], 0);
    let plan = ours(&mut world, &["redo", "--dry-run"], 0).stdout;
    assert!(plan.contains("remove    b           put there by a restore; held first"), "{plan}");
}

/// A command whose words name all that it changes did not change another file meanwhile.
#[test]
fn an_edit_of_another_file_while_a_command_runs_is_not_the_commands_for_certain() {
    for (line, is_alone) in [("rm a", true), ("mv a d/a", true), ("rm a && make", false)] {
        let mut world = World::with_git();
        write(&world.settings(), "deadline = \"60s\"\n");
        world.write("a", "first");
        world.write("b", "first\n");
        run(&mut world, "zero", "make nothing", |_| ());
        run(&mut world, "one", line, |world| {
            fs::remove_file(world.root().join("a")).unwrap();
            world.write("b", "first\nmine\n");
        });
        let writer = if is_alone { "unknown" } else { "one" };
        assert_eq!(writers(&mut world, "b"), ["before", writer], "{line}");
        ours(&mut world, &["undo", "--yes"], if is_alone { 3 } else { 0 });
        assert_eq!(world.read("a"), "first", "{line}");
        let kept = if is_alone { "first\nmine\n" } else { "first\n" };
        assert_eq!(world.read("b"), kept, "{line}");
        ours(&mut world, &["redo", "--yes"], 0);
        ours(&mut world, &["revert", "1", "--yes"], if is_alone { 3 } else { 0 });
        assert_eq!(world.read("b"), kept, "{line}");
    }
}

/// What a directory in the place of a file leaves out is looked at, stays with an undo, and goes with `--exact`.
#[test]
fn what_can_be_made_again_keeps_its_directory_from_becoming_a_file_again() {
    let mut world = World::new();
    world.write("d", "mine");
    run(&mut world, "one", "make", |world| {
        fs::remove_file(world.root().join("d")).unwrap();
        world.write("d/package.json", "{}");
        world.write("d/node_modules/x/x.js", "x");
    });
    let done = world.run(&["undo", "--yes"]);
    assert_eq!((done.exit.code(), done.stderr.as_str()), (3, ""), "{}", done.stdout);
    assert!(done.stdout.contains("1 conflict kept: d\n"), "{}", done.stdout);
    assert!(!done.stdout.contains("--force"), "that would restore it no more: {}", done.stdout);
    assert_eq!(world.read("d/node_modules/x/x.js"), "x");
    assert!(!world.root().join("d/package.json").exists());
    let done = world.run(&["restore", "1", "--exact", "--yes"]);
    assert_eq!((done.exit.code(), done.stderr.as_str()), (0, ""), "{}", done.stdout);
    assert_eq!(world.read("d"), "mine");
    world.run(&["undo", "--yes"]);
    assert_eq!(world.read("d/node_modules/x/x.js"), "x");
}

/// What is written through a symlink changes what that leads to, which is the agent's work.
#[test]
fn what_is_written_through_a_symlink_is_the_agents_where_it_is() {
    let mut world = project();
    let link = |text: &str, name: &str| {
        std::os::unix::fs::symlink(text, world.root().join(name)).unwrap();
    };
    write(&world.root().join("../out/f"), "first");
    link("d", "to d");
    link("../out", "to out");
    link("a", "to a");
    world.write("d/f", "first");
    run(&mut world, "zero", "make nothing", |_| ());
    for path in ["to d/f", "to out/f", "to a"] {
        let input = json!({ "file_path": world.root().join(path), "content": "the agent's" });
        event(&mut world, "PreToolUse", "one", "Write", &input, path);
        write(&world.root().join(path), "the agent's");
        event(&mut world, "PostToolUse", "one", "Write", &input, path);
    }
    for path in ["d/f", "a"] {
        assert_eq!(writers(&mut world, path), ["one"], "{path}");
    }
    ours(&mut world, &["undo", "--yes"], 0);
    assert_eq!(["d/f", "a"].map(|path| world.read(path)), ["first", "first"]);
    assert_eq!(fs::read_to_string(world.root().join("../out/f")).unwrap(), "first");
}
