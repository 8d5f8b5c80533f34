//! Warm-ups: checkpoints in the background before the first call needs one.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    thread,
};

use beforehand::{
    model::{Reason, Root, RootKind, StoreChoice},
    process::Exit,
    state::StateDir,
};
use serde_json::{Value, json};

use crate::{
    store::draft,
    support::{temp::count, walk::walk, world::World},
};

/// An event of the session, as Claude Code tells it.
fn event(world: &World, name: &str, more: &Value) {
    let mut payload = json!({
        "session_id": "s1", "cwd": world.root(), "hook_event_name": name, "source": "startup",
    });
    payload.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let args = ["hook", "--agent", "claude-code"];
    let output = world.run_in(&world.root(), &args, &payload.to_string());
    assert_eq!((output.exit, &*output.stderr), (Exit::Ok, ""));
}

fn checkpoints(world: &World) -> usize {
    count(&StateDir::new(world.state()).root_at(&world.root()).checkpoints())
}

fn prompt(world: &World, turn: &str) {
    event(world, "UserPromptSubmit", &json!({ "prompt": "do it", "prompt_id": turn }));
}

/// The agent changes a file, and says when it is done.
fn edit(world: &mut World, turn: &str, text: &str) {
    world.agent_writes(turn, "a", text);
    let input = json!({ "file_path": world.root().join("a"), "content": text });
    let more = json!({
        "prompt_id": turn, "tool_name": "Write", "tool_input": input, "tool_response": {},
        "tool_use_id": "x",
    });
    event(world, "PostToolUse", &more);
}

#[test]
fn the_first_call_of_a_session_finds_everything_held() {
    for mut world in [World::new(), World::with_git()] {
        world.write("a", "before");
        event(&world, "SessionStart", &json!({}));
        assert_eq!(checkpoints(&world), 0, "the hook itself does nothing");
        world.run_started();
        assert_eq!(checkpoints(&world), 1);
        let listed = world.run(&["list"]);
        assert!(listed.stderr.contains("no checkpoints yet"), "nobody needed it: {listed:?}");
        prompt(&world, "t1");
        edit(&mut world, "t1", "after");
        assert_eq!(checkpoints(&world), 1, "the turn uses the one that is there");
        let listed = world.run(&["list", "--calls"]).stdout;
        assert!(listed.contains("before Write"), "{listed}");
        assert_eq!(world.run(&["undo", "--yes"]).exit, Exit::Ok);
        assert_eq!(world.read("a"), "before");
    }
}

#[test]
fn a_prompt_has_what_the_last_turn_did_looked_at() {
    let mut world = World::new();
    world.write("a", "0");
    prompt(&world, "t1");
    assert!(world.started().is_empty(), "there was no turn before it");
    edit(&mut world, "t1", "1");
    drop(world.started());
    prompt(&world, "t2");
    prompt(&world, "t2");
    assert_eq!(world.started().len(), 1, "once a turn");
    prompt(&world, "t3");
    assert!(world.started().is_empty(), "the turn before did nothing");
    edit(&mut world, "t3", "2");
    drop(world.started());
    world.wait(20);
    prompt(&world, "t4");
    world.run_started();
    assert_eq!(checkpoints(&world), 3);
    edit(&mut world, "t4", "3");
    assert_eq!(checkpoints(&world), 3);
    world.run(&["undo", "--yes"]);
    assert_eq!(world.read("a"), "2", "one turn was taken back");
}

/// How many descriptors this process has of a file.
fn opened(path: &Path) -> usize {
    let fds = fs::read_dir("/proc/self/fd").unwrap().flatten();
    fds.filter(|fd| fs::read_link(fd.path()).is_ok_and(|to| to == path)).count()
}

/// Goes on once somebody else has opened a file that we hold, or `is_over`.
fn await_second(path: &Path, is_over: impl Fn() -> bool) {
    while opened(path) < 2 && !is_over() {
        thread::yield_now();
    }
}

fn held(path: PathBuf) -> File {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let lock = File::create(path).unwrap();
    lock.lock().unwrap();
    lock
}

