//! Agents that run each line in the shell of the last one: what an earlier line gave a name to, a
//! later one calls by it.

use std::fs;

use serde_json::{Value, json};

use crate::support::{temp::write, world::World};

/// Tells of a line, before it runs and after it.
fn runs(world: &mut World, agent: &str, turn: &str, line: &str) {
    for event in ["PreToolUse", "PostToolUse"] {
        world.wait(1);
        let payload = json!({
            "session_id": "s", "cwd": world.root(), "turn_id": turn, "prompt_id": turn,
            "hook_event_name": event, "tool_name": "Bash", "tool_input": { "command": line },
            "tool_use_id": line, "tool_response": {},
        });
        let args = ["hook", "--agent", agent];
        let output = world.run_in(&world.root(), &args, &payload.to_string());
        assert_eq!((output.exit.code(), &*output.stderr), (0, ""), "{line}");
    }
}

fn checkpoints(world: &mut World) -> usize {
    let listed = world.run(&["list", "--all", "--json"]).stdout;
    serde_json::from_str::<Vec<Value>>(&listed).unwrap().len()
}

/// Whether what the user writes after `first` is held before `second`.
fn is_held(agent: &str, first: &str, second: &str) -> bool {
    let mut world = World::new();
    world.write("notes", "first");
    runs(&mut world, agent, "one", first);
    let before = checkpoints(&mut world);
    world.write("notes", "later");
    runs(&mut world, agent, "two", second);
    let is_new = checkpoints(&mut world) > before;
    if is_new {
        world.write("notes", "lost");
        world.run(&["restore", "latest", "--yes", "--force"]);
        assert_eq!(world.read("notes"), "later", "{first}; {second}");
    }
    is_new
}

#[test]
fn a_name_that_an_earlier_line_defined_is_never_proven_harmless() {
    for first in [
        "ls() { rm -f notes; }",
        "function ls { rm -f notes; }",
        "if true; then alias ls='rm -rf .'; fi",
        "source ./env.sh",
        ". ./env.sh && make",
        "eval \"$(cat env.sh)\"",
        "nvm use 22",
        "exec > out.txt",
        "trap 'rm -f notes' DEBUG",
        "export PATH=$PWD/bin:$PATH",
        "PATH=$PWD/bin:$PATH",
        "enable -f ./ls.so ls",
        "hash -p ./wipe ls",
        "cd src; ((",
    ] {
        assert!(is_held("codex", first, "ls"), "{first}");
        assert!(is_held("codex", first, "mkdir -p new"), "{first}");
    }
}

#[test]
fn what_changes_no_shell_costs_nothing_later() {
    for first in [
        "make",
        "./wipe ls",
        "PATH=$PWD/bin:$PATH make",
        "name=value; rm -f nothing",
        "python3 -c 'print(1)'",
        "git commit -m x 2>/dev/null",
        "set -euo pipefail; npm test",
        "ls",
    ] {
        assert!(!is_held("codex", first, "ls"), "{first}");
    }
    // Its shell is a new one for each line.
    assert!(!is_held("claude-code", "ls() { rm -f notes; }", "ls"));
}

#[test]
fn a_line_that_nothing_was_held_for_is_remembered_all_the_same() {
    let mut world = World::new();
    world.write("notes", "mine");
    let in_the_way = ["objects", "roots"].map(|name| world.state().join(name));
    for path in &in_the_way {
        write(path, "");
    }
    runs(&mut world, "codex", "one", "alias ls='rm -f notes'");
    for path in &in_the_way {
        fs::remove_file(path).unwrap();
    }
    assert_eq!(checkpoints(&mut world), 0);
    runs(&mut world, "codex", "two", "ls");
    assert_eq!(checkpoints(&mut world), 1);
}

#[test]
fn a_ledger_that_cannot_be_read_proves_nothing_of_a_shell() {
    let mut world = World::new();
    world.write("notes", "mine");
    runs(&mut world, "codex", "one", "make");
    let files = fs::read_dir(world.state().join("sessions")).unwrap();
    let files = files.map(|file| file.unwrap().path());
    let ledgers: Vec<_> =
        files.filter(|file| file.extension().is_some_and(|it| it == "json")).collect();
    assert_eq!(ledgers.len(), 1);
    write(&ledgers[0], "{");
    for text in ["later", "later still"] {
        world.write("notes", text);
        let before = checkpoints(&mut world);
        runs(&mut world, "codex", text, "ls");
        assert!(checkpoints(&mut world) > before, "{text}");
    }
}
