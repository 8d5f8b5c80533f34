//! Notices to the user, but not to the model, about commands with unusually large effects.

use std::fs;

use gix::index::entry::{Flags, Mode, Stat};
use rustix::fs::FileType;

use crate::support::{temp::special, world::World};

/// One event of an agent about one command.
fn event(world: &mut World, agent: &str, name: &str, command: &str) -> String {
    let payload = serde_json::json!({
        "session_id": "s", "cwd": world.root(), "hook_event_name": name, "tool_name": "Bash",
        "tool_input": { "command": command }, "tool_use_id": command, "prompt_id": "p",
        "tool_response": {}, "prompt": "do it",
    });
    world.wait(1);
    let args = ["hook", "--agent", agent];
    world.run_in(&world.root(), &args, &payload.to_string()).stdout
}

/// A project with 60 files that git tracks and three that it does not.
fn project() -> World {
    let world = World::with_git();
    let (path, hash) = (world.root().join(".git/index"), gix::hash::Kind::Sha1);
    let mut state = gix::index::State::new(hash);
    for number in 0..60 {
        let (name, text) = (format!("src/{number:02}"), format!("text {number}\n"));
        world.write(&name, &text);
        let id = gix::objs::compute_hash(hash, gix::objs::Kind::Blob, text.as_bytes()).unwrap();
        let name = name.as_bytes().into();
        state.dangerously_push_entry(Stat::default(), id, Flags::empty(), Mode::FILE, name);
    }
    let mut index = gix::index::File::from_state(state, path);
    index.write(gix::index::write::Options::default()).unwrap();
    for name in ["notes", "draft", "x/y"] {
        world.write(name, format!("only here: {name}"));
    }
    world
}

fn remove(world: &World, names: &[&str]) {
    for name in names {
        fs::remove_file(world.root().join(name)).unwrap();
    }
}

fn remove_all(world: &World) {
    let names: Vec<String> = (0..60).map(|number| format!("src/{number:02}")).collect();
    remove(world, &names.iter().map(String::as_str).collect::<Vec<_>>());
}

const NOTHING: &str = "{}";

#[test]
fn a_command_that_deletes_much_is_told_at_once_and_once() {
    let mut world = project();
    assert_eq!(event(&mut world, "claude-code", "PreToolUse", "make clean"), NOTHING);
    remove_all(&world);
    remove(&world, &["notes", "draft", "x/y"]);
    insta::assert_snapshot!(event(&mut world, "claude-code", "PostToolUse", "make clean"), @r#"{"systemMessage":"beforehand: that command deleted 63 files, 3 of them untracked: beforehand undo"}"#);
    assert_eq!(event(&mut world, "claude-code", "PostToolUse", "make clean"), NOTHING);
    assert_eq!(event(&mut world, "claude-code", "Stop", ""), NOTHING);
    world.run(&["undo", "--yes"]);
    assert_eq!(world.read("src/59"), "text 59\n");
    assert_eq!(world.read("draft"), "only here: draft");
}

#[test]
fn what_git_tracks_what_moves_and_what_is_made_is_no_news() {
    let mut world = project();
    event(&mut world, "claude-code", "PreToolUse", "make some");
    remove(&world, &["src/00", "src/01"]);
    fs::rename(world.root().join("notes"), world.root().join("moved")).unwrap();
    for number in 0..80 {
        world.write(&format!("gen/{number}"), "made");
    }
    assert_eq!(event(&mut world, "claude-code", "PostToolUse", "make some"), NOTHING);
}

#[test]
fn the_settings_say_what_is_much() {
    let mut world = project();
    world.set("BEFOREHAND_NOTICE_UNTRACKED", "false");
    world.set("BEFOREHAND_NOTICE_FILES", "1");
    event(&mut world, "claude-code", "PreToolUse", "make some");
    remove(&world, &["draft"]);
    assert_eq!(event(&mut world, "claude-code", "PostToolUse", "make some"), NOTHING);
    event(&mut world, "claude-code", "PreToolUse", "make more");
    remove(&world, &["src/00"]);
    world.write("src/01", "changed");
    let said = event(&mut world, "claude-code", "PostToolUse", "make more");
    assert!(said.contains("that command changed 1 file and deleted 1 file: beforehand"), "{said}");
}

#[test]
fn an_interrupted_command_is_told_when_the_user_speaks_again() {
    let mut world = project();
    event(&mut world, "claude-code", "PreToolUse", "make clean");
    remove(&world, &["draft"]);
    world.write("by-hand", "a person's");
    let said = event(&mut world, "claude-code", "UserPromptSubmit", "");
    assert!(
        said.contains("deleted 1 file, which git did not track before: beforehand undo"),
        "{said}"
    );
    let plan = world.run(&["restore", "1", "--dry-run"]).stdout;
    assert!(plan.contains("by-hand   made since, perhaps by an interrupted"), "{plan}");
}

#[test]
fn the_end_of_a_turn_says_whose_it_was() {
    let mut world = project();
    event(&mut world, "claude-code", "PreToolUse", "make things");
    remove(&world, &["draft"]);
    world.write("gen", "made");
    let said = event(&mut world, "claude-code", "Stop", "");
    assert!(
        said.contains("deleted 1 file, which git did not track before: beforehand undo"),
        "{said}"
    );
    world.write("by-hand", "a person's");
    let plan = world.run(&["restore", "1", "--dry-run"]).stdout;
    assert!(plan.contains("gen       made by the agent"), "{plan}");
    assert!(plan.contains("by-hand   not made by the agent"), "{plan}");
}

#[test]
fn an_agent_that_never_says_done_is_counted_at_its_next_call() {
    let mut world = project();
    event(&mut world, "claude-code", "PreToolUse", "make clean");
    remove(&world, &["draft"]);
    let said = event(&mut world, "claude-code", "PreToolUse", "make more");
    assert!(
        said.contains("deleted 1 file, which git did not track before: beforehand undo"),
        "{said}"
    );
}

#[test]
fn what_is_only_ignored_is_not_gone() {
    let mut world = project();
    world.write(".gitignore", "*.db\n");
    world.write("x.db", "data");
    let command = "echo more >> x.db; make things";
    event(&mut world, "claude-code", "PreToolUse", command);
    world.write("x.db", "data, more");
    assert_eq!(event(&mut world, "claude-code", "PostToolUse", command), NOTHING);
}

#[test]
fn a_pipe_with_another_name_is_not_gone() {
    let mut world = project();
    for dir in ["p", "q"] {
        fs::create_dir(world.root().join(dir)).unwrap();
    }
    special(&world.root().join("p/pipe"), FileType::Fifo, 0o600);
    event(&mut world, "claude-code", "PreToolUse", "make some");
    fs::rename(world.root().join("p/pipe"), world.root().join("q/pipe")).unwrap();
    assert_eq!(event(&mut world, "claude-code", "PostToolUse", "make some"), NOTHING);
    event(&mut world, "claude-code", "PreToolUse", "make more");
    fs::remove_file(world.root().join("q/pipe")).unwrap();
    let said = event(&mut world, "claude-code", "PostToolUse", "make more");
    assert!(said.contains("deleted 1 file, which git did not track before"), "{said}");
}