#[test]
fn a_call_waits_for_a_warm_up_and_uses_its_result() {
    let mut world = World::new();
    world.write("a", "0");
    let state = StateDir::new(world.state());
    let place = state.root_at(&world.root());
    let warming = held(place.warming());
    let root = world.root();
    thread::scope(|scope| {
        let call = scope.spawn(|| world.before_bash("t1", "make"));
        await_second(&place.warming(), || call.is_finished());
        assert!(!call.is_finished(), "it did not wait");
        let root = Root::new(root, RootKind::Plain { why: None });
        let store = beforehand::store::open(&root, &state, StoreChoice::Auto).unwrap();
        let mut warm = draft(walk(&root));
        warm.cause.reason = Reason::Net;
        assert!(store.save(warm).unwrap().is_new);
        drop(warming);
        assert_eq!(call.join().unwrap(), "{}");
    });
    assert_eq!(checkpoints(&world), 1);
}

#[test]
fn a_slow_warm_up_leaves_no_second_checkpoint_of_the_turn() {
    for mut world in [World::new(), World::with_git()] {
        world.set("BEFOREHAND_DEADLINE", "2s");
        world.write("a", "before");
        let place = StateDir::new(world.state()).root_at(&world.root());
        let at_the_store = held(place.lock());
        let dir = world.root().to_string_lossy().into_owned();
        let args = ["warm", "--agent", "claude-code", "--session", "s1", "--dir", &dir];
        let input = json!({ "file_path": world.root().join("a"), "content": "after" });
        let payload = json!({
            "session_id": "s1", "cwd": dir, "prompt_id": "t1", "hook_event_name": "PreToolUse",
            "tool_name": "Write", "tool_input": input, "tool_use_id": "x",
        });
        let world = &world;
        thread::scope(|scope| {
            let warm = scope.spawn(move || world.run_in(Path::new("/"), &args, "").exit);
            await_second(&place.lock(), || warm.is_finished());
            assert!(!warm.is_finished(), "it has looked, and waits to save");
            let hook = ["hook", "--agent", "claude-code"];
            let answer = world.run_in(&world.root(), &hook, &payload.to_string());
            assert_eq!(answer.stdout, "{}", "the call's own is saved without waiting longer");
            assert_eq!(checkpoints(world), 1);
            world.write("a", "after");
            drop(at_the_store);
            assert_eq!(warm.join().unwrap(), Exit::Ok);
        });
        assert_eq!(checkpoints(world), 1, "a state in the middle of a turn is nobody's");
    }
}

#[test]
fn a_call_that_was_first_leaves_nothing_to_do() {
    let mut world = World::new();
    world.write("a", "0");
    event(&world, "SessionStart", &json!({}));
    prompt(&world, "t1");
    world.agent_writes("t1", "a", "1");
    world.run_started();
    assert_eq!(checkpoints(&world), 1, "one checkpoint for one turn");
}

#[test]
fn one_look_at_a_time_and_none_where_that_is_switched_off() {
    let mut world = World::new();
    world.write("a", "0");
    let place = StateDir::new(world.state()).root_at(&world.root());
    fs::create_dir_all(place.dir()).unwrap();
    let lock = File::create(place.warming()).unwrap();
    lock.lock().unwrap();
    event(&world, "SessionStart", &json!({}));
    world.run_started();
    assert_eq!(checkpoints(&world), 0, "somebody is at it");
    lock.unlock().unwrap();
    world.set("BEFOREHAND_TRIGGERS_SESSION_START", "off");
    world.set("BEFOREHAND_AUTO_PRUNE", "off");
    event(&world, "SessionStart", &json!({}));
    assert!(world.started().is_empty());
    let dir = world.root().to_string_lossy().into_owned();
    let args = ["warm", "--agent", "claude-code", "--session", "s1", "--dir", &dir];
    world.run(&args);
    assert_eq!(checkpoints(&world), 0);
}

#[test]
fn the_whole_disk_and_the_home_are_left_alone() {
    let world = World::new();
    let home = world.root().join("../../home").canonicalize().unwrap();
    for dir in [Path::new("/"), &home] {
        let dir = dir.to_str().unwrap();
        let args = ["warm", "--agent", "claude-code", "--session", "s1", "--dir", dir];
        assert_eq!(world.run_in(Path::new("/"), &args, "").exit, Exit::Ok);
    }
    assert_eq!(count(&world.state().join("roots")), 0);
}

#[test]
fn a_requested_checkpoint_is_listed() {
    let mut world = World::new();
    world.write("a", "0");
    event(&world, "SessionStart", &json!({}));
    world.run_started();
    let id = world.run(&["create"]).stdout;
    assert!(world.run(&["list"]).stdout.contains(&id[..4]));
    assert_eq!(world.run(&["create"]).stdout, id, "and only one");
}
