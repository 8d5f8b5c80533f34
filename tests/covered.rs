//! The fast path for an edit that the turn already holds: what it checks, and what it never trusts.

use std::{
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use beforehand::{cache::ScanTable, fs::Lock};
use serde_json::{Value, json};

use crate::support::{temp::write, world::World};

/// A repository whose turn `t` has a checkpoint of `a`, long enough ago that its stamp proves
/// something.
fn covered() -> World {
    let mut world = World::with_git();
    world.write("a", "one");
    settle();
    edit(&mut world, "a");
    world
}

fn settle() {
    std::thread::sleep(Duration::from_millis(50));
}

/// What the hook answers to an edit in turn `t`.
fn edit(world: &mut World, path: impl AsRef<Path>) -> Value {
    let input = json!({ "file_path": world.root().join(path), "old_string": "o" });
    serde_json::from_str(&world.hook("t", "Edit", &input)).unwrap()
}

fn checkpoints(world: &mut World) -> usize {
    let listed: Value =
        serde_json::from_str(&world.run(&["list", "--all", "--json"]).stdout).unwrap();
    listed.as_array().unwrap().len()
}

fn below(dir: &Path, extension: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    entries.filter(|path| path.extension().is_some_and(|found| found == extension)).collect()
}

/// The log of what agents did in the one root there is.
fn log(world: &World) -> Option<String> {
    let root = fs::read_dir(world.state().join("roots")).unwrap().next()?.unwrap().path();
    fs::read_to_string(root.join("attribution/log")).ok()
}

#[test]
fn it_waits_for_nobody() {
    let mut world = covered();
    let locks = below(&world.state().join("sessions"), "lock");
    let held = Lock::acquire(&locks[0], Instant::now()).unwrap();
    let before = (checkpoints(&mut world), log(&world).unwrap().lines().count());
    // Who waited would wait for three seconds, and then take a copy of his own.
    assert_eq!(edit(&mut world, "a"), json!({}));
    drop(held);
    let after = (checkpoints(&mut world), log(&world).unwrap().lines().count());
    assert_eq!(after, (before.0, before.1 + 2), "it is noted, and that is all");
}

#[test]
fn what_changed_since_is_held_first() {
    let mut world = covered();
    let before = checkpoints(&mut world);
    world.write("a", "two");
    edit(&mut world, "a");
    assert_eq!(checkpoints(&mut world), before + 1);
}

#[test]
fn a_cache_that_is_half_written_is_not_believed() {
    let mut world = covered();
    let root = fs::read_dir(world.state().join("roots")).unwrap().next().unwrap().unwrap().path();
    let cache = root.join("cache");
    let mut bytes = fs::read(&cache).unwrap();
    let half = bytes.len() / 4;
    bytes[half..].fill(0);
    write(&cache, &bytes);
    assert!(ScanTable::is_damaged(&cache));
    edit(&mut world, "a");
    assert!(!ScanTable::is_damaged(&cache), "the root was looked at again");
}

#[test]
fn what_a_link_leads_to_is_looked_at() {
    let mut world = World::with_git();
    let outside = world.root().join("../other");
    write(&outside, "one");
    symlink("../other", world.root().join("link")).unwrap();
    settle();
    for _ in 0..2 {
        edit(&mut world, "link");
        settle();
    }
    let before = checkpoints(&mut world);
    write(&outside, "two");
    edit(&mut world, "link");
    assert_eq!(checkpoints(&mut world), before + 1, "the link is as it was, the file is not");
}

#[test]
fn a_ledger_of_another_turn_covers_nothing() {
    let mut world = covered();
    let input = json!({ "file_path": world.root().join("a"), "old_string": "o" });
    world.wait(60);
    world.hook("u", "Edit", &input);
    let listed: Value = serde_json::from_str(&world.run(&["list", "--json"]).stdout).unwrap();
    assert_eq!(listed[0]["turn"], "u", "nothing changed, and yet the turn has its row: {listed}");
}

#[test]
fn a_turn_that_comes_again_is_the_one_that_runs() {
    let mut world = covered();
    let input = json!({ "file_path": world.root().join("a"), "old_string": "o" });
    for turn in ["u", "t"] {
        world.hook(turn, "Edit", &input);
        let ledgers = below(&world.state().join("sessions"), "json");
        let text = fs::read_to_string(&ledgers[0]).unwrap();
        let fields: Value = serde_json::from_str(text.lines().nth(1).unwrap()).unwrap();
        assert_eq!(fields["turn"]["id"], turn);
    }
}

#[test]
fn a_directory_that_is_not_walked_has_no_log() {
    let mut world = World::new();
    let home = world.root().join("../../home").canonicalize().unwrap();
    write(&home.join("notes"), "one");
    let call = |world: &mut World, event: &str| {
        let payload = json!({
            "session_id": "s1", "cwd": home, "prompt_id": "t", "hook_event_name": event,
            "tool_name": "Edit", "tool_input": { "file_path": home.join("notes") },
            "tool_use_id": "x", "tool_response": {},
        });
        let args = ["hook", "--agent", "claude-code"];
        assert_eq!(world.run_in(&home, &args, &payload.to_string()).stdout.trim(), "{}");
    };
    settle();
    for event in ["PreToolUse", "PostToolUse", "PreToolUse"] {
        call(&mut world, event);
        settle();
    }
    assert_eq!(log(&world), None);
}

#[test]
fn a_settings_file_with_a_slip_is_told_once_and_covers_as_ever() {
    let mut world = covered();
    write(&world.settings(), "nonsense = 1\n");
    assert!(edit(&mut world, "a")["systemMessage"].as_str().unwrap().contains("nonsense"));
    let locks = below(&world.state().join("sessions"), "lock");
    let _held = Lock::acquire(&locks[0], Instant::now()).unwrap();
    assert_eq!(edit(&mut world, "a"), json!({}));
}

#[test]
fn a_way_round_to_what_is_ours_is_still_ours() {
    let mut world = covered();
    let (state, other) = (world.state(), world.root().join("../other"));
    fs::create_dir_all(&other).unwrap();
    // The state directory, the settings and an agent's own lie elsewhere, as dot files often do.
    fs::rename(&state, other.join("store")).unwrap();
    symlink(other.join("store"), &state).unwrap();
    write(&other.join("mine.toml"), "notify = \"trouble\"\n");
    fs::create_dir_all(world.settings().parent().unwrap()).unwrap();
    symlink(other.join("mine.toml"), world.settings()).unwrap();
    world.write(".claude/settings.json", "beforehand hook --agent claude-code");
    symlink(world.root().join(".claude"), other.join("dots")).unwrap();
    let other = other.canonicalize().unwrap();
    for path in [
        state.join("journal"),
        other.join("store/journal"),
        other.join("mine.toml"),
        world.settings(),
        other.join("dots/settings.json"),
        other.join("store/repositories/x/refs/checkpoints/main/x"),
    ] {
        let answer = edit(&mut world, &path);
        let verdict = &answer["hookSpecificOutput"]["permissionDecision"];
        assert_eq!(verdict, "ask", "{}: {answer}", path.display());
    }
    let answer = edit(&mut world, other.join("yours"));
    assert!(answer["hookSpecificOutput"]["permissionDecision"].is_null(), "{answer}");
}

#[test]
fn the_stamp_of_a_directory_says_nothing_of_what_is_in_it() {
    let mut world = World::with_git();
    world.write("d/e/f", "one");
    settle();
    let gone = json!({ "path": world.root().join("d") });
    world.hook("t", "mcp__fs__delete_directory", &gone);
    settle();
    world.write("d/e/f", "two");
    settle();
    world.hook("t", "mcp__fs__delete_directory", &gone);
    fs::remove_file(world.root().join("d/e/f")).unwrap();
    world.run(&["restore", "latest", "--yes"]);
    assert_eq!(world.read("d/e/f"), "two");
}

#[test]
fn a_checkpoint_that_was_dropped_covers_nothing() {
    let mut world = covered();
    edit(&mut world, "a");
    assert_eq!(checkpoints(&mut world), 1);
    world.run(&["clear", "--yes"]);
    assert_eq!(checkpoints(&mut world), 0);
    edit(&mut world, "a");
    assert_eq!(checkpoints(&mut world), 1);
}
